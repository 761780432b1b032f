/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret is read past stdio's buffers into one piece of memory that does not move, so there is
 * one copy to wipe. Its path is opened anew each time: a volume of a Secret or ConfigMap changes by
 * the swap of a symbolic link. O_NONBLOCK and the check of the opened file keep a pipe in the
 * file's place from hanging the caller.
 */
#include "shared/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"

enum { CHUNK = 1 << 20 };

static bool is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

void file_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

const char *file_name(const char *path)
{
	return is_standard(path) ? "standard input" : path;
}

static int read_all(FILE *file, const char *name, size_t most, struct buf *text,
		    struct error *reason)
{
	size_t before = text->len, got;

	do {
		got = fread(buf_reserve(text, CHUNK), 1, CHUNK, file);
		text->len += got;
	} while (got && text->len - before <= most);
	if (ferror(file))
		return error_fail(reason, -EINVAL, "%s: %s", name, strerror(errno));
	if (text->len - before > most)
		return error_fail(reason, -EINVAL, "%s: is larger than %zu MiB", name, most >> 20);
	buf_add_str(text, "");
	return 0;
}

int file_read(const char *path, size_t most, struct buf *text, struct error *reason)
{
	FILE *file;
	int rc;

	if (!path[0])
		return error_fail(reason, -EINVAL, "the name of a file to read is empty");
	file = is_standard(path) ? stdin : fopen(path, "re");
	if (!file)
		return error_fail(reason, -EINVAL, "%s: %s", path, strerror(errno));
	rc = read_all(file, file_name(path), most, text, reason);
	if (!is_standard(path))
		fclose(file);
	return rc;
}

/* --- secrets ---------------------------------------------------------------------------------- */

/* The group may read a secret: services and fsGroup of a volume give it that way. */
static int check_secret(int fd, bool private, struct error *reason)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_fail(reason, -EINVAL, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_fail(reason, -EINVAL, "not a regular file");
	if (private && (st.st_mode & (S_IROTH | S_IWOTH)))
		return error_fail(reason, -EPERM,
				  "others may read or write it (mode %04o): chmod o-rw it; of a "
				  "Secret's volume, defaultMode: 0440 with an fsGroup",
				  st.st_mode & 07777);
	return 0;
}

static int read_secret(int fd, struct secret *s, size_t most, struct error *reason)
{
	ssize_t got = 1;

	s->text = mem_alloc(most + 2);
	while (got && s->len <= most) {
		got = read(fd, s->text + s->len, most + 1 - s->len);
		if (got > 0) {
			s->len += (size_t)got;
		} else if (got < 0 && errno != EINTR) {
			int error = errno;

			return error_fail(reason, error == EACCES ? -EACCES : -EINVAL, "%s",
					  strerror(error));
		}
	}
	if (s->len > most)
		return error_fail(reason, -EINVAL, "larger than %zu KiB", most >> 10);
	s->text[s->len] = '\0';
	return 0;
}

int secret_read_open(struct secret *out, int fd, const char *path, size_t most, bool private,
		     struct error *reason)
{
	struct secret s = {0};
	int rc;

	if (fd < 0) {
		rc = errno == ENOENT || errno == EACCES ? -errno : -EINVAL;
		return error_fail(reason, rc, "%s: %s", path, strerror(errno));
	}
	rc = check_secret(fd, private, reason);
	if (!rc)
		rc = read_secret(fd, &s, most, reason);
	close(fd);
	if (rc) {
		secret_free(&s);
		return error_at(reason, rc, "%s", path);
	}
	*out = s;
	return 0;
}

int secret_read(struct secret *out, const char *path, size_t most, bool private,
		struct error *reason)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return secret_read_open(out, fd, path, most, private, reason);
}

void secret_free(struct secret *s)
{
	if (s->text)
		sodium_memzero(s->text, s->len);
	free(s->text);
	*s = (struct secret){0};
}

/* --- writing ---------------------------------------------------------------------------------- */

/* So that a rename in its folder outlasts a loss of power. */
static int sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? mem_strndup(path, (size_t)(slash - path + 1)) : mem_strdup(".");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) ? -errno : 0;

	file_close(fd);
	free(folder);
	return rc;
}

int file_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_new(const char *path, mode_t mode, const void *data, size_t len)
{
	int fd, rc;

	if (unlink(path) && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	rc = file_write(fd, data, len);
	if (!rc && fsync(fd))
		rc = -errno;
	close(fd);
	return rc;
}

int file_replace(const char *path, mode_t mode, const void *data, size_t len, struct error *reason)
{
	char *part = mem_printf("%s.part", path);
	int rc = write_new(part, mode, data, len);

	if (!rc && rename(part, path))
		rc = -errno;
	if (!rc)
		rc = sync_folder(path);
	if (rc) {
		error_system(reason, rc, "%s: cannot be written", path);
		unlink(part);
	}
	free(part);
	return rc;
}
