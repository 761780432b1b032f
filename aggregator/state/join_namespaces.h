/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of requests and use by namespace, updated as nodes and pods come and go. Loop thread.
 */
#pragma once

#include "aggregator/state/view.h"

struct namespaces;
struct space;

/* Use of a node's pods of one namespace. */
struct namespace_share {
	struct space *space;
	size_t count; /* how many of the model's pods these are, behind those of the share before */
	/* of them, those that do not count; without any, no pod has to be looked at */
	uint32_t ended;
	uint32_t pods; /* of the others, those that are measured */
	uint32_t latest_pods; /* and those whose newest CPU use is known */
	int64_t cpu_micro, working_set_bytes, latest_micro;
};

/* All shares of one node, by namespace. */
struct namespace_shares {
	size_t count;
	struct namespace_share *of; /* owned */
	int64_t until_ns; /* when its measurements expire; INT64_MAX: have, or there are none */
};

struct namespaces *namespaces_new(void);
void namespaces_free(struct namespaces *n);
/* Time passes. True once in 30 s: then namespaces_expire() is due for every node. */
bool namespaces_advance(struct namespaces *n, int64_t now_ns);
/*
 * A node was made anew, or has come (before NULL) or gone (now NULL); both are whole while this
 * runs. Shares begin as zeros.
 */
void namespaces_change(struct namespaces *n, const struct view_node *before,
		       const struct view_node *now, struct namespace_shares *shares);
/* Removes measurements older than EXPIRED_NS from the sums. */
void namespaces_expire(struct namespaces *n, const struct view_node *node,
		       struct namespace_shares *shares);
/* The pods without a node; either may be NULL. */
void namespaces_pending(struct namespaces *n, const struct object_table *before,
			const struct object_table *now);
/* The caller drops it. The one before where nothing changed; NULL where there is no namespace. */
struct namespace_table *namespaces_table(struct namespaces *n);
