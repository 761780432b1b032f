/* SPDX-License-Identifier: Apache-2.0 */
/* New views are prefetched while schedulers ask for scores, and only then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/api/prefetcher.h"
#include "aggregator/policy/score/score_rows.h"
#include "shared/clock.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

enum { TIMEOUT_S = 60 };

static struct view_slot *views;
static struct prefetcher *prefetcher;

static int setup(void **state)
{
	struct error error;

	(void)state;
	views = view_slot_new();
	return prefetcher_start(&prefetcher, views, &error);
}

static int teardown(void **state)
{
	(void)state;
	prefetcher_stop(prefetcher);
	view_slot_free(views);
	return 0;
}

/* Makes nothing, and so the next who asks is asked to make it, too. */
static struct view_cached *make_nothing(const struct view *v, const struct view_cached *before)
{
	(void)v, (void)before;
	return NULL;
}

static bool is_cached(struct view *v, enum view_cache_kind kind)
{
	return view_cache_get(v, kind, make_nothing);
}

static bool is_prefetched(void *view)
{
	return is_cached(view, VIEW_CACHE_SCORES) && is_cached(view, VIEW_CACHE_NAMES);
}

/* The caller's to drop. */
static struct view *publish(int64_t now_ns)
{
	view_slot_publish(views, view_fixture_new());
	prefetcher_published(prefetcher, now_ns);
	return view_slot_take(views);
}

static void views_are_prefetched_while_nodes_are_scored(void **state)
{
	(void)state;
	prefetcher_asked(prefetcher, NOW);
	for (int second = 0; second <= 60; second += 20) {
		struct view *v = publish(NOW + second * NS_PER_SEC);

		assert_true(await(is_prefetched, v, TIMEOUT_S));
		view_drop(v);
	}
}

/* What is due is made before the thread ends: what is not made then was not due. */
static void nobody_asks_and_nothing_is_made(void **state)
{
	struct view *never, *late, *stopped;

	(void)state;
	never = publish(NOW);
	prefetcher_asked(prefetcher, NOW);
	late = publish(NOW + 60 * NS_PER_SEC + 1);
	prefetcher_stop(prefetcher);
	prefetcher = NULL;
	assert_false(is_cached(never, VIEW_CACHE_SCORES));
	assert_false(is_cached(late, VIEW_CACHE_SCORES));
	stopped = publish(NOW);
	assert_false(is_cached(stopped, VIEW_CACHE_SCORES));
	view_drop(never);
	view_drop(late);
	view_drop(stopped);
}

static void nothing_is_done_without_one(void **state)
{
	(void)state;
	prefetcher_asked(NULL, NOW);
	prefetcher_published(NULL, NOW);
	prefetcher_stop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(views_are_prefetched_while_nodes_are_scored, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nobody_asks_and_nothing_is_made, setup, teardown),
		cmocka_unit_test(nothing_is_done_without_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
