/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another aggregator tells of its plans, frame after frame, each behind a byte with its length:
 * refused with a reason and counted, or within the bounds. A memory that is complete is what the
 * planner gets, whatever its JSON is.
 */
#include <assert.h>
#include <stdint.h>

#include "aggregator/planner/plan_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(struct plan_peer *p, struct exchange_counters *c, struct plan_hearing *h,
		 const uint8_t *data, size_t size, int64_t now_ns)
{
	const struct buf body = {(char *)data, size, 0};
	uint64_t before = counter_get(&c->refused);
	struct error why = {""};
	int rc = plan_peer_hear(p, h, &body, now_ns, &why);

	assert(!rc == !why.text[0]);
	assert(counter_get(&c->refused) == before + (rc != 0));
	assert(h->memory.len <= h->size || !h->memory.len);
	assert(h->size <= PLAN_PEER_MEMORY_MAX);
}

static void lead(struct plan_peer *p, struct exchange_counters *c)
{
	struct slack_options slack;
	struct plan_core *core;
	struct error why = {""};
	uint64_t before = counter_get(&c->refused);
	int rc;

	slack_options_default(&slack);
	core = plan_core_new(&slack, NULL);
	rc = plan_peer_lead(p, core, 1, &why);
	assert(!rc == !why.text[0]);
	assert(counter_get(&c->refused) == before + (rc != 0));
	assert(!plan_peer_lead(p, core, 1, &why));
	plan_core_free(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_slot *plans = plan_slot_new();
	struct exchange_counters counters = {0};
	struct plan_peer *p = plan_peer_new(plans, &counters, INT64_MAX, 0);
	struct plan_hearing h = {.size = 0};

	for (int64_t now_ns = 1; size; now_ns++) {
		size_t len = data[0] < size - 1 ? data[0] : size - 1;

		hear(p, &counters, &h, data + 1, len, now_ns);
		assert(plan_peer_look(p, NULL, now_ns).for_ns >= 0);
		data += 1 + len;
		size -= 1 + len;
	}
	lead(p, &counters);
	buf_fini(&h.memory);
	plan_peer_free(p);
	plan_slot_free(plans);
	return 0;
}
