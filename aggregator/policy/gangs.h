/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of pods that do no work with fewer pods than their minimum: the members among the pods of a
 * view, and the members that fall when others leave.
 *
 * A group consists of active pods with a node that are not in deletion. It falls when it had its minimum
 * and loses it by pods that leave. A group without a known minimum, or already below it, never falls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/buf.h"

struct gang_member {
	const struct kube_pod *pod; /* of the view */
	bool gone;
	uint32_t number; /* for the caller; UINT32_MAX at first */
};

struct gang {
	const char *namespace; /* of the view */
	const struct pod_gang *id; /* of the view */
	uint32_t min;
	uint32_t count, gone; /* pods at first; pods that left */
	uint32_t left; /* when it fell: pods it would have if no others left */
	struct gang_member *members; /* of the gangs' one array; by name */
};

struct gangs {
	size_t count, member_count;
	struct gang *of; /* owned */
	struct gang_member *members; /* owned */
};

/* is_terminating: pods that count as gone, too; NULL: none. The view must outlive the result. */
struct gangs *gangs_new(const struct view *v,
			bool (*is_terminating)(const void *ctx, const struct kube_pod *pod),
			const void *ctx);
void gangs_free(struct gangs *g); /* NULL is allowed */

/*
 * Makes the pods leave, except members that left before, and the members that fall with them.
 * Returns both, in that order, as an array for the caller to free. g may be NULL: no groups.
 */
size_t gangs_close(struct gangs *g, const struct kube_pod *const *pods, size_t count,
		   const struct kube_pod ***out);
/* Undoes the leaving of members among the pods. */
void gangs_release(struct gangs *g, const struct kube_pod *const *pods, size_t count);
/* NULL: the pod is in no group, or not among its members. */
struct gang_member *gangs_member(const struct gangs *g, const struct kube_pod *pod,
				 struct gang **gang);
/* The pod's group if it fell, else NULL. */
const struct gang *gangs_fallen(const struct gangs *g, const struct kube_pod *pod);
/* How many of its pods may leave before it falls. */
uint32_t gang_spare(const struct gang *g);
/* "group team/train needs 4, would have 3" */
void gang_tell(const struct gang *g, uint32_t left, struct buf *out);
