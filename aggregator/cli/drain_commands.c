/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wave as commands of kubectl, and the soft taints of candidates.
 *
 *     cordon   all nodes, so that no pod goes to one that is next
 *     drain    node after node. Of a node that goes in steps the script first evicts the pods of each
 *              step but the last, and settles after each
 *     settle   unless there is room whatever the scheduler chooses, also after each node but the last
 *
 * Neither kubectl rollout status nor a single eviction will do: a StatefulSet counts a terminating
 * pod as ready, one with updateStrategy OnDelete has no rollout, and a budget's status lags behind
 * its pods. So the script begins with functions of its own where it evicts or waits.
 */
#include "aggregator/cli/drain.h"

#include <string.h>

#include "shared/array.h"
#include "shared/utf8.h"

bool drain_is_left_out(const struct cli *cli, const cJSON *doc, const cJSON *node)
{
	return drain_is_part(cli) &&
	       !document_find(doc, "items", "name", document_text(node, "name"));
}

/* As the API lets names be; those of a file may be anything. */
static bool is_name(const char *word)
{
	return word[strspn(word,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] ==
	       '\0';
}

/* As one word of a shell, whatever is in it. */
static void add_word(struct buf *out, const char *word)
{
	size_t begin = out->len;

	if (is_name(word)) {
		buf_add_str(out, word);
		return;
	}
	buf_add_char(out, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_add_str(out, "'\\''");
		else
			buf_add_char(out, *word);
	buf_add_char(out, '\'');
	utf8_clean(out->data + begin);
	out->len = begin + strlen(out->data + begin);
}

static const char *text_of(const cJSON *move, const char *path)
{
	return document_text_or(move, path, "");
}

static bool same_workload(const cJSON *a, const cJSON *b)
{
	return strcmp(text_of(a, "namespace"), text_of(b, "namespace")) == 0 &&
	       strcmp(text_of(a, "workload.kind"), text_of(b, "workload.kind")) == 0 &&
	       strcmp(text_of(a, "workload.name"), text_of(b, "workload.name")) == 0;
}

/* More than a node has pods. */
enum { STEPS_MAX = 100000 };

/* 0 where the node goes at once. */
static int step_of(const cJSON *move)
{
	double step = document_number(move, "step");

	return step > 0 && step <= STEPS_MAX ? (int)step : 0;
}

static bool is_in_step(const cJSON *move, int step)
{
	return !step || step_of(move) == step;
}

/* Of a workload that tells how many of its pods are ready; else NULL. */
static const char *resource_of(const char *kind)
{
	static const char *const kinds[][2] = {{"Deployment", "deployment"},
					       {"StatefulSet", "statefulset"},
					       {"ReplicaSet", "replicaset"},
					       {"ReplicationController", "replicationcontroller"}};
	const char *const *row =
		array_find_text(kinds, sizeof(kinds) / sizeof(kinds[0]), sizeof(kinds[0]), kind);

	return row ? row[1] : NULL;
}

struct script {
	struct buf cordon, drain;
	bool waits; /* it uses its functions */
};

static void add_workload(struct script *s, const cJSON *move)
{
	const char *resource = resource_of(text_of(move, "workload.kind"));
	const char *namespace = text_of(move, "namespace"), *pod = text_of(move, "name"),
		   *name = text_of(move, "workload.name");

	if (resource && is_name(namespace) && is_name(pod) && is_name(name))
		buf_printf(&s->drain, "remember %s %s %s/%s\n", pod, namespace, resource, name);
}

/* Each workload once; step 0: of all moves. */
static void add_workloads(struct script *s, const cJSON *first, int step)
{
	for (const cJSON *move = first; move; move = move->next) {
		const cJSON *same = first;

		while (same != move && !(is_in_step(same, step) && same_workload(same, move)))
			same = same->next;
		if (same == move && is_in_step(move, step))
			add_workload(s, move);
	}
}

static void add_eviction(struct script *s, const cJSON *move)
{
	const char *namespace = text_of(move, "namespace"), *name = text_of(move, "name"),
		   *uid = text_of(move, "uid");

	if (!is_name(namespace) || !is_name(name) || !is_name(uid) || !*uid)
		return;
	buf_printf(&s->drain, "evict %s %s %s\n", name, namespace, uid);
	s->waits = true;
}

static void add_settle(struct script *s)
{
	buf_add_str(&s->drain, "settle\n");
	s->waits = true;
}

/* All steps but the last, which drains the node. */
static void add_steps(struct script *s, const cJSON *first)
{
	int last = 0;

	for (const cJSON *move = first; move; move = move->next)
		last = step_of(move) > last ? step_of(move) : last;
	for (int step = 1; step < last; step++) {
		add_workloads(s, first, step);
		for (const cJSON *move = first; move; move = move->next)
			if (is_in_step(move, step) && !document_is_true(move, "placeholder"))
				add_eviction(s, move);
		add_settle(s);
	}
}

/* settles: the node after it waits until its pods are ready elsewhere. */
static void add_drain(struct script *s, const cJSON *node, bool settles)
{
	const cJSON *moves = document_first(node, "moves");
	size_t before;

	add_steps(s, moves);
	before = s->drain.len;
	if (settles)
		add_workloads(s, moves, 0);
	settles = s->drain.len > before;
	/* Pods of other nodes, which fall with those of this one. */
	for (const cJSON *move = moves; move; move = move->next)
		if (*text_of(move, "from"))
			add_eviction(s, move);
	buf_add_str(&s->drain, "kubectl drain ");
	add_word(&s->drain, document_text_or(node, "name", ""));
	buf_add_str(&s->drain, " --ignore-daemonsets");
	if (document_is_true(node, "emptyDir"))
		buf_add_str(&s->drain, " --delete-emptydir-data");
	if (document_is_true(node, "unmanaged"))
		buf_add_str(&s->drain, " --force");
	buf_add_char(&s->drain, '\n');
	if (settles)
		add_settle(s);
}

static const cJSON *skip_left_out(const struct cli *cli, const cJSON *doc, const cJSON *node)
{
	while (node && drain_is_left_out(cli, doc, node))
		node = node->next;
	return node;
}

static const char functions[] =
#include "aggregator/cli/drain.sh.h"
	;
#define EVICTION_API "EVICTION_API" /* stands for it there */

void drain_print_commands(struct cli *cli, const cJSON *doc)
{
	bool any_order = document_is_true(doc, "wave.anyOrder");
	struct script s = {BUF_INIT, BUF_INIT, false};
	const cJSON *node = document_first(doc, "wave.nodes"), *next;

	for (node = skip_left_out(cli, doc, node); node; node = next) {
		next = skip_left_out(cli, doc, node->next);
		buf_add_char(&s.cordon, ' ');
		add_word(&s.cordon, document_text_or(node, "name", ""));
		add_drain(&s, node, next && !any_order);
	}
	if (s.waits) {
		const char *at = strstr(functions, EVICTION_API);

		/* Kubernetes below 1.22 knows no other than v1beta1. */
		buf_add(&cli->out, functions, (size_t)(at - functions));
		buf_add_str(&cli->out, document_is(doc, "wave.evictions", "policy/v1beta1")
					       ? "policy/v1beta1"
					       : "policy/v1");
		buf_add_str(&cli->out, at + strlen(EVICTION_API));
	}
	if (s.cordon.len)
		buf_printf(&cli->out, "kubectl cordon%s\n%s", s.cordon.data, s.drain.data);
	buf_fini(&s.cordon);
	buf_fini(&s.drain);
}

/* --- soft taints */

#define SOFT_TAINT "evenkeel.io/drain-candidate"

void drain_print_soft_taints(struct cli *cli, const cJSON *doc)
{
	struct buf add = BUF_INIT, drop = BUF_INIT;
	const cJSON *item = document_first(doc, "items");

	for (; item; item = item->next) {
		bool tainted = document_is_true(item, "softTainted");
		bool candidate = document_is(item, "verdict", "unneeded") ||
				 document_is(item, "verdict", "drain");
		struct buf *to = tainted ? &drop : &add;

		/* What this plan says nothing about keeps what it has. */
		if (tainted == candidate || document_is(item, "verdict", "notExamined"))
			continue;
		buf_add_char(to, ' ');
		add_word(to, document_text_or(item, "name", ""));
	}
	if (add.len)
		buf_printf(&cli->out, "kubectl taint nodes%s " SOFT_TAINT "=:PreferNoSchedule\n",
			   add.data);
	if (drop.len)
		buf_printf(&cli->out, "kubectl taint nodes%s " SOFT_TAINT ":PreferNoSchedule-\n",
			   drop.data);
	buf_fini(&add);
	buf_fini(&drop);
}
