/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a quantity or is refused with a reason; what is one keeps its sign and rounds away
 * from zero.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_negative(const char *text, int64_t milli, int64_t units)
{
	char *negative = mem_printf("-%s", text);
	int64_t value;

	assert(quantity_parse_milli(negative, &value, NULL) == 0 && value == -milli);
	assert(quantity_parse_units(negative, &value, NULL) == 0 && value == -units);
	free(negative);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct error error = {""};
	int64_t milli, units;
	int err = quantity_parse_milli(text, &milli, &error);

	assert(err == quantity_parse_units(text, &units, NULL));
	assert((err != 0) == (error.text[0] != '\0'));
	if (!err) {
		assert((milli > 0) == (units > 0) && (milli < 0) == (units < 0));
		if (milli > 0 && milli < INT64_MAX)
			assert(units == (milli + 999) / 1000 || milli > INT64_MAX - 999);
		if (text[0] != '-' && text[0] != '+')
			check_negative(text, milli, units);
	}
	free(text);
	return 0;
}
