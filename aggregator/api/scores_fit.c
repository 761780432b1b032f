/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the pod is asked about, since what is filled in for a manifest is not for the plugins
 * to see.
 */
#include "aggregator/api/scores_fit.h"

#include <stdlib.h>

#include "aggregator/api/fit_ask.h"
#include "shared/mem.h"

struct scores_fit {
	struct kube_pod *pod; /* held; NULL: it cannot be read */
	struct fit_ask ask; /* where it can */
	size_t node_count;
	char *unreadable; /* owned; why it cannot be read */
};

static char *read_pod(struct scores_fit *f, const cJSON *pod)
{
	cJSON *copy = pod && !cJSON_IsNull(pod) ? cJSON_Duplicate(pod, true)
						: cJSON_Parse("{\"spec\":{\"containers\":[]}}");
	char field[FIT_FIELD_MAX], *text = NULL;
	struct reason reason = {""};

	if (fit_pod_read(copy, &f->pod, field, &reason))
		text = mem_printf("%s: %s: %s", place_filter_name(PLACE_UNKNOWN), field,
				  reason.text);
	cJSON_Delete(copy);
	return text;
}

struct scores_fit *scores_fit_open(struct place_pool *pool, struct view *v,
				   const struct ledger_copy *ledger, const cJSON *pod,
				   int64_t now_ns)
{
	struct reason reason;
	struct scores_fit *f;

	if (!fit_knows_cluster(v, &reason))
		return NULL;
	f = mem_zalloc(1, sizeof(*f));
	f->node_count = v->node_count;
	f->unreadable = read_pod(f, pod);
	if (!f->unreadable)
		fit_ask_open(&f->ask, pool, v, ledger, f->pod, now_ns);
	return f;
}

void scores_fit_close(struct scores_fit *f)
{
	if (!f)
		return;
	if (!f->unreadable) {
		fit_ask_close(&f->ask);
		object_drop(&f->pod->object);
	}
	free(f->unreadable);
	free(f);
}

void scores_fit_write_counts(const struct scores_fit *f, struct jsonw *w)
{
	if (!f)
		return;
	if (!f->unreadable) {
		fit_ask_write_counts(&f->ask, w);
		return;
	}
	jsonw_key_int(w, "fits", 0);
	jsonw_key(w, "refused");
	jsonw_object_open(w);
	jsonw_key_int(w, place_filter_name(PLACE_UNKNOWN), (int64_t)f->node_count);
	jsonw_object_close(w);
}

void scores_fit_write_node(const struct scores_fit *f, struct jsonw *w, const char *node)
{
	enum place_filter filter = PLACE_UNKNOWN;
	struct reason why = {""};
	place_node n;

	if (!f)
		return;
	if (f->unreadable) {
		reason_set(&why, "%s", f->unreadable);
	} else {
		n = place_find_node(f->ask.place, node);
		if (n == PLACE_NONE)
			return;
		filter = place_explain(f->ask.place, f->ask.pod, n, &why);
	}
	jsonw_key_bool(w, "fits", filter == PLACE_FITS);
	if (filter == PLACE_FITS)
		return;
	jsonw_key_string(w, "filter", place_filter_name(filter));
	jsonw_key_string(w, "fitReason", why.text);
}
