/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/planner/drain_log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/refs.h"

/* A ring of rows; that of number n lies in place n % DRAIN_LOG_MAX. */
struct drain_log {
	pthread_mutex_t lock;
	/* under lock */
	uint64_t last; /* of the newest */
	size_t count;
	bool restored;
	struct drain_row *ring[DRAIN_LOG_MAX]; /* held */
};

/* --- rows */

struct drain_row *drain_row_new(const struct drain_row *of)
{
	size_t size = strlen(of->event) + strlen(of->reason) + strlen(of->node) + strlen(of->text);
	struct drain_row *r = mem_zalloc(1, sizeof(*r) + size + 4);
	char *at = (char *)(r + 1);

	atomic_init(&r->users, 1);
	r->time_ns = of->time_ns;
	r->verdict = of->verdict;
	r->event = mem_put_text(&at, of->event);
	r->reason = mem_put_text(&at, of->reason);
	r->node = mem_put_text(&at, of->node);
	r->text = mem_put_text(&at, of->text);
	return r;
}

void drain_row_drop(struct drain_row *r)
{
	if (r && refs_drop(&r->users))
		free(r);
}

void drain_rows_fini(struct drain_rows *r)
{
	for (size_t i = 0; i < r->count; i++)
		drain_row_drop(r->of[i]);
	free(r->of);
	*r = (struct drain_rows){0};
}

/* --- the log */

struct drain_log *drain_log_new(void)
{
	struct drain_log *l = mem_zalloc(1, sizeof(*l));

	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void drain_log_free(struct drain_log *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < DRAIN_LOG_MAX; i++)
		drain_row_drop(l->ring[i]);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Returns the one that has to go. */
static struct drain_row *put(struct drain_log *l, struct drain_row *row)
{
	struct drain_row **place = &l->ring[++l->last % DRAIN_LOG_MAX], *old = *place;

	*place = row;
	l->count += old == NULL;
	return old;
}

void drain_log_put(struct drain_log *l, const struct drain_row *of)
{
	struct drain_row *row = drain_row_new(of), *old;

	pthread_mutex_lock(&l->lock);
	old = put(l, row);
	pthread_mutex_unlock(&l->lock);
	drain_row_drop(old);
}

void drain_log_add(struct drain_log *l, const struct drain_record *of, size_t count)
{
	for (; count--; of++)
		drain_log_put(l, &(struct drain_row){
					 .time_ns = of->time_ns,
					 .verdict = of->verdict,
					 .event = drain_event_name(of->event),
					 .reason = of->reason == DRAIN_NONE
							   ? ""
							   : drain_reason_name(of->reason),
					 .node = of->node,
					 .text = of->text,
				 });
}

/* Under lock. */
static void read_rows(const struct drain_log *l, uint64_t behind, struct drain_rows *out)
{
	uint64_t oldest = l->last - l->count + 1;

	*out = (struct drain_rows){.first = behind + 1 > oldest ? behind + 1 : oldest,
				   .restored = l->restored};
	if (out->first <= l->last)
		out->count = (size_t)(l->last - out->first + 1);
	out->of = mem_zalloc(out->count + 1, sizeof(struct drain_row *));
	for (size_t i = 0; i < out->count; i++) {
		out->of[i] = l->ring[(out->first + i) % DRAIN_LOG_MAX];
		refs_hold(&out->of[i]->users);
	}
}

void drain_log_read(struct drain_log *l, uint64_t behind, struct drain_rows *out)
{
	pthread_mutex_lock(&l->lock);
	read_rows(l, behind, out);
	pthread_mutex_unlock(&l->lock);
}

/* The other aggregator may tell of a wave before the database is read. */
static bool is_restored(struct drain_row *const *of, size_t count, const struct drain_row *r)
{
	size_t i = 0;

	while (i < count && strcmp(of[i]->text, r->text) != 0)
		i++;
	return i < count && strcmp(r->event, DRAIN_WAVE_REPORT) == 0;
}

void drain_log_restore(struct drain_log *l, struct drain_row **of, size_t count, uint64_t last)
{
	struct drain_rows newer;
	size_t kept = 0;

	pthread_mutex_lock(&l->lock);
	read_rows(l, 0, &newer);
	for (size_t i = 0; i < newer.count; i++) {
		if (is_restored(of, count, newer.of[i]))
			drain_row_drop(newer.of[i]);
		else
			newer.of[kept++] = newer.of[i];
	}
	for (size_t i = 0; i < DRAIN_LOG_MAX; i++) {
		drain_row_drop(l->ring[i]);
		l->ring[i] = NULL;
	}
	l->count = 0;
	l->last = last > count ? last - count : 0;
	for (size_t i = 0; i < count; i++)
		drain_row_drop(put(l, of[i]));
	for (size_t i = 0; i < kept; i++)
		drain_row_drop(put(l, newer.of[i]));
	l->restored = true;
	pthread_mutex_unlock(&l->lock);
	free(newer.of);
}
