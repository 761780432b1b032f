/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which clients of Kubernetes read answers: objects with metadata, and tables. */
#pragma once

#include <stdbool.h>

#include "aggregator/api/access_review.h"
#include "aggregator/api/api.h"
#include "shared/jsonw.h"

/* Whether the client accepts a Table of meta.k8s.io/v1, as kubectl get does. */
bool kube_objects_want_table(const struct api_request *rq);

/*
 * Opens a Table up to its rows. The columns end with NULL; the first one is the name. The caller
 * closes the array of rows and the object.
 */
void kube_objects_open_table(struct jsonw *w, const char *const *columns);
/* Opens a row up to its cells, whose array the caller closes, .. */
void kube_objects_open_row(struct jsonw *w, const char *name);
/* .. and its object up to its metadata. */
void kube_objects_open_row_object(struct jsonw *w);

/*
 * Gives an answer of evenkeel.io (GET, 200) metadata: each item its name and namespace, the list its
 * continue token, a single object the name of the path. Makes a Table of it for clients that accept
 * one. Answers without JSON, and streams, stay as they are.
 */
void kube_objects_of(const struct api_request *rq, const struct access_request *path,
		     struct api_response *rs);
