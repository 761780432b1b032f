/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal digits by hand: no sign, space or exponent is taken for one, and nothing is rounded. */
#include "aggregator/policy/slack/slack_ask.h"

#include <string.h>

enum { WHOLE_PPM = 1000000 };

/* Digits, at most one point, and "%". */
static bool read_share(const char *text, int64_t *ppm)
{
	int64_t value = 0, unit = WHOLE_PPM / 100;
	bool point = false, digit = false;

	for (; *text == '.' || (*text >= '0' && *text <= '9'); text++) {
		if (*text == '.') {
			if (point)
				return false;
			point = true;
			continue;
		}
		digit = true;
		if (point)
			unit /= 10;
		value = point ? value + (*text - '0') * unit : value * 10 + (*text - '0') * unit;
		if (value > SLACK_ASK_SHARE_MAX)
			return false;
	}
	*ppm = value;
	return digit && strcmp(text, "%") == 0;
}

static bool read_count(const char *text, int64_t *count)
{
	int64_t value = 0;

	if (!*text)
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if ((value = value * 10 + (*text - '0')) > SLACK_ASK_COUNT_MAX)
			return false;
	*count = value;
	return !*text;
}

bool slack_ask_read(const char *text, struct slack_ask *out)
{
	struct slack_ask ask = {SLACK_ASKS_COUNT, 0};

	if (strcmp(text, "shared") == 0)
		ask.what = SLACK_ASKS_SHARED;
	else if (read_share(text, &ask.amount))
		ask.what = SLACK_ASKS_SHARE;
	else if (!read_count(text, &ask.amount))
		return false;
	*out = ask;
	return true;
}
