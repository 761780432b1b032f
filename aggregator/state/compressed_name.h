/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of containers, compressed by the names of their pods and by their ids. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_STATE_COMPRESSED_NAME_H
#define EVENKEEL_AGGREGATOR_STATE_COMPRESSED_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * In a compressed name byte 1 stands for the name of the pod, and byte 2, at most once, for the id
 * of the container. The rest is the same for all containers of a runtime.
 */

/*
 * Compresses name into out, which has room for strlen(name) + 1 bytes. False: name does not
 * begin with the pod's name, which is not "", or has one of those bytes itself; out is unspecified
 * then.
 */
bool compressed_name_make(const char *name, const char *pod, const char *id, char *out);
/* Without the zero at its end. */
size_t compressed_name_len(const char *compressed, const char *pod, const char *id);
/* Expands it into out, of room for compressed_name_len() + 1 bytes; returns that length. */
size_t compressed_name_put(const char *compressed, const char *pod, const char *id, char *out);
/* Whether it is that name. */
bool compressed_name_is(const char *compressed, const char *pod, const char *id, const char *name);

#endif
