/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes edge: one thread lists and watches every kind and hands records to the loop. It
 * keeps no state of the cluster; records are level-triggered and may be repeated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/model/model.h"
#include "shared/error.h"

/* What the loop does with the model, in order. */
enum kube_change_type {
	KUBE_PUT, /* model_put(object) */
	KUBE_REMOVE, /* model_remove(namespace, name) */
	KUBE_REPLACE_BEGIN,
	KUBE_REPLACE_END,
	KUBE_CLEAR,
	KUBE_SOURCE, /* model_set_source() */
};

struct kube_change {
	enum kube_change_type type;
	enum object_kind kind;
	struct object *object; /* held; PUT */
	char *namespace, *name; /* owned; REMOVE */
	struct model_source *source; /* owned; SOURCE */
};

/* At most KUBE_BATCH changes. */
enum { KUBE_BATCH = 512 };
struct kube_batch {
	struct kube_batch *prev, *next; /* for the queue */
	size_t count;
	size_t bytes; /* of the JSON of its objects */
	struct kube_change changes[KUBE_BATCH];
};

void kube_batch_free(struct kube_batch *b); /* with what is still in it; NULL is allowed */
/* Applies the batch and frees it. True: the model changed. */
bool kube_batch_apply(struct kube_batch *b, struct model *m);

struct kube;
struct kube_timing; /* reflector.h */

/*
 * Starts the thread. config is copied; timing is borrowed, NULL: kube_timing_usual(). `ready` is
 * called on the kube thread when kube_take() has something new; it only wakes the loop. 0, or
 * -errno with the reason. An API that cannot be reached is no error: it is tried again for ever.
 */
int kube_start(struct kube **k, const struct kube_config *config, const struct kube_timing *timing,
	       void (*ready)(void *ctx), void *ctx, struct error *error);
/*
 * Any thread. Everything that has arrived by now is handed over; then `ready` is called, and
 * kube_flushed() is at least that ticket.
 */
void kube_flush(struct kube *k, uint64_t ticket);
/* Loop thread. The newest ticket whose changes are all in batches of kube_take(). */
uint64_t kube_flushed(const struct kube *k);
/*
 * Loop thread. The oldest batch, or NULL. The kube thread waits while 64 batches, or 16 MiB of
 * JSON, are not taken.
 */
struct kube_batch *kube_take(struct kube *k);
/* Closes every connection, joins the thread and frees everything. NULL is allowed. */
void kube_stop(struct kube *k);
