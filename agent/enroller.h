/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side of enrolment (shared/enrolment.h): asks an aggregator for a key of this node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/enrolment.h"
#include "shared/error.h"
#include "shared/keyring.h"

struct enroller_config {
	const char *aggregator_key_path; /* NULL: no enrolment */
	const char *credential_path;
	enum credential_kind kind;
};

/* The files: the aggregators' public key and the credential. Each enrolment reads them. */
struct enroller;

/* Opens the files' folders and reads both. -errno with the reason. */
int enroller_open(struct enroller **en, const struct enroller_config *config, struct error *error);
void enroller_close(struct enroller *en); /* NULL is allowed */

/* With one aggregator. Zeroes: not enrolled, and due. Its user sends and times. */
struct enrolling {
	struct keyring keys; /* of this node: the former and the present one, which seals */
	bool refused; /* the last enrolment, or it has to wait */
	unsigned refusals; /* since the last key, but for those that had to wait */
	bool stale; /* the last enrolment, by its stamp */
	bool doubt; /* the aggregator may not know them */
	bool renew; /* due again whatever answer comes: the files may have changed */
	bool fresh; /* no frame under the present key was answered */
	int64_t due_ns; /* monotonic: the next enrolment */
	int64_t ahead_ns; /* of the stamps, before this machine's clock */

	bool waiting; /* for an answer */
	uint32_t request; /* its user's, as are the next two */
	uint64_t connection;
	int64_t sent_ns;
	struct frame_header header; /* of the enrolment under way */
	uint8_t public_key[ENROLMENT_PUBLIC_LEN]; /* that it was sealed to */
	uint8_t reply_secret[KEY_LEN];
};

enum enrolling_result {
	ENROLLING_BAD_ANSWER, /* still waiting */
	ENROLLING_ENROLLED,
	ENROLLING_REFUSED, /* or later; the reason says why */
	ENROLLING_STALE, /* due again at once */
};

/* Appends an enrolment to *frame. -errno with the reason: a file cannot be read. */
int enrolling_ask(struct enrolling *e, const struct enroller *en, const char *node,
		  const uint8_t run[FRAME_RUN_LEN], int64_t wall_ns, struct buf *frame,
		  struct error *error);
enum enrolling_result enrolling_take(struct enrolling *e, const struct buf *answer, int64_t mono_ns,
				     int64_t wall_ns, struct error *error);
/* Frames get no answers: enrols at once, or after the pause of a refusal. */
void enrolling_doubt(struct enrolling *e, int64_t mono_ns);
