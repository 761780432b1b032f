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

#include "aggregator/policy/drain/drain.h"
#include "shared/clock.h"
#include "shared/mem.h"
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

#define AT	"2026-01-31T12:00:00Z"
#define HEAD	"{'kind':'DrainState','time':'" AT "',"
#define ITEM(x) HEAD x "]}"
#define LONG	"must be a string of at most 4096 bytes"

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
	char *name = mem_alloc(4098), *text;
	struct buf left = BUF_INIT;

	(void)unused;
	state = drain_state_new();
	assert_int_equal(drain_state_read(state, kept, strlen(kept), MINUTE, NOW, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i].text, rows[i].want);
	/* All of it is as it was. */
	drain_state_write(state, NOW, &left);
	assert_string_equal(left.data, kept);
	/* 4096 bytes are a name, and one more is not. */
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
	buf_fini(&left);
	drain_state_free(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
