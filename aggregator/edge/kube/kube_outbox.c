/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound is on batches and bytes, since a batch holds up to 512 objects of any size. It is how
 * far a list may be ahead of the loop.
 */
#include "aggregator/edge/kube/kube_feed.h"

#include <stdlib.h>
#include <utlist.h>

#include "aggregator/edge/kube/kube.h"
#include "shared/mem.h"

enum {
	QUEUE_BATCHES = 64,
	QUEUE_BYTES = 16 << 20,
	BATCH_BYTES = 512 << 10, /* a batch of that size is handed over early */
};

void kube_outbox_init(struct kube_outbox *o, void (*ready)(void *ctx), void *ctx)
{
	*o = (struct kube_outbox){.ready = ready, .ctx = ctx};
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->room, NULL);
}

void kube_outbox_fini(struct kube_outbox *o)
{
	struct kube_batch *b;

	while ((b = kube_outbox_take(o)) != NULL)
		kube_batch_free(b);
	kube_batch_free(o->open);
	pthread_cond_destroy(&o->room);
	pthread_mutex_destroy(&o->lock);
}

void kube_outbox_flush(struct kube_outbox *o)
{
	struct kube_batch *b = o->open;
	bool closed;

	if (!b)
		return;
	o->open = NULL;
	pthread_mutex_lock(&o->lock);
	while ((o->count >= QUEUE_BATCHES || o->bytes >= QUEUE_BYTES) && !o->closed)
		pthread_cond_wait(&o->room, &o->lock);
	closed = o->closed;
	if (!closed) {
		DL_APPEND(o->queue, b);
		o->count++;
		o->bytes += b->bytes;
	}
	pthread_mutex_unlock(&o->lock);
	if (closed)
		kube_batch_free(b);
	else
		o->ready(o->ctx);
}

struct kube_change *kube_outbox_add(struct kube_outbox *o, enum kube_change_type type,
				    enum object_kind kind, size_t json_len)
{
	struct kube_change *c;

	if (o->open && (o->open->count == KUBE_BATCH || o->open->bytes >= BATCH_BYTES))
		kube_outbox_flush(o);
	if (!o->open) {
		o->open = mem_alloc(sizeof(*o->open));
		o->open->count = o->open->bytes = 0;
	}
	o->open->bytes += json_len;
	c = &o->open->changes[o->open->count++];
	*c = (struct kube_change){.type = type, .kind = kind};
	return c;
}

struct kube_batch *kube_outbox_take(struct kube_outbox *o)
{
	struct kube_batch *b;

	pthread_mutex_lock(&o->lock);
	b = o->queue;
	if (b) {
		DL_DELETE(o->queue, b);
		o->count--;
		o->bytes -= b->bytes;
		pthread_cond_signal(&o->room);
	}
	pthread_mutex_unlock(&o->lock);
	return b;
}

void kube_outbox_close(struct kube_outbox *o)
{
	pthread_mutex_lock(&o->lock);
	o->closed = true;
	pthread_cond_broadcast(&o->room);
	pthread_mutex_unlock(&o->lock);
}

/* --- batches ---------------------------------------------------------------------------------- */

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
		/* A skipped object is not there. */
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
