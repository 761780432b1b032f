/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that answers about quotas share, in JSON. */
#pragma once

#include "aggregator/policy/quota/balance.h"
#include "aggregator/policy/quota/lint.h"
#include "aggregator/policy/quota/preempt.h"
#include "shared/jsonw.h"

/*
 * The members of amounts are those of nodes and pods: "cpuMillicores", "memoryBytes", .., others by
 * their own names.
 */

/*
 * The members of one quota (quotas.c says what they mean), into an object that is open. Of the
 * findings those of its namespace are written; NULL: none were looked for.
 */
void quota_json_write_members(struct jsonw *w, const struct quota_book *b, size_t i,
			      const struct quota_balances *all,
			      const struct quota_findings *findings);
/* "total":{"min","guaranteed","used","pending","borrowed","unused"} */
void quota_json_write_totals(struct jsonw *w, const struct quota_balances *all);
/*
 * "findings":[{"code","severity","kind","namespace","name","field","text"[,"resource","value","bound"]},..]:
 * those of the namespace; NULL: all.
 */
void quota_json_write_findings(struct jsonw *w, const struct quota_findings *findings,
			       const char *namespace);
/*
 * "gate":"overMax","reasons":[{"code":"overMax","text":".."[,"resource":"cpu","numbers":{"used","asked","nominated","bound"}]}]
 */
void quota_json_write_admission(struct jsonw *w, const struct quota_verdict *v);
/* "victims":[..], as POST /v1/quotas/preempt has them */
void quota_json_write_victims(struct jsonw *w, const struct preempt_candidate *c);
enum { QUOTA_PLAN_LEN = 17 };
/* The id of a plan: equal for the same pod, destination and victims. */
void quota_json_plan_id(const struct kube_pod *pod, const struct preempt_candidate *c,
			char id[QUOTA_PLAN_LEN]);
/* "namespace","name","priority","requests" */
void quota_json_write_pod(struct jsonw *w, const struct kube_pod *pod);
