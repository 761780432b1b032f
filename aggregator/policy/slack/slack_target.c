/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corrected formulas of resource slack.
 *
 *   extra  = rate * requested (or * allocatable)
 *   unit   = average node / granularity; if no node holds it, scaled down to the node that holds
 *          the largest share of it; at most the largest shape, and the largest pod
 *   count  = max over resources of ceil(remaining / unit). A unit is rounded down, so that a node
 *          holds as many as it was cut into. What that loses, less than 1 millicore and 1 byte a
 *          unit, adds no unit
 *   cover  = Pareto front of the shapes, walked by CPU, neighbours joined where a node can hold the
 *          join
 *
 * Products of two amounts below 2^63 have 128 bits. Fractions are compared crosswise.
 */
#include "aggregator/policy/slack/slack_target.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "shared/mem.h"

typedef __int128 wide;

static int64_t divide_up(wide value, wide by)
{
	return int_clamp((value + by - 1) / by);
}

bool slack_amount_fits(const struct slack_amount *a, const struct slack_amount *b)
{
	return a->cpu_milli <= b->cpu_milli && a->mem_bytes <= b->mem_bytes;
}

void slack_amount_add(struct slack_amount *to, const struct slack_amount *more, int64_t count)
{
	to->cpu_milli = int_clamp((wide)to->cpu_milli + (wide)more->cpu_milli * count);
	to->mem_bytes = int_clamp((wide)to->mem_bytes + (wide)more->mem_bytes * count);
}

void slack_amount_max(struct slack_amount *to, const struct slack_amount *other)
{
	to->cpu_milli = int_max(to->cpu_milli, other->cpu_milli);
	to->mem_bytes = int_max(to->mem_bytes, other->mem_bytes);
}

/* --- the rate */

/* Digits with at most one point. False: no number, or too many digits; *fine: finer than a unit. */
static bool read_decimal(const char **at, int64_t unit, int64_t *value, bool *fine)
{
	bool point = false, digit = false;

	for (*value = 0; (**at >= '0' && **at <= '9') || (**at == '.' && !point); ++*at) {
		if (**at == '.') {
			point = true;
			continue;
		}
		digit = true;
		if (point)
			unit /= 10;
		*fine |= unit == 0 && **at != '0';
		if (*value > INT64_MAX / 20)
			return false;
		if (point)
			*value += (**at - '0') * unit;
		else
			*value = *value * 10 + (**at - '0') * unit;
	}
	return digit;
}

int slack_rate_parse(const char *text, int64_t *rate_ppm, struct error *error)
{
	const char *at = text + strspn(text, " \t");
	int64_t unit = strchr(text, '%') ? SLACK_PPM / 100 : SLACK_PPM, value;
	bool negative = *at == '-', fine = false, read;
	const char *fault;

	at += negative;
	read = read_decimal(&at, unit, &value, &fine);
	at += strspn(at, " \t");
	at += *at == '%';
	at += strspn(at, " \t");
	fault = !read || *at				    ? "is no rate: one is like 0.1 or 10%"
		: fine					    ? "is finer than a millionth"
		: (negative && value) || value >= SLACK_PPM ? "is not in [0, 1)"
							    : NULL;
	if (fault)
		return error_fail(error, -EINVAL, "\"%.60s\" %s", text, fault);
	*rate_ppm = value;
	return 0;
}

bool slack_ask_read(const char *text, struct slack_ask *out)
{
	bool share = strchr(text, '%'), fine = false;
	const char *at = text;
	int64_t value;

	if (strcmp(text, "shared") == 0) {
		*out = (struct slack_ask){SLACK_ASKS_SHARED, 0};
		return true;
	}
	if (!share && strchr(text, '.'))
		return false;
	if (!read_decimal(&at, share ? SLACK_PPM / 100 : 1, &value, &fine) ||
	    strcmp(at, share ? "%" : "") != 0 ||
	    value > (share ? SLACK_ASK_SHARE_MAX : SLACK_ASK_COUNT_MAX))
		return false;
	*out = (struct slack_ask){share ? SLACK_ASKS_SHARE : SLACK_ASKS_COUNT, value};
	return true;
}

struct slack_amount slack_extra(const struct slack_amount *base, int64_t rate_ppm)
{
	return (struct slack_amount){divide_up((wide)base->cpu_milli * rate_ppm, SLACK_PPM),
				     divide_up((wide)base->mem_bytes * rate_ppm, SLACK_PPM)};
}

/* --- the unit */

/* The smaller share that a node has of the unit; a resource that the unit lacks is no bound. */
struct share {
	wide part, whole;
};

static struct share share_of(const struct slack_amount *node, const struct slack_amount *unit)
{
	struct share cpu = {node->cpu_milli, unit->cpu_milli},
		     mem = {node->mem_bytes, unit->mem_bytes};

	if (!cpu.whole || !mem.whole)
		return cpu.whole ? cpu : mem;
	return cpu.part * mem.whole <= mem.part * cpu.whole ? cpu : mem;
}

/* A unit, and whether rounding made it smaller. */
struct unit {
	struct slack_amount amount;
	bool less_cpu, less_mem;
};

/* At least one, since a unit of 0 keeps no room. */
static int64_t divide_down(wide value, wide by, bool *less)
{
	if (value > 0 && value < by)
		return 1;
	*less |= value % by != 0;
	return int_clamp(value / by);
}

/* Scales the unit down to the node that holds the largest share of it. */
static void scale_to_fit(const struct slack_target_input *in, struct unit *u)
{
	struct slack_amount *unit = &u->amount;
	struct share best = {0, 1};
	size_t chosen = 0;

	if (!unit->cpu_milli && !unit->mem_bytes)
		return;
	for (size_t i = 0; i < in->node_count; i++) {
		struct share share = share_of(&in->nodes[i], unit);

		if (slack_amount_fits(unit, &in->nodes[i]))
			return;
		if (best.part * share.whole < share.part * best.whole) {
			best = share;
			chosen = i;
		}
	}
	unit->cpu_milli =
		int_min(divide_down(unit->cpu_milli * best.part, best.whole, &u->less_cpu),
			in->nodes[chosen].cpu_milli);
	unit->mem_bytes =
		int_min(divide_down(unit->mem_bytes * best.part, best.whole, &u->less_mem),
			in->nodes[chosen].mem_bytes);
}

static void cap(int64_t most_asked, int64_t *amount, bool *less)
{
	if (*amount < most_asked)
		return;
	*amount = most_asked;
	*less = false;
}

static struct unit make_unit(const struct slack_target_input *in)
{
	const struct slack_amount *pod = &in->largest_pod;
	struct slack_amount shape = {0, 0};
	struct slack_amount sum = {0, 0};
	wide parts = (wide)in->node_count * in->granularity;
	struct unit u = {.amount = {0, 0}};

	if (!in->node_count)
		return u;
	for (size_t i = 0; i < in->node_count; i++)
		slack_amount_add(&sum, &in->nodes[i], 1);
	for (size_t i = 0; i < in->shape_count; i++)
		slack_amount_max(&shape, &in->shapes[i]);
	u.amount.cpu_milli = divide_down(sum.cpu_milli, parts, &u.less_cpu);
	u.amount.mem_bytes = divide_down(sum.mem_bytes, parts, &u.less_mem);
	scale_to_fit(in, &u);
	if (shape.cpu_milli)
		cap(shape.cpu_milli, &u.amount.cpu_milli, &u.less_cpu);
	if (shape.mem_bytes)
		cap(shape.mem_bytes, &u.amount.mem_bytes, &u.less_mem);
	if (pod->cpu_milli || pod->mem_bytes) {
		cap(pod->cpu_milli, &u.amount.cpu_milli, &u.less_cpu);
		cap(pod->mem_bytes, &u.amount.mem_bytes, &u.less_mem);
	}
	return u;
}

static int64_t count_of(int64_t remaining, int64_t unit, bool less)
{
	int64_t count = unit ? remaining / unit : 0, rest = unit ? remaining % unit : 0;

	return count + (rest > (less ? count : 0));
}

static int64_t count_units(const struct unit *u, const struct slack_amount *remaining)
{
	return int_max(count_of(remaining->cpu_milli, u->amount.cpu_milli, u->less_cpu),
		       count_of(remaining->mem_bytes, u->amount.mem_bytes, u->less_mem));
}

/* --- the cover */

static bool some_node_holds(const struct slack_target_input *in, const struct slack_amount *shape)
{
	for (size_t i = 0; i < in->node_count; i++)
		if (slack_amount_fits(shape, &in->nodes[i]))
			return true;
	return false;
}

/* By CPU; of equal CPU more memory first, which dominates. */
static int compare_shapes(const void *left, const void *right)
{
	const struct slack_amount *a = left, *b = right;

	return COMPARE(a->cpu_milli, b->cpu_milli) ?: COMPARE(b->mem_bytes, a->mem_bytes);
}

/* Keeps the sorted shapes that no other dominates: one with less CPU only if it has more memory. */
static size_t pareto_front(struct slack_amount *shapes, size_t count)
{
	int64_t mem = -1;
	size_t kept = count;

	for (size_t i = count; i-- > 0;) {
		bool again = i > 0 && shapes[i - 1].cpu_milli == shapes[i].cpu_milli;

		if (again || shapes[i].mem_bytes <= mem)
			continue;
		mem = shapes[i].mem_bytes;
		shapes[--kept] = shapes[i];
	}
	memmove(shapes, shapes + kept, (count - kept) * sizeof(*shapes));
	return count - kept;
}

/* Joins neighbours of the front in place. */
static size_t join_neighbours(const struct slack_target_input *in, struct slack_amount *front,
			      size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct slack_amount join = front[i];

		if (kept > 0) {
			slack_amount_max(&join, &front[kept - 1]);
			if (some_node_holds(in, &join)) {
				front[kept - 1] = join;
				continue;
			}
		}
		front[kept++] = front[i];
	}
	return kept;
}

static void make_cover(const struct slack_target_input *in, struct slack_target *out)
{
	size_t count = 0;

	out->cover = mem_zalloc(in->shape_count + 1, sizeof(*out->cover));
	out->dropped = mem_zalloc(in->shape_count + 1, sizeof(*out->dropped));
	for (size_t i = 0; i < in->shape_count; i++)
		if (some_node_holds(in, &in->shapes[i]))
			out->cover[count++] = in->shapes[i];
		else
			out->dropped[out->dropped_count++] = in->shapes[i];
	qsort(out->cover, count, sizeof(*out->cover), compare_shapes);
	count = pareto_front(out->cover, count);
	out->cover_count = join_neighbours(in, out->cover, count);
}

/* --- all of it */

static int64_t count_held(const struct slack_target_input *in, const struct slack_target *t)
{
	const struct slack_amount *held = &in->held;

	if (!held->cpu_milli != !t->unit.cpu_milli || !held->mem_bytes != !t->unit.mem_bytes ||
	    !some_node_holds(in, held))
		return -1;
	return count_units(&(struct unit){*held, true, true}, &t->remaining);
}

void slack_target_make(const struct slack_target_input *in, struct slack_target *out)
{
	struct slack_amount covered = in->reserved;
	struct unit unit;

	assert(in->granularity >= 1 && in->granularity <= SLACK_GRANULARITY_MAX);
	unit = make_unit(in);
	*out = (struct slack_target){.unit = unit.amount};
	make_cover(in, out);
	for (size_t i = 0; i < out->cover_count; i++)
		slack_amount_add(&covered, &out->cover[i], 1);
	out->remaining.cpu_milli = int_max(0, in->extra.cpu_milli - covered.cpu_milli);
	out->remaining.mem_bytes = int_max(0, in->extra.mem_bytes - covered.mem_bytes);
	out->unit_count = count_units(&unit, &out->remaining);
	out->held_count = count_held(in, out);
}

void slack_target_fini(struct slack_target *t)
{
	free(t->cover);
	free(t->dropped);
	*t = (struct slack_target){0};
}

/*
 * If free is below 2^53, the quotient as a double is never rounded up to a whole number. To divide
 * doubles instead of integers saves a seventh of a plan's time at 5000 nodes.
 */
static int64_t slots_in(int64_t free, int64_t asked)
{
	if (!asked)
		return INT64_MAX;
	if (free <= 0)
		return 0;
	return free >> DBL_MANT_DIG ? free / asked : (int64_t)((double)free / (double)asked);
}

int64_t slack_slots(const struct slack_amount *free, const struct slack_amount *shape)
{
	return int_min(slots_in(free->cpu_milli, shape->cpu_milli),
		       slots_in(free->mem_bytes, shape->mem_bytes));
}
