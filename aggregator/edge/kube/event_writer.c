/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once a second: object_events_offer() --> event_limits_admit() --> POST an Event
 *                                                               \-> PATCH count of an earlier one
 *
 * Events are those of v1: before Kubernetes 1.22 events.k8s.io/v1 has those of nodes in kube-system
 * only, where nobody looks for them.
 *
 * An event of the same object, reason and note as the last one of that object and reason is its
 * repetition; if the API server has forgotten that one (404), it is a new event.
 *
 * A failed event is counted and lost. If the API is not reached, rejects the credential, or asks to
 * wait, nothing is offered for REST_NS: meanwhile the sources keep what they can (object_events.c).
 * The first failure of a row is logged.
 */
#include "aggregator/edge/kube/event_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/event_limits.h"
#include "aggregator/edge/kube/kube_writer.h"
#include "aggregator/edge/kube/status_writer.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"

#define EVERY_NS NS_PER_SEC
#define REST_NS	 (60 * NS_PER_SEC)

enum { NOTE_MAX = 1000 }; /* as the API of events.k8s.io takes them */

struct event_writer {
	struct kube_writer writer;

	/* fixed after start */
	const struct api_context *ctx;

	/* the thread's */
	struct object_events events;
	struct event_limits limits;
	int64_t named_ns; /* in the last name; Unix time */
	int64_t rest_until_ns; /* monotonic */
	bool failing; /* logged */
};

/* --- requests --------------------------------------------------------------------------------- */

/* Events about objects without a namespace are in "default". */
static const char *namespace_of(const struct object_event *event)
{
	return *event->namespace ? event->namespace : "default";
}

static void add_path(const struct object_event *event, const char *name, struct buf *path)
{
	buf_printf(path, "/api/v1/namespaces/%s/events%s%s?fieldManager=evenkeel",
		   namespace_of(event), *name ? "/" : "", name);
}

/* To the second, as the API keeps it. */
static void write_time(struct jsonw *w, const char *key, int64_t unix_ns)
{
	jsonw_key_time(w, key, unix_ns - unix_ns % NS_PER_SEC);
}

static void write_object(struct jsonw *w, const struct object_event *event)
{
	jsonw_key_object(w, "involvedObject");
	jsonw_key_string(w, "apiVersion", event->api_version);
	jsonw_key_string(w, "kind", event->kind);
	jsonw_key_text(w, "namespace", event->namespace);
	jsonw_key_string(w, "name", event->name);
	jsonw_key_text(w, "uid", event->uid);
	jsonw_object_close(w);
}

void event_writer_create(const struct object_event *event, const char *name, int64_t now_ns,
			 struct buf *path, struct buf *body)
{
	struct jsonw w;

	add_path(event, "", path);
	jsonw_init(&w, body);
	jsonw_object_open(&w);
	jsonw_key_string(&w, "apiVersion", "v1");
	jsonw_key_string(&w, "kind", "Event");
	jsonw_key_object(&w, "metadata");
	jsonw_key_string(&w, "namespace", namespace_of(event));
	jsonw_key_string(&w, "name", name);
	jsonw_object_close(&w);
	write_object(&w, event);
	jsonw_key_string(&w, "type", event->warning ? "Warning" : "Normal");
	jsonw_key_string(&w, "reason", event->reason);
	jsonw_key(&w, "message");
	jsonw_text(&w, event->note, strnlen(event->note, NOTE_MAX));
	write_time(&w, "firstTimestamp", now_ns);
	write_time(&w, "lastTimestamp", now_ns);
	jsonw_key_int(&w, "count", 1);
	jsonw_key_object(&w, "source");
	jsonw_key_string(&w, "component", "evenkeel");
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}

void event_writer_repeat(const struct object_event *event, const char *name, unsigned int count,
			 int64_t now_ns, struct buf *path, struct buf *body)
{
	struct jsonw w;

	add_path(event, name, path);
	jsonw_init(&w, body);
	jsonw_object_open(&w);
	write_time(&w, "lastTimestamp", now_ns);
	jsonw_key_int(&w, "count", count);
	jsonw_object_close(&w);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Two events never have one name, whatever becomes of the clock. */
static void make_name(struct event_writer *w, int64_t now_ns, char name[EVENT_NAME_LEN])
{
	w->named_ns = now_ns > w->named_ns ? now_ns : w->named_ns + 1;
	snprintf(name, EVENT_NAME_LEN, "evenkeel.%" PRIx64, (uint64_t)w->named_ns);
}

/* 404: there is none to repeat. */
static long repeat(struct event_writer *w, const struct object_event *event,
		   const struct event_entry *e, int64_t now_ns)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	long status = 404;

	if (e->name[0]) {
		event_writer_repeat(event, e->name, e->count + 1, now_ns, &path, &body);
		status = kube_writer_send(&w->writer, KUBE_MERGE, path.data, &body);
	}
	buf_fini(&path);
	buf_fini(&body);
	return status;
}

static long create(struct event_writer *w, const struct object_event *event, struct event_entry *e,
		   int64_t now_ns)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	long status;

	make_name(w, now_ns, e->name);
	e->count = 0;
	event_writer_create(event, e->name, now_ns, &path, &body);
	status = kube_writer_send(&w->writer, KUBE_POST, path.data, &body);
	buf_fini(&path);
	buf_fini(&body);
	return status;
}

static void note_failure(struct event_writer *w, long status)
{
	if (status && !w->failing)
		log_warn("events are not written (%ld): %s", status,
			 kube_writer_answer(&w->writer));
	w->failing = true;
}

/* False: the API is left alone for a while. */
static bool write_event(struct event_writer *w, const struct object_event *event,
			struct event_entry *e)
{
	struct event_counters *counters = &w->ctx->counters->events;
	int64_t now_ns = w->ctx->now_ns();
	long status = repeat(w, event, e, now_ns);

	if (status == 404)
		status = create(w, event, e, now_ns);
	counter_add(kube_call_succeeds(status) ? &counters->written : &counters->failed, 1);
	if (kube_call_succeeds(status)) {
		e->count++;
		w->failing = false;
		return true;
	}
	note_failure(w, status);
	e->name[0] = '\0';
	if (status_writer_rest_ns(status) >= 0)
		return true;
	e->written_ns = 0;
	w->rest_until_ns = clock_mono_ns() + REST_NS;
	return false;
}

static bool take(void *to, const struct object_event *event)
{
	struct event_writer *w = to;
	struct event_entry *entry;

	switch (event_limits_admit(&w->limits, event, clock_mono_ns(), &entry)) {
	case EVENT_PASSES:
		return write_event(w, event, entry) && !kube_writer_stops(&w->writer);
	case EVENT_LEFT_OUT:
		counter_add(&w->ctx->counters->events.limited, 1);
		break;
	case EVENT_WAITS:
		break;
	}
	return !kube_writer_stops(&w->writer);
}

static void *run(void *arg)
{
	struct event_writer *w = arg;

	while (kube_writer_wait(&w->writer, EVERY_NS)) {
		int64_t now_ns = clock_mono_ns();

		event_limits_expire(&w->limits, now_ns);
		if (now_ns >= w->rest_until_ns)
			object_events_offer(&w->events, now_ns, take, w);
	}
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

int event_writer_start(struct event_writer **out, const struct kube_config *config, unsigned int of,
		       const struct api_context *ctx, struct error *error)
{
	struct event_writer *w = mem_zalloc(1, sizeof(*w));
	int rc;

	w->ctx = ctx;
	w->events = (struct object_events){.ctx = ctx, .of = of};
	rc = kube_writer_start(&w->writer, config, "events are not written", run, w, error);
	if (rc)
		free(w);
	else
		*out = w;
	return rc;
}

void event_writer_stop(struct event_writer *w)
{
	if (!w)
		return;
	kube_writer_stop(&w->writer);
	event_limits_fini(&w->limits);
	free(w);
}
