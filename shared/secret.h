/* SPDX-License-Identifier: Apache-2.0 */
/* Files that others must not read: tokens, private keys. */
#ifndef EVENKEEL_SHARED_SECRET_H
#define EVENKEEL_SHARED_SECRET_H

#include <stddef.h>

#include "shared/reason.h"

/* Its bytes, and a NUL behind them that *len does not count; secret_free() them. */
struct secret {
	char *text; /* owned */
	size_t len;
};

/*
 * Reads a whole file of at most `most` bytes. -ENOENT, -EACCES: it cannot be opened or read;
 * -EPERM: others may read or write it; -EINVAL: it is larger, or no regular file; each with the
 * reason, which begins with the path.
 */
int secret_read(struct secret *s, const char *path, size_t most, struct reason *reason);
/* Wipes it. One of zeroes is allowed. */
void secret_free(struct secret *s);

#endif
