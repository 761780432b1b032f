/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/cgroup_text.h"
#include "shared/interval.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	int64_t limit = 0, period = 1;
	uint64_t value;

	if (cgroup_text_limit(text, &limit))
		assert(limit >= LIMIT_NONE);
	if (cgroup_text_cpu_max(text, &limit, &period))
		assert(limit >= LIMIT_NONE && period > 0);
	cgroup_text_number(text, &value);
	cgroup_text_key(text, "oom_kill", &value);
	cgroup_text_key(text, "", &value);
	cgroup_text_pressure(text, "some", &value);
	cgroup_text_pressure(text, "full", &value);
	free(text);
	return 0;
}
