/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of a record: what is read of one is what was written, and what cannot be is refused; a
 * replay of some; and what a recorder writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "aggregator/cli/replay.h"
#include "aggregator/engine_recorder.h"
#include "aggregator/state/join.h"
#include "aggregator/state/record.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/interval.h"
#include "tests/model_fixture.h"
#include "tests/process.h"

#define END_NS (1700000005 * NS_PER_SEC) /* of intervals */

static void refused(struct record_interval *i, const struct buf *entry)
{
	struct error error;

	assert_int_equal(record_interval_read(i, entry->data + RECORD_HEAD,
					      entry->len - RECORD_HEAD, &error),
			 -EBADMSG);
}

/* As an agent sends it; returns where the entry begins. */
static size_t record(struct buf *out, const struct record_interval *i)
{
	struct buf parts[BODY_PARTS_MAX];
	struct error error;
	int count = body_encode_interval(i->interval, i->interval->full, parts, &error);
	size_t begun = out->len + RECORD_HEAD;

	assert_true(count > 0);
	record_interval(out, i, parts, (size_t)count);
	for (int p = 0; p < count; p++)
		buf_fini(&parts[p]);
	return begun;
}

/* Without the checksum. */
static size_t record_data(struct buf *out, const struct record_interval *i)
{
	size_t begun = record(out, i);

	out->len -= RECORD_TAIL;
	return begun;
}

static void test_intervals(void **unused)
{
	char name[NODE_NAME_MAX + 2] = "";
	struct interval *made = interval_make(3, 4, 2);
	struct record_interval i = {.verdict = USAGE_NEED_FULL,
				    .now_ns = 77,
				    .run = {1, 2},
				    .nonce = {3},
				    .node = "node-a",
				    .interval = made},
			       read = {.interval = interval_new(0)};
	struct buf out = BUF_INIT, again = BUF_INIT;
	struct error error;
	size_t begun;

	(void)unused;
	made->full = true;
	made->age_ns = 5;
	made->wait_ns = 6;
	begun = record_data(&out, &i);
	assert_int_equal(record_interval_read(&read, out.data + begun, out.len - begun, &error), 0);
	assert_int_equal(read.verdict, USAGE_NEED_FULL);
	assert_string_equal(read.node, "node-a");
	assert_int_equal(read.interval->sequence, 3);
	assert_int_equal(read.interval->entry_count, made->entry_count);
	record_data(&again, &read);
	assert_int_equal(again.len, out.len);
	assert_memory_equal(again.data, out.data, out.len);
	/* Cut anywhere, or longer. */
	for (size_t len = 0; len < out.len - RECORD_HEAD; len++)
		assert_int_equal(record_interval_read(&read, out.data + RECORD_HEAD, len, &error),
				 -EBADMSG);
	buf_add(&out, "\0", 2);
	refused(&read, &out);
	/* Too many parts, each empty; then a damaged part, no sequence, a verdict that is none. */
	for (int n = 0; n < 4 * BODY_PARTS_MAX; n++)
		buf_add_char(&out, '\0');
	refused(&read, &out);
	for (int n = 0; n < 8; n++)
		again.data[RECORD_HEAD + 49 + n] = '\0';
	refused(&read, &again);
	again.data[RECORD_HEAD + 49] = 3;
	again.data[RECORD_HEAD] = USAGE_REFUSED + 1;
	refused(&read, &again);
	again.data[RECORD_HEAD] = USAGE_APPLIED;
	memset(again.data + again.len - 4, 0xff, 4);
	refused(&read, &again);
	/* A name that is too long. */
	memset(name, 'n', sizeof(name) - 1);
	i.node = name;
	buf_clear(&out);
	record_data(&out, &i);
	refused(&read, &out);
	interval_free(made);
	interval_free(read.interval);
	buf_fini(&out);
	buf_fini(&again);
}

/* Makes each change in the buffer. */
static void apply(struct model *m, const struct buf *changes, size_t *removals)
{
	struct error error = {""};
	size_t at = 0;

	*removals = 0;
	while (at < changes->len) {
		const uint8_t *head = (const uint8_t *)changes->data + at;
		size_t len = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16;

		*removals += head[0] == RECORD_REMOVED;
		if (record_change_apply(m, (enum record_type)head[0],
					changes->data + at + RECORD_HEAD, len, &error))
			fail_msg("%s", error.text);
		at += RECORD_HEAD + len + RECORD_TAIL;
	}
	assert_int_equal(at, changes->len);
}

static void same(struct model *a, struct model *b)
{
	struct cluster *x = model_cluster(a), *y = model_cluster(b);
	struct buf left = BUF_INIT, right = BUF_INIT;

	record_changes(&left, NULL, x);
	record_changes(&right, NULL, y);
	assert_int_equal(left.len, right.len);
	assert_memory_equal(left.data, right.data, left.len);
	buf_fini(&left);
	buf_fini(&right);
	cluster_drop(x);
	cluster_drop(y);
}

static struct object *pod(const char *name, const char *node, const char *cpu)
{
	return model_fixture_pod(
		&(struct model_fixture_pod){.name = name, .node = node, .cpu = cpu});
}

static void test_changes(void **unused)
{
	struct model *live = model_new(), *told = model_new();
	struct cluster *before, *after;
	struct buf out = BUF_INIT;
	size_t removals;

	(void)unused;
	model_put(live, model_fixture_node("a", 4, 8));
	model_put(live, model_fixture_node("b", 4, 8));
	model_put(live, pod("bound", NULL, "1"));
	model_put(live, pod("moved", "a", "1"));
	model_put(live, pod("gone", "a", "1"));
	model_put(live, pod("changed", "b", "1"));
	model_put(live, pod("same", "b", "1"));
	model_put(live, model_fixture_node("z", 4, 8));
	model_put(live, pod("last", "z", "1"));
	model_put(live, model_fixture_workload(OBJECT_REPLICA_SET, "default", "web-1", "Deployment",
					       "web"));
	before = model_cluster(live);
	record_changes(&out, NULL, before);
	apply(told, &out, &removals);
	assert_int_equal(removals, 0);
	same(live, told);

	model_put(live, pod("bound", "b", "1"));
	model_put(live, pod("moved", "b", "1"));
	assert_int_equal(model_remove(live, OBJECT_POD, "default", "gone"), 0);
	model_put(live, pod("changed", "b", "2"));
	model_put(live, pod("new", "c", "1"));
	assert_int_equal(model_remove(live, OBJECT_REPLICA_SET, "default", "web-1"), 0);
	assert_int_equal(model_remove(live, OBJECT_NODE, "", "z"), 0);
	assert_int_equal(model_remove(live, OBJECT_POD, "default", "last"), 0);
	after = model_cluster(live);
	buf_clear(&out);
	record_changes(&out, before, after);
	apply(told, &out, &removals);
	/* bound and moved are removed where they were, and put. */
	assert_int_equal(removals, 6);
	same(live, told);

	buf_clear(&out);
	record_changes(&out, after, after);
	assert_int_equal(out.len, 0);
	cluster_drop(before);
	cluster_drop(after);
	model_free(live);
	model_free(told);
	buf_fini(&out);
}

static void test_changes_that_cannot_be(void **unused)
{
	static const struct {
		enum record_type type;
		const char *data;
		size_t len;
		const char *says;
	} rows[] = {
		{RECORD_OBJECT, "{", 1, "of no known kind"},
		{RECORD_OBJECT, "{\"apiVersion\":\"v1\"}", 19, "of no known kind"},
		{RECORD_OBJECT, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}", 36,
		 "of no known kind"},
		{RECORD_OBJECT, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", 33, "metadata"},
		{RECORD_REMOVED, "pods\0a", 6, "has no name"},
		{RECORD_REMOVED, "pods\0a\0b\0", 9, "is not there"},
		{RECORD_REMOVED, "secrets\0a\0b\0", 12, "is not there"},
	};
	struct model *m = model_new();

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error error = {""};

		assert_true(record_change_apply(m, rows[i].type, rows[i].data, rows[i].len,
						&error) < 0);
		if (!strstr(error.text, rows[i].says))
			fail_msg("row %zu: \"%s\"", i, error.text);
	}
	model_free(m);
}

static void add_interval(struct buf *out, const char *node, int64_t now_ns)
{
	struct interval *made = interval_make(1, 1, 1);
	struct record_interval i = {USAGE_APPLIED, now_ns, .node = node, .interval = made};

	made->full = true;
	snprintf((char *)i.run, sizeof(i.run), "%s", node);
	snprintf((char *)i.nonce, sizeof(i.nonce), "%s", node);
	record(out, &i);
	interval_free(made);
}

static void add_view(struct buf *out, int64_t at_ns)
{
	record_number(out, RECORD_BUILT, 1, 4);
	record_number(out, RECORD_GATHERED, (uint64_t)at_ns, 8);
	record_number(out, RECORD_VIEW, (uint64_t)at_ns, 8);
}

/* Writes a segment in the directory, and empties the buffer. */
static void write_segment(const char *dir, int64_t start_ns, struct buf *content)
{
	char *path = mem_printf("%s/" RECORD_PREFIX "%019" PRId64 RECORD_SUFFIX, dir, start_ns);
	FILE *f = fopen(path, "we");
	bool written;

	assert_non_null(f);
	written = fwrite(content->data, content->len, 1, f) == 1;
	assert_int_equal(fclose(f), 0);
	assert_true(written);
	buf_clear(content);
	free(path);
}

static void remove_record(const char *dir)
{
	struct record_segments found;
	struct error error;

	assert_int_equal(record_segments_find(&found, dir, &error), 0);
	for (size_t i = 0; i < found.count; i++)
		unlink(found.paths[i]);
	record_segments_fini(&found);
	assert_int_equal(rmdir(dir), 0);
}

/* The nodes of the view at that time; or its negative error, with the reason. */
static int nodes_at(struct replay *r, int64_t at_ns, struct error *error)
{
	struct offline_moment m;
	int rc = replay_go(r, at_ns, error);

	if (rc)
		return rc;
	replay_take(r, at_ns, &m);
	rc = (int)m.view->node_count;
	offline_moment_fini(&m);
	return rc;
}

/* before_ns: the segment that it goes on from; 0: none. */
static void begin_segment(struct buf *out, int64_t before_ns)
{
	size_t begun = record_begin(out, RECORD_BEGIN);

	buf_add_char(out, RECORD_VERSION);
	buf_add(out, &before_ns, sizeof(before_ns));
	record_end(out, begun);
	record_end(out, record_begin(out, RECORD_BASE_END));
}

/* The stats of the second node were built after the first view. */
static void test_a_view_has_what_was_built(void **unused)
{
	char dir[] = "/tmp/evenkeel-record-XXXXXX";
	struct buf out = BUF_INIT;
	struct replay *r;
	struct error error = {""};

	(void)unused;
	begin_segment(&out, 0);
	add_interval(&out, "a", END_NS);
	add_interval(&out, "b", END_NS);
	add_view(&out, END_NS);
	add_view(&out, END_NS + NS_PER_SEC);
	assert_non_null(mkdtemp(dir));
	write_segment(dir, END_NS, &out);
	assert_int_equal(replay_open(&r, dir, &error), 0);
	assert_int_equal(nodes_at(r, END_NS, &error), 1);
	assert_int_equal(nodes_at(r, END_NS + NS_PER_SEC, &error), 2);
	replay_close(r);
	remove_record(dir);
	buf_fini(&out);
}

/*
 * Three segments of a minute. What the first told holds in the second only if nothing between is
 * damaged or missing.
 */
static void test_damage_is_a_gap(void **unused)
{
	static const struct {
		const char *what;
		enum { WHOLE, NO_ENTRY, BEHIND_VIEWS, FLIPPED, BAD_ENTRY, CUT, MISSING } second;
		int at_second, at_third; /* nodes, or the error */
		uint64_t gaps, damaged;
		const char *says;
	} rows[] = {
		{"whole", WHOLE, 2, 3, 0, 0, ""},
		{"damaged", NO_ENTRY, -ERANGE, 1, 1, 1, "this is no entry"},
		{"damaged behind its views", BEHIND_VIEWS, 2, 1, 1, 1, "this is no entry"},
		{"one bit of a time", FLIPPED, -ERANGE, 1, 1, 1, "its checksum is wrong"},
		{"an interval that cannot be", BAD_ENTRY, -ERANGE, 1, 0, 0, ""},
		{"cut behind its views", CUT, 2, 1, 1, 0, ""},
		{"missing", MISSING, -ERANGE, 1, 1, 0, ""},
	};
	const int64_t second_ns = END_NS + 60 * NS_PER_SEC, third_ns = END_NS + 120 * NS_PER_SEC;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char dir[] = "/tmp/evenkeel-record-XXXXXX";
		struct buf out = BUF_INIT;
		struct replay_extent x;
		struct replay *r;
		struct error error = {""};
		size_t begun;

		assert_non_null(mkdtemp(dir));
		begin_segment(&out, 0);
		add_interval(&out, "a", END_NS);
		add_view(&out, END_NS);
		add_view(&out, END_NS + 50 * NS_PER_SEC);
		write_segment(dir, END_NS, &out);
		begin_segment(&out, END_NS);
		begun = out.len + RECORD_HEAD;
		if (rows[i].second == NO_ENTRY)
			buf_add_str(&out, "damage");
		if (rows[i].second == BAD_ENTRY)
			record_number(&out, RECORD_INTERVAL, 1, 1);
		add_interval(&out, "b", second_ns);
		if (rows[i].second == FLIPPED)
			out.data[begun + 2] ^= 1;
		add_view(&out, second_ns);
		add_view(&out, second_ns + 50 * NS_PER_SEC);
		if (rows[i].second == BEHIND_VIEWS)
			buf_add_str(&out, "damage");
		if (rows[i].second == CUT) {
			record_number(&out, RECORD_BUILT, 1, 4);
			out.len--;
		}
		if (rows[i].second == MISSING)
			buf_clear(&out);
		else
			write_segment(dir, second_ns, &out);
		begin_segment(&out, second_ns);
		add_interval(&out, "c", third_ns);
		add_view(&out, third_ns);
		write_segment(dir, third_ns, &out);

		assert_int_equal(replay_measure(dir, &x, &error), 0);
		assert_int_equal(replay_open(&r, dir, &error), 0);
		assert_int_equal(nodes_at(r, END_NS, &error), 1);
		if (nodes_at(r, second_ns + 50 * NS_PER_SEC, &error) != rows[i].at_second ||
		    nodes_at(r, third_ns, &error) != rows[i].at_third || x.gaps != rows[i].gaps ||
		    x.damaged != rows[i].damaged || !strstr(x.damage.text, rows[i].says))
			fail_msg("%s: %s, gaps %d, damaged %d", rows[i].what, error.text,
				 (int)x.gaps, (int)x.damaged);
		replay_close(r);
		remove_record(dir);
		buf_fini(&out);
	}
}

/* Entries of version 1 have no checksums. */
static void test_older_version(void **unused)
{
	char dir[] = "/tmp/evenkeel-record-XXXXXX";
	struct buf out = BUF_INIT;
	struct replay_extent x;
	struct error error;

	(void)unused;
	assert_non_null(mkdtemp(dir));
	buf_add(&out, "\1\2\0\0\0\1\0\5\2\0\0\0{}", 14);
	write_segment(dir, END_NS, &out);
	assert_int_equal(replay_measure(dir, &x, &error), -EPROTO);
	assert_non_null(strstr(error.text, "has version 1; this evenkeel reads version 2"));
	remove_record(dir);
	buf_fini(&out);
}

/* Only files whose names are those of segments, oldest first; the directory's name is no pattern. */
static void test_segments(void **unused)
{
	static const char *const names[] = {
		RECORD_PREFIX "1700000000000000002" RECORD_SUFFIX,
		RECORD_PREFIX "1700000000000000001" RECORD_SUFFIX,
		RECORD_PREFIX "170000000000000000" RECORD_SUFFIX,
		RECORD_PREFIX "1700000000000000001.old" RECORD_SUFFIX,
	};
	char parent[] = "/tmp/evenkeel-record-XXXXXX", *dir;
	struct record_segments found;
	struct error error;
	char *path[4];

	(void)unused;
	assert_non_null(mkdtemp(parent));
	dir = mem_printf("%s/R[1]", parent);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(record_segments_find(&found, dir, &error), 0);
	assert_int_equal(found.count, 0);
	record_segments_fini(&found);
	for (int i = 0; i < 4; i++) {
		path[i] = mem_printf("%s/%s", dir, names[i]);
		close(creat(path[i], 0600));
	}
	assert_int_equal(record_segments_find(&found, dir, &error), 0);
	assert_int_equal(found.count, 2);
	assert_string_equal(found.paths[0], path[1]);
	assert_int_equal(found.start_ns[0], 1700000000000000001);
	assert_int_equal(found.start_ns[1], 1700000000000000002);
	record_segments_fini(&found);
	for (int i = 0; i < 4; i++) {
		remove(path[i]);
		free(path[i]);
	}
	remove(dir);
	remove(parent);
	assert_int_equal(record_segments_find(&found, dir, &error), -ENOENT);
	free(dir);
}

/* --- the recorder ----------------------------------------------------------------------------- */

#define T0 1700000000000000000LL

struct recording {
	char dir[32];
	struct record_counters counters;
	struct model *model;
	struct join *join;
	struct recorder *recorder;
};

static void publish(struct recording *r, int seconds)
{
	struct view *v = join_view(r->join, NULL, 0, model_cluster(r->model), T0);

	recorder_gathered(r->recorder);
	recorder_published(r->recorder, v, T0 + seconds * NS_PER_SEC);
	view_drop(v);
}

/* Entries of that type in the segment that starts so late. */
static int count_entries(const struct recording *r, int seconds, enum record_type type)
{
	char *path = mem_printf("%s/" RECORD_PREFIX "%019lld" RECORD_SUFFIX, r->dir,
				T0 + seconds * NS_PER_SEC);
	uint8_t head[RECORD_HEAD];
	gzFile file = gzopen(path, "rb");
	int count = 0;

	assert_non_null(file);
	while (gzread(file, head, RECORD_HEAD) == RECORD_HEAD) {
		count += head[0] == type;
		gzseek(file, RECORD_TAIL + (head[1] | head[2] << 8 | head[3] << 16), SEEK_CUR);
	}
	gzclose(file);
	free(path);
	return count;
}

static bool has_failed(void *ctx)
{
	return counter_get(&((struct recording *)ctx)->counters.alarm);
}

static bool has_recovered(void *ctx)
{
	return !has_failed(ctx);
}

/* A segment a minute; one is a minute old at the end. Then the folder is away for a while. */
static void test_recorder(void **unused)
{
	struct recording r = {.dir = "/tmp/evenkeel-record-XXXXXX",
			      .model = model_new(),
			      .join = join_new()};
	struct plan_slot *plans = plan_slot_new();
	struct reservations *reservations = reservations_new();
	struct interval *made = interval_make(3, 4, 2);
	const struct frame_header header = {.node = "node-a"};
	struct buf bodies[BODY_PARTS_MAX];
	const struct ingest_interval told = {&header, 1, bodies, 1, made, T0};
	struct record_segments found;
	struct recorder_config config = {r.dir, 60 * NS_PER_SEC, 1 << 20,
					 plans, reservations,	 &r.counters};
	struct error error;

	(void)unused;
	made->full = true;
	assert_non_null(mkdtemp(r.dir));
	assert_int_equal(recorder_open(&r.recorder, &config, &error), 0);
	model_put(r.model, model_fixture_node("a", 4, 8));
	publish(&r, 0);
	assert_int_equal(body_encode_interval(made, true, bodies, &error), 1);
	for (int verdict = 0; verdict <= USAGE_REFUSED; verdict++)
		recorder_interval(r.recorder, &told, (enum usage_verdict)verdict);
	buf_fini(bodies);
	publish(&r, 61);
	recorder_planned(r.recorder, T0 + 62 * NS_PER_SEC);
	publish(&r, 63);
	publish(&r, 122);
	recorder_close(r.recorder);
	assert_int_equal(record_segments_find(&found, r.dir, &error), 0);
	assert_int_equal(found.count, 2);
	record_segments_fini(&found);
	assert_int_equal(count_entries(&r, 61, RECORD_OBJECT), 1);
	assert_int_equal(count_entries(&r, 61, RECORD_INTERVAL), 2);
	assert_int_equal(count_entries(&r, 61, RECORD_VIEW), 2);
	assert_int_equal(count_entries(&r, 61, RECORD_STANDS), 1);

	assert_int_equal(recorder_open(&r.recorder, &config, &error), 0);
	remove_record(r.dir);
	publish(&r, 100);
	assert_true(await(has_failed, &r, 20));
	assert_int_equal(counter_get(&r.counters.failures), 1);
	assert_int_equal(mkdir(r.dir, 0700), 0);
	/* Not before ten seconds, and not with a plan. */
	publish(&r, 109);
	recorder_planned(r.recorder, T0 + 110 * NS_PER_SEC);
	publish(&r, 111);
	assert_true(await(has_recovered, &r, 20));
	recorder_close(r.recorder);
	assert_int_equal(count_entries(&r, 111, RECORD_VIEW), 1);
	interval_free(made);
	plan_slot_free(plans);
	reservations_free(reservations);
	join_free(r.join);
	model_free(r.model);
	remove_record(r.dir);
}

/* An interval of bytes that do not compress, and a view. */
static void publish_bytes(struct recording *r, int seconds, size_t size)
{
	const struct frame_header header = {.node = "node-a"};
	struct interval *made = interval_make(1, 1, 1);
	struct buf body = BUF_INIT;
	const struct ingest_interval told = {&header, 1, &body, 1, made, T0};

	for (uint32_t state = (uint32_t)seconds + 1; body.len < size; state *= 747796405)
		buf_add_char(&body, (char)(++state >> 24));
	recorder_interval(r->recorder, &told, USAGE_APPLIED);
	publish(r, seconds);
	interval_free(made);
	buf_fini(&body);
}

#define BOUND ((uint64_t)1 << 20)
enum { STEP_BYTES = 20000, STEPS = 250 };

static uint64_t size_of(const char *dir)
{
	struct replay_extent x;
	struct error error;

	assert_int_equal(replay_measure(dir, &x, &error), 0);
	assert_int_equal(x.gaps, 0);
	assert_int_equal(x.damaged, 0);
	return x.bytes;
}

/*
 * Within an hour, steps of several times the bound: the record is never above it by more than a step,
 * or below half of it. Then the first step alone takes too much.
 */
static void test_bound(void **unused)
{
	struct recording r = {.dir = "/tmp/evenkeel-record-XXXXXX",
			      .model = model_new(),
			      .join = join_new()};
	struct plan_slot *plans = plan_slot_new();
	struct reservations *reservations = reservations_new();
	struct recorder_config config = {r.dir, 24 * 3600 * NS_PER_SEC, BOUND,
					 plans, reservations,		&r.counters};
	struct record_segments found;
	struct error error;
	uint64_t written = 0;

	(void)unused;
	assert_non_null(mkdtemp(r.dir));
	assert_int_equal(recorder_open(&r.recorder, &config, &error), 0);
	for (int i = 0; i < STEPS; i++) {
		uint64_t size;

		publish_bytes(&r, i, STEP_BYTES);
		while (counter_get(&r.counters.bytes) < written + STEP_BYTES)
			assert_false(has_failed(&r));
		written = counter_get(&r.counters.bytes);
		size = size_of(r.dir);
		if (size > BOUND + STEP_BYTES + 4096 || (i > STEPS / 2 && size < BOUND / 2))
			fail_msg("step %d: %llu bytes", i, (unsigned long long)size);
	}
	recorder_close(r.recorder);
	remove_record(r.dir);

	assert_int_equal(mkdir(r.dir, 0700), 0);
	assert_int_equal(recorder_open(&r.recorder, &config, &error), 0);
	publish_bytes(&r, STEPS, BOUND / 16);
	assert_true(await(has_failed, &r, 20));
	assert_int_equal(record_segments_find(&found, r.dir, &error), 0);
	assert_int_equal(found.count, 0);
	record_segments_fini(&found);
	publish_bytes(&r, STEPS + 10, BOUND / 32);
	assert_true(await(has_recovered, &r, 20));
	recorder_close(r.recorder);
	plan_slot_free(plans);
	reservations_free(reservations);
	join_free(r.join);
	model_free(r.model);
	remove_record(r.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_changes_that_cannot_be),
		cmocka_unit_test(test_a_view_has_what_was_built),
		cmocka_unit_test(test_damage_is_a_gap),
		cmocka_unit_test(test_older_version),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_recorder),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
