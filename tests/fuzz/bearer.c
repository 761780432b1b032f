/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever the Authorization header holds: what is taken for a token lies within it, and could
 * stand in a header again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/http/tokens.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *header = mem_strndup((const char *)data, size);
	const char *token = NULL;
	size_t len = 0;

	if (bearer_parse(header, &token, &len) == BEARER_TOKEN) {
		assert(token > header && token + len <= header + strlen(header));
		assert(len > 0 && len <= BEARER_TOKEN_MAX);
		assert(bearer_is_token(token, len));
		for (size_t i = 0; i < len; i++)
			assert(token[i] > ' ' && token[i] < 0x7f && token[i] != ',');
		for (const char *rest = token + len; *rest; rest++)
			assert(*rest == ' ');
	} else {
		assert(!token && !len);
	}
	free(header);
	return 0;
}
