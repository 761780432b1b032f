/* SPDX-License-Identifier: Apache-2.0 */
/* A feed without a network: answers are put into its hands as libcurl would. */
#pragma once

#include <stddef.h>

#include "aggregator/model/object.h"
#include "shared/buf.h"

/*
 * Lists the kind with the list, in chunks of that many bytes, and if it is one watches with the
 * events. What was handed over is added to story, a line for each change; what the reflector wants
 * then is the last.
 */
void feed_world_tell(enum object_kind kind, const char *list, size_t list_len, const char *events,
		     size_t events_len, size_t chunk, struct buf *story);
