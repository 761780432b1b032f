/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender's socket (agent/sender_socket.h) without nanomsg: its wire format, spoken by this
 * thread on a plain socket.
 */
#pragma once

#include <stdint.h>

/*
 * Sockets that are opened from now on report to this epoll, with `seat` as the data of their
 * events, whenever the sender is to be stepped. They keep to that through all their connections.
 */
void plain_socket_report_to(int epoll, uint32_t seat);
