/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON objects: members by path. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Members are named like "usage.cpuMillicores.windows.5m.mean". Absent, wrong type: NULL, NaN. */
const cJSON *document_at(const cJSON *root, const char *path);
const char *document_text(const cJSON *root, const char *path);
/* The same; `other` where there is none. */
const char *document_text_or(const cJSON *root, const char *path, const char *other);
double document_number(const cJSON *root, const char *path);
/* A number from 0 to less than `end`, without its fraction; else `other`. */
int64_t document_count(const cJSON *root, const char *path, double end, int64_t other);
/* The first item of a list, NULL when there is none; ->next is the next. Path "" is the root. */
cJSON *document_first(const cJSON *root, const char *path);
/* Whether it is this text; whether it is true. */
bool document_is(const cJSON *root, const char *path, const char *text);
bool document_is_true(const cJSON *root, const char *path);
/* The item of a list whose member is that text, NULL when there is none; text may be NULL. */
const cJSON *document_find(const cJSON *root, const char *path, const char *member,
			   const char *text);
/* There, and null: the API's way to say "no limit" or "not measured". */
bool document_is_null(const cJSON *root, const char *path);
/* RFC 3339 in UTC as Unix seconds, NaN when absent or not a time. */
double document_time(const cJSON *root, const char *path);

/* --- objects of the Kubernetes API */

const char *document_label(const cJSON *object, const char *key);
const char *document_annotation(const cJSON *object, const char *key);
/* The ownerReference of its controller. */
const cJSON *document_controller(const cJSON *object);
/* Whether all containers of the pod have ended for good. */
bool document_has_ended(const cJSON *pod);
/* Whether the condition is True. */
bool document_has_condition(const cJSON *object, const char *type);

/* --- document_plan.c */

/* The wave of a DrainPlan as a plan that evenkeel verify takes, a cJSON tree of the caller's. */
cJSON *document_drain_plan(const cJSON *doc);
