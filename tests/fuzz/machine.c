/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/machine.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct machine m = {0};
	struct reason reason = {""};

	if (machine_parse_stat(text, 100, &m, &reason) == 0)
		assert(m.cpu_capacity_milli >= 1000);
	else
		assert(m.cpu_capacity_milli == 0 && reason.text[0]);
	reason.text[0] = '\0';
	if (machine_parse_meminfo(text, &m, &reason))
		assert(m.mem_total_bytes == 0 && m.mem_available_bytes == 0 && reason.text[0]);
	free(text);
	return 0;
}
