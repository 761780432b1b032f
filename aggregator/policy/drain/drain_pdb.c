/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budgets of a namespace and template are matched once and kept. A template is compared only
 * with budgets that require one of its labels, and with those that require no label by equality.
 */
#include "aggregator/policy/drain/drain_pdb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* Budgets of a namespace and a template. */
struct match_key {
	const struct pod_template *template;
	const char *namespace; /* address of the first budget's text, unique by text */
};

struct match {
	struct match_key key;
	uint32_t *which; /* owned */
	size_t count;
	UT_hash_handle hh;
};

/* A budget and a label that all of its pods have; without a key where none is known. */
struct resident {
	struct label label; /* borrowed */
	uint32_t which;
};

/* Budgets of one namespace, without those that select nothing. */
struct home {
	const char *namespace; /* borrowed */
	struct resident *of; /* owned; by label, those without one first; then by number */
	size_t count, room;
	UT_hash_handle hh;
};

struct taken {
	const struct kube_pod *pod;
	UT_hash_handle hh;
};

struct drain_pdbs {
	enum drain_variant variant;
	size_t count;
	const struct kube_pdb **budgets; /* owned array of borrowed records */
	int64_t *remaining, *asked; /* asked: scratch of drain_pdbs_ask() */
	uint32_t *matching; /* scratch of new_match() */
	struct home *homes;
	struct match *matches;
	struct taken *taken;
};

/* All health fields are 0 before the first status, and in dumps made by hand. */
static int64_t allowed_by(const struct kube_pdb *b)
{
	bool healthy_known = b->expected_pods || b->current_healthy || b->desired_healthy;
	int64_t beyond = (int64_t)b->current_healthy - b->desired_healthy;
	int64_t allowed = b->disruptions_allowed;

	if (b->stale)
		return 0;
	if (healthy_known)
		allowed = int_min(allowed, beyond);
	return allowed < 0 ? 0 : allowed;
}

static void add_home(struct drain_pdbs *p, uint32_t which)
{
	const char *namespace = p->budgets[which]->object.namespace;
	const struct selector *selector = p->budgets[which]->selector;
	struct resident now = {.which = which};
	struct home *h;

	HASH_FIND_STR(p->homes, namespace, h);
	if (!h) {
		h = mem_zalloc(1, sizeof(*h));
		h->namespace = namespace;
		HASH_ADD_KEYPTR(hh, p->homes, h->namespace, strlen(h->namespace), h);
	}
	if (!selector)
		return;
	h->of = mem_grow(h->of, h->count, &h->room, sizeof(*h->of));
	selector_find_required(selector, &now.label);
	h->of[h->count++] = now;
}

static int compare_labels(const struct label *a, const struct label *b)
{
	int order;

	if (!a->key || !b->key)
		return (a->key != NULL) - (b->key != NULL);
	order = strcmp(a->key, b->key);
	return order ? order : strcmp(a->value, b->value);
}

static int compare_residents(const void *left, const void *right)
{
	const struct resident *a = left, *b = right;
	int order = compare_labels(&a->label, &b->label);

	return order ? order : (a->which > b->which) - (a->which < b->which);
}

struct drain_pdbs *drain_pdbs_new(enum drain_variant variant, struct object *const *budgets,
				  size_t count)
{
	struct drain_pdbs *p = mem_zalloc(1, sizeof(*p));

	p->variant = variant;
	p->count = count;
	p->budgets = mem_zalloc(count + 1, sizeof(struct kube_pdb *));
	p->remaining = mem_zalloc(count + 1, sizeof(*p->remaining));
	p->asked = mem_zalloc(count + 1, sizeof(*p->asked));
	p->matching = mem_zalloc(count + 1, sizeof(*p->matching));
	for (size_t i = 0; i < count; i++) {
		p->budgets[i] = (const struct kube_pdb *)budgets[i];
		p->remaining[i] = variant == DRAIN_UPSTREAM ? p->budgets[i]->disruptions_allowed
							    : allowed_by(p->budgets[i]);
		add_home(p, (uint32_t)i);
	}
	for (struct home *h = p->homes; h; h = h->hh.next)
		if (h->count)
			qsort(h->of, h->count, sizeof(*h->of), compare_residents);
	return p;
}

void drain_pdbs_free(struct drain_pdbs *p)
{
	struct home *h, *next_home;
	struct match *m, *next_match;
	struct taken *t, *next_taken;

	if (!p)
		return;
	HASH_RELEASE (p->homes, h, next_home) {
		free(h->of);
		free(h);
	}
	HASH_RELEASE (p->matches, m, next_match) {
		free(m->which);
		free(m);
	}
	HASH_RELEASE (p->taken, t, next_taken)
		free(t);
	free(p->budgets);
	free(p->remaining);
	free(p->asked);
	free(p->matching);
	free(p);
}

static int compare_resident(const void *label, const void *resident)
{
	return compare_labels(label, &((const struct resident *)resident)->label);
}

static void match_residents(const struct drain_pdbs *p, const struct home *h,
			    const struct label *label, struct match *m)
{
	const struct labels *labels = &m->key.template->labels;

	for (size_t i = array_lower_bound(label, h->of, h->count, sizeof(*h->of), compare_resident);
	     i < h->count && compare_labels(&h->of[i].label, label) == 0; i++)
		if (selector_matches(p->budgets[h->of[i].which]->selector, labels))
			m->which[m->count++] = h->of[i].which;
}

static int compare_numbers(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static struct match *new_match(struct drain_pdbs *p, const struct home *h,
			       const struct match_key *key)
{
	const struct labels *labels = &key->template->labels;
	const struct label none = {NULL, NULL};
	struct match *m = mem_zalloc(1, sizeof(*m));

	m->key = *key;
	m->which = p->matching;
	match_residents(p, h, &none, m);
	for (size_t i = 0; i < labels->count; i++)
		match_residents(p, h, &labels->of[i], m);
	qsort(m->which, m->count, sizeof(*m->which), compare_numbers);
	m->which = mem_zalloc(m->count + 1, sizeof(*m->which));
	memcpy(m->which, p->matching, m->count * sizeof(*m->which));
	HASH_ADD(hh, p->matches, key, sizeof(m->key), m);
	return m;
}

size_t drain_pdbs_match(struct drain_pdbs *p, const struct kube_pod *pod, const uint32_t **which)
{
	struct match_key key;
	struct match *m;
	struct home *h;

	HASH_FIND_STR(p->homes, pod->object.namespace, h);
	if (!h)
		return 0;
	memset(&key, 0, sizeof(key));
	key.template = pod->template;
	key.namespace = h->namespace;
	HASH_FIND(hh, p->matches, &key, sizeof(key), m);
	if (!m)
		m = new_match(p, h, &key);
	*which = m->which;
	return m->count;
}

const struct kube_pdb *drain_pdbs_at(const struct drain_pdbs *p, uint32_t which)
{
	return p->budgets[which];
}

int64_t drain_pdbs_remaining(const struct drain_pdbs *p, uint32_t which)
{
	return p->remaining[which];
}

/* --- what a pod costs */

static struct taken *find_taken(const struct drain_pdbs *p, const struct kube_pod *pod)
{
	struct taken *t;

	HASH_FIND_PTR(p->taken, &pod, t);
	return t;
}

/* The eviction API deletes such a pod without a budget. */
static bool is_ignored(const struct kube_pod *pod)
{
	return pod->deletion_ns != 0 || pod->phase == POD_PENDING || pod->phase == POD_SUCCEEDED ||
	       pod->phase == POD_FAILED;
}

static bool is_free(const struct kube_pdb *b, const struct kube_pod *pod)
{
	if (pod->ready || b->stale)
		return false;
	return b->frees_unhealthy ||
	       (b->desired_healthy > 0 && b->current_healthy >= b->desired_healthy);
}

static bool costs(const struct drain_pdbs *p, const struct kube_pod *pod, uint32_t which)
{
	return p->variant == DRAIN_UPSTREAM || !is_free(p->budgets[which], pod);
}

static bool is_asked(const struct drain_pdbs *p, const struct kube_pod *pod)
{
	return p->variant == DRAIN_UPSTREAM || (!is_ignored(pod) && !find_taken(p, pod));
}

/* --- asking */

/* Refuses the pod, or lets it wait, if the budget does not allow all asked so far. */
static void weigh(const struct drain_pdbs *p, const struct kube_pod *pod, uint32_t which,
		  struct drain_pdb_verdict *v)
{
	if (p->remaining[which] >= p->asked[which] || v->reason != DRAIN_NONE)
		return;
	if (p->remaining[which] < 1)
		v->reason = DRAIN_NOT_ENOUGH_PDB;
	v->in_parallel = false;
	v->pod = pod;
	v->budget = p->budgets[which];
	v->remaining = p->remaining[which];
}

static void ask_pod(struct drain_pdbs *p, const struct kube_pod *pod, struct drain_pdb_verdict *v)
{
	const uint32_t *which;
	size_t count = drain_pdbs_match(p, pod, &which);

	if (count > 1 && p->variant == DRAIN_CORRECTED) {
		v->reason = DRAIN_SEVERAL_PDBS;
		v->in_parallel = false;
		v->pod = pod;
		v->budget = p->budgets[which[1]];
		v->remaining = p->remaining[which[1]];
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (!costs(p, pod, which[i]))
			continue;
		p->asked[which[i]]++;
		weigh(p, pod, which[i], v);
	}
}

static void forget_asked(struct drain_pdbs *p, const struct kube_pod *pod)
{
	const uint32_t *which;
	size_t count = drain_pdbs_match(p, pod, &which);

	for (size_t i = 0; i < count; i++)
		p->asked[which[i]] = 0;
}

void drain_pdbs_ask(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count,
		    struct drain_pdb_verdict *v)
{
	*v = (struct drain_pdb_verdict){.reason = DRAIN_NONE, .in_parallel = true};
	for (size_t i = 0; i < count && v->reason == DRAIN_NONE; i++)
		if (is_asked(p, pods[i]))
			ask_pod(p, pods[i], v);
	for (size_t i = 0; i < count; i++)
		forget_asked(p, pods[i]);
}

/* --- taking */

static void charge(struct drain_pdbs *p, const struct kube_pod *pod, int64_t by)
{
	const uint32_t *which;
	size_t count = drain_pdbs_match(p, pod, &which);

	for (size_t i = 0; i < count; i++)
		if (costs(p, pod, which[i]))
			p->remaining[which[i]] -= by;
}

static void take_once(struct drain_pdbs *p, const struct kube_pod *pod)
{
	struct taken *t;

	if (!is_asked(p, pod))
		return;
	t = mem_zalloc(1, sizeof(*t));
	t->pod = pod;
	HASH_ADD_PTR(p->taken, pod, t);
	charge(p, pod, 1);
}

void drain_pdbs_take(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (p->variant == DRAIN_UPSTREAM)
			charge(p, pods[i], 1);
		else
			take_once(p, pods[i]);
	}
}

static void give_once(struct drain_pdbs *p, const struct kube_pod *pod)
{
	struct taken *t = find_taken(p, pod);

	if (!t)
		return;
	HASH_DEL(p->taken, t);
	free(t);
	charge(p, pod, -1);
}

void drain_pdbs_give(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (p->variant == DRAIN_UPSTREAM)
			charge(p, pods[i], -1);
		else
			give_once(p, pods[i]);
	}
}

void drain_pdb_tell(const struct drain_pdb_verdict *v, struct error *error)
{
	const struct kube_pdb *b = v->budget;

	if (v->reason == DRAIN_SEVERAL_PDBS)
		error_set(error, "more than one PodDisruptionBudget selects it, also %s/%s",
			  b->object.namespace, b->object.name);
	else
		error_set(error,
			  "PodDisruptionBudget %s/%s allows %" PRId64 " more %s: %" PRId32
			  " %s healthy, and %" PRId32 " must be",
			  b->object.namespace, b->object.name, v->remaining,
			  drain_plural(v->remaining, "disruption", "disruptions"),
			  b->current_healthy,
			  drain_plural(b->current_healthy, "pod is", "pods are"),
			  b->desired_healthy);
}
