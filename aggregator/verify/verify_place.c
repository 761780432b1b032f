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
	error_set(q->error, "%s: %" PRId64 " requested, %" PRId64 " of %" PRId64 " are taken",
		  resource, want, taken, have);
	return false;
}

static bool list_fits(const struct verify_question *q, const cJSON *list)
{
	for (const cJSON *item = verify_first(list); item; item = item->next)
		if (!resource_fits(q, item->string))
			return false;
	return true;
}

static bool containers_fit(const struct verify_question *q, const char *path)
{
	for (const cJSON *item = verify_first(verify_at(q->pod, path)); item; item = item->next)
		if (!list_fits(q, verify_at(item, "resources.requests")) ||
		    !list_fits(q, verify_at(item, "resources.limits")))
			return false;
	return true;
}

bool verify_room(const struct verify_question *q)
{
	int64_t most = verify_amount(verify_at(q->node, "status.allocatable"), "pods"), count = 0;

	for (size_t i = 0; i < q->w->pod_count; i++)
		count += is_here(q, i);
	if (count + 1 > most) {
		error_set(q->error, "pods: %" PRId64 " of %" PRId64 " are there", count, most);
		return false;
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

	if (*want_effect && !verify_equal(want_effect, effect))
		return false;
	if (*want_key && !verify_equal(want_key, key))
		return false;
	return verify_equal(op, "Exists") ||
	       (verify_equal(op, "Equal") &&
		verify_equal(verify_text(toleration, "value", ""), value));
}

static bool pod_tolerates(const cJSON *pod, const char *key, const char *value, const char *effect)
{
	const cJSON *item = verify_first(verify_at(pod, "spec.tolerations"));

	while (item && !tolerates(item, key, value, effect))
		item = item->next;
	return item;
}

static bool taints_allow(const struct verify_question *q, const cJSON *node, struct error *error)
{
	const cJSON *taint = verify_first(verify_at(node, "spec.taints"));

	for (; taint; taint = taint->next) {
		const char *key = verify_text(taint, "key", "");
		const char *effect = verify_text(taint, "effect", "");

		if (verify_equal(effect, "PreferNoSchedule") ||
		    pod_tolerates(q->pod, key, verify_text(taint, "value", ""), effect))
			continue;
		error_set(error, "taint %s:%s of %s", key, effect, verify_name(node));
		return false;
	}
	return true;
}

bool verify_taints(const struct verify_question *q)
{
	return taints_allow(q, q->node, q->error);
}

bool verify_cordon(const struct verify_question *q)
{
	if (!cJSON_IsTrue(verify_at(q->node, "spec.unschedulable")) ||
	    pod_tolerates(q->pod, UNSCHEDULABLE, "", "NoSchedule"))
		return true;
	error_set(q->error, "%s is cordoned", verify_name(q->node));
	return false;
}

/* --- node affinity */

#define REQUIRED ".requiredDuringSchedulingIgnoredDuringExecution"

static bool node_wanted(const cJSON *pod, const cJSON *node)
{
	const cJSON *want = verify_first(verify_at(pod, "spec.nodeSelector"));

	for (; want; want = want->next)
		if (!verify_equal(want->valuestring, verify_label(node, want->string)))
			return false;
	return verify_node_selector(verify_at(pod, "spec.affinity.nodeAffinity" REQUIRED), node,
				    verify_name(node));
}

bool verify_node_affinity(const struct verify_question *q)
{
	if (node_wanted(q->pod, q->node))
		return true;
	error_set(q->error, "%s is not what nodeSelector or node affinity require",
		  verify_name(q->node));
	return false;
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

/* The term of owner means other. */
static bool term_means(const struct verify_question *q, const cJSON *term, const cJSON *owner,
		       const cJSON *other)
{
	const cJSON *key = verify_first(verify_get(term, "mismatchLabelKeys"));

	for (; key; key = key->next) {
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

/* Some term of owner's anti-affinity means other, and keeps them apart. */
static bool keeps_apart(const struct verify_question *q, const cJSON *owner, const cJSON *other,
			const cJSON *there)
{
	const cJSON *term =
		verify_first(verify_at(owner, "spec.affinity.podAntiAffinity" REQUIRED));

	while (term && !(same_domain(term, q->node, there) && term_means(q, term, owner, other)))
		term = term->next;
	return term;
}

bool verify_anti_affinity(const struct verify_question *q)
{
	for (size_t i = 0; i < q->w->pod_count; i++) {
		const cJSON *other = q->w->pods[i];

		if (!verify_is_there(q, i) || (!keeps_apart(q, q->pod, other, node_of(q, i)) &&
					       !keeps_apart(q, other, q->pod, node_of(q, i))))
			continue;
		error_set(q->error, "anti-affinity with %s/%s on %s", verify_namespace(other),
			  verify_name(other), verify_name(node_of(q, i)));
		return false;
	}
	return true;
}

static bool all_terms_mean(const struct verify_question *q, const cJSON *terms, const cJSON *other)
{
	const cJSON *term = verify_first(terms);

	while (term && term_means(q, term, q->pod, other))
		term = term->next;
	return !term;
}

/* A pod that all terms mean is in the term's domain of this node; *anywhere: or of any other. */
static bool has_company(const struct verify_question *q, const cJSON *terms, const cJSON *term,
			bool *anywhere)
{
	bool here = false;

	for (size_t i = 0; i < q->w->pod_count; i++) {
		if (!verify_is_there(q, i) || !all_terms_mean(q, terms, q->w->pods[i]))
			continue;
		*anywhere |=
			verify_label(node_of(q, i), verify_text(term, "topologyKey", "")) != NULL;
		here |= same_domain(term, q->node, node_of(q, i));
	}
	return here;
}

/* The first of pods that require each other may go anywhere where all the labels are. */
bool verify_affinity(const struct verify_question *q)
{
	const cJSON *terms = verify_at(q->pod, "spec.affinity.podAffinity" REQUIRED);
	bool all = true, anywhere = false;

	for (const cJSON *term = verify_first(terms); term; term = term->next) {
		const char *key = verify_text(term, "topologyKey", "");

		if (!verify_label(q->node, key)) {
			error_set(q->error, "affinity: %s has no label %s", verify_name(q->node),
				  key);
			return false;
		}
		all &= has_company(q, terms, term, &anywhere);
	}
	if (all || (!anywhere && all_terms_mean(q, terms, q->pod)))
		return true;
	error_set(q->error, "affinity: no required pod is in the domain of %s",
		  verify_name(q->node));
	return false;
}

/* --- topology spread */

static bool is_hard(const cJSON *constraint)
{
	return !verify_equal(verify_text(constraint, "whenUnsatisfiable", ""), "ScheduleAnyway");
}

static bool counts_as_domain(const struct verify_question *q, const cJSON *constraint, size_t at)
{
	const cJSON *node = q->w->nodes[at];
	const cJSON *item = verify_first(verify_at(q->pod, "spec.topologySpreadConstraints"));

	/* Another node is a domain only where it has the keys of all hard constraints. */
	for (; item; item = item->next)
		if (is_hard(item) && !verify_label(node, verify_text(item, "topologyKey", "")))
			return false;
	if (verify_equal(verify_text(constraint, "nodeAffinityPolicy", "Honor"), "Honor") &&
	    !node_wanted(q->pod, node))
		return false;
	if (!verify_equal(verify_text(constraint, "nodeTaintsPolicy", "Ignore"), "Honor"))
		return true;
	/* A node that the plan cordons gets a taint. */
	return taints_allow(q, node, NULL) &&
	       (!q->w->drained || !q->w->drained[at] ||
		pod_tolerates(q->pod, UNSCHEDULABLE, "", "NoSchedule"));
}

static bool constraint_means(const struct verify_question *q, const cJSON *constraint,
			     const cJSON *other)
{
	return verify_selects(verify_get(constraint, "labelSelector"), other) &&
	       verify_same_labels(verify_get(constraint, "matchLabelKeys"), q->pod, other);
}

/* A selector without a requirement counts no pods, though it means the pod itself. */
static bool requires_nothing(const struct verify_question *q, const cJSON *constraint)
{
	const cJSON *key = verify_first(verify_get(constraint, "matchLabelKeys"));

	while (key && !verify_label(q->pod, key->valuestring))
		key = key->next;
	return !key && !verify_first(verify_at(constraint, "labelSelector.matchLabels")) &&
	       !verify_first(verify_at(constraint, "labelSelector.matchExpressions"));
}

struct domain {
	const char *value; /* NULL: the node is none */
	int64_t pods;
};

/* By node; each domain's pods stand at its first node, and its others are none. */
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
		    constraint_means(q, constraint, q->w->pods[i]))
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
	int64_t here = constraint_means(q, constraint, q->pod), least = INT64_MAX, domains = 0;
	struct domain *of;

	if (!value) {
		error_set(q->error, "spread: %s has no label %s", verify_name(q->node), key);
		return false;
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
	error_set(q->error,
		  "spread: %" PRId64 " pods in %s=%s would be %" PRId64 " above %" PRId64
		  " of the emptiest, the most is %.0f",
		  here, key, value, here - least, least, most);
	return false;
}

bool verify_spread(const struct verify_question *q)
{
	const cJSON *item = verify_first(verify_at(q->pod, "spec.topologySpreadConstraints"));

	while (item && (!is_hard(item) || constraint_holds(q, item)))
		item = item->next;
	return !item;
}

/* --- host ports */

/* The first or next open host port of a pod; *container: 0 at first. NULL: there are no more. */
static const cJSON *next_port(const cJSON *pod, size_t *at)
{
	static const char *const lists[] = {"spec.containers", "spec.initContainers"};
	size_t count = 0;

	for (int init = 0; init < 2; init++)
		for (const cJSON *one = verify_first(verify_at(pod, lists[init])); one;
		     one = one->next)
			for (const cJSON *port = verify_first(verify_get(one, "ports")); port;
			     port = port->next)
				if (verify_number(port, "hostPort", 0) > 0 &&
				    (!init || verify_is_sidecar(one)) && count++ == *at) {
					++*at;
					return port;
				}
	return NULL;
}

static const char *address_of(const cJSON *port)
{
	const char *ip = verify_text(port, "hostIP", "");

	return *ip ? ip : "0.0.0.0";
}

static bool ports_clash(const cJSON *a, const cJSON *b)
{
	const char *one = address_of(a), *two = address_of(b);

	return (int)verify_number(a, "hostPort", 0) == (int)verify_number(b, "hostPort", 0) &&
	       verify_equal(verify_text(a, "protocol", "TCP"), verify_text(b, "protocol", "TCP")) &&
	       (verify_equal(one, two) || verify_equal(one, "0.0.0.0") ||
		verify_equal(two, "0.0.0.0"));
}

static bool port_free(const struct verify_question *q, const cJSON *port)
{
	for (size_t i = 0; i < q->w->pod_count; i++) {
		size_t at = 0;
		const cJSON *other = is_here(q, i) ? next_port(q->w->pods[i], &at) : NULL;

		while (other && !ports_clash(port, other))
			other = next_port(q->w->pods[i], &at);
		if (!other)
			continue;
		error_set(q->error, "host port %.0f is taken by %s/%s",
			  verify_number(port, "hostPort", 0), verify_namespace(q->w->pods[i]),
			  verify_name(q->w->pods[i]));
		return false;
	}
	return true;
}

bool verify_host_ports(const struct verify_question *q)
{
	const cJSON *port;
	size_t at = 0;

	while ((port = next_port(q->pod, &at)))
		if (!port_free(q, port))
			return false;
	return true;
}

/* --- what nobody can judge */

static bool operators_known(const cJSON *list, const char *known)
{
	const cJSON *item = verify_first(list);

	while (item && strstr(known, verify_text(item, "operator", "Equal")))
		item = item->next;
	return !item;
}

bool verify_judged(const struct verify_question *q)
{
	const cJSON *term = verify_first(
		verify_at(q->pod, "spec.affinity.nodeAffinity" REQUIRED ".nodeSelectorTerms"));

	while (term && operators_known(verify_get(term, "matchExpressions"),
				       "In NotIn Exists DoesNotExist Gt Lt"))
		term = term->next;
	if (term || !operators_known(verify_at(q->pod, "spec.tolerations"), "Equal Exists"))
		error_set(q->error, "an operator of its node affinity or tolerations is unknown");
	else if (verify_first(verify_at(q->pod, "spec.resourceClaims")))
		error_set(q->error, "resource claims are not judged");
	else
		return true;
	return false;
}

/* --- destinations */

bool verify_is_leaving(const cJSON *node)
{
	const cJSON *taint = verify_first(verify_at(node, "spec.taints"));

	for (; taint; taint = taint->next) {
		const char *key = verify_text(taint, "key", "");

		if (verify_equal(key, "ToBeDeletedByClusterAutoscaler") ||
		    verify_equal(key, "karpenter.sh/disrupted"))
			return true;
	}
	return verify_at(node, "metadata.deletionTimestamp") ||
	       verify_get(verify_at(node, "metadata.annotations"), "evenkeel.io/draining");
}

bool verify_destination(const struct verify_question *q)
{
	if (!q->w->removed[q->node_at] && !verify_is_leaving(q->node))
		return true;
	error_set(q->error, "%s is drained by the plan, or in deletion", verify_name(q->node));
	return false;
}
