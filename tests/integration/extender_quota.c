/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kube-scheduler's questions about pods under quotas, over the real HTTP server: a burst that
 * must not get past a quota before any view shows it, and preemption that is asked for again and
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/policy/quota/preempt.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/victim_log.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/http_plain.h"
#include "tests/process.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

struct scene {
	struct api_context ctx;
	struct counters counters;
	struct extender_options extender;
	struct http_server *server;
	struct buf answer;
};

static atomic_llong now;

/*
 * Another question that is answered while this one is: when the clock is read for the n-th time
 * since it was armed.
 */
static struct {
	struct reservations *reservations; /* NULL: nobody comes */
	struct reservations_copy *seen;
	atomic_int left;
	atomic_bool served;
} rival;

static void serve_rival(void)
{
	struct reservation e = {.uid = "r", .namespace = "team-b", .name = "r", .node = ""};

	resources_set(&e.requests, RESOURCE_CPU, 2000);
	atomic_store(&rival.served, !reservations_reserve_seen(rival.reservations, &e, rival.seen,
							       VIEW_FIXTURE_NOW_NS));
	resources_fini(&e.requests);
}

static int64_t now_ns(void)
{
	if (rival.reservations && atomic_fetch_sub(&rival.left, 1) == 0)
		serve_rival();
	return atomic_load(&now);
}

/* --- the cluster */

/*
 * 16 CPUs, 12 of them guaranteed: team-a has borrowed 4 in pods of 2, and so has nothing more to
 * get; team-b uses 2 of its 8. "gone" leaves pods out, "going" has one in deletion, "cheap" gives
 * one the least priority; NULL: none. "more" are other objects.
 */
static struct view *make_view_of(const char *gone, const char *going, const char *cheap,
				 const char *more)
{
	static const char *const nodes[] = {"a", "a", "b", "b"};
	struct buf items = BUF_INIT;
	struct view *v;

	buf_add_str(&items, quota_fixture_node("a", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_node("b", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_quota("team-a", "q", "cpu: 4", "cpu: 8"));
	buf_add_str(&items, quota_fixture_quota("team-b", "q", "cpu: 8", "cpu: 10"));
	for (int i = 0; i < 4; i++) {
		char name[8];
		const char *line;

		snprintf(name, sizeof(name), "p%d", i);
		line = quota_fixture_pod("team-a", name, nodes[i],
					 cheap && strcmp(name, cheap) == 0 ? -5 : 10 * i, "cpu: 2");
		if (gone && strstr(gone, name))
			continue;
		if (going && strcmp(name, going) == 0)
			buf_printf(&items, "%.*s, deletionTimestamp: \"2026-01-31T12:00:30Z\"%s",
				   (int)(strchr(line, '}') - line), line, strchr(line, '}'));
		else
			buf_add_str(&items, line);
	}
	buf_add_str(&items, quota_fixture_pod("team-b", "p", "b", 0, "cpu: 2"));
	buf_add_str(&items, more);
	v = quota_fixture_view(items.data);
	buf_fini(&items);
	return v;
}

static struct view *make_view(const char *gone, const char *going)
{
	return make_view_of(gone, going, NULL, "");
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct error error;

	atomic_store(&now, VIEW_FIXTURE_NOW_NS);
	api_fixture_extender(&s->extender);
	s->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &s->counters,
		.now_ns = now_ns,
		.watcher_smoothed = 1,
		.reservations = reservations_new(),
		.victims = victim_log_new(),
		.extender = &s->extender,
	};
	view_slot_publish(s->ctx.views, make_view(NULL, NULL));
	if (http_plain_start(&s->server, "127.0.0.1:0", &s->ctx, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	http_stop(s->server);
	view_slot_free(s->ctx.views);
	reservations_free(s->ctx.reservations);
	victim_log_free(s->ctx.victims);
	buf_fini(&s->answer);
	free(s);
	return 0;
}

/* --- the scheduler */

static size_t on_data(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

static long post(struct scene *s, const char *path, const char *body)
{
	char *url = mem_printf("http://%s%s", http_address(s->server), path);
	CURL *curl = curl_easy_init();
	long status = 0;

	buf_clear(&s->answer);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http_json_headers());
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &s->answer);
	assert_int_equal(curl_easy_perform(curl), CURLE_OK);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	buf_add_str(&s->answer, "");
	free(url);
	return status;
}

static char *pod(const char *namespace, const char *uid, const char *cpu)
{
	return mem_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"},"
			  "\"spec\":{\"priority\":5,\"containers\":[{\"name\":\"c\",\"resources\":{"
			  "\"requests\":{\"cpu\":\"%s\"}}}]}}",
			  namespace, uid, uid, cpu);
}

/* The answer, to be compared as text. */
static const char *filter(struct scene *s, const char *namespace, const char *uid, const char *cpu)
{
	char *asked = pod(namespace, uid, cpu);
	char *body = mem_printf("{\"Pod\":%s,\"NodeNames\":[\"a\",\"b\"]}", asked);

	assert_int_equal(post(s, "/extender/filter", body), 200);
	free(body);
	free(asked);
	return s->answer.data;
}

static const char *preempt(struct scene *s, const char *uid, const char *cpu, const char *offer)
{
	char *asked = pod("team-b", uid, cpu);
	char *body = mem_printf("{\"Pod\":%s,%s}", asked, offer);

	assert_int_equal(post(s, "/extender/preempt", body), 200);
	free(body);
	free(asked);
	return s->answer.data;
}

#define PASSED "{\"NodeNames\":[\"a\",\"b\"]}"

/* --- filter */

/*
 * Each is admitted with what those before were promised, though no view has them; in nodes'
 * refusals, never in Error.
 */
static void test_burst_stays_within_quota(void **state)
{
	struct scene *s = *state;

	assert_string_equal(filter(s, "team-b", "b1", "1"), PASSED);
	assert_string_equal(filter(s, "team-b", "b2", "1"), PASSED);
	assert_string_equal(
		filter(s, "team-b", "b3", "1"),
		"{\"NodeNames\":[],\"FailedNodes\":{\"a\":\"ElasticQuota overSumMin: cpu: 12.0 "
		"used by "
		"all quotas + 1.0 asked is over 12.0, the sum of their min: wait for 1.0 to be "
		"freed, "
		"by itself or by preempting those who borrow, as quota team-b/q is within its "
		"min\","
		"\"b\":\"ElasticQuota overSumMin: cpu: 12.0 used by all quotas + 1.0 asked is over "
		"12.0, the sum of their min: wait for 1.0 to be freed, by itself or by preempting "
		"those who borrow, as quota team-b/q is within its min\"}}");
	/* Asked again it does not stand in its own way, and one that is gone makes room. */
	assert_string_equal(filter(s, "team-b", "b2", "1"), PASSED);
	reservations_release(s->ctx.reservations, "b1");
	assert_string_equal(filter(s, "team-b", "b3", "1"), PASSED);
	assert_int_equal(counter_get(&s->counters.quota.admissions[QUOTA_OVER_SUM]), 1);
	assert_int_equal(counter_get(&s->counters.quota.admissions[QUOTA_ADMITTED]), 4);
}

/* --- asked at once */

/* Room is there for one of two; whenever the other comes, one of them gets it. */
static void test_asked_at_once(void **state)
{
	struct scene *s = *state;
	int refused = 0;

	for (int n = 0; n < 8; n++) {
		bool passed;

		rival.seen = reservations_take(s->ctx.reservations, VIEW_FIXTURE_NOW_NS);
		atomic_store(&rival.served, false);
		atomic_store(&rival.left, n);
		rival.reservations = s->ctx.reservations;
		passed = strcmp(filter(s, "team-b", "b1", "2"), PASSED) == 0;
		rival.reservations = NULL;
		assert_int_equal(passed + atomic_load(&rival.served), 1);
		refused += !passed;
		reservations_copy_drop(rival.seen);
		reservations_release(s->ctx.reservations, "b1");
		reservations_release(s->ctx.reservations, "r");
	}
	/* Before it looked, and after. */
	assert_true(refused >= 2);
}

/* A nominated pod counts once, whether it has a reservation or not. */
static void test_nominated_count_once(void **state)
{
	struct scene *s = *state;

	view_slot_publish(
		s->ctx.views,
		make_view_of(NULL, NULL, NULL,
			     "- {apiVersion: v1, kind: Pod, metadata: {namespace: team-b, name: "
			     "nom, uid: nom}, spec: {priority: 10, containers: [{name: c, "
			     "resources: {requests: {cpu: 1}}}]}, status: {phase: Pending, "
			     "nominatedNodeName: b}}\n"));
	assert_non_null(strstr(filter(s, "team-b", "b1", "2"), "overSumMin"));
	assert_string_equal(filter(s, "team-b", "nom", "1"), PASSED);
	assert_non_null(strstr(filter(s, "team-b", "b1", "2"), "overSumMin"));
	assert_string_equal(filter(s, "team-b", "b1", "1"), PASSED);
}

/* A promise that nobody keeps ends by itself. */
static void test_promises_expire(void **state)
{
	struct scene *s = *state;

	assert_string_equal(filter(s, "team-b", "b1", "2"), PASSED);
	assert_null(strstr(filter(s, "team-b", "b2", "2"), "\"NodeNames\":[\"a\""));
	atomic_store(&now, VIEW_FIXTURE_NOW_NS + RESERVATIONS_TTL_NS);
	assert_string_equal(filter(s, "team-b", "b2", "2"), PASSED);
}

/*
 * Nothing helps a pod that alone asks for too much: also by the member that only newer schedulers
 * know.
 */
static void test_hopeless_pods(void **state)
{
	struct scene *s = *state;
	const char *both = filter(s, "team-a", "a1", "9");

	assert_non_null(
		strstr(both, "\"FailedNodes\":{\"a\":\"ElasticQuota never: cpu: 9.0 asked"));
	assert_non_null(strstr(both, "\"FailedAndUnresolvableNodes\":{\"a\":\"ElasticQuota never"));
	assert_null(strstr(both, "Error"));
	both = filter(s, "team-a", "a2", "1");
	assert_non_null(strstr(both, "ElasticQuota overMax: cpu: 8.0 used + 1.0 asked"));
	assert_null(strstr(both, "Unresolvable"));
}

static void test_others_pass(void **state)
{
	struct scene *s = *state;

	assert_string_equal(filter(s, "free", "f1", "500"), PASSED);
	view_slot_publish(s->ctx.views,
			  quota_fixture_view(
				  "- {apiVersion: v1, kind: Node, metadata: {name: a}}\n"
				  "- {apiVersion: v1, kind: Node, metadata: {name: b}}\n"));
	assert_string_equal(filter(s, "team-a", "a1", "500"), PASSED);
}

/* --- preempt */

#define META(node, uid) "\"" node "\":{\"Pods\":[{\"UID\":\"" uid "\"}],\"NumPDBViolations\":0}"
#define ANSWER(nodes)	"{\"NodeNameToMetaVictims\":{" nodes "}}"
#define OFFER_B		"\"NodeNameToMetaVictims\":{\"b\":{\"Pods\":[],\"NumPDBViolations\":0}}"
#define OFFER_A		"\"NodeNameToMetaVictims\":{\"a\":{\"Pods\":[],\"NumPDBViolations\":0}}"
#define OFFER_BOTH                                                                                 \
	"\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"a\":{\"Pods\":[{\"UID\":"         \
	"\"uid-team-a-p0\"}]},\"b\":{\"Pods\":null}}"

#define OFFER_TWICE                                                                                \
	"\"NodeNameToMetaVictims\":{\"a\":{\"Pods\":[{\"UID\":\"uid-team-a-p0\"}]},"               \
	"\"a\":{\"Pods\":[{\"UID\":\"uid-team-a-p0\"}]}}"

/*
 * On the cheapest node alone, by our rules: the borrower with the lowest priority there, whoever
 * the scheduler offered.
 */
static void test_victims(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_BOTH), ANSWER(META("a", "uid-team-a-p0")));
	assert_string_equal(preempt(s, "w", "4", "\"NodeNameToMetaVictims\":{}"), ANSWER(""));
	assert_string_equal(preempt(s, "x", "4", "\"NodeNameToMetaVictims\":{\"nobody\":{}}"),
			    ANSWER(""));
	assert_int_equal(counter_get(&s->counters.quota.preempt_victims), 1);
	assert_int_equal(counter_get(&s->counters.quota.preempt_none), 2);
}

/*
 * With whole pods, as a scheduler without nodeCacheCapable asks; the answer has uids all the same.
 */
static void test_whole_pods(void **state)
{
	assert_string_equal(
		preempt(*state, "v", "4",
			"\"NodeNameToVictims\":{\"b\":{\"Pods\":[{\"metadata\":{\"name\":"
			"\"p3\",\"uid\":\"uid-team-a-p3\"}}],\"NumPDBViolations\":0}}"),
		ANSWER(META("b", "uid-team-a-p2")));
}

static size_t count_victims(const char *answer)
{
	size_t count = 0;

	for (const char *at = answer; (at = strstr(at, "\"UID\"")) != NULL; at++)
		count++;
	return count;
}

/*
 * An answer that got lost is given again, also while its victim goes; when that is gone, and it did
 * not help, there is another.
 */
static void test_idempotent(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	assert_int_equal(counter_get(&s->counters.quota.preempt_repeated), 1);
	view_slot_publish(s->ctx.views, make_view(NULL, "p2"));
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	assert_int_equal(counter_get(&s->counters.quota.preempt_repeated), 2);
	view_slot_publish(s->ctx.views, make_view("p2", NULL));
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(""));
	assert_string_equal(preempt(s, "v", "6", OFFER_B), ANSWER(META("b", "uid-team-a-p3")));
}

/* Of two victims one is in deletion, and nothing else is evicted for the pod: one set. */
static void test_repeats_the_whole_set(void **state)
{
	struct scene *s = *state;

	view_slot_publish(s->ctx.views, make_view_of(NULL, NULL, "p3", ""));
	assert_int_equal(count_victims(preempt(s, "v", "6", OFFER_B)), 2);
	view_slot_publish(s->ctx.views, make_view_of(NULL, "p2", "p0", ""));
	assert_int_equal(count_victims(preempt(s, "v", "6", OFFER_BOTH)), 2);
	assert_non_null(strstr(s->answer.data, "uid-team-a-p2"));
	assert_non_null(strstr(s->answer.data, "uid-team-a-p3"));
	view_slot_publish(s->ctx.views, make_view_of("p2", "p3", "p0", ""));
	assert_string_equal(preempt(s, "v", "6", OFFER_BOTH), ANSWER(META("b", "uid-team-a-p3")));
}

/* Schedulers offer other nodes each time: as long as its victims are there it keeps to its node. */
static void test_keeps_to_its_node(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	assert_string_equal(preempt(s, "v", "4", OFFER_A), ANSWER(META("b", "uid-team-a-p2")));
	view_slot_publish(s->ctx.views, make_view(NULL, "p2"));
	assert_string_equal(preempt(s, "v", "4", OFFER_A), ANSWER(META("b", "uid-team-a-p2")));
	/* Nobody deletes it: the scheduler may have what it offers. */
	view_slot_publish(s->ctx.views, make_view(NULL, NULL));
	atomic_store(&now, VIEW_FIXTURE_NOW_NS + VICTIM_LOG_FLIGHT_NS);
	assert_string_equal(preempt(s, "v", "4", OFFER_A), ANSWER(META("a", "uid-team-a-p0")));
}

/* The scheduler does not know yet that the victim is gone: it offers another node, which is full. */
static void test_takes_nobody_while_the_node_has_room(void **state)
{
	char *more = mem_strdup(quota_fixture_pod("free", "f", "a", 50, "cpu: 2"));
	struct scene *s = *state;

	view_slot_publish(s->ctx.views, make_view_of(NULL, NULL, NULL, more));
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	view_slot_publish(s->ctx.views, make_view_of("p2", NULL, NULL, more));
	assert_string_equal(preempt(s, "v", "4", OFFER_A), ANSWER(""));
	/* It knows by now, and has its own reason not to go there. */
	atomic_store(&now, VIEW_FIXTURE_NOW_NS + VICTIM_LOG_FLIGHT_NS);
	assert_string_equal(preempt(s, "v", "4", OFFER_A), ANSWER(META("a", "uid-team-a-p0")));
	free(more);
}

/* What was told is looked at anew: it is told again only while it is needed and may go. */
static void test_repeats_only_what_still_holds(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	assert_string_equal(preempt(s, "v", "100m", OFFER_B), ANSWER(""));
	/* team-a is at its min now. */
	view_slot_publish(s->ctx.views, make_view("p0 p3", NULL));
	assert_string_equal(preempt(s, "v", "6", OFFER_B), ANSWER(""));
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(""));
	assert_int_equal(counter_get(&s->counters.quota.preempt_repeated), 0);
}

/* Somebody cheaper, there or on another node, is no reason to evict him as well. */
static void test_prefers_who_was_told(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	view_slot_publish(s->ctx.views, make_view_of(NULL, NULL, "p3", ""));
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	view_slot_publish(s->ctx.views, make_view_of(NULL, NULL, "p0", ""));
	assert_string_equal(preempt(s, "v", "4", OFFER_BOTH), ANSWER(META("b", "uid-team-a-p2")));
	assert_int_equal(counter_get(&s->counters.quota.preempt_repeated), 2);
}

/* The budgets that are broken are told each time. */
static void test_tells_broken_budgets_again(void **state)
{
	struct preempt_options soft;
	struct scene *s = *state;

	preempt_options_default(&soft);
	soft.pdb_hard = false;
	s->ctx.preempt = &soft;
	view_slot_publish(
		s->ctx.views,
		make_view_of(NULL, NULL, NULL,
			     "- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: "
			     "{namespace: team-a, name: all}, spec: {minAvailable: 4, selector: "
			     "{}}, status: {disruptionsAllowed: 0}}\n"));
	for (int i = 0; i < 2; i++)
		assert_string_equal(preempt(s, "v", "4", OFFER_B),
				    ANSWER("\"b\":{\"Pods\":[{\"UID\":\"uid-team-a-p2\"}],"
					   "\"NumPDBViolations\":1}"));
	s->ctx.preempt = NULL;
}

/*
 * Nodes a and b are full of team-a's pods of one CPU, of which so many are there; team-a is
 * guaranteed 2, team-b 6.
 */
static struct view *make_crowd(int on_a, int on_b, const char *annotations)
{
	struct buf items = BUF_INIT;
	struct view *v;
	char text[32];

	for (int i = 0; i < on_a + on_b; i++) {
		snprintf(text, sizeof(text), "p%d", i);
		buf_add_str(&items,
			    quota_fixture_pod("team-a", text, i < on_a ? "a" : "b", 0, "cpu: 1"));
	}
	snprintf(text, sizeof(text), "cpu: %d", on_a);
	buf_add_str(&items, quota_fixture_node("a", text));
	snprintf(text, sizeof(text), "cpu: %d", on_b);
	buf_add_str(&items, quota_fixture_node("b", text));
	/* Nobody offers it; with it there is as much as all min come to. */
	buf_add_str(&items, quota_fixture_node("c", "cpu: 8"));
	buf_printf(&items,
		   "- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "
		   "{namespace: team-a, name: q, annotations: {%s}}, spec: {min: {cpu: 2}}}\n",
		   annotations);
	buf_add_str(&items, quota_fixture_quota("team-b", "q", "cpu: 6", NULL));
	v = quota_fixture_view(items.data);
	buf_fini(&items);
	return v;
}

/*
 * An answer is counted when it is given, also where more nodes were offered; told again it is no
 * other.
 */
static void test_max_evictions_of_many_nodes(void **state)
{
	struct scene *s = *state;

	view_slot_publish(s->ctx.views, make_crowd(4, 4, "evenkeel.io/max-evictions: \"1/1h\""));
	assert_int_equal(count_victims(preempt(s, "v", "1", OFFER_BOTH)), 1);
	assert_string_equal(preempt(s, "w", "1", OFFER_BOTH), ANSWER(""));
	assert_int_equal(count_victims(preempt(s, "v", "1", OFFER_BOTH)), 1);
	assert_string_equal(preempt(s, "x", "1", OFFER_BOTH), ANSWER(""));
}

/* One pod may go before team-a is at its min: not one for each who asks. */
static void test_min_among_preemptors(void **state)
{
	struct scene *s = *state;

	view_slot_publish(s->ctx.views, make_crowd(2, 1, ""));
	assert_int_equal(count_victims(preempt(s, "v", "1", OFFER_BOTH)), 1);
	assert_string_equal(preempt(s, "w", "1", OFFER_BOTH), ANSWER(""));
	assert_string_equal(preempt(s, "x", "1", OFFER_BOTH), ANSWER(""));
}

/*
 * What its victims leave is the preemptor's, also when they are gone and nobody nominated it yet:
 * no borrower gets it.
 */
static void test_room_of_victims_is_kept(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	view_slot_publish(s->ctx.views, make_view("p2", NULL));
	assert_non_null(strstr(filter(s, "team-a", "a1", "2"), "ElasticQuota overSumMin"));
	assert_string_equal(filter(s, "team-b", "v", "4"), PASSED);
	/* It does not come: the room is anybody's again. */
	atomic_store(&now, VIEW_FIXTURE_NOW_NS + RESERVATIONS_TTL_NS);
	assert_string_equal(filter(s, "team-a", "a1", "2"), PASSED);
}

/*
 * A scheduler that did not learn of its own success asks about a pod that runs: it is in the
 * numbers, and nothing more is promised.
 */
static void test_late_questions_promise_nothing(void **state)
{
	struct scene *s = *state;
	struct reservations_copy *copy;

	assert_non_null(strstr(filter(s, "team-a", "uid-team-a-p0", "2"), "overMax"));
	assert_true(reservations_remember(s->ctx.reservations, "uid-team-a-p0"));
	assert_false(reservations_remember(s->ctx.reservations, "uid-team-a-p0"));
	assert_string_equal(filter(s, "team-a", "uid-team-a-p0", "2"), PASSED);
	copy = reservations_take(s->ctx.reservations, now_ns());
	assert_int_equal(copy->count, 0);
	reservations_copy_drop(copy);
	assert_int_equal(counter_get(&s->counters.extender.unreserved), 0);
	reservations_forget(s->ctx.reservations, "uid-team-a-p0");
	assert_non_null(strstr(filter(s, "team-a", "uid-team-a-p0", "2"), "overMax"));
}

/* What goes for one pod is not asked of the next as well. */
static void test_two_preemptors(void **state)
{
	struct scene *s = *state;
	const char *second;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	second = preempt(s, "w", "4", OFFER_B);
	assert_null(strstr(second, "p2"));
}

/* Told long ago is not told. */
static void test_forgets(void **state)
{
	struct scene *s = *state;

	preempt(s, "v", "4", OFFER_B);
	atomic_store(&now, VIEW_FIXTURE_NOW_NS + VICTIM_LOG_TTL_NS);
	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	assert_int_equal(counter_get(&s->counters.quota.preempt_repeated), 0);
}

/* Victims that take longer to end than the scheduler's pause between two tries. */
static void test_slow_victims_are_told_again(void **state)
{
	struct scene *s = *state;

	assert_string_equal(preempt(s, "v", "4", OFFER_B), ANSWER(META("b", "uid-team-a-p2")));
	view_slot_publish(s->ctx.views, make_view(NULL, "p2"));
	for (int64_t tries = 1; tries <= 4; tries++) {
		atomic_store(&now, VIEW_FIXTURE_NOW_NS + tries * 330 * NS_PER_SEC);
		assert_string_equal(preempt(s, "v", "4", OFFER_B),
				    ANSWER(META("b", "uid-team-a-p2")));
	}
	assert_int_equal(counter_get(&s->counters.quota.preempt_repeated), 4);
}

/* Nobody knows better than the scheduler then. */
static void test_confirms_what_it_cannot_judge(void **state)
{
	struct scene *s = *state;

	view_slot_publish(s->ctx.views, view_new(1, VIEW_FIXTURE_NOW_NS, NULL, 0, NULL, NULL));
	assert_string_equal(preempt(s, "v", "4", OFFER_BOTH), ANSWER(META("a", "uid-team-a-p0")));
	assert_string_equal(preempt(s, "v", "4", OFFER_TWICE), ANSWER(META("a", "uid-team-a-p0")));
}

static void test_bad_questions(void **state)
{
	static const struct {
		const char *body, *field;
	} cases[] = {
		{"[]", NULL},
		{"{}", "Pod"},
		{"{\"Pod\":3}", "Pod"},
		{"{\"Pod\":{\"spec\":{}}}", "Pod.metadata.name"},
		{"{\"Pod\":{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priority\":\"x\"}}}",
		 "Pod.spec.priority"},
		{"{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"NodeNameToMetaVictims\":[]}",
		 "NodeNameToMetaVictims"},
		{"{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"NodeNameToMetaVictims\":{\"a\":{"
		 "\"Pods\":"
		 "[{\"UID\":3}]}}}",
		 "NodeNameToMetaVictims.a.Pods[0].UID"},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *field = cases[i].field ? mem_printf("\"field\":\"%s\"", cases[i].field)
					     : mem_strdup("\"code\":\"badRequest\"");

		assert_int_equal(post(s, "/extender/preempt", cases[i].body), 400);
		if (!strstr(s->answer.data, field))
			fail_msg("%s: %s", cases[i].body, s->answer.data);
		free(field);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_burst_stays_within_quota),
		TEST(test_asked_at_once),
		TEST(test_nominated_count_once),
		TEST(test_promises_expire),
		TEST(test_hopeless_pods),
		TEST(test_others_pass),
		TEST(test_victims),
		TEST(test_whole_pods),
		TEST(test_idempotent),
		TEST(test_repeats_only_what_still_holds),
		TEST(test_prefers_who_was_told),
		TEST(test_tells_broken_budgets_again),
		TEST(test_max_evictions_of_many_nodes),
		TEST(test_repeats_the_whole_set),
		TEST(test_keeps_to_its_node),
		TEST(test_takes_nobody_while_the_node_has_room),
		TEST(test_min_among_preemptors),
		TEST(test_two_preemptors),
		TEST(test_room_of_victims_is_kept),
		TEST(test_late_questions_promise_nothing),
		TEST(test_forgets),
		TEST(test_slow_victims_are_told_again),
		TEST(test_confirms_what_it_cannot_judge),
		TEST(test_bad_questions),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
