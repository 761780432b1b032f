/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new aggregator gets a copy of the other one's database (--peer, --state-dir), so that it has
 * node windows, demand, timers and decisions at once; agents send again what is newer, and what
 * pods used. Not in the copy: keys of nodes, since agents enrol with each aggregator, and
 * reservations, which the exchange sends.
 */
#pragma once

#include <stdbool.h>

#include "aggregator/state/counters.h"
#include "shared/body.h"
#include "shared/error.h"
#include "shared/frame.h"
#include "shared/keyring.h"

/* --- getting one ------------------------------------------------------------------------------ */

struct copy_wish {
	const char *url; /* tcp://HOST:PORT of the other aggregator */
	const struct keyring *keys;
	struct exchange_counters *counters;
};

/*
 * Writes a copy of the other aggregator's database into the file, for a struct copy_wish. Before the
 * own port is open: an address of the name that is this machine's then refuses. Waits 2 s for a
 * connection and 5 s for an answer, 30 s and an answer in all, and ends at a held SIGTERM or SIGINT
 * (thread_hold_ends()). -errno with the reason. Counts a copy that is whole.
 */
int copy_fetch(void *wish, int file, struct error *error);

/* --- giving one: to one aggregator at a time -------------------------------------------------- */

struct copier;

/*
 * Starts a thread, which calls want(): copier_give() is to follow. ctx and counters are borrowed.
 * -errno with the reason.
 */
int copier_open(struct copier **c, void (*want)(void *ctx), void *ctx,
		struct exchange_counters *counters, struct error *error);
/* Ends a copy that is under way. NULL is allowed, as below. */
void copier_close(struct copier *c);
/* The file, taken over, is the copy; negative: there is none, with the reason. */
void copier_give(struct copier *c, int file, const struct error *why);
/*
 * Loop thread. Fills the answer to the first frame of a connection, which opened with that key.
 * False: it is a refusal. c NULL: this aggregator has no database.
 */
bool copier_greet(struct copier *c, const struct key *key, struct ack *ack);
/* Loop thread. Takes over the descriptor of the connection that was greeted last. */
void copier_connected(struct copier *c, int fd);
