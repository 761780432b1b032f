/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are raw bytes in files: a Kubernetes Secret mounts as is, and `head -c 32 /dev/urandom`
 * makes one. A directory has several during an exchange: add the new key everywhere, then remove
 * the old one. A path may be a symbolic link (as in a mounted Secret) to a regular file; the opened
 * file is checked, so it cannot be swapped in between. Secrets are wiped from freed memory.
 *
 * A place is the open folder of the path's last name, and that name, which is looked up at each
 * reading: a Secret's volume or a deployment may replace a file, folder or link. The folder is
 * opened O_PATH, so it need not be readable. After the drop of capabilities the owner of a key
 * counts: a key that needs CAP_DAC_OVERRIDE is refused, with both users in the reason.
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

#include "shared/file.h"
#include "shared/mem.h"

struct keyring_place {
	int folder; /* O_PATH */
	char *name; /* in it */
	char *path; /* as given, for reasons */
};

/* name: in dir; shown: its name in the reason. */
static int refuse_open(int error, int dir, const char *name, const char *shown,
		       struct error *reason)
{
	struct stat st;

	if (error == ENOENT)
		return error_fail(reason, -ENOENT,
				  "%s: no such key file; make one with (umask 077; head -c %d "
				  "/dev/urandom > %s)",
				  shown, KEY_LEN, shown);
	if (error == EACCES && !fstatat(dir, name, &st, 0))
		error_set(reason,
			  "%s: cannot be read: it belongs to user %u (mode %04o) and this process "
			  "runs as user %u; make this user the owner of the key",
			  shown, st.st_uid, st.st_mode & 07777, geteuid());
	else
		error_set(reason, "%s: cannot be read: %s; run as the owner of the key", shown,
			  strerror(error));
	return -EACCES;
}

static int check_file(const struct stat *st, const char *name, struct error *reason)
{
	if (!S_ISREG(st->st_mode))
		return error_fail(reason, -EINVAL, "%s: not a regular file", name);
	if (st->st_mode & (S_IROTH | S_IWOTH))
		return error_fail(reason, -EPERM,
				  "%s: others may read or write it (mode %04o): chmod o-rw it",
				  name, st->st_mode & 07777);
	if (st->st_size != KEY_LEN)
		return error_fail(reason, -EINVAL,
				  "%s: %lld bytes, a key is %d raw bytes (head -c %d /dev/urandom)",
				  name, (long long)st->st_size, KEY_LEN, KEY_LEN);
	return 0;
}

void key_set_id(struct key *key)
{
	uint8_t hash[crypto_generichash_BYTES];

	static_assert(sizeof(hash) >= KEY_ID_LEN, "the id is a prefix of the hash");
	crypto_generichash(hash, sizeof(hash), key->secret, sizeof(key->secret), NULL, 0);
	memcpy(key->id, hash, sizeof(key->id));
}

/* The opened file becomes the ring's next key. */
static int add_file(struct keyring *ring, int fd, const char *name, struct error *reason)
{
	struct key *key = &ring->keys[ring->count];
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return error_fail(reason, -EACCES, "%s: cannot be read: %s", name, strerror(errno));
	rc = check_file(&st, name, reason);
	if (rc)
		return rc;
	if (read(fd, key->secret, KEY_LEN) != KEY_LEN)
		return error_fail(reason, -EINVAL, "%s: changed while it was read: try again",
				  name);
	if (sodium_is_zero(key->secret, KEY_LEN))
		return error_fail(reason, -EINVAL,
				  "%s: all zero bytes, which anybody can guess: make another with "
				  "(umask 077; head -c %d /dev/urandom > FILE)",
				  name, KEY_LEN);
	key_set_id(key);
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
		     struct error *reason)
{
	for (int i = 0; i < count; i++) {
		int fd = open_file(dir, names[i]->d_name), rc;

		if (fd < 0)
			return refuse_open(errno, dir, names[i]->d_name, names[i]->d_name, reason);
		rc = add_file(ring, fd, names[i]->d_name, reason);
		close(fd);
		if (rc)
			return rc;
	}
	return 0;
}

static int add_directory(struct keyring *ring, int dir, struct error *reason)
{
	struct dirent **names = NULL;
	int count = scandirat(dir, ".", &names, is_visible, by_name), rc;

	if (count < 0)
		return refuse_open(errno, dir, ".", ".", reason);
	if (count == 0 || count > KEYRING_MAX)
		rc = error_fail(reason, -EINVAL, "%d keys in the directory, 1 to %d are possible",
				count, KEYRING_MAX);
	else
		rc = add_files(ring, dir, names, count, reason);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return rc;
}

/*
 * "/a/b/" is b in /a, "b" is b in the working directory; "/", "." and ".." become "." in
 * themselves.
 */
static void split(const char *path, char **folder, char **name)
{
	size_t end = strlen(path), begin;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	*name = mem_strndup(path + begin, end - begin);
	if (**name == '\0' || !strcmp(*name, ".") || !strcmp(*name, "..")) {
		free(*name);
		*name = mem_strdup(".");
		begin = end;
	}
	*folder = begin || !*path ? mem_strndup(path, begin) : mem_strdup(".");
}

int keyring_open(struct keyring_place **place, const char *path, struct error *reason)
{
	struct keyring_place *p = mem_zalloc(1, sizeof(*p));
	char *folder;
	int rc = 0;

	p->path = mem_strdup(path);
	split(path, &folder, &p->name);
	p->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->folder < 0) {
		rc = refuse_open(errno, AT_FDCWD, folder, path, reason);
		keyring_close(p);
	} else {
		*place = p;
	}
	free(folder);
	return rc;
}

void keyring_close(struct keyring_place *place)
{
	if (!place)
		return;
	file_close(place->folder);
	free(place->name);
	free(place->path);
	free(place);
}

int keyring_read(struct keyring *ring, const struct keyring_place *place, struct error *reason)
{
	struct keyring loaded = {0};
	int fd = open_file(place->folder, place->name), rc, started = sodium_init();
	struct stat st;

	assert(started >= 0);
	if (fd < 0)
		return refuse_open(errno, place->folder, place->name, place->path, reason);
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		rc = add_directory(&loaded, fd, reason);
		if (rc)
			error_prefix(reason, "%s", place->path);
	} else {
		rc = add_file(&loaded, fd, place->path, reason);
	}
	close(fd);
	if (!rc)
		*ring = loaded;
	keyring_wipe(&loaded);
	return rc;
}

int keyring_read_text(struct secret *s, const struct keyring_place *place, size_t most,
		      bool private, struct error *reason)
{
	return secret_read_open(s, open_file(place->folder, place->name), place->path, most,
				private, reason);
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
