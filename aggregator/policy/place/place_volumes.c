/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims restrict nodes. A bound claim needs the node affinity and zone labels of its volume. A
 * waiting claim takes the smallest available volume that suits it and the node, as in the
 * kube-scheduler, else its storage class provisions one within its topologies. The claims of a pod
 * choose in turn, smallest first, never the same volume. A missing, lost, deleted or unbound claim
 * refuses every node.
 *
 * place_put() binds waiting claims until it is reverted, unless the volumes refuse; place_take() does
 * not unbind, as in a cluster.
 *
 * CSINode limits the volumes of a driver on a node; claims of its pods count once each. Volumes that
 * are attached without a pod, ephemeral volumes and migrated in-tree drivers are not counted. The
 * capacity of drivers (CSIStorageCapacity) is not known.
 */
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/array.h"

/* Volumes that fit every node. */
static const char *const harmless[] = {"name",
				       "emptyDir",
				       "hostPath",
				       "configMap",
				       "secret",
				       "downwardAPI",
				       "projected",
				       "csi",
				       "image",
				       "nfs",
				       "gitRepo",
				       "cephfs",
				       "glusterfs",
				       "flexVolume",
				       "fc",
				       "azureFile",
				       "portworxVolume",
				       "quobyte",
				       "flocker",
				       "storageos",
				       "scaleIO",
				       "vsphereVolume",
				       "photonPersistentDisk",
				       NULL};

static void add_claim(struct place *p, struct place_class *c, const char *name)
{
	struct place_claim *claim;

	if (c->claims.count == PLACE_TERMS_MAX) {
		place_note(&c->unknown, "spec.volumes: more than %u claims are not judged",
			   PLACE_TERMS_MAX);
		return;
	}
	claim = place_claim_intern(p, c->namespace, name);
	for (uint32_t i = 0; i < c->claims.count; i++)
		if (c->claims.of[i] == claim)
			return;
	PLACE_LIST_ADD(&c->claims, claim);
}

static void read_volume(struct place *p, struct place_class *c, const cJSON *volume, size_t at)
{
	if (!cJSON_IsObject(volume))
		place_note(&c->unknown, "spec.volumes[%zu]: must be an object", at);
	for (const cJSON *m = volume->child; m; m = m->next) {
		const char *claim = cJSON_GetStringValue(object_json_find(m, "claimName"));

		if (cJSON_IsNull(m) || array_has_text(harmless, m->string))
			continue;
		if (strcmp(m->string, "persistentVolumeClaim") != 0)
			place_note(&c->unknown, "spec.volumes[%zu].%.60s: cannot be judged", at,
				   m->string);
		else if (!claim || !*claim)
			place_note(&c->unknown,
				   "spec.volumes[%zu].persistentVolumeClaim.claimName: must be the "
				   "name of a claim",
				   at);
		else
			add_claim(p, c, claim);
	}
}

void place_class_read_volumes(struct place *p, struct place_class *c, const cJSON *spec)
{
	const cJSON *list = object_json_find(spec, "volumes");
	size_t at = 0;

	if (list && !cJSON_IsArray(list))
		place_note(&c->unknown, "spec.volumes: must be a list");
	for (const cJSON *v = object_json_first(list); v; v = v->next)
		read_volume(p, c, v, at++);
	place_claims_sort(c);
}

/* --- asking */

static const char *const zone_labels[] = {
	"topology.kubernetes.io/zone",
	"topology.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region",
};

void place_volume_read_zones(struct place_volume *v, const cJSON *labels)
{
	for (size_t i = 0; i < 4; i++) {
		const char *value = cJSON_GetStringValue(object_json_find(labels, zone_labels[i]));

		if (value && *value)
			place_terms_add_zones(&v->zones, zone_labels[i], value);
	}
	v->has_zones = v->zones.count > 0;
}

static bool has_zone_label(const struct labels *labels)
{
	for (size_t i = 0; i < 4; i++)
		if (labels_find(labels, zone_labels[i]))
			return true;
	return false;
}

/* All of them, unlike terms. A stable label of the node also meets a beta label. */
static bool zones_match(const struct place_terms *zones, const struct labels *labels)
{
	for (uint32_t i = 0; i < zones->count; i++) {
		struct place_requirement r = zones->of[i].of[0];

		for (size_t k = 2; k < 4; k++)
			if (strcmp(r.key, zone_labels[k]) == 0 && !labels_find(labels, r.key))
				r.key = (char *)zone_labels[k - 2];
		if (!place_requirement_match(&r, labels, NULL))
			return false;
	}
	return true;
}

static bool reaches(const struct place_volume *v, const struct kube_node *node)
{
	return !v->has_terms || place_terms_match(&v->terms, &node->labels, NULL);
}

static bool is_usable(const struct place_volume *v, const struct kube_node *node)
{
	return reaches(v, node) && (!v->has_zones || !has_zone_label(&node->labels) ||
				    zones_match(&v->zones, &node->labels));
}

/* Without regard to the node. */
static bool suits(const struct place_volume *v, const struct place_claim *claim)
{
	return v->available && !v->wanted_by && v->size >= claim->size &&
	       v->block == claim->block && (v->modes & claim->modes) == claim->modes &&
	       (!claim->selector || selector_matches(claim->selector, &v->labels));
}

/* The available volume that it would get on the node, or NULL. */
static struct place_volume *find_volume(const struct place_claim *claim,
					const struct kube_node *node, uint64_t question)
{
	if (claim->wanted)
		return claim->wanted->chosen != question && reaches(claim->wanted, node)
			       ? claim->wanted
			       : NULL;
	for (uint32_t i = 0; claim->stock && i < claim->stock->volumes.count; i++) {
		struct place_volume *v = claim->stock->volumes.of[i];

		if (!v->given_to && v->chosen != question && suits(v, claim) && reaches(v, node))
			return v;
	}
	return NULL;
}

bool place_claim_is_taken(const struct place_claim *claim)
{
	return claim->exclusive && claim->users;
}

/* Whether the class provisions a volume on the node. */
static bool is_made(const struct place *p, const struct place_claim *claim, place_node n)
{
	const struct kube_node *node = p->nodes[n].object;

	return claim->provisioned && (!claim->has_topologies ||
				      place_terms_match(&claim->topologies, &node->labels, NULL));
}

/* A waiting claim, in turn with the others of its pod. */
static bool can_get(const struct place *p, const struct place_claim *claim, place_node n,
		    uint64_t question)
{
	const struct kube_node *node = p->nodes[n].object;
	struct place_volume *v;

	if (claim->given)
		return is_usable(claim->given, node);
	if (claim->given_on != PLACE_NONE)
		return claim->given_on == n;
	if (claim->made_on)
		return strcmp(claim->made_on, node->object.name) == 0 && is_made(p, claim, n);
	v = find_volume(claim, node, question);
	if (v)
		v->chosen = question;
	return v || is_made(p, claim, n);
}

static bool allows(const struct place *p, const struct place_claim *claim, place_node n,
		   uint64_t question)
{
	if (claim->missing || place_claim_is_taken(claim))
		return false;
	if (claim->unknown)
		return true; /* refused later by PLACE_UNKNOWN */
	if (claim->waits)
		return can_get(p, claim, n, question);
	return is_usable(claim->bound, p->nodes[n].object);
}

const struct place_claim *place_volumes_refuse(struct place *p, const struct place_class *c,
					       place_node n)
{
	uint64_t question = ++p->question;

	for (uint32_t i = 0; i < c->claims.count; i++)
		if (!allows(p, c->claims.of[i], n, question))
			return c->claims.of[i];
	return NULL;
}

const struct place_claim *place_volumes_unknown(const struct place_class *c)
{
	for (uint32_t i = 0; i < c->claims.count; i++)
		if (c->claims.of[i]->unknown)
			return c->claims.of[i];
	return NULL;
}

/* --- limits */

/* Claims of the driver that this query has not counted. */
static uint32_t count_claims(const struct place_class *c, const char *driver, uint64_t question)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < c->claims.count; i++) {
		struct place_claim *claim = c->claims.of[i];

		if (!claim->driver || claim->counted == question ||
		    strcmp(claim->driver, driver) != 0)
			continue;
		claim->counted = question;
		count++;
	}
	return count;
}

const struct csi_limit *place_volumes_exceed(struct place *p, const struct place_class *c,
					     place_node n, uint32_t *used)
{
	const struct kube_csi_node *node =
		(const struct kube_csi_node *)place_find_object(p->view, OBJECT_CSI_NODE, "",
								place_node_name(p, n));

	for (size_t i = 0; node && i < node->count; i++) {
		const struct csi_limit *limit = &node->of[i];
		uint64_t question = ++p->question;
		uint32_t more;

		if (!count_claims(c, limit->driver, question))
			continue;
		question = ++p->question;
		*used = 0;
		for (const struct place_slot *s = p->first[n]; s; s = s->next)
			*used += count_claims(s->class, limit->driver, question);
		more = count_claims(c, limit->driver, question);
		if (more && *used + more > (uint32_t)limit->volumes)
			return limit;
	}
	return NULL;
}

/* --- binding */

static void bind(struct place *p, struct place_claim *claim, place_node n, uint64_t question)
{
	struct place_volume *v = find_volume(claim, p->nodes[n].object, question);

	if (v) {
		v->given_to = claim;
		claim->given = v;
	} else {
		claim->given_on = n;
	}
	PLACE_LIST_ADD(&p->log, ((struct place_log){.id = claim->id, .what = PLACE_DID_BIND}));
}

void place_volumes_bind(struct place *p, const struct place_class *c, place_node n)
{
	uint64_t question;

	if (!p->nodes[n].object || place_volumes_refuse(p, c, n))
		return;
	question = ++p->question;
	for (uint32_t i = 0; i < c->claims.count; i++) {
		struct place_claim *claim = c->claims.of[i];

		if (claim->waits && !claim->unknown && !claim->made_on && !claim->given &&
		    claim->given_on == PLACE_NONE)
			bind(p, claim, n, question);
	}
}

void place_volumes_undo(struct place *p, uint32_t id)
{
	struct place_claim *claim = p->claim_of.of[id];

	if (claim->given)
		claim->given->given_to = NULL;
	claim->given = NULL;
	claim->given_on = PLACE_NONE;
}
