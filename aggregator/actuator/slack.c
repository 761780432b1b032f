/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every LOOK_EVERY_NS the target is read behind the API server, as the YAML that evenkeel slack prints,
 * and the objects with the label of evenkeel. If any of that fails, the target is stale, or the other
 * of two aggregators has another plan, nothing is changed: a target that is missing is no empty target.
 */
#include "aggregator/actuator/slack.h"

#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/yaml_json.h"

#define LOOK_EVERY_NS (15 * NS_PER_SEC)
#define READ_MS	      10000L
#define BUFFERS	      "/apis/autoscaling.x-k8s.io/v1beta1"
#define CLASS_LABEL   "evenkeel.io/slack-class"
#define PART_OF	      "?labelSelector=app.kubernetes.io%2Fpart-of%3Devenkeel"

enum { DEPTH_MAX = 64, BYTES_MAX = 64 << 20 };

/* Plurals in paths. Namespaces and PriorityClasses of others are never listed. */
static const struct kind {
	const char *name, *group, *plural;
	bool shared, of_buffers;
} kinds[] = {
	{"Namespace", "/api/v1", "namespaces", true, false},
	{"PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses", true, false},
	{"Deployment", "/apis/apps/v1", "deployments", false, false},
	{"PodTemplate", "/api/v1", "podtemplates", false, true},
	{"CapacityBuffer", BUFFERS, "capacitybuffers", false, true},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Lists that a step reads. */
struct look {
	struct edge *edge;
	bool buffers; /* the API server knows them */
	struct slack_input in; /* owns its two arrays */
};

/* --- objects ---------------------------------------------------------------------------------- */

static struct slack_object *add(struct look *l, struct slack_objects *to, const struct kind *k,
				const cJSON *json)
{
	const char *namespace = document_text_or(json, "metadata.namespace", "");
	const char *name = document_text_or(json, "metadata.name", "");
	struct slack_object *o;

	o = &ARRAY_ADD(to->of, to->count);
	*o = (struct slack_object){
		.title = edge_keep(l->edge, mem_printf("%s %s/%s", k->name, namespace, name)),
		.path = edge_keep(l->edge, mem_printf("%s%s%s/%s/%s", k->group,
						      *namespace ? "/namespaces/" : "", namespace,
						      k->plural, name)),
		.namespace = namespace,
		.replicas = document_count(json, "spec.replicas", 1e9, -1),
		.shared = k->shared,
	};
	return o;
}

/* The selector of a Deployment never changes: that of another program does not become one of balloons. */
static bool is_ours(const struct kind *k, const cJSON *object)
{
	return document_find(object, "metadata.managedFields", "manager", SLACK_MANAGER) &&
	       (strcmp(k->name, "Deployment") != 0 ||
		cJSON_HasObjectItem(document_at(object, "spec.selector.matchLabels"), CLASS_LABEL));
}

static void add_existing(struct look *l, const struct kind *k, const cJSON *object)
{
	struct slack_object *o = add(l, &l->in.existing, k, object);

	o->uid = document_text_or(object, "metadata.uid", "");
	o->ours = is_ours(k, object);
}

/* --- the target ------------------------------------------------------------------------------- */

/* By its name, or by the title of an object. */
static const struct kind *kind_of(const char *title)
{
	size_t len = strcspn(title, " ");

	for (size_t i = 0; i < KINDS; i++)
		if (strlen(kinds[i].name) == len && strncmp(kinds[i].name, title, len) == 0)
			return &kinds[i];
	return NULL;
}

/* From the YAML of the last answer, by way of one line of JSON each. */
static void read_objects(struct look *l, struct error *error)
{
	const struct yaml_json_limits limits = {DEPTH_MAX, BYTES_MAX};
	const struct buf *yaml = &l->edge->call.answer;
	struct buf json = BUF_INIT;
	size_t count;
	char *at, *line;

	if (yaml->len)
		yaml_json_convert("slack", yaml->data, yaml->len, &limits, &json, &count, error);
	at = json.data ? edge_keep(l->edge, json.data) : NULL;
	while (!*error->text && (line = strsep(&at, "\n"))) {
		const cJSON *object = *line ? edge_parse(l->edge, line, strlen(line)) : NULL;
		const struct kind *k = kind_of(document_text_or(object, "kind", ""));

		if (k && document_text(object, "metadata.name"))
			add(l, &l->in.wanted, k, object)->text = line;
		else if (*line)
			error_set(error, "the target has an unknown object: %.100s", line);
	}
}

static void read_target(struct look *l, struct error *error)
{
	const cJSON *report = edge_get(l->edge, EDGE_GROUP "/slacks", READ_MS, error);

	if (document_text(report, "stale"))
		error_set(error, "the target is stale: %s", document_text(report, "stale"));
	if (!*error->text && edge_is_agreed(report, error))
		edge_get_text(l->edge,
			      l->buffers ? EDGE_GROUP "/slacks?format=capacitybuffer"
					 : EDGE_GROUP "/slacks?format=balloons",
			      READ_MS, error);
	if (!*error->text)
		read_objects(l, error);
}

/* --- the cluster ------------------------------------------------------------------------------ */

/* Another's of a wanted name. */
static void read_named(struct look *l, const struct slack_object *w, struct error *error)
{
	struct error why = {""};
	const cJSON *object;

	if (w->shared ||
	    array_find_text(l->in.existing.of, l->in.existing.count, sizeof(*w), w->title))
		return;
	object = edge_get(l->edge, w->path, READ_MS, &why);
	if (object)
		add_existing(l, kind_of(w->title), object);
	else if (l->edge->status != 404)
		*error = why;
}

static void read_existing(struct look *l, struct error *error)
{
	for (size_t i = 0; i < KINDS && !*error->text; i++)
		if (!kinds[i].shared && (l->buffers || !kinds[i].of_buffers)) {
			const char *path = edge_keep(l->edge, mem_printf("%s/%s%s", kinds[i].group,
									 kinds[i].plural, PART_OF));
			const cJSON *list = edge_get(l->edge, path, READ_MS, error);

			/* Objects of evenkeel. */
			for (const cJSON *o = document_first(list, "items"); o; o = o->next)
				if (is_ours(&kinds[i], o))
					add_existing(l, &kinds[i], o);
		}
	for (size_t i = 0; i < l->in.wanted.count && !*error->text; i++)
		read_named(l, &l->in.wanted.of[i], error);
}

/* --- a step ----------------------------------------------------------------------------------- */

static void carry_out(struct slack_keeper *k, const struct look *l, const struct slack_object *o)
{
	struct edge *e = l->edge;
	const struct slack_object *existing =
		array_find_text(l->in.existing.of, l->in.existing.count, sizeof(*o), o->title);
	/* `kubectl scale` makes another manager the owner of the replicas. */
	bool forces = !o->uid && !o->shared && existing && existing->ours;
	char *path = mem_printf("%s?fieldManager=" SLACK_MANAGER "%s%s", o->path,
				e->dry_run ? "&dryRun=All" : "", forces ? "&force=true" : "");
	struct buf body = BUF_INIT;
	const char *answer;
	struct error told;

	if (o->uid)
		buf_printf(&body,
			   "{\"preconditions\":{\"uid\":\"%s\"},\"propagationPolicy\":"
			   "\"Background\"}",
			   o->uid);
	else
		buf_add_str(&body, o->text);
	edge_send(e, o->uid ? KUBE_DELETE : KUBE_APPLY, path, &body, &answer);
	act_slack_result(&k->state, o, edge_result(e->status, answer), answer, &told);
	if (*told.text)
		log_warn("slack: %s", told.text);
	buf_fini(&body);
	free(path);
}

static bool act(struct slack_keeper *k, const struct look *l)
{
	struct slack_output out = {0};
	bool wrote;

	act_slack_step(&k->state, &k->rules, &l->in, &out);
	log_lines(out.narration.data);
	for (size_t i = 0; i < out.action_count; i++)
		carry_out(k, l, out.actions[i]);
	wrote = out.action_count;
	free(out.actions);
	buf_fini(&out.narration);
	return wrote;
}

bool slack_run(struct slack_keeper *k, struct edge *e, bool paused, int64_t now_ns)
{
	struct look look = {.edge = e, .in = {.paused = paused, .now_ns = now_ns}};
	struct error error = {""};
	bool wrote = false;

	if (k->looked_ns && now_ns - k->looked_ns < LOOK_EVERY_NS)
		return false;
	k->looked_ns = now_ns;
	look.buffers = edge_get(e, BUFFERS, READ_MS, &error);
	if (e->status == 404)
		error = (struct error){""};
	if (!*error.text)
		read_target(&look, &error);
	if (!*error.text)
		read_existing(&look, &error);
	if (!*error.text)
		wrote = act(k, &look);
	else if (!k->failing)
		log_warn("slack: %s", error.text);
	k->failing = *error.text;
	free(look.in.wanted.of);
	free(look.in.existing.of);
	return wrote;
}

void slack_forget(struct slack_keeper *k)
{
	act_slack_state_fini(&k->state);
	k->looked_ns = 0;
}
