/* SPDX-License-Identifier: Apache-2.0 */
/* A Snapshot while changes are made in it, for the files that make them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/cli/whatif.h"

enum { WHATIF_REPLICAS_MOST = 10000 };

struct whatif_counter;

struct whatif {
	cJSON *items; /* objects */
	cJSON *nodes, *pods; /* measurements; NULL: none */
	cJSON *sources; /* NULL: none */
	const char *time; /* when pods are made */
	struct whatif_counter *counters; /* owned */
	size_t counter_count;
	unsigned int nodes_made, pods_made; /* names so far */
	/* of the change at hand */
	const char *option, *text;
	size_t applied; /* objects of its file */
	size_t left_out; /* others, whose controllers are there */
	cJSON *skipped; /* of others the number by kind; owned */
	struct buf *notes;
	struct error *error;
};

/* -EINVAL with the reason: "--OPTION TEXT: ..". */
int whatif_refuse(const struct whatif *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* In place of what the member was. */
void whatif_set_text(cJSON *object, const char *key, const char *value);
void whatif_set_number(cJSON *object, const char *key, double value);
/* The member as an object or a list, which is made where there is none. */
cJSON *whatif_object_in(cJSON *object, const char *key);
cJSON *whatif_list_in(cJSON *object, const char *key);

/* NULL: there is none. namespace "": of what has none. */
cJSON *whatif_find(const struct whatif *w, const char *kind, const char *namespace,
		   const char *name);
/* The same of a node; NULL with the reason. */
cJSON *whatif_find_node(const struct whatif *w, const char *name);
/* Sets name and uid to "whatif-N", N behind *made. */
void whatif_give_name(cJSON *object, unsigned int *made);
/* Takes the object. A kind that was not followed is from now on. */
void whatif_add(struct whatif *w, cJSON *object);
/* Frees an object of the list; of a pod, its use is taken from its node, and budgets count it no more. */
void whatif_remove(struct whatif *w, cJSON *object);

/* A DaemonSet's pod, or a mirror pod of the node. */
bool whatif_ends_with_node(const cJSON *pod);
/*
 * The kind of the workload if the pod belongs to it, else NULL. The name is what people call it: a
 * Deployment's, without the hash of its ReplicaSet.
 */
const char *whatif_kind_of(const cJSON *pod, const char *namespace, const char *workload);
/* Makes the pod pending. whatif_leave(): one of the list, whose use is taken from its node. */
void whatif_let_wait(const struct whatif *w, cJSON *pod);
void whatif_leave(struct whatif *w, cJSON *pod);
/*
 * The kernel enforces the pod's limit of cpu or memory; the measured ones of its containers are removed.
 */
void whatif_enforce_limit(const struct whatif *w, const cJSON *pod, const char *resource);
/* What the model uses is what the pod uses on its node. */
void whatif_copy_use(const struct whatif *w, const cJSON *model, const cJSON *pod);
/* Adds measurements of a node that uses nothing; model: the node with the same windows, NULL: any. */
void whatif_add_use(const struct whatif *w, const char *node, const char *model);

/* Called before the first change, and after the last; made: the status of budgets and controllers is updated. */
void whatif_begin(struct whatif *w);
void whatif_end(struct whatif *w, bool made);

/* Requests must not exceed limits, as in the API; object: "Pod NAME: ", whose container it is. */
int whatif_check_limits(const struct whatif *w, const char *object, const cJSON *container);

/* --- whatif_apply.c: w->text is the file */

int whatif_apply(struct whatif *w);
