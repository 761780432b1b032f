/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods, nodes and budgets for tests of the drain rules: real records, of JSON with single quotes.
 */
#pragma once

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_rules.h"

#define DRAIN_NOW_NS INT64_C(1770000000000000000) /* 2026-02-02T02:40:00Z */

/* The caller drops it. */
struct object *drain_fixture_object(enum object_kind kind, const char *quoted);
/*
 * A running, ready pod of ReplicaSet "web" (uid "web") in namespace "shop", with the label app=web.
 * `metadata`, `spec` and `status` are members beyond that ("'annotations':{..}"), "" for none;
 * `owner` replaces the owner references, NULL for the usual one, "" for none.
 */
struct kube_pod *drain_fixture_pod(const char *name, const char *owner, const char *metadata,
				   const char *spec, const char *status);
/* "Undefined", "DrainOk", "BlockDrain", "SkipDrain", "WaitForCompletion" */
const char *drain_fixture_outcome(enum drain_outcome o);
