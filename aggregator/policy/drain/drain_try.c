/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates the drain of one node: the node takes no more pods, though its domains still count for
 * topology spread (a ghost), and each of its pods, with those that the simulation placed there, is
 * placed elsewhere. If one fits nowhere the simulation is reverted. Placeholders of extra capacity go
 * last, since pods displace them.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

static const double GIB = 1073741824.0;

static bool is_placeholder(const struct drain_run *r, place_pod pod)
{
	return drain_extra_of(r, pod) == DRAIN_EXTRA_PLACEHOLDER;
}

static bool leaves(const struct drain_run *r, const struct drain_case *c, place_pod pod)
{
	const struct kube_pod *record = place_pod_record(r->place, pod);

	if (drain_extra_of(r, pod) != DRAIN_EXTRA_NONE)
		return true;
	if (drain_find_pod(c->sorted.move, c->sorted.move_count, record) == record)
		return true;
	/* Pods of other nodes and pending ones were placed here by the simulation. */
	return strcmp(record->node, c->view->name) != 0;
}

/* Placeholders last; then the largest first (corrected); then by name. */
static int compare_leavers(const void *left, const void *right, void *run)
{
	static const int sizes[] = {RESOURCE_CPU, RESOURCE_MEMORY};
	const struct drain_run *r = run;
	const struct drain_item *a = left, *b = right;
	const struct kube_pod *x = place_pod_record(r->place, a->pod);
	const struct kube_pod *y = place_pod_record(r->place, b->pod);
	int order = is_placeholder(r, a->pod) - is_placeholder(r, b->pod);

	for (int i = 0; r->corrected && !order && i < 2; i++)
		order = COMPARE(kube_pod_requests(y)->of[sizes[i]],
				kube_pod_requests(x)->of[sizes[i]]);
	return order ?: object_compare(&x->object, &y->object) ?: COMPARE(a->pod, b->pod);
}

static struct drain_item item_of(const struct drain_run *r, const struct drain_case *c,
				 place_pod pod)
{
	const struct kube_pod *record = place_pod_record(r->place, pod);
	const char *node = drain_state_hint(r->state, record->object.uid);
	struct drain_item item = {pod, PLACE_NONE, PLACE_NONE, 0};

	for (size_t i = 0; i < c->placed.count; i++)
		if (c->placed.items[i].pod == pod) {
			item.hint = c->placed.items[i].to;
			return item;
		}
	if (node)
		item.hint = place_find_node(r->place, node);
	else if (strcmp(record->node, c->view->name) != 0)
		/* A pod of another node that stays may start again there. */
		item.hint = place_where(r->place, pod);
	return item;
}

/* The i-th pod of c->leave if it is on another node; else PLACE_NONE. */
static place_pod find_fallen(const struct drain_run *r, const struct drain_case *c, size_t i)
{
	const struct object *o = &c->leave[i]->object;
	place_pod pod = place_find_pod(r->place, o->namespace, o->name);
	place_node at = pod == PLACE_NONE ? PLACE_NONE : place_where(r->place, pod);

	return at == PLACE_NONE || at == (place_node)(c - r->cases) ? PLACE_NONE : pod;
}

/*
 * Whether the placeholder is on another node, where it counts for one of the pods: the scheduler does
 * not know it, so it is placed again after them.
 */
static bool counts_for(const struct drain_run *r, place_node n, const struct drain_item *items,
		       size_t count, place_pod placeholder)
{
	place_node at = place_where(r->place, placeholder);

	for (size_t i = 0; at != PLACE_NONE && at != n && i < count; i++)
		if (!is_placeholder(r, items[i].pod) &&
		    place_minds(r->place, items[i].pod, placeholder))
			return true;
	return false;
}

/* The items of all pods that must leave the node; *real of them first, then placeholders. */
static struct drain_item *leavers(const struct drain_run *r, const struct drain_case *c,
				  size_t *count, size_t *real)
{
	place_node n = (place_node)(c - r->cases);
	struct drain_item *items;
	size_t on = c->leave_count - c->leave_own + r->in->slack_count;

	for (place_pod pod = place_first_on(r->place, n); pod != PLACE_NONE;
	     pod = place_next_on(r->place, pod))
		on++;
	items = mem_zalloc(on + 1, sizeof(*items));
	*count = *real = 0;
	for (place_pod pod = place_first_on(r->place, n); pod != PLACE_NONE;
	     pod = place_next_on(r->place, pod))
		if (leaves(r, c, pod))
			items[(*count)++] = item_of(r, c, pod);
	for (size_t i = c->leave_own; i < c->leave_count; i++)
		if (find_fallen(r, c, i) != PLACE_NONE)
			items[(*count)++] = item_of(r, c, find_fallen(r, c, i));
	for (size_t i = 0; r->corrected && i < r->in->slack_count; i++)
		if (counts_for(r, n, items, *count, r->slack[i]))
			items[(*count)++] = item_of(r, c, r->slack[i]);
	qsort_r(items, *count, sizeof(*items), compare_leavers, (void *)r);
	while (*real < *count && !is_placeholder(r, items[*real].pod))
		(*real)++;
	return items;
}

/* Whether drain_reserve.c placed it: no node that stays has it. */
static bool is_guest(const struct drain_run *r, place_pod pod)
{
	const char *node = place_pod_record(r->place, pod)->node;
	place_node n;

	if (drain_extra_of(r, pod) != DRAIN_EXTRA_NONE || !*node)
		return true;
	n = place_find_node(r->place, node);
	return n == PLACE_NONE || r->cases[n].in_deletion;
}

/* Moves guests behind the others, in the order of placement. */
static void part_guests(const struct drain_run *r, struct drain_trial *t)
{
	struct drain_item *guests = mem_zalloc(t->placed.real_count + 1, sizeof(*guests));
	size_t count = 0;

	for (size_t i = 0; i < t->placed.real_count; i++) {
		if (!is_guest(r, t->placed.items[i].pod)) {
			t->placed.items[t->placed.own_count++] = t->placed.items[i];
			continue;
		}
		guests[count] = t->placed.items[i];
		guests[count++].after = (uint32_t)t->placed.own_count;
	}
	memcpy(t->placed.items + t->placed.own_count, guests, count * sizeof(*guests));
	free(guests);
}

/* Sums up placeholders that fit nowhere. */
static void miss_slack(const struct drain_run *r, struct drain_trial *t)
{
	for (size_t i = t->placed.real_count; i < t->placed.count; i++) {
		const struct drain_item *item = &t->placed.items[i];
		const struct kube_pod *pod = place_pod_record(r->place, item->pod);
		const struct resources *asked = kube_pod_requests(pod);

		if (item->to != PLACE_NONE)
			continue;
		if (!t->missing++)
			t->class_name = r->in->slack[r->extra[item->pod].placeholder].class_name;
		t->missing_cpu_milli =
			add_saturating(t->missing_cpu_milli, asked->of[RESOURCE_CPU]);
		t->missing_mem_bytes =
			add_saturating(t->missing_mem_bytes, asked->of[RESOURCE_MEMORY]);
	}
}

static void note_term(const struct drain_run *r, place_pod pod, place_node n, struct drain_trial *t)
{
	enum place_filter f = place_explain_admission(r->place, pod, n, NULL);
	bool gone = place_is_gone(r->place, n);
	struct error error;

	if (f != PLACE_FITS && !*t->terms[f].text) {
		place_explain_admission(r->place, pod, n, &error);
		error_set(&t->terms[f], "%s: %s", place_node_name(r->place, n), error.text);
	}
	if (f != PLACE_FITS)
		return;
	t->holds = t->holds || place_could_hold(r->place, pod, n);
	t->rival_admitted |= gone;
	t->admitted |= !gone;
	if (t->room_refuses || gone)
		return;
	f = place_check(r->place, pod, n);
	t->room_refuses = f == PLACE_FIT || f == PLACE_USE_CAP;
}

/* Nodes in deletion and unready nodes are left out. */
static void note_terms(const struct drain_run *r, place_node self, const bool *allowed,
		       place_pod pod, struct drain_trial *t)
{
	for (place_node n = 0; n < r->count; n++)
		if (n != self && (!allowed || allowed[n]) &&
		    (!place_is_gone(r->place, n) || r->cases[n].out->verdict == DRAIN_UNNEEDED))
			note_term(r, pod, n, t);
}

/* Further pods that fit nowhere in the same simulation. */
static void note_others(struct drain_run *r, const bool *allowed, place_pod first,
			struct drain_trial *t)
{
	for (size_t i = 0; i < t->placed.real_count; i++) {
		place_pod pod = t->placed.items[i].pod;

		if (pod == first || place_where(r->place, pod) != PLACE_NONE ||
		    place_choose(r->place, pod, r->config->order, PLACE_NONE, allowed, NULL) !=
			    PLACE_NONE)
			continue;
		ARRAY_ADD(t->other, t->others) = place_pod_record(r->place, pod);
	}
}

/* About other nodes, in the state of the refusal. */
static void note_refusal(const struct drain_run *r, const struct drain_case *c, const bool *allowed,
			 place_pod pod, struct drain_trial *t)
{
	place_node self = (place_node)(c - r->cases), nearest = t->counts.nearest;

	t->pod = place_pod_record(r->place, pod);
	note_terms(r, self, allowed, pod, t);
	if ((!allowed || allowed[self]) && t->counts.of[PLACE_GONE])
		t->counts.of[PLACE_GONE]--;
	for (size_t i = 0; i < r->set_count; i++)
		t->rivals += r->set[i] != self && (!allowed || allowed[r->set[i]]);
	if (t->counts.of[PLACE_USE_CAP] && place_predict(r->place, nearest, pod, &t->predicted))
		t->nearest = place_node_name(r->place, nearest);
}

/* Bounds note_slack() over all refusals: each costs one take per placeholder. */
enum { SLACK_ASKS_MAX = 200000 };

/* Whether the pod would fit without placeholders. */
static void note_slack(struct drain_run *r, const bool *allowed, place_pod pod,
		       struct drain_trial *t)
{
	size_t count = r->in->slack_count;
	place_mark m;
	place_node n;

	if (!r->corrected || !count || r->slack_asks + count > SLACK_ASKS_MAX)
		return;
	r->slack_asks += count;
	m = place_fork(r->place);
	for (size_t i = 0; i < count; i++)
		if (place_where(r->place, r->slack[i]) != PLACE_NONE)
			place_take(r->place, r->slack[i]);
	n = place_choose(r->place, pod, r->config->order, PLACE_NONE, allowed, NULL);
	if (n != PLACE_NONE)
		t->without_slack = place_node_name(r->place, n);
	place_revert(r->place, m);
}

static void place_all(struct drain_run *r, const struct drain_case *c, const bool *allowed,
		      struct drain_trial *t)
{
	const struct drain_schedule pods = {.place = r->place,
					    .order = r->config->order,
					    .allowed = allowed,
					    .all_or_none = true};
	struct drain_schedule slack = pods;
	const struct drain_item *failed;

	slack.all_or_none = false;
	drain_schedule_pods(&pods, t->placed.items, t->placed.real_count, &failed, &t->counts);
	if (failed) {
		t->reason = DRAIN_NO_PLACE;
		note_refusal(r, c, allowed, failed->pod, t);
		note_slack(r, allowed, failed->pod, t);
		note_others(r, allowed, failed->pod, t);
		return;
	}
	if (drain_schedule_pods(&slack, t->placed.items + t->placed.real_count,
				t->placed.count - t->placed.real_count, &failed,
				&t->counts) == t->placed.count - t->placed.real_count)
		return;
	t->reason = DRAIN_SLACK_DROPS;
	note_refusal(r, c, allowed, failed->pod, t);
	miss_slack(r, t);
}

void drain_try_node(struct drain_run *r, const struct drain_case *c, const bool *allowed,
		    struct drain_trial *out)
{
	place_mark m = place_fork(r->place);

	*out = (struct drain_trial){.reason = DRAIN_NONE};
	out->placed.items = leavers(r, c, &out->placed.count, &out->placed.real_count);
	place_drain_node(r->place, (place_node)(c - r->cases));
	for (size_t i = 0; i < out->placed.count; i++)
		place_take(r->place, out->placed.items[i].pod);
	place_all(r, c, allowed, out);
	if (out->reason != DRAIN_NONE) {
		place_revert(r->place, m);
		return;
	}
	part_guests(r, out);
}

/* "2 could go as well, 412 NodeResourcesFit, 61 TaintToleration" */
static void describe_counts(const struct drain_trial *t, struct buf *text)
{
	size_t rivals = t->rivals < t->counts.of[PLACE_GONE] ? t->rivals : t->counts.of[PLACE_GONE];

	if (rivals)
		buf_printf(text, "%zu could go as well", rivals);
	for (int f = PLACE_GONE; f < PLACE_FILTERS; f++) {
		size_t count = t->counts.of[f] - (f == PLACE_GONE ? rivals : 0);

		if (count)
			buf_printf(text, "%s%zu %s", text->len ? ", " : "", count,
				   place_filter_name((enum place_filter)f));
	}
	if (!text->len)
		buf_add_str(text, "there is no other node");
}

static void describe_nearest(const struct drain_trial *t, struct buf *text)
{
	const struct place_prediction *p = &t->predicted;

	if (!t->nearest)
		return;
	if (p->cpu_milli > p->cpu_limit_milli)
		buf_printf(text, "; nearest is %s, which would use %.2f CPUs where %.2f may be",
			   t->nearest, p->cpu_milli / 1000, p->cpu_limit_milli / 1000);
	else
		buf_printf(text, "; nearest is %s, which would use %.2f GiB where %.2f may be",
			   t->nearest, p->mem_bytes / GIB, p->mem_limit_bytes / GIB);
}

static void add_nearest(const struct drain_trial *t, struct drain_why *w)
{
	const struct place_prediction *p = &t->predicted;

	if (!t->nearest)
		return;
	if (p->cpu_milli > p->cpu_limit_milli) {
		drain_add_number(w, "predictedCpuMillicores", p->cpu_milli);
		drain_add_number(w, "limitCpuMillicores", p->cpu_limit_milli);
	} else {
		drain_add_number(w, "predictedMemoryBytes", p->mem_bytes);
		drain_add_number(w, "limitMemoryBytes", p->mem_limit_bytes);
	}
}

static struct drain_why *explain_slack(struct drain_case *c, const struct drain_trial *t)
{
	struct drain_why *w = drain_add_reason(
		c, t->reason,
		"%zu %s of class %.200s would fit nowhere: %lld millicores and %lld MiB of extra "
		"capacity would be missing",
		t->missing, drain_plural(t->missing, "placeholder", "placeholders"), t->class_name,
		(long long)t->missing_cpu_milli, (long long)(t->missing_mem_bytes >> 20));

	drain_add_number(w, "placeholders", (double)t->missing);
	drain_add_number(w, "cpuMillicores", (double)t->missing_cpu_milli);
	drain_add_number(w, "memoryBytes", (double)t->missing_mem_bytes);
	return w;
}

/* Free room helps only on nodes that admit the pod. */
static const char *unblock_of(const struct drain_trial *t)
{
	if ((t->room_refuses || t->rival_admitted) && !t->holds)
		return drain_remedies[DRAIN_ADD_LARGE_NODE];
	if (t->room_refuses)
		return drain_reason_unblock(DRAIN_NO_PLACE);
	if (t->admitted)
		return drain_remedies[DRAIN_LET_ADMIT];
	if (t->rival_admitted)
		return drain_remedies[DRAIN_ASK_LATER];
	if (*t->terms[PLACE_NODE_AFFINITY].text)
		return drain_remedies[DRAIN_LABEL_NODE];
	if (*t->terms[PLACE_TAINTS].text)
		return drain_remedies[DRAIN_TOLERATE];
	if (*t->terms[PLACE_UNSCHEDULABLE].text)
		return drain_remedies[DRAIN_UNCORDON];
	return drain_reason_unblock(DRAIN_NO_PLACE);
}

static struct drain_why *explain_no_place(struct drain_case *c, const struct drain_trial *t)
{
	struct buf text = BUF_INIT;
	struct drain_why *w;

	describe_counts(t, &text);
	describe_nearest(t, &text);
	if (t->without_slack)
		buf_printf(&text, "; %s would have room, but for extra capacity", t->without_slack);
	/* "; golf: nodeSelector asks for disk=ssd, and the node has no label disk" */
	for (int f = PLACE_GONE; f < PLACE_FILTERS; f++)
		if (*t->terms[f].text)
			buf_printf(&text, "; %s", t->terms[f].text);
	w = drain_add_reason(c, t->reason, "pod %s/%s%s fits on no other node: %s",
			     t->pod->object.namespace, t->pod->object.name,
			     *t->pod->node ? "" : ", which is pending and has its room here,",
			     text.data);
	w->unblock = t->without_slack ? drain_reason_unblock(DRAIN_SLACK_DROPS) : unblock_of(t);
	add_nearest(t, w);
	buf_fini(&text);
	return w;
}

static void explain_others(struct drain_case *c, const struct drain_trial *t)
{
	for (size_t i = 0; i < t->others; i++) {
		struct drain_why *w =
			drain_add_reason(c, t->reason, "pod %s/%s fits on no other node either",
					 t->other[i]->object.namespace, t->other[i]->object.name);

		w->pod = t->other[i];
		w->unblock = NULL;
	}
}

void drain_explain_trial(struct drain_case *c, struct drain_trial *t)
{
	struct drain_why *w =
		t->reason == DRAIN_SLACK_DROPS ? explain_slack(c, t) : explain_no_place(c, t);

	w->pod = t->pod;
	w->counted = true;
	w->refused = t->counts;
	explain_others(c, t);
	free(t->other);
	t->other = NULL;
}
