/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod needs as much as it needs at its worst moment. Init containers run one after the other
 * before the containers, which run together:
 *
 *     need = max(sum of containers, each init container) + overhead                            (Trimaran)
 *     need = max(sum of containers + all sidecars,
 *                each init container + the sidecars started before it) + overhead              (kube-scheduler)
 *
 * where a value stated for the whole pod replaces the max(). The second follows component-helpers
 * resource.PodRequests and PodLimits: overhead is added to any request, but only to a limit that is
 * not 0, since a limit of 0 means no limit. Sums saturate, so no pod however absurd can wrap around
 * to a small one.
 */
#include "aggregator/model/pod_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_record.h"
#include "shared/arith.h"
#include "shared/mem.h"

static int64_t of_container(const struct container_spec *c, bool limits, enum resource_id id)
{
	return resource_list_amount(limits ? &c->limits : &c->requests, id);
}

static int64_t container_sum(const struct pod_spec *p, bool limits, enum resource_id id)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->container_count; i++)
		sum = add_saturating(sum, of_container(&p->containers[i], limits, id));
	return sum;
}

static int64_t need_upstream(const struct pod_spec *p, bool limits, enum resource_id id)
{
	int64_t need = container_sum(p, limits, id);

	for (size_t i = 0; i < p->init_count; i++)
		need = int_max(need, of_container(&p->init[i], limits, id));
	return add_saturating(need, resource_list_amount(&p->overhead, id));
}

static int64_t need_of_containers(const struct pod_spec *p, bool limits, enum resource_id id)
{
	int64_t sidecars = 0, start = 0;

	for (size_t i = 0; i < p->init_count; i++) {
		int64_t own = of_container(&p->init[i], limits, id);

		if (p->init[i].sidecar) {
			sidecars = add_saturating(sidecars, own);
			start = int_max(start, sidecars);
		} else {
			start = int_max(start, add_saturating(own, sidecars));
		}
	}
	return int_max(add_saturating(container_sum(p, limits, id), sidecars), start);
}

int64_t pod_spec_need(const struct pod_spec *p, enum resource_id id, bool limits, bool upstream)
{
	const struct resource_list *stated = limits ? &p->pod_limits : &p->pod_requests;
	int64_t value;

	if (upstream)
		return need_upstream(p, limits, id);
	if (p->has_pod_resources && stated->has[id])
		value = stated->of[id];
	else
		value = need_of_containers(p, limits, id);
	if (limits && value == 0)
		return 0;
	return add_saturating(value, resource_list_amount(&p->overhead, id));
}

void pod_spec_free_members(struct pod_spec *p)
{
	free(p->containers);
	free(p->init);
	p->containers = NULL;
	p->init = NULL;
	p->container_count = p->init_count = 0;
}

/*
 * --- reading: the first failure writes path and error. Memory is bounded by the document: one
 * struct container_spec per element of its arrays.
 */

static void read_list(const struct object_json *of, const char *key, struct resource_list *out)
{
	const struct object_json list = object_json_object(of, key);

	for (int id = 0; id < POD_LOADS; id++) {
		const cJSON *item =
			object_json_find(list.json, resource_name((enum resource_id)id));

		out->has[id] = item != NULL;
		if (item)
			object_json_amount(&list, item, &out->of[id]);
	}
}

static void default_to(struct resource_list *requests, const struct resource_list *limits)
{
	for (int id = 0; id < POD_LOADS; id++)
		if (!requests->has[id] && limits->has[id]) {
			requests->has[id] = true;
			requests->of[id] = limits->of[id];
		}
}

/* Whether the member is there. */
static bool read_resources(const struct object_json *of, struct resource_list *requests,
			   struct resource_list *limits)
{
	const struct object_json resources = object_json_object(of, "resources");

	read_list(&resources, "requests", requests);
	read_list(&resources, "limits", limits);
	return resources.json;
}

static void read_containers(const struct object_json *spec, const char *key,
			    struct container_spec **out, size_t *count)
{
	const struct object_json list = object_json_list(spec, key);

	if (!object_json_first(list.json))
		return;
	*count = object_json_count(&list);
	*out = mem_zalloc(*count, sizeof(**out));
	for (struct object_json item = object_json_begin(&list); item.json;
	     object_json_next(&item)) {
		struct container_spec *c = &(*out)[item.index];

		if (!cJSON_IsObject(item.json))
			object_json_fail(&item, NULL, "must be an object");
		c->sidecar = strcmp(object_json_string(&item, "restartPolicy", ""), "Always") == 0;
		read_resources(&item, &c->requests, &c->limits);
		default_to(&c->requests, &c->limits);
	}
}

static bool requested(const struct container_spec *c, size_t count, int id)
{
	for (size_t i = 0; i < count; i++)
		if (c[i].requests.has[id])
			return true;
	return false;
}

/*
 * A limit for the whole pod stands in for a request of it, unless a container requests that
 * resource.
 */
static void default_pod_requests(struct pod_spec *s)
{
	struct resource_list limits = s->pod_limits;

	for (int id = 0; id < POD_LOADS; id++)
		limits.has[id] = limits.has[id] &&
				 !requested(s->containers, s->container_count, id) &&
				 !requested(s->init, s->init_count, id);
	default_to(&s->pod_requests, &limits);
}

static void read_spec(const struct object_json *spec, struct pod_spec *out)
{
	read_containers(spec, "containers", &out->containers, &out->container_count);
	read_containers(spec, "initContainers", &out->init, &out->init_count);
	read_list(spec, "overhead", &out->overhead);
	out->has_pod_resources = read_resources(spec, &out->pod_requests, &out->pod_limits);
	/* An empty list is a pod that requests nothing; no list at all is a misspelt one. */
	if (!object_json_find(spec->json, "containers"))
		object_json_fail(spec, "containers", "is required");
	default_pod_requests(out);
}

int pod_spec_read(const cJSON *json, struct pod_spec *spec, char *field, struct error *error)
{
	struct object_fault fault = {field, OBJECT_FIELD_MAX, error, false};
	const struct object_json pod = {json, &fault, NULL, "", 0};
	struct object_json part;
	struct pod_spec parsed = {0};

	if (!cJSON_IsObject(json))
		object_json_fail(&pod, NULL, "must be a Pod object");
	if (strcmp(object_json_string(&pod, "kind", "Pod"), "Pod") != 0)
		object_json_fail(&pod, "kind", "must be Pod");
	part = object_json_object(&pod, "metadata");
	parsed.name = object_json_string(&part, "name", NULL);
	part = object_json_object(&pod, "spec");
	if (!part.json)
		object_json_fail(&pod, "spec", "is required");
	read_spec(&part, &parsed);
	if (fault.found) {
		pod_spec_free_members(&parsed);
		return -EINVAL;
	}
	*spec = parsed;
	return 0;
}
