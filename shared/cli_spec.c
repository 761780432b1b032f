/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words by which the build asks a program for its documents, and shells for what may follow.
 * Programs answer themselves, as their tables are their own; so there is no second list of options
 * that could differ.
 */
#include "shared/cli_spec.h"

#include <stdio.h>
#include <string.h>

#include "shared/log.h"

static int find_shell(const char *name)
{
	for (int i = 0; cli_spec_shells[i]; i++)
		if (strcmp(cli_spec_shells[i], name) == 0)
			return i;
	return -1;
}

static int make_config(const struct cli_spec *o, int count, char **texts, struct buf *out,
		       struct reason *reason)
{
	struct option_list set = {.items = texts, .count = (size_t)count};

	return cli_spec_config(o->program, &set, out, reason);
}

static int make_script(const struct cli_spec *o, int count, char **texts, struct buf *out,
		       struct reason *reason)
{
	int shell = count == 1 ? find_shell(texts[0]) : -1;

	if (shell < 0) {
		reason_set(reason, "__completion: say which: bash, zsh or fish");
		return -1;
	}
	cli_spec_script(o->program->name, shell, out);
	return 0;
}

static int make(const struct cli_spec *o, int argc, char **argv, struct buf *out,
		struct reason *reason)
{
	const char *word = argv[1];

	if (strcmp(word, "__config") == 0)
		return make_config(o, argc - 2, argv + 2, out, reason);
	if (strcmp(word, "__completion") == 0)
		return make_script(o, argc - 2, argv + 2, out, reason);
	if (strcmp(word, "__complete") == 0)
		cli_spec_complete(o, argc - 2, argv + 2, out);
	else
		cli_spec_manual(o, out);
	return 0;
}

bool cli_spec_answer(const struct cli_spec *o, int argc, char **argv, int *status)
{
	static const char *const words[] = {"__manual", "__config", "__completion", "__complete"};
	struct buf out = BUF_INIT;
	struct reason reason = {""};
	bool asked = false;

	for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]); i++)
		asked = asked || strcmp(argv[1], words[i]) == 0;
	if (!asked)
		return false;
	if (make(o, argc, argv, &out, &reason)) {
		log_start(o->program->name, LOG_LEVEL_INFO);
		log_info("%s", reason.text);
		*status = 2;
	} else {
		bool written = fwrite(out.data, 1, out.len, stdout) == out.len && !fflush(stdout);

		*status = written ? 0 : 1;
	}
	buf_fini(&out);
	return true;
}
