/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once a second: object_events_offer() --> event_limits_admit() --> POST an Event
 *                                                               \-> PATCH count of an earlier one
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

#include "aggregator/edge/kube/kube_writer.h"
#include "aggregator/edge/kube/status_writer.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"

#define EVERY_NS NS_PER_SEC
#define REST_NS	 (60 * NS_PER_SEC)

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

/* --- the thread ------------------------------------------------------------------------------- */

static long send_to(struct event_writer *w, enum kube_method method, struct buf *path,
		    struct buf *body)
{
	long status;

	buf_add_str(path, "?fieldManager=evenkeel");
	status = kube_writer_send(&w->writer, method, path->data, body);
	buf_fini(path);
	buf_fini(body);
	return status;
}

/* 404: there is none to repeat. */
static long repeat(struct event_writer *w, const struct object_event *event,
		   const struct event_entry *e, int64_t now_ns)
{
	struct buf path = BUF_INIT, body = BUF_INIT;

	if (!e->name[0])
		return 404;
	event_writer_repeat(event, e->name, e->count + 1, now_ns, &path, &body);
	return send_to(w, KUBE_MERGE, &path, &body);
}

static long create(struct event_writer *w, const struct object_event *event, struct event_entry *e,
		   int64_t now_ns)
{
	struct buf path = BUF_INIT, body = BUF_INIT;

	/* Two events never have one name, whatever becomes of the clock. */
	w->named_ns = now_ns > w->named_ns ? now_ns : w->named_ns + 1;
	snprintf(e->name, EVENT_NAME_LEN, "evenkeel.%" PRIx64, (uint64_t)w->named_ns);
	e->count = 0;
	event_writer_create(event, "evenkeel", e->name, now_ns, &path, &body);
	return send_to(w, KUBE_POST, &path, &body);
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
	if (status && !w->failing)
		log_warn("events are not written (%ld): %s", status,
			 kube_writer_answer(&w->writer));
	w->failing = true;
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
	struct event_writer *w = *out = mem_zalloc(1, sizeof(*w));

	w->ctx = ctx;
	w->events = (struct object_events){.ctx = ctx, .of = of};
	return kube_writer_start(&w->writer, config, "events are not written", run, w, error);
}

void event_writer_stop(struct event_writer *w)
{
	if (!w)
		return;
	kube_writer_stop(&w->writer);
	event_limits_fini(&w->limits);
	free(w);
}
