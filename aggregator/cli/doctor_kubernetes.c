/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API, resource by resource. Nodes and pods are what every answer needs, so what keeps them away fails; without another
 * resource some answers say less, which is a warning. ElasticQuotas are a CRD that most clusters do not have.
 */
#include "aggregator/cli/doctor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/document.h"
#include "aggregator/model/object.h"
#include "shared/mem.h"
#include "shared/units.h"

#define LISTING_LATE_SECONDS 120
#define STALE_LATE_SECONDS   300

struct resource {
	const char *name, *state, *message; /* message "" when there is none */
	double objects, state_seconds;
	bool required;
};

static bool is_state(const struct resource *r, const char *state)
{
	return strcmp(r->state, state) == 0;
}

static enum doctor_verdict severe_if(bool severe)
{
	return severe ? DOCTOR_FAIL : DOCTOR_WARN;
}

/* The API group of a resource: "" for the core's. The caller frees it. */
static char *group_of(const char *resource)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		const char *version = object_kind_version((enum object_kind)kind);
		const char *slash = strchr(version, '/');

		if (strcmp(object_kind_resource((enum object_kind)kind), resource) == 0)
			return mem_strndup(version, slash ? (size_t)(slash - version) : 0);
	}
	return mem_strdup("");
}

static void add_forbidden(struct doctor *d, const struct resource *r)
{
	char *group = group_of(r->name);
	char *advice = mem_printf(
		"Add to the aggregator's ClusterRole, under rules: - {apiGroups: [\"%s\"], "
		"resources: [\"%s\"], verbs: [\"get\", \"list\", \"watch\"]}",
		group, r->name);

	doctor_add(d, severe_if(r->required), r->name, advice, "the API does not show them%s%s",
		   r->message[0] ? ": " : "", r->message);
	free(advice);
	free(group);
}

/* Everything that is not as it should be. */
static void add_trouble(struct doctor *d, const struct resource *r)
{
	char age[UNITS_LEN];

	units_age(r->state_seconds, age);
	if (is_state(r, "forbidden"))
		add_forbidden(d, r);
	else if (is_state(r, "listing"))
		doctor_add(d, severe_if(r->required && r->state_seconds > LISTING_LATE_SECONDS),
			   r->name,
			   "Answers are incomplete until it is done. If it lasts, the API server "
			   "cannot be reached: see the aggregator's log.",
			   "being listed for %s, %.0f so far%s%s", age, r->objects,
			   r->message[0] ? ": " : "", r->message);
	else if (is_state(r, "stale"))
		doctor_add(d, severe_if(r->required && r->state_seconds > STALE_LATE_SECONDS),
			   r->name,
			   "It is tried again by itself. Does the API server answer, and is the "
			   "token still good?",
			   "changes have been missed for %s%s%s", age, r->message[0] ? ": " : "",
			   r->message);
	else if (is_state(r, "absent") && strcmp(r->name, "elasticquotas") == 0)
		doctor_add(d, DOCTOR_OK, r->name, NULL, "the cluster has no such resource");
	else if (is_state(r, "absent"))
		doctor_add(d, severe_if(r->required), r->name,
			   "Is it served by the API under another version?",
			   "the cluster has no such resource%s%s", r->message[0] ? ": " : "",
			   r->message);
}

static void add_skipped(struct doctor *d, const cJSON *item, const char *name)
{
	double skipped = document_number(item, "skipped");
	const char *last = document_text(item, "skippedLast");

	if (skipped > 0)
		doctor_add(d, DOCTOR_WARN, name,
			   "They are left out of every answer: correct the field, or report it.",
			   "%.0f could not be read; the last: %s", skipped, last ? last : "?");
}

static struct resource read_resource(const cJSON *item)
{
	const char *name = document_text(item, "resource"), *state = document_text(item, "state"),
		   *message = document_text(item, "message");

	return (struct resource){
		.name = name ? name : "?",
		.state = state ? state : "?",
		.message = message ? message : "",
		.objects = document_number(item, "objects"),
		.state_seconds = document_number(item, "stateSeconds"),
		.required = name && (strcmp(name, "nodes") == 0 || strcmp(name, "pods") == 0),
	};
}

/* One line for all that is well. */
static void add_summary(struct doctor *d, const cJSON *resources, const char *mode)
{
	double nodes = 0, pods = 0;
	size_t synced = 0, all = 0;

	for (const cJSON *item = document_first(resources); item; item = item->next) {
		struct resource r = read_resource(item);

		all++;
		synced += is_state(&r, "synced") || is_state(&r, "snapshot");
		if (strcmp(r.name, "nodes") == 0)
			nodes = r.objects;
		if (strcmp(r.name, "pods") == 0)
			pods = r.objects;
	}
	doctor_add(d, synced ? DOCTOR_OK : DOCTOR_WARN, "kubernetes", NULL,
		   "%s, %zu of %zu resources in sync: %.0f nodes, %.0f pods", mode, synced, all,
		   nodes, pods);
}

void doctor_examine_kubernetes(struct doctor *d, const cJSON *status)
{
	const char *mode = document_text(status, "kubernetes.mode");
	const cJSON *resources = document_at(status, "kubernetes.resources");

	if (!mode || strcmp(mode, "standalone") == 0) {
		doctor_add(d, DOCTOR_OK, "kubernetes", NULL,
			   "standalone: no API is followed, workloads carry their cgroups' names "
			   "(--kubeconfig follows one)");
		return;
	}
	if (!document_first(resources)) {
		doctor_add(d, DOCTOR_FAIL, "kubernetes",
			   "Can the aggregator reach the API server? Its log says what fails.",
			   "%s, but nothing has been heard of the API yet", mode);
		return;
	}
	add_summary(d, resources, mode);
	for (const cJSON *item = document_first(resources); item; item = item->next) {
		struct resource r = read_resource(item);

		add_trouble(d, &r);
		add_skipped(d, item, r.name);
	}
}
