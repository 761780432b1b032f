/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "agent/ring.h"
#include "agent/sender.h"
#include "shared/clock.h"
#include "shared/keyring.h"
#include "tests/interval.h"
#include "tests/stack.h"

#define BEFORE_NS   (15 * NS_PER_SEC)
#define PATIENCE_NS (30 * NS_PER_SEC)

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static bool runs_on(const cJSON *pod, const char *node)
{
	return strcmp(text_at(pod, "node"), node) == 0;
}

/* One entry for each pod of the node, by its uid. */
static struct interval *measure(const struct kube_truth *truth, const char *node,
				const struct kube_usage *u, int64_t end_ns)
{
	struct interval *interval;
	size_t count = 0, i = 0;
	const cJSON *pod;

	cJSON_ArrayForEach(pod, truth->pods) count += runs_on(pod, node);
	interval = interval_make(u->sequence, count, 0);
	interval->start_ns = u->end_ns;
	interval->end_ns = end_ns;
	cJSON_ArrayForEach(pod, truth->pods)
	{
		struct entity *e;

		if (!runs_on(pod, node))
			continue;
		e = interval->entries[i++].entity;
		snprintf(e->pod_uid, sizeof(e->pod_uid), "%s", text_at(pod, "uid"));
	}
	return interval;
}

static void send_all(struct sender *s, const struct ring *ring)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	while (!sender_idle(s, ring)) {
		struct pollfd fd = {sender_fd(s), POLLIN, 0};
		int64_t now_ns = clock_mono_ns(), next_ns = sender_step(s, ring, now_ns);

		assert_true(now_ns < until_ns);
		/* A connection that comes about is told to nobody, so it is looked for. */
		if (next_ns > now_ns + 10 * NS_PER_MS)
			next_ns = now_ns + 10 * NS_PER_MS;
		poll(&fd, 1, next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) : 0);
	}
}

static void send_node(struct interval *interval, const char *node, uint8_t number, const char *url,
		      const struct keyring *keys)
{
	struct sender_config config = {.node = node,
				       .keys = keys,
				       .first = interval->sequence,
				       .reply_timeout_ns = 5 * NS_PER_SEC};
	struct ring *ring = ring_new(RING_BYTES_DEFAULT, PATIENCE_NS);
	struct reason why = {""};
	struct sender *sender;

	memset(config.run, number, sizeof(config.run));
	ring_push(ring, interval);
	if (sender_open(&sender, url, &config, &why))
		fail_msg("%s", why.text);
	send_all(sender, ring);
	sender_close(sender);
	ring_free(ring);
}

void kube_usage_send(struct kube_usage *u, const struct kube_truth *truth, const char *url,
		     const char *key_path)
{
	int64_t now_ns = clock_wall_ns();
	struct reason why = {""};
	struct keyring keys;
	uint8_t number = 0;
	const cJSON *node;

	if (keyring_load(&keys, key_path, &why))
		fail_msg("%s", why.text);
	u->sequence++;
	if (!u->end_ns)
		u->end_ns = now_ns - BEFORE_NS;
	cJSON_ArrayForEach(node, truth->nodes)
	{
		const char *name = text_at(node, "name");

		send_node(measure(truth, name, u, now_ns), name, ++number, url, &keys);
	}
	u->end_ns = now_ns;
	keyring_wipe(&keys);
}
