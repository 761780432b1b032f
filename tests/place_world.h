/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random clusters for tests of placement: small, crowded and full of rules, so that every filter
 * both accepts and refuses. Everything follows from the seed. Objects exist twice: as JSON, for the
 * checker, and in a model, for what is tested.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/state/view.h"
#include "tests/place_checker.h"

/*
 * A node that pods name and the API does not know: for the checker they are lost. It comes after
 * all others.
 */
#define PLACE_WORLD_LOST "nowhere"

enum { PLACE_WORLD_NODES = 12, PLACE_WORLD_PODS = 40, PLACE_WORLD_OTHERS = 96 };

struct place_world_kind; /* what pods of one workload have in common */

struct place_world {
	uint64_t random; /* state of the generator */
	size_t node_count, pod_count, other_count;
	cJSON *nodes[PLACE_WORLD_NODES]; /* owned, like all of these */
	cJSON *pods[PLACE_WORLD_PODS];
	cJSON *others[PLACE_WORLD_OTHERS];
	int where[PLACE_WORLD_PODS]; /* at first as spec.nodeName says */
	bool removed[PLACE_WORLD_NODES];
	size_t kind_count, born, nodes_born; /* pods and nodes so far */
	struct place_world_kind *kinds; /* owned */
	size_t bound_count;
	struct place_world_bound {
		size_t at; /* of others */
		cJSON *before; /* owned */
	} bound[2 * PLACE_WORLD_PODS * PLACE_CHECKER_CLAIMS];
	int64_t now_ns;
};

void place_world_init(struct place_world *w, uint64_t seed);
void place_world_fini(struct place_world *w);
/* Less than n. */
size_t place_world_draw(struct place_world *w, size_t n);
bool place_world_chance(struct place_world *w, unsigned int percent);

/* Borrows from the world, and sees what changes in it. */
struct verify_world place_world_checker(const struct place_world *w);
const char *place_world_name(const cJSON *object);
const char *place_world_namespace(const cJSON *object);

/*
 * The pod comes to the node: what its claims wait for is bound, or nothing where the volumes
 * refuse.
 */
void place_world_bind(struct place_world *w, size_t pod, size_t node);
/* All that was bound after there were that many (bound_count) is unbound again. */
void place_world_unbind(struct place_world *w, size_t count);

/* A model of the world, whose objects were told in the order of that seed. */
struct model *place_world_model(const struct place_world *w, uint64_t order);
/* The view of a model without measurements. */
struct view *place_world_view(const struct place_world *w, struct model *m);
/*
 * Something happens: a pod is born, bound, ended or deleted, a node comes, goes, is cordoned,
 * relabelled, tainted or shrunk, a namespace gets other labels. The world and the model change
 * alike; where pods are is again what their specs say.
 */
void place_world_change(struct place_world *w, struct model *m);
/* The record of a pod as the API tells it, pending; the caller drops it. */
struct kube_pod *place_world_record(const struct place_world *w, size_t pod);
