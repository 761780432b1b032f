/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods of a proven drain, in the order of the plan. A pod is evicted when all of these hold:
 *
 *   - pods of the earlier steps of its node are gone and replaced
 *   - the proof is not older than PROOF_AGE_NS
 *   - no other pod of its owner is without its replacement
 *   - fewer than in_flight_max pods are without their replacements
 *   - unless the nodes may be drained in any order: the nodes before are empty
 *
 * A replacement is there when the owner has as many Ready pods as before the eviction. An eviction
 * without an answer may have happened: the pod is asked for again after UNKNOWN_NS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/act.h"
#include "shared/mem.h"

#define SECOND_NS INT64_C(1000000000)

static const int64_t PROOF_AGE_NS = 600 * SECOND_NS, UNKNOWN_NS = 15 * SECOND_NS,
		     REFUSED_FIRST_NS = 2 * SECOND_NS, REFUSED_MOST_NS = 60 * SECOND_NS;

/* --- the proof -------------------------------------------------------------------------------- */

void act_drain_unprove(struct act_drain *d)
{
	for (size_t i = 0; i < d->move_count; i++) {
		free(d->moves[i].namespace);
		free(d->moves[i].name);
		free(d->moves[i].uid);
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
	struct act_move *to;

	d->moves = mem_realloc(d->moves, (d->move_count + 1) * sizeof(*d->moves));
	to = &d->moves[d->move_count++];
	*to = (struct act_move){
		.namespace = mem_strdup(m->namespace),
		.name = mem_strdup(m->name),
		.uid = mem_strdup(m->uid),
		.to = m->to ? mem_strdup(m->to) : NULL,
		.step = m->step,
	};
	for (size_t i = 0; i < old->move_count; i++)
		if (strcmp(old->moves[i].uid, m->uid) == 0) {
			to->refused_ns = old->moves[i].refused_ns;
			to->tries = old->moves[i].tries;
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

static const struct act_pod *find_pod(const struct act_node *node, const char *uid)
{
	for (size_t i = 0; i < node->pod_count; i++)
		if (strcmp(node->pods[i].uid, uid) == 0)
			return &node->pods[i];
	return NULL;
}

static const struct act_owner *find_owner(const struct act_cluster *c, const char *uid)
{
	for (size_t i = 0; i < c->owner_count; i++)
		if (strcmp(c->owners[i].uid, uid) == 0)
			return &c->owners[i];
	return NULL;
}

static void follow(struct act_move *m, const struct act_input *in, const struct act_node *node)
{
	const struct act_pod *pod = find_pod(node, m->uid);
	const struct act_owner *owner;

	if (pod && !*m->owner)
		snprintf(m->owner, sizeof(m->owner), "%s", pod->owner);
	/* By another, or by a request without an answer. */
	if (!m->evicted_ns && (pod ? pod->ending : m->asked && !m->gone))
		m->evicted_ns = in->now_ns;
	if (m->evicted_ns && pod && !pod->ending && in->now_ns - m->evicted_ns > UNKNOWN_NS) {
		if (!m->refused_ns)
			m->refused_ns = m->evicted_ns;
		m->evicted_ns = 0;
	}
	m->gone = !pod;
	owner = *m->owner ? find_owner(in->cluster, m->owner) : NULL;
	/* For good: its owner may have fewer replicas later. */
	m->replaced = m->gone && (m->replaced || !m->evicted_ns || !*m->owner ||
				  (owner && owner->ready >= m->ready_before));
}

static void judge_waits(const struct act_move *m, const struct act_options *o,
			const struct act_input *in, struct error *why)
{
	int64_t since_ns = m->evicted_ns ? m->evicted_ns : m->refused_ns;

	if (*m->failure.text)
		*why = m->failure;
	else if (since_ns && !m->replaced && in->now_ns - since_ns > o->pod_wait_ns)
		error_set(why, "pod %s/%s %s for longer than --max-pod-wait", m->namespace, m->name,
			  !m->evicted_ns ? "cannot be evicted"
			  : m->gone	 ? "has no Ready replacement"
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
	for (size_t i = 0; i < o->namespace_count; i++)
		if (strcmp(o->namespaces[i], name) == 0)
			return true;
	return !o->namespaces && strcmp(name, "kube-system") != 0;
}

/* --- evictions -------------------------------------------------------------------------------- */

/* Pods without their replacements: of an owner, or of all where it is NULL. */
static size_t count_in_flight(const struct act_state *s, const char *owner)
{
	size_t count = 0;

	for (size_t i = 0; i < s->drain_count; i++)
		for (size_t k = 0; k < s->drains[i].move_count; k++) {
			const struct act_move *m = &s->drains[i].moves[k];

			count += m->evicted_ns && !m->replaced &&
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

		if (other->proven && other->order < d->order && other->mark.phase == MARK_EVICTING)
			return false;
	}
	return true;
}

static bool is_old(const struct act_drain *d, int64_t now_ns)
{
	return d->proven && now_ns - d->proven_ns > PROOF_AGE_NS;
}

void act_expire_proofs(struct act_state *s, int64_t now_ns)
{
	bool flies = count_in_flight(s, NULL) > 0;

	for (size_t i = 0; i < s->drain_count && !flies; i++) {
		struct act_drain *d = &s->drains[i];

		if (!is_old(d, now_ns))
			continue;
		d->proven = false;
		d->since_ns = now_ns; /* the wait for the next proof */
	}
}

void act_drain_evict(struct act_state *s, struct act_drain *d, const struct act_options *o,
		     const struct act_input *in, const struct act_node *node,
		     struct act_output *out)
{
	for (size_t i = 0; i < d->move_count && is_its_turn(s, d) && !is_old(d, in->now_ns); i++) {
		struct act_move *m = &d->moves[i];
		const struct act_owner *owner = find_owner(in->cluster, m->owner);
		struct act_action *a;

		if (!act_may_move(o, m->namespace))
			error_set(&m->failure,
				  "pod %s/%s is of a namespace that evenkeel leaves alone",
				  m->namespace, m->name);
		if (m->gone || m->evicted_ns || m->retry_ns > in->now_ns || *m->failure.text ||
		    !earlier_steps_are_done(d, m) || count_in_flight(s, m->owner) ||
		    count_in_flight(s, NULL) >= o->in_flight_max || (*m->owner && !owner))
			continue;
		m->ready_before = owner ? owner->ready : 0;
		m->evicted_ns = in->now_ns;
		m->asked = true;
		a = act_output_add(out, ACT_EVICT, node);
		a->move = m;
		error_set(&a->text, "pod %s/%s is evicted, and expected on %s", m->namespace,
			  m->name, m->to ? m->to : "no node");
	}
}

void act_result(struct act_state *s, const struct act_action *a, enum act_result result,
		const char *answer, int64_t now_ns)
{
	struct act_move *m = a->move;

	if (a->kind != ACT_EVICT)
		return;
	s->wave.evictions += result == ACT_DONE;
	s->wave.refused += result == ACT_NOT_YET;
	if (result == ACT_DONE || result == ACT_GONE)
		return;
	m->evicted_ns = 0;
	if (result == ACT_NEVER)
		error_set(&m->failure, "pod %s/%s cannot be evicted: %s", m->namespace, m->name,
			  answer);
	if (!m->refused_ns)
		m->refused_ns = now_ns;
	if (result == ACT_UNKNOWN)
		m->retry_ns = now_ns + UNKNOWN_NS;
	if (result != ACT_NOT_YET)
		return;
	m->retry_ns = REFUSED_FIRST_NS << (m->tries < 8 ? m->tries : 8);
	m->retry_ns = now_ns + (m->retry_ns < REFUSED_MOST_NS ? m->retry_ns : REFUSED_MOST_NS);
	m->tries++;
}
