/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two aggregators answer the same schedulers. Each connects to the other's ingest port, as an agent
 * does, and tells it of every reservation:
 *
 *	scheduler's thread	teller				listener of the other one
 *
 *	reserve, tell(uid) -->	what is reserved for the pods
 *	   |			by now, in one frame	-->	adopt or disown
 *	   | 5 ms at most					   |
 *	answer	<--------------------------------- ack <-----------+
 *
 * What is told is the present state of a pod, not a change: frames may be merged, repeated, or lost
 * with their connection. A new connection begins with all reservations. Without news there is a
 * frame without reservations every BEAT_NS. Frames also tell of plans (aggregator/planner/plan_peer.h)
 * and of requests to the actuator (aggregator/api/act_box.h), at once while more of them is due.
 *
 *	ALONE --connected--> SYNCING --all reservations are acknowledged--> TOGETHER
 *	  ^			|					       |
 *	  +----- refused, or no ack for EXCHANGE_SILENT_NS -------------------+
 *
 * Answers wait only in TOGETHER. After an answer that waited in vain, others do not wait until the
 * peer has caught up: a peer that hangs costs schedulers 5 ms once.
 *
 * Frames are of type 5 (shared/frame.h). Their keys are derived from the private keys of enrolment,
 * which all aggregators of an installation have and no agent, else from the shared keys. The first
 * frame of a connection is empty. The ingest answers it with a random session, and hands the
 * connection over to the listener: a busy loop delays nothing after that. Each further frame has the
 * session and a higher sequence, so a recorded frame changes nothing. An ack has the session as
 * `applied`; 0: the frame came to the aggregator that sent it, by a name that has both addresses.
 */
#include "aggregator/edge/ingest_exchange.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/ingest_aggregator.h"
#include "aggregator/state/reservations_message.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/resolver.h"
#include "shared/thread.h"

#define BEAT_NS	 (EXCHANGE_SILENT_NS / 4)
#define RETRY_NS NS_PER_SEC

enum {
	TOLD_MAX = 4096, /* pods that are not sent yet; more: all reservations are sent again */
	BODY_FULL = FRAME_PART_BODY_MAX - RESERVATIONS_MESSAGE_ONE_MAX,
};

/* A connection that the other aggregator made. */
struct incoming {
	int fd; /* negative: none */
	uint64_t session, sequence;
};

struct exchange {
	struct reservations_peer peer; /* first */

	/* fixed after open */
	struct endpoint endpoint;
	struct reservations *reservations; /* borrowed */
	struct plan_peer *plans; /* borrowed */
	struct act_box *acts; /* borrowed; NULL: there is nothing to tell of it */
	struct exchange_counters *counters; /* borrowed */
	struct resolver *resolver;
	struct helper teller, listener;
	uint8_t run[FRAME_RUN_LEN];
	pthread_mutex_t lock;
	pthread_cond_t acknowledged;

	/* loop thread */
	struct incoming greeted;

	/* teller */
	int fd; /* to the other one; negative: none */
	uint64_t session, sequence;
	struct buf body;
	struct plan_telling telling;
	struct act_told acts_told;
	bool more; /* of the memory or the acts is due */
	unsigned int attempt; /* chooses the key: the other one may not have all */
	bool failure_logged;

	/* listener */
	bool refusal_logged; /* of plans or acts, on this connection */

	/* under lock */
	struct keyring keys; /* the loop thread, which changes them, reads them without */
	enum { ALONE, SYNCING, TOGETHER } state;
	bool behind; /* an answer went out and is not acknowledged */
	char **uids; /* owned: pods to tell of */
	size_t count;
	uint64_t told, acked; /* uids ever */
	struct incoming given; /* to the listener */
};

/* --- frames ----------------------------------------------------------------------------------- */

static void copy_keys(struct exchange *x, struct keyring *keys)
{
	pthread_mutex_lock(&x->lock);
	*keys = x->keys;
	pthread_mutex_unlock(&x->lock);
}

/* key_id NULL: any key; nonce: of the request that this answers, or NULL. */
static int send_frame(struct exchange *x, int fd, struct frame_header *header,
		      const uint8_t *key_id, const uint8_t *nonce, const struct buf *body,
		      struct error *why)
{
	struct keyring keys;
	int rc;

	copy_keys(x, &keys);
	rc = aggregator_send(fd, header,
			     key_id ? keyring_find(&keys, key_id)
				    : &keys.keys[x->attempt % keys.count],
			     nonce, body, why);
	keyring_wipe(&keys);
	return rc;
}

/* Replaces *body. nonce: of the request that this answers, or NULL. */
static int receive_frame(struct exchange *x, int fd, enum frame_type type, const uint8_t *nonce,
			 struct frame_header *header, struct buf *body, struct error *why)
{
	struct keyring keys;
	int rc;

	copy_keys(x, &keys);
	rc = aggregator_receive(fd, &keys, nonce, header, body, why);
	keyring_wipe(&keys);
	return !rc && header->type != type ? aggregator_fail(why, -EPROTO) : rc;
}

/* --- threads of schedulers -------------------------------------------------------------------- */

/* Under the lock: waits until all up to `turn` is acknowledged. */
static enum exchange_outcome await(struct exchange *x, uint64_t turn, int64_t until_ns)
{
	bool in_time = true;

	if (x->state != TOGETHER || x->behind)
		return EXCHANGE_ALONE;
	while (x->state == TOGETHER && x->acked < turn && in_time)
		in_time = thread_cond_wait(&x->acknowledged, &x->lock, until_ns);
	if (x->state == TOGETHER && x->acked >= turn)
		return EXCHANGE_ACKNOWLEDGED;
	x->behind = x->state == TOGETHER;
	return EXCHANGE_LATE;
}

static void tell(struct reservations_peer *peer, const char *uid)
{
	struct exchange *x = (struct exchange *)peer;
	enum exchange_outcome outcome = EXCHANGE_ALONE;
	int64_t began_ns = clock_mono_ns();

	pthread_mutex_lock(&x->lock);
	if (x->state != ALONE) {
		if (x->count < TOLD_MAX)
			ARRAY_ADD(x->uids, x->count) = mem_strdup(uid);
		x->told++;
		helper_wake(&x->teller);
		outcome = await(x, x->told, began_ns + EXCHANGE_WAIT_NS);
	}
	pthread_mutex_unlock(&x->lock);
	counter_add(&x->counters->answers[outcome], 1);
	counter_add(&x->counters->wait_ns, (uint64_t)(clock_mono_ns() - began_ns));
}

/* --- the teller ------------------------------------------------------------------------------- */

static bool is_stopping(const struct exchange *x)
{
	return atomic_load(&x->teller.stopping);
}

/* Sends the body and begins another one. Returns when it is acknowledged. */
static int flush(struct exchange *x, struct error *why)
{
	struct frame_header asks = {.type = FRAME_EXCHANGE, .parts = 1, .node = AGGREGATOR_NODE},
			    says;
	struct buf plain = BUF_INIT;
	struct ack ack = {.status = ACK_REFUSED};
	int rc;

	memcpy(asks.run, x->run, sizeof(asks.run));
	asks.sequence = ++x->sequence;
	rc = send_frame(x, x->fd, &asks, NULL, NULL, &x->body, why);
	if (!rc)
		rc = receive_frame(x, x->fd, FRAME_ACK, asks.nonce, &says, &plain, why);
	if (!rc)
		rc = body_decode_ack(plain.data, plain.len, &ack, why);
	if (!rc && ack.status != ACK_APPLIED)
		rc = error_fail(why, -EBADMSG, "it refuses what it is told: %s", ack.reason);
	if (!rc)
		x->session = ack.applied;
	reservations_message_begin(&x->body, x->session);
	buf_fini(&plain);
	return rc;
}

static void disconnect(struct exchange *x)
{
	file_close(x->fd);
	x->fd = -1;
}

/* -ELOOP: the address is this aggregator's own. */
static int reach(struct exchange *x, const struct address *address, struct error *why)
{
	int rc = aggregator_connect(&x->fd, &x->endpoint, address, EXCHANGE_SILENT_NS, why);

	x->sequence = x->session = 0;
	reservations_message_begin(&x->body, 0);
	if (!rc)
		rc = flush(x, why);
	if (!rc && !x->session)
		rc = -ELOOP;
	else if (rc)
		error_prefix(why, "%s", address->text);
	if (rc)
		disconnect(x);
	return rc;
}

/* Tries each address of the name. */
static int reach_any(struct exchange *x, struct error *why)
{
	struct resolver_answer found;
	int rc = -ENOENT;

	error_set(why, "the name has only the address of this aggregator");
	x->attempt++;
	aggregator_look_up(x->resolver, &x->teller.stopping, INT64_MAX, &found);
	if (found.failed)
		*why = found.why;
	for (size_t i = 0; i < found.count && rc && !is_stopping(x); i++)
		rc = reach(x, &found.addresses[i], why);
	return rc;
}

static void set_state(struct exchange *x, int state)
{
	pthread_mutex_lock(&x->lock);
	x->state = state;
	x->behind = false;
	for (size_t i = 0; i < x->count && state == ALONE; i++)
		free(x->uids[i]);
	if (state == ALONE)
		x->count = 0;
	pthread_cond_broadcast(&x->acknowledged);
	pthread_mutex_unlock(&x->lock);
	counter_set(&x->counters->together, state == TOGETHER);
}

static int put(struct exchange *x, const char *uid, const struct reservation *e, struct error *why)
{
	counter_add(&x->counters->sent,
		    reservations_message_add(&x->body, uid, e, clock_wall_ns()));
	return x->body.len > BODY_FULL ? flush(x, why) : 0;
}

/* Sends all reservations. Later changes follow them. */
static int sync_all(struct exchange *x, struct error *why)
{
	struct reservations_copy *all;
	int rc = 0;

	set_state(x, SYNCING);
	all = reservations_take(x->reservations, clock_wall_ns());
	for (size_t i = 0; i < all->count && !rc; i++)
		rc = put(x, all->of[i]->uid, all->of[i], why);
	reservations_copy_drop(all);
	return rc ? rc : flush(x, why);
}

/* Adds the pod's reservation to the frame; the API tells both aggregators of bound pods. */
static int put_present(struct exchange *x, const char *uid, struct error *why)
{
	const struct reservation *e = reservations_hold(x->reservations, uid);
	int rc = e || !reservations_remembers(x->reservations, uid) ? put(x, uid, e, why) : 0;

	reservation_drop(e);
	return rc;
}

/* Tells of the pods that are due by now; without any it is a sign of life. */
static int tell_due(struct exchange *x, struct error *why)
{
	uint64_t told;
	char **uids;
	size_t count;
	int rc = 0;

	pthread_mutex_lock(&x->lock);
	uids = x->uids;
	count = x->count;
	told = x->told;
	x->uids = NULL;
	x->count = 0;
	pthread_mutex_unlock(&x->lock);
	if (count == TOLD_MAX)
		rc = aggregator_fail(why, -ENOBUFS);
	for (size_t i = 0; i < count; i++) {
		if (!rc)
			rc = put_present(x, uids[i], why);
		free(uids[i]);
	}
	free(uids);
	if (!rc) {
		x->more = plan_peer_tell(x->plans, &x->telling, &x->body, clock_mono_ns());
		x->more |= act_box_tell(x->acts, &x->acts_told, clock_wall_ns(), &x->body);
		rc = flush(x, why);
	}
	if (rc)
		return rc;
	pthread_mutex_lock(&x->lock);
	x->acked = told;
	x->behind = x->behind && x->told > told;
	pthread_cond_broadcast(&x->acknowledged);
	pthread_mutex_unlock(&x->lock);
	return 0;
}

static void *run_teller(void *arg)
{
	struct exchange *x = arg;
	struct error why;

	do {
		int rc = reach_any(x, &why);

		if (!rc)
			rc = sync_all(x, &why);
		if (!rc) {
			set_state(x, TOGETHER);
			log_info("reservations are exchanged with %s", x->endpoint.url);
			x->failure_logged = false;
		}
		while (!rc && helper_wait(&x->teller, clock_mono_ns() + (x->more ? 0 : BEAT_NS)))
			rc = tell_due(x, &why);
		set_state(x, ALONE);
		disconnect(x);
		buf_fini(&x->telling.memory);
		x->telling = (struct plan_telling){.version = 0};
		x->acts_told = (struct act_told){.change = 0};
		x->more = false;
		if (!x->failure_logged && !is_stopping(x))
			log_warn("schedulers are answered without the other aggregator, %s: %s",
				 x->endpoint.url, why.text);
		x->failure_logged = true;
	} while (helper_wait(&x->teller, clock_mono_ns() + RETRY_NS));
	return NULL;
}

/* --- the listener ----------------------------------------------------------------------------- */

/* Takes over plans and acts. Bad ones are left out: the exchange of reservations goes on. */
static void hear_more(struct exchange *x, struct plan_hearing *hearing, const struct buf *body)
{
	struct error plan = {""}, act = {""};
	int plan_rc = plan_peer_hear(x->plans, hearing, body, clock_mono_ns(), &plan);
	int act_rc = act_box_hear(x->acts, body, clock_wall_ns(), &act);

	if (!plan_rc && !act_rc)
		return;
	if (!x->refusal_logged)
		log_warn("a part of what the other aggregator tells is left out: %s",
			 plan_rc ? plan.text : act.text);
	x->refusal_logged = true;
}

/*
 * The peer closed the connection, and sends all reservations again on a new one. A frame that is read
 * late, after a stop of this process, must not replace newer ones.
 */
static bool is_given_up(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};

	return poll(&end, 1, 0) > 0;
}

/* Takes a frame of the other aggregator. False: the connection ends. */
static bool serve_one(struct exchange *x, struct incoming *in, struct plan_hearing *hearing,
		      struct buf *body)
{
	struct ack ack = {.status = ACK_APPLIED, .applied = in->session};
	struct frame_header asks, says;
	struct error why = {""};
	size_t count = 0;
	int rc = receive_frame(x, in->fd, FRAME_EXCHANGE, NULL, &asks, body, &why);

	if (rc || asks.sequence <= in->sequence || is_given_up(in->fd))
		return false;
	in->sequence = asks.sequence;
	if (reservations_message_take(x->reservations, body, in->session, clock_wall_ns(), &count,
				      &why)) {
		counter_add(&x->counters->refused, 1);
		ack.status = ACK_REFUSED;
		snprintf(ack.reason, sizeof(ack.reason), "%.200s", why.text);
	} else {
		hear_more(x, hearing, body);
	}
	counter_add(&x->counters->received, count);
	buf_clear(body);
	body_encode_ack(&ack, body);
	says = asks;
	says.type = FRAME_ACK;
	return !send_frame(x, in->fd, &says, asks.key_id, asks.nonce, body, &why);
}

static void *run_listener(void *arg)
{
	struct exchange *x = arg;
	struct buf body = BUF_INIT;

	while (helper_wait(&x->listener, INT64_MAX)) {
		struct plan_hearing hearing = {.size = 0};
		struct incoming in;

		pthread_mutex_lock(&x->lock);
		in = x->given;
		x->given.fd = -1;
		pthread_mutex_unlock(&x->lock);
		x->refusal_logged = false;
		while (in.fd >= 0 && !atomic_load(&x->listener.stopping) &&
		       serve_one(x, &in, &hearing, &body))
			continue;
		buf_fini(&hearing.memory);
		file_close(in.fd);
	}
	buf_fini(&body);
	return NULL;
}

/* --- the loop thread -------------------------------------------------------------------------- */

bool exchange_greet(struct exchange *x, const struct frame_header *header, struct ack *ack)
{
	bool own = memcmp(header->run, x->run, FRAME_RUN_LEN) == 0;

	ack->status = ACK_APPLIED;
	if (own)
		return false;
	randombytes_buf(&ack->applied, sizeof(ack->applied));
	ack->applied |= 1;
	x->greeted = (struct incoming){-1, ack->applied, header->sequence};
	return true;
}

void exchange_connected(struct exchange *x, int fd)
{
	aggregator_set_wait(fd, EXCHANGE_SILENT_NS);
	pthread_mutex_lock(&x->lock);
	file_close(x->given.fd);
	x->given = x->greeted;
	x->given.fd = fd;
	pthread_mutex_unlock(&x->lock);
	helper_wake(&x->listener);
}

const struct keyring *exchange_keys(const struct exchange *x)
{
	return &x->keys;
}

void exchange_set_keys(struct exchange *x, const struct keyring *keys)
{
	struct keyring derived;

	if (!x)
		return;
	aggregator_derive_keys(&derived, keys);
	pthread_mutex_lock(&x->lock);
	x->keys = derived;
	pthread_mutex_unlock(&x->lock);
	keyring_wipe(&derived);
}

/* --- opening and closing ---------------------------------------------------------------------- */

int exchange_open(struct exchange **out, const char *url, const struct keyring *keys,
		  struct reservations *reservations, struct plan_peer *plans, struct act_box *acts,
		  struct exchange_counters *counters, struct error *error)
{
	struct exchange *x = mem_zalloc(1, sizeof(*x));
	int rc = aggregator_read_url(&x->endpoint, url, keys, error);

	if (rc) {
		free(x);
		return rc;
	}
	x->peer.tell = tell;
	x->reservations = reservations;
	x->plans = plans;
	x->acts = acts;
	x->counters = counters;
	x->fd = x->given.fd = -1;
	pthread_mutex_init(&x->lock, NULL);
	thread_cond_init(&x->acknowledged);
	randombytes_buf(x->run, sizeof(x->run));
	exchange_set_keys(x, keys);
	counter_set(&counters->enabled, 1);
	rc = resolver_open(&x->resolver, x->endpoint.host, NULL, NULL, error);
	if (!rc)
		rc = helper_start(&x->listener, "the exchange", run_listener, x, error);
	if (!rc)
		rc = helper_start(&x->teller, "the exchange", run_teller, x, error);
	if (rc) {
		exchange_close(x);
		return rc;
	}
	reservations_set_peer(reservations, &x->peer);
	*out = x;
	return 0;
}

void exchange_close(struct exchange *x)
{
	if (!x)
		return;
	reservations_set_peer(x->reservations, NULL);
	helper_stop(&x->teller);
	helper_stop(&x->listener);
	resolver_close(x->resolver);
	file_close(x->given.fd);
	free(x->uids);
	buf_fini(&x->body);
	keyring_wipe(&x->keys);
	pthread_cond_destroy(&x->acknowledged);
	pthread_mutex_destroy(&x->lock);
	free(x);
}
