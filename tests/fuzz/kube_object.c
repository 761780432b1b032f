/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any JSON as an object of any kind: read or refused with a reason, nothing leaked; what is read is
 * written so that it reads back.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/object_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Text that is no UTF-8 is repaired where it is written; the API server sends none. */
static bool is_ascii(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] & 0x80)
			return false;
	return true;
}

static void check(enum object_kind kind, const cJSON *tree, bool exact)
{
	char field[OBJECT_FIELD_MAX] = "";
	struct error error = {""};
	const char *what = NULL;
	struct object *o;

	if (object_read(kind, tree, &o, field, &error)) {
		assert(error.text[0] && strlen(field) < sizeof(field));
		return;
	}
	assert(o->name[0] && o->kind == kind);
	if (exact)
		what = object_check_written(o);
	if (what)
		fprintf(stderr, "%s: %s\n", object_kind_name(kind), what);
	assert(!what);
	object_drop(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool exact = is_ascii(data, size);
	char *text = mem_alloc(size + 1);
	cJSON *tree;

	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	tree = cJSON_Parse(text);
	for (unsigned int kind = 0; tree && kind < OBJECT_KINDS; kind++)
		check((enum object_kind)kind, tree, exact);
	cJSON_Delete(tree);
	free(text);
	return 0;
}
