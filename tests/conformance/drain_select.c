/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of what may go now: unneeded, atomic_filter, nodes_to_delete, budgets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_select.h"
#include "aggregator/policy/drain/drain_eligibility.h"
#include "shared/mem.h"
#include "tests/conformance/drain_records.h"
#include "tests/conformance/values.h"

static const int64_t SECOND_NS = 1000000000;

/* Nodes that may go, with what they point to. */
struct scene {
	struct drain_options options;
	struct drain_groups groups;
	struct drain_records records;
	struct drain_removable *nodes; /* owned */
	struct drain_timer *timers; /* owned */
	size_t count, room;
};

static void scene_init(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	drain_options_upstream(&s->options);
	drain_groups_init(&s->groups, NULL, 0);
	s->room = 512;
	s->nodes = mem_zalloc(s->room, sizeof(*s->nodes));
	s->timers = mem_zalloc(s->room, sizeof(*s->timers));
}

static void scene_fini(struct scene *s)
{
	drain_groups_fini(&s->groups);
	drain_records_fini(&s->records);
	free(s->nodes);
	free(s->timers);
}

/* Unneeded since the age; NULL is in no group. */
static bool add_node(struct scene *s, const char *name, const char *group, int64_t age_ns,
		     const cJSON *marks, struct error *error)
{
	cJSON *json = marks ? cJSON_Duplicate(marks, true) : cJSON_CreateObject();
	struct drain_removable *n = &s->nodes[s->count];
	struct drain_timer *t = &s->timers[s->count];
	bool good;

	cJSON_AddStringToObject(json, "name", name);
	good = s->count < s->room && drain_records_add_node(&s->records, json, error);
	cJSON_Delete(json);
	if (!good)
		return false;
	n->node = (const struct kube_node *)s->records.of[s->count++];
	t->since_ns = DRAIN_CASE_NOW_NS - age_ns;
	t->kind = n->node->ready ? DRAIN_TIMER_UNNEEDED : DRAIN_TIMER_UNREADY;
	n->timer = t;
	n->group = group ? drain_groups_find(&s->groups, group) : DRAIN_NO_GROUP;
	n->gives = (struct drain_floor){1, 1000, 10};
	return true;
}

/* {name: [target size, atomic]} */
static void add_groups(struct scene *s, const cJSON *groups)
{
	for (const cJSON *g = groups ? groups->child : NULL; g; g = g->next)
		drain_groups_add(&s->groups, g->string);
	for (const cJSON *g = groups ? groups->child : NULL; g; g = g->next) {
		struct drain_group *of = &s->groups.of[drain_groups_find(&s->groups, g->string)];

		of->size = cJSON_GetArrayItem(g, 0)->valueint;
		of->atomic = cJSON_IsTrue(cJSON_GetArrayItem(g, 1));
	}
}

static void add_registered(struct scene *s, const char *group, int64_t count)
{
	uint32_t at = group ? drain_groups_find(&s->groups, group) : DRAIN_NO_GROUP;

	if (at != DRAIN_NO_GROUP)
		s->groups.of[at].registered += count;
}

/* --- unneeded: update, load_from_taints */

static void see(const cJSON *list, struct drain_timers *t, int64_t now_ns)
{
	size_t count = 0;
	struct drain_result *seen = mem_zalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*seen));

	for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
		seen[count++] = (struct drain_result){cJSON_GetArrayItem(item, 0)->valuestring,
						      DRAIN_SEEN_UNNEEDED,
						      cJSON_IsTrue(cJSON_GetArrayItem(item, 2))};
	drain_timers_update(t, DRAIN_UPSTREAM, seen, count, now_ns);
	free(seen);
}

static bool same_timer(const struct drain_timer *t, const cJSON *want,
		       const struct drain_options *o, struct error *error)
{
	int64_t since, threshold;

	if (!values_int(want, "since", &since, error) ||
	    !values_int(want, "threshold_s", &threshold, error))
		return false;
	if (t && t->since_ns == since * SECOND_NS &&
	    drain_timer_due_ns(t, o) == (since + threshold) * SECOND_NS)
		return true;
	values_fail(error, "%s has another time", want->string);
	return false;
}

enum outcome run_unneeded_update(const cJSON *c, struct error *error)
{
	const cJSON *want = values_get(c, "want");
	struct drain_timers t = {0};
	struct drain_options o;
	bool same;

	if (!drain_case_options(values_get(conformance_file(), "update_thresholds"), &o, error))
		return FAILED;
	see(values_get(c, "initial"), &t, 0);
	see(values_get(c, "final"), &t, 60 * SECOND_NS);
	same = t.count == (size_t)cJSON_GetArraySize(want);
	if (!same)
		values_fail(error, "%zu are unneeded", t.count);
	for (const cJSON *item = want ? want->child : NULL; same && item; item = item->next)
		same = same_timer(drain_timers_find(&t, item->string), item, &o, error);
	drain_timers_fini(&t);
	return same ? PASSED : FAILED;
}

/* The age is a number, null (no such taint), or what cannot be read. */
static bool add_tainted(struct drain_records *r, const cJSON *age, struct error *error)
{
	cJSON *json = cJSON_CreateObject(), *taint = cJSON_CreateObject();
	char value[32] = "invalid";

	cJSON_AddStringToObject(cJSON_AddObjectToObject(json, "metadata"), "name", age->string);
	cJSON_AddItemToArray(
		cJSON_AddArrayToObject(cJSON_AddObjectToObject(json, "spec"), "taints"), taint);
	if (cJSON_IsNumber(age))
		snprintf(value, sizeof(value), "%lld",
			 (long long)(DRAIN_CASE_NOW_NS / SECOND_NS - age->valueint));
	cJSON_AddStringToObject(taint, "key", cJSON_IsNull(age) ? "other" : DRAIN_TAINT_CANDIDATE);
	cJSON_AddStringToObject(taint, "value", value);
	return drain_records_add(r, OBJECT_NODE, json, error);
}

/* What cluster-autoscaler remembers in taints after a restart, as timers. */
static void load_taints(struct drain_timers *t, const struct drain_records *nodes, int64_t ttl_ns)
{
	for (size_t i = 0; i < nodes->count; i++) {
		struct kube_node *node = (struct kube_node *)nodes->of[i];
		struct drain_timer timer = {.node = (char *)node->object.name};

		if (!drain_taint_time(node, DRAIN_TAINT_CANDIDATE, &timer.since_ns) &&
		    DRAIN_CASE_NOW_NS - timer.since_ns <= ttl_ns)
			drain_timers_load(t, &timer, DRAIN_CASE_NOW_NS, ttl_ns, DRAIN_CASE_NOW_NS);
	}
}

enum outcome run_unneeded_taints(const cJSON *c, struct error *error)
{
	const cJSON *ages = values_get(c, "taint_age_s"), *want = values_get(c, "want_unneeded");
	struct drain_records nodes = {0};
	struct drain_timers t = {0};
	int64_t ttl_ns = 0;
	bool passed = drain_case_seconds(c, "ttl_s", &ttl_ns, error);

	for (const cJSON *age = ages ? ages->child : NULL; passed && age; age = age->next)
		passed = add_tainted(&nodes, age, error);
	load_taints(&t, &nodes, ttl_ns);
	if (passed && t.count != (size_t)cJSON_GetArraySize(want)) {
		passed = false;
		values_fail(error, "%zu are unneeded", t.count);
	}
	for (const cJSON *item = want ? want->child : NULL; passed && item; item = item->next) {
		passed = drain_timers_find(&t, item->valuestring) != NULL;
		if (!passed)
			values_fail(error, "%s is not unneeded", item->valuestring);
	}
	drain_timers_fini(&t);
	drain_records_fini(&nodes);
	return passed ? PASSED : FAILED;
}

/* --- unneeded: removable_at_* */

static cJSON *make_marks(const cJSON *c)
{
	cJSON *marks = cJSON_CreateObject();

	cJSON_AddItemToObject(marks, "ready",
			      cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(c, "ready"), true));
	if (cJSON_IsTrue(values_get(c, "scale_down_disabled")))
		cJSON_AddTrueToObject(marks, "scale_down_disabled");
	return marks;
}

/* One group "g", and the first `empty` of the nodes without pods to move. */
static bool set_removable(struct scene *s, const cJSON *c, int64_t empty, int64_t drain,
			  const char *group, struct error *error)
{
	uint32_t at = drain_groups_add(&s->groups, "g");
	struct drain_group *g = &s->groups.of[at];
	cJSON *marks = make_marks(c);
	int64_t elapsed_ns;
	bool good = drain_case_options(c, &s->options, error) &&
		    values_int(c, "min_size", &g->min, error) &&
		    values_int(c, "target_size", &g->size, error) &&
		    drain_case_seconds(c, "elapsed_s", &elapsed_ns, error);

	for (int64_t i = 0; good && i < empty + drain; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%d", (int)i);
		good = add_node(s, name, group, elapsed_ns, marks, error);
		if (good)
			s->nodes[i].movable = i >= empty;
	}
	cJSON_Delete(marks);
	return good;
}

static bool check_counts(struct scene *s, const cJSON *c, int64_t empty, int64_t drain,
			 struct error *error)
{
	struct drain_choice choice;
	bool same;

	if (!set_removable(s, c, empty, drain, "g", error) ||
	    !values_int(c, "ongoing_deletions", &s->groups.of[0].in_deletion, error))
		return false;
	drain_select(&s->options, &s->groups, s->nodes, s->count, DRAIN_CASE_NOW_NS, &choice);
	same = values_same_int(c, "want_empty", (int64_t)choice.empty_count, error) &&
	       values_same_int(c, "want_drain", (int64_t)choice.drain_count, error);
	drain_choice_fini(&choice);
	return same;
}

enum outcome run_unneeded_count(const cJSON *c, struct error *error)
{
	int64_t empty, drain;
	struct scene s;
	bool passed;

	scene_init(&s);
	passed = values_int(c, "num_empty", &empty, error) &&
		 values_int(c, "num_drain", &drain, error) &&
		 check_counts(&s, c, empty, drain, error);
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

static bool check_reason(struct scene *s, const cJSON *c, struct error *error)
{
	struct drain_floor sums = {0}, min = {-1, -1, -1};
	struct drain_choice choice;
	const char *got;

	if (!set_removable(s, c, 1, 0, cJSON_IsTrue(values_get(c, "in_group")) ? "g" : NULL,
			   error) ||
	    !values_int(c, "node_count", &sums.nodes, error) ||
	    (values_get(c, "min_nodes_quota") &&
	     !values_int(c, "min_nodes_quota", &min.nodes, error)))
		return false;
	if (cJSON_IsTrue(values_get(c, "threshold_error")))
		s->options.unneeded_ns = s->options.unready_ns = -1;
	drain_groups_set_floor(&s->groups, &sums, &min);
	drain_select(&s->options, &s->groups, s->nodes, 1, DRAIN_CASE_NOW_NS, &choice);
	got = drain_reason_name(s->nodes[0].reason);
	drain_choice_fini(&choice);
	return drain_case_same(c, "want_reason", got, error);
}

enum outcome run_unneeded_reason(const cJSON *c, struct error *error)
{
	struct scene s;
	bool passed;

	scene_init(&s);
	passed = check_reason(&s, c, error);
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- atomic_filter */

static bool same_reasons(const struct scene *s, const cJSON *want, struct error *error)
{
	for (const cJSON *item = want ? want->child : NULL; item; item = item->next) {
		bool same = false;

		for (size_t i = 0; i < s->count; i++)
			if (strcmp(s->nodes[i].node->object.name, item->string) == 0)
				same = drain_case_same(want, item->string,
						       drain_reason_name(s->nodes[i].reason),
						       error);
		if (!same)
			return false;
	}
	return true;
}

static bool same_removed(const struct scene *s, const cJSON *want, struct error *error)
{
	const cJSON *item = want ? want->child : NULL;

	for (size_t i = 0; i < s->count; i++) {
		if (s->nodes[i].reason != DRAIN_NONE)
			continue;
		if (!item || strcmp(item->valuestring, s->nodes[i].node->object.name) != 0) {
			values_fail(error, "%s is removed", s->nodes[i].node->object.name);
			return false;
		}
		item = item->next;
	}
	if (item)
		values_fail(error, "%s is not removed", item->valuestring);
	return !item;
}

/* [[name, group]] */
static bool add_candidates(struct scene *s, const cJSON *list, bool removable, struct error *error)
{
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(item, 0));
		const char *group = cJSON_GetStringValue(cJSON_GetArrayItem(item, 1));

		if (!name) {
			values_fail(error, "a candidate must have a name");
			return false;
		}
		add_registered(s, group, 1);
		if (removable && !add_node(s, name, group, 0, NULL, error))
			return false;
	}
	return true;
}

enum outcome run_atomic_filter(const cJSON *c, struct error *error)
{
	struct scene s;
	bool passed;

	scene_init(&s);
	add_groups(&s, values_get(c, "groups"));
	passed = add_candidates(&s, values_get(c, "candidates"), true, error) &&
		 add_candidates(&s, values_get(c, "other_registered"), false, error);
	if (passed) {
		drain_select_atomic(&s.groups, s.nodes, s.count);
		passed = same_removed(&s, values_get(c, "want_removed"), error) &&
			 same_reasons(&s, values_get(c, "want_unremovable"), error);
	}
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- nodes_to_delete */

/* {group: [[name, pods to move, on-completion pods]]} */
static bool add_unneeded(struct scene *s, const cJSON *removable, struct error *error)
{
	for (const cJSON *group = removable ? removable->child : NULL; group; group = group->next) {
		for (const cJSON *item = group->child; item; item = item->next) {
			if (!add_node(s, cJSON_GetArrayItem(item, 0)->valuestring, group->string,
				      3600 * SECOND_NS, NULL, error))
				return false;
			s->nodes[s->count - 1].movable =
				(size_t)cJSON_GetArrayItem(item, 1)->valueint;
			s->nodes[s->count - 1].waiting =
				(size_t)cJSON_GetArrayItem(item, 2)->valueint;
			add_registered(s, group->string, 1);
		}
	}
	return true;
}

static int64_t add_others(struct scene *s, const cJSON *others)
{
	int64_t count = 0;

	for (const cJSON *group = others ? others->child : NULL; group; group = group->next) {
		count += cJSON_GetArraySize(group);
		add_registered(s, group->string, cJSON_GetArraySize(group));
	}
	return count;
}

static int64_t limit_of(const cJSON *limits, const char *key, int64_t unit)
{
	const cJSON *limit = values_get(limits, key);

	return limit ? (int64_t)limit->valuedouble * unit : -1;
}

static void set_floor(struct scene *s, const cJSON *limits, int64_t nodes)
{
	const struct drain_floor sums = {nodes, 1000 * nodes, 10 * nodes};
	const struct drain_floor min = {limit_of(limits, "nodes", 1), limit_of(limits, "cpu", 1000),
					limit_of(limits, "memory", 1)};

	drain_groups_set_floor(&s->groups, &sums, &min);
}

static bool same_chosen(const struct scene *s, const cJSON *want, const size_t *got, size_t count,
			struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = s->nodes[got[i]].node->object.name;
		const cJSON *item = want ? want->child : NULL;

		while (item && strcmp(item->valuestring, name) != 0)
			item = item->next;
		if (!item) {
			values_fail(error, "%s is chosen", name);
			return false;
		}
	}
	if (count == (size_t)cJSON_GetArraySize(want))
		return true;
	values_fail(error, "%zu are chosen", count);
	return false;
}

static bool check_chosen(struct scene *s, const cJSON *c, struct error *error)
{
	struct drain_choice choice;
	bool same;

	drain_select(&s->options, &s->groups, s->nodes, s->count, DRAIN_CASE_NOW_NS, &choice);
	same = same_chosen(s, values_get(c, "want_empty"), choice.empty, choice.empty_count,
			   error) &&
	       same_chosen(s, values_get(c, "want_drain"), choice.drain, choice.drain_count,
			   error) &&
	       same_reasons(s, values_get(c, "want_unremovable"), error);
	drain_choice_fini(&choice);
	return same;
}

enum outcome run_nodes_to_delete(const cJSON *c, struct error *error)
{
	struct scene s;
	bool passed;

	scene_init(&s);
	s.options.unready_ns = 0;
	add_groups(&s, values_get(c, "groups"));
	passed = add_unneeded(&s, values_get(c, "removable"), error);
	if (passed) {
		int64_t others = add_others(&s, values_get(c, "other_nodes"));

		set_floor(&s, values_get(c, "min_limits"), (int64_t)s.count + others);
		passed = check_chosen(&s, c, error);
	}
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- budgets */

enum { INDEX_MAX = 256 };

/* Ranges of node numbers by group, in their order. */
struct ranges {
	uint32_t groups[INDEX_MAX];
	int index[INDEX_MAX];
	size_t count;
};

static bool read_ranges(const struct drain_groups *g, const cJSON *list, struct ranges *out,
			struct error *error)
{
	out->count = 0;
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		const char *name = cJSON_GetStringValue(values_get(item, "group"));
		uint32_t group = name ? drain_groups_find(g, name) : DRAIN_NO_GROUP;
		int64_t from, to;

		if (!values_int(item, "from", &from, error) || !values_int(item, "to", &to, error))
			return false;
		if (group == DRAIN_NO_GROUP || (int64_t)out->count + to - from > INDEX_MAX) {
			values_fail(error, "a range cannot be read");
			return false;
		}
		for (int64_t i = from; i < to; i++, out->count++) {
			out->groups[out->count] = group;
			out->index[out->count] = (int)i;
		}
	}
	return true;
}

static void read_file_groups(struct drain_groups *g)
{
	const cJSON *groups = values_get(conformance_file(), "groups");

	for (const cJSON *item = groups ? groups->child : NULL; item; item = item->next)
		drain_groups_add(g, item->string);
	for (const cJSON *item = groups ? groups->child : NULL; item; item = item->next) {
		struct drain_group *of = &g->of[drain_groups_find(g, item->string)];

		of->size = values_get(item, "target_size")->valueint;
		of->atomic = cJSON_IsTrue(values_get(item, "atomic"));
	}
}

/* A node that is in several lists is registered once. */
static void count_registered(struct drain_groups *g, const struct ranges *lists[3])
{
	bool(*seen)[INDEX_MAX] = mem_zalloc(g->count + 1, sizeof(*seen));

	for (size_t l = 0; l < 3; l++) {
		for (size_t i = 0; i < lists[l]->count; i++) {
			uint32_t group = lists[l]->groups[i];

			g->of[group].registered += !seen[group][lists[l]->index[i]];
			seen[group][lists[l]->index[i]] = true;
		}
	}
	free(seen);
}

/* first: the number of the first node of `from`. */
static bool same_crop(const char *what, const struct ranges *from, size_t first, const size_t *got,
		      size_t count, const struct ranges *want, struct error *error)
{
	bool same = count == want->count;

	for (size_t i = 0; same && i < count; i++)
		same = from->groups[got[i] - first] == want->groups[i] &&
		       from->index[got[i] - first] == want->index[i];
	if (!same)
		values_fail(error, "%s: other nodes are taken, %zu of them", what, count);
	return same;
}

static bool check_crop(const struct drain_budget *b, const struct drain_groups *g,
		       const struct ranges *empty, const struct ranges *drain,
		       const struct ranges *want_empty, const struct ranges *want_drain,
		       struct error *error)
{
	size_t count = empty->count + drain->count;
	struct drain_removable *nodes = mem_zalloc(count + 1, sizeof(*nodes));
	size_t *numbers = mem_zalloc(count + 1, sizeof(*numbers));
	const struct drain_choice from = {numbers, numbers + empty->count, empty->count,
					  drain->count};
	struct drain_choice crop;
	bool same;

	for (size_t i = 0; i < count; i++) {
		numbers[i] = i;
		nodes[i].group =
			i < empty->count ? empty->groups[i] : drain->groups[i - empty->count];
	}
	drain_budget_crop(b, DRAIN_UPSTREAM, g, nodes, &from, &crop);
	same = same_crop("empty", empty, 0, crop.empty, crop.empty_count, want_empty, error) &&
	       same_crop("drain", drain, empty->count, crop.drain, crop.drain_count, want_drain,
			 error);
	drain_choice_fini(&crop);
	free(nodes);
	free(numbers);
	return same;
}

static bool check_budget(const cJSON *c, struct drain_groups *g, struct error *error)
{
	struct ranges empty, drain, other, want_empty, want_drain;
	const struct ranges *lists[3] = {&empty, &drain, &other};
	struct drain_budget b;

	if (!read_ranges(g, values_get(c, "empty"), &empty, error) ||
	    !read_ranges(g, values_get(c, "drain"), &drain, error) ||
	    !read_ranges(g, values_get(c, "other_registered"), &other, error) ||
	    !read_ranges(g, values_get(c, "want_empty"), &want_empty, error) ||
	    !read_ranges(g, values_get(c, "want_drain"), &want_drain, error) ||
	    !values_int(conformance_file(), "max_scale_down_parallelism", &b.max, error) ||
	    !values_int(conformance_file(), "max_drain_parallelism", &b.max_drain, error) ||
	    !values_int(c, "empty_in_progress", &b.empty_in_progress, error) ||
	    !values_int(c, "drain_in_progress", &b.drain_in_progress, error))
		return false;
	count_registered(g, lists);
	return check_crop(&b, g, &empty, &drain, &want_empty, &want_drain, error);
}

enum outcome run_budget(const cJSON *c, struct error *error)
{
	struct drain_groups g;
	bool passed;

	drain_groups_init(&g, NULL, 0);
	read_file_groups(&g);
	passed = check_budget(c, &g, error);
	drain_groups_fini(&g);
	return passed ? PASSED : FAILED;
}
