/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a wave fits although the kube-scheduler chooses other destinations.
 *
 *   robust     the wave also fits in some other orders: emptiest node first, every second time with
 *              nodes that are no candidates before the others (soft taints), pods shuffled; then with
 *              the pods of each owner last. This is a sample, no proof. If a pod of the cluster has a
 *              lower priority than the owner's, the scheduler preempts pods for it, so the others
 *              first fill the nodes that are open to it
 *   any order  every order fits. It is proven for pods that request only CPU, memory, ephemeral
 *              storage and a slot: the others close a node to such a pod only by filling up one of
 *              these. One node must remain:
 *
 *                  filled(r) = the most nodes n, those with the least first, with
 *                              sum of (free(n, r) - asked(pod, r) + 1) <= sum asked(others, r)
 *                  sum over r of filled(r) < nodes that admit and hold the pod
 *
 *              nor can more nodes be filled than there are others. A pod that moves alone has its
 *              place by the simulation.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/policy/slack/slack.h"
#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* From names alone, for equal results in any order of input. */
static uint64_t seed_of(struct drain_run *r, uint32_t order)
{
	uint64_t seed = HASH_BEGIN;

	for (size_t i = 0; i < r->pick_count; i++) {
		const char *name = place_node_name(r->place, r->picks[i].node);

		seed = hash_bytes(seed, name, strlen(name));
	}
	return (seed + order * 0x9E3779B97F4A7C15ULL) | 1;
}

struct leaver {
	place_pod pod;
	size_t number;
};

static const char *owner_of(struct drain_run *r, place_pod pod)
{
	return place_pod_record(r->place, pod)->template->owner.uid;
}

static int32_t find_lowest_priority(const struct drain_run *r)
{
	int32_t lowest = INT32_MAX;

	for (size_t i = 0; i < r->count; i++)
		for (size_t j = 0; j < r->cases[i].pod_count; j++) {
			const struct kube_pod *pod = r->cases[i].pods[j];

			if (pod->template->priority < lowest && !slack_is_balloon(pod))
				lowest = pod->template->priority;
		}
	return lowest;
}

static void shuffle(struct leaver *all, size_t count, uint64_t seed)
{
	for (size_t i = count; i > 1; i--) {
		struct leaver other = all[i - 1];
		size_t j;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		j = (size_t)(seed % i);
		all[i - 1] = all[j];
		all[j] = other;
	}
}

/* Moves pods of the owner to the end; returns the number of others. */
static size_t put_last(struct drain_run *r, struct leaver *all, size_t count, const char *owner)
{
	struct leaver *of = mem_zalloc(count + 1, sizeof(*of));
	size_t kept = 0, last = 0;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(owner_of(r, all[i].pod), owner) == 0)
			of[last++] = all[i];
		else
			all[kept++] = all[i];
	}
	memcpy(&all[kept], of, last * sizeof(*of));
	free(of);
	return kept;
}

/* Takes all pods of the wave, in the order of their nodes. The caller frees the list. */
static struct leaver *take_wave(struct drain_run *r, size_t *count)
{
	struct leaver *all;

	*count = 0;
	for (size_t i = 0; i < r->pick_count; i++)
		*count += r->picks[i].placed.real_count;
	all = mem_zalloc(*count + 1, sizeof(*all));
	*count = 0;
	for (size_t i = 0; i < r->pick_count; i++) {
		const struct drain_pick *pick = &r->picks[i];

		place_drain_node(r->place, pick->node);
		for (size_t j = 0; j < pick->placed.real_count; j++) {
			place_take(r->place, pick->placed.items[j].pod);
			all[(*count)++] = (struct leaver){pick->placed.items[j].pod, i};
		}
	}
	return all;
}

/* A preferred node (NULL: any) in that order, else the emptiest. */
static place_node choose(struct drain_run *r, place_pod pod, enum place_order order,
			 const bool *preferred)
{
	struct place *p = r->place;
	place_node to = place_choose(p, pod, order, PLACE_NONE, preferred, NULL);

	if (to == PLACE_NONE && preferred)
		to = place_choose(p, pod, PLACE_EMPTIEST_FIRST, PLACE_NONE, NULL, NULL);
	return to;
}

/*
 * Puts pods on nodes that are open to pod `of`, fullest first, since these close soonest. Ends
 * before a pod that has no place.
 */
static size_t put_in_the_way(struct drain_run *r, const struct leaver *all, size_t count,
			     place_pod of)
{
	struct place *p = r->place;
	bool *open = mem_zalloc(r->count + 1, sizeof(*open));
	size_t i;

	for (place_node n = 0; n < r->count; n++)
		open[n] = place_check(p, of, n) == PLACE_FITS;
	for (i = 0; i < count; i++) {
		place_node to = choose(r, all[i].pod, PLACE_FULLEST_FIRST, open);

		if (to == PLACE_NONE)
			break;
		place_put(p, all[i].pod, to);
		open[to] = place_check(p, of, to) == PLACE_FITS;
	}
	free(open);
	return i;
}

/*
 * The pick with a pod that has no place, or the last one if extra capacity has none; SIZE_MAX:
 * none. Pods of the owner (NULL: none) come last.
 */
static size_t find_victim(struct drain_run *r, uint32_t order, const char *owner, int32_t lowest,
			  struct error *error)
{
	struct place *p = r->place;
	place_mark m = place_fork(p);
	size_t count, i = 0, victim = SIZE_MAX;
	struct leaver *all = take_wave(r, &count);

	shuffle(all, count, seed_of(r, order));
	if (owner) {
		size_t others = put_last(r, all, count, owner);

		if (place_pod_record(p, all[others].pod)->template->priority > lowest)
			i = put_in_the_way(r, all, others, all[others].pod);
	}
	/* Schedulers that are told of candidates prefer the others. */
	for (; i < count && victim == SIZE_MAX; i++) {
		place_node to =
			choose(r, all[i].pod, PLACE_EMPTIEST_FIRST, order % 2 ? r->stays : NULL);

		if (to != PLACE_NONE) {
			place_put(p, all[i].pod, to);
			continue;
		}
		victim = all[i].number;
		error_set(error,
			  "pod %.63s/%.253s would have no place, were others placed elsewhere",
			  place_pod_record(p, all[i].pod)->object.namespace,
			  place_pod_record(p, all[i].pod)->object.name);
	}
	if (victim == SIZE_MAX && !owner && r->pick_count &&
	    !drain_slack_holds(r, r->pick_count, error))
		victim = r->pick_count - 1;
	free(all);
	place_revert(p, m);
	return victim;
}

enum { OWNERS_MAX = 16 };

static size_t find_owners(struct drain_run *r, const char *owners[OWNERS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < r->pick_count; i++) {
		const struct drain_pick *t = &r->picks[i];

		for (size_t j = 0; j < t->placed.real_count && count < OWNERS_MAX; j++) {
			const char *owner = owner_of(r, t->placed.items[j].pod);
			size_t known = 0;

			while (known < count && strcmp(owners[known], owner) != 0)
				known++;
			if (*owner && known == count)
				owners[count++] = owner;
		}
	}
	return count;
}

/* Rules may leave the pods of an owner a single node, so they are also tried last. */
size_t drain_find_fragile(struct drain_run *r, struct error *error)
{
	int32_t lowest = find_lowest_priority(r);
	const char *owners[OWNERS_MAX];
	size_t victim = SIZE_MAX, count;
	uint32_t orders = r->config->robust_orders;

	for (uint32_t i = 0; i < orders && victim == SIZE_MAX; i++)
		victim = find_victim(r, i, NULL, lowest, error);
	if (victim != SIZE_MAX)
		return victim;
	count = find_owners(r, owners);
	for (size_t i = 0; i < count && victim == SIZE_MAX; i++)
		victim = find_victim(r, orders + (uint32_t)i, owners[i], lowest, error);
	return victim;
}

/* --- proof */

/* Terms that other pods can break, or further resources. */
static bool asks_for_more(const struct kube_pod *pod)
{
	static const char *const terms[] = {"\"podAffinity\"",		 "\"podAntiAffinity\"",
					    "\"DoNotSchedule\"",	 "\"hostPort\"",
					    "\"persistentVolumeClaim\"", "\"ephemeral\"",
					    "\"resourceClaims\""};
	const char *spec = pod->template->text + pod->template->spec_at;

	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
		if (strstr(spec, terms[i]))
			return true;
	return kube_pod_requests(pod)->extended_count > 0;
}

static int64_t asked(const struct kube_pod *pod, int resource)
{
	return resource == RESOURCE_PODS ? 1 : kube_pod_requests(pod)->of[resource];
}

/* Free amounts by node and resource; the caller frees them. */
static int64_t *find_free(const struct drain_run *r)
{
	int64_t *of = mem_zalloc(r->count * RESOURCE_STANDARD + 1, sizeof(*of));

	for (place_node n = 0; n < r->count; n++) {
		const struct kube_node *node = r->cases[n].node;
		int64_t *left = &of[n * RESOURCE_STANDARD];

		for (int i = 0; node && i < RESOURCE_STANDARD; i++)
			left[i] = node->allocatable.of[i];
		for (place_pod pod = place_first_on(r->place, n); pod != PLACE_NONE;
		     pod = place_next_on(r->place, pod))
			for (int i = 0; i < RESOURCE_STANDARD; i++)
				left[i] -= asked(place_pod_record(r->place, pod), i);
	}
	return of;
}

/* Nodes that the others can fill up, the least needed first. */
static size_t count_filled(int64_t *needed, size_t count, int64_t others)
{
	size_t filled = 0;

	qsort(needed, count, sizeof(*needed), array_compare_int64);
	for (; filled < count && needed[filled] <= others; filled++)
		others -= needed[filled];
	return filled;
}

/* total: requests and number of all pods of the wave. */
static bool always_has_a_place(const struct drain_run *r, place_pod pod, const int64_t *free_of,
			       const int64_t *total)
{
	const struct kube_pod *record = place_pod_record(r->place, pod);
	place_node *nodes = mem_zalloc(r->count + 1, sizeof(*nodes));
	int64_t *needed = mem_zalloc(r->count + 1, sizeof(*needed));
	size_t count = 0, filled = 0;

	/* With more nodes than others one node remains. */
	for (place_node n = 0; n < r->count && count < (size_t)total[RESOURCE_PODS]; n++) {
		enum place_filter f = place_check(r->place, pod, n);

		/* Later filters are not those of the scheduler. */
		if (f == PLACE_FITS || f >= PLACE_USE_CAP)
			nodes[count++] = n;
	}
	for (int i = 0; count < (size_t)total[RESOURCE_PODS] && i < RESOURCE_STANDARD; i++) {
		for (size_t k = 0; k < count; k++)
			needed[k] = free_of[nodes[k] * RESOURCE_STANDARD + (size_t)i] -
				    asked(record, i) + 1;
		if (asked(record, i))
			filled += count_filled(needed, count, total[i] - asked(record, i));
	}
	free(nodes);
	free(needed);
	return filled < count;
}

bool drain_holds_in_any_order(struct drain_run *r)
{
	place_mark m = place_fork(r->place);
	size_t count;
	struct leaver *all = take_wave(r, &count);
	int64_t total[RESOURCE_STANDARD] = {0}, *free_of;
	bool holds = true;

	for (size_t i = 0; i < count; i++) {
		const struct kube_pod *pod = place_pod_record(r->place, all[i].pod);

		holds &= !asks_for_more(pod);
		for (int k = 0; k < RESOURCE_STANDARD; k++)
			if (__builtin_add_overflow(total[k], asked(pod, k), &total[k]))
				holds = false;
	}
	holds |= count < 2;
	/* Reserved pods have no node yet, and may go anywhere. */
	if (r->plan->reserved.of_deletions + r->plan->reserved.of_evictions +
	    r->plan->reserved.pending)
		holds = false;
	free_of = holds && count > 1 ? find_free(r) : NULL;
	for (size_t i = 0; i < count && holds && count > 1; i++)
		holds = always_has_a_place(r, all[i].pod, free_of, total);
	free(free_of);
	free(all);
	place_revert(r->place, m);
	return holds;
}
