/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a scheduler about all nodes of a cluster, to the extender of one aggregator or another. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "tests/stack.h"

struct scheduler {
	const struct stack *stack; /* borrowed */
	char **nodes; /* owned: names */
	int count;
};

/* A pod "web-NUMBER" of a namespace. */
struct scheduler_pod {
	const char *namespace;
	int number; /* negative: without a uid, so nothing is reserved for it */
	int cpus;
};

/* Takes the nodes that aggregator 0 lists, in place of those before. */
void scheduler_read_nodes(struct scheduler *s, const struct stack *stack);
void scheduler_fini(struct scheduler *s);

/* Filter, by aggregator i: some node passes. The test fails where there is no answer, as below. */
bool scheduler_passes(const struct scheduler *s, int i, const struct scheduler_pod *pod);
/* Prioritize, by aggregator i: the number of the node that it ranks first; *best: its rank. */
int scheduler_rank(const struct scheduler *s, int i, const struct scheduler_pod *pod, int *best);
/* Both, and the pod must pass: the number of its node. */
int scheduler_place(const struct scheduler *s, int filter, int prioritize,
		    const struct scheduler_pod *pod);
