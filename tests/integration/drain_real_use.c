/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drains where requests and real use disagree, both ways, by what the kernel counts on this
 * machine. Four nodes, each a cgroup of its own with a real agent that sees nothing else, and
 * objects that say what their pods request:
 *
 *	node   CPUs  pods request  pods use          by requests       by real use
 *	hot-1  0.4   10 %          0.3 CPUs          goes              no node can take what it uses
 *	hot-2  0.4   10 %          0.3 CPUs          goes              likewise
 *	keep   0.4   95 %          0 CPUs, 200 MiB   stays             idle: told, and what would free it
 *	room   0.3   57 %          0 CPUs            stays             idle likewise
 *
 * What the plan says of use is held against the kernel's own files; and the advice is followed:
 * with requests as low as it says, the node goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"
#include "tests/stack.h"

#define HOLD_BYTES ((size_t)200 << 20)
#define MIB	   1048576.0
#define SAMPLES	   150
#define BURN_MILLI 300
#define CPU_CAP	   0.85
#define TIMEOUT_S  120

enum node { HOT_1, HOT_2, KEEP, ROOM, NODES };

static const struct {
	const char *name, *pod, *uid, *container;
	int cpu_milli, asks_milli, asks_mib; /* what there is, and what the pod requests */
	bool burns;
	size_t holds_bytes;
} nodes[NODES] = {
	[HOT_1] = {"hot-1", "burn-1", "9e205513-0d2d-4959-95d2-c8daca5427d1",
		   "7bfdd4f7d3d328cac65b956cdfcb0bc299a0b66d869e86bb93d1e56aab025641", 400, 40, 64,
		   true, 0},
	[HOT_2] = {"hot-2", "burn-2", "9e205513-0d2d-4959-95d2-c8daca5427d2",
		   "7bfdd4f7d3d328cac65b956cdfcb0bc299a0b66d869e86bb93d1e56aab025642", 400, 40, 64,
		   true, 0},
	[KEEP] = {"keep", "keep-1", "9e205513-0d2d-4959-95d2-c8daca5427d3",
		  "7bfdd4f7d3d328cac65b956cdfcb0bc299a0b66d869e86bb93d1e56aab025643", 400, 380, 256,
		  false, HOLD_BYTES},
	[ROOM] = {"room", "base-1", "9e205513-0d2d-4959-95d2-c8daca5427d4",
		  "7bfdd4f7d3d328cac65b956cdfcb0bc299a0b66d869e86bb93d1e56aab025644", 300, 170, 64,
		  false, 0},
};

/* For the aggregator and the command alike: plans follow the measurements at once. */
static const char *const settings[][2] = {
	{"EVENKEEL_PLAN_INTERVAL", "1s"},
	{"EVENKEEL_SCALE_DOWN_UNNEEDED_TIME", "0s"},
	{"EVENKEEL_UNREMOVABLE_NODE_RECHECK_TIMEOUT", "0s"},
	{"EVENKEEL_EXTRA_CAPACITY_MIN_RATE", "0"},
	/* Whatever else runs here waits for CPUs as well. */
	{"EVENKEEL_DRAIN_CONTENTION", "1"},
};

struct scene {
	struct cgroup_fixture *cgroups;
	struct stack *stack;
	char *folder; /* of mounts, and the snapshots */
	char *objects; /* path */
	pid_t agents[NODES];
	int64_t begin_ns;
	double used_before[NODES]; /* CPU seconds */
	cJSON *plan, *pods; /* newest answers */
};

/* --- nodes of cgroups ------------------------------------------------------------------------- */

static char *pod_path(enum node n)
{
	return mem_printf("%s/kubepods/burstable/pod%s/%s", nodes[n].name, nodes[n].uid,
			  nodes[n].container);
}

/* 3 ms of every 10, so that a tenth of a second is like any other. False: no cpu controller. */
static bool set_quota(struct cgroup_fixture *f, const char *sub)
{
	int from = cgroup_fixture_fs(f)->throttle_from;

	return from == HIERARCHY_CPU &&
	       cgroup_fixture_write(f, from, sub, "cpu.cfs_period_us", "10000") &&
	       cgroup_fixture_write(f, from, sub, "cpu.cfs_quota_us", "3000");
}

static void make_node(struct scene *s, enum node n)
{
	char *path = pod_path(n);

	cgroup_fixture_make_tree(s->cgroups, path);
	if (nodes[n].burns)
		assert_true(set_quota(s->cgroups, path));
	free(path);
}

static void run_pod(struct scene *s, enum node n)
{
	char *path = pod_path(n);

	cgroup_fixture_spawn(s->cgroups, path,
			     &(struct cgroup_child){.spin = nodes[n].burns,
						    .hold_bytes = nodes[n].holds_bytes});
	free(path);
}

static char *root_of(const struct scene *s, enum node n)
{
	return mem_printf("%s/%s", s->folder, nodes[n].name);
}

/* The node's part of every hierarchy, where an agent looks for the whole of them. */
static bool mount_node(const struct scene *s, enum node n)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->cgroups);
	char *root = root_of(s, n);
	bool ok = mkdir(root, 0755) == 0;

	for (int h = 0; h < HIERARCHIES && ok; h++) {
		char *from, *to;

		if (!fs->mount[h])
			continue;
		from = mem_printf("%s%s", fs->mount[h],
				  cgroup_fixture_path(s->cgroups, nodes[n].name));
		to = mem_printf("%s%s", root, strrchr(fs->mount[h], '/'));
		ok = (mkdir(to, 0755) == 0 || errno == EEXIST) &&
		     mount(from, to, NULL, MS_BIND, NULL) == 0;
		free(from);
		free(to);
	}
	free(root);
	return ok;
}

/* In a mount namespace of this test's own, which ends with it. */
static bool mount_all(const struct scene *s)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", s->folder, "tmpfs", 0, NULL))
		return false;
	for (enum node n = 0; n < NODES; n++)
		if (!mount_node(s, n))
			return false;
	return true;
}

/* --- objects ---------------------------------------------------------------------------------- */

static void write_node(FILE *f, enum node n)
{
	fprintf(f,
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"uid\":"
		"\"u-%s\"},"
		"\"status\":{\"allocatable\":{\"cpu\":\"%dm\",\"memory\":\"1Gi\",\"pods\":\"110\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},\n",
		nodes[n].name, nodes[n].name, nodes[n].cpu_milli);
}

static void write_owner(FILE *f, enum node n)
{
	fprintf(f,
		"{\"apiVersion\":\"apps/"
		"v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"namespace\":\"shop\","
		"\"name\":\"rs-%s\",\"uid\":\"rs-%s\"},\"spec\":{\"replicas\":1},\"status\":{"
		"\"replicas\":1}},\n",
		nodes[n].pod, nodes[n].pod);
}

static void write_pod(FILE *f, enum node n, bool last)
{
	fprintf(f,
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"shop\","
		"\"name\":\"%s\","
		"\"uid\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"apps/"
		"v1\",\"kind\":\"ReplicaSet\","
		"\"name\":\"rs-%s\",\"uid\":\"rs-%s\",\"controller\":true}]},\"spec\":{"
		"\"nodeName\":\"%s\","
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%dm\","
		"\"memory\":\"%dMi\"}}}]},"
		"\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
		"\"True\"}]}}%s\n",
		nodes[n].pod, nodes[n].uid, nodes[n].pod, nodes[n].pod, nodes[n].name,
		nodes[n].asks_milli, nodes[n].asks_mib, last ? "" : ",");
}

static void write_objects(const struct scene *s)
{
	FILE *f = fopen(s->objects, "w");

	assert_non_null(f);
	fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n", f);
	for (enum node n = 0; n < NODES; n++) {
		write_node(f, n);
		write_owner(f, n);
	}
	for (enum node n = 0; n < NODES; n++)
		write_pod(f, n, n + 1 == NODES);
	fputs("]}\n", f);
	assert_int_equal(fclose(f), 0);
}

/* --- the kernel's word ------------------------------------------------------------------------ */

static double kernel_number(const struct scene *s, int h, const char *sub, const char *file,
			    const char *key)
{
	char text[4096];
	const char *at = text;

	assert_true(cgroup_fixture_read(s->cgroups, h, sub, file, text, sizeof(text)));
	if (key) {
		at = strstr(text, key);
		assert_non_null(at);
		at += strlen(key);
	}
	return strtod(at, NULL);
}

/* Of the whole node. */
static double kernel_cpu_seconds(const struct scene *s, enum node n)
{
	return kernel_number(s, HIERARCHY_CPUACCT, nodes[n].name, "cpuacct.usage", NULL) / 1e9;
}

static double kernel_working_set(const struct scene *s, enum node n)
{
	return kernel_number(s, HIERARCHY_MEMORY, nodes[n].name, "memory.usage_in_bytes", NULL) -
	       kernel_number(s, HIERARCHY_MEMORY, nodes[n].name, "memory.stat",
			     "total_inactive_file ");
}

/* --- the scene -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	static struct scene scene;
	struct error error = {""};

	*state = &scene;
	scene = (struct scene){0};
	if (sodium_init() < 0)
		return -1;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		setenv(settings[i][0], settings[i][1], 1);
	scene.cgroups = cgroup_fixture_new("drainuse", &error);
	if (!scene.cgroups) {
		print_message("SKIP: %s\n", error.text);
		return 0;
	}
	scene.stack = stack_new();
	scene.folder = folder_make();
	scene.objects = mem_printf("%s/objects.json", scene.folder);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (enum node n = 0; n < NODES; n++)
		if (s->agents[n] > 0)
			process_stop(s->agents[n], SIGKILL);
	if (s->stack)
		stack_free(s->stack, 0);
	cgroup_fixture_free(s->cgroups);
	cJSON_Delete(s->plan);
	cJSON_Delete(s->pods);
	free(s->objects);
	if (s->folder) {
		umount2(s->folder, MNT_DETACH);
		folder_remove(s->folder);
	}
	return 0;
}

/* Before everything else that runs here, so that what burns gets what its quota allows. */
static void set_first(const struct scene *s)
{
	cgroup_fixture_write(s->cgroups, HIERARCHY_CPU, "", "cpu.shares", "262144");
	for (enum node n = 0; n < NODES; n++)
		cgroup_fixture_write(s->cgroups, HIERARCHY_CPU, nodes[n].name, "cpu.shares",
				     "262144");
}

static void start_agent(struct scene *s, enum node n)
{
	char *root = root_of(s, n), *log = mem_printf("%s/%s.log", s->folder, nodes[n].name);
	char *url = mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[0].ingest_port);
	char *argv[] = {(char *)program_path("evenkeel-agent"),
			(char *)"--node-name",
			(char *)nodes[n].name,
			(char *)"--cgroup-root",
			root,
			(char *)"--key-file",
			s->stack->key_path,
			(char *)"--aggregator",
			url,
			(char *)"--interval=1s",
			(char *)"--cpu-budget=100",
			NULL};

	s->agents[n] = process_start(log, argv);
	assert_true(s->agents[n] > 0);
	free(root);
	free(log);
	free(url);
}

static double number(const cJSON *item, const char *path)
{
	const cJSON *value = json_at(item, path);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static const char *text(const cJSON *item, const char *path)
{
	const char *value = cJSON_GetStringValue(json_at(item, path));

	return value ? value : "";
}

static bool is_measured(void *ctx)
{
	struct scene *s = ctx;
	bool all = true;

	cJSON_Delete(s->pods);
	s->pods = stack_get(s->stack, 0, "/v1/pods");
	for (enum node n = 0; n < NODES; n++)
		all &= number(json_item(s->pods, nodes[n].pod),
			      "usage.cpuMillicores.windows.5m.samples") >= SAMPLES;
	return all;
}

/* A plan that was made after all that. */
static bool is_planned(void *ctx)
{
	struct scene *s = ctx;
	const char *planned;

	cJSON_Delete(s->plan);
	s->plan = stack_get(s->stack, 0, "/v1/drain?explain=true");
	planned = text(s->plan, "planned");
	return *planned && strcmp(text(s->plan, "useCap"), "on") == 0 &&
	       strcmp(planned, text(s->pods, "time")) > 0;
}

static void start(struct scene *s)
{
	write_objects(s);
	set_first(s);
	for (enum node n = 0; n < NODES; n++)
		run_pod(s, n);
	s->stack->aggregators[0].snapshot_path = s->objects;
	stack_start_aggregator(s->stack, 0);
	for (enum node n = 0; n < NODES; n++)
		start_agent(s, n);
	s->begin_ns = clock_mono_ns();
	for (enum node n = 0; n < NODES; n++)
		s->used_before[n] = kernel_cpu_seconds(s, n);
}

/* --- what is said ----------------------------------------------------------------------------- */

static const cJSON *node_of(const cJSON *plan, enum node n)
{
	const cJSON *item = json_item(plan, nodes[n].name);

	assert_non_null(item);
	return item;
}

static const cJSON *reason_of(const cJSON *plan, enum node n, int which)
{
	const cJSON *reason = cJSON_GetArrayItem(json_at(node_of(plan, n), "reasons"), which);

	assert_non_null(reason);
	return reason;
}

static void assert_verdict(const cJSON *plan, enum node n, const char *verdict)
{
	char *is = cJSON_Print(node_of(plan, n));

	if (strcmp(text(node_of(plan, n), "verdict"), verdict) != 0)
		fail_msg("%s is not \"%s\": %s", nodes[n].name, verdict, is);
	free(is);
}

static void assert_between(const char *what, double value, double least, double most)
{
	print_message("%s: %.4g, must be %.4g to %.4g\n", what, value, least, most);
	assert_true(value >= least && value <= most);
}

static double kernel_milli(const struct scene *s, enum node n)
{
	double seconds = (double)(clock_mono_ns() - s->begin_ns) / NS_PER_SEC;

	return (kernel_cpu_seconds(s, n) - s->used_before[n]) * 1000 / seconds;
}

/*
 * The calm node is where the burning pod would come closest to fitting, and is too small for it:
 * the prediction is what the kernel counted, and 2.33 deviations.
 */
static void check_hot(const struct scene *s, enum node n)
{
	const cJSON *reason = reason_of(s->plan, n, 0);
	double used = kernel_milli(s, n), calm = kernel_milli(s, ROOM);
	double sigma =
		number(json_item(s->pods, nodes[n].pod), "usage.cpuMillicores.windows.15m.stddev");
	double sentence = NAN;
	const char *at;

	assert_verdict(s->plan, n, "needed");
	assert_string_equal(text(reason, "code"), "NoPlaceToMovePods");
	assert_string_equal(text(reason, "pod.name"), nodes[n].pod);
	assert_true(number(node_of(s->plan, n), "utilization.requested") <= 0.11);
	assert_true(number(reason, "refused.RealUseCap") == 2);
	assert_true(number(reason, "refused.NodeResourcesFit") == 1);
	assert_between("use of a node that requests 10 %, millicores, against the kernel",
		       number(node_of(s->plan, n), "usage.cpuMillicores"), 0.95 * used,
		       1.05 * used);
	assert_between("predicted on the calm node, millicores",
		       number(reason, "numbers.predictedCpuMillicores"), 0.95 * (used + calm),
		       1.05 * (used + calm) + 2.33 * sigma + 10);
	assert_true(fabs(number(reason, "numbers.limitCpuMillicores") -
			 CPU_CAP * nodes[ROOM].cpu_milli) < 0.01);
	at = strstr(text(reason, "text"), "; nearest is room, which would use ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "; nearest is room, which would use %lf CPUs", &sentence), 1);
	assert_true(fabs(sentence * 1000 - number(reason, "numbers.predictedCpuMillicores")) <=
		    5.001);
}

/* By requests it is full; what it uses is what the kernel says, and the pod to change is named. */
static void check_idle(const struct scene *s)
{
	const cJSON *first = reason_of(s->plan, KEEP, 0), *second = reason_of(s->plan, KEEP, 1);
	double share = kernel_working_set(s, KEEP) / (1024 * MIB);
	double asks = NAN, uses = NAN;
	const char *at;

	assert_verdict(s->plan, KEEP, "needed");
	assert_string_equal(text(first, "code"), "NotUnderutilized");
	assert_true(fabs(number(first, "numbers.requestedShare") - 0.95) < 1e-9);
	assert_true(cJSON_IsTrue(json_at(node_of(s->plan, KEEP), "idleInFact")));
	assert_between("used share of a node that requests 95 %, against the kernel",
		       number(second, "numbers.usedShare"), 0.95 * share, 1.05 * share);
	assert_between("share were its requests right-sized",
		       number(second, "numbers.rightSizedShare"), 1.15 * 0.95 * share,
		       1.15 * 1.05 * share);
	at = strstr(text(second, "text"), "shop/keep-1 requests ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "shop/keep-1 requests %lfm and uses %lf", &asks, &uses), 2);
	assert_true(asks == nodes[KEEP].asks_milli && uses < 20);
	assert_string_equal(text(second, "unblock"),
			    "lower the requests of the named pods to what they use");
}

/* --- the same moment, asked otherwise --------------------------------------------------------- */

/* The command over a snapshot of that moment. */
static cJSON *ask_offline(const char *path, const char *more)
{
	char *argv[] = {(char *)program_path("evenkeel"),
			(char *)"drain",
			(char *)"-o",
			(char *)"json",
			(char *)"--assume-unneeded-for=1m",
			(char *)"--snapshot",
			(char *)path,
			(char *)more,
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *json;
	int code = process_run(argv, &out, &err);

	buf_add_str(&err, "");
	if (code)
		fail_msg("exit %d: %s", code, err.data);
	json = cJSON_ParseWithLength(out.data, out.len);
	assert_non_null(json);
	buf_fini(&out);
	buf_fini(&err);
	return json;
}

static void save(const cJSON *json, const char *path)
{
	char *body = cJSON_PrintUnformatted(json);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(body, f);
	assert_int_equal(fclose(f), 0);
	free(body);
}

/* Requests of the named pod become what it uses at its peak, and 15 %. */
static void follow_advice(cJSON *snapshot, double working_set)
{
	char *memory = mem_printf("%.0f", ceil(1.15 * working_set));
	cJSON *item;

	cJSON_ArrayForEach (item, (cJSON *)json_at(snapshot, "list.items")) {
		cJSON *container = cJSON_GetArrayItem(json_at(item, "spec.containers"), 0);
		cJSON *requests = (cJSON *)json_at(container, "resources.requests");

		if (strcmp(text(item, "kind"), "Pod") != 0 ||
		    strcmp(text(item, "metadata.name"), nodes[KEEP].pod) != 0)
			continue;
		assert_non_null(requests);
		cJSON_ReplaceItemInObject(requests, "cpu", cJSON_CreateString("20m"));
		cJSON_ReplaceItemInObject(requests, "memory", cJSON_CreateString(memory));
	}
	free(memory);
}

static void check_otherwise(const struct scene *s)
{
	char *path = mem_printf("%s/snapshot.json", s->folder);
	cJSON *snapshot = stack_get(s->stack, 0, "/v1/snapshot"), *plan;

	assert_non_null(snapshot);
	save(snapshot, path);
	plan = ask_offline(path, NULL);
	assert_verdict(plan, HOT_1, "needed");
	assert_verdict(plan, KEEP, "needed");
	cJSON_Delete(plan);

	/*
	 * By requests alone both would go, and 0.6 CPUs of use would come to a node that has 0.3.
	 */
	plan = ask_offline(path, "--no-drain-use-cap");
	assert_verdict(plan, HOT_1, "drain");
	assert_verdict(plan, HOT_2, "drain");
	cJSON_Delete(plan);

	follow_advice(snapshot, kernel_working_set(s, KEEP));
	save(snapshot, path);
	plan = ask_offline(path, NULL);
	assert_verdict(plan, KEEP, "drain");
	assert_verdict(plan, HOT_1, "needed");
	cJSON_Delete(plan);
	cJSON_Delete(snapshot);
	free(path);
}

static void test_requests_and_use_disagree(void **state)
{
	struct scene *s = *state;

	if (!s->cgroups)
		skip();
	if (cgroup_fixture_fs(s->cgroups)->cpu_from != HIERARCHY_CPUACCT ||
	    cgroup_fixture_fs(s->cgroups)->throttle_from != HIERARCHY_CPU ||
	    cgroup_fixture_fs(s->cgroups)->memory_from != HIERARCHY_MEMORY) {
		print_message("SKIP: only where v1 has cpu, cpuacct and memory is a part of the "
			      "tree a node of its own\n");
		skip();
	}
	for (enum node n = 0; n < NODES; n++)
		make_node(s, n);
	if (!mount_all(s)) {
		print_message("SKIP: no mount namespace of its own: %s\n", strerror(errno));
		skip();
	}
	start(s);
	assert_true(await(is_measured, s, TIMEOUT_S));
	assert_true(await(is_planned, s, TIMEOUT_S));
	check_hot(s, HOT_1);
	check_hot(s, HOT_2);
	check_idle(s);
	check_otherwise(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests_and_use_disagree, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
