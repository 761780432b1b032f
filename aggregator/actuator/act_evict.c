/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods of a proven drain, in the order of the plan. A pod is evicted when all of these hold:
 *
 *   - pods of the earlier steps of its node are gone and replaced
 *   - the proof is not older than PROOF_AGE_NS
 *   - no other pod of its owner is without its replacement
 *   - fewer than in_flight_max pods are without their replacements, all of them of its zone
 *   - fewer than hour_max pods were evicted in the last hour
 *   - unless the nodes may be drained in any order: the nodes before are empty
 *
 * A replacement is there when the owner has as many Ready pods as before the eviction. An eviction
 * without an answer may have happened: the pod is asked for again after UNKNOWN_NS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/act.h"
#include "shared/array.h"
#include "shared/mem.h"

#define SECOND_NS INT64_C(1000000000)

static const int64_t PROOF_AGE_NS = 600 * SECOND_NS, UNKNOWN_NS = 15 * SECOND_NS,
		     REFUSED_FIRST_NS = 2 * SECOND_NS, REFUSED_MOST_NS = 60 * SECOND_NS;

/* --- an eviction ------------------------------------------------------------------------------ */

void eviction_init(struct eviction *v, const char *namespace, const char *name, const char *uid)
{
	*v = (struct eviction){.namespace = mem_strdup(namespace),
			       .name = mem_strdup(name),
			       .uid = mem_strdup(uid)};
}

void eviction_fini(struct eviction *v)
{
	free(v->namespace);
	free(v->name);
	free(v->uid);
}

void eviction_see(struct eviction *v, bool there, bool ends, int64_t now_ns)
{
	/* By another, or by a request without an answer. */
	if (!v->evicted_ns && (there ? ends : v->asked && !v->gone))
		v->evicted_ns = now_ns;
	if (v->evicted_ns && there && !ends && now_ns - v->evicted_ns > UNKNOWN_NS) {
		if (!v->refused_ns)
			v->refused_ns = v->evicted_ns;
		v->evicted_ns = 0;
	}
	v->gone = !there;
}

bool eviction_is_due(const struct eviction *v, int64_t now_ns)
{
	return !v->gone && !v->evicted_ns && v->retry_ns <= now_ns && !*v->failure.text;
}

void eviction_ask(struct eviction *v, int64_t now_ns)
{
	v->evicted_ns = now_ns;
	v->asked = true;
}

void eviction_answer(struct eviction *v, enum act_result result, const char *answer, int64_t now_ns)
{
	int64_t wait_ns = UNKNOWN_NS;

	if (result == ACT_DONE || result == ACT_GONE)
		return;
	v->evicted_ns = 0;
	if (!v->refused_ns)
		v->refused_ns = now_ns;
	if (result == ACT_NEVER)
		error_set(&v->failure, "pod %s/%s cannot be evicted: %.160s", v->namespace, v->name,
			  answer);
	if (result == ACT_NOT_YET) {
		wait_ns = REFUSED_FIRST_NS << (v->tries < 8 ? v->tries : 8);
		v->tries++;
	}
	v->retry_ns = now_ns + (wait_ns < REFUSED_MOST_NS ? wait_ns : REFUSED_MOST_NS);
}

size_t act_rate_left(struct act_rate *r, size_t most, int64_t window_ns, int64_t now_ns)
{
	size_t old = 0;

	while (old < r->count && now_ns - r->times_ns[old] >= window_ns)
		old++;
	r->count -= old;
	memmove(r->times_ns, r->times_ns + old, r->count * sizeof(r->times_ns[0]));
	return most > r->count ? most - r->count : 0;
}

void act_rate_add(struct act_rate *r, int64_t now_ns)
{
	r->times_ns[r->count++] = now_ns;
}

/* --- the proof -------------------------------------------------------------------------------- */

void act_drain_unprove(struct act_drain *d)
{
	for (size_t i = 0; i < d->move_count; i++) {
		eviction_fini(&d->moves[i].pod);
		free(d->moves[i].to);
	}
	free(d->moves);
	d->moves = NULL;
	d->move_count = 0;
	d->proven = false;
}

/* old: of the last proof, whose refusals go on. */
static void add_move(struct act_drain *d, const struct verify_move *m, const struct act_drain *old)
{
	struct act_move *to = &ARRAY_ADD(d->moves, d->move_count);

	*to = (struct act_move){.to = m->to ? mem_strdup(m->to) : NULL, .step = m->step};
	eviction_init(&to->pod, m->namespace, m->name, m->uid);
	for (size_t i = 0; i < old->move_count; i++)
		if (strcmp(old->moves[i].pod.uid, m->uid) == 0) {
			to->pod.refused_ns = old->moves[i].pod.refused_ns;
			to->pod.tries = old->moves[i].pod.tries;
		}
}

bool act_drain_prove(struct act_drain *d, const struct act_plan *plan, int64_t now_ns)
{
	struct act_drain old = *d;
	const struct verify_plan *proof = plan->proof;
	size_t at = 0;

	while (proof && at < proof->node_count &&
	       (strcmp(proof->nodes[at].name, d->node) != 0 ||
		strcmp(proof->nodes[at].uid, d->uid) != 0))
		at++;
	if (!proof || at == proof->node_count)
		return false;
	d->moves = NULL;
	d->move_count = 0;
	for (size_t i = 0; i < proof->move_count; i++)
		if (proof->moves[i].node == at)
			add_move(d, &proof->moves[i], &old);
	act_drain_unprove(&old);
	d->proven = true;
	d->proven_ns = now_ns;
	d->any_order = plan->any_order;
	d->order = at;
	return true;
}

/* --- pods that leave -------------------------------------------------------------------------- */

static const struct act_owner *find_owner(const struct act_cluster *c, const char *uid)
{
	return array_find_text(c->owners, c->owner_count, sizeof(struct act_owner), uid);
}

static void follow(struct act_move *m, const struct act_input *in, const struct act_node *node)
{
	const struct act_pod *pod =
		array_find_text(node->pods, node->pod_count, sizeof(*pod), m->pod.uid);
	const struct act_owner *owner;

	if (pod && !*m->owner)
		snprintf(m->owner, sizeof(m->owner), "%s", pod->owner);
	eviction_see(&m->pod, pod, pod && pod->ending, in->now_ns);
	owner = *m->owner ? find_owner(in->cluster, m->owner) : NULL;
	/* For good: its owner may have fewer replicas later. */
	m->replaced = m->pod.gone && (m->replaced || !m->pod.evicted_ns || !*m->owner ||
				      (owner && owner->ready >= m->ready_before));
}

static void judge_waits(const struct act_move *m, const struct act_options *o,
			const struct act_input *in, struct error *why)
{
	const struct eviction *v = &m->pod;
	int64_t since_ns = v->evicted_ns ? v->evicted_ns : v->refused_ns;

	if (*v->failure.text)
		*why = v->failure;
	else if (since_ns && !m->replaced && in->now_ns - since_ns > o->pod_wait_ns)
		error_set(why, "pod %s/%s %s for longer than --max-pod-wait", v->namespace, v->name,
			  !v->evicted_ns ? "cannot be evicted"
			  : v->gone	 ? "has no Ready replacement"
					 : "does not end");
}

bool act_drain_follow(struct act_drain *d, const struct act_options *o, const struct act_input *in,
		      const struct act_node *node, struct error *why)
{
	bool done = true;

	for (size_t i = 0; i < d->move_count; i++) {
		follow(&d->moves[i], in, node);
		if (!*why->text)
			judge_waits(&d->moves[i], o, in, why);
		done &= d->moves[i].replaced;
	}
	if (!done || !node->pod_count)
		d->left_ns = 0;
	else if (!d->left_ns)
		d->left_ns = in->now_ns;
	else if (in->now_ns - d->left_ns > o->pod_wait_ns)
		error_set(why, "pod %s/%s is in no move, and stays for longer than --max-pod-wait",
			  node->pods->namespace, node->pods->name);
	return done && !node->pod_count;
}

bool act_may_move(const struct act_options *o, const char *name)
{
	if (!o->namespaces)
		return strcmp(name, "kube-system") != 0;
	return array_find_text(o->namespaces, o->namespace_count, sizeof(char *), name);
}

/* --- evictions -------------------------------------------------------------------------------- */

/* Pods without their replacements: of an owner, or of nodes outside a zone, or of all. */
static size_t count_in_flight(const struct act_state *s, const char *owner, const char *not_zone)
{
	size_t count = 0;

	for (size_t i = 0; i < s->drain_count; i++)
		for (size_t k = 0; k < s->drains[i].move_count &&
				   !(not_zone && strcmp(s->drains[i].zone, not_zone) == 0);
		     k++) {
			const struct act_move *m = &s->drains[i].moves[k];

			count += m->pod.evicted_ns && !m->replaced &&
				 (!owner || (*owner && strcmp(m->owner, owner) == 0));
		}
	return count;
}

static bool earlier_steps_are_done(const struct act_drain *d, const struct act_move *m)
{
	for (size_t i = 0; i < d->move_count; i++)
		if (d->moves[i].step < m->step && !d->moves[i].replaced)
			return false;
	return true;
}

static bool is_its_turn(const struct act_state *s, const struct act_drain *d)
{
	for (size_t i = 0; !d->any_order && i < s->drain_count; i++) {
		const struct act_drain *other = &s->drains[i];

		if (other->proven && other->order < d->order && other->mark.phase <= MARK_EVICTING)
			return false;
	}
	return true;
}

static bool is_old(const struct act_drain *d, int64_t now_ns)
{
	return d->proven && now_ns - d->proven_ns > PROOF_AGE_NS;
}

static void postpone(int64_t *since_ns, int64_t by_ns)
{
	*since_ns += *since_ns ? by_ns : 0;
}

void act_pass_gap(struct act_state *s, int64_t gap_ns)
{
	postpone(&s->blind_ns, gap_ns);
	for (size_t i = 0; i < s->hot_count; i++)
		s->hot[i].cool_ns = 0;
	for (size_t i = 0; i < s->drain_count; i++) {
		struct act_drain *d = &s->drains[i];

		d->proven_ns -= PROOF_AGE_NS;
		postpone(&d->since_ns, gap_ns);
		postpone(&d->left_ns, gap_ns);
		for (size_t k = 0; k < d->move_count; k++) {
			postpone(&d->moves[k].pod.evicted_ns, gap_ns);
			postpone(&d->moves[k].pod.refused_ns, gap_ns);
		}
	}
}

void act_expire_proofs(struct act_state *s, int64_t now_ns)
{
	bool flies = count_in_flight(s, NULL, NULL) > 0;

	for (size_t i = 0; i < s->drain_count && !flies; i++) {
		struct act_drain *d = &s->drains[i];

		if (!is_old(d, now_ns))
			continue;
		d->proven = false;
		d->since_ns = now_ns; /* the wait for the next proof */
	}
}

/* Whether the pod may be evicted now. */
static bool may_go(struct act_state *s, const struct act_drain *d, const struct act_move *m,
		   const struct act_options *o, const struct act_input *in,
		   const struct act_owner *owner)
{
	return eviction_is_due(&m->pod, in->now_ns) && earlier_steps_are_done(d, m) &&
	       !count_in_flight(s, m->owner, NULL) && !count_in_flight(s, NULL, d->zone) &&
	       count_in_flight(s, NULL, NULL) < o->in_flight_max &&
	       act_rate_left(&s->rate, o->hour_max, 3600 * SECOND_NS, in->now_ns) &&
	       (!*m->owner || owner);
}

void act_drain_evict(struct act_state *s, struct act_drain *d, const struct act_options *o,
		     const struct act_input *in, const struct act_node *node,
		     struct act_output *out)
{
	for (size_t i = 0; i < d->move_count && is_its_turn(s, d) && !is_old(d, in->now_ns); i++) {
		struct act_move *m = &d->moves[i];
		const struct act_owner *owner = find_owner(in->cluster, m->owner);
		struct act_action *a;

		if (!act_may_move(o, m->pod.namespace))
			error_set(&m->pod.failure,
				  "pod %s/%s is of a namespace that evenkeel leaves alone",
				  m->pod.namespace, m->pod.name);
		if (!may_go(s, d, m, o, in, owner))
			continue;
		m->ready_before = owner ? owner->ready : 0;
		eviction_ask(&m->pod, in->now_ns);
		act_rate_add(&s->rate, in->now_ns);
		a = act_output_add(out, ACT_EVICT, node);
		a->pod = &m->pod;
		error_set(&a->text, "pod %s/%s is evicted, and expected on %s", m->pod.namespace,
			  m->pod.name, m->to ? m->to : "no node");
	}
}

void act_result(struct act_state *s, const struct act_action *a, enum act_result result,
		const char *answer, int64_t now_ns)
{
	if (a->kind != ACT_EVICT)
		return;
	s->wave.evictions += result == ACT_DONE;
	s->wave.refused += result == ACT_NOT_YET;
	eviction_answer(a->pod, result, answer, now_ns);
}
