/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is read as the annotation of a drain, or as an unreadable one; what is read is written alike. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/mark.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct buf written = BUF_INIT;
	struct mark m, again;

	mark_read(text, &m);
	if (m.phase != MARK_GARBLED) {
		mark_write(&m, &written);
		mark_read(written.data, &again);
		if (again.phase != MARK_GARBLED)
			assert(again.phase == m.phase && strcmp(again.plan, m.plan) == 0 &&
			       strcmp(again.holder, m.holder) == 0 && again.cordoned == m.cordoned);
	}
	buf_fini(&written);
	free(text);
	return 0;
}
