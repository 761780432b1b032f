/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows against the plain definition: the intervals whose end lies in the window's buckets, gone
 * over once in long double. Random intervals come from fixed seeds, which a failure prints.
 */
#include <assert.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregator/state/windows.h"
#include "shared/mem.h"
#include "tests/usage_fixture.h"

#define SEC   1000000000LL
#define T0    (1700000010LL * SEC) /* a border of 15 s and of 30 s buckets */
#define EXACT 1e-6

/*
 * A share in 16 bits, rounded with each of the six intervals of a bucket; errors of buckets even
 * out.
 */
#define POD_STEP (3.0 / 65534)

enum { COUNT_MAX = 400 };

static_assert(T0 / SEC % 30 == 0, "T0 is a border");

/* What was added, to be gone over again. */
struct story {
	size_t count;
	struct {
		int64_t start_ns, end_ns;
		struct node_sample node;
	} told[COUNT_MAX];
};

static struct story *story_new(void)
{
	return mem_zalloc(1, sizeof(struct story));
}

/* An interval with random values: CPU use with bursts, memory growing and shrinking. */
static void tell(struct story *s, int64_t start_ns, int64_t end_ns, uint32_t *seed)
{
	double seconds = (double)(end_ns - start_ns) / 1e9, level = 4000 * fixture_random(seed);
	unsigned int samples = (unsigned int)(seconds * 10);
	struct node_sample n = {.usage.seconds = (float)seconds};
	struct usage *u = &n.usage;
	struct moments cpu = {0};
	double mem = 1e9 * (1 + fixture_random(seed));

	u->have = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |
		  USAGE_CONTENTION_CPU | USAGE_STALL_CPU | USAGE_STALL_MEMORY;
	for (unsigned int i = 0; i < samples; i++) {
		double value = level * fixture_random(seed);

		moments_add(&cpu, value, 0.1);
		histogram_add(&n.cpu_hist, value, HISTOGRAM_CPU_X0);
		histogram_add(&n.mem_hist, mem, HISTOGRAM_MEMORY_X0);
	}
	u->cpu_milli = moments_pack(&cpu);
	u->mem_bytes = (struct gauge){(float)mem, (float)(mem * 1.2), (float)mem};
	u->working_set_bytes = (struct gauge){(float)(mem / 2), (float)(mem / 1.5), (float)mem};
	u->throttled_ns = (uint64_t)(seconds * 1e8 * fixture_random(seed));
	u->periods = samples;
	u->throttled_periods = samples / 3;
	u->contention_cpu_ns = (uint64_t)(seconds * 3e8 * fixture_random(seed));
	u->stall_cpu_ns = (uint64_t)(seconds * 1e9 * fixture_random(seed));
	u->stall_mem_ns = fixture_random(seed) < 0.1 ? (uint64_t)(seconds * 1e7) : 0;
	u->oom_kills = fixture_random(seed) < 0.05;
	assert_true(s->count < COUNT_MAX);
	s->told[s->count].start_ns = start_ns;
	s->told[s->count].end_ns = end_ns;
	s->told[s->count++].node = n;
}

/* About 20 minutes: mostly 5 s, some merged to up to 5 minutes, some gaps. */
static struct story *random_story(uint32_t seed)
{
	struct story *s = story_new();
	int64_t at = T0 + (int64_t)(15e9 * fixture_random(&seed));

	while (at < T0 + 1200 * SEC) {
		double kind = fixture_random(&seed);
		int64_t length = 5 * SEC;

		if (kind < 0.03)
			length = (int64_t)(300e9 * fixture_random(&seed)) + SEC;
		if (kind > 0.97)
			at += (int64_t)(60e9 * fixture_random(&seed));
		tell(s, at, at + length, &seed);
		at += length;
	}
	return s;
}

static int64_t last_end(const struct story *s)
{
	return s->told[s->count - 1].end_ns;
}

static struct pod_windows *pod_hears(const struct story *s)
{
	struct pod_windows *w = pod_windows_new();

	for (size_t i = 0; i < s->count; i++)
		pod_windows_add(w, &s->told[i].node.usage, s->told[i].start_ns, s->told[i].end_ns);
	return w;
}

static struct node_windows *node_hears(const struct story *s)
{
	struct node_windows *w = node_windows_new();

	for (size_t i = 0; i < s->count; i++)
		node_windows_add(w, &s->told[i].node, s->told[i].start_ns, s->told[i].end_ns);
	return w;
}

/* Sums of weight, weight * x, weight * x^2 about a shift, and the rest of what a window says. */
struct sum {
	uint64_t samples;
	long double weight, first, second;
	double min, max;
};

static void sum_add(struct sum *s, uint64_t samples, long double weight, long double mean,
		    long double m2, double min, double max)
{
	if (!s->samples || min < s->min)
		s->min = min;
	if (!s->samples || max > s->max)
		s->max = max;
	s->samples += samples;
	s->weight += weight;
	s->first += weight * mean;
	s->second += m2 + weight * mean * mean;
}

static double sum_mean(const struct sum *s)
{
	return (double)(s->first / s->weight);
}

static double sum_stddev(const struct sum *s)
{
	long double mean = s->first / s->weight;

	return (double)sqrtl(s->second / s->weight - mean * mean);
}

struct expected {
	struct sum cpu, mem; /* mem: of the intervals */
	struct sum mem_buckets; /* of bucket means, as pods have it */
	struct histogram cpu_hist, mem_hist;
	int64_t start_ns, end_ns;
	long double seconds, throttled, periods, throttled_periods;
	long double pressure[PRESSURES]; /* seconds */
	uint64_t oom_kills;
};

static void expect_one(struct expected *e, struct sum *bucket, const struct usage *u)
{
	const struct moments32 *c = &u->cpu_milli;
	double mem = (double)u->mem_bytes.mean, max = (double)u->mem_bytes.max;

	sum_add(&e->cpu, c->samples, (long double)c->weight, (long double)c->mean,
		(long double)c->m2, (double)c->min, (double)c->max);
	sum_add(&e->mem, 1, (long double)u->seconds, mem, 0, mem, max);
	sum_add(bucket, 1, (long double)u->seconds, mem, 0, mem, max);
	e->seconds += (long double)u->seconds;
	e->throttled += u->throttled_ns / 1e9L;
	e->pressure[CONTENTION_CPU] += u->contention_cpu_ns / 1e9L;
	e->pressure[STALL_CPU] += u->stall_cpu_ns / 1e9L;
	e->pressure[STALL_MEMORY] += u->stall_mem_ns / 1e9L;
	e->periods += u->periods;
	e->throttled_periods += u->throttled_periods;
	e->oom_kills += u->oom_kills;
}

/* The definition: buckets [of(as_of) - last, of(as_of)], an interval in the bucket of its end. */
static struct expected expect(const struct story *s, int64_t as_of_ns, int64_t bucket_ns, int last)
{
	struct expected e = {.start_ns = INT64_MAX};

	for (int64_t b = as_of_ns / bucket_ns - last; b <= as_of_ns / bucket_ns; b++) {
		struct sum bucket = {0};

		for (size_t i = 0; i < s->count; i++) {
			if (s->told[i].end_ns / bucket_ns != b)
				continue;
			expect_one(&e, &bucket, &s->told[i].node.usage);
			histogram_merge(&e.cpu_hist, &s->told[i].node.cpu_hist);
			histogram_merge(&e.mem_hist, &s->told[i].node.mem_hist);
			if (s->told[i].start_ns < e.start_ns)
				e.start_ns = s->told[i].start_ns;
			if (s->told[i].end_ns > e.end_ns)
				e.end_ns = s->told[i].end_ns;
		}
		if (bucket.samples)
			sum_add(&e.mem_buckets, 1, bucket.weight, bucket.first / bucket.weight, 0,
				sum_mean(&bucket), bucket.max);
	}
	return e;
}

static void check_close(const char *what, uint32_t seed, double got, double want, double scale)
{
	if (fabs(got - want) <= EXACT * fabs(scale))
		return;
	fail_msg("seed %u: %s is %.9g, one pass gives %.9g", seed, what, got, want);
}

/* The deviation's error is that of float32 means, so it is relative to the mean. */
static void check_stats(const char *what, uint32_t seed, const struct window_stats *got,
			const struct sum *want)
{
	assert_true(got->known);
	assert_int_equal(got->samples, want->samples);
	check_close(what, seed, got->mean, sum_mean(want), sum_mean(want));
	check_close(what, seed, got->stddev, sum_stddev(want), sum_mean(want));
	check_close(what, seed, got->min, want->min, want->min);
	check_close(what, seed, got->max, want->max, want->max);
}

/* step: what a share may be off. */
static void check_counts(uint32_t seed, const struct window_counts *got,
			 const struct expected *want, double step)
{
	double seconds = (double)want->seconds;

	assert_true(got->throttle_known && got->oom_known);
	assert_int_equal(got->oom_kills, want->oom_kills);
	check_close("seconds", seed, got->seconds, seconds, seconds);
	check_close("throttled", seed, got->throttled_seconds, (double)want->throttled, seconds);
	check_close("ratio", seed, got->throttled_ratio,
		    (double)(want->throttled_periods / want->periods), 1);
	for (int p = 0; p < PRESSURES; p++)
		if (p != CONTENTION_MEMORY)
			check_close("pressure", seed, got->pressure[p],
				    (double)(want->pressure[p] / want->seconds), step / EXACT);
	assert_true(isnan(got->pressure[CONTENTION_MEMORY]));
}

static void check_pod(uint32_t seed, const struct story *s, int64_t as_of_ns,
		      const struct pod_windows *w)
{
	static const int last[WINDOWS] = {10, 20, 30};
	struct window_set got[WINDOWS];

	pod_windows_read(w, as_of_ns, got);
	for (int i = 0; i < WINDOWS; i++) {
		struct expected want = expect(s, as_of_ns, 30 * SEC, last[i]);

		check_stats("cpu", seed, &got[i].cpu_milli, &want.cpu);
		check_stats("memory", seed, &got[i].mem_bytes, &want.mem_buckets);
		if (i == WINDOW_5M)
			check_counts(seed, &got[i].counts, &want, POD_STEP);
		assert_false(got[i].cpu_milli.percentiles);
		assert_in_range(want.start_ns - got[i].cpu_milli.start_ns, 0, SEC / 16);
		assert_in_range(got[i].cpu_milli.end_ns - want.end_ns, 0, SEC / 1000);
	}
}

static void check_node(uint32_t seed, const struct story *s, int64_t as_of_ns,
		       const struct node_windows *w)
{
	static const int last[WINDOWS] = {20, 40, 60};
	struct window_set got[WINDOWS];

	node_windows_read(w, as_of_ns, got);
	for (int i = 0; i < WINDOWS; i++) {
		const struct window_stats *cpu = &got[i].cpu_milli, *mem = &got[i].mem_bytes;
		struct expected want = expect(s, as_of_ns, 15 * SEC, last[i]);

		check_stats("cpu", seed, cpu, &want.cpu);
		check_stats("memory", seed, mem, &want.mem);
		check_counts(seed, &got[i].counts, &want, EXACT);
		assert_int_equal(cpu->start_ns, want.start_ns);
		assert_int_equal(cpu->end_ns, want.end_ns);
		assert_true(cpu->percentiles && mem->percentiles);
		assert_false(got[i].working_set_bytes.percentiles);
		check_close("p95", seed, cpu->p95,
			    histogram_quantile(&want.cpu_hist, 0.95, HISTOGRAM_CPU_X0, cpu->min,
					       cpu->max),
			    cpu->max);
		check_close("memory p50", seed, mem->p50,
			    histogram_quantile(&want.mem_hist, 0.50, HISTOGRAM_MEMORY_X0, mem->min,
					       mem->max),
			    mem->max);
		assert_true(cpu->p50 <= cpu->p95 && cpu->p95 <= cpu->p99 && cpu->p99 <= cpu->max);
	}
}

/* Told what `told` has in that order, both kinds of windows say what `s` says. */
static void check_story(uint32_t seed, const struct story *s, const struct story *told)
{
	struct pod_windows *pod = pod_hears(told);
	struct node_windows *node = node_hears(told);

	check_pod(seed, s, last_end(s), pod);
	check_node(seed, s, last_end(s), node);
	pod_windows_free(pod);
	node_windows_free(node);
}

static void windows_equal_one_pass(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct story *s = random_story(seed);

		check_story(seed, s, s);
		free(s);
	}
}

/*
 * As they pass by: read after every interval, so that every alignment of buckets and every
 * overwriting is met.
 */
static void windows_slide(void **state)
{
	struct story *s = random_story(77), *so_far = story_new();
	struct pod_windows *pod = pod_windows_new();
	struct node_windows *node = node_windows_new();

	(void)state;
	for (size_t i = 0; i < s->count; i++) {
		so_far->told[so_far->count++] = s->told[i];
		pod_windows_add(pod, &s->told[i].node.usage, s->told[i].start_ns,
				s->told[i].end_ns);
		node_windows_add(node, &s->told[i].node, s->told[i].start_ns, s->told[i].end_ns);
		check_pod(77, so_far, s->told[i].end_ns, pod);
		check_node(77, so_far, s->told[i].end_ns, node);
	}
	pod_windows_free(pod);
	node_windows_free(node);
	free(s);
	free(so_far);
}

/* The same story with neighbours and some far ones swapped. */
static void order_does_not_matter(void **state)
{
	struct story *s = random_story(5), *mixed = story_new();

	(void)state;
	*mixed = *s;
	for (size_t i = 0; i + 7 < s->count; i += 8) {
		mixed->told[i] = s->told[i + 7];
		mixed->told[i + 7] = s->told[i];
		mixed->told[i + 2] = s->told[i + 3];
		mixed->told[i + 3] = s->told[i + 2];
	}
	check_story(5, s, mixed);
	free(s);
	free(mixed);
}

/* The newest first: most of the others come to a bucket that is old already. */
static void backwards_is_the_same(void **state)
{
	struct story *s = random_story(31), *backwards = story_new();

	(void)state;
	for (size_t i = s->count; i > 0; i--)
		backwards->told[backwards->count++] = s->told[i - 1];
	check_story(31, s, backwards);
	free(s);
	free(backwards);
}

/* After a silence of any length just what still is in the windows is there. */
static void silence_leaves_nothing_behind(void **state)
{
	static const int silences[] = {1,  9,  10, 11, 12, 19, 20, 21,
				       29, 30, 31, 32, 41, 42, 43, 1000};

	(void)state;
	for (size_t i = 0; i < sizeof(silences) / sizeof(silences[0]); i++) {
		struct story *s = random_story(11);
		int64_t again = last_end(s) + silences[i] * 30 * SEC;
		uint32_t seed = (uint32_t)i;

		tell(s, again - 5 * SEC, again, &seed);
		check_story((uint32_t)i, s, s);
		free(s);
	}
}

static void assert_same_bits(const struct window_stats *a, const struct window_stats *b)
{
	double left[] = {a->mean, a->stddev, a->min, a->max, a->p50, a->p95, a->p99};
	double right[] = {b->mean, b->stddev, b->min, b->max, b->p50, b->p95, b->p99};

	assert_memory_equal(left, right, sizeof(left));
}

/*
 * A service that starts anew and is told only what the rings still reach has the very same windows.
 */
static void restart_gives_the_same_bits(void **state)
{
	struct story *s = random_story(9), *rest = story_new();
	struct node_windows *node[2];
	struct pod_windows *pod[2];
	struct window_set n[2][WINDOWS], p[2][WINDOWS];

	(void)state;
	for (size_t i = 0; i < s->count; i++)
		if (s->told[i].end_ns > last_end(s) - 930 * SEC)
			rest->told[rest->count++] = s->told[i];
	assert_true(rest->count < s->count);
	for (int i = 0; i < 2; i++) {
		node[i] = node_hears(i ? rest : s);
		pod[i] = pod_hears(i ? rest : s);
		node_windows_read(node[i], last_end(s), n[i]);
		pod_windows_read(pod[i], last_end(s), p[i]);
		node_windows_free(node[i]);
		pod_windows_free(pod[i]);
	}
	for (int w = 0; w < WINDOWS; w++) {
		assert_same_bits(&n[0][w].cpu_milli, &n[1][w].cpu_milli);
		assert_same_bits(&n[0][w].mem_bytes, &n[1][w].mem_bytes);
		assert_same_bits(&p[0][w].cpu_milli, &p[1][w].cpu_milli);
		assert_same_bits(&p[0][w].working_set_bytes, &p[1][w].working_set_bytes);
	}
	free(s);
	free(rest);
}

/*
 * Offsets in seconds from T0; which of the three windows hold the one interval added, read at
 * as_of.
 */
static void reach_of_windows(void **state)
{
	static const struct {
		const char *why;
		int end, as_of;
		bool pod[WINDOWS], node[WINDOWS];
	} cases[] = {
		{"same bucket", 1, 14, {1, 1, 1}, {1, 1, 1}},
		{"end on a border belongs to the later bucket", 30, 29, {0, 0, 0}, {0, 0, 0}},
		{"a bucket of the future", 45, 14, {0, 0, 0}, {0, 0, 0}},
		{"pod: later than as_of in its bucket", 20, 10, {1, 1, 1}, {0, 0, 0}},
		{"the oldest of 5 minutes", 0, 314, {1, 1, 1}, {1, 1, 1}},
		{"node: out of 5 minutes by a bucket", 0, 315, {1, 1, 1}, {0, 1, 1}},
		{"out of 5 minutes", 0, 330, {0, 1, 1}, {0, 1, 1}},
		{"the oldest of 10 minutes", 0, 614, {0, 1, 1}, {0, 1, 1}},
		{"out of 10 minutes", 0, 630, {0, 0, 1}, {0, 0, 1}},
		{"the oldest of 15 minutes", 0, 914, {0, 0, 1}, {0, 0, 1}},
		{"out of 15 minutes", 0, 930, {0, 0, 0}, {0, 0, 0}},
		{"long ago", 0, 100000, {0, 0, 0}, {0, 0, 0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story *s = story_new();
		struct window_set pod[WINDOWS], node[WINDOWS];
		struct pod_windows *p;
		struct node_windows *n;
		uint32_t seed = 1;

		tell(s, T0 + (cases[i].end - 5) * SEC, T0 + cases[i].end * SEC, &seed);
		p = pod_hears(s);
		n = node_hears(s);
		pod_windows_read(p, T0 + cases[i].as_of * SEC, pod);
		node_windows_read(n, T0 + cases[i].as_of * SEC, node);
		for (int w = 0; w < WINDOWS; w++)
			if (pod[w].cpu_milli.known != cases[i].pod[w] ||
			    node[w].cpu_milli.known != cases[i].node[w])
				fail_msg("%s: window %s", cases[i].why, window_name[w]);
		pod_windows_free(p);
		node_windows_free(n);
		free(s);
	}
}

/*
 * A node that speaks from T0 on for `first` seconds, then again until `last`, for `again` seconds.
 */
static void tell_with_gap(struct node_windows *w, int first, int last, int again)
{
	struct node_sample n = {.usage.have = USAGE_MEMORY, .usage.seconds = 5};

	for (int end = 5; end <= first; end += 5)
		node_windows_add(w, &n, T0 + (end - 5) * SEC, T0 + end * SEC);
	for (int end = last - again + 5; end <= last; end += 5)
		node_windows_add(w, &n, T0 + (end - 5) * SEC, T0 + end * SEC);
}

static void covered_windows_are_measured_too(void **state)
{
	static const struct {
		int first, last, again;
		bool covered[WINDOWS];
	} cases[] = {
		{0, 265, 265, {false, false, false}}, {0, 270, 270, {true, false, false}},
		{0, 570, 570, {true, true, false}},   {0, 870, 870, {true, true, true}},
		{30, 880, 5, {false, false, false}},  {30, 880, 300, {true, false, false}},
		{100, 880, 350, {true, false, true}}, {90, 880, 350, {true, false, false}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node_windows *w = node_windows_new();
		struct window_set set[WINDOWS];

		tell_with_gap(w, cases[i].first, cases[i].last, cases[i].again);
		node_windows_read(w, T0 + cases[i].last * SEC, set);
		for (int k = 0; k < WINDOWS; k++)
			if (window_is_covered(&set[k], (enum window)k) != cases[i].covered[k])
				fail_msg("case %zu, %s", i, window_name[k]);
		node_windows_free(w);
	}
	assert_false(window_is_covered(&(struct window_set){0}, WINDOW_5M));
}

/*
 * known: 'c' CPU, 'm' memory, 'b' both, '-' nothing; of 5m, 10m, 15m. Covered: as long as its name
 * says.
 */
static void the_longest_window_speaks(void **state)
{
	static const struct {
		const char *known;
		int seconds; /* of history */
		int window; /* -2: none */
		int set; /* which one it is */
	} cases[] = {
		{"bbb", 900, WINDOW_15M, WINDOW_15M}, {"bbb", 869, WINDOW_10M, WINDOW_10M},
		{"bbb", 569, WINDOW_5M, WINDOW_5M},   {"bbb", 269, -1, WINDOW_5M},
		{"-bb", 100, -1, WINDOW_10M},	      {"---", 900, -2, 0},
		{"ccc", 900, WINDOW_15M, WINDOW_15M}, {"mmm", 600, WINDOW_10M, WINDOW_10M},
		{"bbc", 900, WINDOW_10M, WINDOW_10M}, {"ccb", 900, WINDOW_15M, WINDOW_15M},
		{"ccb", 100, -1, WINDOW_15M},	      {"-cc", 100, -1, WINDOW_10M},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct window_set sets[WINDOWS] = {0};
		const struct window_set *got;
		int window;

		for (int k = 0; k < WINDOWS; k++) {
			struct window_set *s = &sets[k];
			char known = cases[i].known[k];
			int64_t start = T0 - cases[i].seconds * SEC;

			s->cpu_milli.known = known == 'c' || known == 'b';
			s->mem_bytes.known = known == 'm' || known == 'b';
			s->cpu_milli.start_ns = s->mem_bytes.start_ns = start;
			s->cpu_milli.end_ns = s->mem_bytes.end_ns = T0;
			s->counts.seconds = cases[i].seconds;
		}
		got = window_longest(sets, &window);
		if (cases[i].window == -2 ? got != NULL
					  : got != &sets[cases[i].set] || window != cases[i].window)
			fail_msg("case %zu: window %d", i, window);
	}
}

static void assert_nothing_known(const struct window_set *w)
{
	assert_false(w->cpu_milli.known || w->mem_bytes.known || w->working_set_bytes.known);
	assert_true(w->cpu_milli.mean == 0 && w->cpu_milli.samples == 0 && w->counts.seconds == 0);
	assert_false(w->counts.throttle_known || w->counts.oom_known);
	assert_true(isnan(w->counts.throttled_ratio));
	for (int p = 0; p < PRESSURES; p++)
		assert_true(isnan(w->counts.pressure[p]));
}

static void empty_windows_know_nothing(void **state)
{
	struct pod_windows *p = pod_windows_new();
	struct node_windows *n = node_windows_new();
	struct window_set out[WINDOWS];
	struct node_sample nothing = {0};

	(void)state;
	nothing.cpu_hist.count[3] = 1;
	pod_windows_add(p, &nothing.usage, T0 - 5 * SEC, T0);
	pod_windows_add(p, &nothing.usage, -5 * SEC, -1);
	node_windows_add(n, &nothing, T0 - 5 * SEC, T0);
	for (int64_t as_of = 0; as_of <= T0; as_of += T0) {
		pod_windows_read(p, as_of, out);
		assert_nothing_known(&out[WINDOW_5M]);
		for (int i = WINDOW_10M; i < WINDOWS; i++)
			assert_false(out[i].cpu_milli.known || out[i].mem_bytes.known ||
				     out[i].working_set_bytes.known);
		node_windows_read(n, as_of, out);
		assert_nothing_known(&out[WINDOW_15M]);
	}
	pod_windows_free(p);
	node_windows_free(n);
	pod_windows_free(NULL);
	node_windows_free(NULL);
}

/* What was not measured stays unknown beside what was. */
static void unmeasured_members_stay_unknown(void **state)
{
	struct pod_windows *p = pod_windows_new();
	struct window_set out[WINDOWS];
	struct usage u = {
		.have = USAGE_MEMORY | USAGE_CONTENTION_MEMORY | USAGE_CPU,
		.mem_bytes = {1000, 1100, 1050},
		.working_set_bytes = {7, 7, 7},
		.contention_mem_ns = 3000000000ull,
		.oom_kills = 3,
	};

	(void)state;
	pod_windows_add(p, &u, T0, T0 + 5 * SEC); /* gauges of no time are nothing */
	pod_windows_read(p, T0 + 5 * SEC, out);
	assert_false(out[0].mem_bytes.known);
	u.seconds = 5;
	pod_windows_add(p, &u, T0, T0 + 5 * SEC);
	pod_windows_read(p, T0 + 5 * SEC, out);
	assert_false(out[0].cpu_milli.known); /* no samples */
	assert_false(out[0].working_set_bytes.known);
	assert_true(out[0].mem_bytes.known);
	assert_true(out[0].mem_bytes.mean == 1000 && out[0].mem_bytes.max == 1100);
	assert_true(out[0].mem_bytes.stddev == 0 && out[0].mem_bytes.samples == 1);
	assert_false(out[0].counts.oom_known);
	assert_int_equal(out[0].counts.oom_kills, 0);
	check_close("3 s of 5 s", 0, out[0].counts.pressure[CONTENTION_MEMORY], 0.6,
		    POD_STEP / EXACT);
	assert_true(isnan(out[0].counts.pressure[CONTENTION_CPU]));
	assert_true(isnan(out[0].counts.pressure[STALL_MEMORY]));
	pod_windows_free(p);
}

/*
 * Pressure is kept without room for its bits: nothing, all and none of the time must come back as
 * such.
 */
static void shares_of_pods_keep_their_ends(void **state)
{
	static const struct {
		double seconds, share;
	} cases[] = {{0, 0}, {5, 1}, {7, 1}, {2.5, 0.5}, {0.0001, 0.00002}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pod_windows *p = pod_windows_new();
		struct window_set out[WINDOWS];
		struct usage u = {
			.have = USAGE_STALL_MEMORY,
			.seconds = 5,
			.stall_cpu_ns = SEC, /* not measured */
			.stall_mem_ns = (uint64_t)(cases[i].seconds * SEC),
		};

		pod_windows_add(p, &u, T0, T0 + 5 * SEC);
		pod_windows_read(p, T0 + 5 * SEC, out);
		assert_true(isnan(out[0].counts.pressure[STALL_CPU]));
		assert_true(out[0].counts.seconds == 5);
		check_close("share", (uint32_t)i, out[0].counts.pressure[STALL_MEMORY],
			    cases[i].share,
			    cases[i].share == (int)cases[i].share ? 0 : 0.5 / 65534 / EXACT);
		pod_windows_free(p);
	}
}

static void older_than_the_ring_is_ignored(void **state)
{
	struct story *s = story_new();
	uint32_t seed = 3;
	struct pod_windows *p;
	struct node_windows *n;

	(void)state;
	tell(s, T0 + 930 * SEC, T0 + 935 * SEC, &seed);
	p = pod_hears(s);
	n = node_hears(s);
	tell(s, T0, T0 + 5 * SEC, &seed); /* shares slots with the first */
	pod_windows_add(p, &s->told[1].node.usage, T0, T0 + 5 * SEC);
	node_windows_add(n, &s->told[1].node, T0, T0 + 5 * SEC);
	s->count = 1;
	check_pod(3, s, last_end(s), p);
	check_node(3, s, last_end(s), n);
	pod_windows_free(p);
	node_windows_free(n);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_equal_one_pass),
		cmocka_unit_test(windows_slide),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(backwards_is_the_same),
		cmocka_unit_test(silence_leaves_nothing_behind),
		cmocka_unit_test(restart_gives_the_same_bits),
		cmocka_unit_test(reach_of_windows),
		cmocka_unit_test(covered_windows_are_measured_too),
		cmocka_unit_test(the_longest_window_speaks),
		cmocka_unit_test(empty_windows_know_nothing),
		cmocka_unit_test(unmeasured_members_stay_unknown),
		cmocka_unit_test(shares_of_pods_keep_their_ends),
		cmocka_unit_test(older_than_the_ring_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
