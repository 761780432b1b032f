/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/program.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>

#include "shared/buf.h"
#include "shared/log.h"
#include "shared/cli_spec.h"

static void print_help(const struct option_program *program)
{
	struct buf text = BUF_INIT;

	options_help(program, &text);
	fputs(text.data, stdout);
	buf_fini(&text);
}

static int start(const struct option_program *program, const void *values,
		 const struct program_common *common, program_run *run, struct reason *reason)
{
	if (common->help) {
		print_help(program);
		return 0;
	}
	if (common->version) {
		printf("%s %s\n", program->name, EVENKEEL_VERSION);
		return 0;
	}
	if (sodium_init() < 0) {
		reason_set(reason, "the crypto library does not start");
		return 1;
	}
	log_start(program->name, common->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	return run(values, reason);
}

int program_main(const struct option_program *program, void *values,
		 const struct program_common *common, program_run *run, int argc, char **argv)
{
	const struct cli_spec spec = {.program = program, .section = 8};
	struct reason reason = {""};
	int status = 2;

	if (cli_spec_answer(&spec, argc, argv, &status))
		return status;
	log_start(program->name, LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	if (!options_parse(program, values, argc, argv, NULL, &reason))
		status = start(program, values, common, run, &reason);
	if (status)
		log_error("%s", reason.text);
	options_free(program, values);
	return status;
}
