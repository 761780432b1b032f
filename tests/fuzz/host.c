/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever the Host, Origin and Content-Type headers hold: a name has no bytes that a name has not,
 * is the same when it is read again, and with a foreign suffix is not ours.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/http/auth.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const struct host_name *name)
{
	char *foreign = mem_printf("%s.attacker.example", name->text);
	struct host_name again;

	assert(*name->text && strlen(name->text) <= HOST_NAME_MAX_LEN);
	for (const char *c = name->text; *c; c++)
		assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789-._:", *c));
	if (!strchr(name->text, ':')) {
		assert(host_parse(name->text, strlen(name->text), &again) ||
		       name->text[strlen(name->text) - 1] == '.');
		if (host_parse(foreign, strlen(foreign), &again))
			assert(!host_is_ours(&again, "localhost:2020", NULL, NULL));
	}
	free(foreign);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct host_name name;

	if (host_parse(text, strlen(text), &name))
		check_name(&name);
	if (origin_is_own(text, "localhost:2020"))
		assert(strcasestr(text, "://localhost:2020"));
	if (media_is_json(text))
		assert(strcasestr(text, "json") == text + strlen("application/"));
	free(text);
	return 0;
}
