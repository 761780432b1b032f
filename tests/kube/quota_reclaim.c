/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories of quotas that no kube-scheduler reclaims by itself: evenkeel-actuator does, on a real
 * control plane. It reaches the aggregator through the API server, as in a pod, and the scheduler
 * asks it as its extender.
 *
 * In each story other pods wait for the same room and would fit: those of a namespace without a quota,
 * and those of the borrowers. None of them may be bound while the pod waits that victims make room for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_actuator.h"
#include "tests/kube_behind.h"
#include "tests/kube_quota_world.h"
#include "tests/process.h"
#include "tests/stack.h"

/* A namespace gets its min within that. */
#define SECONDS 60

static struct kube_testbed *bed;
static struct kube_behind behind;
static struct kube_actuator actuator;

/* --- the programs ----------------------------------------------------------------------------- */

static void start_aggregator(void)
{
	char *authority = mem_printf("%s/ca.crt", bed->folder);
	const char *const options[] = {"--nudge-claim", "evenkeel/evenkeel-nudge",
				       "--events=pods", "--tls-client-ca",
				       authority,	NULL};

	kube_behind_start(&behind, bed->plane->admin, options);
	kube_behind_await(&behind, "v1.evenkeel.io");
	free(authority);
}

/* --- pods ------------------------------------------------------------------------------------- */

struct count {
	const char *prefix; /* of names */
	int bound, pending, going; /* at the last look */
	int want_bound, want_going;
};

static void look(struct count *c)
{
	cJSON *list = kube_quota_world_pods(bed);
	const cJSON *pod;

	c->bound = c->pending = c->going = 0;
	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *name = json_at(pod, "metadata.name")->valuestring;

		if (strncmp(name, c->prefix, strlen(c->prefix)) != 0)
			continue;
		if (json_at(pod, "metadata.deletionTimestamp"))
			c->going++;
		else if (json_at(pod, "spec.nodeName"))
			c->bound++;
		else
			c->pending++;
	}
	cJSON_Delete(list);
}

static bool are_bound(void *ctx)
{
	struct count *c = ctx;

	look(c);
	return c->bound == c->want_bound;
}

/* So many pods whose names begin so are bound within the time. */
static void expect_bound(const char *prefix, int bound)
{
	int64_t began_ns = clock_mono_ns();
	struct count c = {.prefix = prefix, .want_bound = bound};

	if (!control_plane_await(bed->plane, are_bound, &c, SECONDS))
		fail_msg("of the pods %s.. %d are bound, %d pending, %d going; expected %d bound",
			 prefix, c.bound, c.pending, c.going, bound);
	print_message("          %d pods %s.. are bound: %.1f s\n", bound, prefix,
		      (double)(clock_mono_ns() - began_ns) / NS_PER_SEC);
}

static void expect_now(const char *prefix, int bound, int pending, int going)
{
	struct count c = {.prefix = prefix};

	look(&c);
	if (c.bound != bound || c.pending != pending || c.going != going)
		fail_msg("of the pods %s.. %d are bound, %d pending, %d going; expected %d, %d, %d",
			 prefix, c.bound, c.pending, c.going, bound, pending, going);
}

static bool differs(void *ctx)
{
	struct count c = *(const struct count *)ctx;

	look(&c);
	return c.bound != c.want_bound || c.going != c.want_going;
}

/* So many are bound and going all the while. */
static void watch(const char *prefix, int bound, int going, int seconds)
{
	struct count c = {.prefix = prefix, .want_bound = bound, .want_going = going};

	if (control_plane_await(bed->plane, differs, &c, seconds))
		expect_now(prefix, bound, 0, going);
}

struct set {
	const char *namespace, *name, *node; /* NULL: the scheduler's */
	int count, cpus, priority, grace;
};

static cJSON *pod_json(const struct set *s, int i)
{
	char *name = mem_printf("%s-%d", s->name, i);
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "pod", name);
	cJSON_AddStringToObject(json, "namespace", s->namespace);
	if (s->node)
		cJSON_AddStringToObject(json, "node", s->node);
	cJSON_AddNumberToObject(json, "priority", s->priority);
	cJSON_AddNumberToObject(json, "grace", s->grace);
	cJSON_AddNumberToObject(json, "start", i);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(json, "request"), "cpu", s->cpus * 1000.0);
	free(name);
	return json;
}

static void create(const struct set *s)
{
	for (int i = 0; i < s->count; i++) {
		cJSON *json = pod_json(s, i);

		kube_quota_world_make_pod(bed, json);
		cJSON_Delete(json);
	}
}

static bool are_refused(void *ctx)
{
	const struct set *s = ctx;
	bool all = true;

	for (int i = 0; i < s->count && all; i++) {
		char *name = mem_printf("%s-%d", s->name, i);
		struct kube_quota_pod p = {.bed = bed, .namespace = s->namespace, .name = name};

		all = kube_quota_pod_is_refused(&p);
		cJSON_Delete(p.seen);
		free(name);
	}
	return all;
}

/* Pods that the scheduler found no place for: they take what becomes free. */
static void create_waiting(const struct set *s)
{
	create(s);
	if (!control_plane_await(bed->plane, are_refused, (void *)s, SECONDS))
		fail_msg("not all pods %s are refused", s->name);
}

static void end_going(const char *prefix)
{
	cJSON *list = kube_quota_world_pods(bed);
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *name = json_at(pod, "metadata.name")->valuestring;

		if (strncmp(name, prefix, strlen(prefix)) == 0 &&
		    json_at(pod, "metadata.deletionTimestamp"))
			kube_quota_world_delete(
				bed,
				mem_printf("/api/v1/namespaces/%s/pods/%s?gracePeriodSeconds=0",
					   json_at(pod, "metadata.namespace")->valuestring, name));
	}
	cJSON_Delete(list);
}

static bool is_told(void *ctx)
{
	struct buf answer = BUF_INIT;
	bool told;

	control_plane_send(bed->plane, "GET", ctx, NULL, &answer);
	told = answer.data && strstr(answer.data, "EvenkeelReclaim");
	buf_fini(&answer);
	return told;
}

static void begin(const char *story)
{
	cJSON *json = kube_quota_world_parse(story);

	kube_quota_world_begin(bed, json);
	cJSON_Delete(json);
}

static int clear(void **state)
{
	(void)state;
	kube_actuator_stop(&actuator, SIGTERM);
	unlink(actuator.log);
	kube_quota_world_clear(bed);
	return 0;
}

/* --- stories ---------------------------------------------------------------------------------- */

#define NODE(name, cpus)                                                                           \
	"{'name':'" name "','allocatable':{'cpu':" #cpus ",'memory':1000000000000,'pods':110}}"
#define QUOTA(namespace, min, max)                                                                 \
	"{'namespace':'" namespace "','min':{'cpu':" #min "},'max':{'cpu':" #max "}}"

/* Four pods of a are as many as b's needs; others wait for their room since before. */
static void test_borrowers_of_the_same_priority(void **state)
{
	(void)state;
	begin("{'id':'borrowers of the same priority','nodes':[" NODE(
		"n1", 10000) "],'quotas':[" QUOTA("a", 6000,
						  10000) "," QUOTA("b", 4000,
								   10000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 10, .cpus = 1});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"free", "free", .count = 4, .cpus = 1});
	create_waiting(&(struct set){"a", "late", .count = 2, .cpus = 1});
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 4});
	expect_now("a-", 10, 0, 0);
	kube_actuator_start(&actuator, 0);
	expect_bound("b-", 1);
	expect_now("a-", 6, 0, 0);
	expect_now("free-", 0, 4, 0);
	expect_now("late-", 0, 2, 0);
	kube_actuator_expect(&actuator, "pod b/b-0 is bound to n1: 4 pods were evicted for it",
			     SECONDS);
	assert_true(await(is_told, (void *)"/api/v1/namespaces/a/events", SECONDS));
	assert_true(await(is_told, (void *)"/api/v1/namespaces/b/events", SECONDS));
}

/* The node has room for b's pod: kube-scheduler asks its extender for no victims. */
static void test_only_quotas_refuse(void **state)
{
	/* A scheduler before 1.37 nominates the node for a pod that is above others there. */
	int priority = bed->plane->version->minor < 37 ? 0 : 10;

	(void)state;
	begin("{'id':'room on the node, and none under the sum of min','nodes':[" NODE(
		"n1", 14000) "],'quotas':[" QUOTA("a", 6000,
						  12000) "," QUOTA("b", 4000,
								   10000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 10, .cpus = 1});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"a", "late", .count = 2, .cpus = 1});
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 4, .priority = priority});
	kube_actuator_start(&actuator, 0);
	expect_bound("b-", 1);
	expect_now("a-", 6, 0, 0);
	expect_now("late-", 0, 2, 0);
}

/* KEP 9, story 1: b wants its min back; all pods have one priority. */
static void test_kep_story_1(void **state)
{
	(void)state;
	begin("{'id':'KEP 9, story 1, one priority','nodes':[" NODE(
		"n1", 10000) "],'quotas':[" QUOTA("a", 4000, 6000) "," QUOTA("b", 6000,
									     8000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 3, .cpus = 2});
	create(&(struct set){"b", "first", "n1", .count = 1, .cpus = 3});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"free", "free", .count = 2, .cpus = 2});
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 3});
	kube_actuator_start(&actuator, 0);
	expect_bound("b-", 1);
	expect_now("a-", 2, 0, 0);
	expect_now("free-", 0, 2, 0);
}

/* KEP 9, story 2: of what b and c do not use a has 1. On three nodes, of one priority. */
static void test_kep_story_2(void **state)
{
	(void)state;
	begin("{'id':'KEP 9, story 2, one priority','nodes':[" NODE("n1", 4000) "," NODE(
		"n2",
		3000) "," NODE("n3",
			       3000) "],'quotas':[" QUOTA("a", 3000,
							  4000) "," QUOTA("b", 4000,
									  6000) "," QUOTA("c", 3000,
											  4000) "],"
												"'p"
												"od"
												"s'"
												":["
												"]"
												"}");
	create(&(struct set){"a", "a", "n1", .count = 4, .cpus = 1});
	create(&(struct set){"b", "first", "n2", .count = 3, .cpus = 1});
	create(&(struct set){"c", "c", "n3", .count = 3, .cpus = 1});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"free", "free", .count = 2, .cpus = 1});
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 1});
	kube_actuator_start(&actuator, 0);
	expect_bound("b-", 1);
	expect_now("a-", 3, 0, 0);
	expect_now("first-", 3, 0, 0);
	expect_now("c-", 3, 0, 0);
	expect_now("free-", 0, 2, 0);
}

/* The whole of a min: several pods, one after the other. */
static void test_a_starved_namespace(void **state)
{
	(void)state;
	begin("{'id':'all of a min','nodes':[" NODE("n1", 8000) "," NODE(
		"n2", 8000) "],'quotas':[" QUOTA("a", 8000, 16000) "," QUOTA("b", 8000,
									     8000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 8, .cpus = 1});
	create(&(struct set){"a", "aa", "n2", .count = 8, .cpus = 1});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"free", "free", .count = 8, .cpus = 1});
	create_waiting(&(struct set){"b", "b", .count = 4, .cpus = 2});
	kube_actuator_start(&actuator, 0);
	expect_bound("b-", 4);
	expect_bound("a", 8);
	expect_now("free-", 0, 8, 0);
}

/*
 * Victims that take longer than a claim lives, the actuator killed, and the aggregator restarted: the
 * room stays with the pod, and nobody else is evicted for it.
 */
static void test_the_claim_outlives_its_programs(void **state)
{
	(void)state;
	begin("{'id':'victims with a grace','nodes':[" NODE("n1", 10000) "],'quotas':[" QUOTA(
		"a", 6000, 10000) "," QUOTA("b", 4000, 10000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 10, .cpus = 1, .grace = 600});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"free", "free", .count = 4, .cpus = 1});
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 4});
	kube_actuator_start(&actuator, 0);
	kube_actuator_expect(&actuator, "pod a/a-9 is evicted for b/b-0", SECONDS);
	expect_bound("a-", 6);
	expect_now("a-", 6, 0, 4);
	kube_actuator_stop(&actuator, SIGKILL);
	kube_actuator_start(&actuator, 0);
	kube_actuator_expect(&actuator,
			     "the room of pod b/b-0 on n1 is kept, which another holder claimed",
			     SECONDS);
	kube_testbed_kill_aggregator(bed, 0);
	start_aggregator();
	watch("a-", 6, 4, 70);
	end_going("a-");
	expect_bound("b-", 1);
	expect_now("a-", 6, 0, 0);
	expect_now("free-", 0, 4, 0);
}

/* The Eviction API refuses what the plan's budgets did not show; the pod is left alone then. */
static void test_a_budget_is_kept(void **state)
{
	const char *budgets = bed->plane->version->minor < 21
				      ? "/apis/policy/v1beta1/namespaces/a/poddisruptionbudgets"
				      : "/apis/policy/v1/namespaces/a/poddisruptionbudgets";

	(void)state;
	begin("{'id':'a budget allows nobody','nodes':[" NODE("n1", 10000) "],'quotas':[" QUOTA(
		"a", 6000, 10000) "," QUOTA("b", 4000, 10000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 10, .cpus = 1});
	kube_quota_world_expect_seen(bed);
	control_plane_must(bed->plane, "POST", budgets,
			   "{\"metadata\":{\"name\":\"all\"},\"spec\":{\"minAvailable\":10,"
			   "\"selector\":{\"matchExpressions\":[{\"key\":\"none\",\"operator\":"
			   "\"DoesNotExist\"}]}}}");
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 4});
	kube_actuator_start(&actuator, 0);
	kube_actuator_expect(&actuator, "acts as", SECONDS);
	watch("a-", 10, 0, 10);
	control_plane_must(bed->plane, "DELETE", budgets, NULL);
	expect_bound("b-", 1);
	expect_now("a-", 6, 0, 0);
}

#define ROLE "clusterroles/evenkeel-actuator-reclaim"

/* The pod gets its room in the end. */
static void test_each_rule_is_needed(void **state)
{
	static const struct kube_actuator_rule rules[] = {
		{ROLE, "get", "quotas",
		 "reclaim: GET /apis/evenkeel.io/v1/quotas/reclaim: HTTP 403"},
		{ROLE, "create", "quotas/reservations", "no claim for pod b/b-0: HTTP 403"},
		{ROLE, "create", "events", "no Events are written (HTTP 403)"},
	};

	(void)state;
	begin("{'id':'rights','nodes':[" NODE("n1", 10000) "],'quotas':[" QUOTA(
		"a", 6000, 10000) "," QUOTA("b", 4000, 10000) "],'pods':[]}");
	create(&(struct set){"a", "a", "n1", .count = 10, .cpus = 1});
	kube_quota_world_expect_seen(bed);
	create_waiting(&(struct set){"b", "b", .count = 1, .cpus = 4});
	kube_actuator_expect_rules(&actuator, rules, sizeof(rules) / sizeof(rules[0]), 1, NULL,
				   NULL);
	expect_bound("b-", 1);
}

/* --- the bed ---------------------------------------------------------------------------------- */

static bool is_served(void *ctx)
{
	return control_plane_send(bed->plane, "GET", ctx, NULL, NULL) == 200;
}

static int open_bed(void **state)
{
	struct tls_identity client;

	(void)state;
	kube_behind_install(&behind, bed);
	tls_identity_make(&client,
			  &(struct tls_wish){.name = "scheduler", .issuer = &behind.authority});
	free(kube_direct_write(bed, "client.crt", client.certificate));
	free(kube_direct_write(bed, "client.key", client.key));
	tls_identity_fini(&client);
	control_plane_create(bed->plane, "packaging/kubernetes/core/nudge.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	assert_true(await(is_served, (void *)"/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas",
			  SECONDS));
	start_aggregator();
	bed->behind = true;
	kube_quota_world_start_scheduler(bed, "");
	kube_actuator_install(&actuator, bed, "reclaim", "actuator-reclaim/reclaim.yaml");
	return 0;
}

static int close_bed(void **state)
{
	(void)state;
	kube_actuator_fini(&actuator);
	kube_behind_fini(&behind);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_borrowers_of_the_same_priority, clear),
		cmocka_unit_test_teardown(test_only_quotas_refuse, clear),
		cmocka_unit_test_teardown(test_kep_story_1, clear),
		cmocka_unit_test_teardown(test_kep_story_2, clear),
		cmocka_unit_test_teardown(test_a_starved_namespace, clear),
		cmocka_unit_test_teardown(test_the_claim_outlives_its_programs, clear),
		cmocka_unit_test_teardown(test_a_budget_is_kept, clear),
		cmocka_unit_test_teardown(test_each_rule_is_needed, clear),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, close_bed);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
