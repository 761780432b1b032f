/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One aggregator and one fleet, from the start of both to the last ack:
 *
 * fleet starts --> all are heard --> settled ----------> kill, start --> all are heard again -->
 * fleet stops
 *	|         warm-up (phase 0)           | steady (1), asking (2) |      restart (3)          |
 *
 * Acks are told apart by these phases: what a restart costs says nothing of the steady state, nor
 * the other way round. At the end the fleet waits for every ack that is missing; only then is what
 * was applied compared with what was made. After a restart that cannot be: the count of the
 * aggregator that was killed is gone with it.
 */
#include "tests/soak/soak.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/fleet/load.h"
#include "tests/process.h"
#include "tests/soak/asker.h"
#include "tests/soak/catch_up.h"
#include "tests/soak/level.h"

enum {
	HEARD_S = 300, /* the longest wait for all agents .. */
	CAUGHT_UP_S = 600, /* .. and for all that was missed */
	SETTLE_MS = 10000, /* two usual intervals: what the start cost is over */
	ASK_ON_MS = 20,
	FLEET_ARGS_MAX = 32,
	READINGS = 60,
	READINGS_MAX = 4096,
};
enum { PHASE_STEADY = 1, PHASE_ASKING = 2, PHASE_RESTART = 3 };
/* Of a process, beside a socket for each agent. */
enum { OTHER_DESCRIPTORS = 256 };

/* --- the fleet -------------------------------------------------------------------------------- */

static void add_option(const char **argv, size_t *n, const char *name, const char *value)
{
	if (!value)
		return;
	argv[(*n)++] = name;
	argv[(*n)++] = value;
}

enum { DURATION_LEN = 32 };

/* 0 is left out; text: for the words. */
static void add_duration(const char **argv, size_t *n, const char *name, int64_t ns,
			 char text[DURATION_LEN])
{
	snprintf(text, DURATION_LEN, "%lldms", (long long)(ns / NS_PER_MS));
	add_option(argv, n, name, ns ? text : NULL);
}

static pid_t start_fleet(const struct soak_config *c, const struct stack *s)
{
	char nodes[24], pods[24];
	char interval[DURATION_LEN], ring_span[DURATION_LEN], history[DURATION_LEN];
	const char *argv[FLEET_ARGS_MAX] = {"--containers", "2", "--last-acks", "60s"};
	size_t n = 4;

	snprintf(nodes, sizeof(nodes), "%lld", (long long)c->nodes);
	snprintf(pods, sizeof(pods), "%lld", (long long)c->pods_per_node);
	add_option(argv, &n, "--nodes", nodes);
	add_option(argv, &n, "--pods-per-node", pods);
	add_duration(argv, &n, "--interval", c->interval_ns, interval);
	add_duration(argv, &n, "--ring-span", c->ring_span_ns, ring_span);
	add_duration(argv, &n, "--history", c->history_ns, history);
	add_option(argv, &n, "--pod-life", c->pod_life);
	add_option(argv, &n, "--node-life", c->node_life);
	add_option(argv, &n, "--node-down", c->node_down);
	add_option(argv, &n, "--skew", c->skew);
	add_option(argv, &n, "--ack-loss", c->ack_loss);
	add_option(argv, &n, "--ack-delay", c->ack_delay);
	return fleet_start(s, argv);
}

/*
 * The aggregator inherits the limit. False, and why, where it leaves no room for a socket of each
 * agent.
 */
static bool raise_descriptors(const struct soak_config *c)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return true;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= (rlim_t)c->nodes + OTHER_DESCRIPTORS)
		return true;
	fprintf(stderr,
		"%lld agents need %lld open files, and the hard limit is %llu (ulimit -Hn)\n",
		(long long)c->nodes, (long long)c->nodes + OTHER_DESCRIPTORS,
		(unsigned long long)limit.rlim_max);
	return false;
}

/* --- the phases ------------------------------------------------------------------------------- */

/* Not so often that there would be no room for the last one. */
static int64_t reading_every_ns(const struct soak_config *c)
{
	int64_t every = c->reading_ns ? c->reading_ns : c->duration_ns / READINGS;
	int64_t least = c->duration_ns / (READINGS_MAX - 2);

	if (least < NS_PER_SEC)
		least = NS_PER_SEC;
	return every < least ? least : every;
}

/* Nodes that must be heard. Where agents die, a few are always dead. */
static double alive(const struct soak_config *c)
{
	return c->node_life ? 0.9 * (double)c->nodes : (double)c->nodes;
}

/* Until the sooner of both. */
static void wait_until(int64_t next_ns, int64_t end_ns)
{
	int64_t wait_ns = (next_ns < end_ns ? next_ns : end_ns) - clock_mono_ns();

	if (wait_ns > 0)
		poll(NULL, 0, (int)(wait_ns / NS_PER_MS) + 1);
}

/*
 * Asks and reads in turn, and reads once more at the end; returns how many readings there are, two
 * at least.
 */
static size_t be_steady(const struct soak_config *c, pid_t aggregator, struct asker *a,
			struct level *readings)
{
	int64_t begin = clock_mono_ns(), end = begin + c->duration_ns, every = reading_every_ns(c);
	int64_t now = begin, query = begin, reading = begin;
	size_t count = 0;

	while (now < end) {
		if (now >= reading) {
			readings[count++] = level_read(aggregator, begin);
			reading += every;
		}
		if (now >= query) {
			asker_ask(a);
			query += c->query_ns;
		}
		wait_until(query < reading ? query : reading, end);
		now = clock_mono_ns();
	}
	readings[count++] = level_read(aggregator, begin);
	return count;
}

/*
 * At a pace that leaves the aggregator time for its agents; not without end where it has no good
 * answers.
 */
static void ask_on(const struct soak_config *c, struct asker *a)
{
	size_t most = asker_asked(a) + 2 * ASKER_QUESTIONS * c->answers_each;

	while (asker_fewest(a) < c->answers_each && asker_asked(a) < most) {
		asker_ask(a);
		poll(NULL, 0, ASK_ON_MS);
	}
}

/*
 * What was measured before the kill is missed, too, as far as the rings go back. Promised is a
 * minute of it within half a minute, a quarter of an hour within five.
 */
static bool is_long(const struct soak_config *c)
{
	return c->ring_span_ns > 60 * NS_PER_SEC &&
	       c->history_ns + c->duration_ns + c->outage_ns > 60 * NS_PER_SEC;
}

static double restart(const struct soak_config *c, struct stack *s, pid_t fleet)
{
	struct catch_up catch_up;

	stack_kill_aggregator(s, 0);
	if (c->outage_ns)
		poll(NULL, 0, (int)(c->outage_ns / NS_PER_MS));
	catch_up_begin(&catch_up, s, fleet);
	catch_up_await(&catch_up, s, fleet, alive(c), c->interval_ns, CAUGHT_UP_S);
	bench_row_of(c->prefix, "from the kill of the aggregator until all agents are heard", "s",
		     is_long(c) ? (double)NAN : 30, catch_up.fresh_s);
	catch_up_report(&catch_up, c->prefix, is_long(c) ? 300 : 30);
	return catch_up.current_s;
}

static void note(const struct stack *s, const struct asker *a, const struct level *readings,
		 size_t count, struct soak_result *r)
{
	static const double shares[] = {0.5, 0.99};

	r->cpu_percent = level_cpu_percent(readings, count);
	r->resident_mib = level_resident_mib(readings, count);
	r->plan_s = stack_metric(s, 0, "evenkeel_planner_last_seconds");
	for (size_t i = 0; i < 2; i++) {
		r->scores_ms[i] = asker_quantile(a, ASKER_SCORES, shares[i]);
		r->prioritize_ms[i] = asker_quantile(a, ASKER_PRIORITIZE, shares[i]);
		r->nodes_ms[i] = asker_quantile(a, ASKER_NODES, shares[i]);
	}
}

static void report_fleet(const struct soak_config *c, const struct stack *s, const cJSON *report,
			 struct soak_result *r)
{
	char *steady = mem_printf("%sack of an interval", c->prefix);
	char *again = mem_printf("%sack of an interval, from the kill on", c->prefix);
	double applied = c->restart ? (double)NAN : load_applied(s);
	double budget_ms = c->budgets ? 5 : (double)NAN;
	/* Then those that were lost on purpose do not count against the aggregator. */
	bool lossy = load_number(report, "lostAcks") > 0;

	load_report_acks(report, PHASE_STEADY, steady, lossy ? (double)NAN : budget_ms);
	if (load_acks(report, PHASE_STEADY, "again.count") > 0)
		load_report_kinds(report, PHASE_STEADY, c->prefix, budget_ms);
	if (c->restart)
		load_report_acks(report, PHASE_RESTART, again, (double)NAN);
	load_report(report, c->prefix, load_unaccounted(report, applied));
	r->ack_ms[0] = load_acks(report, PHASE_STEADY, "p50");
	r->ack_ms[1] = load_acks(report, PHASE_STEADY, "p99");
	free(steady);
	free(again);
}

/*
 * From the first agent that is heard to the last answer; 1 where one of both programs did not come
 * up or end well.
 */
static int measure(const struct soak_config *c, struct stack *s, struct soak_result *r)
{
	struct level *readings = mem_zalloc(READINGS_MAX, sizeof(*readings));
	struct asker *a = asker_new(s, (uint32_t)c->nodes);
	int64_t begin = clock_mono_ns();
	pid_t fleet = start_fleet(c, s);
	cJSON *report;
	size_t count;

	r->heard_s = load_await_fresh(s, alive(c), begin, HEARD_S);
	if (!isnan(r->heard_s)) {
		poll(NULL, 0, SETTLE_MS);
		fleet_begin_phase(fleet);
		count = be_steady(c, s->aggregators[0].pid, a, readings);
		fleet_begin_phase(fleet);
		ask_on(c, a);
		fleet_begin_phase(fleet);
		note(s, a, readings, count, r);
		level_report(readings, count, c->prefix, c->budgets);
		bench_row_of(c->prefix, "the last plan of drains and slack", "s", (double)NAN,
			     r->plan_s);
		bench_row_of(c->prefix, "until all agents are heard", "s", 30, r->heard_s);
		asker_report(a, c->prefix, c->budgets);
		if (c->restart) {
			r->restart_s = restart(c, s, fleet);
		}
	}
	report = fleet_stop(s, fleet);
	if (report)
		report_fleet(c, s, report, r);
	cJSON_Delete(report);
	asker_free(a);
	free(readings);
	return !report || isnan(r->heard_s) || (c->restart && isnan(r->restart_s));
}

int soak_run(const struct soak_config *c, struct soak_result *result)
{
	struct soak_result r = {.heard_s = (double)NAN, .restart_s = (double)NAN};
	struct stack *s;
	char *objects;
	int failed;

	if (!raise_descriptors(c))
		return 1;
	s = stack_new();
	objects = c->objects ? mem_printf("%s/cluster.json", s->folder) : NULL;
	if (objects)
		fleet_dump(objects, c->nodes, c->pods_per_node);
	s->aggregators[0].snapshot_path = objects;
	stack_start_aggregator(s, 0);
	failed = measure(c, s, &r);
	stack_free(s, failed);
	free(objects);
	*result = r;
	return failed;
}
