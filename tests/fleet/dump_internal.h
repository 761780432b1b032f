/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the dump share: the writer of one list, and metadata alike for every object. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/buf.h"
#include "shared/jsonw.h"
#include "tests/fleet/cluster.h"

struct dump {
	const struct cluster *cluster; /* borrowed, as is the file */
	FILE *file;
	struct buf text; /* of the item that is being written */
	struct jsonw w;
	size_t items;
};

/* Kinds, for uids and creation times. */
enum dump_kind {
	DUMP_NODE = 601,
	DUMP_NAMESPACE,
	DUMP_PRIORITY_CLASS,
	DUMP_REPLICA_SET,
	DUMP_DEPLOYMENT,
	DUMP_STATEFUL_SET,
	DUMP_DAEMON_SET,
	DUMP_JOB,
	DUMP_CRON_JOB,
	DUMP_BUDGET,
	DUMP_QUOTA,
	DUMP_VOLUME,
	DUMP_CLAIM,
	DUMP_STORAGE_CLASS,
	DUMP_POD,
};

/* {"apiVersion", "kind", .. up to dump_close(), which writes it out. */
void dump_open(struct dump *d, const char *api_version, const char *kind);
void dump_close(struct dump *d);

/*
 * Opens "metadata" with name, namespace (NULL: none), uid and creationTimestamp; the caller adds to
 * it and closes the object.
 */
void dump_metadata(struct dump *d, enum dump_kind kind, uint64_t which, const char *namespace,
		   const char *name);
void dump_uid(const struct dump *d, enum dump_kind kind, uint64_t which,
	      char text[POD_UID_LEN + 1]);
/* When an object was made, Unix time: always the same, in the weeks before a fixed day. */
int64_t dump_created_ns(const struct dump *d, enum dump_kind kind, uint64_t which);
void dump_time(struct dump *d, const char *key, int64_t unix_ns);
/* "key": {"cpu": "250m", "memory": "64Mi"}; amounts of 0 are left out. */
void dump_resources(struct dump *d, const char *key, int64_t cpu_milli, int64_t mem_bytes);
/* {"type", "status": "True" or "False", "reason" unless NULL, "lastTransitionTime"} */
void dump_condition(struct dump *d, const char *type, bool status, const char *reason,
		    int64_t since_ns);
/* One controller in "ownerReferences". */
void dump_owner(struct dump *d, const char *api_version, const char *kind, const char *name,
		const char *uid);
/* "key": {"app": name} */
void dump_app(struct dump *d, const char *key, const char *name);

extern const char *const dump_priority_names[PRIORITIES];
extern const int32_t dump_priority_values[PRIORITIES];
/* What the controller of a workload's pods is; NULLs for pods without one. */
struct dump_controller {
	const char *api_version, *kind;
	enum dump_kind dump_kind;
	char name[CLUSTER_NAME_MAX];
};
struct dump_controller dump_controller_of(const struct dump *d, size_t workload);

void dump_pod(struct dump *d, size_t pod);
/* The claim of a stateful pod, and the volume it is bound to. */
void dump_claim_name(const struct dump *d, size_t pod, char text[2 * CLUSTER_NAME_MAX]);
void dump_volume(struct dump *d, size_t pod);
/* ReplicaSet, StatefulSet, DaemonSet or Job, and a budget where there is one. */
void dump_workload(struct dump *d, size_t workload);
