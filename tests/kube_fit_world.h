/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random cluster in a real API server, crowded and full of rules, and pods to ask about.
 * Everything follows from the seed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/control_plane.h"
#include "tests/place_world.h"

enum { KUBE_FIT_NODES = 50, KUBE_FIT_BOUND = 160, KUBE_FIT_ASKED = 200 };

/* The namespace of everything that has one, but for some pods that others speak of. */
#define KUBE_FIT_NAMESPACE "one"

struct kube_fit_world {
	const struct kube_version *version;
	struct place_world dice; /* only its random numbers */
	/*
	 * What a scheduler counts: nodes, one that only pods name among them, and pods that have a
	 * node and have not ended.
	 */
	size_t nodes, pods;
	bool on_host; /* the pod that is being written is in its node's network */
};

/* Nodes "n00".., volumes, pods on nodes, and in namespace "two" pods "g00".. nominated for nodes. */
void kube_fit_world_make(struct kube_fit_world *w, struct control_plane *c, uint64_t seed);
/* Pods "p000".. without a node. */
void kube_fit_world_ask(struct kube_fit_world *w, struct control_plane *c);
