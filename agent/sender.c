/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop and wait: one interval is in flight, part by part, and stays encoded until its fate is
 * known, whatever the ring does. An ack settles it:
 *
 *	applied		continue after it, and after the last sequence the ack says is applied
 *	part stored	the next part; after the last part the first again, as the aggregator lost
 *			some
 *	too old,	dropped and counted
 *	refused
 *	need full	the same interval again with all identities; with a reason it is held, as
 *			the node's other agent is alive
 *	resend from	(with any of these) back to that sequence, with all identities in the first
 *			interval. Later ones follow as they were; if identities are missing, the ack
 *			is "need full".
 *
 * One interval in flight suffices: with thousands of agents the aggregator always has a frame of
 * each in its queue, and more would only wait longer than their timeouts. The order is oldest
 * first: windows are sums in the order of time, bit for bit as without a disturbance.
 *
 * A restarted aggregator knows no agent and cannot ask any. A sender without work whose connection
 * was replaced sends its newest interval again (a greeting): an aggregator that has it answers
 * "applied", one that lacks intervals orders them.
 *
 * A frame without an ack is sent again (the aggregator detects duplicates by run and sequence): at
 * once if the connection was replaced, else after a timeout. On the same connection the bytes are
 * the same, so a late ack of the first copy counts; on a new connection the frame is sealed anew
 * with its age. A second copy without an ack replaces the connection: TCP alone would back off for
 * minutes after a cut. Without any connection the attempt is replaced every two reply timeouts.
 *
 *	first copy          second copy         the connection is replaced
 *	    |-- first timeout -->|-------------------->|
 *	    |--------- twice the full timeout --------->|
 *
 * A slow aggregator must not get everything twice. The full timeout is the reply timeout, or twice
 * the recent answer time of this connection, doubled for each connection replaced since the last
 * answer, 24 s at most. If answers take milliseconds, a missing one is lost: the first timeout is
 * eight times the answer time, between 1 s and the full timeout. Each is longer by up to a quarter,
 * by the hash of the node's name, to spread nodes. Each copy has a request id, so the time of its
 * answer is known.
 *
 * With an enroller the sender first asks the aggregator for a key of the node (agent/enroller.h),
 * when there is something to send. Intervals go on under the present key during a renewal, which
 * waits until one under it was answered: the aggregator drops keys without frames. A frame
 * without an answer on a connection that never answered may be under a key that the aggregator lost
 * in a restart: then intervals wait for the answer to an enrolment.
 *
 * An interval that the ring no longer has, or has merged across the cursor, is skipped and counted.
 *
 * On shutdown the caller steps until sender_idle() and closes; intervals without an ack are lost.
 */
#include "agent/sender.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/schedule.h"
#include "agent/sender_socket.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/mem.h"

#define REPLY_TIMEOUT_NS (5 * NS_PER_SEC)
#define FULL_EVERY_NS	 (60 * NS_PER_SEC) /* all identities at least so often */
#define LOOK_NS		 (250 * NS_PER_MS) /* between checks of the connection while waiting */
#define ORDERED_AGAIN_NS NS_PER_SEC /* pause after repeated orders */
#define IDLE_LOOK_NS	 NS_PER_SEC /* between checks without work */
#define QUICK_NS	 NS_PER_SEC /* the shortest timeout */
#define ENROL_AGAIN_NS	 (5 * NS_PER_SEC) /* after a credential that cannot be read */
#define TIMEOUT_MAX_NS	 (24 * NS_PER_SEC) /* without the spread */

/* Per step, so that a quick aggregator with a long backlog does not delay sampling. */
enum { FRAMES_PER_STEP = 16, REPLIES_PER_STEP = 64 };

/* The interval in flight. */
struct flight {
	uint64_t sequence; /* 0: none */
	int64_t end_boot_ns; /* of its interval; 0: not known */
	bool full; /* with all identities */
	bool sent; /* at least one frame was sent and may have arrived */
	size_t part, part_count;
	struct buf parts[BODY_PARTS_MAX]; /* owned, plain */
	struct buf frame; /* owned: the sealed part; empty: to be sealed */
	struct frame_header header; /* of the sealed part */
	bool part_sent; /* on any connection */
	bool waiting; /* for its ack */
	uint64_t connection; /* of the last copy */
	uint32_t copies; /* with consecutive ids */
	uint32_t request; /* id of the last copy */
	int64_t sent_ns; /* of the last copy */
	int64_t first_sent_ns; /* of the first copy */
	unsigned int timeouts; /* in a row, over flights, until an answer */
};

struct sender {
	/* fixed after open */
	struct sender_config config;
	struct endpoint endpoint;
	struct sender_socket *socket;

	struct enrolling enrolling;
	struct flight flight;
	uint64_t cursor; /* first sequence to send, or to send again */
	uint64_t settled; /* last sequence whose fate is known: cursor - 1, in a greeting cursor */
	uint64_t durable; /* last sequence in the aggregator's database; 0: none or unknown */
	uint64_t heard_connection; /* connection of the last ack */
	int64_t answer_ns; /* recent answer time on it */
	bool full_needed; /* until a full interval is applied */
	int64_t full_due_ns; /* of the next full interval */
	unsigned int orders; /* since the last applied interval */
	int64_t pause_ns; /* no sending before */
	int64_t unready_ns; /* since when there is no connection; 0: connected */
	uint32_t last_request;
	struct sender_stats stats;
};

int sender_check(struct endpoint *endpoint, const char *url, const struct sender_config *config,
		 struct error *reason)
{
	int rc = endpoint_parse(endpoint, url, reason);

	if (rc)
		return rc;
	if (endpoint->kind == ENDPOINT_TCP && !strcmp(endpoint->host, "*"))
		return error_fail(reason, -EINVAL, "%s: \"*\" is nobody to send to", url);
	if (endpoint->kind == ENDPOINT_TCP && !config->enroller && !config->keys->count)
		return error_fail(reason, -EINVAL,
				  "%s: needs a key (--key-file, or --aggregator-key to enrol); "
				  "only ipc:// goes without, and --once needs no aggregator",
				  url);
	if (!frame_node_name_valid(config->node, strlen(config->node)))
		return error_fail(reason, -EINVAL,
				  "node name \"%.300s\": letters, digits, '-', '.', '_', 1 to %d",
				  config->node, NODE_NAME_MAX);
	return 0;
}

int sender_open(struct sender **out, const char *url, const struct sender_config *config,
		struct error *reason)
{
	struct endpoint endpoint;
	struct sender *s;
	int rc = sender_check(&endpoint, url, config, reason);

	if (!rc && endpoint.kind == ENDPOINT_TCP && !endpoint_is_address(&endpoint))
		rc = error_fail(reason, -EINVAL, "%s: not an address", url);
	if (rc)
		return rc;
	s = mem_zalloc(1, sizeof(*s));
	s->config = *config;
	if (s->config.reply_timeout_ns <= 0)
		s->config.reply_timeout_ns = REPLY_TIMEOUT_NS;
	s->endpoint = endpoint;
	s->cursor = config->first ? config->first : 1;
	s->settled = s->cursor - 1;
	s->full_needed = true;
	rc = sender_socket_open(&s->socket, &endpoint, reason);
	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

static void end_flight(struct sender *s)
{
	for (size_t i = 0; i < s->flight.part_count; i++)
		buf_fini(&s->flight.parts[i]);
	buf_fini(&s->flight.frame);
	s->flight = (struct flight){.timeouts = s->flight.timeouts};
}

void sender_close(struct sender *s)
{
	if (!s)
		return;
	end_flight(s);
	sodium_memzero(&s->enrolling, sizeof(s->enrolling));
	sender_socket_close(s->socket);
	free(s);
}

/* --- acks ------------------------------------------------------------------------------------- */

static void pause_until(struct sender *s, int64_t until_ns)
{
	if (until_ns > s->pause_ns)
		s->pause_ns = until_ns;
}

static void note_reason(struct sender *s, const char *text)
{
	size_t len = strnlen(text, sizeof(s->stats.last_reason) - 1);

	memcpy(s->stats.last_reason, text, len);
	s->stats.last_reason[len] = '\0';
}

/* Ends the flight; the fate of all up to `through` is known. */
static void settle(struct sender *s, uint64_t through)
{
	s->cursor = through + 1;
	s->settled = through;
	end_flight(s);
}

/* Its fate is known, so it does not count again. */
static bool is_greeting(const struct sender *s)
{
	return s->flight.sequence <= s->settled;
}

static void drop(struct sender *s, const char *why)
{
	s->stats.refused += !is_greeting(s);
	note_reason(s, why);
	/* Its identities did not arrive. */
	s->full_needed = true;
	settle(s, s->flight.sequence);
}

static void next_part(struct sender *s, int64_t now)
{
	struct flight *f = &s->flight;

	buf_clear(&f->frame);
	f->part_sent = false;
	if (++f->part < f->part_count)
		return;
	f->part = 0;
	pause_until(s, now + ORDERED_AGAIN_NS);
}

/* Repeated orders without progress must not become a busy loop. */
static void note_order(struct sender *s, int64_t now)
{
	s->stats.resends_ordered++;
	s->full_needed = true;
	s->settled = s->cursor - 1;
	if (s->orders++ > 0)
		pause_until(s, now + ORDERED_AGAIN_NS);
}

static void go_back(struct sender *s, uint64_t to, int64_t now)
{
	end_flight(s);
	if (to >= s->cursor)
		return;
	s->cursor = to;
	note_order(s, now);
}

/*
 * Time until the next full interval. A restarted aggregator has just asked all nodes at once; the
 * hash of the node spreads the next time.
 */
static int64_t full_wait(const struct sender *s)
{
	uint64_t every = FULL_EVERY_NS;

	return (int64_t)(s->full_needed ? schedule_node_hash(s->config.node) % every : every);
}

static void applied(struct sender *s, const struct ack *ack, const struct ring *ring, int64_t now)
{
	uint64_t through = s->flight.sequence, newest = ring_newest(ring);
	uint64_t known = ack->applied < newest ? ack->applied : newest;

	s->stats.acked += !is_greeting(s);
	if (s->flight.full) {
		s->full_due_ns = now + full_wait(s);
		s->full_needed = false;
	}
	if (!ack->resend_from)
		s->orders = 0;
	settle(s, known > through ? known : through);
}

static void obey(struct sender *s, const struct ack *ack, const struct ring *ring, int64_t now)
{
	/* Each ack sets the interval, but that of a stored part. */
	if (ack->status != ACK_PART_STORED || ack->interval_ms)
		s->stats.interval_ms = ack->interval_ms;
	if (ack->durable || ack->status == ACK_APPLIED)
		s->durable = ack->durable;
	if (ack->wait_ms)
		pause_until(s, now + ack->wait_ms * NS_PER_MS);
	switch (ack->status) {
	case ACK_APPLIED:
		applied(s, ack, ring, now);
		break;
	case ACK_PART_STORED:
		next_part(s, now);
		return;
	case ACK_TOO_OLD:
		drop(s, ack->reason[0] ? ack->reason : "too old");
		break;
	case ACK_REFUSED:
		drop(s, ack->reason);
		break;
	case ACK_NEED_FULL:
		if (ack->reason[0]) {
			s->stats.held++;
			note_reason(s, ack->reason);
		}
		if (!ack->resend_from || ack->resend_from >= s->cursor)
			note_order(s, now);
		end_flight(s);
		break;
	}
	if (ack->resend_from)
		go_back(s, ack->resend_from, now);
}

static bool same_part(const struct frame_header *a, const struct frame_header *b)
{
	return a->sequence == b->sequence && a->part == b->part && a->parts == b->parts &&
	       !memcmp(a->run, b->run, FRAME_RUN_LEN) && !strcmp(a->node, b->node);
}

static const struct keyring *keys_of(const struct sender *s)
{
	return s->config.enroller ? &s->enrolling.keys : s->config.keys;
}

/* 0, or -errno: not the awaited ack. */
static int open_ack(const struct sender *s, const struct buf *data, struct ack *ack,
		    struct error *reason)
{
	struct frame_header header;
	struct buf body = BUF_INIT;
	int rc = frame_open(data->data, data->len, keys_of(s), s->flight.header.nonce, &header,
			    &body, reason);

	if (rc)
		return rc;
	if (header.type != FRAME_ACK || !same_part(&header, &s->flight.header))
		rc = error_fail(reason, -EBADMSG, "not the ack of what was sent");
	else
		rc = body_decode_ack(body.data, body.len, ack, reason);
	buf_fini(&body);
	return rc;
}

/*
 * The answer time rises at once and falls by an eighth per answer. Copies between the first and the
 * last count as the first.
 */
static void note_answer(struct sender *s, uint32_t request, int64_t now)
{
	const struct flight *f = &s->flight;
	int64_t took_ns = now - (request == f->request ? f->sent_ns : f->first_sent_ns);

	if (s->heard_connection != s->flight.connection)
		s->answer_ns = 0;
	s->heard_connection = s->flight.connection;
	s->answer_ns =
		took_ns > s->answer_ns ? took_ns : s->answer_ns - (s->answer_ns - took_ns) / 8;
	if (s->config.enroller &&
	    !memcmp(f->header.key_id, keyring_sealing(keys_of(s))->id, KEY_ID_LEN))
		s->enrolling.fresh = false;
	s->flight.waiting = false;
	s->flight.timeouts = 0;
	s->stats.last_ack_ns = now;
}

/* An answer to the enrolment under way. */
static void take_enrolment(struct sender *s, const struct buf *data, int64_t now)
{
	struct error why = {""};
	enum enrolling_result result =
		enrolling_take(&s->enrolling, data, now, s->config.wall_ns(), &why);

	if (result == ENROLLING_BAD_ANSWER)
		s->stats.bad_acks++;
	s->stats.enrolled += result == ENROLLING_ENROLLED;
	s->stats.not_enrolled += result == ENROLLING_REFUSED;
	if (why.text[0])
		note_reason(s, why.text);
}

/* Takes all replies: unread ones would keep the descriptor readable. */
static void receive(struct sender *s, const struct ring *ring, int64_t now)
{
	const struct flight *f = &s->flight;
	struct buf data = BUF_INIT;
	struct error why;
	struct ack ack;
	uint32_t request;

	for (int n = 0; n < REPLIES_PER_STEP && !sender_socket_receive(s->socket, &request, &data);
	     n++) {
		if (s->enrolling.waiting && request == s->enrolling.request) {
			take_enrolment(s, &data, now);
			continue;
		}
		/* Not of a copy on this connection: a late ack of a frame that was sent twice. */
		if (!f->waiting || ((f->request - request) & INT32_MAX) >= f->copies)
			continue;
		if (open_ack(s, &data, &ack, &why)) {
			s->stats.bad_acks++;
			note_reason(s, why.text);
			continue;
		}
		note_answer(s, request, now);
		obey(s, &ack, ring, now);
	}
	buf_fini(&data);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Longer by up to a quarter. */
static int64_t spread(const struct sender *s, int64_t ns)
{
	return ns + (int64_t)(schedule_node_hash(s->config.node) % (uint64_t)(ns / 4 + 1));
}

static bool has_answered(const struct sender *s)
{
	return s->flight.connection == s->heard_connection;
}

static int64_t full_timeout_ns(const struct sender *s)
{
	int64_t usual_ns = s->config.reply_timeout_ns, ns = usual_ns;

	if (has_answered(s) && ns < 2 * s->answer_ns)
		ns = 2 * s->answer_ns;
	for (unsigned int given_up = 0; given_up < s->flight.timeouts / 2 && ns < TIMEOUT_MAX_NS;
	     given_up++)
		ns *= 2;
	if (ns > TIMEOUT_MAX_NS && usual_ns < TIMEOUT_MAX_NS)
		ns = TIMEOUT_MAX_NS;
	return spread(s, ns);
}

static int64_t first_timeout_ns(const struct sender *s, int64_t full_ns)
{
	int64_t ns = 8 * s->answer_ns > QUICK_NS ? 8 * s->answer_ns : QUICK_NS;

	if (!has_answered(s) || s->flight.timeouts > 1)
		return full_ns;
	ns = spread(s, ns);
	return ns < full_ns ? ns : full_ns;
}

/* The timeout of the current copy. */
static int64_t timeout_ns(const struct sender *s)
{
	int64_t full_ns = full_timeout_ns(s), first_ns = first_timeout_ns(s, full_ns);

	return s->flight.timeouts % 2 ? 2 * full_ns - first_ns : first_ns;
}

/* True while the ack may come; else the frame is sent again. */
static bool still_waiting(struct sender *s, int64_t now)
{
	struct flight *f = &s->flight;

	if (!f->waiting)
		return false;
	if (sender_socket_connections(s->socket) != f->connection) {
		f->waiting = false;
	} else if (now - f->sent_ns >= timeout_ns(s)) {
		f->waiting = false;
		s->stats.timeouts++;
		if (s->config.enroller && !has_answered(s))
			enrolling_doubt(&s->enrolling, now);
		if (++f->timeouts % 2 == 0)
			sender_socket_reconnect(s->socket);
	}
	return f->waiting;
}

/* Whether there is a connection; replaces an attempt that hangs. */
static bool connected(struct sender *s, int64_t now)
{
	if (sender_socket_ready(s->socket)) {
		s->unready_ns = 0;
		return true;
	}
	if (!s->unready_ns) {
		s->unready_ns = now;
	} else if (now - s->unready_ns >= 2 * s->config.reply_timeout_ns) {
		sender_socket_reconnect(s->socket);
		s->unready_ns = now;
	}
	return false;
}

/* Everything before `next` is gone. */
static void skip_to(struct sender *s, uint64_t next)
{
	s->stats.skipped += next - 1 - s->settled;
	s->settled = next - 1;
	s->cursor = next;
	s->full_needed = true;
}

/* The next interval to send, or NULL. */
static const struct interval *next_interval(struct sender *s, const struct ring *ring)
{
	for (;;) {
		const struct interval *i = ring_find(ring, s->cursor);
		uint64_t first;

		if (!i)
			return NULL;
		first = i->sequence - i->merged + 1;
		if (first >= s->cursor) {
			if (first > s->cursor)
				skip_to(s, first);
			return i;
		}
		skip_to(s, i->sequence + 1);
	}
}

/* Encodes the next interval; false: none. */
static bool begin_flight(struct sender *s, const struct ring *ring, int64_t now)
{
	struct flight *f = &s->flight;
	struct error why;

	for (;;) {
		const struct interval *i = next_interval(s, ring);
		int parts;

		if (!i)
			return false;
		f->sequence = i->sequence;
		f->end_boot_ns = i->end_boot_ns;
		f->full = s->full_needed || now >= s->full_due_ns;
		parts = body_encode_interval(i, f->full, f->parts, &why);
		if (parts > 0) {
			f->part_count = (size_t)parts;
			return true;
		}
		drop(s, why.text);
	}
}

/* The age of the interval, at least 1; 0: unknown. */
static uint32_t age_ms(const struct sender *s)
{
	int64_t age_ns;

	if (!s->config.boot_ns || !s->flight.end_boot_ns)
		return 0;
	age_ns = s->config.boot_ns() - s->flight.end_boot_ns;
	if (age_ns >= UINT32_MAX * NS_PER_MS)
		return UINT32_MAX;
	return age_ns > 0 ? (uint32_t)((age_ns + NS_PER_MS - 1) / NS_PER_MS) : 1;
}

/* Seals the part, unless it is sealed for this connection with the current key. */
static void seal(struct sender *s, uint64_t connection)
{
	const struct key *key = keyring_sealing(keys_of(s));
	struct flight *f = &s->flight;
	struct buf *part = &f->parts[f->part];

	if (f->sent && connection != f->connection)
		buf_clear(&f->frame);
	if (f->frame.len && key && !memcmp(f->header.key_id, key->id, KEY_ID_LEN))
		return;
	if (f->frame.len && !key)
		return;
	f->header = (struct frame_header){
		.type = FRAME_INTERVAL,
		.sequence = f->sequence,
		.part = (uint16_t)f->part,
		.parts = (uint16_t)f->part_count,
		.age_ms = age_ms(s),
	};
	memcpy(f->header.run, s->config.run, FRAME_RUN_LEN);
	memcpy(f->header.node, s->config.node, strlen(s->config.node) + 1);
	buf_clear(&f->frame);
	frame_seal(&f->frame, &f->header, key, NULL, part->data, part->len);
	f->copies = 0;
}

/* False: the connection is gone. */
static bool transmit(struct sender *s, int64_t now)
{
	struct flight *f = &s->flight;
	uint64_t connection = sender_socket_connections(s->socket);
	uint32_t request = (s->last_request + 1) & INT32_MAX;

	seal(s, connection);
	if (sender_socket_send(s->socket, request, f->frame.data, f->frame.len)) {
		/* An unsent interval may merge: begin again from the ring. */
		if (!f->sent)
			end_flight(s);
		return false;
	}
	s->stats.sent_again += f->part_sent;
	/* An enrolment has the id after the last copy. */
	if (s->last_request != f->request)
		f->copies = 0;
	if (!f->copies++)
		f->first_sent_ns = now;
	f->sent = f->part_sent = f->waiting = true;
	f->request = s->last_request = request;
	f->sent_ns = now;
	f->connection = connection;
	s->stats.sent++;
	s->stats.sent_bytes += f->frame.len;
	return true;
}

/*
 * After a replaced connection, without work: back to the newest interval, if the ring has it
 * unmerged.
 */
static void greet(struct sender *s, const struct ring *ring)
{
	const struct interval *newest;

	if (!s->heard_connection || s->flight.sequence || ring_newest(ring) >= s->cursor ||
	    sender_socket_connections(s->socket) == s->heard_connection)
		return;
	newest = ring_find(ring, s->cursor - 1);
	if (!newest || newest->merged != 1)
		return;
	s->cursor = newest->sequence;
}

/* Sends an enrolment if one is due, or again after a timeout. */
static void enrol(struct sender *s, int64_t now)
{
	struct enrolling *e = &s->enrolling;
	uint64_t connection = sender_socket_connections(s->socket);
	struct buf frame = BUF_INIT;
	struct error why;

	if (e->waiting && now - e->sent_ns >= spread(s, s->config.reply_timeout_ns)) {
		if (e->connection != s->heard_connection)
			sender_socket_reconnect(s->socket);
		e->waiting = false;
		s->stats.timeouts++;
		s->stats.not_enrolled++;
		note_reason(s, "no answer: does the aggregator have an --enrolment-key, and is "
			       "--aggregator-key its public key?");
	} else if (e->waiting && e->connection != connection) {
		e->waiting = false;
	}
	if (e->waiting || now < e->due_ns || (e->fresh && !e->doubt) || !connected(s, now))
		return;
	if (enrolling_ask(e, s->config.enroller, s->config.node, s->config.run, s->config.wall_ns(),
			  &frame, &why)) {
		s->stats.not_enrolled++;
		note_reason(s, why.text);
		e->due_ns = now + ENROL_AGAIN_NS;
	} else if (!sender_socket_send(s->socket, (s->last_request + 1) & INT32_MAX, frame.data,
				       frame.len)) {
		s->last_request = e->request = (s->last_request + 1) & INT32_MAX;
		e->waiting = true;
		e->connection = connection;
		e->sent_ns = now;
	}
	buf_fini(&frame);
}

static bool has_work(const struct sender *s, const struct ring *ring)
{
	return s->flight.sequence || ring_newest(ring) >= s->cursor;
}

static int64_t wake_ns(const struct sender *s, const struct ring *ring, int64_t now)
{
	int64_t due = s->flight.sent_ns + timeout_ns(s);

	if (s->flight.waiting)
		return due < now + LOOK_NS ? due : now + LOOK_NS;
	if (!has_work(s, ring))
		return now + IDLE_LOOK_NS;
	return now < s->pause_ns ? s->pause_ns : now + LOOK_NS;
}

int64_t sender_step(struct sender *s, const struct ring *ring, int64_t mono_ns)
{
	for (int i = 0; i < FRAMES_PER_STEP; i++) {
		receive(s, ring, mono_ns);
		greet(s, ring);
		if (s->config.enroller && has_work(s, ring))
			enrol(s, mono_ns);
		if (still_waiting(s, mono_ns) || !has_work(s, ring) || mono_ns < s->pause_ns ||
		    !connected(s, mono_ns))
			return wake_ns(s, ring, mono_ns);
		if (s->config.enroller && (!s->enrolling.keys.count || s->enrolling.doubt))
			return mono_ns + LOOK_NS; /* no key to seal with */
		if (!s->flight.sequence && !begin_flight(s, ring, mono_ns))
			return wake_ns(s, ring, mono_ns);
		if (!transmit(s, mono_ns))
			return wake_ns(s, ring, mono_ns);
	}
	return mono_ns;
}

/*
 * --- state --------------------------------------------------------------------------------------
 */

void sender_renew_key(struct sender *s, int64_t mono_ns)
{
	s->enrolling.due_ns = mono_ns;
	s->enrolling.renew = true;
}

int sender_fd(const struct sender *s)
{
	return sender_socket_fd(s->socket);
}

int sender_idle(const struct sender *s, const struct ring *ring)
{
	return !has_work(s, ring);
}

void sender_get_stats(const struct sender *s, struct sender_stats *stats)
{
	*stats = s->stats;
	stats->settled = s->settled;
	stats->cursor = s->flight.sent ? s->flight.sequence + 1 : s->cursor;
}

size_t sender_get_cursors(const struct sender *s, uint64_t cursors[SENDER_CURSORS])
{
	size_t count = 0;

	cursors[count++] = s->cursor;
	if (s->flight.sent)
		cursors[count++] = s->flight.sequence + 1;
	if (s->durable)
		cursors[count++] = s->durable + 1;
	return count;
}
