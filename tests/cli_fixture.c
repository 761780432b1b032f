/* SPDX-License-Identifier: Apache-2.0 */
/* The list is one page, handed to the reader of lists as if it had been fetched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cli_fixture.h"

int cli_fixture_render(const struct cli_fixture *f, const struct usage_kind *kind, struct buf *out,
		       struct error *reason)
{
	struct cli cli = {.options = &f->options,
			  .color = f->color,
			  .operands = f->names,
			  .operand_count = f->name_count};
	struct usage_table table;
	struct list list;
	int code;

	usage_table_init(&table, kind, &cli);
	list_init(&list, kind->item, &table);
	buf_add_str(&list.page, "{\"time\":\"2026-01-31T12:00:03Z\",\"items\":[");
	for (size_t i = 0; i < CLI_FIXTURE_ITEMS && f->items[i]; i++)
		buf_printf(&list.page, "%s%s", i ? "," : "", f->items[i]);
	buf_add_str(&list.page, "]");
	if (f->total)
		buf_printf(&list.page, ",\"total\":%s", f->total);
	buf_add_str(&list.page, "}");
	assert_int_equal(list_read_page(&list, &cli.reason), 0);
	code = usage_table_finish(&table, list.total, &cli);
	list_fini(&list);
	usage_table_fini(&table);
	*out = cli.out;
	buf_add_str(out, "");
	*reason = cli.reason;
	return code;
}

void cli_fixture_check(const struct cli_fixture *f, const struct usage_kind *kind, int code,
		       const char *text, const char *reason)
{
	struct error got;
	struct buf out;

	assert_int_equal(cli_fixture_render(f, kind, &out, &got), code);
	if (text)
		assert_string_equal(out.data, text);
	assert_string_equal(got.text, reason);
	buf_fini(&out);
}

void cli_fixture_check_exits(const struct cli_fixture_exit *cases, size_t count,
			     const struct usage_kind *kind)
{
	for (size_t i = 0; i < count; i++)
		cli_fixture_check(&cases[i].given, kind, cases[i].code, NULL, cases[i].reason);
}
