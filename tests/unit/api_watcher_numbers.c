/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of /watcher as the Go client's decoder reads them.
 * tests/vectors/scoring/load_watcher.json lists literals that decoder loses or misreads; they are
 * no part of what the encoder may write, whatever the values are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "aggregator/api/watcher_encode.h"
#include "shared/mem.h"
#include "tests/sanitized.h"

enum { VALUES = RANDOM_CASES(1000000), BATCH = 1000, DIGITS_MOST = 17, DECIMALS_MOST = 6 };

/*
 * Fixed notation, at most 6 decimals, and few enough digits for its 64 bits, in which it collects
 * all of them.
 */
static bool is_safe(const char *text, size_t len)
{
	size_t whole = 0, decimals = 0;

	while (whole < len && isdigit((unsigned char)text[whole]))
		whole++;
	if (whole == 0 || (whole > 1 && text[0] == '0'))
		return false;
	if (whole == len)
		return whole <= DIGITS_MOST;
	if (text[whole] != '.')
		return false;
	while (whole + 1 + decimals < len && isdigit((unsigned char)text[whole + 1 + decimals]))
		decimals++;
	return decimals > 0 && decimals <= DECIMALS_MOST && whole + 1 + decimals == len &&
	       whole + decimals <= DIGITS_MOST;
}

static char *read_vectors(void)
{
	FILE *file = fopen("tests/vectors/scoring/load_watcher.json", "rb");
	struct buf text = BUF_INIT;
	size_t got;

	assert_non_null(file);
	do {
		got = fread(buf_reserve(&text, 65536), 1, 65536, file);
		text.len += got;
	} while (got > 0);
	fclose(file);
	buf_add_char(&text, '\0');
	return buf_take(&text, &got);
}

/*
 * Every literal that is lost, or read as another number than it says, has a form that is_safe()
 * refuses.
 */
static void test_lost_and_wrong_forms(void **state)
{
	char *text = read_vectors();
	cJSON *tree = cJSON_Parse(text);
	const cJSON *c;
	int bad = 0;

	(void)state;
	cJSON_ArrayForEach (c, cJSON_GetObjectItem(tree, "cases")) {
		const char *kind = cJSON_GetStringValue(cJSON_GetObjectItem(c, "kind"));
		const char *literal = cJSON_GetStringValue(
			cJSON_GetObjectItem(cJSON_GetObjectItem(c, "input"), "value_literal"));
		const cJSON *value = cJSON_GetObjectItem(cJSON_GetObjectItem(c, "expect"), "value");
		double said;

		if (strcmp(kind, "decode_value") != 0)
			continue;
		assert_non_null(literal);
		said = strtod(literal, NULL);
		if (cJSON_IsNumber(value) && fabs(value->valuedouble - said) <= 1e-12 * fabs(said))
			continue;
		bad++;
		if (is_safe(literal, strlen(literal)))
			fail_msg("%s would be written", literal);
	}
	assert_true(bad >= 5);
	assert_true(is_safe("12.000001", 9) && is_safe("0", 1) && is_safe("1000000000", 10));
	cJSON_Delete(tree);
	free(text);
}

static uint64_t random_bits(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Percentages, and now and then anything a double can be. */
static double random_value(uint64_t *seed)
{
	uint64_t bits = random_bits(seed);
	double unit = (double)(bits >> 11) * 0x1p-53, any;

	memcpy(&any, &bits, sizeof(any));
	switch (random_bits(seed) % 6) {
	case 0:
		return any;
	case 1:
		return unit * pow(10, (double)(random_bits(seed) % 40) - 20);
	case 2:
		return nextafter(round(unit * 1e4) / 100, unit > 0.5 ? INFINITY : -INFINITY);
	default:
		return unit * 130;
	}
}

/* Checks the literal after each "value":; returns how many there were. */
static size_t check_literals(const char *json, const double *expected)
{
	static const char key[] = "\"value\":";
	size_t count = 0;

	/* strstr() of a sanitizer reads all that follows, each time. */
	for (const char *at = json; (at = strchr(at, '"')); at++) {
		double want, got;
		size_t len;

		if (strncmp(at, key, strlen(key)) != 0)
			continue;
		at += strlen(key);
		len = strcspn(at, ",}");
		want = expected[count++];
		got = strtod(at, NULL);
		if (!is_safe(at, len) || !(fabs(got - want) <= 5.1e-7 + 1e-15 * want))
			fail_msg("%.17g is written as %.*s", want, (int)len, at);
	}
	return count;
}

static void test_random_values(void **state)
{
	struct watcher_metric *metrics = mem_zalloc(BATCH, sizeof(*metrics));
	double *expected = mem_zalloc(BATCH, sizeof(*expected));
	struct watcher_node node = {.name = "n", .metrics = metrics, .metric_count = BATCH};
	struct watcher_answer answer = {
		.duration = "15m", .source = "s", .nodes = &node, .node_count = 1};
	uint64_t seed = 88172645463325252;
	struct buf out = BUF_INIT;

	(void)state;
	for (int done = 0; done < VALUES; done += BATCH) {
		size_t finite = 0;

		for (int i = 0; i < BATCH; i++) {
			double value = random_value(&seed);

			metrics[i] = (struct watcher_metric){"h", "CPU", "AVG", "15m", value};
			/* watcher_encode.h: below 1e-4 is 0, and 1e9 is the most. */
			if (isfinite(value))
				expected[finite++] = value < 1e-4 ? 0 : fmin(value, 1e9);
		}
		buf_clear(&out);
		watcher_encode(&answer, &out);
		assert_int_equal(check_literals(out.data, expected), finite);
	}
	buf_fini(&out);
	free(metrics);
	free(expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_and_wrong_forms),
		cmocka_unit_test(test_random_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
