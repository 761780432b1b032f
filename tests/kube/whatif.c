/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is what evenkeel whatif says of a change what comes of it? A random cluster on a real control
 * plane is changed in one way after the other. Before each change evenkeel whatif tells the drain
 * plan that it would lead to; then the change is made, by the API and the controllers, and the plan
 * of the cluster that there is then must have the same verdicts, reasons and wave.
 *
 * There is no scheduler meanwhile: where it puts a pod that comes is its choice, and whatif places
 * none. EVENKEEL_SEED is the seed.
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

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/kube_drain_commands.h"
#include "tests/kube_drain_world.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { SEED = 4, CHANGES = 20, SECONDS = 120 };

#define text_at kube_drain_text

static struct kube_testbed *bed;
static struct kube_drain_world world;
static struct kube_drain_look look;
static uint64_t seed;

/* Rules that let plans follow at once, and those of the aggregator. */
#define RULES                                                                                      \
	"--scale-down-unneeded-time", "0s", "--scale-down-utilization-threshold", "0.95",          \
		"--drain-owner-share", "1", "--extra-capacity-min-rate", "0"

/* --- plans ------------------------------------------------------------------------------------ */

/* What must be equal of two plans: "n1 needed HighUtilization\n.. wave n2\n". */
static char *outline(const cJSON *plan)
{
	struct buf out = BUF_INIT;
	const cJSON *node, *reason;

	cJSON_ArrayForEach (node, json_at(plan, "items")) {
		buf_printf(&out, "%s %s", text_at(node, "name"), text_at(node, "verdict"));
		cJSON_ArrayForEach (reason, json_at(node, "reasons")) {
			buf_printf(&out, " %s", text_at(reason, "code"));
		}
		buf_add_char(&out, '\n');
	}
	cJSON_ArrayForEach (node, json_at(plan, "wave.nodes")) {
		buf_printf(&out, "wave %s\n", text_at(node, "name"));
	}
	return buf_take(&out, NULL);
}

static char *foresee(const char *option, const char *change)
{
	const char *const words[] = {"whatif", option, change,	"-o",
				     "json",   "--",   "drain", "--assume-unneeded-for",
				     "1s",     RULES,  NULL};
	struct buf said = BUF_INIT;
	char *url = mem_printf("http://127.0.0.1:%d", bed->aggregators[0].http_port), *of;
	char *argv[24] = {(char *)program_path("evenkeel"), (char *)"--server", url};
	struct buf err = BUF_INIT;
	size_t n = 3;
	cJSON *doc;

	for (size_t i = 0; words[i]; i++)
		argv[n++] = (char *)words[i];
	if (process_run(argv, &said, &err) & ~4) /* 4: nothing is measured */
		fail_msg("whatif %s %s: %s", option, change, err.data);
	doc = cJSON_Parse(said.data);
	of = outline(json_at(json_at(doc, "after")->child, "answer"));
	cJSON_Delete(doc);
	buf_fini(&said);
	buf_fini(&err);
	free(url);
	return of;
}

/* --- changes ---------------------------------------------------------------------------------- */

static void must(const char *method, char *path, char *body)
{
	control_plane_must(bed->plane, method, path, body);
	free(path);
	free(body);
}

static size_t draw(size_t n)
{
	return place_world_draw(&world.dice, n);
}

/* A node of the API, by chance, as the server has it; the caller deletes it. */
static cJSON *any_node(void)
{
	cJSON *list = kube_drain_world_get(&world, "/api/v1/nodes"), *items, *node;

	items = cJSON_GetObjectItem(list, "items");
	node = cJSON_DetachItemFromArray(items, (int)draw((size_t)cJSON_GetArraySize(items)));
	cJSON_Delete(list);
	return node;
}

struct change {
	const char *option;
	char *text; /* of the option; owned */
	cJSON *node; /* owned; or NULL */
	struct kube_drain_workload *workload;
	size_t replicas;
	size_t pods; /* that there are afterwards */
};

static size_t daemons_on(const char *node)
{
	const cJSON *pod;
	size_t count = 0;

	cJSON_ArrayForEach (pod, json_at(look.pods, "items")) {
		count += strcmp(text_at(pod, "spec.nodeName"), node) == 0 &&
			 !*kube_drain_pod_app(pod);
	}
	return count;
}

static void plan_cordon(struct change *c)
{
	c->node = any_node();
	c->option = "--cordon";
	c->text = mem_strdup(text_at(c->node, "metadata.name"));
}

static void cordon(const struct change *c)
{
	must("PATCH", mem_printf("/api/v1/nodes/%s", c->text),
	     mem_strdup("{\"spec\":{\"unschedulable\":true}}"));
}

/* In place of the taints it has. */
static void plan_taint(struct change *c)
{
	const char *name;

	do {
		cJSON_Delete(c->node);
		c->node = any_node();
	} while (json_at(c->node, "spec.taints"));
	name = text_at(c->node, "metadata.name");
	c->option = "--taint";
	c->text = mem_printf("%s:team=b:NoSchedule", name);
}

static void taint(const struct change *c)
{
	must("PATCH", mem_printf("/api/v1/nodes/%s", text_at(c->node, "metadata.name")),
	     mem_strdup("{\"spec\":{\"taints\":[{\"key\":\"team\",\"value\":\"b\",\"effect\":"
			"\"NoSchedule\"}]}}"));
}

static void plan_remove(struct change *c)
{
	plan_cordon(c);
	c->option = "--remove";
	c->pods -= daemons_on(c->text);
}

static void remove_node(const struct change *c)
{
	must("DELETE", mem_printf("/api/v1/nodes/%s", c->text), NULL);
	must("DELETE",
	     mem_printf("/api/v1/namespaces/%s/pods?gracePeriodSeconds=0&fieldSelector="
			"spec.nodeName%%3D%s",
			world.namespace, c->text),
	     NULL);
}

static void plan_add(struct change *c)
{
	plan_cordon(c);
	c->option = "--add";
	c->pods += daemons_on(c->text);
}

/* By the name that whatif gives it. */
static void add_node(const struct change *c)
{
	static unsigned int made;
	cJSON *node = cJSON_Duplicate(c->node, true), *spec = cJSON_GetObjectItem(node, "spec"),
	      *metadata = cJSON_GetObjectItem(node, "metadata"),
	      *labels = cJSON_GetObjectItem(metadata, "labels");
	char *name = mem_printf("whatif-%u", ++made);

	cJSON_DeleteItemFromObject(metadata, "uid");
	cJSON_DeleteItemFromObject(metadata, "resourceVersion");
	cJSON_DeleteItemFromObject(metadata, "annotations");
	cJSON_DeleteItemFromObject(spec, "unschedulable");
	cJSON_ReplaceItemInObject(metadata, "name", cJSON_CreateString(name));
	cJSON_ReplaceItemInObject(labels, "kubernetes.io/hostname", cJSON_CreateString(name));
	must("POST", mem_strdup("/api/v1/nodes"), cJSON_PrintUnformatted(node));
	cJSON_Delete(node);
	free(name);
}

static const char *const resources[] = {"deployments", "replicasets", "statefulsets"};

static void plan_scale(struct change *c, size_t replicas)
{
	c->option = "--scale";
	c->text = mem_printf("%s/%s=%zu", world.namespace, c->workload->name, replicas);
	c->replicas = replicas;
	c->pods += replicas - c->workload->replicas;
}

static void plan_more(struct change *c)
{
	do
		c->workload = &world.workloads[draw(world.workload_count)];
	while (!c->workload->replicas);
	plan_scale(c, c->workload->replicas + 2);
}

/* A StatefulSet ends its last pods; which pods others end is their choice, unless it is all. */
static void plan_fewer(struct change *c)
{
	plan_more(c);
	free(c->text);
	c->pods -= 2;
	plan_scale(c, c->workload->kind == KUBE_DRAIN_STATEFUL_SET ? c->workload->replicas - 1 : 0);
}

static void scale(const struct change *c)
{
	must("PATCH",
	     mem_printf("/apis/apps/v1/namespaces/%s/%s/%s", world.namespace,
			resources[c->workload->kind], c->workload->name),
	     mem_printf("{\"spec\":{\"replicas\":%zu}}", c->replicas));
	c->workload->replicas = c->replicas;
}

/* A budget of a workload that may have one. */
static void plan_apply(struct change *c)
{
	static const char *const rules[] = {"\"minAvailable\":\"50%\"", "\"maxUnavailable\":0",
					    "\"maxUnavailable\":1", "\"minAvailable\":\"40%\""};
	static size_t made;
	FILE *f;

	c->option = "--apply";
	c->text = mem_printf("%s/budget-%zu.json", bed->folder, made);
	f = fopen(c->text, "we");
	assert_non_null(f);
	fprintf(f,
		"{\"apiVersion\":\"%s\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{"
		"\"name\":\"more-%zu\",\"namespace\":\"%s\"},\"spec\":{%s,\"selector\":{"
		"\"matchLabels\":{\"app\":\"%s\"}}}}",
		bed->plane->version->budgets, made, world.namespace, rules[made % 4],
		world.workloads[draw(world.workload_count)].name);
	assert_int_equal(fclose(f), 0);
	made++;
}

static void apply(const struct change *c)
{
	const char *const words[] = {"apply", "-f", c->text, NULL};
	struct buf said = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &said);
	buf_fini(&said);
}

static const struct {
	void (*plan)(struct change *c); /* option, text and pods, before anything is done */
	void (*make)(const struct change *c);
} kinds[] = {
	{plan_cordon, cordon},	    {plan_apply, apply}, {plan_more, scale},
	{plan_remove, remove_node}, {plan_fewer, scale}, {plan_taint, taint},
	{plan_add, add_node},
};

/* --- what comes of it ------------------------------------------------------------------------- */

/* As the scheduler would: a daemon's pod is for one node. */
static void bind_daemons(void)
{
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(look.pods, "items")) {
		const cJSON *terms = json_at(pod, "spec.affinity.nodeAffinity."
						  "requiredDuringSchedulingIgnoredDuringExecution."
						  "nodeSelectorTerms"),
			    *fields = json_at(terms ? terms->child : NULL, "matchFields");

		if (*text_at(pod, "spec.nodeName") || !fields || *kube_drain_pod_app(pod))
			continue;
		must("POST",
		     mem_printf("/api/v1/namespaces/%s/pods/%s/binding", world.namespace,
				text_at(pod, "metadata.name")),
		     mem_printf("{\"metadata\":{\"name\":\"%s\"},\"target\":{\"kind\":\"Node\","
				"\"name\":\"%s\"}}",
				text_at(pod, "metadata.name"),
				json_at(fields->child, "values")->child->valuestring));
	}
}

static bool are_there(void *ctx)
{
	const struct change *c = ctx;

	kube_drain_look_fini(&look);
	if (!kube_drain_world_look(&world, &look))
		return false;
	bind_daemons();
	return !look.leaving && look.bound + look.unbound + look.daemons == c->pods;
}

/* Lines that the other has not. */
static void print_more(const char *what, const char *text, const char *other)
{
	char *copy = mem_strdup(text), *save;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *whole = mem_printf("%s\n", line);

		if (!strstr(other, whole))
			print_message("        %s %s", what, whole);
		free(whole);
	}
	free(copy);
}

static bool try_change(size_t i)
{
	struct change c = {.pods = look.bound + look.unbound + look.daemons};
	char *foreseen, *came;
	bool equal;

	kinds[i % (sizeof(kinds) / sizeof(kinds[0]))].plan(&c);
	foreseen = foresee(c.option, c.text);
	kinds[i % (sizeof(kinds) / sizeof(kinds[0]))].make(&c);
	if (!await(are_there, &c, SECONDS))
		fail_msg("%s %s: %zu pods are bound, %zu are not, %zu are daemons' and %zu leave, "
			 "in place of %zu",
			 c.option, c.text, look.bound, look.unbound, look.daemons, look.leaving,
			 c.pods);
	cJSON_Delete(kube_drain_await_plan(&world, &look));
	came = foresee("--set", "drain-owner-share=1"); /* nothing more */
	equal = strcmp(foreseen, came) == 0;
	print_message("    %s %s: %s\n", c.option, c.text, equal ? "as foreseen" : "otherwise");
	print_more("foreseen", foreseen, came);
	print_more("came    ", came, foreseen);
	free(came);
	free(foreseen);
	free(c.text);
	cJSON_Delete(c.node);
	return equal;
}

static void test_changes_do_what_was_foreseen(void **state)
{
	const char *const options[] = {"--plan-interval", "1s", RULES, NULL};
	size_t equal = 0;

	(void)state;
	kube_drain_world_make(&world, bed, seed);
	control_plane_stop_scheduler(bed->plane);
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
	assert_true(kube_drain_world_look(&world, &look));
	cJSON_Delete(kube_drain_await_plan(&world, &look));
	for (size_t i = 0; i < CHANGES; i++)
		equal += try_change(i);
	assert_int_equal(equal, CHANGES);
	kube_drain_look_fini(&look);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes_do_what_was_foreseen),
	};
	const char *text = getenv("EVENKEEL_SEED");
	int failed;

	seed = text ? strtoull(text, NULL, 10) : SEED;
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	control_plane_start_scheduler(bed->plane, NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
