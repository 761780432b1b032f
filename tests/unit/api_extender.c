/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/api/snapshot.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/consistent.h"
#include "tests/join_fixture.h"
#include "tests/reservations_watch.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;
static struct extender_options options;

/* Pods of 1 CPU and 1 GiB, so 1.5 CPU expected where no owner is known. */
#define POD(uid)                                                                                   \
	"{\"metadata\":{\"name\":\"" uid "\",\"namespace\":\"shop\",\"uid\":\"" uid "\"},"         \
	"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\","    \
	"\"memory\":\"1Gi\"},\"limits\":{\"cpu\":\"2\",\"memory\":\"2Gi\"}}}]}}"
#define ASK(uid, names) "{\"Pod\":" POD(uid) ",\"Nodes\":null,\"NodeNames\":" names "}"
/* A node that is refused, and no victims would help. */
#define UNRESOLVABLE(node, error)                                                                  \
	"\"FailedNodes\":{\"" node "\":\"" error "\"},\"FailedAndUnresolvableNodes\":{\"" node     \
	"\":\"" error "\"}"
#define ALL "[\"alpha\",\"bravo\",\"charlie\"]"

/* Measured at so many of 4 CPUs, and 2 GiB of 8. */
static struct node_stats *stats_of(const char *name, double cpu_milli, double sigma)
{
	struct node_stats stats =
		view_fixture_node(name, VIEW_FIXTURE_NOW_NS - 1000000000, 3600, cpu_milli, sigma);

	return node_stats_new(&stats);
}

/* alpha at 1, bravo at 3 CPUs, 3 and 7 allocatable; charlie known to the API and not measured. */
static struct view *make_view(enum source_state nodes)
{
	struct node_stats *node_stats[] = {stats_of("alpha", 1000, 100),
					   stats_of("bravo", 3000, 100)};
	const struct model_source source = {.state = nodes};
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	model_put(m, model_fixture_node("alpha", 5, 9));
	model_put(m, model_fixture_node("bravo", 5, 9));
	model_put(m, model_fixture_node("charlie", 5, 9));
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	model_set_source(m, OBJECT_NODE, &source);
	v = join_view(j, node_stats, 2, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	node_stats_drop(node_stats[0]);
	node_stats_drop(node_stats[1]);
	join_free(j);
	model_free(m);
	return v;
}

static int setup(void **state)
{
	(void)state;
	api_fixture_open(&f, make_view(SOURCE_SYNCED));
	api_fixture_extender(&options);
	f.ctx.reservations = reservations_new();
	f.ctx.extender = &options;
	return 0;
}

static int teardown(void **state)
{
	struct error error;

	(void)state;
	if (!reservations_is_consistent(f.ctx.reservations, &error))
		fail_msg("%s", error.text);
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	return 0;
}

static const char *post(const char *verb, const char *body)
{
	char path[64];

	snprintf(path, sizeof(path), "/extender/%s", verb);
	if (api_fixture_send(&f, "POST", path, body) != 200)
		fail_msg("%s", f.response.body.data);
	return f.response.body.data;
}

/* "p1@alpha p2": what is reserved, and where. */
static const char *reserved(void)
{
	static char text[256];
	struct reservations_copy *c = reservations_take(f.ctx.reservations, VIEW_FIXTURE_NOW_NS);
	int len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->count; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s%s%s", i ? " " : "",
				c->of[i]->name, *c->of[i]->node ? "@" : "", c->of[i]->node);
	reservations_copy_drop(c);
	return text;
}

static uint64_t refused(enum extender_refusal refusal)
{
	return counter_get(&f.counters.extender.refused[refusal]);
}

/* --- filter ----------------------------------------------------------------------------------- */

static void filter_answers_as_it_was_asked(void **state)
{
	(void)state;
	assert_string_equal(post("filter", ASK("p", ALL)), "{\"NodeNames\":" ALL "}");
	assert_string_equal(post("filter", ASK("p", "[]")), "{\"NodeNames\":[]}");
	assert_string_equal(post("filter", ASK("p", "null")), "{\"NodeNames\":[]}");
	assert_string_equal(post("filter", "{\"pod\":" POD("p") ",\"nodenames\":[\"alpha\"]}"),
			    "{\"NodeNames\":[\"alpha\"]}");
	assert_string_equal(
		post("filter", " { \"Other\" : [1,{\"a\":\"]}\\\"\"}] ,\"Pod\":" POD(
				       "p") ",\"Nodes\" : {\"kind\":\"NodeList\",\"items\":[ "
					    "{\"metadata\":{\"name\":\"bravo\",\"x\":\"}\\\\\"} , "
					    "\"spec\":{}}"
					    " ,{\"metadata\":{\"name\":\"nobody\"}}]}} "),
		"{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"bravo\",\"x\":"
		"\"}\\\\\"} , \"spec\":{}}]}," UNRESOLVABLE("nobody", "unknown to evenkeel") "}");
	assert_string_equal(post("filter", "{\"Pod\":" POD("p") ",\"Nodes\":{\"items\":null}}"),
			    "{\"Nodes\":{\"metadata\":{},\"items\":[]}}");
	assert_string_equal(post("filter", ASK("p", "[ \"br\\u0061vo\" , \"alpha\"\n]")),
			    "{\"NodeNames\":[\"bravo\",\"alpha\"]}");
	assert_string_equal(post("filter",
				 "{\"NodeNames\":[\"alpha\"],\"Nodes\":{\"items\":[{"
				 "\"metadata\":{\"name\":\"bravo\"}}]},\"Pod\":" POD("p") "}"),
			    "{\"NodeNames\":[\"alpha\"]}");
	assert_string_equal(post("filter", ASK("p", "[\"bravo\",\"alpha\",\"bravo\"]")),
			    "{\"NodeNames\":[\"bravo\",\"alpha\"]}");
}

static size_t occurrences(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		count++;
	}
	return count;
}

/* A JSON object with a key twice is read differently by each reader. */
static void a_name_that_is_repeated_is_answered_once(void **state)
{
#define REPEATED "[\"zulu\",\"bravo\",\"yankee\",\"zulu\",\"bravo\",\"zulu\",\"yankee\",\"x\"]"
	static const char *const verbs[] = {"filter", "prioritize"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const char *answer = post(verbs[i], ASK("p", REPEATED));

		/* Refused nodes are in two maps. */
		assert_int_equal(occurrences(answer, "\"zulu\""), i ? 1 : 2);
		assert_int_equal(occurrences(answer, "\"yankee\""), i ? 1 : 2);
		assert_int_equal(occurrences(answer, "\"bravo\""), 1);
		assert_int_equal(occurrences(answer, "\"x\""), i ? 1 : 2);
	}
	assert_string_equal(post("prioritize", ASK("p", "[\"z\",\"y\",\"z\"]")),
			    "[{\"Host\":\"z\",\"Score\":0},{\"Host\":\"y\",\"Score\":0}]");
}

#define ITEMS(name) "{\"items\":[{\"metadata\":{\"name\":\"" name "\"}}]}"
#define FULL(name)                                                                                 \
	"{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"" name "\"}}]}}"

static void of_members_that_are_there_twice_the_last_one_counts(void **state)
{
	static const struct {
		const char *members, *answer;
	} rows[] = {
		{"\"NodeNames\":[\"alpha\"],\"NodeNames\":[\"bravo\"]",
		 "{\"NodeNames\":[\"bravo\"]}"},
		{"\"NodeNames\":[\"alpha\"],\"nodenames\":null", "{\"NodeNames\":[]}"},
		{"\"NodeNames\":null,\"NodeNames\":[\"alpha\"]", "{\"NodeNames\":[\"alpha\"]}"},
		{"\"NodeNames\":[\"alpha\"],\"Nodes\":" ITEMS("bravo") ",\"NodeNames\":null",
		 FULL("bravo")},
		{"\"Nodes\":" ITEMS("bravo") ",\"NodeNames\":[\"alpha\"],\"NodeNames\":null",
		 FULL("bravo")},
		{"\"NodeNames\":[\"alpha\"],\"Nodes\":" ITEMS(
			 "bravo") ",\"NodeNames\":null,\"NodeNames\":[\"charlie\"]",
		 "{\"NodeNames\":[\"charlie\"]}"},
		{"\"Nodes\":" ITEMS("bravo") ",\"Nodes\":null", "{\"NodeNames\":[]}"},
		{"\"Nodes\":" ITEMS("bravo") ",\"Nodes\":" ITEMS("alpha"), FULL("alpha")},
		{"\"NodeNames\":[\"alpha\"],\"Nodes\":" ITEMS(
			 "bravo") ",\"Nodes\":null,\"NodeNames\":null",
		 "{\"NodeNames\":[]}"},
		{"\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"bravo\"}}],\"items\":null}",
		 "{\"Nodes\":{\"metadata\":{},\"items\":[]}}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *body = mem_printf("{%s,\"Pod\":%s}", rows[i].members, POD("p"));

		assert_string_equal(post("filter", body), rows[i].answer);
		free(body);
	}
}

/* A clock that is no clock: it is read under the lock of the reservations, and so when a copy is taken. */
static struct view *next_view;

static int64_t publish_next(void)
{
	if (next_view)
		view_slot_publish(f.ctx.views, next_view);
	next_view = NULL;
	return 0;
}

/* Else a pod of what is published, and settled, between the two is in neither. */
static void reservations_are_taken_before_the_view(void **state)
{
	struct model *m = model_new();
	struct join *j = join_new();

	(void)state;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	model_put(m, model_fixture_node("newcomer", 5, 9));
	next_view = join_view(j, NULL, 0, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	reservations_watch(f.ctx.reservations, publish_next);
	assert_string_equal(post("filter", ASK("p", "[\"newcomer\"]")),
			    "{\"NodeNames\":[\"newcomer\"]}");
	reservations_watch(NULL, NULL); /* the next reservations may be at the same address */
	join_free(j);
	model_free(m);
}

static void a_node_we_do_not_know_passes_while_we_are_behind(void **state)
{
	static const enum source_state behind[] = {SOURCE_STALE, SOURCE_FORBIDDEN};

	(void)state;
	post("filter", ASK("p", "[\"zulu\",\"alpha\"]"));
	assert_non_null(api_fixture_at(f.json, "FailedNodes.zulu"));
	assert_int_equal(refused(EXTENDER_UNKNOWN_NODE), 1);
	for (size_t i = 0; i < 2; i++) {
		view_slot_publish(f.ctx.views, make_view(behind[i]));
		assert_string_equal(post("filter", ASK("p", "[\"zulu\",\"alpha\"]")),
				    "{\"NodeNames\":[\"zulu\",\"alpha\"]}");
	}
	view_slot_publish(f.ctx.views, view_fixture_new()); /* standalone */
	assert_string_equal(post("filter", ASK("p", "[\"zulu\"]")), "{\"NodeNames\":[\"zulu\"]}");
	view_slot_publish(f.ctx.views, view_new(9, 0, NULL, 0, NULL, NULL)); /* just started */
	assert_string_equal(post("filter", ASK("p", "[\"zulu\"]")), "{\"NodeNames\":[\"zulu\"]}");
	assert_string_equal(post("prioritize", ASK("p", "[\"zulu\"]")),
			    "[{\"Host\":\"zulu\",\"Score\":0}]");
}

/* A restart must not let through what limits refuse a moment later. */
static void nothing_is_decided_before_the_cluster_is_listed(void **state)
{
	static const char victims[] = "{\"Pod\":" POD("p") ",\"NodeNameToMetaVictims\":{}}";

	(void)state;
	view_slot_publish(f.ctx.views, make_view(SOURCE_LISTING));
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/filter", ASK("p", "[]")), 503);
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/preempt", victims), 503);
}

static void real_use_above_the_cap_refuses(void **state)
{
	(void)state;
	options.limits.use_cap[SCORE_CPU] = 0.85;
	assert_string_equal(post("filter", ASK("p", ALL)),
			    "{\"NodeNames\":[\"alpha\",\"charlie\"]," UNRESOLVABLE(
				    "bravo", "CPU use above the cap") "}");
	assert_int_equal(refused(EXTENDER_USE_CAP_CPU), 1);
	options.limits.use_cap[SCORE_CPU] = 2;
	assert_string_equal(post("filter", ASK("p", ALL)), "{\"NodeNames\":" ALL "}");
}

static void what_was_promised_counts_against_the_cap(void **state)
{
	(void)state;
	options.limits.use_cap[SCORE_CPU] = 0.85;
	post("filter", ASK("p1", "[\"alpha\"]"));
	assert_string_equal(reserved(), "p1@alpha");
	post("filter", ASK("p1", "[\"alpha\"]")); /* not against itself */
	assert_string_equal(reserved(), "p1@alpha");
	post("filter", ASK("p2", "[\"alpha\"]"));
	assert_string_equal(reserved(), "p1@alpha p2@alpha");
	post("filter", ASK("p3", "[\"alpha\"]"));
	assert_non_null(strstr(f.response.body.data, "CPU use above the cap"));
	assert_string_equal(reserved(), "p1@alpha p2@alpha");
}

/* Of a group of nodes the scheduler tells how many there are, if their reasons are the same. */
static void reasons_are_of_a_kind_and_have_no_numbers(void **state)
{
	static const struct {
		double *limit;
		double value;
		const char *reason;
	} rows[] = {
		{&options.limits.use_cap[SCORE_CPU], 0.01, "CPU use above the cap"},
		{&options.limits.use_cap[SCORE_MEMORY], 0.01, "memory use above the cap"},
		{&options.limits.ratio[SCORE_CPU], 0.01, "CPU limits above the ratio"},
		{&options.limits.ratio[SCORE_MEMORY], 0.01, "memory limits above the ratio"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const double before = *rows[i].limit;

		*rows[i].limit = rows[i].value;
		post("filter", ASK("p", "[\"alpha\",\"bravo\"]"));
		assert_string_equal(api_fixture_at(f.json, "FailedNodes.alpha")->valuestring,
				    rows[i].reason);
		assert_true(cJSON_Compare(api_fixture_at(f.json, "FailedNodes"),
					  api_fixture_at(f.json, "FailedAndUnresolvableNodes"),
					  true));
		*rows[i].limit = before;
	}
	assert_int_equal(refused(EXTENDER_USE_CAP_MEMORY), 2);
}

/* --- a refusal is about all that is known ----------------------------------------------------- */

static int refreshes;

/* Whoever publishes: alpha is calm, and bravo is as busy as before. */
static void publish_on_request(void *ctx, uint64_t ticket)
{
	(void)ctx;
	refreshes++;
	if (next_view)
		view_slot_publish(f.ctx.views, next_view);
	next_view = NULL;
	view_slot_answer(f.ctx.views, ticket);
}

/* The newest view has the node, which the one in the slot lacks. */
static void a_refusal_waits_for_what_is_known(void **state)
{
	(void)state;
	refreshes = 0;
	view_slot_on_refresh(f.ctx.views, publish_on_request, NULL);
	assert_string_equal(post("filter", ASK("p", ALL)), "{\"NodeNames\":" ALL "}");
	assert_int_equal(refreshes, 0);
	options.limits.use_cap[SCORE_CPU] = 0.85;
	assert_non_null(strstr(post("filter", ASK("p", "[\"bravo\",\"alpha\"]")), "FailedNodes"));
	assert_int_equal(refreshes, 0); /* it has a node */
	next_view = view_fixture_new(); /* standalone: no node is refused for its name */
	assert_string_equal(post("filter", ASK("p", "[\"zulu\"]")), "{\"NodeNames\":[\"zulu\"]}");
	assert_int_equal(refreshes, 1);
	assert_int_equal(refused(EXTENDER_UNKNOWN_NODE), 0);
	view_slot_publish(f.ctx.views, make_view(SOURCE_SYNCED));
	post("filter", ASK("p", "[\"zulu\"]"));
	assert_int_equal(refreshes, 2);
	assert_int_equal(refused(EXTENDER_UNKNOWN_NODE), 1);
}

#define CRITICAL(priority)                                                                         \
	"{\"Pod\":{\"metadata\":{\"name\":\"d\",\"uid\":\"d\"},\"spec\":{\"priority\":" priority   \
	",\"containers\":[{\"name\":\"c\"}]}},\"NodeNames\":[\"alpha\"]}"

static void pods_with_nowhere_else_to_go_are_not_held_to_limits(void **state)
{
	(void)state;
	options.limits.use_cap[SCORE_CPU] = 0.01;
	assert_non_null(strstr(post("filter", ASK("p", "[\"alpha\"]")), "FailedNodes"));
	assert_string_equal(
		post("filter",
		     "{\"Pod\":{\"metadata\":{\"name\":\"d\",\"uid\":\"d\",\"ownerReferences\":[{"
		     "\"kind\":\"DaemonSet\",\"name\":\"cni\",\"uid\":\"x\",\"controller\":true}]},"
		     "\"spec\":{\"containers\":[{\"name\":\"c\"}]}},\"NodeNames\":[\"alpha\"]}"),
		"{\"NodeNames\":[\"alpha\"]}");
	assert_string_equal(post("filter", CRITICAL("2000000000")), "{\"NodeNames\":[\"alpha\"]}");
	assert_non_null(strstr(post("filter", CRITICAL("1999999999")), "FailedNodes"));
}

static void filter_reserves_what_passes_and_releases_what_does_not(void **state)
{
	(void)state;
	post("filter", ASK("p", ALL));
	assert_string_equal(reserved(), "p");
	post("filter", ASK("p", "[\"bravo\"]"));
	assert_string_equal(reserved(), "p@bravo");
	post("filter", ASK("q", "[\"alpha\",\"none\"]"));
	assert_string_equal(reserved(), "p@bravo q@alpha");
	post("filter", ASK("p", "[\"none\"]"));
	assert_string_equal(reserved(), "q@alpha");
	post("filter",
	     "{\"Pod\":{\"metadata\":{\"name\":\"q\",\"uid\":\"q\"},\"spec\":{\"containers\":[]},"
	     "\"status\":{\"nominatedNodeName\":\"alpha\"}},\"NodeNames\":[\"none\"]}");
	assert_string_equal(reserved(), "q@alpha"); /* its victims are about to leave */
	post("filter", ASK("q", "[]"));
	assert_string_equal(reserved(), "");
}

static void what_cannot_be_released_is_not_reserved(void **state)
{
	(void)state;
	post("filter", "{\"Pod\":{\"metadata\":{\"name\":\"n\"},\"spec\":{\"containers\":[]}},"
		       "\"NodeNames\":" ALL "}");
	post("prioritize", "{\"Pod\":{\"metadata\":{\"name\":\"n\"},\"spec\":{\"containers\":[]}},"
			   "\"NodeNames\":" ALL "}");
	post("prioritize",
	     "{\"Pod\":{\"metadata\":{\"name\":\"d\",\"uid\":\"d\"},\"spec\":{\"nodeName\":"
	     "\"alpha\",\"containers\":[{\"name\":\"c\"}]}},\"NodeNames\":[\"alpha\"]}");
	assert_string_equal(reserved(), "");
	assert_int_equal(counter_get(&f.counters.extender.unreserved), 3);
	reservations_free(f.ctx.reservations);
	f.ctx.reservations = NULL;
	assert_string_equal(post("filter", ASK("p", ALL)), "{\"NodeNames\":" ALL "}");
	post("prioritize", ASK("p", ALL));
	f.ctx.reservations = reservations_new();
}

/* --- prioritize ------------------------------------------------------------------------------- */

static int64_t score_of(const char *host)
{
	for (const cJSON *item = f.json->child; item; item = item->next)
		if (strcmp(api_fixture_at(item, "Host")->valuestring, host) == 0)
			return (int64_t)api_fixture_at(item, "Score")->valuedouble;
	fail_msg("%s is not in the answer", host);
	return 0;
}

/* The best gets 10 and the worst that is measured 1; less than a tenth of 10 points is a step. */
static void prioritize_spreads_the_steps_between_worst_and_best(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/scores", "{\"pod\":" POD("p") "}"), 200);
	assert_true(api_fixture_at(f.json, "items.0.score")->valuedouble >
		    api_fixture_at(f.json, "items.1.score")->valuedouble + 10);
	post("prioritize", ASK("p", "[\"charlie\",\"alpha\",\"zulu\",\"bravo\"]"));
	assert_int_equal(score_of("alpha"), 10);
	assert_int_equal(score_of("bravo"), 1);
	assert_int_equal(score_of("charlie"), 0); /* never heard */
	assert_int_equal(score_of("zulu"), 0); /* unknown */
	assert_string_equal(api_fixture_at(f.json, "0.Host")->valuestring, "charlie");
	post("prioritize", ASK("p", "[\"bravo\",\"zulu\"]")); /* of those that are asked about */
	assert_int_equal(score_of("bravo"), 10);
	assert_int_equal(score_of("zulu"), 0);
}

/* charlie was not heard yet: so alpha was only heard earlier. */
static void nodes_are_alike_until_a_new_aggregator_has_heard_them(void **state)
{
	(void)state;
	f.ctx.started_ns = VIEW_FIXTURE_NOW_NS - 5 * NS_PER_SEC;
	assert_string_equal(post("prioritize", ASK("p", ALL)),
			    "[{\"Host\":\"alpha\",\"Score\":0},{\"Host\":\"bravo\",\"Score\":0},"
			    "{\"Host\":\"charlie\",\"Score\":0}]");
	post("prioritize", ASK("p", "[\"alpha\",\"bravo\"]")); /* those were */
	assert_int_equal(score_of("alpha"), 10);
	f.ctx.started_ns = VIEW_FIXTURE_NOW_NS - 61 * NS_PER_SEC;
	post("prioritize", ASK("p", ALL));
	assert_int_equal(score_of("alpha"), 10);
	f.ctx.started_ns = 0;
}

static void prioritize_charges_the_first_by_score_then_name(void **state)
{
	(void)state;
	post("filter", ASK("p", ALL));
	post("prioritize", ASK("p", ALL));
	assert_string_equal(reserved(), "p@alpha");
	post("prioritize", ASK("q", "[\"zulu\",\"yankee\",\"xray\"]")); /* no filter; all 0 */
	assert_string_equal(reserved(), "p@alpha q@xray");
	post("prioritize", ASK("p", "[\"bravo\"]"));
	assert_string_equal(reserved(), "p@bravo q@xray");
	assert_string_equal(post("prioritize", ASK("r", "[]")), "[]");
	assert_string_equal(reserved(), "p@bravo q@xray");
}

static void a_pod_does_not_compete_with_itself(void **state)
{
	char *first;

	(void)state;
	first = mem_strdup(post("prioritize", ASK("p", ALL)));
	assert_string_equal(post("prioritize", ASK("p", ALL)), first);
	free(first);
	assert_string_equal(reserved(), "p@alpha");
	/* For another pod it is in the way: alpha would not be worth more than twice as much. */
	for (int i = 0; i < 3; i++)
		post("prioritize", ASK("q", ALL));
	assert_string_equal(reserved(), "p@alpha q@alpha");
}

/*
 * Between two views nothing is measured anew: only reservations keep the third pod from where the
 * first two are.
 */
static void a_burst_does_not_stack(void **state)
{
	char body[1024], name[8];
	int on_alpha = 0, on_bravo = 0;
	struct reservations_copy *c;

	(void)state;
	view_slot_publish(f.ctx.views, make_view(SOURCE_SYNCED));
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		snprintf(body, sizeof(body),
			 "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{"
			 "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
			 "\"500m\",\"memory\":\"256Mi\"}}}]}},\"NodeNames\":[\"alpha\",\"bravo\"]}",
			 name, name);
		post("filter", body);
		post("prioritize", body);
	}
	c = reservations_take(f.ctx.reservations, VIEW_FIXTURE_NOW_NS);
	assert_int_equal(c->count, 6);
	for (size_t i = 0; i < c->count; i++) {
		assert_int_equal(c->of[i]->expected_cpu_milli, 500);
		on_alpha += strcmp(c->of[i]->node, "alpha") == 0;
		on_bravo += strcmp(c->of[i]->node, "bravo") == 0;
	}
	assert_int_equal(on_alpha + on_bravo, 6);
	assert_true(on_alpha >= 3 && on_bravo >= 1); /* alpha has more room */
	reservations_copy_drop(c);
}

static void scores_tell_of_pods_on_their_way(void **state)
{
	const char *text;

	(void)state;
	post("filter", ASK("p2", "[\"alpha\"]"));
	post("filter", ASK("p1", "[\"alpha\"]"));
	assert_int_equal(
		api_fixture_send(&f, "POST", "/v1/scores",
				 "{\"pod\":" POD("q") ",\"plugins\":[\"TargetLoadPacking\"],"
						      "\"nodes\":[\"alpha\"],\"explain\":true}"),
		200);
	text = f.response.body.data;
	assert_non_null(strstr(text, "; with shop/p1 and 1 other pod assumed here"));
	assert_non_null(strstr(text, "{\"name\":\"assumedPods\",\"unit\":\"\",\"value\":2}"));
	assert_non_null(
		strstr(text, "{\"name\":\"assumedCpu\",\"unit\":\"millicores\",\"value\":2000}"));
	assert_non_null(
		strstr(text, "{\"name\":\"pendingCpu\",\"unit\":\"millicores\",\"value\":2000}"));
	api_fixture_send(&f, "POST", "/v1/scores",
			 "{\"variant\":\"upstream\",\"explain\":true,\"nodes\":[\"alpha\"]}");
	assert_null(strstr(f.response.body.data, "assumed"));
}

static void scores_tell_what_the_filter_would_refuse(void **state)
{
	(void)state;
	options.limits.use_cap[SCORE_CPU] = 0.85;
	api_fixture_send(&f, "POST", "/v1/scores", "{\"pod\":" POD("p") "}");
	assert_null(api_fixture_at(f.json, "items.0.refused"));
	assert_null(api_fixture_at(f.json, "items.0.useCap"));
	assert_non_null(strstr(api_fixture_at(f.json, "items.1.refused")->valuestring,
			       "CPU in use 3.23+1.00"));
	/* What its pods request stands in for the use of a node that is not measured. */
	assert_null(api_fixture_at(f.json, "items.2.useCap"));
}

static void the_blend_is_the_options(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(extender_options_parse_blend(&options, "LimitAware=2,Peaks", &error), 0);
	assert_true(options.weights[PLUGIN_LIMIT_AWARE] == 2);
	assert_true(options.weights[PLUGIN_PEAKS] == 1);
	assert_true(extender_options_parse_blend(&options, "LimitAware,", &error) < 0);
	assert_true(extender_options_parse_blend(&options, "Nobody=1", &error) < 0);
	assert_non_null(strstr(error.text, "\"Nobody\""));
	assert_true(options.weights[PLUGIN_LIMIT_AWARE] == 2);
	assert_int_equal(extender_options_parse_blend(&options, "LimitAware", &error), 0);
	post("prioritize", ASK("p", ALL));
	/* Measurements do not count, and of equals the first by name stands out. */
	assert_int_equal(score_of("alpha"), 10);
	assert_int_equal(score_of("bravo"), 9);
	/* What people are told is what the scheduler was. */
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/scores", "{\"pod\":" POD("p") "}"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.0.plugins")), 1);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "items.0.plugins.0.name")),
			    "LimitAware");
	assert_int_equal(api_fixture_at(f.json, "items.0.score")->valueint,
			 api_fixture_at(f.json, "items.1.score")->valueint);
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/scores", "{\"variant\":\"upstream\"}"),
			 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.0.plugins")), 3);
	assert_int_equal(extender_options_parse_blend(&options, "", &error), 0);
	post("prioritize", ASK("p", ALL));
	assert_true(score_of("alpha") > score_of("bravo"));
}

/* --- what others show of it ------------------------------------------------------------------- */

static void nodes_show_what_is_assumed(void **state)
{
	uint64_t tag;

	(void)state;
	api_fixture_get(&f, "/v1/nodes");
	assert_null(api_fixture_at(f.json, "items.0.assumed"));
	tag = f.response.etag;
	post("filter", ASK("p", "[\"alpha\"]"));
	api_fixture_get(&f, "/v1/nodes");
	assert_true(f.response.etag != tag);
	assert_true(api_fixture_at(f.json, "items.0.assumed.pods")->valuedouble == 1);
	assert_true(api_fixture_at(f.json, "items.0.assumed.requests.cpuMillicores")->valuedouble ==
		    1000);
	assert_true(api_fixture_at(f.json, "items.0.assumed.requests.memoryBytes")->valuedouble ==
		    1 << 30);
	assert_true(api_fixture_at(f.json, "items.0.assumed.usage.cpuMillicores")->valuedouble ==
		    1000);
	assert_null(api_fixture_at(f.json, "items.1.assumed"));
	api_fixture_get(&f, "/v1/nodes/alpha");
	assert_true(api_fixture_at(f.json, "assumed.pods")->valuedouble == 1);
}

static void metrics_count_it(void **state)
{
	static const char *const samples[] = {
		"evenkeel_extender_requests_total{verb=\"filter\"} 2\n",
		"evenkeel_extender_requests_total{verb=\"prioritize\"} 1\n",
		"evenkeel_extender_refusals_total{reason=\"unknownNode\"} 1\n",
		"evenkeel_ledger_entries{state=\"asked\"} 1\n",
		"evenkeel_ledger_entries{state=\"charged\"} 1\n",
		"evenkeel_ledger_reserved_total 2\n",
		"evenkeel_ledger_charged_total 1\n",
		"evenkeel_ledger_gone_total{why=\"expired\"} 0\n",
		"evenkeel_refused_pods_waiting 3\n",
		"evenkeel_nudges_total{result=\"sent\"} 2\n",
		"evenkeel_nudges_total{result=\"failed\"} 1\n",
		"evenkeel_events_total{result=\"written\"} 4\n",
		"evenkeel_events_total{result=\"limited\"} 5\n",
		"evenkeel_events_total{result=\"failed\"} 6\n",
	};

	(void)state;
	counter_set(&f.counters.requeue.waiting, 3);
	counter_set(&f.counters.requeue.sent, 2);
	counter_set(&f.counters.requeue.failed, 1);
	counter_set(&f.counters.events.written, 4);
	counter_set(&f.counters.events.limited, 5);
	counter_set(&f.counters.events.failed, 6);
	post("filter", ASK("p", ALL));
	post("prioritize", ASK("p", ALL));
	post("filter", ASK("q", "[\"alpha\",\"bravo\",\"zulu\"]"));
	api_fixture_get(&f, "/metrics");
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		if (!strstr(f.response.body.data, samples[i]))
			fail_msg("%s in %s", samples[i], f.response.body.data);
}

/* Scores from the snapshot are those of the moment, with what was reserved then. */
static void a_snapshot_has_what_is_reserved(void **state)
{
	static const char ask[] = "{\"pod\":" POD("q") ",\"explain\":true}";
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	char *online, *entries;
	struct reservations *reservations;
	struct view *v = NULL;
	int64_t now_ns = 0;

	(void)state;
	post("filter", ASK("a", ALL));
	post("filter", ASK("p", "[\"alpha\"]"));
	reservations_bind(f.ctx.reservations, "p", "bravo", 1000000); /* no view shows that */
	api_fixture_send(&f, "POST", "/v1/scores", ask);
	online = mem_strdup(f.response.body.data);
	assert_non_null(strstr(online, "with shop/p assumed here"));
	api_fixture_get(&f, "/v1/snapshot");
	if (snapshot_add(s, "s", f.response.body.data, f.response.body.len, &error) ||
	    snapshot_view(s, &v, &now_ns, &error))
		fail_msg("%s", error.text);
	assert_int_equal(now_ns, VIEW_FIXTURE_NOW_NS);
	view_slot_publish(f.ctx.views, v);
	entries = mem_strdup(reserved());
	reservations = f.ctx.reservations;
	f.ctx.reservations = snapshot_take_reservations(s);
	assert_string_equal(reserved(), entries);
	reservations_free(reservations);
	api_fixture_send(&f, "POST", "/v1/scores", ask);
	assert_string_equal(f.response.body.data, online);
	snapshot_free(s);
	free(entries);
	free(online);
}

static void a_snapshot_with_a_bad_reservation_is_refused(void **state)
{
#define ENTRY(uid, name, cpu, high, memory, priority, more)                                        \
	"[{\"uid\":\"" uid "\",\"name\":\"" name "\",\"expectedCpuMillicores\":" cpu               \
	",\"expectedHighCpuMillicores\":" high ",\"expectedMemoryBytes\":" memory                  \
	",\"priority\":" priority more "}]"
	/* The first one is good. */
	static const char *const entries[] = {
		ENTRY("u", "n", "1", "1", "1", "0", ""),
		"{}",
		"[1]",
		"[{\"uid\":\"u\",\"name\":\"n\"}]",
		ENTRY("", "n", "1", "1", "1", "0", ""),
		ENTRY("u", "", "1", "1", "1", "0", ""),
		ENTRY("u", "n", "-1", "1", "1", "0", ""),
		ENTRY("u", "n", "1", "-1", "1", "0", ""),
		ENTRY("u", "n", "1", "1", "-1", "0", ""),
		ENTRY("u", "n", "1", "1", "1", "1e10", ""),
		ENTRY("u", "n", "1", "1", "1", "0", ",\"requests\":{\"cpu\":\"x\"}"),
	};
#undef ENTRY

	(void)state;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		struct snapshot *s = snapshot_new();
		struct error error = {""};
		char *text = mem_printf(
			"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":"
			"\"2026-01-31T12:00:00Z\",\"list\":{\"apiVersion\":\"v1\",\"kind\":"
			"\"List\","
			"\"items\":[]},\"usage\":{\"apiVersion\":\"evenkeel.io/v2\",\"kind\":"
			"\"Usage\",\"time\":\"2026-01-31T12:00:00Z\",\"nodes\":[],\"pods\":[]},"
			"\"state\":{\"ledger\":%s}}",
			entries[i]);

		if ((snapshot_add(s, "s", text, strlen(text), &error) == 0) != (i == 0) ||
		    (i && !strstr(error.text, i + 1 < sizeof(entries) / sizeof(entries[0])
						      ? "must be"
						      : "state.ledger[0].requests")))
			fail_msg("%s: %s", entries[i], error.text);
		free(text);
		snapshot_free(s);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(filter_answers_as_it_was_asked),
		T(a_name_that_is_repeated_is_answered_once),
		T(of_members_that_are_there_twice_the_last_one_counts),
		T(reservations_are_taken_before_the_view),
		T(a_node_we_do_not_know_passes_while_we_are_behind),
		T(nothing_is_decided_before_the_cluster_is_listed),
		T(real_use_above_the_cap_refuses),
		T(reasons_are_of_a_kind_and_have_no_numbers),
		T(a_refusal_waits_for_what_is_known),
		T(what_was_promised_counts_against_the_cap),
		T(pods_with_nowhere_else_to_go_are_not_held_to_limits),
		T(filter_reserves_what_passes_and_releases_what_does_not),
		T(what_cannot_be_released_is_not_reserved),
		T(prioritize_spreads_the_steps_between_worst_and_best),
		T(nodes_are_alike_until_a_new_aggregator_has_heard_them),
		T(prioritize_charges_the_first_by_score_then_name),
		T(a_pod_does_not_compete_with_itself),
		T(a_burst_does_not_stack),
		T(scores_tell_of_pods_on_their_way),
		T(scores_tell_what_the_filter_would_refuse),
		T(the_blend_is_the_options),
		T(nodes_show_what_is_assumed),
		T(metrics_count_it),
		T(a_snapshot_has_what_is_reserved),
		T(a_snapshot_with_a_bad_reservation_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
