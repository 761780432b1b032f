/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pods of each workload used when some were measured last: for a pod that comes back
 * tomorrow, of a new ReplicaSet, or after a restart. Loop thread, but for tables.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "shared/buf.h"
#include "shared/jsonw.h"
#include "shared/error.h"

enum {
	WORKLOAD_KEY_MAX = 639, /* bytes of namespace, kind and name */
	WORKLOADS_MAX = 20000, /* those measured longest ago are forgotten first */
	WORKLOAD_DAYS = 14, /* and all after so long */
};

/* Each pod of it. */
struct workload_use {
	const char *key; /* lives as long as the table */
	double cpu_milli, cpu_p95_milli, working_set_bytes;
	int64_t seen_ns; /* Unix time; 0: not of this round */
	uint32_t pods; /* measured then */
};

struct workload_table {
	atomic_uint users;
	char *text; /* owned; what keys point into */
	size_t count;
	struct workload_use of[]; /* sorted by key */
};

struct workload_table *workload_table_hold(struct workload_table *t); /* NULL is allowed */
void workload_table_drop(struct workload_table *t); /* any thread; likewise */
const struct workload_use *workload_table_find(const struct workload_table *t, const char *key);

/*
 * "shop/Deployment/web": the workload by the name people have for it. The hash of the template ends
 * a ReplicaSet's name, and the minute that of a CronJob's Job. template_hash may be NULL. "" where
 * there is no controller, or the key is too long.
 */
void workload_key(const char *namespace, const struct owner_ref *owner, const char *template_hash,
		  char key[WORKLOAD_KEY_MAX + 1]);
void workload_key_of(const struct kube_pod *pod, char key[WORKLOAD_KEY_MAX + 1]);

struct workload_memory;
struct workload_memory *workload_memory_new(void);
void workload_memory_free(struct workload_memory *m);
/* Use of some pods, as of that time; several of one key and time count together, by their pods. */
void workload_memory_note(struct workload_memory *m, const struct workload_use *use);
/* All that is remembered; the caller drops it. Forgets what is too old, or too much. */
struct workload_table *workload_memory_table(struct workload_memory *m, int64_t now_ns);

/*
 * {"workloads":[{"key","cpuMillicores","cpuP95Millicores","workingSetBytes","seen"},..]}, sorted by
 * key, seen in Unix seconds.
 */
void workload_table_write(const struct workload_table *t, struct buf *out);
void workload_table_write_list(const struct workload_table *t,
			       struct jsonw *w); /* its list alone */
/* -EINVAL: the reason says what is wrong and where, and nothing was taken over. */
int workload_memory_read(struct workload_memory *m, const char *text, size_t len,
			 struct error *error);
