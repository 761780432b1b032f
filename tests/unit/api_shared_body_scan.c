/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shared/body_scan.h"

#define BYTES(...) .bytes = {__VA_ARGS__}, .len = sizeof((uint8_t[]){__VA_ARGS__})

struct input {
	const char *what;
	uint8_t bytes[80];
	size_t len;
};

/* In memory that ends where it does, so that a sanitizer sees a byte too much. */
static struct body_bytes copy_of(const struct input *in)
{
	uint8_t *bytes = test_malloc(in->len + 1);

	memcpy(bytes + 1, in->bytes, in->len);
	return (struct body_bytes){bytes + 1, bytes + 1 + in->len};
}

static void drop(const uint8_t *begin)
{
	test_free((uint8_t *)begin - 1);
}

static void an_entry_is_read(void **state)
{
	static const struct input whole = {BYTES(
		0x32, 0x43, 0x08, 0xac, 0x02, 0x12, 0x3a, /* ref 300, usage */
		0x08, 0xff, 0x0f, 0x15, 0, 0, 0xa0, 0x40, /* have, 5 seconds */
		0x1a, 0x0c, 0x08, 0x32, 0x15, 0, 0, 0x80, 0x3f, 0x3d, 0, 0, 0x00, 0xc0, /* CPU */
		0x22, 0x0f, 0x0d, 0, 0, 0x80, 0x3f, 0x15, 0, 0, 0, 0x40, 0x1d, 0, 0, 0x40, 0x40,
		0x2a, 0x00, /* an empty gauge */
		0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* 2^64 - 1 */
		0x38, 0x01, 0x40, 0x02, 0x48, 0x03, /* periods, oom */
		0x1a, 0x02, 0x08, 0x01)};
	struct body_bytes b = copy_of(&whole);
	const uint8_t *begin = b.at;
	struct body_entry e;

	(void)state;
	assert_true(body_scan_entry(&b, &e));
	assert_ptr_equal(b.at, b.end);
	assert_int_equal(e.ref, 300);
	assert_int_equal(e.usage.have, 0x7ff);
	assert_float_equal(e.usage.seconds, 5, 0);
	assert_int_equal(e.usage.cpu_milli.samples, 50);
	assert_float_equal(e.usage.cpu_milli.weight, 1, 0);
	assert_float_equal(e.usage.cpu_milli.last, -2, 0);
	assert_float_equal(e.usage.mem_bytes.mean, 1, 0);
	assert_float_equal(e.usage.mem_bytes.max, 2, 0);
	assert_float_equal(e.usage.mem_bytes.last, 3, 0);
	assert_true(e.usage.throttled_ns == UINT64_MAX);
	assert_int_equal(e.usage.throttled_periods, 1);
	assert_int_equal(e.usage.periods, 2);
	assert_int_equal(e.usage.oom_kills, 3);
	assert_true(e.has_identity);
	assert_int_equal(e.identity.end - e.identity.at, 2);
	drop(begin);
}

/* What a reader may see otherwise, or sees otherwise, is the library's to read. */
static void other_entries_are_left(void **state)
{
	static const struct input cases[] = {
		{"nothing", BYTES(0x32)},
		{"another field of the part", BYTES(0x2a, 0x02, 0x08, 0x01)},
		{"a length beyond the end", BYTES(0x32, 0x03, 0x08, 0x01)},
		{"a length without end", BYTES(0x32, 0x80)},
		{"a length of five bytes", BYTES(0x32, 0x82, 0x80, 0x80, 0x80, 0x00, 0x08, 0x01)},
		{"ref twice", BYTES(0x32, 0x04, 0x08, 0x01, 0x08, 0x02)},
		{"usage before ref", BYTES(0x32, 0x04, 0x12, 0x00, 0x08, 0x01)},
		{"an unknown field", BYTES(0x32, 0x04, 0x08, 0x01, 0x20, 0x01)},
		{"field 0", BYTES(0x32, 0x02, 0x00, 0x01)},
		{"ref of four bytes", BYTES(0x32, 0x05, 0x0d, 0x01, 0x00, 0x00, 0x00)},
		{"ref beyond 32 bits", BYTES(0x32, 0x06, 0x08, 0x80, 0x80, 0x80, 0x80, 0x10)},
		{"a number cut short", BYTES(0x32, 0x02, 0x08, 0x80)},
		{"a float cut short", BYTES(0x32, 0x05, 0x12, 0x03, 0x15, 0x00, 0x00)},
		{"a number beyond 64 bits", BYTES(0x32, 0x0d, 0x12, 0x0b, 0x30, 0x80, 0x80, 0x80,
						  0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02)},
		{"a number of 11 bytes", BYTES(0x32, 0x0e, 0x12, 0x0c, 0x30, 0x80, 0x80, 0x80, 0x80,
					       0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)},
		{"a gauge's unknown field", BYTES(0x32, 0x06, 0x12, 0x04, 0x22, 0x02, 0x20, 0x01)},
		{"moments beyond their usage", BYTES(0x32, 0x05, 0x12, 0x03, 0x1a, 0x02, 0x08)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct body_bytes b = copy_of(&cases[i]);
		const uint8_t *begin = b.at;
		struct body_entry e;

		if (body_scan_entry(&b, &e))
			fail_msg("%s: read", cases[i].what);
		drop(begin);
	}
}

static void a_part_is_split(void **state)
{
	static const struct {
		struct input part;
		bool split;
		size_t head, count;
	} cases[] = {
		{{"head and entries", BYTES(0x08, 0x01, 0x10, 0x02, 0x18, 0x01, 0x20, 0x01, 0x2a,
					    0x01, 0x00, 0x32, 0x00, 0x32, 0x01, 0x08)},
		 true,
		 11,
		 2},
		{{"no entries", BYTES(0x08, 0x01)}, true, 2, 0},
		{{"no head", BYTES(0x32, 0x00)}, true, 0, 1},
		{{"nothing", {0}, 0}, false, 0, 0},
		{{"head behind entries", BYTES(0x32, 0x00, 0x08, 0x01)}, false, 0, 0},
		{{"start twice", BYTES(0x08, 0x01, 0x08, 0x01)}, false, 0, 0},
		{{"an unknown field", BYTES(0x08, 0x01, 0x78, 0x00)}, false, 0, 0},
		{{"an unknown field behind", BYTES(0x32, 0x00, 0x78, 0x00)}, false, 0, 0},
		{{"a node cut short", BYTES(0x2a, 0x02, 0x00)}, false, 0, 0},
		{{"an entry cut short", BYTES(0x32, 0x02, 0x00)}, false, 0, 0},
		{{"a start of eight bytes", BYTES(0x09, 0, 0, 0, 0, 0, 0, 0, 0)}, false, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct input *in = &cases[i].part;
		struct body_bytes head, entries;
		size_t count;
		bool split = body_scan_part(in->bytes, in->len, &head, &entries, &count);

		if (split != cases[i].split)
			fail_msg("%s", in->what);
		if (!split)
			continue;
		assert_ptr_equal(head.at, in->bytes);
		assert_int_equal(head.end - head.at, cases[i].head);
		assert_ptr_equal(entries.at, head.end);
		assert_ptr_equal(entries.end, in->bytes + in->len);
		assert_int_equal(count, cases[i].count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_is_read),
		cmocka_unit_test(other_entries_are_left),
		cmocka_unit_test(a_part_is_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
