/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator's own handlers answer (aggregator/api), so every command shows offline what it
 * would have shown online at the snapshot's moment, byte for byte. Time stands still: "now" is that
 * moment. A file is read whole, up to FILE_MOST.
 */
#include "aggregator/cli/offline.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/planner/place_cache.h"
#include "aggregator/planner/plan.h"
#include "aggregator/state/reservations.h"
#include "shared/array.h"
#include "shared/file.h"
#include "shared/mem.h"

#define FILE_MOST ((size_t)2 << 30)

enum { PARAMETERS_MOST = 16 };

struct offline {
	struct api_context ctx;
	struct counters counters;
	struct snapshot *snapshot; /* owned */
	struct plan_memory memory; /* owned */
	struct plan_moment planned; /* of a record; its view is held */
	char *name; /* owned */
	bool has_usage, recorded;
};

/* The API asks for the time without saying which. */
static int64_t moment_ns;

static int64_t now_ns(void)
{
	return moment_ns;
}

/* --- files ------------------------------------------------------------------------------------ */

typedef int add_text(struct snapshot *s, const char *name, const char *text, size_t len,
		     struct error *error);

static int read_file(struct snapshot *s, const char *path, add_text *add, struct error *error)
{
	struct buf text = BUF_INIT;
	int rc = file_read(path, FILE_MOST, &text, error);

	if (!rc)
		rc = add(s, file_name(path), text.data, text.len, error);
	buf_fini(&text);
	return rc;
}

/* Takes the name. */
static struct offline *offline_new(char *name)
{
	struct offline *o = mem_zalloc(1, sizeof(*o));

	o->name = name;
	o->snapshot = snapshot_new();
	o->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &o->counters,
		.now_ns = now_ns,
		.watcher_smoothed = 1,
		.places = place_cache_new(),
	};
	return o;
}

/* Makes the view of the files that were read; rc: of reading. On failure it closes them. */
static int finish(struct offline *o, int rc, struct offline **out, struct error *error)
{
	struct view *v;

	if (!rc)
		rc = snapshot_view(o->snapshot, &v, &moment_ns, error);
	if (rc) {
		offline_close(o);
		return rc;
	}
	for (size_t i = 0; i < v->node_count; i++)
		o->has_usage |= v->nodes[i]->stats->end_ns != 0;
	o->ctx.kubernetes_mode = v->cluster ? "snapshot" : NULL;
	o->ctx.reservations = snapshot_take_reservations(o->snapshot);
	snapshot_take_memory(o->snapshot, &o->memory);
	o->ctx.memory = &o->memory;
	view_slot_publish(o->ctx.views, v);
	*out = o;
	return 0;
}

int offline_open(struct offline **out, const struct option_list *files, const char *usage,
		 struct error *error)
{
	struct buf name = BUF_INIT;
	struct offline *o;
	int rc = 0;

	for (size_t i = 0; i < files->count; i++)
		buf_printf(&name, "%s%s", i ? ", " : "", file_name(files->items[i]));
	o = offline_new(buf_take(&name, NULL));
	for (size_t i = 0; i < files->count && !rc; i++)
		rc = read_file(o->snapshot, files->items[i], snapshot_add, error);
	if (!rc && usage)
		rc = read_file(o->snapshot, usage, snapshot_add_usage, error);
	return finish(o, rc, out, error);
}

int offline_open_text(struct offline **out, const char *name, const char *text, size_t len,
		      struct error *error)
{
	struct offline *o = offline_new(mem_strdup(name));

	return finish(o, snapshot_add(o->snapshot, name, text, len, error), out, error);
}

void offline_moment_fini(struct offline_moment *m)
{
	view_drop(m->view);
	view_drop(m->plan.view);
	buf_fini(&m->state);
	*m = (struct offline_moment){0};
}

int offline_open_moment(struct offline **out, const struct offline_moment *m, struct error *error)
{
	struct offline *o = offline_new(mem_strdup("the record"));
	int rc = snapshot_use_view(o->snapshot, view_hold(m->view), m->at_ns, m->state.data,
				   m->state.len, error);

	o->recorded = true;
	if (m->plan.now_ns) {
		o->planned = m->plan;
		view_hold(o->planned.view);
		o->ctx.planned = &o->planned;
	}
	return finish(o, rc, out, error);
}

void offline_close(struct offline *o)
{
	if (!o)
		return;
	place_cache_free(o->ctx.places);
	view_slot_free(o->ctx.views);
	reservations_free(o->ctx.reservations);
	plan_memory_fini(&o->memory);
	view_drop(o->planned.view);
	snapshot_free(o->snapshot);
	free(o->name);
	free(o);
}

const char *offline_name(const struct offline *o)
{
	return o->name;
}

const struct snapshot_notes *offline_notes(const struct offline *o)
{
	return snapshot_notes(o->snapshot);
}

bool offline_has_usage(const struct offline *o)
{
	return o->has_usage;
}

bool offline_is_recorded(const struct offline *o)
{
	return o->recorded;
}

void offline_set_rules(struct offline *o, const struct quota_options *quota,
		       const struct slack_options *slack, const struct drain_setup *drain)
{
	o->ctx.quota = quota;
	o->ctx.slack = slack;
	o->ctx.drain = drain;
}

/* --- requests --------------------------------------------------------------------------------- */

/* The query of a request, split and unescaped in place. */
struct parameters {
	size_t count;
	struct parameter {
		const char *name, *value;
	} of[PARAMETERS_MOST];
};

/* "%2F" is a slash; what is no escape stays. */
static void unescape(char *text)
{
	int len;
	char *plain = curl_easy_unescape(NULL, text, 0, &len);

	if (!plain)
		mem_exhausted();
	memcpy(text, plain, (size_t)len + 1);
	curl_free(plain);
}

static void split_query(char *text, struct parameters *p)
{
	char *save, *part;

	for (part = strtok_r(text, "&", &save); part && p->count < PARAMETERS_MOST;
	     part = strtok_r(NULL, "&", &save)) {
		char *value = strchr(part, '=');

		if (value)
			*value++ = '\0';
		else
			value = part + strlen(part);
		unescape(part);
		unescape(value);
		p->of[p->count++] = (struct parameter){part, value};
	}
}

static const char *query(const struct api_request *rq, const char *name)
{
	const struct parameters *p = rq->connection;
	const struct parameter *found = array_find_text(p->of, p->count, sizeof(*p->of), name);

	return found ? found->value : NULL;
}

static const char *query_other(const struct api_request *rq, const char *const *known)
{
	const struct parameters *p = rq->connection;

	for (size_t i = 0; i < p->count; i++)
		if (!array_has_text(known, p->of[i].name))
			return p->of[i].name;
	return NULL;
}

/* The body, however the answer has it. Without a cache no answer is shared. */
static void take_answer(struct api_response *rs, struct buf *out)
{
	assert(!rs->shared);
	if (rs->stream) {
		while (rs->stream->next(rs->stream, out))
			;
		rs->stream->free(rs->stream);
	} else if (rs->body.len) {
		buf_add(out, rs->body.data, rs->body.len);
	}
	buf_fini(&rs->body);
}

int offline_request(struct offline *o, const char *method, const char *target, const char *body,
		    struct buf *out)
{
	char *path = mem_strdup(target), *mark = strchr(path, '?');
	struct parameters parameters = {.count = 0};
	struct api_response rs = {.status = 200};
	const struct api_request rq = {
		.method = method,
		.path = path,
		.body = body,
		.body_len = strlen(body),
		.query = query,
		.query_other = query_other,
		.connection = &parameters,
	};

	if (mark) {
		*mark = '\0';
		split_query(mark + 1, &parameters);
	}
	unescape(path);
	api_route(&o->ctx, &rq, &rs);
	take_answer(&rs, out);
	free(path);
	return rs.status;
}
