/* SPDX-License-Identifier: Apache-2.0 */
/* A session, the server that it asks, their certificates and a folder, for one test. */
#pragma once

#include <curl/curl.h>
#include <stdint.h>

#include "aggregator/edge/kube/session.h"
#include "shared/clock.h"
#include "tests/tls_server.h"

#define SECOND NS_PER_SEC

struct kube_scene {
	char *folder;
	struct tls_identity ca, other_ca;
	struct tls_identity server; /* for 127.0.0.1 and kubernetes.example */
	struct tls_identity elsewhere; /* for kubernetes.example only */
	struct tls_identity ended;
	struct tls_identity alice, bob; /* clients */
	struct kube_config config;
	struct kube_session *session;
	struct tls_server *https; /* NULL until kube_scene_serve() */
	struct tls_request seen; /* by the server, last */
	CURL *handle;
	int64_t now_ns; /* the time that sessions are told */
	struct error why;
	char error[CURL_ERROR_SIZE];
};

/* For cmocka. */
int kube_scene_setup(void **state);
int kube_scene_teardown(void **state);

/*
 * Starts the server (id NULL: plain HTTP), and lets the configuration lead to it and trust its
 * authority.
 */
void kube_scene_serve(struct kube_scene *s, const struct tls_identity *id, const char *client_ca);
/* A session in place of the former one; the result of kube_session_new(). */
int kube_scene_open(struct kube_scene *s);
/* One request: its status, or 0 with the reason in s->why. */
long kube_scene_get(struct kube_scene *s);
/* The test fails unless s->why has this text. */
void kube_scene_assert_says(const struct kube_scene *s, const char *text);

/* Files of the folder. Strings are the caller's; a file that is not there reads as "". */
char *kube_scene_path(const struct kube_scene *s, const char *name);
void kube_scene_write(const struct kube_scene *s, const char *name, const char *text);
char *kube_scene_read(const struct kube_scene *s, const char *name);
/* client.crt and client.key. */
void kube_scene_write_client(const struct kube_scene *s, const struct tls_identity *id);
