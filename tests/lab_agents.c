/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods are those of a real API server, so they come and go; what they use is what their truth says
 * (lab_use.h). An interval is told with the pods that are there when it ends:
 *
 *	pods, base  -->  patterns  -->  use_table  -->  interval  -->  ring  -->  sender
 *
 * Each agent has a sender of its own, as in the product; one thread steps them all.
 */
#include "tests/lab_agents.h"

#include <assert.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ring.h"
#include "agent/schedule.h"
#include "agent/sender.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/use_table.h"

#define PIECE_NS     (15 * NS_PER_SEC)
#define RING_SPAN_NS (30 * 60 * NS_PER_SEC)
/* nanomsg tells nobody that a connection is there. */
#define LOOK_NS (5 * NS_PER_MS)

struct resident {
	struct lab_pod pod;
	struct pattern pattern;
	struct entity *entity, *container; /* held */
	int64_t since_ns; /* Unix time; 0: for ever */
	bool told;
};

struct agent {
	struct lab_machine machine;
	struct pattern base;
	struct resident *residents; /* owned */
	size_t count;
	bool silent;
	struct ring *ring; /* owned, as is the sender; NULL: not begun */
	struct sender *sender;
	struct schedule schedule;
	uint64_t sequence; /* of the last interval */
	uint32_t last_ref;
	int64_t end_ns; /* of it */
	char boot_id[BOOT_ID_LEN + 1];
};

struct lab_agents {
	struct agent *agents; /* owned */
	size_t count;
	char *url; /* owned; NULL: not connected */
	const struct keyring *keys; /* borrowed */
	int64_t interval_ns;
	bool began; /* something was measured since they were connected */
};

/* --- who there is ----------------------------------------------------------------------------- */

struct lab_agents *lab_agents_new(const struct lab_machine *machines, size_t count)
{
	struct lab_agents *a = mem_zalloc(1, sizeof(*a));

	a->agents = mem_zalloc(count, sizeof(*a->agents));
	a->count = count;
	for (size_t i = 0; i < count; i++) {
		a->agents[i].machine = machines[i];
		snprintf(a->agents[i].boot_id, sizeof(a->agents[i].boot_id),
			 "00000000-0000-4000-8000-%012x", (unsigned)i % 0x1000000);
	}
	return a;
}

static void fini_resident(struct resident *r)
{
	entity_drop(r->entity);
	entity_drop(r->container);
}

static void end_life(struct agent *agent)
{
	sender_close(agent->sender);
	ring_free(agent->ring);
	agent->sender = NULL;
	agent->ring = NULL;
}

void lab_agents_free(struct lab_agents *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++) {
		end_life(&a->agents[i]);
		for (size_t k = 0; k < a->agents[i].count; k++)
			fini_resident(&a->agents[i].residents[k]);
		free(a->agents[i].residents);
	}
	free(a->agents);
	free(a->url);
	free(a);
}

void lab_agents_set_base(struct lab_agents *a, size_t i, const struct lab_use *use)
{
	a->agents[i].base = lab_use_pattern(use);
}

/* A pod with one container, as the kubelet and containerd name their cgroups. */
static void make_entities(struct agent *agent, struct resident *r)
{
	char *path = mem_printf("kubepods/burstable/pod%s", r->pod.uid), *below;

	r->entity = entity_new(++agent->last_ref, ENTITY_POD, path);
	r->entity->qos = QOS_BURSTABLE;
	memcpy(r->entity->pod_uid, r->pod.uid, sizeof(r->pod.uid));
	below = mem_printf("%s/%016llx%016llx%016llx%016llx", path,
			   (unsigned long long)lab_hash(r->pod.uid),
			   (unsigned long long)lab_hash(path), 0ULL, 0ULL);
	r->container = entity_new(++agent->last_ref, ENTITY_CONTAINER, below);
	r->container->parent = r->entity->ref;
	r->container->qos = QOS_BURSTABLE;
	r->container->runtime = RUNTIME_CONTAINERD;
	memcpy(r->container->pod_uid, r->pod.uid, sizeof(r->pod.uid));
	snprintf(r->container->container_id, sizeof(r->container->container_id), "%s",
		 below + strlen(path) + 1);
	free(path);
	free(below);
}

static struct resident *find_resident(struct agent *agent, const char *uid)
{
	for (size_t i = 0; i < agent->count; i++)
		if (agent->residents[i].entity && !strcmp(agent->residents[i].pod.uid, uid))
			return &agent->residents[i];
	return NULL;
}

void lab_agents_set_pods(struct lab_agents *a, size_t i, const struct lab_pod *pods, size_t count)
{
	struct agent *agent = &a->agents[i];
	struct resident *now = mem_zalloc(count + 1, sizeof(*now));

	for (size_t k = 0; k < count; k++) {
		struct resident *before = find_resident(agent, pods[k].uid);

		if (before) {
			now[k] = *before;
			before->entity = before->container = NULL;
		}
		now[k].pod = pods[k];
		now[k].pattern = lab_use_pattern(&pods[k].use);
		if (!before) {
			now[k].since_ns = a->began ? clock_wall_ns() : 0;
			make_entities(agent, &now[k]);
		}
	}
	for (size_t k = 0; k < agent->count; k++)
		fini_resident(&agent->residents[k]);
	free(agent->residents);
	agent->residents = now;
	agent->count = count;
}

/* --- intervals -------------------------------------------------------------------------------- */

/* What a pod does at the end of an interval it does throughout. */
static const struct pattern *pattern_at(const struct resident *r, int64_t end_ns)
{
	static const struct pattern starting = {.low_milli = 1, .mem_bytes = 16 << 20};

	if (r->since_ns && end_ns < r->since_ns + r->pod.use.load_after_ns)
		return &starting;
	return &r->pattern;
}

static void make_entry(struct entity *entity, const struct resident *r, const struct usage *usage,
		       struct entry *e)
{
	e->entity = entity_hold(entity);
	e->ref = entity->ref;
	e->fresh = !r->told;
	e->limits = use_table_limits(r->pod.use.cpu_limit_milli, r->pod.use.mem_limit_bytes);
	e->usage = *usage;
}

static int compare_refs(const void *a, const void *b)
{
	uint32_t x = ((const struct entry *)a)->ref, y = ((const struct entry *)b)->ref;

	return (x > y) - (x < y);
}

static struct interval *measure(struct agent *agent, int64_t start_ns, int64_t end_ns)
{
	struct interval *interval = interval_new(2 * agent->count);
	const struct pattern **patterns =
		mem_alloc((1 + agent->count) * sizeof(const struct pattern *));
	struct use_machine machine = {patterns, 1 + agent->count, agent->machine.cpu_milli,
				      agent->machine.mem_bytes};
	struct use_table table;

	interval->sequence = ++agent->sequence;
	interval->start_ns = start_ns;
	interval->end_ns = agent->end_ns = end_ns;
	interval->end_boot_ns = clock_boot_ns() - (clock_wall_ns() - end_ns);
	patterns[0] = &agent->base;
	for (size_t i = 0; i < agent->count; i++)
		patterns[1 + i] = pattern_at(&agent->residents[i], end_ns);
	use_table_init(&table, &machine, start_ns, end_ns);
	for (size_t i = 0; i < agent->count; i++) {
		struct resident *r = &agent->residents[i];
		struct usage usage;

		use_table_make_usage(&table, 1 + i, &usage);
		make_entry(r->entity, r, &usage, &interval->entries[2 * i]);
		make_entry(r->container, r, &usage, &interval->entries[2 * i + 1]);
		r->told = true;
	}
	use_table_make_node(&table, interval);
	memcpy(interval->node.boot_id, agent->boot_id, sizeof(agent->boot_id));
	if (interval->entry_count)
		qsort(interval->entries, interval->entry_count, sizeof(*interval->entries),
		      compare_refs);
	use_table_fini(&table);
	free(patterns);
	return interval;
}

void lab_agents_measure(struct lab_agents *a, size_t i, int64_t end_ns)
{
	struct agent *agent = &a->agents[i];

	while (agent->end_ns < end_ns) {
		int64_t start_ns = agent->end_ns, left_ns = end_ns - start_ns;

		ring_push(agent->ring, measure(agent, start_ns,
					       left_ns > PIECE_NS ? start_ns + PIECE_NS : end_ns));
	}
	a->began = true;
}

int64_t lab_agents_end_ns(const struct lab_agents *a, size_t i)
{
	return a->agents[i].end_ns;
}

/* --- lives ------------------------------------------------------------------------------------ */

static void begin_life(const struct lab_agents *a, struct agent *agent, int64_t begin_ns)
{
	struct sender_config config = {
		.node = agent->machine.name, .keys = a->keys, .first = 1, .boot_ns = clock_boot_ns};
	struct error why;

	end_life(agent);
	randombytes_buf(config.run, sizeof(config.run));
	agent->sequence = 0;
	agent->end_ns = begin_ns;
	for (size_t i = 0; i < agent->count; i++)
		agent->residents[i].told = false;
	agent->ring = ring_new(RING_BYTES_DEFAULT, RING_SPAN_NS);
	if (sender_open(&agent->sender, a->url, &config, &why)) {
		fprintf(stderr, "lab: %s\n", why.text);
		abort();
	}
}

static void schedule_life(const struct lab_agents *a, struct agent *agent)
{
	if (!a->interval_ns)
		return;
	schedule_start(&agent->schedule, agent->machine.name, a->interval_ns, clock_mono_ns(),
		       clock_wall_ns());
	agent->schedule.last_end_ns = agent->end_ns;
}

void lab_agents_connect(struct lab_agents *a, const char *url, const struct keyring *keys,
			int64_t history_ns, int64_t ago_ns, int64_t interval_ns)
{
	int64_t end_ns = clock_wall_ns() - ago_ns;

	free(a->url);
	a->url = mem_strdup(url);
	a->keys = keys;
	a->interval_ns = interval_ns;
	a->began = false;
	for (size_t i = 0; i < a->count; i++) {
		struct agent *agent = &a->agents[i];

		for (size_t k = 0; k < agent->count; k++)
			agent->residents[k].since_ns = 0;
		begin_life(a, agent, end_ns - history_ns);
		if (!agent->silent)
			lab_agents_measure(a, i, end_ns);
		schedule_life(a, agent);
	}
	a->began = true;
}

void lab_agents_set_silent(struct lab_agents *a, size_t i, bool silent)
{
	struct agent *agent = &a->agents[i];

	if (agent->silent && !silent && a->url) {
		begin_life(a, agent, clock_wall_ns());
		schedule_life(a, agent);
	}
	agent->silent = silent;
}

/* --- steps ------------------------------------------------------------------------------------ */

static void obey(const struct lab_agents *a, struct agent *agent)
{
	uint64_t cursors[SENDER_CURSORS];
	struct sender_stats stats;

	sender_get_stats(agent->sender, &stats);
	ring_set_cursors(agent->ring, cursors, sender_get_cursors(agent->sender, cursors));
	if (a->interval_ns)
		schedule_set_interval(&agent->schedule, stats.interval_ms
								? stats.interval_ms * NS_PER_MS
								: a->interval_ns);
}

static int64_t step(const struct lab_agents *a, struct agent *agent)
{
	int64_t mono_ns = clock_mono_ns(), start_ns, end_ns, due_ns;

	if (a->interval_ns && schedule_due(&agent->schedule, mono_ns)) {
		schedule_end(&agent->schedule, mono_ns, clock_wall_ns(), &start_ns, &end_ns);
		if (end_ns > start_ns)
			ring_push(agent->ring, measure(agent, start_ns, end_ns));
	}
	due_ns = sender_step(agent->sender, agent->ring, mono_ns);
	obey(a, agent);
	if (a->interval_ns && agent->schedule.due_mono_ns < due_ns)
		due_ns = agent->schedule.due_mono_ns;
	return due_ns;
}

int64_t lab_agents_step(struct lab_agents *a)
{
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < a->count; i++) {
		struct agent *agent = &a->agents[i];
		int64_t agent_due_ns = agent->sender && !agent->silent ? step(a, agent) : INT64_MAX;

		due_ns = agent_due_ns < due_ns ? agent_due_ns : due_ns;
	}
	return due_ns;
}

static bool all_idle(const struct lab_agents *a)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct agent *agent = &a->agents[i];

		if (agent->sender && !agent->silent && !sender_idle(agent->sender, agent->ring))
			return false;
	}
	return true;
}

/* Until an ack is there, or it is time to look again. */
static void pause_until(struct lab_agents *a, int64_t due_ns)
{
	struct pollfd *fds = mem_zalloc(a->count + 1, sizeof(*fds));
	int64_t left_ns = due_ns - clock_mono_ns();

	for (size_t i = 0; i < a->count; i++)
		fds[i] = (struct pollfd){a->agents[i].sender && !a->agents[i].silent
						 ? sender_fd(a->agents[i].sender)
						 : -1,
					 POLLIN, 0};
	left_ns = left_ns > LOOK_NS ? LOOK_NS : left_ns;
	poll(fds, a->count, left_ns > 0 ? (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS) : 0);
	free(fds);
}

bool lab_agents_flush(struct lab_agents *a, double seconds)
{
	int64_t until_ns = clock_mono_ns() + (int64_t)(seconds * NS_PER_SEC);

	while (lab_agents_step(a), !all_idle(a)) {
		if (clock_mono_ns() > until_ns)
			return false;
		pause_until(a, INT64_MAX);
	}
	return true;
}

struct error lab_agents_refusal(const struct lab_agents *a)
{
	struct error error = {""};

	for (size_t i = 0; i < a->count && !*error.text; i++) {
		struct sender_stats stats = {.sent = 0};

		if (a->agents[i].sender)
			sender_get_stats(a->agents[i].sender, &stats);
		error_set(&error, "%s", stats.last_reason);
	}
	return error;
}

void lab_agents_run(struct lab_agents *a, int64_t ns)
{
	int64_t until_ns = clock_mono_ns() + ns;

	while (clock_mono_ns() < until_ns) {
		int64_t due_ns = lab_agents_step(a);

		pause_until(a, due_ns < until_ns ? due_ns : until_ns);
	}
}
