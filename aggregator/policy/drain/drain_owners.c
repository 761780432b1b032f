/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_owners.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shared/hash.h"
#include "shared/mem.h"

int drain_replicas_of(const struct object *workload, enum drain_variant variant,
		      struct drain_replicas *out)
{
	const struct kube_workload *w = (const struct kube_workload *)workload;
	int64_t target;

	if (!workload)
		return -ENOENT;
	if (workload->kind != OBJECT_REPLICA_SET && workload->kind != OBJECT_STATEFUL_SET &&
	    workload->kind != OBJECT_REPLICATION_CONTROLLER && workload->kind != OBJECT_JOB)
		return -ENOTSUP;
	out->current = w->present;
	if (workload->kind == OBJECT_STATEFUL_SET && variant == DRAIN_UPSTREAM)
		out->current = w->current_revision;
	target = w->replicas;
	if (workload->kind == OBJECT_JOB && w->completions >= 0 &&
	    (int64_t)w->completions - w->succeeded < target)
		target = (int64_t)w->completions - w->succeeded;
	if (target < 0 && variant == DRAIN_CORRECTED)
		target = 0;
	out->target = (int32_t)target;
	return 0;
}

/* --- shares */

struct owner {
	const char *uid; /* borrowed */
	const char *kind, *name; /* borrowed */
	int64_t wanted; /* -1: not known */
	int64_t pods, ready, taken;
	int64_t mine; /* taken in the call at hand */
	UT_hash_handle hh;
};

struct drain_owners {
	double share;
	const struct cluster *cluster; /* borrowed */
	struct owner *owners;
};

struct drain_owners *drain_owners_new(double share, const struct cluster *cluster)
{
	struct drain_owners *o = mem_zalloc(1, sizeof(*o));

	o->share = share;
	o->cluster = cluster;
	return o;
}

void drain_owners_free(struct drain_owners *o)
{
	struct owner *owner, *next;

	if (!o)
		return;
	HASH_RELEASE (o->owners, owner, next)
		free(owner);
	free(o);
}

/* NULL: no owner with a uid. */
static struct owner *find_owner(const struct drain_owners *o, const struct kube_pod *pod)
{
	const char *uid = pod->template->owner.uid;
	struct owner *found = NULL;

	if (*uid)
		HASH_FIND_STR(o->owners, uid, found);
	return found;
}

static int64_t wanted_by(const struct drain_owners *o, const struct kube_pod *pod)
{
	const struct owner_ref *ref = &pod->template->owner;
	struct drain_replicas replicas;
	const struct object *workload;
	enum object_kind kind;

	if (!o->cluster || object_kind_find(pod->template->owner_api, ref->kind, &kind))
		return -1;
	workload = cluster_find(o->cluster, kind, pod->object.namespace, ref->name);
	if (!workload || strcmp(workload->uid, ref->uid) != 0 ||
	    drain_replicas_of(workload, DRAIN_CORRECTED, &replicas))
		return -1;
	return replicas.target;
}

void drain_owners_count(struct drain_owners *o, const struct kube_pod *pod)
{
	struct owner *owner = find_owner(o, pod);

	if (!*pod->template->owner.uid || !kube_pod_is_active(pod) || pod->deletion_ns != 0)
		return;
	if (!owner) {
		HASH_NEW(o->owners, owner, uid, pod->template->owner.uid);
		owner->kind = pod->template->owner.kind;
		owner->name = pod->template->owner.name;
		owner->wanted = wanted_by(o, pod);
	}
	owner->pods++;
	owner->ready += pod->ready;
}

static int64_t allowed_of(const struct drain_owners *o, int64_t wanted)
{
	int64_t allowed = (int64_t)(o->share * (double)wanted);

	return allowed < 1 ? 1 : allowed;
}

static int64_t wanted_of(const struct owner *owner)
{
	return owner->wanted < 0 ? owner->pods : owner->wanted;
}

static int64_t missing_of(const struct owner *owner)
{
	int64_t wanted = wanted_of(owner);

	return wanted > owner->ready ? wanted - owner->ready : 0;
}

bool drain_owners_is_whole(const struct drain_owners *o, const struct kube_pod *pod)
{
	const struct owner *owner = find_owner(o, pod);

	return owner && owner->wanted >= 0 && owner->pods >= owner->wanted;
}

bool drain_owners_left(const struct drain_owners *o, const char *uid, int64_t *left)
{
	const struct owner *owner;

	HASH_FIND_STR(o->owners, uid, owner);
	if (!owner)
		return false;
	*left = allowed_of(o, wanted_of(owner)) - missing_of(owner) - owner->taken;
	return true;
}

static void tell_full(const struct drain_owners *o, const struct owner *owner, int64_t together,
		      struct error *error)
{
	int64_t wanted = wanted_of(owner), missing = missing_of(owner);
	int64_t allowed = allowed_of(o, wanted);
	struct error rest;

	if (together > allowed)
		error_set(&rest, ", and %" PRId64 " would leave at once", together);
	else
		error_set(&rest, ": %" PRId64 " %s not ready, and %" PRId64 " would move already",
			  missing, drain_plural(missing, "is", "are"), owner->taken);
	error_set(error, "%s %.60s wants %" PRId64 " %s, of which %" PRId64 " may be away%s",
		  owner->kind, owner->name, wanted, drain_plural(wanted, "replica", "replicas"),
		  allowed, rest.text);
}

/* The owner that misses the pod; NULL: none, or the pod is not ready or ends and so away anyway. */
static struct owner *find_loser(const struct drain_owners *o, const struct kube_pod *pod)
{
	return pod->ready && pod->deletion_ns == 0 && kube_pod_is_active(pod) ? find_owner(o, pod)
									      : NULL;
}

static int64_t count_together(const struct drain_owners *o, const struct owner *owner,
			      const struct kube_pod *const *pods, size_t count)
{
	int64_t together = 0;

	for (size_t i = 0; i < count; i++)
		together += find_loser(o, pods[i]) == owner;
	return together;
}

void drain_owners_give(struct drain_owners *o, const struct kube_pod *const *pods, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct owner *owner = find_loser(o, pods[i]);

		assert(!owner || owner->taken > 0);
		if (owner)
			owner->taken--;
	}
}

enum drain_reason drain_owners_take(struct drain_owners *o, const struct kube_pod *const *pods,
				    size_t count, const struct kube_pod **pod, struct error *error)
{
	enum drain_reason reason = DRAIN_NONE;
	size_t asked;

	for (asked = 0; asked < count; asked++) {
		struct owner *owner = find_loser(o, pods[asked]);

		if (!owner)
			continue;
		/* One more ready pod may go beside others, or after those of the same call. */
		if (owner->taken + missing_of(owner) + 1 <= allowed_of(o, wanted_of(owner)) ||
		    (owner->mine > 0 && owner->taken == owner->mine)) {
			owner->taken++;
			owner->mine++;
			continue;
		}
		tell_full(o, owner, count_together(o, owner, pods, count), error);
		reason = DRAIN_OWNER_SHARE;
		if (pod)
			*pod = pods[asked];
		break;
	}
	for (size_t i = 0; i < asked; i++) {
		struct owner *owner = find_loser(o, pods[i]);

		if (owner)
			owner->mine = 0;
	}
	if (reason != DRAIN_NONE)
		drain_owners_give(o, pods, asked);
	return reason;
}
