/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body of the extender's verbs: refused with a reason, or answered as a whole: every node that
 * was asked about is in the answer, which is JSON, and the reservations stay what they should be. What was
 * read, written, and read again is the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/extender_json.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/state/reservations.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/consistent.h"
#include "tests/fuzz/bare_request.h"
#include "tests/view_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct api_context ctx;
static struct counters counters;
static struct extender_options options;

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static void start(void)
{
	api_fixture_extender(&options);
	options.limits.use_cap[SCORE_CPU] = 0.85;
	options.limits.ratio[SCORE_MEMORY] = 2;
	ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &counters,
		.now_ns = fixed_now,
		.reservations = reservations_new(),
		.extender = &options,
	};
	view_slot_publish(ctx.views, view_fixture_new());
}

static void check_answer(const char *path, const char *text, size_t len)
{
	const struct api_request rq = {.method = "POST",
				       .path = path,
				       .body = text,
				       .body_len = len,
				       .query = bare_query,
				       .query_other = bare_query_other};
	struct api_response rs = {.status = 200};
	struct error why;
	cJSON *tree;

	api_route(&ctx, &rq, &rs);
	assert(rs.status == 200 || rs.status == 400);
	tree = cJSON_ParseWithLength(rs.body.data, rs.body.len);
	assert(tree);
	if (!reservations_is_consistent(ctx.reservations, &why))
		abort();
	reservations_settle(ctx.reservations, 0, fixed_now() + RESERVATIONS_TTL_NS);
	cJSON_Delete(tree);
	buf_fini(&rs.body);
}

static void check_args(const char *text, size_t len)
{
	struct extender_args args;
	char field[EXTENDER_FIELD_MAX];
	struct error error = {""};

	if (extender_args_parse(text, len, &args, field, &error)) {
		assert(error.text[0] && strlen(field) < sizeof(field));
		return;
	}
	assert(cJSON_IsObject(args.pod));
	for (size_t i = 0; i < args.count; i++) {
		const struct extender_text *t = &args.nodes[i].text;

		assert(args.nodes[i].name);
		assert(!args.full || (t->at >= text && t->at + t->len <= text + len));
	}
	extender_args_fini(&args);
}

static void check_preemption(const char *text, size_t len)
{
	struct extender_preemption p, again;
	char field[EXTENDER_FIELD_MAX];
	struct error error = {""};
	struct buf out = BUF_INIT;

	if (extender_preemption_parse(text, len, &p, field, &error)) {
		assert(error.text[0] && strlen(field) < sizeof(field));
		return;
	}
	extender_write_preemption_result(&out, p.meta.of, p.meta.count);
	out.len--;
	buf_add_str(&out, ",\"Pod\":{}}");
	assert(extender_preemption_parse(out.data, out.len, &again, field, &error) == 0);
	assert(again.meta.count == p.meta.count);
	for (size_t i = 0; i < p.meta.count; i++)
		assert(again.meta.of[i].count == p.meta.of[i].count);
	extender_preemption_fini(&again);
	extender_preemption_fini(&p);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_alloc(size + 1);

	if (!ctx.views)
		start();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check_args(text, size);
	check_preemption(text, size);
	check_answer("/extender/filter", text, size);
	check_answer("/extender/prioritize", text, size);
	free(text);
	return 0;
}
