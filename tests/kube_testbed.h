/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregators that follow a real control plane, and what they tell of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "shared/keyring.h"
#include "tests/control_plane.h"

struct kube_aggregator {
	pid_t pid; /* 0: not running */
	int http_port, ingest_port;
};

enum { KUBE_AGGREGATORS = 2 };

struct kube_testbed {
	struct control_plane *plane;
	char *folder; /* key and logs */
	char *key_path;
	struct kube_aggregator aggregators[KUBE_AGGREGATORS];
	/* something expected did not come: what is expected after it is not waited for */
	bool lost;
	bool behind; /* aggregator 0 is asked through the API server */
};

/*
 * A control plane with its controllers, still empty, of kube_version_programs(); NULL where they
 * are not: then the reason is printed, and the test is to be skipped.
 */
struct kube_testbed *kube_testbed_new(void);
/* The same without scheduler and controllers. */
struct kube_testbed *kube_testbed_new_bare(void);
/* Ends all; when `failed`, prints the logs. */
void kube_testbed_free(struct kube_testbed *s, bool failed);

/* A kubeconfig with a token that the API makes for the ServiceAccount; the caller frees it. */
char *kube_testbed_account(struct kube_testbed *s, const char *namespace, const char *account);

/* Starts aggregator i with a kubeconfig and awaits that it is ready. */
void kube_testbed_start_aggregator(struct kube_testbed *s, int i, const char *kubeconfig);
/* The same with more of its options, which end with NULL; on the ports it had before if it ran. */
void kube_testbed_start_aggregator_with(struct kube_testbed *s, int i, const char *kubeconfig,
					const char *const *more);
void kube_testbed_kill_aggregator(struct kube_testbed *s, int i); /* SIGKILL */
/* By SIGTERM; its exit status. */
int kube_testbed_stop_aggregator(struct kube_testbed *s, int i);

/* GET of aggregator i; NULL when it does not answer 200. */
cJSON *kube_testbed_get(const struct kube_testbed *s, int i, const char *path);
/* POST of JSON to aggregator i; the status, and the answer or NULL, which the caller deletes. */
long kube_testbed_post(const struct kube_testbed *s, int i, const char *path, const char *json,
		       cJSON **answer);
/* All items of a list ("/v1/pods"), read page by page; NULL when a page is missing. */
cJSON *kube_testbed_items(const struct kube_testbed *s, int i, const char *path);

/*
 * Awaits that kubectl reports so many pods with a node, and that aggregator i tells of nodes and
 * pods exactly what kubectl does (tests/kube_truth.h). The test fails, with the first differences,
 * when that does not come.
 */
void kube_testbed_expect(struct kube_testbed *s, int i, size_t bound);

/*
 * Awaits a state of a resource ("poddisruptionbudgets", "forbidden") and returns what /v1/status
 * tells of the resource then; the caller deletes it.
 */
cJSON *kube_testbed_expect_state(struct kube_testbed *s, int i, const char *resource,
				 const char *state);
/* Seconds for which the control plane's programs and this one waited for a CPU so far. */
double kube_testbed_waited_s(const struct kube_testbed *s);
