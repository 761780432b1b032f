/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory from step to step, and the detection of evictions: a pod that left between two clusters was
 * evicted if it was marked as a target of disruption, or if its node was leaving or cordoned. Parts
 * that both clusters share are recognised by address.
 */
#include "aggregator/policy/drain/drain_internal.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/array.h"
#include "shared/duration.h"
#include "shared/mem.h"

struct drain_state *drain_state_new(void)
{
	return mem_zalloc(1, sizeof(struct drain_state));
}

void drain_hints_free(struct drain_hint **hints)
{
	struct drain_hint *h, *next;

	HASH_RELEASE (*hints, h, next)
		free(h);
}

void drain_state_free(struct drain_state *s)
{
	if (!s)
		return;
	drain_timers_fini(&s->timers);
	drain_unremovable_fini(&s->failed);
	for (size_t i = 0; i < s->eviction_count; i++)
		object_drop(&s->evictions[i].pod->object);
	free(s->evictions);
	drain_hints_free(&s->hints);
	drain_history_clear(s);
	cluster_drop(s->seen);
	free(s);
}

/* --- hints */

const char *drain_state_hint(const struct drain_state *s, const char *uid)
{
	struct drain_hint *h;

	if (!*uid || !s->hints)
		return NULL;
	HASH_FIND_STR(s->hints, uid, h);
	return h ? h->node : NULL;
}

void drain_state_set_hint(struct drain_state *s, const char *uid, const char *node)
{
	size_t uid_len = strlen(uid), node_len = strlen(node);
	struct drain_hint *h;

	if (!uid_len)
		return;
	HASH_FIND_STR(s->hints, uid, h);
	if (h) {
		HASH_DEL(s->hints, h);
		free(h);
	}
	if (HASH_COUNT(s->hints) >= DRAIN_HINTS_MAX)
		return;
	h = mem_zalloc(1, sizeof(*h) + uid_len + node_len + 2);
	memcpy(h->uid, uid, uid_len + 1);
	memcpy(h->uid + uid_len + 1, node, node_len + 1);
	h->node = h->uid + uid_len + 1;
	HASH_ADD_KEYPTR(hh, s->hints, h->uid, uid_len, h);
}

/* --- evictions */

static void drop_evictions(struct drain_state *s, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		object_drop(&s->evictions[i].pod->object);
	s->eviction_count -= count;
	memmove(s->evictions + first, s->evictions + first + count,
		(s->eviction_count - first) * sizeof(*s->evictions));
}

/* The number of evictions: it is none. */
static size_t find_eviction(const struct drain_state *s, const struct kube_pod *pod)
{
	size_t i = 0;

	while (i < s->eviction_count &&
	       (object_compare(&s->evictions[i].pod->object, &pod->object) != 0 ||
		strcmp(s->evictions[i].pod->object.uid, pod->object.uid) != 0))
		i++;
	return i;
}

static void append_eviction(struct drain_state *s, struct kube_pod *pod, int64_t when_ns,
			    bool leaving)
{
	if (s->eviction_count == DRAIN_EVICTIONS_MAX)
		drop_evictions(s, 0, DRAIN_EVICTIONS_MAX / 4);
	object_hold(&pod->object);
	ARRAY_ADD(s->evictions, s->eviction_count) = (struct drain_eviction){pod, when_ns, leaving};
}

void drain_state_add_eviction(struct drain_state *s, struct kube_pod *pod, int64_t when_ns,
			      bool leaving)
{
	size_t old = find_eviction(s, pod);

	if (old < s->eviction_count)
		drop_evictions(s, old, 1);
	append_eviction(s, pod, when_ns, leaving);
}

static void expire(struct drain_state *s, int64_t ttl_ns, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->eviction_count; i++) {
		struct drain_eviction *e = &s->evictions[i];

		/* A future time is from another clock. */
		e->when_ns = e->when_ns < now_ns ? e->when_ns : now_ns;
		if (elapsed_ns(now_ns, e->when_ns) < ttl_ns)
			s->evictions[kept++] = *e;
		else
			object_drop(&e->pod->object);
	}
	s->eviction_count = kept;
}

struct comparison {
	struct drain_state *s;
	const struct drain_options *options;
	int64_t now_ns;
};

static bool is_leaving(const struct comparison *c, const struct kube_node *node)
{
	return node && (node->unschedulable ||
			drain_is_in_deletion(c->options->variant, node, c->now_ns, NULL));
}

static int compare_pods(const void *left, const void *right)
{
	const struct kube_pod *const *a = left, *const *b = right;

	return object_compare(&(*a)->object, &(*b)->object);
}

const struct kube_pod *drain_find_pod(const struct kube_pod *const *list, size_t count,
				      const struct kube_pod *pod)
{
	const struct kube_pod *const *found =
		count ? bsearch(&pod, list, count, sizeof(struct kube_pod *), compare_pods) : NULL;

	return found && strcmp((*found)->object.uid, pod->object.uid) == 0 ? *found : NULL;
}

/* The pod was resized in place, or ended. */
static bool takes_less(const struct kube_pod *now, const struct kube_pod *before)
{
	bool less = now != before && !kube_pod_is_active(now);

	for (int i = 0; now != before && i < RESOURCE_STANDARD; i++)
		less |= kube_pod_requests(now)->of[i] < kube_pod_requests(before)->of[i];
	return less;
}

/* Takes the text over. */
static void note(const struct comparison *c, enum drain_event event, const char *node, char *text)
{
	drain_state_note(c->s, &(struct drain_record){.time_ns = c->now_ns,
						      .event = event,
						      .node = (char *)node,
						      .text = text});
	free(text);
}

/* now: NULL, when the node is gone with its pods. */
static void compare_node(const struct comparison *c, const struct model_node *before,
			 const struct model_node *now)
{
	bool leaving =
		!now || !now->node || is_leaving(c, before->node) || is_leaving(c, now->node);

	if (before == now)
		return;
	c->s->freed |= now && now->node != before->node;
	for (size_t i = 0; i < before->pod_count; i++) {
		struct kube_pod *pod = before->pods[i];
		const struct kube_pod *same =
			drain_find_pod((const struct kube_pod *const *)(now ? now->pods : NULL),
				       now ? now->pod_count : 0, pod);

		if (!kube_pod_is_active(pod))
			continue;
		c->s->freed |= !same || takes_less(same, pod);
		/* A state that was read from a text may have it. */
		if (same || (!leaving && !pod->disruption_ns) ||
		    find_eviction(c->s, pod) < c->s->eviction_count)
			continue;
		append_eviction(c->s, pod, c->now_ns, leaving);
		note(c, DRAIN_EVENT_EVICTED, before->name,
		     mem_printf("pod %.63s/%.253s left it", pod->object.namespace,
				pod->object.name));
	}
	if (before->node && (!now || !now->node))
		note(c, DRAIN_EVENT_GONE, before->name, mem_strdup("the node is gone"));
}

/* Whether a pending pod is gone, or was bound to any node. */
static bool lost_pending(const struct cluster *before, const struct cluster *now)
{
	const struct object_table *pods = before->tables[OBJECT_POD];

	for (size_t i = 0; pods != now->tables[OBJECT_POD] && i < pods->count; i++) {
		const struct object *pod = pods->of[i];
		const struct object *same =
			cluster_find(now, OBJECT_POD, pod->namespace, pod->name);

		if (!same || strcmp(same->uid, pod->uid) != 0)
			return true;
	}
	return false;
}

static bool lost_slack(struct drain_state *s, const struct drain_input *in)
{
	double now[RESOURCE_STANDARD] = {0};
	bool lost = false;

	now[RESOURCE_PODS] = (double)in->slack_count;
	for (size_t i = 0; i < in->slack_count; i++)
		for (int k = 0; k < RESOURCE_STANDARD; k++)
			now[k] += (double)kube_pod_requests(in->slack[i].pod)->of[k];
	for (int k = 0; k < RESOURCE_STANDARD; k++)
		lost |= now[k] < s->slack[k];
	memcpy(s->slack, now, sizeof(now));
	return lost;
}

static void compare(const struct comparison *c, const struct cluster *before,
		    const struct cluster *now)
{
	size_t at = 0;

	c->s->freed |= now->node_count > before->node_count || lost_pending(before, now);
	for (size_t i = 0; i < before->node_count; i++) {
		const struct model_node *node = before->nodes[i];

		while (at < now->node_count && strcmp(now->nodes[at]->name, node->name) < 0)
			at++;
		compare_node(c, node,
			     at < now->node_count && strcmp(now->nodes[at]->name, node->name) == 0
				     ? now->nodes[at]
				     : NULL);
	}
}

/* During a relist, missing pods are no evictions. */
static bool is_complete(const struct cluster *c)
{
	enum source_state pods = c->sources[OBJECT_POD].state;
	enum source_state nodes = c->sources[OBJECT_NODE].state;

	return (pods == SOURCE_SYNCED || pods == SOURCE_SNAPSHOT) &&
	       (nodes == SOURCE_SYNCED || nodes == SOURCE_SNAPSHOT);
}

void drain_state_see(struct drain_state *s, const struct drain_input *in,
		     const struct drain_options *o)
{
	const struct view *v = in->view;
	int64_t now_ns = in->now_ns;
	const struct comparison c = {s, o, now_ns};
	int64_t loop_ns = now_ns - s->last_ns;

	if (s->last_ns && loop_ns > 0 && (!s->loop_ns || loop_ns < s->loop_ns))
		s->loop_ns = loop_ns;
	s->last_ns = now_ns;
	s->freed = lost_slack(s, in);
	if (is_complete(v->cluster)) {
		if (s->seen && s->seen != v->cluster)
			compare(&c, s->seen, v->cluster);
		cluster_drop(s->seen);
		s->seen = cluster_hold(v->cluster);
	}
	/* Failed simulations may succeed now. */
	if (s->freed && o->variant == DRAIN_CORRECTED)
		drain_unremovable_fini(&s->failed);
	expire(s, o->eviction_ttl_ns, now_ns);
}
