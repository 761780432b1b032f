/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared/enrolment.h describes the exchange. Here its credentials are checked:
 *
 *	join token	a line of --join-token-file has the token and a pattern that matches the
 *			node. While the node's key belongs to a pod, no join token replaces it.
 *
 *	token of Kubernetes	the API server must know it (TokenReview) as one for AUDIENCE of
 *				the agents' ServiceAccount, on a pod of the node: by the token's node
 *				claim (Kubernetes 1.32), else by its pod claim and the cluster model
 *
 * Of two pods of agents on one node the newer one has the node's key once it has enrolled. The older
 * one enrols again when the newer one has ended, is being deleted or is gone.
 *
 * Reviews run on libuv's threads, TOKEN_REVIEWS_AT_ONCE at a time; REVIEWS_MAX more wait, one of each
 * connection, for at most REVIEW_WAIT_NS, as agents ask again after 5 s. Over that, or while the API server does not answer
 * or the model lacks pods to decide by, agents are told to ask again later: nothing is decided.
 * Answers are not cached: an agent enrols once in 18 to 24 hours, and its token is new every hour.
 *
 * A refused agent asks again after REFUSED_WAIT_MS, later after up to eight times that, and reads its credential anew for that, so a
 * corrected file on either side is enough.
 *
 * The private key is in a file of mode 0600, which the first start makes. FILE.pub has the public
 * key for agents. A directory of private keys is possible, too: all open enrolments, the lexically
 * last one's public key is written.
 */
#include "aggregator/engine_enrolment.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "aggregator/edge/kube/token_review.h"
#include "aggregator/engine_informer.h"
#include "aggregator/state/enrolment_tokens.h"
#include "shared/clock.h"
#include "shared/enrolment.h"
#include "shared/file.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"

#define AUDIENCE "evenkeel-ingest"
#define ACCOUNT	 "system:serviceaccount:"
#define NODE	 "authentication.kubernetes.io/node-name"
#define POD	 "authentication.kubernetes.io/pod-name"
#define POD_UID	 "authentication.kubernetes.io/pod-uid"

#define REVIEW_WAIT_NS (3 * NS_PER_SEC)

enum {
	REFUSED_WAIT_MS = 30000,
	LATER_WAIT_MS = 5000,
	REVIEWS_MAX = 256,
	TOKEN_FILE_MAX = 1 << 20,
	ENROLMENT_POD_LEN = 384, /* "NAME/UID" */
};

/* An enrolment under review. */
struct review {
	uv_work_t work;
	struct node_enroller *en;
	struct ingest_route route;
	struct frame_header header;
	struct enrolment e; /* without its credential */
	char *token; /* owned; wiped */
	int64_t began_ns;
	struct access_answer verdict;
	cJSON *user; /* owned; NULL: see verdict */
	struct review *prev, *next; /* of the waiting ones */
};

struct node_enroller {
	/* fixed after open */
	struct node_enroller_config config;
	struct keyring_place *key_place, *token_place; /* token_place NULL: no join tokens */
	uint8_t digest_key[ENROLMENT_TOKEN_KEY_LEN];

	/* loop thread */
	struct enrolment_keys keys;
	struct enrolment_tokens *tokens; /* NULL: none */
	struct buf plain; /* scratch; wiped after each use */
	char *account; /* owned: the user name of the agents; NULL: no tokens of Kubernetes */
	struct token_reviews reviews;
	struct review *waiting; /* owned, oldest first */
	size_t running;
	bool stopping;
};

/* --- files ------------------------------------------------------------------------------------ */

static int make_key(const char *path, struct error *error)
{
	uint8_t secret[KEY_LEN];
	int rc;

	if (access(path, F_OK) == 0)
		return 0;
	randombytes_buf(secret, sizeof(secret));
	rc = file_replace(path, 0600, secret, sizeof(secret), error);
	sodium_memzero(secret, sizeof(secret));
	if (rc)
		return error_at(error, rc, "--enrolment-key");
	log_info("made the private key of enrolment %s", path);
	return 0;
}

/* A mounted Secret is read-only: the log has the public key, too. */
static void publish_key(const struct node_enroller *en)
{
	char *path = mem_printf("%s.pub", en->config.key_path);
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 2];
	uint8_t public_key[ENROLMENT_PUBLIC_LEN];
	struct error why;
	int rc;

	enrolment_public_key(keyring_sealing(&en->keys.ring), public_key);
	enrolment_public_write(public_key, text);
	log_info("agents enrol with --aggregator-key, a file of this line: %s", text);
	text[ENROLMENT_PUBLIC_TEXT_LEN] = '\n';
	rc = file_replace(path, 0644, text, ENROLMENT_PUBLIC_TEXT_LEN + 1, &why);
	if (rc && rc != -EROFS)
		log_warn("the public key is only in this log: %s", why.text);
	free(path);
}

static int read_keys(struct node_enroller *en, struct error *error)
{
	int rc = keyring_read(&en->keys.ring, en->key_place, error);

	if (rc)
		return rc;
	enrolment_keys_pair(&en->keys);
	publish_key(en);
	return 0;
}

static int read_tokens(struct node_enroller *en, struct error *error)
{
	struct enrolment_tokens *tokens;
	struct secret file;
	int rc;

	if (!en->token_place)
		return 0;
	rc = keyring_read_text(&file, en->token_place, TOKEN_FILE_MAX, true, error);
	if (rc)
		return rc;
	rc = enrolment_tokens_parse(&tokens, en->digest_key, file.text, file.len, error);
	secret_free(&file);
	if (rc)
		return error_at(error, rc, "%s", en->config.join_token_path);
	enrolment_tokens_free(en->tokens);
	en->tokens = tokens;
	return 0;
}

/* "a/b" is the user "system:serviceaccount:a:b". */
static int open_reviews(struct node_enroller *en, struct error *error)
{
	const struct node_enroller_config *c = &en->config;
	const char *slash = strchr(c->service_account, '/');
	int rc;

	en->account = mem_printf(ACCOUNT "%.*s:%s", (int)(slash - c->service_account),
				 c->service_account, slash + 1);
	rc = token_reviews_open(&en->reviews, c->kubeconfig, c->kube_context, AUDIENCE, error);
	if (rc)
		error_prefix(error, "--enrol-service-account");
	return rc;
}

int node_enroller_open(struct node_enroller **out, const struct node_enroller_config *config,
		       struct error *error)
{
	struct node_enroller *en = mem_zalloc(1, sizeof(*en));
	int rc;

	en->config = *config;
	if (sodium_init() < 0)
		abort();
	randombytes_buf(en->digest_key, sizeof(en->digest_key));
	rc = make_key(config->key_path, error);
	if (!rc)
		rc = keyring_open(&en->key_place, config->key_path, error);
	if (!rc)
		rc = read_keys(en, error);
	if (!rc && config->join_token_path)
		rc = keyring_open(&en->token_place, config->join_token_path, error);
	if (!rc)
		rc = read_tokens(en, error);
	if (!rc && config->service_account)
		rc = open_reviews(en, error);
	if (rc)
		node_enroller_close(en);
	else
		*out = en;
	return rc;
}

const struct keyring *node_enroller_keys(const struct node_enroller *en)
{
	return &en->keys.ring;
}

static void review_free(struct review *r)
{
	sodium_memzero(r->token, strlen(r->token));
	free(r->token);
	cJSON_Delete(r->user);
	free(r);
}

void node_enroller_stop(struct node_enroller *en)
{
	struct review *r, *next;

	if (!en)
		return;
	en->stopping = true;
	token_reviews_stop(&en->reviews);
	DL_FOREACH_SAFE(en->waiting, r, next)
	{
		DL_DELETE(en->waiting, r);
		review_free(r);
	}
}

void node_enroller_close(struct node_enroller *en)
{
	if (!en)
		return;
	token_reviews_close(&en->reviews);
	free(en->account);
	keyring_wipe(&en->keys.ring);
	keyring_close(en->key_place);
	keyring_close(en->token_place);
	enrolment_tokens_free(en->tokens);
	buf_fini(&en->plain);
	free(en);
}

void node_enroller_reload(struct node_enroller *en)
{
	struct error why;

	if (!en)
		return;
	if (read_keys(en, &why))
		log_error("keeping the old private keys of enrolment: %s", why.text);
	if (read_tokens(en, &why))
		log_error("keeping the old join tokens: %s", why.text);
}

/* --- enrolments ------------------------------------------------------------------------------- */

/* NULL: it enrols the node. */
static const char *check_join_token(const struct node_enroller *en, const struct enrolment *e,
				    int64_t now_ns)
{
	const char *pod = node_keys_pod(en->config.keys, e->node, now_ns);

	if (!en->tokens)
		return "this aggregator takes no join tokens: see its --join-token-file";
	switch (enrolment_tokens_check(en->tokens, e->credential, e->node)) {
	case TOKEN_ENROLS:
		return pod && *pod ? "the node's key is of a pod: no join token replaces it before "
				     "it ends"
				   : NULL;
	case TOKEN_OF_OTHER_NODES:
		return "the join token is for other nodes: name this one in the aggregator's "
		       "--join-token-file";
	default:
		return "the join token is unknown: compare it with the aggregator's "
		       "--join-token-file";
	}
}

static void decide(struct node_enroller *en, const struct enrolment *e, const char *pod,
		   const char *why, int64_t now_ns, struct enrolment_answer *a)
{
	uint8_t secret[KEY_LEN];

	if (why) {
		*a = (struct enrolment_answer){.status = ENROLMENT_REFUSED,
					       .wait_ms = REFUSED_WAIT_MS};
		snprintf(a->reason, sizeof(a->reason), "%s", why);
	} else {
		randombytes_buf(secret, sizeof(secret));
		node_keys_issue(en->config.keys, e, pod, secret, now_ns, a);
		sodium_memzero(secret, sizeof(secret));
	}
	if (a->reason[0])
		en->config.refused(en->config.ctx, e->node, a->reason, now_ns);
}

/* --- reviews ---------------------------------------------------------------------------------- */

/* Of the agents' namespace. */
static const struct kube_pod *find_pod(const struct node_enroller *en, const char *name,
				       const char *uid)
{
	char namespace[256] = "";

	snprintf(namespace, sizeof(namespace), "%.*s",
		 (int)strcspn(en->config.service_account, "/"), en->config.service_account);
	return en->config.pod(en->config.ctx, namespace, name, uid);
}

/* The pod other than that one whose enrolment the node's key is of, "NAME/UID"; NULL: none. */
static const char *find_holder(const struct review *r, const char *uid, int64_t now_ns)
{
	const char *holder = node_keys_pod(r->en->config.keys, r->e.node, now_ns), *slash;

	slash = holder ? strchr(holder, '/') : NULL;
	return slash && strcmp(slash + 1, uid) != 0 ? holder : NULL;
}

/* Whether the holder is newer than the pod. */
static bool is_superseded(const struct review *r, const struct kube_pod *pod, const char *holder)
{
	const char *uid = strchr(holder, '/') + 1;
	const struct kube_pod *newer;
	char name[256] = "";

	/* A pod that the model lacks is newer than it. */
	if (!pod)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(uid - 1 - holder), holder);
	newer = find_pod(r->en, name, uid);
	return newer && !newer->deletion_ns && newer->phase != POD_SUCCEEDED &&
	       newer->phase != POD_FAILED &&
	       (newer->created_ns > pod->created_ns ||
		(newer->created_ns == pod->created_ns && strcmp(uid, pod->object.uid) > 0));
}

/* ENROLMENT_DONE: the user enrols the node, and *pod is the agent's; else *why says why not. */
static enum enrolment_status check_user(const struct review *r, char pod[ENROLMENT_POD_LEN],
					const char **why, int64_t now_ns)
{
	const char *user =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->user, "username"));
	const char *name = token_review_extra(r->user, POD);
	const char *uid = token_review_extra(r->user, POD_UID);
	const char *node = token_review_extra(r->user, NODE), *holder;
	const struct kube_pod *known;

	*why = "the token is of another ServiceAccount than the agents'";
	if (strcmp(user, r->en->account) != 0)
		return ENROLMENT_REFUSED;
	*why = "the token is of no pod";
	if (!name || !uid)
		return ENROLMENT_REFUSED;
	known = find_pod(r->en, name, uid);
	if (!node)
		node = known && *known->node ? known->node : NULL;
	*why = "its pod is not known here";
	if (!node)
		return ENROLMENT_LATER;
	*why = "the token is of a pod on another node";
	if (strcmp(node, r->e.node) != 0)
		return ENROLMENT_REFUSED;
	holder = find_holder(r, uid, now_ns);
	*why = "another pod of this node has enrolled, and the list of pods is not complete";
	if (holder && !r->en->config.lists_pods(r->en->config.ctx))
		return ENROLMENT_LATER;
	*why = "a newer pod of this node has enrolled";
	if (holder && is_superseded(r, known, holder))
		return ENROLMENT_REFUSED;
	snprintf(pod, ENROLMENT_POD_LEN, "%s/%s", name, uid);
	*why = NULL;
	return ENROLMENT_DONE;
}

/* Of a review that decides nothing. */
static void answer_later(struct node_enroller *en, const char *node, const char *why,
			 struct enrolment_answer *a)
{
	*a = (struct enrolment_answer){.status = ENROLMENT_LATER, .wait_ms = LATER_WAIT_MS};
	snprintf(a->reason, sizeof(a->reason), "the token cannot be reviewed now: %.180s", why);
	en->config.refused(en->config.ctx, node, a->reason, clock_wall_ns());
}

static enum frame_result result_of(const struct enrolment_answer *a)
{
	return a->status == ENROLMENT_DONE ? FRAME_RESULT_enrolled : FRAME_RESULT_not_enrolled;
}

static void answer_review(const struct review *r)
{
	const struct key *key = keyring_find(&r->en->keys.ring, r->header.key_id);
	char pod[ENROLMENT_POD_LEN] = "";
	int64_t now_ns = clock_wall_ns();
	struct enrolment_answer a;
	struct buf answer = BUF_INIT;
	enum enrolment_status status = ENROLMENT_REFUSED;
	const char *why = "the Kubernetes API does not know the token, or it is for another "
			  "audience than " AUDIENCE;

	/* The private key was removed meanwhile. */
	if (!key)
		return;
	if (r->user) {
		status = check_user(r, pod, &why, now_ns);
	} else if (r->verdict.verdict == ACCESS_UNANSWERED) {
		status = ENROLMENT_LATER;
		why = r->verdict.error.text;
	}
	if (status == ENROLMENT_LATER)
		answer_later(r->en, r->e.node, why, &a);
	else
		decide(r->en, &r->e, pod, why, now_ns, &a);
	enrolment_answer_seal(&answer, &r->header, r->e.reply_key, key, &a);
	r->en->config.answered(r->en->config.ctx, &r->route, &answer, result_of(&a),
			       a.status == ENROLMENT_REFUSED);
	sodium_memzero(&a, sizeof(a));
	buf_fini(&answer);
}

/* A thread of libuv's. */
static void work(uv_work_t *work)
{
	struct review *r = work->data;

	r->user = token_review_client_identify(r->en->reviews.tokens, r->token, &r->verdict);
}

/* Answers those that have waited too long. */
static void drop_late(struct node_enroller *en)
{
	int64_t oldest_ns = clock_mono_ns() - REVIEW_WAIT_NS;
	struct review *r;

	while ((r = en->waiting) && r->began_ns < oldest_ns) {
		DL_DELETE(en->waiting, r);
		r->verdict.verdict = ACCESS_UNANSWERED;
		error_set(&r->verdict.error, "the Kubernetes API is slow");
		answer_review(r);
		review_free(r);
	}
}

static void run_next(struct node_enroller *en);

static void on_reviewed(uv_work_t *work, int status)
{
	struct review *r = work->data;
	struct node_enroller *en = r->en;

	(void)status;
	en->running--;
	if (!en->stopping) {
		answer_review(r);
		drop_late(en);
	}
	review_free(r);
	run_next(en);
}

static void run_next(struct node_enroller *en)
{
	struct review *r = en->waiting;

	if (en->stopping || !r || en->running == TOKEN_REVIEWS_AT_ONCE)
		return;
	assert(r->prev == r || r->next); /* a list's head */
	DL_DELETE(en->waiting, r);
	en->running++;
	uv_queue_work(en->config.loop, &r->work, work, on_reviewed);
}

/* False: too many wait, or one of this connection. */
static bool begin_review(struct node_enroller *en, const struct enrolment *e,
			 const struct frame_header *header, const struct ingest_route *route)
{
	size_t waiting = 0;
	struct review *r;

	for (r = en->waiting; r; r = r->next, waiting++)
		if (r->route.peer == route->peer)
			return false;
	if (waiting == REVIEWS_MAX)
		return false;
	r = mem_zalloc(1, sizeof(*r));
	r->work.data = r;
	r->en = en;
	r->route = *route;
	r->began_ns = clock_mono_ns();
	r->header = *header;
	r->e = *e;
	r->token = mem_strndup((const char *)e->credential.data, e->credential.len);
	r->e.credential = (struct span){NULL, 0};
	DL_APPEND(en->waiting, r);
	run_next(en);
	return true;
}

/* --- enrolments as they come ------------------------------------------------------------------ */

/* The answer, or FRAME_RESULT_part: under review. */
static enum frame_result check(struct node_enroller *en, const struct enrolment *e,
			       const struct frame_header *header, const struct ingest_route *route,
			       int64_t now_ns, struct enrolment_answer *a)
{
	if (e->kind == CREDENTIAL_JOIN_TOKEN)
		decide(en, e, "", check_join_token(en, e, now_ns), now_ns, a);
	else if (e->kind != CREDENTIAL_SERVICE_ACCOUNT || !en->account)
		decide(en, e, "",
		       "this aggregator takes no tokens of Kubernetes: see its "
		       "--enrol-service-account",
		       now_ns, a);
	else if (!enrolment_token_is_jwt(e->credential))
		decide(en, e, "", "the token is none of Kubernetes: not three parts of base64url",
		       now_ns, a);
	else if (begin_review(en, e, header, route))
		return FRAME_RESULT_part;
	else
		answer_later(en, e->node, "too many wait", a);
	return result_of(a);
}

int node_enroller_take(struct node_enroller *en, const void *data, size_t len,
		       const struct ingest_route *route, int64_t now_ns, struct buf *answer,
		       bool *refused)
{
	struct frame_header header;
	struct enrolment_answer a;
	enum frame_result result;
	struct enrolment e;
	const struct key *key;
	struct error error;
	int rc = enrolment_open(data, len, &en->keys, &header, &key, &e, &en->plain, &error);

	if (rc)
		return rc;
	result = check(en, &e, &header, route, now_ns, &a);
	if (result != FRAME_RESULT_part) {
		*refused = a.status == ENROLMENT_REFUSED;
		enrolment_answer_seal(answer, &header, e.reply_key, key, &a);
		sodium_memzero(&a, sizeof(a));
	}
	sodium_memzero(en->plain.data, en->plain.len);
	return (int)result;
}
