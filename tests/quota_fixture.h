/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters with quotas from objects as people write them, in YAML, for tests of what is told about
 * them.
 */
#ifndef EVENKEEL_TESTS_QUOTA_FIXTURE_H
#define EVENKEEL_TESTS_QUOTA_FIXTURE_H

#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/view.h"

/*
 * A view of a List whose items are that text, each a line "- {..}"; without measurements. Objects
 * that cannot be read are left out.
 */
struct view *quota_fixture_view(const char *items);

/*
 * Lines of such a list. Amounts are YAML flow maps: "cpu: 4, memory: 8Gi"; NULL leaves the member
 * out. Static storage, 16 at a time.
 */
const char *quota_fixture_node(const char *name, const char *allocatable);
const char *quota_fixture_quota(const char *namespace, const char *name, const char *min,
				const char *max);
/* node "": pending. */
const char *quota_fixture_pod(const char *namespace, const char *name, const char *node,
			      int priority, const char *requests);

/* The namespace's quota goes, and the others' parts follow. False: there is none. */
bool quota_fixture_remove(struct quota_book *b, const char *namespace);

#endif
