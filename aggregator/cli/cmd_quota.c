/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel quota: what each namespace is guaranteed, has, and may still get; whether a pod would be
 * let in, whose pods would have to go for it, and what is wrong with the quotas. Four requests with
 * one table of options: the first operand says which, else it is a namespace. A namespace with such
 * a name is reached by -n.
 *
 * Exit status: 3 where a pod is refused, nobody can make room for it, or lint finds an error.
 */
#include "aggregator/cli/answer.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/cli/client.h"
#include "aggregator/api/pod_file.h"

enum { PDB_DEFAULT, PDB_HARD, PDB_SOFT };

static const char *const pdbs[] = {"server", "hard", "soft", NULL};
/* For completion. */
static const char *const variant_words[] = {"corrected", "upstream", NULL};
static const char *const operand_words[] = {"admit", "preempt", "lint", NULL};

static const struct option_spec specs[] = {
	CLI_TEXT("pod", 0, pod, "FILE",
		 "admit, preempt: the pod, or a Deployment, StatefulSet, DaemonSet, Job, CronJob "
		 "or ReplicaSet for the pod of its template, in YAML or JSON; \"-\" reads standard "
		 "input."),
	CLI_TEXT("node", 0, node, "NODE", "preempt: only this node may be its destination."),
	CLI_OPTION("variant", 0, OPTION_STRING, variant, "NAME", NULL, variant_words,
		   "Rules: corrected (the server's default) or upstream."),
	CLI_CHOICE("pdb", 0, pdb, "hard|soft", "server", pdbs,
		   "preempt: PodDisruptionBudgets are never broken (hard), or as a last resort "
		   "(soft). Default: --quota-pdb of the server, which is hard."),
	CLI_TEXT("quota-default-min", 0, quota_min, "LIST",
		 "With --snapshot: min of namespaces without a quota, such as cpu=2,memory=4Gi."),
	CLI_TEXT("quota-default-max", 0, quota_max, "LIST",
		 "With --snapshot: max of namespaces without a quota."),
	CLI_FLAG("quota-cover-all", 0, cover_all,
		 "With --snapshot: namespaces without a quota get one with a min of 0."),
	{"quota-critical-priority", 0, OPTION_INTEGER,
	 offsetof(struct cli_options, critical_priority), "N", NULL, 1, 2147483647, NULL,
	 "With --snapshot: quotas do not hold pods of this priority and above. Default: "
	 "2000000000."},
	{0},
};

/* --- options ---------------------------------------------------------------------------------- */

/* By a flag: what the environment says is meant for a daemon, too, that is started with it. */
static bool is_given(const char *value, const char *variable)
{
	const char *environment = getenv(variable);

	return value && !(environment && strcmp(environment, value) == 0);
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
		if (!is_given(o->quota_min, "EVENKEEL_QUOTA_DEFAULT_MIN") &&
		    !is_given(o->quota_max, "EVENKEEL_QUOTA_DEFAULT_MAX") &&
		    !(o->cover_all && !getenv("EVENKEEL_QUOTA_COVER_ALL")) &&
		    !(o->critical_priority && !getenv("EVENKEEL_QUOTA_CRITICAL_PRIORITY")))
			return CLI_OK;
		return cli_misuse(
			cli, "--quota-default-min, --quota-default-max, --quota-cover-all and "
			     "--quota-critical-priority go with --snapshot; a server has its own");
	}
	if (o->critical_priority)
		rules->critical_priority = (int32_t)o->critical_priority;
	if (quota_options_set_default(rules, o->quota_min, o->quota_max, o->cover_all,
				      &cli->reason))
		return CLI_USAGE;
	offline_set_rules(cli->offline, rules, NULL, NULL);
	return CLI_OK;
}

/* --- requests --------------------------------------------------------------------------------- */

/* segment: of the path, a namespace as an object of its own. namespace: what the list is of. */
static int get(struct cli *cli, const struct answer *answer, const char *segment,
	       const char *namespace)
{
	struct buf path = BUF_INIT;

	buf_add_str(&path, segment ? "/v1/quotas/" : "/v1/quotas");
	if (segment)
		client_escape(segment, &path);
	client_add_parameter(&path, "namespace", namespace);
	client_add_parameter(&path, "variant", cli->options->variant);
	return answer_get(cli, answer, &path);
}

/* -n is the namespace of a pod that names none, as it is to kubectl. */
static int ask(struct cli *cli, const char *path, bool preempt, const struct answer *answer)
{
	const struct cli_options *o = cli->options;
	struct buf pod = BUF_INIT;
	int code = CLI_ERROR;
	cJSON *request;

	if (!o->pod || !*o->pod)
		return cli_misuse(cli, "--pod: give the pod, a file of YAML or JSON");
	if (answer_check_pod(cli))
		return CLI_USAGE;
	if (pod_file_read(o->pod, &pod, &cli->reason) == 0) {
		request = cJSON_CreateObject();
		cJSON_AddRawToObject(request, "pod", pod.data);
		if (o->namespace)
			cJSON_AddStringToObject(request, "namespace", o->namespace);
		if (o->variant)
			cJSON_AddStringToObject(request, "variant", o->variant);
		if (preempt && o->node)
			cJSON_AddStringToObject(request, "nominatedNode", o->node);
		if (preempt && o->pdb != PDB_DEFAULT)
			cJSON_AddStringToObject(request, "pdb", pdbs[o->pdb]);
		code = answer_post(cli, answer, path, request);
	}
	buf_fini(&pod);
	return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int dispatch(struct cli *cli)
{
	const char *word = cli->operand_count ? cli->operands[0] : NULL;
	const char *namespace = cli->options->namespace;

	if (cli->operand_count > 1)
		return cli_misuse(cli,
				  "quota takes one namespace, or one of admit, preempt and lint, "
				  "and not \"%.60s\" as well",
				  cli->operands[1]);
	if (word && strcmp(word, "lint") == 0)
		return get(cli, &quota_lint_answer, NULL, namespace);
	if (word && strcmp(word, "admit") == 0 && cli->form == OUTPUT_NAME)
		return cli_misuse(cli,
				  "-o name goes with lists of objects; quota admit has resources");
	if (word && strcmp(word, "admit") == 0)
		return ask(cli, "/v1/quotas/admit", false, &quota_admit_answer);
	if (word && strcmp(word, "preempt") == 0)
		return ask(cli, "/v1/quotas/preempt", true, &quota_preempt_answer);
	if (word && namespace && strcmp(word, namespace) != 0)
		return cli_misuse(cli, "\"%.60s\" and -n %.60s: give one namespace", word,
				  namespace);
	if (word || namespace)
		return get(cli, &quota_one_answer, word ? word : namespace, NULL);
	return get(cli, &quota_list_answer, NULL, NULL);
}

static int run(struct cli *cli)
{
	struct quota_options rules;
	int code = set_rules(cli, &rules) ?: dispatch(cli);

	if (cli->offline)
		offline_set_rules(cli->offline, NULL, NULL, NULL);
	quota_options_fini(&rules);
	return code;
}

const struct command command_quota = {
	.name = "quota",
	.usage = "[NAMESPACE | admit | preempt | lint]",
	.summary = "Show elastic quotas, whether they admit a pod, and its victims",
	.details = "Shows one row for each resource of each quota; with a NAMESPACE also its "
		   "states in words and the errors of its quota. admit --pod FILE: whether the pod "
		   "may start, and if not, what has to change. preempt --pod FILE: the victims "
		   "that it needs, and its node. lint: errors in quotas. Exit status 3: the pod is "
		   "refused, no victims suffice, or lint finds an error.",
	.examples = {{"evenkeel quota",
		      "Guarantee, use, borrowed and lent amounts of every namespace."},
		     {"evenkeel quota admit --pod web.yaml",
		      "Whether quotas admit a pod, with the numbers."},
		     {"evenkeel quota preempt --pod web.yaml -n shop",
		      "The victims that the pod needs."}},
	.terms = {"MIN", "MAX", "BORROWED", "LENT", "PENDING", "REAL", "1+1", "atMax", "overMax",
		  "starved", "waiting"},
	.specs = specs,
	.words = operand_words,
	.names = "NAMESPACE",
	.lists = true,
	.run = run,
};
