/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of one real node on this machine, for tests: control plane, kubelet, containerd, a
 * network and names.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "shared/buf.h"
#include "tests/control_plane.h"

struct node_bed {
	struct control_plane *plane;
	char *bin; /* folder of the programs, owned */
	char *folder; /* configuration, images, logs */
	pid_t containerd, kubelet, names; /* 0: not running */
	struct buf hosts; /* what the server of names was told last */
};

/*
 * The node, as the API and its pods know it. The test itself finds Services by their full names,
 * too.
 */
#define NODE_BED_NAME	 "node-1"
#define NODE_BED_ADDRESS "10.77.0.1"

/*
 * All that the bed runs is there, and an image for sandboxes; else prints why the test is to be
 * skipped. Programs are those of kube_version_programs().
 */
bool node_bed_is_possible(void);

/*
 * Only inside node_box_run(). Starts all of it and awaits that the node is Ready. What fails is
 * printed with the logs, and aborts.
 */
struct node_bed *node_bed_new(void);
/*
 * Ends what it started, containers excepted: they end with the box. Prints the logs when `failed`.
 * NULL is allowed.
 */
void node_bed_free(struct node_bed *b, bool failed);

/* Makes an archive of images (docker-archive) known to the node; what fails fails the test. */
void node_bed_import(struct node_bed *b, const char *archive);

/* An object or list of the API by its path; NULL when there is none. The caller deletes it. */
cJSON *node_bed_get(struct node_bed *b, const char *path);

/*
 * await() that also lets names follow the endpoints of Services, as a cluster's DNS does: without
 * it names stay what they were.
 */
bool node_bed_await(struct node_bed *b, bool (*done)(void *ctx), void *ctx, double seconds);
