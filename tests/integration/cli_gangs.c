/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of pods in what `kubectl get nodes,pods,replicasets,podgroups -A -o json` prints: what
 * evenkeel drain and evenkeel quota preempt say of them without a server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

static char *folder, *dump, *usage, *pod;
static struct buf out = BUF_INIT, err = BUF_INIT;

/* Single quotes stand for double ones. */
static char *write_file(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (; *text; text++)
		fputc(*text == '\'' ? '"' : *text, file);
	fclose(file);
	return path;
}

#define NODE(name, spec)                                                                           \
	"{'apiVersion':'v1','kind':'Node','metadata':{'name':'" name "'},'spec':{" spec            \
	"},'status':{'allocatable':{'cpu':'4','memory':'16Gi','pods':'110'},'capacity':{'cpu':"    \
	"'4','memory':'16Gi','pods':'110'},'conditions':[{'type':'Ready','status':'True'}]}},"
#define POD(name, node, cpu, labels, spec)                                                         \
	"{'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':{'namespace':'team','name':"       \
	"'" name "','uid':'rs-" name "'},'spec':{'replicas':1},'status':{'replicas':1}},"          \
	"{'apiVersion':'v1','kind':'Pod','metadata':{'namespace':'team','name':'" name             \
	"','uid':'uid-" name "','labels':{" labels                                                 \
	"},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'" name           \
	"','uid':'rs-" name "','controller':true}]},'spec':{'nodeName':'" node                     \
	"','containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "'}}}]" spec            \
	"},'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}},"
#define MEMBER(name, node, cpu)	  POD(name, node, cpu, "", ",'schedulingGroup':{'podGroupName':'g'}")
#define LABELLED(name, node, cpu) POD(name, node, cpu, "'scheduling.x-k8s.io/pod-group':'g'", "")

/* For m0 there is room on charlie; for m1 and m2 only on bravo. */
#define CLUSTER(member, bravo)                                                                     \
	NODE("alpha", "")                                                                          \
	NODE("bravo", bravo)                                                                       \
	NODE("charlie", "")                                                                        \
	member("m0", "alpha", "900m") member("m1", "bravo", "1200m")                               \
		member("m2", "bravo", "1200m") POD("x", "charlie", "2200m", "", ",'priority':20")
#define GROUP                                                                                      \
	"{'apiVersion':'scheduling.k8s.io/v1alpha3','kind':'PodGroup','metadata':{'namespace':"    \
	"'team','name':'g'},'spec':{'schedulingPolicy':{'gang':{'minCount':3}}}}"
#define PLUGINS_GROUP                                                                              \
	"{'apiVersion':'scheduling.x-k8s.io/v1alpha1','kind':'PodGroup','metadata':{'namespace':"  \
	"'team','name':'g'},'spec':{'minMember':3}}"
#define LIST(items)                                                                                \
	"{'apiVersion':'v1','kind':'List','items':[{'apiVersion':'policy/v1','kind':"              \
	"'PodDisruptionBudget','metadata':{'namespace':'other','name':'b'},'spec':{}}," items "]}"
#define USE(name)                                                                                  \
	"'" name                                                                                   \
	"':{'metrics':[{'type':'CPU','operator':'AVG','value':10},{'type':'Memory','operator':"    \
	"'AVG','value':10}]}"

static int setup(void **state)
{
	(void)state;
	folder = folder_make();
	dump = NULL;
	usage = write_file("usage.json",
			   "{'timestamp':1767268800,'window':{'duration':'15m','start':1767267900,"
			   "'end':1767268800},'source':'test','data':{'NodeMetricsMap':{" USE(
				   "alpha") "," USE("bravo") "," USE("charlie") "}}}");
	pod = write_file("pod.json",
			 "{'apiVersion':'v1','kind':'Pod','metadata':{'namespace':'other','name':"
			 "'self'},'spec':{'priority':10,'containers':[{'name':'c','resources':{"
			 "'requests':{'cpu':'3200m'}}}]}}");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(dump);
	free(usage);
	free(pod);
	buf_fini(&out);
	buf_fini(&err);
	folder_remove(folder);
	return 0;
}

static void expect(const char *words, int code, const char *text)
{
	char *copy = mem_strdup(words), *save, *argv[24] = {(char *)program_path("evenkeel")};
	size_t n = 1;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	argv[n++] = (char *)"--snapshot";
	argv[n++] = dump;
	argv[n++] = (char *)"--usage";
	argv[n++] = usage;
	buf_clear(&out);
	buf_clear(&err);
	if (process_run(argv, &out, &err) != code || !strstr(out.data ? out.data : "", text))
		fail_msg("not %d, or %s\nis not in\n%s%s", code, text, out.data ? out.data : "",
			 err.data ? err.data : "");
	free(copy);
}

#define DRAIN "drain --assume-unneeded-for 15m --extra-capacity-min-rate=0 "

static void test_a_group_moves_whole(void **state)
{
	static const char *const dumps[] = {LIST(CLUSTER(MEMBER, "") GROUP),
					    LIST(CLUSTER(LABELLED, "") PLUGINS_GROUP)};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		free(dump);
		dump = write_file("dump.json", dumps[i]);
		expect(DRAIN, 0,
		       "FROM   POD      TO     CPU-REQ  MEM-REQ\n"
		       "bravo  team/m1  bravo     1.20        0\n"
		       "bravo  team/m2  bravo     1.20        0\n"
		       "alpha  team/m0  bravo     900m        0\n");
		expect(DRAIN "alpha --explain", 0,
		       "group team/g needs 3, would have 2: 2 pods of other nodes must leave, too");
		expect(DRAIN "-o commands", 0,
		       "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",");
		expect(DRAIN "-o commands", 0,
		       "evict m2 team uid-m2\n"
		       "kubectl drain alpha --ignore-daemonsets\n");
		expect(DRAIN "-o json", 0, "\"name\":\"m2\",\"from\":\"bravo\",\"to\":\"bravo\"");
	}
}

/* On a cordoned node they cannot start again. */
static void test_or_not_at_all(void **state)
{
	(void)state;
	dump = write_file("dump.json", LIST(CLUSTER(MEMBER, "'unschedulable':true") GROUP));
	expect(DRAIN "-o name", 0, "");
	assert_string_equal(out.len ? out.data : "", "");
	expect(DRAIN "alpha --explain", 3, "PodGroupBelowMinimum");
}

static void test_victims_count_who_falls(void **state)
{
	char *words = mem_printf("quota preempt --pod %s", pod);
	char *json = mem_printf("%s -o json", words);

	(void)state;
	dump = write_file("dump.json", LIST(CLUSTER(MEMBER, "") GROUP));
	expect(words, 0, "it runs on node alpha when 3 pods are gone, not all of them there");
	expect(json, 0, "; falls with its group: group team/g needs 3, would have 2");
	free(words);
	free(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_group_moves_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_or_not_at_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_victims_count_who_falls, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
