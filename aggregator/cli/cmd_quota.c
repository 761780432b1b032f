/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel quota: what each namespace is guaranteed, has, and may still get; whether a pod would be
 * let in, whose pods would have to go for it, and what is wrong with the quotas. Four requests with
 * one table of options: the first operand says which, else it is a namespace. A namespace with such
 * a name is reached by -n.
 *
 * Exit status: 3 where a pod is refused, nobody can make room for it, or lint finds an error.
 */
#include "aggregator/cli/cmd_quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/pod_file.h"
#include "shared/jsonw.h"

enum { PDB_DEFAULT, PDB_HARD, PDB_SOFT };

static const char *const pdbs[] = {"server", "hard", "soft", NULL};
/* For completion. */
static const char *const variant_words[] = {"corrected", "upstream", NULL};
static const char *const operand_words[] = {"admit", "preempt", "lint", NULL};

static const struct option_spec specs[] = {
	{"pod", 0, OPTION_STRING, offsetof(struct cli_options, pod), "FILE", NULL, 0, 0, NULL,
	 "admit, preempt: the pod, or a Deployment, StatefulSet, DaemonSet, Job, CronJob or "
	 "ReplicaSet for the pod of its template, in YAML or JSON; \"-\" reads standard input."},
	{"node", 0, OPTION_STRING, offsetof(struct cli_options, node), "NODE", NULL, 0, 0, NULL,
	 "preempt: only this node may be its destination."},
	{"variant", 0, OPTION_STRING, offsetof(struct cli_options, variant), "NAME", NULL, 0, 0,
	 variant_words, "Which rules: corrected (the server's default) or upstream."},
	{"pdb", 0, OPTION_CHOICE, offsetof(struct cli_options, pdb), "hard|soft", "server", 0, 0,
	 pdbs,
	 "preempt: PodDisruptionBudgets are kept (hard), or broken where nothing else helps "
	 "(soft); hard unless the server was told otherwise."},
	{"quota-default-min", 0, OPTION_STRING, offsetof(struct cli_options, quota_min), "LIST",
	 NULL, 0, 0, NULL,
	 "With --snapshot: what namespaces without a quota are guaranteed, such as "
	 "cpu=2,memory=4Gi."},
	{"quota-default-max", 0, OPTION_STRING, offsetof(struct cli_options, quota_max), "LIST",
	 NULL, 0, 0, NULL, "With --snapshot: what they may have at most."},
	{"quota-cover-all", 0, OPTION_FLAG, offsetof(struct cli_options, cover_all), NULL, NULL, 0,
	 0, NULL, "With --snapshot: namespaces without a quota get one with a min of 0."},
	{"quota-critical-priority", 0, OPTION_INTEGER,
	 offsetof(struct cli_options, critical_priority), "N", NULL, 1, 2147483647, NULL,
	 "With --snapshot: pods of this priority and above are held up by no quota; 2000000000 "
	 "without it."},
	{0},
};

/* --- options ---------------------------------------------------------------------------------- */

/* By a flag: what the environment says is meant for a daemon, too, that is started with it. */
static bool is_given(const char *value, const char *variable)
{
	const char *environment = getenv(variable);

	return value && !(environment && strcmp(environment, value) == 0);
}

static bool are_rules_given(const struct cli_options *o)
{
	return is_given(o->quota_min, "EVENKEEL_QUOTA_DEFAULT_MIN") ||
	       is_given(o->quota_max, "EVENKEEL_QUOTA_DEFAULT_MAX") ||
	       (o->cover_all && !getenv("EVENKEEL_QUOTA_COVER_ALL")) ||
	       (o->critical_priority && !getenv("EVENKEEL_QUOTA_CRITICAL_PRIORITY"));
}

/*
 * What only the server can be told, unless there is none. The rules are those of this one call of
 * the command.
 */
static int set_rules(struct cli *cli, struct quota_options *rules)
{
	const struct cli_options *o = cli->options;

	quota_options_default(rules);
	if (!cli->offline) {
		if (!are_rules_given(o))
			return CLI_OK;
		reason_set(&cli->reason,
			   "--quota-default-min, --quota-default-max, --quota-cover-all and "
			   "--quota-critical-priority go with --snapshot; a server has its own");
		return CLI_USAGE;
	}
	if (o->critical_priority)
		rules->critical_priority = (int32_t)o->critical_priority;
	if (quota_options_set_default(rules, o->quota_min, o->quota_max, o->cover_all,
				      &cli->reason))
		return CLI_USAGE;
	offline_set_quota(cli->offline, rules);
	return CLI_OK;
}

/* --- requests --------------------------------------------------------------------------------- */

typedef int render(struct cli *cli, const char *json, size_t len);

static void add_parameter(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', name);
	client_escape(value, path);
}

static int get(struct cli *cli, struct buf *path, render *show)
{
	struct buf answer = BUF_INIT;
	int rc, code;

	add_parameter(path, "variant", cli->options->variant);
	rc = client_get(cli->client, path->data, &answer, &cli->reason);
	code = rc ? client_exit(rc) : show(cli, answer.data ? answer.data : "", answer.len);
	buf_fini(&answer);
	return code;
}

/* One namespace as an object of its own, or all. */
static int run_list(struct cli *cli, const char *namespace)
{
	struct buf path = BUF_INIT;
	int code;

	buf_add_str(&path, "/v1/quotas");
	if (namespace) {
		buf_add_char(&path, '/');
		client_escape(namespace, &path);
	}
	code = get(cli, &path, namespace ? quota_render_one : quota_render_list);
	buf_fini(&path);
	return code;
}

static int run_lint(struct cli *cli)
{
	struct buf path = BUF_INIT;
	int code;

	buf_add_str(&path, "/v1/quotas");
	add_parameter(&path, "namespace", cli->options->namespace);
	code = get(cli, &path, quota_render_lint);
	buf_fini(&path);
	return code;
}

/* -n is the namespace of a pod that names none, as it is to kubectl. */
static void write_request(const struct cli *cli, const struct buf *pod, bool preempt,
			  struct buf *out)
{
	const struct cli_options *o = cli->options;
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_object_open(&w);
	jsonw_key(&w, "pod");
	buf_add(out, pod->data, pod->len);
	w.comma = true;
	if (o->namespace)
		jsonw_key_string(&w, "namespace", o->namespace);
	if (o->variant)
		jsonw_key_string(&w, "variant", o->variant);
	if (preempt && o->node)
		jsonw_key_string(&w, "nominatedNode", o->node);
	if (preempt && o->pdb != PDB_DEFAULT)
		jsonw_key_string(&w, "pdb", pdbs[o->pdb]);
	jsonw_object_close(&w);
}

static int ask(struct cli *cli, const char *path, bool preempt, render *show)
{
	struct buf pod = BUF_INIT, request = BUF_INIT, answer = BUF_INIT;
	const char *file = cli->options->pod;
	int rc, code = CLI_ERROR;

	rc = pod_file_read(file, &pod, &cli->reason);
	if (rc == 0) {
		write_request(cli, &pod, preempt, &request);
		rc = client_post(cli->client, path, request.data, request.len, &answer,
				 &cli->reason);
		code = rc ? client_exit(rc) : show(cli, answer.data ? answer.data : "", answer.len);
	}
	buf_fini(&pod);
	buf_fini(&request);
	buf_fini(&answer);
	return code;
}

static int run_ask(struct cli *cli, const char *path, bool preempt, render *show)
{
	const char *file = cli->options->pod;

	if (!file || !*file) {
		reason_set(&cli->reason, "--pod: give the pod, a file of YAML or JSON");
		return CLI_USAGE;
	}
	if (cli->options->watch_ns && strcmp(file, "-") == 0) {
		reason_set(&cli->reason,
			   "--watch cannot read --pod - again and again; name a file");
		return CLI_USAGE;
	}
	return ask(cli, path, preempt, show);
}

/* --- the command ------------------------------------------------------------------------------ */

static int dispatch(struct cli *cli)
{
	const char *word = cli->operand_count ? cli->operands[0] : NULL;
	const char *namespace = cli->options->namespace;

	if (cli->operand_count > 1) {
		reason_set(&cli->reason,
			   "quota takes one namespace, or one of admit, preempt and "
			   "lint, and not \"%.60s\" as well",
			   cli->operands[1]);
		return CLI_USAGE;
	}
	if (word && strcmp(word, "lint") == 0)
		return run_lint(cli);
	if (word && strcmp(word, "admit") == 0 && cli->form == OUTPUT_NAME) {
		reason_set(&cli->reason,
			   "-o name goes with lists of objects; quota admit has resources");
		return CLI_USAGE;
	}
	if (word && strcmp(word, "admit") == 0)
		return run_ask(cli, "/v1/quotas/admit", false, quota_render_admission);
	if (word && strcmp(word, "preempt") == 0)
		return run_ask(cli, "/v1/quotas/preempt", true, quota_render_plan);
	if (word && namespace && strcmp(word, namespace) != 0) {
		reason_set(&cli->reason, "\"%.60s\" and -n %.60s: give one namespace", word,
			   namespace);
		return CLI_USAGE;
	}
	return run_list(cli, word ? word : namespace);
}

static int run(struct cli *cli)
{
	struct quota_options rules;
	int code = set_rules(cli, &rules);

	if (code == CLI_OK)
		code = dispatch(cli);
	if (cli->offline)
		offline_set_quota(cli->offline, NULL);
	quota_options_fini(&rules);
	return code;
}

static const struct outline_example examples[] = {
	{"evenkeel quota", "What every namespace is guaranteed, uses, borrows and lends."},
	{"evenkeel quota admit --pod web.yaml",
	 "Whether quotas let a pod start, by which numbers."},
	{"evenkeel quota preempt --pod web.yaml -n shop", "Whose pods would be evicted for it."},
	{0},
};
static const char *const terms[] = {"MIN", "MAX",   "BORROWED", "LENT",	   "PENDING", "REAL",
				    "1+1", "atMax", "overMax",	"starved", "waiting", NULL};

const struct command command_quota = {
	.name = "quota",
	.usage = "[NAMESPACE | admit | preempt | lint]",
	.summary = "Show elastic quotas, whom they let in, and who would have to go",
	.details =
		"Shows one row for each resource of each quota; with a NAMESPACE also its states "
		"in words, and what is wrong with its quota. admit --pod FILE: whether the pod may "
		"start, and what would let it. preempt --pod FILE: whose pods would have to go for "
		"it, and where it would run then. lint: what is wrong with the quotas. Exit status "
		"3: the pod is refused, nobody can make room for it, or lint finds an error.",
	.examples = examples,
	.terms = terms,
	.specs = specs,
	.words = operand_words,
	.names = "NAMESPACE",
	.lists = true,
	.run = run,
};
