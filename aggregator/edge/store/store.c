/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	loop thread --- batches ---> queue --> store thread --> SQLite
 *	     ^                                     |
 *	     +--------- wake, events <-------------+
 *
 * A database that cannot be opened, or that failed in a way that may concern its file, is opened
 * again every retry_ns; a batch fails at once meanwhile. After a full disk or a busy file the
 * database stays open for the next save. This thread unpacks rows, so the loop takes over finished
 * nodes.
 */
#include "aggregator/edge/store/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "aggregator/edge/store/database.h"
#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/thread.h"

struct store {
	/* fixed after start */
	struct store_config config;
	struct helper helper;

	/* store thread */
	struct database *database; /* NULL: not open */
	bool opened; /* once: rows were read */
	int64_t try_ns; /* monotonic: of the next opening */
	uint64_t save; /* of the open transaction; 0: none */
	uint64_t failed; /* the save that failed */
	int64_t begun_ns; /* monotonic: of its first batch */
	struct error why_closed;

	pthread_mutex_t lock;
	pthread_cond_t news;
	/* under lock */
	struct store_batch *batches; /* owned, oldest first */
	struct store_event *events; /* owned, oldest first */
};

/* --- messages --------------------------------------------------------------------------------- */

struct store_batch *store_batch_new(uint64_t save)
{
	struct store_batch *b = mem_zalloc(1, sizeof(*b));

	b->save = save;
	return b;
}

static struct store_event *event_new(enum store_event_kind kind)
{
	struct store_event *e = mem_zalloc(1, sizeof(*e));

	e->kind = kind;
	e->copy = -1;
	return e;
}

static void drop_content(struct store_event *e)
{
	for (size_t i = 0; i < e->node_count; i++)
		usage_node_free(e->nodes[i]);
	free(e->nodes);
	for (size_t i = 0; i < e->memo_count; i++) {
		free(e->memos[i].name);
		free(e->memos[i].text);
	}
	free(e->memos);
	for (size_t i = 0; i < e->decision_count; i++)
		drain_row_drop(e->decisions[i]);
	free(e->decisions);
	e->nodes = NULL;
	e->memos = NULL;
	e->decisions = NULL;
	e->node_count = e->memo_count = e->decision_count = 0;
}

void store_event_free(struct store_event *e)
{
	if (!e)
		return;
	drop_content(e);
	file_close(e->copy);
	free(e);
}

static void tell(struct store *s, struct store_event *e)
{
	pthread_mutex_lock(&s->lock);
	DL_APPEND(s->events, e);
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
	s->config.wake(s->config.ctx);
}

struct store_event *store_take(struct store *s, int64_t timeout_ns)
{
	int64_t until_ns = clock_mono_ns() + timeout_ns;
	struct store_event *e;

	pthread_mutex_lock(&s->lock);
	while (!s->events && timeout_ns > 0 && thread_cond_wait(&s->news, &s->lock, until_ns))
		continue;
	e = s->events;
	if (e)
		DL_DELETE(s->events, e);
	pthread_mutex_unlock(&s->lock);
	return e;
}

void store_put(struct store *s, struct store_batch *batch)
{
	pthread_mutex_lock(&s->lock);
	DL_APPEND(s->batches, batch);
	pthread_mutex_unlock(&s->lock);
	helper_wake(&s->helper);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int take_row(void *ctx, const char *name, const void *state, size_t len,
		    struct error *reason)
{
	struct store_event *e = ctx;
	struct usage_node *n;
	int rc = usage_node_unpack(name, state, len, &n, reason);

	if (rc)
		return rc;
	ARRAY_ADD(e->nodes, e->node_count) = n;
	return 0;
}

/* The planner that wrote it checks it. */
static int take_memo(void *ctx, const char *name, const void *state, size_t len,
		     struct error *reason)
{
	struct store_event *e = ctx;
	char *text;

	(void)reason;
	if (e->memo_count == STORE_MEMOS_MAX)
		return 0;
	/* It may hold zeros. */
	text = mem_alloc(len + 1);
	memcpy(text, state, len);
	text[len] = '\0';
	ARRAY_ADD(e->memos, e->memo_count) = (struct store_recalled){mem_strdup(name), text, len};
	return 0;
}

/* At most DRAIN_LOG_MAX, in order. */
static void take_decision(void *ctx, uint64_t number, const struct drain_row *row)
{
	struct store_event *e = ctx;

	if (!e->decisions)
		e->decisions = mem_zalloc(DRAIN_LOG_MAX, sizeof(struct drain_row *));
	if (e->decision_count == DRAIN_LOG_MAX)
		return;
	e->decisions[e->decision_count++] = drain_row_new(row);
	e->decision_last = number;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(struct usage_node *const *)a)->name,
		      (*(struct usage_node *const *)b)->name);
}

static void count_files(struct store *s, struct store_event *e)
{
	e->bytes = database_bytes(s->database);
	e->aside = database_file_count_aside(s->config.dir);
}

static void open_database(struct store *s)
{
	struct store_event *e = event_new(STORE_OPENED);
	struct database_config config = {
		.dir = s->config.dir,
		.rows_max = s->config.nodes_max,
		.busy_ms = s->config.busy_ms,
		.take = s->opened ? NULL : take_row,
		.take_memo = s->opened ? NULL : take_memo,
		.take_decision = s->opened ? NULL : take_decision,
		.ctx = e,
	};
	int64_t start_ns = clock_mono_ns();

	if (database_open(&s->database, &config, &e->empty, &e->note, &e->error)) {
		e->kind = STORE_NOT_OPENED;
		s->why_closed = e->error;
		s->try_ns = clock_mono_ns() + s->config.retry_ns;
		drop_content(e); /* it will be read again */
	} else {
		s->opened = true;
		count_files(s, e);
	}
	array_sort(e->nodes, e->node_count, sizeof(struct usage_node *), compare_names);
	e->took_ns = clock_mono_ns() - start_ns;
	tell(s, e);
}

/* --- saving ----------------------------------------------------------------------------------- */

static int write_batch(struct store *s, struct store_batch *b, struct error *reason)
{
	int rc;

	if (!s->database) {
		*reason = s->why_closed;
		return -ENOTCONN;
	}
	if (b->save != s->save) {
		database_rollback(s->database);
		s->save = b->save;
		s->begun_ns = clock_mono_ns();
	}
	rc = database_write(s->database, b->rows, b->count, reason);
	for (size_t i = 0; i < b->memo_count && !rc; i++)
		rc = database_write_memo(s->database, b->memos[i].name, b->memos[i].text->data,
					 b->memos[i].text->len, b->saved_ns, reason);
	if (!rc)
		rc = database_write_decisions(s->database, &b->decisions, reason);
	if (!rc && b->last)
		rc = database_commit(s->database, b->forget_before_ns, reason);
	return rc;
}

static void fail_save(struct store *s, uint64_t save, int rc, const struct error *error)
{
	s->save = 0;
	s->failed = save;
	/* The file itself is not at fault. */
	if (!s->database || rc == -ENOSPC || rc == -EBUSY)
		return;
	s->why_closed = *error;
	database_close(s->database);
	s->database = NULL;
	s->try_ns = clock_mono_ns() + s->config.retry_ns;
}

static void handle(struct store *s, struct store_batch *b)
{
	struct store_event *e = event_new(STORE_FAILED);
	int rc = -ECANCELED;

	e->save = b->save;
	if (b->save == s->failed)
		error_set(&e->error, "a part of this save failed already");
	else
		rc = write_batch(s, b, &e->error);
	if (rc && rc != -ECANCELED) {
		fail_save(s, b->save, rc, &e->error);
	} else if (!rc) {
		e->kind = b->last ? STORE_SAVED : STORE_WRITTEN;
		e->took_ns = clock_mono_ns() - s->begun_ns;
		if (b->last) {
			s->save = 0;
			count_files(s, e);
		}
	}
	tell(s, e);
}

static void copy(struct store *s, const char *without)
{
	struct store_event *e = event_new(STORE_COPIED);

	if (s->database)
		database_copy(s->database, without, &e->copy, &e->error);
	else
		e->error = s->why_closed;
	tell(s, e);
}

/* --- thread ----------------------------------------------------------------------------------- */

/* The next batch; NULL: there is none. */
static struct store_batch *next_batch(struct store *s)
{
	struct store_batch *b;

	pthread_mutex_lock(&s->lock);
	b = s->batches;
	if (b)
		DL_DELETE(s->batches, b);
	pthread_mutex_unlock(&s->lock);
	return b;
}

static void *work(void *arg)
{
	struct store *s = arg;
	struct store_batch *b;

	open_database(s);
	do {
		while ((b = next_batch(s)) != NULL) {
			if (b->copy_without)
				copy(s, b->copy_without);
			else
				handle(s, b);
			for (size_t i = 0; i < b->count; i++)
				usage_row_fini(&b->rows[i]);
			for (size_t i = 0; i < b->memo_count; i++)
				shared_body_drop(b->memos[i].text);
			drain_rows_fini(&b->decisions);
			free(b);
		}
		if (!s->database && clock_mono_ns() >= s->try_ns)
			open_database(s);
	} while (helper_wait(&s->helper, s->database ? INT64_MAX : s->try_ns));
	database_close(s->database);
	return NULL;
}

int store_start(struct store **out, const struct store_config *config, struct error *reason)
{
	struct store *s = mem_zalloc(1, sizeof(*s));
	int rc;

	s->config = *config;
	pthread_mutex_init(&s->lock, NULL);
	thread_cond_init(&s->news);
	rc = helper_start(&s->helper, "the database", work, s, reason);
	if (rc)
		store_stop(s);
	else
		*out = s;
	return rc;
}

void store_stop(struct store *s)
{
	struct store_event *e;

	if (!s)
		return;
	helper_stop(&s->helper);
	while ((e = store_take(s, 0)) != NULL)
		store_event_free(e);
	pthread_cond_destroy(&s->news);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
