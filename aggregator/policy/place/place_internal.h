/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the placement core share: the compact arrays, and who fills them.
 *
 *   place_terms.c    node selector terms, read and matched
 *   place_rules.c    what a pod asks of labels and taints, interned, with a cached verdict per node
 *                    signature
 *   place_class.c    pods with one template in one namespace: everything else that is read of them,
 *                    once
 *   place_counter.c  pods counted by selector and topology domain (place_tally.h)
 *   place_link.c     which pods count where: new classes and new counters, told of each other
 *   place_asked.c    what came with pods that were only asked about, and goes with them
 *   place_volumes.c  what the claims of a class say of a node
 *   place_claims.c   claims, resolved against volumes and storage classes
 *   place_use.c      real use, in whole numbers so that undoing is exact
 *   place_order.c    nodes in the order they are tried, with the most that is free below each
 *   place_check.c    the filters; place_explain.c their sentences; place_choose.c the search
 *   place_change.c   changes and their log
 *   place_load.c     building from a view; place_follow.c the next one
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_INTERNAL_H
#define EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_INTERNAL_H

#include <cjson/cJSON.h>
#include <uthash.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/policy/place/place_tally.h"
#include "aggregator/policy/place/place_terms.h"

enum { PLACE_HOURS = PEAK_HOURS };

/*
 * What one pod may ask for and still be judged: each of its terms is matched with thousands of
 * workloads, and each value with labels of those.
 */
enum {
	PLACE_TERMS_MAX = 64, /* of one list: affinity terms, spread constraints, claims */
	PLACE_VALUES_MAX = 2048, /* texts and numbers in one field; host ports */
};

/* An array that grows; T *of. */
#define PLACE_LIST(T)                                                                              \
	struct {                                                                                   \
		T *of;                                                                             \
		uint32_t count, room;                                                              \
	}
#define PLACE_LIST_ADD(list, value)                                                                \
	do {                                                                                       \
		(list)->of =                                                                       \
			place_grow((list)->of, (list)->count, &(list)->room, sizeof(*(list)->of)); \
		(list)->of[(list)->count++] = (value);                                             \
	} while (0)
/* The element that came last into a hash that is not empty. */
#define PLACE_NEWEST(head) ELMT_FROM_HH((head)->hh.tbl, (head)->hh.tbl->tail)
void *place_grow(void *array, uint32_t count, uint32_t *room, size_t size);

/*
 * --- resources: 0..3 are enum resource_id, then every extended one that anybody asks for or offers
 */

/* A sum of any number of amounts. It never saturates, so undoing an addition is exact. */
typedef __int128 place_sum;

struct place_amount {
	uint32_t dim;
	int64_t amount;
};

/* What a pod asks for: only what is not 0, and never pods, of which it is one. */
struct place_shape {
	int64_t cpu, mem;
	uint32_t count;
	struct place_amount *of; /* owned */
};

/* --- labels and taints */

struct place_taint {
	const char *key, *value; /* borrowed from the node's tree */
	const char *effect;
};

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

/*
 * nodeSelector, required node affinity, tolerations and needed features. Equal text is the same
 * rules.
 */
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
	bool own_names; /* asks for what no signature tells, such as a node's name */
	char *unknown; /* owned; a field that cannot be judged, and why; NULL */
	uint8_t *verdict; /* by signature: 0 not asked yet, else enum place_filter + 1 */
	uint32_t verdict_room;
};

/* --- pods that are counted */

/* Which pods: all of the terms must match. Equal text is the same group. */
struct place_which {
	bool any; /* it cannot be read, and so is feared to match whatever there is */
	bool any_namespace;
	PLACE_LIST(char *) namespaces; /* owned */
	struct selector *namespace_selector; /* owned; NULL: none */
	struct selector *selector; /* owned; NULL: matches nothing */
};

struct place_group {
	UT_hash_handle hh;
	char *text; /* owned; key */
	PLACE_LIST(struct place_which) which;
	char *index; /* owned; "key=value" that every matching pod has; NULL: none is known */
	struct place_namespace *in; /* that every matching pod is in; or everywhere */
	struct place_group *next_indexed;
	PLACE_LIST(uint32_t) counters;
};

/* Groups by a label that their pods must have. */
struct place_indexed {
	UT_hash_handle hh;
	const char *label; /* key; borrowed from the first group */
	struct place_group *first;
};

/* Groups and classes by the namespace they are of. */
struct place_namespace {
	UT_hash_handle hh;
	char *name; /* owned; key; NULL: everywhere */
	struct place_indexed *indexed;
	struct place_group *unindexed;
	PLACE_LIST(struct place_class *) classes; /* none everywhere */
	struct labels labels; /* of the object, once they are read */
	bool has_labels, bad_labels; /* they are read */
};

struct place_domain {
	UT_hash_handle hh;
	char *value; /* owned; key */
	uint32_t id;
};

/* A topology key. */
struct place_key {
	char *name; /* owned */
	uint32_t *domain_of; /* by node; PLACE_NONE: the node has no such label */
	struct place_domain *domains; /* owned */
	uint32_t domain_count;
};

/* Which nodes topology spread counts: those with all keys that pass the policies. */
struct place_eligible {
	UT_hash_handle hh;
	char *text; /* owned; key */
	const struct place_rules *affinity, *taints; /* NULL: ignored */
	PLACE_LIST(uint32_t) keys;
	PLACE_LIST(uint32_t) domains; /* by place in keys: how many domains have such nodes */
	PLACE_LIST(struct place_tally) nodes; /* by place in keys: such nodes in each domain */
	PLACE_LIST(uint32_t) counters;
	bool *of; /* by node */
};

enum place_counted {
	PLACE_COUNT_MATCHES, /* pods that the group matches */
	PLACE_COUNT_CARRIERS, /* pods with an anti-affinity term of that group */
	PLACE_COUNT_SPREAD, /* matching pods that are not in deletion, on eligible nodes */
};

struct place_counter {
	enum place_counted kind;
	uint32_t key;
	struct place_group *group;
	struct place_eligible *eligible; /* SPREAD */
	struct place_tally count; /* by domain */
	uint32_t total;
	/* SPREAD: domains are those with eligible nodes, and min the least of them */
	uint32_t domains, min;
	uint32_t *at; /* how many domains have a count */
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
	uint64_t chosen; /* the last question in which it was, for an earlier claim of the pod */
};

/* The volumes of one storage class, smallest first; equal ones by name. */
struct place_stock {
	UT_hash_handle hh;
	char *class; /* owned; key */
	PLACE_LIST(struct place_volume *) volumes; /* owned */
};

/*
 * A claim: it cannot be used, stands where its volume is, or waits for the first pod to say where.
 */
struct place_claim {
	UT_hash_handle hh;
	char *key; /* owned; namespace/name */
	uint32_t id;
	uint32_t users; /* pods that are somewhere */
	bool exclusive; /* ReadWriteOncePod */
	char *driver; /* owned; that attaches the volume; NULL: none */
	uint64_t counted; /* the last question about limits in which it was counted */
	char *missing; /* owned; what refuses everywhere; NULL */
	char *unknown; /* owned; what cannot be judged; NULL */
	struct place_volume *bound; /* owned; NULL */
	bool waits;
	/* that waits */
	int64_t size;
	unsigned int modes;
	bool block;
	struct selector *selector; /* owned; NULL: any */
	char *class; /* owned */
	char *made_on; /* owned; the node that was chosen; NULL */
	bool provisioned; /* the class makes volumes */
	struct place_terms topologies;
	bool has_topologies;
	const struct place_stock *stock; /* NULL: none */
	struct place_volume *wanted; /* in stock, for this claim; NULL */
	/* that waited, in the simulation: logged */
	struct place_volume *given;
	place_node given_on; /* where one is made */
	/* what it was read of; borrowed from the view */
	const struct object *of[3];
};

struct place_class {
	UT_hash_handle hh;
	struct pod_template *template; /* held; key */
	struct place_class *next; /* the same template in another namespace */
	uint32_t id;
	struct place_namespace *in;
	const char *namespace; /* its name */
	place_pod first; /* of its pods */
	struct place_rules *rules;
	struct place_shape shape;
	char *unknown; /* owned; NULL: all can be judged */
	PLACE_LIST(uint32_t) affinity; /* counters, a term each */
	bool affinity_self; /* matches its own terms */
	PLACE_LIST(uint32_t) anti; /* counters of pods that its terms match */
	PLACE_LIST(uint32_t) carried; /* counters of carriers of its terms, a term each */
	PLACE_LIST(uint32_t) feared; /* counters of carriers whose terms match it */
	PLACE_LIST(struct place_spread) spread;
	PLACE_LIST(uint32_t) counted; /* counters that it is counted by */
	PLACE_LIST(struct place_port) ports;
	PLACE_LIST(struct place_claim *) claims; /* smallest first */
};

/*
 * --- use. CPU in thousandths of a millicore, its variance in thousandths of a square millicore,
 * memory in bytes.
 */

struct place_use {
	int64_t cpu, variance, mem;
	/* borrowed from the view; NULL: the mean stands for each hour */
	const struct pod_peaks *peaks;
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
	uint32_t pods, cpu_askers, mem_askers; /* that share it; of these with such a request */
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
	const char *bound_to; /* borrowed: the only node a bound pod of a DaemonSet is for; NULL */
	place_node home; /* where the view has it */
	place_node node;
	place_pod next, previous; /* neighbours on the node */
	place_pod next_of_class, previous_of_class;
	bool leaving; /* in deletion */
	bool seen; /* by the update that is under way */
	bool moved; /* is in place.moved */
};

struct place_node_info {
	const struct view_node *view; /* of the held view */
	const struct kube_node *object; /* NULL: no destination */
	cJSON *tree; /* owned; of taints; NULL: none */
	PLACE_LIST(struct place_taint) taints;
	bool hidden_taints; /* they cannot be read */
	bool leaving; /* in deletion, or with a condition of NODE_ENDING */
};

enum place_change {
	PLACE_DID_PUT,
	PLACE_DID_TAKE,
	PLACE_DID_REMOVE,
	PLACE_DID_DRAIN,
	PLACE_DID_BIND,
	PLACE_DID_MARK,
};

struct place_log {
	uint32_t id; /* of the pod, node or claim */
	place_node node; /* DID_TAKE: where it was */
	uint8_t what, before; /* DID_CORDON, DID_REMOVE: the flag */
};

struct place_order_node {
	double share;
	uint32_t left, right, priority;
	/* The most that is free in the tree below; -INT64_MAX where there is no destination. */
	int64_t cpu, mem, pods;
	/*
	 * Likewise what the real-use cap leaves for one more pod, of the node alone and of the
	 * tree; INT64_MAX without a cap.
	 */
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

/* How much of everything there was before pods were only asked about. */
struct place_known {
	uint32_t classes, counters, keys, claims, dims;
	unsigned int groups, rules, eligibles, namespaces;
	bool selects_namespaces;
};

/* A counter that a known class was told of. */
struct place_asked_link {
	uint32_t class, counter;
};

struct place {
	struct place_options options;
	bool reading, ended; /* a view; and its time is over */
	bool resting; /* the view is without pods, and nothing is known of use */
	struct view *view; /* held */
	bool cap; /* is on, and some node has usage */

	uint32_t node_count;
	struct place_node_info *nodes;
	bool *gone; /* by node; changes are logged */
	bool *cordoned; /* by node */
	int64_t *available; /* node * dims + dim */
	place_sum *used; /* likewise */
	uint32_t *signature; /* by node */
	place_pod *first; /* pod on the node */
	bool *silent; /* under the cap */
	double *contention;
	struct place_node_use *use;
	struct place_rest *rest; /* by node */
	uint32_t signature_count;
	struct place_signature *signatures;
	PLACE_LIST(char *) label_keys; /* owned: of labels that signatures are made of */
	uint32_t keys_signed; /* of them, those in today's signatures */

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
	uint64_t question; /* about claims, so far: see struct place_volume */
	struct place_eligible *eligibles;
	PLACE_LIST(struct place_key) keys;
	PLACE_LIST(struct place_counter) counters;
	uint32_t linked_classes, linked_counters;
	uint32_t classes_loaded; /* how many there were when all was built last */
	bool selects_namespaces; /* some class does */
	bool asking; /* the view is there: what comes now is of pods that are only asked about */
	struct place_known known; /* while asking */
	PLACE_LIST(struct place_asked_link) asked_links;

	PLACE_LIST(struct place_log) log;
	PLACE_LIST(size_t) marks; /* that are open, each above the one before */
	/* What changed of which the log knows nothing any more. */
	PLACE_LIST(place_pod) moved;
	bool moved_nodes, moved_claims;
	bool moved_ghosts; /* drained ones: only a load anew makes them whole */

	PLACE_LIST(place_pod) added; /* by place_add_pod() */
	PLACE_LIST(place_pod) waiting; /* those that the view has on no node */
	PLACE_LIST(place_pod) loose; /* met or left by the update that is under way */

	struct place_tree trees[PLACE_ORDERS];
	place_node last_chosen;
};

/* The first element of a list, if it is one. */
static inline const cJSON *place_first(const cJSON *list)
{
	return list && cJSON_IsArray(list) ? list->child : NULL;
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

/* Of the pod's spec; the class's unknown field is told by the rules. */
struct place_rules *place_rules_intern(struct place *p, const cJSON *spec);
void place_rules_free(struct place_rules *r);
/* FITS, TAINTS or NODE_AFFINITY. */
enum place_filter place_rules_ask(const struct place *p, struct place_rules *r, place_node n);
bool place_rules_select(const struct place *p, const struct place_rules *r, place_node n);
/* Of the features that the rules ask for, those that the node does not declare. */
declared_features place_rules_missing(const struct place *p, const struct place_rules *r,
				      place_node n);
const struct place_taint *place_rules_untolerated(const struct place *p,
						  const struct place_rules *r, place_node n);
void place_node_read_taints(struct place_node_info *n);
/* The newest only, of which all are gone that know of it. */
void place_rules_forget(struct place *p);
/* One node's, after its labels or taints changed. */
void place_sign_node(struct place *p, place_node n);
void place_signatures_free(struct place *p);
/* Makes signatures new where a key was added, and room for verdicts. */
void place_sign_nodes(struct place *p, bool anew);

/* --- place_class.c */

struct place_class *place_class_of(struct place *p, const struct kube_pod *pod);
void place_class_free(struct place_class *c);
/* The newest, which has no pods. */
void place_class_forget(struct place *p);
/* Moves the pod from the class it is of, if any, to the other; NULL: none. */
void place_class_join(struct place *p, struct place_slot *s, struct place_class *c);
/*
 * Of resources that no node offers and nobody asked for before, a pod that is only asked about has
 * one: it refuses everywhere.
 */
void place_shape_read(struct place *p, const struct resources *r, struct place_shape *out);
uint32_t place_dim(struct place *p, const char *name);
/* Keeps the first thing that is not known. */
__attribute__((format(printf, 2, 3))) void place_note(char **note, const char *format, ...);
/* place_class_pods.c: affinity to pods, and spread. */
void place_class_read_pods(struct place *p, struct place_class *c, const cJSON *spec);
/*
 * Whether the list is no longer than max, and it and all below it hold no more than
 * PLACE_VALUES_MAX texts and numbers; else the note tells.
 */
bool place_is_judged(const cJSON *json, uint32_t max, const char *what, char **note,
		     const char *where);
/* Names a member that is not in the list (ended by NULL) and not null. */
bool place_only_members(const cJSON *object, const char *const *names, char **note,
			const char *where);

/* --- place_counter.c */

uint32_t place_key_intern(struct place *p, const char *name);
void place_key_label(struct place *p, struct place_key *k, place_node n);
uint32_t place_counter_intern(struct place *p, enum place_counted kind, struct place_group *g,
			      uint32_t key, struct place_eligible *e);
/* Takes over the group; the one that is kept is returned. */
struct place_group *place_group_intern(struct place *p, struct place_group *g);
void place_group_free(struct place_group *g);
void place_which_fini(struct place_which *w);
struct place_eligible *place_eligible_intern(struct place *p, const struct place_rules *affinity,
					     const struct place_rules *taints, const uint32_t *keys,
					     uint32_t count);
void place_count_pod(struct place *p, const struct place_slot *s, place_node n, int by);
/* What the pods of the class that are somewhere count in that counter. */
void place_count_class(struct place *p, const struct place_class *c, uint32_t counter);
/* The newest of each, of which all are gone that know of it. */
void place_key_forget(struct place *p);
void place_counter_forget(struct place *p);
void place_group_forget(struct place *p);
void place_eligible_forget(struct place *p);
void place_counters_free(struct place *p);
/*
 * Spread that honours taints counts the node no more; false: none did. Pods may come and go before
 * it returns.
 */
bool place_ghost_leave(struct place *p, place_node n);
void place_ghost_return(struct place *p, place_node n);
/*
 * Takes a node without pods out of all domains, by its labels and taints of before, and puts it
 * into those of now.
 */
void place_unlabel_node(struct place *p, place_node n);
void place_label_node(struct place *p, place_node n);

/* --- place_link.c */

struct place_namespace *place_namespace_intern(struct place *p, const char *name);
/* Labels are read again where they are asked for. */
void place_namespaces_reread(struct place *p);
void place_namespaces_free(struct place *p);
bool place_group_matches(const struct place *p, const struct place_group *g,
			 const struct place_class *c);
void place_group_index(struct place *p, struct place_group *g);
/* It is the newest. */
void place_group_unindex(struct place_group *g);
/*
 * Tells new classes and new counters of each other, and counts what is there already. Pods of new
 * classes are nowhere yet.
 */
void place_link(struct place *p);
/* The newest namespace, of which no group and no class is. */
void place_namespace_forget(struct place *p);

/* --- place_asked.c */

void place_asked_begin(struct place *p);
/* All that came since goes; the pods that were asked about are gone. */
void place_asked_forget(struct place *p);

/* --- place_volumes.c */

void place_class_read_volumes(struct place *p, struct place_class *c, const cJSON *spec);
/* Of the volume's labels. */
void place_volume_read_zones(struct place_volume *v, const cJSON *labels);
/* The claim that refuses, or NULL. */
/* The limit that the claims would exceed on the node; NULL: none. *used: without them. */
const struct csi_limit *place_volumes_exceed(struct place *p, const struct place_class *c,
					     place_node n, uint32_t *used);
const struct place_claim *place_volumes_refuse(struct place *p, const struct place_class *c,
					       place_node n);
/* The claim that cannot be judged, or NULL. */
const struct place_claim *place_volumes_unknown(const struct place_class *c);
bool place_claim_is_taken(const struct place_claim *claim);
/* Claims that wait get what they would get there; all of them or none. Logged. */
void place_volumes_bind(struct place *p, const struct place_class *c, place_node n);
void place_volumes_undo(struct place *p, uint32_t claim);

/* --- place_claims.c */

struct place_claim *place_claim_intern(struct place *p, const char *namespace, const char *name);
/* Smallest first. */
void place_claims_sort(struct place_class *c);
/* Nothing is given in the simulation. What is not as it was in the view `before` is read anew. */
void place_claims_follow(struct place *p, const struct view *before);
/* The newest, which nobody uses. */
void place_claim_forget(struct place *p);
void place_claims_free(struct place *p);

/* --- place_use.c */

/* Of a pod that is at home on that node, or PLACE_NONE; vp: NULL where it is not measured. */
void place_use_of_pod(const struct place *p, place_node home, const struct view_pod *vp,
		      const struct kube_pod *record, struct place_use *out);
/* Only how fresh it is. */
void place_use_age(struct place *p, place_node n);
/* What the node uses beyond its pods: nothing where some share the rest (struct place_rest). */
void place_use_base(const struct place *p, place_node n, struct place_node_use *out);
/* That, and how fresh and contended it is; its pods are not on it yet. */
void place_use_of_node(struct place *p, place_node n);
void place_use_add(struct place_node_use *u, const struct place_use *pod, int by);
struct place_use_limits {
	double cpu, cpu_limit, mem, mem_limit; /* millicores, bytes */
	int hour; /* of the peak that is told; -1: the mean and sigma */
};
bool place_use_fits(const struct place *p, place_node n, const struct place_use *pod,
		    struct place_use_limits *told);
/* Whatever uses more than that does not fit; of what uses less place_use_fits() tells. */
void place_use_room(const struct place *p, place_node n, int64_t *cpu, int64_t *mem);

/* --- place_order.c */

void place_trees_free(struct place *p);
void place_trees_touch(struct place *p, place_node n);
double place_share(const struct place *p, place_node n);
/* True: the search may end. */
typedef bool (*place_visit)(void *context, place_node n);
/*
 * Calls back for nodes with room for the shape, in order, from and to a node (cyclic order only)
 * until one is taken.
 */
place_node place_tree_first(struct place *p, enum place_order order,
			    const struct place_shape *shape, const struct place_use *use,
			    place_node from, place_node to, place_visit visit, void *context);

/* --- place_load.c */

/* Of reading a view; once true, always. */
bool place_is_out_of_time(struct place *p);

void place_node_info_read(const struct view_node *v, struct place_node_info *out);
void place_node_info_fini(struct place_node_info *n);
bool place_cap_of(const struct place_options *o, const struct view *v);
/* All but its pods. */
void place_load_node(struct place *p, place_node n);
/* The conditions for which the node takes no pods here, as bits of enum node_lifecycle. */
static inline unsigned int place_ending(const struct place *p, const struct kube_node *node)
{
	unsigned int which = NODE_ENDING | (p->options.plans ? (unsigned int)NODE_MAINTENANCE : 0);

	return node->lifecycle & which;
}

/* Whether the node takes no pods before any place_remove_node(). */
static inline bool place_starts_gone(const struct place *p, place_node n)
{
	const struct kube_node *node = p->nodes[n].object;

	return !node || p->nodes[n].leaving || place_ending(p, node);
}

/* Their slots are loose, and seen. */
void place_meet_node(struct place *p, place_node n);
void place_meet_pending(struct place *p);
/* Loose pods that were not seen go; the others go home. */
void place_settle(struct place *p);
void place_slot_free(struct place *p, struct place_slot *s);
/* Everything of the view that is held. */
void place_load_anew(struct place *p);

/* --- place_change.c: without the log */

void place_do_put(struct place *p, struct place_slot *s, place_node n);
void place_do_take(struct place *p, struct place_slot *s);

#endif
