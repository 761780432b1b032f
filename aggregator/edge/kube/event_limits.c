/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate of all events is a bucket of EVENT_LIMITS_BURST tokens, kept as one time: an event moves
 * it on by EVENT_LIMITS_EVERY_S from now or from where it is, and passes while it is less than the
 * burst ahead of now.
 *
 * A state is offered again and again. While it goes on without a gap of GAP_NS it is repeated by its
 * lasting pause; a state that ended and came back counts as another event.
 */
#include "aggregator/edge/kube/event_writer.h"

#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define EVERY_NS  (EVENT_LIMITS_EVERY_S * NS_PER_SEC)
#define GAP_NS	  (60 * NS_PER_SEC)
#define FORGET_NS (3600 * NS_PER_SEC)

void event_limits_fini(struct event_limits *l)
{
	event_limits_expire(l, INT64_MAX);
}

void event_limits_expire(struct event_limits *l, int64_t now_ns)
{
	struct event_entry *e, *next;

	HASH_ITER(hh, l->entries, e, next)
	{
		if (now_ns - e->offered_ns < FORGET_NS)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-*): uthash keeps the list, and it is in the hash */
		HASH_DEL(l->entries, e);
		free(e->key);
		free(e);
	}
}

/* NULL: there is no room for another. */
static struct event_entry *entry_of(struct event_limits *l, const struct object_event *event)
{
	char *key = mem_printf("%s/%s/%s/%s/%s", event->kind, event->namespace, event->name,
			       event->uid, event->reason);
	struct event_entry *e;

	HASH_FIND_STR(l->entries, key, e);
	if (e || HASH_COUNT(l->entries) == EVENT_LIMITS_MAX) {
		free(key);
		return e;
	}
	HASH_NEW(l->entries, e, key, key);
	return e;
}

static bool spend(struct event_limits *l, int64_t now_ns)
{
	int64_t from_ns = l->spent_ns > now_ns ? l->spent_ns : now_ns;

	if (from_ns - now_ns > (EVENT_LIMITS_BURST - 1) * EVERY_NS)
		return false;
	l->spent_ns = from_ns + EVERY_NS;
	return true;
}

enum event_verdict event_limits_admit(struct event_limits *l, const struct object_event *event,
				      int64_t now_ns, struct event_entry **entry)
{
	enum event_verdict refused = event->lasting_ns ? EVENT_WAITS : EVENT_LEFT_OUT;
	struct event_entry *e = entry_of(l, event);
	int64_t pause_ns = event->pause_ns;
	uint64_t note = hash_bytes(HASH_BEGIN, event->note, strlen(event->note));

	if (!e)
		return refused;
	if (event->lasting_ns && e->offered_ns && now_ns - e->offered_ns < GAP_NS)
		pause_ns = event->lasting_ns;
	e->offered_ns = now_ns;
	if ((e->written_ns && now_ns - e->written_ns < pause_ns) || !spend(l, now_ns))
		return refused;
	if (note != e->note)
		e->name[0] = '\0';
	e->note = note;
	e->written_ns = now_ns;
	*entry = e;
	return EVENT_PASSES;
}
