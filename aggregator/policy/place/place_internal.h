/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays of the placement core and their files:
 *
 *   place_terms.c    node selector terms, read and matched
 *   place_rules.c    what a pod asks of labels and taints, interned, with a cached verdict per node
 *                    equivalence class
 *   place_class.c    pods with one template in one namespace: everything else that is read of them,
 *                    once
 *   place_counter.c  pods counted by selector and topology domain (place_tally.c)
 *   place_link.c     which pods count where: new classes and new counters, told of each other
 *   place_follow.c   what hypothetical pods (place_add_pod()) bring, and its removal
 *   place_volumes.c  what the claims of a class say of a node
 *   place_claims.c   claims, resolved against volumes and storage classes
 *   place_devices.c  devices of dynamic resource allocation, and their use by claims
 *   place_requests.c claims of devices and what they request
 *   place_allocate.c which devices the claims of a pod would get on a node
 *   place_use.c      real use, in whole numbers so that undoing is exact
 *   place_order.c    nodes in the order they are tried, with the most that is free below each
 *   place_check.c    the filters; place_explain.c their sentences; place_order.c the search
 *   place_change.c   changes and their log
 *   place_load.c     building from a view; place_follow.c the next one
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place.h"
#include "aggregator/policy/place/place_devices.h"
#include "aggregator/policy/place/place_terms.h"
#include "shared/hash.h"

enum { PLACE_HOURS = PEAK_HOURS };

/* Limits of a pod: each term is matched with thousands of workloads, each value with labels. */
enum {
	PLACE_TERMS_MAX = 64, /* of one list: affinity terms, spread constraints, claims */
	PLACE_VALUES_MAX = 2048, /* texts and numbers in one field; host ports */
};

/* --- resources: enum resource_id, then each extended one that is requested or offered */

/* A sum of any number of amounts. It never saturates, so undoing an addition is exact. */
typedef __int128 place_sum;

struct place_amount {
	uint32_t dim;
	int64_t amount;
};

/* The requests of a pod that are not 0, without pods. */
struct place_shape {
	int64_t cpu, mem;
	uint32_t count;
	struct place_amount *of; /* owned */
};

/* --- labels and taints */

enum place_toleration_operator {
	PLACE_TOLERATES_EQUAL,
	PLACE_TOLERATES_EXISTS,
	PLACE_TOLERATES_GT,
	PLACE_TOLERATES_LT,
	PLACE_TOLERATIONS
};

struct place_toleration {
	const char *key, *value, *effect; /* borrowed from the rules' tree; "" any */
	enum place_toleration_operator op;
	int64_t number; /* the value, with Gt and Lt */
};

/* nodeSelector, required node affinity, tolerations, needed features. Equal text: same rules. */
struct place_rules {
	UT_hash_handle hh;
	char *text; /* owned; key */
	cJSON *tree; /* owned; what toleration points into */
	struct labels selector;
	struct place_terms affinity;
	bool has_affinity;
	PLACE_LIST(struct place_toleration) tolerations;
	declared_features features; /* that a node must declare */
	bool tolerates_cordon;
	bool own_names; /* depends on more than label_keys, as a node's name */
	char *unknown; /* owned; about an unsupported field; NULL */
	uint8_t *verdict; /* by node class: 0 not evaluated, else enum place_filter + 1 */
	uint32_t verdict_room;
};

/* --- pods that are counted; place_tally.c */

/*
 * Counts by topology domain: an open hash of those with pods, as thousands of workloads count over
 * thousands of nodes. Zeroed memory is one without any; `of` is all there is to free.
 */

struct place_tally_entry {
	uint32_t domain; /* UINT32_MAX: free */
	uint32_t count;
};

struct place_tally {
	struct place_tally_entry *of; /* owned; NULL until there is anything */
	uint32_t room; /* 0 or a power of two */
	uint32_t taken; /* entries that are not free, including counts of 0 */
};

uint32_t place_tally_get(const struct place_tally *t, uint32_t domain);
/* Returns the new count. */
uint32_t place_tally_add(struct place_tally *t, uint32_t domain, int by);

/* The pods of one affinity term or spread constraint. */
struct place_pod_selector {
	bool any; /* unreadable: may match every pod */
	bool any_namespace;
	PLACE_LIST(char *) namespaces; /* owned */
	struct selector *namespace_selector; /* owned; NULL: none */
	struct selector *selector; /* owned; NULL: matches nothing */
};

/* Pods that all of the selectors match. Equal text is the same group. */
struct place_group {
	UT_hash_handle hh;
	char *text; /* owned; key */
	PLACE_LIST(struct place_pod_selector) selectors;
	char *index; /* owned; "key=value" of every matching pod; NULL: none */
	struct place_namespace *in; /* of every matching pod, or everywhere */
	struct place_group *next_indexed;
	PLACE_LIST(uint32_t) counters;
};

/* Groups by a label of their pods. */
struct place_indexed {
	UT_hash_handle hh;
	const char *label; /* key; borrowed from the first group */
	struct place_group *first;
};

/* Groups and classes of a namespace. */
struct place_namespace {
	UT_hash_handle hh;
	char *name; /* owned; key; NULL: everywhere */
	struct place_indexed *indexed;
	struct place_group *unindexed;
	PLACE_LIST(struct place_class *) classes; /* none everywhere */
	struct labels labels; /* of the object, if has_labels */
	bool has_labels, bad_labels;
};

/* A text with the number that it got as the first one of its table. */
struct place_text {
	UT_hash_handle hh;
	char *text; /* owned; key */
	uint32_t id;
};

/* A topology key. */
struct place_key {
	char *name; /* owned */
	uint32_t *domain_of; /* by node; PLACE_NONE: the node has no such label */
	struct place_text *domains; /* owned */
	uint32_t domain_count;
};

/* Nodes that topology spread counts: they have all keys and pass the policies. */
struct place_eligible {
	UT_hash_handle hh;
	char *text; /* owned; key */
	const struct place_rules *affinity, *taints; /* NULL: ignored */
	PLACE_LIST(uint32_t) keys;
	PLACE_LIST(uint32_t) domains; /* by key: number of domains with such nodes */
	PLACE_LIST(struct place_tally) nodes; /* by key: such nodes in each domain */
	PLACE_LIST(uint32_t) counters;
	bool *of; /* by node */
};

enum place_counted {
	PLACE_COUNT_MATCHES, /* pods that the group matches */
	PLACE_COUNT_CARRIERS, /* pods with an anti-affinity term of that group */
	PLACE_COUNT_SPREAD, /* matching pods on eligible nodes, without those in deletion */
};

struct place_counter {
	enum place_counted kind;
	uint32_t key;
	struct place_group *group;
	struct place_eligible *eligible; /* SPREAD */
	struct place_tally count; /* by domain */
	uint32_t total;
	uint32_t domains, min; /* SPREAD: domains with eligible nodes, their least count */
	uint32_t *at; /* number of domains by count */
	uint32_t at_room;
};

/* --- classes */

struct place_spread {
	uint32_t counter;
	int32_t max_skew, min_domains;
	bool self;
};

struct place_port {
	char *ip; /* owned; "" any */
	char protocol[8];
	int32_t port;
};

enum place_mode { /* bits */
		  PLACE_MODE_ONCE = 1,
		  PLACE_MODE_ONLY = 2,
		  PLACE_MODE_MANY = 4,
		  PLACE_MODE_POD = 8,
};

/* A PersistentVolume: that of a bound claim, or one that is in stock. */
struct place_volume {
	char *name; /* owned */
	struct place_terms terms;
	bool has_terms;
	struct place_terms zones; /* as place_terms; nodes without any zone label pass */
	bool has_zones;
	/* in stock */
	char *wanted_by, *wanted_uid; /* owned; claimRef; NULL: anybody's */
	int64_t size;
	unsigned int modes;
	bool block, available;
	struct labels labels;
	struct place_claim *given_to; /* in the simulation */
	uint64_t chosen; /* the last query that gave it to an earlier claim of the pod */
};

/* The volumes of one storage class, smallest first; equal ones by name. */
struct place_stock {
	UT_hash_handle hh;
	char *class; /* owned; key */
	PLACE_LIST(struct place_volume *) volumes; /* owned */
};

/* A claim: unusable, bound to a volume, or waiting for its first pod. */
struct place_claim {
	UT_hash_handle hh;
	char *key; /* owned; namespace/name */
	uint32_t id;
	uint32_t users; /* pods on nodes */
	bool exclusive; /* ReadWriteOncePod */
	char *driver; /* owned; that attaches the volume; NULL: none */
	uint64_t counted; /* the last query of limits that counted it */
	char *missing; /* owned; why every node refuses; NULL */
	char *unknown; /* owned; about unsupported input; NULL */
	struct place_volume *bound; /* owned; NULL */
	bool waits;
	/* that waits */
	int64_t size;
	unsigned int modes;
	bool block;
	struct selector *selector; /* owned; NULL: any */
	char *class; /* owned */
	char *made_on; /* owned; the selected node; NULL */
	bool provisioned; /* the class provisions volumes */
	struct place_terms topologies;
	bool has_topologies;
	const struct place_stock *stock; /* NULL: none */
	struct place_volume *wanted; /* in stock, for this claim; NULL */
	/* binding in the simulation: logged */
	struct place_volume *given;
	place_node given_on; /* node of a provisioned volume */
	const struct object *of[3]; /* its sources; borrowed from the view */
};

struct place_class {
	UT_hash_handle hh;
	struct pod_template *template; /* held; key */
	struct place_class *next; /* the same template in another namespace */
	uint32_t id;
	struct place_namespace *in;
	const char *namespace; /* its name */
	struct place_slot *first; /* of its pods */
	struct place_rules *rules;
	struct place_shape shape;
	char *unknown; /* owned; NULL: all can be judged */
	/* Counters: */
	PLACE_LIST(uint32_t) affinity; /* by term */
	bool affinity_self; /* matches its own terms */
	PLACE_LIST(uint32_t) anti; /* pods that its terms match */
	PLACE_LIST(uint32_t) carried; /* carriers of its terms, by term */
	PLACE_LIST(uint32_t) feared; /* carriers whose terms match it */
	PLACE_LIST(struct place_spread) spread;
	PLACE_LIST(uint32_t) counted; /* all that count it */
	PLACE_LIST(struct place_port) ports;
	PLACE_LIST(struct place_claim *) claims; /* smallest first */
	PLACE_LIST(struct place_device_claim *) device_claims;
};

/* --- use: CPU in 1/1000 millicores, variance in 1/1000 square millicores, memory in bytes */

struct place_use {
	int64_t cpu, variance, mem;
	int64_t held_cpu, held_mem; /* at least so much in each hour (node_stats.h) */
	const struct pod_peaks *peaks; /* borrowed; NULL: the mean counts in each hour */
	bool measured;
};

/*
 * A node's use beyond its measured pods. Each unmeasured pod has a share of it, in proportion to
 * its requests; a pod without a request has as much as the average pod. The sums assume that each
 * pod ran during the whole window; grow() scales them up for younger pods.
 */
struct place_rest {
	int64_t cpu, variance, mem;
	place_sum cpu_requests, mem_requests;
	uint32_t pods, cpu_askers, mem_askers; /* that share it; with such a request */
};

struct place_node_use {
	int64_t cpu, variance, mem;
	int64_t peak_cpu[PLACE_HOURS], peak_mem[PLACE_HOURS];
};

/* --- pods and nodes */

struct place_slot {
	UT_hash_handle hh;
	char *key; /* owned; "namespace/name"; NULL: added by place_add_pod() */
	place_pod id;
	const struct kube_pod *record; /* of the view; held where it was added */
	struct place_class *class;
	struct place_shape *resized; /* owned; NULL: the class's */
	struct place_use use;
	const char *bound_to; /* borrowed: the only node of a bound DaemonSet pod; NULL */
	place_node home; /* its node in the view */
	place_node node;
	/* devices of its own claims; offset in place_dra.held; PLACE_NONE. In the view; now */
	uint32_t home_holding, holding;
	uint32_t claim; /* the first of its own claims in the view; PLACE_NONE */
	struct place_slot *next, *previous; /* on the node */
	struct place_slot *next_of_class, *previous_of_class;
	bool leaving; /* in deletion */
	bool seen; /* by the running update */
};

struct place_node_info {
	const struct view_node *view; /* of the held view */
	const struct kube_node *object; /* NULL: no destination */
	bool hidden_taints; /* they cannot be read */
	bool leaving; /* in deletion, or NODE_ENDING */
	bool cordoned;
	bool use_unknown; /* under the cap */
	double contention;
	struct place_rest rest;
	uint32_t node_class;
};

enum place_change {
	PLACE_DID_PUT,
	PLACE_DID_TAKE,
	PLACE_DID_REMOVE,
	PLACE_DID_DRAIN,
	PLACE_DID_BIND,
	PLACE_DID_HOLD, /* devices, by a pod */
	PLACE_DID_ALLOCATE, /* devices, to a claim */
};

struct place_log {
	uint32_t id; /* of the pod, node or claim */
	place_node node; /* DID_TAKE: where it was; DID_HOLD, DID_ALLOCATE: held before */
	uint8_t what, before; /* DID_CORDON, DID_REMOVE: the flag */
};

struct place_order_node {
	double share;
	uint32_t left, right, priority;
	int64_t cpu, mem, pods; /* the most that is free in the subtree; -INT64_MAX: none */
	/* likewise what the cap leaves, of the node and of the subtree; INT64_MAX: no cap */
	int64_t own_use_cpu, own_use_mem, use_cpu, use_mem;
};

/* A search tree of nodes; ties go by name. */
struct place_tree {
	bool ready;
	uint32_t root;
	struct place_order_node *of; /* by node */
	bool *stale;
	PLACE_LIST(uint32_t) stales;
};

enum { PLACE_ORDERS = PLACE_CYCLIC + 1 };

/* Lengths of all lists and hashes before the first hypothetical pod. */
struct place_known {
	uint32_t classes, counters, keys, claims, device_claims, dims;
	unsigned int groups, rules, eligibles, namespaces;
	bool selects_namespaces;
};

/* A counter of hypothetical pods in a class of the view. */
struct place_hypothetical_link {
	uint32_t class, counter;
};

struct place {
	struct place_options options;
	bool reading, ended; /* a view is read; its time is up */
	bool resting; /* the view has neither pods nor use */
	struct view *view; /* held */
	bool cap; /* on, and some node has usage */

	uint32_t node_count;
	struct place_node_info *nodes;
	bool *gone; /* by node; changes are logged */
	int64_t *available; /* node * dims + dim */
	place_sum *used; /* likewise */
	struct place_slot **first; /* pod on the node */
	struct place_node_use *use;
	uint32_t node_class_count;
	struct place_text *node_classes;
	PLACE_LIST(char *) label_keys; /* owned: of labels that node classes are made of */
	uint32_t keys_classified; /* of them, those in the present node classes */

	uint32_t dims, dim_room;
	char **dim_names; /* owned; of the extended ones */

	PLACE_LIST(struct place_slot *) pods; /* NULL: free */
	PLACE_LIST(place_pod) free_pods;
	struct place_slot *by_name;

	PLACE_LIST(struct place_class *) classes;
	struct place_class *by_template;
	struct place_rules *rules;
	struct place_group *groups;
	struct place_namespace *namespaces, everywhere;
	struct place_claim *claims;
	PLACE_LIST(struct place_claim *) claim_of; /* by id */
	struct place_stock *stocks; /* NULL until a claim waits */
	bool stocked;
	uint64_t question; /* number of queries of claims */
	struct place_dra dra;
	struct place_eligible *eligibles;
	PLACE_LIST(struct place_key) keys;
	PLACE_LIST(struct place_counter) counters;
	uint32_t linked_classes, linked_counters;
	uint32_t classes_loaded; /* number after the last full load */
	bool selects_namespaces; /* some class does */
	bool hypothetical; /* new objects belong to hypothetical pods */
	struct place_known known; /* while hypothetical */
	PLACE_LIST(struct place_hypothetical_link) hypothetical_links;

	PLACE_LIST(struct place_log) log;
	PLACE_LIST(place_pod) added; /* by place_add_pod() */
	PLACE_LIST(place_pod) waiting; /* pending in the view */
	PLACE_LIST(place_pod) loose; /* added or taken by the running update */

	struct place_tree trees[PLACE_ORDERS];
	place_node last_chosen;
};

static inline const struct object *place_find_object(const struct view *v, enum object_kind kind,
						     const char *namespace, const char *name)
{
	return v->cluster ? cluster_find(v->cluster, kind, namespace, name) : NULL;
}

/* By "namespace/name". */
static inline const struct object *place_find_by_key(const struct view *v, enum object_kind kind,
						     const char *key)
{
	const char *slash = strchr(key, '/');
	char *namespace = mem_strndup(key, (size_t)(slash - key));
	const struct object *o = place_find_object(v, kind, namespace, slash + 1);

	free(namespace);
	return o;
}

static inline struct place_slot *place_slot(const struct place *p, place_pod pod)
{
	return p->pods.of[pod];
}

static inline const struct place_shape *place_slot_shape(const struct place_slot *s)
{
	return s->resized ? s->resized : &s->class->shape;
}

static inline int64_t place_free_of(const struct place *p, place_node n, uint32_t dim)
{
	size_t at = (size_t)n * p->dim_room + dim;
	place_sum free = p->available[at] - p->used[at];

	return free < -INT64_MAX ? -INT64_MAX : (int64_t)free;
}

/* --- place_rules.c */

/* Of a pod spec. */
struct place_rules *place_rules_intern(struct place *p, const cJSON *spec);
void place_rules_free(struct place_rules *r);
/* FITS, TAINTS or NODE_AFFINITY. */
enum place_filter place_rules_ask(const struct place *p, struct place_rules *r, place_node n);
bool place_rules_select(const struct place *p, const struct place_rules *r, place_node n);
/* Required features that the node does not declare. */
declared_features place_rules_missing(const struct place *p, const struct place_rules *r,
				      place_node n);
const struct taint *place_rules_untolerated(const struct place *p, const struct place_rules *r,
					    place_node n);
void place_node_info_read(const struct view_node *v, struct place_node_info *out);
/* Frees the newest, which has no users. */
void place_rules_forget(struct place *p);
/* After labels or taints of the node changed. */
void place_classify_node(struct place *p, place_node n);
/* Rebuilds node classes if a key was added; makes room for verdicts. */
void place_classify_nodes(struct place *p, bool anew);

/* --- place_class.c */

struct place_class *place_class_of(struct place *p, const struct kube_pod *pod);
void place_class_free(struct place_class *c);
/* Frees the newest, which has no pods. */
void place_class_forget(struct place *p);
/* Moves the pod to the class; NULL: to none. */
void place_class_join(struct place_slot *s, struct place_class *c);
/* Of new resources, a hypothetical pod adds only the first: every node refuses it. */
void place_shape_read(struct place *p, const struct resources *r, struct place_shape *out);
uint32_t place_dim(struct place *p, const char *name);
const char *place_dim_name(const struct place *p, uint32_t dim);
/* Sets the note unless it is set. */
__attribute__((format(printf, 2, 3))) void place_note(char **note, const char *format, ...);
/* place_class_pods.c: affinity to pods, and spread. */
void place_class_read_pods(struct place *p, struct place_class *c, const cJSON *spec);
/* Whether the list has at most max elements and PLACE_VALUES_MAX values; else sets the note. */
bool place_is_judged(const cJSON *json, uint32_t max, const char *what, char **note,
		     const char *where);
/* Whether all members that are not null are among the names (ended by NULL); else sets the note. */
bool place_only_members(const cJSON *object, const char *const *names, char **note,
			const char *where);

/* --- place_counter.c */

/* The id of the text; a new one is *count, which grows. */
uint32_t place_text_intern(struct place_text **table, const char *text, uint32_t *count);
void place_texts_free(struct place_text **table, uint32_t *count);
uint32_t place_key_intern(struct place *p, const char *name);
uint32_t place_counter_intern(struct place *p, enum place_counted kind, struct place_group *g,
			      uint32_t key, struct place_eligible *e);
/* Takes ownership; returns the interned group. */
struct place_group *place_group_intern(struct place *p, struct place_group *g);
void place_group_free(struct place_group *g);
void place_pod_selector_fini(struct place_pod_selector *w);
struct place_eligible *place_eligible_intern(struct place *p, const struct place_rules *affinity,
					     const struct place_rules *taints, const uint32_t *keys,
					     uint32_t count);
void place_count_pod(struct place *p, const struct place_slot *s, place_node n, int by);
/* Counts the placed pods of the class in the counter. */
void place_count_class(struct place *p, const struct place_class *c, uint32_t counter);
/* Each frees the newest, which has no users. */
void place_key_forget(struct place *p);
void place_counter_forget(struct place *p);
void place_group_forget(struct place *p);
void place_eligible_forget(struct place *p);
void place_counters_free(struct place *p);
/* Removes the node from spread that honours taints; false: none counted it. */
bool place_ghost_leave(struct place *p, place_node n);
void place_ghost_return(struct place *p, place_node n);
/* Removes a node without pods from all domains; adds it by its present labels and taints. */
void place_unlabel_node(struct place *p, place_node n);
void place_label_node(struct place *p, place_node n);

/* --- place_link.c */

struct place_namespace *place_namespace_intern(struct place *p, const char *name);
/* Discards the labels, which are read on demand. */
void place_namespaces_reread(struct place *p);
void place_namespaces_free(struct place *p);
bool place_group_matches(const struct place *p, const struct place_group *g,
			 const struct place_class *c);
void place_group_index(struct place *p, struct place_group *g);
/* Of the newest group. */
void place_group_unindex(struct place_group *g);
/* Links new classes and counters, and counts placed pods. Pods of new classes are not placed. */
void place_link(struct place *p);
/* Frees the newest, which has no groups and classes. */
void place_namespace_forget(struct place *p);

/* --- place_follow.c */

void place_hypothetical_begin(struct place *p);

/* --- place_volumes.c */

void place_class_read_volumes(struct place *p, struct place_class *c, const cJSON *spec);
/* Of the volume's labels. */
void place_volume_read_zones(struct place_volume *v, const cJSON *labels);
/* The limit that the claims would exceed on the node; NULL: none. *used: without them. */
const struct csi_limit *place_volumes_exceed(struct place *p, const struct place_class *c,
					     place_node n, uint32_t *used);
/* The claim that refuses, or NULL. */
const struct place_claim *place_volumes_refuse(struct place *p, const struct place_class *c,
					       place_node n);
/* The claim that cannot be judged, or NULL. */
const struct place_claim *place_volumes_unknown(const struct place_class *c);
bool place_claim_is_taken(const struct place_claim *claim);
/* Binds all waiting claims of the class, or none. Logged. */
void place_volumes_bind(struct place *p, const struct place_class *c, place_node n);
void place_volumes_undo(struct place *p, uint32_t claim);

/* --- place_claims.c */

struct place_claim *place_claim_intern(struct place *p, const char *namespace, const char *name);
/* Smallest first. */
void place_claims_sort(struct place_class *c);
/* Rereads claims whose objects changed since the view `before`; the simulation has no binding. */
void place_claims_follow(struct place *p, const struct view *before);
/* Frees the newest, which has no users. */
void place_claim_forget(struct place *p);
void place_claims_free(struct place *p);

/* --- place_use.c */

/* Use of a pod of that node (or PLACE_NONE); vp: NULL if it is not measured. */
void place_use_of_pod(const struct place *p, place_node home, const struct view_pod *vp,
		      const struct kube_pod *record, struct place_use *out);
/* Updates the freshness alone. */
void place_use_age(struct place *p, place_node n);
/* Use beyond the pods: 0 if pods share the rest (struct place_rest). */
void place_use_base(const struct place *p, place_node n, struct place_node_use *out);
/* That, freshness and contention, before pods are added. */
void place_use_of_node(struct place *p, place_node n);
void place_use_add(struct place_node_use *u, const struct place_use *pod, int by);
struct place_use_limits {
	double cpu, cpu_limit, mem, mem_limit; /* millicores, bytes */
	int hour; /* of the peak; -1: mean and sigma */
};
bool place_use_fits(const struct place *p, place_node n, const struct place_use *pod,
		    struct place_use_limits *told);
/* An upper bound of what place_use_fits() accepts. */
void place_use_room(const struct place *p, place_node n, int64_t *cpu, int64_t *mem);

/* --- place_order.c */

void place_trees_free(struct place *p);
void place_trees_touch(struct place *p, place_node n);
double place_share(const struct place *p, place_node n);

/* --- place_load.c */

/* Of reading a view; stays true. */
bool place_is_out_of_time(struct place *p);

bool place_cap_of(const struct place_options *o, const struct view *v);
/* Loads the node without its pods. */
void place_load_node(struct place *p, place_node n);
/* Conditions that keep pods away, as bits of enum node_lifecycle. */
static inline unsigned int place_ending(const struct place *p, const struct kube_node *node)
{
	unsigned int which = NODE_ENDING | (p->options.plans ? (unsigned int)NODE_MAINTENANCE : 0);

	return node->lifecycle & which;
}

/* Reads pods; new slots are loose and seen. */
void place_meet_node(struct place *p, place_node n);
void place_meet_pending(struct place *p);
/* Frees loose pods that were not seen; puts the others on their nodes. */
void place_settle(struct place *p);
void place_slot_free(struct place *p, struct place_slot *s);
/* Rebuilds everything from the held view. */
void place_load_anew(struct place *p);

/* --- place_change.c: without the log */

void place_do_put(struct place *p, struct place_slot *s, place_node n);
void place_do_take(struct place *p, struct place_slot *s);

/* --- place_check.c */

/* Labels, taints and cordon alone. */
enum place_filter place_check_admission(const struct place *p, const struct place_slot *s,
					place_node n);
/* A resource that only devices of a class can meet on the node; PLACE_NONE: none. */
uint32_t place_check_backed(const struct place *p, const struct place_slot *s, place_node n);
/* The counter that refuses, or PLACE_NONE. */
uint32_t place_check_anti_affinity(const struct place *p, const struct place_class *c,
				   place_node n);
uint32_t place_check_affinity(const struct place *p, const struct place_class *c, place_node n);
const struct place_spread *place_check_spread(const struct place *p, const struct place_class *c,
					      place_node n);
/* The count of the domain that skew is measured from. */
uint32_t place_spread_least(const struct place_counter *k, const struct place_spread *s);
/* The pod that has the port. */
const struct place_slot *place_check_ports(const struct place *p, const struct place_class *c,
					   place_node n, const struct place_port **port);
