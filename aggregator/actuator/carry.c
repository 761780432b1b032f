/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, each fenced by the lease: none begins when the lease was not renewed for 6 s, and each
 * write ends within 4 s, or 8 s if a 401 repeats it. The field manager names the transition of the
 * lease. A node is patched under the resourceVersion that the step has read, an eviction has the
 * uid as its precondition.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/edge.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"

#define WRITE_MS 4000L

enum { ANSWER_MAX = 1 << 30 };

int edge_open(struct edge *e, const struct kube_config *config, const atomic_bool *stopping,
	      struct error *error)
{
	*e = (struct edge){.call = {.answer_max = ANSWER_MAX, .stopping = stopping}};
	return kube_call_open(&e->call, config, WRITE_MS, error);
}

void edge_close(struct edge *e)
{
	edge_end_step(e);
	edge_forget(e);
	free(e->marked);
	free(e->owners);
	kube_call_close(&e->call);
}

/* --- requests --------------------------------------------------------------------------------- */

char *edge_keep(struct edge *e, char *text)
{
	struct edge_heap *h = &e->heap;

	return ARRAY_ADD(h->texts, h->text_count) = text;
}

cJSON *edge_parse(struct edge *e, const char *text, size_t len)
{
	struct edge_heap *h = &e->heap;
	cJSON *doc = cJSON_ParseWithLength(text, len);

	if (!doc)
		return NULL;
	return ARRAY_ADD(h->docs, h->doc_count) = doc;
}

static void ask(struct edge *e, enum kube_method method, const char *path, const struct buf *body,
		long timeout_ms, struct error *error)
{
	curl_easy_setopt(e->call.handle, CURLOPT_TIMEOUT_MS, timeout_ms);
	e->status = kube_call_send(&e->call, method, path, body, error);
	if (e->status == 401)
		kube_session_unauthorized(e->call.session);
}

cJSON *edge_get(struct edge *e, const char *path, long timeout_ms, struct error *error)
{
	cJSON *doc = NULL;

	ask(e, KUBE_GET, path, NULL, timeout_ms, error);
	if (!e->status)
		return NULL;
	doc = edge_parse(e, e->call.answer.data, e->call.answer.len);
	if (e->status == 200 && doc)
		return doc;
	error_set(error, "GET %.*s: HTTP %ld: %.200s", (int)strcspn(path, "?"), path, e->status,
		  document_text_or(doc, "message", ""));
	return NULL;
}

void edge_drop(struct edge *e)
{
	cJSON_Delete(e->heap.docs[--e->heap.doc_count]);
}

void edge_get_text(struct edge *e, const char *path, long timeout_ms, struct error *error)
{
	ask(e, KUBE_GET, path, NULL, timeout_ms, error);
	if (e->status && e->status != 200)
		error_set(error, "GET %.*s: HTTP %ld", (int)strcspn(path, "?"), path, e->status);
}

static bool is_fenced(struct edge *e)
{
	struct lease_state lease;

	if (!e->lease)
		return false;
	lease_get(e->lease, &lease);
	return !lease.held || lease.transitions != e->transitions ||
	       clock_mono_ns() >= lease.until_ns;
}

long edge_send(struct edge *e, enum kube_method method, const char *path, const struct buf *body,
	       const char **answer)
{
	struct error why = {""};

	e->status = 0;
	e->said = NULL;
	if (is_fenced(e))
		error_set(&why, "the lease was not renewed");
	else
		ask(e, method, path, body, WRITE_MS, &why);
	if (e->status)
		e->said = edge_parse(e, e->call.answer.data, e->call.answer.len);
	*answer = document_text(e->said, "message");
	if (!*answer)
		*answer = edge_keep(e, mem_strdup(why.text));
	return e->status;
}

enum act_result edge_result(long status, const char *answer)
{
	if (status / 100 == 2)
		return ACT_DONE;
	if (status == 404 || status == 409)
		return ACT_GONE;
	if (status == 429)
		return ACT_NOT_YET;
	if (status / 100 == 4 && status != 401 && status != 408)
		return ACT_NEVER;
	return strstr(answer, "PodDisruptionBudget") ? ACT_NEVER : ACT_UNKNOWN;
}

/* --- actions ---------------------------------------------------------------------------------- */

/* The other taints as they are: a merge patch replaces the list. */
static void write_taints(struct jsonw *w, const cJSON *node, bool tainted)
{
	jsonw_key_array(w, "taints");
	for (const cJSON *t = document_first(node, "spec.taints"); t; t = t->next) {
		if (document_is(t, "key", MARK_TAINT))
			continue;
		jsonw_object_open(w);
		for (const cJSON *m = t->child; m; m = m->next)
			if (cJSON_IsString(m))
				jsonw_key_string(w, m->string, m->valuestring);
		jsonw_object_close(w);
	}
	if (tainted) {
		jsonw_object_open(w);
		jsonw_key_string(w, "key", MARK_TAINT);
		jsonw_key_string(w, "effect", "NoSchedule");
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_patch(const struct act_action *a, const cJSON *node, struct buf *body)
{
	struct buf mark = BUF_INIT;
	struct jsonw w;

	mark_write(&a->mark, &mark);
	jsonw_begin(&w, body);
	jsonw_key_object(&w, "metadata");
	jsonw_key_string(&w, "resourceVersion",
			 document_text_or(node, "metadata.resourceVersion", ""));
	jsonw_key_object(&w, "annotations");
	jsonw_key_string(&w, MARK_ANNOTATION, mark.data);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	jsonw_key_object(&w, "spec");
	write_taints(&w, node, a->tainted);
	if (a->cordon == ACT_CORDON)
		jsonw_key_bool(&w, "unschedulable", true);
	if (a->cordon == ACT_CORDON_ENDS)
		jsonw_key_null(&w, "unschedulable");
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	buf_fini(&mark);
}

static void write_eviction(const struct edge *e, const struct eviction *m, struct buf *body)
{
	struct jsonw w;

	jsonw_begin(&w, body);
	jsonw_key_string(&w, "apiVersion", e->eviction_api);
	jsonw_key_string(&w, "kind", "Eviction");
	jsonw_key_object(&w, "metadata");
	jsonw_key_string(&w, "name", m->name);
	jsonw_key_string(&w, "namespace", m->namespace);
	jsonw_object_close(&w);
	jsonw_key_object(&w, "deleteOptions");
	jsonw_key_object(&w, "preconditions");
	jsonw_key_string(&w, "uid", m->uid);
	jsonw_object_close(&w);
	if (e->dry_run) {
		jsonw_key_array(&w, "dryRun");
		jsonw_string(&w, "All");
		jsonw_array_close(&w);
	}
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}

static long request(struct edge *e, enum kube_method method, char *plain, const struct buf *body,
		    const char **answer)
{
	/* The query of every write. */
	char *path = mem_printf("%s?fieldManager=evenkeel-actuator-%" PRId64 "%s", plain,
				e->transitions, e->dry_run ? "&dryRun=All" : "");
	long status = edge_send(e, method, path, body, answer);

	free(path);
	free(plain);
	return status;
}

void edge_tell(struct edge *e, const struct object_event *event)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	int64_t now_ns = clock_wall_ns();
	char *name = mem_printf("evenkeel-actuator.%" PRIx64, (uint64_t)now_ns);
	const char *answer;
	bool done;

	event_writer_create(event, "evenkeel-actuator", name, now_ns, &path, &body);
	done = request(e, KUBE_POST, path.data, &body, &answer) / 100 == 2;
	if (!done && !e->silent)
		log_warn("no Events are written (HTTP %ld): %s", e->status, answer);
	e->silent = !done;
	buf_fini(&body);
	free(name);
}

enum act_result edge_carry_out(struct edge *e, const struct act_action *a, const char **answer)
{
	const struct eviction *m = a->pod;
	struct buf body = BUF_INIT;
	enum kube_method method = KUBE_DELETE;
	enum act_result result;
	char *path;
	long status;
	bool warns;

	if (a->kind == ACT_EVICT) {
		method = KUBE_POST;
		path = mem_printf("/api/v1/namespaces/%s/pods/%s/eviction", m->namespace, m->name);
		write_eviction(e, m, &body);
	} else {
		path = mem_printf("/api/v1/nodes/%s", a->node);
		if (a->kind == ACT_PATCH_NODE) {
			method = KUBE_MERGE;
			write_patch(a, e->node_docs[edge_find_node(e, a->node) - e->nodes], &body);
		} else {
			buf_printf(&body, "{\"preconditions\":{\"uid\":\"%s\"}}", a->uid);
		}
	}
	status = request(e, method, path, &body, answer);
	result = edge_result(status, *answer);
	buf_fini(&body);
	warns = a->mark.phase == MARK_ROLLED_BACK;
	if (result == ACT_DONE && a->kind != ACT_EVICT)
		edge_tell(e, &(struct object_event){
				     .api_version = "v1",
				     .kind = "Node",
				     .namespace = "",
				     .name = a->node,
				     .uid = a->node, /* as kubelets do: kubectl finds them by it */
				     .reason = warns ? "EvenkeelRolledBack" : "EvenkeelDrain",
				     .note = a->text.text,
				     .warning = warns,
			     });
	return result;
}

void edge_end_step(struct edge *e)
{
	struct edge_heap *h = &e->heap;

	while (h->doc_count)
		cJSON_Delete(h->docs[--h->doc_count]);
	while (h->text_count)
		free(h->texts[--h->text_count]);
	free(h->docs);
	free(h->texts);
	verify_plan_fini(&e->offer);
	verify_plan_fini(&e->proof);
	free(e->nodes);
	free(e->node_docs);
	free(e->ready);
	free(e->uses);
	memset(&e->said, 0, sizeof(*e) - offsetof(struct edge, said));
}
