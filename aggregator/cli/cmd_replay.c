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

#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/replay.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "shared/units.h"

/* clang-format off */
static const struct option_spec specs[] = {
	CLI_TEXT("at", 0, at, "TIME", "The moment: 2026-01-31T12:00:00Z."),
	CLI_TEXT("from", 0, from, "TIME", "The first of several moments."),
	CLI_TEXT("to", 0, to, "TIME", "The last moment is not after this."),
	RANGE_OPTION(OPTION_DURATION, "step", offsetof(struct cli_options, step_ns), "DURATION", "10s",
		     1e6, 366 * 86400e9, "Time between two moments."),
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

		jsonw_init(&w, &cli->out);
		jsonw_object_open(&w);
		jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
		jsonw_key_string(&w, "kind", "Record");
		jsonw_key_time_exact(&w, "from", x.from_ns);
		jsonw_key_time_exact(&w, "to", x.to_ns);
		jsonw_key_uint(&w, "views", x.views);
		jsonw_key_uint(&w, "intervals", x.intervals);
		jsonw_key_uint(&w, "segments", x.segments);
		jsonw_key_uint(&w, "gaps", x.gaps);
		jsonw_key_uint(&w, "bytes", x.bytes);
		jsonw_object_close(&w);
		buf_add_char(&cli->out, '\n');
		return CLI_OK;
	}
	lines_print(cli, "Recorded from %s to %s, %s:", from, to, size);
	lines_print(cli,
		    "%" PRIu64 " views, %" PRIu64 " intervals of agents, in %" PRIu64
		    " segments with %" PRIu64 " gaps.",
		    x.views, x.intervals, x.segments, x.gaps);
	return CLI_OK;
}

/* --- moments ---------------------------------------------------------------------------------- */

struct schedule {
	int64_t from_ns, to_ns, step_ns;
	bool many;
};

static int read_time(struct cli *cli, const char *option, const char *text, int64_t *ns)
{
	if (timefmt_parse(text, ns, &cli->reason) == 0)
		return CLI_OK;
	error_prefix(&cli->reason, "--%s", option);
	return CLI_USAGE;
}

static int read_schedule(struct cli *cli, struct schedule *m)
{
	const struct cli_options *o = cli->options;
	int code;

	*m = (struct schedule){.step_ns = o->step_ns, .many = o->from != NULL};
	if ((o->at != NULL) == (o->from != NULL) || (o->from != NULL) != (o->to != NULL))
		return cli_fail(&cli->reason, CLI_USAGE,
				"name a moment by --at, or several by "
				"--from and --to");
	if (o->at) {
		code = read_time(cli, "at", o->at, &m->from_ns);
		m->to_ns = m->from_ns;
		return code;
	}
	code = read_time(cli, "from", o->from, &m->from_ns);
	if (!code)
		code = read_time(cli, "to", o->to, &m->to_ns);
	if (!code && m->to_ns < m->from_ns)
		code = cli_fail(&cli->reason, CLI_USAGE, "--to is before --from");
	return code;
}

/* Runs COMMAND at the moment. */
static int run_at(struct cli *cli, struct replay *r, int64_t at_ns, struct buf *out)
{
	struct option_list words = {(char **)cli->operands + 1, cli->operand_count - 1};
	struct offline *files;
	int rc = replay_go(r, at_ns, &cli->reason);

	if (!rc)
		rc = replay_files(r, at_ns, &files, &cli->reason);
	if (rc)
		return rc == -ERANGE ? CLI_STALE : CLI_ERROR;
	return commands_run(files, &words, cli->options, out, &cli->reason);
}

static int show_many(struct cli *cli, struct replay *r, const struct schedule *m)
{
	int code = CLI_OK, worst = CLI_OK;

	for (int64_t at_ns = m->from_ns; at_ns <= m->to_ns && code != CLI_USAGE;
	     at_ns += m->step_ns) {
		char time[TIMEFMT_LEN];

		timefmt_rfc3339(at_ns, time);
		if (at_ns != m->from_ns)
			buf_add_char(&cli->out, '\n');
		lines_print(cli, "%s:", time);
		code = run_at(cli, r, at_ns, &cli->out);
		if (code && code != CLI_USAGE && cli->reason.text[0])
			lines_print(cli, "%s", cli->reason.text);
		worst = code ? code : worst;
	}
	return worst;
}

static int run(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct replay *r = NULL;
	struct schedule m;
	int code;

	if (!cli->operand_count)
		return cli_fail(&cli->reason, CLI_USAGE, "name the directory of a record");
	if (!o->at && !o->from && !o->to && cli->operand_count == 1)
		return show_extent(cli);
	code = read_schedule(cli, &m);
	if (code)
		return code;
	if (cli->operand_count == 1)
		return cli_fail(&cli->reason, CLI_USAGE, "name a command to run, behind --");
	if (replay_open(&r, cli->operands[0], &cli->reason))
		return CLI_ERROR;
	code = m.many ? show_many(cli, r, &m) : run_at(cli, r, m.from_ns, &cli->out);
	replay_close(r);
	return code;
}

const struct command command_replay = {
	.name = "replay",
	.usage = "DIR [--at TIME | --from TIME --to TIME] [-- COMMAND ..]",
	.summary = "Ask what the aggregator knew at a moment of its record",
	.details = "DIR is what evenkeel-aggregator --record wrote, of that machine or copied from "
		   "it, also while it is written. COMMAND is another command, with its options: it "
		   "answers as it would have at that moment. Without COMMAND: what is recorded. "
		   "Reading begins at the oldest segment, since peaks reach back for a day. Exit "
		   "status 1: the record cannot be read; 4: it does not have the moment; else "
		   "COMMAND's.",
	.examples = {{"evenkeel replay /var/lib/evenkeel-aggregator/record", "What is recorded."},
		     {"evenkeel replay record --at 2026-01-31T12:00:00Z -- drain",
		      "The plan of that moment."},
		     {"evenkeel replay record --from 2026-01-31T12:00:00Z --to "
		      "2026-01-31T13:00:00Z --step 10m -- nodes",
		      "All nodes, every ten minutes."}},
	.specs = specs,
	.server = CLI_SERVER_UNUSED,
	.run = run,
};
