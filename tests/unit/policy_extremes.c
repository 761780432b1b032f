/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts as large as a quantity can be, in every question that adds some up. Under
 * SAN=undefined no sum may overflow; in any build a node fits exactly the pods that sums of 128
 * bits leave room for, with those that are reserved there, and LimitAware counts what they limit.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "tests/api_fixture.h"
#include "tests/consistent.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/sanitized.h"
#include "tests/view_fixture.h"

enum { WORLDS = RANDOM_CASES(60), NODES = 3, PODS = 12, SPACES = 3, ASKED = 4 };

static const char *const amounts[] = {
	"0",
	"1m",
	"1",
	"2",
	"7",
	"3Gi",
	"9e15",
	"8Ei",
	"4611686018427387904",
	"9223372036854775807",
	"9223372036854775",
	"1E",
};

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % below;
}

static const char *draw_amount(void)
{
	return amounts[draw(sizeof(amounts) / sizeof(amounts[0]))];
}

enum { CPU, MEMORY, GPU, RESOURCES };

struct toy {
	const char *of[RESOURCES];
	bool overhead; /* as much again */
};

struct world {
	struct api_fixture api;
	struct extender_options extender;
	struct toy nodes[NODES], pods[PODS], asked[ASKED];
	uint32_t node_of[PODS], reserved_on[ASKED]; /* NODES: none */
};

static struct toy draw_toy(void)
{
	return (struct toy){{draw_amount(), draw_amount(), draw_amount()}, draw(4) == 0};
}

static void put(struct model *m, enum object_kind kind, char *json)
{
	model_put(m, model_fixture_object(kind, json));
	free(json);
}

static char *toy_text(const struct toy *t)
{
	return mem_printf("\"cpu\":\"%s\",\"memory\":\"%s\",\"x/gpu\":\"%s\"", t->of[CPU],
			  t->of[MEMORY], t->of[GPU]);
}

static char *pod_text(const char *name, const char *namespace, const char *node,
		      const struct toy *t)
{
	char *asks = toy_text(t);
	char *text = mem_printf(
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
		"\"annotations\":{\"evenkeel.io/slack\":\"2\"},\"ownerReferences\":[{"
		"\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web\",\"uid\":"
		"\"uid-web\",\"controller\":true}]},\"spec\":{\"nodeName\":\"%s\",\"overhead\":{%s"
		"},\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{%s},\"limits\":{%s}"
		"}}]},\"status\":{\"phase\":\"%s\"}}",
		name, namespace, name, node, t->overhead ? asks : "", asks, asks,
		*node ? "Running" : "Pending");

	free(asks);
	return text;
}

#define MOST "9223372036854775807"

static void put_node(struct model *m, uint32_t n, const struct toy *t, const char *pods)
{
	char *has = toy_text(t);

	put(m, OBJECT_NODE,
	    mem_printf("{\"metadata\":{\"name\":\"n%u\"},\"status\":{\"capacity\":{%s,\"pods\":"
		       "\"%s\"},\"allocatable\":{%s,\"pods\":\"%s\"},\"conditions\":[{\"type\":"
		       "\"Ready\",\"status\":\"True\"}]}}",
		       n, has, pods, has, pods));
	free(has);
}

static void put_quota(struct model *m, uint32_t space)
{
	struct toy min = draw_toy(), max = draw_toy();
	char *least = toy_text(&min), *most = toy_text(&max);

	put(m, OBJECT_ELASTIC_QUOTA,
	    mem_printf("{\"metadata\":{\"name\":\"q\",\"namespace\":\"s%u\"},\"spec\":{\"min\":{"
		       "%s},\"max\":{%s}}}",
		       space, least, draw(2) ? most : ""));
	free(least);
	free(most);
}

static struct model *draw_model(struct world *w)
{
	struct model *m = model_new();

	for (uint32_t n = 0; n < NODES; n++) {
		w->nodes[n] = draw_toy();
		put_node(m, n, &w->nodes[n], draw(2) ? "110" : MOST);
	}
	for (uint32_t s = 0; s + 1 < SPACES; s++)
		put_quota(m, s);
	for (uint32_t i = 0; i < PODS; i++) {
		char name[16], space[16], node[16] = "";

		w->pods[i] = draw_toy();
		w->node_of[i] = draw(NODES + 1);
		snprintf(name, sizeof(name), "p%u", i);
		snprintf(space, sizeof(space), "s%u", draw(SPACES));
		if (w->node_of[i] < NODES)
			snprintf(node, sizeof(node), "n%u", w->node_of[i]);
		put(m, OBJECT_POD, pod_text(name, space, node, &w->pods[i]));
	}
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	return m;
}

static void open_over(struct world *w, struct model *m)
{
	struct node_stats stats =
		view_fixture_node("n0", VIEW_FIXTURE_NOW_NS - 1000000000, 3600, 1000, 100);
	struct node_stats *node_stats[] = {node_stats_new(&stats)};
	struct join *j = join_new();

	api_fixture_open(&w->api,
			 join_view(j, node_stats, draw(2), model_cluster(m), VIEW_FIXTURE_NOW_NS));
	api_fixture_extender(&w->extender);
	w->api.ctx.reservations = reservations_new();
	w->api.ctx.extender = &w->extender;
	node_stats_drop(node_stats[0]);
	join_free(j);
	model_free(m);
}

static void close_world(struct world *w)
{
	struct error error;

	if (!reservations_is_consistent(w->api.ctx.reservations, &error))
		fail_msg("%s", error.text);
	reservations_free(w->api.ctx.reservations);
	api_fixture_close(&w->api);
}

static void answer(struct world *w, const char *method, const char *target, const char *body)
{
	if (api_fixture_send(&w->api, method, target, body) != 200)
		fail_msg("%s %s: %s", method, target, w->api.response.body.data);
}

/* --- what is asked */

static int64_t amount_of(const struct toy *t, int resource)
{
	struct error error;
	int64_t amount = 0;

	if (resource == CPU)
		assert_int_equal(quantity_parse_milli(t->of[resource], &amount, &error), 0);
	else
		assert_int_equal(quantity_parse_units(t->of[resource], &amount, &error), 0);
	return amount;
}

/* Of one pod: saturated, as the model keeps it. */
static int64_t asked_of(const struct toy *t, int resource)
{
	__int128 sum = (__int128)amount_of(t, resource) * (t->overhead ? 2 : 1);

	return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

/* Of pods on the node and those that are reserved there. */
static __int128 asked_on(const struct world *w, uint32_t n, int resource)
{
	__int128 sum = 0;

	for (uint32_t i = 0; i < PODS; i++)
		if (w->node_of[i] == n)
			sum += asked_of(&w->pods[i], resource);
	for (uint32_t i = 0; i < ASKED; i++)
		if (w->reserved_on[i] == n)
			sum += asked_of(&w->asked[i], resource);
	return sum;
}

static bool has_room(const struct world *w, uint32_t n, const struct toy *t)
{
	for (int r = 0; r < RESOURCES; r++) {
		__int128 sum = asked_of(t, r) + asked_on(w, n, r);

		if (asked_of(t, r) && sum > amount_of(&w->nodes[n], r))
			return false;
	}
	return true;
}

static const cJSON *item_of(const struct world *w, int n)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(w->api.json, "items"), n);
}

static void check_fit(struct world *w, const struct toy *t)
{
	for (int n = 0; n < NODES; n++) {
		const char *filter = cJSON_GetStringValue(
			cJSON_GetObjectItemCaseSensitive(item_of(w, n), "filter"));
		bool room = has_room(w, (uint32_t)n, t);

		if (room == (filter && strcmp(filter, "NodeResourcesFit") == 0))
			fail_msg("n%d has %s: %s", n, room ? "room" : "no room",
				 w->api.response.body.data);
	}
}

/* Of nodes that are judged: beside measured ones others are estimated. */
static void check_limits(const struct world *w, int n, const cJSON *terms)
{
	static const char *const names[RESOURCES] = {"cpuLimits", "memoryLimits", "x/gpu.limits"};
	const cJSON *term;

	cJSON_ArrayForEach (term, terms) {
		const char *name = cJSON_GetObjectItemCaseSensitive(term, "name")->valuestring;
		double value = cJSON_GetObjectItemCaseSensitive(term, "value")->valuedouble;

		for (int r = 0; r < RESOURCES; r++) {
			__int128 sum = asked_on(w, (uint32_t)n, r);
			double want = sum > INT64_MAX ? (double)INT64_MAX : (double)sum;

			if (strcmp(name, names[r]) == 0 && fabs(value - want) > 1e-12 * want)
				fail_msg("n%d: %s is %g, not %g", n, name, value, want);
		}
	}
}

static void ask_limits(struct world *w, const char *pod)
{
	char *body = mem_printf(
		"{\"pod\":%s,\"explain\":true,\"plugins\":[\"LimitAware\"],\"args\":{"
		"\"LimitAware\":{\"unlimited\":\"allocatable\",\"resources\":[{\"name\":\"cpu\","
		"\"weight\":1},{\"name\":\"memory\",\"weight\":9007199254740992},{"
		"\"name\":\"x/gpu\",\"weight\":1}]}}}",
		pod);

	answer(w, "POST", "/v1/scores", body);
	for (int n = 0; n < NODES; n++) {
		const cJSON *plugin = cJSON_GetArrayItem(
			cJSON_GetObjectItemCaseSensitive(item_of(w, n), "plugins"), 0);
		double score =
			cJSON_GetObjectItemCaseSensitive(item_of(w, n), "score")->valuedouble;

		assert_true(score >= 0 && score <= 100);
		check_limits(w, n, cJSON_GetObjectItemCaseSensitive(plugin, "terms"));
	}
	free(body);
}

/* Nodes of the reservations of the pods that were asked about. */
static void read_reserved(struct world *w)
{
	struct reservations_copy *copy =
		reservations_take(w->api.ctx.reservations, w->api.ctx.now_ns());
	unsigned int pod, node;

	for (uint32_t i = 0; i < ASKED; i++)
		w->reserved_on[i] = NODES;
	for (size_t i = 0; copy && i < copy->count; i++)
		if (sscanf(copy->of[i]->name, "new%u", &pod) == 1 && pod < ASKED &&
		    sscanf(copy->of[i]->node, "n%u", &node) == 1)
			w->reserved_on[pod] = node;
	reservations_copy_drop(copy);
}

/* The pod between two pieces of a body. */
static void ask(struct world *w, const char *before, const char *pod, const char *after,
		const char *const *routes, size_t count)
{
	char *body = mem_printf("%s%s%s", before, pod, after);

	for (size_t i = 0; i < count; i++)
		answer(w, "POST", routes[i], body);
	free(body);
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* fit first: what the extender answers is reserved, and counts for the pods that come after. */
static void ask_about(struct world *w, uint32_t number)
{
	static const char *const fit[] = {"/v1/fit"};
	static const char *const plain[] = {"/v1/scores", "/v1/quotas/admit", "/v1/quotas/preempt"};
	static const char *const verbs[] = {"/extender/filter", "/extender/prioritize"};
	struct toy t = draw_toy();
	char name[16], space[16];
	char *pod;

	snprintf(name, sizeof(name), "new%u", number);
	snprintf(space, sizeof(space), "s%u", draw(SPACES));
	pod = pod_text(name, space, "", &t);
	ask(w, "{\"pod\":", pod, "}", fit, COUNT(fit));
	check_fit(w, &t);
	ask_limits(w, pod);
	ask(w, "{\"pod\":", pod, "}", plain, COUNT(plain));
	ask(w, "{\"Pod\":", pod, ",\"Nodes\":null,\"NodeNames\":[\"n0\",\"n1\",\"n2\"]}", verbs,
	    COUNT(verbs));
	free(pod);
	w->asked[number] = t;
	read_reserved(w);
}

/* All that these answers count is an amount that there is. */
static void check_not_negative(struct world *w, const char *target)
{
	const char *found;

	answer(w, "GET", target, "");
	found = strstr(w->api.response.body.data, "\":-");
	if (found)
		fail_msg("%s: %.300s", target,
			 found - w->api.response.body.data > 100 ? found - 100
								 : w->api.response.body.data);
}

static void sums_hold_whatever_amounts_there_are(void **state)
{
	static const char *const routes[] = {"/v1/drain", "/v1/slack",	  "/v1/quotas", "/v1/nodes",
					     "/v1/pods",  "/v1/snapshot", "/v1/status", "/metrics"};
	static const char *const sums[] = {"/v1/drain", "/v1/slack", "/v1/quotas", "/v1/nodes"};

	(void)state;
	for (uint64_t number = 1; number <= WORLDS; number++) {
		static struct world w;

		seed = number;
		open_over(&w, draw_model(&w));
		read_reserved(&w);
		for (uint32_t i = 0; i < ASKED; i++)
			ask_about(&w, i);
		for (size_t i = 0; i < COUNT(routes); i++)
			answer(&w, "GET", routes[i], "");
		for (size_t i = 0; i < COUNT(sums); i++)
			check_not_negative(&w, sums[i]);
		close_world(&w);
	}
}

/* Three nodes that each have room for nearly 2^63 pods have room for as many together. */
static void slots_saturate(void **state)
{
	static const struct toy node = {{"9e15", MOST, "0"}, false},
				tiny = {{"1m", "1", "0"}, false};
	static struct world w;
	struct model *m = model_new();

	(void)state;
	seed = 1;
	for (uint32_t n = 0; n < NODES; n++)
		put_node(m, n, &node, MOST);
	put(m, OBJECT_POD, pod_text("p", "s0", "n0", &tiny));
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	open_over(&w, m);
	answer(&w, "GET", "/v1/slack", "");
	if (!strstr(w.api.response.body.data, "\"byRequests\":" MOST))
		fail_msg("%s", w.api.response.body.data);
	close_world(&w);
}

/* Two nodes whose kernels limit a pod by nearly 2^63 have no less in all. */
static void kernel_limits_saturate(void **state)
{
	static const struct toy node = {{"9e15", MOST, "0"}, false};
	static const struct kernel_limits limits = {9000000000000000000,
						    INT64_MAX - 4096,
						    LIMIT_NONE,
						    LIMIT_NONE,
						    LIMIT_NONE,
						    0,
						    INT64_MAX};
	static const char *const names[] = {"n0", "n1"};
	static struct world w;
	struct node_stats *node_stats[2];
	struct model *m = model_new();
	struct join *j = join_new();

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		struct pod_stats pod =
			join_fixture_pod("p", "uid-p", VIEW_FIXTURE_NOW_NS, 900, 1, 1);

		put_node(m, n, &node, MOST);
		pod.limits = &limits;
		node_stats[n] = join_fixture_stats(names[n], VIEW_FIXTURE_NOW_NS, &pod, 1);
	}
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	api_fixture_open(&w.api,
			 join_view(j, node_stats, 2, model_cluster(m), VIEW_FIXTURE_NOW_NS));
	check_not_negative(&w, "/v1/nodes");
	assert_non_null(strstr(w.api.response.body.data, MOST));
	api_fixture_close(&w.api);
	node_stats_drop(node_stats[0]);
	node_stats_drop(node_stats[1]);
	join_free(j);
	model_free(m);
}

static void put_licence_quota(struct model *m, int space, const char *min)
{
	put(m, OBJECT_ELASTIC_QUOTA,
	    mem_printf("{\"metadata\":{\"name\":\"q\",\"namespace\":\"s%d\"},\"spec\":{\"min\":{"
		       "\"x/licence\":\"%s\"},\"max\":{}}}",
		       space, min));
	put(m, OBJECT_POD,
	    mem_printf("{\"metadata\":{\"name\":\"l%d\",\"namespace\":\"s%d\",\"uid\":\"l%d\"},"
		       "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
		       "\"x/licence\":\"" MOST "\"},\"limits\":{\"x/licence\":\"" MOST
		       "\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
		       space, space, space));
}

/* Three quotas want all of their guarantees of 2^63 - 1; so nothing is left for the one without. */
static void fair_shares_are_of_what_is_left(void **state)
{
	static struct world w;
	struct model *m = model_new();
	const cJSON *share;

	(void)state;
	seed = 1;
	for (int space = 0; space < 4; space++)
		put_licence_quota(m, space, space < 3 ? MOST : "0");
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	open_over(&w, m);
	answer(&w, "GET", "/v1/quotas", "");
	share = cJSON_GetObjectItemCaseSensitive(item_of(&w, 3), "share");
	assert_non_null(share);
	assert_true(cJSON_GetObjectItemCaseSensitive(share, "x/licence")->valuedouble == 0);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_hold_whatever_amounts_there_are),
		cmocka_unit_test(slots_saturate),
		cmocka_unit_test(kernel_limits_saturate),
		cmocka_unit_test(fair_shares_are_of_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
