/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a snapshot, for the files that read it. */
#pragma once

#include <stdbool.h>

#include "aggregator/planner/plan.h"
#include "aggregator/api/snapshot.h"
#include "aggregator/api/snapshot_text.h"
#include "aggregator/model/model.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/stats_json.h"

/* A load watcher's use of one resource of a node, in percent of its capacity. */
struct watcher_resource {
	double mean, stddev, latest; /* NaN: not told */
};

struct watcher_use {
	char *node; /* first, for array_compare_text(); owned */
	struct watcher_resource cpu, mem;
	enum window window;
	int64_t start_ns, end_ns;
	uint64_t samples; /* 0: not told */
};

struct snapshot {
	struct model *model; /* owned */
	struct stats_json_set *node_stats; /* owned */
	struct reservations *reservations; /* owned; NULL: taken */
	struct join *join; /* owned */
	struct demand *demand; /* owned */
	struct plan_memory memory; /* owned */
	struct snapshot_notes notes;
	size_t documents, objects;
	size_t unused; /* objects of kinds that are not kept */
	char unused_kinds[128]; /* the first of them: "Service, ConfigMap" */
	struct view *view; /* owned; of snapshot_use_view(); NULL: to be made of the above */
	bool own; /* a Snapshot was read */
	bool standalone; /* and no API was followed when it was made */
	bool has_usage;
	int64_t time_ns; /* of the Snapshot */
	int64_t usage_ns, object_ns; /* the newest time found; 0: none */
	struct model_source sources[OBJECT_KINDS];
	bool seen[OBJECT_KINDS];
	size_t use_count;
	struct watcher_use *uses; /* owned */
	char usage_name[128]; /* of the file they are from */
};

/* A line for people; counted as skipped where something is not used. */
void snapshot_note(struct snapshot *s, bool skipped, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void snapshot_saw_time(int64_t *newest_ns, int64_t unix_ns);

/* --- snapshot_parts.c */

/* The list at hand, of items that need not say what they are where version and kind do. */
int snapshot_read_items(struct snapshot *s, struct snapshot_text *t, const char *version,
			const char *kind);
/* index is its place in the list, by which it is named where it has no name. */
int snapshot_read_item(struct snapshot *s, struct snapshot_text *t, const char *version,
		       const char *kind, size_t index);

void snapshot_write_reservation(struct jsonw *w, const struct reservation *e);
/* state.ledger of the Snapshot that t is; NULL: it has none. Its time must be known. */
int snapshot_read_reservations(struct snapshot *s, const struct snapshot_text *t,
			       const cJSON *list);

/*
 * The object {"apiVersion","kind":"Usage","time","nodes","pods"} at hand; path is where it stands
 * ("" or "usage.").
 */
int snapshot_read_usage(struct snapshot *s, struct snapshot_text *t, const char *path);

/* --- snapshot_watcher.c */

/* An answer of /watcher. */
int snapshot_read_watcher(struct snapshot *s, const struct snapshot_text *t, const cJSON *doc);
/* Makes stats of known nodes from that answer. */
void snapshot_use_watcher(struct snapshot *s);
