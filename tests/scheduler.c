/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

void scheduler_fini(struct scheduler *s)
{
	for (int n = 0; n < s->count; n++)
		free(s->nodes[n]);
	free(s->nodes);
	*s = (struct scheduler){.count = 0};
}

void scheduler_read_nodes(struct scheduler *s, const struct stack *stack)
{
	cJSON *list = stack_get(stack, 0, "/v1/nodes?limit=5000");
	const cJSON *item;

	scheduler_fini(s);
	s->stack = stack;
	s->nodes = mem_zalloc((size_t)cJSON_GetArraySize(json_at(list, "items")), sizeof(char *));
	cJSON_ArrayForEach (item, json_at(list, "items")) {
		s->nodes[s->count++] = mem_strdup(json_at(item, "name")->valuestring);
	}
	cJSON_Delete(list);
}

static void write_question(const struct scheduler *s, const struct scheduler_pod *pod,
			   struct buf *body)
{
	buf_printf(body, "{\"Pod\":{\"metadata\":{\"name\":\"web-%d\",\"namespace\":\"%s\"",
		   pod->number, pod->namespace);
	if (pod->number >= 0)
		buf_printf(body, ",\"uid\":\"%s-%d\"", pod->namespace, pod->number);
	buf_printf(body,
		   "},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
		   "\"requests\":{\"cpu\":\"%d\"}}}]}},"
		   "\"Nodes\":null,\"NodeNames\":[",
		   pod->cpus);
	for (int n = 0; n < s->count; n++)
		buf_printf(body, "%s\"%s\"", n ? "," : "", s->nodes[n]);
	buf_add_str(body, "]}");
}

static cJSON *ask(const struct scheduler *s, int i, const char *verb,
		  const struct scheduler_pod *pod)
{
	char *url = mem_printf("http://127.0.0.1:%d/extender/%s",
			       s->stack->aggregators[i].http_port, verb);
	struct buf body = BUF_INIT, answer = BUF_INIT;
	cJSON *json;

	write_question(s, pod, &body);
	assert_int_equal(http_post(url, body.data, &answer), 200);
	json = cJSON_ParseWithLength(answer.data, answer.len);
	assert_non_null(json);
	free(url);
	buf_fini(&body);
	buf_fini(&answer);
	return json;
}

bool scheduler_passes(const struct scheduler *s, int i, const struct scheduler_pod *pod)
{
	cJSON *answer = ask(s, i, "filter", pod);
	bool any = cJSON_GetArraySize(json_at(answer, "NodeNames")) > 0;

	cJSON_Delete(answer);
	return any;
}

int scheduler_rank(const struct scheduler *s, int i, const struct scheduler_pod *pod, int *best)
{
	cJSON *scores = ask(s, i, "prioritize", pod);
	const cJSON *item;
	int first = 0, n = 0;

	*best = -1;
	cJSON_ArrayForEach (item, scores) {
		if (json_at(item, "Score")->valueint > *best) {
			*best = json_at(item, "Score")->valueint;
			first = n;
		}
		n++;
	}
	assert_int_equal(n, s->count);
	cJSON_Delete(scores);
	return first;
}

int scheduler_place(const struct scheduler *s, int filter, int prioritize,
		    const struct scheduler_pod *pod)
{
	int best;

	assert_true(scheduler_passes(s, filter, pod));
	return scheduler_rank(s, prioritize, pod, &best);
}
