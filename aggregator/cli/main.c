/* SPDX-License-Identifier: Apache-2.0 */
/* The evenkeel command: see commands.c. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "aggregator/cli/commands.h"
#include "shared/mem.h"

int main(int argc, char **argv)
{
	cJSON_InitHooks(&(cJSON_Hooks){mem_alloc, free});
	return commands_main(argc, argv);
}
