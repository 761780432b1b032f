/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of a pod that goes is taken from its node's: means and newest values, and the rest of a
 * window by as much as its mean; deviations stay. An added node uses what the pods of DaemonSets use
 * on its model. A pod that waits has no use of its own, so that what its workload used counts. The
 * status of PodDisruptionBudgets and of what makes pods follows, by the rules of their controllers.
 */
#include "aggregator/cli/whatif_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/labels.h"
#include "aggregator/model/object.h"
#include "aggregator/model/pod_sums.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/mem.h"

/* An object whose status depends on pods: a budget, or a controller. */
struct whatif_counter {
	cJSON *object; /* borrowed; NULL: it has gone */
	const char *namespace, *kind, *name; /* borrowed of it */
	struct selector *selector; /* of a budget that can be read; owned */
	bool budget, fresh; /* fresh: it came with a change */
	double pods, ready; /* more than before */
};

int whatif_refuse(const struct whatif *w, const char *format, ...)
{
	char why[sizeof(w->error->text)];

	MEM_FORMAT(why, sizeof(why), format);
	return error_fail(w->error, -EINVAL, "--%s %s: %s", w->option, w->text, why);
}

/* --- objects ---------------------------------------------------------------------------------- */

void whatif_set_text(cJSON *object, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

void whatif_set_number(cJSON *object, const char *key, double value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddNumberToObject(object, key, value);
}

static cJSON *member_in(cJSON *object, const char *key, bool list)
{
	cJSON *member = cJSON_GetObjectItemCaseSensitive(object, key);

	if (list ? cJSON_IsArray(member) : cJSON_IsObject(member))
		return member;
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	return list ? cJSON_AddArrayToObject(object, key) : cJSON_AddObjectToObject(object, key);
}

cJSON *whatif_object_in(cJSON *object, const char *key)
{
	return member_in(object, key, false);
}

cJSON *whatif_list_in(cJSON *object, const char *key)
{
	return member_in(object, key, true);
}

cJSON *whatif_find(const struct whatif *w, const char *kind, const char *namespace,
		   const char *name)
{
	cJSON *item;

	cJSON_ArrayForEach (item, w->items) {
		if (document_is(item, "kind", kind) && document_is(item, "metadata.name", name) &&
		    strcmp(document_text_or(item, "metadata.namespace", ""), namespace) == 0)
			return item;
	}
	return NULL;
}

cJSON *whatif_find_node(const struct whatif *w, const char *name)
{
	cJSON *node = whatif_find(w, "Node", "", name);

	if (!node)
		whatif_refuse(w, "there is no node \"%s\"", name);
	return node;
}

void whatif_give_name(cJSON *object, unsigned int *made)
{
	char *name = mem_printf("whatif-%u", ++*made);
	cJSON *metadata = whatif_object_in(object, "metadata");

	whatif_set_text(metadata, "name", name);
	whatif_set_text(metadata, "uid", name);
	free(name);
}

/* --- what counts pods: PodDisruptionBudgets, and what makes pods ------------------------------- */

static void add_counter(struct whatif *w, cJSON *object, bool fresh)
{
	struct whatif_counter c = {
		.object = object,
		.namespace = document_text_or(object, "metadata.namespace", ""),
		.kind = document_text_or(object, "kind", ""),
		.name = document_text_or(object, "metadata.name", ""),
		.budget = document_is(object, "kind", "PodDisruptionBudget"),
		.fresh = fresh,
	};
	struct error ignored;

	if (!c.budget && isnan(document_number(object, "spec.replicas")))
		return;
	if (c.budget && selector_read(document_at(object, "spec.selector"), &c.selector, &ignored))
		c.selector = NULL;
	ARRAY_ADD(w->counters, w->counter_count) = c;
}

static bool is_counted(const struct whatif_counter *c, const cJSON *pod)
{
	const cJSON *of = document_controller(pod);
	struct labels labels;
	struct error ignored;
	bool selected;

	if (!c->object || !document_is(pod, "metadata.namespace", c->namespace) ||
	    document_has_ended(pod))
		return false;
	if (!c->budget)
		return document_is(of, "kind", c->kind) && document_is(of, "name", c->name);
	if (!c->selector || labels_read(document_at(pod, "metadata.labels"), &labels, &ignored))
		return false;
	selected = selector_matches(c->selector, &labels);
	labels_fini(&labels);
	return selected;
}

/* by: 1 for a pod that comes, -1 for one that goes. */
static void count_pod(struct whatif_counter *c, const cJSON *pod, double by)
{
	if (!is_counted(c, pod))
		return;
	c->pods += by;
	c->ready += document_has_condition(pod, "Ready") ? by : 0;
}

static void count(struct whatif *w, const cJSON *pod, double by)
{
	for (size_t i = 0; i < w->counter_count; i++)
		count_pod(&w->counters[i], pod, by);
}

/* 3, or "25%" of the whole, rounded up; NaN where there is none. */
static double amount_of(const cJSON *spec, const char *key, double whole)
{
	const char *percent = document_text(spec, key);

	return percent ? ceil(strtod(percent, NULL) * whole / 100) : document_number(spec, key);
}

static double or_zero(double value)
{
	return isnan(value) ? 0 : value;
}

static double change_number(cJSON *object, const char *key, double by)
{
	double value = fmax(0, or_zero(document_number(object, key)) + by);

	whatif_set_number(object, key, value);
	return value;
}

/* https://kubernetes.io/docs/tasks/run-application/configure-pdb/ */
static void follow_budget(const struct whatif_counter *c, cJSON *status)
{
	const cJSON *spec = document_at(c->object, "spec");
	double expected = change_number(status, "expectedPods", c->pods),
	       healthy = change_number(status, "currentHealthy", c->ready),
	       least = amount_of(spec, "minAvailable", expected);

	if (isnan(least))
		least = fmax(0, expected - or_zero(amount_of(spec, "maxUnavailable", expected)));
	whatif_set_number(status, "desiredHealthy", least);
	whatif_set_number(status, "disruptionsAllowed",
			  expected > 0 ? fmax(0, healthy - least) : 0);
}

static void follow(const struct whatif *w, struct whatif_counter *c)
{
	cJSON *pod, *status;

	if (!c->object)
		return;
	if (c->fresh) {
		cJSON_DeleteItemFromObjectCaseSensitive(c->object, "status");
		c->pods = 0;
		c->ready = 0;
		cJSON_ArrayForEach (pod, w->items) {
			if (document_is(pod, "kind", "Pod"))
				count_pod(c, pod, 1);
		}
	}
	if (!c->fresh && c->pods == 0 && c->ready == 0)
		return;
	status = whatif_object_in(c->object, "status");
	if (c->budget) {
		follow_budget(c, status);
		return;
	}
	change_number(status, "replicas", c->pods);
	change_number(status, "readyReplicas", c->ready);
	change_number(status, "availableReplicas", c->ready);
}

void whatif_add(struct whatif *w, cJSON *object)
{
	const char *kind = document_text_or(object, "kind", "");
	cJSON *source;

	cJSON_AddItemToArray(w->items, object);
	if (strcmp(kind, "Pod") == 0)
		count(w, object, 1);
	else
		add_counter(w, object, true);
	cJSON_ArrayForEach (source, w->sources) {
		if (document_is(source, "kind", kind) && document_is(source, "state", "none")) {
			whatif_set_text(source, "state", "snapshot");
			whatif_set_text(source, "apiVersion",
					document_text_or(object, "apiVersion", "v1"));
			cJSON_DeleteItemFromObjectCaseSensitive(source, "message");
		}
	}
}

/* --- measurements ----------------------------------------------------------------------------- */

/* Both trees have one form; sign is 1 to add and -1 to take away. */
static void move_use(cJSON *to, const cJSON *use, double sign)
{
	static const char *const moved[] = {"value", "mean", "min", "max",
					    "p50",   "p95",  "p99", NULL};
	double mean = document_number(use, "mean");
	cJSON *member;

	cJSON_ArrayForEach (member, to) {
		const cJSON *own = cJSON_GetObjectItemCaseSensitive(use, member->string);
		double amount = isnan(mean) && own ? own->valuedouble : mean;

		if (cJSON_IsObject(member) && own)
			move_use(member, own, sign);
		else if (cJSON_IsNumber(member) && array_has_text(moved, member->string) &&
			 amount > 0)
			cJSON_SetNumberHelper(member, fmax(0, member->valuedouble + sign * amount));
	}
}

/* The windows of the pod's node, and its most recent use. */
static void move_use_of_node(const struct whatif *w, const cJSON *use, double sign)
{
	const cJSON *node = document_find(w->nodes, "", "name", document_text(use, "node")),
		    *amounts = document_at(use, "usage");
	cJSON *recent;

	move_use(cJSON_GetObjectItem(node, "usage"), amounts, sign);
	cJSON_ArrayForEach (recent, document_at(node, "recent")) {
		move_use(recent,
			 document_at(cJSON_GetObjectItem(amounts, recent->string), "windows.5m"),
			 sign);
	}
}

static cJSON *use_of_pod(const struct whatif *w, const cJSON *pod)
{
	return (cJSON *)document_find(w->pods, "", "uid", document_text(pod, "metadata.uid"));
}

/* The number of samples and the seconds that they cover stay. */
static void clear_use(cJSON *use)
{
	cJSON *member;

	cJSON_ArrayForEach (member, use) {
		if (cJSON_IsObject(member))
			clear_use(member);
		else if (cJSON_IsNumber(member) && strcmp(member->string, "samples") != 0 &&
			 strcmp(member->string, "seconds") != 0)
			cJSON_SetNumberHelper(member, 0);
	}
}

static void forget_use(const struct whatif *w, const cJSON *pod)
{
	cJSON *use = use_of_pod(w, pod);

	if (!use)
		return;
	move_use_of_node(w, use, -1);
	cJSON_Delete(cJSON_DetachItemViaPointer(w->pods, use));
}

void whatif_copy_use(const struct whatif *w, const cJSON *model, const cJSON *pod)
{
	const cJSON *of = use_of_pod(w, model);
	cJSON *use;

	if (!of)
		return;
	use = cJSON_Duplicate(of, true);
	whatif_set_text(use, "uid", document_text(pod, "metadata.uid"));
	whatif_set_text(use, "node", document_text(pod, "spec.nodeName"));
	move_use_of_node(w, use, 1);
	cJSON_AddItemToArray(w->pods, use);
}

void whatif_enforce_limit(const struct whatif *w, const cJSON *pod, const char *resource)
{
	enum resource_id id = strcmp(resource, "cpu") == 0 ? RESOURCE_CPU : RESOURCE_MEMORY;
	const char *key = id == RESOURCE_CPU ? "cpuMillicores" : "memoryBytes";
	cJSON *use = use_of_pod(w, pod), *limits = cJSON_GetObjectItem(use, "kernelLimits"),
	      *container;
	char field[OBJECT_FIELD_MAX];
	struct pod_sums sums;
	struct error ignored;

	if ((id != RESOURCE_CPU && strcmp(resource, "memory") != 0) ||
	    !cJSON_HasObjectItem(limits, key) ||
	    pod_sums_read(document_at(pod, "spec"), NULL, POD_SUMS_SCHEDULER, &sums, field,
			  &ignored))
		return;
	if (id == RESOURCE_CPU ? sums.unlimited_cpu : sums.unlimited_mem)
		cJSON_ReplaceItemInObject(limits, key, cJSON_CreateNull());
	else
		whatif_set_number(limits, key, (double)sums.limits.of[id]);
	cJSON_ArrayForEach (container, cJSON_GetObjectItem(use, "containers")) {
		cJSON_DeleteItemFromObject(cJSON_GetObjectItem(container, "kernelLimits"), key);
	}
	pod_sums_fini(&sums);
}

/* --- pods ------------------------------------------------------------------------------------- */

bool whatif_ends_with_node(const cJSON *pod)
{
	const cJSON *controller = document_controller(pod);

	return document_is(controller, "kind", "DaemonSet") ||
	       document_is(controller, "kind", "Node");
}

/* The measurements that are the newest: of a node that is heard. */
static const cJSON *newest_use(const struct whatif *w)
{
	const cJSON *use, *newest = NULL;

	cJSON_ArrayForEach (use, w->nodes) {
		if (!newest || strcmp(document_text_or(use, "end", ""),
				      document_text_or(newest, "end", "")) > 0)
			newest = use;
	}
	return newest;
}

void whatif_add_use(const struct whatif *w, const char *name, const char *model)
{
	const cJSON *of = model ? document_find(w->nodes, "", "name", model) : newest_use(w);
	cJSON *use;

	if (!of)
		return;
	use = cJSON_Duplicate(of, true);
	whatif_set_text(use, "name", name);
	clear_use(cJSON_GetObjectItem(use, "usage"));
	clear_use(cJSON_GetObjectItem(use, "recent"));
	clear_use(cJSON_GetObjectItem(use, "contention"));
	clear_use(cJSON_GetObjectItem(use, "totals"));
	cJSON_DeleteItemFromObjectCaseSensitive(use, "machine");
	cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItem(use, "source"), "quarantine");
	cJSON_AddItemToArray(w->nodes, use);
}

void whatif_remove(struct whatif *w, cJSON *object)
{
	if (document_is(object, "kind", "Pod")) {
		count(w, object, -1);
		forget_use(w, object);
	}
	for (size_t i = 0; i < w->counter_count; i++)
		if (w->counters[i].object == object)
			w->counters[i].object = NULL;
	cJSON_Delete(cJSON_DetachItemViaPointer(w->items, object));
}

/* The zone and the region of its node are labels of a pod that has one. */
void whatif_let_wait(const struct whatif *w, cJSON *pod)
{
	cJSON *metadata = whatif_object_in(pod, "metadata"),
	      *labels = whatif_object_in(metadata, "labels");

	cJSON_DeleteItemFromObjectCaseSensitive(labels, "topology.kubernetes.io/zone");
	cJSON_DeleteItemFromObjectCaseSensitive(labels, "topology.kubernetes.io/region");
	cJSON_DeleteItemFromObjectCaseSensitive(whatif_object_in(pod, "spec"), "nodeName");
	cJSON_DeleteItemFromObjectCaseSensitive(pod, "status");
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
	whatif_set_text(whatif_object_in(pod, "status"), "phase", "Pending");
	whatif_set_text(metadata, "creationTimestamp", w->time);
}

void whatif_leave(struct whatif *w, cJSON *pod)
{
	forget_use(w, pod);
	count(w, pod, -1);
	whatif_let_wait(w, pod);
	count(w, pod, 1);
}

const char *whatif_kind_of(const cJSON *pod, const char *namespace, const char *workload)
{
	const cJSON *controller;
	const char *owner, *hash;
	size_t len = strlen(workload);

	if (!document_is(pod, "kind", "Pod") ||
	    !document_is(pod, "metadata.namespace", namespace) || document_has_ended(pod) ||
	    document_text(pod, "metadata.deletionTimestamp"))
		return NULL;
	controller = document_controller(pod);
	owner = document_text_or(controller, "name", "");
	hash = document_label(pod, "pod-template-hash");
	if (strcmp(owner, workload) == 0)
		return document_text_or(controller, "kind", "");
	if (!document_is(controller, "kind", "ReplicaSet") || strncmp(owner, workload, len) != 0 ||
	    owner[len] != '-')
		return NULL;
	if (hash ? strcmp(owner + len + 1, hash) != 0 : strchr(owner + len + 1, '-') != NULL)
		return NULL;
	return "Deployment";
}

/* --- before and after ------------------------------------------------------------------------- */

void whatif_begin(struct whatif *w)
{
	cJSON *item;

	cJSON_ArrayForEach (item, w->items) {
		unsigned int made = 0;

		if (sscanf(document_text_or(item, "metadata.name", ""), "whatif-%u", &made) == 1) {
			w->nodes_made = made > w->nodes_made ? made : w->nodes_made;
			w->pods_made = w->nodes_made;
		}
		add_counter(w, item, false);
	}
}

void whatif_end(struct whatif *w, bool made)
{
	for (size_t i = 0; i < w->counter_count; i++) {
		if (made)
			follow(w, &w->counters[i]);
		selector_free(w->counters[i].selector);
	}
	free(w->counters);
}
