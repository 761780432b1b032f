/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any segment of a record is read as far as it can be, or refused with a reason, and what was read has
 * a view that can be asked about. zlib reads a file that is not compressed as it is.
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
	struct replay_moment m = {0};
	struct buf out = BUF_INIT;
	int rc = replay_open(&r, dir, &error);

	assert(rc == 0);
	if (replay_measure(dir, &extent, &error))
		extent.to_ns = 0;
	rc = replay_go(r, extent.to_ns, &error);
	assert(rc == 0 || error.text[0]);
	if (rc == 0)
		replay_take(r, extent.to_ns, &m);
	if (rc == 0 && replay_moment_files(&m, &files, &error) == 0) {
		offline_request(files, "GET", "/v1/nodes", "", 0, &out);
		offline_close(files);
	}
	replay_moment_fini(&m);
	buf_fini(&out);
	replay_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/evenkeel-record-XXXXXX", *path;
	int fd;

	assert(mkdtemp(dir));
	path = mem_printf("%s/" RECORD_PREFIX "0000000000000000001" RECORD_SUFFIX, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	go(dir);
	unlink(path);
	rmdir(dir);
	free(path);
	return 0;
}
