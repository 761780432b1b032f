/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes resource quantities ("500m", "1.5Gi", "12e6") as exact integers. */
#pragma once

#include <stdint.h>

#include "shared/error.h"

/*
 * Grammar of k8s.io/apimachinery resource.Quantity: sign, decimal number, then one of n u m "" k M
 * G T P E, Ki Mi Gi Ti Pi Ei, or e/E with a decimal exponent. Values round up (away from zero) to
 * the unit, as in the API server, and saturate at INT64_MAX / -INT64_MAX. 0, or -EINVAL with the
 * reason quoting the text.
 */
int quantity_parse_milli(const char *text, int64_t *milli, struct error *error); /* thousandths */
int quantity_parse_units(const char *text, int64_t *units,
			 struct error *error); /* whole units: bytes, counts */
