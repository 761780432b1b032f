/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a frame:
 *
 *   opened? ---no---> counted, the third in a row ends its connection; no answer, so that a stranger
 *      |              learns nothing and an agent just times out.
 *      |              A sealed frame that is too long is refused by an ack, or its agent would send it for ever.
 *   admitted? --no--> answered as the handler says; the agent keeps it and sends it again
 *      |
 *   complete? --no--> kept; acked "part stored"
 *      |
 *   decoded? ---no--> acked "refused" with the reason: the agent drops it
 *      |
 *   handler: acked with its verdict
 *
 * Only an interval that is applied renews its connection's place: a recorded frame is applied once,
 * but opens as often as somebody sends it.
 *
 * Everything is answered with the key and the nonce of its request, so an ack cannot be replayed.
 * An answer that gets lost leads to the same frame again, which the handler knows as a duplicate.
 * On shutdown nothing is kept: agents keep what was not acked.
 */
#include "aggregator/edge/ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/ingest_parts.h"
#include "aggregator/edge/ingest_socket.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/mem.h"

/* 5000 nodes of more than 500 pods do not send at once: enough for all that are under way. */
static const struct ingest_parts_limits parts_limits = {
	.nodes_max = 4096,
	.bytes_max = 64 * 1024 * 1024,
};

struct ingest {
	/* fixed after open */
	const struct keyring *keys; /* borrowed, as are the three below */
	struct counters *counters;
	const struct ingest_handler *handler;
	void *ctx;

	struct endpoint endpoint;
	struct ingest_peers *peers;
	struct ingest_parts *parts;
	struct buf body, ack, answer; /* scratch, kept from frame to frame */
	struct interval *interval; /* owned; so, too */
	int64_t idle_ns; /* when a step last found fewer frames than it could take, or the first began */
};

int ingest_open(struct ingest **out, const char *url, const struct keyring *keys,
		struct counters *counters, const struct ingest_handler *handler, void *ctx,
		struct reason *reason)
{
	struct endpoint endpoint;
	struct ingest *in;
	int rc = endpoint_parse(&endpoint, url, reason), listener = -1;

	if (rc)
		return rc;
	if (endpoint.kind == ENDPOINT_TCP && !keys->count) {
		reason_set(reason, "%s: needs a key (--key-file); only ipc:// goes without", url);
		return -EINVAL;
	}
	rc = ingest_socket_listen(&listener, &endpoint, reason);
	if (rc)
		return rc;
	in = mem_zalloc(1, sizeof(*in));
	in->endpoint = endpoint;
	in->keys = keys;
	in->counters = counters;
	in->handler = handler;
	in->ctx = ctx;
	rc = ingest_peers_open(&in->peers, listener, endpoint.kind, &counters->ingest,
			       handler->closed, ctx);
	if (rc) {
		reason_set(reason, "%s: %s", url, strerror(-rc));
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

int ingest_fd(const struct ingest *in)
{
	return ingest_peers_fd(in->peers);
}

static void answer(struct ingest *in, const struct ingest_route *route,
		   const struct frame_header *request, const struct ack *ack)
{
	struct frame_header header = *request;

	header.type = FRAME_ACK;
	buf_clear(&in->ack);
	body_encode_ack(ack, &in->ack);
	buf_clear(&in->answer);
	frame_seal(&in->answer, &header, keyring_find(in->keys, request->key_id), request->nonce,
		   in->ack.data, in->ack.len);
	ingest_peers_reply(in->peers, route, in->answer.data, in->answer.len);
}

static enum frame_result refuse(struct ack *ack, const struct reason *why)
{
	size_t len = strnlen(why->text, sizeof(ack->reason) - 1);

	ack->status = ACK_REFUSED;
	memcpy(ack->reason, why->text, len);
	ack->reason[len] = '\0';
	return FRAME_RESULT_refused;
}

/* All parts are there. */
static enum frame_result take_interval(struct ingest *in, const struct frame_header *header,
				       uint64_t connection, const struct buf *parts, size_t count,
				       int64_t now_ns, struct ack *ack)
{
	struct interval *interval = in->interval;
	struct reason why;

	if (body_decode_interval_into(parts, count, interval, &why))
		return refuse(ack, &why);
	interval->sequence = header->sequence;
	interval->age_ns = header->age_ms * NS_PER_MS;
	interval->wait_ns = now_ns > in->idle_ns ? now_ns - in->idle_ns : 0;
	return in->handler->interval(in->ctx, header, connection, interval, now_ns, ack);
}

/* An opened frame; may take the body. */
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

static enum frame_result take_message(struct ingest *in, const struct ingest_message *message,
				      int64_t now_ns)
{
	struct ack ack = {.server_time_ns = now_ns};
	struct frame_header header;
	enum frame_result result;
	struct reason why;
	bool opened;
	int rc;

	buf_clear(&in->body);
	rc = frame_open(message->data, message->len, in->keys, NULL, &header, &in->body, &why);
	opened = !rc || rc == -EMSGSIZE;
	if (rc)
		result = result_of_error(rc);
	else if (header.type == FRAME_INTERVAL)
		result = take_part(in, &header, message->route.peer, &in->body, now_ns, &ack);
	else
		result = FRAME_RESULT_malformed;
	if (rc == -EMSGSIZE)
		refuse(&ack, &why);
	ingest_peers_judge(in->peers, &message->route, opened ? header.node : NULL,
			   result == FRAME_RESULT_applied);
	if (opened && header.type == FRAME_INTERVAL)
		answer(in, &message->route, &header, &ack);
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
