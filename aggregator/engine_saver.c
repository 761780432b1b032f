/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A save goes over the nodes in slices: the loop packs a slice, the store writes it, and its answer
 * lets the loop pack the next. So the loop blocks for one slice at a time, one slice is in memory
 * twice, and a slow disk slows down the save alone:
 *
 *	timer --> begin --> pack a slice --> store --> written --> pack a slice .. the last --> saved
 *			      |
 *			      +--> failed --> alarm, again after RETRY_NS or --save-interval
 *
 * The first slice also has what changed of plans, use of workloads, demand and keys of nodes, and new
 * decisions: in the same transaction, so that one file has one moment. Nodes that change meanwhile are in the
 * next save.
 *
 * A failed save loses nothing: nodes (usage.c: is_saved()) and decisions stay unsaved in memory,
 * and go with the next save. Meanwhile the service goes on, the alarm is up, and each change of
 * that is one line in the log. A process that ends makes a last save; usage.c says why the last
 * regular save is enough after a kill.
 */
#include "aggregator/engine_saver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/ingest_copy.h"
#include "aggregator/edge/store/database.h"
#include "aggregator/edge/store/store.h"
#include "aggregator/engine_publisher.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define LOAD_NS	  (20 * NS_PER_SEC) /* how long a start waits for the database .. */
#define FINISH_NS (10 * NS_PER_SEC) /* .. and an end for each slice of the last save */
#define RETRY_NS  (10 * NS_PER_SEC)

enum {
	BUSY_MS = 5000,
	/* A save has at most so much demand, and a shard: the loop waits while it is written. */
	DEMAND_BYTES = 1 << 20,
};

static const char *const demand_shards[DEMAND_SHARDS] = {
	SAVER_DEMAND "0",  SAVER_DEMAND "1",  SAVER_DEMAND "2",	 SAVER_DEMAND "3",
	SAVER_DEMAND "4",  SAVER_DEMAND "5",  SAVER_DEMAND "6",	 SAVER_DEMAND "7",
	SAVER_DEMAND "8",  SAVER_DEMAND "9",  SAVER_DEMAND "10", SAVER_DEMAND "11",
	SAVER_DEMAND "12", SAVER_DEMAND "13", SAVER_DEMAND "14", SAVER_DEMAND "15",
};

struct saver {
	/* fixed after start */
	struct saver_config config;
	struct store_counters *counters;
	struct store *store;
	struct copier *copier; /* NULL: nobody gets copies */

	/* loop thread */
	uv_async_t news, wanted;
	uv_timer_t timer;
	bool copy_wanted;
	uint64_t save; /* under way, 0: none */
	bool was_open;
	bool failing;
	struct error why; /* of the failure that was logged last */
	/* Plan state in the database, and in the save under way; held. */
	struct shared_body *saved[PLAN_PARTS], *saving[PLAN_PARTS];
	struct workload_table *workloads_saved, *workloads_saving; /* likewise */
	unsigned int demand_shard; /* the next one to save */
	bool finishing; /* the save under way is the last: with all shards */
	bool too_long[PLAN_PARTS]; /* it was, and that was logged */
	uint64_t keys_saved, keys_saving; /* generations of node keys, likewise */
	uint64_t decided_saved, decided_saving; /* numbers of the newest decision, likewise */
};

/* Any thread. */
static void wake(void *async)
{
	uv_async_send(async);
}

static void on_timer(uv_timer_t *timer);

static void save_in(struct saver *s, int64_t ns)
{
	uv_timer_start(&s->timer, on_timer, (uint64_t)(ns / NS_PER_MS), 0);
}

/* --- what is wrong ---------------------------------------------------------------------------- */

static void note_failure(struct saver *s, const struct error *why)
{
	counter_add(&s->counters->failures, 1);
	counter_set(&s->counters->alarm, 1);
	if (s->failing && strcmp(s->why.text, why->text) == 0)
		return;
	s->failing = true;
	s->why = *why;
	log_error("nothing is being saved: %s", why->text);
}

/* --- saving ----------------------------------------------------------------------------------- */

static void forget_bodies(struct shared_body *of[PLAN_PARTS])
{
	for (int p = 0; p < PLAN_PARTS; p++) {
		shared_body_drop(of[p]);
		of[p] = NULL;
	}
}

static bool is_to_be_saved(struct saver *s, enum plan_part p, const struct shared_body *text)
{
	if (!text || text == s->saved[p])
		return false;
	if (text->len <= STORE_MEMO_BYTES_MAX) {
		s->too_long[p] = false;
		return true;
	}
	if (!s->too_long[p])
		log_warn("what %s remembers is not saved: it has %zu bytes, more than %d",
			 plan_part_name(p), text->len, STORE_MEMO_BYTES_MAX);
	s->too_long[p] = true;
	return false;
}

static void add_memos(struct saver *s, struct store_batch *batch)
{
	struct plan_result *r = plan_slot_take(s->config.plans);

	forget_bodies(s->saving);
	batch->saved_ns = clock_wall_ns();
	for (int p = 0; r && p < PLAN_PARTS; p++) {
		if (!is_to_be_saved(s, (enum plan_part)p, r->memory[p]))
			continue;
		s->saving[p] = shared_body_hold(r->memory[p]);
		batch->memos[batch->memo_count++] =
			(struct store_memo){plan_part_name((enum plan_part)p),
					    shared_body_hold(r->memory[p])};
	}
	plan_result_drop(r);
}

static void add_workloads(struct saver *s, struct store_batch *batch)
{
	struct view *v = view_slot_take(s->config.views);
	struct workload_table *t = v->owners ? v->owners->workloads : NULL;
	struct buf text = BUF_INIT;

	workload_table_drop(s->workloads_saving);
	s->workloads_saving = NULL;
	if (t && t != s->workloads_saved) {
		s->workloads_saving = workload_table_hold(t);
		workload_table_write(t, &text);
		batch->memos[batch->memo_count++] =
			(struct store_memo){SAVER_WORKLOADS, shared_body_new(&text)};
	}
	view_drop(v);
}

/* In a small cluster all of it; in a large one a shard, in turn. */
static void add_demand(struct saver *s, struct store_batch *batch)
{
	struct view *v = view_slot_take(s->config.views);
	size_t bytes = 0;

	for (int n = 0; v->demand && n < DEMAND_SHARDS && (s->finishing || bytes < DEMAND_BYTES);
	     n++) {
		struct buf text = BUF_INIT;
		struct jsonw w;

		jsonw_init(&w, &text);
		demand_write(v->demand, (int)s->demand_shard, &w);
		bytes += text.len;
		batch->memos[batch->memo_count++] =
			(struct store_memo){demand_shards[s->demand_shard], shared_body_new(&text)};
		s->demand_shard = (s->demand_shard + 1) % DEMAND_SHARDS;
	}
	view_drop(v);
}

/* Keys from the database come back with its opening: what is saved before lacks them. */
static void add_node_keys(struct saver *s, struct store_batch *batch)
{
	struct buf text = BUF_INIT;

	s->keys_saving = s->keys_saved;
	if (!s->was_open || node_keys_generation(s->config.node_keys) == s->keys_saved)
		return;
	s->keys_saving = node_keys_generation(s->config.node_keys);
	node_keys_write(s->config.node_keys, clock_wall_ns(), &text);
	batch->memos[batch->memo_count++] =
		(struct store_memo){SAVER_NODE_KEYS, shared_body_new(&text)};
}

/* Numbers of decisions are known only after the database was read. */
static void add_decisions(struct saver *s, struct store_batch *batch)
{
	s->decided_saving = s->decided_saved;
	if (!s->was_open)
		return;
	drain_log_read(s->config.decisions, s->decided_saved, &batch->decisions);
	if (batch->decisions.count)
		s->decided_saving = batch->decisions.first + batch->decisions.count - 1;
}

static void note_memos(struct saver *s)
{
	s->decided_saved = s->decided_saving;
	s->keys_saved = s->keys_saving;
	if (s->workloads_saving) {
		workload_table_drop(s->workloads_saved);
		s->workloads_saved = s->workloads_saving;
		s->workloads_saving = NULL;
	}
	for (int p = 0; p < PLAN_PARTS; p++) {
		if (!s->saving[p])
			continue;
		shared_body_drop(s->saved[p]);
		s->saved[p] = s->saving[p];
		s->saving[p] = NULL;
	}
}

static void put_slice(struct saver *s, bool first)
{
	struct store_batch *batch = store_batch_new(s->save);

	if (first) {
		add_memos(s, batch);
		add_workloads(s, batch);
		add_demand(s, batch);
		add_node_keys(s, batch);
		add_decisions(s, batch);
	}
	batch->count = usage_save_next(s->config.usage, batch->rows, STORE_BATCH_ROWS);
	batch->last = batch->count < STORE_BATCH_ROWS;
	batch->forget_before_ns = usage_forget_before_ns(clock_wall_ns());
	store_put(s->store, batch);
}

static void begin_save(struct saver *s)
{
	s->save = usage_save_begin(s->config.usage);
	put_slice(s, true);
}

static void on_timer(uv_timer_t *timer)
{
	struct saver *s = timer->data;

	if (!s->save)
		begin_save(s);
}

/* Nodes enrol with each aggregator: its keys are of no use to another one. */
static void put_copy(struct saver *s)
{
	struct store_batch *batch = store_batch_new(0);

	batch->copy_without = SAVER_NODE_KEYS;
	s->copy_wanted = false;
	store_put(s->store, batch);
}

static void on_wanted(uv_async_t *wanted)
{
	struct saver *s = wanted->data;

	s->copy_wanted = true;
	if (!s->save)
		begin_save(s);
}

static void on_copied(struct saver *s, struct store_event *e)
{
	int fd = e->copy;

	e->copy = -1;
	s->copy_wanted = false;
	if (s->copier)
		copier_give(s->copier, fd, &e->error);
	else
		file_close(fd);
}

static void on_saved(struct saver *s, const struct store_event *e)
{
	usage_save_done(s->config.usage, e->save);
	note_memos(s);
	s->save = 0;
	counter_add(&s->counters->saves, 1);
	counter_set(&s->counters->saved_ns, (uint64_t)clock_wall_ns());
	counter_set(&s->counters->save_took_ns, (uint64_t)e->took_ns);
	counter_set(&s->counters->bytes, e->bytes);
	counter_set(&s->counters->aside, e->aside);
	counter_set(&s->counters->alarm, 0);
	if (s->failing)
		log_info("everything is being saved again");
	s->failing = false;
	if (s->copy_wanted && !s->finishing)
		put_copy(s);
	save_in(s, s->config.every_ns);
}

/* --- opening ---------------------------------------------------------------------------------- */

static size_t restore(struct saver *s, struct store_event *e)
{
	size_t restored = 0, future = 0, beyond = 0;

	for (size_t i = 0; i < e->node_count; i++) {
		int rc = usage_restore(s->config.usage, e->nodes[i], clock_wall_ns());

		e->nodes[i] = NULL;
		restored += rc == 0;
		future += rc == -ERANGE;
		beyond += rc == -ENOSPC;
	}
	if (future)
		log_warn("%zu nodes in the database are from the future and were left out: is the "
			 "clock right?",
			 future);
	if (beyond)
		log_warn("%zu nodes in the database are over the limit and were left out", beyond);
	return restored;
}

/* A database that is opened again may be another file: then all decisions are due. */
static void restore_decisions(struct saver *s, struct store_event *e)
{
	s->decided_saved = s->was_open || e->note.text[0] ? 0 : e->decision_last;
	if (s->was_open)
		return;
	drain_log_restore(s->config.decisions, e->decisions, e->decision_count, e->decision_last);
	e->decision_count = 0; /* they are the log's */
}

static void on_opened(struct saver *s, struct store_event *e)
{
	size_t restored = restore(s, e);

	if (e->note.text[0])
		log_error("%s", e->note.text);
	/* A database that is opened again may be another file. */
	if (e->empty || s->was_open) {
		usage_save_reset(s->config.usage);
		forget_bodies(s->saved);
		s->keys_saved = 0;
		workload_table_drop(s->workloads_saved);
		s->workloads_saved = NULL;
	}
	for (size_t i = 0; i < e->memo_count; i++)
		s->config.recalled(s->config.ctx, e->memos[i].name, e->memos[i].text,
				   e->memos[i].len);
	restore_decisions(s, e);
	s->was_open = true;
	counter_set(&s->counters->bytes, e->bytes);
	counter_set(&s->counters->aside, e->aside);
	if (e->node_count) {
		counter_set(&s->counters->loaded, restored);
		counter_set(&s->counters->load_took_ns, (uint64_t)e->took_ns);
		log_info("windows of %zu nodes are back from the database, after %.0f ms", restored,
			 (double)e->took_ns / NS_PER_MS);
	}
	if (restored)
		publisher_publish(s->config.publisher);
	/* Changes without a database are due. */
	if (s->failing && !s->save)
		begin_save(s);
}

static void on_event(struct saver *s, struct store_event *e)
{
	switch (e->kind) {
	case STORE_OPENED:
		on_opened(s, e);
		break;
	case STORE_NOT_OPENED:
		note_failure(s, &e->error);
		break;
	case STORE_WRITTEN:
		if (e->save == s->save)
			put_slice(s, false);
		break;
	case STORE_SAVED:
		if (e->save == s->save)
			on_saved(s, e);
		break;
	case STORE_FAILED:
		if (e->save != s->save)
			break;
		s->save = 0;
		note_failure(s, &e->error);
		save_in(s, s->config.every_ns < RETRY_NS ? s->config.every_ns : RETRY_NS);
		if (s->copy_wanted)
			on_copied(s, e);
		break;
	case STORE_COPIED:
		on_copied(s, e);
		break;
	}
	store_event_free(e);
}

static void on_news(uv_async_t *news)
{
	struct saver *s = news->data;
	struct store_event *e;

	while ((e = store_take(s->store, 0)) != NULL)
		on_event(s, e);
}

static int open_handles(struct saver *s)
{
	int rc = uv_async_init(s->config.loop, &s->news, on_news);

	s->news.data = s;
	if (!rc)
		rc = uv_async_init(s->config.loop, &s->wanted, on_wanted);
	s->wanted.data = s;
	if (!rc)
		rc = uv_timer_init(s->config.loop, &s->timer);
	s->timer.data = s;
	return rc;
}

int saver_open(struct saver **out, const struct saver_config *config, struct error *error)
{
	struct saver *s = mem_zalloc(1, sizeof(*s));
	struct store_config store = {
		.dir = config->dir,
		.nodes_max = config->nodes_max,
		.busy_ms = BUSY_MS,
		.retry_ns = RETRY_NS,
		.wake = wake,
		.ctx = &s->news,
	};
	struct store_event *e;
	int rc;

	s->config = *config;
	s->counters = &config->counters->store;
	/* The caller closes the loop's handles and frees us, whatever happens. */
	*out = s;
	rc = open_handles(s);
	if (rc)
		return error_fail(error, rc, "the event loop does not start: %s", uv_strerror(rc));
	rc = store_start(&s->store, &store, error);
	if (!rc && config->copies)
		rc = copier_open(&s->copier, wake, &s->wanted, &config->counters->exchange, error);
	if (rc)
		return rc;
	counter_set(&s->counters->enabled, 1);
	save_in(s, config->every_ns);
	e = store_take(s->store, LOAD_NS);
	if (e)
		on_event(s, e);
	else
		log_warn("the database in %s takes long to open: going on without it until then",
			 config->dir);
	return 0;
}

struct copier *saver_copier(const struct saver *s)
{
	return s ? s->copier : NULL;
}

/* --- a copy of another aggregator's ----------------------------------------------------------- */

int saver_take_copy(const char *dir, const char *peer, const struct keyring *keys,
		    struct exchange_counters *counters, struct error *error)
{
	struct copy_wish wish = {peer, keys, counters};
	struct error why;
	bool ends;
	int rc;

	thread_hold_ends(true);
	rc = dir ? database_receive(dir, copy_fetch, &wish, &why) : -EEXIST;
	ends = thread_end_is_held();
	thread_hold_ends(false);
	if (ends)
		return error_fail(error, -ECANCELED, "ended by a signal before the start");
	if (!rc)
		log_info("has a copy of the database of %s: %.1f MiB in %.1f s", peer,
			 (double)counter_get(&counters->copy_bytes[COPY_RECEIVED]) / (1 << 20),
			 (double)counter_get(&counters->copy_ns[COPY_RECEIVED]) / NS_PER_SEC);
	else if (rc != -EEXIST)
		log_warn("begins without a copy of the database of %s: %s", peer, why.text);
	return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

void saver_finish(struct saver *s)
{
	struct store_event *e;

	if (!s || !s->store)
		return;
	uv_timer_stop(&s->timer);
	copier_close(s->copier);
	s->copier = NULL;
	/* A save that is under way is begun anew: it would miss what changed since. */
	s->finishing = true;
	begin_save(s);
	while (s->save && (e = store_take(s->store, FINISH_NS)) != NULL)
		on_event(s, e);
	if (s->save)
		log_warn("the database did not answer: the last save is missing");
	store_stop(s->store);
	s->store = NULL;
}

void saver_free(struct saver *s)
{
	if (!s)
		return;
	forget_bodies(s->saved);
	forget_bodies(s->saving);
	workload_table_drop(s->workloads_saved);
	workload_table_drop(s->workloads_saving);
	free(s);
}
