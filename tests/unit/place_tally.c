/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/place/place_internal.h"

enum { DOMAINS_MAX = 5000, STEPS = 40000 };

/* Against an array, which is what it stands for. */
static void check_against_array(uint32_t domains, uint32_t used)
{
	static uint32_t want[DOMAINS_MAX];
	struct place_tally t = {0};
	uint64_t seed = domains;

	memset(want, 0, sizeof(want));
	for (int i = 0; i < STEPS; i++) {
		uint32_t d;
		int by;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		/* Where pods are wanders through the domains. */
		d = ((uint32_t)(seed >> 33) % used + (uint32_t)i / 16) % domains;
		by = want[d] > 0 && (seed >> 62) ? -1 : 1;
		want[d] += (uint32_t)by;
		assert_int_equal(place_tally_add(&t, d, by), want[d]);
	}
	for (uint32_t d = 0; d < domains; d++)
		assert_int_equal(place_tally_get(&t, d), want[d]);
	assert_true(t.room <= 8 * domains);
	free(t.of);
}

static void counts_what_an_array_counts(void **state)
{
	(void)state;
	check_against_array(1, 1);
	check_against_array(64, 64);
	check_against_array(65, 65);
	check_against_array(DOMAINS_MAX, 3);
	check_against_array(DOMAINS_MAX, 200);
	check_against_array(DOMAINS_MAX, DOMAINS_MAX);
}

/* One that wanders does not leave its whole way behind. */
static void what_fell_to_nothing_is_forgotten(void **state)
{
	struct place_tally t = {0};

	(void)state;
	assert_int_equal(place_tally_get(&t, 7), 0);
	for (uint32_t d = 0; d < DOMAINS_MAX; d++) {
		assert_int_equal(place_tally_add(&t, d, 1), 1);
		assert_int_equal(place_tally_add(&t, d, -1), 0);
	}
	assert_true(t.room <= 16);
	free(t.of);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_what_an_array_counts),
		cmocka_unit_test(what_fell_to_nothing_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
