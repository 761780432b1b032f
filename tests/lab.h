/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster that lives without machines: a real control plane, kwok in place of kubelets, and for
 * each node an agent that reports what its pods really use.
 *
 *	scheduler, controllers  -->  API server  <--  kwok: nodes are Ready, pods run and end
 *	                               |      ^
 *	             pods, by uid      v      |
 *	lab_agents  <-----------  lab_follow()     evenkeel-aggregator
 *	     |                                         ^
 *	     +------  sealed frames of each node  -----+
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/kube_testbed.h"
#include "tests/lab_agents.h"

enum { LAB_NODES_MAX = 1000, LAB_NODE_CPU_MILLI = 16000 };
#define LAB_NODE_MEM_BYTES (64LL << 30)
#define LAB_HISTORY_NS	   (16 * 60 * NS_PER_SEC) /* covers every window */

struct lab {
	struct kube_testbed *bed;
	pid_t kwok;
	size_t nodes;
	char (*names)[32]; /* "node-000" and on */
	struct lab_agents *agents;
	struct keyring keys;
	size_t pods; /* that lab_follow() found on nodes */
};

/*
 * Nodes of 16 CPUs and 64 GiB that are Ready; with controllers where workloads are to become pods.
 * The scheduler does not run. NULL: there is no control plane with kwok here, which was said.
 */
struct lab *lab_new(size_t nodes, bool controllers);
/* Ends all; when `failed`, prints the logs. */
void lab_free(struct lab *l, bool failed);

/*
 * Tells the agents which pods the API has on their nodes now; until the next call they know no
 * others. False: the API did not answer.
 */
bool lab_follow(struct lab *l);
/* Lets all agents begin at aggregator 0: lab_agents_connect(). */
void lab_connect(struct lab *l, int64_t history_ns, int64_t ago_ns, int64_t interval_ns);
/*
 * Steps the agents until aggregator 0 shows what each of them measured last, and so many pods in
 * all. False: not within 30 s.
 */
bool lab_await_heard(struct lab *l, size_t pods);

/*
 * A file of packaging/kubernetes/scheduler as control_plane_start_scheduler() takes it, with every
 * `from` replaced. The caller frees it.
 */
struct lab_replacement {
	const char *from, *to;
};
char *lab_scheduler_configuration(const char *file, const struct lab_replacement *replacements,
				  size_t count);
/* The one that asks the extender, and the address in it. */
#define LAB_EXTENDER_FILE    "kube-scheduler-v1.yaml"
#define LAB_EXTENDER_ADDRESS "evenkeel-aggregator.example:2020"
