/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three sorted lists are walked at once: the stats, the cluster's nodes, and the slots of the view
 * before.
 *
 *     stats      a   b       d
 *     cluster        b   c   d
 *     slots   a   b   c   d   each made of these stats and that node: it stays; else it is made anew
 *
 * Node stats and model nodes are immutable, and the slot's node holds both: an equal pointer means
 * equal content. A slot whose two pointers come next is kept without reading a name.
 *
 * The join holds the newest view and so the nodes of all slots. A node that changes or goes takes
 * its pods' shares from the sums of owners and namespaces (join_owners.c, join_namespaces.c).
 *
 * A thousand new nodes take some 25 ms. A caller with other work walks a few nodes at a time
 * (join_step()); readers see the next view only after join_end().
 */
#include "aggregator/state/join.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join_namespaces.h"
#include "aggregator/state/join_owners.h"
#include "aggregator/state/view_cache.h"
#include "shared/mem.h"

struct slot {
	struct view_node *node; /* borrowed: the newest view holds it */
	const struct node_stats *stats; /* what it was made of; NULL: there was none */
	const struct model_node *model;
	struct owner_shares shares;
	struct namespace_shares spaces;
};

/* The rest of the three lists while a join is under way, and the end of each. */
struct walk {
	struct node_stats *const *stats, *const *stats_end;
	struct model_node *const *model, *const *model_end;
	struct slot *slot, *slot_end;
};

struct join {
	uint64_t version; /* of the newest view */
	uint64_t node_set_version; /* grows when a node comes or goes */
	size_t count;
	struct slot *slots; /* owned; sorted by name */
	struct view *view; /* held: the newest; NULL: none yet */
	struct owners *owners;
	struct demand *demand; /* borrowed; NULL: none */
	struct namespaces *namespaces;

	/* between join_begin() and join_end() */
	struct walk walk;
	/* owned; the slots of the next view, each node held for it; NULL: none is under way */
	struct slot *next;
	size_t next_count;
	struct cluster *cluster; /* held; NULL: standalone */
	int64_t now_ns;
};

struct join *join_new(void)
{
	struct join *j = mem_zalloc(1, sizeof(*j));

	j->owners = owners_new();
	j->namespaces = namespaces_new();
	return j;
}

/* Takes the node's shares from owners and namespaces. */
static void drop_slot(struct join *j, struct slot *s)
{
	j->node_set_version++;
	owners_subtract(j->owners, &s->shares);
	namespaces_change(j->namespaces, s->node, NULL, &s->spaces);
}

void join_free(struct join *j)
{
	if (!j)
		return;
	if (j->next)
		view_drop(join_end(j));
	for (size_t i = 0; i < j->count; i++)
		drop_slot(j, &j->slots[i]);
	namespaces_free(j->namespaces);
	owners_free(j->owners);
	view_drop(j->view);
	free(j->slots);
	free(j);
}

/* Whether what the next slot was made of comes next; then nothing has to be compared. */
static bool is_same(const struct walk *w)
{
	const struct slot *s = w->slot;

	return s != w->slot_end && (w->stats != w->stats_end ? *w->stats : NULL) == s->stats &&
	       (w->model != w->model_end ? *w->model : NULL) == s->model;
}

/*
 * Takes the stats and the node of the first name there is off the lists, and returns the name; one
 * of both may be NULL.
 */
static const char *take_next(struct walk *w, struct node_stats **stats, struct model_node **model)
{
	int order = w->stats != w->stats_end ? -1 : 1;

	if (w->stats != w->stats_end && w->model != w->model_end)
		order = strcmp((*w->stats)->name, (*w->model)->name);
	assert(order < 0 || w->model != w->model_end);
	*stats = order <= 0 ? *w->stats++ : NULL;
	*model = order >= 0 ? *w->model++ : NULL;
	return order <= 0 ? (*stats)->name : (*model)->name;
}

/* The old slot of that name, off the list, or NULL; those before it are of nodes that are gone. */
static struct slot *find_slot(struct join *j, struct walk *w, const char *name)
{
	int order = -1;

	while (w->slot != w->slot_end && (order = strcmp(w->slot->node->name, name)) < 0)
		drop_slot(j, w->slot++);
	return w->slot != w->slot_end && order == 0 ? w->slot++ : NULL;
}

static void make_slot(struct join *j, struct slot *old, struct node_stats *stats,
		      struct model_node *model, struct slot *now)
{
	if (old && old->stats == stats && old->model == model) {
		*now = *old;
		view_node_hold(now->node);
		return;
	}
	if (!old)
		j->node_set_version++;
	now->node = view_node_renew(old ? old->node : NULL, stats, model);
	now->stats = stats;
	now->model = model;
	now->spaces = old ? old->spaces : (struct namespace_shares){0, NULL, 0};
	namespaces_change(j->namespaces, old ? old->node : NULL, now->node, &now->spaces);
	if (old && old->model == model) {
		now->shares = old->shares;
		owners_update(j->owners, now->node, &now->shares);
		return;
	}
	owners_add(j->owners, now->node, &now->shares);
	if (old)
		owners_subtract(j->owners, &old->shares);
}

static void next_slot(struct join *j, struct walk *w, struct slot *now)
{
	struct node_stats *stats;
	struct model_node *model;
	const char *name;

	if (is_same(w)) {
		*now = *w->slot++;
		if (now->stats)
			w->stats++;
		if (now->model)
			w->model++;
		view_node_hold(now->node);
		return;
	}
	name = take_next(w, &stats, &model);
	make_slot(j, find_slot(j, w, name), stats, model, now);
}

static const struct object_table *pending_pods(const struct cluster *c)
{
	return c ? c->tables[OBJECT_POD] : NULL;
}

void join_begin(struct join *j, struct node_stats *const *node_stats, size_t stats_count,
		struct cluster *cluster, int64_t now_ns)
{
	size_t model_count = cluster ? cluster->node_count : 0;

	assert(!j->next);
	/* C does not define NULL + 0: an empty list ends where it begins. */
	j->walk = (struct walk){
		.stats = node_stats,
		.stats_end = stats_count ? node_stats + stats_count : node_stats,
		.model = model_count ? cluster->nodes : NULL,
		.model_end = model_count ? cluster->nodes + model_count : NULL,
		.slot = j->slots,
		.slot_end = j->count ? j->slots + j->count : j->slots,
	};
	j->cluster = cluster;
	j->now_ns = now_ns;
	j->next = mem_alloc((stats_count + model_count + 1) * sizeof(*j->next));
	j->next_count = 0;
	if (namespaces_advance(j->namespaces, now_ns))
		for (size_t i = 0; i < j->count; i++)
			namespaces_expire(j->namespaces, j->slots[i].node, &j->slots[i].spaces);
	namespaces_pending(j->namespaces, j->view ? pending_pods(j->view->cluster) : NULL,
			   pending_pods(cluster));
}

bool join_step(struct join *j, size_t most)
{
	struct walk *w = &j->walk;

	for (; most && (w->stats != w->stats_end || w->model != w->model_end); most--)
		next_slot(j, w, &j->next[j->next_count++]);
	return w->stats != w->stats_end || w->model != w->model_end;
}

/* The slots as they are now, in place of those before; each node is held once more than before. */
static void replace_slots(struct join *j)
{
	while (j->walk.slot != j->walk.slot_end)
		drop_slot(j, j->walk.slot++);
	free(j->slots);
	j->slots = j->next;
	j->count = j->next_count;
	j->next = NULL;
}

void join_set_demand(struct join *j, struct demand *d)
{
	j->demand = d;
}

int join_recall(struct join *j, const char *text, size_t len, struct error *error)
{
	return owners_recall(j->owners, text, len, error);
}

struct view *join_end(struct join *j)
{
	struct view_node **nodes;
	struct view *v;

	join_step(j, SIZE_MAX);
	replace_slots(j);
	nodes = mem_alloc((j->count + 1) * sizeof(struct view_node *));
	for (size_t i = 0; i < j->count; i++)
		nodes[i] = j->slots[i].node;
	v = view_new(++j->version, j->now_ns, nodes, j->count, j->cluster,
		     owners_table(j->owners, j->now_ns));
	j->cluster = NULL;
	v->namespaces = namespaces_table(j->namespaces);
	v->demand = j->demand ? demand_table(j->demand, j->now_ns) : NULL;
	v->node_set_version = j->node_set_version;
	if (j->view)
		view_cache_inherit(v->cache, j->view->cache);
	view_drop(j->view);
	j->view = view_hold(v);
	if (j->demand)
		demand_see(j->demand, v);
	return v;
}

struct view *join_view(struct join *j, struct node_stats *const *node_stats, size_t stats_count,
		       struct cluster *cluster, int64_t now_ns)
{
	join_begin(j, node_stats, stats_count, cluster, now_ns);
	return join_end(j);
}
