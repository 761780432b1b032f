/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and views as the documents that the checker of plans takes. */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/policy/drain/drain.h"
#include "aggregator/verify/verify.h"

/* The answer to GET /v1/snapshot as of VIEW_FIXTURE_NOW_NS; the caller's. */
cJSON *verify_fixture_snapshot(struct view *v);
/* As evenkeel drain -o plan prints it, under the default cap; the caller's. */
cJSON *verify_fixture_plan(const struct drain_plan *plan);
/*
 * Judges a tree of a plan, as a text that is read. *p and *out are the caller's; a plan that cannot
 * be read fails the test.
 */
void verify_fixture_judge(const cJSON *plan, const cJSON *snapshot, struct verify_plan *p,
			  struct verify_report *out);
