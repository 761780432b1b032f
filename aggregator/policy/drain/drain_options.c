/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_options.h"

void drain_options_default(struct drain_options *o)
{
	*o = (struct drain_options){
		.variant = DRAIN_CORRECTED,
		.utilization = 0.5,
		.gpu_utilization = 0.5,
		.drain_unready = true,
		.skip_system = true,
		.skip_local_storage = true,
		.skip_custom_controllers = true,
		.system_timeout_ns = 3600 * DRAIN_SECOND_NS,
		.unneeded_ns = 600 * DRAIN_SECOND_NS,
		.unready_ns = 1200 * DRAIN_SECOND_NS,
		.recheck_ns = 300 * DRAIN_SECOND_NS,
		.eviction_ttl_ns = 180 * DRAIN_SECOND_NS,
		.simulation_ns = DRAIN_SECOND_NS,
		.simulation_min_nodes = 10,
		.max_parallelism = 10,
		.max_drain_parallelism = 10,
		.owner_share = 0.25,
	};
}

void drain_options_upstream(struct drain_options *o)
{
	drain_options_default(o);
	o->variant = DRAIN_UPSTREAM;
	o->max_drain_parallelism = 1;
	o->simulation_ns = 30 * DRAIN_SECOND_NS;
	o->simulation_min_nodes = 0;
	o->eviction_ttl_ns = 0;
}

/* --- reasons */

static const struct {
	const char *name, *unblock;
} rows[] = {
#define X(name, text, unblock) [DRAIN_##name] = {text, unblock},
	DRAIN_REASON_TABLE(X)
#undef X
};

const char *drain_reason_name(enum drain_reason r)
{
	return rows[r].name;
}

const char *const drain_remedies[] = {
	[DRAIN_ADD_LARGE_NODE] = "add a node that is large enough for the pod: none that it may go "
				 "to is, were it empty",
	[DRAIN_LET_ADMIT] = "let its affinity to pods, topology spread, host ports or volumes "
			    "admit it on another node",
	[DRAIN_ASK_LATER] =
		"it is asked again when the other nodes that could go are gone, or are needed",
	[DRAIN_LABEL_NODE] = "label a node as the pod asks, or change what the pod asks for",
	[DRAIN_TOLERATE] = "remove the taint from a node, or give the pod a toleration",
	[DRAIN_UNCORDON] = "uncordon a node",
};

const char *drain_reason_unblock(enum drain_reason r)
{
	return rows[r].unblock;
}
