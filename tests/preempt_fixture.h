/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster with quotas, written down as JSON objects, and everything that a search for victims
 * needs.
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/policy/quota/preempt.h"
#include "tests/place_fixture.h"

enum { PREEMPT_FIXTURE_QUOTAS = 64 };

struct preempt_fixture {
	struct place_fixture cluster;
	struct preempt_options options;
	size_t quota_count;
	/* owned with their resources; names are borrowed */
	struct quota quotas[PREEMPT_FIXTURE_QUOTAS];
	/* Of preempt_fixture_build(). */
	struct view *view;
	struct place *place;
	const struct preempt *index;
	struct quota_book *book;
};

void preempt_fixture_init(struct preempt_fixture *f, enum quota_variant variant);
void preempt_fixture_fini(struct preempt_fixture *f);
/* JSON with single quotes. */
cJSON *preempt_fixture_parse(const char *text);
void preempt_fixture_put(struct preempt_fixture *f, enum object_kind kind, const cJSON *json);
/*
 * The namespace's quota, without anything used; strings are borrowed. To be changed before
 * building.
 */
struct quota *preempt_fixture_quota(struct preempt_fixture *f, const char *namespace,
				    const char *min, const char *max);
/* As things are now. used: that of each quota is summed from the pods. */
void preempt_fixture_build(struct preempt_fixture *f, bool used);

/* {cpu in millicores, other: amount} as {cpu: "10m", other: "5"}; the caller's. */
cJSON *preempt_fixture_amounts(const cJSON *flat);
void preempt_fixture_resources(struct resources *to, const cJSON *flat);
/*
 * A Pod of {pod, namespace, uid, node, priority, request, start, labels, terminating,
 * nominated_node, preemption_policy}, Running and ready where it has a node. Start is in seconds
 * since PREEMPT_FIXTURE_EPOCH_NS.
 */
cJSON *preempt_fixture_pod(const cJSON *flat);
struct kube_pod *preempt_fixture_record(const cJSON *flat);

/* 2026-01-31T11:00:00Z, an hour before VIEW_FIXTURE_NOW_NS */
#define PREEMPT_FIXTURE_EPOCH_NS 1769857200000000000LL
