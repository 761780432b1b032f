/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of one question each: who pays, in which words, and what is said where nobody can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/join_fixture.h"
#include "tests/preempt_fixture.h"
#include "tests/view_fixture.h"
#include "tests/quota_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

static struct preempt_fixture f;
static struct preempt_plan plan;
static struct preempt_ask ask;
static struct kube_pod *self;

static int setup(void **unused)
{
	(void)unused;
	preempt_fixture_init(&f, QUOTA_CORRECTED);
	ask = (struct preempt_ask){.now_ns = NOW};
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	preempt_plan_fini(&plan);
	preempt_fixture_fini(&f);
	if (self)
		object_drop(&self->object);
	self = NULL;
	return 0;
}

static void node(const char *name, int cpus)
{
	char *json = mem_printf("{'metadata':{'name':'%s','labels':{'zone':'z'}},'status':{"
				"'allocatable':{'cpu':'%d','memory':'64Gi','pods':'20'}}}",
				name, cpus);

	place_fixture_put(&f.cluster, OBJECT_NODE, json);
	free(json);
}

static void put(const char *text)
{
	cJSON *flat = preempt_fixture_parse(text), *pod = preempt_fixture_pod(flat);

	preempt_fixture_put(&f, OBJECT_POD, pod);
	cJSON_Delete(flat);
	cJSON_Delete(pod);
}

/* name "NAMESPACE/POD"; start in seconds, of an hour until now; more: further members. */
static void bound(const char *name, const char *at, int priority, int milli, int start,
		  const char *more)
{
	const char *slash = strchr(name, '/');
	char *text = mem_printf("{'pod':'%s','namespace':'%.*s','uid':'uid-%s','node':'%s',"
				"'priority':%d,'start':%d,'request':{'cpu':%d}%s}",
				slash + 1, (int)(slash - name), name, slash + 1, at, priority,
				start, milli, more);

	put(text);
	free(text);
}

/* Of a CPU each, on n: p0 is the oldest. */
static void bound_many(const char *namespace, int count)
{
	for (int i = 0; i < count; i++) {
		char *name = mem_printf("%s/p%d", namespace, i);

		bound(name, "n", 0, 1000, i, "");
		free(name);
	}
}

static struct kube_pod *pending(const char *namespace, int priority, const char *request,
				const char *more)
{
	char *text = mem_printf("{'pod':'self','namespace':'%s','uid':'uid-self','priority':%d,"
				"'request':%s%s}",
				namespace, priority, request, more);
	cJSON *flat = preempt_fixture_parse(text);
	struct kube_pod *pod = preempt_fixture_record(flat);

	cJSON_Delete(flat);
	free(text);
	return pod;
}

static void budget(const char *namespace, const char *name, int allowed)
{
	char *text = mem_printf("{'metadata':{'name':'%s','namespace':'%s'},'spec':{'selector':{"
				"'matchLabels':{'app':'db'}}},'status':{'disruptionsAllowed':%d}}",
				name, namespace, allowed);

	place_fixture_put(&f.cluster, OBJECT_POD_DISRUPTION_BUDGET, text);
	free(text);
}

static struct quota *quota(const char *namespace, const char *min, const char *max)
{
	return preempt_fixture_quota(&f, namespace, min, max);
}

/* Asks anew of what there is now. */
static void search(void)
{
	preempt_plan_fini(&plan);
	preempt_fixture_build(&f, true);
	ask.pod = self;
	preempt_make_plan(f.index, f.place, f.book, &f.options, &ask, &plan);
}

static void asks(const char *namespace, int priority, const char *request, const char *more)
{
	self = pending(namespace, priority, request, more);
	search();
}

/* "NODE: POD POD" */
static void expect(enum preempt_verdict verdict, const char *text)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s", plan.chosen.node ? plan.chosen.node : "-");
	for (size_t i = 0; i < plan.chosen.victim_count; i++)
		buf_printf(&b, " %s", plan.chosen.victims[i].pod->object.name);
	if (plan.verdict != verdict)
		print_message("%s%s", plan.narration.data,
			      plan.unblock.len ? plan.unblock.data : "");
	assert_string_equal(preempt_verdict_name(plan.verdict), preempt_verdict_name(verdict));
	assert_string_equal(b.data, text);
	buf_fini(&b);
}

static void tells(const char *text)
{
	assert_non_null(strstr(plan.narration.data, text));
}

/* --- borrowed */

static void borrower_gives_back(void **unused)
{
	(void)unused;
	node("n", 6);
	quota("a", "{'cpu':3000}", "{'cpu':6000}");
	quota("b", "{'cpu':3000}", "{'cpu':6000}");
	bound("b/b0", "n", 0, 2000, 0, "");
	bound("b/b1", "n", 0, 2000, 3600, "");
	bound("b/b2", "n", 500, 1000, 1800, "");
	asks("a", 0, "{'cpu':2000}", "");
	expect(PREEMPT_VICTIMS, "n b1");
	assert_string_equal(
		plan.narration.data,
		"Pod a/self with priority 0 asks for cpu 2.0.\n"
		"Quotas refuse it: cpu: 5.0 used by all quotas + 2.0 asked is over 6.0, the sum of "
		"their min: wait for 1.0 to be freed, by itself or by preempting those who borrow, "
		"as quota a/q is within its min.\n"
		"Quota a stays within its min with it: quotas over their min may have to pay.\n"
		"Of 3 bound pods 3 may be victims.\n"
		"Victim b/b1 on n (cpu 2.0; priority 0, runs for 0s): its quota goes cpu from "
		"5.0 to 3.0 (min 3.0).\n"
		"The pod then goes to n.\n");
	assert_false(plan.several);
}

static void one_borrower_in_place_of_two(void **unused)
{
	(void)unused;
	node("n", 5);
	quota("a", "{'cpu':3000}", "{'cpu':6000}");
	quota("b", "{'cpu':0}", "{'cpu':6000}");
	quota("c", "{'cpu':3000}", "{'cpu':3000}");
	bound("b/b0", "n", 10, 3000, 0, "");
	bound("b/b1", "n", 0, 1000, 0, "");
	bound("b/b2", "n", 0, 1000, 60, "");
	asks("a", 0, "{'cpu':3000}", "");
	/* b2 and b1 go first by rank, and come back when b0 does alone. */
	expect(PREEMPT_VICTIMS, "n b0");
}

static void never_below_min(void **unused)
{
	(void)unused;
	node("n", 6);
	quota("a", "{'cpu':2000}", "{'cpu':6000}");
	quota("b", "{'cpu':4000}", "{'cpu':6000}");
	bound("b/b0", "n", 0, 5000, 0, "");
	bound("a/a0", "n", 0, 1000, 0, "");
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_true(plan.exhausted);
	assert_int_equal(plan.refused[PREEMPT_BELOW_MIN], 1);
	assert_null(strstr(plan.narration.data, "all quotas together use"));
	assert_string_equal(
		plan.unblock.data,
		"Without victims: cpu: 6.0 used by all quotas + 1.0 asked is over 6.0, the sum of "
		"their min: wait for 1.0 to be freed, by itself or by preempting those who borrow, "
		"as quota a/q is within its min.\n"
		"1 node refuses it, and none of its pods may go: NodeResourcesFit 1.\n"
		"1 pod of its own quota: deleting some would free what it needs.\n"
		"1 pod whose quota would be below its min: a lower min, or smaller pods there, "
		"would free some.\n");
}

static void exact_where_greed_fails(void **unused)
{
	(void)unused;
	node("n", 6);
	quota("a", "{'cpu':3000}", "{'cpu':6000}");
	quota("b", "{'cpu':3000}", "{'cpu':6000}");
	/* b may give 3 CPUs: the youngest first would leave no room for the other. */
	bound("b/old", "n", 0, 3000, 0, "");
	bound("b/young", "n", 0, 2000, 600, "");
	bound("b/rest", "n", 2000000000, 1000, 0, "");
	asks("a", 0, "{'cpu':3000}", "");
	expect(PREEMPT_VICTIMS, "n old");
}

/* --- several nodes */

static void two_nodes_pay(void **unused)
{
	(void)unused;
	node("n1", 2);
	node("n2", 2);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':2000}");
	bound("b/b1", "n1", 0, 1000, 1, "");
	bound("b/b2", "n2", 0, 1000, 2, "");
	asks("a", 0, "{'cpu':2000}", "");
	assert_true(plan.several);
	assert_int_equal(plan.chosen.victim_count, 2);
	tells("The pod then goes to n1.\nNo node had victims enough of its own.\n");
}

static void room_here_quota_there(void **unused)
{
	(void)unused;
	node("empty", 4);
	node("full", 2);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':4000}");
	bound("b/b0", "full", 0, 1000, 0, "");
	bound("b/b1", "full", 0, 1000, 60, "");
	/* Too large for what the other node would have without b1, but there is an empty one. */
	asks("a", 0, "{'cpu':2000}", "");
	expect(PREEMPT_VICTIMS, "full b1 b0");
	teardown(NULL);
	setup(NULL);

	node("empty", 4);
	node("full", 1);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':4000}");
	bound("b/b0", "full", 0, 1000, 0, "");
	asks("a", 0, "{'cpu':2000}", "");
	expect(PREEMPT_VICTIMS, "empty b0");
	assert_true(plan.several);
}

static const char apart[] =
	",'spec':{'affinity':{'podAntiAffinity':{"
	"'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone',"
	"'labelSelector':{'matchLabels':{'app':'db'}}}]}}}";

static void neighbours_elsewhere(void **unused)
{
	(void)unused;
	node("n1", 2);
	node("n2", 2);
	bound("x/p1", "n1", 0, 100, 0, ",'labels':{'app':'db'}");
	bound("x/p2", "n2", 0, 100, 1, ",'labels':{'app':'db'}");
	asks("x", 100, "{'cpu':100}", apart);
	assert_int_equal(plan.chosen.victim_count, 2);
	assert_true(plan.several);
}

/*
 * A node has room, and another would pay for itself and for the quotas; those who pay for the
 * quotas alone suffice.
 */
static void nobody_pays_for_room_there_is(void **unused)
{
	(void)unused;
	node("n", 4);
	node("n1", 8);
	quota("a", "{'cpu':3000}", "{'cpu':6000}");
	quota("b", "{'cpu':2000}", "{'cpu':6000}");
	bound_many("b", 4);
	asks("a", 0, "{'cpu':3000}", "");
	expect(PREEMPT_VICTIMS, "n1 p3 p2");
	assert_true(plan.several);
	tells("The pod then goes to n1.\nNone of them is on that node.\n");
}

/* The node that could pay alone has dearer pods than one where there is no room. */
static void the_cheapest_pay_wherever_they_are(void **unused)
{
	(void)unused;
	node("n1", 8);
	node("n2", 4);
	place_fixture_put(&f.cluster, OBJECT_NODE,
			  "{'metadata':{'name':'n3'},'spec':{'unschedulable':true},'status':{"
			  "'allocatable':{'cpu':'3','pods':'20'}}}");
	quota("a", "{'cpu':4000}", "{'cpu':6000}");
	quota("b", "{'cpu':2000}", "{'cpu':6000}");
	bound("b/b0", "n2", 500, 1500, 0, "");
	bound("b/b1", "n2", 500, 1500, 1, "");
	bound("b/c0", "n3", 0, 1500, 2, "");
	bound("b/c1", "n3", 0, 1500, 3, "");
	asks("a", 0, "{'cpu':3000}", "");
	expect(PREEMPT_VICTIMS, "n1 c1 c0");
}

/* A neighbour alone keeps it off a node with room; its own node would cost one more. */
static void no_more_than_the_neighbour_goes(void **unused)
{
	(void)unused;
	node("n1", 2);
	node("n2", 2);
	bound("x/db", "n2", 0, 100, 0, ",'labels':{'app':'db'}");
	bound("x/web", "n2", 0, 1900, 1, "");
	asks("x", 100, "{'cpu':1000}", apart);
	expect(PREEMPT_VICTIMS, "n1 db");
}

static void what_a_quota_does_not_name_is_borrowed(void **unused)
{
	(void)unused;
	place_fixture_put(&f.cluster, OBJECT_NODE,
			  "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'16',"
			  "'example.com/gpu':'5','pods':'20'}}}");
	quota("a", "{'example.com/gpu':3}", "{'example.com/gpu':8}");
	quota("b", "{'example.com/gpu':2}", "{'example.com/gpu':8}");
	for (int i = 0; i < 5; i++) {
		char *text = mem_printf(
			"{'pod':'g%d','namespace':'b','uid':'g%d','node':'n','priority':0,"
			"'start':%d,'request':{'cpu':500,'example.com/gpu':1}}",
			i, i, i);

		put(text);
		free(text);
	}
	asks("a", 0, "{'cpu':500,'example.com/gpu':3}", "");
	expect(PREEMPT_VICTIMS, "n g4 g3 g2");
	/* CPUs are guaranteed to c: a and b borrow theirs, and the pod would borrow more. */
	quota("c", "{'cpu':1000}", "{'cpu':1000}");
	search();
	expect(PREEMPT_IMPOSSIBLE, "-");
	/* c takes its own back from those who never named it. */
	object_drop(&self->object);
	asks("c", 0, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n g4 g3");
}

/* --- promises that cannot be kept */

static void old_debts_are_not_paid_again(void **unused)
{
	(void)unused;
	node("n", 12);
	quota("a", "{'cpu':4000}", "{'cpu':8000}");
	quota("b", "{'cpu':0}", "{'cpu':20000}");
	bound_many("b", 10);
	asks("a", 0, "{'cpu':2000}", "");
	/* 10 are used of 4, and there is room for 2: who asks for 2 has two to pay, not eight. */
	expect(PREEMPT_VICTIMS, "n p9 p8");
	tells("cpu: all quotas together use 6.0 more than their min without it: that is not its to "
	      "give back, and it starts as soon as it has a node nominated.\n");
	/* They went, and the scheduler has nominated the node; admission thinks the same. */
	object_drop(&self->object);
	bound("b/p9", "n", 0, 1000, 9, ",'terminating':true");
	bound("b/p8", "n", 0, 1000, 8, ",'terminating':true");
	asks("a", 0, "{'cpu':2000}", ",'nominated_node':'n'");
	expect(PREEMPT_NOT_NEEDED, "n");
	assert_true(plan.admission.admitted);
	/* But who would borrow is held up all the same. */
	object_drop(&self->object);
	asks("a", 0, "{'cpu':5000}", ",'nominated_node':'n'");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.admission.reason, QUOTA_OVER_SUM);
}

static void a_min_is_its_part_of_what_there_is(void **unused)
{
	struct resources capacity = RESOURCES_NONE;

	(void)unused;
	node("n", 10);
	quota("a", "{'cpu':8000}", "{'cpu':10000}");
	quota("b", "{'cpu':8000}", "{'cpu':10000}");
	bound_many("a", 8);
	bound("b/b0", "n", 0, 2000, 0, "");
	self = pending("b", 0, "{'cpu':3000}", "");
	preempt_fixture_build(&f, true);
	resources_set(&capacity, RESOURCE_CPU, 10000);
	quota_book_set_capacity(f.book, &capacity);
	ask.pod = self;
	preempt_make_plan(f.index, f.place, f.book, &f.options, &ask, &plan);
	expect(PREEMPT_VICTIMS, "n p7 p6 p5");
	assert_int_equal(plan.admission.reason, QUOTA_OVER_SUM);
	assert_string_equal(plan.admission.error.text,
			    "cpu: 10.0 used by all quotas + 3.0 asked is over 10.0, which is all "
			    "that nodes have for their min of 16.0: wait for 3.0 to be freed, by "
			    "itself or by preempting those who borrow, as quota b/q is within its "
			    "min");
	assert_string_equal(plan.chosen.victims[0].why,
			    "a/p7 on n (cpu 1.0; priority 0, runs for 59m53s): its quota goes cpu "
			    "from 8.0 to 7.0 (guaranteed 5.0 of min 8.0)");
}

/* --- the own namespace, and none */

static void only_lower_priorities_of_its_own(void **unused)
{
	(void)unused;
	node("n", 4);
	quota("a", "{'cpu':1000}", "{'cpu':4000}");
	quota("b", "{'cpu':3000}", "{'cpu':4000}");
	bound("a/low", "n", 0, 1000, 0, "");
	bound("a/high", "n", 1000, 1000, 0, "");
	bound("b/b0", "n", 0, 2000, 0, "");
	asks("a", 100, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n low");
	tells("Quota a would borrow for it: only pods of its own namespace with a priority below "
	      "100 may have to pay.\nOf 3 bound pods 1 may be victims; not: 1 of other namespaces, "
	      "1 without a lower priority.\n");
}

static void critical_pods(void **unused)
{
	(void)unused;
	node("n", 4);
	quota("a", "{'cpu':3000}", "{'cpu':4000}");
	bound("a/a0", "n", 0, 1000, 0, "");
	bound("a/a1", "n", 0, 3000, 60, "");
	asks("kube-system", 1000, "{'cpu':1000}", "");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.refused[PREEMPT_ISOLATED], 2);
	tells("Namespace kube-system has no quota: only pods of such namespaces");
	object_drop(&self->object);
	asks("kube-system", 2000000000, "{'cpu':1000}", "");
	/* a1 is younger, but without it a would be below its min. */
	expect(PREEMPT_VICTIMS, "n a0");
	tells("Priority 2000000000 is critical: any pod with a lower one may have to pay");
}

static void critical_pods_are_no_borrowers(void **unused)
{
	(void)unused;
	node("n", 2);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':2000}");
	bound("b/b0", "n", 2000000000, 2000, 0, "");
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.refused[PREEMPT_PRIORITY], 1);
}

/* --- who first */

static struct node_stats *measured(const char *at, const char *uid, double milli, const char *other,
				   double other_milli)
{
	struct pod_stats pods[2] = {
		join_fixture_pod("p1", uid, NOW, 3000, milli, 1e6),
		join_fixture_pod("p2", other, NOW, 3000, other_milli, 1e6),
	};

	return join_fixture_stats(at, NOW, pods, 2);
}

static void idle_before_unknown_before_busy(void **unused)
{
	struct node_stats *stats = measured("n", "uid-idle", 20, "uid-busy", 900);
	struct place_options o;
	struct quota_options q;
	const struct preempt *index;
	struct place *place;
	struct quota_book *book;
	struct view *v;

	(void)unused;
	node("n", 3);
	quota("a", "{'cpu':3000}", "{'cpu':3000}");
	quota("b", "{'cpu':0}", "{'cpu':3000}");
	bound("b/busy", "n", 0, 1000, 3000, "");
	bound("b/idle", "n", 0, 1000, 0, "");
	bound("b/quiet", "n", 0, 1000, 1000, "");
	self = pending("a", 0, "{'cpu':2000}", "");
	preempt_fixture_build(&f, true);
	v = place_fixture_view(&f.cluster, &stats, 1);
	place_options_default(&o);
	o.cap.on = false;
	o.now_ns = NOW;
	place = place_new(v, &o);
	index = preempt_of(v);
	quota_options_default(&q);
	book = quota_fixture_book(f.quotas, f.quota_count, &q);
	for (size_t i = 0; i < v->nodes[0]->pod_count; i++)
		quota_book_add(book, "b", kube_pod_requests(v->nodes[0]->pods[i].pod));
	ask.pod = self;
	preempt_make_plan(index, place, book, &f.options, &ask, &plan);
	expect(PREEMPT_VICTIMS, "n idle quiet");
	assert_int_equal(plan.chosen.victims[0].use, PREEMPT_IDLE);
	assert_int_equal(plan.chosen.victims[1].use, PREEMPT_UNKNOWN);
	assert_string_equal(plan.chosen.victims[0].why,
			    "b/idle on n (cpu 1.0; priority 0, uses 2% of its CPU request, runs "
			    "for 1h00m): its quota goes cpu from 3.0 to 2.0 (min 0.0)");
	quota_book_free(book);
	place_free(place);
	view_drop(v);
	node_stats_drop(stats);
}

/* --- budgets */

static void two_databases(const char *more)
{
	node("n", 3);
	quota("a", "{'cpu':1000}", "{'cpu':3000}");
	quota("b", "{'cpu':2000}", "{'cpu':3000}");
	bound("b/b0", "n", 0, 1000, 2, ",'labels':{'app':'db'}");
	bound("b/b1", "n", 0, 1000, 1, more);
	bound("b/b2", "n", 0, 1000, 0, more);
}

static void unprotected_first(void **unused)
{
	(void)unused;
	two_databases("");
	budget("b", "one", 0);
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n b1");
	assert_int_equal(plan.refused[PREEMPT_PDB], 1);
}

static void budgets_hard_and_soft(void **unused)
{
	(void)unused;
	two_databases(",'labels':{'app':'db'}");
	budget("b", "one", 0);
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_non_null(strstr(plan.unblock.data, "3 pods kept by PodDisruptionBudgets: more "
						  "replicas, or looser budgets, would free "
						  "some.\n"));
	f.options.pdb_hard = false;
	search();
	expect(PREEMPT_VICTIMS, "n b0");
	assert_int_equal(plan.chosen.violations, 1);
	tells("(min 2.0); breaks a PodDisruptionBudget.\n");
}

static void two_budgets_keep_a_pod(void **unused)
{
	(void)unused;
	two_databases("");
	budget("b", "one", 1);
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n b0");
	budget("b", "two", 1);
	search();
	/* The API server evicts no pod that two budgets select. */
	expect(PREEMPT_VICTIMS, "n b1");
}

/* --- time */

static void min_runtime(void **unused)
{
	(void)unused;
	node("n", 2);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':2000}")->min_runtime_ns = 600 * 1000000000LL;
	bound("b/b0", "n", 0, 2000, 3300, "");
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.retry_ns, NOW + 300 * 1000000000LL);
	assert_non_null(strstr(plan.unblock.data, "In 5m00s the first of those"));
	ask.now_ns = plan.retry_ns;
	search();
	expect(PREEMPT_VICTIMS, "n b0");
}

static void max_evictions(void **unused)
{
	struct victim_past past[] = {{NOW - 100 * 1000000000LL, "b"}, {NOW, "a"}};
	struct quota *b;

	(void)unused;
	node("n", 2);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	b = quota("b", "{'cpu':0}", "{'cpu':2000}");
	b->evictions_max = 2;
	b->evictions_ns = 3600 * 1000000000LL;
	bound("b/b0", "n", 0, 1000, 0, "");
	bound("b/b1", "n", 0, 1000, 1, "");
	ask.past = past;
	ask.past_count = 2;
	asks("a", 0, "{'cpu':2000}", "");
	/* Both would have to go, and one may. */
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.nodes[0].outcome, PREEMPT_NODE_GUARDED);
	past[0].at_ns = NOW - 3600 * 1000000000LL;
	search();
	expect(PREEMPT_VICTIMS, "n b1 b0");
}

/* --- nominated pods */

static void nominated(const char *name, const char *at, int priority, int milli)
{
	char *more = mem_printf(",'nominated_node':'%s'", at);

	bound(name, "", priority, milli, 0, more);
	free(more);
}

static void room_of_the_nominated_is_theirs(void **unused)
{
	(void)unused;
	node("n", 3);
	quota("a", "{'cpu':2000}", "{'cpu':3000}");
	quota("b", "{'cpu':1000}", "{'cpu':3000}");
	bound("b/b0", "n", 0, 1000, 0, "");
	bound("b/b1", "n", 0, 1000, 1, "");
	nominated("a/first", "n", 100, 1000);
	asks("a", 100, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n b1");
	/* Less important, it stands back. */
	object_drop(&self->object);
	asks("a", 200, "{'cpu':1000}", "");
	expect(PREEMPT_NOT_NEEDED, "n");
}

static void who_would_borrow_has_no_claim(void **unused)
{
	(void)unused;
	node("n", 2);
	quota("a", "{'cpu':1000}", "{'cpu':2000}");
	quota("c", "{'cpu':0}", "{'cpu':2000}");
	nominated("c/c0", "elsewhere", 100, 1000);
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_NOT_NEEDED, "n");
}

/* --- no victims */

static void what_goes_already_is_enough(void **unused)
{
	static const char *const told[] = {"uid-b0"};

	(void)unused;
	node("n", 2);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':2000}");
	bound("b/b0", "n", 0, 1000, 0, "");
	bound("b/b1", "n", 0, 1000, 1, "");
	ask.in_flight = told;
	ask.in_flight_count = 1;
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_WAIT, "n");
	bound("b/b1", "n", 0, 1000, 1, ",'terminating':true");
	ask.in_flight_count = 0;
	search();
	expect(PREEMPT_WAIT, "n");
	tells("It fits on n when 1 pod that is going is gone: no victims.\n");
}

static void never_means_none(void **unused)
{
	(void)unused;
	node("n", 1);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	quota("b", "{'cpu':0}", "{'cpu':2000}");
	bound("b/b0", "n", 0, 1000, 0, "");
	asks("a", 0, "{'cpu':1000}", ",'preemption_policy':'Never'");
	expect(PREEMPT_NEVER, "-");
	object_drop(&self->object);
	ask.never = true;
	asks("a", 0, "{'cpu':1000}", "");
	expect(PREEMPT_NEVER, "-");
	ask.never = false;
	search();
	expect(PREEMPT_VICTIMS, "n b0");
}

static void more_than_max_is_beyond_help(void **unused)
{
	(void)unused;
	node("n", 8);
	quota("a", "{'cpu':2000}", "{'cpu':2000}");
	bound("a/a0", "n", 0, 1000, 0, "");
	asks("a", 100, "{'cpu':3000}", "");
	expect(PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.admission.reason, QUOTA_NEVER);
	assert_non_null(strstr(plan.unblock.data, "waiting does not help"));
}

/* --- the extender's verb */

static void extender_answers(void **unused)
{
	static const char *const theirs[] = {"uid-b0"};
	const struct preempt_offer offers[] = {
		{"n2", NULL, 0}, {"n1", theirs, 1}, {"empty", NULL, 0}, {"gone", NULL, 0}};
	struct preempt_answer answer;

	(void)unused;
	node("n1", 2);
	node("n2", 2);
	node("empty", 1);
	quota("a", "{'cpu':3000}", "{'cpu':3000}");
	quota("b", "{'cpu':0}", "{'cpu':5000}");
	bound("b/b0", "n1", 0, 500, 0, "");
	bound("b/b1", "n1", 700, 1500, 1, "");
	bound("b/b2", "n2", 0, 1000, 1, "");
	self = pending("a", 100, "{'cpu':2000}", "");
	preempt_fixture_build(&f, true);
	ask.pod = self;
	preempt_for_extender(f.index, f.place, f.book, &f.options, &ask, offers, 4, &answer);
	assert_int_equal(answer.count, 1);
	assert_string_equal(answer.of[0].node, "n1");
	assert_int_equal(answer.of[0].victim_count, 2);
	assert_string_equal(answer.of[0].victims[0].pod->object.uid, "uid-b1");
	assert_string_equal(answer.of[0].victims[1].pod->object.uid, "uid-b0");
	assert_string_equal(
		answer.narration.data,
		"Node n2: quota.\n"
		"Node n1: 2 victims, other than offered.\n"
		"Victim b/b1 on n1 (cpu 1.5; priority 700, runs for 59m59s): its quota goes cpu "
		"from 2.5 to 1.0 (min 0.0).\n"
		"Victim b/b0 on n1 (cpu 0.5; priority 0, runs for 1h00m): its quota goes cpu from "
		"3.0 to 2.5 (min 0.0).\n"
		"Node empty: noVictim.\n"
		"Node gone is not known.\n");
	preempt_answer_fini(&answer);

	/* Asked again while those go, nobody else has to. */
	ask.in_flight = (const char *const[]){"uid-b0", "uid-b1"};
	ask.in_flight_count = 2;
	preempt_for_extender(f.index, f.place, f.book, &f.options, &ask, offers + 1, 1, &answer);
	assert_int_equal(answer.count, 0);
	assert_string_equal(answer.narration.data,
			    "Node n1 needs no victim besides those that are going.\n");
	preempt_answer_fini(&answer);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(borrower_gives_back),
		STORY(one_borrower_in_place_of_two),
		STORY(never_below_min),
		STORY(exact_where_greed_fails),
		STORY(two_nodes_pay),
		STORY(room_here_quota_there),
		STORY(nobody_pays_for_room_there_is),
		STORY(the_cheapest_pay_wherever_they_are),
		STORY(no_more_than_the_neighbour_goes),
		STORY(what_a_quota_does_not_name_is_borrowed),
		STORY(old_debts_are_not_paid_again),
		STORY(a_min_is_its_part_of_what_there_is),
		STORY(neighbours_elsewhere),
		STORY(only_lower_priorities_of_its_own),
		STORY(critical_pods),
		STORY(critical_pods_are_no_borrowers),
		STORY(idle_before_unknown_before_busy),
		STORY(unprotected_first),
		STORY(budgets_hard_and_soft),
		STORY(two_budgets_keep_a_pod),
		STORY(min_runtime),
		STORY(max_evictions),
		STORY(room_of_the_nominated_is_theirs),
		STORY(who_would_borrow_has_no_claim),
		STORY(what_goes_already_is_enough),
		STORY(never_means_none),
		STORY(more_than_max_is_beyond_help),
		STORY(extender_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
