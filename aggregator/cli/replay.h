/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a record (aggregator/state/record.h): the views that an aggregator had, one after the other. */
#pragma once

#include <stdint.h>

#include "aggregator/cli/offline.h"
#include "shared/error.h"

struct replay;

/* -EINVAL with the reason: it cannot be read, or there is no record. */
int replay_open(struct replay **r, const char *dir, struct error *error);
void replay_close(struct replay *r); /* NULL is allowed */
/*
 * Goes on to the view that was the newest at that Unix time, which must not be before the last call's.
 * The rest of a damaged segment is a gap. -ERANGE with the reason: nothing is recorded of it; -EINVAL,
 * -EPROTO: a segment cannot be opened, or is of another version.
 */
int replay_go(struct replay *r, int64_t at_ns, struct error *error);
/* That of replay_go(), for offline_moment_fini(). */
void replay_take(const struct replay *r, int64_t at_ns, struct offline_moment *m);

/* What is in a record. */
struct replay_extent {
	int64_t from_ns, to_ns; /* of views; Unix time */
	uint64_t segments, bytes, views, intervals;
	uint64_t gaps; /* segments that stand for themselves, but for the first */
	uint64_t damaged; /* segments, read up to the damage */
	struct error damage; /* of the last of them, "" else */
};

/* Reads all of it; as replay_open(). */
int replay_measure(const char *dir, struct replay_extent *x, struct error *error);
