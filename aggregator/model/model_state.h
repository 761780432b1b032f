/* SPDX-License-Identifier: Apache-2.0 */
/* The model's members and functions for its own files. Loop thread. */
#pragma once

#include "aggregator/model/model.h"
#include "shared/hash.h"

/* A template that pods of the model share. */
struct model_template {
	struct pod_template *template; /* held */
	size_t pods; /* of the model */
	UT_hash_handle hh; /* by text */
};

/*
 * An object by its name. One that is gone stays until its kind is settled, if it is in the table.
 */
struct model_entry {
	struct object *object; /* held; of one that is gone the last */
	struct model_place *place; /* of a node, and of a pod that has one */
	struct model_template *template; /* of a pod */
	uint32_t at; /* of a pod: in place->pods */
	uint32_t epoch; /* of the kind, when it was put last */
	bool gone;
	bool in_table; /* of its kind, as that is now */
	bool changed; /* in the kind's list of changes */
	UT_hash_handle hh; /* by namespace and name */
};

/* A node's name: there while a node object, a pod or the last cluster has it. */
struct model_place {
	char *name; /* owned */
	struct kube_node *node; /* borrowed from its entry; NULL: the API does not know it */
	size_t count;
	struct model_entry **pods; /* owned; in no order */
	uint64_t generation; /* of the model, when it last changed */
	bool changed; /* in the model's list of changed places */
	UT_hash_handle hh; /* by name */
};

struct model_kind {
	struct model_entry *entries; /* hash */
	struct object_table *table; /* held; as of the last settling */
	struct model_entry **changes; /* owned; what may not be in the table as it is */
	size_t change_count;
	uint32_t epoch; /* +1 per list */
	bool replacing; /* a list is being told */
};

struct model {
	uint64_t generation;
	uint64_t pod_count;
	struct model_kind kinds[OBJECT_KINDS];
	struct model_place *places; /* hash */
	struct model_place **changes; /* owned */
	size_t change_count;
	struct model_template *templates; /* hash */
	struct model_source sources[OBJECT_KINDS];
	struct cluster *cluster; /* held: the last one; NULL: none yet */
	const struct model_pod_watch *watch; /* borrowed; NULL: nobody */
};

/* --- model.c */

/* Whether the object belongs into the table of its kind: all do, but pods that have a node. */
bool model_entry_is_listed(const struct model_entry *e);
/* Out of the hash, and freed. It is in no list, and of no place. */
void model_entry_forget(struct model_kind *k, struct model_entry *e);

/* --- model_template.c */

/*
 * Gives the pod the template that equal pods of the model have; the result is what its entry
 * remembers.
 */
struct model_template *model_template_take(struct model *m, struct kube_pod *pod);
void model_template_give(struct model *m, struct model_template *t); /* NULL is allowed */

/* --- model_place.c */

/*
 * Puts a node, or a pod that has one, where it belongs; and takes it away again. Both change the
 * place.
 */
void model_place_enter(struct model *m, struct model_entry *e);
void model_place_leave(struct model *m, struct model_entry *e);
/* Nothing is there: no node object and no pod. */
bool model_place_is_empty(const struct model_place *p);
void model_place_forget(struct model *m, struct model_place *p);

/* --- model_cluster.c */

/* Makes the kind's table what it is now, and forgets its entries that are gone. */
void model_kind_settle(struct model *m, enum object_kind kind);
struct object_table *object_table_new(size_t count, uint64_t generation);
void object_table_drop(struct object_table *t);
