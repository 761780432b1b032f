/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes bind pods to places. A claim that is bound stands where its volume is: the volume's node affinity, and the zone in its labels. One
 * that waits for its first consumer may be made wherever the storage class's topologies say; where they say nothing, or a volume must be found
 * among those there are, nobody here can tell, and the pod is refused as unknown. What is missing, lost, in deletion or should have
 * been bound at once refuses as the kube-scheduler does.
 *
 * How many volumes a node's driver attaches is not known to the model, and so not judged.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

/* Nothing about them depends on the node. */
static const char *const harmless[] = {
	"name",
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
};

static bool is_harmless(const char *member)
{
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (strcmp(harmless[i], member) == 0)
			return true;
	return false;
}

static void read_volume(struct place_class *c, const cJSON *volume, size_t at)
{
	for (const cJSON *m = volume->child; m; m = m->next) {
		const char *claim = cJSON_GetStringValue(object_json_find(m, "claimName"));

		if (cJSON_IsNull(m) || is_harmless(m->string))
			continue;
		if (strcmp(m->string, "persistentVolumeClaim") == 0 && claim)
			PLACE_LIST_ADD(&c->claim_names, mem_strdup(claim));
		else
			place_note(&c->unknown, "spec.volumes[%zu].%.60s: cannot be judged", at,
				   m->string);
	}
}

void place_class_read_volumes(struct place_class *c, const cJSON *spec)
{
	const cJSON *list = object_json_find(spec, "volumes");
	size_t at = 0;

	if (list && !cJSON_IsArray(list))
		place_note(&c->unknown, "spec.volumes: must be a list");
	for (const cJSON *v = cJSON_IsArray(list) ? list->child : NULL; v; v = v->next)
		read_volume(c, v, at++);
}

/* --- claims */

/* The object's tree, or NULL where there is no such object. */
static cJSON *find_tree(const struct place *p, enum object_kind kind, const char *namespace,
			const char *name)
{
	const struct object *o =
		p->view->cluster ? cluster_find(p->view->cluster, kind, namespace, name) : NULL;

	return o ? cJSON_Parse(o->text) : NULL;
}

static const char *text_of(const cJSON *json, const char *key)
{
	const char *text = cJSON_GetStringValue(object_json_find(json, key));

	return text ? text : "";
}

static struct place_claim *intern_claim(struct place *p, const struct place_class *c,
					const char *name)
{
	char *key = mem_printf("%s/%s", c->namespace, name);
	struct place_claim *claim;

	HASH_FIND_STR(p->claims, key, claim);
	if (claim) {
		free(key);
		return claim;
	}
	claim = mem_zalloc(1, sizeof(*claim));
	claim->name = key;
	HASH_ADD_KEYPTR(hh, p->claims, claim->name, strlen(claim->name), claim);
	return claim;
}

static bool has_mode(const cJSON *spec, const char *mode)
{
	const cJSON *list = object_json_find(spec, "accessModes");

	for (const cJSON *m = cJSON_IsArray(list) ? list->child : NULL; m; m = m->next)
		if (cJSON_IsString(m) && strcmp(m->valuestring, mode) == 0)
			return true;
	return false;
}

static const char *const zone_labels[] = {
	"topology.kubernetes.io/zone",
	"topology.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region",
};

static void resolve_volume(struct place_class *c, struct place_volume *v, const cJSON *volume)
{
	const cJSON *affinity = object_json_find(object_json_find(volume, "spec"), "nodeAffinity");
	const cJSON *required = object_json_find(affinity, "required");
	const cJSON *labels = object_json_find(object_json_find(volume, "metadata"), "labels");
	struct reason why;

	if (required &&
	    place_terms_read(object_json_find(required, "nodeSelectorTerms"), &v->terms, &why))
		place_note(&c->volumes_unknown,
			   "the volume of claim %s: spec.nodeAffinity.required.nodeSelectorTerms%s",
			   v->name, why.text);
	else
		v->has_terms = required != NULL;
	for (size_t i = 0; i < 4; i++) {
		const char *value = text_of(labels, zone_labels[i]);

		if (*value)
			place_terms_add_zones(&v->zones, zone_labels[i], value);
	}
	v->has_zones = v->zones.count > 0;
}

static void resolve_unbound(struct place *p, struct place_class *c, struct place_volume *v,
			    const char *class_name)
{
	cJSON *class = find_tree(p, OBJECT_STORAGE_CLASS, "", class_name);
	const cJSON *topologies = object_json_find(class, "allowedTopologies");
	struct reason why;

	if (!class)
		place_note(&c->volumes_unknown,
			   "claim %s is not bound, and nothing is known of storage class \"%s\"",
			   v->name, class_name);
	else if (strcmp(text_of(class, "volumeBindingMode"), "WaitForFirstConsumer") != 0)
		place_note(&c->volumes_missing, "claim %s should be bound by now, and is not",
			   v->name);
	else if (!cJSON_GetArraySize(topologies) ||
		 strcmp(text_of(class, "provisioner"), "kubernetes.io/no-provisioner") == 0)
		place_note(
			&c->volumes_unknown,
			"claim %s is not bound, and storage class %s does not say where it may be",
			v->name, class_name);
	else if (place_terms_read_topologies(topologies, &v->terms, &why))
		place_note(&c->volumes_unknown, "storage class %s: allowedTopologies%s", class_name,
			   why.text);
	else
		v->has_terms = true;
	cJSON_Delete(class);
}

static void resolve_bound(struct place *p, struct place_class *c, struct place_volume *v,
			  const char *name)
{
	cJSON *volume = find_tree(p, OBJECT_PERSISTENT_VOLUME, "", name);

	if (!volume)
		place_note(&c->volumes_missing,
			   "claim %s is bound to volume %s, which is not there", v->name, name);
	else
		resolve_volume(c, v, volume);
	cJSON_Delete(volume);
}

static void resolve_claim(struct place *p, struct place_class *c, const char *name)
{
	cJSON *tree = find_tree(p, OBJECT_PERSISTENT_VOLUME_CLAIM, c->namespace, name);
	const cJSON *spec = object_json_find(tree, "spec");
	const char *volume = text_of(spec, "volumeName");
	struct place_claim *claim = intern_claim(p, c, name);
	struct place_volume v = {.name = mem_strdup(name)};

	claim->exclusive = has_mode(spec, "ReadWriteOncePod");
	PLACE_LIST_ADD(&c->claims, claim);
	if (!tree)
		place_note(&c->volumes_missing, "claim %s is not there", name);
	else if (object_json_find(object_json_find(tree, "metadata"), "deletionTimestamp"))
		place_note(&c->volumes_missing, "claim %s is in deletion", name);
	else if (strcmp(text_of(object_json_find(tree, "status"), "phase"), "Lost") == 0)
		place_note(&c->volumes_missing, "claim %s has lost its volume", name);
	else if (*volume)
		resolve_bound(p, c, &v, volume);
	else
		resolve_unbound(p, c, &v, text_of(spec, "storageClassName"));
	PLACE_LIST_ADD(&c->volumes, v);
	cJSON_Delete(tree);
}

void place_class_forget_volumes(struct place_class *c)
{
	for (uint32_t i = 0; i < c->volumes.count; i++) {
		place_terms_fini(&c->volumes.of[i].terms);
		place_terms_fini(&c->volumes.of[i].zones);
		free(c->volumes.of[i].name);
	}
	c->volumes.count = c->claims.count = 0;
	free(c->volumes_missing);
	free(c->volumes_unknown);
	c->volumes_missing = c->volumes_unknown = NULL;
}

void place_class_resolve_volumes(struct place *p, struct place_class *c)
{
	place_class_forget_volumes(c);
	if (c->claim_names.count && !view_knows(p->view, OBJECT_PERSISTENT_VOLUME_CLAIM)) {
		place_note(&c->volumes_unknown, "claims of volumes are not known");
		return;
	}
	for (uint32_t i = 0; i < c->claim_names.count; i++)
		resolve_claim(p, c, c->claim_names.of[i]);
}

/* --- asking */

static bool has_zone_label(const struct labels *labels)
{
	for (size_t i = 0; i < 4; i++)
		if (labels_find(labels, zone_labels[i]))
			return true;
	return false;
}

/* Each of them, and not any as with terms. A beta label of the volume is met by the node's label of today, too. */
static bool zones_match(const struct place_terms *zones, const struct labels *labels)
{
	for (uint32_t i = 0; i < zones->count; i++) {
		struct place_requirement r = zones->of[i].of[0];

		for (size_t k = 2; k < 4; k++)
			if (strcmp(r.key, zone_labels[k]) == 0 && !labels_find(labels, r.key))
				r.key = (char *)(uintptr_t)zone_labels[k - 2];
		if (!place_requirement_match(&r, labels, NULL))
			return false;
	}
	return true;
}

const struct place_volume *place_volumes_refuse(const struct place *p, const struct place_class *c,
						place_node n)
{
	const struct kube_node *node = p->nodes[n].object;

	for (uint32_t i = 0; i < c->volumes.count; i++) {
		const struct place_volume *v = &c->volumes.of[i];

		if (v->has_terms && !place_terms_match(&v->terms, &node->labels, node->object.name))
			return v;
		if (v->has_zones && has_zone_label(&node->labels) &&
		    !zones_match(&v->zones, &node->labels))
			return v;
	}
	return NULL;
}

const struct place_claim *place_volumes_taken(const struct place_class *c)
{
	for (uint32_t i = 0; i < c->claims.count; i++)
		if (c->claims.of[i]->exclusive && c->claims.of[i]->users)
			return c->claims.of[i];
	return NULL;
}
