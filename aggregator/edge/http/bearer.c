/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/edge/http/bearer.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

static bool is_token_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~+/", c));
}

bool bearer_is_token(const char *text, size_t len)
{
	size_t at = 0;

	if (len > BEARER_TOKEN_MAX)
		return false;
	while (at < len && is_token_byte(text[at]))
		at++;
	if (at == 0)
		return false;
	while (at < len && text[at] == '=')
		at++;
	return at == len;
}

enum bearer_kind bearer_parse(const char *header, const char **token, size_t *len)
{
	static const char scheme[] = "Bearer";
	const char *at = header;
	size_t rest;

	if (!header)
		return BEARER_NONE;
	if (strncasecmp(at, scheme, sizeof(scheme) - 1) != 0 || at[sizeof(scheme) - 1] != ' ')
		return BEARER_OTHER;
	at += sizeof(scheme) - 1;
	at += strspn(at, " ");
	rest = strlen(at);
	while (rest && at[rest - 1] == ' ')
		rest--;
	if (!bearer_is_token(at, rest))
		return BEARER_OTHER;
	*token = at;
	*len = rest;
	return BEARER_TOKEN;
}

void bearer_digest(const uint8_t key[BEARER_KEY_LEN], const char *token, size_t len,
		   uint8_t digest[BEARER_DIGEST_LEN])
{
	crypto_generichash(digest, BEARER_DIGEST_LEN, (const uint8_t *)token, len, key,
			   BEARER_KEY_LEN);
}
