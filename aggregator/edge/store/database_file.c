/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An existing file is never opened here: closing it would drop SQLite's locks of this process on it
 * (POSIX locks belong to the process, not to the descriptor).
 */
#include "aggregator/edge/store/database.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define NAME	     "evenkeel.db"
#define ASIDE_PREFIX NAME ".aside-"

/* Suffixes of SQLite's files: the database, and its logs. */
static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

char *database_file_path(const char *dir)
{
	return mem_printf("%s/" NAME, dir);
}

static int make_file(const char *path, struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_system(error, -errno, "%s: cannot be made", path);
	close(fd);
	return 0;
}

int database_file_make(const char *dir, const char *path, struct error *error)
{
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return error_system(error, -errno, "%s: cannot be made", dir);
	if (stat(dir, &st))
		return error_system(error, -errno, "%s: cannot be looked at", dir);
	if (!S_ISDIR(st.st_mode))
		return error_fail(error, -ENOTDIR, "%s: is no directory", dir);
	if (access(dir, W_OK | X_OK))
		return error_system(error, -errno, "%s: cannot be written", dir);
	if (lstat(path, &st))
		return errno == ENOENT
			       ? make_file(path, error)
			       : error_system(error, -errno, "%s: cannot be looked at", path);
	if (!S_ISREG(st.st_mode)) {
		error_set(error, "%s: is no file: move it away", path);
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	}
	if (access(path, R_OK | W_OK))
		return error_system(error, -errno, "%s: cannot be read and written", path);
	return 0;
}

static bool is_aside(const char *name)
{
	size_t len = strlen(ASIDE_PREFIX);

	return strncmp(name, ASIDE_PREFIX, len) == 0 && name[len] && !strchr(name + len, '-');
}

size_t database_file_count_aside(const char *dir)
{
	const struct dirent *entry;
	size_t count = 0;
	DIR *d = opendir(dir);

	if (!d)
		return 0;
	while ((entry = readdir(d)) != NULL)
		count += is_aside(entry->d_name);
	closedir(d);
	return count;
}

/* A free name: of two in one second the other gets the next second. */
static char *aside_path(const char *dir, int64_t now_ns)
{
	struct stat st;

	for (int64_t second = now_ns / NS_PER_SEC;; second++) {
		char *path = mem_printf("%s/" ASIDE_PREFIX "%" PRId64, dir, second);

		if (lstat(path, &st))
			return path;
		free(path);
	}
}

int database_file_set_aside(const char *dir, const char *path, const char *why, int64_t now_ns,
			    struct error *note, struct error *error)
{
	size_t count = database_file_count_aside(dir);
	char *to;
	int rc;

	if (count >= DATABASE_ASIDE_MAX)
		return error_fail(error, -EMFILE,
				  "%s %s, and %zu were set aside already: see what damages them, "
				  "and remove them",
				  path, why, count);
	to = aside_path(dir, now_ns);
	rc = 0;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && !rc; i++) {
		char *from = mem_printf("%s%s", path, suffixes[i]);
		char *into = mem_printf("%s%s", to, suffixes[i]);

		if (rename(from, into) && errno != ENOENT)
			rc = error_system(error, -errno, "%s: cannot be set aside", from);
		free(from);
		free(into);
	}
	if (!rc)
		error_set(note, "%s %s; it was set aside as %s", path, why, to);
	free(to);
	return rc;
}

void database_file_remove_logs(const char *path)
{
	for (size_t i = 1; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *log = mem_printf("%s%s", path, suffixes[i]);

		unlink(log);
		free(log);
	}
}
