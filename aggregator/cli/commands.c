/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options may stand before or after the command, but which options there are depends on the
 * command. So the command is looked for first, skipping the values of all options any command
 * knows; then its own table and the global one are parsed as one.
 */
#include "aggregator/cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/kube_server.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/cli_spec.h"
#include "shared/utf8.h"

const char *const cli_windows[] = {"5m", "10m", "15m", NULL};

static const struct command *const commands[] = {
	&command_nodes,	  &command_pods,       &command_advise,	 &command_scores,
	&command_quota,	  &command_slack,      &command_drain,	 &command_verify,
	&command_act,	  &command_whatif,     &command_replay,	 &command_doctor,
	&command_version, &command_completion, &command_options, &command_glossary,
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const char *const periods[] = {"2s", NULL};
static const char *const colors[] = {"auto", "always", "never", NULL};

#define SUMMARY "Shows the room that the nodes of a cluster really have left."
#define USAGE	"COMMAND [NAME..] [OPTION..]"

const struct option_spec commands_common[] = {
	CLI_TEXT("server", 's', server, "URL",
		 "The aggregator to ask; without it the cluster of the kubeconfig, or of this pod, "
		 "else " CLI_LOCAL_SERVER "."),
	CLI_TEXT("kubeconfig", 0, kubeconfig, "FILE",
		 "How kubectl reaches the cluster to ask; without it the files of KUBECONFIG, or "
		 "~/.kube/config."),
	CLI_TEXT("context", 0, context, "NAME",
		 "The context of the kubeconfig to use instead of its current one."),
	CLI_TEXT("token-file", 0, access.token_file, "FILE",
		 "A file with the bearer token for the server; without it EVENKEEL_TOKEN in the "
		 "environment."),
	CLI_TEXT("ca-file", 0, access.ca_file, "FILE",
		 "Certificates of authorities (PEM) that the server's certificate may be signed "
		 "by; without it those of the system."),
	CLI_TEXT("tls-server-name", 0, access.server_name, "NAME",
		 "The name in the server's certificate, if the address has another (kubectl "
		 "port-forward)."),
	CLI_TEXT("client-cert", 0, access.certificate, "FILE",
		 "The certificate to show to the server (PEM)."),
	CLI_TEXT("client-key", 0, access.key, "FILE", "Its private key (PEM)."),
	CLI_FLAG("allow-plain-tokens", 0, access.plain_tokens,
		 "Send the token without TLS to another machine; something else must encrypt it."),
	CLI_OPTION("snapshot", 0, OPTION_LIST, snapshots, "FILE", NULL, NULL,
		   "Answer from files instead: output of kubectl get -o json (or yaml), or of GET "
		   "/v1/snapshot; \"-\" is standard input."),
	CLI_TEXT("usage", 0, usage, "FILE",
		 "Measurements for --snapshot: a Usage object, or the answer of a load watcher's "
		 "/watcher."),
	CLI_CHOICE("output", 'o', output, "FORM", "table", output_names,
		   "table, wide (more columns), json (the API's object, indented on a terminal), "
		   "yaml (the same in YAML), csv (the table with every column), name (node/NAME, "
		   "pod/NAMESPACE/NAME ..); of drain commands (for kubectl) or plan (for evenkeel "
		   "verify); of advise patch, vpa or scenario (for evenkeel whatif); of whatif "
		   "snapshot (for --snapshot); of slack balloons or capacitybuffers (objects for "
		   "kubectl apply)."),
	CLI_TEXT("namespace", 'n', namespace, "NAMESPACE", "Only pods of this namespace."),
	CLI_FLAG("all-namespaces", 'A', all_namespaces,
		 "Pods of all namespaces, which is the default."),
	CLI_FLAG("no-headers", 0, no_headers, "Leave out the first line of tables."),
	{"limit", 0, OPTION_INTEGER, offsetof(struct cli_options, limit), "N", NULL, 1, 1e9, NULL,
	 "Print only the first N rows of tables."},
	{"watch", 'w', OPTION_PERIOD, offsetof(struct cli_options, watch_ns), "TIME", NULL, 100e6,
	 3600e9, periods, "Repeat every 2s, or after this time, until Ctrl-C."},
	CLI_FLAG("strict", 0, strict,
		 "Exit with 4 if any value shown is stale, not only if all are; and with 1 if a "
		 "part of --snapshot cannot be used."),
	CLI_CHOICE("color", 0, color, NULL, "auto", colors,
		   "Colours; auto: on a terminal and without NO_COLOR."),
	{"timeout", 0, OPTION_DURATION, offsetof(struct cli_options, timeout_ns), "TIME", "5s",
	 100e6, 600e9, NULL, "Longest wait for an answer."},
	CLI_FLAG("help", 'h', help, "Print this help."),
	CLI_FLAG("version", 0, version, "Print the version of this program."),
	{0},
};

/* The command's options, then the global ones, as one table; the caller frees it. */
static struct option_spec *join_specs(const struct command *command)
{
	size_t own = command && command->specs ? options_count(command->specs) : 0,
	       global = options_count(commands_common);
	struct option_spec *all = mem_zalloc(own + global + 1, sizeof(*all));

	if (own)
		memcpy(all, command->specs, own * sizeof(*all));
	memcpy(all + own, commands_common, global * sizeof(*all));
	return all;
}

/* The tables for shells and the build; rows is the room for its commands. */
static struct cli_spec make_spec(const struct option_program *program,
				 struct cli_spec_command rows[COMMANDS])
{
	static const struct option_spec none[] = {{0}};

	for (size_t i = 0; i < COMMANDS; i++)
		rows[i] = (struct cli_spec_command){
			.name = commands[i]->name,
			.usage = commands[i]->usage ? commands[i]->usage : "",
			.summary = commands[i]->summary,
			.details = commands[i]->details,
			.examples = commands[i]->examples[0].line ? commands[i]->examples : NULL,
			.specs = commands[i]->specs ? commands[i]->specs : none,
			.words = commands[i]->words,
			.names = commands[i]->names,
		};
	return (struct cli_spec){
		.program = program, .section = 1, .commands = rows, .command_count = COMMANDS};
}

/*
 * Argument number `at` of those that are neither options nor their values; NULL when there are
 * fewer.
 */
static const char *operand_at(int argc, char **argv, int at)
{
	static const struct option_program common = {.specs = commands_common};
	struct cli_spec_command rows[COMMANDS];
	const struct cli_spec spec = make_spec(&common, rows);
	bool ended = false;

	for (int i = 1; i < argc; i++) {
		const char *text = argv[i];

		if (ended || text[0] != '-' || !text[1]) {
			if (at-- == 0)
				return text;
		} else if (strcmp(text, "--") == 0) {
			ended = true;
		} else if (cli_spec_pending(&spec, NULL, text)) {
			i++;
		}
	}
	return NULL;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	struct suggestion suggestion;

	suggestion_init(&suggestion, name);
	for (size_t i = 0; i < COMMANDS; i++)
		suggestion_offer(&suggestion, commands[i]->name);
	suggestion_offer(&suggestion, "help");
	if (suggestion.best)
		log_info("unknown command \"%s\"; did you mean %s?", name, suggestion.best);
	else
		log_info("unknown command \"%s\"; --help lists the commands", name);
	return CLI_USAGE;
}

/* "kubectl evenkeel" when kubectl runs it as its plugin. */
static const char *program_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL, *base = slash ? slash + 1 : path;

	return base && strncmp(base, "kubectl-", 8) == 0 ? "kubectl evenkeel" : "evenkeel";
}

static int usage_error(const char *text)
{
	log_info("%s", text);
	return CLI_USAGE;
}

/* --- where answers come from ------------------------------------------------------------------ */

static bool is_standard_input(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* NULL, or what does not go together or cannot be meant. */
static const char *find_conflict(const struct cli_options *o)
{
	size_t inputs = is_standard_input(o->usage) + is_standard_input(o->pod);

	for (size_t i = 0; i < o->snapshots.count; i++) {
		inputs += is_standard_input(o->snapshots.items[i]);
		if (!o->snapshots.items[i][0])
			return "--snapshot: the name of the file is empty";
	}
	if (o->usage && !o->usage[0])
		return "--usage: the name of the file is empty";
	if (inputs > 1)
		return "standard input (\"-\") can be read only once";
	if (!o->snapshots.count)
		return o->usage ? "--usage goes with --snapshot, which gives the nodes" : NULL;
	if (kube_server_is_given(o))
		return "--server and --snapshot: answers come from the one or the other";
	if (o->watch_ns)
		return "--watch needs a server: a snapshot does not change";
	return NULL;
}

/* What was left out of the files. */
static void print_notes(const struct snapshot_notes *notes)
{
	log_lines(notes->text.data);
	if (notes->skipped > SNAPSHOT_NOTES_MAX)
		log_info("and %zu more", notes->skipped - SNAPSHOT_NOTES_MAX);
}

static void answer_from(struct cli *cli, struct offline *offline)
{
	if (!offline_has_usage(offline))
		cli->no_usage =
			offline_is_recorded(offline) ? "nothing was measured until then"
			: cli->options->usage
				? "nothing is measured of any node in the snapshot"
				: "no usage is in the snapshot: give measurements with --usage";
	cli->offline = offline;
	cli->client = client_new_offline(offline);
}

/* CLI_OK with cli->client, or cli->reason. */
static int read_files(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct offline *offline;
	size_t skipped;

	if (offline_open(&offline, &o->snapshots, o->usage, &cli->reason))
		return CLI_ERROR;
	print_notes(offline_notes(offline));
	skipped = offline_notes(offline)->skipped;
	if (o->strict && skipped) {
		error_set(&cli->reason, "%zu of the objects in %s cannot be used (--strict)",
			  skipped, offline_name(offline));
		offline_close(offline);
		return CLI_ERROR;
	}
	answer_from(cli, offline);
	return CLI_OK;
}

/* plugins: a kubeconfig's exec plugin may run. */
static int open_server(struct cli *cli, bool plugins)
{
	const struct cli_options *o = cli->options;
	struct kube_config cluster = {0};
	const char *token = getenv("EVENKEEL_TOKEN");
	struct client_access access = o->access;
	struct error hint;
	int found = kube_server_find(o, &cluster, &hint, &cli->reason);

	access.token = token && *token ? token : NULL;
	cluster.exec_limit_ns = o->timeout_ns;
	if (found > 0 && cluster.exec_command && !plugins)
		found = -EACCES;
	else if (found > 0)
		found = client_new_cluster(&cli->client, &cluster, o->timeout_ns, &watch_stop,
					   &cli->reason);
	kube_config_fini(&cluster);
	if (!found && !cli->client)
		found = client_new(&cli->client, o->server ? o->server : CLI_LOCAL_SERVER,
				   o->timeout_ns, &watch_stop, &cli->reason)
				?: client_set_access(cli->client, &access, &cli->reason);
	if (!found) {
		client_set_hint(cli->client, hint.text);
		return CLI_OK;
	}
	client_free(cli->client);
	cli->client = NULL;
	return CLI_USAGE;
}

static int find_answers(struct cli *cli, const struct command *command)
{
	const struct cli_options *o = cli->options;
	const char *conflict = find_conflict(o);
	int code;

	if (conflict)
		return cli_misuse(cli, "%s", conflict);
	if (command->server == CLI_SERVER_UNUSED)
		return CLI_OK;
	if (o->snapshots.count)
		return read_files(cli);
	code = open_server(cli, true);
	if (!code || command->server != CLI_SERVER_OPTIONAL)
		return code;
	log_info("%s", cli->reason.text);
	return CLI_OK;
}

/* operands: the command's name, then what is meant for it. */
static struct cli make_cli(const struct command *command, struct cli_options *options,
			   const struct option_list *operands)
{
	return (struct cli){
		.options = options,
		.command = command,
		.form = output_choose(options),
		.operands = operands->items + 1,
		.operand_count = operands->count - 1,
	};
}

static int run_command(const struct command *command, const struct cli_options *options,
		       const struct option_list *operands)
{
	struct cli_options made = *options;
	struct cli cli = make_cli(command, &made, operands);
	int code = find_answers(&cli, command);

	if (code) {
		log_info("%s", cli.reason.text);
		return command->verdict ? CLI_USAGE : code;
	}
	watch_look_at_terminal(&cli);
	if (options->watch_ns && cli.client) {
		watch_catch_signals();
		/* Tables follow their age; an object shown unchanged would be an old one. */
		if (made.output <= OUTPUT_WIDE)
			client_keep(cli.client);
		code = watch_loop(&cli, command);
	} else {
		code = watch_once(&cli, command);
	}
	client_free(cli.client);
	buf_fini(&cli.out);
	buf_fini(&cli.rows);
	return code;
}

/* The options of the command line alone, without the environment; the caller frees it. */
static struct cli_options read_typed(const struct option_program *program, int argc, char **argv)
{
	struct option_program typed = *program;
	struct option_list operands = {0};
	struct cli_options o = {0};
	struct error ignored;

	typed.env_prefix = NULL;
	if (options_parse(&typed, &o, argc, argv, &operands, &ignored) == 0)
		option_list_free(&operands);
	return o;
}

/* 0, or CLI_USAGE with the reason: an option in front of COMMAND that only COMMAND heeds. */
static int check_outer(const struct command *command, const struct cli_options *typed,
		       const struct option_list *operands, struct error *reason)
{
	size_t own = command == &command_whatif ? 1 : command == &command_replay ? 2 : SIZE_MAX;
	const char *option = typed->namespace		    ? "--namespace"
			     : typed->all_namespaces	    ? "--all-namespaces"
			     : typed->no_headers	    ? "--no-headers"
			     : typed->limit		    ? "--limit"
			     : typed->output == OUTPUT_WIDE ? "--output=wide"
							    : NULL;

	if (!option || typed->help || operands->count <= own)
		return CLI_OK;
	return error_fail(reason, CLI_USAGE, "%s is for COMMAND: give it behind --, as in -- %s %s",
			  option, operands->items[own], option);
}

/* 0, or CLI_USAGE with the reason why the command cannot be run within another. */
static int check_inner(const struct command *command, const struct cli_options *o,
		       const struct cli *outer, struct error *reason)
{
	int form = o->output;

	if ((command == &command_whatif && outer->command != &command_replay) ||
	    command == &command_act || command == &command_version ||
	    command->server == CLI_SERVER_UNUSED)
		return error_fail(reason, CLI_USAGE, "\"%s\" cannot be run within another command",
				  command->name);
	if (o->help || o->version || o->watch_ns)
		return error_fail(reason, CLI_USAGE,
				  "--help, --version and --watch do not go with COMMAND");
	if (outer->command == &command_whatif && form != outer->options->output &&
	    (form == OUTPUT_JSON || form == OUTPUT_YAML || form == OUTPUT_CSV))
		return error_fail(reason, CLI_USAGE,
				  "-o json, -o yaml and -o csv have no lines to compare: give "
				  "whatif -o json -- %s",
				  command->name);
	return output_check(o, command, reason);
}

static int run_on_files(const struct command *command, const struct cli_options *options,
			const struct option_list *operands, struct offline *files,
			const struct cli *outer, struct buf *out, struct error *reason)
{
	struct cli_options made = *options;
	struct cli cli = make_cli(command, &made, operands);
	int code;

	cli.shown = outer->shown;
	answer_from(&cli, files);
	code = watch_run(&cli, command);
	buf_add(out, cli.out.data, cli.out.len);
	*reason = cli.reason;
	client_free(cli.client);
	buf_fini(&cli.out);
	buf_fini(&cli.rows);
	return code;
}

int commands_run(struct offline *files, const struct option_list *words, const struct cli *outer,
		 struct buf *out, struct error *reason)
{
	char **argv = mem_zalloc(words->count + 2, sizeof(*argv));
	int argc = (int)words->count + 1, code = CLI_USAGE;
	struct option_program program = {.name = "evenkeel", .env_prefix = "EVENKEEL_"};
	struct cli_options options = {0}, typed;
	struct option_list operands = {0};
	const struct command *command;
	const char *name;

	argv[0] = (char *)program.name;
	memcpy(argv + 1, words->items, words->count * sizeof(*argv));
	name = operand_at(argc, argv, 0);
	command = name ? find_command(name) : NULL;
	program.specs = join_specs(command);
	typed = read_typed(&program, argc, argv);
	if (!command) {
		error_set(reason, "there is no command \"%s\"", name ? name : "");
	} else if (typed.snapshots.count || typed.usage || typed.server || typed.kubeconfig ||
		   typed.context) {
		error_set(
			reason,
			"--snapshot, --usage, --server, --kubeconfig and --context do not go with "
			"COMMAND: it answers from what %s reads",
			outer->command->name);
	} else if (options_parse(&program, &options, argc, argv, &operands, reason) == 0) {
		code = check_inner(command, &options, outer, reason)
			       ?: check_outer(command, &typed, &operands, reason);
		if (!code) {
			code = run_on_files(command, &options, &operands, files, outer, out,
					    reason);
			files = NULL;
		}
		options_free(&program, &options);
		option_list_free(&operands);
	}
	options_free(&program, &typed);
	offline_close(files);
	free((void *)program.specs);
	free(argv);
	return code;
}

static int print_text(struct buf *text, FILE *to, int code)
{
	bool written = fputs(text->data, to) >= 0 && fflush(to) == 0;

	buf_fini(text);
	return written ? code : CLI_ERROR;
}

static int dispatch(const char *base, const struct command *command,
		    const struct cli_options *options, const struct option_list *operands,
		    bool asked_help)
{
	bool asked = options->help || asked_help;
	struct buf text = BUF_INIT;
	struct error reason;

	if (options->version) {
		buf_add_str(&text, "evenkeel " EVENKEEL_VERSION "\n");
		return print_text(&text, stdout, CLI_OK);
	}
	if (asked || !command) {
		if (command)
			help_of_command(base, command, &text);
		else
			help_of_program(base, USAGE, SUMMARY, commands, COMMANDS, &text);
		return print_text(&text, asked ? stdout : stderr, asked ? CLI_OK : CLI_USAGE);
	}
	if (output_check(options, command, &reason))
		return usage_error(reason.text);
	if (!command->usage && operands->count > 1)
		return usage_error("this command takes no arguments; --help shows the usage");
	return run_command(command, options, operands);
}

/* --- names for completion --------------------------------------------------------------------- */

#define COMPLETION_NS NS_PER_SEC /* as long as a person waits for Tab */

/*
 * What can be read of an unfinished command line: a last word that wants a value, and what is
 * wrong, is left out until the rest makes sense. The caller frees it all.
 */
static void read_part(struct option_program *program, struct cli_options *o, int count,
		      char *const *words)
{
	char **argv = mem_zalloc((size_t)count + 2, sizeof(*argv));
	const char *name;
	int argc = count + 1, rc = -1;

	argv[0] = (char *)program->name;
	for (int i = 0; i < count; i++)
		argv[i + 1] = words[i];
	name = operand_at(argc, argv, 0);
	program->specs = join_specs(name ? find_command(name) : NULL);
	for (; rc && argc > 0; argc--) {
		struct option_list operands = {0};
		struct error reason;

		*o = (struct cli_options){0};
		rc = options_parse(program, o, argc, argv, &operands, &reason);
		if (rc == 0)
			option_list_free(&operands);
	}
	free(argv);
}

static void add_names(struct cli *cli, const char *list, struct buf *out)
{
	cJSON *doc = NULL;

	client_ask(cli->client, "/v1/names", NULL, &doc, &cli->reason);
	for (const cJSON *name = document_first(doc, list); name; name = name->next)
		if (cJSON_IsString(name) && utf8_is_clean(name->valuestring))
			buf_printf(out, "%s\n", name->valuestring);
	cJSON_Delete(doc);
}

/*
 * By the server that the words before name, or the environment. Failures are silent. A key press
 * runs no exec plugin.
 */
static void find_names(const char *what, int count, char *const *words, struct buf *out)
{
	static const char *const lists[][2] = {{"NODE", "nodes"},
					       {"NAMESPACE", "namespaces"},
					       {"CLASS", "slackClasses"}};
	struct option_program program = {.name = "evenkeel", .env_prefix = "EVENKEEL_"};
	struct cli_options options = {0};
	struct cli cli = {.options = &options};
	const char *const *list =
		array_find_text(lists, sizeof(lists) / sizeof(lists[0]), sizeof(lists[0]), what);

	if (!list)
		return;
	read_part(&program, &options, count, words);
	options.timeout_ns = COMPLETION_NS;
	if (!options.snapshots.count && open_server(&cli, false) == CLI_OK) {
		add_names(&cli, list[1], out);
		client_free(cli.client);
	}
	options_free(&program, &options);
	free((void *)program.specs);
}

/* What shells and the build ask of the tables. */
static bool answer_cli_spec(int argc, char **argv, int *code)
{
	static const struct option_program program = {
		.name = "evenkeel",
		.summary = SUMMARY,
		.usage = USAGE,
		.specs = commands_common,
		.env_prefix = "EVENKEEL_",
		.manual = cli_manual,
	};
	struct cli_spec_command rows[COMMANDS];
	struct cli_spec spec = make_spec(&program, rows);

	spec.find_names = find_names;
	return cli_spec_answer(&spec, argc, argv, code);
}

int commands_main(int argc, char **argv)
{
	const char *name = operand_at(argc, argv, 0), *base = program_name(argv[0]);
	bool asked_help = name && strcmp(name, "help") == 0;
	const struct command *command = name && !asked_help ? find_command(name) : NULL;
	struct option_program program = {.name = "evenkeel", .env_prefix = "EVENKEEL_"};
	struct cli_options options = {0}, typed;
	struct option_list operands = {0};
	struct error reason = {""};
	int code;

	log_start("evenkeel", LOG_LEVEL_INFO);
	if (answer_cli_spec(argc, argv, &code))
		return code;
	if (name && !asked_help && !command)
		return unknown_command(name);
	if (asked_help && (name = operand_at(argc, argv, 1))) {
		command = find_command(name);
		if (!command && strcmp(name, "help") != 0)
			return unknown_command(name);
	}
	program.specs = join_specs(command);
	if (options_parse(&program, &options, argc, argv, &operands, &reason)) {
		code = usage_error(reason.text);
	} else {
		typed = read_typed(&program, argc, argv);
		code = check_outer(command, &typed, &operands, &reason)
			       ? usage_error(reason.text)
			       : dispatch(base, command, &options, &operands, asked_help);
		options_free(&program, &typed);
		options_free(&program, &options);
		option_list_free(&operands);
	}
	free((void *)program.specs);
	return code;
}
