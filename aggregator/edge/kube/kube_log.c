/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that is gone is fifteen broken watches and one line; so is its return. What concerns one
 * kind alone (no permission, no such resource) is a line of that kind.
 */
#include "aggregator/edge/kube/kube_log.h"

#include "shared/log.h"

static bool is_settled(enum source_state state)
{
	return state == SOURCE_SYNCED || state == SOURCE_FORBIDDEN || state == SOURCE_ABSENT;
}

static void log_kind(enum object_kind kind, const struct model_source *source)
{
	if (source->state == SOURCE_FORBIDDEN)
		log_warn("%s: %s", object_kind_resource(kind), source->message);
	else if (source->state == SOURCE_ABSENT)
		log_info("%s: %s", object_kind_resource(kind), source->message);
}

static void log_trouble(struct kube_log *l, enum object_kind kind,
			const struct model_source *source)
{
	bool any = false;

	for (int i = 0; i < OBJECT_KINDS; i++)
		any |= l->troubled[i];
	if (any && !l->any_trouble)
		log_warn("%s are not followed, and maybe others: %s; trying again",
			 object_kind_resource(kind), source->message);
	else if (!any && l->any_trouble)
		log_info("the Kubernetes API is followed again");
	l->any_trouble = any;
}

static void log_completion(struct kube_log *l)
{
	if (l->complete)
		return;
	for (int i = 0; i < OBJECT_KINDS; i++)
		if (!is_settled(l->states[i]))
			return;
	l->complete = true;
	log_info("the cluster is known: everything there is to read was read");
}

void kube_log_source(struct kube_log *l, enum object_kind kind, const struct model_source *source)
{
	if (source->state != l->states[kind])
		log_kind(kind, source);
	l->states[kind] = source->state;
	l->troubled[kind] = (source->state == SOURCE_STALE || source->state == SOURCE_LISTING) &&
			    source->message[0];
	log_trouble(l, kind, source);
	log_completion(l);
}
