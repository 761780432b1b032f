/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables below are shared/body.proto in C; message.h reads and writes by them. protobuf-c takes
 * three times as long for an interval (57 us, 17 us here), builds a tree of some four hundred small
 * messages and needs a memory budget.
 *
 * A holder of the key sealed the body, but agents have bugs and keys leak, so everything is checked
 * here. Measured values are not: one impossible value must not cost the interval of a whole node,
 * so the usage state checks each against the machine's limits. Memory is bounded by the number of
 * entries and the length of the body.
 *
 * An agent obeys the numbers in an ack, so they are clamped: interval 1..15 s, pause to 1 min.
 */
#include "shared/body.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/demand.h"
#include "shared/frame.h"
#include "shared/message.h"
#include "shared/utf8.h"

#define NUMBER_MAX   1000000000000000000LL /* bytes, millicores, seconds */
#define COUNTER_MAX  (1LL << 53)
#define MERGED_MAX   100000
#define LONGEST_NS   (3600 * NS_PER_SEC)
#define CAPACITY_MAX (INT64_MAX / 1024)

enum { INTERVAL_MS_MIN = 1000, INTERVAL_MS_MAX = 15000, WAIT_MS_MAX = 60000 };

/* Tags and lengths of the fields of IntervalPart that are not packed by the table. */
enum { PART_NODE = 5, PART_ENTRIES = 6, ENTRY_IDENTITY = 3 };
/* Tag and length of at most 3 bytes. */
enum { ENTRY_HEAD_LEN = 1 + 3 };

static_assert((int)MESSAGE_NUMBERS_MAX == (int)HISTOGRAM_BUCKETS, "a histogram fits, no more");

/* --- messages --------------------------------------------------------------------------------- */

#define ROW(number, of, field, member, ...)                                                        \
	[(number)-1] = {.name = (field), .offset = offsetof(struct of, member), __VA_ARGS__}
#define WITHIN(low, high) .bounded = true, .least = (low), .most = (high)

static const struct message_field moments_rows[] = {
	ROW(1, moments32, "samples", samples, .kind = MESSAGE_U32),
	ROW(2, moments32, "weight", weight, .kind = MESSAGE_FLOAT),
	ROW(3, moments32, "mean", mean, .kind = MESSAGE_FLOAT),
	ROW(4, moments32, "m2", m2, .kind = MESSAGE_FLOAT),
	ROW(5, moments32, "min", min, .kind = MESSAGE_FLOAT),
	ROW(6, moments32, "max", max, .kind = MESSAGE_FLOAT),
	ROW(7, moments32, "last", last, .kind = MESSAGE_FLOAT),
};
static const struct message moments_message = MESSAGE(moments_rows);

static const struct message_field gauge_rows[] = {
	ROW(1, gauge, "mean", mean, .kind = MESSAGE_FLOAT),
	ROW(2, gauge, "max", max, .kind = MESSAGE_FLOAT),
	ROW(3, gauge, "last", last, .kind = MESSAGE_FLOAT),
};
static const struct message gauge_message = MESSAGE(gauge_rows);

static_assert(offsetof(struct usage, have) == 0, "what MESSAGE_INSIDE needs");

static const struct message_field usage_rows[] = {
	/* bits that are new to this reader are ignored */
	ROW(1, usage, "have", have, .kind = MESSAGE_U32),
	ROW(2, usage, "seconds", seconds, .kind = MESSAGE_FLOAT, WITHIN(0, NUMBER_MAX)),
#define X(member, has, key, decimals, number, message)                                             \
	ROW(number, usage, #member, member, .kind = MESSAGE_INSIDE, .inside = &message##_message,  \
	    .bit = USAGE_##has),
	USAGE_AVERAGED(X)
#undef X
#define X(member, has, number, type, from)                                                         \
	ROW(number, usage, #member, member, .kind = MESSAGE_##type),
		USAGE_COUNTED(X)
#undef X
#define X(member, has, key, number, type, ...)                                                     \
	ROW(number, usage, #member, member, .kind = MESSAGE_##type),
			USAGE_NEWEST(X)
#undef X
};
static const struct message usage_message = MESSAGE(usage_rows);

struct sparse {
	struct message_numbers index, count;
};

static const struct message_field histogram_rows[] = {
	ROW(1, sparse, "index", index, .kind = MESSAGE_NUMBERS),
	ROW(2, sparse, "count", count, .kind = MESSAGE_NUMBERS),
};
static const struct message histogram_message = MESSAGE(histogram_rows);

struct node {
	struct node_sample sample; /* without histograms and boot_id */
	struct sparse cpu, memory;
	struct span boot_id;
};

static const struct message_field node_rows[] = {
	ROW(1, node, "usage", sample.usage, .kind = MESSAGE_INSIDE, .inside = &usage_message),
	ROW(2, node, "cpu", cpu, .kind = MESSAGE_INSIDE, .inside = &histogram_message),
	ROW(3, node, "memory", memory, .kind = MESSAGE_INSIDE, .inside = &histogram_message),
	ROW(4, node, "cpu_capacity_milli", sample.cpu_capacity_milli, .kind = MESSAGE_U64,
	    WITHIN(0, CAPACITY_MAX)),
	ROW(5, node, "mem_capacity_bytes", sample.mem_capacity_bytes, .kind = MESSAGE_U64,
	    WITHIN(0, CAPACITY_MAX)),
	ROW(6, node, "tier", sample.tier, .kind = MESSAGE_U32, WITHIN(0, TIER_T3)),
	ROW(7, node, "rate_hz", sample.rate_hz, .kind = MESSAGE_FLOAT, WITHIN(0, NUMBER_MAX)),
	ROW(8, node, "missed_ticks", sample.missed_ticks, .kind = MESSAGE_U32),
	ROW(9, node, "overflow", sample.overflow, .kind = MESSAGE_U32),
	ROW(10, node, "pass_ns", sample.pass_ns, .kind = MESSAGE_U64, WITHIN(0, COUNTER_MAX)),
	ROW(11, node, "agent_cpu_ns", sample.agent_cpu_ns, .kind = MESSAGE_U64,
	    WITHIN(0, COUNTER_MAX)),
	ROW(12, node, "boot_id", boot_id, .kind = MESSAGE_SPAN),
	ROW(13, node, "mem_available_bytes", sample.mem_available_bytes, .kind = MESSAGE_U64),
	ROW(14, node, "cpu_user_ns", sample.cpu_split.user_ns, .kind = MESSAGE_U64),
	ROW(15, node, "cpu_system_ns", sample.cpu_split.system_ns, .kind = MESSAGE_U64),
	ROW(16, node, "cpu_iowait_ns", sample.cpu_split.iowait_ns, .kind = MESSAGE_U64),
	ROW(17, node, "cpu_steal_ns", sample.cpu_split.steal_ns, .kind = MESSAGE_U64),
};
static const struct message node_message = MESSAGE(node_rows);

struct identity {
	uint32_t parent, kind, qos, runtime;
	struct span name, pod_uid, container_id;
	struct kernel_limits limits;
};

static const struct message_field identity_rows[] = {
	ROW(1, identity, "parent", parent, .kind = MESSAGE_U32),
	ROW(2, identity, "kind", kind, .kind = MESSAGE_U32, WITHIN(0, ENTITY_SLICE)),
	ROW(3, identity, "qos", qos, .kind = MESSAGE_U32, WITHIN(0, QOS_BEST_EFFORT)),
	ROW(4, identity, "runtime", runtime, .kind = MESSAGE_U32, WITHIN(0, RUNTIME_PODMAN)),
	ROW(5, identity, "name", name, .kind = MESSAGE_SPAN),
	ROW(6, identity, "pod_uid", pod_uid, .kind = MESSAGE_SPAN),
	ROW(7, identity, "container_id", container_id, .kind = MESSAGE_SPAN),
#define X(member, key, number, field)                                                              \
	ROW(number, identity, field, limits.member, .kind = MESSAGE_S64,                           \
	    WITHIN(LIMIT_UNKNOWN, INT64_MAX)),
	KERNEL_LIMITS(X)
#undef X
};
static const struct message identity_message = MESSAGE(identity_rows);

struct entry_in {
	uint32_t ref;
	bool has_identity;
	struct contention_cause cause;
	bool starting;
	struct span demand;
	struct usage usage;
	struct identity identity; /* otherwise undefined */
};

static int take_identity(void *into, struct span bytes, struct error *reason);

static const struct message_field entry_rows[] = {
	ROW(1, entry_in, "ref", ref, .kind = MESSAGE_U32),
	ROW(2, entry_in, "usage", usage, .kind = MESSAGE_INSIDE, .inside = &usage_message),
	[ENTRY_IDENTITY - 1] = {.name = "identity", .kind = MESSAGE_CALL, .take = take_identity},
	ROW(4, entry_in, "demand", demand, .kind = MESSAGE_SPAN),
	ROW(5, entry_in, "starting", starting, .kind = MESSAGE_BOOL),
	ROW(6, entry_in, "cause_ref", cause.ref, .kind = MESSAGE_U32),
	ROW(7, entry_in, "cause_share", cause.share, .kind = MESSAGE_FLOAT, WITHIN(0, 1)),
};
static const struct message entry_message = MESSAGE(entry_rows);

struct part {
	int64_t start_ns, end_ns;
	uint32_t merged;
	bool full;
	bool has_node;
	bool first;
	struct node node;
	struct interval *to; /* borrowed; target of the entries */
};

static int take_node(void *into, struct span bytes, struct error *reason);
static int take_entry(void *into, struct span bytes, struct error *reason);

static const struct message_field part_rows[] = {
	ROW(1, part, "start_ns", start_ns, .kind = MESSAGE_U64),
	ROW(2, part, "end_ns", end_ns, .kind = MESSAGE_U64),
	ROW(3, part, "merged", merged, .kind = MESSAGE_U32),
	ROW(4, part, "full", full, .kind = MESSAGE_BOOL),
	[PART_NODE - 1] = {.name = "node", .kind = MESSAGE_CALL, .take = take_node},
	[PART_ENTRIES - 1] = {.name = "entries", .kind = MESSAGE_CALL, .take = take_entry},
};
static const struct message part_message = MESSAGE(part_rows);

struct ack_in {
	struct ack ack; /* without reason */
	struct span reason;
};

static const struct message_field ack_rows[] = {
	ROW(1, ack_in, "status", ack.status, .kind = MESSAGE_U32),
	ROW(2, ack_in, "reason", reason, .kind = MESSAGE_SPAN),
	ROW(3, ack_in, "applied", ack.applied, .kind = MESSAGE_U64),
	ROW(4, ack_in, "durable", ack.durable, .kind = MESSAGE_U64),
	ROW(5, ack_in, "server_time_ns", ack.server_time_ns, .kind = MESSAGE_U64),
	ROW(6, ack_in, "interval_ms", ack.interval_ms, .kind = MESSAGE_U32),
	ROW(7, ack_in, "wait_ms", ack.wait_ms, .kind = MESSAGE_U32),
	ROW(8, ack_in, "resend_from", ack.resend_from, .kind = MESSAGE_U64),
};
static const struct message ack_message = MESSAGE(ack_rows);

/* --- encoding --------------------------------------------------------------------------------- */

static void put_identity(struct buf *out, const struct entry *e)
{
	const struct entity *who = e->entity;
	uint8_t id[CONTAINER_ID_LEN / 2];
	struct identity m = {
		.parent = who->parent,
		.kind = (uint32_t)who->kind,
		.qos = (uint32_t)who->qos,
		.runtime = (uint32_t)who->runtime,
		.name = span_of_text(who->name),
		.pod_uid = span_of_text(who->pod_uid),
		.limits = e->limits,
	};
	size_t len;

	if (!sodium_hex2bin(id, sizeof(id), who->container_id, strlen(who->container_id), NULL,
			    &len, NULL) &&
	    len == sizeof(id))
		m.container_id = (struct span){id, len};
	message_encode_inside(&identity_message, ENTRY_IDENTITY, &m, out);
}

static void encode_entry(struct buf *out, const struct interval *of, const struct entry *e,
			 bool identity)
{
	struct entry_in m = {
		.ref = e->ref, .cause = e->cause, .usage = e->usage, .starting = e->starting};

	if (e->demand_len)
		m.demand = (struct span){interval_demand(of, e), e->demand_len};
	message_encode_some(&entry_message, 1, ENTRY_IDENTITY, &m, out);
	assert(e->entity || !identity);
	if (identity)
		put_identity(out, e);
	message_encode_some(&entry_message, ENTRY_IDENTITY + 1, entry_message.count, &m, out);
}

static void thin_out(struct sparse *to, const struct histogram *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		to->index.value[n] = i;
		to->count.value[n++] = h->count[i];
	}
	to->index.count = to->count.count = n;
}

static void put_node(struct buf *out, const struct node_sample *n)
{
	struct node m = {.sample = *n, .boot_id = span_of_text(n->boot_id)};

	thin_out(&m.cpu, &n->cpu_hist);
	thin_out(&m.memory, &n->mem_hist);
	message_encode_inside(&node_message, PART_NODE, &m, out);
}

/* The fields every part begins with. */
static void begin_part(struct buf *out, const struct interval *interval, bool full)
{
	const struct part m = {
		.start_ns = interval->start_ns,
		.end_ns = interval->end_ns,
		.merged = interval->merged,
		.full = full,
	};

	message_encode(&part_message, &m, out);
}

/* 1..16 parts, or 0 if they do not suffice. */
static size_t encode(const struct interval *interval, bool full, struct buf parts[BODY_PARTS_MAX])
{
	struct buf entry = BUF_INIT;
	size_t n = 0;

	begin_part(&parts[0], interval, full);
	put_node(&parts[0], &interval->node);
	for (size_t i = 0; i < interval->entry_count && n < BODY_PARTS_MAX; i++) {
		const struct entry *e = &interval->entries[i];
		size_t mark;

		buf_clear(&entry);
		encode_entry(&entry, interval, e, full || e->fresh);
		if (parts[n].len + ENTRY_HEAD_LEN + entry.len > FRAME_PART_BODY_MAX &&
		    ++n < BODY_PARTS_MAX)
			begin_part(&parts[n], interval, full);
		if (n == BODY_PARTS_MAX)
			break;
		mark = message_open(&parts[n], PART_ENTRIES);
		buf_add(&parts[n], entry.data, entry.len);
		message_close(&parts[n], mark);
	}
	buf_fini(&entry);
	return n < BODY_PARTS_MAX ? n + 1 : 0;
}

int body_encode_interval(const struct interval *interval, int full,
			 struct buf parts[BODY_PARTS_MAX], struct error *reason)
{
	struct buf made[BODY_PARTS_MAX] = {BUF_INIT};
	size_t count = 0;

	if (interval->entry_count <= BODY_ENTRIES_MAX)
		count = encode(interval, full != 0, made);
	if (!count) {
		for (size_t i = 0; i < BODY_PARTS_MAX; i++)
			buf_fini(&made[i]);
		return error_fail(reason, -E2BIG,
				  "%zu entries do not fit into %d parts of %d bytes",
				  interval->entry_count, BODY_PARTS_MAX, FRAME_PART_BODY_MAX);
	}
	for (size_t i = 0; i < count; i++)
		parts[i] = made[i];
	return (int)count;
}

/* --- decoding --------------------------------------------------------------------------------- */

static int refuse(struct error *reason, const char *field, double value)
{
	return error_fail(reason, -EINVAL, "%s cannot be %g", field, value);
}

/* Texts end at a NUL. */
static size_t text_len(struct span text)
{
	return text.len ? strnlen((const char *)text.data, text.len) : 0;
}

static int take_histogram(struct histogram *to, const struct sparse *m, const char *field,
			  struct error *reason)
{
	if (m->index.count != m->count.count)
		return error_fail(reason, -EINVAL, "%s: %u indices, %u counts", field,
				  m->index.count, m->count.count);
	for (uint32_t i = 0; i < m->index.count; i++) {
		uint32_t index = m->index.value[i];

		if (index >= HISTOGRAM_BUCKETS || (i && index <= m->index.value[i - 1]))
			return error_fail(reason, -EINVAL,
					  "%s: bucket %u is not there or not in order", field,
					  index);
		to->count[index] = m->count.value[i];
	}
	return 0;
}

static int fill_node(struct node_sample *to, const struct node *m, struct error *reason)
{
	size_t len = text_len(m->boot_id);
	int rc;

	*to = m->sample;
	rc = take_histogram(&to->cpu_hist, &m->cpu, "cpu", reason);
	if (!rc)
		rc = take_histogram(&to->mem_hist, &m->memory, "memory", reason);
	if (!rc && len > BOOT_ID_LEN)
		rc = error_fail(reason, -EINVAL, "boot_id: %zu bytes, at most %d can be", len,
				BOOT_ID_LEN);
	if (!rc && len)
		memcpy(to->boot_id, m->boot_id.data, len);
	return rc;
}

static int take_node(void *into, struct span bytes, struct error *reason)
{
	struct part *p = into;
	int rc;

	if (!p->first)
		return error_fail(reason, -EINVAL, "node: only part 0 has one");
	p->has_node = true;
	rc = message_decode(&node_message, bytes, &p->node, reason);
	p->node.sample.usage.have &= USAGE_ALL;
	if (rc)
		error_prefix(reason, "node");
	return rc;
}

static int take_identity(void *into, struct span bytes, struct error *reason)
{
	struct entry_in *m = into;

	if (!m->has_identity)
		m->identity = (struct identity){.parent = 0};
	m->has_identity = true;
	return message_decode(&identity_message, bytes, &m->identity, reason);
}

static int check_identity(const struct identity *m, uint32_t ref, struct error *reason)
{
	size_t name_len = text_len(m->name), uid_len = text_len(m->pod_uid);

	if (m->parent == ref)
		return refuse(reason, "parent", m->parent);
	if (name_len < 1 || name_len > ENTITY_NAME_MAX)
		return refuse(reason, "length of name", (double)name_len);
	if (uid_len > POD_UID_LEN)
		return refuse(reason, "length of pod_uid", (double)uid_len);
	if (m->container_id.len && m->container_id.len != CONTAINER_ID_LEN / 2)
		return refuse(reason, "length of container_id", (double)m->container_id.len);
	/* Each quota has a burst, possibly 0. */
	if (m->limits.cpu_burst_ns == LIMIT_NONE)
		return refuse(reason, "cpu_burst_ns", LIMIT_NONE);
	return 0;
}

static struct entity *make_entity(uint32_t ref, const struct identity *m)
{
	char name[ENTITY_NAME_MAX + 1] = "";
	struct entity *who;

	memcpy(name, m->name.data, text_len(m->name));
	who = entity_new(ref, (enum entity_kind)m->kind, name);
	who->parent = m->parent;
	who->qos = (enum qos_class)m->qos;
	who->runtime = (enum container_runtime)m->runtime;
	if (m->pod_uid.len)
		memcpy(who->pod_uid, m->pod_uid.data, text_len(m->pod_uid));
	if (m->container_id.len)
		sodium_bin2hex(who->container_id, sizeof(who->container_id), m->container_id.data,
			       m->container_id.len);
	return who;
}

static uint32_t last_ref(const struct interval *of)
{
	return of->entry_count ? of->entries[of->entry_count - 1].ref : 0;
}

/* Checks beyond the values of single fields. */
static int check_entry(const struct entry_in *m, const struct interval *to, struct error *reason)
{
	if (m->ref <= last_ref(to))
		return error_fail(reason, -EINVAL, "0, twice, or out of order (after %u)",
				  last_ref(to));
	if (m->demand.len > UINT16_MAX || !demand_is_valid(m->demand.data, m->demand.len))
		return error_fail(reason, -EINVAL, "demand: not such a histogram");
	return m->has_identity ? check_identity(&m->identity, m->ref, reason) : 0;
}

static struct entry *add_room(struct interval *to)
{
	if (to->entry_count == to->entry_room)
		interval_reserve(to, to->entry_count ? to->entry_count * 2 : 128);
	return &to->entries[to->entry_count++];
}

static int take_entry(void *into, struct span bytes, struct error *reason)
{
	struct interval *to = ((struct part *)into)->to;
	struct entry_in m;
	int rc;

	/* Member by member, as most entries have no identity. */
	m.ref = 0;
	m.has_identity = m.starting = false;
	m.demand = (struct span){NULL, 0};
	m.cause = (struct contention_cause){.ref = 0};
	m.usage = (struct usage){.have = 0};

	if (to->entry_count == BODY_ENTRIES_MAX)
		return error_fail(reason, -E2BIG, "more than %d entries", BODY_ENTRIES_MAX);
	rc = message_decode(&entry_message, bytes, &m, reason);
	if (!rc)
		rc = check_entry(&m, to, reason);
	if (rc)
		return error_at(reason, rc, "entry %u", m.ref);
	m.usage.have &= USAGE_ALL;
	*add_room(to) = (struct entry){
		.ref = m.ref,
		.fresh = m.has_identity,
		.starting = m.starting,
		.demand_len = (uint16_t)m.demand.len,
		.demand_at = (uint32_t)to->demand.len,
		.entity = m.has_identity ? make_entity(m.ref, &m.identity) : NULL,
		.limits = m.has_identity ? m.identity.limits : KERNEL_LIMITS_UNKNOWN,
		.cause = m.cause,
		.usage = m.usage,
	};
	buf_add(&to->demand, m.demand.data, m.demand.len);
	return 0;
}

static int take_times(struct interval *to, const struct part *m, struct error *reason)
{
	if (m->merged < 1 || m->merged > MERGED_MAX)
		return refuse(reason, "merged", m->merged);
	if (m->start_ns < 0 || m->end_ns <= m->start_ns ||
	    m->end_ns - m->start_ns > m->merged * LONGEST_NS)
		return error_fail(reason, -EINVAL,
				  "%u merged intervals from %lld to %lld cannot be", m->merged,
				  (long long)m->start_ns, (long long)m->end_ns);
	to->start_ns = m->start_ns;
	to->end_ns = m->end_ns;
	to->merged = m->merged;
	to->full = m->full;
	return 0;
}

static int take_head(struct interval *to, const struct part *m, struct error *reason)
{
	int rc;

	if (!m->first) {
		if (m->start_ns == to->start_ns && m->end_ns == to->end_ns &&
		    m->merged == to->merged && m->full == to->full)
			return 0;
		return error_fail(reason, -EINVAL, "of another interval than part 0");
	}
	if (!m->has_node)
		return error_fail(reason, -EINVAL, "node: missing");
	rc = take_times(to, m, reason);
	if (!rc) {
		rc = fill_node(&to->node, &m->node, reason);
		if (rc)
			error_prefix(reason, "node");
	}
	return rc;
}

static int take_part(struct interval *to, const struct buf *from, bool first, struct error *reason)
{
	struct part m = {.first = first, .to = to};
	size_t before = to->entry_count;
	struct span bytes = {(const uint8_t *)from->data, from->len};
	int rc = message_decode(&part_message, bytes, &m, reason);

	if (!rc)
		rc = take_head(to, &m, reason);
	for (size_t i = before; i < to->entry_count && !rc && to->full; i++)
		if (!to->entries[i].entity)
			rc = error_fail(reason, -EINVAL,
					"entry %u: without identity in a full interval",
					to->entries[i].ref);
	return rc;
}

int body_decode_interval_into(const struct buf *parts, size_t count, struct interval *into,
			      struct error *reason)
{
	int rc = 0;

	interval_clear(into);
	for (size_t i = 0; i < count && !rc; i++) {
		rc = take_part(into, &parts[i], i == 0, reason);
		if (rc && count > 1)
			error_prefix(reason, "part %zu", i);
	}
	if (count < 1 || count > BODY_PARTS_MAX)
		rc = error_fail(reason, -EINVAL, "%zu parts cannot be", count);
	if (rc)
		interval_clear(into);
	return rc;
}

/* --- acks ------------------------------------------------------------------------------------- */

void body_encode_ack(const struct ack *ack, struct buf *out)
{
	const struct ack_in m = {.ack = *ack, .reason = span_of_text(ack->reason)};

	message_encode(&ack_message, &m, out);
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high)
{
	return value < low ? low : value > high ? high : value;
}

int body_decode_ack(const void *data, size_t len, struct ack *ack, struct error *reason)
{
	struct ack_in m = {.reason = {NULL, 0}};

	if (message_decode(&ack_message, (struct span){data, len}, &m, NULL))
		return error_fail(reason, -EBADMSG, "not an ack");
	if ((uint32_t)m.ack.status > ACK_REFUSED)
		return error_fail(reason, -EBADMSG, "an ack of unknown status %d",
				  (int)m.ack.status);
	if (m.ack.interval_ms)
		m.ack.interval_ms = clamp(m.ack.interval_ms, INTERVAL_MS_MIN, INTERVAL_MS_MAX);
	m.ack.wait_ms = clamp(m.ack.wait_ms, 0, WAIT_MS_MAX);
	snprintf(m.ack.reason, sizeof(m.ack.reason), "%.*s", (int)text_len(m.reason),
		 (const char *)m.reason.data);
	utf8_replace_controls(m.ack.reason, ' '); /* it will be logged */
	*ack = m.ack;
	return 0;
}
