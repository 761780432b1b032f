/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/edge/kube/left_alone.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

struct left_alone_entry {
	char *name; /* owned */
	int64_t until_ns;
	UT_hash_handle hh;
};

static struct left_alone_entry *find(const struct left_alone *l, const char *name)
{
	struct left_alone_entry *e;

	HASH_FIND_STR(l->entries, name, e);
	return e;
}

static void drop(struct left_alone *l, struct left_alone_entry *e)
{
	/* NOLINTNEXTLINE(clang-analyzer-*): uthash keeps the list, and it is in the hash */
	HASH_DEL(l->entries, e);
	free(e->name);
	free(e);
}

void left_alone_fini(struct left_alone *l)
{
	left_alone_expire(l, INT64_MAX);
}

void left_alone_add(struct left_alone *l, const char *name, int64_t until_ns)
{
	struct left_alone_entry *e = find(l, name);

	if (!e) {
		e = mem_zalloc(1, sizeof(*e));
		e->name = mem_strdup(name);
		HASH_ADD_KEYPTR(hh, l->entries, e->name, strlen(e->name), e);
	}
	e->until_ns = until_ns;
}

bool left_alone_has(const struct left_alone *l, const char *name, int64_t now_ns)
{
	const struct left_alone_entry *e = find(l, name);

	return e && e->until_ns > now_ns;
}

void left_alone_expire(struct left_alone *l, int64_t now_ns)
{
	struct left_alone_entry *e, *next;

	HASH_ITER(hh, l->entries, e, next)
	{
		if (e->until_ns <= now_ns)
			drop(l, e);
	}
}

size_t left_alone_count(const struct left_alone *l)
{
	return HASH_COUNT(l->entries);
}
