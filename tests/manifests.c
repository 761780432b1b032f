/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/manifests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/array.h"
#include "shared/buf.h"
#include "shared/mem.h"
#include "shared/yaml_json.h"
#include "tests/process.h"
#include "tests/stack.h"

/* Those before 1.21 take no folders as resources. */
static bool renders(const char *kubectl)
{
	char *argv[] = {(char *)kubectl, (char *)"version", (char *)"--client", NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	const char *version;
	int minor = 0;

	if (process_run(argv, &out, &err) == 0 && out.data && (version = strstr(out.data, "v1.")))
		sscanf(version, "v1.%d", &minor);
	buf_fini(&out);
	buf_fini(&err);
	return minor >= 21;
}

const char *manifests_kubectl(void)
{
	static char *found;
	const char *given = getenv("KUBECTL"), *path = getenv("PATH");
	char *folders = mem_strdup(path ? path : ""), *rest = folders, *folder;

	free(found);
	found = given ? mem_strdup(given) : NULL;
	while (!found && (folder = strsep(&rest, ":"))) {
		found = mem_printf("%s/kubectl", folder);
		if (access(found, X_OK)) {
			free(found);
			found = NULL;
		}
	}
	free(folders);
	return found && renders(found) ? found : NULL;
}

cJSON *manifests_parse(const char *name, const char *text)
{
	static const struct yaml_json_limits limits = {.depth = 64, .bytes = 1 << 20};
	struct buf lines = BUF_INIT;
	struct error error = {""};
	cJSON *objects = cJSON_CreateArray();
	size_t documents = 0;
	char *rest, *line;

	if (yaml_json_convert(name, text, strlen(text), &limits, &lines, &documents, &error))
		fail_msg("%s", error.text);
	for (rest = lines.data; rest && (line = strsep(&rest, "\n"));) {
		cJSON *object = cJSON_Parse(line);

		if (object)
			cJSON_AddItemToArray(objects, object);
		else
			assert_string_equal(line, "");
	}
	assert_int_equal(cJSON_GetArraySize(objects), documents);
	buf_fini(&lines);
	return objects;
}

cJSON *manifests_render(const char *kubectl, const char *folder)
{
	char *argv[] = {(char *)kubectl, (char *)"kustomize", (char *)folder, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *objects;

	if (process_run(argv, &out, &err))
		fail_msg("kubectl kustomize %s: %s", folder, err.data ? err.data : "no word");
	objects = manifests_parse(folder, out.data ? out.data : "");
	buf_fini(&out);
	buf_fini(&err);
	return objects;
}

const char *manifests_text(const cJSON *object, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(object, path));

	return text ? text : "";
}

const cJSON *manifests_find(const cJSON *objects, const char *kind, const char *name)
{
	const cJSON *object;

	cJSON_ArrayForEach (object, objects) {
		if (!strcmp(manifests_text(object, "kind"), kind) &&
		    !strcmp(manifests_text(object, "metadata.name"), name))
			return object;
	}
	return NULL;
}

bool manifests_selects(const cJSON *selector, const cJSON *labels)
{
	const cJSON *wanted;

	cJSON_ArrayForEach (wanted, selector) {
		const char *is = cJSON_GetStringValue(
			cJSON_GetObjectItemCaseSensitive(labels, wanted->string));

		if (!is || !cJSON_IsString(wanted) || strcmp(is, wanted->valuestring) != 0)
			return false;
	}
	return cJSON_GetArraySize(selector) > 0;
}

const cJSON *manifests_selected(const cJSON *objects, const cJSON *selector)
{
	const cJSON *object;

	cJSON_ArrayForEach (object, objects) {
		const char *kind = manifests_text(object, "kind");

		if ((!strcmp(kind, "Deployment") || !strcmp(kind, "DaemonSet")) &&
		    manifests_selects(selector, json_at(object, "spec.template.metadata.labels")))
			return object;
	}
	return NULL;
}

bool manifests_may_change(const cJSON *role, const char *verbs, const char *resources,
			  const char *names)
{
	static const char *const allowed[] = {
		"evenkeel-actuator: get list patch : nodes : ",
		"evenkeel-actuator: get list : pods : ",
		"evenkeel-actuator: create : pods/eviction : ",
		"evenkeel-actuator: update : acts/report : ",
		"evenkeel-actuator: get patch : leases : evenkeel-actuator ",
		"evenkeel-actuator: create : leases : ",
		"evenkeel-actuator-events: create : events : ",
		"evenkeel-actuator-reclaim: create : events : ",
		("evenkeel-actuator-slack: get list create patch delete : deployments podtemplates "
		 "capacitybuffers : "),
		"evenkeel-actuator-slack: create patch : namespaces : evenkeel ",
		"evenkeel-actuator-slack: create patch : priorityclasses : evenkeel-slack ",
		"evenkeel-aggregator: create : tokenreviews : ",
		"evenkeel-aggregator: create : subjectaccessreviews : ",
		("evenkeel-aggregator: get : apiservices : v1.evenkeel.io v1.metrics.k8s.io "
		 "v1beta1.metrics.k8s.io "),
		"evenkeel-aggregator: patch : apiservices : v1.evenkeel.io ",
		("evenkeel-metrics-api: patch : apiservices : v1.metrics.k8s.io "
		 "v1beta1.metrics.k8s.io "),
		"evenkeel-events: create patch : events : ",
		"evenkeel-nudge: patch : persistentvolumeclaims : evenkeel-nudge ",
		"evenkeel-secrets: get patch : secrets : evenkeel-tls evenkeel-enrolment ",
		"evenkeel-secrets: patch : configmaps : evenkeel-enrolment ",
		"evenkeel-secrets: create : secrets configmaps : ",
		NULL,
	};
	char *is = mem_printf("%s: %s: %s: %s", manifests_text(role, "metadata.name"), verbs,
			      resources, names);
	bool found = array_has_text(allowed, is);

	free(is);
	return found;
}
