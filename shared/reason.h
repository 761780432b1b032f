/* SPDX-License-Identifier: Apache-2.0 */
/* The error text for people: set at the failure, with context added by callers. */
#ifndef EVENKEEL_SHARED_REASON_H
#define EVENKEEL_SHARED_REASON_H

struct reason {
	char text[512]; /* always terminated; cut when longer */
};

/* Replaces the text. r may be NULL. */
void reason_set(struct reason *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts context in front: "context: text". */
void reason_prefix(struct reason *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
