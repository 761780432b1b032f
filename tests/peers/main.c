/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make bench-peers: ours beside theirs, in one run. The environment names their programs:
 * PEER_CA, compiled benchmarks of cluster-autoscaler; PEER_SCHEDULER, a kube-scheduler with
 * Trimaran's plugins. Without a program its comparison is skipped.
 */
#include <curl/curl.h>
#include <math.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/peers/peers.h"

static void print_value(double value)
{
	if (isnan(value))
		printf(" %12s", "-");
	else if (value == floor(value))
		printf(" %12.0f", value);
	else
		printf(" %12.2f", value);
}

void peers_row(const char *what, const char *unit, double theirs, double ours)
{
	static bool begun;

	if (!begun)
		printf("%-58s %-8s %12s %12s %12s\n", "", "unit", "theirs", "ours", "ratio");
	begun = true;
	printf("%-58s %-8s", what, unit);
	print_value(theirs);
	print_value(ours);
	print_value(ours != 0 ? theirs / ours : NAN);
	printf("\n");
	fflush(stdout);
}

void peers_skip(const char *what, const char *why)
{
	printf("SKIP: %s: %s\n", what, why);
}

static void print_load(const char *when)
{
	double load[3];

	if (getloadavg(load, 3) == 3)
		printf("load average %s: %.2f %.2f %.2f\n", when, load[0], load[1], load[2]);
}

int main(void)
{
	const char *ca = getenv("PEER_CA"), *scheduler = getenv("PEER_SCHEDULER");
	bool has_ca = ca && *ca, has_scheduler = scheduler && access(scheduler, X_OK) == 0;
	int failed = 0;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	if (!has_ca)
		peers_skip("cluster-autoscaler", "PEER_CA names no program");
	if (!has_scheduler)
		peers_skip("Trimaran", "PEER_SCHEDULER names no program");
	if (!has_ca && !has_scheduler)
		return 0;
	print_load("before");
	if (has_ca)
		failed |= peers_scale_down(ca);
	if (has_scheduler)
		failed |= peers_trimaran(scheduler);
	print_load("after");
	return failed;
}
