/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to read a large cluster from its API: 150,000 pods listed over TLS on the loopback
 * into the model, with a server in another process that needs the other core, and then events of
 * their watch. Memory is what was resident at most, less what is when the model is all there is.
 */
#include <malloc.h>
#include <math.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregator/edge/kube/kube.h"
#include "aggregator/edge/kube/splitter.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/tls_server.h"

#define MIB 1048576.0

enum {
	PODS = 150000,
	PODS_PER_OWNER = 30,
	NODES = 5000,
	EVENTS = 100000,
	RUNS = 3,
	BLOCK = 64 << 10,
	POD_MAX = 8192,
};

/* --- pods ------------------------------------------------------------------------------------- */

static const char pod_format[] =
	"{\"metadata\":{\"name\":\"web-%05d-7c5ddbdf54-%06d\",\"generateName\":\"web-%05d-"
	"7c5ddbdf54-\",\"namespace\":\"team-%03d\","
	"\"uid\":\"3f1c9a52-8f3e-4b6d-9c21-%012d\",\"resourceVersion\":\"%d\","
	"\"creationTimestamp\":\"2026-03-01T10:20:30Z\","
	"\"labels\":{\"app\":\"web-%05d\",\"app.kubernetes.io/"
	"part-of\":\"shop\",\"pod-template-hash\":\"7c5ddbdf54\"},"
	"\"annotations\":{\"kubectl.kubernetes.io/"
	"restartedAt\":\"2026-02-28T09:00:00Z\",\"prometheus.io/scrape\":\"true\"},"
	"\"ownerReferences\":[{\"apiVersion\":\"apps/"
	"v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-%05d-7c5ddbdf54\",\"uid\":"
	"\"aaaaaaaa-8f3e-4b6d-9c21-%012d\",\"controller\":true,\"blockOwnerDeletion\":true}],"
	"\"managedFields\":[{\"manager\":"
	"\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
	"\"2026-03-01T10:20:30Z\",\"fieldsType\":"
	"\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},"
	"\"f:app\":{},\"f:pod-template-hash\":"
	"{}},\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"aaaaaaaa-8f3e-4b6d-9c21-1\\\"}\":"
	"{}}},\"f:spec\":{\"f:containers\":"
	"{\"k:{\\\"name\\\":\\\"web\\\"}\":{\".\":{},\"f:env\":{\".\":{},\"k:{\\\"name\\\":"
	"\\\"MODE\\\"}\":{\".\":{},\"f:name\":{},"
	"\"f:value\":{}}},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:ports\":{\".\":"
	"{}},\"f:resources\":{\".\":{},"
	"\"f:limits\":{\".\":{},\"f:cpu\":{},\"f:memory\":{}}}}},\"f:dnsPolicy\":{},\"f:"
	"restartPolicy\":{},\"f:schedulerName\":{}}}},"
	"{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"2026-"
	"03-01T10:20:39Z\",\"fieldsType\":"
	"\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":"
	"\\\"Ready\\\"}\":{\".\":{},\"f:status\":{}}},"
	"\"f:hostIP\":{},\"f:phase\":{},\"f:podIP\":{}}},\"subresource\":\"status\"}]},\"spec\":{"
	"\"volumes\":[{\"name\":"
	"\"kube-api-access-x7k2p\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{"
	"\"expirationSeconds\":3607,\"path\":"
	"\"token\"}},{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\","
	"\"path\":\"ca.crt\"}]}}],"
	"\"defaultMode\":420}}],\"containers\":[{\"name\":\"web\",\"image\":\"registry.example/"
	"shop/web:2.14.3\",\"ports\":[{\"name\":"
	"\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"MODE\","
	"\"value\":\"production\"},{\"name\":"
	"\"POD_IP\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"status."
	"podIP\"}}}],\"resources\":{\"limits\":"
	"{\"cpu\":\"500m\",\"memory\":\"512Mi\"},\"requests\":{\"cpu\":\"100m\",\"memory\":"
	"\"256Mi\"}},\"volumeMounts\":[{\"name\":"
	"\"kube-api-access-x7k2p\",\"readOnly\":true,\"mountPath\":\"/var/run/secrets/"
	"kubernetes.io/serviceaccount\"}],"
	"\"livenessProbe\":{\"httpGet\":{\"path\":\"/"
	"live\",\"port\":8080,\"scheme\":\"HTTP\"},\"timeoutSeconds\":1,\"periodSeconds\":"
	"10,\"successThreshold\":1,\"failureThreshold\":3},\"terminationMessagePath\":\"/dev/"
	"termination-log\","
	"\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],"
	"\"restartPolicy\":\"Always\","
	"\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\","
	"\"serviceAccountName\":\"default\",\"nodeName\":"
	"\"node-%05d\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
	"\"tolerations\":[{\"key\":"
	"\"node.kubernetes.io/"
	"not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},{"
	"\"key\":"
	"\"node.kubernetes.io/"
	"unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}]"
	",\"priority\":"
	"0,\"enableServiceLinks\":true,\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{"
	"\"phase\":\"Running\",\"conditions\":"
	"[{\"type\":\"Initialized\",\"status\":\"True\",\"lastProbeTime\":null,"
	"\"lastTransitionTime\":\"2026-03-01T10:20:30Z\"},"
	"{\"type\":\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"
	"\"2026-03-01T10:20:39Z\"},{\"type\":"
	"\"PodScheduled\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-"
	"03-01T10:20:30Z\"}],\"hostIP\":"
	"\"10.1.2.3\",\"podIP\":\"10.244.7.9\",\"podIPs\":[{\"ip\":\"10.244.7.9\"}],\"startTime\":"
	"\"2026-03-01T10:20:30Z\","
	"\"containerStatuses\":[{\"name\":\"web\",\"state\":{\"running\":{\"startedAt\":\"2026-03-"
	"01T10:20:38Z\"}},\"lastState\":{},"
	"\"ready\":true,\"restartCount\":%d,\"image\":\"registry.example/shop/"
	"web:2.14.3\",\"imageID\":"
	"\"registry.example/shop/"
	"web@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0\","
	"\"containerID\":"
	"\"containerd://"
	"9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0\",\"started\":true}],"
	"\"qosClass\":"
	"\"Burstable\"}}";

/* The i-th pod as a server writes it in a list. */
static size_t write_pod(char *to, int i, int restarts)
{
	int owner = i / PODS_PER_OWNER;

	return (size_t)snprintf(to, POD_MAX, pod_format, owner, i, owner, owner % 200, i,
				1000000 + i, owner, owner, owner, (i * 7) % NODES, restarts);
}

/* --- the server ------------------------------------------------------------------------------- */

/* What one answer still has to say: a text, then pods, then another text. */
struct answer {
	char *head;
	const char *tail;
	int next, count;
	bool events; /* each in an event */
	int go; /* to be read from before the first; -1: none */
	bool hold; /* it never ends */
	char *text; /* what did not fit */
	size_t len, at;
};

static void render(struct answer *a)
{
	char *to = a->text;

	a->at = 0;
	if (a->head) {
		a->len = (size_t)snprintf(to, POD_MAX, "%s", a->head);
		free(a->head);
		a->head = NULL;
	} else if (a->next < a->count) {
		if (a->events)
			to += snprintf(to, 64, "{\"type\":\"MODIFIED\",\"object\":");
		else if (a->next)
			*to++ = ',';
		to += write_pod(to, a->next % PODS, a->events);
		if (a->events)
			to += snprintf(to, 64, "}\n");
		a->len = (size_t)(to - a->text);
		a->next++;
	} else {
		a->len = (size_t)snprintf(to, POD_MAX, "%s", a->tail);
		a->tail = "";
	}
}

static ssize_t read_answer(void *cls, uint64_t position, char *to, size_t room)
{
	struct answer *a = cls;
	size_t done = 0, part;
	char byte;

	(void)position;
	if (a->go >= 0 && read(a->go, &byte, 1) == 1)
		a->go = -1;
	while (done < room) {
		if (a->at == a->len)
			render(a);
		if (!a->len)
			break;
		part = a->len - a->at < room - done ? a->len - a->at : room - done;
		memcpy(to + done, a->text + a->at, part);
		a->at += part;
		done += part;
	}
	while (!done && a->hold)
		pause();
	return done ? (ssize_t)done : MHD_CONTENT_READER_END_OF_STREAM;
}

static void free_answer(void *cls)
{
	struct answer *a = cls;

	free(a->head);
	free(a->text);
	free(a);
}

struct server {
	int go; /* a byte of it begins the events */
};

static void plan_answer(const struct server *s, struct answer *a, struct MHD_Connection *c,
			const char *url)
{
	bool watch = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "watch") != NULL;
	bool pods = strcmp(url, "/api/v1/pods") == 0;

	a->tail = "";
	if (strcmp(url, "/apis") == 0) {
		a->head = mem_strdup("{\"groups\":[]}");
	} else if (strcmp(url, "/api/v1") == 0) {
		a->head = mem_strdup(
			"{\"resources\":[{\"name\":\"pods\",\"verbs\":[\"list\",\"watch\"]}]}");
	} else if (watch) {
		a->hold = true;
		a->events = true;
		a->count = EVENTS;
		a->go = s->go;
	} else if (pods) {
		a->head = mem_strdup("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
				     "\"resourceVersion\":\"9\"},\"items\":[");
		a->count = PODS;
		a->tail = "]}";
	}
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *data_len, void **state)
{
	struct answer *a;
	struct MHD_Response *response;
	enum MHD_Result rc;

	(void)method, (void)version, (void)data, (void)data_len;
	if (!*state) {
		*state = cls;
		return MHD_YES;
	}
	a = mem_zalloc(1, sizeof(*a));
	a->text = mem_alloc(POD_MAX + 256);
	a->go = -1;
	plan_answer(cls, a, c, url);
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_answer, a,
						     free_answer);
	rc = MHD_queue_response(c, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return rc;
}

/* Serves until it is killed; its port goes to the pipe. */
static void serve(const struct tls_identity *id, int port_pipe, int go)
{
	struct server s = {.go = go};
	struct MHD_Daemon *daemon;
	int port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	daemon = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
					  MHD_USE_TLS,
				  0, NULL, NULL, on_request, &s, MHD_OPTION_HTTPS_MEM_KEY, id->key,
				  MHD_OPTION_HTTPS_MEM_CERT, id->certificate,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(256 << 10),
				  MHD_OPTION_END);
	if (!daemon)
		_exit(1);
	port = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
	if (write(port_pipe, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	for (;;)
		pause();
}

/* --- the loop's part -------------------------------------------------------------------------- */

struct loop {
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool ready; /* under lock */
	struct kube *kube;
	struct model *model;
	bool listed;
	size_t puts, bytes; /* of pods; of JSON that objects were read from */
};

static void on_ready(void *ctx)
{
	struct loop *l = ctx;

	pthread_mutex_lock(&l->lock);
	l->ready = true;
	pthread_cond_signal(&l->news);
	pthread_mutex_unlock(&l->lock);
}

static bool is_listed(const struct loop *l)
{
	return l->listed;
}

static void count(struct loop *l, const struct kube_batch *b)
{
	l->bytes += b->bytes;
	for (size_t i = 0; i < b->count; i++) {
		if (b->changes[i].kind != OBJECT_POD)
			continue;
		l->listed |= b->changes[i].type == KUBE_REPLACE_END;
		l->puts += b->changes[i].type == KUBE_PUT;
	}
}

static void check_pods(struct model *m)
{
	struct cluster *c = model_cluster(m);

	if (c->pod_count != PODS) {
		fprintf(stderr, "%zu pods came\n", (size_t)c->pod_count);
		exit(1);
	}
	cluster_drop(c);
}

static bool is_watched(const struct loop *l)
{
	return l->puts >= PODS + EVENTS;
}

/* Applies what comes until it is enough. */
static void loop_until(struct loop *l, bool (*is_enough)(const struct loop *l))
{
	struct kube_batch *b;

	for (;;) {
		while ((b = kube_take(l->kube)) != NULL) {
			count(l, b);
			kube_batch_apply(b, l->model);
		}
		if (is_enough(l))
			return;
		pthread_mutex_lock(&l->lock);
		while (!l->ready)
			pthread_cond_wait(&l->news, &l->lock);
		l->ready = false;
		pthread_mutex_unlock(&l->lock);
	}
}

/* --- memory ----------------------------------------------------------------------------------- */

static double status_mib(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	double kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtod(line + strlen(name), NULL);
	if (file)
		fclose(file);
	return kib / 1024;
}

static void reset_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	malloc_trim(0);
	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

/* --- measuring -------------------------------------------------------------------------------- */

/* Of the process, or of this thread. */
static double cpu_seconds(int who)
{
	struct rusage use;

	getrusage(who, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

struct figures {
	double list_mb_s, kube_cpu_s, loop_cpu_s, peak_mib, model_mib, events_s;
};

static struct figures run_once(int port, const char *ca, int go)
{
	struct kube_config config = {
		.server = mem_printf("https://127.0.0.1:%d", port),
		.ca_data = mem_strdup(ca),
		.source = mem_strdup("bench"),
	};
	struct loop l = {.model = model_new()};
	struct figures f;
	struct error error;
	double all_s = cpu_seconds(RUSAGE_SELF), loop_s = cpu_seconds(RUSAGE_THREAD), base;
	int64_t begin_ns;

	pthread_mutex_init(&l.lock, NULL);
	pthread_cond_init(&l.news, NULL);
	reset_peak();
	base = status_mib("VmRSS:");
	begin_ns = clock_mono_ns();
	if (kube_start(&l.kube, &config, NULL, on_ready, &l, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	loop_until(&l, is_listed);
	f.list_mb_s = (double)l.bytes / 1e6 / ((double)(clock_mono_ns() - begin_ns) / 1e9);
	loop_s = cpu_seconds(RUSAGE_THREAD) - loop_s;
	f.loop_cpu_s = loop_s;
	f.kube_cpu_s = cpu_seconds(RUSAGE_SELF) - all_s - loop_s;
	check_pods(l.model);
	f.peak_mib = status_mib("VmHWM:");
	malloc_trim(0);
	f.model_mib = status_mib("VmRSS:");
	f.peak_mib -= f.model_mib;
	f.model_mib -= base;
	begin_ns = clock_mono_ns();
	if (write(go, "g", 1) != 1)
		exit(1);
	loop_until(&l, is_watched);
	f.events_s = EVENTS / ((double)(clock_mono_ns() - begin_ns) / 1e9);
	kube_stop(l.kube);
	model_free(l.model);
	kube_config_fini(&config);
	return f;
}

static void count_object(void *ctx, const char *json, size_t len)
{
	(void)json, (void)len;
	++*(int *)ctx;
}

/* The splitter alone, in chunks as TLS gives them. */
static double splitter_mb_s(void)
{
	struct splitter s;
	struct buf text = BUF_INIT;
	double seconds;
	int objects = 0;

	buf_add_str(&text, "{\"items\":[");
	for (int i = 0; i < PODS / 10; i++) {
		if (i)
			buf_add_char(&text, ',');
		text.len += write_pod(buf_reserve(&text, POD_MAX), i, 0);
	}
	buf_add_str(&text, "]}");
	seconds = cpu_seconds(RUSAGE_THREAD);
	splitter_init(&s, SPLITTER_LIST, count_object, &objects);
	for (size_t at = 0; at < text.len; at += 16384)
		splitter_feed(&s, text.data + at, text.len - at < 16384 ? text.len - at : 16384,
			      NULL);
	seconds = cpu_seconds(RUSAGE_THREAD) - seconds;
	if (splitter_end(&s, NULL) || objects != PODS / 10)
		exit(1);
	seconds = (double)text.len / 1e6 / seconds;
	splitter_fini(&s);
	buf_fini(&text);
	return seconds;
}

int main(void)
{
	static const struct tls_wish wish = {.name = "bench", .address = "127.0.0.1"};
	double rates[RUNS], kube[RUNS], loop[RUNS], peaks[RUNS], models[RUNS], events[RUNS];
	struct tls_identity id;
	int port_pipe[2], go_pipe[2], port;
	pid_t child;

	tls_identity_make(&id, &wish);
	if (pipe(port_pipe) || pipe(go_pipe))
		return 1;
	child = fork();
	if (child == 0)
		serve(&id, port_pipe[1], go_pipe[0]);
	if (child < 0 || read(port_pipe[0], &port, sizeof(port)) != sizeof(port))
		return 1;
	bench_begin("kube_list");
	for (int i = 0; i < RUNS; i++) {
		struct figures f = run_once(port, id.certificate, go_pipe[1]);

		rates[i] = f.list_mb_s;
		kube[i] = f.kube_cpu_s;
		loop[i] = f.loop_cpu_s;
		peaks[i] = f.peak_mib;
		models[i] = f.model_mib;
		events[i] = f.events_s;
	}
	bench_row("150,000 pods listed into the model over TLS", "MB/s", 100, 1,
		  bench_median(rates, RUNS));
	bench_row("CPU time of that, kube thread", "s", NAN, 0, bench_median(kube, RUNS));
	bench_row("CPU time of that, loop thread", "s", NAN, 0, bench_median(loop, RUNS));
	bench_row("peak memory above the model", "MiB", 32, 0, bench_median(peaks, RUNS));
	bench_row("the model of them", "MiB", NAN, 0, bench_median(models, RUNS));
	bench_row("events of their watch", "1/s", NAN, 1, bench_median(events, RUNS));
	bench_row("the splitter alone, by its CPU time", "MB/s", NAN, 1, splitter_mb_s());
	bench_end();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tls_identity_fini(&id);
	return 0;
}
