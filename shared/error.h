/* SPDX-License-Identifier: Apache-2.0 */
/* The error text for people: set at the failure, with context added by callers. */
#pragma once

struct error {
	char text[512]; /* always terminated; cut when longer */
};

/* Replaces the text, which the arguments may point into. r may be NULL. */
void error_set(struct error *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as an expression whose value is the code: "return error_fail(r, -EINVAL, ..)". */
#define error_fail(r, code, ...) (error_set(r, __VA_ARGS__), (code))
/* The text of an error of the system, with context: "context: No such file". Returns code, -errno. */
int error_system(struct error *r, int code, const char *context, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts context in front: "context: text". */
void error_prefix(struct error *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as the value of an expression, as error_fail(). */
#define error_at(r, code, ...) (error_prefix(r, __VA_ARGS__), (code))
