/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the HTTP handlers without a server: a method and a target in, a response out. */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/api/api.h"
#include "aggregator/api/policy_options.h"

struct api_fixture {
	struct api_context ctx; /* now is VIEW_FIXTURE_NOW_NS */
	struct counters counters;
	const char *accept_encoding; /* headers of the requests; NULL: none */
	const char *accept;
	struct api_response response; /* of the last request */
	cJSON *json; /* its body, parsed; NULL when it is not JSON */
	char names[1024]; /* see api_fixture_names() */
};

/* Takes v over; NULL: nothing was ever published. */
void api_fixture_open(struct api_fixture *f, struct view *v);
void api_fixture_close(struct api_fixture *f);

/*
 * A cmocka test around which the fixture at that address is opened with view_fixture_new(), and
 * closed.
 */
#define API_FIXTURE_TEST(name, fixture)                                                            \
	cmocka_unit_test_prestate_setup_teardown(name, api_fixture_setup, api_fixture_teardown,    \
						 fixture)
int api_fixture_setup(void **state);
int api_fixture_teardown(void **state);

/*
 * "GET", "/v1/nodes?limit=2": routes it and returns the status. Nothing is unescaped but "+" in
 * values, to a space.
 */
int api_fixture_send(struct api_fixture *f, const char *method, const char *target,
		     const char *body);
int api_fixture_get(struct api_fixture *f, const char *target);
/* Routes a GET without a query into *rs and nothing else; what is in *rs then is the caller's. */
void api_fixture_answer(struct api_fixture *f, const char *path, struct api_response *rs);
/* error.code and error.field of the last answer; "" where there is none. */
const char *api_fixture_error(const struct api_fixture *f);
const char *http_fixture_error_field(const struct api_fixture *f);

/* The names of the last answer's items in order, separated by blanks; valid until the next call. */
const char *api_fixture_names(struct api_fixture *f);

/*
 * What stands at a path like "items.0.usage.cpuMillicores" below json; NULL when a part is missing.
 */
const cJSON *api_fixture_at(const cJSON *json, const char *path);
/* Of the last answer: a text, "" where there is none; a number, which must be there. */
const char *api_fixture_text(const struct api_fixture *f, const char *path);
double api_fixture_number(const struct api_fixture *f, const char *path);

/* The other aggregator tells ctx.plan_peer that its newest plan has that id. */
void api_fixture_tell_plan(struct api_fixture *f, uint64_t id, int64_t now_ns);

/* What an extender without options of its own has: no limits, the default blend. */
void api_fixture_extender(struct extender_options *o);
