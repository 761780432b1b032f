/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 1 << 20 };

static bool is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

const char *file_name(const char *path)
{
	return is_standard(path) ? "standard input" : path;
}

static int read_all(FILE *file, const char *name, size_t most, struct buf *text,
		    struct reason *reason)
{
	size_t before = text->len, got;

	do {
		got = fread(buf_reserve(text, CHUNK), 1, CHUNK, file);
		text->len += got;
	} while (got && text->len - before <= most);
	if (ferror(file)) {
		reason_set(reason, "%s: %s", name, strerror(errno));
		return -EINVAL;
	}
	if (text->len - before > most) {
		reason_set(reason, "%s: is larger than %zu MiB", name, most >> 20);
		return -EINVAL;
	}
	buf_add_str(text, "");
	return 0;
}

int file_read(const char *path, size_t most, struct buf *text, struct reason *reason)
{
	FILE *file;
	int rc;

	if (!path[0]) {
		reason_set(reason, "the name of a file to read is empty");
		return -EINVAL;
	}
	file = is_standard(path) ? stdin : fopen(path, "re");
	if (!file) {
		reason_set(reason, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	rc = read_all(file, file_name(path), most, text, reason);
	if (!is_standard(path))
		fclose(file);
	return rc;
}
