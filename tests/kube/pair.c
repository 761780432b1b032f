/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real kube-scheduler places bursts by two aggregators behind one address, which leads to both in
 * turn. One of both is killed in the midst of each burst. The scheduler binds what a quota has room
 * for, neither more nor less.
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

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/extender_tap.h"
#include "tests/kube_quota_world.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { ROUNDS = 4, BURST = 24, ROOM = 10, SECONDS = 60 };

#define CONNECTED "evenkeel_peer_connected"

static const char story[] =
	"{'id':'a burst','nodes':["
	"{'name':'n1','allocatable':{'pods':110,'cpu':16000}},"
	"{'name':'n2','allocatable':{'pods':110,'cpu':16000}},"
	"{'name':'n3','allocatable':{'pods':110,'cpu':16000}}],"
	"'quotas':[{'namespace':'a','min':{'cpu':10000},'max':{'cpu':10000}}],'pods':[]}";

static struct kube_testbed *bed;
static struct extender_tap *tap;

/* --- the aggregators -------------------------------------------------------------------------- */

static void start(int i)
{
	char *peer = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[1 - i].ingest_port);
	const char *const options[] = {"--peer", peer, NULL};

	kube_testbed_start_aggregator_with(bed, i, bed->plane->admin, options);
	free(peer);
}

static double connected(int i)
{
	char *url = mem_printf("http://127.0.0.1:%d/metrics", bed->aggregators[i].http_port);
	struct buf body = BUF_INIT;
	const char *at = http_get(url, &body) == 200 ? strstr(body.data, "\n" CONNECTED " ") : NULL;
	double value = at ? strtod(at + strlen(CONNECTED) + 2, NULL) : -1;

	buf_fini(&body);
	free(url);
	return value;
}

static bool are_together(void *unused)
{
	(void)unused;
	return connected(0) == 1 && connected(1) == 1;
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

/* --- a burst ---------------------------------------------------------------------------------- */

struct burst {
	int bound, refused; /* at the last look */
	int want; /* bound */
};

static void look(struct burst *b)
{
	cJSON *pods = kube_quota_world_pods(bed);
	const cJSON *pod, *condition;

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
	assert_in_range(b->bound, 0, ROOM);
}

static bool is_under_way(void *ctx)
{
	struct burst *b = ctx;

	look(b);
	return b->bound >= b->want;
}

static bool is_over(void *ctx)
{
	struct burst *b = ctx;

	look(b);
	return b->bound + b->refused == BURST;
}

/* All at once for the scheduler, which so asks about the next pod before the API tells of the last one. */
static void make_pods(void)
{
	kill(bed->plane->scheduler, SIGSTOP);
	for (int i = 0; i < BURST; i++) {
		char *text = mem_printf("{'pod':'p%d','namespace':'a','request':{'cpu':1000}}", i);
		cJSON *pod = kube_quota_world_parse(text);

		kube_quota_world_make_pod(bed, pod);
		cJSON_Delete(pod);
		free(text);
	}
	kill(bed->plane->scheduler, SIGCONT);
}

static void test_bursts_with_a_kill(void **state)
{
	cJSON *cluster = kube_quota_world_parse(story);

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct burst b = {.want = 1 + round};
		int64_t began_ns;

		assert_true(await(are_together, NULL, SECONDS));
		kube_quota_world_begin(bed, cluster);
		make_pods();
		began_ns = clock_mono_ns();
		assert_true(await(is_under_way, &b, SECONDS));
		kube_testbed_kill_aggregator(bed, 1);
		assert_true(await(is_over, &b, SECONDS));
		print_message("%d of %d pods are bound after %.1f s, one aggregator was killed\n",
			      b.bound, BURST, (double)(clock_mono_ns() - began_ns) / 1e9);
		assert_int_equal(b.bound, ROOM);
		start(1);
		kube_quota_world_clear(bed);
	}
	cJSON_Delete(cluster);
}

static void test_bed_is_made(void **state)
{
	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	for (int i = 0; i < 2; i++) {
		bed->aggregators[i].http_port = free_port();
		bed->aggregators[i].ingest_port = free_port();
	}
	start(0);
	start(1);
	for (int i = 0; i < 2; i++)
		cJSON_Delete(kube_testbed_expect_state(bed, i, "elasticquotas", "synced"));
	tap = extender_tap_start(bed->aggregators[0].http_port);
	extender_tap_alternate(tap, bed->aggregators[1].http_port);
	start_scheduler();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bed_is_made),
		cmocka_unit_test(test_bursts_with_a_kill),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	extender_tap_stop(tap);
	return failed != 0;
}
