/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: what is streamed, what is read again, and that both answer alike. "Live" is a view as
 * the aggregator has it, "read" the same out of its snapshot, or out of the parts that kubectl and
 * curl would have printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/api/snapshot.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/cluster_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

static const struct {
	const char *method, *target, *body;
} requests[] = {
	{"GET", "/v1/nodes", ""},
	{"GET", "/v1/nodes?sort=cpu&limit=3", ""},
	{"GET", "/v1/nodes/alpha", ""},
	{"GET", "/v1/nodes/lima", ""},
	{"GET", "/v1/pods?peaks=true", ""},
	{"GET", "/v1/pods?sort=memory", ""},
	{"GET", "/v1/pods?namespace=shop&labelSelector=app=web", ""},
	{"POST", "/v1/scores", "{}"},
	{"POST", "/v1/scores",
	 "{\"explain\":true,\"plugins\":[\"TargetLoadPacking\",\"LimitAware\"]}"},
	{"POST", "/v1/scores",
	 "{\"variant\":\"upstream\",\"pod\":{\"spec\":{\"containers\":[{\"resources\":{"
	 "\"requests\":"
	 "{\"cpu\":\"500m\"}}}]}}}"},
	{"GET", "/watcher", ""},
};

enum { REQUESTS = sizeof(requests) / sizeof(requests[0]) };

/* The body of the fixture's last answer; the caller frees it. */
static char *body_of(const struct api_fixture *f)
{
	return mem_strdup(f->response.body.data ? f->response.body.data : "");
}

static char *ask(struct api_fixture *f, size_t i)
{
	api_fixture_send(f, requests[i].method, requests[i].target, requests[i].body);
	return body_of(f);
}

/* Takes the view over; the caller frees the text. */
static char *snapshot_of(struct view *v)
{
	struct api_fixture f;
	char *text;

	api_fixture_open(&f, v);
	assert_int_equal(api_fixture_get(&f, "/v1/snapshot"), 200);
	assert_non_null(f.json);
	text = body_of(&f);
	api_fixture_close(&f);
	return text;
}

/* What is read of one file, and of measurements unless NULL. */
static struct view *read_view(const char *text, const char *usage, int64_t *now_ns)
{
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	struct view *v = NULL;
	int rc = snapshot_add(s, "a.json", text, strlen(text), &error);

	if (!rc && usage)
		rc = snapshot_add_usage(s, "u.json", usage, strlen(usage), &error);
	if (!rc)
		rc = snapshot_view(s, &v, now_ns, &error);
	if (rc)
		fail_msg("%s", error.text);
	if (snapshot_notes(s)->text.len)
		fail_msg("%s", snapshot_notes(s)->text.data);
	snapshot_free(s);
	return v;
}

/* Takes both over. */
static void check_same_answers(struct view *live, struct view *read)
{
	struct api_fixture a, b;

	api_fixture_open(&a, live);
	api_fixture_open(&b, read);
	for (size_t i = 0; i < REQUESTS; i++) {
		char *x = ask(&a, i), *y = ask(&b, i);

		if (strcmp(x, y) != 0)
			fail_msg("%s %s:\n%s\n%s", requests[i].method, requests[i].target, x, y);
		assert_int_equal(a.response.status, b.response.status);
		free(x);
		free(y);
	}
	api_fixture_close(&a);
	api_fixture_close(&b);
}

typedef struct view *make_view(void);

static void check_view(make_view *make)
{
	char *text = snapshot_of(make()), *again;
	int64_t now_ns = 0;
	struct view *v = read_view(text, NULL, &now_ns);

	assert_true(now_ns == NOW);
	again = snapshot_of(view_hold(v));
	check_same_answers(make(), v);
	v = read_view(again, NULL, &now_ns);
	free(text);
	/* What was in sync is "snapshot" once it was read; from then on nothing changes. */
	text = snapshot_of(v);
	assert_string_equal(text, again);
	free(text);
	free(again);
}

/* What workloads used before is in the snapshot, and in what is read of it. */
static void test_remembers_workloads(void **state)
{
	static const char tail[] =
		"\"state\":{\"workloads\":[{\"key\":\"shop/Deployment/web\",\"cpuMillicores\":"
		"70.5,\"cpuP95Millicores\":90,\"workingSetBytes\":5,\"seen\":%lld}]}}\n";
	char *text = snapshot_of(cluster_fixture_new()), *with, *state_text, *again, *at;
	struct error why = {""};
	struct snapshot *s = snapshot_new();
	int64_t now_ns = 0;
	struct view *v;

	(void)state;
	state_text = mem_printf(tail, (long long)(NOW / 1000000000));
	at = strstr(text, "\"state\":{}}");
	assert_non_null(at);
	with = mem_printf("%.*s%s", (int)(at - text), text, state_text);
	v = read_view(with, NULL, &now_ns);
	assert_true(view_workload(v, "shop/Deployment/web")->cpu_milli == 70.5);
	again = snapshot_of(v);
	assert_non_null(strstr(again, state_text));
	free(again);
	/* What is wrong is told with its place. */
	at = strstr(with, "70.5");
	*at = '-';
	assert_int_equal(snapshot_add(s, "a.json", with, strlen(with), &why), -EINVAL);
	assert_non_null(strstr(why.text, "state.workloads[0]: "));
	snapshot_free(s);
	free(with);
	free(text);
	free(state_text);
}

static void test_answers_as_live(void **state)
{
	(void)state;
	check_view(cluster_fixture_new);
	check_view(view_fixture_new);
}

/* A pod that could not be read, of which its node is known. */
static struct view *with_unreadable(void)
{
	struct model_source source = {.state = SOURCE_SYNCED, .changed_ns = NOW, .skipped = 1};
	struct model *m = model_new();
	struct view *v;

	unreadables_put(&source.unreadable, "shop", "odd", "n1", "spec.x: must not be negative");
	model_set_source(m, OBJECT_POD, &source);
	v = view_new(1, NOW, NULL, 0, model_cluster(m), NULL);
	model_free(m);
	return v;
}

static void test_unreadable_are_told(void **state)
{
	char *text = snapshot_of(with_unreadable());
	const struct unreadables *u;
	struct view *v;
	int64_t now_ns;

	(void)state;
	v = read_view(text, NULL, &now_ns);
	u = &v->cluster->sources[OBJECT_POD].unreadable;
	assert_int_equal(u->count, 1);
	assert_string_equal(u->of[0].name, "odd");
	assert_string_equal(u->of[0].node, "n1");
	assert_string_equal(u->of[0].why, "spec.x: must not be negative");
	view_drop(v);
	free(text);
}

static struct view *nothing(void)
{
	return view_new(1, NOW, NULL, 0, NULL, NULL);
}

static void test_nothing_at_all(void **state)
{
	static const char want[] = "{\"apiVersion\":\"evenkeel.io/"
				   "v1\",\"kind\":\"Snapshot\",\"time\":\"2026-01-31T12:00:00Z\","
				   "\"list\":{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[]}"
				   ",\"usage\":{\"apiVersion\":"
				   "\"evenkeel.io/"
				   "v2\",\"kind\":\"Usage\",\"time\":\"2026-01-31T12:00:00Z\","
				   "\"nodes\":[],\"pods\":[]},"
				   "\"state\":{}}\n";
	char *text = snapshot_of(nothing());

	(void)state;
	assert_string_equal(text, want);
	free(text);
	check_view(nothing);
}

/* --- the parts, as people get them ------------------------------------------------------------ */

static cJSON *parse(const char *text)
{
	cJSON *json = cJSON_Parse(text);

	assert_non_null(json);
	return json;
}

/* Reverses a list: an order as good as any. */
static void reverse(cJSON *list)
{
	cJSON *reversed = cJSON_CreateArray();

	while (list->child)
		cJSON_AddItemToArray(reversed,
				     cJSON_DetachItemFromArray(list, cJSON_GetArraySize(list) - 1));
	while (reversed->child)
		cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(reversed, 0));
	cJSON_Delete(reversed);
}

/* A member's text, without its name; the caller frees it. */
static char *member_text(const cJSON *json, const char *name)
{
	char *printed = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(json, name));
	char *text = mem_strdup(printed);

	cJSON_free(printed);
	return text;
}

/*
 * A dump and measurements from two files answer as the Snapshot they are parts of, in any order of
 * items.
 */
static void test_parts_in_any_order(void **state)
{
	char *text = snapshot_of(cluster_fixture_new()), *list, *usage;

	(void)state;
	for (int reversed = 0; reversed < 2; reversed++) {
		cJSON *json = parse(text);
		int64_t now_ns = 0;

		if (reversed) {
			reverse((cJSON *)api_fixture_at(json, "list.items"));
			reverse((cJSON *)api_fixture_at(json, "usage.nodes"));
			reverse((cJSON *)api_fixture_at(json, "usage.pods"));
			reverse((cJSON *)api_fixture_at(json, "usage"));
			reverse((cJSON *)api_fixture_at(json, "list"));
		}
		list = member_text(json, "list");
		usage = member_text(json, "usage");
		check_same_answers(cluster_fixture_new(), read_view(list, usage, &now_ns));
		assert_true(now_ns == NOW);
		free(list);
		free(usage);
		cJSON_Delete(json);
	}
	free(text);
}

/*
 * The same as YAML, as one document for each object, and as lists of one kind without kinds of
 * their own.
 */
static void test_forms_of_a_dump(void **state)
{
	char *text = snapshot_of(cluster_fixture_new());
	cJSON *json = parse(text);
	const cJSON *items = api_fixture_at(json, "list.items"), *item;
	char *usage = member_text(json, "usage"), *list = member_text(json, "list");
	char *yaml = mem_printf("# a comment\n%s", list), *bom = mem_printf("\xEF\xBB\xBF%s", list);
	struct buf documents = BUF_INIT;
	int64_t now_ns = 0;

	(void)state;
	buf_add_str(&documents, "\n");
	cJSON_ArrayForEach (item, items) {
		char *printed = cJSON_Print(item);

		buf_printf(&documents, "---\n%s\n", printed);
		cJSON_free(printed);
	}
	check_same_answers(cluster_fixture_new(), read_view(yaml, usage, &now_ns));
	check_same_answers(cluster_fixture_new(), read_view(bom, usage, &now_ns));
	check_same_answers(cluster_fixture_new(), read_view(documents.data, usage, &now_ns));
	buf_fini(&documents);
	free(bom);
	free(yaml);
	free(list);
	free(usage);
	cJSON_Delete(json);
	free(text);
}

static void test_typed_list(void **state)
{
	static const char list[] = "{\"items\":[{\"metadata\":{\"name\":\"b\",\"namespace\":\"x\"},"
				   "\"spec\":{\"nodeName\":"
				   "\"n\",\"containers\":[]}},{\"metadata\":{\"name\":\"a\","
				   "\"namespace\":\"x\"},\"spec\":{"
				   "\"containers\":[]}}],\"metadata\":{\"resourceVersion\":\"7\"},"
				   "\"kind\":\"PodList\","
				   "\"apiVersion\":\"v1\"}";
	struct api_fixture f;
	int64_t now_ns = 0;

	(void)state;
	api_fixture_open(&f, read_view(list, NULL, &now_ns));
	assert_true(now_ns == 0);
	assert_int_equal(api_fixture_get(&f, "/v1/pods"), 200);
	assert_string_equal(api_fixture_names(&f), "a b");
	api_fixture_close(&f);
}

/* --- the moment of a dump --------------------------------------------------------------------- */

static void test_newest_time(void **state)
{
	static const char dump[] =
		"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Node\","
		"\"apiVersion\":"
		"\"v1\",\"metadata\":{\"name\":\"n\",\"creationTimestamp\":\"2026-01-01T00:00:"
		"00Z\"},"
		"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
		"\"lastHeartbeatTime\":"
		"\"2026-01-31T12:00:00Z\",\"lastTransitionTime\":\"2026-01-02T00:00:00Z\"}]}},"
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\","
		"\"namespace\":"
		"\"d\"},\"spec\":{\"containers\":[]},\"status\":{\"startTime\":\"2026-01-30T00:00:"
		"00Z\"}}]}";
	static const char usage[] = "{\"apiVersion\":\"evenkeel.io/"
				    "v2\",\"kind\":\"Usage\",\"time\":\"2025-01-01T00:00:00Z\","
				    "\"nodes\":[],\"pods\":[]}";
	int64_t now_ns = 0;

	(void)state;
	view_drop(read_view(dump, NULL, &now_ns));
	assert_true(now_ns == NOW);
	view_drop(read_view(dump, usage, &now_ns));
	assert_true(now_ns == 1735689600 * NS_PER_SEC);
}

/* --- what a load watcher answers -------------------------------------------------------------- */

static double number(const struct api_fixture *f, const char *path)
{
	const cJSON *item = api_fixture_at(f->json, path);

	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Our own answer gives back what it said, within its six decimals, and the same fallback levels. */
static void test_own_watcher(void **state)
{
	struct view *live = cluster_fixture_new(), *v;
	char *text = snapshot_of(view_hold(live)), *list, *answer;
	cJSON *json = parse(text);
	struct api_fixture a, b;
	int64_t now_ns = 0;

	(void)state;
	api_fixture_open(&a, live);
	assert_int_equal(api_fixture_get(&a, "/watcher/alpha"), 200);
	answer = body_of(&a);
	list = member_text(json, "list");
	v = read_view(list, answer, &now_ns);
	assert_true(now_ns == NOW);
	api_fixture_open(&b, v);
	assert_int_equal(api_fixture_get(&a, "/v1/nodes/alpha"), 200);
	assert_int_equal(api_fixture_get(&b, "/v1/nodes/alpha"), 200);
	for (int k = 0; k < 4; k++) {
		static const char *const paths[] = {"usage.cpuMillicores.windows.15m.mean",
						    "usage.cpuMillicores.windows.15m.stddev",
						    "usage.memoryBytes.windows.15m.mean",
						    "source.ageSeconds"};
		double x = number(&a, paths[k]), y = number(&b, paths[k]);

		if (!(fabs(x - y) <= 1e-6 * fabs(x) + 0.001))
			fail_msg("%s: %f and %f", paths[k], x, y);
	}
	assert_null(api_fixture_at(b.json, "usage.cpuMillicores.windows.15m.p95"));
	assert_null(api_fixture_at(b.json, "usage.cpuMillicores.windows.15m.min"));
	assert_null(api_fixture_at(b.json, "usage.cpuMillicores.windows.15m.max"));
	assert_null(api_fixture_at(b.json, "usage.cpuMillicores.windows.5m"));
	assert_null(api_fixture_at(b.json, "source.tier"));
	assert_null(api_fixture_at(b.json, "source.runId"));
	assert_int_equal(api_fixture_send(&b, "POST", "/v1/scores", "{\"nodes\":[\"alpha\"]}"),
			 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(b.json, "items.0.plugins.0.rung")),
			    "window 15m");
	api_fixture_close(&a);
	api_fixture_close(&b);
	free(answer);
	free(list);
	cJSON_Delete(json);
	free(text);
}

/* --- streaming -------------------------------------------------------------------------------- */

static const char *no_parameter(const struct api_request *rq, const char *const *known)
{
	(void)known;
	return rq->connection;
}

/* However large the cluster is, a piece is not; and who stops early leaves nothing behind. */
static void test_pieces_are_bounded(void **state)
{
	struct api_fixture f;
	struct api_request rq = {.method = "GET",
				 .path = "/v1/snapshot",
				 .query_other = no_parameter};
	struct buf piece = BUF_INIT;
	size_t pieces = 0;

	(void)state;
	api_fixture_open(&f, cluster_fixture_large(40, 100));
	for (int early = 0; early < 2; early++) {
		struct api_response rs = {.status = 200};

		api_route(&f.ctx, &rq, &rs);
		assert_non_null(rs.stream);
		/* The view that it is made of is its own to keep. */
		view_slot_publish(f.ctx.views, cluster_fixture_large(40, 100));
		while (rs.stream->next(rs.stream, &piece)) {
			assert_true(piece.len < 80 << 10);
			buf_clear(&piece);
			pieces++;
			if (early)
				break;
		}
		rs.stream->free(rs.stream);
	}
	assert_true(pieces > 10);
	buf_fini(&piece);
	api_fixture_close(&f);
}

static void test_takes_no_parameters(void **state)
{
	struct api_fixture f;

	(void)state;
	api_fixture_open(&f, view_fixture_new());
	assert_int_equal(api_fixture_get(&f, "/v1/snapshot?node=alpha"), 400);
	assert_string_equal(http_fixture_error_field(&f), "node");
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/snapshot", ""), 405);
	assert_int_equal(api_fixture_send(&f, "HEAD", "/v1/snapshot", ""), 200);
	api_fixture_close(&f);
}

/* Objects in the order of their kinds, then of namespaces and names, wherever their nodes are. */
static void test_order(void **state)
{
	static const char want[] =
		"Node alpha, Node bravo, Node lima, ReplicaSet shop/web-7d9, Pod batch/done, Pod "
		"batch/tiny, "
		"Pod db/pg-0, Pod kube-system/dns, Pod shop/wait, Pod shop/web-1, Pod shop/web-2, ";
	char *text = snapshot_of(cluster_fixture_new());
	cJSON *json = parse(text);
	struct buf got = BUF_INIT;
	const cJSON *item;

	(void)state;
	cJSON_ArrayForEach (item, api_fixture_at(json, "list.items")) {
		const char *namespace =
			cJSON_GetStringValue(api_fixture_at(item, "metadata.namespace"));

		buf_printf(&got, "%s %s%s%s, ", cJSON_GetStringValue(api_fixture_at(item, "kind")),
			   namespace ? namespace : "", namespace ? "/" : "",
			   cJSON_GetStringValue(api_fixture_at(item, "metadata.name")));
	}
	assert_string_equal(got.data, want);
	/* A node that no agent ever told of has no use to tell. */
	buf_clear(&got);
	cJSON_ArrayForEach (item, api_fixture_at(json, "usage.nodes")) {
		buf_printf(&got, "%s ", cJSON_GetStringValue(api_fixture_at(item, "name")));
	}
	assert_string_equal(got.data, "alpha bravo stray ");
	buf_fini(&got);
	cJSON_Delete(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_as_live),
		cmocka_unit_test(test_remembers_workloads),
		cmocka_unit_test(test_unreadable_are_told),
		cmocka_unit_test(test_nothing_at_all),
		cmocka_unit_test(test_parts_in_any_order),
		cmocka_unit_test(test_forms_of_a_dump),
		cmocka_unit_test(test_typed_list),
		cmocka_unit_test(test_newest_time),
		cmocka_unit_test(test_own_watcher),
		cmocka_unit_test(test_pieces_are_bounded),
		cmocka_unit_test(test_takes_no_parameters),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
