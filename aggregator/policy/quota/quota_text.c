/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/quota/quota_text.h"

#include <string.h>

#include "aggregator/model/resources.h"

/* At least one decimal, and no more than it takes. */
static void add_cores(struct textbuf *s, int64_t milli)
{
	unsigned int decimals = milli % 100 == 0 ? 1 : milli % 10 == 0 ? 2 : 3;
	static const int64_t unit[] = {1000, 100, 10, 1};
	int64_t scaled = milli / unit[decimals];
	int64_t whole = scaled / (1000 / unit[decimals]);
	int64_t rest = scaled % (1000 / unit[decimals]);

	if (milli < 0)
		textbuf_add(s, "-");
	textbuf_add_int(s, whole < 0 ? -whole : whole);
	textbuf_add(s, ".");
	rest = rest < 0 ? -rest : rest;
	for (unsigned int i = 1; i < decimals && rest < 1000 / unit[decimals - i]; i++)
		textbuf_add(s, "0");
	textbuf_add_int(s, rest);
}

static void add_bytes(struct textbuf *s, int64_t bytes)
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	unsigned int unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < sizeof(units) / sizeof(units[0]) - 1) {
		bytes /= 1024;
		unit++;
	}
	textbuf_add_int(s, bytes);
	textbuf_add(s, units[unit]);
}

void quota_add_amount(struct textbuf *s, const char *resource, int64_t amount)
{
	if (strcmp(resource, "cpu") == 0)
		add_cores(s, amount);
	else if (resource_is_bytes(resource))
		add_bytes(s, amount);
	else
		textbuf_add_int(s, amount);
}

void quota_amount_text(const char *resource, int64_t amount, char out[QUOTA_TEXT_MAX])
{
	struct textbuf s;

	textbuf_start(&s, out, QUOTA_TEXT_MAX);
	quota_add_amount(&s, resource, amount);
}
