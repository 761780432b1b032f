/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a JSON object to or from C values, in one pass that serves both directions, so that
 * they cannot differ.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/jsonw.h"
#include "shared/error.h"

enum { JSON_IO_FIELD_MAX = 256 };

/*
 * The largest whole number that every reader of JSON reads alike; greater ones are written as
 * strings of digits.
 */
#define JSON_IO_WHOLE_MAX 9007199254740992LL /* 2^53 */

/*
 * Writing: values go to `out`. Reading: each member is taken out of the object `at`, so that what
 * is left when an object ends is what nobody knows, which is an error as a missing member is. The
 * first error stays: values are untouched since. A contradictory value is dropped and noted, and
 * reading continues.
 */
struct json_io {
	struct jsonw *out; /* borrowed; NULL: reading */
	bool answer; /* writing: rounds numbers and times, as answers of the API have them */
	bool single; /* writing: doubles hold no more than a float does */
	cJSON *at; /* borrowed */
	cJSON *taken; /* owned; strings that were read point into it */
	bool bad;
	size_t path_len;
	char path[JSON_IO_FIELD_MAX]; /* of `at`; with an error of the member that it is about */
	struct error *error; /* borrowed */
	char aside[JSON_IO_FIELD_MAX]; /* the first value that was put aside, and why; "": none */
};

/* Around a nested object or list. */
struct json_io_level {
	cJSON *at;
	size_t path_len;
};

/* `item` is taken apart, and freed by json_io_end() with all that strings point to. */
void json_io_read(struct json_io *io, cJSON *item, struct error *error);
void json_io_write(struct json_io *io, struct jsonw *out, bool answer);
/* Complains about members that were not taken. */
void json_io_finish(struct json_io *io);
void json_io_end(struct json_io *io);

/* Whether the member is there: writing, what the caller says. */
bool json_io_has(const struct json_io *io, const char *key, bool present);
/* Enters the object `key`; false where there is none: nothing to leave then. */
bool json_io_enter(struct json_io *io, const char *key, bool present, struct json_io_level *level);
/* The same of an object that must be there; false: an error. */
bool json_io_into(struct json_io *io, const char *key, struct json_io_level *level);
void json_io_leave(struct json_io *io, const struct json_io_level *level);
/*
 * A list of objects: *count of them, at most `most`, written or found; absent is none. Each is
 * entered by json_io_item(), in order, and left by json_io_leave(). False: there are none, and
 * nothing to leave.
 */
bool json_io_list(struct json_io *io, const char *key, size_t *count, size_t most,
		  struct json_io_level *level);
void json_io_item(struct json_io *io, size_t index, struct json_io_level *level);
void json_io_list_leave(struct json_io *io, const struct json_io_level *level);

/*
 * Whether the value follows, which is to be passed next; else null stands for it. Writing, what the
 * caller says.
 */
bool json_io_known(struct json_io *io, const char *key, bool known);

/* Every one of these is required. `decimals` are those of an answer. */
void json_io_double(struct json_io *io, const char *key, double *value, int decimals);
void json_io_float(struct json_io *io, const char *key, float *value, int decimals);
/* null stands for NaN. */
void json_io_double_or_nan(struct json_io *io, const char *key, double *value, int decimals);
/* A list of `count` such. */
void json_io_floats(struct json_io *io, const char *key, float *values, size_t count, int decimals);
/* Nanoseconds in units of `unit_ns`; exact below 2^50 ns. */
void json_io_scaled(struct json_io *io, const char *key, int64_t *ns, int64_t least_ns,
		    double unit_ns, int decimals);
void json_io_i64(struct json_io *io, const char *key, int64_t *value, int64_t least, int64_t most);
/* null stands for the value none; else it is not negative. */
void json_io_i64_or_null(struct json_io *io, const char *key, int64_t *value, int64_t none);
void json_io_u64(struct json_io *io, const char *key, uint64_t *value, uint64_t most);
void json_io_u32(struct json_io *io, const char *key, uint32_t *value, uint32_t most);
/* Unix nanoseconds as RFC 3339; from 1970 on. */
void json_io_time(struct json_io *io, const char *key, int64_t *unix_ns);
/* 1 to `most` bytes. Reading, *value is borrowed from io. */
void json_io_text(struct json_io *io, const char *key, const char **value, size_t most);
/* The index of one of the names. */
void json_io_choice(struct json_io *io, const char *key, int *value, const char *const *names,
		    size_t count);
/* Bytes as hexadecimal digits. */
void json_io_hex(struct json_io *io, const char *key, uint8_t *bytes, size_t len);

/* The object at hand was put aside. */
void json_io_note_aside(struct json_io *io, const char *why);
/* For checks of the caller's own: the error is about the member `key` of the object at hand. */
void json_io_fail(struct json_io *io, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
