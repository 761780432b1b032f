/* SPDX-License-Identifier: Apache-2.0 */
/* The chart of packaging/helm, by the real helm. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "shared/buf.h"

#define HELM_CHART "packaging/helm/evenkeel"

/* Whether helm is among the programs of Kubernetes; else prints why the test is to be skipped. */
bool helm_is_here(void);

/*
 * Runs helm with words that end with NULL, at most 16; its exit status, and what it printed in
 * *out, of which errors replace *err. Its own files are in a folder that is gone afterwards.
 */
int helm_run(const char *const *words, struct buf *out, struct buf *err);

/*
 * An array of the objects that `helm template` renders with assignments ("claim.size=4Gi"), at most
 * 6, that end with NULL. What helm complains of fails the test. The caller deletes it.
 */
cJSON *helm_render(const char *const *sets);

/* Fails the test unless two arrays have the same objects; says of both where they are from. */
void helm_expect_same(const char *name_a, const cJSON *a, const char *name_b, const cJSON *b);
