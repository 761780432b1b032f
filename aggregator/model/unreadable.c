/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/model/model.h"

#include <stdio.h>
#include <string.h>

#include "shared/utf8.h"

/* As far as they are kept, and zero behind each text. */
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

	while (i < u->count && (strcmp(u->of[i].namespace, key->namespace) != 0 ||
				strcmp(u->of[i].name, key->name) != 0))
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
	utf8_replace_controls(new.why, ' ');
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
	/* An entry has arrays of characters alone, and zeroes behind a text. */
	return a->count == b->count && a->more == b->more &&
	       memcmp(a->of, b->of, a->count * sizeof(a->of[0])) == 0;
}
