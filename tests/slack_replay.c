/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/slack_replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/buf.h"
#include "shared/mem.h"

enum { ROOM = 800 };

/* A placeholder. */
struct stander {
	char *class, *node; /* owned; "" nowhere */
	cJSON *pod; /* owned; as of this step */
};

struct slack_replay {
	size_t count;
	struct stander of[ROOM];
	/* of the step that is looked at */
	const struct place_world *world;
	const struct slack_result *result;
};

struct slack_replay *slack_replay_new(void)
{
	return mem_zalloc(1, sizeof(struct slack_replay));
}

static void stander_fini(struct stander *p)
{
	free(p->class);
	free(p->node);
	cJSON_Delete(p->pod);
}

void slack_replay_free(struct slack_replay *s)
{
	for (size_t i = 0; i < s->count; i++)
		stander_fini(&s->of[i]);
	free(s);
}

/* --- what is there */

static const struct slack_class *find_class(const struct slack_replay *s, const char *key)
{
	for (size_t i = 0; i < s->result->class_count; i++)
		if (strcmp(s->result->classes[i].key, key) == 0)
			return &s->result->classes[i];
	return NULL;
}

static int find_node(const struct slack_replay *s, const char *name)
{
	for (size_t i = 0; i < s->world->node_count; i++)
		if (strcmp(place_world_name(s->world->nodes[i]), name) == 0)
			return (int)i;
	return VERIFY_NOWHERE;
}

static cJSON *pod_of(const struct slack_class *c)
{
	struct buf text = BUF_INIT;
	cJSON *pod;

	object_write(&c->record->object, &text);
	pod = cJSON_Parse(text.data);
	buf_fini(&text);
	return pod;
}

static uint32_t count_of(const struct slack_replay *s, const char *class)
{
	uint32_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += strcmp(s->of[i].class, class) == 0;
	return count;
}

static struct stander *find(struct slack_replay *s, const char *class, const char *node)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->of[i].class, class) == 0 && strcmp(s->of[i].node, node) == 0)
			return &s->of[i];
	fail_msg("%s moves from %s, where none is\n%s", class, node, s->result->narration.data);
	return NULL;
}

static struct stander *add(struct slack_replay *s, const char *class, const char *node)
{
	struct stander *p = &s->of[s->count++];

	assert_in_range(s->count, 1, ROOM);
	*p = (struct stander){mem_strdup(class), mem_strdup(node), pod_of(find_class(s, class))};
	return p;
}

static void drop(struct slack_replay *s, struct stander *p)
{
	stander_fini(p);
	*p = s->of[--s->count];
}

static void move(struct stander *p, const char *node)
{
	free(p->node);
	p->node = mem_strdup(node);
}

/* --- the checker */

struct scene {
	struct verify_world checker;
	const cJSON *pods[PLACE_WORLD_PODS + ROOM];
	int where[PLACE_WORLD_PODS + ROOM];
};

/* The world's pods, then placeholders in their order. */
static void set_scene(const struct slack_replay *s, struct scene *scene)
{
	const struct place_world *w = s->world;
	size_t count = 0;

	for (size_t i = 0; i < w->pod_count; i++) {
		scene->pods[count] = w->pods[i];
		scene->where[count++] = w->where[i];
	}
	for (size_t i = 0; i < s->count; i++) {
		scene->pods[count] = s->of[i].pod;
		scene->where[count++] = find_node(s, s->of[i].node);
	}
	scene->checker = place_world_checker(w);
	scene->checker.pods = scene->pods;
	scene->checker.pod_count = count;
	scene->checker.where = scene->where;
}

static struct place_verdict ask(const struct slack_replay *s, const struct stander *p, int node)
{
	struct scene *scene = mem_zalloc(1, sizeof(*scene));
	size_t at = s->world->pod_count + (size_t)(p - s->of);
	struct place_verdict v;

	set_scene(s, scene);
	scene->where[at] = VERIFY_NOWHERE;
	v = place_checker_ask(&scene->checker, at, (size_t)node);
	free(scene);
	return v;
}

/* Claims that placeholders bind are not the world's: of volumes the checker knows less. */
static bool is_refused(const struct place_verdict *v)
{
	return v->filter != PLACE_FITS && v->filter != PLACE_VOLUMES;
}

static bool may_stay(const struct slack_replay *s, const struct stander *p)
{
	struct place_verdict v = ask(s, p, find_node(s, p->node));

	return !is_refused(&v);
}

static bool any_is_broken(const struct slack_replay *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (*s->of[i].node && !may_stay(s, &s->of[i]))
			return true;
	return false;
}

/* --- causes */

static bool node_counts(const struct slack_replay *s, int node)
{
	const cJSON *json = node < 0 ? NULL : s->world->nodes[node], *taint;
	const cJSON *metadata = cJSON_GetObjectItem(json, "metadata");
	const cJSON *spec = cJSON_GetObjectItem(json, "spec");
	const cJSON *annotations = cJSON_GetObjectItem(metadata, "annotations");
	const char *draining =
		cJSON_GetStringValue(cJSON_GetObjectItem(annotations, "evenkeel.io/draining"));

	cJSON_ArrayForEach (taint, cJSON_GetObjectItem(spec, "taints")) {
		const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(taint, "key"));

		if (strcmp(key, "ToBeDeletedByClusterAutoscaler") == 0 ||
		    strcmp(key, "karpenter.sh/disrupted") == 0)
			return false;
	}
	return json && !cJSON_IsTrue(cJSON_GetObjectItem(spec, "unschedulable")) &&
	       !cJSON_GetObjectItem(metadata, "deletionTimestamp") &&
	       (!draining || strcmp(draining, "false") == 0);
}

static void check_pushed_out(struct slack_replay *s, const struct slack_move *m)
{
	struct stander *p = find(s, m->class, m->from);
	struct place_verdict v = ask(s, p, find_node(s, m->from));

	if (m->filter != PLACE_VOLUMES && !place_verdict_allows(&v, m->filter))
		fail_msg("%s is pushed out of %s by %s, and is refused by %s: %s\n%s", m->class,
			 m->from, place_filter_name(m->filter), place_filter_name(v.filter),
			 v.error.text, s->result->narration.data);
	drop(s, p);
}

/* Nowhere, or only where others could not stay. */
static bool has_no_place(struct slack_replay *s, const char *class)
{
	struct stander *p = add(s, class, "");
	bool found = false;

	for (int n = 0; n < (int)s->world->node_count && !found; n++) {
		struct place_verdict v = ask(s, p, n);

		if (!node_counts(s, n) || v.filter != PLACE_FITS)
			continue;
		move(p, place_world_name(s->world->nodes[n]));
		found = !any_is_broken(s);
	}
	drop(s, p);
	return !found;
}

/* Who made way could not have stayed beside the one that came. */
static void check_needed(struct slack_replay *s, const struct slack_move *m)
{
	struct stander *p = find(s, m->class, m->to);
	struct place_verdict v = ask(s, p, find_node(s, m->from));

	if (v.filter == PLACE_FITS)
		fail_msg("%s makes way on %s in vain\n%s", m->class, m->from,
			 s->result->narration.data);
}

/* Those that make way for the one that comes follow it. */
static size_t check_placed(struct slack_replay *s, const struct slack_move *m, size_t left)
{
	const struct slack_class *c = find_class(s, m->class);
	size_t displaced = 0;
	struct stander *p;

	while (displaced + 1 < left && m[displaced + 1].cause == SLACK_DISPLACED &&
	       strcmp(m[displaced + 1].by, m->class) == 0 &&
	       strcmp(m[displaced + 1].from, m->to) == 0)
		displaced++;
	assert_in_range(count_of(s, m->class), 0, c->wanted - 1);
	if (displaced && !has_no_place(s, m->class))
		fail_msg("%s needed nobody to make way\n%s", m->class, s->result->narration.data);
	for (size_t i = 1; i <= displaced; i++)
		move(find(s, m[i].class, m[i].from), m[i].to);
	p = add(s, m->class, m->to);
	for (size_t i = 1; i <= displaced; i++)
		check_needed(s, &m[i]);
	if (any_is_broken(s))
		fail_msg("%s comes to %s, and breaks something\n%s", m->class, p->node,
			 s->result->narration.data);
	return displaced + 1;
}

static size_t check_move(struct slack_replay *s, const struct slack_move *m, size_t left)
{
	const struct slack_class *c = find_class(s, m->class);

	switch (m->cause) {
	case SLACK_PUSHED_OUT:
		check_pushed_out(s, m);
		return 1;
	case SLACK_NODE_LEFT:
		assert_false(node_counts(s, find_node(s, m->from)));
		break;
	case SLACK_CLASS_LEFT:
		assert_null(c);
		break;
	case SLACK_SURPLUS:
		assert_non_null(c);
		assert_true(count_of(s, m->class) > c->wanted);
		break;
	case SLACK_PLACED:
		return check_placed(s, m, left);
	default:
		fail_msg("%s makes way for nobody\n%s", m->class, s->result->narration.data);
	}
	drop(s, find(s, m->class, m->from));
	return 1;
}

/* --- a step */

/* What stands is what it would be today. */
static void renew(struct slack_replay *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct slack_class *c = find_class(s, s->of[i].class);

		if (!c)
			continue;
		cJSON_Delete(s->of[i].pod);
		s->of[i].pod = pod_of(c);
	}
}

static void check_sum(struct slack_replay *s)
{
	const struct slack_result *r = s->result;

	assert_int_equal(s->count, r->placed_count);
	for (size_t i = 0; i < r->placed_count; i++) {
		const char *class = r->classes[r->placed[i].class].key;
		const char *node = r->view->nodes[r->placed[i].node]->name;
		size_t told = 0, there = 0;

		for (size_t k = 0; k < r->placed_count; k++)
			there += r->placed[k].class == r->placed[i].class &&
				 r->placed[k].node == r->placed[i].node;
		for (size_t k = 0; k < s->count; k++)
			told += strcmp(s->of[k].class, class) == 0 &&
				strcmp(s->of[k].node, node) == 0;
		assert_int_equal(told, there);
	}
	assert_false(any_is_broken(s));
}

void slack_replay_step(struct slack_replay *s, const struct place_world *w,
		       const struct slack_result *r)
{
	size_t at = 0;

	s->world = w;
	s->result = r;
	renew(s);
	while (at < r->move_count)
		at += check_move(s, &r->moves[at], r->move_count - at);
	check_sum(s);
}
