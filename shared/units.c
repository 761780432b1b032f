/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding decides the unit, not the value before it: 999.7 millicores print as "1.00", never as
 * "1000m", and 1023.97 MiB as "1.0Gi".
 */
#include "shared/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void unknown(char out[UNITS_LEN])
{
	snprintf(out, UNITS_LEN, "-");
}

void units_cpu(double milli, char out[UNITS_LEN])
{
	if (!isfinite(milli))
		unknown(out);
	else if (milli < 0.05)
		snprintf(out, UNITS_LEN, "0m");
	else if (milli < 9.95)
		snprintf(out, UNITS_LEN, "%.1fm", milli);
	else if (milli < 999.5)
		snprintf(out, UNITS_LEN, "%.0fm", milli);
	else
		snprintf(out, UNITS_LEN, "%.2f", milli / 1000);
}

/* "300m" becomes "300m/4"; if both are unknown, "-". */
static void append_capacity(char out[UNITS_LEN], const char *capacity)
{
	size_t used = strlen(out);

	if (strcmp(out, "-") == 0 && strcmp(capacity, "-") == 0)
		return;
	snprintf(out + used, UNITS_LEN - used, "/%s", capacity);
}

void units_cpu_of(double milli, double capacity_milli, char out[UNITS_LEN])
{
	char capacity[UNITS_LEN];

	if (isfinite(capacity_milli) && fmod(capacity_milli, 1000) == 0)
		snprintf(capacity, sizeof(capacity), "%.0f", capacity_milli / 1000);
	else
		units_cpu(capacity_milli, capacity);
	units_cpu(milli, out);
	append_capacity(out, capacity);
}

static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

#define TEBIBYTE 1099511627776.0

/* The unit in which bytes print with one decimal below 1024.0; *scaled is the value in it. */
static const char *scale(double bytes, double *scaled)
{
	size_t i = 0;

	for (; i + 1 < SUFFIXES && bytes >= (i ? 1023.95 : 1023.5); i++)
		bytes /= 1024;
	*scaled = bytes;
	return suffixes[i];
}

void units_bytes(double bytes, char out[UNITS_LEN])
{
	const char *suffix;

	if (!isfinite(bytes)) {
		unknown(out);
		return;
	}
	suffix = scale(bytes, &bytes);
	snprintf(out, UNITS_LEN, "%.*f%s", suffix[0] ? 1 : 0, bytes, suffix);
}

/* Values below 1 Ti have their own unit and three digits, as tenths of a Ti are too coarse. */
static void write_small_part(double bytes, char out[UNITS_LEN])
{
	double scaled;
	const char *suffix = scale(bytes, &scaled);

	snprintf(out, UNITS_LEN, "%.*f%s", suffix[0] && scaled < 99.95 ? 1 : 0, scaled, suffix);
}

void units_bytes_of(double bytes, double capacity_bytes, char out[UNITS_LEN])
{
	const char *suffix;
	char capacity[UNITS_LEN];
	double scaled, part;

	if (!isfinite(capacity_bytes) || !isfinite(bytes) || capacity_bytes <= 0) {
		units_bytes(bytes, out);
		units_bytes(capacity_bytes, capacity);
		append_capacity(out, capacity);
		return;
	}
	suffix = scale(capacity_bytes, &scaled);
	snprintf(capacity, sizeof(capacity), "%.1f", scaled);
	if (strcmp(capacity + strlen(capacity) - 2, ".0") == 0)
		capacity[strlen(capacity) - 2] = '\0';
	part = bytes * (scaled / capacity_bytes);
	if (bytes > 0 && part < 0.95 && capacity_bytes >= TEBIBYTE)
		write_small_part(bytes, out);
	else
		snprintf(out, UNITS_LEN, "%.1f", part);
	snprintf(out + strlen(out), UNITS_LEN - strlen(out), "/%s%s", capacity, suffix);
}

void units_percent(double share, char out[UNITS_LEN])
{
	if (!isfinite(share))
		unknown(out);
	else if (share > 0 && share < 0.005)
		snprintf(out, UNITS_LEN, "<1%%");
	else
		snprintf(out, UNITS_LEN, "%.0f%%", round(share * 100));
}

void units_age(double seconds, char out[UNITS_LEN])
{
	long long s;

	if (!isfinite(seconds) || seconds > 1e15) {
		unknown(out);
		return;
	}
	s = seconds > 0 ? (long long)seconds : 0;
	if (s < 60)
		snprintf(out, UNITS_LEN, "%llds", s);
	else if (s < 3600)
		snprintf(out, UNITS_LEN, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, UNITS_LEN, "%lldh%02lldm", s / 3600, s / 60 % 60);
	else
		snprintf(out, UNITS_LEN, "%lldd%lldh", s / 86400, s / 3600 % 24);
}

void units_seconds(double seconds, char out[UNITS_LEN])
{
	if (!isfinite(seconds))
		unknown(out);
	else if (seconds <= 0)
		snprintf(out, UNITS_LEN, "0s");
	else if (seconds < 0.05)
		snprintf(out, UNITS_LEN, "<0.1s");
	else
		snprintf(out, UNITS_LEN, seconds < 9.95 ? "%.1fs" : "%.0fs", seconds);
}

void units_micros(double micros, char out[UNITS_LEN])
{
	if (!isfinite(micros))
		unknown(out);
	else if (micros < 0.05)
		snprintf(out, UNITS_LEN, "0us");
	else if (micros < 999.5)
		snprintf(out, UNITS_LEN, micros < 9.95 ? "%.1fus" : "%.0fus", micros);
	else if (micros < 999.5e3)
		snprintf(out, UNITS_LEN, micros < 9.95e3 ? "%.1fms" : "%.0fms", micros / 1e3);
	else
		snprintf(out, UNITS_LEN, "%.1fs", micros / 1e6);
}
