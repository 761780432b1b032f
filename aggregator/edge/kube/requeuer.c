/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once a second: a refused pod would pass now --> PATCH of an annotation of the claim
 *                --> kube-scheduler sees the claim change, and asks about every waiting pod
 *
 * A kube-scheduler retries refused pods of an extender at an event of any object that it watches.
 * A PersistentVolumeClaim is such an object of a namespace, so a Role for one name suffices. The
 * claim has no other use: it names a volume that does not exist, and stays pending without Events.
 *
 * A merge patch does not create the claim; the annotation is the time, so each patch is a change.
 * After a refusal (no such claim, no Role) it rests for REST_NS; /v1/status has the answer, and
 * the first of a row is logged.
 */
#include "aggregator/edge/kube/requeuer.h"

#include <ctype.h>
#include <stdlib.h>

#include "aggregator/api/waiting_pods.h"
#include "aggregator/edge/kube/kube_writer.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

#define EVERY_NS NS_PER_SEC
#define REST_NS	 (10 * NS_PER_SEC)

enum { NAME_MAX_LEN = 253 };

struct requeuer {
	struct kube_writer writer;

	/* fixed after start */
	char *claim; /* owned; NULL: none */
	const struct api_context *ctx;
	struct requeue_counters *counters;

	/* the thread's */
	int64_t rest_until_ns; /* monotonic */
	bool failing; /* logged */
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

size_t requeuer_claim_namespace(const char *claim)
{
	size_t namespace = name_length(claim), name;

	if (!namespace || claim[namespace] != '/')
		return 0;
	name = name_length(claim + namespace + 1);
	return name && !claim[namespace + 1 + name] ? namespace : 0;
}

void requeuer_request(const char *claim, int64_t now_ns, struct buf *path, struct buf *body)
{
	size_t namespace = requeuer_claim_namespace(claim);
	char time[TIMEFMT_LEN];

	timefmt_rfc3339(now_ns, time);
	buf_printf(path, "/api/v1/namespaces/%.*s/persistentvolumeclaims/%s?fieldManager=evenkeel",
		   (int)namespace, claim, claim + namespace + 1);
	buf_printf(body, "{\"metadata\":{\"annotations\":{\"evenkeel.io/nudged\":\"%s\"}}}", time);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void requeue(struct requeuer *r)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	long status;

	requeuer_request(r->claim, r->ctx->now_ns(), &path, &body);
	status = kube_writer_send(&r->writer, KUBE_MERGE, path.data, &body);
	buf_fini(&path);
	buf_fini(&body);
	counter_set(&r->counters->status, (uint64_t)status);
	counter_add(kube_call_succeeds(status) ? &r->counters->sent : &r->counters->failed, 1);
	if (!kube_call_succeeds(status)) {
		r->rest_until_ns = clock_mono_ns() + REST_NS;
		waiting_pods_not_sent(r->ctx->waiting);
		if (status && !r->failing)
			log_warn("claim %s cannot be patched (%ld), so refused pods wait for the "
				 "scheduler's own retry: %s",
				 r->claim, status, kube_writer_answer(&r->writer));
	}
	r->failing = !kube_call_succeeds(status);
}

static void *run(void *arg)
{
	struct requeuer *r = arg;

	while (kube_writer_wait(&r->writer, EVERY_NS)) {
		if (clock_mono_ns() >= r->rest_until_ns &&
		    waiting_pods_review(r->ctx->waiting, r->ctx))
			requeue(r);
	}
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

int requeuer_start(struct requeuer **out, const struct kube_config *config, const char *claim,
		   const struct api_context *ctx, struct error *error)
{
	struct requeuer *r = *out = mem_zalloc(1, sizeof(*r));

	r->claim = claim ? mem_strdup(claim) : NULL;
	r->ctx = ctx;
	r->counters = &ctx->counters->requeue;
	counter_set(&r->counters->enabled, claim != NULL);
	return kube_writer_start(&r->writer, config, "refused pods are not requeued", run, r,
				 error);
}

void requeuer_stop(struct requeuer *r)
{
	if (!r)
		return;
	kube_writer_stop(&r->writer);
	free(r->claim);
	free(r);
}
