/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan may do as a whole: how many nodes and pods are away at once, and whether their
 * replacements may be made. The pods of one step of a node leave together, others with any of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/arith.h"
#include "shared/mem.h"

/* --- nodes */

/* Nodes in deletion count too, except cordoned ones that are empty and wait for their removal. */
static void check_parallel(const struct verify_case *c)
{
	const struct verify_plan *p = c->plan;
	const struct verify_world *w = &c->w;
	bool *busy = mem_zalloc(w->node_count + 1, sizeof(*busy));
	size_t nodes = p->node_count, drains = 0, own = 0;

	for (size_t i = 0; i < w->pod_count; i++)
		if (verify_runs(w, i) && !verify_is_bound_to_node(w->pods[i]))
			busy[w->where[i]] = true;
	for (size_t i = 0; i < p->node_count; i++)
		own += p->nodes[i].move_count > 0;
	for (size_t i = 0; i < w->node_count; i++) {
		if (w->removed[i] || !verify_is_leaving(w->nodes[i]))
			continue;
		drains += busy[i];
		nodes += busy[i] || verify_is_taken_away(w->nodes[i]) ||
			 !document_is_true(w->nodes[i], "spec.unschedulable");
	}
	free(busy);
	if ((p->node_count && (double)nodes > p->node_limit) ||
	    (own && (double)(own + drains) > p->drain_limit))
		SAY(c, LIMITS, NULL,
		    "with those in deletion %zu nodes leave at once and %zu of them have "
		    "pods, the most are %.0f and %.0f",
		    nodes, own + drains, p->node_limit, p->drain_limit);
}

/* Steps of a node: none, or all of 1, 2, .. */
static void check_order(const struct verify_case *c)
{
	const struct verify_plan *p = c->plan;

	for (size_t i = 0; i < p->move_count; i++) {
		const struct verify_move *m = &p->moves[i];
		bool before = m->step < 2, none = false;

		for (size_t k = 0; k < p->move_count; k++) {
			before |= p->moves[k].node == m->node && p->moves[k].step == m->step - 1;
			none |= p->moves[k].node == m->node && !p->moves[k].step;
		}
		if (!before || (m->step && none))
			SAY(c, ORDER, m, "it is of step %" PRId64 ", and %s of %s", m->step,
			    before ? "another pod has no step" : "none is before",
			    p->nodes[m->node].name);
	}
}

/* --- groups of pods */

/* NULL: the pod is in no group. */
static const char *group_of(const cJSON *pod)
{
	const char *name = document_text_or(pod, "spec.schedulingGroup.podGroupName",
					    document_text(pod, "spec.workloadRef.name"));

	if (!name)
		name = document_label(pod, "scheduling.x-k8s.io/pod-group");
	return name ? name : document_label(pod, "pod-group.scheduling.sigs.k8s.io");
}

static bool same_group(const cJSON *a, const cJSON *b)
{
	return verify_equal(group_of(a), group_of(b)) && verify_same(a, b, "metadata.namespace") &&
	       verify_same(a, b, "spec.workloadRef.podGroup") &&
	       verify_same(a, b, "spec.workloadRef.podGroupReplicaKey");
}

/* The minimum of the pod's group; 0: none. */
static double read_least(const struct verify_world *w, const cJSON *pod)
{
	const cJSON *ref = document_at(pod, "spec.workloadRef"), *group;
	bool workload = cJSON_IsObject(ref);

	if (!group_of(pod))
		return 0;
	group = verify_find_other(w, workload ? "Workload" : "PodGroup", verify_namespace(pod),
				  group_of(pod));
	VERIFY_EACH (part, workload ? group : NULL, "spec.podGroups")
		if (document_is(part, "name", verify_text(ref, "podGroup")))
			return verify_number(part, "policy.gang.minCount", 0);
	return verify_number(group, "spec.schedulingPolicy.gang.minCount",
			     verify_number(group, "spec.minMember", 0));
}

/*
 * Whether the group of a pod goes below its minimum and leaves as a whole. Only then a plan moves
 * pods of other nodes: those of a group of which a pod runs on the node.
 */
static void check_gang(const struct verify_case *c, size_t move)
{
	const struct verify_world *w = &c->w;
	const struct verify_move *m = &c->plan->moves[move];
	const cJSON *pod = verify_pod_of(c, move);
	int node = verify_find(&c->nodes, c->plan->nodes[m->node].name);
	int home = pod ? c->home[c->pod_of[move]] : VERIFY_NOWHERE;
	double members = 0, stay = 0, beyond = 0; /* beyond: not on nodes of the plan */
	double least = read_least(w, pod);
	bool here = false;

	for (size_t i = 0; least > 0 && i < w->pod_count; i++) {
		if (!verify_runs(w, i) || verify_is_deleted(w->pods[i]) ||
		    !same_group(pod, w->pods[i]))
			continue;
		members++;
		stay += c->move_of[i] < 0;
		beyond += !w->removed[w->where[i]];
		here |= w->where[i] == node;
	}
	c->falls[move] = members >= least && beyond < least;
	if (stay > 0 && stay < least && members >= least)
		SAY(c, GROUPS, m, "of group %s/%s %.0f pods stay, and it needs %.0f", m->namespace,
		    group_of(pod), stay, least);
	if (home >= 0 && home != node && !(here && c->falls[move]))
		SAY(c, COMPLETE, m,
		    "it does not run on %s, and no group of pods makes it leave with that",
		    c->plan->nodes[m->node].name);
}

/* --- pods at once */

/* Pods of a budget or an owner that leave. */
struct away {
	int64_t all, nodes; /* pods that count; nodes that they leave */
	int64_t at_once; /* ready ones: those without a step, and the most of any step */
	const struct verify_move *last;
};

/* The eviction API takes some pods without their budget: such that are not ready, or do not run. */
static bool uses_budget(const cJSON *budget, const cJSON *pod)
{
	double desired;

	if (!verify_same(budget, pod, "metadata.namespace") ||
	    !verify_selects(document_at(budget, "spec.selector"), pod) || verify_has_ended(pod) ||
	    document_is(pod, "status.phase", "Pending"))
		return false;
	desired = verify_number(budget, "status.desiredHealthy", 0);
	return document_has_condition(pod, "Ready") ||
	       !(document_is(budget, "spec.unhealthyPodEvictionPolicy", "AlwaysAllow") ||
		 (desired > 0 && verify_number(budget, "status.currentHealthy", 0) >= desired));
}

/*
 * Of the budget, or if that is NULL of the owner. Pods of a group that falls leave together, whatever
 * their step: at once for a budget. The share of an owner does not bound them.
 */
static struct away count_away(const struct verify_case *c, const cJSON *budget, const char *owner)
{
	int64_t *steps = mem_zalloc(c->plan->move_count + 1, sizeof(*steps)), most = 0;
	struct away a = {0};

	for (size_t i = 0; i < c->plan->move_count; i++) {
		const struct verify_move *m = &c->plan->moves[i];
		const cJSON *pod = verify_pod_of(c, i);

		if (!pod || verify_is_deleted(pod) ||
		    !(budget ? uses_budget(budget, pod)
			     : verify_equal(c->w.facts[c->pod_of[i]].owner, owner)))
			continue;
		a.all++;
		a.nodes += !a.last || a.last->node != m->node;
		a.last = m;
		if (m->step <= (int64_t)c->plan->move_count &&
		    document_has_condition(pod, "Ready") && !(c->falls[i] && !budget))
			steps[c->falls[i] ? 0 : m->step]++;
	}
	for (size_t i = 1; i <= c->plan->move_count; i++)
		most = int_max(most, steps[i]);
	a.at_once = steps[0] + most;
	free(steps);
	return a;
}

static double allowed_by(const cJSON *budget)
{
	double allowed = verify_number(budget, "status.disruptionsAllowed", 0);
	double healthy = verify_number(budget, "status.currentHealthy", 0);
	double desired = verify_number(budget, "status.desiredHealthy", 0);

	if (verify_number(budget, "status.observedGeneration", 0) <
	    verify_number(budget, "metadata.generation", 0))
		return 0;
	if (healthy > 0 || desired > 0 || document_number(budget, "status.expectedPods") > 0)
		allowed = fmin(allowed, healthy - desired);
	return fmax(allowed, 0);
}

static void check_budget(const struct verify_case *c, const cJSON *budget)
{
	const struct away a = count_away(c, budget, NULL);
	double allowed = allowed_by(budget);

	if ((double)a.all > allowed && (allowed < 1 || a.nodes > 1 || (double)a.at_once > allowed))
		SAY(c, BUDGETS, a.last,
		    "PodDisruptionBudget %s/%s allows %.0f, %" PRId64 " pods leave from %" PRId64
		    " nodes, %" PRId64 " ready ones at once",
		    verify_namespace(budget), verify_name(budget), allowed, a.all, a.nodes,
		    a.at_once);
}

/* The eviction API evicts no pod that two budgets select. */
static void check_budgets_of(const struct verify_case *c, size_t move)
{
	const cJSON *pod = verify_pod_of(c, move);
	size_t count = 0;

	VERIFY_EACH_OTHER (budget, &c->w, "PodDisruptionBudget")
		count += pod && !verify_is_deleted(pod) && uses_budget(budget, pod);
	if (count > 1)
		SAY(c, BUDGETS, &c->plan->moves[move],
		    "%zu PodDisruptionBudgets select it, the most is 1", count);
}

/* Replicas that the owner wants; those it has where that is not known. */
static double wanted_by(const struct verify_world *w, const char *namespace, const cJSON *owner,
			double present)
{
	const char *kind = verify_text(owner, "kind");
	const cJSON *o = verify_find_other(w, kind, namespace, verify_text(owner, "name"));
	double left =
		verify_number(o, "spec.completions", 1e9) - verify_number(o, "status.succeeded", 0);

	if (!document_is(o, "metadata.uid", verify_text(owner, "uid")) ||
	    verify_equal(kind, "DaemonSet"))
		return present;
	if (verify_equal(kind, "Job"))
		return fmax(0, fmin(left, verify_number(o, "spec.parallelism", 1)));
	return verify_number(o, "spec.replicas", present);
}

static void check_owner(const struct verify_case *c, const char *namespace, const cJSON *owner)
{
	const char *uid = document_text(owner, "uid");
	const struct away a = count_away(c, NULL, uid);
	double present = 0, ready = 0, wanted, allowed, missing;

	for (size_t i = 0; i < c->w.pod_count; i++) {
		const cJSON *pod = c->w.pods[i];

		if (!verify_equal(c->w.facts[i].owner, uid) || verify_has_ended(pod) ||
		    verify_is_deleted(pod))
			continue;
		present++;
		ready += document_has_condition(pod, "Ready");
	}
	wanted = wanted_by(&c->w, namespace, owner, present);
	allowed = fmax(1, floor(c->plan->owner_share * wanted));
	missing = fmax(0, wanted - ready);
	if (a.at_once && (double)a.at_once + missing > allowed)
		SAY(c, OWNERS, a.last,
		    "%" PRId64 " pods of %s %s leave at once beside %.0f that are not "
		    "ready, of %.0f may be away %.0f",
		    a.at_once, document_text_or(owner, "kind", "owner"), verify_text(owner, "name"),
		    missing, wanted, allowed);
}

/* By the first move of each owner. */
static void check_owners(const struct verify_case *c)
{
	for (size_t i = 0; i < c->plan->move_count; i++) {
		const cJSON *owner = document_controller(verify_pod_of(c, i));
		const char *uid = document_text(owner, "uid");
		size_t first = 0;

		while (first < i && !(c->pod_of[first] >= 0 &&
				      verify_equal(c->w.facts[c->pod_of[first]].owner, uid)))
			first++;
		if (uid && first == i)
			check_owner(c, c->plan->moves[i].namespace, owner);
	}
}

/* --- quotas */

/* What a pod takes of a quota's resource, such as "requests.cpu", "pods" and "count/pods". */
static int64_t asks(const cJSON *pod, const char *resource)
{
	static const char *const prefixes[] = {"requests.", "limits.", "count/"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(resource, prefixes[i], strlen(prefixes[i])) == 0)
			resource += strlen(prefixes[i]);
	return strcmp(resource, "pods") == 0 ? 1 : verify_request(pod, resource);
}

/* The first pod of the namespace that is replaced and requests some. */
static const struct verify_move *find_asking(const struct verify_case *c, const char *namespace,
					     const char *resource)
{
	for (size_t i = 0; i < c->plan->move_count; i++) {
		const cJSON *pod = verify_pod_of(c, i);

		if (document_controller(pod) && verify_equal(verify_namespace(pod), namespace) &&
		    asks(pod, resource) > 0)
			return &c->plan->moves[i];
	}
	return NULL;
}

static int64_t used_in(const struct verify_world *w, const char *namespace, const char *resource)
{
	int64_t sum = 0;

	for (size_t i = 0; i < w->pod_count; i++)
		if (verify_equal(w->facts[i].namespace, namespace) && verify_runs(w, i))
			sum = add_saturating(sum, asks(w->pods[i], resource));
	return sum;
}

/* Above its min a namespace borrows what others do not use: all of them stay within the sum. */
static void check_borrowed(const struct verify_case *c, const cJSON *quota, const char *resource)
{
	const struct verify_move *m = find_asking(c, verify_namespace(quota), resource);
	int64_t used = 0, least = 0;

	if (!m || used_in(&c->w, verify_namespace(quota), resource) <=
			  verify_amount(document_at(quota, "spec.min"), resource))
		return;
	VERIFY_EACH_OTHER (o, &c->w, "ElasticQuota") {
		used = add_saturating(used, used_in(&c->w, verify_namespace(o), resource));
		least = add_saturating(least, verify_amount(document_at(o, "spec.min"), resource));
	}
	if (least && used > least)
		SAY(c, QUOTAS, m,
		    "ElasticQuotas: %s: %" PRId64 " are used of all min %" PRId64
		    ": its replacement would wait",
		    resource, used, least);
}

static void check_quota(const struct verify_case *c, const cJSON *quota, bool elastic)
{
	const char *namespace = verify_namespace(quota),
		   *most = elastic ? "spec.max" : "status.hard";

	VERIFY_EACH_MEMBER (item, quota, most) {
		const struct verify_move *m = find_asking(c, namespace, item->string);
		int64_t bound = verify_amount(document_at(quota, most), item->string);
		int64_t is =
			elastic ? used_in(&c->w, namespace, item->string)
				: verify_amount(document_at(quota, "status.used"), item->string);

		if (m && is > bound)
			SAY(c, QUOTAS, m,
			    "%s %s/%s: %s: %" PRId64 " are used of %" PRId64
			    ": its replacement would be refused",
			    verify_text(quota, "kind"), namespace, verify_name(quota), item->string,
			    is, bound);
	}
	VERIFY_EACH_MEMBER (item, elastic ? quota : NULL, "spec.min")
		check_borrowed(c, quota, item->string);
}

void verify_check_limits(const struct verify_case *c)
{
	for (size_t i = 0; i < c->plan->move_count; i++)
		check_gang(c, i);
	if (c->plan->limited)
		check_parallel(c);
	check_order(c);
	VERIFY_EACH (group, c->plan->groups, "")
		for (size_t n = 0; n < c->w.node_count; n++) {
			const char *name = verify_name(c->w.nodes[n]);

			if (verify_contains(group, "nodes", name) && !c->w.removed[n] &&
			    !verify_is_leaving(c->w.nodes[n]))
				SAY(c, GROUPS, NULL,
				    "group %s leaves as a whole, and node %s stays",
				    verify_text(group, "name"), name);
		}
	VERIFY_EACH_OTHER (budget, &c->w, "PodDisruptionBudget")
		check_budget(c, budget);
	VERIFY_EACH_OTHER (quota, &c->w, "ResourceQuota")
		check_quota(c, quota, false);
	VERIFY_EACH_OTHER (quota, &c->w, "ElasticQuota")
		check_quota(c, quota, true);
	for (size_t i = 0; i < c->plan->move_count; i++)
		check_budgets_of(c, i);
	if (c->plan->limited)
		check_owners(c);
}
