/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of cgroups. Every rescan rebuilds it and joins it with the table before.
 *
 * A rescan collects the directories of all hierarchies in a hash by path. The commit sorts them by
 * path, which puts every subtree in one piece behind its root, and walks the old and the new table
 * in parallel:
 *
 *	ids of a path, before and now		life
 *	some equal, none different		goes on: same serial, the reading is kept
 *	0 -> n beside an equal one		goes on: runtimes make v1 directories one by one
 *	anything else				a new cgroup: new serial, empty reading
 *
 * Counters of a new cgroup count from 0. A cgroup marked at_start may have older counts, which
 * would count twice: in the first commit; if one of its ids was known before (it was renamed, only
 * one hierarchy's directory was made again, or the rescan ran meanwhile); and after an incomplete
 * rescan.
 *
 * Lookup by id uses a sorted index per hierarchy; a right hint makes it one comparison. Nothing
 * fails but a refused add: CGROUPS_MAX rows, ENTITY_NAME_MAX bytes per path.
 */
#include "agent/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* One path of the running rescan. */
struct staged {
	char *path; /* owned until the commit moves it into the table */
	size_t len;
	uint64_t id[HIERARCHIES];
	UT_hash_handle hh; /* by path */
};

struct id_slot {
	uint64_t id;
	int index;
};

struct topology {
	/* The committed table, sorted by path. */
	struct cgroup *cgroups;
	size_t count;
	struct id_slot *by_id[HIERARCHIES]; /* sorted by id */
	size_t by_id_count[HIERARCHIES];
	bool has_pods;

	/* The running rescan. */
	bool scanning;
	struct staged *staged;
	uint32_t refused[HIERARCHIES];

	uint64_t last_serial;
	uint64_t generation;
	bool complete_before; /* the last commit left out no cgroup */
};

struct topology *topology_new(void)
{
	return mem_zalloc(1, sizeof(struct topology));
}

static void drop_staged(struct topology *t)
{
	struct staged *s, *next;

	HASH_RELEASE (t->staged, s, next) {
		free(s->path);
		free(s);
	}
}

static void free_cgroups(struct cgroup *cgroups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(cgroups[i].path);
		free(cgroups[i].cpus);
	}
	free(cgroups);
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	drop_staged(t);
	free_cgroups(t->cgroups, t->count);
	for (int h = 0; h < HIERARCHIES; h++)
		free(t->by_id[h]);
	free(t);
}

void topology_begin(struct topology *t)
{
	drop_staged(t);
	memset(t->refused, 0, sizeof(t->refused));
	t->scanning = true;
}

static struct staged *find_staged(const struct topology *t, const char *path, size_t len)
{
	struct staged *s;

	HASH_FIND(hh, t->staged, path, len, s);
	return s;
}

/* Length of the parent's path: "/a/b" -> "/a", "/a" -> "/". */
static size_t parent_len(const char *path, size_t len)
{
	while (len > 1 && path[len - 1] != '/')
		len--;
	return len > 1 ? len - 1 : len;
}

static int check_new_path(const struct topology *t, const char *path, size_t len)
{
	if (HASH_COUNT(t->staged) >= CGROUPS_MAX)
		return -ENOSPC;
	if (path[0] != '/' || len > ENTITY_NAME_MAX)
		return -EINVAL;
	if (len == 1)
		return 0;
	if (path[len - 1] == '/' || !find_staged(t, path, parent_len(path, len)))
		return -EINVAL;
	return 0;
}

int topology_add(struct topology *t, enum hierarchy h, const char *path, uint64_t id)
{
	size_t len = strlen(path);
	struct staged *s;
	int err;

	assert(t->scanning && h < HIERARCHIES);
	if (!id)
		return -EINVAL;
	s = find_staged(t, path, len);
	if (s) {
		s->id[h] = id;
		return 0;
	}
	err = check_new_path(t, path, len);
	if (err) {
		t->refused[h] += err == -ENOSPC || len > ENTITY_NAME_MAX;
		return err;
	}
	s = mem_zalloc(1, sizeof(*s));
	s->path = mem_strndup(path, len);
	s->len = len;
	s->id[h] = id;
	HASH_ADD_KEYPTR(hh, t->staged, s->path, s->len, s);
	return 0;
}

/* End of the path, then '/', then the other bytes: a subtree follows its root without a gap. */
static int path_rank(char c)
{
	if (!c)
		return 0;
	return c == '/' ? 1 : (unsigned char)c + 1;
}

static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return path_rank(*a) - path_rank(*b);
}

static int compare_staged(const void *a, const void *b)
{
	const struct staged *const *x = a, *const *y = b;

	return compare_paths((*x)->path, (*y)->path);
}

/* Changes of the ids of a path between two rescans. */
struct id_change {
	bool kept; /* an id is the same in some hierarchy */
	bool replaced; /* an id differs */
	bool any; /* any change, also of a hierarchy that came or went */
};

static struct id_change compare_ids(const uint64_t *old, const uint64_t *now)
{
	struct id_change change = {0};

	for (int h = 0; h < HIERARCHIES; h++) {
		change.kept |= now[h] && old[h] == now[h];
		change.replaced |= old[h] && now[h] && old[h] != now[h];
		change.any |= old[h] != now[h];
	}
	return change;
}

/* Whether a counter of a new row may be older. */
static bool is_older(const struct topology *t, const struct cgroup *c)
{
	bool older = !t->complete_before;

	for (int h = 0; h < HIERARCHIES; h++)
		older |= topology_find(t, (enum hierarchy)h, c->id[h], CGROUP_NONE) != CGROUP_NONE;
	return older;
}

/* Fills one row from the rescan and its old row, if any. */
static bool fill_cgroup(struct topology *t, struct cgroup *c, struct staged *s, struct cgroup *old)
{
	struct id_change change = {.any = true};

	if (old) {
		*c = *old;
		old->cpus = NULL;
		change = compare_ids(old->id, s->id);
	}
	c->path = s->path;
	s->path = NULL;
	memcpy(c->id, s->id, sizeof(c->id));
	c->children = 0;
	if (old && change.kept && !change.replaced)
		return change.any;

	c->serial = ++t->last_serial;
	c->at_start = is_older(t, c);
	c->seen_pass = 0;
	free(c->cpus);
	c->cpus = NULL;
	memset(&c->reading, 0, sizeof(c->reading));
	if (!old)
		identity_parse(c->path, &c->identity);
	return true;
}

static bool is_child_of(const char *path, const char *parent)
{
	size_t len = parent_len(path, strlen(path));

	return strncmp(path, parent, len) == 0 && parent[len] == '\0';
}

/* In path order the parent is the last row or one of its ancestors. */
static void link_parent(struct cgroup *cgroups, size_t index)
{
	int parent = (int)index - 1;

	cgroups[index].parent = CGROUP_NONE;
	if (!index)
		return;
	while (!is_child_of(cgroups[index].path, cgroups[parent].path)) {
		parent = cgroups[parent].parent;
		assert(parent != CGROUP_NONE);
	}
	cgroups[index].parent = parent;
	cgroups[parent].children++;
}

/* Joins the sorted rescan with the old table, row by row. */
static bool join_tables(struct topology *t, struct staged **list, struct cgroup *cgroups,
			size_t count)
{
	bool changed = count != t->count;
	size_t o = 0;

	for (size_t i = 0; i < count; i++) {
		struct cgroup *old = NULL;

		while (o < t->count && compare_paths(t->cgroups[o].path, list[i]->path) < 0)
			o++;
		if (o < t->count && strcmp(t->cgroups[o].path, list[i]->path) == 0)
			old = &t->cgroups[o];
		changed |= fill_cgroup(t, &cgroups[i], list[i], old);
		link_parent(cgroups, i);
	}
	return changed;
}

static int compare_slots(const void *a, const void *b)
{
	const struct id_slot *x = a, *y = b;

	return COMPARE(x->id, y->id) ?: x->index - y->index;
}

static void replace_table(struct topology *t, struct cgroup *cgroups, size_t count)
{
	free_cgroups(t->cgroups, t->count);
	t->cgroups = cgroups;
	t->count = count;
	for (int h = 0; h < HIERARCHIES; h++) {
		size_t n = 0;

		t->by_id[h] = mem_realloc(t->by_id[h], t->count * sizeof(struct id_slot));
		for (size_t i = 0; i < t->count; i++) {
			if (t->cgroups[i].id[h])
				t->by_id[h][n++] = (struct id_slot){t->cgroups[i].id[h], (int)i};
		}
		t->by_id_count[h] = n;
		qsort(t->by_id[h], n, sizeof(struct id_slot), compare_slots);
	}
	t->has_pods = false;
	for (size_t i = 0; i < count; i++)
		t->has_pods |= cgroups[i].identity.level == LEVEL_POD;
}

bool topology_commit(struct topology *t)
{
	size_t count = HASH_COUNT(t->staged);
	struct cgroup *cgroups;
	struct staged **list;
	bool changed;
	struct staged *s;
	size_t n = 0;

	assert(t->scanning);
	cgroups = mem_zalloc(count, sizeof(struct cgroup));
	list = mem_alloc(count * sizeof(struct staged *));
	for (s = t->staged; s; s = s->hh.next)
		list[n++] = s;
	assert(n == count);
	qsort(list, count, sizeof(struct staged *), compare_staged);
	changed = join_tables(t, list, cgroups, count);
	free(list);
	drop_staged(t);
	replace_table(t, cgroups, count);
	t->scanning = false;
	t->complete_before = topology_overflow(t) == 0;
	t->generation += changed;
	return changed;
}

size_t topology_count(const struct topology *t)
{
	return t->count;
}

uint64_t topology_generation(const struct topology *t)
{
	return t->generation;
}

struct cgroup *topology_at(struct topology *t, size_t index)
{
	assert(index < t->count);
	return &t->cgroups[index];
}

int topology_find(const struct topology *t, enum hierarchy h, uint64_t id, int hint)
{
	size_t count = t->by_id_count[h], at;

	if (!id)
		return CGROUP_NONE;
	if (hint >= 0 && (size_t)hint < t->count && t->cgroups[hint].id[h] == id)
		return hint;
	at = array_lower_bound(&id, t->by_id[h], count, sizeof(struct id_slot),
			       array_compare_uint64);
	return at < count && t->by_id[h][at].id == id ? t->by_id[h][at].index : CGROUP_NONE;
}

/* A path is refused once per hierarchy, so the worst hierarchy counts. */
uint32_t topology_overflow(const struct topology *t)
{
	uint32_t most = 0;

	for (int h = 0; h < HIERARCHIES; h++) {
		if (t->refused[h] > most)
			most = t->refused[h];
	}
	return most;
}

bool topology_has_pods(const struct topology *t)
{
	return t->has_pods;
}
