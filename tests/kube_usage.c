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
#include "tests/keys.h"
#include "tests/stack.h"

#define BEFORE_NS  (15 * NS_PER_SEC)
#define TIMEOUT_NS (30 * NS_PER_SEC)

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

	cJSON_ArrayForEach (pod, truth->pods)
		count += runs_on(pod, node);
	interval = interval_make(u->sequence, count, 0);
	interval->start_ns = u->end_ns;
	interval->end_ns = end_ns;
	cJSON_ArrayForEach (pod, truth->pods) {
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
	int64_t until_ns = clock_mono_ns() + TIMEOUT_NS;

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

/* The ring is freed. `first` is the sequence it begins with. */
static void send_ring(struct ring *ring, uint64_t first, const char *node, uint8_t number,
		      const char *url, const struct keyring *keys)
{
	struct sender_config config = {
		.node = node, .keys = keys, .first = first, .reply_timeout_ns = 5 * NS_PER_SEC};
	struct error error = {""};
	struct sender *sender;

	memset(config.run, number, sizeof(config.run));
	if (sender_open(&sender, url, &config, &error))
		fail_msg("%s", error.text);
	send_all(sender, ring);
	sender_close(sender);
	ring_free(ring);
}

static void send_node(struct interval *interval, const char *node, uint8_t number, const char *url,
		      const struct keyring *keys)
{
	struct ring *ring = ring_new(RING_BYTES_DEFAULT, TIMEOUT_NS);
	uint64_t first = interval->sequence;

	ring_push(ring, interval);
	send_ring(ring, first, node, number, url, keys);
}

void kube_usage_send(struct kube_usage *u, const struct kube_truth *truth, const char *url,
		     const char *key_path)
{
	int64_t now_ns = clock_wall_ns();
	struct error error = {""};
	struct keyring keys;
	uint8_t number = 0;
	const cJSON *node;

	if (keys_load(&keys, key_path, &error))
		fail_msg("%s", error.text);
	u->sequence++;
	if (!u->end_ns)
		u->end_ns = now_ns - BEFORE_NS;
	cJSON_ArrayForEach (node, truth->nodes) {
		const char *name = text_at(node, "name");

		send_node(measure(truth, name, u, now_ns), name, ++number, url, &keys);
	}
	u->end_ns = now_ns;
	keyring_wipe(&keys);
}

/* --- loads ----------------------------------------------------------------------------------- */

#define HISTORY_NS (15 * 60 * NS_PER_SEC)
#define PIECE_NS   (15 * NS_PER_SEC)

/*
 * Busy for a share of the time and idle for the rest: the one such load of that mean and deviation.
 * With share p and height h, mean = p h and sigma^2 = p (1 - p) h^2, so p = 1 / (1 + (sigma /
 * mean)^2).
 */
static void use_cpu(struct node_sample *node, struct usage *pod, const struct kube_load *load,
		    double seconds)
{
	double ratio = load->sigma_milli / load->cpu_milli, share = 1 / (1 + ratio * ratio);
	double height = load->cpu_milli / share;
	struct moments cpu = {0};

	memset(&node->cpu_hist, 0, sizeof(node->cpu_hist));
	for (int i = 0; i < 100; i++)
		histogram_add(&node->cpu_hist, i < 100 * share ? height : 0, HISTOGRAM_CPU_X0);
	moments_add(&cpu, 0, seconds * (1 - share));
	moments_add(&cpu, height, seconds * share);
	cpu.samples = 100; /* as the histogram has */
	node->usage.cpu_milli = pod->cpu_milli = moments_pack(&cpu);
}

static void use_memory(struct node_sample *node, struct usage *pod, const struct kube_load *load)
{
	float bytes = (float)load->mem_bytes;

	memset(&node->mem_hist, 0, sizeof(node->mem_hist));
	histogram_add(&node->mem_hist, load->mem_bytes, HISTOGRAM_MEMORY_X0);
	node->usage.mem_bytes = pod->mem_bytes = (struct gauge){bytes, bytes, bytes};
}

/* Its container uses what the pod does. */
static void fill_container(struct interval *interval, const struct kube_load *load)
{
	struct usage *pod = &interval->entries[0].usage, *node = &interval->node.usage;
	struct entry *container = &interval->entries[1];

	node->working_set_bytes = pod->working_set_bytes = pod->mem_bytes;
	node->have |= USAGE_WORKING_SET;
	pod->have |= USAGE_WORKING_SET;
	container->usage = *pod;
	snprintf(container->entity->container_id, sizeof(container->entity->container_id), "%s",
		 load->container_id);
}

static struct interval *measure_load(const struct kube_load *load, uint64_t sequence,
				     int64_t start_ns, int64_t end_ns)
{
	struct interval *interval = interval_make(sequence, 1, load->container_id ? 1 : 0);
	struct node_sample *node = &interval->node;
	struct entry *pod = &interval->entries[0];
	double seconds = (double)(end_ns - start_ns) / NS_PER_SEC;

	interval->start_ns = start_ns;
	interval->end_ns = end_ns;
	snprintf(pod->entity->pod_uid, sizeof(pod->entity->pod_uid), "%s", load->pod_uid);
	node->usage.seconds = pod->usage.seconds = (float)seconds;
	node->usage.have = pod->usage.have = USAGE_CPU | USAGE_MEMORY;
	use_cpu(node, &pod->usage, load, seconds);
	use_memory(node, &pod->usage, load);
	if (load->container_id)
		fill_container(interval, load);
	return interval;
}

void kube_usage_send_loads(struct kube_usage *u, const struct kube_load *loads, size_t count,
			   const char *url, const char *key_path)
{
	int64_t now_ns = clock_wall_ns();
	int64_t start_ns = u->end_ns ? u->end_ns : now_ns - HISTORY_NS - PIECE_NS;
	uint64_t first = u->sequence + 1;
	struct error error = {""};
	struct keyring keys;

	if (keys_load(&keys, key_path, &error))
		fail_msg("%s", error.text);
	for (size_t i = 0; i < count; i++) {
		struct ring *ring = ring_new(RING_BYTES_DEFAULT, 2 * HISTORY_NS);

		u->sequence = first - 1;
		for (int64_t at_ns = start_ns, end_ns; at_ns < now_ns; at_ns = end_ns) {
			end_ns = at_ns + PIECE_NS < now_ns ? at_ns + PIECE_NS : now_ns;
			ring_push(ring, measure_load(&loads[i], ++u->sequence, at_ns, end_ns));
		}
		send_ring(ring, first, loads[i].node, (uint8_t)(i + 1), url, &keys);
	}
	u->end_ns = now_ns;
	keyring_wipe(&keys);
}
