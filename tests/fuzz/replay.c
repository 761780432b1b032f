/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds every file of the given folders to a fuzz target: what the fuzzer once found stays found,
 * without libFuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/buf.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	struct buf content = BUF_INIT;
	FILE *file = fopen(path, "rb");
	uint8_t *exact;
	size_t got;

	if (!file) {
		perror(path);
		return 1;
	}
	do {
		got = fread(buf_reserve(&content, 4096), 1, 4096, file);
		content.len += got;
	} while (got > 0);
	fclose(file);
	/* A copy of the exact length lets the address sanitizer see every byte read past it. */
	exact = mem_alloc(content.len);
	if (content.len)
		memcpy(exact, content.data, content.len);
	LLVMFuzzerTestOneInput(exact, content.len);
	free(exact);
	buf_fini(&content);
	return 0;
}

/* Returns how many files there were, or -1. */
static int replay_folder(const char *folder)
{
	struct dirent **names;
	int count = scandir(folder, &names, NULL, alphasort), files = 0;

	if (count < 0) {
		perror(folder);
		return -1;
	}
	for (int i = 0; i < count; i++) {
		char *path = mem_printf("%s/%s", folder, names[i]->d_name);
		struct stat st;

		if (files >= 0 && !stat(path, &st) && S_ISREG(st.st_mode))
			files = replay_file(path) ? -1 : files + 1;
		free(path);
		free(names[i]);
	}
	free(names);
	return files;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int files = replay_folder(argv[i]);

		if (files < 0)
			return 1;
		total += files;
	}
	if (!total) {
		fprintf(stderr, "%s: no inputs to replay\n", argv[0]);
		return 1;
	}
	printf("%d inputs replayed\n", total);
	return 0;
}
