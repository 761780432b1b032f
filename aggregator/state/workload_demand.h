/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each container of a workload demanded, over all its pods: for advice about requests and
 * limits. Loop thread, but for tables.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/workload_memory.h"
#include "shared/error.h"
#include "shared/frame.h"
#include "shared/interval.h"
#include "shared/jsonw.h"

enum {
	DEMAND_RECORDS_MAX = 200000, /* further containers are not remembered */
	DEMAND_KEEP_DAYS = 14, /* since it was measured last, as workloads are remembered */
	DEMAND_DAYS = 4, /* with peaks */
	DEMAND_SHARDS = 16, /* parts in which all of it is saved */
};

/* Demand for CPU: weights of the buckets of shared/histogram.h, sparse. */
struct demand_weights {
	uint8_t count, room;
	double *weight; /* owned; [room], and behind them [room] bytes: the buckets, rising */
};

/* A day of Unix time. */
struct demand_day {
	int32_t day; /* 0: none */
	uint32_t oom_kills;
	float peak_bytes; /* largest working set of a pod; 0: not measured */
	float start_milli; /* largest demand for CPU in the first two minutes of a container */
	float oom_limit_bytes; /* largest memory limit in force at a kill; 0: not known */
};

/*
 * One container of a workload. A sample of s seconds at time t weighs s * 2^((t - epoch) / 24 h): so
 * each day counts half as much as the next one, and what was added is never touched.
 */
struct demand_record {
	atomic_uint users;
	const char *
		key; /* of the workload (workload_key()); "shop/Pod/web-0", "/Unit/nginx.service" */
	const char *container; /* "" of a unit */
	int64_t epoch_ns;
	int64_t seen_ns; /* end of the newest interval */
	int64_t measured_ns; /* time in which one or more were measured */
	struct demand_weights cpu; /* but for starts */
	double samples; /* weighed likewise, without their seconds */
	double periods, throttled_periods; /* likewise; of quotas */
	struct demand_day days[DEMAND_DAYS]; /* day d in place d % DEMAND_DAYS */
	char text[]; /* key and container */
};

struct demand_table {
	atomic_uint users;
	size_t count;
	struct demand_record *of[]; /* each held; sorted by key, then container */
};

void demand_table_drop(struct demand_table *t); /* any thread; NULL is allowed */

static inline unsigned int demand_bucket(const struct demand_weights *w, size_t i)
{
	return ((const uint8_t *)(w->weight + w->room))[i];
}

/* workload_key_of() of a pod; "shop/Pod/web-0" where it has no controller. */
void demand_key_of(const struct kube_pod *pod, char key[WORKLOAD_KEY_MAX + 1]);

struct demand;
struct demand_entry; /* of a record, for those that add to it */
struct usage_node;
struct view;

struct demand *demand_new(void);
void demand_free(struct demand *d); /* NULL is allowed */
/* The demand in an interval that was just applied to the node. */
void demand_apply(struct demand *d, struct usage_node *n, const struct interval *interval);
/* An entry that a reference of a node has is not used any more. NULL is allowed. */
void demand_release(struct demand_entry *e);
/* The newest view, which has the names of containers; it is held. */
void demand_see(struct demand *d, struct view *v);
/* All of it as of a minute ago or less; the caller drops it. NULL: nothing. */
struct demand_table *demand_table(struct demand *d, int64_t now_ns);

/*
 * As [{"key","container","seen","measuredSeconds","samples","periods","throttledPeriods",
 * "cpu":[BUCKET,WEIGHT,..],"days":[DAY,BYTES,OOMKILLS,STARTMILLICORES,..],
 * "oomLimits":[DAY,BYTES,..]},..] with weights as of `seen`; oomLimits of days with a known one, or
 * absent. shard -1: all records, else those of a shard.
 */
void demand_write(const struct demand_table *t, int shard, struct jsonw *w);
/* -EINVAL with the reason: nothing is taken over. Records that are there stay. */
int demand_read_records(struct demand *d, const cJSON *list, struct error *error);
int demand_read_text(struct demand *d, const char *text, size_t len, struct error *error);
