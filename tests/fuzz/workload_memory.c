/* SPDX-License-Identifier: Apache-2.0 */
/* What was remembered of workloads: whatever is read is written, and reads as the same again. */
#include <assert.h>
#include <string.h>

#include "aggregator/state/workload_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct workload_table *read_back(const char *text, size_t len)
{
	struct workload_memory *m = workload_memory_new();
	struct workload_table *t = NULL;
	struct error error;

	if (workload_memory_read(m, text, len, &error) == 0)
		t = workload_memory_table(m, 0);
	workload_memory_free(m);
	return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct workload_table *t = read_back((const char *)data, size), *again;
	struct buf first = BUF_INIT, second = BUF_INIT;

	if (!t)
		return 0;
	workload_table_write(t, &first);
	again = read_back(first.data, first.len);
	assert(again);
	workload_table_write(again, &second);
	assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	workload_table_drop(t);
	workload_table_drop(again);
	buf_fini(&first);
	buf_fini(&second);
	return 0;
}
