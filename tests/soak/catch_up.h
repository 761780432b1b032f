/* SPDX-License-Identifier: Apache-2.0 */
/* What it takes an aggregator to be told what it missed, and whose time that is. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "tests/stack.h"

struct catch_up {
	int64_t begin_ns; /* monotonic: when the aggregator came back */
	double fleet_cpu_before_s;
	/* Until no node's newest measurement is older than 30 s, and than two intervals; or NAN. */
	double fresh_s, current_s;
	double intervals; /* that were told until then */
	double aggregator_cpu_s, fleet_cpu_s; /* spent until then */
};

/* Starts aggregator 0, which is not running. */
void catch_up_begin(struct catch_up *c, struct stack *s, pid_t fleet);
/* Awaits the nodes, for so many seconds at most. */
void catch_up_await(struct catch_up *c, struct stack *s, pid_t fleet, double nodes,
		    int64_t interval_ns, double timeout_s);
/* Rows, each beginning with `prefix`; budget_s: until all is told, NAN for none. */
void catch_up_report(const struct catch_up *c, const char *prefix, double budget_s);
