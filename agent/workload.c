/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* systemd units that hold processes themselves; slices only hold units. */
static bool is_unit_name(const char *path)
{
	static const char *const ends[] = {".service", ".scope", ".socket", ".mount", ".swap"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends_with(path, ends[i]))
			return true;
	return false;
}

static int kind_in_cluster(const struct cgroup *c)
{
	if (c->identity.level == LEVEL_POD)
		return ENTITY_POD;
	if (c->identity.level == LEVEL_CONTAINER && c->identity.pod_uid[0])
		return ENTITY_CONTAINER;
	return NOT_LISTED;
}

/* closed: nothing below this cgroup is listed. */
static int kind_on_machine(const struct cgroup *c, bool *closed)
{
	*closed = true;
	if (c->identity.level == LEVEL_CONTAINER)
		return ENTITY_CONTAINER;
	if (is_unit_name(c->path))
		return ENTITY_UNIT;
	*closed = false;
	return c->children || ends_with(c->path, ".slice") ? ENTITY_SLICE : ENTITY_UNIT;
}

void workload_classify(struct topology *t, int8_t *kinds)
{
	size_t count = topology_count(t);
	bool pods = topology_has_pods(t);
	bool *closed = mem_zalloc(count, sizeof(*closed));

	for (size_t i = 0; i < count; i++) {
		const struct cgroup *c = topology_at(t, i);

		kinds[i] = NOT_LISTED;
		if (c->parent == CGROUP_NONE)
			continue;
		closed[i] = closed[c->parent];
		if (pods)
			kinds[i] = (int8_t)kind_in_cluster(c);
		else if (!closed[i])
			kinds[i] = (int8_t)kind_on_machine(c, &closed[i]);
	}
	free(closed);
}

struct workload *workload_new(uint32_t ref, enum entity_kind kind, uint32_t parent,
			      const struct cgroup *c)
{
	struct workload *w = mem_zalloc(1, sizeof(*w));
	struct entity *e = entity_new(ref, kind, c->path + 1);

	e->parent = parent;
	e->qos = c->identity.qos;
	e->runtime = c->identity.runtime;
	memcpy(e->pod_uid, c->identity.pod_uid, sizeof(e->pod_uid));
	memcpy(e->container_id, c->identity.container_id, sizeof(e->container_id));
	w->entity = e;
	w->limits = KERNEL_LIMITS_UNKNOWN;
	w->fresh = true;
	if (kind == ENTITY_CONTAINER || kind == ENTITY_UNIT)
		w->demand = mem_zalloc(1, sizeof(*w->demand));
	return w;
}

void workload_free(struct workload *w)
{
	if (!w)
		return;
	entity_drop(w->entity);
	free(w->demand);
	free(w);
}

void workload_set_limits(struct workload *w, const struct kernel_limits *limits)
{
	/* Numbers of one size, so there is no padding. */
	if (memcmp(&w->limits, limits, sizeof(*limits)) == 0)
		return;
	w->limits = *limits;
	w->fresh = true;
}
