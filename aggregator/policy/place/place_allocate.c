/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates devices of a node to the claims of a pod. Each needed device is a need; needs and
 * devices are matched by augmenting paths, so a pair is refused only if no assignment exists. A
 * request of all devices needs each of them.
 *
 * The answer is made of two searches: without unsure devices, then with them. An assignment that
 * needs an unsure device is unknown.
 */
#include <string.h>

#include "aggregator/policy/place/place_internal.h"

struct need {
	const struct place_request *request;
	const struct place_device_claim *claim;
	uint32_t fixed; /* the only device; PLACE_NONE: any */
	uint32_t device; /* that it got; PLACE_NONE */
};

struct allocation {
	struct place *p;
	place_node node;
	const struct place_slot *slot;
	struct error *why; /* NULL: nobody reads it */
	bool unsure; /* unsure devices may be used */
	uint64_t given; /* the query of the whole assignment */
	uint32_t count;
	struct need needs[PLACE_NEEDS_MAX];
};

static struct place_device *device_at(const struct allocation *a, uint32_t i)
{
	return &a->p->dra.device.of[i];
}

/* --- needs */

static enum place_filter add_need(struct allocation *a, const struct place_device_claim *c,
				  const struct place_request *r, uint32_t fixed)
{
	if (a->count == PLACE_NEEDS_MAX)
		return error_fail(a->why, PLACE_UNKNOWN,
				  "resource claim %s: more than %d devices of a pod are not judged",
				  c->key, PLACE_NEEDS_MAX);
	a->needs[a->count++] = (struct need){r, c, fixed, PLACE_NONE};
	return PLACE_FITS;
}

/* All devices that match: none may be in use. */
static enum place_filter need_all(struct allocation *a, const struct place_device_claim *c,
				  const struct place_request *r)
{
	enum place_filter f = PLACE_FITS;
	uint32_t at = 0, i, count = 0;

	while ((i = place_devices_next(a->p, a->node, &at)) != PLACE_NONE) {
		if (r->matcher->of[i] != DEVICE_MATCHES)
			continue;
		count++;
		if (f == PLACE_FITS)
			f = add_need(a, c, r, i);
	}
	if (!count)
		return error_fail(a->why, PLACE_DEVICES,
				  "resource claim %s: no device suits request %s", c->key, r->name);
	if (count > PLACE_CLAIM_DEVICES_MAX && f == PLACE_FITS)
		return error_fail(a->why, PLACE_UNKNOWN,
				  "resource claim %s: request %s is of %u devices, more than %d",
				  c->key, r->name, count, PLACE_CLAIM_DEVICES_MAX);
	return f;
}

/* A certain refusal is worse than an unknown. */
static enum place_filter worse(enum place_filter a, enum place_filter b)
{
	return a == PLACE_DEVICES || b == PLACE_FITS ? a : b;
}

static enum place_filter need_requests(struct allocation *a, const struct place_device_claim *c)
{
	enum place_filter f = PLACE_FITS;

	if (c->missing || c->unknown)
		return error_fail(a->why, c->missing ? PLACE_DEVICES : PLACE_UNKNOWN, "%s",
				  c->missing ? c->missing : c->unknown);
	for (uint32_t i = 0; i < c->requests.count && f != PLACE_DEVICES; i++) {
		const struct place_request *r = &c->requests.of[i];

		if (!r->count)
			f = worse(f, need_all(a, c, r));
		for (int64_t k = 0; k < r->count && f == PLACE_FITS; k++)
			f = add_need(a, c, r, PLACE_NONE);
	}
	return f;
}

/* --- allocated claims */

/* Whether the nodes of the claim's allocation include the node. */
static bool is_usable(const struct allocation *a, const struct place_device_claim *c)
{
	const struct kube_node *node = a->p->nodes[a->node].object;
	uint32_t count = a->p->dra.held.of[c->holding];

	if (c->holding == c->home)
		return !c->has_terms ||
		       (node && place_terms_match(&c->terms, &node->labels, node->object.name));
	for (uint32_t i = 1; i <= count; i++)
		if (!place_device_serves(a->p, a->p->dra.held.of[c->holding + i], a->node))
			return false;
	return true;
}

static enum place_filter use_claim(struct allocation *a, const struct place_device_claim *c)
{
	if (c->reserved >= PLACE_CLAIM_PODS_MAX)
		return error_fail(
			a->why, PLACE_DEVICES,
			"resource claim %s is in use by %u pods, the most that may share it",
			c->key, c->reserved);
	if (c->holding == c->home && c->bad_terms)
		return error_fail(a->why, PLACE_UNKNOWN, "%s", c->unknown);
	if (is_usable(a, c))
		return PLACE_FITS;
	return error_fail(a->why, PLACE_DEVICES,
			  "resource claim %s is allocated, and not for this node", c->key);
}

/* A pending pod whose own claims are allocated already, after a failed binding. */
static bool is_half_bound(const struct allocation *a)
{
	const struct object *o = &a->slot->record->object;
	const struct place_slot *s;
	place_pod known = PLACE_NONE;

	if (a->p->dra.held.count)
		known = place_find_pod(a->p, o->namespace, o->name);
	if (known == PLACE_NONE)
		return false;
	s = place_slot(a->p, known);
	return s->holding != PLACE_NONE && s->node == PLACE_NONE &&
	       strcmp(s->record->object.uid, o->uid) == 0;
}

static enum place_filter collect(struct allocation *a)
{
	const struct place_class *class = a->slot->class;
	enum place_filter f = PLACE_FITS;

	for (uint32_t i = 0; i < class->device_claims.count && f != PLACE_DEVICES; i++) {
		const struct place_device_claim *c = class->device_claims.of[i];

		if (c->gone)
			return error_fail(a->why, PLACE_DEVICES, "%s", c->gone);
		f = worse(f, c->holding == PLACE_NONE ? need_requests(a, c) : use_claim(a, c));
	}
	if (f == PLACE_FITS && is_half_bound(a))
		return error_fail(
			a->why, PLACE_UNKNOWN,
			"resource claims of the pod are allocated before the pod is bound");
	return f;
}

/* --- the assignment */

/* Whether any number of needs may get the device. */
static bool is_shared(const struct allocation *a, uint32_t i)
{
	return a->unsure && device_at(a, i)->unsure == place_unjudged_members;
}

static bool suits(const struct allocation *a, const struct need *need, uint32_t i)
{
	const struct place_device *d = device_at(a, i);

	return (!d->users || is_shared(a, i)) && (a->unsure || !d->unsure) &&
	       need->request->matcher->of[i] == DEVICE_MATCHES &&
	       (need->fixed == PLACE_NONE || need->fixed == i);
}

static void give(struct allocation *a, uint32_t need, uint32_t i)
{
	device_at(a, i)->given = a->given;
	device_at(a, i)->need = need;
	a->needs[need].device = i;
}

/* The first free device, else one whose need can take another one. */
static bool find(struct allocation *a, uint32_t need, uint64_t tried)
{
	uint32_t at = 0, i;

	while ((i = place_devices_next(a->p, a->node, &at)) != PLACE_NONE) {
		bool given = device_at(a, i)->given == a->given && !is_shared(a, i);

		if (given || !suits(a, &a->needs[need], i))
			continue;
		give(a, need, i);
		return true;
	}
	for (at = 0; (i = place_devices_next(a->p, a->node, &at)) != PLACE_NONE;) {
		struct place_device *d = device_at(a, i);

		if (d->tried == tried || !suits(a, &a->needs[need], i))
			continue;
		d->tried = tried;
		if (!find(a, d->need, tried))
			continue;
		give(a, need, i);
		return true;
	}
	return false;
}

/* The first need without a device; the number of needs: none. */
static uint32_t assign(struct allocation *a, bool unsure)
{
	uint32_t i = 0;

	a->unsure = unsure;
	a->given = ++a->p->question;
	while (i < a->count && find(a, i, ++a->p->question))
		i++;
	return i;
}

static void tell_lack(struct allocation *a, const struct need *need)
{
	uint32_t at = 0, i, suiting = 0, free = 0, requested = 0;

	if (!a->why)
		return;
	while ((i = place_devices_next(a->p, a->node, &at)) != PLACE_NONE) {
		suiting += need->request->matcher->of[i] == DEVICE_MATCHES;
		free += need->request->matcher->of[i] == DEVICE_MATCHES && !device_at(a, i)->users;
	}
	for (i = 0; i < a->count; i++)
		requested += a->needs[i].request == need->request;
	error_set(a->why,
		  "resource claim %s: request %s: %u devices requested, %u of %u that suit it are "
		  "free",
		  need->claim->key, need->request->name, requested, free, suiting);
}

static void tell_unsure(struct allocation *a)
{
	uint32_t i = 0;

	while (i < a->count && !device_at(a, a->needs[i].device)->unsure)
		i++;
	if (i < a->count)
		error_set(a->why, "resource claim %s: device %s %s", a->needs[i].claim->key,
			  device_at(a, a->needs[i].device)->key,
			  device_at(a, a->needs[i].device)->unsure);
}

static enum place_filter ask(struct allocation *a)
{
	enum place_filter f = collect(a);
	uint32_t lacks;

	if (f == PLACE_DEVICES || assign(a, false) == a->count)
		return f;
	lacks = assign(a, true);
	if (lacks < a->count) {
		tell_lack(a, &a->needs[lacks]);
		return PLACE_DEVICES;
	}
	if (f == PLACE_FITS)
		tell_unsure(a);
	return PLACE_UNKNOWN;
}

enum place_filter place_allocate_ask(struct place *p, const struct place_slot *s, place_node n,
				     struct error *why)
{
	struct allocation a = {.p = p, .node = n, .slot = s, .why = why};

	return ask(&a);
}

/* --- changes */

static void add_users(struct place *p, uint32_t holding, int by)
{
	for (uint32_t i = 1; holding != PLACE_NONE && i <= p->dra.held.of[holding]; i++)
		p->dra.device.of[p->dra.held.of[holding + i]].users += (uint32_t)by;
}

static void set(struct place *p, uint32_t *holding, uint32_t next)
{
	add_users(p, *holding, -1);
	add_users(p, next, 1);
	*holding = next;
}

static void change(struct place *p, enum place_change what, uint32_t id, uint32_t *holding,
		   uint32_t next)
{
	PLACE_LIST_ADD(&p->log,
		       ((struct place_log){.id = id, .node = *holding, .what = (uint8_t)what}));
	set(p, holding, next);
}

/* The devices that the claim got; NULL: the pod's own claims. */
static uint32_t keep(struct allocation *a, const struct place_device_claim *claim)
{
	uint32_t at = a->p->dra.held.count;

	PLACE_LIST_ADD(&a->p->dra.held, 0);
	for (uint32_t i = 0; i < a->count; i++) {
		if (claim ? a->needs[i].claim != claim : !a->needs[i].claim->template)
			continue;
		PLACE_LIST_ADD(&a->p->dra.held, a->needs[i].device);
		a->p->dra.held.of[at]++;
	}
	return at;
}

/* Whether nothing else has got a device of the list, of those that are not shared. */
static bool is_free(const struct place *p, uint32_t list)
{
	for (uint32_t i = 1; list != PLACE_NONE && i <= p->dra.held.of[list]; i++) {
		const struct place_device *d = &p->dra.device.of[p->dra.held.of[list + i]];

		if (d->users && d->unsure != place_unjudged_members)
			return false;
	}
	return list != PLACE_NONE;
}

/* Gives a pod that is back on its node the devices that it has in the view, or none. */
static bool restore(struct place *p, struct place_slot *s)
{
	const struct place_class *class = s->class;

	for (uint32_t i = 0; i < class->device_claims.count; i++) {
		const struct place_device_claim *c = class->device_claims.of[i];

		if (c->template ? !is_free(p, s->home_holding)
				: c->holding == PLACE_NONE && !is_free(p, c->home))
			return false;
	}
	for (uint32_t i = 0; i < class->device_claims.count; i++) {
		struct place_device_claim *c = class->device_claims.of[i];

		if (!c->template && c->holding == PLACE_NONE)
			change(p, PLACE_DID_ALLOCATE, c->id, &c->holding, c->home);
	}
	if (s->home_holding != PLACE_NONE)
		change(p, PLACE_DID_HOLD, s->id, &s->holding, s->home_holding);
	return true;
}

void place_allocate(struct place *p, struct place_slot *s, place_node n)
{
	struct allocation a = {.p = p, .node = n, .slot = s};

	if (n == s->home && restore(p, s))
		return;
	if (collect(&a) != PLACE_FITS)
		return;
	/* Sure devices first, as ask() does, so that none is left to the next pod. */
	if (assign(&a, false) < a.count && assign(&a, true) < a.count)
		return;
	for (uint32_t i = 0; i < s->class->device_claims.count; i++) {
		struct place_device_claim *c = s->class->device_claims.of[i];

		if (!c->template && c->holding == PLACE_NONE)
			change(p, PLACE_DID_ALLOCATE, c->id, &c->holding, keep(&a, c));
	}
	change(p, PLACE_DID_HOLD, s->id, &s->holding, keep(&a, NULL));
}

void place_deallocate(struct place *p, struct place_slot *s)
{
	if (s->holding != PLACE_NONE)
		change(p, PLACE_DID_HOLD, s->id, &s->holding, PLACE_NONE);
	for (uint32_t i = 0; i < s->class->device_claims.count; i++) {
		struct place_device_claim *c = s->class->device_claims.of[i];

		if (!c->users && !c->fixed && c->holding != PLACE_NONE)
			change(p, PLACE_DID_ALLOCATE, c->id, &c->holding, PLACE_NONE);
	}
}

/* The last list of devices belongs to the last change, unless it is the view's. */
void place_allocate_undo(struct place *p, const struct place_log *e)
{
	uint32_t *holding = e->what == PLACE_DID_HOLD ? &place_slot(p, e->id)->holding
						      : &p->dra.claim.of[e->id]->holding;
	uint32_t was = *holding;

	set(p, holding, e->node);
	if (was != PLACE_NONE && was >= p->dra.home_held &&
	    was + 1 + p->dra.held.of[was] == p->dra.held.count)
		p->dra.held.count = was;
}
