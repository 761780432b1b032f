/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `evenkeel slack -o balloons | kubectl apply -f -` is worth, on a real control plane with as
 * many nodes as it has for good.
 *
 * A workload asks for room for four more pods, and the cluster's rate for some more; the objects
 * that evenkeel writes for that are applied as they are. Then the cluster fills up, twice: batch
 * pods, which push out nobody, take what they get; and the workload is scaled.
 *
 *   with balloons      batch takes what is left, and the new pods are bound in the place of
 *                      balloons
 *   without balloons   the same batch takes all there is, and the same new pods are unschedulable
 *                      until it ends
 *
 * How long a pod waits for its node is measured from where it is first seen to where it is first
 * seen with a node, by looks 50 ms apart; it is printed, not judged. Pods have no kubelet: who is
 * preempted is gone at once, as balloons ask for no grace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "tests/kube_objects.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

enum {
	NODES = 6,
	NODE_CPU = 4000, /* milli */
	WEB = 6, /* pods of the workload at first */
	BURST = 6, /* that it is scaled by */
	WEB_CPU = 500,
	BATCH_CPU = 250,
	BATCH = 64, /* more than there is room for */
	SECONDS = 90,
};

#define WEB_KEY "shop/Deployment/web"
#define LABEL	"evenkeel.io/slack-class"

static struct kube_testbed *bed;

/* --- the cluster ------------------------------------------------------------------------------ */

static const char workload[] =
	"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\","
	"\"annotations\":{\"evenkeel.io/slack\":\"4\"}},\"spec\":{\"replicas\":6,\"selector\":{"
	"\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":"
	"\"web\"}},"
	"\"spec\":{\"terminationGracePeriodSeconds\":0,\"nodeSelector\":{\"disk\":\"ssd\"},"
	"\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{\"requests\":{"
	"\"cpu\":\"500m\",\"memory\":\"1Gi\"}}}]}}}}";

/* It waits for room, and makes none. */
static const char batch_priority[] =
	"{\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"metadata\":{"
	"\"name\":\"batch\"},\"value\":0,\"preemptionPolicy\":\"Never\"}";
static const char batch[] =
	"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"batch\"},"
	"\"spec\":{\"replicas\":64,\"selector\":{\"matchLabels\":{\"app\":\"batch\"}},"
	"\"template\":{\"metadata\":{\"labels\":{\"app\":\"batch\"}},\"spec\":{"
	"\"priorityClassName\":\"batch\",\"terminationGracePeriodSeconds\":0,"
	"\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{\"requests\":{"
	"\"cpu\":\"250m\",\"memory\":\"256Mi\"}}}]}}}}";

static void make_node(int i, const char *cpu, const char *memory)
{
	char *body =
		mem_printf("{\"metadata\":{\"name\":\"node-%d\",\"labels\":{\"disk\":\"ssd\","
			   "\"kubernetes.io/hostname\":\"node-%d\"}},\"status\":{"
			   "\"allocatable\":{\"cpu\":\"%s\",\"memory\":\"%s\",\"pods\":\"110\"},"
			   "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
			   i, i, cpu, memory);

	control_plane_must(bed->plane, "POST", "/api/v1/nodes", body);
	free(body);
}

static void make_resident(int i)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"resident-%d\"},\"spec\":{\"nodeName\":\"node-%d\","
		"\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{\"requests\":{"
		"\"cpu\":\"1500m\",\"memory\":\"4Gi\"}}}]}}",
		i, i);

	control_plane_must(bed->plane, "POST", "/api/v1/namespaces/residents/pods", body);
	free(body);
}

static void make_namespace(const char *name)
{
	char *body = mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name);

	control_plane_must(bed->plane, "POST", "/api/v1/namespaces", body);
	free(body);
}

static cJSON *list(const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json;

	if (control_plane_send(bed->plane, "GET", path, NULL, &answer) != 200)
		fail_msg("GET %s: %s", path, answer.data ? answer.data : "no answer");
	json = cJSON_Parse(answer.data);
	buf_fini(&answer);
	return json;
}

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static int number_at(const cJSON *json, const char *path)
{
	const cJSON *number = json_at(json, path);

	return cJSON_IsNumber(number) ? number->valueint : -1;
}

/* Once something did not come, what builds on it is not waited for. */
static bool await_here(bool (*done)(void *ctx), void *ctx)
{
	bool came = await(done, ctx, bed->lost ? 0 : SECONDS);

	bed->lost |= !came;
	return came;
}

/* --- pods of one kind ------------------------------------------------------------------------- */

struct look {
	const char *path; /* of their list, with a selector */
	int pods, bound, unschedulable; /* at the last look */
	int want_pods, want_bound; /* the rest is unschedulable; -1: any number */
};

#define WEB_PODS     "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb"
#define BATCH_PODS   "/api/v1/namespaces/batch/pods"
#define BALLOON_PODS "/api/v1/pods?labelSelector=evenkeel.io%2Fslack-class"

static bool is_unschedulable(const cJSON *pod)
{
	const cJSON *c;

	cJSON_ArrayForEach (c, json_at(pod, "status.conditions")) {
		if (strcmp(text_at(c, "type"), "PodScheduled") == 0 &&
		    strcmp(text_at(c, "status"), "False") == 0 &&
		    strcmp(text_at(c, "reason"), "Unschedulable") == 0)
			return true;
	}
	return false;
}

/* Every pod is decided about, and as many are bound as wanted. */
static bool are_as_wanted(void *ctx)
{
	struct look *l = ctx;
	cJSON *pods = list(l->path);
	const cJSON *pod;

	l->pods = l->bound = l->unschedulable = 0;
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		l->pods++;
		if (*text_at(pod, "spec.nodeName"))
			l->bound++;
		else
			l->unschedulable += is_unschedulable(pod);
	}
	cJSON_Delete(pods);
	return l->pods == l->want_pods && l->bound + l->unschedulable == l->pods &&
	       (l->want_bound < 0 || l->bound == l->want_bound);
}

/* How many are bound. */
static int await_pods(const char *path, int pods, int bound)
{
	struct look l = {.path = path, .want_pods = pods, .want_bound = bound};

	if (!await_here(are_as_wanted, &l))
		fail_msg("%s: %d of %d pods are bound, %d unschedulable; wanted %d of %d", path,
			 l.bound, l.pods, l.unschedulable, bound, pods);
	return l.bound;
}

static int64_t cpu_of(const cJSON *pod)
{
	const char *text =
		text_at(json_at(pod, "spec.containers")->child, "resources.requests.cpu");
	int64_t milli;

	assert_int_equal(quantity_parse_milli(text, &milli, NULL), 0);
	return milli;
}

/* CPU that is left on the node with the most, in thousandths. */
static int64_t most_left(void)
{
	int64_t left[NODES], most = 0;
	cJSON *pods = list("/api/v1/pods");
	const cJSON *pod;

	for (int i = 0; i < NODES; i++)
		left[i] = NODE_CPU;
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		int node;

		if (sscanf(text_at(pod, "spec.nodeName"), "node-%d", &node) == 1)
			left[node] -= cpu_of(pod);
	}
	cJSON_Delete(pods);
	for (int i = 0; i < NODES; i++)
		most = left[i] > most ? left[i] : most;
	return most;
}

/* --- evenkeel --------------------------------------------------------------------------------- */

/* The command as users run it: its exit status, and what it prints. */
static int run_slack(const char *const *words, struct buf *out)
{
	char *url = mem_printf("http://127.0.0.1:%d", bed->aggregators[0].http_port), *argv[12];
	struct buf err = BUF_INIT;
	size_t n = 0;
	int status;

	argv[n++] = (char *)program_path("evenkeel");
	argv[n++] = (char *)"slack";
	argv[n++] = (char *)"--server";
	argv[n++] = url;
	for (; *words; words++)
		argv[n++] = (char *)*words;
	argv[n] = NULL;
	buf_clear(out);
	status = process_run(argv, out, &err);
	if (status && status != 3 && status != 4)
		fail_msg("evenkeel slack: %d: %s", status, err.data ? err.data : "");
	buf_fini(&err);
	free(url);
	return status;
}

/*
 * What is wanted of the class with that key, held by placeholders and balloons, and by balloons
 * alone.
 */
struct held {
	const char *key; /* NULL: of all together */
	int wanted, placed, balloons;
};

static void add_held(struct held *h, const cJSON *class)
{
	int balloons = number_at(class, "balloons");

	if (h->key && strcmp(h->key, text_at(class, "name")) != 0)
		return;
	h->wanted += number_at(class, "wanted");
	h->placed += number_at(class, "placed");
	h->balloons += balloons < 0 ? 0 : balloons;
}

static cJSON *read_slack(struct held *h)
{
	cJSON *answer = kube_testbed_get(bed, 0, "/v1/slack");
	const cJSON *class;

	h->wanted = h->placed = h->balloons = 0;
	cJSON_ArrayForEach (class, json_at(answer, "items"))
		add_held(h, class);
	return answer;
}

struct expected {
	struct held seen;
	int wanted, placed, balloons; /* -1: any number */
};

static bool is_planned(void *ctx)
{
	struct expected *e = ctx;

	cJSON_Delete(read_slack(&e->seen));
	return (e->wanted < 0 || e->seen.wanted == e->wanted) &&
	       (e->placed < 0 || e->seen.placed == e->placed) && e->seen.balloons == e->balloons;
}

/* Plans are made every second. */
static struct held await_plan(const char *key, int wanted, int placed, int balloons)
{
	struct expected e = {{.key = key}, wanted, placed, balloons};

	if (!await_here(is_planned, &e))
		fail_msg("of %s %d are wanted, %d placed, %d balloons; not %d, %d, %d",
			 key ? key : "all", e.seen.wanted, e.seen.placed, e.seen.balloons, wanted,
			 placed, balloons);
	return e.seen;
}

/* The exit status: 3 where something is unplaced. */
static int print_table(void)
{
	static const char *const words[] = {"--color", "never", NULL};
	struct buf out = BUF_INIT;
	int status = run_slack(words, &out);
	char *rest, *line;

	for (line = strtok_r(out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		print_message("            %s\n", line);
	buf_fini(&out);
	return status;
}

/* --- the objects ------------------------------------------------------------------------------ */

static char *objects_path(void)
{
	return mem_printf("%s/slack.yaml", bed->folder);
}

static void write_objects(const struct buf *yaml)
{
	char *path = objects_path();
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(yaml->data, 1, yaml->len, f), yaml->len);
	assert_int_equal(fclose(f), 0);
	free(path);
}

/* kubectl with a word, the objects' file and up to two options. */
static void kubectl(const char *verb, const char *option, const char *other, struct buf *out)
{
	char *path = objects_path();
	const char *const words[] = {verb, "-f", path, option, option ? other : NULL, NULL};

	buf_clear(out);
	control_plane_kubectl(bed->plane, words, out);
	free(path);
}

static char *path_of(const cJSON *object)
{
	const char *kind = text_at(object, "kind"), *name = text_at(object, "metadata.name");

	if (strcmp(kind, "Namespace") == 0)
		return mem_printf("/api/v1/namespaces/%s", name);
	if (strcmp(kind, "PriorityClass") == 0)
		return mem_printf("/apis/scheduling.k8s.io/v1/priorityclasses/%s", name);
	assert_string_equal(kind, "Deployment");
	return mem_printf("/apis/apps/v1/namespaces/%s/deployments/%s",
			  text_at(object, "metadata.namespace"), name);
}

/* Returns how many pods it is to have. */
static int check_object(const cJSON *given)
{
	char *path = path_of(given);
	cJSON *kept = list(path);
	int replicas = number_at(given, "spec.replicas");

	print_message("            %s %s\n", text_at(given, "kind"),
		      text_at(given, "metadata.name"));
	assert_true(kube_objects_are_kept(given, kept));
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
				    json_at(kept, "metadata.labels"), "app.kubernetes.io/part-of")),
			    "evenkeel");
	cJSON_Delete(kept);
	free(path);
	return replicas < 0 ? 0 : replicas;
}

/* Below everybody else's, and a ReplicaSet's: who is evicted comes again. */
static void check_balloon(const cJSON *pod)
{
	const cJSON *owner = json_at(pod, "metadata.ownerReferences")->child;
	const char *class = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(json_at(pod, "metadata.labels"), LABEL));

	assert_int_equal(number_at(pod, "spec.priority"), -10);
	assert_string_equal(text_at(pod, "spec.preemptionPolicy"), "Never");
	assert_string_equal(text_at(owner, "kind"), "ReplicaSet");
	assert_int_equal(strncmp(text_at(owner, "name"), class, strlen(class)), 0);
	if (strcmp(text_at(pod, "metadata.namespace"), "shop") == 0)
		assert_string_equal(text_at(pod, "spec.nodeSelector.disk"), "ssd");
	else
		assert_string_equal(text_at(pod, "metadata.namespace"), "evenkeel");
}

static void check_priorities(void)
{
	cJSON *balloons = list(BALLOON_PODS), *web = list(WEB_PODS);
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(balloons, "items"))
		check_balloon(pod);
	cJSON_ArrayForEach (pod, json_at(web, "items")) {
		assert_int_equal(number_at(pod, "spec.priority"), 0);
	}
	cJSON_Delete(balloons);
	cJSON_Delete(web);
}

/* Every line says so: applying again what was applied changes nothing. */
static void expect_every_line(struct buf *out, const char *end)
{
	char *rest, *line;

	for (line = strtok_r(out->data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!strstr(line, end))
			fail_msg("kubectl says \"%s\", not %s", line, end);
}

/*
 * As a user: evenkeel slack -o balloons | kubectl apply -f -. Returns how many balloons that makes.
 */
static int apply_objects(void)
{
	static const char *const words[] = {"-o", "balloons", NULL};
	struct buf yaml = BUF_INIT, out = BUF_INIT;
	const cJSON *object;
	cJSON *objects;
	int pods = 0;

	run_slack(words, &yaml);
	write_objects(&yaml);
	objects = kube_objects_parse(&yaml);
	assert_string_equal(text_at(objects->child, "kind"), "Namespace");
	kubectl("apply", "--validate=true", NULL, &out);
	expect_every_line(&out, "created");
	cJSON_ArrayForEach (object, objects)
		pods += check_object(object);
	kubectl("apply", "--dry-run=server", NULL, &out);
	expect_every_line(&out, "unchanged (server dry run)");
	cJSON_Delete(objects);
	buf_fini(&yaml);
	buf_fini(&out);
	return pods;
}

/* --- the story -------------------------------------------------------------------------------- */

/* Of a pod of the burst. */
struct wait {
	char name[80];
	int64_t seen_ns, bound_ns; /* 0: not yet */
};

struct burst {
	struct wait of[WEB + BURST];
	size_t count, bound;
};

static struct wait *wait_of(struct burst *b, const char *name, int64_t now_ns)
{
	for (size_t i = 0; i < b->count; i++)
		if (strcmp(b->of[i].name, name) == 0)
			return &b->of[i];
	assert_true(b->count < WEB + BURST);
	b->of[b->count].seen_ns = now_ns;
	snprintf(b->of[b->count].name, sizeof(b->of[0].name), "%s", name);
	return &b->of[b->count++];
}

static bool all_are_bound(void *ctx)
{
	int64_t now_ns = clock_mono_ns();
	struct burst *b = ctx;
	cJSON *pods = list(WEB_PODS);
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		struct wait *w = wait_of(b, text_at(pod, "metadata.name"), now_ns);

		if (w->bound_ns || !*text_at(pod, "spec.nodeName"))
			continue;
		w->bound_ns = clock_mono_ns();
		b->bound++;
	}
	cJSON_Delete(pods);
	return b->bound == WEB + BURST;
}

static int compare_times(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Those that were there before waited for nobody, and are the first. */
static void print_waits(const char *what, const struct burst *b)
{
	double seconds[BURST];

	for (size_t i = 0; i < BURST; i++)
		seconds[i] =
			(double)(b->of[WEB + i].bound_ns - b->of[WEB + i].seen_ns) / NS_PER_SEC;
	qsort(seconds, BURST, sizeof(seconds[0]), compare_times);
	print_message("          %s: %d pods were bound after %.2f s (median), %.2f s (the last)\n",
		      what, BURST, (seconds[BURST / 2 - 1] + seconds[BURST / 2]) / 2,
		      seconds[BURST - 1]);
}

static void scale_web(int replicas)
{
	char *body = mem_printf("{\"spec\":{\"replicas\":%d}}", replicas);

	control_plane_must(bed->plane, "PATCH",
			   "/apis/apps/v1/namespaces/shop/deployments/web/scale", body);
	free(body);
}

/* How many found room. */
static int fill_up(void)
{
	int bound;

	control_plane_must(bed->plane, "POST", "/apis/apps/v1/namespaces/batch/deployments", batch);
	bound = await_pods(BATCH_PODS, BATCH, -1);
	print_message("          batch: %d of %d pods found room; the most that is left is %lldm\n",
		      bound, BATCH, (long long)most_left());
	assert_true(most_left() < BATCH_CPU);
	return bound;
}

static void begin_burst(struct burst *b)
{
	memset(b, 0, sizeof(*b));
	all_are_bound(b);
	assert_int_equal(b->bound, WEB);
	scale_web(WEB + BURST);
}

static void end_batch(void)
{
	control_plane_must(bed->plane, "DELETE",
			   "/apis/apps/v1/namespaces/batch/deployments/batch?propagationPolicy="
			   "Background",
			   NULL);
	await_pods(BATCH_PODS, 0, 0);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_objects_are_accepted_and_recognised(void **state)
{
	struct held before = {.key = NULL}, web;
	int balloons, requested;
	cJSON *answer;

	(void)state;
	web = await_plan(WEB_KEY, 4, 4, 0);
	before = await_plan(NULL, -1, -1, 0);
	assert_true(before.wanted > web.wanted); /* some units, too */
	answer = read_slack(&before);
	requested = number_at(answer, "target.requested.cpuMillicores");
	cJSON_Delete(answer);
	print_table();

	balloons = apply_objects();
	assert_int_equal(balloons, before.wanted);
	await_pods(BALLOON_PODS, balloons, balloons);
	check_priorities();
	await_plan(WEB_KEY, 4, 4, 4);
	await_plan(NULL, before.wanted, before.wanted, balloons);
	answer = read_slack(&before);
	assert_int_equal(number_at(answer, "target.requested.cpuMillicores"), requested);
	cJSON_Delete(answer);
	print_table();
}

/* In place of their number, once they count: how large a unit is. */
static bool are_counted(void *ctx)
{
	struct held all = {.key = NULL};
	cJSON *answer = read_slack(&all);
	bool as_many = number_at(answer, "target.nodes") == *(int *)ctx;

	if (as_many)
		*(int *)ctx = number_at(answer, "target.unit.cpuMillicores");
	cJSON_Delete(answer);
	return as_many;
}

static int await_nodes(int count)
{
	assert_true(await_here(are_counted, &count));
	return count;
}

/* As a drain does: the average node is another one, and no node is missing for it. */
static void test_balloons_hold_their_room_when_the_average_node_changes(void **state)
{
	struct held before = {.key = NULL}, after = {.key = NULL};
	int unit = await_nodes(NODES);

	(void)state;
	cJSON_Delete(read_slack(&before));
	make_node(NODES, "16", "64Gi");
	assert_int_equal(await_nodes(NODES + 1), unit);
	cJSON_Delete(read_slack(&after));
	assert_int_equal(after.wanted, before.wanted);
	assert_int_equal(after.balloons, before.balloons);
	control_plane_must(bed->plane, "DELETE", "/api/v1/nodes/node-6", NULL);
}

static int batch_beside_balloons;

static void test_burst_gets_the_room_of_balloons(void **state)
{
	struct held before = {.key = NULL}, after;
	struct burst b;
	int left;

	(void)state;
	cJSON_Delete(read_slack(&before));
	batch_beside_balloons = fill_up();
	await_pods(BALLOON_PODS, before.balloons, before.balloons);
	begin_burst(&b);
	if (!await_here(all_are_bound, &b))
		fail_msg("%zu of %d pods are bound", b.bound, WEB + BURST);
	print_waits("with balloons", &b);
	/* Those that made way wait for a node, and evenkeel tells which. */
	left = await_pods(BALLOON_PODS, before.balloons, -1);
	assert_true(left < before.balloons);
	assert_true(await_pods(BATCH_PODS, BATCH, -1) >= batch_beside_balloons);
	after = await_plan(NULL, -1, -1, left);
	assert_true(after.placed < after.wanted);
	assert_int_equal(print_table(), 3);
	end_batch();
}

static void test_without_slack_the_burst_waits(void **state)
{
	struct buf out = BUF_INIT;
	struct burst b;
	int bound;

	(void)state;
	kubectl("delete", "--wait=true", NULL, &out);
	buf_fini(&out);
	await_pods(BALLOON_PODS, 0, 0);
	scale_web(WEB);
	await_pods(WEB_PODS, WEB, WEB);
	bound = fill_up();
	assert_true(bound > batch_beside_balloons);
	begin_burst(&b);
	await_pods(WEB_PODS, WEB + BURST, WEB);
	all_are_bound(&b);
	assert_int_equal(b.count, WEB + BURST);
	assert_int_equal(b.bound, WEB);
	print_message("          without balloons: %d of %d pods are Unschedulable\n", BURST,
		      BURST);
	end_batch();
	if (!await_here(all_are_bound, &b))
		fail_msg("%zu of %d pods are bound", b.bound, WEB + BURST);
	print_waits("without balloons, once the batch had ended", &b);
}

/* --- buffers, for which the server has no kind ------------------------------------------------ */

static void check_buffer(const cJSON *object)
{
	static const char *const known[] = {"provisioningStrategy", "podTemplateRef",
					    "scalableRef",	    "replicas",
					    "percentage",	    "limits"};
	const cJSON *spec = json_at(object, "spec"), *m;

	assert_string_equal(text_at(object, "apiVersion"), "autoscaling.x-k8s.io/v1beta1");
	assert_true(*text_at(object, "metadata.name") && *text_at(object, "metadata.namespace"));
	assert_true(number_at(spec, "replicas") > 0);
	assert_true(!json_at(spec, "podTemplateRef") != !json_at(spec, "scalableRef"));
	cJSON_ArrayForEach (m, spec) {
		size_t i = 0;

		while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i], m->string) != 0)
			i++;
		assert_true(i < sizeof(known) / sizeof(known[0]));
	}
	if (json_at(spec, "scalableRef")) {
		assert_string_equal(text_at(spec, "scalableRef.apiGroup"), "apps");
		assert_string_equal(text_at(spec, "scalableRef.kind"), "Deployment");
		assert_string_equal(text_at(spec, "scalableRef.name"), "web");
	}
}

/* Those that a buffer refers to are objects of every cluster. */
static void check_template(const cJSON *object)
{
	char *path = mem_printf("/api/v1/namespaces/%s/podtemplates?dryRun=All",
				text_at(object, "metadata.namespace"));
	char *body = cJSON_PrintUnformatted(object);
	struct buf answer = BUF_INIT;
	cJSON *kept;

	assert_int_equal(control_plane_send(bed->plane, "POST", path, body, &answer), 201);
	kept = cJSON_Parse(answer.data);
	assert_true(kube_objects_are_kept(object, kept));
	cJSON_Delete(kept);
	buf_fini(&answer);
	cJSON_free(body);
	free(path);
}

static void test_buffers_are_what_autoscalers_read(void **state)
{
	static const char *const words[] = {"-o", "capacitybuffers", NULL};
	struct buf yaml = BUF_INIT;
	const cJSON *object;
	cJSON *objects;
	int buffers = 0;

	(void)state;
	control_plane_send(bed->plane, "POST", "/api/v1/namespaces",
			   "{\"metadata\":{\"name\":\"evenkeel\"}}", NULL);
	run_slack(words, &yaml);
	objects = kube_objects_parse(&yaml);
	cJSON_ArrayForEach (object, objects) {
		const char *kind = text_at(object, "kind");

		if (strcmp(kind, "CapacityBuffer") == 0) {
			check_buffer(object);
			buffers++;
		} else if (strcmp(kind, "PodTemplate") == 0) {
			check_template(object);
		} else {
			assert_string_equal(kind, "Namespace");
		}
	}
	assert_int_equal(buffers, 2);
	cJSON_Delete(objects);
	buf_fini(&yaml);
}

/* The aggregator starts last: what it wants of slack falls late. */
static int fill_cluster(void **state)
{
	static const char *const options[] = {"--plan-interval", "1s", "--extra-capacity-min-rate",
					      "0.3", NULL};

	(void)state;
	for (int i = 0; i < NODES; i++)
		make_node(i, "4", "16Gi");
	make_namespace("residents");
	make_namespace("shop");
	make_namespace("batch");
	for (int i = 0; i < NODES; i++)
		make_resident(i);
	control_plane_must(bed->plane, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
			   batch_priority);
	control_plane_must(bed->plane, "POST", "/apis/apps/v1/namespaces/shop/deployments",
			   workload);
	await_pods(WEB_PODS, WEB, WEB);
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects_are_accepted_and_recognised),
		cmocka_unit_test(test_buffers_are_what_autoscalers_read),
		cmocka_unit_test(test_balloons_hold_their_room_when_the_average_node_changes),
		cmocka_unit_test(test_burst_gets_the_room_of_balloons),
		cmocka_unit_test(test_without_slack_the_burst_waits),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, fill_cluster, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
