/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread answers, one question at a time, which is how a scheduler asks. What it is told and
 * what it remembers is under a lock; an answer that is kept waits for a condition, and with it the
 * thread.
 */
#include "tests/extender_tap.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

enum hold { HOLD_NO, HOLD_NEXT, HOLD_NOW };

struct extender_tap {
	int port, target_port;
	int other_port; /* 0: none */
	struct MHD_Daemon *daemon;
	CURL *curl; /* of the thread */
	pthread_mutex_t lock;
	pthread_cond_t changed;

	/* under lock */
	bool frozen;
	struct buf scores; /* while frozen: of the first pod; empty: none yet */
	enum hold hold;
	pid_t asker;
	cJSON *answers; /* owned; of prioritize, by the pod's name */
};

static size_t collect(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

/* The status; 0: no answer. */
static long pass_on(struct extender_tap *t, int port, const char *path, const char *question,
		    struct buf *answer)
{
	char *url = mem_printf("http://127.0.0.1:%d%s", port, path);
	long status = 0;

	curl_easy_setopt(t->curl, CURLOPT_URL, url);
	curl_easy_setopt(t->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(t->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(t->curl, CURLOPT_TIMEOUT, 30L);
	curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, question);
	curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, http_json_headers());
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, answer);
	if (curl_easy_perform(t->curl) == CURLE_OK)
		curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	free(url);
	return status;
}

static void keep_first(struct buf *first, struct buf *answer)
{
	if (!first->len)
		buf_add(first, answer->data, answer->len);
	buf_clear(answer);
	buf_add(answer, first->data, first->len);
}

static void remember(struct extender_tap *t, const cJSON *question, const char *answer)
{
	const char *pod = cJSON_GetStringValue(json_at(question, "Pod.metadata.name"));

	cJSON_DeleteItemFromObjectCaseSensitive(t->answers, pod);
	cJSON_AddItemToObject(t->answers, pod, cJSON_Parse(answer));
}

static void wait_while_held(struct extender_tap *t)
{
	if (t->hold != HOLD_NEXT)
		return;
	kill(t->asker, SIGSTOP);
	t->hold = HOLD_NOW;
	while (t->hold == HOLD_NOW)
		pthread_cond_wait(&t->changed, &t->lock);
}

static void swap(struct extender_tap *t)
{
	int port = t->target_port;

	t->target_port = t->other_port;
	t->other_port = port;
}

static void ask(struct extender_tap *t, const char *path, const char *body, long *status,
		struct buf *answer)
{
	cJSON *question = cJSON_Parse(body);
	char *text;

	pthread_mutex_lock(&t->lock);
	if (t->frozen)
		cJSON_DeleteItemFromObjectCaseSensitive(
			cJSON_GetObjectItem(cJSON_GetObjectItem(question, "Pod"), "metadata"),
			"uid");
	pthread_mutex_unlock(&t->lock);
	text = cJSON_PrintUnformatted(question);
	if (t->other_port && strstr(path, "filter"))
		swap(t);
	*status = pass_on(t, t->target_port, path, text, answer);
	if (!*status && t->other_port)
		*status = pass_on(t, t->other_port, path, text, answer);
	if (*status == 200 && strstr(path, "prioritize")) {
		pthread_mutex_lock(&t->lock);
		if (t->frozen)
			keep_first(&t->scores, answer);
		remember(t, question, answer->data);
		wait_while_held(t);
		pthread_mutex_unlock(&t->lock);
	}
	free(text);
	cJSON_Delete(question);
}

static enum MHD_Result respond(struct MHD_Connection *connection, long status, struct buf *body)
{
	size_t len = body->len;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, buf_take(body, NULL), MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	result = MHD_queue_response(connection,
				    status ? (unsigned int)status : MHD_HTTP_BAD_GATEWAY, response);
	MHD_destroy_response(response);
	return result;
}

/* First with the head of a question, then with pieces of its body, then with none. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **kept)
{
	struct buf *body = *kept, answer = BUF_INIT;
	long status;

	(void)method;
	(void)version;
	if (!body) {
		*kept = mem_zalloc(1, sizeof(*body));
		return MHD_YES;
	}
	if (*len) {
		buf_add(body, data, *len);
		*len = 0;
		return MHD_YES;
	}
	ask(ctx, path, body->data, &status, &answer);
	return respond(connection, status, &answer);
}

static void on_end(void *ctx, struct MHD_Connection *connection, void **kept,
		   enum MHD_RequestTerminationCode code)
{
	struct buf *body = *kept;

	(void)ctx;
	(void)connection;
	(void)code;
	if (body)
		buf_fini(body);
	free(body);
}

struct extender_tap *extender_tap_start(int target_port)
{
	struct extender_tap *t = mem_zalloc(1, sizeof(*t));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	t->target_port = target_port;
	t->port = free_port();
	address.sin_port = htons((uint16_t)t->port);
	t->curl = curl_easy_init();
	t->answers = cJSON_CreateObject();
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, (uint16_t)t->port, NULL, NULL,
				     on_request, t, MHD_OPTION_SOCK_ADDR, &address,
				     MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
	if (!t->daemon) {
		perror("extender tap");
		abort();
	}
	return t;
}

void extender_tap_stop(struct extender_tap *t)
{
	if (!t)
		return;
	extender_tap_release(t);
	MHD_stop_daemon(t->daemon);
	curl_easy_cleanup(t->curl);
	cJSON_Delete(t->answers);
	buf_fini(&t->scores);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void extender_tap_alternate(struct extender_tap *t, int other_port)
{
	t->other_port = other_port;
}

int extender_tap_port(const struct extender_tap *t)
{
	return t->port;
}

void extender_tap_freeze(struct extender_tap *t, bool freeze)
{
	pthread_mutex_lock(&t->lock);
	t->frozen = freeze;
	buf_clear(&t->scores);
	pthread_mutex_unlock(&t->lock);
}

cJSON *extender_tap_priorities(struct extender_tap *t, const char *pod)
{
	cJSON *found;

	pthread_mutex_lock(&t->lock);
	found = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(t->answers, pod), true);
	pthread_mutex_unlock(&t->lock);
	return found;
}

void extender_tap_hold(struct extender_tap *t, pid_t asker)
{
	pthread_mutex_lock(&t->lock);
	t->hold = HOLD_NEXT;
	t->asker = asker;
	pthread_mutex_unlock(&t->lock);
}

bool extender_tap_holds(struct extender_tap *t)
{
	bool holds;

	pthread_mutex_lock(&t->lock);
	holds = t->hold == HOLD_NOW;
	pthread_mutex_unlock(&t->lock);
	return holds;
}

void extender_tap_release(struct extender_tap *t)
{
	pthread_mutex_lock(&t->lock);
	if (t->hold == HOLD_NOW)
		kill(t->asker, SIGCONT);
	t->hold = HOLD_NO;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}
