/* SPDX-License-Identifier: Apache-2.0 */
/* A request without parameters, for fuzz targets that make bodies. */
#pragma once

#include <stddef.h>

#include "aggregator/api/api.h"

static inline const char *bare_query(const struct api_request *rq, const char *name)
{
	(void)rq;
	(void)name;
	return NULL;
}

static inline const char *bare_query_other(const struct api_request *rq, const char *const *known)
{
	(void)rq;
	(void)known;
	return NULL;
}
