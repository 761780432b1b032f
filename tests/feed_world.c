/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle is in a multi handle that nobody performs: requests begin, and nothing comes but what
 * is given here.
 */
#include "tests/feed_world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/kube_feed.h"
#include "shared/log.h"
#include "shared/mem.h"

struct feed_world {
	struct kube_session *session;
	CURLM *multi;
	struct kube_json json;
	struct kube_outbox outbox;
	struct feed feed;
};

static double half(void)
{
	return 0.5;
}

static void ready(void *ctx)
{
	(void)ctx;
}

static void open_world(struct feed_world *w, enum object_kind kind)
{
	static char server[] = "http://127.0.0.1:1", source[] = "nowhere";
	struct kube_config config = {.server = server, .source = source};
	int rc = kube_session_new(&w->session, &config, NULL);

	log_start("feed", LOG_LEVEL_ERROR);
	assert(rc == 0);
	w->multi = curl_multi_init();
	kube_json_init(&w->json);
	kube_outbox_init(&w->outbox, ready, NULL);
	feed_init(&w->feed, kind, kube_timing_usual(), half, w->session, w->multi, &w->json,
		  &w->outbox);
}

static void close_world(struct feed_world *w)
{
	feed_fini(&w->feed);
	curl_multi_cleanup(w->multi);
	kube_session_free(w->session);
	kube_json_fini(&w->json);
	kube_outbox_fini(&w->outbox);
}

/* Each chunk is a copy of its exact length, so that a sanitizer sees what is read beyond it. */
static void answer(struct feed_world *w, const char *data, size_t len, size_t chunk)
{
	struct transfer *t = &w->feed.transfer;
	bool more = true;

	t->opened = true;
	t->hooks->on_open(t->ctx);
	for (size_t at = 0; more && at < len; at += chunk) {
		size_t part = chunk < len - at ? chunk : len - at;
		char *copy = mem_alloc(part);

		memcpy(copy, data + at, part);
		more = t->hooks->on_data(t->ctx, copy, part);
		t->enough = !more;
		free(copy);
	}
	transfer_finish(t, CURLE_OK);
}

static void write_change(const struct kube_change *c, struct buf *story)
{
	static const char *const names[] = {"put", "remove", "begin", "end", "clear", "source"};

	buf_printf(story, "%s", names[c->type]);
	if (c->object)
		buf_printf(story, " %s/%s", c->object->namespace, c->object->name);
	if (c->name)
		buf_printf(story, " %s/%s", c->namespace, c->name);
	if (c->source)
		buf_printf(story, " %d %s", c->source->state, c->source->message);
	buf_add_char(story, '\n');
}

static void take_all(struct feed_world *w, struct buf *story)
{
	struct kube_batch *b;

	kube_outbox_flush(&w->outbox);
	while ((b = kube_outbox_take(&w->outbox)) != NULL) {
		for (size_t i = 0; i < b->count; i++)
			write_change(&b->changes[i], story);
		kube_batch_free(b);
	}
}

void feed_world_tell(enum object_kind kind, const char *list, size_t list_len, const char *events,
		     size_t events_len, size_t chunk, struct buf *story)
{
	struct feed_world w = {0};
	const struct model_source *source = &w.feed.reflector.source;

	open_world(&w, kind);
	feed_discovered(&w.feed, REFLECTOR_SERVED, object_kind_version(kind), NULL);
	answer(&w, list, list_len, chunk);
	take_all(&w, story);
	if (w.feed.reflector.state == REFLECTOR_OPENING)
		answer(&w, events, events_len, chunk);
	take_all(&w, story);
	for (uint32_t i = 0; i < source->unreadable.count; i++)
		buf_printf(story, "unreadable %s/%s%s%s: %s\n", source->unreadable.of[i].namespace,
			   source->unreadable.of[i].name,
			   *source->unreadable.of[i].node ? " on " : "",
			   source->unreadable.of[i].node, source->unreadable.of[i].why);
	buf_printf(story, "skipped %d, too large %d, events %d, state %d, version %s\n",
		   (int)source->skipped, (int)source->too_large, (int)source->events,
		   (int)w.feed.reflector.state, w.feed.reflector.version);
	close_world(&w);
}
