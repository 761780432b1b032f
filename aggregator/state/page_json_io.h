/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a JSON object to or from C values, in one pass that serves both directions, so that
 * they cannot differ.
 */
#ifndef EVENKEEL_AGGREGATOR_STATE_PAGE_JSON_IO_H
#define EVENKEEL_AGGREGATOR_STATE_PAGE_JSON_IO_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/jsonw.h"
#include "shared/error.h"

enum { PAGE_JSON_FIELD_MAX = 256 };

/*
 * The largest whole number that every reader of JSON reads alike; greater ones are written as
 * strings of digits.
 */
#define PAGE_JSON_WHOLE_MAX 9007199254740992LL /* 2^53 */

/*
 * Writing: values go to `out`. Reading: each member is taken out of the object `at`, so that what
 * is left when an object ends is what nobody knows, which is an error as a missing member is. The
 * first error stays: values are untouched since. A contradictory value is dropped and noted, and
 * reading continues.
 */
struct page_json_io {
	struct jsonw *out; /* borrowed; NULL: reading */
	bool single; /* writing: doubles hold no more than a float does */
	cJSON *at; /* borrowed */
	cJSON *taken; /* owned; strings that were read point into it */
	bool bad;
	size_t path_len;
	char path[PAGE_JSON_FIELD_MAX]; /* of `at`; with an error of the member that it is about */
	struct error *error; /* borrowed */
	char aside[PAGE_JSON_FIELD_MAX]; /* the first value that was put aside, and why; "": none */
};

/* Around a nested object or list. */
struct page_json_level {
	cJSON *at;
	size_t path_len;
};

/* `item` is taken apart, and freed by page_json_io_end() with all that strings point to. */
void page_json_io_read(struct page_json_io *io, cJSON *item, struct error *error);
void page_json_io_write(struct page_json_io *io, struct jsonw *out);
/* Complains about members that were not taken. */
void page_json_io_finish(struct page_json_io *io);
void page_json_io_end(struct page_json_io *io);

/* Whether the member is there: writing, what the caller says. */
bool page_json_has(const struct page_json_io *io, const char *key, bool present);
/* Enters the object `key`; false where there is none: nothing to leave then. */
bool page_json_enter(struct page_json_io *io, const char *key, bool present,
		     struct page_json_level *level);
/* The same of an object that must be there; false: an error. */
bool page_json_into(struct page_json_io *io, const char *key, struct page_json_level *level);
void page_json_leave(struct page_json_io *io, const struct page_json_level *level);
/*
 * A list of objects: *count of them, at most `most`, written or found; absent is none. Each is
 * entered by page_json_item(), in order, and left by page_json_leave(). False: there are none, and
 * nothing to leave.
 */
bool page_json_list(struct page_json_io *io, const char *key, size_t *count, size_t most,
		    struct page_json_level *level);
void page_json_item(struct page_json_io *io, size_t index, struct page_json_level *level);
void page_json_list_leave(struct page_json_io *io, const struct page_json_level *level);

/* Every one of these is required. */
void page_json_double(struct page_json_io *io, const char *key, double *value);
void page_json_float(struct page_json_io *io, const char *key, float *value);
/* null stands for NaN. */
void page_json_double_or_nan(struct page_json_io *io, const char *key, double *value);
/* A list of `count` such. */
void page_json_floats(struct page_json_io *io, const char *key, float *values, size_t count);
void page_json_i64(struct page_json_io *io, const char *key, int64_t *value, int64_t least,
		   int64_t most);
/* null stands for the value none; else it is not negative. */
void page_json_i64_or_null(struct page_json_io *io, const char *key, int64_t *value, int64_t none);
void page_json_u64(struct page_json_io *io, const char *key, uint64_t *value, uint64_t most);
void page_json_u32(struct page_json_io *io, const char *key, uint32_t *value, uint32_t most);
/* Unix nanoseconds as RFC 3339; from 1970 on. */
void page_json_time(struct page_json_io *io, const char *key, int64_t *unix_ns);
/* 1 to `most` bytes. Reading, *value is borrowed from io. */
void page_json_text(struct page_json_io *io, const char *key, const char **value, size_t most);
/* The index of one of the names. */
void page_json_choice(struct page_json_io *io, const char *key, int *value,
		      const char *const *names, size_t count);
/* Bytes as hexadecimal digits. */
void page_json_hex(struct page_json_io *io, const char *key, uint8_t *bytes, size_t len);

/* The object at hand was put aside. */
void page_json_note_aside(struct page_json_io *io, const char *why);
/* For checks of the caller's own: the error is about the member `key` of the object at hand. */
void page_json_fail(struct page_json_io *io, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
