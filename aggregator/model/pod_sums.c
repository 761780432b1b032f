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
#include "shared/arith.h"
#include "shared/mem.h"

struct amounts {
	struct resources requests, limits;
};

struct adder {
	struct object_json spec, status; /* a status that does not count is absent */
	enum pod_sums_rule rule;
	bool infeasible;
	struct amounts together, sidecars, start;
	struct amounts pod; /* spec.resources and what its status makes of it */
	struct pod_sums sums; /* beside together: running and the unlimited containers */
};

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
static void read_amounts(const struct object_json *owner, struct amounts *out)
{
	const struct object_json resources = object_json_object(owner, "resources");

	object_json_resources(&resources, "requests", &out->requests);
	object_json_resources(&resources, "limits", &out->limits);
}

/*
 * The API server's default: a request that is absent is the limit. of: the sums of a pod's containers
 * where *a is the pod's own; a resource that a container requests has no default then. NULL: none.
 */
static void default_requests(struct amounts *a, const struct adder *of)
{
	const char *name;
	int64_t limit, request;

	for (size_t at = 0; resources_next(&a->limits, &at, &name, &limit);)
		if (!resources_find(&a->requests, name, &request) &&
		    !(of && (resources_find(&of->together.requests, name, &request) ||
			     resources_find(&of->sidecars.requests, name, &request) ||
			     resources_find(&of->start.requests, name, &request))))
			resources_set_named(&a->requests, name, limit);
}

/*
 * What a status makes of the amounts of its spec. Kubernetes 1.27 to 1.32 wrote allocatedResources
 * alone; limits have no granted part.
 */
static void apply_status(const struct adder *a, const struct object_json *status,
			 struct amounts *amounts)
{
	struct amounts actual = {RESOURCES_NONE, RESOURCES_NONE};
	struct resources granted = RESOURCES_NONE;
	bool has_granted = object_json_resources(status, "allocatedResources", &granted);
	bool has_actual = object_json_find(status->json, "resources") != NULL;

	read_amounts(status, &actual);
	if (has_actual) {
		if (a->infeasible)
			resources_fini(&amounts->limits);
		resources_max(&amounts->limits, &actual.limits);
	}
	if (has_granted || has_actual) {
		if (a->infeasible)
			resources_fini(&amounts->requests);
		resources_max(&amounts->requests, &actual.requests);
		resources_max(&amounts->requests, &granted);
	}
	resources_fini(&granted);
	amounts_fini(&actual);
}

/* The status of the container; mostly they stand in the order of the spec. */
static struct object_json find_status(const struct object_json *statuses,
				      const struct object_json *hint, const char *name)
{
	struct object_json item = object_json_begin(statuses);

	if (object_json_is(hint->json, "name", name))
		return *hint;
	while (item.json && !object_json_is(item.json, "name", name))
		object_json_next(&item);
	return item;
}

/* `hint` is the status at the place of the container; NULL: no status counts. */
static void read_container(const struct adder *a, const struct object_json *container,
			   const struct object_json *hint, struct amounts *out)
{
	const char *name = object_json_text(container->json, "name");
	struct object_json status;

	if (!cJSON_IsObject(container->json))
		object_json_fail(container, NULL, "must be an object");
	read_amounts(container, out);
	default_requests(out, NULL);
	if (!hint || !*name)
		return;
	status = find_status(hint->up, hint, name);
	if (status.json)
		apply_status(a, &status, out);
}

static void check_count(const struct amounts *sum, const struct object_json *of)
{
	if (sum->requests.extended_count > OBJECT_RESOURCES_MAX ||
	    sum->limits.extended_count > OBJECT_RESOURCES_MAX)
		object_json_fail(of, NULL, "must not name more than %d resources with those before",
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
	s->unlimited_storage_requests =
		add_saturating(s->unlimited_storage_requests,
			       own->requests.of[RESOURCE_EPHEMERAL_STORAGE]);
}

static void add_container(struct adder *a, const struct object_json *container,
			  const struct object_json *hint)
{
	struct amounts own = {RESOURCES_NONE, RESOURCES_NONE};

	read_container(a, container, hint, &own);
	amounts_add(&a->together, &own);
	count_unlimited(a, &own);
	check_count(&a->together, container);
	amounts_fini(&own);
}

/* Init containers run to their end before the next one starts, and only sidecars are resized. */
static void add_init(struct adder *a, const struct object_json *container,
		     const struct object_json *hint)
{
	struct amounts own = {RESOURCES_NONE, RESOURCES_NONE};
	const char *policy = object_json_string(container, "restartPolicy", "");

	if (a->rule == POD_SUMS_SCHEDULER && strcmp(policy, "Always") == 0) {
		read_container(a, container, hint, &own);
		amounts_add(&a->sidecars, &own);
		count_unlimited(a, &own);
		check_count(&a->sidecars, container);
	} else {
		read_container(a, container, NULL, &own);
		amounts_add(&own, &a->sidecars);
		amounts_max(&a->start, &own);
		check_count(&a->start, container);
	}
	amounts_fini(&own);
}

static void add_all(struct adder *a, const char *key, const char *status_key,
		    void (*add)(struct adder *a, const struct object_json *container,
				const struct object_json *hint))
{
	const struct object_json list = object_json_list(&a->spec, key),
				 statuses = object_json_list(&a->status, status_key);
	struct object_json hint = object_json_begin(&statuses);

	for (struct object_json item = object_json_begin(&list); item.json && !list.fault->found;
	     object_json_next(&item)) {
		add(a, &item, &hint);
		if (hint.json)
			object_json_next(&hint);
	}
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

static void read_pod_level(struct adder *a)
{
	if (a->rule != POD_SUMS_SCHEDULER)
		return;
	read_amounts(&a->spec, &a->pod);
	default_requests(&a->pod, a);
	/*
	 * The status of a pod that has no resources of its own repeats the sum of its containers.
	 */
	if (object_json_find(a->spec.json, "resources"))
		apply_status(a, &a->status, &a->pod);
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

static void add_overhead(struct adder *a)
{
	struct resources overhead = RESOURCES_NONE;

	object_json_resources(&a->spec, "overhead", &overhead);
	if (a->rule != POD_SUMS_STATUS_UPSTREAM) {
		resources_add(&a->together.requests, &overhead);
		add_to_limits(&a->together.limits, &overhead);
		if (a->sums.running)
			add_to_limits(a->sums.running, &overhead);
	}
	resources_fini(&overhead);
}

/* --- resources of the node that come with devices */

/* Adds the member "quantity", "perPod" or "perContainer" of a named amount, `times` times. */
static void add_claimed(const struct object_json *amount, const char *key, size_t times,
			struct resources *sum)
{
	const cJSON *value = object_json_find(amount->json, key);
	cJSON *whole = cJSON_CreateObject(), *amounts = cJSON_AddObjectToObject(whole, key);
	struct object_json named = *amount;
	struct resources one = RESOURCES_NONE;

	if (value) {
		cJSON_AddItemReferenceToObject(amounts, object_json_text(amount->json, "name"),
					       (cJSON *)value);
		named.json = whole;
		object_json_resources(&named, key, &one);
	}
	for (size_t i = 0; i < times; i++)
		resources_add(sum, &one);
	resources_fini(&one);
	cJSON_Delete(whole);
}

static void read_claimed(const struct object_json *claim, struct resources *sum)
{
	static const char *const lists[] = {"mapping", "overhead"};
	const struct object_json containers = object_json_list(claim, "containers");

	for (size_t i = 0; i < 2; i++) {
		const struct object_json list = object_json_list(claim, lists[i]);

		for (struct object_json m = object_json_begin(&list); m.json && !m.fault->found;
		     object_json_next(&m)) {
			add_claimed(&m, "quantity", 1, sum);
			add_claimed(&m, "perPod", 1, sum);
			add_claimed(&m, "perContainer", object_json_count(&containers), sum);
		}
	}
}

/* Claims of devices that stand for CPU, memory or huge pages (Kubernetes 1.37, alpha). */
static void add_claims(struct adder *a)
{
	const struct object_json list =
		object_json_list(&a->status, "nodeAllocatableResourceClaimStatuses");
	struct resources sum = RESOURCES_NONE;

	for (struct object_json claim = object_json_begin(&list); claim.json && !list.fault->found;
	     object_json_next(&claim))
		read_claimed(&claim, &sum);
	resources_add(&a->together.requests, &sum);
	add_to_limits(&a->together.limits, &sum);
	check_count(&a->together, &list);
	resources_fini(&sum);
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

static void add_up(struct adder *a)
{
	add_all(a, "containers", "containerStatuses", add_container);
	add_all(a, "initContainers", "initContainerStatuses", add_init);
	read_pod_level(a);
	amounts_add(&a->together, &a->sidecars);
	keep_running(a);
	amounts_max(&a->together, &a->start);
	add_claims(a);
	replace(&a->together.requests, &a->pod.requests);
	replace(&a->together.limits, &a->pod.limits);
	if (!is_unlimited(&a->pod, RESOURCE_CPU))
		a->sums.unlimited_cpu = 0;
	if (!is_unlimited(&a->pod, RESOURCE_MEMORY))
		a->sums.unlimited_mem = 0;
	add_overhead(a);
}

int pod_sums_read(const cJSON *spec, const cJSON *status, enum pod_sums_rule rule,
		  struct pod_sums *out, char *field, struct error *error)
{
	struct object_fault fault = {field, OBJECT_FIELD_MAX, error, false};
	struct adder a = {
		.spec = {spec, &fault, NULL, "spec", 0},
		.status = {rule == POD_SUMS_SCHEDULER ? status : NULL, &fault, NULL, "status", 0},
		.rule = rule,
	};

	a.infeasible = object_pod_resize(a.status.json) == POD_RESIZE_INFEASIBLE;
	add_up(&a);
	amounts_fini(&a.sidecars);
	amounts_fini(&a.start);
	amounts_fini(&a.pod);
	a.sums.requests = a.together.requests;
	a.sums.limits = a.together.limits;
	if (fault.found)
		pod_sums_fini(&a.sums);
	else
		*out = a.sums;
	return fault.found ? -EINVAL : 0;
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
