/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is let in to the HTTP API: decides about one request by what it carries, apart from the
 * library that serves it.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_GATE_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "aggregator/api/access_review.h"
#include "aggregator/api/api.h"
#include "aggregator/edge/http/hosts.h"

struct gate_options {
	const char *token_file; /* NULL: none; borrowed, as all here */
	const struct access_reviewer *reviewer; /* NULL: nobody is asked */
	bool certificates; /* those of clients are looked at */
	bool open_watcher;
	double requests_per_second; /* of a client; 0: any number */
	const char *listen; /* the address that clients know, .. */
	const struct option_list *allowed_hosts; /* .. and other names of it; NULL: none */
};

/* What became of the certificate that a client showed. */
enum gate_certificate { GATE_CERTIFICATE_NONE, GATE_CERTIFICATE_GOOD, GATE_CERTIFICATE_BAD };

struct gate_request {
	const char *method, *path;
	/* Headers; NULL: there is none. */
	const char *authorization, *host, *origin, *content_type;
	const struct sockaddr *from;
	const struct sockaddr *to; /* NULL: not known */
	enum gate_certificate certificate;
	const char *certificate_fault; /* of a bad one */
	int64_t now_ns; /* monotonic */
};

enum gate_verdict {
	GATE_PASS,
	GATE_REFUSE,
	GATE_REVIEW, /* ask gate_review() once, where waiting does no harm, or gate_refuse_busy() */
};

/* What a refused client is told. */
struct gate_refusal {
	enum access_refusal reason;
	enum api_failure failure;
	int retry_after_s; /* 0: none */
	char text[384];
};

struct gate;

/*
 * Reads the token file. -ENOENT, -EACCES, -EPERM, -EINVAL with the reason. counters are borrowed.
 */
int gate_open(struct gate **g, const struct gate_options *options, struct access_counters *counters,
	      struct reason *reason);
void gate_close(struct gate *g); /* NULL is allowed */

/* Any thread; microseconds. *refusal is written with GATE_REFUSE, which is counted. */
enum gate_verdict gate_check(struct gate *g, const struct gate_request *rq,
			     struct gate_refusal *refusal);
/*
 * Any thread; may take seconds. GATE_PASS or GATE_REFUSE. now_ns: the time on the clock when it was
 * answered.
 */
enum gate_verdict gate_review(struct gate *g, const struct gate_request *rq,
			      struct gate_refusal *refusal);
/* Instead, where nobody has time for that: the refusal that says so. */
void gate_refuse_busy(struct gate *g, struct gate_refusal *refusal);
/* Whether a Host header (NULL: there is none) names this server, at which the client asked `to`. */
bool gate_is_named(const struct gate *g, const char *host, const struct sockaddr *to);
/* Who asks: the token by which the request was admitted, else the address (peer.h). */
uint64_t gate_client(const struct gate *g, const struct gate_request *rq, bool admitted);
/*
 * Reads the token file again. What it held stays in force where that fails, with the reason. 1: it
 * changed, 0: not.
 */
int gate_reload(struct gate *g, struct reason *reason);

#endif
