/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of two aggregators: what each tells, which memory counts, and whether they are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/plan_peer.h"
#include "aggregator/state/reservations_message.h"
#include "shared/body.pb-c.h"
#include "shared/mem.h"

#define S 1000000000LL

enum { SESSION = 77, HIGH = 9, LOW = 4, LOWER = 2 }; /* runs; the lower one of a pair decides */

/* --- two aggregators -------------------------------------------------------------------------- */

struct side {
	struct plan_slot *plans;
	struct exchange_counters counters;
	struct plan_peer *peer;
	struct plan_telling telling;
	struct plan_hearing hearing; /* of what the other one tells */
	struct buf body;
	int64_t ahead_ns; /* of its clock, as the machine started earlier */
};

struct pair {
	struct side elder, younger;
};

static void open_side(struct side *s, uint64_t run, int64_t now_ns)
{
	s->plans = plan_slot_new();
	s->peer = plan_peer_new(s->plans, &s->counters, run, now_ns + s->ahead_ns);
}

static void close_side(struct side *s)
{
	plan_peer_free(s->peer);
	plan_slot_free(s->plans);
	buf_fini(&s->telling.memory);
	buf_fini(&s->hearing.memory);
	buf_fini(&s->body);
	*s = (struct side){.ahead_ns = s->ahead_ns};
}

static int setup(void **state)
{
	static struct pair p;

	open_side(&p.elder, HIGH, -S);
	open_side(&p.younger, LOW, 0);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	close_side(&p->elder);
	close_side(&p->younger);
	return 0;
}

static struct shared_body *body_of(const char *text)
{
	struct buf b = BUF_INIT;

	buf_add_str(&b, text);
	return shared_body_new(&b);
}

static void plan(struct side *s, uint64_t id, const char *slack, const char *drain)
{
	struct plan_result *r = plan_result_new();

	r->id = id;
	if (slack)
		r->memory[PLAN_SLACK] = body_of(slack);
	if (drain)
		r->memory[PLAN_DRAIN] = body_of(drain);
	plan_slot_publish(s->plans, r);
}

/* All frames that are due, each of which takes so long; returns their number. */
static int tell_late(struct side *from, struct side *to, int64_t now_ns, int64_t delay_ns)
{
	struct error why = {""};
	int frames = 0;
	bool more;

	do {
		reservations_message_begin(&from->body, SESSION);
		more = plan_peer_tell(from->peer, &from->telling, &from->body,
				      now_ns + from->ahead_ns);
		assert_true(from->body.len < PLAN_PEER_PIECE + 100);
		if (plan_peer_hear(to->peer, &to->hearing, &from->body,
				   now_ns + delay_ns + to->ahead_ns, &why))
			fail_msg("%s", why.text);
		frames++;
	} while (more);
	return frames;
}

static int tell(struct side *from, struct side *to, int64_t now_ns)
{
	return tell_late(from, to, now_ns, 0);
}

/* Both know each other. */
static void meet(struct pair *p, int64_t now_ns)
{
	for (int i = 0; i < 2; i++) {
		tell(&p->younger, &p->elder, now_ns);
		tell(&p->elder, &p->younger, now_ns);
	}
}

static bool is_elder(struct side *s)
{
	return plan_peer_look(s->peer, NULL, S).elder;
}

/* --- a core that tells what it was given ------------------------------------------------------ */

struct fake {
	char *text; /* owned; the newest, with its time */
	int count;
};

static int keep(void *state, const struct plan_text *text, struct error *error)
{
	struct fake *f = state;

	if (strncmp(text->data, "bad", 3) == 0)
		return error_fail(error, -EINVAL, "drain: is bad");
	assert_true(text->foreign);
	free(f->text);
	f->text = mem_printf("%.*s at %lld", (int)text->len, text->data, (long long)text->now_ns);
	f->count++;
	return 0;
}

static void never(void *state, struct place *place, const struct plan_input *in,
		  struct plan_result *out)
{
	(void)state;
	(void)place;
	(void)in;
	(void)out;
	fail();
}

static void leave(void *state)
{
	(void)state;
}

static struct plan_core *open_core(struct fake *f)
{
	const struct plan_drain drain = {.state = f, .restore = keep, .step = never, .free = leave};
	struct slack_options slack;

	slack_options_default(&slack);
	return plan_core_new(&slack, &drain);
}

static int lead(struct side *s, struct plan_core *c, int64_t wall_ns, const char *why)
{
	struct error error = {""};
	int rc = plan_peer_lead(s->peer, c, wall_ns, &error);

	assert_string_equal(error.text, why);
	return rc;
}

/* --- stories ---------------------------------------------------------------------------------- */

static void the_younger_goes_on_from_the_memory_of_the_elder(void **state)
{
	struct pair *p = *state;
	struct fake f = {0};
	struct plan_core *c = open_core(&f);

	plan(&p->elder, 5, "{\"classes\":[]}", "one");
	plan(&p->younger, 6, "{\"classes\":[]}", "own");
	meet(p, S);
	assert_true(is_elder(&p->elder));
	assert_false(is_elder(&p->younger));
	assert_int_equal(lead(&p->younger, c, 7, ""), 0);
	assert_string_equal(f.text, "one at 7");
	/* Once; and the younger leads nobody. */
	assert_int_equal(lead(&p->younger, c, 8, ""), 0);
	tell(&p->younger, &p->elder, 2 * S);
	assert_int_equal(lead(&p->elder, c, 8, ""), 0);
	assert_int_equal(f.count, 1);
	/* A plan's memory is told once on a connection, and the newest counts, of a silent elder as well. */
	tell(&p->elder, &p->younger, 2 * S);
	assert_int_equal(lead(&p->younger, c, 9, ""), 0);
	assert_int_equal(f.count, 1);
	plan(&p->elder, 5, NULL, "two");
	tell(&p->elder, &p->younger, 3 * S);
	plan(&p->elder, 5, NULL, "three");
	tell(&p->elder, &p->younger, 4 * S);
	assert_int_equal(lead(&p->younger, c, 10, ""), 0);
	assert_string_equal(f.text, "three at 10");
	assert_int_equal(f.count, 2);
	assert_int_equal(plan_peer_lead(NULL, c, 11, NULL), 0);
	plan_core_free(c);
	free(f.text);
}

/* Whichever of both decides, and wherever their clocks are. */
static void the_one_that_runs_for_longer_is_the_elder(void **state)
{
	static const struct {
		uint64_t elder, younger;
		int64_t elder_ahead_ns, younger_ahead_ns;
	} cases[] = {
		{HIGH, LOW, 0, 0},
		{LOW, HIGH, 0, 0},
		{HIGH, LOW, 5 * S, 86400 * S},
		{LOW, HIGH, 5 * S, 86400 * S},
		{HIGH, LOW, 86400 * S, 5 * S},
		{LOW, HIGH, 86400 * S, 5 * S},
	};
	struct pair *p = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		close_side(&p->elder);
		close_side(&p->younger);
		p->elder.ahead_ns = cases[i].elder_ahead_ns;
		p->younger.ahead_ns = cases[i].younger_ahead_ns;
		open_side(&p->elder, cases[i].elder, -S);
		open_side(&p->younger, cases[i].younger, 0);
		assert_false(is_elder(&p->elder));
		meet(p, S);
		assert_true(is_elder(&p->elder));
		assert_false(is_elder(&p->younger));
	}
	p->elder.ahead_ns = p->younger.ahead_ns = 0;
}

/* They start within a frame's time: one is the elder, and stays that. */
static void delays_make_no_second_elder(void **state)
{
	static const int64_t delays_ns[] = {S / 2, 0, S / 4, 1, S};
	struct pair *p = *state;

	for (int first = 0; first < 2; first++) {
		struct side *sides[] = {&p->elder, &p->younger};
		bool elder;

		close_side(&p->elder);
		close_side(&p->younger);
		open_side(&p->elder, HIGH, 0);
		open_side(&p->younger, LOW, 1000);
		tell_late(sides[first], sides[!first], S, S / 2);
		tell_late(sides[!first], sides[first], S, S / 2);
		tell_late(sides[first], sides[!first], 2 * S, S / 2);
		elder = is_elder(&p->elder);
		for (int i = 0; i < 5; i++) {
			assert_int_equal(is_elder(&p->elder), elder);
			assert_int_equal(is_elder(&p->younger), !elder);
			tell_late(sides[0], sides[1], 3 * S + i * S, delays_ns[i]);
			tell_late(sides[1], sides[0], 3 * S + i * S, delays_ns[4 - i]);
		}
	}
}

static void a_new_run_is_the_younger(void **state)
{
	static const uint64_t runs[] = {LOWER, HIGH};
	struct pair *p = *state;

	meet(p, S);
	for (int i = 0; i < 2; i++) {
		close_side(&p->elder);
		open_side(&p->elder, runs[i], 2 * S);
		plan(&p->elder, 5, NULL, "new");
		/* Nobody leads until it is decided again. */
		tell(&p->elder, &p->younger, 3 * S);
		assert_false(is_elder(&p->elder));
		assert_int_equal(p->elder.telling.version, 0);
		meet(p, 3 * S);
		assert_false(is_elder(&p->elder));
		assert_true(is_elder(&p->younger));
		assert_int_equal(p->elder.telling.version, 0);
	}
}

static void a_large_memory_goes_in_pieces(void **state)
{
	enum { LEN = 10 * PLAN_PEER_PIECE };
	struct pair *p = *state;
	struct fake f = {0};
	struct plan_core *c = open_core(&f);
	char *text = mem_zalloc(1, LEN + 1);

	for (size_t i = 0; i < LEN; i++)
		text[i] = (char)('a' + i % 23);
	meet(p, S);
	plan(&p->elder, 5, NULL, text);
	assert_int_equal(tell(&p->elder, &p->younger, S), 11);
	assert_int_equal(lead(&p->younger, c, 7, ""), 0);
	assert_memory_equal(f.text, text, LEN);
	/* A plan in the midst of it waits for its end. */
	plan(&p->elder, 5, NULL, text);
	reservations_message_begin(&p->elder.body, SESSION);
	assert_true(plan_peer_tell(p->elder.peer, &p->elder.telling, &p->elder.body, S));
	assert_int_equal(plan_peer_hear(p->younger.peer, &p->younger.hearing, &p->elder.body, S,
					&(struct error){""}),
			 0);
	plan(&p->elder, 5, NULL, "small");
	assert_int_equal(tell(&p->elder, &p->younger, S), 10);
	assert_int_equal(lead(&p->younger, c, 7, ""), 0);
	assert_int_equal(strlen(f.text), LEN + strlen(" at 7"));
	assert_int_equal(tell(&p->elder, &p->younger, S), 1);
	assert_int_equal(lead(&p->younger, c, 8, ""), 0);
	assert_string_equal(f.text, "small at 8");
	plan_core_free(c);
	free(f.text);
	free(text);
}

static void a_bad_part_leaves_the_core_as_it_was(void **state)
{
	struct pair *p = *state;
	struct fake f = {0};
	struct plan_core *c = open_core(&f);

	meet(p, S);
	plan(&p->elder, 5, NULL, "one");
	tell(&p->elder, &p->younger, S);
	assert_int_equal(lead(&p->younger, c, 7, ""), 0);
	plan(&p->elder, 5, NULL, "bad");
	tell(&p->elder, &p->younger, S);
	assert_int_equal(lead(&p->younger, c, 8, "drain: is bad"), -EINVAL);
	plan(&p->elder, 5, "[]", "two");
	tell(&p->elder, &p->younger, S);
	assert_int_equal(lead(&p->younger, c, 8, "must be an object of JSON in UTF-8"), -EINVAL);
	assert_string_equal(f.text, "one at 7");
	assert_int_equal(counter_get(&p->younger.counters.refused), 2);
	plan_core_free(c);
	free(f.text);
}

static void expect(struct side *s, int64_t now_ns, enum plan_accord accord, int64_t for_ns)
{
	struct plan_peer_state got = plan_peer_look(s->peer, NULL, now_ns);

	assert_string_equal(plan_accord_name(got.accord), plan_accord_name(accord));
	assert_int_equal(got.for_ns, for_ns);
}

static void plans_are_compared(void **state)
{
	struct pair *p = *state;
	struct side *s = &p->younger;

	/* Since the first answer. */
	expect(s, 5 * S, PLAN_UNKNOWN, 5 * S);
	plan_peer_begin(s->peer, 4 * S);
	expect(s, 5 * S, PLAN_UNKNOWN, S);
	plan(s, 5, NULL, NULL);
	tell(&p->elder, s, 6 * S);
	expect(s, 6 * S, PLAN_UNKNOWN, 2 * S);
	/* Its first plan may be another one for a while. */
	plan(&p->elder, 6, NULL, NULL);
	tell(&p->elder, s, 7 * S);
	expect(s, 7 * S, PLAN_OTHER, 0);
	tell(&p->elder, s, 8 * S);
	expect(s, 8 * S + 7, PLAN_OTHER, S + 7);
	assert_int_equal(plan_peer_look(s->peer, NULL, 8 * S).id, 6);
	plan(s, 6, NULL, NULL);
	expect(s, 8 * S, PLAN_SAME, 0);
	tell(&p->elder, s, 9 * S);
	plan(s, 7, NULL, NULL);
	expect(s, 9 * S + 7, PLAN_OTHER, 7);
	/* A silence, after which it counts from the first word. */
	expect(s, 10 * S, PLAN_OTHER, S);
	expect(s, 10 * S + 1, PLAN_UNKNOWN, S + 1);
	expect(s, 39 * S, PLAN_UNKNOWN, 30 * S);
	tell(&p->elder, s, 60 * S);
	expect(s, 60 * S + 3, PLAN_OTHER, 3);
}

static void the_format_is_that_of_the_library(void **state)
{
	struct pair *p = *state;
	Evenkeel__PlanMemory *memory;
	Evenkeel__Exchange *x;

	meet(p, S);
	plan(&p->elder, 1ULL << 63, "{}", "one");
	tell(&p->elder, &p->younger, S);
	x = evenkeel__exchange__unpack(NULL, p->elder.body.len,
				       (const uint8_t *)p->elder.body.data);
	assert_non_null(x);
	assert_int_equal(x->session, SESSION);
	assert_true(x->run == HIGH && x->elder_run == HIGH);
	assert_int_equal(x->age_ns, 2 * S);
	assert_true(x->plan_id == 1ULL << 63);
	assert_int_equal(x->memory_size, x->memory.len);
	assert_int_equal(x->memory_at, 0);
	memory = evenkeel__plan_memory__unpack(NULL, x->memory.len, x->memory.data);
	assert_non_null(memory);
	assert_memory_equal(memory->slack.data, "{}", 2);
	assert_memory_equal(memory->drain.data, "one", 3);
	evenkeel__plan_memory__free_unpacked(memory, NULL);
	evenkeel__exchange__free_unpacked(x, NULL);
}

/* An older version tells nothing of plans. */
static void silence_is_no_failure(void **state)
{
	struct pair *p = *state;
	struct error why = {""};

	reservations_message_begin(&p->elder.body, SESSION);
	assert_int_equal(
		plan_peer_hear(p->younger.peer, &p->younger.hearing, &p->elder.body, S, &why), 0);
	expect(&p->younger, 40 * S, PLAN_UNKNOWN, 40 * S);
}

static void bad_fields_change_nothing(void **state)
{
#define BODY(text)                                                                                 \
	{                                                                                          \
		(text), sizeof(text) - 1                                                           \
	}
#define RUN_1 "\x40\x01"
	static const struct {
		const char *bytes;
		size_t len;
	} bodies[] = {
		BODY("\xff"), BODY("\x20"), /* cut off */
		/* a negative age */
		BODY(RUN_1 "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x09"),
		BODY(RUN_1 "\x20\x09\x28\x05\x30\x02\x3a\x03one"), /* a piece without its begin */
		BODY(RUN_1 "\x20\x09\x28\x02\x3a\x03one"), /* more than the whole */
		BODY(RUN_1 "\x20\x09\x28\x03"), /* an empty piece */
		BODY(RUN_1 "\x20\x09\x28\x81\x80\x80\x40\x3a\x03one"), /* above 128 MiB */
		BODY(RUN_1 "\x20\x09\x28\x03\x3a\x03one"), /* no PlanMemory */
	};
	struct pair *p = *state;
	struct fake f = {0};
	struct plan_core *c = open_core(&f);

	size_t i;

	plan(&p->younger, 8, NULL, NULL);
	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const struct buf body = {(char *)bodies[i].bytes, bodies[i].len, 0};
		struct error why = {""};

		assert_int_equal(plan_peer_hear(p->younger.peer, &p->younger.hearing, &body, S,
						&why),
				 -EBADMSG);
		assert_true(why.text[0]);
		expect(&p->younger, S, PLAN_UNKNOWN, S);
		assert_int_equal(lead(&p->younger, c, 7, ""), 0);
		assert_null(f.text);
	}
	assert_int_equal(counter_get(&p->younger.counters.refused), i);
	/* The next good one counts. */
	plan(&p->elder, 8, NULL, "one");
	meet(p, S);
	expect(&p->younger, S, PLAN_SAME, 0);
	assert_int_equal(lead(&p->younger, c, 7, ""), 0);
	assert_string_equal(f.text, "one at 7");
	plan_core_free(c);
	free(f.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(the_younger_goes_on_from_the_memory_of_the_elder),
		TEST(the_one_that_runs_for_longer_is_the_elder),
		TEST(delays_make_no_second_elder),
		TEST(a_new_run_is_the_younger),
		TEST(a_large_memory_goes_in_pieces),
		TEST(a_bad_part_leaves_the_core_as_it_was),
		TEST(plans_are_compared),
		TEST(the_format_is_that_of_the_library),
		TEST(silence_is_no_failure),
		TEST(bad_fields_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
