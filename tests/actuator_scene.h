/* SPDX-License-Identifier: Apache-2.0 */
/* The edge of an actuator, and the scripted API server that it asks. */
#pragma once

#include "aggregator/actuator/edge.h"
#include "tests/kube_peer.h"

struct actuator_scene {
	struct kube_peer *peer;
	struct kube_config config;
	struct edge edge;
	int64_t now_ns; /* monotonic: the time of the next step */
};

/* For cmocka. */
int actuator_scene_setup(void **state);
int actuator_scene_teardown(void **state);

/* The next request with this part of its path gets the answer; body NULL: empty. */
void actuator_scene_answer(struct actuator_scene *s, const char *part, int status,
			   const char *body);
/* The test fails unless this is the body of the newest request with this part. */
void actuator_scene_expect_body(struct actuator_scene *s, const char *part, const char *body);
