/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_placement/echo.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"

#define NAMES "\"NodeNames\":["

/* ExtenderArgs end with the names, so the answer repeats them as they stand. */
static void add_names(struct buf *answer, const struct buf *question)
{
	const char *names = NULL, *next = question->data;

	while ((next = strstr(next, NAMES)))
		names = next, next += strlen(NAMES);
	buf_printf(answer, "{%.*s]}", names ? (int)strcspn(names, "]") : 0, names ? names : "");
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *path,
			      const struct buf *question)
{
	struct buf body = BUF_INIT;
	struct MHD_Response *response;
	enum MHD_Result result;
	size_t len;

	if (strstr(path, "filter"))
		add_names(&body, question);
	else
		buf_add_str(&body, "[]");
	len = body.len;
	response =
		MHD_create_response_from_buffer(len, buf_take(&body, NULL), MHD_RESPMEM_MUST_FREE);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* First with the head of a question, then with pieces of its body, then with none. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **kept)
{
	struct buf *question = *kept;

	(void)ctx;
	(void)method;
	(void)version;
	if (!question) {
		*kept = mem_zalloc(1, sizeof(*question));
		return MHD_YES;
	}
	if (*len) {
		buf_add(question, data, *len);
		*len = 0;
		return MHD_YES;
	}
	return answer(connection, path, question);
}

static void on_end(void *ctx, struct MHD_Connection *connection, void **kept,
		   enum MHD_RequestTerminationCode code)
{
	struct buf *question = *kept;

	(void)ctx;
	(void)connection;
	(void)code;
	if (question)
		buf_fini(question);
	free(question);
}

void echo_start(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, (uint16_t)port, NULL, NULL,
			     on_request, NULL, MHD_OPTION_SOCK_ADDR, &address,
			     MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END))
		return;
	perror("the extender that decides nothing");
	abort();
}
