/* SPDX-License-Identifier: Apache-2.0 */
/* The shared keys that seal frames: a file of 32 raw bytes, or a directory of such files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"
#include "shared/file.h"

enum { KEY_LEN = 32, KEY_ID_LEN = 8, KEYRING_MAX = 16 };

struct key {
	uint8_t id[KEY_ID_LEN]; /* first 8 bytes of BLAKE2b-256(secret) */
	uint8_t secret[KEY_LEN];
};

/* All keys open frames; the key of the last file seals. Without keys: clear frames (ipc). */
struct keyring {
	size_t count;
	struct key keys[KEYRING_MAX]; /* in order of file name */
};

/* The location of the keys, opened once, so that they can be read again without privileges. */
struct keyring_place;

/* Opens the folder that holds path. 0, or -ENOENT, -EACCES with the reason naming the path. */
int keyring_open(struct keyring_place **place, const char *path, struct error *error);
/*
 * Reads the present keys. 0, or -ENOENT, -EACCES, -EINVAL (wrong length, empty directory, too
 * many), -EPERM (readable by others), with the reason naming the file and what to do; *ring is
 * written only on success. Hidden files of a directory (the ..data links of a Secret) are ignored;
 * symbolic links are followed.
 */
int keyring_read(struct keyring *ring, const struct keyring_place *place, struct error *error);
void keyring_close(struct keyring_place *place); /* accepts NULL */

/*
 * A file at the place instead, of at most `most` bytes, as secret_read() reads it; private: it
 * refuses one that others may read or write.
 */
int keyring_read_text(struct secret *s, const struct keyring_place *place, size_t most,
		      bool private, struct error *error);

/* Sets the id by the secret. */
void key_set_id(struct key *key);
/* The key that seals; NULL for an empty ring. */
const struct key *keyring_sealing(const struct keyring *ring);
/* NULL when no key has that id. */
const struct key *keyring_find(const struct keyring *ring, const uint8_t id[KEY_ID_LEN]);
void keyring_wipe(struct keyring *ring);
