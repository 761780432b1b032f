/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full bucket holds no information, so a set of four that needs room drops its fullest bucket;
 * 16384 busy clients are remembered. The set of an address is keyed: nobody can evict a chosen
 * address.
 */
#include "aggregator/edge/http/auth.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/mem.h"

enum { BURST_LEAST = 10 };

struct bucket {
	uint64_t client; /* 0: empty */
	int64_t at_ns;
	double left; /* at that time */
};

struct rate_limit {
	/* fixed after start */
	double per_second, burst;
	uint8_t key[PEER_KEY_LEN];

	pthread_mutex_t lock;
	/* under lock */
	struct bucket buckets[RATE_SETS][RATE_WAYS];
};

struct rate_limit *rate_limit_new(double per_second)
{
	struct rate_limit *r = mem_zalloc(1, sizeof(*r));

	r->per_second = per_second;
	r->burst = fmax(2 * per_second, BURST_LEAST);
	crypto_shorthash_keygen(r->key);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void rate_limit_free(struct rate_limit *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static double left_now(const struct rate_limit *r, const struct bucket *b, int64_t now_ns)
{
	double gained = (double)(now_ns - b->at_ns) / NS_PER_SEC * r->per_second;

	return b->client ? fmin(r->burst, b->left + fmax(0, gained)) : INFINITY;
}

static struct bucket *find(struct rate_limit *r, uint64_t client, int64_t now_ns)
{
	struct bucket *set = r->buckets[client % RATE_SETS], *fullest = set;

	for (size_t i = 0; i < RATE_WAYS; i++) {
		if (set[i].client == client)
			return &set[i];
		if (left_now(r, &set[i], now_ns) > left_now(r, fullest, now_ns))
			fullest = &set[i];
	}
	*fullest = (struct bucket){client, now_ns, r->burst};
	return fullest;
}

int64_t rate_limit_take(struct rate_limit *r, const struct sockaddr *from, int64_t now_ns)
{
	uint64_t client = peer_hash(r->key, from);
	struct bucket *b;
	int64_t wait_ns = 0;

	pthread_mutex_lock(&r->lock);
	b = find(r, client, now_ns);
	b->left = left_now(r, b, now_ns);
	b->at_ns = now_ns;
	if (b->left >= 1)
		b->left -= 1;
	else
		wait_ns = (int64_t)ceil((1 - b->left) / r->per_second * NS_PER_SEC);
	pthread_mutex_unlock(&r->lock);
	return wait_ns;
}
