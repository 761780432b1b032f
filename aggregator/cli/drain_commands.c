/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wave as commands of kubectl, and the soft taints of candidates.
 *
 *     cordon   all nodes, so that no pod goes to one that is next
 *     drain    node after node. Of a node that goes in steps first the pods of each step but the last
 *              are evicted, and their workloads waited for
 *     wait     unless there is room whatever the scheduler chooses, for the workloads of each node
 *              before the next one
 */
#include <string.h>

#include "aggregator/cli/document.h"
#include "aggregator/cli/drain_table.h"
#include "shared/utf8.h"

bool drain_is_left_out(const struct cli *cli, const cJSON *doc, const cJSON *node)
{
	const cJSON *item = document_first(document_at(doc, "items"));

	while (item &&
	       strcmp(document_text_or(node, "name", ""), document_text_or(item, "name", "-")) != 0)
		item = item->next;
	return drain_is_part(cli) && !item;
}

/* As the API lets names be; those of a file may be anything. */
static bool is_name(const char *word)
{
	return word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 ".-_")] == '\0';
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

/* Until all of its replicas are available. */
static void add_wait(struct buf *out, const cJSON *move)
{
	const char *kind = text_of(move, "workload.kind");
	double replicas = document_number(move, "workload.replicas");

	if (strcmp(kind, "Deployment") == 0 || strcmp(kind, "StatefulSet") == 0)
		buf_printf(out, "kubectl rollout status --timeout=10m %s ",
			   *kind == 'D' ? "deployment" : "statefulset");
	else if (replicas > 0)
		buf_printf(out,
			   "kubectl wait --for='jsonpath={.status.readyReplicas}=%.0f' "
			   "--timeout=10m %s ",
			   replicas,
			   strcmp(kind, "ReplicaSet") == 0 ? "replicaset"
							   : "replicationcontroller");
	else
		return;
	add_word(out, text_of(move, "workload.name"));
	buf_add_str(out, " -n ");
	add_word(out, text_of(move, "namespace"));
	buf_add_char(out, '\n');
}

/* Each workload once; step 0: of all moves. */
static void add_waits(struct buf *out, const cJSON *first, int step)
{
	for (const cJSON *move = first; move; move = move->next) {
		const cJSON *same = first;

		while (same != move && !(is_in_step(same, step) && same_workload(same, move)))
			same = same->next;
		if (same == move && is_in_step(move, step))
			add_wait(out, move);
	}
}

static void add_eviction(struct buf *out, const cJSON *move)
{
	const char *namespace = text_of(move, "namespace"), *name = text_of(move, "name");

	if (!is_name(namespace) || !is_name(name))
		return;
	buf_printf(out,
		   "echo '{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
		   "\"name\":\"%s\",\"namespace\":\"%s\"}}' | kubectl create --raw "
		   "/api/v1/namespaces/%s/pods/%s/eviction -f -\n",
		   name, namespace, namespace, name);
}

/* All steps but the last, which drains the node. */
static void add_steps(struct buf *out, const cJSON *first)
{
	int last = 0;

	for (const cJSON *move = first; move; move = move->next)
		last = step_of(move) > last ? step_of(move) : last;
	for (int step = 1; step < last; step++) {
		for (const cJSON *move = first; move; move = move->next)
			if (is_in_step(move, step) &&
			    !cJSON_IsTrue(document_at(move, "placeholder")))
				add_eviction(out, move);
		add_waits(out, first, step);
	}
}

/* Pods of other nodes, which fall with those of this one. */
static void add_fallen(struct buf *out, const cJSON *first)
{
	for (const cJSON *move = first; move; move = move->next)
		if (*text_of(move, "from"))
			add_eviction(out, move);
}

static void add_drain(struct buf *out, const cJSON *node)
{
	add_steps(out, document_first(document_at(node, "moves")));
	add_fallen(out, document_first(document_at(node, "moves")));
	buf_add_str(out, "kubectl drain ");
	add_word(out, document_text_or(node, "name", ""));
	buf_add_str(out, " --ignore-daemonsets");
	if (cJSON_IsTrue(document_at(node, "emptyDir")))
		buf_add_str(out, " --delete-emptydir-data");
	if (cJSON_IsTrue(document_at(node, "unmanaged")))
		buf_add_str(out, " --force");
	buf_add_char(out, '\n');
}

void drain_print_commands(struct cli *cli, const cJSON *doc)
{
	bool any_order = cJSON_IsTrue(document_at(doc, "wave.anyOrder"));
	struct buf cordon = BUF_INIT, drain = BUF_INIT;
	const cJSON *node = document_first(document_at(doc, "wave.nodes")), *before = NULL;

	for (; node; node = node->next) {
		if (drain_is_left_out(cli, doc, node))
			continue;
		if (before && !any_order)
			add_waits(&drain, document_first(document_at(before, "moves")), 0);
		buf_add_char(&cordon, ' ');
		add_word(&cordon, document_text_or(node, "name", ""));
		add_drain(&drain, node);
		before = node;
	}
	if (cordon.len)
		buf_printf(&cli->out, "kubectl cordon%s\n%s", cordon.data, drain.data);
	buf_fini(&cordon);
	buf_fini(&drain);
}

/* --- soft taints */

#define SOFT_TAINT "evenkeel.io/drain-candidate"

static bool is_candidate(const cJSON *item)
{
	const char *verdict = document_text_or(item, "verdict", "");

	return strcmp(verdict, "unneeded") == 0 || strcmp(verdict, "drain") == 0;
}

/* What this plan says nothing about keeps what it has. */
static bool is_known(const cJSON *item)
{
	return strcmp(document_text_or(item, "verdict", ""), "notExamined") != 0;
}

void drain_print_soft_taints(struct cli *cli, const cJSON *doc)
{
	struct buf add = BUF_INIT, drop = BUF_INIT;
	const cJSON *item = document_first(document_at(doc, "items"));

	for (; item; item = item->next) {
		bool tainted = cJSON_IsTrue(document_at(item, "softTainted"));
		struct buf *to = tainted ? &drop : &add;

		if (tainted == is_candidate(item) || !is_known(item))
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
