/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared/enrolment.h describes the exchange. Here its credentials are checked:
 *
 *	join token	a line of --join-token-file must have it, and name the node
 *
 * A refused agent asks again after REFUSED_WAIT_MS, and reads its credential anew for that, so a
 * corrected file on either side is enough.
 *
 * The private key is in a file of mode 0600, which the first start makes. FILE.pub has the public
 * key for agents. A directory of private keys is possible, too: all open enrolments, the lexically
 * last one's public key is written.
 */
#include "aggregator/engine_enrolment.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/state/enrolment_tokens.h"
#include "shared/enrolment.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"

enum { REFUSED_WAIT_MS = 30000, TOKEN_FILE_MAX = 1 << 20 };

struct enroller {
	/* fixed after open */
	struct enroller_config config;
	struct keyring_place *key_place, *token_place; /* token_place NULL: no join tokens */
	uint8_t digest_key[ENROLMENT_TOKEN_KEY_LEN];

	/* loop thread */
	struct keyring keys; /* private ones, with the ids of their pairs */
	struct enrolment_tokens *tokens; /* NULL: none */
	struct buf plain; /* scratch; wiped after each use */
};

/* --- files ------------------------------------------------------------------------------------ */

/* All of it at once: a half-written key would be one of another length. */
static int write_file(const char *path, int flags, mode_t mode, const void *data, size_t len,
		      struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode), rc = 0;

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fsync(fd))
		rc = errno ? -errno : -EIO;
	if (fd >= 0)
		close(fd);
	if (rc)
		error_set(error, "%s: cannot be written: %s", path, strerror(-rc));
	return rc;
}

static int make_key(const char *path, struct error *error)
{
	uint8_t secret[KEY_LEN];
	int rc;

	if (access(path, F_OK) == 0)
		return 0;
	randombytes_buf(secret, sizeof(secret));
	rc = write_file(path, O_EXCL | O_NOFOLLOW, 0600, secret, sizeof(secret), error);
	sodium_memzero(secret, sizeof(secret));
	if (rc) {
		error_prefix(error, "--enrolment-key");
		return rc;
	}
	log_info("made the private key of enrolment %s", path);
	return 0;
}

/* A mounted Secret is read-only: the log has the public key, too. */
static void publish_key(const struct enroller *en)
{
	char *path = mem_printf("%s.pub", en->config.key_path);
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 2];
	uint8_t public_key[ENROLMENT_PUBLIC_LEN];
	struct error why;

	enrolment_public_key(keyring_sealing(&en->keys), public_key);
	enrolment_public_write(public_key, text);
	log_info("agents enrol with --aggregator-key, a file of this line: %s", text);
	text[ENROLMENT_PUBLIC_TEXT_LEN] = '\n';
	if (write_file(path, O_TRUNC, 0644, text, ENROLMENT_PUBLIC_TEXT_LEN + 1, &why))
		log_warn("the public key is only in this log: %s", why.text);
	free(path);
}

static int read_keys(struct enroller *en, struct error *error)
{
	int rc = keyring_read(&en->keys, en->key_place, error);

	if (rc)
		return rc;
	enrolment_set_ids(&en->keys);
	publish_key(en);
	return 0;
}

static int read_tokens(struct enroller *en, struct error *error)
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
	if (rc) {
		error_prefix(error, "%s", en->config.join_token_path);
		return rc;
	}
	enrolment_tokens_free(en->tokens);
	en->tokens = tokens;
	return 0;
}

int enroller_open(struct enroller **out, const struct enroller_config *config, struct error *error)
{
	struct enroller *en = mem_zalloc(1, sizeof(*en));
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
	if (rc)
		enroller_close(en);
	else
		*out = en;
	return rc;
}

void enroller_close(struct enroller *en)
{
	if (!en)
		return;
	keyring_wipe(&en->keys);
	keyring_close(en->key_place);
	keyring_close(en->token_place);
	enrolment_tokens_free(en->tokens);
	buf_fini(&en->plain);
	free(en);
}

void enroller_reload(struct enroller *en)
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
static const char *check_join_token(const struct enroller *en, const struct enrolment *e)
{
	if (!en->tokens)
		return "this aggregator takes no join tokens: see its --join-token-file";
	switch (enrolment_tokens_check(en->tokens, e->credential, e->node)) {
	case TOKEN_ENROLS:
		return NULL;
	case TOKEN_OF_OTHER_NODES:
		return "the join token is for other nodes: name this one in the aggregator's "
		       "--join-token-file";
	default:
		return "the join token is unknown: compare it with the aggregator's "
		       "--join-token-file";
	}
}

static void decide(struct enroller *en, const struct enrolment *e, const char *why, int64_t now_ns,
		   struct enrolment_answer *a)
{
	uint8_t secret[KEY_LEN];

	if (why) {
		*a = (struct enrolment_answer){.status = ENROLMENT_REFUSED,
					       .wait_ms = REFUSED_WAIT_MS};
		snprintf(a->reason, sizeof(a->reason), "%s", why);
	} else {
		randombytes_buf(secret, sizeof(secret));
		node_keys_issue(en->config.keys, e, secret, now_ns, a);
		sodium_memzero(secret, sizeof(secret));
	}
	if (a->reason[0])
		en->config.refused(en->config.ctx, e->node, a->reason, now_ns);
}

static enum frame_result result_of_error(int rc)
{
	switch (rc) {
	case -EPROTO:
		return FRAME_RESULT_version;
	case -ENOKEY:
		return FRAME_RESULT_unknown_key;
	case -EKEYREJECTED:
		return FRAME_RESULT_forged;
	default:
		return FRAME_RESULT_malformed;
	}
}

enum frame_result enroller_take(struct enroller *en, const void *data, size_t len, int64_t now_ns,
				struct buf *answer)
{
	struct frame_header header;
	struct enrolment_answer a;
	struct enrolment e;
	const struct key *key;
	struct error error;
	int rc = enrolment_open(data, len, &en->keys, &header, &key, &e, &en->plain, &error);
	const char *why;

	if (rc)
		return result_of_error(rc);
	why = e.kind == CREDENTIAL_JOIN_TOKEN ? check_join_token(en, &e)
					      : "this aggregator takes no credential of that kind";
	decide(en, &e, why, now_ns, &a);
	enrolment_answer_seal(answer, &header, e.reply_key, key, &a);
	sodium_memzero(en->plain.data, en->plain.len);
	rc = a.status;
	sodium_memzero(&a, sizeof(a));
	return rc == ENROLMENT_DONE ? FRAME_RESULT_enrolled : FRAME_RESULT_not_enrolled;
}
