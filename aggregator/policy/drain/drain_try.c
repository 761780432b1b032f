/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes one node away in the simulation: it is no destination from then on, though its domains
 * still count for topology spread until the run ends (a ghost); its pods leave it, and with them
 * what the simulation put there; then each is placed elsewhere, or nothing has happened.
 * Placeholders of extra capacity go last: pods push them out, not the other way round.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "shared/mem.h"

static int compare_pods(const void *pod, const void *other)
{
	const struct kube_pod *const *a = pod, *const *b = other;

	return object_compare(&(*a)->object, &(*b)->object);
}

/* Whether the list, sorted as a view has pods, holds that very record. */
static bool contains(const struct kube_pod *const *list, size_t count, const struct kube_pod *pod)
{
	const struct kube_pod *const *found;

	if (count == 0)
		return false;
	found = bsearch(&pod, list, count, sizeof(struct kube_pod *), compare_pods);
	return found && *found == pod;
}

static bool leaves(const struct drain_run *r, const struct drain_case *c, place_pod pod)
{
	const struct kube_pod *record = place_pod_record(r->place, pod);

	if (drain_extra_of(r, pod) != DRAIN_EXTRA_NONE)
		return true;
	if (contains(c->sorted.move, c->sorted.move_count, record))
		return true;
	/* What is of another node, or pending, came here in the simulation. */
	return strcmp(record->node, c->view->name) != 0;
}

struct sorted_item {
	struct drain_item item;
	const struct kube_pod *record;
	int64_t cpu_milli, mem_bytes; /* 0: size does not matter (upstream) */
	bool placeholder;
};

static int by_size(const void *left, const void *right)
{
	const struct sorted_item *a = left, *b = right;
	int by_name;

	if (a->placeholder != b->placeholder)
		return a->placeholder ? 1 : -1;
	if (a->cpu_milli != b->cpu_milli)
		return a->cpu_milli > b->cpu_milli ? -1 : 1;
	if (a->mem_bytes != b->mem_bytes)
		return a->mem_bytes > b->mem_bytes ? -1 : 1;
	by_name = object_compare(&a->record->object, &b->record->object);
	return by_name ? by_name : (a->item.pod > b->item.pod) - (a->item.pod < b->item.pod);
}

static place_node hint_of(const struct drain_run *r, const struct drain_case *c, place_pod pod,
			  const struct kube_pod *record)
{
	const char *node;

	for (size_t i = 0; i < c->item_count; i++)
		if (c->items[i].pod == pod)
			return c->items[i].to;
	node = drain_state_hint(r->state, record->object.uid);
	return node ? place_find_node(r->place, node) : PLACE_NONE;
}

static struct sorted_item describe(const struct drain_run *r, const struct drain_case *c,
				   place_pod pod)
{
	const struct kube_pod *record = place_pod_record(r->place, pod);
	const struct resources *asked = kube_pod_requests(record);

	return (struct sorted_item){
		.item = {pod, hint_of(r, c, pod, record), PLACE_NONE},
		.record = record,
		.cpu_milli = r->corrected ? asked->of[RESOURCE_CPU] : 0,
		.mem_bytes = r->corrected ? asked->of[RESOURCE_MEMORY] : 0,
		.placeholder = drain_extra_of(r, pod) == DRAIN_EXTRA_PLACEHOLDER,
	};
}

struct drain_item *drain_leavers(const struct drain_run *r, const struct drain_case *c,
				 size_t *count, size_t *real)
{
	place_node n = (place_node)(c - r->cases);
	struct sorted_item *sorted;
	struct drain_item *items;
	size_t on = 0, kept = 0;

	for (place_pod pod = place_first_on(r->place, n); pod != PLACE_NONE;
	     pod = place_next_on(r->place, pod))
		on++;
	sorted = mem_zalloc(on + 1, sizeof(*sorted));
	items = mem_zalloc(on + 1, sizeof(*items));
	for (place_pod pod = place_first_on(r->place, n); pod != PLACE_NONE;
	     pod = place_next_on(r->place, pod))
		if (leaves(r, c, pod))
			sorted[kept++] = describe(r, c, pod);
	qsort(sorted, kept, sizeof(*sorted), by_size);
	*real = 0;
	for (size_t i = 0; i < kept; i++) {
		items[i] = sorted[i].item;
		*real += !sorted[i].placeholder;
	}
	*count = kept;
	free(sorted);
	return items;
}

/* Placed by drain_owed.c: in the cluster it is not on any node that stays. */
static bool is_guest(const struct drain_run *r, place_pod pod)
{
	const char *node = place_pod_record(r->place, pod)->node;
	place_node n;

	if (drain_extra_of(r, pod) != DRAIN_EXTRA_NONE || !*node)
		return true;
	n = place_find_node(r->place, node);
	return n == PLACE_NONE || r->cases[n].in_deletion;
}

/* Guests behind the others, both in the order they were placed. */
static void part_guests(const struct drain_run *r, struct drain_trial *t)
{
	struct drain_item *guests = mem_zalloc(t->real_count + 1, sizeof(*guests));
	size_t count = 0;

	for (size_t i = 0; i < t->real_count; i++) {
		if (is_guest(r, t->items[i].pod))
			guests[count++] = t->items[i];
		else
			t->items[t->own_count++] = t->items[i];
	}
	memcpy(t->items + t->own_count, guests, count * sizeof(*guests));
	free(guests);
}

/* Placeholders that fit nowhere. */
static void miss_slack(const struct drain_run *r, struct drain_trial *t)
{
	for (size_t i = t->real_count; i < t->count; i++) {
		const struct drain_item *item = &t->items[i];
		const struct kube_pod *pod = place_pod_record(r->place, item->pod);
		const struct resources *asked = kube_pod_requests(pod);

		if (item->to != PLACE_NONE)
			continue;
		if (!t->missing++)
			t->class_name = r->in->slack[drain_placeholder_of(r, item->pod)].class_name;
		t->missing_cpu_milli += asked->of[RESOURCE_CPU];
		t->missing_mem_bytes += asked->of[RESOURCE_MEMORY];
	}
}

static void place_all(struct drain_run *r, const bool *allowed, struct drain_trial *t)
{
	const struct drain_schedule pods = {.place = r->place,
					    .order = r->config->order,
					    .allowed = allowed,
					    .all_or_none = true};
	struct drain_schedule slack = pods;
	const struct drain_item *failed;

	slack.all_or_none = false;
	drain_schedule_pods(&pods, t->items, t->real_count, &failed, &t->counts);
	if (failed) {
		t->reason = DRAIN_NO_PLACE;
		t->pod = place_pod_record(r->place, failed->pod);
		return;
	}
	if (drain_schedule_pods(&slack, t->items + t->real_count, t->count - t->real_count, &failed,
				&t->counts) == t->count - t->real_count)
		return;
	t->reason = DRAIN_SLACK_DROPS;
	t->pod = place_pod_record(r->place, failed->pod);
	miss_slack(r, t);
}

void drain_try_node(struct drain_run *r, const struct drain_case *c, const bool *allowed,
		    struct drain_trial *out)
{
	place_mark m = place_fork(r->place);

	*out = (struct drain_trial){.reason = DRAIN_NONE};
	out->items = drain_leavers(r, c, &out->count, &out->real_count);
	place_drain_node(r->place, (place_node)(c - r->cases));
	for (size_t i = 0; i < out->count; i++)
		place_take(r->place, out->items[i].pod);
	place_all(r, allowed, out);
	if (out->reason != DRAIN_NONE) {
		place_revert(r->place, m);
		return;
	}
	place_commit(r->place, m); /* the step's own mark still undoes it */
	part_guests(r, out);
}

void drain_describe_counts(const struct place_counts *counts, struct reason *out)
{
	struct buf text = BUF_INIT;

	for (int f = PLACE_GONE; f < PLACE_FILTERS; f++)
		if (counts->of[f])
			buf_printf(&text, "%s%u %s", text.len ? ", " : "", counts->of[f],
				   place_filter_name((enum place_filter)f));
	reason_set(out, "%s", text.len ? text.data : "there is no other node");
	buf_fini(&text);
}

void drain_explain_trial(struct drain_case *c, const struct drain_trial *t)
{
	struct reason counts;
	struct drain_why *w;

	drain_describe_counts(&t->counts, &counts);
	if (t->reason == DRAIN_SLACK_DROPS) {
		w = drain_add_reason(c, t->reason,
				     "%zu placeholder%s of class %.200s would fit nowhere: %lld "
				     "millicores and %lld MiB of extra capacity would be missing",
				     t->missing, t->missing == 1 ? "" : "s", t->class_name,
				     (long long)t->missing_cpu_milli,
				     (long long)(t->missing_mem_bytes >> 20));
		drain_add_number(w, "placeholders", (double)t->missing);
		drain_add_number(w, "cpuMillicores", (double)t->missing_cpu_milli);
		drain_add_number(w, "memoryBytes", (double)t->missing_mem_bytes);
	} else {
		w = drain_add_reason(c, t->reason, "pod %s/%s fits on no other node: %s",
				     t->pod->object.namespace, t->pod->object.name, counts.text);
	}
	w->pod = t->pod;
	w->counted = true;
	w->refused = t->counts;
}
