/* SPDX-License-Identifier: Apache-2.0 */
/* What a drain state may say when it is read again, and that a refused one changes nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/drain_fixture.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)

static struct drain_state *state;

static void refuse(const char *text, const char *want)
{
	struct error error = {""};
	char *json = mem_strdup(text);

	for (char *at = json; *at; at++)
		if (*at == '\'')
			*at = '"';
	assert_int_equal(drain_state_read(state, json, strlen(json), MINUTE, NOW, &error), -EINVAL);
	assert_string_equal(error.text, want);
	free(json);
}

#define AT	  "2026-01-31T12:00:00Z"
#define HEAD	  "{'kind':'DrainState','time':'" AT "',"
#define ITEM(x)	  HEAD x "]}"
#define FAILED(x) ITEM("'unremovable':[{'node':'a','until':'" AT "'," x "}")
#define NUMBERS	  "unremovable[0]: numbers: must be numbers of names that are known"
#define REFUSED	  "unremovable[0]: refused: must be numbers of nodes by filter"
#define LONG	  "must be a string of at most 4096 bytes"

static void a_state_that_makes_no_sense_is_refused(void **unused)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"[", "DrainState: is not a JSON object in UTF-8"},
		{"{\"kind\":\"DrainState\",\"\xff\":1}",
		 "DrainState: is not a JSON object in UTF-8"},
		{"{'kind':'Pod'}", "kind: must be DrainState"},
		{HEAD "'timers':7}", "timers: must be a list"},
		{ITEM("'timers':[{'node':7}"), "timers[0]: node: " LONG},
		{ITEM("'timers':[{'node':'a','since':'1969-12-31T23:59:59Z'}"),
		 "timers[0]: since: lies before 1970"},
		{ITEM("'timers':[{'node':'a','since':7}"), "timers[0]: since: " LONG},
		{ITEM("'timers':[{'node':'a','since':'" AT "','kind':'x'}"),
		 "timers[0]: kind: is not a name that is known here"},
		{ITEM("'timers':[{'node':'a','since':'" AT "','kind':''}"),
		 "timers[0]: kind: is not a name that is known here"},
		{ITEM("'unremovable':[{}"), "unremovable[0]: node: " LONG},
		{ITEM("'unremovable':[{'node':'a'}"), "unremovable[0]: until: " LONG},
		{ITEM("'unremovable':[{'node':'a','until':'" AT "','reason':'x'}"),
		 "unremovable[0]: reason: is not a name that is known here"},
		{ITEM("'unremovable':[{'node':'a','until':'" AT "','why':7}"),
		 "unremovable[0]: why: must be a string"},
		{FAILED("'numbers':{'odd':1}"), NUMBERS},
		{FAILED("'numbers':{'used':'1'}"), NUMBERS},
		{FAILED("'numbers':[1]"), NUMBERS},
		{FAILED("'numbers':{'used':1,'used':1,'used':1,'used':1,'used':1,'used':1}"),
		 NUMBERS},
		{FAILED("'refused':{'odd':1}"), REFUSED},
		{FAILED("'refused':{'NodeResourcesFit':'1'}"), REFUSED},
		{FAILED("'refused':{'NodeResourcesFit':-1}"), REFUSED},
		{FAILED("'refused':{'NodeResourcesFit':1e9}"), REFUSED},
		{FAILED("'refused':[1]"), REFUSED},
		{ITEM("'evictions':[{'pod':7}"), "evictions[0]: time: " LONG},
		{ITEM("'evictions':[{'time':'" AT "','pod':7}"),
		 "evictions[0]: pod: must be an object"},
		{ITEM("'evictions':[{'time':'" AT "','pod':{},'leaving':7}"),
		 "evictions[0]: leaving: must be true or false"},
		{ITEM("'verdicts':[{'node':7}"), "verdicts[0]: node: " LONG},
		{ITEM("'verdicts':[{'node':'a','verdict':'x'}"),
		 "verdicts[0]: verdict: is not a name that is known here"},
		{ITEM("'verdicts':[{'node':'a','verdict':'','reason':7}"),
		 "verdicts[0]: verdict: is not a name that is known here"},
		{ITEM("'verdicts':[{'node':'a','verdict':'drain','reason':7}"),
		 "verdicts[0]: reason: " LONG},
		{ITEM("'history':[{'time':7}"), "history[0]: time: " LONG},
		{ITEM("'history':[{'time':'" AT "','event':7}"), "history[0]: event: " LONG},
		{ITEM("'history':[{'time':'" AT "','event':'drain','reason':'x'}"),
		 "history[0]: reason: is not a name that is known here"},
		{ITEM("'history':[{'time':'" AT "','event':'drain'}"), "history[0]: node: " LONG},
		{ITEM("'history':[{'time':'" AT "','event':'drain','node':'a','text':7}"),
		 "history[0]: text: " LONG},
		{HEAD "'hints':[]}", "hints: must be an object"},
		{HEAD "'hints':{'u':1}}", "hints: must be names of nodes by uid"},
	};
	static const char kept[] =
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"DrainState\",\"time\":\"" AT
		"\",\"timers\":[],\"unremovable\":[],\"evictions\":[],\"hints\":{\"u\":\"a\"},"
		"\"verdicts\":[{\"node\":\"a\",\"verdict\":\"drain\",\"reason\":\"NoReason\"}],"
		"\"history\":[]}";
	struct buf left = BUF_INIT;

	(void)unused;
	state = drain_state_new();
	assert_int_equal(drain_state_read(state, kept, strlen(kept), MINUTE, NOW, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i].text, rows[i].want);
	/* All of it is as it was. */
	drain_state_write(state, NOW, &left);
	assert_string_equal(left.data, kept);
	buf_fini(&left);
	drain_state_free(state);
}

/* 4096 bytes are a name, and one more is not. */
static void names_have_a_bound(void **unused)
{
	char *name = mem_alloc(4098), *text;

	(void)unused;
	state = drain_state_new();
	for (size_t len = 4096; len <= 4097; len++) {
		struct error error = {""};

		memset(name, 'x', len);
		name[len] = '\0';
		for (size_t i = 0; i < 2; i++) {
			text = mem_printf(HEAD "'hints':{'%s':'%s'}}", i ? name : "u",
					  i ? "a" : name);
			for (char *at = text; *at; at++)
				*at = *at == '\'' ? '"' : *at;
			assert_int_equal(drain_state_read(state, text, strlen(text), MINUTE,
							  NOW - 1, &error),
					 len > 4096 ? -EINVAL : 0);
			free(text);
		}
		text = mem_printf(ITEM("'timers':[{'node':'%s','since':7}"), name);
		refuse(text, len > 4096 ? "timers[0]: node: " LONG : "timers[0]: since: " LONG);
		free(text);
	}
	free(name);
	drain_state_free(state);
}

/* The newest three quarters are kept, and so many records of one step are told. */
static void history_is_bounded(void **unused)
{
	struct drain_record r = {.event = DRAIN_EVENT_GONE,
				 .node = (char *)"a",
				 .text = (char *)""};
	struct buf text = BUF_INIT;
	struct error why = {""};
	cJSON *tree;

	(void)unused;
	state = drain_state_new();
	for (int i = 0; i <= DRAIN_RECORDS_MAX; i++) {
		r.time_ns = NOW + i;
		drain_state_note(state, &r);
		if (i + 1 == DRAIN_HISTORY_MAX)
			assert_int_equal(state->history_count, DRAIN_HISTORY_MAX);
		if (i == DRAIN_HISTORY_MAX) {
			assert_int_equal(state->history_count, DRAIN_HISTORY_MAX / 4 * 3 + 1);
			assert_true(state->history[0].time_ns == NOW + DRAIN_HISTORY_MAX / 4);
		}
	}
	assert_int_equal(state->fresh_count, DRAIN_RECORDS_MAX);
	assert_true(state->history[state->history_count - 1].time_ns == NOW + DRAIN_RECORDS_MAX);
	/* As many as a state may have can be read, and not one more. */
	while (state->history_count < DRAIN_HISTORY_MAX)
		drain_history_add(state, &r);
	drain_state_write(state, NOW, &text);
	assert_int_equal(drain_state_read(state, text.data, text.len, MINUTE, NOW, &why), 0);
	assert_int_equal(state->history_count, DRAIN_HISTORY_MAX);
	tree = cJSON_Parse(text.data);
	cJSON_AddItemToArray(cJSON_GetObjectItem(tree, "history"), cJSON_CreateObject());
	buf_fini(&text);
	text = (struct buf)BUF_INIT;
	text.data = cJSON_PrintUnformatted(tree);
	assert_int_equal(drain_state_read(state, text.data, strlen(text.data), MINUTE, NOW, &why),
			 -EINVAL);
	assert_string_equal(why.text, "history: is longer than a state may be");
	cJSON_free(text.data);
	cJSON_Delete(tree);
	drain_state_free(state);
	drain_state_free(NULL);
}

/* Of those that are evicted again the newest counts, by name and uid. */
static void evictions_are_bounded(void **unused)
{
	struct object *o[3];

	(void)unused;
	for (int i = 0; i < 3; i++) {
		char *json = mem_printf("{'metadata':{'name':'p','namespace':'default','uid':'%d'}"
					",'spec':{'containers':[]}}",
					i);

		o[i] = drain_fixture_object(OBJECT_POD, json);
		free(json);
	}
	state = drain_state_new();
	drain_state_add_eviction(state, (struct kube_pod *)o[0], NOW, false);
	drain_state_add_eviction(state, (struct kube_pod *)o[1], NOW + 1, false);
	drain_state_add_eviction(state, (struct kube_pod *)o[2], NOW + 1, false);
	assert_int_equal(state->eviction_count, 3);
	drain_state_add_eviction(state, (struct kube_pod *)o[1], NOW + 2, true);
	assert_int_equal(state->eviction_count, 3);
	assert_ptr_equal(state->evictions[0].pod, o[0]);
	assert_ptr_equal(state->evictions[1].pod, o[2]);
	assert_true(state->evictions[2].when_ns == NOW + 2 && state->evictions[2].leaving);
	drain_state_free(state);
	for (int i = 0; i < 3; i++)
		object_drop(o[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_that_makes_no_sense_is_refused),
		cmocka_unit_test(names_have_a_bound),
		cmocka_unit_test(history_is_bounded),
		cmocka_unit_test(evictions_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
