/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of preemptors in the order in which they were told or renewed, which is the order in which
 * they expire, and a ring of past evictions. Answers are copied under the lock, strings included,
 * so that policies run without it.
 */
#include "aggregator/state/victim_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"

struct entry {
	char *preemptor; /* owned */
	int64_t kept_ns; /* told or renewed */
	struct victim_answer answer; /* owned, one block */
	UT_hash_handle hh;
};

struct past {
	int64_t at_ns;
	char *namespace; /* owned */
};

struct victim_log {
	pthread_mutex_t lock;
	/* under lock */
	struct entry *entries; /* by kept_ns */
	struct past *past; /* a ring of VICTIM_LOG_PAST_MAX */
	size_t past_first, past_count;
	uint64_t version;
};

struct victim_log *victim_log_new(void)
{
	struct victim_log *l = mem_zalloc(1, sizeof(*l));

	pthread_mutex_init(&l->lock, NULL);
	l->past = mem_zalloc(VICTIM_LOG_PAST_MAX, sizeof(*l->past));
	return l;
}

static void drop(struct victim_log *l, struct entry *e)
{
	HASH_DEL(l->entries, e);
	free(e->preemptor);
	free(e->answer.of);
	free(e);
}

void victim_log_free(struct victim_log *l)
{
	struct entry *e, *next;

	if (!l)
		return;
	HASH_ITER(hh, l->entries, e, next) drop(l, e);
	for (size_t i = 0; i < l->past_count; i++)
		free(l->past[(l->past_first + i) % VICTIM_LOG_PAST_MAX].namespace);
	free(l->past);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* The array, and behind it its strings. */
static struct victim *copy_victims(const struct victim *of, size_t count)
{
	size_t size = (count + 1) * sizeof(*of);
	struct victim *copy;
	char *room;

	for (size_t i = 0; i < count; i++)
		size += strlen(of[i].uid) + strlen(of[i].namespace) + strlen(of[i].node) + 3;
	copy = mem_alloc(size);
	room = (char *)(copy + count + 1);
	for (size_t i = 0; i < count; i++)
		copy[i] = (struct victim){mem_put_text(&room, of[i].uid),
					  mem_put_text(&room, of[i].namespace),
					  mem_put_text(&room, of[i].node)};
	return copy;
}

/* --- what is told ----------------------------------------------------------------------------- */

static void add_past(struct victim_log *l, const struct victim *v, int64_t now_ns)
{
	struct past *p;

	if (l->past_count == VICTIM_LOG_PAST_MAX) {
		free(l->past[l->past_first].namespace);
		l->past_first = (l->past_first + 1) % VICTIM_LOG_PAST_MAX;
		l->past_count--;
	}
	p = &l->past[(l->past_first + l->past_count++) % VICTIM_LOG_PAST_MAX];
	*p = (struct past){now_ns, mem_strdup(v->namespace)};
}

static struct entry *find(struct victim_log *l, const char *preemptor)
{
	struct entry *e;

	HASH_FIND_STR(l->entries, preemptor, e);
	return e;
}

static void expire(struct victim_log *l, int64_t now_ns)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
	while (l->entries && (l->entries->kept_ns + VICTIM_LOG_TTL_NS <= now_ns ||
			      HASH_COUNT(l->entries) > VICTIM_LOG_PREEMPTORS_MAX))
		drop(l, l->entries);
}

uint64_t victim_log_version(struct victim_log *l)
{
	uint64_t version;

	pthread_mutex_lock(&l->lock);
	version = l->version;
	pthread_mutex_unlock(&l->lock);
	return version;
}

static void append(struct victim_log *l, struct entry *e, int64_t now_ns)
{
	e->kept_ns = now_ns;
	HASH_ADD_KEYPTR(hh, l->entries, e->preemptor, strlen(e->preemptor), e);
}

/* Takes the entry over. */
static void replace(struct victim_log *l, struct entry *e)
{
	struct entry *before = find(l, e->preemptor);
	const struct victim *victims = e->answer.of;
	int64_t now_ns = e->answer.told_ns;

	/* Victims that were told before are not counted again. */
	for (size_t i = 0; i < e->answer.count; i++)
		if (!before || !array_find_text(before->answer.of, before->answer.count,
						sizeof(*victims), victims[i].uid))
			add_past(l, &victims[i], now_ns);
	if (before)
		drop(l, before);
	append(l, e, now_ns);
	l->version++;
	expire(l, now_ns);
}

int victim_log_put(struct victim_log *l, const char *preemptor, const struct victim *of,
		   size_t count, uint64_t version, int64_t now_ns)
{
	struct entry *e;
	int rc = 0;

	if (!*preemptor || !count || count > VICTIM_LOG_VICTIMS_MAX)
		return -EINVAL;
	pthread_mutex_lock(&l->lock);
	if (l->version != version) {
		rc = -EAGAIN;
	} else {
		e = mem_zalloc(1, sizeof(*e));
		e->preemptor = mem_strdup(preemptor);
		e->answer = (struct victim_answer){.told_ns = now_ns,
						   .count = count,
						   .of = copy_victims(of, count)};
		replace(l, e);
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

bool victim_log_find(struct victim_log *l, const char *preemptor, int64_t now_ns,
		     struct victim_answer *out)
{
	struct entry *e;

	pthread_mutex_lock(&l->lock);
	expire(l, now_ns);
	e = find(l, preemptor);
	if (e) {
		*out = e->answer;
		out->renewed_ns = e->kept_ns;
		out->of = copy_victims(e->answer.of, e->answer.count);
	}
	pthread_mutex_unlock(&l->lock);
	return e != NULL;
}

void victim_log_renew(struct victim_log *l, const char *preemptor, int64_t now_ns)
{
	struct entry *e;

	pthread_mutex_lock(&l->lock);
	e = find(l, preemptor);
	if (e) {
		HASH_DEL(l->entries, e);
		append(l, e, now_ns);
	}
	pthread_mutex_unlock(&l->lock);
}

static bool is_told(const struct entry *e, const char *besides, int64_t since_ns)
{
	return e->answer.told_ns > since_ns && (!besides || strcmp(e->preemptor, besides) != 0);
}

size_t victim_log_told(struct victim_log *l, const char *besides, int64_t since_ns, int64_t now_ns,
		       const char *const **out)
{
	size_t count = 0, size = 0, at = 0;
	const char **uids;
	struct entry *e;
	char *room;

	pthread_mutex_lock(&l->lock);
	expire(l, now_ns);
	for (e = l->entries; e; e = e->hh.next)
		for (size_t i = 0; is_told(e, besides, since_ns) && i < e->answer.count; i++) {
			count++;
			size += strlen(e->answer.of[i].uid) + 1;
		}
	uids = mem_alloc((count + 1) * sizeof(*uids) + size);
	room = (char *)(uids + count + 1);
	for (e = l->entries; e; e = e->hh.next)
		for (size_t i = 0; is_told(e, besides, since_ns) && i < e->answer.count; i++)
			uids[at++] = mem_put_text(&room, e->answer.of[i].uid);
	pthread_mutex_unlock(&l->lock);
	*out = uids;
	return count;
}

static const struct past *past_at(const struct victim_log *l, size_t i)
{
	return &l->past[(l->past_first + i) % VICTIM_LOG_PAST_MAX];
}

/* The first that is not older; what the clock set back made older later is beyond it. */
static size_t first_past(const struct victim_log *l, int64_t since_ns, size_t *text_size)
{
	size_t first;

	*text_size = 0;
	for (first = l->past_count; first > 0; first--) {
		const struct past *p = past_at(l, first - 1);

		if (p->at_ns < since_ns)
			break;
		*text_size += strlen(p->namespace) + 1;
	}
	return first;
}

size_t victim_log_past(struct victim_log *l, int64_t since_ns, struct victim_past **out)
{
	struct victim_past *past;
	size_t first, size, count;
	char *room;

	pthread_mutex_lock(&l->lock);
	first = first_past(l, since_ns, &size);
	count = l->past_count - first;
	past = mem_alloc((count + 1) * sizeof(*past) + size);
	room = (char *)(past + count + 1);
	for (size_t i = 0; i < count; i++) {
		const struct past *p = past_at(l, first + i);

		past[i] = (struct victim_past){p->at_ns, mem_put_text(&room, p->namespace)};
	}
	pthread_mutex_unlock(&l->lock);
	*out = past;
	return count;
}
