/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/usage_story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct usage_state *story_state(void)
{
	struct usage_limits limits = {.nodes_max = 3, .pods_per_node_max = 4};

	return usage_new(&limits);
}

const uint8_t *story_run(char letter)
{
	static uint8_t run[FRAME_RUN_LEN];

	memset(run, letter, sizeof(run));
	return run;
}

struct interval *story_interval(uint64_t sequence, int start, int end, size_t entries)
{
	struct interval *i = interval_new(entries);
	struct usage *u = &i->node.usage;

	i->sequence = sequence;
	i->start_ns = T0 + start * SEC;
	i->end_ns = T0 + end * SEC;
	i->node.cpu_capacity_milli = 4000;
	i->node.mem_capacity_bytes = 8 * GIB;
	u->have = USAGE_CPU | USAGE_MEMORY;
	u->seconds = (float)(end - start);
	u->cpu_milli = (struct moments32){50, (float)(end - start), 1000, 0, 1000, 1000, 1000};
	u->mem_bytes = (struct gauge){(float)GIB, (float)GIB, (float)GIB};
	for (size_t n = 0; n < entries; n++) {
		i->entries[n].ref = (uint32_t)n + 1;
		i->entries[n].limits = KERNEL_LIMITS_UNKNOWN;
		i->entries[n].usage = *u;
		story_use_cpu(&i->entries[n].usage, 100 * (float)(n + 1));
	}
	return i;
}

struct entity *story_name(struct entry *e, enum entity_kind kind, const char *name)
{
	e->fresh = true;
	e->entity = entity_new(e->ref, kind, name);
	return e->entity;
}

struct usage_answer story_tell(struct usage_state *u, const char *node, char run,
			       struct interval *i, int now)
{
	struct usage_answer answer;

	usage_apply(u, node, story_run(run), NULL, i, T0 + now * SEC, &answer);
	interval_free(i);
	return answer;
}

void story_tell_ok(struct usage_state *u, char run, struct interval *i)
{
	int now = (int)((i->end_ns - T0) / SEC);
	struct usage_answer answer = story_tell(u, "n", run, i, now);

	if (answer.verdict != USAGE_APPLIED)
		fail_msg("verdict %d at %d s: %s", answer.verdict, now, answer.reason);
}

const struct pod_stats *story_pod(const struct node_stats *p, const char *name)
{
	for (size_t i = 0; i < p->pod_count; i++)
		if (strcmp(p->pods[i].name, name) == 0)
			return &p->pods[i];
	return NULL;
}

const struct node_stats *story_stats(struct usage_state *u, struct view **v)
{
	*v = usage_view(u, T0);
	assert_int_equal((*v)->node_count, 1);
	return (*v)->nodes[0]->stats;
}

void story_expect_container(const struct pod_stats *pod, size_t index, const char *name)
{
	assert_true(index < pod->container_count);
	assert_string_equal(pod->containers[index].name, name);
}
