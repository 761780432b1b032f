/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a cluster, made in its Snapshot (aggregator/api/snapshot.h). */
#pragma once

#include <cjson/cJSON.h>

#include "shared/buf.h"
#include "shared/error.h"
#include "shared/options.h"
#include "shared/yaml_json.h"

/* Each is the list of an option of evenkeel whatif, whose help says what its texts are. */
struct whatif_changes {
	struct option_list apply, add, remove, cordon, taint, resize, scale;
};

/*
 * Makes them in the order of the members, and of each list. Added nodes and pods are named
 * "whatif-1" and so on. The notes get a line for each file with objects that were skipped. -EINVAL
 * with the reason, which names the option and its text.
 */
int whatif_change(cJSON *snapshot, const struct whatif_changes *changes, struct buf *notes,
		  struct error *error);

/* --- whatif_apply.c */

/* A list of the documents in a YAML or JSON file, always the caller's. -EINVAL with the reason. */
int whatif_read_file(const char *path, const struct yaml_json_limits *limits, cJSON **documents,
		     struct error *error);
