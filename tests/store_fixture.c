/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregator/edge/store/database.h"
#include "shared/mem.h"
#include "tests/process.h"

static void wake(void *ctx)
{
	(void)ctx;
}

struct store_event *store_fixture_open(struct store_fixture *f)
{
	struct store_config config = {.dir = f->dir,
				      .nodes_max = 5000,
				      .busy_ms = 1,
				      .retry_ns = 20 * NS_PER_MS,
				      .wake = wake};
	struct store_event *e;

	assert_int_equal(store_start(&f->store, &config, NULL), 0);
	e = store_take(f->store, STORE_FIXTURE_NS);
	assert_non_null(e);
	assert_int_equal(e->kind, STORE_OPENED);
	return e;
}

void store_fixture_stop(struct store_fixture *f)
{
	store_stop(f->store);
	f->store = NULL;
}

void store_fixture_init(struct store_fixture *f)
{
	*f = (struct store_fixture){.folder = folder_make()};
	f->dir = mem_printf("%s/state", f->folder);
	f->path = database_file_path(f->dir);
	store_event_free(store_fixture_open(f));
}

void store_fixture_fini(struct store_fixture *f)
{
	store_fixture_stop(f);
	folder_remove(f->folder);
	free(f->dir);
	free(f->path);
}
