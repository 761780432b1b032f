/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubelet that manages cgroups through systemd and a runtime that writes them itself make two
 * trees:
 *
 *	/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice	the pod, with no process
 *	/system.slice/containerd.service/kubepods-burstable-podUID.slice:cri-containerd:ID	its container
 *
 * Such a container is apart from its pod. What it uses is counted where it lives, up to the node,
 * and once more for the pod alone:
 *
 *	each tick	once everything is rolled up, its use and its gauges are added to what the pod has, and the sum is
 * sampled: as one, so that the pod's variance is that of the sum (account.c, track_adopt)
 *	removed	what was left of it waits for the pod's next tick (account_removal.c)
 * limits          what binds the pod's own cgroup does not bind the container. The limits of the
 * pod are those of the nearest cgroup that holds both, which most often has none.
 *	pressure	times in which tasks waited cannot be added: two that wait at once are one wait. So it is not
 *			known of the pod, only of its containers.
 *
 * Pods and containers nest when a node runs in a container. Then only what has the same workload
 * above it belongs together; anything else is a name that a container gave to a cgroup of its own,
 * and takes no part in somebody else's pod.
 *
 * What a container apart used is in the totals of what held it and in no pod's where nothing tells
 * whose it was: when it came and went between two ticks (the removal of a cgroup tells its
 * number, not its name), and after its last tick where there are no removals (v1, and the tier of
 * files).
 */
#include "agent/account_apart.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

void pod_finder_fini(struct pod_finder *f)
{
	free(f->places);
}

/* By UID, the oldest first. */
static int compare_places(const void *a, const void *b)
{
	const struct pod_place *x = a, *y = b;
	int rc = strcmp(x->uid, y->uid);

	return rc ? rc : (x->ref > y->ref) - (x->ref < y->ref);
}

static void make_places(struct pod_finder *f)
{
	size_t count = topology_count(f->topology);

	f->places = mem_alloc(count * sizeof(*f->places));
	for (size_t i = 0; i < count; i++) {
		if (f->kinds[i] != ENTITY_POD || !f->tracks[i].workload)
			continue;
		f->places[f->place_count++] = (struct pod_place){
			.uid = topology_at(f->topology, i)->identity.pod_uid,
			.ref = f->tracks[i].workload->entity->ref,
			.index = (int)i,
		};
	}
	qsort(f->places, f->place_count, sizeof(*f->places), compare_places);
}

static int listed_above(const struct pod_finder *f, int i)
{
	do
		i = f->tracks[i].parent;
	while (i != CGROUP_NONE && f->kinds[i] == NOT_LISTED);
	return i;
}

static int pod_above(const struct pod_finder *f, int i)
{
	do
		i = listed_above(f, i);
	while (i != CGROUP_NONE && f->kinds[i] != ENTITY_POD);
	return i;
}

static const char *uid_of(const struct pod_finder *f, int index)
{
	return topology_at(f->topology, (size_t)index)->identity.pod_uid;
}

/* The first place with this UID, or where it would be. */
static size_t find_place(const struct pod_finder *f, const char *uid)
{
	size_t low = 0, high = f->place_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(f->places[middle].uid, uid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int find_elsewhere(struct pod_finder *f, int container)
{
	const char *uid = uid_of(f, container);
	int above = listed_above(f, container);

	if (!f->places)
		make_places(f);
	for (size_t i = find_place(f, uid); i < f->place_count; i++) {
		if (strcmp(f->places[i].uid, uid) != 0)
			break;
		if (listed_above(f, f->places[i].index) == above)
			return f->places[i].index;
	}
	return CGROUP_NONE;
}

int pod_finder_find(struct pod_finder *f, int container, bool *apart)
{
	int above = pod_above(f, container), elsewhere;

	*apart = false;
	if (above != CGROUP_NONE && strcmp(uid_of(f, above), uid_of(f, container)) == 0)
		return above;
	elsewhere = find_elsewhere(f, container);
	*apart = elsewhere != CGROUP_NONE;
	return *apart ? elsewhere : above;
}

int apart_holder(const struct track *tracks, int a, int b)
{
	/* Parents have the smaller indices. */
	while (a != b) {
		if (a > b)
			a = tracks[a].parent;
		else
			b = tracks[b].parent;
	}
	return a;
}

static int compare_aparts(const void *a, const void *b)
{
	const struct apart *x = a, *y = b;
	int rc = (x->pod > y->pod) - (x->pod < y->pod);

	return rc ? rc : (x->container > y->container) - (x->container < y->container);
}

void apart_sort(struct apart *list, size_t count)
{
	if (count)
		qsort(list, count, sizeof(*list), compare_aparts);
}
