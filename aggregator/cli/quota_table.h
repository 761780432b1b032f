/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of resources in tables about quotas, from the API's objects. */
#ifndef EVENKEEL_AGGREGATOR_CLI_QUOTA_TABLE_H
#define EVENKEEL_AGGREGATOR_CLI_QUOTA_TABLE_H

#include <cjson/cJSON.h>

#include "aggregator/cli/cli.h"
#include "shared/table.h"
#include "shared/units.h"

/*
 * An answer about quotas that has this member; the caller frees it. NULL: it is none, and the
 * reason of cli says so.
 */
cJSON *quota_answer_parse(struct cli *cli, const char *json, size_t len, const char *member);
/*
 * An amount by its resource ("cpu") in an object like "used" of a quota; NaN where it names none.
 * object may be NULL.
 */
double quota_amount(const cJSON *object, const char *resource);
/* The first member of an object like that, NULL where there is none; ->next is the next. */
const cJSON *quota_first_amount(const cJSON *root, const char *path);
/* Its name as a resource: "cpuMillicores" is "cpu". */
const char *quota_resource(const char *key);
/* As people read it: "1.50", "20.0Gi", "3"; "-" where it is not known. */
void quota_amount_print(const char *resource, double amount, char out[UNITS_LEN]);
void quota_amount_cell(struct table *t, enum table_paint paint, const char *resource,
		       double amount);
/* What the API's amounts of it are in: "millicores", "bytes", or "" for what is counted. */
const char *quota_unit(const char *resource);
/* What the pods of a quota really use of it; NaN where that is not known. */
double quota_real_use(const cJSON *item, const char *resource);
/* -o csv of these items of a list of quotas. */
void quota_print_csv(struct cli *cli, const cJSON *items);

#endif
