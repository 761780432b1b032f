/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod as JSON: the members of its template, those that are its own in front of them, and a status
 * that says no more than the record knows. Restarts of all containers stand at the first, unless the
 * text of a resize has each. A template that the pod was put into by
 * model_put() has the same text as its own had, so any will do.
 */
#include <stdio.h>
#include <string.h>

#include "aggregator/model/object_record.h"
#include "shared/jsonw.h"
#include "shared/timefmt.h"

static void write_time(struct jsonw *w, const char *key, int64_t unix_ns)
{
	char text[TIMEFMT_LEN];

	if (!unix_ns)
		return;
	timefmt_rfc3339_exact(unix_ns, text);
	jsonw_key_string(w, key, text);
}

/* Members that are JSON already, between the braces of an object; there may be none. */
static void write_members(struct jsonw *w, const char *members, size_t len)
{
	if (len)
		buf_add(jsonw_json(w), members, len);
}

static void write_metadata(struct jsonw *w, const struct kube_pod *p)
{
	static const char before[] = "{\"metadata\":{", behind[] = "},\"spec\":";
	const struct pod_template *t = p->template;
	size_t start = sizeof(before) - 1, end = t->spec_at - (sizeof(behind) - 1);

	jsonw_key_object(w, "metadata");
	jsonw_key_string(w, "name", p->object.name);
	jsonw_key_text(w, "namespace", p->object.namespace);
	jsonw_key_text(w, "uid", p->object.uid);
	write_time(w, "creationTimestamp", p->created_ns);
	write_time(w, "deletionTimestamp", p->deletion_ns);
	write_members(w, t->text + start, end - start);
	jsonw_object_close(w);
}

static void write_spec(struct jsonw *w, const struct kube_pod *p)
{
	const struct pod_template *t = p->template;

	jsonw_key_object(w, "spec");
	jsonw_key_text(w, "nodeName", p->node);
	/* Without the braces of "spec" and of the whole. */
	write_members(w, t->text + t->spec_at + 1, t->text_len - t->spec_at - 3);
	jsonw_object_close(w);
}

static void write_condition(struct jsonw *w, const char *type, const char *status,
			    const char *reason, int64_t since_ns)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "type", type);
	jsonw_key_string(w, "status", status);
	jsonw_key_text(w, "reason", reason);
	write_time(w, "lastTransitionTime", since_ns);
	jsonw_object_close(w);
}

static void write_resize_condition(struct jsonw *w, enum pod_resize resize)
{
	if (resize == POD_RESIZE_DEFERRED)
		write_condition(w, "PodResizePending", "True", "Deferred", 0);
	else if (resize == POD_RESIZE_INFEASIBLE)
		write_condition(w, "PodResizePending", "True", "Infeasible", 0);
	else if (resize == POD_RESIZE_IN_PROGRESS)
		write_condition(w, "PodResizeInProgress", "True", "", 0);
}

static void write_conditions(struct jsonw *w, const struct kube_pod *p)
{
	jsonw_key_array(w, "conditions");
	if (p->scheduled_ns)
		write_condition(w, "PodScheduled", "True", "", p->scheduled_ns);
	if (p->unschedulable_ns)
		write_condition(w, "PodScheduled", "False", "", p->unschedulable_ns);
	write_condition(w, "Ready", p->ready ? "True" : "False", "", 0);
	if (p->disruption_ns)
		write_condition(w, "DisruptionTarget", "True", "", p->disruption_ns);
	write_resize_condition(w, (enum pod_resize)p->resize);
	jsonw_array_close(w);
}

static void write_containers(struct jsonw *w, const struct kube_pod *p)
{
	const char *at = p->containers;
	uint32_t restarts = p->restarts;

	if (p->resized_text) {
		write_members(w, p->resized_text + 1, strlen(p->resized_text) - 2);
		return;
	}
	if (!*at && !restarts)
		return;
	jsonw_key_array(w, "containerStatuses");
	do {
		char id[CONTAINER_ID_KEPT + 1], name[CONTAINER_NAME_MAX + 1];

		jsonw_object_open(w);
		if (sscanf(at, "%16[^ ] %63[^\n]", id, name) == 2) {
			jsonw_key_string(w, "containerID", id);
			jsonw_key_string(w, "name", name);
			at += strlen(id) + strlen(name) + 2;
		}
		if (restarts)
			jsonw_key_int(w, "restartCount", restarts);
		restarts = 0;
		jsonw_object_close(w);
	} while (*at);
	jsonw_array_close(w);
}

static void write_status(struct jsonw *w, const struct kube_pod *p)
{
	jsonw_key_object(w, "status");
	jsonw_key_string(w, "phase", pod_phase_name((enum pod_phase)p->phase));
	jsonw_key_text(w, "qosClass", p->qos);
	jsonw_key_text(w, "nominatedNodeName", p->nominated_node);
	write_time(w, "startTime", p->started_ns);
	if (p->resize == POD_RESIZE_PROPOSED)
		jsonw_key_string(w, "resize", "Proposed");
	write_conditions(w, p);
	write_containers(w, p);
	jsonw_object_close(w);
}

void object_pod_write(const struct kube_pod *p, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_string(&w, "apiVersion", object_kind_version(OBJECT_POD));
	jsonw_key_string(&w, "kind", object_kind_name(OBJECT_POD));
	write_metadata(&w, p);
	write_spec(&w, p);
	write_status(&w, p);
	jsonw_object_close(&w);
}
