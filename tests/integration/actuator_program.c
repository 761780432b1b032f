/* SPDX-License-Identifier: Apache-2.0 */
/* The program of the actuator: it takes the Lease after 15 s, and does what its options allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shared/document.h"
#include "shared/mem.h"
#include "tests/kube_peer.h"
#include "tests/process.h"

enum { RENEWALS = 999 }; /* one each 2 s, for longer than the test may take */

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define GROUP	  "/apis/evenkeel.io/v1"
#define REPORT	  "PUT " GROUP "/acts/current/report"
#define REQUEST	  "{\"id\":\"r\",\"state\":\"taken\",\"action\":\"drain\",\"nodes\":[\"n7\"]}"
#define LEASE	  "/leases/evenkeel-actuator"
#define RENEWAL	  "PATCH /apis/coordination.k8s.io/v1/namespaces/evenkeel" LEASE
#define PATCH	  "PATCH /api/v1/nodes/n1?fieldManager=evenkeel-actuator-5"
/* A drain whose taint was removed. */
#define NODE                                                                                       \
	"{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":\"41\",\"annotations\":" \
	"{\"evenkeel.io/drain\":\"{\\\"plan\\\":\\\"p\\\",\\\"holder\\\":\\\"h\\\",\\\"since\\\":" \
	"\\\"2026-01-01T00:00:00Z\\\",\\\"phase\\\":\\\"tainted\\\",\\\"cordoned\\\":true}\"}},"   \
	"\"spec\":{\"unschedulable\":true}}"

/* Side by side, each with a server of its own. */
static struct run {
	const char *act, *dry_run; /* options */
	bool acts; /* it rolls the node back, else it ends */
	bool reclaims, slacks;

	struct kube_peer *peer;
	char *holder; /* NULL: of no Lease yet */
	int transitions; /* of the Lease */
	pid_t pid;
	bool done;
	int status;
} runs[] = {
	{.act = "--act=drain", .dry_run = "--dry-run=false", .acts = true},
	{.act = "--act=reclaim,slack", .dry_run = "--dry-run=false", true, true, true},
	{.act = "--act=drain,reclaim", .dry_run = "--dry-run"},
};

static void start(struct run *r, const char *folder)
{
	char *kubeconfig = mem_printf("%s/%s", folder, r->act),
	     *log = mem_printf("%s.log", kubeconfig);
	char *option = mem_printf("--kubeconfig=%s", kubeconfig);
	char *argv[] = {(char *)program_path("evenkeel-actuator"), option, (char *)r->act,
			(char *)r->dry_run, NULL};

	r->transitions = 5;
	r->peer = kube_peer_new();
	kube_peer_write_config(r->peer, kubeconfig);
	kube_peer_script(r->peer, PATCH, &(struct peer_answer){.body = NODE});
	for (int i = 0; i < 9; i++) {
		kube_peer_script(r->peer, "/api/v1/nodes?",
				 &(struct peer_answer){.body = "{\"items\":[" NODE "]}"});
		kube_peer_script(r->peer, "/api/v1/nodes/n1", &(struct peer_answer){.body = NODE});
	}
	kube_peer_script(r->peer, REPORT,
			 &(struct peer_answer){.body = "{\"requests\":[" REQUEST "]}"});
	for (int i = 0; i < 2 * RENEWALS; i++)
		kube_peer_script(r->peer, LEASE, &(struct peer_answer){.then = PEER_HOLD});
	r->pid = process_start(log, argv);
	free(option);
	free(kubeconfig);
	free(log);
}

/* Answers a held request of the Lease with the holder of the first renewal. */
static void serve_lease(struct run *r)
{
	char *renewal, *body;
	cJSON *json;

	if (!r->holder && kube_peer_count(r->peer, RENEWAL)) {
		renewal = kube_peer_body(r->peer, RENEWAL, 0);
		json = cJSON_Parse(renewal);
		r->holder = mem_strdup(document_text_or(json, "spec.holderIdentity", "none"));
		cJSON_Delete(json);
		free(renewal);
	}
	body = mem_printf(
		"{\"metadata\":{\"resourceVersion\":\"4\"},\"spec\":{\"holderIdentity\":\"%s\","
		"\"leaseTransitions\":%d}}",
		r->holder ? r->holder : "", r->transitions);
	if (kube_peer_send(r->peer, LEASE, body))
		kube_peer_end(r->peer, LEASE);
	free(body);
}

/* The Lease gets another transition once the request is taken. True: the newest report lacks it then. */
static bool forgets_requests(struct run *r)
{
	char *report = kube_peer_body(r->peer, REPORT, kube_peer_count(r->peer, REPORT) - 1);
	bool knows = strstr(report, "\"id\":\"r\"");

	if (knows)
		r->transitions = 6;
	free(report);
	return r->transitions == 6 && !knows;
}

/* A step is over when the report is sent. */
static bool is_done(struct run *r)
{
	int status;

	if (r->done)
		return true;
	if (r->acts)
		return forgets_requests(r) && kube_peer_count(r->peer, PATCH) &&
		       kube_peer_count(r->peer, GROUP "/quotas/reclaim") >= r->reclaims &&
		       kube_peer_count(r->peer, GROUP "/slacks") >= r->slacks;
	if (waitpid(r->pid, &status, WNOHANG) != r->pid)
		return false;
	r->status = WEXITSTATUS(status);
	r->done = true;
	return true;
}

static bool all_are_done(void *ctx)
{
	size_t done = 0;

	(void)ctx;
	for (size_t i = 0; i < COUNT(runs); i++) {
		done += is_done(&runs[i]);
		serve_lease(&runs[i]);
	}
	return done == COUNT(runs);
}

static void programs_do_what_options_allow(void **state)
{
	char *folder = folder_make();

	(void)state;
	for (size_t i = 0; i < COUNT(runs); i++)
		start(&runs[i], folder);
	assert_true(await(all_are_done, NULL, 150));
	for (size_t i = 0; i < COUNT(runs); i++) {
		struct run *r = &runs[i];
		char *body = kube_peer_body(r->peer, PATCH, 0);

		/* A dry run finds a drain, writes nothing, and ends. */
		assert_int_equal(r->acts ? process_stop(r->pid, SIGTERM) : r->status, !r->acts);
		assert_int_equal(kube_peer_count(r->peer, "PATCH /api/v1/nodes") > 0, r->acts);
		if (r->acts)
			assert_non_null(strstr(body, "rolledBack"));
		assert_int_equal(kube_peer_count(r->peer, GROUP "/quotas/reclaim") > 0,
				 r->reclaims);
		assert_int_equal(kube_peer_count(r->peer, GROUP "/slacks") > 0, r->slacks);
		free(body);
		free(r->holder);
		kube_peer_free(r->peer);
	}
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(programs_do_what_options_allow)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
