/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file is one YAML document: a mapping from option names to scalars, or sequences
 * of scalars for lists. Records may be mappings of scalars and sequences, and become their
 * command-line text. Quoting does not matter; the option's kind decides. Refused, with file, line
 * and column: unknown and repeated keys, a key without value, deeper nesting, anchors, a second
 * document, files above FILE_MAX.
 */
#include "shared/options_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "shared/yaml_doc.h"

enum { FILE_MAX = 1 << 20 };

struct reader {
	struct yaml_doc doc;
	const struct option_program *program;
	struct settings *out;
};

/* Whether the node can be a value of the option, or a part of it. */
static bool check_scalar(struct reader *r, const struct option_spec *spec, const yaml_node_t *n)
{
	if (yaml_doc_is_null(n))
		yaml_doc_fail(&r->doc, n, "%s has no value", spec->name);
	return yaml_doc_check(&r->doc, n, spec->name, YAML_SCALAR_NODE);
}

static void add_setting(struct reader *r, const struct option_spec *spec, const yaml_node_t *at,
			const char *text, size_t len)
{
	char *origin = mem_printf("%s:%zu", r->doc.name, at->start_mark.line + 1);

	settings_add(r->out, spec, text, len, origin);
	free(origin);
}

static void take_scalar(struct reader *r, const struct option_spec *spec, const yaml_node_t *n)
{
	if (check_scalar(r, spec, n))
		add_setting(r, spec, n, yaml_doc_scalar(n), n->data.scalar.length);
}

/* --- records: {key: value, other: [a, b]} is "key=value,other=a,b" */

static void add_part(struct reader *r, const struct option_spec *spec, const char *before,
		     const yaml_node_t *n, struct buf *record)
{
	if (check_scalar(r, spec, n))
		buf_printf(record, "%s%s", before, yaml_doc_scalar(n));
}

/* A value, which may be a sequence. */
static void add_value(struct reader *r, const struct option_spec *spec, const yaml_node_t *n,
		      struct buf *record)
{
	const yaml_node_t *item;

	if (n->type != YAML_SEQUENCE_NODE)
		add_part(r, spec, "=", n, record);
	else
		for (size_t i = 0; (item = yaml_doc_item(&r->doc, n, i, YAML_NO_NODE)); i++)
			add_part(r, spec, i ? "," : "=", item, record);
}

static void take_item(struct reader *r, const struct option_spec *spec, const yaml_node_t *n)
{
	struct buf record = BUF_INIT;
	const yaml_node_t *key, *value;

	if (spec->kind != OPTION_RECORDS || n->type != YAML_MAPPING_NODE) {
		take_scalar(r, spec, n);
		return;
	}
	for (size_t i = 0; (key = yaml_doc_member(&r->doc, n, i, &value)); i++) {
		add_part(r, spec, i ? "," : "", key, &record);
		add_value(r, spec, value, &record);
	}
	add_setting(r, spec, n, record.len ? record.data : "", record.len);
	buf_fini(&record);
}

static void take_sequence(struct reader *r, const struct option_spec *spec, const yaml_node_t *n)
{
	const yaml_node_t *item;

	if (n->type != YAML_SEQUENCE_NODE)
		yaml_doc_fail(&r->doc, n, "%s is a list: write [a, b], or one \"- value\" a line",
			      spec->name);
	settings_add(r->out, spec, NULL, 0, NULL);
	for (size_t i = 0; (item = yaml_doc_item(&r->doc, n, i, YAML_NO_NODE)); i++)
		take_item(r, spec, item);
}

/* The option, or NULL with a failure. */
static const struct option_spec *take_key(struct reader *r, const yaml_node_t *n, bool *seen)
{
	char hint[96], quoted[QUOTED_LEN];
	const struct option_spec *spec;

	if (n->type != YAML_SCALAR_NODE) {
		yaml_doc_fail(&r->doc, n, "expected the name of an option");
		return NULL;
	}
	spec = options_of(r->program, yaml_doc_scalar(n));
	if (!spec) {
		options_quote(yaml_doc_scalar(n), quoted);
		options_suggest(r->program, yaml_doc_scalar(n), "", "", hint, sizeof(hint));
		yaml_doc_fail(&r->doc, n, "unknown option %s%s", quoted, hint);
		return NULL;
	}
	if (options_only_typed(spec) || strcmp(spec->name, r->program->config_name) == 0)
		yaml_doc_fail(&r->doc, n, "%s cannot be set in a file", spec->name);
	if (seen[spec - r->program->specs])
		yaml_doc_fail(&r->doc, n, "%s is set twice", spec->name);
	seen[spec - r->program->specs] = true;
	return r->doc.failed ? NULL : spec;
}

static void take_mapping(struct reader *r, const yaml_node_t *map)
{
	const yaml_node_t *key, *value;
	bool *seen = mem_zalloc(options_count(r->program->specs), sizeof(*seen));

	for (size_t i = 0; (key = yaml_doc_member(&r->doc, map, i, &value)); i++) {
		const struct option_spec *spec = take_key(r, key, seen);

		if (spec && options_is_list(spec))
			take_sequence(r, spec, value);
		else if (spec)
			take_scalar(r, spec, value);
	}
	free(seen);
}

int options_parse_yaml(const struct option_program *program, const char *name, const char *text,
		       size_t len, struct settings *out, struct error *reason)
{
	struct reader r = {
		.doc = {.name = name, .error = reason},
		.program = program,
		.out = out,
	};
	const yaml_node_t *root;
	int rc = yaml_doc_load(&r.doc, text, len);

	if (rc)
		return rc;
	root = yaml_doc_root(&r.doc);
	if (root && root->type == YAML_MAPPING_NODE)
		take_mapping(&r, root);
	else if (root && !yaml_doc_is_null(root))
		yaml_doc_fail(&r.doc, root, "expected \"name: value\" lines");
	rc = r.doc.failed ? -EINVAL : 0;
	yaml_doc_fini(&r.doc);
	return rc;
}

int options_read_yaml(const struct option_program *program, const char *path, struct settings *out,
		      struct error *reason)
{
	struct secret file;
	int rc = secret_read(&file, path, FILE_MAX, false, reason);

	if (rc)
		return error_at(reason, -EINVAL, "--%s", program->config_name);
	rc = options_parse_yaml(program, path, file.text, file.len, out, reason);
	secret_free(&file);
	return rc;
}
