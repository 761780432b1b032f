/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value is the newest of /v1/nodes and /v1/pods: CPU is the true mean of the interval from
 * timestamp - window to timestamp, memory is the working set at its end. metrics-server derives CPU
 * from two readings of a counter instead. CPU is rounded to millionths of a core, as in /v1.
 *
 * Nodes that were not heard for 30 s are absent, and so are pods of which a container or sidecar of
 * the spec is not measured, or does not run: an autoscaler must not take unknown use for none.
 * Containers are those that the Kubernetes API names, without the pod's sandbox.
 */
#include "aggregator/api/api_group.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/kube_objects.h"
#include "aggregator/api/list.h"
#include "aggregator/api/view_json.h"
#include "shared/clock.h"

/* --- quantities ------------------------------------------------------------------------------- */

static void write_quantity(int64_t amount, int64_t base, const char *const *suffixes,
			   char out[METRICS_QUANTITY_LEN])
{
	for (; amount && amount % base == 0 && suffixes[1]; suffixes++)
		amount /= base;
	snprintf(out, METRICS_QUANTITY_LEN, "%" PRId64 "%s", amount, amount ? *suffixes : "");
}

void metrics_cpu_quantity(int64_t micro_cores, char out[METRICS_QUANTITY_LEN])
{
	static const char *const suffixes[] = {"u", "m", "", NULL};

	write_quantity(micro_cores, 1000, suffixes, out);
}

void metrics_bytes_quantity(int64_t bytes, char out[METRICS_QUANTITY_LEN])
{
	static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", NULL};

	write_quantity(bytes, 1024, suffixes, out);
}

struct amounts {
	int64_t micro_cores, bytes;
};

/* False: not measured. */
static bool read_amounts(const struct latest_usage *l, struct amounts *a)
{
	if (!l->cpu_milli.known || !l->working_set_bytes.known)
		return false;
	a->micro_cores = llround((double)l->cpu_milli.value * 1000);
	a->bytes = llround((double)l->working_set_bytes.value);
	return true;
}

/* --- selection -------------------------------------------------------------------------------- */

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(at, word, len) == 0;
}

bool metrics_fields_match(const char *selector, const char *name, const char *namespace, bool *bad)
{
	bool match = true;

	while (*selector) {
		size_t field = strcspn(selector, "=!,"), sign = strspn(selector + field, "=!");
		const char *value = selector + field + sign;
		size_t len = strcspn(value, ",");
		bool of_name = is_word(selector, field, "metadata.name");
		bool differs = selector[field] == '!', same;

		if ((!of_name && !(namespace && is_word(selector, field, "metadata.namespace"))) ||
		    sign < 1 || sign > 2 || value[-1] != '=') {
			*bad = true;
			return false;
		}
		same = is_word(value, len, of_name ? name : namespace);
		match = match && same != differs;
		selector = value + len + (value[len] == ',');
	}
	return match;
}

/* A request, its selection and its answer. */
struct answer {
	struct access_request path; /* of the request: namespace and name */
	const char *fields;
	struct selector *selector; /* NULL: any */
	bool one, table;
	const char *kind; /* "NodeMetrics" */
	struct view *view;
	int64_t now_ns;
	struct jsonw w;
	size_t written;
};

static bool selects(const struct answer *a, const char *name, const char *namespace,
		    const struct labels *labels)
{
	bool bad = false;

	if (a->one && strcmp(name, a->path.name) != 0)
		return false;
	if (a->path.namespace[0] && namespace && strcmp(namespace, a->path.namespace) != 0)
		return false;
	return metrics_fields_match(a->fields, name, namespace, &bad) &&
	       (!a->selector || selector_matches(a->selector, labels));
}

/* --- objects ---------------------------------------------------------------------------------- */

static void write_metadata(struct answer *a, const char *name, const char *namespace,
			   const struct labels *labels)
{
	jsonw_key_object(&a->w, "metadata");
	jsonw_key_string(&a->w, "name", name);
	jsonw_key_text(&a->w, "namespace", namespace);
	jsonw_key_time(&a->w, "creationTimestamp", a->now_ns);
	if (labels->count)
		view_json_write_labels(&a->w, labels);
	jsonw_object_close(&a->w);
}

static void write_usage(struct jsonw *w, const struct amounts *amounts)
{
	char cpu[METRICS_QUANTITY_LEN], memory[METRICS_QUANTITY_LEN];

	metrics_cpu_quantity(amounts->micro_cores, cpu);
	metrics_bytes_quantity(amounts->bytes, memory);
	jsonw_key_object(w, "usage");
	jsonw_key_string(w, "cpu", cpu);
	jsonw_key_string(w, "memory", memory);
	jsonw_object_close(w);
}

static void format_window(const struct node_stats *s, char out[32])
{
	snprintf(out, 32, "%.3fs", (double)(s->end_ns - s->start_ns) / NS_PER_SEC);
}

static void write_row(struct answer *a, const char *name, const char *namespace,
		      const struct labels *labels, const struct node_stats *s,
		      const struct amounts *sum)
{
	char cpu[METRICS_QUANTITY_LEN], memory[METRICS_QUANTITY_LEN], window[32];

	metrics_cpu_quantity(sum->micro_cores, cpu);
	metrics_bytes_quantity(sum->bytes, memory);
	format_window(s, window);
	kube_objects_open_row(&a->w, name);
	jsonw_string(&a->w, cpu);
	jsonw_string(&a->w, memory);
	jsonw_string(&a->w, window);
	jsonw_array_close(&a->w);
	kube_objects_open_row_object(&a->w);
	write_metadata(a, name, namespace, labels);
	jsonw_object_close(&a->w);
	jsonw_object_close(&a->w);
}

static void write_type(struct answer *a, const char *kind)
{
	char version[48];

	snprintf(version, sizeof(version), "%s/%s", a->path.group, a->path.version);
	jsonw_key_string(&a->w, "kind", kind);
	jsonw_key_string(&a->w, "apiVersion", version);
}

/* Opens the object up to its values. */
static void open_object(struct answer *a, const char *name, const char *namespace,
			const struct labels *labels, const struct node_stats *s)
{
	char window[32];

	format_window(s, window);
	jsonw_object_open(&a->w);
	if (a->one)
		write_type(a, a->kind);
	write_metadata(a, name, namespace, labels);
	jsonw_key_time(&a->w, "timestamp", s->end_ns);
	jsonw_key_string(&a->w, "window", window);
}

static bool is_measured(const struct answer *a, const struct node_stats *s)
{
	return node_stats_freshness(s, a->now_ns) == FRESH && s->start_ns;
}

static void offer_node(struct answer *a, const struct view_node *n)
{
	const struct labels *labels = list_node_labels(n);
	struct amounts amounts;

	if (!is_measured(a, n->stats) || !selects(a, n->name, NULL, labels) ||
	    !read_amounts(&n->stats->usage.latest, &amounts))
		return;
	a->written++;
	if (a->table) {
		write_row(a, n->name, NULL, labels, n->stats, &amounts);
		return;
	}
	open_object(a, n->name, NULL, labels, n->stats);
	write_usage(&a->w, &amounts);
	jsonw_object_close(&a->w);
}

/* False: a container or sidecar of the spec is not measured. Writes them, or sums them up. */
static bool read_containers(const struct view_pod *p, struct jsonw *w, struct amounts *sum)
{
	const struct pod_spec *spec = &p->pod->template->spec;
	size_t missing = spec->container_count;
	char name[CONTAINER_NAME_MAX + 1];

	*sum = (struct amounts){0};
	for (size_t i = 0; i < spec->init_count; i++)
		missing += spec->init[i].sidecar;
	for (size_t i = 0; i < p->use->container_count; i++) {
		const struct container_stats *c = &p->use->containers[i];
		struct amounts amounts;

		if (!kube_pod_find_container(p->pod, c->id, name))
			continue;
		if (!read_amounts(&c->latest, &amounts) || !missing--)
			return false;
		sum->micro_cores += amounts.micro_cores;
		sum->bytes += amounts.bytes;
		if (!w)
			continue;
		jsonw_object_open(w);
		jsonw_key_string(w, "name", name);
		write_usage(w, &amounts);
		jsonw_object_close(w);
	}
	return !missing;
}

static void offer_pod(struct answer *a, const struct view_node *n, const struct view_pod *p)
{
	const char *name = view_pod_name(p), *namespace = view_pod_namespace(p);
	const struct labels *labels;
	struct amounts sum;

	if (!p->pod || !p->use || p->pod->phase != POD_RUNNING)
		return;
	labels = &p->pod->template->labels;
	if (!selects(a, name, namespace, labels) || !read_containers(p, NULL, &sum))
		return;
	a->written++;
	if (a->table) {
		write_row(a, name, namespace, labels, n->stats, &sum);
		return;
	}
	open_object(a, name, namespace, labels, n->stats);
	jsonw_key_array(&a->w, "containers");
	read_containers(p, &a->w, &sum);
	jsonw_array_close(&a->w);
	jsonw_object_close(&a->w);
}

static void offer_pods(struct answer *a, const struct view_node *n)
{
	for (size_t i = 0; is_measured(a, n->stats) && i < n->pod_count; i++)
		offer_pod(a, n, &n->pods[i]);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void open_list(struct answer *a)
{
	static const char *const columns[] = {"Name", "cpu", "memory", "Window", NULL};
	char kind[32];

	if (a->table) {
		kube_objects_open_table(&a->w, columns);
		return;
	}
	snprintf(kind, sizeof(kind), "%sList", a->kind);
	jsonw_object_open(&a->w);
	write_type(a, kind);
	jsonw_key_object(&a->w, "metadata");
	jsonw_object_close(&a->w);
	jsonw_key_array(&a->w, "items");
}

/* False: *rs says why. */
static bool read_request(struct answer *a, const struct api_request *rq, const char *resource,
			 struct api_response *rs)
{
	const char *watch = rq->query(rq, "watch");
	bool bad = false;

	a->fields = rq->query(rq, "fieldSelector");
	a->fields = a->fields ? a->fields : "";
	a->table = kube_objects_want_table(rq);
	api_access_request(rq->method, rq->path, &a->path);
	a->one = a->path.name[0];
	if (strcmp(a->path.resource, resource) != 0)
		return api_fail(rs, FAIL_NOT_FOUND, NULL, "there is nothing at %s", rq->path);
	if (watch && (strcmp(watch, "true") == 0 || strcmp(watch, "1") == 0))
		return api_fail(rs, FAIL_METHOD_NOT_ALLOWED, "watch", "%s cannot be watched",
				resource);
	metrics_fields_match(a->fields, "", strcmp(resource, "pods") == 0 ? "" : NULL, &bad);
	if (bad)
		return api_fail(rs, FAIL_BAD_REQUEST, "fieldSelector",
				"\"%.100s\": only metadata.name%s can be selected", a->fields,
				strcmp(resource, "pods") == 0 ? " and metadata.namespace" : "");
	return list_selector_read(rq, &a->selector, rs);
}

static void answer(struct answer *a, const struct api_context *ctx, const struct api_request *rq,
		   const char *resource, void (*offer)(struct answer *a, const struct view_node *n),
		   struct api_response *rs)
{
	if (!read_request(a, rq, resource, rs))
		return;
	a->now_ns = ctx->now_ns();
	a->view = view_slot_take(ctx->views);
	rs->content_type = "application/json";
	jsonw_init(&a->w, &rs->body);
	if (!a->one || a->table)
		open_list(a);
	for (size_t i = 0; i < a->view->node_count; i++)
		offer(a, a->view->nodes[i]);
	if (!a->one || a->table) {
		jsonw_array_close(&a->w);
		jsonw_object_close(&a->w);
	}
	if (a->one && !a->written)
		api_fail(rs, FAIL_NOT_FOUND, NULL,
			 "%s.metrics.k8s.io \"%s\" not found: it is not measured", resource,
			 a->path.name);
	view_drop(a->view);
	selector_free(a->selector);
}

void api_node_metrics(const struct api_context *ctx, const struct api_request *rq,
		      struct api_response *rs)
{
	struct answer a = {.kind = "NodeMetrics"};

	answer(&a, ctx, rq, "nodes", offer_node, rs);
}

void api_pod_metrics(const struct api_context *ctx, const struct api_request *rq,
		     struct api_response *rs)
{
	struct answer a = {.kind = "PodMetrics"};

	answer(&a, ctx, rq, "pods", offer_pods, rs);
}
