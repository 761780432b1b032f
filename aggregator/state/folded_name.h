/* SPDX-License-Identifier: Apache-2.0 */
/* Names of containers told by those of their pods and by their ids, which are known anyway. Pure. */
#ifndef EVENKEEL_AGGREGATOR_STATE_FOLDED_NAME_H
#define EVENKEEL_AGGREGATOR_STATE_FOLDED_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * In a folded name byte 1 stands for the name of the pod, and byte 2, at most once, for the id of
 * the container. What is left is the same for all containers of a runtime.
 */

/*
 * Folds name into out, of room for strlen(name) + 1 bytes. False where it cannot be: it does not
 * begin with the pod's name, which is not "", or has one of those bytes itself; out is unspecified
 * then.
 */
bool folded_name_make(const char *name, const char *pod, const char *id, char *out);
/* Without the zero at its end. */
size_t folded_name_len(const char *folded, const char *pod, const char *id);
/* Unfolds it into out, of room for folded_name_len() + 1 bytes; returns that length. */
size_t folded_name_put(const char *folded, const char *pod, const char *id, char *out);
/* Whether it is that name. */
bool folded_name_is(const char *folded, const char *pod, const char *id, const char *name);

#endif
