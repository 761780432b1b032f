/* SPDX-License-Identifier: Apache-2.0 */
/* Measured use by owner, updated as nodes come and go. Loop thread. */
#pragma once

#include "aggregator/state/view.h"

struct owners;
struct owner;

/* The part of one pod in its owner's sums. */
struct owner_share {
	struct owner *owner; /* NULL: nothing */
	int64_t cpu_micro, cpu_p95_micro, working_set_bytes;
};

/* All shares of one node, in the order of its model's pods. */
struct owner_shares {
	size_t count;
	struct owner_share *of; /* owned */
};

struct owners *owners_new(void);
void owners_free(struct owners *o);
/* Counts the pods of a node; *shares is what owners_subtract() takes away again, and frees. */
void owners_add(struct owners *o, const struct view_node *n, struct owner_shares *shares);
/* The shares are those of a node of the same model, measured before: they become this one's. */
void owners_update(struct owners *o, const struct view_node *n, struct owner_shares *shares);
void owners_subtract(struct owners *o, struct owner_shares *shares);
/*
 * The caller drops it. The one before where nothing changed; NULL where there is no owner, nor
 * anything remembered. Once a minute what is measured is noted for later.
 */
struct owner_table *owners_table(struct owners *o, int64_t now_ns);
/* Restores saved use of workloads (workload_memory_read()). */
int owners_recall(struct owners *o, const char *text, size_t len, struct error *error);
