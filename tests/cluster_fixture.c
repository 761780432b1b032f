/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cluster_fixture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/view_fixture.h"

#define MIB 1048576LL
#define GIB (1024 * MIB)

#define NODE(name, zone, more, spec, ready)                                                        \
	"{\"metadata\":{\"name\":\"" name "\",\"uid\":\"uid-" name                                 \
	"\",\"labels\":{\"zone\":\"" zone "\",\"kubernetes.io/hostname\":\"" name                  \
	"\"}},\"spec\":{" spec                                                                     \
	"},\"status\":{\"capacity\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"" more       \
	"},\"allocatable\":{\"cpu\":\"3800m\",\"memory\":\"7Gi\",\"pods\":\"110\"" more            \
	"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"

#define POD(namespace, name, uid, labels, owner, spec, status)                                     \
	"{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" name "\",\"uid\":\"" uid      \
						    "\",\"labels\":{" labels "}" owner             \
						    "},\"spec\":{" spec "},\"status\":{" status    \
						    "}}"

#define OWNER(version, kind, name)                                                                 \
	",\"ownerReferences\":[{\"apiVersion\":\"" version "\",\"kind\":\"" kind                   \
	"\",\"name\":\"" name "\",\"uid\":\"uid-" name "\",\"controller\":true}]"

#define WEB(name, uid, node)                                                                       \
	POD("shop", name, uid, "\"app\":\"web\"", OWNER("apps/v1", "ReplicaSet", "web-7d9"),       \
	    "\"nodeName\":\"" node "\",\"containers\":[{\"name\":\"app\",\"resources\":{"          \
	    "\"requests\":{\"cpu\":\"500m\",\"memory\":\"512Mi\"},"                                \
	    "\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}},"                                     \
	    "{\"name\":\"proxy\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}]",               \
	    "\"phase\":\"Running\",\"qosClass\":\"Burstable\"")

static const struct {
	enum object_kind kind;
	const char *json;
} objects[] = {
	{OBJECT_NODE, NODE("alpha", "a", ",\"nvidia.com/gpu\":\"2\"", "", "True")},
	{OBJECT_NODE, NODE("bravo", "b", "", "", "False")},
	{OBJECT_NODE, NODE("lima", "b", "", "\"unschedulable\":true", "True")},
	{OBJECT_REPLICA_SET,
	 "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-7d9\",\"uid\":\"uid-web-7d9\"" OWNER(
		 "apps/v1", "Deployment", "web") "}}"},
	{OBJECT_POD, WEB("web-1", "aaaa", "alpha")},
	{OBJECT_POD, WEB("web-2", "bbbb", "bravo")},
	{OBJECT_POD,
	 POD("db", "pg-0", "cccc", "\"app\":\"pg\"", OWNER("apps/v1", "StatefulSet", "pg"),
	     "\"nodeName\":\"alpha\",\"containers\":[{\"name\":\"pg\",\"resources\":{"
	     "\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},"
	     "\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}}]",
	     "\"phase\":\"Running\",\"qosClass\":\"Guaranteed\"")},
	{OBJECT_POD, POD("batch", "tiny", "dddd", "", "",
			 "\"nodeName\":\"alpha\",\"containers\":[{\"name\":\"t\",\"resources\":{"
			 "\"limits\":{\"cpu\":\"125m\",\"memory\":\"100M\"}}}]",
			 "\"phase\":\"Running\",\"qosClass\":\"Guaranteed\"")},
	{OBJECT_POD, POD("batch", "done", "eeee", "", "",
			 "\"nodeName\":\"alpha\",\"containers\":[{\"name\":\"d\",\"resources\":{"
			 "\"requests\":{\"cpu\":\"1\"}}}]",
			 "\"phase\":\"Succeeded\"")},
	{OBJECT_POD, POD("kube-system", "dns", "ffff", "", "",
			 "\"nodeName\":\"ghost\",\"containers\":[{\"name\":\"d\",\"resources\":{"
			 "\"requests\":{\"cpu\":\"100m\"}}}]",
			 "\"phase\":\"Running\"")},
	{OBJECT_POD, POD("shop", "wait", "gggg", "\"app\":\"wait\"", "",
			 "\"containers\":[{\"name\":\"w\",\"resources\":{"
			 "\"requests\":{\"cpu\":\"3\"}}}]",
			 "\"phase\":\"Pending\"")},
};

static void put(struct model *m, enum object_kind kind, const char *json)
{
	char field[OBJECT_FIELD_MAX];
	struct error error = {""};
	struct object *o = NULL;
	cJSON *parsed = cJSON_Parse(json);
	int rc = object_read(kind, parsed, &o, field, &error);

	if (rc)
		fprintf(stderr, "%s: %s: %s\n", json, field, error.text);
	assert(rc == 0);
	cJSON_Delete(parsed);
	model_put(m, o);
}

static void set_sources(struct model *m, enum source_state nodes, const char *message)
{
	struct model_source synced = {.state = SOURCE_SYNCED,
				      .changed_ns = VIEW_FIXTURE_NOW_NS - 600 * NS_PER_SEC,
				      .event_ns = VIEW_FIXTURE_NOW_NS - 5 * NS_PER_SEC,
				      .relists = 1,
				      .api_version = "v1"};
	struct model_source s = synced;

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_set_source(m, (enum object_kind)kind, &synced);
	s.state = nodes;
	snprintf(s.message, sizeof(s.message), "%s", message);
	model_set_source(m, OBJECT_NODE, &s);
	s = (struct model_source){.state = SOURCE_FORBIDDEN,
				  .changed_ns = synced.changed_ns,
				  .api_version = "policy/v1",
				  .message = "poddisruptionbudgets.policy is forbidden"};
	model_set_source(m, OBJECT_POD_DISRUPTION_BUDGET, &s);
	s = (struct model_source){.state = SOURCE_ABSENT, .changed_ns = synced.changed_ns};
	model_set_source(m, OBJECT_ELASTIC_QUOTA, &s);
	s = (struct model_source){.state = SOURCE_STALE,
				  .changed_ns = VIEW_FIXTURE_NOW_NS - 40 * NS_PER_SEC,
				  .event_ns = VIEW_FIXTURE_NOW_NS - 41 * NS_PER_SEC,
				  .relists = 3,
				  .watch_errors = 2,
				  .skipped = 1,
				  .api_version = "apps/v1",
				  .message = "connection refused",
				  .skipped_last =
					  "ReplicaSet shop/odd: spec.replicas: not a number"};
	model_set_source(m, OBJECT_REPLICA_SET, &s);
}

static struct latest latest(double value)
{
	return (struct latest){.known = true, .value = (float)value};
}

#define MEASURED(cgroup, id, limit, cpu)                                                           \
	{                                                                                          \
		.name = (cgroup), .uid = (id), .kind = ENTITY_POD, .qos = QOS_BURSTABLE,           \
		.limits = (limit), .usage = {                                                      \
			.latest = {.cpu_milli = latest(cpu), .mem_bytes = latest(64.0 * MIB)}      \
		}                                                                                  \
	}

static struct node_stats *new_alpha(void)
{
	const struct kernel_limits limits[] = {
		{LIMIT_NONE, 7 * GIB + GIB / 2, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
		{2000, 2 * GIB, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
		{130, 99999744, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
	};
	const struct pod_stats pods[] = {
		MEASURED("kubepods/burstable/podaaaa", "aaaa", &limits[0], 300),
		MEASURED("kubepods/burstable/podzzzz", "zzzz", &limits[0], 7),
		MEASURED("kubepods/podcccc", "cccc", &limits[1], 900),
		MEASURED("kubepods/poddddd", "dddd", &limits[2], 120),
	};
	struct node_stats stats =
		view_fixture_node("alpha", VIEW_FIXTURE_NOW_NS - 2 * NS_PER_SEC, 900, 1000, 100);

	stats.pods = pods;
	stats.pod_count = sizeof(pods) / sizeof(pods[0]);
	return node_stats_new(&stats);
}

static struct node_stats *new_stats(const char *name, int64_t age_seconds)
{
	struct node_stats stats =
		view_fixture_node(name, VIEW_FIXTURE_NOW_NS - age_seconds * NS_PER_SEC, 900, 2000,
				  400);

	return node_stats_new(&stats);
}

static struct view *join(struct model *m, struct node_stats *const *node_stats, size_t count)
{
	struct join *j = join_new();
	struct view *v = join_view(j, node_stats, count, model_cluster(m), VIEW_FIXTURE_NOW_NS);

	join_free(j);
	model_free(m);
	for (size_t i = 0; i < count; i++)
		node_stats_drop(node_stats[i]);
	return v;
}

struct view *cluster_fixture_with(enum source_state nodes, const char *message)
{
	struct node_stats *node_stats[] = {new_alpha(), new_stats("bravo", 60),
					   new_stats("stray", 1)};
	struct model *m = model_new();

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		put(m, objects[i].kind, objects[i].json);
	set_sources(m, nodes, message);
	return join(m, node_stats, sizeof(node_stats) / sizeof(node_stats[0]));
}

struct view *cluster_fixture_new(void)
{
	return cluster_fixture_with(SOURCE_SYNCED, "");
}

struct view *cluster_fixture_large(size_t nodes, size_t pods)
{
	struct model *m = model_new();

	for (size_t i = 0; i < nodes * pods; i++) {
		/* Neighbours by name are on different nodes. */
		char *json =
			mem_printf("{\"metadata\":{\"namespace\":\"ns-%zu\",\"name\":\"pod-%06zu\","
				   "\"uid\":\"u%zu\",\"labels\":{\"k\":\"%zu\"}},\"spec\":{"
				   "\"nodeName\":\"node-%05zu\",\"containers\":[{\"name\":\"c\"}]},"
				   "\"status\":{}}",
				   i % 2, i, i, i % 100, i % nodes);

		put(m, OBJECT_POD, json);
		free(json);
	}
	set_sources(m, SOURCE_SYNCED, "");
	return join(m, NULL, 0);
}
