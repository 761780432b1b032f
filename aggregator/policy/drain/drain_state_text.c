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
	return event == DRAIN_UNEXAMINED ? "" : drain_event_name((enum drain_event)event);
}

static const char *reason_name(int reason)
{
	return drain_reason_name((enum drain_reason)reason);
}

/* --- writing */

static void write_list(struct jsonw *w, const struct drain_state *s, const char *key, size_t count,
		       void (*write)(struct jsonw *w, const struct drain_state *s, size_t i))
{
	jsonw_key_array(w, key);
	for (size_t i = 0; i < count; i++) {
		jsonw_object_open(w);
		write(w, s, i);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_timer(struct jsonw *w, const struct drain_state *s, size_t i)
{
	const struct drain_timer *t = &s->timers.of[i];

	jsonw_key_string(w, "node", t->node);
	jsonw_key_time_exact(w, "since", t->since_ns);
	jsonw_key_string(w, "kind", kind_name((int)t->kind));
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

static void write_failure(struct jsonw *w, const struct drain_state *s, size_t i)
{
	const struct drain_why *why = &s->failed.of[i].why;

	jsonw_key_string(w, "node", s->failed.of[i].node);
	jsonw_key_string(w, "reason", drain_reason_name(why->code));
	jsonw_key_text(w, "why", why->text);
	drain_why_write(why, w);
	if (why->unblock != drain_reason_unblock(why->code))
		jsonw_key_text(w, "unblock", why->unblock);
	jsonw_key_time_exact(w, "until", s->failed.of[i].until_ns);
}

static void write_eviction(struct jsonw *w, const struct drain_state *s, size_t i)
{
	jsonw_key_time_exact(w, "time", s->evictions[i].when_ns);
	jsonw_key_true(w, "leaving", s->evictions[i].leaving);
	jsonw_key(w, "pod");
	object_write(&s->evictions[i].pod->object, w->out);
	w->comma = true;
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

static void write_recorded(struct jsonw *w, const struct drain_state *s, size_t i)
{
	jsonw_key_string(w, "node", s->recorded[i].node);
	jsonw_key_string(w, "verdict", drain_event_name(s->recorded[i].event));
	jsonw_key_string(w, "reason", drain_reason_name(s->recorded[i].reason));
}

static void write_record(struct jsonw *w, const struct drain_state *s, size_t i)
{
	const struct drain_record *r = &s->history[i];

	jsonw_key_time_exact(w, "time", r->time_ns);
	jsonw_key_string(w, "event", drain_event_name(r->event));
	jsonw_key_string(w, "node", r->node);
	if (r->reason != DRAIN_NONE)
		jsonw_key_string(w, "reason", drain_reason_name(r->reason));
	jsonw_key_string(w, "text", r->text);
}

void drain_state_write(const struct drain_state *s, int64_t now_ns, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(&w, "kind", "DrainState");
	jsonw_key_time_exact(&w, "time", now_ns);
	write_list(&w, s, "timers", s->timers.count, write_timer);
	write_list(&w, s, "unremovable", s->failed.count, write_failure);
	write_list(&w, s, "evictions", s->eviction_count, write_eviction);
	write_hints(&w, s->hints);
	write_list(&w, s, "verdicts", s->recorded_count, write_recorded);
	jsonw_key_text(&w, "wave", s->wave);
	write_list(&w, s, "history", s->history_count, write_record);
	jsonw_object_close(&w);
}

/* --- reading: the first failure stays, and the reason names its member */

struct reading {
	struct drain_state *to;
	int64_t saved_ns, ttl_ns, now_ns;
	struct error *reason;
	bool bad;
};

static void refuse(struct reading *in, const char *member, const char *what)
{
	if (!in->bad)
		error_set(in->reason, "%s: %s", member, what);
	in->bad = true;
}

/* "" after a failure. */
static const char *read_string(struct reading *in, const cJSON *object, const char *member)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, member));

	if (text && strlen(text) <= STRING_MAX_BYTES)
		return text;
	refuse(in, member, "must be a string of at most 4096 bytes");
	return "";
}

static int64_t read_time(struct reading *in, const cJSON *object, const char *member)
{
	const char *text = read_string(in, object, member);
	struct error why = {""};
	int64_t ns = 0;

	if (timefmt_parse(text, &ns, &why))
		refuse(in, member, why.text);
	/* Differences of two times fit into 64 bits, then. */
	else if (ns < 0)
		refuse(in, member, "lies before 1970");
	return ns;
}

static int read_name(struct reading *in, const cJSON *object, const char *member,
		     const char *(*name_of)(int), int count)
{
	const char *text = read_string(in, object, member);

	for (int i = 0; i < count; i++)
		if (*text && strcmp(name_of(i), text) == 0)
			return i;
	refuse(in, member, "is not a name that is known here");
	return 0;
}

static enum drain_event read_event(struct reading *in, const cJSON *item, const char *member)
{
	return (enum drain_event)read_name(in, item, member, event_name, DRAIN_EVENTS);
}

/* NoReason if absent. */
static enum drain_reason read_code(struct reading *in, const cJSON *item)
{
	return cJSON_GetObjectItemCaseSensitive(item, "reason")
		       ? (enum drain_reason)read_name(in, item, "reason", reason_name,
						      DRAIN_REASONS)
		       : DRAIN_NONE;
}

static void read_timer(struct reading *in, const cJSON *item)
{
	struct drain_timer t;

	t.node = (char *)read_string(in, item, "node"); /* borrowed: it is copied */
	t.since_ns = read_time(in, item, "since");
	t.kind = (enum drain_timer_kind)read_name(in, item, "kind", kind_name, 2);
	if (!in->bad)
		drain_timers_load(&in->to->timers, &t, in->saved_ns, in->ttl_ns, in->now_ns);
}

static void read_numbers(struct reading *in, const cJSON *failure, struct drain_why *out)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(failure, "numbers")) {
		const char *name = item->string ? item->string : ""; /* "": in a list */
		int i = 0;

		while (drain_number_names[i] && strcmp(drain_number_names[i], name) != 0)
			i++;
		if (!drain_number_names[i] || !cJSON_IsNumber(item) ||
		    out->number_count == DRAIN_NUMBERS)
			refuse(in, "numbers", "must be numbers of names that are known");
		else
			drain_add_number(out, drain_number_names[i], item->valuedouble);
	}
}

static void read_refused(struct reading *in, const cJSON *failure, struct drain_why *out)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(failure, "refused"), *item;

	out->counted = list != NULL;
	cJSON_ArrayForEach (item, list) {
		const char *name = item->string ? item->string : "";
		int f = PLACE_FITS + 1;

		while (f < PLACE_FILTERS &&
		       strcmp(place_filter_name((enum place_filter)f), name) != 0)
			f++;
		if (f == PLACE_FILTERS || !cJSON_IsNumber(item) || item->valuedouble < 0 ||
		    item->valuedouble > NODES_MAX)
			refuse(in, "refused", "must be numbers of nodes by filter");
		else
			out->refused.of[f] = (uint32_t)item->valuedouble;
	}
}

static void read_failure(struct reading *in, const cJSON *item)
{
	const cJSON *why = cJSON_GetObjectItemCaseSensitive(item, "why");
	struct drain_why why_of = {.text = cJSON_GetStringValue(why)};
	const char *node = read_string(in, item, "node");
	int64_t until_ns = read_time(in, item, "until");

	why_of.code = read_code(in, item);
	read_numbers(in, item, &why_of);
	read_refused(in, item, &why_of);
	why_of.unblock = drain_reason_unblock(why_of.code);
	for (int i = 0; i < DRAIN_REMEDIES; i++)
		if (document_is(item, "unblock", drain_remedies[i]))
			why_of.unblock = drain_remedies[i];
	if (why && !cJSON_IsString(why))
		refuse(in, "why", "must be a string");
	if (!in->bad && until_ns > in->now_ns)
		drain_unremovable_add(&in->to->failed, node, &why_of, until_ns);
}

static void read_eviction(struct reading *in, const cJSON *item)
{
	const cJSON *pod = cJSON_GetObjectItemCaseSensitive(item, "pod");
	const cJSON *leaving = cJSON_GetObjectItemCaseSensitive(item, "leaving");
	int64_t when_ns = read_time(in, item, "time");
	char field[OBJECT_FIELD_MAX] = "";
	struct object *o = NULL;

	if (!cJSON_IsObject(pod))
		refuse(in, "pod", "must be an object");
	if (leaving && !cJSON_IsBool(leaving))
		refuse(in, "leaving", "must be true or false");
	if (in->bad)
		return;
	if (object_read(OBJECT_POD, pod, &o, field, in->reason)) {
		error_prefix(in->reason, "pod.%s", field);
		in->bad = true;
		return;
	}
	drain_state_add_eviction(in->to, (struct kube_pod *)o,
				 when_ns < in->now_ns ? when_ns : in->now_ns,
				 cJSON_IsTrue(leaving));
	object_drop(o);
}

static void read_recorded(struct reading *in, const cJSON *item)
{
	const char *node = read_string(in, item, "node");
	enum drain_event event = read_event(in, item, "verdict");
	enum drain_reason code = read_code(in, item);

	if (!in->bad)
		drain_state_set_recorded(in->to, node, event, code);
}

static void read_record(struct reading *in, const cJSON *item)
{
	struct drain_record r = {.time_ns = read_time(in, item, "time")};

	r.event = read_event(in, item, "event");
	r.reason = read_code(in, item);
	r.node = (char *)read_string(in, item, "node"); /* borrowed, as is the text */
	r.text = (char *)read_string(in, item, "text");
	if (!in->bad)
		drain_history_add(in->to, &r);
}

static void read_list(struct reading *in, const cJSON *tree, const char *member, int most,
		      void (*read)(struct reading *in, const cJSON *item))
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, member);
	int at = 0;

	if (list && !cJSON_IsArray(list))
		refuse(in, member, "must be a list");
	for (const cJSON *item = list ? list->child : NULL; item && !in->bad;
	     item = item->next, at++) {
		if (at == most) {
			refuse(in, member, "is longer than a state may be");
			return;
		}
		read(in, item);
		if (in->bad)
			error_prefix(in->reason, "%s[%d]", member, at);
	}
}

static void read_hints(struct reading *in, const cJSON *tree)
{
	const cJSON *hints = cJSON_GetObjectItemCaseSensitive(tree, "hints");
	size_t count = 0;

	if (hints && !cJSON_IsObject(hints))
		refuse(in, "hints", "must be an object");
	for (const cJSON *item = hints ? hints->child : NULL; item && !in->bad; item = item->next) {
		if (!cJSON_IsString(item) || strlen(item->valuestring) > STRING_MAX_BYTES ||
		    strlen(item->string) > STRING_MAX_BYTES)
			refuse(in, "hints", "must be names of nodes by uid");
		else if (++count > DRAIN_HINTS_MAX)
			refuse(in, "hints", "is longer than a state may be");
		else
			drain_state_set_hint(in->to, item->string, item->valuestring);
	}
}

static void read_tree(struct reading *in, const cJSON *tree)
{
	const char *wave = NULL;

	if (!cJSON_IsObject(tree)) {
		refuse(in, "DrainState", "is not a JSON object in UTF-8");
		return;
	}
	read_string(in, tree, "kind");
	if (cJSON_GetObjectItemCaseSensitive(tree, "wave"))
		wave = read_string(in, tree, "wave");
	if (!document_is(tree, "kind", "DrainState"))
		refuse(in, "kind", "must be DrainState");
	in->saved_ns = read_time(in, tree, "time");
	read_list(in, tree, "timers", NODES_MAX, read_timer);
	read_list(in, tree, "unremovable", NODES_MAX, read_failure);
	read_list(in, tree, "evictions", DRAIN_EVICTIONS_MAX, read_eviction);
	read_list(in, tree, "verdicts", NODES_MAX, read_recorded);
	read_list(in, tree, "history", DRAIN_HISTORY_MAX, read_record);
	read_hints(in, tree);
	in->to->wave = wave ? mem_strdup(wave) : NULL;
}

int drain_state_read(struct drain_state *s, const char *text, size_t len, int64_t ttl_ns,
		     int64_t now_ns, struct error *reason)
{
	struct drain_state *fresh = drain_state_new();
	struct reading in = {.to = fresh, .ttl_ns = ttl_ns, .now_ns = now_ns, .reason = reason};
	/* Invalid bytes would make different names equal when written again. */
	bool readable = len <= TEXT_MAX_BYTES && utf8_is_valid(text, len);
	cJSON *tree = readable ? cJSON_ParseWithLength(text, len) : NULL;

	read_tree(&in, tree);
	if (!in.bad) {
		struct drain_state old = *s;

		fresh->seen = old.seen;
		old.seen = NULL;
		fresh->last_ns = old.last_ns;
		fresh->loop_ns = old.loop_ns;
		memcpy(fresh->slack, old.slack, sizeof(fresh->slack));
		*s = *fresh;
		*fresh = old;
	}
	cJSON_Delete(tree);
	drain_state_free(fresh);
	return in.bad ? -EINVAL : 0;
}
