/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kube-scheduler retries a pod that an extender refused when something in the cluster changes, or
 * after five minutes: not because a quota was raised, use fell or an agent reports. So refused pods
 * are remembered with the nodes that refused them, and decided about again by the code of filter,
 * without effect.
 *
 *     refused --> waiting --review: passes--> nudge, again in 2, 4, 8 .. 300 s --> asked: passed
 *                    ^                                                              |
 *                    +------------------- refused: 2 s again ----------------------+
 *
 * One nudge makes the scheduler retry all pods. So a review ends with the first pod that passes,
 * and one pod stands for all pods of its owner with the same requests. A review takes at most
 * REVIEW_NS of CPU time, and the next one goes on where it ended.
 *
 * A vain search for victims may succeed later. The review repeats it, first for pods that a minimum
 * runtime or a window of evictions held up until now, then for the pod with the oldest search. A
 * search costs more than filter: after searches of 1 ms of CPU time the next review that searches
 * begins SEARCH_REST ms later. Only pods that filter refused are searched for: a scheduler ignores
 * the nudge for others.
 *
 * Pods that were refused before the start are unknown, so reviews with a complete cluster ask for a
 * nudge until one is sent.
 *
 * A pending pod within the min of its quota is told which pods could give way, whether filter was
 * asked about it or not: a scheduler skips the extender if its own filters refuse.
 *
 * Without nudges, pods are only told about and forgotten. A pod is gone when the API's pending pods
 * lack it, unless it is younger than YOUNG_NS. Without an API, or while the watch of pods is broken
 * and they lack it, a pod is forgotten FORGET_NS after its last refusal.
 */
#include "aggregator/api/waiting_pods.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/quota_session.h"
#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/log.h"
#include "shared/mem.h"

#define REVIEW_NS     (20 * NS_PER_MS)
#define RECLAIM_NS    (2 * NS_PER_SEC)
#define AGAIN_NS      (2 * NS_PER_SEC)
#define AGAIN_MOST_NS (300 * NS_PER_SEC)
#define YOUNG_NS      (5 * NS_PER_SEC)
#define FORGET_NS     (900 * NS_PER_SEC)
#define TELL_NS	      (300 * NS_PER_SEC)
#define LOG_NS	      (10 * NS_PER_SEC)
#define LINGER_NS     (4 * NS_PER_SEC) /* a twentieth of a scheduler's time, at 200 ms each */

enum {
	REVIEW_MOST = 256,
	SEARCH_REST = 10,
	EVENTS_MAX = 64,
	LINGER_BURST = 10,
	RECLAIMS_TOLD = TELL_NS / RECLAIM_NS, /* there are no more in that time */
};

/* Times are the context's. */
struct waiting_pod {
	struct kube_pod *pod; /* held */
	struct extender_nodes *nodes; /* owned, as is */
	struct extender_nodes *sought; /* NULL: nobody asked for victims */
	int64_t refused_ns; /* the last time */
	int64_t again_ns, wait_ns; /* no nudge before; after the next one so much later */
	int64_t searched_ns; /* the last vain search */
	int64_t retry_ns; /* a time that held victims back ends; 0: none did */
	int64_t told_ns[EXTENDER_REFUSALS]; /* 0: not yet */
	UT_hash_handle hh;
};

/* A pod for which a reclaim was searched. */
struct reclaim_told {
	struct kube_pod *pod; /* held; NULL: none yet */
	int64_t at_ns;
	bool vain; /* no pod could give way */
};

struct waiting_pods {
	/* fixed after start */
	struct requeue_counters *counters;
	struct event_counters *event_counters; /* NULL: no events are wanted */

	pthread_mutex_t lock;
	/* under lock */
	struct waiting_pod *by_uid; /* a hash in the order of review; owned */
	struct waiting_event events[EVENTS_MAX]; /* a ring */
	size_t event_first, event_count;
	int64_t logged_ns;
	uint64_t unlogged;
	int64_t lingered_ns; /* until when answers to preempt have lingered beforehand */

	/* the reviewing thread */
	int64_t searched_ns, rest_ns; /* the last searches, and the pause after them */
	int64_t reclaimed_ns;
	struct reclaim_told told[RECLAIMS_TOLD]; /* a ring */
	size_t told_next;
	char *nudged_uid; /* owned; of the pod that the last review put off; NULL: none */
};

/* --- the table: under lock -------------------------------------------------------------------- */

static struct waiting_pod *find(const struct waiting_pods *w, const char *uid)
{
	struct waiting_pod *e;

	HASH_FIND_STR(w->by_uid, uid, e);
	return e;
}

static void count(const struct waiting_pods *w)
{
	counter_set(&w->counters->waiting, HASH_COUNT(w->by_uid));
}

static void append(struct waiting_pods *w, struct waiting_pod *e)
{
	const char *uid = e->pod->object.uid;

	HASH_ADD_KEYPTR(hh, w->by_uid, uid, strlen(uid), e);
}

static struct waiting_pod *add(struct waiting_pods *w, struct kube_pod *pod)
{
	struct waiting_pod *e = mem_zalloc(1, sizeof(*e));

	object_hold(&pod->object);
	e->pod = pod;
	append(w, e);
	count(w);
	return e;
}

static void drop(struct waiting_pods *w, struct waiting_pod *e)
{
	/* NOLINTNEXTLINE(clang-analyzer-*): uthash keeps the list, and it is in the hash */
	HASH_DEL(w->by_uid, e);
	count(w);
	object_drop(&e->pod->object);
	free(e->nodes);
	free(e->sought);
	free(e);
}

struct waiting_pods *waiting_pods_new(struct requeue_counters *counters,
				      struct event_counters *events)
{
	struct waiting_pods *w = mem_zalloc(1, sizeof(*w));

	w->counters = counters;
	w->event_counters = events;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

void waiting_pods_free(struct waiting_pods *w)
{
	struct waiting_event event;

	if (!w)
		return;
	while (waiting_pods_take_event(w, &event))
		object_drop(&event.pod->object);
	while (w->by_uid)
		drop(w, w->by_uid); /* NOLINT(clang-analyzer-*): see drop() */
	for (size_t i = 0; i < RECLAIMS_TOLD; i++)
		if (w->told[i].pod)
			object_drop(&w->told[i].pod->object);
	free(w->nudged_uid);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* --- events and the log: under lock ----------------------------------------------------------- */

/* True as well after the clock was set back. */
static bool is_past(int64_t since_ns, int64_t wait_ns, int64_t now_ns)
{
	return now_ns < since_ns || now_ns - since_ns >= wait_ns;
}

/* A full ring leaves the event out: the log and the condition of the pod have the reason, too. */
static void queue_event(struct waiting_pods *w, struct kube_pod *pod, const char *detail)
{
	struct waiting_event *event = &w->events[(w->event_first + w->event_count) % EVENTS_MAX];

	if (w->event_counters && w->event_count == EVENTS_MAX)
		counter_add(&w->event_counters->limited, 1);
	if (!w->event_counters || w->event_count == EVENTS_MAX)
		return;
	object_hold(&pod->object);
	event->pod = pod;
	snprintf(event->message, sizeof(event->message), "%s", detail);
	w->event_count++;
}

/* True: the caller logs it, and how many others were not, without the lock. */
static bool tell(struct waiting_pods *w, struct waiting_pod *e, enum extender_refusal why,
		 const char *detail, int64_t now_ns, uint64_t *unlogged)
{
	if (e->told_ns[why] && !is_past(e->told_ns[why], TELL_NS, now_ns))
		return false;
	e->told_ns[why] = now_ns;
	queue_event(w, e->pod, detail);
	if (!is_past(w->logged_ns, LOG_NS, now_ns)) {
		w->unlogged++;
		return false;
	}
	*unlogged = w->unlogged;
	w->logged_ns = now_ns;
	w->unlogged = 0;
	return true;
}

bool waiting_pods_take_event(struct waiting_pods *w, struct waiting_event *event)
{
	bool taken = false;

	if (!w)
		return false;
	pthread_mutex_lock(&w->lock);
	if (w->event_count) {
		*event = w->events[w->event_first];
		w->event_first = (w->event_first + 1) % EVENTS_MAX;
		w->event_count--;
		taken = true;
	}
	pthread_mutex_unlock(&w->lock);
	return taken;
}

/* --- requests of schedulers ------------------------------------------------------------------- */

void waiting_pods_refused(struct waiting_pods *w, const struct extender_call *c,
			  enum extender_refusal why, const char *detail)
{
	struct extender_nodes *nodes;
	struct waiting_pod *e;
	uint64_t unlogged;
	bool logs;

	if (!w)
		return;
	nodes = extender_call_nodes(c);
	pthread_mutex_lock(&w->lock);
	e = find(w, c->pod->object.uid);
	if (!e && HASH_COUNT(w->by_uid) == WAITING_PODS_MAX)
		drop(w, w->by_uid);
	if (!e)
		e = add(w, c->pod);
	free(e->nodes);
	e->nodes = nodes;
	e->refused_ns = c->now_ns;
	e->wait_ns = AGAIN_NS;
	if (e->again_ns > c->now_ns + AGAIN_NS)
		e->again_ns = c->now_ns + AGAIN_NS;
	logs = tell(w, e, why, detail, c->now_ns, &unlogged);
	pthread_mutex_unlock(&w->lock);
	if (logs)
		log_info("pod %s/%s waits: %s (%llu other pods not logged)",
			 c->pod->object.namespace, c->pod->object.name, detail,
			 (unsigned long long)unlogged);
}

void waiting_pods_passed(struct waiting_pods *w, const char *uid)
{
	struct waiting_pod *e;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	e = find(w, uid);
	if (e)
		drop(w, e);
	pthread_mutex_unlock(&w->lock);
}

void waiting_pods_sought(struct waiting_pods *w, const char *uid, struct extender_nodes *nodes,
			 int64_t retry_ns, int64_t now_ns)
{
	struct waiting_pod *e;

	if (w) {
		pthread_mutex_lock(&w->lock);
		e = find(w, uid);
		if (e) {
			free(e->sought);
			e->sought = nodes;
			e->searched_ns = now_ns;
			e->retry_ns = retry_ns;
			nodes = NULL;
		}
		pthread_mutex_unlock(&w->lock);
	}
	free(nodes);
}

bool waiting_pods_may_linger(struct waiting_pods *w, int64_t now_ns)
{
	bool may;

	if (!w)
		return false;
	pthread_mutex_lock(&w->lock);
	/* Farther ahead than it gets: the clock was set back. */
	if (w->lingered_ns < now_ns || w->lingered_ns - now_ns > (LINGER_BURST + 1) * LINGER_NS)
		w->lingered_ns = now_ns;
	may = w->lingered_ns - now_ns < LINGER_BURST * LINGER_NS;
	if (may)
		w->lingered_ns += LINGER_NS;
	pthread_mutex_unlock(&w->lock);
	return may;
}

/* --- the review ------------------------------------------------------------------------------- */

/* A copy of an entry, to be decided about without the lock. */
struct question {
	struct kube_pod *pod; /* held */
	struct extender_nodes *nodes, *sought; /* owned; sought may be NULL */
	int64_t refused_ns;
};

struct review {
	const struct api_context *ctx;
	const struct waiting_pods *pods;
	struct view *view; /* held */
	int64_t now_ns;
	size_t refused_count;
	struct kube_pod *refused[REVIEW_MOST]; /* held; in this review */
};

static struct extender_nodes *copy_nodes(const struct extender_nodes *n)
{
	size_t size = sizeof(*n) + (n ? n->count : 0) * sizeof(bool);

	return n ? memcpy(mem_alloc(size), n, size) : NULL;
}

static bool stands_for(const struct review *r, const struct kube_pod *pod)
{
	for (size_t i = 0; i < r->refused_count; i++)
		if (kube_pods_are_alike(r->refused[i], pod))
			return true;
	return false;
}

/* A clock may be set back. */
static bool is_due(const struct waiting_pod *e, int64_t now_ns)
{
	return e->again_ns <= now_ns || e->again_ns > now_ns + AGAIN_MOST_NS;
}

static void ask_about(const struct waiting_pod *e, struct question *q)
{
	object_hold(&e->pod->object);
	*q = (struct question){e->pod, copy_nodes(e->nodes), copy_nodes(e->sought), e->refused_ns};
}

static void question_fini(struct question *q)
{
	object_drop(&q->pod->object);
	free(q->nodes);
	free(q->sought);
}

/* The next of the queue. False: it is not due, or another stands for it. */
static bool take_next(struct waiting_pods *w, const struct review *r, struct question *q)
{
	struct waiting_pod *e;
	bool due;

	pthread_mutex_lock(&w->lock);
	e = w->by_uid;
	due = e != NULL;
	if (e) {
		HASH_DEL(w->by_uid, e);
		append(w, e);
		due = is_due(e, r->now_ns) && !stands_for(r, e->pod);
	}
	if (due)
		ask_about(e, q);
	pthread_mutex_unlock(&w->lock);
	return due;
}

static bool is_gone(const struct review *r, const struct question *q)
{
	const struct cluster *c = r->view->cluster;
	enum source_state state = c ? c->sources[OBJECT_POD].state : SOURCE_NONE;
	bool lists_all = state == SOURCE_SYNCED || state == SOURCE_SNAPSHOT;
	const struct object *o = NULL;

	if (view_knows(r->view, OBJECT_POD))
		o = cluster_find(c, OBJECT_POD, q->pod->object.namespace, q->pod->object.name);
	if (o && strcmp(o->uid, q->pod->object.uid) == 0)
		return ((const struct kube_pod *)o)->deletion_ns != 0;
	return is_past(q->refused_ns, lists_all ? YOUNG_NS : FORGET_NS, r->now_ns);
}

static void put_off(struct waiting_pods *w, const char *uid, int64_t now_ns)
{
	struct waiting_pod *e;

	w->nudged_uid = mem_strdup(uid);
	pthread_mutex_lock(&w->lock);
	e = find(w, uid);
	if (e) {
		e->again_ns = now_ns + e->wait_ns;
		e->wait_ns = e->wait_ns < AGAIN_MOST_NS / 2 ? 2 * e->wait_ns : AGAIN_MOST_NS;
	}
	pthread_mutex_unlock(&w->lock);
}

void waiting_pods_not_sent(struct waiting_pods *w)
{
	struct waiting_pod *e;

	if (!w || !w->nudged_uid)
		return;
	pthread_mutex_lock(&w->lock);
	e = find(w, w->nudged_uid);
	if (e) {
		e->again_ns = 0;
		e->wait_ns = AGAIN_NS;
	}
	pthread_mutex_unlock(&w->lock);
}

/* A pod with a vain search stands for all pods like it. */
static bool is_told(const void *who, const struct kube_pod *pod)
{
	const struct review *r = who;

	for (size_t i = 0; i < RECLAIMS_TOLD && r->pods->told[i].pod; i++) {
		const struct reclaim_told *t = &r->pods->told[i];

		if (!is_past(t->at_ns, TELL_NS, r->now_ns) &&
		    (strcmp(t->pod->object.uid, pod->object.uid) == 0 ||
		     (t->vain && kube_pods_are_alike(t->pod, pod))))
			return true;
	}
	return false;
}

/* Tells which pods could give way, as the scheduler does not ask its extender for that. */
static void tell_reclaim(struct waiting_pods *w, const struct review *r)
{
	struct reclaim_told *t = &w->told[w->told_next];
	struct buf text = BUF_INIT;
	struct kube_pod *pod;

	if (!is_past(w->reclaimed_ns, RECLAIM_NS, r->now_ns))
		return;
	w->reclaimed_ns = r->now_ns;
	pod = quota_reclaim_next(r->ctx, is_told, r, &text);
	if (!pod)
		return;
	if (t->pod)
		object_drop(&t->pod->object);
	*t = (struct reclaim_told){pod, r->now_ns, text.len == 0};
	w->told_next = (w->told_next + 1) % RECLAIMS_TOLD;
	if (text.len) {
		pthread_mutex_lock(&w->lock);
		queue_event(w, pod, text.data);
		pthread_mutex_unlock(&w->lock);
		log_info("pod %s/%s waits: %s", pod->object.namespace, pod->object.name, text.data);
	}
	buf_fini(&text);
}

/* True: the pod passes now. */
static bool review_one(struct waiting_pods *w, struct review *r, struct question *q)
{
	if (is_gone(r, q)) {
		waiting_pods_passed(w, q->pod->object.uid);
		return false;
	}
	if (!counter_get(&w->counters->enabled))
		return false;
	if (extender_filter_rehearse(r->ctx, q->pod, q->nodes)) {
		put_off(w, q->pod->object.uid, r->now_ns);
		return true;
	}
	object_hold(&q->pod->object);
	r->refused[r->refused_count++] = q->pod;
	return false;
}

static bool comes_first(const struct waiting_pod *a, const struct waiting_pod *b, int64_t now_ns)
{
	bool a_ends = a->retry_ns && a->retry_ns <= now_ns;
	bool b_ends = b->retry_ns && b->retry_ns <= now_ns;

	return a_ends != b_ends ? a_ends : a->searched_ns < b->searched_ns;
}

/* False: this review has searched for all of them. */
static bool take_search(struct waiting_pods *w, const struct review *r, struct question *q)
{
	struct waiting_pod *e, *first = NULL;

	pthread_mutex_lock(&w->lock);
	for (e = w->by_uid; e; e = e->hh.next)
		if (e->sought && e->searched_ns != r->now_ns && is_due(e, r->now_ns) &&
		    (!first || comes_first(e, first, r->now_ns)))
			first = e;
	if (first)
		ask_about(first, q);
	pthread_mutex_unlock(&w->lock);
	return first != NULL;
}

static bool search_one(struct waiting_pods *w, const struct review *r, const struct question *q)
{
	int64_t retry_ns;
	struct waiting_pod *e;

	if (is_gone(r, q)) {
		waiting_pods_passed(w, q->pod->object.uid);
		return false;
	}
	if (extender_preempt_rehearse(r->ctx, q->pod, q->sought, &retry_ns)) {
		put_off(w, q->pod->object.uid, r->now_ns);
		return true;
	}
	/* A vain search counts for all pods like this one. */
	pthread_mutex_lock(&w->lock);
	for (e = w->by_uid; e; e = e->hh.next)
		if (e->pod == q->pod || kube_pods_are_alike(e->pod, q->pod)) {
			e->searched_ns = r->now_ns;
			e->retry_ns = retry_ns;
		}
	pthread_mutex_unlock(&w->lock);
	return false;
}

/* True: a pod would find victims now. One search is made even if the review's time is over. */
static bool search(struct waiting_pods *w, const struct review *r, int64_t end_ns)
{
	int64_t began_ns = clock_thread_cpu_ns();
	bool found = false;
	struct question q;

	if (!counter_get(&w->counters->enabled) || !is_past(w->searched_ns, w->rest_ns, r->now_ns))
		return false;
	do {
		if (!take_search(w, r, &q))
			break;
		found = search_one(w, r, &q);
		question_fini(&q);
	} while (!found && clock_thread_cpu_ns() < end_ns);
	w->searched_ns = r->now_ns;
	w->rest_ns = (clock_thread_cpu_ns() - began_ns) * SEARCH_REST;
	return found;
}

bool waiting_pods_review(struct waiting_pods *w, const struct api_context *ctx)
{
	struct review r = {.ctx = ctx, .pods = w, .now_ns = ctx->now_ns()};
	int64_t end_ns;
	bool passes = false;
	size_t left;

	if (!w)
		return false;
	free(w->nudged_uid);
	w->nudged_uid = NULL;
	tell_reclaim(w, &r);
	left = counter_get(&w->counters->waiting);
	end_ns = clock_thread_cpu_ns() + REVIEW_NS;
	r.view = view_slot_take(ctx->views);
	for (bool late = false; left && !passes && !late && r.refused_count < REVIEW_MOST; left--) {
		struct question q;

		if (!take_next(w, &r, &q))
			continue;
		passes = review_one(w, &r, &q);
		question_fini(&q);
		late = clock_thread_cpu_ns() >= end_ns;
	}
	/* No nudge was sent since the start. */
	passes = passes ||
		 (counter_get(&w->counters->enabled) && !counter_get(&w->counters->sent) &&
		  extender_knows_cluster(r.view, NULL)) ||
		 search(w, &r, end_ns);
	for (size_t i = 0; i < r.refused_count; i++)
		object_drop(&r.refused[i]->object);
	view_drop(r.view);
	return passes;
}
