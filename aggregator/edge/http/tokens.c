/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token file has a line for each token, so that `kubectl create secret --from-file` makes a
 * Secret of it, and deleting a line withdraws a token. Only digests stay in memory; the text is
 * wiped. The digest of a request is compared with all of them in constant time. Short tokens are
 * refused: nobody would notice guesses.
 *
 * The cache of reviews has sets of four, chosen by the first bits of the keyed digest: nobody
 * outside can choose a set. A full set drops expired entries first, then denials, then the
 * approval that expires first. A denial never replaces an approval: a flood of wrong tokens evicts
 * no valid one. About 800 KiB.
 */
#include "aggregator/edge/http/tokens.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"

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

enum { TOKEN_LEAST = 16, FILE_MOST = 1 << 20 };

struct token_list {
	size_t count;
	struct {
		uint8_t digest[BEARER_DIGEST_LEN];
		char name[TOKEN_NAME_LEN];
		bool acts;
	} tokens[TOKEN_LIST_MAX];
};

/* --- lines ------------------------------------------------------------------------------------ */

static int take_name(const char *name, size_t len, size_t number, char out[TOKEN_NAME_LEN],
		     struct error *error)
{
	if (len == 0 || len >= TOKEN_NAME_LEN)
		return error_fail(error, -EINVAL, "line %zu: a name has 1 to %d characters", number,
				  TOKEN_NAME_LEN - 1);
	for (size_t i = 0; i < len; i++) {
		if (name[i] >= ' ' && name[i] < 0x7f && name[i] != ',')
			continue;
		return error_fail(error, -EINVAL,
				  "line %zu: the name holds what is not printable, or a comma",
				  number);
	}
	memcpy(out, name, len);
	out[len] = '\0';
	return 0;
}

/* One line without its end, and not empty. */
static int take_line(struct token_list *l, const uint8_t key[BEARER_KEY_LEN], const char *line,
		     size_t len, size_t number, struct error *error)
{
	const char *comma = memchr(line, ',', len);
	size_t token_len = comma ? (size_t)(comma - line) : len;
	uint8_t digest[BEARER_DIGEST_LEN];
	char name[TOKEN_NAME_LEN] = "";
	bool acts = comma && len - token_len > 4 && memcmp(line + len - 4, ",act", 4) == 0, other;
	int rc = 0;

	if (!bearer_is_token(line, token_len))
		return error_fail(error, -EINVAL,
				  "line %zu: a token is at most %d letters, digits and -._~+/, "
				  "with = only at its end",
				  number, BEARER_TOKEN_MAX);
	if (token_len < TOKEN_LEAST)
		return error_fail(error, -EINVAL,
				  "line %zu: the token is shorter than %d characters; make one "
				  "with head -c 32 /dev/urandom | base64 -w0",
				  number, TOKEN_LEAST);
	if (comma)
		rc = take_name(comma + 1, len - token_len - (acts ? 5 : 1), number, name, error);
	else
		snprintf(name, sizeof(name), "token %zu", number);
	if (rc)
		return rc;
	bearer_digest(key, line, token_len, digest);
	if (l->count == TOKEN_LIST_MAX || token_list_find(l, digest, &other))
		return error_fail(error, -EINVAL,
				  l->count == TOKEN_LIST_MAX
					  ? "line %zu: only %d tokens are possible"
					  : "line %zu: that token was there already",
				  number, TOKEN_LIST_MAX);
	memcpy(l->tokens[l->count].digest, digest, sizeof(digest));
	memcpy(l->tokens[l->count].name, name, sizeof(name));
	l->tokens[l->count].acts = acts;
	l->count++;
	return 0;
}

int token_list_parse(struct token_list **list, const uint8_t key[BEARER_KEY_LEN], const char *text,
		     size_t len, struct error *error)
{
	struct token_list *l = mem_zalloc(1, sizeof(*l));
	const char *end = text + len;
	int rc = 0;

	for (size_t number = 1; text < end && !rc; number++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line_len = (size_t)((stop ? stop : end) - text);
		const char *line = text;

		text += line_len + (stop != NULL);
		if (line_len && line[line_len - 1] == '\r')
			line_len--;
		if (line_len && line[0] != '#')
			rc = take_line(l, key, line, line_len, number, error);
	}
	if (!rc && !l->count)
		rc = error_fail(error, -EINVAL, "there is no token in it");
	if (rc)
		token_list_free(l);
	else
		*list = l;
	return rc;
}

/* --- the file --------------------------------------------------------------------------------- */

int token_list_read(struct token_list **list, const uint8_t key[BEARER_KEY_LEN], const char *path,
		    struct error *error)
{
	struct secret file;
	int rc = secret_read(&file, path, FILE_MOST, true, error);

	if (rc)
		return rc;
	rc = token_list_parse(list, key, file.text, file.len, error);
	if (rc)
		error_prefix(error, "%s", path);
	secret_free(&file);
	return rc;
}

void token_list_free(struct token_list *list)
{
	free(list);
}

bool token_list_same(const struct token_list *a, const struct token_list *b)
{
	return a->count == b->count &&
	       memcmp(a->tokens, b->tokens, a->count * sizeof(a->tokens[0])) == 0;
}

const char *token_list_find(const struct token_list *list, const uint8_t digest[BEARER_DIGEST_LEN],
			    bool *acts)
{
	const char *name = NULL;

	for (size_t i = 0; i < list->count; i++) {
		if (sodium_memcmp(list->tokens[i].digest, digest, BEARER_DIGEST_LEN) != 0)
			continue;
		name = list->tokens[i].name;
		*acts = list->tokens[i].acts;
	}
	return name;
}

/* --- reviews ---------------------------------------------------------------------------------- */

#define ALLOWED_NS (60 * NS_PER_SEC)
#define REFUSED_NS (10 * NS_PER_SEC)

struct entry {
	uint8_t digest[BEARER_DIGEST_LEN];
	int64_t ends_ns; /* 0: empty */
	enum access_verdict verdict;
	char user[ACCESS_USER_LEN];
};

struct review_cache {
	pthread_mutex_t lock;
	/* under lock */
	struct entry entries[REVIEW_SETS][REVIEW_WAYS];
};

struct review_cache *review_cache_new(void)
{
	struct review_cache *c = mem_zalloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void review_cache_free(struct review_cache *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct entry *set_of(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN])
{
	return c->entries[(digest[0] | digest[1] << 8) % REVIEW_SETS];
}

static struct entry *find(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN])
{
	struct entry *set = set_of(c, digest);

	for (size_t i = 0; i < REVIEW_WAYS; i++)
		if (set[i].ends_ns && memcmp(set[i].digest, digest, BEARER_DIGEST_LEN) == 0)
			return &set[i];
	return NULL;
}

bool review_cache_find(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		       int64_t now_ns, struct access_answer *a)
{
	const struct entry *e;
	bool good;

	pthread_mutex_lock(&c->lock);
	e = find(c, digest);
	good = e && e->ends_ns > now_ns;
	if (good) {
		a->verdict = e->verdict;
		memcpy(a->user, e->user, sizeof(a->user));
		a->error.text[0] = '\0';
	}
	pthread_mutex_unlock(&c->lock);
	return good;
}

/* The entry with the least worth is dropped first. */
static int64_t worth(const struct entry *e, int64_t now_ns)
{
	if (e->ends_ns <= now_ns)
		return INT64_MIN;
	return e->verdict == ACCESS_ALLOWED ? e->ends_ns : e->ends_ns - INT64_MAX / 2;
}

/* NULL: every entry of the set is worth more. */
static struct entry *make_room(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
			       int64_t now_ns, enum access_verdict verdict)
{
	struct entry *set = set_of(c, digest), *least = set;

	for (size_t i = 1; i < REVIEW_WAYS; i++)
		if (worth(&set[i], now_ns) < worth(least, now_ns))
			least = &set[i];
	if (least->ends_ns > now_ns && least->verdict == ACCESS_ALLOWED &&
	    verdict != ACCESS_ALLOWED)
		return NULL;
	return least;
}

void review_cache_put(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		      int64_t now_ns, const struct access_answer *a)
{
	struct entry *e;

	if (a->verdict == ACCESS_UNANSWERED)
		return;
	pthread_mutex_lock(&c->lock);
	e = find(c, digest);
	if (!e)
		e = make_room(c, digest, now_ns, a->verdict);
	if (e) {
		memcpy(e->digest, digest, sizeof(e->digest));
		e->ends_ns = now_ns + (a->verdict == ACCESS_ALLOWED ? ALLOWED_NS : REFUSED_NS);
		e->verdict = a->verdict;
		memcpy(e->user, a->user, sizeof(e->user));
	}
	pthread_mutex_unlock(&c->lock);
}
