/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do pods with resource claims fit where the kube-scheduler says they do? As tests/kube/fit.c: the
 * scheduler offers the nodes that its filters leave to a witness, which refuses them all, and POST
 * /v1/fit must accept exactly these. Unknown is allowed for parts of claims and slices that are not
 * judged alone: the world knows which pods ask for such parts, and which nodes have such slices.
 *
 * EVENKEEL_SEED chooses another world; an odd one has incomplete pools, so that no request of all
 * devices is judged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/kube_witness.h"
#include "tests/place_world.h"
#include "tests/place_world_spec.h"
#include "tests/process.h"
#include "tests/stack.h"

#define RESOURCE   "/apis/resource.k8s.io/v1"
#define NAMESPACED RESOURCE "/namespaces/one/"
enum { NODES = 40, ASKED = 160, ALLOCATED = 14, FREE = 12, JUDGE_SECONDS = 120, SHOWN = 12 };

static struct kube_testbed *bed;
static struct kube_witness *witness;
static struct place_world dice; /* only its random numbers */
static bool odd_seed, odd_pod, odd_node[NODES]; /* odd_pod: that is being written */
static size_t devices_of[NODES]; /* in the pool of gpu.io */
static cJSON *pods;

#define ANY(...) PICK(&dice, __VA_ARGS__)

static bool chance(unsigned int percent)
{
	return place_world_chance(&dice, percent);
}

static size_t draw(size_t n)
{
	return place_world_draw(&dice, n);
}

static void post(const char *path, struct buf *body)
{
	control_plane_must(bed->plane, "POST", path, body->data);
	buf_fini(body);
}

/* --- nodes, slices and classes --------------------------------------------------------------- */

static void make_node(size_t n)
{
	char *path = mem_printf("/api/v1/nodes/n%02zu/status", n);
	struct buf b = BUF_INIT;

	buf_printf(&b, "{\"metadata\":{\"name\":\"n%02zu\",\"labels\":{\"zone\":\"%s\"}}}", n,
		   ANY("a", "b", "c"));
	post("/api/v1/nodes", &b);
	control_plane_must(bed->plane, "PATCH", path,
			   "{\"status\":{\"capacity\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":"
			   "\"110\"},\"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":"
			   "\"110\"}}}");
	free(path);
}

static void make_slice(const char *name, const char *driver, const char *pool, const char *where,
		       int generation, int count, const struct buf *devices)
{
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"%s\",\"pool\":{\"name\":"
		   "\"%s\",\"generation\":%d,\"resourceSliceCount\":%d},%s,\"devices\":[%s]}}",
		   name, driver, pool, generation, count, where, devices->data);
	post(RESOURCE "/resourceslices", &b);
}

static void write_devices(struct buf *b, size_t first, size_t count, const char *more)
{
	buf_clear(b);
	buf_add_str(b, "");
	for (size_t i = 0; i < count; i++)
		buf_printf(b,
			   "%s{\"name\":\"d%zu\",\"attributes\":{\"model\":{\"string\":\"%s\"},"
			   "\"cores\":{\"int\":%s},\"%sfast\":{\"bool\":%s}}%s}",
			   i ? "," : "", first + i, ANY("x", "x", "y"), ANY("4", "8"),
			   ANY("", "gpu.io/"), ANY("true", "false"), more);
}

/* A pool of the node: in one slice or two, beside older ones, or incomplete. */
static void make_gpus(size_t n)
{
	size_t count = devices_of[n] = draw(5), first = chance(30) && count > 1 ? 1 : count;
	char *name = mem_printf("gpu-n%02zu", n), *second = mem_printf("gpu-n%02zu-b", n);
	char *old = mem_printf("gpu-n%02zu-old", n);
	char *where = mem_printf("\"nodeName\":\"n%02zu\"", n);
	bool incomplete = odd_seed && chance(10);
	int slices = 1 + (first < count) + incomplete;
	struct buf b = BUF_INIT;

	write_devices(&b, 0, first, "");
	make_slice(name, "gpu.io", name, where, 2, slices, &b);
	write_devices(&b, first, count - first, "");
	if (first < count)
		make_slice(second, "gpu.io", name, where, 2, slices, &b);
	write_devices(&b, 0, 6, "");
	if (chance(20))
		make_slice(old, "gpu.io", name, where, 1, 1, &b);
	odd_node[n] |= incomplete;
	buf_fini(&b);
	free(name);
	free(second);
	free(old);
	free(where);
}

/* A device that is tainted or shared, beside one that is not. */
static void make_odd(size_t n)
{
	char *name = mem_printf("odd-n%02zu", n), *where = mem_printf("\"nodeName\":\"n%02zu\"", n);
	const char *more = ANY(",\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]",
			       ",\"taints\":[{\"key\":\"k\",\"effect\":\"NoExecute\"}]",
			       ",\"taints\":[{\"key\":\"k\",\"effect\":\"None\"}]",
			       ",\"allowMultipleAllocations\":true");
	struct buf b = BUF_INIT;

	write_devices(&b, 0, 1, more);
	make_slice(name, "odd.io", name, where, 1, 1, &b);
	odd_node[n] |= !strstr(more, "None");
	buf_fini(&b);
	free(name);
	free(where);
}

static void make_shared(void)
{
	static const char *const zones[] = {"a", "b"};
	struct buf b = BUF_INIT;

	for (int i = 0; i < 2; i++) {
		char *name = mem_printf("net-%s", zones[i]);
		char *where = mem_printf("\"nodeSelector\":{\"nodeSelectorTerms\":[{"
					 "\"matchExpressions\":[{\"key\":\"zone\",\"operator\":"
					 "\"In\",\"values\":[\"%s\"]}]}]}",
					 zones[i]);

		write_devices(&b, 0, 3, "");
		make_slice(name, "net.io", name, where, 1, 1, &b);
		free(name);
		free(where);
	}
	write_devices(&b, 0, 2, "");
	make_slice("net-all", "all.io", "net-all", "\"allNodes\":true", 1, 1, &b);
	buf_fini(&b);
}

#define CEL(text) "{\"cel\":{\"expression\":\"" text "\"}}"
#define DRIVER(d) "device.driver == \\\"" d "\\\""
#define GPU	  "device.attributes[\\\"gpu.io\\\"]."

static void make_classes(void)
{
	static const char *const classes[] = {
		"\"gpu\"},\"spec\":{\"selectors\":[" CEL(DRIVER("gpu.io")) "]}}",
		"\"big\"},\"spec\":{\"selectors\":[" CEL(
			DRIVER("gpu.io") " && " GPU "model == \\\"y\\\"") "]}}",
		"\"fast\"},\"spec\":{\"selectors\":[" CEL(DRIVER("gpu.io")) "," CEL(
			GPU "fast == true") "]}}",
		"\"net\"},\"spec\":{\"selectors\":[" CEL(DRIVER("net.io")) "]}}",
		"\"all\"},\"spec\":{\"selectors\":[" CEL(
			DRIVER("all.io")) "],"
					  "\"extendedResourceName\":\"example.com/all\"}}",
		"\"odd\"},\"spec\":{\"selectors\":[" CEL(DRIVER("odd.io")) "]}}",
		"\"any\"},\"spec\":{}}",
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		struct buf b = BUF_INIT;

		buf_printf(&b, "{\"metadata\":{\"name\":%s", classes[i]);
		post(RESOURCE "/deviceclasses", &b);
	}
}

/* --- claims ---------------------------------------------------------------------------------- */

static void write_selectors(struct buf *b, const char *class)
{
	bool guarded = strcmp(class, "any") != 0;
	const char *text;

	if (!guarded || chance(60)) {
		if (!guarded && chance(70))
			buf_add_str(b, ",\"selectors\":[" CEL(DRIVER("gpu.io") " && " GPU
									       "cores == 8") "]");
		return;
	}
	text = ANY(CEL(GPU "model == \\\"y\\\""), CEL(GPU "model == \\\"x\\\""),
		   CEL(GPU "cores == 8"), CEL(GPU "fast == true"), CEL(GPU "fast == \\\"true\\\""),
		   CEL(GPU "cores == 4 && " GPU "model == \\\"x\\\""), CEL(GPU "cores > 4"),
		   CEL(GPU "memory == 1"));
	/* Devices of other drivers have other attributes. */
	odd_pod |= strstr(text, ">") || strstr(text, "memory") || strcmp(class, "net") == 0 ||
		   strcmp(class, "all") == 0 || strcmp(class, "odd") == 0;
	buf_printf(b, ",\"selectors\":[%s]", text);
}

static void write_request(struct buf *b, size_t i)
{
	const char *class =
		ANY("gpu", "gpu", "gpu", "gpu", "big", "fast", "net", "all", "any", "odd", "none");

	if (strcmp(class, "none") == 0 && chance(80))
		class = "gpu";
	buf_printf(b, "%s{\"name\":\"r%zu\",", i ? "," : "", i);
	if (chance(4)) {
		odd_pod = true;
		buf_printf(b, "\"firstAvailable\":[{\"name\":\"s\",\"deviceClassName\":\"%s\"}]}",
			   class);
		return;
	}
	buf_printf(b, "\"exactly\":{\"deviceClassName\":\"%s\"", class);
	write_selectors(b, class);
	if (chance(15)) {
		odd_pod |= odd_seed;
		buf_add_str(b, ",\"allocationMode\":\"All\"");
	} else if (chance(50)) {
		buf_printf(b, ",\"allocationMode\":\"ExactCount\",\"count\":%zu", 1 + draw(2));
	}
	buf_add_str(b, "}}");
}

/* {"devices":{..}} */
static void write_spec(struct buf *b)
{
	size_t count = 1 + draw(2);

	buf_add_str(b, "{\"devices\":{\"requests\":[");
	for (size_t i = 0; i < count; i++)
		write_request(b, i);
	buf_add_char(b, ']');
	if (chance(4)) {
		odd_pod = true;
		buf_add_str(b, ",\"constraints\":[{\"matchAttribute\":\"gpu.io/model\"}]");
	}
	buf_add_str(b, "}}");
}

static void make_free_claim(size_t i)
{
	struct buf b = BUF_INIT;

	/* Each pod may name it: without parts that are not judged. */
	buf_printf(&b,
		   "{\"metadata\":{\"name\":\"u%02zu\"},\"spec\":{\"devices\":{\"requests\":[{"
		   "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"%s\",\"allocationMode\":"
		   "\"ExactCount\",\"count\":%zu}}]}}}",
		   i, ANY("gpu", "gpu", "fast", "net"), 1 + draw(2));
	post(NAMESPACED "resourceclaims", &b);
}

/* Of the first devices of a node that no claim has, or of all.io. */
static void make_allocated_claim(size_t i)
{
	static bool taken[NODES];
	size_t n = draw(NODES), count;
	char *path = mem_printf(NAMESPACED "resourceclaims/a%02zu/status", i);
	struct buf b = BUF_INIT;

	while (taken[n] || !devices_of[n])
		n = draw(NODES);
	taken[n] = true;
	count = 1 + draw(devices_of[n]);
	buf_printf(&b,
		   "{\"metadata\":{\"name\":\"a%02zu\"},\"spec\":{\"devices\":{\"requests\":[{"
		   "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"gpu\",\"allocationMode\":"
		   "\"ExactCount\",\"count\":%zu}}]}}}",
		   i, count);
	post(NAMESPACED "resourceclaims", &b);
	buf_add_str(&b, "{\"status\":{\"allocation\":{\"devices\":{\"results\":[");
	for (size_t d = 0; d < count; d++)
		buf_printf(&b,
			   "%s{\"request\":\"r\",\"driver\":\"gpu.io\",\"pool\":\"gpu-n%02zu\","
			   "\"device\":\"d%zu\"}",
			   d ? "," : "", n, d);
	buf_printf(&b,
		   "]},\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":"
		   "\"metadata.name\",\"operator\":\"In\",\"values\":[\"n%02zu\"]}]}]}}%s}}",
		   n,
		   chance(50) ? ",\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"other\","
				"\"uid\":\"other\"}]"
			      : "");
	control_plane_must(bed->plane, "PATCH", path, b.data);
	buf_fini(&b);
	free(path);
}

/* --- pods ------------------------------------------------------------------------------------ */

/* A template and the claim that a controller would make of it for the pod. */
static void make_claim_of(const char *pod, const char *uid, const char *name,
			  const struct buf *spec)
{
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"metadata\":{\"name\":\"%s\",\"annotations\":{"
		   "\"resource.kubernetes.io/pod-claim-name\":\"c\"},\"ownerReferences\":[{"
		   "\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"%s\",\"uid\":\"%s\","
		   "\"controller\":true}]},\"spec\":%s}",
		   name, pod, uid, spec->data);
	post(NAMESPACED "resourceclaims", &b);
}

struct entries {
	struct buf spec, status; /* of the pod */
	struct buf claims[2]; /* specs of its own claims */
	size_t count, own;
};

static void draw_entry(struct entries *e, const char *pod)
{
	struct buf b = BUF_INIT;

	buf_printf(&e->spec, "%s{\"name\":\"c%zu\",", e->count ? "," : "", e->count);
	if (chance(35)) {
		buf_printf(&e->spec, "\"resourceClaimName\":\"%s%02zu\"}", chance(50) ? "a" : "u",
			   draw(FREE));
	} else {
		char *name = mem_printf("%s-%zu", pod, e->own);

		write_spec(&e->claims[e->own]);
		buf_printf(&b, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"spec\":%s}}", name,
			   e->claims[e->own].data);
		post(NAMESPACED "resourceclaimtemplates", &b);
		buf_printf(&e->spec, "\"resourceClaimTemplateName\":\"%s\"}", name);
		buf_printf(&e->status, "%s{\"name\":\"c%zu\",\"resourceClaimName\":\"%s\"}",
			   e->own ? "," : "", e->count, name);
		e->own++;
		free(name);
	}
	e->count++;
}

static void finish_pod(const char *pod, const char *uid, const struct entries *e)
{
	char *path = mem_printf("/api/v1/namespaces/one/pods/%s/status", pod);
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < e->own; i++) {
		char *name = mem_printf("%s-%zu", pod, i);

		make_claim_of(pod, uid, name, &e->claims[i]);
		free(name);
	}
	buf_printf(&b, "{\"status\":{\"resourceClaimStatuses\":[%s]}}",
		   e->own ? e->status.data : "");
	control_plane_must(bed->plane, "PATCH", path, b.data);
	buf_fini(&b);
	free(path);
}

static void ask_pod(size_t i)
{
	struct buf b = BUF_INIT, answer = BUF_INIT;
	struct entries e = {0};
	bool extended = chance(6);
	char name[8];
	cJSON *made;

	snprintf(name, sizeof(name), "p%03zu", i);
	odd_pod = extended;
	for (size_t k = 1 + draw(2); k; k--)
		draw_entry(&e, name);
	buf_printf(
		&b,
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{\"odd\":\"%s\"}},\"spec\":{"
		"\"containers\":[{\"name\":\"c\",\"image\":\"i\"%s}],\"resourceClaims\":[%s]%s}}",
		name, odd_pod ? "yes" : "no",
		extended ? ",\"resources\":{\"limits\":{\"example.com/all\":\"1\"}}" : "",
		e.spec.data, chance(20) ? ",\"nodeSelector\":{\"zone\":\"a\"}" : "");
	assert_int_equal(control_plane_send(bed->plane, "POST", "/api/v1/namespaces/one/pods",
					    b.data, &answer),
			 201);
	made = cJSON_Parse(answer.data);
	finish_pod(name, cJSON_GetStringValue(json_at(made, "metadata.uid")), &e);
	cJSON_Delete(made);
	buf_fini(&b);
	buf_fini(&answer);
	buf_fini(&e.spec);
	buf_fini(&e.status);
	buf_fini(&e.claims[0]);
	buf_fini(&e.claims[1]);
}

/* --- both answers ---------------------------------------------------------------------------- */

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static const cJSON *judgement(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
		if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
			return condition;
	}
	return NULL;
}

static bool all_are_judged(void *ctx)
{
	struct buf answer = BUF_INIT;
	const cJSON *pod;
	int judged = 0;

	(void)ctx;
	cJSON_Delete(pods);
	pods = NULL;
	if (control_plane_send(bed->plane, "GET", "/api/v1/namespaces/one/pods", NULL, &answer) ==
	    200)
		pods = cJSON_Parse(answer.data);
	buf_fini(&answer);
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		judged += judgement(pod) != NULL;
	}
	return judged == ASKED;
}

static void test_scheduler_is_asked(void **state)
{
	char *config = kube_witness_config(witness);
	const char *seed = getenv("EVENKEEL_SEED");

	(void)state;
	dice.random = seed ? strtoull(seed, NULL, 0) : 2;
	odd_seed = dice.random & 1;
	print_message("          seed %llu\n", (unsigned long long)dice.random);
	control_plane_must(bed->plane, "POST", "/api/v1/namespaces",
			   "{\"metadata\":{\"name\":\"one\"}}");
	for (size_t n = 0; n < NODES; n++) {
		make_node(n);
		if (chance(85))
			make_gpus(n);
		if (chance(25))
			make_odd(n);
	}
	make_shared();
	make_classes();
	for (size_t i = 0; i < FREE; i++)
		make_free_claim(i);
	for (size_t i = 0; i < ALLOCATED; i++)
		make_allocated_claim(i);
	control_plane_start_scheduler(bed->plane, config);
	control_plane_await_scheduler(bed->plane, NODES, 0);
	for (size_t i = 0; i < ASKED; i++)
		ask_pod(i);
	if (!await(all_are_judged, NULL, JUDGE_SECONDS))
		fail_msg("the scheduler has not judged all pods");
	control_plane_stop_scheduler(bed->plane);
	free(config);
}

static void test_aggregator_knows(void **state)
{
	static const char *const resources[] = {
		"pods",		  "deviceclasses",	    "devicetaintrules",
		"resourceslices", "resourceclaimtemplates", "resourceclaims"};

	(void)state;
	kube_testbed_start_aggregator(bed, 0, bed->plane->admin);
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		cJSON_Delete(kube_testbed_expect_state(bed, 0, resources[i], "synced"));
}

struct tally {
	size_t fits, refused, unknown, differences;
};

static bool has_string(const cJSON *list, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		if (strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

static void show_claims(const cJSON *pod)
{
	const cJSON *entry;

	cJSON_ArrayForEach (entry, json_at(pod, "spec.resourceClaims")) {
		const char *name = text_at(entry, "resourceClaimName");
		char *path = mem_printf(NAMESPACED "resourceclaims/%s",
					*name ? name : text_at(entry, "resourceClaimTemplateName"));
		struct buf answer = BUF_INIT;
		cJSON *claim;
		char *text;

		control_plane_send(bed->plane, "GET", path, NULL, &answer);
		claim = cJSON_Parse(answer.data);
		text = cJSON_PrintUnformatted(json_at(claim, "spec.devices"));
		print_message("            %s: %s\n", path, text);
		cJSON_free(text);
		cJSON_Delete(claim);
		buf_fini(&answer);
		free(path);
	}
}

static void show(const cJSON *pod, const cJSON *item, bool offered)
{
	print_message("          pod %s, node %s: the scheduler %s it, /v1/fit says %s\n"
		      "            %s: %s\n",
		      text_at(pod, "metadata.name"), text_at(item, "node"),
		      offered ? "accepts" : "refuses",
		      *text_at(item, "reason") ? text_at(item, "reason") : "it fits",
		      text_at(judgement(pod), "reason"), text_at(judgement(pod), "message"));
	show_claims(pod);
}

/* The answers agree, or ours is unknown where it may be. */
static void compare_pair(struct tally *t, const cJSON *pod, const cJSON *item, bool theirs)
{
	bool unknown = strcmp(text_at(item, "filter"), "Unknown") == 0;
	bool odd = strcmp(text_at(pod, "metadata.labels.odd"), "yes") == 0 ||
		   odd_node[strtoul(text_at(item, "node") + 1, NULL, 10)];

	t->unknown += unknown;
	t->fits += !unknown && theirs;
	t->refused += !unknown && !theirs;
	if (unknown ? odd : cJSON_IsTrue(json_at(item, "fits")) == theirs)
		return;
	if (t->differences++ < SHOWN)
		show(pod, item, theirs);
}

static void compare(struct tally *t, const cJSON *pod)
{
	cJSON *offered = kube_witness_offered(witness, text_at(pod, "metadata.name"));
	cJSON *request = cJSON_CreateObject(), *answer;
	const cJSON *item;
	char *text;

	cJSON_AddItemToObject(request, "pod", cJSON_Duplicate(pod, true));
	text = cJSON_PrintUnformatted(request);
	assert_int_equal(kube_testbed_post(bed, 0, "/v1/fit", text, &answer), 200);
	cJSON_ArrayForEach (item, json_at(answer, "items")) {
		compare_pair(t, pod, item, has_string(offered, text_at(item, "node")));
	}
	cJSON_free(text);
	cJSON_Delete(request);
	cJSON_Delete(answer);
	cJSON_Delete(offered);
}

static void test_both_agree(void **state)
{
	struct tally t = {0};
	const cJSON *pod;

	(void)state;
	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		compare(&t, pod);
	}
	print_message("          %d pods on %d nodes: both accept %zu pairs and refuse %zu, %zu "
		      "are unknown\n",
		      ASKED, NODES, t.fits, t.refused, t.unknown);
	if (t.differences)
		fail_msg("%zu pairs differ", t.differences);
	assert_true(t.fits > ASKED && t.refused > ASKED && t.unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scheduler_is_asked),
		cmocka_unit_test(test_aggregator_knows),
		cmocka_unit_test(test_both_agree),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	if (!bed->plane->version->new_members) {
		printf("SKIP: this Kubernetes has no resource claims\n");
		kube_testbed_free(bed, false);
		return 0;
	}
	witness = kube_witness_start();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	kube_witness_stop(witness);
	cJSON_Delete(pods);
	return failed != 0;
}
