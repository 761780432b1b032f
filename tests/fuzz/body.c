/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies into interval_decode(). The first byte is how many of the parts follow it, each
 * behind a length of two bytes, the last one taking the rest. What is accepted must keep the
 * promises of body.h, survive the way out and in, and be the same when the library read and wrote
 * it in between, unless a message is in pieces.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/body.h"
#include "shared/body.pb-c.h"
#include "tests/interval.h"

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
		assert(e->cause.share >= 0 && e->cause.share <= 1);
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
	assert(!interval_decode(parts, (size_t)count, &back, NULL));
	assert(back->entry_count == i->entry_count);
	check(back);
	interval_free(back);
	for (int n = 0; n < count; n++)
		buf_fini(&parts[n]);
}

/* Bit for bit, as nothing is known of the values. */
static void check_same_usage(const struct usage *a, const struct usage *b)
{
	size_t len = offsetof(struct usage, pids) + sizeof(a->pids);

	assert(!memcmp(a, b, len));
}

static void check_same_node(const struct node_sample *a, const struct node_sample *b)
{
	check_same_usage(&a->usage, &b->usage);
	assert(!memcmp(&a->cpu_hist, &b->cpu_hist, sizeof(a->cpu_hist)));
	assert(!memcmp(&a->mem_hist, &b->mem_hist, sizeof(a->mem_hist)));
	assert(!memcmp(&a->cpu_split, &b->cpu_split, sizeof(a->cpu_split)));
	assert(a->cpu_capacity_milli == b->cpu_capacity_milli);
	assert(a->mem_capacity_bytes == b->mem_capacity_bytes);
	assert(a->mem_available_bytes == b->mem_available_bytes);
	assert(a->tier == b->tier && a->pass_ns == b->pass_ns);
	assert(!strcmp(a->boot_id, b->boot_id));
}

static void check_same_entry(const struct entry *a, const struct entry *b)
{
	assert(a->ref == b->ref && a->fresh == b->fresh);
	assert(!memcmp(&a->limits, &b->limits, sizeof(a->limits)));
	assert(a->cause.ref == b->cause.ref && a->cause.share == b->cause.share);
	check_same_usage(&a->usage, &b->usage);
	assert(!a->entity == !b->entity);
	if (!a->entity)
		return;
	assert(!strcmp(a->entity->name, b->entity->name));
	assert(!strcmp(a->entity->pod_uid, b->entity->pod_uid));
	assert(!strcmp(a->entity->container_id, b->entity->container_id));
	assert(a->entity->kind == b->entity->kind && a->entity->parent == b->entity->parent);
}

static uint64_t take_varint(const uint8_t **at)
{
	uint64_t value = **at & 0x7f;

	for (int shift = 7; *(*at)++ & 0x80; shift += 7)
		value |= (uint64_t)(**at & 0x7f) << shift;
	return value;
}

/*
 * Whether accepted bytes have a message in several pieces, which interval_decode() merges.
 * protobuf-c 1.4 loses the numbers of all pieces but the last.
 */
static bool is_in_pieces(const ProtobufCMessageDescriptor *message, const uint8_t *at, size_t size)
{
	const uint8_t *end = at + size;
	uint32_t seen = 0; /* bit n: field n */

	while (at < end) {
		uint64_t tag = take_varint(&at), len;
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field(message, (unsigned int)(tag >> 3));

		if ((tag & 7) == 0)
			take_varint(&at);
		if ((tag & 7) == 1 || (tag & 7) == 5)
			at += (tag & 7) == 1 ? 8 : 4;
		if ((tag & 7) != 2)
			continue;
		len = take_varint(&at);
		if (f && f->type == PROTOBUF_C_TYPE_MESSAGE) {
			if ((f->label != PROTOBUF_C_LABEL_REPEATED && seen & 1U << f->id) ||
			    is_in_pieces(f->descriptor, at, len))
				return true;
			seen |= 1U << f->id;
		}
		at += len;
	}
	return false;
}

static void repack(struct buf *part)
{
	Evenkeel__IntervalPart *m =
		evenkeel__interval_part__unpack(NULL, part->len, (const uint8_t *)part->data);

	assert(m);
	buf_clear(part);
	buf_reserve(part, evenkeel__interval_part__get_packed_size(m));
	part->len = evenkeel__interval_part__pack(m, (uint8_t *)part->data);
	evenkeel__interval_part__free_unpacked(m, NULL);
}

static void parse_again(const struct interval *i, struct buf *parts, size_t count)
{
	struct interval *parsed;

	for (size_t n = 0; n < count; n++)
		if (is_in_pieces(&evenkeel__interval_part__descriptor,
				 (const uint8_t *)parts[n].data, parts[n].len))
			return;
	for (size_t n = 0; n < count; n++)
		repack(&parts[n]);
	assert(!interval_decode(parts, count, &parsed, NULL));
	assert(parsed->start_ns == i->start_ns && parsed->end_ns == i->end_ns);
	assert(parsed->merged == i->merged && parsed->full == i->full);
	check_same_node(&parsed->node, &i->node);
	assert(parsed->entry_count == i->entry_count);
	for (size_t n = 0; n < i->entry_count; n++)
		check_same_entry(&parsed->entries[n], &i->entries[n]);
	interval_free(parsed);
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
	struct error error = {""};
	size_t count;

	if (!size)
		return 0;
	count = 1 + data[0] % BODY_PARTS_MAX;
	data++, size--;
	for (size_t n = 0; n < count; n++)
		parts[n] = take(&data, &size, n + 1 == count);
	if (interval_decode(parts, count, &i, &error)) {
		assert(error.text[0] != '\0' && !i);
	} else {
		check(i);
		send_again(i);
		parse_again(i, parts, count);
	}
	interval_free(i);
	for (size_t n = 0; n < count; n++)
		buf_fini(&parts[n]);
	return 0;
}
