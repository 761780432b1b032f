/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disruptions that PodDisruptionBudgets still allow while nodes are chosen one after the other: a
 * tracker for one run over the records of one view. drain_plan.c asks it for a node alone,
 * drain_wave.c for a node beside those of the wave.
 *
 *   upstream   a taken pod costs one of every budget that matches, even if it is not healthy; running
 *              drains are not known. Remaining amounts can become negative.
 *   corrected  - the caller takes the pods of nodes in deletion first
 *              - pods that the eviction API lets go anyway are free: in deletion, Pending, Succeeded,
 *                Failed, or not ready while the budget has what it desires (or says AlwaysAllow)
 *              - a pod of several budgets is refused (SeveralPdbs), as the eviction API does
 *              - of a status that is older than its spec, or that allows more than are healthy
 *                beyond the desired, the lesser amount counts
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"
#include "shared/error.h"

struct drain_pdbs;

/* Over kube_pdb records. Records of budgets and pods must outlive it. */
struct drain_pdbs *drain_pdbs_new(enum drain_variant variant, struct object *const *budgets,
				  size_t count);
void drain_pdbs_free(struct drain_pdbs *p); /* NULL is allowed */

/* Numbers of the budgets that match the pod, in the order of drain_pdbs_new(); valid while p lives. */
size_t drain_pdbs_match(struct drain_pdbs *p, const struct kube_pod *pod, const uint32_t **which);
const struct kube_pdb *drain_pdbs_at(const struct drain_pdbs *p, uint32_t which);
int64_t drain_pdbs_remaining(const struct drain_pdbs *p, uint32_t which);

struct drain_pdb_verdict {
	enum drain_reason reason; /* DRAIN_NONE: they may go; NOT_ENOUGH_PDB, SEVERAL_PDBS */
	bool in_parallel; /* false: some wait for others' replacements, a risky drain */
	const struct kube_pod *pod; /* refused or waiting; NULL: none */
	const struct kube_pdb *budget; /* that refuses; NULL: none */
	int64_t remaining; /* of the budget */
};

/* Whether the pods may go together. */
void drain_pdbs_ask(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count,
		    struct drain_pdb_verdict *v);
/* The verdict as a sentence with its numbers. */
void drain_pdb_tell(const struct drain_pdb_verdict *v, struct error *error);
/* The caller gives a pod back before it asks about it, or takes it, again. */
void drain_pdbs_take(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count);
/* Undoes a take of the same pods. */
void drain_pdbs_give(struct drain_pdbs *p, const struct kube_pod *const *pods, size_t count);
