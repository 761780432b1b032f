/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger as scores need it: what was promised on each node and the view does not show yet. */
#ifndef EVENKEEL_AGGREGATOR_API_ASSUMED_H
#define EVENKEEL_AGGREGATOR_API_ASSUMED_H

#include <stddef.h>

#include "aggregator/policy/score.h"
#include "aggregator/state/ledger.h"
#include "aggregator/state/view.h"

struct assumed_node {
	size_t node; /* its place in the view */
	struct score_assumed sums;
};

/* Nodes that the view has, by their place in it. */
struct assumed {
	size_t count;
	struct assumed_node *of; /* owned */
};

/*
 * The copy must have been taken before the view, and be held as long as this is used, since names
 * point into it; NULL: nothing is reserved. Left out is the pod of that uid: it is asked about, and
 * does not compete with itself ("": none).
 */
void assumed_read(struct assumed *a, const struct view *v, const struct ledger_copy *copy,
		  const char *except_uid);
/*
 * Adds what the same pods request of args->limit_others; others has as many for each node of the
 * view.
 */
void assumed_add_others(const struct view *v, const struct ledger_copy *copy,
			const char *except_uid, const struct score_args *args,
			struct score_other *others);
void assumed_fini(struct assumed *a);
/* What is assumed on the node at that place, or NULL. */
const struct score_assumed *assumed_find(const struct assumed *a, size_t node);
/* Of all that is assumed; 0 where nothing is. */
uint64_t assumed_hash(const struct assumed *a);

#endif
