/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport is the agents' (ingest_socket.h): a request has a stack of one id, and its answer
 * repeats it. Descriptors block, for a bounded time; after a stop of the process their calls fail with
 * EINTR (signal(7)) and are repeated.
 */
#include "aggregator/edge/ingest_aggregator.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/edge/ingest_socket.h"
#include "shared/clock.h"

#define DERIVED_FROM "evenkeel exchange"

enum { LOOKUP_LOOK_MS = 100 };

/* The stack of ids: there is one request at a time. */
static const uint8_t request_id[] = {0x80, 0, 0, 0};

int aggregator_fail(struct error *why, int rc)
{
	return error_fail(why, rc, "%s",
			  rc == -EAGAIN || rc == -EINPROGRESS ? "no answer in time"
							      : strerror(-rc));
}

void aggregator_derive_keys(struct keyring *derived, const struct keyring *keys)
{
	*derived = (struct keyring){.count = keys->count};
	for (size_t i = 0; i < keys->count; i++) {
		crypto_generichash(derived->keys[i].secret, KEY_LEN, (const uint8_t *)DERIVED_FROM,
				   strlen(DERIVED_FROM), keys->keys[i].secret, KEY_LEN);
		key_set_id(&derived->keys[i]);
	}
}

int aggregator_read_url(struct endpoint *endpoint, const char *url, const struct keyring *keys,
			struct error *error)
{
	int rc = endpoint_parse(endpoint, url, error);

	if (!rc && (endpoint->kind != ENDPOINT_TCP || !strcmp(endpoint->host, "*") || !keys->count))
		rc = error_fail(error, -EINVAL,
				"%s: needs tcp://HOST:PORT, and a key that both aggregators have "
				"(--enrolment-key or --key-file)",
				url);
	return rc ? error_at(error, rc, "--peer") : 0;
}

/* --- frames ----------------------------------------------------------------------------------- */

/*
 * Whether a call that moved a part of its bytes is repeated: a signal ended it, and not the limit of
 * aggregator_set_wait(), which is the same in both directions.
 */
static bool has_time(int fd, int64_t begun_ns)
{
	struct timeval limit = {0};
	socklen_t len = sizeof(limit);

	getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &len);
	return clock_mono_ns() < begun_ns + limit.tv_sec * NS_PER_SEC + limit.tv_usec * 1000;
}

int aggregator_send(int fd, struct frame_header *header, const struct key *key,
		    const uint8_t *nonce, const struct buf *body, struct error *why)
{
	size_t head_len = wire_head_len(ENDPOINT_TCP), at = 0;
	uint8_t head[WIRE_HEAD_MAX] = {0};
	struct buf message = BUF_INIT;
	int64_t begun_ns = clock_mono_ns();
	bool whole;
	ssize_t n;
	int rc;

	if (!key)
		return aggregator_fail(why, -ENOKEY);
	buf_add(&message, head, head_len);
	buf_add(&message, request_id, sizeof(request_id));
	frame_seal(&message, header, key, nonce, body->data, body->len);
	wire_put_head(ENDPOINT_TCP, message.len - head_len, (uint8_t *)message.data);
	do {
		n = TEMP_FAILURE_RETRY(send(fd, message.data + at, message.len - at, MSG_NOSIGNAL));
		at += n > 0 ? (size_t)n : 0;
		whole = at == message.len;
	} while (n >= 0 && !whole && has_time(fd, begun_ns));
	rc = whole ? 0 : aggregator_fail(why, n < 0 ? -errno : -EAGAIN);
	buf_fini(&message);
	return rc;
}

static int receive_bytes(int fd, void *into, size_t len, struct error *why)
{
	int64_t begun_ns = clock_mono_ns();
	size_t at = 0;
	ssize_t n;

	do {
		n = TEMP_FAILURE_RETRY(recv(fd, (char *)into + at, len - at, MSG_WAITALL));
		at += n > 0 ? (size_t)n : 0;
		if (at == len)
			return 0;
	} while (n > 0 && has_time(fd, begun_ns));
	return aggregator_fail(why, n < 0 ? -errno : n > 0 ? -EAGAIN : -ECONNRESET);
}

int aggregator_receive(int fd, const struct keyring *keys, const uint8_t *nonce,
		       struct frame_header *header, struct buf *body, struct error *why)
{
	uint8_t head[WIRE_HEAD_MAX];
	size_t len, id_len = sizeof(request_id);
	struct buf message = BUF_INIT;
	int rc = receive_bytes(fd, head, wire_head_len(ENDPOINT_TCP), why);

	if (!rc && (wire_get_head(ENDPOINT_TCP, head, sizeof(head), &len) || len < id_len))
		rc = aggregator_fail(why, -EPROTO);
	if (!rc)
		rc = receive_bytes(fd, buf_reserve(&message, len), len, why);
	buf_clear(body);
	if (!rc)
		rc = frame_open(message.data + id_len, len - id_len, keys, nonce, header, body,
				why);
	buf_fini(&message);
	return rc;
}

/* --- connecting ------------------------------------------------------------------------------- */

void aggregator_look_up(struct resolver *resolver, const atomic_bool *stopping, int64_t until_ns,
			struct resolver_answer *found)
{
	struct pollfd news = {.fd = resolver_fd(resolver), .events = POLLIN};

	*found = (struct resolver_answer){.failed = false};
	resolver_ask(resolver);
	while (!resolver_take(resolver, found) && !(stopping && atomic_load(stopping)) &&
	       clock_mono_ns() < until_ns)
		poll(&news, 1, LOOKUP_LOOK_MS);
}

void aggregator_set_wait(int fd, int64_t wait_ns)
{
	const struct timeval limit = {.tv_sec = wait_ns / NS_PER_SEC,
				      .tv_usec = wait_ns % NS_PER_SEC / 1000};

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int exchange_hellos(int fd, struct error *why)
{
	uint8_t hello[WIRE_HELLO_LEN];
	int rc = 0;

	if (send(fd, wire_asker_hello, sizeof(hello), MSG_NOSIGNAL) < 0)
		return aggregator_fail(why, -errno);
	rc = receive_bytes(fd, hello, sizeof(hello), why);
	return !rc && memcmp(hello, wire_hello, sizeof(hello)) != 0 ? aggregator_fail(why, -EPROTO)
								    : rc;
}

int aggregator_connect(int *fd, const struct endpoint *endpoint, const struct address *address,
		       int64_t wait_ns, struct error *why)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *to = NULL;
	static const int yes = 1;
	char port[8];
	int rc = 0;

	*fd = -1;
	snprintf(port, sizeof(port), "%u", endpoint->port);
	if (getaddrinfo(address->text, port, &hints, &to))
		return aggregator_fail(why, -EINVAL);
	*fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd >= 0) {
		aggregator_set_wait(*fd, wait_ns);
		setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	}
	if (*fd < 0 || connect(*fd, to->ai_addr, to->ai_addrlen))
		rc = aggregator_fail(why, -errno);
	freeaddrinfo(to);
	return rc ? rc : exchange_hellos(*fd, why);
}
