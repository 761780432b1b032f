/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most nodes and workloads come first, and the rest when they are settled, so that nodes are not
 * all filled alike. Sizes are such that a half to four fifths of the CPU there is are requested, or
 * less where pods are too few: then much may go, and much that goes leaves little room.
 *
 * Rules are those in which the tests' kube-scheduler, of an old release, decides as those of today
 * do: tests/kube_fit_world.c says which are not. There is no kubelet, and so the test does as one
 * would whenever it looks. Some pods have a grace and are seen leaving, others are gone at once.
 *
 * A pod that no node takes has been judged when it is in the scheduler's queue of those that are
 * unschedulable, and nobody is in the others: the scheduler itself brings it back from there when
 * anything happens that may help. That it has heard of everything is told by the number of pods
 * that it counts on nodes.
 */
#include "tests/kube_drain_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/place_world_spec.h"
#include "tests/process.h"
#include "tests/stack.h"

#define HOSTNAME "kubernetes.io/hostname"
#define ZONE	 "topology.kubernetes.io/zone"
/* Controllers and the scheduler, on a machine that may be busy with other tests. */
#define SECONDS 180
/* Deployments of balloons, of any namespace. */
#define BALLOONS "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fpart-of%3Devenkeel"

#define text_at	  kube_drain_text
#define number_at kube_drain_number

#define ANY(w, ...) PICK(&(w)->dice, __VA_ARGS__)

static bool chance(struct kube_drain_world *w, unsigned int percent)
{
	return place_world_chance(&w->dice, percent);
}

static size_t draw(struct kube_drain_world *w, size_t n)
{
	return place_world_draw(&w->dice, n);
}

const char *kube_drain_text(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

const char *kube_drain_pod_app(const cJSON *pod)
{
	return text_at(pod, "metadata.labels.app");
}

bool kube_drain_is_balloon(const cJSON *pod)
{
	return cJSON_GetObjectItemCaseSensitive(json_at(pod, "metadata.labels"),
						"evenkeel.io/slack-class");
}

double kube_drain_number(const cJSON *json, const char *path)
{
	const cJSON *number = json_at(json, path);

	return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

cJSON *kube_drain_world_get(const struct kube_drain_world *w, const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (control_plane_send(w->bed->plane, "GET", path, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	buf_fini(&answer);
	return json;
}

static void post(struct kube_drain_world *w, const char *path, struct buf *body)
{
	control_plane_must(w->bed->plane, "POST", path, body->data);
	buf_fini(body);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static void make_node(struct kube_drain_world *w, size_t i, int cpu)
{
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"metadata\":{\"name\":\"s%llu-n%02zu\",\"labels\":{\"" HOSTNAME
		   "\":\"s%llu-n%02zu\",\"" ZONE "\":\"%c\",\"disk\":\"%s\"}},\"spec\":{",
		   (unsigned long long)w->seed, i, (unsigned long long)w->seed, i, "abc"[i % 3],
		   ANY(w, "ssd", "ssd", "hdd"));
	if (chance(w, 20))
		buf_printf(&b, "\"taints\":[{\"key\":\"team\",\"value\":\"a\",\"effect\":\"%s\"}]",
			   ANY(w, "NoSchedule", "PreferNoSchedule"));
	buf_printf(&b,
		   "},\"status\":{\"allocatable\":{\"cpu\":\"%d\",\"memory\":\"%dGi\",\"pods\":"
		   "\"%s\"},\"capacity\":{\"cpu\":\"%d\",\"memory\":\"%dGi\",\"pods\":\"110\"},"
		   "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		   cpu, 4 * cpu, ANY(w, "110", "110", "110", "12"), cpu, 4 * cpu);
	post(w, "/api/v1/nodes", &b);
}

/* How many CPUs all nodes have. */
static int draw_nodes(struct kube_drain_world *w, int *cpus)
{
	static const int sizes[] = {2, 4, 4, 4, 6};
	int sum = 0;

	w->node_count = 12 + draw(w, KUBE_DRAIN_NODES_MAX - 12 + 1);
	for (size_t i = 0; i < w->node_count; i++)
		sum += cpus[i] = sizes[draw(w, sizeof(sizes) / sizeof(sizes[0]))];
	return sum;
}

/* --- rules of pods --------------------------------------------------------------------------- */

static void write_node_rules(struct kube_drain_world *w, struct buf *b, bool *asks_of_nodes)
{
	bool selector = chance(w, 15), terms = chance(w, 10);

	if (selector)
		buf_printf(b, ",\"nodeSelector\":{\"disk\":\"%s\"}", ANY(w, "ssd", "ssd", "hdd"));
	buf_add_str(b, ",\"affinity\":{\"nodeAffinity\":{");
	if (terms)
		buf_printf(b,
			   "\"requiredDuringSchedulingIgnoredDuringExecution\":{"
			   "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" ZONE "\","
			   "\"operator\":\"%s\",\"values\":[\"%s\"]}]}]}",
			   ANY(w, "In", "NotIn", "NotIn"), ANY(w, "a", "b", "c"));
	buf_add_char(b, '}');
	*asks_of_nodes = selector || terms;
}

static void write_pod_rule(struct buf *b, const char *kind, const char *app, const char *key)
{
	buf_printf(b,
		   ",\"%s\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
		   "\"topologyKey\":\"%s\",\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}]}",
		   kind, key, app);
}

/* Of any workload that is there already. */
static const char *any_other(struct kube_drain_world *w)
{
	return w->workloads[draw(w, w->workload_count)].name;
}

static void write_pod_rules(struct kube_drain_world *w, struct buf *b,
			    const struct kube_drain_workload *of)
{
	switch (draw(w, 14)) {
	case 0:
	case 1:
	case 2:
		write_pod_rule(b, "podAntiAffinity", of->name, HOSTNAME);
		break;
	case 3:
		write_pod_rule(b, "podAntiAffinity", of->name, of->replicas <= 3 ? ZONE : HOSTNAME);
		break;
	case 4:
		if (w->workload_count)
			write_pod_rule(b, "podAntiAffinity", any_other(w), HOSTNAME);
		break;
	case 5:
		if (w->workload_count && chance(w, 50))
			write_pod_rule(b, "podAffinity", any_other(w), ZONE);
		break;
	default:
		break;
	}
	buf_add_char(b, '}');
}

static void write_spread(struct kube_drain_world *w, struct buf *b,
			 const struct kube_drain_workload *of, bool asks_of_nodes)
{
	if (!chance(w, 30))
		return;
	buf_printf(b,
		   ",\"topologySpreadConstraints\":[{\"topologyKey\":\"%s\",\"maxSkew\":%s,"
		   "\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{\"matchLabels\":{"
		   "\"app\":\"%s\"}}}]",
		   asks_of_nodes || chance(w, 40) ? HOSTNAME : ZONE, ANY(w, "1", "1", "2"),
		   of->name);
}

/* What a pod requests of CPU is returned, in thousandths. */
static int write_template(struct kube_drain_world *w, struct buf *b,
			  const struct kube_drain_workload *of)
{
	static const int small[] = {100, 150, 200, 300, 400, 500},
			 large[] = {900, 1500, 1900, 2700};
	int cpu = of->replicas <= 4 && chance(w, 40) ? large[draw(w, 4)] : small[draw(w, 6)];
	bool asks_of_nodes;

	buf_printf(b,
		   "\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\",\"tier\":\"%s\"}},"
		   "\"spec\":{\"terminationGracePeriodSeconds\":%s,\"containers\":[{\"name\":\"c\","
		   "\"image\":\"none\",\"resources\":{\"requests\":{\"cpu\":\"%dm\","
		   "\"memory\":\"%sMi\"}}",
		   of->name, ANY(w, "x", "y"), ANY(w, "0", "0", "30"), cpu,
		   ANY(w, "128", "256", "512", "1024", "3072"));
	if (of->replicas <= 3 && chance(w, 10))
		buf_add_str(b, ",\"ports\":[{\"containerPort\":80,\"hostPort\":80}]");
	buf_add_str(b, "}]");
	if (chance(w, 15))
		buf_add_str(b, ",\"priorityClassName\":\"system-cluster-critical\"");
	if (chance(w, 30))
		buf_add_str(b, ",\"tolerations\":[{\"key\":\"team\",\"operator\":\"Exists\"}]");
	write_node_rules(w, b, &asks_of_nodes);
	write_pod_rules(w, b, of);
	write_spread(w, b, of, asks_of_nodes);
	buf_add_str(b, "}}");
	return cpu;
}

/* --- workloads ------------------------------------------------------------------------------- */

static const struct {
	const char *resource, *kind, *more;
} kinds[] = {
	[KUBE_DRAIN_DEPLOYMENT] = {"deployments", "Deployment", ""},
	[KUBE_DRAIN_REPLICA_SET] = {"replicasets", "ReplicaSet", ""},
	[KUBE_DRAIN_STATEFUL_SET] = {"statefulsets", "StatefulSet",
				     "\"serviceName\":\"none\",\"podManagementPolicy\":"
				     "\"Parallel\","},
};

static char *workload_path(const struct kube_drain_world *w, enum kube_drain_kind kind,
			   const char *name)
{
	return mem_printf("/apis/apps/v1/namespaces/%s/%s%s%s", w->namespace, kinds[kind].resource,
			  *name ? "/" : "", name);
}

/* The CPU of all of its pods, in thousandths. */
static int make_workload(struct kube_drain_world *w)
{
	static const size_t replicas[] = {1, 1, 2, 3, 3, 4, 5, 6, 8, 10, 12};
	struct kube_drain_workload *of = &w->workloads[w->workload_count];
	struct buf b = BUF_INIT;
	char *path;
	int cpu;

	snprintf(of->name, sizeof(of->name), "w%02zu", w->workload_count);
	of->kind = chance(w, 50)   ? KUBE_DRAIN_DEPLOYMENT
		   : chance(w, 60) ? KUBE_DRAIN_REPLICA_SET
				   : KUBE_DRAIN_STATEFUL_SET;
	of->replicas = replicas[draw(w, sizeof(replicas) / sizeof(replicas[0]))];
	buf_printf(&b,
		   "{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},"
		   "\"spec\":{\"replicas\":%zu,%s\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},",
		   kinds[of->kind].kind, of->name, of->replicas, kinds[of->kind].more, of->name);
	cpu = write_template(w, &b, of);
	buf_add_str(&b, "}}");
	path = workload_path(w, of->kind, "");
	post(w, path, &b);
	free(path);
	w->workload_count++;
	return cpu * (int)of->replicas;
}

static size_t count_replicas(const struct kube_drain_world *w)
{
	size_t sum = 0;

	for (size_t i = 0; i < w->workload_count; i++)
		sum += w->workloads[i].replicas;
	return sum;
}

/* Until so much CPU is requested by all, in thousandths, or there are so many pods. */
static void make_workloads(struct kube_drain_world *w, int cpu, size_t pods, int *requested)
{
	while (*requested < cpu && count_replicas(w) < pods &&
	       w->workload_count < KUBE_DRAIN_WORKLOADS_MAX)
		*requested += make_workload(w);
}

/* One pod per node that is not tainted; they come before all others. */
static void make_daemons(struct kube_drain_world *w)
{
	char *path = mem_printf("/apis/apps/v1/namespaces/%s/daemonsets", w->namespace);

	control_plane_must(
		w->bed->plane, "POST", path,
		"{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":"
		"\"daemon\"},\"spec\":{\"selector\":{\"matchLabels\":{\"daemon\":\"yes\"}},"
		"\"template\":{\"metadata\":{\"labels\":{\"daemon\":\"yes\"}},\"spec\":{"
		"\"priorityClassName\":\"system-node-critical\",\"terminationGracePeriodSeconds\":"
		"0,\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{\"requests\":"
		"{\"cpu\":\"50m\",\"memory\":\"64Mi\"}}}]}}}}");
	free(path);
	w->has_daemons = true;
}

/* --- looking --------------------------------------------------------------------------------- */

static char *pod_path(const cJSON *pod, const char *below)
{
	return mem_printf("/api/v1/namespaces/%s/pods/%s%s", text_at(pod, "metadata.namespace"),
			  text_at(pod, "metadata.name"), below);
}

/* It may be gone, or another by now: the next look tells. */
static void run_pod(struct kube_drain_world *w, const cJSON *pod)
{
	char *path = pod_path(pod, "/status");
	char *body = mem_printf(
		"{\"metadata\":{\"uid\":\"%s\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{"
		"\"type\":\"PodScheduled\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":"
		"\"True\"}]}}",
		text_at(pod, "metadata.uid"));

	control_plane_send(w->bed->plane, "PATCH", path, body, NULL);
	free(path);
	free(body);
}

static void end_pod(struct kube_drain_world *w, const cJSON *pod)
{
	char *path = pod_path(pod, "");
	char *body = mem_printf("{\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\":\"%s\"}}",
				text_at(pod, "metadata.uid"));

	control_plane_send(w->bed->plane, "DELETE", path, body, NULL);
	free(path);
	free(body);
}

static bool has_grace_left(const struct kube_drain_world *w, const cJSON *pod)
{
	struct error error;
	int64_t end_ns;

	return w->keeps_grace &&
	       !timefmt_parse(text_at(pod, "metadata.deletionTimestamp"), &end_ns, &error) &&
	       end_ns > clock_wall_ns();
}

static void look_at(struct kube_drain_world *w, struct kube_drain_look *l, const cJSON *pod)
{
	if (json_at(pod, "metadata.deletionTimestamp")) {
		l->leaving++;
		if (!has_grace_left(w, pod))
			end_pod(w, pod);
		return;
	}
	if (!*text_at(pod, "spec.nodeName")) {
		l->unbound++;
		l->waiting += kube_drain_is_balloon(pod);
		return;
	}
	if (*kube_drain_pod_app(pod))
		l->bound++;
	else if (kube_drain_is_balloon(pod))
		l->balloons++;
	else
		l->daemons++;
	if (strcmp(text_at(pod, "status.phase"), "Pending") == 0)
		run_pod(w, pod);
}

bool kube_drain_world_look(struct kube_drain_world *w, struct kube_drain_look *out)
{
	const cJSON *pod;

	*out = (struct kube_drain_look){.pods = kube_drain_world_get(w, "/api/v1/pods")};
	cJSON_ArrayForEach (pod, json_at(out->pods, "items")) {
		look_at(w, out, pod);
	}
	return out->pods;
}

void kube_drain_look_fini(struct kube_drain_look *l)
{
	cJSON_Delete(l->pods);
	*l = (struct kube_drain_look){0};
}

/* --- settled --------------------------------------------------------------------------------- */

static double pending(const struct buf *metrics, const char *queue)
{
	char *name = mem_printf("scheduler_pending_pods{queue=\"%s\"}", queue);
	double pods = control_plane_sample(metrics, name);

	free(name);
	return pods;
}

static bool scheduler_is_idle(const struct kube_drain_world *w, const struct kube_drain_look *l)
{
	struct control_plane *plane = w->bed->plane;
	struct buf metrics = BUF_INIT;
	bool idle = control_plane_scheduler_metrics(plane, &metrics) &&
		    pending(&metrics, "active") == 0 && pending(&metrics, "backoff") == 0 &&
		    pending(&metrics, "unschedulable") == (double)l->unbound &&
		    control_plane_scheduler_knows(plane, &metrics, "pods",
						  l->bound + l->daemons + l->balloons);

	buf_fini(&metrics);
	return idle;
}

static bool daemons_are_there(const struct kube_drain_world *w, const struct kube_drain_look *l)
{
	char *path = mem_printf("/apis/apps/v1/namespaces/%s/daemonsets/daemon", w->namespace);
	cJSON *set = w->has_daemons ? kube_drain_world_get(w, path) : NULL;
	bool there = !w->has_daemons ||
		     (json_at(set, "status.observedGeneration") &&
		      number_at(set, "status.desiredNumberScheduled") == (double)l->daemons);

	cJSON_Delete(set);
	free(path);
	return there;
}

/* All of what was applied last. */
static bool balloons_are_there(const struct kube_drain_world *w, const struct kube_drain_look *l)
{
	cJSON *list = w->has_balloons ? kube_drain_world_get(w, BALLOONS) : NULL;
	bool there = !w->has_balloons || list;
	double replicas = 0;
	const cJSON *d;

	cJSON_ArrayForEach (d, json_at(list, "items")) {
		double wanted = number_at(d, "spec.replicas");

		there &= number_at(d, "status.observedGeneration") ==
				 number_at(d, "metadata.generation") &&
			 number_at(d, "status.replicas") == wanted &&
			 number_at(d, "status.updatedReplicas") == wanted;
		replicas += wanted;
	}
	cJSON_Delete(list);
	return there && replicas == (double)(l->balloons + l->waiting);
}

bool kube_drain_world_is_settled(const struct kube_drain_world *w, const struct kube_drain_look *l)
{
	return !l->leaving && l->bound + l->unbound - l->waiting == count_replicas(w) &&
	       daemons_are_there(w, l) && balloons_are_there(w, l) &&
	       (!l->unbound || scheduler_is_idle(w, l));
}

struct settling {
	struct kube_drain_world *world;
	struct kube_drain_look look; /* the last */
	bool bound; /* every pod must be */
};

static bool is_settled(void *ctx)
{
	struct settling *s = ctx;

	kube_drain_look_fini(&s->look);
	return kube_drain_world_look(s->world, &s->look) &&
	       kube_drain_world_is_settled(s->world, &s->look) && !(s->bound && s->look.unbound);
}

static void settle(struct kube_drain_world *w, bool bound, struct kube_drain_look *out)
{
	struct settling s = {.world = w, .bound = bound};

	if (!control_plane_await(w->bed->plane, is_settled, &s, SECONDS))
		fail_msg("seed %llu: of %zu pods %zu are bound, %zu are not and %zu are leaving",
			 (unsigned long long)w->seed, count_replicas(w), s.look.bound,
			 s.look.unbound, s.look.leaving);
	*out = s.look;
}

/* --- what fits nowhere ----------------------------------------------------------------------- */

static size_t count_bound(const struct kube_drain_look *l, const char *app)
{
	const cJSON *pod;
	size_t count = 0;

	cJSON_ArrayForEach (pod, json_at(l->pods, "items")) {
		count +=
			*text_at(pod, "spec.nodeName") && strcmp(kube_drain_pod_app(pod), app) == 0;
	}
	return count;
}

/* A StatefulSet takes away its last pod first, whether that has a node or not: all of them go. */
static void scale_away(struct kube_drain_world *w, const struct kube_drain_look *l)
{
	for (size_t i = 0; i < w->workload_count; i++) {
		struct kube_drain_workload *of = &w->workloads[i];
		size_t bound = count_bound(l, of->name);
		char *path, *body;

		if (bound == of->replicas)
			continue;
		of->replicas = of->kind == KUBE_DRAIN_STATEFUL_SET ? 0 : bound;
		path = workload_path(w, of->kind, of->name);
		body = mem_printf("{\"spec\":{\"replicas\":%zu}}", of->replicas);
		control_plane_must(w->bed->plane, "PATCH", path, body);
		free(path);
		free(body);
	}
}

/* --- budgets --------------------------------------------------------------------------------- */

static char *budgets_path(const struct kube_drain_world *w)
{
	return mem_printf("/apis/%s/namespaces/%s/poddisruptionbudgets",
			  w->bed->plane->version->budgets, w->namespace);
}

static void make_budget(struct kube_drain_world *w, const char *name, const char *label,
			const char *value, const char *rule)
{
	char *path = budgets_path(w);
	char *body = mem_printf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{"
				"%s,\"selector\":{\"matchLabels\":{\"%s\":\"%s\"}}}}",
				name, rule, label, value);

	control_plane_must(w->bed->plane, "POST", path, body);
	w->budget_count++;
	free(path);
	free(body);
}

static char *draw_rule(struct kube_drain_world *w, size_t replicas)
{
	switch (draw(w, 5)) {
	case 0:
		return mem_printf("\"maxUnavailable\":%zu", draw(w, 3));
	case 1:
		return mem_strdup(chance(w, 50) ? "\"minAvailable\":\"75%\""
						: "\"maxUnavailable\":\"34%\"");
	case 2:
		return mem_printf("\"minAvailable\":%zu", replicas - (replicas > 2 ? 2 : 0));
	default:
		return mem_printf("\"minAvailable\":%zu", replicas - 1);
	}
}

/* One of them may be over several workloads: pods that have two are evicted by nobody. */
static void make_budgets(struct kube_drain_world *w)
{
	unsigned int percent = (unsigned int)draw(w, 50);

	for (size_t i = 0; i < w->workload_count; i++) {
		const struct kube_drain_workload *of = &w->workloads[i];
		char *rule;

		if (!of->replicas || !chance(w, percent))
			continue;
		rule = draw_rule(w, of->replicas);
		make_budget(w, of->name, "app", of->name, rule);
		free(rule);
	}
	if (chance(w, 10))
		make_budget(w, "tier", "tier", "x", "\"minAvailable\":2");
}

cJSON *kube_drain_world_budgets(const struct kube_drain_world *w)
{
	char *path = budgets_path(w);
	cJSON *list = kube_drain_world_get(w, path);

	free(path);
	return list;
}

bool kube_drain_budget_selects(const cJSON *budget, const cJSON *pod)
{
	const cJSON *label = json_at(budget, "spec.selector.matchLabels");
	const cJSON *labels = json_at(pod, "metadata.labels");
	const char *value;

	label = label ? label->child : NULL;
	value = label ? cJSON_GetStringValue(
				cJSON_GetObjectItemCaseSensitive(labels, label->string))
		      : NULL;
	return value && strcmp(value, label->valuestring) == 0;
}

static size_t count_running(const cJSON *budget, const struct kube_drain_look *l)
{
	const cJSON *pod;
	size_t count = 0;

	cJSON_ArrayForEach (pod, json_at(l->pods, "items")) {
		count += kube_drain_budget_selects(budget, pod) &&
			 !json_at(pod, "metadata.deletionTimestamp") &&
			 strcmp(text_at(pod, "status.phase"), "Running") == 0;
	}
	return count;
}

bool kube_drain_world_budgets_are_true(const cJSON *budgets, const struct kube_drain_look *l)
{
	const cJSON *b;

	cJSON_ArrayForEach (b, json_at(budgets, "items")) {
		if (number_at(b, "status.observedGeneration") !=
			    number_at(b, "metadata.generation") ||
		    number_at(b, "status.currentHealthy") != (double)count_running(b, l))
			return false;
	}
	return budgets;
}

size_t kube_drain_world_violations(const cJSON *budgets)
{
	size_t violated = 0;
	const cJSON *b;

	cJSON_ArrayForEach (b, json_at(budgets, "items")) {
		double desired = number_at(b, "status.desiredHealthy"),
		       healthy = number_at(b, "status.currentHealthy");

		if (healthy >= desired || number_at(b, "status.expectedPods") < desired)
			continue;
		violated++;
		print_message("          budget %s has %g healthy pods of %g\n",
			      text_at(b, "metadata.name"), healthy, desired);
	}
	return violated;
}

static bool budgets_are_told(void *ctx)
{
	struct settling *s = ctx;
	cJSON *budgets = kube_drain_world_budgets(s->world);
	bool told;

	kube_drain_look_fini(&s->look);
	told = kube_drain_world_look(s->world, &s->look) &&
	       kube_drain_world_budgets_are_true(budgets, &s->look);
	cJSON_Delete(budgets);
	return told;
}

/* --- all of it ------------------------------------------------------------------------------- */

/* Of nodes and workloads, what comes first. */
enum { FIRST_PERCENT = 65 };

static void fill(struct kube_drain_world *w)
{
	int cpus[KUBE_DRAIN_NODES_MAX] = {0}, requested = 0;
	int cpu = draw_nodes(w, cpus) * (int)(450 + draw(w, 350));
	size_t pods = 60 + draw(w, 50), first = w->node_count * FIRST_PERCENT / 100;
	struct kube_drain_look look;

	if (chance(w, 50))
		make_daemons(w);
	for (size_t i = 0; i < first; i++)
		make_node(w, i, cpus[i]);
	make_workloads(w, cpu / 100 * FIRST_PERCENT, pods * FIRST_PERCENT / 100, &requested);
	settle(w, false, &look);
	kube_drain_look_fini(&look);
	for (size_t i = first; i < w->node_count; i++)
		make_node(w, i, cpus[i]);
	make_workloads(w, cpu, pods, &requested);
	settle(w, false, &look);
	scale_away(w, &look);
	kube_drain_look_fini(&look);
	settle(w, true, &look);
	kube_drain_look_fini(&look);
}

void kube_drain_world_make(struct kube_drain_world *w, struct kube_testbed *bed, uint64_t seed)
{
	struct settling s = {.world = w};
	char *body;

	*w = (struct kube_drain_world){.bed = bed, .seed = seed};
	/* Neighbouring seeds of such a generator begin alike. */
	w->dice.random = (seed + 1) * 0x9E3779B97F4A7C15ULL;
	snprintf(w->namespace, sizeof(w->namespace), "drain-%llu", (unsigned long long)seed);
	body = mem_printf("{\"metadata\":{\"name\":\"%s\"}}", w->namespace);
	control_plane_must(bed->plane, "POST", "/api/v1/namespaces", body);
	free(body);
	fill(w);
	make_budgets(w);
	if (!control_plane_await(bed->plane, budgets_are_told, &s, SECONDS))
		fail_msg("seed %llu: the status of budgets does not count the pods there are",
			 (unsigned long long)seed);
	kube_drain_look_fini(&s.look);
}

static bool clear_namespace(struct kube_drain_world *w, const char *namespace)
{
	static const char *const owners[] = {"deployments", "replicasets", "statefulsets",
					     "daemonsets"};
	bool clear = true;
	char *path;

	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		cJSON *list;

		path = mem_printf("/apis/apps/v1/namespaces/%s/%s?propagationPolicy=Background",
				  namespace, owners[i]);
		control_plane_send(w->bed->plane, "DELETE", path, NULL, NULL);
		list = kube_drain_world_get(w, path);
		clear &= list && !cJSON_GetArraySize(json_at(list, "items"));
		cJSON_Delete(list);
		free(path);
	}
	path = mem_printf("/api/v1/namespaces/%s/pods?gracePeriodSeconds=0", namespace);
	control_plane_send(w->bed->plane, "DELETE", path, NULL, NULL);
	free(path);
	return clear;
}

/* What is gone already is no matter; who comes anew meanwhile goes with the next try. */
static bool is_clear(void *ctx)
{
	struct kube_drain_world *w = ctx;
	struct kube_drain_look look;
	bool clear = clear_namespace(w, w->namespace);

	if (w->has_balloons)
		clear &= clear_namespace(w, "evenkeel");
	clear &= kube_drain_world_look(w, &look) && !look.bound && !look.unbound && !look.leaving &&
		 !look.daemons && !look.balloons;
	kube_drain_look_fini(&look);
	return clear;
}

void kube_drain_world_clear(struct kube_drain_world *w)
{
	char *path = budgets_path(w);

	control_plane_must(w->bed->plane, "DELETE", path, NULL);
	free(path);
	if (!control_plane_await(w->bed->plane, is_clear, w, SECONDS))
		fail_msg("seed %llu: its pods do not go", (unsigned long long)w->seed);
	control_plane_must(w->bed->plane, "DELETE", "/api/v1/nodes", NULL);
}
