/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_reason.h"

static const struct {
	const char *name, *unblock;
} rows[] = {
#define X(name, text, unblock) [DRAIN_##name] = {text, unblock},
	DRAIN_REASON_TABLE(X)
#undef X
};

const char *drain_reason_name(enum drain_reason r)
{
	return rows[r].name;
}

const char *drain_reason_unblock(enum drain_reason r)
{
	return rows[r].unblock;
}
