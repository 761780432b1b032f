/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a search for victims needs beside the scene: a placement core, the index of pods, the rules,
 * and what was told before.
 */
#ifndef EVENKEEL_AGGREGATOR_API_QUOTA_SEARCH_H
#define EVENKEEL_AGGREGATOR_API_QUOTA_SEARCH_H

#include "aggregator/api/quota_scene.h"
#include "aggregator/policy/quota/preempt.h"

struct quota_search {
	const struct api_context *ctx; /* borrowed, as is */
	struct place_pool *pool;
	struct place *place; /* taken of the pool; what is reserved on nodes is there */
	place_mark mark; /* before that */
	size_t unseen; /* pods on nodes that the view does not show yet: nobody's victims */
	const struct preempt *index; /* kept with the view */
	struct preempt_options options;
	/* of pod, never, now, past and in flight; allowed is the caller's to set */
	struct preempt_ask ask;
	struct preempt_past *past; /* owned, as is what it points to in `told` */
	struct victim_past *told;
	const char *const *in_flight, *const *exchanged; /* owned, one block each */
	uint64_t version; /* of the log, when it was read */
};

/*
 * The scene's book is the search's alone until it is closed: searching changes it, and changes it
 * back.
 */
void quota_search_open(struct quota_search *q, const struct api_context *ctx,
		       struct place_pool *pool, const struct quota_scene *s,
		       const struct kube_pod *pod, bool never);
void quota_search_close(struct quota_search *q);

#endif
