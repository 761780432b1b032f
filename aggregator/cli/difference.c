/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a command's output that a change alters: - before and + after.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "shared/array.h"
#include "shared/mem.h"

enum { CELLS_MOST = 16 << 20 };

struct lines {
	char **of; /* owned; each ends with a NUL in the text */
	size_t count;
};

static struct lines split(char *text)
{
	struct lines l = {0};
	char *save, *line;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		ARRAY_ADD(l.of, l.count) = line;
	}
	return l;
}

/* Columns may have become wider: blanks do not count. */
static bool are_equal(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		if (*a != *b)
			return false;
		if (!*a)
			return true;
	}
}

static void add_line(const struct cli *cli, char sign, const char *line, struct buf *out)
{
	const char *paint = !cli->color ? "" : sign == '-' ? "\033[31m" : "\033[32m";

	buf_printf(out, "%s%c %s%s\n", paint, sign, line, *paint ? "\033[0m" : "");
}

/* The titles of a table's columns: "NODE       SCORE .." */
static bool is_title(const char *line)
{
	size_t len = strcspn(line, " ");

	return len > 1 && strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-%") == len &&
	       strncmp(line + len, "  ", 2) == 0;
}

/*
 * Titles stand above the lines below them that differ.
 *
 * The longest common sequence of lines by the usual table, left[i][j] of what stands behind i and j.
 * Where the table would be too large, all lines count as changed.
 */
static void compare(const struct cli *cli, struct lines a, struct lines b, struct buf *out)
{
	size_t width = b.count + 1, i = 0, j = 0;
	bool fits = (a.count + 1) * width <= CELLS_MOST;
	const char *title = NULL;
	uint32_t *left = fits ? mem_zalloc((a.count + 1) * width, sizeof(*left)) : NULL;

	for (i = a.count; fits && i-- > 0;) {
		for (j = b.count; j-- > 0;) {
			uint32_t skip_a = left[(i + 1) * width + j],
				 skip_b = left[i * width + j + 1];

			left[i * width + j] = are_equal(a.of[i], b.of[j])
						      ? left[(i + 1) * width + j + 1] + 1
					      : skip_a > skip_b ? skip_a
								: skip_b;
		}
	}
	for (i = 0, j = 0; i < a.count || j < b.count;) {
		if (fits && i < a.count && j < b.count && are_equal(a.of[i], b.of[j])) {
			title = is_title(b.of[j]) ? b.of[j] : title;
			i++;
			j++;
			continue;
		}
		if (title)
			buf_printf(out, "  %s\n", title);
		title = NULL;
		if (i < a.count && (!fits || j == b.count ||
				    left[(i + 1) * width + j] >= left[i * width + j + 1])) {
			add_line(cli, '-', a.of[i++], out);
		} else {
			add_line(cli, '+', b.of[j++], out);
		}
	}
	free(left);
}

void difference_print(struct cli *cli, struct buf *before, struct buf *after)
{
	struct lines a, b;
	size_t begin = cli->out.len;

	buf_add_str(before, "");
	buf_add_str(after, "");
	a = split(before->data);
	b = split(after->data);
	compare(cli, a, b, &cli->out);
	if (cli->out.len == begin)
		lines_print(cli, "Nothing that this command shows would change.");
	free(a.of);
	free(b.of);
}
