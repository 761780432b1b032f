/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What arrives was sealed by a holder of the key, but agents have bugs and keys get lost, so
 * nothing in it is trusted: parsing draws on a budget of memory, and whatever says what is in the
 * body is checked here. What was measured is not: one impossible value must not cost the interval
 * of a whole node, so the usage state judges each by what the machine can have done, before
 * arithmetic sees it.
 *
 * Entries are read without the library where they are as our agents write them (body_scan.h). Where
 * one is not, or one is not right, the whole part is read by the library, and what that says counts:
 *
 *     head --library--> kept for its checks        entries --body_scan--> all right? --yes--> taken
 *                                                                             no: as if never tried
 */
#include "shared/body.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "shared/body.pb-c.h"
#include "shared/body_scan.h"
#include "shared/clock.h"
#include "shared/mem.h"

/* What parsing one part may allocate; the smallest entries that say anything need a third of it. */
enum { MEMORY_MAX = 8 * 1024 * 1024 };

#define NUMBER_MAX   1e18F /* bytes, millicores, seconds */
#define COUNTER_MAX  (1ULL << 53)
#define MERGED_MAX   100000
#define LONGEST_NS   (3600 * NS_PER_SEC)
#define CAPACITY_MAX (INT64_MAX / 1024)

#define USAGE_ALL                                                                                  \
	(USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_THROTTLE | USAGE_OOM |               \
	 USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU | USAGE_STALL_MEMORY |   \
	 USAGE_SWAP | USAGE_PIDS)

/* --- memory ----------------------------------------------------------------------------------- */

/*
 * Blocks are given back all at once: a body of thousands of small messages neither asks malloc for
 * each nor tears its heap. Those of a body of usual size, about a hundred entries, lie on the
 * stack.
 */
enum { CHUNK_LEN = 64 * 1024, BLOCK_ALIGN = 8 };

static_assert(BLOCK_ALIGN >= _Alignof(void *) && BLOCK_ALIGN >= _Alignof(uint64_t) &&
		      BLOCK_ALIGN >= _Alignof(double),
	      "messages have no other members");

struct chunk {
	struct chunk *next;
	max_align_t data[];
};

struct budget {
	size_t left;
	bool exceeded;
	struct chunk *chunks; /* owned; the newest first */
	char *free; /* in the newest, or in `first` */
	size_t room; /* there */
	_Alignas(max_align_t) char first[CHUNK_LEN];
};

static void budget_init(struct budget *b, size_t most)
{
	b->left = most;
	b->exceeded = false;
	b->chunks = NULL;
	b->free = b->first;
	b->room = sizeof(b->first);
}

static void *budget_alloc(void *data, size_t size)
{
	struct budget *b = data;
	size_t len = (size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
	void *block;

	if (size > b->left) {
		b->exceeded = true;
		return NULL;
	}
	b->left -= size;
	if (len > b->room) {
		size_t chunk_len = len > CHUNK_LEN ? len : CHUNK_LEN;
		struct chunk *chunk = mem_alloc(sizeof(*chunk) + chunk_len);

		chunk->next = b->chunks;
		b->chunks = chunk;
		b->free = (char *)chunk->data;
		b->room = chunk_len;
	}
	block = b->free;
	b->free += len;
	b->room -= len;
	return block;
}

static void budget_free(void *data, void *block)
{
	(void)data;
	(void)block;
}

static void budget_fini(struct budget *b)
{
	while (b->chunks) {
		struct chunk *next = b->chunks->next;

		free(b->chunks);
		b->chunks = next;
	}
}

/* --- values ----------------------------------------------------------------------------------- */

static int refuse(struct reason *reason, const char *field, double value)
{
	reason_set(reason, "%s cannot be %g", field, value);
	return -EINVAL;
}

static int take_number(float *to, float value, const char *field, struct reason *reason)
{
	if (!isfinite(value) || fabsf(value) > NUMBER_MAX)
		return refuse(reason, field, (double)value);
	*to = value;
	return 0;
}

static int take_positive(float *to, float value, const char *field, struct reason *reason)
{
	return value < 0 ? refuse(reason, field, (double)value)
			 : take_number(to, value, field, reason);
}

static int take_counter(uint64_t *to, uint64_t value, const char *field, struct reason *reason)
{
	if (value > COUNTER_MAX)
		return refuse(reason, field, (double)value);
	*to = value;
	return 0;
}

/* NULL is an empty gauge. */
static void take_gauge(struct gauge *to, const Evenkeel__Gauge *m)
{
	if (m)
		*to = (struct gauge){.mean = m->mean, .max = m->max, .last = m->last};
}

static void take_moments(struct moments32 *to, const Evenkeel__Moments *m)
{
	if (m)
		*to = (struct moments32){
			.samples = m->samples,
			.weight = m->weight,
			.mean = m->mean,
			.m2 = m->m2,
			.min = m->min,
			.max = m->max,
			.last = m->last,
		};
}

static void take_usage_counters(struct usage *to, const Evenkeel__Usage *m)
{
	to->oom_kills = m->oom_kills;
	to->throttled_periods = m->throttled_periods;
	to->periods = m->periods;
	to->pids = m->pids;
	to->throttled_ns = m->throttled_ns;
	to->contention_cpu_ns = m->contention_cpu_ns;
	to->contention_mem_ns = m->contention_mem_ns;
	to->stall_cpu_ns = m->stall_cpu_ns;
	to->stall_mem_ns = m->stall_mem_ns;
	to->swap_bytes = m->swap_bytes;
}

static int check_usage(const struct usage *u, struct reason *reason)
{
	float seconds;

	if (u->have & ~(uint32_t)USAGE_ALL)
		return refuse(reason, "have", u->have);
	return take_positive(&seconds, u->seconds, "seconds", reason);
}

/* NULL: nothing was measured. */
static int take_usage(struct usage *to, const Evenkeel__Usage *m, struct reason *reason)
{
	if (!m)
		return 0;
	to->have = m->have;
	to->seconds = m->seconds;
	take_moments(&to->cpu_milli, m->cpu_milli);
	take_gauge(&to->mem_bytes, m->mem_bytes);
	take_gauge(&to->working_set_bytes, m->working_set_bytes);
	take_usage_counters(to, m);
	return check_usage(to, reason);
}

static int take_histogram(struct histogram *to, const Evenkeel__Histogram *m, const char *field,
			  struct reason *reason)
{
	if (!m)
		return 0;
	if (m->n_index != m->n_count) {
		reason_set(reason, "%s: %zu indices, %zu counts", field, m->n_index, m->n_count);
		return -EINVAL;
	}
	for (size_t i = 0; i < m->n_index; i++) {
		uint32_t index = m->index[i];

		if (index >= HISTOGRAM_BUCKETS || (i && index <= m->index[i - 1])) {
			reason_set(reason, "%s: bucket %u is not there or not in order", field,
				   index);
			return -EINVAL;
		}
		to->count[index] = m->count[i];
	}
	return 0;
}

static int take_text(char *to, size_t max, const char *text, const char *field,
		     struct reason *reason)
{
	size_t len = strlen(text);

	if (len > max) {
		reason_set(reason, "%s: %zu bytes, at most %zu can be", field, len, max);
		return -EINVAL;
	}
	memcpy(to, text, len + 1);
	return 0;
}

/* --- sections --------------------------------------------------------------------------------- */

static void take_cpu_split(struct cpu_split *to, const Evenkeel__Node *m)
{
	to->user_ns = m->cpu_user_ns;
	to->system_ns = m->cpu_system_ns;
	to->iowait_ns = m->cpu_iowait_ns;
	to->steal_ns = m->cpu_steal_ns;
}

static int take_node(struct node_sample *to, const Evenkeel__Node *m, struct reason *reason)
{
	int rc;

	if (m->tier > TIER_T3)
		return refuse(reason, "tier", m->tier);
	if (m->cpu_capacity_milli < 0 || m->cpu_capacity_milli > CAPACITY_MAX)
		return refuse(reason, "cpu_capacity_milli", (double)m->cpu_capacity_milli);
	if (m->mem_capacity_bytes < 0 || m->mem_capacity_bytes > CAPACITY_MAX)
		return refuse(reason, "mem_capacity_bytes", (double)m->mem_capacity_bytes);
	to->tier = (enum sampler_tier)m->tier;
	to->cpu_capacity_milli = m->cpu_capacity_milli;
	to->mem_capacity_bytes = m->mem_capacity_bytes;
	to->mem_available_bytes = m->mem_available_bytes;
	to->missed_ticks = m->missed_ticks;
	to->overflow = m->overflow;
	rc = take_usage(&to->usage, m->usage, reason);
	if (!rc)
		rc = take_histogram(&to->cpu_hist, m->cpu, "cpu", reason);
	if (!rc)
		rc = take_histogram(&to->mem_hist, m->memory, "memory", reason);
	if (!rc)
		rc = take_positive(&to->rate_hz, m->rate_hz, "rate_hz", reason);
	if (!rc)
		rc = take_counter(&to->pass_ns, m->pass_ns, "pass_ns", reason);
	if (!rc)
		rc = take_counter(&to->agent_cpu_ns, m->agent_cpu_ns, "agent_cpu_ns", reason);
	take_cpu_split(&to->cpu_split, m);
	if (!rc)
		rc = take_text(to->boot_id, BOOT_ID_LEN, m->boot_id, "boot_id", reason);
	return rc;
}

static int check_limits(const Evenkeel__Identity *m, struct reason *reason)
{
	const struct {
		const char *field;
		int64_t value;
	} limits[] = {
		{"limit_cpu_milli", m->limit_cpu_milli},
		{"limit_mem_bytes", m->limit_mem_bytes},
		{"limit_mem_high_bytes", m->limit_mem_high_bytes},
		{"limit_swap_bytes", m->limit_swap_bytes},
		{"limit_pids", m->limit_pids},
		{"cpu_burst_ns", m->cpu_burst_ns},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].value < LIMIT_UNKNOWN)
			return refuse(reason, limits[i].field, (double)limits[i].value);
	/* A quota has a burst, if only of 0. */
	if (m->cpu_burst_ns == LIMIT_NONE)
		return refuse(reason, "cpu_burst_ns", (double)m->cpu_burst_ns);
	return 0;
}

static int check_identity(const Evenkeel__Identity *m, struct reason *reason)
{
	size_t name_len = strlen(m->name), uid_len = strlen(m->pod_uid);

	if (m->kind > ENTITY_SLICE)
		return refuse(reason, "kind", m->kind);
	if (m->qos > QOS_BEST_EFFORT)
		return refuse(reason, "qos", m->qos);
	if (m->runtime > RUNTIME_PODMAN)
		return refuse(reason, "runtime", m->runtime);
	if (name_len < 1 || name_len > ENTITY_NAME_MAX)
		return refuse(reason, "length of name", (double)name_len);
	if (uid_len > POD_UID_LEN)
		return refuse(reason, "length of pod_uid", (double)uid_len);
	if (m->container_id.len && m->container_id.len != CONTAINER_ID_LEN / 2)
		return refuse(reason, "length of container_id", (double)m->container_id.len);
	return check_limits(m, reason);
}

static int take_identity(struct entry *to, const Evenkeel__Identity *m, struct reason *reason)
{
	struct entity *who;
	int rc = check_identity(m, reason);

	if (!rc && m->parent == to->ref)
		rc = refuse(reason, "parent", m->parent);
	if (rc)
		return rc;
	who = entity_new(to->ref, (enum entity_kind)m->kind, m->name);
	who->parent = m->parent;
	who->qos = (enum qos_class)m->qos;
	who->runtime = (enum container_runtime)m->runtime;
	memcpy(who->pod_uid, m->pod_uid, strlen(m->pod_uid) + 1);
	if (m->container_id.len)
		sodium_bin2hex(who->container_id, sizeof(who->container_id), m->container_id.data,
			       m->container_id.len);
	to->entity = who;
	to->fresh = true;
	to->limits = (struct kernel_limits){
		.cpu_milli = m->limit_cpu_milli,
		.mem_bytes = m->limit_mem_bytes,
		.mem_high_bytes = m->limit_mem_high_bytes,
		.swap_bytes = m->limit_swap_bytes,
		.pids = m->limit_pids,
		.cpu_burst_ns = m->cpu_burst_ns,
	};
	return 0;
}

static int check_ref(uint32_t ref, uint32_t after, bool known, struct reason *reason)
{
	if (ref <= after) {
		reason_set(reason, "0, twice, or out of order (after %u)", after);
		return -EINVAL;
	}
	if (!known) {
		reason_set(reason, "without identity in a full interval");
		return -EINVAL;
	}
	return 0;
}

static int take_entry(struct entry *to, const Evenkeel__Entry *m, uint32_t after, bool full,
		      struct reason *reason)
{
	int rc = check_ref(m->ref, after, m->identity || !full, reason);

	if (rc)
		return rc;
	*to = (struct entry){.ref = m->ref, .limits = KERNEL_LIMITS_UNKNOWN};
	rc = take_usage(&to->usage, m->usage, reason);
	if (!rc && m->identity)
		rc = take_identity(to, m->identity, reason);
	return rc;
}

/* --- parts ------------------------------------------------------------------------------------ */

static int take_times(struct interval *to, const Evenkeel__IntervalPart *m, struct reason *reason)
{
	if (m->merged < 1 || m->merged > MERGED_MAX)
		return refuse(reason, "merged", m->merged);
	if (m->start_ns < 0 || m->end_ns <= m->start_ns ||
	    m->end_ns - m->start_ns > m->merged * LONGEST_NS) {
		reason_set(reason, "%u merged intervals from %lld to %lld cannot be", m->merged,
			   (long long)m->start_ns, (long long)m->end_ns);
		return -EINVAL;
	}
	to->start_ns = m->start_ns;
	to->end_ns = m->end_ns;
	to->merged = m->merged;
	to->full = m->full;
	return 0;
}

static int take_head(struct interval *to, const Evenkeel__IntervalPart *m, bool first,
		     struct reason *reason)
{
	int rc;

	if ((m->node != NULL) != first) {
		reason_set(reason, first ? "node: missing" : "node: only part 0 has one");
		return -EINVAL;
	}
	if (!first) {
		if (m->start_ns == to->start_ns && m->end_ns == to->end_ns &&
		    m->merged == to->merged && m->full == to->full)
			return 0;
		reason_set(reason, "of another interval than part 0");
		return -EINVAL;
	}
	rc = take_times(to, m, reason);
	if (!rc) {
		rc = take_node(&to->node, m->node, reason);
		if (rc)
			reason_prefix(reason, "node");
	}
	return rc;
}

/* Room for so many more entries; false: there may not be so many. */
static bool reserve_entries(struct interval *to, size_t more)
{
	if (to->entry_count + more > BODY_ENTRIES_MAX)
		return false;
	interval_reserve(to, to->entry_count + more);
	return true;
}

static uint32_t last_ref(const struct interval *of)
{
	return of->entry_count ? of->entries[of->entry_count - 1].ref : 0;
}

static int take_entries(struct interval *to, const Evenkeel__IntervalPart *m, struct reason *reason)
{
	if (!reserve_entries(to, m->n_entries)) {
		reason_set(reason, "more than %d entries", BODY_ENTRIES_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < m->n_entries; i++) {
		const Evenkeel__Entry *from = m->entries[i];
		int rc = take_entry(&to->entries[to->entry_count], from, last_ref(to), to->full,
				    reason);

		if (rc) {
			reason_prefix(reason, "entry %u", from->ref);
			return rc;
		}
		to->entry_count++;
	}
	return 0;
}

/* --- the short way ---------------------------------------------------------------------------- */

/*
 * What the library's messages of so many entries take, and what it is given for the rest while they
 * are scanned (the head, and what identities hold), are together within MEMORY_MAX.
 */
enum { SCANNED_MAX = 4096, SCANNED_MEMORY_MAX = MEMORY_MAX / 2 };

static_assert((size_t)SCANNED_MAX * (sizeof(Evenkeel__Entry) + sizeof(Evenkeel__Usage) +
				     sizeof(Evenkeel__Moments) + 2 * sizeof(Evenkeel__Gauge) +
				     sizeof(Evenkeel__Identity) + 128) <
		      MEMORY_MAX - SCANNED_MEMORY_MAX,
	      "what is scanned is not refused for its size");

static size_t length_of(const struct body_bytes *b)
{
	return (size_t)(b->end - b->at);
}

/* False: let the library look at it. */
static bool scan_entry(struct entry *to, struct body_bytes *from, uint32_t after, bool full,
		       ProtobufCAllocator *allocator)
{
	Evenkeel__Identity *who;
	struct body_entry e;

	if (!body_scan_entry(from, &e) || check_ref(e.ref, after, e.has_identity || !full, NULL) ||
	    check_usage(&e.usage, NULL))
		return false;
	*to = (struct entry){.ref = e.ref, .limits = KERNEL_LIMITS_UNKNOWN, .usage = e.usage};
	if (!e.has_identity)
		return true;
	who = evenkeel__identity__unpack(allocator, length_of(&e.identity), e.identity.at);
	return who && !take_identity(to, who, NULL);
}

static void drop_entries(struct interval *of, size_t but)
{
	while (of->entry_count > but)
		entity_drop(of->entries[--of->entry_count].entity);
}

/* All entries of a part or none. */
static bool scan_entries(struct interval *to, struct body_bytes from, size_t count, bool full,
			 ProtobufCAllocator *allocator)
{
	size_t before = to->entry_count;

	if (count > SCANNED_MAX || !reserve_entries(to, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!scan_entry(&to->entries[to->entry_count], &from, last_ref(to), full,
				allocator)) {
			drop_entries(to, before);
			return false;
		}
		to->entry_count++;
	}
	return true;
}

/* The part's head, once its entries are taken; NULL: let the library look at all of it. */
static Evenkeel__IntervalPart *scan_part(struct interval *to, const struct buf *part,
					 ProtobufCAllocator *allocator)
{
	struct body_bytes head, entries;
	Evenkeel__IntervalPart *m;
	size_t count;

	if (!body_scan_part(part->data, part->len, &head, &entries, &count))
		return NULL;
	m = evenkeel__interval_part__unpack(allocator, length_of(&head), head.at);
	return m && scan_entries(to, entries, count, m->full, allocator) ? m : NULL;
}

/* The long way round. */
static int parse_part(struct interval *to, const struct buf *part, bool first,
		      struct budget *budget, struct reason *reason)
{
	ProtobufCAllocator allocator = {budget_alloc, budget_free, budget};
	Evenkeel__IntervalPart *m =
		evenkeel__interval_part__unpack(&allocator, part->len, (const uint8_t *)part->data);
	int rc;

	if (m) {
		rc = take_head(to, m, first, reason);
		return rc ? rc : take_entries(to, m, reason);
	}
	reason_set(reason, budget->exceeded ? "takes too much memory" : "not such a body");
	return budget->exceeded ? -E2BIG : -EBADMSG;
}

static int take_part(struct interval *to, const struct buf *part, bool first, struct reason *reason)
{
	/* Not zeroed: that would cost more than the parsing of a small body. */
	struct budget budget;
	ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
	Evenkeel__IntervalPart *m;
	int rc;

	budget_init(&budget, SCANNED_MEMORY_MAX);
	m = scan_part(to, part, &allocator);
	if (m) {
		rc = take_head(to, m, first, reason);
	} else {
		budget_fini(&budget);
		budget_init(&budget, MEMORY_MAX);
		rc = parse_part(to, part, first, &budget, reason);
	}
	budget_fini(&budget);
	return rc;
}

int body_decode_interval_into(const struct buf *parts, size_t count, struct interval *into,
			      struct reason *reason)
{
	int rc = 0;

	interval_clear(into);
	for (size_t i = 0; i < count && !rc; i++) {
		rc = take_part(into, &parts[i], i == 0, reason);
		if (rc && count > 1)
			reason_prefix(reason, "part %zu", i);
	}
	if (count < 1 || count > BODY_PARTS_MAX) {
		reason_set(reason, "%zu parts cannot be", count);
		rc = -EINVAL;
	}
	if (rc)
		interval_clear(into);
	return rc;
}
