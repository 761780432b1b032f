/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/state/record.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "aggregator/model/object.h"
#include "aggregator/state/bytes.h"
#include "shared/body.h"
#include "shared/mem.h"

enum { START_DIGITS = 19 };

size_t record_begin(struct buf *out, enum record_type type)
{
	struct bytes b = {.out = out};

	bytes_number(&b, type, 1);
	bytes_number(&b, 0, RECORD_HEAD - 1);
	return out->len;
}

void record_end(struct buf *out, size_t begun)
{
	size_t len = out->len - begun;
	char *head = out->data + begun - RECORD_HEAD;
	struct bytes b = {.out = out};

	for (int i = 0; i < RECORD_HEAD - 1; i++)
		head[1 + i] = (char)(len >> (8 * i));
	bytes_number(&b, crc32_z(0, (const uint8_t *)head, RECORD_HEAD + len), RECORD_TAIL);
}

void record_number(struct buf *out, enum record_type type, uint64_t value, size_t len)
{
	size_t begun = record_begin(out, type);
	struct bytes b = {.out = out};

	bytes_number(&b, value, len);
	record_end(out, begun);
}

/* --- intervals -------------------------------------------------------------------------------- */

/* All but the node's name and the bodies; in both directions. */
static void head(struct bytes *b, struct record_interval *r, struct interval *i)
{
	r->verdict = (enum usage_verdict)bytes_number(b, r->verdict, 1);
	bytes_i64(b, &r->now_ns);
	bytes_raw(b, r->run, sizeof(r->run));
	bytes_raw(b, r->nonce, sizeof(r->nonce));
	bytes_u64(b, &i->sequence);
	bytes_i64(b, &i->age_ns);
	bytes_i64(b, &i->wait_ns);
}

void record_interval(struct buf *out, const struct record_interval *i, const struct buf *parts,
		     size_t count)
{
	struct bytes b = {.out = out};
	struct record_interval told = *i;
	size_t begun = record_begin(out, RECORD_INTERVAL);

	head(&b, &told, i->interval);
	buf_add(out, i->node, strlen(i->node) + 1);
	for (size_t p = 0; p < count; p++) {
		bytes_number(&b, parts[p].len, 4);
		buf_add(out, parts[p].data, parts[p].len);
	}
	record_end(out, begun);
}

static int refuse(struct error *error, const char *what)
{
	return error_fail(error, -EBADMSG, "the record is damaged: %s", what);
}

int record_interval_read(struct record_interval *i, const void *data, size_t len,
			 struct error *error)
{
	struct bytes b = {.in = data, .left = len};
	struct interval told = {0};
	struct buf parts[BODY_PARTS_MAX];
	size_t count = 0, name;

	head(&b, i, &told);
	i->node = (const char *)b.in;
	name = b.bad ? 0 : strnlen(i->node, b.left);
	if (!name || name == b.left || name > NODE_NAME_MAX || !told.sequence ||
	    i->verdict > USAGE_REFUSED)
		return refuse(error, "an interval is not of a node");
	b.in += name + 1;
	b.left -= name + 1;
	while (b.left && count < BODY_PARTS_MAX) {
		size_t size = bytes_number(&b, 0, 4);

		if (b.bad || size > b.left)
			return refuse(error, "an interval is cut");
		/* It is only read. */
		parts[count++] = (struct buf){.data = (char *)b.in, .len = size};
		b.in += size;
		b.left -= size;
	}
	if (b.left || !count)
		return refuse(error, "an interval has a wrong number of parts");
	if (body_decode_interval_into(parts, count, i->interval, error))
		return -EBADMSG;
	i->interval->sequence = told.sequence;
	i->interval->age_ns = told.age_ns;
	i->interval->wait_ns = told.wait_ns;
	return 0;
}

/* --- objects ---------------------------------------------------------------------------------- */

static void put(struct buf *out, const struct object *o)
{
	size_t begun = record_begin(out, RECORD_OBJECT);

	object_write(o, out);
	record_end(out, begun);
}

static void take_away(struct buf *out, const struct object *o)
{
	const char *resource = object_kind_resource(o->kind);
	size_t begun = record_begin(out, RECORD_REMOVED);

	buf_add(out, resource, strlen(resource) + 1);
	buf_add(out, o->namespace, strlen(o->namespace) + 1);
	buf_add(out, o->name, strlen(o->name) + 1);
	record_end(out, begun);
}

/* Objects of one place, each sorted; unchanged ones are the same in memory. */
static void compare(struct buf *out, bool removals, struct object *const *from, size_t from_count,
		    struct object *const *to, size_t to_count)
{
	size_t i = 0, j = 0;

	while (i < from_count || j < to_count) {
		int order = i == from_count ? 1
			    : j == to_count ? -1
					    : object_compare(from[i], to[j]);

		if (removals && order < 0)
			take_away(out, from[i]);
		if (!removals && (order > 0 || (order == 0 && from[i] != to[j])))
			put(out, to[j]);
		i += order <= 0;
		j += order >= 0;
	}
}

static void compare_tables(struct buf *out, bool removals, enum object_kind kind,
			   const struct cluster *from, const struct cluster *to)
{
	const struct object_table *a = from ? from->tables[kind] : NULL, *b = to->tables[kind];

	if (a != b)
		compare(out, removals, a ? a->of : NULL, a ? a->count : 0, b->of, b->count);
}

/* Pods that lie by their nodes; n NULL: it is not there. */
static void compare_pods(struct buf *out, bool removals, const struct model_node *n,
			 const struct model_node *m)
{
	/* A pod begins with its object. */
	if (n != m)
		compare(out, removals, n ? (struct object *const *)n->pods : NULL,
			n ? n->pod_count : 0, m ? (struct object *const *)m->pods : NULL,
			m ? m->pod_count : 0);
}

static void compare_nodes(struct buf *out, bool removals, const struct cluster *from,
			  const struct cluster *to)
{
	size_t i = 0, j = 0, count = from ? from->node_count : 0;

	while (i < count || j < to->node_count) {
		int order = i == count ? 1
			    : j == to->node_count
				    ? -1
				    : strcmp(from->nodes[i]->name, to->nodes[j]->name);

		compare_pods(out, removals, order <= 0 ? from->nodes[i] : NULL,
			     order >= 0 ? to->nodes[j] : NULL);
		i += order <= 0;
		j += order >= 0;
	}
}

/* A pod that was bound is removed from those without a node, and put: removals come first. */
void record_changes(struct buf *out, const struct cluster *from, const struct cluster *to)
{
	for (int removals = 1; removals >= 0; removals--) {
		for (int k = 0; k < OBJECT_KINDS; k++)
			compare_tables(out, removals, (enum object_kind)k, from, to);
		compare_nodes(out, removals, from, to);
	}
}

static int apply_object(struct model *m, const char *text, size_t len, struct error *error)
{
	cJSON *json = cJSON_ParseWithLength(text, len);
	const char *version = cJSON_GetStringValue(cJSON_GetObjectItem(json, "apiVersion"));
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(json, "kind"));
	char field[OBJECT_FIELD_MAX];
	enum object_kind kind;
	struct object *o;
	int rc = -EBADMSG;

	if (!version || !name || object_kind_find(version, name, &kind)) {
		refuse(error, "an object is of no known kind");
	} else if (object_read(kind, json, &o, field, error)) {
		error_prefix(error, "%s %s", name, field);
	} else {
		model_put(m, o);
		rc = 0;
	}
	cJSON_Delete(json);
	return rc;
}

static int apply_removal(struct model *m, const char *text, size_t len, struct error *error)
{
	const char *part[3] = {text};
	int k = 0;

	for (int i = 0; i < 3; i++) {
		size_t left = len - (size_t)(part[i] - text), end = strnlen(part[i], left);

		if (end == left)
			return refuse(error, "a removed object has no name");
		if (i < 2)
			part[i + 1] = part[i] + end + 1;
	}
	while (k < OBJECT_KINDS && strcmp(object_kind_resource((enum object_kind)k), part[0]) != 0)
		k++;
	if (k == OBJECT_KINDS || model_remove(m, (enum object_kind)k, part[1], part[2]))
		return refuse(error, "an object that is not there is removed");
	return 0;
}

int record_change_apply(struct model *m, enum record_type type, const void *data, size_t len,
			struct error *error)
{
	return type == RECORD_OBJECT ? apply_object(m, data, len, error)
				     : apply_removal(m, data, len, error);
}

/* --- segments --------------------------------------------------------------------------------- */

/* The start in a file's name; -1: it is no segment. */
static int64_t start_of(const char *name)
{
	const char *start = name + strlen(RECORD_PREFIX);

	if (strncmp(name, RECORD_PREFIX, strlen(RECORD_PREFIX)) != 0 ||
	    strspn(start, "0123456789") != START_DIGITS ||
	    strcmp(start + START_DIGITS, RECORD_SUFFIX) != 0)
		return -1;
	return strtoll(start, NULL, 10);
}

static int is_segment(const struct dirent *file)
{
	return start_of(file->d_name) >= 0;
}

int record_segments_find(struct record_segments *s, const char *dir, struct error *error)
{
	struct dirent **found;
	int count = scandir(dir, &found, is_segment, alphasort);

	*s = (struct record_segments){0};
	if (count < 0)
		return error_fail(error, -errno, "%s: %s", dir, strerror(errno));
	s->count = (size_t)count;
	s->paths = mem_zalloc(s->count, sizeof(*s->paths));
	s->start_ns = mem_zalloc(s->count, sizeof(*s->start_ns));
	for (size_t i = 0; i < s->count; i++) {
		s->paths[i] = mem_printf("%s/%s", dir, found[i]->d_name);
		s->start_ns[i] = start_of(found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return 0;
}

void record_segments_fini(struct record_segments *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->paths[i]);
	free(s->paths);
	free(s->start_ns);
}
