/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: alignment, order, what gives way on a narrow terminal, and that no cell can steer the
 * terminal.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "shared/table.h"

static const struct table_style plain = {.headers = true};

static void add(struct table *t, const char *name, const char *cpu, const char *node, double key)
{
	table_row(t, name);
	table_key(t, key);
	table_cell(t, PAINT_PLAIN, name);
	table_cell(t, PAINT_WARN, cpu);
	if (node)
		table_cell(t, PAINT_PLAIN, node);
}

static struct table *sample(void)
{
	struct table *t = table_new();

	table_column(t, "NAME", FORM_NAME);
	table_column(t, "CPU", FORM_RIGHT);
	table_column(t, "NODE", FORM_NAME);
	add(t, "zeta", "9.5m", "n1", 9.5);
	add(t, "über-lange-ähre-x7f9k", "1.25", "node-two", 1250);
	add(t, "alpha", "-", NULL, NAN);
	add(t, "beta", "-", "n1", NAN);
	return t;
}

static void check(const struct table *t, const struct table_style *style, const char *want)
{
	struct buf got = BUF_INIT;

	table_print(t, style, &got);
	assert_string_equal(got.data ? got.data : "", want);
	buf_fini(&got);
}

static void aligns_columns(void **state)
{
	struct table *t = sample();
	(void)state;

	check(t, &plain,
	      "NAME                    CPU  NODE\n"
	      "zeta                   9.5m  n1\n"
	      "über-lange-ähre-x7f9k  1.25  node-two\n"
	      "alpha                     -  -\n"
	      "beta                      -  n1\n");
	table_free(t);
}

static void sorts_greatest_first_and_unknown_last(void **state)
{
	struct table_style style = {.headers = false};
	struct table *t = sample();
	(void)state;

	table_sort(t, false);
	table_limit(t, 3);
	check(t, &style,
	      "über-lange-ähre-x7f9k  1.25  node-two\n"
	      "zeta                   9.5m  n1\n"
	      "alpha                     -  -\n");
	table_free(t);
}

static void turns_the_order_round(void **state)
{
	struct table_style style = {.headers = false};
	struct table *t = sample();
	(void)state;

	table_sort(t, true);
	check(t, &style,
	      "zeta                   9.5m  n1\n"
	      "über-lange-ähre-x7f9k  1.25  node-two\n"
	      "beta                      -  n1\n"
	      "alpha                     -  -\n");
	table_free(t);
}

static void shortens_names_to_the_terminal(void **state)
{
	struct table_style style = {.headers = true, .width = 26};
	struct table *t = sample();
	(void)state;

	check(t, &style,
	      "NAME         CPU  NODE\n"
	      "zeta        9.5m  n1\n"
	      "über-…7f9k  1.25  node-two\n"
	      "alpha          -  -\n"
	      "beta           -  n1\n");
	/* Then columns that are no names, and never a number in part. */
	style.width = 23;
	check(t, &style,
	      "NAME           NODE\n"
	      "zeta           n1\n"
	      "über-l…-x7f9k  node-two\n"
	      "alpha          -\n"
	      "beta           n1\n");
	style.width = 7;
	check(t, &style, "NAME  …\nzeta  …\nüber…f…\nalpha …\nbeta  …\n");
	table_free(t);
}

static void leaves_names_whole_where_nothing_helps(void **state)
{
	struct table_style style = {.whole = true, .width = 18};
	struct table *t = table_new();
	(void)state;

	table_column(t, "N", FORM_NAME);
	table_column(t, "A", FORM_RIGHT);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "abcdefghijklmnop");
	table_cell(t, PAINT_PLAIN, "12345678");
	check(t, &style, "abcd…nop  12345678\n");
	style.width = 17;
	check(t, &style, "abcdefghijklmnop  12345678\n");
	style.whole = false;
	check(t, &style, "abcdefghijklmnop\n");
	table_free(t);
}

static void keeps_what_differs(void **state)
{
	struct table_style style = {.width = 21};
	struct table *t = table_new();
	(void)state;

	table_column(t, "", FORM_NAME);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "ip-10-0-1-37.eu-central-1.internal");
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "ip-10-0-2-37.eu-central-1.internal");
	check(t, &style, "ip-10-0-1-37.eu-cent…\nip-10-0-2-37.eu-cent…\n");
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "short");
	check(t, &style, "ip-10-0-1-…1.internal\nip-10-0-2-…1.internal\nshort\n");
	table_limit(t, 0);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "system.slice/first.service");
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "system.slice/second.service");
	check(t, &style, "….slice/first.service\n…slice/second.service\n");
	table_free(t);
}

/* Not even where names begin and end alike. */
static void never_prints_two_names_alike(void **state)
{
	static const char *const names[] = {"analytics/Deployment/cart-api",
					    "analytics/Deployment/cart-web",
					    "billing/Deployment/cart-api",
					    "analytics/Job/cart-api"};
	struct table_style style = {.headers = true, .width = 24};
	struct table *t = table_new();
	(void)state;

	table_column(t, "CLASS", FORM_NAME);
	table_column(t, "SLOTS", FORM_RIGHT);
	table_column(t, "STATE", FORM_LEFT);
	for (size_t i = 0; i < 4; i++) {
		table_row(t, names[i]);
		table_cell(t, PAINT_PLAIN, names[i]);
		table_cell(t, PAINT_PLAIN, "16+");
		table_cell(t, PAINT_PLAIN, "nothing fits at all");
	}
	check(t, &style,
	      "CLASS\n"
	      "analytics/De…nt/cart-api\n"
	      "analytics/De…nt/cart-web\n"
	      "billing/Depl…nt/cart-api\n"
	      "analytics/Job/cart-api\n");
	table_free(t);
}

static void shortens_texts_before_names(void **state)
{
	struct table_style style = {.headers = true, .width = 34};
	struct table *t = table_new();
	(void)state;

	table_column(t, "A-LONG-TITLE-STAYS", FORM_NAME);
	table_column(t, "WHY", FORM_LEFT);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "node-1");
	table_cell(t, PAINT_PLAIN, "its pods need room that is not there");
	check(t, &style,
	      "A-LONG-TITLE-STAYS  WHY\n"
	      "node-1              its pods need…\n");
	table_free(t);
}

static void cuts_lines_with_their_colours(void **state)
{
	static const struct {
		const char *line;
		size_t width;
		const char *want;
	} cases[] = {
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"äöüß", 4, "äöüß"},
		{"äöüß", 2, "ä…"},
		{"\033[31mabc\033[0m", 3, "\033[31mabc\033[0m"},
		{"\033[31mabc\033[0m d", 3, "\033[31mab…\033[0m"},
		{"\033[1", 3, "\033[1"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = BUF_INIT;

		buf_add_str(&out, "");
		table_add_cut(&out, cases[i].line, strlen(cases[i].line), cases[i].width);
		assert_string_equal(out.data, cases[i].want);
		buf_fini(&out);
	}
}

enum { RANDOM_ROWS = 12 };

static unsigned int draw(uint64_t *random, unsigned int below)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(*random >> 40) % below;
}

/* Names of one length that differ here and there. */
static struct table *random_table(uint64_t *random, size_t length)
{
	struct table *t = table_new();
	unsigned int at = draw(random, (unsigned int)length);

	table_column(t, "NAMESPACE", FORM_NAME);
	for (unsigned int i = 0; i < 1 + draw(random, 8); i++) {
		table_column(t, "SOME%", i % 3 == 2 ? FORM_LEFT : FORM_RIGHT);
		if (draw(random, 2))
			table_spare(t, i + 1, i + 1);
	}
	for (int i = 0; i < RANDOM_ROWS; i++) {
		char name[64];

		memset(name, 'x', length);
		name[length] = '\0';
		name[at] = (char)('a' + draw(random, 10));
		name[draw(random, 3) ? length - 1 : 0] = (char)('a' + draw(random, 4));
		table_row(t, name);
		table_cell(t, PAINT_BAD, name);
	}
	return t;
}

struct names {
	const char *of[RANDOM_ROWS];
	size_t count;
};

static void note_name(void *context, const char *name)
{
	struct names *names = context;

	names->of[names->count++] = name;
}

static void check_lines(const struct buf *text, size_t width, size_t different)
{
	char seen[RANDOM_ROWS + 1][128];
	size_t count = 0;

	for (const char *at = text->data, *end; (end = strchr(at, '\n')); at = end + 1) {
		size_t columns = 0, len = strcspn(at, " \n"), i = 0;

		for (const char *p = at; p < end; p++)
			columns += ((unsigned char)*p & 0xc0) != 0x80;
		if (columns > width)
			fail_msg("%zu columns, and %zu are there:\n%s", columns, width, text->data);
		while (i < count && (strlen(seen[i]) != len || strncmp(seen[i], at, len) != 0))
			i++;
		if (i == count)
			snprintf(seen[count++], sizeof(seen[0]), "%.*s", (int)len, at);
	}
	if (different && count != different + 1)
		fail_msg("%zu names as %zu, at %zu columns:\n%s", different, count - 1, width,
			 text->data);
}

/* Whatever the terminal: lines end within it, and a name that fits is like no other. */
static void fits_any_terminal(void **state)
{
	uint64_t random = 16;
	(void)state;

	for (int round = 0; round < 400; round++) {
		size_t length = 10 + draw(&random, 45);
		struct table *t = random_table(&random, length);
		struct names names = {.count = 0};

		table_each_name(t, note_name, &names);
		for (size_t width = 3; width < 120; width += 1 + draw(&random, 9)) {
			struct table_style style = {.headers = true, .width = width};
			struct buf text = BUF_INIT;

			table_print(t, &style, &text);
			check_lines(&text, width, width > length ? names.count : 0);
			buf_fini(&text);
		}
		table_free(t);
	}
}

static void leaves_out_spare_columns_before_short_names(void **state)
{
	struct table_style style = {.width = 30};
	struct table *t = table_new();
	(void)state;

	table_column(t, "N", FORM_NAME);
	table_column(t, "AAAAA", FORM_RIGHT);
	table_column(t, "BBBBB", FORM_RIGHT);
	table_spare(t, 2, 1);
	table_spare(t, 1, 2);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "abcdefghijklmnopqrstuvwxyz");
	table_cell(t, PAINT_PLAIN, "1");
	table_cell(t, PAINT_PLAIN, "2");
	check(t, &style, "abcdefghijklmnopqrstuvwxyz  1\n");
	style.headers = true;
	check(t, &style, "N\nabcdefghijklmnopqrstuvwxyz\n");
	style.width = 25;
	check(t, &style, "N\nabcdefghijkl…opqrstuvwxyz\n");
	style.width = 10;
	check(t, &style, "N\nabcde…wxyz\n");
	style.width = 0;
	check(t, &style,
	      "N                           AAAAA  BBBBB\nabcdefghijklmnopqrstuvwxyz      1      "
	      "2\n");
	table_free(t);
}

static void hides_columns(void **state)
{
	struct table *t = sample();
	(void)state;

	table_hide(t, 2);
	table_hide(t, 0);
	table_limit(t, 1);
	check(t, &plain, " CPU\n9.5m\n");
	table_free(t);
}

static void tells_what_a_column_holds(void **state)
{
	static const char *const empty[] = {"-", "none", NULL};
	struct table *t = table_new();
	(void)state;

	table_column(t, "A", FORM_LEFT);
	table_column(t, "B", FORM_LEFT);
	assert_true(table_holds_only(t, 0, empty));
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "none");
	table_row(t, "");
	assert_true(table_holds_only(t, 0, empty));
	assert_true(table_holds_only(t, 1, empty)); /* what has no cell prints as "-" */
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "-");
	table_cell(t, PAINT_PLAIN, "n");
	assert_true(table_holds_only(t, 0, empty));
	assert_false(table_holds_only(t, 1, empty));
	table_free(t);
}

static void paints_only_when_asked(void **state)
{
	struct table_style style = {.headers = true, .color = true};
	struct table *t = table_new();
	(void)state;

	table_column(t, "A", FORM_LEFT);
	table_column(t, "BB", FORM_RIGHT);
	table_row(t, "");
	table_cell(t, PAINT_BAD, "x");
	table_cell(t, PAINT_PLAIN, "y");
	check(t, &style,
	      "\033[1mA\033[0m  \033[1mBB\033[0m\n"
	      "\033[31mx\033[0m   y\n");
	check(t, &plain, "A  BB\nx   y\n");
	table_free(t);
}

static void defuses_control_characters(void **state)
{
	struct table *t = table_new();
	(void)state;

	table_column(t, "A", FORM_LEFT);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, "a\033[2Jb\nc\177");
	check(t, &plain, "A\na?[2Jb?c?\n");
	table_free(t);
}

static void prints_headers_without_rows(void **state)
{
	struct table *t = table_new();
	(void)state;

	table_column(t, "A", FORM_LEFT);
	table_column(t, "B", FORM_LEFT);
	table_sort(t, false);
	check(t, &plain, "A  B\n");
	table_free(t);
	table_free(NULL);
}

/* --- for programs */

/* Data besides what is shown. */
static struct table *made_for_programs(void)
{
	static const char *const rows[][3] = {{"zeta", "9500", ""},
					      {"alpha", "-", "say \"x\""},
					      {"*", "11", "-"},
					      {"a,b", "1", "two\nlines"},
					      {"alpha", "2", "b"}};
	struct table *t = table_new();

	table_column(t, "NAME", FORM_NAME);
	table_column(t, "CPU", FORM_RIGHT);
	table_data_column(t, "name");
	table_data_column(t, "cpu_millicores");
	table_data_column(t, "note");
	for (size_t i = 0; i < 5; i++) {
		table_row(t, rows[i][0]);
		table_cell(t, PAINT_PLAIN, rows[i][0]);
		table_cell(t, PAINT_PLAIN, "9.5");
		for (size_t k = 0; k < 3; k++)
			table_cell(t, PAINT_PLAIN, rows[i][k]);
		if (rows[i][0][0] == '*')
			table_sums_up(t);
	}
	table_drop_sums(t);
	return t;
}

static void csv_is_data_and_has_no_sums(void **state)
{
	static const char rows[] = "zeta,9500,\r\n"
				   "alpha,,\"say \"\"x\"\"\"\r\n"
				   "\"a,b\",1,two?lines\r\n"
				   "alpha,2,b\r\n";
	struct table *t = made_for_programs();
	struct buf got = BUF_INIT;
	(void)state;

	table_print_csv(t, false, &got);
	assert_string_equal(got.data, rows);
	buf_clear(&got);
	table_print_csv(t, true, &got);
	assert_memory_equal(got.data, "name,cpu_millicores,note\r\n", 26);
	assert_string_equal(got.data + 26, rows);
	buf_clear(&got);
	table_print(t, &plain, &got);
	assert_memory_equal(got.data, "NAME   CPU\n", 11);
	buf_fini(&got);
	table_free(t);
}

static void add_line(void *context, const char *name)
{
	buf_printf(context, "%s\n", name);
}

static void names_are_told_once(void **state)
{
	struct table *t = made_for_programs();
	struct buf got = BUF_INIT;
	(void)state;

	table_each_name(t, add_line, &got);
	assert_string_equal(got.data, "zeta\nalpha\na,b\n");
	buf_fini(&got);
	table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_is_data_and_has_no_sums),
		cmocka_unit_test(names_are_told_once),
		cmocka_unit_test(aligns_columns),
		cmocka_unit_test(sorts_greatest_first_and_unknown_last),
		cmocka_unit_test(turns_the_order_round),
		cmocka_unit_test(shortens_names_to_the_terminal),
		cmocka_unit_test(leaves_names_whole_where_nothing_helps),
		cmocka_unit_test(keeps_what_differs),
		cmocka_unit_test(never_prints_two_names_alike),
		cmocka_unit_test(shortens_texts_before_names),
		cmocka_unit_test(cuts_lines_with_their_colours),
		cmocka_unit_test(fits_any_terminal),
		cmocka_unit_test(leaves_out_spare_columns_before_short_names),
		cmocka_unit_test(hides_columns),
		cmocka_unit_test(tells_what_a_column_holds),
		cmocka_unit_test(paints_only_when_asked),
		cmocka_unit_test(defuses_control_characters),
		cmocka_unit_test(prints_headers_without_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
