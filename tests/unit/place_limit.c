/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a cluster can be ended: the limit is asked for every node, class and pod, so that no more
 * than one node's pods are read after it was over; and wherever that is, nothing is left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

enum { NODES = 6, PODS = 4 };

static struct place_fixture f;

/* Each pod is of a class of its own, and some keep others away. */
static void put_all(const char *memory)
{
	for (int n = 0; n < NODES; n++) {
		char *node =
			mem_printf("{'metadata':{'name':'n%d','labels':{'zone':'z%d'}},'status':{"
				   "'allocatable':{'cpu':'8','memory':'%s','pods':'110'},"
				   "'conditions':[{'type':'Ready','status':'True'}]}}",
				   n, n % 2, memory);

		place_fixture_put(&f, OBJECT_NODE, node);
		free(node);
		for (int i = 0; i < PODS; i++) {
			char *pod = mem_printf(
				"{'metadata':{'name':'p%d-%d','namespace':'shop','labels':{'app':"
				"'%d'}},'spec':{'nodeName':'n%d','affinity':{'podAntiAffinity':{"
				"'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':"
				"'zone','labelSelector':{'matchLabels':{'app':'x%d'}}}]}},"
				"'containers':[{'name':'c','resources':{'requests':{'cpu':'%dm'}}}]"
				"}}",
				n, i, n * PODS + i, n, i, 100 + n * PODS + i);

			place_fixture_put(&f, OBJECT_POD, pod);
			free(pod);
		}
	}
	place_fixture_put(&f, OBJECT_POD,
			  "{'metadata':{'name':'waits','namespace':'shop'},'spec':{'containers':[{"
			  "'name':'c'}]}}");
}

struct limit {
	int left, asked; /* answers until it is over; all questions */
};

static bool is_over(void *ctx)
{
	struct limit *l = ctx;

	l->asked++;
	return l->left == 0 || l->left-- == 0;
}

static struct place *build(struct view *v, struct limit *l)
{
	struct place_options o;

	place_options_default(&o);
	o.now_ns = VIEW_FIXTURE_NOW_NS;
	o.out_of_time = l ? is_over : NULL;
	o.ctx = l;
	return place_new(v, &o);
}

static void reading_a_cluster_ends_wherever_it_is(void **state)
{
	struct place *p = NULL;
	struct view *v;
	int ended = 0;

	(void)state;
	place_fixture_init(&f);
	put_all("16Gi");
	v = place_fixture_view(&f, NULL, 0);
	for (; !p; ended++) {
		struct limit l = {.left = ended};

		p = build(v, &l);
		/* After the answer that ends it there is no further question. */
		assert_int_equal(l.asked, p ? ended : ended + 1);
	}
	/* Each node, the pod that waits, each class and each pod on its node. */
	assert_in_range(ended, NODES + 1 + 2 * (NODES * PODS + 1), 500);
	place_free(p);
	view_drop(v);
	place_fixture_fini(&f);
}

static void following_a_cluster_ends_wherever_it_is(void **state)
{
	struct view *before, *now;
	bool whole = false;
	int ended = 0;

	(void)state;
	place_fixture_init(&f);
	put_all("16Gi");
	before = place_fixture_view(&f, NULL, 0);
	put_all("8Gi");
	now = place_fixture_view(&f, NULL, 0);
	for (; !whole; ended++) {
		struct place *p = build(before, NULL);
		struct limit l = {.left = ended};
		struct error error = {""};

		place_set_limit(p, is_over, &l);
		whole = place_update(p, now, VIEW_FIXTURE_NOW_NS);
		assert_int_equal(l.asked, whole ? ended : ended + 1);
		assert_true(!whole || place_is_consistent(p, &error));
		place_free(p);
	}
	assert_in_range(ended, NODES + NODES * PODS, 500);
	view_drop(before);
	view_drop(now);
	place_fixture_fini(&f);
}

/* What was read is asked and changed without a limit. */
static void questions_have_no_limit(void **state)
{
	struct limit l = {.left = 1000000};
	struct kube_pod *record;
	struct place *p;
	struct view *v;
	int asked;

	(void)state;
	place_fixture_init(&f);
	put_all("16Gi");
	v = place_fixture_view(&f, NULL, 0);
	p = build(v, &l);
	assert_non_null(p);
	asked = l.asked;
	l.left = 0;
	record = (struct kube_pod *)place_pod_record(p, place_find_pod(p, "shop", "waits"));
	assert_int_equal(place_check(p, place_add_pod(p, record), 0), PLACE_FITS);
	assert_int_equal(l.asked, asked);
	place_free(p);
	view_drop(v);
	place_fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_a_cluster_ends_wherever_it_is),
		cmocka_unit_test(following_a_cluster_ends_wherever_it_is),
		cmocka_unit_test(questions_have_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
