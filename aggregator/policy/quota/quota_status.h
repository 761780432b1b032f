/* SPDX-License-Identifier: Apache-2.0 */
/* status.used of the objects, as who writes it has to tell it. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_STATUS_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_STATUS_H

#include "aggregator/policy/quota/quota.h"

/*
 * What is used of every quota, in the order of quota_book_at(), by the book's variant:
 *   upstream   pods in phase Running only; containers and init containers, without overhead,
 *              sidecars and the pod's own resources
 *   corrected  what the book counts: pods that are bound to a node and neither Succeeded nor
 *              Failed, with all they request (kube_pod_requests())
 * Every name in min or max is told, with 0 where nothing of it is used; others too, as far as pods
 * ask for them. Of a book that was made of the view, and of no reservations: what is only promised
 * is not used. Ended with quota_status_free().
 */
struct resources *quota_status_new(const struct quota_book *b, const struct view *v);
void quota_status_free(const struct quota_book *b, struct resources *status);

#endif
