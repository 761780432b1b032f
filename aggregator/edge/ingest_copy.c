/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	new aggregator		ingest of the other one		its copier
 *
 *	copy, empty	-->	ack: applied = session
 *	copy, session + 1	-------------------------->	want(): save, then copy
 *			<----------------------------------	ack "part stored": not yet
 *	copy, session + 2	-------------------------->
 *			<----------------------------------	copy: bytes
 *	copy, session + 3 ..	-------------------------->
 *			<----------------------------------	ack "applied": the number of bytes
 *
 * Frames are of type 6, with the keys of the exchange: with --enrolment-key no agent can ask. The
 * sequence of each is one higher than that of the frame before it, and begins with the random
 * session, so a recorded frame does nothing. An ack "refused" has the reason. An aggregator of a
 * release without copies does not answer.
 *
 * The database of a new aggregator is made before its port opens, so two that start at once refuse
 * each other and go on. A connection that ends in the middle leaves nothing on either side.
 */
#include "aggregator/edge/ingest_copy.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/edge/ingest_aggregator.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/resolver.h"
#include "shared/thread.h"

#define SILENT_NS (5 * NS_PER_SEC) /* without an answer */
#define REACH_NS  (2 * NS_PER_SEC) /* for a connection: an address may be of a node that is gone */
#define FETCH_NS  (30 * NS_PER_SEC)
#define LOOK_NS	  (NS_PER_SEC / 4) /* "not yet" is answered after so long */

#define BYTES_MAX (UINT64_C(1) << 30)

/* --- getting one ------------------------------------------------------------------------------ */

struct fetch {
	struct endpoint endpoint;
	struct keyring keys; /* derived */
	uint8_t run[FRAME_RUN_LEN];
	int file, fd;
	int64_t begun_ns;
	uint64_t sequence, bytes;
	struct buf body; /* of the last answer; empty: it was an ack */
	struct ack ack;
};

static int ask(struct fetch *f, struct error *why)
{
	struct frame_header asks = {
		.type = FRAME_COPY,
		.sequence = f->sequence,
		.parts = 1,
		.node = AGGREGATOR_NODE,
	};
	struct frame_header says = {.type = FRAME_COPY};
	int rc;

	memcpy(asks.run, f->run, sizeof(asks.run));
	buf_clear(&f->body);
	rc = aggregator_send(f->fd, &asks, keyring_sealing(&f->keys), NULL, &f->body, why);
	if (!rc)
		rc = aggregator_receive(f->fd, &f->keys, asks.nonce, &says, &f->body, why);
	if (rc || says.type == FRAME_COPY)
		return rc;
	rc = body_decode_ack(f->body.data, f->body.len, &f->ack, why);
	buf_clear(&f->body);
	if (!rc && f->ack.status != ACK_APPLIED && f->ack.status != ACK_PART_STORED)
		rc = error_fail(why, -EACCES, "it refuses: %s", f->ack.reason);
	return rc;
}

static int write_body(struct fetch *f, struct error *why)
{
	int rc;

	f->bytes += f->body.len;
	if (f->bytes > BYTES_MAX)
		return error_fail(why, -EFBIG, "its database is larger than %llu bytes",
				  (unsigned long long)BYTES_MAX);
	rc = file_write(f->file, f->body.data, f->body.len);
	return rc ? aggregator_fail(why, rc) : 0;
}

/* Until the ack that ends it. */
static int read_copy(struct fetch *f, struct error *why)
{
	int rc;

	do {
		f->sequence++;
		f->ack.status = ACK_PART_STORED;
		rc = ask(f, why);
		if (!rc)
			rc = write_body(f, why);
		if (!rc && thread_end_is_held())
			rc = error_fail(why, -ECANCELED, "this aggregator ends");
		if (!rc && clock_mono_ns() > f->begun_ns + FETCH_NS)
			rc = error_fail(why, -ETIMEDOUT, "not whole after %d s",
					(int)(FETCH_NS / NS_PER_SEC));
	} while (!rc && f->ack.status != ACK_APPLIED);
	if (!rc && f->ack.applied != f->bytes)
		rc = error_fail(why, -EPROTO, "%llu bytes came of %llu",
				(unsigned long long)f->bytes, (unsigned long long)f->ack.applied);
	return rc;
}

static int fetch_from(struct fetch *f, const struct address *address, struct error *why)
{
	int rc = aggregator_connect(&f->fd, &f->endpoint, address, REACH_NS, why);

	f->sequence = 1;
	if (!rc)
		aggregator_set_wait(f->fd, SILENT_NS);
	if (!rc)
		rc = ask(f, why);
	f->sequence = f->ack.applied;
	if (!rc)
		rc = read_copy(f, why);
	file_close(f->fd);
	return rc ? error_at(why, rc, "%s", address->text) : 0;
}

/* Another address follows only until a copy begins. */
static int fetch_from_any(struct fetch *f, struct error *why)
{
	int64_t until_ns = f->begun_ns + SILENT_NS;
	struct resolver_answer found;
	struct resolver *resolver;
	int rc = resolver_open(&resolver, f->endpoint.host, NULL, NULL, why);

	if (rc)
		return rc;
	aggregator_look_up(resolver, NULL, until_ns, &found);
	resolver_close(resolver);
	rc = error_fail(why, -ENOENT, "%s",
			found.failed ? found.why.text : "no address of the name is known");
	for (size_t i = 0; i < found.count && rc && !f->bytes && clock_mono_ns() < until_ns; i++)
		rc = fetch_from(f, &found.addresses[i], why);
	return rc;
}

int copy_fetch(void *wish, int file, struct error *error)
{
	const struct copy_wish *w = wish;
	struct fetch f = {.file = file, .begun_ns = clock_mono_ns()};
	int rc = aggregator_read_url(&f.endpoint, w->url, w->keys, error);

	if (rc)
		return rc;
	aggregator_derive_keys(&f.keys, w->keys);
	randombytes_buf(f.run, sizeof(f.run));
	rc = fetch_from_any(&f, error);
	keyring_wipe(&f.keys);
	buf_fini(&f.body);
	if (rc)
		return rc;
	counter_set(&w->counters->copy_bytes[COPY_RECEIVED], f.bytes);
	counter_set(&w->counters->copy_ns[COPY_RECEIVED], (uint64_t)(clock_mono_ns() - f.begun_ns));
	return 0;
}

/* --- giving one ------------------------------------------------------------------------------- */

/* A connection of another aggregator. */
struct asker {
	int fd; /* negative: none */
	struct keyring keys; /* the one of its first frame */
	uint64_t sequence; /* of its last frame */
};

struct copier {
	/* fixed after open */
	void (*want)(void *ctx);
	void *ctx; /* borrowed, as are the counters */
	struct exchange_counters *counters;
	struct helper helper;
	pthread_mutex_t lock;

	/* loop thread */
	struct asker greeted;

	/* thread */
	struct buf body;
	uint64_t sent; /* bytes to the present asker */

	/* under lock */
	struct asker asker;
	bool awaits; /* the copy */
	int file; /* negative: none */
	struct error why; /* of a missing file */
	atomic_bool given; /* set after file and why; the thread reads it without the lock */
};

/* The body is the next bytes, or else an ack. */
static enum frame_type put_next(struct copier *c, struct ack *ack)
{
	ssize_t n;

	buf_clear(&c->body);
	ack->status = ACK_PART_STORED;
	if (!atomic_load(&c->given))
		helper_wait(&c->helper, clock_mono_ns() + LOOK_NS);
	if (atomic_load(&c->given)) {
		/* The file and the reason do not change any more. */
		n = c->file < 0 ? -1
				: read(c->file, buf_reserve(&c->body, FRAME_PART_BODY_MAX),
				       FRAME_PART_BODY_MAX);
		if (n > 0) {
			c->body.len = (size_t)n;
			c->sent += (uint64_t)n;
			return FRAME_COPY;
		}
		ack->status = n ? ACK_REFUSED : ACK_APPLIED;
		ack->applied = c->sent;
		snprintf(ack->reason, sizeof(ack->reason), "%.200s",
			 c->file < 0 ? c->why.text : "the copy cannot be read");
	}
	body_encode_ack(ack, &c->body);
	return FRAME_ACK;
}

/* Answers a frame. False: it was the last, or the connection ends. */
static bool serve_one(struct copier *c, struct asker *a)
{
	struct frame_header asks, says;
	struct ack ack = {.status = ACK_REFUSED};
	struct error why;
	bool awaits;

	if (aggregator_receive(a->fd, &a->keys, NULL, &asks, &c->body, &why) ||
	    asks.type != FRAME_COPY || asks.sequence != ++a->sequence)
		return false;
	pthread_mutex_lock(&c->lock);
	awaits = c->awaits;
	c->awaits = true;
	pthread_mutex_unlock(&c->lock);
	if (!awaits)
		c->want(c->ctx);
	says = asks;
	says.type = put_next(c, &ack);
	return !aggregator_send(a->fd, &says, &a->keys.keys[0], asks.nonce, &c->body, &why) &&
	       (says.type == FRAME_COPY || ack.status == ACK_PART_STORED);
}

static void serve(struct copier *c)
{
	int64_t begun_ns = clock_mono_ns();
	struct asker a;

	pthread_mutex_lock(&c->lock);
	a = c->asker;
	pthread_mutex_unlock(&c->lock);
	if (a.fd < 0)
		return;
	c->sent = 0;
	while (!atomic_load(&c->helper.stopping) && serve_one(c, &a))
		continue;
	if (c->sent) {
		counter_add(&c->counters->copy_bytes[COPY_SENT], c->sent);
		counter_add(&c->counters->copy_ns[COPY_SENT],
			    (uint64_t)(clock_mono_ns() - begun_ns));
	}
	keyring_wipe(&a.keys);
	pthread_mutex_lock(&c->lock);
	file_close(c->asker.fd);
	keyring_wipe(&c->asker.keys);
	c->asker.fd = -1;
	file_close(c->file);
	c->file = -1;
	c->given = false;
	c->awaits = false;
	pthread_mutex_unlock(&c->lock);
}

static void *run(void *arg)
{
	struct copier *c = arg;

	while (helper_wait(&c->helper, INT64_MAX))
		serve(c);
	buf_fini(&c->body);
	return NULL;
}

bool copier_greet(struct copier *c, const struct key *key, struct ack *ack)
{
	bool busy = false;

	if (c) {
		pthread_mutex_lock(&c->lock);
		busy = c->asker.fd >= 0;
		pthread_mutex_unlock(&c->lock);
	}
	if (!c || busy) {
		ack->status = ACK_REFUSED;
		snprintf(ack->reason, sizeof(ack->reason), "%s",
			 busy ? "another copy is under way" : "it has no --state-dir");
		return false;
	}
	ack->status = ACK_APPLIED;
	randombytes_buf(&ack->applied, sizeof(ack->applied));
	ack->applied >>= 1; /* it is counted up */
	c->greeted = (struct asker){.fd = -1, .keys = {1, {*key}}, .sequence = ack->applied};
	return true;
}

void copier_connected(struct copier *c, int fd)
{
	aggregator_set_wait(fd, SILENT_NS);
	pthread_mutex_lock(&c->lock);
	c->asker = c->greeted;
	c->asker.fd = fd;
	pthread_mutex_unlock(&c->lock);
	helper_wake(&c->helper);
}

void copier_give(struct copier *c, int file, const struct error *why)
{
	pthread_mutex_lock(&c->lock);
	if (c->awaits && !c->given) {
		c->file = file;
		c->why = *why;
		c->given = true;
	} else {
		file_close(file); /* its asker is gone */
	}
	pthread_mutex_unlock(&c->lock);
	helper_wake(&c->helper);
}

int copier_open(struct copier **out, void (*want)(void *ctx), void *ctx,
		struct exchange_counters *counters, struct error *error)
{
	struct copier *c = mem_zalloc(1, sizeof(*c));
	int rc;

	c->want = want;
	c->ctx = ctx;
	c->counters = counters;
	c->asker.fd = c->file = -1;
	pthread_mutex_init(&c->lock, NULL);
	rc = helper_start(&c->helper, "copies", run, c, error);
	if (rc)
		copier_close(c);
	else
		*out = c;
	return rc;
}

void copier_close(struct copier *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	if (c->asker.fd >= 0)
		shutdown(c->asker.fd, SHUT_RDWR);
	pthread_mutex_unlock(&c->lock);
	helper_stop(&c->helper);
	file_close(c->asker.fd);
	file_close(c->file);
	keyring_wipe(&c->asker.keys);
	keyring_wipe(&c->greeted.keys);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
