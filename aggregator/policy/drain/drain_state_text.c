/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state as text, for the database and snapshots. People may edit the text, so it is read into a
 * new state, which replaces the old one only if all of it is valid and within the bounds.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "shared/utf8.h"

enum { NODES_MAX = 100000, TEXT_MAX_BYTES = 256 << 20, STRING_MAX_BYTES = 4096 };

static const char *kind_name(int kind)
{
	return kind == DRAIN_TIMER_UNREADY ? "unready" : "unneeded";
}

static const char *event_name(int event)
{
	return event == DRAIN_NOT_ASKED ? "" : drain_event_name((enum drain_event)event);
}

static const char *reason_name(int reason)
{
	return drain_reason_name((enum drain_reason)reason);
}

/* --- writing */

static void write_timers(struct jsonw *w, const struct drain_timers *t)
{
	jsonw_key_array(w, "timers");
	for (size_t i = 0; i < t->count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "node", t->of[i].node);
		jsonw_key_time_exact(w, "since", t->of[i].since_ns);
		jsonw_key_string(w, "kind", kind_name((int)t->of[i].kind));
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

void drain_why_write(const struct drain_why *why, struct jsonw *w)
{
	if (why->number_count) {
		jsonw_key_object(w, "numbers");
		for (uint32_t i = 0; i < why->number_count; i++)
			jsonw_key_fixed(w, why->numbers[i].name, why->numbers[i].value, 4);
		jsonw_object_close(w);
	}
	if (why->counted)
		place_counts_write(&why->refused, w);
}

static void write_failures(struct jsonw *w, const struct drain_unremovable *u)
{
	jsonw_key_array(w, "unremovable");
	for (size_t i = 0; i < u->count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "node", u->of[i].node);
		jsonw_key_string(w, "reason", drain_reason_name(u->of[i].why.code));
		jsonw_key_text(w, "why", u->of[i].why.text);
		drain_why_write(&u->of[i].why, w);
		if (u->of[i].why.unblock != drain_reason_unblock(u->of[i].why.code))
			jsonw_key_text(w, "unblock", u->of[i].why.unblock);
		jsonw_key_time_exact(w, "until", u->of[i].until_ns);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_evictions(struct jsonw *w, const struct drain_state *s)
{
	jsonw_key_array(w, "evictions");
	for (size_t i = 0; i < s->eviction_count; i++) {
		jsonw_object_open(w);
		jsonw_key_time_exact(w, "time", s->evictions[i].when_ns);
		if (s->evictions[i].leaving)
			jsonw_key_bool(w, "leaving", true);
		jsonw_key(w, "pod");
		object_write(&s->evictions[i].pod->object, w->out);
		w->comma = true;
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static int compare_hints(const void *left, const void *right)
{
	const struct drain_hint *const *a = left, *const *b = right;

	return strcmp((*a)->uid, (*b)->uid);
}

static void write_hints(struct jsonw *w, struct drain_hint *hints)
{
	size_t count = HASH_COUNT(hints), at = 0;
	const struct drain_hint **sorted = mem_zalloc(count + 1, sizeof(struct drain_hint *));

	for (struct drain_hint *h = hints; h; h = h->hh.next)
		sorted[at++] = h;
	array_sort(sorted, count, sizeof(struct drain_hint *), compare_hints);
	jsonw_key_object(w, "hints");
	for (size_t i = 0; i < count; i++)
		jsonw_key_string(w, sorted[i]->uid, sorted[i]->node);
	jsonw_object_close(w);
	free(sorted);
}

static void write_told(struct jsonw *w, const struct drain_state *s)
{
	jsonw_key_array(w, "verdicts");
	for (size_t i = 0; i < s->told_count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "node", s->told[i].node);
		jsonw_key_string(w, "verdict", drain_event_name(s->told[i].event));
		jsonw_key_string(w, "reason", drain_reason_name(s->told[i].reason));
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_history(struct jsonw *w, const struct drain_state *s)
{
	jsonw_key_array(w, "history");
	for (size_t i = 0; i < s->history_count; i++) {
		const struct drain_record *r = &s->history[i];

		jsonw_object_open(w);
		jsonw_key_time_exact(w, "time", r->time_ns);
		jsonw_key_string(w, "event", drain_event_name(r->event));
		jsonw_key_string(w, "node", r->node);
		if (r->reason != DRAIN_NONE)
			jsonw_key_string(w, "reason", drain_reason_name(r->reason));
		jsonw_key_string(w, "text", r->text);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

void drain_state_write(const struct drain_state *s, int64_t now_ns, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(&w, "kind", "DrainState");
	jsonw_key_time_exact(&w, "time", now_ns);
	write_timers(&w, &s->timers);
	write_failures(&w, &s->failed);
	write_evictions(&w, s);
	write_hints(&w, s->hints);
	write_told(&w, s);
	jsonw_key_text(&w, "wave", s->wave);
	write_history(&w, s);
	jsonw_object_close(&w);
}

/* --- reading; false: the reason names the member */

static bool refuse(struct error *reason, const char *member, const char *what)
{
	error_set(reason, "%s: %s", member, what);
	return false;
}

static bool read_string(const cJSON *object, const char *member, const char **out,
			struct error *reason)
{
	*out = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, member));
	if (!*out || strlen(*out) > STRING_MAX_BYTES)
		return refuse(reason, member, "must be a string of at most 4096 bytes");
	return true;
}

static bool read_time(const cJSON *object, const char *member, int64_t *out, struct error *reason)
{
	const char *text;

	if (!read_string(object, member, &text, reason))
		return false;
	if (timefmt_parse(text, out, reason)) {
		error_prefix(reason, "%s", member);
		return false;
	}
	/* Differences of two times fit into 64 bits, then. */
	return *out >= 0 || refuse(reason, member, "lies before 1970");
}

static bool read_name(const cJSON *object, const char *member, const char *(*name_of)(int),
		      int count, int *out, struct error *reason)
{
	const char *text;

	if (!read_string(object, member, &text, reason))
		return false;
	for (int i = 0; i < count; i++) {
		if (*text && strcmp(name_of(i), text) == 0) {
			*out = i;
			return true;
		}
	}
	return refuse(reason, member, "is not a name that is known here");
}

static bool read_event(const cJSON *item, const char *member, enum drain_event *out,
		       struct error *reason)
{
	int event = 0;
	bool good = read_name(item, member, event_name, DRAIN_EVENTS, &event, reason);

	*out = (enum drain_event)event;
	return good;
}

/* NoReason if absent. */
static bool read_code(const cJSON *item, enum drain_reason *out, struct error *reason)
{
	int code = DRAIN_NONE;
	bool good = !cJSON_GetObjectItemCaseSensitive(item, "reason") ||
		    read_name(item, "reason", reason_name, DRAIN_REASONS, &code, reason);

	*out = (enum drain_reason)code;
	return good;
}

struct reading {
	struct drain_state *to;
	int64_t saved_ns, ttl_ns, now_ns;
};

static bool read_timer(struct reading *in, const cJSON *item, struct error *reason)
{
	struct drain_timer t;
	const char *node;
	int kind;

	if (!read_string(item, "node", &node, reason) ||
	    !read_time(item, "since", &t.since_ns, reason) ||
	    !read_name(item, "kind", kind_name, 2, &kind, reason))
		return false;
	t.node = (char *)node; /* borrowed: drain_timers_load() copies it */
	t.kind = (enum drain_timer_kind)kind;
	drain_timers_load(&in->to->timers, &t, in->saved_ns, in->ttl_ns, in->now_ns);
	return true;
}

static bool read_numbers(const cJSON *failure, struct drain_why *out, struct error *reason)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(failure, "numbers")) {
		int i = 0;

		while (drain_number_names[i] && strcmp(drain_number_names[i], item->string) != 0)
			i++;
		if (!drain_number_names[i] || !cJSON_IsNumber(item) ||
		    out->number_count == DRAIN_NUMBERS)
			return refuse(reason, "numbers", "must be numbers of names that are known");
		drain_add_number(out, drain_number_names[i], item->valuedouble);
	}
	return true;
}

static bool read_refused(const cJSON *failure, struct drain_why *out, struct error *reason)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(failure, "refused"), *item;

	out->counted = list != NULL;
	cJSON_ArrayForEach (item, list) {
		int f = PLACE_FITS + 1;

		while (f < PLACE_FILTERS &&
		       strcmp(place_filter_name((enum place_filter)f), item->string) != 0)
			f++;
		if (f == PLACE_FILTERS || !cJSON_IsNumber(item) || item->valuedouble < 0 ||
		    item->valuedouble > NODES_MAX)
			return refuse(reason, "refused", "must be numbers of nodes by filter");
		out->refused.of[f] = (uint32_t)item->valuedouble;
	}
	return true;
}

static bool read_failure(struct reading *in, const cJSON *item, struct error *reason)
{
	const cJSON *why = cJSON_GetObjectItemCaseSensitive(item, "why");
	struct drain_why why_of = {.text = cJSON_GetStringValue(why)};
	const char *node;
	int64_t until_ns;

	if (!read_string(item, "node", &node, reason) ||
	    !read_time(item, "until", &until_ns, reason) ||
	    !read_code(item, &why_of.code, reason) || !read_numbers(item, &why_of, reason) ||
	    !read_refused(item, &why_of, reason))
		return false;
	why_of.unblock = drain_reason_unblock(why_of.code);
	for (int i = 0; i < DRAIN_REMEDIES; i++)
		if (document_is(item, "unblock", drain_remedies[i]))
			why_of.unblock = drain_remedies[i];
	if (why && !cJSON_IsString(why))
		return refuse(reason, "why", "must be a string");
	if (until_ns > in->now_ns)
		drain_unremovable_add(&in->to->failed, node, &why_of, until_ns);
	return true;
}

static bool read_eviction(struct reading *in, const cJSON *item, struct error *reason)
{
	const cJSON *pod = cJSON_GetObjectItemCaseSensitive(item, "pod");
	const cJSON *leaving = cJSON_GetObjectItemCaseSensitive(item, "leaving");
	char field[OBJECT_FIELD_MAX] = "";
	struct object *o = NULL;
	int64_t when_ns;

	if (!read_time(item, "time", &when_ns, reason))
		return false;
	if (!cJSON_IsObject(pod))
		return refuse(reason, "pod", "must be an object");
	if (leaving && !cJSON_IsBool(leaving))
		return refuse(reason, "leaving", "must be true or false");
	if (object_read(OBJECT_POD, pod, &o, field, reason)) {
		error_prefix(reason, "pod.%s", field);
		return false;
	}
	drain_state_add_eviction(in->to, (struct kube_pod *)o,
				 when_ns < in->now_ns ? when_ns : in->now_ns,
				 cJSON_IsTrue(leaving));
	object_drop(o);
	return true;
}

static bool read_told(struct reading *in, const cJSON *item, struct error *reason)
{
	enum drain_event event;
	enum drain_reason code;
	const char *node;

	if (!read_string(item, "node", &node, reason) ||
	    !read_event(item, "verdict", &event, reason) || !read_code(item, &code, reason))
		return false;
	drain_state_set_told(in->to, node, event, code);
	return true;
}

static bool read_record(struct reading *in, const cJSON *item, struct error *reason)
{
	struct drain_record r = {0};
	const char *node, *text;

	if (!read_time(item, "time", &r.time_ns, reason) ||
	    !read_event(item, "event", &r.event, reason) || !read_code(item, &r.reason, reason) ||
	    !read_string(item, "node", &node, reason) || !read_string(item, "text", &text, reason))
		return false;
	r.node = (char *)node; /* borrowed, as is the text */
	r.text = (char *)text;
	drain_history_add(in->to, &r);
	return true;
}

static bool read_list(struct reading *in, const cJSON *tree, const char *member, int most,
		      bool (*read)(struct reading *in, const cJSON *item, struct error *reason),
		      struct error *reason)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, member);
	int at = 0;

	if (!list)
		return true;
	if (!cJSON_IsArray(list))
		return refuse(reason, member, "must be a list");
	for (const cJSON *item = list->child; item; item = item->next, at++) {
		if (at == most)
			return refuse(reason, member, "is longer than a state may be");
		if (read(in, item, reason))
			continue;
		error_prefix(reason, "%s[%d]", member, at);
		return false;
	}
	return true;
}

static bool read_hints(struct drain_state *s, const cJSON *tree, struct error *reason)
{
	const cJSON *hints = cJSON_GetObjectItemCaseSensitive(tree, "hints");
	size_t count = 0;

	if (hints && !cJSON_IsObject(hints))
		return refuse(reason, "hints", "must be an object");
	for (const cJSON *item = hints ? hints->child : NULL; item; item = item->next) {
		if (!cJSON_IsString(item) || strlen(item->valuestring) > STRING_MAX_BYTES ||
		    strlen(item->string) > STRING_MAX_BYTES)
			return refuse(reason, "hints", "must be names of nodes by uid");
		if (++count > DRAIN_HINTS_MAX)
			return refuse(reason, "hints", "is longer than a state may be");
		drain_state_set_hint(s, item->string, item->valuestring);
	}
	return true;
}

static bool read_tree(struct reading *in, const cJSON *tree, struct error *reason)
{
	const cJSON *wave = cJSON_GetObjectItemCaseSensitive(tree, "wave");
	const char *kind, *text = NULL;

	if (!cJSON_IsObject(tree))
		return refuse(reason, "DrainState", "is not a JSON object in UTF-8");
	if (!read_string(tree, "kind", &kind, reason))
		return false;
	if (wave && !read_string(tree, "wave", &text, reason))
		return false;
	if (strcmp(kind, "DrainState") != 0)
		return refuse(reason, "kind", "must be DrainState");
	if (!read_time(tree, "time", &in->saved_ns, reason))
		return false;
	if (!read_list(in, tree, "timers", NODES_MAX, read_timer, reason) ||
	    !read_list(in, tree, "unremovable", NODES_MAX, read_failure, reason) ||
	    !read_list(in, tree, "evictions", DRAIN_EVICTIONS_MAX, read_eviction, reason) ||
	    !read_list(in, tree, "verdicts", NODES_MAX, read_told, reason) ||
	    !read_list(in, tree, "history", DRAIN_HISTORY_MAX, read_record, reason) ||
	    !read_hints(in->to, tree, reason))
		return false;
	in->to->wave = text ? mem_strdup(text) : NULL;
	return true;
}

int drain_state_read(struct drain_state *s, const char *text, size_t len, int64_t ttl_ns,
		     int64_t now_ns, struct error *reason)
{
	struct drain_state *fresh = drain_state_new();
	struct reading in = {.to = fresh, .ttl_ns = ttl_ns, .now_ns = now_ns};
	/* Invalid bytes would make different names equal when written again. */
	bool readable = len <= TEXT_MAX_BYTES && utf8_is_valid(text, len);
	cJSON *tree = readable ? cJSON_ParseWithLength(text, len) : NULL;
	bool good = read_tree(&in, tree, reason);

	if (good) {
		struct drain_state old = *s;

		*s = *fresh;
		*fresh = old;
	}
	cJSON_Delete(tree);
	drain_state_free(fresh);
	return good ? 0 : -EINVAL;
}
