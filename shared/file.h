/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: those a person names, secrets, which are wiped, and files that are replaced. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shared/buf.h"
#include "shared/error.h"

/*
 * Appends the file's bytes to *text, at most `most`, and a NUL that is not counted; "-" is standard
 * input. -EINVAL with the reason, which names the file: it cannot be read or is larger.
 */
int file_read(const char *path, size_t most, struct buf *text, struct error *error);
/* The path; of "-" its name for messages. */
const char *file_name(const char *path);

/*
 * Writes the file anew, by way of PATH.part and a rename: it is whole whenever this is cut. -errno
 * with the reason, which names the file.
 */
int file_replace(const char *path, mode_t mode, const void *data, size_t len, struct error *error);

/* Writes all bytes. 0 or -errno; then a part of them may be written. */
int file_write(int fd, const void *data, size_t len);

/* Closes a descriptor; nothing if it is negative. */
void file_close(int fd);

/* Bytes of a token, key or kubeconfig, and a NUL that len does not count. */
struct secret {
	char *text; /* owned */
	size_t len;
};

/*
 * Reads a file of at most `most` bytes; private: refuses one that others may read or write.
 * -ENOENT, -EACCES, -EPERM (others may read or write it), or -EINVAL (larger, no regular file,
 * failed reading) with the reason, which begins with the path. The caller frees *s.
 */
int secret_read(struct secret *s, const char *path, size_t most, bool private, struct error *error);
/* Likewise of a file that is open and becomes closed; fd < 0: open() has failed just now. */
int secret_read_open(struct secret *s, int fd, const char *path, size_t most, bool private,
		     struct error *error);
/* Wipes and frees it; one of zeroes is allowed. */
void secret_free(struct secret *s);
