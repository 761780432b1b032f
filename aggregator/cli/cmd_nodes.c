/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel nodes: capacity, requests, current use, its deviation over a window, and the age of the
 * measurement. CPU, MEMORY and WORKSET are the newest interval's; MEAN, SIGMA, P95 and CPU-MAX are
 * of the window.
 *
 * Columns of the Kubernetes API are shown if one is followed; WORKSET is hidden then, so that a
 * line stays within 120 columns. The row "*" is the sum of all nodes, by the server, whatever page
 * or row limit; it has no deviation and no percentile, since those of several nodes do not add up.
 */
#include "aggregator/cli/usage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "shared/units.h"

#define REQUESTS_CPU	"requests.cpuMillicores"
#define REQUESTS_MEMORY "requests.memoryBytes"
#define OF_CPU		"allocatable.cpuMillicores"
#define OF_MEMORY	"allocatable.memoryBytes"

/* Values of --sort-by; sort_keys[] has their members in the same order (name has none). */
static const char *const sort_words[] = {"name", "cpu",	     "memory", "sigma",	  "p95", "max",
					 "age",	 "requests", "limits", "waiting", "oom", NULL};
static const struct usage_key sort_keys[] = {
	{0},
	{.at = USAGE_CPU},
	{.at = USAGE_MEMORY},
	{.at = USAGE_WINDOW("stddev")},
	{.at = USAGE_WINDOW("p95")},
	{.at = USAGE_WINDOW("max")},
	{.at = "source.ageSeconds"},
	{REQUESTS_CPU, OF_CPU, REQUESTS_MEMORY, OF_MEMORY},
	{.at = "limitRatio.declared.cpu", .other = "limitRatio.declared.memory"},
	{.at = "contention.cpu", .other = "contention.memory"},
	{.at = "contention.oomKills"},
};
static const char *const unlimited[] = {"ignore", "allocatable", "requests", NULL};

static const struct option_spec specs[] = {
	CLI_CHOICE("window", 0, window, NULL, "5m", cli_windows,
		   "Window of MEAN, SIGMA, P95 and CPU-MAX."),
	CLI_CHOICE("sort-by", 0, sort, "KEY", "name", sort_words,
		   "name, or greatest first: cpu, memory, sigma, p95, max, age, requests, limits, "
		   "waiting (the larger share of CPU and memory), oom."),
	CLI_REVERSE,
	CLI_SELECTOR("nodes"),
	CLI_CHOICE("unlimited", 0, unlimited, NULL, "ignore", unlimited,
		   "Limit of a container that has none, in CPU-LIM% and MEM-LIM%: 0 (ignore), its "
		   "node's allocatable, or its request."),
	{0},
};

/* --- cells ------------------------------------------------------------------------------------ */

/* The total of all nodes has no name. */
static void cell_name(const struct row *r, const struct column *c)
{
	table_cell(r->table, PAINT_PLAIN, document_text_or(r->item, c->at, "*"));
}

/* "Ready,cordoned,DrainInProgress". */
static void add_state(const struct row *r, const char *ready, enum table_paint paint)
{
	bool cordoned = document_is_true(r->item, "unschedulable");
	struct buf text = BUF_INIT;

	buf_printf(&text, "%s%s", ready, cordoned ? ",cordoned" : "");
	for (const cJSON *l = document_first(r->item, "lifecycle"); l; l = l->next) {
		cordoned = true;
		buf_printf(&text, ",%s", cJSON_IsString(l) ? l->valuestring : "-");
	}
	table_cell(r->table, cordoned && paint == PAINT_PLAIN ? PAINT_WARN : paint, text.data);
	buf_fini(&text);
}

/* Of the total how many of those that the API knows are ready. */
static void cell_status(const struct row *r, const struct column *c)
{
	const cJSON *ready = document_at(r->item, c->at);
	double nodes = row_number(r, "knownToApi");

	if (document_is_true(r->item, "unknownToApi"))
		table_cell(r->table, PAINT_WARN, "unknown");
	else if (cJSON_IsNumber(ready) && ready->valuedouble < nodes)
		row_add(r, PAINT_PLAIN, true, "%.10g/%.10g Ready", ready->valuedouble, nodes);
	else if (cJSON_IsFalse(ready))
		add_state(r, "NotReady", PAINT_BAD);
	else if (cJSON_IsTrue(ready) || cJSON_IsNumber(ready))
		add_state(r, "Ready", PAINT_PLAIN);
	else
		row_add(r, PAINT_PLAIN, false, "%s", "");
}

/*
 * What pods may have, as kubectl top counts; of the total, of the nodes whose use is known, or of
 * all where none is. The capacity where nobody tells.
 */
static double allocatable_of(const struct row *r, const char *resource)
{
	static const char *const members[] = {"measured.allocatable", "allocatable", "capacity"};
	double amount = NAN;
	char path[64];

	for (size_t i = 0; i < 3 && !(amount > 0); i++) {
		snprintf(path, sizeof(path), "%s.%s", members[i], resource);
		amount = row_number(r, path);
	}
	return amount;
}

static void cell_used(const struct row *r, const struct column *c)
{
	bool cpu = row_units_of(c->at) == units_cpu;
	char text[UNITS_LEN];

	(cpu ? units_cpu_of : units_bytes_of)(row_number(r, c->at), allocatable_of(r, c->of), text);
	table_cell(r->table, PAINT_PLAIN, text);
}

static void add_share(const struct row *r, const struct column *c, double whole)
{
	double share = whole > 0 ? row_number(r, c->at) / whole : NAN;

	row_add_units(r, usage_pressure(share), units_percent, share);
}

static void cell_share_used(const struct row *r, const struct column *c)
{
	add_share(r, c, allocatable_of(r, c->of));
}

static void cell_share_requested(const struct row *r, const struct column *c)
{
	add_share(r, c, row_number(r, c->of));
}

/* Painted where limits are over-subscribed. */
static void cell_limit_ratio(const struct row *r, const struct column *c)
{
	double ratio = row_number(r, c->at);

	row_add_units(r,
		      ratio > 2	  ? PAINT_BAD
		      : ratio > 1 ? PAINT_WARN
				  : PAINT_PLAIN,
		      units_percent, ratio);
}

/* Of a window that the column names. */
static void cell_mean_sigma(const struct row *r, const struct column *c)
{
	const cJSON *window = document_at(r->item, c->at);
	double value = document_number(window, "mean"), stddev = document_number(window, "stddev");
	char mean[UNITS_LEN], sigma[UNITS_LEN];

	units_cpu(value, mean);
	units_cpu(stddev, sigma);
	if (!strchr(mean, 'm') && isfinite(stddev)) /* cores: sigma too */
		snprintf(sigma, sizeof(sigma), "%.2f", stddev / 1000);
	row_add(r, PAINT_PLAIN, !isnan(value), "%s%s%s", mean, isnan(stddev) ? "" : "±",
		isnan(stddev) ? "" : sigma);
}

static void cell_rate(const struct row *r, const struct column *c)
{
	double hertz = row_number(r, c->at);

	row_add(r, PAINT_PLAIN, !isnan(hertz), "%.3g", hertz);
}

/* --- the table -------------------------------------------------------------------------------- */

/* clang-format off */
static const struct column columns[] = {
	{"NAME", FORM_NAME, cell_name, .at = "name"},
	{"STATUS", FORM_LEFT, cell_status, .at = "ready", .spare = 9, .of_api = true},
	{"CPU", FORM_RIGHT, cell_used, .at = USAGE_CPU, .of = "cpuMillicores"},
	{"CPU%", FORM_RIGHT, cell_share_used, .at = USAGE_CPU, .of = "cpuMillicores"},
	{"CPU-ALLOC", FORM_RIGHT, cell_amount, .at = OF_CPU, .wide = true, .of_api = true},
	{"CPU-REQ", FORM_RIGHT, cell_amount, .at = REQUESTS_CPU, .wide = true, .of_api = true},
	{"CPU-REQ%", FORM_RIGHT, cell_share_requested, .at = REQUESTS_CPU, .of = OF_CPU, .spare = 10, .of_api = true},
	{"CPU-LIM", FORM_RIGHT, cell_amount, .at = "limits.cpuMillicores", .wide = true, .of_api = true},
	{"CPU-LIM%", FORM_RIGHT, cell_limit_ratio, .at = "limitRatio.declared.cpu", .spare = 6, .of_api = true},
	{"CPU-KERNEL%", FORM_RIGHT, cell_limit_ratio, .at = "limitRatio.kernel.cpu", .wide = true, .of_api = true},
	{"EXCLUSIVE", FORM_RIGHT, cell_amount, .at = "exclusiveCpuMillicores", .empty = columns_nothing, .wide = true},
	{"MEAN", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("mean"), .spare = 8, .narrow = true, .windowed = true},
	{"SIGMA", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("stddev"), .spare = 4, .narrow = true},
	{"P95", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("p95")},
	{"CPU-MAX", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("max"), .spare = 5},
	{"MEAN±SIGMA(5m)", FORM_RIGHT, cell_mean_sigma, .at = "usage.cpuMillicores.windows.5m", .wide = true},
	{"(10m)", FORM_RIGHT, cell_mean_sigma, .at = "usage.cpuMillicores.windows.10m", .wide = true},
	{"(15m)", FORM_RIGHT, cell_mean_sigma, .at = "usage.cpuMillicores.windows.15m", .wide = true},
	{"MEMORY", FORM_RIGHT, cell_used, .at = USAGE_MEMORY, .of = "memoryBytes"},
	{"MEM%", FORM_RIGHT, cell_share_used, .at = USAGE_MEMORY, .of = "memoryBytes"},
	{"MEM-ALLOC", FORM_RIGHT, cell_amount, .at = OF_MEMORY, .wide = true, .of_api = true},
	{"MEM-REQ", FORM_RIGHT, cell_amount, .at = REQUESTS_MEMORY, .wide = true, .of_api = true},
	{"MEM-REQ%", FORM_RIGHT, cell_share_requested, .at = REQUESTS_MEMORY, .of = OF_MEMORY, .spare = 11, .of_api = true},
	{"MEM-LIM", FORM_RIGHT, cell_amount, .at = "limits.memoryBytes", .wide = true, .of_api = true},
	{"MEM-LIM%", FORM_RIGHT, cell_limit_ratio, .at = "limitRatio.declared.memory", .spare = 7, .of_api = true},
	{"MEM-KERNEL%", FORM_RIGHT, cell_limit_ratio, .at = "limitRatio.kernel.memory", .wide = true, .of_api = true},
	{"NO-LIMIT", FORM_RIGHT, cell_pair, .at = "unlimitedContainers.cpu", .of = "unlimitedContainers.memory",
	 .wide = true, .of_api = true},
	{"PODS", FORM_RIGHT, usage_cell_count_of, .at = "pods", .of = "allocatable.pods", .wide = true, .of_api = true},
	{"WORKSET", FORM_RIGHT, cell_amount, .at = USAGE_WORKSET, .spare = 2},
	{"HELD", FORM_RIGHT, cell_amount, .at = "heldIdle.memoryBytes", .empty = columns_nothing, .wide = true},
	{"SWAP", FORM_RIGHT, cell_amount, .at = USAGE_SWAP, .empty = columns_nothing, .wide = true},
	{"PIDS", FORM_RIGHT, cell_count, .at = USAGE_PIDS, .empty = columns_nothing, .wide = true},
	{"IOWAIT", FORM_RIGHT, cell_share, .at = "machine.cpuMillicores.iowait", .of = "capacity.cpuMillicores",
	 .empty = columns_nothing, .wide = true},
	{"STEAL", FORM_RIGHT, cell_share, .at = "machine.cpuMillicores.steal", .of = "capacity.cpuMillicores",
	 .empty = columns_nothing, .wide = true},
	{"THROTTLED", FORM_RIGHT, usage_cell_throttled, .empty = columns_nothing, .wide = true},
	{"WAITING", FORM_RIGHT, usage_cell_two_shares, .at = "contention.cpu", .of = "contention.memory", .spare = 3},
	{"STALLED", FORM_RIGHT, usage_cell_two_shares, .at = "contention.cpuStalledRatio", .of = "contention.memoryStalledRatio",
	 .empty = columns_nothing, .wide = true},
	{"OOM", FORM_RIGHT, cell_faults, .at = "contention.oomKills", .wide = true},
	{"AGE", FORM_LEFT, usage_cell_age, .at = NULL},
	{"TIER", FORM_LEFT, cell_text, .at = "source.tier", .spare = 1},
	{"HZ", FORM_RIGHT, cell_rate, .at = "source.rateHz", .wide = true},
	{"PASS", FORM_RIGHT, usage_cell_micros, .at = "source.passMicroseconds", .wide = true},
	{"MISSED", FORM_RIGHT, cell_count, .at = "source.missedTicks", .wide = true},
	{"OVERFLOW", FORM_RIGHT, cell_faults, .at = "source.overflowCgroups", .empty = columns_nothing, .wide = true},
	{"AGENT-CPU", FORM_RIGHT, cell_amount, .at = "source.agentCpuMillicores", .wide = true},
	{0},
};
/* clang-format on */

/* What a Kubernetes API tells takes the place of WORKSET, and waiting is of pods it knows. */
static bool is_shown(const struct usage_table *n, const struct column *c, size_t index)
{
	static const char *const plain[] = {"Ready", "-", NULL};
	bool wide = n->cli->options->output == OUTPUT_WIDE;

	if (wide)
		return !c->narrow;
	if (c->cell == cell_status)
		return !table_holds_only(n->row.table, index, plain);
	if (strcmp(c->title, "WORKSET") == 0)
		return !n->known;
	return strcmp(c->title, "WAITING") == 0 ? n->known : !c->wide;
}

/* clang-format off */
#define WINDOW_FIELDS(w) \
	{"cpu_mean_" w "_millicores", "usage.cpuMillicores.windows." w ".mean"}, \
	{"cpu_stddev_" w "_millicores", "usage.cpuMillicores.windows." w ".stddev"}, \
	{"cpu_p95_" w "_millicores", "usage.cpuMillicores.windows." w ".p95"}, \
	{"cpu_max_" w "_millicores", "usage.cpuMillicores.windows." w ".max"}
/* clang-format on */

static const struct csv_field fields[] = {
	{"name", "name"},
	{"ready", "ready"},
	{"unschedulable", "unschedulable"},
	{"cpu_millicores", "usage.cpuMillicores.latest.value"},
	{"cpu_capacity_millicores", "capacity.cpuMillicores"},
	{"cpu_allocatable_millicores", "allocatable.cpuMillicores"},
	{"cpu_requests_millicores", "requests.cpuMillicores"},
	{"cpu_limits_millicores", "limits.cpuMillicores"},
	{"cpu_limits_ratio", "limitRatio.declared.cpu"},
	{"cpu_kernel_limits_ratio", "limitRatio.kernel.cpu"},
	{"cpu_unlimited_containers", "unlimitedContainers.cpu"},
	{"cpu_exclusive_millicores", "exclusiveCpuMillicores"},
	{"cpu_held_idle_millicores", "heldIdle.cpuMillicores"},
	{"memory_held_idle_bytes", "heldIdle.memoryBytes"},
	WINDOW_FIELDS("5m"),
	WINDOW_FIELDS("10m"),
	WINDOW_FIELDS("15m"),
	{"memory_bytes", "usage.memoryBytes.latest.value"},
	{"memory_capacity_bytes", "capacity.memoryBytes"},
	{"memory_allocatable_bytes", "allocatable.memoryBytes"},
	{"memory_requests_bytes", "requests.memoryBytes"},
	{"memory_limits_bytes", "limits.memoryBytes"},
	{"memory_limits_ratio", "limitRatio.declared.memory"},
	{"memory_kernel_limits_ratio", "limitRatio.kernel.memory"},
	{"memory_unlimited_containers", "unlimitedContainers.memory"},
	{"working_set_bytes", "usage.workingSetBytes.latest.value"},
	{"swap_bytes", "usage.swapBytes.latest.value"},
	{"pods", "pods"},
	{"pods_allocatable", "allocatable.pods"},
	{"tasks", "usage.pids.latest.value"},
	{"cpu_iowait_millicores", "machine.cpuMillicores.iowait"},
	{"cpu_steal_millicores", "machine.cpuMillicores.steal"},
	CSV_CONTENTION,
	{"state", "source.state"},
	{"age_seconds", "source.ageSeconds"},
	{"tier", "source.tier"},
	{"sampling_hertz", "source.rateHz"},
	{"pass_microseconds", "source.passMicroseconds"},
	{"missed_passes", "source.missedTicks"},
	{"overflow_cgroups", "source.overflowCgroups"},
	{"agent_cpu_millicores", "source.agentCpuMillicores"},
	{0},
};

static enum row_state read_state(const cJSON *node)
{
	static const char *const words[] = {"fresh", "late", "expired"};
	int state = ROW_FRESH;

	while (state < ROW_NONE && !document_is(node, "source.state", words[state]))
		state++;
	return (enum row_state)state;
}

static bool add_node(const struct list *l, const cJSON *node)
{
	struct usage_table *n = l->context;
	const char *name = document_text(node, "name");
	enum row_state state = read_state(node);
	double age = document_number(node, "source.ageSeconds") + l->held;

	if (!name || !usage_tally_wants(&n->tally, name))
		return false;
	usage_tally_add(&n->tally, name, state, age);
	if (n->cli->options->output == OUTPUT_JSON)
		return true;
	n->known |= document_at(node, "requests") != NULL;
	usage_table_add(n, node, name,
			usage_key_of(n->cli, node, &sort_keys[n->cli->options->sort]), state, age);
	return true;
}

/*
 * The row of all nodes, first whatever the others are sorted by; once, for more than one node, when
 * none was named.
 */
static void add_total(struct usage_table *n, const cJSON *total)
{
	if (!(document_number(total, "nodes") > 1) || n->cli->operand_count > 0 ||
	    n->cli->options->output == OUTPUT_JSON)
		return;
	usage_table_add(n, total, "*", INFINITY, ROW_APART, NAN);
	table_sums_up(n->row.table);
}

const struct usage_kind nodes_kind = {
	.what = "node",
	.columns = columns,
	.fields = fields,
	.item = add_node,
	.add_total = add_total,
	.is_shown = is_shown,
};

static int run(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/nodes?limit=500");
	if (o->unlimited)
		client_add_parameter(&path, "unlimited", unlimited[o->unlimited]);
	client_add_parameter(&path, "labelSelector", o->selector);
	return usage_table_run(&nodes_kind, cli, &path);
}

const struct command command_nodes = {
	.name = "nodes",
	.usage = "[NAME..]",
	.summary = "Show requests, limits, use and deviation of each node",
	.details = "Shows one row for each node; the row * is their sum. CPU is in millicores "
		   "(300m) below one core and in cores (1.25) above. CPU, MEMORY and WORKSET are "
		   "of the newest interval; MEAN, SIGMA, P95 and CPU-MAX of the window. Every "
		   "share (%) is of the allocatable; limits above 100% are over-subscribed. STATUS "
		   "is shown if a node is not simply Ready. -o wide adds amounts, all windows, "
		   "waiting, OOM kills and the agent's own figures.",
	.examples = {{"evenkeel nodes --sort-by cpu --limit 10",
		      "The ten nodes with the highest CPU use."},
		     {"evenkeel nodes -l pool=main --sort-by sigma -w=5s",
		      "A pool, the most varying use first, every 5 seconds."},
		     {"evenkeel nodes -o json node-7 | jq '.items[0].usage'",
		      "Every figure of a node's use, for another program."}},
	.terms = {"SIGMA", "P95", "WORKSET", "CPU-LIM%", "CPU-KERNEL%", "NO-LIMIT", "EXCLUSIVE",
		  "HELD", "WAITING", "STALLED", "IOWAIT", "STEAL", "TIER", "late", "expired",
		  "HZ, PASS, MISSED", "OVERFLOW"},
	.specs = specs,
	.names = "NODE",
	.lists = true,
	.run = run,
};
