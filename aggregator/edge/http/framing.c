/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a proxy stands before us and reads a request's length otherwise than we do, a client can
 * have the beginning of its own request taken for the next client's ("request smuggling"). The
 * library is lenient: of two lengths it takes the first, of a length and a transfer coding the
 * latter, and it goes on with the connection. So what RFC 9112 (5.1, 5.2, 6.1, 6.3) and RFC 9110
 * (5.3) let servers refuse is refused here, before anything else is looked at:
 *
 *	a header twice that can be there once only, whatever it says
 *	Content-Length beside Transfer-Encoding, and any coding but "chunked"
 *	a header's name that is none: "Content-Length : 4", which others read as another, or ignore
 *	a length or a coding that goes on in the next line, of which the library makes a part of the
 *	name: "Content-Length5"
 */
#include "aggregator/edge/http/framing.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* The first two say how long the request is. */
enum single { LENGTH, CODING, HOST, AUTHORIZATION, SINGLES };

static const char *const singles[] = {
	[LENGTH] = MHD_HTTP_HEADER_CONTENT_LENGTH,
	[CODING] = MHD_HTTP_HEADER_TRANSFER_ENCODING,
	[HOST] = MHD_HTTP_HEADER_HOST,
	[AUTHORIZATION] = MHD_HTTP_HEADER_AUTHORIZATION,
};

struct framing {
	bool there[SINGLES];
	const char *fault;
};

static bool is_name(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at == 0x7f || strchr("\"(),/:;<=>?@[\\]{}", *at))
			return false;
	return *text;
}

static const char *take_header(struct framing *f, const char *name, const char *value)
{
	if (!is_name(name))
		return "the name of a header holds what no name may";
	for (size_t i = 0; i < SINGLES; i++) {
		size_t len = strlen(singles[i]);

		if (strncasecmp(name, singles[i], len) != 0)
			continue;
		if (name[len] && i <= CODING)
			return "a header that says how long the request is goes on in the next "
			       "line";
		if (name[len])
			continue;
		if (f->there[i])
			return "there are two headers of a kind that may be there once";
		f->there[i] = true;
		if (i == CODING && (!value || strcasecmp(value, "chunked") != 0))
			return "the only transfer coding that is understood is chunked";
	}
	if (f->there[LENGTH] && f->there[CODING])
		return "Content-Length and Transfer-Encoding do not go together";
	return NULL;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct framing *f = cls;

	(void)kind;
	f->fault = take_header(f, name, value);
	return f->fault ? MHD_NO : MHD_YES;
}

const char *framing_fault(struct MHD_Connection *connection)
{
	struct framing f = {0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &f);
	return f.fault;
}
