/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod that is asked about is read as the API tells pods, so that a manifest and a running pod are
 * the same question: where could it be? The core is of the pool, and given back as it is: the next
 * who takes it brings it up to the view of then.
 */
#include "aggregator/api/fit_ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/fit_pod_check.h"
#include "aggregator/api/reserved_pods.h"

/* No API server takes a pod of that name: a manifest without one is no pod that is known. */
#define UNNAMED "(unnamed)"

static cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* --- the pod */

static bool is_absent(const cJSON *item)
{
	return !item || cJSON_IsNull(item);
}

static void default_to(cJSON *object, const char *key, const char *value)
{
	if (!cJSON_IsObject(object) || !is_absent(member(object, key)))
		return; /* what is of another kind is refused when it is read */
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

/* Ports of a pod in its node's network are the node's, which a manifest need not say twice. */
static void open_port(cJSON *port)
{
	const cJSON *number = member(port, "containerPort"), *host = member(port, "hostPort");

	if (!cJSON_IsNumber(number) ||
	    !(is_absent(host) || (cJSON_IsNumber(host) && host->valuedouble == 0)))
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(port, "hostPort");
	cJSON_AddNumberToObject(port, "hostPort", number->valuedouble);
}

static void open_ports(cJSON *containers)
{
	for (cJSON *one = cJSON_IsArray(containers) ? containers->child : NULL; one;
	     one = one->next) {
		const cJSON *ports = member(one, "ports");

		for (cJSON *port = cJSON_IsArray(ports) ? ports->child : NULL; port;
		     port = port->next)
			open_port(port);
	}
}

/* What a manifest may leave out is filled in; what a pod has become is forgotten. */
static void make_pending(cJSON *pod)
{
	cJSON *metadata = member(pod, "metadata");

	if (!metadata || cJSON_IsNull(metadata)) {
		cJSON_DeleteItemFromObjectCaseSensitive(pod, "metadata");
		metadata = cJSON_AddObjectToObject(pod, "metadata");
	}
	default_to(metadata, "name", UNNAMED);
	default_to(metadata, "namespace", "default");
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
	cJSON_DeleteItemFromObjectCaseSensitive(member(pod, "spec"), "nodeName");
	if (cJSON_IsTrue(member(member(pod, "spec"), "hostNetwork"))) {
		open_ports(member(member(pod, "spec"), "containers"));
		open_ports(member(member(pod, "spec"), "initContainers"));
	}
	cJSON_DeleteItemFromObjectCaseSensitive(member(pod, "status"), "phase");
}

int fit_pod_read(cJSON *pod, struct kube_pod **out, char field[FIT_FIELD_MAX],
		 struct reason *reason)
{
	char inner[OBJECT_FIELD_MAX] = "";
	struct object *record;

	if (!cJSON_IsObject(pod)) {
		snprintf(field, FIT_FIELD_MAX, "pod");
		reason_set(reason, "%s", pod ? "must be a Pod object" : "is required");
		return -EINVAL;
	}
	if (fit_pod_check(pod, field, reason))
		return -EINVAL;
	make_pending(pod);
	if (object_read(OBJECT_POD, pod, &record, inner, reason)) {
		snprintf(field, FIT_FIELD_MAX, "pod%s%s", *inner ? "." : "", inner);
		return -EINVAL;
	}
	*out = (struct kube_pod *)record;
	return 0;
}

/* --- the cluster */

bool fit_knows_cluster(const struct view *v, struct reason *reason)
{
	static const enum object_kind needed[] = {OBJECT_NODE, OBJECT_POD};

	if (!v->cluster) {
		reason_set(reason, "nothing is known of the cluster's nodes and pods: there is no "
				   "Kubernetes API and no snapshot to ask");
		return false;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		const struct model_source *s = &v->cluster->sources[needed[i]];

		if (view_knows(v, needed[i]))
			continue;
		reason_set(reason, "the cluster's %s are not known: %s%s%.200s",
			   object_kind_resource(needed[i]), source_state_name(s->state),
			   *s->message ? ": " : "", s->message);
		return false;
	}
	return true;
}

/* The pod as the cluster has it is not in its own way. */
static void take_itself(struct place *p, const struct kube_pod *pod)
{
	place_pod known = place_find_pod(p, pod->object.namespace, pod->object.name);
	const char *uid = pod->object.uid;

	if (known == PLACE_NONE || place_where(p, known) == PLACE_NONE)
		return;
	if (!*uid || strcmp(uid, place_pod_record(p, known)->object.uid) == 0)
		place_take(p, known);
}

/* Nor is what was promised to it; "" where that is nothing. */
static const char *reserved_uid(const struct view *v, const struct ledger_copy *ledger,
				const struct kube_pod *pod)
{
	const struct ledger_entry *own;

	if (*pod->object.uid || !ledger)
		return pod->object.uid;
	own = ledger_copy_find(ledger, pod->object.namespace, pod->object.name, "",
			       v->cluster->generation);
	return own ? own->uid : "";
}

void fit_ask_open(struct fit_ask *a, struct place_pool *pool, struct view *v,
		  const struct ledger_copy *ledger, const struct kube_pod *pod, int64_t now_ns)
{
	a->pool = pool;
	a->place = place_pool_take(pool, v, now_ns);
	reserved_pods_put(a->place, v, ledger, reserved_uid(v, ledger, pod), &a->mark);
	take_itself(a->place, pod);
	a->pod = place_add_pod(a->place, pod);
}

void fit_ask_close(struct fit_ask *a)
{
	place_revert(a->place, a->mark);
	place_pool_give(a->pool, a->place);
}

void fit_ask_write_counts(const struct fit_ask *a, struct jsonw *w)
{
	struct place_counts counts = {.nearest = PLACE_NONE};

	for (place_node n = 0; n < place_node_count(a->place); n++)
		counts.of[place_check(a->place, a->pod, n)]++;
	jsonw_key_int(w, "fits", counts.of[PLACE_FITS]);
	jsonw_key(w, "refused");
	jsonw_object_open(w);
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (counts.of[f])
			jsonw_key_int(w, place_filter_name((enum place_filter)f), counts.of[f]);
	jsonw_object_close(w);
}
