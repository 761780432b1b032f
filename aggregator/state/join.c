/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three sorted lists are walked at once: the pages, the cluster's nodes, and the slots of the view before.
 *
 *     pages      a   b       d
 *     cluster        b   c   d
 *     slots      a   b   c   d      each made of that page and that node: it stays; else it is made anew
 *
 * Both are immutable and held by what was made of them, so the same pointer is the same content, and no address comes
 * back as something else. Where the next of each list are those of the next slot, no name is read.
 *
 * The newest view is held, and with it the nodes of all slots. A node that is made anew or goes takes its pods'
 * contributions to their owners with it (join_owners.c).
 */
#include "aggregator/state/join.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join_owners.h"
#include "shared/mem.h"

struct slot {
	struct view_node *node; /* borrowed: the newest view holds it */
	const struct node_page *page; /* what it was made of; NULL: there was none */
	const struct model_node *model;
	struct owner_shares shares;
};

struct join {
	uint64_t version; /* of the newest view */
	size_t count;
	struct slot *slots; /* owned; sorted by name */
	struct view *view; /* held: the newest; NULL: none yet */
	struct owners *owners;
};

/* What is left of the lists of one join_view(). */
struct walk {
	struct node_page *const *page, *const *page_end;
	struct model_node *const *model, *const *model_end;
	struct slot *slot, *slot_end;
};

struct join *join_new(void)
{
	struct join *j = mem_zalloc(1, sizeof(*j));

	j->owners = owners_new();
	return j;
}

void join_free(struct join *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->count; i++)
		owners_subtract(j->owners, &j->slots[i].shares);
	owners_free(j->owners);
	view_drop(j->view);
	free(j->slots);
	free(j);
}

/* Whether what the next slot was made of comes next; then nothing has to be compared. */
static bool is_same(const struct walk *w)
{
	const struct slot *s = w->slot;

	if (s == w->slot_end || (!s->page && w->page < w->page_end) ||
	    (!s->model && w->model < w->model_end))
		return false;
	return (w->page < w->page_end ? *w->page : NULL) == s->page &&
	       (w->model < w->model_end ? *w->model : NULL) == s->model;
}

/* Takes the page and the node of the first name there is off the lists; one of both may be NULL. */
static void take_next(struct walk *w, struct node_page **page, struct model_node **model)
{
	int order = 0;

	if (w->page == w->page_end)
		order = 1;
	else if (w->model == w->model_end)
		order = -1;
	else
		order = strcmp((*w->page)->name, (*w->model)->name);
	*page = order <= 0 ? *w->page++ : NULL;
	*model = order >= 0 ? *w->model++ : NULL;
}

/* The old slot of that name, off the list, or NULL; those before it are of nodes that are gone. */
static struct slot *take_slot(struct join *j, struct walk *w, const char *name)
{
	int order = -1;

	while (w->slot < w->slot_end && (order = strcmp(w->slot->node->name, name)) < 0)
		owners_subtract(j->owners, &w->slot++->shares);
	return w->slot < w->slot_end && order == 0 ? w->slot++ : NULL;
}

static void make_slot(struct join *j, struct slot *old, struct node_page *page,
		      struct model_node *model, struct slot *now)
{
	if (old && old->page == page && old->model == model) {
		*now = *old;
		view_node_hold(now->node);
		return;
	}
	now->node = view_node_renew(old ? old->node : NULL, page, model);
	now->page = page;
	now->model = model;
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
	struct node_page *page;
	struct model_node *model;

	if (is_same(w)) {
		w->page += w->slot->page != NULL;
		w->model += w->slot->model != NULL;
		*now = *w->slot++;
		view_node_hold(now->node);
		return;
	}
	take_next(w, &page, &model);
	make_slot(j, take_slot(j, w, page ? page->name : model->name), page, model, now);
}

/* The slots as they are now, in place of those before; each node is held once more than before. */
static void walk(struct join *j, struct walk *w)
{
	size_t room = (size_t)(w->page_end - w->page) + (size_t)(w->model_end - w->model);
	struct slot *slots = mem_alloc((room + 1) * sizeof(*slots));
	size_t count = 0;

	while (w->page < w->page_end || w->model < w->model_end)
		next_slot(j, w, &slots[count++]);
	while (w->slot < w->slot_end)
		owners_subtract(j->owners, &w->slot++->shares);
	free(j->slots);
	j->slots = slots;
	j->count = count;
}

struct view *join_view(struct join *j, struct node_page *const *pages, size_t page_count,
		       struct cluster *cluster, int64_t now_ns)
{
	struct model_node *const *models = cluster ? cluster->nodes : NULL;
	struct walk w = {
		.page = pages,
		.page_end = pages ? pages + page_count : NULL,
		.model = models,
		.model_end = cluster ? models + cluster->node_count : NULL,
		.slot = j->slots,
		.slot_end = j->slots ? j->slots + j->count : NULL,
	};
	struct view_node **nodes;
	struct view *v;

	walk(j, &w);
	nodes = mem_alloc((j->count + 1) * sizeof(struct view_node *));
	for (size_t i = 0; i < j->count; i++)
		nodes[i] = j->slots[i].node;
	v = view_new(++j->version, now_ns, nodes, j->count, cluster, owners_table(j->owners));
	view_drop(j->view);
	j->view = view_hold(v);
	return v;
}
