/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender against a socket, a ring and a clock that the test holds in its hands. They take the
 * place of the agent's own in the program of the one test that includes this.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sender.h"
#include "agent/sender_socket.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/interval.h"

/* --- the ring --------------------------------------------------------------------------------- */

enum { RING_MAX = 200 };

struct ring {
	struct interval *items[RING_MAX];
	size_t count;
};

const struct interval *ring_find(const struct ring *r, uint64_t sequence)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->items[i]->sequence >= sequence)
			return r->items[i];
	return NULL;
}

uint64_t ring_newest(const struct ring *r)
{
	return r->count ? r->items[r->count - 1]->sequence : 0;
}

static inline void push(struct ring *r, uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++)
		r->items[r->count++] = interval_make(i, 1, 1);
}

/* The oldest `count` leave. */
static inline void forget(struct ring *r, size_t count)
{
	for (size_t i = 0; i < count; i++)
		interval_free(r->items[i]);
	r->count -= count;
	memmove(r->items, r->items + count, r->count * sizeof(struct interval *));
}

/* Item at and the next one become one. */
static inline void merge(struct ring *r, size_t at)
{
	struct interval *merged = interval_merge(r->items[at], r->items[at + 1]);

	interval_free(r->items[at]);
	interval_free(r->items[at + 1]);
	r->items[at] = merged;
	r->count--;
	memmove(r->items + at + 1, r->items + at + 2,
		(r->count - at - 1) * sizeof(struct interval *));
}

/* --- the socket ------------------------------------------------------------------------------- */

struct sender_socket {
	bool ready;
	uint64_t connections;
	unsigned int reconnects;
	unsigned int sent;
	uint32_t id;
	struct buf frame; /* the last one sent */
	struct {
		uint32_t id;
		struct buf data;
	} inbox[4];
	size_t inbox_count;
};

static struct sender_socket *sock;

int sender_socket_open(struct sender_socket **s, const struct endpoint *endpoint,
		       struct error *error)
{
	(void)endpoint;
	(void)error;
	*s = sock = mem_zalloc(1, sizeof(*sock));
	sock->ready = true;
	sock->connections = 1;
	return 0;
}

void sender_socket_close(struct sender_socket *s)
{
	buf_fini(&s->frame);
	for (size_t i = 0; i < s->inbox_count; i++)
		buf_fini(&s->inbox[i].data);
	free(s);
}

int sender_socket_fd(const struct sender_socket *s)
{
	(void)s;
	return 42;
}

bool sender_socket_ready(struct sender_socket *s)
{
	return s->ready;
}

int sender_socket_send(struct sender_socket *s, uint32_t id, const void *data, size_t len)
{
	if (!s->connections)
		return -EAGAIN;
	s->sent++;
	s->id = id;
	buf_clear(&s->frame);
	buf_add(&s->frame, data, len);
	return 0;
}

int sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data)
{
	if (!s->inbox_count)
		return -EAGAIN;
	*id = s->inbox[0].id;
	buf_clear(data);
	buf_add(data, s->inbox[0].data.data, s->inbox[0].data.len);
	buf_fini(&s->inbox[0].data);
	memmove(s->inbox, s->inbox + 1, --s->inbox_count * sizeof(s->inbox[0]));
	return 0;
}

uint64_t sender_socket_connections(const struct sender_socket *s)
{
	return s->connections;
}

void sender_socket_reconnect(struct sender_socket *s)
{
	s->reconnects++;
}

/* --- the scene -------------------------------------------------------------------------------- */

#define START_NS (1000 * NS_PER_SEC)

struct scene {
	const char *node;
	struct keyring keys;
	struct ring ring;
	struct sender *sender;
	int64_t now_ns, wanted_ns;
	struct sender_stats stats;
	/* the last frame, opened */
	struct frame_header header;
	struct buf body;
};

static int64_t fake_ns;
static inline int64_t fake_boot_ns(void)
{
	return fake_ns;
}

static inline int open_as(struct scene *s, const char *node)
{
	struct sender_config config = {.node = node, .keys = &s->keys, .boot_ns = fake_boot_ns};

	memset(config.run, 7, sizeof(config.run));
	s->node = node;
	return sender_open(&s->sender, "tcp://127.0.0.1:1", &config, NULL);
}

static inline int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->keys.count = 1;
	memset(&s->keys.keys[0], 1, sizeof(s->keys.keys[0]));
	s->now_ns = START_NS;
	*state = s;
	return open_as(s, "node-1");
}

static inline int teardown(void **state)
{
	struct scene *s = *state;

	sender_close(s->sender);
	forget(&s->ring, s->ring.count);
	buf_fini(&s->body);
	free(s);
	return 0;
}

/* Lets time pass and steps; returns how many frames left. */
static inline unsigned int step(struct scene *s, int64_t ms)
{
	unsigned int before = sock->sent;

	s->now_ns += ms * NS_PER_MS;
	s->wanted_ns = sender_step(s->sender, &s->ring, s->now_ns);
	assert_true(s->wanted_ns >= s->now_ns);
	sender_get_stats(s->sender, &s->stats);
	return sock->sent - before;
}

static inline void open_frame(struct scene *s)
{
	assert_int_equal(frame_open(sock->frame.data, sock->frame.len, &s->keys, NULL, &s->header,
				    &s->body, NULL),
			 0);
	assert_int_equal(s->header.type, FRAME_INTERVAL);
	assert_string_equal(s->header.node, s->node);
	assert_int_equal(s->header.run[15], 7);
}

/* One frame leaves, with this interval, in one part. */
static inline void expect_sent(struct scene *s, int64_t ms, uint64_t sequence, bool full)
{
	struct interval *i;

	assert_int_equal(step(s, ms), 1);
	open_frame(s);
	assert_int_equal(s->header.sequence, sequence);
	assert_int_equal(interval_decode(&s->body, 1, &i, NULL), 0);
	assert_int_equal(i->full, full);
	assert_int_equal(i->end_ns, ring_find(&s->ring, sequence)->end_ns);
	interval_free(i);
}

static inline void deliver(uint32_t id, const void *data, size_t len)
{
	sock->inbox[sock->inbox_count].id = id;
	sock->inbox[sock->inbox_count].data = (struct buf)BUF_INIT;
	buf_add(&sock->inbox[sock->inbox_count++].data, data, len);
}

/* Answers the last frame. */
static inline void answer(struct scene *s, const struct ack *ack)
{
	struct buf body = BUF_INIT, frame = BUF_INIT;
	struct frame_header header;

	open_frame(s);
	header = s->header;
	header.type = FRAME_ACK;
	body_encode_ack(ack, &body);
	frame_seal(&frame, &header, keyring_find(&s->keys, s->header.key_id), s->header.nonce,
		   body.data, body.len);
	deliver(sock->id, frame.data, frame.len);
	buf_fini(&body);
	buf_fini(&frame);
}

static inline void answer_applied(struct scene *s)
{
	answer(s, &(struct ack){.status = ACK_APPLIED});
}

/* The first interval is applied, so that identities are known. */
static inline void begin(struct scene *s)
{
	push(&s->ring, 1, 1);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
	assert_true(sender_idle(s->sender, &s->ring));
}
