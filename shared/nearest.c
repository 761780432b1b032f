/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edit distance with swaps of neighbouring letters (optimal string alignment). A name is near
 * enough when at most a third of its letters differ; a word that begins a name counts as one letter
 * away from it, since people abbreviate. Names longer than NAME_MAX_LEN are never suggested.
 */
#include "shared/nearest.h"

#include <string.h>

enum { NAME_MAX_LEN = 48 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][NAME_MAX_LEN + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least(last[j] + 1, row[j - 1] + 1,
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1, row[j]);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

void nearest_init(struct nearest *n, const char *word)
{
	*n = (struct nearest){.word = word};
}

void nearest_offer(struct nearest *n, const char *name)
{
	size_t word_len = strlen(n->word), name_len = strlen(name), d;

	if (word_len < 2 || word_len > NAME_MAX_LEN || name_len > NAME_MAX_LEN)
		return;
	if (strncmp(n->word, name, word_len) == 0)
		d = 1;
	else
		d = distance(n->word, word_len, name, name_len);
	if (d > (name_len + 2) / 3 || (n->best && d >= n->distance))
		return;
	n->best = name;
	n->distance = d;
}
