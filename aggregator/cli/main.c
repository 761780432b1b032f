/* SPDX-License-Identifier: Apache-2.0 */
/* The evenkeel command: see commands.c. */
#include "aggregator/cli/commands.h"

int main(int argc, char **argv)
{
	return commands_main(argc, argv);
}
