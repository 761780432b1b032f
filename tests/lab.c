/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/keys.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TIMEOUT_S 60
#define HEARD_S	  30
#define CLOCKS_NS (5 * NS_PER_SEC)
#define PODS	  "/api/v1/pods?fieldSelector=spec.nodeName!="

/* --- kwok ------------------------------------------------------------------------------------- */

static bool has_kwok(const struct control_plane *c)
{
	char *program = mem_printf("%s/kwok", c->bin);
	bool there = access(program, X_OK) == 0;

	free(program);
	return there;
}

static void start_kwok(struct lab *l)
{
	static const char *const stages[] = {"node-initialize", "node-heartbeat-with-lease",
					     "pod-ready", "pod-complete", "pod-delete"};
	enum { STAGES = sizeof(stages) / sizeof(stages[0]) };
	const struct control_plane *c = l->bed->plane;
	char *log = mem_printf("%s/kwok.log", l->bed->folder), *argv[5 + STAGES] = {NULL};
	size_t n = 0;

	argv[n++] = mem_printf("%s/kwok", c->bin);
	argv[n++] = mem_printf("--kubeconfig=%s", c->admin);
	argv[n++] = mem_strdup("--manage-all-nodes=true");
	argv[n++] = mem_strdup("--node-lease-duration-seconds=40");
	for (size_t i = 0; i < STAGES; i++)
		argv[n++] = mem_printf("--config=%s/../stages/%s.yaml", c->bin, stages[i]);
	l->kwok = process_start(log, argv);
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	free(log);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void make_node(struct lab *l, size_t i)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\","
		"\"topology.kubernetes.io/zone\":\"zone-%c\",\"kubernetes.io/os\":\"linux\"}},"
		"\"status\":{\"capacity\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
		"\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"}}}",
		l->names[i], l->names[i], "abc"[i % 3]);

	control_plane_must(l->bed->plane, "POST", "/api/v1/nodes", body);
	free(body);
}

static bool is_ready(const cJSON *node)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(node, "status.conditions")) {
		if (strcmp(json_at(condition, "type")->valuestring, "Ready") == 0)
			return strcmp(json_at(condition, "status")->valuestring, "True") == 0;
	}
	return false;
}

static bool are_ready(void *ctx)
{
	struct lab *l = ctx;
	struct buf answer = BUF_INIT;
	size_t ready = 0;
	const cJSON *node;
	cJSON *list = NULL;

	if (control_plane_send(l->bed->plane, "GET", "/api/v1/nodes", NULL, &answer) == 200)
		list = cJSON_Parse(answer.data);
	cJSON_ArrayForEach (node, json_at(list, "items"))
		ready += is_ready(node);
	cJSON_Delete(list);
	buf_fini(&answer);
	return ready == l->nodes;
}

static void make_nodes(struct lab *l)
{
	struct lab_machine *machines = mem_zalloc(l->nodes, sizeof(*machines));

	l->names = mem_zalloc(l->nodes, sizeof(*l->names));
	for (size_t i = 0; i < l->nodes; i++) {
		snprintf(l->names[i], sizeof(l->names[i]), "node-%03zu", i);
		machines[i] =
			(struct lab_machine){l->names[i], LAB_NODE_CPU_MILLI, LAB_NODE_MEM_BYTES};
		make_node(l, i);
	}
	l->agents = lab_agents_new(machines, l->nodes);
	free(machines);
}

struct lab *lab_new(size_t nodes, bool controllers)
{
	struct kube_testbed *bed = kube_testbed_new_bare();
	struct lab *l;
	struct error error;

	if (!bed)
		return NULL;
	l = mem_zalloc(1, sizeof(*l));
	l->bed = bed;
	l->nodes = nodes;
	if (!has_kwok(bed->plane)) {
		printf("SKIP: no kwok here: tests/kube/build 1.37 makes it\n");
		lab_free(l, false);
		return NULL;
	}
	if (controllers)
		control_plane_start_controllers(bed->plane);
	start_kwok(l);
	make_nodes(l);
	if (keys_load(&l->keys, bed->key_path, &error) || !await(are_ready, l, TIMEOUT_S)) {
		fprintf(stderr, "lab: the nodes do not become ready\n");
		lab_free(l, true);
		abort();
	}
	return l;
}

void lab_free(struct lab *l, bool failed)
{
	lab_agents_free(l->agents);
	if (l->kwok > 0)
		process_stop(l->kwok, SIGKILL);
	kube_testbed_free(l->bed, failed);
	keyring_wipe(&l->keys);
	free(l->names);
	free(l);
}

/* --- pods ------------------------------------------------------------------------------------- */

/* Of "node-012"; the number of nodes where it is no node of the lab. */
static size_t node_of(const struct lab *l, const char *name)
{
	size_t i = strncmp(name, "node-", 5) == 0 ? strtoul(name + 5, NULL, 10) : l->nodes;

	return i < l->nodes && strcmp(l->names[i], name) == 0 ? i : l->nodes;
}

/* A pod that ended uses nothing, and runs nowhere. */
static size_t runs_on(const struct lab *l, const cJSON *pod)
{
	const char *phase = cJSON_GetStringValue(json_at(pod, "status.phase"));

	if (phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0))
		return l->nodes;
	return node_of(l, json_at(pod, "spec.nodeName")->valuestring);
}

struct found {
	size_t node;
	struct lab_pod pod;
};

static int compare_nodes(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return strcmp(x->pod.uid, y->pod.uid);
}

/* Sorted by node. */
static size_t find_pods(const struct lab *l, const cJSON *items, struct found *found)
{
	size_t count = 0;
	const cJSON *pod;

	cJSON_ArrayForEach (pod, items) {
		struct found *f = &found[count];

		f->node = runs_on(l, pod);
		if (f->node == l->nodes)
			continue;
		snprintf(f->pod.uid, sizeof(f->pod.uid), "%s",
			 json_at(pod, "metadata.uid")->valuestring);
		f->pod.use = lab_use_of(pod);
		count++;
	}
	if (count)
		qsort(found, count, sizeof(*found), compare_nodes);
	return count;
}

static void tell_agents(struct lab *l, const struct found *found, size_t count)
{
	struct lab_pod *pods = mem_zalloc(count + 1, sizeof(*pods));
	size_t at = 0;

	for (size_t node = 0; node < l->nodes; node++) {
		size_t on = 0;

		for (; at < count && found[at].node == node; at++)
			pods[on++] = found[at].pod;
		lab_agents_set_pods(l->agents, node, pods, on);
	}
	l->pods = count;
	free(pods);
}

bool lab_follow(struct lab *l)
{
	struct buf answer = BUF_INIT;
	const cJSON *items;
	struct found *found;
	cJSON *list = NULL;

	if (control_plane_send(l->bed->plane, "GET", PODS, NULL, &answer) == 200)
		list = cJSON_Parse(answer.data);
	buf_fini(&answer);
	items = json_at(list, "items");
	if (!items)
		return false;
	found = mem_zalloc((size_t)cJSON_GetArraySize(items) + 1, sizeof(*found));
	tell_agents(l, found, find_pods(l, items, found));
	free(found);
	cJSON_Delete(list);
	return true;
}

/* --- agents ----------------------------------------------------------------------------------- */

void lab_connect(struct lab *l, int64_t history_ns, int64_t ago_ns, int64_t interval_ns)
{
	char *url = mem_printf("tcp://127.0.0.1:%d", l->bed->aggregators[0].ingest_port);

	lab_agents_connect(l->agents, url, &l->keys, history_ns, ago_ns, interval_ns);
	free(url);
}

/*
 * What is told of a node ends where it measured last, or later. The aggregator may name the end by
 * its own clock, and a wall clock may be set meanwhile.
 */
static bool is_heard(const struct lab *l, const cJSON *node)
{
	size_t i = node_of(l, json_at(node, "name")->valuestring);
	const cJSON *told = json_at(node, "usage.cpuMillicores.latest.end");
	char end[TIMEFMT_LEN];

	if (i == l->nodes || !told)
		return false;
	timefmt_rfc3339(lab_agents_end_ns(l->agents, i) - CLOCKS_NS, end);
	return strcmp(told->valuestring, end) >= 0;
}

struct awaited {
	struct lab *lab;
	size_t pods;
	size_t heard, seen; /* nodes and pods at the last look */
	bool sent;
};

static bool are_heard(void *ctx)
{
	struct awaited *w = ctx;
	cJSON *nodes;
	const cJSON *node;

	w->heard = w->seen = 0;
	w->sent = lab_agents_flush(w->lab->agents, 5);
	nodes = kube_testbed_items(w->lab->bed, 0, "/v1/nodes");
	cJSON_ArrayForEach (node, nodes) {
		w->heard += is_heard(w->lab, node);
		w->seen += (size_t)json_at(node, "pods")->valueint;
	}
	cJSON_Delete(nodes);
	return w->heard == w->lab->nodes && w->seen == w->pods;
}

bool lab_await_heard(struct lab *l, size_t pods)
{
	struct awaited w = {.lab = l, .pods = pods};
	bool heard = await(are_heard, &w, HEARD_S);

	if (!heard)
		fprintf(stderr, "lab: %zu of %zu nodes are heard%s, %zu of %zu pods seen\n",
			w.heard, l->nodes, w.sent ? "" : ", not all was answered", w.seen, pods);
	return heard;
}

/* --- schedulers ------------------------------------------------------------------------------- */

static void add_replaced(struct buf *out, const char *text, const struct lab_replacement *r)
{
	const char *at;

	while ((at = strstr(text, r->from)) != NULL) {
		buf_add(out, text, (size_t)(at - text));
		buf_add_str(out, r->to);
		text = at + strlen(r->from);
	}
	buf_add_str(out, text);
}

/* What follows the kind: before it is what control_plane_start_scheduler() writes itself. */
static char *read_configuration(const char *file)
{
	static const char kind[] = "kind: KubeSchedulerConfiguration\n";
	char *path = mem_printf("packaging/kubernetes/scheduler/%s", file), text[16384];
	FILE *f = fopen(path, "re");
	size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	const char *rest;

	text[len] = '\0';
	rest = strstr(text, kind);
	if (!rest) {
		fprintf(stderr, "%s: no configuration of a scheduler\n", path);
		abort();
	}
	fclose(f);
	free(path);
	return mem_strdup(rest + strlen(kind));
}

char *lab_scheduler_configuration(const char *file, const struct lab_replacement *replacements,
				  size_t count)
{
	char *text = read_configuration(file);

	for (size_t i = 0; i < count; i++) {
		struct buf replaced = BUF_INIT;

		add_replaced(&replaced, text, &replacements[i]);
		free(text);
		text = buf_take(&replaced, NULL);
	}
	return text;
}
