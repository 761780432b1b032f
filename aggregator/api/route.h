/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of routes, and what each takes and answers: requests are checked against it, and
 * /openapi.json is made from it (route_table.c).
 */
#pragma once

#include <string.h>

#include "aggregator/api/api.h"

enum api_type {
	API_STRING,
	API_INTEGER, /* 1 and more */
	API_BOOLEAN,
	API_NAMES, /* a list of strings */
	API_OBJECT,
	API_POD, /* a manifest, as an object or as text, or a pod as the Kubernetes API tells it */
	/* Of bodies that request_check() reads: */
	API_COUNT, /* 0 and more */
	API_NUMBER, /* not negative, or null: not known */
	API_TIME, /* RFC 3339 */
	API_FIGURES, /* a number, or an object of numbers */
	API_OBJECTS, /* a list of objects, by api_field.of */
};

/* A parameter of the query, or a member of the body. */
struct api_field {
	const char *name; /* NULL ends a list */
	enum api_type type;
	const char *const *values; /* all that it may be, ended by NULL; NULL: any */
	const struct api_field *of; /* of API_OBJECTS: members of each */
	bool required;
	const char *about;
};

struct route {
	const char *path; /* with names in braces: that of OpenAPI; NULL ends the table */
	const char *method; /* NULL: any, as load-watcher; GET includes HEAD; PUT, POST */
	api_handler *handler;
	enum api_work work; /* long: it simulates the whole cluster, or may */
	const char *summary;
	const char *kind; /* of the object that is answered; NULL: it is none of ours */
	const char *resource; /* in the API group evenkeel.io (api_group.h); NULL: none */
	const char *subresource; /* "report" of acts/NAME/report, whatever the name; NULL: none */
	bool list; /* which has "items" */
	const char *content_type; /* where there is no kind: route_content_type() */
	const char *other_type; /* what it answers as well, by a parameter; NULL: nothing */
	const struct api_field *query; /* NULL: none is looked at */
	bool lenient; /* other parameters are let through */
	enum api_access access;
	bool acts; /* it makes the actuator act, or speaks for it: reading rights do not suffice */
	int status; /* of success; 0: 200 */
	const struct api_field *body; /* its members; NULL: described by others (about) */
	const char *about;
	/*
	 * Of a route that takes long: members of the body without which it does not, ended by NULL,
	 * unless the pod is a text; NULL: it always may.
	 */
	const char *const *long_by;
	size_t body_most; /* 0: 1 MiB */
};

/* First match; exact paths stand before those with a name in the same place. */
extern const struct route api_routes[];

static inline const char *route_content_type(const struct route *r)
{
	return r->kind ? "application/json" : r->content_type;
}

/* Whether it takes a body. */
static inline bool route_is_posted(const struct route *r)
{
	return r->method && strcmp(r->method, "GET") != 0;
}

/* The field of that name in a list, or NULL. */
const struct api_field *api_field_find(const char *name, const struct api_field *list);
/* Whether the text is one of f->values; false: *rs says that it is not (400). */
bool api_field_check(const struct api_field *f, const char *text, struct api_response *rs);

/* Values of parameters, ended by NULL, in the order of the enums that they stand for. */
extern const char *const api_sorts[], *const api_unlimited[], *const api_formats[];
extern const char *const api_windows[];
/* Of a checked request: the place of the value among `values`; 0 without a value. */
int api_query_choice(const struct api_request *rq, const char *name, const char *const *values);
/* Of a checked request: the parameter is "true". */
bool api_query_flag(const struct api_request *rq, const char *name);

/* Members of bodies, for those who read them. */
extern const struct api_field api_admit_members[], api_preempt_members[], api_reserve_members[],
	api_scores_members[], api_fit_members[], api_act_request_members[],
	api_act_report_members[], api_act_told_members[], api_wave_report_members[];
