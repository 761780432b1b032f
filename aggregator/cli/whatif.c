/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of pods:
 *
 *   on a removed node    those of DaemonSets and of the node itself, those without a controller and
 *                        those that have ended are gone; the others wait for a node, in the stead of
 *                        those that their controllers would make
 *   on an added node     those of the DaemonSets of its model run on it, too
 *   of a scaled workload new ones are copies that wait; the last of a StatefulSet go first, and of
 *                        others those that wait, then the newest
 *   of an applied one    all are new, and wait
 *
 * The use of a pod that goes is taken from its node's: means and newest values, and the rest of a
 * window by as much as its mean; deviations stay. An added node uses what the pods of DaemonSets use
 * on its model. A pod that waits has no use of its own, so that what its workload used counts. The
 * status of PodDisruptionBudgets and of what makes pods follows, by the rules of their controllers.
 */
#include "aggregator/cli/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/pod_file.h"
#include "aggregator/model/labels.h"
#include "aggregator/model/object.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "shared/yaml_json.h"

enum { FILE_MOST = 64 << 20, DEPTH_MOST = 64, REPLICAS_MOST = 10000, NODES_MOST = 1000 };

struct counter;

struct whatif {
	cJSON *items; /* objects */
	cJSON *nodes, *pods; /* measurements; NULL: none */
	cJSON *sources; /* NULL: none */
	const char *time; /* when pods are made */
	struct counter *counters; /* owned */
	size_t counter_count;
	unsigned int nodes_made, pods_made; /* names so far */
	/* of the change at hand */
	const char *option, *text;
	struct error *error;
};

static int __attribute__((format(printf, 2, 3)))
refuse(const struct whatif *w, const char *format, ...)
{
	char why[sizeof(w->error->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	error_set(w->error, "--%s %s: %s", w->option, w->text, why);
	return -EINVAL;
}

/* --- objects ---------------------------------------------------------------------------------- */

static void set_text(cJSON *object, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

static void set_number(cJSON *object, const char *key, double value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddNumberToObject(object, key, value);
}

/* The member as an object, which is made where there is none. */
static cJSON *object_in(cJSON *object, const char *key)
{
	cJSON *member = cJSON_GetObjectItemCaseSensitive(object, key);

	if (cJSON_IsObject(member))
		return member;
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	return cJSON_AddObjectToObject(object, key);
}

static cJSON *list_in(cJSON *object, const char *key)
{
	cJSON *member = cJSON_GetObjectItemCaseSensitive(object, key);

	if (cJSON_IsArray(member))
		return member;
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	return cJSON_AddArrayToObject(object, key);
}

/* namespace "": of what has none. */
static cJSON *find(const struct whatif *w, const char *kind, const char *namespace,
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

static cJSON *find_node(const struct whatif *w, const char *name)
{
	cJSON *node = find(w, "Node", "", name);

	if (!node)
		refuse(w, "there is no node \"%s\"", name);
	return node;
}

/* One that no such object has; it stands for the uid, too. */
static void give_name(const struct whatif *w, cJSON *object, unsigned int *made)
{
	const char *kind = document_text_or(object, "kind", ""),
		   *namespace = document_text_or(object, "metadata.namespace", "");
	cJSON *metadata = object_in(object, "metadata");
	char *name;

	name = mem_printf("whatif-%u", ++*made);
	while (find(w, kind, namespace, name)) {
		free(name);
		name = mem_printf("whatif-%u", ++*made);
	}
	set_text(metadata, "name", name);
	set_text(metadata, "uid", name);
	free(name);
}

static bool has_ended(const cJSON *pod)
{
	return document_is(pod, "status.phase", "Succeeded") ||
	       document_is(pod, "status.phase", "Failed");
}

/* --- what counts pods: PodDisruptionBudgets, and what makes pods ------------------------------- */

/* Whose status follows the pods that come and go. */
struct counter {
	cJSON *object; /* borrowed; NULL: it has gone */
	const char *namespace, *kind, *name; /* borrowed of it */
	struct selector *selector; /* of a budget that can be read; owned */
	bool budget, fresh; /* fresh: it came with a change */
	double pods, ready; /* more than before */
};

static void add_counter(struct whatif *w, cJSON *object, bool fresh)
{
	struct counter c = {
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
	w->counters = array_grow(w->counters, w->counter_count, sizeof(*w->counters));
	w->counters[w->counter_count++] = c;
}

static bool is_counted(const struct counter *c, const cJSON *pod)
{
	const cJSON *of = document_controller(pod);
	struct labels labels;
	struct error ignored;
	bool selected;

	if (!c->object || !document_is(pod, "metadata.namespace", c->namespace) || has_ended(pod))
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
static void count_pod(struct counter *c, const cJSON *pod, double by)
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

	set_number(object, key, value);
	return value;
}

/* https://kubernetes.io/docs/tasks/run-application/configure-pdb/ */
static void follow_budget(const struct counter *c, cJSON *status)
{
	const cJSON *spec = document_at(c->object, "spec");
	double expected = change_number(status, "expectedPods", c->pods),
	       healthy = change_number(status, "currentHealthy", c->ready),
	       least = amount_of(spec, "minAvailable", expected);

	if (isnan(least))
		least = fmax(0, expected - or_zero(amount_of(spec, "maxUnavailable", expected)));
	set_number(status, "desiredHealthy", least);
	set_number(status, "disruptionsAllowed", expected > 0 ? fmax(0, healthy - least) : 0);
}

static void follow(const struct whatif *w, struct counter *c)
{
	cJSON *pod, *status;

	if (c->fresh) {
		cJSON_DeleteItemFromObjectCaseSensitive(c->object, "status");
		c->pods = 0;
		c->ready = 0;
		cJSON_ArrayForEach (pod, w->items) {
			if (document_is(pod, "kind", "Pod"))
				count_pod(c, pod, 1);
		}
	}
	if (!c->object || (!c->fresh && c->pods == 0 && c->ready == 0))
		return;
	status = object_in(c->object, "status");
	if (c->budget) {
		follow_budget(c, status);
		return;
	}
	change_number(status, "replicas", c->pods);
	change_number(status, "readyReplicas", c->ready);
	change_number(status, "availableReplicas", c->ready);
}

/* A kind that was not followed is from now on. */
static void add(struct whatif *w, cJSON *object)
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
			set_text(source, "state", "snapshot");
			set_text(source, "apiVersion",
				 document_text_or(object, "apiVersion", "v1"));
			cJSON_DeleteItemFromObjectCaseSensitive(source, "message");
		}
	}
}

/* --- measurements ----------------------------------------------------------------------------- */

static bool is_moved(const char *key)
{
	static const char *const keys[] = {"value", "mean", "min", "max", "p50", "p95", "p99"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

/* Both are trees of one form; sign is 1 to add and -1 to take away. */
static void move_use(cJSON *to, const cJSON *use, double sign)
{
	double mean = document_number(use, "mean");
	cJSON *member;

	cJSON_ArrayForEach (member, to) {
		const cJSON *own = cJSON_GetObjectItemCaseSensitive(use, member->string);
		double amount = isnan(mean) && own ? own->valuedouble : mean;

		if (cJSON_IsObject(member) && own)
			move_use(member, own, sign);
		else if (cJSON_IsNumber(member) && is_moved(member->string) && amount > 0)
			cJSON_SetNumberHelper(member, fmax(0, member->valuedouble + sign * amount));
	}
}

/* The measurements of the pod's node. */
static cJSON *use_of_node(const struct whatif *w, const cJSON *use)
{
	return cJSON_GetObjectItem(document_find(w->nodes, "", "name", document_text(use, "node")),
				   "usage");
}

static cJSON *use_of_pod(const struct whatif *w, const cJSON *pod)
{
	return (cJSON *)document_find(w->pods, "", "uid", document_text(pod, "metadata.uid"));
}

static void clear_use(cJSON *use)
{
	cJSON *member;

	cJSON_ArrayForEach (member, use) {
		if (cJSON_IsObject(member))
			clear_use(member);
		else if (cJSON_IsNumber(member) &&
			 (is_moved(member->string) || strcmp(member->string, "stddev") == 0))
			cJSON_SetNumberHelper(member, 0);
	}
}

static void forget_use(const struct whatif *w, const cJSON *pod)
{
	cJSON *use = use_of_pod(w, pod);

	if (!use)
		return;
	move_use(use_of_node(w, use), document_at(use, "usage"), -1);
	cJSON_Delete(cJSON_DetachItemViaPointer(w->pods, use));
}

/* What the model uses is what the pod uses on its node. */
static void copy_use(const struct whatif *w, const cJSON *model, const cJSON *pod)
{
	const cJSON *of = use_of_pod(w, model);
	cJSON *use;

	if (!of)
		return;
	use = cJSON_Duplicate(of, true);
	set_text(use, "uid", document_text(pod, "metadata.uid"));
	set_text(use, "node", document_text(pod, "spec.nodeName"));
	move_use(use_of_node(w, use), document_at(use, "usage"), 1);
	cJSON_AddItemToArray(w->pods, use);
}

/* --- pods ------------------------------------------------------------------------------------- */

static bool is_of_daemon(const cJSON *pod)
{
	const cJSON *controller = document_controller(pod);

	return document_is(controller, "kind", "DaemonSet") ||
	       document_is(controller, "kind", "Node");
}

static void remove_pod(struct whatif *w, cJSON *pod)
{
	count(w, pod, -1);
	forget_use(w, pod);
	cJSON_Delete(cJSON_DetachItemViaPointer(w->items, pod));
}

/* The zone and the region of its node are labels of a pod that has one. */
static void let_wait(const struct whatif *w, cJSON *pod)
{
	cJSON *metadata = object_in(pod, "metadata"), *labels = object_in(metadata, "labels");

	cJSON_DeleteItemFromObjectCaseSensitive(labels, "topology.kubernetes.io/zone");
	cJSON_DeleteItemFromObjectCaseSensitive(labels, "topology.kubernetes.io/region");
	cJSON_DeleteItemFromObjectCaseSensitive(object_in(pod, "spec"), "nodeName");
	cJSON_DeleteItemFromObjectCaseSensitive(pod, "status");
	set_text(object_in(pod, "status"), "phase", "Pending");
	set_text(metadata, "creationTimestamp", w->time);
}

/* "web" is the Deployment of a ReplicaSet "web-5d4f", and a StatefulSet or Job of that name. */
static bool is_of_workload(const cJSON *pod, const char *namespace, const char *workload)
{
	const cJSON *controller = document_controller(pod);
	const char *owner = document_text_or(controller, "name", "");
	size_t len = strlen(workload);

	if (!document_is(pod, "kind", "Pod") || has_ended(pod) ||
	    !document_is(pod, "metadata.namespace", namespace))
		return false;
	if (strcmp(owner, workload) == 0)
		return true;
	return document_is(controller, "kind", "ReplicaSet") &&
	       strncmp(owner, workload, len) == 0 && owner[len] == '-' &&
	       !strchr(owner + len + 1, '-');
}

struct workload {
	char *namespace, *name; /* owned */
	const char *rest; /* of the text, behind "=" */
	cJSON **pods; /* owned */
	size_t count;
};

static void workload_fini(struct workload *of)
{
	free(of->namespace);
	free(of->name);
	free(of->pods);
}

static void find_pods(const struct whatif *w, struct workload *of)
{
	cJSON *item;

	cJSON_ArrayForEach (item, w->items) {
		if (!is_of_workload(item, of->namespace, of->name))
			continue;
		of->pods = array_grow(of->pods, of->count, sizeof(*of->pods));
		of->pods[of->count++] = item;
	}
}

/* "NAMESPACE/NAME=REST" */
static int find_workload(const struct whatif *w, struct workload *of)
{
	const char *slash = strchr(w->text, '/'), *equals = strchr(w->text, '=');

	*of = (struct workload){0};
	if (!slash || !equals || slash > equals || slash == w->text || equals == slash + 1)
		return refuse(w, "must be NAMESPACE/WORKLOAD=..");
	of->namespace = mem_strndup(w->text, (size_t)(slash - w->text));
	of->name = mem_strndup(slash + 1, (size_t)(equals - slash) - 1);
	of->rest = equals + 1;
	find_pods(w, of);
	if (!of->count)
		return refuse(w, "there is no pod of a workload \"%s\" in the namespace \"%s\"",
			      of->name, of->namespace);
	return 0;
}

/* Those that go first come first. */
static int compare_leaving(const void *a, const void *b)
{
	const cJSON *x = *(cJSON *const *)a, *y = *(cJSON *const *)b;
	const char *x_name = document_text_or(x, "metadata.name", ""),
		   *y_name = document_text_or(y, "metadata.name", "");
	bool x_waits = !document_text(x, "spec.nodeName"),
	     y_waits = !document_text(y, "spec.nodeName");
	int order = 0;

	if (document_is(document_controller(x), "kind", "StatefulSet"))
		order = (int)strlen(y_name) - (int)strlen(x_name);
	else if (x_waits != y_waits)
		return x_waits ? -1 : 1;
	else
		order = strcmp(document_text_or(y, "metadata.creationTimestamp", ""),
			       document_text_or(x, "metadata.creationTimestamp", ""));
	return order ? order : strcmp(y_name, x_name);
}

/* What the controller of the pod is to keep. */
static void set_replicas(struct whatif *w, const cJSON *pod, size_t replicas)
{
	const cJSON *of = document_controller(pod);
	cJSON *controller = find(w, document_text_or(of, "kind", ""),
				 document_text_or(pod, "metadata.namespace", ""),
				 document_text_or(of, "name", ""));

	if (controller)
		set_number(object_in(controller, "spec"), "replicas", (double)replicas);
}

static int scale(struct whatif *w)
{
	struct workload of;
	int rc = find_workload(w, &of);
	unsigned long replicas = 0;
	char *end = NULL;

	if (!rc) {
		replicas = strtoul(of.rest, &end, 10);
		if (*of.rest < '0' || *of.rest > '9' || *end || replicas > REPLICAS_MOST)
			rc = refuse(w, "must end in a number of replicas, at most %d",
				    REPLICAS_MOST);
	}
	if (!rc) {
		set_replicas(w, of.pods[0], replicas);
		qsort(of.pods, of.count, sizeof(*of.pods), compare_leaving);
		for (size_t i = of.count; i < replicas; i++) {
			cJSON *copy = cJSON_Duplicate(of.pods[0], true);

			give_name(w, copy, &w->pods_made);
			let_wait(w, copy);
			add(w, copy);
		}
		for (size_t i = 0; i + replicas < of.count; i++)
			remove_pod(w, of.pods[i]);
	}
	workload_fini(&of);
	return rc;
}

/* --- requests --------------------------------------------------------------------------------- */

static int set_request(struct whatif *w, cJSON *container, const char *name, const char *amount)
{
	cJSON *resources = object_in(container, "resources");
	const char *limit = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(object_in(resources, "limits"), name));
	int64_t milli, most;

	if (quantity_parse_milli(amount, &milli, w->error) || milli < 0)
		return refuse(w, "\"%s\" is no amount", amount);
	if (limit && quantity_parse_milli(limit, &most, w->error) == 0 && milli > most)
		return refuse(w, "%s of \"%s\" is above its limit of %s", name,
			      document_text_or(container, "name", ""), limit);
	set_text(object_in(resources, "requests"), name, amount);
	return 0;
}

/* "cpu:200m,memory:1Gi" */
static int resize_container(struct whatif *w, cJSON *container, const char *amounts)
{
	char *text = mem_strdup(amounts), *save, *part;
	int rc = *text ? 0 : refuse(w, "must end in RESOURCE:AMOUNT");

	for (part = strtok_r(text, ",", &save); part && !rc; part = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(part, ':');

		if (!colon || colon == part) {
			rc = refuse(w, "\"%s\" must be RESOURCE:AMOUNT", part);
			continue;
		}
		*colon = '\0';
		rc = set_request(w, container, part, colon + 1);
	}
	free(text);
	return rc;
}

/* The container that the text names behind the workload, or the only one. */
static int resize_pod(struct whatif *w, cJSON *pod, const char *container, const char *amounts)
{
	cJSON *first = document_first(pod, "spec.containers"), *at = first;

	while (at && container && !document_is(at, "name", container))
		at = at->next;
	if (!at)
		return refuse(w, "there is no container \"%s\" in %s", container ? container : "",
			      document_text_or(pod, "metadata.name", "the pod"));
	if (!container && first->next)
		return refuse(w,
			      "%s has several containers: name one, as in "
			      "NAMESPACE/WORKLOAD=%s/cpu:200m",
			      document_text_or(pod, "metadata.name", "the pod"),
			      document_text_or(first, "name", "CONTAINER"));
	return resize_container(w, at, amounts);
}

static int resize(struct whatif *w)
{
	struct workload of;
	char *container = NULL;
	int rc = find_workload(w, &of);

	if (!rc) {
		const char *slash = strchr(of.rest, '/'), *colon = strchr(of.rest, ':');

		if (slash && colon && slash < colon) {
			container = mem_strndup(of.rest, (size_t)(slash - of.rest));
			of.rest = slash + 1;
		}
	}
	for (size_t i = 0; i < of.count && !rc; i++)
		rc = resize_pod(w, of.pods[i], container, of.rest);
	free(container);
	workload_fini(&of);
	return rc;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static int remove_node(struct whatif *w)
{
	cJSON *node = find_node(w, w->text), *item, *next, *use;

	if (!node)
		return -EINVAL;
	cJSON_Delete(cJSON_DetachItemViaPointer(w->items, node));
	for (item = w->items->child; item; item = next) {
		next = item->next;
		if (!document_is(item, "kind", "Pod") ||
		    !document_is(item, "spec.nodeName", w->text))
			continue;
		if (has_ended(item) || is_of_daemon(item) || !document_controller(item)) {
			remove_pod(w, item);
			continue;
		}
		forget_use(w, item);
		count(w, item, -1);
		let_wait(w, item);
		count(w, item, 1);
	}
	use = (cJSON *)document_find(w->nodes, "", "name", w->text);
	if (use)
		cJSON_Delete(cJSON_DetachItemViaPointer(w->nodes, use));
	return 0;
}

/* "cpu=8,memory=32Gi": a Node that can give all of it to pods. */
static cJSON *make_shape(struct whatif *w, const char *shape)
{
	cJSON *node = cJSON_CreateObject(), *status, *allocatable, *ready;
	char *text = mem_strdup(shape), *save, *part;
	int64_t amount;
	int rc = 0;

	set_text(node, "apiVersion", "v1");
	set_text(node, "kind", "Node");
	status = object_in(node, "status");
	allocatable = object_in(status, "allocatable");
	set_text(allocatable, "pods", "110");
	for (part = strtok_r(text, ",", &save); part && !rc; part = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(part, '=');

		rc = -EINVAL;
		if (!equals || equals == part)
			continue;
		*equals = '\0';
		rc = quantity_parse_milli(equals + 1, &amount, w->error);
		set_text(allocatable, part, equals + 1);
	}
	free(text);
	if (rc || !document_text(allocatable, "cpu") || !document_text(allocatable, "memory")) {
		cJSON_Delete(node);
		refuse(w, "must be a node's name, or a shape such as cpu=8,memory=32Gi, with a "
			  "number as in 3x before it or not");
		return NULL;
	}
	cJSON_AddItemToObject(status, "capacity", cJSON_Duplicate(allocatable, true));
	ready = cJSON_CreateObject();
	set_text(ready, "type", "Ready");
	set_text(ready, "status", "True");
	cJSON_AddItemToArray(list_in(status, "conditions"), ready);
	return node;
}

/* What is of this one node alone goes. */
static cJSON *copy_node(const cJSON *model)
{
	cJSON *node = cJSON_Duplicate(model, true), *spec = object_in(node, "spec"),
	      *metadata = object_in(node, "metadata");

	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "annotations");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "unschedulable");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "providerID");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "podCIDR");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "podCIDRs");
	cJSON_DeleteItemFromObjectCaseSensitive(object_in(node, "status"), "images");
	return node;
}

static void add_use(struct whatif *w, const char *name, const char *model)
{
	const cJSON *of =
		model ? document_find(w->nodes, "", "name", model) : document_first(w->nodes, "");
	cJSON *use;

	if (!of)
		return;
	use = cJSON_Duplicate(of, true);
	set_text(use, "name", name);
	clear_use(cJSON_GetObjectItem(use, "usage"));
	clear_use(cJSON_GetObjectItem(use, "recent"));
	cJSON_AddItemToArray(w->nodes, use);
}

static void add_daemon_pods(struct whatif *w, const char *node, const char *model)
{
	cJSON *last = w->items->child ? w->items->child->prev : NULL, *item = w->items->child;

	for (; item; item = item == last ? NULL : item->next) {
		cJSON *pod;

		if (!document_is(item, "kind", "Pod") || has_ended(item) || !is_of_daemon(item) ||
		    !document_is(item, "spec.nodeName", model))
			continue;
		pod = cJSON_Duplicate(item, true);
		give_name(w, pod, &w->pods_made);
		set_text(object_in(pod, "spec"), "nodeName", node);
		copy_use(w, item, pod);
		add(w, pod);
	}
}

static void add_one_node(struct whatif *w, cJSON *node, const char *model)
{
	const char *name;

	give_name(w, node, &w->nodes_made);
	name = document_text(node, "metadata.name");
	set_text(object_in(object_in(node, "metadata"), "labels"), "kubernetes.io/hostname", name);
	add_use(w, name, model);
	if (model)
		add_daemon_pods(w, name, model);
	add(w, node);
}

/* "NODE", "cpu=8,memory=32Gi", and either behind "3x" or "3x ". */
static int add_nodes(struct whatif *w)
{
	const char *of = w->text;
	const cJSON *model = find(w, "Node", "", of);
	char *end;
	unsigned long count = strtoul(of, &end, 10);
	cJSON *node;

	if (model || *of < '0' || *of > '9' || *end != 'x') {
		count = 1;
	} else {
		of = end + 1 + (end[1] == ' ');
		model = find(w, "Node", "", of);
	}
	if (count < 1 || count > NODES_MOST)
		return refuse(w, "must be 1 to %d nodes", NODES_MOST);
	node = model ? copy_node(model) : make_shape(w, of);
	if (!node)
		return -EINVAL;
	for (; count > 0; count--)
		add_one_node(w, cJSON_Duplicate(node, true), model ? of : NULL);
	cJSON_Delete(node);
	return 0;
}

static int cordon(struct whatif *w)
{
	cJSON *node = find_node(w, w->text), *spec;

	if (!node)
		return -EINVAL;
	spec = object_in(node, "spec");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "unschedulable");
	cJSON_AddTrueToObject(spec, "unschedulable");
	return 0;
}

/* effect NULL: of any. */
static size_t remove_taints(cJSON *list, const char *key, const char *effect)
{
	cJSON *next;
	size_t count = 0;

	for (cJSON *taint = list->child; taint; taint = next) {
		next = taint->next;
		if (!document_is(taint, "key", key) ||
		    (effect && !document_is(taint, "effect", effect)))
			continue;
		cJSON_Delete(cJSON_DetachItemViaPointer(list, taint));
		count++;
	}
	return count;
}

/* "NODE:KEY[=VALUE]:EFFECT", and behind the node "KEY-" or "KEY:EFFECT-" to remove it. */
static int change_taint(struct whatif *w, char *text)
{
	char *key = strchr(text, ':'), *effect, *value;
	size_t len = strlen(text);
	bool gone = len && text[len - 1] == '-';
	cJSON *node, *taints, *taint;

	if (!key || !key[1])
		return refuse(w, "must be NODE:KEY[=VALUE]:EFFECT, or NODE:KEY- to remove it");
	*key++ = '\0';
	if (gone)
		text[len - 1] = '\0';
	node = find_node(w, text);
	if (!node)
		return -EINVAL;
	effect = strchr(key, ':');
	if (effect)
		*effect++ = '\0';
	value = strchr(key, '=');
	if (value)
		*value++ = '\0';
	taints = list_in(object_in(node, "spec"), "taints");
	if (gone)
		return remove_taints(taints, key, effect) ? 0 : refuse(w, "there is no such taint");
	if (!effect ||
	    (strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "PreferNoSchedule") != 0 &&
	     strcmp(effect, "NoExecute") != 0))
		return refuse(w, "must end in NoSchedule, PreferNoSchedule or NoExecute");
	remove_taints(taints, key, effect);
	taint = cJSON_CreateObject();
	set_text(taint, "key", key);
	if (value)
		set_text(taint, "value", value);
	set_text(taint, "effect", effect);
	cJSON_AddItemToArray(taints, taint);
	return 0;
}

static int taint(struct whatif *w)
{
	char *text = mem_strdup(w->text);
	int rc = change_taint(w, text);

	free(text);
	return rc;
}

/* --- files ------------------------------------------------------------------------------------ */

/* What makes pods is replaced by a ReplicaSet and its pods, which wait. */
static int apply_workload(struct whatif *w, const cJSON *object)
{
	const char *name = document_text_or(object, "metadata.name", "");
	struct workload of = {
		.namespace = mem_strdup(document_text_or(object, "metadata.namespace", "default")),
		.name = mem_strdup(name),
	};
	double replicas = document_number(object, "spec.replicas");
	char *text = cJSON_PrintUnformatted(object);
	struct buf json = BUF_INIT;
	cJSON *pod;
	int rc = pod_file_convert(w->text, text, strlen(text), &json, w->error);

	free(text);
	if (!rc && isnan(replicas))
		replicas = 1;
	if (!rc && (replicas < 0 || replicas > REPLICAS_MOST))
		rc = refuse(w, "%s: replicas must be at most %d", name, REPLICAS_MOST);
	if (rc)
		goto out;
	find_pods(w, &of);
	for (size_t i = 0; i < of.count; i++)
		remove_pod(w, of.pods[i]);
	pod = cJSON_ParseWithLength(json.data, json.len);
	set_text(pod, "apiVersion", "v1");
	set_text(pod, "kind", "Pod");
	set_text(object_in(pod, "metadata"), "namespace", of.namespace);
	let_wait(w, pod);
	for (double i = 0; i < replicas; i++) {
		cJSON *copy = cJSON_Duplicate(pod, true);

		give_name(w, copy, &w->pods_made);
		add(w, copy);
	}
	cJSON_Delete(pod);
out:
	buf_fini(&json);
	workload_fini(&of);
	return rc;
}

static void remove_object(struct whatif *w, cJSON *object)
{
	if (document_is(object, "kind", "Pod")) {
		remove_pod(w, object);
		return;
	}
	for (size_t i = 0; i < w->counter_count; i++)
		if (w->counters[i].object == object)
			w->counters[i].object = NULL;
	cJSON_Delete(cJSON_DetachItemViaPointer(w->items, object));
}

static int apply_object(struct whatif *w, cJSON *object)
{
	const char *kind = document_text(object, "kind"),
		   *version = document_text(object, "apiVersion"),
		   *name = document_text(object, "metadata.name");
	enum object_kind known;
	cJSON *old, *item;

	if (kind && strcmp(kind, "List") == 0) {
		cJSON_ArrayForEach (item, document_at(object, "items")) {
			if (apply_object(w, item))
				return -EINVAL;
		}
		return 0;
	}
	if (!kind || !name || !version)
		return refuse(w, "an object must have apiVersion, kind and metadata.name");
	if (document_at(object, "spec.template"))
		return apply_workload(w, object);
	if (object_kind_find(version, kind, &known))
		return refuse(w, "%s %s: no answer depends on this kind", kind, name);
	if (object_kind_namespaced(known) && !document_text(object, "metadata.namespace"))
		set_text(object_in(object, "metadata"), "namespace", "default");
	old = find(w, kind, document_text_or(object, "metadata.namespace", ""), name);
	if (old)
		remove_object(w, old);
	add(w, cJSON_Duplicate(object, true));
	return 0;
}

static int apply(struct whatif *w)
{
	const struct yaml_json_limits limits = {DEPTH_MOST, FILE_MOST};
	struct buf text = BUF_INIT, json = BUF_INIT;
	size_t documents;
	char *line, *save;
	int rc = file_read(w->text, FILE_MOST, &text, w->error);

	if (!rc)
		rc = yaml_json_convert(file_name(w->text), text.data ? text.data : "", text.len,
				       &limits, &json, &documents, w->error);
	for (line = rc || !json.data ? NULL : strtok_r(json.data, "\n", &save); line && !rc;
	     line = strtok_r(NULL, "\n", &save)) {
		cJSON *object = cJSON_Parse(line);

		rc = apply_object(w, object);
		cJSON_Delete(object);
	}
	buf_fini(&text);
	buf_fini(&json);
	return rc;
}

int whatif_change(cJSON *snapshot, const struct whatif_changes *changes, struct error *error)
{
	const struct {
		const char *option;
		int (*change)(struct whatif *w);
		const struct option_list *texts;
	} rows[] = {
		{"apply", apply, &changes->apply}, {"remove", remove_node, &changes->remove},
		{"add", add_nodes, &changes->add}, {"cordon", cordon, &changes->cordon},
		{"taint", taint, &changes->taint}, {"resize", resize, &changes->resize},
		{"scale", scale, &changes->scale},
	};
	struct whatif w = {
		.items = (cJSON *)document_at(snapshot, "list.items"),
		.nodes = (cJSON *)document_at(snapshot, "usage.nodes"),
		.pods = (cJSON *)document_at(snapshot, "usage.pods"),
		.sources = (cJSON *)document_at(snapshot, "sources"),
		.time = document_text_or(snapshot, "time", "1970-01-01T00:00:00Z"),
		.error = error,
	};

	cJSON *item;
	int rc = 0;

	cJSON_ArrayForEach (item, w.items) {
		add_counter(&w, item, false);
	}
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		w.option = rows[r].option;
		for (size_t i = 0; i < rows[r].texts->count && !rc; i++) {
			w.text = rows[r].texts->items[i];
			rc = rows[r].change(&w);
		}
	}
	for (size_t i = 0; i < w.counter_count; i++) {
		if (!rc)
			follow(&w, &w.counters[i]);
		selector_free(w.counters[i].selector);
	}
	free(w.counters);
	return rc;
}
