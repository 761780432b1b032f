/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals by cases, with the numbers of aggregator/policy/advice/advice.h worked out by hand. */
#include "aggregator/policy/advice/advice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shared/histogram.h"

#define DAY_NS (86400 * 1000000000LL)
#define TODAY  20000
#define NOW_NS (TODAY * DAY_NS + DAY_NS / 2)
#define MIB    0x1p20F

struct part {
	double milli, seconds;
};

static const struct given {
	const char *what;
	struct part parts[3];
	float start_milli;
	float peaks_mib[4]; /* today, yesterday, .. */
	double throttled; /* share of periods */
	uint32_t oom_kills;
	float oom_limit_mib; /* at the kills */
	double sample_seconds, hours;
	enum advice_policy policy;
	double throttled_below;
	bool undeclared;
	int64_t cpu_request, mem_request_mib, cpu_limit, mem_limit_mib; /* 0: none */
	/* What is proposed; CPU within 5 % and a millicore, 0: nothing */
	double want_cpu, want_limit;
	int64_t want_mem_mib, want_mem_limit_mib;
	enum advice_verdict verdict;
	enum advice_confidence confidence;
	const char *says;
} cases[] = {
	{"constant use, requests that fit", .parts = {{200, 3600}}, .peaks_mib = {100},
	 .sample_seconds = 0.1, .hours = 30, .throttled_below = 0.01, .cpu_request = 200,
	 .mem_request_mib = 115, .want_cpu = 200, .want_limit = 205, .want_mem_mib = 115,
	 .want_mem_limit_mib = 130, .verdict = ADVICE_FITS, .confidence = ADVICE_HIGH},
	{"bursts in a tenth of the time: the request leaves them out, the limit does not",
	 .parts = {{0, 3000}, {1000, 300}}, .peaks_mib = {100}, .sample_seconds = 0.1, .hours = 2,
	 .throttled_below = 0.01, .cpu_request = 1000, .mem_request_mib = 115, .want_cpu = 10,
	 .want_limit = 1025, .want_mem_mib = 115, .want_mem_limit_mib = 130,
	 .verdict = ADVICE_TOO_LARGE, .confidence = ADVICE_MEDIUM},
	{"a tenth of what ran may be throttled", .parts = {{100, 950}, {1000, 50}},
	 .sample_seconds = 0.1, .throttled_below = 0.1, .cpu_request = 100, .want_cpu = 105,
	 .want_limit = 105, .verdict = ADVICE_FITS, .confidence = ADVICE_LOW},
	{"safe", .parts = {{100, 950}, {1000, 50}}, .peaks_mib = {100, 200}, .sample_seconds = 0.1,
	 .policy = ADVICE_SAFE, .throttled_below = 0.1, .want_cpu = 1020, .want_limit = 1020,
	 .want_mem_mib = 260, .want_mem_limit_mib = 320, .verdict = ADVICE_TOO_SMALL},
	{"saving looks at two days", .parts = {{100, 1000}}, .peaks_mib = {100, 120, 500},
	 .sample_seconds = 0.1, .policy = ADVICE_SAVING, .throttled_below = 0.01,
	 .cpu_request = 100, .mem_request_mib = 126, .want_cpu = 100, .want_limit = 105,
	 .want_mem_mib = 126, .want_mem_limit_mib = 132, .verdict = ADVICE_FITS},
	{"killed at its limit: its peak would have been higher", .parts = {{100, 1000}},
	 .peaks_mib = {99}, .oom_kills = 2, .oom_limit_mib = 100, .sample_seconds = 0.1,
	 .throttled_below = 0.01, .cpu_request = 100, .mem_request_mib = 500, .mem_limit_mib = 100,
	 .want_cpu = 100, .want_limit = 105, .want_mem_mib = 138, .want_mem_limit_mib = 156,
	 .verdict = ADVICE_TOO_SMALL, .says = "at a limit of 100.0Mi: at least 120% of that"},
	{"the limit was raised since the kills, which ask for no more", .parts = {{100, 1000}},
	 .peaks_mib = {250}, .oom_kills = 2, .oom_limit_mib = 250, .sample_seconds = 0.1,
	 .throttled_below = 0.01, .cpu_request = 100, .mem_request_mib = 345, .mem_limit_mib = 8192,
	 .want_cpu = 100, .want_limit = 105, .want_mem_mib = 345, .want_mem_limit_mib = 390,
	 .verdict = ADVICE_FITS},
	{"the limit was taken away since", .parts = {{100, 1000}}, .peaks_mib = {250},
	 .oom_kills = 2, .oom_limit_mib = 250, .sample_seconds = 0.1, .throttled_below = 0.01,
	 .cpu_request = 100, .mem_request_mib = 345, .want_cpu = 100, .want_limit = 105,
	 .want_mem_mib = 345, .want_mem_limit_mib = 390, .verdict = ADVICE_FITS},
	{"killed at a limit that nobody knows", .parts = {{100, 1000}}, .peaks_mib = {100},
	 .oom_kills = 1, .sample_seconds = 0.1, .throttled_below = 0.01, .cpu_request = 100,
	 .mem_request_mib = 115, .mem_limit_mib = 8192, .want_cpu = 100, .want_limit = 105,
	 .want_mem_mib = 115, .want_mem_limit_mib = 130, .verdict = ADVICE_TOO_SMALL},
	{"the limit throttles it", .parts = {{0, 3000}, {1000, 300}}, .peaks_mib = {100},
	 .throttled = 0.2, .sample_seconds = 0.1, .throttled_below = 0.01, .cpu_request = 10,
	 .cpu_limit = 500, .mem_request_mib = 115, .want_cpu = 10, .want_limit = 1025,
	 .want_mem_mib = 115, .want_mem_limit_mib = 130, .verdict = ADVICE_TOO_SMALL,
	 .says = "CPU tooSmall: the limit throttles it, and the request is 10m.\n"},
	{"the limit was raised since", .parts = {{0, 3000}, {1000, 300}}, .peaks_mib = {100},
	 .throttled = 0.2, .sample_seconds = 0.1, .throttled_below = 0.01, .cpu_request = 10,
	 .cpu_limit = 1100, .mem_request_mib = 115, .want_cpu = 10, .want_limit = 1025,
	 .want_mem_mib = 115, .want_mem_limit_mib = 130, .verdict = ADVICE_FITS,
	 .says = "throttles it in 20.0% of the periods"},
	{"the least memory", .parts = {{100, 1000}}, .peaks_mib = {0.25F}, .sample_seconds = 0.1,
	 .throttled_below = 0.01, .cpu_request = 100, .mem_request_mib = 64, .hours = 1.0 / 60,
	 .want_cpu = 100, .want_limit = 105, .want_mem_mib = 16, .want_mem_limit_mib = 16,
	 .verdict = ADVICE_TOO_LARGE,
	 .says = "Memory request 16.0Mi, limit 16.0Mi: the peak of 4 days is 256.0Ki, and no "
		 "request "
		 "is below 16 MiB.\n"},
	{"samples of a second say nothing of periods", .parts = {{100, 1000}}, .sample_seconds = 1,
	 .throttled_below = 0.01, .cpu_request = 100, .want_cpu = 100, .verdict = ADVICE_FITS},
	{"a start alone", .start_milli = 2000, .sample_seconds = 0.1, .throttled_below = 0.01},
	{"memory alone", .peaks_mib = {100}, .sample_seconds = 0.1, .throttled_below = 0.01,
	 .mem_request_mib = 115, .want_mem_mib = 115, .want_mem_limit_mib = 130,
	 .verdict = ADVICE_FITS},
	{"killed without a limit", .parts = {{100, 1000}}, .peaks_mib = {99}, .oom_kills = 1,
	 .sample_seconds = 0.1, .throttled_below = 0.01, .cpu_request = 100, .mem_request_mib = 500,
	 .want_cpu = 100, .want_limit = 105, .want_mem_mib = 114, .want_mem_limit_mib = 129,
	 .verdict = ADVICE_TOO_SMALL},
	{"a start above the limit", .parts = {{100, 1000}}, .start_milli = 2000,
	 .sample_seconds = 0.1, .throttled_below = 0.01, .cpu_request = 100, .want_cpu = 100,
	 .want_limit = 105, .verdict = ADVICE_FITS},
	{"a unit declares nothing", .parts = {{500, 1000}}, .undeclared = true,
	 .sample_seconds = 0.1, .throttled_below = 0.01, .want_cpu = 500, .want_limit = 540,
	 .verdict = ADVICE_UNDECLARED},
	{"no requests at all", .parts = {{500, 1000}}, .sample_seconds = 0.1,
	 .throttled_below = 0.01, .want_cpu = 500, .want_limit = 540, .verdict = ADVICE_TOO_SMALL,
	 .says = "CPU tooSmall: no request is declared.\n"},
};

static void add(struct demand_weights *w, double *room, const struct part *p)
{
	if (!(p->seconds > 0))
		return;
	w->weight = room;
	w->room = 8;
	((uint8_t *)(room + 8))[w->count] = (uint8_t)histogram_bucket(p->milli, HISTOGRAM_CPU_X0);
	room[w->count++] = p->seconds;
}

static struct resource_list list_of(int64_t milli, int64_t mib)
{
	return (struct resource_list){{{milli != 0, mib != 0}}, {{milli, mib << 20}}};
}

static bool is_near(bool has, double value, double want)
{
	return want > 0 ? has && fabs(value - want) <= 0.05 * want + 1 : !has;
}

static bool is_right(const struct given *g, const struct advice *a)
{
	return is_near(a->requests.has_cpu, (double)a->requests.cpu_milli, g->want_cpu) &&
	       is_near(a->limits.has_cpu, (double)a->limits.cpu_milli, g->want_limit) &&
	       a->requests.mem_bytes >> 20 == g->want_mem_mib &&
	       a->limits.mem_bytes >> 20 == g->want_mem_limit_mib && a->verdict == g->verdict &&
	       a->confidence == g->confidence &&
	       !(a->limits.has_cpu && a->throttled_at_limit > g->throttled_below);
}

static void test_proposals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct given *g = &cases[i];
		const struct advice_now now = {
			.declared = !g->undeclared,
			.pods = 1,
			.requests = list_of(g->cpu_request, g->mem_request_mib),
			.limits = list_of(g->cpu_limit, g->mem_limit_mib),
		};
		const struct advice_options options = {g->policy, g->throttled_below};
		struct demand_record r = {.seen_ns = NOW_NS, .epoch_ns = NOW_NS};
		double cpu[10], seconds = 0;
		struct buf why = BUF_INIT;
		struct advice a;

		for (int k = 0; k < 3; k++) {
			add(&r.cpu, cpu, &g->parts[k]);
			seconds += g->parts[k].seconds;
		}
		r.samples = seconds / g->sample_seconds;
		r.periods = g->throttled > 0 ? 100 : 0;
		r.throttled_periods = 100 * g->throttled;
		r.measured_ns = (int64_t)(g->hours * 3600e9);
		for (int d = 0; d < 4; d++)
			if (g->peaks_mib[d] > 0)
				r.days[(TODAY - d) % DEMAND_DAYS] =
					(struct demand_day){TODAY - d, d ? 0 : g->oom_kills,
							    g->peaks_mib[d] * MIB, 0,
							    d ? 0 : g->oom_limit_mib * MIB};
		if (g->start_milli > 0)
			r.days[TODAY % DEMAND_DAYS] =
				(struct demand_day){TODAY, 0, 0, g->start_milli, 0};
		advice_make(&r, &now, &options, NOW_NS, &a, &why);
		assert_true(g->start_milli > 0 ? a.start_milli == (double)g->start_milli
					       : isnan(a.start_milli));
		if (!is_right(g, &a) || !why.len || (g->says && !strstr(why.data, g->says)))
			fail_msg("%s: CPU %ld, limit %ld, memory %ld and %ld MiB, %s, %s: %s",
				 g->what, (long)a.requests.cpu_milli, (long)a.limits.cpu_milli,
				 (long)(a.requests.mem_bytes >> 20),
				 (long)(a.limits.mem_bytes >> 20), advice_verdicts[a.verdict],
				 advice_confidences[a.confidence], why.data);
		buf_fini(&why);
	}
}

/* What hurts most has the highest urgency. */
static void test_order(void **state)
{
	const struct advice_options options = {ADVICE_BALANCED, 0.01};
	static const struct {
		int64_t request;
		uint32_t kills;
		int64_t limit;
		double throttled;
	} falling[] = {
		{1000, 1, 0, 0}, {100, 0, 0, 0},  {500, 0, 0, 0},  {1000, 0, 500, 0.2},
		{0, 0, 0, 0},	 {5000, 0, 0, 0}, {1500, 0, 0, 0}, {1000, 0, 500, 0.01},
	};
	double last = INFINITY, room[10];

	(void)state;
	for (size_t i = 0; i < sizeof(falling) / sizeof(falling[0]); i++) {
		const struct advice_now now = {.declared = true,
					       .requests = list_of(falling[i].request, 0),
					       .limits = list_of(falling[i].limit, 0)};
		struct demand_record r = {.seen_ns = NOW_NS, .epoch_ns = NOW_NS, .samples = 10000};
		struct advice a;

		r.periods = falling[i].limit ? 100 : 0;
		r.throttled_periods = 100 * falling[i].throttled;
		add(&r.cpu, room, &(struct part){1000, 1000});
		r.days[TODAY % DEMAND_DAYS] = (struct demand_day){TODAY, falling[i].kills, 0, 0, 0};
		advice_make(&r, &now, &options, NOW_NS, &a, NULL);
		assert_true(a.urgency < last);
		last = a.urgency;
	}
}

/* A tenth of the samples is above the limit; little use makes few of the others into periods. */
static void test_periods_count_by_their_use(void **state)
{
	static const struct {
		double milli, share;
	} rows[] = {{0, 1}, {1.5, 0.2565}, {2.5, 0.1764}, {5.1, 0.1}, {400, 0.1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct part little = {rows[i].milli, 900}, much = {1000, 100};
		struct demand_weights w = {0};
		double room[10];

		add(&w, room, &little);
		add(&w, room, &much);
		assert_float_equal(advice_share_above(&w, 500), rows[i].share, 0.001);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proposals),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_periods_count_by_their_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
