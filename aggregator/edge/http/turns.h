/* SPDX-License-Identifier: Apache-2.0 */
/* How much of something that is scarce each client has at a time, so that nobody has all of it. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_TURNS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_TURNS_H

#include <stdbool.h>
#include <sys/socket.h>

enum { TURNS_OF_CLIENT = 32, TURNS_CLIENTS = 320 };

struct turns;

struct turns *turns_new(void);
void turns_free(struct turns *t); /* NULL is allowed */

/* Any thread. False: that client has TURNS_OF_CLIENT already, or TURNS_CLIENTS others have some. */
bool turns_take(struct turns *t, const struct sockaddr *from);
/* One of those that were taken. */
void turns_give(struct turns *t, const struct sockaddr *from);

#endif
