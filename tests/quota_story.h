/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster with quotas whose pods come, go and are bound in steps of one second, and an
 * aggregator that knows it: the API of the product with reservations, a log of victims and the
 * review of waiting pods. The test schedules. One story at a time is open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "aggregator/model/model.h"
#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/join.h"
#include "tests/api_fixture.h"

enum {
	STORY_NODES = 4,
	STORY_SPACES = 6,
	STORY_RESOURCES = 3,
	STORY_PODS = 120,
	STORY_WINDOW = 20, /* seconds */
};

enum quota_toy_phase { TOY_PENDING, TOY_BOUND, TOY_GOING, TOY_GONE };

struct quota_toy {
	enum quota_toy_phase phase;
	int space, priority, node, nominated, start, gone_at; /* node -1: none */
	int asks[STORY_RESOURCES], burst; /* those of a burst are of one owner */
	bool changed; /* since the last view */
	bool awake; /* the scheduler is to ask about it */
	bool refused; /* by filter, when it was asked about last */
	int could_since; /* the extender would not refuse any more; 0: it would */
	char name[16];
};

struct quota_story {
	int now, space_count, resource_count, node_count, pod_count;
	int room[STORY_NODES][STORY_RESOURCES];
	int min[STORY_SPACES][STORY_RESOURCES], max[STORY_SPACES][STORY_RESOURCES],
		weight[STORY_SPACES];
	int wanted[STORY_SPACES]; /* healthy pods of its budget; -1: none */
	int evictions_max[STORY_SPACES]; /* in STORY_WINDOW seconds; 0: no bound */
	int min_runtime[STORY_SPACES]; /* seconds */
	int evicted_at[STORY_PODS], evicted_space[STORY_PODS], evicted_count;
	struct quota_toy pods[STORY_PODS];
	int bursts;
	unsigned int restarts;
	uint64_t state; /* of the random numbers */

	struct api_fixture api;
	struct quota_options options;
	struct model *model;
	struct model_pod_watch watch;
	struct join *join;
};

/* Three to six namespaces, one to three resources and two to four nodes, all of the seed. */
void quota_story_open(struct quota_story *s, uint64_t seed);
void quota_story_close(struct quota_story *s);
int quota_story_draw(struct quota_story *s, int below);

/*
 * A second later: pods in deletion are gone. With events, pods are created and deleted, quotas are
 * raised, and the aggregator restarts.
 */
void quota_story_pass_second(struct quota_story *s, bool events);
/* What the API has of all this is in the view from now on. */
void quota_story_publish(struct quota_story *s);
/* The scheduler is to ask about pending pods: all, or those that filter refused. */
void quota_story_wake(struct quota_story *s, bool refused_only);
/* Its deletion begins. */
void quota_story_leave(struct quota_story *s, struct quota_toy *p);

/* As the API has it; the caller's. */
cJSON *quota_story_pod_of(const struct quota_story *s, const struct quota_toy *p);
struct object *quota_story_record_of(const struct quota_story *s, const struct quota_toy *p);

/* --- plain numbers */

static inline bool quota_toy_holds(const struct quota_toy *p)
{
	return p->phase == TOY_BOUND || p->phase == TOY_GOING;
}

/* Of a namespace and a resource; going: pods in deletion count. */
int quota_story_used(const struct quota_story *s, int in, int r, bool going);
int quota_story_sum_used(const struct quota_story *s, int r); /* without pods in deletion */
int quota_story_sum_min(const struct quota_story *s, int r);
int quota_story_healthy(const struct quota_story *s, int in);
/* Pods in deletion hold nothing. */
int quota_story_free_on(const struct quota_story *s, int node, int r);
