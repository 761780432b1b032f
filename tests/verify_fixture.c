/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/verify_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "aggregator/api/plan_ask.h"
#include "shared/document.h"
#include "tests/api_fixture.h"

cJSON *verify_fixture_snapshot(struct view *v)
{
	struct api_fixture f;
	cJSON *snapshot;

	api_fixture_open(&f, view_hold(v));
	assert_int_equal(api_fixture_get(&f, "/v1/snapshot"), 200);
	snapshot = f.json;
	f.json = NULL;
	api_fixture_close(&f);
	assert_non_null(snapshot);
	return snapshot;
}

static cJSON *read_answer(const struct drain_plan *plan)
{
	struct buf text = BUF_INIT;
	struct jsonw w;
	cJSON *answer;

	jsonw_init(&w, &text);
	jsonw_object_open(&w);
	drain_json_write_head(&w, plan);
	drain_json_write_wave(&w, plan);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < plan->node_count; i++) {
		jsonw_object_open(&w);
		drain_json_write_node(&w, plan, &plan->nodes[i], false);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	answer = cJSON_ParseWithLength(text.data, text.len);
	buf_fini(&text);
	assert_non_null(answer);
	return answer;
}

cJSON *verify_fixture_plan(const struct drain_plan *plan)
{
	cJSON *answer = read_answer(plan), *made, *cap;
	struct place_options o;

	place_options_default(&o);
	if (plan->capped) {
		cap = cJSON_AddObjectToObject(answer, "cap");
		cJSON_AddNumberToObject(cap, "cpuShare", o.cap.cpu_share);
		cJSON_AddNumberToObject(cap, "memoryShare", o.cap.mem_share);
		cJSON_AddNumberToObject(cap, "z", o.cap.z);
		cJSON_AddNumberToObject(cap, "contention", o.cap.contention);
	}
	made = document_drain_plan(answer);
	cJSON_Delete(answer);
	return made;
}

void verify_fixture_judge(const cJSON *plan, const cJSON *snapshot, struct verify_plan *p,
			  struct verify_report *out)
{
	char *text = cJSON_PrintUnformatted(plan);
	struct error error = {""};

	if (verify_plan_read(text, strlen(text), p, &error) ||
	    verify_judge(p, snapshot, out, &error))
		fail_msg("%s: %s", error.text, text);
	cJSON_free(text);
}
