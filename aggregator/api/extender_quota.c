/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether quotas let the pod start, with what other pods were promised since the view: a pod that
 * passes is reserved by filter, and counts as used from then on (ledger.h). A question that is
 * asked again does not count its own reservation. The sentence says which resource of which quota
 * is short, by which numbers, and what would help; it begins with the name of the gate, so that
 * `kubectl describe pod` tells a refusal by quota from a lack of nodes.
 *
 * Victims can help against every refusal but one: a pod that alone asks for more than the max of
 * its quota.
 *
 * Where the API has no elastic quotas, or they are not known yet, every pod passes: nobody who
 * installs the extender first shall find his cluster stopped.
 */
#include "aggregator/api/extender_quota.h"

#include <stdio.h>

#include "aggregator/api/quota_scene.h"

/* A late question: the pod is in the numbers already. */
static bool is_bound(const struct extender_call *call)
{
	return call->ctx->ledger && ledger_remembers(call->ctx->ledger, call->pod->object.uid);
}

bool extender_quota_gate(const struct extender_call *call, struct extender_gate_answer *answer)
{
	struct quota_verdict verdict;
	struct quota_scene scene;
	struct quota_ask ask;

	quota_scene_of(&scene, call->ctx, call->ledger, call->view);
	ask = quota_scene_ask(&scene, call->pod, is_bound(call) ? call->pod : NULL);
	quota_admit(scene.book, &ask, &verdict);
	if (call->ctx->counters)
		answer->counter = &call->ctx->counters->quota.gates[verdict.gate];
	if (!verdict.admitted) {
		snprintf(answer->why, EXTENDER_GATE_TEXT, "ElasticQuota %.20s: %.470s",
			 quota_gate_name(verdict.gate), verdict.why.text);
		answer->unresolvable = verdict.gate == QUOTA_NEVER;
	}
	quota_scene_close(&scene);
	return verdict.admitted;
}
