/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A namespace has the number of its pods and the sums of their requests, as integers of 128 bits
 * and with the number of pods that name each resource: what a pod added is taken away exactly,
 * whatever the amounts, and a resource that nobody names any more is absent again. Pods are
 * immutable, so nothing has to be remembered of them: where a node's part of the model changed, the
 * old list of its pods and the new one are walked together, and only pods in one of them count or
 * stop counting. Pods without a node are a list of the same kind.
 *
 * Use is summed by node and namespace, as integers too, and that share of a node is replaced when
 * it is measured anew. A pod counts with its mean over the longest window that was measured whole,
 * else over what there is; nodes that were last measured too long ago (EXPIRED_NS) do not count.
 *
 * Percentiles of a namespace do not follow from those of its pods. Node stats have the mean of each
 * pod's newest interval. The sum of these means is a step function of time, and its mean over each
 * 30 s of the clock is a bucket. A bucket counts if any pod was measured in at least half of it.
 * The newest 30 buckets are kept in order of time and sorted by value.
 *
 *     |<- 30 s ->|
 *     |   __     |     sum of the newest CPU use of the pods
 *     |__|  |____|
 *     mean = area / time measured
 *
 * Namespaces are kept in a hash, whose list is sorted when the next table is made after one came.
 * A table is one block, made when something changed: rows, then lists of resources, then names.
 */
#include "aggregator/state/join_namespaces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/refs.h"

#define BUCKET_NS      30000000000LL
#define MILLI_MAX      1e12
#define BYTES_MAX      1e15
#define MICRO_OF_MILLI 1000.0

enum { BUCKETS = 30, BUCKETS_MIN = 10 };

/* Of one resource over all pods. */
struct amount {
	__int128 sum;
	uint32_t pods; /* that name it */
};

struct extended {
	char *name; /* owned */
	struct amount amount;
};

struct amounts {
	struct amount of[RESOURCE_STANDARD];
	uint32_t extended_count;
	struct extended *extended; /* owned; sorted by name, each of some pod */
};

struct space {
	char *name; /* owned */
	uint32_t users; /* pods, also those that do not count; without any it is forgotten */
	uint32_t bound_pods, pending_pods;
	struct amounts bound, pending;
	uint32_t pods, latest_pods;
	int64_t cpu_micro, working_set_bytes, latest_micro;
	double area; /* of the bucket under way: micro times ns */
	int64_t seen_ns, since_ns; /* how much of it was measured; until when area counts */
	uint8_t bucket_at; /* the oldest, where the next goes */
	uint8_t known; /* how many of them are */
	float buckets[BUCKETS]; /* millicores; NaN: not known */
	float sorted[BUCKETS]; /* those that are known */
	UT_hash_handle hh; /* by name */
};

struct namespaces {
	struct space *hash; /* owned; sorted by name, but for the last `fresh` */
	size_t fresh;
	size_t empty; /* spaces without pods */
	int64_t now_ns;
	bool changed;
	struct namespace_table *table; /* held: the last; NULL: none */
};

struct namespaces *namespaces_new(void)
{
	return mem_zalloc(1, sizeof(struct namespaces));
}

static void amounts_fini(struct amounts *a)
{
	for (uint32_t i = 0; i < a->extended_count; i++)
		free(a->extended[i].name);
	free(a->extended);
}

static void space_free(struct space *s)
{
	amounts_fini(&s->bound);
	amounts_fini(&s->pending);
	free(s->name);
	free(s);
}

void namespaces_free(struct namespaces *n)
{
	struct space *s, *next;

	if (!n)
		return;
	HASH_RELEASE (n->hash, s, next)
		space_free(s);
	namespace_table_drop(n->table);
	free(n);
}

static struct space *find_or_add(struct namespaces *n, const char *name)
{
	size_t len = strlen(name);
	struct space *s;

	HASH_FIND(hh, n->hash, name, len, s);
	if (s)
		return s;
	s = mem_zalloc(1, sizeof(*s));
	s->name = mem_strdup(name);
	s->since_ns = n->now_ns;
	for (int i = 0; i < BUCKETS; i++)
		s->buckets[i] = NAN;
	HASH_ADD_KEYPTR(hh, n->hash, s->name, len, s);
	n->empty++;
	n->fresh++;
	return s;
}

/* --- requests --------------------------------------------------------------------------------- */

static struct amount *put_extended(struct amounts *a, const char *name)
{
	size_t count = a->extended_count, at;

	a->extended = array_put_name(a->extended, &count, sizeof(*a->extended), name, &at);
	a->extended_count = (uint32_t)count;
	return &a->extended[at].amount;
}

static void drop_unnamed(struct amounts *a)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < a->extended_count; i++) {
		if (a->extended[i].amount.pods)
			a->extended[kept++] = a->extended[i];
		else
			free(a->extended[i].name);
	}
	a->extended_count = kept;
}

static void change_amount(struct amount *a, int64_t by, int sign)
{
	a->sum += (__int128)by * sign;
	a->pods += (uint32_t)sign;
}

static void change_amounts(struct amounts *a, const struct resources *r, int sign)
{
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (resources_has(r, (enum resource_id)id))
			change_amount(&a->of[id], r->of[id], sign);
	for (uint32_t i = 0; i < r->extended_count; i++)
		change_amount(put_extended(a, r->extended[i].name), r->extended[i].amount, sign);
	if (sign < 0 && r->extended_count)
		drop_unnamed(a);
}

/* The pod comes (1) or goes (-1), with a node or without. */
static void change_pod(struct namespaces *n, struct space *s, const struct kube_pod *pod,
		       bool pending, int sign)
{
	n->empty -= s->users == 0;
	s->users += (uint32_t)sign;
	n->empty += s->users == 0;
	n->changed = true;
	if (!kube_pod_is_active(pod))
		return;
	*(pending ? &s->pending_pods : &s->bound_pods) += (uint32_t)sign;
	change_amounts(pending ? &s->pending : &s->bound, kube_pod_requests(pod), sign);
}

/*
 * Pods that lie in one list, or one run of equal namespaces, mostly have the namespace of the one
 * before.
 */
static struct space *space_of(struct namespaces *n, struct space *last, const struct kube_pod *pod)
{
	const char *name = pod->object.namespace;

	return last && strcmp(last->name, name) == 0 ? last : find_or_add(n, name);
}

/* Two lists by namespace and name; what is the same pod in both stays. */
struct pod_lists {
	struct kube_pod *const *before, *const *now;
	size_t before_count, now_count;
	bool pending;
};

static void change_pods(struct namespaces *n, const struct pod_lists *l)
{
	size_t i = 0, k = 0;
	struct space *s = NULL;

	while (i < l->before_count || k < l->now_count) {
		int order = i == l->before_count ? 1 : k == l->now_count ? -1 : 0;

		if (order == 0 && l->before[i] == l->now[k]) {
			i++;
			k++;
			continue;
		}
		if (order == 0)
			order = object_compare(&l->before[i]->object, &l->now[k]->object);
		if (order >= 0) {
			s = space_of(n, s, l->now[k]);
			change_pod(n, s, l->now[k++], l->pending, 1);
		}
		if (order <= 0) {
			s = space_of(n, s, l->before[i]);
			change_pod(n, s, l->before[i++], l->pending, -1);
		}
	}
}

void namespaces_pending(struct namespaces *n, const struct object_table *before,
			const struct object_table *now)
{
	struct pod_lists l = {.pending = true};

	if (before == now)
		return;
	if (before) {
		l.before = (struct kube_pod *const *)before->of;
		l.before_count = before->count;
	}
	if (now) {
		l.now = (struct kube_pod *const *)now->of;
		l.now_count = now->count;
	}
	change_pods(n, &l);
}

/* --- use -------------------------------------------------------------------------------------- */

/* The step function's area up to now; what comes after is another step. */
static void settle_area(struct space *s, int64_t now_ns)
{
	int64_t ns = now_ns - s->since_ns;

	if (ns <= 0)
		return;
	if (s->latest_pods) {
		s->area += (double)s->latest_micro * (double)ns;
		s->seen_ns += ns;
	}
	s->since_ns = now_ns;
}

static void change_use(struct namespaces *n, const struct namespace_share *share, int sign)
{
	struct space *s = share->space;

	settle_area(s, n->now_ns);
	s->pods += (uint32_t)sign * share->pods;
	s->latest_pods += (uint32_t)sign * share->latest_pods;
	s->cpu_micro += sign * share->cpu_micro;
	s->working_set_bytes += sign * share->working_set_bytes;
	s->latest_micro += sign * share->latest_micro;
	n->changed = true;
}

/* The longest window that was measured whole, else the shortest there is. */
static int window_of(const struct pod_usage *u)
{
	for (int w = WINDOW_15M; w >= WINDOW_5M; w--)
		if (pod_usage_covers(u, (enum window)w))
			return w;
	for (int w = WINDOW_5M; w <= WINDOW_15M; w++)
		if (u->cpu_milli[w].samples)
			return w;
	return -1;
}

/* Means are cut at what no machine has, so that sums cannot overflow. */
static int64_t micro_of(double milli)
{
	return (int64_t)(fmin(fmax(milli, 0), MILLI_MAX) * MICRO_OF_MILLI + 0.5);
}

static void measure_pod(const struct pod_stats *use, struct namespace_share *share)
{
	const struct pod_usage *u = &use->usage;
	int w = window_of(u);

	if (u->latest.cpu_milli.known) {
		share->latest_pods++;
		share->latest_micro += micro_of((double)u->latest.cpu_milli.value);
	}
	if (w < 0)
		return;
	share->pods++;
	share->cpu_micro += micro_of((double)u->cpu_milli[w].mean);
	if (u->working_set_bytes[w].samples)
		share->working_set_bytes +=
			(int64_t)fmin(fmax((double)u->working_set_bytes[w].mean, 0), BYTES_MAX);
}

/* Of the share's pods, the first of which is at p. */
static void measure_share(const struct view_pod *p, bool expired, struct namespace_share *share)
{
	share->pods = share->latest_pods = 0;
	share->cpu_micro = share->working_set_bytes = share->latest_micro = 0;
	for (size_t i = 0; !expired && i < share->count; i++)
		if (p[i].use && (!share->ended || kube_pod_is_active(p[i].pod)))
			measure_pod(p[i].use, share);
}

/* When what the stats say does not count any more; INT64_MAX: it never did, or does not now. */
static int64_t expiry_of(const struct node_stats *stats, int64_t now_ns, bool *expired)
{
	enum freshness f = node_stats_freshness(stats, now_ns);

	*expired = f == EXPIRED || f == NEVER;
	return *expired ? INT64_MAX : now_ns - node_stats_age_ns(stats, now_ns) + EXPIRED_NS;
}

static bool same_use(const struct namespace_share *a, const struct namespace_share *b)
{
	return a->pods == b->pods && a->latest_pods == b->latest_pods &&
	       a->cpu_micro == b->cpu_micro && a->working_set_bytes == b->working_set_bytes &&
	       a->latest_micro == b->latest_micro;
}

/* All shares measured anew; they are of the node's model. */
static void measure_node(struct namespaces *n, const struct view_node *node,
			 struct namespace_shares *shares)
{
	const struct view_pod *p;
	bool expired;

	shares->until_ns = expiry_of(node->stats, n->now_ns, &expired);
	if (!shares->count || !node->model)
		return;
	p = node->pods + (node->pod_count - node->model->pod_count);
	for (size_t i = 0; i < shares->count; i++) {
		struct namespace_share *share = &shares->of[i], old = *share;

		measure_share(p, expired, share);
		p += share->count;
		if (same_use(share, &old))
			continue;
		change_use(n, &old, -1);
		change_use(n, share, 1);
	}
}

/* The shares of a model's pods, nothing of which is measured yet. */
static void make_shares(struct namespaces *n, const struct model_node *model,
			struct namespace_shares *shares)
{
	struct space *last = NULL;

	for (size_t i = 0; model && i < model->pod_count; i++) {
		struct space *s = space_of(n, last, model->pods[i]);

		if (s != last)
			ARRAY_ADD(shares->of, shares->count) = (struct namespace_share){.space = s};
		/* The first pod has made one, as no space is NULL. */
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		shares->of[shares->count - 1].count++;
		shares->of[shares->count - 1].ended += !kube_pod_is_active(model->pods[i]);
		last = s;
	}
}

static void drop_shares(struct namespaces *n, struct namespace_shares *shares)
{
	for (size_t i = 0; i < shares->count; i++)
		if (shares->of[i].pods || shares->of[i].latest_pods)
			change_use(n, &shares->of[i], -1);
	free(shares->of);
	shares->of = NULL;
	shares->count = 0;
	shares->until_ns = INT64_MAX;
}

void namespaces_change(struct namespaces *n, const struct view_node *before,
		       const struct view_node *now, struct namespace_shares *shares)
{
	const struct model_node *old = before ? before->model : NULL;
	const struct model_node *model = now ? now->model : NULL;
	struct pod_lists l = {.pending = false};

	if (old)
		l.before = old->pods, l.before_count = old->pod_count;
	if (model)
		l.now = model->pods, l.now_count = model->pod_count;
	if (old != model) {
		change_pods(n, &l);
		drop_shares(n, shares);
		make_shares(n, model, shares);
	}
	if (now)
		measure_node(n, now, shares);
}

void namespaces_expire(struct namespaces *n, const struct view_node *node,
		       struct namespace_shares *shares)
{
	if (n->now_ns > shares->until_ns)
		measure_node(n, node, shares);
}

/* --- buckets ---------------------------------------------------------------------------------- */

static void remove_sorted(struct space *s, float value)
{
	size_t at = 0;

	while (s->sorted[at] != value)
		at++;
	s->known--;
	memmove(s->sorted + at, s->sorted + at + 1, (s->known - at) * sizeof(s->sorted[0]));
}

static void insert_sorted(struct space *s, float value)
{
	size_t at = s->known++;

	for (; at > 0 && s->sorted[at - 1] > value; at--)
		s->sorted[at] = s->sorted[at - 1];
	s->sorted[at] = value;
}

/* In place of the oldest. NaN: not known. */
static void push_bucket(struct space *s, float value)
{
	float *at = &s->buckets[s->bucket_at];

	if (!isnan(*at))
		remove_sorted(s, *at);
	if (!isnan(value))
		insert_sorted(s, value);
	*at = value;
	s->bucket_at = (uint8_t)((s->bucket_at + 1) % BUCKETS);
}

static void end_bucket(struct space *s, int64_t end_ns)
{
	float mean = NAN;

	settle_area(s, end_ns);
	if (s->seen_ns >= BUCKET_NS / 2)
		mean = (float)(s->area / (double)s->seen_ns / MICRO_OF_MILLI);
	push_bucket(s, mean);
	s->area = 0;
	s->seen_ns = 0;
}

/*
 * Nobody watched in between: what was used then is not known, in this bucket and those that end
 * before.
 */
static void leap(struct namespaces *n, int64_t now_ns)
{
	for (struct space *s = n->hash; s; s = s->hh.next) {
		s->area = 0;
		s->seen_ns = 0;
		s->since_ns = now_ns;
	}
}

bool namespaces_advance(struct namespaces *n, int64_t now_ns)
{
	int64_t at = n->now_ns / BUCKET_NS, to = now_ns / BUCKET_NS;
	bool ended = to != at;

	if (now_ns < n->now_ns || now_ns - n->now_ns > EXPIRED_NS)
		leap(n, now_ns);
	if (to - at > BUCKETS)
		at = to - BUCKETS;
	for (; at < to; at++)
		for (struct space *s = n->hash; s; s = s->hh.next)
			end_bucket(s, (at + 1) * BUCKET_NS);
	n->changed |= ended;
	n->now_ns = now_ns;
	return ended;
}

/* The smallest value that at least that share of the buckets does not exceed. */
static double percentile(const struct space *s, double share)
{
	if (s->known < BUCKETS_MIN)
		return (double)NAN;
	return (double)s->sorted[(size_t)ceil(share * s->known) - 1];
}

/* --- tables ----------------------------------------------------------------------------------- */

static int compare_spaces(const struct space *a, const struct space *b)
{
	return strcmp(a->name, b->name);
}

/* Forgets spaces without pods, and sorts the list where some came. */
static void settle(struct namespaces *n)
{
	struct space *s, *next;

	HASH_ITER(hh, n->hash, s, next)
	{
		if (s->users)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-*): uthash keeps the list, and it is in the hash */
		HASH_DEL(n->hash, s);
		space_free(s);
	}
	if (n->fresh)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
		HASH_SORT(n->hash, compare_spaces);
	n->fresh = n->empty = 0;
}

/* The memory behind the rows. */
struct tail {
	struct resource_extended *lists;
	char *text;
};

static void fill_resources(struct resources *r, const struct amounts *a, struct tail *t)
{
	*r = RESOURCES_NONE;
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (a->of[id].pods)
			resources_set(r, (enum resource_id)id, int_clamp(a->of[id].sum));
	if (!a->extended_count)
		return;
	r->extended = t->lists;
	r->extended_count = a->extended_count;
	t->lists += a->extended_count;
	for (uint32_t i = 0; i < a->extended_count; i++) {
		r->extended[i].name = mem_put_text(&t->text, a->extended[i].name);
		r->extended[i].amount = int_clamp(a->extended[i].amount.sum);
	}
}

static void fill(struct namespace_sums *row, const struct space *s, struct tail *t)
{
	row->name = mem_put_text(&t->text, s->name);
	row->bound_pods = s->bound_pods;
	row->pending_pods = s->pending_pods;
	fill_resources(&row->bound, &s->bound, t);
	fill_resources(&row->pending, &s->pending, t);
	row->use.pods = s->pods;
	row->use.cpu_mean_milli = (double)s->cpu_micro / MICRO_OF_MILLI;
	row->use.working_set_bytes = (double)s->working_set_bytes;
	row->use.cpu_p50_milli = percentile(s, 0.5);
	row->use.cpu_p95_milli = percentile(s, 0.95);
}

/* How much lies behind the rows: lists, and bytes of text. */
static void measure_tail(const struct amounts *a, size_t *lists, size_t *text)
{
	*lists += a->extended_count;
	for (uint32_t i = 0; i < a->extended_count; i++)
		*text += strlen(a->extended[i].name) + 1;
}

static struct namespace_table *make_table(const struct namespaces *n)
{
	size_t count = HASH_COUNT(n->hash), lists = 0, text = 0;
	struct namespace_table *t;
	struct tail tail;

	if (!count)
		return NULL;
	for (const struct space *s = n->hash; s; s = s->hh.next) {
		text += strlen(s->name) + 1;
		measure_tail(&s->bound, &lists, &text);
		measure_tail(&s->pending, &lists, &text);
	}
	t = mem_alloc(sizeof(*t) + count * sizeof(t->of[0]) +
		      lists * sizeof(struct resource_extended) + text);
	atomic_init(&t->users, 1);
	t->count = 0;
	tail.lists = (struct resource_extended *)(t->of + count);
	tail.text = (char *)(tail.lists + lists);
	for (const struct space *s = n->hash; s; s = s->hh.next)
		fill(&t->of[t->count++], s, &tail);
	return t;
}

struct namespace_table *namespaces_table(struct namespaces *n)
{
	if (n->changed) {
		if (n->fresh || n->empty)
			settle(n);
		namespace_table_drop(n->table);
		n->table = make_table(n);
		n->changed = false;
	}
	if (n->table)
		refs_hold(&n->table->users);
	return n->table;
}

void namespace_table_drop(struct namespace_table *t)
{
	if (t && refs_drop(&t->users))
		free(t);
}
