/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read into one piece of memory that does not move and past stdio's buffers, so that there is one
 * copy to wipe.
 *
 * Others may not read such a file: a mistake with its mode is found when the program starts, and
 * not when it was used. The group may, as that is how services and Secrets' volumes (fsGroup) are
 * given theirs.
 */
#include "shared/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"

static int check_file(int fd, size_t most, struct reason *reason)
{
	struct stat st;

	if (fstat(fd, &st)) {
		reason_set(reason, "%s", strerror(errno));
		return -EACCES;
	}
	if (!S_ISREG(st.st_mode)) {
		reason_set(reason, "not a regular file");
		return -EINVAL;
	}
	if (st.st_mode & (S_IROTH | S_IWOTH)) {
		reason_set(reason,
			   "others may read or write it (mode %04o): chmod o-rw it; of a Secret's "
			   "volume, defaultMode: 0440 with an fsGroup",
			   st.st_mode & 07777);
		return -EPERM;
	}
	if ((size_t)st.st_size > most) {
		reason_set(reason, "larger than %zu KiB", most >> 10);
		return -EINVAL;
	}
	return 0;
}

/* What is written behind `most` meanwhile is left out: the next time it is too large. */
static int read_open(int fd, struct secret *s, size_t most, struct reason *reason)
{
	while (s->len < most) {
		ssize_t got = read(fd, s->text + s->len, most - s->len);

		if (got == 0)
			break;
		if (got > 0) {
			s->len += (size_t)got;
		} else if (errno != EINTR) {
			reason_set(reason, "%s", strerror(errno));
			return -EACCES;
		}
	}
	s->text[s->len] = '\0';
	return 0;
}

/* O_NONBLOCK: a pipe put there must not hang the caller. */
int secret_read(struct secret *out, const char *path, size_t most, struct reason *reason)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;
	struct secret s = {0};

	if (fd < 0) {
		rc = errno == ENOENT ? -ENOENT : -EACCES;
		reason_set(reason, "%s: %s", path, strerror(errno));
		return rc;
	}
	rc = check_file(fd, most, reason);
	if (!rc) {
		s.text = mem_alloc(most + 1);
		rc = read_open(fd, &s, most, reason);
	}
	close(fd);
	if (rc) {
		reason_prefix(reason, "%s", path);
		secret_free(&s);
		return rc;
	}
	*out = s;
	return 0;
}

void secret_free(struct secret *s)
{
	if (s->text)
		sodium_memzero(s->text, s->len);
	free(s->text);
	*s = (struct secret){0};
}
