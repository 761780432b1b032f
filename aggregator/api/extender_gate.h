/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may refuse a pod as a whole, whatever the node; the table of gates is in extender_filter.c.
 */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_GATE_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_GATE_H

#include "aggregator/api/extender_call.h"

enum { EXTENDER_GATE_TEXT = 512 };

/*
 * Whether the pod may be placed anywhere. False: why is a sentence with the numbers and the way
 * out, which every node is refused with; *unresolvable, false before, where no preemption can help.
 * Any thread; the call's ledger and view are one moment. What passes is reserved after the last
 * gate.
 */
typedef bool extender_gate(const struct extender_call *call, char why[EXTENDER_GATE_TEXT],
			   bool *unresolvable);

#endif
