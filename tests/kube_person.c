/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_person.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "aggregator/api/api_group.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

int kube_person_run(const char *kubeconfig, const char *const *words, struct buf *out)
{
	char *argv[16] = {(char *)program_path("evenkeel"), (char *)"--kubeconfig",
			  (char *)kubeconfig, (char *)"--timeout=30s"};
	struct buf err = BUF_INIT;
	int code;

	for (size_t n = 4; *words; words++, n++)
		argv[n] = (char *)*words;
	buf_clear(out);
	code = process_run(argv, out, &err);
	buf_add_str(out, err.data ? err.data : "");
	buf_fini(&err);
	return code;
}

void kube_person_runs(const char *kubeconfig, const char *const *words, int code, const char *says)
{
	struct buf out = BUF_INIT;
	int got = kube_person_run(kubeconfig, words, &out);

	if (got != code || !strstr(out.data, says))
		fail_msg("%s: %d instead of %d: %.600s", words[0], got, code, out.data);
	buf_fini(&out);
}

/* --- requests --------------------------------------------------------------------------------- */

static size_t collect(char *data, size_t size, size_t count, void *out)
{
	buf_add(out, data, size * count);
	return size * count;
}

/* A request through the API server with the token of a person's kubeconfig; the status. */
static long send_as(struct kube_testbed *bed, const char *kubeconfig, const char *method,
		    const char *path, const char *body, struct buf *out)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *curl = curl_easy_init();
	struct buf text = BUF_INIT;
	char *url, *bearer, *token;
	long status = 0;

	assert_int_equal(file_read(kubeconfig, 1 << 20, &text, NULL), 0);
	token = strstr(text.data, "token: ") + strlen("token: ");
	bearer = mem_printf("Authorization: Bearer %.*s", (int)strcspn(token, "}"), token);
	headers = curl_slist_append(headers, bearer);
	url = mem_printf("https://127.0.0.1:%d%s", bed->plane->apis[0].port, path);
	buf_clear(out);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
	if (body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	buf_add_str(out, "");
	curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	buf_fini(&text);
	free(url);
	free(bearer);
	return status;
}

static void expect_answer(struct kube_testbed *bed, const char *kubeconfig, const char *method,
			  const char *path, const char *body, long status, const char *says)
{
	struct buf out = BUF_INIT;
	long got = send_as(bed, kubeconfig, method, path, body, &out);

	if (got != status || !strstr(out.data, says))
		fail_msg("%s %s: %ld instead of %ld: %.400s", method, path, got, status, out.data);
	buf_fini(&out);
}

/* --- the actuator's mailbox --------------------------------------------------------------------- */

struct waiting {
	struct kube_testbed *bed;
	char id[32]; /* of the request; "": there is none */
};

static bool is_asked(void *ctx)
{
	struct waiting *w = ctx;
	struct buf out = BUF_INIT;
	cJSON *act;
	const cJSON *r;

	control_plane_send(w->bed->plane, "GET", "/apis/evenkeel.io/v1/acts", NULL, &out);
	act = cJSON_Parse(out.data ? out.data : "");
	cJSON_ArrayForEach (r, json_at(act, "requests"))
		if (strcmp(cJSON_GetStringValue(json_at(r, "state")), "waiting") == 0)
			snprintf(w->id, sizeof(w->id), "%s",
				 cJSON_GetStringValue(json_at(r, "id")));
	cJSON_Delete(act);
	buf_fini(&out);
	return w->id[0];
}

static void make_actuator_role(struct kube_testbed *bed)
{
	control_plane_must(
		bed->plane, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"{\"metadata\":{\"name\":\"reports\"},\"rules\":[{\"apiGroups\":["
		"\"evenkeel.io\"],\"resources\":[\"acts/report\"],\"verbs\":[\"update\"]},{"
		"\"apiGroups\":[\"evenkeel.io\"],\"resources\":[\"drains/history\"],"
		"\"verbs\":[\"create\"]}]}");
	control_plane_bind(bed->plane, NULL, "ClusterRole", "reports", "ServiceAccount", "robot");
	control_plane_bind(bed->plane, NULL, "ClusterRole", "evenkeel-operator", "ServiceAccount",
			   "olga");
}

void kube_person_try_acts(struct kube_testbed *bed, const char *viewer)
{
	static const char wave[] = "{\"kind\":\"WaveReport\",\"plan\":\"w-1\",\"begin\":\"2026-01-"
				   "31T12:00:00Z\",\"end\":"
				   "\"2026-01-31T12:01:00Z\",\"outcome\":\"drained\"}";
	char *olga = control_plane_person(bed->plane, "olga");
	char *robot = control_plane_person(bed->plane, "robot");
	char *log = mem_printf("%s/olga.log", bed->folder), *as, *report;
	struct waiting request = {.bed = bed};
	char *argv[] = {(char *)program_path("evenkeel"), NULL, (char *)"act", (char *)"pause",
			NULL};
	int status;
	pid_t pid;

	make_actuator_role(bed);
	kube_person_runs(viewer, WORDS("act", "status"), 4, "no actuator has reported");
	kube_person_runs(
		viewer, WORDS("act", "pause"), 1,
		"resources: [acts], verbs: [create]}; the ClusterRole evenkeel-operator has it");
	kube_person_runs(robot, WORDS("act", "pause"), 1, "resources: [acts], verbs: [create]");
	kube_person_runs(olga, WORDS("act", "undo", "elsewhere"), 4,
			 "there is no node \"elsewhere\"");
	as = argv[1] = mem_printf("--kubeconfig=%s", olga);
	pid = process_start(log, argv);
	assert_true(await(is_asked, &request, 30));
	report = mem_printf(
		"{\"holder\":\"robot-1\",\"transitions\":1,\"paused\":true,\"requests\":[{"
		"\"id\":\"%s\",\"state\":\"done\"}]}",
		request.id);
	expect_answer(bed, olga, "PUT", API_GROUP_ACT_REPORT, report, 403, "acts/report");
	expect_answer(bed, olga, "POST", API_GROUP_WAVE_REPORT, wave, 403, "drains/history");
	expect_answer(bed, robot, "PUT", API_GROUP_ACT_REPORT, report, 200, "\"kind\":\"Act\"");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_answer(bed, robot, "GET", "/apis/evenkeel.io/v1/nodes", NULL, 403, "forbidden");
	expect_answer(bed, robot, "PUT", API_GROUP_ACT_REPORT, "{\"holder\":\"robot-1\"}", 400,
		      "transitions");
	expect_answer(bed, viewer, "GET", "/apis/evenkeel.io/v1/acts", NULL, 200,
		      "\"user\":\"system:serviceaccount:default:olga\"");
	expect_answer(bed, viewer, "POST", API_GROUP_WAVE_REPORT, wave, 403, "drains/history");
	expect_answer(bed, robot, "POST", API_GROUP_WAVE_REPORT, wave, 200, "wave w-1 drained");
	kube_person_runs(viewer, WORDS("act", "history"), 0, "w-1   drained");
	kube_person_runs(viewer, WORDS("act", "status"), 0, "robot-1 reported");
	free(olga);
	free(robot);
	free(log);
	free(as);
	free(report);
}
