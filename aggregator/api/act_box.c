/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/act_box.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/request_body.h"
#include "shared/arith.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/message.h"
#include "shared/timefmt.h"
#include "shared/utf8.h"

enum { REASONS_MOST = 16 }; /* of a request; those behind them are dropped */

/* Where two aggregators have different states of a request, the later state counts. */
enum state { WAITING, TIMED_OUT, TAKEN, REFUSED, DONE };

static const char *const states[] = {
	[WAITING] = "waiting", [TIMED_OUT] = "refused", [TAKEN] = "taken",
	[REFUSED] = "refused", [DONE] = "done",
};

struct request {
	cJSON *json; /* owned: as act_box_write() lists it */
	enum state state;
	int64_t since_ns; /* here; Unix time */
	uint64_t change; /* act_box.changes at the newest state that is told */
};

struct act_box {
	/* fixed after start */
	uint32_t salt; /* ns: two aggregators give no request the same id */
	struct drain_log *waves; /* borrowed */
	pthread_mutex_t lock;

	/* under lock */
	struct request requests[ACT_REQUESTS_MOST]; /* in order of their ids */
	size_t count;
	int64_t last; /* Unix ns, made unique: as an id */
	cJSON *report; /* owned; NULL: none yet */
	int64_t reported_ns;
	uint64_t report_change; /* as request.change; 0: the other aggregator told it */
	uint64_t changes;
};

struct act_box *act_box_new(struct drain_log *waves)
{
	struct act_box *b = mem_zalloc(1, sizeof(*b));

	b->waves = waves;
	b->salt = randombytes_uniform(NS_PER_MS);
	b->changes = randombytes_random(); /* the tags of two aggregators' answers differ */
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void act_box_free(struct act_box *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++)
		cJSON_Delete(b->requests[i].json);
	cJSON_Delete(b->report);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* --- requests; all under lock ----------------------------------------------------------------- */

static const char *id_of(const struct request *r)
{
	return document_text(r->json, "id");
}

/* Takes the member "reasons" of `told` over, if there is one. */
static void set_state(struct act_box *b, struct request *r, enum state state, cJSON *told)
{
	cJSON *reasons = cJSON_DetachItemFromObjectCaseSensitive(told, "reasons");

	while (cJSON_GetArraySize(reasons) > REASONS_MOST)
		cJSON_DeleteItemFromArray(reasons, REASONS_MOST);
	cJSON_ReplaceItemInObjectCaseSensitive(r->json, "state", cJSON_CreateString(states[state]));
	cJSON_ReplaceItemInObjectCaseSensitive(r->json, "reasons",
					       reasons ? reasons : cJSON_CreateArray());
	b->changes++;
	if (r->state != state)
		r->change = b->changes;
	r->state = state;
}

static void expire(struct act_box *b, int64_t now_ns)
{
	for (size_t i = 0; i < b->count; i++) {
		struct request *r = &b->requests[i];

		if (r->state != WAITING || now_ns - r->since_ns <= ACT_WAIT_NS)
			continue;
		set_state(b, r, TIMED_OUT, NULL);
		cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(r->json, "reasons"),
				     cJSON_CreateString("no actuator has asked"));
	}
}

static size_t count_waiting(const struct act_box *b)
{
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++)
		count += b->requests[i].state == WAITING;
	return count;
}

static bool is_open(enum state state)
{
	return state == WAITING || state == TAKEN;
}

/* The oldest finished one, or the oldest one: it makes room. */
static size_t find_oldest(const struct act_box *b)
{
	size_t goes = 0;

	while (goes < b->count && is_open(b->requests[goes].state))
		goes++;
	return goes % b->count;
}

static void make_room(struct act_box *b)
{
	size_t goes = find_oldest(b);

	cJSON_Delete(b->requests[goes].json);
	b->count--;
	memmove(&b->requests[goes], &b->requests[goes + 1],
		(b->count - goes) * sizeof(b->requests[0]));
}

/* Takes the tree over. */
static struct request *add(struct act_box *b, cJSON *json, int64_t since_ns)
{
	struct request *r;

	if (b->count == ACT_REQUESTS_MOST)
		make_room(b);
	r = &b->requests[b->count++];
	for (; r > b->requests && strcmp(id_of(r - 1), document_text(json, "id")) > 0; r--)
		*r = r[-1];
	*r = (struct request){.json = json, .since_ns = since_ns, .change = ++b->changes};
	return r;
}

static void complete(cJSON *request, const char *id, const char *user, int64_t now_ns)
{
	char at[TIMEFMT_LEN];

	timefmt_rfc3339(now_ns, at);
	cJSON_AddStringToObject(request, "id", id);
	if (!document_at(request, "nodes"))
		cJSON_AddArrayToObject(request, "nodes");
	if (!document_at(request, "dryRun"))
		cJSON_AddFalseToObject(request, "dryRun");
	if (*user)
		utf8_clean(cJSON_AddStringToObject(request, "user", user)->valuestring);
	cJSON_AddStringToObject(request, "at", at);
	cJSON_AddStringToObject(request, "state", states[WAITING]);
	cJSON_AddArrayToObject(request, "reasons");
}

int act_box_ask(struct act_box *b, cJSON *request, const char *user, int64_t now_ns,
		char id[ACT_ID_LEN])
{
	int rc = -EAGAIN;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	if (count_waiting(b) < ACT_OPEN_MOST) {
		b->last = int_max(b->last + 1, now_ns + b->salt);
		snprintf(id, ACT_ID_LEN, "%016" PRIx64, (uint64_t)b->last);
		complete(request, id, user, now_ns);
		add(b, request, now_ns);
		rc = 0;
	}
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* --- the report; all under lock --------------------------------------------------------------- */

static struct request *find(struct act_box *b, const cJSON *told)
{
	for (size_t i = 0; i < b->count; i++)
		if (document_is(told, "id", id_of(&b->requests[i])))
			return &b->requests[i];
	return NULL;
}

static enum state state_of(const cJSON *told)
{
	enum state state = DONE;

	while (state > WAITING && !document_is(told, "state", states[state]))
		state--;
	return state;
}

/* Takes over the report of that time, or fails with -ESTALE. */
static int put_report(struct act_box *b, cJSON *report, int64_t at_ns)
{
	if (b->report && at_ns - b->reported_ns < ACT_NEWER_NS &&
	    document_number(report, "transitions") < document_number(b->report, "transitions"))
		return -ESTALE;
	cJSON_Delete(b->report);
	b->report = report;
	b->reported_ns = at_ns;
	b->report_change = ++b->changes;
	return 0;
}

int act_box_report(struct act_box *b, cJSON *report, int64_t now_ns)
{
	cJSON *requests = NULL, *item;
	int rc;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	rc = put_report(b, report, now_ns);
	if (!rc)
		requests = cJSON_DetachItemFromObjectCaseSensitive(report, "requests");
	cJSON_ArrayForEach (item, requests) {
		struct request *r = find(b, item);

		if (r)
			set_state(b, r, state_of(item), item);
	}
	/* The answer to the report hands them out. */
	for (size_t i = 0; i < b->count && !rc; i++)
		if (b->requests[i].state == WAITING)
			set_state(b, &b->requests[i], TAKEN, NULL);
	pthread_mutex_unlock(&b->lock);
	cJSON_Delete(requests);
	return rc;
}

/* --- the other aggregator --------------------------------------------------------------------- */

/* Fields 1 to 10 of Exchange (shared/body.proto) are others'. */
struct told {
	struct span request, report, wave;
	int64_t age_ns; /* of a request or a report */
	int64_t wave_time_ns; /* Unix time */
};

#define ROW(number, member, ...)                                                                   \
	[(number)-1] = {.name = #member, .offset = offsetof(struct told, member), __VA_ARGS__}

static const struct message_field told_rows[] = {
	ROW(11, request, .kind = MESSAGE_SPAN),
	ROW(12, report, .kind = MESSAGE_SPAN),
	ROW(13, age_ns, .kind = MESSAGE_U64, .bounded = true, .most = INT64_MAX / 4),
	ROW(14, wave, .kind = MESSAGE_SPAN),
	ROW(15, wave_time_ns, .kind = MESSAGE_U64, .bounded = true, .most = INT64_MAX),
};
static const struct message told_message = MESSAGE(told_rows);

/*
 * Under lock. The first request or report that changed after *at, which becomes that change; *since_ns
 * is when it was made. NULL: none changed.
 */
static const cJSON *find_change(const struct act_box *b, uint64_t *at, int64_t *since_ns)
{
	uint64_t first = b->report_change > *at ? b->report_change : UINT64_MAX, after = *at;
	const cJSON *json = first < UINT64_MAX ? b->report : NULL;

	for (size_t i = 0; i < b->count; i++) {
		const struct request *r = &b->requests[i];

		if (r->state == TIMED_OUT || r->change <= after || r->change > first)
			continue;
		first = r->change;
		json = r->json;
		*since_ns = r->since_ns;
	}
	if (json)
		*at = first;
	return json;
}

/* As find_change(). The row is held. */
static struct drain_row *find_wave(struct drain_log *l, struct act_told *at)
{
	struct drain_rows rows;
	struct drain_row *found = NULL;

	drain_log_read(l, at->wave, &rows);
	if (rows.restored != at->restored) {
		drain_rows_fini(&rows);
		drain_log_read(l, 0, &rows);
	}
	at->restored = rows.restored;
	for (size_t i = 0; i < rows.count && !found; i++) {
		at->wave = rows.first + i;
		if (strcmp(rows.of[i]->event, DRAIN_WAVE_REPORT) == 0) {
			found = rows.of[i];
			rows.of[i] = NULL;
		}
	}
	drain_rows_fini(&rows);
	return found;
}

static bool tell_wave(struct drain_log *l, struct act_told *at, struct buf *body)
{
	struct drain_row *row = l ? find_wave(l, at) : NULL;
	bool found = row;

	if (row && strlen(row->text) <= ACT_TOLD_MAX) {
		struct told told = {.wave = {(const uint8_t *)row->text, strlen(row->text)},
				    .wave_time_ns = row->time_ns};

		message_encode(&told_message, &told, body);
	}
	drain_row_drop(row);
	return found;
}

static bool tell_change(struct act_box *b, uint64_t *at, int64_t now_ns, struct buf *body)
{
	struct told told = {.age_ns = 0};
	const cJSON *json;
	struct span *span = &told.request;
	int64_t since_ns = b->reported_ns;
	char *text = NULL;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	json = find_change(b, at, &since_ns);
	if (json)
		text = cJSON_PrintUnformatted(json);
	if (json && json == b->report)
		span = &told.report;
	told.age_ns = int_max(0, now_ns - since_ns);
	pthread_mutex_unlock(&b->lock);
	if (text && strlen(text) <= ACT_TOLD_MAX) {
		*span = (struct span){(const uint8_t *)text, strlen(text)};
		message_encode(&told_message, &told, body);
	}
	cJSON_free(text);
	return json;
}

bool act_box_tell(struct act_box *b, struct act_told *at, int64_t now_ns, struct buf *body)
{
	return b && (tell_change(b, &at->change, now_ns, body) || tell_wave(b->waves, at, body));
}

/* Under lock. Keeps the later state. A finished request that a full box has no room for is left out. */
static void hear_request(struct act_box *b, cJSON *told, int64_t since_ns)
{
	struct request *r = find(b, told);
	enum state state = state_of(told);

	if (!r && b->count == ACT_REQUESTS_MOST && !is_open(state) &&
	    strcmp(document_text(told, "id"), id_of(&b->requests[find_oldest(b)])) < 0)
		return;
	if (!r)
		r = add(b, cJSON_Duplicate(told, true), since_ns);
	if (state > r->state)
		set_state(b, r, state, told);
}

/* NULL: the text is not such an object. */
static cJSON *read_told(struct span text, const struct api_field *members)
{
	struct api_response rs = {.status = 200};
	cJSON *tree = cJSON_ParseWithLength((const char *)text.data, text.len);
	bool good = cJSON_IsObject(tree) && request_check(tree, members, &rs);

	buf_fini(&rs.body);
	if (good)
		return tree;
	cJSON_Delete(tree);
	return NULL;
}

/* Held; NULL: it is not the row of a report. */
static struct drain_row *read_wave(struct span text, int64_t time_ns)
{
	const char *sentence = (const char *)text.data, *line = memchr(sentence, '\n', text.len);
	size_t len = line ? (size_t)(line - sentence) + 1 : text.len;
	cJSON *report =
		read_told((struct span){text.data + len, text.len - len}, api_wave_report_members);
	struct drain_row *row = NULL;

	if (report && utf8_is_valid(sentence, len)) {
		char *json = cJSON_PrintUnformatted(report);
		char *whole = mem_printf("%.*s%s", (int)len, sentence, json);
		const struct drain_row of = {.time_ns = time_ns,
					     .event = DRAIN_WAVE_REPORT,
					     .reason = document_text(report, "outcome"),
					     .node = "",
					     .text = whole};

		row = drain_row_new(&of);
		free(whole);
		cJSON_free(json);
	}
	cJSON_Delete(report);
	return row;
}

/* A report tells its own times, so that two equal ones are the same. */
static void hear_wave(struct drain_log *l, const struct drain_row *row)
{
	struct drain_rows rows;
	bool known = false;

	drain_log_read(l, 0, &rows);
	for (size_t i = 0; i < rows.count && !known; i++)
		known = strcmp(rows.of[i]->text, row->text) == 0;
	drain_rows_fini(&rows);
	if (!known)
		drain_log_put(l, row);
}

int act_box_hear(struct act_box *b, const struct buf *body, int64_t now_ns, struct error *error)
{
	struct told told = {.age_ns = 0};
	cJSON *request, *report;
	struct drain_row *wave;
	int64_t at_ns;
	int rc;

	if (!b)
		return 0;
	rc = message_decode(&told_message, (struct span){(const uint8_t *)body->data, body->len},
			    &told, error);
	request = read_told(told.request, api_act_told_members);
	report = read_told(told.report, api_act_report_members);
	wave = told.wave.len ? read_wave(told.wave, told.wave_time_ns) : NULL;
	at_ns = now_ns - told.age_ns;
	if (!rc && ((told.request.len && !request) || (told.report.len && !report) ||
		    (told.wave.len && !wave)))
		rc = error_fail(error, -EBADMSG,
				"a request to the actuator, or a report of it, is malformed");
	if (!rc) {
		pthread_mutex_lock(&b->lock);
		if (request)
			hear_request(b, request, at_ns);
		if (report && (!b->report || at_ns > b->reported_ns) &&
		    !put_report(b, report, at_ns)) {
			b->report_change = 0;
			report = NULL;
		}
		pthread_mutex_unlock(&b->lock);
		if (wave && b->waves)
			hear_wave(b->waves, wave);
	}
	cJSON_Delete(request);
	cJSON_Delete(report);
	drain_row_drop(wave);
	return rc ? -EBADMSG : 0;
}

/* --- both, written ---------------------------------------------------------------------------- */

static void write_tree(struct jsonw *w, const cJSON *tree)
{
	char *text = tree ? cJSON_PrintUnformatted(tree) : NULL;

	buf_add_str(jsonw_json(w), text ? text : "null");
	cJSON_free(text);
}

uint64_t act_box_write(struct act_box *b, int64_t now_ns, struct jsonw *w)
{
	uint64_t changes;

	pthread_mutex_lock(&b->lock);
	expire(b, now_ns);
	jsonw_key(w, "actuator");
	write_tree(w, b->report);
	if (b->report)
		jsonw_key_fixed(w, "reportedAgoSeconds",
				(double)(now_ns - b->reported_ns) / NS_PER_SEC, 1);
	jsonw_key_array(w, "requests");
	for (size_t i = 0; i < b->count; i++)
		write_tree(w, b->requests[i].json);
	jsonw_array_close(w);
	changes = b->changes + 1;
	pthread_mutex_unlock(&b->lock);
	return changes;
}
