/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans begin in the order of the list, since each holds with those before it. A plan begins if
 * --max-evictions allows all of its evictions now. A plan with more victims than --max-evictions
 * begins after a minute without evictions, and takes several minutes.
 *
 * What can fail: the aggregator refuses the claim (the plan is dropped, and the next list has
 * another), a budget refuses an eviction for longer than the wait, a victim does not end, or the pod
 * is not bound. A pod that was given up is left alone for LEFT_NS; for OUTDATED_NS if its claim was
 * refused before all victims were evicted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/reclaim.h"
#include "shared/array.h"
#include "shared/mem.h"

#define SECOND_NS INT64_C(1000000000)

/* PAUSED_NS is longer than the aggregator keeps a claim. */
static const int64_t MINUTE_NS = 60 * SECOND_NS, RENEW_NS = 10 * SECOND_NS,
		     PAUSED_NS = 60 * SECOND_NS, GAP_NS = 15 * SECOND_NS,
		     OUTDATED_NS = 5 * SECOND_NS, LEFT_NS = 600 * SECOND_NS;

/* --- memory ----------------------------------------------------------------------------------- */

void reclaim_rescue_fini(struct reclaim_rescue *r)
{
	for (size_t i = 0; i < r->victim_count; i++)
		eviction_fini(&r->victims[i].pod);
	free(r->victims);
	free(r->plan);
	free(r->node);
	free(r->namespace);
	free(r->name);
	free(r->uid);
}

void reclaim_rescues_fini(struct reclaim_rescues *r)
{
	while (r->count)
		reclaim_rescue_fini(&r->of[--r->count]);
	free(r->of);
	r->of = NULL;
}

void reclaim_state_fini(struct reclaim_state *s)
{
	reclaim_rescues_fini(&s->rescues);
	for (size_t i = 0; i < s->left_count; i++)
		free(s->left[i].uid);
	free(s->left);
	memset(s, 0, sizeof(*s));
}

static void add_action(struct reclaim_output *out, bool claims, size_t rescue, size_t victim)
{
	ARRAY_ADD(out->actions, out->action_count) =
		(struct reclaim_action){claims, rescue, victim};
}

/* Moves it to the state. */
static struct reclaim_rescue *add_rescue(struct reclaim_state *s, struct reclaim_rescue *plan,
					 int64_t now_ns)
{
	struct reclaim_rescues *to = &s->rescues;

	plan->since_ns = now_ns;
	ARRAY_ADD(to->of, to->count) = *plan;
	*plan = (struct reclaim_rescue){.plan = NULL};
	return &to->of[to->count - 1];
}

/* --- pods that are left alone ----------------------------------------------------------------- */

static void leave_alone(struct reclaim_state *s, const char *uid, int64_t until_ns)
{
	ARRAY_ADD(s->left, s->left_count) = (struct reclaim_left){mem_strdup(uid), until_ns};
}

static void expire_left(struct reclaim_state *s, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->left_count; i++)
		if (s->left[i].until_ns > now_ns)
			s->left[kept++] = s->left[i];
		else
			free(s->left[i].uid);
	s->left_count = kept;
}

/* --- rescues ---------------------------------------------------------------------------------- */

static const struct reclaim_seen *find_seen(const struct reclaim_input *in, const char *uid)
{
	return array_find_text(in->seen, in->seen_count, sizeof(struct reclaim_seen), uid);
}

static void see_victims(struct reclaim_rescue *r, const struct reclaim_input *in)
{
	for (size_t i = 0; i < r->victim_count; i++) {
		struct eviction *v = &r->victims[i].pod;
		const struct reclaim_seen *seen = find_seen(in, v->uid);

		if (!seen || v->gone)
			continue;
		eviction_see(v, !seen->gone, seen->ending, in->now_ns);
		if (v->gone)
			r->since_ns = in->now_ns;
	}
}

/* The failure of a pod that waits longer than it may. */
static void judge_waits(struct reclaim_rescue *r, const struct reclaim_options *o, int64_t now_ns)
{
	int64_t waited_ns = now_ns - r->since_ns;
	size_t gone = 0;

	for (size_t i = 0; i < r->victim_count && !*r->failure.text; i++) {
		const struct eviction *v = &r->victims[i].pod;
		int64_t grace_ns = v->evicted_ns ? r->victims[i].grace_ns : 0;

		gone += v->gone;
		if (!v->gone && waited_ns > o->wait_ns + grace_ns)
			error_set(&r->failure, "its victim %s/%s %s", v->namespace, v->name,
				  v->evicted_ns ? "does not end"
				  : v->tries	? "may not be evicted: its disruption budget "
						  "allows no eviction"
						: "was not evicted: the API server did not answer, "
						  "or the claim on its room was not renewed");
	}
	if (gone == r->victim_count && waited_ns > o->wait_ns && !*r->failure.text)
		error_set(&r->failure, "its victims are gone and it is not bound%s%s",
			  *r->why ? ": " : "", r->why);
}

/* No victim is left to be evicted. */
static bool is_evicted(const struct reclaim_rescue *r)
{
	for (size_t i = 0; i < r->victim_count; i++)
		if (!r->victims[i].pod.gone && !r->victims[i].pod.evicted_ns)
			return false;
	return true;
}

/* After the pause the plan would be out of date. */
static bool is_dropped(struct reclaim_state *s, const struct reclaim_rescue *r,
		       const struct reclaim_input *in, struct reclaim_output *out)
{
	if (!in->paused || r->evicted || is_evicted(r))
		return false;
	buf_printf(&out->narration,
		   "the plan for pod %s/%s is dropped: no pod was evicted before the pause\n",
		   r->namespace, r->name);
	leave_alone(s, r->uid, in->now_ns + PAUSED_NS);
	return true;
}

/* True: the rescue has ended, and the narration says how. */
static bool ends(struct reclaim_state *s, struct reclaim_rescue *r, const struct reclaim_options *o,
		 const struct reclaim_input *in, struct reclaim_output *out)
{
	const struct reclaim_seen *pod = find_seen(in, r->uid);

	see_victims(r, in);
	if (pod)
		snprintf(r->why, sizeof(r->why), "%s", pod->why);
	if (pod && !pod->gone && *pod->node) {
		buf_printf(&out->narration,
			   "pod %s/%s is bound to %s: %zu pods were evicted for it\n", r->namespace,
			   r->name, pod->node, r->evicted);
		return true;
	}
	if (pod && (pod->gone || pod->ending)) {
		buf_printf(&out->narration, "pod %s/%s is gone: no more pods are evicted for it\n",
			   r->namespace, r->name);
		return true;
	}
	if (is_dropped(s, r, in, out))
		return true;
	judge_waits(r, o, in->now_ns);
	if (!*r->failure.text && o->dry_run && is_evicted(r))
		error_set(&r->failure, "this is a dry run");
	if (!*r->failure.text)
		return false;
	buf_printf(&out->narration, "pod %s/%s is given up: %s\n", r->namespace, r->name,
		   r->failure.text);
	leave_alone(s, r->uid, in->now_ns + (r->outdated ? OUTDATED_NS : LEFT_NS));
	return true;
}

static void evict(struct reclaim_state *s, size_t at, const struct reclaim_options *o,
		  const struct reclaim_input *in, struct reclaim_output *out)
{
	struct reclaim_rescue *r = &s->rescues.of[at];

	for (size_t i = 0; i < r->victim_count; i++) {
		struct eviction *v = &r->victims[i].pod;

		if (!eviction_is_due(v, in->now_ns))
			continue;
		if (!act_rate_left(&s->rate, o->evictions_max, MINUTE_NS, in->now_ns)) {
			r->since_ns = in->now_ns; /* the limit is no fault of the pod's */
			return;
		}
		act_rate_add(&s->rate, in->now_ns);
		eviction_ask(v, in->now_ns);
		add_action(out, false, at, i);
		buf_printf(&out->narration, "pod %s/%s is evicted for %s/%s\n", v->namespace,
			   v->name, r->namespace, r->name);
	}
}

static void renew(struct reclaim_rescue *r, size_t at, struct reclaim_output *out)
{
	if (is_evicted(r)) {
		free(r->plan);
		r->plan = mem_strdup(RECLAIM_TAKEN_OVER);
	}
	add_action(out, true, at, 0);
}

static void advance(struct reclaim_state *s, const struct reclaim_options *o,
		    const struct reclaim_input *in, struct reclaim_output *out)
{
	for (size_t i = 0; i < s->rescues.count; i++) {
		struct reclaim_rescue *r = &s->rescues.of[i];

		if (in->paused)
			r->since_ns = in->now_ns;
		if (!r->claimed_ns || in->now_ns - r->claimed_ns >= RENEW_NS)
			renew(r, i, out);
		else if (!in->paused)
			evict(s, i, o, in, out);
	}
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Carried out already, or left alone. */
static bool is_known(const struct reclaim_state *s, const char *uid)
{
	return array_find_text(s->rescues.of, s->rescues.count, sizeof(*s->rescues.of), uid) ||
	       array_find_text(s->left, s->left_count, sizeof(*s->left), uid);
}

/* Narrated once, since the pod is left alone then. */
static bool may_evict(struct reclaim_state *s, const struct reclaim_options *o,
		      const struct reclaim_input *in, const struct reclaim_rescue *p,
		      struct reclaim_output *out)
{
	for (size_t i = 0; i < p->victim_count; i++) {
		const struct eviction *v = &p->victims[i].pod;

		if (act_may_move(o->act, v->namespace))
			continue;
		buf_printf(&out->narration,
			   "pod %s/%s is left alone: its victim %s/%s is of a namespace that "
			   "evenkeel leaves alone\n",
			   p->namespace, p->name, v->namespace, v->name);
		leave_alone(s, p->uid, in->now_ns + LEFT_NS);
		return false;
	}
	return true;
}

static void begin_plans(struct reclaim_state *s, const struct reclaim_options *o,
			const struct reclaim_input *in, struct reclaim_output *out)
{
	size_t left = act_rate_left(&s->rate, o->evictions_max, MINUTE_NS, in->now_ns);

	for (size_t i = 0; i < in->plans->count && s->rescues.count < RECLAIM_RESCUES_MOST; i++) {
		struct reclaim_rescue *p = &in->plans->of[i];

		if (is_known(s, p->uid) || !may_evict(s, o, in, p, out))
			continue;
		if (p->victim_count > left && left < o->evictions_max)
			return;
		left -= p->victim_count < left ? p->victim_count : left;
		buf_printf(&out->narration, "pod %s/%s gets room on %s: %zu pods are to go\n",
			   p->namespace, p->name, p->node, p->victim_count);
		add_rescue(s, p, in->now_ns);
		add_action(out, true, s->rescues.count - 1, 0);
	}
}

/* --- the step --------------------------------------------------------------------------------- */

void act_reclaim_step(struct reclaim_state *s, const struct reclaim_options *o,
		      const struct reclaim_input *in, struct reclaim_output *out)
{
	size_t kept = 0;

	/* A time without steps is no wait. */
	for (size_t i = 0; in->now_ns - s->last_ns > GAP_NS && i < s->rescues.count; i++)
		s->rescues.of[i].since_ns = in->now_ns;
	s->last_ns = in->now_ns;
	expire_left(s, in->now_ns);
	for (size_t i = 0; i < s->rescues.count; i++)
		if (ends(s, &s->rescues.of[i], o, in, out))
			reclaim_rescue_fini(&s->rescues.of[i]);
		else
			s->rescues.of[kept++] = s->rescues.of[i];
	s->rescues.count = kept;
	/* Claims of a former holder. */
	for (size_t i = 0; i < in->claims->count && s->rescues.count < RECLAIM_RESCUES_MOST; i++) {
		struct reclaim_rescue *claim = &in->claims->of[i];

		if (is_known(s, claim->uid))
			continue;
		buf_printf(&out->narration,
			   "the room of pod %s/%s on %s is kept, which another holder claimed\n",
			   claim->namespace, claim->name, claim->node);
		add_rescue(s, claim, in->now_ns)->claimed_ns = in->now_ns;
	}
	advance(s, o, in, out);
	if (!in->paused)
		begin_plans(s, o, in, out);
}

void act_reclaim_result(struct reclaim_state *s, const struct reclaim_action *a,
			enum act_result result, const char *answer, int64_t now_ns)
{
	struct reclaim_rescue *r = &s->rescues.of[a->rescue];

	if (!a->claims) {
		eviction_answer(&r->victims[a->victim].pod, result, answer, now_ns);
		/* Not by the others: one that cannot be evicted ends the rescue. */
		if (result == ACT_NEVER)
			r->failure = r->victims[a->victim].pod.failure;
		r->evicted += result == ACT_DONE;
		if (result == ACT_DONE || result == ACT_GONE)
			r->since_ns = now_ns;
	} else if (result == ACT_DONE) {
		r->claimed_ns = now_ns;
	} else if (result == ACT_GONE || result == ACT_NEVER) {
		r->outdated = result == ACT_GONE && (!r->claimed_ns || !is_evicted(r));
		error_set(&r->failure, "its room cannot be claimed: %.160s", answer);
	}
}
