/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts of every resource a Kubernetes object names, as exact integers; absent differs from 0.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * CPU in millicores; memory and ephemeral storage in bytes; pods, and every other resource, in
 * whole units.
 */
enum resource_id {
	RESOURCE_CPU,
	RESOURCE_MEMORY,
	RESOURCE_EPHEMERAL_STORAGE,
	RESOURCE_PODS,
	RESOURCE_STANDARD
};

/* One of the others: "nvidia.com/gpu", "hugepages-2Mi". */
struct resource_extended {
	char *name; /* owned */
	int64_t amount;
};

struct resources {
	/* bit 1 << enum resource_id: the key is there; where it is not the amount is 0 */
	uint8_t has;
	int64_t of[RESOURCE_STANDARD];
	uint32_t extended_count;
	struct resource_extended *extended; /* owned; sorted by name */
};

#define RESOURCES_NONE ((struct resources){0})

void resources_fini(struct resources *r);
void resources_copy(struct resources *to, const struct resources *from); /* *to is overwritten */
bool resources_has(const struct resources *r, enum resource_id id);
void resources_set(struct resources *r, enum resource_id id, int64_t amount);
/*
 * By the name an object uses: "cpu", "memory", "example.com/x". False when it is absent; *amount is
 * then untouched.
 */
bool resources_find(const struct resources *r, const char *name, int64_t *amount);
/* The same, 0 where it is absent. */
int64_t resources_amount(const struct resources *r, const char *name);
void resources_set_named(struct resources *r, const char *name, int64_t amount);
/*
 * Walks over the keys there are, the standard ones first, then by name: *at starts at 0. False
 * behind the last one.
 */
bool resources_next(const struct resources *r, size_t *at, const char **name, int64_t *amount);
/* to += more, to = max(to, other), for every key either has; saturating at +-INT64_MAX. */
void resources_add(struct resources *to, const struct resources *more);
void resources_max(struct resources *to, const struct resources *other);
/* to -= less; keys of less that *to lacks become negative amounts. */
void resources_subtract(struct resources *to, const struct resources *less);
bool resources_equal(const struct resources *a, const struct resources *b);
bool resource_is_bytes(const char *name); /* memory, storage, huge pages */
/* cpu, memory, ephemeral-storage, hugepages-SIZE or an extended one: what a container can limit. */
bool resource_is_limited(const char *name);
const char *resource_name(enum resource_id id); /* "cpu", "memory", "ephemeral-storage", "pods" */
