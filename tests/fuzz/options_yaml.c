/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any configuration file is either read or refused by one line, and its values by another; nothing
 * leaks.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shared/options_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct values {
	bool watch;
	char *server, *config;
	struct option_list aggregators, pools;
	int64_t count, interval;
	double rate;
	int output;
};

#define MEMBER(name) offsetof(struct values, name)

static const char *const outputs[] = {"table", "json", NULL};

static const struct option_spec specs[] = {
	{"watch", 'w', OPTION_FLAG, MEMBER(watch), NULL, NULL, 0, 0, NULL, "Repeat."},
	{"server", 's', OPTION_STRING, MEMBER(server), "URL", NULL, 0, 0, NULL, "Where."},
	{"config", 0, OPTION_STRING, MEMBER(config), "FILE", NULL, 0, 0, NULL, "File."},
	{"aggregator", 'a', OPTION_LIST, MEMBER(aggregators), "URL", NULL, 0, 0, NULL, "Where."},
	{"pool", 0, OPTION_RECORDS, MEMBER(pools), "RECORD", NULL, 0, 0, NULL, "What."},
	{"count", 0, OPTION_INTEGER, MEMBER(count), "N", NULL, 1, 10, NULL, "How many."},
	{"interval", 'i', OPTION_DURATION, MEMBER(interval), "TIME", NULL, 1e9, 15e9, NULL,
	 "When."},
	{"rate", 0, OPTION_NUMBER, MEMBER(rate), "HZ", NULL, 0, 0, NULL, "How fast."},
	{"output", 'o', OPTION_CHOICE, MEMBER(output), NULL, NULL, 0, 0, outputs, "Form."},
	{0},
};

static const struct option_program program = {
	.name = "prog", .summary = "", .usage = "", .specs = specs, .config_name = "config"};

static void check_reason(const struct error *error)
{
	assert(error->text[0]);
	assert(!strchr(error->text, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings found = {0};
	struct error error = {""};
	struct values values = {0};

	if (options_parse_yaml(&program, "fuzz", (const char *)data, size, &found, &error))
		check_reason(&error);
	for (size_t i = 0; i < found.count; i++) {
		const struct setting *s = &found.items[i];

		error = (struct error){""};
		if (s->text && options_set(s->spec, s->text, &values, &error))
			check_reason(&error);
	}
	options_free(&program, &values);
	settings_fini(&found);
	return 0;
}
