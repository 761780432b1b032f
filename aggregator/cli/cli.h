/* SPDX-License-Identifier: Apache-2.0 */
/* What every command of the CLI is given, and what it gives back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/planner/drain_settings.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/whatif.h"
#include "shared/buf.h"
#include "shared/options.h"
#include "shared/cli_spec.h"
#include "shared/error.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_ERROR = 1,
	CLI_USAGE = 2,
	CLI_REFUSED = 3, /* a threshold is crossed, what was asked for cannot be */
	CLI_STALE = 4, /* all usage, or an object named, is stale or missing; with --strict any */
};

enum cli_output {
	OUTPUT_TABLE,
	OUTPUT_WIDE,
	OUTPUT_JSON,
	OUTPUT_YAML,
	OUTPUT_CSV,
	OUTPUT_NAME,
	OUTPUT_COMMANDS, /* of drain: what kubectl is to do */
	OUTPUT_SOFT_TAINTS, /* likewise */
	OUTPUT_PLAN, /* likewise: a file for evenkeel verify */
	OUTPUT_PATCH, /* of advise: commands of kubectl */
	OUTPUT_VPA, /* likewise: objects for kubectl apply */
	OUTPUT_SCENARIO, /* likewise: a file for evenkeel whatif */
	OUTPUT_SNAPSHOT, /* of whatif: the changed cluster, a file for --snapshot */
	OUTPUT_BALLOONS, /* of slack: objects for kubectl apply */
	OUTPUT_BUFFERS, /* likewise */
};
enum cli_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/*
 * Filled from the option tables: one struct for all commands, each command knows its own members
 * and the global ones.
 */
struct cli_options {
	bool help, version, no_headers, strict, all_namespaces, reverse;
	bool all, explain, history, containers, contention;
	bool dry_run, yes; /* of act */
	bool nodes; /* of advise, as the next three */
	int policy; /* enum advice_policy */
	int confidence; /* index into the command's own words */
	char *throttled_below;
	int64_t watch_ns; /* between two pictures; 0: one answer */
	char *server, *namespace, *pod, *variant, *blend, *usage;
	struct client_access access; /* to the server; but for the token of the environment */
	char *kubeconfig, *context; /* of the cluster that answers in place of a server */
	struct option_list snapshots;
	char *selector; /* of labels */
	struct option_list plugins;
	int output; /* enum cli_output */
	int color; /* enum cli_color */
	int sort; /* index into the command's own keys */
	int window; /* index into cli_windows */
	int unlimited; /* what no limit counts as; index into the command's own words */
	char *quota_min, *quota_max; /* what namespaces without a quota get, in a snapshot */
	bool cover_all; /* likewise: a quota with a min of 0 */
	char *node; /* nominated */
	int pdb; /* index into the command's own words */
	struct slack_option_values slack; /* in a snapshot */
	struct drain_settings drain; /* likewise */
	int64_t assume_unneeded_ns;
	int format; /* of YAML; index into the command's own words */
	struct whatif_changes changes;
	struct option_list settings; /* of the command that whatif runs, likewise */
	char *scenarios; /* a file */
	struct option_list at; /* moments of a record */
	char *from, *to; /* likewise */
	struct option_list policies; /* over them */
	int64_t step_ns; /* between two of them */
	int64_t critical_priority; /* in a snapshot; 0: the usual one */
	int64_t timeout_ns, limit;
};

struct columns_shown;

/* clang-format off */
/* Rows of a command's table of options; member is one of struct cli_options. */
#define CLI_OPTION(name, letter, kind, member, value, initial, choices, help) \
	{name, letter, kind, offsetof(struct cli_options, member), value, initial, 0, 0, choices, help}
#define CLI_FLAG(name, letter, member, help) \
	FLAG_OPTION(name, letter, offsetof(struct cli_options, member), help)
#define CLI_TEXT(name, letter, member, value, help) \
	CLI_OPTION(name, letter, OPTION_STRING, member, value, NULL, NULL, help)
#define CLI_CHOICE(name, letter, member, value, initial, choices, help) \
	CLI_OPTION(name, letter, OPTION_CHOICE, member, value, initial, choices, help)
/* Of commands with --sort-by; and with objects that have labels. */
#define CLI_REVERSE CLI_FLAG("reverse", 0, reverse, "Reverse the order; unknown values stay last.")
#define CLI_SELECTOR(what) \
	CLI_TEXT("selector", 'l', selector, "LABELS", \
		 "Only " what " with these labels, as kubectl takes them: a=b,c!=d,e in (f,g),!h.")
/* clang-format on */

extern const char *const cli_windows[]; /* "5m", "10m", "15m", NULL */

#define CLI_LOCAL_SERVER "http://127.0.0.1:2020"

struct cli {
	/*
	 * Borrowed, as all pointers here. Of commands that make JSON or a wide table of what is
	 * then printed in another form, output is that one.
	 */
	const struct cli_options *options;
	const struct command *command;
	enum cli_output form; /* what is printed */
	struct client *client; /* NULL: of commands that do without, none */
	char *const *operands; /* what stands after the command */
	size_t operand_count;
	struct columns_shown *shown; /* of commands that whatif runs; else NULL */
	struct offline *offline; /* what answers, in place of a server; else NULL */
	const char *no_usage; /* why nothing is measured, where that is known; else NULL */
	bool terminal; /* what stdout is */
	bool color;
	size_t width; /* columns of the terminal; 0: whatever is needed */
	struct buf out; /* for stdout, valid with every exit code; owned */
	struct buf rows; /* takes its place with -o csv and -o name; owned */
	struct error reason; /* for stderr, when not empty */
};

/* The value CLI_USAGE, with the reason: "return cli_misuse(cli, ..)". */
#define cli_misuse(cli, ...) error_fail(&(cli)->reason, CLI_USAGE, __VA_ARGS__)

struct command {
	const char *name;
	const char *usage; /* what follows the name, or NULL */
	const char *summary; /* one line for the list of commands */
	const char *details; /* further lines of its help, or NULL */
	struct cli_spec_example examples[6]; /* up to one that is empty */
	const char *terms[20]; /* of the glossary, that its help explains; up to NULL */
	const struct option_spec *specs; /* its own options, ended by a NULL name; or NULL */
	const char *const *words; /* operands that completion offers; or NULL */
	const char *names; /* NODE, NAMESPACE, CLASS: of what others are the names; or NULL */
	bool lists; /* it has rows for -o csv and -o name */
	enum { CLI_SERVER_NEEDED, CLI_SERVER_OPTIONAL, CLI_SERVER_UNUSED } server;
	/* CLI_ERROR is its verdict: unreadable files are CLI_USAGE; its details have the statuses */
	bool verdict;
	/* Appends to cli->out; returns enum cli_exit, and cli->reason says why it is not CLI_OK. */
	int (*run)(struct cli *cli);
};

extern const struct command command_act, command_advise, command_completion, command_doctor,
	command_drain, command_glossary, command_nodes, command_options, command_pods,
	command_quota, command_replay, command_scores, command_slack, command_verify,
	command_version, command_whatif;

/* What the manual page says besides commands and options; of it the section with all words. */
#define CLI_GLOSSARY "GLOSSARY"
extern const struct option_note cli_manual[];
