/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator's end of nanomsg REQ/REP is this program's own code on its loop (ingest_peers.c,
 * ingest_socket.c). The library's end aborts and leaks on hostile peers, has no bound for each
 * peer, and costs 18 system calls and 5 thread switches a frame; here a frame costs a recv() and a
 * sendmsg(). tests/integration/ingest_nanomsg has libnanomsg as the peer in every role,
 * integration/transport the agent.
 *
 * A frame:
 *
 *   opened? ---no---> counted, the third in a row closes its connection; no answer: strangers learn
 *      |              nothing, and an agent times out. A sealed frame that is too long gets the ack
 *      |              "refused", or its agent would send it for ever.
 *   its key's node? --no--> counted, and no answer: a key of a node opens frames of that node only
 *      |
 *   admitted? --no--> answered as the handler says; the agent resends it (engine.c: its shared key
 *      |              does not count, shared_key_fault(); another run is alive, usage_admit())
 *      |
 *   complete? --no--> stored; acked "part stored"
 *      |
 *   decoded? ---no--> acked "refused" with the reason: the agent drops it
 *      |
 *   handler (engine.c: usage_apply()): acked with its verdict; a duplicate as applied
 *
 * Only an applied interval renews the slot of its connection: a recorded frame opens as often as
 * it is sent, but is applied once. An answer is sealed with key and nonce of its request, so an
 * ack cannot be replayed. After a lost answer the agent sends the frame again, a duplicate for the
 * handler. A stop drops everything: agents keep what is not acked.
 *
 * Enrolments (shared/enrolment.h) go to a handler of their own. Their answers may take long. A refused
 * one counts for its connection as a frame that does not open.
 *
 * The first frame of another aggregator's connection is answered by the exchange, or the copier,
 * which takes the connection over (ingest_exchange.c, ingest_copy.c).
 *
 * Incomplete intervals are in a hash table by node, in order of insertion (uthash), so the oldest
 * is at the head. An agent whose parts were dropped gets "part stored" for its last part, and
 * sends all of them again.
 */
#include "aggregator/edge/ingest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/ingest_socket.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* --- parts ------------------------------------------------------------------------------------ */

struct incomplete {
	UT_hash_handle hh;
	struct frame_header header; /* of the first part; node is the key */
	size_t stored;
	size_t bytes;
	struct buf parts[BODY_PARTS_MAX]; /* owned */
	bool present[BODY_PARTS_MAX];
};

struct ingest_parts {
	struct ingest_parts_limits limits;
	struct incomplete *table;
	size_t bytes;
};

struct ingest_parts *ingest_parts_new(const struct ingest_parts_limits *limits)
{
	struct ingest_parts *p = mem_zalloc(1, sizeof(*p));

	assert(limits->nodes_max > 0);
	p->limits = *limits;
	return p;
}

static void forget(struct ingest_parts *p, struct incomplete *i)
{
	HASH_DEL(p->table, i);
	p->bytes -= i->bytes;
	for (size_t n = 0; n < BODY_PARTS_MAX; n++)
		buf_fini(&i->parts[n]);
	free(i);
}

void ingest_parts_free(struct ingest_parts *p)
{
	struct incomplete *i, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->table, i, next)
	forget(p, i);
	free(p);
}

static bool same_interval(const struct frame_header *a, const struct frame_header *b)
{
	return a->sequence == b->sequence && a->parts == b->parts &&
	       !memcmp(a->run, b->run, FRAME_RUN_LEN);
}

/* True if the part is stored with other content. */
static bool contradicts(const struct incomplete *i, size_t part, const struct buf *body)
{
	return i->present[part] &&
	       (i->parts[part].len != body->len ||
		(body->len && memcmp(i->parts[part].data, body->data, body->len) != 0));
}

static struct incomplete *begin(struct ingest_parts *p, const struct frame_header *header)
{
	struct incomplete *i;

	while (HASH_COUNT(p->table) >= p->limits.nodes_max)
		forget(p, p->table);
	i = mem_zalloc(1, sizeof(*i));
	i->header = *header;
	HASH_ADD_STR(p->table, header.node, i);
	return i;
}

static void store(struct ingest_parts *p, struct incomplete *i, size_t part, struct buf *body)
{
	i->parts[part] = *body;
	i->present[part] = true;
	i->stored++;
	i->bytes += body->len;
	p->bytes += body->len;
	buf_init(body);
}

size_t ingest_parts_add(struct ingest_parts *p, const struct frame_header *header, struct buf *body,
			struct buf parts[BODY_PARTS_MAX])
{
	struct incomplete *i;
	size_t count;

	assert(header->parts <= BODY_PARTS_MAX && header->part < header->parts);
	HASH_FIND_STR(p->table, header->node, i);
	if (i && (!same_interval(&i->header, header) || contradicts(i, header->part, body))) {
		forget(p, i);
		i = NULL;
	}
	if (!i)
		i = begin(p, header);
	if (i->present[header->part])
		buf_fini(body);
	else
		store(p, i, header->part, body);
	if (i->stored < header->parts) {
		while (p->bytes > p->limits.bytes_max)
			forget(p, p->table);
		return 0;
	}
	count = i->stored;
	for (size_t n = 0; n < count; n++) {
		parts[n] = i->parts[n];
		buf_init(&i->parts[n]);
	}
	forget(p, i);
	return count;
}

/* --- frames ----------------------------------------------------------------------------------- */

/* Enough for 5000 nodes of more than 500 pods, which do not send at once. */
static const struct ingest_parts_limits parts_limits = {
	.nodes_max = 4096,
	.bytes_max = 64 * 1024 * 1024,
};

struct ingest {
	/* fixed after open */
	const struct keyring *keys; /* borrowed, as are the six below */
	const struct ingest_enrolment *enrolment; /* NULL: nodes have no keys of their own */
	struct exchange *exchange; /* NULL: no other aggregator is expected */
	struct copier *copier; /* NULL: there is no database */
	struct counters *counters;
	const struct ingest_handler *handler;
	void *ctx;

	struct endpoint endpoint;
	struct ingest_peers *peers;
	struct ingest_parts *parts;
	struct buf body, ack, answer; /* scratch */
	struct interval *interval; /* owned; scratch */
	int64_t idle_ns; /* of the last step with fewer frames than `most`, or the first one */
};

int ingest_open(struct ingest **out, const char *url, const struct keyring *keys,
		const struct ingest_enrolment *enrolment, struct counters *counters,
		const struct ingest_handler *handler, void *ctx, struct error *reason)
{
	struct endpoint endpoint;
	struct ingest *in;
	int rc = endpoint_parse(&endpoint, url, reason), listener = -1;

	if (rc)
		return rc;
	if (endpoint.kind == ENDPOINT_TCP && !keys->count && !enrolment)
		return error_fail(
			reason, -EINVAL,
			"%s: needs a key (--key-file or --enrolment-key); only ipc:// goes without",
			url);
	rc = ingest_socket_listen(&listener, &endpoint, reason);
	if (rc)
		return rc;
	in = mem_zalloc(1, sizeof(*in));
	in->endpoint = endpoint;
	in->keys = keys;
	in->enrolment = enrolment;
	in->counters = counters;
	in->handler = handler;
	in->ctx = ctx;
	rc = ingest_peers_open(&in->peers, listener, endpoint.kind, &counters->ingest,
			       handler->closed, ctx);
	if (rc) {
		error_set(reason, "%s: %s", url, strerror(-rc));
		ingest_socket_remove(&endpoint);
		close(listener);
		free(in);
		return rc;
	}
	in->parts = ingest_parts_new(&parts_limits);
	in->interval = interval_new(0);
	*out = in;
	return 0;
}

void ingest_close(struct ingest *in)
{
	if (!in)
		return;
	ingest_socket_remove(&in->endpoint);
	ingest_peers_close(in->peers);
	ingest_parts_free(in->parts);
	interval_free(in->interval);
	buf_fini(&in->body);
	buf_fini(&in->ack);
	buf_fini(&in->answer);
	free(in);
}

void ingest_set_exchange(struct ingest *in, struct exchange *exchange, struct copier *copier)
{
	in->exchange = exchange;
	in->copier = copier;
}

int ingest_fd(const struct ingest *in)
{
	return ingest_peers_fd(in->peers);
}

void ingest_send(struct ingest *in, const struct ingest_route *route, const struct buf *answer,
		 bool refused)
{
	ingest_peers_reply(in->peers, route, answer->data, answer->len);
	if (refused)
		ingest_peers_judge(in->peers, route, NULL, false);
}

static void answer(struct ingest *in, const struct ingest_route *route, const struct keyring *keys,
		   const struct frame_header *request, const struct ack *ack)
{
	struct frame_header header = *request;

	header.type = FRAME_ACK;
	buf_clear(&in->ack);
	body_encode_ack(ack, &in->ack);
	buf_clear(&in->answer);
	frame_seal(&in->answer, &header, keyring_find(keys, request->key_id), request->nonce,
		   in->ack.data, in->ack.len);
	ingest_send(in, route, &in->answer, false);
}

static enum frame_result refuse(struct ack *ack, const struct error *error)
{
	size_t len = strnlen(error->text, sizeof(ack->reason) - 1);

	ack->status = ACK_REFUSED;
	memcpy(ack->reason, error->text, len);
	ack->reason[len] = '\0';
	return FRAME_RESULT_refused;
}

/* Of a complete interval. */
static enum frame_result take_interval(struct ingest *in, const struct frame_header *header,
				       uint64_t connection, const struct buf *parts, size_t count,
				       int64_t now_ns, struct ack *ack)
{
	struct interval *interval = in->interval;
	const struct ingest_interval i = {header, connection, parts, count, interval, now_ns};
	struct error error;

	if (body_decode_interval_into(parts, count, interval, &error))
		return refuse(ack, &error);
	interval->sequence = header->sequence;
	interval->age_ns = header->age_ms * NS_PER_MS;
	interval->wait_ns = now_ns > in->idle_ns ? now_ns - in->idle_ns : 0;
	return in->handler->interval(in->ctx, &i, ack);
}

/* Of an opened frame; may take over the body. */
static enum frame_result take_part(struct ingest *in, const struct frame_header *header,
				   uint64_t connection, struct buf *body, int64_t now_ns,
				   struct ack *ack)
{
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT};
	enum frame_result result = FRAME_RESULT_part;
	size_t count;

	if (!in->handler->admit(in->ctx, header, connection, now_ns, ack, &result))
		return result;
	if (header->parts == 1)
		return take_interval(in, header, connection, body, 1, now_ns, ack);
	count = ingest_parts_add(in->parts, header, body, parts);
	if (count)
		result = take_interval(in, header, connection, parts, count, now_ns, ack);
	else
		ack->status = ACK_PART_STORED;
	for (size_t i = 0; i < count; i++)
		buf_fini(&parts[i]);
	return result;
}

static enum frame_result result_of_error(int rc)
{
	switch (rc) {
	case -EPROTO:
		return FRAME_RESULT_version;
	case -ENOKEY:
		return FRAME_RESULT_unknown_key;
	case -EKEYREJECTED:
		return FRAME_RESULT_forged;
	case -EMSGSIZE:
		return FRAME_RESULT_oversized;
	default:
		return FRAME_RESULT_malformed;
	}
}

/*
 * The keys that may open a frame with that header. If its key id is that of an enrolled node: this
 * key alone, in *own, and *bound is the node's. Else the keyring, or nothing, and *bound is NULL.
 */
static const struct keyring *choose_keys(const struct ingest *in, const struct frame_header *header,
					 int64_t now_ns, struct keyring *own,
					 struct node_key **bound)
{
	/* Not empty, so frames in clear do not open; its only id is theirs. */
	static const struct keyring nothing = {.count = 1};

	*bound = NULL;
	if (!in->enrolment)
		return in->keys;
	*bound = node_keys_find(in->enrolment->keys, header->key_id, now_ns);
	if (!*bound)
		return in->keys->count ? in->keys : &nothing;
	own->count = 1;
	own->keys[0] = (*bound)->key;
	return own;
}

static enum frame_result take_enrolment(struct ingest *in, const struct ingest_message *message,
					int64_t now_ns)
{
	bool refused = false;
	int rc;

	buf_clear(&in->answer);
	rc = in->enrolment->take(in->ctx, message->data, message->len, &message->route, now_ns,
				 &in->answer, &refused);
	/* Anybody can seal an enrolment: one that opens tells nothing of its sender. */
	if (rc < 0)
		ingest_peers_judge(in->peers, &message->route, NULL, false);
	else if (in->answer.len)
		ingest_send(in, &message->route, &in->answer, refused);
	return rc < 0 ? result_of_error(rc) : (enum frame_result)rc;
}

static enum frame_result take_exchange(struct ingest *in, const struct ingest_message *message,
				       int64_t now_ns)
{
	const struct keyring *keys = exchange_keys(in->exchange);
	struct ack ack = {.server_time_ns = now_ns};
	struct frame_header header;
	bool copy, kept;
	int rc, fd;

	buf_clear(&in->body);
	rc = frame_open(message->data, message->len, keys, NULL, &header, &in->body, NULL);
	if (rc) {
		ingest_peers_judge(in->peers, &message->route, NULL, false);
		return result_of_error(rc);
	}
	copy = header.type == FRAME_COPY;
	kept = copy ? copier_greet(in->copier, keyring_find(keys, header.key_id), &ack)
		    : exchange_greet(in->exchange, &header, &ack);
	answer(in, &message->route, keys, &header, &ack);
	fd = kept ? ingest_peers_release(in->peers, &message->route) : -1;
	if (fd >= 0 && copy)
		copier_connected(in->copier, fd);
	else if (fd >= 0)
		exchange_connected(in->exchange, fd);
	return FRAME_RESULT_exchange;
}

/* Takes the frame of an interval; one of another type counts as malformed. */
static enum frame_result take_sealed(struct ingest *in, const struct ingest_message *message,
				     const struct keyring *keys, struct node_key *bound,
				     int64_t now_ns)
{
	struct ack ack = {.server_time_ns = now_ns};
	struct frame_header header;
	enum frame_result result = FRAME_RESULT_malformed;
	struct error error;
	bool opened;
	int rc;

	buf_clear(&in->body);
	rc = frame_open(message->data, message->len, keys, NULL, &header, &in->body, &error);
	opened = (!rc || rc == -EMSGSIZE) && (!bound || !strcmp(bound->node, header.node));
	if (opened && bound)
		bound->used = true;
	if (rc) {
		result = result_of_error(rc);
	} else if (!opened) {
		in->enrolment->foreign(in->ctx, header.node, bound->node, now_ns);
		result = FRAME_RESULT_foreign;
	} else if (header.type == FRAME_INTERVAL) {
		result = take_part(in, &header, message->route.peer, &in->body, now_ns, &ack);
	}
	if (rc == -EMSGSIZE)
		refuse(&ack, &error);
	ingest_peers_judge(in->peers, &message->route, opened ? header.node : NULL,
			   result == FRAME_RESULT_applied);
	if (opened && header.type == FRAME_INTERVAL)
		answer(in, &message->route, keys, &header, &ack);
	return result;
}

static enum frame_result take_message(struct ingest *in, const struct ingest_message *message,
				      int64_t now_ns)
{
	struct frame_header header = {0};
	struct keyring own = {0};
	const struct keyring *keys;
	size_t header_len, body_len;
	enum frame_result result;
	struct node_key *bound;

	frame_get_header(message->data, message->len, &header, &header_len, &body_len, NULL);
	if (in->enrolment && header.type == FRAME_ENROLMENT)
		return take_enrolment(in, message, now_ns);
	if (in->exchange && (header.type == FRAME_EXCHANGE || header.type == FRAME_COPY))
		return take_exchange(in, message, now_ns);
	keys = choose_keys(in, &header, now_ns, &own, &bound);
	result = take_sealed(in, message, keys, bound, now_ns);
	keyring_wipe(&own);
	return result;
}

int ingest_step(struct ingest *in, int most, int64_t now_ns, int64_t mono_ns)
{
	struct ingest_message message;
	int taken, rc = 0;

	if (!in->idle_ns)
		in->idle_ns = now_ns;
	for (taken = 0; taken < most; taken++) {
		rc = ingest_peers_receive(in->peers, &message, mono_ns);
		if (rc)
			break;
		counter_add(&in->counters->frame_bytes, message.len);
		counter_add(&in->counters->frames[take_message(in, &message, now_ns)], 1);
	}
	if (rc == -EAGAIN)
		in->idle_ns = now_ns;
	return taken;
}
