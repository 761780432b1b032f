/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses one JSON document after the other on one thread, each into the memory of the one before.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_JSON_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

struct kube_json_block;

struct kube_json {
	struct kube_json_block *blocks; /* owned; the newest first */
};

/*
 * Once before any document; it changes where cJSON gets memory in this process, for all but
 * documents not at all.
 */
void kube_json_setup(void);
void kube_json_init(struct kube_json *j);
void kube_json_fini(struct kube_json *j);
/*
 * NULL: it is no JSON. Until kube_json_end(), all that cJSON makes on this thread is part of the
 * document.
 */
cJSON *kube_json_begin(struct kube_json *j, const char *text, size_t len);
/* The document is gone; there is nothing to delete. */
void kube_json_end(struct kube_json *j);

#endif
