/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record: what an aggregator was told, in order, so that `evenkeel replay` comes to the views it
 * had. A directory of segments, each a gzip file "evenkeel-record.START.gz", START the Unix time in
 * nanoseconds with 19 digits; a segment that was cut is read as far as it goes.
 *
 * A segment is a list of entries: u8 type, u32 length of the data, the data, u32 crc32() of all that is
 * in front; numbers are little-endian. BEGIN of version 1 begins the same, but no entry had a checksum.
 *
 *	BEGIN		u8 version, i64 START of the segment that this one continues (0: none); then the
 *			base
 *	OBJECT		an object of the cluster as JSON (object_write())
 *	REMOVED		resource, namespace, name of an object, a NUL behind each
 *	SOURCES		JSON: "sources" of a Snapshot; sources without this entry: no API is followed
 *	STATE		JSON: "state" of a Snapshot; in the base also its "workloads" and "demand".
 *			The planner's memory is the one that the newest plan began with
 *	PLAN		of the newest plan: i64 time, i64 time of the view it was made of (GATHERED), i64 time
 *			until the next one, u64 version, u64 run of the aggregator, u64 looks at the clock until
 *			the time was up (0: it sufficed)
 *	BASE_END	so far it is what the segments before told
 *	INTERVAL	u8 enum usage_verdict, i64 time, 16 bytes run, 24 bytes nonce, u64 sequence,
 *			i64 age_ns, i64 wait_ns, the node's name and a NUL, then each part: u32 length, body
 *			(shared/body.proto); of verdicts that leave a trace
 *	BUILT		u32: the stats of so many nodes were built (usage_build_stats())
 *	GATHERED	i64 time: stats were gathered for a view, of the objects that were told so far
 *	VIEW		i64 time: the view is published
 *	STANDS		i64 time: so the last view stands, with the state that was told since
 *
 * Times are Unix nanoseconds. What came back from a database at start is not in it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/state/usage.h"
#include "shared/buf.h"
#include "shared/error.h"
#include "shared/frame.h"
#include "shared/interval.h"

enum { RECORD_VERSION = 2, RECORD_HEAD = 5, RECORD_TAIL = 4, RECORD_ENTRY_MOST = 64 << 20 };

#define RECORD_PREFIX "evenkeel-record."
#define RECORD_SUFFIX ".gz"

enum record_type {
	RECORD_BEGIN = 1,
	RECORD_OBJECT,
	RECORD_REMOVED,
	RECORD_SOURCES,
	RECORD_STATE,
	RECORD_BASE_END,
	RECORD_INTERVAL,
	RECORD_BUILT,
	RECORD_GATHERED,
	RECORD_VIEW,
	RECORD_PLAN,
	RECORD_STANDS,
};

/* Begins an entry in the buffer; record_end() with what this returned completes it. */
size_t record_begin(struct buf *out, enum record_type type);
void record_end(struct buf *out, size_t begun);
/* An entry of one number of `len` bytes. */
void record_number(struct buf *out, enum record_type type, uint64_t value, size_t len);

/* An interval as usage_apply() takes it, and its answer. */
struct record_interval {
	enum usage_verdict verdict;
	int64_t now_ns;
	uint8_t run[FRAME_RUN_LEN], nonce[FRAME_NONCE_LEN];
	const char *node; /* borrowed */
	struct interval *interval; /* owned by who made this */
};

/* With its bodies as they came: only sequence and times are taken of i->interval. */
void record_interval(struct buf *out, const struct record_interval *i, const struct buf *parts,
		     size_t count);
/* Into i->interval, which is reused; the rest is of data. -EBADMSG with the reason. */
int record_interval_read(struct record_interval *i, const void *data, size_t len,
			 struct error *error);

/*
 * What makes `to` out of `from` (NULL: nothing), in the order of kinds, then removed ones before
 * others, by node, namespace and name.
 */
void record_changes(struct buf *out, const struct cluster *from, const struct cluster *to);
/* Makes such a change. -EBADMSG with the reason. */
int record_change_apply(struct model *m, enum record_type type, const void *data, size_t len,
			struct error *error);

/* The segments in a directory, oldest first, as paths. */
struct record_segments {
	char **paths; /* owned */
	int64_t *start_ns; /* owned */
	size_t count;
};

/* -errno with the reason. */
int record_segments_find(struct record_segments *s, const char *dir, struct error *error);
void record_segments_fini(struct record_segments *s);
