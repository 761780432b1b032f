/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why: a manifest is a program that nobody compiles. How: the files of the installation, and what
 * kubectl renders of the base and of every overlay, are held against what was meant: rights, mounts,
 * names that refer to each other, ports that agree, and options that the programs really take, which
 * the programs themselves say. KUBECTL names another kubectl than that of PATH; without one from
 * 1.21 on there are the files alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/manifests.h"
#include "tests/process.h"
#include "tests/stack.h"

#define KUBERNETES "packaging/kubernetes/"
#define AGGREGATOR "evenkeel-aggregator"
#define NAMESPACE  "evenkeel"

/* What a test looks at: a rendered folder. */
struct rendered {
	char *folder;
	cJSON *objects;
};

static struct rendered rendered[24];
static size_t folders;

static bool is(const cJSON *object, const char *path, const char *text)
{
	return !strcmp(manifests_text(object, path), text);
}

static bool is_bool(const cJSON *object, const char *path, bool value)
{
	const cJSON *member = json_at(object, path);

	return cJSON_IsBool(member) && cJSON_IsTrue(member) == value;
}

static bool is_workload(const cJSON *object)
{
	return is(object, "kind", "Deployment") || is(object, "kind", "DaemonSet");
}

static const cJSON *first(const cJSON *object, const char *path)
{
	return cJSON_GetArrayItem(json_at(object, path), 0);
}

static const cJSON *container_of(const cJSON *workload)
{
	assert_int_equal(cJSON_GetArraySize(json_at(workload, "spec.template.spec.containers")), 1);
	assert_null(json_at(workload, "spec.template.spec.initContainers"));
	return first(workload, "spec.template.spec.containers");
}

/* The item of a list with that member; NULL. */
static const cJSON *item_with(const cJSON *list, const char *member, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		if (is(item, member, text))
			return item;
	}
	return NULL;
}

/* What follows "--NAME=" in a container's arguments; NULL. */
static const char *argument(const cJSON *container, const char *name)
{
	size_t len = strlen(name);
	const cJSON *arg;

	cJSON_ArrayForEach (arg, json_at(container, "args")) {
		const char *text = arg->valuestring;

		if (!strncmp(text, "--", 2) && !strncmp(text + 2, name, len) &&
		    text[2 + len] == '=')
			return text + 3 + len;
	}
	return NULL;
}

/* Of "HOST:PORT"; 0: there is none. */
static long port_of(const char *address)
{
	const char *colon = address ? strrchr(address, ':') : NULL;

	return colon ? strtol(colon + 1, NULL, 10) : 0;
}

/* Calls `check` with every object of every folder. */
static void each(void (*check)(const struct rendered *r, const cJSON *object))
{
	for (size_t i = 0; i < folders; i++) {
		const cJSON *object;

		cJSON_ArrayForEach (object, rendered[i].objects) {
			check(&rendered[i], object);
		}
	}
}

/* Says of what it is before an assertion fails. */
#define EXPECT(object, condition)                                                                  \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s: %s %s: %s", r->folder, manifests_text(object, "kind"),       \
				 manifests_text(object, "metadata.name"), #condition);             \
	} while (0)

/* --- names ------------------------------------------------------------------------------------ */

static bool has_no_namespace(const cJSON *object)
{
	static const char *const kinds[] = {"Namespace", "ClusterRole", "ClusterRoleBinding",
					    "CustomResourceDefinition", "APIService"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (is(object, "kind", kinds[i]))
			return true;
	}
	return false;
}

static void check_identity(const struct rendered *r, const cJSON *o)
{
	EXPECT(o, *manifests_text(o, "apiVersion"));
	EXPECT(o, *manifests_text(o, "metadata.name"));
	/* A binding of a Role is where the Role is. */
	EXPECT(o, is(o, "metadata.namespace",
		     has_no_namespace(o)				  ? ""
		     : is(o, "metadata.name", "evenkeel-front-proxy")	  ? "kube-system"
		     : is(o, "metadata.name", "evenkeel-actuator-events") ? "default"
									  : NAMESPACE));
	/* The first of that kind and name is this one: there is no second. */
	EXPECT(o, manifests_find(r->objects, manifests_text(o, "kind"),
				 manifests_text(o, "metadata.name")) == o);
}

/* What one object calls another is there. */
static void check_references(const struct rendered *r, const cJSON *o)
{
	const cJSON *subject;

	if (is_workload(o))
		EXPECT(o,
		       manifests_find(r->objects, "ServiceAccount",
				      manifests_text(o, "spec.template.spec.serviceAccountName")));
	if (is(o, "kind", "APIService"))
		EXPECT(o, manifests_find(r->objects, "Service",
					 manifests_text(o, "spec.service.name")) &&
				  is(o, "spec.service.namespace", NAMESPACE));
	if (!is(o, "kind", "ClusterRoleBinding") && !is(o, "kind", "RoleBinding"))
		return;
	/* The Role in kube-system is the API server's own. */
	EXPECT(o, is(o, "metadata.namespace", "kube-system") ||
			  manifests_find(r->objects, manifests_text(o, "roleRef.kind"),
					 manifests_text(o, "roleRef.name")));
	cJSON_ArrayForEach (subject, json_at(o, "subjects")) {
		EXPECT(o, is(subject, "kind", "ServiceAccount"));
		EXPECT(o, is(subject, "namespace", NAMESPACE));
		EXPECT(o, manifests_find(r->objects, "ServiceAccount",
					 manifests_text(subject, "name")));
	}
}

/* An empty selector is everybody's. */
static void check_policy_peers(const struct rendered *r, const cJSON *o, const char *rules,
			       const char *peers)
{
	const cJSON *rule, *peer;

	cJSON_ArrayForEach (rule, json_at(o, rules)) {
		cJSON_ArrayForEach (peer, json_at(rule, peers)) {
			const cJSON *labels = json_at(peer, "podSelector.matchLabels");
			const cJSON *namespace = json_at(peer, "namespaceSelector.matchLabels");
			bool operators = cJSON_HasObjectItem(labels, "evenkeel.io/access");

			EXPECT(o, cJSON_GetArraySize(labels) || cJSON_GetArraySize(namespace) ||
					  *manifests_text(peer, "ipBlock.cidr"));
			EXPECT(o, !labels || operators || manifests_selected(r->objects, labels));
		}
	}
}

static void check_selectors(const struct rendered *r, const cJSON *o)
{
	const char *path = is(o, "kind", "Service")	    ? "spec.selector"
			   : is(o, "kind", "NetworkPolicy") ? "spec.podSelector.matchLabels"
			   : is(o, "kind", "PodDisruptionBudget") || is(o, "kind", "PodMonitor") ||
					   is_workload(o)
				   ? "spec.selector.matchLabels"
				   : NULL;

	if (!path)
		return;
	EXPECT(o, manifests_selected(r->objects, json_at(o, path)));
	EXPECT(o, !is_workload(o) || manifests_selected(r->objects, json_at(o, path)) == o);
	check_policy_peers(r, o, "spec.ingress", "from");
	check_policy_peers(r, o, "spec.egress", "to");
}

static void test_names(void **state)
{
	(void)state;
	each(check_identity);
	each(check_references);
	each(check_selectors);
}

/* --- rights ----------------------------------------------------------------------------------- */

/* Words of an array, each with a space after it. */
static void join(const cJSON *words, char *text, size_t size)
{
	const cJSON *word;
	size_t len = 0;

	*text = '\0';
	cJSON_ArrayForEach (word, words) {
		len += (size_t)snprintf(text + len, size - len, "%s ", word->valuestring);
		assert_true(len < size);
	}
}

/* The agent has two capabilities, with old kernels a third, and the aggregator none. */
static const char *capabilities(const struct rendered *r, const cJSON *workload)
{
	if (is(workload, "kind", "Deployment"))
		return "";
	return strstr(r->folder, "old-kernel") ? "BPF PERFMON SYS_RESOURCE " : "BPF PERFMON ";
}

static void check_container(const struct rendered *r, const cJSON *o)
{
	const cJSON *container = container_of(o), *rights = json_at(container, "securityContext");
	char *image =
		mem_printf("localhost/%s:" EVENKEEL_VERSION, manifests_text(o, "metadata.name"));
	char words[128];

	EXPECT(o, is(container, "image", image));
	EXPECT(o, is_bool(rights, "privileged", false));
	EXPECT(o, is_bool(rights, "allowPrivilegeEscalation", false));
	EXPECT(o, is_bool(rights, "readOnlyRootFilesystem", true));
	join(json_at(rights, "capabilities.drop"), words, sizeof(words));
	EXPECT(o, !strcmp(words, "ALL "));
	join(json_at(rights, "capabilities.add"), words, sizeof(words));
	EXPECT(o, !strcmp(words, capabilities(r, o)));
	EXPECT(o, *manifests_text(container, "resources.limits.memory"));
	/* An actuator that hangs loses its Lease. */
	EXPECT(o,
	       json_at(container, "livenessProbe") || is(o, "metadata.name", "evenkeel-actuator"));
	free(image);
}

static void check_rights(const struct rendered *r, const cJSON *o)
{
	const cJSON *pod = json_at(o, "spec.template.spec");
	bool agent = is(o, "kind", "DaemonSet");

	if (!is_workload(o))
		return;
	EXPECT(o, is(pod, "securityContext.seccompProfile.type", "RuntimeDefault"));
	EXPECT(o, is_bool(pod, "automountServiceAccountToken", !agent));
	/* Services' variables look like options of ours. */
	EXPECT(o, is_bool(pod, "enableServiceLinks", false));
	EXPECT(o, !json_at(pod, "hostNetwork") && !json_at(pod, "hostIPC"));
	EXPECT(o, !json_at(pod, "hostPID") || (agent && strstr(r->folder, "old-kernel")));
	EXPECT(o, agent || is_bool(pod, "securityContext.runAsNonRoot", true));
	check_container(r, o);
}

/* Nothing by wildcard, and no change but those that are there for a purpose. */
static void check_role(const struct rendered *r, const cJSON *o)
{
	const cJSON *rule;

	cJSON_ArrayForEach (rule, json_at(o, "rules")) {
		char verbs[128], resources[512], names[128], groups[512];
		bool ours;

		join(json_at(rule, "apiGroups"), groups, sizeof(groups));
		ours = !strcmp(groups, "evenkeel.io ") || !strcmp(groups, "metrics.k8s.io ");
		join(json_at(rule, "verbs"), verbs, sizeof(verbs));
		join(json_at(rule, "resourceNames"), names, sizeof(names));
		join(json_at(rule, "resources"), resources, sizeof(resources));
		EXPECT(o, !strchr(verbs, '*') && !strchr(resources, '*'));
		if (json_at(rule, "nonResourceURLs"))
			EXPECT(o, !strcmp(verbs, "get ") || !strcmp(verbs, "post "));
		else if (ours)
			EXPECT(o, !strcmp(verbs, "get list ") || !strcmp(verbs, "create ") ||
					  manifests_may_change(o, verbs, resources, names));
		else if (strcmp(verbs, "get list watch ") == 0)
			EXPECT(o, !strstr(resources, "secrets"));
		else
			EXPECT(o, manifests_may_change(o, verbs, resources, names));
	}
}

static void test_rights(void **state)
{
	(void)state;
	each(check_rights);
	each(check_role);
}

/* --- mounts ----------------------------------------------------------------------------------- */

static void check_volume(const struct rendered *r, const cJSON *o, const cJSON *mount)
{
	const cJSON *volume = item_with(json_at(o, "spec.template.spec.volumes"), "name",
					manifests_text(mount, "name"));
	const char *secret = manifests_text(volume, "secret.secretName");
	const char *claim = manifests_text(volume, "persistentVolumeClaim.claimName");

	EXPECT(o, volume);
	/* Nobody has to make a Secret first, but for these. */
	EXPECT(o, !*secret ||
			  (!strcmp(secret, "evenkeel-key") &&
			   (strstr(r->folder, "shared-key") || strstr(r->folder, "transition"))) ||
			  (!strcmp(secret, "evenkeel-tls") && strstr(r->folder, "cert-manager")));
	EXPECT(o, !*claim || manifests_find(r->objects, "PersistentVolumeClaim", claim));
	EXPECT(o, !json_at(volume, "hostPath") || (is(o, "kind", "DaemonSet") &&
						   is(volume, "hostPath.path", "/sys/fs/cgroup")));
	/* The aggregator writes its state and Secrets, the agent its status. */
	if (is(mount, "name", "state") || is(mount, "name", "secrets") ||
	    is(mount, "name", "status"))
		EXPECT(o, !json_at(mount, "readOnly"));
	else
		EXPECT(o, is_bool(mount, "readOnly", true));
}

static bool is_mounted(const cJSON *container, const char *path)
{
	const cJSON *mount;

	cJSON_ArrayForEach (mount, json_at(container, "volumeMounts")) {
		const char *at = manifests_text(mount, "mountPath");

		if (!strncmp(path, at, strlen(at)) && strchr("/", path[strlen(at)]))
			return true;
	}
	return false;
}

/* Every file and folder in the arguments lies in a volume, every volume is mounted. */
static void check_mounts(const struct rendered *r, const cJSON *o)
{
	const cJSON *container, *mount, *arg;

	if (!is_workload(o))
		return;
	container = container_of(o);
	EXPECT(o, cJSON_GetArraySize(json_at(container, "volumeMounts")) ==
			  cJSON_GetArraySize(json_at(o, "spec.template.spec.volumes")));
	cJSON_ArrayForEach (mount, json_at(container, "volumeMounts")) {
		check_volume(r, o, mount);
	}
	cJSON_ArrayForEach (arg, json_at(container, "args")) {
		const char *value = strchr(arg->valuestring, '=');

		EXPECT(o, !value || value[1] != '/' || is_mounted(container, value + 1));
	}
}

/* Agents enrol by the token of their own ServiceAccount, and none needs a shared key. */
static void check_enrolment(const struct rendered *r, const cJSON *o)
{
	const cJSON *container, *agent, *sources;
	char *account;

	if (strstr(r->folder, "shared-key") ||
	    !is(o, "spec.template.spec.serviceAccountName", AGGREGATOR))
		return;
	agent = manifests_find(r->objects, "DaemonSet", "evenkeel-agent");
	account = mem_printf("%s/%s", manifests_text(agent, "metadata.namespace"),
			     manifests_text(agent, "spec.template.spec.serviceAccountName"));
	container = container_of(o);
	EXPECT(o, !strcmp(argument(container, "enrol-service-account"), account));
	EXPECT(o, argument(container, "enrolment-key"));
	EXPECT(o, !argument(container, "key-file") == !strstr(r->folder, "transition"));
	container = container_of(agent);
	sources = json_at(item_with(json_at(agent, "spec.template.spec.volumes"), "name",
				    "enrolment"),
			  "projected.sources");
	EXPECT(agent, !argument(container, "key-file") && argument(container, "aggregator-key"));
	EXPECT(agent, item_with(sources, "configMap.name", "evenkeel-enrolment"));
	EXPECT(agent, item_with(sources, "serviceAccountToken.audience", "evenkeel-ingest"));
	free(account);
}

static void test_mounts(void **state)
{
	(void)state;
	each(check_mounts);
	each(check_enrolment);
}

/* --- ports ------------------------------------------------------------------------------------ */

static void check_service(const struct rendered *r, const cJSON *o)
{
	const cJSON *port = first(o, "spec.ports"),
		    *workload = manifests_selected(r->objects, json_at(o, "spec.selector"));
	const cJSON *target = item_with(json_at(container_of(workload), "ports"), "name",
					manifests_text(port, "targetPort"));

	EXPECT(o, cJSON_GetArraySize(json_at(o, "spec.ports")) == 1);
	EXPECT(o, target);
	EXPECT(o, cJSON_Compare(json_at(port, "port"), json_at(target, "containerPort"), true));
}

/* A Service without an address, that also knows an aggregator which is not ready. */
static void check_ingest_url(const struct rendered *r, const cJSON *o, const char *url)
{
	char host[64] = "";
	const cJSON *service;

	EXPECT(o, url && sscanf(url, "tcp://%63[a-z-]:", host) == 1);
	service = manifests_find(r->objects, "Service", host);
	EXPECT(o, service);
	EXPECT(o, is(service, "spec.clusterIP", "None"));
	EXPECT(o, is_bool(service, "spec.publishNotReadyAddresses", true));
	EXPECT(o, port_of(url) == (long)json_at(first(service, "spec.ports"), "port")->valuedouble);
}

static void check_agent(const struct rendered *r, const cJSON *o)
{
	check_ingest_url(r, o, argument(container_of(o), "aggregator"));
	EXPECT(o, item_with(json_at(container_of(o), "env"), "name", "NODE_NAME"));
	EXPECT(o, !strcmp(argument(container_of(o), "node-name"), "$(NODE_NAME)"));
}

static void check_probe(const struct rendered *r, const cJSON *o, const char *probe)
{
	const cJSON *container = container_of(o),
		    *get = json_at(json_at(container, probe), "httpGet");

	EXPECT(o, item_with(json_at(container, "ports"), "name", manifests_text(get, "port")));
	EXPECT(o, is(get, "scheme", argument(container, "tls-cert") ? "HTTPS" : "HTTP"));
}

/* Two aggregators know each other, are on different nodes, and one of them stays. */
static void check_pair(const struct rendered *r, const cJSON *o)
{
	bool pair = strstr(r->folder, "overlays/ha");
	const char *peer = argument(container_of(o), "peer"),
		   *delay = argument(container_of(o), "shutdown-delay");
	const cJSON *apart = json_at(o, "spec.template.spec.affinity.podAntiAffinity"),
		    *budget = manifests_find(r->objects, "PodDisruptionBudget", AGGREGATOR);

	EXPECT(o, json_at(o, "spec.replicas")->valueint == (pair ? 2 : 1));
	EXPECT(o, !peer == !pair && !apart == !pair && !delay == !pair);
	if (!pair)
		return;
	check_ingest_url(r, o, peer);
	EXPECT(o, is(first(apart, "requiredDuringSchedulingIgnoredDuringExecution"), "topologyKey",
		     "kubernetes.io/hostname"));
	EXPECT(o, manifests_selected(
			  r->objects,
			  json_at(first(apart, "requiredDuringSchedulingIgnoredDuringExecution"),
				  "labelSelector.matchLabels")) == o);
	/* 20 s for the last save. */
	EXPECT(o, json_at(o, "spec.template.spec.terminationGracePeriodSeconds")->valueint >=
			  strtol(delay, NULL, 10) + 20);
	EXPECT(o, json_at(o, "spec.minReadySeconds")->valueint >= 30 + 5); /* look-up, interval */
	EXPECT(o, json_at(budget, "spec.maxUnavailable")->valueint == 1);
	EXPECT(o, is(o, "spec.strategy.type", "RollingUpdate") &&
			  json_at(o, "spec.strategy.rollingUpdate.maxSurge")->valueint == 0);
}

static void check_aggregator(const struct rendered *r, const cJSON *o)
{
	const cJSON *container = container_of(o), *ports = json_at(container, "ports");
	static const char *const pairs[][2] = {{"http", "listen"}, {"ingest", "ingest"}};

	for (size_t i = 0; i < 2; i++) {
		const cJSON *port = json_at(item_with(ports, "name", pairs[i][0]), "containerPort");

		EXPECT(o, port && port_of(argument(container, pairs[i][1])) ==
					  (long)port->valuedouble);
		EXPECT(o, strstr(argument(container, pairs[i][1]), "0.0.0.0:"));
	}
	check_probe(r, o, "startupProbe");
	check_probe(r, o, "readinessProbe");
	check_probe(r, o, "livenessProbe");
	/* Of 2 s each: 30 s for a copy of the other one's database, and as long to read it. */
	EXPECT(o, json_at(container, "startupProbe.failureThreshold")->valueint >= 30);
	check_pair(r, o);
}

/* "TCP:2021 " of each port of each rule. */
static void join_ports(const cJSON *rules, char *text, size_t size)
{
	const cJSON *rule, *port;
	size_t len = 0;

	*text = '\0';
	cJSON_ArrayForEach (rule, rules) {
		cJSON_ArrayForEach (port, json_at(rule, "ports")) {
			const cJSON *number = json_at(port, "port");

			len += (size_t)snprintf(text + len, size - len, "%s:%d ",
						manifests_text(port, "protocol"),
						number ? number->valueint : 0);
			assert_true(len < size);
		}
	}
}

/* Every rule names its ports, and one that lets in its peers; a range's end would be more ports. */
static void check_rules(const struct rendered *r, const cJSON *o, const cJSON *rules,
			const char *peers)
{
	const cJSON *rule, *port;

	cJSON_ArrayForEach (rule, rules) {
		EXPECT(o, cJSON_GetArraySize(json_at(rule, "ports")));
		EXPECT(o, !peers || cJSON_GetArraySize(json_at(rule, peers)));
		cJSON_ArrayForEach (port, json_at(rule, "ports")) {
			EXPECT(o, !json_at(port, "endPort"));
		}
	}
}

/* Of an address nothing is said on the way out: names and the API server have any. */
static void check_policy(const struct rendered *r, const cJSON *o)
{
	static const struct {
		const char *name, *in, *out;
	} policies[] = {
		{"evenkeel-aggregator", "TCP:2021 TCP:2020 ", "UDP:53 TCP:53 TCP:443 TCP:6443 "},
		{"evenkeel-actuator", "", "UDP:53 TCP:53 TCP:443 TCP:6443 "},
		{"evenkeel-agent", "", "UDP:53 TCP:53 TCP:2021 "},
		{"evenkeel-api-server", "TCP:2020 ", ""},
		{"evenkeel-peer", "TCP:2021 ", "TCP:2021 "},
	};
	char words[128];

	if (!is(o, "kind", "NetworkPolicy"))
		return;
	join(json_at(o, "spec.policyTypes"), words, sizeof(words));
	/* What only adds a way in says nothing about the way out. */
	EXPECT(o, !strcmp(words, json_at(o, "spec.egress") ? "Ingress Egress " : "Ingress ") &&
			  (json_at(o, "spec.egress") ||
			   is(o, "metadata.name", "evenkeel-api-server")));
	check_rules(r, o, json_at(o, "spec.ingress"), "from");
	check_rules(r, o, json_at(o, "spec.egress"), NULL);
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (!is(o, "metadata.name", policies[i].name))
			continue;
		join_ports(json_at(o, "spec.ingress"), words, sizeof(words));
		EXPECT(o, !strcmp(words, policies[i].in));
		join_ports(json_at(o, "spec.egress"), words, sizeof(words));
		EXPECT(o, !strcmp(words, policies[i].out));
	}
}

static void check_has_policies(const struct rendered *r, const cJSON *o)
{
	EXPECT(o, !is_workload(o) || manifests_find(r->objects, "NetworkPolicy",
						    manifests_text(o, "metadata.name")));
}

static void test_policies(void **state)
{
	(void)state;
	each(check_policy);
	each(check_has_policies);
}

/* Tokens are for evenkeel alone, but for users who can have no such ones. */
static void check_audience(const struct rendered *r, const cJSON *o)
{
	const char *audience;
	const cJSON *volume;
	bool any;

	if (!is(o, "spec.template.spec.serviceAccountName", AGGREGATOR))
		return;
	any = strstr(r->folder, "legacy") || strstr(r->folder, "1.20") ||
	      strstr(r->folder, "prometheus");
	audience = argument(container_of(o), "token-audience");
	EXPECT(o, any ? !audience : audience && !strcmp(audience, "evenkeel"));
	volume = item_with(json_at(o, "spec.template.spec.volumes"), "name", "token");
	EXPECT(o, !audience || is(first(volume, "projected.sources"),
				  "serviceAccountToken.audience", audience));
}

static void test_audience(void **state)
{
	(void)state;
	each(check_audience);
}

static void check_ports(const struct rendered *r, const cJSON *o)
{
	if (is(o, "kind", "Service"))
		check_service(r, o);
	else if (is(o, "kind", "DaemonSet"))
		check_agent(r, o);
	else if (is(o, "spec.template.spec.serviceAccountName", AGGREGATOR))
		check_aggregator(r, o);
}

static void test_ports(void **state)
{
	(void)state;
	each(check_ports);
}

/* --- options ---------------------------------------------------------------------------------- */

/* Options are read before --help is answered, so that a wrong one, or a wrong value, is refused. */
static void run_with_help(const struct rendered *r, const cJSON *o, const cJSON *words,
			  int skip_words)
{
	char *argv[32] = {mem_strdup(program_path(manifests_text(o, "metadata.name")))};
	struct buf out = BUF_INIT, err = BUF_INIT;
	size_t n = 1;
	int status;

	for (const cJSON *word = cJSON_GetArrayItem(words, skip_words); word && n < 30;
	     word = word->next)
		argv[n++] = word->valuestring;
	argv[n] = (char *)"--help";
	status = process_run(argv, &out, &err);
	if (status)
		fail_msg("%s: %s %s: %s", r->folder, manifests_text(o, "kind"),
			 manifests_text(o, "metadata.name"), err.data ? err.data : "no word");
	buf_fini(&out);
	buf_fini(&err);
	free(argv[0]);
}

static void check_options(const struct rendered *r, const cJSON *o)
{
	const cJSON *container, *probe;

	if (!is_workload(o))
		return;
	container = container_of(o);
	EXPECT(o, cJSON_GetArraySize(json_at(container, "args")) > 2);
	run_with_help(r, o, json_at(container, "args"), 0);
	probe = json_at(container, "livenessProbe.exec.command");
	if (probe) {
		EXPECT(o, !strcmp(probe->child->valuestring, "/usr/bin/evenkeel-agent"));
		run_with_help(r, o, probe, 1);
	}
}

static void test_options(void **state)
{
	(void)state;
	each(check_options);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* What the images are built for, and no nodes that are no machines. */
static void check_nodes(const struct rendered *r, const cJSON *o)
{
	const cJSON *pod = json_at(o, "spec.template.spec"), *terms, *arch;
	char words[64];

	if (!is_workload(o))
		return;
	EXPECT(o, !strcmp(cJSON_GetObjectItem(json_at(pod, "nodeSelector"), "kubernetes.io/os")
				  ->valuestring,
			  "linux"));
	terms = json_at(json_at(pod, "affinity.nodeAffinity"),
			"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
	EXPECT(o, cJSON_GetArraySize(terms) == 1);
	arch = item_with(json_at(terms->child, "matchExpressions"), "key", "kubernetes.io/arch");
	join(json_at(arch, "values"), words, sizeof(words));
	EXPECT(o, is(arch, "operator", "In") && !strcmp(words, "amd64 arm64 "));
	if (!is(o, "kind", "DaemonSet"))
		return;
	EXPECT(o, is(item_with(json_at(terms->child, "matchExpressions"), "key", "type"),
		     "operator", "NotIn"));
	EXPECT(o, is(first(pod, "tolerations"), "operator", "Exists"));
}

static void test_nodes(void **state)
{
	(void)state;
	each(check_nodes);
}

/* --- the files of the installation ------------------------------------------------------------ */

static const struct {
	const char *file, *folder;
} files[] = {
	{KUBERNETES "install.yaml", KUBERNETES "base"},
	{KUBERNETES "install-1.20.yaml", KUBERNETES "overlays/legacy"},
};

/* They are what `make manifests` renders. */
static void test_files_are_current(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const cJSON *file = NULL, *folder = NULL;

		for (size_t k = 0; k < folders; k++) {
			if (!strcmp(rendered[k].folder, files[i].file))
				file = rendered[k].objects;
			if (!strcmp(rendered[k].folder, files[i].folder))
				folder = rendered[k].objects;
		}
		assert_non_null(file);
		if (!folder)
			skip();
		if (!cJSON_Compare(file, folder, true))
			fail_msg("%s is not what %s renders: make manifests", files[i].file,
				 files[i].folder);
	}
}

/* --- the overlays there are ------------------------------------------------------------------- */

static void take(const char *name, cJSON *objects)
{
	assert_true(folders < sizeof(rendered) / sizeof(rendered[0]));
	rendered[folders].folder = mem_strdup(name);
	rendered[folders++].objects = objects;
}

static int render_all(const char *kubectl)
{
	struct buf text = BUF_INIT;
	struct error error;
	glob_t found;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		buf_clear(&text);
		assert_int_equal(file_read(files[i].file, 1 << 20, &text, &error), 0);
		take(files[i].file, manifests_parse(files[i].file, text.data));
	}
	buf_fini(&text);
	if (!kubectl)
		return 0;
	if (glob(KUBERNETES "overlays/*", 0, NULL, &found) ||
	    glob(KUBERNETES "base", GLOB_APPEND, NULL, &found))
		return -1;
	for (size_t i = 0; i < found.gl_pathc; i++)
		take(found.gl_pathv[i], manifests_render(kubectl, found.gl_pathv[i]));
	globfree(&found);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	if (!manifests_kubectl())
		printf("SKIP: no kubectl from 1.21 on here, so the overlays are not rendered\n");
	return render_all(manifests_kubectl());
}

static int teardown(void **state)
{
	(void)state;
	for (; folders; folders--) {
		cJSON_Delete(rendered[folders - 1].objects);
		free(rendered[folders - 1].folder);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_audience),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_files_are_current),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
