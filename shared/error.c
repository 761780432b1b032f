/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void error_set(struct error *r, const char *format, ...)
{
	struct error text;
	va_list args;

	if (!r)
		return;
	va_start(args, format);
	vsnprintf(text.text, sizeof(text.text), format, args);
	va_end(args);
	memcpy(r->text, text.text, strlen(text.text) + 1);
}

void error_prefix(struct error *r, const char *format, ...)
{
	char inner[sizeof(r->text)];
	va_list args;
	size_t used;

	if (!r)
		return;
	memcpy(inner, r->text, sizeof(inner));
	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	used = strlen(r->text);
	snprintf(r->text + used, sizeof(r->text) - used, ": %s", inner);
}
