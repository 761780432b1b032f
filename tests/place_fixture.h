/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster written as JSON with ' for ", one object a call, and the simulation of it. */
#pragma once

#include "aggregator/model/model.h"
#include "aggregator/policy/place/place.h"
#include "aggregator/state/join.h"

struct place_fixture {
	struct model *model;
	struct join *join;
	struct place *place; /* NULL until place_fixture_build() */
};

/* Every kind is known, and empty. */
void place_fixture_init(struct place_fixture *f);
void place_fixture_fini(struct place_fixture *f);
void place_fixture_put(struct place_fixture *f, enum object_kind kind, const char *json);
/*
 * 4 CPUs, 8 GiB, 110 pods and the label kubernetes.io/hostname; labels and spec are members
 * ("'zone':'a'"), "" none.
 */
void place_fixture_node(struct place_fixture *f, const char *name, const char *labels,
			const char *spec);
/*
 * In namespace default, requesting 100m and 128Mi; node "" pending. spec: further members of the
 * spec.
 */
void place_fixture_pod(struct place_fixture *f, const char *name, const char *node,
		       const char *labels, const char *spec);
/* The record alone, for place_add_pod(); the caller drops it. */
struct kube_pod *place_fixture_record(const char *name, const char *node, const char *labels,
				      const char *spec);
void place_fixture_remove(struct place_fixture *f, enum object_kind kind, const char *namespace,
			  const char *name);
/* The newest state with these stats (sorted; may be NULL). The caller drops it. */
struct view *place_fixture_view(struct place_fixture *f, struct node_stats *const *node_stats,
				size_t count);
/* A simulation without the cap of what is known now; the one before is freed. */
struct place *place_fixture_build(struct place_fixture *f);
/*
 * The filter's name for the pending pod on the node, after checking that place_explain() says the
 * same.
 */
const char *place_fixture_ask(struct place *p, const char *pod, const char *node);
/* "node=pod,pod node=.." of everything that is somewhere, by name. */
char *place_fixture_describe(const struct place *p, const char *const *pods, size_t count);
