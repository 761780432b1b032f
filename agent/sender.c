/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop and wait: one interval is in flight, part by part, and stays encoded here until its fate is
 * known, whatever the ring does meanwhile. An ack settles it:
 *
 *   applied        go on behind it (and behind what the ack says is applied)
 *   part stored    the next part; after the last one from the first again, since the other side
 *                  lost some
 *   too old,       dropped and counted, never sent again
 *   refused
 *   need full      the same interval again with all identities; with a reason it was held, since the
 *                  node's other agent is alive
 *   resend from    (with any of these) back to that sequence, there with all identities. Those of
 *                  later ones travel as they did the first time: told in order they leave nothing
 *                  out, and if they do, "need full" says so.
 *
 * One in flight is enough to come back fast: of thousands of agents the aggregator has a frame of
 * each in its queue then and never waits for any, while more of each would only wait longer, beyond
 * their timeouts. And oldest first: the windows are sums in the order of time, equal to the last
 * bit to those that were never disturbed.
 *
 * An aggregator that was started anew knows nobody and can ask nobody. So that it need not wait for
 * the next interval, a sender without work that finds its connection replaced tells its newest
 * interval once more (a greeting): who has it answers "applied", who has not orders what it lacks.
 *
 * What is lost on the way costs time only: without an ack it goes out again (the aggregator knows
 * duplicates by run and sequence), at once when the connection was replaced, else in time. On the
 * same connection these are the same bytes, so that a late ack of the first copy still counts; on a
 * new one it is sealed anew with its age. A second copy without an ack, or as long without any
 * connection, gives the connection up: TCP alone would back off for minutes after a cut.
 *
 *	first copy          second copy         the connection is given up
 *	    |-- its timeout ---->|--------------------->|
 *	    |--------- twice the full timeout --------->|
 *
 * An aggregator that is slow because everybody wants it at once must not get everything twice for
 * it. So the full timeout is the reply timeout, or twice as long as answers took lately on this
 * connection, and twice as long again for each connection that was given up without an answer since
 * the last one; 24 s at most. But where answers usually take milliseconds, one that does not come
 * is lost: the first copy waits eight times as long as they took, 1 s at least, and the full
 * timeout at most. Each is up to a quarter longer, by the node's name, which spreads nodes apart:
 * 30 s are the most. Copies have ids of their own, which tell how long an answer took though it is
 * one to a second copy.
 *
 * What the ring no longer has, and what it merged across the cursor and so cannot be told apart
 * from what was applied, is skipped and counted.
 *
 * On shutdown the caller steps until sender_idle(), then closes; what is unacknowledged then is
 * lost.
 */
#include "agent/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/schedule.h"
#include "agent/sender_socket.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/mem.h"

#define REPLY_TIMEOUT_NS (5 * NS_PER_SEC)
#define FULL_EVERY_NS	 (60 * NS_PER_SEC)
#define LOOK_NS		 (250 * NS_PER_MS) /* between looks at a connection that is missing or may break */
#define ORDERED_AGAIN_NS NS_PER_SEC /* pause when the same is ordered again and again */
#define IDLE_LOOK_NS	 NS_PER_SEC /* between looks whether a connection without work was replaced */
#define QUICK_NS	 NS_PER_SEC /* the shortest timeout */
#define TIMEOUT_MAX_NS	 (24 * NS_PER_SEC) /* the longest, but for the quarter that spreads nodes */

/*
 * Frames sent in one step, so that a quick aggregator with a long backlog does not keep the caller
 * from sampling.
 */
enum { FRAMES_PER_STEP = 16, REPLIES_PER_STEP = 64 };

/* The interval being sent. */
struct flight {
	uint64_t sequence; /* 0: none */
	int64_t end_boot_ns; /* of its interval; 0: not known */
	bool full; /* with all identities */
	bool sent; /* at least one frame of it left: it may have arrived */
	size_t part, part_count;
	struct buf parts[BODY_PARTS_MAX]; /* owned, plain */
	struct buf frame; /* owned: the sealed part; empty: to be sealed */
	struct frame_header header; /* of the sealed part */
	bool part_sent; /* on whatever connection */
	bool waiting; /* for its ack */
	uint64_t connection; /* on which it left .. */
	uint32_t copies; /* .. and how often, with ids one after the other: */
	uint32_t request; /* the last one's id .. */
	int64_t sent_ns; /* .. and when it left */
	int64_t first_sent_ns; /* when the first one did */
	unsigned int timeouts; /* in a row; over flights, until something is answered */
};

struct sender {
	/* fixed after open */
	struct sender_config config;
	struct endpoint endpoint;
	struct sender_socket *socket;

	struct flight flight;
	uint64_t cursor; /* first sequence that is to be told, or told again */
	uint64_t settled; /* last one whose fate is known: cursor - 1, in a greeting cursor */
	uint64_t durable; /* last one the other side has in its database, 0: none or unknown */
	uint64_t heard_connection; /* the one on which the last ack came */
	int64_t answer_ns; /* what answers take on it: the longest lately, fading */
	bool full_needed; /* until a full one is applied */
	int64_t full_due_ns; /* when the next one is to be sent even so */
	unsigned int orders; /* since an interval was last applied */
	int64_t pause_ns; /* nothing is sent before */
	int64_t unready_ns; /* since when there is no connection; 0: there is one */
	uint32_t last_request;
	struct sender_stats stats;
};

static int check(struct endpoint *endpoint, const char *url, const struct sender_config *config,
		 struct reason *reason)
{
	int rc = endpoint_parse(endpoint, url, reason);

	if (rc)
		return rc;
	if (endpoint->kind == ENDPOINT_TCP && !strcmp(endpoint->host, "*")) {
		reason_set(reason, "%s: \"*\" is nobody to send to", url);
		return -EINVAL;
	}
	if (endpoint->kind == ENDPOINT_TCP && !config->keys->count) {
		reason_set(reason,
			   "%s: needs a key (--key-file); only ipc:// goes without, and --once "
			   "needs no aggregator",
			   url);
		return -EINVAL;
	}
	if (!frame_node_name_valid(config->node, strlen(config->node))) {
		reason_set(reason, "node name \"%.300s\": letters, digits, '-', '.', '_', 1 to %d",
			   config->node, NODE_NAME_MAX);
		return -EINVAL;
	}
	return 0;
}

int sender_check(const char *url, const struct sender_config *config, struct reason *reason)
{
	struct endpoint endpoint;

	return check(&endpoint, url, config, reason);
}

int sender_open(struct sender **out, const char *url, const struct sender_config *config,
		struct reason *reason)
{
	struct endpoint endpoint;
	struct sender *s;
	int rc = check(&endpoint, url, config, reason);

	if (!rc && endpoint.kind == ENDPOINT_TCP && !endpoint_is_address(&endpoint)) {
		reason_set(reason, "%s: not an address", url);
		rc = -EINVAL;
	}
	if (rc)
		return rc;
	s = mem_zalloc(1, sizeof(*s));
	s->config = *config;
	if (s->config.reply_timeout_ns <= 0)
		s->config.reply_timeout_ns = REPLY_TIMEOUT_NS;
	if (s->config.full_every_ns <= 0)
		s->config.full_every_ns = FULL_EVERY_NS;
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

/* The interval in flight and all before it are done with. */
static void settle(struct sender *s, uint64_t through)
{
	s->cursor = through + 1;
	s->settled = through;
	end_flight(s);
}

/* A greeting has its fate already and is counted once. */
static bool is_greeting(const struct sender *s)
{
	return s->flight.sequence <= s->settled;
}

static void drop(struct sender *s, const char *why)
{
	s->stats.refused += !is_greeting(s);
	note_reason(s, why);
	/* Identities that travelled in it did not arrive. */
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

/* Orders that repeat before anything was applied must not turn into a busy loop of two machines. */
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
 * Until all identities are told again. An aggregator that starts anew has just asked all nodes for
 * them: each then picks a moment of its own for the next time, lest they come in one burst every
 * minute from then on.
 */
static int64_t full_wait(const struct sender *s)
{
	uint64_t every = (uint64_t)s->config.full_every_ns;

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
	/* Each ack orders anew, but for those of parts, which say nothing yet. */
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

/* -EBADMSG and the like for what is not the ack that is awaited. */
static int open_ack(const struct sender *s, const struct buf *data, struct ack *ack,
		    struct reason *reason)
{
	struct frame_header header;
	struct buf body = BUF_INIT;
	int rc = frame_open(data->data, data->len, s->config.keys, s->flight.header.nonce, &header,
			    &body, reason);

	if (rc)
		return rc;
	if (header.type != FRAME_ACK || !same_part(&header, &s->flight.header)) {
		reason_set(reason, "not the ack of what was sent");
		rc = -EBADMSG;
	} else {
		rc = body_decode_ack(body.data, body.len, ack, reason);
	}
	buf_fini(&body);
	return rc;
}

/* Whether it is the id of one of the copies on this connection. */
static bool is_awaited(const struct flight *f, uint32_t request)
{
	return f->waiting && ((f->request - request) & INT32_MAX) < f->copies;
}

/*
 * How long answers take: what takes longer counts at once, what takes less by and by. Copies between
 * the first and the last one count as the first.
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
	s->flight.waiting = false;
	s->flight.timeouts = 0;
	s->stats.last_ack_ns = now;
}

/* Takes everything that arrived: unread replies would keep the descriptor readable. */
static void receive(struct sender *s, const struct ring *ring, int64_t now)
{
	struct buf data = BUF_INIT;
	struct reason why;
	struct ack ack;
	uint32_t request;

	for (int n = 0; n < REPLIES_PER_STEP && !sender_socket_receive(s->socket, &request, &data);
	     n++) {
		/* A late ack of something that was sent twice. */
		if (!is_awaited(&s->flight, request))
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

/* A quarter longer at most. */
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

/* How long the frame on its way waits for its ack. */
static int64_t timeout_ns(const struct sender *s)
{
	int64_t full_ns = full_timeout_ns(s), first_ns = first_timeout_ns(s, full_ns);

	return s->flight.timeouts % 2 ? 2 * full_ns - first_ns : first_ns;
}

/* True while the ack may still come; else the frame goes out again. */
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
		if (++f->timeouts % 2 == 0)
			sender_socket_reconnect(s->socket);
	}
	return f->waiting;
}

/* True when there is a connection; gives an attempt up that hangs. */
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

/* Everything before `next` cannot be told any more. */
static void skip_to(struct sender *s, uint64_t next)
{
	s->stats.skipped += next - 1 - s->settled;
	s->settled = next - 1;
	s->cursor = next;
	s->full_needed = true;
}

/* The next interval to send, past everything that cannot be; NULL when all is sent. */
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

/* Encodes the next interval; false when there is none. */
static bool begin_flight(struct sender *s, const struct ring *ring, int64_t now)
{
	struct flight *f = &s->flight;
	struct reason why;

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

/* Of the interval, for its frame: at least 1, as 0 says nothing. */
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

/* Seals the part unless it is, for this connection and with the key that now seals. */
static void seal(struct sender *s, uint64_t connection)
{
	const struct key *key = keyring_sealing(s->config.keys);
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

/* False when the connection went away. */
static bool transmit(struct sender *s, int64_t now)
{
	struct flight *f = &s->flight;
	uint64_t connection = sender_socket_connections(s->socket);
	uint32_t request = (s->last_request + 1) & INT32_MAX;

	seal(s, connection);
	if (sender_socket_send(s->socket, request, f->frame.data, f->frame.len)) {
		/* What never left may yet be merged: the ring is asked again. */
		if (!f->sent)
			end_flight(s);
		return false;
	}
	s->stats.sent_again += f->part_sent;
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
 * A connection that was replaced under a sender without work: back to the newest interval, if the
 * ring has it as it was sent.
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
		if (still_waiting(s, mono_ns) || !has_work(s, ring) || mono_ns < s->pause_ns ||
		    !connected(s, mono_ns))
			return wake_ns(s, ring, mono_ns);
		if (!s->flight.sequence && !begin_flight(s, ring, mono_ns))
			return wake_ns(s, ring, mono_ns);
		if (!transmit(s, mono_ns))
			return wake_ns(s, ring, mono_ns);
	}
	return mono_ns;
}

/* --- what others ask -------------------------------------------------------------------------- */

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
