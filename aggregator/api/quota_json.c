/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/quota_json.h"

#include <math.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "aggregator/api/view_json.h"
#include "shared/array.h"

/* --- findings */

static void write_finding(struct jsonw *w, const struct quota_finding *f)
{
	const struct quota_lint_kind *kind = quota_lint_kind(f->code);

	jsonw_object_open(w);
	jsonw_key_string(w, "code", kind->code);
	jsonw_key_string(w, "severity", quota_severity_name(kind->severity));
	jsonw_key_string(w, "kind", f->kind);
	jsonw_key_text(w, "namespace", f->namespace);
	jsonw_key_text(w, "name", f->name);
	jsonw_key_text(w, "field", f->field);
	jsonw_key_string(w, "text", f->text);
	jsonw_key_string(w, "behaviour", kind->behaviour);
	if (*f->resource) {
		jsonw_key_string(w, "resource", f->resource);
		jsonw_key_int(w, "value", f->value);
		jsonw_key_int(w, "bound", f->bound);
	}
	jsonw_object_close(w);
}

static int compare_namespace(const void *namespace, const void *finding)
{
	return strcmp(namespace, ((const struct quota_finding *)finding)->namespace);
}

void quota_json_write_findings(struct jsonw *w, const struct quota_findings *findings,
			       const char *namespace)
{
	size_t at = namespace ? array_lower_bound(namespace, findings->of, findings->count,
						  sizeof(*findings->of), compare_namespace)
			      : 0;

	jsonw_key_array(w, "findings");
	for (; at < findings->count; at++) {
		if (namespace && strcmp(findings->of[at].namespace, namespace) != 0)
			break;
		write_finding(w, &findings->of[at]);
	}
	jsonw_array_close(w);
}

/* --- a quota */

static void write_knobs(struct jsonw *w, const struct quota *q)
{
	jsonw_key_fixed(w, "weight", q->weight, 6);
	if (q->min_runtime_ns)
		jsonw_key_fixed(w, "minRuntimeSeconds", (double)q->min_runtime_ns / 1e9, 3);
	if (q->evictions_ns) {
		jsonw_key_object(w, "maxEvictions");
		jsonw_key_int(w, "count", q->evictions_max);
		jsonw_key_fixed(w, "seconds", (double)q->evictions_ns / 1e9, 3);
		jsonw_object_close(w);
	}
}

static void write_real_use(struct jsonw *w, const struct quota *q)
{
	double cpu;

	if (!q->use || !q->use->pods)
		return;
	jsonw_key_object(w, "realUse");
	jsonw_key_object(w, "cpuMillicores");
	jsonw_key_known(w, "mean", q->use->cpu_mean_milli, 3);
	jsonw_key_known(w, "p50", q->use->cpu_p50_milli, 3);
	jsonw_key_known(w, "p95", q->use->cpu_p95_milli, 3);
	jsonw_object_close(w);
	jsonw_key_known(w, "workingSetBytes", q->use->working_set_bytes, 0);
	jsonw_object_close(w);
	/* Requested and not used. */
	cpu = isfinite(q->use->cpu_p95_milli) ? q->use->cpu_p95_milli : q->use->cpu_mean_milli;
	jsonw_key_object(w, "idle");
	if (isfinite(cpu))
		jsonw_key_fixed(w, "cpuMillicores", fmax(0, (double)q->used.of[RESOURCE_CPU] - cpu),
				3);
	if (isfinite(q->use->working_set_bytes))
		jsonw_key_fixed(w, "memoryBytes",
				fmax(0, (double)q->used.of[RESOURCE_MEMORY] -
						q->use->working_set_bytes),
				0);
	jsonw_object_close(w);
}

static void write_reason(struct jsonw *w, const struct quota *q, const struct quota_balance *b,
			 const char *resource)
{
	struct error why;
	int64_t max;

	quota_state_tell(q, b, resource, &why);
	jsonw_object_open(w);
	jsonw_key_string(w, "code", quota_state_name(quota_state_of(q, b, resource)));
	jsonw_key_string(w, "text", why.text);
	jsonw_key_string(w, "resource", resource);
	jsonw_key_object(w, "numbers");
	jsonw_key_int(w, "used", resources_amount(&q->used, resource));
	jsonw_key_int(w, "min", resources_amount(&q->min, resource));
	jsonw_key_int(w, "guaranteed", resources_amount(&b->guaranteed, resource));
	if (resources_find(&q->max, resource, &max))
		jsonw_key_int(w, "max", max);
	jsonw_key_int(w, "pending", resources_amount(&q->pending, resource));
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_verdict(struct jsonw *w, const struct quota *q, const struct quota_balance *b)
{
	enum quota_state worst = QUOTA_STATE_WITHIN;
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(&b->told, &at, &name, &amount);)
		if (quota_state_of(q, b, name) < worst)
			worst = quota_state_of(q, b, name);
	jsonw_key_string(w, "verdict", quota_state_name(worst));
	jsonw_key_array(w, "reasons");
	for (size_t at = 0; resources_next(&b->told, &at, &name, &amount);)
		write_reason(w, q, b, name);
	jsonw_array_close(w);
}

void quota_json_write_members(struct jsonw *w, const struct quota_book *book, size_t i,
			      const struct quota_balances *all,
			      const struct quota_findings *findings)
{
	const struct quota *q = quota_book_at(book, i);
	struct quota_balance b;

	quota_balance_of(book, i, all, &b);
	jsonw_key_string(w, "namespace", q->namespace);
	if (*q->name)
		jsonw_key_string(w, "name", q->name);
	else
		jsonw_key_bool(w, "default", true);
	view_json_write_resources(w, "min", &q->min, ABSENT_LEFT_OUT);
	view_json_write_resources(w, "max", &q->max, ABSENT_LEFT_OUT);
	view_json_write_resources(w, "guaranteed", &b.guaranteed, ABSENT_LEFT_OUT);
	view_json_write_resources(w, "used", &q->used, ABSENT_ZERO);
	view_json_write_resources(w, "pending", &q->pending, ABSENT_ZERO);
	view_json_write_resources(w, "borrowed", &b.borrowed, ABSENT_LEFT_OUT);
	view_json_write_resources(w, "lent", &b.lent, ABSENT_LEFT_OUT);
	view_json_write_resources(w, "share", &b.fair, ABSENT_LEFT_OUT);
	write_real_use(w, q);
	jsonw_key_object(w, "pods");
	jsonw_key_int(w, "used", q->used_pods);
	jsonw_key_int(w, "assumed", q->assumed_pods);
	jsonw_key_int(w, "pending", q->pending_pods);
	if (q->use)
		jsonw_key_int(w, "measured", q->use->pods);
	jsonw_object_close(w);
	write_knobs(w, q);
	write_verdict(w, q, &b);
	if (findings)
		quota_json_write_findings(w, findings, q->namespace);
	quota_balance_fini(&b);
}

/* The sums of one kind, of every resource. */
static void write_total(struct jsonw *w, const char *key, const struct quota_balances *all,
			size_t offset)
{
	struct resources sums = RESOURCES_NONE;

	for (size_t i = 0; i < all->count; i++)
		resources_set_named(&sums, all->of[i].resource,
				    *(const int64_t *)((const char *)&all->of[i].sum + offset));
	view_json_write_resources(w, key, &sums, ABSENT_LEFT_OUT);
	resources_fini(&sums);
}

void quota_json_write_totals(struct jsonw *w, const struct quota_balances *all)
{
	jsonw_key_object(w, "total");
	write_total(w, "min", all, offsetof(struct quota_share_sum, min));
	write_total(w, "guaranteed", all, offsetof(struct quota_share_sum, guaranteed));
	write_total(w, "used", all, offsetof(struct quota_share_sum, used));
	view_json_write_resources(w, "pending", &all->pending, ABSENT_LEFT_OUT);
	write_total(w, "borrowed", all, offsetof(struct quota_share_sum, borrowed));
	write_total(w, "lent", all, offsetof(struct quota_share_sum, lent));
	write_total(w, "unused", all, offsetof(struct quota_share_sum, unused));
	jsonw_key_array(w, "alarms");
	for (size_t i = 0; i < all->count; i++)
		if (*all->of[i].sum.alarm.text)
			jsonw_string(w, all->of[i].sum.alarm.text);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

/* --- admission */

void quota_json_write_admission(struct jsonw *w, const struct quota_verdict *v)
{
	jsonw_key_string(w, "gate", quota_admission_name(v->reason));
	jsonw_key_array(w, "reasons");
	jsonw_object_open(w);
	jsonw_key_string(w, "code", quota_admission_name(v->reason));
	jsonw_key_string(w, "text", v->error.text);
	if (v->resource) {
		jsonw_key_string(w, "resource", v->resource);
		jsonw_key_object(w, "numbers");
		jsonw_key_int(w, "used", v->used);
		jsonw_key_int(w, "asked", v->asked);
		jsonw_key_int(w, "nominated", v->nominated);
		jsonw_key_int(w, "bound", v->bound);
		jsonw_object_close(w);
	}
	jsonw_object_close(w);
	jsonw_array_close(w);
}

/* --- victims */

static void write_victim(struct jsonw *w, const struct preempt_victim *v)
{
	static const char *const uses[] = {
		[PREEMPT_IDLE] = "idle",
		[PREEMPT_UNKNOWN] = "unknown",
		[PREEMPT_BUSY] = "busy",
	};

	jsonw_object_open(w);
	jsonw_key_string(w, "namespace", v->pod->object.namespace);
	jsonw_key_string(w, "name", v->pod->object.name);
	jsonw_key_string(w, "uid", v->pod->object.uid);
	jsonw_key_string(w, "node", v->node);
	jsonw_key_int(w, "priority", v->priority);
	if (v->started_ns)
		jsonw_key_time(w, "started", v->started_ns);
	view_json_write_resources(w, "requests", kube_pod_requests(v->pod), ABSENT_LEFT_OUT);
	jsonw_key_int(w, "graceSeconds", kube_pod_grace_sec(v->pod));
	jsonw_key_string(w, "use", uses[v->use]);
	jsonw_key_known(w, "useShare", v->use_share, 6);
	jsonw_key_bool(w, "violatesPdb", v->violates_pdb);
	jsonw_key_string(w, "reason", v->why);
	jsonw_object_close(w);
}

void quota_json_write_victims(struct jsonw *w, const struct preempt_candidate *c)
{
	jsonw_key_array(w, "victims");
	for (size_t i = 0; i < c->victim_count; i++)
		write_victim(w, &c->victims[i]);
	jsonw_array_close(w);
}

static void hash_text(crypto_generichash_state *hash, const char *text)
{
	crypto_generichash_update(hash, (const uint8_t *)text, strlen(text) + 1);
}

void quota_json_plan_id(const struct kube_pod *pod, const struct preempt_candidate *c,
			char id[QUOTA_PLAN_LEN])
{
	uint8_t digest[crypto_generichash_BYTES_MIN];
	crypto_generichash_state hash;

	crypto_generichash_init(&hash, NULL, 0, sizeof(digest));
	hash_text(&hash, pod->object.uid);
	hash_text(&hash, c->node);
	for (size_t i = 0; i < c->victim_count; i++)
		hash_text(&hash, c->victims[i].pod->object.uid);
	crypto_generichash_final(&hash, digest, sizeof(digest));
	sodium_bin2hex(id, QUOTA_PLAN_LEN, digest, (QUOTA_PLAN_LEN - 1) / 2);
}

void quota_json_write_pod(struct jsonw *w, const struct kube_pod *pod)
{
	jsonw_key_string(w, "namespace", pod->object.namespace);
	jsonw_key_string(w, "name", pod->object.name);
	jsonw_key_int(w, "priority", pod->template->priority);
	view_json_write_resources(w, "requests", kube_pod_requests(pod), ABSENT_LEFT_OUT);
}
