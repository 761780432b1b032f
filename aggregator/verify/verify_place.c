/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of a move: filters of the kube-scheduler, each a function that answers for one pod
 * and one node as its documentation says, with loops over everything. A pod is where the world says,
 * whatever its spec says; one that has ended counts for nothing.
 *
 * Volumes are judged for claims that are bound: those of pods that run. Which volume a claim of a
 * pending pod gets, and attach limits of drivers, are not.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

#define UNSCHEDULABLE "node.kubernetes.io/unschedulable"

const cJSON *verify_find_other(const struct verify_world *w, const char *kind,
			       const char *namespace, const char *name)
{
	VERIFY_EACH_OTHER (o, w, kind)
		if (verify_equal(verify_name(o), name) &&
		    verify_equal(verify_namespace(o), namespace))
			return o;
	return NULL;
}

bool verify_runs(const struct verify_world *w, size_t pod)
{
	return w->where[pod] >= 0 && !verify_has_ended(w->pods[pod]);
}

/* Another pod that runs. */
static bool is_there(const struct verify_question *q, size_t pod)
{
	return pod != q->pod_at && verify_runs(q->w, pod);
}

static bool is_here(const struct verify_question *q, size_t pod)
{
	return q->w->where[pod] == (int)q->node_at && is_there(q, pod);
}

static const cJSON *node_of(const struct verify_question *q, size_t pod)
{
	return q->w->nodes[q->w->where[pod]];
}

static const char *namespace_of(const struct verify_world *w, size_t pod)
{
	return w->facts ? w->facts[pod].namespace : verify_namespace(w->pods[pod]);
}

static bool keeps_some_apart(const struct verify_world *w, size_t pod)
{
	return w->facts ? w->facts[pod].keeps_apart
			: document_first(w->pods[pod], ANTI_AFFINITY) != NULL;
}

/* --- resources */

static const char *const containers[] = {"spec.containers", "spec.initContainers"};

static bool list_fits(const struct verify_question *q, const cJSON *object, const char *path)
{
	VERIFY_EACH_MEMBER (item, object, path) {
		const char *resource = item->string;
		int64_t want = verify_request(q->pod, resource), taken = 0;
		int64_t have = verify_amount(document_at(q->node, "status.allocatable"), resource);

		for (size_t i = 0; want && i < q->w->pod_count; i++)
			if (is_here(q, i))
				taken = add_saturating(taken,
						       verify_request(q->w->pods[i], resource));
		if (want && add_saturating(want, taken) > have)
			return REFUSE(q,
				      "%s: %" PRId64 " requested, %" PRId64 " of %" PRId64
				      " are taken",
				      resource, want, taken, have);
	}
	return true;
}

static bool room(const struct verify_question *q)
{
	int64_t most = verify_amount(document_at(q->node, "status.allocatable"), "pods"), count = 0;

	for (size_t i = 0; i < q->w->pod_count; i++)
		count += is_here(q, i);
	if (count + 1 > most)
		return REFUSE(q, "pods: %" PRId64 " of %" PRId64 " are there", count, most);
	for (int init = 0; init < 2; init++)
		VERIFY_EACH (item, q->pod, containers[init])
			if (!list_fits(q, item, "resources.requests") ||
			    !list_fits(q, item, "resources.limits"))
				return false;
	return list_fits(q, q->pod, "spec.resources.requests") &&
	       list_fits(q, q->pod, "spec.overhead");
}

/* --- taints and cordons */

static bool tolerates(const cJSON *pod, const char *key, const char *value, const char *effect)
{
	VERIFY_EACH (item, pod, "spec.tolerations") {
		const char *want_effect = verify_text(item, "effect");
		const char *want_key = verify_text(item, "key");
		const char *op = document_text_or(item, "operator", "Equal");

		if ((!*want_effect || verify_equal(want_effect, effect)) &&
		    (!*want_key || verify_equal(want_key, key)) &&
		    (verify_equal(op, "Exists") ||
		     (verify_equal(op, "Equal") &&
		      verify_equal(verify_text(item, "value"), value))))
			return true;
	}
	return false;
}

static bool taints(const struct verify_question *q)
{
	VERIFY_EACH (taint, q->node, "spec.taints") {
		const char *key = verify_text(taint, "key"), *effect = verify_text(taint, "effect");

		if (!verify_equal(effect, "PreferNoSchedule") &&
		    !tolerates(q->pod, key, verify_text(taint, "value"), effect))
			return REFUSE(q, "taint %s:%s", key, effect);
	}
	return true;
}

static bool cordon(const struct verify_question *q)
{
	return !document_is_true(q->node, "spec.unschedulable") ||
	       tolerates(q->pod, UNSCHEDULABLE, "", "NoSchedule") ||
	       REFUSE(q, "the node is cordoned");
}

static bool node_wanted(const cJSON *pod, const cJSON *node)
{
	VERIFY_EACH_MEMBER (want, pod, "spec.nodeSelector")
		if (!verify_equal(want->valuestring, document_label(node, want->string)))
			return false;
	return verify_node_selector(document_at(pod, "spec.affinity.nodeAffinity" REQUIRED), node,
				    verify_name(node));
}

static bool node_affinity(const struct verify_question *q)
{
	return node_wanted(q->pod, q->node) ||
	       REFUSE(q, "the node is not what nodeSelector or node affinity require");
}

/* --- affinity between pods */

/* The other has the same value of each of these labels that the pod has, or (!same) of none. */
static bool labels_agree(const cJSON *term, const char *keys, bool same, const cJSON *pod,
			 const cJSON *other)
{
	VERIFY_EACH (key, term, keys) {
		const char *own = document_label(pod, key->valuestring);

		if (own && verify_equal(own, document_label(other, key->valuestring)) != same)
			return false;
	}
	return true;
}

static bool term_covers_namespace(const struct verify_question *q, const cJSON *term,
				  const cJSON *owner, const char *namespace)
{
	const cJSON *selector = object_json_find(term, "namespaceSelector");

	if (!selector && !document_first(term, "namespaces"))
		return verify_equal(namespace, verify_namespace(owner));
	return verify_contains(term, "namespaces", namespace) ||
	       verify_selects(selector, verify_find_other(q->w, "Namespace", "", namespace));
}

/* Whether the owner's term selects the other pod. */
static bool term_selects(const struct verify_question *q, const cJSON *term, const cJSON *owner,
			 const cJSON *other)
{
	return verify_selects(document_at(term, "labelSelector"), other) &&
	       labels_agree(term, "matchLabelKeys", true, owner, other) &&
	       labels_agree(term, "mismatchLabelKeys", false, owner, other) &&
	       term_covers_namespace(q, term, owner, verify_namespace(other));
}

/* Both nodes have the label, with one value. */
static bool same_domain(const cJSON *term, const cJSON *a, const cJSON *b)
{
	const char *key = verify_text(term, "topologyKey");

	return verify_equal(document_label(a, key), document_label(b, key));
}

/* Whether a term of the owner's anti-affinity selects the other pod and covers both nodes. */
static bool keeps_apart(const struct verify_question *q, const cJSON *owner, const cJSON *other,
			const cJSON *there)
{
	VERIFY_EACH (term, owner, ANTI_AFFINITY)
		if (same_domain(term, q->node, there) && term_selects(q, term, owner, other))
			return true;
	return false;
}

static bool anti_affinity(const struct verify_question *q)
{
	bool own = document_first(q->pod, ANTI_AFFINITY);

	for (size_t i = 0; i < q->w->pod_count; i++) {
		const cJSON *other = q->w->pods[i];

		if ((own || keeps_some_apart(q->w, i)) && is_there(q, i) &&
		    (keeps_apart(q, q->pod, other, node_of(q, i)) ||
		     keeps_apart(q, other, q->pod, node_of(q, i))))
			return REFUSE(q, "anti-affinity with %s/%s on %s", verify_namespace(other),
				      verify_name(other), verify_name(node_of(q, i)));
	}
	return true;
}

#define AFFINITY "spec.affinity.podAffinity" REQUIRED

static bool all_terms_select(const struct verify_question *q, const cJSON *other)
{
	VERIFY_EACH (term, q->pod, AFFINITY)
		if (!term_selects(q, term, q->pod, other))
			return false;
	return true;
}

/* The first of pods that require each other may go anywhere where all the labels are. */
static bool affinity(const struct verify_question *q)
{
	bool all = true, anywhere = false;

	VERIFY_EACH (term, q->pod, AFFINITY) {
		const char *key = verify_text(term, "topologyKey");
		bool here = false;

		if (!document_label(q->node, key))
			return REFUSE(q, "affinity: the node has no label %s", key);
		for (size_t i = 0; i < q->w->pod_count; i++)
			if (is_there(q, i) && all_terms_select(q, q->w->pods[i])) {
				anywhere |= document_label(node_of(q, i), key) != NULL;
				here |= same_domain(term, q->node, node_of(q, i));
			}
		all &= here;
	}
	return all || (!anywhere && all_terms_select(q, q->pod)) ||
	       REFUSE(q, "affinity: no required pod is in the domain of the node");
}

/* --- topology spread */

static bool is_hard(const cJSON *constraint)
{
	return !document_is(constraint, "whenUnsatisfiable", "ScheduleAnyway");
}

/* A node counts only if it has the keys of all hard constraints. */
static bool counts_as_domain(const struct verify_question *q, const cJSON *constraint, size_t at)
{
	const cJSON *node = q->w->nodes[at];
	const struct verify_question there = {.pod = q->pod, .node = node};

	VERIFY_EACH (item, q->pod, "spec.topologySpreadConstraints")
		if (is_hard(item) && !document_label(node, verify_text(item, "topologyKey")))
			return false;
	if (verify_equal(document_text_or(constraint, "nodeAffinityPolicy", "Honor"), "Honor") &&
	    !node_wanted(q->pod, node))
		return false;
	if (!document_is(constraint, "nodeTaintsPolicy", "Honor"))
		return true;
	/* A node that the plan cordons gets a taint. */
	return taints(&there) && (!q->w->drained || !q->w->drained[at] ||
				  tolerates(q->pod, UNSCHEDULABLE, "", "NoSchedule"));
}

static bool constraint_selects(const struct verify_question *q, const cJSON *constraint,
			       const cJSON *other)
{
	return verify_selects(document_at(constraint, "labelSelector"), other) &&
	       labels_agree(constraint, "matchLabelKeys", true, q->pod, other);
}

/* A selector without a requirement counts no pods, though it selects the pod itself. */
static bool requires_nothing(const struct verify_question *q, const cJSON *constraint)
{
	VERIFY_EACH (key, constraint, "matchLabelKeys")
		if (document_label(q->pod, key->valuestring))
			return false;
	return !verify_first_member(constraint, "labelSelector.matchLabels") &&
	       !document_first(constraint, "labelSelector.matchExpressions");
}

/* A node that counts, and the pods there that the constraint selects. */
struct domain {
	const char *value;
	int pods;
};

/* Nodes that count, sorted by the value of the key; the caller's. */
static struct domain *list_domains(const struct verify_question *q, const cJSON *constraint,
				   size_t *count)
{
	struct domain *of = mem_zalloc(q->w->node_count + 1, sizeof(*of));
	const char *namespace = verify_namespace(q->pod);
	bool idle = requires_nothing(q, constraint);

	for (size_t i = 0; i < q->w->pod_count && !idle; i++)
		if (q->w->where[i] >= 0 && verify_equal(namespace_of(q->w, i), namespace) &&
		    is_there(q, i) && !verify_is_deleted(q->w->pods[i]) &&
		    constraint_selects(q, constraint, q->w->pods[i]))
			of[q->w->where[i]].pods++;
	*count = 0;
	for (size_t i = 0; i < q->w->node_count; i++) {
		of[*count] = (struct domain){document_label(q->w->nodes[i],
							    verify_text(constraint, "topologyKey")),
					     of[i].pods};
		*count += of[*count].value && counts_as_domain(q, constraint, i);
	}
	qsort(of, *count, sizeof(*of), array_compare_text);
	return of;
}

static bool constraint_holds(const struct verify_question *q, const cJSON *constraint)
{
	const char *key = verify_text(constraint, "topologyKey");
	const char *value = document_label(q->node, key);
	double most = verify_number(constraint, "maxSkew", 1);
	int here = constraint_selects(q, constraint, q->pod), least = INT_MAX, domains = 0, pods;
	struct domain *of;
	size_t count;

	if (!value)
		return REFUSE(q, "spread: the node has no label %s", key);
	of = list_domains(q, constraint, &count);
	for (size_t i = 0; i < count; domains++) {
		const char *domain = of[i].value;

		for (pods = 0; i < count && verify_equal(of[i].value, domain); i++)
			pods += of[i].pods;
		least = pods < least ? pods : least;
		here += verify_equal(domain, value) ? pods : 0;
	}
	free(of);
	if (!domains || domains < verify_number(constraint, "minDomains", 1))
		least = 0;
	return here - least <= most || REFUSE(q,
					      "spread: %d pods in %s=%s would be %d above %d of "
					      "the emptiest, the most is %.0f",
					      here, key, value, here - least, least, most);
}

static bool spread(const struct verify_question *q)
{
	VERIFY_EACH (item, q->pod, "spec.topologySpreadConstraints")
		if (is_hard(item) && !constraint_holds(q, item))
			return false;
	return true;
}

/* --- host ports */

static bool ports_clash(const cJSON *a, const cJSON *b)
{
	const char *one = verify_text(a, "hostIP"), *two = verify_text(b, "hostIP");
	bool any = !*one || !*two || verify_equal(one, "0.0.0.0") || verify_equal(two, "0.0.0.0");

	return verify_number(a, "hostPort", 0) == verify_number(b, "hostPort", 0) &&
	       verify_equal(document_text_or(a, "protocol", "TCP"),
			    document_text_or(b, "protocol", "TCP")) &&
	       (any || verify_equal(one, two));
}

/* The first open host port of a pod that clashes with one of the other pod, or with this port. */
static const cJSON *find_clash(const cJSON *pod, const cJSON *other, const cJSON *with)
{
	for (int init = 0; init < 2; init++)
		VERIFY_EACH (one, pod, containers[init])
			VERIFY_EACH (port, one, "ports")
				if (verify_number(port, "hostPort", 0) > 0 &&
				    (!init || document_is(one, "restartPolicy", "Always")) &&
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
			return REFUSE(q, "host port %.0f is taken by %s/%s",
				      verify_number(port, "hostPort", 0), verify_namespace(other),
				      verify_name(other));
	}
	return true;
}

/* --- volumes */

/* Whether the zone is in a set such as "a__b". */
static bool in_zones(const cJSON *set, const char *zone)
{
	char *all = mem_printf("__%s__", set->valuestring), *one = mem_printf("__%s__", zone);
	bool is = strstr(all, one);

	free(all);
	free(one);
	return is;
}

/* A volume's labels bind it to zones; a node without any such label is in no zone and takes any. */
static bool zones_allow(const cJSON *volume, const cJSON *node)
{
	static const char *const keys[] = {"topology.kubernetes.io/zone",
					   "topology.kubernetes.io/region",
					   "failure-domain.beta.kubernetes.io/zone",
					   "failure-domain.beta.kubernetes.io/region"};
	bool anywhere = true, all = true;

	for (int i = 0; i < 4; i++) {
		const cJSON *set =
			object_json_find(document_at(volume, "metadata.labels"), keys[i]);
		const char *zone = document_label(node, keys[i]);

		anywhere &= !zone;
		zone = zone || i < 2 ? zone : document_label(node, keys[i - 2]);
		all &= !set || (zone && cJSON_IsString(set) && in_zones(set, zone));
	}
	return anywhere || all;
}

bool verify_volume_reaches(const cJSON *volume, const cJSON *node)
{
	return verify_node_selector(document_at(volume, "spec.nodeAffinity.required"), node, NULL);
}

bool verify_bound_allows(const struct verify_question *q, const cJSON *claim)
{
	const char *name = verify_text(claim, "spec.volumeName");
	const cJSON *volume = verify_find_other(q->w, "PersistentVolume", "", name);

	if (!volume)
		return REFUSE(q, "there is no PersistentVolume %s", name);
	if (!verify_volume_reaches(volume, q->node))
		return REFUSE(q, "the node is out of reach of PersistentVolume %s", name);
	return zones_allow(volume, q->node) ||
	       REFUSE(q, "the node is in another zone than PersistentVolume %s", name);
}

bool verify_is_bound(const cJSON *claim)
{
	return *verify_text(claim, "spec.volumeName") &&
	       (document_annotation(claim, "pv.kubernetes.io/bind-completed") ||
		!document_is(claim, "status.phase", "Pending"));
}

/* A pod on a node that the API does not know holds its claims too. */
static bool holds(const struct verify_question *q, size_t pod, const cJSON *claim)
{
	const cJSON *other = q->w->pods[pod];

	if (pod == q->pod_at || q->w->where[pod] == VERIFY_NOWHERE || verify_has_ended(other) ||
	    !verify_same(other, claim, "metadata.namespace"))
		return false;
	return document_find(other, "spec.volumes", "persistentVolumeClaim.claimName",
			     verify_name(claim));
}

bool verify_claim_is_free(const struct verify_question *q, const cJSON *claim)
{
	if (verify_is_deleted(claim) || document_is(claim, "status.phase", "Lost"))
		return REFUSE(q, "lost or in deletion: PersistentVolumeClaim %s",
			      verify_name(claim));
	if (!verify_contains(claim, "spec.accessModes", "ReadWriteOncePod"))
		return true;
	for (size_t i = 0; i < q->w->pod_count; i++)
		if (holds(q, i, claim))
			return REFUSE(q, "its claim is used by pod %s", verify_name(q->w->pods[i]));
	return true;
}

static bool volumes(const struct verify_question *q)
{
	VERIFY_EACH (item, q->pod, "spec.volumes") {
		const char *name = document_text(item, "persistentVolumeClaim.claimName");
		const cJSON *claim = verify_find_other(q->w, "PersistentVolumeClaim",
						       verify_namespace(q->pod), name);

		if (!name)
			continue;
		if (!claim)
			return REFUSE(q, "there is no PersistentVolumeClaim %s", name);
		if (!verify_claim_is_free(q, claim))
			return false;
		if (!verify_is_bound(claim) && !q->pending)
			return REFUSE(q, "not bound: PersistentVolumeClaim %s", name);
		if (verify_is_bound(claim) && !verify_bound_allows(q, claim))
			return false;
	}
	return true;
}

/* --- fields without a rule here */

static bool operators_known(const cJSON *object, const char *path, const char *known)
{
	VERIFY_EACH (item, object, path)
		if (!strstr(known, document_text_or(item, "operator", "Equal")))
			return false;
	return true;
}

static bool judged(const struct verify_question *q)
{
	bool known = operators_known(q->pod, "spec.tolerations", "Equal Exists");

	VERIFY_EACH (term, q->pod, "spec.affinity.nodeAffinity" REQUIRED ".nodeSelectorTerms")
		known &= operators_known(term, "matchExpressions",
					 "In NotIn Exists DoesNotExist Gt Lt");
	if (!known)
		return REFUSE(q, "an operator of its node affinity or tolerations is unknown");
	return !document_first(q->pod, "spec.resourceClaims") ||
	       REFUSE(q, "resource claims are not judged");
}

/* --- destinations */

bool verify_is_taken_away(const cJSON *node)
{
	return document_find(node, "spec.taints", "key", "ToBeDeletedByClusterAutoscaler") ||
	       document_find(node, "spec.taints", "key", "karpenter.sh/disrupted") ||
	       document_find(node, "spec.taints", "key", "karpenter.sh/disruption") ||
	       verify_is_deleted(node);
}

bool verify_is_leaving(const cJSON *node)
{
	const char *draining = document_annotation(node, "evenkeel.io/draining");

	return verify_is_taken_away(node) || document_has_condition(node, "DrainInProgress") ||
	       (draining && !verify_equal(draining, "false"));
}

static bool destination(const struct verify_question *q)
{
	static const char *const conditions[] = {"Drained", "GracefulNodeShutdownInProgress",
						 "MaintenancePlanned", "MaintenanceInProgress"};

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (document_has_condition(q->node, conditions[i]))
			return REFUSE(q, "the node has the condition %s", conditions[i]);
	if (q->c && !document_has_condition(q->node, "Ready"))
		return REFUSE(q, "the node is not ready");
	return (!q->w->removed[q->node_at] && !verify_is_leaving(q->node)) ||
	       REFUSE(q, "the node is drained by the plan, or in deletion");
}

bool verify_filter(enum verify_invariant i, const struct verify_question *q)
{
	static bool (*const filters[VERIFY_INVARIANTS])(const struct verify_question *q) = {
		[VERIFY_DESTINATION] = destination,
		[VERIFY_ROOM] = room,
		[VERIFY_TAINTS] = taints,
		[VERIFY_NODE_AFFINITY] = node_affinity,
		[VERIFY_CORDON] = cordon,
		[VERIFY_ANTI_AFFINITY] = anti_affinity,
		[VERIFY_AFFINITY] = affinity,
		[VERIFY_SPREAD] = spread,
		[VERIFY_HOST_PORTS] = host_ports,
		[VERIFY_VOLUMES] = volumes,
		[VERIFY_MEASURED] = verify_measured,
		[VERIFY_USE_CAP] = verify_use_cap,
		[VERIFY_JUDGED] = judged,
	};

	return !filters[i] || filters[i](q);
}
