/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of what the Kubernetes API tells: how well it is followed, what is promised on each node,
 * and how pods and measurements fit together. At most 7 series for each kept kind of object, 15 for
 * each node, 6 for the cluster.
 *
 * Nodes keep these series without an agent: they are the API's. What the kernel enforces needs one.
 */
#include "aggregator/api/metrics.h"

#include <math.h>
#include <stdio.h>

#include "aggregator/api/limits.h"
#include "shared/clock.h"

#define MILLI 1e-3

enum { LABELS_MOST = 128 };

/* --- how the API is followed ------------------------------------------------------------------ */

static double age_of(int64_t since_ns, int64_t now_ns)
{
	return since_ns > 0 ? fmax(0, (double)(now_ns - since_ns) / NS_PER_SEC) : NAN;
}

static const struct {
	const char *name, *help;
} source_families[] = {
	{"evenkeel_kube_objects", "Objects of the Kubernetes API that are known."},
	{"evenkeel_kube_relists_total", "Lists of a whole resource."},
	{"evenkeel_kube_watch_errors_total", "Watches that broke."},
	{"evenkeel_kube_skipped_objects_total", "Objects that could not be read."},
	{"evenkeel_kube_event_age_seconds", "Age of the newest event or bookmark."},
	{"evenkeel_kube_state_seconds", "How long evenkeel_kube_state has been what it is."},
};

static double value_of(size_t family, const struct cluster *c, enum object_kind kind,
		       int64_t now_ns)
{
	const struct model_source *s = &c->sources[kind];
	const double values[] = {
		/* The table of pods has only those without a node. */
		(double)(kind == OBJECT_POD ? c->pod_count : c->tables[kind]->count),
		(double)s->relists,
		(double)s->watch_errors,
		(double)s->skipped,
		age_of(s->event_ns, now_ns),
		age_of(s->changed_ns, now_ns),
	};

	return values[family];
}

static void write_states(struct buf *out, const struct cluster *c)
{
	static const char name[] = "evenkeel_kube_state";
	char labels[LABELS_MOST];

	metrics_write_family(out, name, "How complete what is known of a resource is.");
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		snprintf(labels, sizeof(labels), "resource=\"%s\",state=\"%s\"",
			 object_kind_resource((enum object_kind)kind),
			 source_state_name(c->sources[kind].state));
		metrics_write_sample(out, name, labels, 1);
	}
}

static void write_sources(struct buf *out, const struct cluster *c, int64_t now_ns)
{
	char labels[LABELS_MOST];

	for (size_t f = 0; f < sizeof(source_families) / sizeof(source_families[0]); f++) {
		metrics_write_family(out, source_families[f].name, source_families[f].help);
		for (int kind = 0; kind < OBJECT_KINDS; kind++) {
			enum object_kind k = (enum object_kind)kind;

			snprintf(labels, sizeof(labels), "resource=\"%s\"",
				 object_kind_resource(k));
			metrics_write_sample(out, source_families[f].name, labels,
					     value_of(f, c, k, now_ns));
		}
	}
}

/* --- what is promised on each node ------------------------------------------------------------ */

/* Cores, or bytes. */
static double base_units(double amount, enum resource_id id)
{
	return id == RESOURCE_CPU ? amount * MILLI : amount;
}

static double allocatable(const struct view_node *n, enum resource_id id)
{
	double amount =
		(double)(id == RESOURCE_CPU ? n->cpu_allocatable_milli : n->mem_allocatable_bytes);

	return amount > 0 ? base_units(amount, id) : NAN;
}

static double requests(const struct view_node *n, enum resource_id id)
{
	return base_units((double)n->sums.requests.of[id], id);
}

static double limits(const struct view_node *n, enum resource_id id)
{
	return base_units((double)n->sums.limits.of[id], id);
}

static double kernel_limits(const struct view_node *n, enum resource_id id)
{
	const struct view_sums *s = &n->sums;

	if (!n->stats->end_ns)
		return NAN;
	return base_units((double)(id == RESOURCE_CPU ? s->kernel_cpu_milli : s->kernel_mem_bytes),
			  id);
}

static const struct amount_family {
	const char *names[LIMITS_RESOURCES];
	const char *help;
	double (*value)(const struct view_node *n, enum resource_id id);
} amount_families[] = {
	{{"evenkeel_node_cpu_allocatable_cores", "evenkeel_node_memory_allocatable_bytes"},
	 "What pods may request in all.",
	 allocatable},
	{{"evenkeel_node_cpu_requests_cores", "evenkeel_node_memory_requests_bytes"},
	 "Requests of the pods that are neither done nor failed.",
	 requests},
	{{"evenkeel_node_cpu_limits_cores", "evenkeel_node_memory_limits_bytes"},
	 "Limits that those pods declare.",
	 limits},
	{{"evenkeel_node_cpu_kernel_limits_cores", "evenkeel_node_memory_kernel_limits_bytes"},
	 "Limits that the kernel enforces on those pods.",
	 kernel_limits},
};

static bool is_known(const struct view_node *n)
{
	return n->model && n->model->node;
}

static void write_amounts(struct buf *out, const struct view *v, const struct amount_family *family)
{
	for (int r = 0; r < LIMITS_RESOURCES; r++) {
		metrics_write_family(out, family->names[r], family->help);
		for (size_t i = 0; i < v->node_count; i++)
			if (is_known(v->nodes[i]))
				metrics_write_node_sample(
					out, family->names[r], v->nodes[i]->name, "",
					family->value(v->nodes[i], (enum resource_id)r));
	}
}

static void write_ratios(struct buf *out, const struct view *v)
{
	static const char name[] = "evenkeel_node_limit_ratio";

	metrics_write_family(out, name,
			     "Sum of limits by allocatable; what has no limit counts as nothing.");
	for (size_t i = 0; i < v->node_count; i++) {
		struct limits_shares shares = {0};
		const struct {
			const char *labels;
			const struct limits_share *share;
			enum resource_id id;
		} samples[] = {
			{",resource=\"cpu\",by=\"declared\"", &shares.declared, RESOURCE_CPU},
			{",resource=\"memory\",by=\"declared\"", &shares.declared, RESOURCE_MEMORY},
			{",resource=\"cpu\",by=\"kernel\"", &shares.kernel, RESOURCE_CPU},
			{",resource=\"memory\",by=\"kernel\"", &shares.kernel, RESOURCE_MEMORY},
		};

		if (!is_known(v->nodes[i]))
			continue;
		limits_add(&shares, v->nodes[i], UNLIMITED_IGNORE);
		for (size_t k = 0; k < sizeof(samples) / sizeof(samples[0]); k++)
			metrics_write_node_sample(out, name, v->nodes[i]->name, samples[k].labels,
						  limits_ratio(samples[k].share, samples[k].id));
	}
}

static void write_counts(struct buf *out, const struct view *v)
{
	static const char unlimited[] = "evenkeel_node_unlimited_containers";
	static const char pods[] = "evenkeel_node_pods";

	metrics_write_family(out, unlimited, "Containers without a limit.");
	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];

		if (!is_known(n))
			continue;
		metrics_write_node_sample(out, unlimited, n->name, ",resource=\"cpu\"",
					  n->sums.unlimited_cpu);
		metrics_write_node_sample(out, unlimited, n->name, ",resource=\"memory\"",
					  n->sums.unlimited_mem);
	}
	metrics_write_family(out, pods, "Pods that are neither done nor failed.");
	for (size_t i = 0; i < v->node_count; i++)
		if (is_known(v->nodes[i]))
			metrics_write_node_sample(out, pods, v->nodes[i]->name, "",
						  v->nodes[i]->sums.pods);
}

/* --- how pods and measurements fit ------------------------------------------------------------ */

struct pod_tally {
	uint64_t measured, unmeasured, pending, unknown;
	uint64_t mismatches[LIMITS_RESOURCES];
};

static void count_pod(struct pod_tally *c, const struct view_node *n, const struct view_pod *p)
{
	struct limits_mismatch m;

	if (!p->pod) {
		c->unknown += p->use->kind == ENTITY_POD;
		return;
	}
	if (p->use)
		c->measured++;
	else
		c->unmeasured += kube_pod_is_active(p->pod);
	for (int r = 0; r < LIMITS_RESOURCES; r++)
		c->mismatches[r] += limits_find_mismatch(n, p, (enum resource_id)r, &m);
}

static void write_pods(struct buf *out, const struct view *v)
{
	struct pod_tally c = {.pending = v->cluster->tables[OBJECT_POD]->count};

	for (size_t i = 0; i < v->node_count; i++)
		for (size_t k = 0; k < v->nodes[i]->pod_count; k++)
			count_pod(&c, v->nodes[i], &v->nodes[i]->pods[k]);
	metrics_write_family(out, "evenkeel_pods",
			     "Pods: measured, on a node and not measured, without a node, and "
			     "measured but unknown to the API.");
	metrics_write_sample(out, "evenkeel_pods", "state=\"measured\"", (double)c.measured);
	metrics_write_sample(out, "evenkeel_pods", "state=\"unmeasured\"", (double)c.unmeasured);
	metrics_write_sample(out, "evenkeel_pods", "state=\"pending\"", (double)c.pending);
	metrics_write_sample(out, "evenkeel_pods", "state=\"unknown_to_api\"", (double)c.unknown);
	metrics_write_family(
		out, "evenkeel_pod_limit_mismatches",
		"Pods on which the kernel enforces another limit than their spec says.");
	metrics_write_sample(out, "evenkeel_pod_limit_mismatches", "resource=\"cpu\"",
			     (double)c.mismatches[RESOURCE_CPU]);
	metrics_write_sample(out, "evenkeel_pod_limit_mismatches", "resource=\"memory\"",
			     (double)c.mismatches[RESOURCE_MEMORY]);
}

void metrics_write_cluster(struct buf *out, const struct view *v, int64_t now_ns)
{
	if (!v->cluster)
		return;
	write_states(out, v->cluster);
	write_sources(out, v->cluster, now_ns);
	for (size_t f = 0; f < sizeof(amount_families) / sizeof(amount_families[0]); f++)
		write_amounts(out, v, &amount_families[f]);
	write_ratios(out, v);
	write_counts(out, v);
	write_pods(out, v);
}
