/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a pod fit where the kube-scheduler says it does? In a random cluster the nodes that POST
 * /v1/fit accepts for each of two hundred pods must be exactly those that the filters of a real
 * scheduler accept.
 *
 * The scheduler tells that by itself: it offers the nodes that are left after its filters to an
 * extender, and that one is ours, and refuses all of them (tests/kube_witness.h). So every pod
 * stays pending, which counts for nobody, and the world is the same for each question. A pod for
 * which no node is left is not offered at all; that it was judged is said by its condition
 * PodScheduled.
 *
 * EVENKEEL_SEED chooses another world. Fields that the scheduler of the tests is too old for, and
 * rules in which it differs from those of today, are not in it: tests/kube_fit_world.c.
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

#include "aggregator/api/request_body.h"
#include "aggregator/policy/place/place.h"
#include "shared/mem.h"
#include "tests/kube_fit_world.h"
#include "tests/kube_testbed.h"
#include "tests/kube_witness.h"
#include "tests/process.h"
#include "tests/stack.h"

#define SEED 1
/* Two hundred pods, one after the other, on a machine that may be busy with other tests. */
#define JUDGE_SECONDS 120
/* So many nodes are printed in full; pods always are. */
#define SHOWN 20

static struct kube_testbed *bed;
static struct kube_witness *witness;
static struct kube_fit_world world;
static cJSON *pods; /* the list of those that are asked about, as the API tells it */

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static const cJSON *judgement(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
		if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
			return condition;
	}
	return NULL;
}

/* --- the scheduler's answers ----------------------------------------------------------------- */

static bool all_are_judged(void *ctx)
{
	struct buf answer = BUF_INIT;
	const cJSON *pod;
	int judged = 0;

	(void)ctx;
	cJSON_Delete(pods);
	pods = NULL;
	if (control_plane_send(bed->plane, "GET",
			       "/api/v1/namespaces/" KUBE_FIT_NAMESPACE
			       "/pods?fieldSelector=spec.nodeName%3D",
			       NULL, &answer) == 200)
		pods = cJSON_Parse(answer.data);
	buf_fini(&answer);
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		judged += judgement(pod) != NULL;
	}
	return judged == KUBE_FIT_ASKED;
}

static void test_scheduler_is_asked(void **state)
{
	char *config = kube_witness_config(witness);
	const char *seed = getenv("EVENKEEL_SEED");
	uint64_t number = seed ? strtoull(seed, NULL, 0) : SEED;

	(void)state;
	print_message("          seed %llu\n", (unsigned long long)number);
	kube_fit_world_make(&world, bed->plane, number);
	control_plane_start_scheduler(bed->plane, config);
	control_plane_await_scheduler(bed->plane, world.nodes, world.pods);
	kube_fit_world_ask(&world, bed->plane);
	if (!await(all_are_judged, NULL, JUDGE_SECONDS))
		fail_msg("the scheduler has not judged all pods");
	control_plane_stop_scheduler(bed->plane);
	free(config);
}

/* --- ours ------------------------------------------------------------------------------------ */

static void test_aggregator_knows(void **state)
{
	static const char *const resources[] = {"nodes",
						"pods",
						"namespaces",
						"persistentvolumes",
						"persistentvolumeclaims",
						"storageclasses",
						"csinodes"};

	(void)state;
	kube_testbed_start_aggregator(bed, 0, bed->plane->admin);
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		cJSON_Delete(kube_testbed_expect_state(bed, 0, resources[i], "synced"));
}

/* The items of a FitList; the caller deletes it. */
static cJSON *ask(const cJSON *pod)
{
	cJSON *request = cJSON_CreateObject(), *answer;
	char *text;

	cJSON_AddItemToObject(request, "pod", cJSON_Duplicate(pod, true));
	text = cJSON_PrintUnformatted(request);
	if (kube_testbed_post(bed, 0, "/v1/fit", text, &answer) != 200 || !json_at(answer, "items"))
		fail_msg("/v1/fit does not answer: %s",
			 answer ? cJSON_PrintUnformatted(answer) : "");
	assert_string_equal(text_at(answer, "useCap"), "off: no usage data");
	cJSON_free(text);
	cJSON_Delete(request);
	return answer;
}

/*
 * Every member of a pod's spec that the API server knows is known to us as well: none is a warning,
 * but for the group.
 */
static void test_members_are_known(void **state)
{
	cJSON *pod = cJSON_CreateObject(), *spec = cJSON_AddObjectToObject(pod, "spec"), *swagger;
	struct buf answer = BUF_INIT, warnings = BUF_INIT;
	const cJSON *definition, *member;
	struct jsonw w;

	(void)state;
	assert_int_equal(control_plane_send(bed->plane, "GET", "/openapi/v2", NULL, &answer), 200);
	swagger = cJSON_Parse(answer.data);
	definition = cJSON_GetObjectItem(cJSON_GetObjectItem(swagger, "definitions"),
					 "io.k8s.api.core.v1.PodSpec");
	cJSON_ArrayForEach (member, json_at(definition, "properties")) {
		if (strcmp(member->string, "schedulingGroup") != 0 &&
		    strcmp(member->string, "workloadRef") != 0)
			cJSON_AddBoolToObject(spec, member->string, true);
	}
	assert_true(cJSON_GetArraySize(spec) > 30);
	jsonw_init(&w, &warnings);
	jsonw_object_open(&w);
	pod_manifest_write_warnings(pod, &w);
	jsonw_object_close(&w);
	assert_string_equal(warnings.data, "{}");
	buf_fini(&warnings);
	buf_fini(&answer);
	cJSON_Delete(swagger);
	cJSON_Delete(pod);
}

/* --- both ------------------------------------------------------------------------------------ */

struct tally {
	size_t fits, refused, differences;
	size_t by_filter[PLACE_FILTERS];
};

static bool has_string(const cJSON *list, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		if (strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

static void show(const char *what, const cJSON *json)
{
	char *text = json ? cJSON_PrintUnformatted(json) : NULL;

	print_message("            %s %s\n", what, text ? text : "none");
	cJSON_free(text);
}

static void show_object(const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (control_plane_send(bed->plane, "GET", path, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	cJSON_DeleteItemFromObject(cJSON_GetObjectItem(json, "metadata"), "managedFields");
	show(path, json_at(json, "metadata"));
	show("     ", json_at(json, "spec"));
	cJSON_Delete(json);
	buf_fini(&answer);
}

static void show_claims(const cJSON *pod)
{
	const cJSON *volume;

	cJSON_ArrayForEach (volume, json_at(pod, "spec.volumes")) {
		const char *name = text_at(volume, "persistentVolumeClaim.claimName");
		char *claim = mem_printf("/api/v1/namespaces/" KUBE_FIT_NAMESPACE
					 "/persistentvolumeclaims/%s",
					 name);
		char *of_claim = mem_printf("/api/v1/persistentvolumes/v-%s", name);

		if (*name) {
			show_object(claim);
			show_object(of_claim);
		}
		free(claim);
		free(of_claim);
	}
}

static void show_difference(const cJSON *pod, const cJSON *item, bool offered)
{
	print_message("          pod %s, node %s: the scheduler %s it, /v1/fit says %s\n",
		      text_at(pod, "metadata.name"), text_at(item, "node"),
		      offered ? "accepts" : "refuses",
		      offered ? text_at(item, "reason") : "it fits");
}

static void show_pod(const cJSON *pod)
{
	show("labels", json_at(pod, "metadata.labels"));
	show("spec", json_at(pod, "spec"));
	print_message("            the scheduler says: %s: %s\n", text_at(judgement(pod), "reason"),
		      text_at(judgement(pod), "message"));
	show_claims(pod);
}

static void show_node(const cJSON *item)
{
	char *path = mem_printf("/api/v1/nodes/%s", text_at(item, "node"));

	show_object(path);
	free(path);
}

static void count(struct tally *t, const cJSON *item)
{
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (strcmp(text_at(item, "filter"), place_filter_name((enum place_filter)f)) == 0)
			t->by_filter[f]++;
}

static void compare(struct tally *t, const cJSON *pod)
{
	cJSON *offered = kube_witness_offered(witness, text_at(pod, "metadata.name"));
	cJSON *answer = ask(pod);
	bool shown = false;
	const cJSON *item;

	cJSON_ArrayForEach (item, json_at(answer, "items")) {
		bool ours = cJSON_IsTrue(json_at(item, "fits"));
		bool theirs = has_string(offered, text_at(item, "node"));

		t->fits += theirs;
		t->refused += !theirs;
		count(t, item);
		if (ours == theirs)
			continue;
		show_difference(pod, item, theirs);
		if (!shown)
			show_pod(pod);
		if (t->differences++ < SHOWN)
			show_node(item);
		shown = true;
	}
	cJSON_Delete(answer);
	cJSON_Delete(offered);
}

/* Each filter must have had its say, or the world is no test of it. */
static const enum place_filter asked[] = {
	PLACE_FIT,	PLACE_TAINTS, PLACE_NODE_AFFINITY, PLACE_UNSCHEDULABLE, PLACE_ANTI_AFFINITY,
	PLACE_AFFINITY, PLACE_SPREAD, PLACE_HOST_PORTS,	   PLACE_VOLUMES,
};

static void test_both_agree(void **state)
{
	struct tally t = {0};
	const cJSON *pod;

	(void)state;
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		compare(&t, pod);
	}
	print_message("          %d pods on %d nodes: the scheduler accepts %zu pairs and refuses "
		      "%zu\n",
		      KUBE_FIT_ASKED, KUBE_FIT_NODES, t.fits, t.refused);
	for (size_t i = 0; i < PLACE_FILTERS; i++)
		if (t.by_filter[i])
			print_message("          %6zu refused by %s\n", t.by_filter[i],
				      place_filter_name((enum place_filter)i));
	if (t.differences)
		fail_msg("%zu pairs differ", t.differences);
	assert_true(t.fits > KUBE_FIT_ASKED);
	if (bed->plane->version->new_members)
		assert_true(t.by_filter[PLACE_FEATURES] && t.by_filter[PLACE_VOLUME_LIMITS]);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (!t.by_filter[asked[i]])
			fail_msg("nothing was refused by %s", place_filter_name(asked[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scheduler_is_asked),
		cmocka_unit_test(test_members_are_known),
		cmocka_unit_test(test_aggregator_knows),
		cmocka_unit_test(test_both_agree),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	witness = kube_witness_start();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	kube_witness_stop(witness);
	cJSON_Delete(pods);
	return failed != 0;
}
