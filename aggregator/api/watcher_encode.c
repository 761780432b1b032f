/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it exists: schedulers decode this document with a hand-rolled Go decoder that is strict about
 * numbers, so its layout is kept apart from where the values come from and can be compared with
 * recorded bytes.
 */
#include "aggregator/api/watcher_encode.h"

#include <math.h>

#include "shared/jsonw.h"

/*
 * Percent. Tiny deviations make the beta fit of LowRiskOverCommitment collapse; huge numbers
 * overflow the decoder.
 */
#define VALUE_LEAST 1e-4
#define VALUE_MOST  1e9

static double presentable(double value)
{
	if (value < VALUE_LEAST)
		return 0;
	return fmin(value, VALUE_MOST);
}

static void encode_node(struct jsonw *w, const struct watcher_node *n)
{
	jsonw_key_object(w, n->name);
	jsonw_key_array(w, "metrics");
	for (size_t i = 0; i < n->metric_count; i++)
		if (isfinite(n->metrics[i].value)) {
			jsonw_object_open(w);
			jsonw_key_string(w, "name", n->metrics[i].name);
			jsonw_key_string(w, "type", n->metrics[i].type);
			jsonw_key_string(w, "operator", n->metrics[i].operator);
			jsonw_key_string(w, "rollup", n->metrics[i].rollup);
			jsonw_key_fixed(w, "value", presentable(n->metrics[i].value), 6);
			jsonw_object_close(w);
		}
	jsonw_array_close(w);
	jsonw_key_object(w, "tags");
	jsonw_object_close(w);
	jsonw_key_object(w, "metadata");
	jsonw_key_string(w, "dataCenter", n->data_center ? n->data_center : "");
	jsonw_object_close(w);
	if (n->extra) {
		jsonw_key_string(w, "state", n->state);
		jsonw_key_string(w, "window", n->window);
		jsonw_key_fixed(w, "windowSeconds", n->window_seconds, 3);
		jsonw_key_fixed(w, "ageSeconds", n->age_seconds, 3);
		jsonw_key_uint(w, "samples", n->samples);
	}
	jsonw_object_close(w);
}

void watcher_encode(const struct watcher_answer *a, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_int(&w, "timestamp", a->timestamp);
	jsonw_key_object(&w, "window");
	jsonw_key_string(&w, "duration", a->duration);
	jsonw_key_int(&w, "start", a->start);
	jsonw_key_int(&w, "end", a->end);
	jsonw_object_close(&w);
	jsonw_key_string(&w, "source", a->source);
	jsonw_key_object(&w, "data");
	jsonw_key_object(&w, "NodeMetricsMap");
	for (size_t i = 0; i < a->node_count; i++)
		encode_node(&w, &a->nodes[i]);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}
