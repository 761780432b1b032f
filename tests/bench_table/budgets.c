/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_table/budgets.h"

#define PROMISE(text)                                                                              \
	{                                                                                          \
		.what = (text)                                                                     \
	}
#define AT_MOST(text, most, in, of, name)                                                          \
	{                                                                                          \
		.what = (text), .limit = (most), .unit = (in), .bench = (of), .row = (name)        \
	}
#define AT_LEAST(text, least, in, of, name)                                                        \
	{                                                                                          \
		.what = (text), .limit = (least), .unit = (in), .bench = (of), .row = (name),      \
		.at_least = true                                                                   \
	}
#define BY_TEST(text, by, where)                                                                   \
	{                                                                                          \
		.what = (text), .step = (by), .note = (where)                                      \
	}

#define MINUTES(text, most, of)                                                                    \
	{                                                                                          \
		.what = (text), .limit = (most), .unit = "min", .step = (of), .note = ".ci/run"    \
	}

const struct budget budgets[] = {
	PROMISE("agent, 500 cgroups, 10 Hz (run with --cpu-budget 100)"),
	AT_MOST("v2, 10 Hz: lower bound on the unified tree", 1, "% of core", "agent_cost",
		"agent CPU, 500 cgroups, 10 Hz, v2 alone"),
	AT_MOST("v1, three walks, 10 Hz", 2, "% of core", "agent_cost",
		"agent CPU, 500 cgroups, 10 Hz, v1 and v2"),
	AT_MOST("v2, 1 Hz: lower bound on the unified tree", 0.1, "% of core", "agent_cost",
		"agent CPU, 500 cgroups, 1 Hz, v2 alone"),
	AT_MOST("v1, three walks, 1 Hz", 0.2, "% of core", "agent_cost",
		"agent CPU, 500 cgroups, 1 Hz, v1 and v2"),

	PROMISE("one pass against cgroupfs open/read/close of the same fields"),
	AT_LEAST("v1", 10, "x", "sampler_pass", "v1, 500 cgroups, fast (2 files): open/read/close"),
	AT_LEAST("v1, against kept fds + pread: all fields", 4, "x", "sampler_pass",
		 "v1, 500 cgroups, slow (8 files): kept files, pread"),
	AT_LEAST("v1, against kept fds + pread: CPU and memory alone", 4, "x", "sampler_pass",
		 "v1, 500 cgroups, fast (2 files): kept files, pread"),
	AT_LEAST("v2, on a machine with all controllers in it", 35, "x", "sampler_pass",
		 "v2, 500 cgroups, slow (9 files): open/read/close"),
	AT_LEAST("v2, against kept fds + pread", 6, "x", "sampler_pass",
		 "v2, 500 cgroups, slow (9 files): kept files, pread"),

	PROMISE("agent resident memory, start to first sample"),
	AT_MOST("at 500 cgroups with an empty ring", 8, "MiB", "agent_cost",
		"agent resident memory at first sample, v1 and v2"),
	AT_MOST("with a full one", 16, "MiB", "agent_cost",
		"agent resident memory, ring full, v1 and v2"),
	AT_MOST("start to first sample", 250, "ms", "agent_cost",
		"agent start to first sample, v1 and v2"),

	PROMISE("5000 agents enrol with an aggregator that has no keys of nodes"),
	AT_MOST("by token reviews of an API server that answers at once", 30, "s", "enrolment",
		"5000 nodes enrolled by TokenReview"),

	PROMISE("CPU and memory values"),
	BY_TEST("equal to cgroupfs for a stopped task", "make check",
		"tests/integration/sampler, ground_truth"),
	BY_TEST("on every kernel of the matrix", "make check-vm", "make check-vm"),

	PROMISE("aggregator at 5000 nodes x 30 pods, 5 s publish, objects known"),
	AT_MOST("CPU", 30, "% of core", "fleet", "5 s: CPU of the aggregator, of one core"),
	AT_MOST("resident", 1024, "MiB", "fleet", "5 s: resident memory, last quarter"),
	AT_MOST("ack p99", 5, "ms", "fleet", "5 s: ack of an interval, 99 of 100"),
	AT_MOST("killed: until all agents are heard again", 30, "s", "fleet",
		"5 s: from the kill of the aggregator until all agents are heard"),

	PROMISE("scores of 5000 nodes for one pod, all plugins, over HTTP"),
	AT_MOST("p99", 10, "ms", "scores", "6 plugins, 5000 nodes, over HTTP, p99"),
	AT_MOST("p99, under that fleet", 10, "ms", "fleet",
		"5 s: scores of all nodes, all plugins, 99 of 100"),
	AT_MOST("extender prioritize of 5000 names, p99", 5, "ms", "extender",
		"prioritize of 5000 names, p99"),
	AT_MOST("the same under that fleet", 5, "ms", "fleet",
		"5 s: extender prioritize, 99 of 100"),

	PROMISE("quota admission: O(resources)"),
	AT_MOST("nobody nominated", 10, "us", "quota", "admission, nobody nominated"),
	AT_MOST("10 pods nominated", 10, "us", "quota", "admission, 10 pods nominated"),

	PROMISE("joint drain plan with spread and anti-affinity"),
	AT_MOST("5000 nodes / 150k pods", 0.5, "s", "drain",
		"plan of 5000 nodes of 30 pods, with rules and cap"),
	AT_MOST("15,000 nodes", 3, "s", "drain",
		"plan of 15000 nodes of 30 pods, with rules and cap"),

	PROMISE("pod list from the API, 150k pods"),
	AT_LEAST("speed", 100, "MB/s", "kube_list", "150,000 pods listed into the model over TLS"),
	AT_MOST("peak memory above the model", 32, "MiB", "kube_list",
		"peak memory above the model"),

	PROMISE(".ci/run"),
	MINUTES("all steps", 90, ""),
	MINUTES("check", 5, "make check"),
	MINUTES("sanitizers and clang", 12,
		"make CC=clang SAN=address,undefined check-integration"),
	MINUTES("vm", 6, "make check-vm"),
	MINUTES("kube, 1.37", 15, "make check-kube KUBE=1.37"),
	MINUTES("kube, 1.20", 15, "make check-kube KUBE=1.20"),
	MINUTES("node", 10, "make check-node"),
	MINUTES("faults", 10, "make check-faults"),
};

const size_t budget_count = sizeof(budgets) / sizeof(budgets[0]);
