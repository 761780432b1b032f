/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/metric_select.h"

#include <string.h>

static bool is_mean(const struct metric_entry *e, const char *type)
{
	return strcmp(e->type, type) == 0 &&
	       (strcmp(e->op, "AVG") == 0 || strcmp(e->op, "Latest") == 0);
}

struct score_metric metric_select_last(const struct metric_entry *entries, size_t count,
				       const char *type)
{
	struct score_metric m = {false, 0, 0};

	for (size_t i = 0; i < count; i++)
		if (is_mean(&entries[i], type))
			m = (struct score_metric){true, entries[i].percent, 0};
	return m;
}

struct score_metric metric_select_first(const struct metric_entry *entries, size_t count,
					const char *type)
{
	for (size_t i = 0; i < count; i++)
		if (is_mean(&entries[i], type))
			return (struct score_metric){true, entries[i].percent, 0};
	return (struct score_metric){false, 0, 0};
}

struct score_metric metric_select_mean_stddev(const struct metric_entry *entries, size_t count,
					      const char *type)
{
	struct score_metric m = {false, 0, 0};
	bool average = false;

	for (size_t i = 0; i < count; i++) {
		const char *how = entries[i].op;

		if (strcmp(entries[i].type, type) != 0)
			continue;
		m.known = true;
		if (strcmp(how, "STD") == 0) {
			m.stddev = entries[i].percent;
		} else if (strcmp(how, "AVG") == 0) {
			m.mean = entries[i].percent;
			average = true;
		} else if ((strcmp(how, "Latest") == 0 || !*how) && !average) {
			m.mean = entries[i].percent;
		}
	}
	return m;
}
