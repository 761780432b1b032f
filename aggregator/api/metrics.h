/* SPDX-License-Identifier: Apache-2.0 */
/* Families and samples of metrics in the Prometheus text format. */
#pragma once

#include "aggregator/api/api.h"
#include "shared/buf.h"

/* A sample, and with its help the head of its family, whose samples stand together. */
struct metric {
	const char *family;
	const char *labels; /* what stands between the braces; NULL: none */
	const char *help; /* NULL: the family of the sample before */
	double value; /* not finite: no sample */
};

/* A counter as a value. */
#define COUNT(counter) ((double)counter_get(&(counter)))

void metrics_write_samples(struct buf *out, const struct metric *of, size_t count);
#define METRICS_WRITE(out, samples)                                                                \
	metrics_write_samples(out, samples, sizeof(samples) / sizeof((samples)[0]))
/* A family of counters, one for each text of a label. */
void metrics_write_counters(struct buf *out, const char *family, const char *help,
			    const char *label, const char *const *texts,
			    const atomic_uint_least64_t *of, size_t count);

/*
 * "# HELP" and "# TYPE"; a counter when the name ends in "_total", as the format's convention has
 * it, else a gauge.
 */
void metrics_write_family(struct buf *out, const char *name, const char *help);
/* A sample with one label; nothing where the value is not finite. */
void metrics_write_labelled(struct buf *out, const char *family, const char *label,
			    const char *text, double value);
/* The same with further labels behind it: ",by=\"use\"". */
void metrics_write_row(struct buf *out, const char *family, const char *label, const char *text,
		       const char *more, double value);
/* A label's value between its quotes, in which the format escapes backslash, quote and newline. */
void metrics_write_label(struct buf *out, const char *text);
/* The end of a sample: a blank, the value and a newline. */
void metrics_write_value(struct buf *out, double value);
/* A counter of nanoseconds, in seconds. */
double metrics_seconds(const atomic_uint_least64_t *ns);

/* Each node, by its agent and by the Kubernetes API. */
void metrics_write_nodes(struct buf *out, const struct view *v, int64_t now_ns);
/* The state of the informers, and the pods; nothing without a Kubernetes API. */
void metrics_write_cluster(struct buf *out, const struct view *v, int64_t now_ns);
/* Reservations, and requests of schedulers. */
void metrics_write_extender(struct buf *out, const struct api_context *ctx);
/* Quotas of the cluster, and their answers to schedulers. */
void metrics_write_quotas(struct buf *out, const struct api_context *ctx);
/* Slack, and the cost of planning; nothing without a planner. */
void metrics_write_plan(struct buf *out, const struct api_context *ctx);
/* Drains, likewise. */
void metrics_write_drain(struct buf *out, const struct api_context *ctx);
/* Admitted and refused requests of this API. */
void metrics_write_access(struct buf *out, const struct access_counters *c);
/* The connections of agents. */
void metrics_write_ingest(struct buf *out, const struct ingest_counters *c);
/* This process: CPU time, memory, descriptors. */
void metrics_write_process(struct buf *out);
