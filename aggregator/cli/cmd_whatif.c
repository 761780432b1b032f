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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/pages.h"
#include "aggregator/cli/whatif.h"
#include "shared/array.h"
#include "shared/file.h"
#include "shared/jsonw.h"
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

enum figure {
	NODES,
	PODS,
	PENDING,
	UNSCHEDULABLE, /* pending pods that fit no node, each judged alone */
	OVERCOMMITTED, /* nodes whose pods request more than the allocatable */
	CPU_REQUESTED,
	MEM_REQUESTED,
	CPU_USED,
	MEM_USED,
	DRAINED, /* nodes of the wave */
	UNNEEDED, /* and those that could go later */
	WANTED_SLACK,
	PLACED_SLACK,
	FIGURES,
};

static const struct {
	const char *title, *key;
	bool share;
} figure_rows[FIGURES] = {
	[NODES] = {.title = "NODES", .key = "nodes"},
	[PODS] = {.title = "PODS", .key = "pods"},
	[PENDING] = {.title = "PENDING-PODS", .key = "pendingPods"},
	[UNSCHEDULABLE] = {.title = "UNSCHEDULABLE", .key = "unschedulablePods"},
	[OVERCOMMITTED] = {.title = "OVERCOMMITTED", .key = "overcommittedNodes"},
	[CPU_REQUESTED] = {.title = "CPU-REQ%", .key = "cpuRequestedShare", .share = true},
	[MEM_REQUESTED] = {.title = "MEM-REQ%", .key = "memoryRequestedShare", .share = true},
	[CPU_USED] = {.title = "CPU-MEAN%", .key = "cpuMeanShare", .share = true},
	[MEM_USED] = {.title = "WORKSET-MEAN%", .key = "workingSetMeanShare", .share = true},
	[DRAINED] = {.title = "DRAIN", .key = "drainNow"},
	[UNNEEDED] = {.title = "UNNEEDED", .key = "unneeded"},
	[WANTED_SLACK] = {.title = "SLACK", .key = "slackWanted"},
	[PLACED_SLACK] = {.title = "PLACED", .key = "slackPlaced"},
};

/* The answer as a tree, which the caller frees; NULL with the reason. */
static cJSON *ask(struct client *client, const char *path, struct error *reason)
{
	struct buf body = BUF_INIT;
	cJSON *doc = NULL;

	if (client_get(client, path, &body, reason) == 0)
		doc = cJSON_ParseWithLength(body.data, body.len);
	buf_fini(&body);
	return doc;
}

/* How many nodes would take the pod; NaN: it cannot be asked about. */
static double count_fits(struct client *client, const cJSON *pod)
{
	cJSON *request = cJSON_CreateObject(), *doc = NULL;
	struct buf body = BUF_INIT;
	struct error ignored;
	char *text;
	double fits;

	cJSON_AddItemReferenceToObject(request, "pod", (cJSON *)pod);
	text = cJSON_PrintUnformatted(request);
	if (client_post(client, "/v1/fit", text, strlen(text), &body, &ignored) == 0)
		doc = cJSON_ParseWithLength(body.data, body.len);
	fits = document_number(doc, "fits");
	cJSON_Delete(doc);
	buf_fini(&body);
	free(text);
	cJSON_Delete(request);
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
	bool alike = a != NULL;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && alike; i++) {
		const cJSON *x = document_at(a, members[i]), *y = document_at(b, members[i]);

		alike = (!x && !y) || cJSON_Compare(x, y, true);
	}
	return alike;
}

/* Copies of a pod stand behind each other, and are asked about once. */
static void count_pending(struct client *client, const cJSON *snapshot, double of[FIGURES])
{
	const cJSON *last = NULL;
	double fits = 0;

	of[PENDING] = 0;
	of[UNSCHEDULABLE] = 0;
	for (const cJSON *o = document_first(snapshot, "list.items"); o; o = o->next) {
		const char *phase = document_text_or(o, "status.phase", "Pending");

		if (!document_is(o, "kind", "Pod") || document_text(o, "spec.nodeName") ||
		    strcmp(phase, "Pending") != 0)
			continue;
		if (!fit_alike(last, o))
			fits = count_fits(client, o);
		last = o;
		of[PENDING]++;
		of[UNSCHEDULABLE] += isnan(fits) ? NAN : fits == 0;
	}
}

static double share(const cJSON *total, const char *part, const char *whole)
{
	return document_number(total, part) / document_number(total, whole);
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

static bool add_node(void *context, const cJSON *node, double time, double held)
{
	double *of = context;

	(void)time;
	(void)held;
	of[OVERCOMMITTED] += is_overcommitted(node);
	return false;
}

static void take_total(void *context, const cJSON *page)
{
	const cJSON *total = document_at(page, "total");
	double *of = context;

	of[NODES] = document_number(total, "knownToApi");
	of[PODS] = document_number(total, "pods");
	of[CPU_REQUESTED] = share(total, "requests.cpuMillicores", "allocatable.cpuMillicores");
	of[MEM_REQUESTED] = share(total, "requests.memoryBytes", "allocatable.memoryBytes");
	of[CPU_USED] = share(total, "usage.cpuMillicores.windows.5m.mean",
			     "measured.allocatable.cpuMillicores");
	of[MEM_USED] = share(total, "usage.workingSetBytes.windows.5m.mean",
			     "measured.allocatable.memoryBytes");
}

/* Unknown figures are NaN. */
static void take_figures(struct client *client, const cJSON *snapshot, double of[FIGURES])
{
	struct error ignored;
	cJSON *drain = ask(client, "/v1/drain", &ignored),
	      *slack = ask(client, "/v1/slack", &ignored);
	struct list nodes;

	for (int f = 0; f < FIGURES; f++)
		of[f] = f == OVERCOMMITTED ? 0 : NAN;
	list_init(&nodes, add_node, of);
	nodes.envelope = take_total;
	list_fetch(&nodes, client, "/v1/nodes?limit=500", &ignored);
	list_fini(&nodes);
	of[DRAINED] = document_number(drain, "verdicts.drain");
	of[UNNEEDED] = document_number(drain, "verdicts.unneeded");
	of[WANTED_SLACK] = document_number(slack, "total.wanted");
	of[PLACED_SLACK] = document_number(slack, "total.placed");
	count_pending(client, snapshot, of);
	cJSON_Delete(drain);
	cJSON_Delete(slack);
}

static void add_figures(struct table *t, const char *name, size_t at, const double of[FIGURES])
{
	char text[32];

	table_row(t, name);
	table_key(t, -(double)at);
	table_cell(t, PAINT_PLAIN, name);
	for (int f = 0; f < FIGURES; f++) {
		bool bad = (f == UNSCHEDULABLE || f == OVERCOMMITTED) && of[f] > 0;

		if (isnan(of[f]))
			snprintf(text, sizeof(text), "-");
		else
			snprintf(text, sizeof(text), figure_rows[f].share ? "%.0f%%" : "%.0f",
				 figure_rows[f].share ? 100 * of[f] : of[f]);
		table_cell(t, bad ? PAINT_BAD : PAINT_PLAIN, text);
	}
}

static void write_figures(struct jsonw *w, const char *name, const double of[FIGURES])
{
	jsonw_object_open(w);
	jsonw_key_string(w, "name", name);
	for (int f = 0; f < FIGURES; f++)
		if (!isnan(of[f]))
			jsonw_key_fixed(w, figure_rows[f].key, of[f], figure_rows[f].share ? 4 : 0);
	jsonw_object_close(w);
}

/* --- one scenario ----------------------------------------------------------------------------- */

struct whatif_run {
	struct cli *cli;
	struct buf snapshot; /* of the cluster as it is; owned */
	struct buf notes; /* what is left out of it; owned */
	int before_code; /* of COMMAND before the change */
	struct error before_reason;
	struct option_list command; /* borrowed words; none: figures */
};

struct variant {
	const char *name; /* borrowed */
	const struct cli_options *options; /* with the changes; borrowed; NULL: none */
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
	if (v->options && v->options != cli->options)
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

/* The first line of notes that the cluster has not as it is; NULL: there is none. */
static char *find_new_note(const struct whatif_run *run, const struct snapshot_notes *notes)
{
	char *copy = mem_strdup(notes->text.data ? notes->text.data : ""), *save, *line;
	const char *known = run->notes.data ? run->notes.data : "";

	line = strtok_r(copy, "\n", &save);
	while (line && strstr(known, line))
		line = strtok_r(NULL, "\n", &save);
	line = line ? mem_strdup(line) : NULL;
	free(copy);
	return line;
}

/* Refuses a change that brought what cannot be used; notes the same of the cluster as it is. */
static int check_notes(struct whatif_run *run, const struct variant *v, struct offline *files)
{
	const struct snapshot_notes *notes = offline_notes(files);
	char *line;
	int code = CLI_OK;

	if (!v->options) {
		buf_clear(&run->notes);
		buf_add_str(&run->notes, notes->text.data ? notes->text.data : "");
		return CLI_OK;
	}
	line = find_new_note(run, notes);
	if (line)
		code = error_fail(&run->cli->reason, CLI_USAGE, "%s", line);
	free(line);
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
	return CLI_USAGE;
}

/* Takes the word. */
static void add_word(struct option_list *words, char *word)
{
	ARRAY_ADD(words->items, words->count) = word;
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
		add_word(&words, mem_strdup(run->command.items[i]));
	if (run->cli->options->output == OUTPUT_JSON)
		add_word(&words, mem_strdup("--output=json"));
	for (size_t i = 0; v->options && i < v->options->settings.count; i++)
		add_word(&words, mem_printf("--%s", v->options->settings.items[i]));
	code = commands_run(files, &words, run->cli, out, reason);
	option_list_free(&words);
	if (!out->len && (code == CLI_USAGE || (code && !v->options)))
		return code;
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

static int find_figures(struct whatif_run *run, const struct variant *v, double of[FIGURES])
{
	struct offline *files = NULL;
	struct client *client;
	cJSON *snapshot;
	int code = open_changed(run, v, &files, &snapshot);

	if (code)
		return code;
	client = client_new_offline(files);
	take_figures(client, snapshot, of);
	client_free(client);
	cJSON_Delete(snapshot);
	return CLI_OK;
}

/* --- scenarios -------------------------------------------------------------------------------- */

struct scenario {
	const char *name; /* borrowed */
	struct cli_options options; /* the changes alone; owned */
};

struct scenarios {
	cJSON *file; /* owned */
	struct scenario *of; /* owned */
	size_t count;
};

static const struct option_program changes_program = {.name = "evenkeel whatif", .specs = specs};

static void scenarios_fini(struct scenarios *s)
{
	for (size_t i = 0; i < s->count; i++)
		options_free(&changes_program, &s->of[i].options);
	free(s->of);
	cJSON_Delete(s->file);
}

/* Members of a scenario are options with a text or a list of texts. */
static int read_scenario(const cJSON *item, struct scenario *s, struct error *reason)
{
	struct option_list words = {0};
	const cJSON *member, *text;
	int rc = 0;

	s->name = document_text(item, "name");
	if (!s->name || !*s->name || strcmp(s->name, now.name) == 0 ||
	    strcmp(s->name, changed_name) == 0) {
		error_set(reason,
			  "each scenario must have a name that is text (quote a number), other "
			  "than \"%s\" and \"%s\"",
			  now.name, changed_name);
		return -EINVAL;
	}
	add_word(&words, mem_strdup(changes_program.name));
	cJSON_ArrayForEach (member, item) {
		bool list = cJSON_IsArray(member);

		if (strcmp(member->string, "name") == 0 || rc)
			continue;
		for (text = list ? member->child : member; text && !rc;
		     text = list ? text->next : NULL) {
			if (cJSON_IsString(text))
				add_word(&words,
					 mem_printf("--%s=%s", member->string, text->valuestring));
			else
				rc = -EINVAL;
		}
		if (rc)
			error_set(reason, "scenario %s: %s must be a text or a list of texts",
				  s->name, member->string);
	}
	if (!rc && words.count == 1) {
		error_set(reason, "scenario %s: there is no change", s->name);
		rc = -EINVAL;
	}
	if (!rc) {
		rc = options_parse(&changes_program, &s->options, (int)words.count, words.items,
				   NULL, reason);
		if (rc)
			error_prefix(reason, "scenario %s", s->name);
	}
	option_list_free(&words);
	return rc;
}

static int read_scenarios(const char *path, struct scenarios *s, struct error *reason)
{
	const struct yaml_json_limits limits = {DEPTH_MOST, FILE_MOST};
	struct buf text = BUF_INIT, json = BUF_INIT;
	size_t documents;
	int rc = file_read(path, FILE_MOST, &text, reason);

	if (!rc)
		rc = yaml_json_convert(file_name(path), text.data ? text.data : "", text.len,
				       &limits, &json, &documents, reason);
	if (!rc) {
		s->file = documents == 1 ? cJSON_ParseWithLength(json.data, json.len) : NULL;
		if (!cJSON_IsArray(s->file))
			rc = error_fail(reason, -EINVAL, "%s: must be one list of scenarios",
					file_name(path));
		else if (!document_first(s->file, ""))
			rc = error_fail(reason, -EINVAL, "%s: the list has no scenario",
					file_name(path));
	}
	for (const cJSON *item = document_first(s->file, ""); item && !rc; item = item->next) {
		struct scenario one = {0};

		for (size_t i = 0; i < s->count && !rc; i++)
			if (document_is(item, "name", s->of[i].name))
				rc = error_fail(reason, -EINVAL, "there are two scenarios \"%s\"",
						s->of[i].name);
		if (!rc)
			rc = read_scenario(item, &one, reason);
		if (rc) {
			error_prefix(reason, "%s", file_name(path));
			continue;
		}
		ARRAY_ADD(s->of, s->count) = one;
	}
	buf_fini(&text);
	buf_fini(&json);
	return rc;
}

/* The changes of the command line, then the scenarios. */
static struct variant *list_variants(struct cli *cli, const struct scenarios *s, size_t *count)
{
	struct variant *of = mem_zalloc(s->count + 1, sizeof(*of));
	const struct whatif_changes *c = &cli->options->changes;
	bool own = c->apply.count || c->remove.count || c->add.count || c->cordon.count ||
		   c->taint.count || c->resize.count || c->scale.count ||
		   cli->options->settings.count;

	*count = 0;
	if (own)
		of[(*count)++] = (struct variant){changed_name, cli->options};
	for (size_t i = 0; i < s->count; i++)
		of[(*count)++] = (struct variant){s->of[i].name, &s->of[i].options};
	return of;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int show_figures(struct whatif_run *run, const struct variant *of, size_t count)
{
	struct cli *cli = run->cli;
	struct table *t = table_new();
	struct buf json = BUF_INIT;
	double figures[FIGURES];
	struct jsonw w;
	int code = CLI_OK;

	jsonw_begin(&w, &json);
	jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(&w, "kind", "WhatIfList");
	jsonw_key_array(&w, "items");
	table_column(t, "SCENARIO", FORM_NAME);
	for (int f = 0; f < FIGURES; f++)
		table_column(t, figure_rows[f].title, FORM_RIGHT);
	for (size_t i = 0; i <= count && !code; i++) {
		const struct variant *v = i ? &of[i - 1] : &now;

		code = find_figures(run, v, figures);
		if (code) {
			name_scenario(cli, v, &cli->reason);
			continue;
		}
		add_figures(t, v->name, i, figures);
		write_figures(&w, v->name, figures);
	}
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	if (!code && cli->options->output == OUTPUT_JSON)
		buf_printf(&cli->out, "%s\n", json.data);
	else if (!code)
		columns_print(cli, t, "scenario");
	table_free(t);
	buf_fini(&json);
	return code;
}

/* {"apiVersion","kind":"WhatIf","before":{..},"after":[{"name","answer":{..}}]} */
static cJSON *start_document(const char *before)
{
	cJSON *doc = cJSON_CreateObject();

	cJSON_AddStringToObject(doc, "apiVersion", "evenkeel.io/v1");
	cJSON_AddStringToObject(doc, "kind", "WhatIf");
	cJSON_AddItemToObject(doc, "before", cJSON_Parse(before));
	cJSON_AddArrayToObject(doc, "after");
	return doc;
}

static void add_answer(cJSON *doc, const char *name, const char *answer)
{
	cJSON *item = cJSON_CreateObject();

	cJSON_AddStringToObject(item, "name", name);
	cJSON_AddItemToObject(item, "answer", cJSON_Parse(answer));
	cJSON_AddItemToArray(cJSON_GetObjectItem(doc, "after"), item);
}

/* COMMAND runs once more before the change if a column came with it or grew: layouts are then equal. */
static int show_answers(struct whatif_run *run, const struct variant *of, size_t count)
{
	struct cli *cli = run->cli;
	struct columns_shown shown = {0};
	struct buf before = BUF_INIT;
	cJSON *doc = NULL;
	int code;

	cli->shown = &shown;
	code = run_command(run, &now, &before);
	if (cli->options->output == OUTPUT_JSON)
		doc = start_document(before.data ? before.data : "");

	for (size_t i = 0; i < count && !code; i++) {
		struct buf was = BUF_INIT, after = BUF_INIT;

		shown.grown = false;
		code = run_command(run, &of[i], &after);
		if (!code && !doc && shown.grown) {
			buf_clear(&before);
			code = run_command(run, &now, &before);
		}
		if (code) {
			name_scenario(cli, &of[i], &cli->reason);
		} else if (doc) {
			add_answer(doc, of[i].name, after.data ? after.data : "");
		} else {
			if (i)
				buf_add_char(&cli->out, '\n');
			if (count > 1)
				lines_print(cli, "%s:", of[i].name);
			buf_add(&was, before.data, before.len);
			difference_print(cli, &was, &after);
		}
		buf_fini(&was);
		buf_fini(&after);
	}
	if (!code && doc) {
		char *text = cJSON_PrintUnformatted(doc);

		buf_printf(&cli->out, "%s\n", text);
		free(text);
	}
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
static int show_snapshot(struct whatif_run *run, const struct variant *of, size_t count)
{
	const struct variant *const both[] = {&now, of};
	int code = CLI_OK;

	if (count > 1 || run->command.count)
		return error_fail(&run->cli->reason, CLI_USAGE,
				  "-o snapshot is one changed cluster: give one scenario, and no "
				  "COMMAND");
	/* As it is first: its notes are no fault of the change. */
	for (size_t i = 0; i < 2 && !code; i++) {
		struct offline *files = NULL;
		cJSON *snapshot;
		char *text;

		code = open_changed(run, both[i], &files, &snapshot);
		if (code) {
			name_scenario(run->cli, both[i], &run->cli->reason);
			continue;
		}
		text = i ? cJSON_PrintUnformatted(snapshot) : NULL;
		if (text)
			buf_add_str(&run->cli->out, text);
		free(text);
		cJSON_Delete(snapshot);
		offline_close(files);
	}
	buf_add_char(&run->cli->out, '\n');
	return code;
}

/* Of COMMAND: "OPTION=VALUE". */
static int check_settings(struct cli *cli, const struct variant *v)
{
	const struct option_list *settings = &v->options->settings;

	if (v->options != cli->options && v->options->scenarios)
		return error_fail(&cli->reason, CLI_USAGE, "a scenario has no scenarios");
	if (settings->count && !cli->operand_count)
		return error_fail(&cli->reason, CLI_USAGE,
				  "--set %s: there is no COMMAND, whose option it could be",
				  settings->items[0]);
	for (size_t i = 0; i < settings->count; i++)
		if (strcspn(settings->items[i], "=") == 0)
			return error_fail(&cli->reason, CLI_USAGE,
					  "--set \"%s\": must be OPTION=VALUE", settings->items[i]);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct whatif_run run = {
		.cli = cli,
		.command = {(char **)cli->operands, cli->operand_count},
	};
	struct scenarios scenarios = {0};
	struct variant *of = NULL;
	size_t count;
	int code = CLI_USAGE, rc = 0;

	if (cli->options->scenarios &&
	    read_scenarios(cli->options->scenarios, &scenarios, &cli->reason))
		goto out;
	of = list_variants(cli, &scenarios, &count);
	if (!count) {
		error_set(&cli->reason, "name a change; --help lists them");
		goto out;
	}
	for (size_t i = 0; i < count && !rc; i++) {
		rc = check_settings(cli, &of[i]);
		if (rc)
			name_scenario(cli, &of[i], &cli->reason);
	}
	if (rc)
		goto out;
	rc = client_get(cli->client, "/v1/snapshot", &run.snapshot, &cli->reason);
	if (rc)
		code = client_exit(rc);
	else
		code = (cli->options->output == OUTPUT_SNAPSHOT ? show_snapshot
			: run.command.count			? show_answers
								: show_figures)(&run, of, count);
out:
	free(of);
	scenarios_fini(&scenarios);
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
