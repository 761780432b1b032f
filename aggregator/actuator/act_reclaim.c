/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans begin in the order of the list, since each holds with those before it. A plan begins if
 * --max-evictions allows all of its evictions now. A plan with more victims than --max-evictions
 * begins after a minute without evictions, and takes several minutes.
 *
 * What can fail: the aggregator refuses the claim (the plan is dropped, and the next list has
 * another), a budget refuses an eviction for longer than the wait, a victim does not end, or the pod
 * is not bound. A pod that was given up is left alone for LEFT_NS.
 */
#include "aggregator/actuator/act_reclaim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

#define SECOND_NS INT64_C(1000000000)

/* PAUSED_NS is longer than the aggregator keeps a claim. */
static const int64_t MINUTE_NS = 60 * SECOND_NS, RENEW_NS = 10 * SECOND_NS,
		     PAUSED_NS = 60 * SECOND_NS, GAP_NS = 15 * SECOND_NS,
		     UNKNOWN_NS = 15 * SECOND_NS, OUTDATED_NS = 5 * SECOND_NS,
		     LEFT_NS = 600 * SECOND_NS, REFUSED_FIRST_NS = 2 * SECOND_NS,
		     REFUSED_MOST_NS = 30 * SECOND_NS;

/* The plan of a claim that needs no eviction. */
#define TAKEN_OVER "taken-over"

/* --- memory ----------------------------------------------------------------------------------- */

static void rescue_fini(struct reclaim_rescue *r)
{
	for (size_t i = 0; i < r->victim_count; i++) {
		free(r->victims[i].namespace);
		free(r->victims[i].name);
		free(r->victims[i].uid);
	}
	free(r->victims);
	free(r->plan);
	free(r->namespace);
	free(r->name);
	free(r->uid);
}

void reclaim_state_fini(struct reclaim_state *s)
{
	for (size_t i = 0; i < s->rescue_count; i++)
		rescue_fini(&s->rescues[i]);
	for (size_t i = 0; i < s->left_count; i++)
		free(s->left[i].uid);
	free(s->rescues);
	free(s->left);
	*s = (struct reclaim_state){0};
}

void reclaim_output_fini(struct reclaim_output *out)
{
	free(out->actions);
	buf_fini(&out->narration);
	*out = (struct reclaim_output){0};
}

static void add_action(struct reclaim_output *out, enum reclaim_kind kind, size_t rescue,
		       size_t victim)
{
	out->actions = mem_realloc(out->actions, (out->action_count + 1) * sizeof(*out->actions));
	out->actions[out->action_count++] = (struct reclaim_action){kind, rescue, victim};
}

static struct reclaim_rescue *add_rescue(struct reclaim_state *s, const struct reclaim_plan *p,
					 int64_t now_ns)
{
	struct reclaim_rescue *r;

	s->rescues = mem_realloc(s->rescues, (s->rescue_count + 1) * sizeof(*s->rescues));
	r = &s->rescues[s->rescue_count++];
	*r = (struct reclaim_rescue){
		.plan = mem_strdup(p->id ? p->id : TAKEN_OVER),
		.namespace = mem_strdup(p->pod.namespace),
		.name = mem_strdup(p->pod.name),
		.uid = mem_strdup(p->pod.uid),
		.victim_count = p->victim_count,
		.victims = mem_zalloc(p->victim_count + 1, sizeof(*r->victims)),
		.since_ns = now_ns,
	};
	for (size_t i = 0; i < p->victim_count; i++)
		r->victims[i] = (struct reclaim_victim){
			.namespace = mem_strdup(p->victims[i].namespace),
			.name = mem_strdup(p->victims[i].name),
			.uid = mem_strdup(p->victims[i].uid),
			.grace_ns = p->victims[i].grace_ns,
		};
	return r;
}

/* --- pods that are left alone ----------------------------------------------------------------- */

static bool is_left(const struct reclaim_state *s, const char *uid)
{
	for (size_t i = 0; i < s->left_count; i++)
		if (strcmp(s->left[i].uid, uid) == 0)
			return true;
	return false;
}

static void leave_alone(struct reclaim_state *s, const char *uid, int64_t until_ns)
{
	s->left = mem_realloc(s->left, (s->left_count + 1) * sizeof(*s->left));
	s->left[s->left_count++] = (struct reclaim_left){mem_strdup(uid), until_ns};
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

/* --- evictions of the last minute ------------------------------------------------------------- */

static size_t evictions_left(struct reclaim_state *s, const struct reclaim_options *o,
			     int64_t now_ns)
{
	size_t old = 0;

	while (old < s->time_count && now_ns - s->times_ns[old] >= MINUTE_NS)
		old++;
	s->time_count -= old;
	memmove(s->times_ns, s->times_ns + old, s->time_count * sizeof(s->times_ns[0]));
	return o->evictions_max > s->time_count ? o->evictions_max - s->time_count : 0;
}

/* --- rescues ---------------------------------------------------------------------------------- */

static const struct reclaim_seen *find_seen(const struct reclaim_input *in, const char *uid)
{
	for (size_t i = 0; i < in->seen_count; i++)
		if (strcmp(in->seen[i].uid, uid) == 0)
			return &in->seen[i];
	return NULL;
}

static void see_victims(struct reclaim_rescue *r, const struct reclaim_input *in)
{
	for (size_t i = 0; i < r->victim_count; i++) {
		struct reclaim_victim *v = &r->victims[i];
		const struct reclaim_seen *seen = find_seen(in, v->uid);

		if (!seen || v->gone)
			continue;
		if (seen->gone) {
			v->gone = true;
			r->since_ns = in->now_ns;
		} else if (seen->ending && !v->evicted_ns) {
			v->evicted_ns =
				in->now_ns; /* by another, or by a request without an answer */
		}
	}
}

static size_t count_gone(const struct reclaim_rescue *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->victim_count; i++)
		count += r->victims[i].gone;
	return count;
}

/* The failure of a pod that waits longer than it may. */
static void judge_waits(struct reclaim_rescue *r, const struct reclaim_options *o, int64_t now_ns)
{
	int64_t waited_ns = now_ns - r->since_ns;

	if (*r->failure.text || waited_ns <= o->wait_ns)
		return;
	for (size_t i = 0; i < r->victim_count; i++) {
		const struct reclaim_victim *v = &r->victims[i];

		if (v->gone || waited_ns <= o->wait_ns + (v->evicted_ns ? v->grace_ns : 0))
			continue;
		error_set(&r->failure, "its victim %s/%s %s", v->namespace, v->name,
			  v->evicted_ns	  ? "does not end"
			  : v->refused_ns ? "is refused by its budget"
					  : "cannot be evicted, or its room not be claimed");
		return;
	}
	if (count_gone(r) == r->victim_count)
		error_set(&r->failure, "its victims are gone and it is not bound%s%s",
			  *r->why ? ": " : "", r->why);
}

/* No victim is left to be evicted. */
static bool is_evicted(const struct reclaim_rescue *r)
{
	for (size_t i = 0; i < r->victim_count; i++)
		if (!r->victims[i].gone && !r->victims[i].evicted_ns)
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

static void end_rescues(struct reclaim_state *s, const struct reclaim_options *o,
			const struct reclaim_input *in, struct reclaim_output *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->rescue_count; i++)
		if (ends(s, &s->rescues[i], o, in, out))
			rescue_fini(&s->rescues[i]);
		else
			s->rescues[kept++] = s->rescues[i];
	s->rescue_count = kept;
}

static void evict(struct reclaim_state *s, size_t at, const struct reclaim_options *o,
		  const struct reclaim_input *in, struct reclaim_output *out)
{
	struct reclaim_rescue *r = &s->rescues[at];

	for (size_t i = 0; i < r->victim_count; i++) {
		struct reclaim_victim *v = &r->victims[i];

		if (v->gone || v->evicted_ns || v->retry_ns > in->now_ns)
			continue;
		if (!evictions_left(s, o, in->now_ns)) {
			r->since_ns = in->now_ns; /* the limit is no fault of the pod's */
			return;
		}
		s->times_ns[s->time_count++] = in->now_ns;
		v->evicted_ns = in->now_ns;
		add_action(out, RECLAIM_EVICT, at, i);
		buf_printf(&out->narration, "pod %s/%s is evicted for %s/%s\n", v->namespace,
			   v->name, r->namespace, r->name);
	}
}

static void renew(struct reclaim_rescue *r, size_t at, struct reclaim_output *out)
{
	if (is_evicted(r)) {
		free(r->plan);
		r->plan = mem_strdup(TAKEN_OVER);
	}
	add_action(out, RECLAIM_CLAIM, at, 0);
}

static void advance(struct reclaim_state *s, const struct reclaim_options *o,
		    const struct reclaim_input *in, struct reclaim_output *out)
{
	for (size_t i = 0; i < s->rescue_count; i++) {
		struct reclaim_rescue *r = &s->rescues[i];

		if (in->paused)
			r->since_ns = in->now_ns;
		if (!r->claimed_ns || in->now_ns - r->claimed_ns >= RENEW_NS)
			renew(r, i, out);
		else if (!in->paused)
			evict(s, i, o, in, out);
	}
}

/* --- plans ------------------------------------------------------------------------------------ */

static bool is_rescued(const struct reclaim_state *s, const char *uid)
{
	for (size_t i = 0; i < s->rescue_count; i++)
		if (strcmp(s->rescues[i].uid, uid) == 0)
			return true;
	return false;
}

/* Narrated once, since the pod is left alone then. */
static bool may_evict(struct reclaim_state *s, const struct reclaim_options *o,
		      const struct reclaim_input *in, const struct reclaim_plan *p,
		      struct reclaim_output *out)
{
	for (size_t i = 0; i < p->victim_count; i++) {
		if (act_may_move(o->act, p->victims[i].namespace))
			continue;
		buf_printf(&out->narration,
			   "pod %s/%s is left alone: its victim %s/%s is of a namespace that "
			   "evenkeel leaves alone\n",
			   p->pod.namespace, p->pod.name, p->victims[i].namespace,
			   p->victims[i].name);
		leave_alone(s, p->pod.uid, in->now_ns + LEFT_NS);
		return false;
	}
	return true;
}

static void begin_plans(struct reclaim_state *s, const struct reclaim_options *o,
			const struct reclaim_input *in, struct reclaim_output *out)
{
	size_t left = evictions_left(s, o, in->now_ns);

	for (size_t i = 0; i < in->plan_count && s->rescue_count < RECLAIM_RESCUES_MOST; i++) {
		const struct reclaim_plan *p = &in->plans[i];

		if (is_left(s, p->pod.uid) || is_rescued(s, p->pod.uid) ||
		    !may_evict(s, o, in, p, out))
			continue;
		if (p->victim_count > left && left < o->evictions_max)
			return;
		left -= p->victim_count < left ? p->victim_count : left;
		buf_printf(&out->narration, "pod %s/%s gets room on %s: %zu pods are to go\n",
			   p->pod.namespace, p->pod.name, p->node, p->victim_count);
		add_rescue(s, p, in->now_ns);
		add_action(out, RECLAIM_CLAIM, s->rescue_count - 1, 0);
	}
}

/* Claims of a former holder. */
static void take_over(struct reclaim_state *s, const struct reclaim_input *in,
		      struct reclaim_output *out)
{
	for (size_t i = 0; i < in->claim_count && s->rescue_count < RECLAIM_RESCUES_MOST; i++) {
		const struct reclaim_plan *claim = &in->claims[i];

		if (is_rescued(s, claim->pod.uid) || is_left(s, claim->pod.uid))
			continue;
		buf_printf(&out->narration,
			   "the room of pod %s/%s on %s is kept, which another holder claimed\n",
			   claim->pod.namespace, claim->pod.name, claim->node);
		add_rescue(s, claim, in->now_ns)->claimed_ns = in->now_ns;
	}
}

/* A time without steps is no wait. */
static void skip_gap(struct reclaim_state *s, int64_t now_ns)
{
	for (size_t i = 0; s->last_ns && now_ns - s->last_ns > GAP_NS && i < s->rescue_count; i++)
		s->rescues[i].since_ns = now_ns;
	s->last_ns = now_ns;
}

/* --- the step --------------------------------------------------------------------------------- */

void act_reclaim_step(struct reclaim_state *s, const struct reclaim_options *o,
		      const struct reclaim_input *in, struct reclaim_output *out)
{
	skip_gap(s, in->now_ns);
	expire_left(s, in->now_ns);
	end_rescues(s, o, in, out);
	take_over(s, in, out);
	advance(s, o, in, out);
	if (!in->paused)
		begin_plans(s, o, in, out);
}

static void claim_result(struct reclaim_rescue *r, enum act_result result, const char *answer,
			 int64_t now_ns)
{
	if (result == ACT_DONE)
		r->claimed_ns = now_ns;
	if (result != ACT_GONE && result != ACT_NEVER)
		return;
	r->outdated = result == ACT_GONE && !r->claimed_ns;
	error_set(&r->failure, "its room cannot be claimed: %.160s", answer);
}

static void evict_result(struct reclaim_rescue *r, struct reclaim_victim *v, enum act_result result,
			 const char *answer, int64_t now_ns)
{
	int64_t wait_ns = REFUSED_FIRST_NS << (v->tries < 8 ? v->tries : 8);

	if (result == ACT_UNKNOWN)
		wait_ns = UNKNOWN_NS;
	if (result == ACT_DONE || result == ACT_GONE) {
		r->evicted += result == ACT_DONE;
		r->since_ns = now_ns;
		return;
	}
	v->evicted_ns = 0;
	v->retry_ns = now_ns + (wait_ns < REFUSED_MOST_NS ? wait_ns : REFUSED_MOST_NS);
	v->tries++;
	if (result == ACT_NOT_YET)
		v->refused_ns = now_ns;
	if (result == ACT_NEVER)
		error_set(&r->failure, "its victim %s/%s cannot be evicted: %.160s", v->namespace,
			  v->name, answer);
}

void act_reclaim_result(struct reclaim_state *s, const struct reclaim_action *a,
			enum act_result result, const char *answer, int64_t now_ns)
{
	struct reclaim_rescue *r = &s->rescues[a->rescue];

	if (a->kind == RECLAIM_CLAIM)
		claim_result(r, result, answer, now_ns);
	else
		evict_result(r, &r->victims[a->victim], result, answer, now_ns);
}
