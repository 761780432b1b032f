/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kube-scheduler's extender protocol (k8s.io/kube-scheduler/extender/v1) as JSON: its questions
 * read, our answers written. Its types have no JSON names, so members are called as in Go, and
 * found whatever their case; the Pod and Node objects inside are those of the API. null is absent.
 * Where a member is there twice the last one counts.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/error.h"

enum { EXTENDER_FIELD_MAX = 320 };

/* A JSON value as it was sent. */
struct extender_text {
	const char *at; /* borrowed from the body */
	size_t len;
};

/* --- filter and prioritize: ExtenderArgs */

/* A node that is asked about. */
struct extender_asked {
	const char *name; /* in the question's names */
	struct extender_text text; /* of a full list; else empty */
};

struct extender_args {
	cJSON *pod; /* owned; an object */
	bool full; /* asked with Nodes, a whole NodeList; else with NodeNames, or neither */
	size_t count;
	struct extender_asked *nodes; /* owned; in the order they were sent */
	bool named; /* there were NodeNames, which count before Nodes */
	struct buf names; /* all of them, each with its end */
};

/*
 * {"Pod":{..},"Nodes":null|{"items":[..]},"NodeNames":null|["n1",..]}; where both are there
 * NodeNames count. A list of whole nodes is read item by item, so it costs little more memory than
 * its text. body must outlive args. 0, or -EINVAL: field is the path of what is wrong ("" the body
 * itself), and nothing is left to free.
 */
int extender_args_parse(const char *body, size_t len, struct extender_args *args,
			char field[EXTENDER_FIELD_MAX], struct error *error);
void extender_args_fini(struct extender_args *args);

/* ExtenderFilterResult. All borrowed. */
struct extender_refused {
	const char *node, *why;
};

struct extender_filter_result {
	bool full; /* answer with Nodes, as it was asked */
	size_t passed_count;
	const struct extender_asked *passed;
	size_t failed_count, unresolvable_count;
	const struct extender_refused *failed; /* preemption may help */
	const struct extender_refused *unresolvable; /* it cannot */
	const char *error; /* ""; else the pod fails as a whole, which no refusal should */
};

void extender_write_filter_result(struct buf *out, const struct extender_filter_result *r);

/* HostPriorityList. */
struct extender_priority {
	const char *host;
	int64_t score; /* 0..10 */
};

void extender_write_priorities(struct buf *out, const struct extender_priority *of, size_t count);

/* --- preempt: ExtenderPreemptionArgs, and its result */

struct extender_victim {
	const char *uid;
	const cJSON *pod; /* of NodeNameToVictims; else NULL */
};

/* The victims on one node. */
struct extender_victims {
	const char *node;
	int64_t pdb_violations;
	size_t count;
	struct extender_victim *pods; /* owned */
};

struct extender_victims_map {
	bool present; /* not null */
	size_t count;
	struct extender_victims *of; /* owned; in the order they were sent */
};

struct extender_preemption {
	cJSON *tree; /* owned; what all below points into */
	const cJSON *pod;
	struct extender_victims_map victims; /* NodeNameToVictims: with whole pods */
	struct extender_victims_map meta; /* NodeNameToMetaVictims: uids; nodeCacheCapable */
};

/* As extender_args_parse(). */
int extender_preemption_parse(const char *body, size_t len, struct extender_preemption *p,
			      char field[EXTENDER_FIELD_MAX], struct error *error);
void extender_preemption_fini(struct extender_preemption *p);
/* {"NodeNameToMetaVictims":{..}}, in that order; empty: nobody is preempted. */
void extender_write_preemption_result(struct buf *out, const struct extender_victims *of,
				      size_t count);
