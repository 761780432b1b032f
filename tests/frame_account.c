/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/frame_account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/fleet/load.h"
#include "tests/process.h"

static const char *const names[] = {
#define X(result) [FRAME_RESULT_##result] = "evenkeel_frames_total{result=\"" #result "\"} ",
	FRAME_RESULTS(X)
#undef X
};

/* What a line of /metrics says, if it begins with the name and a space. */
static void take(const char *line, const char *name, double *value)
{
	size_t len = strlen(name);

	if (!strncmp(line, name, len))
		*value = strtod(line + len, NULL);
}

struct frame_account frame_account_of(const struct stack *s, int aggregator)
{
	char *url = mem_printf("http://127.0.0.1:%d/metrics", s->aggregators[aggregator].http_port);
	struct frame_account a = {0};
	struct buf body = BUF_INIT;

	http_get(url, &body);
	for (const char *line = body.data; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		for (size_t i = 0; i < FRAME_RESULT_COUNT; i++)
			take(line, names[i], &a.frames[i]);
		take(line, "evenkeel_intervals_merged_total ", &a.merged);
		take(line, "evenkeel_intervals_missing_total ", &a.missing);
		take(line, "evenkeel_store_lost_intervals_total ", &a.lost);
	}
	free(url);
	buf_fini(&body);
	return a;
}

static bool is_in_order(size_t result)
{
	return result == FRAME_RESULT_applied || result == FRAME_RESULT_part ||
	       result == FRAME_RESULT_duplicate || result == FRAME_RESULT_need_full;
}

double frame_account_heard(const struct frame_account *a)
{
	double sum = 0;

	for (size_t i = 0; i < FRAME_RESULT_COUNT; i++)
		sum += is_in_order(i) ? a->frames[i] : 0;
	return sum;
}

void frame_account_expect_none_refused(const struct stack *s, int aggregator)
{
	struct frame_account a = frame_account_of(s, aggregator);

	assert_true(frame_account_heard(&a) > 0);
	for (size_t i = 0; i < FRAME_RESULT_COUNT; i++) {
		if (is_in_order(i) || i == FRAME_RESULT_exchange || a.frames[i] == 0)
			continue;
		stack_print_logs(s);
		fail_msg("aggregator %d: %s%g", aggregator, names[i], a.frames[i]);
	}
}

void frame_account_expect_whole(const struct stack *s, int aggregator)
{
	struct frame_account a = frame_account_of(s, aggregator);

	frame_account_expect_none_refused(s, aggregator);
	if (a.merged || a.missing || a.lost)
		fail_msg("aggregator %d: %g intervals merged, %g missing, %g lost", aggregator,
			 a.merged, a.missing, a.lost);
}

void frame_account_expect_frames(const cJSON *report, double heard, double uncounted)
{
	double sent = load_number(report, "frames.sent"),
	       again = load_number(report, "frames.again");

	print_message("%.0f frames sent, %.0f of them again; %.0f not heard, of which up to %.0f "
		      "uncounted\n",
		      sent, again, sent - heard, uncounted);
	assert_true(sent >= heard);
	assert_true(sent - heard <= again + uncounted);
}
