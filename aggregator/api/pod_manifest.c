/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod that is asked about is read as the API tells pods, so that a manifest and a running pod are
 * the same question: where could it be?
 *
 * A record of a pod keeps what is known to be asked for and drops the rest, which is right for pods
 * that an API server has checked. A manifest was checked by nobody: a member of a wrong type is
 * refused here. A member of the spec that no known version of Kubernetes has is ignored with a
 * warning. Known members that restrict nodes and are not judged (schedulingGates) refuse every
 * node: place_class.c.
 */
#include "aggregator/api/request_body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/array.h"

/* No API server takes a pod of that name: a manifest without one is no pod that is known. */
#define UNNAMED "(unnamed)"

/* --- the spec */

/*
 * The members of PodSpec (k8s.io/api/core/v1) by the Kubernetes version that added them. The next
 * version is one more row.
 */
static const char *const added_by_1_34[] = {
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
static const char *const added_by_1_35[] = {"workloadRef", NULL};
static const char *const added_by_1_36[] = {"schedulingGroup", NULL};
static const char *const added_by_1_37[] = {"evictionResponders", NULL};

static const struct {
	const char *version;
	const char *const *members;
} spec_versions[] = {
	{"1.34", added_by_1_34}, /* and earlier versions */
	{"1.35", added_by_1_35},
	{"1.36", added_by_1_36},
	{"1.37", added_by_1_37},
};

enum { WARNINGS_MAX = 32 };
enum { SPEC_VERSIONS = sizeof(spec_versions) / sizeof(spec_versions[0]) };

/* The pod's group: the answer is for the pod alone. */
static const char *const group_members[] = {"schedulingGroup", "workloadRef", NULL};

static bool is_spec_member(const char *name)
{
	for (size_t i = 0; i < SPEC_VERSIONS; i++)
		if (array_has_text(spec_versions[i].members, name))
			return true;
	return false;
}

/* Alpha in Kubernetes 1.35 to 1.37, and off by default. */
static bool compares_numbers(const cJSON *tolerations)
{
	for (const cJSON *t = tolerations->child; t; t = t->next) {
		const char *operator= cJSON_GetStringValue(object_json_find(t, "operator"));

		if (operator&&(strcmp(operator, "Gt") == 0 || strcmp(operator, "Lt") == 0))
			return true;
	}
	return false;
}

static void add_warning(struct jsonw *w, size_t *count, const char *member, const char *text)
{
	char line[OBJECT_FIELD_MAX];

	if (++*count > WARNINGS_MAX)
		return;
	if (*count == 1)
		jsonw_key_array(w, "warnings");
	snprintf(line, sizeof(line), "pod.spec.%.64s: %s", member, text);
	jsonw_string(w, line);
}

void pod_manifest_write_warnings(const cJSON *pod, struct jsonw *w)
{
	const cJSON *spec = object_json_find(pod, "spec");
	char unknown[64];
	size_t count = 0;

	snprintf(unknown, sizeof(unknown), "not a member in Kubernetes up to %s, ignored",
		 spec_versions[SPEC_VERSIONS - 1].version);
	for (const cJSON *item = cJSON_IsObject(spec) ? spec->child : NULL; item;
	     item = item->next) {
		if (cJSON_IsNull(item))
			continue;
		if (!is_spec_member(item->string))
			add_warning(w, &count, item->string, unknown);
		else if (array_has_text(group_members, item->string))
			add_warning(w, &count, item->string,
				    "size and topology of the group are not judged");
		else if (strcmp(item->string, "tolerations") == 0 && compares_numbers(item))
			add_warning(w, &count, item->string,
				    "Gt and Lt need the feature gate "
				    "TaintTolerationComparisonOperators");
	}
	if (count > WARNINGS_MAX) {
		snprintf(unknown, sizeof(unknown), "%zu more warnings", count - WARNINGS_MAX);
		jsonw_string(w, unknown);
	}
	if (count)
		jsonw_array_close(w);
}

/*
 * Who has a node already was not left to a scheduler: of a pod of the API it is what became of it.
 */
static void check_node_name(const struct object_json *pod, const struct object_json *spec)
{
	const struct object_json metadata = object_json_object(pod, "metadata");

	if (*object_json_string(spec, "nodeName", "") && !*object_json_string(&metadata, "uid", ""))
		object_json_fail(
			spec, "nodeName",
			"a manifest that names its node is bound there unasked; leave it out");
}

/* Claims that the spec does not have cannot be judged. */
static void check_claims(const struct object_json *spec, const struct object_json *owner)
{
	const struct object_json resources = object_json_object(owner, "resources"),
				 claims = object_json_list(&resources, "claims"),
				 claim = object_json_begin(&claims);

	if (claim.json && !object_json_first(object_json_find(spec->json, "resourceClaims")))
		object_json_fail(&claim, NULL, "is not in the spec's resourceClaims");
}

static void check_objects(const struct object_json *list)
{
	for (struct object_json item = object_json_begin(list); item.json; object_json_next(&item))
		if (!cJSON_IsObject(item.json))
			object_json_fail(&item, NULL, "must be an object");
}

static void check_port(const struct object_json *port)
{
	static const char *const protocols[] = {"TCP", "UDP", "SCTP", "", NULL};
	const cJSON *number = object_json_find(port->json, "hostPort");
	const cJSON *protocol = object_json_find(port->json, "protocol");

	if (number &&
	    (!cJSON_IsNumber(number) || number->valuedouble < 0 || number->valuedouble > 65535 ||
	     number->valuedouble != (double)(int32_t)number->valuedouble))
		object_json_fail(port, "hostPort", "must be from 1 to 65535");
	if (protocol &&
	    (!cJSON_IsString(protocol) || !array_has_text(protocols, protocol->valuestring)))
		object_json_fail(port, "protocol", "must be TCP, UDP or SCTP");
	object_json_string(port, "hostIP", "");
}

static void check_containers(const struct object_json *spec, const char *key)
{
	const struct object_json list = object_json_list(spec, key);

	for (struct object_json item = object_json_begin(&list); item.json;
	     object_json_next(&item)) {
		const struct object_json ports = object_json_list(&item, "ports");

		check_claims(spec, &item);
		check_objects(&ports);
		for (struct object_json port = object_json_begin(&ports); port.json;
		     object_json_next(&port))
			check_port(&port);
	}
}

static void check_pod(const struct object_json *pod)
{
	const struct object_json spec = object_json_object(pod, "spec");
	struct object_json volumes;

	check_node_name(pod, &spec);
	object_json_bool(&spec, "hostNetwork");
	check_claims(&spec, &spec);
	volumes = object_json_list(&spec, "volumes");
	check_objects(&volumes);
	check_containers(&spec, "containers");
	check_containers(&spec, "initContainers");
}

/* --- what a manifest may leave out, and what a pod has become */

void pod_manifest_default(cJSON *object, const char *key, const char *value)
{
	if (!cJSON_IsObject(object) || !request_lacks(request_member(object, key)))
		return; /* what is of another kind is refused when it is read */
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

/* Ports of a pod in its node's network are the node's, which a manifest need not say twice. */
static void open_port(cJSON *port)
{
	const cJSON *number = request_member(port, "containerPort"),
		    *host = request_member(port, "hostPort");

	if (!cJSON_IsNumber(number) ||
	    !(request_lacks(host) || (cJSON_IsNumber(host) && host->valuedouble == 0)))
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(port, "hostPort");
	cJSON_AddNumberToObject(port, "hostPort", number->valuedouble);
}

static void open_ports(cJSON *containers)
{
	for (cJSON *one = cJSON_IsArray(containers) ? containers->child : NULL; one;
	     one = one->next) {
		const cJSON *ports = request_member(one, "ports");

		for (cJSON *port = cJSON_IsArray(ports) ? ports->child : NULL; port;
		     port = port->next)
			open_port(port);
	}
}

/* Fills in defaults of a manifest, and removes the node and the status of a pod. */
static void make_pending(cJSON *pod)
{
	cJSON *metadata = request_member(pod, "metadata");

	if (request_lacks(metadata)) {
		cJSON_DeleteItemFromObjectCaseSensitive(pod, "metadata");
		metadata = cJSON_AddObjectToObject(pod, "metadata");
	}
	pod_manifest_default(metadata, "name", UNNAMED);
	pod_manifest_default(metadata, "namespace", "default");
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
	cJSON_DeleteItemFromObjectCaseSensitive(request_member(pod, "spec"), "nodeName");
	if (cJSON_IsTrue(request_member(request_member(pod, "spec"), "hostNetwork"))) {
		open_ports(request_member(request_member(pod, "spec"), "containers"));
		open_ports(request_member(request_member(pod, "spec"), "initContainers"));
	}
	cJSON_DeleteItemFromObjectCaseSensitive(request_member(pod, "status"), "phase");
}

int pod_manifest_read(cJSON *pod, struct kube_pod **out, char field[POD_MANIFEST_FIELD_MAX],
		      struct error *error)
{
	struct object_fault fault = {field, POD_MANIFEST_FIELD_MAX, error, false};
	const struct object_json whole = {pod, &fault, NULL, "pod", 0};
	char inner[OBJECT_FIELD_MAX] = "";
	struct object *record;

	if (!cJSON_IsObject(pod))
		object_json_fail(&whole, NULL, pod ? "must be a Pod object" : "is required");
	check_pod(&whole);
	if (fault.found)
		return -EINVAL;
	make_pending(pod);
	if (object_read(OBJECT_POD, pod, &record, inner, error)) {
		snprintf(field, POD_MANIFEST_FIELD_MAX, "pod%s%s", *inner ? "." : "", inner);
		return -EINVAL;
	}
	*out = (struct kube_pod *)record;
	return 0;
}
