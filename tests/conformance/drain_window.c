/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of karpenter_budget and controller_replicas. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aggregator/policy/drain/drain_owners.h"
#include "aggregator/policy/drain/drain_window.h"
#include "shared/mem.h"
#include "tests/conformance/drain_records.h"
#include "tests/conformance/values.h"

enum { REASONS_MAX = 8 };

/* "2000-06-15T12:30:30Z", of any year: nanoseconds do not reach back far enough. */
static bool read_now(const cJSON *c, int64_t *out, struct error *error)
{
	const char *text = cJSON_GetStringValue(values_get(c, "now"));
	struct tm t = {0};

	if (!text || sscanf(text, "%d-%d-%dT%d:%d:%dZ", &t.tm_year, &t.tm_mon, &t.tm_mday,
			    &t.tm_hour, &t.tm_min, &t.tm_sec) != 6) {
		values_fail(error, "\"now\" must be a time");
		return false;
	}
	t.tm_year -= 1900;
	t.tm_mon -= 1;
	*out = timegm(&t);
	return true;
}

static void read_window(const cJSON *budget, struct drain_window *w,
			const char *reasons[REASONS_MAX])
{
	const cJSON *duration = values_get(budget, "duration_s");
	const cJSON *list = values_get(budget, "reasons");

	*w = (struct drain_window){
		.nodes = cJSON_GetStringValue(values_get(budget, "nodes")),
		.schedule = cJSON_GetStringValue(values_get(budget, "schedule")),
		.duration_sec = duration ? (int64_t)duration->valuedouble : -1,
		.reasons = reasons,
	};
	for (const cJSON *item = list ? list->child : NULL; item && w->reason_count < REASONS_MAX;
	     item = item->next)
		reasons[w->reason_count++] = item->valuestring;
}

static bool same_error(const cJSON *c, int err, struct error *error)
{
	if ((err != 0) == cJSON_IsTrue(values_get(c, "want_error")))
		return true;
	values_fail(error, err ? "it cannot be read" : "an error was expected");
	return false;
}

enum outcome run_window_active(const cJSON *c, struct error *error)
{
	const char *reasons[REASONS_MAX];
	struct drain_window w;
	bool active = false;
	int64_t now;
	int err;

	if (!read_now(c, &now, error))
		return FAILED;
	read_window(values_get(c, "budget"), &w, reasons);
	err = drain_window_active(&w, DRAIN_UPSTREAM, now, &active, NULL);
	if (!same_error(c, err, error))
		return FAILED;
	if (!err && active != cJSON_IsTrue(values_get(c, "want")))
		return values_fail(error, "it is%s active", active ? "" : " not");
	return PASSED;
}

enum outcome run_window_allowed(const cJSON *c, struct error *error)
{
	const char *reasons[REASONS_MAX];
	struct drain_window w;
	int64_t now, nodes;
	int32_t allowed;
	int err;

	if (!read_now(c, &now, error) || !values_int(c, "num_nodes", &nodes, error))
		return FAILED;
	read_window(values_get(c, "budget"), &w, reasons);
	err = drain_window_allows(&w, DRAIN_UPSTREAM, nodes, now, &allowed, NULL);
	return same_error(c, err, error) && values_same_int(c, "want", allowed, error) ? PASSED
										       : FAILED;
}

enum outcome run_window_by_reason(const cJSON *c, struct error *error)
{
	const cJSON *budgets = values_get(c, "budgets"), *want = values_get(c, "want");
	size_t count = (size_t)cJSON_GetArraySize(budgets), at = 0;
	const char *(*reasons)[REASONS_MAX];
	struct drain_window *w;
	int64_t now, nodes;
	bool same = true;

	if (!read_now(c, &now, error) || !values_int(c, "num_nodes", &nodes, error))
		return FAILED;
	w = mem_zalloc(count + 1, sizeof(*w));
	reasons = mem_zalloc(count + 1, sizeof(*reasons));
	for (const cJSON *item = budgets ? budgets->child : NULL; item; item = item->next, at++)
		read_window(item, &w[at], reasons[at]);
	for (const cJSON *item = want ? want->child : NULL; same && item; item = item->next)
		same = values_same_int(want, item->string,
				       drain_windows_allow(w, count, DRAIN_UPSTREAM, item->string,
							   nodes, now, NULL),
				       error);
	free(reasons);
	free(w);
	return same && want ? PASSED : FAILED;
}

/* --- controller_replicas */

static void move_number(const cJSON *from, const char *key, cJSON *to, const char *name)
{
	const cJSON *item = values_get(from, key);

	if (item)
		cJSON_AddNumberToObject(to, name, item->valuedouble);
}

static bool add_workload(struct drain_records *r, const char *kind_name, const cJSON *object,
			 struct error *error)
{
	static const enum object_kind kinds[] = {OBJECT_REPLICA_SET, OBJECT_STATEFUL_SET,
						 OBJECT_DAEMON_SET, OBJECT_JOB,
						 OBJECT_REPLICATION_CONTROLLER};
	cJSON *json, *spec, *status;
	size_t i = 0;

	while (i < 5 && strcmp(object_kind_name(kinds[i]), kind_name) != 0)
		i++;
	if (i == 5 || !object)
		return true; /* there is no such owner */
	json = cJSON_CreateObject();
	cJSON_AddStringToObject(cJSON_AddObjectToObject(json, "metadata"), "name", "w");
	spec = cJSON_AddObjectToObject(json, "spec");
	status = cJSON_AddObjectToObject(json, "status");
	move_number(object, "replicas", spec, "replicas");
	move_number(object, "parallelism", spec, "parallelism");
	move_number(object, "completions", spec, "completions");
	move_number(object, "status_replicas", status, "replicas");
	move_number(object, "current_replicas", status, "currentReplicas");
	move_number(object, "active", status, "active");
	move_number(object, "succeeded", status, "succeeded");
	return drain_records_add(r, kinds[i], json, error);
}

enum outcome run_controller_replicas(const cJSON *c, struct error *error)
{
	const char *kind = cJSON_GetStringValue(values_get(c, "owner_kind"));
	const cJSON *want = values_get(c, "want");
	struct drain_records r = {0};
	struct drain_replicas got;
	bool passed;
	int err;

	if (!kind || !add_workload(&r, kind, values_get(c, "object"), error))
		return FAILED;
	err = drain_replicas_of(r.count ? r.of[0] : NULL, DRAIN_UPSTREAM, &got);
	passed = err ? !cJSON_IsObject(want)
		     : values_same_int(want, "current", got.current, error) &&
				 values_same_int(want, "target", got.target, error) && want;
	if (err && !passed)
		values_fail(error, "its replicas are not known");
	drain_records_fini(&r);
	return passed ? PASSED : FAILED;
}
