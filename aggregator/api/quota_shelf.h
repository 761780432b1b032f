/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Books of quotas that requests share. To make one of a thousand quotas takes milliseconds, to
 * bring one up to date only what changed; and one that is asked and changed belongs to one thread.
 * So there are a few, each taken whole and given back.
 */
#ifndef EVENKEEL_AGGREGATOR_API_QUOTA_SHELF_H
#define EVENKEEL_AGGREGATOR_API_QUOTA_SHELF_H

#include "aggregator/policy/quota/quota.h"

enum { QUOTA_SHELF_MAX = 2 };

struct quota_shelf;
struct quota_shelf *quota_shelf_new(const struct quota_options *o); /* borrowed */
void quota_shelf_free(struct quota_shelf *s); /* NULL is allowed; all are given back */
/*
 * A book that is as quota_book_new() makes it, and the caller's alone until quota_shelf_give().
 * Never waits: where all are taken, or other options are asked for, or there is no shelf (NULL),
 * one is made. The copy may be NULL.
 */
struct quota_book *quota_shelf_take(struct quota_shelf *s, struct view *v,
				    struct ledger_copy *ledger, const struct quota_options *o,
				    int64_t now_ns);
/* As it was taken: what was added to it is subtracted again. */
void quota_shelf_give(struct quota_shelf *s, struct quota_book *b);
/*
 * Lets go of those that nobody took for ten seconds: each holds the view it was brought up to. NULL
 * is allowed.
 */
void quota_shelf_tidy(struct quota_shelf *s, int64_t now_ns);

#endif
