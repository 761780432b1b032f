/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small cluster, served for real: whole answers over the network, and the tables that the
 * program makes of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "aggregator/edge/http/http.h"
#include "shared/mem.h"
#include "tests/http_plain.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

static struct http_server *server;
static struct counters counters;
static struct api_context ctx;

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static int start_server(void **state)
{
	struct error error;

	(void)state;
	ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &counters,
		.now_ns = fixed_now,
		.watcher_smoothed = 1,
	};
	view_slot_publish(ctx.views, view_fixture_new());
	if (http_plain_start(&server, "127.0.0.1:0", &ctx, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

static int stop_server(void **state)
{
	(void)state;
	http_stop(server);
	view_slot_free(ctx.views);
	return 0;
}

static void check_body(const char *target, const char *want)
{
	char *url = mem_printf("http://%s%s", http_address(server), target);
	struct buf body = BUF_INIT;

	assert_int_equal(http_get(url, &body), 200);
	assert_string_equal(body.data, want);
	buf_fini(&body);
	free(url);
}

/* Whole answers, as the network carries them. */
static void test_bodies(void **state)
{
	static const char mute[] =
		"{\"apiVersion\":\"evenkeel.io/"
		"v1\",\"kind\":\"NodeList\",\"time\":\"2026-01-31T12:00:00Z\",\"items\":[{\"name\":"
		"\"mute\",\"source\":{\"state\":\"none\"},\"usage\":{},\"contention\":{\"cpu\":"
		"null,\"memory\":null,\"cpuStalledRatio\":null,\"memoryStalledRatio\":null,"
		"\"throttledRatio\":null,\"throttledSeconds\":null,\"oomKills\":null}}],\"total\":{"
		"\"nodes\":1,\"source\":{\"fresh\":0,\"late\":0,\"expired\":0,\"none\":1},"
		"\"measured\":{\"nodes\":0,\"capacity\":{},\"allocatable\":{}},\"usage\":{}}}\n";
	static const char delta[] =
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"PodList\","
		"\"time\":\"2026-01-31T12:00:00Z\",\"items\":["
		"{\"namespace\":\"\",\"name\":\"kubepods/besteffort/pod-delta\",\"node\":\"delta\","
		"\"qosClass\":\"BestEffort\",\"workload\":{\"kind\":\"Pod\","
		"\"name\":\"kubepods/besteffort/pod-delta\"},"
		"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":50,"
		"\"end\":\"2026-01-31T11:59:59Z\"},\"windows\":{}}},"
		"\"contention\":{\"cpu\":null,\"memory\":null,\"cpuStalledRatio\":null,"
		"\"memoryStalledRatio\":null,\"throttledRatio\":null,\"throttledSeconds\":null,"
		"\"oomKills\":null,\"cause\":null},\"containers\":[]}]}\n";

	(void)state;
	check_body("/v1/nodes?node=mute", mute);
	check_body("/v1/pods?node=delta", delta);
}

/* What people see of the same cluster, by the command line's program. */
static void test_tables(void **state)
{
	static const struct {
		char *args[3];
		const char *table;
	} cases[] = {
		{{"nodes", NULL},
		 "NAME          CPU  CPU%  MEAN(5m)  SIGMA   P95  CPU-MAX    MEMORY  MEM%  WORKSET "
		 " AGE            TIER\n"
		 "*      4.01/11.40   35%      3.50      -     -        -  6.0/21Gi   29%    3.0Gi "
		 " -              -\n"
		 "alpha   1.10/3.80   29%      1.00   100m  1.20     1.40   2.0/7Gi   29%    1.0Gi "
		 " 2s             T1\n"
		 "bravo   2.40/3.80   63%      2.00   400m  2.80     3.60   2.0/7Gi   29%    1.0Gi "
		 " 1m00s late     T1\n"
		 "delta   510m/3.80   13%      500m    10m  520m     540m   2.0/7Gi   29%    1.0Gi "
		 " 1s             T1\n"
		 "gone    3.01/3.80   79%      3.00    10m  3.02     3.04   2.0/7Gi   29%    1.0Gi "
		 " 6m40s expired  T1\n"
		 "mute            -     -         -      -     -        -         -     -        - "
		 " never          -\n"},
		{{"nodes", "-owide", NULL},
		 "NAME          CPU  CPU%   P95  CPU-MAX  MEAN±SIGMA(5m)      (10m)      (15m)    "
		 "MEMORY  MEM%  WORKSET     SWAP  PIDS  IOWAIT  STEAL  WAITING  STALLED  OOM  AGE  "
		 "          TIER  HZ  PASS  MISSED  AGENT-CPU\n"
		 "*      4.01/11.40   35%     -        -            3.50       3.60       3.70  "
		 "6.0/21Gi   29%    3.0Gi        -     -       -      -        -        -    -  -  "
		 "            -      -     -       -          -\n"
		 "alpha   1.10/3.80   29%  1.20     1.40       1.00±0.10  1.10±0.20  1.20±0.30   "
		 "2.0/7Gi   29%    1.0Gi  128.0Mi   321      3%     1%    13%/-     3%/-    1  2s  "
		 "           T1    10  85us       3       4.5m\n"
		 "bravo   2.40/3.80   63%  2.80     3.60       2.00±0.40  2.00±0.40  2.00±0.40   "
		 "2.0/7Gi   29%    1.0Gi        -     -      3%     1%    13%/-     3%/-    1  "
		 "1m00s late     T1    10  85us       3       4.5m\n"
		 "delta   510m/3.80   13%  520m     540m        500m±10m   500m±10m   500m±10m   "
		 "2.0/7Gi   29%    1.0Gi        -     -      3%     1%    13%/-     3%/-    1  1s  "
		 "           T1    10  85us       3       4.5m\n"
		 "gone    3.01/3.80   79%  3.02     3.04       3.00±0.01  3.00±0.01  3.00±0.01   "
		 "2.0/7Gi   29%    1.0Gi        -     -      3%     1%    13%/-     3%/-    1  "
		 "6m40s expired  T1    10  85us       3       4.5m\n"
		 "mute            -     -     -        -               -          -          -     "
		 "    -     -        -        -     -       -      -        -        -    -  never "
		 "         -      -     -       -          -\n"},
		{{"pods", "-owide", NULL},
		 "NAME                           NODE    CPU  MEAN(5m)  SIGMA  CPU-MAX  CPU-LIM  "
		 "THROTTLED   MEMORY  MEM-LIM     HIGH  WORKSET    SWAP  PIDS  OOM  WAITING  "
		 "STALLED  AGE  QOS\n"
		 "kubepods/besteffort/pod-delta  delta   50m         -      -        -        -    "
		 "      -        -        -        -        -       -     -    -        -        - "
		 " 1s   BestEffort\n"
		 "kubepods/podaaaa               alpha  770m      700m    70m     980m     1.50    "
		 "     3%  512.0Mi     none  512.0Mi  256.0Mi  16.0Mi    12    1    13%/-    3%/6% "
		 " 2s   Guaranteed\n"
		 "system.slice/                  alpha  330m      300m    30m     420m     none    "
		 "      -  256.0Mi     none        -  128.0Mi       -     -    1    13%/-     3%/- "
		 " 2s   -\n"
		 "system.slice/ssh.service       alpha  110m      100m    10m     140m        -    "
		 "      -  128.0Mi        -        -   64.0Mi       -     -    1    13%/-     3%/- "
		 " 2s   -\n"},
	};
	char *option = mem_printf("--server=http://%s", http_address(server));

	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char *)program_path("evenkeel"), option, cases[i].args[0],
				cases[i].args[1], NULL};
		struct buf out = BUF_INIT, err = BUF_INIT;

		assert_int_equal(process_run(argv, &out, &err), 0);
		assert_string_equal(out.data, cases[i].table);
		assert_int_equal(err.len, 0);
		buf_fini(&out);
		buf_fini(&err);
	}
	free(option);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
