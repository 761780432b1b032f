/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why: a model that is compared with its own reading of the API would agree with itself. How: this
 * reads the same objects with a parser of quantities and rules of sums of its own, as short as they
 * can be said (the scheduler's, from the Kubernetes documentation: containers added up, each init
 * container at least, overhead on top), and nothing of the product's. It can afford to be slow:
 * amounts are JSON objects from the name that our API uses to a number.
 */
#include "tests/kube_truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stack.h"

enum { DIFFERENCES_TOLD = 10 };

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static bool is_text(const cJSON *json, const char *path, const char *text)
{
	return strcmp(text_at(json, path), text) == 0;
}

/* --- amounts --------------------------------------------------------------------------------- */

static const struct {
	const char *suffix;
	long double factor;
} units[] = {
	{"", 1},      {"m", 1e-3L},    {"k", 1e3L},	{"M", 1e6L},	 {"G", 1e9L},
	{"T", 1e12L}, {"Ki", 0x1p10L}, {"Mi", 0x1p20L}, {"Gi", 0x1p30L}, {"Ti", 0x1p40L},
};

double kube_truth_amount(const char *resource, const char *quantity)
{
	char *suffix;
	long double value = strtold(quantity, &suffix);

	if (strcmp(resource, "cpu") == 0)
		value *= 1000;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (suffix != quantity && strcmp(suffix, units[i].suffix) == 0)
			return (double)ceill(value * units[i].factor - 1e-6L);
	fail_msg("the test does not know the quantity \"%s\"", quantity);
	return 0;
}

static const char *key_of(const char *resource)
{
	static const char *const keys[][2] = {
		{"cpu", "cpuMillicores"},
		{"memory", "memoryBytes"},
		{"ephemeral-storage", "ephemeralStorageBytes"},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(resource, keys[i][0]) == 0)
			return keys[i][1];
	return resource;
}

static double get(const cJSON *amounts, const char *key)
{
	const cJSON *amount = cJSON_GetObjectItemCaseSensitive(amounts, key);

	return amount ? amount->valuedouble : 0;
}

static void set(cJSON *amounts, const char *key, double amount)
{
	cJSON_DeleteItemFromObjectCaseSensitive(amounts, key);
	cJSON_AddNumberToObject(amounts, key, amount);
}

static void add(cJSON *to, const cJSON *amounts)
{
	const cJSON *a;

	cJSON_ArrayForEach (a, amounts)
		set(to, a->string, get(to, a->string) + a->valuedouble);
}

/* Those of a Kubernetes object, by our names. */
static cJSON *read_amounts(const cJSON *quantities)
{
	cJSON *amounts = cJSON_CreateObject();
	const cJSON *q;

	cJSON_ArrayForEach (q, quantities) {
		const char *text = cJSON_GetStringValue(q);

		assert_non_null(text);
		set(amounts, key_of(q->string), kube_truth_amount(q->string, text));
	}
	return amounts;
}

static void add_zeros(cJSON *amounts)
{
	set(amounts, "cpuMillicores", get(amounts, "cpuMillicores"));
	set(amounts, "memoryBytes", get(amounts, "memoryBytes"));
}

/* --- pods ------------------------------------------------------------------------------------ */

static void add_containers(cJSON *sum, const cJSON *containers, const char *which)
{
	const cJSON *c;

	cJSON_ArrayForEach (c, containers) {
		cJSON *amounts = read_amounts(json_at(json_at(c, "resources"), which));

		add(sum, amounts);
		cJSON_Delete(amounts);
	}
}

static void raise_to_init(cJSON *sum, const cJSON *init_containers, const char *which)
{
	const cJSON *c, *a;

	cJSON_ArrayForEach (c, init_containers) {
		cJSON *amounts = read_amounts(json_at(json_at(c, "resources"), which));

		cJSON_ArrayForEach (a, amounts)
			set(sum, a->string, fmax(get(sum, a->string), a->valuedouble));
		cJSON_Delete(amounts);
	}
}

/* Overhead counts as requested; limits grow by it only where there is one. */
static void add_overhead(cJSON *sum, const cJSON *overhead, bool limits)
{
	cJSON *amounts = read_amounts(overhead);
	const cJSON *a;

	cJSON_ArrayForEach (a, amounts)
		if (!limits || get(sum, a->string) > 0)
			set(sum, a->string, get(sum, a->string) + a->valuedouble);
	cJSON_Delete(amounts);
}

static cJSON *sum_pod(const cJSON *spec, const char *which)
{
	cJSON *sum = cJSON_CreateObject();

	add_containers(sum, json_at(spec, "containers"), which);
	raise_to_init(sum, json_at(spec, "initContainers"), which);
	add_overhead(sum, json_at(spec, "overhead"), strcmp(which, "limits") == 0);
	return sum;
}

static cJSON *count_unlimited(const cJSON *spec)
{
	cJSON *counts = cJSON_CreateObject();
	double cpu = 0, memory = 0;
	const cJSON *c;

	cJSON_ArrayForEach (c, json_at(spec, "containers")) {
		cpu += !json_at(c, "resources.limits.cpu");
		memory += !json_at(c, "resources.limits.memory");
	}
	set(counts, "cpu", cpu);
	set(counts, "memory", memory);
	return counts;
}

/* The owner that is the controller; NULL: none. */
static const cJSON *controller_of(const cJSON *object)
{
	const cJSON *ref;

	cJSON_ArrayForEach (ref, json_at(object, "metadata.ownerReferences")) {
		if (cJSON_IsTrue(json_at(ref, "controller")))
			return ref;
	}
	return NULL;
}

static const cJSON *find_uid(const cJSON *list, const char *uid)
{
	const cJSON *object;

	cJSON_ArrayForEach (object, json_at(list, "items")) {
		if (is_text(object, "metadata.uid", uid))
			return object;
	}
	return NULL;
}

/* What a person calls it: the controller's controller, the controller, or the pod itself. */
static cJSON *read_workload(const cJSON *pod, const cJSON *list)
{
	const cJSON *ref = controller_of(pod);
	const cJSON *above = ref ? controller_of(find_uid(list, text_at(ref, "uid"))) : NULL;
	cJSON *workload = cJSON_CreateObject();

	ref = above ? above : ref;
	cJSON_AddStringToObject(workload, "kind", ref ? text_at(ref, "kind") : "Pod");
	cJSON_AddStringToObject(workload, "name",
				ref ? text_at(ref, "name") : text_at(pod, "metadata.name"));
	return workload;
}

static void add_labels(cJSON *to, const cJSON *object)
{
	const cJSON *labels = json_at(object, "metadata.labels");

	cJSON_AddItemToObject(to, "labels",
			      labels ? cJSON_Duplicate(labels, true) : cJSON_CreateObject());
}

static cJSON *read_pod(const cJSON *pod, const cJSON *list)
{
	const cJSON *spec = json_at(pod, "spec");
	cJSON *item = cJSON_CreateObject();

	cJSON_AddStringToObject(item, "namespace", text_at(pod, "metadata.namespace"));
	cJSON_AddStringToObject(item, "name", text_at(pod, "metadata.name"));
	cJSON_AddStringToObject(item, "uid", text_at(pod, "metadata.uid"));
	add_labels(item, pod);
	if (*text_at(spec, "nodeName"))
		cJSON_AddStringToObject(item, "node", text_at(spec, "nodeName"));
	else
		cJSON_AddNullToObject(item, "node");
	cJSON_AddStringToObject(item, "qosClass", text_at(pod, "status.qosClass"));
	cJSON_AddStringToObject(item, "phase", text_at(pod, "status.phase"));
	cJSON_AddItemToObject(item, "workload", read_workload(pod, list));
	cJSON_AddItemToObject(item, "requests", sum_pod(spec, "requests"));
	cJSON_AddItemToObject(item, "limits", sum_pod(spec, "limits"));
	cJSON_AddItemToObject(item, "unlimitedContainers", count_unlimited(spec));
	return item;
}

/* --- nodes ----------------------------------------------------------------------------------- */

static bool is_ready(const cJSON *node)
{
	const cJSON *c;

	cJSON_ArrayForEach (c, json_at(node, "status.conditions")) {
		if (is_text(c, "type", "Ready"))
			return is_text(c, "status", "True");
	}
	return false;
}

static cJSON *read_node(const cJSON *node)
{
	cJSON *item = cJSON_CreateObject(), *unlimited;

	cJSON_AddStringToObject(item, "name", text_at(node, "metadata.name"));
	cJSON_AddStringToObject(item, "uid", text_at(node, "metadata.uid"));
	add_labels(item, node);
	cJSON_AddBoolToObject(item, "ready", is_ready(node));
	cJSON_AddBoolToObject(item, "unschedulable",
			      cJSON_IsTrue(json_at(node, "spec.unschedulable")));
	cJSON_AddItemToObject(item, "capacity", read_amounts(json_at(node, "status.capacity")));
	cJSON_AddItemToObject(item, "allocatable",
			      read_amounts(json_at(node, "status.allocatable")));
	add_zeros(cJSON_AddObjectToObject(item, "requests"));
	add_zeros(cJSON_AddObjectToObject(item, "limits"));
	unlimited = cJSON_AddObjectToObject(item, "unlimitedContainers");
	set(unlimited, "cpu", 0);
	set(unlimited, "memory", 0);
	cJSON_AddNumberToObject(item, "pods", 0);
	return item;
}

/* What a pod adds to its node's sums. */
static void add_pod(cJSON *node, const cJSON *pod)
{
	static const char *const sums[] = {"requests", "limits", "unlimitedContainers"};

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		add(cJSON_GetObjectItemCaseSensitive(node, sums[i]), json_at(pod, sums[i]));
	set(node, "pods", get(node, "pods") + 1);
}

/* --- all of it ------------------------------------------------------------------------------- */

const cJSON *kube_truth_find(const cJSON *items, const char *namespace, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, items) {
		if (is_text(item, "name", name) &&
		    is_text(item, "namespace", namespace ? namespace : ""))
			return item;
	}
	return NULL;
}

static bool has_ended(const cJSON *pod)
{
	return is_text(pod, "status.phase", "Succeeded") || is_text(pod, "status.phase", "Failed");
}

void kube_truth_read(struct kube_truth *t, const cJSON *list)
{
	const cJSON *object;

	*t = (struct kube_truth){cJSON_CreateArray(), cJSON_CreateArray(), 0};
	cJSON_ArrayForEach (object, json_at(list, "items")) {
		if (is_text(object, "kind", "Node"))
			cJSON_AddItemToArray(t->nodes, read_node(object));
	}
	cJSON_ArrayForEach (object, json_at(list, "items")) {
		cJSON *pod, *node;

		if (!is_text(object, "kind", "Pod") || has_ended(object))
			continue;
		pod = read_pod(object, list);
		cJSON_AddItemToArray(t->pods, pod);
		if (!*text_at(pod, "node"))
			continue;
		t->bound++;
		node = (cJSON *)kube_truth_find(t->nodes, NULL, text_at(pod, "node"));
		if (node)
			add_pod(node, pod);
	}
}

void kube_truth_fini(struct kube_truth *t)
{
	cJSON_Delete(t->nodes);
	cJSON_Delete(t->pods);
	*t = (struct kube_truth){0};
}

/* --- comparing ------------------------------------------------------------------------------- */

static void tell(struct buf *why, const cJSON *item, const char *key, const cJSON *truth,
		 const cJSON *told)
{
	char *want = truth ? cJSON_PrintUnformatted(truth) : NULL;
	char *have = told ? cJSON_PrintUnformatted(told) : NULL;

	buf_printf(why, "%s %s: %s: %s instead of %s\n", text_at(item, "namespace"),
		   text_at(item, "name"), key, have ? have : "nothing", want ? want : "nothing");
	free(want);
	free(have);
}

/* What is not there may be told as null (no limit) or not at all (no node). */
static bool is_equal(const cJSON *truth, const cJSON *told)
{
	const cJSON *member;

	if (cJSON_IsNull(truth) && !told)
		return true;
	if (!cJSON_IsObject(truth) || !cJSON_IsObject(told))
		return cJSON_Compare(truth, told, true);
	cJSON_ArrayForEach (member, truth) {
		if (!cJSON_Compare(member, cJSON_GetObjectItemCaseSensitive(told, member->string),
				   true))
			return false;
	}
	cJSON_ArrayForEach (member, told) {
		if (!cJSON_IsNull(member) &&
		    !cJSON_GetObjectItemCaseSensitive(truth, member->string))
			return false;
	}
	return true;
}

static bool compare_item(const cJSON *truth, const cJSON *told, struct buf *why)
{
	const cJSON *member;

	cJSON_ArrayForEach (member, truth) {
		const cJSON *other = cJSON_GetObjectItemCaseSensitive(told, member->string);

		if (is_equal(member, other))
			continue;
		tell(why, truth, member->string, member, other);
		return false;
	}
	return true;
}

size_t kube_truth_compare(const cJSON *truth, const cJSON *items, struct buf *why)
{
	struct buf untold = BUF_INIT;
	size_t differences = 0;
	const cJSON *item;

	cJSON_ArrayForEach (item, truth) {
		const cJSON *told =
			kube_truth_find(items, text_at(item, "namespace"), text_at(item, "name"));

		if (!compare_item(item, told, differences < DIFFERENCES_TOLD ? why : &untold))
			differences++;
	}
	cJSON_ArrayForEach (item, items) {
		if (kube_truth_find(truth, text_at(item, "namespace"), text_at(item, "name")))
			continue;
		if (differences++ < DIFFERENCES_TOLD)
			tell(why, item, "the whole", NULL, item);
	}
	buf_fini(&untold);
	if (!differences && cJSON_GetArraySize(items) != cJSON_GetArraySize(truth)) {
		buf_add_str(why, "some are told twice\n");
		differences++;
	}
	return differences;
}
