/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/mem.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/seam_work.h"

int seam_work_setup(void **state)
{
	struct seam_work *w = mem_zalloc(1, sizeof(*w));

	if (undisturbed_open(&w->u))
		return -1;
	w->aggregator = seam_open(w->u.stack->folder, "aggregator");
	w->agent = seam_open(w->u.stack->folder, "agent");
	*state = w;
	return 0;
}

int seam_work_teardown(void **state)
{
	struct seam_work *w = *state;

	undisturbed_close(&w->u);
	seam_close(w->aggregator);
	seam_close(w->agent);
	free(w);
	return 0;
}

void seam_work_start_disturbed(struct seam_work *w)
{
	seam_enter(w->aggregator);
	stack_start_aggregator(w->u.stack, DISTURBED);
	seam_enter(NULL);
}

void seam_work_start_aggregators(struct seam_work *w)
{
	seam_work_start_disturbed(w);
	stack_start_aggregator(w->u.stack, UNDISTURBED);
}

void seam_work_start_agent(struct seam_work *w)
{
	seam_enter(w->agent);
	stack_start_agent(w->u.stack, 2, (const char *[]){"--interval", "1s", NULL});
	seam_enter(NULL);
}

double seam_work_frames(const struct seam_work *w, int aggregator, const char *result)
{
	char sample[80];

	snprintf(sample, sizeof(sample), "evenkeel_frames_total{result=\"%s\"}", result);
	return stack_metric(w->u.stack, aggregator, sample);
}

struct count {
	const struct seam_work *work;
	double wanted;
};

static bool has_applied(void *ctx)
{
	const struct count *c = ctx;

	return seam_work_frames(c->work, DISTURBED, "applied") >= c->wanted;
}

void seam_work_await_applied(struct seam_work *w, double count)
{
	struct count c = {w, count};

	if (!await(has_applied, &c, SEAM_WORK_TIMEOUT_S))
		fail_msg("%g frames were applied, not %g",
			 seam_work_frames(w, DISTURBED, "applied"), count);
}

void seam_work_expect_none_refused(const struct seam_work *w, int aggregator)
{
	frame_account_expect_whole(w->u.stack, aggregator);
}

void seam_work_expect_equal(const struct seam_work *w)
{
	assert_true(undisturbed_equal(&w->u, "/v1/nodes?node=test-node", SEAM_WORK_TIMEOUT_S));
	assert_true(undisturbed_equal(&w->u, "/v1/pods?node=test-node", SEAM_WORK_TIMEOUT_S));
}

bool seam_meeting_is_met(void *meeting)
{
	const struct seam_meeting *m = meeting;
	struct buf body = BUF_INIT;

	if (m->ask) {
		char *url = mem_printf("http://127.0.0.1:%d/v1/nodes",
				       m->work->u.stack->aggregators[DISTURBED].http_port);

		/* This one may be the one that fails. */
		http_get(url, &body);
		free(url);
	}
	buf_fini(&body);
	return seam_met(m->seam, m->call) >= m->times;
}

bool seam_work_is_ready(void *work)
{
	const struct seam_work *w = work;
	cJSON *json = stack_get(w->u.stack, DISTURBED, "/v1/nodes");
	bool yes = json != NULL;

	cJSON_Delete(json);
	return yes;
}
