/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of user_version 3 (make_schema()):
 *
 *	node		name, heard_ns (last heard, Unix nanoseconds), state (usage_pack.h)
 *	plan_state	name, saved_ns, state as JSON: "slack" (planner/slack_memory.h), "drain"
 *			(policy/drain/drain.h), "workloads" (state/workload_memory.h);
 *			in bytes of their own "nodeKeys" (state/node_keys.c) and "demand0",
 *			"demand1", .. (state/demand.h), most of the file
 *	drain_decision	the newest decisions, numbered from 1; event is a verdict or what happened,
 *			reason a code of drain_options.h or "" (drain.h)
 *
 * Version 1 has no plan_state, version 2 no drain_decision; both are added. An unknown version is
 * set aside untouched.
 *
 * A save is one transaction, so a reader finds all of it or nothing. It goes to the write-ahead
 * log without waiting for the disk (synchronous NORMAL): a power cut may lose the last saves,
 * never half of one. Rows are complete in themselves and agents send again what is newer, so an
 * older save costs a longer catch-up at most.
 *
 * The file is locked for this process (locking_mode EXCLUSIVE): two aggregators on one directory
 * would overwrite each other's rows, so the second finds it busy. That also keeps the index of the
 * log in memory, without a shared-memory file. A killed process leaves no lock.
 *
 * A database is set aside if reading it again would change nothing: SQLite calls it corrupt or no
 * database, its check fails, a table is missing or different, the sum of a row is wrong. Temporary
 * errors (busy, full, no permission, I/O) are reported and retried.
 */
#include "aggregator/edge/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aggregator/state/usage_pack.h"
#include "shared/clock.h"
#include "shared/mem.h"

/* Limits of rows: of a node, a named state (STORE_MEMO_BYTES_MAX and its name), a decision. */
enum {
	SCHEMA_VERSION = 3,
	NODE_BYTES_MAX = 1 << 20,
	MEMO_BYTES_MAX = 17 << 20,
	DECISION_BYTES_MAX = 16384,
};
/* No count of anything is larger. */
#define NUMBER_MAX (INT64_C(1) << 53)

struct database {
	const struct database_config *config; /* borrowed while it is opened */
	database_taker *take; /* of the rows that are read */
	char *path;
	sqlite3 *db;
	sqlite3_stmt *put, *forget, *put_memo, *put_decision, *trim;
	bool in_save;
};

/* --- errors ----------------------------------------------------------------------------------- */

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* no such table, no such column */
	case SQLITE_SCHEMA:
	case SQLITE_TOOBIG:
	case SQLITE_MISMATCH:
	case SQLITE_CONSTRAINT:
		return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	default:
		return -EIO;
	}
}

static int fail(struct database *d, int code, struct error *reason)
{
	int rc = errno_of(code), system = sqlite3_system_errno(d->db);

	if (rc == -EIO && system == ENOSPC)
		rc = -ENOSPC;
	if (rc == -EBUSY)
		error_set(reason,
			  "%s: another process has it: does a second aggregator use this "
			  "--state-dir?",
			  d->path);
	else if (rc == -EBADMSG)
		error_set(reason, "is damaged (%s)", sqlite3_errmsg(d->db));
	else if (rc == -EIO && system)
		error_set(reason, "%s: %s (%s)", d->path, sqlite3_errmsg(d->db), strerror(system));
	else
		error_set(reason, "%s: %s", d->path, sqlite3_errmsg(d->db));
	return rc;
}

static int run(struct database *d, const char *sql, struct error *reason)
{
	int code = sqlite3_exec(d->db, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : fail(d, code, reason);
}

/* The first column of the first row, as a number or a text (the caller frees it). */
static int ask(struct database *d, const char *sql, int64_t *number, char **text,
	       struct error *reason)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(d->db, sql, -1, &statement, NULL), rc = 0;

	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code != SQLITE_ROW) {
		rc = fail(d, code, reason);
	} else if (number) {
		*number = sqlite3_column_int64(statement, 0);
	} else {
		const char *value = (const char *)sqlite3_column_text(statement, 0);

		*text = mem_strdup(value ? value : "");
	}
	sqlite3_finalize(statement);
	return rc;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int connect_file(struct database *d, struct error *reason)
{
	int rc = database_file_make(d->config->dir, d->path, reason), code;

	if (rc)
		return rc;
	code = sqlite3_open_v2(d->path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!d->db)
		return error_fail(reason, -ENOMEM, "%s: no memory", d->path);
	if (code != SQLITE_OK)
		return fail(d, code, reason);
	/* The schema of a file must not run code in SQLite. */
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, MEMO_BYTES_MAX);
	sqlite3_busy_timeout(d->db, d->config->busy_ms);
	/* SQLite falls back to reading. */
	if (sqlite3_db_readonly(d->db, "main") == 1)
		return error_fail(reason, -EROFS, "%s: can be read only", d->path);
	return run(d, "PRAGMA locking_mode=EXCLUSIVE", reason);
}

static int check_version(struct database *d, int64_t *version, struct error *reason)
{
	int64_t tables = 0;
	int rc = ask(d, "PRAGMA user_version", version, NULL, reason);

	if (!rc && *version == 0)
		rc = ask(d, "SELECT count(*) FROM sqlite_schema", &tables, NULL, reason);
	if (rc)
		return rc;
	if (tables)
		return error_fail(reason, -EBADMSG, "is a database of something else");
	if (*version >= 0 && *version <= SCHEMA_VERSION)
		return 0;
	return error_fail(reason, -EBADMSG,
			  "is of version %lld, newer than this program, which knows %d",
			  (long long)*version, SCHEMA_VERSION);
}

static int use_log(struct database *d, struct error *reason)
{
	char *mode = NULL;
	int rc = ask(d, "PRAGMA journal_mode=WAL", NULL, &mode, reason);

	if (!rc && (!mode || strcmp(mode, "wal") != 0))
		rc = error_fail(reason, -EIO, "%s: a write-ahead log is not possible here",
				d->path);
	free(mode);
	return rc ? rc : run(d, "PRAGMA synchronous=NORMAL", reason);
}

/* The check reports unreadable pages as damage. */
static bool is_unread(const char *verdict)
{
	static const char of_page[] = "unable to get the page. error code=";
	const char *at = strstr(verdict, of_page);

	if (at)
		return (strtol(at + strlen(of_page), NULL, 10) & 0xff) != SQLITE_CORRUPT;
	return strstr(verdict, "failed to get page") != NULL;
}

static int check_content(struct database *d, struct error *reason)
{
	char *verdict = NULL;
	int rc = ask(d, "PRAGMA quick_check(1)", NULL, &verdict, reason);

	if (!rc && verdict && is_unread(verdict)) {
		rc = error_fail(reason, -EIO, "%s: cannot be read (%s)", d->path, verdict);
	} else if (!rc && (!verdict || strcmp(verdict, "ok") != 0)) {
		rc = error_fail(reason, -EBADMSG, "is damaged (%s)",
				verdict ? verdict : "it cannot be checked");
	}
	free(verdict);
	return rc;
}

#define PLAN_TABLE                                                                                 \
	"CREATE TABLE plan_state(name TEXT PRIMARY KEY NOT NULL, saved_ns INTEGER NOT NULL, "      \
	"state BLOB NOT NULL) STRICT;"

#define DECISION_TABLE                                                                             \
	"CREATE TABLE drain_decision(number INTEGER PRIMARY KEY NOT NULL, time_ns INTEGER NOT "    \
	"NULL, event TEXT NOT NULL, reason TEXT NOT NULL, node TEXT NOT NULL, text TEXT NOT "      \
	"NULL) STRICT;"                                                                            \
	"PRAGMA user_version=3;"

static int migrate(struct database *d, int64_t version, struct error *reason)
{
	if (version == SCHEMA_VERSION)
		return 0;
	return run(d,
		   version == 1 ? "BEGIN IMMEDIATE;" PLAN_TABLE DECISION_TABLE "COMMIT"
				: "BEGIN IMMEDIATE;" DECISION_TABLE "COMMIT",
		   reason);
}

static int make_schema(struct database *d, struct error *reason)
{
	return run(d,
		   "BEGIN IMMEDIATE;CREATE TABLE node(name TEXT PRIMARY KEY NOT NULL, heard_ns "
		   "INTEGER NOT NULL, state BLOB NOT NULL) STRICT;CREATE INDEX node_heard ON "
		   "node(heard_ns);" PLAN_TABLE DECISION_TABLE "COMMIT",
		   reason);
}

static int prepare(struct database *d, struct error *reason)
{
	const struct {
		const char *sql;
		sqlite3_stmt **statement;
	} all[] = {
		{"INSERT INTO node(name, heard_ns, state) VALUES(?1, ?2, ?3) ON CONFLICT(name) DO "
		 "UPDATE SET heard_ns = ?2, state = ?3",
		 &d->put},
		{"DELETE FROM node WHERE heard_ns < ?1", &d->forget},
		{"INSERT INTO plan_state(name, saved_ns, state) VALUES(?1, ?2, ?3) ON "
		 "CONFLICT(name) DO UPDATE SET saved_ns = ?2, state = ?3",
		 &d->put_memo},
		{"INSERT OR REPLACE INTO drain_decision(number, time_ns, event, reason, node, "
		 "text) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
		 &d->put_decision},
		{"DELETE FROM drain_decision WHERE number <= ?1", &d->trim},
	};
	int code = SQLITE_OK;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && code == SQLITE_OK; i++)
		code = sqlite3_prepare_v3(d->db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
					  all[i].statement, NULL);
	return code == SQLITE_OK ? 0 : fail(d, code, reason);
}

/* A node, or a named state. */
static int take_row(struct database *d, sqlite3_stmt *row, struct error *reason)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	const void *state = sqlite3_column_blob(row, 1);
	int rc;

	if (sqlite3_column_type(row, 1) == SQLITE_BLOB && !state)
		state = ""; /* SQLite's empty blob */
	if ((!name || !state) && sqlite3_errcode(d->db) == SQLITE_NOMEM)
		return fail(d, SQLITE_NOMEM, reason);
	if (!name || !state)
		return error_fail(reason, -EBADMSG, "is damaged (a row without name or state)");
	rc = d->take(d->config->ctx, name, state, (size_t)sqlite3_column_bytes(row, 1), reason);
	if (!rc)
		return 0;
	return error_at(reason, -EBADMSG, "is damaged (the row of node \"%.253s\")", name);
}

/* Reads at most `most` rows of at most bytes_max. */
static int read_rows(struct database *d, const char *sql, int64_t most, int bytes_max,
		     int (*take)(struct database *d, sqlite3_stmt *row, struct error *reason),
		     struct error *reason)
{
	sqlite3_stmt *row = NULL;
	int code, rc = 0;

	sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, bytes_max);
	code = sqlite3_prepare_v2(d->db, sql, -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(row, 1, most);
	if (code == SQLITE_OK)
		while (!rc && (code = sqlite3_step(row)) == SQLITE_ROW)
			rc = take(d, row, reason);
	if (!rc && code != SQLITE_DONE && code != SQLITE_ROW)
		rc = fail(d, code, reason);
	sqlite3_finalize(row);
	sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, MEMO_BYTES_MAX);
	return rc;
}

static int take_decision(struct database *d, sqlite3_stmt *row, struct error *reason)
{
	int64_t number = sqlite3_column_int64(row, 0);
	const char *text[4];

	for (int i = 0; i < 4; i++)
		text[i] = (const char *)sqlite3_column_text(row, i + 2);
	if ((!text[0] || !text[1] || !text[2] || !text[3]) &&
	    sqlite3_errcode(d->db) == SQLITE_NOMEM)
		return fail(d, SQLITE_NOMEM, reason);
	if (number < 1 || number > NUMBER_MAX || !text[0] || !text[1] || !text[2] || !text[3])
		return error_fail(reason, -EBADMSG, "is damaged (decision %lld)",
				  (long long)number);
	d->config->take_decision(d->config->ctx, (uint64_t)number,
				 &(struct drain_row){.time_ns = sqlite3_column_int64(row, 1),
						     text[0],
						     text[1],
						     text[2],
						     text[3]});
	return 0;
}

static int read_content(struct database *d, struct error *reason)
{
	const struct database_config *c = d->config;
	int64_t most = (int64_t)c->rows_max;
	int rc = 0;

	d->take = c->take;
	if (d->take)
		rc = read_rows(d, "SELECT name, state FROM node LIMIT ?1", most, NODE_BYTES_MAX,
			       take_row, reason);
	d->take = c->take_memo;
	if (!rc && d->take)
		rc = read_rows(d, "SELECT name, state FROM plan_state ORDER BY name LIMIT ?1", most,
			       MEMO_BYTES_MAX, take_row, reason);
	if (!rc && c->take_decision)
		rc = read_rows(d,
			       "SELECT * FROM (SELECT number, time_ns, event, reason, node, text "
			       "FROM drain_decision ORDER BY number DESC LIMIT ?1) ORDER BY number",
			       DRAIN_LOG_MAX, DECISION_BYTES_MAX, take_decision, reason);
	return rc;
}

/* -EBADMSG: the reason is the fault, to follow the name of the file. */
static int open_once(struct database *d, bool *empty, struct error *reason)
{
	int64_t version = 0, rows = 0;
	int rc = connect_file(d, reason);

	if (!rc)
		rc = check_version(d, &version, reason);
	if (!rc)
		rc = use_log(d, reason);
	if (!rc)
		rc = version ? check_content(d, reason) : make_schema(d, reason);
	if (!rc && version)
		rc = migrate(d, version, reason);
	if (!rc)
		rc = prepare(d, reason);
	if (!rc)
		rc = ask(d, "SELECT EXISTS(SELECT 1 FROM node)", &rows, NULL, reason);
	if (!rc)
		rc = read_content(d, reason);
	*empty = rows == 0;
	return rc;
}

static void disconnect(struct database *d)
{
	sqlite3_stmt *statement;

	while (d->db && (statement = sqlite3_next_stmt(d->db, NULL)) != NULL)
		sqlite3_finalize(statement);
	sqlite3_close(d->db);
	d->db = NULL;
	d->in_save = false;
}

int database_open(struct database **out, const struct database_config *config, bool *empty,
		  struct error *note, struct error *reason)
{
	struct database *d = mem_zalloc(1, sizeof(*d));
	int rc;

	d->config = config;
	d->path = database_file_path(config->dir);
	note->text[0] = '\0';
	rc = open_once(d, empty, reason);
	if (rc == -EBADMSG) {
		struct error error = *reason;

		/* Untouched: closing must not write the log into a file that is not understood. */
		sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		disconnect(d);
		rc = database_file_set_aside(config->dir, d->path, error.text, clock_wall_ns(),
					     note, reason);
		if (!rc)
			rc = open_once(d, empty, reason);
		if (rc == -EBADMSG)
			error_prefix(reason, "%s", d->path);
	}
	d->config = NULL;
	if (rc) {
		database_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void database_close(struct database *d)
{
	if (!d)
		return;
	disconnect(d);
	free(d->path);
	free(d);
}

/* --- saving ----------------------------------------------------------------------------------- */

static int begin(struct database *d, struct error *reason)
{
	int moved = 0, rc;

	if (d->in_save)
		return 0;
	sqlite3_file_control(d->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (moved)
		return error_fail(reason, -ESTALE, "%s: was moved or removed while it was in use",
				  d->path);
	rc = run(d, "BEGIN IMMEDIATE", reason);
	d->in_save = !rc;
	return rc;
}

/* The reason of a damaged database lacks its name. */
static int undo(struct database *d, int rc, struct error *reason)
{
	database_rollback(d);
	if (rc == -EBADMSG)
		error_prefix(reason, "%s", d->path);
	return rc;
}

static int step(struct database *d, sqlite3_stmt *statement, struct error *reason)
{
	int code = sqlite3_step(statement);
	int rc = code == SQLITE_DONE ? 0 : fail(d, code, reason);

	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return rc;
}

static int put_row(struct database *d, struct usage_row *row, struct error *reason)
{
	usage_pack_seal(row->name, &row->packed);
	sqlite3_bind_text(d->put, 1, row->name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(d->put, 2, row->heard_ns);
	sqlite3_bind_blob64(d->put, 3, row->packed.data, row->packed.len, SQLITE_STATIC);
	return step(d, d->put, reason);
}

int database_write(struct database *d, struct usage_row *rows, size_t count, struct error *reason)
{
	int rc = begin(d, reason);

	for (size_t i = 0; i < count && !rc; i++)
		rc = put_row(d, &rows[i], reason);
	return rc ? undo(d, rc, reason) : 0;
}

int database_write_memo(struct database *d, const char *name, const void *text, size_t len,
			int64_t saved_ns, struct error *reason)
{
	int rc = begin(d, reason);

	if (!rc) {
		sqlite3_bind_text(d->put_memo, 1, name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(d->put_memo, 2, saved_ns);
		sqlite3_bind_blob64(d->put_memo, 3, text, len, SQLITE_STATIC);
		rc = step(d, d->put_memo, reason);
	}
	return rc ? undo(d, rc, reason) : 0;
}

static int put_decision(struct database *d, uint64_t number, const struct drain_row *row,
			struct error *reason)
{
	sqlite3_bind_int64(d->put_decision, 1, (sqlite3_int64)number);
	sqlite3_bind_int64(d->put_decision, 2, row->time_ns);
	sqlite3_bind_text(d->put_decision, 3, row->event, -1, SQLITE_STATIC);
	sqlite3_bind_text(d->put_decision, 4, row->reason, -1, SQLITE_STATIC);
	sqlite3_bind_text(d->put_decision, 5, row->node, -1, SQLITE_STATIC);
	sqlite3_bind_text(d->put_decision, 6, row->text, -1, SQLITE_STATIC);
	return step(d, d->put_decision, reason);
}

int database_write_decisions(struct database *d, const struct drain_rows *rows,
			     struct error *reason)
{
	int64_t last = (int64_t)(rows->first + rows->count) - 1;
	int rc;

	if (!rows->count)
		return 0;
	rc = begin(d, reason);
	for (size_t i = 0; i < rows->count && !rc; i++)
		rc = put_decision(d, rows->first + i, rows->of[i], reason);
	if (!rc) {
		sqlite3_bind_int64(d->trim, 1, last - DRAIN_LOG_MAX);
		rc = step(d, d->trim, reason);
	}
	return rc ? undo(d, rc, reason) : 0;
}

int database_commit(struct database *d, int64_t forget_before_ns, struct error *reason)
{
	int rc = begin(d, reason);

	if (!rc) {
		sqlite3_bind_int64(d->forget, 1, forget_before_ns);
		rc = step(d, d->forget, reason);
	}
	if (!rc)
		rc = run(d, "COMMIT", reason);
	if (rc)
		return undo(d, rc, reason);
	d->in_save = false;
	return 0;
}

void database_rollback(struct database *d)
{
	if (d->in_save)
		sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
	d->in_save = false;
}

uint64_t database_bytes(const struct database *d)
{
	char *wal = mem_printf("%s-wal", d->path);
	struct stat st;
	uint64_t bytes = 0;

	if (!stat(d->path, &st))
		bytes += (uint64_t)st.st_size;
	if (!stat(wal, &st))
		bytes += (uint64_t)st.st_size;
	free(wal);
	return bytes;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Runs a statement with one text. */
static int run_with(struct database *d, const char *sql, const char *text, struct error *reason)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(d->db, sql, -1, &statement, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	sqlite3_finalize(statement);
	return code == SQLITE_DONE ? 0 : fail(d, code, reason);
}

static int open_copy(struct database *copy, int flags, struct error *reason)
{
	int code = sqlite3_open_v2(copy->path, &copy->db, flags | SQLITE_OPEN_NOMUTEX, NULL);

	return code == SQLITE_OK ? 0 : fail(copy, code, reason);
}

/* The pages of the deleted rows are overwritten. */
static int leave_out(char *path, const char *name, struct error *reason)
{
	struct database copy = {.path = path};
	int rc = open_copy(&copy, SQLITE_OPEN_READWRITE, reason);

	if (!rc)
		rc = run(&copy, "PRAGMA journal_mode=OFF;PRAGMA secure_delete=ON", reason);
	if (!rc)
		rc = run_with(&copy, "DELETE FROM plan_state WHERE name = ?1", name, reason);
	sqlite3_close(copy.db);
	return rc;
}

int database_copy(struct database *d, const char *without, int *fd, struct error *reason)
{
	char *path = mem_printf("%s.copy", d->path);
	int rc, file = -1;

	unlink(path);
	/* SQLite would make it readable for others; it fills an empty file. */
	file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = file < 0 ? error_system(reason, -errno, "%s: cannot be made", path)
		      : run_with(d, "VACUUM INTO ?1", path, reason);
	if (!rc)
		rc = leave_out(path, without, reason);
	unlink(path);
	free(path);
	if (rc)
		file_close(file);
	else
		*fd = file;
	return rc;
}

static int check_copy(char *path, struct error *reason)
{
	struct database copy = {.path = path};
	int64_t version = 0;
	int rc = open_copy(&copy, SQLITE_OPEN_READONLY, reason);

	if (!rc)
		rc = check_version(&copy, &version, reason);
	if (!rc && !version)
		rc = error_fail(reason, -EBADMSG, "is empty");
	if (!rc)
		rc = check_content(&copy, reason);
	sqlite3_close(copy.db);
	return rc == -EBADMSG ? error_at(reason, rc, "the copy") : rc;
}

static int receive(char *part, const char *path, database_fetcher *fetch, void *ctx,
		   struct error *reason)
{
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return error_system(reason, -errno, "%s: cannot be made", part);
	rc = fetch(ctx, fd, reason);
	if (!rc && fsync(fd))
		rc = error_system(reason, -errno, "%s: cannot be written", part);
	close(fd);
	if (!rc)
		rc = check_copy(part, reason);
	if (!rc)
		database_file_remove_logs(path);
	if (!rc && rename(part, path))
		rc = error_system(reason, -errno, "%s: cannot be made", path);
	if (rc)
		unlink(part);
	return rc;
}

int database_receive(const char *dir, database_fetcher *fetch, void *ctx, struct error *reason)
{
	char *path = database_file_path(dir), *part = mem_printf("%s.part", path);
	int rc = -EEXIST;

	if (access(path, F_OK)) {
		mkdir(dir, 0700); /* a directory that cannot be made fails with its file */
		rc = receive(part, path, fetch, ctx, reason);
	}
	free(path);
	free(part);
	return rc;
}
