/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reservations are taken before the view (reservations.h), so that a pod that is bound
 * meanwhile is not missing in both. Nominated pods are those that wait for their victims to be
 * gone: they have no node, and what they ask for is spoken for. One with a reservation is in the
 * book already.
 */
#include "aggregator/api/quota_scene.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/place_pool.h"
#include "aggregator/state/victim_log.h"
#include "shared/clock.h"
#include "shared/mem.h"

/*
 * --- shared books
 *
 * A few slots under one lock, which is held for choosing a slot only. The book that was taken last
 * is taken first, as it has the least to catch up with. A book that finds no slot when it is given
 * back is freed.
 */

#define IDLE_NS (10 * NS_PER_SEC)

struct slot {
	struct quota_book *book; /* owned; NULL: none, or it is taken */
	int64_t given_ns; /* when whoever had it last took it */
};

struct quota_shelf {
	const struct quota_options *options; /* fixed after start; borrowed */
	pthread_mutex_t lock;
	/* under lock */
	struct slot slots[QUOTA_SHELF_MAX];
	int64_t newest_ns; /* when one was taken last */
};

struct quota_shelf *quota_shelf_new(const struct quota_options *o)
{
	struct quota_shelf *s = mem_zalloc(1, sizeof(*s));

	s->options = o;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void quota_shelf_free(struct quota_shelf *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++)
		quota_book_free(s->slots[i].book);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct quota_book *take_newest(struct quota_shelf *s, int64_t now_ns)
{
	struct slot *best = NULL;
	struct quota_book *b = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++)
		if (s->slots[i].book && (!best || s->slots[i].given_ns > best->given_ns))
			best = &s->slots[i];
	if (best) {
		b = best->book;
		best->book = NULL;
	}
	s->newest_ns = now_ns;
	pthread_mutex_unlock(&s->lock);
	return b;
}

/* Of the options only the variant is ever another than the shelf's. */
static bool is_for(const struct quota_shelf *s, const struct quota_options *o)
{
	return s && o->variant == s->options->variant;
}

/*
 * A book that is as quota_book_new() makes it, and the caller's alone until give_book(). Never
 * waits: where all are taken, or other options are asked for, or there is no shelf (NULL), one is
 * made. The copy may be NULL.
 */
static struct quota_book *take_book(struct quota_shelf *s, struct view *v,
				    struct reservations_copy *reservations,
				    const struct quota_options *o, int64_t now_ns)
{
	struct quota_book *b = is_for(s, o) ? take_newest(s, now_ns) : NULL;

	if (b && quota_book_update(b, v, reservations))
		return b;
	quota_book_free(b);
	return quota_book_new(v, reservations, o);
}

/* As it was taken: what was added to it is subtracted again. */
static void give_book(struct quota_shelf *s, struct quota_book *b)
{
	if (s && b && quota_book_variant(b) == s->options->variant) {
		pthread_mutex_lock(&s->lock);
		for (size_t i = 0; i < QUOTA_SHELF_MAX && b; i++) {
			if (s->slots[i].book)
				continue;
			s->slots[i] = (struct slot){b, s->newest_ns};
			b = NULL;
		}
		pthread_mutex_unlock(&s->lock);
	}
	quota_book_free(b);
}

void quota_shelf_tidy(struct quota_shelf *s, int64_t now_ns)
{
	struct quota_book *idle[QUOTA_SHELF_MAX] = {NULL};

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++) {
		if (now_ns - s->slots[i].given_ns <= IDLE_NS)
			continue;
		idle[i] = s->slots[i].book;
		s->slots[i].book = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++)
		quota_book_free(idle[i]);
}

/* --- reservations */

static bool is_same(const char *uid, const struct kube_pod *pod)
{
	return !*pod->object.uid || strcmp(uid, pod->object.uid) == 0;
}

/* The reservation that the book counts for the pod, or NULL. */
static const struct reservation *find_reserved(const struct quota_scene *s,
					       const struct kube_pod *pod)
{
	if (!s->reservations)
		return NULL;
	return reservations_copy_find(s->reservations, pod->object.namespace, pod->object.name,
				      pod->object.uid,
				      s->view->cluster ? s->view->cluster->generation : 0);
}

/* --- nominated pods */

static void find_nominated(struct quota_scene *s)
{
	const struct object_table *pending;
	size_t room = 0;

	if (!s->view->cluster)
		return;
	pending = s->view->cluster->tables[OBJECT_POD];
	for (size_t i = 0; i < pending->count; i++) {
		const struct kube_pod *p = (const struct kube_pod *)pending->of[i];

		if (!*p->nominated_node || !kube_pod_is_active(p) || p->deletion_ns ||
		    find_reserved(s, p))
			continue;
		if (s->nominated_count == room) {
			room = room ? 2 * room : 16;
			s->nominated = mem_realloc(s->nominated, room * sizeof(*s->nominated));
		}
		s->nominated[s->nominated_count++] = (struct quota_nominated){
			.uid = p->object.uid,
			.namespace = p->object.namespace,
			.priority = p->template->priority,
			.requests = kube_pod_requests(p),
		};
	}
}

/* --- the scene */

static bool read_variant(const char *name, enum quota_variant *out, struct api_response *rs)
{
	static const enum quota_variant variants[] = {QUOTA_CORRECTED, QUOTA_UPSTREAM};

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		if (strcmp(quota_variant_name(variants[i]), name) == 0) {
			*out = variants[i];
			return true;
		}
	api_fail(rs, FAIL_BAD_REQUEST, "variant",
		 "there is no variant \"%.64s\"; there are corrected, upstream", name);
	return false;
}

static void fill(struct quota_scene *s, struct reservations_copy *reservations, struct view *v)
{
	s->reservations = reservations;
	s->view = v;
	s->book = take_book(s->shelf, v, reservations, &s->options, s->now_ns);
	find_nominated(s);
}

static void set_options(struct quota_scene *s, const struct api_context *ctx)
{
	*s = (struct quota_scene){.shelf = ctx->books, .now_ns = ctx->now_ns()};
	if (ctx->quota)
		s->options = *ctx->quota;
	else
		quota_options_default(&s->options);
}

void quota_scene_of(struct quota_scene *s, const struct api_context *ctx,
		    struct reservations_copy *reservations, struct view *v)
{
	set_options(s, ctx);
	fill(s, reservations, view_hold(v));
}

bool quota_scene_open(struct quota_scene *s, const struct api_context *ctx, const char *variant,
		      struct api_response *rs)
{
	struct reservations_copy *reservations;

	set_options(s, ctx);
	if (variant && !read_variant(variant, &s->options.variant, rs))
		return false;
	reservations =
		ctx->reservations ? reservations_take(ctx->reservations, ctx->now_ns()) : NULL;
	s->owns_reservations = true;
	fill(s, reservations, view_slot_take(ctx->views));
	if (s->view->cluster || !rs)
		return true;
	quota_scene_close(s);
	return api_fail(
		rs, FAIL_NO_DATA, NULL,
		"nothing is known of quotas: there is no Kubernetes API and no snapshot to ask");
}

/*
 * The classes of priorities are those of the view that is answered from, or of one a moment older.
 */
static bool read_body(struct pod_body *body, const struct api_context *ctx,
		      const struct api_request *rq, const struct api_field *members,
		      struct api_response *rs)
{
	struct view *v = view_slot_take(ctx->views);
	bool ok = pod_body_read(rq, members, v->cluster, body, rs);

	view_drop(v);
	return ok;
}

bool quota_scene_read(struct quota_scene *s, struct pod_body *body, const struct api_context *ctx,
		      const struct api_request *rq, const struct api_field *members,
		      struct api_response *rs)
{
	const char *variant;

	if (!read_body(body, ctx, rq, members, rs))
		return false;
	if (pod_body_string(body, "variant", &variant, rs) && quota_scene_open(s, ctx, variant, rs))
		return true;
	pod_body_fini(body);
	return false;
}

void quota_scene_close(struct quota_scene *s)
{
	give_book(s->shelf, s->book);
	view_drop(s->view);
	if (s->owns_reservations)
		reservations_copy_drop(s->reservations);
	free(s->nominated);
	*s = (struct quota_scene){0};
}

void quota_scene_gap(const struct quota_scene *s, struct error *error)
{
	const struct model_source *source;

	error_set(error, "%s", "");
	source = &s->view->cluster->sources[OBJECT_ELASTIC_QUOTA];
	if (!view_knows(s->view, OBJECT_ELASTIC_QUOTA))
		error_set(error, "the cluster's elasticquotas are not known: %s%s%.250s",
			  source_state_name(source->state), *source->message ? ": " : "",
			  source->message);
}

void quota_scene_write_head(const struct quota_scene *s, struct jsonw *w, const char *key)
{
	struct error gap;

	jsonw_key_string(w, "variant", quota_variant_name(s->options.variant));
	quota_scene_gap(s, &gap);
	if (gap.text[0])
		jsonw_key_string(w, key, gap.text);
}

bool quota_scene_knows_pods(const struct quota_scene *s, struct api_response *rs)
{
	struct error error;

	if (place_pool_can_answer(s->view, &error))
		return true;
	return api_fail(rs, FAIL_NO_DATA, NULL, "%s", error.text);
}

const struct kube_pod *quota_scene_find_bound(const struct quota_scene *s,
					      const struct kube_pod *pod)
{
	for (size_t i = 0; i < s->view->node_count; i++) {
		const struct view_pod *found =
			view_node_find_pod(s->view->nodes[i], pod->object.namespace,
					   pod->object.name);

		if (found && found->pod && is_same(found->pod->object.uid, pod))
			return found->pod;
	}
	return NULL;
}

struct quota_ask quota_scene_ask(const struct quota_scene *s, const struct kube_pod *pod,
				 const struct kube_pod *bound)
{
	const struct reservation *reserved = find_reserved(s, pod);
	const struct resources *counted = reserved ? &reserved->requests : NULL;

	if (!reserved && bound && kube_pod_is_active(bound))
		counted = kube_pod_requests(bound);
	return (struct quota_ask){
		.uid = pod->object.uid,
		.namespace = pod->object.namespace,
		.priority = pod->template->priority,
		.requests = kube_pod_requests(pod),
		.reserved = counted,
		.promised = *pod->nominated_node != '\0',
		.nominated = s->nominated,
		.nominated_count = s->nominated_count,
	};
}

size_t quota_scene_index(const struct quota_scene *s, const char *namespace)
{
	size_t low = 0, count = quota_book_count(s->book), high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(quota_book_at(s->book, middle)->namespace, namespace) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && strcmp(quota_book_at(s->book, low)->namespace, namespace) == 0)
		return low;
	return count;
}

/* --- a search for victims */

/* The longest window of evictions that a quota may have (quota_annotations.h). */
#define PAST_NS (30 * 86400 * 1000000000LL)

static void read_log(struct quota_search *q)
{
	struct victim_log *l = q->ctx->victims;
	const char *uid = q->ask.pod->object.uid;

	if (!l)
		return;
	q->version = victim_log_version(l);
	q->ask.in_flight_count =
		victim_log_told(l, *uid ? uid : NULL, q->ask.now_ns - VICTIM_LOG_FLIGHT_NS,
				q->ask.now_ns, &q->in_flight);
	q->ask.in_flight = q->in_flight;
	q->ask.exchanged_count =
		victim_log_told(l, *uid ? uid : NULL, 0, q->ask.now_ns, &q->exchanged);
	q->ask.exchanged = q->exchanged;
	q->ask.past_count = victim_log_past(l, q->ask.now_ns - PAST_NS, &q->told);
	q->past = mem_alloc((q->ask.past_count + 1) * sizeof(*q->past));
	for (size_t i = 0; i < q->ask.past_count; i++)
		q->past[i] = (struct preempt_past){q->told[i].namespace, q->told[i].at_ns};
	q->ask.past = q->past;
}

void quota_search_open(struct quota_search *q, const struct api_context *ctx,
		       struct place_pool *pool, const struct quota_scene *s,
		       const struct kube_pod *pod, bool never)
{
	*q = (struct quota_search){.ctx = ctx, .pool = pool};
	if (ctx->preempt)
		q->options = *ctx->preempt;
	else
		preempt_options_default(&q->options);
	q->options.variant = s->options.variant;
	q->options.critical_priority = s->options.critical_priority;
	q->ask = (struct preempt_ask){.pod = pod,
				      .never = never,
				      .reserved = quota_scene_ask(s, pod, NULL).reserved,
				      .reservations = s->reservations,
				      .now_ns = ctx->now_ns()};
	read_log(q);
	q->place = place_pool_take(pool, s->view, q->ask.now_ns);
	q->unseen =
		reserved_pods_put(q->place, s->view, s->reservations, pod->object.uid, &q->mark);
	q->index = preempt_of(s->view);
}

void quota_search_close(struct quota_search *q)
{
	place_revert(q->place, q->mark);
	place_pool_give(q->pool, q->place);
	free(q->past);
	free(q->told);
	free((void *)q->in_flight);
	free((void *)q->exchanged);
}
