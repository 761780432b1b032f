/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/undisturbed.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"

/* A list of one, however many nodes there are. */
#define NODE "/v1/nodes?node=test-node"

/* Bursts of 30 ms. */
static pid_t start_load(void)
{
	pid_t pid = fork();
	volatile uint64_t work = 0;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int64_t until = clock_mono_ns() + 30 * NS_PER_MS;

		while (clock_mono_ns() < until)
			work++;
		usleep(270000);
	}
}

int undisturbed_open(struct undisturbed *u)
{
	if (sodium_init() < 0)
		return -1;
	u->stack = stack_new();
	u->load = start_load();
	return u->load > 0 ? 0 : -1;
}

void undisturbed_close(struct undisturbed *u)
{
	process_stop(u->load, SIGKILL);
	stack_free(u->stack, 0);
}

double undisturbed_samples_of(const cJSON *list)
{
	const cJSON *node = json_item(list, "test-node");

	return cJSON_GetNumberValue(json_at(node, "usage.cpuMillicores.windows.5m.samples"));
}

struct sampling {
	const struct undisturbed *u;
	double wanted;
};

static bool has_samples(void *ctx)
{
	const struct sampling *s = ctx;
	cJSON *list = stack_get(s->u->stack, UNDISTURBED, NODE);
	bool enough = undisturbed_samples_of(list) >= s->wanted;

	cJSON_Delete(list);
	return enough;
}

bool undisturbed_await_samples(const struct undisturbed *u, double samples, double seconds)
{
	struct sampling s = {u, samples};

	return await(has_samples, &s, seconds);
}

/* What must be equal: everything measured. Ages depend on when one asks. */
static bool same_usage(const cJSON *a, const cJSON *b)
{
	static const char *const parts[] = {"usage", "contention", "kernelLimits", "workload",
					    "uid"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const cJSON *of_a = json_at(a, parts[i]), *of_b = json_at(b, parts[i]);

		if (!of_a && !of_b)
			continue;
		if (!cJSON_Compare(of_a, of_b, true)) {
			char *text_a = cJSON_PrintUnformatted(of_a),
			     *text_b = cJSON_PrintUnformatted(of_b);

			fprintf(stderr, "%s differs:\n%s\n%s\n", parts[i], text_a, text_b);
			free(text_a);
			free(text_b);
			return false;
		}
	}
	return true;
}

static bool same_lists(const cJSON *a, const cJSON *b)
{
	const cJSON *item;

	if (cJSON_GetArraySize(json_at(a, "items")) != cJSON_GetArraySize(json_at(b, "items")))
		return false;
	cJSON_ArrayForEach (item, json_at(a, "items")) {
		const char *name = cJSON_GetStringValue(json_at(item, "name"));

		if (!same_usage(item, json_item(b, name)))
			return false;
	}
	return true;
}

struct comparison {
	struct stack *stack;
	const char *path;
	bool equal;
};

/*
 * True once both answers stand at the same interval; whether they are equal is then decided for
 * good.
 */
static bool compare_at_rest(void *ctx)
{
	struct comparison *c = ctx;
	cJSON *node_a = stack_get(c->stack, DISTURBED, NODE);
	cJSON *node_b = stack_get(c->stack, UNDISTURBED, NODE);
	cJSON *a = stack_get(c->stack, DISTURBED, c->path);
	cJSON *b = stack_get(c->stack, UNDISTURBED, c->path);
	cJSON *node_c = stack_get(c->stack, UNDISTURBED, NODE);
	cJSON *node_d = stack_get(c->stack, DISTURBED, NODE);
	double samples = undisturbed_samples_of(node_a);
	bool at_rest = samples > 0 && samples == undisturbed_samples_of(node_b) &&
		       samples == undisturbed_samples_of(node_c) &&
		       samples == undisturbed_samples_of(node_d) && a && b;

	if (at_rest)
		c->equal = same_lists(a, b);
	cJSON_Delete(node_a);
	cJSON_Delete(node_b);
	cJSON_Delete(node_c);
	cJSON_Delete(node_d);
	cJSON_Delete(a);
	cJSON_Delete(b);
	return at_rest;
}

/* One page of both lists; where the next one begins, or NULL, is the caller's. */
static bool equal_page(const struct undisturbed *u, const char *kind, const char *after,
		       size_t *items, char **next)
{
	char *path = after ? mem_printf("/v1/%s?limit=500&continue=%s", kind, after)
			   : mem_printf("/v1/%s?limit=500", kind);
	cJSON *a = stack_get(u->stack, DISTURBED, path);
	cJSON *b = stack_get(u->stack, UNDISTURBED, path);
	const char *rest = cJSON_GetStringValue(json_at(b, "continue"));
	bool equal = a && b && same_lists(a, b);

	*items += (size_t)cJSON_GetArraySize(json_at(b, "items"));
	*next = rest ? mem_strdup(rest) : NULL;
	cJSON_Delete(a);
	cJSON_Delete(b);
	free(path);
	return equal;
}

struct publication {
	const struct undisturbed *u;
	double before[2];
};

static double views_of(const struct undisturbed *u, int aggregator)
{
	return stack_metric(u->stack, aggregator, "evenkeel_views_published_total");
}

static bool both_published(void *ctx)
{
	const struct publication *p = ctx;

	return views_of(p->u, DISTURBED) > p->before[DISTURBED] &&
	       views_of(p->u, UNDISTURBED) > p->before[UNDISTURBED];
}

bool undisturbed_await_views(const struct undisturbed *u, double seconds)
{
	struct publication p = {u, {views_of(u, DISTURBED), views_of(u, UNDISTURBED)}};

	return await(both_published, &p, seconds);
}

bool undisturbed_equal_lists(const struct undisturbed *u, const char *kind, size_t *items)
{
	char *after = NULL, *next;
	bool equal = true;

	*items = 0;
	do {
		equal &= equal_page(u, kind, after, items, &next);
		free(after);
		after = next;
	} while (after && equal);
	free(after);
	return equal;
}

bool undisturbed_equal(const struct undisturbed *u, const char *path, double seconds)
{
	struct comparison c = {.stack = u->stack, .path = path};

	if (!await(compare_at_rest, &c, seconds)) {
		fprintf(stderr, "%s: they never stand at the same interval\n", path);
		return false;
	}
	return c.equal;
}
