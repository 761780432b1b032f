/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates the rules of drain_rule_list.c and sorts the pods of a node by their outcome. */
#include "aggregator/policy/drain/drain_rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

bool drain_judge_step(struct drain_judge *j, const struct drain_status *status)
{
	if (status->overrides) {
		assert(j->parked_count < DRAIN_PARKED_MAX);
		j->parked[j->parked_count++] = *status;
		return false;
	}
	for (size_t i = 0; i < j->parked_count; i++) {
		if (j->parked[i].overrides & (1U << status->outcome)) {
			j->verdict = j->parked[i];
			return true;
		}
	}
	if (status->outcome == DRAIN_POD_UNDEFINED)
		return false;
	j->verdict = *status;
	return true;
}

static bool ask_rules(const struct drain_context *c, const struct drain_rule *rules, size_t count,
		      const struct kube_pod *pod, struct drain_judge *j, struct error *why)
{
	for (size_t i = 0; i < count; i++) {
		struct drain_status status = {.rule = rules[i].name};

		if (rules[i].on && !*(const bool *)((const char *)c->options + rules[i].on))
			continue;
		rules[i].ask(c, pod, &status, why);
		if (drain_judge_step(j, &status))
			return true;
	}
	return false;
}

void drain_pod_judge(const struct drain_context *c, const struct kube_pod *pod,
		     struct drain_status *out, struct error *why)
{
	struct drain_judge j = {0};
	const struct drain_rule *rules;
	size_t count;

	error_set(why, "%s", "");
	rules = drain_rules(&count);
	if (!ask_rules(c, c->first, c->first_count, pod, &j, why))
		ask_rules(c, rules, count, pod, &j, why);
	*out = j.verdict;
}

static void append(const struct kube_pod ***list, size_t *count, size_t room,
		   const struct kube_pod *pod)
{
	if (!*list)
		*list = mem_zalloc(room, sizeof(struct kube_pod *));
	(*list)[(*count)++] = pod;
}

static void block(struct drain_pods *out, size_t room, const struct kube_pod *pod,
		  const struct drain_status *status, const struct error *why)
{
	if (!out->blocking)
		out->blocking = mem_zalloc(room, sizeof(*out->blocking));
	out->blocking[out->blocking_count++] =
		(struct drain_blocking){pod, *status, mem_strdup(why->text)};
}

void drain_pods_sort(const struct drain_context *c, const struct kube_pod *const *pods,
		     size_t count, struct drain_pods *out)
{
	bool one_is_enough = c->options->variant == DRAIN_UPSTREAM;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < count && !(one_is_enough && out->blocking); i++) {
		struct drain_status status;
		struct error why;

		drain_pod_judge(c, pods[i], &status, &why);
		if (status.outcome == DRAIN_POD_BLOCK)
			block(out, count, pods[i], &status, &why);
		else if (status.outcome == DRAIN_POD_WAIT)
			append(&out->wait, &out->wait_count, count, pods[i]);
		else if (status.outcome == DRAIN_POD_OK && drain_is_daemon_pod(pods[i]))
			append(&out->daemon, &out->daemon_count, count, pods[i]);
		else if (status.outcome != DRAIN_POD_SKIP)
			append(&out->move, &out->move_count, count, pods[i]);
	}
}

void drain_pods_fini(struct drain_pods *p)
{
	for (size_t i = 0; i < p->blocking_count; i++)
		free(p->blocking[i].why);
	free(p->blocking);
	free(p->move);
	free(p->daemon);
	free(p->wait);
	memset(p, 0, sizeof(*p));
}
