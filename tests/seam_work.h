/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons at work, of which some have a seam: an aggregator that is to be disturbed, one that is
 * not, and an agent that tells both what it measures.
 */
#pragma once

#include "tests/seam.h"
#include "tests/undisturbed.h"

enum { SEAM_WORK_TIMEOUT_S = 60 };

struct seam_work {
	struct undisturbed u;
	struct seam *aggregator, *agent; /* the disturbed one's, and the agent's */
};

/* Setup and teardown of a test of cmocka: *state is a struct seam_work, in which nothing runs. */
int seam_work_setup(void **state);
int seam_work_teardown(void **state);

void seam_work_start_aggregators(struct seam_work *w);
void seam_work_start_disturbed(struct seam_work *w); /* again, as it was */
void seam_work_start_agent(struct seam_work *w); /* an interval a second */

/* Frames that came to that aggregator and had that result. */
double seam_work_frames(const struct seam_work *w, int aggregator, const char *result);
/* The disturbed one's. These assert, as all below. */
void seam_work_await_applied(struct seam_work *w, double count);
void seam_work_expect_none_refused(const struct seam_work *w, int aggregator);
/* What both say of the agent's node and its pods. */
void seam_work_expect_equal(const struct seam_work *w);

/* Awaited: that so many calls failed. */
struct seam_meeting {
	const struct seam_work *work;
	struct seam *seam;
	enum seam_call call;
	int64_t times;
	bool ask; /* the aggregator, to keep its callers coming */
};

bool seam_meeting_is_met(void *meeting);
/* The disturbed aggregator answers. */
bool seam_work_is_ready(void *work);
