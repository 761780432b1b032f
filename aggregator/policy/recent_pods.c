/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/recent_pods.h"

/* b - a, for times that may be as far apart as they like. */
static int64_t seconds_between(int64_t a, int64_t b)
{
	int64_t d;

	if (__builtin_sub_overflow(b, a, &d))
		return a < b ? INT64_MAX : INT64_MIN;
	return d;
}

bool recent_pod_counts(int64_t placed_s, int64_t window_end_s)
{
	return seconds_between(placed_s, window_end_s) < RECENT_POD_SECONDS;
}

size_t recent_pods_expired(const int64_t *placed_s, size_t count, int64_t now_s, bool upstream)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (seconds_between(placed_s[middle], now_s) < RECENT_POD_SECONDS)
			high = middle;
		else
			low = middle + 1;
	}
	return upstream && low == count ? 0 : low;
}
