/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	views --> newest --> plan_core_step() --> plans --> HTTP threads, metrics, the saver
 *	            ^                                |
 *	            +----------- period_ns ----------+
 *
 * The loop never waits for this thread. Without known nodes and pods there is no plan; the thread
 * looks for them every LOOK_NS. The period is --plan-interval, or longer so that planning takes at
 * most a CPU_SHARE-th of a CPU: half a second of a CPU for 5000 nodes is a plan each 20 s. A step
 * that takes longer than --plan-interval is counted, and the next waits for a whole period. The
 * thread is nicer than the others, and holds a lock only to copy a pointer.
 *
 * The first plan also waits for the other kinds of objects, and for agents that catch up after a
 * restart: without them it would drop timers and classes that were saved. A kind that cannot be
 * listed, and an agent that is gone, delay it by FIRST_NS at most.
 *
 * A stop ends the placement core while it reads the cluster, slack, and drains (out_of_time()). The
 * first two then make no plan; a drain plan that was cut short is published.
 */
#include "aggregator/engine_planner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aggregator/engine_recorder.h"
#include "aggregator/planner/place_cache.h"
#include "aggregator/planner/plan_peer.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define LOOK_NS	 (NS_PER_SEC / 4) /* between looks for a first view that can be planned for */
#define FIRST_NS (60 * NS_PER_SEC) /* for the rest, after nodes and pods are known */

enum { PLANNER_NICE = 10, CPU_SHARE = 40 };

struct planner {
	/* fixed after start */
	struct planner_config config;
	struct recorder *recorder; /* borrowed; NULL: none */
	struct helper thread;

	/* planner thread, and before start who starts it */
	struct plan_core *core;
	bool planned; /* once */
	int64_t known_ns; /* when it first saw nodes and pods; 0: not yet */
	int64_t period_ns; /* from the begin of the last plan to that of the next */
	bool unled; /* the last memory of the other aggregator was refused */
};

struct planner *planner_new(const struct planner_config *config)
{
	struct planner *p = mem_zalloc(1, sizeof(*p));

	p->config = *config;
	p->core = plan_core_new(config->slack, config->drain);
	return p;
}

void planner_remember(struct planner *p, const char *name, const char *text, size_t len)
{
	struct error why = {""};
	int part = 0;

	while (part < PLAN_PARTS && strcmp(plan_part_name((enum plan_part)part), name) != 0)
		part++;
	if (part == PLAN_PARTS)
		return; /* of another version, which may come back to it */
	if (p->thread.started)
		log_warn("what was remembered of %s came too late: plans were made without it",
			 name);
	else if (plan_core_remember(p->core, (enum plan_part)part,
				    &(struct plan_text){text, len, clock_wall_ns(), false}, &why))
		log_error("what was remembered of %s cannot be read and is left out: %s", name,
			  why.text);
}

/* --- a plan ----------------------------------------------------------------------------------- */

static bool is_stopping(void *ctx)
{
	const struct planner *p = ctx;

	return atomic_load(&p->thread.stopping);
}

static void note_time(struct planner *p, int64_t took_ns)
{
	struct planner_counters *c = p->config.counters;

	counter_add(&c->steps, 1);
	counter_add(&c->took_ns, (uint64_t)took_ns);
	counter_set(&c->last_ns, (uint64_t)took_ns);
	if (took_ns <= p->config.every_ns)
		return;
	if (!counter_get(&c->late))
		log_warn("a plan took %.1f s, more than the %.1f s of --plan-interval: this is "
			 "logged once, and counted",
			 (double)took_ns / NS_PER_SEC, (double)p->config.every_ns / NS_PER_SEC);
	counter_add(&c->late, 1);
}

static void plan(struct planner *p, struct view *v)
{
	struct plan_input in = {
		.view = v,
		.now_ns = clock_wall_ns(),
		.out_of_time = is_stopping,
		.ctx = p,
		.recorded = p->recorder,
	};
	int64_t start_ns = clock_mono_ns(), start_cpu_ns = clock_thread_cpu_ns();
	struct error why = {""};
	struct plan_result *r;
	int rc;

	rc = plan_peer_lead(p->config.peer, p->core, in.now_ns, &why);
	if (rc && !p->unled)
		log_warn("plans go on without the memory of the other aggregator: %s", why.text);
	p->unled = rc != 0;
	if (plan_core_step(p->core, &in, &r, &why))
		return;
	p->planned = true;
	p->period_ns = (clock_thread_cpu_ns() - start_cpu_ns) * CPU_SHARE;
	if (p->period_ns < p->config.every_ns)
		p->period_ns = p->config.every_ns;
	r->every_ns = p->period_ns;
	recorder_planned(p->recorder, plan_slot_publish(p->config.plans, r));
	note_time(p, clock_mono_ns() - start_ns);
}

/* --- the first plan --------------------------------------------------------------------------- */

bool planner_awaits_more(const struct view *v, int64_t known_for_ns, int64_t wall_ns)
{
	const struct model_source *sources = v->cluster->sources;
	bool more = false;

	/* Of what is not in a file nothing will come. */
	if (known_for_ns > FIRST_NS || sources[OBJECT_NODE].state == SOURCE_SNAPSHOT)
		return false;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		more |= sources[kind].state == SOURCE_NONE || sources[kind].state == SOURCE_LISTING;
	for (size_t i = 0; i < v->node_count; i++)
		more |= v->nodes[i]->model && !v->nodes[i]->stats->foreign &&
			node_stats_freshness(v->nodes[i]->stats, wall_ns) == EXPIRED;
	return more;
}

static bool may_plan(struct planner *p, const struct view *v, int64_t now_ns)
{
	/* A plan without known pods would be for an empty cluster. */
	if (!place_cache_can_answer(v, NULL))
		return false;
	if (!p->known_ns)
		p->known_ns = now_ns;
	return p->planned || !planner_awaits_more(v, now_ns - p->known_ns, clock_wall_ns());
}

/* --- the thread ------------------------------------------------------------------------------- */

static int64_t next_ns(const struct planner *p, int64_t began_ns)
{
	int64_t now_ns = clock_mono_ns(), due_ns = began_ns + p->period_ns;

	if (!p->planned)
		return now_ns + LOOK_NS;
	return due_ns > now_ns ? due_ns : now_ns + p->period_ns;
}

static void *work(void *arg)
{
	struct planner *p = arg;
	int64_t began_ns;

	/* Of this thread alone, as Linux has it; a failure does not matter. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), PLANNER_NICE);
	do {
		struct view *v = view_slot_take(p->config.views);

		began_ns = clock_mono_ns();
		if (may_plan(p, v, began_ns))
			plan(p, v);
		view_drop(v);
	} while (helper_wait(&p->thread, next_ns(p, began_ns)));
	return NULL;
}

int planner_start(struct planner *p, struct recorder *recorder, struct error *error)
{
	p->recorder = recorder;
	return helper_start(&p->thread, "plans", work, p, error);
}

void planner_stop(struct planner *p)
{
	if (p)
		helper_stop(&p->thread);
}

void planner_free(struct planner *p)
{
	if (!p)
		return;
	planner_stop(p);
	plan_core_free(p->core);
	free(p);
}
