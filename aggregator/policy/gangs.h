/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of pods that do no work with fewer pods than their minimum: which pods of a view are in
 * one, and which fall with pods that leave.
 *
 * A group has the pods that have a node, did not end, and are not in deletion. A group falls when
 * it had its minimum, and has not without those that leave. A group whose minimum nobody tells, or
 * that is below it anyway, never falls.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_GANGS_H
#define EVENKEEL_AGGREGATOR_POLICY_GANGS_H

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
	uint32_t count, gone; /* pods it had; of them, those that left */
	uint32_t left; /* when it fell: pods it would have, did no others leave */
	struct gang_member *members; /* of the gangs' one array; by name */
};

struct gangs {
	size_t count, member_count;
	struct gang *of; /* owned */
	struct gang_member *members; /* owned */
};

/* is_going: pods that are not there any more; NULL: nobody else. The view must outlive it. */
struct gangs *gangs_new(const struct view *v,
			bool (*is_going)(const void *ctx, const struct kube_pod *pod),
			const void *ctx);
void gangs_free(struct gangs *g); /* NULL is allowed */

/*
 * The pods leave, but for members that left before, and with them those that fall: both are
 * returned, in that order, as an array for the caller to free. g may be NULL: nobody falls.
 */
size_t gangs_close(struct gangs *g, const struct kube_pod *const *pods, size_t count,
		   const struct kube_pod ***out);
/* Members among them are back. */
void gangs_release(struct gangs *g, const struct kube_pod *const *pods, size_t count);
/* NULL: the pod is in no group, or is not there. */
struct gang_member *gangs_member(const struct gangs *g, const struct kube_pod *pod,
				 struct gang **gang);
/* The pod's group, if it fell. */
const struct gang *gangs_fallen(const struct gangs *g, const struct kube_pod *pod);
/* So many of its pods may leave, and it does not fall. */
uint32_t gang_spare(const struct gang *g);
/* "group team/train needs 4, would have 3" */
void gang_tell(const struct gang *g, uint32_t left, struct buf *out);

#endif
