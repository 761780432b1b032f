/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel act: asks the actuator, by the aggregator, to drain nodes, to undo that, to pause and to
 * go on; shows what it does and did. A request is followed until the actuator has refused or done
 * it: on a terminal a bar for each node, drawn again in place; else a line for each change.
 *
 *	post --> poll every second --> refused: 3 with the reasons
 *	             |      |
 *	             |      +--------> done: 0, or 3 where a node was rolled back
 *	          Ctrl-C: posts pause, 1
 *
 * Nobody takes part in a request but the actuator: the command may be killed at any time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/cli/answer.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/planner/drain_log.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/utf8.h"

enum { BAR_WIDTH = 20 };
#define POLL_NS	   NS_PER_SEC
#define PATIENT_NS (60 * NS_PER_SEC) /* without an answer */
#define GONE_NS	   (5 * NS_PER_SEC) /* answers lack the request: of two aggregators one learns it */

static const struct option_spec specs[] = {
	CLI_FLAG("dry-run", 0, dry_run,
		 "drain, undo: the actuator tells its steps and changes nothing."),
	CLI_FLAG("yes", 'y', yes, "drain: begin without a question."),
	{0},
};
static const char *const operand_words[] = {"drain",  "status", "history", "pause",
					    "resume", "undo",	NULL};

/* --- requests --------------------------------------------------------------------------------- */

/* The id in *id, the caller's; else the exit code. */
static int post(struct cli *cli, const char *action, char **id)
{
	cJSON *request = cJSON_CreateObject(), *doc = NULL;
	int code;

	cJSON_AddStringToObject(request, "action", action);
	if (strcmp(action, "drain") == 0 || strcmp(action, "undo") == 0) {
		cJSON_AddItemToObject(request, "nodes",
				      cJSON_CreateStringArray((const char *const *)cli->operands +
								      1,
							      (int)cli->operand_count - 1));
		cJSON_AddBoolToObject(request, "dryRun", cli->options->dry_run);
	}
	code = client_exit(
		client_ask(cli->client, "/v1/act/requests", request, &doc, &cli->reason));
	if (code == CLI_OK && !document_text(doc, "id"))
		code = error_fail(&cli->reason, CLI_ERROR,
				  "the answer is not one about a request; is that an "
				  "evenkeel-aggregator of this version?");
	if (code == CLI_OK)
		*id = mem_strdup(document_text(doc, "id"));
	cJSON_Delete(doc);
	return code;
}

/* --- progress --------------------------------------------------------------------------------- */

struct follow {
	struct cli *cli;
	const char *action;
	char *id; /* owned */
	char **shown; /* owned: the newest line of each node that is named */
	size_t drawn; /* lines of the newest picture */
	struct buf body; /* the newest answer */
	cJSON *doc; /* the same, parsed; owned; NULL: none yet */
	int64_t missed_ns; /* since when answers lack the request; 0: they have it */
};

static const cJSON *request_of(const struct follow *f)
{
	return document_find(f->doc, "requests", "id", f->id);
}

/* "node-3  [######--------------]  3/9  evicting  waits for a budget", or in words. */
static char *line_of(const struct follow *f, const char *name)
{
	const cJSON *n = document_find(f->doc, "actuator.nodes", "name", name);
	double moved = document_number(n, "moved"), of = document_number(n, "of");
	const char *message = document_text_or(n, "message", "");
	const char *phase =
		document_text_or(n, "phase", document_text_or(request_of(f), "state", "waiting"));
	bool known = moved >= 0 && of >= 0;
	char bar[BAR_WIDTH + 1], *line;

	if (!f->cli->terminal) {
		line = known ? mem_printf("%s: %s, %.0f of %.0f pods moved%s%s", name, phase, moved,
					  of, *message ? ": " : "", message)
			     : mem_printf("%s: %s%s%s", name, phase, *message ? ": " : "", message);
	} else {
		double share = known && of > 0 && moved <= of ? moved / of : known;

		for (int i = 0; i < BAR_WIDTH; i++)
			bar[i] = i < (int)(share * BAR_WIDTH) ? '#' : '-';
		bar[BAR_WIDTH] = '\0';
		line = mem_printf("%s  [%s]  %.0f/%.0f  %s  %s", name, bar, known ? moved : 0,
				  known ? of : 0, phase, message);
	}
	utf8_clean(line);
	return line;
}

/* Over the picture before, each line within the terminal. */
static void draw(struct follow *f)
{
	struct cli *cli = f->cli;

	watch_look_at_terminal(cli);
	if (f->drawn)
		buf_printf(&cli->out, "\033[%zuA\033[J", f->drawn);
	f->drawn = cli->operand_count - 1;
	for (size_t i = 1; i < cli->operand_count; i++) {
		const char *line = f->shown[i];

		table_add_cut(&cli->out, line, strlen(line), cli->width ? cli->width : SIZE_MAX);
		buf_add_char(&cli->out, '\n');
	}
}

static void show(struct follow *f)
{
	bool changed = false;

	if (f->cli->options->output == OUTPUT_JSON)
		return;
	for (size_t i = 1; i < f->cli->operand_count; i++) {
		char *line = line_of(f, f->cli->operands[i]);

		if (f->shown[i] && strcmp(f->shown[i], line) == 0) {
			free(line);
			continue;
		}
		free(f->shown[i]);
		f->shown[i] = line;
		changed = true;
		if (!f->cli->terminal)
			lines_print(f->cli, "%s", line);
	}
	if (changed && f->cli->terminal)
		draw(f);
	watch_flush(f->cli);
}

/* --- to the end ------------------------------------------------------------------------------- */

/* Each reason on a line where it is no failure; else all as one. */
static int tell_reasons(struct follow *f, bool refused)
{
	const cJSON *reason = document_first(request_of(f), "reasons");
	struct buf text = BUF_INIT;

	for (; reason; reason = reason->next) {
		if (!refused && f->cli->options->output != OUTPUT_JSON)
			lines_wrap(f->cli, 0, "%s", reason->valuestring);
		buf_printf(&text, "%s%s", text.len ? "; " : "", reason->valuestring);
	}
	if (refused)
		error_set(&f->cli->reason, "refused: %s",
			  text.len ? text.data : "no reason is given");
	buf_fini(&text);
	return refused ? CLI_REFUSED : CLI_OK;
}

static int finish(struct follow *f)
{
	struct cli *cli = f->cli;
	int code = tell_reasons(f, document_is(request_of(f), "state", "refused"));

	if (cli->options->output == OUTPUT_JSON)
		buf_add(&cli->out, f->body.data, f->body.len);
	else if (code == CLI_OK && cli->operand_count == 1)
		lines_print(cli, "%s: done", f->action);
	if (strcmp(f->action, "drain") != 0)
		return code;
	for (size_t i = 1; code == CLI_OK && i < cli->operand_count; i++) {
		const cJSON *n = document_find(f->doc, "actuator.nodes", "name", cli->operands[i]);

		if (document_is(n, "phase", "rolledBack"))
			code = error_fail(&cli->reason, CLI_REFUSED, "%.253s is rolled back: %s",
					  cli->operands[i],
					  document_text_or(n, "message", "no reason is given"));
	}
	return code;
}

/* Ctrl-C: the actuator goes on without us, so a drain is paused. */
static int stop(struct follow *f)
{
	struct cli *cli = f->cli;
	char *id = NULL;
	int code;

	watch_stop = 0; /* requests give up with it */
	if (strcmp(f->action, "drain") != 0 || cli->options->dry_run)
		return error_fail(&cli->reason, CLI_ERROR,
				  "interrupted; evenkeel act status shows what becomes of it");
	code = post(cli, "pause", &id);
	free(id);
	if (code != CLI_OK)
		return error_at(&cli->reason, code, "interrupted, but the actuator is not paused");
	return error_fail(&cli->reason, CLI_ERROR,
			  "interrupted; the actuator is asked to pause: evenkeel act resume goes "
			  "on, evenkeel act undo gives nodes back");
}

/* Reads the newest state. False: the exit code is in *code. */
static bool read_state(struct follow *f, int64_t *heard_ns, int *code)
{
	int rc = client_get(f->cli->client, "/v1/act", &f->body, &f->cli->reason);
	cJSON *doc = rc ? NULL : cJSON_ParseWithLength(f->body.data, f->body.len);

	if (rc) {
		*code = client_exit(rc);
		return (rc == -EHOSTUNREACH || rc == -ETIMEDOUT || rc == -EINTR) &&
		       clock_mono_ns() - *heard_ns < PATIENT_NS;
	}
	*heard_ns = clock_mono_ns();
	cJSON_Delete(f->doc);
	f->doc = doc;
	f->cli->reason.text[0] = '\0';
	if (request_of(f)) {
		f->missed_ns = 0;
		return true;
	}
	if (!f->missed_ns)
		f->missed_ns = *heard_ns;
	*code = error_fail(&f->cli->reason, CLI_ERROR,
			   "the request is gone: the aggregator began anew; evenkeel act status "
			   "shows what the actuator does");
	return *heard_ns - f->missed_ns < GONE_NS;
}

static bool is_over(const struct follow *f)
{
	const cJSON *r = request_of(f);

	return document_is(r, "state", "refused") || document_is(r, "state", "done");
}

static int follow(struct cli *cli, const char *action)
{
	struct follow f = {.cli = cli, .action = action};
	int64_t heard_ns = clock_mono_ns();
	int code = post(cli, action, &f.id);

	if (code != CLI_OK)
		return code;
	f.shown = mem_zalloc(cli->operand_count, sizeof(*f.shown));
	watch_catch_signals();
	while (!watch_stop && read_state(&f, &heard_ns, &code)) {
		show(&f);
		if (is_over(&f))
			break;
		watch_wait(clock_mono_ns(), POLL_NS);
	}
	if (watch_stop)
		code = stop(&f);
	else if (is_over(&f))
		code = finish(&f);
	for (size_t i = 1; i < cli->operand_count; i++)
		free(f.shown[i]);
	free(f.shown);
	free(f.id);
	buf_fini(&f.body);
	cJSON_Delete(f.doc);
	return code;
}

/* --- the words -------------------------------------------------------------------------------- */

/* CLI_OK where somebody said yes, or nothing is changed. */
static int confirm(struct cli *cli)
{
	char answer[16] = "";

	if (cli->options->yes || cli->options->dry_run)
		return CLI_OK;
	if (!isatty(STDIN_FILENO) || !cli->terminal)
		return cli_misuse(
			cli, "the question needs a terminal: give --yes to drain, or --dry-run");
	buf_add_str(&cli->out, "Evict the pods of");
	for (size_t i = 1; i < cli->operand_count; i++)
		buf_printf(&cli->out, "%s %s", i > 1 ? "," : "", cli->operands[i]);
	buf_add_str(&cli->out, "? [y/N] ");
	watch_flush(cli);
	if (fgets(answer, sizeof(answer), stdin) &&
	    (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0))
		return CLI_OK;
	return error_fail(&cli->reason, CLI_REFUSED, "nothing is asked of the actuator");
}

static int status(struct cli *cli)
{
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/act");
	return answer_get(cli, &act_answer, &path);
}

static int history(struct cli *cli)
{
	int64_t limit = cli->options->limit;
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/drain/history?event=waveReport");
	if (limit > 0)
		buf_printf(&path, "&limit=%d",
			   limit < DRAIN_LOG_MAX ? (int)limit : (int)DRAIN_LOG_MAX);
	return answer_get(cli, &wave_history_answer, &path);
}

/* NULL, or what cannot be meant. */
static const char *fault_of(const struct cli *cli, bool asks, bool nodes)
{
	const struct cli_options *o = cli->options;

	if (cli->offline)
		return "act needs a server: a snapshot has no actuator";
	if (nodes ? cli->operand_count < 2 : cli->operand_count > 1)
		return nodes ? "name the nodes; --help shows the usage"
			     : "only drain and undo take nodes";
	if (asks && o->watch_ns)
		return "--watch goes with act status and act history";
	if (asks && !nodes && o->dry_run)
		return "--dry-run goes with act drain and act undo";
	for (size_t i = 1; i < cli->operand_count; i++)
		if (!cli->operands[i][0])
			return "the name of a node is empty";
	return NULL;
}

static int run(struct cli *cli)
{
	const char *word = cli->operand_count ? cli->operands[0] : "";
	bool nodes = strcmp(word, "drain") == 0 || strcmp(word, "undo") == 0;
	bool shows = strcmp(word, "status") == 0 || strcmp(word, "history") == 0;
	const char *fault = array_has_text(operand_words, word)
				    ? fault_of(cli, !shows, nodes)
				    : "say drain, status, history, pause, resume or undo";
	int code = CLI_OK;

	if (fault)
		return cli_misuse(cli, "%s", fault);
	if (shows)
		return strcmp(word, "status") == 0 ? status(cli) : history(cli);
	if (strcmp(word, "drain") == 0)
		code = confirm(cli);
	return code == CLI_OK ? follow(cli, word) : code;
}

const struct command command_act = {
	.name = "act",
	.usage = "drain|undo NODE.. | pause|resume|status|history",
	.summary = "Ask the actuator to drain nodes, and follow its progress",
	.details = "drain NODE..: evenkeel-actuator evicts the pods of these nodes by a plan that "
		   "planner and checker have proven; a bar shows the progress of each node, and "
		   "Ctrl-C pauses the actuator. undo NODE..: rolls nodes back. pause, resume: the "
		   "actuator begins no step until it is resumed. status: running drains, and the "
		   "promised and measured use of their destinations. history: finished waves. All "
		   "need the right to create acts (ClusterRole evenkeel-operator), or a token "
		   "whose line ends in \",act\". Exit status 3: the actuator refuses, a node is "
		   "rolled back, or the question is not answered with yes; 4: no actuator reports.",
	.examples = {{"evenkeel act drain node-7 --dry-run",
		      "The steps by which the actuator would drain a node."},
		     {"evenkeel act drain node-7 node-8 --yes",
		      "Drain two nodes, and wait for the end."},
		     {"evenkeel act status --watch", "Running drains, every 2 seconds."}},
	.terms = {"drain", "wave"},
	.specs = specs,
	.words = operand_words,
	.names = "NODE",
	.run = run,
};
