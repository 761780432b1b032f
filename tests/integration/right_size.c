/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Right-sizing a cluster, from advice to empty nodes: a real aggregator hears of a simulated cluster,
 * evenkeel advise says how many nodes could be emptied with smaller requests, evenkeel whatif makes
 * the change in a copy, and drain plans of the copy are carried out, wave after wave, until so many
 * nodes, or one fewer, are empty. Each move is judged by the placement core, each wave by evenkeel
 * verify. The same waves of the unchanged cluster empty fewer nodes, and both judges refuse moves that
 * cannot be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/policy/place/place.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"

#define BATCH_NODE "node-0009" /* tainted for jobs */

enum { TIMEOUT_S = 120, FILE_MOST = 256 << 20, WAVES_MOST = 40, WORDS = 24 };

#define CLUSTER "--nodes", "24", "--containers", "1", "--seed", "7", "--movable"

struct scene {
	struct stack *stack;
	char *dump, *now, *advice, *advised, *wave; /* paths */
	size_t workloads;
};

/* --- programs and files ----------------------------------------------------------------------- */

/* evenkeel with those words, up to NULL; the exit status. */
static int say(struct buf *out, const char *const *words)
{
	char *argv[WORDS] = {(char *)program_path("evenkeel")};
	struct buf err = BUF_INIT;
	size_t n = 1;
	int code;

	for (; *words; words++)
		argv[n++] = (char *)*words;
	code = process_run(argv, out, &err);
	buf_add_str(out, "");
	if (err.len)
		print_message("%s", err.data);
	buf_fini(&err);
	return code;
}

#define SAY(out, ...) say(out, (const char *const[]){__VA_ARGS__, NULL})

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void write_json(const char *path, const cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	write_file(path, text);
	free(text);
}

static cJSON *read_json(const char *path)
{
	struct buf text = BUF_INIT;
	struct error error;
	cJSON *json;

	assert_int_equal(file_read(path, FILE_MOST, &text, &error), 0);
	json = cJSON_ParseWithLength(text.data, text.len);
	assert_non_null(json);
	buf_fini(&text);
	return json;
}

/* --- the cluster ------------------------------------------------------------------------------ */

static size_t count_workloads(const char *dump)
{
	cJSON *list = read_json(dump), *seen = cJSON_CreateObject();
	size_t count = 0;

	for (const cJSON *o = document_first(list, "items"); o; o = o->next) {
		const char *owner = document_text(document_controller(o), "uid");

		if (!document_is(o, "kind", "Pod") || !document_text(o, "spec.nodeName") ||
		    cJSON_HasObjectItem(seen, owner))
			continue;
		cJSON_AddTrueToObject(seen, owner);
		count++;
	}
	cJSON_Delete(seen);
	cJSON_Delete(list);
	return count;
}

/* Of each workload demand is known. */
static bool is_advised(void *ctx)
{
	struct scene *s = ctx;
	cJSON *doc = stack_get(s->stack, 0, "/v1/advice?limit=1");
	bool all = document_number(doc, "total.containers") == (double)s->workloads &&
		   document_number(doc, "total.verdicts.unknown") == 0;

	cJSON_Delete(doc);
	return all;
}

static void make_dump(const struct scene *s)
{
	const char *folder = getenv("TB");
	char *program = mem_printf("%s/fleet", folder ? folder : "build/tests");
	const char *const words[] = {program, "--dump", s->dump, CLUSTER, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	assert_int_equal(process_run((char *const *)words, &out, &err), 0);
	buf_fini(&out);
	buf_fini(&err);
	free(program);
}

static int setup(void **state)
{
	const char *const options[] = {CLUSTER, "--interval",  "2s", "--history",
				       "5m",	"--ring-span", "6m", NULL};
	struct scene *s = mem_zalloc(1, sizeof(*s));
	cJSON *snapshot;
	pid_t fleet;

	s->stack = stack_new();
	s->dump = mem_printf("%s/dump.json", s->stack->folder);
	s->now = mem_printf("%s/now.json", s->stack->folder);
	s->advice = mem_printf("%s/advice.yaml", s->stack->folder);
	s->advised = mem_printf("%s/advised.json", s->stack->folder);
	s->wave = mem_printf("%s/wave.json", s->stack->folder);
	*state = s;
	make_dump(s);
	s->workloads = count_workloads(s->dump);
	s->stack->aggregators[0].snapshot_path = s->dump;
	stack_start_aggregator(s->stack, 0);
	fleet = fleet_start(s->stack, options);
	assert_true(await(is_advised, s, TIMEOUT_S));
	snapshot = stack_get(s->stack, 0, "/v1/snapshot");
	write_json(s->now, snapshot);
	cJSON_Delete(snapshot);
	cJSON_Delete(fleet_stop(s->stack, fleet));
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stack_free(s->stack, 0);
	free(s->dump);
	free(s->now);
	free(s->advice);
	free(s->advised);
	free(s->wave);
	free(s);
	return 0;
}

/* --- judges ----------------------------------------------------------------------------------- */

static place_pod pod_of(struct place *p, const cJSON *move)
{
	return place_find_pod(p, document_text(move, "namespace"), document_text(move, "name"));
}

/* 0: the node has no steps. */
static int step_of(const cJSON *move)
{
	double step = document_number(move, "step");

	return step > 0 ? (int)step : 0;
}

/* The pods of a step leave together, then come one after the other. */
static size_t judge_node(struct place *p, const cJSON *node)
{
	const cJSON *first = document_first(node, "moves"), *move, *end;
	size_t refused = 0;
	struct error why;

	place_drain_node(p, place_find_node(p, document_text(node, "name")));
	for (; first; first = end) {
		for (end = first; end && step_of(end) == step_of(first); end = end->next)
			place_take(p, pod_of(p, end));
		for (move = first; move != end; move = move->next) {
			place_node to = place_find_node(p, document_text(move, "to"));

			if (place_explain(p, pod_of(p, move), to, &why) != PLACE_FITS) {
				print_message("%s: %s\n", document_text(move, "name"), why.text);
				refused++;
			}
			place_put(p, pod_of(p, move), to);
		}
	}
	return refused;
}

/* How many moves the placement core refuses, of a plan that it carries out. */
static size_t count_refused(const char *cluster, const cJSON *plan)
{
	struct snapshot *s = snapshot_new();
	struct buf text = BUF_INIT;
	struct place_options o;
	size_t refused = 0;
	struct error error;
	struct place *p;
	struct view *v;

	assert_int_equal(file_read(cluster, FILE_MOST, &text, &error), 0);
	assert_int_equal(snapshot_add(s, cluster, text.data, text.len, &error), 0);
	place_options_default(&o);
	o.plans = true;
	assert_int_equal(snapshot_view(s, &v, &o.now_ns, &error), 0);
	p = place_new(v, &o);
	assert_true(place_cap_applies(p));
	for (const cJSON *node = document_first(plan, "nodes"); node; node = node->next)
		refused += judge_node(p, node);
	place_free(p);
	view_drop(v);
	snapshot_free(s);
	buf_fini(&text);
	return refused;
}

/* The exit status of the checker: 0 for a plan that holds, 1 for one that is refused. */
static int verify(const struct scene *s, const char *cluster, const cJSON *plan)
{
	struct buf out = BUF_INIT;
	int code;

	write_json(s->wave, plan);
	code = SAY(&out, "verify", s->wave, "--snapshot", cluster);
	if (code)
		print_message("%s", out.data);
	buf_fini(&out);
	return code;
}

/* --- waves ------------------------------------------------------------------------------------ */

/*
 * The plan of those nodes that may go at once; the caller's. Placeholders of slack are left out. A
 * wave may depend on the destinations that the scheduler chooses: the last node often does.
 */
static cJSON *plan_of(const char *cluster)
{
	struct buf out = BUF_INIT;
	cJSON *plan;

	assert_int_equal(SAY(&out, "drain", "--snapshot", cluster, "-o", "plan",
			     "--scale-down-unneeded-time", "0s", "--assume-unneeded-for", "1s",
			     "--extra-capacity-min-rate", "0", "--drain-not-robust"),
			 0);
	plan = cJSON_Parse(out.data);
	assert_true(cJSON_IsArray(document_at(plan, "nodes")));
	buf_fini(&out);
	return plan;
}

/* Adds the use of a pod to its new node's: means and extremes, of all windows. */
static void add_use(cJSON *to, const cJSON *use)
{
	static const char *const kept[] = {"samples", "seconds", "stddev", NULL};
	cJSON *member;

	cJSON_ArrayForEach (member, to) {
		const cJSON *own = cJSON_GetObjectItem(use, member->string);

		/* Pods have no percentiles. */
		if (!own && *member->string == 'p')
			own = cJSON_GetObjectItem(use, "mean");
		if (cJSON_IsObject(member) && own)
			add_use(member, own);
		else if (cJSON_IsNumber(member) && cJSON_IsNumber(own) &&
			 !array_has_text(kept, member->string))
			cJSON_SetNumberHelper(member, member->valuedouble + own->valuedouble);
	}
}

static void replace_text(cJSON *object, const char *key, const char *text)
{
	cJSON_ReplaceItemInObject(object, key, cJSON_CreateString(text));
}

static void move_pod(cJSON *snapshot, cJSON *pod, const char *to)
{
	const cJSON *nodes = document_at(snapshot, "usage.nodes"),
		    *use = document_find(document_at(snapshot, "usage.pods"), "", "uid",
					 document_text(pod, "metadata.uid")),
		    *node = document_find(nodes, "", "name", to);

	replace_text(cJSON_GetObjectItem(pod, "spec"), "nodeName", to);
	if (!use)
		return;
	add_use(cJSON_GetObjectItem(node, "usage"), document_at(use, "usage"));
	replace_text((cJSON *)use, "node", to);
	replace_text((cJSON *)use, "end", document_text(node, "end"));
}

/* Deletes the items of a list that have that text. */
static void drop(cJSON *list, const char *path, const char *text)
{
	cJSON *item = list->child, *next;

	for (; item; item = next) {
		next = item->next;
		if (document_is(item, path, text))
			cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
	}
}

/* The file becomes the cluster after the wave, which has no memory of plans. */
static void carry_out(const char *cluster, const cJSON *plan)
{
	cJSON *snapshot = read_json(cluster), *items = (cJSON *)document_at(snapshot, "list.items");

	for (const cJSON *n = document_first(plan, "nodes"); n; n = n->next) {
		const char *name = document_text(n, "name");

		for (const cJSON *m = document_first(n, "moves"); m; m = m->next)
			move_pod(snapshot,
				 (cJSON *)document_find(items, "", "metadata.uid",
							document_text(m, "uid")),
				 document_text(m, "to"));
		/* Pods of DaemonSets end with the node. */
		drop(items, "spec.nodeName", name);
		drop(items, "metadata.name", name);
		drop((cJSON *)document_at(snapshot, "usage.nodes"), "name", name);
		drop((cJSON *)document_at(snapshot, "usage.pods"), "node", name);
	}
	cJSON_DeleteItemFromObject(cJSON_GetObjectItem(snapshot, "state"), "drain");
	write_json(cluster, snapshot);
	cJSON_Delete(snapshot);
}

/* Wave after wave, until so many nodes are empty or none can be; how many are. */
static int empty_nodes(const struct scene *s, const char *cluster, int wanted, bool judged)
{
	int emptied = 0, count = 1;

	for (int wave = 0; wave < WAVES_MOST && count && emptied < wanted; wave++) {
		cJSON *plan = plan_of(cluster);

		count = cJSON_GetArraySize(document_at(plan, "nodes"));
		if (count && judged) {
			assert_int_equal(verify(s, cluster, plan), 0);
			assert_int_equal(count_refused(cluster, plan), 0);
		}
		if (count)
			carry_out(cluster, plan);
		emptied += count;
		cJSON_Delete(plan);
	}
	return emptied;
}

/* --- the story -------------------------------------------------------------------------------- */

/* Nodes that could be emptied at some time, of scenario `at` in a WhatIfList. */
static int freed(const cJSON *list, int at)
{
	const cJSON *item = cJSON_GetArrayItem(document_at(list, "items"), at);

	return (int)(document_number(item, "drainNow") + document_number(item, "unneeded"));
}

static void test_nodes_are_freed_as_predicted(void **state)
{
	struct scene *s = *state;
	struct buf out = BUF_INIT;
	int predicted_now, predicted, emptied, emptied_now;
	cJSON *list;

	assert_int_equal(SAY(&out, "advise", "--policy", "saving", "--nodes", "-o", "json",
			     "--snapshot", s->now),
			 0);
	list = cJSON_Parse(out.data);
	predicted_now = freed(list, 0);
	predicted = freed(list, 1);
	cJSON_Delete(list);
	buf_clear(&out);
	assert_int_equal(SAY(&out, "advise", "--policy", "saving", "-o", "scenario", "--snapshot",
			     s->now),
			 0);
	write_file(s->advice, out.data);
	buf_clear(&out);
	assert_int_equal(SAY(&out, "whatif", "--scenarios", s->advice, "-o", "snapshot",
			     "--snapshot", s->now),
			 0);
	write_file(s->advised, out.data);
	buf_fini(&out);
	emptied = empty_nodes(s, s->advised, predicted, true);
	emptied_now = empty_nodes(s, s->now, predicted, false);
	print_message("predicted %d empty nodes, got %d, without the advice %d and %d\n", predicted,
		      emptied, predicted_now, emptied_now);
	assert_true(predicted > predicted_now);
	/* The prediction is one plan; waves follow another order, and may end a node earlier. */
	assert_true(emptied >= predicted - 1);
	assert_true(emptied_now < predicted);
}

/* The destination of the last move that no Job's pod makes becomes another one. */
static void falsify(cJSON *plan, const char *to)
{
	cJSON *wrong = NULL, *move;
	const cJSON *node;

	cJSON_ArrayForEach (node, document_at(plan, "nodes")) {
		cJSON_ArrayForEach (move, document_at(node, "moves")) {
			wrong = document_is(move, "workload.kind", "Job") ? wrong : move;
		}
	}
	assert_non_null(wrong);
	replace_text(wrong, "to", to);
}

static void test_false_plans_are_refused(void **state)
{
	const struct scene *s = *state;
	cJSON *plan = plan_of(s->now);
	char *first = mem_strdup(document_text(document_first(plan, "nodes"), "name"));
	const char *const wrong[] = {first, BATCH_NODE};

	for (size_t i = 0; i < 2; i++) {
		cJSON *copy = cJSON_Duplicate(plan, true);

		falsify(copy, wrong[i]);
		assert_int_equal(verify(s, s->now, copy), 1);
		assert_int_equal(count_refused(s->now, copy), 1);
		cJSON_Delete(copy);
	}
	cJSON_Delete(plan);
	free(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_false_plans_are_refused),
		cmocka_unit_test(test_nodes_are_freed_as_predicted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
