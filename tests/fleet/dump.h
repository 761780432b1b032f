/* SPDX-License-Identifier: Apache-2.0 */
/* The made-up cluster as `kubectl get .. -A -o json` would print it: one v1 List. */
#pragma once

#include "shared/error.h"
#include "tests/fleet/cluster.h"

/*
 * The same cluster makes the same bytes. 0, or -errno with the reason; what was begun of the file
 * is then no JSON.
 */
int dump_write(const struct cluster *c, const char *path, struct error *error);
