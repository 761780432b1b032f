/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was reserved, in a Snapshot: so that the command line scores from it as the aggregator would
 * have. What the snapshot's objects show already is not written, and so nothing of a reservation
 * depends on generations of a model that is no more.
 *
 *   "ledger":[{"namespace","name","uid","state"[,"node"],"requests":{"cpu":"500m",..},"expectedCpuMillicores","priority",
 *              "made","expires"},..]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "aggregator/api/snapshot_state.h"
#include "aggregator/model/object_json.h"
#include "aggregator/policy/arith.h"
#include "shared/jsonw.h"
#include "shared/timefmt.h"

/* --- writing ---------------------------------------------------------------------------------- */

static void write_time(struct jsonw *w, const char *key, int64_t unix_ns)
{
	char text[TIMEFMT_LEN];

	timefmt_rfc3339_exact(unix_ns, text);
	jsonw_key_string(w, key, text);
}

/* As quantities of Kubernetes. */
static void write_requests(struct jsonw *w, const struct resources *r)
{
	const char *name;
	char text[32];
	int64_t amount;
	size_t at = 0;

	jsonw_key(w, "requests");
	jsonw_object_open(w);
	while (resources_next(r, &at, &name, &amount)) {
		bool milli = name == resource_name(RESOURCE_CPU);

		snprintf(text, sizeof(text), "%" PRId64 "%s", amount, milli ? "m" : "");
		jsonw_key_string(w, name, text);
	}
	jsonw_object_close(w);
}

void snapshot_write_ledger_entry(struct jsonw *w, const struct ledger_entry *e)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "namespace", e->namespace);
	jsonw_key_string(w, "name", e->name);
	jsonw_key_string(w, "uid", e->uid);
	jsonw_key_string(w, "state", ledger_state_name(e->state));
	if (*e->node)
		jsonw_key_string(w, "node", e->node);
	write_requests(w, &e->requests);
	jsonw_key_int(w, "expectedCpuMillicores", e->expected_cpu_milli);
	jsonw_key_int(w, "expectedHighCpuMillicores", e->expected_high_cpu_milli);
	jsonw_key_int(w, "expectedMemoryBytes", e->expected_mem_bytes);
	jsonw_key_int(w, "priority", e->priority);
	write_time(w, "made", e->made_ns);
	write_time(w, "expires", e->expires_ns);
	jsonw_object_close(w);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_number(const cJSON *item, const char *name, double least, double most, double *out)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(item, name);

	if (!cJSON_IsNumber(number) ||
	    !(number->valuedouble >= least && number->valuedouble <= most))
		return -EINVAL;
	*out = number->valuedouble;
	return 0;
}

static int read_entry(struct snapshot *s, const struct snapshot_text *t, const cJSON *item,
		      size_t index)
{
	char field[OBJECT_FIELD_MAX] = "";
	struct reason why = {""};
	const struct object_json json = {field, &why};
	struct ledger_entry e = {
		.uid = snapshot_member(item, "uid"),
		.namespace = snapshot_member(item, "namespace"),
		.name = snapshot_member(item, "name"),
		.node = snapshot_member(item, "node"),
	};
	double cpu_milli, high_milli, mem_bytes, priority;
	int rc;

	if (!cJSON_IsObject(item) || !*e.uid || !*e.name ||
	    read_number(item, "expectedCpuMillicores", 0, 0x1p63, &cpu_milli) ||
	    read_number(item, "expectedHighCpuMillicores", 0, 0x1p63, &high_milli) ||
	    read_number(item, "expectedMemoryBytes", 0, 0x1p63, &mem_bytes) ||
	    read_number(item, "priority", INT32_MIN, INT32_MAX, &priority))
		return snapshot_text_fail(
			t,
			"state.ledger[%zu]: must be a reservation with uid, name, "
			"expectedCpuMillicores, expectedHighCpuMillicores, "
			"expectedMemoryBytes and priority",
			index);
	e.expected_cpu_milli = round_saturating(cpu_milli);
	e.expected_high_cpu_milli = round_saturating(high_milli);
	e.expected_mem_bytes = round_saturating(mem_bytes);
	e.priority = (int32_t)priority;
	rc = object_json_resources(&json, item, NULL, "requests", NULL, &e.requests);
	if (rc)
		snapshot_text_fail(t, "state.ledger[%zu].%.160s: %.200s", index, field, why.text);
	else if ((rc = ledger_reserve(s->ledger, &e, s->time_ns)) != 0)
		snapshot_text_fail(t, "state.ledger[%zu]: is too long, or one too many", index);
	resources_fini(&e.requests);
	return rc ? -EINVAL : 0;
}

int snapshot_read_ledger(struct snapshot *s, const struct snapshot_text *t, const cJSON *list)
{
	size_t index = 0;

	if (!list)
		return 0;
	if (!cJSON_IsArray(list))
		return snapshot_text_fail(t, "state.ledger: must be a list");
	for (const cJSON *item = list->child; item; item = item->next)
		if (read_entry(s, t, item, index++))
			return -EINVAL;
	return 0;
}
