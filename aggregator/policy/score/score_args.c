/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the plugins. Upstream replaces a few invalid values silently and accepts the rest;
 * the corrected variant refuses an invalid argument by its name. Weights of resources are checked
 * where the list is read.
 */
#include <errno.h>

#include "aggregator/policy/score/score.h"

const struct score_number score_numbers[SCORE_NUMBERS] = {
#define X(id, name, member, type, usual, upstream, zero, most, replaced)                           \
	{PLUGIN_##id,  name,  offsetof(struct score_args, member),                                 \
	 SCORE_##type, usual, upstream,                                                            \
	 zero,	       most,  REPLACED_##replaced},
	SCORE_NUMBER_ROWS(X)
#undef X
};

double score_number_get(const struct score_number *n, const struct score_args *args)
{
	const void *member = (const char *)args + n->offset;

	return n->type == SCORE_WHOLE ? (double)*(const int64_t *)member : *(const double *)member;
}

void score_number_set(const struct score_number *n, struct score_args *args, double value)
{
	void *member = (char *)args + n->offset;

	if (n->type == SCORE_WHOLE)
		*(int64_t *)member = (int64_t)value;
	else
		*(double *)member = value;
}

void score_args_default(struct score_args *args, enum score_variant variant)
{
	*args = (struct score_args){
		.guess_cpu_milli = 500,
		.allocatable_weights = {1 << 20, 1},
		.limit_weights = {1, 1},
		.oom_cost = 0.1,
	};
	for (const struct score_number *n = score_numbers; n < score_numbers + SCORE_NUMBERS; n++)
		score_number_set(n, args, variant == SCORE_UPSTREAM ? n->upstream : n->usual);
}

void score_args_unlimited_allocatable(struct score_args *args)
{
	args->unlimited[SCORE_CPU] = args->unlimited[SCORE_MEMORY] = args->unlimited_storage = -1;
}

static bool is_replaced(const struct score_number *n, double value)
{
	switch (n->replaced) {
	case REPLACED_NEGATIVE:
		return value < 0;
	case REPLACED_TO_ZERO:
		return value <= 0;
	case REPLACED_OUTSIDE:
		return !(value >= 0 && value <= n->most);
	default:
		return false;
	}
}

int score_args_check(struct score_args *args, enum score_plugin_id plugin,
		     enum score_variant variant, const char **field, struct error *error)
{
	for (const struct score_number *n = score_numbers; n < score_numbers + SCORE_NUMBERS; n++) {
		double value = score_number_get(n, args);

		if (n->plugin != plugin)
			continue;
		if (variant == SCORE_UPSTREAM) {
			if (is_replaced(n, value))
				score_number_set(n, args, n->upstream);
			continue;
		}
		if ((value > 0 && value <= n->most) || (value == 0 && n->zero))
			continue;
		*field = n->name;
		return error_fail(error, -EINVAL, "%g is not allowed: %s 0 and at most %g", value,
				  n->zero ? "at least" : "above", n->most);
	}
	return 0;
}
