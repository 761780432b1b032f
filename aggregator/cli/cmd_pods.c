/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel pods: what each workload uses, against what it requests and may take. CPU-LIM
 * and MEM-LIM are what the pod declares, CPU-KERNEL and MEM-KERNEL what the kernel enforces where
 * that is something else; of a pod that no Kubernetes API knows the limits are the kernel's. Without Kubernetes the workloads are
 * systemd's units, and the slices that hold them; a slice would count its units a second time, so
 * the plain table leaves slices out unless one is named. How old a row is follows from its newest
 * interval and the list's time; what is not running has no age.
 */
#include "aggregator/cli/cmd_pods.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/commands.h"
#include "shared/mem.h"
#include "shared/units.h"

enum sort_key { BY_NAME, BY_CPU, BY_MEMORY, BY_THROTTLED, BY_REQUESTS, BY_WAITING, BY_OOM, BY_P95 };

static const char *const sort_keys[] = {"name",	   "cpu", "memory", "throttled", "requests",
					"waiting", "oom", "p95",    NULL};

static const struct option_spec specs[] = {
	{"all", 'a', OPTION_FLAG, offsetof(struct cli_options, all), NULL, NULL, 0, 0, NULL,
	 "Show slices too: \"name/\" holds units that have rows of their own."},
	{"window", 0, OPTION_CHOICE, offsetof(struct cli_options, window), NULL, "5m", 0, 0,
	 cli_windows, "Window of MEAN, SIGMA and CPU-MAX."},
	{"sort-by", 0, OPTION_CHOICE, offsetof(struct cli_options, sort), "KEY", "name", 0, 0,
	 sort_keys,
	 "name, or greatest first: cpu, memory, throttled, requests (the larger share of use in "
	 "requests of CPU and memory), waiting (the larger of CPU and memory), oom, p95 (of the "
	 "newest hour; in a column of its own)."},
	CLI_REVERSE,
	{"node", 0, OPTION_STRING, offsetof(struct cli_options, node), "NODE", NULL, 0, 0, NULL,
	 "Only pods on this node."},
	{"containers", 0, OPTION_FLAG, offsetof(struct cli_options, containers), NULL, NULL, 0, 0,
	 NULL,
	 "A row for each container, by its name, or the start of its id where no API tells it: its "
	 "newest use, the limits that the "
	 "kernel enforces, and its "
	 "waiting; -o json has containers anyway."},
	{"selector", 'l', OPTION_STRING, offsetof(struct cli_options, selector), "LABELS", NULL, 0,
	 0, NULL, "Only pods with these labels, as kubectl takes them: a=b,c!=d,e in (f,g),!h."},
	{0},
};

enum column {
	NAMESPACE,
	NAME,
	CONTAINER,
	NODE,
	STATUS,
	CPU,
	MEAN,
	SIGMA,
	MAX,
	P95,
	CPU_REQUEST,
	CPU_LIMIT,
	CPU_KERNEL,
	BURST,
	THROTTLED,
	MEMORY,
	MEMORY_REQUEST,
	MEMORY_LIMIT,
	MEMORY_KERNEL,
	HIGH,
	WORKSET,
	SWAP,
	PIDS,
	OOM,
	WAITING,
	STALLED,
	AGE,
	QOS,
	WORKLOAD,
	COLUMNS
};

static const struct usage_column columns[COLUMNS] = {
	[NAMESPACE] = {"NAMESPACE", .form = FORM_NAME},
	[NAME] = {"NAME", .form = FORM_NAME},
	[CONTAINER] = {"CONTAINER", .form = FORM_NAME},
	[NODE] = {"NODE", .form = FORM_NAME},
	[STATUS] = {"STATUS", .form = FORM_LEFT},
	[CPU] = {"CPU", .form = FORM_RIGHT},
	[MEAN] = {"MEAN", .form = FORM_RIGHT, .wide = true, .windowed = true},
	[SIGMA] = {"SIGMA", .form = FORM_RIGHT},
	[MAX] = {"CPU-MAX", .form = FORM_RIGHT, .wide = true},
	[P95] = {"P95(1h)", .form = FORM_RIGHT},
	[CPU_REQUEST] = {"CPU-REQ", .form = FORM_RIGHT},
	[CPU_LIMIT] = {"CPU-LIM", .form = FORM_RIGHT},
	[CPU_KERNEL] = {"CPU-KERNEL", .form = FORM_RIGHT},
	[BURST] = {"BURST", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[THROTTLED] = {"THROTTLED", .form = FORM_RIGHT},
	[MEMORY] = {"MEMORY", .form = FORM_RIGHT},
	[MEMORY_REQUEST] = {"MEM-REQ", .form = FORM_RIGHT},
	[MEMORY_LIMIT] = {"MEM-LIM", .form = FORM_RIGHT},
	[MEMORY_KERNEL] = {"MEM-KERNEL", .form = FORM_RIGHT},
	[HIGH] = {"HIGH", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[WORKSET] = {"WORKSET", .form = FORM_RIGHT},
	[SWAP] = {"SWAP", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[PIDS] = {"PIDS", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[OOM] = {"OOM", .form = FORM_RIGHT},
	[WAITING] = {"WAITING", .form = FORM_RIGHT, .wide = true},
	[STALLED] = {"STALLED", .form = FORM_RIGHT, .wide = true, .sparse = true},
	[AGE] = {"AGE", .form = FORM_LEFT, .wide = true},
	[QOS] = {"QOS", .form = FORM_LEFT, .wide = true},
	[WORKLOAD] = {"WORKLOAD", .form = FORM_NAME, .wide = true},
};

/* Where no API is followed these know nothing. */
static const size_t of_the_api[] = {STATUS,	    CPU_REQUEST,   CPU_KERNEL,
				    MEMORY_REQUEST, MEMORY_KERNEL, WORKLOAD};

/* What narrow terminals lose first. */
static const size_t spares[] = {WORKSET,	SIGMA,	     OOM,	   NODE,
				MEMORY_REQUEST, CPU_REQUEST, MEMORY_LIMIT, CPU_LIMIT};

#define WINDOW_FIELDS(w)                                                                           \
	{"cpu_mean_" w "_millicores", "usage.cpuMillicores.windows." w ".mean"},                   \
		{"cpu_stddev_" w "_millicores", "usage.cpuMillicores.windows." w ".stddev"},       \
	{                                                                                          \
		"cpu_max_" w "_millicores", "usage.cpuMillicores.windows." w ".max"                \
	}

static const struct csv_field fields[] = {
	{"namespace", "namespace"},
	{"name", "name"},
	{"node", "node"},
	{"phase", "phase"},
	{"qos_class", "qosClass"},
	{"workload_kind", "workload.kind"},
	{"workload_name", "workload.name"},
	{"cpu_millicores", "usage.cpuMillicores.latest.value"},
	{"cpu_request_millicores", "requests.cpuMillicores"},
	{"cpu_limit_millicores", "limits.cpuMillicores"},
	{"cpu_unlimited_containers", "unlimitedContainers.cpu"},
	{"cpu_kernel_limit_millicores", "kernelLimits.cpuMillicores"},
	{"cpu_burst_microseconds", "kernelLimits.cpuBurstMicroseconds"},
	WINDOW_FIELDS("5m"),
	WINDOW_FIELDS("10m"),
	WINDOW_FIELDS("15m"),
	{"memory_bytes", "usage.memoryBytes.latest.value"},
	{"memory_request_bytes", "requests.memoryBytes"},
	{"memory_limit_bytes", "limits.memoryBytes"},
	{"memory_unlimited_containers", "unlimitedContainers.memory"},
	{"memory_kernel_limit_bytes", "kernelLimits.memoryBytes"},
	{"memory_high_bytes", "kernelLimits.memoryHighBytes"},
	{"working_set_bytes", "usage.workingSetBytes.latest.value"},
	{"swap_bytes", "usage.swapBytes.latest.value"},
	{"tasks", "usage.pids.latest.value"},
	{"tasks_limit", "kernelLimits.pids"},
	CSV_CONTENTION,
	{"measured_at", "usage.cpuMillicores.latest.end"},
	{"container", "container"},
	{"container_id", "id"},
	{"container_cgroup", "cgroup"},
};

/* As far as the API knows. */
static bool is_running(const cJSON *pod)
{
	const char *phase = document_text(pod, "phase");

	return !phase || strcmp(phase, "Running") == 0;
}

/* By the thresholds of the aggregator: fresh below 30 s, expired above 5 minutes. */
static enum row_state read_state(const cJSON *pod, double time, double *age)
{
	*age = time - document_time(pod, "usage.cpuMillicores.latest.end");
	if (isnan(*age))
		*age = time - document_time(pod, "usage.memoryBytes.latest.end");
	if (isnan(*age))
		return is_running(pod) ? ROW_NONE : ROW_APART;
	return *age < 30 ? ROW_FRESH : *age <= 300 ? ROW_LATE : ROW_EXPIRED;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

/* The 95th percentile of the newest hour that is known, by half minutes. */
static double newest_p95(const cJSON *pod)
{
	const cJSON *hours = document_at(pod, "hourlyPeaks.cpuMillicores");
	double newest = NAN;

	for (const cJSON *hour = document_first(hours); hour; hour = hour->next)
		newest = cJSON_IsNumber(hour) ? hour->valuedouble : newest;
	return newest;
}

static double sort_value(const cJSON *pod, enum sort_key key)
{
	switch (key) {
	case BY_CPU:
		return document_number(pod, "usage.cpuMillicores.latest.value");
	case BY_MEMORY:
		return document_number(pod, "usage.memoryBytes.latest.value");
	case BY_THROTTLED:
		return usage_row_throttled_key(pod);
	case BY_REQUESTS:
		return fmax(share(document_number(pod, "usage.cpuMillicores.latest.value"),
				  document_number(pod, "requests.cpuMillicores")),
			    share(document_number(pod, "usage.workingSetBytes.latest.value"),
				  document_number(pod, "requests.memoryBytes")));
	case BY_WAITING:
		return usage_row_waiting_key(pod);
	case BY_OOM:
		return document_number(pod, "contention.oomKills");
	case BY_P95:
		return newest_p95(pod);
	case BY_NAME:
		break;
	}
	return NAN;
}

static bool is_slice(const cJSON *pod)
{
	const char *kind = document_text(pod, "workload.kind");

	return kind && strcmp(kind, "Slice") == 0;
}

/* Plain tables leave out what counts twice; what was named, or asked for with all detail, stays. */
static bool is_hidden(const struct usage_table *p, const cJSON *pod)
{
	const struct cli_options *o = p->cli->options;

	return is_slice(pod) && o->output == OUTPUT_TABLE && !o->all && p->cli->operand_count == 0;
}

static bool is_known(const cJSON *pod)
{
	return document_at(pod, "limits") != NULL;
}

/* The phase, or that the API does not know it. */
static void add_status(struct table *t, const cJSON *pod)
{
	const char *phase = document_text(pod, "phase");

	if (cJSON_IsTrue(document_at(pod, "unknownToApi")))
		table_cell(t, PAINT_WARN, "unknown");
	else if (phase)
		table_cell(t, is_running(pod) ? PAINT_PLAIN : PAINT_WARN, phase);
	else
		table_cell(t, PAINT_PLAIN, "-");
}

/*
 * The sum of the containers that have a limit: "500m+" where others have none, "none" where all
 * have none.
 */
static void add_limit(struct table *t, const cJSON *pod, const char *resource,
		      const char *unlimited, void (*units)(double amount, char out[UNITS_LEN]))
{
	char path[64], text[UNITS_LEN];
	double amount;

	snprintf(path, sizeof(path), "limits.%s", resource);
	if (document_is_null(pod, path)) {
		table_cell(t, PAINT_DIM, "none");
		return;
	}
	amount = document_number(pod, path);
	units(amount, text);
	snprintf(path, sizeof(path), "unlimitedContainers.%s", unlimited);
	if (!isnan(amount) && document_number(pod, path) > 0)
		strncat(text, "+", sizeof(text) - strlen(text) - 1);
	table_cell(t, PAINT_PLAIN, text);
}

/* What the kernel enforces where the pod declares something else. */
static bool add_mismatch(struct table *t, const cJSON *pod, const char *resource, char path[64])
{
	snprintf(path, 64, "limitMismatch.%s.kernel", resource);
	if (document_at(pod, path))
		return true;
	table_cell(t, PAINT_PLAIN, "-");
	return false;
}

static void add_cpu(struct table *t, const cJSON *pod, const char *window)
{
	char path[64];

	usage_row_cpu(t, document_number(pod, "usage.cpuMillicores.latest.value"));
	usage_row_cpu(t, usage_row_cpu_window(pod, window, "mean"));
	usage_row_cpu(t, usage_row_cpu_window(pod, window, "stddev"));
	usage_row_cpu(t, usage_row_cpu_window(pod, window, "max"));
	usage_row_cpu(t, newest_p95(pod));
	usage_row_cpu(t, document_number(pod, "requests.cpuMillicores"));
	if (is_known(pod))
		add_limit(t, pod, "cpuMillicores", "cpu", units_cpu);
	else
		usage_row_cpu_limit(t, pod, "kernelLimits.cpuMillicores");
	if (add_mismatch(t, pod, "cpuMillicores", path))
		usage_row_cpu_limit(t, pod, path);
	usage_row_micros(t, document_number(pod, "kernelLimits.cpuBurstMicroseconds"));
	usage_row_throttled(t, pod);
}

static void add_memory(struct table *t, const cJSON *pod)
{
	char path[64];

	usage_row_bytes(t, document_number(pod, "usage.memoryBytes.latest.value"));
	usage_row_bytes(t, document_number(pod, "requests.memoryBytes"));
	if (is_known(pod))
		add_limit(t, pod, "memoryBytes", "memory", units_bytes);
	else
		usage_row_byte_limit(t, pod, "kernelLimits.memoryBytes");
	if (add_mismatch(t, pod, "memoryBytes", path))
		usage_row_byte_limit(t, pod, path);
	usage_row_byte_limit(t, pod, "kernelLimits.memoryHighBytes");
	/* The working set is what cannot be given back: near the limit, a kill is near. */
	usage_row_bytes_against(t, document_number(pod, "usage.workingSetBytes.latest.value"),
				document_number(pod, "kernelLimits.memoryBytes"));
	usage_row_bytes(t, document_number(pod, "usage.swapBytes.latest.value"));
	usage_row_count_of(t, document_number(pod, "usage.pids.latest.value"),
			   document_number(pod, "kernelLimits.pids"));
	usage_row_oom(t, pod);
}

static void add_workload(struct table *t, const cJSON *pod)
{
	const char *kind = document_text(pod, "workload.kind"),
		   *name = document_text(pod, "workload.name");
	char *text = kind && name ? mem_printf("%s/%s", kind, name) : NULL;

	table_cell(t, PAINT_PLAIN, text ? text : "-");
	free(text);
}

/*
 * The name, where the API told it; else as crictl prints containers the first digits of the id;
 * without one the last part of its cgroup.
 */
static void add_container(struct table *t, const cJSON *pod)
{
	const char *id = document_text(pod, "id"), *name = document_text_or(pod, "cgroup", "-");
	const char *slash = strrchr(name, '/');
	char digits[13];

	if (document_text(pod, "container")) {
		table_cell(t, PAINT_PLAIN, document_text(pod, "container"));
	} else if (id) {
		snprintf(digits, sizeof(digits), "%s", id);
		table_cell(t, PAINT_PLAIN, digits);
	} else {
		table_cell(t, PAINT_PLAIN, slash ? slash + 1 : name);
	}
}

static void add_names(struct table *t, const cJSON *pod, const char *name)
{
	const char *namespace = document_text(pod, "namespace"), *node = document_text(pod, "node");
	char *shown = mem_printf("%s%s", name, is_slice(pod) ? "/" : "");
	char *sorted = mem_printf("%s\n%s", namespace ? namespace : "", name);

	table_row(t, sorted);
	table_cell(t, PAINT_PLAIN, namespace && namespace[0] ? namespace : "-");
	table_cell(t, PAINT_PLAIN, shown);
	add_container(t, pod);
	table_cell(t, PAINT_PLAIN, node ? node : "-");
	add_status(t, pod);
	free(shown);
	free(sorted);
}

static void add_row(struct usage_table *p, const cJSON *pod, enum row_state state, double age)
{
	const char *namespace = document_text(pod, "namespace");

	p->namespaced |= namespace && namespace[0];
	p->known |= is_known(pod);
	add_names(p->table, pod, document_text(pod, "name"));
	table_key(p->table, sort_value(pod, (enum sort_key)p->cli->options->sort));
	add_cpu(p->table, pod, cli_windows[p->cli->options->window]);
	add_memory(p->table, pod);
	usage_row_pressure(p->table, pod);
	usage_row_age(p->table, state, age);
	table_cell(p->table, PAINT_PLAIN, document_text_or(pod, "qosClass", "-"));
	add_workload(p->table, pod);
	csv_cells(p->cli, p->table, pod, fields, sizeof(fields) / sizeof(fields[0]));
}

/* The names of the pod and the values of its container, which borrows both; cJSON_Delete() it. */
static cJSON *join_container(const cJSON *pod, const cJSON *container)
{
	static const char *const of_pod[] = {"namespace", "name",     "node",
					     "phase",	  "qosClass", "workload"};
	static const char *const own[] = {"id", "usage", "kernelLimits", "contention"};
	cJSON *name = cJSON_GetObjectItem(container, "name");
	cJSON *cgroup = cJSON_GetObjectItem(container, "cgroup");
	cJSON *joined = cJSON_CreateObject();

	for (size_t i = 0; i < sizeof(of_pod) / sizeof(of_pod[0]); i++)
		cJSON_AddItemReferenceToObject(joined, of_pod[i],
					       cJSON_GetObjectItem(pod, of_pod[i]));
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		cJSON_AddItemReferenceToObject(joined, own[i],
					       cJSON_GetObjectItem(container, own[i]));
	if (cgroup)
		cJSON_AddItemReferenceToObject(joined, "container", name);
	cJSON_AddItemReferenceToObject(joined, "cgroup", cgroup ? cgroup : name);
	return joined;
}

/* Names are those of pods, whatever is in them. */
static void add_rows(struct usage_table *p, const cJSON *pod, enum row_state state, double age)
{
	const cJSON *container = document_first(document_at(pod, "containers"));

	if (!container || !p->cli->options->containers || p->cli->form == OUTPUT_NAME) {
		add_row(p, pod, state, age);
		return;
	}
	for (; container; container = container->next) {
		cJSON *joined = join_container(pod, container);

		add_row(p, joined, state, age);
		cJSON_Delete(joined);
	}
}

static bool add_pod(void *context, const cJSON *pod, double time, double held)
{
	struct usage_table *p = context;
	const char *name = document_text(pod, "name");
	enum row_state state;
	double age;

	(void)held;
	if (!name || !usage_tally_wants(&p->tally, name))
		return false;
	state = read_state(pod, time, &age);
	usage_tally_add(&p->tally, name, state, age);
	if (p->cli->options->output == OUTPUT_JSON || is_hidden(p, pod))
		return true;
	p->stale |= state != ROW_FRESH && state != ROW_APART;
	add_rows(p, pod, state, age);
	return true;
}

static void hide_columns(struct usage_table *p, const struct cli *cli)
{
	static const char *const running[] = {"Running", "-", NULL}, *const nothing[] = {"-", NULL};
	bool wide = cli->options->output == OUTPUT_WIDE;

	for (size_t i = 0; i < COLUMNS; i++) {
		bool shown = !columns[i].wide || wide;

		if (i == NAMESPACE)
			shown = p->namespaced;
		if (i == CONTAINER)
			shown = cli->options->containers;
		else if (cli->options->containers)
			shown &= !table_holds_only(p->table, i, nothing);
		if (i == P95)
			shown = cli->options->sort == BY_P95;
		if (i == AGE)
			shown |= p->stale;
		if (i == STATUS)
			shown = wide || !table_holds_only(p->table, i, running);
		if (i == CPU_KERNEL || i == MEMORY_KERNEL)
			shown = !table_holds_only(p->table, i, nothing);
		if (!shown)
			table_hide(p->table, i);
	}
	for (size_t i = 0; !p->known && i < sizeof(of_the_api) / sizeof(of_the_api[0]); i++)
		table_hide(p->table, of_the_api[i]);
	usage_table_hide_empty(p, &pods_kind);
}

static int finish(struct usage_table *p, struct cli *cli)
{
	hide_columns(p, cli);
	commands_print_table(cli, p->table, "pod");
	/* A namespace may well be empty. */
	if (cli->options->namespace && !cli->options->all_namespaces && cli->operand_count == 0 &&
	    usage_tally_total(&p->tally) == 0) {
		const char *selector = cli->options->selector;

		reason_set(&cli->reason, "no pod %s%s in namespace %s",
			   selector ? "with labels " : "is known", selector ? selector : "",
			   cli->options->namespace);
		return CLI_OK;
	}
	if (cli->options->node && cli->operand_count == 0 && usage_tally_total(&p->tally) == 0) {
		reason_set(&cli->reason, "no pod is known on node %.253s", cli->options->node);
		return CLI_STALE;
	}
	return usage_tally_exit(&p->tally, &cli->reason);
}

static char *list_path(const struct cli_options *o)
{
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/pods?limit=5000");
	if (o->namespace && !o->all_namespaces) {
		buf_add_str(&path, "&namespace=");
		client_escape(o->namespace, &path);
	}
	if (o->selector) {
		buf_add_str(&path, "&labelSelector=");
		client_escape(o->selector, &path);
	}
	if (o->node) {
		buf_add_str(&path, "&node=");
		client_escape(o->node, &path);
	}
	if (o->sort == BY_P95)
		buf_add_str(&path, "&peaks=true");
	return buf_take(&path, NULL);
}

const struct usage_kind pods_kind = {
	.what = "pod",
	.columns = columns,
	.column_count = COLUMNS,
	.spares = spares,
	.spare_count = sizeof(spares) / sizeof(spares[0]),
	.fields = fields,
	.field_count = sizeof(fields) / sizeof(fields[0]),
	.item = add_pod,
	.finish = finish,
};

static int run(struct cli *cli)
{
	char *path = list_path(cli->options);
	int code = usage_table_run(&pods_kind, cli, path);

	free(path);
	return code;
}

static const struct outline_example examples[] = {
	{"evenkeel pods --node node-7 --sort-by cpu", "Who uses the CPU of a node."},
	{"evenkeel pods -n shop --sort-by throttled",
	 "Which pods of a namespace their CPU limit slows down."},
	{"evenkeel pods -n shop --containers -o csv > shop.csv",
	 "Each container of a namespace, as data."},
	{0},
};
static const char *const terms[] = {"SIGMA",	  "THROTTLED", "OOM",	  "WORKSET",
				    "CPU-KERNEL", "BURST",     "HIGH",	  "WAITING",
				    "STALLED",	  "late",      "expired", NULL};

const struct command command_pods = {
	.name = "pods",
	.usage = "[NAME..]",
	.summary = "Show what each pod (or systemd unit) uses, against its limits",
	.details = "Shows what each pod uses; without Kubernetes, each systemd unit. CPU-REQ, "
		   "CPU-LIM, MEM-REQ and MEM-LIM are what the pod declares; what no Kubernetes API "
		   "knows has for its limits what the kernel enforces. \"none\" is no limit, "
		   "\"500m+\" none for some containers, \"-\" not known. THROTTLED and OOM are of "
		   "the last 5m. A name that ends in \"/\" is a slice, whose units have rows of "
		   "their own: only --all, -o wide or naming it shows it.",
	.examples = examples,
	.terms = terms,
	.specs = specs,
	.lists = true,
	.run = run,
};
