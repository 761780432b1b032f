/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster written as JSON with ' for ", and slack kept in it step by step. */
#pragma once

#include "aggregator/policy/slack/slack.h"
#include "tests/place_fixture.h"

struct slack_fixture {
	struct place_fixture world;
	struct slack_state *state;
	struct slack_options options; /* the rate is 0 at first */
	int64_t now_ns;
	struct view *view; /* of the newest step, like what follows */
	struct place *place;
	struct slack_result result;
	struct node_stats **node_stats; /* borrowed: measurements of the next step; NULL: none */
	size_t stats_count;
};

void slack_fixture_init(struct slack_fixture *f);
void slack_fixture_fini(struct slack_fixture *f);
/* Ready, 110 pods, in a zone; spec: members of the spec ("'taints':[..]"). */
void slack_fixture_node(struct slack_fixture *f, const char *name, const char *zone,
			const char *cpu, const char *memory, const char *spec);
/* Of namespace shop; head: further members of metadata, with a comma in front. */
void slack_fixture_pod(struct slack_fixture *f, const char *name, const char *node, const char *cpu,
		       const char *memory, const char *head);
/*
 * A ReplicaSet of namespace shop with that annotation and its template, pods labelled app=NAME;
 * spec: members of the pods' with a comma behind.
 */
void slack_fixture_workload(struct slack_fixture *f, const char *name, const char *slack,
			    int replicas, const char *cpu, const char *memory, const char *spec);
/*
 * One step of what is known now; the simulation follows. Checks that all placeholders are legal,
 * and add up.
 */
const struct slack_result *slack_fixture_step(struct slack_fixture *f);
/* The test fails where there is no such class. */
const struct slack_class *slack_fixture_class(const struct slack_fixture *f, const char *key);
/*
 * "n1: unit web; n2:;" of the nodes that count, by the last word of keys; valid until the next
 * call.
 */
const char *slack_fixture_where(const struct slack_fixture *f);
/* Every placeholder, asked from scratch on a simulation of its own. */
void slack_fixture_check(struct view *v, const struct slack_result *r, int64_t now_ns);

/* The class of which the pod is a placeholder, or NULL: it is none. */
const struct slack_class *slack_class_of(const struct slack_result *r, place_pod pod);
/* The placeholders on a node: the first of *count, or NULL and 0. */
const struct slack_placed *slack_on_node(const struct slack_result *r, place_node n, size_t *count);
/*
 * Puts all placeholders of the result on another simulation of the same view, as the step did;
 * pods[i] is the handle of r->placed[i] there. NULL: nobody asks.
 */
void slack_put(const struct slack_result *r, struct place *p, place_pod *pods);
