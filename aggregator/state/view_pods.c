/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins measured pods with those of the API by uid. The kubelet names a pod's cgroup after its uid;
 * of a static pod, which it has from a file, the API only has an image with a uid of its own, and
 * the cgroup has the hash of the file, which the image carries as an annotation.
 *
 * Measured pods are sorted by uid once and searched for each of the API's; where several cgroups
 * claim one uid, the first by name is the pod's, and the others are listed as measured only.
 * Nothing is lost and nothing listed twice.
 *
 * The stats of a node keep their layout until something starts or ends there (node_stats.h). So
 * where it is that of the node before, whose model is the same, each pod is where it was.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/view_parts.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

#define CONFIG_HASH "kubernetes.io/config.hash"

struct by_uid {
	const struct pod_stats *use;
	bool taken;
};

/* Equal uids in the order of the stats. */
static int compare_uid(const void *a, const void *b)
{
	const struct pod_stats *x = ((const struct by_uid *)a)->use;
	const struct pod_stats *y = ((const struct by_uid *)b)->use;

	return strcmp(x->uid, y->uid) ?: COMPARE(x, y);
}

static size_t index_measured(const struct node_stats *stats, struct by_uid *index)
{
	size_t count = 0;

	for (size_t i = 0; i < stats->pod_count; i++)
		if (*stats->pods[i].uid)
			index[count++] = (struct by_uid){&stats->pods[i], false};
	array_sort(index, count, sizeof(*index), compare_uid);
	return count;
}

static int compare_to_uid(const void *uid, const void *of)
{
	return strcmp(uid, ((const struct by_uid *)of)->use->uid);
}

/* The first of that uid nobody has taken, or NULL. */
static const struct pod_stats *take(struct by_uid *index, size_t count, const char *uid)
{
	size_t at = array_lower_bound(uid, index, count, sizeof(*index), compare_to_uid);

	for (; at < count && strcmp(index[at].use->uid, uid) == 0; at++) {
		if (index[at].taken)
			continue;
		index[at].taken = true;
		return index[at].use;
	}
	return NULL;
}

static const struct pod_stats *take_pod(struct by_uid *index, size_t count,
					const struct kube_pod *pod)
{
	const struct pod_stats *use = *pod->object.uid ? take(index, count, pod->object.uid) : NULL;
	const char *hash;

	if (use || !pod->template->mirror)
		return use;
	hash = labels_find(&pod->template->annotations, CONFIG_HASH);
	return hash && *hash ? take(index, count, hash) : NULL;
}

/* The measured pods that nobody took come first. `used` has a mark for each of the stats' pods. */
static void join(struct view_node *n, struct by_uid *index, bool *used, struct view_pod *known)
{
	const struct node_stats *stats = n->stats;
	const struct model_node *model = n->model;
	size_t count = index_measured(stats, index), taken = 0;
	struct view_pod *at;

	for (size_t i = 0; i < model->pod_count; i++) {
		known[i] =
			(struct view_pod){model->pods[i], take_pod(index, count, model->pods[i])};
		if (!known[i].use)
			continue;
		used[known[i].use - stats->pods] = true;
		taken++;
	}
	n->pod_count = stats->pod_count - taken + model->pod_count;
	n->pods = mem_alloc((n->pod_count + 1) * sizeof(*n->pods));
	at = n->pods;
	for (size_t i = 0; i < stats->pod_count; i++)
		if (!used[i])
			*at++ = (struct view_pod){NULL, &stats->pods[i]};
	memcpy(at, known, model->pod_count * sizeof(*known));
}

bool view_pods_same(const struct view_node *n, const struct view_node *before)
{
	return before && before->model == n->model && n->stats->layout &&
	       n->stats->layout == before->stats->layout;
}

static void join_as_before(struct view_node *n, const struct view_node *before)
{
	const struct pod_stats *now = n->stats->pods, *old = before->stats->pods;

	n->pod_count = before->pod_count;
	n->pods = mem_alloc((n->pod_count + 1) * sizeof(*n->pods));
	for (size_t i = 0; i < n->pod_count; i++) {
		const struct view_pod *p = &before->pods[i];

		n->pods[i] = (struct view_pod){p->pod, p->use ? &now[p->use - old] : NULL};
	}
}

void view_pods_join(struct view_node *n, const struct view_node *before)
{
	struct by_uid *index;
	struct view_pod *known;
	bool *used;

	if (!n->model) {
		n->pod_count = n->stats->pod_count;
		n->pods = mem_zalloc(n->pod_count + 1, sizeof(*n->pods));
		for (size_t i = 0; i < n->pod_count; i++)
			n->pods[i].use = &n->stats->pods[i];
		return;
	}
	if (view_pods_same(n, before)) {
		join_as_before(n, before);
		return;
	}
	index = mem_alloc((n->stats->pod_count + 1) * sizeof(*index));
	used = mem_zalloc(n->stats->pod_count + 1, sizeof(*used));
	known = mem_alloc((n->model->pod_count + 1) * sizeof(*known));
	join(n, index, used, known);
	free(known);
	free(used);
	free(index);
}
