/* SPDX-License-Identifier: Apache-2.0 */
/* What the kube thread has for the loop thread: batches in a bounded queue. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_OUTBOX_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_OUTBOX_H

#include <pthread.h>

#include "aggregator/edge/kube/kube.h"

struct kube_outbox {
	/* fixed after init */
	void (*ready)(void *ctx);
	void *ctx;

	/* kube thread */
	struct kube_batch *open; /* being filled; NULL: none */

	pthread_mutex_t lock;
	pthread_cond_t room;
	/* under lock */
	struct kube_batch *first, **last;
	size_t count, bytes; /* of what is queued */
	bool closed;
};

void kube_outbox_init(struct kube_outbox *o, void (*ready)(void *ctx), void *ctx);
/* Once no other thread uses it. Frees what nobody took. */
void kube_outbox_fini(struct kube_outbox *o);

/*
 * Kube thread. The next change, zeroed but for type and kind, to be filled in before the next call
 * here. json_len: of what the change was read from. Waits while the queue is full and a batch is
 * ready for it.
 */
struct kube_change *kube_outbox_add(struct kube_outbox *o, enum kube_change_type type,
				    enum object_kind kind, size_t json_len);
/* Kube thread. Hands over what there is. */
void kube_outbox_flush(struct kube_outbox *o);
/* Loop thread. The oldest batch, or NULL. */
struct kube_batch *kube_outbox_take(struct kube_outbox *o);
/* Any thread. From now on nothing waits, and nothing is queued. */
void kube_outbox_close(struct kube_outbox *o);
bool kube_outbox_is_closed(struct kube_outbox *o);

#endif
