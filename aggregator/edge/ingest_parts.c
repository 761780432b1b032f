/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of incomplete intervals by node, in the order they were begun (uthash keeps the order of
 * insertion): what must go for want of room is then always at the head. Nothing is lost by that for
 * good, since an agent whose parts were forgotten is told that its last one was merely stored, and
 * sends all of them again.
 */
#include "aggregator/edge/ingest_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "shared/mem.h"

struct incomplete {
	UT_hash_handle hh;
	struct frame_header header; /* of the part that came first; node is the key */
	size_t stored;
	size_t bytes;
	struct buf parts[BODY_PARTS_MAX]; /* owned */
	bool present[BODY_PARTS_MAX];
};

struct ingest_parts {
	struct ingest_parts_limits limits;
	struct incomplete *table;
	size_t bytes;
};

struct ingest_parts *ingest_parts_new(const struct ingest_parts_limits *limits)
{
	struct ingest_parts *p = mem_zalloc(1, sizeof(*p));

	assert(limits->nodes_max > 0);
	p->limits = *limits;
	return p;
}

static void forget(struct ingest_parts *p, struct incomplete *i)
{
	HASH_DEL(p->table, i);
	p->bytes -= i->bytes;
	for (size_t n = 0; n < BODY_PARTS_MAX; n++)
		buf_fini(&i->parts[n]);
	free(i);
}

void ingest_parts_free(struct ingest_parts *p)
{
	struct incomplete *i, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->table, i, next)
	forget(p, i);
	free(p);
}

static bool same_interval(const struct frame_header *a, const struct frame_header *b)
{
	return a->sequence == b->sequence && a->parts == b->parts &&
	       !memcmp(a->run, b->run, FRAME_RUN_LEN);
}

/* True when the part is there already, with other content. */
static bool contradicts(const struct incomplete *i, size_t part, const struct buf *body)
{
	return i->present[part] &&
	       (i->parts[part].len != body->len ||
		(body->len && memcmp(i->parts[part].data, body->data, body->len) != 0));
}

static struct incomplete *begin(struct ingest_parts *p, const struct frame_header *header)
{
	struct incomplete *i;

	while (HASH_COUNT(p->table) >= p->limits.nodes_max)
		forget(p, p->table);
	i = mem_zalloc(1, sizeof(*i));
	i->header = *header;
	HASH_ADD_STR(p->table, header.node, i);
	return i;
}

static void store(struct ingest_parts *p, struct incomplete *i, size_t part, struct buf *body)
{
	i->parts[part] = *body;
	i->present[part] = true;
	i->stored++;
	i->bytes += body->len;
	p->bytes += body->len;
	buf_init(body);
}

size_t ingest_parts_add(struct ingest_parts *p, const struct frame_header *header, struct buf *body,
			struct buf parts[BODY_PARTS_MAX])
{
	struct incomplete *i;
	size_t count;

	assert(header->parts <= BODY_PARTS_MAX && header->part < header->parts);
	HASH_FIND_STR(p->table, header->node, i);
	if (i && (!same_interval(&i->header, header) || contradicts(i, header->part, body))) {
		forget(p, i);
		i = NULL;
	}
	if (!i)
		i = begin(p, header);
	if (i->present[header->part])
		buf_fini(body);
	else
		store(p, i, header->part, body);
	if (i->stored < header->parts) {
		while (p->bytes > p->limits.bytes_max)
			forget(p, p->table);
		return 0;
	}
	count = i->stored;
	for (size_t n = 0; n < count; n++) {
		parts[n] = i->parts[n];
		buf_init(&i->parts[n]);
	}
	forget(p, i);
	return count;
}

size_t ingest_parts_nodes(const struct ingest_parts *p)
{
	return HASH_COUNT(p->table);
}

size_t ingest_parts_bytes(const struct ingest_parts *p)
{
	return p->bytes;
}
