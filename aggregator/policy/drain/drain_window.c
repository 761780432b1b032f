/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_window.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int drain_window_active(const struct drain_window *w, enum drain_variant variant, int64_t now_sec,
			bool *active, struct error *error)
{
	struct drain_cron cron;

	if (!w->schedule && w->duration_sec < 0) {
		*active = true;
		return 0;
	}
	if (!w->schedule) {
		error_set(error, "a duration needs a schedule");
		return -EINVAL;
	}
	if (drain_cron_parse(w->schedule, &cron, error))
		return -EINVAL;
	if (w->duration_sec < 0 && variant == DRAIN_CORRECTED) {
		error_set(error, "a schedule needs a duration");
		return -EINVAL;
	}
	*active = w->duration_sec > 0 && drain_cron_hit(&cron, now_sec, w->duration_sec);
	return 0;
}

/* Digits, and a "%" or not. */
static int read_nodes(const char *text, int64_t *value, bool *percent)
{
	const char *at = text ? text : "";

	*value = 0;
	for (; isdigit((unsigned char)*at) && *value < INT32_MAX; at++)
		*value = *value * 10 + (*at - '0');
	*percent = *at == '%';
	if (at == text || !text || at[*percent] != '\0' || *value > INT32_MAX)
		return -EINVAL;
	return 0;
}

static int count_nodes(const struct drain_window *w, enum drain_variant variant, int64_t nodes,
		       int32_t *out, struct error *error)
{
	bool percent;
	int64_t value;

	if (read_nodes(w->nodes, &value, &percent) ||
	    (percent && value > 100 && variant == DRAIN_CORRECTED)) {
		error_set(error, "\"%.40s\" must be a number of nodes, or 0%% to 100%%",
			  w->nodes ? w->nodes : "");
		return -EINVAL;
	}
	if (percent && __builtin_mul_overflow(value, nodes, &value))
		value = INT64_MAX - 100;
	if (percent)
		value = (value + 99) / 100;
	*out = value < DRAIN_UNLIMITED ? (int32_t)value : DRAIN_UNLIMITED;
	return 0;
}

int drain_window_allows(const struct drain_window *w, enum drain_variant variant, int64_t nodes,
			int64_t now_sec, int32_t *out, struct error *error)
{
	int32_t allowed = 0;
	bool active;

	*out = 0;
	if (drain_window_active(w, variant, now_sec, &active, error) ||
	    count_nodes(w, variant, nodes, &allowed, error))
		return -EINVAL;
	*out = active ? allowed : DRAIN_UNLIMITED;
	return 0;
}

static bool is_for(const struct drain_window *w, const char *why)
{
	for (size_t i = 0; i < w->reason_count; i++)
		if (strcmp(w->reasons[i], why) == 0)
			return true;
	return w->reason_count == 0;
}

int32_t drain_windows_allow(const struct drain_window *w, size_t count, enum drain_variant variant,
			    const char *why, int64_t nodes, int64_t now_sec, size_t *which)
{
	int32_t least = DRAIN_UNLIMITED;
	size_t first = count;

	for (size_t i = 0; i < count; i++) {
		int32_t allowed;

		if (!is_for(&w[i], why))
			continue;
		drain_window_allows(&w[i], variant, nodes, now_sec, &allowed, NULL);
		if (allowed >= least)
			continue;
		least = allowed;
		first = i;
	}
	if (which)
		*which = first;
	return least;
}
