/* SPDX-License-Identifier: Apache-2.0 */
/* The bursts of pods that contenders place, and the nodes they come to. From a seed alone. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NODES = 20, BURST_PODS_MAX = 200, GROWN_PODS = 20 };

/* What happens when half of the pods are placed. */
enum trouble {
	TROUBLE_NONE,
	TROUBLE_HOT, /* the node that used least uses 60 % of its CPU more */
	TROUBLE_SILENT, /* from the beginning: agents reported until 5 minutes ago */
	TROUBLE_KILLED, /* the aggregator is killed */
	TROUBLE_RESTARTED, /* and started again; no agent has reported to it yet */
	TROUBLE_STOPPED, /* the aggregator hangs: SIGSTOP */
};

/* Millicores; requests and limits of 0: none. */
struct burst_pod {
	int64_t request_milli, limit_milli;
	int64_t request_mib;
	double use_milli; /* its true mean, which no contender knows */
};

struct burst {
	const char *name; /* as BURSTS= has it */
	const char *title;
	size_t pods;
	enum trouble trouble;
	size_t running; /* pods of the same workload that run already, and are measured */
	/* unit: a number of [0, 1) of the pod's own */
	void (*make)(double unit, struct burst_pod *pod);
};

extern const struct burst bursts[];
extern const size_t burst_count;

/* Pods of one seed; those from burst->pods on are the running ones. */
void burst_make(const struct burst *b, uint64_t seed, struct burst_pod *pods);

/* The one pod each node has before. Its use is measured. */
void burst_make_resident(uint64_t seed, size_t node, struct burst_pod *pod);
