/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel doctor: walks the chain from the server back to the agents by what /v1/status tells, and
 * says what to do. A server that does not answer is the first finding and, since nothing can be
 * known behind it, the last. Of a snapshot there is no chain: what can be told is what it holds.
 */
#include <errno.h>
#include <string.h>

#include "aggregator/cli/cli.h"
#include "aggregator/cli/client.h"
#include "aggregator/api/doctor.h"
#include "aggregator/cli/commands.h"
#include "shared/document.h"
#include "shared/jsonw.h"
#include "shared/options.h"
#include "shared/utf8.h"

enum { INDENT = 6 };

void doctor_print(const struct doctor *d, bool color, size_t width, struct buf *out)
{
	static const char *const paints[] = {"\033[32m", "\033[33m", "\033[31m"};
	struct buf text = BUF_INIT;

	if (!width)
		width = SIZE_MAX;
	for (size_t i = 0; i < d->count; i++) {
		const struct doctor_check *c = &d->checks[i];

		buf_printf(out, "%s%s%s%*s", color ? paints[c->verdict] : "",
			   doctor_verdicts[c->verdict], color ? "\033[0m" : "",
			   INDENT - (int)strlen(doctor_verdicts[c->verdict]), "");
		buf_clear(&text);
		buf_printf(&text, "%s: %s", c->what, c->detail);
		utf8_clean(text.data);
		options_wrap(out, text.data, width, INDENT, INDENT);
		if (!c->advice)
			continue;
		buf_clear(&text);
		buf_add_str(&text, c->advice);
		utf8_clean(text.data);
		buf_printf(out, "%*s", INDENT, "");
		options_wrap(out, text.data, width, INDENT, INDENT);
	}
	buf_fini(&text);
}

void doctor_print_json(const struct doctor *d, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_string(&w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(&w, "kind", "Diagnosis");
	doctor_write(d, &w);
	jsonw_object_close(&w);
	buf_add_char(out, '\n');
}

static int show(struct cli *cli, const struct doctor *d)
{
	enum doctor_verdict verdict = doctor_verdict_of(d);

	if (cli->options->output == OUTPUT_JSON)
		doctor_print_json(d, &cli->out);
	else
		doctor_print(d, cli->color, cli->width, &cli->out);
	if (verdict == DOCTOR_FAIL || (verdict == DOCTOR_WARN && cli->options->strict))
		return CLI_REFUSED;
	return CLI_OK;
}

/* Where no answer came, or one that says no more. */
static const char *advice(const struct client *c, int rc)
{
	switch (rc) {
	case -EACCES:
		return "It is there, and knows who may ask: its administrator gives tokens, "
		       "certificates, or a ClusterRole with its paths in nonResourceURLs.";
	case -EKEYREJECTED:
		return "Somebody answers, who may not be the one that was meant: see --ca-file and "
		       "--client-cert.";
	default:
		if (client_is_cluster(c))
			return "Name another cluster with --kubeconfig or --context, or an "
			       "aggregator itself with --server.";
		return "In a cluster, --kubeconfig or --context name the way through its API "
		       "server, or kubectl port-forward brings the aggregator here for --server.";
	}
}

static int run(struct cli *cli)
{
	bool offline = cli->options->snapshots.count > 0;
	struct error error = {""};
	struct doctor d = {0};
	cJSON *status = NULL;
	int code, rc = client_ask(cli->client, "/v1/status", NULL, &status, &error);

	if (!rc && !document_at(status, "view"))
		error_set(&error,
			  "the answer is no Status object; is that an evenkeel-aggregator?");
	if (error.text[0] && offline) {
		doctor_add(&d, DOCTOR_FAIL, "snapshot", NULL, "%s", error.text);
	} else if (offline) {
		doctor_add(&d, DOCTOR_OK, "snapshot", NULL, "%s was read",
			   client_server(cli->client));
		doctor_examine_snapshot(&d, status, cli->no_usage);
	} else if (error.text[0]) {
		doctor_add(&d, DOCTOR_FAIL, "server", advice(cli->client, rc), "%s", error.text);
	} else {
		doctor_add(&d, DOCTOR_OK, "server", NULL, "%s answers", client_server(cli->client));
		doctor_examine(&d, status);
	}
	code = show(cli, &d);
	cJSON_Delete(status);
	doctor_fini(&d);
	return code;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "Check server, API, agents and database, with remedies",
	.details = "Checks the server, the Kubernetes API and the server's rights there, the "
		   "agents, their clocks and reports, and the database. Each line begins with ok, "
		   "warn (answers are incomplete) or fail (answers are wrong or missing), and has "
		   "its remedy below. With --snapshot it checks the content of the files. Exit "
		   "status: 0; 3 if a check fails (with --strict, warns) or no server answers.",
	.examples = {{"evenkeel doctor", "Faults and their remedies."},
		     {"evenkeel doctor --strict -o json",
		      "A check that also fails if answers are incomplete."},
		     {"evenkeel doctor --snapshot dump.json --usage watcher.json",
		      "Whether files are enough for answers."}},
	.run = run,
};
