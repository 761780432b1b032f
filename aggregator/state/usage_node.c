/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's references are an array sorted by number, and so are the entries of an interval:
 * checking and applying are merges of the two. References end with the run; windows are found again
 * by key (pod UID or name), so an agent's restart keeps every history. A workload that left keeps
 * its windows until nothing of it is in them, if it has a name that the next may have again, and
 * else for a moment: it may be back in the next run, or in the next interval.
 */
#include "aggregator/state/usage_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/body.h"
#include "shared/mem.h"

enum { USES_STEP = 16, PODS_STEP = 8 };

struct usage_node *usage_node_new(const char *name, int64_t now_ns)
{
	size_t len = strlen(name) + 1;
	struct usage_node *n = mem_zalloc(1, sizeof(*n) + len);

	memcpy(n->name, name, len);
	n->begun_ns = now_ns;
	n->forget_ns = INT64_MAX;
	n->windows = node_windows_new();
	return n;
}

/* It is to be taken out of the node's. */
static void free_pod(struct usage_node *n, struct usage_pod *pod)
{
	pod_windows_free(pod->windows);
	pod_hours_leave(&pod->hours, &n->peaks);
	free(pod);
}

static void drop_refs(struct usage_node *n)
{
	for (size_t i = 0; i < n->ref_count; i++) {
		usage_ref_drop_news(&n->refs[i]);
		demand_release(n->refs[i].demand);
	}
	free(n->refs);
	n->refs = NULL;
	n->ref_count = 0;
}

void usage_node_free(struct usage_node *n)
{
	if (!n)
		return;
	drop_refs(n);
	for (size_t i = 0; i < n->pod_count; i++)
		free_pod(n, n->pods[i]);
	free(n->pods);
	node_peaks_drop(n->peaks);
	node_windows_free(n->windows);
	free(n->uses);
	free(n->order.refs);
	stats_names_drop(n->names);
	node_stats_drop(n->stats);
	node_stats_drop(n->old_stats);
	free(n);
}

const struct usage_ref *usage_node_find_ref(const struct usage_node *n, uint32_t ref)
{
	size_t at = array_lower_bound(&ref, n->refs, n->ref_count, sizeof(*n->refs),
				      array_compare_uint32);

	return at < n->ref_count && n->refs[at].ref == ref ? &n->refs[at] : NULL;
}

bool usage_node_runs(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN])
{
	return n && n->has_run && memcmp(n->run, run, FRAME_RUN_LEN) == 0;
}

bool usage_mark_is(const struct usage_mark *m, const uint8_t run[FRAME_RUN_LEN])
{
	return m->known && memcmp(m->run, run, FRAME_RUN_LEN) == 0;
}

static bool has_windows(const struct entity *e)
{
	return e->kind != ENTITY_CONTAINER || e->parent == 0;
}

bool usage_node_knows(const struct usage_node *n, bool same_run, const struct interval *interval,
		      uint32_t *missing, size_t *pods)
{
	size_t known = same_run ? n->ref_count : 0, at = 0;

	*pods = 0;
	for (size_t i = 0; i < interval->entry_count; i++) {
		const struct entry *e = &interval->entries[i];

		while (at < known && n->refs[at].ref < e->ref)
			at++;
		if (e->entity) {
			*pods += has_windows(e->entity);
		} else if (at < known && n->refs[at].ref == e->ref) {
			*pods += n->refs[at].pod != NULL;
		} else {
			*missing = e->ref;
			return false;
		}
	}
	return true;
}

static int compare_key(const void *key, const void *pod)
{
	return strcmp(key, (*(struct usage_pod *const *)pod)->key);
}

/* Where the pod is, or would be inserted. */
static size_t pod_place(const struct usage_node *n, const char *key, bool *found)
{
	size_t at = array_lower_bound(key, n->pods, n->pod_count, sizeof(struct usage_pod *),
				      compare_key);

	*found = at < n->pod_count && strcmp(n->pods[at]->key, key) == 0;
	return at;
}

const struct usage_pod *usage_node_find_pod(const struct usage_node *n, const struct pod_stats *p)
{
	bool by_uid = p->kind == ENTITY_POD && p->uid[0], found;
	size_t at = pod_place(n, by_uid ? p->uid : p->name, &found);

	return found ? n->pods[at] : NULL;
}

static void insert_pod(struct usage_node *n, size_t at, struct usage_pod *pod)
{
	if (n->pod_count == n->pod_room) {
		n->pod_room += n->pod_room / 4 + PODS_STEP;
		n->pods = mem_realloc(n->pods, n->pod_room * sizeof(struct usage_pod *));
	}
	memmove(&n->pods[at + 1], &n->pods[at], (n->pod_count - at) * sizeof(struct usage_pod *));
	n->pods[at] = pod;
	n->pod_count++;
}

static struct usage_pod *find_or_add_pod(struct usage_node *n, const struct entity *e)
{
	bool by_uid = e->kind == ENTITY_POD && e->pod_uid[0], found;
	const char *key = by_uid ? e->pod_uid : e->name;
	size_t len = strlen(key), at = pod_place(n, key, &found);
	struct usage_pod *pod;

	if (found)
		return n->pods[at];
	pod = mem_zalloc(1, sizeof(*pod) + len + 1);
	memcpy(pod->key, key, len + 1);
	pod->by_uid = by_uid;
	pod->windows = pod_windows_new();
	insert_pod(n, at, pod);
	return pod;
}

/* r->name is NULL for a reference not heard before. */
static bool is_same(const struct usage_ref *r, const struct entity *e)
{
	return r->name && r->parent == e->parent && r->kind == e->kind && r->qos == e->qos &&
	       r->runtime == e->runtime && strcmp(r->name, e->name) == 0 &&
	       strcmp(r->uid, e->pod_uid) == 0 && strcmp(r->id, e->container_id) == 0;
}

/* True when the entry tells something new of who the reference is or what bounds it. */
static bool apply_identity(struct usage_node *n, struct usage_ref *r, const struct entry *e)
{
	bool same = is_same(r, e->entity);

	if (same && memcmp(r->limits, &e->limits, sizeof(e->limits)) == 0)
		return false;
	r->news = mem_zalloc(1, sizeof(*r->news));
	r->news->limits = e->limits;
	if (same)
		return true;
	r->parent = e->entity->parent;
	r->kind = (uint8_t)e->entity->kind;
	r->qos = (uint8_t)e->entity->qos;
	r->runtime = (uint8_t)e->entity->runtime;
	r->news->entity = entity_hold(e->entity);
	demand_release(r->demand);
	r->demand = NULL;
	r->demand_tries = 0;
	r->pod = has_windows(e->entity) ? find_or_add_pod(n, e->entity) : NULL;
	return true;
}

static void add_to_pod(struct usage_node *n, struct usage_pod *pod, const struct usage *u,
		       const struct interval *interval)
{
	struct pod_bucket_use complete;

	if (pod->seen_ns < interval->end_ns)
		pod->seen_ns = interval->end_ns;
	if (pod_windows_completes(pod->windows, interval->end_ns, &complete))
		pod_hours_add(&pod->hours, &n->peaks, &complete);
	pod_windows_add(pod->windows, u, interval->start_ns, interval->end_ns);
}

static bool apply_entry(struct usage_node *n, struct usage_ref *r, const struct entry *e,
			const struct interval *interval)
{
	bool news = false;

	r->ref = e->ref;
	r->current = true;
	r->seen_ns = interval->end_ns;
	r->use = (uint32_t)(e - interval->entries);
	n->uses[r->use] = e->usage;
	if (e->entity)
		news = apply_identity(n, r, e);
	if (r->pod) {
		r->pod->cause = e->cause;
		add_to_pod(n, r->pod, &e->usage, interval);
	}
	return news;
}

/* Whether the entries are of just those references that are current. */
static bool are_current(const struct usage_node *n, const struct interval *interval)
{
	size_t at = 0;

	for (size_t i = 0; i < n->ref_count; i++) {
		const struct usage_ref *r = &n->refs[i];

		if (!r->current)
			continue;
		if (at == interval->entry_count || interval->entries[at].ref != r->ref)
			return false;
		at++;
	}
	return at == interval->entry_count;
}

/* Where are_current(): only use, and perhaps names, change. True when any is news. */
static bool apply_to_current(struct usage_node *n, const struct interval *interval)
{
	const struct entry *e = interval->entries;
	bool news = false;

	for (size_t i = 0; i < n->ref_count; i++) {
		if (n->refs[i].current)
			news |= apply_entry(n, &n->refs[i], e++, interval);
	}
	return news;
}

/*
 * The references become those of the interval and, no longer current, the others. True when any is
 * news.
 */
static bool apply_entries(struct usage_node *n, const struct interval *interval)
{
	size_t room = n->ref_count + interval->entry_count, count = 0, at = 0, old = 0;
	struct usage_ref *refs = mem_zalloc(room, sizeof(*refs));
	bool news = false;

	while (at < interval->entry_count || old < n->ref_count) {
		const struct entry *e = at < interval->entry_count ? &interval->entries[at] : NULL;
		const struct usage_ref *r = old < n->ref_count ? &n->refs[old] : NULL;
		struct usage_ref *into = &refs[count++];

		if (r && (!e || r->ref <= e->ref)) {
			*into = *r;
			into->current = false;
			old++;
		}
		if (e && (!r || e->ref <= r->ref)) {
			news |= apply_entry(n, into, e, interval);
			at++;
		}
	}
	free(n->refs);
	n->refs = mem_realloc(refs, count * sizeof(*refs));
	n->ref_count = count;
	return news;
}

/* Whether it goes with an interval that ends then; else the node is told when. */
static bool is_due(struct usage_node *n, int64_t seen_ns, bool by_uid, int64_t end_ns)
{
	int64_t forget_ns = seen_ns + (by_uid ? USAGE_KEEP_UID_NS : USAGE_KEEP_NS);

	if (forget_ns <= end_ns)
		return true;
	if (n->forget_ns > forget_ns)
		n->forget_ns = forget_ns;
	return false;
}

/*
 * Drops what is not current and has been kept long enough at the end of an interval. No reference
 * outlives its pod.
 */
static void forget(struct usage_node *n, int64_t end_ns)
{
	size_t count = 0;

	n->forget_ns = INT64_MAX;
	for (size_t i = 0; i < n->pod_count; i++)
		n->pods[i]->current = false;
	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		if (!r->current && is_due(n, r->seen_ns, !r->pod || r->pod->by_uid, end_ns)) {
			demand_release(r->demand);
			continue; /* nothing is news of what is not current */
		}
		if (r->current && r->pod)
			r->pod->current = true;
		n->refs[count++] = *r;
	}
	n->ref_count = count;
	count = 0;
	for (size_t i = 0; i < n->pod_count; i++) {
		struct usage_pod *pod = n->pods[i];

		if (!pod->current && is_due(n, pod->seen_ns, pod->by_uid, end_ns))
			free_pod(n, pod);
		else
			n->pods[count++] = pod;
	}
	n->pod_count = count;
}

void usage_node_clear_windows(struct usage_node *n)
{
	node_windows_free(n->windows);
	n->windows = node_windows_new();
	for (size_t i = 0; i < n->pod_count; i++) {
		pod_windows_free(n->pods[i]->windows);
		n->pods[i]->windows = pod_windows_new();
	}
}

static double milli_of(uint64_t ns, double seconds)
{
	return (double)ns / 1e6 / seconds;
}

/* MemAvailable is never 0 on a machine that runs; without it an agent told nothing of this. */
static struct machine_stats read_machine(const struct node_sample *s, double seconds)
{
	return (struct machine_stats){
		.known = s->mem_available_bytes > 0,
		.user_milli = milli_of(s->cpu_split.user_ns, seconds),
		.system_milli = milli_of(s->cpu_split.system_ns, seconds),
		.iowait_milli = milli_of(s->cpu_split.iowait_ns, seconds),
		.steal_milli = milli_of(s->cpu_split.steal_ns, seconds),
		.mem_available_bytes = s->mem_available_bytes,
	};
}

static void add_totals(struct usage_node *n, const struct interval *interval)
{
	const struct node_sample *s = &interval->node;
	struct node_totals *t = &n->totals;

	if (interval->end_ns <= n->begun_ns)
		return;
	t->missed_ticks += s->missed_ticks;
	t->cpu.user_ns += s->cpu_split.user_ns;
	t->cpu.system_ns += s->cpu_split.system_ns;
	t->cpu.iowait_ns += s->cpu_split.iowait_ns;
	t->cpu.steal_ns += s->cpu_split.steal_ns;
	t->pressure_have |= s->usage.have & PRESSURE_BITS;
	for (enum pressure p = 0; p < PRESSURES; p++)
		t->pressure_ns[p] += pressure_ns(&s->usage, p);
}

/* How much older than its end the newest CPU and memory use is. */
static void set_aside(struct usage_node *n)
{
	if (n->good_ns != n->head.end_ns)
		n->head.aside_ns = n->good_ns ? n->head.end_ns - n->good_ns : EXPIRED_NS + 1;
}

static void set_head(struct usage_node *n, const struct interval *interval)
{
	const struct node_sample *s = &interval->node;
	double seconds = (double)(interval->end_ns - interval->start_ns) / 1e9;

	n->head = (struct node_stats){
		.end_ns = interval->end_ns,
		.start_ns = interval->start_ns,
		.tier = s->tier,
		.rate_hz = s->rate_hz,
		.missed_ticks = s->missed_ticks,
		.overflow = s->overflow,
		.pass_ns = s->pass_ns,
		.agent_cpu_milli = milli_of(s->agent_cpu_ns, seconds),
		.machine = read_machine(s, seconds),
		.totals = n->totals,
		.cpu_capacity_milli = s->cpu_capacity_milli,
		.mem_capacity_bytes = s->mem_capacity_bytes,
		.cpu_allocatable_milli = s->cpu_capacity_milli,
		.mem_allocatable_bytes = s->mem_capacity_bytes,
	};
	memcpy(n->head.run, n->run, FRAME_RUN_LEN);
	n->head.quarantine = n->quarantine;
	set_aside(n);
	n->node_usage = s->usage;
}

/*
 * The stats are out of date, and names may have moved. The clock's skew may be new with every
 * interval.
 */
static void renew_stats(struct usage_node *n, uint64_t generation)
{
	n->head.generation = generation;
	n->head.layout = n->layout;
	n->head.names = n->names;
	n->head.name = n->names->text;
	n->head.clock_known = node_clock_skew(&n->clock, &n->head.clock_ahead_ns);
	if (!n->stats)
		return;
	node_stats_drop(n->old_stats);
	n->old_stats = n->stats;
	n->stats = NULL;
}

void usage_node_restore(struct usage_node *n, int64_t now_ns, uint64_t generation)
{
	n->begun_ns = now_ns;
	n->head.cpu_allocatable_milli = n->head.cpu_capacity_milli;
	n->head.mem_allocatable_bytes = n->head.mem_capacity_bytes;
	memcpy(n->head.run, n->counted.run, FRAME_RUN_LEN);
	set_aside(n);
	usage_node_rename(n);
	n->layout = generation;
	renew_stats(n, generation);
	n->packed.generation = generation;
	n->packed.mark = n->counted;
}

enum overlap { OVERLAP_NONE, OVERLAP_PART, OVERLAP_ALL };

/* How much of the interval the node's windows have. */
static enum overlap overlap_of(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
			       const struct interval *interval)
{
	uint64_t sequence = interval->sequence, merged = interval->merged;

	if (!usage_mark_is(&n->counted, run))
		return OVERLAP_NONE;
	if (sequence <= n->counted.sequence)
		return OVERLAP_ALL;
	return sequence >= merged && sequence - merged >= n->counted.sequence ? OVERLAP_NONE
									      : OVERLAP_PART;
}

/* The node's own side of an interval. */
static uint64_t apply_node(struct usage_node *n, const struct interval *interval)
{
	enum overlap overlap = overlap_of(n, n->run, interval);
	uint64_t lost = 0;

	if (overlap == OVERLAP_ALL)
		return 0;
	if (overlap == OVERLAP_PART) {
		lost = interval->sequence - n->counted.sequence;
	} else {
		node_windows_add(n->windows, &interval->node, interval->start_ns, interval->end_ns);
		add_totals(n, interval);
	}
	n->counted.known = true;
	memcpy(n->counted.run, n->run, FRAME_RUN_LEN);
	n->counted.sequence = interval->sequence;
	if (!usage_aside(&interval->node.usage, USAGE_CPU | USAGE_MEMORY))
		n->good_ns = interval->end_ns;
	set_head(n, interval);
	return lost;
}

void usage_node_note(struct usage_node *n, const struct quarantine *q, int64_t end_ns)
{
	const struct usage_ref *r = usage_node_find_ref(n, q->ref);
	struct node_quarantine *kept = &n->quarantine;

	if (!q->total)
		return;
	kept->count += q->total;
	kept->last_ns = end_ns;
	kept->reason = (uint8_t)q->last;
	snprintf(kept->message, sizeof(kept->message), "%.*s %s",
		 (int)(sizeof(kept->message) - QUARANTINE_TEXT_LEN - 1), r ? r->name : "the node",
		 q->text);
	n->head.quarantine = *kept;
}

uint64_t usage_node_apply(struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
			  const struct interval *interval, uint64_t generation, size_t pods_max)
{
	int64_t end_ns = interval->end_ns;
	bool news, same;
	uint64_t lost;
	size_t uses = (interval->entry_count + USES_STEP) / USES_STEP * USES_STEP;

	if (!usage_node_runs(n, run)) {
		drop_refs(n);
		n->forget_ns = INT64_MIN; /* all of them left, whenever that was */
	}
	memcpy(n->run, run, FRAME_RUN_LEN);
	n->has_run = true;
	n->sequence = interval->sequence;
	lost = apply_node(n, interval);
	free(n->uses);
	/* Of few sizes, so that one that was given back fits the next node, too. */
	n->uses = mem_alloc(uses * sizeof(*n->uses));
	same = are_current(n, interval);
	news = same ? apply_to_current(n, interval) : apply_entries(n, interval);
	/* Churn beyond any real node: memory is worth more than what is kept of removed pods. */
	if (n->pod_count > 2 * pods_max || n->ref_count > 2 * BODY_ENTRIES_MAX)
		end_ns = INT64_MAX;
	/* An entry may have become another workload's. */
	if (!same || news || n->forget_ns <= end_ns) {
		forget(n, end_ns);
		n->layout = generation;
	}
	if (news || !n->names)
		usage_node_rename(n);
	renew_stats(n, generation);
	return lost;
}
