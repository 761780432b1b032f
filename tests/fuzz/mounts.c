/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cgroupfs.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const roots[] = {"/", "/sys/fs/cgroup"};
	char *text = mem_strndup((const char *)data, size);

	for (int i = 0; i < 2; i++) {
		FILE *list = fmemopen(text, strlen(text), "r");
		char *mount[MOUNTS];

		assert(list);
		cgroupfs_find_mounts(list, roots[i], mount);
		fclose(list);
		for (int h = 0; h < MOUNTS; h++) {
			/* What is found is below where it was looked for. */
			assert(!mount[h] || strncmp(mount[h], roots[i], strlen(roots[i])) == 0);
			free(mount[h]);
		}
	}
	free(text);
	return 0;
}
