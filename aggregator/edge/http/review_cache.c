/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of four, found by the first bits of the digest; since that is keyed, nobody outside can
 * choose a set. Where a set is full, what has ended makes room first, then what refuses, then what
 * ends soonest; and what refuses never takes the place of what allows, so that a flood of wrong
 * tokens drives no right one out. About 800 KiB.
 */
#include "aggregator/edge/http/review_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define ALLOWED_NS (60 * NS_PER_SEC)
#define REFUSED_NS (10 * NS_PER_SEC)

struct entry {
	uint8_t digest[BEARER_DIGEST_LEN];
	int64_t ends_ns; /* 0: empty */
	enum access_verdict verdict;
	char user[ACCESS_USER_LEN];
};

struct review_cache {
	pthread_mutex_t lock;
	/* under lock */
	struct entry entries[REVIEW_SETS][REVIEW_WAYS];
};

struct review_cache *review_cache_new(void)
{
	struct review_cache *c = mem_zalloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void review_cache_free(struct review_cache *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct entry *set_of(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN])
{
	return c->entries[(digest[0] | digest[1] << 8) % REVIEW_SETS];
}

static struct entry *find(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN])
{
	struct entry *set = set_of(c, digest);

	for (size_t i = 0; i < REVIEW_WAYS; i++)
		if (set[i].ends_ns && memcmp(set[i].digest, digest, BEARER_DIGEST_LEN) == 0)
			return &set[i];
	return NULL;
}

bool review_cache_find(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		       int64_t now_ns, struct access_answer *a)
{
	const struct entry *e;
	bool good;

	pthread_mutex_lock(&c->lock);
	e = find(c, digest);
	good = e && e->ends_ns > now_ns;
	if (good) {
		a->verdict = e->verdict;
		memcpy(a->user, e->user, sizeof(a->user));
		a->why.text[0] = '\0';
	}
	pthread_mutex_unlock(&c->lock);
	return good;
}

/* The less, the sooner it goes. */
static int64_t worth(const struct entry *e, int64_t now_ns)
{
	if (e->ends_ns <= now_ns)
		return INT64_MIN;
	return e->verdict == ACCESS_ALLOWED ? e->ends_ns : e->ends_ns - INT64_MAX / 2;
}

/* NULL: all that is there is worth more. */
static struct entry *make_room(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
			       int64_t now_ns, enum access_verdict verdict)
{
	struct entry *set = set_of(c, digest), *least = set;

	for (size_t i = 1; i < REVIEW_WAYS; i++)
		if (worth(&set[i], now_ns) < worth(least, now_ns))
			least = &set[i];
	if (least->ends_ns > now_ns && least->verdict == ACCESS_ALLOWED &&
	    verdict != ACCESS_ALLOWED)
		return NULL;
	return least;
}

void review_cache_put(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		      int64_t now_ns, const struct access_answer *a)
{
	struct entry *e;

	if (a->verdict == ACCESS_UNANSWERED)
		return;
	pthread_mutex_lock(&c->lock);
	e = find(c, digest);
	if (!e)
		e = make_room(c, digest, now_ns, a->verdict);
	if (e) {
		memcpy(e->digest, digest, sizeof(e->digest));
		e->ends_ns = now_ns + (a->verdict == ACCESS_ALLOWED ? ALLOWED_NS : REFUSED_NS);
		e->verdict = a->verdict;
		memcpy(e->user, a->user, sizeof(e->user));
	}
	pthread_mutex_unlock(&c->lock);
}
