/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world has up to eight nodes, two to five kinds of pods and up to twenty pods. A kind is a
 * namespace, labels and a spec; its pods have them all in common, as those of a Deployment have, so
 * that classes of pods are met, and each may have a claim of its own.
 *
 * Values are few on purpose: two pods that have nothing to do with each other test nothing. Rare
 * features come in a few percent of the kinds each. A pod is bound to some node without asking any
 * filter: what is there may break every rule, as in real clusters.
 */
#include "tests/place_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join.h"
#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/place_world_spec.h"
#include "tests/place_world_volumes.h"
#include "tests/view_fixture.h"

enum { KINDS_MAX = 5 };

struct place_world_kind {
	char *namespace, *labels, *spec; /* owned; spec without braces and volumes */
	char *claim; /* of all its pods; owned, NULL: none */
	bool claim_each; /* "CLAIM-POD" instead: one for every pod */
	bool claim_two; /* and "CLAIM-2" of all, too */
};

/* --- chance */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
	return z ^ (z >> 31);
}

size_t place_world_draw(struct place_world *w, size_t n)
{
	return (size_t)(next_random(&w->random) % n);
}

bool place_world_chance(struct place_world *w, unsigned int percent)
{
	return place_world_draw(w, 100) < percent;
}

cJSON *place_world_parse(const char *text)
{
	cJSON *json = cJSON_Parse(text);

	if (!json) {
		fprintf(stderr, "the world wrote no JSON: %s\n", text);
		abort();
	}
	return json;
}

/* Reads what the buffer holds, and frees it. */
cJSON *place_world_parse_buf(struct buf *b)
{
	cJSON *json = place_world_parse(b->data);

	buf_fini(b);
	return json;
}

void place_world_add_other(struct place_world *w, cJSON *object)
{
	if (w->other_count == PLACE_WORLD_OTHERS) {
		fprintf(stderr, "the world has no room for another object\n");
		abort();
	}
	w->others[w->other_count++] = object;
}

static char *text_of(struct buf *b)
{
	size_t len;

	return buf_take(b, &len);
}

/* --- nodes */

static void write_node_labels(struct place_world *w, struct buf *b, const char *name)
{
	buf_printf(b, "\"none\":\"\"");
	if (place_world_chance(w, 95))
		buf_printf(b, ",\"kubernetes.io/hostname\":\"%s\"", name);
	if (place_world_chance(w, 85))
		buf_printf(b, ",\"topology.kubernetes.io/zone\":\"%s\"", PICK(w, "a", "b", "c"));
	if (place_world_chance(w, 60))
		buf_printf(b, ",\"disk\":\"%s\"", PICK(w, "ssd", "hdd", ""));
	if (place_world_chance(w, 60))
		buf_printf(b, ",\"gen\":\"%s\"", PICK(w, "-3", "1", "2", "5", "05", "10", "x"));
}

static void write_taint(struct buf *b, const char *key, const char *value, const char *effect)
{
	buf_printf(b, "%s{\"key\":\"%s\",\"value\":\"%s\",\"effect\":\"%s\"}",
		   b->data[b->len - 1] == '[' ? "" : ",", key, value, effect);
}

static void write_node_spec(struct place_world *w, struct buf *b)
{
	bool cordoned = place_world_chance(w, 12);

	buf_printf(b, "\"unschedulable\":%s,\"taints\":[", cordoned ? "true" : "false");
	if (cordoned && place_world_chance(w, 50))
		write_taint(b, "node.kubernetes.io/unschedulable", "", "NoSchedule");
	if (place_world_chance(w, 20))
		write_taint(b, "team", PICK(w, "a", "b"), "NoSchedule");
	if (place_world_chance(w, 15))
		write_taint(b, "spot", "", "PreferNoSchedule");
	if (place_world_chance(w, 10))
		write_taint(b, "team", PICK(w, "a", "b"), "NoExecute");
	if (place_world_chance(w, 4))
		write_taint(b, PICK(w, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"),
			    "1700000000", "NoSchedule");
	buf_add_char(b, ']');
}

static void write_allocatable(struct place_world *w, struct buf *b)
{
	buf_printf(b,
		   "\"cpu\":\"%s\",\"memory\":\"%s\",\"ephemeral-storage\":\"%s\",\"pods\":\"%s\"",
		   PICK(w, "1", "2", "3500m", "8"), PICK(w, "2Gi", "4Gi", "4194305Ki", "16G"),
		   PICK(w, "10Gi", "1Gi"), PICK(w, "3", "6", "110", "110", "110", "0"));
	if (place_world_chance(w, 30))
		buf_printf(b, ",\"example.com/gpu\":\"%s\"", PICK(w, "1", "2"));
	if (place_world_chance(w, 20))
		buf_printf(b, ",\"hugepages-2Mi\":\"%s\"", PICK(w, "64Mi", "256Mi"));
}

static cJSON *new_node(struct place_world *w, const char *name)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\"", name,
		   name);
	if (place_world_chance(w, 3))
		buf_add_str(&b, ",\"deletionTimestamp\":\"2026-01-31T11:59:00Z\"");
	if (place_world_chance(w, 5))
		buf_printf(&b, ",\"annotations\":{\"evenkeel.io/draining\":\"%s\"}",
			   PICK(w, "true", "false"));
	buf_add_str(&b, ",\"labels\":{");
	write_node_labels(w, &b, name);
	buf_add_str(&b, "}},\"spec\":{");
	write_node_spec(w, &b);
	buf_add_str(&b, "},\"status\":{\"allocatable\":{");
	write_allocatable(w, &b);
	buf_add_str(&b, "},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
	return place_world_parse_buf(&b);
}

/* --- namespaces */

static cJSON *new_namespace(struct place_world *w, const char *name)
{
	char *text = mem_printf("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\",\"labels\":"
				"{\"kubernetes.io/metadata.name\":\"%s\",\"env\":\"%s\"}}}",
				name, name, PICK(w, "prod", "test"));
	cJSON *json = place_world_parse(text);

	free(text);
	return json;
}

/* --- kinds of pods */

static void init_kind(struct place_world *w, struct place_world_kind *k, size_t number)
{
	struct buf b = BUF_INIT;

	k->namespace = mem_strdup(PICK(w, "one", "one", "two"));
	buf_printf(&b, "{\"app\":\"%s\"", PICK(w, "a", "b", "c"));
	if (place_world_chance(w, 60))
		buf_printf(&b, ",\"tier\":\"%s\"", PICK(w, "x", "y"));
	buf_add_char(&b, '}');
	k->labels = text_of(&b);
	place_world_write_spec(w, &b);
	k->spec = text_of(&b);
	k->claim = NULL;
	k->claim_each = place_world_chance(w, 50);
	if (place_world_chance(w, 25))
		k->claim = mem_printf("claim-%zu", number);
	if (k->claim && !k->claim_each && place_world_chance(w, 93))
		place_world_add_claim(w, k->namespace, k->claim);
	k->claim_two = k->claim && place_world_chance(w, 60);
	if (k->claim_two) {
		char *second = mem_printf("%s-two", k->claim);

		place_world_add_claim(w, k->namespace, second);
		free(second);
	}
}

/* --- pods */

static void write_volumes(struct place_world *w, struct buf *b, const struct place_world_kind *k,
			  size_t number)
{
	char *claim;

	if (!k->claim) {
		buf_add_str(b, ",\"volumes\":[{\"name\":\"tmp\",\"emptyDir\":{}}]");
		return;
	}
	claim = k->claim_each ? mem_printf("%s-%zu", k->claim, number) : mem_strdup(k->claim);
	if (k->claim_each && w->other_count + 6 < PLACE_WORLD_OTHERS)
		place_world_add_claim(w, k->namespace, claim);
	buf_printf(b,
		   ",\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":"
		   "\"%s\"}}",
		   claim);
	if (k->claim_two)
		buf_printf(b,
			   ",{\"name\":\"more\",\"persistentVolumeClaim\":{\"claimName\":"
			   "\"%s-two\"}}",
			   k->claim);
	buf_add_char(b, ']');
	free(claim);
}

static cJSON *new_pod(struct place_world *w, const struct place_world_kind *k, const char *node)
{
	size_t number = w->born++;
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"p%zu\","
		   "\"uid\":\"uid-p%zu\",\"labels\":%s",
		   k->namespace, number, number, k->labels);
	if (node && place_world_chance(w, 6))
		buf_add_str(&b, ",\"deletionTimestamp\":\"2026-01-31T11:59:00Z\"");
	buf_printf(&b, "},\"spec\":{%s", k->spec);
	write_volumes(w, &b, k, number);
	if (node)
		buf_printf(&b, ",\"nodeName\":\"%s\"", node);
	buf_printf(&b, "},\"status\":{\"phase\":\"%s\"}}",
		   !node		      ? "Pending"
		   : place_world_chance(w, 6) ? PICK(w, "Succeeded", "Failed")
					      : "Running");
	return place_world_parse_buf(&b);
}

static void add_pod(struct place_world *w, bool bound)
{
	const struct place_world_kind *k = &w->kinds[place_world_draw(w, w->kind_count)];
	bool lost = bound && place_world_chance(w, 5);
	const char *node = lost ? PLACE_WORLD_LOST : NULL;

	w->where[w->pod_count] = lost ? VERIFY_LOST : VERIFY_NOWHERE;
	if (bound && !lost) {
		w->where[w->pod_count] = (int)place_world_draw(w, w->node_count);
		node = place_world_name(w->nodes[w->where[w->pod_count]]);
	}
	w->pods[w->pod_count++] = new_pod(w, k, node);
}

/* --- the whole */

void place_world_init(struct place_world *w, uint64_t seed)
{
	size_t bound, pending;

	memset(w, 0, sizeof(*w));
	w->random = seed;
	w->now_ns = VIEW_FIXTURE_NOW_NS;
	w->node_count = 1 + place_world_draw(w, 8);
	w->nodes_born = w->node_count;
	for (size_t i = 0; i < w->node_count; i++) {
		char *name = mem_printf("n%zu", i);

		w->nodes[i] = new_node(w, name);
		free(name);
	}
	place_world_add_other(w, new_namespace(w, "one"));
	place_world_add_other(w, new_namespace(w, "two"));
	place_world_add_stock(w);
	w->kind_count = 2 + place_world_draw(w, KINDS_MAX - 1);
	w->kinds = mem_zalloc(w->kind_count, sizeof(*w->kinds));
	for (size_t i = 0; i < w->kind_count; i++)
		init_kind(w, &w->kinds[i], i);
	bound = place_world_draw(w, 13);
	pending = 1 + place_world_draw(w, 6);
	for (size_t i = 0; i < bound + pending; i++)
		add_pod(w, i < bound);
}

void place_world_fini(struct place_world *w)
{
	place_world_unbind(w, 0);
	for (size_t i = 0; i < w->node_count; i++)
		cJSON_Delete(w->nodes[i]);
	for (size_t i = 0; i < w->pod_count; i++)
		cJSON_Delete(w->pods[i]);
	for (size_t i = 0; i < w->other_count; i++)
		cJSON_Delete(w->others[i]);
	for (size_t i = 0; i < w->kind_count; i++) {
		free(w->kinds[i].namespace);
		free(w->kinds[i].labels);
		free(w->kinds[i].spec);
		free(w->kinds[i].claim);
	}
	free(w->kinds);
}

struct verify_world place_world_checker(const struct place_world *w)
{
	return (struct verify_world){
		.node_count = w->node_count,
		.pod_count = w->pod_count,
		.other_count = w->other_count,
		.nodes = (const cJSON **)w->nodes,
		.pods = (const cJSON **)w->pods,
		.others = (const cJSON **)w->others,
		.where = (int *)w->where,
		.removed = (bool *)w->removed,
	};
}

static const char *metadata(const cJSON *object, const char *key)
{
	const cJSON *meta = cJSON_GetObjectItemCaseSensitive(object, "metadata");
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(meta, key));

	return text ? text : "";
}

const char *place_world_name(const cJSON *object)
{
	return metadata(object, "name");
}

const char *place_world_namespace(const cJSON *object)
{
	return metadata(object, "namespace");
}

/* --- models */

static struct object *read_object(const cJSON *json)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "kind"));
	char field[OBJECT_FIELD_MAX] = "";
	struct error error = {""};
	struct object *o = NULL;
	int kind = 0;

	while (kind < OBJECT_KINDS && strcmp(object_kind_name((enum object_kind)kind), name) != 0)
		kind++;
	if (object_read((enum object_kind)kind, json, &o, field, &error)) {
		fprintf(stderr, "the world's object is refused: %s: %s\n", field, error.text);
		abort();
	}
	return o;
}

struct model *place_world_model(const struct place_world *w, uint64_t order)
{
	const struct model_source synced = {.state = SOURCE_SYNCED};
	const cJSON *all[PLACE_WORLD_NODES + PLACE_WORLD_PODS + PLACE_WORLD_OTHERS];
	struct model *m = model_new();
	size_t count = 0;

	for (size_t i = 0; i < w->node_count; i++)
		all[count++] = w->nodes[i];
	for (size_t i = 0; i < w->pod_count; i++)
		all[count++] = w->pods[i];
	for (size_t i = 0; i < w->other_count; i++)
		all[count++] = w->others[i];
	for (; count > 0; count--) {
		size_t i = (size_t)(next_random(&order) % count);

		model_put(m, read_object(all[i]));
		all[i] = all[count - 1];
	}
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_set_source(m, (enum object_kind)kind, &synced);
	return m;
}

struct view *place_world_view(const struct place_world *w, struct model *m)
{
	struct join *j = join_new();
	struct view *v = join_view(j, NULL, 0, model_cluster(m), w->now_ns);

	join_free(j);
	return v;
}

struct kube_pod *place_world_record(const struct place_world *w, size_t pod)
{
	return (struct kube_pod *)read_object(w->pods[pod]);
}

/* --- changes */

static void put(struct model *m, const cJSON *json)
{
	model_put(m, read_object(json));
}

static void delete_pod(struct place_world *w, struct model *m, size_t pod)
{
	model_remove(m, OBJECT_POD, place_world_namespace(w->pods[pod]),
		     place_world_name(w->pods[pod]));
	cJSON_Delete(w->pods[pod]);
	w->pod_count--;
	w->pods[pod] = w->pods[w->pod_count];
	w->where[pod] = w->where[w->pod_count];
}

static void bind_pod(struct place_world *w, struct model *m, size_t pod)
{
	cJSON *spec = cJSON_GetObjectItemCaseSensitive(w->pods[pod], "spec");
	cJSON *status = cJSON_GetObjectItemCaseSensitive(w->pods[pod], "status");

	if (cJSON_GetObjectItemCaseSensitive(spec, "nodeName")) {
		cJSON_ReplaceItemInObjectCaseSensitive(status, "phase",
						       cJSON_CreateString("Succeeded"));
	} else {
		w->where[pod] = (int)place_world_draw(w, w->node_count);
		cJSON_AddStringToObject(spec, "nodeName",
					place_world_name(w->nodes[w->where[pod]]));
		cJSON_ReplaceItemInObjectCaseSensitive(status, "phase",
						       cJSON_CreateString("Running"));
	}
	put(m, w->pods[pod]);
}

/* Everything about the node may be another one, but its name. */
static void change_node(struct place_world *w, struct model *m, size_t node)
{
	cJSON *next = new_node(w, place_world_name(w->nodes[node]));

	cJSON_Delete(w->nodes[node]);
	w->nodes[node] = next;
	put(m, next);
}

static void add_node(struct place_world *w, struct model *m)
{
	char *name = mem_printf("n%zu", w->nodes_born++);

	w->nodes[w->node_count] = new_node(w, name);
	put(m, w->nodes[w->node_count++]);
	free(name);
}

/* Its pods stay, bound to what nobody knows. */
static void remove_node(struct place_world *w, struct model *m, size_t node)
{
	int last = (int)--w->node_count;

	model_remove(m, OBJECT_NODE, "", place_world_name(w->nodes[node]));
	cJSON_Delete(w->nodes[node]);
	w->nodes[node] = w->nodes[last];
	for (size_t i = 0; i < w->pod_count; i++) {
		if (w->where[i] == (int)node)
			w->where[i] = VERIFY_LOST;
		else if (w->where[i] == last)
			w->where[i] = (int)node;
	}
}

static void change_namespace(struct place_world *w, struct model *m, size_t at)
{
	cJSON *next = new_namespace(w, place_world_name(w->others[at]));

	cJSON_Delete(w->others[at]);
	w->others[at] = next;
	put(m, next);
}

static void give_birth(struct place_world *w, struct model *m)
{
	size_t others = w->other_count;

	add_pod(w, place_world_chance(w, 50));
	put(m, w->pods[w->pod_count - 1]);
	for (; others < w->other_count; others++)
		put(m, w->others[others]);
}

void place_world_change(struct place_world *w, struct model *m)
{
	size_t what = place_world_draw(w, 12);

	if (what < 3 && w->pod_count < PLACE_WORLD_PODS)
		give_birth(w, m);
	else if (what < 5 && w->pod_count > 1)
		delete_pod(w, m, place_world_draw(w, w->pod_count));
	else if (what < 7)
		bind_pod(w, m, place_world_draw(w, w->pod_count));
	else if (what == 7 && w->node_count < PLACE_WORLD_NODES)
		add_node(w, m);
	else if (what == 10 && w->node_count > 1)
		remove_node(w, m, place_world_draw(w, w->node_count));
	else if (what == 8)
		change_namespace(w, m, place_world_draw(w, 2));
	else
		change_node(w, m, place_world_draw(w, w->node_count));
}
