/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel replay: another command on what an aggregator knew at a moment of its record, or at many.
 *
 * Exit status: 1 for a record that cannot be read, 4 for moments that it does not have; the command's
 * own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/replay.h"
#include "aggregator/cli/replay_policies.h"
#include "shared/array.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "shared/units.h"

enum { MOMENTS_MOST = 100000 };

/* clang-format off */
static const struct option_spec specs[] = {
	CLI_OPTION("at", 0, OPTION_LIST, at, "TIME", NULL, NULL, "A moment, such as 2026-01-31T12:00:00Z; further ones must ascend."),
	CLI_TEXT("from", 0, from, "TIME", "The first of several moments."),
	CLI_TEXT("to", 0, to, "TIME", "The last moment is not after this."),
	RANGE_OPTION(OPTION_DURATION, "step", offsetof(struct cli_options, step_ns), "DURATION", "10s",
		     1e6, 366 * 86400e9, "Time between two moments."),
	CLI_OPTION("policy", 0, OPTION_TYPED_LIST, policies, "NAME:OPTION=VALUE;..", NULL, NULL,
		   "In place of COMMAND: what a policy with these options of scores (blend, plugin) and drain would have done."),
	{0},
};
/* clang-format on */

static int show_extent(struct cli *cli)
{
	char from[TIMEFMT_LEN], to[TIMEFMT_LEN], size[UNITS_LEN];
	struct replay_extent x;

	if (replay_measure(cli->operands[0], &x, &cli->reason))
		return CLI_ERROR;
	timefmt_rfc3339(x.from_ns, from);
	timefmt_rfc3339(x.to_ns, to);
	units_bytes((double)x.bytes, size);
	if (cli->options->output == OUTPUT_JSON) {
		struct jsonw w;

		jsonw_begin(&w, &cli->out);
		jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
		jsonw_key_string(&w, "kind", "Record");
		if (x.views) {
			jsonw_key_time_exact(&w, "from", x.from_ns);
			jsonw_key_time_exact(&w, "to", x.to_ns);
		}
		jsonw_key_uint(&w, "views", x.views);
		jsonw_key_uint(&w, "intervals", x.intervals);
		jsonw_key_uint(&w, "segments", x.segments);
		jsonw_key_uint(&w, "gaps", x.gaps);
		jsonw_key_uint(&w, "damaged", x.damaged);
		jsonw_key_uint(&w, "bytes", x.bytes);
		jsonw_object_close(&w);
		buf_add_char(&cli->out, '\n');
	} else {
		if (x.views)
			lines_print(cli, "Recorded from %s to %s, %s:", from, to, size);
		else
			lines_print(cli, "No view is recorded; size of the segments: %s.", size);
		lines_print(cli,
			    "%" PRIu64 " views, %" PRIu64 " intervals of agents; segments: %" PRIu64
			    ", gaps: %" PRIu64 ", damaged: %" PRIu64 ".",
			    x.views, x.intervals, x.segments, x.gaps, x.damaged);
	}
	cli->reason = x.damage;
	return x.damaged ? CLI_ERROR : CLI_OK;
}

/* --- moments ---------------------------------------------------------------------------------- */

struct schedule {
	int64_t *at_ns; /* owned; ascending */
	size_t count;
};

static int read_time(struct cli *cli, const char *option, const char *text, int64_t *ns)
{
	if (timefmt_parse(text, ns, &cli->reason) == 0)
		return CLI_OK;
	return error_at(&cli->reason, CLI_USAGE, "--%s", option);
}

static int read_steps(struct cli *cli, struct schedule *s)
{
	const struct cli_options *o = cli->options;
	int64_t from_ns = 0, to_ns = 0;
	int code;

	if (!o->from || !o->to)
		return cli_misuse(cli, "--from and --to go together");
	code = read_time(cli, "from", o->from, &from_ns);
	if (!code)
		code = read_time(cli, "to", o->to, &to_ns);
	if (code)
		return code;
	if (to_ns < from_ns)
		return cli_misuse(cli, "--to is before --from");
	if ((to_ns - from_ns) / o->step_ns >= MOMENTS_MOST)
		return cli_misuse(cli, "there are over %d moments: give a longer --step",
				  MOMENTS_MOST);
	for (; from_ns <= to_ns; from_ns += o->step_ns)
		ARRAY_ADD(s->at_ns, s->count) = from_ns;
	return CLI_OK;
}

static int read_schedule(struct cli *cli, struct schedule *s)
{
	const struct cli_options *o = cli->options;

	if (o->from || o->to)
		return o->at.count ? cli_misuse(cli, "--at does not go with --from and --to")
				   : read_steps(cli, s);
	for (size_t i = 0; i < o->at.count; i++) {
		int64_t at_ns;

		if (read_time(cli, "at", o->at.items[i], &at_ns))
			return CLI_USAGE;
		if (i && at_ns < s->at_ns[i - 1])
			return cli_misuse(cli,
					  "--at %s: times must ascend; the --at before it is %s",
					  o->at.items[i], o->at.items[i - 1]);
		ARRAY_ADD(s->at_ns, s->count) = at_ns;
	}
	return CLI_OK;
}

/* Runs COMMAND at the moment. */
static int run_at(struct cli *cli, struct replay *r, int64_t at_ns)
{
	bool json = cli->options->output == OUTPUT_JSON;
	struct option_list words = {.count = cli->operand_count - 1 + json};
	struct offline_moment m = {0};
	struct offline *files;
	int rc = replay_go(r, at_ns, &cli->reason);

	if (!rc) {
		replay_take(r, at_ns, &m);
		rc = offline_open_moment(&files, &m, &cli->reason);
		offline_moment_fini(&m);
	}
	if (rc)
		return rc == -ERANGE ? CLI_STALE : CLI_ERROR;
	words.items = mem_zalloc(words.count, sizeof(*words.items));
	memcpy(words.items, cli->operands + 1, (cli->operand_count - 1) * sizeof(*words.items));
	if (json)
		words.items[words.count - 1] = (char *)"--output=json";
	rc = commands_run(files, &words, cli, &cli->out, &cli->reason);
	free(words.items);
	return rc;
}

/* Runs no COMMAND, but policies, at the moments that are in the record. */
static int compare(struct cli *cli, struct replay *r, const struct schedule *s)
{
	struct offline_moment before = {0};
	struct error first = {""};
	struct policies all;
	size_t missing = 0;
	int code = policies_read(&all, &cli->options->policies, &cli->reason) ? CLI_USAGE : CLI_OK;

	for (size_t i = 0; i < s->count && !code; i++) {
		struct offline_moment now = {0};
		int rc = replay_go(r, s->at_ns[i], &cli->reason);

		if (rc == -ERANGE) {
			if (!missing++)
				first = cli->reason;
		} else if (rc) {
			code = CLI_ERROR;
		} else {
			replay_take(r, s->at_ns[i], &now);
			if (policies_step(&all, before.view ? &before : NULL, &now, &cli->reason))
				code = CLI_USAGE;
		}
		if (!code)
			cli->reason.text[0] = '\0';
		offline_moment_fini(&before);
		before = now;
	}
	offline_moment_fini(&before);
	if (!code && missing < s->count)
		policies_show(&all, cli);
	if (!code && missing)
		code = error_fail(&cli->reason, CLI_STALE,
				  "%zu of %zu moments are not in the record; the first: %s",
				  missing, s->count, first.text);
	policies_fini(&all);
	return code;
}

/*
 * Several moments have titles, but not in JSON, and go on behind one without an answer; the worst exit
 * code.
 */
static int show(struct cli *cli, struct replay *r, const struct schedule *s)
{
	bool titled = s->count > 1 && cli->options->output != OUTPUT_JSON;
	struct error first = {""};
	int code = CLI_OK, worst = CLI_OK;

	for (size_t i = 0; i < s->count && code != CLI_USAGE; i++) {
		char time[TIMEFMT_LEN];

		timefmt_rfc3339(s->at_ns[i], time);
		if (i && titled)
			buf_add_char(&cli->out, '\n');
		if (titled)
			lines_print(cli, "%s:", time);
		code = run_at(cli, r, s->at_ns[i]);
		if (code && code != CLI_USAGE && titled && cli->reason.text[0]) {
			lines_print(cli, "%s", cli->reason.text);
			cli->reason.text[0] = '\0';
		}
		worst = code > worst ? code : worst;
		if (!first.text[0])
			first = cli->reason;
	}
	cli->reason = first;
	return worst;
}

static int run(struct cli *cli)
{
	bool policies = cli->options->policies.count, command = cli->operand_count > 1;
	struct schedule s = {0};
	struct replay *r = NULL;
	int code;

	if (!cli->operand_count)
		return cli_misuse(cli, "name the directory of a record");
	code = read_schedule(cli, &s);
	if (!code && !s.count && !command && !policies)
		code = show_extent(cli);
	else if (!code && !s.count)
		code = cli_misuse(cli, "name a moment by --at, or several by --from and --to");
	else if (!code && command == policies)
		code = cli_misuse(cli, command ? "a command and --policy do not go together"
					       : "name a command to run, behind --, or policies by "
						 "--policy");
	else if (!code && replay_open(&r, cli->operands[0], &cli->reason))
		code = CLI_ERROR;
	else if (!code)
		code = policies ? compare(cli, r, &s) : show(cli, r, &s);
	replay_close(r);
	free(s.at_ns);
	return code;
}

const struct command command_replay = {
	.name = "replay",
	.usage = "DIR [--at TIME ..] [-- COMMAND ..]",
	.summary = "Ask what the aggregator knew at a moment of its record",
	.details =
		"DIR is what evenkeel-aggregator --record wrote, of that machine or copied from "
		"it, also while it is written. COMMAND is another command, with its options: it "
		"answers as it would have at that moment. Without COMMAND: what is recorded. With "
		"-o json in front of COMMAND, several moments give a JSON document each, without "
		"titles. "
		"Every replay reads the record from its start, because peaks are of the last 24 "
		"hours. Exit "
		"status 1: the record cannot be read; 4: it does not have the moment; else "
		"COMMAND's.",
	.examples = {{"evenkeel replay /var/lib/evenkeel-aggregator/record", "What is recorded."},
		     {"evenkeel replay record --at 2026-01-31T12:00:00Z -- drain",
		      "The plan of that moment."},
		     {"evenkeel replay record --at 2026-01-31T12:00:00Z -- whatif --remove node-7",
		      "What the loss of a node would have meant then."}},
	.specs = specs,
	.server = CLI_SERVER_UNUSED,
	.run = run,
};
