/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules are those of client-go's reflector, which API servers are tested with.
 *
 * A first list requests version 0: whatever the server's cache has. Later lists request nothing
 * older than the newest seen version, so that time does not run backward with another server. A
 * server that cannot serve that (410, or it is behind) gets a request for the newest state, in
 * pages. A watch continues from the list or the last event; bookmarks advance it, but none need
 * come.
 *
 * Lists are not streamed (KEP-3157): 150,000 pods of a server of 1.37 came as a list in 12 s and
 * 19 MB, for 8 s of its CPU time; as a stream in 22 s and 583 MB, for 21 s; compressed, the stream
 * took 94 s of CPU time. The server encodes a list item by item since 1.33, so that it needs no
 * more memory for a list.
 *
 * The fault decides how much is repeated. The same watch: a refused or cut connection, 429, a
 * server error, as these say nothing about the version. A list: the version is gone, or the answer
 * is not understood. Discovery: 404, as the resource itself may be gone. Every repetition waits
 * (retry.c), except for those that cannot loop: a watch that ended as agreed, or was cut after
 * events; the two steps from an expired list to one that cannot expire; the first 401, after which
 * credentials are read again.
 *
 * This file has no connections and no clock. Objects stay valid through every fault, with a source
 * that says since when changes may be missing; they are cleared only if the API has no such
 * resource.
 */
#include "aggregator/edge/kube/reflector.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"

enum { PAGE_LIMIT = 500, REWATCHES_MAX = 3, REFUSALS_RETRIED = 3 };

#define POD_SELECTOR "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

static const bool may_move[REFLECTOR_STATES][REFLECTOR_STATES] = {
	[REFLECTOR_UNKNOWN] = {[REFLECTOR_LISTING] = true},
	[REFLECTOR_LISTING] = {[REFLECTOR_LISTING] = true,
			       [REFLECTOR_OPENING] = true,
			       [REFLECTOR_PAUSED] = true,
			       [REFLECTOR_UNKNOWN] = true},
	[REFLECTOR_OPENING] = {[REFLECTOR_OPENING] = true,
			       [REFLECTOR_WATCHING] = true,
			       [REFLECTOR_PAUSED] = true,
			       [REFLECTOR_UNKNOWN] = true},
	[REFLECTOR_WATCHING] =
		{[REFLECTOR_OPENING] = true, [REFLECTOR_PAUSED] = true, [REFLECTOR_UNKNOWN] = true},
	[REFLECTOR_PAUSED] = {[REFLECTOR_LISTING] = true, [REFLECTOR_OPENING] = true},
};

const struct kube_timing *kube_timing_usual(void)
{
	static const struct kube_timing usual = {
		.backoff = {.first_ns = 800 * NS_PER_MS,
			    .most_ns = 30 * NS_PER_SEC,
			    .reset_ns = 120 * NS_PER_SEC},
		.forbidden_ns = 60 * NS_PER_SEC,
		.absent_ns = 4 * NS_PER_SEC,
		.short_watch_ns = NS_PER_SEC,
		.watch_least_s = 300,
		.watch_most_s = 600,
		.watch_grace_ns = 30 * NS_PER_SEC,
		.list_silence_s = 60,
		.source_ns = NS_PER_SEC,
	};

	return &usual;
}

void reflector_init(struct reflector *r, enum object_kind kind, const struct kube_timing *timing,
		    double (*random)(void))
{
	*r = (struct reflector){
		.kind = kind,
		.timing = timing,
		.random = random,
		.source = {.state = SOURCE_LISTING},
	};
}

void reflector_fini(struct reflector *r)
{
	free(r->continue_token);
	r->continue_token = NULL;
}

/* --- moves ------------------------------------------------------------------------------------ */

static void move(struct reflector *r, enum reflector_state to)
{
	assert(may_move[r->state][to]);
	r->state = to;
}

static void list_now(struct reflector *r, struct reflector_update *u)
{
	move(r, REFLECTOR_LISTING);
	u->request = REFLECTOR_LIST;
}

/* From the first page. */
static void list_anew(struct reflector *r, struct reflector_update *u)
{
	free(r->continue_token);
	r->continue_token = NULL;
	list_now(r, u);
}

static void watch_now(struct reflector *r, struct reflector_update *u)
{
	const struct kube_timing *t = r->timing;

	r->watch_s = t->watch_least_s + (int)(r->random() * (t->watch_most_s - t->watch_least_s));
	r->watch_events = 0;
	move(r, REFLECTOR_OPENING);
	u->request = REFLECTOR_WATCH;
}

static void pause_for(struct reflector *r, enum reflector_state to, int64_t wait_ns, int64_t now_ns)
{
	free(r->continue_token);
	r->continue_token = NULL;
	r->resume = to;
	r->wake_ns = now_ns + wait_ns;
	move(r, REFLECTOR_PAUSED);
}

/* What to repeat. */
static enum reflector_state current(const struct reflector *r)
{
	return r->state == REFLECTOR_LISTING ? REFLECTOR_LISTING : REFLECTOR_OPENING;
}

static void resume(struct reflector *r, enum reflector_state what, struct reflector_update *u)
{
	if (what == REFLECTOR_LISTING)
		list_anew(r, u);
	else
		watch_now(r, u);
}

/* --- what is known ---------------------------------------------------------------------------- */

/* A version that is too long counts as missing. */
static bool is_version(const char *version)
{
	return version && *version && strlen(version) < RESOURCE_VERSION_MAX;
}

static void note_version(struct reflector *r, const char *version)
{
	if (is_version(version))
		snprintf(r->version, sizeof(r->version), "%s", version);
}

static void say(struct reflector *r, enum source_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct reflector *r, enum source_state state, const char *format, ...)
{
	MEM_FORMAT(r->source.message, sizeof(r->source.message), format);
	r->source.state = state;
}

/* Changes, or the first list, are missing. A kind that had none stays absent or forbidden. */
static void say_trouble(struct reflector *r, const struct kube_status *s)
{
	enum source_state was = r->source.state, state = SOURCE_LISTING;

	if (r->synced)
		state = SOURCE_STALE;
	else if (was == SOURCE_ABSENT || was == SOURCE_FORBIDDEN)
		state = was;
	if (s->code)
		say(r, state, "the API answers %d%s%s", s->code, s->message[0] ? ": " : "",
		    s->message);
	else
		say(r, state, "%s", s->message);
}

static void pause_troubled(struct reflector *r, enum reflector_state to,
			   const struct reflector_event *e)
{
	int64_t wait_ns;

	say_trouble(r, e->status);
	wait_ns = backoff_next(&r->backoff, &r->timing->backoff, r->random(), e->now_ns);
	if (e->status && e->status->retry_after_ns > wait_ns)
		wait_ns = e->status->retry_after_ns;
	pause_for(r, to, wait_ns, e->now_ns);
}

/* The group of an apiVersion is before the slash, "" for the core. */
static int group_len(const char *api_version)
{
	const char *slash = strchr(api_version, '/');

	return slash ? (int)(slash - api_version) : 0;
}

/* --- faults ----------------------------------------------------------------------------------- */

/*
 * 410, or a server that is behind. The version of pages: a list without pages, at once. A list from
 * a version: the newest state, at once. A watch, or a list of the newest state: a list after a
 * wait.
 */
static void on_version_unavailable(struct reflector *r, const struct reflector_event *e,
				   struct reflector_update *u)
{
	if (r->state == REFLECTOR_LISTING && r->continue_token) {
		r->unpaged = true;
		list_anew(r, u);
	} else if (r->state == REFLECTOR_LISTING && !r->version_lost) {
		r->version_lost = true;
		list_anew(r, u);
	} else {
		pause_troubled(r, REFLECTOR_LISTING, e);
	}
}

static void on_unauthorized(struct reflector *r, const struct reflector_event *e,
			    struct reflector_update *u)
{
	u->unauthorized = true;
	if (!r->renewed) {
		r->renewed = true;
		resume(r, current(r), u);
		return;
	}
	pause_troubled(r, current(r), e);
}

static void on_server_error(struct reflector *r, const struct reflector_event *e)
{
	enum reflector_state to = current(r);

	if (to == REFLECTOR_OPENING && ++r->rewatches > REWATCHES_MAX) {
		r->rewatches = 0;
		to = REFLECTOR_LISTING;
	}
	pause_troubled(r, to, e);
}

static bool was_short(const struct reflector *r, int64_t now_ns)
{
	return !r->watch_events && now_ns - r->opened_ns < r->timing->short_watch_ns;
}

/*
 * A starting API server refuses everything until it has read its roles: a kind that was allowed
 * retries.
 */
static void on_forbidden(struct reflector *r, const struct reflector_event *e)
{
	const char *version;

	if (r->synced && r->refusals++ < REFUSALS_RETRIED) {
		pause_troubled(r, current(r), e);
		return;
	}
	version = r->source.api_version[0] ? r->source.api_version : object_kind_version(r->kind);
	say(r, SOURCE_FORBIDDEN,
	    "the RBAC rule apiGroups: [\"%.*s\"], resources: [\"%.*s\"], verbs: [get, list, "
	    "watch] is missing (%s)",
	    group_len(version), version, object_kind_resource_len(r->kind),
	    object_kind_resource(r->kind), e->status->message);
	pause_for(r, REFLECTOR_LISTING, r->timing->forbidden_ns, e->now_ns);
}

static void on_fault(struct reflector *r, const struct reflector_event *e,
		     struct reflector_update *u)
{
	const struct kube_status *s = e->status;

	if (current(r) == REFLECTOR_OPENING)
		r->source.watch_errors++;
	if (s->version_unavailable) {
		on_version_unavailable(r, e, u);
	} else if (s->code == 0) {
		if (r->state == REFLECTOR_WATCHING && !was_short(r, e->now_ns))
			watch_now(r, u);
		else
			pause_troubled(r, current(r), e);
	} else if (s->code == 401) {
		on_unauthorized(r, e, u);
	} else if (s->code == 403) {
		on_forbidden(r, e);
	} else if (s->code == 404) {
		say_trouble(r, s);
		move(r, REFLECTOR_UNKNOWN);
	} else if (s->code == 429) {
		pause_troubled(r, current(r), e);
	} else if (s->code >= 500) {
		on_server_error(r, e);
	} else {
		pause_troubled(r, REFLECTOR_LISTING, e);
	}
}

/* --- the other events ------------------------------------------------------------------------- */

static void on_served(struct reflector *r, const struct reflector_event *e,
		      struct reflector_update *u)
{
	if (r->state != REFLECTOR_UNKNOWN)
		return;
	snprintf(r->source.api_version, sizeof(r->source.api_version), "%s", e->version);
	if (r->source.state == SOURCE_ABSENT)
		say(r, SOURCE_LISTING, "%s", "");
	list_anew(r, u);
}

static void on_unserved(struct reflector *r, struct reflector_update *u)
{
	if (r->state != REFLECTOR_UNKNOWN)
		return;
	u->clear = r->delivered;
	r->delivered = r->synced = false;
	r->version[0] = '\0';
	r->source.api_version[0] = '\0';
	say(r, SOURCE_ABSENT, "the API has no %s", object_kind_resource(r->kind));
}

static void on_undiscovered(struct reflector *r, const struct reflector_event *e)
{
	if (r->state != REFLECTOR_UNKNOWN)
		return;
	if (e->status->code == 403)
		say(r, SOURCE_FORBIDDEN,
		    "the ClusterRole system:discovery is missing: the API does not tell what it "
		    "serves");
	else
		say_trouble(r, e->status);
}

static void on_opened(struct reflector *r, const struct reflector_event *e,
		      struct reflector_update *u)
{
	r->renewed = false;
	r->refusals = 0;
	if (r->state == REFLECTOR_LISTING) {
		u->replace_begin = !r->continue_token;
		r->delivered = true;
		return;
	}
	r->opened_ns = e->now_ns;
	say(r, SOURCE_SYNCED, "%s", "");
	move(r, REFLECTOR_WATCHING);
}

/* The answer was correct, but is of no use. */
static void on_nonsense(struct reflector *r, const struct reflector_event *e, const char *what,
			struct reflector_update *u)
{
	struct reflector_event fault = *e;
	struct kube_status s;

	kube_status_set(&s, 0, what);
	fault.status = &s;
	on_fault(r, &fault, u);
}

static void on_page(struct reflector *r, const struct reflector_event *e,
		    struct reflector_update *u)
{
	free(r->continue_token);
	r->continue_token = e->continue_token ? mem_strdup(e->continue_token) : NULL;
	if (r->continue_token) {
		list_now(r, u);
		return;
	}
	if (!is_version(e->version)) {
		on_nonsense(r, e, "the list has no resourceVersion to watch from", u);
		return;
	}
	note_version(r, e->version);
	r->source.relists += r->synced;
	r->synced = true;
	r->version_lost = r->unpaged = false;
	r->rewatches = 0;
	u->replace_end = true;
	say(r, SOURCE_SYNCED, "%s", "");
	watch_now(r, u);
}

static void dispatch(struct reflector *r, const struct reflector_event *e,
		     struct reflector_update *u)
{
	switch (e->type) {
	case REFLECTOR_SERVED:
		on_served(r, e, u);
		break;
	case REFLECTOR_UNSERVED:
		on_unserved(r, u);
		break;
	case REFLECTOR_UNDISCOVERED:
		on_undiscovered(r, e);
		break;
	case REFLECTOR_TIME:
		if (r->state == REFLECTOR_PAUSED && e->now_ns >= r->wake_ns)
			resume(r, r->resume, u);
		break;
	case REFLECTOR_OPENED:
		on_opened(r, e, u);
		break;
	case REFLECTOR_PAGE:
		on_page(r, e, u);
		break;
	case REFLECTOR_CHANGE:
	case REFLECTOR_BOOKMARK:
		note_version(r, e->version);
		r->watch_events++;
		r->rewatches = 0;
		r->source.event_ns = e->wall_ns;
		break;
	case REFLECTOR_ENDED:
		if (was_short(r, e->now_ns))
			on_nonsense(r, e, "the API ends watches at once", u);
		else
			watch_now(r, u);
		break;
	case REFLECTOR_FAULT:
		on_fault(r, e, u);
		break;
	}
}

struct reflector_update reflector_step(struct reflector *r, const struct reflector_event *e)
{
	struct reflector_update u = {.request = REFLECTOR_NOTHING};
	enum source_state state = r->source.state;
	char message[sizeof(r->source.message)];

	memcpy(message, r->source.message, sizeof(message));
	dispatch(r, e, &u);
	if (r->source.state != state || !r->source.changed_ns)
		r->source.changed_ns = e->wall_ns;
	u.source = r->source.state != state || strcmp(r->source.message, message) != 0;
	return u;
}

int64_t reflector_wake_ns(const struct reflector *r)
{
	return r->state == REFLECTOR_PAUSED ? r->wake_ns : INT64_MAX;
}

/* --- requests --------------------------------------------------------------------------------- */

static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++)
		if ((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
		    (*text >= 'A' && *text <= 'Z') || strchr("-._~", *text))
			buf_add_char(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
}

static void add_list_query(const struct reflector *r, struct buf *out)
{
	const char *version = r->version_lost ? "" : r->version[0] ? r->version : "0";
	bool spare_pages = r->unpaged || (*version && strcmp(version, "0") != 0);

	if (r->continue_token) {
		buf_printf(out, "limit=%d&continue=", PAGE_LIMIT);
		add_escaped(out, r->continue_token);
		return;
	}
	if (!spare_pages)
		buf_printf(out, "limit=%d&", PAGE_LIMIT);
	buf_add_str(out, "resourceVersion=");
	add_escaped(out, version);
}

void reflector_path(const struct reflector *r, struct buf *out)
{
	const char *version = r->source.api_version;

	buf_printf(out, "/%s/%s/%.*s?", strchr(version, '/') ? "apis" : "api", version,
		   object_kind_resource_len(r->kind), object_kind_resource(r->kind));
	if (r->kind == OBJECT_POD)
		buf_add_str(out, "fieldSelector=" POD_SELECTOR "&");
	if (r->state == REFLECTOR_LISTING) {
		add_list_query(r, out);
		return;
	}
	buf_add_str(out, "watch=1&allowWatchBookmarks=true&resourceVersion=");
	add_escaped(out, r->version);
	buf_printf(out, "&timeoutSeconds=%d", r->watch_s);
}
