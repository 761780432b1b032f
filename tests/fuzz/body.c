/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies into body_decode_interval(). The first byte is how many of the parts follow it, each
 * behind a length of two bytes, the last one taking the rest. What is accepted must keep the
 * promises of body.h, and survive the way out and in.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/body.h"

#define COUNTER_MAX (1ULL << 53)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_usage(const struct usage *u)
{
	assert(isfinite(u->seconds) && u->seconds >= 0);
}

static void check_node(const struct node_sample *n)
{
	assert(n->cpu_capacity_milli >= 0 && n->mem_capacity_bytes >= 0);
	assert(n->pass_ns <= COUNTER_MAX && n->agent_cpu_ns <= COUNTER_MAX);
	check_usage(&n->usage);
}

static void check_limits(const struct kernel_limits *l)
{
	assert(l->cpu_milli >= LIMIT_UNKNOWN && l->mem_bytes >= LIMIT_UNKNOWN);
	assert(l->mem_high_bytes >= LIMIT_UNKNOWN && l->swap_bytes >= LIMIT_UNKNOWN);
	assert(l->pids >= LIMIT_UNKNOWN);
	assert(l->cpu_burst_ns >= 0 || l->cpu_burst_ns == LIMIT_UNKNOWN);
}

static void check(const struct interval *i)
{
	uint32_t after = 0;

	assert(i->start_ns >= 0 && i->end_ns > i->start_ns && i->merged >= 1);
	assert(i->entry_count <= BODY_ENTRIES_MAX);
	check_node(&i->node);
	for (size_t n = 0; n < i->entry_count; n++) {
		const struct entry *e = &i->entries[n];

		assert(e->ref > after);
		after = e->ref;
		check_usage(&e->usage);
		check_limits(&e->limits);
		assert(e->fresh == (e->entity != NULL));
		assert(e->entity || !i->full);
		if (e->entity)
			assert(e->entity->name[0] != '\0');
	}
}

static void send_again(const struct interval *i)
{
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT};
	struct interval *back;
	int count = body_encode_interval(i, i->full, parts, NULL);

	/* Frames of more than an agent would send are accepted; sending them on need not fit. */
	assert(count > 0 || count == -E2BIG);
	if (count < 0)
		return;
	assert(!body_decode_interval(parts, (size_t)count, &back, NULL));
	assert(back->entry_count == i->entry_count);
	check(back);
	interval_free(back);
	for (int n = 0; n < count; n++)
		buf_fini(&parts[n]);
}

/* The next part of the input; `last` takes all. */
static struct buf take(const uint8_t **data, size_t *size, int last)
{
	size_t len = *size;
	struct buf part = BUF_INIT;

	if (!last && *size >= 2) {
		len = (*data)[0] | (size_t)(*data)[1] << 8;
		*data += 2;
		*size -= 2;
		if (len > *size)
			len = *size;
	}
	buf_add(&part, *data, len);
	*data += len;
	*size -= len;
	return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT};
	struct interval *i = NULL;
	struct reason why = {""};
	size_t count;

	if (!size)
		return 0;
	count = 1 + data[0] % BODY_PARTS_MAX;
	data++, size--;
	for (size_t n = 0; n < count; n++)
		parts[n] = take(&data, &size, n + 1 == count);
	if (body_decode_interval(parts, count, &i, &why)) {
		assert(why.text[0] != '\0' && !i);
	} else {
		check(i);
		send_again(i);
	}
	interval_free(i);
	for (size_t n = 0; n < count; n++)
		buf_fini(&parts[n]);
	return 0;
}
