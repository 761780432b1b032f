/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/quota_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shared/array.h"

static const char *const keys[][2] = {
	{"cpu", "cpuMillicores"},
	{"memory", "memoryBytes"},
	{"ephemeral-storage", "ephemeralStorageBytes"},
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* Whole cores have no decimals: that is how most bounds are written. */
static void print_cpu(double milli, char out[UNITS_LEN])
{
	if (milli >= 1000 && fmod(milli, 1000) == 0)
		snprintf(out, UNITS_LEN, "%.0f", milli / 1000);
	else
		units_cpu(milli, out);
}

double quota_amount(const cJSON *root, const char *path, const char *resource)
{
	const char *const *row = array_find_text(keys, KEYS, sizeof(keys[0]), resource);
	const cJSON *item =
		cJSON_GetObjectItemCaseSensitive(document_at(root, path), row ? row[1] : resource);

	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

const cJSON *quota_first_amount(const cJSON *root, const char *path)
{
	const cJSON *object = document_at(root, path);

	return cJSON_IsObject(object) ? object->child : NULL;
}

const char *quota_resource(const char *key)
{
	for (size_t i = 0; i < KEYS; i++)
		if (strcmp(keys[i][1], key) == 0)
			return keys[i][0];
	return key;
}

void quota_amount_print(const char *resource, double amount, char out[UNITS_LEN])
{
	if (!isfinite(amount))
		snprintf(out, UNITS_LEN, "-");
	else if (amount == 0)
		snprintf(out, UNITS_LEN, "0");
	else if (strcmp(quota_unit(resource), "millicores") == 0)
		print_cpu(amount, out);
	else if (strcmp(quota_unit(resource), "bytes") == 0)
		units_bytes(amount, out);
	else
		snprintf(out, UNITS_LEN, "%.0f", amount);
}

void quota_amount_cell(struct table *t, enum table_paint paint, const char *resource, double amount)
{
	char text[UNITS_LEN];

	quota_amount_print(resource, amount, text);
	table_cell(t, paint, text);
}

double quota_row_amount(const struct row *r, const char *path)
{
	const struct quota_amounts *more = r->more;

	return quota_amount(r->item, path, more->resource);
}

void quota_cell_amount(const struct row *r, const struct column *c)
{
	const struct quota_amounts *more = r->more;

	quota_amount_cell(r->table, PAINT_PLAIN, more->resource, quota_row_amount(r, c->at));
}

void quota_cell_max(const struct row *r, const struct column *c)
{
	const struct quota_amounts *more = r->more;

	if (isfinite(quota_row_amount(r, c->at)) || more->total)
		quota_cell_amount(r, c);
	else
		table_cell(r->table, PAINT_PLAIN, "none");
}

void quota_cell_request(const struct row *r, const struct column *c)
{
	quota_amount_cell(r->table, PAINT_PLAIN,
			  row_units_of(c->at) == units_cpu ? "cpu" : "memory",
			  row_number(r, c->at));
}

double quota_real_use(const cJSON *item, const char *resource)
{
	double p95 = document_number(item, "realUse.cpuMillicores.p95");

	if (strcmp(resource, "memory") == 0)
		return document_number(item, "realUse.workingSetBytes");
	if (strcmp(resource, "cpu") != 0)
		return NAN;
	return isfinite(p95) ? p95 : document_number(item, "realUse.cpuMillicores.mean");
}

const char *quota_unit(const char *resource)
{
	static const char *const prefixes[] = {"requests.", "limits."};

	/* requests.cpu of a ResourceQuota counts as cpu does, also where it was misplaced. */
	for (size_t i = 0; i < 2; i++)
		if (strncmp(resource, prefixes[i], strlen(prefixes[i])) == 0) {
			resource += strlen(prefixes[i]);
			break;
		}
	if (strcmp(resource, "cpu") == 0)
		return "millicores";
	return resource_is_bytes(resource) ? "bytes" : "";
}
