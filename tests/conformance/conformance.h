/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance runner: one function per kind of case, which runs it through the product's own
 * code.
 */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "shared/error.h"

enum outcome { PASSED, FAILED, SKIPPED };

/*
 * why is set unless it passed. A case that cannot be read, or expects something this runner does
 * not know how to check, has failed.
 */
typedef enum outcome run_case(const cJSON *c, struct error *error);

/* The file that the case is of, for what all of its cases share. */
const cJSON *conformance_file(void);

run_case run_target_load_packing_score;
run_case run_load_variation_score;
run_case run_load_variation_compute;
run_case run_load_variation_kep;
run_case run_low_risk_score;
run_case run_low_risk_compute;
run_case run_low_risk_probability;
run_case run_beta_moments;
run_case run_beta_match;
run_case run_beta_density;
run_case run_beta_distribution;
run_case run_beta_variance_max;
run_case run_peaks_score;
run_case run_peaks_normalize;
run_case run_allocatable;
run_case run_allocatable_error;
run_case run_limit_aware;
run_case run_create_stats;
run_case run_effective_request;
run_case run_effective_limit;
run_case run_mu_sigma;
run_case run_node_requests_limits;
run_case run_defaults;
run_case run_recent_cache_cleanup;
run_case run_watcher_http;
run_case run_watcher_encode;
run_case run_cgroup_path;
run_case run_pod_request;
run_case run_slack_v1_seed;
run_case run_slack_v2_seed;
run_case run_slack_target;
run_case run_slack_slots;
run_case run_buffer_replicas;
run_case run_quota_math;
run_case run_quota_prefilter;
run_case run_quota_cache;
run_case run_quota_status;
run_case run_preemption;
run_case run_node_choice;
run_case run_kep_story;
run_case run_simulation;
run_case run_cross_node;
run_case run_extender_wire;

run_case run_drainability_rule;
run_case run_rule_combination;
run_case run_get_pods_to_move;
run_case run_pdb_tracker;
run_case run_utilization;
run_case run_eligibility;
run_case run_unremovable;
run_case run_unneeded_limit;
run_case run_order_empty_first;
run_case run_order_previous_first;
run_case run_order_scores;
run_case run_unneeded_update;
run_case run_unneeded_taints;
run_case run_unneeded_count;
run_case run_unneeded_reason;
run_case run_atomic_filter;
run_case run_nodes_to_delete;
run_case run_budget;
run_case run_window_active;
run_case run_window_allowed;
run_case run_window_by_reason;
run_case run_controller_replicas;
run_case run_cluster_sim;
run_case run_topology_after_taint;
run_case run_try_schedule;
run_case run_node_order;
run_case run_planner_update;
