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

/* Budgets that select pods of a template in a namespace. */
struct match {
	const struct pod_template *template; /* key; borrowed */
	struct match *next; /* of the template in another namespace */
	const char *namespace; /* borrowed from a pod */
	uint32_t *which; /* owned */
	size_t count;
	UT_hash_handle hh;
};

/* Budgets of a namespace that require the same label, or none by equality. */
struct bucket {
	char *key; /* owned */
	uint32_t *which; /* owned */
	size_t count;
	UT_hash_handle hh;
};

struct drain_pdbs {
	enum drain_variant variant;
	size_t count;
	const struct kube_pdb **budgets; /* owned array of borrowed records */
	int64_t *remaining, *asked; /* asked: scratch of drain_pdbs_ask() */
	struct bucket *buckets;
	struct match *matches;
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

/*
 * label NULL: of budgets that require none. With the length, two labels of a pod never have one
 * bucket, whatever characters a snapshot has in them.
 */
static char *bucket_key(const char *namespace, const struct label *label)
{
	return label ? mem_printf("%s/%zu:%s=%s", namespace, strlen(label->key), label->key,
				  label->value)
		     : mem_strdup(namespace);
}

static void add_budget(struct drain_pdbs *p, uint32_t which)
{
	const struct kube_pdb *budget = p->budgets[which];
	struct label label;
	struct bucket *b;
	char *key;

	if (!budget->selector)
		return;
	key = bucket_key(budget->object.namespace,
			 selector_find_required(budget->selector, &label) ? &label : NULL);
	HASH_FIND_STR(p->buckets, key, b);
	if (b)
		free(key);
	else
		HASH_NEW(p->buckets, b, key, key);
	ARRAY_ADD(b->which, b->count) = which;
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
	for (size_t i = 0; i < count; i++) {
		p->budgets[i] = (const struct kube_pdb *)budgets[i];
		p->remaining[i] = variant == DRAIN_UPSTREAM ? p->budgets[i]->disruptions_allowed
							    : allowed_by(p->budgets[i]);
		add_budget(p, (uint32_t)i);
	}
	return p;
}

void drain_pdbs_free(struct drain_pdbs *p)
{
	struct bucket *b, *next_bucket;
	struct match *m, *next_match;

	if (!p)
		return;
	HASH_RELEASE (p->buckets, b, next_bucket) {
		free(b->key);
		free(b->which);
		free(b);
	}
	HASH_RELEASE (p->matches, m, next_match) {
		for (struct match *of = m, *next; of; of = next) {
			next = of->next;
			free(of->which);
			free(of);
		}
	}
	free(p->budgets);
	free(p->remaining);
	free(p->asked);
	free(p);
}

static void match_bucket(const struct drain_pdbs *p, const struct label *label, struct match *m)
{
	char *key = bucket_key(m->namespace, label);
	struct bucket *b;

	HASH_FIND_STR(p->buckets, key, b);
	free(key);
	for (size_t i = 0; b && i < b->count; i++) {
		const struct kube_pdb *budget = p->budgets[b->which[i]];

		if (!selector_matches(budget->selector, &m->template->labels))
			continue;
		ARRAY_ADD(m->which, m->count) = b->which[i];
	}
}

static struct match *new_match(const struct drain_pdbs *p, const struct kube_pod *pod)
{
	const struct labels *labels = &pod->template->labels;
	struct match *m = mem_zalloc(1, sizeof(*m));

	m->template = pod->template;
	m->namespace = pod->object.namespace;
	match_bucket(p, NULL, m);
	for (size_t i = 0; i < labels->count; i++)
		match_bucket(p, &labels->of[i], m);
	array_sort(m->which, m->count, sizeof(*m->which), array_compare_uint32);
	return m;
}

size_t drain_pdbs_match(struct drain_pdbs *p, const struct kube_pod *pod, const uint32_t **which)
{
	struct match *first, *m;

	if (!p->count)
		return 0;
	HASH_FIND_PTR(p->matches, &pod->template, first);
	for (m = first; m && strcmp(m->namespace, pod->object.namespace) != 0;)
		m = m->next;
	if (!m) {
		m = new_match(p, pod);
		if (first) {
			m->next = first->next;
			first->next = m;
		} else {
			HASH_ADD_PTR(p->matches, template, m);
		}
	}
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

static bool costs(const struct drain_pdbs *p, const struct kube_pod *pod, uint32_t which)
{
	const struct kube_pdb *b = p->budgets[which];

	return p->variant == DRAIN_UPSTREAM || pod->ready || b->stale ||
	       !(b->frees_unhealthy ||
		 (b->desired_healthy > 0 && b->current_healthy >= b->desired_healthy));
}

/* The eviction API deletes other pods without a budget. */
static bool is_asked(const struct drain_pdbs *p, const struct kube_pod *pod)
{
	return p->variant == DRAIN_UPSTREAM ||
	       (!pod->deletion_ns && pod->phase != POD_PENDING && kube_pod_is_active(pod));
}

/* --- asking */

static void refuse(const struct drain_pdbs *p, const struct kube_pod *pod, uint32_t which,
		   enum drain_reason reason, struct drain_pdb_verdict *v)
{
	*v = (struct drain_pdb_verdict){
		.reason = reason,
		.pod = pod,
		.budget = p->budgets[which],
		.remaining = p->remaining[which],
	};
}

/* Refuses the pod, or lets it wait, if a budget does not allow all asked so far. */
static void ask_pod(struct drain_pdbs *p, const struct kube_pod *pod, struct drain_pdb_verdict *v)
{
	const uint32_t *which;
	size_t count = drain_pdbs_match(p, pod, &which);

	if (count > 1 && p->variant == DRAIN_CORRECTED) {
		refuse(p, pod, which[1], DRAIN_SEVERAL_PDBS, v);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		int64_t left = p->remaining[which[i]];

		if (costs(p, pod, which[i]) && left < ++p->asked[which[i]] &&
		    v->reason == DRAIN_NONE)
			refuse(p, pod, which[i], left < 1 ? DRAIN_NOT_ENOUGH_PDB : DRAIN_NONE, v);
	}
}

void drain_pdbs_ask(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count,
		    struct drain_pdb_verdict *v)
{
	*v = (struct drain_pdb_verdict){.reason = DRAIN_NONE, .in_parallel = true};
	for (size_t i = 0; i < count && v->reason == DRAIN_NONE; i++)
		if (is_asked(p, pods[i]))
			ask_pod(p, pods[i], v);
	for (size_t i = 0; i < count; i++) {
		const uint32_t *which;
		size_t matches = drain_pdbs_match(p, pods[i], &which);

		for (size_t k = 0; k < matches; k++)
			p->asked[which[k]] = 0;
	}
}

/* --- taking */

static void charge(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count,
		   int64_t by)
{
	for (size_t i = 0; i < count; i++) {
		const uint32_t *which = NULL;
		size_t matches = is_asked(p, pods[i]) ? drain_pdbs_match(p, pods[i], &which) : 0;

		for (size_t k = 0; k < matches; k++)
			if (costs(p, pods[i], which[k]))
				p->remaining[which[k]] -= by;
	}
}

void drain_pdbs_take(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count)
{
	charge(p, pods, count, 1);
}

void drain_pdbs_give(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count)
{
	charge(p, pods, count, -1);
}

void drain_pdb_tell(const struct drain_pdb_verdict *v, struct error *error)
{
	const struct kube_pdb *b = v->budget;
	int64_t remaining = int_max(0, v->remaining);

	if (v->reason == DRAIN_SEVERAL_PDBS)
		error_set(error, "more than one PodDisruptionBudget selects it, also %s/%s",
			  b->object.namespace, b->object.name);
	else
		error_set(error,
			  "PodDisruptionBudget %s/%s allows %" PRId64 " more %s: %" PRId32
			  " %s healthy, and %" PRId32 " must be",
			  b->object.namespace, b->object.name, remaining,
			  drain_plural(remaining, "disruption", "disruptions"), b->current_healthy,
			  drain_plural(b->current_healthy, "pod is", "pods are"),
			  b->desired_healthy);
}
