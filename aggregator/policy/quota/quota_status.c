/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upstream's status controller counts pods that run, and forgets overhead; so what it writes is less than what its scheduler counts while images are pulled,
 * and always for sandboxed pods. The corrected one counts what the scheduler counts.
 *
 * For upstream's sums the pod's specification is read again from its canonical text: that is slow, and only who wants to compare asks for it.
 */
#include "aggregator/policy/quota/quota_status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/pod_sums.h"
#include "aggregator/policy/quota/quota_internal.h"

static void name_all(const struct resources *named, struct resources *out)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(named, &at, &name, &amount);)
		resources_set_named(out, name, 0);
}

void quota_status_begin(const struct quota *q, struct resources *out)
{
	*out = RESOURCES_NONE;
	name_all(&q->min, out);
	name_all(&q->max, out);
}

static void add_upstream(const struct kube_pod *pod, struct resources *out)
{
	cJSON *json = cJSON_Parse(pod->template->text);
	struct pod_sums sums;
	char field[OBJECT_FIELD_MAX];

	if (!pod_sums_read(cJSON_GetObjectItemCaseSensitive(json, "spec"), NULL,
			   POD_SUMS_STATUS_UPSTREAM, &sums, field, NULL)) {
		resources_add(out, &sums.requests);
		pod_sums_fini(&sums);
	}
	cJSON_Delete(json);
}

void quota_status_add(enum quota_variant v, const struct kube_pod *pod, struct resources *out)
{
	if (v == QUOTA_UPSTREAM && pod->phase == POD_RUNNING)
		add_upstream(pod, out);
	else if (v == QUOTA_CORRECTED && pod->node[0] && kube_pod_is_active(pod))
		resources_add(out, kube_pod_requests(pod));
}

/* --- all there is to tell ----------------------------------------------------------------------------------------- */

static void read_use(const struct namespace_use *use, struct quota_status *s)
{
	s->real_mean = s->real_p50 = s->real_p95 = s->idle = (double)NAN;
	if (!use || !use->pods)
		return;
	if (strcmp(s->resource, resource_name(RESOURCE_CPU)) == 0) {
		s->real_mean = use->cpu_mean_milli;
		s->real_p50 = use->cpu_p50_milli;
		s->real_p95 = use->cpu_p95_milli;
	} else if (strcmp(s->resource, resource_name(RESOURCE_MEMORY)) == 0) {
		s->real_mean = use->working_set_bytes;
	} else {
		return;
	}
	s->idle = fmax((double)s->used - s->real_mean, 0);
}

/* used: what is borrowed; min: what is left unused. */
struct quota_loans {
	struct quota_rows rows;
};

static quota_amount over(quota_amount a, quota_amount b)
{
	return a > b ? a - b : 0;
}

/* Whether it can lend or borrow of that resource. */
static bool takes_part(const struct quota_book *b, const struct quota_row *row)
{
	return b->options.variant == QUOTA_UPSTREAM || quota_governs(row);
}

struct quota_loans *quota_loans_new(const struct quota_book *b)
{
	struct quota_loans *l = mem_alloc(sizeof(*l));

	quota_rows_init(&l->rows);
	for (size_t i = 0; i < b->count; i++) {
		const struct quota_rows *rows = &b->sorted[i]->rows;

		for (size_t k = 0; k < rows->count; k++) {
			const struct quota_row *row = &rows->of[k];
			struct quota_row *sum;

			if (!takes_part(b, row))
				continue;
			sum = quota_rows_put(&l->rows, row->name);
			sum->used += over(row->used, over(row->min, 0));
			sum->min += over(over(row->min, 0), over(row->used, 0));
		}
	}
	return l;
}

void quota_loans_free(struct quota_loans *l)
{
	if (!l)
		return;
	quota_rows_fini(&l->rows);
	free(l);
}

/* All that is borrowed is lent, as far as it is there. */
static void read_loan(const struct quota_book *b, const struct quota_row *row,
		      const struct quota_row *sum, struct quota_status *s)
{
	quota_amount unused = over(over(row->min, 0), over(row->used, 0));

	if (!takes_part(b, row))
		return;
	s->borrowed = quota_clamp(over(row->used, over(row->min, 0)));
	if (!unused || sum->used >= sum->min)
		s->lent = quota_clamp(sum->used ? unused : 0);
	else /* 63 bits times 63 bits: it is one quota's */
		s->lent = (int64_t)((quota_amount)quota_clamp(sum->used) * unused / sum->min);
}

static void read_status(const struct quota_book *b, const struct quota_loans *loans, size_t i,
			const struct quota_row *row, struct quota_status *s)
{
	const struct quota *q = &b->sorted[i]->quota;

	*s = (struct quota_status){
		.resource = row->name,
		.in_min = row->in_min,
		.in_max = row->in_max,
		.used = quota_clamp(row->used),
	};
	quota_bounds(b, q->namespace, row->name, &s->min, &s->max);
	resources_find(&q->pending, row->name, &s->pending);
	if (row == &b->sorted[i]->rows.of[RESOURCE_PODS])
		s->pending = q->pending_pods;
	read_loan(b, row, quota_rows_find(&loans->rows, row->name), s);
	read_use(q->use, s);
}

size_t quota_status_read(const struct quota_book *b, const struct quota_loans *loans, size_t i,
			 struct quota_status *out, size_t room)
{
	const struct quota_rows *rows = &b->sorted[i]->rows;
	size_t count = 0;

	for (size_t k = 0; k < rows->count; k++) {
		const struct quota_row *row = &rows->of[k];

		if (!row->in_min && !row->in_max && !row->in_used)
			continue;
		if (count < room)
			read_status(b, loans, i, row, &out[count]);
		count++;
	}
	return count;
}
