/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel pods: what each workload uses, against what it requests and may take. CPU-LIM
 * and MEM-LIM are what the pod declares, CPU-KERNEL and MEM-KERNEL what the kernel enforces where
 * that is something else; of a pod that no Kubernetes API knows the limits are the kernel's. Without Kubernetes the workloads are
 * systemd's units, and the slices that hold them; a slice would count its units a second time, so
 * the plain table leaves slices out unless one is named. How old a row is follows from its newest
 * interval and the list's time; what is not running has no age.
 */
#include "aggregator/cli/usage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "shared/mem.h"
#include "shared/units.h"

enum sort_key { BY_NAME, BY_CPU, BY_MEMORY, BY_THROTTLED, BY_REQUESTS, BY_WAITING, BY_OOM, BY_P95 };

static const char *const sort_words[] = {"name",    "cpu", "memory", "throttled", "requests",
					 "waiting", "oom", "p95",    NULL};
/* What has none is by arithmetic, and the name by nothing. */
static const struct usage_key sort_keys[] = {
	[BY_CPU] = {.at = USAGE_CPU},
	[BY_MEMORY] = {.at = USAGE_MEMORY},
	[BY_REQUESTS] = {USAGE_CPU, "requests.cpuMillicores", USAGE_WORKSET,
			 "requests.memoryBytes"},
	[BY_WAITING] = {.at = "contention.cpu", .other = "contention.memory"},
	[BY_OOM] = {.at = "contention.oomKills"},
	[BY_P95] = {0},
};
/* The table of --contention shows waiting for CPU alone. */
static const struct usage_key cpu_waiting = {.at = "contention.cpu"};

static const struct option_spec specs[] = {
	CLI_FLAG("all", 'a', all,
		 "Also show slices: \"name/\" contains units with rows of their own."),
	CLI_CHOICE("window", 0, window, NULL, "5m", cli_windows,
		   "Window of MEAN, SIGMA and CPU-MAX."),
	CLI_CHOICE("sort-by", 0, sort, "KEY", "name", sort_words,
		   "name, or greatest first: cpu, memory, throttled, requests (the larger share of "
		   "use in requests of CPU and memory), waiting (the larger of CPU and memory; "
		   "with --contention of CPU), oom, p95 (of the newest hour; in a column of its "
		   "own)."),
	CLI_REVERSE,
	CLI_TEXT("node", 0, node, "NODE", "Only pods on this node."),
	CLI_FLAG("containers", 0, containers,
		 "Print a row for each container, by its name, or by the start of its id without "
		 "the API: its newest use, the limits that the kernel enforces, and its waiting; "
		 "-o json always has containers."),
	CLI_FLAG("contention", 0, contention,
		 "Show how long each pod waited for CPU, and the neighbour that it likely waited "
		 "for, with the share of the waiting."),
	CLI_SELECTOR("pods"),
	{0},
};

/* As far as the API knows. */
static bool is_running(const cJSON *pod)
{
	const char *phase = document_text(pod, "phase");

	return !phase || strcmp(phase, "Running") == 0;
}

static bool is_slice(const cJSON *pod)
{
	return document_is(pod, "workload.kind", "Slice");
}

static bool is_known(const cJSON *pod)
{
	return document_at(pod, "limits") != NULL;
}

/* The 95th percentile of the newest hour that is known, by half minutes. */
static double newest_p95(const cJSON *pod)
{
	const cJSON *hour = document_first(pod, "hourlyPeaks.cpuMillicores");
	double newest = NAN;

	for (; hour; hour = hour->next)
		newest = cJSON_IsNumber(hour) ? hour->valuedouble : newest;
	return newest;
}

/* The share of periods, or of the 5 minutes that contention is of. */
static double throttled_key(const cJSON *pod)
{
	double ratio = document_number(pod, "contention.throttledRatio");

	return isnan(ratio) ? document_number(pod, "contention.throttledSeconds") / 300 : ratio;
}

/* --- cells ------------------------------------------------------------------------------------ */

static void cell_name(const struct row *r, const struct column *c)
{
	row_add(r, PAINT_PLAIN, true, "%s%s", document_text(r->item, c->at),
		is_slice(r->item) ? "/" : "");
}

/*
 * The name, where the API told it; else as crictl prints containers the first digits of the id;
 * without one the last part of its cgroup.
 */
static void cell_container(const struct row *r, const struct column *c)
{
	const char *name = document_text(r->item, c->at), *id = document_text(r->item, "id");
	const char *cgroup = document_text_or(r->item, "cgroup", "-");
	const char *slash = strrchr(cgroup, '/');

	if (name || !id)
		table_cell(r->table, PAINT_PLAIN, name ? name : slash ? slash + 1 : cgroup);
	else
		row_add(r, PAINT_PLAIN, true, "%.12s", id);
}

/* The phase, or that the API does not know it. */
static void cell_status(const struct row *r, const struct column *c)
{
	if (document_is_true(r->item, "unknownToApi"))
		table_cell(r->table, PAINT_WARN, "unknown");
	else
		table_cell(r->table, is_running(r->item) ? PAINT_PLAIN : PAINT_WARN,
			   document_text_or(r->item, c->at, "-"));
}

/* Of pods alone; null: nobody is named. */
static void cell_cause(const struct row *r, const struct column *c)
{
	const char *namespace = document_text_or(r->item, "contention.cause.namespace", "");
	const char *name = document_text_or(r->item, "contention.cause.name", "(system)");

	row_add(r, PAINT_WARN, !isnan(row_number(r, c->at)), "%s%s%s", namespace,
		namespace[0] ? "/" : "", name);
}

static void cell_p95(const struct row *r, const struct column *c)
{
	(void)c;
	row_add_units(r, PAINT_PLAIN, units_cpu, newest_p95(r->item));
}

/*
 * The sum of the containers that have a limit: "500m+" where others have none, "none" where all
 * have none. Of what no API knows, the limit is the kernel's.
 */
static void cell_declared(const struct row *r, const struct column *c)
{
	bool known = is_known(r->item), more;
	char kernel[64], text[UNITS_LEN];
	const char *at = known ? c->at : kernel;
	double amount;

	snprintf(kernel, sizeof(kernel), "kernelLimits%s", strchr(c->at, '.'));
	amount = row_number(r, at);
	more = known && !isnan(amount) && row_number(r, c->of) > 0;
	row_units_of(at)(amount, text);
	if (document_is_null(r->item, at))
		table_cell(r->table, PAINT_DIM, "none");
	else
		row_add(r, PAINT_PLAIN, true, "%s%s", text, more ? "+" : "");
}

/* The working set is what cannot be given back: near the limit, a kill is near. */
static void cell_workset(const struct row *r, const struct column *c)
{
	double bytes = row_number(r, c->at), limit = row_number(r, c->of);

	row_add_units(r, limit > 0 ? usage_pressure(bytes / limit) : PAINT_PLAIN, units_bytes,
		      bytes);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct column_paint resizes[] = {{"Deferred", PAINT_WARN},
					      {"Infeasible", PAINT_BAD},
					      {0}};

/* clang-format off */
static const struct column columns[] = {
	{"NAMESPACE", FORM_NAME, cell_namespace, .at = "namespace", .view = VIEW_BOTH},
	{"NAME", FORM_NAME, cell_name, .at = "name", .view = VIEW_BOTH},
	{"CONTAINER", FORM_NAME, cell_container, .at = "container", .view = VIEW_BOTH},
	{"NODE", FORM_NAME, cell_text, .at = "node", .spare = 4, .view = VIEW_BOTH},
	{"STATUS", FORM_LEFT, cell_status, .at = "phase", .of_api = true, .view = VIEW_BOTH},
	{"RESIZE", FORM_LEFT, cell_text, .at = "resize", .paints = resizes, .empty = columns_nothing, .of_api = true},
	{"CPU", FORM_RIGHT, cell_amount, .at = USAGE_CPU, .view = VIEW_BOTH},
	{"MEAN", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("mean"), .wide = true, .windowed = true},
	{"SIGMA", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("stddev"), .spare = 2},
	{"CPU-MAX", FORM_RIGHT, cell_amount, .at = USAGE_WINDOW("max"), .wide = true},
	{"P95(1h)", FORM_RIGHT, cell_p95, .at = NULL},
	{"CPU-REQ", FORM_RIGHT, cell_amount, .at = "requests.cpuMillicores", .spare = 6, .of_api = true},
	{"CPU-LIM", FORM_RIGHT, cell_declared, .at = "limits.cpuMillicores", .of = "unlimitedContainers.cpu", .spare = 8},
	{"CPU-KERNEL", FORM_RIGHT, cell_limit, .at = "limitMismatch.cpuMillicores.kernel", .empty = columns_unknown,
	 .of_api = true},
	{"BURST", FORM_RIGHT, usage_cell_micros, .at = "kernelLimits.cpuBurstMicroseconds", .empty = columns_nothing,
	 .wide = true},
	{"THROTTLED", FORM_RIGHT, usage_cell_throttled, .at = NULL, .view = VIEW_BOTH},
	{"CPU-WAITING", FORM_RIGHT, cell_share, .at = "contention.cpu", .view = VIEW_CONTENTION},
	{"LIKELY-CAUSE", FORM_NAME, cell_cause, .at = "contention.cause.share", .view = VIEW_CONTENTION},
	{"SHARE", FORM_RIGHT, cell_share, .at = "contention.cause.share", .view = VIEW_CONTENTION},
	{"MEMORY", FORM_RIGHT, cell_amount, .at = USAGE_MEMORY},
	{"MEM-REQ", FORM_RIGHT, cell_amount, .at = "requests.memoryBytes", .spare = 5, .of_api = true},
	{"MEM-LIM", FORM_RIGHT, cell_declared, .at = "limits.memoryBytes", .of = "unlimitedContainers.memory", .spare = 7},
	{"MEM-KERNEL", FORM_RIGHT, cell_limit, .at = "limitMismatch.memoryBytes.kernel", .empty = columns_unknown,
	 .of_api = true},
	{"HIGH", FORM_RIGHT, cell_limit, .at = "kernelLimits.memoryHighBytes", .empty = columns_nothing, .wide = true},
	{"WORKSET", FORM_RIGHT, cell_workset, .at = USAGE_WORKSET, .of = "kernelLimits.memoryBytes", .spare = 1},
	{"SWAP", FORM_RIGHT, cell_amount, .at = USAGE_SWAP, .empty = columns_nothing, .wide = true},
	{"PIDS", FORM_RIGHT, usage_cell_count_of, .at = USAGE_PIDS, .of = "kernelLimits.pids", .empty = columns_nothing,
	 .wide = true},
	{"OOM", FORM_RIGHT, cell_faults, .at = "contention.oomKills", .spare = 3},
	{"WAITING", FORM_RIGHT, usage_cell_two_shares, .at = "contention.cpu", .of = "contention.memory", .wide = true},
	{"STALLED", FORM_RIGHT, usage_cell_two_shares, .at = "contention.cpuStalledRatio", .of = "contention.memoryStalledRatio",
	 .empty = columns_nothing, .wide = true},
	{"AGE", FORM_LEFT, usage_cell_age, .at = NULL, .view = VIEW_BOTH},
	{"QOS", FORM_LEFT, cell_text, .at = "qosClass", .wide = true},
	{"WORKLOAD", FORM_NAME, cell_workload, .at = "workload", .wide = true, .of_api = true},
	{0},
};
/* clang-format on */

static bool is_shown(const struct usage_table *p, const struct column *c, size_t index)
{
	static const char *const running[] = {"Running", "-", NULL};
	const struct cli_options *o = p->cli->options;
	bool wide = o->output == OUTPUT_WIDE;

	if (c->view != VIEW_BOTH && (c->view == VIEW_CONTENTION) != o->contention)
		return false;
	if (c->cell == cell_namespace)
		return p->namespaced;
	if (c->cell == cell_container)
		return o->containers;
	if (c->cell == cell_p95)
		return o->sort == BY_P95;
	if (c->cell == cell_status)
		return wide || !table_holds_only(p->row.table, index, running);
	if (c->cell == usage_cell_age && p->stale)
		return true;
	if (c->cell == usage_cell_age && !wide)
		return false;
	return (wide || !c->wide) &&
	       !(o->containers && table_holds_only(p->row.table, index, columns_unknown));
}

/* clang-format off */
#define WINDOW_FIELDS(w) \
	{"cpu_mean_" w "_millicores", "usage.cpuMillicores.windows." w ".mean"}, \
	{"cpu_stddev_" w "_millicores", "usage.cpuMillicores.windows." w ".stddev"}, \
	{"cpu_max_" w "_millicores", "usage.cpuMillicores.windows." w ".max"}
/* clang-format on */

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
	{"resize", "resize"},
	{"likely_cause_namespace", "contention.cause.namespace"},
	{"likely_cause", "contention.cause.name"},
	{"likely_cause_share", "contention.cause.share"},
	{0},
};

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

static void add_row(struct usage_table *p, const cJSON *pod, enum row_state state, double age)
{
	const char *namespace = document_text_or(pod, "namespace", "");
	char *name = mem_printf("%s\n%s", namespace, document_text(pod, "name"));
	int sort = p->cli->options->sort;
	bool cpu_alone = sort == BY_WAITING && p->cli->options->contention;
	const struct usage_key *by = cpu_alone ? &cpu_waiting : &sort_keys[sort];
	double key = sort == BY_P95	    ? newest_p95(pod)
		     : sort == BY_THROTTLED ? throttled_key(pod)
					    : usage_key_of(p->cli, pod, by);

	p->namespaced |= namespace[0] != '\0';
	p->known |= is_known(pod);
	usage_table_add(p, pod, name, key, state, age);
	free(name);
}

/* Names are those of pods, whatever is in them. */
static void add_rows(struct usage_table *p, const cJSON *pod, enum row_state state, double age)
{
	const cJSON *container = document_first(pod, "containers");

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

static bool add_pod(const struct list *l, const cJSON *pod)
{
	struct usage_table *p = l->context;
	const struct cli_options *o = p->cli->options;
	const char *name = document_text(pod, "name");
	enum row_state state;
	double age;

	if (!name || !usage_tally_wants(&p->tally, name))
		return false;
	state = read_state(pod, l->time, &age);
	usage_tally_add(&p->tally, name, state, age);
	/* Plain tables leave out what counts twice; what was named, or asked for with all detail, stays. */
	if (o->output == OUTPUT_JSON ||
	    (o->output == OUTPUT_TABLE && is_slice(pod) && !o->all && p->cli->operand_count == 0))
		return true;
	p->stale |= state != ROW_FRESH && state != ROW_APART;
	add_rows(p, pod, state, age);
	return true;
}

/* A namespace may well be empty. */
static int judge_none(struct cli *cli)
{
	const struct cli_options *o = cli->options;

	if (o->namespace && !o->all_namespaces)
		return error_fail(&cli->reason, CLI_OK, "no pod %s%s in namespace %s",
				  o->selector ? "with labels " : "is known",
				  o->selector ? o->selector : "", o->namespace);
	if (o->node)
		return error_fail(&cli->reason, CLI_STALE, "no pod is known on node %.253s",
				  o->node);
	return -1;
}

const struct usage_kind pods_kind = {
	.what = "pod",
	.columns = columns,
	.fields = fields,
	.item = add_pod,
	.is_shown = is_shown,
	.judge_none = judge_none,
};

static int run(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/pods?limit=5000");
	if (!o->all_namespaces)
		client_add_parameter(&path, "namespace", o->namespace);
	client_add_parameter(&path, "labelSelector", o->selector);
	client_add_parameter(&path, "node", o->node);
	if (o->sort == BY_P95)
		client_add_parameter(&path, "peaks", "true");
	return usage_table_run(&pods_kind, cli, &path);
}

const struct command command_pods = {
	.name = "pods",
	.usage = "[NAME..]",
	.summary = "Show use, requests and limits of each pod (or systemd unit)",
	.details = "Shows one row for each pod; without Kubernetes, for each systemd unit. "
		   "CPU-REQ, CPU-LIM, MEM-REQ and MEM-LIM are declared by the pod; without the "
		   "Kubernetes API, limits are those that the kernel enforces. \"none\": no limit; "
		   "\"500m+\": some containers have no limit; \"-\": not known. THROTTLED and OOM "
		   "are of the last 5m. A name that ends in \"/\" is a slice, whose units have "
		   "rows of their own: it is shown with --all or -o wide, or by its name.",
	.examples = {{"evenkeel pods --node node-7 --sort-by cpu", "Pods of a node by CPU use."},
		     {"evenkeel pods -n shop --sort-by throttled",
		      "Pods of a namespace that their CPU limit slows down."},
		     {"evenkeel pods -n shop --containers -o csv > shop.csv",
		      "Each container of a namespace, as data."},
		     {"evenkeel pods -A --contention --sort-by waiting",
		      "Pods that wait for CPU, and whom they likely wait for."}},
	.terms = {"SIGMA", "RESIZE", "THROTTLED", "OOM", "WORKSET", "CPU-KERNEL", "BURST", "HIGH",
		  "WAITING", "CPU-WAITING", "LIKELY-CAUSE", "STALLED", "late", "expired"},
	.specs = specs,
	.lists = true,
	.run = run,
};
