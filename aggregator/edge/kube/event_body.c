/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that write Events. They are those of v1: before Kubernetes 1.22 events.k8s.io/v1 has those of
 * nodes in kube-system only, where nobody looks for them.
 */
#include <string.h>

#include "aggregator/edge/kube/event_writer.h"
#include "shared/clock.h"
#include "shared/jsonw.h"

enum { NOTE_MAX = 1000 }; /* as the API of events.k8s.io takes them */

/* Events about objects without a namespace are in "default". */
static const char *namespace_of(const struct object_event *event)
{
	return *event->namespace ? event->namespace : "default";
}

static void add_path(const struct object_event *event, const char *name, struct buf *path)
{
	buf_printf(path, "/api/v1/namespaces/%s/events%s%s", namespace_of(event), *name ? "/" : "",
		   name);
}

/* To the second, as the API keeps it. */
static void write_time(struct jsonw *w, const char *key, int64_t unix_ns)
{
	jsonw_key_time(w, key, unix_ns - unix_ns % NS_PER_SEC);
}

void event_writer_create(const struct object_event *event, const char *component, const char *name,
			 int64_t now_ns, struct buf *path, struct buf *body)
{
	struct jsonw w;

	add_path(event, "", path);
	jsonw_begin(&w, body);
	jsonw_key_string(&w, "apiVersion", "v1");
	jsonw_key_string(&w, "kind", "Event");
	jsonw_key_object(&w, "metadata");
	jsonw_key_string(&w, "namespace", namespace_of(event));
	jsonw_key_string(&w, "name", name);
	jsonw_object_close(&w);
	jsonw_key_object(&w, "involvedObject");
	jsonw_key_string(&w, "apiVersion", event->api_version);
	jsonw_key_string(&w, "kind", event->kind);
	jsonw_key_text(&w, "namespace", event->namespace);
	jsonw_key_string(&w, "name", event->name);
	jsonw_key_text(&w, "uid", event->uid);
	jsonw_object_close(&w);
	jsonw_key_string(&w, "type", event->warning ? "Warning" : "Normal");
	jsonw_key_string(&w, "reason", event->reason);
	jsonw_key(&w, "message");
	jsonw_text(&w, event->note, strnlen(event->note, NOTE_MAX));
	write_time(&w, "firstTimestamp", now_ns);
	write_time(&w, "lastTimestamp", now_ns);
	jsonw_key_int(&w, "count", 1);
	jsonw_key_object(&w, "source");
	jsonw_key_string(&w, "component", component);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}

void event_writer_repeat(const struct object_event *event, const char *name, unsigned int count,
			 int64_t now_ns, struct buf *path, struct buf *body)
{
	struct jsonw w;

	add_path(event, name, path);
	jsonw_begin(&w, body);
	write_time(&w, "lastTimestamp", now_ns);
	jsonw_key_int(&w, "count", count);
	jsonw_object_close(&w);
}
