/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the values of an interval can be. */
#ifndef EVENKEEL_AGGREGATOR_STATE_USAGE_CHECK_H
#define EVENKEEL_AGGREGATOR_STATE_USAGE_CHECK_H

#include <stddef.h>

#include "shared/interval.h"

/*
 * 0, or -EINVAL and the reason with the numbers: no capacity, CPU used above capacity by more
 * than 5 % or mean memory above MemTotal, for the node or an entry. CPU is judged over at least one second: a
 * single short tick that was read late may show more. Maxima are not judged.
 */
int usage_check(const struct interval *interval, char *reason, size_t reason_size);

#endif
