/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The age of a view. Measurements change slowly: a second of frames is one view. A scheduler acts on
 * the API's events within milliseconds, so a change of the model is published within 100 ms, or
 * later if publications would take more than a twentieth of the loop's time. So there are at most
 * ten publications a second, and at least one.
 *
 * A publication of a thousand changed nodes takes 25 ms, while agents wait for acks. So it is done in
 * slices, one per turn of the loop, with frames, timers and events in between:
 *
 *     at rest --due--> building --> joining --> the view is in its slot --> at rest
 *                      stats that    stats gathered, cluster taken:
 *                      wait          later changes are in the next view
 *
 * Most stats are built before that, as frames come in, when no other frame waits. None are
 * built while stats are joined: these are borrowed. If frames leave no turn idle, a slice takes half
 * as long as all else since the last one, and so a publication a third of the time.
 *
 * A scheduler that is about to be refused waits for a view of all that is known
 * (view_slot_refresh()): changes are published at once; without changes the last view is the
 * answer. Such publications take at most a third of the loop's time, however many wait.
 *
 * Without changes a view is published every 5 to 15 s, so that silent nodes age and are forgotten.
 */
#include "aggregator/engine_publisher.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define FRAMES_NS NS_PER_SEC
#define EVENTS_NS (100 * NS_PER_MS)
#define SLICE_NS  NS_PER_MS
#define BREATH_MS 10000

enum {
	WANTED_SHARE = 2, /* the same where a reader waits */
	/* at the API's pace publications take at most one part in so many of the loop's time */
	SHARE = 20,
	STEP_STATS = 4, /* between two looks at the clock */
	STEP_NODES = 16,
};

enum stage { AT_REST, BUILDING, JOINING };

struct publisher {
	/* fixed after start */
	struct publisher_config config;

	/* loop thread */
	uv_timer_t due; /* begins a publication */
	uv_timer_t breath; /* begins one when nothing arrives */
	uv_async_t want; /* a reader waits */
	uv_idle_t work; /* a slice per turn while one is under way */
	enum stage stage;
	size_t to_build; /* stats that waited when it began: later ones are the next view's */
	int64_t now_ns; /* Unix time of the view under way */
	uint64_t generation; /* of its cluster; 0: none */
	int64_t worked_ns, slice_end_ns; /* on it so far; monotonic end of its last slice */
	int64_t published_ns; /* monotonic; the last */
	int64_t publishing_ns; /* what it took */
	int64_t due_ns; /* monotonic; while the timer runs */
	uint64_t serves; /* the newest ticket that the publication under way answers */
	int64_t wish_ns; /* the shortest of publish_soon() during a publication, or FRAMES_NS */

	/* any thread */
	atomic_ullong wanted; /* the newest ticket of readers that wait */
};

/* --- stages ----------------------------------------------------------------------------------- */

static void gather(struct publisher *p)
{
	struct publisher_config *c = &p->config;
	struct cluster *cluster = informer_cluster(*c->informer);
	struct node_stats *const *node_stats;
	size_t count;

	p->now_ns = clock_wall_ns();
	p->generation = cluster ? cluster->generation : 0;
	node_stats = usage_gather_stats(c->usage, p->now_ns, &count);
	recorder_gathered(c->recorder);
	join_begin(c->join, node_stats, count, cluster, p->now_ns);
	p->stage = JOINING;
}

static size_t build_stats(struct publisher *p, size_t most)
{
	size_t built = usage_build_stats(p->config.usage, most);

	recorder_built(p->config.recorder, built);
	return built;
}

/* A few nodes' stats; those of frames that came since it began are the next view's. */
static void build(struct publisher *p)
{
	size_t most = p->to_build < STEP_STATS ? p->to_build : STEP_STATS;
	size_t built = build_stats(p, most);

	p->to_build -= built;
	if (built < STEP_STATS)
		gather(p);
}

static void finish(struct publisher *p)
{
	struct publisher_config *c = &p->config;
	struct view *v = join_end(c->join);

	recorder_published(c->recorder, v, clock_wall_ns());
	view_slot_publish(c->views, v);
	reservations_settle(c->reservations, p->generation, p->now_ns);
	view_slot_answer(c->views, p->serves);
	counter_add(&c->counters->views_published, 1);
	c->published(c->ctx, p->now_ns);
	p->stage = AT_REST;
	uv_idle_stop(&p->work);
}

static void step(struct publisher *p)
{
	if (p->stage == BUILDING)
		build(p);
	else if (!join_step(p->config.join, STEP_NODES))
		finish(p);
}

/* At least one step, and steps for that long. */
static void work_for(struct publisher *p, int64_t ns)
{
	int64_t began_ns = clock_mono_ns();

	do {
		step(p);
		p->slice_end_ns = clock_mono_ns();
	} while (p->stage != AT_REST && p->slice_end_ns - began_ns < ns);
	p->worked_ns += p->slice_end_ns - began_ns;
	if (p->stage != AT_REST)
		return;
	p->published_ns = p->slice_end_ns;
	p->publishing_ns = p->worked_ns;
}

static void begin(struct publisher *p, size_t to_build)
{
	uv_timer_stop(&p->due);
	p->stage = BUILDING;
	p->to_build = to_build;
	p->serves = atomic_load(&p->wanted);
	p->worked_ns = 0;
	p->wish_ns = FRAMES_NS;
	p->slice_end_ns = clock_mono_ns();
}

/* --- when ------------------------------------------------------------------------------------- */

static void on_work(uv_idle_t *work);

static void start(struct publisher *p)
{
	begin(p, usage_stale(p->config.usage));
	uv_idle_start(&p->work, on_work);
}

static void on_due(uv_timer_t *timer)
{
	start(timer->data);
}

static bool is_dirty(const struct publisher *p)
{
	return usage_dirty(p->config.usage) || informer_dirty(*p->config.informer);
}

/* At rest: at once when the last view is that old, else as soon as it will be. */
static void publish_after(struct publisher *p, int64_t after_ns)
{
	int64_t now_ns = clock_mono_ns();

	after_ns = p->published_ns + (after_ns < FRAMES_NS ? after_ns : FRAMES_NS);
	if (uv_is_active((uv_handle_t *)&p->due) && p->due_ns <= after_ns)
		return;
	p->due_ns = after_ns;
	if (now_ns >= p->due_ns)
		start(p);
	else
		uv_timer_start(&p->due, on_due, (uint64_t)((p->due_ns - now_ns) / NS_PER_MS) + 1,
			       0);
}

/* The sooner of two wishes counts. */
static void publish_soon(struct publisher *p, int64_t after_ns)
{
	if (p->stage != AT_REST) {
		if (after_ns < p->wish_ns)
			p->wish_ns = after_ns;
		return;
	}
	if (!is_dirty(p))
		return;
	if (after_ns < SHARE * p->publishing_ns)
		after_ns = SHARE * p->publishing_ns;
	publish_after(p, after_ns);
}

/* For readers that wait; while a publication is under way its end comes back here. */
static void serve(struct publisher *p)
{
	uint64_t wanted = atomic_load(&p->wanted);

	if (p->stage != AT_REST || wanted == p->serves)
		return;
	if (is_dirty(p)) {
		publish_after(p, WANTED_SHARE * p->publishing_ns);
		return;
	}
	p->serves = wanted;
	view_slot_answer(p->config.views, wanted);
}

static void on_want(uv_async_t *want)
{
	serve(want->data);
}

static void on_work(uv_idle_t *work)
{
	struct publisher *p = work->data;
	int64_t others_ns = clock_mono_ns() - p->slice_end_ns;

	work_for(p, others_ns / 2 > SLICE_NS ? others_ns / 2 : SLICE_NS);
	/* Changes during the publication may be the last for long. */
	publish_soon(p, p->wish_ns);
	serve(p);
}

static void on_breath(uv_timer_t *timer)
{
	struct publisher *p = timer->data;

	if (p->stage == AT_REST && clock_mono_ns() - p->published_ns >= BREATH_MS / 2 * NS_PER_MS)
		start(p);
	reservations_settle(p->config.reservations, 0, clock_wall_ns());
}

void publisher_publish(struct publisher *p)
{
	while (p->stage != AT_REST)
		step(p);
	begin(p, SIZE_MAX);
	work_for(p, INT64_MAX);
}

void publisher_note_frames(struct publisher *p, size_t frames, bool idle)
{
	if (idle && p->stage != JOINING)
		build_stats(p, frames);
	publish_soon(p, FRAMES_NS);
}

void publisher_note_events(struct publisher *p)
{
	publish_soon(p, EVENTS_NS);
}

void publisher_want(struct publisher *p, uint64_t ticket)
{
	unsigned long long wanted = atomic_load(&p->wanted);

	while (wanted < ticket && !atomic_compare_exchange_weak(&p->wanted, &wanted, ticket))
		;
	uv_async_send(&p->want);
}

int publisher_open(struct publisher **out, const struct publisher_config *config)
{
	struct publisher *p = mem_zalloc(1, sizeof(*p));
	int rc;

	*out = p;
	p->config = *config;
	p->published_ns = -FRAMES_NS;
	p->due.data = p->breath.data = p->work.data = p->want.data = p;
	rc = uv_idle_init(config->loop, &p->work);
	if (!rc)
		rc = uv_async_init(config->loop, &p->want, on_want);
	if (!rc)
		rc = uv_timer_init(config->loop, &p->due);
	if (!rc)
		rc = uv_timer_init(config->loop, &p->breath);
	return rc ? rc : uv_timer_start(&p->breath, on_breath, BREATH_MS, BREATH_MS);
}

void publisher_free(struct publisher *p)
{
	free(p);
}
