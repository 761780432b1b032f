/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded YAML document, read by member names; keeps the first fault with its place. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBECONFIG_YAML_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBECONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "shared/error.h"

/*
 * After a failure every function below finds nothing: a reader takes one member after the other
 * and checks `failed` at the end.
 */
struct kubeconfig_yaml {
	yaml_document_t document;
	const char *name; /* of the file; borrowed */
	struct error *error; /* of the first failure; borrowed */
	bool failed;
};

/* Loads one mapping within the bounds of the .c file. -EINVAL with the reason: nothing to free. */
int kubeconfig_yaml_load(struct kubeconfig_yaml *y, const char *name, const char *text, size_t len,
			 struct error *error);
void kubeconfig_yaml_fini(struct kubeconfig_yaml *y); /* wipes every scalar */

yaml_node_t *kubeconfig_yaml_root(struct kubeconfig_yaml *y);
/* The member of a mapping; NULL: absent or null, or a failure: given twice, or of another type. */
yaml_node_t *kubeconfig_yaml_find(struct kubeconfig_yaml *y, const yaml_node_t *map,
				  const char *key, yaml_node_type_t type);
/* The text of a scalar member, borrowed from the document; NULL also if empty. */
const char *kubeconfig_yaml_text(struct kubeconfig_yaml *y, const yaml_node_t *map,
				 const char *key);
bool kubeconfig_yaml_flag(struct kubeconfig_yaml *y, const yaml_node_t *map, const char *key);
/* An item of a sequence, of that type; NULL behind its end. */
yaml_node_t *kubeconfig_yaml_item(struct kubeconfig_yaml *y, const yaml_node_t *sequence, size_t i,
				  yaml_node_type_t type);

/* Keeps "file:line:column: text" unless there was a failure before. */
void kubeconfig_yaml_fail(struct kubeconfig_yaml *y, const yaml_node_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
