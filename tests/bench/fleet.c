/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole aggregator that knows the cluster's objects under 5000 agents that report 30 pods of two
 * containers each: real sockets, seals and frames from other processes on the same machine, which
 * take their share of it. What the simulator itself used is a row, too, so that a machine too small
 * or too busy for both can be told from an aggregator that is too slow. First as it is meant, every
 * 5 s, with a kill and a restart; then every second, for which nothing is promised.
 * build/tests/soak does the same with other numbers, for longer.
 */
#include "shared/clock.h"
#include "tests/bench_report.h"
#include "tests/soak/soak.h"

int main(void)
{
	struct soak_config config = {
		.nodes = 5000,
		.pods_per_node = 30,
		.duration_ns = 60 * NS_PER_SEC,
		.reading_ns = 5 * NS_PER_SEC,
		.query_ns = 500 * NS_PER_MS,
		.answers_each = 100,
		.objects = true,
		.restart = true,
		.budgets = true,
		.interval_ns = 5 * NS_PER_SEC,
		.pod_life = "20m",
		.prefix = "5 s: ",
	};
	struct soak_result result;
	int failed;

	bench_begin("fleet");
	failed = soak_run(&config, &result);
	config.interval_ns = NS_PER_SEC;
	config.restart = config.budgets = false;
	config.duration_ns = 30 * NS_PER_SEC;
	config.answers_each = 0;
	config.prefix = "1 s: ";
	if (!failed)
		failed = soak_run(&config, &result);
	bench_end();
	return failed;
}
