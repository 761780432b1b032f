/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the Kubernetes API: the state of each informer, and how pods and measurements fit
 * together. At most 7 series for each kept kind of object, 6 for the cluster.
 */
#include "aggregator/api/metrics.h"

#include <math.h>

#include "aggregator/api/limits.h"
#include "shared/clock.h"

static double age_of(int64_t since_ns, int64_t now_ns)
{
	return since_ns > 0 ? fmax(0, (double)(now_ns - since_ns) / NS_PER_SEC) : NAN;
}

static void write_states(struct buf *out, const struct cluster *c)
{
	static const char name[] = "evenkeel_kube_state";

	metrics_write_family(out, name, "How complete what is known of a resource is.");
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		buf_printf(out, "%s{resource=\"%s\",state=\"%s\"} 1\n", name,
			   object_kind_resource((enum object_kind)kind),
			   source_state_name(c->sources[kind].state));
}

enum { SOURCE_FAMILIES = 6 };

static void write_source(struct buf *out, const struct cluster *c, int kind, size_t family,
			 int64_t now_ns)
{
	const struct model_source *s = &c->sources[kind];
	const char *resource = object_kind_resource((enum object_kind)kind);
	const struct metric families[SOURCE_FAMILIES] = {
		/* The table of pods has only those without a node. */
		{"evenkeel_kube_objects", NULL, "Objects of the Kubernetes API that are known.",
		 (double)(kind == OBJECT_POD ? c->pod_count : c->tables[kind]->count)},
		{"evenkeel_kube_relists_total", NULL, "Lists of a whole resource.",
		 (double)s->relists},
		{"evenkeel_kube_watch_errors_total", NULL, "Watches that broke.",
		 (double)s->watch_errors},
		{"evenkeel_kube_skipped_objects_total", NULL, "Objects that could not be read.",
		 (double)s->skipped},
		{"evenkeel_kube_event_age_seconds", NULL, "Age of the newest event or bookmark.",
		 age_of(s->event_ns, now_ns)},
		{"evenkeel_kube_state_seconds", NULL,
		 "How long evenkeel_kube_state has been what it is.",
		 age_of(s->changed_ns, now_ns)},
	};
	const struct metric *m = &families[family];

	if (kind == 0)
		metrics_write_family(out, m->family, m->help);
	metrics_write_labelled(out, m->family, "resource", resource, m->value);
}

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

static struct pod_tally count_pods(const struct view *v)
{
	struct pod_tally c = {.pending = v->cluster->tables[OBJECT_POD]->count};

	for (size_t i = 0; i < v->node_count; i++)
		for (size_t k = 0; k < v->nodes[i]->pod_count; k++)
			count_pod(&c, v->nodes[i], &v->nodes[i]->pods[k]);
	return c;
}

static void write_pods(struct buf *out, const struct view *v)
{
	const struct pod_tally c = count_pods(v);
	const struct metric samples[] = {
		{"evenkeel_pods", "state=\"measured\"",
		 "Pods: measured, on a node and not measured, without a node, and measured but "
		 "unknown to the API.",
		 (double)c.measured},
		{"evenkeel_pods", "state=\"unmeasured\"", NULL, (double)c.unmeasured},
		{"evenkeel_pods", "state=\"pending\"", NULL, (double)c.pending},
		{"evenkeel_pods", "state=\"unknown_to_api\"", NULL, (double)c.unknown},
		{"evenkeel_pod_limit_mismatches", "resource=\"cpu\"",
		 "Pods on which the kernel enforces another limit than their spec says.",
		 (double)c.mismatches[RESOURCE_CPU]},
		{"evenkeel_pod_limit_mismatches", "resource=\"memory\"", NULL,
		 (double)c.mismatches[RESOURCE_MEMORY]},
	};

	METRICS_WRITE(out, samples);
}

void metrics_write_cluster(struct buf *out, const struct view *v, int64_t now_ns)
{
	if (!v->cluster)
		return;
	write_states(out, v->cluster);
	for (size_t family = 0; family < SOURCE_FAMILIES; family++)
		for (int kind = 0; kind < OBJECT_KINDS; kind++)
			write_source(out, v->cluster, kind, family, now_ns);
	write_pods(out, v);
}
