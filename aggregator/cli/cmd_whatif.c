/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel whatif: a copy of the cluster is changed, and compared with the cluster: by a few figures,
 * or by the lines of another command that differ.
 *
 * Exit status: 0; 1 if the server cannot be reached; 2 for changes that cannot be made and commands
 * that cannot be run; the command's own where it fails before the change.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/answer.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/pages.h"
#include "shared/array.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/yaml_json.h"

enum { FILE_MOST = 16 << 20, DEPTH_MOST = 16 };

/* clang-format off */
#define CLI_LIST(name, member, value, help) \
	CLI_OPTION(name, 0, OPTION_LIST, member, value, NULL, NULL, help)

static const struct option_spec specs[] = {
	CLI_LIST("remove", changes.remove, "NODE",
		 "Remove a node; pods that a controller replaces become pending."),
	CLI_LIST("add", changes.add, "NODES",
		 "Add nodes: 3xNODE are three like that one, with its DaemonSets' pods; 3xcpu=8,memory=32Gi are three "
		 "with that allocatable."),
	CLI_LIST("cordon", changes.cordon, "NODE", "Cordon a node."),
	CLI_LIST("taint", changes.taint, "TAINT",
		 "NODE:KEY[=VALUE]:EFFECT adds a taint, NODE:KEY- and NODE:KEY:EFFECT- remove it. No pod is evicted."),
	CLI_LIST("scale", changes.scale, "SCALE",
		 "NAMESPACE/WORKLOAD=N sets the number of pods of a Deployment, StatefulSet or other controller; "
		 "NAMESPACE/KIND/WORKLOAD=N where kinds share a name."),
	CLI_LIST("resize", changes.resize, "REQUESTS",
		 "NAMESPACE/WORKLOAD=[CONTAINER/]cpu:200m,memory:1Gi sets requests of its pods, limits.memory:1Gi "
		 "limits; the name as for --scale."),
	CLI_LIST("apply", changes.apply, "FILE",
		 "Add the objects of a YAML or JSON file, or replace those of the same names."),
	CLI_LIST("set", settings, "OPTION=VALUE",
		 "An option of COMMAND for the run after the change: drain-cpu-cap=0.7."),
	CLI_TEXT("scenarios", 0, scenarios, "FILE",
		 "A YAML file with a list of scenarios, each with a name and changes: {name: small, remove: [a, b]}."),
	{0},
};
/* clang-format on */

/* --- figures ---------------------------------------------------------------------------------- */

/* As a whole number: below 1% is 0%. */
static void cell_percent(const struct row *r, const struct column *c)
{
	double share = row_number(r, c->at);

	row_add(r, PAINT_PLAIN, !isnan(share), "%.0f%%", 100 * share);
}

/* clang-format off */
static const struct column columns[] = {
	{"SCENARIO", FORM_NAME, cell_text, .at = "name"},
	{"NODES", FORM_RIGHT, cell_count, .at = "nodes"},
	{"PODS", FORM_RIGHT, cell_count, .at = "pods"},
	{"PENDING-PODS", FORM_RIGHT, cell_count, .at = "pendingPods"},
	/* Pending pods that fit no node, each judged alone. */
	{"UNSCHEDULABLE", FORM_RIGHT, cell_faults, .at = "unschedulablePods"},
	/* Nodes whose pods request more than the allocatable. */
	{"OVERCOMMITTED", FORM_RIGHT, cell_faults, .at = "overcommittedNodes"},
	{"CPU-REQ%", FORM_RIGHT, cell_percent, .at = "cpuRequestedShare"},
	{"MEM-REQ%", FORM_RIGHT, cell_percent, .at = "memoryRequestedShare"},
	{"CPU-MEAN%", FORM_RIGHT, cell_percent, .at = "cpuMeanShare"},
	{"WORKSET-MEAN%", FORM_RIGHT, cell_percent, .at = "workingSetMeanShare"},
	{"DRAIN", FORM_RIGHT, cell_count, .at = "drainNow"},
	{"UNNEEDED", FORM_RIGHT, cell_count, .at = "unneeded"},
	{"SLACK", FORM_RIGHT, cell_count, .at = "slackWanted"},
	{"PLACED", FORM_RIGHT, cell_count, .at = "slackPlaced"},
	{0},
};
/* clang-format on */

/* Unknown ones are left out. */
static void add_figure(cJSON *figures, const char *key, double value)
{
	if (!isnan(value))
		cJSON_AddNumberToObject(figures, key, value);
}

/* How many nodes would take the pod; NaN: it cannot be asked about. */
static double count_fits(struct client *client, const cJSON *pod)
{
	cJSON *request = cJSON_CreateObject(), *doc = NULL;
	struct error ignored;
	double fits;

	cJSON_AddItemReferenceToObject(request, "pod", (cJSON *)pod);
	client_ask(client, "/v1/fit", request, &doc, &ignored);
	fits = document_number(doc, "fits");
	cJSON_Delete(doc);
	return fits;
}

/* Whether nodes take both or neither: copies of a pod differ in names and times alone. */
static bool fit_alike(const cJSON *a, const cJSON *b)
{
	static const char *const members[] = {
		"spec",
		"metadata.namespace",
		"metadata.labels",
		"metadata.annotations",
		"metadata.ownerReferences",
		"status.nominatedNodeName",
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const cJSON *x = document_at(a, members[i]), *y = document_at(b, members[i]);

		if ((x || y) && !cJSON_Compare(x, y, true))
			return false;
	}
	return a != NULL;
}

/* Copies of a pod stand behind each other, and are asked about once. */
static void add_pending(cJSON *figures, struct client *client, const cJSON *snapshot)
{
	const cJSON *last = NULL;
	double pending = 0, unschedulable = 0, fits = 0;

	for (const cJSON *o = document_first(snapshot, "list.items"); o; o = o->next) {
		const char *phase = document_text_or(o, "status.phase", "Pending");

		if (!document_is(o, "kind", "Pod") || document_text(o, "spec.nodeName") ||
		    strcmp(phase, "Pending") != 0)
			continue;
		if (!fit_alike(last, o))
			fits = count_fits(client, o);
		last = o;
		pending++;
		unschedulable += isnan(fits) ? NAN : fits == 0;
	}
	add_figure(figures, "pendingPods", pending);
	add_figure(figures, "unschedulablePods", unschedulable);
}

/* Of any resource, or the number of pods. */
static bool is_overcommitted(const cJSON *node)
{
	const cJSON *allocatable = document_at(node, "allocatable"), *request;

	cJSON_ArrayForEach (request, document_at(node, "requests")) {
		const cJSON *most = cJSON_GetObjectItemCaseSensitive(allocatable, request->string);

		if (allocatable && request->valuedouble > (most ? most->valuedouble : 0))
			return true;
	}
	return document_number(node, "pods") > document_number(allocatable, "pods");
}

static bool add_node(const struct list *l, const cJSON *node)
{
	double *overcommitted = l->context;

	*overcommitted += is_overcommitted(node);
	return false;
}

/* In JSON as the API has shares. */
static void add_share(cJSON *figures, bool json, const char *key, const cJSON *total,
		      const char *part, const char *whole)
{
	double share = document_number(total, part) / document_number(total, whole);

	add_figure(figures, key, json ? round(1e4 * share) / 1e4 : share);
}

/* {"name","nodes",..}, which the caller frees. */
static cJSON *read_figures(struct client *client, const cJSON *snapshot, const char *name,
			   bool json)
{
	cJSON *figures = cJSON_CreateObject(), *drain = NULL, *slack = NULL;
	struct error ignored;
	double overcommitted = 0;
	struct list l;

	list_init(&l, add_node, &overcommitted);
	list_fetch(&l, client, "/v1/nodes?limit=500", &ignored);
	client_ask(client, "/v1/drain", NULL, &drain, &ignored);
	client_ask(client, "/v1/slack", NULL, &slack, &ignored);
	cJSON_AddStringToObject(figures, "name", name);
	add_figure(figures, "nodes", document_number(l.total, "knownToApi"));
	add_figure(figures, "pods", document_number(l.total, "pods"));
	add_pending(figures, client, snapshot);
	add_figure(figures, "overcommittedNodes", overcommitted);
	add_share(figures, json, "cpuRequestedShare", l.total, "requests.cpuMillicores",
		  "allocatable.cpuMillicores");
	add_share(figures, json, "memoryRequestedShare", l.total, "requests.memoryBytes",
		  "allocatable.memoryBytes");
	add_share(figures, json, "cpuMeanShare", l.total, "usage.cpuMillicores.windows.5m.mean",
		  "measured.allocatable.cpuMillicores");
	add_share(figures, json, "workingSetMeanShare", l.total,
		  "usage.workingSetBytes.windows.5m.mean", "measured.allocatable.memoryBytes");
	add_figure(figures, "drainNow", document_number(drain, "verdicts.drain"));
	add_figure(figures, "unneeded", document_number(drain, "verdicts.unneeded"));
	add_figure(figures, "slackWanted", document_number(slack, "total.wanted"));
	add_figure(figures, "slackPlaced", document_number(slack, "total.placed"));
	list_fini(&l);
	cJSON_Delete(drain);
	cJSON_Delete(slack);
	return figures;
}

/* --- one scenario ----------------------------------------------------------------------------- */

struct variant {
	const char *name; /* borrowed */
	const struct cli_options *options; /* with the changes; NULL: none */
	struct cli_options *own; /* the same of a scenario; owned; else NULL */
};

struct whatif_run {
	struct cli *cli;
	struct option_list command; /* borrowed words; none: figures */
	cJSON *file; /* of scenarios; owned */
	struct variant *of; /* owned; the changes of the command line, then the scenarios */
	size_t count;
	struct buf snapshot; /* of the cluster as it is; owned */
	struct buf notes; /* what is left out of it; owned */
	int before_code; /* of COMMAND before the change */
	struct error before_reason;
};

static const struct variant now = {.name = "now"};
static const char changed_name[] = "changed"; /* by the options of the command line */

/* Nodes that could not be drained lately are tried anew, before and after. */
static void forget_failures(cJSON *snapshot)
{
	cJSON *drain = (cJSON *)document_at(snapshot, "state.drain");

	if (!drain)
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(drain, "unremovable");
	cJSON_AddArrayToObject(drain, "unremovable");
}

/* Puts the scenario and its file in front of what concerns it alone. */
static void name_scenario(const struct cli *cli, const struct variant *v, struct error *text)
{
	if (v->own)
		error_prefix(text, "%s: scenario %s", file_name(cli->options->scenarios), v->name);
}

static void print_notes(const struct cli *cli, const struct variant *v, struct buf *notes)
{
	char *save, *line = notes->len ? strtok_r(notes->data, "\n", &save) : NULL;
	struct error note;

	for (; line; line = strtok_r(NULL, "\n", &save)) {
		error_set(&note, "%s", line);
		name_scenario(cli, v, &note);
		log_info("%s", note.text);
	}
}

/* Refuses a change that brought what cannot be used; notes the same of the cluster as it is. */
static int check_notes(struct whatif_run *run, const struct variant *v, struct offline *files)
{
	const struct buf *notes = &offline_notes(files)->text;
	char *copy = mem_strdup(notes->data ? notes->data : ""), *save, *line;
	int code = CLI_OK;

	if (!v->options) {
		buf_clear(&run->notes);
		buf_add_str(&run->notes, copy);
	} else {
		line = strtok_r(copy, "\n", &save);
		while (line && strstr(run->notes.data, line))
			line = strtok_r(NULL, "\n", &save);
		if (line)
			code = cli_misuse(run->cli, "%s", line);
	}
	free(copy);
	return code;
}

/* Files that hold the cluster so, and their Snapshot, which is the caller's. */
static int open_changed(struct whatif_run *run, const struct variant *v, struct offline **files,
			cJSON **snapshot)
{
	struct error *reason = &run->cli->reason;
	struct buf notes = BUF_INIT;
	char *text;
	int rc = 0;

	*snapshot = cJSON_ParseWithLength(run->snapshot.data, run->snapshot.len);
	if (!*snapshot)
		return error_fail(reason, CLI_ERROR,
				  "the answer is not JSON; is that an evenkeel-aggregator?");
	forget_failures(*snapshot);
	if (v->options)
		rc = whatif_change(*snapshot, &v->options->changes, &notes, reason);
	print_notes(run->cli, v, &notes);
	buf_fini(&notes);
	text = rc ? NULL : cJSON_PrintUnformatted(*snapshot);
	if (!rc)
		rc = offline_open_text(files, "the cluster", text, strlen(text), reason);
	free(text);
	if (!rc) {
		rc = check_notes(run, v, *files);
		if (!rc)
			return CLI_OK;
		offline_close(*files);
	}
	cJSON_Delete(*snapshot);
	name_scenario(run->cli, v, reason);
	return CLI_USAGE;
}

/* Runs COMMAND on the variant; a reason that differs from the one before the change is its last line. */
static int run_command(struct whatif_run *run, const struct variant *v, struct buf *out)
{
	struct error *reason = &run->cli->reason;
	struct option_list words = {0};
	struct offline *files = NULL;
	cJSON *snapshot;
	int code = open_changed(run, v, &files, &snapshot);

	if (code)
		return code;
	cJSON_Delete(snapshot);
	for (size_t i = 0; i < run->command.count; i++)
		ARRAY_ADD(words.items, words.count) = mem_strdup(run->command.items[i]);
	if (run->cli->options->output == OUTPUT_JSON)
		ARRAY_ADD(words.items, words.count) = mem_strdup("--output=json");
	for (size_t i = 0; v->options && i < v->options->settings.count; i++)
		ARRAY_ADD(words.items, words.count) =
			mem_printf("--%s", v->options->settings.items[i]);
	code = commands_run(files, &words, run->cli, out, reason);
	option_list_free(&words);
	if (!out->len && (code == CLI_USAGE || (code && !v->options))) {
		name_scenario(run->cli, v, reason);
		return code;
	}
	if (!v->options) {
		run->before_code = code;
		run->before_reason = *reason;
	} else if (run->cli->options->output != OUTPUT_JSON &&
		   strcmp(reason->text, run->before_reason.text) != 0) {
		buf_printf(out, "%s\n", reason->text);
	}
	reason->text[0] = '\0';
	return CLI_OK;
}

/* --- scenarios -------------------------------------------------------------------------------- */

static const struct option_program changes_program = {.name = "evenkeel whatif", .specs = specs};

/* Members of a scenario are options with a text or a list of texts. */
static int read_scenario(struct whatif_run *run, const cJSON *item, struct error *reason)
{
	const char *name = document_text_or(item, "name", "");
	struct option_list words = {0};
	struct cli_options *options;
	const cJSON *member, *text;
	int rc = 0;

	if (!*name || strcmp(name, now.name) == 0 || strcmp(name, changed_name) == 0)
		return error_fail(reason, -EINVAL,
				  "each scenario must have a name that is text (quote a number), "
				  "other than \"%s\" and \"%s\"",
				  now.name, changed_name);
	if (array_find_text(run->of, run->count, sizeof(*run->of), name))
		return error_fail(reason, -EINVAL, "there are two scenarios \"%s\"", name);
	ARRAY_ADD(words.items, words.count) = mem_strdup(changes_program.name);
	cJSON_ArrayForEach (member, item) {
		if (strcmp(member->string, "name") == 0)
			continue;
		text = cJSON_IsArray(member) ? member->child : member;
		for (; text && !rc; text = text == member ? NULL : text->next) {
			if (!cJSON_IsString(text))
				rc = error_fail(reason, -EINVAL,
						"scenario %s: %s must be a text or a list of texts",
						name, member->string);
			else
				ARRAY_ADD(words.items, words.count) =
					mem_printf("--%s=%s", member->string, text->valuestring);
		}
	}
	if (!rc && words.count == 1)
		rc = error_fail(reason, -EINVAL, "scenario %s: there is no change", name);
	if (!rc) {
		options = mem_zalloc(1, sizeof(*options));
		ARRAY_ADD(run->of, run->count) = (struct variant){name, options, options};
		rc = options_parse(&changes_program, options, (int)words.count, words.items, NULL,
				   reason);
		if (rc)
			error_prefix(reason, "scenario %s", name);
	}
	option_list_free(&words);
	return rc;
}

static int read_scenarios(struct whatif_run *run, const char *path, struct error *reason)
{
	const struct yaml_json_limits limits = {DEPTH_MOST, FILE_MOST};
	const cJSON *list;
	int rc = whatif_read_file(path, &limits, &run->file, reason);

	if (rc)
		return rc;
	list = run->file->child;
	if (!cJSON_IsArray(list) || list->next)
		rc = error_fail(reason, -EINVAL, "must be one list of scenarios");
	else if (!list->child)
		rc = error_fail(reason, -EINVAL, "the list has no scenario");
	for (const cJSON *item = rc ? NULL : list->child; item && !rc; item = item->next)
		rc = read_scenario(run, item, reason);
	return rc ? error_at(reason, rc, "%s", file_name(path)) : 0;
}

/* The changes of the command line, then the scenarios. CLI_USAGE with the reason. */
static int read_variants(struct whatif_run *run)
{
	const struct cli_options *o = run->cli->options;
	const struct whatif_changes *c = &o->changes;

	if (c->apply.count || c->remove.count || c->add.count || c->cordon.count ||
	    c->taint.count || c->resize.count || c->scale.count || o->settings.count)
		ARRAY_ADD(run->of, run->count) = (struct variant){changed_name, o, NULL};
	if (o->scenarios && read_scenarios(run, o->scenarios, &run->cli->reason))
		return CLI_USAGE;
	return run->count ? CLI_OK : cli_misuse(run->cli, "name a change; --help lists them");
}

/* --- answers ---------------------------------------------------------------------------------- */

static int show_figures(struct whatif_run *run)
{
	struct cli *cli = run->cli;
	bool json = cli->options->output == OUTPUT_JSON;
	cJSON *doc = answer_new("WhatIfList"), *items = cJSON_AddArrayToObject(doc, "items");
	int code = CLI_OK;

	for (size_t i = 0; i <= run->count && !code; i++) {
		const struct variant *v = i ? &run->of[i - 1] : &now;
		struct offline *files = NULL;
		struct client *client;
		cJSON *snapshot;

		code = open_changed(run, v, &files, &snapshot);
		if (code)
			continue;
		client = client_new_offline(files);
		cJSON_AddItemToArray(items, read_figures(client, snapshot, v->name, json));
		client_free(client);
		cJSON_Delete(snapshot);
	}
	if (!code && json)
		answer_print(cli, doc);
	else if (!code)
		columns_print_list(cli, doc, "items", "name", columns, NULL, "scenario");
	cJSON_Delete(doc);
	return code;
}

/*
 * COMMAND runs once more before the change if a column came with it or grew: layouts are then equal.
 * JSON is {"apiVersion","kind":"WhatIf","before":{..},"after":[{"name","answer":{..}}]}.
 */
static int show_answers(struct whatif_run *run)
{
	struct cli *cli = run->cli;
	struct columns_shown shown = {0};
	struct buf before = BUF_INIT;
	bool json = cli->options->output == OUTPUT_JSON;
	cJSON *doc = answer_new("WhatIf"), *list, *item;
	int code;

	cli->shown = &shown;
	code = run_command(run, &now, &before);
	if (json)
		cJSON_AddItemToObject(doc, "before", cJSON_Parse(before.data));
	list = cJSON_AddArrayToObject(doc, "after");
	for (size_t i = 0; i < run->count && !code; i++) {
		struct buf was = BUF_INIT, after = BUF_INIT;

		shown.grown = false;
		code = run_command(run, &run->of[i], &after);
		if (!code && !json && shown.grown) {
			buf_clear(&before);
			code = run_command(run, &now, &before);
		}
		if (!code && json) {
			item = cJSON_CreateObject();
			cJSON_AddStringToObject(item, "name", run->of[i].name);
			cJSON_AddItemToObject(item, "answer", cJSON_Parse(after.data));
			cJSON_AddItemToArray(list, item);
		} else if (!code) {
			if (i)
				buf_add_char(&cli->out, '\n');
			if (run->count > 1)
				lines_print(cli, "%s:", run->of[i].name);
			buf_add(&was, before.data, before.len);
			difference_print(cli, &was, &after);
		}
		buf_fini(&was);
		buf_fini(&after);
	}
	if (!code && json)
		answer_print(cli, doc);
	cli->shown = NULL;
	free(shown.of);
	cJSON_Delete(doc);
	buf_fini(&before);
	if (code)
		return code;
	cli->reason = run->before_reason;
	return run->before_code;
}

/* The Snapshot of the cluster with the only change. */
static int show_snapshot(struct whatif_run *run)
{
	int code = CLI_OK;

	if (run->count > 1 || run->command.count)
		return cli_misuse(run->cli,
				  "-o snapshot is one changed cluster: give one scenario, and no "
				  "COMMAND");
	/* As it is first: its notes are no fault of the change. */
	for (size_t i = 0; i < 2 && !code; i++) {
		struct offline *files = NULL;
		cJSON *snapshot;

		code = open_changed(run, i ? run->of : &now, &files, &snapshot);
		if (code)
			continue;
		if (i)
			answer_print(run->cli, snapshot);
		cJSON_Delete(snapshot);
		offline_close(files);
	}
	return code;
}

/* Of COMMAND: "OPTION=VALUE". */
static int check_settings(struct cli *cli, const struct variant *v)
{
	const struct option_list *settings = &v->options->settings;

	if (v->own && v->own->scenarios)
		return cli_misuse(cli, "a scenario has no scenarios");
	if (settings->count && !cli->operand_count)
		return cli_misuse(cli, "--set %s: there is no COMMAND, whose option it could be",
				  settings->items[0]);
	for (size_t i = 0; i < settings->count; i++)
		if (strcspn(settings->items[i], "=") == 0)
			return cli_misuse(cli, "--set \"%s\": must be OPTION=VALUE",
					  settings->items[i]);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct whatif_run run = {
		.cli = cli,
		.command = {(char **)cli->operands, cli->operand_count},
	};
	int code = read_variants(&run);

	for (size_t i = 0; i < run.count && !code; i++) {
		code = check_settings(cli, &run.of[i]);
		if (code)
			name_scenario(cli, &run.of[i], &cli->reason);
	}
	if (!code)
		code = client_exit(
			client_get(cli->client, "/v1/snapshot", &run.snapshot, &cli->reason));
	if (!code)
		code = (cli->options->output == OUTPUT_SNAPSHOT ? show_snapshot
			: run.command.count			? show_answers
								: show_figures)(&run);
	for (size_t i = 0; i < run.count; i++) {
		if (run.of[i].own)
			options_free(&changes_program, run.of[i].own);
		free(run.of[i].own);
	}
	free(run.of);
	cJSON_Delete(run.file);
	buf_fini(&run.snapshot);
	buf_fini(&run.notes);
	return code;
}

const struct command command_whatif = {
	.name = "whatif",
	.usage = "CHANGE.. [-- COMMAND ..]",
	.summary = "Show what a change of the cluster would do",
	.details =
		"The change is made in a copy; the cluster stays as it is. COMMAND is another "
		"command, with its options: it runs before and after the change, and the lines "
		"that differ are shown, - before and + after. Without COMMAND the figures are: "
		"nodes; pods on them; PENDING-PODS; UNSCHEDULABLE: pending pods that fit no node; "
		"OVERCOMMITTED: nodes whose pods request more than the allocatable; "
		"CPU and memory that are requested and used, as shares of the allocatable; nodes "
		"to DRAIN now, and UNNEEDED ones; SLACK: placeholders wanted, and PLACED. Nothing "
		"is scheduled: pods of a removed node and new pods of a workload are pending. "
		"-o snapshot prints the changed cluster, a file for --snapshot. Exit "
		"status 2: a change cannot be made, or COMMAND cannot be run.",
	.examples = {{"evenkeel whatif --remove node-7", "What the loss of a node would mean."},
		     {"evenkeel whatif --add 3xnode-7 -- drain",
		      "Which verdicts three more nodes would change."},
		     {"evenkeel whatif --resize shop/web=cpu:200m -- nodes",
		      "How full the nodes would be with smaller requests."},
		     {"evenkeel whatif --set drain-cpu-cap=0.7 -- drain",
		      "The plan with a lower cap on real use."},
		     {"evenkeel whatif --scenarios plans.yaml",
		      "Several changes beside each other."}},
	.terms = {"CPU-MEAN%", "placeholder", "unneeded", "wave"},
	.specs = specs,
	.run = run,
};
