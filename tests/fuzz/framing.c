/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever bytes a client begins with, through the library as the aggregator runs it: a request that
 * passes has headers in which a reader of RFC 9112 without any leniency finds one Host, at most one
 * length, and not both kinds of it.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/edge/http/connections.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNECTION_BYTES = 16384, RUNS = 8, INPUT_MOST = 32768, ENDS = 4 };

/* The fate of the first request. */
struct seen {
	struct framing_target target;
	size_t head; /* bytes of its first line and headers */
	bool asked, passed;
};

static void *on_target(void *ctx, const char *target, struct MHD_Connection *connection)
{
	struct seen *s = ctx;

	(void)connection;
	if (!s->asked)
		s->target = framing_note(target);
	return NULL;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_len, void **state)
{
	struct seen *s = ctx;

	(void)path, (void)upload, (void)upload_len, (void)state;
	if (!s->asked) {
		s->head =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
				->header_size;
		s->passed = !framing_fault(connection, method, version, &s->target) &&
			    !framing_is_length_bad(connection);
	}
	s->asked = true;
	return MHD_NO; /* the end of the connection */
}

static void no_message(void *ctx, const char *format, va_list args)
{
	(void)ctx, (void)format, (void)args;
}

static struct seen serve(const uint8_t *data, size_t size)
{
	struct sockaddr from = {.sa_family = AF_UNIX};
	struct seen s = {0};
	struct MHD_Daemon *daemon =
		MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL, NULL,
				 on_request, &s, MHD_OPTION_EXTERNAL_LOGGER, no_message, NULL,
				 MHD_OPTION_URI_LOG_CALLBACK, on_target, &s,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
				 MHD_OPTION_END);
	int fds[2], rc;

	assert(daemon);
	rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
	assert(rc == 0);
	rc = MHD_add_connection(daemon, fds[0], &from, sizeof(from));
	assert(rc == MHD_YES);
	rc = (int)send(fds[1], data, size, MSG_NOSIGNAL);
	assert(rc == (int)size);
	for (int i = 0; i < RUNS && !s.asked; i++)
		MHD_run_wait(daemon, 0);
	close(fds[1]);
	MHD_stop_daemon(daemon);
	return s;
}

/* What cannot be told from CR and LF afterwards (framing.c) is CR and LF. */
static void replace(char *text, size_t size, const char *from, const char *to, size_t len)
{
	for (size_t i = 0; i + len <= size; i++)
		if (!memcmp(text + i, from, len))
			memcpy(text + i, to, len);
}

/* --- a strict reader -------------------------------------------------------------------------- */

struct headers {
	int hosts, lengths, codings;
};

static bool is_token(const char *text, size_t len)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		/* Bytes above ASCII are none, but divide nothing. */
		if (!(c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
		      strchr(others, c)))
			return false;
	}
	return len > 0;
}

static void read_line(const char *line, struct headers *h)
{
	const char *colon = strchr(line, ':'), *value;
	size_t len = colon ? (size_t)(colon - line) : 0;

	assert(colon && is_token(line, len));
	value = colon + 1 + strspn(colon + 1, " \t");
	h->hosts += len == 4 && !strncasecmp(line, "Host", len);
	h->lengths += len == 14 && !strncasecmp(line, "Content-Length", len);
	if (len != 17 || strncasecmp(line, "Transfer-Encoding", len) != 0)
		return;
	h->codings++;
	assert(!strncasecmp(value, "chunked", 7) && !value[7 + strspn(value + 7, " \t")]);
}

static void check_headers(char *line)
{
	struct headers h = {0};
	char *end = strstr(line, "\r\n\r\n");
	bool old;

	assert(end); /* so that no NUL is in them */
	end[2] = '\0';
	for (char *at = line; *at; at++)
		assert((*at == '\r') == (at[1] == '\n')); /* neither stands alone */
	end = strstr(line, "\r\n");
	*end = '\0';
	old = strlen(line) < 8 || strcmp(line + strlen(line) - 8, "HTTP/1.1") < 0;
	for (line = end + 2; *line; line = end + 2) {
		end = strstr(line, "\r\n");
		*end = '\0';
		read_line(line, &h);
	}
	assert(h.hosts == 1 && h.lengths + h.codings <= 1 && !(old && h.codings));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen s;
	size_t begin = 0;
	char *text;

	if (size > INPUT_MOST)
		return 0;
	s = serve(data, size);
	if (!s.passed)
		return 0;
	/* The library passes over empty lines, and over those that begin with a NUL. */
	while (begin < size && (!data[begin] || data[begin] == '\r' || data[begin] == '\n')) {
		while (begin < size && data[begin] != '\n')
			begin++;
		begin++;
	}
	assert(s.head >= ENDS && s.head <= size - begin);
	size = s.head;
	text = mem_alloc(size + 1);
	memcpy(text, data + begin, size);
	text[size] = '\0';
	replace(text, size - ENDS, "\0\n", "\r\n", 2);
	for (size_t i = size - ENDS; i < size; i++)
		assert(memchr("\0\r\n:", text[i], 4));
	memcpy(text + size - ENDS, "\r\n\r\n", ENDS);
	check_headers(text);
	free(text);
	return 0;
}
