/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_behind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { OPTIONS_MOST = 24 };

static void must(struct kube_behind *b, const char *method, const char *path, char *body)
{
	control_plane_must(b->bed->plane, method, path, body);
	free(body);
}

static bool is_ready(void *ctx)
{
	const struct kube_behind *b = ctx;
	struct buf answer = BUF_INIT;
	long status = kube_direct_ask(b->bed, "/readyz", NULL, NULL, &answer);

	buf_fini(&answer);
	return status == 200;
}

void kube_behind_start(struct kube_behind *b, const char *kubeconfig, const char *const *more)
{
	struct kube_testbed *bed = b->bed;
	struct kube_aggregator *a = &bed->aggregators[0];
	char *log = mem_printf("%s/aggregator-0.log", bed->folder);
	char *certificate = kube_direct_write(bed, "tls.crt", b->server.certificate);
	char *key = kube_direct_write(bed, "tls.key", b->server.key);
	char *listen = mem_printf("127.0.0.1:%d", a->http_port);
	char *ingest = mem_printf("tcp://127.0.0.1:%d", a->ingest_port);
	char *argv[15 + OPTIONS_MOST] = {(char *)program_path("evenkeel-aggregator"),
					 (char *)"--listen",
					 listen,
					 (char *)"--ingest",
					 ingest,
					 (char *)"--key-file",
					 bed->key_path,
					 (char *)"--kubeconfig",
					 (char *)kubeconfig,
					 (char *)"--tls-cert",
					 certificate,
					 (char *)"--tls-key",
					 key,
					 (char *)"--token-review"};
	size_t n = 14;

	argv[n++] = (char *)"--front-proxy";
	for (; more && *more; more++) {
		assert_true(n < sizeof(argv) / sizeof(argv[0]) - 1);
		argv[n++] = (char *)*more;
	}
	a->pid = process_start(log, argv);
	assert_true(a->pid > 0);
	assert_true(await(is_ready, b, 90));
	free(log);
	free(certificate);
	free(key);
	free(listen);
	free(ingest);
}

static void point_api_service(struct kube_behind *b, const char *name)
{
	const char *authority = b->authority.certificate;
	size_t len = sodium_base64_encoded_len(strlen(authority), sodium_base64_VARIANT_ORIGINAL);
	char *bundle = mem_alloc(len);
	char *path = mem_printf("/apis/apiregistration.k8s.io/v1/apiservices/%s", name);

	sodium_bin2base64(bundle, len, (const unsigned char *)authority, strlen(authority),
			  sodium_base64_VARIANT_ORIGINAL);
	must(b, "PATCH", path,
	     mem_printf("{\"spec\":{\"caBundle\":\"%s\",\"service\":{\"port\":%d}}}", bundle,
			b->bed->aggregators[0].http_port));
	free(bundle);
	free(path);
}

struct wait {
	struct kube_behind *b;
	char *path;
};

static bool is_available(void *ctx)
{
	const struct wait *w = ctx;
	struct buf answer = BUF_INIT;
	const cJSON *condition;
	bool available = false;
	cJSON *service;

	control_plane_send(w->b->bed->plane, "GET", w->path, NULL, &answer);
	service = cJSON_Parse(answer.data ? answer.data : "");
	cJSON_ArrayForEach (condition, json_at(service, "status.conditions")) {
		const char *type = cJSON_GetStringValue(json_at(condition, "type"));
		const char *status = cJSON_GetStringValue(json_at(condition, "status"));

		available |= type && status && strcmp(type, "Available") == 0 &&
			     strcmp(status, "True") == 0;
	}
	cJSON_Delete(service);
	buf_fini(&answer);
	return available;
}

void kube_behind_await(struct kube_behind *b, const char *service)
{
	struct wait w = {b, mem_printf("/apis/apiregistration.k8s.io/v1/apiservices/%s", service)};

	if (!await(is_available, &w, 90))
		fail_msg("the API server does not reach the aggregator as %s", service);
	free(w.path);
}

void kube_behind_install(struct kube_behind *b, struct kube_testbed *bed)
{
	struct control_plane *plane = bed->plane;

	*b = (struct kube_behind){.bed = bed};
	bed->aggregators[0].http_port = free_port();
	bed->aggregators[0].ingest_port = free_port();
	tls_identity_make(&b->authority, &(struct tls_wish){.name = "evenkeel"});
	tls_identity_make(&b->server, &(struct tls_wish){.name = "evenkeel-aggregator",
							 .dns = KUBE_DIRECT_NAME,
							 .issuer = &b->authority});
	free(kube_direct_write(bed, "ca.crt", b->authority.certificate));
	control_plane_create(plane, "packaging/kubernetes/core/namespace.yaml");
	control_plane_create(plane, "packaging/kubernetes/core/clusterrole.yaml");
	control_plane_create(plane, "packaging/kubernetes/core/clients.yaml");
	control_plane_create(plane, "packaging/kubernetes/base/api-service.yaml");
	control_plane_create(plane, "packaging/kubernetes/overlays/metrics-api/api-service.yaml");
	must(b, "POST", "/api/v1/namespaces/evenkeel/services",
	     mem_strdup("{\"metadata\":{\"name\":\"evenkeel-aggregator\"},\"spec\":{\"type\":"
			"\"ExternalName\",\"externalName\":\"localhost\"}}"));
	control_plane_bind(plane, NULL, "ClusterRole", "evenkeel-aggregator", "User",
			   CONTROL_RESTRICTED_USER);
	control_plane_bind(plane, "kube-system", "Role",
			   "extension-apiserver-authentication-reader", "User",
			   CONTROL_RESTRICTED_USER);
	point_api_service(b, "v1.evenkeel.io");
	point_api_service(b, "v1.metrics.k8s.io");
	point_api_service(b, "v1beta1.metrics.k8s.io");
}

void kube_behind_fini(struct kube_behind *b)
{
	tls_identity_fini(&b->server);
	tls_identity_fini(&b->authority);
}
