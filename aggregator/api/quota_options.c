/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/quota_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/mem.h"
#include "shared/quantity.h"

/* One "cpu=2"; text is cut where its name ends. */
static int read_amount(char *text, struct resources *out, struct reason *reason)
{
	char *equals = strchr(text, '=');
	int64_t amount, other;
	int err;

	if (!equals || equals == text) {
		reason_set(reason, "\"%.100s\" is not of the form RESOURCE=QUANTITY", text);
		return -EINVAL;
	}
	*equals = '\0';
	err = strcmp(text, "cpu") == 0 ? quantity_parse_milli(equals + 1, &amount, reason)
				       : quantity_parse_units(equals + 1, &amount, reason);
	if (err) {
		reason_prefix(reason, "%.100s", text);
		return err;
	}
	if (amount < 0) {
		reason_set(reason, "%.100s must not be negative", text);
		return -EINVAL;
	}
	if (resources_find(out, text, &other)) {
		reason_set(reason, "%.100s is given twice", text);
		return -EINVAL;
	}
	resources_set_named(out, text, amount);
	return 0;
}

static int read_list(const char *option, const char *list, struct resources *out,
		     struct reason *reason)
{
	char *text = mem_strdup(list ? list : ""), *next = text, *part;
	size_t count = 0;
	int rc = 0;

	*out = RESOURCES_NONE;
	while (list && !rc && (part = strsep(&next, ","))) {
		if (++count > OBJECT_RESOURCES_MAX) {
			reason_set(reason, "names more than %d resources", OBJECT_RESOURCES_MAX);
			rc = -EINVAL;
		} else {
			rc = read_amount(part, out, reason);
		}
	}
	if (rc) {
		reason_prefix(reason, "%s", option);
		resources_fini(out);
		*out = RESOURCES_NONE;
	}
	free(text);
	return rc;
}

int quota_options_set_default(struct quota_options *o, const char *min, const char *max,
			      bool cover_all, struct reason *reason)
{
	struct resources low, high;

	if (read_list("--quota-default-min", min, &low, reason))
		return -EINVAL;
	if (read_list("--quota-default-max", max, &high, reason)) {
		resources_fini(&low);
		return -EINVAL;
	}
	quota_options_fini(o);
	o->has_default = min || max || cover_all;
	o->default_min = low;
	o->default_max = high;
	return 0;
}

void quota_options_fini(struct quota_options *o)
{
	resources_fini(&o->default_min);
	resources_fini(&o->default_max);
	o->has_default = false;
	o->default_min = o->default_max = RESOURCES_NONE;
}
