/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real records of the objects that drain cases describe in a few words, made by way of their JSON.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "aggregator/policy/drain/drain_rules.h"
#include "shared/error.h"

/* "Now" of every case that only has ages. */
#define DRAIN_CASE_NOW_NS INT64_C(1700000000000000000)

/* A growing list of records. */
struct drain_records {
	struct object **of; /* each held */
	size_t count;
};

/* Takes the tree over; false, and why, where no record can be made of it. */
bool drain_records_add(struct drain_records *r, enum object_kind kind, cJSON *json,
		       struct error *error);
void drain_records_fini(struct drain_records *r);

/*
 * {name, ns, owner {kind, name, api}, annotations, labels, phase, .., cpu_m, mem, gpu, daemonset,
 * mirror}
 */
bool drain_records_add_pod(struct drain_records *r, const cJSON *pod, struct error *error);
bool drain_records_add_pods(struct drain_records *r, const cJSON *list, struct error *error);
/* {name, cpu_m, mem, gpu, gpu_label, ready, scale_down_disabled, to_be_deleted_taint_age_s} */
bool drain_records_add_node(struct drain_records *r, const cJSON *node, struct error *error);
/* [{ns, match, allowed}] */
bool drain_records_add_budgets(struct drain_records *r, const cJSON *list, struct error *error);
/* {rc: ["namespace/name"], rs, ds, job, ss}; NULL: *out is NULL, and owners are not looked for. */
bool drain_records_cluster(const cJSON *listers, struct cluster **out, struct error *error);

const struct kube_pod *const *drain_records_pods(const struct drain_records *r);

/* Options of the case over the defaults of upstream; members that are absent leave them. */
bool drain_case_options(const cJSON *c, struct drain_options *o, struct error *error);
/* Whether the text is the wanted one: null is "" or "NoReason". */
bool drain_case_same(const cJSON *object, const char *key, const char *got, struct error *error);
/* Seconds as nanoseconds; the member must be there. */
bool drain_case_seconds(const cJSON *object, const char *key, int64_t *out_ns, struct error *error);
