/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters VolumeBinding, VolumeZone and VolumeRestrictions as one: what a pod's claims say
 * about a node. What the attach limits of drivers and the capacity of storage say is not known
 * here.
 */
#include <string.h>

#include "tests/place_checker_parts.h"

static bool refuse(const struct question *q, const char *what, const char *name)
{
	error_set(q->error, "%s: %s", what, name);
	return false;
}

static bool is_zone_key(const char *key)
{
	static const char *const keys[] = {"topology.kubernetes.io/zone",
					   "topology.kubernetes.io/region",
					   "failure-domain.beta.kubernetes.io/zone",
					   "failure-domain.beta.kubernetes.io/region"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (check_equal(keys[i], key))
			return true;
	return false;
}

/* "a__b" is a set. */
static bool in_zones(const char *set, const char *zone)
{
	size_t len = strlen(zone);

	for (;;) {
		const char *end = strstr(set, "__");
		size_t part = end ? (size_t)(end - set) : strlen(set);

		if (part == len && strncmp(set, zone, len) == 0)
			return true;
		if (!end)
			return false;
		set = end + 2;
	}
}

/* A volume's labels bind it to zones; a node that names none is in no zone and takes any. */
static bool zones_allow(const cJSON *volume, const cJSON *node)
{
	bool any = false;

	for (const cJSON *item = check_first_of(check_meta_of(node, "labels")); item;
	     item = item->next)
		any |= is_zone_key(item->string);
	for (const cJSON *item = any ? check_first_of(check_meta_of(volume, "labels")) : NULL; item;
	     item = item->next) {
		const char *zone = check_label_of(node, item->string);

		if (!zone && check_equal(item->string, "failure-domain.beta.kubernetes.io/zone"))
			zone = check_label_of(node, "topology.kubernetes.io/zone");
		if (!zone && check_equal(item->string, "failure-domain.beta.kubernetes.io/region"))
			zone = check_label_of(node, "topology.kubernetes.io/region");
		if (is_zone_key(item->string) && (!zone || !in_zones(item->valuestring, zone)))
			return false;
	}
	return true;
}

/* A volume asks for labels; no name of a node is its own. */
static bool volume_reaches(const cJSON *volume, const cJSON *node)
{
	cJSON *nameless = cJSON_CreateObject();
	cJSON *meta = cJSON_AddObjectToObject(nameless, "metadata");
	bool reaches;

	cJSON_AddItemToObject(meta, "labels",
			      cJSON_CreateObjectReference(
				      check_first_of(check_meta_of(node, "labels"))));
	reaches = check_node_selector_matches(
		check_get(check_spec_of(volume, "nodeAffinity"), "required"), nameless);
	cJSON_Delete(nameless);
	return reaches;
}

static bool bound_allows(const struct question *q, const cJSON *claim)
{
	const char *name = check_text_of(check_get(claim, "spec"), "volumeName", "");
	const cJSON *volume = check_find_other(q->c, "PersistentVolume", "", name);

	if (!volume)
		return refuse(q, "there is no volume", name);
	if (!volume_reaches(volume, q->node))
		return refuse(q, "the node is out of reach of volume", name);
	return zones_allow(volume, q->node) || refuse(q, "another zone than volume", name);
}

static const char *class_of(const cJSON *object)
{
	return check_text_of(check_meta_of(object, "annotations"),
			     "volume.beta.kubernetes.io/storage-class",
			     check_text_of(check_get(object, "spec"), "storageClassName", ""));
}

/* The volume names this very claim. */
static bool is_reserved(const cJSON *volume, const cJSON *claim)
{
	const cJSON *ref = check_spec_of(volume, "claimRef");
	const char *uid = check_text_of(ref, "uid", "");

	return check_equal(check_text_of(ref, "name", NULL), check_name_of(claim)) &&
	       check_equal(check_text_of(ref, "namespace", NULL), check_namespace_of(claim)) &&
	       (!*uid || check_equal(uid, check_text_of(check_get(claim, "metadata"), "uid", "")));
}

/*
 * What holds for every volume that the claim may be bound to, also for one that is reserved for it.
 */
static bool is_large_enough(const cJSON *volume, const cJSON *claim)
{
	const cJSON *want = check_get(claim, "spec"), *have = check_get(volume, "spec");

	return check_equal(class_of(claim), class_of(volume)) &&
	       check_equal(check_text_of(want, "volumeMode", "Filesystem"),
			   check_text_of(have, "volumeMode", "Filesystem")) &&
	       !check_meta_of(volume, "deletionTimestamp") &&
	       check_amount_in(check_get(have, "capacity"), "storage") >=
		       check_amount_in(check_get(check_get(want, "resources"), "requests"),
				       "storage");
}

/* An unbound volume that the claim could be bound to here. */
static bool volume_suits(const cJSON *volume, const cJSON *claim, const cJSON *node)
{
	const cJSON *want = check_get(claim, "spec"), *have = check_get(volume, "spec");
	const cJSON *selector = check_get(want, "selector");

	if (check_get(have, "claimRef") || !is_large_enough(volume, claim) ||
	    !check_equal(check_text_of(check_get(volume, "status"), "phase", ""), "Available") ||
	    (selector && !check_selects(selector, volume)))
		return false;
	for (const cJSON *mode = check_first_of(check_get(want, "accessModes")); mode;
	     mode = mode->next)
		if (!check_has_string(check_get(have, "accessModes"), mode->valuestring))
			return false;
	return volume_reaches(volume, node);
}

/* Terms of a class's allowedTopologies: one of them, all of its expressions. */
static bool topologies_allow(const cJSON *class, const cJSON *node)
{
	const cJSON *terms = check_get(class, "allowedTopologies");

	for (const cJSON *term = check_first_of(terms); term; term = term->next) {
		bool all = check_first_of(check_get(term, "matchLabelExpressions"));

		for (const cJSON *item = check_first_of(check_get(term, "matchLabelExpressions"));
		     item; item = item->next) {
			const char *value = check_label_of(node, check_text_of(item, "key", ""));

			all &= value && check_has_string(check_get(item, "values"), value);
		}
		if (all)
			return true;
	}
	return !check_first_of(terms);
}

/* The claims of one pod that wait for it, as far as they were served, and by what. */
struct served {
	const struct question *q;
	size_t count;
	struct place_binding of[PLACE_CHECKER_CLAIMS];
};

static bool is_served(const struct served *s, const cJSON *volume)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->of[i].volume == volume)
			return true;
	return false;
}

static bool is_smaller(const cJSON *a, const cJSON *b)
{
	int64_t x = check_amount_in(check_spec_of(a, "capacity"), "storage");
	int64_t y = check_amount_in(check_spec_of(b, "capacity"), "storage");

	return x < y || (x == y && strcmp(check_name_of(a), check_name_of(b)) < 0);
}

static bool is_volume(const cJSON *object)
{
	return check_equal(check_text_of(object, "kind", ""), "PersistentVolume");
}

/* NULL: none; *reserved: one is there for this claim alone, so that no other will do. */
static const cJSON *find_reserved(const struct place_checker *c, const cJSON *claim)
{
	const cJSON *best = NULL;

	for (size_t i = 0; i < c->other_count; i++)
		if (is_volume(c->others[i]) && is_reserved(c->others[i], claim) &&
		    is_large_enough(c->others[i], claim) &&
		    (!best || is_smaller(c->others[i], best)))
			best = c->others[i];
	return best;
}

static const cJSON *find_volume(const struct served *s, const cJSON *claim)
{
	const struct question *q = s->q;
	const cJSON *best = find_reserved(q->c, claim);

	if (best)
		return volume_reaches(best, q->node) ? best : NULL;
	for (size_t i = 0; i < q->c->other_count; i++)
		if (is_volume(q->c->others[i]) && !is_served(s, q->c->others[i]) &&
		    volume_suits(q->c->others[i], claim, q->node) &&
		    (!best || is_smaller(q->c->others[i], best)))
			best = q->c->others[i];
	return best;
}

static bool can_be_made(const struct question *q, const cJSON *claim)
{
	const cJSON *class = check_find_other(q->c, "StorageClass", "", class_of(claim));
	const char *provisioner = check_text_of(class, "provisioner", "");

	if (!*provisioner || check_equal(provisioner, "kubernetes.io/no-provisioner"))
		return refuse(q, "no volume suits", check_name_of(claim));
	return topologies_allow(class, q->node) ||
	       refuse(q, "the class does not reach", check_name_of(class));
}

/* A claim that waits for its first pod, which is this one. */
static bool serve(struct served *s, const cJSON *claim)
{
	const char *chosen = check_text_of(check_meta_of(claim, "annotations"),
					   "volume.kubernetes.io/selected-node", NULL);
	const cJSON *volume = chosen ? NULL : find_volume(s, claim);

	if (chosen && !check_equal(chosen, check_name_of(s->q->node)))
		return refuse(s->q, "a volume is made elsewhere", check_name_of(claim));
	if (!volume && !can_be_made(s->q, claim))
		return false;
	s->of[s->count++] = (struct place_binding){claim, volume};
	return true;
}

static bool is_bound(const cJSON *claim)
{
	if (!*check_text_of(check_get(claim, "spec"), "volumeName", ""))
		return false;
	return check_get(check_meta_of(claim, "annotations"), "pv.kubernetes.io/bind-completed") ||
	       !check_equal(check_text_of(check_get(claim, "status"), "phase", ""), "Pending");
}

/* What names its volume and is not bound waits for the controller. */
static bool waits_for_pod(const struct question *q, const cJSON *claim)
{
	const cJSON *class = check_find_other(q->c, "StorageClass", "", class_of(claim));

	return !*check_text_of(check_get(claim, "spec"), "volumeName", "") &&
	       check_equal(check_text_of(class, "volumeBindingMode", "Immediate"),
			   "WaitForFirstConsumer");
}

static bool uses_claim(const cJSON *pod, const char *claim)
{
	for (const cJSON *item = check_first_of(check_spec_of(pod, "volumes")); item;
	     item = item->next)
		if (check_equal(check_text_of(check_get(item, "persistentVolumeClaim"), "claimName",
					      NULL),
				claim))
			return true;
	return false;
}

/* It counts where it is, and also where nobody knows of the node. */
static bool holds_claims(const struct question *q, size_t pod)
{
	return check_is_there(q, pod) ||
	       (pod != q->pod_at && q->c->where[pod] == PLACE_CHECKER_LOST &&
		!check_has_ended(q->c->pods[pod]));
}

/* ReadWriteOncePod: nobody else in the cluster has it. */
static bool is_exclusive(const struct question *q, const cJSON *claim)
{
	if (!check_has_string(check_spec_of(claim, "accessModes"), "ReadWriteOncePod"))
		return true;
	for (size_t i = 0; i < q->c->pod_count; i++)
		if (holds_claims(q, i) &&
		    check_equal(check_namespace_of(q->c->pods[i]), check_namespace_of(claim)) &&
		    uses_claim(q->c->pods[i], check_name_of(claim)))
			return refuse(q, "used by", check_name_of(q->c->pods[i]));
	return true;
}

static bool claim_allows(const struct question *q, const char *name)
{
	const cJSON *claim =
		check_find_other(q->c, "PersistentVolumeClaim", check_namespace_of(q->pod), name);

	if (!claim)
		return refuse(q, "there is no claim", name);
	if (check_meta_of(claim, "deletionTimestamp") ||
	    check_equal(check_text_of(check_get(claim, "status"), "phase", ""), "Lost"))
		return refuse(q, "lost or being deleted", name);
	if (!is_exclusive(q, claim))
		return false;
	if (is_bound(claim))
		return bound_allows(q, claim);
	return waits_for_pod(q, claim) || refuse(q, "unbound immediate claim", name);
}

static const cJSON *claim_at(const struct question *q, const cJSON *volume)
{
	return check_find_other(q->c, "PersistentVolumeClaim", check_namespace_of(q->pod),
				check_text_of(check_get(volume, "persistentVolumeClaim"),
					      "claimName", ""));
}

static int64_t size_of(const cJSON *claim)
{
	return check_amount_in(check_get(check_spec_of(claim, "resources"), "requests"), "storage");
}

/* Its claims that wait, each once, the smallest first, equal ones by name. */
static size_t find_waiting(const struct question *q, const cJSON *out[PLACE_CHECKER_CLAIMS])
{
	size_t count = 0, at;

	for (const cJSON *item = check_first_of(check_spec_of(q->pod, "volumes")); item;
	     item = item->next) {
		const cJSON *claim = claim_at(q, item);
		bool known = false;

		for (size_t i = 0; i < count; i++)
			known |= out[i] == claim;
		if (!claim || known || is_bound(claim) || count == PLACE_CHECKER_CLAIMS)
			continue;
		for (at = count++;
		     at > 0 && (size_of(claim) < size_of(out[at - 1]) ||
				(size_of(claim) == size_of(out[at - 1]) &&
				 strcmp(check_name_of(claim), check_name_of(out[at - 1])) < 0));
		     at--)
			out[at] = out[at - 1];
		out[at] = claim;
	}
	return count;
}

/* Every claim may be used here, and all that wait get something. */
static bool serve_all(struct served *s)
{
	const cJSON *waiting[PLACE_CHECKER_CLAIMS];
	size_t count = find_waiting(s->q, waiting);

	for (const cJSON *item = check_first_of(check_spec_of(s->q->pod, "volumes")); item;
	     item = item->next) {
		const char *name =
			check_text_of(check_get(item, "persistentVolumeClaim"), "claimName", NULL);

		if (name && !claim_allows(s->q, name))
			return false;
	}
	for (size_t i = 0; i < count; i++)
		if (!serve(s, waiting[i]))
			return false;
	return true;
}

bool check_volumes_allow(const struct question *q)
{
	struct served s = {.q = q};

	return serve_all(&s);
}

size_t place_checker_bindings(const struct place_checker *c, size_t pod, size_t node,
			      struct place_binding out[PLACE_CHECKER_CLAIMS])
{
	const struct question q = {c, pod, node, c->pods[pod], c->nodes[node], NULL};
	struct served s = {.q = &q};

	if (!serve_all(&s))
		return 0;
	memcpy(out, s.of, s.count * sizeof(*out));
	return s.count;
}
