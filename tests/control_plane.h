/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real Kubernetes control plane on this machine's loopback, for tests: etcd, API server,
 * scheduler and controllers.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "shared/buf.h"
#include "tests/kube_version.h"
#include "tests/tls_server.h"

/* One API server; all of them share the etcd. */
struct control_api {
	int port; /* 0: never started */
	pid_t pid; /* 0: not running */
};

enum { CONTROL_APIS = 2 };

struct control_plane {
	char *bin; /* folder of the programs */
	/* Borrowed; the path of another one. NULL: that of the folder. May change between starts. */
	const char *scheduler_program;
	const struct kube_version *version;
	bool with_nodes; /* real ones: pods run, and ask the API server as their service accounts */
	char *folder; /* data, certificates, kubeconfigs, logs */
	int etcd_port;
	int scheduler_port; /* its health and metrics */
	pid_t etcd, scheduler, controllers; /* 0: not running */
	struct control_api apis[CONTROL_APIS];
	struct tls_identity proxy_authority, proxy; /* of the API servers' front proxy */
	char *admin,
		/*
		 * kubeconfigs of API server 0: may do everything; may do nothing until a role says
		 * so
		 */
		*restricted;
	CURL *curl;
};

/* The name that roles bind for the restricted user. */
#define CONTROL_RESTRICTED_USER "evenkeel-restricted"

/*
 * Starts etcd and API server 0 and awaits readiness; bin is what tests/kube/build printed. What
 * fails is printed with the logs, and aborts: without it there is no test. Children die with the
 * test, however it ends.
 */
struct control_plane *control_plane_new(const char *bin);
/*
 * The same for nodes with a kubelet, where nothing else has the network (tests/node_box.h): API
 * server 0 listens at every address, at the port of its own Service, and knows service accounts;
 * the controllers are all there are.
 */
struct control_plane *control_plane_new_with_nodes(const char *bin);
/* The address of the API server's own Service. Its port is 443. */
#define CONTROL_SERVICE_ADDRESS "10.96.0.1"
/* The token of who may do everything. */
#define CONTROL_ADMIN_TOKEN "admin-token"
/* A kubeconfig of API server `api` with that token, in the folder; the caller frees its path. */
char *control_plane_kubeconfig(struct control_plane *c, int api, const char *name,
			       const char *token);
/*
 * Binds a ClusterRole, or a Role of the namespace (NULL: in all), to a User, or to a ServiceAccount
 * of the namespace default.
 */
void control_plane_bind(struct control_plane *c, const char *namespace, const char *kind,
			const char *role, const char *subject, const char *name);
/*
 * Makes a ServiceAccount in the namespace default, which stands for a person; the path of a
 * kubeconfig with its token, which the caller frees.
 */
char *control_plane_person(struct control_plane *c, const char *name);
/*
 * Stops all that runs, prints the ends of their logs when `failed`, removes the folder. NULL is
 * allowed.
 */
void control_plane_free(struct control_plane *c, bool failed);

/*
 * The scheduler, and the controllers of workloads and disruption budgets; none of nodes: theirs is
 * what a test says.
 */
void control_plane_start_controllers(struct control_plane *c);
/*
 * Starts the scheduler, in place of one that runs, and awaits its health. `config` is YAML: what a
 * KubeSchedulerConfiguration holds beside its connection and leader election, say profiles and
 * extenders; NULL: nothing.
 */
void control_plane_start_scheduler(struct control_plane *c, const char *config);
void control_plane_stop_scheduler(struct control_plane *c);
/* The scheduler's metrics as it exposes them; false: it does not answer. */
bool control_plane_scheduler_metrics(struct control_plane *c, struct buf *metrics);
/* Whether they say that it knows so many of a type: "nodes", those that only pods name, or "pods". */
bool control_plane_scheduler_knows(const struct control_plane *c, const struct buf *metrics,
				   const char *type, size_t count);
/* The value of a sample without a time; -1: it is not there. */
double control_plane_sample(const struct buf *metrics, const char *name);
/*
 * Awaits that the scheduler counts so many nodes, those that only pods name among them, and pods on
 * them that have not ended: what it decides after that, it decides knowing them. It looks once a
 * second.
 */
void control_plane_await_scheduler(struct control_plane *c, size_t nodes, size_t pods);
/*
 * Starts API server i, on the port and with the certificate it had before if it ran. Without its
 * watch cache every list and watch is etcd's own, so that a watch from before a compaction is
 * refused with 410. Awaits readiness.
 */
void control_plane_start_api(struct control_plane *c, int i, bool watch_cache);
void control_plane_kill_api(struct control_plane *c, int i); /* SIGKILL */
/*
 * await() for what depends on objects: `done` is called when any has changed, and twice a second.
 */
bool control_plane_await(struct control_plane *c, bool (*done)(void *ctx), void *ctx,
			 double seconds);
/* Lets etcd forget every version but the newest of every object. */
void control_plane_compact(struct control_plane *c);

/*
 * One request as admin to the first API server that runs: "PATCH", "/api/v1/nodes/a/status", a body
 * of JSON or NULL (a PATCH is a merge). The status; the answer replaces *answer unless that is
 * NULL.
 */
long control_plane_send(struct control_plane *c, const char *method, const char *path,
			const char *body, struct buf *answer);
/* The same; anything but 200 or 201 fails the test with what the server said. */
void control_plane_must(struct control_plane *c, const char *method, const char *path,
			const char *body);
/*
 * kubectl as admin of API server 0 with words that end with NULL; what it prints to *out. What it
 * complains of fails the test.
 */
void control_plane_kubectl(struct control_plane *c, const char *const *words, struct buf *out);
/*
 * How many lines of what that prints have those parts in their order, which end with NULL; the last
 * output replaces *out.
 */
int control_plane_count_lines(struct control_plane *c, const char *const *words,
			      const char *const *parts, struct buf *out);
/* `kubectl create -f FILE` as admin of API server 0. */
void control_plane_create(struct control_plane *c, const char *file);
/*
 * `kubectl apply` of a file or, with -k, a folder, as admin of API server 0; what it says of each
 * object, a line each, replaces *said.
 */
void control_plane_apply(struct control_plane *c, const char *option, const char *what,
			 struct buf *said);
/*
 * `kubectl get RESOURCE --all-namespaces -o json` as admin of API server 0; the caller deletes it.
 */
cJSON *control_plane_kubectl_get(struct control_plane *c, const char *resource);
