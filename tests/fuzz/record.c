/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any segment of a record is read as far as it can be, or refused with a reason, and what was read has
 * a view that can be asked about. zlib reads a file that is not compressed as it is. Inputs have no
 * checksums, which a fuzzer would not guess.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "aggregator/cli/replay.h"
#include "aggregator/state/record.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void go(const char *dir)
{
	struct offline *files;
	struct error error = {""};
	struct replay_extent extent;
	struct replay *r;
	struct offline_moment m = {0};
	struct buf out = BUF_INIT;
	int rc = replay_open(&r, dir, &error);

	assert(rc == 0);
	if (replay_measure(dir, &extent, &error))
		extent.to_ns = 0;
	rc = replay_go(r, extent.to_ns, &error);
	assert(rc == 0 || error.text[0]);
	if (rc == 0)
		replay_take(r, extent.to_ns, &m);
	if (rc == 0 && offline_open_moment(&files, &m, &error) == 0) {
		offline_request(files, "GET", "/v1/nodes", "", &out);
		offline_close(files);
	}
	offline_moment_fini(&m);
	buf_fini(&out);
	replay_close(r);
}

/* The entries with their checksums; what is no entry stays. */
static void seal(struct buf *out, const uint8_t *data, size_t size)
{
	while (size >= RECORD_HEAD) {
		size_t len = data[1] | data[2] << 8 | data[3] << 16 | (size_t)data[4] << 24, begun;

		if (len > size - RECORD_HEAD)
			break;
		begun = record_begin(out, (enum record_type)data[0]);
		buf_add(out, data + RECORD_HEAD, len);
		record_end(out, begun);
		data += RECORD_HEAD + len;
		size -= RECORD_HEAD + len;
	}
	buf_add(out, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/evenkeel-record-XXXXXX", *path;
	struct buf content = BUF_INIT;
	int fd;

	assert(mkdtemp(dir));
	path = mem_printf("%s/" RECORD_PREFIX "0000000000000000001" RECORD_SUFFIX, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	seal(&content, data, size);
	assert(fd >= 0 && write(fd, content.data, content.len) == (ssize_t)content.len);
	buf_fini(&content);
	close(fd);
	go(dir);
	unlink(path);
	rmdir(dir);
	free(path);
	return 0;
}
