/* SPDX-License-Identifier: Apache-2.0 */
/* Node selector terms of node affinity, volumes and storage classes: any term, all of it. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/model/labels.h"
#include "shared/error.h"

enum place_operator {
	PLACE_IN,
	PLACE_NOT_IN,
	PLACE_EXISTS,
	PLACE_DOES_NOT_EXIST,
	PLACE_GT,
	PLACE_LT,
	PLACE_OPERATORS
};

extern const char *const place_operators[PLACE_OPERATORS]; /* "In", .. */

struct place_requirement {
	char *key; /* owned */
	enum place_operator op;
	bool field; /* metadata.name */
	bool never; /* invalid value: nothing matches, not even NotIn */
	uint32_t value_count;
	char **values; /* owned */
	int64_t number; /* Gt, Lt */
};

/* Without requirements it matches nothing. */
struct place_one_term {
	uint32_t count;
	struct place_requirement *of; /* owned */
};

struct place_terms {
	uint32_t count;
	struct place_one_term *of; /* owned */
};

/* nodeSelectorTerms. -EINVAL with the field below the list, and *out is empty. */
int place_terms_read(const cJSON *list, struct place_terms *out, struct error *error);
/* allowedTopologies of a StorageClass. */
int place_terms_read_topologies(const cJSON *list, struct place_terms *out, struct error *error);
void place_terms_fini(struct place_terms *t);
bool place_terms_match(const struct place_terms *t, const struct labels *labels, const char *name);
/* Adds a term: the key has one of the values, separated by "__". */
void place_terms_add_zones(struct place_terms *t, const char *key, const char *values);
bool place_requirement_match(const struct place_requirement *r, const struct labels *labels,
			     const char *name);
