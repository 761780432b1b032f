/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a token file holds: it is refused by a line that shows none of it, or lets in exactly
 * whose tokens are in it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/http/tokens.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every line's token is found; a comment may hold anything, so lines are not strings. */
static void find_all(const struct token_list *l, const uint8_t key[BEARER_KEY_LEN],
		     const char *text, size_t len)
{
	const char *end = text + len, *line_end;
	size_t found = 0;
	bool acts;

	for (; text < end; text = line_end + 1) {
		size_t token = strcspn(text, ",\r\n");
		uint8_t digest[BEARER_DIGEST_LEN];

		line_end = memchr(text, '\n', (size_t)(end - text));
		if (!line_end)
			line_end = end;
		if (line_end == text || text[0] == '#' || text[0] == '\r')
			continue;
		bearer_digest(key, text, token, digest);
		acts = !token;
		assert(token_list_find(l, digest, &acts));
		assert(!acts || memmem(text, (size_t)(line_end - text), ",act", 4));
		found++;
	}
	assert(found > 0 && found <= TOKEN_LIST_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[BEARER_KEY_LEN] = {1, 2, 3};
	uint8_t nobody[BEARER_DIGEST_LEN] = {0};
	struct token_list *l = NULL;
	struct error error = {""};
	bool acts;
	char *text = mem_alloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (token_list_parse(&l, key, text, size, &error)) {
		assert(!l && error.text[0] && !strchr(error.text, '\n'));
	} else {
		assert(!token_list_find(l, nobody, &acts));
		find_all(l, key, text, size);
		token_list_free(l);
	}
	free(text);
	return 0;
}
