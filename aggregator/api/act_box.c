/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/act_box.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/document.h"
#include "shared/mem.h"

enum { REASONS_MOST = 16 }; /* of a request; those behind them are dropped */
enum state { FREE, WAITING, TAKEN, REFUSED, DONE };

static const char *const states[] = {
	[WAITING] = "waiting",
	[TAKEN] = "taken",
	[REFUSED] = "refused",
	[DONE] = "done",
};

struct request {
	enum state state;
	bool dry_run;
	int64_t number, at_ns; /* number: Unix ns, made unique; the id */
	char *action, *user; /* owned */
	cJSON *nodes, *reasons; /* owned; NULL: none */
};

struct act_box {
	pthread_mutex_t lock;
	/* under lock */
	struct request requests[ACT_REQUESTS_MOST]; /* in order of their numbers, then FREE */
	size_t count;
	int64_t last; /* number */
	cJSON *report; /* owned; NULL: none yet */
	int64_t reported_ns;
	uint64_t changes;
};

static void forget(struct request *r)
{
	free(r->action);
	free(r->user);
	cJSON_Delete(r->nodes);
	cJSON_Delete(r->reasons);
	*r = (struct request){.state = FREE};
}

struct act_box *act_box_new(void)
{
	struct act_box *b = mem_zalloc(1, sizeof(*b));

	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void act_box_free(struct act_box *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++)
		forget(&b->requests[i]);
	cJSON_Delete(b->report);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void write_id(const struct request *r, char id[ACT_ID_LEN])
{
	snprintf(id, ACT_ID_LEN, "%016llx", (unsigned long long)r->number);
}

/* --- requests; all under lock ----------------------------------------------------------------- */

static void expire(struct act_box *b, int64_t now_ns)
{
	for (size_t i = 0; i < b->count; i++) {
		struct request *r = &b->requests[i];

		if (r->state != WAITING || now_ns - r->at_ns <= ACT_WAIT_NS)
			continue;
		r->state = REFUSED;
		r->reasons = cJSON_CreateArray();
		cJSON_AddItemToArray(r->reasons, cJSON_CreateString("no actuator has asked"));
		b->changes++;
	}
}

static size_t count_waiting(const struct act_box *b)
{
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++)
		count += b->requests[i].state == WAITING;
	return count;
}

/* The place behind all others. The oldest finished one makes room, or the oldest taken one. */
static struct request *make_room(struct act_box *b)
{
	size_t goes = 0;

	if (b->count == ACT_REQUESTS_MOST) {
		while (goes < b->count && b->requests[goes].state < REFUSED)
			goes++;
		for (size_t i = 0; goes == b->count; i++)
			if (b->requests[i].state == TAKEN)
				goes = i;
		forget(&b->requests[goes]);
		b->count--;
		memmove(&b->requests[goes], &b->requests[goes + 1],
			(b->count - goes) * sizeof(b->requests[0]));
	}
	return &b->requests[b->count++];
}

int act_box_ask(struct act_box *b, const struct act_ask *ask, int64_t now_ns, char id[ACT_ID_LEN])
{
	struct request *r;
	int rc = -EAGAIN;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	if (count_waiting(b) < ACT_OPEN_MOST) {
		b->last = now_ns > b->last ? now_ns : b->last + 1;
		r = make_room(b);
		*r = (struct request){
			.state = WAITING,
			.dry_run = ask->dry_run,
			.number = b->last,
			.at_ns = now_ns,
			.action = mem_strdup(ask->action),
			.user = mem_strdup(ask->user),
			.nodes = ask->nodes ? cJSON_Duplicate(ask->nodes, true) : NULL,
		};
		write_id(r, id);
		b->changes++;
		rc = 0;
	}
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* --- the report ------------------------------------------------------------------------------- */

/* Under lock. Takes the reasons out of the report. */
static void apply(struct act_box *b, cJSON *reported)
{
	const char *named = document_text(reported, "id"),
		   *state = document_text(reported, "state");
	char id[ACT_ID_LEN];

	for (size_t i = 0; i < b->count; i++) {
		struct request *r = &b->requests[i];

		write_id(r, id);
		if (strcmp(id, named) != 0)
			continue;
		r->state = TAKEN;
		while (r->state < DONE && strcmp(states[r->state], state) != 0)
			r->state++;
		cJSON_Delete(r->reasons);
		r->reasons = cJSON_DetachItemFromObjectCaseSensitive(reported, "reasons");
		while (cJSON_GetArraySize(r->reasons) > REASONS_MOST)
			cJSON_DeleteItemFromArray(r->reasons, REASONS_MOST);
	}
}

int act_box_report(struct act_box *b, cJSON *report, int64_t now_ns)
{
	cJSON *requests, *old = NULL, *item;
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	if (b->report && now_ns - b->reported_ns < ACT_NEWER_NS &&
	    document_number(report, "transitions") < document_number(b->report, "transitions")) {
		rc = -ESTALE;
	} else {
		requests = cJSON_DetachItemFromObjectCaseSensitive(report, "requests");
		cJSON_ArrayForEach (item, requests)
			apply(b, item);
		/* Under lock. The answer to the report hands them out. */
		for (size_t i = 0; i < b->count; i++)
			if (b->requests[i].state == WAITING)
				b->requests[i].state = TAKEN;
		cJSON_Delete(requests);
		old = b->report;
		b->report = report;
		b->reported_ns = now_ns;
		b->changes++;
	}
	pthread_mutex_unlock(&b->lock);
	cJSON_Delete(old);
	return rc;
}

/* --- both, written ---------------------------------------------------------------------------- */

/* NULL: an empty list where `empty`, else null. */
static void write_tree(struct jsonw *w, const char *key, const cJSON *tree, bool empty)
{
	char *text = tree ? cJSON_PrintUnformatted(tree) : NULL;
	const char *json = text ? text : empty ? "[]" : "null";

	jsonw_key(w, key);
	buf_add_str(jsonw_json(w), json);
	cJSON_free(text);
}

static void write_request(struct jsonw *w, const struct request *r)
{
	char id[ACT_ID_LEN];

	write_id(r, id);
	jsonw_object_open(w);
	jsonw_key_string(w, "id", id);
	jsonw_key_string(w, "action", r->action);
	write_tree(w, "nodes", r->nodes, true);
	jsonw_key_bool(w, "dryRun", r->dry_run);
	jsonw_key_text(w, "user", r->user);
	jsonw_key_time(w, "at", r->at_ns);
	jsonw_key_string(w, "state", states[r->state]);
	write_tree(w, "reasons", r->reasons, true);
	jsonw_object_close(w);
}

uint64_t act_box_write(struct act_box *b, int64_t now_ns, struct jsonw *w)
{
	uint64_t changes;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	write_tree(w, "actuator", b->report, false);
	if (b->report)
		jsonw_key_fixed(w, "reportedAgoSeconds",
				(double)(now_ns - b->reported_ns) / NS_PER_SEC, 1);
	jsonw_key_array(w, "requests");
	for (size_t i = 0; i < b->count; i++)
		write_request(w, &b->requests[i]);
	jsonw_array_close(w);
	changes = b->changes + 1;
	pthread_mutex_unlock(&b->lock);
	return changes;
}
