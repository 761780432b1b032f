/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API over files instead of a server: what --snapshot and --usage name is read, and requests
 * are answered from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/planner/plan.h"
#include "shared/buf.h"
#include "shared/options.h"
#include "shared/error.h"

struct drain_setup;
struct offline;
struct quota_options;
struct slack_options;

/*
 * Reads the files; "-" is standard input. usage may be NULL. -EINVAL with the reason. The moment
 * of the newest is the process's clock for the API: older ones give no answers meanwhile.
 */
int offline_open(struct offline **o, const struct option_list *files, const char *usage,
		 struct error *error);
/* The same of one text in memory; name is what messages call it. */
int offline_open_text(struct offline **o, const char *name, const char *text, size_t len,
		      struct error *error);
/* An aggregator at a moment of its record. */
struct offline_moment {
	int64_t at_ns; /* Unix time */
	struct view *view; /* held */
	struct buf state; /* owned; "state" of a Snapshot: before the plan, if there is one */
	struct plan_moment plan; /* now_ns 0: none is known; its view is held */
};

void offline_moment_fini(struct offline_moment *m); /* one of zeroes is allowed */
int offline_open_moment(struct offline **o, const struct offline_moment *m, struct error *error);
void offline_close(struct offline *o); /* NULL is allowed */
/* The files, for messages: "a.json, b.json". */
const char *offline_name(const struct offline *o);
/* What was left out of them. */
const struct snapshot_notes *offline_notes(const struct offline *o);
/* Whether anything was measured at all. */
bool offline_has_usage(const struct offline *o);
/* Whether it is of offline_open_moment(). */
bool offline_is_recorded(const struct offline *o);
/* Rules other than the usual ones, which NULL is; borrowed until the next, or the end. */
void offline_set_rules(struct offline *o, const struct quota_options *quota,
		       const struct slack_options *slack, const struct drain_setup *drain);
/*
 * Answers as the aggregator would: the HTTP status, with the body appended. target is a path with a
 * query, escaped as in a URL.
 */
int offline_request(struct offline *o, const char *method, const char *target, const char *body,
		    struct buf *out);
