/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube thread --batches--> queue --wake--> on_news: batch by batch into the model --> publisher
 *                                              |
 *                                              +--pod by pod--> reservations
 *
 * A list of a large cluster is hundreds of batches. A few are applied per turn of the loop, so that
 * frames and timers come in between; the edge waits meanwhile, since its queue is bounded.
 *
 * An unreachable API is no failure here: the model is empty or old, its sources say so, and the edge
 * retries. Only an unreadable kubeconfig and a pod without a token stop a start.
 */
#include "aggregator/engine_informer.h"

#include <errno.h>
#include <stdlib.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/event_writer.h"
#include "aggregator/edge/kube/front_proxy_watch.h"
#include "aggregator/edge/kube/kube.h"
#include "aggregator/edge/kube/requeuer.h"
#include "aggregator/edge/kube/status_writer.h"
#include "aggregator/edge/kube/token_review.h"
#include "aggregator/engine_publisher.h"
#include "aggregator/state/reservations.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"

#define SNAPSHOT_MOST ((size_t)2 << 30)

enum { BATCHES_PER_TURN = 4 };

struct informer {
	/* fixed after start */
	struct informer_config config;
	struct kube *kube; /* NULL: from files */
	struct status_writer *writer; /* NULL: nothing is written */
	struct requeuer *requeuer; /* NULL: from files */
	struct event_writer *events; /* NULL: none are written */
	const char *mode;
	bool runs_programs; /* for credentials */
	char *from; /* owned; what the model is read from, for people */

	/* loop thread */
	uv_async_t news;
	struct model *model;
	uint64_t caught_up; /* the newest ticket that was told */
	uint64_t seen; /* generation of the last cluster that was asked for */
	struct model_pod_watch watch;
};

static void end_pod(struct reservations *set, const char *uid)
{
	reservations_release(set, uid);
	reservations_forget(set, uid);
}

/* One that waits for its victims is not given up. */
static bool is_given_up(const struct kube_pod *pod)
{
	return pod->unschedulable_ns && !*pod->nominated_node;
}

/* The event made it so: a pod that is retried keeps its condition of before. */
static bool has_been_given_up(const struct kube_pod *was, const struct kube_pod *pod)
{
	return is_given_up(pod) &&
	       !(was && is_given_up(was) && was->unschedulable_ns == pod->unschedulable_ns);
}

/* The reservation of a pod ends, or moves to the pod's node. */
static void on_pod(void *ctx, const struct kube_pod *was, const struct kube_pod *pod,
		   uint64_t generation)
{
	struct reservations *set = ctx;
	const char *uid = pod->object.uid;

	if (!kube_pod_is_active(pod)) {
		end_pod(set, uid);
	} else if (*pod->node) {
		reservations_bind(set, uid, pod->node, generation);
		reservations_remember(set, uid);
	} else if (has_been_given_up(was, pod)) {
		reservations_unschedulable(set, uid);
	}
}

static void on_pod_gone(void *ctx, const struct kube_pod *pod)
{
	end_pod(ctx, pod->object.uid);
}

/* Kube thread. */
static void on_ready(void *ctx)
{
	struct informer *f = ctx;

	uv_async_send(&f->news);
}

static void on_news(uv_async_t *news)
{
	struct informer *f = news->data;
	uint64_t ticket = kube_flushed(f->kube);
	struct kube_batch *batch;
	bool changed = false;
	int done = 0;

	while (done < BATCHES_PER_TURN && (batch = kube_take(f->kube)) != NULL) {
		changed |= kube_batch_apply(batch, f->model);
		done++;
	}
	if (done == BATCHES_PER_TURN)
		uv_async_send(&f->news);
	if (changed)
		publisher_note_events(f->config.publisher);
	if (done < BATCHES_PER_TURN && ticket > f->caught_up) {
		f->caught_up = ticket;
		publisher_want(f->config.publisher, ticket);
	}
}

static int start(struct informer *f, const struct kube_config *kube, struct error *error)
{
	int rc = uv_async_init(f->config.loop, &f->news, on_news);

	if (rc)
		return error_fail(error, rc, "the event loop does not start: %s", uv_strerror(rc));
	f->news.data = f;
	return kube_start(&f->kube, kube, NULL, on_ready, f, error);
}

static int follow(struct informer *f, struct error *error)
{
	struct kube_config kube = {0};
	int rc = f->config.standalone
			 ? -ENOENT
			 : kube_config_find(&kube, f->config.kubeconfig, f->config.context, error);

	if (rc)
		return rc;
	f->model = model_new();
	f->watch = (struct model_pod_watch){on_pod, on_pod_gone, f->config.reservations};
	model_watch_pods(f->model, &f->watch);
	f->mode = f->config.kubeconfig ? "kubeconfig" : "inCluster";
	f->runs_programs = kube.exec_command != NULL;
	f->from = mem_printf("the Kubernetes API at %s (%s)", kube.server, kube.source);
	rc = start(f, &kube, error);
	if (!rc && f->config.status_counters)
		rc = status_writer_start(&f->writer, &kube, f->config.views, f->config.quota,
					 f->config.status_counters, error);
	if (!rc)
		rc = requeuer_start(&f->requeuer, &kube, f->config.nudge_claim, f->config.api,
				    error);
	if (!rc && f->config.events)
		rc = event_writer_start(&f->events, &kube, f->config.events, f->config.api, error);
	kube_config_fini(&kube);
	return rc;
}

static int read_files(struct snapshot *s, const struct option_list *files, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < files->count && !rc; i++) {
		struct buf text = BUF_INIT;

		rc = file_read(files->items[i], SNAPSHOT_MOST, &text, error);
		if (rc && !files->items[i][0])
			error_prefix(error, "--snapshot");
		if (!rc)
			rc = snapshot_add(s, file_name(files->items[i]), text.data, text.len,
					  error);
		buf_fini(&text);
	}
	return rc;
}

static int load(struct informer *f, struct error *error)
{
	struct snapshot *s = snapshot_new();
	int rc = read_files(s, f->config.snapshots, error);

	if (!rc)
		rc = snapshot_take_model(s, &f->model, error);
	if (!rc && snapshot_notes(s)->skipped)
		log_warn("%zu objects of the snapshot were skipped: %s", snapshot_notes(s)->skipped,
			 snapshot_notes(s)->text.data);
	f->mode = "snapshot";
	f->from = mem_strdup("the snapshot");
	snapshot_free(s);
	return rc == -ENOENT ? -EINVAL : rc;
}

int informer_open(struct informer **out, const struct informer_config *config, struct error *error)
{
	struct informer *f = mem_zalloc(1, sizeof(*f));
	int rc;

	f->config = *config;
	rc = config->snapshots->count ? load(f, error) : follow(f, error);
	/* The caller closes the loop's handles and frees us, whatever happens. */
	*out = f;
	if (rc != -ENOENT)
		return rc;
	free(f);
	*out = NULL;
	return 0;
}

void informer_stop(struct informer *f)
{
	if (!f)
		return;
	event_writer_stop(f->events);
	f->events = NULL;
	requeuer_stop(f->requeuer);
	f->requeuer = NULL;
	status_writer_stop(f->writer);
	f->writer = NULL;
	kube_stop(f->kube);
	f->kube = NULL;
}

void informer_free(struct informer *f)
{
	if (!f)
		return;
	model_free(f->model);
	free(f->from);
	free(f);
}

bool informer_catch_up(struct informer *f, uint64_t ticket)
{
	if (!f || !f->kube)
		return false;
	kube_flush(f->kube, ticket);
	return true;
}

const char *informer_mode(const struct informer *f)
{
	return f ? f->mode : NULL;
}

bool informer_runs_programs(const struct informer *f)
{
	return f && f->runs_programs;
}

const char *informer_from(const struct informer *f)
{
	return f ? f->from : NULL;
}

bool informer_dirty(const struct informer *f)
{
	return f && model_generation(f->model) != f->seen;
}

struct cluster *informer_cluster(struct informer *f)
{
	if (!f || !f->model) /* it did not open */
		return NULL;
	f->seen = model_generation(f->model);
	return model_cluster(f->model);
}

const struct kube_pod *informer_pod(const struct informer *f, const char *namespace,
				    const char *name, const char *uid)
{
	const struct object *o = f ? model_find(f->model, OBJECT_POD, namespace, name) : NULL;

	return o && strcmp(o->uid, uid) == 0 ? (const struct kube_pod *)o : NULL;
}

bool informer_lists_pods(const struct informer *f)
{
	enum source_state state = f ? model_source_state(f->model, OBJECT_POD) : SOURCE_NONE;

	return state == SOURCE_SYNCED || state == SOURCE_STALE;
}

/* --- reviews of tokens, and the front proxy */

int token_reviews_follow_proxy(struct token_reviews *r, const char *kubeconfig, const char *context,
			       void (*changed)(void *ctx, struct front_proxy *p), void *ctx,
			       struct error *error)
{
	struct kube_config config = {0};
	int rc = kube_config_find(&config, kubeconfig, context, error);

	if (!rc)
		rc = front_proxy_watch_start(&r->proxy, &config, changed, ctx, error);
	kube_config_fini(&config);
	return rc ? -EINVAL : 0;
}

int token_reviews_open(struct token_reviews *r, const char *kubeconfig, const char *context,
		       const char *audience, struct error *error)
{
	struct kube_config config = {0};
	int rc = kube_config_find(&config, kubeconfig, context, error);

	if (!rc)
		rc = token_review_client_new(&r->tokens, &config, audience, error);
	kube_config_fini(&config);
	if (rc)
		return -EINVAL;
	r->access =
		(struct review_client){r->tokens, token_review_client_ask, TOKEN_REVIEWS_AT_ONCE};
	return 0;
}

void token_reviews_stop(struct token_reviews *r)
{
	front_proxy_watch_stop(r->proxy);
	r->proxy = NULL;
	token_review_client_stop(r->tokens);
}

void token_reviews_close(struct token_reviews *r)
{
	token_review_client_free(r->tokens);
	*r = (struct token_reviews){0};
}
