/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/advice: requests and limits for each container of each workload, by what its pods
 * demanded (policy/advice/advice.h).
 *
 *   {"apiVersion","kind":"AdviceList","time","policy","throttledBelow",
 *    "total":{"containers","verdicts":{VERDICT:count,..},"freed":{"cpuMillicores","memoryBytes"},
 *             "missing":{..}},
 *    "items":[{"namespace","workload":{"kind","name"},"container","pods","verdict",
 *              "verdicts":{"cpu","memory"},"urgency",
 *              "confidence","hours","requests":{..},"limits":{..},
 *              "demand":{"cpuMillicores":{"p50","p95","p99","startPeak"},"memoryPeakBytes",
 *                        "throttledRatio","oomKills","oomLimitBytes"},
 *              "proposed":{"requests":{..},"limits":{..},"throttledRatio"},"explanation":[..]}],
 *    "continue"}
 *
 * The total is over all items of all pages: freed is what smaller requests of all pods would give
 * back, missing what larger ones would take. requests and limits are the newest pod's, null where it
 * has none; of a unit, which declares nothing, limits are the kernel's, and absent if not known. Items are sorted by
 * namespace, kind and name, then container.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/route.h"
#include "aggregator/model/object_json.h"
#include "aggregator/policy/advice/advice.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* --- what pods declare ------------------------------------------------------------------------ */

/* A container of a workload. */
struct target {
	char *text; /* owned: "KEY\0CONTAINER\0" */
	struct advice_now now;
	bool sidecar, knows_cpu_limit, knows_mem_limit;
	const struct labels *labels; /* of the newest pod; NULL: of a unit */
	int64_t created_ns; /* of that pod */
	UT_hash_handle hh;
};

/* Pods of one template on nodes. */
struct kin {
	const struct pod_template *template;
	const struct kube_pod *newest;
	uint32_t pods;
	UT_hash_handle hh;
};

struct targets {
	struct target *hash;
	struct kin *kin;
};

static struct target *target_of(struct targets *t, const char *key, const char *container)
{
	size_t key_len = strlen(key) + 1, len = key_len + strlen(container) + 1;
	char *text = mem_alloc(len);
	struct target *found;

	memcpy(text, key, key_len);
	memcpy(text + key_len, container, len - key_len);
	HASH_FIND(hh, t->hash, text, len, found);
	if (found) {
		free(text);
		return found;
	}
	found = mem_zalloc(1, sizeof(*found));
	found->text = text;
	HASH_ADD_KEYPTR(hh, t->hash, found->text, len, found);
	return found;
}

static void add_container(struct targets *t, const struct kin *k, const char *key,
			  const cJSON *item, const struct container_spec *spec)
{
	const struct kube_pod *pod = k->newest;
	struct target *to = target_of(t, key, object_json_text(item, "name"));

	to->now.pods += k->pods;
	if (to->now.declared && pod->created_ns <= to->created_ns)
		return;
	to->now.declared = true;
	to->now.requests = spec->requests;
	to->now.limits = spec->limits;
	to->knows_cpu_limit = to->knows_mem_limit = true;
	to->sidecar = spec->sidecar;
	to->labels = &k->template->labels;
	to->created_ns = pod->created_ns;
}

/* The template has names in its text alone. */
static void add_containers(struct targets *t, const struct kin *k)
{
	const struct pod_spec *spec = &k->template->spec;
	cJSON *tree = cJSON_ParseWithLength(k->template->text, k->template->text_len);
	const cJSON *of = object_json_find(tree, "spec"), *item;
	char key[WORKLOAD_KEY_MAX + 1];
	size_t i = 0;

	demand_key_of(k->newest, key);
	item = object_json_first(object_json_find(of, "containers"));
	for (; item && i < spec->container_count; item = item->next, i++)
		add_container(t, k, key, item, &spec->containers[i]);
	item = object_json_first(object_json_find(of, "initContainers"));
	for (i = 0; item && i < spec->init_count; item = item->next, i++)
		if (spec->init[i].sidecar)
			add_container(t, k, key, item, &spec->init[i]);
	cJSON_Delete(tree);
}

static void count_pod(struct targets *t, const struct kube_pod *pod)
{
	const struct pod_template *template = pod->template;
	struct kin *k;

	HASH_FIND_PTR(t->kin, &template, k);
	if (!k) {
		k = mem_zalloc(1, sizeof(*k));
		k->template = template;
		HASH_ADD_PTR(t->kin, template, k);
	}
	k->pods++;
	if (!k->newest || pod->created_ns > k->newest->created_ns)
		k->newest = pod;
}

static struct resource_list kernel_limits_of(const struct kernel_limits *l)
{
	return (struct resource_list){
		.has_cpu = l->cpu_milli >= 0,
		.has_mem = l->mem_bytes >= 0,
		.cpu_milli = l->cpu_milli,
		.mem_bytes = l->mem_bytes,
	};
}

static void count_unit(struct targets *t, const struct pod_stats *use)
{
	char *key = mem_printf("/%s/%s", entity_kind_name[use->kind], use->name);
	struct target *to = target_of(t, key, "");

	to->now.pods++;
	to->now.limits = kernel_limits_of(use->limits);
	to->knows_cpu_limit = use->limits->cpu_milli != LIMIT_UNKNOWN;
	to->knows_mem_limit = use->limits->mem_bytes != LIMIT_UNKNOWN;
	free(key);
}

static void gather_targets(struct targets *t, const struct view *v)
{
	struct kin *k, *next;

	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];

		for (size_t j = 0; j < n->pod_count; j++) {
			const struct view_pod *p = &n->pods[j];

			if (p->pod && kube_pod_is_active(p->pod))
				count_pod(t, p->pod);
			else if (!p->pod && p->use->kind != ENTITY_POD)
				count_unit(t, p->use);
		}
	}
	HASH_RELEASE (t->kin, k, next) {
		add_containers(t, k);
		free(k);
	}
}

static void targets_fini(struct targets *t)
{
	struct target *at, *next;

	HASH_RELEASE (t->hash, at, next) {
		free(at->text);
		free(at);
	}
}

static const struct target *find_target(const struct targets *t, const struct demand_record *r)
{
	const struct target *found;

	HASH_FIND(hh, t->hash, r->text, strlen(r->key) + strlen(r->container) + 2, found);
	return found;
}

/* --- items ------------------------------------------------------------------------------------ */

struct answer {
	const struct view *view;
	const struct list_query *query;
	struct advice_options options;
	bool explain;
	int64_t now_ns;
	struct targets targets;
	/* total */
	size_t containers, verdicts[ADVICE_UNDECLARED + 1];
	double freed_cpu, freed_mem, missing_cpu, missing_mem;
};

static void write_amount(struct jsonw *w, const char *key, bool has, int64_t amount)
{
	if (has)
		jsonw_key_int(w, key, amount);
	else
		jsonw_key_null(w, key);
}

/* cpu, mem: whether it is known that there is an amount or none. */
static void write_list(struct jsonw *w, const char *key, const struct resource_list *of, bool cpu,
		       bool mem)
{
	jsonw_key_object(w, key);
	if (cpu)
		write_amount(w, "cpuMillicores", of->has_cpu, of->cpu_milli);
	if (mem)
		write_amount(w, "memoryBytes", of->has_mem, of->mem_bytes);
	jsonw_object_close(w);
}

static void write_names(struct jsonw *w, const struct demand_record *r)
{
	const char *kind = strchr(r->key, '/') + 1, *name = strchr(kind, '/') + 1;
	char *text = mem_strdup(r->key);

	text[kind - r->key - 1] = text[name - r->key - 1] = '\0';
	jsonw_key_string(w, "namespace", text);
	jsonw_key_object(w, "workload");
	jsonw_key_string(w, "kind", text + (kind - r->key));
	jsonw_key_string(w, "name", name);
	jsonw_object_close(w);
	jsonw_key_text(w, "container", r->container);
	free(text);
}

static void write_demand(struct jsonw *w, const struct advice *a)
{
	jsonw_key_object(w, "demand");
	jsonw_key_object(w, "cpuMillicores");
	jsonw_key_known(w, "p50", a->p50_milli, 1);
	jsonw_key_known(w, "p95", a->p95_milli, 1);
	jsonw_key_known(w, "p99", a->p99_milli, 1);
	jsonw_key_known(w, "startPeak", a->start_milli, 1);
	jsonw_object_close(w);
	jsonw_key_known(w, "memoryPeakBytes", a->peak_bytes, 0);
	jsonw_key_known(w, "throttledRatio", a->throttled_share, 4);
	jsonw_key_uint(w, "oomKills", a->oom_kills);
	jsonw_key_known(w, "oomLimitBytes", a->oom_limit_bytes, 0);
	jsonw_object_close(w);
}

static void write_item(struct jsonw *w, const struct demand_record *r, const struct target *to,
		       const struct advice *a, const char *why)
{
	const struct advice_now *now = &to->now;

	jsonw_object_open(w);
	write_names(w, r);
	jsonw_key_true(w, "sidecar", to->sidecar);
	jsonw_key_uint(w, "pods", now->pods);
	jsonw_key_string(w, "verdict", advice_verdicts[a->verdict]);
	jsonw_key_object(w, "verdicts");
	jsonw_key_string(w, "cpu", advice_verdicts[a->cpu]);
	jsonw_key_string(w, "memory", advice_verdicts[a->memory]);
	jsonw_object_close(w);
	jsonw_key_fixed(w, "urgency", a->urgency, 4);
	jsonw_key_string(w, "confidence", advice_confidences[a->confidence]);
	jsonw_key_fixed(w, "hours", a->hours, 4);
	write_list(w, "requests", &now->requests, true, true);
	write_list(w, "limits", &now->limits, to->knows_cpu_limit, to->knows_mem_limit);
	write_demand(w, a);
	jsonw_key_object(w, "proposed");
	write_list(w, "requests", &a->requests, true, true);
	write_list(w, "limits", &a->limits, true, true);
	jsonw_key_known(w, "throttledRatio", a->throttled_at_limit, 4);
	jsonw_object_close(w);
	if (why)
		list_write_lines(w, "explanation", why);
	jsonw_object_close(w);
}

static void add_difference(double now, double proposed, double *freed, double *missing)
{
	*freed += fmax(now - proposed, 0);
	*missing += fmax(proposed - now, 0);
}

static void add_total(struct answer *an, const struct advice_now *now, const struct advice *a)
{
	an->containers++;
	an->verdicts[a->verdict]++;
	if (!now->declared)
		return;
	if (a->requests.has_cpu)
		add_difference((double)now->requests.cpu_milli * now->pods,
			       (double)a->requests.cpu_milli * now->pods, &an->freed_cpu,
			       &an->missing_cpu);
	if (a->requests.has_mem)
		add_difference((double)now->requests.mem_bytes * now->pods,
			       (double)a->requests.mem_bytes * now->pods, &an->freed_mem,
			       &an->missing_mem);
}

static void write_amounts(struct jsonw *w, const char *key, double cpu_milli, double mem_bytes)
{
	jsonw_key_object(w, key);
	jsonw_key_fixed(w, "cpuMillicores", cpu_milli, 0);
	jsonw_key_fixed(w, "memoryBytes", mem_bytes, 0);
	jsonw_object_close(w);
}

static void write_total(struct jsonw *w, const struct answer *an)
{
	jsonw_key_object(w, "total");
	jsonw_key_uint(w, "containers", an->containers);
	jsonw_key_object(w, "verdicts");
	for (int v = 0; v <= ADVICE_UNDECLARED; v++)
		jsonw_key_uint(w, advice_verdicts[v], an->verdicts[v]);
	jsonw_object_close(w);
	write_amounts(w, "freed", an->freed_cpu, an->freed_mem);
	write_amounts(w, "missing", an->missing_cpu, an->missing_mem);
	jsonw_object_close(w);
}

static bool is_of_namespace(const char *key, const char *namespace)
{
	size_t len = strlen(namespace);

	return strncmp(key, namespace, len) == 0 && key[len] == '/';
}

/* Workloads without pods have no requests to judge. */
static bool is_wanted(const struct answer *an, const struct demand_record *r,
		      const struct target *to)
{
	const struct list_query *q = an->query;

	if ((q->namespace && !is_of_namespace(r->key, q->namespace)) ||
	    (!to && view_knows(an->view, OBJECT_POD)))
		return false;
	return !q->selector || (to && to->labels && selector_matches(q->selector, to->labels));
}

static bool is_after(const struct list_query *q, const struct demand_record *r)
{
	int order = q->after_name ? strcmp(r->key, q->after_name) : 1;

	return order > 0 || (order == 0 && strcmp(r->container, q->after_node) > 0);
}

/* *last becomes the last of the page; true: more follow. */
static bool write_items(struct answer *an, struct jsonw *w, const struct demand_record **last)
{
	static const struct target nothing;
	const struct demand_table *t = an->view->demand;
	size_t written = 0;
	bool more = false;

	for (size_t i = 0; t && i < t->count; i++) {
		const struct demand_record *r = t->of[i];
		const struct target *found = find_target(&an->targets, r);
		const struct target *to = found ? found : &nothing;
		struct buf why = BUF_INIT;
		struct advice a;

		if (!is_wanted(an, r, found))
			continue;
		advice_make(r, &to->now, &an->options, an->now_ns, &a, an->explain ? &why : NULL);
		add_total(an, &to->now, &a);
		if (is_after(an->query, r) && written < an->query->limit) {
			write_item(w, r, to, &a, an->explain ? why.data : NULL);
			written++;
			*last = r;
		} else if (is_after(an->query, r)) {
			more = true;
		}
		buf_fini(&why);
	}
	return more;
}

static void write_answer(struct answer *an, struct api_response *rs)
{
	const struct demand_record *last = NULL;
	struct jsonw w;
	bool more;

	gather_targets(&an->targets, an->view);
	rs->etag = list_etag(an->view, an->now_ns);
	list_answer_open(rs, &w, "AdviceList", an->now_ns);
	jsonw_key_string(&w, "policy", advice_policies[an->options.policy]);
	jsonw_key_fixed(&w, "throttledBelow", an->options.throttled_below, 4);
	jsonw_key_array(&w, "items");
	more = write_items(an, &w, &last);
	jsonw_array_close(&w);
	write_total(&w, an);
	if (more && last)
		list_write_continue(&w, "", last->key, last->container);
	list_answer_close(&w);
	targets_fini(&an->targets);
}

static bool read_share(const struct api_request *rq, double *share, struct api_response *rs)
{
	const char *text = rq->query(rq, "throttledBelow");

	*share = ADVICE_THROTTLED_BELOW;
	if (!text || !*text || advice_read_share(text, share))
		return true;
	return api_fail(rs, FAIL_BAD_REQUEST, "throttledBelow",
			"must be a share above 0 and below 1, as 1%% or 0.01, and is \"%s\"", text);
}

void api_advice(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	struct answer an = {.explain = api_query_flag(rq, "explain")};
	struct list_query q;
	struct view *v;

	if (!read_share(rq, &an.options.throttled_below, rs))
		return;
	an.options.policy = (enum advice_policy)api_query_choice(rq, "policy", advice_policies);
	an.view = v = view_slot_take(ctx->views);
	an.query = &q;
	an.now_ns = ctx->now_ns();
	if (list_query_read(rq, v, &q, rs)) {
		write_answer(&an, rs);
		list_query_fini(&q);
	}
	view_drop(v);
}
