/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel scores: what each node is worth for a pod, best first. The plugins that the first node
 * was scored by are the columns, under short names, so that all of them fit in 80 columns; FITS is
 * there where the server knows the cluster's objects. --explain prints the arithmetic instead: for
 * each node and plugin every input and term in the order it entered, so that a score can be
 * followed by hand.
 */
#include "aggregator/cli/cmd_scores.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/plugin_option.h"
#include "aggregator/cli/pod_file.h"
#include "aggregator/cli/usage_row.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/table.h"
#include "shared/units.h"

enum sort_key { BY_SCORE, BY_NAME };

enum { EXPLAIN_INDENT = 4 };

static const char *const sort_keys[] = {"score", "name", NULL};
/* For completion; the server knows them by itself. */
static const char *const plugin_words[] = {"TargetLoadPacking",
					   "LoadVariationRiskBalancing",
					   "LowRiskOverCommitment",
					   "Peaks",
					   "NodeResourcesAllocatable",
					   "LimitAware",
					   NULL};
static const char *const variant_words[] = {"corrected", "upstream", "kep", NULL};

static const struct option_spec specs[] = {
	{"pod", 0, OPTION_STRING, offsetof(struct cli_options, pod), "FILE", NULL, 0, 0, NULL,
	 "The pod to place, or a Deployment, StatefulSet, DaemonSet, Job, CronJob or ReplicaSet "
	 "for the pod of its template, in YAML or JSON; \"-\" reads standard input. Without it a "
	 "pod that requests nothing."},
	{"plugin", 'p', OPTION_LIST, offsetof(struct cli_options, plugins), "NAME[:ARGS]", NULL, 0,
	 0, plugin_words,
	 "Score by this plugin; repeat for several. ARGS are its arguments by upstream's names, as "
	 "ARGUMENT=VALUE,.. or as an object {..} in JSON or YAML. Without it those of --blend, "
	 "else "
	 "TargetLoadPacking, LoadVariationRiskBalancing and LimitAware."},
	{"blend", 0, OPTION_STRING, offsetof(struct cli_options, blend), "PLUGIN=N,..", NULL, 0, 0,
	 NULL, "Weights of the plugins in the score, such as TargetLoadPacking=3,LimitAware=1."},
	{"variant", 0, OPTION_STRING, offsetof(struct cli_options, variant), "NAME", NULL, 0, 0,
	 variant_words, "Which rules: corrected (the server's default), upstream, or kep."},
	{"explain", 0, OPTION_FLAG, offsetof(struct cli_options, explain), NULL, NULL, 0, 0, NULL,
	 "Print every input and term."},
	{"sort-by", 0, OPTION_CHOICE, offsetof(struct cli_options, sort), NULL, "score", 0, 0,
	 sort_keys, "Order of the nodes."},
	{0},
};

/* --- the request ------------------------------------------------------------------------------ */

static void write_nodes(struct jsonw *w, const struct cli *cli)
{
	if (cli->operand_count == 0)
		return;
	jsonw_key(w, "nodes");
	jsonw_array_open(w);
	for (size_t i = 0; i < cli->operand_count; i++)
		jsonw_string(w, cli->operands[i]);
	jsonw_array_close(w);
}

/* The length of a number above 0 at text, as JSON writes it; 0: there is none. */
static size_t weight_len(const char *text)
{
	size_t digits = strspn(text, "0123456789"), len = digits;

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	if (digits == 0 || text[len - 1] == '.' || (digits > 1 && text[0] == '0'))
		return 0;
	return strtod(text, NULL) > 0 ? len : 0;
}

/* One PLUGIN=N of the list. */
static int write_weight(struct jsonw *w, const char *text, size_t len, struct reason *reason)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : 0;
	size_t number_len = equals ? weight_len(equals + 1) : 0;
	char *name;

	if (!name_len || !number_len || name_len + 1 + number_len != len) {
		reason_set(reason, "--blend: \"%.*s\" is not of the form PLUGIN=N with N above 0",
			   (int)(len < 200 ? len : 200), text);
		return -EINVAL;
	}
	name = mem_strndup(text, name_len);
	jsonw_key(w, name);
	free(name);
	buf_add(w->out, equals + 1, number_len);
	w->comma = true;
	return 0;
}

static int write_blend(struct jsonw *w, const char *blend, struct reason *reason)
{
	jsonw_key(w, "blend");
	jsonw_object_open(w);
	for (const char *at = blend;; at++) {
		size_t len = strcspn(at, ",");

		if (write_weight(w, at, len, reason))
			return -EINVAL;
		at += len;
		if (!*at)
			break;
	}
	jsonw_object_close(w);
	return 0;
}

int scores_write_request(const struct cli *cli, const char *pod, size_t pod_len, struct buf *out,
			 struct reason *reason)
{
	const struct cli_options *o = cli->options;
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_object_open(&w);
	jsonw_key(&w, "pod");
	buf_add(out, pod, pod_len);
	w.comma = true;
	write_nodes(&w, cli);
	if (plugin_option_write(&o->plugins, &w, reason))
		return -EINVAL;
	if (o->blend && write_blend(&w, o->blend, reason))
		return -EINVAL;
	if (o->variant)
		jsonw_key_string(&w, "variant", o->variant);
	if (o->explain)
		jsonw_key_bool(&w, "explain", true);
	else if (o->pod && *o->pod)
		jsonw_key_bool(&w, "fits", true);
	jsonw_object_close(&w);
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

/* The rungs the plugins used, each once: "window 15m". */
static void read_rungs(const cJSON *item, struct buf *out)
{
	const cJSON *plugin;

	buf_clear(out);
	buf_add_str(out, "");
	for (plugin = document_first(document_at(item, "plugins")); plugin; plugin = plugin->next) {
		const char *rung = document_text(plugin, "rung");

		if (rung && !strstr(out->data, rung))
			buf_printf(out, "%s%s", out->len ? ", " : "", rung);
	}
	if (!out->len)
		buf_add_char(out, '-');
}

/* Only what says it is not fresh is not: "window 15m", "since start". */
static enum row_state read_state(const char *rungs)
{
	static const struct {
		const char *begin;
		enum row_state state;
	} words[] = {{"late", ROW_LATE},
		     {"allocation", ROW_NONE},
		     {"expired", ROW_EXPIRED},
		     {"none", ROW_NONE},
		     {"-", ROW_NONE}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(rungs, words[i].begin, strlen(words[i].begin)) == 0)
			return words[i].state;
	return ROW_FRESH;
}

static void add_score(struct table *t, double score)
{
	char text[32];

	snprintf(text, sizeof(text), "%.0f", score);
	table_cell(t, PAINT_PLAIN, isnan(score) ? "-" : text);
}

static const cJSON *find_plugin(const cJSON *item, const char *name)
{
	const cJSON *plugin;

	for (plugin = document_first(document_at(item, "plugins")); plugin; plugin = plugin->next) {
		const char *other = document_text(plugin, "name");

		if (name && other && strcmp(name, other) == 0)
			return plugin;
	}
	return NULL;
}

/* As the heading of a column of at most three digits. */
static const char *short_name(const char *plugin)
{
	static const char *const names[][2] = {
		{"TargetLoadPacking", "TLP"},	       {"LoadVariationRiskBalancing", "LVRB"},
		{"LowRiskOverCommitment", "LROC"},     {"Peaks", "PEAKS"},
		{"NodeResourcesAllocatable", "ALLOC"}, {"LimitAware", "LIMITS"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (plugin && strcmp(names[i][0], plugin) == 0)
			return names[i][1];
	return plugin ? plugin : "-";
}

/* Whether the answer tells if the pod fits; it does where the cluster's objects are known. */
static bool tells_fits(const cJSON *item)
{
	return cJSON_IsBool(document_at(item, "fits"));
}

static bool is_unfit(const cJSON *item)
{
	return cJSON_IsFalse(document_at(item, "fits"));
}

static void add_fits(struct table *t, const cJSON *item)
{
	const cJSON *fits = document_at(item, "fits");

	if (!cJSON_IsBool(fits))
		table_cell(t, PAINT_PLAIN, "-");
	else if (cJSON_IsTrue(fits))
		table_cell(t, PAINT_PLAIN, "yes");
	else
		table_cell(t, PAINT_BAD, "no");
}

static const struct csv_field fields[] = {
	{"node", "node"},     {"score", "score"},	   {"fits", "fits"},
	{"reason", "reason"}, {"refused_by", "fitReason"},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static void add_data_columns(const struct cli *cli, struct table *t, const cJSON *plugins)
{
	const cJSON *plugin;

	csv_columns(cli, t, fields, FIELDS);
	for (plugin = document_first(plugins); plugin; plugin = plugin->next) {
		const char *name = document_text_or(plugin, "name", "-");
		char *score = mem_printf("%s_score", name), *rung = mem_printf("%s_rung", name);

		csv_column(cli, t, score);
		csv_column(cli, t, rung);
		free(score);
		free(rung);
	}
}

static void add_data_cells(const struct cli *cli, struct table *t, const cJSON *item,
			   const cJSON *plugins)
{
	const cJSON *plugin;

	csv_cells(cli, t, item, fields, FIELDS);
	for (plugin = document_first(plugins); plugin; plugin = plugin->next) {
		const cJSON *own = find_plugin(item, document_text(plugin, "name"));

		csv_number(cli, t, document_number(own, "score"));
		csv_text(cli, t, document_text(own, "rung"));
	}
}

static struct table *start_table(const cJSON *plugins, bool fits, bool wide)
{
	struct table *t = table_new();
	const cJSON *plugin;

	table_column(t, "NODE", FORM_NAME);
	table_column(t, "SCORE", FORM_RIGHT);
	if (fits)
		table_column(t, "FITS", FORM_LEFT);
	for (plugin = document_first(plugins); plugin; plugin = plugin->next)
		table_column(t, short_name(document_text(plugin, "name")), FORM_RIGHT);
	table_column(t, "RUNG", FORM_LEFT);
	if (wide)
		table_column(t, "REASON", FORM_LEFT);
	if (wide && fits)
		table_column(t, "REFUSED BY", FORM_LEFT);
	return t;
}

static void add_row(struct table *t, const cJSON *item, const cJSON *plugins, const char *rungs,
		    bool fits, bool wide)
{
	const char *node = document_text(item, "node"), *reason = document_text(item, "reason");
	const char *refusal = document_text(item, "fitReason");
	const enum table_paint paints[] = {
		[ROW_FRESH] = PAINT_PLAIN,
		[ROW_LATE] = PAINT_WARN,
		[ROW_EXPIRED] = PAINT_BAD,
		[ROW_NONE] = PAINT_BAD,
	};
	const cJSON *plugin;

	table_cell(t, PAINT_PLAIN, node ? node : "-");
	add_score(t, document_number(item, "score"));
	if (fits)
		add_fits(t, item);
	for (plugin = document_first(plugins); plugin; plugin = plugin->next)
		add_score(t, document_number(find_plugin(item, document_text(plugin, "name")),
					     "score"));
	table_cell(t, paints[read_state(rungs)], rungs);
	if (wide)
		table_cell(t, PAINT_PLAIN, reason ? reason : "-");
	if (wide && fits)
		table_cell(t, PAINT_PLAIN, refusal ? refusal : "-");
}

static void print_table(struct cli *cli, cJSON *const *items, size_t count)
{
	bool wide = cli->options->output == OUTPUT_WIDE;
	const cJSON *plugins = count ? document_at(items[0], "plugins") : NULL;
	bool fits = count && tells_fits(items[0]);
	struct table *t = start_table(plugins, fits, wide);
	struct buf rungs = BUF_INIT;

	add_data_columns(cli, t, plugins);
	for (size_t i = 0; i < count; i++) {
		const char *node = document_text(items[i], "node");

		read_rungs(items[i], &rungs);
		table_row(t, node ? node : "");
		/* They come in order already. */
		table_key(t, -(double)i);
		add_row(t, items[i], plugins, rungs.data, fits, wide);
		add_data_cells(cli, t, items[i], plugins);
	}
	commands_print_table(cli, t, "node");
	table_free(t);
	buf_fini(&rungs);
}

/* --- the explanation -------------------------------------------------------------------------- */

/* At most 6 decimals, without trailing zeros; bytes also as people read them. */
static void print_value(double value, const char *unit, struct buf *number, struct buf *unit_text)
{
	char human[UNITS_LEN];
	struct jsonw w;

	buf_clear(number);
	buf_clear(unit_text);
	jsonw_init(&w, number);
	if (isfinite(value))
		jsonw_fixed(&w, value, 6);
	else
		buf_add_char(number, '-');
	buf_add_str(unit_text, unit);
	if (strcmp(unit, "bytes") == 0) {
		units_bytes(value, human);
		buf_printf(unit_text, " (%s)", human);
	}
}

static void explain_terms(const struct cli *cli, const cJSON *plugin, struct buf *out)
{
	struct table_style style = {.headers = false, .color = cli->color};
	struct buf number = BUF_INIT, unit_text = BUF_INIT;
	struct table *t = table_new();
	const cJSON *term;

	table_column(t, "", FORM_LEFT);
	table_column(t, "", FORM_RIGHT);
	table_column(t, "", FORM_LEFT);
	for (term = document_first(document_at(plugin, "terms")); term; term = term->next) {
		const char *name = document_text(term, "name"), *unit = document_text(term, "unit");
		char *indented = mem_printf("%*s%s", EXPLAIN_INDENT, "", name ? name : "-");

		print_value(document_number(term, "value"), unit ? unit : "", &number, &unit_text);
		table_row(t, "");
		table_cell(t, PAINT_PLAIN, indented);
		table_cell(t, PAINT_PLAIN, number.data);
		table_cell(t, PAINT_DIM, unit_text.data);
		free(indented);
	}
	table_print(t, &style, out);
	table_free(t);
	buf_fini(&number);
	buf_fini(&unit_text);
}

static void explain_plugin(const struct cli *cli, const cJSON *plugin, struct buf *out)
{
	const char *name = document_text(plugin, "name"),
		   *variant = document_text(plugin, "variant"),
		   *rung = document_text(plugin, "rung"), *reason = document_text(plugin, "reason");
	char *line = mem_printf("  %s %.0f  (%s, %s)", name ? name : "-",
				document_number(plugin, "score"), variant ? variant : "-",
				rung ? rung : "-");

	lines_add(cli, line, out);
	free(line);
	if (reason)
		lines_add_wrapped(cli, EXPLAIN_INDENT, "", reason, out);
	explain_terms(cli, plugin, out);
}

static void explain_fits(const struct cli *cli, const cJSON *item, struct buf *out)
{
	const char *refusal = document_text(item, "fitReason");
	char *line;

	if (!tells_fits(item))
		return;
	line = refusal ? mem_printf("does not fit: %s", refusal) : mem_strdup("fits");
	lines_add_wrapped(cli, EXPLAIN_INDENT, "", line, out);
	free(line);
}

/* "The pod fits on 3 of 5 nodes; refused by NodeResourcesFit on 1, TaintToleration on 1." */
static void explain_counts(struct cli *cli, const cJSON *doc)
{
	double fits = document_number(doc, "fits"), all = fits;
	const cJSON *refused = document_at(doc, "refused");
	struct buf filters = BUF_INIT;
	char *line;

	if (isnan(fits))
		return;
	buf_add_str(&filters, "");
	for (const cJSON *item = refused ? refused->child : NULL; item; item = item->next) {
		buf_printf(&filters, "%s%s on %.0f", filters.len ? ", " : "; refused by ",
			   item->string ? item->string : "-", item->valuedouble);
		all += item->valuedouble;
	}
	line = mem_printf("The pod fits on %.0f of %.0f nodes%s.", fits, all, filters.data);
	lines_add(cli, line, &cli->out);
	buf_add_char(&cli->out, '\n');
	free(line);
	buf_fini(&filters);
}

static void explain_node(struct cli *cli, const cJSON *item)
{
	const char *node = document_text(item, "node");
	char *line =
		mem_printf("%s  score %.0f", node ? node : "-", document_number(item, "score"));
	const cJSON *plugin;

	lines_add(cli, line, &cli->out);
	free(line);
	explain_fits(cli, item, &cli->out);
	for (plugin = document_first(document_at(item, "plugins")); plugin; plugin = plugin->next)
		explain_plugin(cli, plugin, &cli->out);
}

static void explain_expected(struct cli *cli, const cJSON *doc)
{
	const cJSON *use = document_at(doc, "expected");
	char cpu[UNITS_LEN], high[UNITS_LEN], memory[UNITS_LEN], *line;

	if (!use)
		return;
	units_cpu(document_number(use, "cpuMillicores"), cpu);
	units_cpu(document_number(use, "highCpuMillicores"), high);
	units_bytes(document_number(use, "memoryBytes"), memory);
	line = mem_printf("The pod is expected to use CPU %s (by %s; pods are spread by %s) and "
			  "memory %s.",
			  cpu, document_text(use, "source"), high, memory);
	lines_add(cli, line, &cli->out);
	buf_add_char(&cli->out, '\n');
	free(line);
}

static void print_explanation(struct cli *cli, const cJSON *doc, cJSON *const *items, size_t count)
{
	size_t most = cli->options->limit > 0 ? (size_t)cli->options->limit : count;

	explain_expected(cli, doc);
	explain_counts(cli, doc);

	for (size_t i = 0; i < count && i < most; i++) {
		if (i)
			buf_add_char(&cli->out, '\n');
		explain_node(cli, items[i]);
	}
}

/* --- both ------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	const char *x = document_text(*(cJSON *const *)a, "node"),
		   *y = document_text(*(cJSON *const *)b, "node");

	return strcmp(x ? x : "", y ? y : "");
}

/* Nodes where the pod fits, or nobody knows, come first; greatest scores first, none last. */
static int compare_scores(const void *a, const void *b)
{
	bool p = is_unfit(*(cJSON *const *)a), q = is_unfit(*(cJSON *const *)b);
	double x = document_number(*(cJSON *const *)a, "score"),
	       y = document_number(*(cJSON *const *)b, "score");

	if (p != q)
		return p ? 1 : -1;
	if (isnan(x) != isnan(y))
		return isnan(x) ? 1 : -1;
	if (x != y && !isnan(x))
		return x > y ? -1 : 1;
	return compare_names(a, b);
}

/* Of nodes that were named, the first where the pod does not fit. */
static int check_fits(struct cli *cli, cJSON *const *items, size_t count)
{
	for (size_t i = 0; cli->operand_count && i < count; i++)
		if (is_unfit(items[i])) {
			reason_set(&cli->reason, "the pod does not fit on node \"%s\": %s",
				   document_text_or(items[i], "node", "-"),
				   document_text_or(items[i], "fitReason", "-"));
			return CLI_REFUSED;
		}
	return CLI_OK;
}

static int check_states(struct cli *cli, cJSON *const *items, size_t count)
{
	struct buf rungs = BUF_INIT;
	struct usage_tally tally;
	int code;

	usage_tally_init(&tally, cli, "node");
	for (size_t i = 0; i < count; i++) {
		const char *node = document_text(items[i], "node");

		read_rungs(items[i], &rungs);
		if (node)
			usage_tally_add(&tally, node, read_state(rungs.data), NAN);
	}
	code = usage_tally_exit(&tally, &cli->reason);
	usage_tally_fini(&tally);
	buf_fini(&rungs);
	return code;
}

int scores_render(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = cJSON_ParseWithLength(json, len), *item, **items;
	const cJSON *list = document_at(doc, "items");
	size_t count = 0;
	int code;

	if (!cJSON_IsArray(list)) {
		cJSON_Delete(doc);
		reason_set(&cli->reason, "the answer is not a JSON list; is that an "
					 "evenkeel-aggregator?");
		return CLI_ERROR;
	}
	items = mem_zalloc((size_t)cJSON_GetArraySize(list), sizeof(cJSON *));
	for (item = document_first(list); item; item = item->next)
		items[count++] = item;
	if (count > 1)
		qsort(items, count, sizeof(cJSON *),
		      cli->options->sort == BY_NAME ? compare_names : compare_scores);
	if (cli->options->output == OUTPUT_JSON) {
		buf_add(&cli->out, json, len);
		if (!len || json[len - 1] != '\n')
			buf_add_char(&cli->out, '\n');
	} else if (cli->options->explain) {
		print_explanation(cli, doc, items, count);
	} else {
		print_table(cli, items, count);
	}
	code = check_fits(cli, items, count);
	if (code == CLI_OK)
		code = check_states(cli, items, count);
	free(items);
	cJSON_Delete(doc);
	return code;
}

static int run(struct cli *cli)
{
	const char *file = cli->options->pod;
	struct buf pod = BUF_INIT, request = BUF_INIT, answer = BUF_INIT;
	int rc = 0, code = CLI_ERROR;

	if (cli->options->watch_ns && file && strcmp(file, "-") == 0) {
		reason_set(&cli->reason,
			   "--watch cannot read --pod - again and again; name a file");
		return CLI_USAGE;
	}
	if (file && file[0])
		rc = pod_file_read(file, &pod, &cli->reason);
	else
		buf_add_str(&pod, "{\"spec\":{\"containers\":[]}}");
	if (rc == 0) {
		rc = scores_write_request(cli, pod.data, pod.len, &request, &cli->reason);
		code = rc ? CLI_USAGE : CLI_ERROR;
	}
	if (rc == 0) {
		rc = client_post(cli->client, "/v1/scores", request.data, request.len, &answer,
				 &cli->reason);
		code = client_exit(rc);
	}
	if (rc == 0)
		code = scores_render(cli, answer.data, answer.len);
	buf_fini(&pod);
	buf_fini(&request);
	buf_fini(&answer);
	return code;
}

static const struct outline_example examples[] = {
	{"evenkeel scores --pod web.yaml",
	 "Where a pod, or a pod of a Deployment, would run best."},
	{"evenkeel scores --pod web.yaml --explain node-7",
	 "Every term of the arithmetic for one node."},
	{"evenkeel scores --pod web.yaml --snapshot dump.json --usage watcher.json",
	 "The same from files, without a server."},
	{0},
};
static const char *const terms[] = {"RUNG", "blend", "FITS", "late", "expired", "variant", NULL};

const struct command command_scores = {
	.name = "scores",
	.usage = "[NODE..]",
	.summary = "Show what each node is worth for a pod, and why",
	.details = "Scores nodes for a pod from 0 to 100, best first, by each plugin and blended. "
		   "Columns: TLP TargetLoadPacking, LVRB LoadVariationRiskBalancing, LROC "
		   "LowRiskOverCommitment, PEAKS Peaks, ALLOC NodeResourcesAllocatable, LIMITS "
		   "LimitAware. Arguments look like --plugin "
		   "TargetLoadPacking:targetUtilization=50,defaultRequestsMultiplier=2, with a dot "
		   "for what is nested (defaultRequests.cpu=500m), or like --plugin "
		   "'NodeResourcesAllocatable:{mode: Most, resources: [{name: cpu, weight: 1}]}'. "
		   "LimitAware's resources are cpu, memory, ephemeral-storage, hugepages-SIZE and "
		   "extended ones; its init: ignore leaves init containers out. "
		   "-o wide and --explain name the first filter that refuses. Exits 3 if the pod "
		   "does not fit on a node that is named.",
	.examples = examples,
	.terms = terms,
	.specs = specs,
	.names = "NODE",
	.lists = true,
	.run = run,
};
