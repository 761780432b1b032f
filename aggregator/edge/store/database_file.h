/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database as files of the state directory: its name, its first creation, and setting aside
 * what cannot be used.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_STORE_DATABASE_FILE_H
#define EVENKEEL_AGGREGATOR_EDGE_STORE_DATABASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/reason.h"

/*
 * With so many set aside no more are made: a disk that damages everything must not be filled by
 * that.
 */
enum { DATABASE_ASIDE_MAX = 8 };

/* "DIR/evenkeel.db"; the caller frees it. */
char *database_file_path(const char *dir);
/*
 * Makes the directory (one level, 0700) and an empty file (0600) where there is none, and looks
 * whether both can be written. Negative errno with a reason that says what to do.
 */
int database_file_make(const char *dir, const char *path, struct reason *reason);
/*
 * Renames the database, and what SQLite keeps beside it, to "evenkeel.db.aside-UNIXSECONDS"; nobody
 * may have it open. *note becomes "PATH WHY; it was set aside as NEW"; on failure *reason is set.
 */
int database_file_set_aside(const char *dir, const char *path, const char *why, int64_t now_ns,
			    struct reason *note, struct reason *reason);
/* How many are. */
size_t database_file_count_aside(const char *dir);
/* Of the database and its log. */
uint64_t database_file_bytes(const char *path);

#endif
