/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/model/model.h"

#include <stdio.h>
#include <string.h>

/* As far as they are kept. */
static bool is_same(const struct unreadable *a, const struct unreadable *b)
{
	return strcmp(a->namespace, b->namespace) == 0 && strcmp(a->name, b->name) == 0;
}

static struct unreadable named(const char *namespace, const char *name)
{
	struct unreadable out = {0};

	snprintf(out.namespace, sizeof(out.namespace), "%s", namespace);
	snprintf(out.name, sizeof(out.name), "%s", name);
	return out;
}

static uint32_t find(const struct unreadables *u, const struct unreadable *key)
{
	uint32_t i = 0;

	while (i < u->count && !is_same(&u->of[i], key))
		i++;
	return i;
}

void unreadables_put(struct unreadables *u, const char *namespace, const char *name,
		     const char *node, const char *why)
{
	struct unreadable new = named(namespace, name);
	uint32_t at = find(u, &new);

	if (at == UNREADABLE_MAX) {
		u->more = true;
		return;
	}
	snprintf(new.node, sizeof(new.node), "%s", node);
	snprintf(new.why, sizeof(new.why), "%s", why);
	/* One line of a log, whatever somebody's name is. */
	for (char *c = new.why; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
	u->of[at] = new;
	u->count += at == u->count;
}

void unreadables_remove(struct unreadables *u, const char *namespace, const char *name)
{
	struct unreadable key = named(namespace, name);
	uint32_t at = find(u, &key);

	if (at == u->count)
		return;
	u->count--;
	memmove(&u->of[at], &u->of[at + 1], (u->count - at) * sizeof(u->of[0]));
	u->of[u->count] = (struct unreadable){0};
}

bool unreadables_equal(const struct unreadables *a, const struct unreadables *b)
{
	if (a->count != b->count || a->more != b->more)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (strcmp(a->of[i].namespace, b->of[i].namespace) != 0 ||
		    strcmp(a->of[i].name, b->of[i].name) != 0 ||
		    strcmp(a->of[i].node, b->of[i].node) != 0 ||
		    strcmp(a->of[i].why, b->of[i].why) != 0)
			return false;
	return true;
}
