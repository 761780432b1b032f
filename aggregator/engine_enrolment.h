/* SPDX-License-Identifier: Apache-2.0 */
/* Gives nodes their keys: checks the credentials of enrolments, and answers them. */
#ifndef EVENKEEL_AGGREGATOR_ENGINE_ENROLMENT_H
#define EVENKEEL_AGGREGATOR_ENGINE_ENROLMENT_H

#include <stdint.h>

#include "aggregator/state/counters.h"
#include "aggregator/state/node_keys.h"
#include "shared/buf.h"
#include "shared/error.h"

struct enroller_config {
	const char *key_path; /* the aggregator's private key; made if it is missing */
	const char *join_token_path; /* NULL: no join tokens */
	struct node_keys *keys; /* borrowed, as is all here */
	void (*refused)(void *ctx, const char *node, const char *why, int64_t now_ns);
	void *ctx;
};

struct enroller;

/*
 * Reads the files, and writes the public key beside the private one. -errno with the reason.
 */
int enroller_open(struct enroller **en, const struct enroller_config *config, struct error *error);
void enroller_close(struct enroller *en); /* NULL is allowed, as below */
/* Reads the files again; what cannot be read stays as it is. Logs either. */
void enroller_reload(struct enroller *en);
/*
 * Takes an enrolment and appends its answer; returns the count. Without an answer: it is none, or
 * not for this aggregator.
 */
enum frame_result enroller_take(struct enroller *en, const void *data, size_t len, int64_t now_ns,
				struct buf *answer);

#endif
