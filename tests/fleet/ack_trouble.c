/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet is linked with --wrap=sender_socket_receive, so that the sender takes its replies from
 * here and nothing in the agent knows of it. An ack that is lost is read and dropped; one that is
 * delayed is kept until it is due, and a later one may overtake it. The sender waits for one ack at
 * a time, so few are ever kept.
 */
#include "tests/fleet/ack_trouble.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/sender_socket.h"
#include "shared/clock.h"
#include "shared/mem.h"

/* More than can be under way; beyond it acks are not delayed. */
enum { KEPT_MAX = 16 };

struct kept {
	int64_t due_ns;
	uint32_t request;
	struct buf data;
};

struct ack_trouble {
	const struct trouble *trouble; /* borrowed, as is the cluster */
	const struct cluster *cluster;
	uint32_t node;
	uint64_t received;
	size_t count;
	struct kept kept[KEPT_MAX];
};

static struct ack_trouble *current;
static struct tally *counters;

/* The linker makes these names. NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data);
int __wrap_sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data);
/* NOLINTEND(bugprone-reserved-identifier) */

struct ack_trouble *ack_trouble_new(const struct trouble *t, const struct cluster *c, uint32_t node)
{
	struct ack_trouble *a = mem_zalloc(1, sizeof(*a));

	a->trouble = t;
	a->cluster = c;
	a->node = node;
	return a;
}

void ack_trouble_free(struct ack_trouble *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++)
		buf_fini(&a->kept[i].data);
	free(a);
}

void ack_trouble_set(struct ack_trouble *a, struct tally *tally)
{
	current = a;
	counters = tally;
}

/* The one that is due first, or KEPT_MAX. */
static size_t first_due(const struct ack_trouble *a)
{
	size_t first = KEPT_MAX;

	for (size_t i = 0; i < a->count; i++) {
		if (first == KEPT_MAX || a->kept[i].due_ns < a->kept[first].due_ns)
			first = i;
	}
	return first;
}

int64_t ack_trouble_due_ns(const struct ack_trouble *a)
{
	size_t first = first_due(a);

	return first == KEPT_MAX ? INT64_MAX : a->kept[first].due_ns;
}

/* True when the reply goes no further now. */
static bool hold_back(struct ack_trouble *a, uint32_t request, struct buf *data)
{
	uint64_t n = a->received++;
	int64_t delay_ns;

	if (trouble_loses_ack(a->trouble, a->cluster, a->node, n)) {
		counters->lost_acks++;
		return true;
	}
	delay_ns = trouble_ack_delay_ns(a->trouble, a->cluster, a->node, n);
	if (!delay_ns || a->count == KEPT_MAX)
		return false;
	counters->delayed_acks++;
	a->kept[a->count++] = (struct kept){clock_mono_ns() + delay_ns, request, *data};
	*data = (struct buf)BUF_INIT;
	return true;
}

int __wrap_sender_socket_receive(struct sender_socket *s, uint32_t *id, struct buf *data)
{
	size_t first;

	if (!current)
		return __real_sender_socket_receive(s, id, data);
	while (!__real_sender_socket_receive(s, id, data)) {
		if (!hold_back(current, *id, data))
			return 0;
	}
	first = first_due(current);
	if (first == KEPT_MAX || current->kept[first].due_ns > clock_mono_ns())
		return -EAGAIN;
	buf_fini(data);
	*data = current->kept[first].data;
	*id = current->kept[first].request;
	current->kept[first] = current->kept[--current->count];
	return 0;
}
