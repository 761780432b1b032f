/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demand of containers, from intervals to records and back from JSON: which record, what a day
 * later counts, what is apart, and what is not counted.
 */
#include "aggregator/state/workload_demand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/join.h"
#include "aggregator/state/usage.h"
#include "shared/demand.h"
#include "tests/model_fixture.h"
#include "tests/usage_story.h"

#define DAY_S 86400
#define UID   "00000000-0000-0000-0000-000000000001"
#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct scene {
	struct demand *demand;
	struct usage_state *usage;
	uint64_t sequence;
};

static int setup(void **state)
{
	static struct scene s;

	s = (struct scene){.demand = demand_new(), .usage = story_state()};
	usage_set_demand(s.usage, s.demand);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	usage_free(s->usage);
	demand_free(s->demand);
	return 0;
}

static void put_demand(struct interval *i, struct entry *e, double milli, uint32_t samples)
{
	struct histogram h = {0};

	h.count[histogram_bucket(milli, HISTOGRAM_CPU_X0)] = samples;
	e->demand_at = (uint32_t)i->demand.len;
	demand_encode(&h, &i->demand);
	e->demand_len = (uint16_t)(i->demand.len - e->demand_at);
}

/* Five seconds of a unit that ends then, with a working set of so many MiB. */
static struct interval *of_unit(struct scene *s, int end, double milli, float mib)
{
	struct interval *i = story_interval(++s->sequence, end - 5, end, 1);
	struct usage *u = &i->entries[0].usage;

	story_name(&i->entries[0], ENTITY_UNIT, "a.service");
	put_demand(i, &i->entries[0], milli, 50);
	u->have |= USAGE_WORKING_SET | USAGE_OOM | USAGE_THROTTLE;
	u->working_set_bytes.max = mib * 0x1p20F;
	u->periods = 50;
	u->throttled_periods = 10;
	return i;
}

static void tell(struct scene *s, struct interval *i)
{
	story_tell_ok(s->usage, 'a', i);
}

static struct demand_table *table(struct scene *s, int now)
{
	struct demand_table *t = demand_table(s->demand, T0 + now * SEC);

	assert_non_null(t);
	return t;
}

static double weight_of(const struct demand_weights *w, double milli)
{
	for (size_t i = 0; i < w->count; i++)
		if (demand_bucket(w, i) == histogram_bucket(milli, HISTOGRAM_CPU_X0))
			return w->weight[i];
	return 0;
}

static void assert_close(double value, double want)
{
	if (!(fabs(value - want) <= 1e-3 * want))
		fail_msg("%g, not %g", value, want);
}

static void a_day_counts_half_as_much_as_the_next(void **state)
{
	struct scene *s = *state;
	struct demand_table *t;
	const struct demand_record *r;

	tell(s, of_unit(s, 5, 100, 10));
	tell(s, of_unit(s, DAY_S + 5, 1000, 30));
	t = table(s, DAY_S + 5);
	r = t->of[0];
	assert_int_equal(t->count, 1);
	assert_string_equal(r->key, "/Unit/a.service");
	assert_string_equal(r->container, "");
	assert_close(weight_of(&r->cpu, 1000) / weight_of(&r->cpu, 100), 2);
	assert_true(r->days[r->seen_ns / (DAY_S * SEC) % DEMAND_DAYS].start_milli == 0);
	assert_close((double)r->measured_ns, 10e9);
	assert_close(r->throttled_periods / r->periods, 0.2);
	assert_int_equal(r->days[r->seen_ns / (DAY_S * SEC) % DEMAND_DAYS].peak_bytes, 30 << 20);
	demand_table_drop(t);
}

static void tables_do_not_change(void **state)
{
	struct scene *s = *state;
	struct demand_table *t;

	tell(s, of_unit(s, 5, 100, 10));
	t = table(s, 5);
	tell(s, of_unit(s, 10, 100, 20));
	assert_close(weight_of(&t->of[0]->cpu, 100), 5);
	demand_table_drop(t);
	t = table(s, 66);
	assert_close(weight_of(&t->of[0]->cpu, 100), 10);
	demand_table_drop(t);
}

static void starts_are_apart_and_nothing_is_above_the_machine(void **state)
{
	struct scene *s = *state;
	struct interval *i = of_unit(s, 5, 2000, 10);
	struct demand_table *t;

	i->entries[0].starting = true;
	tell(s, i);
	tell(s, of_unit(s, 10, 1e6, 10));
	t = table(s, 10);
	assert_true(fabs((double)t->of[0]->days[t->of[0]->seen_ns / (DAY_S * SEC) % DEMAND_DAYS]
					 .start_milli /
				 2000 -
			 1) < 0.05);
	assert_close(weight_of(&t->of[0]->cpu, 4000 * 1.05), 5);
	assert_int_equal(t->of[0]->cpu.count, 1);
	demand_table_drop(t);
}

/* Of an agent that tells none, and of values that cannot be. */
static void what_is_not_told_does_not_count(void **state)
{
	struct scene *s = *state;
	struct interval *i = of_unit(s, 5, 100, 10);
	struct demand_table *t;

	i->entries[0].demand_len = 0;
	tell(s, i);
	assert_null(demand_table(s->demand, T0 + 5 * SEC));
	i = of_unit(s, 10, 100, 10);
	i->entries[0].usage.cpu_milli.mean = 1e9F;
	tell(s, i);
	t = table(s, 70);
	assert_int_equal(t->of[0]->cpu.count, 0);
	demand_table_drop(t);
	i = of_unit(s, 75, 100, 10);
	i->entries[0].usage.seconds = 0;
	tell(s, i);
	t = table(s, 130);
	assert_int_equal(t->of[0]->cpu.count, 0);
	demand_table_drop(t);
}

/* A young table is made anew soon, an old one once a minute. */
static void tables_age(void **state)
{
	static const struct {
		int s;
		double seconds; /* in the table */
	} steps[] = {{5, 5}, {10, 10}, {300, 15}, {355, 15}, {365, 25}};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct demand_table *t;

		tell(s, of_unit(s, steps[i].s, 100, 10));
		t = table(s, steps[i].s);
		assert_close((double)t->of[0]->measured_ns / SEC, steps[i].seconds);
		demand_table_drop(t);
	}
}

static void write_shard(const struct demand_table *t, int shard, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	demand_write(t, shard, &w);
}

static void write(const struct demand_table *t, struct buf *out)
{
	write_shard(t, -1, out);
}

static struct demand_day *day_of(const struct demand_table *t, int days)
{
	struct demand_record *r = t->of[0];

	return &r->days[((T0 + 5 * SEC) / (DAY_S * SEC) + days) % DEMAND_DAYS];
}

/* After 500 half-lives the sums have a new epoch; of days the newest four remain. */
static void old_demand_fades(void **state)
{
	struct scene *s = *state;
	const int later = 501 * DAY_S + 5;
	struct interval *i;
	struct demand_table *t;

	tell(s, of_unit(s, 5, 100, 10));
	tell(s, of_unit(s, later, 1000, 30));
	t = table(s, later);
	assert_int_equal(t->of[0]->epoch_ns, T0 + later * SEC);
	assert_close(weight_of(&t->of[0]->cpu, 1000), 5);
	assert_true(weight_of(&t->of[0]->cpu, 100) < 1e-9);
	demand_table_drop(t);
	/* A node whose clock is four days behind: its peak and its start have no place any more. */
	for (int starting = 0; starting < 2; starting++) {
		i = of_unit(s, later - 4 * DAY_S + 5 * starting, 1000, 90);
		i->sequence = (uint64_t)starting + 1;
		i->entries[0].starting = starting;
		assert_int_equal(story_tell(s->usage, "m", 'm', i, later - 4 * DAY_S + 10).verdict,
				 USAGE_APPLIED);
	}
	t = table(s, later + 60);
	assert_int_equal(day_of(t, 501)->peak_bytes, 30 << 20);
	assert_true(day_of(t, 501)->start_milli == 0);
	assert_int_equal(t->of[0]->seen_ns, T0 + later * SEC);
	demand_table_drop(t);
}

static void the_peak_is_the_working_set_or_memory(void **state)
{
	static const struct {
		uint32_t without;
		int mib;
	} rows[] = {{0, 10}, {USAGE_WORKING_SET, 1024}, {USAGE_WORKING_SET | USAGE_MEMORY, 1024}};
	struct scene *s = *state;
	struct demand_table *t;

	for (int n = 0; n < 3; n++) {
		struct interval *i = of_unit(s, n * 60 + 5, 100, 10);

		i->entries[0].usage.have &= ~rows[n].without;
		i->entries[0].usage.mem_bytes.max = 1024 * 0x1p20F;
		tell(s, i);
		t = table(s, n * 60 + 5);
		assert_int_equal(day_of(t, 0)->peak_bytes, rows[n].mib << 20);
		demand_table_drop(t);
	}
}

/* In a rising and a falling order, also in a table that others hold. */
static void all_levels_have_a_weight(void **state)
{
	struct scene *s = *state;
	struct demand_table *before = NULL, *t;

	for (int n = 0; n < 24; n++) {
		double milli = 10 * pow(1.2, n % 2 ? n : 50 - n);
		struct interval *i = of_unit(s, n * 60 + 5, milli, 10);

		i->entries[0].starting = n == 0;
		i->node.cpu_capacity_milli = 1000000;
		tell(s, i);
		t = table(s, n * 60 + 5);
		assert_int_equal(t->of[0]->cpu.count, n);
		if (n)
			assert_true(weight_of(&t->of[0]->cpu, milli) > 0);
		demand_table_drop(before);
		before = t;
	}
	demand_table_drop(before);
}

/* Each record is in one of them; without any they are empty. */
static void shards_have_all(void **state)
{
	struct scene *s = *state;
	struct demand_table *t = NULL;
	struct buf all = BUF_INIT;
	size_t empty = 0, count = 0;

	tell(s, of_unit(s, 5, 100, 10));
	for (int shard = 0; shard < DEMAND_SHARDS; shard++) {
		write_shard(NULL, shard, &all);
		t = table(s, 5);
		write_shard(t, shard, &all);
		demand_table_drop(t);
	}
	for (const char *at = all.data; (at = strstr(at, "[]")); at++)
		empty++;
	for (const char *at = all.data; (at = strstr(at, "a.service")); at++)
		count++;
	assert_int_equal(empty, 2 * DEMAND_SHARDS - 1);
	assert_int_equal(count, 1);
	buf_fini(&all);
}

static struct interval *killed(struct scene *s, int end, int64_t limit_bytes)
{
	struct interval *i = of_unit(s, end, 1000, 30);

	i->entries[0].usage.oom_kills = 1;
	i->entries[0].limits.mem_bytes = limit_bytes;
	return i;
}

static void kills_have_the_limit_of_their_time(void **state)
{
	static const struct {
		int64_t limit_bytes;
		double want;
	} rows[] = {{LIMIT_NONE, 0}, {64 << 20, 64 << 20}, {32 << 20, 64 << 20}};
	struct scene *s = *state;

	for (int n = 0; n < 3; n++) {
		struct demand_table *t;

		tell(s, killed(s, n * 60 + 5, rows[n].limit_bytes));
		t = table(s, n * 60 + 5);
		assert_int_equal(day_of(t, 0)->oom_kills, n + 1);
		assert_true((double)day_of(t, 0)->oom_limit_bytes == rows[n].want);
		demand_table_drop(t);
	}
	/* A limit that is raised later was not in force. */
	tell(s, of_unit(s, 185, 1000, 30));
	for (int n = 0; n < 2; n++) {
		struct interval *i = of_unit(s, 190 + 60 * n, 1000, 30);
		struct demand_table *t;

		i->entries[0].limits.mem_bytes = 8LL << 30;
		tell(s, i);
		t = table(s, 190 + 60 * n);
		assert_true(day_of(t, 0)->oom_limit_bytes == (float)(64 << 20));
		demand_table_drop(t);
	}
}

static void it_survives_a_restart(void **state)
{
	struct scene *s = *state;
	struct demand *again = demand_new();
	struct usage_state *usage = story_state();
	struct buf text = BUF_INIT, back = BUF_INIT;
	struct demand_table *t;
	struct error error;

	tell(s, of_unit(s, 5, 100, 10));
	tell(s, killed(s, DAY_S + 5, 64 << 20));
	t = table(s, DAY_S + 5);
	write(t, &text);
	assert_non_null(strstr(text.data, "\"oomLimits\":["));
	demand_table_drop(t);
	for (int twice = 0; twice < 2; twice++)
		assert_int_equal(demand_read_text(again, text.data, text.len, &error), 0);
	t = demand_table(again, T0 + (DAY_S + 5) * SEC);
	write(t, &back);
	assert_string_equal(text.data, back.data);
	demand_table_drop(t);
	/* The agent sends again what was counted, and what was not. */
	usage_set_demand(usage, again);
	s->sequence = 0;
	story_tell_ok(usage, 'a', of_unit(s, DAY_S + 5, 1000, 30));
	story_tell_ok(usage, 'a', of_unit(s, DAY_S + 10, 1000, 30));
	t = demand_table(again, T0 + (DAY_S + 70) * SEC);
	assert_close(weight_of(&t->of[0]->cpu, 1000), 10);
	demand_table_drop(t);
	usage_free(usage);
	/* Nobody adds to it: it is forgotten after 14 days. */
	t = demand_table(again, T0 + (15 * DAY_S + 10) * SEC);
	assert_int_equal(t->count, 1);
	demand_table_drop(t);
	assert_null(demand_table(again, T0 + (15 * DAY_S + 71) * SEC));
	demand_free(again);
	demand_free(NULL);
	buf_fini(&text);
	buf_fini(&back);
}

static void what_cannot_be_is_refused(void **state)
{
#define OF(key, container, seen, seconds)                                                          \
	"[{\"key\":" key ",\"container\":" container ",\"seen\":" seen                             \
	",\"measuredSeconds\":" seconds ","
#define HEAD OF("\"a/Deployment/b\"", "\"c\"", "1", "1")
#define REST "\"samples\":1,\"periods\":0,\"throttledPeriods\":0"
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{"[]", true},
		{"{}", false},
		{"[1]", false},
		{HEAD REST "}]", true},
		{HEAD REST ",\"cpu\":[1,2,3,4],\"days\":[20000,1,0,5]}]", true},
		{HEAD REST ",\"cpu\":[1,2,3]}]", false},
		{HEAD REST ",\"cpu\":[3,2,3,4]}]", false},
		{HEAD REST ",\"cpu\":[180,2]}]", false},
		{HEAD REST ",\"cpu\":[1.5,2]}]", false},
		{HEAD REST ",\"cpu\":[1,-2]}]", false},
		{HEAD REST ",\"days\":[20000,1,2]}]", false},
		{HEAD REST ",\"days\":[20000,1,2,3],\"oomLimits\":[20000,4,19996,5]}]", true},
		{HEAD REST ",\"oomLimits\":[20000]}]", false},
		{HEAD REST ",\"oomLimits\":[20000,-1]}]", false},
		{HEAD REST ",\"oomLimits\":[null,1]}]", false},
		{HEAD "\"samples\":1}]", false},
		{HEAD "\"samples\":1,\"periods\":1}]", false},
		{HEAD "\"samples\":-1}]", false},
		{HEAD REST ",\"cpu\":[1,0,2,1],\"days\":[20000,1,0,5,19996,1,0,5]}]", true},
		{OF("1", "\"c\"", "1", "1") REST "}]", false},
		{OF("\"\"", "\"c\"", "1", "1") REST "}]", false},
		{OF("\"\xff\"", "\"c\"", "1", "1") REST "}]", false},
		{OF("\"a\"", "1", "1", "1") REST "}]", false},
		{OF("\"a\"", "\"" ID ID ID ID "\"", "1", "1") REST "}]", false},
		{OF("\"a\"", "\"c\"", "null", "1") REST "}]", false},
		{OF("\"a\"", "\"c\"", "9000000001", "1") REST "}]", false},
		{OF("\"a\"", "\"c\"", "1", "\"1\"") REST "}]", false},
		{OF("\"a\"", "\"c\"", "1", "9000000001") REST "}]", false},
	};
	struct scene *s = *state;
	struct error error;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = cases[i].text;
		int rc = demand_read_text(s->demand, text, strlen(text), &error);

		if ((rc == 0) != cases[i].good)
			fail_msg("%s: %d", text, rc);
	}
}

/* A container is its workload's, by what the API says of its pod; one that it does not know counts nowhere. */
static void containers_are_those_of_workloads(void **state)
{
	static const char pod_json[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"shop\","
		"\"name\":"
		"\"web-5d4f8c7b9-x\",\"uid\":\"" UID
		"\",\"labels\":{\"pod-template-hash\":\"5d4f8c7b9\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
		"\"web-5d4f8c7b9\",\"uid\":\"o\",\"controller\":true}]},\"spec\":{\"nodeName\":"
		"\"n\","
		"\"containers\":[{\"name\":\"app\"}]},\"status\":{\"phase\":\"Running\","
		"\"containerStatuses\":"
		"[{\"name\":\"app\",\"containerID\":\"containerd://" ID "\"}]}}";
	struct scene *s = *state;
	struct model *model = model_new();
	struct join *join = join_new();
	struct interval *i = story_interval(1, 0, 5, 3);
	struct demand_table *t;

	join_set_demand(join, s->demand);
	model_put(model, model_fixture_node("n", 4, 8));
	model_put(model, model_fixture_object(OBJECT_POD, pod_json));
	view_drop(join_view(join, NULL, 0, model_cluster(model), T0));
	story_name(&i->entries[0], ENTITY_POD, "kubepods/pod");
	memcpy(i->entries[0].entity->pod_uid, UID, POD_UID_LEN);
	for (int c = 1; c < 3; c++) { /* the other one is sought again and again */
		struct entity *e =
			story_name(&i->entries[c], ENTITY_CONTAINER, c == 1 ? "app" : "sandbox");

		e->parent = 1;
		memcpy(e->pod_uid, UID, POD_UID_LEN);
		memcpy(e->container_id, ID, CONTAINER_ID_LEN);
		e->container_id[0] = c == 1 ? '0' : 'f';
		put_demand(i, &i->entries[c], 100, 50);
	}
	tell(s, i);
	for (int n = 2; n < 100; n++) {
		i = story_interval((uint64_t)n, n * 5 - 5, n * 5, 3);
		i->full = false;
		for (int c = 0; c < 3; c++) {
			i->entries[c].entity = NULL;
			if (c)
				put_demand(i, &i->entries[c], 100, 50);
		}
		tell(s, i);
	}
	t = table(s, 500);
	assert_int_equal(t->count, 1);
	assert_string_equal(t->of[0]->key, "shop/Deployment/web");
	assert_string_equal(t->of[0]->container, "app");
	demand_table_drop(t);
	join_free(join);
	model_free(model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_day_counts_half_as_much_as_the_next),
		TEST(tables_do_not_change),
		TEST(starts_are_apart_and_nothing_is_above_the_machine),
		TEST(what_is_not_told_does_not_count),
		TEST(tables_age),
		TEST(kills_have_the_limit_of_their_time),
		TEST(it_survives_a_restart),
		TEST(old_demand_fades),
		TEST(the_peak_is_the_working_set_or_memory),
		TEST(all_levels_have_a_weight),
		TEST(shards_have_all),
		TEST(what_cannot_be_is_refused),
		TEST(containers_are_those_of_workloads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
