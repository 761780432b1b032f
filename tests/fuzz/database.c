/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database's file, changed anywhere: it is used, or set aside and a new one is made, and what
 * is read of it is within bounds and in order. Input: patches to a file that was whole, each an
 * offset in two bytes, a length in one, and so many bytes. Sums of rows are beyond a fuzzer:
 * tests/fuzz/node_pack.c is behind them.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/store/database.h"
#include "shared/mem.h"
#include "tests/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MOST = 128 * 1024, ROWS_MAX = 8, MEMO_MOST = 17 << 20, PATCH_HEAD = 3 };

static struct {
	char *folder, *dir, *path;
	unsigned char whole[FILE_MOST]; /* the file as it should be */
	size_t len;
} f;

struct taken {
	size_t nodes;
	uint64_t last; /* decision */
};

static int take(void *ctx, const char *name, const void *state, size_t len, struct error *reason)
{
	struct taken *t = ctx;

	(void)reason;
	assert(name && state && len <= MEMO_MOST);
	t->nodes++;
	return 0;
}

static void take_decision(void *ctx, uint64_t number, const struct drain_row *row)
{
	struct taken *t = ctx;

	assert(number > t->last);
	assert(row->event && row->reason && row->node && row->text);
	t->last = number;
}

static struct database *open_database(struct taken *t, struct error *note)
{
	struct database_config config = {.dir = f.dir,
					 .rows_max = ROWS_MAX,
					 .take = take,
					 .take_memo = take,
					 .take_decision = take_decision,
					 .ctx = t};
	struct database *d = NULL;
	struct error error = {""};
	bool empty;
	int rc = database_open(&d, &config, &empty, note, &error);

	assert(rc ? !d && error.text[0] : d != NULL);
	return d;
}

/* Some rows of each kind; whether they could be written. */
static bool fill(struct database *d)
{
	struct drain_row *decisions[2];
	struct drain_rows of = {.first = 1, .count = 2, .of = decisions};
	struct error error;
	int rc = 0;

	for (int i = 0; i < 2; i++)
		decisions[i] = drain_row_new(
			&(struct drain_row){.time_ns = i + 1, "needed", "", "node", "because"});
	for (int i = 0; i < 4 && !rc; i++) {
		struct usage_row row = {.name = mem_printf("node-%d", i), .heard_ns = i + 1};

		buf_add(&row.packed, "state of a node", 15);
		rc = database_write(d, &row, 1, &error);
		buf_fini(&row.packed);
		free(row.name);
	}
	if (!rc)
		rc = database_write_memo(d, "slack", "remembered", 10, 1, &error);
	if (!rc)
		rc = database_write_decisions(d, &of, &error);
	if (!rc)
		rc = database_commit(d, 0, &error);
	for (int i = 0; i < 2; i++)
		drain_row_drop(decisions[i]);
	return rc == 0;
}

static void remove_all(void)
{
	folder_remove(f.folder);
	free(f.dir);
	free(f.path);
}

static void make_whole(void)
{
	struct taken t = {0};
	struct error note;
	struct database *d;
	FILE *file;

	/* Nothing here is to outlast the machine. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	f.folder = folder_make();
	f.dir = mem_printf("%s/state", f.folder);
	f.path = database_file_path(f.dir);
	atexit(remove_all);
	d = open_database(&t, &note);
	assert(d && fill(d));
	database_close(d);
	file = fopen(f.path, "re");
	assert(file);
	f.len = fread(f.whole, 1, sizeof(f.whole), file);
	assert(f.len > 0 && f.len < sizeof(f.whole));
	fclose(file);
}

static void write_patched(const uint8_t *data, size_t size)
{
	static unsigned char bytes[FILE_MOST];
	FILE *file = fopen(f.path, "we");

	memcpy(bytes, f.whole, f.len);
	while (size > PATCH_HEAD) {
		size_t at = (size_t)(data[0] << 8 | data[1]) % f.len, len = data[2];

		data += PATCH_HEAD;
		size -= PATCH_HEAD;
		if (len > size)
			len = size;
		if (len > f.len - at)
			len = f.len - at;
		memcpy(bytes + at, data, len);
		data += len;
		size -= len;
	}
	assert(file && fwrite(bytes, 1, f.len, file) == f.len);
	fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taken t = {0};
	struct error note = {""};
	struct database *d;

	if (!f.folder)
		make_whole();
	database_file_make(f.dir, f.path, &note);
	write_patched(data, size);
	note.text[0] = '\0';
	d = open_database(&t, &note);
	if (d) {
		assert(!note.text[0] == !database_file_count_aside(f.dir));
		assert(fill(d) || !note.text[0]);
	}
	database_close(d);
	folder_remove(mem_strdup(f.dir));
	return 0;
}
