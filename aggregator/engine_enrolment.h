/* SPDX-License-Identifier: Apache-2.0 */
/* Gives nodes their keys: checks the credentials of enrolments, and answers them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "aggregator/edge/ingest_peers.h"
#include "aggregator/model/object.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/node_keys.h"
#include "shared/buf.h"
#include "shared/error.h"

struct node_enroller_config {
	const char *key_path; /* the aggregator's private key; made if it is missing */
	const char *join_token_path; /* NULL: no join tokens */
	/* "NAMESPACE/NAME" of the agents; NULL: no tokens of Kubernetes */
	const char *service_account;
	const char *kubeconfig, *kube_context; /* of the API that reviews them, as of the engine */
	uv_loop_t *loop; /* for reviews */
	struct node_keys *keys; /* borrowed, as is all here */
	/* The pod with that uid, borrowed until the loop goes on; NULL: not known. */
	const struct kube_pod *(*pod)(void *ctx, const char *namespace, const char *name,
				      const char *uid);
	bool (*lists_pods)(void *ctx); /* whether all pods are known, or were once */
	/* The answer to a reviewed enrolment. */
	void (*answered)(void *ctx, const struct ingest_route *route, const struct buf *answer,
			 enum frame_result result, bool refused);
	void (*refused)(void *ctx, const char *node, const char *why, int64_t now_ns);
	void *ctx;
};

struct node_enroller;

/*
 * Reads the files, and writes the public key beside the private one. -errno with the reason.
 */
int node_enroller_open(struct node_enroller **en, const struct node_enroller_config *config,
		       struct error *error);
/* The private keys, borrowed until the next reload. */
const struct keyring *node_enroller_keys(const struct node_enroller *en);
/* Cuts reviews; before the loop closes. */
void node_enroller_stop(struct node_enroller *en); /* NULL is allowed, as below */
void node_enroller_close(struct node_enroller *en); /* once the loop is closed */
/* Reads the files again; what cannot be read stays as it is. Logs either. */
void node_enroller_reload(struct node_enroller *en);
/*
 * Takes an enrolment and appends its answer. The frame_result; FRAME_RESULT_part: it is being
 * reviewed, and answered later. *refused: neither granted nor put off. -errno as enrolment_open().
 */
int node_enroller_take(struct node_enroller *en, const void *data, size_t len,
		       const struct ingest_route *route, int64_t now_ns, struct buf *answer,
		       bool *refused);
