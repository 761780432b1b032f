/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wave of a drain plan, carried out on a real control plane as the plan says: its nodes are
 * cordoned, and exactly its pods are evicted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "tests/kube_drain_world.h"

/* A pod of the wave. */
struct kube_drain_leaver {
	const char *name, *uid, *node; /* borrowed: of the look before */
	const char *budget; /* borrowed: the one whose pods wait for each other; "" */
	bool evicted, refused;
};

struct kube_drain_wave {
	struct kube_drain_world *world; /* borrowed, as plan and before */
	const cJSON *plan; /* the member "wave" of a DrainPlan with moves */
	const struct kube_drain_look *before;
	struct kube_drain_look now; /* the last */
	struct kube_drain_leaver *leavers; /* owned; in the order in which they go */
	size_t moved; /* how many those are */
	size_t evicted, refused; /* refused: by a budget */
	/* leavers that wait for one of another node: they may for those of their own */
	size_t overdrawn;
	size_t violated; /* looks at which a budget had fewer healthy pods than it desires */
};

/* The test fails where the plan forgets a pod of its nodes, or names one that is not there. */
void kube_drain_wave_init(struct kube_drain_wave *w, struct kube_drain_world *world,
			  const cJSON *plan, const struct kube_drain_look *before);
void kube_drain_wave_fini(struct kube_drain_wave *w);
/*
 * Until nothing more will happen by itself: every pod is bound, or the scheduler has judged that it
 * cannot be. The test fails where that takes too long.
 */
void kube_drain_wave_carry_out(struct kube_drain_wave *w);

bool kube_drain_wave_has_node(const struct kube_drain_wave *w, const char *node);
/* Pods that were not to go, and are gone now. */
size_t kube_drain_wave_displaced(const struct kube_drain_wave *w);
