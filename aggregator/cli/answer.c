/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/answer.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"

static bool is_about(const cJSON *doc, const struct answer *a)
{
	if (!a->about)
		return cJSON_IsArray(document_at(doc, "items"));
	return document_at(doc, a->members[0]) &&
	       (!a->members[1] || document_at(doc, a->members[1])) &&
	       (!a->kind || document_is(doc, "kind", a->kind));
}

static void print_json(struct cli *cli, const char *json, size_t len)
{
	buf_add(&cli->out, json, len);
	if (!len || json[len - 1] != '\n')
		buf_add_char(&cli->out, '\n');
}

int answer_show(struct cli *cli, const struct answer *a, const char *json, size_t len)
{
	int code = CLI_OK;
	cJSON *doc;

	if (cli->options->output >= OUTPUT_BALLOONS) {
		print_json(cli, json, len);
		return CLI_OK;
	}
	doc = cJSON_ParseWithLength(json, len);
	if (!is_about(doc, a)) {
		cJSON_Delete(doc);
		return error_fail(&cli->reason, CLI_ERROR,
				  "the answer is not %s%s; is that an evenkeel-aggregator%s?",
				  a->about ? "one about " : "a JSON list", a->about ? a->about : "",
				  a->about ? " of this version" : "");
	}
	if (cli->options->output == OUTPUT_JSON)
		print_json(cli, json, len);
	else
		a->print(cli, doc);
	if (a->judge)
		code = a->judge(cli, doc);
	cJSON_Delete(doc);
	return code;
}

/* rc: of the request. */
static int show(struct cli *cli, const struct answer *a, int rc, struct buf *body)
{
	int code =
		rc ? client_exit(rc) : answer_show(cli, a, body->data ? body->data : "", body->len);

	buf_fini(body);
	return code;
}

int answer_get(struct cli *cli, const struct answer *a, struct buf *path)
{
	struct buf body = BUF_INIT;
	int rc = client_get(cli->client, path->data, &body, &cli->reason);

	buf_fini(path);
	return show(cli, a, rc, &body);
}

int answer_post(struct cli *cli, const struct answer *a, const char *path, cJSON *request)
{
	struct buf body = BUF_INIT;
	int rc = client_post(cli->client, path, request, &body, &cli->reason);

	return show(cli, a, rc, &body);
}

cJSON *answer_new(const char *kind)
{
	cJSON *doc = cJSON_CreateObject();

	cJSON_AddStringToObject(doc, "apiVersion", "evenkeel.io/v1");
	cJSON_AddStringToObject(doc, "kind", kind);
	return doc;
}

void answer_print(struct cli *cli, const cJSON *doc)
{
	char *text = cJSON_PrintUnformatted(doc);

	print_json(cli, text, strlen(text));
	free(text);
}

int answer_check_pod(struct cli *cli)
{
	const char *file = cli->options->pod;

	if (cli->options->watch_ns && file && strcmp(file, "-") == 0)
		return cli_misuse(cli, "--watch cannot read --pod - again and again; name a file");
	return CLI_OK;
}
