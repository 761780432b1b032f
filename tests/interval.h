/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals as an agent on a busy machine would publish them, for tests and benches. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/body.h"
#include "shared/interval.h"

/*
 * Five seconds ending 5 s * sequence after some start, with `pods` pods of `containers` containers
 * each; values differ by entry and sequence and are the same in every call. The first sequence is
 * fresh throughout. Free it with interval_free().
 */
struct interval *interval_make(uint64_t sequence, size_t pods, size_t containers);
/* body_decode_interval_into() a new interval, which the caller frees. */
int interval_decode(const struct buf *parts, size_t count, struct interval **interval,
		    struct error *error);
