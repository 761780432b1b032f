/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger is taken before the view (ledger.h), so that a pod that is bound meanwhile is not
 * missing in both. Nominated pods are those that wait for their victims to be gone: they have no
 * node, and what they ask for is spoken for. One with a reservation is in the book already.
 */
#include "aggregator/api/quota_scene.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/api/fit_ask.h"
#include "aggregator/api/quota_shelf.h"
#include "aggregator/api/sources.h"
#include "shared/mem.h"

/* --- reservations */

static bool is_same(const char *uid, const struct kube_pod *pod)
{
	return !*pod->object.uid || strcmp(uid, pod->object.uid) == 0;
}

/* The reservation that the book counts for the pod, or NULL. */
static const struct ledger_entry *find_reserved(const struct quota_scene *s,
						const struct kube_pod *pod)
{
	if (!s->ledger)
		return NULL;
	return ledger_copy_find(s->ledger, pod->object.namespace, pod->object.name, pod->object.uid,
				s->view->cluster ? s->view->cluster->generation : 0);
}

/* --- nominated pods */

static void find_nominated(struct quota_scene *s)
{
	const struct object_table *pending;
	size_t room = 0;

	if (!s->view->cluster)
		return;
	pending = s->view->cluster->tables[OBJECT_POD];
	for (size_t i = 0; i < pending->count; i++) {
		const struct kube_pod *p = (const struct kube_pod *)pending->of[i];

		if (!*p->nominated_node || !kube_pod_is_active(p) || p->deletion_ns ||
		    find_reserved(s, p))
			continue;
		if (s->nominated_count == room) {
			room = room ? 2 * room : 16;
			s->nominated = mem_realloc(s->nominated, room * sizeof(*s->nominated));
		}
		s->nominated[s->nominated_count++] = (struct quota_nominated){
			.uid = p->object.uid,
			.namespace = p->object.namespace,
			.priority = p->template->priority,
			.requests = kube_pod_requests(p),
		};
	}
}

/* --- the scene */

static bool read_variant(const char *name, enum quota_variant *out, struct api_response *rs)
{
	static const enum quota_variant variants[] = {QUOTA_CORRECTED, QUOTA_UPSTREAM};

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		if (strcmp(quota_variant_name(variants[i]), name) == 0) {
			*out = variants[i];
			return true;
		}
	api_fail(rs, FAIL_BAD_REQUEST, "variant",
		 "there is no variant \"%.64s\"; there are corrected, upstream", name);
	return false;
}

static void fill(struct quota_scene *s, struct ledger_copy *ledger, struct view *v)
{
	s->ledger = ledger;
	s->view = v;
	s->book = quota_shelf_take(s->shelf, v, ledger, &s->options, s->now_ns);
	find_nominated(s);
}

static void set_options(struct quota_scene *s, const struct api_context *ctx)
{
	*s = (struct quota_scene){.shelf = ctx->books, .now_ns = ctx->now_ns()};
	if (ctx->quota)
		s->options = *ctx->quota;
	else
		quota_options_default(&s->options);
}

void quota_scene_of(struct quota_scene *s, const struct api_context *ctx,
		    struct ledger_copy *ledger, struct view *v)
{
	set_options(s, ctx);
	fill(s, ledger, view_hold(v));
}

bool quota_scene_open(struct quota_scene *s, const struct api_context *ctx, const char *variant,
		      struct api_response *rs)
{
	struct ledger_copy *ledger;

	set_options(s, ctx);
	if (variant && !read_variant(variant, &s->options.variant, rs))
		return false;
	ledger = ctx->ledger ? ledger_take(ctx->ledger, ctx->now_ns()) : NULL;
	s->owns_ledger = true;
	fill(s, ledger, view_slot_take(ctx->views));
	if (s->view->cluster || !rs)
		return true;
	quota_scene_close(s);
	api_fail(rs, FAIL_NO_DATA, NULL,
		 "nothing is known of quotas: there is no Kubernetes API and no snapshot to ask");
	return false;
}

/*
 * The classes of priorities are those of the view that is answered from, or of one a moment older.
 */
static bool read_body(struct pod_body *body, const struct api_context *ctx,
		      const struct api_request *rq, const struct api_field *members,
		      struct api_response *rs)
{
	struct view *v = view_slot_take(ctx->views);
	bool ok = pod_body_read(rq, members, v->cluster, body, rs);

	view_drop(v);
	return ok;
}

bool quota_scene_read(struct quota_scene *s, struct pod_body *body, const struct api_context *ctx,
		      const struct api_request *rq, const struct api_field *members,
		      struct api_response *rs)
{
	const char *variant;

	if (!read_body(body, ctx, rq, members, rs))
		return false;
	if (pod_body_string(body, "variant", &variant, rs) && quota_scene_open(s, ctx, variant, rs))
		return true;
	pod_body_fini(body);
	return false;
}

void quota_scene_close(struct quota_scene *s)
{
	quota_shelf_give(s->shelf, s->book);
	view_drop(s->view);
	if (s->owns_ledger)
		ledger_copy_drop(s->ledger);
	free(s->nominated);
	*s = (struct quota_scene){0};
}

void quota_scene_gap(const struct quota_scene *s, struct reason *why)
{
	const struct model_source *source;

	reason_set(why, "%s", "");
	source = &s->view->cluster->sources[OBJECT_ELASTIC_QUOTA];
	if (!sources_are_complete(s->view, OBJECT_ELASTIC_QUOTA))
		reason_set(why, "the cluster's elasticquotas are not known: %s%s%.250s",
			   source_state_name(source->state), *source->message ? ": " : "",
			   source->message);
}

bool quota_scene_knows_pods(const struct quota_scene *s, struct api_response *rs)
{
	struct reason why;

	if (fit_knows_cluster(s->view, &why))
		return true;
	api_fail(rs, FAIL_NO_DATA, NULL, "%s", why.text);
	return false;
}

const struct kube_pod *quota_scene_find_bound(const struct quota_scene *s,
					      const struct kube_pod *pod)
{
	for (size_t i = 0; i < s->view->node_count; i++) {
		const struct view_pod *found =
			view_node_find_pod(s->view->nodes[i], pod->object.namespace,
					   pod->object.name);

		if (found && found->pod && is_same(found->pod->object.uid, pod))
			return found->pod;
	}
	return NULL;
}

struct quota_ask quota_scene_ask(const struct quota_scene *s, const struct kube_pod *pod,
				 const struct kube_pod *bound)
{
	const struct ledger_entry *reserved = find_reserved(s, pod);
	const struct resources *counted = reserved ? &reserved->requests : NULL;

	if (!reserved && bound && kube_pod_is_active(bound))
		counted = kube_pod_requests(bound);
	return (struct quota_ask){
		.uid = pod->object.uid,
		.namespace = pod->object.namespace,
		.priority = pod->template->priority,
		.requests = kube_pod_requests(pod),
		.reserved = counted,
		.promised = *pod->nominated_node != '\0',
		.nominated = s->nominated,
		.nominated_count = s->nominated_count,
	};
}

size_t quota_scene_index(const struct quota_scene *s, const char *namespace)
{
	size_t low = 0, count = quota_book_count(s->book), high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(quota_book_at(s->book, middle)->namespace, namespace) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && strcmp(quota_book_at(s->book, low)->namespace, namespace) == 0)
		return low;
	return count;
}

void quota_scene_balances(const struct quota_scene *s, struct quota_balances *out)
{
	quota_balances_of(s->book, out);
}
