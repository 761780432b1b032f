/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real kube-scheduler places bursts by two aggregators behind one address, which leads to both in
 * turn, while agents report to both. The scheduler binds as many pods as a quota has room for, though
 * the aggregators' API server stands still meanwhile. Without the exchange it binds more, since neither
 * aggregator knows what the other one let in.
 *
 * Then either one is killed at a random moment of each burst and started again (PAIR_KILLS=50: so
 * often). The scheduler never pauses, and in the end both have the same windows of all nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/extender_tap.h"
#include "tests/fleet/load.h"
#include "tests/frame_account.h"
#include "tests/kube_quota_world.h"
#include "tests/process.h"
#include "tests/undisturbed.h"

enum { NODES = 100, BURST = 24, ROOM = 10, SECONDS = 60, KILLS = 4, QUIET = 3, LOOK_MS = 5 };
enum { FOLLOWED = 1 }; /* the API server of the aggregators */

#define PAUSE_S	  1.0
#define CONNECTED "evenkeel_peer_connected"
#define CHARGED	  "evenkeel_ledger_entries{state=\"charged\"}"
#define LATE	  "evenkeel_peer_answers_total{result=\"late\"}"
#define ALONE	  "evenkeel_peer_answers_total{result=\"alone\"}"

static struct kube_testbed *bed;
static char *followed; /* the kubeconfig of the aggregators */
static struct extender_tap *tap;
static struct stack stack; /* the same aggregators, as agents know them */
static pid_t fleet; /* 0: does not run */

/* --- the aggregators -------------------------------------------------------------------------- */

static void start(int i, bool exchanges)
{
	char *peer = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[1 - i].ingest_port);
	const char *const options[] = {exchanges ? "--peer" : NULL, peer, NULL};

	kube_testbed_start_aggregator_with(bed, i, followed, options);
	free(peer);
}

static void start_again(int i, bool exchanges)
{
	kube_testbed_kill_aggregator(bed, i);
	start(i, exchanges);
}

/* Nothing is reserved or used, by the view, too. */
static bool is_empty(int i)
{
	cJSON *quota = kube_testbed_get(bed, i, "/v1/quotas/a");
	const cJSON *used = json_at(quota, "used.cpuMillicores");
	bool empty = cJSON_IsNumber(used) && used->valuedouble == 0;

	cJSON_Delete(quota);
	return empty && stack_metric(&stack, i, CHARGED) == 0;
}

static bool are_empty(void *unused)
{
	(void)unused;
	return is_empty(0) && is_empty(1);
}

static bool are_together(void *unused)
{
	(void)unused;
	return stack_metric(&stack, 0, CONNECTED) == 1 && stack_metric(&stack, 1, CONNECTED) == 1;
}

/* Answers so far that one aggregator gave before the other one knew of them. */
static double unsure(void)
{
	double count = 0;

	for (int i = 0; i < 2; i++)
		count += stack_metric(&stack, i, LATE) + stack_metric(&stack, i, ALONE);
	return count;
}

/* --- a burst ---------------------------------------------------------------------------------- */

struct burst {
	int bound, refused; /* at the last look */
	double unsure; /* answers while both ran */
	double waited_s; /* for a CPU, of which other programs are the cause */
	int64_t began_ns, changed_ns, pause_ns; /* pause: the longest without a decision */
};

static void look(struct burst *b)
{
	cJSON *pods = kube_quota_world_pods(bed);
	const cJSON *pod, *condition;
	int decided = b->bound + b->refused;

	b->bound = b->refused = 0;
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		bool refused = false;

		cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
			refused |= strcmp(json_at(condition, "type")->valuestring,
					  "PodScheduled") == 0 &&
				   strcmp(json_at(condition, "status")->valuestring, "False") == 0;
		}
		if (json_at(pod, "spec.nodeName"))
			b->bound++;
		else
			b->refused += refused;
	}
	cJSON_Delete(pods);
	if (decided < BURST && clock_mono_ns() - b->changed_ns > b->pause_ns)
		b->pause_ns = clock_mono_ns() - b->changed_ns;
	if (b->bound + b->refused != decided)
		b->changed_ns = clock_mono_ns();
}

/* All at once for the scheduler. Until it has decided, no aggregator learns of a pod from the API. */
static void make_pods(void)
{
	kill(bed->plane->scheduler, SIGSTOP);
	kill(bed->plane->apis[FOLLOWED].pid, SIGSTOP);
	for (int i = 0; i < BURST; i++) {
		char *text = mem_printf("{'pod':'p%d','namespace':'a','request':{'cpu':1000}}", i);
		cJSON *pod = kube_quota_world_parse(text);

		kube_quota_world_make_pod(bed, pod);
		cJSON_Delete(pod);
		free(text);
	}
	kill(bed->plane->scheduler, SIGCONT);
}

/* Refused pods first: the scheduler is not to give them the room of the others. */
static void delete_pods(void)
{
	static const char *const selectors[] = {"&fieldSelector=spec.nodeName%3D", ""};

	kill(bed->plane->apis[FOLLOWED].pid, SIGCONT);
	for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
		char *path = mem_printf("/api/v1/namespaces/a/pods?gracePeriodSeconds=0%s",
					selectors[i]);

		control_plane_must(bed->plane, "DELETE", path, NULL);
		free(path);
	}
}

/* victim: killed that long after the beginning; negative: nobody. */
static struct burst run_burst(int victim, int64_t after_ns)
{
	struct burst b = {.bound = 0};
	bool both = true;
	double before;

	assert_true(await(are_empty, NULL, SECONDS));
	before = unsure();
	b.waited_s = -kube_testbed_waited_s(bed);
	make_pods();
	b.began_ns = b.changed_ns = clock_mono_ns();
	while (b.bound + b.refused < BURST || (victim >= 0 && both)) {
		int64_t lasts_ns = clock_mono_ns() - b.began_ns;

		look(&b);
		if (victim >= 0 && both && lasts_ns >= after_ns) {
			b.unsure = unsure() - before;
			kube_testbed_kill_aggregator(bed, victim);
			both = false;
		}
		if ((double)lasts_ns / NS_PER_SEC > scaled_s(SECONDS))
			fail_msg("%d of %d pods are bound and %d are refused", b.bound, BURST,
				 b.refused);
		poll(NULL, 0, LOOK_MS);
	}
	if (both)
		b.unsure = unsure() - before;
	b.waited_s += kube_testbed_waited_s(bed);
	delete_pods();
	return b;
}

/* --- the tests -------------------------------------------------------------------------------- */

static void test_without_the_exchange_a_burst_passes_the_quota(void **state)
{
	struct burst b = run_burst(-1, 0);

	(void)state;
	print_message("%d pods are bound, and there is room for %d\n", b.bound, ROOM);
	assert_true(b.bound > ROOM);
	start_again(0, true);
	start_again(1, true);
	assert_true(await(are_together, NULL, SECONDS));
}

static double seconds(int64_t ns)
{
	return (double)ns / NS_PER_SEC;
}

static void expect_room_is_kept(const struct burst *b)
{
	if (b->bound < ROOM || b->bound > ROOM + b->unsure)
		fail_msg("%d pods are bound, there is room for %d, and %.0f answers went out alone",
			 b->bound, ROOM, b->unsure);
	if (seconds(b->pause_ns) > scaled_s(PAUSE_S) + b->waited_s)
		fail_msg("nothing was decided for %.2f s", seconds(b->pause_ns));
}

static void test_kills(void **state)
{
	const char *count = getenv("PAIR_KILLS");
	int64_t quiet_ns = 0, pause_ns = 0, lasts_ns = 0;
	double alone = 0;

	(void)state;
	for (int i = 0; i < QUIET; i++) {
		struct burst b = run_burst(-1, 0);

		expect_room_is_kept(&b);
		quiet_ns = b.pause_ns > quiet_ns ? b.pause_ns : quiet_ns;
		lasts_ns = b.changed_ns - b.began_ns;
	}
	for (int i = 0; i < (count ? strtol(count, NULL, 10) : KILLS); i++) {
		int victim = (int)randombytes_uniform(2);
		int64_t after_ns =
			randombytes_uniform((uint32_t)(lasts_ns / NS_PER_MS) + 1) * NS_PER_MS;
		struct burst b = run_burst(victim, after_ns);

		print_message(
			"%d: aggregator %d is killed after %.3f s, %d pods are bound, the last "
			"decision is after %.3f s, the longest pause %.3f s\n",
			i, victim, seconds(after_ns), b.bound, seconds(b.changed_ns - b.began_ns),
			seconds(b.pause_ns));
		expect_room_is_kept(&b);
		pause_ns = b.pause_ns > pause_ns ? b.pause_ns : pause_ns;
		alone += b.unsure;
		start(victim, true);
		assert_true(await(are_together, NULL, SECONDS));
	}
	print_message("longest pause: %.3f s, without kills %.3f s; %.0f answers were alone while "
		      "both ran\n",
		      seconds(pause_ns), seconds(quiet_ns), alone);
}

/* All that agents measured, though each aggregator was away for a part of the time. */
static void test_windows_are_equal(void **state)
{
	const struct undisturbed u = {.stack = &stack};
	cJSON *report = fleet_stop(&stack, fleet);
	size_t nodes;

	(void)state;
	fleet = 0;
	assert_non_null(report);
	assert_true(load_number(report, "intervals.unanswered") == 0);
	cJSON_Delete(report);
	for (int i = 0; i < 2; i++)
		frame_account_expect_whole(&stack, i);
	assert_true(undisturbed_await_views(&u, SECONDS));
	assert_true(undisturbed_equal_lists(&u, "nodes", &nodes));
	assert_int_equal(nodes, NODES);
}

static void start_scheduler(void)
{
	char *config = mem_printf("extenders:\n"
				  "- urlPrefix: \"http://127.0.0.1:%d/extender\"\n"
				  "  filterVerb: filter\n"
				  "  prioritizeVerb: prioritize\n"
				  "  weight: 5\n"
				  "  nodeCacheCapable: true\n"
				  "  httpTimeout: 10s\n",
				  extender_tap_port(tap));

	control_plane_start_scheduler(bed->plane, config);
	free(config);
}

/* Nodes by the names of the fleet's, and a quota. */
static void make_cluster(void)
{
	struct buf text = BUF_INIT;
	cJSON *cluster;

	buf_add_str(&text, "{'id':'a cluster','quotas':[{'namespace':'a','min':{'cpu':10000},'max':"
			   "{'cpu':10000}}],'pods':[],'nodes':[");
	for (uint32_t i = 0; i < NODES; i++)
		buf_printf(&text, "%s{'name':'node-%04u','allocatable':{'pods':110,'cpu':16000}}",
			   i ? "," : "", i);
	buf_add_str(&text, "]}");
	cluster = kube_quota_world_parse(text.data);
	kube_quota_world_begin(bed, cluster);
	cJSON_Delete(cluster);
	buf_fini(&text);
}

static bool hear_all(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		cJSON *status = stack_get(&stack, i, "/v1/status");
		double fresh = cJSON_GetNumberValue(json_at(status, "agents.fresh"));

		cJSON_Delete(status);
		if (!(fresh >= NODES))
			return false;
	}
	return true;
}

static void start_fleet(void)
{
	char *also = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[1].ingest_port);
	/* A restarted aggregator is told everything again, so the last acks take a while. */
	const char *const options[] = {"--nodes",     "100",  "--pods-per-node", "10",
				       "--interval",  "1s",   "--ring-span",	 "900s",
				       "--last-acks", "240s", "--also",		 also,
				       NULL};

	fleet = fleet_start(&stack, options);
	free(also);
	assert_true(await(hear_all, NULL, SECONDS));
}

static void test_bed_is_made(void **state)
{
	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	control_plane_start_api(bed->plane, FOLLOWED, true);
	followed = control_plane_kubeconfig(bed->plane, FOLLOWED, "followed.conf",
					    CONTROL_ADMIN_TOKEN);
	stack = (struct stack){.folder = bed->folder, .key_path = bed->key_path};
	for (int i = 0; i < 2; i++) {
		stack.aggregators[i].http_port = bed->aggregators[i].http_port = free_port();
		stack.aggregators[i].ingest_port = bed->aggregators[i].ingest_port = free_port();
		start(i, false);
	}
	for (int i = 0; i < 2; i++)
		cJSON_Delete(kube_testbed_expect_state(bed, i, "elasticquotas", "synced"));
	tap = extender_tap_start(bed->aggregators[0].http_port);
	extender_tap_alternate(tap, bed->aggregators[1].http_port);
	start_scheduler();
	make_cluster();
	start_fleet();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bed_is_made),
		cmocka_unit_test(test_without_the_exchange_a_burst_passes_the_quota),
		cmocka_unit_test(test_kills),
		cmocka_unit_test(test_windows_are_equal),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (fleet)
		process_stop(fleet, SIGKILL);
	kube_testbed_free(bed, failed != 0);
	extender_tap_stop(tap);
	free(followed);
	return failed != 0;
}
