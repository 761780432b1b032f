/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod needs as much as it needs at its worst moment, for each resource apart:
 *
 *     together  = sum of containers + sum of all sidecars
 *     start[i]  = init container i + sum of the sidecars before it
 *     need      = max(together, start[0], start[1], ..)
 *     request   = (what spec.resources says of CPU, memory or huge pages, else need) + overhead
 *
 * A sidecar is an init container that is always restarted. Limits go the same way, but overhead is
 * added only to a limit that there is: 0 means none. That is the sum of the kube-scheduler
 * (kubernetes/component-helpers resource/helpers.go). The capacity plugin knows neither sidecars
 * nor spec.resources, and its status controller loses the overhead.
 *
 * Resizing in place: what the container has been granted (allocatedResources) and what it runs with
 * (resources), both of its status, count as long as they are more than the spec says, since the
 * node still gives them; where the kubelet found that the spec cannot be met (Infeasible) the spec
 * does not count at all. The pod's own resources have the same pair in its status.
 *
 * Devices may stand for CPU and memory of the node; what they were allocated for the pod is added
 * to `need`.
 */
#include "aggregator/model/pod_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "aggregator/model/object_json.h"
#include "aggregator/model/object_record.h"
#include "shared/mem.h"

struct amounts {
	struct resources requests, limits;
};

struct adder {
	struct object_json json;
	const cJSON *spec, *status; /* status NULL: it does not count */
	enum pod_sums_rule rule;
	bool infeasible;
	struct amounts together, sidecars, start;
	struct amounts pod; /* spec.resources and what its status makes of it */
	struct pod_sums sums; /* beside together: running and the unlimited containers */
};

static const struct object_path SPEC = {NULL, "spec", 0}, STATUS = {NULL, "status", 0};

static void amounts_fini(struct amounts *a)
{
	resources_fini(&a->requests);
	resources_fini(&a->limits);
}

static void amounts_add(struct amounts *to, const struct amounts *more)
{
	resources_add(&to->requests, &more->requests);
	resources_add(&to->limits, &more->limits);
}

static void amounts_max(struct amounts *to, const struct amounts *other)
{
	resources_max(&to->requests, &other->requests);
	resources_max(&to->limits, &other->limits);
}

/* resources {requests, limits} of a container, a pod, or the status of either. */
static int read_amounts(const struct adder *a, const cJSON *owner, const struct object_path *path,
			struct amounts *out)
{
	const struct object_path here = {path, "resources", 0};
	const cJSON *json;

	if (object_json_object(&a->json, owner, path, "resources", &json) ||
	    object_json_resources(&a->json, json, &here, "requests", NULL, &out->requests))
		return -EINVAL;
	return object_json_resources(&a->json, json, &here, "limits", NULL, &out->limits);
}

/* The API server's default: a request that is absent is the limit. */
static void default_requests(struct amounts *a)
{
	const char *name;
	int64_t limit, request;

	for (size_t at = 0; resources_next(&a->limits, &at, &name, &limit);)
		if (!resources_find(&a->requests, name, &request))
			resources_set_named(&a->requests, name, limit);
}

/*
 * What a status makes of the amounts of its spec. Kubernetes 1.27 to 1.32 wrote allocatedResources
 * alone; limits have no granted part.
 */
static int apply_status(const struct adder *a, const cJSON *json, const struct object_path *path,
			struct amounts *amounts)
{
	struct amounts actual = {RESOURCES_NONE, RESOURCES_NONE};
	struct resources granted = RESOURCES_NONE;
	bool has_granted;
	int err = object_json_resources(&a->json, json, path, "allocatedResources", &has_granted,
					&granted);

	if (!err)
		err = read_amounts(a, json, path, &actual);
	if (!err && object_json_find(json, "resources")) {
		if (a->infeasible)
			resources_fini(&amounts->limits);
		resources_max(&amounts->limits, &actual.limits);
	}
	if (!err && (has_granted || object_json_find(json, "resources"))) {
		if (a->infeasible)
			resources_fini(&amounts->requests);
		resources_max(&amounts->requests, &actual.requests);
		resources_max(&amounts->requests, &granted);
	}
	resources_fini(&granted);
	amounts_fini(&actual);
	return err;
}

/*
 * The status of the container, or NULL. Mostly they stand in the order of the spec; `hint` is the
 * one at its place.
 */
static const cJSON *find_status(const cJSON *list, const cJSON *hint, const char *name,
				size_t *place)
{
	const cJSON *item = list ? list->child : NULL;

	if (object_json_is(hint, "name", name))
		return hint;
	for (*place = 0; item && !object_json_is(item, "name", name); item = item->next)
		++*place;
	return item;
}

struct statuses {
	struct object_path path;
	const cJSON *list; /* NULL: none */
	const cJSON *hint; /* the one at the place of the container */
};

static int read_container(const struct adder *a, const cJSON *json, const struct object_path *path,
			  const struct statuses *statuses, struct amounts *out)
{
	struct object_path here = {&statuses->path, NULL, path->index};
	const cJSON *status;
	const char *name;

	if (!cJSON_IsObject(json))
		return object_json_fail(&a->json, path, NULL, "must be an object");
	if (read_amounts(a, json, path, out))
		return -EINVAL;
	default_requests(out);
	name = object_json_text(json, "name");
	status = *name ? find_status(statuses->list, statuses->hint, name, &here.index) : NULL;
	return status ? apply_status(a, status, &here, out) : 0;
}

static int check_count(const struct adder *a, const struct amounts *sum,
		       const struct object_path *path)
{
	if (sum->requests.extended_count <= OBJECT_RESOURCES_MAX &&
	    sum->limits.extended_count <= OBJECT_RESOURCES_MAX)
		return 0;
	return object_json_fail(&a->json, path, NULL,
				"must not name more than %d resources with those before",
				OBJECT_RESOURCES_MAX);
}

static bool is_unlimited(const struct amounts *own, enum resource_id id)
{
	return !resources_has(&own->limits, id) || own->limits.of[id] == 0;
}

static void count_unlimited(struct adder *a, const struct amounts *own)
{
	struct pod_sums *s = &a->sums;

	s->unlimited_cpu += is_unlimited(own, RESOURCE_CPU);
	s->unlimited_mem += is_unlimited(own, RESOURCE_MEMORY);
	if (!is_unlimited(own, RESOURCE_EPHEMERAL_STORAGE))
		return;
	s->unlimited_storage++;
	if (__builtin_add_overflow(s->unlimited_storage_requests,
				   own->requests.of[RESOURCE_EPHEMERAL_STORAGE],
				   &s->unlimited_storage_requests))
		s->unlimited_storage_requests = INT64_MAX;
}

static int is_sidecar(const struct adder *a, const cJSON *json, const struct object_path *path,
		      bool *sidecar)
{
	const char *policy;

	if (object_json_string(&a->json, json, path, "restartPolicy", "", &policy))
		return -EINVAL;
	*sidecar = a->rule == POD_SUMS_SCHEDULER && strcmp(policy, "Always") == 0;
	return 0;
}

static int add_container(struct adder *a, const cJSON *json, const struct object_path *path,
			 const struct statuses *statuses)
{
	struct amounts own = {RESOURCES_NONE, RESOURCES_NONE};
	int err = read_container(a, json, path, statuses, &own);

	if (!err) {
		amounts_add(&a->together, &own);
		count_unlimited(a, &own);
		err = check_count(a, &a->together, path);
	}
	amounts_fini(&own);
	return err;
}

/* Init containers run to their end before the next one starts, and only sidecars are resized. */
static int add_init(struct adder *a, const cJSON *json, const struct object_path *path,
		    const struct statuses *statuses)
{
	static const struct statuses none = {{NULL, NULL, 0}, NULL, NULL};
	struct amounts own = {RESOURCES_NONE, RESOURCES_NONE};
	bool sidecar = false;
	int err = is_sidecar(a, json, path, &sidecar);

	if (!err)
		err = read_container(a, json, path, sidecar ? statuses : &none, &own);
	if (!err && sidecar) {
		amounts_add(&a->sidecars, &own);
		count_unlimited(a, &own);
	} else if (!err) {
		amounts_add(&own, &a->sidecars);
		amounts_max(&a->start, &own);
	}
	if (!err)
		err = check_count(a, sidecar ? &a->sidecars : &a->start, path);
	amounts_fini(&own);
	return err;
}

typedef int add_one(struct adder *a, const cJSON *json, const struct object_path *path,
		    const struct statuses *statuses);

static int add_all(struct adder *a, const char *key, const char *status_key, add_one *add)
{
	const struct object_path list = {&SPEC, key, 0};
	struct statuses statuses = {{&STATUS, status_key, 0}, NULL, NULL};
	struct object_path here = {&list, NULL, 0};
	const cJSON *json;

	if (object_json_array(&a->json, a->spec, &SPEC, key, &json) ||
	    object_json_array(&a->json, a->status, &STATUS, status_key, &statuses.list))
		return -EINVAL;
	statuses.hint = statuses.list ? statuses.list->child : NULL;
	for (const cJSON *item = json ? json->child : NULL; item; item = item->next) {
		if (add(a, item, &here, &statuses))
			return -EINVAL;
		here.index++;
		if (statuses.hint)
			statuses.hint = statuses.hint->next;
	}
	return 0;
}

static void replace(struct resources *sum, const struct resources *stated)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(stated, &at, &name, &amount);)
		if (strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
		    strncmp(name, "hugepages-", 10) == 0)
			resources_set_named(sum, name, amount);
}

/*
 * A limit for the whole pod stands in for a request of it, unless a container requests that
 * resource.
 */
static void default_pod_requests(struct adder *a)
{
	struct resources *requests = &a->pod.requests;
	const char *name;
	int64_t limit, request;

	for (size_t at = 0; resources_next(&a->pod.limits, &at, &name, &limit);)
		if (!resources_find(requests, name, &request) &&
		    !resources_find(&a->together.requests, name, &request) &&
		    !resources_find(&a->sidecars.requests, name, &request) &&
		    !resources_find(&a->start.requests, name, &request))
			resources_set_named(requests, name, limit);
}

static int read_pod_level(struct adder *a)
{
	if (a->rule != POD_SUMS_SCHEDULER)
		return 0;
	if (read_amounts(a, a->spec, &SPEC, &a->pod))
		return -EINVAL;
	default_pod_requests(a);
	/*
	 * The status of a pod that has no resources of its own repeats the sum of its containers.
	 */
	if (!a->status || !object_json_find(a->spec, "resources"))
		return 0;
	return apply_status(a, a->status, &STATUS, &a->pod);
}

/* Overhead is for the sandbox: a limit grows by it, and "no limit" stays. */
static void add_to_limits(struct resources *limits, const struct resources *overhead)
{
	struct resources more = RESOURCES_NONE;
	const char *name;
	int64_t amount, limit;

	for (size_t at = 0; resources_next(overhead, &at, &name, &amount);)
		if (resources_find(limits, name, &limit) && limit != 0)
			resources_set_named(&more, name, amount);
	resources_add(limits, &more);
	resources_fini(&more);
}

static int add_overhead(struct adder *a)
{
	struct resources overhead = RESOURCES_NONE;
	int err = object_json_resources(&a->json, a->spec, &SPEC, "overhead", NULL, &overhead);

	if (!err && a->rule != POD_SUMS_STATUS_UPSTREAM) {
		resources_add(&a->together.requests, &overhead);
		add_to_limits(&a->together.limits, &overhead);
		if (a->sums.running)
			add_to_limits(a->sums.running, &overhead);
	}
	resources_fini(&overhead);
	return err;
}

/* --- resources of the node that come with devices */

/* Adds the member "quantity", "perPod" or "perContainer" of a named amount, `times` times. */
static int add_claimed(const struct adder *a, const cJSON *json, const struct object_path *path,
		       const char *key, size_t times, struct resources *sum)
{
	const cJSON *value = object_json_find(json, key);
	cJSON *whole = cJSON_CreateObject(), *amounts = cJSON_AddObjectToObject(whole, key);
	struct resources one = RESOURCES_NONE;
	int err = 0;

	if (value) {
		cJSON_AddItemReferenceToObject(amounts, object_json_text(json, "name"),
					       (cJSON *)value);
		err = object_json_resources(&a->json, whole, path, key, NULL, &one);
	}
	for (size_t i = 0; !err && i < times; i++)
		resources_add(sum, &one);
	resources_fini(&one);
	cJSON_Delete(whole);
	return err;
}

static int read_claimed(const struct adder *a, const cJSON *claim, const struct object_path *path,
			struct resources *sum)
{
	const struct object_path lists[] = {{path, "mapping", 0}, {path, "overhead", 0}};
	const cJSON *containers, *list;

	if (object_json_array(&a->json, claim, path, "containers", &containers))
		return -EINVAL;
	for (size_t i = 0; i < 2; i++) {
		struct object_path here = {&lists[i], NULL, 0};
		size_t times = containers ? (size_t)cJSON_GetArraySize(containers) : 0;

		if (object_json_array(&a->json, claim, path, lists[i].key, &list))
			return -EINVAL;
		for (const cJSON *m = object_json_first(list); m; m = m->next, here.index++)
			if (add_claimed(a, m, &here, "quantity", 1, sum) ||
			    add_claimed(a, m, &here, "perPod", 1, sum) ||
			    add_claimed(a, m, &here, "perContainer", times, sum))
				return -EINVAL;
	}
	return 0;
}

/* Claims of devices that stand for CPU, memory or huge pages (Kubernetes 1.37, alpha). */
static int add_claims(struct adder *a)
{
	const struct object_path list_path = {&STATUS, "nodeAllocatableResourceClaimStatuses", 0};
	struct object_path path = {&list_path, NULL, 0};
	struct resources sum = RESOURCES_NONE;
	const cJSON *list;
	int err = object_json_array(&a->json, a->status, &STATUS, list_path.key, &list);

	for (const cJSON *c = err ? NULL : object_json_first(list); c && !err; c = c->next) {
		err = read_claimed(a, c, &path, &sum);
		path.index++;
	}
	if (!err) {
		resources_add(&a->together.requests, &sum);
		add_to_limits(&a->together.limits, &sum);
		err = check_count(a, &a->together, &list_path);
	}
	resources_fini(&sum);
	return err;
}

/* Only init containers make a difference between what runs and the worst moment. */
static void keep_running(struct adder *a)
{
	if (!a->start.limits.has && !a->start.limits.extended_count)
		return;
	a->sums.running = mem_alloc(sizeof(*a->sums.running));
	resources_copy(a->sums.running, &a->together.limits);
	replace(a->sums.running, &a->pod.limits);
}

static int add_up(struct adder *a)
{
	if (add_all(a, "containers", "containerStatuses", add_container) ||
	    add_all(a, "initContainers", "initContainerStatuses", add_init) || read_pod_level(a))
		return -EINVAL;
	amounts_add(&a->together, &a->sidecars);
	keep_running(a);
	amounts_max(&a->together, &a->start);
	if (add_claims(a))
		return -EINVAL;
	replace(&a->together.requests, &a->pod.requests);
	replace(&a->together.limits, &a->pod.limits);
	if (!is_unlimited(&a->pod, RESOURCE_CPU))
		a->sums.unlimited_cpu = 0;
	if (!is_unlimited(&a->pod, RESOURCE_MEMORY))
		a->sums.unlimited_mem = 0;
	return add_overhead(a);
}

int pod_sums_read(const cJSON *spec, const cJSON *status, enum pod_sums_rule rule,
		  struct pod_sums *out, char *field, struct error *error)
{
	struct adder a = {
		.json = {field, error},
		.spec = spec,
		.status = rule == POD_SUMS_SCHEDULER ? status : NULL,
		.rule = rule,
	};
	int err;

	a.infeasible = object_pod_resize(a.status) == POD_RESIZE_INFEASIBLE;
	err = add_up(&a);
	amounts_fini(&a.sidecars);
	amounts_fini(&a.start);
	amounts_fini(&a.pod);
	a.sums.requests = a.together.requests;
	a.sums.limits = a.together.limits;
	if (err)
		pod_sums_fini(&a.sums);
	else
		*out = a.sums;
	return err;
}

static const struct resources *running_of(const struct pod_sums *s)
{
	return s->running ? s->running : &s->limits;
}

bool pod_sums_equal(const struct pod_sums *a, const struct pod_sums *b)
{
	return resources_equal(&a->requests, &b->requests) &&
	       resources_equal(&a->limits, &b->limits) &&
	       resources_equal(running_of(a), running_of(b)) &&
	       a->unlimited_cpu == b->unlimited_cpu && a->unlimited_mem == b->unlimited_mem &&
	       a->unlimited_storage == b->unlimited_storage &&
	       a->unlimited_storage_requests == b->unlimited_storage_requests;
}

void pod_sums_fini(struct pod_sums *s)
{
	resources_fini(&s->requests);
	resources_fini(&s->limits);
	if (s->running)
		resources_fini(s->running);
	free(s->running);
	s->running = NULL;
}
