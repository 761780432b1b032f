/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broken watch leaves a model that was complete; a list that is under way leaves one that says
 * nothing of what it lacks.
 */
#include "aggregator/api/sources.h"

bool sources_are_complete(const struct view *v, enum object_kind kind)
{
	enum source_state state = v->cluster ? v->cluster->sources[kind].state : SOURCE_NONE;

	return state == SOURCE_SYNCED || state == SOURCE_STALE || state == SOURCE_SNAPSHOT;
}

uint64_t sources_count(const struct cluster *c, enum object_kind kind)
{
	/* The table of pods has only those without a node. */
	return kind == OBJECT_POD ? c->pod_count : c->tables[kind]->count;
}
