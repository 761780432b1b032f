/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the headers of a request leave no doubt about its end and its sender. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* The text between method and version, as received. */
struct framing_target {
	const char *text; /* in the library's buffer */
	size_t len; /* then */
	bool crowded; /* too many parameters, which were cut off */
	bool odd; /* it holds a blank or a control character */
};

/*
 * The target before the library parses its parameters. Parameters that do not fit into the
 * library's buffer are cut off; framing_fault() reports that.
 */
struct framing_target framing_note(const char *text);

/*
 * NULL, or the fault as a sentence: the request gets 400 and its connection is closed. method and
 * version are the library's; target NULL: not known.
 */
const char *framing_fault(struct MHD_Connection *connection, const char *method,
			  const char *version, const struct framing_target *target);

/*
 * Whether its length is no number. The library (up to version 0.9.75) answers such a request
 * itself, before any callback, and twice.
 */
bool framing_is_length_bad(struct MHD_Connection *connection);
