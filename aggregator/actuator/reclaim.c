/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator reads plans every LIST_EVERY_NS through the API server (GET quotas/reclaim of the
 * group). It ignores plans with a member missing, and plans whose pod the kube-scheduler may still
 * serve by its own preemption: pods with a nominated node, or unschedulable for less than RIPE_S.
 * Each step reads the pods of rescues one by one; a pod that cannot be read counts as unchanged.
 *
 * A pod whose room is claimed, and each victim, get an Event. A dry run claims nothing, since a claim
 * keeps other pods off the room.
 */
#include "aggregator/actuator/reclaim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/log.h"
#include "shared/mem.h"

#define LIST_EVERY_NS (5 * NS_PER_SEC)
#define READ_MS	      10000L
#define RIPE_S	      5.0

/* --- plans ------------------------------------------------------------------------------------ */

static char *copy(const cJSON *json, const char *key)
{
	const char *text = document_text(json, key);

	return text ? mem_strdup(text) : NULL;
}

/* False: it lacks a member. */
static bool read_victim(const cJSON *json, struct reclaim_victim *out)
{
	out->grace_ns = document_count(json, "graceSeconds", 86400, 0) * NS_PER_SEC;
	out->pod.namespace = copy(json, "namespace");
	out->pod.name = copy(json, "name");
	out->pod.uid = copy(json, "uid");
	return out->pod.namespace && out->pod.name && out->pod.uid;
}

/* False: it lacks a member. */
static bool read_plan(const cJSON *json, bool is_claim, struct reclaim_rescue *out)
{
	int victims = cJSON_GetArraySize(document_at(json, "victims"));
	bool whole;

	*out = (struct reclaim_rescue){
		.plan = is_claim ? mem_strdup(RECLAIM_TAKEN_OVER) : copy(json, "plan"),
		.node = copy(json, "node"),
		.namespace = copy(json, "namespace"),
		.name = copy(json, "name"),
		.uid = copy(json, "uid"),
		.victims = mem_zalloc((size_t)victims + 1, sizeof(*out->victims)),
	};
	whole = out->plan && out->node && out->namespace && out->name && out->uid;
	for (const cJSON *v = document_first(json, "victims"); v && whole; v = v->next)
		whole = read_victim(v, &out->victims[out->victim_count++]);
	return whole;
}

static bool is_ripe(const cJSON *list, const cJSON *item)
{
	double waits_s = document_time(list, "time") - document_time(item, "unschedulable");

	return waits_s >= RIPE_S && !document_text(item, "nominatedNode");
}

struct reclaim_rescues reclaim_read_plans(const cJSON *list, const char *key)
{
	int size = cJSON_GetArraySize(document_at(list, key));
	struct reclaim_rescues plans = {mem_zalloc((size_t)size + 1, sizeof(*plans.of)), 0};
	bool claims = strcmp(key, "claims") == 0;

	for (const cJSON *item = document_first(list, key); item; item = item->next)
		if ((claims || is_ripe(list, item)) &&
		    !read_plan(item, claims, &plans.of[plans.count++]))
			reclaim_rescue_fini(&plans.of[--plans.count]);
	return plans;
}

/* --- pods ------------------------------------------------------------------------------------- */

struct reading {
	struct edge *edge;
	struct reclaim_seen *seen; /* owned */
	size_t count;
	struct error error; /* of the last that failed */
};

static void see(struct reading *r, const char *namespace, const char *name, const char *uid)
{
	char *path = mem_printf("/api/v1/namespaces/%s/pods/%s", namespace, name);
	struct error why = {""};
	const cJSON *pod = edge_get(r->edge, path, READ_MS, &why);
	struct reclaim_seen *seen;

	free(path);
	if (!pod && r->edge->status != 404) {
		r->error = why;
		return;
	}
	seen = &ARRAY_ADD(r->seen, r->count);
	*seen = (struct reclaim_seen){
		.uid = uid,
		.gone = !pod || !document_is(pod, "metadata.uid", uid) || document_has_ended(pod),
		.ending = document_at(pod, "metadata.deletionTimestamp") != NULL,
		.node = document_text_or(pod, "spec.nodeName", ""),
		.why = document_text_or(document_find(pod, "status.conditions", "type",
						      "PodScheduled"),
					"message", ""),
	};
}

static void see_all(struct reading *r, const struct reclaim_state *s)
{
	for (size_t i = 0; i < s->rescues.count; i++) {
		const struct reclaim_rescue *rescue = &s->rescues.of[i];

		see(r, rescue->namespace, rescue->name, rescue->uid);
		for (size_t k = 0; k < rescue->victim_count; k++) {
			const struct eviction *v = &rescue->victims[k].pod;

			if (!v->gone)
				see(r, v->namespace, v->name, v->uid);
		}
	}
}

/* --- actions ---------------------------------------------------------------------------------- */

static enum act_result claim(struct edge *e, const struct reclaim_rescue *r, const char **answer)
{
	struct buf body = BUF_INIT;
	struct jsonw w;

	if (e->dry_run)
		return ACT_DONE;
	jsonw_begin(&w, &body);
	jsonw_key_string(&w, "plan", r->plan);
	jsonw_key_string(&w, "namespace", r->namespace);
	jsonw_key_string(&w, "name", r->name);
	jsonw_key_string(&w, "uid", r->uid);
	jsonw_object_close(&w);
	edge_send(e, KUBE_POST, EDGE_GROUP "/quotas/reclaim/reservations", &body, answer);
	buf_fini(&body);
	return edge_result(e->status, *answer);
}

/* An Event of the pod; takes the note. */
static void tell(struct edge *e, const char *namespace, const char *name, const char *uid,
		 char *note)
{
	edge_tell(e, &(struct object_event){.api_version = "v1",
					    .kind = "Pod",
					    .namespace = namespace,
					    .name = name,
					    .uid = uid,
					    .reason = "EvenkeelReclaim",
					    .note = note});
	free(note);
}

static enum act_result evict(struct edge *e, const struct reclaim_rescue *r, struct eviction *v,
			     const char **answer)
{
	enum act_result result =
		edge_carry_out(e, &(struct act_action){.kind = ACT_EVICT, .pod = v}, answer);

	if (result == ACT_DONE)
		tell(e, v->namespace, v->name, v->uid,
		     mem_printf("pod %s/%s gets its room, whose quota is within its min",
				r->namespace, r->name));
	return result;
}

static void carry_out(struct reclaim *r, struct edge *e, const struct reclaim_action *a)
{
	struct reclaim_rescue *rescue = &r->state.rescues.of[a->rescue];
	const char *answer = "";
	enum act_result result =
		a->claims ? claim(e, rescue, &answer)
			  : evict(e, rescue, &rescue->victims[a->victim].pod, &answer);

	if (result != ACT_DONE)
		log_warn("%s for pod %s/%s: HTTP %ld: %s", a->claims ? "no claim" : "no eviction",
			 rescue->namespace, rescue->name, e->status, answer);
	else if (a->claims && !rescue->claimed_ns)
		tell(e, rescue->namespace, rescue->name, rescue->uid,
		     mem_printf("room on node %s is reserved for it: %zu pods are evicted",
				rescue->node, rescue->victim_count));
	act_reclaim_result(&r->state, a, result, answer, clock_mono_ns());
}

/* --- a step ----------------------------------------------------------------------------------- */

static const cJSON *list_plans(struct reclaim *r, struct edge *e, int64_t now_ns,
			       struct error *error)
{
	const cJSON *list;

	if (r->state.rescues.count == RECLAIM_RESCUES_MOST ||
	    (r->listed_ns && now_ns - r->listed_ns < LIST_EVERY_NS))
		return NULL;
	r->listed_ns = now_ns;
	list = edge_get(e, EDGE_GROUP "/quotas/reclaim", READ_MS, error);
	if (list)
		snprintf(e->eviction_api, sizeof(e->eviction_api), "%s",
			 document_text_or(list, "evictions", "policy/v1"));
	return list;
}

bool reclaim_run(struct reclaim *r, struct edge *e, bool paused, int64_t now_ns)
{
	struct reading reading = {.edge = e};
	struct reclaim_rescues plans, claims;
	struct reclaim_output out = {0};
	const cJSON *list;
	bool wrote;

	see_all(&reading, &r->state);
	list = list_plans(r, e, now_ns, &reading.error);
	plans = reclaim_read_plans(list, "items");
	claims = reclaim_read_plans(list, "claims");
	if (*reading.error.text && !r->failing)
		log_warn("reclaim: %s", reading.error.text);
	r->failing = *reading.error.text;
	act_reclaim_step(&r->state, &r->options,
			 &(struct reclaim_input){.plans = &plans,
						 .claims = &claims,
						 .seen = reading.seen,
						 .seen_count = reading.count,
						 .paused = paused,
						 .now_ns = now_ns},
			 &out);
	log_lines(out.narration.data);
	for (size_t i = 0; i < out.action_count; i++)
		carry_out(r, e, &out.actions[i]);
	wrote = out.action_count;
	free(out.actions);
	buf_fini(&out.narration);
	reclaim_rescues_fini(&plans);
	reclaim_rescues_fini(&claims);
	free(reading.seen);
	return wrote;
}

void reclaim_forget(struct reclaim *r)
{
	reclaim_state_fini(&r->state);
	r->listed_ns = 0;
}

void reclaim_write(const struct reclaim_state *s, struct jsonw *w)
{
	jsonw_key_array(w, "rescues");
	for (size_t i = 0; i < s->rescues.count; i++) {
		const struct reclaim_rescue *r = &s->rescues.of[i];

		jsonw_object_open(w);
		jsonw_key_string(w, "namespace", r->namespace);
		jsonw_key_string(w, "name", r->name);
		jsonw_key_string(w, "node", r->node);
		jsonw_key_uint(w, "evicted", r->evicted);
		jsonw_key_uint(w, "victims", r->victim_count);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}
