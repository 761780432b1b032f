/* SPDX-License-Identifier: Apache-2.0 */
/* A Pod object, as the API or a manifest gives it, read into what scores look at. */
#ifndef EVENKEEL_AGGREGATOR_MODEL_POD_JSON_H
#define EVENKEEL_AGGREGATOR_MODEL_POD_JSON_H

#include <cjson/cJSON.h>

#include "aggregator/model/pod_spec.h"
#include "shared/error.h"

enum { POD_JSON_FIELD_MAX = 128 };

/*
 * Only what matters for scores is read and checked: kind, metadata.name, spec.containers,
 * spec.initContainers, spec.overhead, spec.resources, of these cpu and memory. null is absent.
 * Requests that are absent where there is a limit become the limit, as the API server does, since a
 * manifest has not been there yet. 0, or -EINVAL, field then names the culprit
 * ("spec.containers[0].resources.requests.cpu") and reason says why. The spec borrows its name from
 * the tree; free it with pod_spec_free_members().
 */
int pod_json_parse(const cJSON *pod, struct pod_spec *spec, char field[POD_JSON_FIELD_MAX],
		   struct error *error);

/* A quantity as JSON writes it, a string or a number; not negative. 0 or -EINVAL. */
int pod_json_quantity(const cJSON *value, int (*parse)(const char *, int64_t *, struct error *),
		      int64_t *out, struct error *error);

#endif
