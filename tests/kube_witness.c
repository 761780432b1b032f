/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the server writes what tests read, under the lock. Pods are told apart by their
 * names.
 */
#include "tests/kube_witness.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/stack.h"

struct kube_witness {
	struct MHD_Daemon *daemon; /* fixed after start */
	pthread_mutex_t lock;
	cJSON *offered; /* under lock: by pod, the names of nodes */
};

/*
 * ExtenderArgs in, ExtenderFilterResult out; whoever is refused must be named, or is thought to be
 * beyond help.
 */
static char *judge(struct kube_witness *w, const char *text)
{
	cJSON *args = cJSON_Parse(text), *result = cJSON_CreateObject(), *refused;
	cJSON *names = cJSON_DetachItemFromObject(args, "NodeNames");
	const char *pod = cJSON_GetStringValue(json_at(args, "Pod.metadata.name"));
	const cJSON *name;
	char *answer;

	cJSON_AddArrayToObject(result, "NodeNames");
	refused = cJSON_AddObjectToObject(result, "FailedNodes");
	cJSON_ArrayForEach (name, names) {
		cJSON_AddStringToObject(refused, name->valuestring, "only asked");
	}
	if (pod && names) {
		pthread_mutex_lock(&w->lock);
		cJSON_DeleteItemFromObjectCaseSensitive(w->offered, pod);
		cJSON_AddItemToObject(w->offered, pod, names);
		pthread_mutex_unlock(&w->lock);
	} else {
		cJSON_AddStringToObject(result, "Error", "neither a pod nor names of nodes");
		cJSON_Delete(names);
	}
	answer = cJSON_PrintUnformatted(result);
	cJSON_Delete(args);
	cJSON_Delete(result);
	return answer;
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *len, void **request)
{
	struct buf *body = *request;
	struct MHD_Response *response;
	enum MHD_Result queued;
	char *text;

	(void)url;
	(void)method;
	(void)version;
	if (!body) {
		*request = mem_zalloc(1, sizeof(*body));
		return MHD_YES;
	}
	if (*len) {
		buf_add(body, data, *len);
		*len = 0;
		return MHD_YES;
	}
	text = judge(cls, body->data ? body->data : "");
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	queued = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return queued;
}

static void forget(void *cls, struct MHD_Connection *connection, void **request,
		   enum MHD_RequestTerminationCode how)
{
	(void)cls;
	(void)connection;
	(void)how;
	if (*request)
		buf_fini(*request);
	free(*request);
	*request = NULL;
}

struct kube_witness *kube_witness_start(void)
{
	struct kube_witness *w = mem_zalloc(1, sizeof(*w));
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	pthread_mutex_init(&w->lock, NULL);
	w->offered = cJSON_CreateObject();
	w->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, w,
				     MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_NOTIFY_COMPLETED,
				     forget, NULL, MHD_OPTION_END);
	if (!w->daemon) {
		fprintf(stderr, "no server on the loopback\n");
		abort();
	}
	return w;
}

void kube_witness_stop(struct kube_witness *w)
{
	if (!w)
		return;
	MHD_stop_daemon(w->daemon);
	cJSON_Delete(w->offered);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

char *kube_witness_config(const struct kube_witness *w)
{
	return mem_printf("percentageOfNodesToScore: 100\n"
			  "profiles:\n"
			  "- schedulerName: default-scheduler\n"
			  "  plugins: {postFilter: {disabled: [{name: \"*\"}]}}\n"
			  "extenders:\n"
			  "- {urlPrefix: \"http://127.0.0.1:%d\", filterVerb: filter, "
			  "nodeCacheCapable: true, "
			  "httpTimeout: 30s}\n",
			  MHD_get_daemon_info(w->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
}

cJSON *kube_witness_offered(struct kube_witness *w, const char *pod)
{
	cJSON *names;

	pthread_mutex_lock(&w->lock);
	names = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(w->offered, pod), true);
	pthread_mutex_unlock(&w->lock);
	return names;
}
