/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy in front may read the length of a request differently. Then a client can have the
 * beginning of its request taken for the next client's ("request smuggling"). The library is
 * lenient: of two lengths it takes the first, of a length and a transfer coding the coding, and it
 * goes on with the connection. So this file refuses what RFC 9112 (5.1, 5.2, 6.1, 6.3) and RFC
 * 9110 (5.3) let servers refuse, before anything else:
 *
 *	no Host, or two headers of a kind that may occur once
 *	Content-Length with Transfer-Encoding, a coding other than "chunked", any coding in HTTP/1.0
 *	a header name that is no token: "Content-Length : 4", which others read differently
 *	a length or a coding that continues in the next line: the library makes a part of the name
 *	of it, "Content-Length5"
 *	more parameters than fit into the connection's buffer (event_loop.c), 64 bytes each besides
 *	the text: with a full buffer version 0.9.75 neither answers nor closes
 *	a NUL, which ends a text for the library, a line that continues in the next, a line without
 *	CR, or a CR inside a line, which ends it for others
 *
 * The library does not report the last group. It splits headers in place, so the bytes between two
 * texts are the separators alone (up to version 0.9; later ones refuse NUL themselves). It
 * overwrites separators with NULs: a NUL before an LF looks like CR and LF, and so does a line of a
 * colon and an LF, which ends the headers.
 */
#include "aggregator/edge/http/connections.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SPACE = 1, CRLF = 2 };
enum { PARAMETERS_MOST = 64, PARAMETER_BYTES = 64, TARGET_MOST = 15000 };

/* The first two give the length of the request. */
enum single { LENGTH, CODING, HOST, AUTHORIZATION, ORIGIN, CONTENT_TYPE, SINGLES };

static const char *const singles[] = {
	[LENGTH] = MHD_HTTP_HEADER_CONTENT_LENGTH,
	[CODING] = MHD_HTTP_HEADER_TRANSFER_ENCODING,
	[HOST] = MHD_HTTP_HEADER_HOST,
	[AUTHORIZATION] = MHD_HTTP_HEADER_AUTHORIZATION,
	[ORIGIN] = MHD_HTTP_HEADER_ORIGIN,
	[CONTENT_TYPE] = MHD_HTTP_HEADER_CONTENT_TYPE,
};

struct framing {
	bool there[SINGLES];
	bool is_1_0;
	const char *end; /* of the text before the next header; NULL: not checked */
	const char *fault;
};

static bool is_name(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at == 0x7f || strchr("\"(),/:;<=>?@[\\]{}", *at))
			return false;
	return *text;
}

static const char not_plain[] =
	"a line of the headers holds a NUL or a CR, goes on in the next, or ends without CR and LF";

static const char *take_header(struct framing *f, const char *name, const char *value)
{
	if (!value || (f->end && name != f->end + CRLF))
		return not_plain;
	if (f->end)
		f->end = value + strlen(value);
	if (strchr(value, '\r'))
		return not_plain;
	if (!is_name(name))
		return "a header name contains a character that is not allowed";
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
		if (i == CODING && strcasecmp(value, "chunked") != 0)
			return "the only transfer coding that is understood is chunked";
		if (i == CODING && f->is_1_0)
			return "HTTP/1.0 has no transfer codings";
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

/* The end of the headers, or NULL: versions from 1.0 on change them. */
static const char *end_of_headers(struct MHD_Connection *connection, const char *method)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info && MHD_get_version()[0] == '0' ? method + info->header_size : NULL;
}

static bool is_plain_line(const char *method, const char *version,
			  const struct framing_target *target)
{
	return target->text == method + strlen(method) + SPACE &&
	       version == target->text + target->len + SPACE;
}

static bool is_crowded(const char *query, size_t len)
{
	size_t count = 0;

	for (; query; query = strchr(query + 1, '&'))
		count++;
	return count > PARAMETERS_MOST ||
	       (count > 2 && len + count * PARAMETER_BYTES > TARGET_MOST);
}

struct framing_target framing_note(const char *text)
{
	char *query = strchr(text, '?'); /* in a buffer that the library writes to */
	struct framing_target t = {.text = text, .len = strlen(text)};

	for (const char *at = text; *at; at++)
		t.odd |= (unsigned char)*at <= ' ' || *at == 0x7f;
	t.crowded = is_crowded(query, t.len);
	if (t.crowded)
		query[1] = '\0';
	return t;
}

bool framing_is_length_bad(struct MHD_Connection *connection)
{
	const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_CONTENT_LENGTH);

	errno = 0;
	return text && (!*text || text[strspn(text, "0123456789")] ||
			(strtoull(text, NULL, 10) == ULLONG_MAX && errno));
}

const char *framing_fault(struct MHD_Connection *connection, const char *method,
			  const char *version, const struct framing_target *target)
{
	const char *end = end_of_headers(connection, method);
	struct framing f = {.is_1_0 = strcmp(version, "HTTP/1.1") < 0,
			    .end = end ? version + strlen(version) : NULL};

	if (target && target->crowded)
		return "the target has too many parameters: there may be 64, and fewer where they "
		       "are long";
	if (!is_name(method) || (target && target->odd) ||
	    (end && target && !is_plain_line(method, version, target)))
		return "the first line is not METHOD TARGET VERSION";
	MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &f);
	if (f.fault)
		return f.fault;
	/* The library takes a line that begins with a NUL for the empty one, and leaves its bytes. */
	if (f.end && (end != f.end + CRLF + CRLF || memcmp(f.end, "\0\0\0", CRLF + CRLF) != 0))
		return not_plain;
	return f.there[HOST] ? NULL : "there is no Host header";
}
