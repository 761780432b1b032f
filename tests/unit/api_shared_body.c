/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/body.h"
#include "shared/body.pb-c.h"
#include "shared/clock.h"
#include "shared/frame.h"
#include "tests/interval.h"

struct parts {
	struct buf bufs[BODY_PARTS_MAX];
	int count;
};

static void encode(struct parts *p, const struct interval *i, int full)
{
	struct error error;

	memset(p, 0, sizeof(*p));
	p->count = body_encode_interval(i, full, p->bufs, &error);
	assert_in_range(p->count, 1, BODY_PARTS_MAX);
}

static void fini(struct parts *p)
{
	for (int i = 0; i < p->count; i++)
		buf_fini(&p->bufs[i]);
}

static size_t total_len(const struct parts *p)
{
	size_t len = 0;

	for (int i = 0; i < p->count; i++)
		len += p->bufs[i].len;
	return len;
}

static void expect_same_entry(const struct entry *a, const struct entry *b, bool identity)
{
	assert_int_equal(a->ref, b->ref);
	assert_memory_equal(&a->usage, &b->usage, sizeof(a->usage));
	assert_memory_equal(&a->cause, &b->cause, sizeof(a->cause));
	if (!identity) {
		assert_null(b->entity);
		assert_false(b->fresh);
		assert_memory_equal(&b->limits, &KERNEL_LIMITS_UNKNOWN, sizeof(b->limits));
		return;
	}
	assert_true(b->fresh);
	assert_memory_equal(&a->limits, &b->limits, sizeof(a->limits));
	assert_int_equal(a->entity->ref, b->entity->ref);
	assert_int_equal(a->entity->parent, b->entity->parent);
	assert_int_equal(a->entity->kind, b->entity->kind);
	assert_int_equal(a->entity->qos, b->entity->qos);
	assert_int_equal(a->entity->runtime, b->entity->runtime);
	assert_int_equal(b->entity->users, 1);
	assert_string_equal(a->entity->pod_uid, b->entity->pod_uid);
	assert_string_equal(a->entity->container_id, b->entity->container_id);
	assert_string_equal(a->entity->name, b->entity->name);
}

static void expect_same(const struct interval *a, const struct interval *b, bool full)
{
	assert_int_equal(b->sequence, 0);
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(a->merged, b->merged);
	assert_int_equal(b->full, full);
	assert_memory_equal(&a->node, &b->node, sizeof(a->node));
	assert_int_equal(a->entry_count, b->entry_count);
	for (size_t i = 0; i < a->entry_count; i++)
		expect_same_entry(&a->entries[i], &b->entries[i], full || a->entries[i].fresh);
}

static void expect_round_trip(const struct interval *i, int full, int parts_wanted)
{
	struct parts p;
	struct interval *back;
	struct error error;

	encode(&p, i, full);
	assert_int_equal(p.count, parts_wanted);
	for (int n = 0; n < p.count; n++)
		assert_true(p.bufs[n].len <= FRAME_PART_BODY_MAX);
	assert_int_equal(interval_decode(p.bufs, (size_t)p.count, &back, &error), 0);
	expect_same(i, back, full);
	interval_free(back);
	fini(&p);
}

static void test_round_trip(void **state)
{
	struct interval *first = interval_make(1, 3, 2), *second = interval_make(2, 3, 2),
			*merged = interval_merge(first, second), *empty = interval_make(3, 0, 0),
			*large = interval_make(2, 1500, 3);

	(void)state;
	second->entries[4].fresh = true;
	second->entries[5].usage = (struct usage){.have = USAGE_OOM, .seconds = 5, .oom_kills = 7};
	second->entries[6].entity->pod_uid[0] = '\0';
	for (int full = 0; full < 2; full++) {
		expect_round_trip(first, full, 1);
		expect_round_trip(second, full, 1);
		expect_round_trip(merged, full, 1);
		expect_round_trip(empty, full, 1);
		expect_round_trip(large, full, full ? 11 : 4);
	}
	interval_free(first);
	interval_free(second);
	interval_free(merged);
	interval_free(empty);
	interval_free(large);
}

/* A field nobody knows is passed over, and so is its order. */
static void expect_unknown_passed_over(const struct interval *i, int full)
{
	struct interval *back;
	struct parts p;

	encode(&p, i, full);
	for (int n = 0; n < p.count; n++)
		buf_add(&p.bufs[n], "\x78\x00\x7d....\x79........\x82\x7d\x02..", 21);
	assert_int_equal(interval_decode(p.bufs, (size_t)p.count, &back, NULL), 0);
	expect_same(i, back, full);
	interval_free(back);
	fini(&p);
}

/* A newer agent measures what this reader does not know. */
static void test_unknown_measures_are_ignored(void **state)
{
	struct interval *i = interval_make(1, 1, 1), *back;
	const uint32_t have = i->entries[0].usage.have;
	struct parts p;

	(void)state;
	i->entries[0].usage.have = have | (USAGE_ALL + 1);
	i->node.usage.have |= USAGE_ALL + 1;
	encode(&p, i, true);
	assert_int_equal(interval_decode(p.bufs, (size_t)p.count, &back, NULL), 0);
	assert_int_equal(back->entries[0].usage.have, have);
	assert_int_equal(back->node.usage.have, i->node.usage.have & USAGE_ALL);
	interval_free(back);
	interval_free(i);
	fini(&p);
}

/* What the library reads and writes again are the same bytes, so they mean the same to it. */
static void expect_library_agrees(const struct interval *i, int full)
{
	struct parts p;

	encode(&p, i, full);
	for (int n = 0; n < p.count; n++) {
		Evenkeel__IntervalPart *m =
			evenkeel__interval_part__unpack(NULL, p.bufs[n].len,
							(const uint8_t *)p.bufs[n].data);
		uint8_t *again = test_malloc(p.bufs[n].len);

		assert_non_null(m);
		assert_int_equal(evenkeel__interval_part__get_packed_size(m), p.bufs[n].len);
		evenkeel__interval_part__pack(m, again);
		assert_memory_equal(again, p.bufs[n].data, p.bufs[n].len);
		test_free(again);
		evenkeel__interval_part__free_unpacked(m, NULL);
	}
	fini(&p);
}

static void test_the_library_reads_the_same(void **state)
{
	struct interval *usual = interval_make(1, 3, 2), *large = interval_make(2, 1500, 3);

	(void)state;
	usual->node.usage.cpu_milli.min = -0.0F;
	usual->entries[0].usage.cpu_milli.max = NAN;
	for (int full = 0; full < 2; full++) {
		expect_library_agrees(usual, full);
		expect_library_agrees(large, full);
		expect_unknown_passed_over(large, full);
	}
	interval_free(usual);
	interval_free(large);
}

static void test_one_interval_takes_many(void **state)
{
	static const struct buf wrong = {.data = "\xff", .len = 1};
	struct interval *kept = interval_new(0), *large = interval_make(1, 40, 2),
			*small = interval_make(2, 2, 1);
	const struct entry *room;
	struct error error;
	struct parts p;

	(void)state;
	encode(&p, large, 1);
	assert_int_equal(body_decode_interval_into(p.bufs, 1, kept, &error), 0);
	expect_same(large, kept, true);
	room = kept->entries;
	fini(&p);
	encode(&p, small, 0);
	kept->sequence = 7;
	kept->age_ns = kept->wait_ns = 9;
	assert_int_equal(body_decode_interval_into(p.bufs, 1, kept, &error), 0);
	expect_same(small, kept, false);
	assert_int_equal(kept->age_ns, 0);
	assert_int_equal(kept->wait_ns, 0);
	assert_ptr_equal(kept->entries, room);
	fini(&p);
	assert_int_equal(body_decode_interval_into(&wrong, 1, kept, &error), -EBADMSG);
	assert_int_equal(kept->entry_count, 0);
	interval_free(kept);
	interval_free(large);
	interval_free(small);
}

static void test_sizes(void **state)
{
	static const struct {
		size_t pods, max;
	} cases[] = {{30, 20 * 1024}, {110, 64 * 1024}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct interval *interval = interval_make(2, cases[i].pods, 3);
		struct parts known, full;

		encode(&known, interval, 0);
		encode(&full, interval, 1);
		print_message("%zu pods of 3 containers: %zu bytes, with identities %zu\n",
			      cases[i].pods, total_len(&known), total_len(&full));
		assert_true(total_len(&known) <= cases[i].max);
		fini(&known);
		fini(&full);
		interval_free(interval);
	}
}

/* What is 0 is not sent, so a kernel or a tier that lacks a value costs nothing. */
static void test_zeros_cost_nothing(void **state)
{
	struct interval *interval = interval_make(2, 1, 1);
	struct usage *u = &interval->entries[1].usage;
	struct parts with, without;

	(void)state;
	u->stall_cpu_ns = u->stall_mem_ns = u->swap_bytes = 300;
	u->pids = 300;
	encode(&with, interval, 0);
	u->stall_cpu_ns = u->stall_mem_ns = u->swap_bytes = 0;
	u->pids = 0;
	encode(&without, interval, 0);
	assert_int_equal(total_len(&with) - total_len(&without), 4 * 3);
	fini(&with);
	fini(&without);
	interval_free(interval);
}

static void test_too_big(void **state)
{
	struct interval *i = interval_make(2, 4000, 3);
	struct buf parts[BODY_PARTS_MAX] = {BUF_INIT};
	struct error error;

	(void)state;
	buf_add_str(&parts[0], "untouched");
	assert_int_equal(body_encode_interval(i, 1, parts, &error), -E2BIG);
	assert_string_equal(parts[0].data, "untouched");
	assert_non_null(strstr(error.text, "16000 entries"));
	buf_fini(&parts[0]);
	interval_free(i);
}

/* --- what must be refused --------------------------------------------------------------------- */

/* A good part of two entries, as the generated code holds it. */
struct model {
	Evenkeel__IntervalPart part;
	Evenkeel__Node node;
	Evenkeel__Usage node_usage, usage[2];
	Evenkeel__Moments cpu;
	Evenkeel__Gauge memory;
	Evenkeel__Histogram histogram;
	uint32_t index[2], count[2];
	Evenkeel__Entry entries[2], *entry_list[2];
	Evenkeel__Identity identity;
	uint8_t container_id[33];
	char text[600];
};

static void model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->part = (Evenkeel__IntervalPart)EVENKEEL__INTERVAL_PART__INIT;
	m->node = (Evenkeel__Node)EVENKEEL__NODE__INIT;
	m->node_usage = (Evenkeel__Usage)EVENKEEL__USAGE__INIT;
	m->cpu = (Evenkeel__Moments)EVENKEEL__MOMENTS__INIT;
	m->memory = (Evenkeel__Gauge)EVENKEEL__GAUGE__INIT;
	m->histogram = (Evenkeel__Histogram)EVENKEEL__HISTOGRAM__INIT;
	m->identity = (Evenkeel__Identity)EVENKEEL__IDENTITY__INIT;
	for (int i = 0; i < 2; i++) {
		m->usage[i] = (Evenkeel__Usage)EVENKEEL__USAGE__INIT;
		m->entries[i] = (Evenkeel__Entry)EVENKEEL__ENTRY__INIT;
		m->entries[i].ref = (uint32_t)i + 1;
		m->entries[i].usage = &m->usage[i];
		m->entry_list[i] = &m->entries[i];
		m->index[i] = (uint32_t)i + 5;
	}
	m->part.start_ns = NS_PER_SEC;
	m->part.end_ns = 2 * NS_PER_SEC;
	m->part.merged = 1;
	m->part.node = &m->node;
	m->part.n_entries = 2;
	m->part.entries = m->entry_list;
	m->node.usage = &m->node_usage;
	m->node_usage.cpu_milli = &m->cpu;
	m->node_usage.mem_bytes = &m->memory;
	m->node.memory = &m->histogram;
	m->histogram.n_index = m->histogram.n_count = 2;
	m->histogram.index = m->index;
	m->histogram.count = m->count;
	m->cpu.samples = 1;
	m->cpu.weight = 1;
	m->entries[1].identity = &m->identity;
	m->identity.parent = 1;
	m->identity.name = "kubepods/x";
	m->identity.container_id.data = m->container_id;
	memset(m->text, 'a', sizeof(m->text) - 1);
}

static int decode_model(const struct model *m, struct error *error)
{
	struct buf part = BUF_INIT;
	struct interval *i = NULL;
	int rc;

	buf_reserve(&part, evenkeel__interval_part__get_packed_size(&m->part));
	part.len = evenkeel__interval_part__pack(&m->part, (uint8_t *)part.data);
	rc = interval_decode(&part, 1, &i, error);
	assert_int_equal(rc == 0, i != NULL);
	interval_free(i);
	buf_fini(&part);
	return rc;
}

/* X(what is broken, part of the reason): each makes the good part impossible in one way. */
#define IMPOSSIBLE(X)                                                                              \
	X(m->part.node = NULL, "node: missing")                                                    \
	X(m->part.merged = 0, "merged")                                                            \
	X(m->part.merged = 1000000, "merged")                                                      \
	X(m->part.end_ns = m->part.start_ns, "from")                                               \
	X(m->part.end_ns = 0, "from")                                                              \
	X(m->part.start_ns = -1, "from")                                                           \
	X(m->part.start_ns = INT64_MIN, "from")                                                    \
	X(m->part.end_ns = INT64_MAX, "from")                                                      \
	X(m->part.end_ns += 3600 * NS_PER_SEC, "from")                                             \
	X(m->part.full = 1, "entry 1: without identity")                                           \
	X(m->entries[0].ref = 0, "entry 0: 0, twice")                                              \
	X(m->entries[0].ref = 2, "entry 2: 0, twice")                                              \
	X(m->entries[0].ref = 3, "entry 2: 0, twice")                                              \
	X(m->usage[1].seconds = -1, "entry 2: seconds")                                            \
	X(m->usage[1].seconds = NAN, "entry 2: seconds")                                           \
	X(m->node.tier = 4, "node: tier")                                                          \
	X(m->node.rate_hz = -1, "node: rate_hz")                                                   \
	X(m->node.cpu_capacity_milli = -1, "cpu_capacity_milli")                                   \
	X(m->node.mem_capacity_bytes = INT64_MAX, "mem_capacity_bytes")                            \
	X(m->node.pass_ns = UINT64_MAX, "pass_ns")                                                 \
	X(m->node.agent_cpu_ns = UINT64_MAX, "agent_cpu_ns")                                       \
	X((m->text[37] = '\0', m->node.boot_id = m->text), "node: boot_id: 37 bytes")              \
	X(m->index[1] = 180, "node: memory: bucket 180")                                           \
	X(m->index[1] = 5, "memory: bucket 5")                                                     \
	X(m->index[1] = 4, "memory: bucket 4")                                                     \
	X(m->histogram.n_index = 1, "1 indices, 2 counts")                                         \
	X(m->identity.kind = 4, "entry 2: kind")                                                   \
	X(m->identity.qos = 4, "entry 2: qos")                                                     \
	X(m->identity.runtime = 5, "entry 2: runtime")                                             \
	X(m->identity.parent = 2, "entry 2: parent")                                               \
	X(m->identity.name = "", "length of name cannot be 0")                                     \
	X((m->text[513] = '\0', m->identity.name = m->text), "length of name cannot be 513")       \
	X((m->text[37] = '\0', m->identity.pod_uid = m->text), "length of pod_uid")                \
	X(m->identity.container_id.len = 31, "length of container_id")                             \
	X(m->identity.container_id.len = 33, "length of container_id")                             \
	X(m->identity.limit_cpu_milli = -3, "limit_cpu_milli")                                     \
	X(m->identity.limit_mem_bytes = INT64_MIN, "limit_mem_bytes")                              \
	X(m->identity.limit_mem_high_bytes = -3, "entry 2: limit_mem_high_bytes")                  \
	X(m->identity.limit_swap_bytes = -3, "entry 2: limit_swap_bytes")                          \
	X(m->identity.limit_pids = -3, "entry 2: limit_pids")                                      \
	X(m->identity.cpu_burst_ns = -3, "entry 2: cpu_burst_ns")                                  \
	X(m->identity.cpu_burst_ns = -1, "entry 2: cpu_burst_ns")

static void expect_impossible(const struct model *m, const char *change, const char *wanted)
{
	struct error error = {""};
	int rc = decode_model(m, &error);

	if (rc != -EINVAL || !strstr(error.text, wanted))
		print_error("%s: %d, \"%s\"\n", change, rc, error.text);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(error.text, wanted));
}

static void test_impossible_values(void **state)
{
	struct model model, *m = &model;
	struct error error;

	(void)state;
	model_init(m);
	assert_int_equal(decode_model(m, &error), 0);
#define X(change, wanted)                                                                          \
	model_init(m);                                                                             \
	change;                                                                                    \
	expect_impossible(m, #change, wanted);
	IMPOSSIBLE(X)
#undef X
}

/* What was measured is for the usage state to judge: it arrives as it was told. */
static void test_measures_pass(void **state)
{
	struct model model, *m = &model;
	struct interval *i;
	struct buf part = BUF_INIT;

	(void)state;
	model_init(m);
	m->cpu.mean = NAN;
	m->cpu.weight = -1;
	m->memory.max = INFINITY;
	m->node_usage.stall_mem_ns = UINT64_MAX;
	m->node.mem_available_bytes = -1;
	m->node.cpu_user_ns = UINT64_MAX;
	buf_reserve(&part, evenkeel__interval_part__get_packed_size(&m->part));
	part.len = evenkeel__interval_part__pack(&m->part, (uint8_t *)part.data);
	assert_int_equal(interval_decode(&part, 1, &i, NULL), 0);
	assert_true(isnan(i->node.usage.cpu_milli.mean));
	assert_true(i->node.usage.cpu_milli.weight == -1);
	assert_true(isinf(i->node.usage.mem_bytes.max));
	assert_true(i->node.usage.stall_mem_ns == UINT64_MAX);
	assert_int_equal(i->node.mem_available_bytes, -1);
	assert_true(i->node.cpu_split.user_ns == UINT64_MAX);
	interval_free(i);
	buf_fini(&part);
}

/* Parts of two intervals, in the wrong order, missing, or not there at all. */
static void test_wrong_parts(void **state)
{
	struct interval *i = interval_make(2, 600, 3), *other = interval_make(3, 600, 3),
			*back = NULL;
	struct buf parts[BODY_PARTS_MAX];
	struct parts p, q;
	struct error error;

	(void)state;
	encode(&p, i, 0);
	encode(&q, other, 0);
	assert_int_equal(p.count, 2);
	parts[0] = p.bufs[1], parts[1] = p.bufs[0];
	assert_int_equal(interval_decode(parts, 2, &back, &error), -EINVAL);
	assert_non_null(strstr(error.text, "part 0: node: missing"));
	parts[0] = p.bufs[0], parts[1] = p.bufs[0];
	assert_int_equal(interval_decode(parts, 2, &back, &error), -EINVAL);
	assert_non_null(strstr(error.text, "part 1: node: only part 0"));
	parts[1] = q.bufs[1];
	assert_int_equal(interval_decode(parts, 2, &back, &error), -EINVAL);
	assert_non_null(strstr(error.text, "part 1: of another interval"));
	parts[1] = p.bufs[1], parts[2] = p.bufs[1];
	assert_int_equal(interval_decode(parts, 3, &back, &error), -EINVAL);
	assert_non_null(strstr(error.text, "part 2: entry"));
	assert_int_equal(interval_decode(parts, 0, &back, &error), -EINVAL);
	assert_null(back);
	fini(&p);
	fini(&q);
	interval_free(i);
	interval_free(other);
}

static void test_not_a_body(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int rc;
	} cases[] = {
		{"", 0, -EINVAL}, /* the empty message: no node section */
		{"hello, world", 12, -EBADMSG},
		{"\x2a\x7f", 2, -EBADMSG}, /* node of 127 bytes that are not there */
		{"\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, -EBADMSG},
		{"\x32\xff\xff\xff\x7f", 5, -EBADMSG},
		{"\x07", 1, -EBADMSG}, /* wire type 7 */
		{"\x08", 1, -EBADMSG}, /* value cut off */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, -EBADMSG},
	};
	struct interval *i = NULL;

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct buf part = {.data = (char *)cases[n].bytes, .len = cases[n].len};

		assert_int_equal(interval_decode(&part, 1, &i, NULL), cases[n].rc);
		assert_null(i);
	}
}

/* Entries of a few bytes each, one more than there may be. */
static void test_limits(void **state)
{
	struct buf part = BUF_INIT;
	struct interval *i = NULL;
	struct error error;

	(void)state;
	buf_add(&part, "\x08\x01\x10\x02\x18\x01\x2a\x00", 8);
	for (uint32_t ref = 1; ref <= 16385; ref++) {
		const uint8_t entry[] = {0x32,
					 0x04,
					 0x08,
					 0x80 | (ref & 0x7f),
					 0x80 | (ref >> 7 & 0x7f),
					 (uint8_t)(ref >> 14)};

		buf_add(&part, entry, sizeof(entry));
	}
	assert_int_equal(interval_decode(&part, 1, &i, &error), -E2BIG);
	assert_non_null(strstr(error.text, "more than 16384 entries"));
	assert_null(i);
	buf_fini(&part);
}

/*
 * Entries as any encoder may write them: fields in another order, twice, in more bytes than they
 * need, numbers unpacked; and what none may write.
 */
static void test_other_encoders(void **state)
{
#define HEAD	    "\x08\x01\x10\x02\x18\x01"
#define BYTES(text) (text), sizeof(text) - 1
	static const struct {
		const char *what, *bytes;
		size_t len;
		int rc;
		uint32_t ref, pids;
	} cases[] = {
		{"entries before the head", BYTES("\x32\x06\x12\x02\x78\x05\x08\x07\x2a\x00" HEAD),
		 0, 7, 5},
		{"usage in two halves",
		 BYTES(HEAD "\x2a\x00\x32\x0b\x08\x01\x12\x03\x78\x85\x01\x12\x02\x40"
			    "\x01"),
		 0, 1, 133},
		{"the last value counts",
		 BYTES(HEAD "\x2a\x00\x32\x08\x08\x01\x08\x02\x12\x02\x78\x01"), 0, 2, 1},
		{"a long number",
		 BYTES(HEAD "\x2a\x00\x32\x09\x08\x81\x80\x80\x00\x12\x02\x78\x01"), 0, 1, 1},
		{"beyond 32 bits",
		 BYTES(HEAD "\x2a\x00\x32\x0a\x08\x01\x12\x06\x78\x81\x80\x80\x80\x10"), 0, 1, 1},
		{"a long length", BYTES(HEAD "\x2a\x00\x32\x82\x00\x08\x01"), 0, 1, 0},
		{"numbers unpacked", BYTES(HEAD "\x2a\x06\x12\x04\x08\x03\x10\x04\x32\x02\x08\x01"),
		 0, 1, 0},
		{"181 numbers", NULL, 0, -EINVAL, 0, 0},
		{"field 0", BYTES(HEAD "\x2a\x00\x32\x04\x08\x01\x00\x01"), -EBADMSG, 0, 0},
		{"ref of four bytes", BYTES(HEAD "\x2a\x00\x32\x05\x0d\x01\x00\x00\x00"), -EBADMSG,
		 0, 0},
		{"ref of eight bytes", BYTES(HEAD "\x2a\x00\x32\x09\x09\x01\0\0\0\0\0\0\0"),
		 -EBADMSG, 0, 0},
		{"ref of a length", BYTES(HEAD "\x2a\x00\x32\x03\x0a\x01\x01"), -EBADMSG, 0, 0},
		{"a number as usage", BYTES(HEAD "\x2a\x00\x32\x04\x08\x01\x10\x01"), -EBADMSG, 0,
		 0},
		{"a number as float", BYTES(HEAD "\x2a\x00\x32\x06\x08\x01\x12\x02\x10\x01"),
		 -EBADMSG, 0, 0},
		{"a number of 11 bytes",
		 BYTES(HEAD "\x2a\x00\x32\x0c\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80"
			    "\x80\x00"),
		 -EBADMSG, 0, 0},
		{"moments beyond usage", BYTES(HEAD "\x2a\x00\x32\x07\x08\x01\x12\x03\x1a\x02\x08"),
		 -EBADMSG, 0, 0},
		{"a float cut short", BYTES(HEAD "\x2a\x00\x32\x07\x08\x01\x12\x03\x15\x00\x00"),
		 -EBADMSG, 0, 0},
		{"a group", BYTES(HEAD "\x2a\x00\x32\x04\x08\x01\x23\x24"), -EBADMSG, 0, 0},
	};
	struct buf many = BUF_INIT;

	(void)state;
	buf_add(&many, HEAD "\x2a\xbb\x01\x12\xb8\x01\x0a\xb5\x01", 15);
	for (int i = 0; i < 181; i++)
		buf_add(&many, "\x01", 1);
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct buf part = {.data = (char *)cases[n].bytes, .len = cases[n].len};
		struct interval *i = NULL;
		struct error error = {""};
		int rc = interval_decode(cases[n].bytes ? &part : &many, 1, &i, &error);

		if (rc != cases[n].rc)
			fail_msg("%s: %d, \"%s\"", cases[n].what, rc, error.text);
		if (!rc) {
			assert_int_equal(i->entry_count, 1);
			assert_int_equal(i->entries[0].ref, cases[n].ref);
			assert_int_equal(i->entries[0].usage.pids, cases[n].pids);
		}
		interval_free(i);
	}
	buf_fini(&many);
}

/* --- acks ------------------------------------------------------------------------------------- */

static void test_ack_round_trip(void **state)
{
	struct ack ack = {
		.status = ACK_REFUSED,
		.applied = 7,
		.durable = UINT64_MAX,
		.server_time_ns = -1,
		.interval_ms = 1000,
		.wait_ms = 60000,
		.resend_from = 3,
		.reason = "because",
	};
	struct ack back;
	struct buf out = BUF_INIT;

	(void)state;
	body_encode_ack(&ack, &out);
	assert_int_equal(body_decode_ack(out.data, out.len, &back, NULL), 0);
	assert_memory_equal(&ack, &back, sizeof(ack));
	memset(&ack, 0, sizeof(ack));
	buf_clear(&out);
	body_encode_ack(&ack, &out);
	assert_int_equal(body_decode_ack(out.data, out.len, &back, NULL), 0);
	assert_memory_equal(&ack, &back, sizeof(ack));
	buf_fini(&out);
}

static void test_ack_clamps(void **state)
{
	static const struct {
		uint32_t interval_ms, wait_ms, interval_wanted, wait_wanted;
	} cases[] = {
		{0, 0, 0, 0},
		{1, 1, 1000, 1},
		{999, 60000, 1000, 60000},
		{15000, 60001, 15000, 60000},
		{15001, UINT32_MAX, 15000, 60000},
		{UINT32_MAX, 5, 15000, 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ack ack = {.interval_ms = cases[i].interval_ms, .wait_ms = cases[i].wait_ms};
		struct buf out = BUF_INIT;

		body_encode_ack(&ack, &out);
		assert_int_equal(body_decode_ack(out.data, out.len, &ack, NULL), 0);
		assert_int_equal(ack.interval_ms, cases[i].interval_wanted);
		assert_int_equal(ack.wait_ms, cases[i].wait_wanted);
		buf_fini(&out);
	}
}

static void test_ack_refusals(void **state)
{
	struct ack ack = {.applied = 42};
	struct error error;
	char text[400] = "\x12\x88\x02two\nlines\x1b[0m";

	(void)state;
	assert_int_equal(body_decode_ack("\x08\x05", 2, &ack, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "status 5"));
	assert_int_equal(body_decode_ack("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &ack,
					 &error),
			 -EBADMSG);
	assert_int_equal(body_decode_ack("\x08", 1, &ack, &error), -EBADMSG);
	assert_int_equal(body_decode_ack("\x12\x7f", 2, &ack, &error), -EBADMSG);
	assert_int_equal(ack.applied, 42);
	/* 264 bytes of reason: cut, and fit for a log. */
	for (size_t i = 0; i < 264; i++) {
		if (text[3 + i] == '\0')
			text[3 + i] = 'x';
	}
	assert_int_equal(body_decode_ack(text, 3 + 264, &ack, &error), 0);
	assert_int_equal(strlen(ack.reason), sizeof(ack.reason) - 1);
	assert_memory_equal(ack.reason, "two lines [0mxxx", 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_unknown_measures_are_ignored),
		cmocka_unit_test(test_the_library_reads_the_same),
		cmocka_unit_test(test_one_interval_takes_many),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_zeros_cost_nothing),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(test_impossible_values),
		cmocka_unit_test(test_measures_pass),
		cmocka_unit_test(test_wrong_parts),
		cmocka_unit_test(test_not_a_body),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_other_encoders),
		cmocka_unit_test(test_ack_round_trip),
		cmocka_unit_test(test_ack_clamps),
		cmocka_unit_test(test_ack_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
