/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A renewal is due after half of the key's lifetime, less up to a quarter of that, by chance, so
 * that nodes that enrolled together spread. A failed renewal leaves the present key in use. Refused
 * enrolments are repeated after the aggregator's pause, which doubles with each refusal up to eightfold,
 * with the public key and the credential of then, so that either may change without a restart.
 *
 * Each enrolment has a key pair of its own. The credential and all secrets are wiped after use; the
 * folders are opened before the agent gives up its privileges.
 */
#include "agent/enroller.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define PAUSE_LEAST_NS NS_PER_SEC

enum { PUBLIC_FILE_MAX = 4096 };

struct enroller {
	struct keyring_place *key_place, *credential_place; /* fixed after open */
	enum credential_kind kind; /* likewise */
};

static int read_public_key(const struct enroller *en, uint8_t public_key[ENROLMENT_PUBLIC_LEN],
			   struct error *error)
{
	struct secret file;
	int rc = keyring_read_text(&file, en->key_place, PUBLIC_FILE_MAX, false, error);

	if (rc)
		return error_at(error, rc, "--aggregator-key");
	rc = enrolment_public_read(public_key, file.text, file.len, error);
	if (rc)
		error_prefix(error, "--aggregator-key");
	secret_free(&file);
	return rc;
}

/* Without the line's end. */
static int read_credential(const struct enroller *en, struct secret *s, struct error *error)
{
	int rc = keyring_read_text(s, en->credential_place, ENROLMENT_CREDENTIAL_MAX,
				   en->kind == CREDENTIAL_JOIN_TOKEN, error);

	if (rc)
		return rc;
	while (s->len && strchr(" \t\r\n", s->text[s->len - 1]))
		s->len--;
	if (s->len)
		return 0;
	secret_free(s);
	return error_fail(error, -EINVAL, "the file of the token to enrol by is empty");
}

int enroller_open(struct enroller **out, const struct enroller_config *config, struct error *error)
{
	struct enroller *en = mem_zalloc(1, sizeof(*en));
	uint8_t public_key[ENROLMENT_PUBLIC_LEN];
	struct secret credential;
	int rc = sodium_init() < 0 ? -EIO : 0;

	en->kind = config->kind;
	if (!rc)
		rc = keyring_open(&en->key_place, config->aggregator_key_path, error);
	if (!rc)
		rc = read_public_key(en, public_key, error);
	if (!rc)
		rc = keyring_open(&en->credential_place, config->credential_path, error);
	if (!rc)
		rc = read_credential(en, &credential, error);
	if (rc) {
		enroller_close(en);
		return rc;
	}
	secret_free(&credential);
	*out = en;
	return 0;
}

void enroller_close(struct enroller *en)
{
	if (!en)
		return;
	keyring_close(en->key_place);
	keyring_close(en->credential_place);
	free(en);
}

/* --- one aggregator --------------------------------------------------------------------------- */

int enrolling_ask(struct enrolling *e, const struct enroller *en, const char *node,
		  const uint8_t run[FRAME_RUN_LEN], int64_t wall_ns, struct buf *frame,
		  struct error *error)
{
	struct enrolment ask = {.kind = en->kind, .stamp_ns = (uint64_t)(wall_ns + e->ahead_ns)};
	struct secret credential;
	int rc = read_public_key(en, e->public_key, error);

	if (!rc)
		rc = read_credential(en, &credential, error);
	if (rc)
		return rc;
	e->renew = false;
	crypto_box_keypair(ask.reply_key, e->reply_secret);
	memcpy(ask.node, node, strlen(node) + 1);
	memcpy(ask.run, run, sizeof(ask.run));
	ask.credential = (struct span){(const uint8_t *)credential.text, credential.len};
	enrolment_seal(frame, &e->header, e->public_key, &ask);
	secret_free(&credential);
	return 0;
}

static void take_key(struct enrolling *e, const struct enrolment_answer *a, int64_t mono_ns)
{
	int64_t half_ns = a->lifetime_s * NS_PER_SEC / 2;

	e->keys.keys[0] = e->keys.keys[e->keys.count ? e->keys.count - 1 : 0];
	e->keys.count += e->keys.count < 2;
	e->keys.keys[e->keys.count - 1] = a->key;
	e->doubt = e->refused = false;
	e->refusals = 0;
	e->fresh = true;
	if (!e->renew)
		e->due_ns = mono_ns + half_ns - half_ns / 4 * randombytes_uniform(1024) / 1024;
}

static enum enrolling_result obey(struct enrolling *e, const struct enrolment_answer *a,
				  int64_t mono_ns, int64_t wall_ns, struct error *error)
{
	int64_t pause_ns = a->wait_ms * NS_PER_MS;
	bool again = e->stale;

	e->stale = a->status == ENROLMENT_STALE;
	switch (a->status) {
	case ENROLMENT_DONE:
		take_key(e, a, mono_ns);
		return ENROLLING_ENROLLED;
	case ENROLMENT_STALE:
		e->due_ns = again ? mono_ns + PAUSE_LEAST_NS : mono_ns;
		e->ahead_ns = (int64_t)a->stamp_ns - wall_ns;
		if (!again)
			return ENROLLING_STALE;
		return error_fail(
			error, ENROLLING_REFUSED,
			"the aggregator refuses the time of enrolments: its clock or this "
			"node's is set back and forth, or another agent enrols as this node");
	default:
		/* The aggregator lives: the key that it gave is not lost. */
		e->doubt = false;
		e->refused = true;
		if (a->status == ENROLMENT_REFUSED && e->refusals++)
			pause_ns <<= e->refusals < 4 ? e->refusals - 1 : 3;
		e->due_ns = mono_ns + int_max(pause_ns, PAUSE_LEAST_NS);
		return error_fail(error, ENROLLING_REFUSED, "%s", a->reason);
	}
}

enum enrolling_result enrolling_take(struct enrolling *e, const struct buf *answer, int64_t mono_ns,
				     int64_t wall_ns, struct error *error)
{
	enum enrolling_result result = ENROLLING_BAD_ANSWER;
	struct enrolment_answer a;

	if (enrolment_answer_open(answer->data, answer->len, &e->header, e->public_key,
				  e->reply_secret, &a, error))
		return result;
	e->waiting = false;
	sodium_memzero(e->reply_secret, sizeof(e->reply_secret));
	result = obey(e, &a, mono_ns, wall_ns, error);
	sodium_memzero(&a, sizeof(a));
	return result;
}

void enrolling_doubt(struct enrolling *e, int64_t mono_ns)
{
	e->doubt = true;
	if (!e->refused && e->due_ns > mono_ns)
		e->due_ns = mono_ns;
}
