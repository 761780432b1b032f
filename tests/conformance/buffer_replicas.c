/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formula is the autoscaler's; its arithmetic is not: there percentage * N is a product of 32
 * bits that overflows silently, here one of 64 bits whose result is cut to what replicas can be.
 */
#include "tests/conformance/buffer_replicas.h"

#include <errno.h>

static int32_t narrow(int64_t count)
{
	if (count < 0)
		return 0;
	return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static int64_t of_percentage(const struct buffer_spec *b)
{
	int64_t product = (int64_t)b->percentage * b->scalable_replicas;

	return product > 0 ? (product + 99) / 100 : 0;
}

/* False: no limit names a resource that the pod requests. */
static bool bound_by_limits(const struct buffer_spec *b, int64_t *bound)
{
	bool found = false;
	size_t at = 0;
	const char *name;
	int64_t limit;

	while (resources_next(&b->limits, &at, &name, &limit)) {
		int64_t request = 0, count;

		if (!resources_find(&b->requests, name, &request) || request <= 0)
			continue;
		count = limit / request;
		if (!found || count < *bound)
			*bound = count;
		found = true;
	}
	return found;
}

int buffer_replicas(const struct buffer_spec *b, int32_t *out, struct error *error)
{
	bool known = b->has_replicas || (b->has_percentage && b->has_scalable);
	int64_t count = b->has_replicas ? b->replicas : 0, bound = INT64_MAX;

	if (!known && !b->has_limits) {
		error_set(error, "replicas, percentage and limits are not defined");
		return -EINVAL;
	}
	if (b->has_percentage && b->has_scalable && of_percentage(b) > count)
		count = of_percentage(b);
	if (b->has_limits && !bound_by_limits(b, &bound)) {
		error_set(error, "resources in configured limits not found in the pod template");
		return -EINVAL;
	}
	*out = narrow(!known || count > bound ? bound : count);
	return 0;
}
