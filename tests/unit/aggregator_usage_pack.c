/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes to bytes and back: nothing is lost, the bytes are those that usage_pack.h and
 * window_node.c describe, and what was damaged or made up is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "tests/usage_fixture.h"

#define SEC 1000000000LL
#define T0  (1700000010LL * SEC)

static const uint8_t run[FRAME_RUN_LEN] = {0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* A node that was told `intervals` of them, 5 s each. */
static struct usage_node *told_node(size_t intervals)
{
	struct usage_node *n = usage_node_new("node-1", T0);

	for (size_t k = 1; k <= intervals; k++) {
		struct usage_fixture f = {
			.sequence = k,
			.end_ns = T0 + (int64_t)k * 5 * SEC,
			.seconds = 5,
			.pods = 1,
			.identities = k == 1,
			.seed = (uint32_t)k,
		};
		struct interval *i = usage_fixture_new(&f);

		i->node.tier = TIER_T2;
		i->node.missed_ticks = 7;
		i->node.overflow = 9;
		usage_node_apply(n, run, i, k, 10);
		interval_free(i);
		n->heard_ns = f.end_ns + 1;
		n->clock.correction_ns = -3600 * SEC;
	}
	return n;
}

static struct buf pack(const struct usage_node *n)
{
	struct buf b = BUF_INIT;

	usage_node_pack(n, &b);
	return b;
}

static struct usage_node *unpack(const struct buf *sealed)
{
	struct usage_node *n = NULL;
	struct error error = {""};

	if (usage_node_unpack("node-1", sealed->data, sealed->len, &n, &error))
		fail_msg("%s", error.text);
	return n;
}

static void nothing_is_lost(void **state)
{
	static const size_t lengths[] = {1, 2, 30, 183, 500};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct usage_node *n = told_node(lengths[i]), *back;
		struct buf first = pack(n), second;

		usage_pack_seal("node-1", &first);
		back = unpack(&first);
		usage_node_restore(back, T0, 77);
		assert_string_equal(back->name, "node-1");
		assert_true(usage_mark_is(&back->counted, run));
		assert_int_equal(back->counted.sequence, lengths[i]);
		assert_int_equal(back->heard_ns, n->heard_ns);
		assert_int_equal(back->clock.correction_ns, -3600 * SEC);
		assert_int_equal(back->good_ns, n->good_ns);
		assert_int_equal(back->head.aside_ns, 0);
		assert_int_equal(back->head.end_ns, n->head.end_ns);
		assert_int_equal(back->head.tier, TIER_T2);
		assert_int_equal(back->head.missed_ticks, 7);
		assert_int_equal(back->head.overflow, 9);
		assert_true(back->head.machine.known);
		assert_true(back->head.machine.user_milli == n->head.machine.user_milli);
		assert_int_equal(back->head.cpu_allocatable_milli, 16000);
		assert_false(back->has_run);
		second = pack(back);
		usage_pack_seal("node-1", &second);
		assert_int_equal(second.len, first.len);
		assert_memory_equal(second.data, first.data, first.len);
		buf_fini(&first);
		buf_fini(&second);
		usage_node_free(n);
		usage_node_free(back);
	}
}

static const struct latest_usage *latest_of(struct usage_node *n, struct stats_scratch *scratch)
{
	node_stats_drop(n->stats);
	n->stats = usage_node_stats(n, scratch);
	return &n->stats->usage.latest;
}

/* The newest interval in stats; measures that were not taken stay unknown. */
static void latest_values(void **state)
{
	static const uint32_t all =
		USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_SWAP | USAGE_PIDS;
	struct stats_scratch scratch = {0};

	(void)state;
	for (uint32_t bit = 0; bit <= USAGE_PIDS; bit = bit ? bit * 2 : 1) {
		struct usage_node *n = told_node(1), *back;
		const struct latest_usage *want, *got;
		struct buf b;

		n->node_usage.have = all & ~bit;
		b = pack(n);
		usage_pack_seal("node-1", &b);
		back = unpack(&b);
		usage_node_restore(back, T0, 1);
		want = latest_of(n, &scratch);
		got = latest_of(back, &scratch);
		assert_memory_equal(got, want, sizeof(*want));
		assert_int_equal(got->pids.known, bit != USAGE_PIDS);
		assert_int_equal(got->cpu_milli.known, bit != USAGE_CPU);
		buf_fini(&b);
		usage_node_free(n);
		usage_node_free(back);
	}
	stats_scratch_free_members(&scratch);
}

/* Where things lie in what told_node(1) is packed to. */
enum {
	AT_VERSION = 0,
	AT_RUN = 1,
	AT_SEQUENCE = 17,
	AT_END = 25,
	AT_HEARD = 33,
	AT_CORRECTION = 41,
	AT_GOOD = 49,
	AT_TIER = 57,
	AT_RATE = 58,
	AT_AGENT = 78,
	AT_USER = 87,
	AT_AVAILABLE = 119,
	AT_CPU = 127,
	AT_MEMORY = 135,
	AT_HAVE = 143,
	AT_LATEST = 147,
	AT_NEWEST = 171,
	AT_COUNT = 179,
	AT_BACK = 180,
	AT_BUCKET_HAVE = 181,
	AT_START = 183,
	AT_BUCKET_END = 191,
	AT_SECONDS = 199,
	AT_SAMPLES = 203,
	AT_WEIGHT = 207,
	AT_MEAN = 211,
	AT_M2 = 215,
	AT_THROTTLED = 275,
	AT_OOM = 287,
	AT_PRESSURE = 291,
	AT_BINS = 303,
	AT_WHICH = 305,
	AT_BIN_COUNT = 307,
	AT_WHICH_2 = 309,
};

static void bytes_as_described(void **state)
{
	struct usage_node *n = told_node(1);
	struct buf b = pack(n);
	const uint8_t *at = (const uint8_t *)b.data;
	int64_t end_ns = T0 + 5 * SEC;
	uint16_t bins;

	(void)state;
	assert_int_equal(at[AT_VERSION], 2);
	assert_memory_equal(at + AT_RUN, run, sizeof(run));
	assert_memory_equal(at + AT_SEQUENCE, "\1\0\0\0\0\0\0\0", 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(at[AT_END + i], (uint8_t)(end_ns >> (8 * i)));
	for (int i = 0; i < 8; i++)
		assert_int_equal(at[AT_CORRECTION + i],
				 (uint8_t)((uint64_t)(-3600 * SEC) >> (8 * i)));
	assert_memory_equal(at + AT_GOOD, at + AT_END, 8);
	assert_int_equal(at[AT_TIER], 2);
	assert_memory_equal(at + AT_RATE, "\0\0\x20\x41", 4); /* 10 Hz */
	assert_memory_equal(at + AT_RATE + 4, "\7\0\0\0\11\0\0\0", 8);
	assert_memory_equal(at + AT_CPU, "\x80\x3e\0\0\0\0\0\0", 8);
	assert_memory_equal(at + AT_HAVE, "\7\6\0\0", 4);
	for (int i = 0; i < 8; i++)
		assert_int_equal(at[AT_NEWEST + i], (uint8_t)(end_ns / (15 * SEC) >> (8 * i)));
	assert_int_equal(at[AT_COUNT], 1);
	assert_int_equal(at[AT_BACK], 0);
	assert_memory_equal(at + AT_BUCKET_HAVE, "\xbf\1", 2);
	assert_memory_equal(at + AT_SECONDS, "\0\0\xa0\x40", 4);
	assert_memory_equal(at + AT_SAMPLES, "\x32\0\0\0", 4);
	bins = (uint16_t)(at[AT_BINS] | at[AT_BINS + 1] << 8);
	assert_int_equal(b.len, AT_WHICH + 4 * bins);
	usage_pack_seal("node-1", &b);
	assert_int_equal(b.len, AT_WHICH + 4 * bins + USAGE_PACK_SUM_LEN);
	buf_fini(&b);
	usage_node_free(n);
}

static void made_up_content_is_refused(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		const char *bytes;
		size_t len;
		int want;
		const char *reason;
	} cases[] = {
		{"another version", AT_VERSION, "\1", 1, -EPROTO, "it is of version 1, this is 2"},
		{"no sequence", AT_SEQUENCE, "\0", 1, -EBADMSG, "machine"},
		{"an end before 1970", AT_END + 7, "\x80", 1, -EBADMSG, "machine"},
		{"heard before 1970", AT_HEARD + 7, "\x80", 1, -EBADMSG, "machine"},
		{"a correction of half a second", AT_CORRECTION + 3, "\1", 1, -EBADMSG, "machine"},
		{"one of 200 years", AT_CORRECTION, "\0\0\xc0\x34\xb7\x9a\xf5\x59", 8, -EBADMSG,
		 "machine"},
		{"good before 1970", AT_GOOD + 7, "\x80", 1, -EBADMSG, "machine"},
		{"no such tier", AT_TIER, "\4", 1, -EBADMSG, "machine"},
		{"a rate that is no number", AT_RATE, "\0\0\xc0\x7f", 4, -EBADMSG, "machine"},
		{"use without end", AT_AGENT, "\0\0\0\0\0\0\xf0\x7f", 8, -EBADMSG, "machine"},
		{"user time that is no number", AT_USER, "\0\0\0\0\0\0\xf8\x7f", 8, -EBADMSG,
		 "machine"},
		{"memory below nothing", AT_AVAILABLE + 7, "\xff", 1, -EBADMSG, "machine"},
		{"no CPU", AT_CPU, "\0\0", 2, -EBADMSG, "machine"},
		{"memory below nothing", AT_MEMORY + 7, "\xff", 1, -EBADMSG, "machine"},
		{"an unknown measure", AT_HAVE + 1, "\x08", 1, -EBADMSG, "machine"},
		{"latest that is no number", AT_LATEST, "\0\0\xc0\x7f", 4, -EBADMSG, "machine"},
		{"a bucket before 1970", AT_NEWEST + 7, "\x80", 1, -EBADMSG, "windows"},
		{"one after all time", AT_NEWEST + 7, "\x7f", 1, -EBADMSG, "windows"},
		{"more buckets than there are", AT_COUNT, "\2", 1, -EBADMSG, "windows"},
		{"fewer", AT_COUNT, "\0", 1, -EBADMSG, "bytes follow its end"},
		{"a bucket too far back", AT_BACK, "\75", 1, -EBADMSG, "windows"},
		{"one at another's place", AT_BACK, "\1", 1, -EBADMSG, "windows"},
		{"nothing measured", AT_BUCKET_HAVE, "\0\0", 2, -EBADMSG, "windows"},
		{"an unknown measure in it", AT_BUCKET_HAVE + 1, "\3", 1, -EBADMSG, "windows"},
		{"a start after the end", AT_START + 7, "\x7f", 1, -EBADMSG, "windows"},
		{"a start before 1970", AT_START + 7, "\x80", 1, -EBADMSG, "windows"},
		{"an end elsewhere", AT_BUCKET_END + 5, "\0", 1, -EBADMSG, "windows"},
		{"no time", AT_SECONDS + 3, "\xc0", 1, -EBADMSG, "windows"},
		{"no samples", AT_SAMPLES, "\0", 1, -EBADMSG, "windows"},
		{"no weight", AT_WEIGHT, "\0\0\0\0", 4, -EBADMSG, "windows"},
		{"a mean that is no number", AT_MEAN, "\0\0\xc0\x7f", 4, -EBADMSG, "windows"},
		{"a square below 0", AT_M2 + 3, "\xc8", 1, -EBADMSG, "windows"},
		{"throttled without end", AT_THROTTLED, "\0\0\x80\x7f", 4, -EBADMSG, "windows"},
		{"pressure below 0", AT_PRESSURE + 3, "\xbf", 1, -EBADMSG, "windows"},
		{"bins beyond the histograms", AT_BINS, "\x69\1", 2, -EBADMSG, "windows"},
		{"bins beyond the end", AT_BINS, "\x68\1", 2, -EBADMSG, "windows"},
		{"a bin beyond them", AT_WHICH, "\x68\1", 2, -EBADMSG, "windows"},
		{"an empty bin", AT_BIN_COUNT, "\0\0", 2, -EBADMSG, "windows"},
		{"bins out of order", AT_WHICH_2, "\0\0", 2, -EBADMSG, "windows"},
	};
	struct usage_node *n = told_node(1);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct usage_node *back = NULL;
		struct buf b = pack(n);
		struct error error = {""};
		int rc;

		assert_memory_not_equal(b.data + cases[i].at, cases[i].bytes, cases[i].len);
		memcpy(b.data + cases[i].at, cases[i].bytes, cases[i].len);
		usage_pack_seal("node-1", &b);
		rc = usage_node_unpack("node-1", b.data, b.len, &back, &error);
		if (rc != cases[i].want || !strstr(error.text, cases[i].reason) || back)
			fail_msg("%s: %d, \"%s\"", cases[i].what, rc, error.text);
		buf_fini(&b);
	}
	usage_node_free(n);
}

static void expect_refused(const char *name, const void *data, size_t len, const char *reason)
{
	struct usage_node *n = NULL;
	struct error error = {""};

	assert_int_equal(usage_node_unpack(name, data, len, &n, &error), -EBADMSG);
	if (!strstr(error.text, reason))
		fail_msg("\"%s\", not \"%s\"", error.text, reason);
	assert_null(n);
}

/* The sum finds every damage, and a row under another name. */
static void damage_is_found(void **state)
{
	struct usage_node *n = told_node(4);
	struct buf b = pack(n);

	(void)state;
	usage_pack_seal("node-1", &b);
	for (size_t len = 0; len <= USAGE_PACK_SUM_LEN; len++)
		expect_refused("node-1", b.data, len, "it has but");
	for (size_t len = USAGE_PACK_SUM_LEN + 1; len < b.len; len++)
		expect_refused("node-1", b.data, len, "checksum");
	for (size_t at = 0; at < b.len; at++) {
		b.data[at] ^= (char)(1 << at % 8);
		expect_refused("node-1", b.data, b.len, "checksum");
		b.data[at] ^= (char)(1 << at % 8);
	}
	expect_refused("node-2", b.data, b.len, "checksum");
	expect_refused("node/1", b.data, b.len, "no node has such a name");
	expect_refused("", b.data, b.len, "no node has such a name");
	buf_add_char(&b, '\0');
	expect_refused("node-1", b.data, b.len, "checksum");
	buf_fini(&b);
	usage_node_free(n);
}

/* Cut anywhere and sealed anew. */
static void truncation_is_refused(void **state)
{
	struct usage_node *n = told_node(4);
	struct buf whole = pack(n);

	(void)state;
	for (size_t len = 0; len < whole.len; len++) {
		struct buf b = BUF_INIT;

		buf_add(&b, whole.data, len);
		usage_pack_seal("node-1", &b);
		if (len)
			expect_refused("node-1", b.data, b.len, "cannot be");
		else
			expect_refused("node-1", b.data, b.len, "it has but");
		buf_fini(&b);
	}
	buf_fini(&whole);
	usage_node_free(n);
}

/* A row that names a bucket, or a bin of its histograms, twice. */
static void repetition_is_refused(void **state)
{
	struct usage_node *n = told_node(1);
	struct buf bucket = pack(n), bin = pack(n);

	(void)state;
	bucket.data[AT_COUNT] = 2;
	buf_add(&bucket, bin.data + AT_BACK, bin.len - AT_BACK);
	usage_pack_seal("node-1", &bucket);
	expect_refused("node-1", bucket.data, bucket.len, "windows");
	memcpy(bin.data + AT_WHICH_2, bin.data + AT_WHICH, 2);
	usage_pack_seal("node-1", &bin);
	expect_refused("node-1", bin.data, bin.len, "windows");
	buf_fini(&bucket);
	buf_fini(&bin);
	usage_node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(latest_values),
		cmocka_unit_test(bytes_as_described),
		cmocka_unit_test(made_up_content_is_refused),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(truncation_is_refused),
		cmocka_unit_test(repetition_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
