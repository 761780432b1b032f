/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equal templates become one: the pods of a ReplicaSet differ in name, node and status only, and
 * what they have in common is nine tenths of them. A template is found by its text, which is
 * canonical; its hash came with it. The table holds each as long as a pod of the model has it;
 * readers who hold pods keep it alive beyond that.
 */
#include <assert.h>
#include <stdlib.h>

#include "aggregator/model/model_state.h"

struct model_template *model_template_take(struct model *m, struct kube_pod *pod)
{
	struct pod_template *own = pod->template;
	unsigned int hash = (unsigned int)(own->hash ^ own->hash >> 32);
	struct model_template *t;

	HASH_FIND_BYHASHVALUE(hh, m->templates, own->text, own->text_len, hash, t);
	if (!t) {
		t = mem_zalloc(1, sizeof(*t));
		t->template = pod_template_hold(own);
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, m->templates, own->text, own->text_len, hash, t);
	} else if (t->template != own) {
		pod->template = pod_template_hold(t->template);
		pod_template_drop(own);
	}
	t->pods++;
	return t;
}

void model_template_give(struct model *m, struct model_template *t)
{
	if (!t)
		return;
	assert(t->pods > 0);
	if (--t->pods)
		return;
	HASH_DEL(m->templates, t);
	pod_template_drop(t->template);
	free(t);
}
