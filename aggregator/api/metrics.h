/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers of metrics share: families and samples in the Prometheus text format. */
#ifndef EVENKEEL_AGGREGATOR_API_METRICS_H
#define EVENKEEL_AGGREGATOR_API_METRICS_H

#include "aggregator/api/api.h"
#include "shared/buf.h"

/*
 * "# HELP" and "# TYPE"; a counter when the name ends in "_total", as the format's convention has
 * it, else a gauge.
 */
void metrics_write_family(struct buf *out, const char *name, const char *help);
/*
 * labels: what stands between the braces, with none NULL; no sample where the value is not a
 * number.
 */
void metrics_write_sample(struct buf *out, const char *name, const char *labels, double value);
/* A family of one sample without labels. */
void metrics_write_one(struct buf *out, const char *name, const char *help, double value);
void metrics_write_counter(struct buf *out, const char *name, const char *help,
			   const atomic_uint_least64_t *value);
/* A sample with one label. */
void metrics_write_labelled(struct buf *out, const char *name, const char *label, const char *text,
			    double value);
/* A sample of a node; labels: what follows the node, `,key="value"`, or "". */
void metrics_write_node_sample(struct buf *out, const char *name, const char *node,
			       const char *labels, double value);

/* A label's value between its quotes, in which the format escapes backslash, quote and newline. */
void metrics_write_label(struct buf *out, const char *text);
/* What ends a sample: a blank, the value and a newline. */
void metrics_write_value(struct buf *out, double value);

/* What the Kubernetes API tells: nothing where none is followed. */
void metrics_write_cluster(struct buf *out, const struct view *v, int64_t now_ns);
/* The reservations, and what schedulers asked. */
void metrics_write_extender(struct buf *out, const struct api_context *ctx);
/* Quotas of the cluster, and what they said to schedulers. */
void metrics_write_quotas(struct buf *out, const struct api_context *ctx);

/* Slack, and what planning costs; nothing where there is no planner. */
void metrics_write_plan(struct buf *out, const struct api_context *ctx);
/* Drains, likewise. */
void metrics_write_drain(struct buf *out, const struct api_context *ctx);

/* Who was let in to this API, and who was not. */
void metrics_write_access(struct buf *out, const struct access_counters *c);
/* The connections of agents. */
void metrics_write_ingest(struct buf *out, const struct ingest_counters *c);
/* This process: CPU time, memory, descriptors. */
void metrics_write_process(struct buf *out);

#endif
