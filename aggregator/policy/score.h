/* SPDX-License-Identifier: Apache-2.0 */
/* Score plugins: what a node is worth for a pod, 0..100, and why. Pure and deterministic. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SCORE_H
#define EVENKEEL_AGGREGATOR_POLICY_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/pod_spec.h"
#include "aggregator/state/view.h"
#include "shared/reason.h"

enum score_variant { SCORE_CORRECTED, SCORE_UPSTREAM, SCORE_KEP };

enum score_plugin_id {
	PLUGIN_TARGET_LOAD_PACKING,
	PLUGIN_LOAD_VARIATION_RISK_BALANCING,
	SCORE_PLUGINS
};

/* Plugin arguments with upstream's names and defaults (reference: scheduler-plugins apis/config/v1). */
struct score_args {
	double target_utilization; /* percent, 40 */
	double default_requests_multiplier; /* 1.5 */
	int64_t default_requests_cpu_milli; /* 1000 */
	bool use_limits; /* corrected TLP: limits before requests, false */
	double safe_variance_margin; /* 1 */
	double safe_variance_sensitivity; /* 1 */
};

/* Measured use of one resource in percent of its capacity, as load-watcher gives it: results are equal to upstream's
 * bit for bit only if the arithmetic starts from the same number. */
struct score_metric {
	bool known;
	double mean, stddev;
};

struct score_node {
	const char *name;
	int64_t cpu_capacity_milli, mem_capacity_bytes;
	int64_t cpu_allocatable_milli, mem_allocatable_bytes;
	struct score_metric cpu, mem;
	const char *
		rung; /* where the metrics come from: "window 15m", "late 42s", "expired", "none" */
	const char *window; /* "15m", "10m", "5m", or "" */
	double age_seconds; /* of the newest measurement */
	/* Requests of pods that were just placed and are not in the measurements yet. */
	int64_t pending_cpu_milli, pending_mem_bytes;
};

enum { SCORE_TERMS_MAX = 32 };

/* One input or intermediate of the arithmetic, in order of evaluation. */
struct score_term {
	const char *name; /* static */
	const char *unit; /* static: "millicores", "bytes", "percent", "fraction", "seconds", "" */
	double value;
};

struct score_result {
	int64_t score;
	size_t term_count;
	struct score_term terms[SCORE_TERMS_MAX];
	char reason[160]; /* one sentence with the deciding numbers */
};

const char *score_plugin_name(enum score_plugin_id plugin); /* "TargetLoadPacking" */
/* -ENOENT for an unknown name (the list of names is in score_plugin_names()). Case counts. */
int score_plugin_find(const char *name, enum score_plugin_id *plugin);
const char *score_plugin_names(void); /* for messages: "A, B" */
const char *score_variant_name(enum score_variant variant); /* "corrected", "upstream", "kep" */
int score_variant_find(const char *name, enum score_variant *variant);
const char *score_variant_names(void);
/* kep exists for LoadVariationRiskBalancing only. */
bool score_plugin_has(enum score_plugin_id plugin, enum score_variant variant);

void score_args_default(struct score_args *args);
/*
 * The range of the plugin's arguments. upstream: what is out of range silently becomes the default, exactly where
 * upstream does so. Otherwise -EINVAL, *field is upstream's name of the argument and the reason says what is allowed.
 */
int score_args_check(struct score_args *args, enum score_plugin_id plugin,
		     enum score_variant variant, const char **field, struct reason *reason);

/* The plugin must have the variant. No case of missing or absurd numbers gives more than a known good node gets. */
void score_node_by(enum score_plugin_id plugin, enum score_variant variant,
		   const struct score_args *args, const struct pod_spec *pod,
		   const struct score_node *node, struct score_result *result);

/*
 * The inputs of one node as of now: the longest window that is covered (windows.h), else what the last 5 minutes hold
 * ("since start"); from 30 s to 5 minutes after the last measurement with its sigma widened by (1 + age / 60 s), but as
 * measured for upstream; then nothing known. text is storage for the rung's wording.
 */
void score_node_from_page(const struct node_page *page, int64_t now_ns, enum score_variant variant,
			  char text[32], struct score_node *node);

/* Weighted mean of plugin scores, rounded half away from zero. Weights > 0. */
int64_t score_blend(const int64_t *scores, const double *weights, size_t count);

#endif
