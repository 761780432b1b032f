/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's requirements on labels and taints are interned by their text. Nodes with equal taints and
 * equal values of the labels in label_keys form an equivalence class, and each pair of rules and
 * class has one cached verdict. Rules that name metadata.name or the hostname label are not cached,
 * since each node would be a class of its own. Rules of a hypothetical pod with a new label key are
 * not cached either, since a new key rebuilds all classes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/array.h"
#include "shared/buf.h"
#include "shared/mem.h"

#define HOSTNAME "kubernetes.io/hostname"

/* --- reading */

static char *text_of_rules(const cJSON *spec)
{
	const cJSON *parts[] = {object_json_find(spec, "nodeSelector"),
				object_json_find(object_json_find(spec, "affinity"),
						 "nodeAffinity"),
				object_json_find(spec, "tolerations")};
	declared_features features = declared_features_of_pod(spec);
	struct buf b = BUF_INIT;

	buf_add_char(&b, '[');
	for (size_t i = 0; i < 3; i++) {
		char *text = parts[i] ? cJSON_PrintUnformatted(parts[i]) : NULL;

		buf_add_str(&b, i ? "," : "");
		buf_add_str(&b, text ? text : "null");
		cJSON_free(text);
	}
	if (features)
		buf_printf(&b, ",%u", features);
	buf_add_char(&b, ']');
	return buf_take(&b, NULL);
}

static void read_selector(struct place_rules *r, const cJSON *json)
{
	struct error error;

	if (json &&
	    !place_is_judged(json, PLACE_VALUES_MAX, "labels", &r->unknown, "spec.nodeSelector"))
		return;
	if (json && labels_read(json, &r->selector, &error))
		place_note(&r->unknown, "spec.nodeSelector: %s", error.text);
}

static void read_affinity(struct place_rules *r, const cJSON *json)
{
	static const char *const members[] = {"requiredDuringSchedulingIgnoredDuringExecution",
					      "preferredDuringSchedulingIgnoredDuringExecution",
					      NULL};
	static const char *const required_members[] = {"nodeSelectorTerms", NULL};
	static const char path[] = "spec.affinity.nodeAffinity";
	const cJSON *required = object_json_find(json, members[0]);
	struct error error;

	if (!json || !place_only_members(json, members, &r->unknown, path) || !required)
		return;
	if (!place_is_judged(required, PLACE_VALUES_MAX, "members", &r->unknown,
			     "spec.affinity.nodeAffinity.required"))
		return;
	if (!place_only_members(required, required_members, &r->unknown,
				"spec.affinity.nodeAffinity.required"))
		return;
	if (place_terms_read(object_json_find(required, "nodeSelectorTerms"), &r->affinity, &error))
		place_note(&r->unknown, "%s.%s.nodeSelectorTerms%s", path, members[0], error.text);
	else
		r->has_affinity = true;
}

static bool is_known_effect(const char *effect)
{
	static const char *const known[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute",
					    NULL};

	return array_has_text(known, effect);
}

/* The first member of a toleration that is no string; NULL: none. */
static const char *no_string(const cJSON *json)
{
	static const char *const members[] = {"key", "operator", "value", "effect"};

	for (size_t i = 0; i < 4; i++) {
		const cJSON *item = object_json_find(json, members[i]);

		if (item && !cJSON_IsString(item))
			return members[i];
	}
	return NULL;
}

/* As Kubernetes: without a plus sign and leading zeros. */
static bool read_whole_number(const char *text, int64_t *out)
{
	const char *digits = text + (*text == '-');

	if (strcmp(text, "0") != 0 &&
	    (*digits < '1' || *digits > '9' || digits[strspn(digits, "0123456789")]))
		return false;
	errno = 0;
	*out = strtoll(text, NULL, 10);
	return errno == 0;
}

/* False: unknown. */
static bool read_operator(const char *text, enum place_toleration_operator *out)
{
	static const char *const names[PLACE_TOLERATIONS] = {
		[PLACE_TOLERATES_EQUAL] = "Equal",
		[PLACE_TOLERATES_EXISTS] = "Exists",
		[PLACE_TOLERATES_GT] = "Gt",
		[PLACE_TOLERATES_LT] = "Lt",
	};
	unsigned int op = 0;

	while (*text && op < PLACE_TOLERATIONS && strcmp(text, names[op]) != 0)
		op++;
	*out = (enum place_toleration_operator)op;
	return op < PLACE_TOLERATIONS;
}

static bool compares(const struct place_toleration *t)
{
	return t->op == PLACE_TOLERATES_GT || t->op == PLACE_TOLERATES_LT;
}

static void read_toleration(struct place_rules *r, const cJSON *json, size_t at)
{
	static const char *const members[] = {"key",	"operator",	     "value",
					      "effect", "tolerationSeconds", NULL};
	const char *op = object_json_text(json, "operator");
	struct place_toleration t = {.key = object_json_text(json, "key"),
				     .value = object_json_text(json, "value"),
				     .effect = object_json_text(json, "effect")};
	char where[48];

	snprintf(where, sizeof(where), "spec.tolerations[%zu]", at);
	if (!place_only_members(json, members, &r->unknown, where))
		return;
	if (no_string(json))
		place_note(&r->unknown, "%s.%s: must be a string", where, no_string(json));
	else if (!read_operator(op, &t.op))
		place_note(&r->unknown, "%s.operator: \"%.60s\" is not known", where, op);
	else if (!is_known_effect(t.effect))
		place_note(&r->unknown, "%s.effect: \"%.60s\" is not known", where, t.effect);
	else if (t.op != PLACE_TOLERATES_EXISTS && !*t.key)
		place_note(&r->unknown, "%s.key: must not be empty unless operator is Exists",
			   where);
	else if (compares(&t) && !read_whole_number(t.value, &t.number))
		place_note(&r->unknown, "%s.value: must be a whole number with Gt and Lt", where);
	else
		PLACE_LIST_ADD(&r->tolerations, t);
}

static void read_tolerations(struct place_rules *r, const cJSON *list)
{
	size_t at = 0;

	if (!cJSON_IsNull(list) && !cJSON_IsArray(list))
		place_note(&r->unknown, "spec.tolerations: must be a list");
	else if (cJSON_IsArray(list) && !place_is_judged(list, PLACE_VALUES_MAX, "tolerations",
							 &r->unknown, "spec.tolerations"))
		return;
	for (const cJSON *t = object_json_first(list); t; t = t->next)
		read_toleration(r, t, at++);
}

/* Gt tolerates a taint with a greater number, Lt one with a smaller number. */
static bool tolerates_value(const struct place_toleration *t, const char *value)
{
	int64_t number;

	if (t->op == PLACE_TOLERATES_EXISTS)
		return true;
	if (!compares(t))
		return strcmp(t->value, value) == 0;
	if (!read_whole_number(value, &number))
		return false;
	return t->op == PLACE_TOLERATES_GT ? number > t->number : number < t->number;
}

static bool tolerates(const struct place_rules *r, const struct taint *taint)
{
	for (uint32_t i = 0; i < r->tolerations.count; i++) {
		const struct place_toleration *t = &r->tolerations.of[i];

		if (*t->effect && strcmp(t->effect, taint->effect) != 0)
			continue;
		if (*t->key && strcmp(t->key, taint->key) != 0)
			continue;
		if (tolerates_value(t, taint->value))
			return true;
	}
	return false;
}

/* --- labels that node classes are made of */

static void add_label_key(struct place *p, struct place_rules *r, const char *key)
{
	if (strcmp(key, HOSTNAME) == 0) {
		r->own_names = true;
		return;
	}
	if (array_find_text(p->label_keys.of, p->label_keys.count, sizeof(char *), key))
		return;
	if (p->hypothetical) {
		r->own_names = true;
		return;
	}
	PLACE_LIST_ADD(&p->label_keys, mem_strdup(key));
}

static void add_label_keys(struct place *p, struct place_rules *r)
{
	for (size_t i = 0; i < r->selector.count; i++)
		add_label_key(p, r, r->selector.of[i].key);
	for (uint32_t t = 0; t < r->affinity.count; t++) {
		for (uint32_t i = 0; i < r->affinity.of[t].count; i++) {
			const struct place_requirement *q = &r->affinity.of[t].of[i];

			if (q->field)
				r->own_names = true;
			else
				add_label_key(p, r, q->key);
		}
	}
}

struct place_rules *place_rules_intern(struct place *p, const cJSON *spec)
{
	static const struct taint cordon = {"node.kubernetes.io/unschedulable", "", "NoSchedule"};
	char *text = text_of_rules(spec);
	struct place_rules *r;

	HASH_FIND_STR(p->rules, text, r);
	if (r) {
		free(text);
		return r;
	}
	r = mem_zalloc(1, sizeof(*r));
	r->text = text;
	r->tree = cJSON_Parse(text);
	r->features = declared_features_of_pod(spec);
	read_selector(r, object_json_find(spec, "nodeSelector"));
	read_affinity(r, object_json_find(object_json_find(spec, "affinity"), "nodeAffinity"));
	read_tolerations(r, cJSON_GetArrayItem(r->tree, 2));
	r->tolerates_cordon = tolerates(r, &cordon);
	add_label_keys(p, r);
	HASH_ADD_KEYPTR(hh, p->rules, r->text, strlen(r->text), r);
	return r;
}

void place_rules_forget(struct place *p)
{
	struct place_rules *r = PLACE_NEWEST(p->rules);

	HASH_DEL(p->rules, r);
	place_rules_free(r);
}

void place_rules_free(struct place_rules *r)
{
	labels_fini(&r->selector);
	place_terms_fini(&r->affinity);
	cJSON_Delete(r->tree);
	free(r->tolerations.of);
	free(r->unknown);
	free(r->verdict);
	free(r->text);
	free(r);
}

/* --- asking */

const struct taint *place_rules_untolerated(const struct place *p, const struct place_rules *r,
					    place_node n)
{
	const struct taints *taints = &p->nodes[n].object->taints;

	for (size_t i = 0; i < taints->count; i++) {
		const char *effect = taints->of[i].effect;

		if ((strcmp(effect, "NoSchedule") == 0 || strcmp(effect, "NoExecute") == 0) &&
		    !tolerates(r, &taints->of[i]))
			return &taints->of[i];
	}
	return NULL;
}

bool place_rules_select(const struct place *p, const struct place_rules *r, place_node n)
{
	const struct kube_node *node = p->nodes[n].object;

	if (!node)
		return false;
	for (size_t i = 0; i < r->selector.count; i++) {
		const char *value = labels_find(&node->labels, r->selector.of[i].key);

		if (!value || strcmp(value, r->selector.of[i].value) != 0)
			return false;
	}
	return !r->has_affinity ||
	       place_terms_match(&r->affinity, &node->labels, node->object.name);
}

declared_features place_rules_missing(const struct place *p, const struct place_rules *r,
				      place_node n)
{
	return (declared_features)(r->features & ~p->nodes[n].object->features);
}

static enum place_filter judge(const struct place *p, const struct place_rules *r, place_node n)
{
	if (p->nodes[n].hidden_taints || place_rules_untolerated(p, r, n))
		return PLACE_TAINTS;
	if (!place_rules_select(p, r, n))
		return PLACE_NODE_AFFINITY;
	return place_rules_missing(p, r, n) ? PLACE_FEATURES : PLACE_FITS;
}

enum place_filter place_rules_ask(const struct place *p, struct place_rules *r, place_node n)
{
	uint32_t class = p->nodes[n].node_class;

	if (r->own_names || class >= r->verdict_room)
		return judge(p, r, n);
	if (!r->verdict[class])
		r->verdict[class] = (uint8_t)(judge(p, r, n) + 1);
	return (enum place_filter)(r->verdict[class] - 1);
}

/* --- nodes */

void place_node_info_read(const struct view_node *v, struct place_node_info *out)
{
	const struct kube_node *node = v->model ? v->model->node : NULL;

	*out = (struct place_node_info){.view = v, .object = node};
	if (!node)
		return;
	out->hidden_taints = node->taints.unreadable;
	for (size_t i = 0; i < node->taints.count; i++)
		out->hidden_taints |=
			!*node->taints.of[i].effect || !is_known_effect(node->taints.of[i].effect);
	/* Also for pods that tolerate every taint. */
	out->leaving = taints_find(&node->taints, "ToBeDeletedByClusterAutoscaler") ||
		       taints_find(&node->taints, "karpenter.sh/disrupted") || node->deletion_ns ||
		       node->lifecycle & NODE_ENDING || kube_node_is_draining(node);
}

/* The length separates parts. */
static void write_part(struct buf *b, const char *text)
{
	if (text)
		buf_printf(b, "%zu:%s", strlen(text), text);
	else
		buf_add_char(b, '-');
}

static void write_node_class(const struct place *p, place_node n, struct buf *b)
{
	const struct place_node_info *node = &p->nodes[n];

	buf_clear(b);
	buf_add_str(b, !node->object ? "none" : node->hidden_taints ? "hidden" : "");
	if (node->object && node->object->features)
		buf_printf(b, "%u|", node->object->features);
	for (uint32_t i = 0; i < p->label_keys.count; i++)
		write_part(b, node->object ? labels_find(&node->object->labels, p->label_keys.of[i])
					   : NULL);
	buf_add_char(b, '|');
	for (size_t i = 0; node->object && i < node->object->taints.count; i++) {
		write_part(b, node->object->taints.of[i].key);
		write_part(b, node->object->taints.of[i].value);
		write_part(b, node->object->taints.of[i].effect);
	}
}

void place_classify_node(struct place *p, place_node n)
{
	struct buf b = BUF_INIT;

	write_node_class(p, n, &b);
	p->nodes[n].node_class = place_text_intern(&p->node_classes, b.data, &p->node_class_count);
	buf_fini(&b);
}

/* Verdicts stay, unless the classes were numbered anew. */
static void fit_verdicts(const struct place *p, struct place_rules *r, bool anew)
{
	uint32_t keep = anew ? 0 : r->verdict_room, room = p->node_class_count;

	if (!anew && keep >= room)
		return;
	r->verdict = mem_realloc(r->verdict, (size_t)room + 1);
	memset(r->verdict + keep, 0, (size_t)room + 1 - keep);
	r->verdict_room = room;
}

void place_classify_nodes(struct place *p, bool anew)
{
	anew |= p->keys_classified != p->label_keys.count;
	if (anew) {
		place_texts_free(&p->node_classes, &p->node_class_count);
		for (place_node n = 0; n < p->node_count; n++)
			place_classify_node(p, n);
		p->keys_classified = p->label_keys.count;
	}
	for (struct place_rules *r = p->rules; r; r = r->hh.next)
		fit_verdicts(p, r, anew);
}
