/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of volumes, read from the claim, its volume and its storage class, and shared by all
 * classes of pods that name them. A claim is read again only if one of its objects changed;
 * available volumes are read when the first claim waits, and after a change of any volume.
 *
 * As in the kube-scheduler, a claim is bound when the controller says so (annotation and phase). A
 * claim that names a volume before that, has no storage class, or an absent one, waits for the
 * controller and not for a pod.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/quantity.h"

#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define BETA_CLASS     "volume.beta.kubernetes.io/storage-class"
#define NO_PROVISIONER "kubernetes.io/no-provisioner"

static const char *class_of(const cJSON *tree)
{
	const char *beta = document_annotation(tree, BETA_CLASS);

	return beta && *beta ? beta : document_text_or(tree, "spec.storageClassName", "");
}

static bool is_deleted(const cJSON *tree)
{
	return object_json_find(object_json_find(tree, "metadata"), "deletionTimestamp") != NULL;
}

/* False: an unknown mode. */
static bool read_modes(const cJSON *spec, unsigned int *out)
{
	static const char *const names[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
					    "ReadWriteOncePod"};
	const cJSON *list = object_json_find(spec, "accessModes");

	*out = 0;
	for (const cJSON *m = object_json_first(list); m; m = m->next) {
		const char *const *found = NULL;

		if (cJSON_IsString(m))
			found = array_find_text(names, 4, sizeof(*names), m->valuestring);
		if (!found)
			return false;
		*out |= 1U << (found - names);
	}
	return true;
}

static bool read_size(const cJSON *amounts, int64_t *out)
{
	const cJSON *value = object_json_find(amounts, "storage");
	struct error error;

	*out = 0;
	return !value || !object_json_quantity(value, quantity_parse_units, out, &error);
}

static bool is_block(const cJSON *spec)
{
	return object_json_is(spec, "volumeMode", "Block");
}

/* --- volumes */

static void free_volume(struct place_volume *v)
{
	if (!v)
		return;
	place_terms_fini(&v->terms);
	place_terms_fini(&v->zones);
	labels_fini(&v->labels);
	free(v->wanted_by);
	free(v->wanted_uid);
	free(v->name);
	free(v);
}

/* NULL: unreadable, and *note says why. */
static struct place_volume *read_volume(const cJSON *tree, const char *name, char **note)
{
	const cJSON *affinity = object_json_find(object_json_find(tree, "spec"), "nodeAffinity");
	const cJSON *required = object_json_find(affinity, "required");
	struct place_volume *v = mem_zalloc(1, sizeof(*v));
	struct error error;

	v->name = mem_strdup(name);
	if (required &&
	    place_terms_read(object_json_find(required, "nodeSelectorTerms"), &v->terms, &error)) {
		place_note(note, "volume %s: spec.nodeAffinity.required.nodeSelectorTerms%s", name,
			   error.text);
		free_volume(v);
		return NULL;
	}
	v->has_terms = required != NULL;
	place_volume_read_zones(v, object_json_find(object_json_find(tree, "metadata"), "labels"));
	return v;
}

static void read_claim_ref(struct place_volume *v, const cJSON *ref)
{
	if (!ref)
		return;
	v->wanted_by = mem_printf("%s/%s", object_json_text(ref, "namespace"),
				  object_json_text(ref, "name"));
	v->wanted_uid = mem_strdup(object_json_text(ref, "uid"));
}

/* A volume that a claim could be bound to; NULL: none, or unreadable. */
static struct place_volume *read_stock(const struct object *o, const cJSON *tree)
{
	const cJSON *spec = object_json_find(tree, "spec");
	const cJSON *labels = object_json_find(object_json_find(tree, "metadata"), "labels");
	struct place_volume *v = NULL;
	char *note = NULL;

	if (tree && !is_deleted(tree))
		v = read_volume(tree, o->name, &note);
	free(note);
	if (!v)
		return NULL;
	v->block = is_block(spec);
	v->available = object_json_is(object_json_find(tree, "status"), "phase", "Available");
	read_claim_ref(v, object_json_find(spec, "claimRef"));
	if (!read_size(object_json_find(spec, "capacity"), &v->size) ||
	    (labels && labels_read(labels, &v->labels, NULL))) {
		free_volume(v);
		return NULL;
	}
	read_modes(spec, &v->modes);
	return v;
}

/* --- the stock */

static struct place_stock *find_stock(struct place *p, const char *class)
{
	struct place_stock *s;

	HASH_FIND_STR(p->stocks, class, s);
	return s;
}

static int compare_volumes(const void *a, const void *b)
{
	const struct place_volume *x = *(struct place_volume *const *)a;
	const struct place_volume *y = *(struct place_volume *const *)b;

	return COMPARE(x->size, y->size) ?: strcmp(x->name, y->name);
}

static void stock_volume(struct place *p, const char *class, struct place_volume *v)
{
	struct place_stock *s;

	HASH_INTERN(p->stocks, s, class, class);
	PLACE_LIST_ADD(&s->volumes, v);
}

static void fill_stock(struct place *p)
{
	const struct object_table *t = view_table(p->view, OBJECT_PERSISTENT_VOLUME);

	if (p->stocked)
		return;
	p->stocked = true;
	for (size_t i = 0; t && i < t->count; i++) {
		cJSON *tree = cJSON_Parse(t->of[i]->text);
		struct place_volume *v = read_stock(t->of[i], tree);

		if (v)
			stock_volume(p, class_of(tree), v);
		cJSON_Delete(tree);
	}
	for (struct place_stock *s = p->stocks; s; s = s->hh.next)
		qsort(s->volumes.of, s->volumes.count, sizeof(struct place_volume *),
		      compare_volumes);
}

static void clear_stock(struct place *p)
{
	struct place_stock *s, *next;

	HASH_RELEASE (p->stocks, s, next) {
		for (uint32_t i = 0; i < s->volumes.count; i++)
			free_volume(s->volumes.of[i]);
		free(s->volumes.of);
		free(s->class);
		free(s);
	}
	p->stocked = false;
}

/* The volume that is reserved for the claim. */
static struct place_volume *find_wanted(const struct place_claim *claim, const char *uid)
{
	for (uint32_t i = 0; claim->stock && i < claim->stock->volumes.count; i++) {
		struct place_volume *v = claim->stock->volumes.of[i];

		if (v->wanted_by && strcmp(v->wanted_by, claim->key) == 0 &&
		    (!*v->wanted_uid || strcmp(v->wanted_uid, uid) == 0) &&
		    v->size >= claim->size && v->block == claim->block)
			return v;
	}
	return NULL;
}

/* --- claims */

static char *driver_of(const cJSON *tree, const char *path)
{
	const char *name = document_text_or(tree, path, "");

	return *name ? mem_strdup(name) : NULL;
}

/*
 * The driver of an unusable claim, whose volume stays attached: of the volume, else the provisioner
 * of the class, as in the kube-scheduler.
 */
static void read_driver(const struct place *p, struct place_claim *claim, const cJSON *tree)
{
	const char *volume = document_text_or(tree, "spec.volumeName", "");
	const struct object *o = NULL;
	cJSON *read;

	if (*volume)
		o = place_find_object(p->view, OBJECT_PERSISTENT_VOLUME, "", volume);
	if (o) {
		read = cJSON_Parse(o->text);
		claim->driver = driver_of(read, "spec.csi.driver");
	} else {
		o = place_find_object(p->view, OBJECT_STORAGE_CLASS, "", claim->class);
		read = o ? cJSON_Parse(o->text) : NULL;
		claim->driver = driver_of(read, "provisioner");
	}
	cJSON_Delete(read);
}

static void read_bound(struct place *p, struct place_claim *claim, const char *name)
{
	const struct object *o = place_find_object(p->view, OBJECT_PERSISTENT_VOLUME, "", name);
	cJSON *tree = o ? cJSON_Parse(o->text) : NULL;

	claim->of[1] = o;
	if (!view_knows(p->view, OBJECT_PERSISTENT_VOLUME))
		place_note(&claim->unknown, "volumes are not known, and so not that of claim %s",
			   claim->key);
	else if (!tree)
		place_note(&claim->missing, "claim %s is bound to volume %s, which is not there",
			   claim->key, name);
	else
		claim->bound = read_volume(tree, name, &claim->unknown);
	if (claim->bound)
		claim->driver = driver_of(tree, "spec.csi.driver");
	cJSON_Delete(tree);
}

static void read_wishes(struct place *p, struct place_claim *claim, const cJSON *tree)
{
	const cJSON *spec = object_json_find(tree, "spec");
	const cJSON *selector = object_json_find(spec, "selector");
	const cJSON *asked = object_json_find(object_json_find(spec, "resources"), "requests");
	const char *node = document_annotation(tree, SELECTED_NODE);
	struct error error;

	claim->waits = true;
	claim->block = is_block(spec);
	claim->made_on = node && *node ? mem_strdup(node) : NULL;
	if (!read_size(asked, &claim->size))
		place_note(&claim->unknown,
			   "claim %s: spec.resources.requests.storage: cannot be read", claim->key);
	if (!read_modes(spec, &claim->modes))
		place_note(&claim->unknown, "claim %s: spec.accessModes: one is not known",
			   claim->key);
	if (selector && selector_read(selector, &claim->selector, &error))
		place_note(&claim->unknown, "claim %s: spec.selector: %s", claim->key, error.text);
	fill_stock(p);
	claim->stock = find_stock(p, claim->class);
	claim->wanted = find_wanted(claim, document_text_or(tree, "metadata.uid", ""));
}

static void read_provisioner(struct place *p, struct place_claim *claim, const cJSON *class)
{
	const cJSON *topologies = object_json_find(class, "allowedTopologies");
	const char *provisioner = object_json_text(class, "provisioner");
	struct error error;

	claim->provisioned = *provisioner && strcmp(provisioner, NO_PROVISIONER) != 0;
	if (!claim->provisioned && !view_knows(p->view, OBJECT_PERSISTENT_VOLUME))
		place_note(&claim->unknown, "volumes are not known, and claim %s needs one",
			   claim->key);
	if (!cJSON_GetArraySize(topologies) && (!topologies || cJSON_IsArray(topologies)))
		return;
	if (place_terms_read_topologies(topologies, &claim->topologies, &error))
		place_note(&claim->unknown, "storage class %s: allowedTopologies%s", claim->class,
			   error.text);
	else
		claim->has_topologies = true;
}

static void read_unbound(struct place *p, struct place_claim *claim, const cJSON *tree)
{
	const struct object *o = place_find_object(p->view, OBJECT_STORAGE_CLASS, "", claim->class);
	cJSON *class = o ? cJSON_Parse(o->text) : NULL;
	bool prebound = *object_json_text(object_json_find(tree, "spec"), "volumeName");

	claim->of[2] = o;
	if (*claim->class && !prebound && !view_knows(p->view, OBJECT_STORAGE_CLASS)) {
		place_note(&claim->unknown,
			   "claim %s is not bound, and storage classes are not known", claim->key);
	} else if (prebound ||
		   !object_json_is(class, "volumeBindingMode", "WaitForFirstConsumer")) {
		place_note(&claim->missing, "claim %s should be bound by now, and is not",
			   claim->key);
	} else {
		read_wishes(p, claim, tree);
		read_provisioner(p, claim, class);
		claim->driver = driver_of(class, "provisioner");
	}
	cJSON_Delete(class);
}

/* Old snapshots have no annotation: without a Pending phase the claim is bound. */
static bool is_bound(const cJSON *tree)
{
	return *object_json_text(object_json_find(tree, "spec"), "volumeName") &&
	       (object_json_find(document_at(tree, "metadata.annotations"), BIND_COMPLETED) ||
		!object_json_is(object_json_find(tree, "status"), "phase", "Pending"));
}

static void read_claim(struct place *p, struct place_claim *claim, const char *name,
		       const cJSON *tree)
{
	const cJSON *spec = object_json_find(tree, "spec");
	unsigned int modes;

	read_modes(spec, &modes);
	claim->exclusive = modes & PLACE_MODE_POD;
	claim->class = mem_strdup(class_of(tree));
	if (!view_knows(p->view, OBJECT_PERSISTENT_VOLUME_CLAIM))
		place_note(&claim->unknown, "claims of volumes are not known");
	else if (!tree)
		place_note(&claim->missing, "claim %s is not there", name);
	else if (is_deleted(tree))
		place_note(&claim->missing, "claim %s is in deletion", name);
	else if (object_json_is(object_json_find(tree, "status"), "phase", "Lost"))
		place_note(&claim->missing, "claim %s has lost its volume", name);
	else if (is_bound(tree))
		read_bound(p, claim, object_json_text(spec, "volumeName"));
	else
		read_unbound(p, claim, tree);
}

/* Frees all but identity and users. */
static void forget(struct place_claim *claim)
{
	free(claim->missing);
	free(claim->unknown);
	free(claim->driver);
	free_volume(claim->bound);
	selector_free(claim->selector);
	free(claim->class);
	free(claim->made_on);
	place_terms_fini(&claim->topologies);
	*claim = (struct place_claim){.hh = claim->hh,
				      .key = claim->key,
				      .id = claim->id,
				      .users = claim->users,
				      .given_on = PLACE_NONE};
}

static const struct object *object_of(const struct view *v, const struct place_claim *claim)
{
	return place_find_by_key(v, OBJECT_PERSISTENT_VOLUME_CLAIM, claim->key);
}

static void resolve(struct place *p, struct place_claim *claim)
{
	const struct object *o = object_of(p->view, claim);
	cJSON *tree = o ? cJSON_Parse(o->text) : NULL;

	forget(claim);
	claim->of[0] = o;
	read_claim(p, claim, strchr(claim->key, '/') + 1, tree);
	if (claim->missing && tree)
		read_driver(p, claim, tree);
	cJSON_Delete(tree);
}

struct place_claim *place_claim_intern(struct place *p, const char *namespace, const char *name)
{
	char *key = mem_printf("%s/%s", namespace, name);
	struct place_claim *claim;

	HASH_FIND_STR(p->claims, key, claim);
	if (claim) {
		free(key);
		return claim;
	}
	HASH_NEW(p->claims, claim, key, key);
	claim->id = p->claim_of.count;
	PLACE_LIST_ADD(&p->claim_of, claim);
	resolve(p, claim);
	return claim;
}

void place_claim_forget(struct place *p)
{
	struct place_claim *claim = p->claim_of.of[--p->claim_of.count];

	assert(claim->users == 0);
	HASH_DEL(p->claims, claim);
	forget(claim);
	free(claim->key);
	free(claim);
}

static int compare_claims(const void *a, const void *b)
{
	const struct place_claim *x = *(struct place_claim *const *)a;
	const struct place_claim *y = *(struct place_claim *const *)b;

	return COMPARE(x->size, y->size) ?: strcmp(x->key, y->key);
}

void place_claims_sort(struct place_class *c)
{
	array_sort(c->claims.of, c->claims.count, sizeof(struct place_claim *), compare_claims);
}

/* --- the next view */

static bool is_same(const struct view *a, const struct view *b, enum object_kind kind)
{
	return view_table(a, kind) == view_table(b, kind) &&
	       view_knows(a, kind) == view_knows(b, kind);
}

static bool is_as_before(const struct place *p, const struct place_claim *claim)
{
	const struct object *volume = claim->of[1], *class = claim->of[2];

	return object_of(p->view, claim) == claim->of[0] &&
	       (!volume ||
		place_find_object(p->view, OBJECT_PERSISTENT_VOLUME, "", volume->name) == volume) &&
	       (!class ||
		place_find_object(p->view, OBJECT_STORAGE_CLASS, "", class->name) == class);
}

void place_claims_follow(struct place *p, const struct view *before)
{
	static const enum object_kind kinds[] = {OBJECT_PERSISTENT_VOLUME_CLAIM,
						 OBJECT_PERSISTENT_VOLUME, OBJECT_STORAGE_CLASS};
	bool same_volumes = is_same(before, p->view, OBJECT_PERSISTENT_VOLUME);
	bool same = true, alike = true;

	for (size_t k = 0; k < 3; k++) {
		same &= is_same(before, p->view, kinds[k]);
		alike &= view_knows(before, kinds[k]) == view_knows(p->view, kinds[k]);
	}
	if (same)
		return;
	if (!same_volumes)
		clear_stock(p);
	for (uint32_t i = 0; i < p->claim_of.count; i++) {
		struct place_claim *claim = p->claim_of.of[i];

		if (!alike || claim->missing || claim->unknown || (claim->waits && !same_volumes) ||
		    !is_as_before(p, claim))
			resolve(p, claim);
	}
	for (uint32_t i = 0; i < p->classes.count; i++)
		place_claims_sort(p->classes.of[i]);
}

void place_claims_free(struct place *p)
{
	HASH_CLEAR(hh, p->claims);
	for (uint32_t i = 0; i < p->claim_of.count; i++) {
		forget(p->claim_of.of[i]);
		free(p->claim_of.of[i]->key);
		free(p->claim_of.of[i]);
	}
	p->claim_of.count = 0;
	clear_stock(p);
}
