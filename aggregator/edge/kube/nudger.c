/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once a second: a pod that was refused would pass now --> PATCH of an annotation of the claim
 *                --> kube-scheduler sees the claim change, and asks about every pod that waits
 *
 * A kube-scheduler retries pods that an extender refused at an event of any object that it watches.
 * A PersistentVolumeClaim is one, of a namespace, so that a Role for one name is all that this
 * needs. The claim is there for nothing else: it names a volume that does not exist, and stays
 * pending without an event of its own.
 *
 * A merge patch, which does not create the claim; the annotation is the time, so that each is a
 * change. Where the API says no (no such claim, no Role) it is tried again REST_NS later, /v1/status
 * tells what it said, and the first of a row is logged.
 *
 * Events of pods (--pod-events) are created in their namespaces, a few a second; one that the API
 * does not take is counted and gone.
 */
#include "aggregator/edge/kube/nudger.h"

#include <ctype.h>
#include <stdlib.h>

#include "aggregator/api/waiting_pods.h"
#include "aggregator/edge/kube/kube_writer.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

#define EVERY_NS NS_PER_SEC
#define REST_NS	 (10 * NS_PER_SEC)

enum { EVENTS_A_ROUND = 5, NAME_MAX_LEN = 253 };

struct nudger {
	struct kube_writer writer;

	/* fixed after start */
	char *claim; /* owned; NULL: none */
	const struct api_context *ctx;
	struct nudge_counters *counters;

	/* the thread's */
	int64_t rest_until_ns; /* monotonic */
	bool failing, events_failing; /* and that is logged */
};

/* --- requests --------------------------------------------------------------------------------- */

static size_t name_length(const char *text)
{
	size_t len = 0;

	while (islower((unsigned char)text[len]) || isdigit((unsigned char)text[len]) ||
	       text[len] == '-' || text[len] == '.')
		len++;
	return len <= NAME_MAX_LEN ? len : 0;
}

size_t nudger_claim_namespace(const char *claim)
{
	size_t namespace = name_length(claim), name;

	if (!namespace || claim[namespace] != '/')
		return 0;
	name = name_length(claim + namespace + 1);
	return name && !claim[namespace + 1 + name] ? namespace : 0;
}

void nudger_request(const char *claim, int64_t now_ns, struct buf *path, struct buf *body)
{
	size_t namespace = nudger_claim_namespace(claim);
	char time[TIMEFMT_LEN];

	timefmt_rfc3339(now_ns, time);
	buf_printf(path, "/api/v1/namespaces/%.*s/persistentvolumeclaims/%s?fieldManager=evenkeel",
		   (int)namespace, claim, claim + namespace + 1);
	buf_printf(body, "{\"metadata\":{\"annotations\":{\"evenkeel.io/nudged\":\"%s\"}}}", time);
}

static void open_member(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_object_open(w);
}

void nudger_event_request(const struct waiting_event *event, int64_t now_ns, struct buf *path,
			  struct buf *body)
{
	char time[TIMEFMT_LEN];
	struct jsonw w;

	timefmt_rfc3339(now_ns - now_ns % NS_PER_SEC, time);
	buf_printf(path, "/api/v1/namespaces/%s/events?fieldManager=evenkeel", event->namespace);
	jsonw_init(&w, body);
	jsonw_object_open(&w);
	jsonw_key_string(&w, "apiVersion", "v1");
	jsonw_key_string(&w, "kind", "Event");
	open_member(&w, "metadata");
	jsonw_key_string(&w, "namespace", event->namespace);
	jsonw_key_string(&w, "generateName", "evenkeel-");
	jsonw_object_close(&w);
	open_member(&w, "involvedObject");
	jsonw_key_string(&w, "apiVersion", "v1");
	jsonw_key_string(&w, "kind", "Pod");
	jsonw_key_string(&w, "namespace", event->namespace);
	jsonw_key_string(&w, "name", event->name);
	jsonw_key_string(&w, "uid", event->uid);
	jsonw_object_close(&w);
	jsonw_key_string(&w, "type", "Warning");
	jsonw_key_string(&w, "reason", "RefusedByEvenkeel");
	jsonw_key_string(&w, "message", event->message);
	jsonw_key_string(&w, "firstTimestamp", time);
	jsonw_key_string(&w, "lastTimestamp", time);
	jsonw_key_int(&w, "count", 1);
	open_member(&w, "source");
	jsonw_key_string(&w, "component", "evenkeel");
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}

/* --- the thread ------------------------------------------------------------------------------- */

static bool is_done(long status)
{
	return status == 200 || status == 201;
}

static void nudge(struct nudger *n)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	long status;

	nudger_request(n->claim, n->ctx->now_ns(), &path, &body);
	status = kube_writer_send(&n->writer, KUBE_MERGE, path.data, &body);
	buf_fini(&path);
	buf_fini(&body);
	counter_set(&n->counters->status, (uint64_t)status);
	counter_add(is_done(status) ? &n->counters->sent : &n->counters->failed, 1);
	if (!is_done(status)) {
		n->rest_until_ns = clock_mono_ns() + REST_NS;
		if (status && !n->failing)
			log_warn("claim %s cannot be changed (%ld), so refused pods wait for the "
				 "scheduler's own retry: %s",
				 n->claim, status, kube_writer_answer(&n->writer));
	}
	n->failing = !is_done(status);
}

static void write_event(struct nudger *n, const struct waiting_event *event)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	long status;

	nudger_event_request(event, n->ctx->now_ns(), &path, &body);
	status = kube_writer_send(&n->writer, KUBE_POST, path.data, &body);
	buf_fini(&path);
	buf_fini(&body);
	counter_add(is_done(status) ? &n->counters->events_written : &n->counters->events_failed,
		    1);
	if (status && !is_done(status) && !n->events_failing)
		log_warn("events of pods are not written (%ld): %s", status,
			 kube_writer_answer(&n->writer));
	n->events_failing = !is_done(status);
}

static void write_events(struct nudger *n)
{
	struct waiting_event event;

	for (int i = 0; i < EVENTS_A_ROUND && waiting_pods_take_event(n->ctx->waiting, &event);
	     i++) {
		write_event(n, &event);
		object_drop(&event.pod->object);
	}
}

static void *run(void *arg)
{
	struct nudger *n = arg;

	while (kube_writer_wait(&n->writer, EVERY_NS)) {
		if (clock_mono_ns() >= n->rest_until_ns &&
		    waiting_pods_review(n->ctx->waiting, n->ctx))
			nudge(n);
		write_events(n);
	}
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

int nudger_start(struct nudger **out, const struct kube_config *config, const char *claim,
		 const struct api_context *ctx, struct reason *reason)
{
	struct nudger *n = mem_zalloc(1, sizeof(*n));
	int rc;

	n->claim = claim ? mem_strdup(claim) : NULL;
	n->ctx = ctx;
	n->counters = &ctx->counters->nudge;
	rc = kube_writer_start(&n->writer, config, "refused pods are not asked about again", run, n,
			       reason);
	if (rc) {
		free(n->claim);
		free(n);
		return rc;
	}
	counter_set(&n->counters->enabled, claim != NULL);
	*out = n;
	return 0;
}

void nudger_stop(struct nudger *n)
{
	if (!n)
		return;
	kube_writer_stop(&n->writer);
	free(n->claim);
	free(n);
}
