/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over the tree emits events to libyaml. Readers of YAML disagree about plain text ("yes",
 * "0x1f", "1:30", "~"), so text is quoted unless it begins with a letter, has no character beyond
 * those of names, and is no word with a meaning. cJSON limits the depth.
 */
#include "shared/json_yaml.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "shared/mem.h"

static bool is_plain(const char *text)
{
	static const char *const words[] = {"true", "false", "null", "yes", "no",
					    "on",   "off",   "y",    "n"};

	if (!isalpha((unsigned char)*text))
		return false;
	for (const char *at = text; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-_./", *at))
			return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(words[i], text) == 0)
			return false;
	return true;
}

static int append(void *context, unsigned char *data, size_t len)
{
	buf_add(context, data, len);
	return 1;
}

/* It fails for lack of memory only, and on events out of order. */
static void emit(yaml_emitter_t *e, yaml_event_t *event)
{
	int ok = yaml_emitter_emit(e, event);

	assert(ok);
	(void)ok;
}

static int make_scalar(yaml_event_t *event, const char *text, yaml_scalar_style_t style)
{
	return yaml_scalar_event_initialize(event, NULL, NULL, (const yaml_char_t *)text,
					    (int)strlen(text), 1, 1, style);
}

static void emit_scalar(yaml_emitter_t *e, const char *text, yaml_scalar_style_t style)
{
	yaml_event_t event;

	if (!make_scalar(&event, text, style)) { /* not UTF-8 */
		char *copy = mem_strdup(text);

		for (char *at = copy; *at; at++)
			if ((unsigned char)*at > 127)
				*at = '?';
		make_scalar(&event, copy, style);
		free(copy);
	}
	emit(e, &event);
}

static void emit_text(yaml_emitter_t *e, const char *text)
{
	emit_scalar(e, text,
		    is_plain(text) ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static void emit_value(yaml_emitter_t *e, const cJSON *value);

static void emit_members(yaml_emitter_t *e, const cJSON *value) /* NOLINT(misc-no-recursion) */
{
	yaml_event_t event;

	yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
	emit(e, &event);
	for (const cJSON *m = value->child; m; m = m->next) {
		emit_text(e, m->string);
		emit_value(e, m);
	}
	yaml_mapping_end_event_initialize(&event);
	emit(e, &event);
}

static void emit_elements(yaml_emitter_t *e, const cJSON *value) /* NOLINT(misc-no-recursion) */
{
	yaml_event_t event;

	yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE);
	emit(e, &event);
	for (const cJSON *m = value->child; m; m = m->next)
		emit_value(e, m);
	yaml_sequence_end_event_initialize(&event);
	emit(e, &event);
}

static void emit_value(yaml_emitter_t *e, const cJSON *value) /* NOLINT(misc-no-recursion) */
{
	if (cJSON_IsObject(value)) {
		emit_members(e, value);
	} else if (cJSON_IsArray(value)) {
		emit_elements(e, value);
	} else if (cJSON_IsString(value)) {
		emit_text(e, value->valuestring);
	} else {
		char *text = cJSON_PrintUnformatted(value);

		emit_scalar(e, text, YAML_PLAIN_SCALAR_STYLE);
		cJSON_free(text);
	}
}

void json_yaml_write(const cJSON *value, bool marked, struct buf *out)
{
	yaml_emitter_t e;
	yaml_event_t event;

	yaml_emitter_initialize(&e);
	yaml_emitter_set_output(&e, append, out);
	yaml_emitter_set_unicode(&e, 0); /* beyond ASCII all is escaped, so no terminal minds it */
	yaml_emitter_set_width(&e, -1);
	yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
	emit(&e, &event);
	yaml_document_start_event_initialize(&event, NULL, NULL, NULL, !marked);
	emit(&e, &event);
	emit_value(&e, value);
	yaml_document_end_event_initialize(&event, 1);
	emit(&e, &event);
	yaml_stream_end_event_initialize(&event);
	emit(&e, &event);
	yaml_emitter_delete(&e);
}
