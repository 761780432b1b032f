/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	transfer --bytes--> splitter --object--> cJSON --> object_read() --> outbox
 *	    ^                  |
 *	    +-- path --- reflector <-- opened, page, change, bookmark, ended, fault
 *
 * An unreadable object is skipped, counted and named with its reason until it is readable or
 * deleted; a new list starts the names anew. It is removed from the model, since its former
 * content is outdated. Its resourceVersion counts, or the watch would return to it for ever.
 */
#include "aggregator/edge/kube/kube_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/utf8.h"

static void step(struct feed *f, struct reflector_event *e);

static enum object_kind kind_of(const struct feed *f)
{
	return f->reflector.kind;
}

/* --- reports ---------------------------------------------------------------------------------- */

static void report_source(struct feed *f, int64_t now_ns)
{
	struct model_source *source = mem_alloc(sizeof(*source));

	*source = f->reflector.source;
	kube_outbox_add(f->outbox, KUBE_SOURCE, kind_of(f), 0)->source = source;
	f->reported_ns = now_ns;
	f->unreported = false;
}

static void note_skipped(struct feed *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The log has the first of a kind; /metrics counts all, and the source names the newest. */
static void note_skipped(struct feed *f, const char *format, ...)
{
	struct model_source *source = &f->reflector.source;

	MEM_FORMAT(source->skipped_last, sizeof(source->skipped_last), format);
	/* Names come from outside; a log entry is one line. */
	utf8_replace_controls(source->skipped_last, ' ');
	f->unreported = true;
	if (!f->skip_logged)
		log_warn("passed over %s", source->skipped_last);
	f->skip_logged = true;
}

static void skip(struct feed *f, const char *what, const char *field, const char *why)
{
	f->reflector.source.skipped++;
	note_skipped(f, "%s %s: %s%s%s", object_kind_name(kind_of(f)), what, field,
		     *field ? ": " : "", why);
}

static void note_too_large(struct feed *f)
{
	struct model_source *source = &f->reflector.source;

	if (!f->splitter.too_large)
		return;
	source->too_large += f->splitter.too_large;
	f->splitter.too_large = 0;
	note_skipped(f, "%s: an object of %d MiB or more", object_kind_name(kind_of(f)),
		     SPLITTER_OBJECT_MAX >> 20);
}

/* --- objects ---------------------------------------------------------------------------------- */

static void remove_named(struct feed *f, const char *namespace, const char *name)
{
	struct kube_change *c = kube_outbox_add(f->outbox, KUBE_REMOVE, kind_of(f), 0);

	c->namespace = mem_strdup(namespace);
	c->name = mem_strdup(name);
}

static void note_unreadable(struct feed *f, const cJSON *json, const char *field, const char *why)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
	const char *namespace = object_json_text(metadata, "namespace");
	const char *name = object_json_text(metadata, "name");
	char full[128], *text;

	snprintf(full, sizeof(full), "%s%s%s", namespace,
		 object_kind_namespaced(kind_of(f)) ? "/" : "", name);
	skip(f, full, field, why);
	if (!*name)
		return;
	text = mem_printf("%s%s%s", field, *field ? ": " : "", why);
	unreadables_put(&f->reflector.source.unreadable, namespace, name,
			object_json_text(object_json_find(json, "spec"), "nodeName"), text);
	free(text);
	remove_named(f, namespace, name);
}

static void put(struct feed *f, cJSON *json, size_t len)
{
	char field[OBJECT_FIELD_MAX] = "";
	struct object *object;
	struct error why;

	/* Items of a list have no apiVersion and kind; the list has. */
	if (!cJSON_GetObjectItemCaseSensitive(json, "apiVersion"))
		cJSON_AddItemToObjectCS(json, "apiVersion",
					cJSON_CreateStringReference(
						f->reflector.source.api_version));
	if (!cJSON_GetObjectItemCaseSensitive(json, "kind"))
		cJSON_AddItemToObjectCS(json, "kind",
					cJSON_CreateStringReference(object_kind_name(kind_of(f))));
	if (object_read(kind_of(f), json, &object, field, &why)) {
		note_unreadable(f, json, field, why.text);
		return;
	}
	unreadables_remove(&f->reflector.source.unreadable, object->namespace, object->name);
	kube_outbox_add(f->outbox, KUBE_PUT, kind_of(f), len)->object = object;
}

static void remove_deleted(struct feed *f, const cJSON *json)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
	const char *namespace = object_json_text(metadata, "namespace");
	const char *name = object_json_text(metadata, "name");

	if (!*name) {
		skip(f, "that was deleted", "metadata.name", "is missing");
		return;
	}
	unreadables_remove(&f->reflector.source.unreadable, namespace, name);
	remove_named(f, namespace, name);
}

static void on_item(void *ctx, const char *text, size_t len)
{
	struct feed *f = ctx;
	cJSON *json = kube_json_begin(f->json, text, len);

	if (cJSON_IsObject(json))
		put(f, json, len);
	else
		skip(f, "of a list", "", "no JSON object");
	kube_json_end(f->json);
}

/* --- events of a watch ------------------------------------------------------------------------ */

static void note_news(struct feed *f, enum reflector_event_type type, const cJSON *object)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
	struct reflector_event e = {.type = type,
				    .version = object_json_text(metadata, "resourceVersion")};

	f->reflector.source.events++;
	f->unreported = true;
	step(f, &e);
}

static void on_event(struct feed *f, const char *type, cJSON *object, size_t len)
{
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0) {
		put(f, object, len);
		note_news(f, REFLECTOR_CHANGE, object);
	} else if (strcmp(type, "DELETED") == 0) {
		remove_deleted(f, object);
		note_news(f, REFLECTOR_CHANGE, object);
	} else if (strcmp(type, "BOOKMARK") == 0) {
		note_news(f, REFLECTOR_BOOKMARK, object);
	} else if (strcmp(type, "ERROR") == 0) {
		kube_status_set(&f->fault, 400, "");
		kube_status_read(&f->fault, object);
		f->faulted = true;
	} else {
		skip(f, "event", "type", "unknown");
	}
}

static void on_line(void *ctx, const char *text, size_t len)
{
	struct feed *f = ctx;
	cJSON *json, *object;

	if (f->faulted)
		return;
	json = kube_json_begin(f->json, text, len);
	object = cJSON_GetObjectItemCaseSensitive(json, "object");
	if (cJSON_IsObject(object))
		on_event(f, object_json_text(json, "type"), object, len);
	else
		skip(f, "event", "", "no JSON object");
	kube_json_end(f->json);
}

/* --- transfers -------------------------------------------------------------------------------- */

static bool is_list(const struct feed *f)
{
	return f->reflector.state == REFLECTOR_LISTING;
}

static void on_open(void *ctx)
{
	struct feed *f = ctx;
	struct reflector_event e = {.type = REFLECTOR_OPENED};

	splitter_fini(&f->splitter);
	splitter_init(&f->splitter, is_list(f) ? SPLITTER_LIST : SPLITTER_LINES,
		      is_list(f) ? on_item : on_line, f);
	f->faulted = false;
	step(f, &e);
}

static void set_fault(struct feed *f, const struct error *why)
{
	kube_status_set(&f->fault, 0, why->text);
	f->faulted = true;
}

static bool on_data(void *ctx, const char *data, size_t len)
{
	struct feed *f = ctx;
	struct error why;

	f->reflector.source.bytes += len;
	if (splitter_feed(&f->splitter, data, len, &why))
		set_fault(f, &why);
	note_too_large(f);
	return !f->faulted && !atomic_load(&f->outbox->closed);
}

static void on_end(void *ctx, const struct kube_status *status)
{
	struct feed *f = ctx;
	struct reflector_event e = {.type = is_list(f) ? REFLECTOR_PAGE : REFLECTOR_ENDED};

	if (atomic_load(&f->outbox->closed))
		return;
	if (!status && !f->faulted && is_list(f)) {
		const char *kind = f->splitter.kind ? f->splitter.kind : "nothing";
		const char *want = object_kind_name(kind_of(f));
		struct error why;

		/*
		 * Another document with items must not be taken for the kind, and empty the model.
		 */
		if (splitter_end(&f->splitter, &why)) {
			set_fault(f, &why);
		} else if (strncmp(kind, want, strlen(want)) != 0 ||
			   strcmp(kind + strlen(want), "List") != 0) {
			error_set(&why, "a list of %s was requested, and %.64s came", want, kind);
			set_fault(f, &why);
		}
	}
	if (!status && f->faulted)
		status = &f->fault;
	if (status) {
		e.type = REFLECTOR_FAULT;
		e.status = status;
	}
	e.version = f->splitter.resource_version;
	e.continue_token = f->splitter.continue_token;
	step(f, &e);
}

static const struct transfer_hooks hooks = {on_open, on_data, on_end};

static void request(struct feed *f, int64_t now_ns)
{
	const struct reflector *r = &f->reflector;
	struct buf path = BUF_INIT;
	struct transfer_request rq = {.gzip = is_list(f)};

	reflector_path(r, &path);
	rq.path = path.data;
	if (is_list(f))
		rq.silence_s = r->timing->list_silence_s;
	else
		rq.total_ms = (long)(r->watch_s * 1000L + r->timing->watch_grace_ns / NS_PER_MS);
	transfer_start(&f->transfer, &rq, now_ns);
	buf_fini(&path);
}

/* --- the reflector's orders ------------------------------------------------------------------- */

static void step(struct feed *f, struct reflector_event *e)
{
	struct reflector_update u;

	e->now_ns = clock_mono_ns();
	e->wall_ns = clock_wall_ns();
	u = reflector_step(&f->reflector, e);
	if (u.replace_begin || u.clear)
		f->reflector.source.unreadable = (struct unreadables){0};
	if (u.replace_begin)
		kube_outbox_add(f->outbox, KUBE_REPLACE_BEGIN, kind_of(f), 0);
	if (u.replace_end)
		kube_outbox_add(f->outbox, KUBE_REPLACE_END, kind_of(f), 0);
	if (u.clear)
		kube_outbox_add(f->outbox, KUBE_CLEAR, kind_of(f), 0);
	if (e->type == REFLECTOR_FAULT || u.replace_end)
		f->unreported = true;
	if (u.source)
		report_source(f, e->now_ns);
	if (u.unauthorized)
		kube_session_unauthorized(f->transfer.session);
	if (u.request != REFLECTOR_NOTHING)
		request(f, e->now_ns);
}

/* --- life ------------------------------------------------------------------------------------- */

void feed_init(struct feed *f, enum object_kind kind, const struct kube_timing *timing,
	       double (*random)(void), struct kube_session *session, CURLM *multi,
	       struct kube_json *json, struct kube_outbox *outbox)
{
	*f = (struct feed){.json = json, .outbox = outbox, .unreported = true};
	reflector_init(&f->reflector, kind, timing, random);
	transfer_init(&f->transfer, session, multi, &hooks, f);
}

void feed_fini(struct feed *f)
{
	transfer_fini(&f->transfer);
	splitter_fini(&f->splitter);
	reflector_fini(&f->reflector);
}

void feed_discovered(struct feed *f, enum reflector_event_type type, const char *api_version,
		     const struct kube_status *status)
{
	struct reflector_event e = {.type = type, .version = api_version, .status = status};

	step(f, &e);
}

int64_t feed_wake(struct feed *f, int64_t now_ns)
{
	struct reflector_event e = {.type = REFLECTOR_TIME};
	int64_t report_ns = f->reported_ns + f->reflector.timing->source_ns;

	if (reflector_wake_ns(&f->reflector) <= now_ns)
		step(f, &e);
	if (f->unreported && report_ns <= now_ns)
		report_source(f, now_ns);
	if (f->unreported && report_ns < reflector_wake_ns(&f->reflector))
		return report_ns;
	return reflector_wake_ns(&f->reflector);
}

bool feed_is_unknown(const struct feed *f)
{
	return f->reflector.state == REFLECTOR_UNKNOWN;
}
