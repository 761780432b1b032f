/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/fleet: all nodes as rows, for what shows thousands at once and reads them again every few
 * seconds: an eighth of the bytes of /v1/nodes, and no page ends it.
 *
 *   {"apiVersion","kind":"Fleet","time","columns":[NAME,..],"rows":[[VALUE,..],..],"total":{..}}
 *
 * Columns are paths of members of a node in /v1/nodes, which explains them; ?columns=A,B chooses
 * some, in that order. null is what is unknown there. total is that of /v1/nodes.
 */
#include <math.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/nodes_total.h"
#include "shared/clock.h"

/* A node and what its columns are made of. */
struct row {
	const struct view_node *node;
	const struct kube_node *known; /* NULL: the API has no such node */
	bool api; /* one is followed */
	int64_t now_ns;
	enum freshness state;
	struct limits_shares shares;
};

static double latest_of(const struct row *r, enum usage_latest i)
{
	const struct latest *l = &r->node->stats->usage.latest.of[i];

	return l->known ? (double)l->value : NAN;
}

static const struct window_set *window_of(const struct row *r)
{
	return &r->node->stats->usage.windows[WINDOW_5M];
}

#define AVERAGED(member, field)                                                                    \
	(window_of(r)->member.known ? (double)window_of(r)->member.field : NAN)
#define COUNTED(known, value) ((known) ? (double)(value) : NAN)
#define OF_API(value)	      COUNTED(r->node->model, value)
#define WAITED(p)	      COUNTED(window_of(r)->counts.seconds > 0, window_of(r)->counts.pressure[p])

static double allocatable_of(const struct row *r, enum resource_id id)
{
	const struct view_node *n = r->node;
	double measured =
		(double)(id == RESOURCE_CPU ? n->cpu_allocatable_milli : n->mem_allocatable_bytes);

	if (r->known)
		return COUNTED(resources_has(&r->known->allocatable, id),
			       r->known->allocatable.of[id]);
	return measured > 0 ? measured : NAN;
}

static void write_flag(struct jsonw *w, bool known, bool value)
{
	if (known)
		jsonw_bool(w, value);
	else
		jsonw_null(w);
}

static void write_labels(struct jsonw *w, const struct kube_node *known)
{
	jsonw_object_open(w);
	for (size_t i = 0; known && i < known->labels.count; i++)
		jsonw_key_string(w, known->labels.of[i].key, known->labels.of[i].value);
	jsonw_object_close(w);
}

/* Columns that are no numbers. X(name, path, what writes the value of struct row *r) */
#define OTHERS(X)                                                                                  \
	X(NAME, "name", jsonw_string(w, r->node->name))                                            \
	X(LABELS, "labels", write_labels(w, r->known))                                             \
	X(STATE, "source.state", jsonw_string(w, freshness_name(r->state)))                        \
	X(READY, "ready", write_flag(w, r->known, r->known && r->known->ready))                    \
	X(UNSCHEDULABLE, "unschedulable",                                                          \
	  write_flag(w, r->known, r->known && r->known->unschedulable))                            \
	X(UNKNOWN, "unknownToApi", jsonw_bool(w, r->api && !r->known))

/* Numbers. X(name, path, decimals, value of struct row *r) */
#define NUMBERS(X)                                                                                 \
	X(AGE, "source.ageSeconds", 1,                                                             \
	  COUNTED(r->state != NEVER,                                                               \
		  (double)node_stats_age_ns(r->node->stats, r->now_ns) / NS_PER_SEC))              \
	X(CPU_ALLOCATABLE, "allocatable.cpuMillicores", 0, allocatable_of(r, RESOURCE_CPU))        \
	X(MEM_ALLOCATABLE, "allocatable.memoryBytes", 0, allocatable_of(r, RESOURCE_MEMORY))       \
	X(CPU_REQUESTS, "requests.cpuMillicores", 0,                                               \
	  OF_API(r->node->sums.requests.of[RESOURCE_CPU]))                                         \
	X(MEM_REQUESTS, "requests.memoryBytes", 0,                                                 \
	  OF_API(r->node->sums.requests.of[RESOURCE_MEMORY]))                                      \
	X(CPU_DECLARED, "limitRatio.declared.cpu", 4,                                              \
	  limits_ratio(&r->shares.declared, RESOURCE_CPU))                                         \
	X(MEM_DECLARED, "limitRatio.declared.memory", 4,                                           \
	  limits_ratio(&r->shares.declared, RESOURCE_MEMORY))                                      \
	X(CPU_KERNEL, "limitRatio.kernel.cpu", 4, limits_ratio(&r->shares.kernel, RESOURCE_CPU))   \
	X(MEM_KERNEL, "limitRatio.kernel.memory", 4,                                               \
	  limits_ratio(&r->shares.kernel, RESOURCE_MEMORY))                                        \
	X(CPU_UNLIMITED, "unlimitedContainers.cpu", 0,                                             \
	  OF_API(r->node->sums.load[RESOURCE_CPU].unlimited))                                      \
	X(MEM_UNLIMITED, "unlimitedContainers.memory", 0,                                          \
	  OF_API(r->node->sums.load[RESOURCE_MEMORY].unlimited))                                   \
	X(PODS, "pods", 0, OF_API(r->node->sums.pods))                                             \
	X(CPU, "usage.cpuMillicores.latest.value", 0, latest_of(r, LATEST_cpu_milli))              \
	X(CPU_MEAN, "usage.cpuMillicores.windows.5m.mean", 1, AVERAGED(cpu_milli, mean))           \
	X(CPU_STDDEV, "usage.cpuMillicores.windows.5m.stddev", 1, AVERAGED(cpu_milli, stddev))     \
	X(CPU_P95, "usage.cpuMillicores.windows.5m.p95", 1,                                        \
	  window_of(r)->cpu_milli.percentiles ? AVERAGED(cpu_milli, p95) : NAN)                    \
	X(WORKSET, "usage.workingSetBytes.latest.value", 0,                                        \
	  latest_of(r, LATEST_working_set_bytes))                                                  \
	X(WORKSET_MEAN, "usage.workingSetBytes.windows.5m.mean", 0,                                \
	  AVERAGED(working_set_bytes, mean))                                                       \
	X(WORKSET_STDDEV, "usage.workingSetBytes.windows.5m.stddev", 0,                            \
	  AVERAGED(working_set_bytes, stddev))                                                     \
	X(CPU_WAITED, "contention.cpu", 4, WAITED(CONTENTION_CPU))                                 \
	X(MEM_WAITED, "contention.memory", 4, WAITED(CONTENTION_MEMORY))                           \
	X(OOM_KILLS, "contention.oomKills", 0,                                                     \
	  COUNTED(window_of(r)->counts.oom_known, window_of(r)->counts.oom_kills))

#define X(name, ...) COLUMN_##name,
enum column { OTHERS(X) NUMBERS(X) COLUMNS };
#undef X

static const char *const columns[COLUMNS] = {
#define X(name, path, ...) [COLUMN_##name] = (path),
	OTHERS(X) NUMBERS(X)
#undef X
};

static void write_value(struct jsonw *w, enum column column, const struct row *r)
{
	switch (column) {
#define X(name, path, written)                                                                     \
	case COLUMN_##name:                                                                        \
		(written);                                                                         \
		return;
		OTHERS(X)
#undef X
#define X(name, path, decimals, value)                                                             \
	case COLUMN_##name:                                                                        \
		jsonw_fixed(w, value, decimals);                                                   \
		return;
		NUMBERS(X)
#undef X
	case COLUMNS:
		break;
	}
}

/* --- the query -------------------------------------------------------------------------------- */

struct choice {
	size_t count;
	enum column of[COLUMNS];
};

static enum column find_column(const char *name, size_t len)
{
	int c = 0;

	while (c < COLUMNS && (strlen(columns[c]) != len || strncmp(columns[c], name, len) != 0))
		c++;
	return (enum column)c;
}

/* False: *rs says what is wrong. Without a text all columns are chosen. */
static bool read_choice(const char *text, struct choice *choice, struct api_response *rs)
{
	size_t len;

	choice->count = 0;
	for (; !text && choice->count < COLUMNS; choice->count++)
		choice->of[choice->count] = (enum column)choice->count;
	for (; text; text = text[len] ? text + len + 1 : NULL) {
		enum column column;

		len = strcspn(text, ",");
		column = find_column(text, len);
		if (column == COLUMNS || choice->count == COLUMNS) {
			api_fail(rs, FAIL_BAD_REQUEST, "columns",
				 column == COLUMNS ? "there is no column \"%.*s\""
						   : "names too many columns, up to \"%.*s\"",
				 (int)(len < 64 ? len : 64), text);
			return false;
		}
		choice->of[choice->count++] = column;
	}
	return true;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void write_row(struct jsonw *w, const struct choice *choice, struct row *r)
{
	r->known = r->node->model ? r->node->model->node : NULL;
	r->state = node_stats_freshness(r->node->stats, r->now_ns);
	r->shares = (struct limits_shares){0};
	limits_add(&r->shares, r->node, UNLIMITED_IGNORE);
	jsonw_array_open(w);
	for (size_t i = 0; i < choice->count; i++)
		write_value(w, choice->of[i], r);
	jsonw_array_close(w);
}

void api_fleet(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct row row = {.now_ns = ctx->now_ns()};
	struct nodes_total total;
	struct choice choice;
	struct jsonw w;
	struct view *v;

	if (!read_choice(rq->query(rq, "columns"), &choice, rs))
		return;
	v = view_slot_take(ctx->views);
	row.api = view_knows(v, OBJECT_NODE);
	nodes_total_init(&total, UNLIMITED_IGNORE, v->cluster != NULL);
	list_answer_open(rs, &w, "Fleet", row.now_ns);
	jsonw_key_array(&w, "columns");
	for (size_t i = 0; i < choice.count; i++)
		jsonw_string(&w, columns[choice.of[i]]);
	jsonw_array_close(&w);
	jsonw_key_array(&w, "rows");
	for (size_t i = 0; i < v->node_count; i++) {
		row.node = v->nodes[i];
		nodes_total_add(&total, row.node, row.now_ns);
		write_row(&w, &choice, &row);
	}
	jsonw_array_close(&w);
	nodes_total_write(&w, &total);
	list_answer_close(&w);
	rs->etag = list_etag(v, row.now_ns);
	nodes_total_fini(&total);
	view_drop(v);
}
