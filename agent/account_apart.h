/* SPDX-License-Identifier: Apache-2.0 */
/* Containers that do not live below their pods: whose they are, and what holds both. Pure. */
#ifndef EVENKEEL_AGENT_ACCOUNT_APART_H
#define EVENKEEL_AGENT_ACCOUNT_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/account_track.h"
#include "agent/topology.h"

/* Indices of tracks. */
struct apart {
	int pod, container;
};

struct pod_place {
	const char *uid; /* borrowed from the topology */
	uint32_t ref;
	int index;
};

/* Tells containers their pods while the pods are listed and the topology stays as it is. */
struct pod_finder {
	struct topology *topology; /* borrowed, as are the two below: one of each per cgroup */
	const struct track *tracks;
	const int8_t *kinds; /* enum entity_kind, or NOT_LISTED */
	/* owned, sorted; made by the first container that is not below its pod */
	struct pod_place *places;
	size_t place_count;
};

void pod_finder_fini(struct pod_finder *f);
/*
 * Index of the pod of a container that names one, or CGROUP_NONE; *apart: the container is not
 * below it.
 */
int pod_finder_find(struct pod_finder *f, int container, bool *apart);

/* Index of the nearest track that is above both, or is one of them. */
int apart_holder(const struct track *tracks, int a, int b);
/* Pod by pod. */
void apart_sort(struct apart *list, size_t count);

#endif
