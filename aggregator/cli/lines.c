/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/lines.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/table.h"

/* How far lines stand behind the one they go on from. */
enum { LINES_HANG = 4 };

/* Through a table, which takes care of control characters. */
static void add_line(const struct cli *cli, const char *text, struct buf *out)
{
	struct table_style style = {.headers = false, .color = cli->color};
	struct table *t = table_new();

	table_column(t, "", FORM_LEFT);
	table_row(t, "");
	table_cell(t, PAINT_PLAIN, text);
	table_print(t, &style, out);
	table_free(t);
}

void lines_add(const struct cli *cli, const char *text, struct buf *out)
{
	if (cli->width && strlen(text) > cli->width)
		lines_add_wrapped(cli, strspn(text, " "), "", text, out);
	else
		add_line(cli, text, out);
}

/* Bytes of the next line: up to a space, and as many words as fit, but one at least. */
static size_t line_len(const char *text, size_t room)
{
	size_t len = strlen(text), i = room;

	if (len <= room)
		return len;
	while (i > 0 && text[i] != ' ')
		i--;
	return i > 0 ? i : strcspn(text, " ");
}

void lines_add_wrapped(const struct cli *cli, size_t indent, const char *head, const char *text,
		       struct buf *out)
{
	size_t width = cli->width && cli->width < LINES_WIDTH ? cli->width : LINES_WIDTH;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t taken = indent + strlen(head);
		size_t len = line_len(text, taken < width / 2 ? width - taken : width / 2);
		char *line = mem_printf("%*s%s%.*s", (int)indent, "", head, (int)len, text);

		add_line(cli, line, out);
		free(line);
		text += len;
		if (*head)
			indent += LINES_HANG;
		head = "";
	}
}

void lines_add_pod_use(const struct cli *cli, const cJSON *doc, struct buf *out)
{
	const char *how = document_text(doc, "podUse");

	if (how)
		lines_add_wrapped(cli, 0, "use of pods: ", how, out);
}
