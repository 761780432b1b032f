/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upstream's status controller counts running pods and forgets overhead, so its numbers are less
 * than its scheduler's while images are pulled, and always for sandboxed pods. The corrected
 * variant writes what the scheduler counts. For upstream's sums each running pod's specification
 * is parsed again, which is slow.
 */
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

/* --- upstream's --- */

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

static void add_running(const struct quota_book *b, const struct view *v, struct resources *status)
{
	for (size_t n = 0; n < v->node_count; n++)
		for (size_t i = 0; i < v->nodes[n]->pod_count; i++) {
			const struct kube_pod *pod = v->nodes[n]->pods[i].pod;
			size_t at = pod && pod->phase == POD_RUNNING
					    ? quota_book_index(b, pod->object.namespace)
					    : b->count;

			if (at < b->count)
				add_upstream(pod, &status[at]);
		}
}

/* --- all of them --- */

struct resources *quota_status_new(const struct quota_book *b, const struct view *v)
{
	struct resources *status = mem_zalloc(b->count + 1, sizeof(*status));

	for (size_t i = 0; i < b->count; i++) {
		const struct quota *q = &b->sorted[i]->quota;

		name_all(&q->min, &status[i]);
		name_all(&q->max, &status[i]);
		if (b->options.variant == QUOTA_CORRECTED)
			resources_add(&status[i], &q->used);
	}
	if (b->options.variant == QUOTA_UPSTREAM)
		add_running(b, v, status);
	return status;
}

void quota_status_free(const struct quota_book *b, struct resources *status)
{
	for (size_t i = 0; i < b->count; i++)
		resources_fini(&status[i]);
	free(status);
}
