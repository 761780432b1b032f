/* SPDX-License-Identifier: Apache-2.0 */
/* What the annotation evenkeel.io/slack says. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_ASK_H
#define EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_ASK_H

#include <stdbool.h>
#include <stdint.h>

enum slack_asks {
	SLACK_ASKS_NOTHING, /* there is no annotation */
	SLACK_ASKS_COUNT, /* "2" */
	SLACK_ASKS_SHARE, /* "12.5%" of the replicas */
	SLACK_ASKS_SHARED, /* "shared" */
};

struct slack_ask {
	enum slack_asks what;
	int64_t amount; /* COUNT; SHARE: millionths, and what is finer is cut off */
};

enum { SLACK_ASK_COUNT_MAX = 1000000000, SLACK_ASK_SHARE_MAX = 100 * 1000000 };

/* False: it is none of these, or more than the most; *out is as it was. */
bool slack_ask_read(const char *text, struct slack_ask *out);

#endif
