/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's references are an array sorted by number, and so are the entries of an interval: checking and applying
 * are merges of the two. References end with the run; windows are found again by key (pod UID or name), so an
 * agent's restart keeps every history. A workload that left keeps its windows until nothing of it is in them: it
 * may be back in the next run, or in the next interval.
 */
#include "aggregator/state/usage_node.h"

#include <stdlib.h>
#include <string.h>

#include "shared/body.h"
#include "shared/mem.h"

struct usage_node *usage_node_new(const char *name)
{
	size_t len = strlen(name) + 1;
	struct usage_node *n = mem_zalloc(1, sizeof(*n) + len);

	memcpy(n->name, name, len);
	n->windows = node_windows_new();
	return n;
}

static void free_pod(struct usage_node *n, struct usage_pod *pod)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
	HASH_DEL(n->pods, pod);
	pod_windows_free(pod->windows);
	free(pod);
}

static void drop_refs(struct usage_node *n)
{
	free(n->refs);
	n->refs = NULL;
	n->ref_count = 0;
}

void usage_node_free(struct usage_node *n)
{
	struct usage_pod *pod, *next;

	if (!n)
		return;
	drop_refs(n);
	HASH_ITER(hh, n->pods, pod, next)
	{
		free_pod(n, pod);
	}
	node_windows_free(n->windows);
	page_names_drop(n->names);
	page_drop(n->page);
	free(n);
}

bool usage_node_runs(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN])
{
	return n && n->has_run && memcmp(n->run, run, FRAME_RUN_LEN) == 0;
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

static struct usage_pod *find_or_add_pod(struct usage_node *n, const struct entity *e)
{
	bool by_uid = e->kind == ENTITY_POD && e->pod_uid[0];
	const char *key = by_uid ? e->pod_uid : e->name;
	size_t len = strlen(key);
	struct usage_pod *pod;

	HASH_FIND(hh, n->pods, key, len, pod);
	if (pod)
		return pod;
	pod = mem_zalloc(1, sizeof(*pod) + len + 1);
	memcpy(pod->key, key, len + 1);
	pod->windows = pod_windows_new();
	HASH_ADD_KEYPTR(hh, n->pods, pod->key, len, pod);
	return pod;
}

/* r->name is NULL for a reference not heard before. */
static bool is_same(const struct usage_ref *r, const struct entity *e)
{
	return r->name && r->parent == e->parent && r->kind == e->kind && r->qos == e->qos &&
	       r->runtime == e->runtime && strcmp(r->name, e->name) == 0 &&
	       strcmp(r->uid, e->pod_uid) == 0 && strcmp(r->id, e->container_id) == 0;
}

/* True when the entry tells something new of who the reference is. */
static bool apply_identity(struct usage_node *n, struct usage_ref *r, const struct entry *e)
{
	r->limits = e->limits;
	if (is_same(r, e->entity))
		return false;
	r->parent = e->entity->parent;
	r->kind = (uint8_t)e->entity->kind;
	r->qos = (uint8_t)e->entity->qos;
	r->runtime = (uint8_t)e->entity->runtime;
	r->news = entity_hold(e->entity);
	r->pod = has_windows(e->entity) ? find_or_add_pod(n, e->entity) : NULL;
	return true;
}

static bool apply_entry(struct usage_node *n, struct usage_ref *r, const struct entry *e,
			const struct interval *interval)
{
	bool news = false;

	r->ref = e->ref;
	r->current = true;
	r->seen_ns = interval->end_ns;
	r->usage = e->usage;
	if (e->entity)
		news = apply_identity(n, r, e);
	if (!r->pod)
		return news;
	if (r->pod->seen_ns < interval->end_ns)
		r->pod->seen_ns = interval->end_ns;
	pod_windows_add(r->pod->windows, &e->usage, interval->start_ns, interval->end_ns);
	return news;
}

/* The references become those of the interval and, no longer current, the others. True when any is news. */
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

/* Drops what is not current and was last seen at keep_after_ns or before. No reference outlives its pod. */
static void forget(struct usage_node *n, int64_t keep_after_ns)
{
	struct usage_pod *pod, *next;
	size_t count = 0;

	for (pod = n->pods; pod; pod = pod->hh.next)
		pod->current = false;
	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];

		if (!r->current && r->seen_ns <= keep_after_ns)
			continue;
		if (r->current && r->pod)
			r->pod->current = true;
		n->refs[count++] = *r;
	}
	n->ref_count = count;
	HASH_ITER(hh, n->pods, pod, next)
	{
		if (!pod->current && pod->seen_ns <= keep_after_ns)
			free_pod(n, pod);
	}
}

static void set_head(struct usage_node *n, const struct interval *interval, uint64_t generation)
{
	const struct node_sample *s = &interval->node;
	double seconds = (double)(interval->end_ns - interval->start_ns) / 1e9;

	n->head = (struct node_page){
		.generation = generation,
		.names = n->names,
		.name = n->names->text,
		.end_ns = interval->end_ns,
		.tier = s->tier,
		.rate_hz = s->rate_hz,
		.missed_ticks = s->missed_ticks,
		.overflow = s->overflow,
		.pass_ns = s->pass_ns,
		.agent_cpu_milli = (double)s->agent_cpu_ns / 1e6 / seconds,
		.cpu_capacity_milli = s->cpu_capacity_milli,
		.mem_capacity_bytes = s->mem_capacity_bytes,
		.cpu_allocatable_milli = s->cpu_capacity_milli,
		.mem_allocatable_bytes = s->mem_capacity_bytes,
	};
	memcpy(n->head.run, n->run, FRAME_RUN_LEN);
	n->node_usage = s->usage;
}

/* Churn beyond any real node: what is kept for those that left is worth less than the memory. */
static bool too_much_kept(const struct usage_node *n, size_t pods_max)
{
	return HASH_COUNT(n->pods) > 2 * pods_max || n->ref_count > 2 * BODY_ENTRIES_MAX;
}

void usage_node_apply(struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
		      const struct interval *interval, uint64_t generation, size_t pods_max)
{
	bool news;

	if (!usage_node_runs(n, run))
		drop_refs(n);
	memcpy(n->run, run, FRAME_RUN_LEN);
	n->has_run = true;
	n->sequence = interval->sequence;
	node_windows_add(n->windows, &interval->node, interval->start_ns, interval->end_ns);
	news = apply_entries(n, interval);
	forget(n, too_much_kept(n, pods_max) ? INT64_MAX : interval->end_ns - USAGE_KEEP_NS);
	if (news || !n->names)
		usage_node_rename(n);
	set_head(n, interval, generation);
	page_drop(n->page);
	n->page = NULL;
}
