/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a file or a folder as they are now, for tests that read them once. */
#pragma once

#include "shared/keyring.h"

/* Fails as keyring_open() and keyring_read() do. */
static inline int keys_load(struct keyring *ring, const char *path, struct error *error)
{
	struct keyring_place *place;
	int rc = keyring_open(&place, path, error);

	if (rc)
		return rc;
	rc = keyring_read(ring, place, error);
	keyring_close(place);
	return rc;
}
