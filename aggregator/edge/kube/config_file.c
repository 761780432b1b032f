/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kubelet mounts changes by the swap of a symbolic link, so no descriptor is kept: the
 * name is looked up each time. A pipe put in a file's place must not hang the caller, hence
 * O_NONBLOCK and the check of the opened file.
 */
#include "aggregator/edge/kube/config_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"

/* The error as one of the three that are promised. */
static int refuse(int error, const char *path, struct reason *reason)
{
	reason_set(reason, "%s: %s", path, strerror(error));
	return error == ENOENT || error == EACCES ? -error : -EINVAL;
}

/* Until the end or until there is no more room; what was read, or -1. */
static ssize_t read_all(int fd, char *to, size_t room)
{
	size_t len = 0;

	while (len < room) {
		ssize_t got = read(fd, to + len, room - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	return (ssize_t)len;
}

static int read_open(int fd, const char *path, size_t max, char **text, size_t *len,
		     struct reason *reason)
{
	struct stat st;
	ssize_t got;
	char *data;

	if (fstat(fd, &st))
		return refuse(errno, path, reason);
	if (!S_ISREG(st.st_mode)) {
		reason_set(reason, "%s: not a regular file", path);
		return -EINVAL;
	}
	data = mem_alloc(max + 2);
	got = read_all(fd, data, max + 1);
	if (got < 0) {
		int error = errno;

		free(data);
		return refuse(error, path, reason);
	}
	if ((size_t)got > max) {
		reason_set(reason, "%s: larger than %zu KiB", path, max / 1024);
		kube_bytes_wipe(data, (size_t)got);
		return -EINVAL;
	}
	data[got] = '\0';
	*text = data;
	*len = (size_t)got;
	return 0;
}

int kube_file_read(const char *path, size_t max, char **text, size_t *len, struct reason *reason)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0)
		return refuse(errno, path, reason);
	rc = read_open(fd, path, max, text, len, reason);
	close(fd);
	return rc;
}

const char *kube_text_line(const char *text, char *out, size_t size)
{
	size_t len = 0;

	assert(size > 2);
	for (; text && *text && len < size - 3; text++)
		out[len++] = (char)((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
	for (size_t dots = text && *text ? 2 : 0; dots; dots--)
		out[len++] = '.';
	out[len] = '\0';
	return out;
}

void kube_bytes_wipe(char *bytes, size_t len)
{
	if (bytes)
		sodium_memzero(bytes, len);
	free(bytes);
}

void kube_text_wipe(char *text)
{
	kube_bytes_wipe(text, text ? strlen(text) : 0);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int token_take(const char *text, size_t len, char **token, struct reason *reason)
{
	while (len && is_blank(text[len - 1]))
		len--;
	for (; len && is_blank(*text); text++)
		len--;
	if (len == 0) {
		reason_set(reason, "the token is empty");
		return -EINVAL;
	}
	if (len > TOKEN_MAX) {
		reason_set(reason, "the token is longer than %d KiB", TOKEN_MAX / 1024);
		return -EINVAL;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] > ' ' && text[i] < 0x7f)
			continue;
		reason_set(reason, "byte %zu of the token is no printable ASCII", i + 1);
		return -EINVAL;
	}
	*token = mem_strndup(text, len);
	return 0;
}

int token_read(const char *path, char **token, struct reason *reason)
{
	char *text;
	size_t len;
	/* Room for the line ends around it; what is longer still, token_take() refuses. */
	int rc = kube_file_read(path, TOKEN_MAX + 64, &text, &len, reason);

	if (rc)
		return rc;
	rc = token_take(text, len, token, reason);
	if (rc)
		reason_prefix(reason, "%s", path);
	kube_bytes_wipe(text, len);
	return rc;
}
