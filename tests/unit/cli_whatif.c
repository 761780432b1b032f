/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel whatif: what each change does to a Snapshot, and which it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/cli/whatif.h"
#include "shared/buf.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "tests/process.h"

#define POD(name, uid, owner, kind, made, ready)                                                   \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                   \
	"\",\"namespace\":\"shop\",\"uid\":\"" uid                                                 \
	"\",\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"5d\"},\"creationTimestamp\":"      \
	"\"2026-01-0" made                                                                         \
	"T00:00:00Z\",\"ownerReferences\":[{\"controller\":true,\"kind\":\"" kind                  \
	"\",\"name\":\"" owner                                                                     \
	"\"}]},\"spec\":{\"nodeName\":\"a\",\"containers\":[{\"name\":\"c\",\"resources\":{"       \
	"\"requests\":{\"cpu\":\"1\"},\"limits\":{\"cpu\":\"2\"}}}]},\"status\":{\"phase\":"       \
	"\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"

#define USE(mean, value)                                                                           \
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":" value                               \
	"},\"windows\":{\"5m\":{\"samples\":9,\"mean\":" mean ",\"stddev\":10,\"max\":" value      \
	"}}}},\"contention\":{\"cpu\":0.5,\"seconds\":300}"

#define LIMITS "\"kernelLimits\":{\"cpuMillicores\":2000,\"memoryBytes\":null,\"pids\":7},"

/* clang-format off */
static const char snapshot[] =
	"{\"sources\":[{\"kind\":\"ElasticQuota\",\"state\":\"none\",\"message\":\"none\"}],"
	"\"list\":{\"items\":["
	"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"labels\":{"
	"\"zone\":\"z\"},\"annotations\":{\"x\":\"y\"}},\"spec\":{\"unschedulable\":true,"
	"\"taints\":[{\"key\":\"old\",\"effect\":\"NoSchedule\"}]},\"status\":{\"allocatable\":{"
	"\"cpu\":\"8\",\"memory\":\"8Gi\"}}},"
	"{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"web-5d\","
	"\"namespace\":\"shop\"},\"spec\":{\"replicas\":2}},"
	"{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":"
	"\"b\",\"namespace\":\"shop\"},\"spec\":{\"minAvailable\":\"50%\",\"selector\":{"
	"\"matchLabels\":{\"app\":\"web\"}}},\"status\":{\"expectedPods\":6,\"currentHealthy\":5,"
	"\"desiredHealthy\":3,\"disruptionsAllowed\":2}},"
	POD("web-5d-1", "u1", "web-5d", "ReplicaSet", "1", "True") ","
	POD("web-5d-2", "u2", "web-5d", "ReplicaSet", "2", "True") ","
	POD("db-9", "u3", "db", "StatefulSet", "9", "True") ","
	POD("db-10", "u4", "db", "StatefulSet", "1", "False") ","
	POD("log", "u5", "log", "DaemonSet", "1", "True") ","
	POD("job-1", "u6", "job", "Job", "1", "True")
	"]},\"usage\":{\"nodes\":[{\"name\":\"a\"," USE("500", "600") "}],\"pods\":["
	"{\"node\":\"a\",\"uid\":\"u2\"," LIMITS USE("200", "250") ",\"containers\":[{" LIMITS
	USE("200", "250") "}]},"
	"{\"node\":\"a\",\"uid\":\"u5\"," USE("50", "60") "},"
	/* Of a pod that the API does not show. */
	"{\"node\":\"a\",\"uid\":\"unknown\"," USE("1", "1") "}]}}";
/* clang-format on */

static struct option_list *list_of(struct whatif_changes *c, const char *option)
{
	const struct {
		const char *name;
		struct option_list *list;
	} lists[] = {
		{"apply", &c->apply},	{"remove", &c->remove}, {"add", &c->add},
		{"cordon", &c->cordon}, {"taint", &c->taint},	{"resize", &c->resize},
		{"scale", &c->scale},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (strcmp(lists[i].name, option) == 0)
			return lists[i].list;
	fail_msg("there is no option %s", option);
	return NULL;
}

/* "$" in a text is a file with those objects. The tree is the caller's. */
static cJSON *change(const char *option, const char *text, const char *file, int expected,
		     struct error *why)
{
	cJSON *doc = cJSON_Parse(snapshot);
	struct whatif_changes changes = {0};
	char *folder = folder_make(), *path = mem_printf("%s/objects.yaml", folder);
	char *texts[] = {(char *)text};
	FILE *f = fopen(path, "w");
	struct buf notes = BUF_INIT;
	int rc;

	assert_non_null(doc);
	assert_true(f && fputs(file ? file : "", f) >= 0 && fclose(f) == 0);
	if (strcmp(text, "$") == 0)
		texts[0] = path;
	*list_of(&changes, option) = (struct option_list){texts, 1};
	why->text[0] = '\0';
	rc = whatif_change(doc, &changes, &notes, why);
	folder_remove(folder);
	if (rc != expected)
		fail_msg("--%s %s: \"%s\"", option, text, why->text);
	buf_fini(&notes);
	free(path);
	return doc;
}

/*
 * What is looked at: of the object "KIND NAME" the member as JSON, "" for one that is not there;
 * with the kind "use" that of the measurements of the node or of the pod with that uid; "count KIND"
 * is how many there are.
 */
static void check_member(const cJSON *doc, const char *object, const char *member,
			 const char *expected)
{
	char kind[32] = "", name[32] = "";
	const cJSON *found = NULL, *value;
	char *text = NULL;
	int count = 0;

	sscanf(object, "%31s %31s", kind, name);
	for (const cJSON *o = document_first(doc, "list.items"); o; o = o->next) {
		if (document_is(o, "kind", kind) && document_is(o, "metadata.name", name))
			found = o;
		count += strcmp(kind, "count") == 0 && document_is(o, "kind", name);
	}
	if (strcmp(kind, "use") == 0)
		found = document_find(doc, "usage.nodes", "name", name);
	if (strcmp(kind, "use") == 0 && !found)
		found = document_find(doc, "usage.pods", "uid", name);
	value = *member ? document_at(found, member) : found;
	if (strcmp(kind, "count") == 0)
		text = mem_printf("%d", count);
	else
		text = value ? cJSON_PrintUnformatted(value) : mem_strdup("");
	if (strcmp(text, expected) != 0)
		fail_msg("%s, %s: %s in place of %s", object, member, text, expected);
	free(text);
}

struct changed {
	const char *option, *text, *file, *object, *member, *expected;
};

static void check_changes(const struct changed *rows, size_t count)
{
	struct error why;

	for (size_t i = 0; i < count; i++) {
		cJSON *doc = change(rows[i].option, rows[i].text, rows[i].file, 0, &why);

		check_member(doc, rows[i].object, rows[i].member, rows[i].expected);
		cJSON_Delete(doc);
	}
}

static void test_changed_nodes(void **state)
{
	static const struct changed rows[] = {
		/* Pods of a removed node wait, but for those that nobody makes anew elsewhere. */
		{"remove", "a", NULL, "Node a", "", ""},
		{"remove", "a", NULL, "Pod web-5d-2", "spec.nodeName", ""},
		{"remove", "a", NULL, "Pod web-5d-2", "status", "{\"phase\":\"Pending\"}"},
		{"remove", "a", NULL, "Pod log", "", ""},
		{"remove", "a", NULL, "use a", "", ""},
		{"remove", "a", NULL, "use u2", "", ""},
		{"remove", "a", NULL, "use unknown", "", ""},
		{"remove", "a", NULL, "PodDisruptionBudget b", "status.currentHealthy", "0"},
		{"remove", "a", NULL, "PodDisruptionBudget b", "status.expectedPods", "5"},
		{"remove", "a", NULL, "PodDisruptionBudget b", "status.desiredHealthy", "3"},
		{"remove", "a", NULL, "PodDisruptionBudget b", "status.disruptionsAllowed", "0"},
		/* A copy has nothing of the one node alone, and uses what its daemons use. */
		{"add", "2x a", NULL, "count Node", "", "3"},
		{"add", "2xa", NULL, "count Pod", "", "8"},
		{"add", "a", NULL, "count Node", "", "2"},
		{"add", "a", NULL, "Node whatif-1", "metadata.annotations", ""},
		{"add", "a", NULL, "Node whatif-1", "spec.unschedulable", ""},
		{"add", "a", NULL, "Node whatif-1", "metadata.labels",
		 "{\"zone\":\"z\",\"kubernetes.io/hostname\":\"whatif-1\"}"},
		{"add", "a", NULL, "Pod whatif-1", "spec.nodeName", "\"whatif-1\""},
		{"add", "a", NULL, "use whatif-1", "usage.cpuMillicores.latest.value", "60"},
		{"add", "a", NULL, "use whatif-1", "usage.cpuMillicores.windows.5m",
		 "{\"samples\":9,\"mean\":50,\"stddev\":0,\"max\":50}"},
		{"add", "a", NULL, "use whatif-1", "contention", "{\"cpu\":0,\"seconds\":300}"},
		{"add", "3x cpu=8,memory=32Gi", NULL, "count Node", "", "4"},
		{"add", "cpu=8,memory=32Gi", NULL, "Node whatif-1", "status.allocatable",
		 "{\"pods\":\"110\",\"cpu\":\"8\",\"memory\":\"32Gi\"}"},
		{"add", "cpu=8,memory=32Gi", NULL, "use whatif-1",
		 "usage.cpuMillicores.latest.value", "0"},
		/* Taints. */
		{"cordon", "a", NULL, "Node a", "spec.unschedulable", "true"},
		{"taint", "a:k=v:NoSchedule", NULL, "Node a", "spec.taints",
		 "[{\"key\":\"old\",\"effect\":\"NoSchedule\"},"
		 "{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]"},
		{"taint", "a:old:PreferNoSchedule", NULL, "Node a", "spec.taints",
		 "[{\"key\":\"old\",\"effect\":\"NoSchedule\"},"
		 "{\"key\":\"old\",\"effect\":\"PreferNoSchedule\"}]"},
		{"taint", "a:old=v:NoSchedule", NULL, "Node a", "spec.taints",
		 "[{\"key\":\"old\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]"},
		{"taint", "a:x.io/k_-.1=V_-.2:NoExecute", NULL, "Node a", "spec.taints",
		 "[{\"key\":\"old\",\"effect\":\"NoSchedule\"},"
		 "{\"key\":\"x.io/k_-.1\",\"value\":\"V_-.2\",\"effect\":\"NoExecute\"}]"},
		{"taint", "a:old-", NULL, "Node a", "spec.taints", "[]"},
		{"taint", "a:old:NoSchedule-", NULL, "Node a", "spec.taints", "[]"},
	};

	(void)state;
	check_changes(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_changed_workloads(void **state)
{
	static const struct changed rows[] = {
		/* The newest of a ReplicaSet goes first, of a StatefulSet the last. */
		{"scale", "shop/web=1", NULL, "Pod web-5d-1", "spec.nodeName", "\"a\""},
		{"scale", "shop/web=1", NULL, "Pod web-5d-2", "", ""},
		{"scale", "shop/web=1", NULL, "ReplicaSet web-5d", "spec.replicas", "1"},
		{"scale", "shop/web=1", NULL, "use a", "usage.cpuMillicores.windows.5m",
		 "{\"samples\":9,\"mean\":300,\"stddev\":10,\"max\":400}"},
		{"scale", "shop/web=1", NULL, "use a", "usage.cpuMillicores.latest.value", "350"},
		{"scale", "shop/web=1", NULL, "PodDisruptionBudget b", "status.disruptionsAllowed",
		 "1"},
		{"scale", "shop/db=1", NULL, "Pod db-10", "", ""},
		{"scale", "shop/StatefulSet/db=1", NULL, "Pod db-10", "", ""},
		{"scale", "shop/db=1", NULL, "Pod db-9", "spec.nodeName", "\"a\""},
		{"scale", "shop/job=0", NULL, "Pod job-1", "", ""},
		{"scale", "shop/web-5d=4", NULL, "count Pod", "", "8"},
		{"scale", "shop/web=4", NULL, "Pod whatif-2", "spec.nodeName", ""},
		{"scale", "shop/web=4", NULL, "PodDisruptionBudget b", "status.desiredHealthy",
		 "4"},
		/* Requests. */
		{"resize", "shop/web=cpu:200m,memory:1Gi", NULL, "Pod web-5d-2", "spec.containers",
		 "[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"200m\",\"memory\":"
		 "\"1Gi\"},\"limits\":{\"cpu\":\"2\"}}}]"},
		{"resize", "shop/deployment/web=c/limits.cpu:4,cpu:3", NULL, "Pod web-5d-1",
		 "spec.containers",
		 "[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"3\"},\"limits\":{"
		 "\"cpu\":\"4\"}}}]"},
		/* The kernel's limits follow. */
		{"resize", "shop/web=limits.cpu:4", NULL, "use u2", "kernelLimits",
		 "{\"memoryBytes\":null,\"pids\":7,\"cpuMillicores\":4000}"},
		{"resize", "shop/web=limits.memory:1Ki", NULL, "use u2", "kernelLimits",
		 "{\"cpuMillicores\":2000,\"pids\":7,\"memoryBytes\":1024}"},
		{"resize", "shop/web=cpu:2", NULL, "use u2", "kernelLimits",
		 "{\"cpuMillicores\":2000,\"memoryBytes\":null,\"pids\":7}"},
		{"resize", "shop/web=c/cpu:2", NULL, "Pod web-5d-1", "spec.containers",
		 "[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"},\"limits\":{"
		 "\"cpu\":\"2\"}}}]"},
	};

	(void)state;
	check_changes(rows, sizeof(rows) / sizeof(rows[0]));
}

#define JOB(members)                                                                               \
	"{apiVersion: batch/v1, kind: Job, metadata: {name: new}, spec: {" members                 \
	", template: {spec: {containers: [{name: c}]}}}}"

#define MADE(name, kind, owner)                                                                    \
	"metadata: {name: " name                                                                   \
	", namespace: shop, labels: {pod-template-hash: 5d}, ownerReferences: [{kind: " kind       \
	", name: " owner ", controller: true}]}"
#define TEMPLATE "replicas: 2, template: {spec: {containers: [{name: c}]}}"
#define MAKER                                                                                      \
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: new, namespace: shop}, spec: "   \
	"{" TEMPLATE "}}"
#define OTHER_MAKER                                                                                \
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: new}, spec: {" TEMPLATE "}}"
#define MADE_RS                                                                                    \
	"{apiVersion: apps/v1, kind: ReplicaSet, " MADE("new-5d", "Deployment",                    \
							"new") ", spec: {" TEMPLATE "}}"
#define MADE_POD(name)                                                                             \
	"{apiVersion: v1, kind: Pod, " MADE(                                                       \
		name, "ReplicaSet", "new-5d") ", spec: {nodeName: a, containers: [{name: c}]}}"
#define MADE_PODS	MADE_POD("new-5d-1") ", " MADE_POD("new-5d-2")
#define EXPORT(objects) "{apiVersion: v1, kind: List, items: [" objects "]}"

static void test_applied_objects(void **state)
{
	static const struct changed rows[] = {
		/* Objects: new ones, those that replace others, and what makes pods. */
		{"apply", "$",
		 "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: "
		 "q}}",
		 "ElasticQuota q", "metadata.namespace", "\"default\""},
		{"apply", "$",
		 "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: "
		 "{name: a}, spec: {x: 1}}]}",
		 "Node a", "spec", "{\"x\":1}"},
		{"apply", "$",
		 "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, "
		 "namespace: shop}, spec: {maxUnavailable: 1, selector: {}}, status: "
		 "{currentHealthy: 77}}",
		 "PodDisruptionBudget b", "status",
		 "{\"expectedPods\":6,\"currentHealthy\":5,\"desiredHealthy\":5,"
		 "\"disruptionsAllowed\":0}"},
		{"apply", "$",
		 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, "
		 "spec: {replicas: 3, template: {metadata: {labels: {app: web}}, spec: "
		 "{containers: [{name: c}]}}}}",
		 "count Pod", "", "7"},
		/* A StatefulSet has this name. */
		{"apply", "$",
		 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: db, namespace: shop}, "
		 "spec: {template: {metadata: {labels: {app: db}}, spec: {containers: [{name: "
		 "c}]}}}}",
		 "count Pod", "", "7"},
		{"apply", "$",
		 "{apiVersion: batch/v1, kind: Job, metadata: {name: new}, spec: {template: {spec: "
		 "{containers: [{name: c}]}}}}",
		 "Pod whatif-1", "metadata.namespace", "\"default\""},
		/* A Job runs no more pods than it needs, and none while it is suspended. */
		{"apply", "$", JOB("parallelism: 3, completions: 1"), "count Pod", "", "7"},
		{"apply", "$", JOB("parallelism: 3"), "count Pod", "", "9"},
		{"apply", "$", JOB("completions: 3"), "count Pod", "", "7"},
		{"apply", "$", JOB("parallelism: 3, suspend: true"), "count Pod", "", "6"},
		/* What kubectl get all tells of a Deployment. */
		{"apply", "$", EXPORT(MADE_RS ", " MADE_PODS ", " MAKER), "count Pod", "", "8"},
		{"apply", "$", EXPORT(MAKER ", " MADE_RS ", " MADE_PODS), "count Pod", "", "8"},
		/* Without the ReplicaSet; of another namespace; without what makes them. */
		{"apply", "$", EXPORT(MADE_PODS ", " MAKER), "count Pod", "", "8"},
		{"apply", "$", EXPORT(MADE_PODS ", " OTHER_MAKER), "count Pod", "", "10"},
		{"apply", "$", EXPORT(MADE_PODS), "count Pod", "", "8"},
		{"apply", "$", EXPORT(MADE_PODS), "Pod new-5d-1", "spec.nodeName", "\"a\""},
	};

	(void)state;
	check_changes(rows, sizeof(rows) / sizeof(rows[0]));
}

/* A kind that was not followed is, once there is an object of it. */
static void test_sources(void **state)
{
	struct error why;
	cJSON *doc = change(
		"apply", "$",
		"{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: "
		"q}}",
		0, &why);
	char *text = cJSON_PrintUnformatted(document_at(doc, "sources"));

	(void)state;
	assert_string_equal(text, "[{\"kind\":\"ElasticQuota\",\"state\":\"snapshot\","
				  "\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\"}]");
	free(text);
	cJSON_Delete(doc);
}

static const struct {
	const char *option, *text, *file, *says;
} refusals[] = {
	{"remove", "b", NULL, "--remove b: there is no node \"b\""},
	{"cordon", "", NULL, "--cordon : there is no node \"\""},
	{"add", "0x a", NULL, "must be 1 to 1000 nodes"},
	{"add", "1001x a", NULL, "must be 1 to 1000 nodes"},
	{"add", "2x b", NULL, "there is no node \"b\""},
	{"add", "cpu=8", NULL, "must be amounts above 0, of cpu and memory"},
	{"add", "cpu=8,memory=x", NULL, "must be amounts above 0, of cpu and memory"},
	{"add", "cpu=8,=1,memory=1", NULL, "must be amounts above 0, of cpu and memory"},
	{"taint", "a", NULL, "must be NODE:KEY[=VALUE]:EFFECT"},
	{"taint", "a:", NULL, "must be NODE:KEY[=VALUE]:EFFECT"},
	{"add", "cpu=-8,memory=1Gi", NULL, "must be amounts above 0, of cpu and memory"},
	{"taint", "a::NoSchedule", NULL, "the key of the taint is empty"},
	{"add", "3xcpu=0,memory=0", NULL, "must be amounts above 0"},
	{"add", "cpu=1,memory=1,pods=0", NULL, "must be amounts above 0"},
	{"taint", "a:a b=c:NoSchedule", NULL, "the key and the value of a taint are"},
	{"taint", "a:b=c d:NoSchedule", NULL, "the key and the value of a taint are"},
	{"taint", "a:b=c/d:NoSchedule", NULL, "the key and the value of a taint are"},
	{"taint", "a:k", NULL, "must end in NoSchedule, PreferNoSchedule or NoExecute"},
	{"taint", "a:k:Never", NULL, "must end in NoSchedule"},
	{"taint", "a:k-", NULL, "there is no such taint"},
	{"taint", "a:old:NoExecute-", NULL, "there is no such taint"},
	{"taint", "b:k:NoSchedule", NULL, "there is no node \"b\""},
	{"scale", "shop/web", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "/web=1", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "shop/=1", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "web=1", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "web=1/2", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "shop/we=1", NULL, "there is no pod of a workload \"we\""},
	{"scale", "shop//web=1", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "shop/Deployment/=1", NULL, "must be NAMESPACE/WORKLOAD=.."},
	{"scale", "shop/StatefulSet/web=1", NULL,
	 "there is no pod of a StatefulSet \"web\" in the namespace \"shop\""},
	{"resize", "shop/web=limits.foo:1", NULL, "no node has a resource \"foo\""},
	{"scale", "mail/web=1", NULL, "in the namespace \"mail\""},
	{"scale", "shop/web=-1", NULL, "must end in a number of replicas, at most 10000"},
	{"scale", "shop/web=1x", NULL, "must end in a number of replicas"},
	{"scale", "shop/web=10001", NULL, "must end in a number of replicas"},
	{"scale", "shop/log=2", NULL, "a DaemonSet has a pod on each node"},
	{"resize", "shop/web=,", NULL, "must end in RESOURCE:AMOUNT"},
	{"resize", "shop/web=foo:1", NULL, "no node has a resource \"foo\""},
	{"resize", "shop/web=", NULL, "must end in RESOURCE:AMOUNT"},
	{"resize", "shop/web=cpu", NULL, "\"cpu\" must be RESOURCE:AMOUNT"},
	{"resize", "shop/web=:1", NULL, "\":1\" must be RESOURCE:AMOUNT"},
	{"resize", "shop/web=cpu:x", NULL, "\"x\" is no amount"},
	{"resize", "shop/web=cpu:-1", NULL, "\"-1\" is no amount"},
	{"resize", "shop/web=cpu:2001m", NULL, "cpu of \"c\" is above its limit of \"2\""},
	{"resize", "shop/web=d/cpu:1", NULL, "there is no container \"d\" in web-5d-1"},
	{"apply", "/nonexistent", NULL, "/nonexistent"},
	{"apply", "$", "", "there is no object"},
	{"apply", "$", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: z}}",
	 "Pod p: there is no node \"z\""},
	{"apply", "$",
	 "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: "
	 "{}}}",
	 "DaemonSet d: replace it in the file by its Pods with spec.nodeName, or remove it"},
	{"apply", "$",
	 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: "
	 "2.5, "
	 "template: {}}}",
	 "Deployment d: replicas must be a whole number up to 10000"},
	{"apply", "$", "{a: 1}", "must have apiVersion, kind and metadata.name"},
	{"apply", "$", "{a: ]", "objects.yaml:1"},
	{"apply", "$",
	 "{apiVersion: v1, kind: Service, metadata: {name: s}}\n---\n"
	 "{apiVersion: v1, kind: Service, metadata: {name: t}}\n---\n"
	 "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: s}, "
	 "spec: {template: {type: Opaque}}}",
	 "no answer depends on its objects: 2 Service, 1 SealedSecret"},
	{"apply", "$", "{apiVersion: v1, kind: List, items: []}", "there is no object"},
	{"apply", "$",
	 "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r}, spec: "
	 "{template: {spec: {containers: [{name: c}]}}}}",
	 "a Rollout makes no pods"},
	/* What the API would refuse is refused, and named. */
	{"apply", "$",
	 "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: "
	 "8x}}}",
	 "objects.yaml: Node n: status.allocatable.cpu: "},
	{"apply", "$",
	 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: "
	 "0, template: {spec: {containers: [{name: c, resources: {requests: {memory: "
	 "1Zi}}}]}}}}",
	 "objects.yaml: Deployment d: spec.containers[0].resources.requests.memory: "},
	{"apply", "$",
	 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: "
	 "{spec: {containers: [{name: b}, {name: c, resources: {requests: {cpu: 1.5}, "
	 "limits: {cpu: 1}}}]}}}}",
	 "objects.yaml: Deployment d: cpu of \"c\" is above its limit of 1"},
	{"apply", "$",
	 "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {initContainers: [{name: "
	 "i, resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}], containers: "
	 "[{name: c}]}}",
	 "Pod p: memory of \"i\" is above its limit of \"1Gi\""},
	{"apply", "$",
	 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: "
	 "10001, template: {spec: {containers: [{name: c}]}}}}",
	 "web: replicas must be a whole number up to 10000"},
};

static void test_refusals(void **state)
{
	struct error why;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		cJSON_Delete(change(refusals[i].option, refusals[i].text, refusals[i].file, -EINVAL,
				    &why));
		if (!strstr(why.text, refusals[i].says))
			fail_msg("--%s %s: \"%s\" in place of \"%s\"", refusals[i].option,
				 refusals[i].text, why.text, refusals[i].says);
	}
}

/* Measurements alone are no cluster. */
static void test_without_api(void **state)
{
	static const char *const options[][2] = {
		{"remove", "vm"}, {"add", "vm"}, {"add", "cpu=8,memory=8Gi"}, {"cordon", "vm"}};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		cJSON *doc = cJSON_Parse("{\"list\":{\"items\":[]},\"usage\":{\"nodes\":[{"
					 "\"name\":\"vm\"}],\"pods\":[]}}");
		char *texts[] = {(char *)options[i][1]};
		struct whatif_changes changes = {0};
		struct buf notes = BUF_INIT;
		struct error why;

		*list_of(&changes, options[i][0]) = (struct option_list){texts, 1};
		assert_int_equal(whatif_change(doc, &changes, &notes, &why), -EINVAL);
		if (!strstr(why.text, "needs objects of a Kubernetes API"))
			fail_msg("--%s: \"%s\"", options[i][0], why.text);
		cJSON_Delete(doc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changed_nodes),	cmocka_unit_test(test_changed_workloads),
		cmocka_unit_test(test_applied_objects), cmocka_unit_test(test_sources),
		cmocka_unit_test(test_refusals),	cmocka_unit_test(test_without_api),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
