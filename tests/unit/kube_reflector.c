/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories of one kind's lists and watches, told as rows: so much later this happens, and that is
 * what must be done. Random is 0.5: a wait is 1.5 times its base (1.2, 2.4 .. 45 s), a watch lasts
 * 450 s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/reflector.h"
#include "shared/clock.h"

struct row {
	double after_s;
	enum reflector_event_type type;
	int code; /* of a fault */
	const char *version; /* also the message of a fault */
	const char *token;
	double retry_after_s;
	const char *want; /* as render() has it */
	bool unavailable;
};

#define NODES  "/api/v1/nodes?"
#define LIST_0 "GET " NODES "limit=500&resourceVersion=0"
#define WATCH(v)                                                                                   \
	"GET " NODES "watch=1&allowWatchBookmarks=true&resourceVersion=" v "&timeoutSeconds=450"
#define REFUSED "connection refused"

#define ROW(later, what, v, text)                                                                  \
	{                                                                                          \
		.after_s = (later), .type = REFLECTOR_##what, .version = (v), .want = (text)       \
	}
#define SERVED(later, v, text) ROW(later, SERVED, v, text)
#define UNSERVED(later, text)  ROW(later, UNSERVED, NULL, text)
#define TIME(later, text)      ROW(later, TIME, NULL, text)
#define OPENED(later, text)    ROW(later, OPENED, NULL, text)
#define PAGE(later, v, t, text)                                                                    \
	{                                                                                          \
		.after_s = (later), .type = REFLECTOR_PAGE, .version = (v), .token = (t),          \
		.want = (text)                                                                     \
	}
#define CHANGE(later, v, text)	 ROW(later, CHANGE, v, text)
#define BOOKMARK(later, v, text) ROW(later, BOOKMARK, v, text)
#define ENDED(later, text)	 ROW(later, ENDED, NULL, text)
#define FAULT(later, number, v, text)                                                              \
	{                                                                                          \
		.after_s = (later), .type = REFLECTOR_FAULT, .version = (v), .code = (number),     \
		.want = (text)                                                                     \
	}
#define SYNCED                                                                                     \
	SERVED(0, "v1", LIST_0), OPENED(0, "begin"),                                               \
		PAGE(1, "100", NULL, "end; synced; " WATCH("100")), OPENED(0, "")

static double half(void)
{
	return 0.5;
}

static void render(const struct reflector *r, const struct reflector_update *u, int64_t now_ns,
		   int64_t wake_before_ns, struct buf *out)
{
	static const char *const states[] = {"none",	  "listing", "synced",	"stale",
					     "forbidden", "absent",  "snapshot"};

	buf_clear(out);
	buf_add_str(out, "");
	if (u->unauthorized)
		buf_add_str(out, "renew; ");
	if (u->replace_begin)
		buf_add_str(out, "begin; ");
	if (u->replace_end)
		buf_add_str(out, "end; ");
	if (u->clear)
		buf_add_str(out, "clear; ");
	if (u->source)
		buf_printf(out, "%s%s%s; ", states[r->source.state],
			   r->source.message[0] ? ": " : "", r->source.message);
	if (u->request != REFLECTOR_NOTHING) {
		buf_add_str(out, "GET ");
		reflector_path(r, out);
		buf_add_str(out, "; ");
	}
	if (r->state == REFLECTOR_PAUSED && reflector_wake_ns(r) != wake_before_ns)
		buf_printf(out, "wait %.1f; ", (double)(reflector_wake_ns(r) - now_ns) / 1e9);
	if (out->len)
		out->data[out->len -= 2] = '\0';
}

static void tell(enum object_kind kind, const struct row *rows, size_t count)
{
	struct reflector r;
	struct buf got = BUF_INIT;
	int64_t now_ns = 5 * NS_PER_SEC;

	reflector_init(&r, kind, kube_timing_usual(), half);
	for (size_t i = 0; i < count; i++) {
		struct kube_status status;
		struct reflector_event e = {
			.type = rows[i].type,
			.version = rows[i].version,
			.continue_token = rows[i].token,
			.status = &status,
		};
		int64_t wake_before_ns = reflector_wake_ns(&r);
		struct reflector_update u;

		now_ns += (int64_t)(rows[i].after_s * 1e9 + 0.5);
		e.now_ns = now_ns;
		e.wall_ns = 1000 * NS_PER_SEC + now_ns;
		kube_status_set(&status, rows[i].code, rows[i].version ? rows[i].version : "");
		kube_status_retry_after(&status, rows[i].retry_after_s);
		status.version_unavailable |= rows[i].unavailable;
		u = reflector_step(&r, &e);
		render(&r, &u, now_ns, wake_before_ns, &got);
		if (strcmp(got.data ? got.data : "", rows[i].want) != 0)
			fail_msg("row %zu: \"%s\", wanted \"%s\"", i, got.data, rows[i].want);
	}
	buf_fini(&got);
	reflector_fini(&r);
}

#define TELL(kind, ...)                                                                            \
	do {                                                                                       \
		static const struct row story[] = {__VA_ARGS__};                                   \
		tell(kind, story, sizeof(story) / sizeof(story[0]));                               \
	} while (0)

/* --- all is well ------------------------------------------------------------------------------ */

static void watch_goes_on_where_the_list_was(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SERVED(0, "v1", LIST_0), OPENED(0.1, "begin"),
	     PAGE(2, "100", NULL, "end; synced; " WATCH("100")), OPENED(0.1, ""),
	     CHANGE(10, "107", ""), BOOKMARK(60, "250", ""), ENDED(390, WATCH("250")),
	     OPENED(0, ""), ENDED(450, WATCH("250")));
}

static void bookmarks_need_not_come(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, ENDED(450, WATCH("100")), OPENED(0, ""),
	     ENDED(450, WATCH("100")));
}

static void event_without_a_version_changes_none(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(1, NULL, ""), CHANGE(0, "", ""), ENDED(9, WATCH("100")));
}

static void pages_are_asked_for_one_by_one(void **state)
{
	(void)state;
	TELL(OBJECT_POD_DISRUPTION_BUDGET,
	     SERVED(0, "policy/v1beta1",
		    "GET /apis/policy/v1beta1/poddisruptionbudgets?limit=500&resourceVersion=0"),
	     OPENED(0, "begin"),
	     PAGE(0, "7", "a+/=",
		  "GET /apis/policy/v1beta1/poddisruptionbudgets?limit=500&"
		  "continue=a%2B%2F%3D"),
	     OPENED(0, ""),
	     PAGE(0, "7", "b",
		  "GET /apis/policy/v1beta1/poddisruptionbudgets?limit=500&continue=b"),
	     OPENED(0, ""),
	     PAGE(0, "7", NULL,
		  "end; synced; GET /apis/policy/v1beta1/poddisruptionbudgets?watch=1&"
		  "allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=450"));
}

static void ended_pods_are_left_out_by_the_server(void **state)
{
	(void)state;
#define PODS                                                                                       \
	"GET /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&"
	TELL(OBJECT_POD, SERVED(0, "v1", PODS "limit=500&resourceVersion=0"), OPENED(0, "begin"),
	     PAGE(0, "9", NULL,
		  "end; synced; " PODS "watch=1&allowWatchBookmarks=true&resourceVersion=9&"
		  "timeoutSeconds=450"));
}

/* --- versions that are gone ------------------------------------------------------------------- */

static void expired_list_is_asked_for_anew_in_pages(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(5, "120", ""),
	     FAULT(5, 410, "too old", "stale: the API answers 410: too old; wait 1.2"), TIME(1, ""),
	     TIME(0.2, "GET " NODES "resourceVersion=120"),
	     FAULT(0, 410, "too old", "GET " NODES "limit=500&resourceVersion="),
	     OPENED(0, "begin"), PAGE(0, "200", "t", "GET " NODES "limit=500&continue=t"),
	     OPENED(0, ""), PAGE(0, "200", NULL, "end; synced; " WATCH("200")), OPENED(0, ""),
	     /* That is over: the next list asks for what was seen. */
	     FAULT(500, 410, "", "stale: the API answers 410; wait 1.2"),
	     TIME(1.2, "GET " NODES "resourceVersion=200"), OPENED(0, "begin"),
	     PAGE(0, "300", NULL, "end; synced; " WATCH("300")));
}

static void expired_page_makes_one_list_of_all(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SERVED(0, "v1", LIST_0), OPENED(0, "begin"),
	     PAGE(0, "5", "t", "GET " NODES "limit=500&continue=t"),
	     FAULT(0, 410, "", "GET " NODES "resourceVersion=0"), OPENED(0, "begin"),
	     PAGE(0, "9", NULL, "end; synced; " WATCH("9")), OPENED(0, ""),
	     /* Later lists have pages again. */
	     FAULT(9, 410, "", "stale: the API answers 410; wait 1.2"),
	     TIME(1.2, "GET " NODES "resourceVersion=9"),
	     FAULT(0, 410, "", "GET " NODES "limit=500&resourceVersion="));
}

static void nothing_that_expires_makes_a_loop(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SERVED(0, "v1", LIST_0),
	     FAULT(0, 410, "", "GET " NODES "limit=500&resourceVersion="),
	     FAULT(0, 410, "", "listing: the API answers 410; wait 1.2"),
	     TIME(1.2, "GET " NODES "limit=500&resourceVersion="), FAULT(0, 410, "", "wait 2.4"));
}

static void version_newer_than_the_server_is_given_up(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(1, "900", ""),
	     FAULT(9, 410, "", "stale: the API answers 410; wait 1.2"),
	     TIME(1.2, "GET " NODES "resourceVersion=900"),
	     {.after_s = 0,
	      .type = REFLECTOR_FAULT,
	      .version = "Too large resource version",
	      .code = 504,
	      .unavailable = true,
	      .want = "GET " NODES "limit=500&resourceVersion="},
	     OPENED(0, "begin"), PAGE(0, "30", NULL, "end; synced; " WATCH("30")));
}

static void list_without_a_version_cannot_be_watched(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SERVED(0, "v1", LIST_0), OPENED(0, "begin"),
	     PAGE(0, NULL, NULL,
		  "listing: the list has no resourceVersion to watch from; wait 1.2"),
	     TIME(1.2, LIST_0));
}

/* --- servers in trouble ----------------------------------------------------------------------- */

static void refused_watch_is_opened_again_without_a_list(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(5, "120", ""), ENDED(5, WATCH("120")),
	     FAULT(0, 0, REFUSED, "stale: " REFUSED "; wait 1.2"), TIME(1.2, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 2.4"), TIME(2.4, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 4.8"), TIME(4.8, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 9.6"), TIME(9.6, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 19.2"), TIME(19.2, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 38.4"), TIME(38.4, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 45.0"), TIME(45, WATCH("120")),
	     FAULT(0, 0, REFUSED, "wait 45.0"), TIME(45, WATCH("120")), OPENED(0, "synced"),
	     /* Two healthy minutes make the next wait the first again; less does not. */
	     CHANGE(1, "121", ""), ENDED(60, WATCH("121")),
	     FAULT(0, 0, REFUSED, "stale: " REFUSED "; wait 45.0"), TIME(45, WATCH("121")),
	     OPENED(0, "synced"), CHANGE(1, "122", ""), ENDED(119, WATCH("122")),
	     FAULT(0, 0, REFUSED, "stale: " REFUSED "; wait 1.2"));
}

static void failing_list_is_begun_again(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SERVED(0, "v1", LIST_0),
	     FAULT(0, 0, REFUSED, "listing: " REFUSED "; wait 1.2"), TIME(1.2, LIST_0),
	     OPENED(0, "begin"), PAGE(0, "5", "t", "GET " NODES "limit=500&continue=t"),
	     FAULT(0, 0, "cut", "listing: cut; wait 2.4"), TIME(2.4, LIST_0), OPENED(0, "begin"),
	     FAULT(0, 503, "starting", "listing: the API answers 503: starting; wait 4.8"),
	     TIME(4.8, LIST_0), OPENED(0, "begin"), PAGE(0, "9", NULL, "end; synced; " WATCH("9")));
}

static void busy_server_is_left_alone_as_long_as_it_asks(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(1, "7", ""),
	     {.after_s = 0,
	      .type = REFLECTOR_FAULT,
	      .version = "slow down",
	      .code = 429,
	      .retry_after_s = 17,
	      .want = "stale: the API answers 429: slow down; wait 17.0"},
	     TIME(17, WATCH("7")),
	     {.after_s = 0,
	      .type = REFLECTOR_FAULT,
	      .version = "slow down",
	      .code = 429,
	      .retry_after_s = 1,
	      .want = "wait 2.4"},
	     TIME(2.4, WATCH("7")),
	     {.after_s = 0,
	      .type = REFLECTOR_FAULT,
	      .version = "slow down",
	      .code = 429,
	      .retry_after_s = 1e9,
	      .want = "wait 300.0"},
	     TIME(300, WATCH("7")), OPENED(0, "synced"));
}

static void server_errors_end_in_a_list(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(1, "7", ""),
	     FAULT(9, 500, "etcd", "stale: the API answers 500: etcd; wait 1.2"),
	     TIME(1.2, WATCH("7")), FAULT(0, 500, "etcd", "wait 2.4"), TIME(2.4, WATCH("7")),
	     FAULT(0, 500, "etcd", "wait 4.8"), TIME(4.8, WATCH("7")),
	     FAULT(0, 500, "etcd", "wait 9.6"), TIME(9.6, "GET " NODES "resourceVersion=7"),
	     OPENED(0, "begin"), PAGE(0, "8", NULL, "end; synced; " WATCH("8")), OPENED(0, ""),
	     FAULT(9, 500, "etcd", "stale: the API answers 500: etcd; wait 19.2"),
	     TIME(19.2, WATCH("8")));
}

static void error_nobody_understands_makes_a_list(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, CHANGE(1, "7", ""),
	     FAULT(9, 400, "what?", "stale: the API answers 400: what?; wait 1.2"),
	     TIME(1.2, "GET " NODES "resourceVersion=7"));
}

static void cut_watch_is_opened_at_once(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, FAULT(30, 0, "cut", WATCH("100")), OPENED(0, ""),
	     CHANGE(0.1, "101", ""), FAULT(0, 0, "cut", WATCH("101")), OPENED(0, ""),
	     FAULT(0.9, 0, "cut", "stale: cut; wait 1.2"), TIME(1.2, WATCH("101")));
}

static void watch_that_ends_at_once_is_an_error(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, ENDED(0.9, "stale: the API ends watches at once; wait 1.2"),
	     TIME(1.2, WATCH("100")), OPENED(0, "synced"), BOOKMARK(0.1, "101", ""),
	     ENDED(0.1, WATCH("101")), OPENED(0, ""), ENDED(1, WATCH("101")));
}

/* --- what we may not, or cannot, see ---------------------------------------------------------- */

static void forbidden_kind_names_the_rule_that_is_missing(void **state)
{
	(void)state;
	TELL(OBJECT_POD_DISRUPTION_BUDGET,
	     SERVED(0, "policy/v1",
		    "GET /apis/policy/v1/poddisruptionbudgets?limit=500&resourceVersion=0"),
	     FAULT(0, 403, "no",
		   "forbidden: the RBAC rule apiGroups: [\"policy\"], resources: "
		   "[\"poddisruptionbudgets\"], verbs: [get, list, watch] is missing (no); wait "
		   "60.0"),
	     TIME(60, "GET /apis/policy/v1/poddisruptionbudgets?limit=500&resourceVersion=0"),
	     FAULT(0, 403, "no", "wait 60.0"),
	     TIME(60, "GET /apis/policy/v1/poddisruptionbudgets?limit=500&resourceVersion=0"),
	     OPENED(0, "begin"),
	     PAGE(0, "9", NULL,
		  "end; synced; GET /apis/policy/v1/poddisruptionbudgets?watch=1&"
		  "allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=450"));
}

/*
 * Three refusals may be those of a server that does not know its roles yet; the fourth is believed.
 */
static void what_was_allowed_is_asked_for_again_before_it_is_forbidden(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SYNCED, FAULT(9, 403, "no", "stale: the API answers 403: no; wait 1.2"),
	     TIME(1.2, WATCH("100")), OPENED(0, "synced"),
	     FAULT(9, 403, "no", "stale: the API answers 403: no; wait 2.4"),
	     TIME(2.4, WATCH("100")), FAULT(0, 403, "no", "wait 4.8"), TIME(4.8, WATCH("100")),
	     FAULT(0, 403, "no", "wait 9.6"), TIME(9.6, WATCH("100")),
	     FAULT(0, 403, "no",
		   "forbidden: the RBAC rule apiGroups: [\"\"], resources: [\"nodes\"], verbs: "
		   "[get, list, watch] is missing (no); wait 60.0"),
	     TIME(60, "GET " NODES "resourceVersion=100"), OPENED(0, "begin"),
	     PAGE(0, "102", NULL, "end; synced; " WATCH("102")));
}

static void credentials_are_renewed_once_before_waiting(void **state)
{
	(void)state;
	TELL(OBJECT_NODE, SERVED(0, "v1", LIST_0), FAULT(0, 401, "who?", "renew; " LIST_0),
	     OPENED(0, "begin"), PAGE(0, "9", NULL, "end; synced; " WATCH("9")), OPENED(0, ""),
	     ENDED(450, WATCH("9")), FAULT(0, 401, "who?", "renew; " WATCH("9")),
	     FAULT(0, 401, "who?", "renew; stale: the API answers 401: who?; wait 1.2"),
	     TIME(1.2, WATCH("9")), FAULT(0, 401, "who?", "renew; wait 2.4"), TIME(2.4, WATCH("9")),
	     OPENED(0, "synced"), FAULT(9, 401, "who?", "renew; " WATCH("9")));
}

static void absent_kind_is_cleared_and_comes_back(void **state)
{
	(void)state;
#define QUOTAS "GET /apis/scheduling.x-k8s.io/v1alpha1/elasticquotas?"
	TELL(OBJECT_ELASTIC_QUOTA, UNSERVED(0, "absent: the API has no elasticquotas"),
	     UNSERVED(60, ""),
	     SERVED(60, "scheduling.x-k8s.io/v1alpha1",
		    "listing; " QUOTAS "limit=500&resourceVersion=0"),
	     OPENED(0, "begin"),
	     PAGE(0, "9", NULL,
		  "end; synced; " QUOTAS "watch=1&allowWatchBookmarks=true&resourceVersion=9&"
		  "timeoutSeconds=450"),
	     OPENED(0, ""),
	     /* Whether it is gone is for discovery to say. */
	     FAULT(9, 404, "", "stale: the API answers 404"),
	     UNSERVED(1, "clear; absent: the API has no elasticquotas"), UNSERVED(60, ""));
	TELL(OBJECT_NODE, SYNCED, FAULT(9, 404, "", "stale: the API answers 404"),
	     {.after_s = 1,
	      .type = REFLECTOR_UNDISCOVERED,
	      .version = REFUSED,
	      .want = "stale: " REFUSED},
	     SERVED(9, "v1", "GET " NODES "resourceVersion=100"), OPENED(0, "begin"),
	     PAGE(0, "102", NULL, "end; synced; " WATCH("102")));
}

/* Readiness, which waits for the first lists of all kinds, is not lost in an outage. */
static void absent_and_forbidden_kinds_stay_so_in_an_outage(void **state)
{
	(void)state;
	TELL(OBJECT_ELASTIC_QUOTA, UNSERVED(0, "absent: the API has no elasticquotas"),
	     {.after_s = 4,
	      .type = REFLECTOR_UNDISCOVERED,
	      .version = REFUSED,
	      .want = "absent: " REFUSED},
	     UNSERVED(60, "absent: the API has no elasticquotas"));
	TELL(OBJECT_NODE,
	     {.after_s = 0,
	      .type = REFLECTOR_UNDISCOVERED,
	      .version = "no",
	      .code = 403,
	      .want = "forbidden: the ClusterRole system:discovery is missing: the API does not "
		      "tell "
		      "what it serves"},
	     {.after_s = 60,
	      .type = REFLECTOR_UNDISCOVERED,
	      .version = REFUSED,
	      .want = "forbidden: " REFUSED});
}

static void what_discovery_cannot_tell_is_said(void **state)
{
	(void)state;
	TELL(OBJECT_NODE,
	     {.after_s = 0,
	      .type = REFLECTOR_UNDISCOVERED,
	      .version = REFUSED,
	      .want = "listing: " REFUSED},
	     {.after_s = 9,
	      .type = REFLECTOR_UNDISCOVERED,
	      .version = "no",
	      .code = 403,
	      .want = "forbidden: the ClusterRole system:discovery is missing: the API does not "
		      "tell "
		      "what it serves"},
	     SERVED(9, "v1", LIST_0), SERVED(9, "v1", ""), UNSERVED(9, ""));
}

/* --- what is counted -------------------------------------------------------------------------- */

static void source_counts_lists_faults_and_times(void **state)
{
	struct reflector r;
	struct kube_status status;
	struct reflector_event e = {.version = "v1", .status = &status};
	static const struct {
		enum reflector_event_type type;
		int64_t at;
	} events[] = {{REFLECTOR_SERVED, 1}, {REFLECTOR_OPENED, 2}, {REFLECTOR_PAGE, 3},
		      {REFLECTOR_OPENED, 4}, {REFLECTOR_CHANGE, 5}, {REFLECTOR_BOOKMARK, 6},
		      {REFLECTOR_FAULT, 20}, {REFLECTOR_TIME, 50},  {REFLECTOR_OPENED, 51},
		      {REFLECTOR_PAGE, 52}};

	(void)state;
	kube_status_set(&status, 410, "");
	reflector_init(&r, OBJECT_NODE, kube_timing_usual(), half);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		e.type = events[i].type;
		e.now_ns = events[i].at * NS_PER_SEC;
		e.wall_ns = 1000 + events[i].at;
		reflector_step(&r, &e);
		if (e.type == REFLECTOR_FAULT)
			assert_int_equal(r.source.changed_ns, 1020);
	}
	assert_int_equal(r.source.relists, 1);
	assert_int_equal(r.source.watch_errors, 1);
	assert_int_equal(r.source.event_ns, 1006);
	assert_int_equal(r.source.changed_ns, 1052);
	assert_string_equal(r.source.api_version, "v1");
	reflector_fini(&r);
}

static void status_is_read_from_what_servers_send(void **state)
{
	static const struct {
		int code;
		const char *body;
		int want_code;
		bool unavailable;
		double retry_after_s;
		const char *message;
	} cases[] = {
		{410,
		 "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old "
		 "resource version: 1 (9)\"}",
		 410, true, 0, "too old resource version: 1 (9)"},
		{504,
		 "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"Timeout: "
		 "x\",\"details\":{\"retryAfterSeconds\":1,\"causes\":[{\"reason\":"
		 "\"ResourceVersionTooLarge\",\"message\":\"y\"}]}}",
		 504, true, 1, "Timeout: x"},
		{504,
		 "{\"kind\":\"Status\",\"message\":\"Too large resource version: 9, current: 1\"}",
		 504, true, 0, "Too large resource version: 9, current: 1"},
		{504, "{\"kind\":\"Status\",\"message\":\"gateway\"}", 504, false, 0, "gateway"},
		{403, "{\"kind\":\"Status\",\"code\":200,\"reason\":\"Forbidden\"}", 403, false, 0,
		 "Forbidden"},
		{429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":-5}}", 429, false, 0,
		 ""},
		{429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":1e300}}", 429, false,
		 300, ""},
		{502, "<html>bad\ngateway</html>", 502, false, 0, ""},
		{500, "{\"kind\":\"Status\",\"message\":\"a\\nb\\u001b[1m\"}", 500, false, 0,
		 "a b [1m"},
		{500, "", 500, false, 0, ""},
		{500, "{\"kind\":[],\"message\":1}", 500, false, 0, ""},
	};
	struct kube_status s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kube_status_parse(&s, cases[i].code, cases[i].body, strlen(cases[i].body));
		assert_int_equal(s.code, cases[i].want_code);
		assert_int_equal(s.version_unavailable, cases[i].unavailable);
		assert_int_equal(s.retry_after_ns, cases[i].retry_after_s * 1e9);
		assert_string_equal(s.message, cases[i].message);
	}
}

static void status_of_an_event_has_its_own_code(void **state)
{
	cJSON *json = cJSON_Parse("{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
	cJSON *bare = cJSON_Parse("{\"reason\":\"Expired\"}");
	struct kube_status s;

	(void)state;
	kube_status_set(&s, 400, "");
	kube_status_read(&s, json);
	assert_int_equal(s.code, 410);
	assert_true(s.version_unavailable);
	kube_status_set(&s, 400, "");
	kube_status_read(&s, bare);
	assert_int_equal(s.code, 410);
	cJSON_Delete(json);
	cJSON_Delete(bare);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch_goes_on_where_the_list_was),
		cmocka_unit_test(bookmarks_need_not_come),
		cmocka_unit_test(event_without_a_version_changes_none),
		cmocka_unit_test(pages_are_asked_for_one_by_one),
		cmocka_unit_test(ended_pods_are_left_out_by_the_server),
		cmocka_unit_test(expired_list_is_asked_for_anew_in_pages),
		cmocka_unit_test(expired_page_makes_one_list_of_all),
		cmocka_unit_test(nothing_that_expires_makes_a_loop),
		cmocka_unit_test(version_newer_than_the_server_is_given_up),
		cmocka_unit_test(list_without_a_version_cannot_be_watched),
		cmocka_unit_test(refused_watch_is_opened_again_without_a_list),
		cmocka_unit_test(failing_list_is_begun_again),
		cmocka_unit_test(busy_server_is_left_alone_as_long_as_it_asks),
		cmocka_unit_test(server_errors_end_in_a_list),
		cmocka_unit_test(error_nobody_understands_makes_a_list),
		cmocka_unit_test(cut_watch_is_opened_at_once),
		cmocka_unit_test(watch_that_ends_at_once_is_an_error),
		cmocka_unit_test(forbidden_kind_names_the_rule_that_is_missing),
		cmocka_unit_test(what_was_allowed_is_asked_for_again_before_it_is_forbidden),
		cmocka_unit_test(credentials_are_renewed_once_before_waiting),
		cmocka_unit_test(absent_kind_is_cleared_and_comes_back),
		cmocka_unit_test(absent_and_forbidden_kinds_stay_so_in_an_outage),
		cmocka_unit_test(what_discovery_cannot_tell_is_said),
		cmocka_unit_test(source_counts_lists_faults_and_times),
		cmocka_unit_test(status_is_read_from_what_servers_send),
		cmocka_unit_test(status_of_an_event_has_its_own_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
