/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the actuator, and the requests of its actions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/actuator_scene.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define NODES	  "/api/v1/nodes?limit=500"
#define TAINT	  "{\"key\":\"evenkeel.io/draining\",\"effect\":\"NoSchedule\"}"
/* An annotation, and a node that has it. */
#define MARKED(phase)                                                                              \
	"\"evenkeel.io/drain\":\"{\\\"plan\\\":\\\"p\\\",\\\"holder\\\":\\\"h\\\",\\\"since\\\":"  \
	"\\\"2026-01-01T00:00:00Z\\\",\\\"phase\\\":\\\"" phase "\\\",\\\"cordoned\\\":true}\""
#define NODE(name, annotations, spec)                                                              \
	"{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name                                   \
	"\",\"resourceVersion\":\"41\",\"labels\":{\"pool\":\"" name                               \
	"\"},\"annotations\":{" annotations "}},\"spec\":{" spec "}}"

struct pod {
	const char *namespace, *name;
	const char *hash; /* "": none */
	const char *kind, *owner; /* of its controller; NULL: none */
	const char *meta, *status; /* more members */
};

/* The next request with this part lists the pods. */
static void answer_pods(struct actuator_scene *s, const char *part, const struct pod *pods,
			size_t count)
{
	struct buf list = BUF_INIT;

	buf_add_str(&list, "{\"items\":[");
	for (size_t i = 0; i < count; i++) {
		const struct pod *p = &pods[i];

		buf_printf(
			&list,
			"%s{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\"%s",
			i ? "," : "", p->name, p->namespace, p->name, p->meta);
		if (*p->hash)
			buf_printf(&list, ",\"labels\":{\"pod-template-hash\":\"%s\"}", p->hash);
		if (p->kind)
			buf_printf(&list,
				   ",\"ownerReferences\":[{\"kind\":\"%s\",\"uid\":\"%s\","
				   "\"controller\":true}]",
				   p->kind, p->owner);
		buf_printf(&list, "},\"status\":{%s}}", p->status);
	}
	buf_add_str(&list, "]}");
	actuator_scene_answer(s, part, 200, list.data);
	buf_fini(&list);
}

/* A step in `seconds`: 0, or -errno. */
static int read_cluster(struct actuator_scene *s, const struct act_state *state, int64_t seconds,
			const struct edge_named *named, size_t count)
{
	struct error why = {""};

	edge_end_step(&s->edge);
	s->now_ns += seconds * NS_PER_SEC;
	return edge_read_cluster(&s->edge, state, named, count, s->now_ns, &why);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Nodes with marks are found by a list once in a minute, and are read one by one. */
static void marked_nodes_are_found(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	static const struct {
		int64_t seconds;
		bool forgets; /* before */
		size_t lists, reads; /* of all nodes, of n1 */
	} steps[] = {
		{0, false, 2, 1},  {30, false, 2, 2},
		{30, false, 2, 3}, {1, false, 3, 3}, /* which finds none */
		{1, true, 4, 3},
	};
	struct actuator_scene *s = *state;
	char *path;

	actuator_scene_answer(s, NODES, 200,
			      "{\"metadata\":{\"continue\":\"c1\"},\"items\":[" NODE(
				      "n1", MARKED("drained"),
				      "\"taints\":[" TAINT
				      "]") "," NODE("n2", MARKED("drained"),
						    "\"unschedulable\":true") "]}");
	actuator_scene_answer(s, NODES, 200, "{\"items\":[" NODE("n3", "", "") "]}");
	for (size_t i = 0; i < COUNT(steps); i++) {
		actuator_scene_answer(s, "/api/v1/nodes/n1", 200, NODE("n1", "", ""));
		if (steps[i].forgets)
			edge_forget(&s->edge);
		assert_int_equal(read_cluster(s, &idle, steps[i].seconds, NULL, 0), 0);
		assert_int_equal(kube_peer_count(s->peer, NODES), steps[i].lists);
		assert_int_equal(kube_peer_count(s->peer, "/api/v1/nodes/n1"), steps[i].reads);
		assert_int_equal(s->edge.cluster.node_count, steps[i].lists == 2);
	}
	assert_int_equal(kube_peer_count(s->peer, "/api/v1/nodes/"), 3);
	path = kube_peer_path(s->peer, NODES, 1);
	assert_string_equal(path, NODES "&continue=c1");
	free(path);
}

/* Nothing of a former time is left to a next one. */
static void a_lost_lease_forgets(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	struct actuator_scene *s = *state;

	actuator_scene_answer(s, NODES, 200, "{\"items\":[" NODE("n1", MARKED("claimed"), "") "]}");
	assert_int_equal(read_cluster(s, &idle, 0, NULL, 0), 0);
	assert_int_equal(s->edge.marked_count, 1);
	s->edge.taint_seen_s = 7;
	s->edge.promise = cJSON_CreateObject();
	edge_forget(&s->edge);
	assert_int_equal(s->edge.marked_count, 0);
	assert_true(s->edge.taint_seen_s == 0);
	assert_null(s->edge.promise);
	/* At once. */
	assert_int_equal(read_cluster(s, &idle, 0, NULL, 0), 0);
	assert_int_equal(kube_peer_count(s->peer, NODES), 2);
}

/* No step without the whole cluster; a node that is gone is none of it. */
static void failures_of_reading(void **state)
{
	static const struct {
		const char *part; /* of the request that fails */
		int status;
		int rc;
		size_t nodes;
	} cases[] = {
		{"none", 500, 0, 1},
		{NODES, 403, -EIO, 0},
		{NODES, 500, -EIO, 0},
		{"/api/v1/nodes/n1", 404, 0, 0},
		{"/api/v1/nodes/n1", 410, -EIO, 0},
		{"/api/v1/nodes/n1", 500, -EIO, 0},
		{"/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", 429, -EIO, 1},
		{"/api/v1/namespaces/shop/pods?labelSelector=", 503, -EIO, 1},
	};
	static const struct act_state idle = {.drain_count = 0};
	static const struct edge_named named = {.node = "n1", .drain = true};
	static const struct pod pod = {"shop", "p", "", "Job", "j1", "", ""};

	actuator_scene_teardown(state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct actuator_scene *s;

		actuator_scene_setup(state);
		s = *state;
		actuator_scene_answer(s, cases[i].part, cases[i].status, "{\"message\":\"no\"}");
		actuator_scene_answer(s, "/api/v1/nodes/n1", 200,
				      NODE("n1", MARKED("evicting"), "\"taints\":[" TAINT "]"));
		answer_pods(s, "/api/v1/pods?", &pod, 1);
		actuator_scene_answer(s, "/namespaces/shop/pods?", 200, "{\"items\":[]}");
		assert_int_equal(read_cluster(s, &idle, 0, &named, 1), cases[i].rc);
		if (!cases[i].rc)
			assert_int_equal(s->edge.cluster.node_count, cases[i].nodes);
		if (i + 1 < COUNT(cases))
			actuator_scene_teardown(state);
	}
}

static void nodes_of_others(void **state)
{
	static const struct {
		const char *node, *foreign; /* NULL: it is nobody's */
	} cases[] = {
		{NODE("n1", "", ""), NULL},
		{NODE("n1", "\"karpenter.sh/do-not-disrupt\":\"false\"", ""), NULL},
		{NODE("n1", "\"karpenter.sh/do-not-disrupt\":\"true\"", ""),
		 "it has the annotation karpenter.sh/do-not-disrupt"},
		{NODE("n1", "\"weave.works/kured-reboot-in-progress\":\"\"", ""),
		 "it has the annotation weave.works/kured-reboot-in-progress"},
		{NODE("n1", "\"evenkeel.io/draining\":\"true\"", ""),
		 "it has the annotation evenkeel.io/draining"},
		{NODE("n1", "", "\"taints\":[{\"key\":\"medik8s.io/drain\"}]"),
		 "it has the taint medik8s.io/drain"},
		{NODE("n1", "",
		      "\"taints\":[{\"key\":\"x\"},{\"key\":"
		      "\"ToBeDeletedByClusterAutoscaler\"}]"),
		 "it has the taint ToBeDeletedByClusterAutoscaler"},
		{NODE("n1", "", "\"taints\":[" TAINT "]"), NULL},
		{"{\"metadata\":{\"name\":\"n1\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}",
		 "its object is being deleted"},
	};
	static const struct act_state idle = {.drain_count = 0};
	/* Two requests of one node. */
	static const struct edge_named named[] = {{.node = "n1", .drain = true},
						  {.node = "n1", .undo = true}};
	struct actuator_scene *s = *state;
	struct error error;
	struct selector *selector;

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct act_node *node;

		actuator_scene_answer(s, "/api/v1/nodes/n1", 200, cases[i].node);
		assert_int_equal(read_cluster(s, &idle, 1, named, i ? 2 : 1), 0);
		assert_int_equal(s->edge.cluster.node_count, 1);
		node = edge_find_node(&s->edge, "n1");
		assert_int_equal(!node->foreign, !cases[i].foreign);
		if (node->foreign)
			assert_string_equal(node->foreign, cases[i].foreign);
		assert_int_equal(node->ending, i + 1 == COUNT(cases));
		assert_true(node->wants_drain && node->selected && !node->cordoned);
		assert_int_equal(node->wants_undo, i > 0);
	}
	assert_int_equal(selector_parse("pool=n1", &selector, &error), 0);
	s->edge.selector = selector;
	actuator_scene_answer(s, "/api/v1/nodes/n1", 200, NODE("n1", "", "\"unschedulable\":true"));
	actuator_scene_answer(s, "/api/v1/nodes/n2", 200, NODE("n2", "", ""));
	assert_int_equal(read_cluster(s, &idle, 1,
				      (const struct edge_named[]){{.node = "n1"}, {.node = "n2"}},
				      2),
			 0);
	assert_true(edge_find_node(&s->edge, "n1")->selected);
	assert_true(edge_find_node(&s->edge, "n1")->cordoned);
	assert_false(edge_find_node(&s->edge, "n1")->wants_drain);
	assert_false(edge_find_node(&s->edge, "n2")->selected);
	s->edge.selector = NULL;
	selector_free(selector);
}

#define READY "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"

static void answer_owners(struct actuator_scene *s)
{
	static const char ending[] = ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"";
	static const char not_ready[] =
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]";
	static const struct pod of_hash[] = {
		{"shop", "a", "h1", "ReplicaSet", "r1", "", READY},
		{"shop", "h", "h1", "ReplicaSet", "r1", "", READY},
		{"shop", "i", "h1", "ReplicaSet", "r1", "", not_ready},
		{"shop", "b", "h1", "ReplicaSet", "r1", ending, READY},
		{"shop", "g", "h1", "ReplicaSet", "r2", "", READY},
		{"shop", "k", "h1", "ReplicaSet", "r9", "", READY},
	};
	/* Others of the list are counted elsewhere. */
	static const struct pod in_lab[] = {{"lab", "l", "h1", "ReplicaSet", "r3", "", READY},
					    {"lab", "x", "h1", "ReplicaSet", "r1", "", READY}};
	static const struct pod in_shop[] = {{"shop", "m", "", "StatefulSet", "s1", "", READY},
					     {"shop", "a", "h1", "ReplicaSet", "r1", "", READY}};

	answer_pods(s, "/shop/pods?labelSelector=pod-template-hash%3Dh1", of_hash, COUNT(of_hash));
	answer_pods(s, "/lab/pods?labelSelector=pod-template-hash%3Dh1", in_lab, COUNT(in_lab));
	answer_pods(s, "/shop/pods?labelSelector=", in_shop, COUNT(in_shop));
}

/* Pods that a drain moves, and Ready pods of their owners, which are known while there is a drain. */
static void pods_and_owners(void **state)
{
	static const struct pod on_node[] = {
		{"shop", "a", "h1", "ReplicaSet", "r1", "", ""},
		{"shop", "b", "h1", "ReplicaSet", "r1",
		 ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", ""},
		{"shop", "c", "", "DaemonSet", "d1", "", ""},
		{"shop", "d", "", NULL, NULL,
		 ",\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"}", ""},
		{"shop", "e", "", "Job", "j1", "", "\"phase\":\"Succeeded\""},
		{"shop", "f", "", NULL, NULL, "", ""},
		{"shop", "g", "h1", "ReplicaSet", "r2", "", ""},
		{"lab", "l", "h1", "ReplicaSet", "r3", "", ""},
		{"shop", "m", "", "StatefulSet", "s1", "", ""},
	};
	static const struct act_pod pods[] = {
		{"u-a", "shop", "a", "r1", false}, {"u-b", "shop", "b", "r1", true},
		{"u-f", "shop", "f", "", false},   {"u-g", "shop", "g", "r2", false},
		{"u-l", "lab", "l", "r3", false},  {"u-m", "shop", "m", "s1", false},
	};
	static const struct act_owner owners[] = {{"r1", 2}, {"r2", 1}, {"r3", 1}, {"s1", 1}};
	static const char evicting[] =
		NODE("n1", MARKED("evicting"), "\"taints\":[" TAINT "],\"unschedulable\":true");
	struct act_drain drain = {.node = (char *)"n1"};
	const struct act_state busy = {.drains = &drain, .drain_count = 1},
			       idle = {.drain_count = 0};
	const struct edge_named named = {.node = "n1"};
	struct actuator_scene *s = *state;
	const struct act_node *node;

	actuator_scene_answer(s, "/api/v1/nodes/n1", 200, evicting);
	answer_pods(s, "/api/v1/pods?", on_node, COUNT(on_node));
	answer_owners(s);
	assert_int_equal(read_cluster(s, &busy, 0, NULL, 0), 0);
	node = edge_find_node(&s->edge, "n1");
	assert_int_equal(node->pod_count, COUNT(pods));
	for (size_t i = 0; i < COUNT(pods); i++) {
		assert_string_equal(node->pods[i].uid, pods[i].uid);
		assert_string_equal(node->pods[i].namespace, pods[i].namespace);
		assert_string_equal(node->pods[i].name, pods[i].name);
		assert_string_equal(node->pods[i].owner, pods[i].owner);
		assert_int_equal(node->pods[i].ending, pods[i].ending);
	}
	assert_int_equal(s->edge.cluster.owner_count, COUNT(owners));
	for (size_t i = 0; i < COUNT(owners); i++) {
		assert_string_equal(s->edge.cluster.owners[i].uid, owners[i].uid);
		assert_int_equal(s->edge.cluster.owners[i].ready, owners[i].ready);
	}
	/* Owners of one namespace and template by one list. */
	assert_int_equal(kube_peer_count(s->peer, "pods?labelSelector="), 3);
	/* The pods are gone; what replaces them is counted until there is no drain. */
	for (int i = 0; i < 2; i++) {
		actuator_scene_answer(s, "/api/v1/nodes/n1", 200, evicting);
		answer_pods(s, "/api/v1/pods?", NULL, 0);
		answer_owners(s);
		assert_int_equal(read_cluster(s, i ? &idle : &busy, 1, &named, 1), 0);
		assert_int_equal(s->edge.cluster.owner_count, i ? 0 : COUNT(owners));
	}
	/* Pods of a node without evenkeel's taint are not read. */
	actuator_scene_answer(s, "/api/v1/nodes/n1", 200, NODE("n1", MARKED("claimed"), ""));
	assert_int_equal(read_cluster(s, &busy, 1, NULL, 0), 0);
	assert_int_equal(kube_peer_count(s->peer, "/api/v1/pods?"), 3);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void meanings_of_answers(void **state)
{
	static const struct {
		long status;
		enum act_result result, of_two_budgets;
	} cases[] = {
		{200, ACT_DONE, ACT_DONE},     {201, ACT_DONE, ACT_DONE},
		{299, ACT_DONE, ACT_DONE},     {400, ACT_NEVER, ACT_NEVER},
		{401, ACT_UNKNOWN, ACT_NEVER}, {403, ACT_NEVER, ACT_NEVER},
		{404, ACT_GONE, ACT_GONE},     {408, ACT_UNKNOWN, ACT_NEVER},
		{409, ACT_GONE, ACT_GONE},     {410, ACT_NEVER, ACT_NEVER},
		{422, ACT_NEVER, ACT_NEVER},   {429, ACT_NOT_YET, ACT_NOT_YET},
		{500, ACT_UNKNOWN, ACT_NEVER}, {503, ACT_UNKNOWN, ACT_NEVER},
		{301, ACT_UNKNOWN, ACT_NEVER}, {0, ACT_UNKNOWN, ACT_NEVER},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(edge_result(cases[i].status, "no"), cases[i].result);
		assert_int_equal(edge_result(cases[i].status,
					     "This pod has more than one PodDisruptionBudget"),
				 cases[i].of_two_budgets);
	}
}

#define EVICTION "POST /api/v1/namespaces/shop/pods/web-1/eviction"

static void evictions(void **state)
{
	static const struct {
		bool dry_run;
		int status;
		const char *path, *body;
		enum act_result result;
		const char *answer;
	} cases[] = {
		{false, 201, EVICTION "?fieldManager=evenkeel-actuator-7",
		 "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":"
		 "\"web-1\",\"namespace\":\"shop\"},\"deleteOptions\":{\"preconditions\":{\"uid\":"
		 "\"u1\"}}}",
		 ACT_DONE, "said"},
		{true, 429, EVICTION "?fieldManager=evenkeel-actuator-7&dryRun=All",
		 "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":"
		 "\"web-1\",\"namespace\":\"shop\"},\"deleteOptions\":{\"preconditions\":{\"uid\":"
		 "\"u1\"},\"dryRun\":[\"All\"]}}",
		 ACT_NOT_YET, "said"},
		/* As it is for a pod of two budgets. */
		{false, 500, EVICTION "?fieldManager=evenkeel-actuator-7",
		 "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":"
		 "\"web-1\",\"namespace\":\"shop\"},\"deleteOptions\":{\"preconditions\":{\"uid\":"
		 "\"u1\"}}}",
		 ACT_NEVER, "This pod has more than one PodDisruptionBudget"},
	};
	struct actuator_scene *s = *state;
	struct eviction pod = {.namespace = (char *)"shop",
			       .name = (char *)"web-1",
			       .uid = (char *)"u1"};
	const struct act_action action = {.kind = ACT_EVICT, .node = "n1", .pod = &pod};

	s->edge.transitions = 7;
	memcpy(s->edge.eviction_api, "policy/v1", sizeof("policy/v1"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *answer = "";
		char *message = mem_printf("{\"message\":\"%s\"}", cases[i].answer), *path;

		s->edge.dry_run = cases[i].dry_run;
		actuator_scene_answer(s, EVICTION, cases[i].status, message);
		free(message);
		assert_int_equal(edge_carry_out(&s->edge, &action, &answer), cases[i].result);
		assert_string_equal(answer, cases[i].answer);
		path = kube_peer_path(s->peer, EVICTION, i);
		assert_string_equal(path, cases[i].path);
		free(path);
		actuator_scene_expect_body(s, EVICTION, cases[i].body);
	}
	/* An eviction has no Event of the node. */
	assert_int_equal(kube_peer_count(s->peer, ""), COUNT(cases));
}

/* A patch keeps the taints of others, and is refused where the node has changed since. */
static void patches_of_nodes(void **state)
{
#define BODY(phase, cordoned, taints, more)                                                        \
	"{\"metadata\":{\"resourceVersion\":\"41\",\"annotations\":{\"evenkeel.io/drain\":\"{"     \
	"\\\"plan\\\":\\\"p\\\",\\\"holder\\\":\\\"h\\\",\\\"since\\\":"                           \
	"\\\"1970-01-01T00:00:01Z\\\",\\\"phase\\\":\\\"" phase "\\\",\\\"cordoned\\\":" cordoned  \
	"}\"}},\"spec\":{\"taints\":[" taints "]" more "}}"
#define OTHER "{\"key\":\"other\",\"value\":\"x\",\"effect\":\"NoExecute\"}"
	static const struct {
		enum mark_phase phase;
		bool cordoned, tainted;
		enum act_cordon cordon;
		int status;
		const char *body;
		enum act_result result;
		const char *event; /* NULL: none */
	} cases[] = {
		{MARK_CLAIMED, false, false, ACT_CORDON_STAYS, 200,
		 BODY("claimed", "false", OTHER, ""), ACT_DONE, "\"reason\":\"EvenkeelDrain\""},
		{MARK_TAINTED, true, true, ACT_CORDON, 200,
		 BODY("tainted", "true", OTHER "," TAINT, ",\"unschedulable\":true"), ACT_DONE,
		 "\"type\":\"Normal\""},
		{MARK_ROLLED_BACK, false, false, ACT_CORDON_ENDS, 200,
		 BODY("rolledBack", "false", OTHER, ",\"unschedulable\":null"), ACT_DONE,
		 "\"reason\":\"EvenkeelRolledBack\""},
		{MARK_ROLLED_BACK, false, false, ACT_CORDON_STAYS, 200,
		 BODY("rolledBack", "false", OTHER, ""), ACT_DONE, "\"type\":\"Warning\""},
		{MARK_VERIFIED, true, true, ACT_CORDON_STAYS, 409,
		 BODY("verified", "true", OTHER "," TAINT, ""), ACT_GONE, NULL},
		{MARK_VERIFIED, true, true, ACT_CORDON_STAYS, 500,
		 BODY("verified", "true", OTHER "," TAINT, ""), ACT_UNKNOWN, NULL},
	};
	static const struct act_state idle = {.drain_count = 0};
	struct actuator_scene *s = *state;
	size_t events = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct act_action action = {.kind = ACT_PATCH_NODE,
					    .node = "n1",
					    .uid = "u-n1",
					    .mark = {.phase = cases[i].phase,
						     .plan = "p",
						     .holder = "h",
						     .since_ns = NS_PER_SEC,
						     .cordoned = cases[i].cordoned},
					    .tainted = cases[i].tainted,
					    .cordon = cases[i].cordon};
		const char *answer = "";
		char *event;

		actuator_scene_answer(s, "/api/v1/nodes/n1", 200,
				      NODE("n1", "", "\"taints\":[" TAINT "," OTHER "]"));
		assert_int_equal(read_cluster(s, &idle, 1, &(struct edge_named){.node = "n1"}, 1),
				 0);
		actuator_scene_answer(s, "PATCH /api/v1/nodes/n1", cases[i].status,
				      "{\"message\":\"said\"}");
		assert_int_equal(edge_carry_out(&s->edge, &action, &answer), cases[i].result);
		assert_string_equal(answer, "said");
		actuator_scene_expect_body(s, "PATCH /api/v1/nodes/n1?fieldManager=evenkeel-",
					   cases[i].body);
		event = kube_peer_body(s->peer, "/events?", events);
		assert_int_equal(*event != '\0', cases[i].event != NULL);
		if (cases[i].event)
			assert_non_null(strstr(event, cases[i].event));
		events += cases[i].event != NULL;
		free(event);
	}
}

static void removals_of_nodes(void **state)
{
	static const struct act_action action = {.kind = ACT_REMOVE_NODE, .node = "n1", .uid = "u"};
	struct actuator_scene *s = *state;
	const char *answer = "";

	actuator_scene_answer(s, "DELETE /api/v1/nodes/n1?", 200, "{}");
	assert_int_equal(edge_carry_out(&s->edge, &action, &answer), ACT_DONE);
	actuator_scene_expect_body(s, "DELETE /api/v1/nodes/n1?fieldManager=evenkeel-actuator-0",
				   "{\"preconditions\":{\"uid\":\"u\"}}");
	assert_int_equal(kube_peer_count(s->peer, "/events?"), 1);
	actuator_scene_answer(s, "DELETE /api/v1/nodes/n1?", 409, "{}");
	assert_int_equal(edge_carry_out(&s->edge, &action, &answer), ACT_GONE);
	assert_int_equal(kube_peer_count(s->peer, "/events?"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, actuator_scene_setup, actuator_scene_teardown)
		TEST(marked_nodes_are_found),
		TEST(a_lost_lease_forgets),
		TEST(failures_of_reading),
		TEST(nodes_of_others),
		TEST(pods_and_owners),
		TEST(meanings_of_answers),
		TEST(evictions),
		TEST(patches_of_nodes),
		TEST(removals_of_nodes),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
