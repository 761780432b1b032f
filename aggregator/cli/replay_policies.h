/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that are compared over the moments of a record, for evenkeel replay. */
#pragma once

#include "aggregator/cli/cli.h"
#include "aggregator/cli/replay.h"
#include "aggregator/state/uid_set.h"

struct policy;

struct policies {
	struct policy *of; /* owned */
	size_t count;
	struct uid_set known; /* pods of the moments so far */
};

/*
 * Each text is NAME[:OPTION=VALUE;..], with options of scores (blend, plugin) and of drain
 * (drain-..). -EINVAL with the reason; policies_fini() is called in either case.
 */
int policies_read(struct policies *all, const struct option_list *texts, struct error *error);
void policies_fini(struct policies *all);
/*
 * Lets each policy judge the moment. before: the one before; NULL: it is not in the record, so no pod
 * counts as bound since. -EINVAL with the reason.
 */
int policies_step(struct policies *all, const struct offline_moment *before,
		  const struct offline_moment *now, struct error *error);
/* A table of what they did, or {"apiVersion","kind":"PolicyList","items":[..]}. */
void policies_show(const struct policies *all, struct cli *cli);
