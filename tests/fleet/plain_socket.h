/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender's socket (agent/sender_socket.h) without nanomsg: its wire format, spoken by this
 * thread on a plain socket.
 */
#pragma once

#include <stdint.h>

/*
 * Sockets that are opened from now on report to this epoll, with `seat` as the data of their
 * events, whenever the sender is to be stepped. On the loopback they connect from the address of
 * this node, 127.1.0.0 + node, as nodes have an address each: an aggregator bounds the connections
 * from one. They keep to that through all their connections.
 */
void plain_socket_report_to(int epoll, uint32_t seat, uint32_t node);
