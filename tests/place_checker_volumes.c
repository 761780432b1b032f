/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters VolumeBinding, VolumeZone and VolumeRestrictions as one: what a pod's claims say about a node. What the attach limits of
 * drivers and the capacity of storage say is not known here.
 */
#include <string.h>

#include "tests/place_checker_parts.h"

static bool refuse(const struct question *q, const char *what, const char *name)
{
	reason_set(q->why, "%s: %s", what, name);
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

static bool volume_reaches(const cJSON *volume, const cJSON *node)
{
	return check_node_selector_matches(
		check_get(check_spec_of(volume, "nodeAffinity"), "required"), node);
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

/* An unbound volume that the claim could be bound to here. */
static bool volume_suits(const cJSON *volume, const cJSON *claim, const cJSON *node)
{
	const cJSON *want = check_get(claim, "spec"), *have = check_get(volume, "spec");
	const cJSON *selector = check_get(want, "selector");

	if (check_get(have, "claimRef") ||
	    !check_equal(check_text_of(want, "storageClassName", ""),
			 check_text_of(have, "storageClassName", "")))
		return false;
	if (!check_equal(check_text_of(want, "volumeMode", "Filesystem"),
			 check_text_of(have, "volumeMode", "Filesystem")) ||
	    (selector && !check_selects(selector, volume)))
		return false;
	for (const cJSON *mode = check_first_of(check_get(want, "accessModes")); mode;
	     mode = mode->next)
		if (!check_has_string(check_get(have, "accessModes"), mode->valuestring))
			return false;
	return check_amount_in(check_get(have, "capacity"), "storage") >=
		       check_amount_in(check_get(check_get(want, "resources"), "requests"),
				       "storage") &&
	       volume_reaches(volume, node);
}

/* Terms of a class's allowedTopologies: one of them, all of its expressions. */
static bool topologies_allow(const cJSON *class, const cJSON *node)
{
	const cJSON *terms = check_get(class, "allowedTopologies");

	for (const cJSON *term = check_first_of(terms); term; term = term->next) {
		bool all = true;

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

static bool unbound_allows(const struct question *q, const cJSON *claim)
{
	const char *name = check_text_of(check_get(claim, "spec"), "storageClassName", "");
	const cJSON *class = check_find_other(q->c, "StorageClass", "", name);

	if (!class)
		return refuse(q, "unbound, and there is no class", name);
	if (!check_equal(check_text_of(class, "volumeBindingMode", "Immediate"),
			 "WaitForFirstConsumer"))
		return refuse(q, "unbound, and does not wait for a pod", check_name_of(claim));
	for (size_t i = 0; i < q->c->other_count; i++)
		if (check_equal(check_text_of(q->c->others[i], "kind", ""), "PersistentVolume") &&
		    volume_suits(q->c->others[i], claim, q->node))
			return true;
	if (check_equal(check_text_of(class, "provisioner", ""), "kubernetes.io/no-provisioner"))
		return refuse(q, "no volume suits", check_name_of(claim));
	return topologies_allow(class, q->node) || refuse(q, "the class does not reach", name);
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

/* ReadWriteOncePod: nobody else in the cluster has it. */
static bool is_exclusive(const struct question *q, const cJSON *claim)
{
	if (!check_has_string(check_spec_of(claim, "accessModes"), "ReadWriteOncePod"))
		return true;
	for (size_t i = 0; i < q->c->pod_count; i++)
		if (check_is_there(q, i) &&
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
	return *check_text_of(check_get(claim, "spec"), "volumeName", "")
		       ? bound_allows(q, claim)
		       : unbound_allows(q, claim);
}

bool check_volumes_allow(const struct question *q)
{
	for (const cJSON *item = check_first_of(check_spec_of(q->pod, "volumes")); item;
	     item = item->next) {
		const char *name =
			check_text_of(check_get(item, "persistentVolumeClaim"), "claimName", NULL);

		if (name && !claim_allows(q, name))
			return false;
	}
	return true;
}

static bool waits(const struct question *q, const cJSON *claim)
{
	const char *class = check_text_of(check_get(claim, "spec"), "storageClassName", "");
	const cJSON *found = check_find_other(q->c, "StorageClass", "", class);

	if (!claim || *check_text_of(check_get(claim, "spec"), "volumeName", ""))
		return false;
	return !found || check_equal(check_text_of(found, "volumeBindingMode", "Immediate"),
				     "WaitForFirstConsumer");
}

bool check_needs_storage(const struct question *q)
{
	for (const cJSON *item = check_first_of(check_spec_of(q->pod, "volumes")); item;
	     item = item->next) {
		const char *name =
			check_text_of(check_get(item, "persistentVolumeClaim"), "claimName", "");

		if (waits(q, check_find_other(q->c, "PersistentVolumeClaim",
					      check_namespace_of(q->pod), name)))
			return true;
	}
	return false;
}
