/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster as the Kubernetes API tells it: every kept object, by name, and pods by their node.
 * Owned by the loop thread; readers get immutable tables of it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"

/* How complete what we know of one kind is. */
enum source_state {
	SOURCE_NONE, /* nobody asks for it: standalone */
	SOURCE_LISTING, /* not complete yet */
	SOURCE_SYNCED,
	/* was complete; the watch is broken, and changes are missed since changed_ns */
	SOURCE_STALE,
	SOURCE_FORBIDDEN, /* 403; the message names the missing RBAC rule */
	SOURCE_ABSENT, /* the API has no such resource (CRD) */
	SOURCE_SNAPSHOT, /* from a file */
	SOURCE_STATES
};

const char *source_state_name(enum source_state s); /* "synced" */

/*
 * Objects of a kind that cannot be read, and why: they are not in the model. Bounded: beyond that
 * only `more` is known.
 */
enum { UNREADABLE_MAX = 8 };

/* Texts are cut when they are longer. */
struct unreadable {
	char namespace[64], name[256];
	char node[256]; /* of a pod: the one it is bound to; "" none, or it is not known */
	char why[192]; /* "spec.min.cpu: must not be negative" */
};

/* Empty when all is zero. */
struct unreadables {
	uint32_t count;
	bool more; /* some did not find a place, and may be there still */
	struct unreadable of[UNREADABLE_MAX]; /* in the order they came */
};

/* In place of what was known of that name. */
void unreadables_put(struct unreadables *u, const char *namespace, const char *name,
		     const char *node, const char *why);
/* It can be read, or is gone. */
void unreadables_remove(struct unreadables *u, const char *namespace, const char *name);
bool unreadables_equal(const struct unreadables *a, const struct unreadables *b);

struct model_source {
	enum source_state state;
	int64_t changed_ns; /* Unix time the state began */
	int64_t event_ns; /* of the newest event or bookmark; 0: none */
	uint64_t relists, watch_errors, skipped; /* objects that could not be read are skipped */
	uint64_t events, bytes; /* of watches; of lists and watches, not compressed */
	uint64_t too_large; /* objects that were refused for their size */
	char api_version[64]; /* "policy/v1beta1", "" unknown */
	char message[256]; /* why it is so, "" when all is well */
	char skipped_last
		[256]; /* kind, namespace, name, field and reason of the newest skipped object */
	struct unreadables unreadable; /* now; skipped counts since the start */
};

/* Immutable; sorted by namespace and name. */
struct object_table {
	atomic_uint users;
	uint64_t generation; /* of the model when it last changed */
	size_t count;
	struct object *of[]; /* each held */
};

/*
 * One node's part: the object, if the API knows it, and its pods (spec.nodeName), sorted by
 * namespace and name.
 */
struct model_node {
	atomic_uint users;
	uint64_t generation; /* grows with each change of the node or its pods */
	const char *name; /* of its own block */
	struct kube_node *node; /* held; NULL: pods name a node that the API does not (any more) */
	size_t pod_count;
	struct kube_pod **pods; /* each held */
};

/* All of the model at one moment. Unchanged parts are shared with the moment before. */
struct cluster {
	atomic_uint users;
	uint64_t generation;
	/* held; that of pods: those without a node. Never NULL */
	struct object_table *tables[OBJECT_KINDS];
	size_t node_count;
	struct model_node **nodes; /* each held; sorted by name; all of node objects or with pods */
	uint64_t pod_count;
	struct model_source sources[OBJECT_KINDS];
};

/* Told of every change of a pod, while it is made; must not touch the model. */
struct model_pod_watch {
	/*
	 * Added (was is NULL), or another than it was. Clusters from this generation on have it so.
	 */
	void (*put)(void *ctx, const struct kube_pod *was, const struct kube_pod *pod,
		    uint64_t generation);
	/* Removed, missing in a new list, or replaced by one of the same name and another uid. */
	void (*gone)(void *ctx, const struct kube_pod *pod);
	void *ctx;
};

struct model;
struct model *model_new(void);
void model_free(struct model *m);
/* At most one; borrowed as long as the model is. */
void model_watch_pods(struct model *m, const struct model_pod_watch *watch);

/* Added or modified: takes the object over. Equal templates become one. */
void model_put(struct model *m, struct object *o);
/* -ENOENT: was not there. */
int model_remove(struct model *m, enum object_kind kind, const char *namespace, const char *name);
/*
 * A list, as against events: what was not put between the two is removed at the end. An end without
 * a begin is a bug.
 */
void model_replace_begin(struct model *m, enum object_kind kind);
void model_replace_end(struct model *m, enum object_kind kind);
/* The kind as a whole is gone (CRD removed, permission lost and nothing known). */
void model_clear(struct model *m, enum object_kind kind);
void model_set_source(struct model *m, enum object_kind kind, const struct model_source *source);
enum source_state model_source_state(const struct model *m, enum object_kind kind);
/* NULL: not there. Borrowed until the next change. */
const struct object *model_find(const struct model *m, enum object_kind kind, const char *namespace,
				const char *name);
uint64_t model_generation(const struct model *m);

/* The current state; the caller drops it. The cost grows with the changes since the last call. */
struct cluster *model_cluster(struct model *m);
struct cluster *cluster_hold(struct cluster *c);
void cluster_drop(struct cluster *c); /* any thread; NULL is allowed */
struct model_node *model_node_hold(struct model_node *n);
void model_node_drop(struct model_node *n); /* any thread; NULL is allowed */
const struct object *cluster_find(const struct cluster *c, enum object_kind kind,
				  const char *namespace, const char *name);
/* The same in tables[kind] alone: without pods on nodes, whose search looks at each node. */
const struct object *cluster_find_listed(const struct cluster *c, enum object_kind kind,
					 const char *namespace, const char *name);
/*
 * The workload a person would name: a ReplicaSet's Deployment, a Job's CronJob, else the controller
 * itself, else the pod ("Pod"). Borrowed from the cluster and the pod.
 */
struct owner_ref cluster_workload_of(const struct cluster *c, const struct kube_pod *pod);
