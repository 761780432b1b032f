/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel doctor, from the Status object to findings and advice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/api/doctor.h"
#include "aggregator/cli/commands.h"
#include "shared/mem.h"

/*
 * A Status object of parts; each may be overridden by standing first: cJSON finds the first of a
 * name.
 */
#define STATUS(parts)                                                                              \
	"{" parts "\"version\":\"" EVENKEEL_VERSION "\",\"kubernetes\":{\"mode\":\"standalone\","  \
	"\"resources\":[]},\"agents\":{\"nodes\":3,\"fresh\":3,\"late\":0,\"expired\":0,\"none\":" \
	"0,"                                                                                       \
	"\"unknownToApi\":0,\"tiers\":{\"T1\":3,\"T3\":0},\"examples\":{}},"                       \
	"\"clock\":{\"flagged\":0,\"nodes\":[]},\"quarantine\":{\"values\":0,\"nodes\":[]},"       \
	"\"frames\":{\"applied\":100},\"database\":{\"state\":\"ok\",\"lastSaveAgeSeconds\":12.5," \
	"\"setAside\":0},\"view\":{\"version\":9,\"ageSeconds\":0.4,\"nodes\":3,\"pods\":40}}"

#define WELL                                                                                       \
	"ok    view: published 0s ago: 3 nodes, 40 pods\n"                                         \
	"ok    kubernetes: standalone: no API is followed, workloads carry their cgroups' names "  \
	"(--kubeconfig follows one)\n"
#define AGENTS	 "ok    agents: 3 of 3 nodes are heard within 30s\n"
#define FRAMES	 "ok    frames: all that agents sent could be read\n"
#define CLOCKS	 "ok    clocks: all within 30s of the aggregator's\n"
#define VALUES	 "ok    values: none had to be left out\n"
#define DATABASE "ok    database: saved 12s ago\n"

static void check(const char *status, enum doctor_verdict verdict, const char *want)
{
	cJSON *doc = cJSON_Parse(status);
	struct buf out = BUF_INIT;
	struct doctor d;

	assert_non_null(doc);
	d = (struct doctor){0};
	doctor_examine(&d, doc);
	doctor_print(&d, false, 0, &out);
	assert_string_equal(out.data, want);
	assert_int_equal(doctor_verdict_of(&d), verdict);
	doctor_fini(&d);
	buf_fini(&out);
	cJSON_Delete(doc);
}

static void all_is_well(void **state)
{
	(void)state;
	check(STATUS(""), DOCTOR_OK, WELL AGENTS FRAMES CLOCKS VALUES DATABASE);
}

/* --- each part alone -------------------------------------------------------------------------- */

static void tells_of_agents(void **state)
{
	(void)state;
	check(STATUS("\"agents\":{\"nodes\":9,\"fresh\":1,\"late\":1,\"expired\":1,\"none\":7,"
		     "\"unknownToApi\":1,\"tiers\":{\"T3\":1},\"examples\":{\"late\":[\"l\"],"
		     "\"expired\":[\"e\"],\"none\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"],"
		     "\"unknownToApi\":[\"u\"],\"T3\":[\"t\"]}},"),
	      DOCTOR_FAIL,
	      WELL
	      "ok    agents: 1 of 9 nodes are heard within 30s\n"
	      "warn  agents: 1 node not heard for more than 30s: l\n"
	      "      If it lasts: is the node busy, or its network cut? Sigma is widened "
	      "meanwhile.\n"
	      "fail  agents: 1 node not heard for more than 5m: e\n"
	      "      Their agents stopped, or the nodes are gone. They take no new pods by "
	      "score.\n"
	      "warn  agents: 7 nodes never heard: a, b, c, d, e and 2 more\n"
	      "      Does the agent's DaemonSet tolerate their taints, and does its pod run "
	      "there? They count as full until then.\n"
	      "warn  agents: 1 node heard, but unknown to the API: u\n"
	      "      Give their agents --node-name as the Node object has it (spec.nodeName).\n"
	      "warn  agents: 1 node sampled from cgroup files, once a second: t\n"
	      "      Their agents may not use BPF: give them CAP_BPF and CAP_PERFMON, see their "
	      "logs.\n" FRAMES CLOCKS VALUES DATABASE);
	check(STATUS("\"agents\":{\"nodes\":1,\"fresh\":0,\"late\":0,\"expired\":0,\"none\":0},"),
	      DOCTOR_FAIL,
	      WELL
	      "fail  agents: none of 1 node is heard\n"
	      "      Do agents run, reach the ingest port (2021), and have the aggregator's key? "
	      "Their logs say what fails.\n" FRAMES CLOCKS VALUES DATABASE);
	check(STATUS("\"agents\":{},"), DOCTOR_FAIL,
	      WELL "fail  agents: no node is known\n"
		   "      Start evenkeel-agent on every node, with --aggregator tcp://HOST:2021 "
		   "and the aggregator's key as --key-file.\n" FRAMES CLOCKS VALUES DATABASE);
}

static void tells_of_access(void **state)
{
	static const struct {
		const char *access;
		enum doctor_verdict verdict;
		const char *want;
	} cases[] = {
		{"'fromOtherMachines':false", DOCTOR_OK, ""},
		{"'fromOtherMachines':true", DOCTOR_WARN,
		 "warn  access: everybody who can connect may read everything and make "
		 "reservations\n"
		 "      See --tls-cert, --token-file and --token-review of the aggregator, or a "
		 "NetworkPolicy.\n"},
		{"'fromOtherMachines':true,'tokenReview':true", DOCTOR_OK,
		 "ok    access: over HTTP, with a token\n"},
		{"'tokenFile':true,'tls':true,'certificateEndsInSeconds':604801,'reloadFailures':0",
		 DOCTOR_OK, "ok    access: over HTTPS, with a token\n"},
		{"'clientCertificates':true,'tls':true", DOCTOR_OK,
		 "ok    access: over HTTPS, with a client certificate\n"},
		{"'tokenFile':true,'clientCertificates':true,'tls':true,'reloadFailures':2",
		 DOCTOR_WARN,
		 "warn  access: certificates or tokens could not be read again 2 times\n"
		 "      The aggregator's log says which; what was read before is in force.\n"
		 "ok    access: over HTTPS, with a token or a client certificate\n"},
		{"'certificateEndsInSeconds':3600", DOCTOR_WARN,
		 "warn  certificate: the server's certificate ends in 1h00m\n"
		 "      Is it renewed by itself? A new pair in the same files is taken within "
		 "10s.\n"},
		{"'certificateEndsInSeconds':0", DOCTOR_FAIL,
		 "fail  certificate: the server's certificate has ended\n"
		 "      Put a new pair into the files of --tls-cert and --tls-key: it is taken "
		 "within 10s.\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *status = mem_printf("{'access':{%s},%s", cases[i].access, &STATUS("")[1]);
		const char *rest = strchr(WELL, '\n') + 1;
		char *want = mem_printf("%.*s%s%s%s", (int)(strlen(WELL) - strlen(rest)), WELL,
					cases[i].want, rest, AGENTS FRAMES CLOCKS VALUES DATABASE);

		for (char *c = status; (c = strchr(c, '\''));)
			*c = '"';
		check(status, cases[i].verdict, want);
		free(status);
		free(want);
	}
}

static void tells_of_frames(void **state)
{
	(void)state;
	check(STATUS("\"frames\":{\"applied\":1,\"unknownKey\":12,\"refused\":2},"), DOCTOR_WARN,
	      WELL AGENTS
	      "warn  frames: 12 sealed with a key that is not known here, since the start\n"
	      "      Give agents and aggregator the same --key-file; a directory of keys takes "
	      "old and new ones.\n"
	      "warn  frames: 2 refused, since the start\n"
	      "      The aggregator's log names node and reason.\n" CLOCKS VALUES DATABASE);
	check(STATUS("\"frames\":{\"applied\":9,\"rival\":4},"), DOCTOR_WARN,
	      WELL AGENTS
	      "warn  frames: 4 of a second agent of a node whose first is alive, since the start\n"
	      "      The aggregator's log names the node. Give each agent a --node-name of its "
	      "own; "
	      "if they have that, somebody has the key: exchange it.\n" CLOCKS VALUES DATABASE);
	/* Nothing else comes through. */
	check(STATUS("\"frames\":{\"applied\":0,\"forged\":3},"), DOCTOR_FAIL,
	      WELL AGENTS
	      "fail  frames: 3 that did not open with the key they name, since the start\n"
	      "      Somebody sends what no agent sealed, or a key file was changed in "
	      "place.\n" CLOCKS VALUES DATABASE);
}

static void tells_of_clocks_and_values(void **state)
{
	(void)state;
	check(STATUS("\"clock\":{\"flagged\":2,\"nodes\":[{\"name\":\"a\",\"skewSeconds\":-95.2},"
		     "{\"name\":\"b\",\"skewSeconds\":40}]},\"quarantine\":{\"values\":7,\"nodes\":"
		     "[{\"name\":\"n\",\"values\":7,\"lastMessage\":\"odd\\u001b[2J\"}]},"),
	      DOCTOR_WARN,
	      WELL AGENTS FRAMES
	      "warn  clocks: 2 nodes off by more than 30s: a, b; the first is 1m35s behind\n"
	      "      Their times are corrected here; set their clocks right (NTP) anyway.\n"
	      "warn  values: 7 could not be and were left out; n: odd?[2J\n"
	      "      They are left out of all answers. Many of them mean a kernel or a machine "
	      "that lies: evenkeel nodes -o json has the last of each node.\n" DATABASE);
}

static void tells_of_pods_that_wait_for_nothing(void **state)
{
#define REFUSED(nudge, waiting)                                                                    \
	STATUS("\"refusedPods\":{\"waiting\":" waiting ",\"nudge\":\"" nudge "\"},")
	static const struct {
		const char *status;
		enum doctor_verdict verdict;
		const char *want;
	} cases[] = {
		{REFUSED("off", "0"), DOCTOR_OK, ""},
		{REFUSED("unused", "2"), DOCTOR_OK, ""},
		{REFUSED("ok", "2"), DOCTOR_OK, ""},
		{REFUSED("off", "2"), DOCTOR_WARN,
		 "warn  refused pods: 2 wait, and kube-scheduler asks again about them up to 5m "
		 "late\n"
		 "      Apply packaging/kubernetes/core/nudge.yaml, and give the aggregator "
		 "--nudge-claim.\n"},
		{REFUSED("forbidden", "0"), DOCTOR_WARN,
		 "warn  refused pods: the claim cannot be changed (forbidden), so kube-scheduler "
		 "asks again about refused pods up to 5m late\n"
		 "      Apply packaging/kubernetes/core/nudge.yaml: the claim of --nudge-claim, "
		 "and "
		 "the Role that lets the aggregator patch it.\n"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char want[2048];

		snprintf(want, sizeof(want), "%s%s", WELL AGENTS FRAMES CLOCKS VALUES DATABASE,
			 cases[i].want);
		check(cases[i].status, cases[i].verdict, want);
	}
}

static void tells_of_the_other_aggregator(void **state)
{
#define PEER(state, refused)                                                                       \
	STATUS("\"peer\":{\"state\":\"" state "\",\"answersAcknowledged\":7,\"answersLate\":1,"    \
	       "\"answersAlone\":2,\"refused\":" refused "},")
#define PLANS(plan, seconds, interval)                                                             \
	STATUS("\"peer\":{\"state\":\"none\",\"plan\":\"" plan "\",\"planSeconds\":" seconds       \
	       ",\"planIntervalSeconds\":" interval "},")
	static const struct {
		const char *status;
		enum doctor_verdict verdict;
		const char *want;
	} cases[] = {
		{PEER("none", "0"), DOCTOR_OK, ""},
		{PEER("together", "0"), DOCTOR_OK,
		 "ok    peer: the other aggregator is told of reservations: 3 of 10 answers went "
		 "out without its acknowledgement\n"},
		{PEER("alone", "2"), DOCTOR_WARN,
		 "warn  peer: the other aggregator is not connected: both may reserve the same "
		 "room\n"
		 "      Does the aggregator of --peer run, with a --peer and the same keys? The "
		 "log has the reason.\n"
		 "warn  peer: 2 frames and memories of plans of the other aggregator are not "
		 "understood\n"
		 "      Use the same version for both aggregators; the logs of both have the "
		 "reason.\n"},
		{PLANS("other", "60", "10"), DOCTOR_OK, ""},
		{PLANS("other", "61", "10"), DOCTOR_WARN,
		 "warn  peer: the other aggregator has planned other drains for 61s\n"
		 "      Have both the same version, options and objects? Until the plans are the "
		 "same, the actuator takes none.\n"},
		{PLANS("other", "240", "120"), DOCTOR_OK, ""},
		{PLANS("unknown", "999", "10"), DOCTOR_OK, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char want[2048];

		snprintf(want, sizeof(want), "%s%s", WELL AGENTS FRAMES CLOCKS VALUES DATABASE,
			 cases[i].want);
		check(cases[i].status, cases[i].verdict, want);
	}
}

static void tells_of_the_database(void **state)
{
	static const struct {
		const char *part;
		enum doctor_verdict verdict;
		const char *want;
	} cases[] = {
		{STATUS("\"database\":{\"state\":\"none\"},"), DOCTOR_OK,
		 "ok    database: none: after a restart windows come back from the agents' rings "
		 "(--state-dir keeps them here, too)\n"},
		{STATUS("\"database\":{\"state\":\"ok\"},"), DOCTOR_OK,
		 "ok    database: nothing to save yet\n"},
		{STATUS("\"database\":{\"state\":\"failing\",\"setAside\":1},"), DOCTOR_FAIL,
		 "fail  database: nothing is being saved\n"
		 "      Is the state directory full, read-only or another's? The log says why. A "
		 "restart now would lose what the agents' rings do not have.\n"
		 "warn  database: 1 damaged or newer database was set aside\n"
		 "      They are in the state directory: keep or delete them.\n"},
		{STATUS("\"database\":{\"state\":\"ok\",\"lastSaveAgeSeconds\":301},"), DOCTOR_WARN,
		 "warn  database: saved 5m01s ago, and should be once a minute\n"
		 "      Is its disk slow? See the log.\n"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char want[2048];

		snprintf(want, sizeof(want), "%s%s", WELL AGENTS FRAMES CLOCKS VALUES,
			 cases[i].want);
		check(cases[i].part, cases[i].verdict, want);
	}
}

static void tells_of_late_views(void **state)
{
	static const char rest[] =
		"ok    kubernetes: standalone: no API is followed, workloads carry their cgroups' "
		"names (--kubeconfig follows one)\n" AGENTS FRAMES CLOCKS VALUES DATABASE;
	char want[2048];
	(void)state;

	snprintf(want, sizeof(want), "%s%s",
		 "fail  view: what is answered was published 31s ago, and should be once in 10s\n"
		 "      The aggregator's loop is stuck or starved: look at its log and its CPU "
		 "limit.\n",
		 rest);
	check(STATUS("\"view\":{\"version\":9,\"ageSeconds\":31},"), DOCTOR_FAIL, want);
	snprintf(want, sizeof(want), "%s%s",
		 "warn  version: the server is 99, this program " EVENKEEL_VERSION "\n"
		 "      Use the same version for both, or some answers are not understood.\n"
		 "warn  view: no state has been published yet\n"
		 "      Nothing was heard since the start: go by what is said of agents "
		 "below.\n",
		 rest);
	check(STATUS("\"version\":\"99\",\"view\":{\"version\":0},"), DOCTOR_WARN, want);
}

/* --- the Kubernetes API ----------------------------------------------------------------------- */

static void check_kubernetes(const char *resources, enum doctor_verdict verdict, const char *want)
{
	struct buf text = BUF_INIT, out = BUF_INIT;
	struct doctor d;
	cJSON *doc;

	buf_printf(&text, "{\"kubernetes\":{\"mode\":\"inCluster\",\"resources\":[%s]}}",
		   resources);
	doc = cJSON_Parse(text.data);
	assert_non_null(doc);
	d = (struct doctor){0};
	doctor_examine_kubernetes(&d, doc);
	doctor_print(&d, false, 0, &out);
	assert_string_equal(out.data, want);
	assert_int_equal(doctor_verdict_of(&d), verdict);
	doctor_fini(&d);
	buf_fini(&out);
	buf_fini(&text);
	cJSON_Delete(doc);
}

#define RESOURCE(name, state, seconds, more)                                                       \
	"{\"resource\":\"" name "\",\"state\":\"" state                                            \
	"\",\"objects\":5,\"stateSeconds\":" seconds more "}"
#define NODES	"{\"resource\":\"nodes\",\"state\":\"synced\",\"objects\":3}"
#define SUMMARY "ok    kubernetes: inCluster, 1 of 2 resources in sync: 3 nodes, "

static void tells_which_rule_is_missing(void **state)
{
	(void)state;
	check_kubernetes(NODES "," RESOURCE("poddisruptionbudgets", "forbidden", "9",
					    ",\"message\":\"no permission\""),
			 DOCTOR_WARN,
			 SUMMARY
			 "0 pods\n"
			 "warn  poddisruptionbudgets: the API does not show them: no permission\n"
			 "      Add to the aggregator's ClusterRole, under rules: - {apiGroups: "
			 "[\"policy\"], resources: [\"poddisruptionbudgets\"], verbs: [\"get\", "
			 "\"list\", \"watch\"]}\n");
	check_kubernetes(NODES "," RESOURCE("pods", "forbidden", "9", ""), DOCTOR_FAIL,
			 SUMMARY
			 "5 pods\n"
			 "fail  pods: the API does not show them\n"
			 "      Add to the aggregator's ClusterRole, under rules: - {apiGroups: "
			 "[\"\"], resources: [\"pods\"], verbs: [\"get\", \"list\", "
			 "\"watch\"]}\n");
}

static void tells_what_is_not_in_sync(void **state)
{
	static const struct {
		const char *resource;
		enum doctor_verdict verdict;
		const char *begins;
	} cases[] = {
		{RESOURCE("jobs", "listing", "999", ""), DOCTOR_WARN,
		 "warn  jobs: being listed for 16m39s, 5 so far\n"},
		{RESOURCE("pods", "listing", "120", ""), DOCTOR_WARN,
		 "warn  pods: being listed for 2m00s, 5 so far\n"},
		{RESOURCE("pods", "listing", "121", ",\"message\":\"refused\""), DOCTOR_FAIL,
		 "fail  pods: being listed for 2m01s, 5 so far: refused\n"},
		{RESOURCE("jobs", "stale", "999", ""), DOCTOR_WARN,
		 "warn  jobs: changes have been missed for 16m39s\n"},
		{RESOURCE("pods", "stale", "300", ",\"message\":\"timed out\""), DOCTOR_WARN,
		 "warn  pods: changes have been missed for 5m00s: timed out\n"},
		{RESOURCE("pods", "stale", "301", ""), DOCTOR_FAIL,
		 "fail  pods: changes have been missed for 5m01s\n"},
		{RESOURCE("elasticquotas", "absent", "9", ""), DOCTOR_OK,
		 "ok    elasticquotas: the cluster has no such resource\n"},
		{RESOURCE("jobs", "absent", "9", ""), DOCTOR_WARN,
		 "warn  jobs: the cluster has no such resource\n"},
		{RESOURCE("jobs", "synced", "9",
			  ",\"skipped\":2,\"skippedLast\":\"Job a/b: spec: odd\""),
		 DOCTOR_WARN, "warn  jobs: 2 could not be read; the last: Job a/b: spec: odd\n"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf text = BUF_INIT, out = BUF_INIT;
		struct doctor d;
		cJSON *doc;

		buf_printf(&text,
			   "{\"kubernetes\":{\"mode\":\"kubeconfig\",\"resources\":[" NODES
			   ",%s]}}",
			   cases[i].resource);
		doc = cJSON_Parse(text.data);
		d = (struct doctor){0};
		doctor_examine_kubernetes(&d, doc);
		doctor_print(&d, false, 0, &out);
		assert_memory_equal(strchr(out.data, '\n') + 1, cases[i].begins,
				    strlen(cases[i].begins));
		assert_int_equal(doctor_verdict_of(&d), cases[i].verdict);
		doctor_fini(&d);
		cJSON_Delete(doc);
		buf_fini(&out);
		buf_fini(&text);
	}
}

#define UNREACHED(name, seconds)                                                                   \
	"{\"resource\":\"" name "\",\"state\":\"listing\",\"objects\":0,\"stateSeconds\":" seconds \
	",\"message\":\"exec: tool not found\"}"
#define NONE_IN_SYNC                                                                               \
	"      Nothing is known of the cluster's objects until one is: what keeps them away is "   \
	"said below.\n"
#define IN_CLUSTER_ADVICE                                                                          \
	"      It is tried again by itself. By what the message says, check the aggregator's "     \
	"service account and whether it reaches the API server.\n"

/* What keeps every resource away is one finding; what keeps others away is another. */
static void tells_once_what_is_alike(void **state)
{
	(void)state;
	check_kubernetes(
		UNREACHED("jobs", "2") "," UNREACHED("nodes", "5") "," UNREACHED(
			"pods", "4") "," RESOURCE("services", "stale", "9",
						  "") "," UNREACHED("namespaces", "3"),
		DOCTOR_FAIL,
		"warn  kubernetes: inCluster, 0 of 5 resources in sync: 0 nodes, 0 "
		"pods\n" NONE_IN_SYNC
		"fail  kubernetes: 4 resources (jobs, nodes, pods and 1 more) being listed "
		"for 5s, 0 so far: exec: tool not found\n" IN_CLUSTER_ADVICE
		"warn  services: changes have been missed for 9s\n"
		"      It is tried again by itself. Does the API server answer, and is the "
		"token still good?\n");
	/* Without nodes and pods answers are less than they could be, but there are some. */
	check_kubernetes(NODES "," UNREACHED("jobs", "2") "," UNREACHED("services", "2"),
			 DOCTOR_WARN,
			 "ok    kubernetes: inCluster, 1 of 3 resources in sync: 3 nodes, 0 pods\n"
			 "warn  kubernetes: 2 resources (jobs, services) being listed for 2s, 0 so "
			 "far: exec: tool not found\n" IN_CLUSTER_ADVICE);
	/* A list that merely takes its time, from the first second on. */
	check_kubernetes(NODES ",{\"resource\":\"pods\",\"state\":\"listing\",\"objects\":0,"
			       "\"stateSeconds\":1}",
			 DOCTOR_WARN,
			 SUMMARY "0 pods\n"
				 "warn  pods: being listed for 1s, 0 so far\n"
				 "      Answers are incomplete until it is done. If it lasts, see "
				 "the aggregator's log.\n");
	/* Some came before it failed. */
	check_kubernetes(NODES "," RESOURCE("pods", "listing", "1", ",\"message\":\"reset\""),
			 DOCTOR_WARN,
			 SUMMARY
			 "5 pods\n"
			 "warn  pods: being listed for 1s, 5 so far: reset\n" IN_CLUSTER_ADVICE);
}

static void tells_of_an_unheard_api(void **state)
{
	(void)state;
	check_kubernetes(
		"", DOCTOR_FAIL,
		"fail  kubernetes: inCluster, but nothing has been heard of the API yet\n"
		"      Can the aggregator reach the API server? Its log says what fails.\n");
}

/* --- a snapshot ------------------------------------------------------------------------------- */

static void check_snapshot(const char *status, const char *no_usage, enum doctor_verdict verdict,
			   const char *want)
{
	cJSON *doc = cJSON_Parse(status);
	struct buf out = BUF_INIT;
	struct doctor d;

	assert_non_null(doc);
	d = (struct doctor){0};
	doctor_examine_snapshot(&d, doc, no_usage);
	doctor_print(&d, false, 0, &out);
	assert_string_equal(out.data, want);
	assert_int_equal(doctor_verdict_of(&d), verdict);
	doctor_fini(&d);
	buf_fini(&out);
	cJSON_Delete(doc);
}

#define IN_SNAPSHOT(resource)                                                                      \
	"\"kubernetes\":{\"mode\":\"snapshot\",\"resources\":[{\"resource\":\"nodes\",\"state\":"  \
	"\"snapshot\",\"objects\":3}," resource "]},"

/* Nothing of agents, clocks, frames and the database: there are none. */
static void tells_what_a_snapshot_holds(void **state)
{
	static const char half[] =
		"ok    kubernetes: snapshot, 1 of 2 resources in it: 3 nodes, 0 pods\n";
	char want[1024];
	(void)state;

	snprintf(want, sizeof(want), "%s%s", half, "warn  usage: none: give --usage\n");
	check_snapshot(STATUS(IN_SNAPSHOT("{\"resource\":\"jobs\",\"state\":\"none\",\"message\":"
					  "\"no Job is in the files\"}")),
		       "none: give --usage", DOCTOR_WARN, want);
	check_snapshot(STATUS(""), NULL, DOCTOR_OK,
		       "ok    kubernetes: no API was followed when the snapshot was taken\n"
		       "ok    usage: 3 of 3 nodes are measured\n" VALUES);
	snprintf(want, sizeof(want), "%s%s", half,
		 "warn  jobs: being listed for 3s, 1 so far\n"
		 "      The snapshot was taken before that was done: take another.\n"
		 "ok    usage: 2 of 4 nodes are measured\n"
		 "warn  usage: 1 node measured more than 5m before the snapshot's moment: e\n"
		 "      They take no new pods by score.\n"
		 "warn  usage: 2 nodes not measured: a, b\n"
		 "      They count as full: give measurements that have them.\n" VALUES);
	check_snapshot(
		STATUS(IN_SNAPSHOT(
			"{\"resource\":\"jobs\",\"state\":\"listing\","
			"\"objects\":1,\"stateSeconds\":3}") "\"agents\":{\"nodes\":4,\"fresh\":1,"
							     "\"expired\":1,\"none\":2,"
							     "\"examples\":{\"expired\":[\"e\"],"
							     "\"none\":[\"a\",\"b\"]}},"),
		NULL, DOCTOR_WARN, want);
}

/* --- forms ------------------------------------------------------------------------------------ */

static void writes_json(void **state)
{
	struct buf out = BUF_INIT;
	struct doctor d;
	(void)state;

	d = (struct doctor){0};
	doctor_add(&d, DOCTOR_OK, "view", NULL, "fine");
	doctor_add(&d, DOCTOR_WARN, "jobs", "do \"this\"", "%d odd", 2);
	doctor_print_json(&d, &out);
	assert_string_equal(
		out.data, "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Diagnosis\","
			  "\"verdict\":\"warn\",\"checks\":[{\"verdict\":\"ok\",\"what\":\"view\","
			  "\"detail\":\"fine\"},{\"verdict\":\"warn\",\"what\":\"jobs\","
			  "\"detail\":\"2 odd\",\"advice\":\"do \\\"this\\\"\"}]}\n");
	buf_clear(&out);
	doctor_print(&d, true, 0, &out);
	assert_string_equal(out.data, "\033[32mok\033[0m    view: fine\n"
				      "\033[33mwarn\033[0m  jobs: 2 odd\n"
				      "      do \"this\"\n");
	buf_clear(&out);
	doctor_print(&d, false, 16, &out);
	assert_string_equal(out.data, "ok    view: fine\n"
				      "warn  jobs: 2\n"
				      "      odd\n"
				      "      do \"this\"\n");
	doctor_fini(&d);
	buf_fini(&out);
}

/* A server may say anything. */
static void survives_odd_shapes(void **state)
{
	static const char *const odd[] = {
		"{}",
		"[]",
		"{\"view\":1,\"agents\":[],\"clock\":\"x\",\"frames\":null,\"database\":{\"state\":"
		"7}}",
		"{\"kubernetes\":{\"mode\":\"x\",\"resources\":[1,null,{},[],{\"resource\":3,"
		"\"state\":\"stale\",\"stateSeconds\":\"y\"}]}}",
		"{\"agents\":{\"nodes\":-1,\"late\":1e300,\"examples\":{\"late\":[1,{\"name\":2}]}}"
		","
		"\"clock\":{\"flagged\":1},\"quarantine\":{\"values\":3}}",
	};
	(void)state;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		cJSON *doc = cJSON_Parse(odd[i]);
		struct buf out = BUF_INIT;
		struct doctor d;

		assert_non_null(doc);
		d = (struct doctor){0};
		doctor_examine(&d, doc);
		doctor_print(&d, false, 0, &out);
		assert_true(out.len > 0);
		doctor_fini(&d);
		buf_fini(&out);
		cJSON_Delete(doc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_well),
		cmocka_unit_test(tells_of_agents),
		cmocka_unit_test(tells_of_access),
		cmocka_unit_test(tells_of_frames),
		cmocka_unit_test(tells_of_clocks_and_values),
		cmocka_unit_test(tells_of_pods_that_wait_for_nothing),
		cmocka_unit_test(tells_of_the_other_aggregator),
		cmocka_unit_test(tells_of_the_database),
		cmocka_unit_test(tells_of_late_views),
		cmocka_unit_test(tells_which_rule_is_missing),
		cmocka_unit_test(tells_what_is_not_in_sync),
		cmocka_unit_test(tells_once_what_is_alike),
		cmocka_unit_test(tells_of_an_unheard_api),
		cmocka_unit_test(tells_what_a_snapshot_holds),
		cmocka_unit_test(writes_json),
		cmocka_unit_test(survives_odd_shapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
