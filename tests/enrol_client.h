/* SPDX-License-Identifier: Apache-2.0 */
/* A client that enrols with a running aggregator, and sends frames under the key that it got. */
#pragma once

#include "agent/sender_socket.h"
#include "shared/enrolment.h"

/* A connection to the port of this machine; the caller closes it. */
struct sender_socket *enrol_client_dial(int ingest_port);
/* public_path: the public key; *a is the answer. The test fails without one in 10 s. */
void enrol_client_ask(struct sender_socket *socket, const char *public_path, const char *node,
		      enum credential_kind kind, const char *credential,
		      struct enrolment_answer *a);
/* A frame of the node without an interval. */
void enrol_client_send(struct sender_socket *socket, const char *node, const struct key *key);
