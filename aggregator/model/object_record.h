/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How records are made, for the files that read one kind or another: object_read.c, object_pod.c.
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/model/object.h"
#include "aggregator/model/object_json.h"
#include "shared/buf.h"

/* An object whose head was read; all is borrowed from its tree. */
struct object_source {
	struct object_json whole, metadata;
	enum object_kind kind;
	const char *api_version, *namespace, *name, *uid;
	struct buf text; /* what is kept of it; of a pod none */
};

/*
 * A record of `size` bytes, all zero behind its head, in one block with its strings: those of the
 * head, its text, and `extra` bytes more, at *room, for the caller to put.
 */
void *object_new(const struct object_source *s, size_t size, size_t extra, char **room);

/* The member of the metadata; kept: which keys; NULL: all. */
void object_read_labels(const struct object_source *s, const char *member,
			bool (*kept)(const char *key), struct labels *out);
/* The owner that is the controller, and its apiVersion (may be NULL); borrowed from the tree. */
struct owner_ref object_read_owner(const struct object_source *s, const char **api_version);

/* NULL where the source has an error; it may have one otherwise, too. */
struct object *object_pod_read(const struct object_source *s);
/* Frees the memory beside the block. */
void object_pod_fini(struct kube_pod *p);
void object_pod_write(const struct kube_pod *p, struct buf *out);
/* The resizing that the status tells of. status may be NULL. */
enum pod_resize object_pod_resize(const cJSON *status);

/* The same of a record that is no pod. */
void object_fini(struct object *o);
