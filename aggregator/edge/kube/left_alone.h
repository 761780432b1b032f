/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what is to be left alone until some time; when it comes, they are forgotten. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_LEFT_ALONE_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_LEFT_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct left_alone_entry;

/* Empty when all is zero. */
struct left_alone {
	struct left_alone_entry *entries; /* owned, a hash by name */
};

void left_alone_fini(struct left_alone *l);
/* Until that monotonic time; what was told of the name before does not count any more. */
void left_alone_add(struct left_alone *l, const char *name, int64_t until_ns);
bool left_alone_has(const struct left_alone *l, const char *name, int64_t now_ns);
/* Forgets all whose time has come, whoever asks for them or never does again. */
void left_alone_expire(struct left_alone *l, int64_t now_ns);
size_t left_alone_count(const struct left_alone *l);

#endif
