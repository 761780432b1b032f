/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods on nodes are drawn first and nodes are made to hold them, with nothing, little or much to
 * spare, so that no node is asked for more than it has. That, and some more, is because one of the
 * tests' kube-schedulers is of an old release, 1.20, and this world stays where it decides as those
 * of today do:
 *   - it refuses a pod that asks for any resource on a node that is overcommitted in another;
 *   - for topology spread it counts pods of nodes that are not eligible, where another node of
 *     their domain is: so here spread by zone is asked
 *     without rules for nodes, and together only with spread by hostname, which every node has;
 *     and where a label is empty, of those that have no such label;
 *   - an empty selector of topology spread means every pod to it;
 *   - of the labels of a volume it does not take the old name of a zone for the new one; and it
 *     does not know of lost claims. One case is left out that is the same today: for a claim that
 *     waits and is named twice by a pod, it looks for two volumes.
 */
#include "tests/kube_fit_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/place_world_spec.h"

#define HOSTNAME "kubernetes.io/hostname"
#define ZONE	 "topology.kubernetes.io/zone"

/* Pods name a node that the API does not know. */
enum { NOWHERE = KUBE_FIT_NODES };

enum { CLAIMS = 30, VOLUMES = 14 };

static bool chance(struct kube_fit_world *w, unsigned int percent)
{
	return place_world_chance(&w->dice, percent);
}

static size_t draw(struct kube_fit_world *w, size_t n)
{
	return place_world_draw(&w->dice, n);
}

#define ANY(w, ...) PICK(&(w)->dice, __VA_ARGS__)

static void post(struct control_plane *c, const char *path, struct buf *body)
{
	control_plane_must(c, "POST", path, body->data);
	buf_fini(body);
}

/* A list is being written: a comma, unless it begins. */
static void next(struct buf *b)
{
	char last = b->data[b->len - 1];

	if (last != '[' && last != '{')
		buf_add_char(b, ',');
}

/* --- amounts --------------------------------------------------------------------------------- */

enum amount { CPU, MEMORY, STORAGE, GPU, HUGE, AMOUNTS };

static const struct {
	const char *name, *unit;
} amounts[AMOUNTS] = {
	[CPU] = {"cpu", "m"},
	[MEMORY] = {"memory", "Mi"},
	[STORAGE] = {"ephemeral-storage", "Mi"},
	[GPU] = {"example.com/gpu", ""},
	[HUGE] = {"hugepages-2Mi", "Mi"},
};

struct amount_list {
	int64_t of[AMOUNTS];
};

/* The members `from` up to CPU..HUGE of a list of resources. */
static void write_amounts(struct buf *b, const struct amount_list *a, enum amount from)
{
	buf_add_char(b, '{');
	for (int i = (int)from; i < AMOUNTS; i++) {
		if (!a->of[i])
			continue;
		next(b);
		buf_printf(b, "\"%s\":\"%lld%s\"", amounts[i].name, (long long)a->of[i],
			   amounts[i].unit);
	}
	buf_add_char(b, '}');
}

static struct amount_list draw_amounts(struct kube_fit_world *w)
{
	static const int64_t cpu[] = {50, 100, 100, 250, 1000, 2000},
			     memory[] = {64, 64, 100, 512, 2048};
	struct amount_list a = {{0}};

	if (chance(w, 70))
		a.of[CPU] = cpu[draw(w, 6)];
	if (chance(w, 70))
		a.of[MEMORY] = memory[draw(w, 5)];
	if (chance(w, 10))
		a.of[STORAGE] = chance(w, 50) ? 512 : 4096;
	if (chance(w, 7))
		a.of[GPU] = 1 + (int64_t)draw(w, 2);
	if (a.of[MEMORY] && chance(w, 7))
		a.of[HUGE] = chance(w, 50) ? 32 : 64;
	return a;
}

/* --- what containers ask for ----------------------------------------------------------------- */

static void write_ports(struct kube_fit_world *w, struct buf *b)
{
	buf_printf(b, ",\"ports\":[{\"containerPort\":80,\"hostPort\":%s,\"protocol\":\"%s\"",
		   ANY(w, "80", "80", "443"), ANY(w, "TCP", "TCP", "UDP"));
	if (chance(w, 50))
		buf_printf(b, ",\"hostIP\":\"%s\"", ANY(w, "0.0.0.0", "10.0.0.1", "10.0.0.2"));
	buf_add_str(b, "}]");
}

static struct amount_list write_container(struct kube_fit_world *w, struct buf *b, char name)
{
	struct amount_list a = draw_amounts(w);

	next(b);
	buf_printf(b, "{\"name\":\"%c\",\"image\":\"none\",\"resources\":{\"requests\":", name);
	write_amounts(b, &a, CPU);
	buf_add_str(b, ",\"limits\":");
	write_amounts(b, &a, GPU);
	buf_add_char(b, '}');
	if (name == 'a' && !w->on_host && chance(w, 15))
		write_ports(w, b);
	if (w->version->new_members && name == 'a' && chance(w, 12))
		buf_printf(
			b,
			",\"restartPolicy\":\"Never\",\"restartPolicyRules\":[{\"action\":\"%s\","
			"\"exitCodes\":{\"operator\":\"In\",\"values\":[42]}}]",
			ANY(w, "Restart", "RestartAllContainers", "RestartAllContainers"));
	buf_add_char(b, '}');
	return a;
}

/* The pod's own requests, which must be no less than what its containers add up to. */
static void write_pod_level(struct kube_fit_world *w, struct buf *b, struct amount_list *sum)
{
	sum->of[CPU] += 100 * (int64_t)draw(w, 5);
	sum->of[MEMORY] += 64 * (int64_t)draw(w, 5);
	buf_printf(b, ",\"resources\":{\"requests\":{\"cpu\":\"%lldm\",\"memory\":\"%lldMi\"}}",
		   (long long)sum->of[CPU], (long long)sum->of[MEMORY]);
}

/* What the pod needs at its worst moment; an overhead is that of the runtime class. */
static struct amount_list write_containers(struct kube_fit_world *w, struct buf *b)
{
	struct amount_list sum = {{0}}, one;
	bool init;

	buf_add_str(b, "\"containers\":[");
	sum = write_container(w, b, 'a');
	if (chance(w, 20)) {
		one = write_container(w, b, 'b');
		for (int i = 0; i < AMOUNTS; i++)
			sum.of[i] += one.of[i];
	}
	buf_add_char(b, ']');
	init = chance(w, 15);
	if (init) {
		buf_add_str(b, ",\"initContainers\":[");
		one = write_container(w, b, 'i');
		for (int i = 0; i < AMOUNTS; i++)
			sum.of[i] = one.of[i] > sum.of[i] ? one.of[i] : sum.of[i];
		buf_add_char(b, ']');
	}
	if (w->version->new_members && chance(w, 10))
		write_pod_level(w, b, &sum);
	if (chance(w, 8)) {
		buf_add_str(b, ",\"runtimeClassName\":\"fat\"");
		sum.of[CPU] += 150;
		sum.of[MEMORY] += 300;
	}
	return sum;
}

static void make_runtime_class(struct control_plane *c)
{
	control_plane_must(c, "POST", "/apis/node.k8s.io/v1/runtimeclasses",
			   "{\"metadata\":{\"name\":\"fat\"},\"handler\":\"fat\",\"overhead\":"
			   "{\"podFixed\":{\"cpu\":\"150m\",\"memory\":\"300Mi\"}}}");
}

/* --- rules of pods --------------------------------------------------------------------------- */

/* The last is of pods without a node only: the first of its kind may be near itself anywhere. */
static const char *any_app(struct kube_fit_world *w)
{
	return ANY(w, "a", "b", "c", "d", "e", "f", "new", "new");
}

/*
 * Among the pods of a namespace or more. One that is missing means nobody, an empty one everybody.
 */
static void write_selector(struct kube_fit_world *w, struct buf *b, bool may_be_empty)
{
	if (chance(w, 4)) {
		buf_add_str(b, may_be_empty && chance(w, 50) ? "{}" : "null");
		return;
	}
	if (chance(w, 70)) {
		buf_printf(b, "{\"matchLabels\":{\"app\":\"%s\"}}", any_app(w));
		return;
	}
	buf_printf(b, "{\"matchExpressions\":[{\"key\":\"%s\",", ANY(w, "app", "tier"));
	if (chance(w, 80))
		buf_printf(b, "\"operator\":\"%s\",\"values\":[\"%s\",\"%s\"]}]}",
			   ANY(w, "In", "In", "In", "NotIn"), any_app(w), ANY(w, "x", "y"));
	else
		buf_printf(b, "\"operator\":\"%s\"}]}", ANY(w, "Exists", "DoesNotExist"));
}

static void write_pod_term(struct kube_fit_world *w, struct buf *b)
{
	next(b);
	buf_printf(b, "{\"topologyKey\":\"%s\",\"labelSelector\":",
		   ANY(w, HOSTNAME, HOSTNAME, ZONE, "rack", "rack"));
	write_selector(w, b, true);
	if (chance(w, 20))
		buf_printf(b, ",\"namespaces\":[%s]",
			   ANY(w, "\"two\"", "\"one\"", "\"one\",\"two\""));
	buf_add_char(b, '}');
}

static void write_pod_terms(struct kube_fit_world *w, struct buf *b, const char *name)
{
	next(b);
	buf_printf(b, "\"%s\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[", name);
	write_pod_term(w, b);
	if (chance(w, 20))
		write_pod_term(w, b);
	buf_add_str(b, "]}");
}

static const char *draw_bound(struct kube_fit_world *w)
{
	const char *bound = ANY(w, "-4", "x", "0", "1", "4", "7");

	return *bound == '-' && !w->version->any_affinity_value ? "0" : bound;
}

static void write_node_expression(struct kube_fit_world *w, struct buf *b)
{
	const char *op = ANY(w, "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt");

	next(b);
	if (*op == 'G' || *op == 'L')
		buf_printf(b, "{\"key\":\"gen\",\"operator\":\"%s\",\"values\":[\"%s\"]}", op,
			   draw_bound(w));
	else if (*op == 'E' || *op == 'D')
		buf_printf(b, "{\"key\":\"%s\",\"operator\":\"%s\"}", ANY(w, "disk", "gen"), op);
	else
		buf_printf(b, "{\"key\":\"%s\",\"operator\":\"%s\",\"values\":[\"%s\",\"%s\"]}",
			   ANY(w, ZONE, "disk"), op, ANY(w, "a", "ssd", ""), ANY(w, "b", "hdd"));
}

static void write_node_term(struct kube_fit_world *w, struct buf *b)
{
	next(b);
	if (chance(w, 4)) {
		buf_add_str(b, "{}");
		return;
	}
	if (chance(w, 12)) {
		buf_printf(b,
			   "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"%s\","
			   "\"values\":[\"n%02zu\"]}]}",
			   ANY(w, "In", "NotIn"), draw(w, KUBE_FIT_NODES));
		return;
	}
	buf_add_str(b, "{\"matchExpressions\":[");
	write_node_expression(w, b);
	if (chance(w, 30))
		write_node_expression(w, b);
	buf_add_str(b, "]}");
}

static void write_node_terms(struct kube_fit_world *w, struct buf *b)
{
	next(b);
	buf_add_str(b, "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
		       "\"nodeSelectorTerms\":[");
	write_node_term(w, b);
	if (chance(w, 40))
		write_node_term(w, b);
	buf_add_str(b, "]}}");
}

/* Whether anything was asked of nodes. */
static bool write_placement(struct kube_fit_world *w, struct buf *b)
{
	bool terms = chance(w, 25), selector = chance(w, 10);

	if (selector)
		buf_printf(b, ",\"nodeSelector\":{\"disk\":\"%s\"}", ANY(w, "ssd", "hdd"));
	buf_add_str(b, ",\"affinity\":{");
	if (terms)
		write_node_terms(w, b);
	if (chance(w, 15))
		write_pod_terms(w, b, "podAntiAffinity");
	if (chance(w, 15))
		write_pod_terms(w, b, "podAffinity");
	buf_add_char(b, '}');
	return terms || selector;
}

static void write_toleration(struct kube_fit_world *w, struct buf *b)
{
	next(b);
	if (w->version->new_members && chance(w, 30)) {
		buf_printf(b, "{\"key\":\"tier\",\"operator\":\"%s\",\"value\":\"%s\"}",
			   ANY(w, "Gt", "Lt"), ANY(w, "-1", "0", "3", "5", "10"));
		return;
	}
	switch (draw(w, 6)) {
	case 0:
		buf_add_str(b, "{\"operator\":\"Exists\"}");
		return;
	case 1:
		buf_printf(b, "{\"operator\":\"Exists\",\"effect\":\"%s\"}",
			   ANY(w, "NoSchedule", "NoExecute"));
		return;
	case 2:
		buf_printf(b, "{\"key\":\"%s\",\"operator\":\"Exists\"}",
			   ANY(w, "team", "node.kubernetes.io/unschedulable"));
		return;
	default:
		buf_printf(b, "{\"key\":\"team\",\"value\":\"%s\"", ANY(w, "a", "b", ""));
		if (chance(w, 50))
			buf_add_str(b, ",\"operator\":\"Equal\"");
		if (chance(w, 40))
			buf_printf(b, ",\"effect\":\"%s\"", ANY(w, "NoSchedule", "NoExecute"));
		buf_add_char(b, '}');
	}
}

static void write_tolerations(struct kube_fit_world *w, struct buf *b)
{
	buf_add_str(b, ",\"tolerations\":[");
	for (size_t i = draw(w, 3); i > 0; i--)
		write_toleration(w, b);
	buf_add_char(b, ']');
}

static void write_constraint(struct kube_fit_world *w, struct buf *b, const char *key,
			     const char *when)
{
	next(b);
	buf_printf(b,
		   "{\"topologyKey\":\"%s\",\"maxSkew\":%s,\"whenUnsatisfiable\":\"%s\","
		   "\"labelSelector\":",
		   key, ANY(w, "1", "1", "2", "3"), when);
	write_selector(w, b, false);
	buf_add_char(b, '}');
}

static void write_spread(struct kube_fit_world *w, struct buf *b, bool asks_of_nodes)
{
	buf_add_str(b, ",\"topologySpreadConstraints\":[");
	if (chance(w, 10))
		write_constraint(w, b, ZONE, "ScheduleAnyway");
	if (asks_of_nodes || chance(w, 30)) {
		write_constraint(w, b, HOSTNAME, "DoNotSchedule");
		if (!asks_of_nodes && chance(w, 40))
			write_constraint(w, b, ZONE, "DoNotSchedule");
	} else {
		write_constraint(w, b, ANY(w, ZONE, "rack"), "DoNotSchedule");
	}
	buf_add_char(b, ']');
}

static void write_claim_volume(struct buf *b, size_t claim)
{
	buf_printf(b, ",{\"name\":\"v%zu\",\"persistentVolumeClaim\":{\"claimName\":\"c%02zu\"}}",
		   claim, claim);
}

/* One claim or two; the last does not exist. */
static void write_volumes(struct kube_fit_world *w, struct buf *b)
{
	size_t claim = draw(w, CLAIMS + 1);

	buf_add_str(b, ",\"volumes\":[{\"name\":\"tmp\",\"emptyDir\":{}},"
		       "{\"name\":\"etc\",\"configMap\":{\"name\":\"etc\"}}");
	write_claim_volume(b, claim);
	if (chance(w, 40))
		write_claim_volume(b, (claim + 1 + draw(w, CLAIMS)) % (CLAIMS + 1));
	buf_add_char(b, ']');
}

/* Members that say nothing of nodes. */
static void write_names(struct kube_fit_world *w, struct buf *b)
{
	if (chance(w, 10))
		buf_add_str(b, "\"schedulingGroup\":{\"podGroupName\":\"gang\"},");
	else if (chance(w, 10))
		buf_add_str(b, "\"evictionResponders\":[{\"name\":\"example.com/x\","
			       "\"priority\":10000}],");
	if (chance(w, 10))
		buf_add_str(b, "\"hostnameOverride\":\"other\",");
}

/* A pod of the API without braces' end; what it needs. `where` as drawn, or -1. */
static struct amount_list write_pod(struct kube_fit_world *w, struct buf *b, const char *name,
				    int where)
{
	struct amount_list need;
	bool asks_of_nodes;

	buf_printf(b, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"%s\"", name,
		   where < 0 ? any_app(w) : ANY(w, "a", "b", "c", "d", "e", "f"));
	if (chance(w, 50))
		buf_printf(b, ",\"tier\":\"%s\"", ANY(w, "x", "y"));
	buf_add_str(b, "}},\"spec\":{");
	w->on_host = w->version->new_members && chance(w, 12);
	if (w->on_host)
		buf_printf(b, "\"hostNetwork\":true,\"hostUsers\":%s,",
			   ANY(w, "true", "false", "false"));
	else if (w->version->new_members)
		write_names(w, b);
	if (where == NOWHERE)
		buf_add_str(b, "\"nodeName\":\"" PLACE_WORLD_LOST "\",");
	else if (where >= 0)
		buf_printf(b, "\"nodeName\":\"n%02d\",", where);
	need = write_containers(w, b);
	asks_of_nodes = write_placement(w, b);
	write_tolerations(w, b);
	if (chance(w, 18))
		write_spread(w, b, asks_of_nodes);
	if (chance(w, where < 0 ? 35 : 15))
		write_volumes(w, b);
	buf_add_str(b, "}}");
	return need;
}

/* --- nodes and their pods -------------------------------------------------------------------- */

/* Nothing, little or much more than is taken; of special resources mostly nothing at all. */
static void write_allocatable(struct kube_fit_world *w, struct buf *b, struct amount_list a,
			      size_t pods)
{
	static const int64_t spare[AMOUNTS][4] = {
		[CPU] = {0, 150, 1000, 8000},	    [MEMORY] = {0, 100, 1024, 16000},
		[STORAGE] = {0, 600, 10000, 10000}, [GPU] = {0, 0, 1, 4},
		[HUGE] = {0, 0, 32, 128},
	};

	for (int i = 0; i < AMOUNTS; i++)
		a.of[i] += spare[i][chance(w, 60) && i < GPU ? 3 : draw(w, 4)];
	write_amounts(b, &a, CPU);
	b->data[--b->len] = '\0';
	next(b);
	buf_printf(b, "\"pods\":\"%zu\"}", pods + (chance(w, 90) ? 30 : draw(w, 3)));
}

static void write_node_labels(struct kube_fit_world *w, struct buf *b, size_t n)
{
	buf_printf(b, "{\"" HOSTNAME "\":\"n%02zu\"", n);
	if (chance(w, 90))
		buf_printf(b, ",\"" ZONE "\":\"%s\"", ANY(w, "a", "b", "c"));
	if (chance(w, 80))
		buf_printf(b, ",\"rack\":\"r%zu\"", draw(w, 12));
	if (chance(w, 70))
		buf_printf(b, ",\"disk\":\"%s\"", ANY(w, "ssd", "hdd", ""));
	if (chance(w, 70))
		buf_printf(b, ",\"gen\":\"%s\"", ANY(w, "3", "1", "2", "5", "05", "10", "x"));
	buf_add_char(b, '}');
}

static void write_taint(struct buf *b, const char *key, const char *value, const char *effect)
{
	next(b);
	buf_printf(b, "{\"key\":\"%s\",\"value\":\"%s\",\"effect\":\"%s\"}", key, value, effect);
}

static void write_node_spec(struct kube_fit_world *w, struct buf *b)
{
	bool cordoned = chance(w, 20);

	buf_printf(b, "{\"unschedulable\":%s,\"taints\":[", cordoned ? "true" : "false");
	if (cordoned && chance(w, 50))
		write_taint(b, "node.kubernetes.io/unschedulable", "", "NoSchedule");
	if (chance(w, 15))
		write_taint(b, "team", ANY(w, "a", "b", ""), "NoSchedule");
	if (chance(w, 15))
		write_taint(b, "spot", "", "PreferNoSchedule");
	if (chance(w, 10))
		write_taint(b, "team", ANY(w, "a", "b"), "NoExecute");
	if (w->version->new_members && chance(w, 25))
		write_taint(b, "tier", ANY(w, "0", "3", "4", "05", "x", ""), "NoSchedule");
	buf_add_str(b, "]}");
}

static void make_node(struct kube_fit_world *w, struct control_plane *c, size_t n,
		      const struct amount_list *taken, size_t pods)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "{\"metadata\":{\"name\":\"n%02zu\",\"labels\":", n);
	write_node_labels(w, &b, n);
	buf_add_str(&b, "},\"spec\":");
	write_node_spec(w, &b);
	buf_add_str(&b, ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
			"\"allocatable\":");
	write_allocatable(w, &b, *taken, pods);
	if (w->version->new_members)
		buf_printf(&b, ",\"declaredFeatures\":[%s]",
			   ANY(w, "", "\"RestartAllContainersOnContainerExits\"",
			       "\"RestartAllContainersOnContainerExits\","
			       "\"UserNamespacesHostNetworkSupport\""));
	buf_add_str(&b, "}}");
	post(c, "/api/v1/nodes", &b);
}

struct bound_pod {
	struct buf body;
	const char *namespace;
	char name[8];
};

/* As drawn: it runs, it has ended, which frees what it had, or it is about to end. */
static void settle(struct kube_fit_world *w, struct control_plane *c, struct bound_pod *p,
		   bool ended)
{
	char *path = mem_printf("/api/v1/namespaces/%s/pods", p->namespace);

	post(c, path, &p->body);
	free(path);
	path = mem_printf("/api/v1/namespaces/%s/pods/%s%s", p->namespace, p->name,
			  ended ? "/status" : "");
	if (ended)
		control_plane_must(c, "PATCH", path,
				   chance(w, 50) ? "{\"status\":{\"phase\":\"Succeeded\"}}"
						 : "{\"status\":{\"phase\":\"Failed\"}}");
	else if (chance(w, 6))
		control_plane_must(c, "DELETE", path, NULL);
	free(path);
}

static void make_nodes(struct kube_fit_world *w, struct control_plane *c)
{
	struct amount_list taken[KUBE_FIT_NODES + 1] = {{{0}}}, need;
	size_t pods[KUBE_FIT_NODES + 1] = {0};
	struct bound_pod bound[KUBE_FIT_BOUND];
	bool ended[KUBE_FIT_BOUND];

	for (size_t i = 0; i < KUBE_FIT_BOUND; i++) {
		size_t n = chance(w, 3) ? NOWHERE : draw(w, KUBE_FIT_NODES);
		struct bound_pod *p = &bound[i];

		*p = (struct bound_pod){BUF_INIT, chance(w, 80) ? "one" : "two", ""};
		snprintf(p->name, sizeof(p->name), "b%03zu", i);
		need = write_pod(w, &p->body, p->name, (int)n);
		ended[i] = chance(w, 8);
		for (int a = 0; !ended[i] && a < AMOUNTS; a++)
			taken[n].of[a] += need.of[a];
		pods[n] += !ended[i];
		w->pods += !ended[i];
	}
	w->nodes = KUBE_FIT_NODES + (pods[NOWHERE] > 0);
	for (size_t n = 0; n < KUBE_FIT_NODES; n++)
		make_node(w, c, n, &taken[n], pods[n]);
	for (size_t i = 0; i < KUBE_FIT_BOUND; i++)
		settle(w, c, &bound[i], ended[i]);
}

/* Gated pods never start, and count on their nominated nodes. Pods in question have priority 0. */
static void make_nominated(struct kube_fit_world *w, struct control_plane *c)
{
	control_plane_must(c, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
			   "{\"metadata\":{\"name\":\"low\"},\"value\":-5}");
	for (size_t i = 0; i < 20; i++) {
		struct buf b = BUF_INIT;
		char *path = mem_printf("/api/v1/namespaces/two/pods/g%02zu/status", i);
		char *node = mem_printf("{\"status\":{\"nominatedNodeName\":\"n%02zu\"}}",
					draw(w, KUBE_FIT_NODES));

		buf_printf(&b,
			   "{\"metadata\":{\"name\":\"g%02zu\",\"labels\":{\"app\":\"%s\"}},"
			   "\"spec\":{\"schedulingGates\":[{\"name\":\"example.com/g\"}],%s",
			   i, any_app(w), chance(w, 25) ? "\"priorityClassName\":\"low\"," : "");
		w->on_host = false;
		write_containers(w, &b);
		write_placement(w, &b);
		buf_add_str(&b, "}}");
		post(c, "/api/v1/namespaces/two/pods", &b);
		control_plane_must(c, "PATCH", path, node);
		free(node);
		free(path);
	}
}

/* --- volumes --------------------------------------------------------------------------------- */

static void make_classes(struct control_plane *c)
{
	static const char *const classes[] = {
		"\"dynamic\"},\"provisioner\":\"csi.example.com\",\"volumeBindingMode\":"
		"\"WaitForFirstConsumer\"",
		"\"zonal\"},\"provisioner\":\"csi.example.com\",\"volumeBindingMode\":"
		"\"WaitForFirstConsumer\",\"allowedTopologies\":[{\"matchLabelExpressions\":["
		"{\"key\":\"" ZONE "\",\"values\":[\"a\",\"b\"]}]},{\"matchLabelExpressions\":["
		"{\"key\":\"disk\",\"values\":[\"ssd\"]}]}]",
		"\"static\"},\"provisioner\":\"kubernetes.io/no-provisioner\","
		"\"volumeBindingMode\":\"WaitForFirstConsumer\"",
		"\"atonce\"},\"provisioner\":\"csi.example.com\",\"volumeBindingMode\":"
		"\"Immediate\"",
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		struct buf b = BUF_INIT;

		buf_printf(&b, "{\"metadata\":{\"name\":%s}", classes[i]);
		post(c, "/apis/storage.k8s.io/v1/storageclasses", &b);
	}
}

static void write_volume_affinity(struct kube_fit_world *w, struct buf *b)
{
	buf_add_str(b, ",\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":["
		       "{\"matchExpressions\":[");
	if (chance(w, 50))
		buf_printf(b,
			   "{\"key\":\"" HOSTNAME "\",\"operator\":\"In\",\"values\":[\"n%02zu\","
			   "\"n%02zu\",\"n%02zu\",\"n%02zu\"]}",
			   draw(w, KUBE_FIT_NODES), draw(w, KUBE_FIT_NODES),
			   draw(w, KUBE_FIT_NODES), draw(w, KUBE_FIT_NODES));
	else
		write_node_expression(w, b);
	buf_add_str(b, "]}]}}");
}

/* For a claim that has it, or has it reserved; or, without one, for whoever finds it. */
static void make_volume(struct kube_fit_world *w, struct control_plane *c, const char *name,
			const char *class, const char *claim)
{
	struct buf b = BUF_INIT;
	char *path = mem_printf("/api/v1/persistentvolumes/%s/status", name);

	buf_printf(&b, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kind\":\"%s\"", name,
		   ANY(w, "good", "bad"));
	if (claim && chance(w, 40))
		buf_printf(&b, ",\"" ZONE "\":\"%s\"", ANY(w, "a", "b", "a__c"));
	if (chance(w, 50))
		buf_printf(&b, "}},\"spec\":{\"csi\":{\"driver\":\"%s\",\"volumeHandle\":\"%s\"}",
			   ANY(w, "csi.example.com", "csi.example.com", "other.example.com"), name);
	else
		buf_add_str(&b, "}},\"spec\":{\"hostPath\":{\"path\":\"/none\"}");
	buf_printf(&b,
		   ",\"capacity\":{\"storage\":\"%s\"},\"accessModes\":[%s],"
		   "\"storageClassName\":\"%s\"",
		   ANY(w, "1Gi", "5Gi", "10G"),
		   ANY(w, "\"ReadWriteOnce\"", "\"ReadWriteOnce\"",
		       "\"ReadWriteOnce\",\"ReadOnlyMany\""),
		   class);
	if (chance(w, 6))
		buf_add_str(&b, ",\"volumeMode\":\"Block\"");
	if (claim)
		buf_printf(
			&b,
			",\"claimRef\":{\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"one\","
			"\"name\":\"%s\"}",
			claim);
	if (chance(w, claim ? 60 : 90))
		write_volume_affinity(w, &b);
	buf_add_str(&b, "}}");
	post(c, "/api/v1/persistentvolumes", &b);
	if (chance(w, 60))
		control_plane_must(c, "PATCH", path, "{\"status\":{\"phase\":\"Available\"}}");
	free(path);
}

enum claim_state { BOUND, LEAVING, ORPHANED, PROMISED, RESERVED, UNBOUND };

static enum claim_state draw_state(struct kube_fit_world *w)
{
	static const enum claim_state states[] = {BOUND,    BOUND,    BOUND,   BOUND,	UNBOUND,
						  UNBOUND,  UNBOUND,  UNBOUND, UNBOUND, LEAVING,
						  ORPHANED, PROMISED, RESERVED};

	return states[draw(w, sizeof(states) / sizeof(states[0]))];
}

static void write_claim(struct kube_fit_world *w, struct buf *b, const char *name,
			const char *class, enum claim_state s)
{
	bool bound = s == BOUND || s == LEAVING || s == ORPHANED;

	buf_printf(b, "{\"metadata\":{\"name\":\"%s\",\"annotations\":{%s}},\"spec\":{", name,
		   bound ? "\"pv.kubernetes.io/bind-completed\":\"yes\"" : "");
	if (bound || s == PROMISED)
		buf_printf(b, "\"volumeName\":\"v-%s\",", name);
	if (s == UNBOUND && chance(w, 25))
		buf_printf(b, "\"selector\":{\"matchLabels\":{\"kind\":\"%s\"}},",
			   ANY(w, "good", "bad"));
	buf_printf(b,
		   "\"storageClassName\":\"%s\",\"accessModes\":[\"%s\"],\"resources\":{"
		   "\"requests\":{\"storage\":\"%s\"}}}}",
		   class, ANY(w, "ReadWriteOnce", "ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany"),
		   ANY(w, "1Gi", "1Gi", "2Gi", "10G"));
}

/* The last class is one that nobody made, and one before it is none. */
static void make_claim(struct kube_fit_world *w, struct control_plane *c, size_t i)
{
	static const char path[] = "/api/v1/namespaces/one/persistentvolumeclaims";
	const char *class = ANY(w, "dynamic", "dynamic", "zonal", "zonal", "static", "static",
				"static", "static", "static", "atonce", "", "unknown");
	enum claim_state s = draw_state(w);
	char *name = mem_printf("c%02zu", i), *volume = mem_printf("v-%s", name);
	struct buf b = BUF_INIT;

	if (s != ORPHANED && s != UNBOUND)
		make_volume(w, c, volume, class, name);
	write_claim(w, &b, name, class, s);
	post(c, path, &b);
	if (s == LEAVING) {
		char *claim = mem_printf("%s/%s", path, name);

		control_plane_must(c, "DELETE", claim, NULL);
		free(claim);
	}
	free(name);
	free(volume);
}

static void make_volumes(struct kube_fit_world *w, struct control_plane *c)
{
	make_classes(c);
	for (size_t i = 0; i < VOLUMES; i++) {
		char *name = mem_printf("v%02zu", i);

		make_volume(w, c, name, ANY(w, "static", "static", "dynamic", "zonal"), NULL);
		free(name);
	}
	for (size_t i = 0; i < CLAIMS; i++)
		make_claim(w, c, i);
}

/* A driver of few volumes, of none, or of any number. */
static void make_limits(struct kube_fit_world *w, struct control_plane *c)
{
	for (size_t n = 0; n < KUBE_FIT_NODES; n++) {
		struct buf b = BUF_INIT;

		buf_printf(&b,
			   "{\"metadata\":{\"name\":\"n%02zu\"},\"spec\":{\"drivers\":[{\"name\":"
			   "\"%s.example.com\",\"nodeID\":\"n\"%s}]}}",
			   n, ANY(w, "other", "csi", "csi", "csi"),
			   ANY(w, "", ",\"allocatable\":{\"count\":0}",
			       ",\"allocatable\":{\"count\":1}", ",\"allocatable\":{\"count\":1}"));
		post(c, "/apis/storage.k8s.io/v1/csinodes", &b);
	}
}

/* --- all of it ------------------------------------------------------------------------------- */

void kube_fit_world_make(struct kube_fit_world *w, struct control_plane *c, uint64_t seed)
{
	*w = (struct kube_fit_world){.version = c->version, .dice = {.random = seed}};
	control_plane_must(c, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"one\"}}");
	control_plane_must(c, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"two\"}}");
	make_runtime_class(c);
	make_volumes(w, c);
	make_nodes(w, c);
	make_limits(w, c);
	if (c->version->new_members)
		make_nominated(w, c);
}

void kube_fit_world_ask(struct kube_fit_world *w, struct control_plane *c)
{
	for (size_t i = 0; i < KUBE_FIT_ASKED; i++) {
		struct buf b = BUF_INIT;
		char name[8];

		snprintf(name, sizeof(name), "p%03zu", i);
		write_pod(w, &b, name, -1);
		post(c, "/api/v1/namespaces/" KUBE_FIT_NAMESPACE "/pods", &b);
	}
}
