/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/lines.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/table.h"

enum {
	WIDTH = 100,
	HANG = 4, /* how far lines stand behind the one they go on from */
};

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

static void wrap(const struct cli *cli, size_t indent, const char *head, const char *text,
		 struct buf *out)
{
	size_t width = cli->width && cli->width < WIDTH ? cli->width : WIDTH;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t taken = indent + strlen(head);
		size_t len = line_len(text, taken < width / 2 ? width - taken : width / 2);
		char *line = mem_printf("%*s%s%.*s", (int)indent, "", head, (int)len, text);

		add_line(cli, line, out);
		free(line);
		text += len;
		if (*head)
			indent += HANG;
		head = "";
	}
}

void lines_add(const struct cli *cli, const char *text, struct buf *out)
{
	if (cli->width && strlen(text) > cli->width)
		wrap(cli, strspn(text, " "), "", text, out);
	else
		add_line(cli, text, out);
}

void lines_print(struct cli *cli, const char *format, ...)
{
	char *line;

	MEM_PRINT(line, format);
	lines_add(cli, line, &cli->out);
	free(line);
}

void lines_wrap(struct cli *cli, size_t indent, const char *format, ...)
{
	char *text;

	MEM_PRINT(text, format);
	wrap(cli, indent, "", text, &cli->out);
	free(text);
}

void lines_wrap_buf(struct cli *cli, size_t indent, struct buf *line)
{
	wrap(cli, indent, "", line->data ? line->data : "", &cli->out);
	buf_clear(line);
}

void lines_wrap_list(struct cli *cli, size_t indent, const cJSON *list)
{
	for (const cJSON *line = document_first(list, ""); line; line = line->next)
		if (cJSON_IsString(line))
			wrap(cli, indent, "", line->valuestring, &cli->out);
}

void lines_wrap_under(struct cli *cli, size_t indent, const char *text, const char *head, ...)
{
	char *begin;

	MEM_PRINT(begin, head);
	wrap(cli, indent, begin, text, &cli->out);
	free(begin);
}

void lines_print_warnings(struct cli *cli, const cJSON *doc)
{
	for (const cJSON *text = document_first(doc, "warnings"); text; text = text->next)
		lines_print(cli, "Warning: %s", cJSON_IsString(text) ? text->valuestring : "-");
}

void lines_add_pod_use(struct cli *cli, const cJSON *doc)
{
	lines_wrap_under(cli, 0, document_text_or(doc, "podUse", ""), "use of pods: ");
}
