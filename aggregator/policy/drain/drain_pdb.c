/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which budgets match is a matter of namespace and labels, and so of namespace and template: it is asked once for each pair, and kept. The
 * cost of asking and taking is then in the pods and their few budgets, however many budgets a cluster has.
 */
#include "aggregator/policy/drain/drain_pdb.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "shared/mem.h"

/* Budgets of a namespace and a template. */
struct match_key {
	const struct pod_template *template;
	const char *namespace; /* of the first budget there: the same text, the same address */
};

struct match {
	struct match_key key;
	uint32_t *which; /* owned */
	size_t count;
	UT_hash_handle hh;
};

/* Budgets of one namespace stand together. */
struct home {
	const char *namespace; /* borrowed */
	uint32_t *which; /* owned */
	size_t count;
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
	struct home *homes;
	struct match *matches;
	struct taken *taken;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Fields of health are all 0 where the status was never written, or a dump was made by hand. */
static int64_t allowed_by(const struct kube_pdb *b)
{
	bool healthy_known = b->expected_pods || b->current_healthy || b->desired_healthy;
	int64_t beyond = (int64_t)b->current_healthy - b->desired_healthy;
	int64_t allowed = b->disruptions_allowed;

	if (b->stale)
		return 0;
	if (healthy_known)
		allowed = least(allowed, beyond);
	return allowed < 0 ? 0 : allowed;
}

static void add_home(struct drain_pdbs *p, uint32_t which)
{
	const char *namespace = p->budgets[which]->object.namespace;
	struct home *h;

	HASH_FIND_STR(p->homes, namespace, h);
	if (!h) {
		h = mem_zalloc(1, sizeof(*h));
		h->namespace = namespace;
		HASH_ADD_KEYPTR(hh, p->homes, h->namespace, strlen(h->namespace), h);
	}
	h->which = mem_realloc(h->which, (h->count + 1) * sizeof(*h->which));
	h->which[h->count++] = which;
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
		add_home(p, (uint32_t)i);
	}
	return p;
}

/* Elements stay linked when their table is cleared. */
static void free_tables(struct drain_pdbs *p)
{
	struct home *h = p->homes, *next_home;
	struct match *m = p->matches, *next_match;
	struct taken *t = p->taken, *next_taken;

	HASH_CLEAR(hh, p->homes);
	HASH_CLEAR(hh, p->matches);
	HASH_CLEAR(hh, p->taken);
	for (; h; h = next_home) {
		next_home = h->hh.next;
		free(h->which);
		free(h);
	}
	for (; m; m = next_match) {
		next_match = m->hh.next;
		free(m->which);
		free(m);
	}
	for (; t; t = next_taken) {
		next_taken = t->hh.next;
		free(t);
	}
}

void drain_pdbs_free(struct drain_pdbs *p)
{
	if (!p)
		return;
	free_tables(p);
	free(p->budgets);
	free(p->remaining);
	free(p->asked);
	free(p);
}

static struct match *new_match(struct drain_pdbs *p, const struct home *h,
			       const struct match_key *key)
{
	struct match *m = mem_zalloc(1, sizeof(*m));

	m->key = *key;
	m->which = mem_zalloc(h->count, sizeof(*m->which));
	for (size_t i = 0; i < h->count; i++) {
		const struct kube_pdb *b = p->budgets[h->which[i]];

		if (b->selector && selector_matches(b->selector, &key->template->labels))
			m->which[m->count++] = h->which[i];
	}
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

/* The API deletes such a pod without looking for budgets. */
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

/* Whether the pod's budgets are to be asked at all. */
static bool is_asked(const struct drain_pdbs *p, const struct kube_pod *pod)
{
	return p->variant == DRAIN_UPSTREAM || (!is_ignored(pod) && !find_taken(p, pod));
}

/* --- asking */

/* Fewer than that many of a budget are there: the pod waits for its turn, or is refused where there is none. */
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
