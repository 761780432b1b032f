/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of devices and their templates. Requests of whole devices by class and selector are read;
 * a claim with anything else may not be allocated, and its note says why.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/arith.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

/* The key of a template begins with "template ". */
#define CLAIM "resource claim "

/* --- matchers */

struct selectors {
	PLACE_LIST(struct device_selector) of;
	bool read_attributes;
};

static const char *expression_of(const cJSON *selector)
{
	return object_json_text(object_json_find(selector, "cel"), "expression");
}

/* The first expression that is not evaluated; NULL: none. */
static const char *read_selectors(struct selectors *s, const cJSON *list)
{
	for (const cJSON *one = object_json_first(list); one; one = one->next) {
		struct device_selector selector;
		int err = device_selector_read(expression_of(one), &selector);

		PLACE_LIST_ADD(&s->of, selector);
		s->read_attributes |= selector.reads_attributes;
		if (err)
			return expression_of(one);
	}
	return NULL;
}

static enum device_match match(const struct selectors *s, const char *driver,
			       const cJSON *attributes)
{
	enum device_match m = DEVICE_MATCHES;

	for (uint32_t i = 0; i < s->of.count && m == DEVICE_MATCHES; i++)
		m = device_selector_match(&s->of.of[i], driver, attributes);
	return m;
}

static void match_all(const struct place *p, const struct selectors *s, struct place_matcher *m)
{
	m->of = mem_zalloc((size_t)p->dra.device.count + 1, sizeof(*m->of));
	for (uint32_t i = 0; i < p->dra.device.count; i++) {
		const struct place_device *d = &p->dra.device.of[i];
		const struct place_slice *slice = &p->dra.slice.of[d->slice];
		cJSON *attributes =
			s->read_attributes && d->attributes ? cJSON_Parse(d->attributes) : NULL;

		if (!slice->stale)
			m->of[i] = (uint8_t)match(s, slice->driver, attributes);
		if (m->of[i] == DEVICE_ERROR)
			m->error = i;
		cJSON_Delete(attributes);
	}
}

static struct place_matcher *new_matcher(const struct place *p, const cJSON *const lists[2])
{
	struct place_matcher *m = mem_zalloc(1, sizeof(*m));
	struct selectors s = {.read_attributes = false};
	const char *refused = read_selectors(&s, lists[0]);

	if (!refused)
		refused = read_selectors(&s, lists[1]);
	m->error = PLACE_NONE;
	if (refused)
		m->refused = mem_strdup(refused);
	else
		match_all(p, &s, m);
	for (uint32_t i = 0; i < s.of.count; i++)
		device_selector_fini(&s.of.of[i]);
	free(s.of.of);
	return m;
}

/* Of the selectors of a class and those of a request. */
static const struct place_matcher *intern_matcher(struct place *p, const cJSON *const lists[2])
{
	struct buf text = BUF_INIT;
	struct place_matcher *m;

	buf_add_str(&text, "");
	for (size_t i = 0; i < 2; i++)
		for (const cJSON *one = object_json_first(lists[i]); one; one = one->next)
			buf_printf(&text, "%zu:%s", strlen(expression_of(one)), expression_of(one));
	HASH_FIND_STR(p->dra.matchers, text.data, m);
	if (!m) {
		m = new_matcher(p, lists);
		m->text = mem_strdup(text.data);
		HASH_ADD_KEYPTR(hh, p->dra.matchers, m->text, strlen(m->text), m);
	}
	buf_fini(&text);
	return m;
}

/* --- requests */

/* The class, which the caller deletes; NULL: it is not there or cannot be judged. */
static cJSON *read_device_class(const struct place *p, struct place_device_claim *c,
				const char *name, const char *where)
{
	static const char *const members[] = {"extendedResourceName", "selectors", NULL};
	const struct object *o = place_find_object(p->view, OBJECT_DEVICE_CLASS, "", name);
	cJSON *tree = o ? cJSON_Parse(o->text) : NULL;
	const cJSON *spec = object_json_find(tree, "spec");

	if (!view_knows(p->view, OBJECT_DEVICE_CLASS) ||
	    !view_knows(p->view, OBJECT_RESOURCE_SLICE))
		place_note(&c->unknown, "%s: device classes or slices are not known", where);
	else if (!tree)
		place_note(&c->missing, "%s: device class %.100s is not there", where, name);
	else if (!spec || place_only_members(spec, members, &c->unknown, where))
		return tree;
	cJSON_Delete(tree);
	return NULL;
}

static int64_t count_of(const cJSON *exactly, char **note, const char *where)
{
	const char *mode = object_json_text(exactly, "allocationMode");
	const cJSON *count = object_json_find(exactly, "count");

	if (strcmp(mode, "All") == 0)
		return 0;
	if (*mode && strcmp(mode, "ExactCount") != 0)
		place_note(note, "%s.allocationMode: %.60s is not known", where, mode);
	/* More than a claim may have is refused, however much it is. */
	return cJSON_IsNumber(count) && count->valuedouble >= 1
		       ? (int64_t)at_most(count->valuedouble, PLACE_CLAIM_DEVICES_MAX + 1)
		       : 1;
}

/* Notes all that the selectors leave unknown. */
static void note_matcher(const struct place *p, struct place_device_claim *c,
			 const struct place_matcher *m, const char *where)
{
	if (m->refused)
		place_note(&c->unknown, "%s: the selector \"%.200s\" is not evaluated", where,
			   m->refused);
	if (m->error != PLACE_NONE)
		place_note(&c->unknown, "%s: device %s lacks an attribute of its selectors", where,
			   p->dra.device.of[m->error].key);
}

static void read_exactly(struct place *p, struct place_device_claim *c, const cJSON *exactly,
			 const char *where, struct place_request *r)
{
	static const char *const members[] = {"allocationMode", "count",       "deviceClassName",
					      "selectors",	"tolerations", NULL};
	const cJSON *lists[2];
	cJSON *class;

	if (!place_only_members(exactly, members, &c->unknown, where))
		return;
	r->count = count_of(exactly, &c->unknown, where);
	if (!r->count && p->dra.incomplete)
		place_note(&c->unknown, "%s: all devices, of which a pool is incomplete", where);
	class = read_device_class(p, c, object_json_text(exactly, "deviceClassName"), where);
	if (!class)
		return;
	lists[0] = object_json_find(object_json_find(class, "spec"), "selectors");
	lists[1] = object_json_find(exactly, "selectors");
	r->matcher = intern_matcher(p, lists);
	note_matcher(p, c, r->matcher, where);
	cJSON_Delete(class);
}

static void read_request(struct place *p, struct place_device_claim *c, const cJSON *json)
{
	static const char *const members[] = {"exactly", "name", NULL};
	struct place_request r = {.name = mem_strdup(object_json_text(json, "name"))};
	char *where = mem_printf(CLAIM "%s: request %s", c->key, r.name);

	if (place_only_members(json, members, &c->unknown, where))
		read_exactly(p, c, object_json_find(json, "exactly"), where, &r);
	PLACE_LIST_ADD(&c->requests, r);
	free(where);
}

static void read_spec(struct place *p, struct place_device_claim *c, const cJSON *spec)
{
	static const char *const members[] = {"constraints", "requests", NULL};
	const cJSON *devices = object_json_find(spec, "devices");
	char *where = mem_printf(CLAIM "%s", c->key);
	int64_t sum = 0;

	if (devices)
		place_only_members(devices, members, &c->unknown, where);
	if (object_json_first(object_json_find(devices, "constraints")))
		place_note(&c->unknown, "%s: constraints are not judged", where);
	for (const cJSON *r = object_json_first(object_json_find(devices, "requests")); r;
	     r = r->next)
		read_request(p, c, r);
	for (uint32_t i = 0; i < c->requests.count && sum <= PLACE_CLAIM_DEVICES_MAX; i++)
		sum += c->requests.of[i].count;
	if (sum > PLACE_CLAIM_DEVICES_MAX)
		place_note(&c->missing, "%s: more than %d devices", where, PLACE_CLAIM_DEVICES_MAX);
	free(where);
}

/* --- allocations */

static void read_result(const struct place *p, struct place_device_claim *c, const cJSON *result)
{
	char *key =
		mem_printf("%s/%s/%s", object_json_text(result, "driver"),
			   object_json_text(result, "pool"), object_json_text(result, "device"));
	struct place_device *d;

	HASH_FIND_STR(p->dra.by_key, key, d);
	if (d && !cJSON_IsTrue(object_json_find(result, "adminAccess")))
		PLACE_LIST_ADD(&c->devices, (uint32_t)(d - p->dra.device.of));
	free(key);
}

static void read_allocation(const struct place *p, struct place_device_claim *c,
			    const cJSON *allocation)
{
	const cJSON *results = object_json_find(object_json_find(allocation, "devices"), "results");
	const cJSON *selector = object_json_find(allocation, "nodeSelector");
	struct error error;

	c->allocated = allocation != NULL;
	c->has_terms = selector != NULL;
	if (selector &&
	    place_terms_read(object_json_find(selector, "nodeSelectorTerms"), &c->terms, &error)) {
		place_note(&c->unknown, CLAIM "%s: status.allocation.nodeSelector%s", c->key,
			   error.text);
		c->bad_terms = true;
	}
	for (const cJSON *r = object_json_first(results); r; r = r->next)
		read_result(p, c, r);
}

static void read_owner(struct place_device_claim *c, const cJSON *metadata)
{
	const cJSON *list = object_json_find(metadata, "ownerReferences");

	for (const cJSON *o = object_json_first(list); o && !c->owner; o = o->next) {
		if (!cJSON_IsTrue(object_json_find(o, "controller")) ||
		    !object_json_is(o, "kind", "Pod"))
			continue;
		c->owner = mem_printf("%s/%s", object_json_text(metadata, "namespace"),
				      object_json_text(o, "name"));
		c->owner_uid = mem_strdup(object_json_text(o, "uid"));
	}
}

static void read_claim(struct place *p, struct place_device_claim *c, const cJSON *tree)
{
	const cJSON *spec = object_json_find(tree, "spec");
	const cJSON *status = object_json_find(tree, "status");
	const cJSON *metadata = object_json_find(tree, "metadata");
	const cJSON *reserved = object_json_find(status, "reservedFor");

	if (object_json_find(metadata, "deletionTimestamp"))
		place_note(&c->gone, CLAIM "%s is in deletion", c->key);
	if (!c->template) {
		read_owner(c, metadata);
		read_allocation(p, c, object_json_find(status, "allocation"));
		c->reserved = (uint32_t)cJSON_GetArraySize(reserved);
	}
	read_spec(p, c, c->template ? object_json_find(spec, "spec") : spec);
}

/* Frees all but identity, users and what it holds. */
static void clear(struct place_device_claim *c)
{
	for (uint32_t i = 0; i < c->requests.count; i++)
		free(c->requests.of[i].name);
	free(c->requests.of);
	free(c->devices.of);
	free(c->gone);
	free(c->missing);
	free(c->unknown);
	free(c->owner);
	free(c->owner_uid);
	place_terms_fini(&c->terms);
	*c = (struct place_device_claim){
		.hh = c->hh,
		.key = c->key,
		.id = c->id,
		.template = c->template,
		.classes = c->classes,
		.users = c->users,
		.home = PLACE_NONE,
		.holding = PLACE_NONE,
	};
}

void place_device_claim_read(struct place *p, struct place_device_claim *c, bool anyway)
{
	enum object_kind kind =
		c->template ? OBJECT_RESOURCE_CLAIM_TEMPLATE : OBJECT_RESOURCE_CLAIM;
	const struct object *o =
		place_find_by_key(p->view, kind, c->key + (c->template ? strlen("template ") : 0));
	cJSON *tree;

	if (!anyway && o == c->object)
		return;
	clear(c);
	c->object = o;
	tree = c->object ? cJSON_Parse(c->object->text) : NULL;
	if (!view_knows(p->view, kind))
		place_note(&c->unknown, CLAIM "%s: claims of devices are not known", c->key);
	else if (!tree)
		place_note(&c->gone, CLAIM "%s is not there", c->key);
	else
		read_claim(p, c, tree);
	cJSON_Delete(tree);
}

struct place_device_claim *place_device_claim_intern(struct place *p, bool template,
						     const char *namespace, const char *name)
{
	char *key = mem_printf("%s%s/%s", template ? "template " : "", namespace, name);
	struct place_device_claim *c;

	HASH_FIND_STR(p->dra.by_name, key, c);
	if (c) {
		free(key);
		return c;
	}
	HASH_NEW(p->dra.by_name, c, key, key);
	c->template = template;
	c->id = p->dra.claim.count;
	PLACE_LIST_ADD(&p->dra.claim, c);
	place_device_claim_read(p, c, true);
	return c;
}

void place_device_claim_forget(struct place *p, struct place_device_claim *c)
{
	assert(p->dra.claim.of[p->dra.claim.count - 1] == c);
	p->dra.claim.count--;
	HASH_DEL(p->dra.by_name, c);
	clear(c);
	free(c->key);
	free(c);
}

/* --- pods */

/* A claim that waits and is named twice is allocated twice, as in the kube-scheduler. */
static void add_claim(struct place *p, struct place_class *c, const cJSON *entry, size_t at)
{
	const char *name = object_json_text(entry, "resourceClaimName");
	const char *template = object_json_text(entry, "resourceClaimTemplateName");
	struct place_device_claim *claim;

	if (!*name && !*template) {
		place_note(&c->unknown, "spec.resourceClaims[%zu]: names no claim and no template",
			   at);
		return;
	}
	claim = place_device_claim_intern(p, !*name, c->namespace, *name ? name : template);
	claim->classes++;
	PLACE_LIST_ADD(&c->device_claims, claim);
}

void place_class_read_device_claims(struct place *p, struct place_class *c, const cJSON *spec)
{
	const cJSON *list = object_json_find(spec, "resourceClaims"),
		    *entry = object_json_first(list);
	size_t at = 0;

	if (list && !cJSON_IsArray(list))
		place_note(&c->unknown, "spec.resourceClaims: must be a list");
	if (!entry ||
	    !place_is_judged(list, PLACE_TERMS_MAX, "claims", &c->unknown, "spec.resourceClaims"))
		return;
	for (; entry; entry = entry->next)
		add_claim(p, c, entry, at++);
}
