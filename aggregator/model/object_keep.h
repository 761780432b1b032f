/* SPDX-License-Identifier: Apache-2.0 */
/* Which members of each kind of object are kept, and their canonical text (object.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/model/object.h"
#include "aggregator/model/object_json.h"
#include "shared/buf.h"

/*
 * Each fails where something that is kept is beyond its bound (object_bounds.h); out then has a part
 * of it.
 */

/* All that is kept of an object that is no pod. */
void object_keep_write(const struct object_json *whole, enum object_kind kind,
		       const char *api_version, struct buf *out);
/*
 * {"metadata":{..},"spec":{..}} of a pod, as struct pod_template says; *spec_at is where the object
 * of "spec" begins. bound_to: the node to which a DaemonSet bound the pod by its affinity, which is
 * left out then; NULL: none did.
 */
void object_keep_template(const struct object_json *pod, const char *bound_to, struct buf *out,
			  size_t *spec_at);
/* The members of a pod's status that pod_sums_read() reads, and restartCount. */
void object_keep_resize(const struct object_json *status, struct buf *out);

/* Whether an annotation is kept; of a pod fewer are, since pods must have templates in common. */
bool object_keep_annotation(const char *key);
bool object_keep_pod_annotation(const char *key);
