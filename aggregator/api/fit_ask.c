/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core is of the cache, and given back as it is: the next who takes it brings it up to the view
 * of then.
 */
#include "aggregator/api/fit_ask.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/api/request_body.h"
#include "aggregator/api/view_json.h"
#include "shared/array.h"
#include "shared/mem.h"

/* The pod's own usage is ignored. */
static void take_itself(struct place *p, const struct kube_pod *pod)
{
	place_pod known = place_find_pod(p, pod->object.namespace, pod->object.name);
	const char *uid = pod->object.uid;

	if (known == PLACE_NONE || place_where(p, known) == PLACE_NONE)
		return;
	if (!*uid || strcmp(uid, place_pod_record(p, known)->object.uid) == 0)
		place_take(p, known);
}

/* The uid of the pod's own reservation, which is ignored as well; "": none. */
static const char *reserved_uid(const struct view *v, const struct reservations_copy *reservations,
				const struct kube_pod *pod)
{
	const struct reservation *own;

	if (*pod->object.uid || !reservations)
		return pod->object.uid;
	own = reservations_copy_find(reservations, pod->object.namespace, pod->object.name, "",
				     v->cluster->generation);
	return own ? own->uid : "";
}

/* --- nominated pods */

static void find_nominated(struct fit_ask *a, const struct view *v, const struct kube_pod *asked)
{
	const struct object_table *pending = v->cluster->tables[OBJECT_POD];
	int32_t priority;
	const struct kube_priority_class *class = NULL;

	/* A manifest, which has no uid, may leave it to its class. An unknown class counts as 0. */
	if (!*asked->object.uid && !asked->template->priority)
		class = request_priority_class(v->cluster, asked->template->priority_class);
	priority = class ? class->value : asked->template->priority;
	a->nominated = NULL;
	a->nominated_count = 0;
	for (size_t i = 0; i < pending->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)pending->of[i];
		struct fit_nominated found;

		if (!*pod->nominated_node || pod->template->priority < priority ||
		    !kube_pod_is_active(pod) || object_compare(&pod->object, &asked->object) == 0)
			continue;
		found.pod = place_find_pod(a->place, pod->object.namespace, pod->object.name);
		found.node = place_find_node(a->place, pod->nominated_node);
		if (found.node == PLACE_NONE || found.pod == PLACE_NONE ||
		    place_where(a->place, found.pod) != PLACE_NONE)
			continue; /* its reservation is in the core already */
		ARRAY_ADD(a->nominated, a->nominated_count) = found;
	}
}

static enum place_filter ask(const struct fit_ask *a, place_node n, struct error *why)
{
	return why ? place_explain(a->place, a->pod, n, why) : place_check(a->place, a->pod, n);
}

enum place_filter fit_ask_node(const struct fit_ask *a, place_node n, struct error *why)
{
	enum place_filter f;
	place_mark mark;
	size_t i = 0;

	while (i < a->nominated_count && a->nominated[i].node != n)
		i++;
	if (i == a->nominated_count)
		return ask(a, n, why);
	mark = place_fork(a->place);
	for (; i < a->nominated_count; i++)
		if (a->nominated[i].node == n)
			place_put(a->place, a->nominated[i].pod, n);
	f = ask(a, n, why);
	place_revert(a->place, mark);
	return f == PLACE_FITS ? ask(a, n, why) : f;
}

/* --- asking */

void fit_ask_open(struct fit_ask *a, struct place_cache *cache, struct view *v,
		  const struct reservations_copy *reservations, const struct kube_pod *pod,
		  int64_t now_ns)
{
	a->cache = cache;
	a->place = place_cache_take(cache, v, now_ns);
	reserved_pods_put(a->place, v, reservations, reserved_uid(v, reservations, pod), &a->mark);
	take_itself(a->place, pod);
	a->pod = place_add_pod(a->place, pod);
	find_nominated(a, v, pod);
}

void fit_ask_close(struct fit_ask *a)
{
	free(a->nominated);
	place_revert(a->place, a->mark);
	place_cache_give(a->cache, a->place);
}

void fit_ask_write_counts(const struct fit_ask *a, struct jsonw *w)
{
	struct place_counts counts = {.nearest = PLACE_NONE};

	for (place_node n = 0; n < place_node_count(a->place); n++)
		counts.of[fit_ask_node(a, n, NULL)]++;
	jsonw_key_int(w, "fits", counts.of[PLACE_FITS]);
	place_counts_write(&counts, w);
}

/*
 * --- beside scores
 *
 * A copy of the pod is asked about, since what is filled in for a manifest is not for the plugins
 * to see.
 */

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
	char field[POD_MANIFEST_FIELD_MAX], *text = NULL;
	struct error error = {""};

	if (pod_manifest_read(copy, &f->pod, field, &error))
		text = mem_printf("%s: %s: %s", place_filter_name(PLACE_UNKNOWN), field,
				  error.text);
	cJSON_Delete(copy);
	return text;
}

struct scores_fit *scores_fit_open(struct place_cache *cache, struct view *v,
				   const struct reservations_copy *reservations, const cJSON *pod,
				   int64_t now_ns)
{
	struct error error;
	struct scores_fit *f;

	if (!place_cache_can_answer(v, &error))
		return NULL;
	f = mem_zalloc(1, sizeof(*f));
	f->node_count = v->node_count;
	f->unreadable = read_pod(f, pod);
	if (!f->unreadable)
		fit_ask_open(&f->ask, cache, v, reservations, f->pod, now_ns);
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
	jsonw_key_object(w, "refused");
	jsonw_key_int(w, place_filter_name(PLACE_UNKNOWN), (int64_t)f->node_count);
	jsonw_object_close(w);
}

void scores_fit_write_node(const struct scores_fit *f, struct jsonw *w, const char *node)
{
	enum place_filter filter = PLACE_UNKNOWN;
	struct error why = {""};
	place_node n;

	if (!f)
		return;
	if (f->unreadable) {
		error_set(&why, "%s", f->unreadable);
	} else {
		n = place_find_node(f->ask.place, node);
		if (n == PLACE_NONE)
			return;
		filter = fit_ask_node(&f->ask, n, &why);
	}
	jsonw_key_bool(w, "fits", filter == PLACE_FITS);
	if (filter == PLACE_FITS)
		return;
	jsonw_key_string(w, "filter", place_filter_name(filter));
	jsonw_key_string(w, "fitReason", why.text);
}
