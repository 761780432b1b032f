/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test's thread is the loop: it takes batches while it waits for a condition, and sleeps until
 * there are more.
 */
#include "tests/kube_edge_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shared/clock.h"
#include "shared/mem.h"

/*
 * No pause is worth waiting for, no watch is too short, and what is lost is only found by what the
 * test does.
 */
static const struct kube_timing fast = {
	.backoff = {.first_ns = NS_PER_MS, .most_ns = 4 * NS_PER_MS, .reset_ns = NS_PER_SEC},
	.forbidden_ns = NS_PER_MS,
	.absent_ns = NS_PER_MS,
	.watch_least_s = 300,
	.watch_most_s = 600,
	.watch_grace_ns = 30 * NS_PER_SEC,
	.list_silence_s = 60,
	.source_ns = NS_PER_MS,
};

/* --- the loop's part -------------------------------------------------------------------------- */

static void on_ready(void *ctx)
{
	struct edge_scene *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->ready = true;
	s->batches++;
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
}

size_t edge_count_batches(struct edge_scene *s)
{
	size_t count;

	pthread_mutex_lock(&s->lock);
	count = s->batches;
	pthread_mutex_unlock(&s->lock);
	return count;
}

static void write_source(struct edge_scene *s, enum object_kind kind,
			 const struct model_source *source)
{
	static const char *const states[] = {"none",	  "listing", "synced",	"stale",
					     "forbidden", "absent",  "snapshot"};
	struct model_source *before = &s->sources[kind];

	if (source->state != before->state || strcmp(source->message, before->message) != 0)
		buf_printf(&s->story[kind], "%s\n", states[source->state]);
	*before = *source;
}

static void write_change(struct edge_scene *s, const struct kube_change *c)
{
	struct buf *out = &s->story[c->kind];

	switch (c->type) {
	case KUBE_PUT:
		assert_int_equal(c->object->kind, c->kind);
		buf_printf(out, "put %s/%s\n", c->object->namespace, c->object->name);
		break;
	case KUBE_REMOVE:
		buf_printf(out, "remove %s/%s\n", c->namespace, c->name);
		break;
	case KUBE_REPLACE_BEGIN:
		buf_add_str(out, "begin\n");
		break;
	case KUBE_REPLACE_END:
		buf_add_str(out, "end\n");
		break;
	case KUBE_CLEAR:
		buf_add_str(out, "clear\n");
		break;
	case KUBE_SOURCE:
		write_source(s, c->kind, c->source);
		break;
	}
}

static void take_all(struct edge_scene *s)
{
	struct kube_batch *b;

	while ((b = kube_take(s->kube)) != NULL) {
		for (size_t i = 0; i < b->count; i++)
			write_change(s, &b->changes[i]);
		kube_batch_free(b);
	}
}

/* Takes what comes until it is true, or for too long. */
bool edge_scene_await(struct edge_scene *s, bool (*is_true)(struct edge_scene *s, const void *what),
		      const void *what)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EDGE_AWAIT_SECONDS;
	for (;;) {
		take_all(s);
		if (is_true(s, what))
			return true;
		if (rc)
			return false;
		pthread_mutex_lock(&s->lock);
		while (!s->ready && !rc)
			rc = pthread_cond_timedwait(&s->news, &s->lock, &until);
		s->ready = false;
		pthread_mutex_unlock(&s->lock);
	}
}

/* --- what is asserted ------------------------------------------------------------------------- */

static bool story_is_long_enough(struct edge_scene *s, const void *what)
{
	const struct edge_expected *e = what;

	return s->story[e->kind].len >= strlen(e->story);
}

void edge_forget_story(struct edge_scene *s, enum object_kind kind)
{
	buf_clear(&s->story[kind]);
	buf_add_str(&s->story[kind], "");
}

/* What was handed over since the last call. */
void edge_assert_story(struct edge_scene *s, enum object_kind kind, const char *story)
{
	struct edge_expected e = {kind, story};

	edge_scene_await(s, story_is_long_enough, &e);
	assert_string_equal(s->story[kind].data ? s->story[kind].data : "", story);
	edge_forget_story(s, kind);
}

static bool has_message(struct edge_scene *s, const void *what)
{
	const struct edge_expected *e = what;

	return strstr(s->sources[e->kind].message, e->story) != NULL;
}

void edge_assert_message(struct edge_scene *s, enum object_kind kind, const char *part)
{
	struct edge_expected e = {kind, part};

	if (!edge_scene_await(s, has_message, &e))
		fail_msg("\"%s\" is not in \"%s\"", part, s->sources[kind].message);
}

static bool has_skipped(struct edge_scene *s, const void *what)
{
	const struct edge_expected *e = what;

	return strstr(s->sources[e->kind].skipped_last, e->story) != NULL;
}

void edge_assert_skipped(struct edge_scene *s, enum object_kind kind, const char *part)
{
	struct edge_expected e = {kind, part};

	if (!edge_scene_await(s, has_skipped, &e))
		fail_msg("\"%s\" is not in \"%s\"", part, s->sources[kind].skipped_last);
}

void edge_assert_path(struct edge_scene *s, const char *part, size_t i, const char *want)
{
	char *path;

	assert_true(kube_peer_await(s->peer, part, i + 1));
	path = kube_peer_path(s->peer, part, i);
	if (!strstr(path, want))
		fail_msg("\"%s\" is not in \"%s\"", want, path);
	free(path);
}

/* --- life ------------------------------------------------------------------------------------- */

int edge_scene_setup(void **state)
{
	struct edge_scene *s = mem_zalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->news, NULL);
	s->peer = kube_peer_new();
	s->config.server = mem_strdup(kube_peer_url(s->peer));
	s->config.source = mem_strdup("the test");
	s->timing = fast;
	*state = s;
	return 0;
}

int edge_scene_teardown(void **state)
{
	struct edge_scene *s = *state;

	kube_stop(s->kube);
	kube_peer_free(s->peer);
	kube_config_fini(&s->config);
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		buf_fini(&s->story[kind]);
	free(s);
	return 0;
}

void edge_scene_start(struct edge_scene *s)
{
	struct error error;

	if (kube_start(&s->kube, &s->config, &s->timing, on_ready, s, &error))
		fail_msg("%s", error.text);
}
