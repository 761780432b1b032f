/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/model/model.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"
#include "tests/object_same.h"
#include "tests/sanitized.h"
#include "tests/usage_fixture.h"

static struct model *model;

static int setup(void **state)
{
	(void)state;
	model = model_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	model_free(model);
	return 0;
}

static void put_pod(const char *name, const char *node)
{
	model_put(model,
		  model_fixture_pod(&(struct model_fixture_pod){.name = name, .node = node}));
}

/*
 * "a(x,y) b* c()": nodes with their pods, * of those the API does not know; then the pods without a
 * node.
 */
static const char *describe(void)
{
	static char text[4096];
	struct cluster *c = model_cluster(model);
	const struct object_table *waiting = c->tables[OBJECT_POD];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->node_count; i++) {
		const struct model_node *n = c->nodes[i];

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s(", n->name,
					n->node ? "" : "*");
		for (size_t p = 0; p < n->pod_count; p++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						p ? "," : "", n->pods[p]->object.name);
		len += (size_t)snprintf(text + len, sizeof(text) - len, ") ");
	}
	for (size_t i = 0; i < waiting->count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s ",
					waiting->of[i]->name);
	cluster_drop(c);
	return text;
}

static void objects_are_put_found_and_removed(void **state)
{
	const struct object *o;

	(void)state;
	assert_null(model_find(model, OBJECT_NODE, "", "a"));
	assert_int_equal(model_remove(model, OBJECT_NODE, "", "a"), -ENOENT);
	model_put(model, model_fixture_node("a", 4, 8));
	o = model_find(model, OBJECT_NODE, "", "a");
	assert_string_equal(o->uid, "uid-a");
	assert_null(model_find(model, OBJECT_POD, "", "a"));
	model_put(model, model_fixture_node("a", 8, 8));
	assert_int_equal(
		((const struct kube_node *)model_find(model, OBJECT_NODE, "", "a"))->capacity.of[0],
		8000);
	assert_int_equal(model_remove(model, OBJECT_NODE, "", "a"), 0);
	assert_int_equal(model_remove(model, OBJECT_NODE, "", "a"), -ENOENT);
	assert_null(model_find(model, OBJECT_NODE, "", "a"));
	assert_string_equal(describe(), "");
}

static void pods_are_listed_by_node(void **state)
{
	(void)state;
	model_put(model, model_fixture_node("b", 4, 8));
	put_pod("y", "a");
	put_pod("x", "a");
	put_pod("w", NULL);
	put_pod("v", NULL);
	assert_string_equal(describe(), "a*(x,y) b() v w ");
	put_pod("x", "b"); /* moved */
	put_pod("w", "b"); /* bound */
	put_pod("v", "a");
	assert_string_equal(describe(), "a*(v,y) b(w,x) ");
	put_pod("x", NULL);
	model_put(model, model_fixture_node("a", 4, 8));
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "v"), 0);
	assert_int_equal(model_remove(model, OBJECT_NODE, "", "b"), 0);
	assert_string_equal(describe(), "a(y) b*(w) x ");
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "w"), 0);
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "x"), 0);
	assert_string_equal(describe(), "a(y) ");
}

/* Put, gone and put again between two clusters: what counts is how it is when it is looked at. */
static void changes_may_undo_each_other(void **state)
{
	(void)state;
	put_pod("x", NULL);
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "x"), 0);
	assert_string_equal(describe(), "");
	put_pod("x", NULL);
	assert_string_equal(describe(), "x ");
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "x"), 0);
	put_pod("x", "a");
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "x"), 0);
	put_pod("x", NULL);
	assert_string_equal(describe(), "x ");
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "x"), 0);
	assert_string_equal(describe(), "");
}

static const struct kube_pod *find_pod(const char *name)
{
	return (const struct kube_pod *)model_find(model, OBJECT_POD, "default", name);
}

static void equal_templates_become_one(void **state)
{
	struct model_fixture_pod p = {.owner_kind = "ReplicaSet", .cpu = "100m"};
	struct pod_template *shared;

	(void)state;
	for (int i = 0; i < 3; i++) {
		p.name = (const char *const[]){"x", "y", "z"}[i];
		p.node = (const char *const[]){"a", NULL, "b"}[i];
		p.phase = (const char *const[]){"Running", "Pending", "Failed"}[i];
		model_put(model, model_fixture_pod(&p));
	}
	shared = find_pod("x")->template;
	assert_ptr_equal(find_pod("y")->template, shared);
	assert_ptr_equal(find_pod("z")->template, shared);
	assert_int_equal(shared->users, 4); /* three pods and the model */
	p.cpu = "200m";
	model_put(model, model_fixture_pod(&p));
	assert_ptr_not_equal(find_pod("z")->template, shared);
	assert_int_equal(shared->users, 3);
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "x"), 0);
	p.cpu = "100m";
	model_put(model, model_fixture_pod(&p));
	assert_ptr_equal(find_pod("z")->template, shared);
}

/* Each differs from the first in one member. */
static void each_member_of_a_pod_counts(void **state)
{
#define POD(metadata, status)                                                                      \
	"{'metadata':{'name':'x','uid':'u'" metadata "},'spec':{'nodeName':'a','containers':[{"    \
	"'name':'c'}]},'status':{" status "}}"
#define SINCE(type, is, time)                                                                      \
	"'conditions':[{'type':'" type "','status':'" is "','lastTransitionTime':'" time "'}]"
#define CONTAINER(id, more)                                                                        \
	"'containerStatuses':[{'name':'c','containerID':'a://" id id id id "'" more "}]"
	static const char *const pods[] = {
		POD("", ""),
		POD(",'creationTimestamp':'2026-01-01T00:00:00Z'", ""),
		POD(",'deletionTimestamp':'2026-01-01T00:00:00Z'", ""),
		POD("", "'startTime':'2026-01-01T00:00:00Z'"),
		POD("", "'nominatedNodeName':'b'"),
		POD("", "'qosClass':'Burstable'"),
		POD("", "'phase':'Running'"),
		POD("", "'resize':'Proposed'"),
		POD("", CONTAINER("0123456789abcdef", "")),
		POD("", "'containerStatuses':[{'name':'c','restartCount':1}]"),
		POD("", SINCE("PodScheduled", "True", "2026-01-01T00:00:00Z")),
		POD("", SINCE("PodScheduled", "False", "2026-01-01T00:00:00Z")),
		POD("", SINCE("DisruptionTarget", "True", "2026-01-01T00:00:00Z")),
		POD("", SINCE("Ready", "True", "2026-01-01T00:00:00Z")),
		POD("", CONTAINER("0123456789abcdef", ",'resources':{'requests':{'cpu':'2'}}")),
		POD("", CONTAINER("0123456789abcdef", ",'resources':{'requests':{'cpu':'3'}}")),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++)
		for (size_t k = 0; k < sizeof(pods) / sizeof(pods[0]); k++) {
			cJSON *trees[] = {object_json_of(pods[i]), object_json_of(pods[k])};
			char field[OBJECT_FIELD_MAX];
			uint64_t generation;
			struct object *o;

			for (size_t at = 0; at < 2; at++) {
				generation = model_generation(model);
				assert_int_equal(
					object_read(OBJECT_POD, trees[at], &o, field, NULL), 0);
				model_put(model, o);
				cJSON_Delete(trees[at]);
			}
			if ((model_generation(model) == generation) != (i == k))
				fail_msg("%s\n%s", pods[i], pods[k]);
		}
}

static void each_member_of_a_source_counts(void **state)
{
	static const struct model_source sources[] = {
		{.state = SOURCE_SYNCED},
		{.state = SOURCE_STALE},
		{.state = SOURCE_SYNCED, .changed_ns = 1},
		{.state = SOURCE_SYNCED, .event_ns = 1},
		{.state = SOURCE_SYNCED, .relists = 1},
		{.state = SOURCE_SYNCED, .watch_errors = 1},
		{.state = SOURCE_SYNCED, .skipped = 1},
		{.state = SOURCE_SYNCED, .api_version = "v1"},
		{.state = SOURCE_SYNCED, .message = "why"},
		{.state = SOURCE_SYNCED, .skipped_last = "x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		for (size_t k = 0; k < sizeof(sources) / sizeof(sources[0]); k++) {
			uint64_t generation;

			model_set_source(model, OBJECT_JOB, &sources[i]);
			generation = model_generation(model);
			model_set_source(model, OBJECT_JOB, &sources[k]);
			assert_int_equal(model_generation(model) == generation, i == k);
		}
}

static void what_is_put_again_changes_nothing(void **state)
{
	struct cluster *before, *after;
	const struct object *pod;
	uint64_t generation;

	(void)state;
	model_put(model, model_fixture_node("a", 4, 8));
	put_pod("x", "a");
	before = model_cluster(model);
	generation = model_generation(model);
	pod = model_find(model, OBJECT_POD, "default", "x");
	model_put(model, model_fixture_node("a", 4, 8));
	put_pod("x", "a");
	assert_int_equal(model_generation(model), generation);
	assert_ptr_equal(model_find(model, OBJECT_POD, "default", "x"), pod);
	after = model_cluster(model);
	assert_ptr_equal(before, after);
	cluster_drop(before);
	cluster_drop(after);
}

static void each_change_of_a_pod_is_seen(void **state)
{
	static const struct model_fixture_pod changed[] = {
		{.uid = "other"},
		{.phase = "Pending"},
		{.cpu = "1"},
		{.scheduled_ns = 1700000000000000000},
		{.config_hash = "0123456789abcdef0123456789abcdef"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		struct cluster *before, *after;
		struct model_fixture_pod p = changed[i];

		model_put(model,
			  model_fixture_pod(&(struct model_fixture_pod){.name = "x", .node = "a"}));
		before = model_cluster(model);
		p.name = "x";
		p.node = "a";
		model_put(model, model_fixture_pod(&p));
		after = model_cluster(model);
		assert_ptr_not_equal(before->nodes[0], after->nodes[0]);
		assert_ptr_not_equal(before->nodes[0]->pods[0], after->nodes[0]->pods[0]);
		assert_true(before->nodes[0]->generation < after->nodes[0]->generation);
		cluster_drop(before);
		cluster_drop(after);
	}
}

static void what_did_not_change_is_shared(void **state)
{
	struct cluster *before, *after;

	(void)state;
	for (int i = 0; i < 3; i++)
		model_put(model, model_fixture_node((const char *const[]){"a", "b", "c"}[i], 4, 8));
	put_pod("x", "a");
	model_put(model, model_fixture_workload(OBJECT_REPLICA_SET, "default", "rs", NULL, NULL));
	before = model_cluster(model);
	put_pod("y", "b");
	after = model_cluster(model);
	assert_ptr_equal(before->nodes[0], after->nodes[0]);
	assert_ptr_not_equal(before->nodes[1], after->nodes[1]);
	assert_ptr_equal(before->nodes[2], after->nodes[2]);
	assert_ptr_equal(before->tables[OBJECT_NODE], after->tables[OBJECT_NODE]);
	assert_ptr_equal(before->tables[OBJECT_REPLICA_SET], after->tables[OBJECT_REPLICA_SET]);
	assert_int_equal(before->nodes[1]->pod_count, 0);
	assert_int_equal(after->nodes[1]->pod_count, 1);
	assert_int_equal(before->pod_count, 1);
	assert_int_equal(after->pod_count, 2);
	cluster_drop(after);
	/* A reader may be the last who knows of it. */
	model_free(model);
	model = NULL;
	assert_string_equal(before->nodes[0]->pods[0]->object.name, "x");
	assert_string_equal(cluster_find(before, OBJECT_NODE, "", "c")->uid, "uid-c");
	cluster_drop(before);
}

static void a_list_removes_what_it_lacks(void **state)
{
	const struct object *kept;

	(void)state;
	put_pod("x", "a");
	put_pod("y", "a");
	put_pod("z", NULL);
	model_put(model, model_fixture_node("a", 4, 8));
	assert_string_equal(describe(), "a(x,y) z ");
	kept = model_find(model, OBJECT_POD, "default", "y");
	model_replace_begin(model, OBJECT_POD);
	put_pod("x", "a"); /* of a list that broke off */
	model_replace_begin(model, OBJECT_POD);
	put_pod("y", "a");
	put_pod("w", NULL);
	assert_string_equal(describe(), "a(x,y) w z ");
	model_replace_end(model, OBJECT_POD);
	assert_string_equal(describe(), "a(y) w ");
	assert_ptr_equal(model_find(model, OBJECT_POD, "default", "y"), kept);
	model_replace_begin(model, OBJECT_POD);
	model_replace_end(model, OBJECT_POD);
	assert_string_equal(describe(), "a() ");
}

static void a_kind_is_cleared(void **state)
{
	(void)state;
	model_put(model, model_fixture_node("a", 4, 8));
	put_pod("x", "a");
	put_pod("y", NULL);
	model_clear(model, OBJECT_POD);
	assert_string_equal(describe(), "a() ");
	model_clear(model, OBJECT_NODE);
	assert_string_equal(describe(), "");
	model_clear(model, OBJECT_NODE);
}

static void sources_are_told_with_the_cluster(void **state)
{
	struct model_source s = {.state = SOURCE_FORBIDDEN, .message = "no"};
	struct cluster *before = model_cluster(model), *after;

	(void)state;
	model_set_source(model, OBJECT_JOB, &s);
	after = model_cluster(model);
	assert_int_equal(before->sources[OBJECT_JOB].state, SOURCE_NONE);
	assert_int_equal(after->sources[OBJECT_JOB].state, SOURCE_FORBIDDEN);
	assert_string_equal(after->sources[OBJECT_JOB].message, "no");
	cluster_drop(before);
	before = after;
	model_set_source(model, OBJECT_JOB, &s);
	after = model_cluster(model);
	assert_ptr_equal(before, after);
	assert_string_equal(source_state_name(s.state), "forbidden");
	for (int i = 0; i < SOURCE_STATES; i++)
		assert_non_null(source_state_name((enum source_state)i));
	cluster_drop(before);
	cluster_drop(after);
}

static void pods_have_the_workload_a_person_would_name(void **state)
{
	static const struct {
		const char *kind, *name, *uid, *want_kind, *want_name;
	} cases[] = {
		{"ReplicaSet", "web-1", "uid-web-1", "Deployment", "web"},
		{"ReplicaSet", "web-1", "uid-of-another", "ReplicaSet", "web-1"},
		{"ReplicaSet", "bare", "uid-bare", "ReplicaSet", "bare"},
		{"ReplicaSet", "unknown", "uid-unknown", "ReplicaSet", "unknown"},
		{"Job", "nightly-1", "uid-nightly-1", "CronJob", "nightly"},
		{"DaemonSet", "web-1", "uid-web-1", "DaemonSet", "web-1"},
		{NULL, NULL, NULL, "Pod", "pod"},
	};
	struct cluster *c;

	(void)state;
	model_put(model, model_fixture_workload(OBJECT_REPLICA_SET, "default", "web-1",
						"Deployment", "web"));
	model_put(model, model_fixture_workload(OBJECT_REPLICA_SET, "default", "bare", NULL, NULL));
	model_put(model,
		  model_fixture_workload(OBJECT_JOB, "default", "nightly-1", "CronJob", "nightly"));
	c = model_cluster(model);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *o =
			model_fixture_pod(&(struct model_fixture_pod){.owner_kind = cases[i].kind,
								      .owner_name = cases[i].name,
								      .owner_uid = cases[i].uid});
		struct owner_ref w = cluster_workload_of(c, (struct kube_pod *)o);

		assert_string_equal(w.kind, cases[i].want_kind);
		assert_string_equal(w.name, cases[i].want_name);
		object_drop(o);
	}
	cluster_drop(c);
}

/* --- random events against a naive recount ---------------------------------------------------- */

enum {
	EVENTS = RANDOM_CASES(100000),
	EVENTS_PER_CHECK = 137,
	PODS = 60,
	NODES = 9,
	PLACES = NODES + 1
};

/* What should be: a pod's node (PLACES - 1: none) and uid, or absent. */
static struct world {
	struct naive_pod {
		bool there;
		int place, uid;
	} pods[PODS];
	bool nodes[NODES];
	bool touched[PLACES]; /* since the last check */
	uint32_t seed;
} world;

static int dice(int sides)
{
	return (int)(fixture_random(&world.seed) * sides);
}

/* Pods of two namespaces; names do not sort as numbers do. */
static void pod_name(int i, const char **namespace, char name[16])
{
	*namespace = i % 2 ? "prod" : "dev";
	snprintf(name, 16, "p%d", i);
}

static void put_random_pod(int i)
{
	struct naive_pod *p = &world.pods[i], now = {true, dice(PLACES), dice(2)};
	char name[16], node[16], uid[32];
	const char *namespace;

	pod_name(i, &namespace, name);
	snprintf(node, sizeof(node), "n%d", now.place);
	snprintf(uid, sizeof(uid), "uid-%d-%d", i, now.uid);
	model_put(model, model_fixture_pod(&(
				 struct model_fixture_pod){.namespace = namespace,
							   .name = name,
							   .uid = uid,
							   .node = now.place < NODES ? node : NULL,
							   .cpu = i % 3 ? "1" : "2"}));
	if (p->there && p->place == now.place && p->uid == now.uid)
		return;
	if (p->there)
		world.touched[p->place] = true;
	world.touched[now.place] = true;
	*p = now;
}

static void forget_pod(int i)
{
	if (world.pods[i].there)
		world.touched[world.pods[i].place] = true;
	world.pods[i].there = false;
}

static void remove_random_pod(int i)
{
	const char *namespace;
	char name[16];

	pod_name(i, &namespace, name);
	assert_int_equal(model_remove(model, OBJECT_POD, namespace, name),
			 world.pods[i].there ? 0 : -ENOENT);
	forget_pod(i);
}

static void toggle_node(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "n%d", i);
	if (world.nodes[i])
		assert_int_equal(model_remove(model, OBJECT_NODE, "", name), 0);
	else
		model_put(model, model_fixture_node(name, 4, 8));
	world.nodes[i] = !world.nodes[i];
	world.touched[i] = true;
}

static void replace_pods(void)
{
	model_replace_begin(model, OBJECT_POD);
	for (int i = 0; i < PODS; i++) {
		if (dice(4))
			put_random_pod(i);
		else
			forget_pod(i);
	}
	model_replace_end(model, OBJECT_POD);
}

static void random_event(void)
{
	int what = dice(1000);

	if (what < 600)
		put_random_pod(dice(PODS));
	else if (what < 900)
		remove_random_pod(dice(PODS));
	else if (what < 990)
		toggle_node(dice(NODES));
	else if (what < 999)
		replace_pods();
	else {
		model_clear(model, OBJECT_POD);
		for (int i = 0; i < PODS; i++)
			forget_pod(i);
	}
}

static size_t count_at(int place)
{
	size_t count = 0;

	for (int i = 0; i < PODS; i++)
		count += world.pods[i].there && world.pods[i].place == place;
	return count;
}

static void check_pod(const struct object *o, int place)
{
	int i = (int)strtol(o->name + 1, NULL, 10);
	char uid[32];

	assert_in_range(i, 0, PODS - 1);
	assert_true(world.pods[i].there);
	assert_int_equal(world.pods[i].place, place);
	snprintf(uid, sizeof(uid), "uid-%d-%d", i, world.pods[i].uid);
	assert_string_equal(o->uid, uid);
}

static const struct model_node *find_node(const struct cluster *c, const char *name)
{
	for (size_t i = 0; i < c->node_count; i++)
		if (strcmp(c->nodes[i]->name, name) == 0)
			return c->nodes[i];
	return NULL;
}

static size_t check_node(const struct cluster *c, const struct cluster *before, int i)
{
	char name[16];
	const struct model_node *n;
	size_t count = count_at(i);

	snprintf(name, sizeof(name), "n%d", i);
	n = find_node(c, name);
	assert_int_equal(n != NULL, count > 0 || world.nodes[i]);
	if (!world.touched[i])
		assert_ptr_equal(n, find_node(before, name));
	if (!n)
		return 0;
	assert_int_equal(n->node != NULL, world.nodes[i]);
	assert_int_equal(n->pod_count, count);
	for (size_t p = 0; p < count; p++) {
		check_pod(&n->pods[p]->object, i);
		assert_true(!p || object_compare(&n->pods[p - 1]->object, &n->pods[p]->object) < 0);
	}
	return 1;
}

static struct cluster *check(struct cluster *before)
{
	struct cluster *c = model_cluster(model);
	const struct object_table *waiting = c->tables[OBJECT_POD];
	size_t nodes = 0, pods = 0;

	for (int i = 0; i < NODES; i++)
		nodes += check_node(c, before, i);
	for (int i = 0; i < PLACES; i++)
		pods += count_at(i);
	assert_int_equal(c->node_count, nodes);
	assert_int_equal(c->pod_count, pods);
	assert_int_equal(waiting->count, count_at(NODES));
	for (size_t i = 0; i < waiting->count; i++) {
		check_pod(waiting->of[i], NODES);
		assert_true(!i || object_compare(waiting->of[i - 1], waiting->of[i]) < 0);
	}
	memset(world.touched, 0, sizeof(world.touched));
	cluster_drop(before);
	return c;
}

static void random_events_equal_a_recount(void **state)
{
	struct cluster *c = model_cluster(model);

	(void)state;
	world = (struct world){.seed = 20260131};
	for (int i = 1; i <= EVENTS; i++) {
		random_event();
		if (i % EVENTS_PER_CHECK == 0)
			c = check(c);
	}
	c = check(c);
	cluster_drop(c);
}

/* --- order does not matter -------------------------------------------------------------------- */

static void put_in_order(uint32_t seed)
{
	int order[PODS];

	world.seed = seed;
	for (int i = 0; i < PODS; i++)
		order[i] = i;
	for (int i = PODS - 1; i > 0; i--) {
		int other = dice(i + 1), swap = order[i];

		order[i] = order[other];
		order[other] = swap;
	}
	for (int i = 0; i < PODS; i++) {
		char name[16], node[16];

		snprintf(name, sizeof(name), "p%d", order[i]);
		snprintf(node, sizeof(node), "n%d", order[i] % NODES);
		put_pod(name, order[i] % 7 ? node : NULL);
		if (order[i] < NODES) {
			snprintf(node, sizeof(node), "n%d", order[i]);
			model_put(model, model_fixture_node(node, 4, 8));
		}
		if (i % 11 == 0)
			cluster_drop(model_cluster(model));
	}
}

static void order_does_not_matter(void **state)
{
	char *first = NULL;

	for (uint32_t seed = 1; seed < 20; seed++) {
		teardown(state);
		setup(state);
		put_in_order(seed);
		if (first)
			assert_string_equal(describe(), first);
		else
			first = mem_strdup(describe());
	}
	free(first);
}

/* What is gone is not kept for ever where nobody asks for clusters. */
static void changes_are_bounded(void **state)
{
	(void)state;
	put_pod("z", NULL);
	for (int i = 0; i < 70000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%d", i);
		put_pod(name, NULL);
		assert_int_equal(model_remove(model, OBJECT_POD, "default", name), 0);
	}
	assert_string_equal(describe(), "z ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* --- who watches pods ------------------------------------------------------------------------- */

struct diary {
	char text[512];
	size_t len;
};

static void on_put(void *ctx, const struct kube_pod *was, const struct kube_pod *pod,
		   uint64_t generation)
{
	struct diary *d = ctx;

	d->len += (size_t)snprintf(d->text + d->len, sizeof(d->text) - d->len, "put %s@%s%s%s %d;",
				   pod->object.uid, pod->node, was ? " was @" : "",
				   was ? was->node : "", (int)generation);
}

static void on_gone(void *ctx, const struct kube_pod *pod)
{
	struct diary *d = ctx;

	d->len += (size_t)snprintf(d->text + d->len, sizeof(d->text) - d->len, "gone %s;",
				   pod->object.uid);
}

static void put_watched(struct model *m, const char *name, const char *uid, const char *node)
{
	model_put(m, model_fixture_pod(
			     &(struct model_fixture_pod){.name = name, .uid = uid, .node = node}));
}

/*
 * Each change once, at the generation from which clusters have it; what is told again as it was is
 * no change.
 */
static void pods_are_told_as_they_change(void **state)
{
	struct model *m = model_new();
	struct diary diary = {.text = ""};
	const struct model_pod_watch watch = {on_put, on_gone, &diary};
	struct cluster *c;

	(void)state;
	model_watch_pods(m, &watch);
	put_watched(m, "a", "1", "");
	put_watched(m, "a", "1", "");
	put_watched(m, "a", "1", "n");
	c = model_cluster(m);
	assert_int_equal(c->generation, 2);
	cluster_drop(c);
	put_watched(m, "a", "2", "n"); /* of a StatefulSet: the name again */
	put_watched(m, "b", "3", "n");
	model_put(m, model_fixture_node("n", 4, 8));
	assert_string_equal(diary.text, "put 1@ 1;put 1@n was @ 2;gone 1;put 2@n 3;put 3@n 4;");
	diary = (struct diary){.text = ""};
	model_replace_begin(m, OBJECT_POD);
	put_watched(m, "b", "3", "n");
	model_replace_end(m, OBJECT_POD);
	assert_string_equal(diary.text, "gone 2;");
	diary = (struct diary){.text = ""};
	put_watched(m, "a", "2", "n");
	model_remove(m, OBJECT_POD, "default", "b");
	model_remove(m, OBJECT_POD, "default", "b");
	model_clear(m, OBJECT_POD);
	assert_string_equal(diary.text, "put 2@n 7;gone 3;gone 2;");
	model_free(m);
	assert_string_equal(diary.text, "put 2@n 7;gone 3;gone 2;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(objects_are_put_found_and_removed),
		TEST(pods_are_listed_by_node),
		TEST(changes_may_undo_each_other),
		TEST(equal_templates_become_one),
		TEST(what_is_put_again_changes_nothing),
		TEST(each_member_of_a_pod_counts),
		TEST(each_member_of_a_source_counts),
		TEST(each_change_of_a_pod_is_seen),
		TEST(what_did_not_change_is_shared),
		TEST(a_list_removes_what_it_lacks),
		TEST(a_kind_is_cleared),
		TEST(sources_are_told_with_the_cluster),
		TEST(pods_have_the_workload_a_person_would_name),
		TEST(random_events_equal_a_recount),
		TEST(order_does_not_matter),
		TEST(changes_are_bounded),
		cmocka_unit_test(pods_are_told_as_they_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
