/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a selector of -l, and any JSON as a LabelSelector: read or refused with a reason, and
 * matched without a crash.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/labels.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int err, struct selector *s, const struct error *error)
{
	struct label some[] = {{"a", "b"}, {"app", ""}, {"x.io/y", "in"}};
	const struct labels none = {0, NULL}, labels = {3, some};

	if (err) {
		assert(error->text[0]);
		return;
	}
	if (selector_is_empty(s))
		assert(selector_matches(s, &none) && selector_matches(s, &labels));
	selector_matches(s, &none);
	selector_matches(s, &labels);
	selector_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_alloc(size + 1);
	struct error error = {""};
	struct selector *s = NULL;
	cJSON *tree;
	int err;

	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	err = selector_parse(text, &s, &error);
	check(err, s, &error);
	tree = cJSON_Parse(text);
	if (tree) {
		err = selector_read(tree, &s, &error);
		check(err, s, &error);
	}
	cJSON_Delete(tree);
	free(text);
	return 0;
}
