/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many units of slack, and of which sizes: the target for a rate of the cluster and for the shapes
 * that must fit (slack_wanted.c). Pure, in whole numbers: 10 % of 40000m is 4000m. A target is a
 * minimum: rounding is up, except for the size of a unit, so the configured number fits on a node.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"

enum { SLACK_PPM = 1000000, SLACK_GRANULARITY_MAX = 1000 };

struct slack_amount {
	int64_t cpu_milli, mem_bytes;
};

/* Both resources of a are at most those of b. */
bool slack_amount_fits(const struct slack_amount *a, const struct slack_amount *b);
/* to += count * more, saturating. */
void slack_amount_add(struct slack_amount *to, const struct slack_amount *more, int64_t count);
/* Of each resource the larger. */
void slack_amount_max(struct slack_amount *to, const struct slack_amount *other);

/*
 * "0.1", ".1", "10%", "12.5 %" as millionths. 0, or -EINVAL: no such number, finer than a
 * millionth, or outside of [0, 1); the error quotes the text.
 */
int slack_rate_parse(const char *text, int64_t *rate_ppm, struct error *error);
/* --- the annotation evenkeel.io/slack */

enum slack_asks {
	SLACK_ASKS_NOTHING, /* there is no annotation */
	SLACK_ASKS_COUNT, /* "2" */
	SLACK_ASKS_SHARE, /* "12.5%" of the replicas */
	SLACK_ASKS_SHARED, /* "shared" */
};

struct slack_ask {
	enum slack_asks what;
	int64_t amount; /* COUNT; SHARE: in millionths, finer digits are cut */
};

enum { SLACK_ASK_COUNT_MAX = 1000000000, SLACK_ASK_SHARE_MAX = 100 * 1000000 };

/* False: the text is none of these, or exceeds the maximum; *out is unchanged. */
bool slack_ask_read(const char *text, struct slack_ask *out);

/* rate * base, each resource rounded up. */
struct slack_amount slack_extra(const struct slack_amount *base, int64_t rate_ppm);

struct slack_target_input {
	/* Room of each node that counts: allocatable without DaemonSets. */
	const struct slack_amount *nodes;
	size_t node_count;
	struct slack_amount extra; /* E: the minimum of extra room */
	struct slack_amount reserved; /* the part of it that workloads hold by themselves */
	uint32_t granularity; /* units an average node is cut into, 1..SLACK_GRANULARITY_MAX */
	const struct slack_amount *shapes; /* shapes that must fit, one at a time */
	size_t shape_count;
	/* The most that any pod of the cluster requests of each; 0, 0: no pod requests any. */
	struct slack_amount largest_pod;
	struct slack_amount held; /* the unit of the step before; 0, 0: there was none */
};

/*
 * Cover + unit_count * unit + reserved >= extra, but for rounding of each unit.
 *
 * cover: every shape that some node can hold is dominated by a member. A member is a shape, or the
 * maximum of neighbours on the Pareto front where some node can hold that too: no phantom that fits
 * nowhere, no need for a larger node than there are. Sorted by CPU. unit: average node /
 * granularity; where no node holds it, scaled down until one does; at most the largest pod in each
 * resource, and the largest shape in each that any shape asks for.
 */
struct slack_target {
	size_t cover_count, dropped_count;
	struct slack_amount *cover; /* owned */
	struct slack_amount *dropped; /* owned; shapes that no node can hold, in the order given */
	struct slack_amount remaining; /* of extra, for units */
	struct slack_amount unit; /* 0, 0 where there is no node */
	int64_t unit_count; /* 0 where there is no unit, whatever remains */
	/*
	 * Units like the held one that remaining comes to; -1: that one cannot be kept, as no node
	 * holds it, or it lacks a resource of today's.
	 */
	int64_t held_count;
};

void slack_target_make(const struct slack_target_input *in, struct slack_target *out);
void slack_target_fini(struct slack_target *t);

/* Pods of that shape that could start in free room; INT64_MAX: it asks for nothing. */
int64_t slack_slots(const struct slack_amount *free, const struct slack_amount *shape);
