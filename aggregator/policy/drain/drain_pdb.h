/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PodDisruptionBudgets still allow while nodes are chosen one after the other: a tracker for
 * one run, over the records of one view.
 *
 *   upstream   each taken pod costs one of every budget that matches, also when it was taken
 *              before, and whether it is healthy or not; what is being drained already is not
 *              known. Remaining amounts can become negative.
 *   corrected  - a pod costs once, however often it is taken; take pods of nodes in deletion first,
 *              and they are reserved
 *              - free are pods that the eviction API lets go without asking: in deletion, Pending,
 *                Succeeded, Failed, or not ready while the budget has what it desires (or says
 *                AlwaysAllow)
 *              - a pod that matches several budgets is refused (SeveralPdbs): the eviction API
 *                fails on it
 *              - a status that is older than its spec, or that allows more than are healthy beyond
 *                what is desired, allows the less
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_PDB_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_PDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"
#include "shared/error.h"

struct drain_pdbs;

/* Of kube_pdb records, as an object_table has them. Records of budgets and pods must outlive it. */
struct drain_pdbs *drain_pdbs_new(enum drain_variant variant, struct object *const *budgets,
				  size_t count);
void drain_pdbs_free(struct drain_pdbs *p); /* NULL is allowed */

/*
 * The budgets that match the pod, as numbers in the order of drain_pdbs_new(); valid while p lives.
 * Decided once per namespace and template.
 */
size_t drain_pdbs_match(struct drain_pdbs *p, const struct kube_pod *pod, const uint32_t **which);
const struct kube_pdb *drain_pdbs_at(const struct drain_pdbs *p, uint32_t which);
int64_t drain_pdbs_remaining(const struct drain_pdbs *p, uint32_t which);

struct drain_pdb_verdict {
	enum drain_reason reason; /* DRAIN_NONE: they may go; NOT_ENOUGH_PDB, SEVERAL_PDBS */
	/* all at once; else some wait for the others' successors: a risky drain */
	bool in_parallel;
	const struct kube_pod *pod; /* that is refused, or has to wait; NULL: none */
	const struct kube_pdb *budget; /* by which; NULL: none */
	int64_t remaining; /* of it */
};

/*
 * Whether the pods (of one node, usually) may go together. By budget, then in the order of the
 * pods.
 */
void drain_pdbs_ask(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count,
		    struct drain_pdb_verdict *v);
/* What the verdict's budget says, with its numbers. */
void drain_pdb_tell(const struct drain_pdb_verdict *v, struct error *error);
void drain_pdbs_take(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count);
/* Takes it back; corrected: of those that are taken. */
void drain_pdbs_give(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count);

#endif
