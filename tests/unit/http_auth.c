/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the HTTP API under a clock of their own: rates, what was reviewed, and lines
 * of tokens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/api/api.h"
#include "aggregator/edge/http/auth.h"
#include "aggregator/edge/http/tokens.h"
#include "shared/clock.h"

static const uint8_t key[BEARER_KEY_LEN] = {7};

/* --- paths ------------------------------------------------------------------------------------ */

static void test_doors(void **state)
{
	static const struct {
		const char *path;
		enum api_access access;
	} cases[] = {
		{"/healthz", API_ACCESS_PUBLIC},
		{"//readyz", API_ACCESS_PUBLIC},
		{"/healthz/", API_ACCESS_GUARDED},
		{"/healthzz", API_ACCESS_GUARDED},
		{"/watcher", API_ACCESS_WATCHER},
		{"/watcher/x", API_ACCESS_WATCHER},
		{"/watcher/health", API_ACCESS_WATCHER},
		{"/v1/nodes", API_ACCESS_GUARDED},
		{"/metrics", API_ACCESS_GUARDED},
		{"/", API_ACCESS_PUBLIC}, /* the web page, without data */
		{"", API_ACCESS_GUARDED},
		{"/healthz%00", API_ACCESS_GUARDED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (api_access_class(cases[i].path) != cases[i].access)
			fail_msg("%s", cases[i].path);
}

/* --- rates ------------------------------------------------------------------------------------ */

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage at = {0};
	struct sockaddr_in *four = (struct sockaddr_in *)&at;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&at;

	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
		six->sin6_family = AF_INET6;
	}
	return at;
}

static int64_t take(struct rate_limit *r, const char *from, int64_t now_ns)
{
	struct sockaddr_storage at = address(from);

	return rate_limit_take(r, (const struct sockaddr *)&at, now_ns);
}

static void test_rate_refills(void **state)
{
	struct rate_limit *r = rate_limit_new(20);
	int64_t now_ns = 5 * NS_PER_SEC;

	(void)state;
	for (int i = 0; i < 40; i++)
		assert_int_equal(take(r, "10.0.0.1", now_ns), 0);
	assert_in_range(take(r, "10.0.0.1", now_ns), 49 * NS_PER_MS, 51 * NS_PER_MS);
	assert_int_equal(take(r, "10.0.0.2", now_ns), 0);
	now_ns += 51 * NS_PER_MS;
	assert_int_equal(take(r, "10.0.0.1", now_ns), 0);
	assert_true(take(r, "10.0.0.1", now_ns) > 0);
	/* A clock that stood still or an idle hour: never more than the burst. */
	now_ns += 3600 * NS_PER_SEC;
	for (int i = 0; i < 40; i++)
		assert_int_equal(take(r, "10.0.0.1", now_ns), 0);
	assert_true(take(r, "10.0.0.1", now_ns) > 0);
	rate_limit_free(r);
}

static void test_rate_knows_clients(void **state)
{
	static const struct {
		const char *one, *other;
		bool same;
	} cases[] = {
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "::ffff:10.0.0.1", true},
		{"2001:db8::1", "2001:db8::2", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"32.1.13.184", "2001:db8::1", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rate_limit *r = rate_limit_new(1);

		while (!take(r, cases[i].one, NS_PER_SEC))
			;
		assert_int_equal(take(r, cases[i].other, NS_PER_SEC) > 0, cases[i].same);
		rate_limit_free(r);
	}
}

/* However many come by, who asks much is remembered: only those that hardly ask are forgotten. */
static void test_rate_is_bounded(void **state)
{
	struct rate_limit *r = rate_limit_new(1);

	(void)state;
	while (!take(r, "192.0.2.1", NS_PER_SEC))
		;
	for (uint32_t i = 0; i < 200000; i++) {
		struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(i)};

		assert_int_equal(rate_limit_take(r, (const struct sockaddr *)&at, NS_PER_SEC), 0);
	}
	assert_true(take(r, "192.0.2.1", NS_PER_SEC) > 0);
	rate_limit_free(r);
}

/* --- reviews ---------------------------------------------------------------------------------- */

static void put(struct review_cache *c, uint8_t at, uint8_t which, enum access_verdict verdict,
		int64_t now_ns)
{
	const uint8_t digest[BEARER_DIGEST_LEN] = {at, 0, which};
	const struct access_answer a = {.verdict = verdict, .user = "somebody"};

	review_cache_put(c, digest, now_ns, &a);
}

static bool knows(struct review_cache *c, uint8_t at, uint8_t which, int64_t now_ns)
{
	const uint8_t digest[BEARER_DIGEST_LEN] = {at, 0, which};
	struct access_answer a;

	return review_cache_find(c, digest, now_ns, &a) && strcmp(a.user, "somebody") == 0;
}

static void test_reviews_end(void **state)
{
	struct review_cache *c = review_cache_new();
	const int64_t now_ns = NS_PER_SEC;

	(void)state;
	put(c, 1, 1, ACCESS_ALLOWED, now_ns);
	put(c, 1, 2, ACCESS_DENIED, now_ns);
	put(c, 1, 3, ACCESS_UNANSWERED, now_ns);
	assert_true(knows(c, 1, 1, now_ns + 59 * NS_PER_SEC));
	assert_false(knows(c, 1, 1, now_ns + 60 * NS_PER_SEC));
	assert_true(knows(c, 1, 2, now_ns + 9 * NS_PER_SEC));
	assert_false(knows(c, 1, 2, now_ns + 10 * NS_PER_SEC));
	assert_false(knows(c, 1, 3, now_ns));
	/* What is said last counts. */
	put(c, 1, 1, ACCESS_DENIED, now_ns);
	assert_false(knows(c, 1, 1, now_ns + 10 * NS_PER_SEC));
	review_cache_free(c);
}

/* A flood of wrong tokens drives out no right one. */
static void test_reviews_that_allow_stay(void **state)
{
	struct review_cache *c = review_cache_new();
	const int64_t now_ns = NS_PER_SEC;

	(void)state;
	for (int i = 0; i < REVIEW_WAYS; i++)
		put(c, 1, (uint8_t)i, ACCESS_ALLOWED, now_ns + i);
	for (uint8_t i = 100; i < 200; i++) {
		put(c, 1, i, ACCESS_UNKNOWN, now_ns + i);
		assert_false(knows(c, 1, i, now_ns + i));
	}
	for (int i = 0; i < REVIEW_WAYS; i++)
		assert_true(knows(c, 1, (uint8_t)i, now_ns));
	/* Another right one takes the oldest's place. */
	put(c, 1, 200, ACCESS_ALLOWED, now_ns + 200);
	assert_false(knows(c, 1, 0, now_ns));
	assert_true(knows(c, 1, 200, now_ns));
	/* And what has ended is anybody's. */
	put(c, 1, 201, ACCESS_UNKNOWN, now_ns + 61 * NS_PER_SEC);
	assert_true(knows(c, 1, 201, now_ns + 61 * NS_PER_SEC));
	review_cache_free(c);
}

/* The Kubernetes API as scripted: GET of /v1/nodes is allowed, of other paths not. */
struct scripted_api {
	unsigned int asked;
	char last[128]; /* token, verb and path */
};

static void review(void *ctx, const struct access_question *q, struct access_answer *a)
{
	const char *verb = q->request->verb, *path = q->request->path;
	struct scripted_api *r = ctx;

	r->asked++;
	snprintf(r->last, sizeof(r->last), "%s %s %s", q->token ? q->token : q->user, verb, path);
	*a = (struct access_answer){.user = "alice",
				    .verdict = strcmp(verb, "get") != 0 ||
							       strcmp(path, "/v1/nodes") != 0
						       ? ACCESS_DENIED
						       : ACCESS_ALLOWED};
}

struct review_scene {
	struct scripted_api api;
	struct review_client client;
	struct access_counters counters;
	struct sockaddr_storage from;
	struct auth *auth;
};

static void review_scene_open(struct review_scene *s)
{
	struct auth_options options = {.review_client = &s->client};

	*s = (struct review_scene){.client = {&s->api, review, 1}, .from = address("192.0.2.1")};
	assert_int_equal(auth_open(&s->auth, &options, &s->counters, NULL), 0);
}

static enum auth_verdict request_of(struct review_scene *s, bool reviewed, const char *method,
				    const char *path, struct auth_refusal *refusal)
{
	const struct auth_request rq = {
		.method = method,
		.path = path,
		.authorization = "Bearer token-of-alice",
		.content_type = "application/json",
		.from = (const struct sockaddr *)&s->from,
		.now_ns = clock_mono_ns(),
	};

	return reviewed ? auth_review(s->auth, &rq, refusal) : auth_check(s->auth, &rq, refusal);
}

/* A review counts for its verb and its path, and for no other. */
static void test_reviews_are_of_verb_and_path(void **state)
{
	static const struct {
		const char *method, *path;
		enum auth_verdict cached, reviewed;
	} cases[] = {
		{"GET", "/v1/nodes", AUTH_REVIEW, AUTH_PASS},
		{"GET", "/v1/nodes", AUTH_PASS, AUTH_PASS},
		{"HEAD", "/v1/nodes", AUTH_PASS, AUTH_PASS},
		{"GET", "//v1/nodes", AUTH_PASS, AUTH_PASS},
		{"POST", "/v1/nodes", AUTH_REVIEW, AUTH_REFUSE},
		{"POST", "/v1/nodes", AUTH_REFUSE, AUTH_REFUSE},
		{"GET", "/v1/node", AUTH_REVIEW, AUTH_REFUSE},
		{"GET", "/v1/nodes", AUTH_PASS, AUTH_PASS},
	};
	struct auth_refusal refusal;
	struct review_scene s;

	(void)state;
	review_scene_open(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *method = cases[i].method, *path = cases[i].path;

		if (request_of(&s, false, method, path, &refusal) != cases[i].cached ||
		    request_of(&s, true, method, path, &refusal) != cases[i].reviewed)
			fail_msg("%s %s, case %zu", method, path, i);
	}
	assert_int_equal(s.api.asked, 3);
	assert_string_equal(s.api.last, "token-of-alice get /v1/node");
	assert_int_equal(request_of(&s, true, "POST", "/v1/nodes", &refusal), AUTH_REFUSE);
	assert_string_equal(refusal.text, "alice may not post /v1/nodes: a ClusterRole bound to it "
					  "needs that path in nonResourceURLs with verb post");
	assert_int_equal(refusal.failure, FAIL_FORBIDDEN);
	auth_close(s.auth);
}

/* A user of the front proxy is reviewed as itself, whatever else the connection shows. */
static void test_users_of_the_front_proxy(void **state)
{
	struct auth_refusal refusal;
	struct review_scene s;
	struct auth_request rq = {.method = "GET",
				  .path = "/apis/evenkeel.io/v1/namespaces/shop/pods",
				  .authorization = "Bearer token-of-alice",
				  .certificate = AUTH_CERTIFICATE_GOOD,
				  .user = "{\"username\":\"bob\"}"};
	uint64_t client;

	(void)state;
	review_scene_open(&s);
	rq.from = (const struct sockaddr *)&s.from;
	rq.now_ns = clock_mono_ns();
	client = auth_client(s.auth, &rq, false);
	assert_int_equal(auth_check(s.auth, &rq, &refusal), AUTH_REVIEW);
	assert_int_equal(auth_review(s.auth, &rq, &refusal), AUTH_REFUSE);
	assert_string_equal(s.api.last, "{\"username\":\"bob\"} list "
					"/apis/evenkeel.io/v1/namespaces/shop/pods");
	assert_string_equal(
		refusal.text,
		"alice may not list pods in namespace shop: a role bound to it needs "
		"the rule {apiGroups: [evenkeel.io], resources: [pods], verbs: [list]}");
	rq.path = "/apis/evenkeel.io/v1/nodes/a/history";
	assert_int_equal(auth_review(s.auth, &rq, &refusal), AUTH_REFUSE);
	assert_string_equal(
		refusal.text,
		"alice may not get nodes: a role bound to it needs the rule {apiGroups: "
		"[evenkeel.io], resources: [nodes/history], verbs: [get]}");
	/* The verdict is this user's. */
	assert_int_equal(auth_check(s.auth, &rq, &refusal), AUTH_REFUSE);
	rq.user = "{\"username\":\"carol\"}";
	assert_int_equal(auth_check(s.auth, &rq, &refusal), AUTH_REVIEW);
	assert_int_not_equal(auth_client(s.auth, &rq, false), client);
	rq.user = NULL;
	assert_int_equal(auth_check(s.auth, &rq, &refusal), AUTH_PASS);
	auth_close(s.auth);
}

/* --- requests that act ------------------------------------------------------------------------ */

static struct auth *open_auth(const char *tokens, bool certificates,
			      struct access_counters *counters)
{
	struct auth_options options = {.certificates = certificates, .listen = "127.0.0.1:2020"};
	char path[] = "/tmp/evenkeel-tokens-XXXXXX";
	int fd = tokens ? mkstemp(path) : -1;
	struct auth *auth = NULL;

	if (tokens) {
		assert_int_equal(write(fd, tokens, strlen(tokens)), strlen(tokens));
		close(fd);
		options.token_file = path;
	}
	assert_int_equal(auth_open(&auth, &options, counters, NULL), 0);
	if (tokens)
		unlink(path);
	return auth;
}

#define READER "Bearer abcdefghijklmnop"
#define ACTOR  "Bearer qrstuvwxyz0123456"

/* Who may read may not act: neither by a token, nor by a certificate, nor from another machine. */
static void test_acting_needs_a_right_of_its_own(void **state)
{
	static const char tokens[] = "abcdefghijklmnop,alice\nqrstuvwxyz0123456,bob,act\n";
	static const struct {
		const char *tokens;
		bool certificates;
		const char *authorization, *from;
		enum auth_certificate certificate;
		enum auth_verdict reads, acts;
		const char *says; /* the user, or why not */
	} cases[] = {
		{tokens, false, READER, "192.0.2.1", 0, AUTH_PASS, AUTH_REFUSE, "\",act\""},
		{tokens, false, READER, "127.0.0.1", 0, AUTH_PASS, AUTH_REFUSE, "\",act\""},
		{tokens, false, ACTOR, "192.0.2.1", 0, AUTH_PASS, AUTH_PASS, "bob"},
		{tokens, false, NULL, "127.0.0.1", 0, AUTH_REFUSE, AUTH_REFUSE, "bearer token"},
		{tokens, true, NULL, "192.0.2.1", AUTH_CERTIFICATE_GOOD, AUTH_PASS, AUTH_REFUSE,
		 "a client certificate gives no right"},
		{tokens, true, ACTOR, "192.0.2.1", AUTH_CERTIFICATE_GOOD, AUTH_PASS, AUTH_PASS,
		 "bob"},
		{tokens, true, READER, "192.0.2.1", AUTH_CERTIFICATE_GOOD, AUTH_PASS, AUTH_REFUSE,
		 "\",act\""},
		{NULL, true, NULL, "127.0.0.1", AUTH_CERTIFICATE_GOOD, AUTH_PASS, AUTH_REFUSE,
		 "a client certificate gives no right"},
		{NULL, false, NULL, "192.0.2.1", 0, AUTH_PASS, AUTH_REFUSE, "this machine only"},
		{NULL, false, NULL, "2001:db8::1", 0, AUTH_PASS, AUTH_REFUSE, "this machine only"},
		{NULL, false, NULL, "127.0.0.1", 0, AUTH_PASS, AUTH_PASS, ""},
		{NULL, false, NULL, "::1", 0, AUTH_PASS, AUTH_PASS, ""},
		{NULL, false, NULL, "::ffff:127.0.0.9", 0, AUTH_PASS, AUTH_PASS, ""},
	};
	static const char *const targets[][2] = {{"POST", "/v1/act/requests"},
						 {"PUT", "/v1/act"},
						 {"POST", "/v1/drain/history"},
						 {"GET", "/v1/act"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sockaddr_storage from = address(cases[i].from);
		struct access_counters counters = {0};
		struct auth *auth = open_auth(cases[i].tokens, cases[i].certificates, &counters);
		struct auth_refusal r = {0};

		for (size_t k = 0; k < sizeof(targets) / sizeof(targets[0]); k++) {
			const struct auth_request rq = {
				.method = targets[k][0],
				.path = targets[k][1],
				.authorization = cases[i].authorization,
				.host = "localhost:2020",
				.content_type = "application/json",
				.certificate = cases[i].certificate,
				.from = (const struct sockaddr *)&from,
			};
			bool reads = strcmp(rq.method, "GET") == 0;
			enum auth_verdict verdict = auth_check(auth, &rq, &r);

			if (verdict != (reads ? cases[i].reads : cases[i].acts) ||
			    (!reads &&
			     !strstr(verdict == AUTH_PASS ? r.user : r.text, cases[i].says)))
				fail_msg("case %zu: %s %s: %d %s", i, rq.method, rq.path, verdict,
					 r.text);
		}
		auth_close(auth);
	}
}

/* A form of another site's page can be posted without that browsers ask: it is never JSON. */
static void test_no_body_but_json_is_taken(void **state)
{
	static const char *const types[] = {NULL, "text/plain", "application/x-www-form-urlencoded",
					    "multipart/form-data; boundary=x"};
	static const char *const methods[] = {"POST", "PUT"};
	struct sockaddr_storage from = address("127.0.0.1");
	struct access_counters counters = {0};
	struct auth *auth = open_auth(NULL, false, &counters);
	struct auth_request rq = {.host = "localhost:2020", .from = (const struct sockaddr *)&from};
	struct auth_refusal r;

	(void)state;
	for (size_t m = 0; m < 2; m++) {
		rq.method = methods[m];
		rq.path = m ? "/v1/act" : "/v1/act/requests";
		rq.origin = NULL;
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			rq.content_type = types[i];
			assert_int_equal(auth_check(auth, &rq, &r), AUTH_REFUSE);
			assert_int_equal(r.failure, FAIL_UNSUPPORTED_TYPE);
		}
		rq.content_type = "application/json";
		rq.origin = "http://elsewhere.example";
		assert_int_equal(auth_check(auth, &rq, &r), AUTH_REFUSE);
		assert_int_equal(r.reason, ACCESS_REFUSAL_ORIGIN);
		rq.origin = "http://localhost:2020";
		assert_int_equal(auth_check(auth, &rq, &r), AUTH_PASS);
	}
	auth_close(auth);
}

/* --- busy ------------------------------------------------------------------------------------- */

/* A request that finds no room for its review may come again in a second. */
static void test_busy_reviews(void **state)
{
	struct auth_refusal refusal;
	struct review_scene s;

	(void)state;
	review_scene_open(&s);
	auth_refuse_busy(s.auth, &refusal);
	assert_int_equal(refusal.reason, ACCESS_REFUSAL_NOT_REVIEWED);
	assert_int_equal(refusal.failure, FAIL_NOT_REVIEWED);
	assert_int_equal(refusal.retry_after_s, 1);
	assert_string_equal(refusal.text, "too many tokens wait for a review; try again");
	assert_int_equal(counter_get(&s.counters.refused[ACCESS_REFUSAL_NOT_REVIEWED]), 1);
	assert_int_equal(s.api.asked, 0);
	auth_close(s.auth);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static const char *name_of(const struct token_list *l, const char *token)
{
	static char found[TOKEN_NAME_LEN + 8];
	uint8_t digest[BEARER_DIGEST_LEN];
	bool acts = false;
	const char *name;

	bearer_digest(key, token, strlen(token), digest);
	name = token_list_find(l, digest, &acts);
	snprintf(found, sizeof(found), "%s%s", name ? name : "", acts ? " acts" : "");
	return name ? found : NULL;
}

static void test_tokens(void **state)
{
	static const char text[] = "# people\nabcdefghijklmnop,alice\r\n\n"
				   "ABCDEFGHIJKLMNOP-._~+/==\nqrstuvwxyz0123456,the scheduler\n"
				   "0123456789abcdefg,bob,act\r\n0123456789abcdefgh,act\n";
	struct token_list *l;

	(void)state;
	assert_int_equal(token_list_parse(&l, key, text, sizeof(text) - 1, NULL), 0);
	assert_string_equal(name_of(l, "abcdefghijklmnop"), "alice");
	assert_string_equal(name_of(l, "ABCDEFGHIJKLMNOP-._~+/=="), "token 4");
	assert_string_equal(name_of(l, "qrstuvwxyz0123456"), "the scheduler");
	assert_string_equal(name_of(l, "0123456789abcdefg"), "bob acts");
	assert_string_equal(name_of(l, "0123456789abcdefgh"), "act");
	assert_null(name_of(l, "abcdefghijklmno"));
	assert_null(name_of(l, "abcdefghijklmnop,alice"));
	assert_null(name_of(l, ""));
	token_list_free(l);
}

static void test_bad_tokens(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "there is no token in it"},
		{"# nothing\n", "there is no token in it"},
		{"short", "line 1: the token is shorter than 16"},
		{"abcdefghijklmnop\nabc def ghi jkl mno", "line 2: a token is"},
		{"abcdefghijklmnop,", "line 1: a name has 1 to 63"},
		{"abcdefghijklmnop,a,b", "line 1: the name holds"},
		{"abcdefghijklmnop,a\tb", "line 1: the name holds"},
		{"abcdefghijklmnop,,act", "line 1: a name has 1 to 63"},
		{"abcdefghijklmnop,a,act,act", "line 1: the name holds"},
		{"abcdefghijklmnop\nabcdefghijklmnop,b", "line 2: that token was there already"},
		{" abcdefghijklmnop", "line 1: a token is"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct token_list *l = NULL;
		struct error error = {""};

		assert_int_equal(token_list_parse(&l, key, cases[i].text, strlen(cases[i].text),
						  &error),
				 -EINVAL);
		assert_null(l);
		if (!strstr(error.text, cases[i].says) || strstr(error.text, "abcdef"))
			fail_msg("case %zu: %s", i, error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doors),
		cmocka_unit_test(test_rate_refills),
		cmocka_unit_test(test_rate_knows_clients),
		cmocka_unit_test(test_rate_is_bounded),
		cmocka_unit_test(test_reviews_end),
		cmocka_unit_test(test_reviews_that_allow_stay),
		cmocka_unit_test(test_reviews_are_of_verb_and_path),
		cmocka_unit_test(test_acting_needs_a_right_of_its_own),
		cmocka_unit_test(test_no_body_but_json_is_taken),
		cmocka_unit_test(test_users_of_the_front_proxy),
		cmocka_unit_test(test_busy_reviews),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_bad_tokens),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
