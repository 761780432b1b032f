/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request's headers leave no doubt about where it ends and who sends it. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_FRAMING_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_FRAMING_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* What stands between method and version, as it came. */
struct framing_target {
	const char *text; /* in the library's buffer */
	size_t len; /* then */
	bool crowded; /* its parameters were cut off */
	bool odd; /* it holds a blank or a control character */
};

/*
 * The target, before the library has looked for parameters. Those that do not fit into the library's
 * buffer are cut off, and framing_fault() tells so.
 */
struct framing_target framing_note(const char *text);

/*
 * NULL, or what leaves a doubt, as a sentence; such a request is answered with 400 and its
 * connection closed. method and version are the library's; target NULL: not known.
 */
const char *framing_fault(struct MHD_Connection *connection, const char *method,
			  const char *version, const struct framing_target *target);

/*
 * Whether its length is no number. The library answers to that itself, before it calls anybody, and
 * twice (up to version 0.9.75).
 */
bool framing_is_length_bad(struct MHD_Connection *connection);

#endif
