/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of strangers: whatever the parameters, the answer is one of the documented statuses, and
 * what claims to be JSON is JSON. Input: a target below the server's root, "v1/pods?limit=1".
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/view_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_documented(int status)
{
	return status == 200 || status == 400 || status == 404 || status == 405 || status == 503;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *target = mem_printf("/%.*s", (int)size, (const char *)data);
	struct api_fixture f;
	int status;

	api_fixture_open(&f, view_fixture_new());
	status = api_fixture_get(&f, target);
	assert(is_documented(status));
	if (f.response.content_type && strcmp(f.response.content_type, "application/json") == 0)
		assert(f.json);
	if (status >= 400 && f.response.body.len)
		assert(*api_fixture_error(&f));
	api_fixture_close(&f);
	free(target);
	return 0;
}
