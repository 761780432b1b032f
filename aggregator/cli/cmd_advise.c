/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel advise: requests and limits for the containers of workloads, those first whose requests
 * are too small. -o patch prints a line for kubectl for each workload, -o vpa objects of
 * VerticalPodAutoscaler, -o scenario the changes for evenkeel whatif; they only change what differs
 * by a tenth, and patches limits only where there are some. --nodes makes the changes in a copy of
 * the cluster, as evenkeel whatif does.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/pages.h"
#include "aggregator/policy/advice/advice.h"
#include "shared/array.h"
#include "shared/json_yaml.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/units.h"

static const struct option_spec specs[] = {
	CLI_CHOICE("policy", 0, policy, NULL, "balanced", advice_policies,
		   "Room above demand: CPU requests are the 90th percentile, memory requests the "
		   "peak and 15%; saving: the 80th and 5%; safe: the 99th and 30%."),
	CLI_TEXT("throttled-below", 0, throttled_below, "SHARE",
		 "Share of periods that a proposed CPU limit may throttle; default 1%."),
	CLI_FLAG("explain", 0, explain, "Print the numbers behind each proposal."),
	CLI_FLAG("nodes", 0, nodes,
		 "Print what the proposed requests would change: nodes to drain, slack and others, "
		 "as evenkeel whatif does."),
	CLI_SELECTOR("workloads whose newest pod is one"),
	{0},
};

/* --- items ------------------------------------------------------------------------------------ */

struct advise {
	struct cli *cli;
	cJSON *items; /* owned; those of the call, in the API's order */
	cJSON *total; /* owned; NULL: none */
};

/* NAME, NAMESPACE/NAME or NAMESPACE/KIND/NAME. */
static bool is_called(const cJSON *item, const char *workload)
{
	const char *namespace = document_text_or(item, "namespace", ""),
		   *kind = document_text_or(item, "workload.kind", ""),
		   *name = document_text_or(item, "workload.name", "");
	char *middle = mem_printf("%s/%s", namespace, name),
	     *whole = mem_printf("%s/%s/%s", namespace, kind, name);
	bool called = strcmp(workload, name) == 0 || strcmp(workload, middle) == 0 ||
		      strcmp(workload, whole) == 0;

	free(middle);
	free(whole);
	return called;
}

static bool take_item(void *context, const cJSON *item, double time, double held)
{
	struct advise *a = context;
	const char *workload = a->cli->operand_count ? a->cli->operands[0] : NULL;

	(void)time;
	(void)held;
	if (workload && !is_called(item, workload))
		return false;
	cJSON_AddItemToArray(a->items, cJSON_Duplicate(item, true));
	return true;
}

static void take_total(void *context, const cJSON *page)
{
	struct advise *a = context;

	if (!a->total)
		a->total = cJSON_Duplicate(document_at(page, "total"), true);
}

/* --- the table -------------------------------------------------------------------------------- */

static void cell_namespace(const struct row *r, const struct column *c)
{
	const char *namespace = document_text_or(r->item, c->at, "");

	table_cell(r->table, PAINT_PLAIN, *namespace ? namespace : "-");
}

static void cell_workload(const struct row *r, const struct column *c)
{
	row_add(r, PAINT_PLAIN, true, "%s/%s", document_text_or(r->item, c->of, ""),
		document_text_or(r->item, c->at, ""));
}

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
	{"WORKLOAD", FORM_NAME, cell_workload, .at = "workload.name", .of = "workload.kind"},
	{"CONTAINER", FORM_NAME, cell_text, .at = "container", .empty = columns_unknown},
	{"PODS", FORM_RIGHT, cell_count, .at = "pods", .wide = true},
	{"ADVICE", FORM_LEFT, cell_verdict, .at = "verdict", .paints = verdicts},
	{"CPU-REQ", FORM_RIGHT, cell_cpu, .at = "requests.cpuMillicores"},
	{"CPU-NEEDED", FORM_RIGHT, cell_cpu, .at = "proposed.requests.cpuMillicores"},
	{"CPU-LIM", FORM_RIGHT, cell_cpu_limit, .at = "limits.cpuMillicores", .spare = 5},
	{"LIM-NEEDED", FORM_RIGHT, cell_cpu, .at = "proposed.limits.cpuMillicores", .spare = 4},
	{"P50", FORM_RIGHT, cell_cpu, .at = DEMAND_CPU("p50"), .wide = true},
	{"P95", FORM_RIGHT, cell_cpu, .at = DEMAND_CPU("p95"), .wide = true},
	{"P99", FORM_RIGHT, cell_cpu, .at = DEMAND_CPU("p99"), .wide = true},
	{"START", FORM_RIGHT, cell_cpu, .at = DEMAND_CPU("startPeak"), .wide = true, .empty = columns_unknown},
	{"THROTTLED", FORM_RIGHT, cell_share, .at = "demand.throttledRatio", .spare = 3},
	{"MEM-REQ", FORM_RIGHT, cell_bytes, .at = "requests.memoryBytes"},
	{"MEM-NEEDED", FORM_RIGHT, cell_bytes, .at = "proposed.requests.memoryBytes"},
	{"MEM-LIM", FORM_RIGHT, cell_bytes_limit, .at = "limits.memoryBytes", .wide = true},
	{"MEM-LIM-NEEDED", FORM_RIGHT, cell_bytes, .at = "proposed.limits.memoryBytes", .wide = true},
	{"PEAK", FORM_RIGHT, cell_bytes, .at = "demand.memoryPeakBytes", .spare = 2},
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

	if (!(document_number(total, "containers") > document_number(total, "verdicts.undeclared")))
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

static void explain(struct cli *cli, const cJSON *item)
{
	buf_add_char(&cli->out, '\n');
	lines_print(cli, "%s/%s/%s %s:", document_text_or(item, "namespace", ""),
		    document_text_or(item, "workload.kind", ""),
		    document_text_or(item, "workload.name", ""),
		    document_text_or(item, "container", ""));
	lines_wrap_list(cli, 2, document_at(item, "explanation"));
}

static void show_table(struct advise *a)
{
	struct row row = {.cli = a->cli, .table = columns_start(a->cli, columns, fields)};

	for (row.item = document_first(a->items, ""); row.item; row.item = row.item->next) {
		char *name = mem_printf("%s\n%s/%s", document_text_or(row.item, "namespace", ""),
					document_text_or(row.item, "workload.name", ""),
					document_text_or(row.item, "container", ""));

		columns_add_row(&row, name, document_number(row.item, "urgency"), columns, fields);
		free(name);
	}
	columns_hide(a->cli, row.table, columns);
	columns_print(a->cli, row.table, "advice");
	table_free(row.table);
	if (output_is_rows(a->cli->form))
		return;
	for (row.item = document_first(a->items, ""); row.item && a->cli->options->explain;
	     row.item = row.item->next)
		explain(a->cli, row.item);
	if (!a->cli->operand_count)
		say_total(a->cli, a->total);
}

/* --- objects and commands --------------------------------------------------------------------- */

static bool is_same_workload(const cJSON *a, const cJSON *b)
{
	return b && document_is(a, "namespace", document_text(b, "namespace")) &&
	       document_is(a, "workload.kind", document_text(b, "workload.kind")) &&
	       document_is(a, "workload.name", document_text(b, "workload.name"));
}

/* Of those that evenkeel can name in a patch or a VerticalPodAutoscaler. */
static const struct kind_row {
	const char *kind, *version;
	bool whole; /* the template is in spec.jobTemplate.spec */
} kinds[] = {
	{"Deployment", "apps/v1", false},	{"StatefulSet", "apps/v1", false},
	{"DaemonSet", "apps/v1", false},	{"ReplicaSet", "apps/v1", false},
	{"ReplicationController", "v1", false}, {"CronJob", "batch/v1", true},
};

static const struct kind_row *kind_of(const cJSON *item)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (document_is(item, "workload.kind", kinds[i].kind))
			return &kinds[i];
	return NULL;
}

/* As Kubernetes names objects: safe in a shell and in JSON. */
static bool is_plain(const char *name)
{
	return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
					   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")];
}

static bool is_told(const cJSON *item)
{
	return kind_of(item) && is_plain(document_text_or(item, "namespace", "")) &&
	       is_plain(document_text_or(item, "workload.name", "")) &&
	       is_plain(document_text_or(item, "container", "")) &&
	       (document_is(item, "verdict", "tooSmall") ||
		document_is(item, "verdict", "tooLarge"));
}

/* amounts: "requests" or "limits". */
static double amount_of(const cJSON *item, const char *prefix, const char *amounts, const char *key)
{
	char *path = mem_printf("%s%s.%s", prefix, amounts, key);
	double amount = document_number(item, path);

	free(path);
	return amount;
}

static const struct {
	const char *name, *key, *suffix;
	double unit;
} resources[] = {{"cpu", "cpuMillicores", "m", 1}, {"memory", "memoryBytes", "Mi", 0x1p20}};

enum { RESOURCES = sizeof(resources) / sizeof(resources[0]) };

/* KEY:{"cpu":"250m"} of what is proposed, and, for only_present, there is some now. */
static void write_amounts(struct jsonw *w, const char *key, const cJSON *item, const char *amounts,
			  bool only_present)
{
	bool opened = false;

	for (size_t i = 0; i < RESOURCES; i++) {
		double amount = amount_of(item, "proposed.", amounts, resources[i].key);
		char *text;

		if (isnan(amount) ||
		    (only_present && isnan(amount_of(item, "", amounts, resources[i].key))))
			continue;
		if (!opened)
			jsonw_key_object(w, key);
		opened = true;
		text = mem_printf("%.0f%s", ceil(amount / resources[i].unit), resources[i].suffix);
		jsonw_key_string(w, resources[i].name, text);
		free(text);
	}
	if (opened)
		jsonw_object_close(w);
}

static void write_patch(struct jsonw *w, const cJSON *item)
{
	jsonw_key_string(w, "name", document_text(item, "container"));
	jsonw_key_object(w, "resources");
	write_amounts(w, "requests", item, "requests", false);
	write_amounts(w, "limits", item, "limits", true);
	jsonw_object_close(w);
}

static void print_patch(const struct kind_row *kind, const char *namespace, const char *name,
			const char *containers, const char *sidecars, struct buf *out)
{
	buf_printf(out,
		   "kubectl patch %s %s --namespace %s --type strategic --patch "
		   "'{\"spec\":%s{\"template\":{\"spec\":{%s%s%s%s%s}}}%s}'\n",
		   kind->kind, name, namespace, kind->whole ? "{\"jobTemplate\":{\"spec\":" : "",
		   containers ? "\"containers\":" : "", containers ? containers : "",
		   containers && sidecars ? "," : "", sidecars ? "\"initContainers\":" : "",
		   sidecars ? sidecars : "", kind->whole ? "}}" : "");
}

static void write_bounds(struct jsonw *w, const cJSON *item)
{
	jsonw_key_string(w, "containerName", document_text(item, "container"));
	write_amounts(w, "minAllowed", item, "requests", false);
	write_amounts(w, "maxAllowed", item, "limits", false);
}

static void print_autoscaler(const struct kind_row *kind, const char *namespace, const char *name,
			     const char *containers, const char *unused, struct buf *out)
{
	char *text = mem_printf(
		"{\"apiVersion\":\"autoscaling.k8s.io/v1\",\"kind\":\"VerticalPodAutoscaler\","
		"\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},\"spec\":{\"targetRef\":{"
		"\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\"},"
		"\"updatePolicy\":{\"updateMode\":\"Off\"},"
		"\"resourcePolicy\":{\"containerPolicies\":%s}}}",
		name, namespace, kind->version, kind->kind, name, containers);
	cJSON *object = cJSON_Parse(text);

	(void)unused;
	json_yaml_write(object, true, out);
	cJSON_Delete(object);
	free(text);
}

typedef void print_workload(const struct kind_row *kind, const char *namespace, const char *name,
			    const char *containers, const char *sidecars, struct buf *out);

/*
 * For each workload that is told: write adds the members of a container, print the whole, with
 * lists of containers (NULL: none); apart: sidecars have a list of their own.
 */
static void show_workloads(struct advise *a, void (*write)(struct jsonw *w, const cJSON *item),
			   print_workload *print, bool apart)
{
	const cJSON *item = document_first(a->items, ""), *first;

	while ((first = item) != NULL) {
		struct buf lists[2] = {BUF_INIT, BUF_INIT};

		for (; is_same_workload(first, item); item = item->next) {
			struct buf *list = &lists[apart && document_is_true(item, "sidecar")];
			struct jsonw w;

			if (!is_told(item))
				continue;
			jsonw_init(&w, list);
			buf_add_char(list, list->len ? ',' : '[');
			jsonw_object_open(&w);
			write(&w, item);
			jsonw_object_close(&w);
		}
		for (int i = 0; i < 2; i++)
			if (lists[i].len)
				buf_add_str(&lists[i], "]");
		if (lists[0].len || lists[1].len)
			print(kind_of(first), document_text(first, "namespace"),
			      document_text(first, "workload.name"), lists[0].data, lists[1].data,
			      &a->cli->out);
		buf_fini(&lists[0]);
		buf_fini(&lists[1]);
	}
}

/* --- what if ---------------------------------------------------------------------------------- */

/*
 * The argument of evenkeel whatif --resize: "shop/web=app/cpu:250m,memory:300Mi". A request is no
 * larger than the limit that stays.
 */
static char *resize_of(const cJSON *item)
{
	struct buf text = BUF_INIT;
	char mark = '/';

	buf_printf(&text, "%s/%s=%s", document_text(item, "namespace"),
		   document_text(item, "workload.name"), document_text(item, "container"));
	for (size_t i = 0; i < RESOURCES; i++) {
		double amount = amount_of(item, "proposed.", "requests", resources[i].key),
		       limit = amount_of(item, "", "limits", resources[i].key);

		if (isnan(amount))
			continue;
		buf_printf(&text, "%c%s:%.0f%s", mark, resources[i].name,
			   floor(fmin(amount, limit) / resources[i].unit), resources[i].suffix);
		mark = ',';
	}
	return buf_take(&text, NULL);
}

/* The caller frees them. */
static struct option_list resizes_of(const struct advise *a)
{
	struct option_list resizes = {0};

	for (const cJSON *item = document_first(a->items, ""); item; item = item->next) {
		/* Pods of a CronJob are those of its Jobs. */
		if (!is_told(item) || document_is(item, "workload.kind", "CronJob"))
			continue;
		resizes.items = array_grow(resizes.items, resizes.count, sizeof(*resizes.items));
		resizes.items[resizes.count++] = resize_of(item);
	}
	return resizes;
}

/* A list of one scenario, named as the policy. */
static void show_scenario(struct advise *a)
{
	struct option_list resizes = resizes_of(a);
	cJSON *list = cJSON_CreateArray(), *scenario = cJSON_CreateObject();

	cJSON_AddItemToArray(list, scenario);
	cJSON_AddStringToObject(scenario, "name", advice_policies[a->cli->options->policy]);
	cJSON_AddItemToObject(scenario, "resize",
			      cJSON_CreateStringArray((const char *const *)resizes.items,
						      (int)resizes.count));
	json_yaml_write(list, false, &a->cli->out);
	cJSON_Delete(list);
	option_list_free(&resizes);
}

static int show_nodes(struct advise *a)
{
	struct cli_options options = *a->cli->options;
	const struct cli_options *given = a->cli->options;
	size_t operands = a->cli->operand_count;
	int code = CLI_OK;

	options.changes.resize = resizes_of(a);
	if (!options.changes.resize.count) {
		lines_print(a->cli, "Nothing would change: no request is too small or too large.");
	} else {
		a->cli->options = &options;
		a->cli->operand_count = 0;
		code = command_whatif.run(a->cli);
		a->cli->options = given;
		a->cli->operand_count = operands;
	}
	option_list_free(&options.changes.resize);
	return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int show(struct advise *a, const struct list *l)
{
	struct cli *cli = a->cli;

	if (cli->options->nodes)
		return show_nodes(a);
	if (cli->options->output == OUTPUT_JSON)
		list_print_json(l, &cli->out);
	else if (cli->options->output == OUTPUT_PATCH)
		show_workloads(a, write_patch, print_patch, true);
	else if (cli->options->output == OUTPUT_VPA)
		show_workloads(a, write_bounds, print_autoscaler, false);
	else if (cli->options->output == OUTPUT_SCENARIO)
		show_scenario(a);
	else if (a->items->child)
		show_table(a);
	if (a->items->child)
		return CLI_OK;
	if (cli->operand_count)
		return error_fail(&cli->reason, CLI_STALE,
				  "no container of a workload \"%.253s\" was measured",
				  cli->operands[0]);
	return error_fail(&cli->reason, CLI_STALE,
			  "no demand was measured: agents of this version tell it, once pods run");
}

static int run(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct advise a = {.cli = cli};
	struct buf path = BUF_INIT;
	struct list l;
	int code, rc;

	if (cli->operand_count > 1)
		return error_fail(&cli->reason, CLI_USAGE,
				  "advise takes one workload, and not \"%.60s\" as well",
				  cli->operands[1]);
	a.items = cJSON_CreateArray();
	buf_add_str(&path, "/v1/advice?limit=5000");
	if (!o->all_namespaces)
		client_add_parameter(&path, "namespace", o->namespace);
	client_add_parameter(&path, "labelSelector", o->selector);
	client_add_parameter(&path, "policy", advice_policies[o->policy]);
	client_add_parameter(&path, "throttledBelow", o->throttled_below);
	client_add_parameter(&path, "explain", o->explain ? "true" : NULL);
	list_init(&l, take_item, &a);
	l.envelope = take_total;
	rc = list_fetch(&l, cli->client, path.data, &cli->reason);
	code = rc ? client_exit(rc) : show(&a, &l);
	list_fini(&l);
	buf_fini(&path);
	cJSON_Delete(a.items);
	cJSON_Delete(a.total);
	return code;
}

const struct command command_advise = {
	.name = "advise",
	.usage = "[WORKLOAD]",
	.summary = "Show which requests and limits containers need",
	.details =
		"Shows one row for each container of a workload, those first whose requests are "
		"too small. WORKLOAD is NAME, NAMESPACE/NAME or NAMESPACE/KIND/NAME. Demand for "
		"CPU "
		"is use and what throttling cut off, over all pods of the workload, without the "
		"first two minutes of each; a day counts half as much as the day after it. "
		"LIM-NEEDED is the CPU limit at which no more than --throttled-below of the "
		"periods "
		"are throttled. -o patch prints commands of kubectl, -o vpa VerticalPodAutoscalers "
		"that change nothing (updateMode Off), -o scenario a file for evenkeel whatif "
		"--scenarios; a container without a limit gets none.",
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
