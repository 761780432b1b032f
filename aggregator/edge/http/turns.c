/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that nobody knows cost as much to review as good ones, and two are reviewed at a time.
 * Without shares a single stranger who sends made-up tokens would fill the queue, and whose token
 * is good would be told that too many wait.
 *
 * A row for each client that has a turn, in no order: there are few, and a turn costs two requests
 * to an API server.
 */
#include "aggregator/edge/http/turns.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "shared/peer_hash.h"
#include "shared/mem.h"

struct turns {
	uint8_t key[PEER_KEY_LEN]; /* fixed after start */

	pthread_mutex_t lock;
	/* under lock */
	size_t count;
	struct {
		uint64_t client;
		unsigned int has; /* at least one */
	} clients[TURNS_CLIENTS];
};

struct turns *turns_new(void)
{
	struct turns *t = mem_zalloc(1, sizeof(*t));

	crypto_shorthash_keygen(t->key);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void turns_free(struct turns *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Its row, or count. */
static size_t find(const struct turns *t, uint64_t client)
{
	size_t i = 0;

	while (i < t->count && t->clients[i].client != client)
		i++;
	return i;
}

bool turns_take(struct turns *t, const struct sockaddr *from)
{
	uint64_t client = peer_hash(t->key, from);
	bool taken;
	size_t i;

	pthread_mutex_lock(&t->lock);
	i = find(t, client);
	taken = i < t->count ? t->clients[i].has < TURNS_OF_CLIENT : i < TURNS_CLIENTS;
	if (taken && i == t->count) {
		t->clients[i].client = client;
		t->clients[i].has = 0;
		t->count++;
	}
	if (taken)
		t->clients[i].has++;
	pthread_mutex_unlock(&t->lock);
	return taken;
}

void turns_give(struct turns *t, const struct sockaddr *from)
{
	uint64_t client = peer_hash(t->key, from);
	size_t i;

	pthread_mutex_lock(&t->lock);
	i = find(t, client);
	assert(i < t->count);
	if (--t->clients[i].has == 0)
		t->clients[i] = t->clients[--t->count];
	pthread_mutex_unlock(&t->lock);
}
