/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters with quotas from objects as people write them, in YAML, for tests of what is told about
 * them.
 */
#pragma once

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

/*
 * A book without a view: copies the quotas, which may have any order; of two in a namespace the first
 * counts. Borrows their `use`.
 */
struct quota_book *quota_fixture_book(const struct quota *quotas, size_t count,
				      const struct quota_options *o);
/* False: the namespace has one. */
bool quota_fixture_insert(struct quota_book *b, const struct quota *q);
/* Replaces the bounds of the namespace's quota and keeps its usage. False: it has none. */
bool quota_fixture_set_bounds(struct quota_book *b, const struct quota *q);
/* The namespace's quota goes, and the others' parts follow. False: there is none. */
bool quota_fixture_remove(struct quota_book *b, const char *namespace);
