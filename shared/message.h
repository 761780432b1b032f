/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol Buffers to and from C structs, driven by tables: one row per field, one table per
 * message. Decoding accepts whatever the encoding allows: any order, unknown fields, repetition
 * (the last value counts, messages are merged). It allocates nothing; texts and bytes stay where
 * they are. Encoding writes fields by rising numbers and leaves out zeros.
 */
#ifndef EVENKEEL_SHARED_MESSAGE_H
#define EVENKEEL_SHARED_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/reason.h"

/* Borrowed bytes. */
struct span {
	const uint8_t *data;
	size_t len;
};

/* The field's type in the .proto, and the member's in C. */
enum message_kind {
	MESSAGE_NONE, /* no such field */
	MESSAGE_U32, /* uint32_t, or an enum without negative values */
	MESSAGE_COUNT32, /* uint32 in a uint64_t; greater values are encoded as UINT32_MAX */
	MESSAGE_U64, /* also int64 in an int64_t */
	MESSAGE_S64, /* sint64 */
	MESSAGE_BOOL,
	MESSAGE_FLOAT,
	MESSAGE_SPAN, /* string or bytes in a struct span */
	MESSAGE_NUMBERS, /* repeated uint32 in a struct message_numbers */
	MESSAGE_INSIDE, /* a message whose struct is the member */
	MESSAGE_CALL, /* a message that `take` reads; encoding it is up to the caller */
};

enum { MESSAGE_NUMBERS_MAX = 180 };

struct message_numbers {
	uint32_t count;
	uint32_t value[MESSAGE_NUMBERS_MAX];
};

struct message;

struct message_field {
	const char *name; /* for reasons */
	enum message_kind kind;
	uint16_t offset; /* of the member */
	bool bounded; /* the value must be in least..most; of a float: finite, too */
	int64_t least, most;
	const struct message *inside; /* MESSAGE_INSIDE */
	/* MESSAGE_INSIDE: encoded if the struct's first member, a uint32_t, has this bit; 0: always */
	uint32_t bit;
	/* into: the struct of the field's message */
	int (*take)(void *into, struct span bytes, struct reason *reason);
};

/* fields[i] has the number i + 1. */
struct message {
	const struct message_field *fields;
	size_t count;
};

#define MESSAGE(rows)                                                                              \
	{                                                                                          \
		(rows), sizeof(rows) / sizeof((rows)[0])                                           \
	}

/*
 * Adds fields to *into, which is zeroed for a message by itself. -EBADMSG: not such a message;
 * -EINVAL: a value is out of its bounds; or what `take` returns. The reason names the field.
 */
int message_decode(const struct message *m, struct span bytes, void *into, struct reason *reason);
/* Appends all fields but those of MESSAGE_CALL. */
void message_encode(const struct message *m, const void *from, struct buf *out);

/*
 * Around the content of a field of type message: open returns what close takes. A content of
 * another length than 1..127 bytes is moved once.
 */
size_t message_open(struct buf *out, unsigned int number);
void message_close(struct buf *out, size_t mark);

#endif
