/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel whatif as a program: what it shows of changes, with and without a command, and refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

/*
 * words: behind "evenkeel whatif --snapshot FILE"; "$" is a file with the scenarios. says: a part of
 * the output, behind "=" all of it.
 */
static void check_command(const char *words, const char *scenarios, int code, const char *says,
			  const char *why)
{
	char *folder = folder_make(), *path = mem_printf("%s/scenarios.yaml", folder);
	char *copy = mem_strdup(words), *save;
	char *argv[24] = {(char *)program_path("evenkeel"), (char *)"whatif", (char *)"--snapshot",
			  (char *)"tests/docs/snapshot.json"};
	FILE *f = fopen(path, "w");
	struct buf out = BUF_INIT, err = BUF_INIT;
	size_t n = 4;
	int got;

	assert_true(f && fputs(scenarios ? scenarios : "", f) >= 0 && fclose(f) == 0);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = strcmp(word, "$") == 0 ? path : word;
	got = process_run(argv, &out, &err);
	folder_remove(folder);
	buf_add_str(&out, "");
	buf_add_str(&err, "");
	if (got != code || !strstr(err.data, why) ||
	    (*says == '=' ? strcmp(out.data, says + 1) != 0 : !strstr(out.data, says)))
		fail_msg("whatif %s: %d, \"%s\", \"%s\"", words, got, out.data, err.data);
	buf_fini(&out);
	buf_fini(&err);
	free(copy);
	free(path);
}

#define MANIFESTS                                                                                  \
	"---\n# Source: shop/service.yaml\n"                                                       \
	"{apiVersion: v1, kind: Service, metadata: {name: a}}\n"                                   \
	"---\n# Source: shop/empty.yaml\n"                                                         \
	"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"                            \
	"---\n{apiVersion: v1, kind: Service, metadata: {name: c}}\n"                              \
	"---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: shop}, "      \
	"spec: "                                                                                   \
	"{replicas: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}, "  \
	"limits: {cpu: 1}}}]}}}}\n"

#define OWNED(name)                                                                                \
	"{apiVersion: v1, kind: Pod, metadata: {name: " name ", ownerReferences: [{kind: Job, "    \
	"name: j, controller: true}]}, spec: {containers: [{name: c}]}}"
#define EXPORT                                                                                     \
	"{apiVersion: v1, kind: List, items: [{apiVersion: batch/v1, kind: Job, metadata: {name: " \
	"j}, spec: {template: {spec: {containers: [{name: c}]}}}}, " OWNED("p") ", " OWNED(        \
		"q") "]}"

/* clang-format off */
#define APART(namespace) \
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: " namespace "}, spec: {template: {spec: " \
	"{containers: [{name: c}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " \
	"[{topologyKey: topology.kubernetes.io/region, labelSelector: {matchLabels: {app: query-api}}}]}}}}}}"
/* clang-format on */

#define TAINT(key) "{key: " key ", effect: NoSchedule}, "
/* clang-format off */
#define TROUBLED \
	"{apiVersion: v1, kind: Node, metadata: {name: node-0000, deletionTimestamp: '2026-11-25T16:00:00Z'}, " \
	"spec: {unschedulable: true, taints: [" \
	TAINT("node.kubernetes.io/unschedulable") \
	TAINT("node.kubernetes.io/not-ready") \
	TAINT("node.cloudprovider.kubernetes.io/shutdown") \
	TAINT("ToBeDeletedByClusterAutoscaler") \
	TAINT("DeletionCandidateOfClusterAutoscaler") \
	TAINT("karpenter.sh/disrupted") \
	TAINT("evenkeel.io/draining") \
	"{key: own, effect: PreferNoSchedule}]}, status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}, " \
	"conditions: [{type: Ready, status: 'False'}, {type: DrainInProgress, status: 'True'}]}}"
/* clang-format on */

/* All that changes in evenkeel nodes --no-headers; both rows have the same layout. */
#define CORDONED                                                                                   \
	"=- node-0000  Ready            621m/7.80   8%  15%  10%  618m   75m   732m   740m    "    \
	"1.9/30Gi   6%   5%   8%  0%/0%  0s  T1\n"                                                 \
	"+ node-0000  Ready,cordoned   621m/7.80   8%  15%  10%  618m   75m   732m   740m    "     \
	"1.9/30Gi   6%   5%   8%  0%/0%  0s  T1\n"

/* The timers of a snapshot go on. The only node that has one is the one that goes. */
#define GONE                                                                                       \
	"=- node-0000  unneeded     45s  9m14s   3+1  15%   8%   5%   8%  NotUnneededLongEnough\n" \
	"- node-0001  notExamined    -      -   3+1   8%   4%   4%   8%  DestinationInWave\n"      \
	"+ node-0001  needed         -      -   3+1   8%   4%   4%   8%  NoPlaceToMovePods\n"

static const struct {
	const char *words, *scenarios;
	int code;
	const char *says, *why;
} commands[] = {
	/* Figures. */
	{"--remove node-0000", NULL, 0,
	 "\nchanged       3    20             4              1              0 ", ""},
	/* Pods stay where they have no room any more: on three of four nodes. */
	{"--resize analytics/query-api=cpu:20", NULL, 0,
	 "\nnow           4    24             1              1              0 ", ""},
	{"--resize analytics/query-api=cpu:20", NULL, 0,
	 "\nchanged       4    24             1              1              3 ", ""},
	{"--resize search/orders-api=limits.cpu:4 -- nodes node-0001 -o wide", NULL, 0,
	 "4.30       55%          55%", ""},
	{"--resize search/orders-api=limits.cpu:4 -- pods", NULL, 0, "CPU-LIM  THROTTLED", ""},
	{"--apply $",
	 "{apiVersion: v1, kind: Node, metadata: {name: node-0000}, status: {allocatable: "
	 "{cpu: 8, memory: 32Gi, pods: 3}}}",
	 0, "\nchanged       4    24             1              1              1 ", ""},
	{"--apply $",
	 "{apiVersion: v1, kind: Node, metadata: {name: node-0000}, status: {allocatable: "
	 "{cpu: 8, pods: 110}}}",
	 0, "\nchanged       4    24             1              1              1 ", ""},
	{"--resize analytics/query-api=cpu:20 -o json", NULL, 0, "\"overcommittedNodes\":3,", ""},
	{"--resize analytics/query-api=cpu:20 --color always", NULL, 0,
	 "\033[31m3\033[0m      175%", ""},
	/* Of two equal specs one fits no node, by the pods of its namespace; in any order. */
	{"--apply $", APART("analytics") "\n---\n" APART("shop"), 0,
	 "\nchanged       4    24             3              2 ", ""},
	{"--apply $", APART("shop") "\n---\n" APART("analytics"), 0,
	 "\nchanged       4    24             3              2 ", ""},
	/* A node that is removed can be the model of others. */
	{"--remove node-0000 --add 2xnode-0000", NULL, 0, "\nchanged       5 ", ""},
	{"--remove node-0000 -o json", NULL, 0,
	 "{\"name\":\"changed\",\"nodes\":3,\"pods\":20,\"pendingPods\":4,", ""},
	{"--scenarios $",
	 "[{name: few, remove: [node-0000, node-0001]}, {name: many, add: 3xnode-0000}]", 0,
	 "\nfew           2 ", ""},
	{"--scenarios $",
	 "[{name: few, remove: [node-0000, node-0001]}, {name: many, add: 3xnode-0000}]", 0,
	 "\nmany          7 ", ""},
	/* A copy has none of the troubles of its model, but its own taints. */
	{"--apply $ --add 1xnode-0000 -o snapshot", TROUBLED, 0,
	 "\"taints\":[{\"key\":\"own\",\"effect\":\"PreferNoSchedule\"}]},\"status\":{"
	 "\"allocatable\":{\"cpu\":8,\"memory\":\"32Gi\",\"pods\":110},\"conditions\":[{\"type\":"
	 "\"Ready\",\"status\":\"True\"}]}}",
	 ""},
	{"--apply $ --add 1xnode-0000 -- scores --pod tests/docs/pod.yaml", TROUBLED, 0,
	 "+ whatif-1      94  yes ", ""},
	/* Another command: the lines that differ, below the title of its columns. */
	{"--cordon node-0001 -- scores --pod tests/docs/pod.yaml", NULL, 0,
	 "  NODE       SCORE  FITS  LVRB  LIMITS  RUNG\n- node-0001     87  yes ", ""},
	{"--cordon node-0001 -- scores --pod tests/docs/pod.yaml", NULL, 0,
	 "\n+ node-0001     87  no ", ""},
	{"--cordon node-0001 -- glossary", NULL, 2, "", "cannot be run within"},
	{"--cordon node-0001 -- pods", NULL, 0, "Nothing that this command shows would change.\n",
	 ""},
	{"--set limit=1 -- nodes", NULL, 0, "- node-0000", ""},
	/* A column that comes with the change is there before it, too. */
	{"--cordon node-0000 -- nodes --no-headers", NULL, 0, CORDONED, ""},
	{"--cordon node-0000 --scenarios $ -- nodes --no-headers", "[{name: a, cordon: node-0000}]",
	 0, "\na:\n- node-0000  Ready            621m/7.80   8%  15%", ""},
	/* A column that goes with it stays. */
	{"--remove node-0000 -- drain --no-headers", NULL, 0, GONE, ""},
	{"--cordon node-0000 -- nodes -o json", NULL, 2, "", "give whatif -o json -- nodes"},
	{"--cordon node-0000 -- nodes -o yaml", NULL, 2, "", "give whatif -o json"},
	{"--cordon node-0000 --set output=csv -- pods", NULL, 2, "", "give whatif -o json -- pods"},
	{"--cordon node-0000 -- nodes -o name", NULL, 0, "Nothing that this command", ""},
	{"--add 2xnode-0000 -- drain", NULL, 0, "REASON\n+ whatif-1   unneeded", ""},
	{"--scenarios $ -- drain", "[{name: a, cordon: node-0000}, {name: b, add: 2xnode-0000}]", 0,
	 "\nb:\n", ""},
	/* Manifests as helm makes them. */
	{"--apply $", MANIFESTS, 0, "\nchanged       4    24             3 ",
	 "scenarios.yaml: skipped, as no answer depends on these: 1 ConfigMap, 2 Service"},
	{"--apply $", EXPORT, 0, "",
	 "scenarios.yaml: 2 objects left out, as the file has their controllers"},
	{"--remove node-0000 -o json -- nodes", NULL, 0,
	 "{\"apiVersion\":\"evenkeel.io/"
	 "v1\",\"kind\":\"WhatIf\",\"before\":{\"apiVersion\"",
	 ""},
	{"--remove node-0000 -o json -- nodes", NULL, 0,
	 "\"after\":[{\"name\":\"changed\",\"answer\":{\"apiVersion\"", ""},
	/* What cannot be asked. */
	{"", NULL, 2, "", "name a change; --help lists them"},
	{"--remove node-9 -o snapshot", NULL, 2, "=", "there is no node \"node-9\""},
	{"--remove node-9", NULL, 2, "", "--remove node-9: there is no node \"node-9\""},
	{"--remove node-0000 -- nodez", NULL, 2, "", "there is no command \"nodez\""},
	{"--remove node-0000 -- nodes --bad", NULL, 2, "", "unknown option --bad"},
	{"--remove node-0000 -- whatif", NULL, 2, "", "cannot be run within"},
	{"--remove node-0000 -- nodes -w", NULL, 2, "", "do not go with COMMAND"},
	{"--remove node-0000 -- nodes --server x", NULL, 2, "",
	 "COMMAND: it answers from what whatif reads"},
	{"--remove node-0000 -- nodes --snapshot foo", NULL, 2, "",
	 "--snapshot, --usage, --server, --kubeconfig and --context do not go with"},
	{"--remove node-0000 --set context=x -- nodes", NULL, 2, "",
	 "COMMAND: it answers from what whatif reads"},
	{"--remove node-0000 -- nodes nope", NULL, 4, "", "nope"},
	/* Options that COMMAND alone heeds. */
	{"--remove node-0000 -n shop -- pods", NULL, 2, "",
	 "--namespace is for COMMAND: give it behind --, as in -- pods --namespace"},
	{"--remove node-0000 -A -- pods", NULL, 2, "", "--all-namespaces is for COMMAND"},
	{"--remove node-0000 --limit 1 -- pods", NULL, 2, "", "--limit is for COMMAND"},
	{"--remove node-0000 --no-headers -- pods", NULL, 2, "", "--no-headers is for COMMAND"},
	{"--remove node-0000 -o wide -- pods", NULL, 2, "", "--output=wide is for COMMAND"},
	{"--remove node-0000 --limit 1 --no-headers", NULL, 0, "now ", ""},
	{"--set a=1", NULL, 2, "", "there is no COMMAND"},
	{"--set =1 -- nodes", NULL, 2, "", "must be OPTION=VALUE"},
	{"--scenarios $", "[{name: a}]", 2, "", "scenarios.yaml: scenario a: there is no change"},
	{"--scenarios $", "[{name: 3, add: node-0000}]", 2, "",
	 "scenarios.yaml: each scenario must have a name that is text (quote a number)"},
	{"--scenarios $", "[{name: a, set: limit=1}]", 2, "",
	 "scenarios.yaml: scenario a: --set limit=1: there is no COMMAND"},
	{"--scenarios $ -- nodes", "[{name: a, set: bad=1}]", 2, "",
	 "scenarios.yaml: scenario a: unknown option --bad"},
	{"--scenarios $", "[{name: now, remove: a}]", 2, "", "other than \"now\" and \"changed\""},
	{"--scenarios $ --remove node-0000", "[{name: changed, add: node-0000}]", 2, "",
	 "other than \"now\" and \"changed\""},
	{"--scenarios $", "[]", 2, "", "scenarios.yaml: the list has no scenario"},
	{"--scenarios $", "[{name: a, add: node-0000}, {name: a, add: node-0000}]", 2, "",
	 "there are two scenarios \"a\""},
	{"--scenarios $", "[{name: a, scenarios: b}]", 2, "",
	 "scenarios.yaml: scenario a: a scenario has no scenarios"},
	{"--apply $",
	 "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, "
	 "resources: {requests: {cpu: garbage}}}]}}",
	 2, "", "scenarios.yaml: Pod p: spec.containers[0].resources.requests.cpu: "},
	{"--remove node-0000 -o snapshot -- nodes", NULL, 2, "", "give one scenario"},
	{"--remove node-0000 -- nodes -o commands", NULL, 2, "", "goes with drain"},
	{"--set bad=1 -- nodes", NULL, 2, "", "unknown option --bad"},
	{"--scenarios /nonexistent", NULL, 2, "", "/nonexistent"},
	{"--scenarios $", "{a: 1}", 2, "", "scenarios.yaml: must be one list of scenarios"},
	{"--scenarios $", "[{remove: a}]", 2, "", "each scenario must have a name"},
	{"--scenarios $", "[{name: a, remove: [1]}]", 2, "",
	 "scenario a: remove must be a text or a list of texts"},
	{"--scenarios $", "[{name: a, remov: b}]", 2, "", "scenario a: unknown option --remov"},
	{"--scenarios $", "[{name: a, remove: b}]", 2, "",
	 "scenarios.yaml: scenario a: --remove b: there is no node \"b\""},
	{"--scenarios $ -- nodes", "[{name: a, remove: b}]", 2, "",
	 "scenarios.yaml: scenario a: --remove b: there is no node \"b\""},
};

static void test_command(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		check_command(commands[i].words, commands[i].scenarios, commands[i].code,
			      commands[i].says, commands[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_command)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
