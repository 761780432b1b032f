/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of time: differences, and as people write them. Pure. */
#pragma once

#include <stdint.h>

#include "shared/error.h"

enum { DURATION_LEN = 48 };

/* "300ms", "5s", "1m30s", "2h" -> ns; -EINVAL with a reason. */
int duration_parse(const char *text, int64_t *ns, struct error *error);
/* "1m30s": the text duration_parse() reads back. */
void duration_format(int64_t ns, char out[DURATION_LEN]);

/* Time since then_ns, which may be any number; negative: it is in the future. Saturates. */
static inline int64_t elapsed_ns(int64_t now_ns, int64_t then_ns)
{
	int64_t ns;

	if (__builtin_sub_overflow(now_ns, then_ns, &ns))
		return then_ns < now_ns ? INT64_MAX : INT64_MIN;
	return ns;
}
