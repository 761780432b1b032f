/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Required affinity and anti-affinity to pods, and hard topology spread. Each term needs the number
 * of pods of a group in the node's domain of a topology key, and becomes a counter.
 *
 * An unreadable anti-affinity term may match any pod, so all pods avoid its carriers. So does each
 * term of a list that is too long, for the first PLACE_TERMS_MAX topology keys.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/labels_selector.h"
#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/buf.h"
#include "shared/mem.h"

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

/* A term or constraint during reading, and the key of its group. */
struct reading {
	struct place *p;
	struct place_class *c;
	char where[96];
	const char *topology_key;
	struct place_pod_selector pods;
	struct buf text;
	char *index;
	bool bad;
};

static void note(struct reading *r, const char *field, const char *what)
{
	place_note(&r->c->unknown, "%s.%s: %s", r->where, field, what);
	r->bad = true;
}

static void reading_init(struct reading *r, struct place *p, struct place_class *c,
			 const char *list, size_t at)
{
	*r = (struct reading){.p = p, .c = c};
	snprintf(r->where, sizeof(r->where), "%s[%zu]", list, at);
}

static void reading_fini(struct reading *r)
{
	place_pod_selector_fini(&r->pods);
	buf_fini(&r->text);
	free(r->index);
}

static void check_members(struct reading *r, const cJSON *json, const char *const *members)
{
	if (!place_only_members(json, members, &r->c->unknown, r->where))
		r->bad = true;
}

static void write_json(struct reading *r, const cJSON *json)
{
	char *text = json ? cJSON_PrintUnformatted(json) : NULL;

	buf_add_str(&r->text, text ? text : "-");
	buf_add_char(&r->text, ' ');
	cJSON_free(text);
}

/* A label that every match has. */
static void index_selector(struct reading *r, const cJSON *json)
{
	const cJSON *labels = object_json_find(json, "matchLabels");

	for (const cJSON *m = labels ? labels->child : NULL; m && !r->index; m = m->next)
		if (cJSON_IsString(m))
			r->index = mem_printf("%s=%s", m->string, m->valuestring);
}

static void read_selector(struct reading *r, const cJSON *json)
{
	const cJSON *selector = object_json_find(json, "labelSelector");
	struct error error;

	write_json(r, selector);
	if (!selector)
		return;
	if (selector_read(selector, &r->pods.selector, &error))
		note(r, "labelSelector", error.text);
	else
		index_selector(r, selector);
}

/* The pod's own values of these labels are required or excluded. */
static void read_label_keys(struct reading *r, const cJSON *json, const char *member,
			    enum selector_operator op)
{
	const cJSON *list = object_json_find(json, member);

	if (list && !cJSON_IsArray(list))
		note(r, member, "must be a list of strings");
	for (const cJSON *key = object_json_first(list); key; key = key->next) {
		const char *value = cJSON_IsString(key)
					    ? labels_find(&r->c->template->labels, key->valuestring)
					    : NULL;

		if (!cJSON_IsString(key))
			note(r, member, "must be a list of strings");
		if (!value || !r->pods.selector)
			continue;
		selector_add(r->pods.selector, op, key->valuestring, strlen(key->valuestring));
		selector_add_value(r->pods.selector, value, strlen(value));
		buf_printf(&r->text, "%d%s=%s ", (int)op, key->valuestring, value);
	}
}

static void read_topology_key(struct reading *r, const cJSON *json)
{
	r->topology_key = cJSON_GetStringValue(object_json_find(json, "topologyKey"));
	if (!r->topology_key || !*r->topology_key) {
		r->topology_key = NULL;
		note(r, "topologyKey", "must be the name of a label");
	}
}

static void add_own_namespace(struct reading *r)
{
	PLACE_LIST_ADD(&r->pods.namespaces, mem_strdup(r->c->namespace));
	buf_printf(&r->text, "in %s ", r->c->namespace);
}

static void read_namespace_selector(struct reading *r, const cJSON *json)
{
	struct error error;

	write_json(r, json);
	if (selector_read(json, &r->pods.namespace_selector, &error)) {
		note(r, "namespaceSelector", error.text);
		return;
	}
	r->p->selects_namespaces = true;
	if (selector_is_empty(r->pods.namespace_selector)) {
		r->pods.any_namespace = true;
	} else if (!view_knows(r->p->view, OBJECT_NAMESPACE)) {
		note(r, "namespaceSelector", "cannot be judged: namespaces are not known");
		r->pods.any_namespace = true;
	}
}

static void read_namespaces(struct reading *r, const cJSON *json)
{
	const cJSON *list = object_json_find(json, "namespaces");
	const cJSON *selector = object_json_find(json, "namespaceSelector");

	if (list && !cJSON_IsArray(list))
		note(r, "namespaces", "must be a list of strings");
	for (const cJSON *n = object_json_first(list); n; n = n->next) {
		if (!cJSON_IsString(n)) {
			note(r, "namespaces", "must be a list of strings");
			continue;
		}
		PLACE_LIST_ADD(&r->pods.namespaces, mem_strdup(n->valuestring));
		buf_printf(&r->text, "in %s ", n->valuestring);
	}
	if (selector)
		read_namespace_selector(r, selector);
	else if (!r->pods.namespaces.count)
		add_own_namespace(r);
}

static void read_term(struct reading *r, const cJSON *json)
{
	static const char *const members[] = {
		"labelSelector",  "topologyKey",       "namespaces", "namespaceSelector",
		"matchLabelKeys", "mismatchLabelKeys", NULL};

	check_members(r, json, members);
	read_topology_key(r, json);
	read_selector(r, json);
	read_label_keys(r, json, "matchLabelKeys", SELECTOR_IN);
	read_label_keys(r, json, "mismatchLabelKeys", SELECTOR_NOT_IN);
	read_namespaces(r, json);
}

/* Moves the selector into a group. */
static void move_into(struct reading *r, struct place_group *g)
{
	char *text = mem_printf("%s%s;", g->text ? g->text : "", r->text.data ? r->text.data : "");

	free(g->text);
	g->text = text;
	PLACE_LIST_ADD(&g->selectors, r->pods);
	r->pods = (struct place_pod_selector){0};
	if (!g->index) {
		g->index = r->index;
		r->index = NULL;
	}
}

static struct place_group *group_of(struct reading *r)
{
	struct place_group *g = mem_zalloc(1, sizeof(*g));

	move_into(r, g);
	return place_group_intern(r->p, g);
}

/* --- affinity */

/* A pod counts if it matches all terms. */
static void read_affinity(struct place *p, struct place_class *c, const cJSON *list)
{
	struct place_group *g = mem_zalloc(1, sizeof(*g));
	PLACE_LIST(uint32_t) keys = {0};
	size_t at = 0;

	if (!place_is_judged(list, PLACE_TERMS_MAX, "terms", &c->unknown,
			     "spec.affinity.podAffinity." REQUIRED)) {
		place_group_free(g);
		return;
	}
	for (const cJSON *json = list->child; json; json = json->next) {
		struct reading r;

		reading_init(&r, p, c, "spec.affinity.podAffinity." REQUIRED, at++);
		read_term(&r, json);
		if (!r.bad) {
			move_into(&r, g);
			PLACE_LIST_ADD(&keys, place_key_intern(p, r.topology_key));
		}
		reading_fini(&r);
	}
	if (keys.count) {
		g = place_group_intern(p, g);
		c->affinity_self = place_group_matches(p, g, c);
		for (uint32_t i = 0; i < keys.count; i++)
			PLACE_LIST_ADD(&c->affinity, place_counter_intern(p, PLACE_COUNT_MATCHES, g,
									  keys.of[i], NULL));
	} else {
		place_group_free(g);
	}
	free(keys.of);
}

struct keys {
	PLACE_LIST(uint32_t) list;
};

/* Whether the key is new. */
static bool add_key(struct keys *keys, uint32_t key)
{
	for (uint32_t i = 0; i < keys->list.count; i++)
		if (keys->list.of[i] == key)
			return false;
	PLACE_LIST_ADD(&keys->list, key);
	return true;
}

/* Counts carriers of the term. */
static void add_carrier(struct reading *r, struct place_group *g, uint32_t key)
{
	uint32_t counter = place_counter_intern(r->p, PLACE_COUNT_CARRIERS, g, key, NULL);

	PLACE_LIST_ADD(&r->c->carried, counter);
	PLACE_LIST_ADD(&r->c->counted, counter);
}

static void add_anti(struct reading *r)
{
	uint32_t key = place_key_intern(r->p, r->topology_key);
	struct place_group *g = group_of(r);

	PLACE_LIST_ADD(&r->c->anti, place_counter_intern(r->p, PLACE_COUNT_MATCHES, g, key, NULL));
	add_carrier(r, g, key);
}

/* No other group has no text. */
static void fear_any(struct reading *r)
{
	place_pod_selector_fini(&r->pods);
	r->pods.any = true;
	buf_clear(&r->text);
	free(r->index);
	r->index = NULL;
}

#define ANTI "spec.affinity.podAntiAffinity." REQUIRED

/* The list is too long: the pod fits nowhere, and all pods avoid it, by each key. */
static void read_too_many(struct place *p, struct place_class *c, const cJSON *list)
{
	struct keys keys = {0};

	for (const cJSON *json = list->child; json && keys.list.count < PLACE_TERMS_MAX;
	     json = json->next) {
		struct reading r;

		reading_init(&r, p, c, ANTI, 0);
		read_topology_key(&r, json);
		fear_any(&r);
		if (r.topology_key && add_key(&keys, place_key_intern(p, r.topology_key)))
			add_carrier(&r, group_of(&r), keys.list.of[keys.list.count - 1]);
		reading_fini(&r);
	}
	free(keys.list.of);
}

static void read_anti_affinity(struct place *p, struct place_class *c, const cJSON *list)
{
	size_t at = 0;

	if (!place_is_judged(list, PLACE_TERMS_MAX, "terms", &c->unknown, ANTI)) {
		read_too_many(p, c, list);
		return;
	}
	for (const cJSON *json = list->child; json; json = json->next) {
		struct reading r;

		reading_init(&r, p, c, ANTI, at++);
		read_term(&r, json);
		if (r.bad)
			fear_any(&r);
		if (r.topology_key)
			add_anti(&r);
		reading_fini(&r);
	}
}

/* The required list of podAffinity or podAntiAffinity, or NULL. */
static const cJSON *required_of(struct place_class *c, const cJSON *affinity, const char *member)
{
	static const char *const members[] = {REQUIRED, PREFERRED, NULL};
	const cJSON *json = object_json_find(affinity, member);
	const cJSON *list = object_json_find(json, REQUIRED);
	char where[48];

	snprintf(where, sizeof(where), "spec.affinity.%s", member);
	if (!json || !place_only_members(json, members, &c->unknown, where))
		return NULL;
	if (list && !cJSON_IsArray(list))
		place_note(&c->unknown, "%s.%s: must be a list", where, REQUIRED);
	return cJSON_IsArray(list) ? list : NULL;
}

/* --- spread */

static int32_t read_int(struct reading *r, const cJSON *json, const char *member, int32_t absent)
{
	const cJSON *number = object_json_find(json, member);

	if (!number)
		return absent;
	if (!cJSON_IsNumber(number) || number->valuedouble < 1 || number->valuedouble > INT32_MAX ||
	    number->valuedouble != (double)(int32_t)number->valuedouble) {
		note(r, member, "must be a whole number of at least 1");
		return absent;
	}
	return (int32_t)number->valuedouble;
}

static bool is_honored(struct reading *r, const cJSON *json, const char *member, bool absent)
{
	const cJSON *policy = object_json_find(json, member);
	const char *text = cJSON_GetStringValue(policy);

	if (!policy)
		return absent;
	if (text && strcmp(text, "Honor") == 0)
		return true;
	if (!text || strcmp(text, "Ignore") != 0)
		note(r, member, "must be Honor or Ignore");
	return false;
}

/* An empty selector matches no pod but the new one, as in the kube-scheduler. */
static bool is_empty(struct reading *r)
{
	if (!r->pods.selector || !selector_is_empty(r->pods.selector))
		return false;
	selector_free(r->pods.selector);
	r->pods.selector = NULL;
	buf_add_str(&r->text, "nobody ");
	return true;
}

/* DoNotSchedule. */
static bool is_hard(struct reading *r, const cJSON *json)
{
	const char *when = cJSON_GetStringValue(object_json_find(json, "whenUnsatisfiable"));

	if (when && strcmp(when, "ScheduleAnyway") == 0)
		return false;
	if (!when || strcmp(when, "DoNotSchedule") != 0)
		note(r, "whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway");
	return !r->bad;
}

static void read_constraint(struct reading *r, const cJSON *json, const struct keys *keys)
{
	static const char *const members[] = {
		"labelSelector", "matchLabelKeys",     "maxSkew",
		"minDomains",	 "nodeAffinityPolicy", "nodeTaintsPolicy",
		"topologyKey",	 "whenUnsatisfiable",  NULL};
	bool affinity = is_honored(r, json, "nodeAffinityPolicy", true);
	bool taints = is_honored(r, json, "nodeTaintsPolicy", false);
	struct place_spread s = {.max_skew = read_int(r, json, "maxSkew", 0),
				 .min_domains = read_int(r, json, "minDomains", 1)};
	struct place_eligible *eligible;
	struct place_group *g;
	bool empty;

	check_members(r, json, members);
	read_selector(r, json);
	read_label_keys(r, json, "matchLabelKeys", SELECTOR_IN);
	add_own_namespace(r);
	if (!s.max_skew)
		note(r, "maxSkew", "must be a whole number of at least 1");
	if (r->bad)
		return;
	eligible =
		place_eligible_intern(r->p, affinity ? r->c->rules : NULL,
				      taints ? r->c->rules : NULL, keys->list.of, keys->list.count);
	empty = is_empty(r);
	g = group_of(r);
	s.self = empty || place_group_matches(r->p, g, r->c);
	s.counter = place_counter_intern(r->p, PLACE_COUNT_SPREAD, g,
					 place_key_intern(r->p, r->topology_key), eligible);
	PLACE_LIST_ADD(&r->c->spread, s);
}

#define SPREAD "spec.topologySpreadConstraints"

static void read_spread(struct place *p, struct place_class *c, const cJSON *list)
{
	struct keys keys = {0};

	if (!place_is_judged(list, PLACE_TERMS_MAX, "constraints", &c->unknown, SPREAD))
		return;
	/* A node without one of the keys counts for no constraint, so the first pass reads keys. */
	for (int pass = 0; pass < 2; pass++) {
		size_t at = 0;

		for (const cJSON *json = list->child; json; json = json->next) {
			struct reading r;

			reading_init(&r, p, c, SPREAD, at++);
			if (is_hard(&r, json)) {
				read_topology_key(&r, json);
				if (pass)
					read_constraint(&r, json, &keys);
				else if (r.topology_key)
					add_key(&keys, place_key_intern(p, r.topology_key));
			}
			reading_fini(&r);
		}
	}
	free(keys.list.of);
}

void place_class_read_pods(struct place *p, struct place_class *c, const cJSON *spec)
{
	static const char *const members[] = {"nodeAffinity", "podAffinity", "podAntiAffinity",
					      NULL};
	const cJSON *affinity = object_json_find(spec, "affinity");
	const cJSON *spread = object_json_find(spec, "topologySpreadConstraints");
	const cJSON *list;

	if (affinity)
		place_only_members(affinity, members, &c->unknown, "spec.affinity");
	list = required_of(c, affinity, "podAffinity");
	if (list)
		read_affinity(p, c, list);
	list = required_of(c, affinity, "podAntiAffinity");
	if (list)
		read_anti_affinity(p, c, list);
	if (spread && !cJSON_IsArray(spread))
		place_note(&c->unknown, SPREAD ": must be a list");
	else if (spread)
		read_spread(p, c, spread);
}
