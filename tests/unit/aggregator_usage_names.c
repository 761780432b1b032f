/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of cgroups as the usage state keeps them: shared, and told as they were heard.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/usage_story.h"

#define POD   "kubepods.slice/kubepods-pod1b4e.slice"
#define OTHER "kubepods.slice/kubepods-pod77aa.slice"
#define ID    "e3b0c442"

static void name_pod(struct entry *e, const char *name, const char *uid)
{
	snprintf(story_name(e, ENTITY_POD, name)->pod_uid, POD_UID_LEN + 1, "%s", uid);
}

static void name_container(struct entry *e, const char *name, uint32_t parent, const char *uid,
			   const char *id)
{
	struct entity *who = story_name(e, ENTITY_CONTAINER, name);

	who->parent = parent;
	snprintf(who->pod_uid, sizeof(who->pod_uid), "%s", uid);
	snprintf(who->container_id, sizeof(who->container_id), "%s", id);
}

enum { ENTRIES = 8 };

/* Two pods; the containers of the first are named in every way there is. */
static struct interval *tell_all(uint64_t sequence, int start)
{
	struct interval *i = story_interval(sequence, start, start + 5, ENTRIES);
	struct entry *e = i->entries;

	name_pod(&e[0], POD, "1b4e");
	name_container(&e[1], POD "/cri-containerd-" ID ".scope", 1, "1b4e", ID);
	name_container(&e[2], POD "/cri-containerd-00ff.scope", 1, "1b4e", "00ff");
	name_container(&e[3], "elsewhere/" ID, 1, "1b4e", ID);
	name_container(&e[4], POD "/\1\2", 1, "", "");
	name_container(&e[5], POD "/77aa", 1, "another", "77aa");
	name_pod(&e[6], OTHER, "77aa.slice");
	name_container(&e[7], OTHER "/cri-containerd-abcd.scope", 7, "77aa.slice", "abcd");
	return i;
}

static void expect_all(const struct node_stats *p, const char *first)
{
	assert_int_equal(p->pod_count, 2);
	assert_string_equal(p->pods[0].name, first);
	assert_string_equal(p->pods[0].uid, "1b4e");
	assert_string_equal(p->pods[1].name, OTHER);
	assert_string_equal(p->pods[1].uid, "77aa.slice");
	assert_int_equal(p->pods[0].container_count, 5);
	story_expect_container(&p->pods[0], 0, "elsewhere/" ID);
	story_expect_container(&p->pods[0], 1, POD "/\1\2");
	story_expect_container(&p->pods[0], 2, POD "/77aa");
	story_expect_container(&p->pods[0], 3, POD "/cri-containerd-00ff.scope");
	story_expect_container(&p->pods[0], 4, POD "/cri-containerd-" ID ".scope");
	assert_string_equal(p->pods[0].containers[0].id, ID);
	assert_string_equal(p->pods[0].containers[1].id, "");
	assert_string_equal(p->pods[0].containers[2].id, "77aa");
	assert_string_equal(p->pods[0].containers[3].id, "00ff");
	assert_string_equal(p->pods[0].containers[4].id, ID);
	assert_int_equal(p->pods[1].container_count, 1);
	story_expect_container(&p->pods[1], 0, OTHER "/cri-containerd-abcd.scope");
}

static void names_are_told_as_they_were_heard(void **state)
{
	struct usage_state *u = story_state();
	const struct node_stats *p;
	struct view *v;

	(void)state;
	story_tell_ok(u, 'r', tell_all(1, 0));
	p = story_stats(u, &v);
	expect_all(p, POD);
	/* The tail of the name. */
	assert_ptr_equal(p->pods[0].containers[2].id,
			 p->pods[0].containers[2].name + strlen(POD "/"));
	view_drop(v);
	usage_free(u);
}

static void what_is_told_again_is_no_news(void **state)
{
	struct usage_state *u = story_state();
	const struct stats_names *names;
	const struct node_stats *p;
	struct view *v, *later;

	(void)state;
	story_tell_ok(u, 'r', tell_all(1, 0));
	names = story_stats(u, &v)->names;
	story_tell_ok(u, 'r', tell_all(2, 5));
	p = story_stats(u, &later);
	assert_ptr_equal(p->names, names);
	expect_all(p, POD);
	view_drop(v);
	view_drop(later);
	usage_free(u);
}

/* The containers do not say so; their names were those of the pod before. */
static void a_pod_that_becomes_another_leaves_its_containers_their_names(void **state)
{
	static const char renamed[] =
		"a pod, and a longer name than it had before it was renamed so";
	struct usage_state *u = story_state();
	struct interval *i = story_interval(2, 5, 10, ENTRIES);
	struct view *v, *later;

	(void)state;
	story_tell_ok(u, 'r', tell_all(1, 0));
	expect_all(story_stats(u, &v), POD);
	name_pod(&i->entries[0], renamed, "1b4e");
	story_tell_ok(u, 'r', i);
	expect_all(story_stats(u, &later), renamed);
	expect_all(v->nodes[0]->stats, POD);
	view_drop(later);

	i = story_interval(3, 10, 15, ENTRIES);
	name_pod(&i->entries[0], POD, "1b4e");
	story_tell_ok(u, 'r', i);
	expect_all(story_stats(u, &later), POD);
	view_drop(later);
	view_drop(v);
	usage_free(u);
}

/* A pod that left for a moment and comes back finds them. */
static void names_outlive_a_gap(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(2, 5, 10, 2);
	struct view *v;

	(void)state;
	story_tell_ok(u, 'r', tell_all(1, 0));
	i->entries[0].ref = 7;
	i->entries[1].ref = 9;
	name_pod(&i->entries[1], "new", "");
	story_tell_ok(u, 'r', i);
	story_tell_ok(u, 'r', story_interval(3, 10, 15, ENTRIES));
	expect_all(story_stats(u, &v), POD);
	view_drop(v);
	usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_told_as_they_were_heard),
		cmocka_unit_test(what_is_told_again_is_no_news),
		cmocka_unit_test(a_pod_that_becomes_another_leaves_its_containers_their_names),
		cmocka_unit_test(names_outlive_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
