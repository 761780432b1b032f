/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/model/resources_text.h"

#include <stdio.h>
#include <string.h>

bool resources_are_bytes(const char *name)
{
	return strcmp(name, "memory") == 0 || strcmp(name, "ephemeral-storage") == 0 ||
	       strncmp(name, "hugepages-", strlen("hugepages-")) == 0;
}

/* In the largest unit in which it is whole. */
static void write_bytes(int64_t amount, char out[RESOURCES_TEXT_MAX])
{
	static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	size_t i = 0;

	while (amount && amount % 1024 == 0 && i + 1 < sizeof(suffixes) / sizeof(suffixes[0])) {
		amount /= 1024;
		i++;
	}
	snprintf(out, RESOURCES_TEXT_MAX, "%lld%s", (long long)amount, suffixes[i]);
}

void resources_amount_text(const char *name, int64_t amount, char out[RESOURCES_TEXT_MAX])
{
	if (resources_are_bytes(name))
		write_bytes(amount, out);
	else if (strcmp(name, "cpu") == 0 && amount % 1000)
		snprintf(out, RESOURCES_TEXT_MAX, "%lldm", (long long)amount);
	else
		snprintf(out, RESOURCES_TEXT_MAX, "%lld",
			 (long long)(strcmp(name, "cpu") == 0 ? amount / 1000 : amount));
}
