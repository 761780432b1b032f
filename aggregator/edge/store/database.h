/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite database of the state directory: rows are read at start and written by each save. One
 * thread uses it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/planner/drain_log.h"
#include "aggregator/state/usage.h"
#include "shared/error.h"

/*
 * A row of the database; pointers are valid during the call. 0, or a negative errno: the row is
 * damaged.
 */
typedef int database_taker(void *ctx, const char *name, const void *state, size_t len,
			   struct error *error);

/* A decision about drains; in the order of their numbers, at most DRAIN_LOG_MAX. */
typedef void database_decision_taker(void *ctx, uint64_t number, const struct drain_row *row);

struct database;

struct database_config {
	const char *dir; /* borrowed */
	size_t rows_max; /* further rows are not read */
	int busy_ms; /* how long to wait for the lock of another process */
	database_taker *take; /* NULL: rows are not read */
	/* named states (database.c); none is damaged */
	database_taker *take_memo;
	database_decision_taker *take_decision; /* NULL: they are not read */
	void *ctx;
};

/*
 * Opens or makes the database, locked for this process. A database that is damaged, of another
 * program, or of a newer version is set aside and a new one made; *note says so (else ""), and
 * rows taken before the damage stay taken. *empty: no rows. Errors: -EBUSY: another process has
 * it; -EROFS, -ENOSPC, -EACCES, -EIO, ..
 */
int database_open(struct database **d, const struct database_config *config, bool *empty,
		  struct error *note, struct error *error);
void database_close(struct database *d);

/*
 * Seals and writes rows; the first write begins a transaction. On failure the transaction is
 * undone. -ENOSPC: the disk is full; -EBADMSG: damaged; -ESTALE: the file was removed; -EROFS,
 * -EIO, ..
 */
int database_write(struct database *d, struct usage_row *rows, size_t count, struct error *error);
/* A named state, in the same transaction; replaces the one of its name. */
int database_write_memo(struct database *d, const char *name, const void *text, size_t len,
			int64_t saved_ns, struct error *error);
/* Decisions by number, in the same transaction; the table keeps the newest DRAIN_LOG_MAX. */
int database_write_decisions(struct database *d, const struct drain_rows *rows,
			     struct error *error);
/* Commits: the next process reads these rows. Rows last heard before are deleted. */
int database_commit(struct database *d, int64_t forget_before_ns, struct error *error);
void database_rollback(struct database *d);
uint64_t database_bytes(const struct database *d); /* with its log */

/* --- copies, for another aggregator ----------------------------------------------------------- */

/*
 * Opens a copy of what is committed, but for the state of that name, while no transaction is open.
 * The file has no name any more; *fd, at its beginning, is the caller's. Errors: as
 * database_write().
 */
int database_copy(struct database *d, const char *without, int *fd, struct error *error);
/* Writes a copy into the file; -errno with the reason. */
typedef int database_fetcher(void *ctx, int fd, struct error *error);
/*
 * Makes the database of the directory from what fetch() writes, once it is checked and on the disk;
 * before that it lies beside. -EEXIST: the directory has one already, and fetch() is not called;
 * -EBADMSG: damaged, of another program or a newer version; -errno of fetch() or the disk: nothing
 * is left.
 */
int database_receive(const char *dir, database_fetcher *fetch, void *ctx, struct error *error);

/* --- files of the state directory ------------------------------------------------------------- */

/* No more than these: a disk that damages every database must not be filled. */
enum { DATABASE_ASIDE_MAX = 8 };

/* "DIR/evenkeel.db"; the caller frees it. */
char *database_file_path(const char *dir);
/*
 * Makes the directory (one level, 0700) and an empty file (0600) if missing, and checks that both
 * are writable. A negative errno with a reason that has the remedy.
 */
int database_file_make(const char *dir, const char *path, struct error *error);
/*
 * Renames the database, which nobody has open, and SQLite's files beside it to "evenkeel.db.aside-
 * UNIXSECONDS". *note becomes "PATH WHY; it was set aside as NEW"; on failure *reason is set.
 */
int database_file_set_aside(const char *dir, const char *path, const char *why, int64_t now_ns,
			    struct error *note, struct error *error);
/* Number of set-aside databases. */
size_t database_file_count_aside(const char *dir);
/* The logs of a database that was removed: SQLite would apply them to its successor. */
void database_file_remove_logs(const char *path);
