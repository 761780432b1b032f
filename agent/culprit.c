/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod waits while the CPUs that its tasks may use run others. PSI full of CPU counts the time in
 * which a CPU with tasks of the pod runs none of them; PSI some also counts tasks that wait for
 * others of the same pod. So full, less throttled time, is what neighbours cause. In each tick
 *
 *	y = full / active	active = min(1, some + own use): the share of the tick with work
 *
 * is the dependent variable; ticks count by their active time, since time in which the pod has no
 * work says nothing, and a neighbour that works when the pod does, such as its client, would seem
 * to be the cause.
 *
 * The regressors are the presence of the neighbours, not their use: on busy CPUs use does not show the load.
 * A neighbour that wakes takes its CPU time from those that want most, so the use of the guilty one
 * falls when the waiting grows, and a linear fit names the innocent. The load of a neighbour is its use
 * and, if it is watched, its waiting; it is absent in a tick with at most ABSENT of its typical load
 * (the mean weighted by itself). On presence, regression is a comparison of means:
 *
 *	relief(j)	= 1 - mean y without j / mean y
 *	relief(j | k)	= 1 - mean y with k, without j / mean y with k
 *
 * The relief of j is the least of these over all rivals k that have a large relief, too. A neighbour
 * in step with the guilty one is exonerated by ticks in which only one of them is present. Each mean
 * includes the equivalent of PRIOR_SAMPLES ticks with the value that the level of use suggests. It
 * decides alone for a neighbour that is never absent, such as a constant hog. Without j its CPU time
 * goes to the pod and to those that want more than they get,
 *
 *	want(k)	= waiting of k * (active share of k)^4
 *	level(j)	= min(1, use of j / want of the pod)
 *			  / (1 + sum over other k of want(k) * min(1, use of k / use of j))
 *
 * since a pod that sleeps at times has done its work and takes no more, and a pod with a small
 * weight takes little. Of two equal hogs neither has a large level, since one takes what the other
 * leaves. No relief is larger than the use of j in relation to the waiting. Weights of the CPU
 * controller are not read: they show in what a pod uses while others wait.
 *
 * The share of j is its relief times full / some. Nobody is named if the pod waits less than
 * LEAST_WAITING of the time, if throttling explains half of its pressure or more, if there are few
 * samples, or if nobody has LEAST_SHARE; the sum of the unwatched pods is never named. The aggregator
 * drops a cause that has left the node. Sums decay by half in HALF_LIFE_S, so that no single
 * reading decides. The estimate is no proof: a cause outside the CPUs (I/O, a lock, a common clock)
 * that makes one pod run and another wait looks the same.
 *
 * A sample costs at most CULPRIT_USERS^2 additions, and so does an estimate. Without a waiting pod
 * there are no sums and no work.
 */
#include "agent/culprit.h"

#include <math.h>
#include <stdlib.h>

#include "shared/mem.h"

#define HALF_LIFE_S   45.0
#define LEAST_WAITING 0.05 /* waiting of a pod with a cause */
#define LEAST_SHARE   0.5
#define ABSENT	      0.25

enum { LEAST_SAMPLES = 20, PRIOR_SAMPLES = 5 };

/* Weighted with seconds. */
struct means {
	double active, held_up; /* held_up: PSI full less throttled time */
};

struct culprit_sums {
	double samples, seconds;
	double some, throttled; /* seconds */
	double waiting; /* some less throttled */
	struct means all;
	struct means without[CULPRIT_USERS]; /* without j */
	struct means only[CULPRIT_USERS][CULPRIT_USERS]; /* without j, with k */
	double use[CULPRIT_USERS]; /* while active */
	double load[CULPRIT_USERS], load_squared[CULPRIT_USERS]; /* the same */
	bool by_second; /* it was throttled in the last second */
	struct culprit_sample open; /* not in the sums yet */
};

void culprit_fini(struct culprit *c)
{
	for (int i = 0; i < CULPRIT_PODS; i++)
		free(c->pods[i].sums);
	*c = (struct culprit){.watched = 0};
}

/* --- the choice of pods ----------------------------------------------------------------------- */

int culprit_slot(const struct culprit *c, uint32_t ref)
{
	for (int i = 0; i < CULPRIT_PODS; i++)
		if (c->pods[i].ref == ref)
			return i;
	return -1;
}

/* The largest values; the bonus keeps what was chosen before from changing with each second. */
struct top {
	size_t count, most;
	struct {
		uint32_t ref;
		float value;
	} of[CULPRIT_PODS];
};

#define BONUS 1.5F

static bool top_has(const struct top *t, uint32_t ref)
{
	size_t i = 0;

	while (i < t->count && t->of[i].ref != ref)
		i++;
	return i < t->count;
}

static void top_offer(struct top *t, uint32_t ref, float value)
{
	size_t i = t->count;

	if (t->count < t->most)
		t->count++;
	else if (value <= t->of[--i].value)
		return;
	for (; i > 0 && t->of[i - 1].value < value; i--)
		t->of[i] = t->of[i - 1];
	t->of[i].ref = ref;
	t->of[i].value = value;
}

static void forget_user(struct culprit_sums *s, int user)
{
	s->use[user] = s->load[user] = s->load_squared[user] = 0;
	s->open.use[user] = s->open.some[user] = 0;
	s->without[user] = (struct means){0};
	for (int i = 0; i < CULPRIT_USERS; i++)
		s->only[user][i] = s->only[i][user] = (struct means){0};
}

static void set_slot(struct culprit *c, int slot, uint32_t ref)
{
	free(c->pods[slot].sums);
	c->pods[slot].sums = NULL;
	c->pods[slot].ref = ref;
	for (int i = 0; i < CULPRIT_PODS; i++)
		if (c->pods[i].sums)
			forget_user(c->pods[i].sums, slot);
}

static void set_watched(struct culprit *c, int slot, bool watched)
{
	struct culprit_sums *s = c->pods[slot].sums;

	if (watched == (s != NULL))
		return;
	free(s);
	c->pods[slot].sums = watched ? mem_zalloc(1, sizeof(*s)) : NULL;
}

static void take_slots(struct culprit *c, const struct top *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (culprit_slot(c, t->of[i].ref) < 0)
			set_slot(c, culprit_slot(c, 0), t->of[i].ref);
}

void culprit_choose(struct culprit *c, const struct culprit_pod *pods, size_t count)
{
	struct top waiting = {.most = CULPRIT_WATCHED};
	struct top using = {.most = CULPRIT_PODS - CULPRIT_WATCHED};

	for (size_t i = 0; i < count; i++) {
		int slot = c->watched ? culprit_slot(c, pods[i].ref) : -1;
		bool watched = slot >= 0 && c->pods[slot].sums;
		float value = pods[i].waiting * (watched ? BONUS : 1);

		if ((double)value >= CULPRIT_LEAST_WATCHED)
			top_offer(&waiting, pods[i].ref, value);
	}
	for (size_t i = 0; i < count && waiting.count; i++) {
		bool has_slot = culprit_slot(c, pods[i].ref) >= 0;

		if (!top_has(&waiting, pods[i].ref) && (has_slot || pods[i].use > 0))
			top_offer(&using, pods[i].ref, pods[i].use * (has_slot ? BONUS : 1));
	}
	for (int i = 0; i < CULPRIT_PODS; i++)
		if (c->pods[i].ref && !top_has(&waiting, c->pods[i].ref) &&
		    !top_has(&using, c->pods[i].ref))
			set_slot(c, i, 0);
	take_slots(c, &waiting);
	take_slots(c, &using);
	for (int i = 0; i < CULPRIT_PODS; i++)
		set_watched(c, i, c->pods[i].ref && top_has(&waiting, c->pods[i].ref));
	for (size_t i = 0; i < count && waiting.count; i++) {
		int slot = culprit_slot(c, pods[i].ref);

		if (slot >= 0)
			c->pods[slot].waiting = pods[i].waiting;
	}
	c->watched = waiting.count;
}

/* --- sums ------------------------------------------------------------------------------------- */

static void add(struct means *to, const struct means *m)
{
	to->active += m->active;
	to->held_up += m->held_up;
}

/* Whether each user is absent from the tick; adds to the sums that tell. */
static void find_absent(struct culprit_sums *s, double active, bool absent[CULPRIT_USERS])
{
	const struct culprit_sample *o = &s->open;

	for (int j = 0; j < CULPRIT_USERS; j++) {
		double load = (o->use[j] + o->some[j]) / o->seconds;

		s->use[j] += active * o->use[j] / o->seconds;
		s->load[j] += active * load;
		s->load_squared[j] += active * load * load;
		absent[j] = s->load[j] * load <= ABSENT * s->load_squared[j];
	}
}

/* Adds the open sample. */
static void close_sample(struct culprit_sums *s, int slot, double throttled)
{
	const struct culprit_sample *o = &s->open;
	bool absent[CULPRIT_USERS];
	struct means m;
	double waiting;

	if (!(o->seconds > 0))
		return;
	waiting = fmin(fmax(o->some[slot] - throttled, 0), o->seconds);
	m.active = fmin(waiting + o->use[slot], o->seconds);
	m.held_up = fmin(fmax(o->full - throttled, 0), m.active);
	s->samples++;
	s->seconds += o->seconds;
	s->waiting += waiting;
	add(&s->all, &m);
	find_absent(s, m.active, absent);
	for (int j = 0; j < CULPRIT_USERS; j++) {
		if (!absent[j])
			continue;
		add(&s->without[j], &m);
		for (int k = 0; k < CULPRIT_USERS; k++)
			if (!absent[k])
				add(&s->only[j][k], &m);
	}
	s->open = (struct culprit_sample){.seconds = 0};
}

void culprit_add(struct culprit *c, int slot, const struct culprit_sample *sample)
{
	struct culprit_sums *s = c->pods[slot].sums;

	s->some += sample->some[slot];
	s->open.seconds += sample->seconds;
	s->open.full += sample->full;
	for (int j = 0; j < CULPRIT_USERS; j++) {
		s->open.some[j] += sample->some[j];
		s->open.use[j] += sample->use[j];
	}
	if (!s->by_second)
		close_sample(s, slot, 0);
}

static void decay(struct culprit_sums *s)
{
	/* All members before `by_second` are sums. */
	double keep = exp2(-1 / HALF_LIFE_S), *sums = (double *)s;

	for (size_t i = 0; i < offsetof(struct culprit_sums, by_second) / sizeof(double); i++)
		sums[i] *= keep;
}

void culprit_end_second(struct culprit *c, int slot, double throttled)
{
	struct culprit_sums *s = c->pods[slot].sums;

	close_sample(s, slot, throttled);
	s->throttled += throttled;
	s->by_second = throttled > 0;
	decay(s);
}

/* --- the estimate ----------------------------------------------------------------------------- */

/* For one watched pod. */
struct estimate {
	const struct culprit_sums *sums;
	double level[CULPRIT_USERS], relief[CULPRIT_USERS];
	double prior; /* active time of the prior's ticks */
};

/* The share of the time in which a pod would take more CPU than it gets. */
static double unmet(double waiting, double use)
{
	return waiting * pow(fmin(waiting + use, 1), 4);
}

static void set_levels(struct estimate *e, const struct culprit *c, int slot)
{
	const struct culprit_sums *s = e->sums;
	double want[CULPRIT_USERS] = {0}, use[CULPRIT_USERS];

	for (int k = 0; k < CULPRIT_USERS; k++) {
		use[k] = s->use[k] / s->all.active;
		if (k < CULPRIT_PODS)
			want[k] = unmet((double)c->pods[k].waiting, use[k]);
	}
	want[slot] = unmet(s->waiting / s->seconds, use[slot]);
	for (int j = 0; j < CULPRIT_USERS; j++) {
		double rivals = 0;

		for (int k = 0; k < CULPRIT_USERS && use[j] > 0; k++)
			rivals += k == j || k == slot ? 0 : want[k] * fmin(use[k] / use[j], 1);
		e->level[j] = (use[j] < want[slot] ? use[j] / want[slot] : 1) / (1 + rivals);
	}
}

/* with, without: of j, the ticks to compare. */
static double relief(const struct estimate *e, int j, const struct means *with,
		     const struct means *without)
{
	double before = with->active > 0 ? with->held_up / with->active : 0; /* mean y */
	double most = fmin(e->sums->use[j] / e->sums->all.held_up, 1), after;

	after = (without->held_up + e->prior * before * (1 - e->level[j])) /
		(without->active + e->prior);
	return before > 0 ? fmin(fmax(1 - after / before, 0), most) : 0;
}

/* The least over its rivals. */
static double relief_beside_rivals(const struct estimate *e, int j, int slot)
{
	const struct culprit_sums *s = e->sums;
	double least = e->relief[j];

	for (int k = 0; k < CULPRIT_USERS; k++) {
		struct means with_k = {s->all.active - s->without[k].active,
				       s->all.held_up - s->without[k].held_up};

		if (k != j && k != slot && e->relief[k] >= LEAST_SHARE)
			least = fmin(least, relief(e, j, &with_k, &s->only[j][k]));
	}
	return least;
}

struct contention_cause culprit_find(const struct culprit *c, int slot)
{
	const struct culprit_sums *s = c->pods[slot].sums;
	struct contention_cause cause = {.ref = 0};
	struct estimate e = {.sums = s};

	/* Too little was seen, or throttling explains the wait. */
	if (s->samples < LEAST_SAMPLES || s->waiting < LEAST_WAITING * s->seconds ||
	    s->all.held_up <= 0 || s->throttled >= s->some / 2)
		return cause;
	e.prior = PRIOR_SAMPLES * s->all.active / s->samples;
	set_levels(&e, c, slot);
	for (int j = 0; j < CULPRIT_USERS; j++)
		e.relief[j] = relief(&e, j, &s->all, &s->without[j]);
	for (int j = 0; j < CULPRIT_USERS; j++) {
		double share;

		if (j == slot || j == CULPRIT_OTHERS || e.relief[j] < LEAST_SHARE)
			continue;
		share = relief_beside_rivals(&e, j, slot) * fmin(s->all.held_up / s->waiting, 1);
		if (share < fmax(LEAST_SHARE, (double)cause.share))
			continue;
		cause.ref = j == CULPRIT_SYSTEM ? CAUSE_SYSTEM : c->pods[j].ref;
		cause.share = (float)share;
	}
	return cause;
}
