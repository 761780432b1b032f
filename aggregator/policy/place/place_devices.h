/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of dynamic resource allocation in the placement core: slices, claims, allocations. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/policy/place/device_selector.h"
#include "aggregator/policy/place/place.h"
#include "aggregator/policy/place/place_terms.h"
#include "shared/array.h"
#include "shared/hash.h"

/* An array that grows; T *of. */
#define PLACE_LIST(T)                                                                              \
	struct {                                                                                   \
		T *of;                                                                             \
		uint32_t count;                                                                    \
	}
#define PLACE_LIST_ADD(list, value) (ARRAY_ADD((list)->of, (list)->count) = (value))
/* The newest element of a hash that is not empty. */
#define PLACE_NEWEST(head) ELMT_FROM_HH((head)->hh.tbl, (head)->hh.tbl->tail)

struct place_class;
struct place_log;
struct place_slot;

enum {
	PLACE_CLAIM_DEVICES_MAX = 32, /* of one claim, as in Kubernetes */
	PLACE_CLAIM_PODS_MAX = 256, /* of one claim, as in Kubernetes */
	PLACE_NEEDS_MAX = 128, /* devices of one pod */
};

/* A ResourceSlice. */
struct place_slice {
	char *driver, *pool; /* owned */
	char *node; /* owned; NULL: of several nodes */
	struct place_terms terms;
	bool has_terms; /* of several nodes; false: of all */
	bool *serves; /* owned; by node; NULL: of one node */
	int64_t generation, count; /* slices of the pool */
	bool stale; /* of an older generation */
	const char *unsure; /* as of a device */
};

/* A reason to be unsure. Such a device may be shared by claims. */
extern const char place_unjudged_members[];

struct place_device {
	UT_hash_handle hh;
	char *key; /* owned; driver/pool/name */
	char *attributes; /* owned; JSON; NULL: none */
	uint32_t slice;
	uint32_t users; /* claims and pods that hold it */
	const char *unsure; /* why its allocation cannot be judged; NULL: it can */
	uint64_t given, tried; /* the last query that gave it to a need, that tried it */
	uint32_t need; /* of the query `given` */
};

/* The selectors of a request and its class. Equal text is the same matcher. */
struct place_matcher {
	UT_hash_handle hh;
	char *text; /* owned; key */
	char *refused; /* owned; the expression that is not evaluated; NULL */
	uint8_t *of; /* owned; enum device_match by device */
	uint32_t error; /* a device that the selectors cannot be evaluated for; PLACE_NONE */
};

struct place_request {
	char *name; /* owned */
	const struct place_matcher *matcher;
	int64_t count; /* 0: all */
};

/* A ResourceClaim or a ResourceClaimTemplate. */
struct place_device_claim {
	UT_hash_handle hh;
	char *key; /* owned; namespace/name, after "template " of a template */
	uint32_t id;
	bool template;
	const struct object *object; /* borrowed from the view; NULL: none */
	uint32_t classes; /* that name it */
	uint32_t users; /* pods on nodes whose classes name it */
	char *gone; /* owned; why no pod can use it; NULL */
	char *missing, *unknown; /* owned; why it cannot, or may not, be allocated; NULL */
	PLACE_LIST(struct place_request) requests;
	/* of a claim */
	char *owner, *owner_uid; /* owned; the pod that it was made for, namespace/name; NULL */
	PLACE_LIST(uint32_t) devices; /* allocated and known */
	bool allocated, has_terms, bad_terms;
	struct place_terms terms; /* of the nodes it is allocated for */
	uint32_t reserved; /* pods */
	bool fixed; /* pods that are not in the simulation have it */
	uint32_t next; /* claim of the same pod */
	/* offset in place_dra.held; PLACE_NONE: none. In the view; in the simulation: logged */
	uint32_t home, holding;
};

struct place_dra {
	const struct object_table *slices, *rules, *classes, *claims, *templates, *nodes;
	unsigned int known; /* which of the kinds are, and whether taint rules may be hidden */
	PLACE_LIST(struct place_slice) slice;
	PLACE_LIST(struct place_device) device;
	struct place_device *by_key;
	bool incomplete; /* some pool is */
	uint32_t *local_at; /* owned; by node: where in local; one more */
	uint32_t *local; /* owned; devices of one node, by node */
	PLACE_LIST(uint32_t) shared; /* devices of several nodes */
	struct place_matcher *matchers;
	PLACE_LIST(struct place_device_claim *) claim; /* by id */
	struct place_device_claim *by_name;
	PLACE_LIST(uint32_t) held; /* lists of devices: their number, then they */
	uint32_t home_held; /* of it, what the view holds */
};

/* --- place_devices.c */

/* Reads slices, classes and claims that changed; no simulation runs. */
void place_devices_follow(struct place *p);
/* Lets claims of the view hold their devices; all pods are on their nodes. */
void place_devices_settle(struct place *p);
void place_devices_free(struct place *p);
/* Devices of the node in their order: *at begins with 0. PLACE_NONE: no more. */
uint32_t place_devices_next(const struct place *p, place_node n, uint32_t *at);
/* Whether the device is one of the node's. */
bool place_device_serves(const struct place *p, uint32_t device, place_node n);
/* Whether some device class stands in for the resource on nodes without it. */
bool place_devices_back(const struct place *p, uint32_t dim);

/* --- place_requests.c */

struct place_device_claim *place_device_claim_intern(struct place *p, bool template,
						     const char *namespace, const char *name);
/* Reads the claim again if its object changed, or in any case. */
void place_device_claim_read(struct place *p, struct place_device_claim *c, bool anyway);
/* Of any. Its id is the last. */
void place_device_claim_forget(struct place *p, struct place_device_claim *c);
void place_class_read_device_claims(struct place *p, struct place_class *c, const cJSON *spec);

/* --- place_allocate.c */

/* FITS, DEVICES or UNKNOWN. why may be NULL. */
enum place_filter place_allocate_ask(struct place *p, const struct place_slot *s, place_node n,
				     struct error *why);
/* Allocates the claims of a pod that goes to the node, or none. Logged, as the next. */
void place_allocate(struct place *p, struct place_slot *s, place_node n);
/* Frees the devices of a pod that left its node. */
void place_deallocate(struct place *p, struct place_slot *s);
void place_allocate_undo(struct place *p, const struct place_log *e);
