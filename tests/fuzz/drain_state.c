/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is read as a state of the drain planner, which is then written and read again to the
 * same text, or refused with a reason.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/policy/drain/drain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_NS	1769860800000000000LL
#define HOUR_NS 3600000000000LL

static void check_round(const struct drain_state *s)
{
	struct drain_state *again = drain_state_new();
	struct buf first = BUF_INIT, second = BUF_INIT;
	struct error error = {""};

	drain_state_write(s, NOW_NS, &first);
	assert(drain_state_read(again, first.data, first.len, HOUR_NS, NOW_NS, &error) == 0);
	drain_state_write(again, NOW_NS, &second);
	assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	buf_fini(&first);
	buf_fini(&second);
	drain_state_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct drain_state *s = drain_state_new();
	struct error error = {""};
	int err = drain_state_read(s, (const char *)data, size, HOUR_NS, NOW_NS, &error);

	assert(err == 0 || err == -EINVAL);
	if (err)
		assert(*error.text);
	else
		check_round(s);
	drain_state_free(s);
	return 0;
}
