/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel on a node bed as an administrator installs it, asked as people who may look at it ask.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "tests/node_bed.h"

#define INSTALL_NAMESPACE "/namespaces/evenkeel"

struct node_install {
	struct node_bed *bed; /* borrowed */
	char *token_path; /* of a user who may look, and do nothing else */
	char *ca_path; /* whom the server's certificate is vouched for by */
	int64_t applied_ns; /* monotonic */
	char said[512]; /* by kubectl evenkeel, last, instead of an answer */
};

/* Imports the images and applies the file, with nothing prepared; awaits what the aggregator makes. */
struct node_install *node_install_new(struct node_bed *b, const char *file);
/* Leaves the cluster as it is. NULL is allowed. */
void node_install_free(struct node_install *i);

/* Every pod of "daemonsets" or "deployments" by that name is of the newest version, and ready. */
bool node_install_is_rolled_out(struct node_install *i, const char *kind, const char *name);

/*
 * `kubectl evenkeel WORDS -o json`, found as any plugin is; words end with NULL, at most 10. NULL
 * when it fails, and then i->said says why. The caller deletes it.
 */
cJSON *node_install_ask(struct node_install *i, const char *const *words);
