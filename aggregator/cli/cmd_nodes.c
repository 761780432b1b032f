/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel nodes: what each machine has, what of it is promised, what it uses now, how that varied
 * over a window, and how old that is. CPU, MEMORY and WORKSET are the newest interval's; MEAN,
 * SIGMA, P95 and CPU-MAX are of the window.
 *
 * What only a Kubernetes API knows has columns only where one is followed, and takes the place of
 * WORKSET then: a line stays within 120 columns. The row "*" is the sum of all nodes, by the
 * server, whatever page or row limit; it has no deviation and no percentile, since those of several
 * nodes do not add up.
 */
#include "aggregator/cli/cmd_nodes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/commands.h"
#include "shared/units.h"

enum sort_key {
	BY_NAME,
	BY_CPU,
	BY_MEMORY,
	BY_SIGMA,
	BY_P95,
	BY_MAX,
	BY_AGE,
	BY_REQUESTS,
	BY_LIMITS,
	BY_WAITING,
	BY_OOM
};

static const char *const sort_keys[] = {"name", "cpu",	    "memory", "sigma",	 "p95", "max",
					"age",	"requests", "limits", "waiting", "oom", NULL};
static const char *const unlimited[] = {"ignore", "allocatable", "requests", NULL};

static const struct option_spec specs[] = {
	{"window", 0, OPTION_CHOICE, offsetof(struct cli_options, window), NULL, "5m", 0, 0,
	 cli_windows, "Window of MEAN, SIGMA, P95 and CPU-MAX."},
	{"sort-by", 0, OPTION_CHOICE, offsetof(struct cli_options, sort), "KEY", "name", 0, 0,
	 sort_keys,
	 "name, or greatest first: cpu, memory, sigma, p95, max, age, requests, limits, waiting "
	 "(the "
	 "larger share of CPU and memory), oom."},
	CLI_REVERSE,
	{"selector", 'l', OPTION_STRING, offsetof(struct cli_options, selector), "LABELS", NULL, 0,
	 0, NULL, "Only nodes with these labels, as kubectl takes them: a=b,c!=d,e in (f,g),!h."},
	{"unlimited", 0, OPTION_CHOICE, offsetof(struct cli_options, unlimited), NULL, "ignore", 0,
	 0, unlimited,
	 "What a container without a limit counts as in CPU-LIM% and MEM-LIM%: nothing (ignore), "
	 "its node's "
	 "allocatable, or what it requests."},
	{0},
};

enum column {
	NAME,
	STATUS,
	CPU,
	CPU_SHARE,
	CPU_ALLOCATABLE,
	CPU_REQUESTS,
	CPU_REQUESTS_SHARE,
	CPU_LIMITS,
	CPU_LIMITS_SHARE,
	CPU_KERNEL_SHARE,
	MEAN,
	SIGMA,
	P95,
	MAX,
	MEAN_5M,
	MEAN_10M,
	MEAN_15M,
	MEMORY,
	MEMORY_SHARE,
	MEMORY_ALLOCATABLE,
	MEMORY_REQUESTS,
	MEMORY_REQUESTS_SHARE,
	MEMORY_LIMITS,
	MEMORY_LIMITS_SHARE,
	MEMORY_KERNEL_SHARE,
	UNLIMITED,
	PODS,
	WORKSET,
	SWAP,
	PIDS,
	IOWAIT,
	STEAL,
	THROTTLED,
	WAITING,
	STALLED,
	OOM,
	AGE,
	TIER,
	HZ,
	PASS,
	MISSED,
	OVERFLOW,
	AGENT,
	COLUMNS
};

static const struct usage_column columns[COLUMNS] = {
	[NAME] = {"NAME", .form = FORM_NAME},
	[STATUS] = {"STATUS", .form = FORM_LEFT},
	[CPU] = {"CPU", .form = FORM_RIGHT},
	[CPU_SHARE] = {"CPU%", .form = FORM_RIGHT},
	[CPU_ALLOCATABLE] = {"CPU-ALLOC", .form = FORM_RIGHT, .wide = true},
	[CPU_REQUESTS] = {"CPU-REQ", .form = FORM_RIGHT, .wide = true},
	[CPU_REQUESTS_SHARE] = {"CPU-REQ%", .form = FORM_RIGHT},
	[CPU_LIMITS] = {"CPU-LIM", .form = FORM_RIGHT, .wide = true},
	[CPU_LIMITS_SHARE] = {"CPU-LIM%", .form = FORM_RIGHT},
	[CPU_KERNEL_SHARE] = {"CPU-KERNEL%", .form = FORM_RIGHT, .wide = true},
	[MEAN] = {"MEAN", .form = FORM_RIGHT, .windowed = true},
	[SIGMA] = {"SIGMA", .form = FORM_RIGHT},
	[P95] = {"P95", .form = FORM_RIGHT},
	[MAX] = {"CPU-MAX", .form = FORM_RIGHT},
	[MEAN_5M] = {"MEAN±SIGMA(5m)", .form = FORM_RIGHT, .wide = true},
	[MEAN_10M] = {"(10m)", .form = FORM_RIGHT, .wide = true},
	[MEAN_15M] = {"(15m)", .form = FORM_RIGHT, .wide = true},
	[MEMORY] = {"MEMORY", .form = FORM_RIGHT},
	[MEMORY_SHARE] = {"MEM%", .form = FORM_RIGHT},
	[MEMORY_ALLOCATABLE] = {"MEM-ALLOC", .form = FORM_RIGHT, .wide = true},
	[MEMORY_REQUESTS] = {"MEM-REQ", .form = FORM_RIGHT, .wide = true},
	[MEMORY_REQUESTS_SHARE] = {"MEM-REQ%", .form = FORM_RIGHT},
	[MEMORY_LIMITS] = {"MEM-LIM", .form = FORM_RIGHT, .wide = true},
	[MEMORY_LIMITS_SHARE] = {"MEM-LIM%", .form = FORM_RIGHT},
	[MEMORY_KERNEL_SHARE] = {"MEM-KERNEL%", .form = FORM_RIGHT, .wide = true},
	[UNLIMITED] = {"NO-LIMIT", .form = FORM_RIGHT, .wide = true},
	[PODS] = {"PODS", .form = FORM_RIGHT, .wide = true},
	[WORKSET] = {"WORKSET", .form = FORM_RIGHT},
	[SWAP] = {"SWAP", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[PIDS] = {"PIDS", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[IOWAIT] = {"IOWAIT", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[STEAL] = {"STEAL", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[THROTTLED] = {"THROTTLED", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[WAITING] = {"WAITING", .form = FORM_RIGHT, .wide = true},
	[STALLED] = {"STALLED", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[OOM] = {"OOM", .form = FORM_RIGHT, .wide = true},
	[AGE] = {"AGE", .form = FORM_LEFT},
	[TIER] = {"TIER", .form = FORM_LEFT},
	[HZ] = {"HZ", .form = FORM_RIGHT, .wide = true},
	[PASS] = {"PASS", .form = FORM_RIGHT, .wide = true},
	[MISSED] = {"MISSED", .form = FORM_RIGHT, .wide = true},
	[OVERFLOW] = {"OVERFLOW", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[AGENT] = {"AGENT-CPU", .form = FORM_RIGHT, .wide = true},
};

/* Where no API is followed these know nothing. */
static const size_t of_the_api[] = {
	STATUS,
	CPU_ALLOCATABLE,
	CPU_REQUESTS,
	CPU_REQUESTS_SHARE,
	CPU_LIMITS,
	CPU_LIMITS_SHARE,
	CPU_KERNEL_SHARE,
	MEMORY_ALLOCATABLE,
	MEMORY_REQUESTS,
	MEMORY_REQUESTS_SHARE,
	MEMORY_LIMITS,
	MEMORY_LIMITS_SHARE,
	MEMORY_KERNEL_SHARE,
	UNLIMITED,
	PODS,
};

/* What narrow terminals lose first. */
static const size_t spares[] = {
	TIER,
	WORKSET,
	WAITING,
	SIGMA,
	MAX,
	CPU_LIMITS_SHARE,
	MEMORY_LIMITS_SHARE,
	MEAN,
	STATUS,
	CPU_REQUESTS_SHARE,
	MEMORY_REQUESTS_SHARE,
};

#define WINDOW_FIELDS(w)                                                                           \
	{"cpu_mean_" w "_millicores", "usage.cpuMillicores.windows." w ".mean"},                   \
		{"cpu_stddev_" w "_millicores", "usage.cpuMillicores.windows." w ".stddev"},       \
		{"cpu_p95_" w "_millicores", "usage.cpuMillicores.windows." w ".p95"},             \
	{                                                                                          \
		"cpu_max_" w "_millicores", "usage.cpuMillicores.windows." w ".max"                \
	}

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
};

static enum row_state read_state(const cJSON *node)
{
	const char *state = document_text(node, "source.state");

	if (state && strcmp(state, "fresh") == 0)
		return ROW_FRESH;
	if (state && strcmp(state, "late") == 0)
		return ROW_LATE;
	if (state && strcmp(state, "expired") == 0)
		return ROW_EXPIRED;
	return ROW_NONE;
}

static double share_of_allocatable(const cJSON *node, const char *path, const char *allocatable)
{
	double whole = document_number(node, allocatable);

	return whole > 0 ? document_number(node, path) / whole : NAN;
}

static double sort_value(const cJSON *node, enum sort_key key, const char *window)
{
	switch (key) {
	case BY_CPU:
		return document_number(node, "usage.cpuMillicores.latest.value");
	case BY_MEMORY:
		return document_number(node, "usage.memoryBytes.latest.value");
	case BY_SIGMA:
		return usage_row_cpu_window(node, window, "stddev");
	case BY_P95:
		return usage_row_cpu_window(node, window, "p95");
	case BY_MAX:
		return usage_row_cpu_window(node, window, "max");
	case BY_AGE:
		return document_number(node, "source.ageSeconds");
	case BY_REQUESTS:
		return fmax(share_of_allocatable(node, "requests.cpuMillicores",
						 "allocatable.cpuMillicores"),
			    share_of_allocatable(node, "requests.memoryBytes",
						 "allocatable.memoryBytes"));
	case BY_LIMITS:
		return fmax(document_number(node, "limitRatio.declared.cpu"),
			    document_number(node, "limitRatio.declared.memory"));
	case BY_WAITING:
		return usage_row_waiting_key(node);
	case BY_OOM:
		return document_number(node, "contention.oomKills");
	case BY_NAME:
		break;
	}
	return NAN;
}

static void add_status(struct table *t, const cJSON *node)
{
	const cJSON *ready = document_at(node, "ready");
	bool cordoned = cJSON_IsTrue(document_at(node, "unschedulable"));

	if (cJSON_IsTrue(document_at(node, "unknownToApi")))
		table_cell(t, PAINT_WARN, "unknown");
	else if (cJSON_IsTrue(ready))
		table_cell(t, cordoned ? PAINT_WARN : PAINT_PLAIN,
			   cordoned ? "Ready,cordoned" : "Ready");
	else if (cJSON_IsFalse(ready))
		table_cell(t, PAINT_BAD, cordoned ? "NotReady,cordoned" : "NotReady");
	else
		table_cell(t, PAINT_PLAIN, "-");
}

static void add_mean_sigma(struct table *t, const cJSON *node, const char *window)
{
	char mean[UNITS_LEN], sigma[UNITS_LEN], text[2 * UNITS_LEN + 4];
	double value = usage_row_cpu_window(node, window, "mean"),
	       stddev = usage_row_cpu_window(node, window, "stddev");

	units_cpu(value, mean);
	units_cpu(stddev, sigma);
	if (!strchr(mean, 'm') && isfinite(stddev)) /* cores: sigma too */
		snprintf(sigma, sizeof(sigma), "%.2f", stddev / 1000);
	snprintf(text, sizeof(text), "%s%s%s", mean, isnan(stddev) ? "" : "±",
		 isnan(stddev) ? "" : sigma);
	table_cell(t, PAINT_PLAIN, isnan(value) ? "-" : text);
}

/*
 * What pods may have, as kubectl top counts; of the total, of the nodes whose use is known, or of
 * all where none is. The capacity where nobody tells.
 */
static double allocatable_of(const cJSON *node, const char *resource)
{
	static const char *const members[] = {"measured.allocatable", "allocatable", "capacity"};
	double amount = NAN;
	char path[64];

	for (size_t i = 0; i < 3 && !(amount > 0); i++) {
		snprintf(path, sizeof(path), "%s.%s", members[i], resource);
		amount = document_number(node, path);
	}
	return amount;
}

/* Allocatable, requests and limits, and the shares of the last two: of CPU or of memory. */
static void add_promises(struct table *t, const cJSON *node, const char *resource,
			 const char *short_name, void (*add)(struct table *t, double amount))
{
	double amounts[3];
	char path[64];
	static const char *const members[3] = {"allocatable", "requests", "limits"};

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s.%s", members[i], resource);
		amounts[i] = document_number(node, path);
	}
	add(t, amounts[0]);
	add(t, amounts[1]);
	usage_row_percent(t, amounts[1], amounts[0]);
	add(t, amounts[2]);
	snprintf(path, sizeof(path), "limitRatio.declared.%s", short_name);
	usage_row_limit_ratio(t, document_number(node, path));
	snprintf(path, sizeof(path), "limitRatio.kernel.%s", short_name);
	usage_row_limit_ratio(t, document_number(node, path));
}

static void add_cpu(struct table *t, const cJSON *node, const char *window)
{
	double used = document_number(node, "usage.cpuMillicores.latest.value");
	double allocatable = allocatable_of(node, "cpuMillicores");
	char text[UNITS_LEN];

	units_cpu_of(used, allocatable, text);
	table_cell(t, PAINT_PLAIN, text);
	usage_row_percent(t, used, allocatable);
	add_promises(t, node, "cpuMillicores", "cpu", usage_row_cpu);
	usage_row_cpu(t, usage_row_cpu_window(node, window, "mean"));
	usage_row_cpu(t, usage_row_cpu_window(node, window, "stddev"));
	usage_row_cpu(t, usage_row_cpu_window(node, window, "p95"));
	usage_row_cpu(t, usage_row_cpu_window(node, window, "max"));
	for (size_t i = 0; cli_windows[i]; i++)
		add_mean_sigma(t, node, cli_windows[i]);
}

static void add_pods(struct table *t, const cJSON *node)
{
	double cpu = document_number(node, "unlimitedContainers.cpu"),
	       memory = document_number(node, "unlimitedContainers.memory");
	char text[UNITS_LEN];

	snprintf(text, sizeof(text), "%.10g/%.10g", cpu, memory);
	table_cell(t, PAINT_PLAIN, isnan(cpu) || isnan(memory) ? "-" : text);
	usage_row_count_of(t, document_number(node, "pods"),
			   document_number(node, "allocatable.pods"));
}

static void add_memory(struct table *t, const cJSON *node)
{
	double used = document_number(node, "usage.memoryBytes.latest.value");
	double allocatable = allocatable_of(node, "memoryBytes");
	char text[UNITS_LEN];

	units_bytes_of(used, allocatable, text);
	table_cell(t, PAINT_PLAIN, text);
	usage_row_percent(t, used, allocatable);
	add_promises(t, node, "memoryBytes", "memory", usage_row_bytes);
	add_pods(t, node);
	usage_row_bytes(t, document_number(node, "usage.workingSetBytes.latest.value"));
	usage_row_bytes(t, document_number(node, "usage.swapBytes.latest.value"));
}

/* Of all CPU time. */
static void add_cpu_share(struct table *t, const cJSON *node, const char *path)
{
	char text[UNITS_LEN];

	units_percent(document_number(node, path) / document_number(node, "capacity.cpuMillicores"),
		      text);
	table_cell(t, PAINT_PLAIN, text);
}

static void add_rate(struct table *t, double hertz)
{
	char text[UNITS_LEN];

	snprintf(text, sizeof(text), "%.3g", hertz);
	table_cell(t, PAINT_PLAIN, isnan(hertz) ? "-" : text);
}

static void add_source(struct table *t, const cJSON *node, enum row_state state, double age)
{
	const char *tier = document_text(node, "source.tier");
	double overflow = document_number(node, "source.overflowCgroups");

	usage_row_age(t, state, age);
	table_cell(t, PAINT_PLAIN, tier ? tier : "-");
	add_rate(t, document_number(node, "source.rateHz"));
	usage_row_micros(t, document_number(node, "source.passMicroseconds"));
	usage_row_count(t, document_number(node, "source.missedTicks"), PAINT_PLAIN);
	usage_row_count(t, overflow, overflow > 0 ? PAINT_BAD : PAINT_PLAIN);
	usage_row_cpu(t, document_number(node, "source.agentCpuMillicores"));
}

static void add_cells(struct usage_table *n, const cJSON *node, enum row_state state, double age)
{
	struct table *t = n->table;

	add_cpu(t, node, cli_windows[n->cli->options->window]);
	add_memory(t, node);
	usage_row_count(t, document_number(node, "usage.pids.latest.value"), PAINT_PLAIN);
	add_cpu_share(t, node, "machine.cpuMillicores.iowait");
	add_cpu_share(t, node, "machine.cpuMillicores.steal");
	usage_row_throttled(t, node);
	usage_row_pressure(t, node);
	usage_row_oom(t, node);
	add_source(t, node, state, age);
	csv_cells(n->cli, t, node, fields, sizeof(fields) / sizeof(fields[0]));
}

static bool add_node(void *context, const cJSON *node, double time, double held)
{
	struct usage_table *n = context;
	const char *window = cli_windows[n->cli->options->window];
	const char *name = document_text(node, "name");
	enum row_state state = read_state(node);
	double age = document_number(node, "source.ageSeconds") + held;

	(void)time;
	if (!name || !usage_tally_wants(&n->tally, name))
		return false;
	usage_tally_add(&n->tally, name, state, age);
	if (n->cli->options->output == OUTPUT_JSON)
		return true;
	n->known |= document_at(node, "requests") != NULL;
	table_row(n->table, name);
	table_key(n->table, sort_value(node, (enum sort_key)n->cli->options->sort, window));
	table_cell(n->table, PAINT_PLAIN, name);
	add_status(n->table, node);
	add_cells(n, node, state, age);
	return true;
}

/* How many of those that the API knows are ready. */
static void add_ready(struct table *t, const cJSON *total)
{
	double ready = document_number(total, "ready"),
	       nodes = document_number(total, "knownToApi");
	char text[2 * UNITS_LEN];

	snprintf(text, sizeof(text), "%.10g/%.10g Ready", ready, nodes);
	table_cell(t, PAINT_PLAIN, isnan(ready) ? "-" : ready < nodes ? text : "Ready");
}

/*
 * The row of all nodes, first whatever the others are sorted by; once, for more than one node, when
 * none was named.
 */
static void add_total(void *context, const cJSON *page)
{
	struct usage_table *n = context;
	const cJSON *total = document_at(page, "total");
	double nodes = document_number(total, "nodes");

	if (n->pages++ || !(nodes > 1) || n->cli->operand_count > 0 ||
	    n->cli->options->output == OUTPUT_JSON)
		return;
	table_row(n->table, "*");
	table_sums_up(n->table);
	table_key(n->table, INFINITY);
	table_cell(n->table, PAINT_PLAIN, "*");
	add_ready(n->table, total);
	add_cells(n, total, ROW_APART, NAN);
}

static void hide_columns(struct usage_table *n, const struct cli *cli)
{
	static const char *const plain[] = {"Ready", "-", NULL};
	bool wide = cli->options->output == OUTPUT_WIDE;

	for (size_t i = 0; i < COLUMNS; i++)
		if (wide ? i == MEAN || i == SIGMA : columns[i].wide && !(i == WAITING && n->known))
			table_hide(n->table, i);
	for (size_t i = 0; !n->known && i < sizeof(of_the_api) / sizeof(of_the_api[0]); i++)
		table_hide(n->table, of_the_api[i]);
	if (!wide && n->known)
		table_hide(n->table, WORKSET);
	if (!wide && table_holds_only(n->table, STATUS, plain))
		table_hide(n->table, STATUS);
	usage_table_hide_empty(n, &nodes_kind);
}

static int finish(struct usage_table *n, struct cli *cli)
{
	hide_columns(n, cli);
	commands_print_table(cli, n->table, "node");
	return usage_tally_exit(&n->tally, &cli->reason);
}

const struct usage_kind nodes_kind = {
	.what = "node",
	.columns = columns,
	.column_count = COLUMNS,
	.spares = spares,
	.spare_count = sizeof(spares) / sizeof(spares[0]),
	.fields = fields,
	.field_count = sizeof(fields) / sizeof(fields[0]),
	.item = add_node,
	.envelope = add_total,
	.finish = finish,
};

static char *list_path(const struct cli_options *o)
{
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/nodes?limit=500");
	if (o->unlimited)
		buf_printf(&path, "&unlimited=%s", unlimited[o->unlimited]);
	if (o->selector) {
		buf_add_str(&path, "&labelSelector=");
		client_escape(o->selector, &path);
	}
	return buf_take(&path, NULL);
}

static int run(struct cli *cli)
{
	char *path = list_path(cli->options);
	int code = usage_table_run(&nodes_kind, cli, path);

	free(path);
	return code;
}

static const struct outline_example examples[] = {
	{"evenkeel nodes --sort-by cpu --limit 10", "The ten nodes with the highest CPU use."},
	{"evenkeel nodes -l pool=main --sort-by sigma -w=5s",
	 "A pool, the most varying use first, anew every 5 seconds."},
	{"evenkeel nodes -o json node-7 | jq '.items[0].usage'",
	 "All that is known of one node's use, for another program."},
	{0},
};
static const char *const terms[] = {
	"SIGMA",    "P95",    "WORKSET", "CPU-LIM%", "CPU-KERNEL%", "NO-LIMIT", "WAITING",
	"STALLED",  "IOWAIT", "STEAL",	 "TIER",     "late",	    "expired",	"HZ, PASS, MISSED",
	"OVERFLOW", NULL};

const struct command command_nodes = {
	.name = "nodes",
	.usage = "[NAME..]",
	.summary = "Show what each node has, promised and uses, and how that varies",
	.details = "Shows one row for each node; the row * sums them up. CPU is in millicores "
		   "(300m) below one core and in cores (1.25) above. CPU, MEMORY and WORKSET are "
		   "of the newest interval; MEAN, SIGMA, P95 and CPU-MAX of the window. Every "
		   "share (%) is of the allocatable; limits above 100% are over-subscribed. STATUS "
		   "stands where a node is not simply Ready. -o wide adds amounts, all windows, "
		   "waiting, OOM kills and the agent's own figures.",
	.examples = examples,
	.terms = terms,
	.specs = specs,
	.names = "NODE",
	.lists = true,
	.run = run,
};
