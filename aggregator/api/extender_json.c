/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question is walked member by member (snapshot_text.h). The pod becomes a tree, names go to one
 * arena. Of a list of whole nodes, which may be tens of megabytes, each item becomes a tree for its
 * name and is thrown away; what passes is answered with the text it was sent as.
 */
#include "aggregator/api/extender_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aggregator/api/request_body.h"
#include "aggregator/api/snapshot_text.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/jsonw.h"

struct parser {
	struct snapshot_text text; /* where it stands */
	struct object_fault fault; /* its error is the text's */
	const char *nodes_at; /* the last value of Nodes; NULL: none, or null */
};

/* Passes a value that may be null; *value is NULL then. */
static int parse_value(struct parser *p, const char *field, cJSON **value)
{
	cJSON_Delete(*value);
	*value = NULL;
	if (snapshot_text_parse(&p->text, value))
		return request_fail(&p->fault, NULL, "%s", field);
	if (!cJSON_IsNull(*value))
		return 0;
	cJSON_Delete(*value);
	*value = NULL;
	return 0;
}

static bool is_null(const struct parser *p)
{
	struct snapshot_text at = p->text;

	return snapshot_text_more(&at) && at.end - at.at >= 4 && memcmp(at.at, "null", 4) == 0;
}

/* One that nobody asks for must be JSON all the same. */
static int pass_value(struct parser *p, const char *field)
{
	cJSON *value = NULL;
	int rc = parse_value(p, field, &value);

	cJSON_Delete(value);
	return rc;
}

/* --- filter and prioritize -------------------------------------------------------------------- */

static void forget_nodes(struct extender_args *args)
{
	free(args->nodes);
	args->nodes = NULL;
	args->count = 0;
	buf_fini(&args->names);
}

/* A name needs no more room than the text it is read from, so that the arena never moves. */
static void make_room_for_names(const struct parser *p, struct extender_args *args)
{
	buf_reserve(&args->names, (size_t)(p->text.end - p->text.at) + 1);
}

static void add_node(struct extender_args *args, const char *name, size_t len,
		     struct extender_text text)
{
	const char *own = args->names.data + args->names.len;

	buf_add(&args->names, name, len);
	buf_add_char(&args->names, '\0');
	ARRAY_ADD(args->nodes, args->count) = (struct extender_asked){own, text};
}

/*
 * Most names are what stands between two quotes: thousands of trees for them would cost more than
 * all the rest.
 */
static bool pass_plain_name(struct parser *p, struct extender_args *args)
{
	const char *at, *end = p->text.end;

	snapshot_text_more(&p->text);
	at = p->text.at;
	if (at == end || *at != '"')
		return false;
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\' || (unsigned char)*at < ' ')
			return false;
	if (at == end)
		return false;
	add_node(args, p->text.at + 1, (size_t)(at - p->text.at) - 1,
		 (struct extender_text){NULL, 0});
	p->text.at = at + 1;
	return true;
}

static int parse_name(struct parser *p, struct extender_args *args)
{
	cJSON *name = NULL;
	int rc = 0;

	if (pass_plain_name(p, args))
		return 0;
	if (snapshot_text_parse(&p->text, &name))
		return request_fail(&p->fault, NULL, "NodeNames[%zu]", args->count);
	if (cJSON_IsString(name))
		add_node(args, name->valuestring, strlen(name->valuestring),
			 (struct extender_text){NULL, 0});
	else
		rc = request_fail(&p->fault, "must be the name of a node", "NodeNames[%zu]",
				  args->count);
	cJSON_Delete(name);
	return rc;
}

static int parse_nodes(struct parser *p, struct extender_args *args);

/* It takes back what was there before it: then Nodes count, and were passed if they came later. */
static int take_names_back(struct parser *p, struct extender_args *args)
{
	struct snapshot_text behind;
	int rc = pass_value(p, "NodeNames");

	if (rc || !args->named)
		return rc;
	forget_nodes(args);
	args->named = false;
	if (!p->nodes_at)
		return 0;
	behind = p->text;
	p->text.at = p->nodes_at;
	rc = parse_nodes(p, args);
	p->text = behind;
	return rc;
}

static int parse_names(struct parser *p, struct extender_args *args)
{
	bool first = true;
	int rc;

	if (is_null(p))
		return take_names_back(p, args);
	if (snapshot_text_open(&p->text, '['))
		return request_fail(&p->fault, "must be a list of node names", "NodeNames");
	forget_nodes(args);
	args->full = false;
	args->named = true;
	make_room_for_names(p, args);
	while ((rc = snapshot_text_item(&p->text, &first)) == 1)
		if (parse_name(p, args))
			return -EINVAL;
	return rc ? request_fail(&p->fault, NULL, "NodeNames") : 0;
}

static int parse_node(struct parser *p, struct extender_args *args)
{
	struct extender_text text;
	const char *name;
	cJSON *node = NULL;
	int rc = 0;

	snapshot_text_more(&p->text);
	text.at = p->text.at;
	if (snapshot_text_parse(&p->text, &node))
		return request_fail(&p->fault, NULL, "Nodes.items[%zu]", args->count);
	text.len = (size_t)(p->text.at - text.at);
	name = document_text(node, "metadata.name");
	if (!name || !*name)
		rc = request_fail(&p->fault, "must be the name of a node",
				  "Nodes.items[%zu].metadata.name", args->count);
	else if (!args->named)
		add_node(args, name, strlen(name), text);
	cJSON_Delete(node);
	return rc;
}

static int parse_items(struct parser *p, struct extender_args *args)
{
	bool first = true;
	int rc;

	if (!args->named) {
		forget_nodes(args);
		make_room_for_names(p, args);
	}
	if (is_null(p))
		return pass_value(p, "Nodes.items");
	if (snapshot_text_open(&p->text, '['))
		return request_fail(&p->fault, "must be a list of nodes", "Nodes.items");
	while ((rc = snapshot_text_item(&p->text, &first)) == 1)
		if (parse_node(p, args))
			return -EINVAL;
	return rc ? request_fail(&p->fault, NULL, "Nodes.items") : 0;
}

/* With NodeNames before it, it is passed and does not count. */
static int parse_nodes(struct parser *p, struct extender_args *args)
{
	char key[SNAPSHOT_KEY_MAX];
	bool first = true;
	int rc;

	p->nodes_at = is_null(p) ? NULL : p->text.at;
	if (!args->named) {
		forget_nodes(args);
		args->full = p->nodes_at != NULL;
	}
	if (!p->nodes_at)
		return pass_value(p, "Nodes");
	if (snapshot_text_open(&p->text, '{'))
		return request_fail(&p->fault, "must be a NodeList", "Nodes");
	while ((rc = snapshot_text_member(&p->text, &first, key)) == 1)
		if (strcasecmp(key, "items") == 0 ? parse_items(p, args) : pass_value(p, "Nodes"))
			return -EINVAL;
	return rc ? request_fail(&p->fault, NULL, "Nodes") : 0;
}

static int parse_member(struct parser *p, const char *key, struct extender_args *args)
{
	if (strcasecmp(key, "Pod") == 0)
		return parse_value(p, "Pod", &args->pod);
	if (strcasecmp(key, "NodeNames") == 0)
		return parse_names(p, args);
	if (strcasecmp(key, "Nodes") == 0)
		return parse_nodes(p, args);
	return pass_value(p, key);
}

static int parse_args(struct parser *p, struct extender_args *args)
{
	char key[SNAPSHOT_KEY_MAX];
	bool first = true;
	int rc;

	if (memchr(p->text.at, '\0', (size_t)(p->text.end - p->text.at)) ||
	    snapshot_text_open(&p->text, '{'))
		return request_fail(&p->fault, "the body must be a JSON object", "%s", "");
	while ((rc = snapshot_text_member(&p->text, &first, key)) == 1)
		if (parse_member(p, key, args))
			return -EINVAL;
	if (rc)
		return request_fail(&p->fault, NULL, "%s", "");
	if (snapshot_text_more(&p->text))
		return request_fail(&p->fault, "there is more behind the object", "%s", "");
	if (!args->pod)
		return request_fail(&p->fault, "is missing", "Pod");
	return cJSON_IsObject(args->pod) ? 0 : request_fail(&p->fault, "must be an object", "Pod");
}

int extender_args_parse(const char *body, size_t len, struct extender_args *args,
			char field[EXTENDER_FIELD_MAX], struct error *error)
{
	struct parser p = {
		.text = {"body", body, body, body + len, error},
		.fault = {field, EXTENDER_FIELD_MAX, error, false},
	};
	int rc;

	*args = (struct extender_args){.pod = NULL};
	field[0] = '\0';
	rc = parse_args(&p, args);
	if (rc)
		extender_args_fini(args);
	return rc;
}

void extender_args_fini(struct extender_args *args)
{
	forget_nodes(args);
	cJSON_Delete(args->pod);
	*args = (struct extender_args){.pod = NULL};
}

static void write_passed(struct jsonw *w, const struct extender_filter_result *r)
{
	if (!r->full) {
		jsonw_key_array(w, "NodeNames");
		for (size_t i = 0; i < r->passed_count; i++)
			jsonw_string(w, r->passed[i].name);
		jsonw_array_close(w);
		return;
	}
	buf_add_str(w->out, w->comma ? "," : "");
	buf_add_str(w->out, "\"Nodes\":{\"metadata\":{},\"items\":[");
	for (size_t i = 0; i < r->passed_count; i++) {
		if (i > 0)
			buf_add_char(w->out, ',');
		buf_add(w->out, r->passed[i].text.at, r->passed[i].text.len);
	}
	buf_add_str(w->out, "]}");
	w->comma = true;
}

static void write_refused(struct jsonw *w, const char *key, const struct extender_refused *of,
			  size_t count)
{
	if (!count)
		return;
	jsonw_key_object(w, key);
	for (size_t i = 0; i < count; i++)
		jsonw_key_string(w, of[i].node, of[i].why);
	jsonw_object_close(w);
}

void extender_write_filter_result(struct buf *out, const struct extender_filter_result *r)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	write_passed(&w, r);
	write_refused(&w, "FailedNodes", r->failed, r->failed_count);
	write_refused(&w, "FailedAndUnresolvableNodes", r->unresolvable, r->unresolvable_count);
	jsonw_key_text(&w, "Error", r->error);
	jsonw_object_close(&w);
}

void extender_write_priorities(struct buf *out, const struct extender_priority *of, size_t count)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_array_open(&w);
	for (size_t i = 0; i < count; i++) {
		jsonw_object_open(&w);
		jsonw_key_string(&w, "Host", of[i].host);
		jsonw_key_int(&w, "Score", of[i].score);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
}
