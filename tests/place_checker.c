/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each filter is one function that says yes or no about one pod and one node, written as the
 * documentation of the kube-scheduler says it: with loops over everything. The order in which they
 * stand in `filters` is that of enum place_filter.
 *
 * A pod is somewhere where `where` says so, whatever its spec says; one that has ended counts for
 * nothing. Objects are taken to be valid as an API server makes sure: what it would refuse aborts
 * the test or means nothing.
 */
#include "tests/place_checker.h"

#include <inttypes.h>
#include <string.h>

#include "tests/place_checker_parts.h"

const cJSON *check_find_other(const struct place_checker *c, const char *kind,
			      const char *namespace, const char *name)
{
	for (size_t i = 0; i < c->other_count; i++)
		if (check_equal(check_text_of(c->others[i], "kind", ""), kind) &&
		    check_equal(check_namespace_of(c->others[i]), namespace) &&
		    check_equal(check_name_of(c->others[i]), name))
			return c->others[i];
	return NULL;
}

/* The pod counts where it is, and is not the one that is asked about. */
bool check_is_there(const struct question *q, size_t pod)
{
	return pod != q->pod_at && q->c->where[pod] >= 0 && !check_has_ended(q->c->pods[pod]);
}

static const cJSON *node_of(const struct question *q, size_t pod)
{
	return q->c->nodes[q->c->where[pod]];
}

/* --- resources */

static int64_t used(const struct question *q, const char *resource)
{
	int64_t sum = 0;

	for (size_t i = 0; i < q->c->pod_count; i++)
		if (check_is_there(q, i) && q->c->where[i] == (int)q->node_at)
			sum += check_pod_request(q->c->pods[i], resource);
	return sum;
}

static bool resource_fits(const struct question *q, const char *resource)
{
	int64_t want = check_pod_request(q->pod, resource), have, taken;

	if (want == 0)
		return true;
	have = check_amount_in(check_get(check_get(q->node, "status"), "allocatable"), resource);
	taken = used(q, resource);
	if (want <= have - taken)
		return true;
	error_set(q->error, "%s: wants %" PRId64 ", %" PRId64 " of %" PRId64 " are taken", resource,
		  want, taken, have);
	return false;
}

static bool list_fits(const struct question *q, const cJSON *list)
{
	for (const cJSON *item = check_first_of(list); item; item = item->next)
		if (!resource_fits(q, item->string))
			return false;
	return true;
}

static bool containers_fit(const struct question *q, const cJSON *containers)
{
	for (const cJSON *item = check_first_of(containers); item; item = item->next)
		if (!list_fits(q, check_get(check_get(item, "resources"), "requests")) ||
		    !list_fits(q, check_get(check_get(item, "resources"), "limits")))
			return false;
	return true;
}

static bool fits(const struct question *q)
{
	int64_t most = check_amount_in(check_get(check_get(q->node, "status"), "allocatable"),
				       "pods"),
		count = 0;

	for (size_t i = 0; i < q->c->pod_count; i++)
		count += check_is_there(q, i) && q->c->where[i] == (int)q->node_at;
	if (count + 1 > most) {
		error_set(q->error, "pods: %" PRId64 " of %" PRId64 " are there", count, most);
		return false;
	}
	return containers_fit(q, check_spec_of(q->pod, "containers")) &&
	       containers_fit(q, check_spec_of(q->pod, "initContainers")) &&
	       list_fits(q, check_get(check_spec_of(q->pod, "resources"), "requests")) &&
	       list_fits(q, check_spec_of(q->pod, "overhead"));
}

/* --- taints and cordons */

static bool tolerates(const cJSON *toleration, const char *key, const char *value,
		      const char *effect)
{
	const char *want_effect = check_text_of(toleration, "effect", "");
	const char *want_key = check_text_of(toleration, "key", "");
	const char *op = check_text_of(toleration, "operator", "Equal");

	if (*want_effect && !check_equal(want_effect, effect))
		return false;
	if (*want_key && !check_equal(want_key, key))
		return false;
	if (check_equal(op, "Exists"))
		return true;
	return check_equal(op, "Equal") &&
	       check_equal(check_text_of(toleration, "value", ""), value);
}

static bool pod_tolerates(const cJSON *pod, const char *key, const char *value, const char *effect)
{
	for (const cJSON *item = check_first_of(check_spec_of(pod, "tolerations")); item;
	     item = item->next)
		if (tolerates(item, key, value, effect))
			return true;
	return false;
}

static bool taints_allow(const struct question *q, const cJSON *node)
{
	for (const cJSON *taint = check_first_of(check_spec_of(node, "taints")); taint;
	     taint = taint->next) {
		const char *key = check_text_of(taint, "key", "");
		const char *effect = check_text_of(taint, "effect", "");

		if (check_equal(effect, "PreferNoSchedule") ||
		    pod_tolerates(q->pod, key, check_text_of(taint, "value", ""), effect))
			continue;
		error_set(q->error, "taint %s:%s of %s", key, effect, check_name_of(node));
		return false;
	}
	return true;
}

static bool taints_tolerated(const struct question *q)
{
	return taints_allow(q, q->node);
}

static bool is_not_cordoned(const struct question *q)
{
	if (!cJSON_IsTrue(check_spec_of(q->node, "unschedulable")) ||
	    pod_tolerates(q->pod, "node.kubernetes.io/unschedulable", "", "NoSchedule"))
		return true;
	error_set(q->error, "cordoned");
	return false;
}

/* --- node affinity */

static const cJSON *required_of(const cJSON *pod, const char *affinity)
{
	return check_get(check_get(check_spec_of(pod, "affinity"), affinity),
			 "requiredDuringSchedulingIgnoredDuringExecution");
}

static bool node_wanted(const cJSON *pod, const cJSON *node)
{
	for (const cJSON *want = check_first_of(check_spec_of(pod, "nodeSelector")); want;
	     want = want->next)
		if (!check_equal(want->valuestring, check_label_of(node, want->string)))
			return false;
	return check_node_selector_matches(required_of(pod, "nodeAffinity"), node);
}

static bool selected(const struct question *q)
{
	if (node_wanted(q->pod, q->node))
		return true;
	error_set(q->error, "nodeSelector or node affinity");
	return false;
}

/* --- affinity between pods */

static bool term_covers_namespace(const struct question *q, const cJSON *term, const cJSON *owner,
				  const char *namespace)
{
	const cJSON *selector = check_get(term, "namespaceSelector");
	const cJSON *names = check_get(term, "namespaces");

	if (!selector && !check_first_of(names))
		return check_equal(namespace, check_namespace_of(owner));
	return check_has_string(names, namespace) ||
	       check_selects(selector, check_find_other(q->c, "Namespace", "", namespace));
}

/* The term of owner means other. */
static bool term_means(const struct question *q, const cJSON *term, const cJSON *owner,
		       const cJSON *other)
{
	for (const cJSON *key = check_first_of(check_get(term, "mismatchLabelKeys")); key;
	     key = key->next) {
		const char *own = check_label_of(owner, key->valuestring);

		if (own && check_equal(own, check_label_of(other, key->valuestring)))
			return false;
	}
	return term_covers_namespace(q, term, owner, check_namespace_of(other)) &&
	       check_selects(check_get(term, "labelSelector"), other) &&
	       check_same_labels(check_get(term, "matchLabelKeys"), owner, other);
}

/* Both nodes have the label, with one value. */
static bool same_domain(const cJSON *term, const cJSON *a, const cJSON *b)
{
	const char *key = check_text_of(term, "topologyKey", "");

	return check_equal(check_label_of(a, key), check_label_of(b, key));
}

/* Some term of owner's anti-affinity means other, and keeps them apart. */
static bool keeps_apart(const struct question *q, const cJSON *owner, const cJSON *other,
			const cJSON *there)
{
	for (const cJSON *term = check_first_of(required_of(owner, "podAntiAffinity")); term;
	     term = term->next)
		if (term_means(q, term, owner, other) && same_domain(term, q->node, there))
			return true;
	return false;
}

static bool no_anti_affinity(const struct question *q)
{
	for (size_t i = 0; i < q->c->pod_count; i++) {
		const cJSON *other = q->c->pods[i];

		if (check_is_there(q, i) && (keeps_apart(q, q->pod, other, node_of(q, i)) ||
					     keeps_apart(q, other, q->pod, node_of(q, i)))) {
			error_set(q->error, "anti-affinity with %s/%s on %s",
				  check_namespace_of(other), check_name_of(other),
				  check_name_of(node_of(q, i)));
			return false;
		}
	}
	return true;
}

static bool all_terms_mean(const struct question *q, const cJSON *terms, const cJSON *other)
{
	for (const cJSON *term = check_first_of(terms); term; term = term->next)
		if (!term_means(q, term, q->pod, other))
			return false;
	return true;
}

/* A pod that all terms mean is in the term's domain of this node; *anywhere: or of any other. */
static bool has_company(const struct question *q, const cJSON *terms, const cJSON *term,
			bool *anywhere)
{
	bool here = false;

	for (size_t i = 0; i < q->c->pod_count; i++) {
		if (!check_is_there(q, i) || !all_terms_mean(q, terms, q->c->pods[i]))
			continue;
		*anywhere |= check_label_of(node_of(q, i),
					    check_text_of(term, "topologyKey", "")) != NULL;
		here |= same_domain(term, q->node, node_of(q, i));
	}
	return here;
}

/* The first of those who want to be together may go anywhere where all the labels are. */
static bool affinity_holds(const struct question *q)
{
	const cJSON *terms = required_of(q->pod, "podAffinity");
	bool all = true, anywhere = false;

	for (const cJSON *term = check_first_of(terms); term; term = term->next) {
		const char *key = check_text_of(term, "topologyKey", "");

		if (!check_label_of(q->node, key)) {
			error_set(q->error, "affinity: the node has no label %s", key);
			return false;
		}
		all &= has_company(q, terms, term, &anywhere);
	}
	if (all || (!anywhere && all_terms_mean(q, terms, q->pod)))
		return true;
	error_set(q->error, "affinity: nobody of those wanted is there");
	return false;
}

/* --- topology spread */

static bool is_hard(const cJSON *constraint)
{
	return !check_equal(check_text_of(constraint, "whenUnsatisfiable", "DoNotSchedule"),
			    "ScheduleAnyway");
}

/* Another node is a domain only where it has the keys of all hard constraints. */
static bool has_all_keys(const cJSON *constraints, const cJSON *node)
{
	for (const cJSON *item = check_first_of(constraints); item; item = item->next)
		if (is_hard(item) && !check_label_of(node, check_text_of(item, "topologyKey", "")))
			return false;
	return true;
}

static bool node_counts(const struct question *q, const cJSON *constraint, const cJSON *node)
{
	struct question silent = *q;

	silent.error = NULL;
	if (!has_all_keys(check_spec_of(q->pod, "topologySpreadConstraints"), node))
		return false;
	if (check_equal(check_text_of(constraint, "nodeAffinityPolicy", "Honor"), "Honor") &&
	    !node_wanted(q->pod, node))
		return false;
	return !check_equal(check_text_of(constraint, "nodeTaintsPolicy", "Ignore"), "Honor") ||
	       taints_allow(&silent, node);
}

static bool constraint_means(const struct question *q, const cJSON *constraint, const cJSON *other)
{
	return check_selects(check_get(constraint, "labelSelector"), other) &&
	       check_same_labels(check_get(constraint, "matchLabelKeys"), q->pod, other);
}

/* A selector that asks for nothing counts nobody, though it means the pod itself. */
static bool asks_nothing(const struct question *q, const cJSON *constraint)
{
	const cJSON *selector = check_get(constraint, "labelSelector");

	for (const cJSON *key = check_first_of(check_get(constraint, "matchLabelKeys")); key;
	     key = key->next)
		if (check_label_of(q->pod, key->valuestring))
			return false;
	return !check_first_of(check_get(selector, "matchLabels")) &&
	       !check_first_of(check_get(selector, "matchExpressions"));
}

/* Pods of the domain `value` on nodes that count. */
static int count_domain(const struct question *q, const cJSON *constraint, const char *value)
{
	const char *key = check_text_of(constraint, "topologyKey", "");
	int count = 0;

	if (asks_nothing(q, constraint))
		return 0;
	for (size_t i = 0; i < q->c->pod_count; i++) {
		const cJSON *other = q->c->pods[i];

		if (check_is_there(q, i) &&
		    check_equal(check_label_of(node_of(q, i), key), value) &&
		    node_counts(q, constraint, node_of(q, i)) &&
		    !check_meta_of(other, "deletionTimestamp") &&
		    check_equal(check_namespace_of(other), check_namespace_of(q->pod)) &&
		    constraint_means(q, constraint, other))
			count++;
	}
	return count;
}

/* The fewest of any domain; none where there are too few domains. */
static int fewest(const struct question *q, const cJSON *constraint)
{
	const char *key = check_text_of(constraint, "topologyKey", "");
	int least = -1, domains = 0;

	for (size_t i = 0; i < q->c->node_count; i++) {
		const char *value = check_label_of(q->c->nodes[i], key);
		bool seen = false;
		int count;

		if (!node_counts(q, constraint, q->c->nodes[i]))
			continue;
		for (size_t k = 0; k < i && !seen; k++)
			seen = check_equal(value, check_label_of(q->c->nodes[k], key)) &&
			       node_counts(q, constraint, q->c->nodes[k]);
		domains += !seen;
		count = count_domain(q, constraint, value);
		if (least < 0 || count < least)
			least = count;
	}
	return domains < check_number_of(constraint, "minDomains", 1) ? 0 : least;
}

static bool constraint_holds(const struct question *q, const cJSON *constraint)
{
	const char *key = check_text_of(constraint, "topologyKey", "");
	const char *value = check_label_of(q->node, key);
	int count, least, most = check_number_of(constraint, "maxSkew", 1);

	if (!value) {
		error_set(q->error, "spread: the node has no label %s", key);
		return false;
	}
	count = count_domain(q, constraint, value) + constraint_means(q, constraint, q->pod);
	least = fewest(q, constraint);
	if (count - least <= most)
		return true;
	error_set(q->error, "spread: %d in %s %s would be %d above %d, the most is %d", count, key,
		  value, count - least, least, most);
	return false;
}

static bool spread_holds(const struct question *q)
{
	for (const cJSON *item = check_first_of(check_spec_of(q->pod, "topologySpreadConstraints"));
	     item; item = item->next)
		if (is_hard(item) && !constraint_holds(q, item))
			return false;
	return true;
}

/* --- host ports */

static bool is_open_port(const cJSON *container, const cJSON *port, bool init)
{
	return check_number_of(port, "hostPort", 0) > 0 && (!init || check_is_sidecar(container));
}

static bool ports_clash(const cJSON *a, const cJSON *b)
{
	const char *one = check_text_of(a, "hostIP", ""), *two = check_text_of(b, "hostIP", "");

	one = *one ? one : "0.0.0.0";
	two = *two ? two : "0.0.0.0";
	return check_number_of(a, "hostPort", 0) == check_number_of(b, "hostPort", 0) &&
	       check_equal(check_text_of(a, "protocol", "TCP"),
			   check_text_of(b, "protocol", "TCP")) &&
	       (check_equal(one, two) || check_equal(one, "0.0.0.0") ||
		check_equal(two, "0.0.0.0"));
}

static bool port_taken(const cJSON *port, const cJSON *other)
{
	static const char *const lists[] = {"containers", "initContainers"};

	for (int init = 0; init < 2; init++)
		for (const cJSON *one = check_first_of(check_spec_of(other, lists[init])); one;
		     one = one->next)
			for (const cJSON *its = check_first_of(check_get(one, "ports")); its;
			     its = its->next)
				if (is_open_port(one, its, init) && ports_clash(port, its))
					return true;
	return false;
}

static bool port_free(const struct question *q, const cJSON *port)
{
	for (size_t i = 0; i < q->c->pod_count; i++)
		if (check_is_there(q, i) && q->c->where[i] == (int)q->node_at &&
		    port_taken(port, q->c->pods[i])) {
			error_set(q->error, "port %d is taken by %s",
				  check_number_of(port, "hostPort", 0),
				  check_name_of(q->c->pods[i]));
			return false;
		}
	return true;
}

static bool ports_free(const struct question *q)
{
	static const char *const lists[] = {"containers", "initContainers"};

	for (int init = 0; init < 2; init++)
		for (const cJSON *one = check_first_of(check_spec_of(q->pod, lists[init])); one;
		     one = one->next)
			for (const cJSON *port = check_first_of(check_get(one, "ports")); port;
			     port = port->next)
				if (is_open_port(one, port, init) && !port_free(q, port))
					return false;
	return true;
}

/* --- what nobody can judge */

static bool operators_known(const cJSON *list, const char *const *known)
{
	for (const cJSON *item = check_first_of(list); item; item = item->next) {
		size_t i = 0;

		while (known[i] && !check_equal(known[i], check_text_of(item, "operator", "Equal")))
			i++;
		if (!known[i])
			return false;
	}
	return true;
}

static bool is_judged(const struct question *q)
{
	static const char *const taints[] = {"Equal", "Exists", NULL};
	static const char *const nodes[] = {"In", "NotIn", "Exists", "DoesNotExist",
					    "Gt", "Lt",	   NULL};
	const cJSON *terms = check_get(required_of(q->pod, "nodeAffinity"), "nodeSelectorTerms");

	for (const cJSON *term = check_first_of(terms); term; term = term->next)
		if (!operators_known(check_get(term, "matchExpressions"), nodes))
			return false;
	return !check_first_of(check_spec_of(q->pod, "resourceClaims")) &&
	       operators_known(check_spec_of(q->pod, "tolerations"), taints);
}

/* --- the whole */

static bool is_no_target(const cJSON *node)
{
	for (const cJSON *taint = check_first_of(check_spec_of(node, "taints")); taint;
	     taint = taint->next) {
		const char *key = check_text_of(taint, "key", "");

		if (check_equal(key, "ToBeDeletedByClusterAutoscaler") ||
		    check_equal(key, "karpenter.sh/disrupted"))
			return true;
	}
	return check_meta_of(node, "deletionTimestamp") ||
	       check_get(check_meta_of(node, "annotations"), "evenkeel.io/draining");
}

static bool is_destination(const struct question *q)
{
	if (!q->c->removed[q->node_at] && !is_no_target(q->node))
		return true;
	error_set(q->error, "removed or in deletion");
	return false;
}

static bool (*const filters[PLACE_FILTERS])(const struct question *q) = {
	[PLACE_GONE] = is_destination,
	[PLACE_FIT] = fits,
	[PLACE_TAINTS] = taints_tolerated,
	[PLACE_NODE_AFFINITY] = selected,
	[PLACE_UNSCHEDULABLE] = is_not_cordoned,
	[PLACE_ANTI_AFFINITY] = no_anti_affinity,
	[PLACE_AFFINITY] = affinity_holds,
	[PLACE_SPREAD] = spread_holds,
	[PLACE_HOST_PORTS] = ports_free,
	[PLACE_VOLUMES] = check_volumes_allow,
	[PLACE_UNKNOWN] = is_judged,
};

bool place_verdict_allows(const struct place_verdict *v, enum place_filter other)
{
	if (v->certainty == PLACE_UNJUDGED)
		return other != PLACE_FITS;
	return other == v->filter;
}

struct place_verdict place_checker_ask(const struct place_checker *c, size_t pod, size_t node)
{
	struct place_verdict v = {.filter = PLACE_FITS, .error = {""}};
	const struct question q = {c, pod, node, c->pods[pod], c->nodes[node], &v.error};

	if (!is_judged(&q))
		v.certainty = PLACE_UNJUDGED;
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (filters[f] && !filters[f](&q)) {
			v.filter = (enum place_filter)f;
			break;
		}
	return v;
}

/* What is asked again of those that are placed. */
static bool is_lasting(int filter)
{
	return filter == PLACE_FIT || filter == PLACE_TAINTS || filter == PLACE_NODE_AFFINITY ||
	       filter == PLACE_ANTI_AFFINITY || filter == PLACE_HOST_PORTS ||
	       filter == PLACE_VOLUMES;
}

bool place_checker_is_legal(const struct place_checker *c, const bool *marked, struct error *why)
{
	for (size_t i = 0; i < c->pod_count; i++) {
		struct error inner = {""};
		struct question q = {.c = c, .pod_at = i, .pod = c->pods[i], .error = &inner};

		if (c->where[i] < 0 || check_has_ended(q.pod) || (marked && !marked[i]))
			continue;
		q.node_at = (size_t)c->where[i];
		q.node = c->nodes[q.node_at];
		for (int f = 0; f < PLACE_FILTERS; f++)
			if (is_lasting(f) && !filters[f](&q)) {
				error_set(why, "%s/%s on %s: filter %d: %s",
					  check_namespace_of(q.pod), check_name_of(q.pod),
					  check_name_of(q.node), f, inner.text);
				return false;
			}
	}
	return true;
}
