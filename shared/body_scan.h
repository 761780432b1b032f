/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the entries of a body (shared/body.proto) that is written as our agents write it. Pure. */
#ifndef EVENKEEL_SHARED_BODY_SCAN_H
#define EVENKEEL_SHARED_BODY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"

/* Bytes of somebody else's. */
struct body_bytes {
	const uint8_t *at, *end;
};

struct body_entry {
	uint32_t ref;
	bool has_identity;
	struct body_bytes identity; /* a message Identity */
	struct usage usage; /* zeros where there is none; nothing of it is checked */
};

/*
 * Splits an IntervalPart whose entries come last: *head is a message IntervalPart of all else,
 * *entries are `count` entries for body_scan_entry(). False: it is none, or laid out otherwise.
 */
bool body_scan_part(const void *data, size_t len, struct body_bytes *head,
		    struct body_bytes *entries, size_t *count);

/*
 * Takes the next entry off. False: it is none, or laid out otherwise, and *out is undefined. True:
 * any protobuf library reads the same.
 */
bool body_scan_entry(struct body_bytes *entries, struct body_entry *out);

#endif
