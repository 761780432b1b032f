/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that evenkeel prints, carried out as people do: by sh, with the kubectl of the control
 * plane, while the test does as kubelets would.
 */
#pragma once

#include <stdbool.h>

#include "shared/buf.h"
#include "tests/kube_drain_world.h"

/* Runs evenkeel with words that end with NULL; what it prints replaces *out. Its exit status. */
int kube_drain_cli(const struct kube_drain_world *w, const char *const *words, struct buf *out);

/* A script and what happens while it runs. */
struct kube_drain_script {
	struct kube_drain_world *world; /* borrowed, as the text */
	const char *text;
	/* Gets every look until the world is settled; NULL: nobody does. */
	void (*seen)(void *ctx, const struct kube_drain_look *look);
	void *ctx;
	struct buf *said; /* replaced by what the commands print; NULL: nobody reads it */
};

/*
 * Runs `sh -e` with the script, and awaits that the world is settled (kube_drain_world_is_settled());
 * the last look is the caller's. The test fails, with what the commands printed, where one of them
 * fails.
 */
void kube_drain_run(const struct kube_drain_script *s, struct kube_drain_look *out);

/*
 * Looks anew until the aggregator has every pod of the look, and budgets count them, and then
 * awaits a plan of that, which the caller deletes: GET /v1/drain?explain=true. How long nodes are
 * unneeded is known to it.
 */
cJSON *kube_drain_await_plan(struct kube_drain_world *w, struct kube_drain_look *look);
