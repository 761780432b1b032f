/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step, in this order:
 *
 *   the drains are read from the nodes' annotations, so a successor continues all of them
 *   a node that a person, an autoscaler or its deletion took away is rolled back or forgotten
 *   a hot destination, or a drain that ends with an evicted pod without a Ready replacement, stops the
 *   wave: each of its nodes is rolled back
 *   no pod is evicted while real use of a destination is unknown
 *   a pod that cannot leave, or is not replaced, for --max-pod-wait has its node rolled back
 *   (judge_waits() in act_evict.c)
 *   each drain advances by one phase at most
 *   a new wave is claimed when no drain is left
 *
 * No wave claims a node for 24 hours after it was drained and takes pods again, or for 10 minutes
 * after it was rolled back. A request of a person ignores the former, not the latter
 * (judge_rest()).
 *
 * Waits are bounded, so that no cordon stays without a drain: the first proof and the end of a
 * drain by PROOF_NS each, a later proof by PROOF_NS and --max-pod-wait, pods by --max-pod-wait, a
 * pause by PAUSE_NS. Only a node that --after deleted is awaited without a bound, or until a person
 * undoes it. After more than GAP_NS without a step, drains are proven anew, as after 10 minutes.
 *
 * act_evict.c: the proof, pods that leave, and which of them is evicted next.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/act.h"
#include "shared/array.h"
#include "shared/mem.h"

#define SECOND_NS INT64_C(1000000000)

static const int64_t GAP_NS = 30 * SECOND_NS, PROOF_NS = 120 * SECOND_NS,
		     PAUSE_NS = 540 * SECOND_NS, HOT_NS = 10 * SECOND_NS,
		     ROLLED_BACK_REST_NS = 600 * SECOND_NS, DRAINED_REST_NS = 24 * 3600 * SECOND_NS;

/* --- memory ----------------------------------------------------------------------------------- */

static void drop_drain(struct act_state *s, size_t at)
{
	struct act_drain *d = &s->drains[at];

	act_drain_unprove(d);
	free(d->node);
	free(d->uid);
	free(d->zone);
	s->drain_count--;
	memmove(d, d + 1, (s->drain_count - at) * sizeof(*d));
}

static void forget_wave(struct act_wave *w)
{
	while (w->ended_count)
		free(w->ended[--w->ended_count].node);
	free(w->ended);
	*w = (struct act_wave){.begin_ns = 0};
}

static void forget_left(struct act_state *s)
{
	while (s->left_count)
		free(s->left[--s->left_count].node);
	free(s->left);
}

void act_state_fini(struct act_state *s)
{
	while (s->drain_count)
		drop_drain(s, s->drain_count - 1);
	for (size_t i = 0; i < s->hot_count; i++)
		free(s->hot[i].node);
	free(s->drains);
	free(s->hot);
	forget_left(s);
	forget_wave(&s->wave);
	memset(s, 0, sizeof(*s));
}

void act_output_fini(struct act_output *out)
{
	free(out->actions);
	buf_fini(&out->narration);
}

struct act_action *act_output_add(struct act_output *out, enum act_kind kind,
				  const struct act_node *node)
{
	ARRAY_ADD(out->actions, out->action_count) =
		(struct act_action){.kind = kind, .node = node->name, .uid = node->uid};
	return &out->actions[out->action_count - 1];
}

/* --- marks ------------------------------------------------------------------------------------ */

static struct act_action *patch(struct act_output *out, const struct act_options *o,
				const struct act_input *in, const struct act_node *node,
				enum mark_phase phase)
{
	struct act_action *a = act_output_add(out, ACT_PATCH_NODE, node);

	assert(mark_may_follow(node->mark.phase, phase));
	a->mark = node->mark;
	a->mark.phase = phase;
	a->mark.since_ns = in->wall_ns;
	if (!*a->mark.plan)
		memcpy(a->mark.plan, "unknown", sizeof("unknown"));
	strncpy(a->mark.holder, o->holder, sizeof(a->mark.holder) - 1);
	a->tainted = phase >= MARK_TAINTED && phase <= MARK_DRAINED;
	a->cordon = phase == MARK_TAINTED ? ACT_CORDON : ACT_CORDON_STAYS;
	return a;
}

/* The cordon of a node with evenkeel's taint is evenkeel's. */
static void roll_back(struct act_state *s, struct act_output *out, const struct act_options *o,
		      const struct act_input *in, const struct act_node *node, const char *why)
{
	struct act_action *a = patch(out, o, in, node, MARK_ROLLED_BACK);

	if (node->cordoned && (node->tainted || node->mark.cordoned))
		a->cordon = ACT_CORDON_ENDS;
	a->mark.cordoned = false;
	error_set(&a->text, "node %s is rolled back: %s", node->name, why);
	if (!*s->wave.reason.text)
		error_set(&s->wave.reason, "%s: %s", node->name, why);
}

/* --- drains and nodes ------------------------------------------------------------------------- */

static const struct act_node *find_node(const struct act_cluster *c, const char *name)
{
	return array_find_text(c->nodes, c->node_count, sizeof(struct act_node), name);
}

static struct act_drain *find_drain(const struct act_state *s, const char *node)
{
	return array_find_text(s->drains, s->drain_count, sizeof(struct act_drain), node);
}

bool act_is_ours(const struct act_node *n)
{
	if (n->mark.phase == MARK_DRAINED)
		return n->tainted && !n->cordoned;
	return n->tainted || mark_is_active(n->mark.phase);
}

/* Of a phase that a former holder began: its wait for a proof goes on. Clocks may differ. */
static int64_t age_of(const struct mark *m, int64_t wall_ns)
{
	int64_t age_ns = wall_ns - m->since_ns;

	if (!mark_is_active(m->phase) || m->phase >= MARK_EVICTING || age_ns < 0)
		return 0;
	return age_ns < 2 * PROOF_NS ? age_ns : 2 * PROOF_NS;
}

static size_t count_evicted(const struct act_drain *d)
{
	size_t count = 0;

	for (size_t i = 0; i < d->move_count; i++)
		count += d->moves[i].pod.asked;
	return count;
}

/* A verified node that is no longer listed was deleted by --after: it counts as drained. */
static void record(struct act_state *s, const struct act_drain *d, const struct act_input *in)
{
	struct act_wave *w = &s->wave;
	bool drained =
		d->mark.phase == MARK_DRAINED || (!d->listed && d->mark.phase == MARK_VERIFIED);

	ARRAY_ADD(w->ended, w->ended_count) = (struct act_ended){
		.node = mem_strdup(d->node),
		.drained = drained,
		.moves = d->move_count,
		.evictions = count_evicted(d),
		.seconds = (in->wall_ns - w->begin_ns) / SECOND_NS,
	};
	w->drained += drained;
}

/* A drain ends. An evicted pod of it that was not replaced stops the wave. */
static void end_drain(struct act_state *s, struct act_drain *d, const struct act_input *in)
{
	record(s, d, in);
	for (size_t i = 0; i < d->move_count && !*s->stop.text; i++)
		if (d->moves[i].pod.evicted_ns && !d->moves[i].replaced)
			error_set(&s->stop, "pod %s/%s of node %s has no Ready replacement",
				  d->moves[i].pod.namespace, d->moves[i].pod.name, d->node);
	drop_drain(s, (size_t)(d - s->drains));
}

static void adopt(struct act_state *s, const struct act_input *in, const struct act_node *n)
{
	struct act_drain *d = find_drain(s, n->name);

	if (d && strcmp(d->uid, n->uid) != 0) {
		end_drain(s, d, in);
		d = NULL;
	}
	if (!d && !act_is_ours(n))
		return;
	if (d) {
		if (d->mark.phase != n->mark.phase)
			d->since_ns = in->now_ns;
	} else {
		if (!s->drain_count) {
			forget_wave(&s->wave);
			s->wave.begin_ns = in->wall_ns;
			memcpy(s->wave.plan, n->mark.plan, sizeof(s->wave.plan));
		}
		d = &ARRAY_ADD(s->drains, s->drain_count);
		*d = (struct act_drain){.node = mem_strdup(n->name),
					.uid = mem_strdup(n->uid),
					.zone = mem_strdup(n->zone ? n->zone : ""),
					.since_ns = in->now_ns - age_of(&n->mark, in->wall_ns)};
	}
	d->mark = n->mark;
	d->listed = true;
}

/* The drains are those of the cluster now. */
static void follow_nodes(struct act_state *s, const struct act_input *in, struct act_output *out)
{
	bool any = s->drain_count > 0;

	for (size_t i = 0; i < s->drain_count; i++)
		s->drains[i].listed = false;
	for (size_t i = 0; i < in->cluster->node_count; i++)
		adopt(s, in, &in->cluster->nodes[i]);
	for (size_t i = s->drain_count; i-- > 0;) {
		struct act_drain *d = &s->drains[i];
		const struct act_node *n = d->listed ? find_node(in->cluster, d->node) : NULL;

		if (n && act_is_ours(n))
			continue;
		if (!n)
			buf_printf(&out->narration, "node %s is gone\n", d->node);
		end_drain(s, d, in);
	}
	s->wave_ended = any && !s->drain_count;
	if (s->wave_ended) {
		s->wave.end_ns = in->wall_ns;
		s->stop = (struct error){""};
	}
}

/* --- destinations ----------------------------------------------------------------------------- */

/* NULL: within the caps. */
static const char *broken_number(const struct act_use *u, struct error *text)
{
	if (u->cpu_milli > u->cpu_cap_milli)
		error_set(text, "CPU %.0fm above its cap of %.0fm", u->cpu_milli, u->cpu_cap_milli);
	else if (u->mem_bytes > u->mem_cap_bytes)
		error_set(text, "memory %.0f MiB above its cap of %.0f MiB",
			  u->mem_bytes / (1 << 20), u->mem_cap_bytes / (1 << 20));
	else if (u->contention > u->contention_cap)
		error_set(text, "contention %.3f above %.3f", u->contention, u->contention_cap);
	else
		return NULL;
	return text->text;
}

/*
 * An interval above a cap counts from the end of the one before. Without a drain, no destination is
 * hot.
 */
static void watch_destinations(struct act_state *s, const struct act_input *in)
{
	bool blind = false;

	for (size_t i = 0; i < s->hot_count; i++)
		s->hot[i].listed = false;
	for (size_t i = 0; i < in->use_count && s->drain_count; i++) {
		const struct act_use *u = &in->uses[i];
		struct act_hot *hot;
		struct error text = {""};
		bool broken = broken_number(u, &text);
		size_t at;

		s->hot = array_put_name(s->hot, &s->hot_count, sizeof(*hot), u->node, &at);
		hot = &s->hot[at];
		blind |= (isnan(u->cpu_milli) && !isnan(u->cpu_cap_milli)) ||
			 (isnan(u->mem_bytes) && !isnan(u->mem_cap_bytes));
		hot->listed = true;
		if ((!broken && u->end_ns) || !hot->cool_ns)
			hot->cool_ns = u->end_ns;
		/* end_ns has a resolution of one second. */
		if (!broken || u->end_ns - hot->cool_ns < HOT_NS - SECOND_NS || *s->stop.text)
			continue;
		s->wave.destination_hot = true;
		error_set(&s->stop, "destination %s: %s for 10 s", hot->node, text.text);
	}
	for (size_t i = 0; i < s->hot_count; i++)
		if (!s->hot[i].listed)
			s->hot[i].cool_ns = 0;
	if (!blind)
		s->blind_ns = 0;
	else if (!s->blind_ns)
		s->blind_ns = in->now_ns;
}

/* --- a drain ---------------------------------------------------------------------------------- */

/* Why the drain cannot go on, whatever its phase. */
static void find_trouble(const struct act_state *s, const struct act_drain *d,
			 const struct act_input *in, const struct act_node *n, struct error *why)
{
	int64_t waited_ns = in->now_ns - d->since_ns;

	if (n->foreign)
		error_set(why, "%s", n->foreign);
	else if (!mark_is_active(d->mark.phase))
		error_set(why,
			  "its annotation " MARK_ANNOTATION " is %s, its taint or cordon is there",
			  mark_phase_name(d->mark.phase));
	else if (d->mark.phase == MARK_CLAIMED && (n->cordoned || n->tainted))
		error_set(why, "it was cordoned or tainted by another");
	else if (d->mark.phase > MARK_CLAIMED && (!n->tainted || !n->cordoned))
		error_set(why, "its taint or its cordon was removed");
	else if (n->wants_undo)
		error_set(why, "a person asked for it");
	else if (*s->stop.text)
		*why = s->stop;
	else if (s->blind_ns && in->now_ns - s->blind_ns > PROOF_NS)
		error_set(why, "real use of destinations is unknown for 2 minutes");
	else if (in->paused && in->now_ns - s->paused_ns > PAUSE_NS)
		error_set(why, "the pause lasts for longer than 9 minutes");
	else if (d->mark.phase == MARK_VERIFIED && n->pod_count)
		error_set(why, "pod %s/%s came to it", n->pods->namespace, n->pods->name);
	else if (d->mark.phase == MARK_VERIFIED && waited_ns > PROOF_NS && !in->paused)
		error_set(why, "the action of --after failed for 2 minutes");
	else if (d->mark.phase < MARK_EVICTING && waited_ns > PROOF_NS && !in->paused)
		error_set(why, "planner and checker did not agree within 2 minutes: %s",
			  *in->plan->refusal ? in->plan->refusal : "no plan has the node");
}

static void finish(const struct act_options *o, const struct act_input *in,
		   const struct act_node *n, struct act_output *out)
{
	struct act_action *a;

	if (o->after == ACT_DELETE_NODE) {
		a = act_output_add(out, ACT_REMOVE_NODE, n);
		error_set(&a->text, "node %s is drained and deleted", n->name);
		return;
	}
	a = patch(out, o, in, n, MARK_DRAINED);
	error_set(&a->text, "node %s is drained", n->name);
	if (o->after == ACT_KEEP)
		return;
	a->tainted = false;
	a->cordon = ACT_CORDON_ENDS;
	a->mark.cordoned = false;
}

static void advance_evicting(struct act_state *s, struct act_drain *d, const struct act_options *o,
			     const struct act_input *in, const struct act_node *n,
			     struct act_output *out)
{
	struct error why = {""};
	struct act_action *a;
	bool done;

	if (!d->proven && n->pod_count && !act_drain_prove(d, in->plan, in->now_ns)) {
		if (in->now_ns - d->since_ns <= PROOF_NS + o->pod_wait_ns)
			return;
		error_set(&why, "its other pods were not proven in time: %s", in->plan->refusal);
		roll_back(s, out, o, in, n, why.text);
		return;
	}
	done = act_drain_follow(d, o, in, n, &why);
	if (*why.text) {
		roll_back(s, out, o, in, n, why.text);
	} else if (done) {
		a = patch(out, o, in, n, MARK_VERIFIED);
		error_set(&a->text, "node %s is empty, and its pods are replaced", n->name);
	} else if (!in->paused && !s->blind_ns) {
		act_drain_evict(s, d, o, in, n, out);
	}
}

/* Deleted by --after, and held by a finalizer. Pods that a rollback lets in would end with the node. */
static bool is_deleted(const struct act_drain *d, const struct act_options *o,
		       const struct act_node *n)
{
	return d->mark.phase == MARK_VERIFIED && o->after == ACT_DELETE_NODE && n->ending &&
	       !n->wants_undo;
}

static void advance(struct act_state *s, struct act_drain *d, const struct act_options *o,
		    const struct act_input *in, const struct act_node *n, struct act_output *out)
{
	struct error why = {""};
	struct act_action *a;

	if (is_deleted(d, o, n))
		return;
	find_trouble(s, d, in, n, &why);
	if (*why.text) {
		roll_back(s, out, o, in, n, why.text);
	} else if (d->mark.phase == MARK_EVICTING) {
		advance_evicting(s, d, o, in, n, out);
	} else if (in->paused) {
		return;
	} else if (d->mark.phase == MARK_VERIFIED) {
		finish(o, in, n, out);
	} else if (d->mark.phase == MARK_CLAIMED) {
		a = patch(out, o, in, n, MARK_TAINTED);
		a->mark.cordoned = true;
		error_set(&a->text, "node %s is cordoned and tainted", n->name);
	} else if (!n->pod_count || d->proven || act_drain_prove(d, in->plan, in->now_ns)) {
		a = patch(out, o, in, n, MARK_EVICTING);
		error_set(&a->text, "node %s: planner and checker agree on %zu moves", n->name,
			  d->move_count);
	}
}

/* --- claims ----------------------------------------------------------------------------------- */

/* Whether a drain of the node ended too recently for another one. */
static void judge_rest(const struct act_input *in, const struct act_node *n, struct error *why)
{
	int64_t age_ns = llabs(in->wall_ns - n->mark.since_ns);

	if (n->mark.phase == MARK_DRAINED && !n->wants_drain && age_ns < DRAINED_REST_NS)
		error_set(why, "it was drained less than 24 hours ago: evenkeel act drain drains "
			       "it again");
	else if (n->mark.phase == MARK_ROLLED_BACK && age_ns < ROLLED_BACK_REST_NS)
		error_set(why, "it was rolled back less than 10 minutes ago");
}

/* Why the node is not claimed, "" else; at: its number in the offer. */
static void judge_claim(const struct act_options *o, const struct act_input *in,
			const struct act_node *n, size_t at, struct error *why)
{
	const struct verify_plan *p = in->plan->offer;

	if (n->foreign)
		error_set(why, "%s", n->foreign);
	else if (n->cordoned)
		error_set(why, "it is cordoned");
	else if (!n->selected)
		error_set(why, "--node-selector does not match it");
	else if (n->mark.phase == MARK_GARBLED)
		error_set(why, "its annotation " MARK_ANNOTATION " is unreadable");
	else
		judge_rest(in, n, why);
	for (size_t i = 0; i < p->move_count && !*why->text; i++) {
		const struct verify_move *m = &p->moves[i];

		if (m->node == at && !act_may_move(o, m->namespace))
			error_set(why, "pod %s/%s is of a namespace that evenkeel leaves alone",
				  m->namespace, m->name);
		else if (m->node == at && strcmp(m->from, n->name) != 0)
			error_set(why, "pod %s/%s of its group is on %s", m->namespace, m->name,
				  m->from);
	}
}

static void claim_wave(struct act_state *s, const struct act_options *o, const struct act_input *in,
		       struct act_output *out)
{
	struct act_left *left = NULL;
	size_t count = 0;
	bool news = false;

	for (size_t at = 0; at < in->plan->offer->node_count; at++) {
		const struct act_node *n = find_node(in->cluster, in->plan->offer->nodes[at].name);
		struct error why = {""};

		if (!n || !(o->drain || n->wants_drain))
			continue;
		judge_claim(o, in, n, at, &why);
		if (!*why.text) {
			struct act_action *a = patch(out, o, in, n, MARK_CLAIMED);

			memcpy(a->mark.plan, in->plan->id, sizeof(a->mark.plan));
			error_set(&a->text, "node %s is claimed for plan %s", n->name,
				  in->plan->id);
			continue;
		}
		news |= count >= s->left_count || strcmp(s->left[count].node, n->name) != 0 ||
			strcmp(s->left[count].why.text, why.text) != 0;
		ARRAY_ADD(left, count) = (struct act_left){mem_strdup(n->name), why};
	}
	for (size_t i = 0; i < count && (news || count != s->left_count); i++)
		buf_printf(&out->narration, "node %s is left alone: %s\n", left[i].node,
			   left[i].why.text);
	forget_left(s);
	s->left = left;
	s->left_count = count;
}

const char *act_why_left(const struct act_state *s, const char *node)
{
	const struct act_left *left =
		array_find_text(s->left, s->left_count, sizeof(*s->left), node);

	return left ? left->why.text : NULL;
}

/* --- the step --------------------------------------------------------------------------------- */

bool act_wants_offer(const struct act_state *s)
{
	return !s->drain_count;
}

bool act_is_unproven(const struct act_state *s, const char *node)
{
	const struct act_drain *d = find_drain(s, node);

	return d && !d->proven && (d->mark.phase == MARK_TAINTED || d->mark.phase == MARK_EVICTING);
}

bool act_wants_proof(const struct act_state *s)
{
	bool any = false;

	/* Together: nodes that are claimed become tainted first. */
	for (size_t i = 0; i < s->drain_count; i++) {
		if (s->drains[i].mark.phase == MARK_CLAIMED)
			return false;
		any |= act_is_unproven(s, s->drains[i].node);
	}
	return any;
}

static void begin(struct act_state *s, const struct act_input *in)
{
	int64_t waited_ns = s->last_ns ? in->now_ns - s->last_ns : 0;

	if (waited_ns > GAP_NS)
		act_pass_gap(s, waited_ns);
	else if (in->paused)
		for (size_t i = 0; i < s->drain_count; i++)
			s->drains[i].since_ns += waited_ns;
	act_expire_proofs(s, in->now_ns);
	s->last_ns = in->now_ns;
	if (!in->paused)
		s->paused_ns = 0;
	else if (!s->paused_ns)
		s->paused_ns = in->now_ns;
}

void act_step(struct act_state *s, const struct act_options *o, const struct act_input *in,
	      struct act_output *out)
{
	begin(s, in);
	follow_nodes(s, in, out);
	watch_destinations(s, in);
	for (size_t i = 0; i < in->cluster->node_count; i++) {
		const struct act_node *n = &in->cluster->nodes[i];
		struct act_drain *d = find_drain(s, n->name);

		if (d)
			advance(s, d, o, in, n, out);
		else if (n->mark.phase == MARK_DRAINED && n->wants_undo)
			roll_back(s, out, o, in, n, "a person asked for it");
	}
	if (!s->drain_count && !in->paused && in->plan->offer)
		claim_wave(s, o, in, out);
}
