/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each program writes its documents and completions from its own tables, so no second list of
 * options can differ. Completion scripts know no option: they pass the words to the program and
 * offer its answer (cli_spec_complete()), so they suit every version of it. In their templates
 * PROGRAM is the program's name, FUNCTION that name as a part of a shell function's.
 */
#include "shared/cli_spec.h"

#include <stdio.h>
#include <string.h>

#include "shared/log.h"

const char *const cli_spec_shells[] = {"bash", "zsh", "fish", NULL};

static const char bash[] =
#include "shared/complete.bash.h"
	;
static const char zsh[] =
#include "shared/complete.zsh.h"
	;
static const char fish[] =
#include "shared/complete.fish.h"
	;

bool cli_spec_script(const char *program, const char *shell, struct buf *out)
{
	static const char *const templates[] = {bash, zsh, fish};
	static const char name[] = "PROGRAM", function[] = "FUNCTION";
	size_t at = 0;

	while (cli_spec_shells[at] && strcmp(cli_spec_shells[at], shell) != 0)
		at++;
	if (!cli_spec_shells[at])
		return false;
	for (const char *p = templates[at]; *p;) {
		if (strncmp(p, name, strlen(name)) == 0) {
			buf_add_str(out, program);
			p += strlen(name);
		} else if (strncmp(p, function, strlen(function)) == 0) {
			/* The program's name as part of a function's. */
			for (const char *c = program; *c; c++)
				buf_add_char(out, *c == '-' ? '_' : *c);
			p += strlen(function);
		} else {
			buf_add_char(out, *p++);
		}
	}
	return true;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int make(const struct cli_spec *o, int argc, char **argv, struct buf *out,
		struct error *error)
{
	struct option_list set = {.items = argv + 2, .count = (size_t)(argc - 2)};
	const char *word = argv[1];

	if (strcmp(word, "__config") == 0)
		return cli_spec_config(o->program, &set, out, error);
	if (strcmp(word, "__completion") == 0)
		return argc == 3 && cli_spec_script(o->program->name, argv[2], out)
			       ? 0
			       : error_fail(error, -1,
					    "__completion: say which: bash, zsh or fish");
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
	struct error error = {""};
	bool asked = false;

	for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]); i++)
		asked = asked || strcmp(argv[1], words[i]) == 0;
	if (!asked)
		return false;
	if (make(o, argc, argv, &out, &error)) {
		log_start(o->program->name, LOG_LEVEL_INFO);
		log_info("%s", error.text);
		*status = 2;
	} else {
		bool written = fwrite(out.data, 1, out.len, stdout) == out.len && !fflush(stdout);

		*status = written ? 0 : 1;
	}
	buf_fini(&out);
	return true;
}
