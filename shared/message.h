/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol Buffers to and from C structs by tables: a row per field, a table per message. Decoding
 * accepts all valid encodings: any order, unknown fields, repetition (the last value counts,
 * messages merge). It allocates nothing; strings and bytes are borrowed. Encoding writes fields by
 * rising numbers, without zeros.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/error.h"

/* Borrowed bytes. */
struct span {
	const uint8_t *data;
	size_t len;
};

static inline struct span span_of_text(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

/* Types in the .proto and in C. */
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
	MESSAGE_INSIDE, /* a message in a struct member */
	MESSAGE_CALL, /* a message read by `take`; the caller encodes it */
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
	bool bounded; /* the value must be in least..most; a float also finite */
	int64_t least, most;
	const struct message *inside; /* MESSAGE_INSIDE */
	/* MESSAGE_INSIDE: encoded if the struct's first member, a uint32_t, has this bit; 0: always */
	uint32_t bit;
	/* into: the struct of the field's message */
	int (*take)(void *into, struct span bytes, struct error *error);
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
 * Adds fields to *into (zeroed before the first message). -EBADMSG: malformed; -EINVAL: a value out
 * of bounds; or the error of `take`. The reason names the field.
 */
int message_decode(const struct message *m, struct span bytes, void *into, struct error *error);
/* Appends all fields but those of MESSAGE_CALL. */
void message_encode(const struct message *m, const void *from, struct buf *out);
/* The same of the fields with the numbers first..last, which the table has. */
void message_encode_some(const struct message *m, unsigned int first, unsigned int last,
			 const void *from, struct buf *out);
/* Appends a message field with the fields of *from. */
void message_encode_inside(const struct message *m, unsigned int number, const void *from,
			   struct buf *out);

/*
 * Around the content of a message field; close takes the result of open. Content of another length
 * than 1..127 bytes is moved once.
 */
size_t message_open(struct buf *out, unsigned int number);
void message_close(struct buf *out, size_t mark);
