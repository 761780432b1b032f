/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seeded world of pods that keep together, apart and spread. Whatever is done and undone, every
 * counter must be what it was; the tree must find what the scan finds; and following a view must
 * come to the same as beginning with it.
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
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/place_fixture.h"
#include "tests/place_scan.h"
#include "tests/view_fixture.h"

enum { NODES = 9, PODS = 40, ROUNDS = 60, STEPS = 40, VIEWS = 120 };

#define NOW	 VIEW_FIXTURE_NOW_NS
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define BY(app)	 "'labelSelector':{'matchLabels':{'app':'" app "'}}"
#define HOST	 "kubernetes.io/hostname"
#define CONTAINER(cpu, more)                                                                       \
	"'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "'}}" more "}]"

static const char *const specs[] = {
	"",
	CONTAINER("1500m", ""),
	CONTAINER("2800m", ""),
	CONTAINER("50m", ",'ports':[{'hostPort':80}]"),
	"'affinity':{'podAntiAffinity':{'" REQUIRED "':[{'topologyKey':'" HOST "'," BY("a") "}]}}",
	"'affinity':{'podAntiAffinity':{'" REQUIRED "':[{'topologyKey':'zone'," BY("b") "}]}}",
	"'affinity':{'podAffinity':{'" REQUIRED "':[{'topologyKey':'zone'," BY("a") "}]}}",
	"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"
	"'DoNotSchedule'," BY("a") "}]",
	"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'" HOST "','whenUnsatisfiable':"
	"'DoNotSchedule'," BY("b") "},{'maxSkew':2,'topologyKey':'zone','minDomains':3,"
				   "'whenUnsatisfiable':'DoNotSchedule'," BY("b") "}]",
	"'nodeSelector':{'zone':'1'},'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'" HOST
	"','whenUnsatisfiable':'DoNotSchedule'," BY("c") "}]",
	"'tolerations':[{'key':'k','operator':'Exists'}]",
	"'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'mine'}}]",
};
static const char *const labels[] = {"'app':'a'", "'app':'b'", "'app':'c'", ""};
static const char *const zones[] = {"'zone':'1'", "'zone':'2'", "'zone':'3'", ""};

static struct place_fixture f;
static uint64_t seed;

static uint32_t pick(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % below;
}

#define ANY(list) (list)[pick(sizeof(list) / sizeof((list)[0]))]

static void name_of(char name[16], char kind, uint32_t i)
{
	snprintf(name, 16, "%c%02u", kind, i);
}

static void put_node(uint32_t i)
{
	char name[16];

	name_of(name, 'n', i);
	place_fixture_node(&f, name, zones[i % 4],
			   i == 4 ? "'taints':[{'key':'k','effect':'NoSchedule'}]" : "");
}

static void put_pod(uint32_t i)
{
	char name[16], node[16] = "";

	name_of(name, 'p', i);
	if (pick(3))
		name_of(node, 'n', pick(NODES));
	place_fixture_pod(&f, name, node, ANY(labels), ANY(specs));
}

static void put_claim(const char *more)
{
	char *json = mem_printf("{'metadata':{'namespace':'default','name':'mine'},'spec':{"
				"'volumeName':'pv','accessModes':['%s']}}",
				more);

	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM, json);
	free(json);
}

static int setup(void **state)
{
	(void)state;
	seed = 20260131;
	place_fixture_init(&f);
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, "{'metadata':{'name':'pv'},'spec':{}}");
	put_claim("ReadWriteOncePod");
	for (uint32_t i = 0; i < NODES; i++)
		put_node(i);
	for (uint32_t i = 0; i < PODS; i++)
		put_pod(i);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

static void check_consistent(const struct place *p)
{
	struct error error;

	if (!place_is_consistent(p, &error))
		fail_msg("%s", error.text);
}

/*
 * All that can be asked: where each pod is, and what refuses it where; a pod that is somewhere is
 * asked as it stands.
 */
struct answers {
	place_node where[PODS];
	uint8_t filter[PODS][NODES];
};

static void ask_all(struct place *p, struct answers *out)
{
	memset(out, 0xff, sizeof(*out));
	for (uint32_t i = 0; i < PODS; i++) {
		char name[16];
		place_pod pod;

		name_of(name, 'p', i);
		pod = place_find_pod(p, "default", name);
		if (pod == PLACE_NONE)
			continue;
		out->where[i] = place_where(p, pod);
		for (place_node n = 0; n < place_node_count(p) && n < NODES; n++)
			out->filter[i][n] = (uint8_t)place_check(p, pod, n);
	}
}

/* Handles of pods are the same in all simulations of one view that were begun with it. */
static void step(struct place *const *all, size_t count)
{
	uint32_t what = pick(40), n = pick(NODES);
	place_pod pod = pick(PODS);

	for (size_t i = 0; i < count; i++) {
		struct place *p = all[i];

		if (what == 0)
			place_remove_node(p, n);
		else if (what == 1)
			place_drain_node(p, n);
		else if (place_where(p, pod) == PLACE_NONE)
			place_put(p, pod, n);
		else
			place_take(p, pod);
	}
}

static void every_counter_is_again_what_it_was(void **state)
{
	struct place *p = place_fixture_build(&f);
	struct answers before, after;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		place_mark outer = place_fork(p), inner;

		ask_all(p, &before);
		for (uint32_t i = pick(STEPS); i; i--)
			step(&p, 1);
		inner = place_fork(p);
		for (uint32_t i = pick(STEPS); i; i--)
			step(&p, 1);
		check_consistent(p);
		place_revert(p, inner);
		check_consistent(p);
		place_revert(p, outer);
		check_consistent(p);
		ask_all(p, &after);
		assert_memory_equal(&before, &after, sizeof(before));
		/* The next round begins elsewhere. */
		for (uint32_t i = pick(4); i; i--)
			step(&p, 1);
	}
}

static void compare_choices(struct place *tree, struct place *twin)
{
	bool allowed[NODES];
	bool all = pick(2);
	place_node hint = pick(4) ? PLACE_NONE : pick(NODES);

	for (int n = 0; n < NODES; n++)
		allowed[n] = pick(4) > 0;
	for (place_pod pod = 0; pod < PODS; pod++) {
		enum place_order order = (enum place_order)pick(3);
		struct place_counts a, b;

		if (place_where(tree, pod) != PLACE_NONE)
			continue;
		assert_int_equal(place_choose(tree, pod, order, hint, all ? NULL : allowed, &a),
				 place_scan(twin, pod, order, hint, all ? NULL : allowed, &b));
		assert_memory_equal(a.of, b.of, sizeof(a.of));
		assert_int_equal(a.nearest, b.nearest);
		assert_true(a.excess == b.excess);
	}
}

static void the_tree_finds_what_the_scan_finds(void **state)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
	struct place_options o;
	struct place *both[2];

	(void)state;
	place_options_default(&o);
	both[0] = place_new(v, &o);
	both[1] = place_new(v, &o);
	for (int round = 0; round < ROUNDS; round++) {
		place_mark m;

		if (round % 10 == 0) {
			/* Or all nodes would be full or gone soon. */
			place_revert(both[0], 0);
			place_revert(both[1], 0);
		}
		m = place_fork(both[0]);
		assert_int_equal(place_fork(both[1]), m);
		for (uint32_t i = pick(STEPS); i; i--)
			step(both, 2);
		compare_choices(both[0], both[1]);
		if (pick(6)) {
			place_revert(both[0], m);
			place_revert(both[1], m);
		}
	}
	place_free(both[0]);
	place_free(both[1]);
	view_drop(v);
}

/* --- from view to view */

static struct node_stats *node_stats[NODES];

static void measure(uint32_t i)
{
	char name[16];
	const struct pod_stats pods[] = {
		join_fixture_pod("k/a", "uid-p01", NOW, 900, 10.0 * pick(50), 1 << 20),
		join_fixture_pod("k/b", "uid-p02", NOW, 900, 10.0 * pick(50), 1 << 20)};

	name_of(name, 'n', i);
	node_stats_drop(node_stats[i]);
	node_stats[i] = join_fixture_stats(name, NOW - pick(400) * 1000000000LL, pods, pick(3));
}

static struct view *next_view(void)
{
	struct node_stats *heard[NODES];
	size_t count = 0;

	for (int i = 0; i < NODES; i++)
		if (node_stats[i])
			heard[count++] = node_stats[i];
	return place_fixture_view(&f, heard, count);
}

static void remove_pod(uint32_t i)
{
	char name[16];

	name_of(name, 'p', i);
	if (model_find(f.model, OBJECT_POD, "default", name))
		place_fixture_remove(&f, OBJECT_POD, "default", name);
}

static void change_node(uint32_t i)
{
	char name[16];

	name_of(name, 'n', i);
	switch (pick(6)) {
	case 0:
		place_fixture_node(&f, name, ANY(zones), "");
		break;
	case 1:
		place_fixture_node(&f, name, zones[i % 4], "'unschedulable':true");
		break;
	case 2:
		if (model_find(f.model, OBJECT_NODE, "", name))
			place_fixture_remove(&f, OBJECT_NODE, "", name);
		break;
	default:
		put_node(i);
	}
}

static void change_world(void)
{
	for (uint32_t i = pick(6); i; i--) {
		switch (pick(8)) {
		case 0:
			remove_pod(pick(PODS));
			break;
		case 1:
			change_node(pick(NODES));
			break;
		case 2:
			measure(pick(NODES));
			break;
		case 3:
			put_claim(pick(2) ? "ReadWriteOncePod" : "ReadWriteOnce");
			break;
		default:
			put_pod(pick(PODS));
		}
	}
}

/* Every choice, too: the trees were kept up, or built. */
static void compare_places(struct place *a, struct place *b)
{
	static struct answers of_a, of_b;

	assert_int_equal(place_node_count(a), place_node_count(b));
	assert_int_equal(place_cap_applies(a), place_cap_applies(b));
	ask_all(a, &of_a);
	ask_all(b, &of_b);
	assert_memory_equal(&of_a, &of_b, sizeof(of_a));
	for (uint32_t i = 0; i < PODS; i++) {
		char name[16];
		place_pod in_a, in_b;

		name_of(name, 'p', i);
		in_a = place_find_pod(a, "default", name);
		in_b = place_find_pod(b, "default", name);
		if (in_a == PLACE_NONE || place_where(a, in_a) != PLACE_NONE)
			continue;
		for (int order = 0; order < 3; order++) {
			struct place_counts ca, cb;

			assert_int_equal(place_choose(a, in_a, (enum place_order)order, PLACE_NONE,
						      NULL, &ca),
					 place_choose(b, in_b, (enum place_order)order, PLACE_NONE,
						      NULL, &cb));
			assert_memory_equal(&ca, &cb, sizeof(ca));
		}
	}
}

static void mess_up(struct place *p)
{
	for (uint32_t i = pick(8); i; i--) {
		char name[16];
		place_pod pod;

		name_of(name, 'p', pick(PODS));
		pod = place_find_pod(p, "default", name);
		if (pod != PLACE_NONE && place_where(p, pod) == PLACE_NONE)
			place_put(p, pod, pick((uint32_t)place_node_count(p)));
		else if (pod != PLACE_NONE)
			place_take(p, pod);
	}
}

static void add_one(struct place *p)
{
	struct kube_pod *record = place_fixture_record("added", "", ANY(labels), ANY(specs));
	place_pod pod = place_add_pod(p, record);

	object_drop(&record->object);
	if (pick(2))
		place_put(p, pod, 0);
}

/* With nothing left but the view without pods: what still points into the view is freed memory. */
static void rest(struct place *p, const struct view *v)
{
	struct view *rest = view_without_pods(v);

	place_rest(p, rest);
	view_drop(rest);
}

static void following_comes_to_the_same_as_beginning(void **state)
{
	struct view *v = next_view();
	struct place_options o;
	struct place *p;

	(void)state;
	place_options_default(&o);
	p = place_new(v, &o);
	view_drop(v);
	for (int i = 0; i < VIEWS; i++) {
		struct place *fresh;

		change_world();
		v = next_view();
		o.now_ns = NOW + i * 1000000000LL;
		place_update(p, v, o.now_ns);
		check_consistent(p);
		fresh = place_new(v, &o);
		compare_places(p, fresh);
		place_free(fresh);
		if (pick(2))
			mess_up(p);
		if (!pick(4))
			add_one(p);
		if (pick(2))
			rest(p, v);
		view_drop(v);
	}
	place_free(p);
	for (int i = 0; i < NODES; i++) {
		node_stats_drop(node_stats[i]);
		node_stats[i] = NULL;
	}
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(every_counter_is_again_what_it_was),
		test(the_tree_finds_what_the_scan_finds),
		test(following_comes_to_the_same_as_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
