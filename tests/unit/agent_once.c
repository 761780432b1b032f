/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --once prints of an interval made by hand: whole tables at several widths, the whole object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/once.h"
#include "shared/clock.h"

#define START_NS  (1769860800LL * NS_PER_SEC) /* 2026-01-31T12:00:00Z */
#define POD_PATH  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podX.slice"
#define POD_UID	  "2b1c5f6e-0d3a-4a8e-9b1f-6a7b8c9d0e1f"
#define FIRST_ID  "a81f00000000000000000000000000000000000000000000000000000000c2d3"
#define SECOND_ID "b92e00000000000000000000000000000000000000000000000000000000d3e4"
#define MI	  (1 << 20)

/* A row of the interval: what differs among them. */
struct row {
	uint32_t parent;
	enum entity_kind kind;
	enum qos_class qos;
	enum container_runtime runtime;
	const char *pod_uid, *container_id, *name;
	float cpu_mean, cpu_m2, mem_last;
	uint32_t have, periods, throttled_periods, oom_kills, pids;
	uint64_t throttled_ns, contention_cpu_ns, swap_bytes;
	struct kernel_limits limits;
};

enum {
	ALL = USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |
	      USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU |
	      USAGE_STALL_MEMORY | USAGE_SWAP | USAGE_PIDS,
	FILES = USAGE_CPU | USAGE_MEMORY,
};

#define NO_LIMITS                                                                                  \
	{                                                                                          \
		LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0                   \
	}
#define UNKNOWN_LIMITS                                                                             \
	{                                                                                          \
		LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_UNKNOWN,         \
			LIMIT_UNKNOWN, LIMIT_UNKNOWN                                               \
	}

static const struct row with_pods[] = {
	{.kind = ENTITY_UNIT,
	 .name = "system.slice/ssh.service",
	 .cpu_mean = 2.25F,
	 .mem_last = 5.5F * MI,
	 .have = FILES,
	 .limits = UNKNOWN_LIMITS},
	{.kind = ENTITY_POD,
	 .qos = QOS_BURSTABLE,
	 .pod_uid = POD_UID,
	 .name = POD_PATH,
	 .cpu_mean = 300,
	 .cpu_m2 = 8000,
	 .mem_last = 60 * MI,
	 .have = ALL,
	 .periods = 40,
	 .throttled_periods = 10,
	 .pids = 12,
	 .throttled_ns = 900000000,
	 .contention_cpu_ns = 500000000,
	 .limits = {500, 256 * MI, LIMIT_NONE, 0, 100, 20000000, 0}},
	{.parent = 2,
	 .kind = ENTITY_CONTAINER,
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD,
	 .pod_uid = POD_UID,
	 .container_id = FIRST_ID,
	 .name = POD_PATH "/cri-containerd-" FIRST_ID ".scope",
	 .cpu_mean = 80,
	 .mem_last = 10 * MI,
	 .have = ALL,
	 .oom_kills = 2,
	 .pids = 1,
	 .throttled_ns = 3250000000,
	 .limits = NO_LIMITS},
	{.parent = 2,
	 .kind = ENTITY_CONTAINER,
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD,
	 .pod_uid = POD_UID,
	 .container_id = SECOND_ID,
	 .name = POD_PATH "/cri-containerd-" SECOND_ID ".scope",
	 .cpu_mean = 220,
	 .mem_last = 50 * MI,
	 .have = ALL,
	 .pids = 11,
	 .swap_bytes = 3 * MI,
	 .limits = {500, 128 * MI, 96 * MI, 0, 100, 0, 0}},
	{.parent = 77, /* of a pod that is not listed */
	 .kind = ENTITY_CONTAINER,
	 .runtime = RUNTIME_PODMAN,
	 .container_id = FIRST_ID,
	 .name = "machine.slice/libpod-" FIRST_ID ".scope",
	 .cpu_mean = 1500,
	 .mem_last = 20 * MI,
	 .have = FILES,
	 .limits = UNKNOWN_LIMITS},
	{.kind = ENTITY_SLICE, /* without CPU: last */
	 .name = "idle.slice",
	 .mem_last = MI,
	 .have = USAGE_MEMORY,
	 .limits = NO_LIMITS},
};

static const struct row plain[] = {
	{.kind = ENTITY_UNIT,
	 .name = "b",
	 .cpu_mean = 5,
	 .mem_last = MI,
	 .have = FILES,
	 .limits = UNKNOWN_LIMITS},
	{.kind = ENTITY_UNIT,
	 .name = "a",
	 .cpu_mean = 5,
	 .mem_last = 2 * MI,
	 .have = FILES,
	 .limits = NO_LIMITS},
};

static struct gauge gauge(float last)
{
	return (struct gauge){.mean = last / 2, .max = last * 2, .last = last};
}

static void fill(struct entry *e, uint32_t ref, const struct row *r)
{
	e->ref = ref;
	e->entity = entity_new(ref, r->kind, r->name);
	e->entity->parent = r->parent;
	e->entity->qos = r->qos;
	e->entity->runtime = r->runtime;
	if (r->pod_uid)
		memcpy(e->entity->pod_uid, r->pod_uid, strlen(r->pod_uid));
	if (r->container_id)
		memcpy(e->entity->container_id, r->container_id, strlen(r->container_id));
	e->limits = r->limits;
	e->usage = (struct usage){
		.have = r->have,
		.oom_kills = r->oom_kills,
		.seconds = 5,
		.cpu_milli = {50, 5, r->cpu_mean, r->cpu_m2, r->cpu_mean / 2, r->cpu_mean * 2,
			      r->cpu_mean + 1},
		.mem_bytes = gauge(r->mem_last),
		.working_set_bytes = gauge(r->mem_last / 4),
		.throttled_ns = r->throttled_ns,
		.throttled_periods = r->throttled_periods,
		.periods = r->periods,
		.contention_cpu_ns = r->contention_cpu_ns,
		.contention_mem_ns = 50000,
		.stall_cpu_ns = 1000000000,
		.stall_mem_ns = 0,
		.swap_bytes = r->swap_bytes,
		.pids = r->pids,
	};
}

static void fill_node(struct node_sample *n)
{
	n->usage.have = ALL & ~(unsigned int)(USAGE_SWAP | USAGE_PIDS);
	n->usage.seconds = 5;
	n->usage.cpu_milli = (struct moments32){50, 5, 1780, 392000, 900, 2000, 1800};
	for (int i = 0; i < 50; i++)
		histogram_add(&n->cpu_hist, 900 + 22.0 * i, HISTOGRAM_CPU_X0);
	n->usage.mem_bytes = gauge(4096.0F * MI);
	n->usage.working_set_bytes = gauge(512.0F * MI);
	n->usage.contention_cpu_ns = 600000000;
	n->usage.oom_kills = 2;
	n->cpu_capacity_milli = 2000;
	n->mem_capacity_bytes = 16384LL * MI;
	n->mem_available_bytes = 12288LL * MI;
	n->cpu_split = (struct cpu_split){6000000000, 2500000000, 250000000, 100000000};
	n->tier = TIER_T0;
	n->rate_hz = 10;
	n->missed_ticks = 1;
	n->overflow = 3;
	n->pass_ns = 181400;
	n->agent_cpu_ns = 20500000;
}

static struct interval *make(const struct row *rows, size_t count)
{
	struct interval *i = interval_new(count);

	i->sequence = 1;
	i->start_ns = START_NS;
	i->end_ns = START_NS + 5 * NS_PER_SEC;
	fill_node(&i->node);
	for (size_t n = 0; n < count; n++)
		fill(&i->entries[n], (uint32_t)n + 1, &rows[n]);
	return i;
}

static void check_table(const struct row *rows, size_t count, size_t width, const char *want)
{
	struct interval *i = make(rows, count);
	struct once_sample sample = {.node = "worker-1", .cgroups = 42, .interval = i};
	struct buf text = BUF_INIT;

	once_table_write(&sample, width, &text);
	assert_string_equal(text.data, want);
	buf_fini(&text);
	interval_free(i);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define SOURCE                                                                                     \
	"TIER  RATE  SAMPLES   PASS  MISSED  CGROUPS  OVERFLOW  AGENT-CPU\n"                       \
	"T0    10Hz       50  181us       1       42         3       4.1m\n\n"
#define HEAD                                                                                       \
	"NODE         CPU  SIGMA  CPU-MIN   P95  CPU-MAX  USER  SYSTEM  IOWAIT  STEAL  WAITING   " \
	" "                                                                                        \
	"MEMORY  WORKSET\n"                                                                        \
	"worker-1  1.78/2   280m     900m  1.95     2.00  1.20    500m     50m    20m      12%  "  \
	"4.0/16Gi  512.0Mi\n\n" SOURCE

static void test_without_a_terminal_the_table_has_everything(void **state)
{
	(void)state;
	check_table(with_pods, COUNT(with_pods), 0,
		    HEAD "NAME                                                                     "
			 "                    KIND       QOS         CPU  SIGMA  CPU-MAX  CPU-LIM  "
			 "THROTTLED  WAITING  MEMORY  MEM-LIM  WORKSET   SWAP  PIDS  OOM\n"
			 "machine.slice/"
			 "libpod-a81f00000000000000000000000000000000000000000000000000000000c2d3."
			 "scope  Container  -          1.50     0m     3.00        -          -    "
			 "    -  20.0Mi        -        -      -     -    -\n"
			 "2b1c5f6e-0d3a-4a8e-9b1f-6a7b8c9d0e1f                                     "
			 "                    Pod        Burstable  300m    40m     600m     500m  "
			 "      25%      10%  60.0Mi  256.0Mi   15.0Mi      0    12    0\n"
			 "  b92e00000000000000000000000000000000000000000000000000000000d3e4       "
			 "                    Container  Burstable  220m     0m     440m     500m  "
			 "       0%       0%  50.0Mi  128.0Mi   12.5Mi  3.0Mi    11    0\n"
			 "  a81f00000000000000000000000000000000000000000000000000000000c2d3       "
			 "                    Container  Burstable   80m     0m     160m     none  "
			 "     3.2s       0%  10.0Mi     none    2.5Mi      0     1    2\n"
			 "system.slice/ssh.service                                                 "
			 "                    Unit       -          2.2m     0m     4.5m        -  "
			 "        -        -   5.5Mi        -        -      -     -    -\n"
			 "idle.slice                                                               "
			 "                    Slice      -             -      -        -     none  "
			 "        -        -   1.0Mi     none        -      -     -    -\n");
}

static void test_names_give_way_first(void **state)
{
	(void)state;
	check_table(with_pods, COUNT(with_pods), 120,
		    HEAD "NAME                   KIND        CPU  SIGMA  CPU-MAX  CPU-LIM  "
			 "THROTTLED  WAITING  MEMORY  MEM-LIM  WORKSET  PIDS  OOM\n"
			 "machine.sl…c2d3.scope  Container  1.50     0m     3.00        -          "
			 "-        -  20.0Mi        -        -     -    -\n"
			 "2b1c5f6e-0…7b8c9d0e1f  Pod        300m    40m     600m     500m        "
			 "25%      10%  60.0Mi  256.0Mi   15.0Mi    12    0\n"
			 "  b92e0000…000000d3e4  Container  220m     0m     440m     500m         "
			 "0%       0%  50.0Mi  128.0Mi   12.5Mi    11    0\n"
			 "  a81f0000…000000c2d3  Container   80m     0m     160m     none       "
			 "3.2s       0%  10.0Mi     none    2.5Mi     1    2\n"
			 "system.sli…sh.service  Unit       2.2m     0m     4.5m        -          "
			 "-        -   5.5Mi        -        -     -    -\n"
			 "idle.slice             Slice         -      -        -     none          "
			 "-        -   1.0Mi     none        -     -    -\n");
}

static void test_a_narrow_terminal_loses_columns(void **state)
{
	(void)state;
	check_table(
		with_pods, COUNT(with_pods), 80,
		"NODE         CPU  SIGMA   P95  CPU-MAX  USER  SYSTEM  STEAL    MEMORY  WORKSET\n"
		"worker-1  1.78/2   280m  1.95     2.00  1.20    500m    20m  4.0/16Gi  512.0Mi\n"
		"\n" SOURCE
		"NAME                        CPU  SIGMA  CPU-LIM  THROTTLED  MEMORY  MEM-LIM  OOM\n"
		"machine.slic…00c2d3.scope  1.50     0m        -          -  20.0Mi        -    -\n"
		"2b1c5f6e-0d3…6a7b8c9d0e1f  300m    40m     500m        25%  60.0Mi  256.0Mi    0\n"
		"  b92e000000…00000000d3e4  220m     0m     500m         0%  50.0Mi  128.0Mi    0\n"
		"  a81f000000…00000000c2d3   80m     0m     none       3.2s  10.0Mi     none    2\n"
		"system.slice/ssh.service   2.2m     0m        -          -   5.5Mi        -    -\n"
		"idle.slice                    -      -     none          -   1.0Mi     none    "
		"-\n");
}

static void test_columns_of_nothing_are_left_out(void **state)
{
	(void)state;
	check_table(plain, COUNT(plain), 0,
		    HEAD "NAME  KIND   CPU  SIGMA  CPU-MAX  CPU-LIM  THROTTLED  MEMORY  MEM-LIM  "
			 "WORKSET  OOM\n"
			 "a     Unit  5.0m     0m      10m     none          -   2.0Mi     none    "
			 "    -    -\n"
			 "b     Unit  5.0m     0m      10m        -          -   1.0Mi        -    "
			 "    -    -\n");
	check_table(NULL, 0, 0,
		    HEAD "NAME  KIND  CPU  SIGMA  CPU-MAX  CPU-LIM  THROTTLED  MEMORY  MEM-LIM  "
			 "WORKSET  OOM\n");
}

static const char every_member[] =
	"{\"apiVersion\":\"evenkeel.io/v1\","
	"\"kind\":\"NodeSample\",\"time\":\"2026-01-31T12:00:05Z\","
	"\"start\":\"2026-01-31T12:00:00Z\",\"end\":\"2026-01-31T12:00:05Z\","
	"\"node\":{\"name\":\"worker-1\","
	"\"source\":{\"tier\":\"T0\",\"rateHz\":10,\"missedTicks\":1,\"overflowCgroups\":3,"
	"\"agentCpuMillicores\":4.1,\"passMicroseconds\":181.4},\"cgroups\":42,"
	"\"capacity\":{\"cpuMillicores\":2000,"
	"\"memoryBytes\":17179869184},"
	"\"machine\":{\"cpuMillicores\":{\"user\":1200,\"system\":500,\"iowait\":50,"
	"\"steal\":20},\"memoryAvailableBytes\":12884901888},"
	"\"usage\":{\"cpuMillicores\":{\"samples\":50,\"mean\":1780,\"stddev\":280,\"p50\":"
	"1437.708,\"p95\":1952.963,\"p99\":2000,\"min\":900,\"max\":2000,\"last\":1800}"
	","
	"\"memoryBytes\":{\"mean\":2147483648,\"max\":8589934592,\"last\":4294967296},"
	"\"workingSetBytes\":{\"mean\":268435456,\"max\":1073741824,\"last\":536870912}},"
	"\"contention\":{\"cpu\":0.12,\"memory\":0,\"cpuStalledRatio\":0,"
	"\"memoryStalledRatio\":0,\"throttledRatio\":null,\"throttledSeconds\":0,"
	"\"oomKills\":2}},"
	"\"items\":[{"
	"\"kind\":\"Container\",\"name\":\"machine.slice/libpod-" FIRST_ID ".scope\","
	"\"containerID\":\"" FIRST_ID "\",\"runtime\":\"podman\","
	"\"usage\":{\"cpuMillicores\":{\"samples\":50,\"mean\":1500,\"stddev\":0,\"min\":"
	"750,\"max\":3000,\"last\":1501},"
	"\"memoryBytes\":{\"mean\":10485760,\"max\":41943040,\"last\":20971520}},"
	"\"contention\":{\"cpu\":null,\"memory\":null,\"cpuStalledRatio\":null,"
	"\"memoryStalledRatio\":null,\"throttledRatio\":null,\"throttledSeconds\":null,"
	"\"oomKills\":null}},{"
	"\"kind\":\"Pod\",\"name\":\"" POD_PATH "\","
	"\"podUID\":\"" POD_UID "\",\"qosClass\":\"Burstable\","
	"\"usage\":{\"cpuMillicores\":{\"samples\":50,\"mean\":300,\"stddev\":40,\"min\":"
	"150,\"max\":600,\"last\":301},"
	"\"memoryBytes\":{\"mean\":31457280,\"max\":125829120,\"last\":62914560},"
	"\"workingSetBytes\":{\"mean\":7864320,\"max\":31457280,\"last\":15728640},"
	"\"swapBytes\":{\"last\":0},\"pids\":{\"last\":12}},"
	"\"kernelLimits\":{\"cpuMillicores\":500,"
	"\"memoryBytes\":268435456,\"memoryHighBytes\":null,"
	"\"swapBytes\":0,\"pids\":100,\"cpuBurstMicroseconds\":20000},"
	"\"contention\":{\"cpu\":0.1,\"memory\":0.00001,\"cpuStalledRatio\":0.2,"
	"\"memoryStalledRatio\":0,\"throttledRatio\":0.25,\"throttledSeconds\":0.9,"
	"\"oomKills\":0}},{"
	"\"kind\":\"Container\",\"name\":\"" POD_PATH "/cri-containerd-" SECOND_ID ".scope\","
	"\"podUID\":\"" POD_UID "\","
	"\"containerID\":\"" SECOND_ID "\",\"qosClass\":\"Burstable\",\"runtime\":\"containerd\","
	"\"pod\":\"" POD_PATH "\","
	"\"usage\":{\"cpuMillicores\":{\"samples\":50,\"mean\":220,\"stddev\":0,\"min\":"
	"110,\"max\":440,\"last\":221},"
	"\"memoryBytes\":{\"mean\":26214400,\"max\":104857600,\"last\":52428800},"
	"\"workingSetBytes\":{\"mean\":6553600,\"max\":26214400,\"last\":13107200},"
	"\"swapBytes\":{\"last\":3145728},\"pids\":{\"last\":11}},"
	"\"kernelLimits\":{\"cpuMillicores\":500,"
	"\"memoryBytes\":134217728,\"memoryHighBytes\":100663296,"
	"\"swapBytes\":0,\"pids\":100,\"cpuBurstMicroseconds\":0},"
	"\"contention\":{\"cpu\":0,\"memory\":0.00001,\"cpuStalledRatio\":0.2,"
	"\"memoryStalledRatio\":0,\"throttledRatio\":null,\"throttledSeconds\":0,"
	"\"oomKills\":0}},{"
	"\"kind\":\"Container\",\"name\":\"" POD_PATH "/cri-containerd-" FIRST_ID ".scope\","
	"\"podUID\":\"" POD_UID "\","
	"\"containerID\":\"" FIRST_ID "\",\"qosClass\":\"Burstable\",\"runtime\":\"containerd\","
	"\"pod\":\"" POD_PATH "\","
	"\"usage\":{\"cpuMillicores\":{\"samples\":50,\"mean\":80,\"stddev\":0,\"min\":40,"
	"\"max\":160,\"last\":81},"
	"\"memoryBytes\":{\"mean\":5242880,\"max\":20971520,\"last\":10485760},"
	"\"workingSetBytes\":{\"mean\":1310720,\"max\":5242880,\"last\":2621440},"
	"\"swapBytes\":{\"last\":0},\"pids\":{\"last\":1}},"
	"\"kernelLimits\":{\"cpuMillicores\":null,"
	"\"memoryBytes\":null,\"memoryHighBytes\":null,"
	"\"swapBytes\":null,\"pids\":null,\"cpuBurstMicroseconds\":0},"
	"\"contention\":{\"cpu\":0,\"memory\":0.00001,\"cpuStalledRatio\":0.2,"
	"\"memoryStalledRatio\":0,\"throttledRatio\":null,\"throttledSeconds\":3.25,"
	"\"oomKills\":2}},{"
	"\"kind\":\"Unit\",\"name\":\"system.slice/ssh.service\","
	"\"usage\":{\"cpuMillicores\":{\"samples\":50,\"mean\":2.25,\"stddev\":0,\"min\":1."
	"125,\"max\":4.5,\"last\":3.25},"
	"\"memoryBytes\":{\"mean\":2883584,\"max\":11534336,\"last\":5767168}},"
	"\"contention\":{\"cpu\":null,\"memory\":null,\"cpuStalledRatio\":null,"
	"\"memoryStalledRatio\":null,\"throttledRatio\":null,\"throttledSeconds\":null,"
	"\"oomKills\":null}},{"
	"\"kind\":\"Slice\",\"name\":\"idle.slice\","
	"\"usage\":{"
	"\"memoryBytes\":{\"mean\":524288,\"max\":2097152,\"last\":1048576}},"
	"\"kernelLimits\":{\"cpuMillicores\":null,"
	"\"memoryBytes\":null,\"memoryHighBytes\":null,"
	"\"swapBytes\":null,\"pids\":null,\"cpuBurstMicroseconds\":0},"
	"\"contention\":{\"cpu\":null,\"memory\":null,\"cpuStalledRatio\":null,"
	"\"memoryStalledRatio\":null,\"throttledRatio\":null,\"throttledSeconds\":null,"
	"\"oomKills\":null}}]}"
	"\n";

static void test_the_object_has_every_member(void **state)
{
	struct interval *i = make(with_pods, COUNT(with_pods));
	struct once_sample sample = {.node = "worker-1", .cgroups = 42, .interval = i};
	struct buf text = BUF_INIT;
	(void)state;

	once_json_write(&sample, &text);
	assert_string_equal(text.data, every_member);
	buf_fini(&text);
	interval_free(i);
}

/* An interval in which nothing was measured, of no length. */
static void test_what_is_unknown_is_absent(void **state)
{
	struct interval *i = interval_new(0);
	struct once_sample sample = {.node = "n", .interval = i};
	struct buf text = BUF_INIT;
	(void)state;

	i->node.cpu_capacity_milli = 4000;
	i->node.mem_capacity_bytes = 8192LL * MI;
	once_json_write(&sample, &text);
	assert_string_equal(
		text.data,
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"NodeSample\","
		"\"time\":\"1970-01-01T00:00:00Z\",\"start\":\"1970-01-01T00:00:00Z\","
		"\"end\":\"1970-01-01T00:00:00Z\",\"node\":{\"name\":\"n\",\"source\":{\"tier\":"
		"\"T0\","
		"\"rateHz\":0,\"missedTicks\":0,\"overflowCgroups\":0,\"passMicroseconds\":0},"
		"\"cgroups\":0,\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":8589934592},"
		"\"machine\":{"
		"\"cpuMillicores\":{}},\"usage\":{},\"contention\":{\"cpu\":null,\"memory\":null,"
		"\"cpuStalledRatio\":null,\"memoryStalledRatio\":null,\"throttledRatio\":null,"
		"\"throttledSeconds\":null,\"oomKills\":null}},\"items\":[]}\n");
	buf_clear(&text);
	once_table_write(&sample, 0, &text);
	assert_string_equal(text.data,
			    "NODE  CPU  SIGMA  CPU-MIN  P95  CPU-MAX  USER  SYSTEM  IOWAIT  STEAL  "
			    " MEMORY  WORKSET\n"
			    "n     -/4      -        -    -        -     -       -       -      -  "
			    "-/8.0Gi        -\n"
			    "\n"
			    "TIER  RATE  SAMPLES  PASS  MISSED  CGROUPS  OVERFLOW  AGENT-CPU\n"
			    "T0     0Hz        0   0us       0        0         0          -\n"
			    "\n"
			    "NAME  KIND  CPU  SIGMA  CPU-MAX  CPU-LIM  THROTTLED  MEMORY  MEM-LIM  "
			    "WORKSET  OOM\n");
	buf_fini(&text);
	interval_free(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_terminal_the_table_has_everything),
		cmocka_unit_test(test_names_give_way_first),
		cmocka_unit_test(test_a_narrow_terminal_loses_columns),
		cmocka_unit_test(test_columns_of_nothing_are_left_out),
		cmocka_unit_test(test_the_object_has_every_member),
		cmocka_unit_test(test_what_is_unknown_is_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
