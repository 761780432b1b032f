/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd around api_route().
 *
 * Two event loops (event_loop.c) read requests and write answers (request.c, answer.c) and never
 * block. What a slow client has not sent or read waits in memory, not on a thread. A worker makes
 * the answer: the handler takes a view, writes the answer into memory and drops the view.
 *
 *     loop: request complete --> connection suspended --> worker: api_route() --> resumed
 *     loop: request_on_progress() once more <---------------------------------------'  --> answer
 *
 * Each kind of work (enum api_work) has workers of its own, which clients share round-robin
 * (workers.c): schedulers wait neither for simulations of a whole cluster nor for lists, and
 * simulations get less CPU. The loop answers health.
 *
 * Before that the connection manager (conn_manager.c) authorizes a request by its headers and
 * bounds the time of each step. A token that needs a review suspends the connection behind the
 * headers, for threads of their own; the library reports the headers once more after that.
 *
 * Bounds. Connections: CONNECTIONS_MOST, at most three quarters of what the limit of open files
 * leaves, so that agents get in; PER_CLIENT_MOST of one address, unless only this machine connects.
 * Memory: a body has the bound of its route (api_body_most()); bodies and answers together see
 * answer.c. Silence: CONN_IDLE_SECONDS. The library refuses bytes that are not HTTP, and headers
 * beyond its memory for a connection, itself.
 *
 * At a stop, requests that wait for a worker are refused; then the loops close every connection and
 * complete every request that began.
 */
#include "aggregator/edge/http/server.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aggregator/edge/http/http.h"
#include "shared/mem.h"

enum {
	CONNECTIONS_MOST = 16384,
	CONNECTIONS_LEAST = 64,
	DESCRIPTORS_KEPT = 256, /* for files, the database, the Kubernetes API, .. */
	PER_CLIENT_MOST = 2048,
	REVIEWS_MOST = 256, /* requests that wait for a review of their token */
};

static const struct workers_options works[API_WORKS] = {
	[API_WORK_SHORT] = {.threads = 2, .waiting_most = 4096},
	[API_WORK_LONG] = {.threads = 2, .waiting_most = 100, .nice = 10},
	[API_WORK_SCHEDULER] = {.threads = 2, .waiting_most = 256},
};

static unsigned int connection_limit(void)
{
	struct rlimit files;
	rlim_t left;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return CONNECTIONS_MOST;
	left = files.rlim_cur > DESCRIPTORS_KEPT ? files.rlim_cur - DESCRIPTORS_KEPT : 0;
	left = left / 4 * 3;
	return left < CONNECTIONS_LEAST	 ? CONNECTIONS_LEAST
	       : left > CONNECTIONS_MOST ? CONNECTIONS_MOST
					 : (unsigned int)left;
}

/* Tokens in clear are visible to the network; without credentials the whole API is. */
static int check_exposure(const struct http_server *s, const struct http_config *config,
			  struct error *error)
{
	bool tls = config->tls.certificate, certificates = tls && config->tls.client_ca;
	bool tokens = config->auth.token_file || config->auth.review_client;

	if (s->listener.loopback)
		return 0;
	if (tokens && !tls && !config->plain_tokens)
		return error_fail(
			error, -EINVAL,
			"tokens would travel in clear to %s: give --tls-cert and --tls-key, or "
			"--allow-plain-tokens where something else encrypts",
			s->listener.address);
	if (!tokens && !certificates && !config->insecure_open)
		return error_fail(error, -EINVAL,
				  "everybody who can connect to %s could read everything and make "
				  "reservations: give --token-file, --token-review or "
				  "--tls-client-ca, or --insecure-open where that is wanted",
				  s->listener.address);
	return 0;
}

static int start_workers(struct http_server *s, const struct http_config *config,
			 struct error *error)
{
	const struct review_client *client = config->auth.review_client;
	int rc = 0;

	for (int i = 0; i < API_WORKS && !rc; i++)
		if (works[i].threads)
			rc = workers_start(&s->workers[i], &works[i], error);
	if (!rc && client)
		rc = workers_start(&s->review_workers,
				   &(struct workers_options){client->at_once, REVIEWS_MOST, 0},
				   error);
	return rc;
}

static int start_loops(struct http_server *s, struct error *error)
{
	unsigned int most = connection_limit() / HTTP_LOOPS;
	int rc = 0;

	for (int i = 0; i < HTTP_LOOPS && !rc; i++)
		rc = event_loop_start(&s->loops[i], s, most, error);
	if (rc)
		error_prefix(error, "cannot start the HTTP server on %s", s->listener.address);
	return rc;
}

/* Workers first: they resume suspended connections. */
void http_stop(struct http_server *s)
{
	if (!s)
		return;
	workers_stop(s->review_workers);
	for (int i = 0; i < API_WORKS; i++)
		workers_stop(s->workers[i]);
	for (int i = 0; i < HTTP_LOOPS; i++)
		event_loop_stop(s->loops[i]);
	close(s->listener.fd);
	workers_free(s->review_workers);
	for (int i = 0; i < API_WORKS; i++)
		workers_free(s->workers[i]);
	conn_manager_stop(s->manager);
	free(s);
}

int http_start_with(struct http_server **out, const struct http_config *config, struct error *error)
{
	struct http_server *s = mem_zalloc(1, sizeof(*s));
	int rc = listen_open(&s->listener, config->listen, error);

	if (rc) {
		free(s);
		return rc;
	}
	s->ctx = config->ctx;
	rc = check_exposure(s, config, error);
	if (!rc)
		rc = conn_manager_start(&s->manager, config,
					s->listener.loopback ? UINT_MAX : PER_CLIENT_MOST,
					&s->ctx->counters->access, error);
	if (!rc)
		rc = start_workers(s, config, error);
	if (!rc) {
		uint64_t ways = 0;

		ways |= config->auth.token_file ? ACCESS_BY_TOKEN : 0;
		ways |= config->auth.review_client ? ACCESS_BY_REVIEW : 0;
		ways |= config->tls.certificate && config->tls.client_ca ? ACCESS_BY_CERTIFICATE
									 : 0;
		ways |= config->tls.certificate ? ACCESS_OVER_TLS : 0;
		ways |= s->listener.loopback ? 0 : ACCESS_FROM_AFAR;
		counter_set(&s->ctx->counters->access.ways, ways);
		rc = start_loops(s, error);
	}
	if (rc)
		http_stop(s);
	else
		*out = s;
	return rc;
}

void http_reload(struct http_server *s)
{
	conn_manager_reload(s->manager);
}

void http_set_front_proxy(struct http_server *s, struct front_proxy *p)
{
	conn_manager_set_front_proxy(s->manager, p);
}

const char *http_address(const struct http_server *s)
{
	return s->listener.address;
}

/* --- options ---------------------------------------------------------------------------------- */

static const char *bad_host(const struct option_list *hosts)
{
	struct host_name name;

	for (size_t i = 0; i < hosts->count; i++)
		if (!host_parse(hosts->items[i], strlen(hosts->items[i]), &name))
			return hosts->items[i];
	return NULL;
}

int access_options_check(const struct access_options *o, struct error *error)
{
	const char *bad = bad_host(&o->allowed_hosts);

	if (!o->certificate != !o->key)
		error_set(error, "--tls-cert and --tls-key: give both, or neither");
	else if (o->client_ca && !o->certificate)
		error_set(error, "--tls-client-ca: client certificates need TLS: give --tls-cert "
				 "and --tls-key");
	else if (o->front_proxy && !(o->token_review && o->certificate))
		error_set(error, "--front-proxy needs --tls-cert, to know the API server by its "
				 "certificate, and --token-review, to ask what its users may do");
	else if (o->audience && !o->token_review)
		error_set(error, "--token-audience needs --token-review: give that, too");
	else if (bad)
		error_set(error, "--allowed-host: \"%s\" is no host name", bad);
	else
		return 0;
	return -EINVAL;
}

void access_options_apply(const struct access_options *o, struct http_config *config)
{
	config->tls = (struct tls_files){o->certificate, o->key, o->client_ca, o->front_proxy};
	config->plain_tokens = o->plain_tokens;
	config->insecure_open = o->insecure_open;
	config->auth.allowed_hosts = &o->allowed_hosts;
	config->auth.token_file = o->token_file;
	config->auth.open_watcher = o->open_watcher;
	config->auth.requests_per_second = o->rate;
}
