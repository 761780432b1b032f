/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every LOOK_EVERY_NS the target is read behind the API server, as the YAML that evenkeel slack prints,
 * and the objects with the label of evenkeel. If any of that fails, or the target is stale, nothing
 * is changed: a target that is missing is no empty target.
 */
#include "aggregator/actuator/slack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

struct look {
	struct edge *edge;
	bool buffers; /* the API server knows them */
	struct act_slack_wanted *wanted; /* owned */
	struct act_slack_existing *existing; /* owned */
	size_t wanted_count, existing_count;
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static char *path_of(const struct kind *k, const char *namespace, const char *name)
{
	return mem_printf("%s%s%s/%s/%s", k->group, *namespace ? "/namespaces/" : "", namespace,
			  k->plural, name);
}

static int64_t replicas_of(const cJSON *object)
{
	double replicas = document_number(object, "spec.replicas");

	return replicas >= 0 && replicas < 1e9 ? (int64_t)replicas : -1;
}

/* --- the target ------------------------------------------------------------------------------- */

static bool add_wanted(struct look *l, char *line)
{
	cJSON *object = cJSON_Parse(line);
	const struct kind *k = kind_of(document_text_or(object, "kind", ""));
	const char *name = document_text(object, "metadata.name");

	if (k && name) {
		l->wanted = mem_realloc(l->wanted, (l->wanted_count + 1) * sizeof(*l->wanted));
		l->wanted[l->wanted_count++] = (struct act_slack_wanted){
			.kind = k->name,
			.namespace = edge_keep(l->edge, mem_strdup(document_text_or(
								object, "metadata.namespace", ""))),
			.name = edge_keep(l->edge, mem_strdup(name)),
			.text = line,
			.replicas = replicas_of(object),
			.shared = k->shared,
		};
	}
	cJSON_Delete(object);
	return k && name;
}

static int read_objects(struct look *l, struct error *error)
{
	const struct yaml_json_limits limits = {DEPTH_MAX, BYTES_MAX};
	const struct buf *yaml = &l->edge->call.answer;
	struct buf json = BUF_INIT;
	size_t count;
	char *at, *line;

	if (yaml->len &&
	    yaml_json_convert("slack", yaml->data, yaml->len, &limits, &json, &count, error)) {
		buf_fini(&json);
		return -1;
	}
	at = json.data ? edge_keep(l->edge, json.data) : NULL;
	while ((line = strsep(&at, "\n")))
		if (*line && !add_wanted(l, line)) {
			error_set(error, "the target has an unknown object: %.100s", line);
			return -1;
		}
	return 0;
}

static int read_target(struct look *l, struct error *error)
{
	const cJSON *report = edge_get(l->edge, EDGE_GROUP "/slacks", READ_MS, error);
	char *path;

	if (document_text(report, "stale"))
		error_set(error, "the target is stale: %s", document_text(report, "stale"));
	if (!report || *error->text)
		return -1;
	path = mem_printf(EDGE_GROUP "/slacks?format=%s",
			  l->buffers ? "capacitybuffer" : "balloons");
	edge_get_text(l->edge, path, READ_MS, error);
	free(path);
	return l->edge->status == 200 ? read_objects(l, error) : -1;
}

/* --- the objects ------------------------------------------------------------------------------ */

/* The selector of a Deployment never changes: that of another program does not become one of balloons. */
static bool is_ours(const struct kind *k, const cJSON *object)
{
	return document_find(object, "metadata.managedFields", "manager", SLACK_MANAGER) &&
	       (strcmp(k->name, "Deployment") != 0 ||
		cJSON_HasObjectItem(document_at(object, "spec.selector.matchLabels"), CLASS_LABEL));
}

static void add_existing(struct look *l, const struct kind *k, const cJSON *object)
{
	l->existing = mem_realloc(l->existing, (l->existing_count + 1) * sizeof(*l->existing));
	l->existing[l->existing_count++] = (struct act_slack_existing){
		.kind = k->name,
		.namespace = document_text_or(object, "metadata.namespace", ""),
		.name = document_text_or(object, "metadata.name", ""),
		.uid = document_text_or(object, "metadata.uid", ""),
		.replicas = replicas_of(object),
		.ours = is_ours(k, object),
	};
}

static int list_kind(struct look *l, const struct kind *k, struct error *error)
{
	char *path = mem_printf("%s/%s%s", k->group, k->plural, PART_OF);
	const cJSON *list = edge_get(l->edge, path, READ_MS, error);

	free(path);
	for (const cJSON *o = document_first(list, "items"); o; o = o->next)
		if (is_ours(k, o))
			add_existing(l, k, o);
	return list ? 0 : -1;
}

static bool is_listed(const struct look *l, const struct act_slack_wanted *w)
{
	for (size_t i = 0; i < l->existing_count; i++)
		if (strcmp(l->existing[i].kind, w->kind) == 0 &&
		    strcmp(l->existing[i].namespace, w->namespace) == 0 &&
		    strcmp(l->existing[i].name, w->name) == 0)
			return true;
	return false;
}

/* Others of the names that are wanted. */
static int read_named(struct look *l, struct error *error)
{
	for (size_t i = 0; i < l->wanted_count; i++) {
		const struct act_slack_wanted *w = &l->wanted[i];
		struct error why = {""};
		const cJSON *object;
		char *path;

		if (w->shared || is_listed(l, w))
			continue;
		path = path_of(kind_of(w->kind), w->namespace, w->name);
		object = edge_get(l->edge, path, READ_MS, &why);
		free(path);
		if (object)
			add_existing(l, kind_of(w->kind), object);
		else if (l->edge->status != 404) {
			*error = why;
			return -1;
		}
	}
	return 0;
}

static int read_existing(struct look *l, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < KINDS && !rc; i++)
		if (!kinds[i].shared && (l->buffers || !kinds[i].of_buffers))
			rc = list_kind(l, &kinds[i], error);
	return rc ? rc : read_named(l, error);
}

/* Whether the API server knows CapacityBuffers; -1: it does not say. */
static int find_buffers(struct look *l, struct error *error)
{
	struct error why = {""};

	l->buffers = edge_get(l->edge, BUFFERS, READ_MS, &why);
	if (l->buffers || l->edge->status == 404)
		return 0;
	*error = why;
	return -1;
}

/* --- actions ---------------------------------------------------------------------------------- */

static void carry_out(struct slack_keeper *k, struct edge *e, const struct act_slack_action *a)
{
	char *plain = path_of(kind_of(a->kind), a->namespace, a->name);
	char *path = mem_printf("%s?fieldManager=" SLACK_MANAGER "%s", plain,
				e->dry_run ? "&dryRun=All" : "");
	struct buf body = BUF_INIT;
	const char *answer;
	struct error told;

	if (a->removes)
		buf_printf(&body,
			   "{\"preconditions\":{\"uid\":\"%s\"},\"propagationPolicy\":"
			   "\"Background\"}",
			   a->uid);
	else
		buf_add_str(&body, a->text);
	edge_send(e, a->removes ? KUBE_DELETE : KUBE_APPLY, path, &body, &answer);
	act_slack_result(&k->state, a, edge_result(e->status, answer), answer, &told);
	if (*told.text)
		log_warn("slack: %s", told.text);
	buf_fini(&body);
	free(path);
	free(plain);
}

/* --- a step ----------------------------------------------------------------------------------- */

static bool act(struct slack_keeper *k, const struct look *l, bool paused, int64_t now_ns)
{
	struct act_slack_output out = {0};
	bool wrote;

	act_slack_step(&k->state, &k->rules,
		       &(struct act_slack_input){
			       .wanted = l->wanted,
			       .existing = l->existing,
			       .wanted_count = l->wanted_count,
			       .existing_count = l->existing_count,
			       .paused = paused,
			       .now_ns = now_ns,
		       },
		       &out);
	edge_log(&out.narration);
	for (size_t i = 0; i < out.action_count; i++)
		carry_out(k, l->edge, &out.actions[i]);
	wrote = out.action_count;
	act_slack_output_fini(&out);
	return wrote;
}

bool slack_run(struct slack_keeper *k, struct edge *e, bool paused, int64_t now_ns)
{
	struct look look = {.edge = e};
	struct error error = {""};
	bool wrote = false;

	if (k->looked_ns && now_ns - k->looked_ns < LOOK_EVERY_NS)
		return false;
	k->looked_ns = now_ns;
	if (!find_buffers(&look, &error) && !read_target(&look, &error) &&
	    !read_existing(&look, &error))
		wrote = act(k, &look, paused, now_ns);
	if (*error.text && !k->failing)
		log_warn("slack: %s", error.text);
	k->failing = *error.text;
	free(look.wanted);
	free(look.existing);
	return wrote;
}

void slack_forget(struct slack_keeper *k)
{
	act_slack_state_fini(&k->state);
	k->looked_ns = 0;
}
