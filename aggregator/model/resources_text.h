/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of resources as an object would write them: exact, and read back alike (shared/quantity.h). */
#ifndef EVENKEEL_AGGREGATOR_MODEL_RESOURCES_TEXT_H
#define EVENKEEL_AGGREGATOR_MODEL_RESOURCES_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { RESOURCES_TEXT_MAX = 32 };

/* The amounts of that resource are bytes: memory, ephemeral storage, huge pages. */
bool resources_are_bytes(const char *name);
/* "1500m" and "2" of CPU, "20Gi" and "1000" of bytes, "3" of what is counted; name is as in an object. */
void resources_amount_text(const char *name, int64_t amount, char out[RESOURCES_TEXT_MAX]);

#endif
