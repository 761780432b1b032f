/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker of plans: a plan of three moves that holds, and changes of the plan or of the cluster
 * that each break one invariant, for each of the moves.
 *
 * n0 is drained: its pods p0, p1, p2 go to n1, n2, n3. Each has an owner of its own with two
 * replicas, of which the other, q0 .. q2, is on n4, and a PodDisruptionBudget that allows one.
 * n4 is in zone b, the others in zone a. All is measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify.h"
#include "shared/buf.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/verify_fixture.h"

enum { MOVES = 3, NODES = 5, EDITS = 5 };

/* --- the scene */

static cJSON *parse(const char *text)
{
	char *copy = mem_strdup(text);
	cJSON *json;

	for (char *at = copy; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	json = cJSON_Parse(copy);
	if (!json)
		fail_msg("no JSON: %s", text);
	free(copy);
	return json;
}

static void add_pod(struct buf *b, char letter, int i, int node)
{
	buf_printf(b,
		   "{'kind':'Pod','metadata':{'namespace':'d','name':'%c%d','uid':'uid-%c%d',"
		   "'labels':{'app':'a%d'},'ownerReferences':[{'kind':'ReplicaSet','name':'rs%d',"
		   "'uid':'rs%d','controller':true}]},'spec':{'nodeName':'n%d','containers':[{"
		   "'resources':{'requests':{'cpu':'1','memory':'200Mi'}}}]},'status':{"
		   "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}},",
		   letter, i, letter, i, i, i, i, node);
}

static void add_objects(struct buf *b)
{
	for (int i = 0; i < NODES; i++)
		buf_printf(b,
			   "{'kind':'Node','metadata':{'name':'n%d','uid':'uid-n%d','labels':{"
			   "'kubernetes.io/hostname':'n%d','zone':'%s'}},'spec':{},'status':{"
			   "'conditions':[{'type':'Ready','status':'True'}],'allocatable':{"
			   "'cpu':'10','memory':'10Gi','pods':'10'}}},",
			   i, i, i, i == 4 ? "b" : "a");
	for (int i = 0; i < MOVES; i++)
		add_pod(b, 'p', i, 0);
	for (int i = 0; i < MOVES; i++)
		add_pod(b, 'q', i, 4);
	for (int i = 0; i < MOVES; i++)
		buf_printf(b,
			   "{'kind':'ReplicaSet','metadata':{'namespace':'d','name':'rs%d',"
			   "'uid':'rs%d'},'spec':{'replicas':2}},",
			   i, i);
	for (int i = 0; i < MOVES; i++)
		buf_printf(
			b,
			"{'kind':'PodDisruptionBudget','metadata':{'namespace':'d','name':'b%d'},"
			"'spec':{'selector':{'matchLabels':{'app':'a%d'}}},'status':{"
			"'disruptionsAllowed':1,'currentHealthy':2,'desiredHealthy':1}},",
			i, i);
	buf_add_str(b, "{'kind':'ElasticQuota','metadata':{'namespace':'d','name':'e'},'spec':{"
		       "'min':{'cpu':'6'},'max':{'cpu':'500'}}},"
		       "{'kind':'ResourceQuota','metadata':{'namespace':'d','name':'r'},'status':{"
		       "'hard':{'pods':'6','requests.cpu':'6'},'used':{'pods':'6',"
		       "'requests.cpu':'6'}}}");
}

/* The same in each of the windows. */
static void add_use(struct buf *b, bool longer)
{
	static const char *const cpu = "{'start':'2026-01-01T11:00:00Z','end':"
				       "'2026-01-01T12:00:00Z','mean':100,'stddev':10}",
				 *const memory = "{'mean':1000000,'max':1000000}";

	buf_printf(b, "'usage':{'cpuMillicores':{'windows':{'5m':%s", cpu);
	if (longer)
		buf_printf(b, ",'15m':%s", cpu);
	buf_printf(b, "}},'memoryBytes':{'windows':{'5m':%s", memory);
	if (longer)
		buf_printf(b, ",'15m':%s", memory);
	buf_add_str(b, "}}},'contention':{'cpu':0,'memory':0,'seconds':300");
	if (longer)
		buf_add_str(b, ",'windows':{'15m':{'cpu':0,'memory':0,'seconds':900}}");
	buf_add_str(b, "}}");
}

static cJSON *make_snapshot(void)
{
	struct buf b = BUF_INIT;
	cJSON *json;

	buf_add_str(&b, "{'kind':'Snapshot','time':'2026-01-01T12:00:00Z','list':{'items':[");
	add_objects(&b);
	buf_add_str(&b, "]},'usage':{'apiVersion':'evenkeel.io/v2','nodes':[");
	for (int i = 0; i < NODES; i++) {
		buf_printf(&b, "%s{'name':'n%d','end':'2026-01-01T12:00:00Z',", i ? "," : "", i);
		add_use(&b, true);
	}
	buf_add_str(&b, "],'pods':[");
	for (int i = 0; i < MOVES; i++) {
		buf_printf(&b, "%s{'node':'n0','uid':'uid-p%d',", i ? "," : "", i);
		add_use(&b, false);
	}
	buf_add_str(&b, "]}}");
	json = parse(b.data);
	buf_fini(&b);
	return json;
}

static cJSON *make_plan(void)
{
	return parse(
		"{'apiVersion':'evenkeel.io/"
		"v1','kind':'DrainWave','planned':'2026-01-01T12:00:00Z','viewVersion':7,'cap':{"
		"'cpuShare':0.85,'memoryShare':0.9,'z':2.33,'contention':0.1},'limits':{'nodes':10,"
		"'drains':10,'ownerShare':0.5},'nodes':[{'name':'n0','uid':'uid-n0','moves':["
		"{'namespace':'d','name':'p0','uid':'uid-p0','to':'n1'},"
		"{'namespace':'d','name':'p1','uid':'uid-p1','to':'n2'},"
		"{'namespace':'d','name':'p2','uid':'uid-p2','to':'n3'}]}]}");
}

/* --- changes */

/*
 * A path of the plan or of the snapshot, and the new value: NULL deletes. @ is the number of the
 * move; P, Q, N, R, B are its pod, the other replica, the destination, the owner and the budget
 * among the snapshot's objects, U the destination among the measurements. "+" appends.
 */
struct edit {
	const char *path, *value;
};

#define O     "list.items."
#define WHERE "requiredDuringSchedulingIgnoredDuringExecution"
#define USE   "usage.nodes.U."
#define MOVE  "nodes.0.moves.@"
/* A pod x of an owner of its own; where is a member of its spec, or "" for a pending one. */
#define X(namespace, where, more)                                                                  \
	"{'kind':'Pod','metadata':{'namespace':'" namespace "','name':'x','uid':'uid-x','labels':" \
							    "{"                                    \
							    "'app':'x'},'ownerReferences':[{'"     \
							    "kind':'ReplicaSet','name':'x','uid':" \
							    "'x','controller':"                    \
							    "true}]},'spec':{" where more          \
							    "},'status':{'phase':'Running','"      \
							    "conditions':[{'type':"                \
							    "'Ready','status':'True'}]}}"
#define X_MOVES(namespace, more)                                                                   \
	"{'namespace':'" namespace "','name':'x','uid':'uid-x','to':'n4'" more "}"
#define GANG "{'podGroupName':'g'}"
/* Peaks of hours; the last one ends at `hour`. */
#define PEAKS(hour, cpu) "{'end':'2026-01-01T" hour ":00:00Z','cpuMillicores':" cpu "}"
#define Q_PEAKS(cpu)	 "{'node':'nN','uid':'uid-q@','hourlyPeaks':" PEAKS("13", cpu) "}"
#define CLAIM(more)                                                                                \
	{O "P.spec.volumes", "[{'persistentVolumeClaim':{'claimName':'c'}}]"},                     \
	{                                                                                          \
		O "+", "{'kind':'PersistentVolumeClaim','metadata':{'namespace':'d','name':'c'"    \
		       "}" more "}"                                                                \
	}

/* clang-format off */
static const struct mutation {
	enum verify_invariant broken;
	struct edit edits[EDITS];
} mutations[] = {
	{VERIFY_IDENTITY, {{MOVE ".name", "'other'"}}},
	{VERIFY_IDENTITY, {{MOVE ".namespace", "'other'"}}},
	{VERIFY_IDENTITY, {{MOVE ".from", "'n4'"}}},
	{VERIFY_IDENTITY, {{"nodes.0.uid", "'uid-before'"}}},
	{VERIFY_IDENTITY, {{O "0.metadata.uid", "'uid-since'"}}},
	{VERIFY_COMPLETE, {{MOVE, NULL}}},
	{VERIFY_COMPLETE, {{O "Q.spec.nodeName", "'n0'"}}},
	{VERIFY_COMPLETE, {{O "P.metadata.ownerReferences.0.kind", "'DaemonSet'"}}},
	{VERIFY_COMPLETE, {{O "+", X("d", "'nodeName':'nN'", "")}, {"nodes.0.moves.+", X_MOVES("d", ",'from':'nN'")}}},
	{VERIFY_EVICTABLE, {{O "P.metadata.annotations", "{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}"}}},
	{VERIFY_EVICTABLE, {{O "P.metadata.annotations", "{'cluster-autoscaler.kubernetes.io/safe-to-evict':'true','karpenter.sh/do-not-disrupt':'true'}"}}},
	{VERIFY_EVICTABLE, {{O "P.metadata.ownerReferences", NULL}}},
	{VERIFY_EVICTABLE, {{O "+", X("kube-system", "'nodeName':'n0'", "")}, {"nodes.0.moves.+", X_MOVES("kube-system", "")}}},
	{VERIFY_EVICTABLE, {{O "0.metadata.annotations", "{'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'}"}}},
	{VERIFY_ORDER, {{MOVE ".step", "1"}}},
	{VERIFY_ORDER, {{"nodes.0.moves.0.step", "3"}, {"nodes.0.moves.1.step", "3"}, {"nodes.0.moves.2.step", "1"}}},
	{VERIFY_LIMITS, {{"limits.nodes", "0"}}},
	{VERIFY_LIMITS, {{"limits.drains", "0"}}},
	{VERIFY_LIMITS, {{O "4.spec.taints", "[{'key':'ToBeDeletedByClusterAutoscaler','effect':'NoSchedule'}]"}, {"limits.nodes", "1"}}},
	{VERIFY_LIMITS, {{O "4.metadata.annotations", "{'evenkeel.io/draining':'true'}"}, {"limits.drains", "1"}}},
	{VERIFY_GROUPS, {{"groups", "[{'name':'g','nodes':['n0','n4']}]"}}},
	{VERIFY_GROUPS, {{O "P.spec.schedulingGroup", "{'podGroupName':'g'}"}, {O "Q.spec.schedulingGroup", "{'podGroupName':'g'}"},
			 {O "+", "{'kind':'PodGroup','metadata':{'namespace':'d','name':'g'},'spec':{'minMember':2}}"}}},
	{VERIFY_GROUPS, {{O "P.spec.workloadRef", "{'name':'w','podGroup':'x'}"}, {O "Q.spec.workloadRef", "{'name':'w','podGroup':'x'}"},
			 {O "+", "{'kind':'Workload','metadata':{'namespace':'d','name':'w'},'spec':{'podGroups':[{'name':'x','policy':{'gang':{'minCount':2}}}]}}"}}},
	{VERIFY_BUDGETS, {{O "B.status.disruptionsAllowed", "0"}}},
	{VERIFY_BUDGETS, {{O "B.status.currentHealthy", "1"}}},
	{VERIFY_BUDGETS, {{O "B.metadata.generation", "2"}, {O "B.status.observedGeneration", "1"}}},
	{VERIFY_BUDGETS, {{O "+", "{'kind':'PodDisruptionBudget','metadata':{'namespace':'d','name':'all'},'spec':{'selector':{}},'status':{'disruptionsAllowed':9}}"}}},
	{VERIFY_BUDGETS, {{O "B", NULL}, {O "+", "{'kind':'PodDisruptionBudget','metadata':{'namespace':'d','name':'none'},'spec':{'selector':{'matchLabels':{'app':'a@'}}},'status':{}}"}}},
	{VERIFY_BUDGETS, {{O "P.spec.schedulingGroup", GANG}, {O "Q.spec.schedulingGroup", GANG}, {O "Q.spec.nodeName", "'n0'"},
			  {"nodes.0.moves.+", "{'namespace':'d','name':'q@','uid':'uid-q@','to':'n4'}"},
			  {O "+", "{'kind':'PodGroup','metadata':{'namespace':'d','name':'g'},'spec':{'minMember':2}}"}}},
	{VERIFY_OWNERS, {{O "Q.status.conditions.0.status", "'False'"}}},
	{VERIFY_OWNERS, {{O "R.spec.replicas", "3"}}},
	{VERIFY_OWNERS, {{O "Q.metadata.deletionTimestamp", "'2026-01-01T12:00:00Z'"}}},
	{VERIFY_QUOTAS, {{O "18.status.used.pods", "'7'"}}},
	{VERIFY_QUOTAS, {{O "17.spec.max.cpu", "'5'"}}},
	{VERIFY_QUOTAS, {{O "17.spec.min.cpu", "'5'"}}},
	{VERIFY_DESTINATION, {{O "N.metadata.deletionTimestamp", "'2026-01-01T12:00:00Z'"}}},
	{VERIFY_DESTINATION, {{O "N.metadata.annotations", "{'evenkeel.io/draining':'true'}"}}},
	{VERIFY_DESTINATION, {{O "N.status.conditions.0.status", "'Unknown'"}}},
	{VERIFY_DESTINATION, {{MOVE ".to", "'n0'"}}},
	{VERIFY_DESTINATION, {{MOVE ".to", "'n9'"}}},
	{VERIFY_DESTINATION, {{MOVE ".to", NULL}}},
	{VERIFY_DESTINATION, {{O "N.status.conditions", NULL}}},
	{VERIFY_DESTINATION, {{O "N.status.conditions.+", "{'type':'MaintenanceInProgress','status':'True'}"}}},
	{VERIFY_DESTINATION, {{O "N.status.conditions.+", "{'type':'DrainInProgress','status':'True'}"}}},
	{VERIFY_DESTINATION, {{O "N.spec.taints", "[{'key':'karpenter.sh/disruption','effect':'PreferNoSchedule'}]"}}},
	{VERIFY_ROOM, {{O "N.status.allocatable.cpu", "'500m'"}}},
	{VERIFY_ROOM, {{O "N.status.allocatable.memory", "'100Mi'"}}},
	{VERIFY_ROOM, {{O "N.status.allocatable.pods", "'0'"}}},
	{VERIFY_ROOM, {{O "P.spec.containers.0.resources.requests.gpu", "1"}}},
	{VERIFY_ROOM, {{O "P.spec.containers.0.resources.requests.memory", "1e30"}}},
	{VERIFY_ROOM, {{O "Q.spec.nodeName", "'nN'"}, {O "Q.spec.containers.0.name", "'c'"}, {O "Q.status.containerStatuses", "[{'name':'c','allocatedResources':{'memory':'10Gi'}}]"}}},
	{VERIFY_TAINTS, {{O "N.spec.taints", "[{'key':'team','value':'a','effect':'NoSchedule'}]"}}},
	{VERIFY_TAINTS, {{O "N.spec.taints", "[{'key':'team','effect':'NoExecute'}]"}, {O "P.spec.tolerations", "[{'key':'team','effect':'NoSchedule','operator':'Exists'}]"}}},
	{VERIFY_NODE_AFFINITY, {{O "P.spec.nodeSelector", "{'zone':'b'}"}}},
	{VERIFY_NODE_AFFINITY, {{O "P.spec.affinity.nodeAffinity." WHERE, "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['n4']}]}]}"}}},
	{VERIFY_NODE_AFFINITY, {{O "+", X("d", "", "'nodeSelector':{'zone':'b'}")}, {"reserved", "[{'uid':'uid-x','to':'nN','after':0}]"}}},
	{VERIFY_NODE_AFFINITY, {{O "+", X("d", "", "'nodeSelector':{'zone':'b'}")}, {"nodes.0.guests", "[{'uid':'uid-x','to':'nN','after':@}]"}}},
	{VERIFY_CORDON, {{O "N.spec.unschedulable", "true"}}},
	{VERIFY_ANTI_AFFINITY, {{O "P.spec.affinity.podAntiAffinity." WHERE, "[{'labelSelector':{'matchLabels':{'app':'a@'}},'topologyKey':'zone'}]"}, {O "4.metadata.labels.zone", "'a'"}}},
	{VERIFY_ANTI_AFFINITY, {{O "Q.spec.affinity.podAntiAffinity." WHERE, "[{'labelSelector':{'matchLabels':{'app':'a@'}},'topologyKey':'zone'}]"}, {O "4.metadata.labels.zone", "'a'"}}},
	{VERIFY_ANTI_AFFINITY, {{O "P.spec.affinity.podAntiAffinity." WHERE, "[{'labelSelector':{'matchLabels':{'app':'x'}},'topologyKey':'zone'}]"}, {O "+", X("d", "'nodeName':'n0'", "")},
			       {"nodes.0.moves", "[{'namespace':'d','name':'p0','uid':'uid-p0','to':'n1','step':1},{'namespace':'d','name':'p1','uid':'uid-p1','to':'n2','step':1},"
						 "{'namespace':'d','name':'p2','uid':'uid-p2','to':'n3','step':1}," X_MOVES("d", ",'step':2") "]"}}},
	{VERIFY_AFFINITY, {{O "P.spec.affinity.podAffinity." WHERE, "[{'labelSelector':{'matchLabels':{'app':'none'}},'topologyKey':'zone'}]"}}},
	{VERIFY_AFFINITY, {{O "P.spec.affinity.podAffinity." WHERE, "[{'labelSelector':{'matchLabels':{'app':'a@'}},'topologyKey':'zone'}]"}}},
	{VERIFY_SPREAD, {{O "P.spec.topologySpreadConstraints", "[{'maxSkew':1,'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'a@'}}}]"}, {O "Q.spec.nodeName", "'nN'"}}},
	{VERIFY_SPREAD, {{O "P.spec.topologySpreadConstraints", "[{'maxSkew':1,'topologyKey':'rack','labelSelector':{}}]"}}},
	{VERIFY_HOST_PORTS, {{O "P.spec.containers.0.ports", "[{'hostPort':80}]"}, {O "Q.spec.containers.0.ports", "[{'hostPort':80,'hostIP':'10.0.0.1'}]"}, {O "Q.spec.nodeName", "'nN'"}}},
	{VERIFY_VOLUMES, {{O "P.spec.volumes", "[{'persistentVolumeClaim':{'claimName':'c'}}]"}}},
	{VERIFY_VOLUMES, {CLAIM(",'status':{'phase':'Pending'}")}},
	{VERIFY_VOLUMES, {CLAIM(",'spec':{'volumeName':'v'},'status':{'phase':'Bound'}"),
			  {O "+", "{'kind':'PersistentVolume','metadata':{'name':'v'},'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In','values':['b']}]}]}}}}"}}},
	{VERIFY_VOLUMES, {CLAIM(",'spec':{'volumeName':'v'},'status':{'phase':'Bound'}"), {O "N.metadata.labels", "{'zone':'a','topology.kubernetes.io/zone':'1'}"},
			  {O "+", "{'kind':'PersistentVolume','metadata':{'name':'v','labels':{'topology.kubernetes.io/zone':1}}}"}}},
	{VERIFY_MEASURED, {{"usage.nodes.U", NULL}}},
	{VERIFY_MEASURED, {{"usage.nodes.U.end", "'2026-01-01T11:54:00Z'"}}},
	{VERIFY_MEASURED, {{USE "contention.cpu", "0.2"}}},
	{VERIFY_USE_CAP, {{USE "usage.cpuMillicores.windows.15m.mean", "8400"}}},
	{VERIFY_USE_CAP, {{USE "usage.cpuMillicores.windows.15m.stddev", "4000"}}},
	{VERIFY_USE_CAP, {{USE "usage.memoryBytes.windows.15m.max", "9663676416"}}},
	{VERIFY_USE_CAP, {{USE "usage.cpuMillicores.windows.15m.mean", "8000"}, {"usage.pods.@", NULL}}},
	{VERIFY_USE_CAP, {{"usage.pods.@.hourlyPeaks", "{'end':'2026-01-01T12:00:00Z','cpuMillicores':[null,9000],'workingSetBytes':[]}"}}},
	{VERIFY_USE_CAP, {{"usage.pods.@.hourlyPeaks", PEAKS("12", "[null,4500]")}, {O "Q.spec.nodeName", "'nN'"}, {"usage.pods.+", Q_PEAKS("[4500]")}}},
	{VERIFY_JUDGED, {{O "P.spec.resourceClaims", "[{'name':'gpu'}]"}}},
	{VERIFY_JUDGED, {{O "P.spec.tolerations", "[{'key':'a','operator':'Like'}]"}}},
};

/* clang-format on */

/* The path or value with the numbers of the move in place of letters between dots and quotes. */
static char *resolve(const char *text, int move)
{
	struct buf b = BUF_INIT;

	for (const char *at = text; *at; at++) {
		bool alone = at > text && strchr(".n", at[-1]) && strchr(".'", at[1] ? at[1] : '.');
		const char *letter = alone ? strchr("PQNRBU", *at) : NULL;
		static const int first[] = {5, 8, 1, 11, 14, 1};

		if (*at == '@')
			buf_printf(&b, "%d", move);
		else if (letter)
			buf_printf(&b, "%d", first[letter - "PQNRBU"] + move);
		else
			buf_add_char(&b, *at);
	}
	return buf_take(&b, NULL);
}

static cJSON *enter(cJSON *at, const char *key)
{
	cJSON *item = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, (int)strtol(key, NULL, 10))
					: cJSON_GetObjectItemCaseSensitive(at, key);

	if (!item)
		cJSON_AddItemToObject(at, key, item = cJSON_CreateObject());
	return item;
}

static void assign(cJSON *at, const char *key, cJSON *value)
{
	if (cJSON_IsArray(at) && !value)
		cJSON_DeleteItemFromArray(at, (int)strtol(key, NULL, 10));
	else if (cJSON_IsArray(at))
		cJSON_AddItemToArray(at, value);
	else
		cJSON_DeleteItemFromObjectCaseSensitive(at, key);
	if (value && !cJSON_IsArray(at))
		cJSON_AddItemToObject(at, key, value);
}

/* WHERE is one key, as all others between dots; labels with dots cannot be named. */
static void apply(const struct edit *e, int move, cJSON *plan, cJSON *snapshot)
{
	char *path = resolve(e->path, move), *value = e->value ? resolve(e->value, move) : NULL;
	bool cluster = strncmp(path, "list", 4) == 0 || strncmp(path, "usage", 5) == 0 ||
		       strncmp(path, "state", 5) == 0;
	cJSON *at = cluster ? snapshot : plan;
	char *key = path, *dot;

	for (; (dot = strchr(key, '.')); key = dot + 1) {
		*dot = '\0';
		at = enter(at, key);
	}
	assign(at, key, value ? parse(value) : NULL);
	free(value);
	free(path);
}

static void judge_mutant(const struct mutation *m, int move, bool refused)
{
	cJSON *plan = make_plan(), *snapshot = make_snapshot();
	struct verify_report report;
	struct verify_plan p;

	for (size_t i = 0; i < EDITS && m->edits[i].path; i++)
		apply(&m->edits[i], move, plan, snapshot);
	verify_fixture_judge(plan, snapshot, &p, &report);
	if (refused && !report.count)
		fail_msg("%s, move %d: %s is not refused", verify_invariant_name(m->broken), move,
			 m->edits[0].path);
	for (size_t i = 0; i < report.count; i++)
		if (!refused || report.of[i].invariant != m->broken || !*report.of[i].text.text)
			fail_msg("%s, move %d: %s is refused by %s: %s",
				 verify_invariant_name(m->broken), move, m->edits[0].path,
				 verify_invariant_name(report.of[i].invariant),
				 report.of[i].text.text);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	cJSON_Delete(plan);
	cJSON_Delete(snapshot);
}

/* --- tests */

static void a_plan_that_holds_has_no_violation(void **state)
{
	cJSON *plan = make_plan(), *snapshot = make_snapshot();
	struct verify_report report;
	struct verify_plan p;

	(void)state;
	verify_fixture_judge(plan, snapshot, &p, &report);
	if (report.count)
		fail_msg("%s: %s", verify_invariant_name(report.of[0].invariant),
			 report.of[0].text.text);
	assert_int_equal(p.move_count, MOVES);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	cJSON_Delete(plan);
	cJSON_Delete(snapshot);
}

static void each_change_breaks_its_invariant_alone(void **state)
{
	const size_t count = sizeof(mutations) / sizeof(mutations[0]);
	bool broken[VERIFY_INVARIANTS] = {false};

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (int move = 0; move < MOVES; move++) {
			judge_mutant(&mutations[i], move, true);
			broken[mutations[i].broken] = true;
		}
	for (int i = 0; i < VERIFY_INVARIANTS; i++)
		if (!broken[i])
			fail_msg("no change breaks %s", verify_invariant_name(i));
	print_message("%zu changed plans are refused\n", count * MOVES);
}

static void some_changes_break_nothing(void **state)
{
	static const struct mutation rows[] = {
		{.edits = {{O "N.metadata.annotations", "{'evenkeel.io/draining':'false'}"}}},
		{.edits = {{"limits", NULL}}},
		/* Peaks of different hours. */
		{.edits = {{"usage.pods.@.hourlyPeaks", PEAKS("12", "[4500]")},
			   {O "Q.spec.nodeName", "'nN'"},
			   {"usage.pods.+", Q_PEAKS("[4500]")}}},
		{.edits = {{"cap", NULL}, {"usage.nodes.U", NULL}}},
		{.edits = {{O "+", X("d", "",
				     "'volumes':[{'persistentVolumeClaim':{'claimName':"
				     "'c'}}]")},
			   {O "+", "{'kind':'PersistentVolumeClaim','metadata':{'namespace':'d',"
				   "'name':'c'},'status':{'phase':'Pending'}}"},
			   {"reserved", "[{'uid':'uid-x','to':'nN','after':0}]"}}},
		/* A pod follows the replacement of one that ends on a node in deletion. */
		{.edits = {{O "+", X("d", "'nodeName':'n4'", "")},
			   {O "19.metadata.deletionTimestamp", "'2026-01-01T12:00:00Z'"},
			   {O "+",
			    "{'kind':'Pod','metadata':{'namespace':'d','name':'y','uid':'uid-y'"
			    "},'spec':{'affinity':{'podAffinity':{'" WHERE
			    "':[{'labelSelector':{'matchLabels':{'app':'x'}},'topologyKey':"
			    "'kubernetes.io/hostname'}]}}}}"},
			   {O "4.spec.taints", "[{'key':'ToBeDeletedByClusterAutoscaler'}]"},
			   {"reserved", "[{'uid':'uid-x','to':'nN','after':0},{'uid':'uid-y','to':"
					"'nN','after':0}]"}}},
		/* A pod that was evicted, and whose replacement is there. */
		{.edits = {{O "P.spec.affinity",
			    "{'podAntiAffinity':{'" WHERE "':[{'topologyKey':'kubernetes.io/"
			    "hostname','labelSelector':{'matchLabels':{'app':'x'}}}]}}"},
			   {"state.drain.evictions",
			    "[{'pod':" X("d", "'nodeName':'nN'", "") "}]"}}},
		/* The pod of another node leaves with its group. */
		{.edits = {{O "P.spec.schedulingGroup", GANG},
			   {O "Q.spec.schedulingGroup", GANG},
			   {O "B.status", "{'disruptionsAllowed':2,'currentHealthy':2}"},
			   {"nodes.0.moves.+", "{'namespace':'d','name':'q@','uid':'uid-q@','from':"
					       "'n4','to':'n4'}"},
			   {O "+", "{'kind':'PodGroup','metadata':{'namespace':'d','name':'g'},"
				   "'spec':{'minMember':2}}"}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int move = 0; move < MOVES; move++)
			judge_mutant(&rows[i], move, false);
}

/* Judges the plan against a cluster without its first node or pod. */
static void expect_identity(const char *without, const char *text)
{
	cJSON *plan = make_plan(), *snapshot = make_snapshot();
	struct verify_report report;
	struct verify_plan p;

	apply(&(struct edit){without, NULL}, 0, plan, snapshot);
	verify_fixture_judge(plan, snapshot, &p, &report);
	assert_true(report.count > 0);
	assert_int_equal(report.of[0].invariant, VERIFY_IDENTITY);
	assert_string_equal(report.of[0].text.text, text);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	cJSON_Delete(plan);
	cJSON_Delete(snapshot);
}

static void nodes_and_pods_that_are_gone_are_named(void **state)
{
	(void)state;
	expect_identity("list.items.0", "there is no node n0");
	expect_identity(O "P", "pod d/p0 of the plan is gone");
}

/* --- how often objects are read */

static size_t reads;

/* The linker makes these names. NOLINTBEGIN(bugprone-reserved-identifier) */
cJSON *__real_cJSON_GetObjectItemCaseSensitive(const cJSON *object, const char *key);
cJSON *__wrap_cJSON_GetObjectItemCaseSensitive(const cJSON *object, const char *key);

cJSON *__wrap_cJSON_GetObjectItemCaseSensitive(const cJSON *object, const char *key)
{
	reads++;
	return __real_cJSON_GetObjectItemCaseSensitive(object, key);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Reads for the plan beside so many measured pods on n4. */
static size_t count_reads(int pods)
{
	cJSON *plan = make_plan(), *snapshot = make_snapshot(), *list, *usage;
	struct verify_report report;
	struct verify_plan p;

	list = cJSON_GetObjectItem(cJSON_GetObjectItem(snapshot, "list"), "items");
	usage = cJSON_GetObjectItem(cJSON_GetObjectItem(snapshot, "usage"), "pods");
	for (int i = 0; i < pods; i++) {
		char uid[32];
		cJSON *pod = cJSON_Duplicate(cJSON_GetArrayItem(list, 8), true);
		cJSON *use = cJSON_Duplicate(usage->child, true);

		snprintf(uid, sizeof(uid), "uid-%d", (i * 7919) % pods);
		cJSON_SetValuestring(
			cJSON_GetObjectItem(cJSON_GetObjectItem(pod, "metadata"), "uid"), uid);
		cJSON_ReplaceItemInObject(use, "uid", cJSON_CreateString(uid));
		cJSON_AddItemToArray(list, pod);
		cJSON_AddItemToArray(usage, use);
	}
	reads = 0;
	verify_fixture_judge(plan, snapshot, &p, &report);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	cJSON_Delete(plan);
	cJSON_Delete(snapshot);
	return reads;
}

static void reads_grow_with_the_pods_and_no_faster(void **state)
{
	size_t few = count_reads(100), many = count_reads(1000);

	(void)state;
	print_message("%zu reads beside 100 pods, %zu beside 1000\n", few, many);
	assert_true(few > 100);
	assert_true(many <= 10 * few);
}

/* Reserved room is used: a pending pod that comes first takes what the third move needs. */
static void reserved_pods_take_room(void **state)
{
	cJSON *plan = make_plan(), *snapshot = make_snapshot();
	cJSON *pods = cJSON_GetObjectItem(cJSON_GetObjectItem(snapshot, "list"), "items");
	struct buf b = BUF_INIT;
	struct verify_report report;
	struct verify_plan p;

	(void)state;
	add_pod(&b, 'w', 9, 0);
	b.data[b.len - 1] = '\0';
	cJSON_AddItemToArray(pods, parse(b.data));
	apply(&(struct edit){O "19.spec.nodeName", NULL}, 0, plan, snapshot);
	apply(&(struct edit){O "3.status.allocatable.cpu", "'1500m'"}, 0, plan, snapshot);
	apply(&(struct edit){O "17.spec.min.cpu", "'9'"}, 0, plan, snapshot);
	verify_fixture_judge(plan, snapshot, &p, &report);
	assert_int_equal(report.count, 0);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	apply(&(struct edit){"reserved", "[{'uid':'uid-w9','to':'n3','after':0}]"}, 0, plan,
	      snapshot);
	verify_fixture_judge(plan, snapshot, &p, &report);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.of[0].invariant, VERIFY_ROOM);
	assert_string_equal(report.of[0].text.text, "cpu: 1000 requested, 1000 of 1500 are taken");
	assert_ptr_equal(report.of[0].move, &p.moves[2]);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	buf_fini(&b);
	cJSON_Delete(plan);
	cJSON_Delete(snapshot);
}

static void what_is_no_plan_is_refused_by_its_member(void **state)
{
	static const struct {
		struct edit edit;
		const char *error;
	} rows[] = {
		{{"kind", "'DrainPlan'"},
		 "kind: must be \"DrainWave\"; evenkeel drain -o plan prints one"},
		{{"apiVersion", "'v1'"}, "apiVersion: must be \"evenkeel.io/v1\""},
		{{"planned", NULL}, "planned: must be a text that is not empty"},
		{{"viewVersion", "-1"}, "viewVersion: must be a number from 0 to 9.0072e+15"},
		{{"limits.nodes", NULL}, "limits.nodes: must be a number from 0 to 1e+06"},
		{{"limits.ownerShare", "'all'"}, "limits.ownerShare: must be a number from 0 to 1"},
		{{"cap.cpuShare", "1.5"}, "cap.cpuShare: must be a number from 0 to 1"},
		{{"nodes", NULL}, "nodes: is missing"},
		{{"nodes", "[1]"}, "nodes: must be a list of objects"},
		{{"nodes.0.uid", "''"}, "nodes[0].uid: must be a text that is not empty"},
		{{"nodes.0.moves", "{}"}, "nodes[0].moves: must be a list of at most 1000000"},
		{{"nodes.0.moves.1.uid", "7"},
		 "nodes[0].moves[1].uid: must be a text that is not empty"},
		{{"nodes.0.moves.2.step", "-1"},
		 "nodes[0].moves[2].step: must be a number from 0 to 1e+06"},
		{{"nodes.0.guests", "[{'uid':'a'}]"},
		 "nodes[0].guests[0].to: must be a text that is not empty"},
		{{"nodes.0.guests", "[{'uid':'a','to':'b','after':4}]"},
		 "nodes[0].guests[0].after: must be a number from 0 to 3"},
		{{"reserved", "[{'uid':'a','to':'b'}]"},
		 "reserved[0].after: must be a number from 0 to 1e+06"},
		{{"groups", "[{'name':'g'}]"}, "groups[0].nodes: must be a list of names"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cJSON *plan = make_plan();
		struct error error = {""};
		struct verify_plan p;
		char *text;

		apply(&rows[i].edit, 0, plan, NULL);
		text = cJSON_PrintUnformatted(plan);
		assert_true(verify_plan_read(text, strlen(text), &p, &error) < 0);
		assert_string_equal(error.text, rows[i].error);
		cJSON_free(text);
		cJSON_Delete(plan);
	}
}

/* Two nodes of 5001 moves. */
static void a_plan_has_a_bound(void **state)
{
	cJSON *plan = make_plan(), *moves, *nodes = cJSON_GetObjectItem(plan, "nodes");
	struct error error = {""};
	struct verify_plan p;
	char *text;

	(void)state;
	moves = cJSON_GetObjectItem(nodes->child, "moves");
	while (cJSON_GetArraySize(moves) < 5001)
		cJSON_AddItemToArray(moves, cJSON_Duplicate(moves->child, true));
	cJSON_AddItemToArray(nodes, cJSON_Duplicate(nodes->child, true));
	text = cJSON_PrintUnformatted(plan);
	assert_true(verify_plan_read(text, strlen(text), &p, &error) < 0);
	assert_string_equal(error.text, "nodes[1].moves: the plan must have at most 10000");
	cJSON_free(text);
	cJSON_Delete(plan);
}

static void what_is_no_snapshot_is_refused(void **state)
{
	cJSON *plan = make_plan(), *other = parse("{'kind':'List','items':[]}");
	char *text = cJSON_PrintUnformatted(plan);
	struct verify_report report;
	struct error error = {""};
	struct verify_plan p;

	(void)state;
	assert_int_equal(verify_plan_read(text, strlen(text), &p, &error), 0);
	assert_true(verify_judge(&p, other, &report, &error) < 0);
	assert_string_equal(error.text, "the snapshot has no list.items");
	cJSON_Delete(other);
	other = parse("{'kind':'Snapshot','list':{'items':[]},'usage':{'apiVersion':"
		      "'evenkeel.io/v1'}}");
	assert_int_equal(verify_judge(&p, other, &report, &error), -EINVAL);
	assert_string_equal(error.text,
			    "usage.apiVersion: must be evenkeel.io/v2, not \"evenkeel.io/v1\"");
	cJSON_Delete(other);
	other = parse("{'kind':'Snapshot','time':'2026-01-01T12:00:00Z','list':{'items':[]}}");
	assert_int_equal(verify_judge(&p, other, &report, &error), -ENODATA);
	assert_string_equal(
		error.text,
		"nothing is known of the cluster's nodes and pods: the snapshot has none");
	verify_plan_fini(&p);
	cJSON_free(text);
	cJSON_Delete(plan);
	cJSON_Delete(other);
}

/* The page has a row for each invariant, in the order of the table. */
static void the_page_explains_each_invariant_in_order(void **state)
{
	struct buf page = BUF_INIT;
	struct error error = {""};
	const char *at;

	(void)state;
	assert_int_equal(file_read("packaging/docs/verify.md", 1 << 20, &page, &error), 0);
	buf_add_char(&page, '\0');
	at = page.data;
	for (int i = 0; i < VERIFY_INVARIANTS; i++) {
		char *row = mem_printf("\n| `%s` |", verify_invariant_name(i));

		at = strstr(at, row);
		if (!at) {
			fail_msg("the page lacks the row of %s, or has it elsewhere", row + 3);
			return;
		}
		free(row);
	}
	buf_fini(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_that_holds_has_no_violation),
		cmocka_unit_test(each_change_breaks_its_invariant_alone),
		cmocka_unit_test(some_changes_break_nothing),
		cmocka_unit_test(nodes_and_pods_that_are_gone_are_named),
		cmocka_unit_test(reads_grow_with_the_pods_and_no_faster),
		cmocka_unit_test(reserved_pods_take_room),
		cmocka_unit_test(what_is_no_plan_is_refused_by_its_member),
		cmocka_unit_test(a_plan_has_a_bound),
		cmocka_unit_test(what_is_no_snapshot_is_refused),
		cmocka_unit_test(the_page_explains_each_invariant_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
