/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel verify: judges a plan of evenkeel drain -o plan by a second implementation, against a
 * snapshot of files or of the server.
 *
 * Exit status: 0 if the plan holds; 1 if it does not, or the server cannot be reached; 2 if plan or
 * snapshot cannot be read; 4 if nothing is known of nodes and pods.
 */
#include <errno.h>

#include "aggregator/cli/cli.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/lines.h"
#include "aggregator/verify/verify.h"
#include "shared/file.h"
#include "shared/jsonw.h"
#include "shared/units.h"

enum { PLAN_MOST = 256 << 20 };

/* --- the verdict ------------------------------------------------------------------------------ */

static void write_violation(struct jsonw *w, const struct verify_plan *p,
			    const struct verify_violation *v)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "invariant", verify_invariant_name(v->invariant));
	if (v->move) {
		jsonw_key_int(w, "move", v->move - p->moves + 1);
		jsonw_key_string(w, "namespace", v->move->namespace);
		jsonw_key_string(w, "name", v->move->name);
		jsonw_key_string(w, "from", v->move->from);
		jsonw_key_text(w, "to", v->move->to);
	}
	jsonw_key_string(w, "text", v->text.text);
	jsonw_object_close(w);
}

static void print_json(struct cli *cli, const struct verify_plan *p, const struct verify_report *r)
{
	struct jsonw w;

	jsonw_begin(&w, &cli->out);
	jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(&w, "kind", "PlanVerdict");
	jsonw_key_bool(&w, "agrees", !r->count);
	jsonw_key_int(&w, "moves", (int64_t)p->move_count);
	jsonw_key_array(&w, "violations");
	for (size_t i = 0; i < r->count; i++)
		write_violation(&w, p, &r->of[i]);
	jsonw_array_close(&w);
	jsonw_key_array(&w, "notJudged");
	for (int i = 0; i < VERIFY_INVARIANTS; i++)
		if (!verify_plan_has(p, (enum verify_invariant)i))
			jsonw_string(&w, verify_invariant_name((enum verify_invariant)i));
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&cli->out, '\n');
}

static void print_table(struct cli *cli, const struct verify_plan *p, const struct verify_report *r)
{
	if (!r->count)
		lines_print(cli, "agrees: %zu move%s%s", p->move_count,
			    units_plural((double)p->move_count),
			    p->node_count ? "" : " (the plan drains no node)");
	for (size_t i = 0; i < r->count; i++) {
		const struct verify_move *m = r->of[i].move;
		const char *name = verify_invariant_name(r->of[i].invariant);

		if (m)
			lines_wrap_under(cli, 2, r->of[i].text.text,
					 "%s: move %zu of %zu, pod %s/%s from %s to %s: ", name,
					 (size_t)(m - p->moves) + 1, p->move_count, m->namespace,
					 m->name, m->from, m->to ? m->to : "nowhere");
		else
			lines_wrap_under(cli, 2, r->of[i].text.text, "%s: ", name);
	}
	if (!p->capped)
		lines_print(cli, "real use not judged: the plan has no cap");
	if (!p->limited)
		lines_print(cli, "limits and owners not judged: the plan has no limits");
}

/* --- the command ------------------------------------------------------------------------------ */

static int judge(struct cli *cli, const struct verify_plan *p)
{
	bool json = cli->options->output == OUTPUT_JSON;
	struct verify_report report;
	cJSON *snapshot = NULL;
	int rc = client_ask(cli->client, "/v1/snapshot", NULL, &snapshot, &cli->reason);
	int code = client_exit(rc);

	if (!rc) {
		rc = verify_judge(p, snapshot, &report, &cli->reason);
		code = rc == -EINVAL ? CLI_USAGE : client_exit(rc);
		if (!rc) {
			(json ? print_json : print_table)(cli, p, &report);
			code = report.count ? error_fail(&cli->reason, CLI_ERROR,
							 "the plan is refused: %zu violation%s",
							 report.count,
							 units_plural((double)report.count))
					    : CLI_OK;
			verify_report_fini(&report);
		}
	}
	cJSON_Delete(snapshot);
	return code;
}

static int run(struct cli *cli)
{
	struct buf text = BUF_INIT;
	struct verify_plan plan;
	const char *path;
	int code = CLI_USAGE;

	if (cli->operand_count != 1)
		return cli_misuse(cli, "name one plan; --help shows the usage");
	path = cli->operands[0];
	if (file_read(path, PLAN_MOST, &text, &cli->reason))
		goto out;
	if (verify_plan_read(text.data ? text.data : "", text.len, &plan, &cli->reason)) {
		error_prefix(&cli->reason, "%s", file_name(path));
		goto out;
	}
	code = judge(cli, &plan);
	verify_plan_fini(&plan);
out:
	buf_fini(&text);
	return code;
}

const struct command command_verify = {
	.name = "verify",
	.usage = "PLAN",
	.summary = "Check a drain plan a second time, move by move",
	.details = "PLAN is a file of evenkeel drain -o plan; - is standard input. A second "
		   "implementation, which shares no code with the planner, carries out the plan in "
		   "a copy of the cluster. It asks before each move whether the pod may go to its "
		   "destination, and judges limits, budgets, owners, groups and quotas over the "
		   "whole plan. Exit status 0: the plan holds; 1: it is refused, with a line for "
		   "each violation, or the server cannot be reached; 2: plan or snapshot cannot be "
		   "read; 4: nothing is known of nodes and pods.",
	.examples = {{"evenkeel verify wave.json", "Check the plan against the present cluster."},
		     {"evenkeel verify wave.json --snapshot dump.json",
		      "The same against a snapshot."}},
	.terms = {"wave", "drain"},
	.verdict = true,
	.run = run,
};
