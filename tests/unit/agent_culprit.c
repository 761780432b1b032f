/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The likely cause of waiting, on a simulated machine: each millisecond its CPUs run the tasks of
 * the pods that had the least CPU time for their weight, as the kernel's fair scheduler does. A pod
 * waits while any of its tasks could run and does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/culprit.h"
#include "shared/mem.h"

enum { RUNS = 100, TASKS_MAX = 16, PODS_MAX = 40, TICK_MS = 100, PERIOD_MS = 100 };

/* How a pod's tasks work. Times are in milliseconds. */
struct pattern {
	int tasks;
	int work, sleep; /* of a task; means of random times. sleep 0: it never sleeps */
	int on, off; /* phases of the whole pod; off 0: always on */
	int phase_of; /* the pod whose phases it follows, with `lag`; 0: its own */
	int lag;
	int quota; /* CPU time in PERIOD_MS; 0: no limit */
	int cpus; /* mask; 0: all */
};

struct pod {
	const struct pattern *pattern;
	int work[TASKS_MAX], sleep[TASKS_MAX]; /* left */
	bool runs[TASKS_MAX];
	bool on;
	int phase; /* left */
	int quota; /* left in the period */
	double vruntime;
	/* since the last sample, ms */
	double used, waited, stalled, throttled;
};

struct world {
	struct pod pods[PODS_MAX]; /* [0] waits; refs are indices + 1 */
	size_t count;
	int cpus;
	uint64_t random;
	struct {
		struct pod *pod; /* NULL: idle */
		int task, slice; /* left */
	} on_cpu[8];
	bool history[1 << 20]; /* of phases: bit per ms of pod 1 */
	int now;
};

static double uniform(struct world *w)
{
	w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(w->random >> 11) / 9007199254740992.0;
}

static int around(struct world *w, int mean)
{
	return (int)fmax(1, -log(1 - uniform(w)) * mean);
}

static void change_phase(struct world *w, struct pod *p)
{
	const struct pattern *t = p->pattern;

	if (t->phase_of) {
		p->on = w->now > t->lag && w->history[w->now - t->lag - 1];
		return;
	}
	if (!t->off) {
		p->on = true;
		return;
	}
	if (--p->phase > 0)
		return;
	p->on = !p->on;
	p->phase = around(w, p->on ? t->on : t->off);
}

static bool wants(struct world *w, struct pod *p, int task)
{
	const struct pattern *t = p->pattern;

	if (!p->on)
		return false;
	if (p->work[task] > 0 || !t->sleep)
		return true;
	if (--p->sleep[task] > 0)
		return false;
	p->work[task] = around(w, t->work);
	p->sleep[task] = around(w, t->sleep);
	return true;
}

/* The pod with a waiting task for this CPU that had least. */
static struct pod *next_pod(struct world *w, int cpu, bool wanting[PODS_MAX][TASKS_MAX], int *task)
{
	struct pod *best = NULL;

	for (size_t i = 0; i < w->count; i++) {
		struct pod *p = &w->pods[i];

		if (p->pattern->cpus && !(p->pattern->cpus & 1 << cpu))
			continue;
		if (p->pattern->quota && p->quota <= 0)
			continue;
		for (int t = 0; t < p->pattern->tasks; t++)
			if (wanting[i][t] && !p->runs[t] &&
			    (!best || p->vruntime < best->vruntime)) {
				best = p;
				*task = t;
			}
	}
	return best;
}

static void step(struct world *w)
{
	bool wanting[PODS_MAX][TASKS_MAX] = {{0}};
	double least = HUGE_VAL;

	for (size_t i = 0; i < w->count; i++) {
		struct pod *p = &w->pods[i];

		change_phase(w, p);
		if (w->now % PERIOD_MS == 0)
			p->quota = p->pattern->quota;
		for (int t = 0; t < p->pattern->tasks; t++) {
			wanting[i][t] = wants(w, p, t);
			p->runs[t] = false;
			if (wanting[i][t])
				least = fmin(least, p->vruntime);
		}
	}
	w->history[w->now] = w->pods[1].on;
	for (int cpu = 0; cpu < w->cpus; cpu++) {
		struct pod *p = w->on_cpu[cpu].pod;
		int task = w->on_cpu[cpu].task;

		if (p && w->on_cpu[cpu].slice-- > 0 && wanting[p - w->pods][task] &&
		    !(p->pattern->quota && p->quota <= 0))
			p->runs[task] = true;
		else
			w->on_cpu[cpu].pod = NULL;
	}
	for (int cpu = 0; cpu < w->cpus; cpu++) {
		int task = w->on_cpu[cpu].task;
		struct pod *p = w->on_cpu[cpu].pod;

		if (!p) {
			p = w->on_cpu[cpu].pod = next_pod(w, cpu, wanting, &task);
			w->on_cpu[cpu].task = task;
			w->on_cpu[cpu].slice = 1 + (int)(5 * uniform(w));
		}
		if (!p)
			continue;
		/* A pod that slept has no claim to the time it slept. */
		p->vruntime = fmax(p->vruntime, least - 6) + 0.8 + 0.4 * uniform(w);
		p->runs[task] = true;
		p->work[task]--;
		p->quota--;
		p->used++;
	}
	for (size_t i = 0; i < w->count; i++) {
		struct pod *p = &w->pods[i];
		int waiting = 0, running = 0, cpus = w->cpus;
		bool waits;

		for (int t = 0; t < p->pattern->tasks; t++) {
			waiting += wanting[i][t] && !p->runs[t];
			running += p->runs[t];
		}
		if (p->pattern->cpus)
			cpus = __builtin_popcount((unsigned int)p->pattern->cpus);
		waits = waiting > 0;
		p->waited += waits;
		/* Tasks that wait spread over the CPUs. */
		if (waits)
			p->stalled += fmin(waiting, cpus - running) / fmin(cpus, waiting + running);
		p->throttled += waits && p->pattern->quota && p->quota <= 0;
	}
	w->now++;
}

static void sample(struct world *w, struct culprit *c, const struct pattern patterns[])
{
	int slot = culprit_slot(c, 1);
	struct culprit_sample s = {.seconds = TICK_MS / 1e3};

	if (slot < 0 || !c->pods[slot].sums)
		return;
	s.full = w->pods[0].stalled / 1e3;
	s.use[CULPRIT_SYSTEM] = 0.002 * uniform(w);
	for (size_t i = 0; i < w->count; i++) {
		int at = culprit_slot(c, (uint32_t)i + 1);
		bool apart = patterns[0].cpus && patterns[i].cpus &&
			     !(patterns[0].cpus & patterns[i].cpus);

		if (!apart)
			s.use[at < 0 ? CULPRIT_OTHERS : at] += w->pods[i].used / 1e3;
		if (at >= 0 && c->pods[at].sums && !apart)
			s.some[at] = w->pods[i].waited / 1e3;
	}
	culprit_add(c, slot, &s);
}

static struct contention_cause run(int cpus, const struct pattern *patterns, int seconds, int seed)
{
	struct world *w = mem_zalloc(1, sizeof(*w));
	struct culprit c = {.watched = 0};
	struct culprit_pod rows[PODS_MAX] = {{0}};
	struct contention_cause cause = {0};

	w->cpus = cpus;
	w->random = (uint64_t)seed * 2654435761U + 12345;
	for (; patterns[w->count].tasks; w->count++)
		w->pods[w->count].pattern = &patterns[w->count];
	for (int second = 0; second <= seconds; second++) {
		double throttled = 0, waited[PODS_MAX] = {0}, used[PODS_MAX] = {0};

		for (int tick = 0; tick < 1000 / TICK_MS; tick++) {
			for (int ms = 0; ms < TICK_MS; ms++)
				step(w);
			sample(w, &c, patterns);
			throttled += w->pods[0].throttled;
			for (size_t i = 0; i < w->count; i++) {
				used[i] += w->pods[i].used;
				waited[i] += w->pods[i].waited - w->pods[i].throttled;
				w->pods[i].used = w->pods[i].waited = w->pods[i].throttled =
					w->pods[i].stalled = 0;
			}
		}
		if (culprit_slot(&c, 1) >= 0 && c.pods[culprit_slot(&c, 1)].sums)
			culprit_end_second(&c, culprit_slot(&c, 1), throttled / 1e3);
		for (size_t i = 0; i < w->count; i++) {
			float waiting = (float)(waited[i] / 1e3);

			rows[i].ref = (uint32_t)i + 1;
			rows[i].use += ((float)(used[i] / 1e3) - rows[i].use) / 4;
			rows[i].waiting += (waiting - rows[i].waiting) / 4;
		}
		culprit_choose(&c, rows, w->count);
	}
	if (culprit_slot(&c, 1) >= 0 && c.pods[culprit_slot(&c, 1)].sums)
		cause = culprit_find(&c, culprit_slot(&c, 1));
	culprit_fini(&c);
	free(w);
	return cause;
}

struct scene {
	const char *name;
	int cpus, seconds;
	uint32_t guilty; /* 0: nobody */
	int least; /* of 100 runs */
	struct pattern pods[PODS_MAX];
};

#define SERVICE                                                                                    \
	{                                                                                          \
		.tasks = 2, .work = 12, .sleep = 18                                                \
	}
#define SPIN(n)                                                                                    \
	{                                                                                          \
		.tasks = (n)                                                                       \
	}

static const struct scene scenes[] = {
	{"a bursty hog",
	 2,
	 20,
	 2,
	 95,
	 {SERVICE,
	  {.tasks = 4, .on = 400, .off = 600},
	  {.tasks = 1, .work = 5, .sleep = 15},
	  {.tasks = 1, .on = 400, .off = 600, .work = 6, .sleep = 8}}},
	{"a bursty hog and a smaller pod in step",
	 2,
	 20,
	 2,
	 95,
	 {SERVICE,
	  {.tasks = 4, .on = 400, .off = 600},
	  {.tasks = 1, .work = 8, .sleep = 12, .phase_of = 2, .off = 1},
	  {.tasks = 1, .work = 5, .sleep = 20}}},
	{"a constant hog",
	 2,
	 20,
	 2,
	 95,
	 {SERVICE,
	  SPIN(3),
	  {.tasks = 1, .work = 5, .sleep = 15},
	  {.tasks = 2, .on = 100, .off = 900}}},
	{"a constant hog and a client in step with the service",
	 2,
	 20,
	 3,
	 95,
	 {{.tasks = 2, .work = 12, .sleep = 18, .phase_of = 2, .off = 1},
	  {.tasks = 1, .work = 4, .sleep = 16, .on = 300, .off = 300},
	  SPIN(3)}},
	{"a hog with many tasks",
	 2,
	 20,
	 2,
	 95,
	 {SERVICE,
	  {.tasks = 16, .work = 20, .sleep = 60},
	  {.tasks = 1, .work = 5, .sleep = 15},
	  {.tasks = 2, .work = 5, .sleep = 30}}},
	{"a hog among equals on other CPUs",
	 4,
	 20,
	 2,
	 95,
	 {{.tasks = 1, .work = 6, .sleep = 14, .cpus = 1},
	  {.tasks = 2, .cpus = 1},
	  {.tasks = 1, .cpus = 2},
	  {.tasks = 2, .cpus = 12}}},
	{"its own quota",
	 2,
	 20,
	 0,
	 99,
	 {{.tasks = 2, .quota = 40},
	  {.tasks = 1, .work = 5, .sleep = 15},
	  {.tasks = 1, .on = 300, .off = 500}}},
	{"its own quota beside a bursty pod",
	 2,
	 20,
	 0,
	 99,
	 {{.tasks = 1, .quota = 30},
	  {.tasks = 1, .on = 300, .off = 500},
	  {.tasks = 1, .work = 5, .sleep = 25}}},
	{"its own tasks",
	 2,
	 20,
	 0,
	 99,
	 {SPIN(8), {.tasks = 1, .work = 2, .sleep = 30}, {.tasks = 1, .work = 2, .sleep = 20}}},
	{"two equal hogs in step",
	 2,
	 20,
	 0,
	 95,
	 {SERVICE, SPIN(2), SPIN(2), {.tasks = 1, .work = 2, .sleep = 20}}},
	{"many small pods", 2, 20, 0, 95, {SERVICE,
#define SMALL                                                                                      \
	{                                                                                          \
		.tasks = 1, .work = 4, .sleep = 60                                                 \
	}
					   SMALL,   SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL,
					   SMALL,   SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL,
					   SMALL,   SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL,
					   SMALL,   SMALL, SMALL, SMALL, SMALL}},
	{"nothing", 2, 20, 0, 100, {SERVICE, {.tasks = 1, .work = 2, .sleep = 200}}},
};

static void test_scene(void **state)
{
	const struct scene *s = *state;
	int right = 0;

	for (int seed = 0; seed < RUNS; seed++)
		right += run(s->cpus, s->pods, s->seconds, seed).ref == s->guilty;
	print_message("%s: %d of %d right\n", s->name, right, RUNS);
	assert_true(right >= s->least);
}

int main(void)
{
	enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };
	struct CMUnitTest tests[SCENES];

	for (int i = 0; i < SCENES; i++)
		tests[i] = (struct CMUnitTest){.name = scenes[i].name,
					       .test_func = test_scene,
					       .initial_state = (void *)&scenes[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
