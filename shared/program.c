/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/program.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/cli_spec.h"
#include "shared/log.h"

static int start(const struct option_program *program, const void *values,
		 const struct program_common *common, program_run *run, struct error *error)
{
	if (common->help) {
		struct buf text = BUF_INIT;

		options_help(program, &text);
		fputs(text.data, stdout);
		buf_fini(&text);
		return 0;
	}
	if (common->version) {
		printf("%s %s\n", program->name, EVENKEEL_VERSION);
		return 0;
	}
	if (sodium_init() < 0)
		return error_fail(error, 1, "the crypto library does not start");
	log_start(program->name, common->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	return run(values, error);
}

int program_main(const struct option_program *program, void *values,
		 const struct program_common *common, program_run *run, int argc, char **argv)
{
	const struct cli_spec spec = {.program = program, .section = 8};
	struct error error = {""};
	int status = 2;

	if (cli_spec_answer(&spec, argc, argv, &status))
		return status;
	log_start(program->name, LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	if (!options_parse(program, values, argc, argv, NULL, &error))
		status = start(program, values, common, run, &error);
	if (status)
		log_error("%s", error.text);
	options_free(program, values);
	return status;
}

int program_check_descriptors(int count, struct error *error)
{
	int fds[64], opened = 0, rc = 0;

	assert(count <= (int)(sizeof(fds) / sizeof(fds[0])));
	while (opened < count && !rc) {
		fds[opened] = eventfd(0, EFD_CLOEXEC);
		if (fds[opened] < 0)
			rc = -errno;
		else
			opened++;
	}
	if (rc)
		error_set(error,
			  "%d files more must be open, and only %d can be: %s; raise the limit "
			  "(LimitNOFILE=, ulimit -n)",
			  count, opened, strerror(-rc));
	while (opened)
		close(fds[--opened]);
	return rc;
}
