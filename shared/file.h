/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file a person named, whole. */
#ifndef EVENKEEL_SHARED_FILE_H
#define EVENKEEL_SHARED_FILE_H

#include <stddef.h>

#include "shared/buf.h"
#include "shared/reason.h"

/*
 * Appends the file's bytes to *text, at most `most`; "-" is standard input. What follows the bytes
 * is a NUL that is not counted. -EINVAL with the reason, which names the file, when it cannot be
 * read or is larger.
 */
int file_read(const char *path, size_t most, struct buf *text, struct reason *reason);
/* The path, or what "-" is called in messages. */
const char *file_name(const char *path);

#endif
