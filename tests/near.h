/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equality of computed numbers in cmocka tests: within a millionth of what is wanted, or of 1 where
 * that is less.
 */
#pragma once

#include <math.h>

#define assert_near(got, want)                                                                     \
	assert_true(fabs((double)(got) - (double)(want)) <= 1e-6 * fmax(1, fabs((double)(want))))
