/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units after a drain. Their size is a part of the average node, so it changes when nodes that are not
 * average leave. A drain that leaves room for today's units, but not for the units after it, would
 * require new nodes as soon as the size follows (slack_state.c). So the check of a wave takes
 * today's units away and places the units after it, as many as balloons do not hold: on nodes of
 * today's units, then on the fullest nodes.
 *
 * As many may stay unplaced as today.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/mem.h"

struct slack_basis *slack_basis_new(const struct slack_run *r, const struct slack_target_input *in,
				    const place_node *which)
{
	struct slack_basis *b = mem_zalloc(1, sizeof(*b));

	b->in = *in;
	b->which = mem_zalloc(in->node_count + 1, sizeof(*b->which));
	if (in->node_count)
		memcpy(b->which, which, in->node_count * sizeof(*b->which));
	if (r->options->base == SLACK_BASE_ALLOCATABLE && !r->result->by_arrivals)
		b->rate_ppm = r->options->rate_ppm;
	b->class = UINT32_MAX;
	return b;
}

void slack_basis_free(struct slack_basis *b)
{
	if (!b)
		return;
	free((void *)b->in.nodes);
	free((void *)b->in.shapes);
	free(b->which);
	free(b);
}

static bool is_among(const place_node *of, size_t count, place_node n)
{
	for (size_t i = 0; i < count; i++)
		if (of[i] == n)
			return true;
	return false;
}

static void make_target(const struct slack_basis *b, const place_node *gone, size_t count,
			struct slack_target *out)
{
	struct slack_target_input in = b->in;
	struct slack_amount *nodes = mem_zalloc(in.node_count + 1, sizeof(*nodes));
	struct slack_amount less = {0, 0};

	in.node_count = 0;
	for (size_t i = 0; i < b->in.node_count; i++)
		if (is_among(gone, count, b->which[i]))
			slack_amount_add(&less, &b->in.nodes[i], 1);
		else
			nodes[in.node_count++] = b->in.nodes[i];
	less = slack_extra(&less, b->rate_ppm);
	slack_amount_add(&in.extra, &less, -1);
	in.nodes = nodes;
	slack_target_make(&in, out);
	free(nodes);
}

/* As ask() of slack_verify.c: evenkeel's own filters never move a placed placeholder. */
static bool may_stand(struct place *p, place_pod pod, place_node n)
{
	enum place_filter f = place_check(p, pod, n);

	return f == PLACE_FITS || f >= PLACE_USE_CAP;
}

/* Takes today's units away. Returns their nodes, for the caller to free. */
static place_node *take_units(const struct slack_result *r, struct place *p, const place_pod *pods,
			      size_t *count)
{
	place_node *from = mem_zalloc(r->placed_count + 1, sizeof(*from));

	*count = 0;
	for (size_t i = 0; i < r->placed_count; i++) {
		place_node n = place_where(p, pods[i]);

		if (r->placed[i].class != r->basis->class || n == PLACE_NONE)
			continue;
		from[(*count)++] = n;
		place_take(p, pods[i]);
	}
	return from;
}

/* Places units. Returns how many of `wanted` find no node. */
static int64_t place_units(struct place *p, const struct kube_pod *record, int64_t wanted,
			   const place_node *stood, size_t count)
{
	place_pod pod = place_add_pod(p, record);
	size_t at = 0;

	while (wanted > 0) {
		while (at < count && !may_stand(p, pod, stood[at]))
			at++;
		if (at < count) {
			place_put(p, pod, stood[at]);
		} else {
			place_node n =
				place_choose(p, pod, PLACE_FULLEST_FIRST, PLACE_NONE, NULL, NULL);

			if (n == PLACE_NONE)
				break;
			place_put(p, pod, n);
		}
		wanted--;
		pod = place_add_pod(p, record);
	}
	return wanted;
}

static int64_t try_units(const struct slack_result *r, struct place *p, const place_pod *pods,
			 const struct slack_amount *unit, int64_t wanted)
{
	struct slack_pattern pattern = {0};
	place_mark m = place_fork(p);
	size_t count;
	place_node *stood = take_units(r, p, pods, &count);
	int64_t missing;

	slack_pattern_of_shape(&pattern, "unit", unit);
	missing = place_units(p, pattern.record, wanted, stood, count);
	place_revert(p, m);
	slack_pattern_fini(&pattern);
	free(stood);
	return missing;
}

static void explain(const struct slack_amount *unit, int64_t missing, int64_t wanted,
		    struct error *error)
{
	struct buf text = BUF_INIT;

	slack_write_amount(&text, unit);
	error_set(error,
		  "without it a unit of extra capacity is %s, and %lld of %lld would have no place",
		  text.data, (long long)missing, (long long)wanted);
	buf_fini(&text);
}

bool slack_holds_without(const struct slack_result *r, struct place *p, const place_pod *pods,
			 const place_node *gone, size_t count, struct error *error)
{
	const struct slack_class *c;
	struct slack_target t;
	struct slack_amount unit;
	int64_t units, unplaced, missing;

	if (!r->basis || r->basis->class == UINT32_MAX)
		return true;
	c = &r->classes[r->basis->class];
	make_target(r->basis, gone, count, &t);
	unit = t.unit;
	units = t.unit_count;
	slack_target_fini(&t);
	if (!c->wanted || units > UINT32_MAX || memcmp(&unit, &c->shape, sizeof(unit)) == 0)
		return true;
	unplaced = (c->unplaced * units + c->wanted - 1) / c->wanted;
	missing = units - slack_slots(&r->basis->of_balloons, &unit);
	missing = missing > 0 ? try_units(r, p, pods, &unit, missing) : 0;
	if (missing <= unplaced)
		return true;
	explain(&unit, missing, units, error);
	return false;
}
