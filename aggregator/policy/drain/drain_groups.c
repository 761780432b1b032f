/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"

int drain_groups_check(const struct drain_group_rule *rules, size_t count, struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		const struct drain_group_rule *r = &rules[i];

		if (r->min < 0 || (r->max >= 0 && r->min > r->max))
			return error_fail(error, -EINVAL,
					  "group \"%s\": min %" PRId64 " must be 0 to max", r->name,
					  r->min);
		for (size_t j = 0; j < i; j++) {
			if (strcmp(rules[j].name, r->name) == 0)
				return error_fail(error, -EINVAL, "group \"%s\" is there twice",
						  r->name);
		}
	}
	return 0;
}

void drain_groups_init(struct drain_groups *g, const struct drain_group_rule *rules, size_t count)
{
	memset(g, 0, sizeof(*g));
	g->left = (struct drain_floor){-1, -1, -1};
	for (size_t i = 0; i < count; i++) {
		uint32_t at = drain_groups_add(g, rules[i].name);
		struct drain_group *group = &g->of[at];

		group->min = rules[i].min;
		group->atomic = rules[i].atomic;
	}
}

void drain_groups_fini(struct drain_groups *g)
{
	for (size_t i = 0; i < g->count; i++)
		free(g->of[i].name);
	free(g->of);
	memset(g, 0, sizeof(*g));
}

const char *drain_control_plane_label(const struct kube_node *node)
{
	static const char *const labels[] = {"node-role.kubernetes.io/control-plane",
					     "node-role.kubernetes.io/master"};

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels_find(&node->labels, labels[i]))
			return labels[i];
	return NULL;
}

const char *drain_group_name(const struct kube_node *node, const char *const *labels, size_t count)
{
	if (drain_control_plane_label(node))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *value = labels_find(&node->labels, labels[i]);

		if (value)
			return value;
	}
	return "";
}

uint32_t drain_groups_find(const struct drain_groups *g, const char *name)
{
	bool found;
	size_t at = array_find_name(g->of, g->count, sizeof(*g->of), name, &found);

	return found ? (uint32_t)at : DRAIN_NO_GROUP;
}

uint32_t drain_groups_add(struct drain_groups *g, const char *name)
{
	size_t at;

	g->of = array_put_name(g->of, &g->count, sizeof(*g->of), name, &at);
	return (uint32_t)at;
}

void drain_groups_count(struct drain_groups *g, uint32_t group, bool in_deletion)
{
	struct drain_group *of = &g->of[group];

	of->registered++;
	of->size++;
	of->in_deletion += in_deletion;
}

static int64_t above(int64_t sum, int64_t min)
{
	if (min < 0)
		return -1;
	return sum > min ? sum - min : 0;
}

void drain_groups_set_floor(struct drain_groups *g, const struct drain_floor *sums,
			    const struct drain_floor *min)
{
	g->left = (struct drain_floor){
		.nodes = above(sums->nodes, min->nodes),
		.cpu_milli = above(sums->cpu_milli, min->cpu_milli),
		.mem_bytes = above(sums->mem_bytes, min->mem_bytes),
	};
}

static bool fits(int64_t left, int64_t amount, const char *what, struct error *why)
{
	if (left < 0 || amount <= left)
		return true;
	return error_fail(why, false, "%" PRId64 " %s would go, and only %" PRId64 " more may",
			  amount, what, left);
}

static void use(int64_t *left, int64_t amount)
{
	if (*left >= 0)
		*left -= amount;
}

enum drain_reason drain_groups_accept(struct drain_groups *g, uint32_t group,
				      const struct drain_floor *node, struct error *why)
{
	struct drain_group *of;
	int64_t remain;

	if (group == DRAIN_NO_GROUP)
		return error_fail(why, DRAIN_NOT_AUTOSCALED, "it is in no group");
	of = &g->of[group];
	remain = of->size - of->in_deletion - of->leaving;
	if (remain <= of->min)
		return error_fail(why, DRAIN_GROUP_MIN_SIZE,
				  "group \"%s\" must keep %" PRId64 " %s, and has %" PRId64 " left",
				  of->name, of->min, drain_plural(of->min, "node", "nodes"),
				  remain);
	if (!fits(g->left.nodes, node->nodes, "node", why) ||
	    !fits(g->left.cpu_milli, node->cpu_milli, "millicores", why) ||
	    !fits(g->left.mem_bytes, node->mem_bytes, "bytes of memory", why))
		return DRAIN_MINIMAL_LIMIT;
	of->leaving++;
	use(&g->left.nodes, node->nodes);
	use(&g->left.cpu_milli, node->cpu_milli);
	use(&g->left.mem_bytes, node->mem_bytes);
	return DRAIN_NONE;
}

void drain_groups_release(struct drain_groups *g, uint32_t group, const struct drain_floor *node)
{
	g->of[group].leaving--;
	use(&g->left.nodes, -node->nodes);
	use(&g->left.cpu_milli, -node->cpu_milli);
	use(&g->left.mem_bytes, -node->mem_bytes);
}

bool drain_group_is_covered(const struct drain_group *g, int64_t nodes)
{
	return nodes == g->size || nodes == g->registered;
}
