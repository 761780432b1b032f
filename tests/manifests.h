/* SPDX-License-Identifier: Apache-2.0 */
/* What `kubectl kustomize` makes of packaging/kubernetes, as objects. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

/* KUBECTL, else the one in PATH; NULL: it is none that renders the folders. Static storage. */
const char *manifests_kubectl(void);
/*
 * An array of all objects of a folder; what kubectl complains of fails the test. The caller deletes
 * it.
 */
cJSON *manifests_render(const char *kubectl, const char *folder);
/* The same of a text with documents of YAML. */
cJSON *manifests_parse(const char *name, const char *text);

/* The object of a kind and name, of whatever version; NULL. */
const cJSON *manifests_find(const cJSON *objects, const char *kind, const char *name);
/*
 * A member of a path like "spec.template"; "" where it is no text. Parts with dots are not found.
 */
const char *manifests_text(const cJSON *object, const char *path);
/* Whether every label asked for is there; an empty selector matches nothing here. */
bool manifests_selects(const cJSON *selector, const cJSON *labels);
/* The first Deployment or DaemonSet whose pods a selector matches; NULL. */
const cJSON *manifests_selected(const cJSON *objects, const cJSON *selector);

/*
 * Whether a role may have a rule that changes or creates something; every word of verbs, resources
 * and names is followed by a space.
 */
bool manifests_may_change(const cJSON *role, const char *verbs, const char *resources,
			  const char *names);
