/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interval becomes parts in one pass and without a tree in memory: a serialised protobuf message
 * is the concatenation of its fields, so each entry is packed from the stack straight behind what
 * is already there, and a part that is full is followed by the next. What was not measured is left
 * out, and proto3 leaves out zeros.
 */
#include "shared/body.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "shared/body.pb-c.h"
#include "shared/frame.h"

/* Field 6 of IntervalPart, length-delimited. */
enum { TAG_ENTRIES = 6 << 3 | 2 };

/* One message and what it points to. */
struct usage_message {
	Evenkeel__Usage usage;
	Evenkeel__Moments cpu;
	Evenkeel__Gauge memory, working_set;
};

struct entry_message {
	Evenkeel__Entry entry;
	Evenkeel__Identity identity;
	uint8_t container_id[CONTAINER_ID_LEN / 2];
	struct usage_message usage;
};

struct histogram_message {
	Evenkeel__Histogram histogram;
	uint32_t index[HISTOGRAM_BUCKETS], count[HISTOGRAM_BUCKETS];
};

struct node_message {
	Evenkeel__Node node;
	struct usage_message usage;
	struct histogram_message cpu, memory;
};

static void fill_gauge(Evenkeel__Gauge *m, const struct gauge *g)
{
	evenkeel__gauge__init(m);
	m->mean = g->mean;
	m->max = g->max;
	m->last = g->last;
}

static void fill_moments(Evenkeel__Moments *m, const struct moments32 *from)
{
	evenkeel__moments__init(m);
	m->samples = from->samples;
	m->weight = from->weight;
	m->mean = from->mean;
	m->m2 = from->m2;
	m->min = from->min;
	m->max = from->max;
	m->last = from->last;
}

static void fill_usage(struct usage_message *m, const struct usage *u)
{
	evenkeel__usage__init(&m->usage);
	m->usage.have = u->have;
	m->usage.seconds = u->seconds;
	if (u->have & USAGE_CPU) {
		fill_moments(&m->cpu, &u->cpu_milli);
		m->usage.cpu_milli = &m->cpu;
	}
	if (u->have & USAGE_MEMORY) {
		fill_gauge(&m->memory, &u->mem_bytes);
		m->usage.mem_bytes = &m->memory;
	}
	if (u->have & USAGE_WORKING_SET) {
		fill_gauge(&m->working_set, &u->working_set_bytes);
		m->usage.working_set_bytes = &m->working_set;
	}
	m->usage.throttled_ns = u->throttled_ns;
	m->usage.throttled_periods = u->throttled_periods;
	m->usage.periods = u->periods;
	m->usage.oom_kills = u->oom_kills;
	m->usage.contention_cpu_ns = u->contention_cpu_ns;
	m->usage.contention_mem_ns = u->contention_mem_ns;
	m->usage.stall_cpu_ns = u->stall_cpu_ns;
	m->usage.stall_mem_ns = u->stall_mem_ns;
	m->usage.swap_bytes = u->swap_bytes;
	m->usage.pids = u->pids;
}

static void fill_identity(struct entry_message *m, const struct entry *e)
{
	const struct entity *who = e->entity;
	Evenkeel__Identity *i = &m->identity;
	size_t id_len;

	evenkeel__identity__init(i);
	i->parent = who->parent;
	i->kind = (uint32_t)who->kind;
	i->qos = (uint32_t)who->qos;
	i->runtime = (uint32_t)who->runtime;
	i->name = (char *)who->name;
	i->pod_uid = (char *)who->pod_uid;
	if (!sodium_hex2bin(m->container_id, sizeof(m->container_id), who->container_id,
			    strlen(who->container_id), NULL, &id_len, NULL) &&
	    id_len == sizeof(m->container_id))
		i->container_id = (ProtobufCBinaryData){id_len, m->container_id};
	i->limit_cpu_milli = e->limits.cpu_milli;
	i->limit_mem_bytes = e->limits.mem_bytes;
	i->limit_mem_high_bytes = e->limits.mem_high_bytes;
	i->limit_swap_bytes = e->limits.swap_bytes;
	i->limit_pids = e->limits.pids;
	i->cpu_burst_ns = e->limits.cpu_burst_ns;
	m->entry.identity = i;
}

static void fill_entry(struct entry_message *m, const struct entry *e, int full)
{
	evenkeel__entry__init(&m->entry);
	m->entry.ref = e->ref;
	fill_usage(&m->usage, &e->usage);
	m->entry.usage = &m->usage.usage;
	if (full || e->fresh) {
		assert(e->entity);
		fill_identity(m, e);
	}
}

static void fill_histogram(struct histogram_message *m, const struct histogram *h)
{
	size_t n = 0;

	evenkeel__histogram__init(&m->histogram);
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		m->index[n] = i;
		m->count[n++] = h->count[i];
	}
	m->histogram.n_index = m->histogram.n_count = n;
	m->histogram.index = m->index;
	m->histogram.count = m->count;
}

static void fill_node(struct node_message *m, const struct node_sample *n)
{
	evenkeel__node__init(&m->node);
	fill_usage(&m->usage, &n->usage);
	m->node.usage = &m->usage.usage;
	fill_histogram(&m->cpu, &n->cpu_hist);
	m->node.cpu = &m->cpu.histogram;
	fill_histogram(&m->memory, &n->mem_hist);
	m->node.memory = &m->memory.histogram;
	m->node.cpu_capacity_milli = n->cpu_capacity_milli;
	m->node.mem_capacity_bytes = n->mem_capacity_bytes;
	m->node.mem_available_bytes = n->mem_available_bytes;
	m->node.cpu_user_ns = n->cpu_split.user_ns;
	m->node.cpu_system_ns = n->cpu_split.system_ns;
	m->node.cpu_iowait_ns = n->cpu_split.iowait_ns;
	m->node.cpu_steal_ns = n->cpu_split.steal_ns;
	m->node.tier = (uint32_t)n->tier;
	m->node.rate_hz = n->rate_hz;
	m->node.missed_ticks = n->missed_ticks;
	m->node.overflow = n->overflow;
	m->node.pass_ns = n->pass_ns;
	m->node.agent_cpu_ns = n->agent_cpu_ns;
	m->node.boot_id = (char *)n->boot_id;
}

/* The fields every part begins with; node is NULL but in part 0. */
static void begin_part(struct buf *out, const struct interval *interval, int full,
		       Evenkeel__Node *node)
{
	Evenkeel__IntervalPart part = EVENKEEL__INTERVAL_PART__INIT;
	size_t len;

	part.start_ns = interval->start_ns;
	part.end_ns = interval->end_ns;
	part.merged = interval->merged;
	part.full = full != 0;
	part.node = node;
	len = evenkeel__interval_part__get_packed_size(&part);
	out->len += evenkeel__interval_part__pack(&part, (uint8_t *)buf_reserve(out, len));
}

static void add_varint(struct buf *out, size_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_add_char(out, (char)(value | 0x80));
	buf_add_char(out, (char)value);
}

static void add_entry(struct buf *out, const Evenkeel__Entry *entry, size_t len)
{
	buf_add_char(out, TAG_ENTRIES);
	add_varint(out, len);
	out->len += evenkeel__entry__pack(entry, (uint8_t *)buf_reserve(out, len));
}

/* Tag, length of at most 3 bytes, message. */
static size_t entry_cost(size_t len)
{
	return 1 + 3 + len;
}

/* 1..16 parts, or 0 when they do not hold it. */
static size_t encode(const struct interval *interval, int full, struct buf parts[BODY_PARTS_MAX])
{
	struct node_message node;
	size_t n = 0;

	fill_node(&node, &interval->node);
	begin_part(&parts[0], interval, full, &node.node);
	for (size_t i = 0; i < interval->entry_count; i++) {
		struct entry_message m;
		size_t len;

		fill_entry(&m, &interval->entries[i], full);
		len = evenkeel__entry__get_packed_size(&m.entry);
		if (parts[n].len + entry_cost(len) > FRAME_PART_BODY_MAX) {
			if (++n == BODY_PARTS_MAX)
				return 0;
			begin_part(&parts[n], interval, full, NULL);
		}
		add_entry(&parts[n], &m.entry, len);
	}
	return n + 1;
}

int body_encode_interval(const struct interval *interval, int full,
			 struct buf parts[BODY_PARTS_MAX], struct reason *reason)
{
	struct buf made[BODY_PARTS_MAX] = {BUF_INIT};
	size_t count = 0;

	if (interval->entry_count <= BODY_ENTRIES_MAX)
		count = encode(interval, full, made);
	if (!count) {
		for (size_t i = 0; i < BODY_PARTS_MAX; i++)
			buf_fini(&made[i]);
		reason_set(reason, "%zu entries do not fit into %d parts of %d bytes",
			   interval->entry_count, BODY_PARTS_MAX, FRAME_PART_BODY_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < count; i++)
		parts[i] = made[i];
	return (int)count;
}
