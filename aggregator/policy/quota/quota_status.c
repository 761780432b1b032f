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
#include "aggregator/policy/quota/quota_share.h"

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

static void read_loan(const struct quota_book *b, size_t i, struct quota_status *s)
{
	struct quota_share *shares = mem_alloc((b->count + 1) * sizeof(*shares));
	struct quota_share_sum sum;

	quota_share_read(b, s->resource, -1, shares, &sum);
	s->borrowed = shares[i].borrowed;
	s->lent = shares[i].lent;
	free(shares);
}

static void read_status(const struct quota_book *b, size_t i, const struct quota_row *row,
			struct quota_status *s)
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
	read_loan(b, i, s);
	read_use(q->use, s);
}

size_t quota_status_read(const struct quota_book *b, size_t i, struct quota_status *out,
			 size_t room)
{
	const struct quota_rows *rows = &b->sorted[i]->rows;
	size_t count = 0;

	for (size_t k = 0; k < rows->count; k++) {
		const struct quota_row *row = &rows->of[k];

		if (!row->in_min && !row->in_max && !row->in_used)
			continue;
		if (count < room)
			read_status(b, i, row, &out[count]);
		count++;
	}
	return count;
}
