/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities for people, in notations that Kubernetes accepts; unknown (NaN) is "-". */
#pragma once

enum { UNITS_LEN = 48 };

/* Millicores below one core ("0.4m", "12m", "300m"), cores from there on ("1.25"). */
void units_cpu(double milli, char out[UNITS_LEN]);
/* "300m/4": capacities of whole cores lose their decimals. */
void units_cpu_of(double milli, double capacity_milli, char out[UNITS_LEN]);
/* "512", "1.5Ki", "20.0Mi", "3.2Gi": one decimal. */
void units_bytes(double bytes, char out[UNITS_LEN]);
/*
 * "6.2/15.6Gi", "6.2/16Gi": in the unit of the capacity; from Ti on a value below 1 in its own,
 * "245Gi/1.4Ti".
 */
void units_bytes_of(double bytes, double capacity_bytes, char out[UNITS_LEN]);
/* 0.123 is "12%"; a positive share that rounds to 0 is "<1%". */
void units_percent(double share, char out[UNITS_LEN]);
/* "3s", "1m12s", "2h05m", "3d4h" */
void units_age(double seconds, char out[UNITS_LEN]);
/* "0s", "0.4s", "12s" */
void units_seconds(double seconds, char out[UNITS_LEN]);
/* "0us", "0.4us", "181us", "1.2ms", "2.5s" */
void units_micros(double micros, char out[UNITS_LEN]);

/* The ending of a noun behind a number: "1 node", "2 nodes". */
static inline const char *units_plural(double count)
{
	return count == 1 ? "" : "s";
}
