/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel nodes: what each machine uses now, how it varied over a window, and how old that is. CPU, MEMORY and WORKSET
 * are the newest interval's; MEAN, SIGMA, P95 and MAX are of the window.
 */
#include "aggregator/cli/cmd_nodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/commands.h"
#include "shared/units.h"

enum sort_key { BY_NAME, BY_CPU, BY_MEMORY, BY_SIGMA, BY_P95, BY_MAX, BY_AGE };

static const char *const sort_keys[] = {"name", "cpu", "memory", "sigma",
					"p95",	"max", "age",	 NULL};

static const struct option_spec specs[] = {
	{"window", 0, OPTION_CHOICE, offsetof(struct cli_options, window), NULL, "5m", 0, 0,
	 cli_windows, "Window of MEAN, SIGMA, P95 and MAX."},
	{"sort-by", 0, OPTION_CHOICE, offsetof(struct cli_options, sort), "KEY", "name", 0, 0,
	 sort_keys, "name, or greatest first: cpu, memory, sigma, p95, max, age."},
	{0},
};

enum column {
	NAME,
	CPU,
	CPU_SHARE,
	MEAN,
	SIGMA,
	P95,
	MAX,
	MEAN_5M,
	MEAN_10M,
	MEAN_15M,
	MEMORY,
	MEMORY_SHARE,
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
	[CPU] = {"CPU", .form = FORM_RIGHT},
	[CPU_SHARE] = {"CPU%", .form = FORM_RIGHT},
	[MEAN] = {"MEAN", .form = FORM_RIGHT, .windowed = true},
	[SIGMA] = {"SIGMA", .form = FORM_RIGHT},
	[P95] = {"P95", .form = FORM_RIGHT},
	[MAX] = {"MAX", .form = FORM_RIGHT},
	[MEAN_5M] = {"MEAN±SIGMA(5m)", .form = FORM_RIGHT, .wide = true},
	[MEAN_10M] = {"(10m)", .form = FORM_RIGHT, .wide = true},
	[MEAN_15M] = {"(15m)", .form = FORM_RIGHT, .wide = true},
	[MEMORY] = {"MEMORY", .form = FORM_RIGHT},
	[MEMORY_SHARE] = {"MEM%", .form = FORM_RIGHT},
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

/* What narrow terminals lose first. */
static const size_t spares[] = {TIER, WORKSET, MAX, CPU_SHARE, MEMORY_SHARE, SIGMA};

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
	case BY_NAME:
		break;
	}
	return NAN;
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
	snprintf(text, sizeof(text), "%s±%s", mean, sigma);
	table_cell(t, PAINT_PLAIN, isnan(value) ? "-" : text);
}

static void add_cpu(struct table *t, const cJSON *node, const char *window)
{
	double used = document_number(node, "usage.cpuMillicores.latest.value");
	double capacity = document_number(node, "capacity.cpuMillicores");
	char text[UNITS_LEN];

	units_cpu_of(used, capacity, text);
	table_cell(t, PAINT_PLAIN, text);
	usage_row_percent(t, used, capacity);
	usage_row_cpu(t, usage_row_cpu_window(node, window, "mean"));
	usage_row_cpu(t, usage_row_cpu_window(node, window, "stddev"));
	usage_row_cpu(t, usage_row_cpu_window(node, window, "p95"));
	usage_row_cpu(t, usage_row_cpu_window(node, window, "max"));
	for (size_t i = 0; cli_windows[i]; i++)
		add_mean_sigma(t, node, cli_windows[i]);
}

static void add_memory(struct table *t, const cJSON *node)
{
	double used = document_number(node, "usage.memoryBytes.latest.value");
	double capacity = document_number(node, "capacity.memoryBytes");
	char text[UNITS_LEN];

	units_bytes_of(used, capacity, text);
	table_cell(t, PAINT_PLAIN, text);
	usage_row_percent(t, used, capacity);
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
	table_row(n->table, name);
	table_key(n->table, sort_value(node, (enum sort_key)n->cli->options->sort, window));
	table_cell(n->table, PAINT_PLAIN, name);
	add_cpu(n->table, node, window);
	add_memory(n->table, node);
	usage_row_count(n->table, document_number(node, "usage.pids.latest.value"), PAINT_PLAIN);
	add_cpu_share(n->table, node, "machine.cpuMillicores.iowait");
	add_cpu_share(n->table, node, "machine.cpuMillicores.steal");
	usage_row_throttled(n->table, node);
	usage_row_pressure(n->table, node);
	usage_row_oom(n->table, node);
	add_source(n->table, node, state, age);
	return true;
}

static int finish(struct usage_table *n, struct cli *cli)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		bool wide = cli->options->output == OUTPUT_WIDE;

		if (wide ? i == MEAN || i == SIGMA : columns[i].wide)
			table_hide(n->table, i);
	}
	usage_table_hide_empty(n, &nodes_kind);
	commands_print_table(cli, n->table);
	return usage_tally_exit(&n->tally, &cli->reason);
}

const struct usage_kind nodes_kind = {
	.what = "node",
	.columns = columns,
	.column_count = COLUMNS,
	.spares = spares,
	.spare_count = sizeof(spares) / sizeof(spares[0]),
	.item = add_node,
	.finish = finish,
};

static int run(struct cli *cli)
{
	return usage_table_run(&nodes_kind, cli, "/v1/nodes?limit=500");
}

const struct command command_nodes = {
	.name = "nodes",
	.usage = "[NAME..]",
	.summary = "Show what each node uses, how that varies, and how old it is",
	.details =
		"Shows what each node uses. CPU is in millicores (300m) below one core and in "
		"cores "
		"(1.25) above. CPU, MEMORY and WORKSET are of the newest interval; MEAN, SIGMA, "
		"P95 and "
		"MAX are of the window. AGE adds \"late\" after 30s without news, \"expired\" "
		"after 5m. "
		"TIER is how the agent samples: T0 to T2 by BPF, T3 from cgroup files. Wide adds "
		"all windows; SWAP and PIDS; the shares of CPU time in IOWAIT and in STEAL, which "
		"the hypervisor took; of the last 5m the share of throttled periods, of time that "
		"some task was WAITING for neighbours and that all were STALLED, for CPU/memory, "
		"and OOM kills; and of the agent the passes per second (HZ) and the time of a "
		"PASS, MISSED ones, cgroups beyond its room (OVERFLOW) and its own CPU.",
	.specs = specs,
	.run = run,
};
