/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: a fresh aggregator hears of the last quarter of an hour, in which only the residents
 * were there. Then the pods of the burst come, while the scheduler stands still, so that they come
 * at once however slow this machine is; from then on until all are placed, or refused, is what it
 * took. With a pace the scheduler runs, and pods come one by one, as controllers make them. Agents report nothing of the burst: what its pods use is the harness's secret, from which
 * figures.h computes.
 *
 * Nothing waits for time to pass: agents that are silent for five minutes have a history that ends
 * five minutes ago, and where a node turns hot in the middle, it ends a minute ago, until the hot
 * minute is delivered at once.
 */
#include "tests/bench_placement/arena.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_placement/echo.h"
#include "tests/process.h"
#include "tests/stack.h"

#define PODS	    "/api/v1/namespaces/default/pods"
#define RESIDENTS   "/api/v1/namespaces/residents/pods"
#define SETTLED_NS  NS_PER_SEC /* no pod was placed for so long, and all others were refused */
#define DEADLINE_NS (10 * NS_PER_SEC) /* of a phase; later pods are pending */
#define SILENT_NS   (310 * NS_PER_SEC)
#define HOT_NS	    (60 * NS_PER_SEC)
#define HOT_SHARE   0.5
#define TIMEOUT_S   60
#define LOOK_NS	    (NS_PER_SEC / 50)
#define WATCH_NS    (NS_PER_SEC / 4)

static void give_up(struct arena *a, const char *what)
{
	fprintf(stderr, "placement: %s\n", what);
	arena_free(a, true);
	exit(1);
}

/* --- pods ------------------------------------------------------------------------------------- */

static void add_amounts(struct buf *text, const char *name, int64_t cpu_milli, int64_t mem_mib)
{
	const char *comma = "";

	buf_printf(text, "\"%s\":{", name);
	if (cpu_milli) {
		buf_printf(text, "\"cpu\":\"%lldm\"", (long long)cpu_milli);
		comma = ",";
	}
	if (mem_mib)
		buf_printf(text, "%s\"memory\":\"%lldMi\"", comma, (long long)mem_mib);
	buf_add_str(text, "}");
}

/*
 * `workload` is a ReplicaSet, which has no controller here: a pod only says that it is its, by a uid
 * that is made of the name. Without a node it is for the scheduler.
 */
static void make_pod(struct arena *a, const char *path, const char *name, const char *workload,
		     const char *node, const struct burst_pod *p)
{
	struct buf text = BUF_INIT;
	uint64_t id = lab_hash(workload) & 0xffffffffffffULL;

	buf_printf(&text,
		   "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"%s\"},"
		   "\"annotations\":{\"lab.evenkeel.io/cpu\":\"%.0fm\"},\"ownerReferences\":["
		   "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"%s\","
		   "\"uid\":\"00000000-0000-4000-8000-%012llx\",\"controller\":true}]},"
		   "\"spec\":{\"terminationGracePeriodSeconds\":0,",
		   name, workload, p->use_milli, workload, (unsigned long long)id);
	if (node)
		buf_printf(&text, "\"nodeName\":\"%s\",", node);
	buf_add_str(&text, "\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{");
	add_amounts(&text, "requests", p->request_milli, p->request_mib);
	buf_add_str(&text, ",");
	add_amounts(&text, "limits", p->limit_milli, 2 * p->request_mib);
	buf_add_str(&text, "}}]}}");
	control_plane_must(a->lab->bed->plane, "POST", path, text.data);
	buf_fini(&text);
}

static cJSON *list_pods(struct arena *a, const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *list;

	if (control_plane_send(a->lab->bed->plane, "GET", path, NULL, &answer) != 200)
		give_up(a, "no list of pods");
	list = cJSON_Parse(answer.data);
	buf_fini(&answer);
	return list;
}

struct deleted {
	struct arena *arena;
	const char *path;
};

static bool are_gone(void *ctx)
{
	const struct deleted *d = ctx;
	cJSON *list = list_pods(d->arena, d->path);
	bool gone = cJSON_GetArraySize(json_at(list, "items")) == 0;

	cJSON_Delete(list);
	return gone;
}

static void delete_pods(struct arena *a, const char *path)
{
	char *request = mem_printf("%s?gracePeriodSeconds=0", path);
	struct deleted d = {a, path};

	control_plane_must(a->lab->bed->plane, "DELETE", request, NULL);
	if (!await(are_gone, &d, TIMEOUT_S))
		give_up(a, "pods are not deleted");
	free(request);
}

/* --- one phase -------------------------------------------------------------------------------- */

/* Those of a burst, by the number in their names. */
struct placement {
	int nodes[BURST_PODS_MAX]; /* -1: none */
	size_t bound, refused;
};

static bool is_refused(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
		if (strcmp(json_at(condition, "type")->valuestring, "PodScheduled") == 0)
			return strcmp(json_at(condition, "status")->valuestring, "False") == 0;
	}
	return false;
}

static void look(struct arena *a, struct placement *p)
{
	cJSON *list = list_pods(a, PODS "?resourceVersion=0");
	const cJSON *pod;

	*p = (struct placement){.bound = 0};
	for (size_t i = 0; i < BURST_PODS_MAX; i++)
		p->nodes[i] = -1;
	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *name = json_at(pod, "metadata.name")->valuestring;
		const char *node = cJSON_GetStringValue(json_at(pod, "spec.nodeName"));

		if (strncmp(name, "burst-", 6) != 0)
			continue;
		if (node)
			p->nodes[strtoul(strrchr(name, '-') + 1, NULL, 10)] =
				(int)strtoul(node + strlen("node-"), NULL, 10);
		p->bound += node != NULL;
		p->refused += !node && is_refused(pod);
	}
	cJSON_Delete(list);
}

struct phase {
	struct arena *arena;
	struct placement *placement;
	size_t want;
	int64_t begin_ns, made_ns;
	int64_t last_ns; /* when the last pod was seen to be placed */
};

/* All have a node; or nothing moves, and the rest was refused or is out of time. */
static bool is_settled(struct phase *f)
{
	size_t before = f->placement->bound;
	int64_t now_ns;

	look(f->arena, f->placement);
	now_ns = clock_mono_ns();
	if (f->placement->bound > before)
		f->last_ns = now_ns;
	return f->placement->bound == f->want || now_ns > f->made_ns + DEADLINE_NS ||
	       (f->placement->bound + f->placement->refused == f->want &&
		now_ns > f->last_ns + SETTLED_NS);
}

/* Until the next pod is to be made. */
static void await_turn(struct arena *a, int64_t begin_ns, size_t made)
{
	int64_t left_ns =
		begin_ns + (int64_t)((double)made / a->pods_per_s * NS_PER_SEC) - clock_mono_ns();

	if (left_ns > 0)
		lab_agents_run(a->lab->agents, left_ns);
}

/* Pods from..to of the burst; the seconds until the last of them was placed. */
static double place(struct arena *a, const struct burst *b, const struct burst_pod *pods,
		    size_t from, size_t to, struct placement *placement)
{
	pid_t scheduler = a->lab->bed->plane->scheduler;
	struct phase f = {.arena = a, .placement = placement, .want = to};

	if (!a->pods_per_s)
		kill(scheduler, SIGSTOP);
	f.begin_ns = clock_mono_ns();
	for (size_t i = from; i < to; i++) {
		char *name = mem_printf("burst-%zu-%zu", a->run, i);

		make_pod(a, PODS, name, b->name, NULL, &pods[i]);
		free(name);
		if (a->pods_per_s)
			await_turn(a, f.begin_ns, i + 1 - from);
	}
	if (!a->pods_per_s)
		f.begin_ns = clock_mono_ns();
	f.made_ns = f.last_ns = clock_mono_ns();
	kill(scheduler, SIGCONT);
	while (!is_settled(&f))
		lab_agents_run(a->lab->agents, LOOK_NS);
	return (double)(f.last_ns - f.begin_ns) / NS_PER_SEC;
}

/* --- the aggregator and what it knows --------------------------------------------------------- */

static void start_aggregator(struct arena *a)
{
	const char *options[16];
	size_t n = 0;

	for (const char *const *o = a->contender->options; *o; o++)
		options[n++] = *o;
	for (const char *const *o = a->more_options; *o && n < 14; o++)
		options[n++] = *o;
	options[n] = NULL;
	kube_testbed_start_aggregator_with(a->lab->bed, 0, a->lab->bed->plane->admin, options);
}

static void await_heard(struct arena *a, size_t pods)
{
	if (!lab_await_heard(a->lab, pods))
		give_up(a, "the aggregator does not show what agents measured");
}

static void inform(struct arena *a, const struct burst *b)
{
	int64_t ago_ns = b->trouble == TROUBLE_SILENT ? SILENT_NS
			 : b->trouble == TROUBLE_HOT  ? HOT_NS
						      : 0;

	if (!contender_asks(a->contender))
		return;
	lab_follow(a->lab);
	start_aggregator(a);
	lab_connect(a->lab, LAB_HISTORY_NS, ago_ns, 0);
	await_heard(a, NODES + b->running);
}

/* Half of the nodes are used less: where pods go first, no scheduler can know what comes. */
static size_t middling(const struct arena *a)
{
	for (size_t i = 0; i < NODES; i++) {
		size_t less = 0;

		for (size_t k = 0; k < NODES; k++)
			less += a->residents[k].use_milli < a->residents[i].use_milli;
		if (less == NODES / 2)
			return i;
	}
	return 0;
}

/* The minute that was missing. The pods of the first half are bound, and not measured yet. */
static void turn_hot(struct arena *a, size_t placed)
{
	struct lab_use base = {.cpu_milli = HOT_SHARE * LAB_NODE_CPU_MILLI,
			       .sigma_milli = 0.05 * LAB_NODE_CPU_MILLI};
	struct lab_use none = {0};
	int64_t now_ns = clock_wall_ns();
	size_t hot = middling(a);

	if (!contender_asks(a->contender))
		return;
	lab_agents_set_base(a->lab->agents, hot, &base);
	for (size_t i = 0; i < NODES; i++)
		lab_agents_measure(a->lab->agents, i, now_ns);
	await_heard(a, NODES + placed);
	lab_agents_set_base(a->lab->agents, hot, &none);
}

static void disturb(struct arena *a, enum trouble trouble, size_t placed)
{
	if (trouble == TROUBLE_HOT)
		turn_hot(a, placed);
	if (!contender_asks(a->contender))
		return;
	if (trouble == TROUBLE_KILLED || trouble == TROUBLE_RESTARTED)
		kube_testbed_kill_aggregator(a->lab->bed, 0);
	for (size_t i = 0; i < NODES && trouble == TROUBLE_RESTARTED; i++)
		lab_agents_set_silent(a->lab->agents, i, true);
	if (trouble == TROUBLE_RESTARTED)
		start_aggregator(a);
	if (trouble == TROUBLE_STOPPED)
		kill(a->lab->bed->aggregators[0].pid, SIGSTOP);
}

static void calm(struct arena *a)
{
	if (a->lab->bed->aggregators[0].pid)
		kube_testbed_kill_aggregator(a->lab->bed, 0);
	for (size_t i = 0; i < NODES; i++)
		lab_agents_set_silent(a->lab->agents, i, false);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void start_scheduler(struct arena *a)
{
	int port = a->contender->kind == CONTENDER_ECHO ? a->echo_port
							: a->lab->bed->aggregators[0].http_port;
	char *text = contender_configuration(a->contender, port);

	a->lab->bed->plane->scheduler_program = contender_program(a->contender);
	control_plane_start_scheduler(a->lab->bed->plane, text);
	free(text);
}

/*
 * The scheduler counts what it knows once a second, so a burst that was placed and deleted within
 * one is not in the count: its deletions are given the time that watches take at most.
 */
static void await_scheduler(struct arena *a, size_t pods)
{
	lab_agents_run(a->lab->agents, WATCH_NS);
	control_plane_await_scheduler(a->lab->bed->plane, NODES, pods);
}

/* Trimaran reads /watcher as it starts, and then twice a minute: too seldom for a run. */
static void prepare(struct arena *a, const struct burst *b, const struct burst_pod *pods)
{
	for (size_t i = 0; i < b->running; i++) {
		char *name = mem_printf("running-%zu-%zu", a->run, i);

		make_pod(a, PODS, name, b->name, a->lab->names[i % NODES], &pods[b->pods + i]);
		free(name);
	}
	inform(a, b);
	if (a->contender->kind == CONTENDER_TRIMARAN)
		start_scheduler(a);
	await_scheduler(a, NODES + b->running);
}

static void add_use(struct figures_nodes *n, size_t node, const struct burst_pod *pod)
{
	n->used_milli[node] += pod->use_milli;
	n->requested_milli[node] += pod->request_milli;
}

static struct figures judge(const struct arena *a, const struct burst *b,
			    const struct burst_pod *pods, const struct placement *placement)
{
	struct burst_pod pending[BURST_PODS_MAX];
	struct figures_nodes nodes = {{0}, {0}};
	size_t count = 0;

	for (size_t i = 0; i < NODES; i++)
		add_use(&nodes, i, &a->residents[i]);
	if (b->trouble == TROUBLE_HOT)
		nodes.used_milli[middling(a)] += HOT_SHARE * LAB_NODE_CPU_MILLI;
	for (size_t i = 0; i < b->running; i++)
		add_use(&nodes, i % NODES, &pods[b->pods + i]);
	for (size_t i = 0; i < b->pods; i++) {
		if (placement->nodes[i] >= 0)
			add_use(&nodes, (size_t)placement->nodes[i], &pods[i]);
		else
			pending[count++] = pods[i];
	}
	return figures_of(nodes, pending, count);
}

struct figures arena_run(struct arena *a, const struct burst *b)
{
	struct burst_pod pods[BURST_PODS_MAX + GROWN_PODS];
	struct placement placement = {.bound = 0};
	bool halves = b->trouble != TROUBLE_NONE && b->trouble != TROUBLE_SILENT;
	size_t middle = halves ? b->pods / 2 : 0;
	double seconds = 0;
	struct figures f;

	a->run++;
	burst_make(b, a->seed, pods);
	prepare(a, b, pods);
	if (halves) {
		seconds = place(a, b, pods, 0, middle, &placement);
		disturb(a, b->trouble, placement.bound);
	}
	seconds += place(a, b, pods, middle, b->pods, &placement);
	f = judge(a, b, pods, &placement);
	f.rate = seconds > 0 ? (double)placement.bound / seconds : 0;
	calm(a);
	delete_pods(a, PODS);
	return f;
}

/* --- seeds and contenders --------------------------------------------------------------------- */

void arena_set_seed(struct arena *a, uint64_t seed)
{
	a->seed = seed;
	delete_pods(a, RESIDENTS);
	control_plane_await_scheduler(a->lab->bed->plane, NODES, 0);
	for (size_t i = 0; i < NODES; i++) {
		char *name = mem_printf("resident-%llu-%zu", (unsigned long long)seed, i);

		burst_make_resident(seed, i, &a->residents[i]);
		make_pod(a, RESIDENTS, name, name, a->lab->names[i], &a->residents[i]);
		free(name);
	}
}

void arena_set_contender(struct arena *a, const struct contender *c)
{
	a->contender = c;
	start_scheduler(a);
}

struct arena *arena_new(void)
{
	struct lab *lab = lab_new(NODES, false);
	struct arena *a;

	if (!lab)
		return NULL;
	a = mem_zalloc(1, sizeof(*a));
	a->lab = lab;
	control_plane_must(lab->bed->plane, "POST", "/api/v1/namespaces",
			   "{\"metadata\":{\"name\":\"residents\"}}");
	/* The configuration of a scheduler names the port before an aggregator listens there. */
	lab->bed->aggregators[0].http_port = free_port();
	lab->bed->aggregators[0].ingest_port = free_port();
	a->echo_port = free_port();
	echo_start(a->echo_port);
	return a;
}

void arena_free(struct arena *a, bool failed)
{
	lab_free(a->lab, failed);
	free(a);
}
