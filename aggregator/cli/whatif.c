/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of pods:
 *
 *   node removed     pods of DaemonSets and of the node itself, pods without a controller and pods
 *                    that have ended or are being deleted are removed; the others become pending
 *   node added       it has copies of the DaemonSets' pods of its model
 *   workload scaled  added pods are copies, and pending; removed are a StatefulSet's last pods, and
 *                    of others pending pods, then the newest
 */
#include "aggregator/cli/whatif_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aggregator/model/object_json.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/quantity.h"

enum { NODES_MOST = 1000 };

/* --- workloads -------------------------------------------------------------------------------- */

struct workload {
	char *namespace, *kind, *name; /* owned; no kind: any */
	const char *rest; /* of the text, behind "=" */
	cJSON **pods; /* owned; the pods are borrowed */
	size_t count;
};

static void workload_fini(struct workload *of)
{
	free(of->namespace);
	free(of->kind);
	free(of->name);
	free(of->pods);
}

/* A name without a kind is that of one workload. */
static int check_kinds(const struct whatif *w, const struct workload *of)
{
	const char *first = whatif_kind_of(of->pods[0], of->namespace, of->name);

	for (size_t i = 1; i < of->count; i++) {
		const char *kind = whatif_kind_of(of->pods[i], of->namespace, of->name);

		if (strcmp(kind, first) != 0)
			return whatif_refuse(w,
					     "a %s and a %s have this name: name one, as in "
					     "%s/%s/%s=..",
					     first, kind, of->namespace, first, of->name);
	}
	return 0;
}

/* "NAMESPACE/NAME=REST" or "NAMESPACE/KIND/NAME=REST"; kinds in any case. */
static int find_workload(const struct whatif *w, struct workload *of)
{
	const char *slash = strchr(w->text, '/'), *equals = strchr(w->text, '='),
		   *name = slash ? slash + 1 : NULL, *second = slash ? strchr(name, '/') : NULL;
	cJSON *item;

	*of = (struct workload){.rest = ""};
	if (second && equals && second < equals)
		name = second + 1;
	if (!slash || !equals || slash > equals || slash == w->text || equals == name ||
	    name == slash + 2)
		return whatif_refuse(w,
				     "must be NAMESPACE/WORKLOAD=.. or NAMESPACE/KIND/WORKLOAD=..");
	of->namespace = mem_strndup(w->text, (size_t)(slash - w->text));
	if (name > slash + 1)
		of->kind = mem_strndup(slash + 1, (size_t)(name - slash) - 2);
	of->name = mem_strndup(name, (size_t)(equals - name));
	of->rest = equals + 1;
	cJSON_ArrayForEach (item, w->items) {
		const char *kind = whatif_kind_of(item, of->namespace, of->name);

		if (kind && (!of->kind || strcasecmp(kind, of->kind) == 0))
			ARRAY_ADD(of->pods, of->count) = item;
	}
	if (of->count)
		return check_kinds(w, of);
	return whatif_refuse(w, "there is no pod of a %s \"%s\" in the namespace \"%s\"",
			     of->kind ? of->kind : "workload", of->name, of->namespace);
}

/* Order of removal. */
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

/* Of several ReplicaSets, while a Deployment is rolled out, nobody knows who has how many. */
static void set_replicas(struct whatif *w, const struct workload *of, size_t replicas)
{
	const cJSON *pod = of->pods[0], *owner = document_controller(pod);
	const char *name = document_text_or(owner, "name", "");
	cJSON *controller =
		whatif_find(w, document_text_or(owner, "kind", ""), of->namespace, name);

	for (size_t i = 1; i < of->count; i++)
		if (!document_is(document_controller(of->pods[i]), "name", name))
			return;
	if (controller)
		whatif_set_number(whatif_object_in(controller, "spec"), "replicas",
				  (double)replicas);
}

/* Each pod of a StatefulSet has claims of its own. */
static void drop_claims(cJSON *pod, const char *model)
{
	cJSON *volumes = whatif_list_in(whatif_object_in(pod, "spec"), "volumes"), *next;
	char *ending = mem_printf("-%s", model);
	size_t len = strlen(ending);

	for (cJSON *volume = volumes->child; volume; volume = next) {
		const char *claim = document_text_or(volume, "persistentVolumeClaim.claimName", "");

		next = volume->next;
		if (strlen(claim) > len && strcmp(claim + strlen(claim) - len, ending) == 0)
			cJSON_Delete(cJSON_DetachItemViaPointer(volumes, volume));
	}
	free(ending);
}

static int scale(struct whatif *w)
{
	struct workload of;
	int rc = find_workload(w, &of);
	unsigned long replicas = 0;
	char *end = NULL;

	if (!rc) {
		replicas = strtoul(of.rest, &end, 10);
		if (*of.rest < '0' || *of.rest > '9' || *end || replicas > WHATIF_REPLICAS_MOST)
			rc = whatif_refuse(w, "must end in a number of replicas, at most %d",
					   WHATIF_REPLICAS_MOST);
	}
	if (!rc && document_is(document_controller(of.pods[0]), "kind", "DaemonSet"))
		rc = whatif_refuse(w, "a DaemonSet has a pod on each node");
	if (!rc) {
		set_replicas(w, &of, replicas);
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): it is a list of pointers */
		qsort(of.pods, of.count, sizeof(*of.pods), compare_leaving);
		for (size_t i = of.count; i < replicas; i++) {
			cJSON *copy = cJSON_Duplicate(of.pods[0], true);

			whatif_give_name(copy, &w->pods_made);
			whatif_let_wait(w, copy);
			drop_claims(copy, document_text_or(of.pods[0], "metadata.name", ""));
			whatif_add(w, copy);
		}
		for (size_t i = 0; i + replicas < of.count; i++)
			whatif_remove(w, of.pods[i]);
	}
	workload_fini(&of);
	return rc;
}

/* --- requests --------------------------------------------------------------------------------- */

static bool has_resource(const struct whatif *w, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, w->items) {
		if (document_is(item, "kind", "Node") &&
		    cJSON_HasObjectItem(document_at(item, "status.allocatable"), name))
			return true;
	}
	return false;
}

int whatif_check_limits(const struct whatif *w, const char *object, const cJSON *container)
{
	const cJSON *limits = document_at(container, "resources.limits"), *request;

	cJSON_ArrayForEach (request, document_at(container, "resources.requests")) {
		const cJSON *limit = cJSON_GetObjectItemCaseSensitive(limits, request->string);
		struct error ignored;
		int64_t milli, most;
		char *text;

		if (!limit ||
		    object_json_quantity(request, quantity_parse_milli, &milli, &ignored) ||
		    object_json_quantity(limit, quantity_parse_milli, &most, &ignored) ||
		    milli <= most)
			continue;
		text = cJSON_PrintUnformatted(limit);
		whatif_refuse(w, "%s%s of \"%s\" is above its limit of %s", object, request->string,
			      document_text_or(container, "name", ""), text);
		free(text);
		return -EINVAL;
	}
	return 0;
}

/* A request, or "limits.NAME". */
static int set_amount(struct whatif *w, const cJSON *pod, cJSON *container, const char *name,
		      const char *amount)
{
	bool is_limit = strncmp(name, "limits.", 7) == 0;
	const char *resource = is_limit ? name + 7 : name;
	int64_t milli;

	if (!has_resource(w, resource))
		return whatif_refuse(w, "no node has a resource \"%s\"", resource);
	if (quantity_parse_milli(amount, &milli, w->error) || milli < 0)
		return whatif_refuse(w, "\"%s\" is no amount", amount);
	whatif_set_text(whatif_object_in(whatif_object_in(container, "resources"),
					 is_limit ? "limits" : "requests"),
			resource, amount);
	if (is_limit)
		whatif_enforce_limit(w, pod, resource);
	return 0;
}

/* "limits.memory:2Gi,cpu:200m,memory:1Gi" */
static int resize_container(struct whatif *w, const cJSON *pod, cJSON *container,
			    const char *amounts)
{
	char *text = mem_strdup(amounts), *save, *part;
	int rc = strspn(text, ",") < strlen(text) ? 0
						  : whatif_refuse(w, "must end in RESOURCE:AMOUNT");

	for (part = strtok_r(text, ",", &save); part && !rc; part = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(part, ':');

		if (!colon || colon == part) {
			rc = whatif_refuse(w, "\"%s\" must be RESOURCE:AMOUNT", part);
			continue;
		}
		*colon = '\0';
		rc = set_amount(w, pod, container, part, colon + 1);
	}
	free(text);
	return rc ? rc : whatif_check_limits(w, "", container);
}

/* Amounts that the kubelet granted count as requests. */
static void forget_granted(cJSON *pod, const char *statuses, const char *container)
{
	cJSON *status;

	cJSON_ArrayForEach (status, whatif_list_in(whatif_object_in(pod, "status"), statuses)) {
		if (!document_is(status, "name", container))
			continue;
		cJSON_DeleteItemFromObjectCaseSensitive(status, "resources");
		cJSON_DeleteItemFromObjectCaseSensitive(status, "allocatedResources");
	}
}

/* The container that the text names behind the workload, or the only one; also a sidecar. */
static int resize_pod(struct whatif *w, cJSON *pod, const char *container, const char *amounts)
{
	const cJSON *at = container ? document_find(pod, "spec.containers", "name", container)
				    : document_first(pod, "spec.containers");

	if (!at)
		at = document_find(pod, "spec.initContainers", "name", container);
	if (!at)
		return whatif_refuse(w, "there is no container \"%s\" in %s",
				     container ? container : "",
				     document_text_or(pod, "metadata.name", "the pod"));
	if (!container && at->next)
		return whatif_refuse(w,
				     "%s has several containers: name one, as in "
				     "NAMESPACE/WORKLOAD=%s/cpu:200m",
				     document_text_or(pod, "metadata.name", "the pod"),
				     document_text_or(at, "name", "CONTAINER"));
	forget_granted(pod, "containerStatuses", document_text(at, "name"));
	forget_granted(pod, "initContainerStatuses", document_text(at, "name"));
	return resize_container(w, pod, (cJSON *)at, amounts);
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
	cJSON *node = whatif_find_node(w, w->text), *item, *next, *use;

	if (!node)
		return -EINVAL;
	whatif_remove(w, node);
	for (item = w->items->child; item; item = next) {
		next = item->next;
		if (!document_is(item, "kind", "Pod") ||
		    !document_is(item, "spec.nodeName", w->text))
			continue;
		if (document_has_ended(item) || whatif_ends_with_node(item) ||
		    document_text(item, "metadata.deletionTimestamp") ||
		    !document_controller(item)) {
			whatif_remove(w, item);
			continue;
		}
		whatif_leave(w, item);
	}
	use = (cJSON *)document_find(w->nodes, "", "name", w->text);
	if (use)
		cJSON_Delete(cJSON_DetachItemViaPointer(w->nodes, use));
	/* Of pods that the API does not show, or no more. */
	while ((use = (cJSON *)document_find(w->pods, "", "node", w->text)))
		cJSON_Delete(cJSON_DetachItemViaPointer(w->pods, use));
	return 0;
}

/* Ready becomes the only condition. */
static void make_ready(cJSON *status)
{
	cJSON *ready = cJSON_CreateObject();

	whatif_set_text(ready, "type", "Ready");
	whatif_set_text(ready, "status", "True");
	cJSON_DeleteItemFromObjectCaseSensitive(status, "conditions");
	cJSON_AddItemToArray(whatif_list_in(status, "conditions"), ready);
}

/* "cpu=8,memory=32Gi": a Node that can give all of it to pods. */
static cJSON *make_shape(struct whatif *w, const char *shape)
{
	cJSON *node = cJSON_CreateObject(), *status, *allocatable;
	char *text = mem_strdup(shape), *save, *part;
	int64_t amount;
	int rc = 0;

	whatif_set_text(node, "apiVersion", "v1");
	whatif_set_text(node, "kind", "Node");
	status = whatif_object_in(node, "status");
	allocatable = whatif_object_in(status, "allocatable");
	whatif_set_text(allocatable, "pods", "110");
	for (part = strtok_r(text, ",", &save); part && !rc; part = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(part, '=');

		rc = -EINVAL;
		if (!equals || equals == part)
			continue;
		*equals = '\0';
		rc = quantity_parse_milli(equals + 1, &amount, w->error);
		if (!rc && amount <= 0)
			rc = -EINVAL;
		whatif_set_text(allocatable, part, equals + 1);
	}
	free(text);
	if (rc || !document_text(allocatable, "cpu") || !document_text(allocatable, "memory")) {
		cJSON_Delete(node);
		whatif_refuse(w, "must be amounts above 0, of cpu and memory at least, as in "
				 "cpu=8,memory=32Gi");
		return NULL;
	}
	cJSON_AddItemToObject(status, "capacity", cJSON_Duplicate(allocatable, true));
	make_ready(status);
	return node;
}

/* Of the node's present state, by Kubernetes, its autoscalers and evenkeel. */
static bool is_passing(const char *taint)
{
	static const char *const begins[] = {
		"node.kubernetes.io/",
		"node.cloudprovider.kubernetes.io/",
		"ToBeDeletedByClusterAutoscaler",
		"DeletionCandidateOfClusterAutoscaler",
		"karpenter.sh/disrupt",
		"evenkeel.io/drain",
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(taint, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* A copy lacks the identity, the cordon, the annotations and the troubles of its model. */
static cJSON *copy_node(const cJSON *model)
{
	cJSON *node = cJSON_Duplicate(model, true), *spec = whatif_object_in(node, "spec"),
	      *metadata = whatif_object_in(node, "metadata"),
	      *taints = whatif_list_in(spec, "taints"), *next;

	for (cJSON *taint = taints->child; taint; taint = next) {
		next = taint->next;
		if (is_passing(document_text_or(taint, "key", "")))
			cJSON_Delete(cJSON_DetachItemViaPointer(taints, taint));
	}
	make_ready(whatif_object_in(node, "status"));
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "annotations");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "unschedulable");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "providerID");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "podCIDR");
	cJSON_DeleteItemFromObjectCaseSensitive(spec, "podCIDRs");
	cJSON_DeleteItemFromObjectCaseSensitive(whatif_object_in(node, "status"), "images");
	return node;
}

static void add_daemon_pods(struct whatif *w, const char *node, const char *model)
{
	cJSON *last = w->items->child ? w->items->child->prev : NULL, *item = w->items->child;

	for (; item; item = item == last ? NULL : item->next) {
		cJSON *pod;

		if (!document_is(item, "kind", "Pod") || document_has_ended(item) ||
		    !whatif_ends_with_node(item) || !document_is(item, "spec.nodeName", model))
			continue;
		pod = cJSON_Duplicate(item, true);
		whatif_give_name(pod, &w->pods_made);
		whatif_set_text(whatif_object_in(pod, "spec"), "nodeName", node);
		whatif_copy_use(w, item, pod);
		whatif_add(w, pod);
	}
}

static void add_one_node(struct whatif *w, cJSON *node, const char *model)
{
	const char *name;

	whatif_give_name(node, &w->nodes_made);
	name = document_text(node, "metadata.name");
	whatif_set_text(whatif_object_in(whatif_object_in(node, "metadata"), "labels"),
			"kubernetes.io/hostname", name);
	whatif_add_use(w, name, model);
	if (model)
		add_daemon_pods(w, name, model);
	whatif_add(w, node);
}

/* "NODE", "cpu=8,memory=32Gi", and either behind "3x" or "3x ". */
static int add_nodes(struct whatif *w)
{
	const char *of = w->text;
	const cJSON *model = whatif_find(w, "Node", "", of);
	char *end;
	unsigned long count = strtoul(of, &end, 10);
	cJSON *node;

	if (model || *of < '0' || *of > '9' || *end != 'x') {
		count = 1;
	} else {
		of = end + 1 + (end[1] == ' ');
		model = whatif_find(w, "Node", "", of);
	}
	if (count < 1 || count > NODES_MOST)
		return whatif_refuse(w, "must be 1 to %d nodes", NODES_MOST);
	if (!model && !strchr(of, '='))
		return whatif_refuse(w, "there is no node \"%s\"", of);
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
	cJSON *node = whatif_find_node(w, w->text), *spec;

	if (!node)
		return -EINVAL;
	spec = whatif_object_in(node, "spec");
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

/* Letters, digits and signs, as of labels. */
static bool is_of_label(const char *text, const char *signs)
{
	while (isalnum((unsigned char)*text) || (*text && strchr(signs, *text)))
		text++;
	return !*text;
}

/* "NODE:KEY[=VALUE]:EFFECT", and behind the node "KEY-" or "KEY:EFFECT-" to remove it. */
static int change_taint(struct whatif *w, char *text)
{
	static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
	char *key = strchr(text, ':'), *effect, *value;
	size_t len = strlen(text);
	bool gone = len && text[len - 1] == '-';
	cJSON *node, *taints, *taint;

	if (!key || !key[1])
		return whatif_refuse(w,
				     "must be NODE:KEY[=VALUE]:EFFECT, or NODE:KEY- to remove it");
	*key++ = '\0';
	if (gone)
		text[len - 1] = '\0';
	node = whatif_find_node(w, text);
	if (!node)
		return -EINVAL;
	effect = strchr(key, ':');
	if (effect)
		*effect++ = '\0';
	value = strchr(key, '=');
	if (value)
		*value++ = '\0';
	if (!*key)
		return whatif_refuse(w, "the key of the taint is empty");
	if (!is_of_label(key, "-_./") || (value && !is_of_label(value, "-_.")))
		return whatif_refuse(w,
				     "the key and the value of a taint are letters, digits, \"-\", "
				     "\"_\" and \".\", the key also \"/\"");
	taints = whatif_list_in(whatif_object_in(node, "spec"), "taints");
	if (gone)
		return remove_taints(taints, key, effect)
			       ? 0
			       : whatif_refuse(w, "there is no such taint");
	if (!effect || !array_has_text(effects, effect))
		return whatif_refuse(w, "must end in NoSchedule, PreferNoSchedule or NoExecute");
	remove_taints(taints, key, effect);
	taint = cJSON_CreateObject();
	whatif_set_text(taint, "key", key);
	if (value)
		whatif_set_text(taint, "value", value);
	whatif_set_text(taint, "effect", effect);
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

int whatif_change(cJSON *snapshot, const struct whatif_changes *changes, struct buf *notes,
		  struct error *error)
{
	const struct {
		const char *option;
		int (*change)(struct whatif *w);
		const struct option_list *texts;
	} rows[] = {
		{"apply", whatif_apply, &changes->apply},  {"add", add_nodes, &changes->add},
		{"remove", remove_node, &changes->remove}, {"cordon", cordon, &changes->cordon},
		{"taint", taint, &changes->taint},	   {"resize", resize, &changes->resize},
		{"scale", scale, &changes->scale},
	};
	struct whatif w = {
		.items = (cJSON *)document_at(snapshot, "list.items"),
		.nodes = (cJSON *)document_at(snapshot, "usage.nodes"),
		.pods = (cJSON *)document_at(snapshot, "usage.pods"),
		.sources = (cJSON *)document_at(snapshot, "sources"),
		.time = document_text_or(snapshot, "time", "1970-01-01T00:00:00Z"),
		.notes = notes,
		.error = error,
	};
	int rc = 0;

	whatif_begin(&w);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		w.option = rows[r].option;
		for (size_t i = 0; i < rows[r].texts->count && !rc; i++) {
			w.text = rows[r].texts->items[i];
			rc = w.sources ? rows[r].change(&w)
				       : whatif_refuse(&w, "needs objects of a Kubernetes API, and "
							   "only measurements are known here");
		}
	}
	whatif_end(&w, !rc);
	return rc;
}
