/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of the kube-scheduler, each a function that answers for one pod and one node as its
 * documentation says, with loops over everything. A pod is where the world says, whatever its spec
 * says; one that has ended counts for nothing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/arith.h"
#include "shared/mem.h"

#define UNSCHEDULABLE "node.kubernetes.io/unschedulable"

const cJSON *verify_find_other(const struct verify_world *w, const char *kind,
			       const char *namespace, const char *name)
{
	for (size_t i = 0; i < w->other_count; i++)
		if (verify_is_kind(w->others[i], kind) &&
		    verify_equal(verify_name(w->others[i]), name) &&
		    verify_equal(verify_namespace(w->others[i]), namespace))
			return w->others[i];
	return NULL;
}

bool verify_is_there(const struct verify_question *q, size_t pod)
{
	return pod != q->pod_at && q->w->where[pod] >= 0 && !verify_has_ended(q->w->pods[pod]);
}

static bool is_here(const struct verify_question *q, size_t pod)
{
	return q->w->where[pod] == (int)q->node_at && verify_is_there(q, pod);
}

static const cJSON *node_of(const struct verify_question *q, size_t pod)
{
	return q->w->nodes[q->w->where[pod]];
}

/* --- resources */

static bool resource_fits(const struct verify_question *q, const char *resource)
{
	int64_t want = verify_request(q->pod, resource), have, taken = 0;

	if (want == 0)
		return true;
	for (size_t i = 0; i < q->w->pod_count; i++)
		if (is_here(q, i))
			taken = add_saturating(taken, verify_request(q->w->pods[i], resource));
	have = verify_amount(verify_at(q->node, "status.allocatable"), resource);
	if (add_saturating(want, taken) <= have)
		return true;
	return verify_refuse(q, "%s: %" PRId64 " requested, %" PRId64 " of %" PRId64 " are taken",
			     resource, want, taken, have);
}

static bool list_fits(const struct verify_question *q, const cJSON *list)
{
	VERIFY_EACH_MEMBER (item, list)
		if (!resource_fits(q, item->string))
			return false;
	return true;
}

static bool containers_fit(const struct verify_question *q, const char *path)
{
	VERIFY_EACH (item, verify_at(q->pod, path))
		if (!list_fits(q, verify_at(item, "resources.requests")) ||
		    !list_fits(q, verify_at(item, "resources.limits")))
			return false;
	return true;
}

static bool room(const struct verify_question *q)
{
	int64_t most = verify_amount(verify_at(q->node, "status.allocatable"), "pods"), count = 0;

	for (size_t i = 0; i < q->w->pod_count; i++)
		count += is_here(q, i);
	if (count + 1 > most) {
		return verify_refuse(q, "pods: %" PRId64 " of %" PRId64 " are there", count, most);
	}
	return containers_fit(q, "spec.containers") && containers_fit(q, "spec.initContainers") &&
	       list_fits(q, verify_at(q->pod, "spec.resources.requests")) &&
	       list_fits(q, verify_at(q->pod, "spec.overhead"));
}

/* --- taints and cordons */

static bool tolerates(const cJSON *toleration, const char *key, const char *value,
		      const char *effect)
{
	const char *want_effect = verify_text(toleration, "effect", "");
	const char *want_key = verify_text(toleration, "key", "");
	const char *op = verify_text(toleration, "operator", "Equal");

	return (!*want_effect || verify_equal(want_effect, effect)) &&
	       (!*want_key || verify_equal(want_key, key)) &&
	       (verify_equal(op, "Exists") ||
		(verify_equal(op, "Equal") &&
		 verify_equal(verify_text(toleration, "value", ""), value)));
}

static bool pod_tolerates(const cJSON *pod, const char *key, const char *value, const char *effect)
{
	VERIFY_EACH (item, verify_at(pod, "spec.tolerations"))
		if (tolerates(item, key, value, effect))
			return true;
	return false;
}

static bool taints(const struct verify_question *q)
{
	VERIFY_EACH (taint, verify_at(q->node, "spec.taints")) {
		const char *key = verify_text(taint, "key", "");
		const char *effect = verify_text(taint, "effect", "");

		if (!verify_equal(effect, "PreferNoSchedule") &&
		    !pod_tolerates(q->pod, key, verify_text(taint, "value", ""), effect))
			return verify_refuse(q, "taint %s:%s of %s", key, effect,
					     verify_name(q->node));
	}
	return true;
}

static bool cordon(const struct verify_question *q)
{
	if (!cJSON_IsTrue(verify_at(q->node, "spec.unschedulable")) ||
	    pod_tolerates(q->pod, UNSCHEDULABLE, "", "NoSchedule"))
		return true;
	return verify_refuse(q, "%s is cordoned", verify_name(q->node));
}

/* --- node affinity */

#define REQUIRED ".requiredDuringSchedulingIgnoredDuringExecution"

static bool node_wanted(const cJSON *pod, const cJSON *node)
{
	VERIFY_EACH_MEMBER (want, verify_at(pod, "spec.nodeSelector"))
		if (!verify_equal(want->valuestring, verify_label(node, want->string)))
			return false;
	return verify_node_selector(verify_at(pod, "spec.affinity.nodeAffinity" REQUIRED), node,
				    verify_name(node));
}

static bool node_affinity(const struct verify_question *q)
{
	if (node_wanted(q->pod, q->node))
		return true;
	return verify_refuse(q, "%s is not what nodeSelector or node affinity require",
			     verify_name(q->node));
}

/* --- affinity between pods */

static bool term_covers_namespace(const struct verify_question *q, const cJSON *term,
				  const cJSON *owner, const char *namespace)
{
	const cJSON *selector = verify_get(term, "namespaceSelector");
	const cJSON *names = verify_get(term, "namespaces");

	if (!selector && !verify_first(names))
		return verify_equal(namespace, verify_namespace(owner));
	return verify_contains(names, namespace) ||
	       verify_selects(selector, verify_find_other(q->w, "Namespace", "", namespace));
}

/* Whether the owner's term selects the other pod. */
static bool term_selects(const struct verify_question *q, const cJSON *term, const cJSON *owner,
			 const cJSON *other)
{
	VERIFY_EACH (key, verify_get(term, "mismatchLabelKeys")) {
		const char *own = verify_label(owner, key->valuestring);

		if (own && verify_equal(own, verify_label(other, key->valuestring)))
			return false;
	}
	return verify_selects(verify_get(term, "labelSelector"), other) &&
	       verify_same_labels(verify_get(term, "matchLabelKeys"), owner, other) &&
	       term_covers_namespace(q, term, owner, verify_namespace(other));
}

/* Both nodes have the label, with one value. */
static bool same_domain(const cJSON *term, const cJSON *a, const cJSON *b)
{
	const char *key = verify_text(term, "topologyKey", "");

	return verify_equal(verify_label(a, key), verify_label(b, key));
}

/* Whether a term of the owner's anti-affinity selects the other pod and covers both nodes. */
static bool keeps_apart(const struct verify_question *q, const cJSON *owner, const cJSON *other,
			const cJSON *there)
{
	const cJSON *term =
		verify_first(verify_at(owner, "spec.affinity.podAntiAffinity" REQUIRED));

	while (term && !(same_domain(term, q->node, there) && term_selects(q, term, owner, other)))
		term = term->next;
	return term;
}

static bool anti_affinity(const struct verify_question *q)
{
	for (size_t i = 0; i < q->w->pod_count; i++) {
		const cJSON *other = q->w->pods[i];

		if (!verify_is_there(q, i) || (!keeps_apart(q, q->pod, other, node_of(q, i)) &&
					       !keeps_apart(q, other, q->pod, node_of(q, i))))
			continue;
		return verify_refuse(q, "anti-affinity with %s/%s on %s", verify_namespace(other),
				     verify_name(other), verify_name(node_of(q, i)));
	}
	return true;
}

static bool all_terms_select(const struct verify_question *q, const cJSON *terms,
			     const cJSON *other)
{
	const cJSON *term = verify_first(terms);

	while (term && term_selects(q, term, q->pod, other))
		term = term->next;
	return !term;
}

/*
 * Whether a pod that all terms select runs in the term's domain of this node; *anywhere: in any
 * domain.
 */
static bool has_company(const struct verify_question *q, const cJSON *terms, const cJSON *term,
			bool *anywhere)
{
	bool here = false;

	for (size_t i = 0; i < q->w->pod_count; i++) {
		if (!verify_is_there(q, i) || !all_terms_select(q, terms, q->w->pods[i]))
			continue;
		*anywhere |=
			verify_label(node_of(q, i), verify_text(term, "topologyKey", "")) != NULL;
		here |= same_domain(term, q->node, node_of(q, i));
	}
	return here;
}

/* The first of pods that require each other may go anywhere where all the labels are. */
static bool affinity(const struct verify_question *q)
{
	const cJSON *terms = verify_at(q->pod, "spec.affinity.podAffinity" REQUIRED);
	bool all = true, anywhere = false;

	VERIFY_EACH (term, terms) {
		const char *key = verify_text(term, "topologyKey", "");

		if (!verify_label(q->node, key)) {
			return verify_refuse(q, "affinity: %s has no label %s",
					     verify_name(q->node), key);
		}
		all &= has_company(q, terms, term, &anywhere);
	}
	if (all || (!anywhere && all_terms_select(q, terms, q->pod)))
		return true;
	return verify_refuse(q, "affinity: no required pod is in the domain of %s",
			     verify_name(q->node));
}

/* --- topology spread */

static bool is_hard(const cJSON *constraint)
{
	return !verify_equal(verify_text(constraint, "whenUnsatisfiable", ""), "ScheduleAnyway");
}

static bool counts_as_domain(const struct verify_question *q, const cJSON *constraint, size_t at)
{
	const cJSON *node = q->w->nodes[at];
	const struct verify_question there = {.pod = q->pod, .node = node};

	/* A node counts only if it has the keys of all hard constraints. */
	VERIFY_EACH (item, verify_at(q->pod, "spec.topologySpreadConstraints"))
		if (is_hard(item) && !verify_label(node, verify_text(item, "topologyKey", "")))
			return false;
	if (verify_equal(verify_text(constraint, "nodeAffinityPolicy", "Honor"), "Honor") &&
	    !node_wanted(q->pod, node))
		return false;
	if (!verify_equal(verify_text(constraint, "nodeTaintsPolicy", "Ignore"), "Honor"))
		return true;
	/* A node that the plan cordons gets a taint. */
	return taints(&there) && (!q->w->drained || !q->w->drained[at] ||
				  pod_tolerates(q->pod, UNSCHEDULABLE, "", "NoSchedule"));
}

static bool constraint_selects(const struct verify_question *q, const cJSON *constraint,
			       const cJSON *other)
{
	return verify_selects(verify_get(constraint, "labelSelector"), other) &&
	       verify_same_labels(verify_get(constraint, "matchLabelKeys"), q->pod, other);
}

/* A selector without a requirement counts no pods, though it selects the pod itself. */
static bool requires_nothing(const struct verify_question *q, const cJSON *constraint)
{
	const cJSON *key = verify_first(verify_get(constraint, "matchLabelKeys"));

	while (key && !verify_label(q->pod, key->valuestring))
		key = key->next;
	return !key && !verify_first_member(verify_at(constraint, "labelSelector.matchLabels")) &&
	       !verify_first(verify_at(constraint, "labelSelector.matchExpressions"));
}

struct domain {
	const char *value; /* NULL: unused */
	int64_t pods;
};

/* An entry for each node; the entry of a domain's first node has all its pods, others are unused. */
static struct domain *count_domains(const struct verify_question *q, const cJSON *constraint)
{
	const char *key = verify_text(constraint, "topologyKey", "");
	struct domain *of = mem_zalloc(q->w->node_count + 1, sizeof(*of));
	bool idle = requires_nothing(q, constraint);

	for (size_t i = 0; i < q->w->node_count; i++)
		if (counts_as_domain(q, constraint, i))
			of[i].value = verify_label(q->w->nodes[i], key);
	for (size_t i = 0; i < q->w->pod_count && !idle; i++)
		if (verify_is_there(q, i) && of[q->w->where[i]].value &&
		    !verify_at(q->w->pods[i], "metadata.deletionTimestamp") &&
		    verify_equal(verify_namespace(q->w->pods[i]), verify_namespace(q->pod)) &&
		    constraint_selects(q, constraint, q->w->pods[i]))
			of[q->w->where[i]].pods++;
	for (size_t i = 0; i < q->w->node_count; i++)
		for (size_t k = i + 1; of[i].value && k < q->w->node_count; k++)
			if (verify_equal(of[i].value, of[k].value)) {
				of[i].pods += of[k].pods;
				of[k] = (struct domain){0};
			}
	return of;
}

static bool constraint_holds(const struct verify_question *q, const cJSON *constraint)
{
	const char *key = verify_text(constraint, "topologyKey", "");
	const char *value = verify_label(q->node, key);
	double most = verify_number(constraint, "maxSkew", 1);
	int64_t here = constraint_selects(q, constraint, q->pod), least = INT64_MAX, domains = 0;
	struct domain *of;

	if (!value) {
		return verify_refuse(q, "spread: %s has no label %s", verify_name(q->node), key);
	}
	of = count_domains(q, constraint);
	for (size_t i = 0; i < q->w->node_count; i++) {
		if (!of[i].value)
			continue;
		domains++;
		least = int_min(least, of[i].pods);
		here += verify_equal(of[i].value, value) ? of[i].pods : 0;
	}
	free(of);
	if (!domains || (double)domains < verify_number(constraint, "minDomains", 1))
		least = 0;
	if ((double)(here - least) <= most)
		return true;
	return verify_refuse(q,
			     "spread: %" PRId64 " pods in %s=%s would be %" PRId64 " above %" PRId64
			     " of the emptiest, the most is %.0f",
			     here, key, value, here - least, least, most);
}

static bool spread(const struct verify_question *q)
{
	const cJSON *item = verify_first(verify_at(q->pod, "spec.topologySpreadConstraints"));

	while (item && (!is_hard(item) || constraint_holds(q, item)))
		item = item->next;
	return !item;
}

/* --- host ports */

static const char *address_of(const cJSON *port)
{
	const char *ip = verify_text(port, "hostIP", "");

	return *ip ? ip : "0.0.0.0";
}

static bool ports_clash(const cJSON *a, const cJSON *b)
{
	const char *one = address_of(a), *two = address_of(b);

	return verify_number(a, "hostPort", 0) == verify_number(b, "hostPort", 0) &&
	       verify_equal(verify_text(a, "protocol", "TCP"), verify_text(b, "protocol", "TCP")) &&
	       (verify_equal(one, two) || verify_equal(one, "0.0.0.0") ||
		verify_equal(two, "0.0.0.0"));
}

/* The first open host port of a pod that clashes with one of the other pod, or with this port. */
static const cJSON *find_clash(const cJSON *pod, const cJSON *other, const cJSON *with)
{
	static const char *const lists[] = {"spec.containers", "spec.initContainers"};

	for (int init = 0; init < 2; init++)
		VERIFY_EACH (one, verify_at(pod, lists[init]))
			VERIFY_EACH (port, verify_get(one, "ports"))
				if (verify_number(port, "hostPort", 0) > 0 &&
				    (!init || verify_is_sidecar(one)) &&
				    (with ? ports_clash(port, with)
					  : find_clash(other, NULL, port) != NULL))
					return port;
	return NULL;
}

static bool host_ports(const struct verify_question *q)
{
	for (size_t i = 0; i < q->w->pod_count; i++) {
		const cJSON *other = q->w->pods[i];
		const cJSON *port = is_here(q, i) ? find_clash(q->pod, other, NULL) : NULL;

		if (port)
			return verify_refuse(q, "host port %.0f is taken by %s/%s",
					     verify_number(port, "hostPort", 0),
					     verify_namespace(other), verify_name(other));
	}
	return true;
}

/* --- fields without a rule here */

static bool operators_known(const cJSON *list, const char *known)
{
	const cJSON *item = verify_first(list);

	while (item && strstr(known, verify_text(item, "operator", "Equal")))
		item = item->next;
	return !item;
}

static bool judged(const struct verify_question *q)
{
	const cJSON *term = verify_first(
		verify_at(q->pod, "spec.affinity.nodeAffinity" REQUIRED ".nodeSelectorTerms"));

	while (term && operators_known(verify_get(term, "matchExpressions"),
				       "In NotIn Exists DoesNotExist Gt Lt"))
		term = term->next;
	if (term || !operators_known(verify_at(q->pod, "spec.tolerations"), "Equal Exists"))
		return verify_refuse(q,
				     "an operator of its node affinity or tolerations is unknown");
	return !verify_first(verify_at(q->pod, "spec.resourceClaims")) ||
	       verify_refuse(q, "resource claims are not judged");
}

/* --- destinations */

bool verify_is_taken_away(const cJSON *node)
{
	VERIFY_EACH (taint, verify_at(node, "spec.taints")) {
		const char *key = verify_text(taint, "key", "");

		if (verify_equal(key, "ToBeDeletedByClusterAutoscaler") ||
		    verify_equal(key, "karpenter.sh/disrupted") ||
		    verify_equal(key, "karpenter.sh/disruption"))
			return true;
	}
	return verify_at(node, "metadata.deletionTimestamp");
}

bool verify_is_leaving(const cJSON *node)
{
	const char *draining = verify_annotation(node, "evenkeel.io/draining");

	return verify_is_taken_away(node) || verify_has_condition(node, "DrainInProgress") ||
	       (draining && !verify_equal(draining, "false"));
}

static bool destination(const struct verify_question *q)
{
	static const char *const conditions[] = {"Drained", "GracefulNodeShutdownInProgress",
						 "MaintenancePlanned", "MaintenanceInProgress"};

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (verify_has_condition(q->node, conditions[i]))
			return verify_refuse(q, "%s has the condition %s", verify_name(q->node),
					     conditions[i]);
	return (!q->w->removed[q->node_at] && !verify_is_leaving(q->node)) ||
	       verify_refuse(q, "%s is drained by the plan, or in deletion", verify_name(q->node));
}

bool verify_filter(enum verify_invariant i, const struct verify_question *q)
{
	static bool (*const filters[VERIFY_INVARIANTS])(const struct verify_question *q) = {
		[VERIFY_DESTINATION] = destination, [VERIFY_ROOM] = room,
		[VERIFY_TAINTS] = taints,	    [VERIFY_NODE_AFFINITY] = node_affinity,
		[VERIFY_CORDON] = cordon,	    [VERIFY_ANTI_AFFINITY] = anti_affinity,
		[VERIFY_AFFINITY] = affinity,	    [VERIFY_SPREAD] = spread,
		[VERIFY_HOST_PORTS] = host_ports,   [VERIFY_VOLUMES] = verify_volumes,
		[VERIFY_JUDGED] = judged,
	};

	return !filters[i] || filters[i](q);
}
