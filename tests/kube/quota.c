/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stories of capacity scheduling on a real control plane: a stock kube-scheduler with the
 * aggregator as its extender, real quotas, nodes and pods. Each step submits a pod and looks what
 * becomes of it; what was asked and answered is printed, with the numbers.
 *
 *   bound      the scheduler binds it, and the quotas are used as the story says
 *   rejected   it stays pending; the condition says which quota is short, and POST /v1/quotas/preempt that no victims would help
 *   preempted  victims go, exactly those of the story, and it is bound
 *   raised     it is rejected; its quota gets more, and it is bound
 *
 * A stock scheduler looks for victims by priority alone, and asks extenders only where it found
 * some; that of 1.20 never asks. So the test does what whoever reclaims for the quotas has to do: it
 * asks the aggregator for victims, and deletes them; and in the last story it asks as newer
 * schedulers do. The aggregator makes the scheduler ask again (--nudge-claim).
 *
 * Steps are those of tests/vectors/quota/kep_stories.json; where these expect upstream's answer and
 * name a better one, it is the better one. Pods have no kubelet and no grace: who is deleted is
 * gone. Those that are rejected are withdrawn, so that nobody else waits for what victims leave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/kube_quota_world.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define STORIES "tests/vectors/quota/kep_stories.json"
/* For what is to come within a second, on a machine that may be busy with other tests. */
#define SECONDS 60

static struct kube_testbed *bed;
static cJSON *stories;

/* Story 2 with pods so small that no quota is taken below its min. In JSON, but for the quotes. */
static const char story_2_small[] =
	"{'id':'story 2 with pods of one GPU',"
	"'nodes':[{'name':'n1','allocatable':{'pods':110,'nvidia.com/gpu':10}}],"
	"'quotas':["
	"{'namespace':'a','min':{'nvidia.com/gpu':3},'max':{'nvidia.com/gpu':4}},"
	"{'namespace':'b','min':{'nvidia.com/gpu':4},'max':{'nvidia.com/gpu':6}},"
	"{'namespace':'c','min':{'nvidia.com/gpu':3},'max':{'nvidia.com/gpu':4}}],"
	"'pods':["
	"{'pod':'a1','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':1},"
	"{'pod':'b1','namespace':'b','node':'n1','request':{'nvidia.com/gpu':3},'start':2},"
	"{'pod':'c1','namespace':'c','node':'n1','request':{'nvidia.com/gpu':3},'start':3}],"
	"'steps':["
	"{'submit':{'pod':'a2','namespace':'a','request':{'nvidia.com/gpu':1},'start':4},"
	"'expect':{'result':'bound'}},"
	"{'submit':{'pod':'a3','namespace':'a','request':{'nvidia.com/gpu':1},'start':5},"
	"'expect':{'result':'bound','used':{'a':{'nvidia.com/gpu':4}}}},"
	"{'submit':{'pod':'b2','namespace':'b','request':{'nvidia.com/gpu':1},'start':6},"
	"'expect':{'result':'preempted','reason':'over_sum_min','victims':['a3'],'used':{"
	"'a':{'nvidia.com/gpu':3},'b':{'nvidia.com/gpu':4},'c':{'nvidia.com/gpu':3}}}}]}";

/*
 * A scheduler's candidates for b2 are all of the others, and it would take b1, the youngest. But b
 * is owed what a borrows, and so it is a's youngest that goes.
 */
static const char story_of_extender[] =
	"{'id':'as a scheduler asks its extender',"
	"'nodes':[{'name':'n1','allocatable':{'pods':110,'nvidia.com/gpu':10}}],"
	"'quotas':["
	"{'namespace':'a','min':{'nvidia.com/gpu':4},'max':{'nvidia.com/gpu':6}},"
	"{'namespace':'b','min':{'nvidia.com/gpu':6},'max':{'nvidia.com/gpu':8}}],"
	"'pods':["
	"{'pod':'a1','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':1},"
	"{'pod':'a2','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':2},"
	"{'pod':'a3','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':3},"
	"{'pod':'b1','namespace':'b','node':'n1','request':{'nvidia.com/gpu':3},'start':4}],"
	"'steps':[{'submit':{'pod':'b2','namespace':'b','priority':10,"
	"'request':{'nvidia.com/gpu':3},'start':5},"
	"'expect':{'result':'preempted','reason':'over_sum_min','candidate':'b1','victims':['a3'],"
	"'used':{'a':{'nvidia.com/gpu':4},'b':{'nvidia.com/gpu':6}}}}]}";

/* a borrows two CPUs and has memory of its min to spare: the CPUs come back all the same. */
static const char story_of_three[] =
	"{'id':'CPU comes back from a quota within its min of memory and GPUs',"
	"'nodes':[{'name':'n1','allocatable':{'pods':110,'cpu':10000,'memory':107374182400,"
	"'nvidia.com/gpu':8}}],"
	"'quotas':["
	"{'namespace':'a','min':{'cpu':4000,'memory':64424509440,'nvidia.com/gpu':4},"
	"'max':{'cpu':10000,'memory':107374182400,'nvidia.com/gpu':8}},"
	"{'namespace':'b','min':{'cpu':6000,'memory':42949672960,'nvidia.com/gpu':4},"
	"'max':{'cpu':10000,'memory':107374182400,'nvidia.com/gpu':8}}],"
	"'pods':["
	"{'pod':'a1','namespace':'a','node':'n1','request':{'cpu':2000,'memory':4294967296,"
	"'nvidia.com/gpu':1},'start':1},"
	"{'pod':'a2','namespace':'a','node':'n1','request':{'cpu':2000,'memory':4294967296,"
	"'nvidia.com/gpu':1},'start':2},"
	"{'pod':'a3','namespace':'a','node':'n1','request':{'cpu':2000,'memory':4294967296,"
	"'nvidia.com/gpu':1},'start':3},"
	"{'pod':'b1','namespace':'b','node':'n1','request':{'cpu':4000,'memory':4294967296},"
	"'start':4}],"
	"'steps':[{'submit':{'pod':'b2','namespace':'b','request':{'cpu':2000,"
	"'memory':4294967296,'nvidia.com/gpu':1},'start':5},"
	"'expect':{'result':'preempted','reason':'over_sum_min','victims':['a3'],"
	"'used':{'a':{'cpu':4000},'b':{'cpu':6000}}}}]}";

/* No event of a quota makes a stock scheduler ask again. */
static const char story_of_raise[] =
	"{'id':'a max is raised',"
	"'nodes':[{'name':'n1','allocatable':{'pods':110,'nvidia.com/gpu':10}}],"
	"'quotas':[{'namespace':'a','min':{'nvidia.com/gpu':9},'max':{'nvidia.com/gpu':2}}],"
	"'pods':[{'pod':'a1','namespace':'a','node':'n1','request':{'nvidia.com/"
	"gpu':2},'start':1}],"
	"'steps':[{'submit':{'pod':'a2','namespace':'a','request':{'nvidia.com/gpu':1},'start':2},"
	"'expect':{'result':'raised','reason':'over_max','used':{'a':{'nvidia.com/gpu':3}}}}]}";

/* Victims by these rules, where they are not the aggregator's own; NULL. */
static const char *variant;

/* --- reading --------------------------------------------------------------------------------- */

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static double number_at(const cJSON *json, const char *path)
{
	const cJSON *number = json_at(json, path);

	return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

/*
 * Not all of the stories' names are names of the API (podA); nothing else in them has large letters
 * that matter.
 */
static cJSON *read_stories(void)
{
	FILE *file = fopen(STORIES, "r");
	struct buf text = BUF_INIT;
	char chunk[4096];
	cJSON *json;
	size_t got;

	while (file && (got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_add(&text, chunk, got);
	if (file)
		fclose(file);
	for (size_t i = 0; i < text.len; i++)
		text.data[i] = (char)tolower((unsigned char)text.data[i]);
	json = text.data ? cJSON_Parse(text.data) : NULL;
	buf_fini(&text);
	return json;
}

static const cJSON *find_story(const char *id)
{
	const cJSON *story;

	cJSON_ArrayForEach (story, json_at(stories, "cases")) {
		if (strcmp(text_at(story, "id"), id) == 0)
			return story;
	}
	fail_msg("%s has no story %s", STORIES, id);
	return NULL;
}

/* --- what becomes of a pod ------------------------------------------------------------------- */

struct outcome {
	const cJSON *pod; /* of the story */
	cJSON *seen; /* of the API, at the last look */
};

static const cJSON *judgement(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
		if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
			return condition;
	}
	return NULL;
}

static void look(struct outcome *o)
{
	char *path = kube_quota_world_pod_path(o->pod, "");

	cJSON_Delete(o->seen);
	o->seen = kube_quota_world_get(bed, path);
	free(path);
}

static bool is_bound(void *ctx)
{
	struct outcome *o = ctx;

	look(o);
	return *text_at(o->seen, "spec.nodeName");
}

static bool is_decided(void *ctx)
{
	struct outcome *o = ctx;

	return is_bound(ctx) || judgement(o->seen);
}

static void submit(struct outcome *o)
{
	char *request = cJSON_PrintUnformatted(json_at(o->pod, "request"));

	print_message("            pod %s of %s asks for %s, priority %g\n", text_at(o->pod, "pod"),
		      text_at(o->pod, "namespace"), request, number_at(o->pod, "priority"));
	cJSON_free(request);
	kube_quota_world_make_pod(bed, o->pod);
	if (!await(is_decided, o, SECONDS))
		fail_msg("the scheduler does not decide");
}

static void say_bound(const struct outcome *o)
{
	print_message("            bound to %s\n", text_at(o->seen, "spec.nodeName"));
	kube_quota_world_run_pod(bed, o->pod);
}

static void expect_bound(struct outcome *o)
{
	if (!await(is_bound, o, SECONDS))
		fail_msg("%s is not bound: %s", text_at(o->pod, "pod"),
			 text_at(judgement(o->seen), "message"));
	say_bound(o);
}

/*
 * By our gate, with its name; or by the scheduler itself, where nodes are short as well, and the
 * extender is not asked.
 */
static void expect_refused(const struct outcome *o, const char *gate)
{
	const char *message = text_at(judgement(o->seen), "message");
	char *ours = mem_printf("ElasticQuota %s: ", gate);

	print_message("            the scheduler says: %s\n", message);
	assert_string_equal(text_at(o->seen, "spec.nodeName"), "");
	if (*gate && !strstr(message, ours) && !strstr(message, "Insufficient"))
		fail_msg("the refusal does not begin with \"%s\"", ours);
	free(ours);
}

/* --- victims --------------------------------------------------------------------------------- */

/* over_max, as the vectors write it, to overMax; what is not told, is "". */
static const char *gate_of(const cJSON *expect)
{
	static const char *const names[][2] = {{"over_max", "overMax"},
					       {"over_sum_min", "overSumMin"},
					       {"", ""}};
	size_t i = 0;

	while (*names[i][0] && strcmp(names[i][0], text_at(expect, "reason")) != 0)
		i++;
	return names[i][1];
}

struct question {
	const struct outcome *of;
	const char *variant; /* NULL: the aggregator's */
	const char *verdict, *gate; /* expected; "": any gate */
	cJSON *answer; /* the last one */
};

/* Until it is known who is where: the view follows the API. */
static bool is_answered(void *ctx)
{
	struct question *q = ctx;
	cJSON *request = cJSON_CreateObject();
	char *text;

	cJSON_AddItemToObject(request, "pod", cJSON_Duplicate(q->of->seen, true));
	if (q->variant)
		cJSON_AddStringToObject(request, "variant", q->variant);
	text = cJSON_PrintUnformatted(request);
	cJSON_Delete(q->answer);
	kube_testbed_post(bed, 0, "/v1/quotas/preempt", text, &q->answer);
	cJSON_free(text);
	cJSON_Delete(request);
	return strcmp(text_at(q->answer, "verdict"), q->verdict) == 0 &&
	       (!*q->gate || strcmp(text_at(q->answer, "gate"), q->gate) == 0);
}

/* The answer; the caller deletes it. */
static cJSON *ask(const struct outcome *o, const char *by, const char *verdict, const char *gate)
{
	struct question q = {.of = o, .variant = by, .verdict = verdict, .gate = gate};
	const cJSON *line;

	if (!await(is_answered, &q, SECONDS))
		fail_msg("/v1/quotas/preempt does not answer %s, %s, but %s", verdict, gate,
			 q.answer ? cJSON_PrintUnformatted(q.answer) : "nothing");
	print_message("            the aggregator says (%s): %s: %s\n",
		      text_at(q.answer, "variant"), text_at(q.answer, "verdict"),
		      text_at(q.answer, "reason"));
	cJSON_ArrayForEach (line, json_at(q.answer, "narration")) {
		print_message("              %s\n", cJSON_GetStringValue(line));
	}
	return q.answer;
}

static bool is_named(const cJSON *list, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		if (strcmp(item->valuestring, name) == 0)
			return true;
	}
	return false;
}

static void delete_victims(const cJSON *victims, const cJSON *expected)
{
	const cJSON *v;

	assert_int_equal(cJSON_GetArraySize(victims), cJSON_GetArraySize(expected));
	cJSON_ArrayForEach (v, victims) {
		print_message("            deleted: %s of %s on %s: %s\n", text_at(v, "name"),
			      text_at(v, "namespace"), text_at(v, "node"), text_at(v, "reason"));
		assert_true(is_named(expected, text_at(v, "name")));
		kube_quota_world_delete(bed,
					mem_printf("/api/v1/namespaces/%s/pods/%s",
						   text_at(v, "namespace"), text_at(v, "name")));
	}
}

static cJSON *victims_on(const char *node, const char *uid)
{
	char *text = mem_printf("{\"%s\":{\"Pods\":[{\"UID\":\"%s\"}],\"NumPDBViolations\":0}}",
				node, uid);
	cJSON *json = cJSON_Parse(text);

	free(text);
	return json;
}

/*
 * A scheduler offers its own candidate, and gets the one victim on that node that the quotas name.
 */
static void expect_answer(const struct outcome *o, const cJSON *candidate, const cJSON *victims)
{
	const cJSON *offered = NULL, *pod;
	cJSON *list = kube_quota_world_pods(bed), *args = cJSON_CreateObject(), *answer, *expected;
	char *text;

	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		if (strcmp(text_at(pod, "metadata.name"), candidate->valuestring) == 0)
			offered = pod;
	}
	assert_non_null(offered);
	assert_int_equal(cJSON_GetArraySize(victims), 1);
	cJSON_AddItemToObject(args, "Pod", cJSON_Duplicate(o->seen, true));
	cJSON_AddItemToObject(args, "NodeNameToMetaVictims",
			      victims_on(text_at(offered, "spec.nodeName"),
					 text_at(offered, "metadata.uid")));
	text = cJSON_PrintUnformatted(args);
	assert_int_equal(kube_testbed_post(bed, 0, "/extender/preempt", text, &answer), 200);
	expected = victims_on(text_at(victims->child, "node"), text_at(victims->child, "uid"));
	print_message("            offered %s, the extender answers %s\n", candidate->valuestring,
		      text_at(victims->child, "name"));
	assert_true(cJSON_Compare(json_at(answer, "NodeNameToMetaVictims"), expected, true));
	cJSON_free(text);
	cJSON_Delete(list);
	cJSON_Delete(args);
	cJSON_Delete(answer);
	cJSON_Delete(expected);
}

static void expect_preempted(struct outcome *o, const cJSON *expect)
{
	cJSON *answer;

	expect_refused(o, gate_of(expect));
	if (variant)
		cJSON_Delete(ask(o, NULL, "impossible", gate_of(expect)));
	answer = ask(o, variant, "victims", gate_of(expect));
	if (json_at(expect, "candidate"))
		expect_answer(o, json_at(expect, "candidate"), json_at(answer, "victims"));
	delete_victims(json_at(answer, "victims"), json_at(expect, "victims"));
	cJSON_Delete(answer);
	kube_quota_world_expect_seen(bed);
	if (!await(is_bound, o, SECONDS))
		fail_msg("%s is not bound: %s", text_at(o->pod, "pod"),
			 text_at(judgement(o->seen), "message"));
	say_bound(o);
}

/* Nobody else is gone. */
static void expect_gone(const cJSON *before, const cJSON *victims)
{
	cJSON *after = kube_quota_world_pods(bed);
	const cJSON *pod, *left;

	cJSON_ArrayForEach (pod, json_at(before, "items")) {
		const char *name = text_at(pod, "metadata.name");
		bool there = false;

		cJSON_ArrayForEach (left, json_at(after, "items")) {
			there |= strcmp(text_at(left, "metadata.uid"),
					text_at(pod, "metadata.uid")) == 0;
		}
		if (there == is_named(victims, name))
			fail_msg("pod %s is %s", name, there ? "still there" : "gone");
		if (!there)
			print_message("            gone: %s\n", name);
	}
	cJSON_Delete(after);
}

/* --- steps ----------------------------------------------------------------------------------- */

/* The pod that a step submits; "retry" names one of an earlier step. */
static const cJSON *pod_of(const cJSON *story, const cJSON *step)
{
	const char *again = text_at(step, "retry");
	const cJSON *other;

	cJSON_ArrayForEach (other, json_at(story, "steps")) {
		if (*again && strcmp(text_at(other, "submit.pod"), again) == 0)
			return json_at(other, "submit");
	}
	return json_at(step, "submit");
}

static void expect_rejected(struct outcome *o, const cJSON *expect)
{
	expect_refused(o, gate_of(expect));
	if (json_at(expect, "victims"))
		cJSON_Delete(ask(o, NULL, "impossible", gate_of(expect)));
	kube_quota_world_delete(bed, kube_quota_world_pod_path(o->pod, ""));
}

/* The quota is another; and so is the answer, once the pod is asked about again. */
static void expect_raised(struct outcome *o, const cJSON *expect)
{
	expect_refused(o, gate_of(expect));
	control_plane_must(bed->plane, "PATCH",
			   "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/elasticquotas/quota",
			   "{\"spec\":{\"max\":{\"nvidia.com/gpu\":\"3\"}}}");
	print_message("            max is raised to 3\n");
	cJSON_Delete(ask(o, NULL, "notNeeded", ""));
	if (!await(is_bound, o, SECONDS))
		fail_msg("%s is not bound: %s", text_at(o->pod, "pod"),
			 text_at(judgement(o->seen), "message"));
	say_bound(o);
}

static void do_step(const cJSON *story, const cJSON *step)
{
	const cJSON *better = json_at(step, "want_better");
	const cJSON *expect = better ? better : json_at(step, "expect");
	const char *result = text_at(expect, "result");
	struct outcome o = {.pod = pod_of(story, step)};
	cJSON *before = kube_quota_world_pods(bed);

	kube_quota_world_expect_seen(bed);
	submit(&o);
	if (strcmp(result, "bound") == 0)
		expect_bound(&o);
	else if (strcmp(result, "rejected") == 0)
		expect_rejected(&o, expect);
	else if (strcmp(result, "raised") == 0)
		expect_raised(&o, expect);
	else
		expect_preempted(&o, expect);
	expect_gone(before, json_at(expect, "victims"));
	kube_quota_world_expect_used(bed, json_at(expect, "used"));
	cJSON_Delete(before);
	cJSON_Delete(o.seen);
}

static void tell(const cJSON *story)
{
	const cJSON *step;

	kube_quota_world_begin(bed, story);
	cJSON_ArrayForEach (step, json_at(story, "steps")) {
		do_step(story, step);
	}
}

/* --- stories --------------------------------------------------------------------------------- */

/*
 * The scheduler asks about every pod; where the aggregator does not answer, no pod is bound. Of
 * itself it evicts nobody.
 */
static void test_bed_is_made(void **state)
{
	static const char *const options[] = {"--nudge-claim", "evenkeel/evenkeel-nudge", NULL};

	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/namespace.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/nudge.yaml");
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "elasticquotas", "synced"));
	kube_quota_world_start_scheduler(bed,
					 "profiles:\n"
					 "- schedulerName: default-scheduler\n"
					 "  plugins: {postFilter: {disabled: [{name: \"*\"}]}}\n");
}

/* However a story ended, the next one begins with nothing. */
static int clear(void **state)
{
	(void)state;
	variant = NULL;
	kube_quota_world_clear(bed);
	return 0;
}

static void test_story_1(void **state)
{
	(void)state;
	tell(find_story("kep/story-1"));
}

static void tell_text(const char *json)
{
	cJSON *story = kube_quota_world_parse(json);

	tell(story);
	cJSON_Delete(story);
}

/* Its victim leaves a with 2 of its min of 3, which upstream does, and we do not. */
static void test_story_2(void **state)
{
	(void)state;
	variant = "upstream";
	tell(find_story("kep/story-2a"));
}

static void test_story_2_small(void **state)
{
	(void)state;
	tell_text(story_2_small);
}

static void test_story_2_equal_priority(void **state)
{
	(void)state;
	tell(find_story("kep/story-2b-equal-priority"));
}

static void test_cross_namespace(void **state)
{
	(void)state;
	tell(find_story("kep/cross-namespace"));
}

static void test_cross_node(void **state)
{
	(void)state;
	tell(find_story("kep/cross-node-limitation"));
}

static void test_demo(void **state)
{
	(void)state;
	tell(find_story("readme/demo"));
}

static void test_resources_no_quota_names(void **state)
{
	(void)state;
	tell(find_story("issue/683-gpu-and-cpu-pods"));
}

static void test_three_resources(void **state)
{
	(void)state;
	tell_text(story_of_three);
}

static void test_raised_max(void **state)
{
	(void)state;
	tell_text(story_of_raise);
}

static void test_extender(void **state)
{
	(void)state;
	tell_text(story_of_extender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bed_is_made),
		cmocka_unit_test_teardown(test_story_1, clear),
		cmocka_unit_test_teardown(test_story_2, clear),
		cmocka_unit_test_teardown(test_story_2_small, clear),
		cmocka_unit_test_teardown(test_story_2_equal_priority, clear),
		cmocka_unit_test_teardown(test_cross_namespace, clear),
		cmocka_unit_test_teardown(test_cross_node, clear),
		cmocka_unit_test_teardown(test_demo, clear),
		cmocka_unit_test_teardown(test_resources_no_quota_names, clear),
		cmocka_unit_test_teardown(test_three_resources, clear),
		cmocka_unit_test_teardown(test_raised_max, clear),
		cmocka_unit_test_teardown(test_extender, clear),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	stories = read_stories();
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	cJSON_Delete(stories);
	return failed != 0;
}
