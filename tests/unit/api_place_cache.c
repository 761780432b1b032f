/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/planner/place_cache.h"
#include "shared/clock.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

static struct place_fixture f;
static struct place_cache *cache;
static atomic_int built, freed; /* cores */

/* The linker makes these names. NOLINTBEGIN(bugprone-reserved-identifier) */
struct place *__real_place_new(struct view *v, const struct place_options *o);
struct place *__wrap_place_new(struct view *v, const struct place_options *o);
void __real_place_free(struct place *p);
void __wrap_place_free(struct place *p);

struct place *__wrap_place_new(struct view *v, const struct place_options *o)
{
	built++;
	return __real_place_new(v, o);
}

void __wrap_place_free(struct place *p)
{
	freed += p != NULL;
	__real_place_free(p);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	place_fixture_node(&f, "a", "", "");
	place_fixture_pod(&f, "web", "a", "", "");
	cache = place_cache_new();
	built = freed = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_cache_free(cache);
	place_fixture_fini(&f);
	return 0;
}

static struct place *take(int64_t now_ns)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
	struct place *p = place_cache_take(cache, v, now_ns);

	view_drop(v);
	return p;
}

static void what_was_given_back_is_taken_again(void **state)
{
	(void)state;
	place_cache_give(cache, take(NOW));
	place_cache_give(cache, take(NOW + NS_PER_SEC));
	assert_int_equal(built, 1);
}

static void two_at_once_are_two(void **state)
{
	struct place *one, *two, *again;

	(void)state;
	one = take(NOW);
	two = take(NOW + 1);
	assert_ptr_not_equal(one, two);
	place_cache_give(cache, one);
	place_cache_give(cache, two);
	/* The one that was taken last has the least to catch up with. */
	again = take(NOW + 2);
	assert_ptr_equal(again, two);
	place_cache_give(cache, again);
}

static void what_was_changed_is_undone_for_the_next(void **state)
{
	struct place *p;

	(void)state;
	p = take(NOW);
	place_take(p, place_find_pod(p, "default", "web"));
	place_remove_node(p, 0);
	place_cache_give(cache, p);
	p = take(NOW);
	assert_int_equal(place_where(p, place_find_pod(p, "default", "web")), 0);
	assert_int_not_equal(place_check(p, place_find_pod(p, "default", "web"), 0), PLACE_GONE);
	place_cache_give(cache, p);
}

static void a_core_follows_newer_views_and_older_ones(void **state)
{
	struct view *old = place_fixture_view(&f, NULL, 0);
	struct place *p;

	(void)state;
	place_cache_give(cache, place_cache_take(cache, old, NOW));
	place_fixture_pod(&f, "late", "a", "", "");
	place_fixture_node(&f, "b", "", "");
	p = take(NOW);
	assert_int_equal(place_node_count(p), 2);
	assert_int_not_equal(place_find_pod(p, "default", "late"), PLACE_NONE);
	place_cache_give(cache, p);
	p = place_cache_take(cache, old, NOW);
	assert_int_equal(place_node_count(p), 1);
	assert_int_equal(place_find_pod(p, "default", "late"), PLACE_NONE);
	place_cache_give(cache, p);
	view_drop(old);
}

static void idle_cores_are_let_go(void **state)
{
	struct place *p, *kept;

	(void)state;
	place_cache_give(cache, take(NOW));
	place_cache_tidy(cache, NOW + 600 * NS_PER_SEC);
	p = take(NOW + 600 * NS_PER_SEC);
	assert_int_equal(built, 1);
	/* One that is taken stays, however long that is. */
	kept = take(NOW + 600 * NS_PER_SEC);
	place_cache_give(cache, p);
	place_cache_tidy(cache, NOW + 1201 * NS_PER_SEC);
	assert_int_equal(built, 2);
	assert_int_equal(freed, 1);
	place_check(kept, place_find_pod(kept, "default", "web"), 0);
	place_cache_give(cache, kept);
	place_cache_give(cache, take(NOW + 5000 * NS_PER_SEC));
	assert_int_equal(built, 3);
	assert_int_equal(freed, 2);
	place_cache_tidy(NULL, NOW);
}

static void without_a_pool_everybody_builds(void **state)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
	struct place *p = place_cache_take(NULL, v, NOW);

	(void)state;
	assert_int_equal(place_node_count(p), 1);
	place_cache_give(NULL, p);
	view_drop(v);
}

enum { THREADS = 4, ROUNDS = 200 };

static struct view *views[2];
static atomic_int busy, most, wrong;

static void *hammer(void *arg)
{
	size_t at = *(const size_t *)arg;

	for (size_t i = 0; i < ROUNDS; i++) {
		struct view *v = views[(i + at) % 2];
		struct place *p = place_cache_take(cache, v, NOW);
		int now = atomic_fetch_add(&busy, 1) + 1, seen = atomic_load(&most);

		while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
			;
		/* Whoever else had it, now it is of this view, and nobody moves the pod but us. */
		if (place_node_count(p) != v->node_count)
			atomic_fetch_add(&wrong, 1);
		place_take(p, place_find_pod(p, "default", "web"));
		if (place_where(p, place_find_pod(p, "default", "web")) != PLACE_NONE)
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_sub(&busy, 1);
		place_cache_give(cache, p);
	}
	return NULL;
}

static void threads_never_share_a_core(void **state)
{
	pthread_t threads[THREADS];
	size_t places[THREADS];

	(void)state;
	views[0] = place_fixture_view(&f, NULL, 0);
	place_fixture_node(&f, "b", "", "");
	views[1] = place_fixture_view(&f, NULL, 0);
	for (size_t i = 0; i < THREADS; i++) {
		places[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, &places[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_in_range(atomic_load(&most), 1, PLACE_CACHE_MAX);
	view_drop(views[0]);
	view_drop(views[1]);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(what_was_given_back_is_taken_again),
		test(two_at_once_are_two),
		test(what_was_changed_is_undone_for_the_next),
		test(a_core_follows_newer_views_and_older_ones),
		test(idle_cores_are_let_go),
		test(without_a_pool_everybody_builds),
		test(threads_never_share_a_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
