/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the usage of quotas to their status.used, for kubectl and for tools of scheduler-plugins.
 * Off by default.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/counters.h"
#include "shared/buf.h"
#include "shared/error.h"

struct status_writer;

/*
 * Starts the thread. config is copied, the others are borrowed until the stop. 0, or -errno with
 * the reason; *w is to be stopped in any case.
 */
int status_writer_start(struct status_writer **w, const struct kube_config *config,
			struct view_slot *views, const struct quota_options *options,
			struct quota_counters *counters, struct error *error);
/* Cuts a running request. NULL is allowed. */
void status_writer_stop(struct status_writer *w);

/*
 * Path and body of the request that writes `used` (quota_status_new()) to a quota object; exported
 * for tests. False: the status is up to date, and nothing is appended.
 */
bool status_writer_request(const struct object *object, const struct resources *used,
			   struct buf *path, struct buf *body);

/*
 * Whether the answer of the API, the quota after that request, has a resource in status.used beside
 * those of `used`, and the name of the first: others left it there, and the request did not remove it.
 */
bool status_writer_leftover(const char *answer, const struct resources *used, char name[256]);

/* How long to wait with a quota after that HTTP status (0: no answer); < 0: with all quotas. */
int64_t status_writer_rest_ns(long status);

/*
 * Names with the time before which they are not written again. Empty when zeroed. Exported for
 * tests.
 */
struct backoff_set {
	struct backoff_set_entry *entries; /* owned, a hash by name */
};

void backoff_set_fini(struct backoff_set *l);
/* Replaces the former time of the name; monotonic. */
void backoff_set_add(struct backoff_set *l, const char *name, int64_t until_ns);
bool backoff_set_has(const struct backoff_set *l, const char *name, int64_t now_ns);
/* Removes all names whose time is over. */
void backoff_set_expire(struct backoff_set *l, int64_t now_ns);
size_t backoff_set_count(const struct backoff_set *l);
