/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod from a file as people keep them, YAML or JSON, as the JSON the API takes: a Pod, or the
 * template of a Deployment, StatefulSet, DaemonSet, Job, CronJob or ReplicaSet.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "shared/buf.h"
#include "shared/error.h"

/*
 * path "-" is standard input. Appends one JSON object. -EINVAL with the reason, which names the
 * file and line.
 */
int pod_file_read(const char *path, struct buf *json, struct error *error);
/* The same from memory; name is what reasons call it. */
int pod_file_convert(const char *name, const char *text, size_t len, struct buf *json,
		     struct error *error);
/*
 * A member "pod" of the object that is a text becomes the object that it describes. -EINVAL with the
 * reason.
 */
int pod_file_replace(cJSON *object, struct error *error);
