/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel advise: requests and limits for the containers of workloads, those first whose requests
 * are too small. Forms that change workloads are in advise_changes.c.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

#include "aggregator/cli/advise.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/pages.h"
#include "aggregator/policy/advice/advice.h"
#include "shared/mem.h"
#include "shared/units.h"

/* Of --confidence; advice_confidences behind the first. */
static const char *const confidences[] = {"auto", "low", "medium", "high", NULL};

static const struct option_spec specs[] = {
	CLI_CHOICE("policy", 0, policy, NULL, "balanced", advice_policies,
		   "Room above demand: CPU requests are the 90th percentile, memory requests the "
		   "peak and 15%; saving: the 80th and 5%; safe: the 99th and 30%."),
	CLI_TEXT("throttled-below", 0, throttled_below, "SHARE",
		 "Share of periods that a proposed CPU limit may throttle; default 1%."),
	CLI_CHOICE("confidence", 0, confidence, NULL, "auto", confidences,
		   "Least confidence of proposals: low below an hour of measurement, medium below "
		   "a day. auto: low, but medium for -o patch and -o vpa."),
	CLI_FLAG("all", 0, all, "Also units and cgroups that have ended, without Kubernetes."),
	CLI_FLAG("explain", 0, explain, "Print the numbers behind each proposal."),
	CLI_FLAG("nodes", 0, nodes,
		 "Print what the proposed requests would change: nodes to drain, slack and others, "
		 "as evenkeel whatif does."),
	CLI_SELECTOR("workloads whose newest pod is one"),
	{0},
};

/* --- items ------------------------------------------------------------------------------------ */

/* The rest of the text behind the part and a slash; NULL: the text begins otherwise. */
static const char *behind(const char *text, const char *part)
{
	size_t len = strlen(part);

	return strncasecmp(text, part, len) == 0 && text[len] == '/' ? text + len + 1 : NULL;
}

/* NAME or KIND/NAME; the kind in any case. */
static bool is_named(const char *text, const char *kind, const char *name)
{
	const char *own = behind(text, kind);

	return strcmp(text, name) == 0 || (own && strcmp(own, name) == 0);
}

/* The same, also behind NAMESPACE/. */
static bool is_called(const cJSON *item, const char *workload)
{
	const char *namespace = document_text_or(item, "namespace", ""),
		   *kind = document_text_or(item, "workload.kind", ""),
		   *name = document_text_or(item, "workload.name", ""),
		   *own = behind(workload, namespace);

	return is_named(workload, kind, name) || (own && is_named(own, kind, name));
}

static bool take_item(const struct list *l, const cJSON *item)
{
	struct advise *a = l->context;
	const struct cli_options *o = a->cli->options;
	const char *workload = a->cli->operand_count ? a->cli->operands[0] : NULL;
	bool ended = !(document_number(item, "pods") > 0) && !workload && !o->all,
	     unsure = !advise_changes(o) && !advise_is_sure(o, item);

	if (workload && !is_called(item, workload))
		return false;
	a->ended += ended;
	a->unsure += unsure;
	if (ended || unsure)
		return false;
	cJSON_AddItemToArray(a->items, cJSON_Duplicate(item, true));
	return true;
}

/* --- the table -------------------------------------------------------------------------------- */

static void cell_hours(const struct row *r, const struct column *c)
{
	char age[UNITS_LEN];

	units_age(row_number(r, c->at) * 3600, age);
	table_cell(r->table, document_is(r->item, "confidence", "high") ? PAINT_PLAIN : PAINT_WARN,
		   age);
}

static const struct column_paint verdicts[] = {
	{"tooSmall", PAINT_BAD},
	{"tooLarge", PAINT_WARN},
	{NULL, PAINT_PLAIN},
};

/* "tooSmall:cpu,mem" */
static void cell_verdict(const struct row *r, const struct column *c)
{
	const char *verdict = document_text_or(r->item, c->at, "-");
	const struct column_paint *p = c->paints;
	bool cpu = document_is(r->item, "verdicts.cpu", verdict),
	     memory = document_is(r->item, "verdicts.memory", verdict);

	while (p->text && strcmp(p->text, verdict) != 0)
		p++;
	row_add(r, p->paint, true, "%s%s", verdict,
		!p->text	? ""
		: cpu && memory ? ":cpu,mem"
		: cpu		? ":cpu"
				: ":mem");
}

#define DEMAND_CPU(statistic) "demand.cpuMillicores." statistic

/* clang-format off */
static const struct column columns[] = {
	{"NAMESPACE", FORM_NAME, cell_namespace, .at = "namespace", .empty = columns_unknown},
	{"WORKLOAD", FORM_NAME, cell_workload, .at = "workload"},
	{"CONTAINER", FORM_NAME, cell_text, .at = "container", .empty = columns_unknown},
	{"PODS", FORM_RIGHT, cell_count, .at = "pods", .wide = true},
	{"ADVICE", FORM_LEFT, cell_verdict, .at = "verdict", .paints = verdicts},
	{"CPU-REQ", FORM_RIGHT, cell_amount, .at = "requests.cpuMillicores"},
	{"CPU-NEEDED", FORM_RIGHT, cell_amount, .at = "proposed.requests.cpuMillicores"},
	{"CPU-LIM", FORM_RIGHT, cell_limit, .at = "limits.cpuMillicores", .spare = 5},
	{"LIM-NEEDED", FORM_RIGHT, cell_amount, .at = "proposed.limits.cpuMillicores", .spare = 4},
	{"P50", FORM_RIGHT, cell_amount, .at = DEMAND_CPU("p50"), .wide = true},
	{"P95", FORM_RIGHT, cell_amount, .at = DEMAND_CPU("p95"), .wide = true},
	{"P99", FORM_RIGHT, cell_amount, .at = DEMAND_CPU("p99"), .wide = true},
	{"START", FORM_RIGHT, cell_amount, .at = DEMAND_CPU("startPeak"), .wide = true, .empty = columns_unknown},
	{"THROTTLED", FORM_RIGHT, cell_share, .at = "demand.throttledRatio", .spare = 3},
	{"MEM-REQ", FORM_RIGHT, cell_amount, .at = "requests.memoryBytes"},
	{"MEM-NEEDED", FORM_RIGHT, cell_amount, .at = "proposed.requests.memoryBytes"},
	{"MEM-LIM", FORM_RIGHT, cell_limit, .at = "limits.memoryBytes", .wide = true},
	{"MEM-LIM-NEEDED", FORM_RIGHT, cell_amount, .at = "proposed.limits.memoryBytes", .wide = true},
	{"PEAK", FORM_RIGHT, cell_amount, .at = "demand.memoryPeakBytes", .spare = 2},
	{"OOM", FORM_RIGHT, cell_faults, .at = "demand.oomKills", .spare = 6},
	{"SEEN", FORM_RIGHT, cell_hours, .at = "hours", .spare = 1},
	{0},
};
/* clang-format on */

static const struct csv_field fields[] = {
	{"namespace", "namespace"},
	{"workload_kind", "workload.kind"},
	{"workload_name", "workload.name"},
	{"container", "container"},
	{"pods", "pods"},
	{"advice", "verdict"},
	{"cpu_advice", "verdicts.cpu"},
	{"memory_advice", "verdicts.memory"},
	{"urgency", "urgency"},
	{"confidence", "confidence"},
	{"hours", "hours"},
	{"cpu_request_millicores", "requests.cpuMillicores"},
	{"cpu_limit_millicores", "limits.cpuMillicores"},
	{"memory_request_bytes", "requests.memoryBytes"},
	{"memory_limit_bytes", "limits.memoryBytes"},
	{"cpu_p50_millicores", DEMAND_CPU("p50")},
	{"cpu_p95_millicores", DEMAND_CPU("p95")},
	{"cpu_p99_millicores", DEMAND_CPU("p99")},
	{"cpu_start_peak_millicores", DEMAND_CPU("startPeak")},
	{"memory_peak_bytes", "demand.memoryPeakBytes"},
	{"throttled_ratio", "demand.throttledRatio"},
	{"oom_kills", "demand.oomKills"},
	{"proposed_cpu_request_millicores", "proposed.requests.cpuMillicores"},
	{"proposed_cpu_limit_millicores", "proposed.limits.cpuMillicores"},
	{"proposed_memory_request_bytes", "proposed.requests.memoryBytes"},
	{"proposed_memory_limit_bytes", "proposed.limits.memoryBytes"},
	{"proposed_throttled_ratio", "proposed.throttledRatio"},
	{0},
};

static void say_total(struct cli *cli, const cJSON *total)
{
	char cpu[UNITS_LEN], mem[UNITS_LEN], more_cpu[UNITS_LEN], more_mem[UNITS_LEN];
	double large = document_number(total, "verdicts.tooLarge"),
	       small = document_number(total, "verdicts.tooSmall");

	if (!(small + large + document_number(total, "verdicts.fits") > 0))
		return;
	units_cpu(document_number(total, "freed.cpuMillicores"), cpu);
	units_bytes(document_number(total, "freed.memoryBytes"), mem);
	units_cpu(document_number(total, "missing.cpuMillicores"), more_cpu);
	units_bytes(document_number(total, "missing.memoryBytes"), more_mem);
	buf_add_char(&cli->out, '\n');
	lines_wrap(
		cli, 0,
		"Requests of %.0f container%s are too small, of %.0f too large. What is requested "
		"and not needed: %s CPU and %s; needed and not requested: %s and %s.",
		small, units_plural(small), large, cpu, mem, more_cpu, more_mem);
}

/* The most urgent first; a stable sort keeps the order of names. */
static int compare_urgency(const cJSON *a, const cJSON *b)
{
	double x = document_number(a, "urgency"), y = document_number(b, "urgency");

	return (x < y) - (x > y);
}

static void explain(struct advise *a)
{
	struct cli *cli = a->cli;
	int64_t limit = cli->options->limit, told = 0;

	DL_SORT(a->items->child, compare_urgency);
	for (const cJSON *item = a->items->child; item && (limit <= 0 || told < limit);
	     item = item->next, told++) {
		buf_add_char(&cli->out, '\n');
		lines_print(cli, "%s/%s/%s %s:", document_text_or(item, "namespace", ""),
			    document_text_or(item, "workload.kind", ""),
			    document_text_or(item, "workload.name", ""),
			    document_text_or(item, "container", ""));
		lines_wrap_list(cli, 2, document_at(item, "explanation"));
	}
}

static void show_table(struct advise *a, const cJSON *total)
{
	struct row row = columns_start(a->cli, columns, fields);

	for (row.item = document_first(a->items, ""); row.item; row.item = row.item->next) {
		const char *namespace = document_text_or(row.item, "namespace", ""),
			   *container = document_text_or(row.item, "container", "");
		char *name = mem_printf("%s%s%s/%s%s%s", namespace, *namespace ? "/" : "",
					document_text_or(row.item, "workload.kind", ""),
					document_text_or(row.item, "workload.name", ""),
					*container ? "/" : "", container);

		columns_add_row(&row, name, document_number(row.item, "urgency"));
		free(name);
	}
	columns_end(a->cli, &row, "");
	if (output_is_rows(a->cli->form))
		return;
	if (a->cli->options->explain)
		explain(a);
	/* The total has containers that --confidence leaves out. */
	if (!a->cli->operand_count && !a->unsure)
		say_total(a->cli, total);
}

/* --- the command ------------------------------------------------------------------------------ */

/* Why there are no items. */
static int fail_empty(struct advise *a)
{
	const struct cli_options *o = a->cli->options;
	struct error *reason = &a->cli->reason;

	if (a->unsure)
		return error_fail(reason, CLI_STALE,
				  "no container was measured long enough for --confidence %s",
				  confidences[o->confidence]);
	if (a->cli->operand_count)
		return error_fail(reason, CLI_STALE,
				  "no container of a workload \"%.253s\" was measured",
				  a->cli->operands[0]);
	if (a->ended)
		return error_fail(reason, CLI_STALE,
				  "all that was measured has ended: --all shows it");
	if ((o->namespace && !o->all_namespaces) || o->selector)
		return error_fail(reason, CLI_STALE,
				  "no measured container matches --namespace or --selector");
	return error_fail(reason, CLI_STALE,
			  "no demand is measured yet: pods have to run, with agents of this "
			  "version on their nodes");
}

static int show(struct advise *a, const struct list *l)
{
	struct cli *cli = a->cli;

	if (cli->options->output == OUTPUT_JSON && !cli->options->nodes)
		list_print_json(l, &cli->out);
	if (!a->items->child)
		return fail_empty(a);
	if (advise_changes(cli->options))
		return advise_show_changes(a);
	if (cli->options->output != OUTPUT_JSON)
		show_table(a, l->total);
	return CLI_OK;
}

/* CLI_OK, or CLI_USAGE with the reason. */
static int check_usage(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	double share;

	if (cli->operand_count > 1)
		return cli_misuse(cli, "advise takes one workload, and not \"%.60s\" as well",
				  cli->operands[1]);
	if (o->nodes && o->output >= OUTPUT_COMMANDS)
		return cli_misuse(cli, "--nodes and -o patch, vpa or scenario: take one of them");
	if (o->nodes && output_is_rows(cli->form))
		return cli_misuse(cli,
				  "--nodes prints scenarios and no containers: it goes with -o "
				  "table, wide, json and yaml");
	if (o->throttled_below && !advice_read_share(o->throttled_below, &share))
		return cli_misuse(
			cli,
			"--throttled-below %.60s: must be a share above 0 and below 1 (100%%), "
			"as 1%% or 0.01",
			o->throttled_below);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct advise a = {.cli = cli};
	struct buf path = BUF_INIT;
	struct list l;
	int code = check_usage(cli), rc;

	if (code)
		return code;
	a.items = cJSON_CreateArray();
	buf_add_str(&path, "/v1/advice?limit=5000");
	if (!o->all_namespaces)
		client_add_parameter(&path, "namespace", o->namespace);
	client_add_parameter(&path, "labelSelector", o->selector);
	client_add_parameter(&path, "policy", advice_policies[o->policy]);
	client_add_parameter(&path, "throttledBelow", o->throttled_below);
	client_add_parameter(&path, "explain", o->explain ? "true" : NULL);
	list_init(&l, take_item, &a);
	rc = list_fetch(&l, cli->client, path.data, &cli->reason);
	code = rc ? client_exit(rc) : show(&a, &l);
	list_fini(&l);
	buf_fini(&path);
	cJSON_Delete(a.items);
	return code;
}

const struct command command_advise = {
	.name = "advise",
	.usage = "[WORKLOAD]",
	.summary = "Show which requests and limits containers need",
	.details =
		"Shows one row for each container of a workload, those first whose requests are "
		"too small. WORKLOAD is NAME, KIND/NAME, NAMESPACE/NAME or NAMESPACE/KIND/NAME. "
		"Demand for CPU is "
		"use and what throttling cut off, over all pods of the workload, without the first "
		"two minutes of each; a day counts half as much as the day after it. LIM-NEEDED is "
		"the CPU limit at which no more than --throttled-below of the periods are "
		"throttled. -o patch prints commands of kubectl, which restart the "
		"pods, -o vpa VerticalPodAutoscalers that change nothing (updateMode Off), -o "
		"scenario a file for evenkeel whatif --scenarios; a "
		"container without a limit gets none. Standard error tells what they leave out. -o "
		"name prints NAMESPACE/KIND/NAME/CONTAINER.",
	.examples = {{"evenkeel advise -n shop", "Requests and limits of a namespace."},
		     {"evenkeel advise shop/web --explain", "The numbers behind each proposal."},
		     {"evenkeel advise --policy saving --nodes",
		      "What smaller requests would do to the nodes."},
		     {"evenkeel advise -n shop -o patch", "Commands that change the workloads."}},
	.terms = {"ADVICE", "CPU-NEEDED", "LIM-NEEDED", "START", "PEAK", "SEEN", "THROTTLED",
		  "OOM"},
	.specs = specs,
	.lists = true,
	.run = run,
};
