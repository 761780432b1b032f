/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of ResourceSlices, and their use by claims. A pool is the slices of one driver and pool
 * name: only its newest generation counts. All slices are read again when one of them, a taint rule
 * or a device class changes; a claim only when it changes itself.
 *
 * A device is unsure if its allocation depends on more than its use: an incomplete pool, a taint,
 * counters, shares, binding conditions, a choice of nodes of its own, unknown members. Taint rules
 * are not judged: any of them, or a list of them that cannot be read, makes all devices unsure.
 *
 * A claim of the view holds its devices. The claims that were made for a pod are held by the pod,
 * so that they move with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/arith.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

/* --- slices */

const char place_unjudged_members[] = "has members that are not judged";

static int64_t number_of(const cJSON *object, const char *key)
{
	const cJSON *item = object_json_find(object, key);

	return cJSON_IsNumber(item) ? round_saturating(item->valuedouble) : 0;
}

static const char *judge_device(const cJSON *device)
{
	static const char *const members[] = {"attributes", "name", "taints", NULL};
	char *note = NULL;
	bool known = place_only_members(device, members, &note, "");

	free(note);
	if (!known)
		return place_unjudged_members;
	for (const cJSON *t = object_json_first(object_json_find(device, "taints")); t; t = t->next)
		if (!object_json_is(t, "effect", "None"))
			return "has a taint";
	return NULL;
}

static void read_device(struct place *p, uint32_t slice, const cJSON *json)
{
	const struct place_slice *s = &p->dra.slice.of[slice];
	const cJSON *attributes = object_json_find(json, "attributes");
	char *text = attributes ? cJSON_PrintUnformatted(attributes) : NULL;
	struct place_device d = {.slice = slice, .unsure = judge_device(json)};

	d.key = mem_printf("%s/%s/%s", s->driver, s->pool, object_json_text(json, "name"));
	d.attributes = text ? mem_strdup(text) : NULL;
	cJSON_free(text);
	PLACE_LIST_ADD(&p->dra.device, d);
}

static void read_nodes(struct place_slice *s, const cJSON *spec)
{
	const char *node = object_json_text(spec, "nodeName");
	const cJSON *selector = object_json_find(spec, "nodeSelector");
	struct error error;

	if (object_json_find(spec, "skipNodeOperations"))
		s->unsure = place_unjudged_members;
	if (*node) {
		s->node = mem_strdup(node);
	} else if (selector && place_terms_read(object_json_find(selector, "nodeSelectorTerms"),
						&s->terms, &error) == 0) {
		s->has_terms = true;
	} else if (!cJSON_IsTrue(object_json_find(spec, "allNodes"))) {
		s->unsure = "serves nodes that are not judged";
	}
}

static void read_slice(struct place *p, const struct object *o)
{
	cJSON *tree = cJSON_Parse(o->text);
	const cJSON *spec = object_json_find(tree, "spec"), *pool = object_json_find(spec, "pool");
	struct place_slice s = {
		.driver = mem_strdup(object_json_text(spec, "driver")),
		.pool = mem_strdup(object_json_text(pool, "name")),
		.generation = number_of(pool, "generation"),
		.count = number_of(pool, "resourceSliceCount"),
	};

	read_nodes(&s, spec);
	PLACE_LIST_ADD(&p->dra.slice, s);
	for (const cJSON *d = object_json_first(object_json_find(spec, "devices")); d; d = d->next)
		read_device(p, p->dra.slice.count - 1, d);
	cJSON_Delete(tree);
}

/* --- pools */

struct pool {
	UT_hash_handle hh;
	char *key; /* owned */
	int64_t newest, count; /* slices that there should be */
	uint32_t slices; /* of the newest generation */
	const char *node; /* NULL: of several nodes */
	bool older; /* there are others */
};

static struct pool *find_pool(struct pool **pools, const struct place_slice *s)
{
	char *key = mem_printf("%s/%s", s->driver, s->pool);
	struct pool *pool;

	HASH_FIND_STR(*pools, key, pool);
	if (pool) {
		free(key);
		return pool;
	}
	HASH_NEW(*pools, pool, key, key);
	pool->newest = s->generation;
	pool->node = s->node;
	return pool;
}

static void count_slice(struct pool *pool, const struct place_slice *s)
{
	pool->older |= s->generation != pool->newest;
	if (s->generation > pool->newest)
		*pool = (struct pool){.hh = pool->hh,
				      .key = pool->key,
				      .newest = s->generation,
				      .node = pool->node,
				      .older = true};
	if (s->generation == pool->newest) {
		pool->slices++;
		pool->count = s->count;
	}
	if (!s->node || !pool->node || strcmp(s->node, pool->node) != 0)
		pool->node = NULL;
}

/* A pool of several nodes in two generations is being replaced. */
static bool is_complete(const struct pool *pool)
{
	return pool->slices == pool->count && (pool->node || !pool->older);
}

static void judge_pools(struct place *p)
{
	struct pool *pools = NULL, *pool, *next;

	for (uint32_t i = 0; i < p->dra.slice.count; i++)
		count_slice(find_pool(&pools, &p->dra.slice.of[i]), &p->dra.slice.of[i]);
	for (uint32_t i = 0; i < p->dra.slice.count; i++) {
		pool = find_pool(&pools, &p->dra.slice.of[i]);
		p->dra.slice.of[i].stale = p->dra.slice.of[i].generation != pool->newest;
		if (!is_complete(pool))
			p->dra.slice.of[i].unsure = "is in an incomplete pool";
	}
	HASH_RELEASE (pools, pool, next) {
		p->dra.incomplete |= !is_complete(pool);
		free(pool->key);
		free(pool);
	}
}

/* --- devices */

/* Rules that cannot be read. A kind that the API, or a dump, does not have has none. */
static bool hides_rules(const struct view *v)
{
	enum source_state state =
		v->cluster ? v->cluster->sources[OBJECT_DEVICE_TAINT_RULE].state : SOURCE_NONE;

	return state == SOURCE_LISTING || state == SOURCE_FORBIDDEN;
}

/* The array of devices does not grow any more. */
static void index_devices(struct place *p)
{
	bool rules = hides_rules(p->view) || (p->dra.rules && p->dra.rules->count);

	for (uint32_t i = 0; i < p->dra.device.count; i++) {
		struct place_device *d = &p->dra.device.of[i], *same;
		const struct place_slice *s = &p->dra.slice.of[d->slice];

		if (!d->unsure)
			d->unsure = rules ? "may have the taint of a DeviceTaintRule" : s->unsure;
		if (s->stale)
			continue;
		HASH_FIND_STR(p->dra.by_key, d->key, same);
		if (same)
			same->unsure = d->unsure = "is named twice";
		else
			HASH_ADD_KEYPTR(hh, p->dra.by_key, d->key, strlen(d->key), d);
	}
}

bool place_devices_back(const struct place *p, uint32_t dim)
{
	static const char prefix[] = "deviceclass.resource.kubernetes.io/";
	const char *name = place_dim_name(p, dim);
	char named[512];

	if (!p->dra.classes || !p->dra.classes->count)
		return false; /* before any text is made: each pod and node comes here */
	snprintf(named, sizeof(named), "\"extendedResourceName\":\"%s\"", name);
	for (size_t i = 0; i < p->dra.classes->count; i++) {
		const struct object *o = p->dra.classes->of[i];

		if (strstr(o->text, named) || (strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
					       strcmp(name + sizeof(prefix) - 1, o->name) == 0))
			return true;
	}
	return false;
}

/* --- nodes */

static place_node node_of(const struct place *p, uint32_t device)
{
	const struct place_slice *s = &p->dra.slice.of[p->dra.device.of[device].slice];

	return s->node && !s->stale ? place_find_node(p, s->node) : PLACE_NONE;
}

static void serve(struct place *p, struct place_slice *s)
{
	free(s->serves);
	s->serves = NULL;
	if (s->node)
		return;
	s->serves = mem_zalloc((size_t)p->node_count + 1, sizeof(*s->serves));
	for (place_node n = 0; n < p->node_count; n++) {
		const struct kube_node *node = p->nodes[n].object;

		s->serves[n] = !s->has_terms || (node && place_terms_match(&s->terms, &node->labels,
									   node->object.name));
	}
}

/* Counts the devices of each node, sums up where its part begins, and fills the parts. */
static void find_nodes(struct place *p)
{
	struct place_dra *d = &p->dra;
	uint32_t *end = mem_zalloc((size_t)p->node_count + 2, sizeof(*end));

	free(d->local_at);
	free(d->local);
	d->local = mem_zalloc((size_t)d->device.count + 1, sizeof(*d->local));
	d->local_at = end;
	d->shared.count = 0;
	for (uint32_t i = 0; i < d->slice.count; i++)
		serve(p, &d->slice.of[i]);
	for (uint32_t i = 0; i < d->device.count; i++) {
		if (node_of(p, i) != PLACE_NONE)
			end[node_of(p, i) + 2]++;
		else if (!d->slice.of[d->device.of[i].slice].node &&
			 !d->slice.of[d->device.of[i].slice].stale)
			PLACE_LIST_ADD(&d->shared, i);
	}
	for (place_node n = 0; n < p->node_count; n++)
		end[n + 2] += end[n + 1];
	for (uint32_t i = 0; i < d->device.count; i++)
		if (node_of(p, i) != PLACE_NONE)
			d->local[end[node_of(p, i) + 1]++] = i;
}

bool place_device_serves(const struct place *p, uint32_t device, place_node n)
{
	const struct place_slice *s = &p->dra.slice.of[p->dra.device.of[device].slice];

	return s->serves ? s->serves[n] : s->node && strcmp(s->node, p->nodes[n].view->name) == 0;
}

uint32_t place_devices_next(const struct place *p, place_node n, uint32_t *at)
{
	const struct place_dra *d = &p->dra;
	uint32_t local, i;

	if (!d->local_at)
		return PLACE_NONE;
	local = d->local_at[n + 1] - d->local_at[n];
	while (*at < local + d->shared.count) {
		i = *at < local ? d->local[d->local_at[n] + *at] : d->shared.of[*at - local];
		++*at;
		if (*at <= local || place_device_serves(p, i, n))
			return i;
	}
	return PLACE_NONE;
}

/* --- following a view */

static void free_devices(struct place_dra *d)
{
	struct place_matcher *m, *next;

	HASH_CLEAR(hh, d->by_key);
	for (uint32_t i = 0; i < d->device.count; i++) {
		free(d->device.of[i].key);
		free(d->device.of[i].attributes);
	}
	for (uint32_t i = 0; i < d->slice.count; i++) {
		free(d->slice.of[i].driver);
		free(d->slice.of[i].pool);
		free(d->slice.of[i].node);
		free(d->slice.of[i].serves);
		place_terms_fini(&d->slice.of[i].terms);
	}
	HASH_RELEASE (d->matchers, m, next) {
		free(m->text);
		free(m->of);
		free(m->refused);
		free(m);
	}
	d->device.count = d->slice.count = 0;
	d->incomplete = false;
}

static void read_devices(struct place *p)
{
	free_devices(&p->dra);
	for (size_t i = 0; p->dra.slices && i < p->dra.slices->count; i++)
		read_slice(p, p->dra.slices->of[i]);
	judge_pools(p);
	index_devices(p);
}

/* Whether the table of the view differs from the last one, which it replaces. */
static bool is_new(const struct place *p, const struct object_table **last, enum object_kind kind)
{
	const struct object_table *now = view_table(p->view, kind);
	bool differs = *last != now;

	*last = now;
	return differs;
}

/* Reads claims that changed and new ones; forgets those that are gone. */
static void read_claims(struct place *p, bool all)
{
	const struct object_table *t = p->dra.claims;

	for (size_t i = 0; t && i < t->count; i++)
		place_device_claim_intern(p, false, t->of[i]->namespace, t->of[i]->name);
	for (uint32_t i = p->dra.claim.count; i-- > 0;) {
		struct place_device_claim *c = p->dra.claim.of[i], *last;

		place_device_claim_read(p, c, all);
		if (c->object || c->classes)
			continue;
		last = p->dra.claim.of[p->dra.claim.count - 1];
		p->dra.claim.of[i] = last;
		p->dra.claim.of[p->dra.claim.count - 1] = c;
		last->id = i;
		place_device_claim_forget(p, c);
	}
}

void place_devices_follow(struct place *p)
{
	struct place_dra *d = &p->dra;
	bool slices = is_new(p, &d->slices, OBJECT_RESOURCE_SLICE);
	bool rules = is_new(p, &d->rules, OBJECT_DEVICE_TAINT_RULE);
	bool classes = is_new(p, &d->classes, OBJECT_DEVICE_CLASS);
	bool claims = is_new(p, &d->claims, OBJECT_RESOURCE_CLAIM);
	bool templates = is_new(p, &d->templates, OBJECT_RESOURCE_CLAIM_TEMPLATE);
	bool nodes = is_new(p, &d->nodes, OBJECT_NODE);
	unsigned int known = hides_rules(p->view);
	bool all;

	for (int kind = OBJECT_DEVICE_CLASS; kind <= OBJECT_RESOURCE_CLAIM; kind++)
		known = known << 1 | view_knows(p->view, (enum object_kind)kind);
	all = slices || rules || classes || known != d->known;
	d->known = known;
	if (all)
		read_devices(p);
	if (all || nodes)
		find_nodes(p);
	if (all || claims || templates)
		read_claims(p, all);
}

/* --- what the view holds */

/* The pod that holds the claim in its stead, or NULL. */
static struct place_slot *owner_of(const struct place *p, const struct place_device_claim *c)
{
	struct place_slot *s = NULL;

	if (c->owner && !c->classes)
		HASH_FIND_STR(p->by_name, c->owner, s);
	return s && strcmp(s->record->object.uid, c->owner_uid) == 0 ? s : NULL;
}

static void add_held(struct place *p, uint32_t at, const struct place_device_claim *c)
{
	for (uint32_t i = 0; i < c->devices.count; i++) {
		PLACE_LIST_ADD(&p->dra.held, c->devices.of[i]);
		p->dra.device.of[c->devices.of[i]].users++;
		p->dra.held.of[at]++;
	}
}

static uint32_t begin_held(struct place *p)
{
	PLACE_LIST_ADD(&p->dra.held, 0);
	return p->dra.held.count - 1;
}

static void clear_held(struct place *p)
{
	p->dra.held.count = 0;
	for (uint32_t i = 0; i < p->dra.device.count; i++)
		p->dra.device.of[i].users = 0;
	for (uint32_t i = 0; i < p->pods.count; i++)
		if (p->pods.of[i])
			p->pods.of[i]->home_holding = p->pods.of[i]->holding =
				p->pods.of[i]->claim = PLACE_NONE;
}

static void hold_claim(struct place *p, struct place_device_claim *c)
{
	struct place_slot *s = owner_of(p, c);

	c->home = c->holding = c->next = PLACE_NONE;
	c->fixed = c->reserved > c->users;
	if (!c->allocated)
		return;
	if (s) {
		c->next = s->claim;
		s->claim = c->id;
		return;
	}
	c->home = c->holding = begin_held(p);
	add_held(p, c->home, c);
}

void place_devices_settle(struct place *p)
{
	if (!p->dra.claim.count && !p->dra.held.count)
		return;
	clear_held(p);
	for (uint32_t i = 0; i < p->dra.claim.count; i++)
		hold_claim(p, p->dra.claim.of[i]);
	for (uint32_t i = 0; i < p->pods.count; i++) {
		struct place_slot *s = p->pods.of[i];

		if (!s || s->claim == PLACE_NONE)
			continue;
		s->home_holding = s->holding = begin_held(p);
		for (uint32_t id = s->claim; id != PLACE_NONE; id = p->dra.claim.of[id]->next)
			add_held(p, s->holding, p->dra.claim.of[id]);
	}
	p->dra.home_held = p->dra.held.count;
}

void place_devices_free(struct place *p)
{
	while (p->dra.claim.count)
		place_device_claim_forget(p, p->dra.claim.of[p->dra.claim.count - 1]);
	free_devices(&p->dra);
	free(p->dra.slice.of);
	free(p->dra.device.of);
	free(p->dra.local_at);
	free(p->dra.local);
	free(p->dra.shared.of);
	free(p->dra.claim.of);
	free(p->dra.held.of);
	p->dra = (struct place_dra){0};
}
