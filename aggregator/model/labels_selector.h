/* SPDX-License-Identifier: Apache-2.0 */
/* Building a selector, for labels_selector.c and labels_parse.c. */
#pragma once

#include <stddef.h>

#include "aggregator/model/labels.h"

enum selector_operator { SELECTOR_IN, SELECTOR_NOT_IN, SELECTOR_EXISTS, SELECTOR_DOES_NOT_EXIST };

struct selector *selector_new(void); /* matches everything */
/* One more thing that must hold, without values yet; key is copied. */
void selector_add(struct selector *s, enum selector_operator op, const char *key, size_t key_len);
/* A value of the last one; copied. */
void selector_add_value(struct selector *s, const char *value, size_t value_len);
