/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a cluster as an API server would tell them, for tests of the model and of what reads
 * it.
 */
#pragma once

#include <stdint.h>

#include "aggregator/model/model.h"

/* All members may be NULL or 0. */
struct model_fixture_pod {
	const char *namespace; /* "default" */
	const char *name; /* "pod" */
	const char *uid; /* "uid-NAMESPACE-NAME" */
	const char *node;
	const char *owner_kind, *owner_name, *owner_uid; /* the controller */
	const char *config_hash; /* makes it the image of a static pod */
	const char *phase; /* "Running" */
	const char *cpu, *memory, *cpu_limit, *memory_limit; /* of its one container */
	const char *init_cpu_limit; /* of an init container */
	int64_t scheduled_ns;
};

/* The record of that JSON; the test fails where there is none. */
struct object *model_fixture_object(enum object_kind kind, const char *json);
struct object *model_fixture_pod(const struct model_fixture_pod *p);
/* Capacity, and 1 CPU and 1 GiB less allocatable; uid "uid-NAME". */
struct object *model_fixture_node(const char *name, int cpus, int gibibytes);
/* uid "uid-NAME"; owner_kind may be NULL. */
struct object *model_fixture_workload(enum object_kind kind, const char *namespace,
				      const char *name, const char *owner_kind,
				      const char *owner_name);
/* Everything of the kind is known. */
void model_fixture_sync(struct model *m, enum object_kind kind);
