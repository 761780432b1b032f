/* SPDX-License-Identifier: Apache-2.0 */
/* Between struct interval and the protobuf bodies of shared/body.proto. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/interval.h"
#include "shared/error.h"

enum {
	BODY_ENTRIES_MAX = 16384, /* per interval, over all its parts */
	BODY_PARTS_MAX = 16,
};

/*
 * Encodes an interval as 1..16 bodies of at most FRAME_PART_BODY_MAX bytes, parts[0..n). full: with
 * every identity, else only those of fresh entries. Returns n, or -E2BIG if 16 parts do not suffice
 * (parts untouched). The caller owns the buffers.
 */
int body_encode_interval(const struct interval *interval, int full,
			 struct buf parts[BODY_PARTS_MAX], struct error *reason);

/*
 * Decodes the bodies of all parts, in order, into *into, replacing its content; its sequence is 0,
 * and after an error it has no entries. -EBADMSG: no such body. -EINVAL: a value that cannot be:
 * refs of 0, out of order or twice, unknown enum values, bad lengths, no node section; negative or
 * not finite capacities, rates, costs or times; end <= start, or longer than an hour per merged
 * interval. -E2BIG: over a limit. The reason names the field. Measured values (struct usage,
 * cpu_split, mem_available_bytes) are not checked.
 */
int body_decode_interval_into(const struct buf *parts, size_t count, struct interval *into,
			      struct error *reason);

enum ack_status { ACK_APPLIED, ACK_PART_STORED, ACK_TOO_OLD, ACK_NEED_FULL, ACK_REFUSED };

struct ack {
	enum ack_status status;
	uint64_t applied;
	uint64_t durable;
	int64_t server_time_ns;
	uint32_t interval_ms;
	uint32_t wait_ms;
	uint64_t resend_from;
	char reason[256];
};

void body_encode_ack(const struct ack *ack, struct buf *out);
/* -EBADMSG: no ack; numbers beyond their range are clamped as body.proto says. */
int body_decode_ack(const void *data, size_t len, struct ack *ack, struct error *reason);
