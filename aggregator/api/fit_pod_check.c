/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of a pod keeps what is known to be asked for and drops the rest, which is right for pods
 * that an API server has checked. A manifest was checked by nobody, and what is dropped of it could
 * have forbidden a node: so members of a kind that no API has, and those of tomorrow, are refused
 * here. It never "fits" because of what was not understood.
 */
#include "aggregator/api/fit_pod_check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/model/object_json.h"

struct check {
	char *field;
	struct reason *reason;
};

static int fail(const struct check *c, const char *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(const struct check *c, const char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->field, FIT_FIELD_MAX, format, args);
	va_end(args);
	reason_set(c->reason, "%s", why);
	return -EINVAL;
}

static bool is_absent(const cJSON *item)
{
	return !item || cJSON_IsNull(item);
}

static const cJSON *first(const cJSON *list)
{
	return cJSON_IsArray(list) ? list->child : NULL;
}

static bool is_one_of(const char *text, const char *const *names)
{
	while (*names && strcmp(*names, text) != 0)
		names++;
	return *names != NULL;
}

/* --- the spec */

/* Of k8s.io/api/core/v1 PodSpec, up to Kubernetes 1.34. */
static const char *const spec_members[] = {
	"activeDeadlineSeconds",
	"affinity",
	"automountServiceAccountToken",
	"containers",
	"dnsConfig",
	"dnsPolicy",
	"enableServiceLinks",
	"ephemeralContainers",
	"hostAliases",
	"hostIPC",
	"hostNetwork",
	"hostPID",
	"hostUsers",
	"hostname",
	"hostnameOverride",
	"imagePullSecrets",
	"initContainers",
	"nodeName",
	"nodeSelector",
	"os",
	"overhead",
	"preemptionPolicy",
	"priority",
	"priorityClassName",
	"readinessGates",
	"resourceClaims",
	"resources",
	"restartPolicy",
	"runtimeClassName",
	"schedulerName",
	"schedulingGates",
	"securityContext",
	"serviceAccount",
	"serviceAccountName",
	"setHostnameAsFQDN",
	"shareProcessNamespace",
	"subdomain",
	"terminationGracePeriodSeconds",
	"tolerations",
	"topologySpreadConstraints",
	"volumes",
	NULL,
};

static int check_members(const struct check *c, const cJSON *spec)
{
	for (const cJSON *item = cJSON_IsObject(spec) ? spec->child : NULL; item; item = item->next)
		if (!cJSON_IsNull(item) && !is_one_of(item->string, spec_members))
			return fail(c, "is not known, and may decide where the pod can be",
				    "pod.spec.%.64s", item->string);
	return 0;
}

/*
 * Who has a node already was not left to a scheduler: of a pod of the API it is what became of it.
 */
static int check_node_name(const struct check *c, const cJSON *pod, const cJSON *spec)
{
	const cJSON *name = object_json_find(spec, "nodeName");
	const char *uid =
		cJSON_GetStringValue(object_json_find(object_json_find(pod, "metadata"), "uid"));

	if (is_absent(name))
		return 0;
	if (!cJSON_IsString(name))
		return fail(c, "must be a string", "pod.spec.nodeName");
	if (!*name->valuestring || (uid && *uid))
		return 0;
	return fail(c, "a manifest that names its node is bound there unasked; leave it out",
		    "pod.spec.nodeName");
}

static int check_host_network(const struct check *c, const cJSON *spec)
{
	const cJSON *item = object_json_find(spec, "hostNetwork");

	if (is_absent(item) || cJSON_IsBool(item))
		return 0;
	return fail(c, "must be true or false", "pod.spec.hostNetwork");
}

/* Claims that the spec does not have cannot be judged; those it has are not, by the filters. */
static int check_claims(const struct check *c, const cJSON *spec, const cJSON *owner,
			const char *path)
{
	const cJSON *claims = object_json_find(object_json_find(owner, "resources"), "claims");

	if (is_absent(claims) || (cJSON_IsArray(claims) && !claims->child))
		return 0;
	if (!cJSON_IsArray(claims))
		return fail(c, "must be a list", "%s.resources.claims", path);
	if (first(object_json_find(spec, "resourceClaims")))
		return 0;
	return fail(c, "is not in the spec's resourceClaims", "%s.resources.claims[0]", path);
}

/* --- lists: objects, or nothing */

static int check_list(const struct check *c, const cJSON *list, const char *path)
{
	size_t at = 0;

	if (is_absent(list))
		return 0;
	if (!cJSON_IsArray(list))
		return fail(c, "must be a list", "%s", path);
	for (const cJSON *item = list->child; item; item = item->next, at++)
		if (!cJSON_IsObject(item))
			return fail(c, "must be an object", "%s[%zu]", path, at);
	return 0;
}

static int check_port(const struct check *c, const cJSON *port, const char *path, size_t at)
{
	static const char *const protocols[] = {"TCP", "UDP", "SCTP", "", NULL};
	const cJSON *number = object_json_find(port, "hostPort");
	const cJSON *protocol = object_json_find(port, "protocol");
	const cJSON *ip = object_json_find(port, "hostIP");

	if (!is_absent(number) &&
	    (!cJSON_IsNumber(number) || number->valuedouble < 0 || number->valuedouble > 65535 ||
	     number->valuedouble != (double)(int32_t)number->valuedouble))
		return fail(c, "must be from 1 to 65535", "%s[%zu].hostPort", path, at);
	if (!is_absent(protocol) &&
	    (!cJSON_IsString(protocol) || !is_one_of(protocol->valuestring, protocols)))
		return fail(c, "must be TCP, UDP or SCTP", "%s[%zu].protocol", path, at);
	if (!is_absent(ip) && !cJSON_IsString(ip))
		return fail(c, "must be a string", "%s[%zu].hostIP", path, at);
	return 0;
}

static int check_containers(const struct check *c, const cJSON *spec, const char *key)
{
	size_t at = 0;

	for (const cJSON *one = first(object_json_find(spec, key)); one; one = one->next, at++) {
		const cJSON *ports = object_json_find(one, "ports");
		char path[64], ports_path[80];
		size_t i = 0;

		snprintf(path, sizeof(path), "pod.spec.%s[%zu]", key, at);
		snprintf(ports_path, sizeof(ports_path), "%s.ports", path);
		if (check_claims(c, spec, one, path) || check_list(c, ports, ports_path))
			return -EINVAL;
		for (const cJSON *port = first(ports); port; port = port->next, i++)
			if (check_port(c, port, ports_path, i))
				return -EINVAL;
	}
	return 0;
}

int fit_pod_check(const cJSON *pod, char field[FIT_FIELD_MAX], struct reason *reason)
{
	const struct check c = {field, reason};
	const cJSON *spec = object_json_find(pod, "spec");

	if (check_members(&c, spec) || check_node_name(&c, pod, spec) ||
	    check_host_network(&c, spec) || check_claims(&c, spec, spec, "pod.spec") ||
	    check_list(&c, object_json_find(spec, "volumes"), "pod.spec.volumes") ||
	    check_containers(&c, spec, "containers"))
		return -EINVAL;
	return check_containers(&c, spec, "initContainers");
}
