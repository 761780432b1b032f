/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that sends a byte now and then is never silent, so silence is no measure of it. Each
 * step of a request has its time instead: the handshake and the headers, the body, the answer. Who
 * serves the connection says when the next step is due, without a lock; who looks for the overdue
 * holds the list's, under which no descriptor is closed.
 */
#include "aggregator/edge/http/connections.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "shared/mem.h"

struct connections {
	pthread_mutex_t lock;
	/* under lock */
	struct connection *first;
	size_t count;
};

struct connections *connections_new(void)
{
	struct connections *cs = mem_zalloc(1, sizeof(*cs));

	pthread_mutex_init(&cs->lock, NULL);
	return cs;
}

void connections_free(struct connections *cs)
{
	if (!cs)
		return;
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

struct connection *connections_begin(struct connections *cs, int fd, int64_t due_ns)
{
	struct connection *c = mem_zalloc(1, sizeof(*c));

	c->fd = fd;
	atomic_init(&c->due_ns, due_ns);
	pthread_mutex_lock(&cs->lock);
	c->next = cs->first;
	c->link = &cs->first;
	if (c->next)
		c->next->link = &c->next;
	cs->first = c;
	cs->count++;
	pthread_mutex_unlock(&cs->lock);
	return c;
}

void connections_end(struct connections *cs, struct connection *c)
{
	pthread_mutex_lock(&cs->lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	cs->count--;
	pthread_mutex_unlock(&cs->lock);
	tls_set_drop(c->tls);
	free(c);
}

void connection_expect(struct connection *c, int64_t due_ns)
{
	atomic_store_explicit(&c->due_ns, due_ns, memory_order_relaxed);
}

size_t connections_cut(struct connections *cs, int64_t now_ns)
{
	size_t cut = 0;

	pthread_mutex_lock(&cs->lock);
	for (struct connection *c = cs->first; c; c = c->next) {
		if (atomic_load_explicit(&c->due_ns, memory_order_relaxed) > now_ns)
			continue;
		connection_expect(c, INT64_MAX);
		shutdown(c->fd, SHUT_RDWR);
		cut++;
	}
	pthread_mutex_unlock(&cs->lock);
	return cut;
}

size_t connections_count(struct connections *cs)
{
	size_t count;

	pthread_mutex_lock(&cs->lock);
	count = cs->count;
	pthread_mutex_unlock(&cs->lock);
	return count;
}
