/* SPDX-License-Identifier: Apache-2.0 */
/* The rules, and pods of a node by their verdicts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_rules.h"
#include "shared/array.h"
#include "shared/duration.h"
#include "shared/mem.h"

#define ANNOTATION(name) "cluster-autoscaler.kubernetes.io/" name

enum { OVERDUE_SEC = 30 };

static const char *annotation(const struct kube_pod *pod, const char *key)
{
	return labels_find(&pod->template->annotations, key);
}

static bool annotation_is(const struct kube_pod *pod, const char *key, const char *value)
{
	const char *got = annotation(pod, key);

	return got && strcmp(got, value) == 0;
}

/* Karpenter takes "true" or a duration since the pod's start; every other value holds, too. */
static bool must_not_be_disrupted(const struct kube_pod *pod)
{
	const char *got = annotation(pod, "karpenter.sh/do-not-disrupt");

	return got && strcmp(got, "false") != 0;
}

static bool is_corrected(const struct drain_context *c)
{
	return c->options->variant == DRAIN_CORRECTED;
}

bool drain_is_daemon_pod(const struct kube_pod *pod)
{
	return strcmp(pod->template->owner.kind, "DaemonSet") == 0 ||
	       annotation_is(pod, ANNOTATION("daemonset-pod"), "true");
}

bool drain_is_long_terminating(const struct kube_pod *pod, int64_t now_ns)
{
	int64_t grace_sec = kube_pod_grace_sec(pod);

	return pod->deletion_ns &&
	       elapsed_ns(now_ns, pod->deletion_ns) > (grace_sec + OVERDUE_SEC) * DRAIN_SECOND_NS;
}

/* Returns true: the rule has decided. */
static bool block(struct drain_status *out, enum drain_reason reason)
{
	out->outcome = DRAIN_POD_BLOCK;
	out->reason = reason;
	return true;
}

/* --- unreadable budgets, which the API server still enforces */

static bool hold_for_source(const struct drain_question *q, const struct model_source *s)
{
	if (s->state != SOURCE_LISTING && s->state != SOURCE_FORBIDDEN)
		return false;
	return block(q->out,
		     error_fail(q->why, DRAIN_PDBS_UNKNOWN,
				"PodDisruptionBudgets are not known: %s%s%.200s",
				source_state_name(s->state), *s->message ? ": " : "", s->message));
}

/* A budget of the pod's namespace, or of an unknown one, may select the pod. */
static bool hold_for_unreadable(const struct drain_question *q, const struct unreadables *u)
{
	for (uint32_t i = 0; i < u->count; i++) {
		const char *namespace = u->of[i].namespace;

		if (*namespace && strcmp(namespace, q->pod->object.namespace) != 0)
			continue;
		return block(q->out, error_fail(q->why, DRAIN_PDBS_UNKNOWN,
						"PodDisruptionBudget %.60s cannot be read: %s",
						u->of[i].name, u->of[i].why));
	}
	if (!u->more)
		return false;
	return block(q->out, error_fail(q->why, DRAIN_PDBS_UNKNOWN,
					"more PodDisruptionBudgets than are told cannot be read"));
}

static bool hold_for_hidden_budgets(const struct drain_question *q)
{
	const struct model_source *s;

	if (!is_corrected(q->context) || !q->context->cluster)
		return false;
	s = &q->context->cluster->sources[OBJECT_POD_DISRUPTION_BUDGET];
	return hold_for_source(q, s) || hold_for_unreadable(q, &s->unreadable);
}

/* --- 1, 2: nothing to do */

static void ask_mirror(const struct drain_question *q)
{
	if (q->pod->template->mirror)
		q->out->outcome = DRAIN_POD_SKIP;
}

static void ask_long_terminating(const struct drain_question *q)
{
	if (drain_is_long_terminating(q->pod, q->context->now_ns))
		q->out->outcome = DRAIN_POD_SKIP;
}

/* --- 3: the owner */

/* Kinds whose existence is checked; only in the group apps where others have such a kind. */
static bool find_owner_kind(const struct kube_pod *pod, enum object_kind *kind)
{
	static const struct {
		const char *name;
		enum object_kind kind;
		bool only_in_apps;
	} kinds[] = {
		{"ReplicationController", OBJECT_REPLICATION_CONTROLLER, false},
		{"DaemonSet", OBJECT_DAEMON_SET, true},
		{"Job", OBJECT_JOB, false},
		{"ReplicaSet", OBJECT_REPLICA_SET, false},
		{"StatefulSet", OBJECT_STATEFUL_SET, true},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(pod->template->owner.kind, kinds[i].name) != 0)
			continue;
		*kind = kinds[i].kind;
		return !kinds[i].only_in_apps || strncmp(pod->template->owner_api, "apps/", 5) == 0;
	}
	return false;
}

static bool is_known(const struct cluster *cluster, enum object_kind kind)
{
	enum source_state state = cluster->sources[kind].state;

	return state == SOURCE_SYNCED || state == SOURCE_STALE || state == SOURCE_SNAPSHOT;
}

static void judge_replicas(const struct drain_question *q, const struct object *owner)
{
	const struct kube_workload *w = (const struct kube_workload *)owner;

	if (owner->kind != OBJECT_REPLICA_SET && owner->kind != OBJECT_REPLICATION_CONTROLLER)
		return;
	if (w->replicas >= q->context->options->min_replicas)
		return;
	block(q->out,
	      error_fail(q->why, DRAIN_MIN_REPLICAS,
			 "its %s %s wants %" PRId32 " %s, fewer than the %" PRId64 " it must have",
			 object_kind_name(owner->kind), owner->name, w->replicas,
			 drain_plural(w->replicas, "replica", "replicas"),
			 q->context->options->min_replicas));
}

static void ask_replica_count(const struct drain_question *q)
{
	const struct owner_ref *ref = &q->pod->template->owner;
	const struct object *owner;
	enum object_kind kind;

	/* The owner of a pod with the DaemonSet annotation alone is not listed. */
	if (!q->context->cluster || !find_owner_kind(q->pod, &kind) ||
	    (kind != OBJECT_DAEMON_SET && kind != OBJECT_REPLICATION_CONTROLLER &&
	     drain_is_daemon_pod(q->pod)) ||
	    !is_known(q->context->cluster, kind))
		return;
	owner = cluster_find(q->context->cluster, kind, q->pod->object.namespace, ref->name);
	if (!owner || (is_corrected(q->context) && *owner->uid && *ref->uid &&
		       strcmp(owner->uid, ref->uid) != 0))
		block(q->out, error_fail(q->why, DRAIN_CONTROLLER_NOT_FOUND,
					 "its owner, %s %s, is not there%s", ref->kind, ref->name,
					 owner ? ": another has its name" : ""));
	else
		judge_replicas(q, owner);
}

/* --- 4 to 7: it goes */

static void ask_daemon_set(const struct drain_question *q)
{
	if (drain_is_daemon_pod(q->pod))
		q->out->outcome = DRAIN_POD_OK;
}

static void ask_safe_to_evict(const struct drain_question *q)
{
	if (!annotation_is(q->pod, ANNOTATION("safe-to-evict"), "true"))
		return;
	if (is_corrected(q->context) && must_not_be_disrupted(q->pod))
		return;
	if (!hold_for_hidden_budgets(q))
		q->out->outcome = DRAIN_POD_OK;
}

static void ask_terminal(const struct drain_question *q)
{
	if (q->pod->phase == POD_FAILED ||
	    (q->pod->phase == POD_SUCCEEDED && q->pod->template->restart != POD_RESTART_ALWAYS))
		q->out->outcome = DRAIN_POD_OK;
}

static void ask_on_completion(const struct drain_question *q)
{
	if (annotation_is(q->pod, ANNOTATION("safe-to-evict"), "on-completion"))
		q->out->outcome = DRAIN_POD_WAIT;
}

/* --- 8 to 12: it stays */

static void ask_replicated(const struct drain_question *q)
{
	static const char *const kinds[] = {"ReplicationController", "Job", "ReplicaSet",
					    "StatefulSet", NULL};
	const struct owner_ref *owner = &q->pod->template->owner;

	if (!*owner->kind)
		block(q->out,
		      error_fail(q->why, DRAIN_NOT_REPLICATED, "no controller would make it anew"));
	else if (q->context->options->skip_custom_controllers &&
		 !array_has_text(kinds, owner->kind))
		block(q->out,
		      error_fail(q->why, DRAIN_NOT_REPLICATED,
				 "its controller, %s %s, is of a kind that need not make it anew",
				 owner->kind, owner->name));
}

static void ask_system(const struct drain_question *q)
{
	const uint32_t *which;

	if (strcmp(q->pod->object.namespace, "kube-system") != 0 ||
	    (q->context->pdbs && drain_pdbs_match(q->context->pdbs, q->pod, &which) > 0))
		return;
	if (q->pod->created_ns != 0 && elapsed_ns(q->context->now_ns, q->pod->created_ns) >
					       q->context->options->system_timeout_ns) {
		if (!is_corrected(q->context))
			q->out->outcome = DRAIN_POD_OK;
		return;
	}
	block(q->out,
	      error_fail(q->why, DRAIN_KUBE_SYSTEM_POD,
			 "it is in kube-system, has no PodDisruptionBudget, and is not older "
			 "than %" PRId64 " s",
			 q->context->options->system_timeout_ns / DRAIN_SECOND_NS));
}

static void ask_not_safe_to_evict(const struct drain_question *q)
{
	const char *word = annotation(q->pod, ANNOTATION("safe-to-evict"));

	if (word && strcmp(word, "false") == 0)
		block(q->out, error_fail(q->why, DRAIN_NOT_SAFE_TO_EVICT,
					 "it is annotated %s=false", ANNOTATION("safe-to-evict")));
	else if (is_corrected(q->context) && word && strcmp(word, "true") != 0 &&
		 strcmp(word, "on-completion") != 0)
		block(q->out, error_fail(q->why, DRAIN_NOT_SAFE_TO_EVICT,
					 "its annotation %s=%.40s has no known meaning",
					 ANNOTATION("safe-to-evict"), word));
	else if (is_corrected(q->context) && must_not_be_disrupted(q->pod))
		block(q->out, error_fail(q->why, DRAIN_NOT_SAFE_TO_EVICT,
					 "it is annotated karpenter.sh/do-not-disrupt=%.40s",
					 annotation(q->pod, "karpenter.sh/do-not-disrupt")));
}

/* Exact match in a list with commas. */
static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		if (*at == ',')
			at++;
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return len > 0;
	}
	return false;
}

static void ask_local_storage(const struct drain_question *q)
{
	const char *list = annotation(q->pod, ANNOTATION("safe-to-evict-local-volumes"));
	const struct labels *volumes = &q->pod->template->local_volumes;

	for (size_t i = 0; i < volumes->count; i++) {
		if (list && is_listed(list, volumes->of[i].key))
			continue;
		block(q->out, error_fail(q->why, DRAIN_LOCAL_STORAGE,
					 "its volume %.60s (%s) is lost with the node",
					 volumes->of[i].key, volumes->of[i].value));
		return;
	}
}

static void ask_pdb(const struct drain_question *q)
{
	struct drain_pdb_verdict v;

	if (hold_for_hidden_budgets(q) || !q->context->pdbs)
		return;
	drain_pdbs_ask(q->context->pdbs, &q->pod, 1, &v);
	if (v.reason == DRAIN_NONE)
		return;
	block(q->out, v.reason);
	drain_pdb_tell(&v, q->why);
}

/* --- the table */

#define ON(option) offsetof(struct drain_options, option)

static const struct drain_rule rules[] = {
	{"Mirror", 0, ask_mirror},
	{"LongTerminating", 0, ask_long_terminating},
	{"ReplicaCount", ON(skip_custom_controllers), ask_replica_count},
	{"DaemonSet", 0, ask_daemon_set},
	{"SafeToEvict", 0, ask_safe_to_evict},
	{"Terminal", 0, ask_terminal},
	{"OnCompletion", 0, ask_on_completion},
	{"Replicated", 0, ask_replicated},
	{"System", ON(skip_system), ask_system},
	{"NotSafeToEvict", 0, ask_not_safe_to_evict},
	{"LocalStorage", ON(skip_local_storage), ask_local_storage},
	{"PDB", 0, ask_pdb},
};

const struct drain_rule *drain_rules(size_t *count)
{
	*count = sizeof(rules) / sizeof(rules[0]);
	return rules;
}

/* --- verdicts */

bool drain_judge_step(struct drain_judge *j, const struct drain_status *status)
{
	if (status->overrides) {
		assert(j->parked_count < DRAIN_PARKED_MAX);
		j->parked[j->parked_count++] = *status;
		return false;
	}
	for (size_t i = 0; i < j->parked_count; i++) {
		if (j->parked[i].overrides & (1U << status->outcome)) {
			j->verdict = j->parked[i];
			return true;
		}
	}
	if (status->outcome == DRAIN_POD_UNDEFINED)
		return false;
	j->verdict = *status;
	return true;
}

/* True: it is decided. */
static bool ask_rules(const struct drain_context *c, const struct drain_rule *of, size_t count,
		      const struct kube_pod *pod, struct drain_judge *j, struct error *why)
{
	for (size_t i = 0; i < count; i++) {
		struct drain_status status = {0};

		if (of[i].on && !*(const bool *)((const char *)c->options + of[i].on))
			continue;
		of[i].ask(&(struct drain_question){c, pod, &status, why});
		if (drain_judge_step(j, &status))
			return true;
	}
	return false;
}

void drain_pod_judge(const struct drain_context *c, const struct kube_pod *pod,
		     struct drain_status *out, struct error *why)
{
	size_t count;
	const struct drain_rule *of = drain_rules(&count);
	struct drain_judge j = {0};

	error_set(why, "%s", "");
	if (!ask_rules(c, c->first, c->first_count, pod, &j, why))
		ask_rules(c, of, count, pod, &j, why);
	*out = j.verdict;
}

void drain_pods_sort(const struct drain_context *c, const struct kube_pod *const *pods,
		     size_t count, struct drain_pods *out)
{
	bool one_is_enough = c->options->variant == DRAIN_UPSTREAM;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < count && !(one_is_enough && out->blocking); i++) {
		struct drain_status status;
		struct error why;

		drain_pod_judge(c, pods[i], &status, &why);
		if (status.outcome == DRAIN_POD_BLOCK)
			ARRAY_ADD(out->blocking, out->blocking_count) =
				(struct drain_blocking){pods[i], status, mem_strdup(why.text)};
		else if (status.outcome == DRAIN_POD_WAIT)
			ARRAY_ADD(out->wait, out->wait_count) = pods[i];
		else if (status.outcome == DRAIN_POD_OK && drain_is_daemon_pod(pods[i]))
			ARRAY_ADD(out->daemon, out->daemon_count) = pods[i];
		else if (status.outcome != DRAIN_POD_SKIP)
			ARRAY_ADD(out->move, out->move_count) = pods[i];
	}
}

void drain_pods_fini(struct drain_pods *p)
{
	for (size_t i = 0; i < p->blocking_count; i++)
		free(p->blocking[i].why);
	free(p->blocking);
	free(p->move);
	free(p->daemon);
	free(p->wait);
	memset(p, 0, sizeof(*p));
}
