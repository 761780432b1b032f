/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the buckets of windows for HTTP threads: the loop thread alone has them. */
#pragma once

#include <uv.h>

#include "aggregator/api/api.h"
#include "aggregator/state/usage.h"

struct history;

/*
 * Its handle is in the loop then, for the caller to close before history_free(), whatever is
 * returned: libuv's error. The usage state is borrowed.
 */
int history_open(struct history **h, uv_loop_t *loop, const struct usage_state *usage);
void history_free(struct history *h); /* NULL is allowed */
/* For api_context.buckets. */
struct bucket_source *history_source(struct history *h);
