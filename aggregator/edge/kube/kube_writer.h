/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of requests to the API, one at a time; a stop ends it at any moment. */
#pragma once

#include <stdbool.h>

#include "aggregator/edge/kube/session.h"
#include "shared/buf.h"
#include "shared/thread.h"

struct kube_writer {
	/* fixed after start */
	const char *what; /* "the status of quotas is not written", for the log; borrowed */
	struct helper thread;

	struct kube_call call; /* the thread's */
};

/*
 * Starts the thread; the writer is a member of *arg. config is copied. -errno with the reason. *w is to
 * be stopped in any case.
 */
int kube_writer_start(struct kube_writer *w, const struct kube_config *config, const char *what,
		      void *(*run)(void *arg), void *arg, struct error *error);
/* Cuts a running request and ends the thread. */
void kube_writer_stop(struct kube_writer *w);

/* --- on the thread ---------------------------------------------------------------------------- */

/* False: the writer stops. */
bool kube_writer_wait(struct kube_writer *w, int64_t ns);
bool kube_writer_stops(const struct kube_writer *w);
/* The HTTP status; 0: no answer within ten seconds, which is logged. */
long kube_writer_send(struct kube_writer *w, enum kube_method method, const char *path,
		      const struct buf *body);
const char *kube_writer_answer(const struct kube_writer *w); /* "" without one */
