/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which version of its group the API serves each kind in, if any: one run of questions, answered
 * one at a time.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_DISCOVERY_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/retry.h"
#include "aggregator/model/object.h"

enum {
	API_VERSION_MAX = 64,
	DISCOVERY_VERSIONS_MAX = 48, /* of the groups we ask about */
	DISCOVERY_PATH_MAX = API_VERSION_MAX + 8,
};

struct discovery_version {
	char name[API_VERSION_MAX]; /* "policy/v1" */
	bool answered;
	uint32_t kinds; /* bits: listed and watched here */
	struct kube_status fault; /* code 200: none */
};

struct discovery {
	uint32_t wanted; /* bits of kinds */
	bool groups_answered;
	struct kube_status groups_fault;
	size_t count;
	struct discovery_version versions[DISCOVERY_VERSIONS_MAX]; /* those the API serves */
	int asking; /* index; -1: the groups */
};

enum discovery_verdict { DISCOVERY_SERVED, DISCOVERY_UNSERVED, DISCOVERY_FAULT };

/* Nothing is known yet. wanted: bits of the kinds to look for, with as few questions as it takes. */
void discovery_begin(struct discovery *d, uint32_t wanted);
/* The next path to get, or false: the run is over. */
bool discovery_next(struct discovery *d, char path[DISCOVERY_PATH_MAX]);
/* What came of it: a body (status NULL), or why there is none. */
void discovery_answer(struct discovery *d, const char *body, size_t len,
		      const struct kube_status *status);
/* After a run: the apiVersion, borrowed, or why it is not known. Either may be NULL. */
enum discovery_verdict discovery_find(const struct discovery *d, enum object_kind kind,
				      const char **api_version, struct kube_status *why);

#endif
