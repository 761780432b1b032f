/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are raw bytes in files, so that a Kubernetes Secret mounts as they are and `head -c 32 /dev/urandom` makes one. A
 * directory holds several while keys are exchanged: add the new key everywhere, then remove the old one. A path may be
 * a symbolic link (a mounted Secret's files are), but must lead to a regular file: the check is made on the opened
 * file, so nothing can be put in its place in between. Secrets are wiped from memory that is given up.
 */
#include "shared/keyring.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse_open(int error, const char *name, struct reason *reason)
{
	if (error == ENOENT)
		reason_set(reason,
			   "%s: no such key file; make one with (umask 077; head -c %d "
			   "/dev/urandom > %s)",
			   name, KEY_LEN, name);
	else
		reason_set(reason, "%s: cannot be read: %s; run as the owner of the key", name,
			   strerror(error));
	return error == ENOENT ? -ENOENT : -EACCES;
}

static int check_file(const struct stat *st, const char *name, struct reason *reason)
{
	if (!S_ISREG(st->st_mode)) {
		reason_set(reason, "%s: not a regular file", name);
		return -EINVAL;
	}
	if (st->st_mode & (S_IROTH | S_IWOTH)) {
		reason_set(reason, "%s: others may read or write it (mode %04o): chmod o-rw it",
			   name, st->st_mode & 07777);
		return -EPERM;
	}
	if (st->st_size != KEY_LEN) {
		reason_set(reason,
			   "%s: %lld bytes, a key is %d raw bytes (head -c %d /dev/urandom)", name,
			   (long long)st->st_size, KEY_LEN, KEY_LEN);
		return -EINVAL;
	}
	return 0;
}

static void set_id(struct key *key)
{
	uint8_t hash[crypto_generichash_BYTES];

	static_assert(sizeof(hash) >= KEY_ID_LEN, "the id is a prefix of the hash");
	crypto_generichash(hash, sizeof(hash), key->secret, sizeof(key->secret), NULL, 0);
	memcpy(key->id, hash, sizeof(key->id));
}

/* The opened file becomes the ring's next key. */
static int add_file(struct keyring *ring, int fd, const char *name, struct reason *reason)
{
	struct key *key = &ring->keys[ring->count];
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return refuse_open(errno, name, reason);
	rc = check_file(&st, name, reason);
	if (rc)
		return rc;
	if (read(fd, key->secret, KEY_LEN) != KEY_LEN) {
		reason_set(reason, "%s: changed while it was read: try again", name);
		return -EINVAL;
	}
	set_id(key);
	ring->count++;
	return 0;
}

/* O_NONBLOCK: a pipe put there must not hang the start. */
static int open_file(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_files(struct keyring *ring, int dir, struct dirent **names, int count,
		     struct reason *reason)
{
	for (int i = 0; i < count; i++) {
		int fd = open_file(dir, names[i]->d_name), rc;

		if (fd < 0)
			return refuse_open(errno, names[i]->d_name, reason);
		rc = add_file(ring, fd, names[i]->d_name, reason);
		close(fd);
		if (rc)
			return rc;
	}
	return 0;
}

static int add_directory(struct keyring *ring, int dir, struct reason *reason)
{
	struct dirent **names = NULL;
	int count = scandirat(dir, ".", &names, is_visible, by_name), rc;

	if (count < 0)
		return refuse_open(errno, ".", reason);
	if (count == 0 || count > KEYRING_MAX) {
		reason_set(reason, "%d keys in the directory, 1 to %d are possible", count,
			   KEYRING_MAX);
		rc = -EINVAL;
	} else {
		rc = add_files(ring, dir, names, count, reason);
	}
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return rc;
}

int keyring_load(struct keyring *ring, const char *path, struct reason *reason)
{
	struct keyring loaded = {0};
	int fd = open_file(AT_FDCWD, path), rc, started = sodium_init();
	struct stat st;

	assert(started >= 0);
	if (fd < 0)
		return refuse_open(errno, path, reason);
	if (fstat(fd, &st)) {
		rc = refuse_open(errno, path, reason);
	} else if (S_ISDIR(st.st_mode)) {
		rc = add_directory(&loaded, fd, reason);
		if (rc)
			reason_prefix(reason, "%s", path);
	} else {
		rc = add_file(&loaded, fd, path, reason);
	}
	close(fd);
	if (!rc)
		*ring = loaded;
	keyring_wipe(&loaded);
	return rc;
}

const struct key *keyring_sealing(const struct keyring *ring)
{
	return ring->count ? &ring->keys[ring->count - 1] : NULL;
}

const struct key *keyring_find(const struct keyring *ring, const uint8_t id[KEY_ID_LEN])
{
	for (size_t i = 0; i < ring->count; i++) {
		if (!memcmp(ring->keys[i].id, id, KEY_ID_LEN))
			return &ring->keys[i];
	}
	return NULL;
}

void keyring_wipe(struct keyring *ring)
{
	sodium_memzero(ring, sizeof(*ring));
}
