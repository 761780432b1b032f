/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is moved out of a batch leaves NULL behind, so that freeing it is the same whatever was done
 * with it.
 */
#include <stdlib.h>

#include "aggregator/edge/kube/kube.h"

void kube_batch_free(struct kube_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++) {
		object_drop(b->changes[i].object);
		free(b->changes[i].namespace);
		free(b->changes[i].name);
		free(b->changes[i].source);
	}
	free(b);
}

static void apply(struct kube_change *c, struct model *m)
{
	switch (c->type) {
	case KUBE_PUT:
		model_put(m, c->object);
		c->object = NULL;
		break;
	case KUBE_REMOVE:
		/* One that was skipped when it was added is not there. */
		(void)model_remove(m, c->kind, c->namespace, c->name);
		break;
	case KUBE_REPLACE_BEGIN:
		model_replace_begin(m, c->kind);
		break;
	case KUBE_REPLACE_END:
		model_replace_end(m, c->kind);
		break;
	case KUBE_CLEAR:
		model_clear(m, c->kind);
		break;
	case KUBE_SOURCE:
		model_set_source(m, c->kind, c->source);
		break;
	}
}

bool kube_batch_apply(struct kube_batch *b, struct model *m)
{
	uint64_t before = model_generation(m);

	for (size_t i = 0; i < b->count; i++)
		apply(&b->changes[i], m);
	kube_batch_free(b);
	return model_generation(m) != before;
}
