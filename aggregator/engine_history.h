/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the buckets of windows for HTTP threads: the loop thread alone has them. */
#pragma once

#include <uv.h>

#include "aggregator/api/api.h"
#include "aggregator/state/usage.h"

/*
 * Its handle is in the loop then, for the caller to close before history_free(), whatever is
 * returned: libuv's error. The usage state is borrowed.
 */
int history_open(struct bucket_source **h, uv_loop_t *loop, const struct usage_state *usage);
void history_free(struct bucket_source *source); /* NULL is allowed */
