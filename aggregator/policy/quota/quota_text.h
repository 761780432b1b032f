/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts in sentences about quotas: exact, as a verdict may hang on the last byte. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_TEXT_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_TEXT_H

#include <stdint.h>

#include "aggregator/policy/textbuf.h"

/*
 * CPU in cores ("4.0", "0.25"); bytes in the largest unit they are whole numbers of ("1536Mi"); all
 * else as it is.
 */
void quota_add_amount(struct textbuf *s, const char *resource, int64_t amount);

enum { QUOTA_TEXT_MAX = 32 };

/* The same alone. */
void quota_amount_text(const char *resource, int64_t amount, char out[QUOTA_TEXT_MAX]);

#endif
