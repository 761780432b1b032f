/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test and the library in the program that it tries tell each other, in a file that both
 * have mapped.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "tests/seam.h"

/* The file's path, for the library. */
#define SEAM_ENVIRONMENT "EVENKEEL_SEAM"

struct seam_counters {
	_Atomic int64_t calls; /* made, by all threads, since the program began */
	_Atomic int64_t after; /* calls that still succeed .. */
	_Atomic int64_t times; /* .. before so many fail .. */
	_Atomic int32_t error; /* .. with this errno; 0: they take or give one byte */
	_Atomic int64_t met; /* how many failed */
};

struct seam_control {
	struct seam_counters of[SEAM_CALLS];
};
