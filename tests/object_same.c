/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/object_same.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/model/pod_sums.h"
#include "shared/mem.h"

cJSON *object_json_of(const char *text)
{
	char *copy = mem_strdup(text);
	cJSON *tree;

	for (char *at = copy; *at; at++)
		if (*at == '\'')
			*at = '"';
	tree = cJSON_Parse(copy);
	free(copy);
	return tree;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_labels(const struct labels *a, const struct labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->of[i].key, b->of[i].key) != 0 ||
		    strcmp(a->of[i].value, b->of[i].value) != 0)
			return false;
	return true;
}

static bool same_owner(const struct owner_ref *a, const struct owner_ref *b)
{
	return same_text(a->kind, b->kind) && same_text(a->name, b->name) &&
	       same_text(a->uid, b->uid);
}

static bool same_list(const struct resource_list *a, const struct resource_list *b)
{
	return a->has_cpu == b->has_cpu && a->has_mem == b->has_mem &&
	       a->cpu_milli == b->cpu_milli && a->mem_bytes == b->mem_bytes;
}

static bool same_containers(const struct container_spec *a, const struct container_spec *b,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!same_list(&a[i].requests, &b[i].requests) ||
		    !same_list(&a[i].limits, &b[i].limits) || a[i].sidecar != b[i].sidecar)
			return false;
	return true;
}

static bool same_spec(const struct pod_spec *a, const struct pod_spec *b)
{
	return !a->name && !b->name && a->container_count == b->container_count &&
	       a->init_count == b->init_count &&
	       same_containers(a->containers, b->containers, a->container_count) &&
	       same_containers(a->init, b->init, a->init_count) &&
	       same_list(&a->overhead, &b->overhead) &&
	       a->has_pod_resources == b->has_pod_resources &&
	       same_list(&a->pod_requests, &b->pod_requests) &&
	       same_list(&a->pod_limits, &b->pod_limits);
}

/* The first of `checks` that is false gives the name of the member. */
struct check {
	bool same;
	const char *what;
};

static bool all(const struct check *checks, size_t count, const char **what)
{
	for (size_t i = 0; i < count; i++) {
		if (!checks[i].same) {
			*what = checks[i].what;
			return false;
		}
	}
	return true;
}

static bool same_taints(const struct taints *a, const struct taints *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->of[i].key, b->of[i].key) != 0 ||
		    strcmp(a->of[i].value, b->of[i].value) != 0 ||
		    strcmp(a->of[i].effect, b->of[i].effect) != 0)
			return false;
	return true;
}

#define ALL(checks, what) all(checks, sizeof(checks) / sizeof((checks)[0]), what)
#define SAME(member)                                                                               \
	{                                                                                          \
		a->member == b->member, #member                                                    \
	}
#define SAME_BY(how, member)                                                                       \
	{                                                                                          \
		how(&a->member, &b->member), #member                                               \
	}
#define SAME_TEXT(member)                                                                          \
	{                                                                                          \
		same_text(a->member, b->member), #member                                           \
	}

static bool same_head(const struct object *a, const struct object *b, const char **what)
{
	const struct check checks[] = {
		SAME(kind), SAME_TEXT(namespace), SAME_TEXT(name), SAME_TEXT(uid), SAME_TEXT(text),
	};

	return ALL(checks, what);
}

static bool same_node(const struct kube_node *a, const struct kube_node *b, const char **what)
{
	const struct check checks[] = {
		SAME_BY(same_labels, labels),
		SAME_BY(same_labels, annotations),
		SAME_BY(same_taints, taints),
		SAME_BY(resources_equal, capacity),
		SAME_BY(resources_equal, allocatable),
		SAME(ready),
		SAME(unschedulable),
		SAME(created_ns),
		SAME(deletion_ns),
	};

	return ALL(checks, what);
}

static bool same_template(const struct pod_template *a, const struct pod_template *b,
			  const char **what)
{
	const struct check checks[] = {
		SAME_TEXT(text),
		SAME(hash),
		SAME(text_len),
		SAME(spec_at),
		SAME_BY(same_labels, labels),
		SAME_BY(same_labels, annotations),
		SAME_BY(same_owner, owner),
		SAME_TEXT(owner_api),
		SAME_BY(same_spec, spec),
		SAME_BY(pod_sums_equal, sums),
		SAME(priority),
		SAME_TEXT(priority_class),
		SAME(mirror),
		SAME(restart),
		SAME(grace_sec),
		SAME_BY(same_labels, local_volumes),
	};

	return ALL(checks, what);
}

static bool same_resized(const struct pod_sums *a, const struct pod_sums *b, const char **what)
{
	*what = "resized";
	if (!a || !b)
		return a == b;
	return pod_sums_equal(a, b);
}

static bool same_pod(const struct kube_pod *a, const struct kube_pod *b, const char **what)
{
	const struct check checks[] = {
		SAME_TEXT(node),       SAME_TEXT(nominated_node),
		SAME_TEXT(qos),	       SAME_TEXT(resized_text),
		SAME_TEXT(containers), SAME(created_ns),
		SAME(deletion_ns),     SAME(started_ns),
		SAME(scheduled_ns),    SAME(unschedulable_ns),
		SAME(disruption_ns),   SAME(restarts),
		SAME(phase),	       SAME(resize),
		SAME(ready),
	};

	return ALL(checks, what) && same_template(a->template, b->template, what) &&
	       same_resized(a->resized, b->resized, what);
}

static bool same_workload(const struct kube_workload *a, const struct kube_workload *b,
			  const char **what)
{
	const struct check checks[] = {
		SAME_BY(same_owner, owner),
		SAME(replicas),
		SAME(present),
		SAME(current_revision),
		SAME(completions),
		SAME(succeeded),
		SAME_BY(same_labels, annotations),
	};

	return ALL(checks, what);
}

static bool same_priority_class(const struct kube_priority_class *a,
				const struct kube_priority_class *b, const char **what)
{
	const struct check checks[] = {SAME(value), SAME(global_default), SAME(preempts)};

	return ALL(checks, what);
}

static bool same_quota(const struct kube_quota *a, const struct kube_quota *b, const char **what)
{
	const struct check checks[] = {
		SAME_BY(resources_equal, min),
		SAME_BY(resources_equal, max),
		SAME(has_min),
		SAME(has_max),
		SAME_BY(same_labels, annotations),
		SAME(created_ns),
	};

	return ALL(checks, what);
}

/* Selectors are compared by their text. */
static bool same_budget(const struct kube_pdb *a, const struct kube_pdb *b, const char **what)
{
	const struct check checks[] = {
		{!a->selector == !b->selector, "selector"},
		SAME(disruptions_allowed),
		SAME(expected_pods),
		SAME(current_healthy),
		SAME(desired_healthy),
		SAME(stale),
		SAME(frees_unhealthy),
	};

	return ALL(checks, what);
}

static bool same_gang(const struct kube_gang *a, const struct kube_gang *b, const char **what)
{
	bool same = a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = strcmp(a->of[i].part, b->of[i].part) == 0 && a->of[i].pods == b->of[i].pods;
	*what = "groups";
	return same;
}

bool object_same(const struct object *a, const struct object *b, const char **what)
{
	if (!same_head(a, b, what))
		return false;
	switch (a->kind) {
	case OBJECT_NODE:
		return same_node((const void *)a, (const void *)b, what);
	case OBJECT_POD:
		return same_pod((const void *)a, (const void *)b, what);
	case OBJECT_REPLICA_SET:
	case OBJECT_STATEFUL_SET:
	case OBJECT_DAEMON_SET:
	case OBJECT_JOB:
	case OBJECT_REPLICATION_CONTROLLER:
		return same_workload((const void *)a, (const void *)b, what);
	case OBJECT_PRIORITY_CLASS:
		return same_priority_class((const void *)a, (const void *)b, what);
	case OBJECT_RESOURCE_QUOTA:
	case OBJECT_ELASTIC_QUOTA:
		return same_quota((const void *)a, (const void *)b, what);
	case OBJECT_POD_GROUP:
	case OBJECT_COSCHEDULING_GROUP:
	case OBJECT_WORKLOAD:
		return same_gang((const void *)a, (const void *)b, what);
	case OBJECT_POD_DISRUPTION_BUDGET:
		return same_budget((const void *)a, (const void *)b, what);
	default:
		return true;
	}
}

static const char *compare_written(const struct object *a, const struct buf *text)
{
	cJSON *tree = cJSON_Parse(text->data);
	struct buf again = BUF_INIT;
	char field[OBJECT_FIELD_MAX];
	const char *what = "what is written is no JSON";
	struct object *b;

	if (!tree)
		return what;
	if (object_read(a->kind, tree, &b, field, NULL)) {
		what = "what is written cannot be read";
	} else {
		object_write(b, &again);
		if (object_same(a, b, &what))
			what = strcmp(text->data, again.data) == 0 ? NULL : "the bytes";
		object_drop(b);
	}
	buf_fini(&again);
	cJSON_Delete(tree);
	return what;
}

const char *object_check_written(const struct object *o)
{
	struct buf text = BUF_INIT;
	const char *what;

	object_write(o, &text);
	what = compare_written(o, &text);
	buf_fini(&text);
	return what;
}
