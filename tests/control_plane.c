/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why: what a client of the Kubernetes API must stand, and whether it has understood what it heard,
 * only a real API server can say. How: the programs that tests/kube/build made run as children of
 * the test, on free ports of the loopback, with everything they write in one temporary folder:
 *
 *     etcd  <-  API server 0  <-  scheduler, controllers, kubectl, the aggregator under test
 *           <-  API server 1      a second door to the same objects, for what happens behind a client's back
 *
 * There is no kubelet: nodes are objects of the API, and what it would report the test writes to
 * their status. So the admission plugins and controllers that wait for a kubelet, or for tokens,
 * are off; they are on for a test that brings nodes (tests/node_bed.h). The API server's own
 * certificate is its authority, as clients see it, and its key signs the tokens of service
 * accounts.
 *
 * A free port is free when it is asked for; another program may take it before its child does. Then
 * the child ends, and the test says so. On shutdown children are killed, in the reverse order; all
 * they know lies in the folder that goes, too.
 */
#include "tests/control_plane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"

#define RESTRICTED_TOKEN "restricted-token"
#define ACCOUNTS	 "/api/v1/namespaces/default/serviceaccounts"
#define RBAC		 "/apis/rbac.authorization.k8s.io/v1"
/* Generous: a machine with two busy cores takes 20 s at times. */
#define READY_SECONDS 120
#define LOOK_NS	      (500 * NS_PER_MS)

enum { LOG_LINES = 25, LOG_LINE_MAX = 240 };

/* --- logs ------------------------------------------------------------------------------------ */

static char *log_path(const struct control_plane *c, const char *name)
{
	return mem_printf("%s/%s.log", c->folder, name);
}

/* The last lines, of which those of these programs can be very long. */
static void print_log(const struct control_plane *c, const char *name)
{
	char *path = log_path(c, name), *line = NULL, lines[LOG_LINES][LOG_LINE_MAX];
	FILE *log = fopen(path, "r");
	size_t count = 0, room = 0;

	while (log && getline(&line, &room, log) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(lines[count++ % LOG_LINES], LOG_LINE_MAX, "%s", line);
	}
	for (size_t i = count > LOG_LINES ? count - LOG_LINES : 0; i < count; i++)
		fprintf(stderr, "    %s: %s\n", name, lines[i % LOG_LINES]);
	if (log)
		fclose(log);
	free(line);
	free(path);
}

static void print_logs(const struct control_plane *c)
{
	static const char *const names[] = {"etcd", "api-0", "api-1", "scheduler", "controllers"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		print_log(c, names[i]);
}

static void give_up(struct control_plane *c, const char *what)
{
	fprintf(stderr, "control plane: %s\n", what);
	control_plane_free(c, true);
	abort();
}

/* --- files ----------------------------------------------------------------------------------- */

static char *in_folder(const struct control_plane *c, const char *name)
{
	return mem_printf("%s/%s", c->folder, name);
}

static void write_file(struct control_plane *c, const char *name, const char *text)
{
	char *path = in_folder(c, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		give_up(c, strerror(errno));
	close(fd);
	free(path);
}

char *control_plane_kubeconfig(struct control_plane *c, int api, const char *name,
			       const char *token)
{
	char *text =
		mem_printf("apiVersion: v1\n"
			   "kind: Config\n"
			   "clusters: [{name: test, cluster: {server: \"https://127.0.0.1:%d\", "
			   "certificate-authority: \"api-0/apiserver.crt\"}}]\n"
			   "users: [{name: test, user: {token: %s}}]\n"
			   "contexts: [{name: test, context: {cluster: test, user: test}}]\n"
			   "current-context: test\n",
			   c->apis[api].port, token);

	write_file(c, name, text);
	free(text);
	return in_folder(c, name);
}

/* --- children -------------------------------------------------------------------------------- */

/* argv without the program's folder, ending with NULL; the strings of argv from 1 on are freed. */
static pid_t start(struct control_plane *c, const char *log_name, const char *program, char **argv)
{
	char *log = log_path(c, log_name);
	pid_t pid;

	argv[0] = c->scheduler_program && strcmp(program, "kube-scheduler") == 0
			  ? mem_strdup(c->scheduler_program)
			  : mem_printf("%s/%s", c->bin, program);
	pid = process_start(log, argv);
	if (pid <= 0)
		give_up(c, "cannot start a child");
	for (; *argv; argv++)
		free(*argv);
	free(log);
	return pid;
}

static void stop(pid_t *pid, int signal_number)
{
	if (*pid > 0)
		process_stop(*pid, signal_number);
	*pid = 0;
}

/* Leaves it to be reaped. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/*
 * What answers 200 once it is ready, and the process it belongs to, which must not end meanwhile.
 */
struct server {
	struct control_plane *plane;
	pid_t pid;
	char *url, *certificate; /* owned; NULL: not TLS */
};

static size_t collect(char *data, size_t size, size_t count, void *ctx)
{
	buf_add(ctx, data, size * count);
	return size * count;
}

/*
 * Without a certificate it is etcd, which has no use for a token. The status, 0 when nothing
 * answers.
 */
static long request(CURL *curl, const char *method, const char *url, const char *certificate,
		    const char *body, struct buf *answer)
{
	bool patch = strcmp(method, "PATCH") == 0;
	struct curl_slist *headers =
		curl_slist_append(NULL, patch ? "Content-Type: application/merge-patch+json"
					      : "Content-Type: application/json");
	long status = 0;

	if (certificate)
		headers = curl_slist_append(headers, "Authorization: Bearer " CONTROL_ADMIN_TOKEN);
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_CAINFO, certificate);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	return status;
}

static bool is_ready(void *ctx)
{
	struct server *s = ctx;
	struct buf answer = BUF_INIT;
	long status;

	if (has_ended(s->pid))
		give_up(s->plane, "a child ended by itself");
	status = request(s->plane->curl, "GET", s->url, s->certificate, NULL, &answer);
	buf_fini(&answer);
	return status == 200;
}

/* url and certificate are taken over. */
static void await_ready(struct control_plane *c, pid_t pid, char *url, char *certificate)
{
	struct server s = {c, pid, url, certificate};

	if (!await(is_ready, &s, READY_SECONDS))
		give_up(c, "a server does not become ready");
	free(url);
	free(certificate);
}

static void start_etcd(struct control_plane *c)
{
	int peer_port = free_port();
	char *argv[10] = {NULL};

	c->etcd_port = free_port();
	argv[1] = mem_printf("--data-dir=%s/etcd", c->folder);
	argv[2] = mem_printf("--listen-client-urls=http://127.0.0.1:%d", c->etcd_port);
	argv[3] = mem_printf("--advertise-client-urls=http://127.0.0.1:%d", c->etcd_port);
	argv[4] = mem_printf("--listen-peer-urls=http://127.0.0.1:%d", peer_port);
	argv[5] = mem_printf("--initial-advertise-peer-urls=http://127.0.0.1:%d", peer_port);
	argv[6] = mem_printf("--initial-cluster=default=http://127.0.0.1:%d", peer_port);
	/* No test cuts the power. */
	argv[7] = mem_strdup("--unsafe-no-fsync");
	argv[8] = mem_strdup("--backend-batch-interval=1s");
	c->etcd = start(c, "etcd", "etcd", argv);
	await_ready(c, c->etcd, mem_printf("http://127.0.0.1:%d/health", c->etcd_port), NULL);
}

/* Who may ask from where, and what is there to be asked for; the next free place of argv. */
static size_t add_reach(const struct control_plane *c, char **argv, size_t n)
{
	argv[n++] = mem_printf("--bind-address=%s", c->with_nodes ? "0.0.0.0" : "127.0.0.1");
	argv[n++] = mem_strdup("--kubelet-preferred-address-types=InternalIP");
	/* Extensions are asked at their pods' addresses: no proxy serves those of Services. */
	argv[n++] = mem_printf("--enable-aggregator-routing=%s", c->with_nodes ? "true" : "false");
	argv[n++] = mem_printf("--disable-admission-plugins=%sTaintNodesByCondition,"
			       "DefaultTolerationSeconds",
			       c->with_nodes ? "" : "ServiceAccount,");
	return n;
}

/* By which extensions of the API server know its front proxy; the next free place of argv. */
static size_t add_front_proxy(const struct control_plane *c, char **argv, size_t n)
{
	argv[n++] = mem_printf("--requestheader-client-ca-file=%s/proxy-ca.crt", c->folder);
	argv[n++] = mem_strdup("--requestheader-allowed-names=front-proxy");
	argv[n++] = mem_strdup("--requestheader-username-headers=X-Remote-User");
	argv[n++] = mem_strdup("--requestheader-group-headers=X-Remote-Group");
	argv[n++] = mem_strdup("--requestheader-extra-headers-prefix=X-Remote-Extra-");
	argv[n++] = mem_printf("--proxy-client-cert-file=%s/proxy.crt", c->folder);
	argv[n++] = mem_printf("--proxy-client-key-file=%s/proxy.key", c->folder);
	return n;
}

/* One certificate for all servers: those that find none make one, whose RSA key takes 0.1 s of CPU. */
static void make_servers(struct control_plane *c)
{
	static const char *const servers[][2] = {{"api-0", "apiserver"},
						 {"api-1", "apiserver"},
						 {"scheduler", "kube-scheduler"},
						 {"controllers", "kube-controller-manager"}};
	struct tls_identity id;

	tls_identity_make(&id, &(struct tls_wish){.name = "server", .address = "127.0.0.1"});
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		char *folder = in_folder(c, servers[i][0]),
		     *certificate = mem_printf("%s/%s.crt", servers[i][0], servers[i][1]),
		     *key = mem_printf("%s/%s.key", servers[i][0], servers[i][1]);

		if (mkdir(folder, 0700))
			give_up(c, strerror(errno));
		write_file(c, certificate, id.certificate);
		write_file(c, key, id.key);
		free(folder);
		free(certificate);
		free(key);
	}
	tls_identity_fini(&id);
}

static void make_front_proxy(struct control_plane *c)
{
	tls_identity_make(&c->proxy_authority, &(struct tls_wish){.name = "front-proxy-ca"});
	tls_identity_make(&c->proxy,
			  &(struct tls_wish){.name = "front-proxy", .issuer = &c->proxy_authority});
	write_file(c, "proxy-ca.crt", c->proxy_authority.certificate);
	write_file(c, "proxy.crt", c->proxy.certificate);
	write_file(c, "proxy.key", c->proxy.key);
}

void control_plane_start_api(struct control_plane *c, int i, bool watch_cache)
{
	struct control_api *api = &c->apis[i];
	char name[16], *argv[32] = {NULL};
	size_t n = 1;

	if (!api->port)
		api->port = c->with_nodes && i == 0 ? 443 : free_port();
	snprintf(name, sizeof(name), "api-%d", i);
	argv[n++] = mem_printf("--etcd-servers=http://127.0.0.1:%d", c->etcd_port);
	argv[n++] = mem_printf("--secure-port=%d", api->port);
	argv[n++] = mem_strdup("--advertise-address=127.0.0.1");
	argv[n++] = mem_strdup("--endpoint-reconciler-type=none");
	argv[n++] = mem_printf("--cert-dir=%s/%s", c->folder, name);
	argv[n++] = mem_printf("--token-auth-file=%s/tokens", c->folder);
	argv[n++] = mem_strdup("--authorization-mode=RBAC");
	argv[n++] = mem_strdup("--service-cluster-ip-range=10.96.0.0/24");
	argv[n++] = mem_strdup("--service-account-issuer=https://kubernetes.default.svc");
	argv[n++] = mem_printf("--service-account-key-file=%s/%s/apiserver.crt", c->folder, name);
	argv[n++] = mem_printf("--service-account-signing-key-file=%s/%s/apiserver.key", c->folder,
			       name);
	n = add_reach(c, argv, n);
	n = add_front_proxy(c, argv, n);
	for (size_t o = 0; o < 2 && c->version->api_options[o]; o++)
		argv[n++] = mem_strdup(c->version->api_options[o]);
	argv[n++] = mem_printf("--watch-cache=%s", watch_cache ? "true" : "false");
	/* Objects come from a test as fast as it can write. */
	argv[n++] = mem_strdup("--max-requests-inflight=800");
	argv[n++] = mem_strdup("--max-mutating-requests-inflight=400");
	api->pid = start(c, name, "kube-apiserver", argv);
	await_ready(c, api->pid, mem_printf("https://127.0.0.1:%d/readyz", api->port),
		    mem_printf("%s/%s/apiserver.crt", c->folder, name));
}

void control_plane_kill_api(struct control_plane *c, int i)
{
	stop(&c->apis[i].pid, SIGKILL);
}

enum { CLIENT_WORDS = 5 };

/*
 * Starts a client of API server 0 that tells its health and metrics to anybody at the port, and
 * awaits its health. The words of argv from CLIENT_WORDS on say the rest, and are freed.
 */
static pid_t start_client(struct control_plane *c, const char *name, const char *program, int port,
			  char **argv)
{
	pid_t pid;

	argv[1] = mem_strdup("--bind-address=127.0.0.1");
	argv[2] = mem_printf("--secure-port=%d", port);
	argv[3] = mem_printf("--cert-dir=%s/%s", c->folder, name);
	argv[4] = mem_strdup("--authorization-always-allow-paths=/healthz,/metrics");
	pid = start(c, name, program, argv);
	await_ready(c, pid, mem_printf("https://127.0.0.1:%d/healthz", port),
		    mem_printf("%s/%s/%s.crt", c->folder, name, program));
	return pid;
}

/* With a file of configuration the scheduler heeds no option that says the same. */
void control_plane_start_scheduler(struct control_plane *c, const char *config)
{
	char *argv[CLIENT_WORDS + 3] = {NULL};
	struct buf text = BUF_INIT;

	control_plane_stop_scheduler(c);
	c->scheduler_port = free_port();
	buf_printf(&text,
		   "apiVersion: %s\n"
		   "kind: KubeSchedulerConfiguration\n"
		   "clientConnection: {kubeconfig: \"%s\", qps: 500, burst: 1000}\n"
		   "leaderElection: {leaderElect: false}\n",
		   c->version->scheduler_config, c->admin);
	if (c->version->plain_ports)
		buf_printf(&text,
			   "healthzBindAddress: \"127.0.0.2:%d\"\n"
			   "metricsBindAddress: \"127.0.0.2:%d\"\n",
			   c->scheduler_port, c->scheduler_port);
	buf_add_str(&text, config ? config : "");
	write_file(c, "scheduler.yaml", text.data);
	buf_fini(&text);
	argv[CLIENT_WORDS] = mem_printf("--config=%s/scheduler.yaml", c->folder);
	if (c->version->scheduler_option)
		argv[CLIENT_WORDS + 1] = mem_strdup(c->version->scheduler_option);
	c->scheduler = start_client(c, "scheduler", "kube-scheduler", c->scheduler_port, argv);
}

void control_plane_stop_scheduler(struct control_plane *c)
{
	stop(&c->scheduler, SIGKILL);
}

/*
 * Those of workloads only, or with nodes all, of which some sign tokens and tell pods whom to
 * trust.
 */
static void add_controllers(const struct control_plane *c, char **argv)
{
	if (!c->with_nodes) {
		argv[0] = mem_strdup("--controllers=deployment,replicaset,replicationcontroller,"
				     "statefulset,daemonset,job,disruption,garbagecollector,podgc,"
				     "namespace,pvc-protection,horizontalpodautoscaling,"
				     "clusterrole-aggregation");
		return;
	}
	argv[0] =
		mem_printf("--service-account-private-key-file=%s/api-0/apiserver.key", c->folder);
	argv[1] = mem_printf("--root-ca-file=%s/api-0/apiserver.crt", c->folder);
}

void control_plane_start_controllers(struct control_plane *c)
{
	char *argv[CLIENT_WORDS + 10] = {NULL};
	size_t n = CLIENT_WORDS;

	control_plane_start_scheduler(c, NULL);
	argv[n++] = mem_printf("--kubeconfig=%s", c->admin);
	argv[n++] = mem_strdup("--leader-elect=false");
	argv[n++] = mem_strdup("--kube-api-qps=500");
	argv[n++] = mem_strdup("--kube-api-burst=1000");
	/* Autoscalers look every second, and follow at once. */
	argv[n++] = mem_strdup("--horizontal-pod-autoscaler-sync-period=1s");
	argv[n++] = mem_strdup("--horizontal-pod-autoscaler-downscale-stabilization=1s");
	if (c->version->plain_ports)
		argv[n++] = mem_strdup("--port=0");
	add_controllers(c, argv + n);
	c->controllers =
		start_client(c, "controllers", "kube-controller-manager", free_port(), argv);
}

double control_plane_sample(const struct buf *metrics, const char *name)
{
	char *line = mem_printf("\n%s ", name);
	const char *at = strstr(metrics->data, line);
	double value = at ? strtod(at + strlen(line), NULL) : -1;

	free(line);
	return value;
}

bool control_plane_scheduler_metrics(struct control_plane *c, struct buf *metrics)
{
	char *url = mem_printf("https://127.0.0.1:%d/metrics", c->scheduler_port);
	char *certificate = mem_printf("%s/scheduler/kube-scheduler.crt", c->folder);
	long status;

	buf_clear(metrics);
	status = request(c->curl, "GET", url, certificate, NULL, metrics);
	buf_add_str(metrics, "");
	free(url);
	free(certificate);
	return status == 200;
}

bool control_plane_scheduler_knows(const struct control_plane *c, const struct buf *metrics,
				   const char *type, size_t count)
{
	char *name = mem_printf("%s{type=\"%s\"}", c->version->cache_size, type);
	double known = control_plane_sample(metrics, name);

	free(name);
	return known == (double)count;
}

struct known {
	struct control_plane *plane;
	size_t nodes, pods;
};

static bool scheduler_knows(void *ctx)
{
	const struct known *k = ctx;
	struct buf metrics = BUF_INIT;
	bool knows = control_plane_scheduler_metrics(k->plane, &metrics) &&
		     control_plane_scheduler_knows(k->plane, &metrics, "nodes", k->nodes) &&
		     control_plane_scheduler_knows(k->plane, &metrics, "pods", k->pods);

	buf_fini(&metrics);
	return knows;
}

void control_plane_await_scheduler(struct control_plane *c, size_t nodes, size_t pods)
{
	struct known k = {c, nodes, pods};

	if (!await(scheduler_knows, &k, READY_SECONDS))
		fail_msg("the scheduler does not count %zu nodes and %zu pods", nodes, pods);
}

/* --- requests -------------------------------------------------------------------------------- */

long control_plane_send(struct control_plane *c, const char *method, const char *path,
			const char *body, struct buf *answer)
{
	struct buf unwanted = BUF_INIT, *into = answer ? answer : &unwanted;
	int i = 0;
	char *url, *certificate;
	long status;

	while (i + 1 < CONTROL_APIS && !c->apis[i].pid)
		i++;
	url = mem_printf("https://127.0.0.1:%d%s", c->apis[i].port, path);
	certificate = mem_printf("%s/api-%d/apiserver.crt", c->folder, i);
	buf_clear(into);
	status = request(c->curl, method, url, certificate, body, into);
	free(url);
	free(certificate);
	buf_fini(&unwanted);
	return status;
}

void control_plane_must(struct control_plane *c, const char *method, const char *path,
			const char *body)
{
	struct buf answer = BUF_INIT;
	long status = control_plane_send(c, method, path, body, &answer);

	if (status != 200 && status != 201)
		fail_msg("%s %s: %ld: %s", method, path, status, answer.data ? answer.data : "");
	buf_fini(&answer);
}

void control_plane_bind(struct control_plane *c, const char *namespace, const char *kind,
			const char *role, const char *subject, const char *name)
{
	char *path = namespace ? mem_printf(RBAC "/namespaces/%s/rolebindings", namespace)
			       : mem_strdup(RBAC "/clusterrolebindings");
	char *body = mem_printf(
		"{\"metadata\":{\"generateName\":\"test-\"},\"roleRef\":{\"apiGroup\":"
		"\"rbac.authorization.k8s.io\",\"kind\":\"%s\",\"name\":\"%s\"},\"subjects\":[{"
		"\"kind\":\"%s\",\"name\":\"%s\"%s}]}",
		kind, role, subject, name,
		strcmp(subject, "User") ? ",\"namespace\":\"default\"" : "");

	control_plane_must(c, "POST", path, body);
	free(body);
	free(path);
}

char *control_plane_person(struct control_plane *c, const char *name)
{
	char *path = mem_printf(ACCOUNTS "/%s/token", name), *file;
	char *body = mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name);
	struct buf answer = BUF_INIT;
	const char *token;
	cJSON *json;

	control_plane_must(c, "POST", ACCOUNTS, body);
	if (control_plane_send(c, "POST", path, "{\"spec\":{\"expirationSeconds\":3600}}",
			       &answer) != 201)
		fail_msg("no token for %s: %s", name, answer.data);
	json = cJSON_Parse(answer.data);
	token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(json, "status"), "token"));
	assert_non_null(token);
	file = control_plane_kubeconfig(c, 0, name, token);
	cJSON_Delete(json);
	buf_fini(&answer);
	free(body);
	free(path);
	return file;
}

/* The gateway of etcd speaks JSON: a read tells the revision, and all before it is forgotten. */
void control_plane_compact(struct control_plane *c)
{
	char *range = mem_printf("http://127.0.0.1:%d/v3/kv/range", c->etcd_port);
	char *compaction = mem_printf("http://127.0.0.1:%d/v3/kv/compaction", c->etcd_port);
	struct buf answer = BUF_INIT;
	const char *revision;
	cJSON *json;
	char *body;

	if (request(c->curl, "POST", range, NULL, "{\"key\":\"AA==\"}", &answer) != 200)
		give_up(c, "etcd does not tell its revision");
	json = cJSON_Parse(answer.data);
	revision = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(json, "header"), "revision"));
	if (!revision)
		give_up(c, "etcd does not tell its revision");
	body = mem_printf("{\"revision\":\"%s\",\"physical\":true}", revision);
	buf_clear(&answer);
	if (request(c->curl, "POST", compaction, NULL, body, &answer) != 200)
		give_up(c, answer.data);
	cJSON_Delete(json);
	free(body);
	buf_fini(&answer);
	free(range);
	free(compaction);
}

/* The last write to etcd's log, as its newest segment tells, in ns of the wall clock. */
static int64_t written_ns(const struct control_plane *c)
{
	char *segments = mem_printf("%s/etcd/member/wal/*.wal", c->folder);
	glob_t found = {0};
	struct stat st = {0};

	if (!glob(segments, 0, NULL, &found))
		stat(found.gl_pathv[found.gl_pathc - 1], &st);
	globfree(&found);
	free(segments);
	return st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec;
}

struct attention {
	struct control_plane *plane;
	bool (*done)(void *ctx);
	void *ctx;
	int64_t written_ns, looked_ns; /* before the last call; looked: monotonic */
};

static bool is_done(void *ctx)
{
	struct attention *a = ctx;
	int64_t at_ns = written_ns(a->plane), now_ns = clock_mono_ns();

	if (at_ns == a->written_ns && now_ns - a->looked_ns < LOOK_NS)
		return false;
	a->written_ns = at_ns;
	a->looked_ns = now_ns;
	return a->done(a->ctx);
}

bool control_plane_await(struct control_plane *c, bool (*done)(void *ctx), void *ctx,
			 double seconds)
{
	struct attention a = {.plane = c, .done = done, .ctx = ctx};

	return await(is_done, &a, seconds);
}

void control_plane_kubectl(struct control_plane *c, const char *const *words, struct buf *out)
{
	char *program = mem_printf("%s/kubectl", c->bin), *argv[16] = {program};
	char *cache = mem_printf("--cache-dir=%s/cache", c->folder);
	struct buf err = BUF_INIT;
	size_t n = 1;

	argv[n++] = (char *)"--kubeconfig";
	argv[n++] = c->admin;
	argv[n++] = cache;
	for (; *words; words++)
		argv[n++] = (char *)*words;
	if (process_run(argv, out, &err) != 0)
		fail_msg("kubectl %s %s: %s", argv[4], argv[5], err.data ? err.data : "no word");
	buf_fini(&err);
	free(program);
	free(cache);
}

int control_plane_count_lines(struct control_plane *c, const char *const *words,
			      const char *const *parts, struct buf *out)
{
	char *text, *rest, *line;
	int count = 0;

	control_plane_kubectl(c, words, out);
	rest = text = mem_strdup(out->data ? out->data : "");
	while ((line = strsep(&rest, "\n"))) {
		const char *at = line;

		for (const char *const *part = parts; at && *part; part++)
			at = strstr(at, *part);
		count += at != NULL;
	}
	free(text);
	return count;
}

void control_plane_create(struct control_plane *c, const char *file)
{
	const char *const words[] = {"create", "-f", file, NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(c, words, &out);
	buf_fini(&out);
}

void control_plane_apply(struct control_plane *c, const char *option, const char *what,
			 struct buf *said)
{
	const char *const words[] = {"apply", option, what, NULL};

	buf_clear(said);
	control_plane_kubectl(c, words, said);
	buf_add_str(said, "");
}

cJSON *control_plane_kubectl_get(struct control_plane *c, const char *resource)
{
	const char *const words[] = {"get", resource, "--all-namespaces", "-o", "json", NULL};
	struct buf out = BUF_INIT;
	cJSON *json;

	control_plane_kubectl(c, words, &out);
	json = cJSON_Parse(out.data);
	if (!json)
		fail_msg("kubectl get %s: no JSON", resource);
	buf_fini(&out);
	return json;
}

/* --- all of it ------------------------------------------------------------------------------- */

static struct control_plane *new_plane(const char *bin, bool with_nodes)
{
	struct control_plane *c = mem_zalloc(1, sizeof(*c));

	c->bin = mem_strdup(bin);
	c->version = kube_version_of(bin);
	c->with_nodes = with_nodes;
	c->folder = folder_make();
	c->curl = curl_easy_init();
	/* The programs are in Go: less collection of garbage, which is a fifth of an API server's CPU time. */
	setenv("GOGC", "400", 0);
	if (!c->version)
		give_up(c, "this is no version of Kubernetes that the tests know");
	write_file(c, "tokens",
		   CONTROL_ADMIN_TOKEN ",admin,1,system:masters\n" RESTRICTED_TOKEN
				       "," CONTROL_RESTRICTED_USER ",2\n");
	make_front_proxy(c);
	/* Nodes and pods know API server 0 by more names. */
	if (!with_nodes)
		make_servers(c);
	start_etcd(c);
	control_plane_start_api(c, 0, true);
	c->admin = control_plane_kubeconfig(c, 0, "admin.conf", CONTROL_ADMIN_TOKEN);
	c->restricted = control_plane_kubeconfig(c, 0, "restricted.conf", RESTRICTED_TOKEN);
	return c;
}

struct control_plane *control_plane_new(const char *bin)
{
	return new_plane(bin, false);
}

struct control_plane *control_plane_new_with_nodes(const char *bin)
{
	return new_plane(bin, true);
}

void control_plane_free(struct control_plane *c, bool failed)
{
	if (!c)
		return;
	stop(&c->controllers, SIGKILL);
	control_plane_stop_scheduler(c);
	for (int i = 0; i < CONTROL_APIS; i++)
		stop(&c->apis[i].pid, SIGKILL);
	stop(&c->etcd, SIGKILL);
	if (failed)
		print_logs(c);
	curl_easy_cleanup(c->curl);
	tls_identity_fini(&c->proxy);
	tls_identity_fini(&c->proxy_authority);
	folder_remove(c->folder);
	free(c->admin);
	free(c->restricted);
	free(c->bin);
	free(c);
}
