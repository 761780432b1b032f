/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of uids, told apart by 64 bits of each: 16 bytes for one at most, so that all pods of a
 * cluster are few megabytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Empty when all is zero. */
struct uid_set {
	size_t count, size; /* size: a power of two, or 0 */
	uint64_t *slots; /* owned; 0: free */
};

void uid_set_fini(struct uid_set *s);
bool uid_set_has(const struct uid_set *s, const char *uid);
/* False: it was there. */
bool uid_set_add(struct uid_set *s, const char *uid);
/* False: it was not there. */
bool uid_set_remove(struct uid_set *s, const char *uid);
