/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests, and what a server made of them. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "shared/buf.h"

/* All documents, as an array; the caller deletes it. What is no YAML fails the test. */
cJSON *kube_objects_parse(const struct buf *yaml);
/*
 * Whether the server keeps all that was given, as it was given; what it adds does not matter.
 * Amounts may be written in another way, and what is false may be left out. What is not kept is
 * printed.
 */
bool kube_objects_are_kept(const cJSON *given, const cJSON *kept);
