/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP proxy on the loopback that tunnels one connection after the other, and tells where the
 * last one went.
 */
#pragma once

struct tunnel;

/* Whatever it is asked for, it connects to this port of the loopback. */
struct tunnel *tunnel_start(int target_port);
void tunnel_stop(struct tunnel *t);
int tunnel_port(const struct tunnel *t);
/* The host and port of the last CONNECT, "" before one. Valid until the next one. */
const char *tunnel_asked(const struct tunnel *t);
