/* SPDX-License-Identifier: Apache-2.0 */
/* A store over a database in a folder of its own, opened anew as by the next process. */
#pragma once

#include <stdint.h>

#include "aggregator/edge/store/store.h"
#include "shared/clock.h"

/* How long to wait for an event that must come. */
#define STORE_FIXTURE_NS (20 * NS_PER_SEC)

struct store_fixture {
	char *folder, *dir, *path; /* path: of the database */
	struct store *store; /* NULL: stopped */
	uint64_t save; /* number of the newest save */
};

/* A fresh folder, and a store that runs. */
void store_fixture_init(struct store_fixture *f);
void store_fixture_fini(struct store_fixture *f);
/*
 * The first event, with what was in the database; the caller frees it. Fails the test where it does
 * not open.
 */
struct store_event *store_fixture_open(struct store_fixture *f);
void store_fixture_stop(struct store_fixture *f);
