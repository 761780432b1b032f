/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of a cluster: the quotas of the API, the requests of the pods of their namespaces
 * (view_namespace()), and reservations that the view does not show yet. Usage is summed anew from the
 * present pods, so pods that ran before their quota, and resized pods, count as they are now.
 *
 * Both variants count requests as the kube-scheduler does; upstream's plugin would leave sidecars and
 * the pod's own resources out.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/pod_sums.h"
#include "aggregator/policy/quota/quota_annotations.h"
#include "aggregator/policy/quota/quota_internal.h"
#include "shared/array.h"

/* A quota without a creation time is the youngest. */
bool quota_is_older(const struct kube_quota *a, const struct kube_quota *b)
{
	return a->created_ns && (!b->created_ns || a->created_ns < b->created_ns);
}

const struct kube_quota *quota_view_next(const struct object_table *t, size_t *at)
{
	const struct kube_quota *best = (const struct kube_quota *)t->of[(*at)++];

	for (; *at < t->count; ++*at) {
		const struct kube_quota *q = (const struct kube_quota *)t->of[*at];

		if (strcmp(q->object.namespace, best->object.namespace) != 0)
			break;
		if (quota_is_older(q, best))
			best = q;
	}
	return best;
}

/* Adds the requests of the namespace's pods; lists are borrowed. */
static void add_sums(struct quota *q, const struct view *v)
{
	const struct namespace_sums *sums = view_namespace(v, q->namespace);

	if (!sums)
		return;
	q->used = sums->bound;
	q->pending = sums->pending;
	q->used_pods = sums->bound_pods;
	q->pending_pods = sums->pending_pods;
	q->use = sums->use.pods ? &sums->use : NULL;
}

static void put_quota(struct quota_book *b, const struct view *v, const struct kube_quota *object)
{
	struct quota_annotations notes;
	struct quota q = {
		.namespace = object->object.namespace,
		.name = object->object.name,
		.min = object->min,
		.max = object->max,
		.has_min = object->has_min,
		.has_max = object->has_max,
	};

	quota_annotations_read(&object->annotations, &notes, NULL);
	q.weight = notes.weight;
	q.min_runtime_ns = notes.min_runtime_ns;
	q.evictions_max = notes.evictions_max;
	q.evictions_ns = notes.evictions_ns;
	add_sums(&q, v);
	quota_book_put(b, &q);
}

static int compare_namespace(const void *namespace, const void *object)
{
	return strcmp(namespace, (*(struct object *const *)object)->namespace);
}

size_t quota_view_find(const struct object_table *t, const char *namespace)
{
	return array_lower_bound(namespace, t->of, t->count, sizeof(struct object *),
				 compare_namespace);
}

static void put_default(struct quota_book *b, const struct view *v, const char *namespace)
{
	struct quota_entry *have;
	struct quota q = b->fallback->quota;

	HASH_FIND_STR(b->hash, namespace, have);
	if (have)
		return;
	q.namespace = namespace;
	add_sums(&q, v);
	quota_book_put(b, &q);
}

/* Every namespace, by its object or by its pods, without a quota of its own. */
static void put_defaults(struct quota_book *b, const struct view *v)
{
	const struct object_table *objects = v->cluster->tables[OBJECT_NAMESPACE];

	for (size_t i = 0; i < objects->count; i++)
		put_default(b, v, objects->of[i]->name);
	for (size_t i = 0; v->namespaces && i < v->namespaces->count; i++)
		put_default(b, v, v->namespaces->of[i].name);
}

/* --- reservations */

/* The pod of a reservation, if the view has it, without a node; else NULL. */
static const struct kube_pod *find_pending(const struct view *v, const struct reservation *r)
{
	const struct object *o =
		v->cluster ? cluster_find_listed(v->cluster, OBJECT_POD, r->namespace, r->name)
			   : NULL;
	const struct kube_pod *pod = (const struct kube_pod *)o;

	return o && strcmp(o->uid, r->uid) == 0 && kube_pod_is_active(pod) ? pod : NULL;
}

/* A reserved pod is used, and no longer pending. */
static void add_reservation(struct quota_book *b, const struct reservation *r)
{
	const struct kube_pod *pod;
	struct quota_entry *e;

	quota_book_add(b, r->namespace, &r->requests);
	HASH_FIND_STR(b->hash, r->namespace, e);
	if (!e)
		return;
	e->quota.assumed_pods++;
	pod = find_pending(b->view, r);
	if (!pod)
		return;
	e->quota.pending_pods--;
	resources_subtract(&e->quota.pending, kube_pod_requests(pod));
}

/* The reservations of the copy that the view does not show. */
static struct quota_counted find_counted(const struct reservations_copy *c, const struct view *v)
{
	struct quota_counted counted = {0, mem_alloc((c ? c->count + 1 : 1) *
						     sizeof(const struct reservation *))};

	for (size_t i = 0; c && i < c->count; i++)
		if (reservations_counts(c->of[i], v->cluster ? v->cluster->generation : 0))
			counted.of[counted.count++] = c->of[i];
	return counted;
}

static int compare_counted(const void *namespace, const void *reservation)
{
	return strcmp(namespace, (*(const struct reservation *const *)reservation)->namespace);
}

/*
 * Makes the entry of a namespace anew from the book's view and reservations. The caller scales the book
 * when all entries are made.
 */
static void renew(struct quota_book *b, const char *namespace)
{
	const struct object_table *t = b->view->cluster->tables[OBJECT_ELASTIC_QUOTA];
	size_t at = quota_view_find(t, namespace);

	quota_book_drop(b, namespace);
	put_quota(b, b->view, quota_view_next(t, &at));
	at = array_lower_bound(namespace, b->counted.of, b->counted.count,
			       sizeof(const struct reservation *), compare_counted);
	for (; at < b->counted.count && strcmp(b->counted.of[at]->namespace, namespace) == 0; at++)
		add_reservation(b, b->counted.of[at]);
}

/* --- what the nodes have */

bool quota_capacity_of(const struct view *v, bool ready, struct resources *out)
{
	const struct cluster *c = v->cluster;

	*out = RESOURCES_NONE;
	if (!view_knows(v, OBJECT_NODE))
		return false;
	for (size_t i = 0; i < c->node_count; i++) {
		const struct kube_node *n = c->nodes[i]->node;

		if (n && !n->deletion_ns && (!ready || (n->ready && !n->unschedulable)))
			resources_add(out, &n->allocatable);
	}
	return true;
}

static void read_capacity(struct quota_book *b)
{
	struct resources capacity;

	quota_capacity_of(b->view, false, &capacity);
	quota_book_set_capacity(b, &capacity);
	resources_fini(&capacity);
}

/* --- what pending pods lack */

const struct kube_pod *quota_next_pending(const struct quota_book *b, const char *namespace,
					  size_t *at)
{
	const struct cluster *c = b->view ? b->view->cluster : NULL;
	const struct object_table *t = c ? c->tables[OBJECT_POD] : NULL;

	if (t && !*at)
		*at = quota_view_find(t, namespace);
	while (t && *at < t->count && strcmp(t->of[*at]->namespace, namespace) == 0) {
		const struct kube_pod *pod = (const struct kube_pod *)t->of[(*at)++];
		const struct object *o = &pod->object;

		if (kube_pod_is_active(pod) && !pod->deletion_ns &&
		    !(b->reservations && reservations_copy_find(b->reservations, namespace, o->name,
								o->uid, c->generation)))
			return pod;
	}
	return NULL;
}

/* Bits: the standard resources by their ids, then the extended ones of the request, up to 64. */
enum { EXTENDED_MAX = 64 - RESOURCE_STANDARD };

static uint64_t find_missing(const struct resources *requests, const struct resources *all,
			     const struct resources *used)
{
	uint64_t missing = 0;

	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (requests->of[id] > 0 &&
		    (quota_amount)requests->of[id] + used->of[id] > all->of[id])
			missing |= 1ULL << id;
	for (uint32_t i = 0; i < requests->extended_count && i < EXTENDED_MAX; i++) {
		const struct resource_extended *asked = &requests->extended[i];

		if (asked->amount > 0 &&
		    (quota_amount)asked->amount + resources_amount(used, asked->name) >
			    resources_amount(all, asked->name))
			missing |= 1ULL << (RESOURCE_STANDARD + i);
	}
	return missing;
}

static void set_lacked(const struct resources *requests, uint64_t missing, struct resources *lacked)
{
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (missing & 1ULL << id)
			resources_set(lacked, (enum resource_id)id, requests->of[id]);
	for (uint32_t i = 0; i < requests->extended_count && i < EXTENDED_MAX; i++)
		if (missing & 1ULL << (RESOURCE_STANDARD + i))
			resources_set_named(lacked, requests->extended[i].name,
					    requests->extended[i].amount);
}

void quota_find_lacked(const struct quota_book *b, const struct resources *requests,
		       struct resources *lacked)
{
	uint64_t everywhere = 0, somewhere = 0;

	for (size_t i = 0; b->view && i < b->view->node_count; i++) {
		const struct view_node *n = b->view->nodes[i];
		const struct kube_node *node = n->model ? n->model->node : NULL;
		uint64_t missing;

		if (!node || !node->ready || node->unschedulable || node->deletion_ns ||
		    find_missing(requests, &node->allocatable, &RESOURCES_NONE))
			continue;
		missing = find_missing(requests, &node->allocatable, &n->sums.requests);
		if (!missing)
			return;
		everywhere = somewhere ? everywhere & missing : missing;
		somewhere |= missing;
	}
	set_lacked(requests, everywhere ? everywhere : somewhere, lacked);
}

/* --- the book */

struct quota_book *quota_book_new(struct view *v, struct reservations_copy *reservations,
				  const struct quota_options *o)
{
	struct quota_book *b = quota_book_alloc(o);

	b->view = view_hold(v);
	b->reservations = reservations ? reservations_copy_hold(reservations) : NULL;
	b->counted = find_counted(reservations, v);
	for (size_t at = 0; v->cluster && at < v->cluster->tables[OBJECT_ELASTIC_QUOTA]->count;)
		put_quota(b, v, quota_view_next(v->cluster->tables[OBJECT_ELASTIC_QUOTA], &at));
	if (v->cluster && b->fallback)
		put_defaults(b, v);
	read_capacity(b);
	for (size_t i = 0; i < b->counted.count; i++)
		add_reservation(b, b->counted.of[i]);
	return b;
}

/* --- updates */

/*
 * Namespaces whose sums of requests or whose reservations changed get a new entry, made as
 * quota_book_new() makes it. Tables and reservations are immutable and held by the book: an equal
 * address means no change. If the quotas themselves changed, or namespaces have a default quota, the
 * caller makes a new book.
 */

/* The namespace may have no quota. */
static void mark_stale(struct quota_book *b, const char *namespace)
{
	struct quota_entry *e;

	HASH_FIND_STR(b->hash, namespace, e);
	if (e)
		e->stale = true;
}

/* The book borrows `use` from the view, and so it changes with the view. */
static void compare_sums(struct quota_book *b, const struct view *v)
{
	if (b->view->namespaces == v->namespaces)
		return;
	for (size_t i = 0; i < b->count; i++) {
		struct quota *q = &b->sorted[i]->quota;
		const struct namespace_sums *was = view_namespace(b->view, q->namespace);
		const struct namespace_sums *is = view_namespace(v, q->namespace);

		q->use = is && is->use.pods ? &is->use : NULL;
		if (was && is ? was->bound_pods != is->bound_pods ||
					was->pending_pods != is->pending_pods ||
					!resources_equal(&was->bound, &is->bound) ||
					!resources_equal(&was->pending, &is->pending)
			      : was != is)
			mark_stale(b, q->namespace);
	}
}

static int compare_entries(const void *a, const void *b)
{
	return reservations_compare(*(const struct reservation *const *)a,
				    *(const struct reservation *const *)b);
}

/*
 * Marks the namespaces of reservations that the others lack, or whose pod became pending or is no longer.
 * Both lists have the order of the reservations.
 */
static void mark_changed(struct quota_book *b, const struct view *v,
			 const struct quota_counted *these, const struct quota_counted *others)
{
	for (size_t i = 0; i < these->count; i++) {
		const struct reservation *r = these->of[i], **found;

		found = bsearch(&r, others->of, others->count, sizeof(const struct reservation *),
				compare_entries);
		if (!found || *found != r ||
		    (b->view->cluster != v->cluster &&
		     find_pending(b->view, r) != find_pending(v, r)))
			mark_stale(b, r->namespace);
	}
}

/* A new entry takes the place of the old one, which frees its name. */
static void renew_stale(struct quota_book *b)
{
	for (size_t i = 0; i < b->count; i++) {
		char *name;

		if (!b->sorted[i]->stale)
			continue;
		name = mem_strdup(b->sorted[i]->quota.namespace);
		renew(b, name);
		free(name);
	}
}

bool quota_book_update(struct quota_book *b, struct view *v, struct reservations_copy *reservations)
{
	struct view *was = b->view;
	struct reservations_copy *reservations_was = b->reservations;
	struct quota_counted now;

	if (b->fallback || !b->view ||
	    view_table(b->view, OBJECT_ELASTIC_QUOTA) != view_table(v, OBJECT_ELASTIC_QUOTA))
		return false;
	now = find_counted(reservations, v);
	compare_sums(b, v);
	mark_changed(b, v, &b->counted, &now);
	mark_changed(b, v, &now, &b->counted);
	b->view = view_hold(v);
	b->reservations = reservations ? reservations_copy_hold(reservations) : NULL;
	free(b->counted.of);
	b->counted = now;
	renew_stale(b);
	if (was->cluster != v->cluster)
		read_capacity(b);
	else
		quota_book_scale(b);
	view_drop(was);
	reservations_copy_drop(reservations_was);
	return true;
}

/* --- status.used of the objects */

/*
 * Upstream's status controller counts running pods and forgets overhead, so its numbers are less
 * than its scheduler's while images are pulled, and always for sandboxed pods. The corrected
 * variant writes what the scheduler counts. For upstream's sums each running pod's specification
 * is parsed again, which is slow.
 */

static void name_all(const struct resources *named, struct resources *out)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(named, &at, &name, &amount);)
		resources_set_named(out, name, 0);
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
