/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row for each feature of k8s.io/component-helpers nodedeclaredfeatures (1.37) that scheduling
 * infers from a pod's spec. The other features in that registry matter to updates and to DRA only.
 */
#include "aggregator/model/declared_features.h"

#include <string.h>

#include "aggregator/model/object_json.h"

bool declared_features_restart_rule(const cJSON *rule)
{
	return object_json_is(rule, "action", "RestartAllContainers");
}

bool declared_features_mount(const cJSON *mount)
{
	return object_json_first(object_json_find(mount, "bindMountOptions")) != NULL;
}

/* Whether a container's list `member` has an element that asks for the feature. */
static bool any_asks(const cJSON *spec, const char *member, bool (*asks)(const cJSON *))
{
	static const char *const lists[] = {"containers", "initContainers"};

	for (size_t i = 0; i < 2; i++)
		for (const cJSON *one = object_json_first(object_json_find(spec, lists[i])); one;
		     one = one->next)
			for (const cJSON *item = object_json_first(object_json_find(one, member));
			     item; item = item->next)
				if (asks(item))
					return true;
	return false;
}

static bool has_users_on_host_network(const cJSON *spec)
{
	return cJSON_IsTrue(object_json_find(spec, "hostNetwork")) &&
	       cJSON_IsFalse(object_json_find(spec, "hostUsers"));
}

static const struct {
	const char *name;
	const char *list; /* of a container; NULL: the spec itself asks for the feature */
	bool (*asks)(const cJSON *);
} features[] = {
	{"RestartAllContainersOnContainerExits", "restartPolicyRules",
	 declared_features_restart_rule},
	{"UserNamespacesHostNetworkSupport", NULL, has_users_on_host_network},
	{"VolumeBindMountOptions", "volumeMounts", declared_features_mount},
};

enum { FEATURES = sizeof(features) / sizeof(features[0]) };

declared_features declared_features_of_node(const cJSON *list)
{
	declared_features set = 0;

	for (const cJSON *item = object_json_first(list); item; item = item->next)
		for (int i = 0; i < FEATURES; i++)
			if (cJSON_IsString(item) &&
			    strcmp(item->valuestring, features[i].name) == 0)
				set |= (declared_features)(1U << i);
	return set;
}

declared_features declared_features_of_pod(const cJSON *spec)
{
	declared_features set = 0;

	for (int i = 0; i < FEATURES; i++)
		if (features[i].list ? any_asks(spec, features[i].list, features[i].asks)
				     : features[i].asks(spec))
			set |= (declared_features)(1U << i);
	return set;
}

const char *declared_features_name(declared_features set)
{
	int i = 0;

	while (i < FEATURES - 1 && !(set & 1U << i))
		i++;
	return features[i].name;
}
