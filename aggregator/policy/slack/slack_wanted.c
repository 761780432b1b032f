/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads with the annotation evenkeel.io/slack:
 *
 *   "2"        room for two more of their pods
 *   "10%"      room for a tenth of their replicas, rounded up
 *   "shared"   room for one pod, shared with all such workloads
 *
 * The annotation is read along the chain of owners, as far as the model has it: in a pod's
 * template; in its controller (ReplicaSet, StatefulSet, Job, ReplicationController); and of a
 * Deployment in its ReplicaSet, to which the Deployment's controller copies annotations. Of several
 * ReplicaSets of one Deployment (or Jobs of one CronJob) the newest revision decides, even without
 * pods. If template and controller differ, the larger value counts, and an issue tells.
 *
 * The pattern of a new pod is the newest pod of that controller, else the template in the
 * controller's object, else an older pod. Else the former pattern stays, with an issue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* --- annotated workloads */

struct group {
	UT_hash_handle hh;
	char *key; /* owned: "shop/Deployment/web" */
	const char *owner_uid; /* borrowed; "" */
	bool daemons;
	const struct kube_workload *current; /* the controller that decides; NULL: unknown */
	int64_t replicas; /* -1: unknown */
	uint32_t pods;
	const struct kube_pod *newest;
};

/* A controller of an annotated workload, by its uid. */
struct controller {
	UT_hash_handle hh;
	const char *uid; /* borrowed */
	struct group *group;
};

struct slack_search {
	const struct view *view;
	struct group *groups;
	struct controller *controllers;
};

static const enum object_kind kinds[] = {OBJECT_REPLICA_SET, OBJECT_STATEFUL_SET, OBJECT_DAEMON_SET,
					 OBJECT_JOB, OBJECT_REPLICATION_CONTROLLER};

/* NULL: there is none, and none is to be made. */
static struct group *find_group(struct slack_search *s, const char *namespace,
				const struct owner_ref *who, bool make)
{
	char *key = mem_printf("%s/%s/%s", namespace, who->kind, who->name);
	struct group *g;

	HASH_FIND_STR(s->groups, key, g);
	if (g || !make) {
		free(key);
		return g;
	}
	HASH_NEW(s->groups, g, key, key);
	g->owner_uid = who->uid;
	g->daemons = strcmp(who->kind, "DaemonSet") == 0;
	g->replicas = -1;
	return g;
}

static long long revision_of(const struct kube_workload *w)
{
	const char *text = labels_find(&w->annotations, "deployment.kubernetes.io/revision");

	return text ? strtoll(text, NULL, 10) : 0;
}

/* By revision, then those with replicas, then by name (Jobs of a CronJob: by time). */
static bool is_newer(const struct kube_workload *a, const struct kube_workload *b)
{
	long long left = revision_of(a), right = revision_of(b);
	size_t left_len = strlen(a->object.name), right_len = strlen(b->object.name);

	if (left != right)
		return left > right;
	if ((a->replicas > 0) != (b->replicas > 0))
		return a->replicas > 0;
	if (left_len != right_len)
		return left_len > right_len;
	return strcmp(a->object.name, b->object.name) > 0;
}

/* Pods cannot be matched to a controller without a uid. */
static void meet_controller(struct slack_search *s, struct group *g, const struct kube_workload *w)
{
	struct controller *c;

	HASH_FIND_STR(s->controllers, w->object.uid, c);
	if (c)
		return;
	if (*w->object.uid) {
		HASH_NEW(s->controllers, c, uid, w->object.uid);
		c->group = g;
	}
	/* Jobs that ran want nothing any more: amount_of() reads the current one. */
	if (w->object.kind == OBJECT_JOB)
		g->replicas = -1;
	else if (w->replicas >= 0)
		g->replicas = (g->replicas > 0 ? g->replicas : 0) + w->replicas;
	if (!g->current || is_newer(w, g->current))
		g->current = w;
}

static void find_controllers(struct slack_search *s, bool all)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct object_table *t = s->view->cluster->tables[kinds[k]];

		for (size_t i = 0; i < t->count; i++) {
			const struct kube_workload *w = (const struct kube_workload *)t->of[i];
			struct owner_ref self = {object_kind_name(w->object.kind), w->object.name,
						 w->object.uid};
			bool owned = *w->owner.kind && *w->owner.uid;
			struct group *g = NULL;

			/* Its annotations or those of its template have it. */
			if (!all && (labels_find(&w->annotations, SLACK_ANNOTATION) ||
				     strstr(w->object.text, "\"" SLACK_ANNOTATION "\"")))
				g = find_group(s, w->object.namespace, owned ? &w->owner : &self,
					       true);
			else if (all && owned)
				g = find_group(s, w->object.namespace, &w->owner, false);
			if (g && owned && strcmp(g->owner_uid, w->owner.uid) != 0)
				g = NULL;
			if (g && all == owned)
				meet_controller(s, g, w);
		}
	}
}

/* --- pods */

static bool is_better(const struct group *g, const struct kube_pod *a, const struct kube_pod *b)
{
	const char *uid = g->current ? g->current->object.uid : "";
	bool left = strcmp(a->template->owner.uid, uid) == 0;
	bool right = strcmp(b->template->owner.uid, uid) == 0;

	if (left != right)
		return left;
	if (a->created_ns != b->created_ns)
		return a->created_ns > b->created_ns;
	return strcmp(a->object.name, b->object.name) < 0;
}

void slack_search_meet(struct slack_search *s, const struct kube_pod *pod)
{
	const struct pod_template *t = pod->template;
	struct controller *c = NULL;
	struct group *g;

	if (s->controllers && *t->owner.uid)
		HASH_FIND_STR(s->controllers, t->owner.uid, c);
	if (!c && !labels_find(&t->annotations, SLACK_ANNOTATION))
		return;
	if (c) {
		g = c->group;
	} else {
		struct owner_ref who = cluster_workload_of(s->view->cluster, pod);

		g = find_group(s, pod->object.namespace, &who, true);
	}
	g->pods++;
	if (!g->newest || is_better(g, pod, g->newest))
		g->newest = pod;
}

/* --- targets */

static bool is_of_current(const struct group *g)
{
	return g->newest &&
	       (!g->current || strcmp(g->newest->template->owner.uid, g->current->object.uid) == 0);
}

static int64_t amount_of(const struct group *g, const struct slack_ask *a)
{
	int64_t replicas = g->replicas >= 0 ? g->replicas : g->pods;

	if (a->what != SLACK_ASKS_SHARE)
		return a->what == SLACK_ASKS_COUNT ? a->amount : 0;
	if (g->current && g->current->object.kind == OBJECT_JOB && g->current->replicas >= 0)
		replicas = g->current->replicas;
	return (int64_t)(((__int128)a->amount * replicas + SLACK_PPM - 1) / SLACK_PPM);
}

/* The value so far, and its source. */
struct annotation_value {
	struct slack_ask ask;
	const char *who, *text; /* borrowed; of ask */
};

/* Considers one more annotation of the workload. */
static void consider(struct slack_run *r, const struct group *g, const char *text, const char *who,
		     struct annotation_value *value)
{
	struct slack_ask ask = {SLACK_ASKS_NOTHING, 0};
	int64_t more, before = amount_of(g, &value->ask);

	if (!text)
		return;
	if (!slack_ask_read(text, &ask)) {
		slack_add_issue(r->result, g->key,
				SLACK_ANNOTATION ": \"%.60s\" of the %s is no count (\"2\"), no "
						 "share (\"10%%\") and not \"shared\"",
				text, who);
		return;
	}
	more = amount_of(g, &ask);
	if (value->who && (more != before || (ask.what == SLACK_ASKS_SHARED) !=
						     (value->ask.what == SLACK_ASKS_SHARED)))
		slack_add_issue(r->result, g->key,
				SLACK_ANNOTATION
				": the %s says \"%.60s\", the %s \"%.60s\"; the larger counts",
				value->who, value->text, who, text);
	if (!value->who || value->ask.what == SLACK_ASKS_SHARED || more > before)
		*value = (struct annotation_value){ask, who, text};
}

/* The annotation in the template of a controller's object. */
static char *annotation_of_template(const struct kube_workload *w)
{
	cJSON *tree, *found;
	char *copy = NULL;

	if (!w || !strstr(w->object.text, "\"" SLACK_ANNOTATION "\""))
		return NULL;
	tree = cJSON_Parse(w->object.text);
	found = cJSON_GetObjectItemCaseSensitive(
		document_at(tree, "spec.template.metadata.annotations"), SLACK_ANNOTATION);
	if (cJSON_IsString(found))
		copy = mem_strdup(found->valuestring);
	cJSON_Delete(tree);
	return copy;
}

static struct slack_ask read_annotations(struct slack_run *r, const struct group *g)
{
	struct annotation_value value = {{SLACK_ASKS_NOTHING, 0}, NULL, NULL};
	char *kept = NULL;

	if (g->current)
		consider(r, g, labels_find(&g->current->annotations, SLACK_ANNOTATION),
			 "controller", &value);
	if (is_of_current(g))
		consider(r, g, labels_find(&g->newest->template->annotations, SLACK_ANNOTATION),
			 "pod's template", &value);
	else
		kept = annotation_of_template(g->current);
	consider(r, g, kept, "pod's template", &value);
	free(kept);
	return value.ask;
}

/* 0, -ENOENT if nothing is known, -EINVAL if it cannot be read. */
static int make_pattern(const struct group *g, struct slack_pattern *p, struct error *error)
{
	int err = -ENOENT;

	if (is_of_current(g))
		return slack_pattern_of_pod(p, g->key, g->newest, error);
	if (g->current)
		err = slack_pattern_of_workload(p, g->key, &g->current->object, error);
	if (err == -ENOENT && g->newest)
		return slack_pattern_of_pod(p, g->key, g->newest, error);
	return err;
}

/* Whether there is a pattern; an issue says what is missing. */
static bool has_pattern(struct slack_run *r, const struct group *g, struct slack_pattern *p)
{
	struct error error = {""};
	int err = make_pattern(g, p, &error);

	if (err == -EINVAL)
		slack_add_issue(r->result, g->key, SLACK_ANNOTATION ": its pods cannot be read: %s",
				error.text);
	else if (err)
		slack_add_issue(r->result, g->key,
				SLACK_ANNOTATION ": it has no pods, and its object no template%s",
				p->record ? "; what its last pods were is kept"
					  : ": nothing is known of what a pod of it would ask for");
	return p->record != NULL;
}

static void share(struct slack_run *r, const struct group *g, struct slack_shared *shared)
{
	struct slack_pattern p = {0};

	if (has_pattern(r, g, &p)) {
		if (p.other_resources)
			slack_add_issue(r->result, g->key,
					SLACK_ANNOTATION
					": \"shared\" is room of CPU and memory alone, and its "
					"pods ask for more: say how many");
		shared->shapes = array_grow(shared->shapes, shared->count, sizeof(*shared->shapes));
		shared->who = array_grow(shared->who, shared->count, sizeof(char *));
		shared->shapes[shared->count] = p.shape;
		shared->who[shared->count++] = slack_result_name(r->result, g->key);
	}
	slack_pattern_fini(&p);
}

static void mirror(struct slack_run *r, const struct group *g, const struct slack_ask *ask)
{
	struct slack_entry *e = slack_state_entry(r->state, g->key, SLACK_WORKLOAD);
	int64_t amount = amount_of(g, ask);

	e->found = has_pattern(r, g, &e->pattern);
	e->owner_uid = g->current  ? g->current->object.uid
		       : g->newest ? g->newest->template->owner.uid
				   : "";
	if (e->found && amount > r->options->class_max) {
		slack_add_issue(r->result, g->key,
				SLACK_ANNOTATION
				": %lld are more than the %u that one workload may have",
				(long long)amount, r->options->class_max);
		amount = r->options->class_max;
	}
	e->target = (uint32_t)amount;
}

static void conclude(struct slack_run *r, const struct group *g, struct slack_shared *shared)
{
	struct slack_ask ask = read_annotations(r, g);

	if (ask.what == SLACK_ASKS_NOTHING)
		return;
	if (g->daemons)
		slack_add_issue(
			r->result, g->key,
			SLACK_ANNOTATION
			": pods of a DaemonSet are bound to their nodes, and need no slack");
	else if (ask.what == SLACK_ASKS_SHARED)
		share(r, g, shared);
	else
		mirror(r, g, &ask);
}

static int compare_groups(struct group *a, struct group *b)
{
	return strcmp(a->key, b->key);
}

struct slack_search *slack_search_new(const struct view *v)
{
	struct slack_search *s = mem_zalloc(1, sizeof(*s));

	s->view = v;
	find_controllers(s, false);
	find_controllers(s, true);
	return s;
}

void slack_wanted_find(struct slack_run *r, struct slack_search *search,
		       struct slack_shared *shared)
{
	struct controller *c, *next_controller;
	struct group *g, *next;

	*shared = (struct slack_shared){0};
	HASH_SORT(search->groups, compare_groups);
	HASH_RELEASE (search->groups, g, next) {
		conclude(r, g, shared);
		free(g->key);
		free(g);
	}
	HASH_RELEASE (search->controllers, c, next_controller)
		free(c);
	free(search);
}
