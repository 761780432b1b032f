/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which version of its group the API serves each kind in: one run of requests, answered one by one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/retry.h"
#include "aggregator/model/object.h"

enum {
	API_VERSION_MAX = 64,
	DISCOVERY_VERSIONS_MAX = 48, /* of the groups of wanted kinds */
	DISCOVERY_PATH_MAX = API_VERSION_MAX + 8,
};

struct discovery_version {
	char name[API_VERSION_MAX]; /* "policy/v1" */
	bool answered;
	uint32_t kinds; /* bits of kinds that are listed and watched */
	struct kube_status fault; /* code 200: none */
};

struct discovery {
	uint32_t wanted; /* bits of kinds */
	bool groups_answered;
	struct kube_status groups_fault;
	size_t count;
	struct discovery_version versions[DISCOVERY_VERSIONS_MAX]; /* served by the API */
	int asking; /* index; -1: the groups */
};

enum discovery_verdict { DISCOVERY_SERVED, DISCOVERY_UNSERVED, DISCOVERY_FAULT };

/* Begins a run. wanted: bits of the kinds to look for, with as few requests as possible. */
void discovery_begin(struct discovery *d, uint32_t wanted);
/* The path of the next request; false: the run is over. */
bool discovery_next(struct discovery *d, char path[DISCOVERY_PATH_MAX]);
/* The answer: a body (status NULL), or why there is none. */
void discovery_answer(struct discovery *d, const char *body, size_t len,
		      const struct kube_status *status);
/* After a run: the apiVersion, borrowed, or the fault. Either may be NULL. */
enum discovery_verdict discovery_find(const struct discovery *d, enum object_kind kind,
				      const char **api_version, struct kube_status *why);
