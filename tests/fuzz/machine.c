/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/machine.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size), *memory;
	struct machine m = {0};
	struct error error = {""};

	if (machine_parse_stat(text, 100, &m, &error) == 0)
		assert(m.cpu_capacity_milli >= 1000 &&
		       m.cpu_busy_ns == m.cpu.user_ns + m.cpu.system_ns);
	else
		assert(m.cpu_capacity_milli == 0 && m.cpu.user_ns == 0 && error.text[0]);
	error.text[0] = '\0';
	if (machine_parse_meminfo(text, &m, &error))
		assert(m.mem_total_bytes == 0 && m.mem_available_bytes == 0 && error.text[0]);
	/* Two files in one input: the second begins after an empty line, or is the same. */
	memory = strstr(text, "\n\n");
	if (memory)
		memory[1] = '\0';
	machine_parse_pressure(text, memory ? memory + 2 : text, &m);
	assert(m.psi_known || (!m.psi_cpu_ns && !m.psi_mem_ns && !m.psi_mem_full_ns));
	assert(m.psi_cpu_full_known ? m.psi_known && m.psi_cpu_full_ns : !m.psi_cpu_full_ns);
	free(text);
	return 0;
}
