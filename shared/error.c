/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/error.h"

#include <string.h>

#include "shared/mem.h"

void error_set(struct error *r, const char *format, ...)
{
	struct error text;

	if (!r)
		return;
	MEM_FORMAT(text.text, sizeof(text.text), format);
	memcpy(r->text, text.text, strlen(text.text) + 1);
}

int error_system(struct error *r, int code, const char *context, ...)
{
	char text[sizeof(r->text)];

	MEM_FORMAT(text, sizeof(text), context);
	error_set(r, "%s: %s", text, strerror(-code));
	return code;
}

void error_prefix(struct error *r, const char *format, ...)
{
	char context[sizeof(r->text)];

	if (!r)
		return;
	MEM_FORMAT(context, sizeof(context), format);
	error_set(r, "%s: %s", context, r->text);
}
