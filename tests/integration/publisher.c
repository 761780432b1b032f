/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publisher and the aggregators' own usage state, with real sockets between them and a clock that
 * the test may put forward: what aggregators order, an outage that is longer than the ring, and what
 * is wrong with an aggregator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/publisher.h"
#include "aggregator/edge/ingest.h"
#include "aggregator/state/usage.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/enrolment.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/ingest_admits.h"
#include "tests/interval.h"
#include "tests/keys.h"
#include "tests/near.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TIMEOUT_NS  (30 * NS_PER_SEC)
#define INTERVAL_NS (5 * NS_PER_SEC)

enum { RECEIVERS = 2, INTERVALS_MAX = 1000 };

struct receiver {
	char *url; /* owned */
	struct ingest *ingest;
	struct counters counters;
	struct usage_state *usage;
	uint32_t orders_ms; /* in each ack */
	uint64_t intervals, published; /* applied, and how many they stand for */
	uint64_t too_old; /* published ones that came when it would not have them any more */
	uint64_t missing; /* that it misses, as it counts them */
	uint64_t first; /* the oldest published one of them, but for those before the outage */
	double node, entries; /* CPU, millicore seconds */
};

struct scene {
	struct stack *stack; /* for its key */
	struct keyring keys;
	struct publisher_config config;
	struct option_list urls;
	struct publisher *publisher;
	struct receiver receivers[RECEIVERS];
	int64_t ahead_ns; /* of the real monotonic clock */
	uint64_t pushed;
	double node[INTERVALS_MAX], entries[INTERVALS_MAX]; /* CPU by sequence */
};

static double cpu_of(const struct usage *u)
{
	return (double)u->cpu_milli.mean * (double)u->cpu_milli.weight;
}

static double entries_cpu(const struct interval *i)
{
	double sum = 0;

	for (size_t n = 0; n < i->entry_count; n++)
		sum += cpu_of(&i->entries[n].usage);
	return sum;
}

static enum frame_result on_interval(void *ctx, const struct ingest_interval *i, struct ack *ack)
{
	const struct frame_header *header = i->header;
	const struct interval *interval = i->decoded;
	struct receiver *r = ctx;
	struct usage_answer answer = {0};

	usage_apply(r->usage, header->node, header->run, header->nonce, i->decoded, i->now_ns,
		    &answer);
	ack->applied = answer.applied;
	ack->resend_from = answer.resend_from;
	ack->interval_ms = r->orders_ms;
	if (answer.verdict == USAGE_NEED_FULL) {
		ack->status = ACK_NEED_FULL;
		return FRAME_RESULT_need_full;
	}
	/* It was on its way when the receiver went, and has left the ring since. */
	if (answer.verdict == USAGE_TOO_OLD) {
		ack->status = ACK_TOO_OLD;
		r->too_old += interval->merged;
		return FRAME_RESULT_too_old;
	}
	/* It was sent again because the machine was slow to hand over the acknowledgement. */
	if (answer.verdict == USAGE_DUPLICATE)
		return FRAME_RESULT_duplicate;
	if (answer.verdict != USAGE_APPLIED)
		print_error("%s\n", answer.reason);
	assert_int_equal(answer.verdict, USAGE_APPLIED);
	r->intervals++;
	r->published += interval->merged;
	r->missing += answer.missing;
	r->node += cpu_of(&interval->node.usage);
	r->entries += entries_cpu(interval);
	if (!r->first)
		r->first = interval->sequence - interval->merged + 1;
	return FRAME_RESULT_applied;
}

static void open_receiver(struct scene *s, int which)
{
	struct receiver *r = &s->receivers[which];
	struct error error;
	static const struct ingest_handler handler = {ingest_admits, on_interval, ingest_forgets};
	int rc = ingest_open(&r->ingest, r->url, &s->keys, NULL, &r->counters, &handler, r, &error);

	if (rc)
		print_error("%s\n", error.text);
	assert_int_equal(rc, 0);
}

static void close_receiver(struct scene *s, int which)
{
	ingest_close(s->receivers[which].ingest);
	s->receivers[which].ingest = NULL;
}

static int setup(void **state)
{
	const struct usage_limits limits = {.nodes_max = 10, .pods_per_node_max = 100};
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	if (keys_load(&s->keys, s->stack->key_path, NULL))
		return -1;
	s->urls.items = mem_zalloc(RECEIVERS, sizeof(*s->urls.items));
	for (int i = 0; i < RECEIVERS; i++) {
		s->receivers[i].url = mem_printf("tcp://127.0.0.1:%d", free_port());
		s->receivers[i].usage = usage_new(&limits);
		s->urls.items[i] = s->receivers[i].url;
	}
	s->config = (struct publisher_config){.aggregators = &s->urls,
					      .node = "node-1",
					      .key_path = s->stack->key_path,
					      .interval_ns = INTERVAL_NS};
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	publisher_close(s->publisher);
	for (int i = 0; i < RECEIVERS; i++) {
		ingest_close(s->receivers[i].ingest);
		usage_free(s->receivers[i].usage);
		free(s->receivers[i].url);
	}
	free(s->urls.items);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static void open_publisher(struct scene *s, size_t urls)
{
	s->urls.count = urls;
	assert_int_equal(publisher_open(&s->publisher, &s->config, NULL), 0);
	assert_int_equal(publisher_start(s->publisher, NULL), 0);
}

static void push(struct scene *s)
{
	struct interval *i = interval_make(++s->pushed, 3, 2);

	s->node[s->pushed] = cpu_of(&i->node.usage);
	s->entries[s->pushed] = entries_cpu(i);
	publisher_push(s->publisher, i);
}

/* Unix time at the end of the newest interval. */
static int64_t wall_ns(const struct scene *s)
{
	struct interval *i = interval_make(s->pushed, 0, 0);
	int64_t end = i->end_ns;

	interval_free(i);
	return end;
}

static void turn(struct scene *s)
{
	struct pollfd fds[1 + RECEIVERS];
	nfds_t count = 0;

	publisher_step(s->publisher, clock_mono_ns() + s->ahead_ns);
	fds[count++] = (struct pollfd){publisher_fd(s->publisher), POLLIN, 0};
	for (int i = 0; i < RECEIVERS; i++) {
		struct ingest *ingest = s->receivers[i].ingest;

		if (!ingest)
			continue;
		ingest_step(ingest, 8, wall_ns(s), clock_mono_ns());
		fds[count++] = (struct pollfd){ingest_fd(ingest), POLLIN, 0};
	}
	poll(fds, count, 10);
}

#define TURN_UNTIL(s, condition)                                                                   \
	do {                                                                                       \
		int64_t limit_ = clock_mono_ns() + TIMEOUT_NS;                                     \
		while (!(condition) && clock_mono_ns() < limit_)                                   \
			turn(s);                                                                   \
		assert_true(condition);                                                            \
	} while (0)

/* --- orders ----------------------------------------------------------------------------------- */

static void publish_all(struct scene *s)
{
	push(s);
	TURN_UNTIL(s, publisher_idle(s->publisher));
}

static int64_t ordered_s(const struct scene *s)
{
	return publisher_ordered_interval_ns(s->publisher) / NS_PER_SEC;
}

static void test_the_shortest_order_holds(void **state)
{
	static const struct {
		uint32_t orders_ms[RECEIVERS];
		int64_t want_s;
	} story[] = {
		{{0, 0}, 0},	    {{3000, 0}, 3},   {{3000, 2000}, 2}, {{1000, 2000}, 1},
		{{15000, 2000}, 2}, {{15000, 0}, 15}, {{0, 0}, 0},	 {{0, 4000}, 4},
	};
	struct scene *s = *state;

	open_receiver(s, 0);
	open_receiver(s, 1);
	open_publisher(s, 2);
	assert_int_equal(ordered_s(s), 0);
	for (size_t i = 0; i < sizeof(story) / sizeof(story[0]); i++) {
		s->receivers[0].orders_ms = story[i].orders_ms[0];
		s->receivers[1].orders_ms = story[i].orders_ms[1];
		publish_all(s);
		assert_int_equal(ordered_s(s), story[i].want_s);
	}
}

/* Nobody is bound by the order of one who went away. */
static void test_orders_of_the_silent(void **state)
{
	struct scene *s = *state;

	s->receivers[0].orders_ms = 10000;
	s->receivers[1].orders_ms = 1000;
	open_receiver(s, 0);
	open_receiver(s, 1);
	open_publisher(s, 2);
	publish_all(s);
	assert_int_equal(ordered_s(s), 1);
	close_receiver(s, 1);
	for (int i = 0; i < 4; i++) {
		uint64_t before = s->receivers[0].intervals;

		assert_int_equal(ordered_s(s), 1);
		push(s);
		TURN_UNTIL(s, s->receivers[0].intervals > before);
		s->ahead_ns += INTERVAL_NS;
	}
	turn(s);
	assert_int_equal(ordered_s(s), 10);
	open_receiver(s, 1);
	TURN_UNTIL(s, publisher_idle(s->publisher));
	assert_int_equal(ordered_s(s), 1);
}

/* --- an outage longer than the ring ----------------------------------------------------------- */

/*
 * One hears everything; the other is away for 400 intervals, of which the ring holds 15 minutes,
 * merged.
 */
static void test_outage_longer_than_the_ring(void **state)
{
	enum { BEFORE = 10, AWAY = 400 };
	struct scene *s = *state;
	struct receiver *away = &s->receivers[1], *there = &s->receivers[0];
	double node = 0, entries = 0, before_node, before_entries;
	uint64_t before;

	s->config.ring_bytes = 128 * 1024;
	open_receiver(s, 0);
	open_receiver(s, 1);
	open_publisher(s, 2);
	for (int i = 0; i < BEFORE; i++)
		publish_all(s);
	before = away->published;
	before_node = away->node;
	before_entries = away->entries;
	assert_int_equal(before, BEFORE);
	away->first = 0;
	close_receiver(s, 1);
	for (int i = 0; i < AWAY; i++) {
		push(s);
		TURN_UNTIL(s, there->published == s->pushed);
		s->ahead_ns += INTERVAL_NS;
	}
	assert_false(publisher_idle(s->publisher));
	open_receiver(s, 1);
	TURN_UNTIL(s, publisher_idle(s->publisher));

	/* Who was there missed nothing, coarsened or not. */
	assert_int_equal(there->intervals, s->pushed);
	/* What came is all that is younger than the ring's 15 minutes, in fewer intervals .. */
	assert_int_equal(away->published - before, s->pushed - away->first + 1);
	assert_in_range(away->published - before, 180, 180 + 45);
	assert_true(away->intervals - before < 60);
	/* .. with exactly its CPU time .. */
	for (uint64_t i = away->first; i <= s->pushed; i++) {
		node += s->node[i];
		entries += s->entries[i];
	}
	assert_near(away->node - before_node, node);
	assert_near(away->entries - before_entries, entries);
	/* .. and what did not come is counted. */
	assert_in_range(away->too_old, 0, 1);
	assert_int_equal(away->missing, away->first - BEFORE - 1);
	assert_int_equal(away->missing + away->published, s->pushed);
}

/* --- trouble ---------------------------------------------------------------------------------- */

struct enrolling_scene {
	struct scene *s;
	struct enrolment_keys keys;
	char *folder;
	bool refuses;
	unsigned int refusals;
};

static struct enrolling_scene enrolling;

/* Refuses, or gives the node the shared key as its own. */
static int take_enrolment(void *ctx, const void *data, size_t len, const struct ingest_route *route,
			  int64_t now_ns, struct buf *answer, bool *refused)
{
	struct enrolling_scene *e = &enrolling;
	struct enrolment_answer a = {.status = e->refuses ? ENROLMENT_REFUSED : ENROLMENT_DONE,
				     .key = e->s->keys.keys[0],
				     .lifetime_s = 3600,
				     .wait_ms = 30000,
				     .reason = "for other nodes"};
	struct buf plain = BUF_INIT;
	struct frame_header header;
	const struct key *key;
	struct enrolment ask;
	int rc = enrolment_open(data, len, &e->keys, &header, &key, &ask, &plain, NULL);

	(void)ctx;
	(void)route;
	(void)now_ns;
	assert_int_equal(rc, 0);
	enrolment_answer_seal(answer, &header, ask.reply_key, key, &a);
	e->refusals += e->refuses;
	*refused = false;
	buf_fini(&plain);
	return e->refuses ? FRAME_RESULT_not_enrolled : FRAME_RESULT_enrolled;
}

static void on_foreign(void *ctx, const char *node, const char *owner, int64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	fail_msg("%s: a key of %s", node, owner);
}

static char *write_private(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", enrolling.folder, name);
	struct error error;

	if (file_replace(path, 0600, text, strlen(text), &error))
		fail_msg("%s", error.text);
	return path;
}

/* The publisher enrols with the first receiver; the second one is not there. */
static void open_enrolling(struct scene *s, const struct ingest_enrolment *enrolment,
			   char *paths[2])
{
	static const struct ingest_handler handler = {ingest_admits, on_interval, ingest_forgets};
	struct enrolment_keys *keys = &enrolling.keys;
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 1];
	struct receiver *r = &s->receivers[0];
	struct error error;

	enrolling = (struct enrolling_scene){.s = s, .folder = folder_make(), .refuses = true};
	keys->ring.count = 1;
	memset(keys->ring.keys[0].secret, 9, KEY_LEN);
	enrolment_keys_pair(keys);
	enrolment_public_write(keys->public_keys[0], text);
	paths[0] = write_private("key.pub", text);
	paths[1] = write_private("token", "0123456789abcdef");
	s->config.key_path = NULL;
	s->config.enrol = (struct enroller_config){.aggregator_key_path = paths[0],
						   .credential_path = paths[1],
						   .kind = CREDENTIAL_JOIN_TOKEN};
	if (ingest_open(&r->ingest, r->url, &s->keys, enrolment, &r->counters, &handler, r, &error))
		fail_msg("%s", error.text);
	open_publisher(s, 2);
}

#define ASSERT_TROUBLE(s, which, what)                                                             \
	do {                                                                                       \
		const char *is_ = publisher_trouble((s)->publisher);                               \
		assert_non_null(strstr(is_, (s)->receivers[which].url));                           \
		assert_non_null(strstr(is_, what));                                                \
	} while (0)

/*
 * A refusal stands until the node is enrolled, however long that takes, and whatever another
 * aggregator does; then the silence of the other one shows.
 */
static void test_standing_refusal(void **state)
{
	struct scene *s = *state;
	struct node_keys *node_keys = node_keys_new(1);
	const struct ingest_enrolment enrolment = {node_keys, take_enrolment, on_foreign};
	struct receiver *there = &s->receivers[0];
	char *paths[2];

	open_enrolling(s, &enrolment, paths);
	assert_string_equal(publisher_trouble(s->publisher), "");
	push(s);
	for (unsigned int i = 1; i <= 4; i++) {
		TURN_UNTIL(s, enrolling.refusals >= i && *publisher_trouble(s->publisher));
		ASSERT_TROUBLE(s, 0, "does not enrol this node: for other nodes");
		for (int64_t second = 0; second < 25; second++) {
			s->ahead_ns += NS_PER_SEC;
			turn(s);
			ASSERT_TROUBLE(s, 0, "does not enrol this node: for other nodes");
		}
		s->ahead_ns += 240 * NS_PER_SEC;
	}
	enrolling.refuses = false;
	push(s);
	TURN_UNTIL(s, there->intervals > 0);
	TURN_UNTIL(s, !strstr(publisher_trouble(s->publisher), there->url));
	ASSERT_TROUBLE(s, 1, "acknowledges nothing");
	node_keys_free(node_keys);
	free(paths[0]);
	free(paths[1]);
	folder_remove(enrolling.folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_shortest_order_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orders_of_the_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outage_longer_than_the_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_standing_refusal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
