/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what quotas use into their status.used, for those who look with kubectl and for tools made
 * for scheduler-plugins. Off unless asked for.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_STATUS_WRITER_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_STATUS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/reason.h"

struct status_writer;

/*
 * Starts the thread. config is copied, the others are borrowed until the stop. 0, or -errno with
 * the reason.
 */
int status_writer_start(struct status_writer **w, const struct kube_config *config,
			struct view_slot *views, const struct quota_options *options,
			struct quota_counters *counters, struct reason *reason);
/* Cuts what is under way. NULL is allowed. */
void status_writer_stop(struct status_writer *w);

/*
 * The path and the body with which the status of a quota object is to be written, so that it tells
 * that (quota_status_new()); for tests alone. False: it does already, and nothing is appended.
 */
bool status_writer_request(const struct object *object, const struct resources *used,
			   struct buf *path, struct buf *body);

/*
 * How long a quota is left alone of which the API said that (0: it was not reached); < 0: there is
 * no use in going on with others, either.
 */
int64_t status_writer_rest_ns(long status);

/*
 * Names that are not written before some time; when it comes, they are forgotten. Empty when all is
 * zero. For tests, too.
 */
struct backoff_set {
	struct backoff_set_entry *entries; /* owned, a hash by name */
};

void backoff_set_fini(struct backoff_set *l);
/* Until that monotonic time; what was told of the name before does not count any more. */
void backoff_set_add(struct backoff_set *l, const char *name, int64_t until_ns);
bool backoff_set_has(const struct backoff_set *l, const char *name, int64_t now_ns);
/* Forgets all whose time has come, whoever asks for them or never does again. */
void backoff_set_expire(struct backoff_set *l, int64_t now_ns);
size_t backoff_set_count(const struct backoff_set *l);

#endif
