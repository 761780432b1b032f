/* SPDX-License-Identifier: Apache-2.0 */
/* Where agents connect to: a listening socket as thousands of them need it. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_INGEST_SOCKET_H
#define EVENKEEL_AGGREGATOR_EDGE_INGEST_SOCKET_H

#include "shared/endpoint.h"
#include "shared/reason.h"

/*
 * Opens one that does not block. 0 with *fd, the caller's; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES,
 * -EEXIST, ..: the reason says what to do.
 */
int ingest_socket_listen(int *fd, const struct endpoint *endpoint, struct reason *reason);
/* Removes the file of an ipc socket, while it is open. */
void ingest_socket_remove(const struct endpoint *endpoint);

#endif
