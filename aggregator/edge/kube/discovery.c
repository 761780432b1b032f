/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	GET /apis            -> groups[].versions[].groupVersion     served versions of the groups
 *	GET /apis/policy/v1  -> resources[]{name, verbs}             whether it has the resource
 *
 * A kind has versions in order of preference: those of the table here, then other served versions
 * of its group, in the server's order. They are requested until one has the resource; the core is
 * always v1. A failed answer leaves open only the kinds that depend on it.
 */
#include "aggregator/edge/kube/discovery.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

enum { PREFERRED_MAX = 2 };

/* Kinds whose version differs from that of a dump. */
static const char *const preferred[OBJECT_KINDS][PREFERRED_MAX] = {
	[OBJECT_POD_DISRUPTION_BUDGET] = {"policy/v1", "policy/v1beta1"},
	[OBJECT_ELASTIC_QUOTA] = {"scheduling.x-k8s.io/v1alpha1",
				  "scheduling.sigs.k8s.io/v1alpha1"},
	[OBJECT_COSCHEDULING_GROUP] = {"scheduling.x-k8s.io/v1alpha1",
				       "scheduling.sigs.k8s.io/v1alpha1"},
};

static const char *get_preferred(enum object_kind kind, int i)
{
	if (preferred[kind][0])
		return preferred[kind][i];
	return i == 0 ? object_kind_version(kind) : NULL;
}

static bool same_group(const char *a, const char *b)
{
	const char *slash = strchr(a, '/');

	return slash && strncmp(a, b, (size_t)(slash - a) + 1) == 0;
}

/* Whether versions of that group may have the kind. */
static bool is_group_of(enum object_kind kind, const char *api_version)
{
	for (int i = 0; i < PREFERRED_MAX && get_preferred(kind, i); i++)
		if (same_group(get_preferred(kind, i), api_version))
			return true;
	return false;
}

static bool is_any_group(const char *api_version)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (is_group_of((enum object_kind)kind, api_version))
			return true;
	return false;
}

static int find_version(const struct discovery *d, const char *name)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->versions[i].name, name) == 0)
			return (int)i;
	return -1;
}

static void add_version(struct discovery *d, const char *name)
{
	struct discovery_version *v = &d->versions[d->count];

	if (d->count == DISCOVERY_VERSIONS_MAX || find_version(d, name) >= 0)
		return;
	*v = (struct discovery_version){.answered = false};
	snprintf(v->name, sizeof(v->name), "%s", name);
	d->count++;
}

void discovery_begin(struct discovery *d, uint32_t wanted)
{
	*d = (struct discovery){.wanted = wanted, .asking = -1};
	add_version(d, "v1");
}

/*
 * The i-th version to look for the kind in, as an index; -1: there are no more. The preferred come
 * first, and not again among the others.
 */
static int candidate(const struct discovery *d, enum object_kind kind, int i)
{
	bool taken[DISCOVERY_VERSIONS_MAX] = {false};
	int at;

	for (int k = 0; k < PREFERRED_MAX && get_preferred(kind, k); k++) {
		at = find_version(d, get_preferred(kind, k));
		if (at < 0)
			continue;
		if (i-- == 0)
			return at;
		taken[at] = true;
	}
	for (at = 0; at < (int)d->count; at++)
		if (!taken[at] && is_group_of(kind, d->versions[at].name) && i-- == 0)
			return at;
	return -1;
}

static bool has_kind(const struct discovery_version *v, enum object_kind kind)
{
	return v->kinds >> kind & 1;
}

/* A version to request before the kind is decided, or -1. */
static int next_of_kind(const struct discovery *d, enum object_kind kind)
{
	int at;

	for (int i = 0; (at = candidate(d, kind, i)) >= 0; i++) {
		if (!d->versions[at].answered)
			return at;
		if (d->versions[at].fault.code != 200 || has_kind(&d->versions[at], kind))
			break;
	}
	return -1;
}

bool discovery_next(struct discovery *d, char path[DISCOVERY_PATH_MAX])
{
	const char *name;

	d->asking = -1;
	if (!d->groups_answered) {
		snprintf(path, DISCOVERY_PATH_MAX, "/apis");
		return true;
	}
	for (int kind = 0; kind < OBJECT_KINDS && d->asking < 0; kind++)
		if (d->wanted >> kind & 1)
			d->asking = next_of_kind(d, (enum object_kind)kind);
	if (d->asking < 0 || d->groups_fault.code != 200)
		return false;
	name = d->versions[d->asking].name;
	snprintf(path, DISCOVERY_PATH_MAX, "/%s/%s", strchr(name, '/') ? "apis" : "api", name);
	return true;
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool has_verb(const cJSON *resource, const char *name)
{
	const cJSON *verb;

	cJSON_ArrayForEach (verb, cJSON_GetObjectItemCaseSensitive(resource, "verbs"))
		if (cJSON_IsString(verb) && strcmp(verb->valuestring, name) == 0)
			return true;
	return false;
}

static bool has_name(enum object_kind kind, const char *resource)
{
	size_t len = (size_t)object_kind_resource_len(kind);

	return strlen(resource) == len && memcmp(resource, object_kind_resource(kind), len) == 0;
}

/* Only kinds of this group: another group may use the same name. */
static uint32_t find_kinds(const char *version, const cJSON *resource)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(resource, "name"));

	if (!name || !has_verb(resource, "list") || !has_verb(resource, "watch"))
		return 0;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (has_name((enum object_kind)kind, name) &&
		    (is_group_of((enum object_kind)kind, version) ||
		     strcmp(get_preferred((enum object_kind)kind, 0), version) == 0))
			return UINT32_C(1) << kind;
	return 0;
}

static const cJSON *find_array(const cJSON *json, const char *name, struct kube_status *fault)
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, name);

	kube_status_set(fault, 200, "");
	if (cJSON_IsArray(array) || cJSON_IsNull(array))
		return array;
	kube_status_set(fault, 0, "what the API says it serves cannot be read");
	return NULL;
}

/* "policy/v1beta1": becomes a part of a path. */
static bool is_version_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return strlen(name) < API_VERSION_MAX && slash && slash[1] &&
	       slash[1 + strspn(slash + 1, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

static void take_groups(struct discovery *d, const cJSON *json)
{
	const cJSON *group, *version;

	cJSON_ArrayForEach (group, find_array(json, "groups", &d->groups_fault))
		cJSON_ArrayForEach (version, cJSON_GetObjectItemCaseSensitive(group, "versions")) {
			const char *name = cJSON_GetStringValue(
				cJSON_GetObjectItemCaseSensitive(version, "groupVersion"));

			if (name && is_version_name(name) && is_any_group(name))
				add_version(d, name);
		}
}

static void note_fault(struct discovery *d, const struct kube_status *status)
{
	if (d->asking < 0) {
		d->groups_fault = *status;
		return;
	}
	d->versions[d->asking].fault = *status;
	/* The version was removed between two answers. */
	if (status->code == 404)
		kube_status_set(&d->versions[d->asking].fault, 200, "");
}

void discovery_answer(struct discovery *d, const char *body, size_t len,
		      const struct kube_status *status)
{
	struct discovery_version *v = d->asking < 0 ? NULL : &d->versions[d->asking];
	const cJSON *resource;
	cJSON *json = NULL;

	if (v)
		v->answered = true;
	else
		d->groups_answered = true;
	if (status) {
		note_fault(d, status);
		return;
	}
	json = len ? cJSON_ParseWithLength(body, len) : NULL;
	if (v) {
		cJSON_ArrayForEach (resource, find_array(json, "resources", &v->fault))
			v->kinds |= find_kinds(v->name, resource);
	} else {
		take_groups(d, json);
	}
	cJSON_Delete(json);
}

enum discovery_verdict discovery_find(const struct discovery *d, enum object_kind kind,
				      const char **api_version, struct kube_status *why)
{
	const struct kube_status *fault = &d->groups_fault;
	int at = -1;

	for (int i = 0; fault->code == 200 && (at = candidate(d, kind, i)) >= 0; i++) {
		fault = &d->versions[at].fault;
		if (fault->code == 200 && has_kind(&d->versions[at], kind))
			break;
	}
	if (fault->code != 200) {
		if (why)
			*why = *fault;
		return DISCOVERY_FAULT;
	}
	if (at < 0)
		return DISCOVERY_UNSERVED;
	if (api_version)
		*api_version = d->versions[at].name;
	return DISCOVERY_SERVED;
}
