/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is read as the annotation of a drain, or refused with a reason; what is read is written alike. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/mark.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct error error = {""};
	struct buf written = BUF_INIT;
	struct mark m, again;

	if (mark_read(text, &m, &error)) {
		assert(m.phase == MARK_GARBLED && *error.text);
	} else {
		mark_write(&m, &written);
		if (!mark_read(written.data, &again, NULL))
			assert(again.phase == m.phase && strcmp(again.plan, m.plan) == 0 &&
			       strcmp(again.holder, m.holder) == 0 && again.cordoned == m.cordoned);
	}
	buf_fini(&written);
	free(text);
	return 0;
}
