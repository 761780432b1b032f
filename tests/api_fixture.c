/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/api_fixture.h"

#include <assert.h>
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/api_group.h"
#include "aggregator/planner/plan_peer.h"
#include "shared/mem.h"
#include "tests/view_fixture.h"

enum { PARAMETERS_MAX = 16 };

/* The query of one request, split. */
struct parameters {
	const struct api_fixture *fixture;
	size_t count;
	char *names[PARAMETERS_MAX];
	char *values[PARAMETERS_MAX];
};

static int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

void api_fixture_open(struct api_fixture *f, struct view *v)
{
	*f = (struct api_fixture){0};
	f->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &f->counters,
		.now_ns = fixed_now,
		.watcher_smoothed = 1,
	};
	if (v)
		view_slot_publish(f->ctx.views, v);
}

/* All of it as a body. */
static void drain(struct api_response *rs)
{
	if (!rs->stream)
		return;
	while (rs->stream->next(rs->stream, &rs->body))
		;
	rs->stream->free(rs->stream);
	rs->stream = NULL;
}

static void forget_answer(struct api_fixture *f)
{
	buf_fini(&f->response.body);
	shared_body_drop(f->response.shared);
	cJSON_Delete(f->json);
	f->response = (struct api_response){0};
	f->json = NULL;
}

void api_fixture_close(struct api_fixture *f)
{
	forget_answer(f);
	view_slot_free(f->ctx.views);
}

int api_fixture_setup(void **state)
{
	api_fixture_open(*state, view_fixture_new());
	return 0;
}

int api_fixture_teardown(void **state)
{
	api_fixture_close(*state);
	return 0;
}

static const char *query(const struct api_request *rq, const char *name)
{
	const struct parameters *p = rq->connection;

	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->names[i], name) == 0)
			return p->values[i];
	return NULL;
}

static const char *header(const struct api_request *rq, const char *name)
{
	const struct parameters *p = rq->connection;

	if (strcmp(name, "Accept") == 0)
		return p->fixture->accept;
	return strcmp(name, "Accept-Encoding") == 0 ? p->fixture->accept_encoding : NULL;
}

static const char *query_other(const struct api_request *rq, const char *const *known)
{
	const struct parameters *p = rq->connection;

	for (size_t i = 0; i < p->count; i++) {
		const char *const *k = known;

		while (*k && strcmp(*k, p->names[i]) != 0)
			k++;
		if (!*k)
			return p->names[i];
	}
	return NULL;
}

/* Cuts text in place; the parts stay within it. */
static void split_query(char *text, struct parameters *p)
{
	char *save, *part;

	p->count = 0;
	for (part = strtok_r(text, "&", &save); part && p->count < PARAMETERS_MAX;
	     part = strtok_r(NULL, "&", &save)) {
		char *value = strchr(part, '=');

		if (value)
			*value++ = '\0';
		for (char *c = value; c && *c; c++)
			if (*c == '+')
				*c = ' ';
		p->names[p->count] = part;
		p->values[p->count++] = value ? value : part + strlen(part);
	}
}

void api_fixture_answer(struct api_fixture *f, const char *path, struct api_response *rs)
{
	struct parameters parameters = {.fixture = f};
	const struct api_request rq = {
		.method = "GET",
		.path = path,
		.body = "",
		.query = query,
		.query_other = query_other,
		.header = header,
		.connection = &parameters,
	};

	api_route(&f->ctx, &rq, rs);
}

int api_fixture_send(struct api_fixture *f, const char *method, const char *target,
		     const char *body)
{
	char *path = mem_strdup(target);
	char *mark = strchr(path, '?');
	struct parameters parameters = {.fixture = f};
	struct api_request rq = {
		.method = method,
		.path = path,
		.body = body,
		.body_len = strlen(body),
		.query = query,
		.query_other = query_other,
		.header = header,
		.connection = &parameters,
	};

	if (mark) {
		*mark = '\0';
		split_query(mark + 1, &parameters);
	}
	forget_answer(f);
	api_route(&f->ctx, &rq, &f->response);
	api_fail_as_status(path, &f->response);
	drain(&f->response);
	if (f->response.body.len)
		f->json = cJSON_ParseWithOpts(f->response.body.data, NULL, 1);
	else if (f->response.shared && !f->response.gzip)
		f->json = cJSON_ParseWithOpts(f->response.shared->data, NULL, 1);
	free(path);
	return f->response.status;
}

int api_fixture_get(struct api_fixture *f, const char *target)
{
	return api_fixture_send(f, "GET", target, "");
}

const cJSON *api_fixture_at(const cJSON *json, const char *path)
{
	char part[256];

	while (json && *path) {
		size_t len = strcspn(path, ".");

		if (len >= sizeof(part))
			return NULL;
		memcpy(part, path, len);
		part[len] = '\0';
		json = isdigit((unsigned char)part[0]) && cJSON_IsArray(json)
			       ? cJSON_GetArrayItem(json, (int)strtol(part, NULL, 10))
			       : cJSON_GetObjectItemCaseSensitive(json, part);
		path += len + (path[len] == '.');
	}
	return json;
}

const char *api_fixture_text(const struct api_fixture *f, const char *path)
{
	const char *text = cJSON_GetStringValue(api_fixture_at(f->json, path));

	return text ? text : "";
}

double api_fixture_number(const struct api_fixture *f, const char *path)
{
	const cJSON *item = api_fixture_at(f->json, path);

	if (!cJSON_IsNumber(item))
		fail_msg("%s is no number: %s", path, f->response.body.data);
	return item->valuedouble;
}

const char *api_fixture_error(const struct api_fixture *f)
{
	return api_fixture_text(f, "error.code");
}

const char *http_fixture_error_field(const struct api_fixture *f)
{
	return api_fixture_text(f, "error.field");
}

const char *api_fixture_names(struct api_fixture *f)
{
	const cJSON *item;
	size_t len = 0;

	f->names[0] = '\0';
	cJSON_ArrayForEach (item, api_fixture_at(f->json, "items")) {
		len += (size_t)snprintf(f->names + len, sizeof(f->names) - len, "%s%s",
					len ? " " : "",
					cJSON_GetStringValue(api_fixture_at(item, "name")));
		assert(len < sizeof(f->names));
	}
	return f->names;
}

void api_fixture_extender(struct extender_options *o)
{
	struct score_args args;

	score_args_default(&args, SCORE_CORRECTED);
	*o = (struct extender_options){.limits = {.z = 2.33},
				       .default_pod_cpu_milli = args.default_requests_cpu_milli,
				       .oom_cost = args.oom_cost};
}

void api_fixture_tell_plan(struct api_fixture *f, uint64_t id, int64_t now_ns)
{
	struct plan_slot *plans = plan_slot_new();
	struct plan_peer *other = plan_peer_new(plans, NULL, 2, now_ns);
	struct plan_result *r = plan_result_new();
	struct plan_telling telling = {.version = 0};
	struct plan_hearing hearing = {.size = 0};
	struct buf body = BUF_INIT;

	r->id = id;
	plan_slot_publish(plans, r);
	plan_peer_tell(other, &telling, &body, now_ns);
	assert_int_equal(plan_peer_hear(f->ctx.plan_peer, &hearing, &body, now_ns, NULL), 0);
	buf_fini(&body);
	plan_peer_free(other);
	plan_slot_free(plans);
}
