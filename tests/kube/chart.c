/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the chart renders: by default the objects of install.yaml, with an overlay those of that
 * overlay as kubectl renders it, with values what these change and nothing else; and how wrong
 * values are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/helm.h"
#include "tests/kube_version.h"
#include "tests/manifests.h"
#include "tests/process.h"
#include "tests/stack.h"

#define KUBERNETES  "packaging/kubernetes/"
#define RENDER(...) helm_render((const char *const[]){__VA_ARGS__, NULL})

static char *kubectl;

static void test_version_is_ours(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *chart;

	(void)state;
	assert_int_equal(
		helm_run((const char *const[]){"show", "chart", HELM_CHART, NULL}, &out, &err), 0);
	chart = manifests_parse("Chart.yaml", out.data);
	assert_string_equal(manifests_text(chart->child, "version"), EVENKEEL_VERSION);
	assert_string_equal(manifests_text(chart->child, "appVersion"), EVENKEEL_VERSION);
	cJSON_Delete(chart);
	buf_fini(&out);
	buf_fini(&err);
}

static void test_lint_finds_nothing(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	if (helm_run((const char *const[]){"lint", "--strict", HELM_CHART, NULL}, &out, &err))
		fail_msg("%s%s", out.data ? out.data : "", err.data ? err.data : "");
	buf_fini(&out);
	buf_fini(&err);
}

static void test_default_is_base(void **state)
{
	cJSON *chart = helm_render((const char *const[]){NULL}),
	      *base = manifests_render(kubectl, KUBERNETES "base");

	(void)state;
	assert_true(cJSON_GetArraySize(base) > 15);
	helm_expect_same("chart", chart, "base", base);
	cJSON_Delete(chart);
	cJSON_Delete(base);
}

/* The schema knows no other overlays: one that the chart has not is refused here. */
static void test_overlays_are_those_of_kustomize(void **state)
{
	glob_t found;

	(void)state;
	assert_int_equal(glob(KUBERNETES "overlays/*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *folder = found.gl_pathv[i], *name = strrchr(folder, '/') + 1;
		char *set = mem_printf("overlays.%s=true", name);
		cJSON *chart, *overlay;

		/* Charts are for versions that base is for. */
		if (strcmp(name, "legacy") != 0) {
			chart = RENDER(set);
			overlay = manifests_render(kubectl, folder);
			print_message("          %s: %d objects\n", name,
				      cJSON_GetArraySize(chart));
			helm_expect_same("chart", chart, folder, overlay);
			cJSON_Delete(chart);
			cJSON_Delete(overlay);
		}
		free(set);
	}
	globfree(&found);
}

/* --- values ----------------------------------------------------------------------------------- */

static const cJSON *container_of(const cJSON *objects, const char *kind, const char *name)
{
	return cJSON_GetArrayItem(
		json_at(manifests_find(objects, kind, name), "spec.template.spec.containers"), 0);
}

/* The member is that JSON, written without spaces. */
static void expect_member(const cJSON *object, const char *path, const char *text)
{
	char *is = cJSON_PrintUnformatted(json_at(object, path));

	if (!is || strcmp(is, text) != 0)
		fail_msg("%s is %s, not %s", path, is ? is : "absent", text);
	free(is);
}

static void test_images(void **state)
{
	cJSON *objects = RENDER("image.registry=registry.example:5000/ek/", "image.tag=1.2",
				"image.pullPolicy=Always", "image.pullSecrets[0].name=pull",
				"aggregator.image=other.example/a@sha256:00");
	const cJSON *agent = container_of(objects, "DaemonSet", "evenkeel-agent");
	const cJSON *aggregator = container_of(objects, "Deployment", "evenkeel-aggregator");

	(void)state;
	expect_member(agent, "image", "\"registry.example:5000/ek/evenkeel-agent:1.2\"");
	expect_member(agent, "imagePullPolicy", "\"Always\"");
	expect_member(aggregator, "image", "\"other.example/a@sha256:00\"");
	expect_member(manifests_find(objects, "DaemonSet", "evenkeel-agent"),
		      "spec.template.spec.imagePullSecrets", "[{\"name\":\"pull\"}]");
	cJSON_Delete(objects);
	objects = RENDER("image.registry=registry.example");
	expect_member(container_of(objects, "DaemonSet", "evenkeel-agent"), "image",
		      "\"registry.example/evenkeel-agent:" EVENKEEL_VERSION "\"");
	cJSON_Delete(objects);
}

static void test_workloads(void **state)
{
	cJSON *objects = RENDER("agent.verbose=true", "agent.extraArgs[0]=--cpu-budget=1",
				"agent.resources.limits.memory=128Mi", "agent.nodeSelector.zone=a",
				"agent.tolerations[0].key=a"),
	      *base = helm_render((const char *const[]){NULL});
	const cJSON *agent = manifests_find(objects, "DaemonSet", "evenkeel-agent");
	const cJSON *container = container_of(objects, "DaemonSet", "evenkeel-agent");
	const cJSON *args = json_at(container, "args");
	const cJSON *before = container_of(base, "DaemonSet", "evenkeel-agent");
	int words = cJSON_GetArraySize(json_at(before, "args"));

	(void)state;
	assert_int_equal(cJSON_GetArraySize(args), words + 2);
	assert_string_equal(cJSON_GetArrayItem(args, words)->valuestring, "--verbose");
	assert_string_equal(cJSON_GetArrayItem(args, words + 1)->valuestring, "--cpu-budget=1");
	expect_member(container, "resources.limits", "{\"memory\":\"128Mi\"}");
	assert_true(cJSON_Compare(json_at(container, "resources.requests"),
				  json_at(before, "resources.requests"), true));
	assert_string_equal(manifests_text(agent, "spec.template.spec.nodeSelector.zone"), "a");
	expect_member(agent, "spec.template.spec.tolerations", "[{\"key\":\"a\"}]");
	/* The other workload is as it was. */
	assert_true(cJSON_Compare(manifests_find(objects, "Deployment", "evenkeel-aggregator"),
				  manifests_find(base, "Deployment", "evenkeel-aggregator"), true));
	cJSON_Delete(objects);
	cJSON_Delete(base);
}

static void test_claim_and_monitoring(void **state)
{
	cJSON *objects = RENDER("overlays.claim=true", "overlays.prometheus=true",
				"overlays.trimaran=true", "claim.size=4Gi",
				"claim.storageClassName=fast", "prometheus.labels.release=stack");
	const cJSON *claim = manifests_find(objects, "PersistentVolumeClaim", "evenkeel-state");

	(void)state;
	expect_member(claim, "spec.resources.requests", "{\"storage\":\"4Gi\"}");
	expect_member(claim, "spec.storageClassName", "\"fast\"");
	assert_string_equal(manifests_text(manifests_find(objects, "PrometheusRule", "evenkeel"),
					   "metadata.labels.release"),
			    "stack");
	assert_string_equal(manifests_text(manifests_find(objects, "PodMonitor",
							  "evenkeel-aggregator"),
					   "metadata.labels.release"),
			    "stack");
	cJSON_Delete(objects);
}

static void test_namespace_may_exist(void **state)
{
	cJSON *objects = RENDER("namespace.create=false"),
	      *base = helm_render((const char *const[]){NULL});

	(void)state;
	assert_null(manifests_find(objects, "Namespace", "evenkeel"));
	assert_int_equal(cJSON_GetArraySize(objects), cJSON_GetArraySize(base) - 1);
	cJSON_Delete(objects);
	cJSON_Delete(base);
}

/* --- what is refused -------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
	static const struct {
		const char *option, *value;
		const char *names[2]; /* what the message has */
	} cases[] = {
		{"--set", "agent.tolerationz=1", {"/agent", "'tolerationz' not allowed"}},
		{"--set", "overlays.legacy=true", {"/overlays", "'legacy' not allowed"}},
		{"--set", "overlays.claim=yes", {"/overlays/claim", "want boolean"}},
		{"--set", "image.pullPolicy=Sometimes", {"/image/pullPolicy", "'IfNotPresent'"}},
		{"--set", "agent.resources.limits.memory=1 GB", {"/limits/memory", "pattern"}},
		{"--set", "agent.extraArgs=--verbose", {"/agent/extraArgs", "want array"}},
		{"--set", "claim.size=much", {"/claim/size", "pattern"}},
		{"--namespace", "evenkeel", {"namespace.create=false", "without -n evenkeel"}},
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *words[] = {"template",	"evenkeel",	HELM_CHART,
				       cases[i].option, cases[i].value, NULL};
		int status = helm_run(words, &out, &err);

		print_message("          %s: %s\n", cases[i].value, err.data);
		assert_int_not_equal(status, 0);
		for (size_t n = 0; n < 2; n++)
			assert_non_null(strstr(err.data, cases[i].names[n]));
	}
	buf_fini(&out);
	buf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_is_ours),
		cmocka_unit_test(test_lint_finds_nothing),
		cmocka_unit_test(test_default_is_base),
		cmocka_unit_test(test_overlays_are_those_of_kustomize),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_workloads),
		cmocka_unit_test(test_claim_and_monitoring),
		cmocka_unit_test(test_namespace_may_exist),
		cmocka_unit_test(test_refusals),
	};
	char *programs;
	int failed;

	if (!helm_is_here())
		return 0;
	programs = kube_version_programs();
	kubectl = mem_printf("%s/kubectl", programs);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(kubectl);
	free(programs);
	return failed != 0;
}
