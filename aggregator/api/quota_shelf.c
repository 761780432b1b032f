/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few slots under one lock, which is held for choosing a slot only. The book that was taken last
 * is taken first, as it has the least to catch up with. A book that finds no slot when it is given
 * back is freed.
 */
#include "aggregator/api/quota_shelf.h"

#include <pthread.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define IDLE_NS (10 * NS_PER_SEC)

struct slot {
	struct quota_book *book; /* owned; NULL: none, or it is taken */
	int64_t given_ns; /* when whoever had it last took it */
};

struct quota_shelf {
	const struct quota_options *options; /* fixed after start; borrowed */
	pthread_mutex_t lock;
	/* under lock */
	struct slot slots[QUOTA_SHELF_MAX];
	int64_t newest_ns; /* when one was taken last */
};

struct quota_shelf *quota_shelf_new(const struct quota_options *o)
{
	struct quota_shelf *s = mem_zalloc(1, sizeof(*s));

	s->options = o;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void quota_shelf_free(struct quota_shelf *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++)
		quota_book_free(s->slots[i].book);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct quota_book *take_newest(struct quota_shelf *s, int64_t now_ns)
{
	struct slot *best = NULL;
	struct quota_book *b = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++)
		if (s->slots[i].book && (!best || s->slots[i].given_ns > best->given_ns))
			best = &s->slots[i];
	if (best) {
		b = best->book;
		best->book = NULL;
	}
	s->newest_ns = now_ns;
	pthread_mutex_unlock(&s->lock);
	return b;
}

/* Of the options only the variant is ever another than the shelf's (quota_scene.h). */
static bool is_for(const struct quota_shelf *s, const struct quota_options *o)
{
	return s && o->variant == s->options->variant;
}

struct quota_book *quota_shelf_take(struct quota_shelf *s, struct view *v,
				    struct ledger_copy *ledger, const struct quota_options *o,
				    int64_t now_ns)
{
	struct quota_book *b = is_for(s, o) ? take_newest(s, now_ns) : NULL;

	if (b && quota_book_update(b, v, ledger))
		return b;
	quota_book_free(b);
	return quota_book_new(v, ledger, o);
}

void quota_shelf_give(struct quota_shelf *s, struct quota_book *b)
{
	if (s && b && quota_book_variant(b) == s->options->variant) {
		pthread_mutex_lock(&s->lock);
		for (size_t i = 0; i < QUOTA_SHELF_MAX && b; i++) {
			if (s->slots[i].book)
				continue;
			s->slots[i] = (struct slot){b, s->newest_ns};
			b = NULL;
		}
		pthread_mutex_unlock(&s->lock);
	}
	quota_book_free(b);
}

void quota_shelf_tidy(struct quota_shelf *s, int64_t now_ns)
{
	struct quota_book *idle[QUOTA_SHELF_MAX] = {NULL};

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++) {
		if (now_ns - s->slots[i].given_ns <= IDLE_NS)
			continue;
		idle[i] = s->slots[i].book;
		s->slots[i].book = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < QUOTA_SHELF_MAX; i++)
		quota_book_free(idle[i]);
}
