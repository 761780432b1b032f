/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel drain over a dump, as a person runs it: what is printed, what is complained of, and the
 * exit status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/drain_scene.h"
#include "tests/process.h"

static char *folder, *dump, *usage;

static char *write_file(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static int make_files(void **state)
{
	(void)state;
	folder = folder_make();
	dump = write_file("dump.yaml", drain_scene_dump);
	usage = write_file("usage.json", drain_scene_usage);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	free(dump);
	free(usage);
	folder_remove(folder);
	return 0;
}

/* words: "drain --explain"; measured: with the measurements; out and err are replaced. */
static int run(const char *words, bool measured, struct buf *out, struct buf *err)
{
	char *copy = mem_strdup(words), *save, *argv[24] = {(char *)program_path("evenkeel")};
	size_t n = 1;
	int code;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	argv[n++] = (char *)"--snapshot";
	argv[n++] = dump;
	argv[n++] = (char *)"--extra-capacity-min-rate=0";
	if (measured) {
		argv[n++] = (char *)"--usage";
		argv[n++] = usage;
	}
	buf_clear(out);
	buf_clear(err);
	code = process_run(argv, out, err);
	buf_add_str(out, "");
	buf_add_str(err, "");
	free(copy);
	return code;
}

/* clang-format off */
static const struct {
	const char *words;
	int code;
	const char *out, *err;
} outputs[] = {
	{"drain --assume-unneeded-for 15m", 0,
	 "8 nodes: 2 may be drained now, 1 could be later, 4 needed, 1 on the way.\n"
	 "use of pods: shared out of their nodes\n"
	 "\n"
	 "NODE     VERDICT      SINCE  DUE-IN  PODS  CPU-REQ%  CPU-MEAN%  MEM-REQ%  REASON\n"
	 "delta    drain       15m00s       -   0+1        3%        10%        0%  -\n"
	 "bravo    drain       15m00s       -     1       13%        10%        6%  -\n"
	 "echo     inDeletion       -       -     0        0%        10%        0%  CurrentlyBeingDeleted\n"
	 "foxtrot  unneeded    15m00s     due     1       13%        10%        6%  NotEnoughPdb\n"
	 "alpha    needed           -       -     1       55%        10%       25%  NotUnderutilized\n"
	 "charlie  needed           -       -     1        6%        10%        3%  BlockedByPod: LocalStorageRequested\n"
	 "golf     needed           -       -     1        6%        10%        3%  NoPlaceToMovePods\n"
	 "hotel    needed           -       -     0        0%        10%        0%  ScaleDownDisabledAnnotation\n"
	 "\n"
	 "Now, in this order: delta, bravo. 1 is empty, 1 pod moves. There is room as well if the scheduler\n"
	 "puts them elsewhere.\n"
	 "\n"
	 "FROM   POD         TO     CPU-REQ  MEM-REQ\n"
	 "bravo  shop/web-1  alpha     500m    1.0Gi\n"
	 "\n"
	 "DESTINATION  PODS  CPU-NOW  CPU-RESERVED  CPU-AFTER  CPU-CAP  MEM-NOW  MEM-RESERVED  MEM-AFTER  MEM-CAP\n"
	 "alpha           1     400m          1.89       2.83     3.40    1.6Gi         2.4Gi      5.6Gi   14.4Gi\n"
	 "\n"
	 "DISRUPTED                     PODS  ALLOWED  LEFT\n"
	 "PodDisruptionBudget shop/web     1        1     0\n"
	 "ReplicaSet shop/web              1        1     0\n",
	 ""},
	{"drain --assume-unneeded-for 15m -o name", 0, "node/delta\nnode/bravo\n", ""},
	{"drain -o name", 0, "", ""},
	{"drain bravo alpha --assume-unneeded-for 15m -o name", 3, "node/bravo\n",
	 "evenkeel: node alpha does not go now: NotUnderutilized\n"},
	{"drain --assume-unneeded-for 15m -o commands", 0,
	 "kubectl cordon delta bravo\n"
	 "kubectl drain delta --ignore-daemonsets\n"
	 "kubectl drain bravo --ignore-daemonsets\n",
	 ""},
	{"drain -o commands", 0, "", ""},
	{"slack -o commands", 2, "", "evenkeel: -o commands goes with drain\n"},
	{"drain", 0,
	 "8 nodes: 0 may be drained now, 3 could be later, 4 needed, 1 on the way.\n"
	 "use of pods: shared out of their nodes\n"
	"\n"
	"NODE     VERDICT     SINCE  DUE-IN  PODS  CPU-REQ%  CPU-MEAN%  MEM-REQ%  REASON\n"
	"echo     inDeletion      -       -     0        0%        10%        0%  CurrentlyBeingDeleted\n"
	"bravo    unneeded       0s  10m00s     1       13%        10%        6%  NotUnneededLongEnough\n"
	"delta    unneeded       0s  10m00s   0+1        3%        10%        0%  NotUnneededLongEnough\n"
	"foxtrot  unneeded       0s  10m00s     1       13%        10%        6%  NotUnneededLongEnough\n"
	"alpha    needed          -       -     1       55%        10%       25%  NotUnderutilized\n"
	"charlie  needed          -       -     1        6%        10%        3%  BlockedByPod: LocalStorageRequested\n"
	"golf     needed          -       -     1        6%        10%        3%  NoPlaceToMovePods\n"
	"hotel    needed          -       -     0        0%        10%        0%  ScaleDownDisabledAnnotation\n",
	 ""},
	{"drain bravo foxtrot --explain --assume-unneeded-for 15m", 3,
	 "NODE     VERDICT    SINCE  DUE-IN  PODS  CPU-REQ%  CPU-MEAN%  MEM-REQ%  REASON\n"
	"bravo    drain     15m00s       -     1       13%        10%        6%  -\n"
	"foxtrot  unneeded  15m00s     due     1       13%        10%        6%  NotEnoughPdb\n"
	"\n"
	"bravo: drain\n"
	"  it goes now, and 1 pod moves. There is room as well if the scheduler puts them elsewhere.\n"
	"\n"
	"FROM   POD         TO     CPU-REQ  MEM-REQ\n"
	"bravo  shop/web-1  alpha     500m    1.0Gi\n"
	"\n"
	"foxtrot: unneeded\n"
	"  NotEnoughPdb: pod shop/web-2: beside this wave, PodDisruptionBudget shop/web allows 0 more\n"
	"      disruptions: 3 pods are healthy, and 2 must be.\n"
	"      what helps: its PodDisruptionBudget allows disruptions: more pods become ready, or\n"
	"          minAvailable falls\n"
	"  where its pods went in the simulation:\n"
	"\n"
	"FROM     POD         TO     CPU-REQ  MEM-REQ\n"
	"foxtrot  shop/web-2  alpha     500m    1.0Gi\n",
	 "evenkeel: node foxtrot does not go now: NotEnoughPdb\n"},
	{"drain delta bravo echo --assume-unneeded-for 15m", 0,
	 "NODE   VERDICT      SINCE  PODS  CPU-REQ%  CPU-MEAN%  MEM-REQ%  REASON\n"
	"delta  drain       15m00s   0+1        3%        10%        0%  -\n"
	"bravo  drain       15m00s     1       13%        10%        6%  -\n"
	"echo   inDeletion       -     0        0%        10%        0%  CurrentlyBeingDeleted\n"
	"\n"
	"bravo: drain\n"
	"  it goes now, and 1 pod moves. There is room as well if the scheduler puts them elsewhere.\n"
	"\n"
	"FROM   POD         TO     CPU-REQ  MEM-REQ\n"
	"bravo  shop/web-1  alpha     500m    1.0Gi\n"
	"\n"
	"delta: drain\n"
	"  it goes now; nothing on it has to move.\n"
	"\n"
	"echo: inDeletion\n"
	"  CurrentlyBeingDeleted: it has the taint ToBeDeletedByClusterAutoscaler.\n"
	"      what helps: wait until the node is deleted\n",
	 ""},
	{"drain charlie golf hotel", 3,
	 "NODE     VERDICT  PODS  CPU-REQ%  CPU-MEAN%  MEM-REQ%  REASON\n"
	 "charlie  needed      1        6%        10%        3%  BlockedByPod: LocalStorageRequested\n"
	 "golf     needed      1        6%        10%        3%  NoPlaceToMovePods\n"
	 "hotel    needed      0        0%        10%        0%  ScaleDownDisabledAnnotation\n"
	 "\n"
	 "charlie: needed\n"
	 "  BlockedByPod: pod tool/scratch-0 must stay.\n"
	 "      what helps: see the reasons of its pods\n"
	 "  LocalStorageRequested: its volume tmp (emptyDir) is lost with the node.\n"
	 "      what helps: name the volumes in the pod's annotation\n"
	 "          cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes\n"
	 "\n"
	 "golf: needed\n"
	 "  NoPlaceToMovePods: pod tool/index-0 fits on no other node: 3 could go as well, 1 NodeGone, 3\n"
	 "      NodeAffinity; alpha: nodeSelector asks for kubernetes.io/hostname=golf, and the node has\n"
	 "      kubernetes.io/hostname=alpha.\n"
	 "      what helps: label a node as the pod asks, or change what the pod asks for\n"
	 "\n"
	 "hotel: needed\n"
	 "  ScaleDownDisabledAnnotation: it is annotated\n"
	 "      cluster-autoscaler.kubernetes.io/scale-down-disabled=true.\n"
	 "      what helps: remove the annotation from the node\n",
	 "evenkeel: node charlie does not go now: BlockedByPod\n"},
	{"drain --assume-unneeded-for 15m --max-drain-parallelism 1 --sort-by name --no-headers", 0,
	 "alpha    needed           -    -    1  55%  10%  25%  NotUnderutilized\n"
	 "bravo    drain       15m00s    -    1  13%  10%   6%  -\n"
	 "charlie  needed           -    -    1   6%  10%   3%  BlockedByPod: LocalStorageRequested\n"
	 "delta    drain       15m00s    -  0+1   3%  10%   0%  -\n"
	 "echo     inDeletion       -    -    0   0%  10%   0%  CurrentlyBeingDeleted\n"
	 "foxtrot  unneeded    15m00s  due    1  13%  10%   6%  ParallelismLimitReached\n"
	 "golf     needed           -    -    1   6%  10%   3%  NoPlaceToMovePods\n"
	 "hotel    needed           -    -    0   0%  10%   0%  ScaleDownDisabledAnnotation\n"
	 "\n"
	 "Now, in this order: delta, bravo. 1 is empty, 1 pod moves. There is room as well if the scheduler\n"
	 "puts them elsewhere.\n"
	 "\n"
	 "bravo  shop/web-1  alpha  500m  1.0Gi\n"
	 "\n"
	 "alpha  1  400m  1.89  2.83  3.40  1.6Gi  2.4Gi  5.6Gi  14.4Gi\n"
	 "\n"
	 "PodDisruptionBudget shop/web  1  1  0\n"
	 "ReplicaSet shop/web           1  1  0\n",
	 ""},
	{"drain --assume-unneeded-for 15m --drain-group-label pool --drain-group name=main,min=7", 0,
	 "8 nodes: 0 may be drained now, 3 could be later, 4 needed, 1 on the way.\n"
	 "use of pods: shared out of their nodes\n"
	"\n"
	"NODE     VERDICT     GROUP   SINCE  DUE-IN  PODS  CPU-REQ%  CPU-MEAN%  MEM-REQ%  REASON\n"
	"echo     inDeletion  main        -       -     0        0%        10%        0%  CurrentlyBeingDeleted\n"
	"bravo    unneeded    main   15m00s     due     1       13%        10%        6%  NodeGroupMinSizeReached\n"
	"delta    unneeded    main   15m00s     due   0+1        3%        10%        0%  NodeGroupMinSizeReached\n"
	"foxtrot  unneeded    main   15m00s     due     1       13%        10%        6%  NodeGroupMinSizeReached\n"
	"alpha    needed      main        -       -     1       55%        10%       25%  NotUnderutilized\n"
	"charlie  needed      main        -       -     1        6%        10%        3%  BlockedByPod: LocalStorageRequested\n"
	"golf     needed      main        -       -     1        6%        10%        3%  NoPlaceToMovePods\n"
	"hotel    needed      main        -       -     0        0%        10%        0%  ScaleDownDisabledAnnotation\n",
	 ""},
	{"drain alpha nope", 4,
	 "",
	 "evenkeel: node: there is no node \"nope\"\n"},
	{"drain --scale-down-utilization-threshold 1.5", 2,
	 "",
	 "evenkeel: --scale-down-utilization-threshold: \"1.5\" is too large; 0 to 1 are allowed\n"},
	{"drain --max-scale-down-parallelism 0", 2,
	 "",
	 "evenkeel: --max-scale-down-parallelism: \"0\" is too small; 1 to 100000 are allowed\n"},
	{"drain --drain-z 11", 2,
	 "",
	 "evenkeel: --drain-z: \"11\" is too large; 0 to 10 are allowed\n"},
	{"drain --drain-cpu-cap 0", 2,
	 "",
	 "evenkeel: --drain-cpu-cap: \"0\" is too small; 0.01 to 1 are allowed\n"},
	{"drain --drain-owner-share -0.1", 2,
	 "",
	 "evenkeel: --drain-owner-share: \"-0.1\" is too small; 0 to 1 are allowed\n"},
	{"drain --scale-down-unneeded-time 8d", 2,
	 "",
	 "evenkeel: --scale-down-unneeded-time: \"8d\" is not a duration such as 300ms, 5s, 1m30s or 2h\n"},
	{"drain --scale-down-unneeded-time 169h", 2,
	 "",
	 "evenkeel: --scale-down-unneeded-time: \"169h\" is too long; 0 to 168h are allowed\n"},
	{"drain --drain-group min=3", 2,
	 "",
	 "evenkeel: --drain-group \"min=3\": there must be a \"name\"\n"},
	{"drain --drain-budget nodes=101%", 2,
	 "",
	 "evenkeel: --drain-budget \"nodes=101%\": \"101%\" must be a number of nodes, or 0% to 100%\n"},
	{"drain --drain-variant kep", 2,
	 "",
	 "evenkeel: --drain-variant: \"kep\" is not known; it is corrected or upstream\n"},
	{"drain --sort-by age", 2,
	 "",
	 "evenkeel: --sort-by: \"age\" is not known; it is verdict, requests, use or name\n"},
};
/* clang-format on */

static void test_outputs(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		int code = run(outputs[i].words, true, &out, &err);

		if (code != outputs[i].code)
			fail_msg("%s: exit %d\n%s%s", outputs[i].words, code, out.data, err.data);
		assert_string_equal(out.data, outputs[i].out);
		assert_string_equal(err.data, outputs[i].err);
	}
	buf_fini(&out);
	buf_fini(&err);
}

/* clang-format off */
#define YOUNG_NODE(name) \
	"- {apiVersion: v1, kind: Node, metadata: {name: " name "}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}, " \
	"allocatable: {cpu: 4, memory: 8Gi, pods: 110}, conditions: [{type: Ready, status: 'True'}]}}\n"
#define YOUNG_POD(name, node) \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: " name ", uid: uid-" name ", creationTimestamp: '%1$s', " \
	"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: uid-web, controller: true}]}, " \
	"spec: {nodeName: " node ", containers: [{name: c, resources: {requests: {cpu: 100m, memory: 128Mi}}}]}, " \
	"status: {phase: Running, conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: '%1$s'}]}}\n"
#define YOUNG_USE(name, cpu, memory) "\"" name "\":{\"metrics\":[{\"type\":\"CPU\",\"operator\":\"AVG\",\"value\":" cpu "}," \
	"{\"type\":\"CPU\",\"operator\":\"STD\",\"value\":1},{\"type\":\"Memory\",\"operator\":\"AVG\",\"value\":" memory "}," \
	"{\"type\":\"Memory\",\"operator\":\"STD\",\"value\":1}]}"

static const char young_dump[] =
	"apiVersion: v1\nkind: List\nitems:\n"
	YOUNG_NODE("idle") YOUNG_NODE("hot") YOUNG_NODE("warm")
	"- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop, name: web, uid: uid-web}, spec: {replicas: 6}, "
	"status: {replicas: 6, readyReplicas: 6}}\n"
	YOUNG_POD("a", "idle") YOUNG_POD("b", "idle") YOUNG_POD("c", "hot") YOUNG_POD("d", "hot") YOUNG_POD("e", "warm")
	YOUNG_POD("f", "warm");
static const char young_usage[] =
	"{\"timestamp\":1767268800,\"window\":{\"duration\":\"15m\",\"start\":1767267900,\"end\":1767268800},\"source\":\"test\",\"data\":{"
	"\"NodeMetricsMap\":{" YOUNG_USE("idle", "10", "10") "," YOUNG_USE("hot", "95", "40") "," YOUNG_USE("warm", "80", "40") "}}}";
/* clang-format on */

/* A load watcher measures no pods: those of a hot node are hot, though they are younger than its window. */
static void young_pods_of_hot_nodes_stay(void **state)
{
	static const char *const since[] = {"2026-01-01T11:46:00Z", "2026-01-01T11:50:00Z",
					    "2026-01-01T11:57:00Z"};
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *usual_dump = dump, *usual_usage = usage;

	(void)state;
	usage = write_file("young.json", young_usage);
	for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++) {
		char *text = mem_printf(young_dump, since[i]);

		dump = write_file("young.yaml", text);
		assert_int_equal(run("drain --assume-unneeded-for 20m --drain-owner-share 1", true,
				     &out, &err),
				 0);
		if (!strstr(out.data, "3 nodes: 0 may be drained now") ||
		    !strstr(out.data, "use of pods: shared out of their nodes\n"))
			fail_msg("%s: %s", since[i], out.data);
		free(dump);
		free(text);
	}
	free(usage);
	dump = usual_dump;
	usage = usual_usage;
	buf_fini(&out);
	buf_fini(&err);
}

/* A plain dump says nothing of real use, and the answer that. */
static void test_no_usage(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	assert_int_equal(run("drain --assume-unneeded-for 15m", false, &out, &err), 4);
	assert_string_equal(
		err.data,
		"evenkeel: no usage is in the snapshot: give measurements with --usage\n");
	assert_non_null(
		strstr(out.data,
		       "NODE     VERDICT      SINCE  DUE-IN  PODS  CPU-REQ%  MEM-REQ%  REASON\n"));
	assert_non_null(strstr(out.data, "\nDESTINATION  PODS\nalpha           1\n"));
	assert_int_equal(
		run("drain --assume-unneeded-for 15m --no-drain-use-cap", true, &out, &err), 0);
	assert_null(strstr(out.data, "THEN"));
	buf_fini(&out);
	buf_fini(&err);
}

/* The chain in words, and the plan's own sentences. */
static void test_sentences(void **state)
{
	static const char *const words[] = {
		"Of 8 nodes 3 could go, 2 of them now; needed: 4, in deletion: 1,",
		"delta goes; nothing on it has to move.\n",
		"bravo goes, and of it shop/web-1 to alpha.\n",
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	assert_int_equal(run("drain --explain --assume-unneeded-for 15m", true, &out, &err), 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(out.data, words[i]))
			fail_msg("%s is not in:\n%s", words[i], out.data);
	assert_int_equal(run("drain -o wide --no-headers", true, &out, &err), 0);
	assert_non_null(strstr(out.data, "BlockedByPod: LocalStorageRequested  pod tool/scratch-0 "
					 "must stay: its volume tmp (emptyDir) is lost"));
	buf_fini(&out);
	buf_fini(&err);
}

static void test_json_is_the_answer(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	const cJSON *items;
	cJSON *json;

	(void)state;
	assert_int_equal(run("drain golf alpha -o json", true, &out, &err), 3);
	json = cJSON_Parse(out.data);
	assert_non_null(json);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "kind")),
			    "DrainPlan");
	items = cJSON_GetObjectItemCaseSensitive(json, "items");
	assert_int_equal(cJSON_GetArraySize(items), 2);
	cJSON_Delete(json);
	buf_fini(&out);
	buf_fini(&err);
}

/* A server has its own rules; what the environment says is meant for one. */
static void test_rules_are_the_servers(void **state)
{
	static const char *const words[] = {"--assume-unneeded-for=1m", "--max-drain-parallelism=2",
					    "--drain-group=name=a", "--no-drain-use-cap",
					    "--extra-capacity-min-rate=0"};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	setenv("EVENKEEL_DRAIN_GROUP", "name=a,min=1;name=b", 1);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *argv[] = {(char *)program_path("evenkeel"), (char *)"drain", (char *)words[i],
				(char *)"--server=127.0.0.1:1", NULL};

		buf_clear(&err);
		assert_int_equal(process_run(argv, &out, &err), 2);
		buf_add_str(&err, "");
		assert_non_null(strstr(err.data, " goes with --snapshot; a server has its own\n"));
	}
	unsetenv("EVENKEEL_DRAIN_GROUP");
	buf_fini(&out);
	buf_fini(&err);
}

/* verify of the wave, or of a text instead, against the dump with a part of it replaced. */
static void check_verify(const char *instead, const char *from, const char *to, int code,
			 const char *want_out, const char *want_err)
{
	struct buf out = BUF_INIT, err = BUF_INIT, other = BUF_INIT;
	const char *at = from ? strstr(drain_scene_dump, from) : NULL;
	char *plan, *cluster;

	assert_int_equal(run("drain --assume-unneeded-for 15m -o plan", true, &out, &err), 0);
	plan = write_file("wave.json", instead ? instead : out.data);
	if (at)
		buf_printf(&other, "%.*s%s%s", (int)(at - drain_scene_dump), drain_scene_dump, to,
			   at + strlen(from));
	cluster = write_file("other.yaml", at ? other.data : drain_scene_dump);
	buf_clear(&out);
	buf_clear(&err);
	assert_int_equal(process_run((char *[]){(char *)program_path("evenkeel"), (char *)"verify",
						plan, (char *)"--snapshot", cluster,
						(char *)"--usage", usage, NULL},
				     &out, &err),
			 code);
	buf_add_str(&out, "");
	buf_add_str(&err, "");
	assert_string_equal(out.data, want_out);
	assert_true(*want_err ? strstr(err.data, want_err) != NULL : !*err.data);
	buf_fini(&out);
	buf_fini(&err);
	buf_fini(&other);
	free(plan);
	free(cluster);
}

static void a_plan_is_judged_a_second_time(void **state)
{
	(void)state;
	check_verify(NULL, NULL, NULL, 0, "agrees: 1 move\n", "");
	check_verify(NULL, "2200m", "3800m", 1,
		     "  room: move 1 of 1, pod shop/web-1 from bravo to alpha: cpu: 500 requested, "
		     "3800 of 4000 are taken\n",
		     "evenkeel: the plan is refused: 1 violation\n");
	check_verify("{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"DrainWave\"}", NULL, NULL, 2,
		     "", "wave.json: planned: must be a text that is not empty\n");
	check_verify(
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"DrainWave\",\"planned\":\"now\","
		"\"viewVersion\":1,\"nodes\":[]}",
		NULL, NULL, 0,
		"agrees: 0 moves (the plan drains no node)\nreal use not judged: the plan has no "
		"cap\n"
		"limits and owners not judged: the plan has no limits\n",
		"");
	check_verify("[]", NULL, NULL, 2, "", "wave.json: the plan is not a JSON object\n");
	check_verify(NULL, "apiVersion", "apiVersion: [", 2, "", "other.yaml");
}

/* By its exit status: no server, and the snapshot of an aggregator without a cluster. */
static void a_plan_without_a_cluster_is_not_judged(void **state)
{
	static const char nothing[] = "nothing is known of the cluster's nodes and pods";
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *plan = write_file("wave.json", "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":"
					     "\"DrainWave\",\"planned\":\"now\",\"viewVersion\":1,"
					     "\"nodes\":[{\"name\":\"a\",\"uid\":\"u\"}]}");
	char *alone =
		write_file("alone.json",
			   "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\","
			   "\"time\":\"2026-01-01T12:00:00Z\",\"list\":{\"apiVersion\":"
			   "\"v1\",\"kind\":\"List\",\"items\":[]},\"usage\":{"
			   "\"apiVersion\":\"evenkeel.io/v2\",\"kind\":\"Usage\",\"time\":"
			   "\"2026-01-01T12:00:00Z\",\"nodes\":[],\"pods\":[]},\"state\":{}}");
	char *program = (char *)program_path("evenkeel");
	char *const lines[][6] = {
		{program, (char *)"verify", plan, (char *)"--snapshot", alone, NULL},
		{program, (char *)"drain", (char *)"--snapshot", alone, NULL},
		{program, (char *)"verify", plan, (char *)"--server=127.0.0.1:1", NULL},
		{program, (char *)"verify", (char *)"--help", NULL},
	};
	static const int codes[] = {4, 4, 1, 0};
	const char *const says[] = {nothing, nothing, "cannot reach http://127.0.0.1:1", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		buf_clear(&out);
		buf_clear(&err);
		assert_int_equal(process_run(lines[i], &out, &err), codes[i]);
		buf_add_str(&err, "");
		assert_non_null(strstr(err.data, says[i]));
	}
	/* Its own statuses, and not those of other commands. */
	buf_add_str(&out, "");
	assert_non_null(strstr(out.data, "Exit status 0: the plan holds"));
	assert_null(strstr(out.data, "2 wrong usage"));
	buf_fini(&out);
	buf_fini(&err);
	free(plan);
	free(alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(young_pods_of_hot_nodes_stay),
		cmocka_unit_test(test_no_usage),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_json_is_the_answer),
		cmocka_unit_test(test_rules_are_the_servers),
		cmocka_unit_test(a_plan_is_judged_a_second_time),
		cmocka_unit_test(a_plan_without_a_cluster_is_not_judged),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
