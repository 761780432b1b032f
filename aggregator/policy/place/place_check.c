/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of the kube-scheduler, in the order of enum place_filter. They allocate and change nothing. */
#include <string.h>

#include "aggregator/policy/place/place_internal.h"

/* Whether a device class may stand in for the resource, of which the node has none. */
static bool is_backed(const struct place *p, place_node n, uint32_t dim)
{
	return !p->available[(size_t)n * p->dim_room + dim] && place_devices_back(p, dim);
}

/* Whether the node, or the empty node, has enough of all that is requested. */
static bool has_room(const struct place *p, const struct place_shape *shape, place_node n,
		     bool empty)
{
	for (uint32_t i = 0; i < shape->count; i++) {
		uint32_t dim = shape->of[i].dim;
		int64_t room = empty ? p->available[(size_t)n * p->dim_room + dim]
				     : place_free_of(p, n, dim);

		if (shape->of[i].amount > room && !is_backed(p, n, dim))
			return false;
	}
	return empty || place_free_of(p, n, RESOURCE_PODS) >= 1;
}

uint32_t place_check_backed(const struct place *p, const struct place_slot *s, place_node n)
{
	const struct place_shape *shape = place_slot_shape(s);

	for (uint32_t i = 0; i < shape->count; i++)
		if (shape->of[i].dim >= RESOURCE_STANDARD && is_backed(p, n, shape->of[i].dim))
			return shape->of[i].dim;
	return PLACE_NONE;
}

bool place_is_gone(const struct place *p, place_node n)
{
	return p->gone[n];
}

bool place_lacks(const struct place *p, place_pod pod, place_node n, const char *resource)
{
	const struct place_shape *shape = place_slot_shape(place_slot(p, pod));

	if (strcmp(resource, resource_name(RESOURCE_PODS)) == 0)
		return place_free_of(p, n, RESOURCE_PODS) < 1;
	for (uint32_t i = 0; i < shape->count; i++) {
		uint32_t dim = shape->of[i].dim;

		if (strcmp(place_dim_name(p, dim), resource) == 0)
			return shape->of[i].amount > place_free_of(p, n, dim);
	}
	return false;
}

bool place_could_hold(const struct place *p, place_pod pod, place_node n)
{
	return has_room(p, place_slot_shape(place_slot(p, pod)), n, true);
}

/* The count of the node's domain; 0 without a domain. */
static uint32_t count_at(const struct place *p, uint32_t counter, place_node n)
{
	const struct place_counter *c = &p->counters.of[counter];
	uint32_t domain = p->keys.of[c->key].domain_of[n];

	return domain == PLACE_NONE ? 0 : place_tally_get(&c->count, domain);
}

uint32_t place_check_anti_affinity(const struct place *p, const struct place_class *c, place_node n)
{
	for (uint32_t i = 0; i < c->anti.count; i++)
		if (count_at(p, c->anti.of[i], n))
			return c->anti.of[i];
	for (uint32_t i = 0; i < c->feared.count; i++)
		if (count_at(p, c->feared.of[i], n))
			return c->feared.of[i];
	return PLACE_NONE;
}

uint32_t place_check_affinity(const struct place *p, const struct place_class *c, place_node n)
{
	uint32_t missing = PLACE_NONE;
	bool first = c->affinity_self;

	for (uint32_t i = 0; i < c->affinity.count; i++) {
		const struct place_counter *k = &p->counters.of[c->affinity.of[i]];

		if (p->keys.of[k->key].domain_of[n] == PLACE_NONE)
			return c->affinity.of[i];
		if (missing == PLACE_NONE && !count_at(p, c->affinity.of[i], n))
			missing = c->affinity.of[i];
		first &= !k->total;
	}
	/* The first pod of a group may go to any node with the keys. */
	return first ? PLACE_NONE : missing;
}

uint32_t place_spread_least(const struct place_counter *k, const struct place_spread *s)
{
	return k->domains == 0 || k->domains < (uint32_t)s->min_domains ? 0 : k->min;
}

const struct place_spread *place_check_spread(const struct place *p, const struct place_class *c,
					      place_node n)
{
	for (uint32_t i = 0; i < c->spread.count; i++) {
		const struct place_spread *s = &c->spread.of[i];
		const struct place_counter *k = &p->counters.of[s->counter];
		int64_t here;

		if (p->keys.of[k->key].domain_of[n] == PLACE_NONE)
			return s;
		here = (int64_t)count_at(p, s->counter, n) + s->self;
		if (here - place_spread_least(k, s) > s->max_skew)
			return s;
	}
	return NULL;
}

static bool ports_overlap(const struct place_port *a, const struct place_port *b)
{
	return a->port == b->port && strcmp(a->protocol, b->protocol) == 0 &&
	       (!*a->ip || !*b->ip || strcmp(a->ip, b->ip) == 0);
}

const struct place_slot *place_check_ports(const struct place *p, const struct place_class *c,
					   place_node n, const struct place_port **port)
{
	if (!c->ports.count)
		return NULL;
	for (const struct place_slot *s = p->first[n]; s; s = s->next) {
		const struct place_class *there = s->class;

		for (uint32_t i = 0; i < there->ports.count; i++)
			for (uint32_t k = 0; k < c->ports.count; k++)
				if (ports_overlap(&there->ports.of[i], &c->ports.of[k])) {
					*port = &c->ports.of[k];
					return s;
				}
	}
	return NULL;
}

/* Filters that depend on other pods. */
static enum place_filter check_others(struct place *p, const struct place_slot *s, place_node n)
{
	const struct place_class *c = s->class;
	const struct place_port *port;
	uint32_t used;

	if (place_check_anti_affinity(p, c, n) != PLACE_NONE)
		return PLACE_ANTI_AFFINITY;
	if (place_check_affinity(p, c, n) != PLACE_NONE)
		return PLACE_AFFINITY;
	if (place_check_spread(p, c, n))
		return PLACE_SPREAD;
	if (place_check_ports(p, c, n, &port))
		return PLACE_HOST_PORTS;
	if (c->claims.count && place_volumes_refuse(p, c, n))
		return PLACE_VOLUMES;
	if (c->claims.count && place_volumes_exceed(p, c, n, &used))
		return PLACE_VOLUME_LIMITS;
	return PLACE_FITS;
}

static enum place_filter check_use(const struct place *p, const struct place_slot *s, place_node n)
{
	if (!p->cap)
		return PLACE_FITS;
	if (p->nodes[n].use_unknown)
		return PLACE_SILENT;
	if (!place_use_fits(p, n, &s->use, NULL))
		return PLACE_USE_CAP;
	return p->nodes[n].contention > p->options.cap.contention ? PLACE_SILENT : PLACE_FITS;
}

enum place_filter place_check_admission(const struct place *p, const struct place_slot *s,
					place_node n)
{
	enum place_filter f = place_rules_ask(p, s->class->rules, n);

	if (f != PLACE_FITS)
		return f;
	if (s->bound_to && strcmp(s->bound_to, place_node_name(p, n)) != 0)
		return PLACE_NODE_AFFINITY;
	return p->nodes[n].cordoned && !s->class->rules->tolerates_cordon ? PLACE_UNSCHEDULABLE
									  : PLACE_FITS;
}

bool place_admits(struct place *p, place_pod pod, place_node n)
{
	return !p->gone[n] && place_check_admission(p, place_slot(p, pod), n) == PLACE_FITS;
}

const void *place_admission(const struct place *p, place_pod pod)
{
	const struct place_slot *s = place_slot(p, pod);

	return s->bound_to ? NULL : s->class->rules;
}

static bool is_counted_by(const struct place_class *c, uint32_t counter)
{
	for (uint32_t i = 0; i < c->counted.count; i++)
		if (c->counted.of[i] == counter)
			return true;
	return false;
}

bool place_minds(const struct place *p, place_pod pod, place_pod other)
{
	const struct place_class *c = place_slot(p, pod)->class;
	const struct place_class *o = place_slot(p, other)->class;

	for (uint32_t i = 0; i < c->affinity.count; i++)
		if (is_counted_by(o, c->affinity.of[i]))
			return true;
	for (uint32_t i = 0; i < c->spread.count; i++)
		if (is_counted_by(o, c->spread.of[i].counter))
			return true;
	return false;
}

enum place_filter place_check(struct place *p, place_pod pod, place_node n)
{
	const struct place_slot *s = place_slot(p, pod);
	enum place_filter f, devices = PLACE_FITS;

	if (p->gone[n])
		return PLACE_GONE;
	if (!has_room(p, place_slot_shape(s), n, false))
		return PLACE_FIT;
	f = place_check_admission(p, s, n);
	if (f == PLACE_FITS)
		f = check_others(p, s, n);
	if (f == PLACE_FITS && s->class->device_claims.count)
		devices = place_allocate_ask(p, s, n, NULL);
	if (devices == PLACE_DEVICES)
		return devices;
	if (f == PLACE_FITS)
		f = check_use(p, s, n);
	if (f == PLACE_FITS && (s->class->unknown || place_volumes_unknown(s->class) ||
				place_check_backed(p, s, n) != PLACE_NONE))
		f = PLACE_UNKNOWN;
	return f == PLACE_FITS ? devices : f;
}
