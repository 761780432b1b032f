/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas for -o csv: a record for each quota, and columns for each resource that any of them names
 * or its pods ask for, with the unit in the title (cpu_used_millicores, nvidia.com/gpu_min).
 */
#include "aggregator/cli/columns.h"
#include "aggregator/cli/quota_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "shared/mem.h"

static const struct csv_field fields[] = {
	{"namespace", "namespace"},
	{"quota", "name"},
	{"weight", "weight"},
	{"pods_used", "pods.used"},
	{"pods_pending", "pods.pending"},
	{"pods_assumed", "pods.assumed"},
	{"pods_measured", "pods.measured"},
	{"state", "verdict"},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* Of each resource. */
static const char *const members[] = {"used", "min",   "max",	  "borrowed",
				      "lent", "share", "pending", "idle"};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

/* As a quota's members call them: "cpuMillicores". */
struct keys {
	const char **of; /* owned; what they point to is the answer's */
	size_t count;
};

static void add_key(struct keys *keys, const char *key)
{
	for (size_t i = 0; i < keys->count; i++)
		if (strcmp(keys->of[i], key) == 0)
			return;
	keys->of = mem_realloc(keys->of, (keys->count + 1) * sizeof(*keys->of));
	keys->of[keys->count++] = key;
}

static struct keys find_keys(const cJSON *items)
{
	struct keys keys = {NULL, 0};

	for (size_t m = 0; m < MEMBERS; m++)
		for (const cJSON *item = items; item; item = item->next)
			for (const cJSON *a = quota_first_amount(item, members[m]); a; a = a->next)
				add_key(&keys, a->string);
	return keys;
}

static void add_columns(const struct cli *cli, struct table *t, const char *resource)
{
	const char *unit = quota_unit(resource);

	for (size_t m = 0; m <= MEMBERS; m++) {
		char *title = mem_printf("%s_%s%s%s", resource, m < MEMBERS ? members[m] : "real",
					 *unit ? "_" : "", unit);

		csv_column(cli, t, title);
		free(title);
	}
}

static void add_cells(const struct cli *cli, struct table *t, const cJSON *item,
		      const char *resource)
{
	for (size_t m = 0; m < MEMBERS; m++)
		csv_number(cli, t, quota_amount(document_at(item, members[m]), resource));
	csv_number(cli, t, quota_real_use(item, resource));
}

void quota_print_csv(struct cli *cli, const cJSON *items)
{
	struct keys keys = find_keys(items);
	struct table *t = table_new();
	double place = 0;

	csv_columns(cli, t, fields, FIELDS);
	for (size_t i = 0; i < keys.count; i++)
		add_columns(cli, t, quota_resource(keys.of[i]));
	for (const cJSON *item = items; item; item = item->next) {
		table_row(t, document_text_or(item, "namespace", "-"));
		table_key(t, -place++);
		csv_cells(cli, t, item, fields, FIELDS);
		for (size_t i = 0; i < keys.count; i++)
			add_cells(cli, t, item, quota_resource(keys.of[i]));
	}
	commands_print_table(cli, t, "elasticquota");
	table_free(t);
	free(keys.of);
}
