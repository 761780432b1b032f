/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the drain planner, as one table for the aggregator and for the command that answers
 * from files, and the settings that they become.
 *
 * Names are cluster-autoscaler's if it has the option, one of them with its typing error. Bounds
 * beside the options refuse nonsense.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain.h"
#include "aggregator/policy/place/place.h"
#include "shared/options.h"
#include "shared/error.h"

/* As they are given. */
struct drain_settings {
	int variant, order;
	struct drain_options rules; /* without variant; simulation_ns and limits 0: not given */
	int64_t max_empty; /* 0: not given */
	int64_t candidate_ttl_ns;
	bool not_robust;
	struct place_cap cap;
	struct option_list groups, group_labels, budgets;
	char *cluster_min;
};

extern const char *const drain_setting_variants[], *const drain_setting_orders[];

#define DRAIN_WEEK_NS (7 * 24 * 3600e9)

/* Rows of a table of options; base is the offset of the struct drain_settings. */
/* clang-format off */
#define DRAIN_AT(base, member) ((base) + offsetof(struct drain_settings, member))
#define DRAIN_SETTINGS_OPTIONS(base)                                                                                                        \
	{"scale-down-unneeded-time", 0, OPTION_DURATION, DRAIN_AT(base, rules.unneeded_ns), "TIME", "10m", 0, DRAIN_WEEK_NS, NULL,                \
	 "Time that a node must be unneeded before it may be drained."},                                                                    \
	{"scale-down-unready-time", 0, OPTION_DURATION, DRAIN_AT(base, rules.unready_ns), "TIME", "20m", 0, DRAIN_WEEK_NS, NULL,                  \
	 "The same for a node that is not Ready."},                                                                                         \
	{"scale-down-unready-enabled", 0, OPTION_FLAG, DRAIN_AT(base, rules.drain_unready), NULL, "true", 0, 0, NULL,                                   \
	 "Nodes that are not Ready may not be drained."},                                                                                   \
	{"scale-down-utilization-threshold", 0, OPTION_NUMBER, DRAIN_AT(base, rules.utilization), "SHARE", "0.5", 0, 1, NULL,                     \
	 "A node whose pods request more of its CPU or memory is needed."},                                                                 \
	{"scale-down-gpu-utilization-threshold", 0, OPTION_NUMBER, DRAIN_AT(base, rules.gpu_utilization), "SHARE", "0.5", 0, 1, NULL,             \
	 "The same for GPUs, on nodes with GPUs."},                                                                                         \
	{"max-scale-down-parallelism", 0, OPTION_INTEGER, DRAIN_AT(base, rules.max_parallelism), "N", NULL, 1, 100000, NULL,                      \
	 "Nodes that may be drained or removed at the same time. Default: 10."},                                                            \
	{"max-drain-parallelism", 0, OPTION_INTEGER, DRAIN_AT(base, rules.max_drain_parallelism), "N", NULL, 1, 100000, NULL,                                 \
	 "Of these, nodes with pods to move. Default: 10; 1 in variant upstream."},                                                         \
	{"max-empty-bulk-delete", 0, OPTION_INTEGER, DRAIN_AT(base, max_empty), "N", NULL, 1, 100000, NULL,                                 \
	 "Deprecated: used if --max-scale-down-parallelism is not given."},                                                                 \
	{"scale-down-simulation-timeout", 0, OPTION_DURATION, DRAIN_AT(base, rules.simulation_ns), "TIME", NULL, 1e6, 600e9, NULL,                \
	 "Time of one simulation; nodes beyond it keep their timers. Default: 1s; 30s in variant upstream; no bound with --snapshot."},     \
	{"unremovable-node-recheck-timeout", 0, OPTION_DURATION, DRAIN_AT(base, rules.recheck_ns), "TIME", "5m", 0, DRAIN_WEEK_NS, NULL,          \
	 "Time until a node whose pods fitted nowhere is tried again."},                                                                    \
	{"node-deletion-candidate-ttl", 0, OPTION_DURATION, DRAIN_AT(base, candidate_ttl_ns), "TIME", "10m", 0, DRAIN_WEEK_NS, NULL,        \
	 "Age up to which saved timers count after a restart; 0s: never."},                                                                 \
	{"skip-nodes-with-system-pods", 0, OPTION_FLAG, DRAIN_AT(base, rules.skip_system), NULL, "true", 0, 0, NULL,                              \
	 "Pods of kube-system without a PodDisruptionBudget may be moved."},                                                                \
	{"skip-nodes-with-local-storage", 0, OPTION_FLAG, DRAIN_AT(base, rules.skip_local_storage), NULL, "true", 0, 0, NULL,                     \
	 "Pods with an emptyDir or hostPath may be moved."},                                                                                \
	{"skip-nodes-with-custom-controller-pods", 0, OPTION_FLAG, DRAIN_AT(base, rules.skip_custom_controllers), NULL, "true", 0, 0, NULL,                   \
	 "Pods of controllers that are not Kubernetes' own may be moved."},                                                                 \
	{"blocking-system-pod-distruption-timeout", 0, OPTION_DURATION, DRAIN_AT(base, rules.system_timeout_ns), "TIME", "1h", 0,                 \
	 DRAIN_WEEK_NS, NULL, "Pods of kube-system older than this may be moved."},                                                         \
	{"min-replica-count", 0, OPTION_INTEGER, DRAIN_AT(base, rules.min_replicas), "N", "0", 0, 100000, NULL,                                   \
	 "Pods of an owner with fewer replicas stay."},                                                                                     \
	{"ignore-daemonsets-utilization", 0, OPTION_FLAG, DRAIN_AT(base, rules.ignore_daemon_sets), NULL, NULL, 0, 0, NULL,                       \
	 "Requests of pods of DaemonSets do not make a node needed."},                                                                      \
	{"ignore-mirror-pods-utilization", 0, OPTION_FLAG, DRAIN_AT(base, rules.ignore_mirror), NULL, NULL, 0, 0, NULL,                           \
	 "Requests of static pods do not make a node needed."},                                                                             \
	{"drain-variant", 0, OPTION_CHOICE, DRAIN_AT(base, variant), "VARIANT", "corrected", 0, 0, drain_setting_variants,                  \
	 "Rules: corrected, or upstream (exactly cluster-autoscaler's)."},                                                                  \
	{"drain-destinations", 0, OPTION_CHOICE, DRAIN_AT(base, order), "ORDER", "default", 0, 0, drain_setting_orders,                     \
	 "Nodes that take pods first: fullest, emptiest or cyclic; default: fullest, cyclic in variant upstream."},                         \
	{"drain-owner-share", 0, OPTION_NUMBER, DRAIN_AT(base, rules.owner_share), "SHARE", "0.25", 0, 1, NULL,                                   \
	 "Share of an owner's pods that may move at once; one always may."},                                                                \
	{"drain-not-robust", 0, OPTION_FLAG, DRAIN_AT(base, not_robust), NULL, NULL, 0, 0, NULL,                                            \
	 "Also drain nodes whose pods fit only if the scheduler makes certain choices."},                                                   \
	{"drain-eviction-ttl", 0, OPTION_DURATION, DRAIN_AT(base, rules.eviction_ttl_ns), "TIME", "3m", 0, 3600e9, NULL,                          \
	 "Time that room is kept for an evicted pod whose replacement is missing."},                                                        \
	{"drain-use-cap", 0, OPTION_FLAG, DRAIN_AT(base, cap.on), NULL, "true", 0, 0, NULL,                                                \
	 "Choose destinations by requests alone, without real use."},                                                                       \
	{"drain-cpu-cap", 0, OPTION_NUMBER, DRAIN_AT(base, cap.cpu_share), "SHARE", "0.85", 0.01, 1, NULL,                                        \
	 "Cap of the real CPU use of a destination."},                                                                                      \
	{"drain-memory-cap", 0, OPTION_NUMBER, DRAIN_AT(base, cap.mem_share), "SHARE", "0.9", 0.01, 1, NULL,                                      \
	 "Cap of the working set of a destination, by maxima."},                                                                            \
	{"drain-z", 0, OPTION_NUMBER, DRAIN_AT(base, cap.z), "Z", "2.33", 0, 10, NULL,                                                      \
	 "Deviations that are added to the mean CPU use: 2.33 is exceeded once in a hundred."},                                             \
	{"drain-contention", 0, OPTION_NUMBER, DRAIN_AT(base, cap.contention), "SHARE", "0.1", 0, 1, NULL,                                  \
	 "Contention above which a node takes no pods: share of time in which tasks wait for neighbours."},                                 \
	{"drain-group-label", 0, OPTION_LIST, DRAIN_AT(base, group_labels), "LABEL", NULL, 0, 0, NULL,                                      \
	 "Labels that name the group of a node: the first that it has counts; without this option all nodes are one group."},               \
	{"drain-group", 0, OPTION_RECORDS, DRAIN_AT(base, groups), "name=NAME[,min=N][,max=N][,atomic]", NULL, 0, 0, NULL,                  \
	 "Least and most nodes of a group; atomic: its nodes go together or not at all."},                                                  \
	{"drain-cluster-min", 0, OPTION_STRING, DRAIN_AT(base, cluster_min), "nodes=N,cpu=Q,memory=Q", NULL, 0, 0, NULL,                    \
	 "Least nodes, CPU and memory of the cluster; each may be left out."},                                                              \
	{"drain-budget", 0, OPTION_RECORDS, DRAIN_AT(base, budgets),                                                                        \
	 "nodes=N|N%[,schedule=CRON,duration=TIME][,reasons=R,..]", NULL, 0, 0, NULL,                                                       \
	 "Nodes that may be away at the same time, always or during a schedule (UTC), as Karpenter's disruption budgets. "                  \
	 "Of several the smallest counts."}
/* clang-format on */

/* The settings of the planner. */
struct drain_setup {
	struct drain_config config;
	struct place_options places; /* of the core that it asks; now_ns is the caller's to set */
	int64_t candidate_ttl_ns; /* of drain_state_read() */
	bool timed; /* the time of a simulation was given, and so bounds plans over files, too */
	void **owned; /* owned; blocks that config points into */
	size_t owned_count;
};

/* As without any option. */
void drain_setup_default(struct drain_setup *s);
/* 0 and *out for drain_setup_fini(), or -EINVAL with the reason, which names option and record. */
int drain_setup_init(struct drain_setup *out, const struct drain_settings *settings,
		     struct error *error);
void drain_setup_fini(struct drain_setup *s);
/* The first option of which a value in *b is not the one in *a, or NULL. */
const char *drain_settings_differ(const struct drain_settings *a, const struct drain_settings *b);
/*
 * As without any flag: from the table and from the environment. 0, or -EINVAL; free it with
 * drain_settings_fini().
 */
int drain_settings_from_environment(struct drain_settings *s, struct error *error);
void drain_settings_fini(struct drain_settings *s);
