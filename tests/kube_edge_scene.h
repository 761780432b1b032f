/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes edge beside a scripted API server, and what it hands over, written down line by
 * line for each kind.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "aggregator/edge/kube/kube.h"
#include "aggregator/edge/kube/reflector.h"
#include "shared/buf.h"
#include "tests/kube_peer.h"

enum { EDGE_AWAIT_SECONDS = 20 };

struct edge_scene {
	struct kube_peer *peer;
	struct kube *kube;
	struct kube_config config;
	struct kube_timing timing;

	/* what was handed over */
	struct buf story[OBJECT_KINDS];
	struct model_source sources[OBJECT_KINDS];

	pthread_mutex_t lock;
	pthread_cond_t news;
	bool ready; /* under lock, as is the count */
	size_t batches;
};

struct edge_expected {
	enum object_kind kind;
	const char *story;
};

/* Of cmocka. The edge is not started, and its waits are a millisecond unless a test sets timing. */
int edge_scene_setup(void **state);
int edge_scene_teardown(void **state);
void edge_scene_start(struct edge_scene *s);
/* How many batches were handed over so far, taken or not. */
size_t edge_count_batches(struct edge_scene *s);
/* Takes what comes until it is true, or for too long. */
bool edge_scene_await(struct edge_scene *s, bool (*is_true)(struct edge_scene *s, const void *what),
		      const void *what);

/* Awaits as much as that of what was handed over since the last call, and compares. */
void edge_assert_story(struct edge_scene *s, enum object_kind kind, const char *story);
void edge_forget_story(struct edge_scene *s, enum object_kind kind);
/* Awaits that the source's message, or the object it passed over last, has that part. */
void edge_assert_message(struct edge_scene *s, enum object_kind kind, const char *part);
void edge_assert_skipped(struct edge_scene *s, enum object_kind kind, const char *part);
/* Awaits the i-th request that matches part, and that its path has what is wanted. */
void edge_assert_path(struct edge_scene *s, const char *part, size_t i, const char *want);
