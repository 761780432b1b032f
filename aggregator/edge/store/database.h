/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite database of the state directory: rows out at start, rows in with every save. One
 * thread uses it.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_STORE_DATABASE_H
#define EVENKEEL_AGGREGATOR_EDGE_STORE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/drain_log.h"
#include "aggregator/state/usage.h"
#include "shared/reason.h"

/*
 * One row of the database; what it points to lasts until it returns. 0, or negative errno: the row
 * is damaged.
 */
typedef int database_taker(void *ctx, const char *name, const void *state, size_t len,
			   struct reason *reason);

/* The same of a decision about drains; in the order of their numbers, and at most DRAIN_LOG_MAX. */
typedef void database_decision_taker(void *ctx, uint64_t number, const struct drain_row_facts *row);

struct database;

struct database_config {
	const char *dir; /* borrowed */
	size_t rows_max; /* more are not read */
	int busy_ms; /* how long to wait for another process to let go of it */
	database_taker *take; /* NULL: rows are not read */
	/* the same of what planners remember, by name; damaged is nothing of that */
	database_taker *take_memo;
	database_decision_taker *take_decision; /* NULL: they are not read */
	void *ctx;
};

/*
 * Opens or makes it, locked for this process alone. One that is damaged, of another program, or of
 * a newer version is set aside and a new one made; *note then says so (else it is ""), and rows
 * that were taken before the damage was met stay taken. *empty: it has no rows. Errors: -EBUSY
 * another process has it; -EROFS, -ENOSPC, -EACCES, -EIO, ..
 */
int database_open(struct database **d, const struct database_config *config, bool *empty,
		  struct reason *note, struct reason *reason);
void database_close(struct database *d);

/*
 * Writes rows, sealing them; the first begins a transaction. On failure the transaction is undone.
 * -ENOSPC the disk is full; -EBADMSG damaged; -ESTALE the file was taken away; -EROFS, -EIO, ..
 */
int database_write(struct database *d, struct usage_row *rows, size_t count, struct reason *reason);
/* One memo, in the same transaction, in place of what there is of that name. */
int database_write_memo(struct database *d, const char *name, const void *text, size_t len,
			int64_t saved_ns, struct reason *reason);
/*
 * Decisions, in the same transaction, by their numbers; all but the newest DRAIN_LOG_MAX of the
 * table are deleted.
 */
int database_write_decisions(struct database *d, const struct drain_rows *rows,
			     struct reason *reason);
/*
 * Ends it: from now on its rows are what the next process reads. Rows last heard before are
 * deleted.
 */
int database_commit(struct database *d, int64_t forget_before_ns, struct reason *reason);
void database_rollback(struct database *d);
uint64_t database_bytes(const struct database *d);

/* --- as files of the state directory: name, first creation, setting aside what cannot be used - */

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
