/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of time as people write them. Pure. */
#ifndef EVENKEEL_SHARED_DURATION_H
#define EVENKEEL_SHARED_DURATION_H

#include <stdint.h>

#include "shared/reason.h"

/* "300ms", "5s", "1m30s", "2h" -> ns; -EINVAL with a reason. */
int duration_parse(const char *text, int64_t *ns, struct reason *reason);

#endif
