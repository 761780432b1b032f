/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's files cannot be read for a while: nothing is invented, nothing is lost. */
#include "tests/account_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/near.h"

/* One second: the unit uses 100 ms of CPU, and 200 ms are used outside of all cgroups. */
static void second(struct world *w)
{
	static uint64_t busy_ns = WORLD_S;

	world_use(w, "/a.service", 100 * WORLD_MS);
	busy_ns += 300 * WORLD_MS;
	if (!w->machine.stale)
		w->machine.cpu_busy_ns = busy_ns;
	world_tick(w, WORLD_S, true);
}

static double publish(struct world *w, struct usage *node)
{
	struct interval *i = world_publish(w);
	double total = world_total(&i->node.usage);

	*node = i->node.usage;
	interval_free(i);
	return total;
}

static void test_a_stale_machine(void **state)
{
	static const char *const paths[] = {"/a.service", NULL};
	struct world *w = *state;
	struct usage node;
	double total;

	world_start(w, paths);
	w->machine.cpu_busy_ns = WORLD_S;
	world_use(w, "/a.service", 0);
	world_tick(w, 0, true);
	for (int i = 0; i < 5; i++)
		second(w);
	total = publish(w, &node);
	assert_true(node.have & USAGE_MEMORY);
	w->machine.stale = true;
	for (int i = 0; i < 5; i++)
		second(w);
	total += publish(w, &node);
	/*
	 * What is outside of the cgroups is taken to go on as before; old memory is not passed off
	 * as new.
	 */
	assert_near(total, 3000);
	assert_false(node.have & USAGE_MEMORY);
	w->machine.stale = false;
	for (int i = 0; i < 5; i++)
		second(w);
	total += publish(w, &node);
	assert_near(total, 4500);
	assert_true(node.have & USAGE_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_stale_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
