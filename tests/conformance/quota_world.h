/* SPDX-License-Identifier: Apache-2.0 */
/* The clusters of cases about preemption. */
#pragma once

#include "tests/conformance/values.h"
#include "tests/preempt_fixture.h"

/*
 * nodes, pods (that list, or the case's), quotas, pdbs and nominated of a case, built. Budgets are
 * soft: upstream prefers to keep them, no more. used: from the pods, else as the quotas say.
 */
void quota_world_init(struct preempt_fixture *f, const cJSON *c, const cJSON *pods,
		      enum quota_variant variant, bool used);
const char *quota_world_text(const cJSON *object, const char *key); /* "" */
/* The lists have the same texts, in any order; a NULL list is empty. */
bool quota_world_same(const cJSON *expected, const cJSON *got, const char *what,
		      struct error *error);
/* The names of a candidate's victims. */
cJSON *quota_world_victims(const struct preempt_candidate *c);
