/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clusters of the stories of quotas (tests/vectors/quota/kep_stories.json) in a real API
 * server, followed by aggregator 0.
 */
#pragma once

#include <cjson/cJSON.h>

#include "tests/kube_testbed.h"

/*
 * Starts a scheduler that asks aggregator 0 for filter and preempt; of a bed that is asked through the
 * API server, by TLS with client.crt and client.key of its folder. Profiles are YAML that ends with a
 * newline; "": its own.
 */
void kube_quota_world_start_scheduler(struct kube_testbed *bed, const char *profiles);

/* A story in JSON but for the quotes, which are single; the caller deletes it. */
cJSON *kube_quota_world_parse(const char *text);
/* Nodes, quotas and pods of a story, until the aggregator and the scheduler know them. */
void kube_quota_world_begin(struct kube_testbed *bed, const cJSON *story);
/* Whatever nodes, quotas and pods there are go, until both know it. */
void kube_quota_world_clear(struct kube_testbed *bed);

/*
 * A pod as a story writes it: {"pod","namespace","node","priority","request","start","grace"}.
 * Without a grace, in seconds, who is deleted is gone; with one it is in deletion until somebody
 * deletes it at once.
 */
void kube_quota_world_make_pod(struct kube_testbed *bed, const cJSON *pod);
/* What a kubelet would say of it; it started in the second that the story says. */
void kube_quota_world_run_pod(struct kube_testbed *bed, const cJSON *pod);
/* Its path in the API, and what is below ("/status"); the caller frees it. */
char *kube_quota_world_pod_path(const cJSON *pod, const char *below);

/* What the API tells of a pod, for await(). */
struct kube_quota_pod {
	struct kube_testbed *bed;
	const char *namespace, *name;
	cJSON *seen; /* owned; at the last look */
};
bool kube_quota_pod_is_bound(void *pod);
/* The scheduler found no place for it. */
bool kube_quota_pod_is_refused(void *pod);
/* Why, at the last look; or NULL. */
const char *kube_quota_pod_refusal(const struct kube_quota_pod *p);

/* An object of the API, or NULL; the caller deletes it. */
cJSON *kube_quota_world_get(struct kube_testbed *bed, const char *path);
/* The list of all pods. */
cJSON *kube_quota_world_pods(struct kube_testbed *bed);
/* Frees the path. */
void kube_quota_world_delete(struct kube_testbed *bed, char *path);

/*
 * Awaits that the aggregator's view shows the nodes, pods and quotas that the API has: it is
 * published once a second.
 */
void kube_quota_world_expect_seen(struct kube_testbed *bed);
/*
 * Awaits that it tells these amounts as used, by namespace and resource, and prints them. NULL:
 * nothing is expected.
 */
void kube_quota_world_expect_used(struct kube_testbed *bed, const cJSON *used);
