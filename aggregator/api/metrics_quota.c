/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of elastic quotas: what each has, and what they said to schedulers. Of each quota cpu,
 * memory and the first few other resources that quotas name, by their names, and no more than so
 * many quotas: names come from outside, and each is a series. What is left out is counted. CPU is
 * in cores and memory in bytes, as the label `resource` says; everything else in its own unit.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "aggregator/api/metrics.h"
#include "aggregator/api/quota_session.h"

enum { QUOTAS_MOST = 1000, OTHERS_MOST = 8 };

/* The rows that are told, of each quota. */
struct told {
	const struct quota_book *book;
	struct quota_balances balances;
	size_t count;
	const struct quota_balance_row *rows[OTHERS_MOST + 2];
};

static const struct {
	const char *name, *help;
	/* The structure that has it: the first two by resource, a share as an amount. */
	enum { OF_QUOTA, OF_BALANCE, OF_SHARE } of;
	size_t offset;
	double absent;
} families[] = {
	{"evenkeel_quota_min", "What is guaranteed (cpu in cores, memory in bytes).", OF_QUOTA,
	 offsetof(struct quota, min), 0},
	{"evenkeel_quota_max", "What may be used at most; none where there is no bound.", OF_QUOTA,
	 offsetof(struct quota, max), NAN},
	{"evenkeel_quota_used", "Requests of pods with a node, and of those promised one.",
	 OF_QUOTA, offsetof(struct quota, used), 0},
	{"evenkeel_quota_pending", "Requests of pods without a node.", OF_QUOTA,
	 offsetof(struct quota, pending), 0},
	{"evenkeel_quota_borrowed", "What is used beyond min.", OF_SHARE,
	 offsetof(struct quota_share, borrowed), 0},
	{"evenkeel_quota_lent", "What others use of an unused min.", OF_SHARE,
	 offsetof(struct quota_share, lent), 0},
	{"evenkeel_quota_share", "What it could use if all took as much as they want.", OF_SHARE,
	 offsetof(struct quota_share, fair), 0},
	{"evenkeel_quota_starved",
	 "What pending pods within min ask for of resources that others have.", OF_BALANCE,
	 offsetof(struct quota_balance, starved), 0},
};

/* of: the structure that has the family. */
static double amount_of(size_t family, const void *of, const char *resource)
{
	const void *member = (const char *)of + families[family].offset;
	int64_t amount;

	if (families[family].of == OF_SHARE)
		return (double)*(const int64_t *)member;
	return resources_find(member, resource, &amount) ? (double)amount : families[family].absent;
}

static void write_sample(struct buf *out, const char *family, const struct quota *q,
			 const char *resource, double amount)
{
	if (isnan(amount))
		return;
	buf_printf(out, "%s{namespace=\"", family);
	metrics_write_label(out, q->namespace);
	buf_add_str(out, "\",resource=\"");
	metrics_write_label(out, resource);
	buf_add_str(out, "\"}");
	metrics_write_value(out, strcmp(resource, "cpu") == 0 ? amount / 1000 : amount);
}

static void write_family(struct buf *out, const struct told *t, size_t family)
{
	size_t quotas = quota_book_count(t->book);

	metrics_write_family(out, families[family].name, families[family].help);
	for (size_t i = 0; i < quotas && i < QUOTAS_MOST; i++) {
		const struct quota *q = quota_book_at(t->book, i);
		struct quota_balance b = {0};
		const void *of = families[family].of == OF_BALANCE ? (void *)&b : q;

		if (of == &b)
			quota_balance_of(t->book, i, &t->balances, &b);
		for (size_t k = 0; k < t->count; k++) {
			const struct quota_balance_row *row = t->rows[k];

			if (families[family].of == OF_SHARE)
				of = &row->of[i];
			if (quota_names(q, row->resource))
				write_sample(out, families[family].name, q, row->resource,
					     amount_of(family, of, row->resource));
		}
		quota_balance_fini(&b);
	}
}

static void write_quotas(struct buf *out, const struct quota_session *session)
{
	struct told t = {.book = session->book};
	size_t others = 0, quotas = quota_book_count(session->book), left_out;

	quota_balances_of(session->book, &t.balances);
	/* The balances come sorted, and the usual ones first. */
	for (size_t i = 0; i < t.balances.count; i++) {
		const struct quota_balance_row *row = &t.balances.of[i];

		if (strcmp(row->resource, "cpu") == 0 || strcmp(row->resource, "memory") == 0 ||
		    others++ < OTHERS_MOST)
			t.rows[t.count++] = row;
	}
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		write_family(out, &t, i);
	left_out = t.balances.count - t.count + (quotas > QUOTAS_MOST ? quotas - QUOTAS_MOST : 0);
	METRICS_WRITE(out,
		      ((const struct metric[]){
			      {"evenkeel_quotas", NULL, "Namespaces with a quota.", (double)quotas},
			      {"evenkeel_quotas_left_out", NULL,
			       "Quotas and resources beyond those that have series.",
			       (double)left_out},
		      }));
	quota_balances_fini(&t.balances);
}

static void write_counters(struct buf *out, const struct quota_counters *c)
{
	static const char family[] = "evenkeel_quota_gate_total";
	const struct metric samples[] = {
		{"evenkeel_quota_preempt_total", "result=\"victims\"",
		 "Answers to schedulers that asked for victims: found, none, or the same as "
		 "before.",
		 COUNT(c->preempt_victims)},
		{"evenkeel_quota_preempt_total", "result=\"none\"", NULL, COUNT(c->preempt_none)},
		{"evenkeel_quota_preempt_total", "result=\"repeated\"", NULL,
		 COUNT(c->preempt_repeated)},
		{"evenkeel_quota_status_writes_total", "result=\"written\"",
		 "Changes of status.used (--write-quota-status).", COUNT(c->status_written)},
		{"evenkeel_quota_status_writes_total", "result=\"failed\"", NULL,
		 COUNT(c->status_failed)},
	};

	metrics_write_family(out, family,
			     "Pods that schedulers asked about, by what the quotas said.");
	for (int g = QUOTA_ADMITTED; g <= QUOTA_OVER_SUM; g++)
		metrics_write_labelled(out, family, "gate",
				       quota_admission_name((enum quota_admission)g),
				       COUNT(c->admissions[g]));
	METRICS_WRITE(out, samples);
}

void metrics_write_quotas(struct buf *out, const struct api_context *ctx)
{
	struct quota_session session;

	if (ctx->reservations)
		write_counters(out, &ctx->counters->quota);
	if (!quota_session_open(&session, ctx, NULL, NULL))
		return;
	if (session.view->cluster)
		write_quotas(out, &session);
	quota_session_close(&session);
}
