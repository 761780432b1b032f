/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time that passed between two moments of which an outsider told one: a year 1700 is no surprise.
 */
#ifndef EVENKEEL_SHARED_ELAPSED_H
#define EVENKEEL_SHARED_ELAPSED_H

#include <stdint.h>

/* Negative where `then` is yet to come. What does not fit is as long as can be told. */
static inline int64_t elapsed_ns(int64_t now_ns, int64_t then_ns)
{
	int64_t ns;

	if (__builtin_sub_overflow(now_ns, then_ns, &ns))
		return then_ns < now_ns ? INT64_MAX : INT64_MIN;
	return ns;
}

#endif
