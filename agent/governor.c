/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates are whole numbers, so that ticks and the slow pass of each second coincide: 10, 5, 2, 1 Hz.
 * Cost is the CPU time of the process in percent of one core over the last 10 s, the time between
 * two rescans, so each window has one.
 *
 *	down	The cost of a full window is above the budget: one rate down, and a new window. The
 *		lowest rate is reached within 40 s.
 *	up	cost + (higher rate - rate) * cost of a fast tick stays below 3/4 of the budget for
 *		30 s: one rate up. At 1 Hz every tick is slow; a slow tick costs no less and stands
 *		for a fast one.
 *	again	If a raised rate is lowered sooner than the wait that preceded it, the next wait is
 *		twice as long, up to 16 minutes; else it is 30 s again.
 *
 * A constant cost ends in one rate; a cost that varies changes the rate ever more rarely. If 1 Hz
 * exceeds the budget, the rate stays, and the governor tells it once until the rate has risen.
 */
#include "agent/governor.h"

#include <string.h>

#define NS_PER_S      1000000000LL
#define WINDOW_NS     (10 * NS_PER_S)
#define POINT_NS      (NS_PER_S / 2) /* between points */
#define HOLD_NS	      (30 * NS_PER_S)
#define HOLD_MAX_NS   (16 * 60 * NS_PER_S)
#define CLEARLY_BELOW 0.75

_Static_assert(GOVERNOR_POINTS > WINDOW_NS / POINT_NS + 1, "the points span a window");

static int lower_rate(int rate_hz)
{
	return rate_hz > 1 ? rate_hz / 2 : 1;
}

/* One step up: the inverse of lower_rate(). */
static int higher_rate(const struct governor *g)
{
	int rate = g->most_hz;

	while (lower_rate(rate) > g->rate_hz)
		rate = lower_rate(rate);
	return rate;
}

static void begin_window(struct governor *g)
{
	g->points[0] = g->total;
	g->count = 1;
	g->whole = false;
	g->calm_ns = 0;
}

void governor_start(struct governor *g, double budget_percent, int most_hz, int cpus,
		    int64_t mono_ns, int64_t process_cpu_ns)
{
	*g = (struct governor){
		.budget_percent = budget_percent,
		.most_hz = most_hz,
		.rate_hz = most_hz,
		.total = {.mono_ns = mono_ns, .cpu_ns = process_cpu_ns},
		.hold_ns = HOLD_NS,
	};
	while (cpus > GOVERNOR_MANY_CPUS && g->rate_hz > GOVERNOR_MANY_CPUS_HZ)
		g->rate_hz = lower_rate(g->rate_hz);
	begin_window(g);
}

static void add_tick(struct governor *g, const struct governor_tick *tick)
{
	struct governor_point *t = &g->total;

	t->mono_ns = tick->mono_ns;
	t->cpu_ns = tick->process_cpu_ns;
	if (tick->fast) {
		t->fast_ticks++;
		t->fast_cpu_ns += tick->tick_cpu_ns;
	} else {
		t->slow_ticks++;
		t->slow_cpu_ns += tick->tick_cpu_ns;
	}
}

/*
 * Keeps the window at WINDOW_NS or below (unless ticks are farther apart), so that a rescan is in
 * it once.
 */
static void slide(struct governor *g)
{
	size_t old = 0;

	while (old + 1 < g->count && g->total.mono_ns - g->points[old].mono_ns > WINDOW_NS)
		old++;
	g->whole |= old > 0;
	g->count -= old;
	memmove(g->points, g->points + old, g->count * sizeof(g->points[0]));
	if (g->count < GOVERNOR_POINTS &&
	    g->total.mono_ns - g->points[g->count - 1].mono_ns >= POINT_NS)
		g->points[g->count++] = g->total;
}

static double cost_percent(const struct governor *g)
{
	const struct governor_point *from = &g->points[0];

	return 100 * (double)(g->total.cpu_ns - from->cpu_ns) /
	       (double)(g->total.mono_ns - from->mono_ns);
}

static double tick_cpu_ns(const struct governor *g)
{
	const struct governor_point *from = &g->points[0];
	uint64_t fast = g->total.fast_ticks - from->fast_ticks;
	uint64_t slow = g->total.slow_ticks - from->slow_ticks;

	if (fast)
		return (double)(g->total.fast_cpu_ns - from->fast_cpu_ns) / (double)fast;
	return slow ? (double)(g->total.slow_cpu_ns - from->slow_cpu_ns) / (double)slow : 0;
}

static bool over_budget(struct governor *g, struct error *said)
{
	int rate = lower_rate(g->rate_hz);
	double cost = cost_percent(g);

	g->calm_ns = 0;
	if (rate == g->rate_hz) {
		if (g->said_over)
			return false;
		g->said_over = true;
		return error_fail(
			said, true,
			"the agent uses %.3g %% of a core at %d Hz, the lowest rate; the budget "
			"of %.3g %% is not kept",
			cost, g->rate_hz, g->budget_percent);
	}
	/* Before a step down: doubles the wait if the last raise did not hold. */
	if (g->raised_ns) {
		if (g->total.mono_ns - g->raised_ns >= g->hold_ns)
			g->hold_ns = HOLD_NS;
		else
			g->hold_ns = 2 * g->hold_ns < HOLD_MAX_NS ? 2 * g->hold_ns : HOLD_MAX_NS;
		g->raised_ns = 0;
	}
	error_set(said,
		  "the agent uses %.3g %% of a core, its budget is %.3g %%: sampling at %d Hz "
		  "instead of %d",
		  cost, g->budget_percent, rate, g->rate_hz);
	g->rate_hz = rate;
	begin_window(g);
	return true;
}

static bool within_budget(struct governor *g, struct error *said)
{
	int rate = higher_rate(g);
	double expected =
		cost_percent(g) + (rate - g->rate_hz) * 100 * tick_cpu_ns(g) / (double)NS_PER_S;
	int64_t now = g->total.mono_ns;

	if (rate == g->rate_hz || expected >= CLEARLY_BELOW * g->budget_percent) {
		g->calm_ns = 0;
		return false;
	}
	if (!g->calm_ns)
		g->calm_ns = now;
	if (now - g->calm_ns < g->hold_ns)
		return false;
	error_set(said,
		  "the agent uses %.3g %% of a core and would use %.3g %% at %d Hz, its budget is "
		  "%.3g %%: sampling at %d Hz instead of %d",
		  cost_percent(g), expected, rate, g->budget_percent, rate, g->rate_hz);
	g->rate_hz = rate;
	g->raised_ns = now;
	g->said_over = false;
	begin_window(g);
	return true;
}

bool governor_tick(struct governor *g, const struct governor_tick *tick, struct error *said)
{
	add_tick(g, tick);
	slide(g);
	if (!g->whole)
		return false;
	return cost_percent(g) > g->budget_percent ? over_budget(g, said) : within_budget(g, said);
}
