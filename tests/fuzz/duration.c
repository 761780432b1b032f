/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text either is refused with a reason, or reads as a duration that prints and reads back the
 * same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "shared/mem.h"
#include "shared/options_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup(size ? (const char *)data : "", size);
	char printed[DURATION_LEN];
	struct error error = {""};
	int64_t ns = -1, again = -1;

	if (duration_parse(text, &ns, &error)) {
		assert(error.text[0] && ns == -1);
	} else {
		assert(ns >= 0);
		duration_format(ns, printed);
		assert(duration_parse(printed, &again, NULL) == 0 && again == ns);
	}
	free(text);
	return 0;
}
