/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the checker share: the question, and reading objects. */
#ifndef EVENKEEL_TESTS_PLACE_CHECKER_PARTS_H
#define EVENKEEL_TESTS_PLACE_CHECKER_PARTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"
#include "tests/place_checker.h"

/* One pod, one node. */
struct question {
	const struct place_checker *c;
	size_t pod_at, node_at;
	const cJSON *pod, *node;
	struct error *error; /* may be NULL */
};

/* --- place_checker_json.c: what is not there is NULL, or `absent` */

const cJSON *check_get(const cJSON *object, const char *key);
const cJSON *check_spec_of(const cJSON *object, const char *key);
const cJSON *check_meta_of(const cJSON *object, const char *key);
/* The first element or member. */
const cJSON *check_first_of(const cJSON *list);
const char *check_text_of(const cJSON *object, const char *key, const char *absent);
int check_number_of(const cJSON *object, const char *key, int absent);
/* NULL equals nothing. */
bool check_equal(const char *a, const char *b);
const char *check_name_of(const cJSON *object);
const char *check_namespace_of(const cJSON *object);
const char *check_label_of(const cJSON *object, const char *key);
bool check_has_string(const cJSON *list, const char *text);
/* Succeeded or Failed. */
bool check_has_ended(const cJSON *pod);
/* CPU in millicores, all else in whole units, rounded up. */
int64_t check_amount_in(const cJSON *list, const char *resource);
bool check_is_sidecar(const cJSON *init);
/* What the pod needs at its worst moment. */
int64_t check_pod_request(const cJSON *pod, const char *resource);
int64_t check_pod_running(const cJSON *pod, const char *resource); /* without init containers */
/* A label selector that is absent selects nothing, an empty one everything. */
bool check_selects(const cJSON *selector, const cJSON *object);
/* matchLabelKeys: the other has the same value of each of these labels that the pod has. */
bool check_same_labels(const cJSON *keys, const cJSON *pod, const cJSON *other);
/* {nodeSelectorTerms}; absent: every node. */
bool check_node_selector_matches(const cJSON *selector, const cJSON *node);

/* --- place_checker.c */

const cJSON *check_find_other(const struct place_checker *c, const char *kind,
			      const char *namespace, const char *name);
/* The pod counts where it is, and is not the one that is asked about. */
bool check_is_there(const struct question *q, size_t pod);

/* --- place_checker_volumes.c */

bool check_volumes_allow(const struct question *q);

#endif
