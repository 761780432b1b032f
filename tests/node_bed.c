/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why: that images start, that a pod's rights are enough and that the cgroups of real containers
 * are understood, only a node can say. How: as in a cluster, except for what a single node can do
 * without.
 *
 *     control plane (tests/control_plane.h)  <-  kubelet  <-->  containerd  -->  runc, shims, containers
 *            ^ 10.96.0.1:443, the Service's own address             |
 *            |                                                 CNI: bridge ek0, 10.77.0.0/24
 *          pods  -->  10.77.0.1:53 dnsmasq: NAME.NAMESPACE.svc.cluster.local
 *
 * There is no kube-proxy. The one Service that every pod is told by its address is the API
 * server's, and that address is given to the node itself. All others are found by name, and a name
 * leads to the pods behind a Service as if each were headless; so a Service must listen at the port
 * that its pods do.
 *
 * Nothing here cleans up after itself beyond ending its children: it lives in a box
 * (tests/node_box.h) that takes everything along. Images come from archives, never from a network.
 * Layers are copied, since overlays may be missing. A machine that may not lower oom_score_adj is
 * enough.
 */
#include "tests/node_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

/* Generous: other tests may keep the machine busy. */
#define READY_SECONDS 120
#define POLL_SECONDS  0.5

enum { LOG_TAIL = 6000 };

/* --- files ------------------------------------------------------------------------------------ */

static char *in_folder(const struct node_bed *b, const char *name)
{
	return mem_printf("%s/%s", b->folder, name);
}

static void print_log(const struct node_bed *b, const char *name)
{
	char *path = mem_printf("%s/%s.log", b->folder, name), tail[LOG_TAIL + 1] = "";
	FILE *log = fopen(path, "r");
	size_t len = 0;

	if (log) {
		if (fseek(log, -LOG_TAIL, SEEK_END))
			rewind(log);
		len = fread(tail, 1, LOG_TAIL, log);
		fclose(log);
	}
	tail[len] = '\0';
	fprintf(stderr, "--- %s\n%s\n", name, tail);
	free(path);
}

static void give_up(struct node_bed *b, const char *what)
{
	fprintf(stderr, "node bed: %s\n", what);
	node_bed_free(b, true);
	abort();
}

/* text is taken over. */
static void write_file(struct node_bed *b, const char *name, char *text)
{
	char *path = in_folder(b, name);
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		give_up(b, path);
	free(path);
	free(text);
}

/* --- programs --------------------------------------------------------------------------------- */

/* The archive of the image that sandboxes and test pods are made of. */
static char *guest_archive(void)
{
	const char *given = getenv("GUEST");

	return mem_strdup(given ? given : "build/tests/node/guest.tar");
}

bool node_bed_is_possible(void)
{
	static const char *const needed[] = {"kube-apiserver", "kubelet",
					     "runc",	       "kubectl",
					     "etcd",	       "../containerd/containerd",
					     "../cni/bridge"};
	char *bin = kube_version_programs(), *archive = guest_archive();
	bool possible = true;

	for (size_t i = 0; possible && i < sizeof(needed) / sizeof(needed[0]); i++) {
		char *path = mem_printf("%s/%s", bin, needed[i]);

		if (access(path, X_OK)) {
			printf("SKIP: no %s here: tests/kube/build makes it\n", needed[i]);
			possible = false;
		}
		free(path);
	}
	if (possible && access(archive, R_OK)) {
		printf("SKIP: no %s here: make check-node makes it\n", archive);
		possible = false;
	}
	if (possible && access("/usr/sbin/dnsmasq", X_OK)) {
		printf("SKIP: no dnsmasq here: packaging/deps node\n");
		possible = false;
	}
	free(bin);
	free(archive);
	return possible;
}

/* argv from 1 on is freed. */
static pid_t start(struct node_bed *b, const char *name, char **argv)
{
	char *log = mem_printf("%s/%s.log", b->folder, name);
	pid_t pid = process_start(log, argv);

	if (pid <= 0)
		give_up(b, "cannot start a child");
	for (argv++; *argv; argv++)
		free(*argv);
	free(log);
	return pid;
}

/* --- network and names ------------------------------------------------------------------------ */

static void run_shell(struct node_bed *b, const char *script)
{
	const char *const argv[] = {"/bin/sh", "-ec", script, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	if (process_run((char *const *)argv, &out, &err))
		give_up(b, err.data ? err.data : script);
	buf_fini(&out);
	buf_fini(&err);
}

/*
 * The bridge is there before the first pod, since kubelet and the server of names have its address.
 * Its hardware address is set: the kernel's choice is the lowest of its ports, which pods bring and
 * take away. A pod that knows the former one would not reach the API server for up to 40 s.
 */
static void start_network(struct node_bed *b)
{
	char *folder = in_folder(b, "net.d"), *leases = in_folder(b, "leases");

	if (mkdir(folder, 0755))
		give_up(b, folder);
	run_shell(b, "PATH=$PATH:/usr/sbin:/sbin\n"
		     "ip link add ek0 address 0a:58:0a:4d:00:01 type bridge\n"
		     "ip address add " NODE_BED_ADDRESS "/24 dev ek0\n"
		     "ip address add " CONTROL_SERVICE_ADDRESS "/32 dev lo\n"
		     "ip link set ek0 up\n");
	write_file(b, "net.d/10-evenkeel.conflist",
		   mem_printf("{\"cniVersion\":\"0.4.0\",\"name\":\"evenkeel\",\"plugins\":[{"
			      "\"type\":\"bridge\",\"bridge\":\"ek0\",\"ipMasq\":false,"
			      "\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"%s\","
			      "\"ranges\":[[{\"subnet\":\"10.77.0.0/24\",\"rangeStart\":"
			      "\"10.77.0.16\",\"gateway\":\"" NODE_BED_ADDRESS "\"}]],"
			      "\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}}]}\n",
			      leases));
	free(folder);
	free(leases);
}

static void start_names(struct node_bed *b)
{
	char *argv[12] = {(char *)"/usr/sbin/dnsmasq"}, *resolver;

	write_file(b, "hosts", mem_strdup(""));
	argv[1] = mem_strdup("--keep-in-foreground");
	argv[2] = mem_strdup("--conf-file=/dev/null");
	argv[3] = mem_strdup("--no-resolv");
	argv[4] = mem_strdup("--no-hosts");
	argv[5] = mem_printf("--addn-hosts=%s/hosts", b->folder);
	argv[6] = mem_strdup("--local=/local/");
	argv[7] = mem_strdup("--listen-address=" NODE_BED_ADDRESS);
	argv[8] = mem_strdup("--bind-interfaces");
	argv[9] = mem_strdup("--user=root");
	argv[10] = mem_strdup("--pid-file=");
	b->names = start(b, "names", argv);
	/* The test asks as pods do. */
	write_file(b, "resolv.conf", mem_strdup("nameserver " NODE_BED_ADDRESS "\n"));
	resolver = in_folder(b, "resolv.conf");
	if (mount(resolver, "/etc/resolv.conf", NULL, MS_BIND, NULL))
		give_up(b, "cannot use the server of names");
	free(resolver);
}

/*
 * A line "10.77.0.16 NAME.NAMESPACE.svc.cluster.local" for each address behind a Service that is
 * ready.
 */
static void add_names(const cJSON *endpoints, struct buf *hosts)
{
	const char *name = cJSON_GetStringValue(json_at(endpoints, "metadata.name")),
		   *namespace = cJSON_GetStringValue(json_at(endpoints, "metadata.namespace"));
	const cJSON *subset, *address;

	cJSON_ArrayForEach (subset, json_at(endpoints, "subsets")) {
		cJSON_ArrayForEach (address, json_at(subset, "addresses")) {
			buf_printf(hosts, "%s %s.%s.svc.cluster.local\n",
				   cJSON_GetStringValue(json_at(address, "ip")), name, namespace);
		}
	}
}

static void follow_endpoints(struct node_bed *b)
{
	cJSON *list = node_bed_get(b, "/api/v1/endpoints");
	struct buf hosts = BUF_INIT;
	const cJSON *item;

	cJSON_ArrayForEach (item, json_at(list, "items"))
		add_names(item, &hosts);
	if (list && strcmp(hosts.data ? hosts.data : "", b->hosts.data ? b->hosts.data : "") != 0) {
		write_file(b, "hosts", mem_strdup(hosts.data ? hosts.data : ""));
		kill(b->names, SIGHUP);
		buf_fini(&b->hosts);
		b->hosts = hosts;
	} else {
		buf_fini(&hosts);
	}
	cJSON_Delete(list);
}

/* --- containerd ------------------------------------------------------------------------------- */

static void write_containerd_config(struct node_bed *b)
{
	const char *const cri = "plugins.\"io.containerd.grpc.v1.cri\"";

	write_file(b, "containerd.toml",
		   mem_printf("version = 2\n"
			      "root = \"%s/root\"\n"
			      "state = \"%s/state\"\n"
			      "[grpc]\n"
			      "address = \"%s/containerd.sock\"\n"
			      "[%s]\n"
			      "sandbox_image = \"localhost/evenkeel-guest:test\"\n"
			      "restrict_oom_score_adj = true\n"
			      "[%s.cni]\n"
			      "bin_dir = \"%s/../cni\"\n"
			      "conf_dir = \"%s/net.d\"\n"
			      "[%s.containerd]\n"
			      "snapshotter = \"native\"\n"
			      "[%s.containerd.runtimes.runc]\n"
			      "runtime_type = \"io.containerd.runc.v2\"\n"
			      "[%s.containerd.runtimes.runc.options]\n"
			      "BinaryName = \"%s/runc\"\n"
			      "SystemdCgroup = false\n",
			      b->folder, b->folder, b->folder, cri, cri, b->bin, b->folder, cri,
			      cri, cri, b->bin));
}

/* ctr with words that end with NULL; its exit status, and what it says. */
static int run_ctr(const struct node_bed *b, const char *const *words, struct buf *out)
{
	char *argv[16] = {mem_printf("%s/../containerd/ctr", b->bin), (char *)"--address",
			  mem_printf("%s/containerd.sock", b->folder), (char *)"--namespace",
			  (char *)"k8s.io"};
	size_t n = 5;
	int status;

	while (*words && n + 1 < sizeof(argv) / sizeof(argv[0]))
		argv[n++] = (char *)*words++;
	buf_clear(out);
	status = process_run(argv, out, out);
	free(argv[0]);
	free(argv[2]);
	return status;
}

static bool containerd_answers(void *ctx)
{
	static const char *const words[] = {"version", NULL};
	struct buf out = BUF_INIT;
	int status = run_ctr(ctx, words, &out);

	buf_fini(&out);
	return status == 0;
}

void node_bed_import(struct node_bed *b, const char *archive)
{
	const char *const words[] = {"images", "import", "--snapshotter", "native", archive, NULL};
	struct buf out = BUF_INIT;

	if (run_ctr(b, words, &out))
		fail_msg("cannot import %s: %s", archive, out.data ? out.data : "no word");
	buf_fini(&out);
}

/* Shims are found by PATH, and so is what kubelet mounts with. */
static void start_containerd(struct node_bed *b)
{
	const char *before = getenv("PATH");
	char *program = mem_printf("%s/../containerd/containerd", b->bin),
	     *path = mem_printf("%s/../containerd:%s:/usr/sbin:/sbin", b->bin,
				before ? before : "/usr/bin:/bin"),
	     *archive = guest_archive(), *argv[4] = {program};

	setenv("PATH", path, 1);
	write_containerd_config(b);
	argv[1] = mem_printf("--config=%s/containerd.toml", b->folder);
	b->containerd = start(b, "containerd", argv);
	if (!await(containerd_answers, b, READY_SECONDS))
		give_up(b, "containerd does not answer");
	node_bed_import(b, archive);
	free(program);
	free(path);
	free(archive);
}

/* --- kubelet ---------------------------------------------------------------------------------- */

/*
 * Nothing is evicted for want of room: files lie in memory, of which the machine's share says
 * little.
 */
static void write_kubelet_config(struct node_bed *b)
{
	write_file(b, "no-resolv.conf", mem_strdup(""));
	write_file(b, "kubelet.yaml",
		   mem_printf("apiVersion: kubelet.config.k8s.io/v1beta1\n"
			      "kind: KubeletConfiguration\n"
			      "authentication: {anonymous: {enabled: true}, webhook: {enabled: "
			      "false}}\n"
			      "authorization: {mode: AlwaysAllow}\n"
			      "cgroupDriver: cgroupfs\n"
			      "clusterDNS: [" NODE_BED_ADDRESS "]\n"
			      "clusterDomain: cluster.local\n"
			      "evictionHard: {memory.available: 1Mi, nodefs.available: 0%%, "
			      "nodefs.inodesFree: 0%%, imagefs.available: 0%%}\n"
			      "failSwapOn: false\n"
			      "hairpinMode: none\n"
			      "makeIPTablesUtilChains: false\n"
			      "oomScoreAdj: 0\n"
			      "resolvConf: %s/no-resolv.conf\n"
			      "volumePluginDir: %s/volume-plugins\n"
			      "%s",
			      b->folder, b->folder, b->plane->version->kubelet_config));
}

static void start_kubelet(struct node_bed *b)
{
	const char *flag = b->plane->version->kubelet_flag;
	char *program = mem_printf("%s/kubelet", b->bin), *argv[9] = {program};

	write_kubelet_config(b);
	argv[1] = mem_printf("--config=%s/kubelet.yaml", b->folder);
	argv[2] = mem_printf("--kubeconfig=%s", b->plane->admin);
	argv[3] = mem_printf("--container-runtime-endpoint=unix://%s/containerd.sock", b->folder);
	argv[4] = mem_strdup("--hostname-override=" NODE_BED_NAME);
	argv[5] = mem_strdup("--node-ip=" NODE_BED_ADDRESS);
	argv[6] = mem_printf("--cert-dir=%s/pki", b->folder);
	argv[7] = flag ? mem_strdup(flag) : NULL;
	b->kubelet = start(b, "kubelet", argv);
	free(program);
}

static bool node_is_ready(void *ctx)
{
	cJSON *node = node_bed_get(ctx, "/api/v1/nodes/" NODE_BED_NAME);
	const cJSON *condition;
	bool ready = false;

	cJSON_ArrayForEach (condition, json_at(node, "status.conditions")) {
		const char *type = cJSON_GetStringValue(json_at(condition, "type")),
			   *status = cJSON_GetStringValue(json_at(condition, "status"));

		ready = ready || (type && status && strcmp(type, "Ready") == 0 &&
				  strcmp(status, "True") == 0);
	}
	cJSON_Delete(node);
	return ready;
}

/* --- use -------------------------------------------------------------------------------------- */

cJSON *node_bed_get(struct node_bed *b, const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (control_plane_send(b->plane, "GET", path, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	buf_fini(&answer);
	return json;
}

bool node_bed_await(struct node_bed *b, bool (*done)(void *ctx), void *ctx, double seconds)
{
	int64_t until = clock_mono_ns() + (int64_t)(scaled_s(seconds) * NS_PER_SEC);
	bool is_done;

	do {
		follow_endpoints(b);
		is_done = await(done, ctx, POLL_SECONDS);
	} while (!is_done && clock_mono_ns() < until);
	return is_done;
}

/* --- all of it -------------------------------------------------------------------------------- */

struct node_bed *node_bed_new(void)
{
	struct node_bed *b = mem_zalloc(1, sizeof(*b));

	b->bin = kube_version_programs();
	b->folder = folder_make();
	start_network(b);
	start_names(b);
	start_containerd(b);
	b->plane = control_plane_new_with_nodes(b->bin);
	control_plane_start_controllers(b->plane);
	start_kubelet(b);
	if (!await(node_is_ready, b, READY_SECONDS))
		give_up(b, "the node does not become ready");
	return b;
}

static void stop(pid_t *pid)
{
	if (*pid > 0)
		process_stop(*pid, SIGKILL);
	*pid = 0;
}

void node_bed_free(struct node_bed *b, bool failed)
{
	if (!b)
		return;
	stop(&b->kubelet);
	stop(&b->containerd);
	stop(&b->names);
	if (failed) {
		print_log(b, "names");
		print_log(b, "containerd");
		print_log(b, "kubelet");
	}
	control_plane_free(b->plane, failed);
	folder_remove(b->folder);
	buf_fini(&b->hosts);
	free(b->bin);
	free(b);
}
