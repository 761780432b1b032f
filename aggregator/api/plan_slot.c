/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mutex, held for a pointer and a count, as that of views: a reader that was about to hold a
 * plan must not see it freed in between. What an old plan has is freed by whoever drops it last,
 * outside of the lock; that may be a thread of HTTP whose answer took long.
 */
#include "aggregator/api/plan_slot.h"

#include <pthread.h>
#include <stdlib.h>

#include "shared/mem.h"

struct plan_slot {
	pthread_mutex_t lock;
	/* under lock */
	struct plan_result *newest; /* held; NULL: none yet */
	uint64_t version;
};

const char *plan_part_name(enum plan_part p)
{
	static const char *const names[PLAN_PARTS] = {
		[PLAN_SLACK] = "slack", [PLAN_DRAIN] = "drain"};

	return names[p];
}

struct plan_result *plan_result_new(void)
{
	struct plan_result *r = mem_zalloc(1, sizeof(*r));

	atomic_init(&r->users, 1);
	return r;
}

struct plan_result *plan_result_hold(struct plan_result *r)
{
	atomic_fetch_add_explicit(&r->users, 1, memory_order_relaxed);
	return r;
}

void plan_result_drop(struct plan_result *r)
{
	if (!r || atomic_fetch_sub_explicit(&r->users, 1, memory_order_acq_rel) > 1)
		return;
	if (r->drain)
		r->drain_free(r->drain); /* before the view, of which it has names */
	slack_result_fini(&r->slack);
	for (int p = 0; p < PLAN_PARTS; p++)
		shared_body_drop(r->memory[p]);
	free(r);
}

struct plan_slot *plan_slot_new(void)
{
	struct plan_slot *s = mem_zalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void plan_slot_free(struct plan_slot *s)
{
	if (!s)
		return;
	plan_result_drop(s->newest);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void plan_slot_publish(struct plan_slot *s, struct plan_result *r)
{
	struct plan_result *before;

	pthread_mutex_lock(&s->lock);
	before = s->newest;
	r->version = ++s->version;
	s->newest = r;
	pthread_mutex_unlock(&s->lock);
	plan_result_drop(before);
}

struct plan_result *plan_slot_take(struct plan_slot *s)
{
	struct plan_result *r;

	pthread_mutex_lock(&s->lock);
	r = s->newest ? plan_result_hold(s->newest) : NULL;
	pthread_mutex_unlock(&s->lock);
	return r;
}
