/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of slack between steps, as JSON: in the database of the state directory, and as
 * "slack" in the state of a Snapshot.
 */
#pragma once

#include <stddef.h>

#include "aggregator/policy/slack/slack.h"

/*
 *   {"classes":[{"class":K,"wanted":I[,"lowerSince":T,"lowerTarget":I]
 *                [,"cpuMillicores":I,"memoryBytes":I[,"shapeSince":T]],"nodes":[{"node":N,"count":I},..]},..]
 *    [,"arrivals":{"spanNanoseconds":I,"keepNanoseconds":I,"firstSpan":I,"seen":T,
 *                  "items":[{"span":I,"cpuMillicores":I,"memoryBytes":I,"count":I},..]}]}
 *
 * Classes stand in the order of their names, without any of one name twice, as do the nodes of a
 * class; arrivals in the order of spans, CPU and memory. "lowerSince" is there where the target has
 * been lower than what is wanted, since then, and at most "lowerTarget". "unit" has the amounts of
 * one of it, and "shapeSince" where today's have been others since then.
 */
enum {
	SLACK_MEMORY_CLASSES_MAX = 20000,
	SLACK_MEMORY_PLACEHOLDERS_MAX = 50000, /* of all classes together */
	SLACK_MEMORY_NAME_MAX = 1024,
};

/* Appends it. The state's, until its next step. */
void slack_memory_write(struct slack_state *s, struct buf *out);
/*
 * Into a state that has made no step yet. -EINVAL: the reason says what is wrong and where
 * ("classes[3].wanted: .."), and the state is as it was.
 */
int slack_memory_read(struct slack_state *s, const char *text, size_t len, struct error *error);
