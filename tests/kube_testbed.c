/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_testbed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregator/api/api_group.h"
#include "shared/mem.h"
#include "tests/kube_truth.h"
#include "tests/process.h"
#include "tests/stack.h"

/*
 * Changes go through controllers, the scheduler and a watch, on a machine that may be busy with
 * other tests.
 */
#define TELL_SECONDS 300
/* The same; and a right or a resource that is missing is looked for once a minute. */
#define STATE_SECONDS 300
/* Small, so that lists have several pages. */
#define PAGE "150"

/* --- testbed ---------------------------------------------------------------------------------- */

/* The folder of the programs of a control plane; NULL: there is none. */
static char *find_programs(void)
{
	char *folder = kube_version_programs();
	char *program = mem_printf("%s/kube-apiserver", folder);

	if (access(program, X_OK)) {
		free(folder);
		folder = NULL;
	}
	free(program);
	return folder;
}

static void write_key(const char *path)
{
	unsigned char key[KEY_LEN];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	randombytes_buf(key, sizeof(key));
	if (fd < 0 || write(fd, key, sizeof(key)) != sizeof(key)) {
		perror(path);
		abort();
	}
	close(fd);
}

struct kube_testbed *kube_testbed_new_bare(void)
{
	char *programs = find_programs();
	struct kube_testbed *s;

	if (!programs) {
		printf("SKIP: no control plane here: tests/kube/build makes one\n");
		return NULL;
	}
	s = mem_zalloc(1, sizeof(*s));
	s->folder = folder_make();
	s->key_path = mem_printf("%s/key", s->folder);
	write_key(s->key_path);
	s->plane = control_plane_new(programs);
	free(programs);
	return s;
}

struct kube_testbed *kube_testbed_new(void)
{
	struct kube_testbed *s = kube_testbed_new_bare();

	if (s)
		control_plane_start_controllers(s->plane);
	return s;
}

static char *log_path(const struct kube_testbed *s, int i)
{
	return mem_printf("%s/aggregator-%d.log", s->folder, i);
}

static void print_log(const struct kube_testbed *s, int i)
{
	char *path = log_path(s, i), line[512];
	FILE *log = fopen(path, "r");

	while (log && fgets(line, sizeof(line), log))
		fprintf(stderr, "    aggregator %d: %s", i, line);
	if (log)
		fclose(log);
	free(path);
}

void kube_testbed_free(struct kube_testbed *s, bool failed)
{
	for (int i = 0; i < KUBE_AGGREGATORS; i++) {
		if (s->aggregators[i].pid)
			process_stop(s->aggregators[i].pid, SIGKILL);
		if (failed)
			print_log(s, i);
	}
	control_plane_free(s->plane, failed);
	folder_remove(s->folder);
	free(s->key_path);
	free(s);
}

/* --- accounts --------------------------------------------------------------------------------- */

char *kube_testbed_account(struct kube_testbed *bed, const char *namespace, const char *account)
{
	char *path = mem_printf("%s/%s.conf", bed->folder, account);
	char *request_path =
		mem_printf("/api/v1/namespaces/%s/serviceaccounts/%s/token", namespace, account);
	struct buf answer = BUF_INIT;
	const char *token;
	cJSON *request;
	FILE *file;

	assert_int_equal(control_plane_send(bed->plane, "POST", request_path,
					    "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":"
					    "\"TokenRequest\",\"spec\":{}}",
					    &answer),
			 201);
	request = cJSON_Parse(answer.data);
	token = cJSON_GetStringValue(json_at(request, "status.token"));
	assert_non_null(token);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file,
		"apiVersion: v1\nkind: Config\ncurrent-context: c\n"
		"clusters: [{name: c, cluster: {server: \"https://127.0.0.1:%d\", "
		"certificate-authority: \"%s/api-0/apiserver.crt\"}}]\n"
		"users: [{name: u, user: {token: \"%s\"}}]\n"
		"contexts: [{name: c, context: {cluster: c, user: u}}]\n",
		bed->plane->apis[0].port, bed->plane->folder, token);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
	cJSON_Delete(request);
	buf_fini(&answer);
	free(request_path);
	return path;
}

/* --- aggregators ----------------------------------------------------------------------------- */

/* An aggregator that starts. */
struct start {
	pid_t pid;
	const char *url; /* of its /readyz */
	bool ended;
};

static bool is_ready(void *ctx)
{
	struct start *s = ctx;
	siginfo_t info = {0};
	struct buf body = BUF_INIT;
	long status = http_get(s->url, &body);

	buf_fini(&body);
	s->ended = waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
	return status == 200 || s->ended;
}

/* False: it does not become ready, or ends, and is gone. */
static bool start_on_ports(struct kube_testbed *s, int i, const char *kubeconfig,
			   const char *const *more)
{
	struct kube_aggregator *a = &s->aggregators[i];
	char *program = mem_strdup(program_path("evenkeel-aggregator")), *log = log_path(s, i);
	char *listen = mem_printf("127.0.0.1:%d", a->http_port);
	char *ingest = mem_printf("tcp://127.0.0.1:%d", a->ingest_port);
	char *url = mem_printf("http://%s/readyz", listen);
	char *argv[24] = {program,
			  (char *)"--listen",
			  listen,
			  (char *)"--ingest",
			  ingest,
			  (char *)"--key-file",
			  s->key_path,
			  (char *)"--kubeconfig",
			  (char *)kubeconfig};
	struct start start = {.url = url};
	bool ready;

	for (size_t n = 9; *more; n++, more++) {
		assert_true(n < 23);
		argv[n] = (char *)*more;
	}
	start.pid = a->pid = process_start(log, argv);
	ready = a->pid > 0 && await(is_ready, &start, TELL_SECONDS) && !start.ended;
	if (!ready && a->pid > 0) {
		process_stop(a->pid, SIGKILL);
		a->pid = 0;
	}
	free(program);
	free(log);
	free(listen);
	free(ingest);
	free(url);
	return ready;
}

/*
 * Ports that were free a moment ago may be another test's by now: then others are tried, where any
 * will do.
 */
void kube_testbed_start_aggregator_with(struct kube_testbed *s, int i, const char *kubeconfig,
					const char *const *more)
{
	struct kube_aggregator *a = &s->aggregators[i];
	bool anew = !a->http_port, ready = false;

	for (int attempts = anew ? 3 : 1; attempts > 0 && !ready; attempts--) {
		if (anew) {
			a->http_port = free_port();
			a->ingest_port = free_port();
		}
		ready = start_on_ports(s, i, kubeconfig, more);
	}
	if (!ready) {
		print_log(s, i);
		fail_msg("aggregator %d does not become ready", i);
	}
}

void kube_testbed_start_aggregator(struct kube_testbed *s, int i, const char *kubeconfig)
{
	static const char *const none[] = {NULL};

	kube_testbed_start_aggregator_with(s, i, kubeconfig, none);
}

void kube_testbed_kill_aggregator(struct kube_testbed *s, int i)
{
	process_stop(s->aggregators[i].pid, SIGKILL);
	s->aggregators[i].pid = 0;
}

int kube_testbed_stop_aggregator(struct kube_testbed *s, int i)
{
	int status = process_stop(s->aggregators[i].pid, SIGTERM);

	s->aggregators[i].pid = 0;
	return status;
}

static cJSON *get_behind(const struct kube_testbed *s, const char *path)
{
	char *remote = api_group_remote_path(path);
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (remote && control_plane_send(s->plane, "GET", remote, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	buf_fini(&answer);
	free(remote);
	return json;
}

cJSON *kube_testbed_get(const struct kube_testbed *s, int i, const char *path)
{
	cJSON *json;
	char *url;

	if (s->behind)
		return get_behind(s, path);
	url = mem_printf("http://127.0.0.1:%d%s", s->aggregators[i].http_port, path);
	json = http_get_json(url);
	free(url);
	return json;
}

long kube_testbed_post(const struct kube_testbed *s, int i, const char *path, const char *json,
		       cJSON **answer)
{
	char *url = mem_printf("http://127.0.0.1:%d%s", s->aggregators[i].http_port, path);
	struct buf body = BUF_INIT;
	long status = http_post(url, json, &body);

	*answer = body.data ? cJSON_Parse(body.data) : NULL;
	buf_fini(&body);
	free(url);
	return status;
}

/* Moves the items of a page to the others; false when there is no page. */
static bool take_items(cJSON *items, cJSON *page)
{
	cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "items");

	while (from && from->child)
		cJSON_AddItemToArray(items, cJSON_DetachItemViaPointer(from, from->child));
	return from;
}

cJSON *kube_testbed_items(const struct kube_testbed *s, int i, const char *path)
{
	char *next = mem_printf("%s?limit=" PAGE, path);
	cJSON *items = cJSON_CreateArray();

	while (next) {
		cJSON *page = kube_testbed_get(s, i, next);
		const char *token = cJSON_GetStringValue(json_at(page, "continue"));

		free(next);
		next = token ? mem_printf("%s?limit=" PAGE "&continue=%s", path, token) : NULL;
		if (!take_items(items, page)) {
			cJSON_Delete(items);
			items = NULL;
		}
		cJSON_Delete(page);
	}
	return items;
}

/* --- what they tell -------------------------------------------------------------------------- */

struct expected {
	struct kube_testbed *bed;
	int aggregator;
	size_t bound;
	struct buf why; /* of the last look */
};

static void compare(struct expected *e, const char *path, const cJSON *truth)
{
	cJSON *items = kube_testbed_items(e->bed, e->aggregator, path);
	size_t differences;

	if (!items) {
		buf_printf(&e->why, "%s: no answer\n", path);
		return;
	}
	differences = kube_truth_compare(truth, items, &e->why);
	if (differences)
		buf_printf(&e->why, "%s: %zu of %d items differ\n", path, differences,
			   cJSON_GetArraySize(truth));
	cJSON_Delete(items);
}

static bool is_told(void *ctx)
{
	struct expected *e = ctx;
	cJSON *list = control_plane_kubectl_get(e->bed->plane, "nodes,pods,replicasets,jobs");
	struct kube_truth truth;

	buf_clear(&e->why);
	kube_truth_read(&truth, list);
	if (truth.bound != e->bound) {
		buf_printf(&e->why, "kubectl reports %zu pods with a node, not %zu\n", truth.bound,
			   e->bound);
	} else {
		compare(e, "/v1/nodes", truth.nodes);
		compare(e, "/v1/pods", truth.pods);
	}
	if (!e->why.len)
		print_message("          %d nodes and %d pods are told as kubectl reports them\n",
			      cJSON_GetArraySize(truth.nodes), cJSON_GetArraySize(truth.pods));
	kube_truth_fini(&truth);
	cJSON_Delete(list);
	return !e->why.len;
}

void kube_testbed_expect(struct kube_testbed *s, int i, size_t bound)
{
	struct expected e = {s, i, bound, BUF_INIT};

	if (!control_plane_await(s->plane, is_told, &e, s->lost ? 0 : TELL_SECONDS)) {
		s->lost = true;
		fail_msg("%s", e.why.data);
	}
	buf_fini(&e.why);
}

struct expected_state {
	const struct kube_testbed *bed;
	int aggregator;
	const char *resource, *state;
	cJSON *found; /* what is told of the resource at the last look */
};

static bool is_in_state(void *ctx)
{
	struct expected_state *e = ctx;
	cJSON *status = kube_testbed_get(e->bed, e->aggregator, "/v1/status");
	const cJSON *r;
	const char *state;

	cJSON_Delete(e->found);
	e->found = NULL;
	cJSON_ArrayForEach (r, json_at(status, "kubernetes.resources")) {
		const char *name = cJSON_GetStringValue(json_at(r, "resource"));

		if (name && strcmp(name, e->resource) == 0)
			e->found = cJSON_Duplicate(r, true);
	}
	cJSON_Delete(status);
	state = cJSON_GetStringValue(json_at(e->found, "state"));
	return state && strcmp(state, e->state) == 0;
}

cJSON *kube_testbed_expect_state(struct kube_testbed *s, int i, const char *resource,
				 const char *state)
{
	struct expected_state e = {s, i, resource, state, NULL};

	if (!await(is_in_state, &e, s->lost ? 0 : STATE_SECONDS)) {
		char *found = e.found ? cJSON_PrintUnformatted(e.found) : NULL;

		s->lost = true;
		fail_msg("%s is not %s, but %s", resource, state, found ? found : "not told of");
	}
	return e.found;
}

double kube_testbed_waited_s(const struct kube_testbed *s)
{
	const struct control_plane *c = s->plane;
	const pid_t pids[] = {c->etcd, c->apis[0].pid, c->scheduler, c->controllers, getpid()};
	double sum = 0;

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++)
		sum += pids[i] ? process_cpu(pids[i]).waited_s : 0;
	return sum;
}
