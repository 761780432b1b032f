/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first rule that applies decides (api/act.c has another 429: 16 requests wait for the
 * actuator):
 *
 *	a page of another server sent it (Origin)	403
 *	health						passes: probes have no credentials
 *	above the client's request rate			429
 *	a body that is not declared as JSON		415
 *	no credentials are configured			passes under a name of this server
 *							(hosts.c), else 403; acts from this
 *							machine alone
 *	/watcher with --open-watcher			passes under an address or a name of this
 *							server, else 403
 *	a user that the front proxy names		the cached verdict, else a review
 *	a valid client certificate			passes, but may not act
 *	a token of the file				passes; acts if its line says so, else 403
 *	another token, with --token-review		the cached verdict, else a review
 *	anything else					401 with what is wrong or missing
 *
 * As in the Kubernetes API server each configured way may admit a request: an invalid certificate
 * does not exclude a valid token. Tokens are compared as keyed digests in constant time, each with
 * every token of the file.
 *
 * A review is about a path as routes know it, below /apis about its resource, and cached with the
 * path: a user that may read /v1/nodes need not be allowed to preempt. HEAD counts as GET. Two
 * threads review; addresses share them in rounds (workers.h).
 *
 * A request acts if it makes the actuator move pods, or speaks for the actuator
 * (api_access_acts()). A right to read never includes it.
 *
 * A user of the front proxy is reviewed even if its certificate would pass as a client's: it speaks
 * for others.
 */
#include "aggregator/edge/http/auth.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api_group.h"
#include "aggregator/edge/http/tokens.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/mem.h"
#include "shared/utf8.h"

struct auth {
	/* fixed after start */
	struct auth_options options;
	struct access_counters *counters; /* borrowed */
	uint8_t key[BEARER_KEY_LEN];
	struct rate_limit *rate; /* NULL: none */
	struct review_cache *reviews; /* NULL: no reviews */

	pthread_rwlock_t lock;
	/* under lock */
	struct token_list *tokens; /* NULL: no file */
};

int auth_open(struct auth **out, const struct auth_options *options,
	      struct access_counters *counters, struct error *reason)
{
	struct auth *auth = mem_zalloc(1, sizeof(*auth));
	int rc = 0;

	auth->options = *options;
	auth->counters = counters;
	randombytes_buf(auth->key, sizeof(auth->key));
	pthread_rwlock_init(&auth->lock, NULL);
	if (options->requests_per_second > 0)
		auth->rate = rate_limit_new(options->requests_per_second);
	if (options->review_client)
		auth->reviews = review_cache_new();
	if (options->token_file)
		rc = token_list_read(&auth->tokens, auth->key, options->token_file, reason);
	if (rc) {
		error_prefix(reason, "--token-file");
		auth_close(auth);
		return rc;
	}
	*out = auth;
	return 0;
}

void auth_close(struct auth *auth)
{
	if (!auth)
		return;
	token_list_free(auth->tokens);
	review_cache_free(auth->reviews);
	rate_limit_free(auth->rate);
	pthread_rwlock_destroy(&auth->lock);
	sodium_memzero(auth->key, sizeof(auth->key));
	free(auth);
}

/* --- refusals --------------------------------------------------------------------------------- */

__attribute__((format(printf, 5, 6))) static enum auth_verdict
refuse(struct auth *auth, struct auth_refusal *r, enum access_refusal reason,
       enum api_failure failure, const char *format, ...)
{
	MEM_FORMAT(r->text, sizeof(r->text), format);
	/* Paths and names come from clients, and the text goes into a log line. */
	utf8_replace_controls(r->text, '?');
	r->reason = reason;
	r->failure = failure;
	r->retry_after_s = 0;
	counter_add(&auth->counters->refused[reason], 1);
	return AUTH_REFUSE;
}

static const char *ways_in(const struct auth *auth)
{
	bool tokens = auth->options.token_file || auth->options.review_client;

	if (tokens && auth->options.certificates)
		return "send a bearer token, or a client certificate";
	return tokens ? "send a bearer token" : "send a client certificate";
}

static enum auth_verdict refuse_stranger(struct auth *auth, const struct auth_request *rq,
					 enum bearer_kind kind, struct auth_refusal *r)
{
	if (kind == BEARER_TOKEN)
		return refuse(auth, r, ACCESS_REFUSAL_UNKNOWN_TOKEN, FAIL_UNAUTHORIZED,
			      "the token is not known");
	if (rq->certificate == AUTH_CERTIFICATE_BAD)
		return refuse(auth, r, ACCESS_REFUSAL_BAD_CERTIFICATE, FAIL_UNAUTHORIZED,
			      "the client certificate %s", rq->certificate_fault);
	if (kind == BEARER_OTHER)
		return refuse(auth, r, ACCESS_REFUSAL_NO_CREDENTIALS, FAIL_UNAUTHORIZED,
			      "the Authorization header is not \"Bearer TOKEN\"");
	return refuse(auth, r, ACCESS_REFUSAL_NO_CREDENTIALS, FAIL_UNAUTHORIZED, "%s",
		      ways_in(auth));
}

void auth_refuse_busy(struct auth *auth, struct auth_refusal *refusal)
{
	refuse(auth, refusal, ACCESS_REFUSAL_NOT_REVIEWED, FAIL_NOT_REVIEWED,
	       "too many tokens wait for a review; try again");
	refusal->retry_after_s = 1;
}

/* --- reviews ---------------------------------------------------------------------------------- */

/*
 * The request, and the digest of the question about it: of the subject's digest with verb and path,
 * which decide about the resource, too.
 */
static void make_question(const struct auth *auth, const struct auth_request *rq,
			  const uint8_t who[BEARER_DIGEST_LEN], struct access_request *request,
			  uint8_t digest[BEARER_DIGEST_LEN])
{
	crypto_generichash_state state;

	api_access_request(rq->method, api_plain_path(rq->path), request);
	crypto_generichash_init(&state, auth->key, sizeof(auth->key), BEARER_DIGEST_LEN);
	crypto_generichash_update(&state, who, BEARER_DIGEST_LEN);
	crypto_generichash_update(&state, (const uint8_t *)request->verb,
				  strlen(request->verb) + 1);
	crypto_generichash_update(&state, (const uint8_t *)request->path, strlen(request->path));
	crypto_generichash_final(&state, digest, BEARER_DIGEST_LEN);
}

static enum auth_verdict forbid(struct auth *auth, const struct access_request *q, const char *user,
				struct auth_refusal *r)
{
	char rule[ACCESS_RULE_LEN];

	user = user[0] ? user : "the token's owner";
	if (!q->group)
		return refuse(auth, r, ACCESS_REFUSAL_FORBIDDEN, FAIL_FORBIDDEN,
			      "%s may not %s %s: a ClusterRole bound to it needs that path in "
			      "nonResourceURLs with verb %s",
			      user, q->verb, q->path, q->verb);
	api_access_rule(q, rule);
	return refuse(auth, r, ACCESS_REFUSAL_FORBIDDEN, FAIL_FORBIDDEN,
		      "%s may not %s %s%s%s: a role bound to it needs the rule %s", user, q->verb,
		      q->resource, q->namespace[0] ? " in namespace " : "", q->namespace, rule);
}

static enum auth_verdict judge(struct auth *auth, const struct auth_request *rq,
			       const struct access_request *q, const struct access_answer *a,
			       struct auth_refusal *r)
{
	switch (a->verdict) {
	case ACCESS_ALLOWED:
		snprintf(r->user, sizeof(r->user), "%s", a->user);
		return AUTH_PASS;
	case ACCESS_DENIED:
		return forbid(auth, q, a->user, r);
	case ACCESS_UNKNOWN:
		return refuse_stranger(auth, rq, BEARER_TOKEN, r);
	case ACCESS_UNANSWERED:
		break;
	}
	refuse(auth, r, ACCESS_REFUSAL_NOT_REVIEWED, FAIL_NOT_REVIEWED,
	       "the review of the %s failed: %s", rq->user ? "user's access" : "token",
	       a->error.text);
	r->retry_after_s = 1;
	return AUTH_REFUSE;
}

/*
 * The subject of a review, a user of the front proxy or a token, in *text, with its digest.
 * BEARER_TOKEN; else what the Authorization header has instead.
 */
static enum bearer_kind find_subject(const struct auth *auth, const struct auth_request *rq,
				     const char **text, size_t *len,
				     uint8_t digest[BEARER_DIGEST_LEN])
{
	enum bearer_kind kind = BEARER_TOKEN;

	*text = rq->user;
	if (rq->user)
		*len = strlen(rq->user);
	else
		kind = bearer_parse(rq->authorization, text, len);
	if (kind == BEARER_TOKEN)
		bearer_digest(auth->key, *text, *len, digest);
	return kind;
}

enum auth_verdict auth_review(struct auth *auth, const struct auth_request *rq,
			      struct auth_refusal *refusal)
{
	uint8_t digest[BEARER_DIGEST_LEN], question[BEARER_DIGEST_LEN];
	struct access_answer a = {.verdict = ACCESS_UNANSWERED};
	struct access_request request;
	const char *text;
	char *copy;
	size_t len;

	if (find_subject(auth, rq, &text, &len, digest) != BEARER_TOKEN)
		return refuse_stranger(auth, rq, BEARER_OTHER, refusal);
	make_question(auth, rq, digest, &request, question);
	/* Another request may have cached it meanwhile. */
	if (!review_cache_find(auth->reviews, question, clock_mono_ns(), &a)) {
		copy = mem_strndup(text, len);
		counter_add(&auth->counters->reviews, 1);
		auth->options.review_client->ask(
			auth->options.review_client->ctx,
			&(struct access_question){rq->user ? NULL : copy, rq->user, &request}, &a);
		review_cache_put(auth->reviews, question, clock_mono_ns(), &a);
		sodium_memzero(copy, len);
		free(copy);
	}
	return judge(auth, rq, &request, &a, refusal);
}

static enum auth_verdict look_up(struct auth *auth, const struct auth_request *rq,
				 const uint8_t who[BEARER_DIGEST_LEN], struct auth_refusal *refusal)
{
	uint8_t question[BEARER_DIGEST_LEN];
	struct access_request request;
	struct access_answer a;

	make_question(auth, rq, who, &request, question);
	if (!review_cache_find(auth->reviews, question, rq->now_ns, &a))
		return AUTH_REVIEW;
	counter_add(&auth->counters->reviews_cached, 1);
	return judge(auth, rq, &request, &a, refusal);
}

/* --- requests --------------------------------------------------------------------------------- */

/* With the name of the token in r->user, and whether its owner may act. */
static bool is_listed(struct auth *auth, const uint8_t digest[BEARER_DIGEST_LEN],
		      struct auth_refusal *r, bool *acts)
{
	const char *name;

	if (!auth->options.token_file)
		return false;
	pthread_rwlock_rdlock(&auth->lock);
	name = token_list_find(auth->tokens, digest, acts);
	if (name)
		snprintf(r->user, sizeof(r->user), "%s", name);
	pthread_rwlock_unlock(&auth->lock);
	return name;
}

static bool has_guard(const struct auth *auth)
{
	return auth->options.token_file || auth->options.review_client ||
	       auth->options.certificates;
}

static bool is_guarded(const struct auth *auth, const char *path)
{
	return has_guard(auth) &&
	       !(auth->options.open_watcher && api_access_class(path) == API_ACCESS_WATCHER);
}

bool auth_is_named(const struct auth *auth, const char *host, const struct sockaddr *to)
{
	struct host_name name;

	return host && host_parse(host, strlen(host), &name) &&
	       host_is_ours(&name, auth->options.listen, auth->options.allowed_hosts, to);
}

/*
 * /watcher may be open beside guarded paths; schedulers reach it by any address, such as a
 * Service's.
 */
static bool is_by_address(const struct auth *auth, const char *host)
{
	struct host_name name;

	return has_guard(auth) && host && host_parse(host, strlen(host), &name) &&
	       host_is_address(&name);
}

/* Requests that a page in a browser may have sent (hosts.c). */
static enum auth_verdict check_page(struct auth *auth, const struct auth_request *rq,
				    struct auth_refusal *r)
{
	if ((!strcmp(rq->method, "POST") || !strcmp(rq->method, "PUT")) &&
	    !media_is_json(rq->content_type))
		return refuse(auth, r, ACCESS_REFUSAL_CONTENT_TYPE, FAIL_UNSUPPORTED_TYPE,
			      "a body is taken with Content-Type: application/json only");
	if (is_guarded(auth, rq->path) || auth_is_named(auth, rq->host, rq->to) ||
	    is_by_address(auth, rq->host))
		return AUTH_PASS;
	return refuse(auth, r, ACCESS_REFUSAL_HOST, FAIL_FORBIDDEN,
		      "\"%.200s\" is no name of this server: give it to --allowed-host%s", rq->host,
		      has_guard(auth) ? "" : ", or configure credentials");
}

static enum auth_verdict check_rate(struct auth *auth, const struct auth_request *rq,
				    struct auth_refusal *r)
{
	int64_t wait_ns = auth->rate ? rate_limit_take(auth->rate, rq->from, rq->now_ns) : 0;

	if (!wait_ns)
		return AUTH_PASS;
	refuse(auth, r, ACCESS_REFUSAL_RATE, FAIL_TOO_MANY,
	       "more than %.6g requests a second come from this address",
	       auth->options.requests_per_second);
	r->retry_after_s = (int)((wait_ns + NS_PER_SEC - 1) / NS_PER_SEC);
	return AUTH_REFUSE;
}

static enum auth_verdict refuse_act(struct auth *auth, struct auth_refusal *r, const char *why)
{
	return refuse(auth, r, ACCESS_REFUSAL_FORBIDDEN, FAIL_FORBIDDEN, "%s", why);
}

enum auth_verdict auth_check(struct auth *auth, const struct auth_request *rq,
			     struct auth_refusal *refusal)
{
	uint8_t digest[BEARER_DIGEST_LEN];
	enum bearer_kind kind;
	bool acts = api_access_acts(rq->method, rq->path), may_act;
	const char *text;
	size_t len;

	if (rq->origin && !origin_is_own(rq->origin, rq->host))
		return refuse(auth, refusal, ACCESS_REFUSAL_ORIGIN, FAIL_FORBIDDEN,
			      "requests of pages of other servers (\"%.200s\") are refused",
			      rq->origin);
	if (api_access_class(rq->path) == API_ACCESS_PUBLIC)
		return AUTH_PASS;
	if (check_rate(auth, rq, refusal) == AUTH_REFUSE ||
	    check_page(auth, rq, refusal) == AUTH_REFUSE)
		return AUTH_REFUSE;
	refusal->user[0] = '\0';
	if (!has_guard(auth) && acts && !host_is_loopback(rq->from))
		return refuse_act(auth, refusal,
				  "no credentials are configured, so requests to the actuator are "
				  "taken from this machine only");
	if (!is_guarded(auth, rq->path))
		return AUTH_PASS;
	kind = find_subject(auth, rq, &text, &len, digest);
	if (rq->certificate == AUTH_CERTIFICATE_GOOD && !rq->user) {
		if (!acts)
			return AUTH_PASS;
		if (kind == BEARER_NONE)
			return refuse_act(auth, refusal,
					  "a client certificate gives no right to act: send a "
					  "bearer token that has it");
	}
	if (kind != BEARER_TOKEN)
		return refuse_stranger(auth, rq, kind, refusal);
	if (!rq->user && is_listed(auth, digest, refusal, &may_act)) {
		if (!acts || may_act)
			return AUTH_PASS;
		return refuse_act(auth, refusal,
				  "the token may not ask the actuator: its line of --token-file "
				  "does not end in \",act\"");
	}
	if (auth->options.review_client)
		return look_up(auth, rq, digest, refusal);
	return refuse_stranger(auth, rq, kind, refusal);
}

uint64_t auth_client(const struct auth *auth, const struct auth_request *rq, bool admitted)
{
	uint8_t digest[BEARER_DIGEST_LEN];
	const char *text;
	uint64_t client;
	size_t len;

	/* The front proxy's address is that of all its users, also before they are admitted. */
	if ((!admitted && !rq->user) || !is_guarded(auth, rq->path) ||
	    (rq->certificate == AUTH_CERTIFICATE_GOOD && !rq->user) ||
	    find_subject(auth, rq, &text, &len, digest) != BEARER_TOKEN)
		return peer_hash(auth->key, rq->from);
	memcpy(&client, digest, sizeof(client));
	return client;
}

/* --- reload ----------------------------------------------------------------------------------- */

int auth_reload(struct auth *auth, struct error *reason)
{
	struct token_list *fresh, *old;
	int rc;

	if (!auth->options.token_file)
		return 0;
	rc = token_list_read(&fresh, auth->key, auth->options.token_file, reason);
	if (rc)
		return rc;
	pthread_rwlock_wrlock(&auth->lock);
	old = auth->tokens;
	auth->tokens = fresh;
	pthread_rwlock_unlock(&auth->lock);
	rc = !token_list_same(old, fresh);
	token_list_free(old);
	return rc;
}
