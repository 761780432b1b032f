/* SPDX-License-Identifier: Apache-2.0 */
/* The known name a mistyped word most likely meant. */
#ifndef EVENKEEL_SHARED_NEAREST_H
#define EVENKEEL_SHARED_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *word; /* borrowed: what was typed */
	/* borrowed: the nearest name offered so far that is near enough, or NULL */
	const char *best;
	size_t distance; /* of best */
};

void nearest_init(struct nearest *n, const char *word);
/* The first of equally near names wins, so the order of offering decides ties. */
void nearest_offer(struct nearest *n, const char *name);

#endif
