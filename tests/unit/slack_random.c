/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slack in random clusters. Small crowded ones, full of rules, are held against the checker, which
 * shares no code with the placement core; in a large one pods come and go, and no placeholder may
 * move without a cause.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/model_fixture.h"
#include "tests/place_world.h"
#include "tests/sanitized.h"
#include "tests/slack_fixture.h"
#include "tests/slack_replay.h"

enum { WORLDS = RANDOM_CASES(100), CHANGES = 12 };

/* --- small clusters, against the checker */

/* Some pods ask for slack. */
static void annotate(struct place_world *w, struct model *m, size_t pod)
{
	static const char *const asks[] = {"1", "2", "3", "100%", "shared"};
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(w->pods[pod], "metadata"), *to;
	char *text;

	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "annotations");
	to = cJSON_AddObjectToObject(metadata, "annotations");
	cJSON_AddStringToObject(to, SLACK_ANNOTATION, asks[place_world_draw(w, 5)]);
	text = cJSON_PrintUnformatted(w->pods[pod]);
	model_put(m, model_fixture_object(OBJECT_POD, text));
	cJSON_free(text);
}

static struct {
	size_t placed, unplaced, pushed_out, displaced;
} seen;

static void count_seen(const struct slack_result *r)
{
	seen.placed += r->placed_count;
	for (size_t i = 0; i < r->class_count; i++)
		seen.unplaced += r->classes[i].unplaced;
	for (size_t i = 0; i < r->move_count; i++) {
		seen.pushed_out += r->moves[i].cause == SLACK_PUSHED_OUT;
		seen.displaced += r->moves[i].cause == SLACK_DISPLACED;
	}
}

struct trial {
	struct slack_state *state;
	struct place *place;
	struct slack_result result;
};

static void step(struct trial *t, struct view *v, int64_t now_ns)
{
	struct slack_options o;
	struct place_options po;
	struct error error = {""};

	slack_options_default(&o);
	o.rate_ppm = 150000;
	o.unneeded_ns = 0;
	place_options_default(&po);
	po.now_ns = now_ns;
	if (t->place)
		place_update(t->place, v, now_ns);
	else
		t->place = place_new(v, &po);
	slack_result_fini(&t->result);
	assert_int_equal(slack_step(t->state, t->place, v, now_ns, &o, &t->result, &error), 0);
	assert_true(place_is_consistent(t->place, &error));
	slack_fixture_check(v, &t->result, now_ns);
	count_seen(&t->result);
}

static void end(struct trial *t)
{
	slack_result_fini(&t->result);
	place_free(t->place);
	slack_state_free(t->state);
}

/* Two who are told of the same world in another order must come to the same. */
static void run_world(uint64_t seed)
{
	struct trial one = {.state = slack_state_new()}, other = {.state = slack_state_new()};
	struct slack_replay *replay = slack_replay_new();
	struct model *m, *shuffled;
	struct place_world w;

	place_world_init(&w, seed);
	m = place_world_model(&w, seed);
	for (size_t i = 0; i < w.pod_count; i++)
		if (place_world_chance(&w, 20))
			annotate(&w, m, i);
	for (int change = 0; change < CHANGES; change++) {
		struct view *v = place_world_view(&w, m), *second;

		shuffled = place_world_model(&w, seed + 1000 + (uint64_t)change);
		second = place_world_view(&w, shuffled);
		step(&one, v, w.now_ns);
		step(&other, second, w.now_ns);
		assert_string_equal(one.result.narration.data, other.result.narration.data);
		slack_replay_step(replay, &w, &one.result);
		/* The same again moves nobody. */
		step(&one, v, w.now_ns);
		if (one.result.move_count)
			fail_msg("world %llu: what stood moves\n%s\n%s", (unsigned long long)seed,
				 other.result.narration.data, one.result.narration.data);
		step(&other, second, w.now_ns);
		view_drop(v);
		view_drop(second);
		model_free(shuffled);
		place_world_change(&w, m);
	}
	end(&one);
	end(&other);
	slack_replay_free(replay);
	model_free(m);
	place_world_fini(&w);
}

static void placements_are_legal_and_do_not_depend_on_order(void **state)
{
	const char *first = getenv("SEED"), *worlds = getenv("WORLDS");
	uint64_t seed = first ? strtoull(first, NULL, 10) : 1;

	(void)state;
	for (uint64_t n = worlds ? strtoull(worlds, NULL, 10) : WORLDS; n > 0; n--)
		run_world(seed++);
	/* The worlds are such that there is something to be found wrong. */
	print_message("placed %zu, unplaced %zu, pushed out %zu, displaced %zu\n", seen.placed,
		      seen.unplaced, seen.pushed_out, seen.displaced);
	assert_true(seen.placed && seen.unplaced && seen.pushed_out);
}

/* --- a large one, in which pods come and go */

enum { LARGE_NODES = 1000, PODS_EACH = 12, ROUNDS = RANDOM_CASES(100), CHURN = 120 };

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % below;
}

static void put_large_pod(struct slack_fixture *f, uint32_t pod)
{
	char name[24], node[24], cpu[16], memory[16];

	snprintf(name, sizeof(name), "pod-%05u", pod);
	snprintf(node, sizeof(node), "node-%04u", draw(LARGE_NODES));
	snprintf(cpu, sizeof(cpu), "%um", 50 + draw(20) * 50);
	snprintf(memory, sizeof(memory), "%uMi", 64 + draw(30) * 64);
	slack_fixture_pod(f, name, node, cpu, memory, "");
}

static void make_large(struct slack_fixture *f)
{
	static const char *const zones[] = {"a", "b", "c"};

	slack_fixture_init(f);
	f->options.rate_ppm = 50000;
	for (uint32_t n = 0; n < LARGE_NODES; n++) {
		char name[24];

		snprintf(name, sizeof(name), "node-%04u", n);
		slack_fixture_node(f, name, zones[n % 3], "16", "32Gi", "");
	}
	for (uint32_t i = 0; i < LARGE_NODES * PODS_EACH; i++)
		put_large_pod(f, i);
	slack_fixture_workload(f, "web", "30", 0, "2", "4Gi", "");
	slack_fixture_workload(
		f, "zoned", "3", 0, "1", "1Gi",
		"'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
		"'topologyKey':'zone','labelSelector':{'matchLabels':{'app':'zoned'}}}]}},");
}

static const char *const keys[] = {"shop/ReplicaSet/web", "shop/ReplicaSet/zoned", "unit"};

enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* What stood there is more than what real pods leave now. */
static bool is_over(const struct slack_fixture *f, place_node n, const uint32_t before[KEYS])
{
	const struct view_node *v = f->view->nodes[n];
	struct slack_amount used = {v->sums.requests.of[RESOURCE_CPU],
				    v->sums.requests.of[RESOURCE_MEMORY]};
	const struct slack_amount whole = {v->cpu_allocatable_milli, v->mem_allocatable_bytes};

	for (size_t k = 0; k < KEYS; k++)
		slack_amount_add(&used, &slack_fixture_class(f, keys[k])->shape, before[k]);
	return !slack_amount_fits(&used, &whole);
}

static void check_cause(const struct slack_fixture *f, const struct slack_move *m,
			const uint32_t (*before)[KEYS])
{
	const struct slack_class *c = slack_fixture_class(f, m->class);

	switch (m->cause) {
	case SLACK_PUSHED_OUT:
		assert_int_equal(m->filter, PLACE_FIT);
		assert_true(is_over(f, place_find_node(f->place, m->from),
				    before[place_find_node(f->place, m->from)]));
		break;
	case SLACK_SURPLUS:
		assert_int_equal(c->placed, c->wanted);
		break;
	case SLACK_DISPLACED:
		assert_non_null(m->by);
		assert_string_not_equal(m->by, m->class);
		break;
	case SLACK_PLACED:
		assert_null(m->from);
		break;
	default:
		fail_msg("%s moved by %s", m->class, slack_cause_name(m->cause));
	}
}

static uint32_t count_here(const struct slack_result *r, place_node n, const char *class)
{
	size_t count, here = 0;
	const struct slack_placed *at = slack_on_node(r, n, &count);

	for (size_t i = 0; i < count; i++)
		here += strcmp(r->classes[at[i].class].key, class) == 0;
	return (uint32_t)here;
}

/*
 * For each node and class, what was there, less what was told to leave, plus what was told to come,
 * is there.
 */
static void check_told(const struct slack_fixture *f, const uint32_t (*before)[KEYS])
{
	int32_t(*now)[KEYS] = mem_zalloc(LARGE_NODES, sizeof(*now));

	for (size_t i = 0; i < f->result.move_count; i++) {
		const struct slack_move *m = &f->result.moves[i];

		for (size_t k = 0; k < KEYS; k++) {
			if (strcmp(m->class, keys[k]) != 0)
				continue;
			if (m->from)
				now[place_find_node(f->place, m->from)][k]--;
			if (m->to)
				now[place_find_node(f->place, m->to)][k]++;
		}
	}
	for (place_node n = 0; n < LARGE_NODES; n++)
		for (size_t k = 0; k < KEYS; k++)
			assert_int_equal((int32_t)before[n][k] + now[n][k],
					 count_here(&f->result, n, keys[k]));
	free(now);
}

static void remember(const struct slack_fixture *f, uint32_t (*out)[KEYS])
{
	for (place_node n = 0; n < LARGE_NODES; n++)
		for (size_t k = 0; k < KEYS; k++)
			out[n][k] = count_here(&f->result, n, keys[k]);
}

static void churn_moves_none_without_a_cause(void **state)
{
	uint32_t(*before)[KEYS] = mem_zalloc(LARGE_NODES, sizeof(*before));
	size_t counts[SLACK_CAUSES] = {0}, stood = 0;
	struct slack_fixture f;

	(void)state;
	random_state = 7;
	make_large(&f);
	slack_fixture_step(&f);
	for (int round = 0; round < ROUNDS; round++) {
		remember(&f, before);
		stood += f.result.placed_count;
		/* One in a hundred goes, and comes again elsewhere. */
		for (int i = 0; i < CHURN; i++)
			put_large_pod(&f, draw(LARGE_NODES * PODS_EACH));
		f.now_ns += 10000000000LL;
		slack_fixture_step(&f);
		for (size_t i = 0; i < f.result.move_count; i++) {
			check_cause(&f, &f.result.moves[i], (const uint32_t(*)[KEYS])before);
			counts[f.result.moves[i].cause]++;
		}
		check_told(&f, (const uint32_t(*)[KEYS])before);
	}
	print_message("%zu stood; pushed out %zu, displaced %zu, surplus %zu, placed %zu\n", stood,
		      counts[SLACK_PUSHED_OUT], counts[SLACK_DISPLACED], counts[SLACK_SURPLUS],
		      counts[SLACK_PLACED]);
	assert_true(counts[SLACK_PUSHED_OUT] > 0);
	slack_fixture_fini(&f);
	free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placements_are_legal_and_do_not_depend_on_order),
		cmocka_unit_test(churn_moves_none_without_a_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
