/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the aggregator, and showing its answer. */
#pragma once

#include "aggregator/cli/cli.h"
#include "shared/document.h"

struct answer {
	const char *about; /* for "the answer is not one about .."; NULL: any list will do */
	const char *members[2]; /* that such an answer has; the second may be NULL */
	const char *kind; /* that it says it is; NULL: whatever it says */
	void (*print)(struct cli *cli, const cJSON *doc); /* in every form but JSON */
	/* The exit code, with cli->reason; NULL: CLI_OK. */
	int (*judge)(struct cli *cli, const cJSON *doc);
};

extern const struct answer drain_answer, drain_history_answer; /* /v1/drain and below */
extern const struct answer quota_list_answer, quota_one_answer; /* /v1/quotas; of one namespace */
extern const struct answer quota_lint_answer; /* the findings of the list */
extern const struct answer quota_admit_answer, quota_preempt_answer; /* likewise below */
extern const struct answer act_answer, wave_history_answer; /* /v1/act; waves of the history */
extern const struct answer scores_answer, slack_answer; /* /v1/scores, /v1/slack */

/*
 * Appends the answer to cli->out as the options say: the API's object as it is with -o json, and
 * where it is objects for kubectl. The exit code, with cli->reason.
 */
int answer_show(struct cli *cli, const struct answer *a, const char *json, size_t len);
/* The same of what the server answers. path is emptied. */
int answer_get(struct cli *cli, const struct answer *a, struct buf *path);
/* Frees the request. */
int answer_post(struct cli *cli, const struct answer *a, const char *path, cJSON *request);
/* An object of that kind, for the caller to fill and free. */
cJSON *answer_new(const char *kind);
/* Appends it to cli->out, in one line: jq and output_indent() make more of it. */
void answer_print(struct cli *cli, const cJSON *doc);
/* CLI_USAGE with the reason where --pod is what cannot be read again with --watch, else CLI_OK. */
int answer_check_pod(struct cli *cli);

/* --- cmd_scores.c: the request, apart from sending it */

/*
 * The body to POST, which is the caller's: {"pod", "nodes", "plugins", "args", "blend", "variant",
 * "explain"}; pod is a JSON object. NULL with the reason for a --blend or --plugin that cannot be read.
 */
cJSON *scores_request(const struct cli *cli, const char *pod, struct error *reason);
/*
 * Of it what --plugin says. Each is NAME, NAME:ARGUMENT=VALUE,ARGUMENT=VALUE.. or NAME:{..}, an
 * object in JSON or YAML. In the short form values are read as YAML has them, and a dot in an
 * argument's name leads into an object. Adds "plugins", and "args" when there are any; nothing
 * where no plugin is named. Names and values are the API's to judge. -EINVAL with the reason for
 * what has another form.
 */
int plugin_option_add(const struct option_list *plugins, cJSON *request, struct error *reason);
