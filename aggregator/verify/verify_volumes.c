/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters VolumeBinding, VolumeZone and VolumeRestrictions as one, for claims that are bound:
 * those of pods that run. Which volume a claim of a pending pod gets, and attach limits of drivers,
 * are not judged.
 */
#include <string.h>

#include "aggregator/verify/verify_internal.h"

#define BETA "failure-domain.beta.kubernetes.io/"

static bool is_zone_key(const char *key)
{
	return verify_equal(key, "topology.kubernetes.io/zone") ||
	       verify_equal(key, "topology.kubernetes.io/region") ||
	       verify_equal(key, BETA "zone") || verify_equal(key, BETA "region");
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

/* A volume's labels bind it to zones; a node without any such label is in no zone and takes any. */
static bool zones_allow(const cJSON *volume, const cJSON *node)
{
	const cJSON *first = verify_first_member(verify_at(node, "metadata.labels"));

	while (first && !is_zone_key(first->string))
		first = first->next;
	if (!first)
		return true;
	VERIFY_EACH_MEMBER (item, verify_at(volume, "metadata.labels")) {
		const char *zone = verify_label(node, item->string);
		const char *set = cJSON_GetStringValue(item);

		if (!zone && verify_equal(item->string, BETA "zone"))
			zone = verify_label(node, "topology.kubernetes.io/zone");
		if (!zone && verify_equal(item->string, BETA "region"))
			zone = verify_label(node, "topology.kubernetes.io/region");
		if (is_zone_key(item->string) && (!zone || !set || !in_zones(set, zone)))
			return false;
	}
	return true;
}

bool verify_volume_reaches(const cJSON *volume, const cJSON *node)
{
	return verify_node_selector(verify_at(volume, "spec.nodeAffinity.required"), node, NULL);
}

bool verify_bound_allows(const struct verify_question *q, const cJSON *claim)
{
	const char *name = verify_text(claim, "spec.volumeName", "");
	const cJSON *volume = verify_find_other(q->w, "PersistentVolume", "", name);

	if (!volume)
		return verify_refuse(q, "there is no PersistentVolume %s", name);
	if (!verify_volume_reaches(volume, q->node))
		return verify_refuse(q, "the node is out of reach of PersistentVolume %s", name);
	return zones_allow(volume, q->node) ||
	       verify_refuse(q, "the node is in another zone than PersistentVolume %s", name);
}

bool verify_is_bound(const cJSON *claim)
{
	return *verify_text(claim, "spec.volumeName", "") &&
	       (verify_get(verify_at(claim, "metadata.annotations"),
			   "pv.kubernetes.io/bind-completed") ||
		!verify_equal(verify_text(claim, "status.phase", ""), "Pending"));
}

static bool uses_claim(const cJSON *pod, const char *claim)
{
	const cJSON *item = verify_first(verify_at(pod, "spec.volumes"));

	while (item &&
	       !verify_equal(verify_text(item, "persistentVolumeClaim.claimName", NULL), claim))
		item = item->next;
	return item;
}

/* It counts where it is, and also on a node that the API does not know. */
static bool holds_claims(const struct verify_question *q, size_t pod)
{
	return verify_is_there(q, pod) || (pod != q->pod_at && q->w->where[pod] == VERIFY_LOST &&
					   !verify_has_ended(q->w->pods[pod]));
}

bool verify_claim_is_free(const struct verify_question *q, const cJSON *claim)
{
	if (verify_at(claim, "metadata.deletionTimestamp") ||
	    verify_equal(verify_text(claim, "status.phase", ""), "Lost"))
		return verify_refuse(q, "lost or in deletion: PersistentVolumeClaim %s",
				     verify_name(claim));
	if (!verify_contains(verify_at(claim, "spec.accessModes"), "ReadWriteOncePod"))
		return true;
	for (size_t i = 0; i < q->w->pod_count; i++)
		if (holds_claims(q, i) &&
		    verify_equal(verify_namespace(q->w->pods[i]), verify_namespace(claim)) &&
		    uses_claim(q->w->pods[i], verify_name(claim)))
			return verify_refuse(q, "its claim is used by pod %s",
					     verify_name(q->w->pods[i]));
	return true;
}

bool verify_volumes(const struct verify_question *q)
{
	VERIFY_EACH (item, verify_at(q->pod, "spec.volumes")) {
		const char *name = verify_text(item, "persistentVolumeClaim.claimName", NULL);
		const cJSON *claim = name ? verify_find_other(q->w, "PersistentVolumeClaim",
							      verify_namespace(q->pod), name)
					  : NULL;

		if (!name)
			continue;
		if (!claim)
			return verify_refuse(q, "there is no PersistentVolumeClaim %s", name);
		if (!verify_claim_is_free(q, claim))
			return false;
		if (!verify_is_bound(claim) && q->pending)
			continue;
		if (!verify_is_bound(claim))
			return verify_refuse(q, "not bound: PersistentVolumeClaim %s", name);
		if (!verify_bound_allows(q, claim))
			return false;
	}
	return true;
}
