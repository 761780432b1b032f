/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may refuse a pod as a whole, whatever the node; the table of gates is in extender_filter.c.
 */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_GATE_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_GATE_H

#include "aggregator/api/extender_call.h"

enum { EXTENDER_GATE_TEXT = 512 };

struct extender_gate_answer {
	atomic_uint_least64_t *counter; /* of such answers, for the caller to count; NULL: none */
	/* Where it refuses: */
	bool unresolvable; /* no preemption can help */
	char why[EXTENDER_GATE_TEXT]; /* a sentence with the numbers and the way out */
};

/*
 * Whether the pod may be placed anywhere. False: every node is refused, as *answer, zeroed before,
 * says. Any thread; the call's ledger and view are one moment. What passes is reserved after the
 * last gate.
 */
typedef bool extender_gate(const struct extender_call *call, struct extender_gate_answer *answer);

#endif
