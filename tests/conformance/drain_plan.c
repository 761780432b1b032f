/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of the planner as a whole: cluster_sim, topology_after_taint, try_schedule, node_order,
 * planner_update.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain.h"
#include "aggregator/policy/drain/drain_eligibility.h"
#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/state/join.h"
#include "shared/mem.h"
#include "tests/conformance/drain_records.h"
#include "tests/conformance/values.h"

static const int64_t SECOND_NS = 1000000000;

/* A cluster that cases describe in a few words, and the simulation of it. */
struct scene {
	struct model *model;
	struct view *view;
	struct place *place;
};

static bool scene_put(struct scene *s, enum object_kind kind, cJSON *json, struct error *error)
{
	struct drain_records one = {0};
	bool good = drain_records_add(&one, kind, json, error);

	if (good)
		model_put(s->model, object_hold(one.of[0]));
	drain_records_fini(&one);
	return good;
}

static void scene_init(struct scene *s)
{
	const struct model_source synced = {.state = SOURCE_SYNCED, .changed_ns = 1};

	*s = (struct scene){.model = model_new()};
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_set_source(s->model, (enum object_kind)kind, &synced);
}

static void scene_fini(struct scene *s)
{
	place_free(s->place);
	view_drop(s->view);
	model_free(s->model);
}

static void scene_build(struct scene *s)
{
	struct join *j = join_new();
	struct place_options o;

	s->view = join_view(j, NULL, 0, model_cluster(s->model), DRAIN_CASE_NOW_NS);
	join_free(j);
	place_options_default(&o);
	o.now_ns = DRAIN_CASE_NOW_NS;
	s->place = place_new(s->view, &o);
}

/* --- objects */

static void add_copy(cJSON *to, const char *name, const cJSON *from, const char *key)
{
	if (values_get(from, key))
		cJSON_AddItemToObject(to, name, cJSON_Duplicate(values_get(from, key), true));
}

static bool add_amount(cJSON *list, const char *name, const cJSON *from, const char *key,
		       const char *unit, struct error *error)
{
	char text[32];
	int64_t amount;

	if (!values_int(from, key, &amount, error))
		return false;
	snprintf(text, sizeof(text), "%" PRId64 "%s", amount, unit);
	cJSON_AddStringToObject(list, name, text);
	return true;
}

static void add_taint(cJSON *taints, const char *key, const char *effect)
{
	cJSON *taint = cJSON_CreateObject();
	char now[32];

	snprintf(now, sizeof(now), "%" PRId64, DRAIN_CASE_NOW_NS / SECOND_NS);
	cJSON_AddItemToArray(taints, taint);
	cJSON_AddStringToObject(taint, "key", key);
	cJSON_AddStringToObject(taint, "value", now);
	cJSON_AddStringToObject(taint, "effect", effect);
}

/* [[key, effect]], and the mark of a node in deletion. */
static void add_taints(cJSON *spec, const cJSON *node)
{
	const cJSON *given = values_get(node, "taints");
	cJSON *taints = cJSON_AddArrayToObject(spec, "taints");

	for (const cJSON *item = given ? given->child : NULL; item; item = item->next)
		add_taint(taints, cJSON_GetArrayItem(item, 0)->valuestring,
			  cJSON_GetArrayItem(item, 1)->valuestring);
	if (cJSON_IsTrue(values_get(node, "being_deleted")))
		add_taint(taints, DRAIN_TAINT_DELETION, "NoSchedule");
}

static bool put_node(struct scene *s, const cJSON *node, bool disabled, struct error *error)
{
	static const char *const keys[] = {"name",   "cpu_m",  "mem",		"pods",
					   "labels", "taints", "being_deleted", NULL};
	cJSON *json = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(json, "metadata");
	cJSON *status = cJSON_AddObjectToObject(json, "status");
	cJSON *allocatable = cJSON_AddObjectToObject(status, "allocatable");
	cJSON *ready = cJSON_CreateObject();

	add_copy(metadata, "name", node, "name");
	add_copy(metadata, "labels", node, "labels");
	if (disabled)
		cJSON_AddStringToObject(cJSON_AddObjectToObject(metadata, "annotations"),
					"cluster-autoscaler.kubernetes.io/scale-down-disabled",
					"true");
	add_taints(cJSON_AddObjectToObject(json, "spec"), node);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "conditions"), ready);
	cJSON_AddStringToObject(ready, "type", "Ready");
	cJSON_AddStringToObject(ready, "status", "True");
	if (!values_only(node, keys, error) ||
	    !add_amount(allocatable, "cpu", node, "cpu_m", "m", error) ||
	    !add_amount(allocatable, "memory", node, "mem", "", error) ||
	    !add_amount(allocatable, "pods", node, "pods", "", error)) {
		cJSON_Delete(json);
		return false;
	}
	return scene_put(s, OBJECT_NODE, json, error);
}

static void add_spread(cJSON *spec, const cJSON *spread)
{
	cJSON *one = cJSON_CreateObject();

	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "topologySpreadConstraints"), one);
	add_copy(one, "maxSkew", spread, "max_skew");
	add_copy(one, "minDomains", spread, "min_domains");
	add_copy(one, "topologyKey", spread, "key");
	add_copy(one, "nodeTaintsPolicy", spread, "taints_policy");
	add_copy(one, "whenUnsatisfiable", spread, "when");
	add_copy(cJSON_AddObjectToObject(one, "labelSelector"), "matchLabels", spread, "match");
}

static void add_owner(cJSON *metadata, const char *kind, const char *name)
{
	cJSON *owner = cJSON_CreateObject();

	cJSON_AddItemToArray(cJSON_AddArrayToObject(metadata, "ownerReferences"), owner);
	cJSON_AddStringToObject(owner, "apiVersion", "apps/v1");
	cJSON_AddStringToObject(owner, "kind", kind);
	cJSON_AddStringToObject(owner, "name", name);
	cJSON_AddTrueToObject(owner, "controller");
}

/* owner is a ReplicaSet's name; owner_kind may say something else, static and mirror among it. */
static void add_owners(cJSON *metadata, const cJSON *pod)
{
	const char *kind = cJSON_GetStringValue(values_get(pod, "owner_kind"));
	const char *name = cJSON_GetStringValue(values_get(pod, "owner"));
	cJSON *annotations = cJSON_AddObjectToObject(metadata, "annotations");

	if (kind && strcmp(kind, "mirror") == 0)
		cJSON_AddStringToObject(annotations, "kubernetes.io/config.mirror", "x");
	else if (kind && strcmp(kind, "static") == 0)
		cJSON_AddStringToObject(annotations, "kubernetes.io/config.source", "file");
	else if (kind && strcmp(kind, "DaemonSet") == 0)
		add_owner(metadata, kind, "ds");
	else if (name && *name)
		add_owner(metadata, "ReplicaSet", name);
}

static cJSON *make_pod(const cJSON *pod, struct error *error)
{
	static const char *const keys[] = {"name",  "cpu_m",  "mem",	"node",	    "owner_kind",
					   "owner", "labels", "spread", "priority", NULL};
	cJSON *json = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(json, "metadata");
	cJSON *spec = cJSON_AddObjectToObject(json, "spec"), *container = cJSON_CreateObject();
	cJSON *requests;

	add_copy(metadata, "name", pod, "name");
	add_copy(metadata, "uid", pod, "name");
	cJSON_AddStringToObject(metadata, "namespace", "default");
	add_copy(metadata, "labels", pod, "labels");
	add_owners(metadata, pod);
	add_copy(spec, "nodeName", pod, "node");
	add_copy(spec, "priority", pod, "priority");
	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "containers"), container);
	requests = cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"),
					   "requests");
	if (values_get(pod, "spread"))
		add_spread(spec, values_get(pod, "spread"));
	if (values_only(pod, keys, error) &&
	    add_amount(requests, "cpu", pod, "cpu_m", "m", error) &&
	    add_amount(requests, "memory", pod, "mem", "", error))
		return json;
	cJSON_Delete(json);
	return NULL;
}

static bool put_pod(struct scene *s, const cJSON *pod, struct error *error)
{
	cJSON *json = make_pod(pod, error);

	return json && scene_put(s, OBJECT_POD, json, error);
}

static bool has_text(const cJSON *list, const char *text)
{
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
		if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
			return true;
	return false;
}

/* eligible NULL: all are. */
static bool put_cluster(struct scene *s, const cJSON *c, const cJSON *eligible, struct error *error)
{
	const cJSON *nodes = values_get(c, "nodes"), *pods = values_get(c, "pods");

	for (const cJSON *n = nodes ? nodes->child : NULL; n; n = n->next) {
		const char *name = cJSON_GetStringValue(values_get(n, "name"));

		if (!put_node(s, n, eligible && name && !has_text(eligible, name), error))
			return false;
	}
	for (const cJSON *p = pods ? pods->child : NULL; p; p = p->next)
		if (!put_pod(s, p, error))
			return false;
	return true;
}

static bool put_replica_set(struct scene *s, const char *name, int spec, int current,
			    struct error *error)
{
	cJSON *json = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(json, "metadata");

	cJSON_AddStringToObject(metadata, "name", name);
	cJSON_AddStringToObject(metadata, "namespace", "default");
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(json, "spec"), "replicas", spec);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(json, "status"), "replicas", current);
	return scene_put(s, OBJECT_REPLICA_SET, json, error);
}

/* --- cluster_sim */

static struct drain_plan *step(struct scene *s, struct drain_state *state,
			       const struct drain_config *config, bool (*out_of_time)(void *),
			       void *context)
{
	const struct drain_input in = {
		.place = s->place,
		.view = s->view,
		.now_ns = DRAIN_CASE_NOW_NS,
		.out_of_time = out_of_time,
		.context = context,
	};

	return drain_step(state, &in, config);
}

static bool same_moves(const struct drain_plan_node *n, const cJSON *want, struct error *error)
{
	bool same = (int)n->move_count == cJSON_GetArraySize(want);

	for (size_t i = 0; i < n->move_count; i++)
		same = same && has_text(want, n->moves[i].pod->object.name);
	if (!same)
		values_fail(error, "other pods move, %zu of them", n->move_count);
	return same;
}

static bool same_removal(const struct drain_plan_node *n, const cJSON *c, struct error *error)
{
	bool removable = cJSON_IsTrue(values_get(c, "want_removable"));

	if (!n || (n->verdict == DRAIN_UNNEEDED) != removable) {
		values_fail(error, "the node is %s",
			    n ? drain_verdict_name(n->verdict) : "unknown");
		return false;
	}
	if (removable)
		return same_moves(n, values_get(c, "want_moved"), error);
	return drain_case_same(c, "want_reason",
			       n->reason_count ? drain_reason_name(n->reasons[0].code) : "", error);
}

enum outcome run_cluster_sim(const cJSON *c, struct error *error)
{
	const cJSON *sets = values_get(conformance_file(), "replicasets");
	const char *candidate = cJSON_GetStringValue(values_get(c, "candidate"));
	cJSON *eligible = cJSON_CreateArray();
	struct drain_config config;
	struct drain_state *state;
	struct drain_plan *plan = NULL;
	struct scene s;
	bool passed;

	cJSON_AddItemToArray(eligible, cJSON_CreateString(candidate));
	if (cJSON_GetArraySize(values_get(c, "nodes")) == 0) {
		cJSON_Delete(eligible);
		values_fail(error, "the planner is given a view, which has all nodes");
		return SKIPPED;
	}
	state = drain_state_new();
	drain_config_upstream(&config);
	config.rules.utilization = 1;
	scene_init(&s);
	passed = candidate && put_cluster(&s, c, eligible, error);
	for (const cJSON *set = sets ? sets->child : NULL; passed && set; set = set->next)
		passed = put_replica_set(&s, set->string, set->valueint, set->valueint, error);
	if (passed) {
		scene_build(&s);
		plan = step(&s, state, &config, NULL, NULL);
		passed = same_removal(drain_plan_find(plan, candidate), c, error);
	}
	cJSON_Delete(eligible);
	drain_plan_free(plan);
	drain_state_free(state);
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- topology_after_taint */

enum outcome run_topology_after_taint(const cJSON *c, struct error *error)
{
	bool want = cJSON_IsTrue(values_get(c, "want_schedulable")), passed;
	place_node got = PLACE_NONE;
	struct scene s;

	scene_init(&s);
	passed = put_cluster(&s, c, NULL, error) && put_pod(&s, values_get(c, "incoming"), error);
	if (passed) {
		scene_build(&s);
		got = place_choose(s.place, place_find_pod(s.place, "default", "replacement-pod"),
				   PLACE_CYCLIC, PLACE_NONE, NULL, NULL);
		passed = (got != PLACE_NONE) == want;
		if (!passed)
			values_fail(error, "it goes to %s",
				    got == PLACE_NONE ? "nowhere" : place_node_name(s.place, got));
	}
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- try_schedule */

enum { ITEMS_MAX = 16 };

static bool is_late(void *passed)
{
	return *(const bool *)passed;
}

static size_t read_items(const struct scene *s, const cJSON *c, struct drain_item *items)
{
	const cJSON *pods = values_get(c, "new_pods"), *hints = values_get(c, "hints");
	size_t count = 0;

	for (const cJSON *p = pods ? pods->child : NULL; p && count < ITEMS_MAX; p = p->next) {
		const char *name = cJSON_GetStringValue(values_get(p, "name"));
		const char *hint = cJSON_GetStringValue(values_get(hints, name));

		items[count++] = (struct drain_item){
			.pod = place_find_pod(s->place, "default", name),
			.hint = hint ? place_find_node(s->place, hint) : PLACE_NONE,
		};
	}
	return count;
}

static bool same_placements(const struct scene *s, const struct drain_item *items, size_t count,
			    const cJSON *want, struct error *error)
{
	const cJSON *pair = want ? want->child : NULL;

	for (size_t i = 0; i < count; i++) {
		const char *pod = place_pod_record(s->place, items[i].pod)->object.name;

		if (items[i].to == PLACE_NONE)
			continue;
		if (!pair || strcmp(cJSON_GetArrayItem(pair, 0)->valuestring, pod) != 0 ||
		    strcmp(cJSON_GetArrayItem(pair, 1)->valuestring,
			   place_node_name(s->place, items[i].to)) != 0) {
			values_fail(error, "%s goes to %s", pod,
				    place_node_name(s->place, items[i].to));
			return false;
		}
		pair = pair->next;
	}
	if (pair)
		values_fail(error, "%s goes nowhere", cJSON_GetArrayItem(pair, 0)->valuestring);
	return !pair;
}

static bool check_schedule(struct scene *s, const cJSON *c, struct error *error)
{
	bool late = cJSON_IsTrue(values_get(c, "deadline_passed")), allowed[ITEMS_MAX];
	const cJSON *acceptable = values_get(c, "acceptable");
	struct drain_item items[ITEMS_MAX];
	struct drain_schedule schedule = {.place = s->place,
					  .order = PLACE_CYCLIC,
					  .allowed = acceptable ? allowed : NULL,
					  .out_of_time = is_late,
					  .context = &late};
	size_t count = read_items(s, c, items);

	for (place_node n = 0; n < place_node_count(s->place); n++)
		allowed[n] = has_text(acceptable, place_node_name(s->place, n));
	drain_schedule_pods(&schedule, items, count, NULL, NULL);
	return same_placements(s, items, count, values_get(c, "want"), error);
}

enum outcome run_try_schedule(const cJSON *c, struct error *error)
{
	const cJSON *pods = values_get(c, "new_pods");
	struct scene s;
	bool passed;

	scene_init(&s);
	passed = put_cluster(&s, c, NULL, error);
	for (const cJSON *p = pods ? pods->child : NULL; passed && p; p = p->next)
		passed = put_pod(&s, p, error);
	if (passed) {
		scene_build(&s);
		passed = check_schedule(&s, c, error);
	}
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- node_order */

static bool put_numbered(struct scene *s, int64_t nodes, struct error *error)
{
	cJSON *pod = cJSON_Parse("{\"name\":\"p\",\"cpu_m\":1,\"mem\":1}");
	bool good = put_pod(s, pod, error);

	cJSON_Delete(pod);
	for (int64_t i = 0; good && i < nodes; i++) {
		char *text = mem_printf("{\"name\":\"n%" PRId64 "\",\"cpu_m\":1,\"mem\":1,"
					"\"pods\":1}",
					i);
		cJSON *node = cJSON_Parse(text);

		good = put_node(s, node, false, error);
		cJSON_Delete(node);
		free(text);
	}
	return good;
}

/* The first of the nodes that are allowed, which is then not allowed any more. */
static place_node ask_next(struct scene *s, bool *allowed)
{
	place_node n = place_choose(s->place, place_find_pod(s->place, "default", "p"),
				    PLACE_CYCLIC, PLACE_NONE, allowed, NULL);

	if (n != PLACE_NONE)
		allowed[n] = false;
	return n;
}

/*
 * An offset other than one is the same as another node matched last. In which order nodes are tried
 * shows when each that was found is left out; that moves the pointer on to it, and so to the next
 * one.
 */
static bool check_order(struct scene *s, const cJSON *c, int64_t from, int64_t nodes,
			struct error *error)
{
	bool allowed[ITEMS_MAX] = {false};

	allowed[(from + nodes - 1) % nodes] = true;
	ask_next(s, allowed);
	for (int64_t i = 0; i < nodes; i++)
		allowed[i] = true;
	for (int i = 0; i < nodes; i++) {
		place_node got = ask_next(s, allowed);
		const cJSON *want = cJSON_GetArrayItem(values_get(c, "want"), i);

		if (want && got == (place_node)want->valueint)
			continue;
		values_fail(error, "node %u is tried as number %d", got, i);
		return false;
	}
	return true;
}

enum outcome run_node_order(const cJSON *c, struct error *error)
{
	int64_t offset, last, nodes;
	struct scene s;
	bool passed;

	scene_init(&s);
	passed = values_int(c, "offset", &offset, error) &&
		 values_int(c, "last_match", &last, error) && values_int(c, "n", &nodes, error) &&
		 nodes <= ITEMS_MAX && put_numbered(&s, nodes, error);
	if (passed) {
		scene_build(&s);
		passed = check_order(&s, c, last + offset, nodes, error);
	}
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- planner_update */

static bool after_first(void *asked)
{
	return (*(int *)asked)++ > 0;
}

static void planner_options(struct drain_config *config, const cJSON *file)
{
	drain_config_upstream(config);
	config->by_name = true;
	config->rules.utilization = INFINITY;
	config->rules.skip_system = false;
	config->rules.skip_local_storage = false;
	config->rules.skip_custom_controllers = false;
	config->rules.eviction_ttl_ns = 60 * SECOND_NS;
	config->rules.max_parallelism =
		(uint32_t)values_get(file, "max_scale_down_parallelism")->valueint;
	config->rules.unneeded_ns = values_get(file, "unneeded_time_s")->valueint * SECOND_NS;
}

static bool add_evictions(struct drain_state *state, const cJSON *list, struct error *error)
{
	for (const cJSON *p = list ? list->child : NULL; p; p = p->next) {
		cJSON *json = make_pod(p, error);
		struct drain_records one = {0};
		bool good = json && drain_records_add(&one, OBJECT_POD, json, error);

		if (good)
			drain_state_add_eviction(state, (struct kube_pod *)one.of[0],
						 DRAIN_CASE_NOW_NS, true);
		drain_records_fini(&one);
		if (!good)
			return false;
	}
	return true;
}

static bool put_replica_sets(struct scene *s, const cJSON *list, struct error *error)
{
	for (const cJSON *set = list ? list->child : NULL; set; set = set->next)
		if (!put_replica_set(s, values_get(set, "name")->valuestring,
				     values_get(set, "spec")->valueint,
				     values_get(set, "current")->valueint, error))
			return false;
	return true;
}

static bool same_sets(const struct drain_plan *p, const cJSON *c, struct error *error)
{
	const cJSON *unneeded = values_get(c, "want_unneeded");
	const cJSON *unremovable = values_get(c, "want_unremovable");

	for (size_t i = 0; i < p->node_count; i++) {
		const struct drain_plan_node *n = &p->nodes[i];
		bool stays = n->verdict == DRAIN_NEEDED || n->verdict == DRAIN_IN_DELETION;

		if ((n->verdict == DRAIN_UNNEEDED) == has_text(unneeded, n->name) &&
		    stays == has_text(unremovable, n->name))
			continue;
		values_fail(error, "%s is %s: %s", n->name, drain_verdict_name(n->verdict),
			    n->reason_count ? n->reasons[0].text : "");
		return false;
	}
	return true;
}

enum outcome run_planner_update(const cJSON *c, struct error *error)
{
	bool timeout = cJSON_IsTrue(values_get(c, "simulation_timeout_after_first"));
	struct drain_state *state = drain_state_new();
	struct drain_plan *plan = NULL;
	struct drain_config config;
	struct scene s;
	int asked = 0;
	bool passed;

	planner_options(&config, conformance_file());
	scene_init(&s);
	passed = put_cluster(&s, c, values_get(c, "eligible"), error) &&
		 put_replica_sets(&s, values_get(c, "replicasets"), error) &&
		 add_evictions(state, values_get(c, "recent_evictions"), error);
	if (passed) {
		scene_build(&s);
		plan = step(&s, state, &config, timeout ? after_first : NULL, &asked);
		passed = same_sets(plan, c, error);
	}
	drain_plan_free(plan);
	drain_state_free(state);
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}
