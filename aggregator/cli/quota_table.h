/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of resources in tables about quotas, from the API's objects. */
#pragma once

#include "aggregator/cli/columns.h"
#include "shared/units.h"

/*
 * An amount by its resource ("cpu") in an object like "used" of a quota, by its path; NaN where it
 * names none.
 */
double quota_amount(const cJSON *root, const char *path, const char *resource);
/* The first member of an object like that, NULL where there is none; ->next is the next. */
const cJSON *quota_first_amount(const cJSON *root, const char *path);
/* Its name as a resource: "cpuMillicores" is "cpu". */
const char *quota_resource(const char *key);
/* As people read it: "1.50", "20.0Gi", "3"; "-" where it is not known. */
void quota_amount_print(const char *resource, double amount, char out[UNITS_LEN]);
void quota_amount_cell(struct table *t, enum table_paint paint, const char *resource,
		       double amount);
/* The row's `more`, where rows are about a resource of the item. */
struct quota_amounts {
	const char *resource; /* "-" where the quota names none */
	const cJSON *reason; /* of its state */
	bool total; /* the item is the sum over all quotas */
};

/* The resource's amount in a member of the item, as quota_amount(). */
double quota_row_amount(const struct row *r, const char *path);
/* Cells of rows of resources; a missing max is "none". */
void quota_cell_amount(const struct row *r, const struct column *c);
void quota_cell_max(const struct row *r, const struct column *c);
/* Of CPU or memory that a pod requests; of any row. */
void quota_cell_request(const struct row *r, const struct column *c);
/* What the API's amounts of it are in: "millicores", "bytes", or "" for what is counted. */
const char *quota_unit(const char *resource);
/* What the pods of a quota really use of it; NaN where that is not known. */
double quota_real_use(const cJSON *item, const char *resource);
