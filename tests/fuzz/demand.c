/* SPDX-License-Identifier: Apache-2.0 */
/* Demand of the wire, and of a database or snapshot: what is read is written, and reads as the same again. */
#include <assert.h>
#include <string.h>

#include "aggregator/state/workload_demand.h"
#include "shared/demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(const uint8_t *data, size_t size)
{
	struct histogram h = {0}, again = {0};
	struct buf out = BUF_INIT;

	if (!demand_is_valid(data, size))
		return;
	demand_decode(data, size, &h);
	demand_encode(&h, &out);
	assert(demand_is_valid(out.data, out.len) && out.len <= size);
	demand_decode(out.data, out.len, &again);
	assert(memcmp(&h, &again, sizeof(h)) == 0);
	buf_fini(&out);
}

/* False: it cannot be read. */
static bool read_back(const char *text, size_t len, struct buf *out)
{
	struct demand *d = demand_new();
	struct demand_table *t;
	struct error error;
	struct jsonw w;
	bool good = demand_read_text(d, text, len, &error) == 0;

	if (good) {
		t = demand_table(d, 0);
		jsonw_init(&w, out);
		demand_write(t, -1, &w);
		demand_table_drop(t);
	}
	demand_free(d);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first = BUF_INIT, second = BUF_INIT;

	check_bytes(data, size);
	if (read_back((const char *)data, size, &first)) {
		assert(read_back(first.data, first.len, &second));
		assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	}
	buf_fini(&first);
	buf_fini(&second);
	return 0;
}
