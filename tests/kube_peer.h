/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An API server that does what it is told: a healthy, empty one, until a script says what a request
 * gets instead. HTTP/1.1 on the loopback, a thread per connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kube_peer;

enum peer_end {
	PEER_END, /* the answer is complete */
	PEER_CUT, /* the connection is reset in the middle of it */
	PEER_HOLD, /* it stays open: kube_peer_send() and others go on */
};

struct peer_answer {
	int status; /* 0: 200 */
	const char *headers; /* whole lines; NULL: none */
	const char *body; /* NULL: empty */
	size_t chunk; /* bytes that are sent at a time; 0: all */
	bool gzip;
	enum peer_end then;
};

struct kube_peer *kube_peer_new(void);
void kube_peer_free(struct kube_peer *p);
const char *kube_peer_url(const struct kube_peer *p);
/* Writes a kubeconfig whose cluster is the server, without credentials; fails the test if it cannot. */
void kube_peer_write_config(const struct kube_peer *p, const char *path);

/*
 * Requests are told apart by a part of their path, "" is all; the path of a write begins with its
 * method: "POST /api/v1/..". Unless a script says more, a POST gets 201 and other writes 404.
 */

/*
 * The next request with it gets that instead, after what was scripted before. Everything is copied.
 */
void kube_peer_script(struct kube_peer *p, const char *part, const struct peer_answer *a);
/*
 * Answers that are held and match: more of them, the end of them, or a reset. How many there were.
 */
int kube_peer_send(struct kube_peer *p, const char *part, const char *text);
int kube_peer_end(struct kube_peer *p, const char *part);
int kube_peer_cut(struct kube_peer *p, const char *part);
/* Who does not send "Bearer TOKEN" gets 401; NULL: anybody is welcome. */
void kube_peer_require_token(struct kube_peer *p, const char *token);
/* Connections are refused, and those there are reset; or all is as before, on the same port. */
void kube_peer_refuse(struct kube_peer *p, bool refuse);
/*
 * A server without the group: discovery does not have it, and its paths are 404. NULL: it has all.
 */
void kube_peer_lack(struct kube_peer *p, const char *group);

/* How many requests there were. */
size_t kube_peer_count(struct kube_peer *p, const char *part);
/* Waits until there were so many, 20 s at most; whether there were. */
bool kube_peer_await(struct kube_peer *p, const char *part, size_t count);
/* The path of the i-th; "" when there was none. The caller frees it. */
char *kube_peer_path(struct kube_peer *p, const char *part, size_t i);
/* Its headers or its body, likewise. */
char *kube_peer_headers(struct kube_peer *p, const char *part, size_t i);
char *kube_peer_body(struct kube_peer *p, const char *part, size_t i);
/* Waits until an answer is held that matches; whether there is. */
bool kube_peer_await_held(struct kube_peer *p, const char *part);
