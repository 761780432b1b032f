/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of drains for people: one line that says what it comes to, the nodes, and the wave. Of
 * nodes that are named each has its reasons in full, with what would change them, and where its
 * pods go; --explain adds where they went in the simulation, and without names the plan's own
 * sentences.
 */
#include "aggregator/cli/drain.h"

#include <string.h>

#include "aggregator/cli/lines.h"
#include "shared/units.h"

/* Nodes were named, or their labels: the answer has only some. */
bool drain_is_part(const struct cli *cli)
{
	return cli->operand_count || cli->options->selector;
}

/* --- the wave --------------------------------------------------------------------------------- */

static void add_count(struct buf *line, double count, const char *one, const char *more)
{
	buf_printf(line, "%.0f %s", count, count > 0 && count < 2 ? one : more);
}

/* Moves of a node that have the member. */
static int count_moves(const cJSON *node, const char *member)
{
	const cJSON *move = document_first(node, "moves");
	int count = 0;

	for (; move; move = move->next)
		count += document_at(move, member) != NULL;
	return count;
}

static void add_deleted(struct buf *line, int deleted)
{
	if (!deleted)
		return;
	buf_add_str(line, ", ");
	add_count(line, deleted, "pod is deleted", "pods are deleted");
}

static void say_robust(const cJSON *wave, struct buf *line)
{
	const char *fragile = document_text(wave, "notRobust");

	if (document_is_true(wave, "anyOrder"))
		buf_add_str(line, "There is room as well if the scheduler puts them elsewhere.");
	else if (document_is_true(wave, "robust"))
		buf_add_str(line, "Drain them in this order, each after the one before.");
	else if (fragile)
		buf_printf(line, "It depends on where the scheduler puts them: %s.", fragile);
}

static void say_young(const cJSON *wave, struct buf *line)
{
	const cJSON *node = document_first(wave, "nodes");
	int young = 0;

	for (; node; node = node->next)
		young += count_moves(node, "ageSeconds");
	if (!young)
		return;
	buf_add_char(line, ' ');
	add_count(line, young, "of them is", "of them are");
	buf_add_str(line, " younger than 10 minutes (AGE): the nodes have been unneeded for long "
			  "enough since.");
}

static void say_wave(struct cli *cli, const cJSON *wave)
{
	const cJSON *node = document_first(wave, "nodes");
	double empty = document_number(wave, "emptyNodes"), pods = document_number(wave, "pods");
	struct buf line = BUF_INIT;
	int deleted = 0;

	buf_add_str(&line, "Now, in this order:");
	for (; node; node = node->next) {
		buf_printf(&line, " %s%s", document_text_or(node, "name", "-"),
			   node->next ? "," : "");
		deleted += count_moves(node, "deleted");
	}
	buf_add_str(&line, ". ");
	add_count(&line, empty, "is empty", "are empty");
	buf_add_str(&line, ", ");
	add_count(&line, pods, "pod moves", "pods move");
	add_deleted(&line, deleted);
	buf_add_str(&line, ". ");
	if (pods > 0)
		say_robust(wave, &line);
	say_young(wave, &line);
	buf_add_char(&cli->out, '\n');
	lines_wrap_buf(cli, 0, &line);
	buf_fini(&line);
}

/* --- words ------------------------------------------------------------------------------------ */

static void add_verdicts(struct buf *line, const cJSON *doc)
{
	static const struct {
		const char *path, *words;
	} parts[] = {
		{"verdicts.drain", "may be drained now"},
		{"verdicts.unneeded", "could be later"},
		{"verdicts.needed", "needed"},
		{"verdicts.kept", "kept for their pods"},
		{"verdicts.inDeletion", "on the way"},
		{"verdicts.drained", "drained"},
		{"verdicts.notExamined", "not examined"},
	};
	double sum = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sum += document_number(doc, parts[i].path);
	add_count(line, sum, "node", "nodes");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		double count = document_number(doc, parts[i].path);

		if (count > 0 || i == 0)
			buf_printf(line, "%s %.0f %s", i ? "," : ":", count, parts[i].words);
	}
	buf_add_char(line, '.');
}

static void print_summary(struct cli *cli, const cJSON *doc)
{
	const char *stops = document_text(doc, "owed.why");
	struct buf line = BUF_INIT;
	double held;

	if (stops)
		lines_wrap(cli, 0, "No more nodes are drained: %s.", stops);
	add_verdicts(&line, doc);
	held = document_number(doc, "throttled.held");
	if (held > 0)
		buf_printf(&line, " %s%.0f of %.0f nodes and %.0f of %.0f drains; %.0f wait.",
			   document_is_true(doc, "throttled.state") ? "Throttled: " : "",
			   document_number(doc, "throttled.nodes.used"),
			   document_number(doc, "throttled.nodes.limit"),
			   document_number(doc, "throttled.drains.used"),
			   document_number(doc, "throttled.drains.limit"), held);
	if (document_is(doc, "peer.plan", "other"))
		buf_printf(&line, " The other aggregator has planned another wave for %.0fs.",
			   document_number(doc, "peer.seconds"));
	else if (document_is(doc, "peer.plan", "unknown"))
		buf_printf(&line, " The other aggregator has told no plan for %.0fs.",
			   document_number(doc, "peer.seconds"));
	lines_wrap_buf(cli, 0, &line);
	buf_fini(&line);
	lines_add_pod_use(cli, doc);
	buf_add_char(&cli->out, '\n');
}

/* named: the sentence is about one pod of several, and does not say which. */
static void explain_reason(struct cli *cli, const cJSON *reason, bool named)
{
	struct buf line = BUF_INIT;

	if (named)
		buf_printf(&line, "pod %s/%s: ", document_text_or(reason, "pod.namespace", ""),
			   document_text_or(reason, "pod.name", ""));
	buf_add_str(&line, document_text_or(reason, "text", ""));
	if (line.len && line.data[line.len - 1] != '.')
		buf_add_char(&line, '.');
	lines_wrap_under(cli, 2, line.data, "%s: ", document_text_or(reason, "code", "-"));
	lines_wrap_under(cli, 6, document_text_or(reason, "unblock", ""), "what helps: ");
	buf_fini(&line);
}

static void say_right_sized(struct cli *cli, const cJSON *item)
{
	char requested[UNITS_LEN], sized[UNITS_LEN];

	if (!(document_number(item, "utilization.rightSized") <
	      document_number(item, "utilization.requested")))
		return;
	units_percent(document_number(item, "utilization.requested"), requested);
	units_percent(document_number(item, "utilization.rightSized"), sized);
	lines_wrap(cli, 2,
		   "by requests it is %s full; were they what its pods use at the 95th percentile, "
		   "and some headroom, %s",
		   requested, sized);
}

static void say_going(struct cli *cli, const cJSON *doc, const cJSON *node)
{
	struct buf line = BUF_INIT;
	int deleted = count_moves(node, "deleted");
	int pods = cJSON_GetArraySize(document_at(node, "moves")) -
		   count_moves(node, "placeholder") - deleted;

	if (pods + deleted) {
		buf_add_str(&line, "it goes now, and ");
		add_count(&line, pods, "pod moves", "pods move");
		add_deleted(&line, deleted);
		buf_add_str(&line, ". ");
		if (pods)
			say_robust(document_at(doc, "wave"), &line);
	} else {
		buf_add_str(&line, "it goes now; nothing on it has to move.");
	}
	lines_wrap_buf(cli, 2, &line);
	buf_fini(&line);
}

static void explain_node(struct cli *cli, const cJSON *doc, const cJSON *item)
{
	const cJSON *reason = document_first(item, "reasons");
	const cJSON *going = document_find(doc, "wave.nodes", "name", document_text(item, "name"));
	bool several;

	buf_add_char(&cli->out, '\n');
	lines_print(cli, "%s: %s", document_text_or(item, "name", "-"),
		    document_text_or(item, "verdict", "-"));
	if (going)
		say_going(cli, doc, going);
	several = document_number(reason, "numbers.pods") > 1 &&
		  document_is(reason, "code", "BlockedByPod");
	for (int i = 0; reason; reason = reason->next, i++)
		explain_reason(cli, reason, several && i > 0);
	say_right_sized(cli, item);
	if (!going && document_first(item, "moves"))
		lines_wrap(cli, 2, "where its pods went in the simulation:");
	drain_print_moves(cli, going ? going : item, true);
}

/* --- for other programs ----------------------------------------------------------------------- */

static void print_names(struct cli *cli, const cJSON *doc)
{
	const cJSON *node = document_first(doc, "wave.nodes");

	for (; node; node = node->next)
		if (!drain_is_left_out(cli, doc, node))
			buf_printf(&cli->rows, "node/%s\n", document_text_or(node, "name", "-"));
}

static void print_plan(struct cli *cli, const cJSON *doc)
{
	cJSON *plan = document_drain_plan(doc);

	answer_print(cli, plan);
	cJSON_Delete(plan);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Of nodes that are named each by itself, else the plan. */
static void print_tables(struct cli *cli, const cJSON *doc)
{
	const cJSON *item = document_first(doc, "items"), *wave = document_at(doc, "wave");

	if (drain_is_part(cli)) {
		bool explained = cli->operand_count || cli->options->explain;

		drain_print_nodes(cli, doc);
		for (; explained && item; item = item->next)
			explain_node(cli, doc, item);
		return;
	}
	if (!cli->options->no_headers)
		print_summary(cli, doc);
	drain_print_nodes(cli, doc);
	if (cJSON_IsObject(wave)) {
		say_wave(cli, wave);
		drain_print_wave(cli, wave);
	}
	if (cli->options->explain) {
		buf_add_char(&cli->out, '\n');
		lines_wrap_list(cli, 0, document_at(doc, "narration"));
	}
}

/* The first node that is named and stays. */
static const cJSON *find_held(const struct cli *cli, const cJSON *doc)
{
	const cJSON *item = document_first(doc, "items");

	for (; cli->operand_count && item; item = item->next)
		if (!document_is(item, "verdict", "drain") &&
		    !document_is(item, "verdict", "inDeletion") &&
		    !document_is(item, "verdict", "drained"))
			return item;
	return NULL;
}

static int judge(struct cli *cli, const cJSON *doc)
{
	const cJSON *held = find_held(cli, doc);
	const char *stale = document_text(doc, "stale"),
		   *cap = document_text_or(doc, "useCap", "on");

	if (held)
		return error_fail(&cli->reason, CLI_REFUSED, "node %.253s does not go now: %.64s",
				  document_text_or(held, "name", "-"),
				  document_text_or(document_first(held, "reasons"), "code", "-"));
	if (!stale && (strcmp(cap, "off: no usage data") != 0 ||
		       (cli->operand_count && !cli->options->strict)))
		return CLI_OK;
	return error_fail(
		&cli->reason, CLI_STALE, "%s",
		stale		? stale
		: cli->no_usage ? cli->no_usage
				: "no node is measured: destinations are chosen by requests alone");
}

static void print(struct cli *cli, const cJSON *doc)
{
	if (cli->options->output == OUTPUT_COMMANDS)
		drain_print_commands(cli, doc);
	else if (cli->options->output == OUTPUT_SOFT_TAINTS)
		drain_print_soft_taints(cli, doc);
	else if (cli->options->output == OUTPUT_PLAN)
		print_plan(cli, doc);
	else if (cli->form == OUTPUT_NAME)
		print_names(cli, doc);
	else
		print_tables(cli, doc);
}

const struct answer drain_answer = {
	.about = "drains",
	.members = {"items", "verdicts"},
	.print = print,
	.judge = judge,
};
