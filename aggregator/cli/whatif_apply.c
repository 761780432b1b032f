/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a file: they are added, or replace those of their names. The pods of an object that
 * makes pods are new, and pending. Objects whose controller is in the file are left out.
 */
#include "aggregator/cli/whatif_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aggregator/api/pod_file.h"
#include "aggregator/model/object.h"
#include "shared/document.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/units.h"
#include "shared/yaml_json.h"

enum { FILE_MOST = 64 << 20, DEPTH_MOST = 64 };

/* How many pods it makes; a pod of a DaemonSet is for one node. -EINVAL with the reason. */
static int count_replicas(struct whatif *w, const cJSON *object, size_t *replicas)
{
	const char *kind = document_text_or(object, "kind", "");
	bool job = strcmp(kind, "Job") == 0;
	const char *key = job ? "parallelism" : "replicas";
	const cJSON *spec = document_at(object, "spec");
	double count = document_at(spec, key) ? document_number(spec, key) : 1;

	if (strcmp(kind, "DaemonSet") == 0)
		return whatif_refuse(w,
				     "DaemonSet %s: replace it in the file by its Pods with "
				     "spec.nodeName, or remove it",
				     document_text_or(object, "metadata.name", ""));
	if (isnan(count) || count < 0 || count > WHATIF_REPLICAS_MOST || count != floor(count))
		return whatif_refuse(w, "%s %s: %s must be a whole number up to %d", kind,
				     document_text_or(object, "metadata.name", ""), key,
				     WHATIF_REPLICAS_MOST);
	if (job && document_is_true(spec, "suspend"))
		count = 0;
	else if (job)
		count = fmax(0, fmin(count, document_number(spec, "completions")));
	*replicas = (size_t)count;
	return 0;
}

/* Refuses an object that would be left out of the cluster, or that the API would refuse. */
static int check_object(struct whatif *w, const char *kind, const char *name, enum object_kind as,
			const cJSON *object)
{
	static const char *const lists[] = {"spec.initContainers", "spec.containers"};
	char field[OBJECT_FIELD_MAX] = "", *of = mem_printf("%s %s: ", kind, name);
	struct object *read = NULL;
	struct error why;
	int rc = 0;

	if (object_read(as, object, &read, field, &why))
		rc = whatif_refuse(w, "%s%s: %s", of, field, why.text);
	for (size_t i = 0; i < 2 && as == OBJECT_POD; i++)
		for (const cJSON *c = document_first(object, lists[i]); c && !rc; c = c->next)
			rc = whatif_check_limits(w, of, c);
	object_drop(read);
	free(of);
	return rc;
}

static void remove_pods(struct whatif *w, const char *kind, const char *namespace, const char *name)
{
	cJSON *next;

	for (cJSON *item = w->items->child; item; item = next) {
		const char *of = whatif_kind_of(item, namespace, name);

		next = item->next;
		if (of && strcasecmp(of, kind) == 0)
			whatif_remove(w, item);
	}
}

/* The pods of the object replace those of the workload. */
static int apply_workload(struct whatif *w, const cJSON *object)
{
	const char *kind = document_text_or(object, "kind", ""),
		   *namespace = document_text_or(object, "metadata.namespace", "default"),
		   *name = document_text_or(object, "metadata.name", "");
	size_t replicas = 0;
	char *text = cJSON_PrintUnformatted(object);
	struct buf json = BUF_INIT;
	cJSON *pod = NULL;
	int rc = count_replicas(w, object, &replicas);

	if (!rc && pod_file_convert(w->text, text, strlen(text), &json, w->error)) {
		error_prefix(w->error, "--apply");
		rc = -EINVAL;
	}
	free(text);
	if (rc)
		goto out;
	pod = cJSON_ParseWithLength(json.data, json.len);
	whatif_set_text(pod, "apiVersion", "v1");
	whatif_set_text(pod, "kind", "Pod");
	whatif_set_text(whatif_object_in(pod, "metadata"), "namespace", namespace);
	whatif_set_text(whatif_object_in(pod, "metadata"), "name", name);
	whatif_let_wait(w, pod);
	rc = check_object(w, kind, name, OBJECT_POD, pod);
	if (rc)
		goto out;
	remove_pods(w, kind, namespace, name);
	for (; replicas > 0; replicas--) {
		cJSON *copy = cJSON_Duplicate(pod, true);

		whatif_give_name(copy, &w->pods_made);
		whatif_add(w, copy);
	}
out:
	cJSON_Delete(pod);
	buf_fini(&json);
	return rc;
}

/* Templates of other kinds, as of a SealedSecret, make no pods. */
static bool makes_pods(const cJSON *object, bool known)
{
	const cJSON *template = document_at(object, "spec.template");

	return template && (known || document_is(object, "kind", "Deployment") ||
			    document_at(template, "spec"));
}

/* A Deployment makes also pods whose ReplicaSet is not in the file. */
static bool is_made_by(const cJSON *object, const cJSON *maker)
{
	const cJSON *controller = document_controller(object);
	const char *namespace = document_text_or(object, "metadata.namespace", "default"),
		   *kind = document_text_or(maker, "kind", ""),
		   *name = document_text_or(maker, "metadata.name", ""),
		   *workload = whatif_kind_of(object, namespace, name);

	return strcmp(document_text_or(maker, "metadata.namespace", "default"), namespace) == 0 &&
	       ((document_is(controller, "kind", kind) && document_is(controller, "name", name)) ||
		(workload && strcmp(workload, kind) == 0));
}

/* makers: references to the objects of the file that make pods. */
static bool is_made_in(const cJSON *makers, const cJSON *object)
{
	const cJSON *maker = document_controller(object) ? makers->child : NULL;

	while (maker && !is_made_by(object, maker))
		maker = maker->next;
	return maker != NULL;
}

static int apply_object(struct whatif *w, const cJSON *makers, cJSON *object)
{
	const char *kind = document_text(object, "kind"),
		   *version = document_text(object, "apiVersion"),
		   *name = document_text(object, "metadata.name"),
		   *node = document_text(object, "spec.nodeName");
	enum object_kind as = OBJECT_KINDS;
	cJSON *old;
	bool known, pods;

	if (!kind || !name || !version)
		return whatif_refuse(w, "an object must have apiVersion, kind and metadata.name");
	known = object_kind_find(version, kind, &as) == 0;
	pods = makes_pods(object, known);
	if (!known && !pods) {
		whatif_set_number(w->skipped, kind, 1 + fmax(0, document_number(w->skipped, kind)));
		return 0;
	}
	if (is_made_in(makers, object)) {
		w->left_out++;
		return 0;
	}
	w->applied++;
	if (pods)
		return apply_workload(w, object);
	if (strcmp(kind, "Pod") == 0 && node && !whatif_find(w, "Node", "", node))
		return whatif_refuse(w, "Pod %s: there is no node \"%s\"", name, node);
	if (object_kind_namespaced(as) && !document_text(object, "metadata.namespace"))
		whatif_set_text(whatif_object_in(object, "metadata"), "namespace", "default");
	if (check_object(w, kind, name, as, object))
		return -EINVAL;
	old = whatif_find(w, kind, document_text_or(object, "metadata.namespace", ""), name);
	if (old)
		whatif_remove(w, old);
	whatif_add(w, cJSON_Duplicate(object, true));
	return 0;
}

/* Notes the objects that are left out; if no others are in the file, that is an error. */
static int tell_skipped(const struct whatif *w)
{
	struct buf kinds = BUF_INIT;
	const cJSON *of;
	int rc = 0;

	cJSON_ArrayForEach (of, w->skipped) {
		buf_printf(&kinds, "%s%.0f %s", kinds.len ? ", " : "", of->valuedouble, of->string);
	}
	if (!w->applied)
		rc = kinds.len
			     ? whatif_refuse(w, "no answer depends on its objects: %s", kinds.data)
			     : whatif_refuse(w, "there is no object");
	else if (kinds.len)
		buf_printf(w->notes, "--%s %s: skipped, as no answer depends on these: %s\n",
			   w->option, w->text, kinds.data);
	if (w->left_out)
		buf_printf(w->notes,
			   "--%s %s: %zu object%s left out, as the file has their controllers\n",
			   w->option, w->text, w->left_out, units_plural((double)w->left_out));
	buf_fini(&kinds);
	return rc;
}

int whatif_read_file(const char *path, const struct yaml_json_limits *limits, cJSON **documents,
		     struct error *error)
{
	struct buf text = BUF_INIT, json = BUF_INIT;
	size_t count;
	char *line, *save;
	int rc = file_read(path, limits->bytes, &text, error);

	*documents = cJSON_CreateArray();
	if (!rc)
		rc = yaml_json_convert(file_name(path), text.data ? text.data : "", text.len,
				       limits, &json, &count, error);
	for (line = rc || !json.data ? NULL : strtok_r(json.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		cJSON_AddItemToArray(*documents, cJSON_Parse(line));
	buf_fini(&text);
	buf_fini(&json);
	return rc;
}

/* The items of a List in its place. */
static void add_objects(cJSON *objects, cJSON *object)
{
	cJSON *items = (cJSON *)document_at(object, "items");

	if (!document_is(object, "kind", "List")) {
		cJSON_AddItemToArray(objects, object);
		return;
	}
	while (cJSON_IsArray(items) && items->child)
		add_objects(objects, cJSON_DetachItemViaPointer(items, items->child));
	cJSON_Delete(object);
}

int whatif_apply(struct whatif *w)
{
	const struct yaml_json_limits limits = {DEPTH_MOST, FILE_MOST};
	cJSON *file, *objects = cJSON_CreateArray(), *makers = cJSON_CreateArray(), *object;
	int rc = whatif_read_file(w->text, &limits, &file, w->error);

	w->applied = 0;
	w->skipped = cJSON_CreateObject();
	w->left_out = 0;
	if (rc)
		error_prefix(w->error, "--apply");
	while (file->child)
		add_objects(objects, cJSON_DetachItemViaPointer(file, file->child));
	cJSON_ArrayForEach (object, objects)
		if (makes_pods(object, false))
			cJSON_AddItemReferenceToArray(makers, object);
	for (object = objects->child; object && !rc; object = object->next)
		rc = apply_object(w, makers, object);
	if (!rc)
		rc = tell_skipped(w);
	cJSON_Delete(makers);
	cJSON_Delete(objects);
	cJSON_Delete(file);
	cJSON_Delete(w->skipped);
	return rc;
}
