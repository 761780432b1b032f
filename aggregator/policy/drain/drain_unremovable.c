/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_unremovable.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

void drain_unremovable_init(struct drain_unremovable *u, enum drain_variant variant)
{
	memset(u, 0, sizeof(*u));
	u->variant = variant;
}

static void failure_fini(struct drain_failure *f)
{
	free(f->node);
	free(f->why);
	free(f->refusal);
}

void drain_unremovable_fini(struct drain_unremovable *u)
{
	for (size_t i = 0; i < u->count; i++)
		failure_fini(&u->of[i]);
	free(u->of);
	memset(u, 0, sizeof(*u));
}

/* Where the node is, or would be. */
static size_t place_of(const struct drain_unremovable *u, const char *node, bool *found)
{
	size_t low = 0, high = u->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(u->of[middle].node, node) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < u->count && strcmp(u->of[low].node, node) == 0;
	return low;
}

static int compare_name(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

static bool stays(const struct drain_failure *f, const char *const *nodes, size_t count,
		  int64_t now_ns)
{
	return f->until_ns > now_ns && count > 0 &&
	       bsearch(f->node, nodes, count, sizeof(*nodes), compare_name);
}

void drain_unremovable_update(struct drain_unremovable *u, const char *const *nodes, size_t count,
			      int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < u->count; i++) {
		struct drain_failure *f = &u->of[i];

		if (!stays(f, nodes, count, now_ns)) {
			failure_fini(f);
			continue;
		}
		if (u->variant == DRAIN_UPSTREAM) {
			free(f->why);
			f->why = NULL;
			f->reason = DRAIN_NONE;
			free(f->refusal);
			f->refusal = NULL;
		}
		u->of[kept++] = *f;
	}
	u->count = kept;
}

static struct drain_failure *insert(struct drain_unremovable *u, size_t at, const char *node)
{
	if (u->count == u->room) {
		u->room = u->room ? 2 * u->room : 16;
		u->of = mem_realloc(u->of, u->room * sizeof(*u->of));
	}
	memmove(&u->of[at + 1], &u->of[at], (u->count - at) * sizeof(*u->of));
	u->count++;
	u->of[at] = (struct drain_failure){.node = mem_strdup(node)};
	return &u->of[at];
}

void drain_unremovable_add(struct drain_unremovable *u, const char *node, enum drain_reason reason,
			   const char *why, int64_t until_ns)
{
	char *copy = why ? mem_strdup(why) : NULL; /* it may be the one that is replaced */
	struct drain_failure *f;
	bool found;
	size_t at = place_of(u, node, &found);

	f = found ? &u->of[at] : insert(u, at, node);
	free(f->why);
	free(f->refusal);
	f->refusal = NULL;
	f->why = copy;
	f->reason = reason;
	if (until_ns)
		f->until_ns = until_ns;
}

void drain_unremovable_tell(struct drain_unremovable *u, const char *node, const void *refusal,
			    size_t size)
{
	bool found;
	size_t at = place_of(u, node, &found);

	if (!found)
		return;
	free(u->of[at].refusal);
	u->of[at].refusal = memcpy(mem_alloc(size), refusal, size);
}

const struct drain_failure *drain_unremovable_recent(const struct drain_unremovable *u,
						     const char *node)
{
	bool found;
	size_t at = place_of(u, node, &found);

	return found && u->of[at].until_ns != 0 ? &u->of[at] : NULL;
}
