/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a daemon may open what it cannot do without, before libraries try. */
#ifndef EVENKEEL_SHARED_DESCRIPTORS_H
#define EVENKEEL_SHARED_DESCRIPTORS_H

#include "shared/reason.h"

/*
 * 0: so many more may be open at once now. Else a negative errno, and the reason says what to do.
 */
int descriptors_expect(int count, struct reason *reason);

#endif
