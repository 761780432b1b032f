/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance PATH...: runs files of test vectors, and folders of them in the order of their names.
 *
 * A file is {"cases": [..]}; its base name and the `kind` of a case select the function that runs
 * it. Prints one line per failure and skip, then "N passed, N failed, N skipped". Exit 1 on a
 * failure, when there was no case at all, and on a file nobody knows; skips are only those of the
 * table below and what the functions call not built.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/conformance/conformance.h"

static const char NOT_BUILT[] = "area not built yet";
static const char ACTS[] = "carrying out plans is not built";
static const char DECODER[] = "what a client's decoder makes of a document";

/* Rows of one file stand together. kind NULL: the cases of the file have none. */
static const struct schema {
	const char *file, *kind;
	run_case *run; /* NULL: skipped */
	const char *skip; /* why */
} schemas[] = {
	{"targetloadpacking", "score", run_target_load_packing_score, NULL},
	{"loadvariationriskbalancing", "score", run_load_variation_score, NULL},
	{"loadvariationriskbalancing", "compute_score", run_load_variation_compute, NULL},
	{"loadvariationriskbalancing", "kep_score", run_load_variation_kep, NULL},
	{"lowriskovercommitment", "score", run_low_risk_score, NULL},
	{"lowriskovercommitment", "compute_risk", run_low_risk_compute, NULL},
	{"lowriskovercommitment", "compute_probability", run_low_risk_probability, NULL},
	{"lowriskovercommitment", "beta_moments", run_beta_moments, NULL},
	{"lowriskovercommitment", "beta_moments_var", run_beta_moments, NULL},
	{"lowriskovercommitment", "beta_match", run_beta_match, NULL},
	{"lowriskovercommitment", "beta_pdf", run_beta_density, NULL},
	{"lowriskovercommitment", "beta_cdf", run_beta_distribution, NULL},
	{"lowriskovercommitment", "max_variance", run_beta_variance_max, NULL},
	{"peaks", "score", run_peaks_score, NULL},
	{"peaks", "normalize", run_peaks_normalize, NULL},
	{"nodeResourcesAllocatable", "allocatable", run_allocatable, NULL},
	{"nodeResourcesAllocatable", "allocatable_error", run_allocatable_error, NULL},
	{"limit_aware", "limit_aware", run_limit_aware, NULL},
	{"resourcestats", "create_stats", run_create_stats, NULL},
	{"resourcestats", "effective_request", run_effective_request, NULL},
	{"resourcestats", "effective_limit", run_effective_limit, NULL},
	{"resourcestats", "mu_sigma", run_mu_sigma, NULL},
	{"resourcestats", "node_requests_limits", run_node_requests_limits, NULL},
	{"args_defaults", "defaults", run_defaults, NULL},
	{"recent_pods_cache", "recent_cache_cleanup", run_recent_cache_cleanup, NULL},
	{"load_watcher", "http", run_watcher_http, NULL},
	{"load_watcher", "encode", run_watcher_encode, NULL},
	{"load_watcher", "decode_value", NULL, DECODER},
	{"load_watcher", "decode_body", NULL, DECODER},
	{"cgroup_paths", NULL, run_cgroup_path, NULL},
	{"pod_request", NULL, run_pod_request, NULL},
	{"slack_examples", "v1_seed", run_slack_v1_seed, NULL},
	{"slack_examples", "v1", run_slack_target, NULL},
	{"slack_examples", "v2_seed", run_slack_v2_seed, NULL},
	{"slack_examples", "v2", run_slack_target, NULL},
	{"slack_examples", "slots", run_slack_slots, NULL},
	{"buffer_replicas", NULL, run_buffer_replicas, NULL},
	{"quota_math", NULL, run_quota_math, NULL},
	{"prefilter", NULL, run_quota_prefilter, NULL},
	{"cache_events", NULL, run_quota_cache, NULL},
	{"status_controller", NULL, run_quota_status, NULL},
	{"preemption", NULL, run_preemption, NULL},
	{"node_choice", NULL, run_node_choice, NULL},
	{"kep_stories", NULL, run_kep_story, NULL},
	{"simulation", NULL, run_simulation, NULL},
	{"cross_node", NULL, run_cross_node, NULL},
	{"extender_wire", NULL, run_extender_wire, NULL},

	{"drainability_rules", NULL, run_drainability_rule, NULL},
	{"rule_combination", NULL, run_rule_combination, NULL},
	{"get_pods_to_move", NULL, run_get_pods_to_move, NULL},
	{"pdb_tracker", NULL, run_pdb_tracker, NULL},
	{"utilization", NULL, run_utilization, NULL},
	{"eligibility", NULL, run_eligibility, NULL},
	{"unremovable", NULL, run_unremovable, NULL},
	{"planner_unneeded_limit", NULL, run_unneeded_limit, NULL},
	{"candidate_order", "empty_first", run_order_empty_first, NULL},
	{"candidate_order", "previous_first", run_order_previous_first, NULL},
	{"candidate_order", "lexicographic_scores_desc", run_order_scores, NULL},
	{"unneeded", "update", run_unneeded_update, NULL},
	{"unneeded", "load_from_taints", run_unneeded_taints, NULL},
	{"unneeded", "removable_at_count", run_unneeded_count, NULL},
	{"unneeded", "removable_at_reason", run_unneeded_reason, NULL},
	{"atomic_filter", NULL, run_atomic_filter, NULL},
	{"nodes_to_delete", NULL, run_nodes_to_delete, NULL},
	{"budgets", NULL, run_budget, NULL},
	{"karpenter_budget", "active", run_window_active, NULL},
	{"karpenter_budget", "allowed", run_window_allowed, NULL},
	{"karpenter_budget", "by_reason", run_window_by_reason, NULL},
	{"controller_replicas", NULL, run_controller_replicas, NULL},
	{"cluster_sim", NULL, run_cluster_sim, NULL},
	{"topology_after_taint", NULL, run_topology_after_taint, NULL},
	{"try_schedule", NULL, run_try_schedule, NULL},
	{"node_order", NULL, run_node_order, NULL},
	{"planner_update", NULL, run_planner_update, NULL},
	{"actuation", NULL, NULL, ACTS},
	{"pods_to_evict", NULL, NULL, ACTS},
	{"evict_priority", NULL, NULL, ACTS},
	{"soft_taint", NULL, NULL, ACTS},

	{"extender_wire", NULL, run_extender_wire, NULL},
};

static const char *const not_built[] = {
	"buffer_quota",
	"buffer_quota_scope",
	"usage_classify",
	"anchors",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const cJSON *current_file;

const cJSON *conformance_file(void)
{
	return current_file;
}

struct tally {
	unsigned int count[SKIPPED + 1];
};

static void report(struct tally *t, enum outcome outcome, const char *file, const char *name,
		   const char *why)
{
	static const char *const label[] = {[FAILED] = "FAIL", [SKIPPED] = "SKIP"};

	t->count[outcome]++;
	if (outcome != PASSED)
		printf("%s %s: %s: %s\n", label[outcome], file, name, why);
}

static const char *text_of(const cJSON *c, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, key));
}

static const char *name_of(const cJSON *c)
{
	const char *name = text_of(c, "id");

	if (!name)
		name = text_of(c, "name");
	if (!name)
		name = text_of(c, "path");
	return name ? name : "(case without a name)";
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_not_built(const char *base)
{
	for (size_t i = 0; i < COUNT(not_built); i++)
		if (strcmp(not_built[i], base) == 0)
			return true;
	return false;
}

static bool is_known(const char *base)
{
	for (size_t i = 0; i < COUNT(schemas); i++)
		if (strcmp(schemas[i].file, base) == 0)
			return true;
	return is_not_built(base);
}

static const struct schema *find_schema(const char *base, const cJSON *c)
{
	const char *kind = text_of(c, "kind");

	for (size_t i = 0; i < COUNT(schemas); i++)
		if (strcmp(schemas[i].file, base) == 0 &&
		    (!schemas[i].kind || same_text(schemas[i].kind, kind)))
			return &schemas[i];
	return NULL;
}

static void run_one(struct tally *t, const char *path, const char *base, const cJSON *c)
{
	const struct schema *schema = find_schema(base, c);
	struct error why = {"no reason given"};
	enum outcome outcome;

	if (is_not_built(base)) {
		report(t, SKIPPED, path, name_of(c), NOT_BUILT);
	} else if (!schema) {
		report(t, FAILED, path, name_of(c), "unknown kind of case");
	} else if (!schema->run) {
		report(t, SKIPPED, path, name_of(c), schema->skip);
	} else {
		outcome = schema->run(c, &why);
		report(t, outcome, path, name_of(c), why.text);
	}
}

static char *read_file(const char *path)
{
	struct buf content = BUF_INIT;
	FILE *file = fopen(path, "rb");
	size_t got;

	if (!file)
		return NULL;
	do {
		got = fread(buf_reserve(&content, 65536), 1, 65536, file);
		content.len += got;
	} while (got > 0);
	fclose(file);
	buf_add_char(&content, '\0');
	return buf_take(&content, &got);
}

/* "a/b/name.json" -> "name", to be freed. */
static char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	if (len > 5 && strcmp(name + len - 5, ".json") == 0)
		len -= 5;
	return mem_strndup(name, len);
}

static void run_file(struct tally *t, const char *path)
{
	char *base = base_name(path), *text = read_file(path);
	cJSON *tree = text ? cJSON_Parse(text) : NULL;
	const cJSON *cases = cJSON_GetObjectItemCaseSensitive(tree, "cases");

	if (!is_known(base)) {
		report(t, FAILED, path, "file", "nobody knows this schema");
	} else if (!text) {
		report(t, FAILED, path, "file", "cannot be read");
	} else if (!cJSON_IsArray(cases)) {
		report(t, FAILED, path, "file", "is not JSON with a list of cases");
	} else {
		current_file = tree;
		for (const cJSON *c = cases->child; c; c = c->next)
			run_one(t, path, base, c);
		current_file = NULL;
	}
	cJSON_Delete(tree);
	free(text);
	free(base);
}

static int is_wanted(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);
	bool json = len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;

	return entry->d_name[0] != '.' && (json || !strchr(entry->d_name, '.'));
}

static void run_path(struct tally *t, const char *path, bool given)
{
	struct dirent **names;
	struct stat st;
	int count;

	if (stat(path, &st)) {
		report(t, FAILED, path, "file", "cannot be read");
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		if (given || strstr(path, ".json"))
			run_file(t, path);
		return;
	}
	count = scandir(path, &names, is_wanted, alphasort);
	if (count < 0) {
		report(t, FAILED, path, "folder", "cannot be read");
		return;
	}
	for (int i = 0; i < count; i++) {
		char *below = mem_printf("%s/%s", path, names[i]->d_name);

		run_path(t, below, false);
		free(below);
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	struct tally t = {{0}};

	if (argc < 2) {
		fprintf(stderr, "Usage: %s PATH..: files of cases, or folders of them\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		run_path(&t, argv[i], true);
	printf("%u passed, %u failed, %u skipped\n", t.count[PASSED], t.count[FAILED],
	       t.count[SKIPPED]);
	return t.count[FAILED] > 0 || t.count[PASSED] + t.count[SKIPPED] == 0;
}
