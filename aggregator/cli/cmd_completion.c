/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel completion: what a shell reads so that Tab knows commands, options and their values. */
#include <string.h>

#include "aggregator/cli/cli.h"
#include "shared/outline.h"

static const struct option_spec specs[] = {{0}};

static int run(struct cli *cli)
{
	static const char shells[] = "bash, zsh or fish";

	for (int shell = 0; cli->operand_count == 1 && outline_shells[shell]; shell++)
		if (strcmp(cli->operands[0], outline_shells[shell]) == 0) {
			outline_script("evenkeel", shell, &cli->out);
			return CLI_OK;
		}
	if (cli->operand_count == 1)
		reason_set(&cli->reason, "completion: \"%s\" is not known; it is %s",
			   cli->operands[0], shells);
	else
		reason_set(&cli->reason, "completion: say for which shell: %s", shells);
	return CLI_USAGE;
}

static const struct outline_example examples[] = {
	{"source <(evenkeel completion bash)", "In ~/.bashrc."},
	{"source <(evenkeel completion zsh)", "In ~/.zshrc, after compinit."},
	{"evenkeel completion fish | source", "In ~/.config/fish/config.fish."},
	{0},
};

const struct command command_completion = {
	.name = "completion",
	.usage = "bash|zsh|fish",
	.summary = "Print what completes this command's arguments in a shell",
	.details = "Prints what completes this command's arguments in a shell, for the file that "
		   "the shell "
		   "reads where it starts. Packages have done so already.",
	.examples = examples,
	.specs = specs,
	.words = outline_shells,
	.run = run,
};
