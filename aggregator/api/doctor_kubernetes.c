/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API, resource by resource. Nodes and pods are what every answer needs, so what keeps them
 * away fails; without another resource some answers say less, which is a warning. ElasticQuotas are
 * a CRD that most clusters do not have.
 *
 * What goes wrong with the connection goes wrong with every resource, and is told once.
 */
#include "aggregator/api/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/units.h"

enum { NAMES_SHOWN = 3 };

#define LISTING_LATE_SECONDS 120
#define STALE_LATE_SECONDS   300

struct resource {
	const char *name, *state, *message; /* message "" when there is none */
	double objects, state_seconds;
	bool required;
};

static struct resource read_resource(const cJSON *item)
{
	return (struct resource){
		.name = document_text_or(item, "resource", "?"),
		.state = document_text_or(item, "state", "?"),
		.message = document_text_or(item, "message", ""),
		.objects = document_number(item, "objects"),
		.state_seconds = document_number(item, "stateSeconds"),
		.required = document_is(item, "resource", "nodes") ||
			    document_is(item, "resource", "pods"),
	};
}

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
		"resources: [\"%.*s\"], verbs: [\"get\", \"list\", \"watch\"]}",
		group, (int)strcspn(r->name, "."), r->name);

	doctor_add(d, severe_if(r->required), r->name, advice, "the API does not show them%s%s",
		   r->message[0] ? ": " : "", r->message);
	free(advice);
	free(group);
}

/* --- what several resources have in common ---------------------------------------------------- */

/*
 * Resources of one state for one reason: an API that cannot be reached is one finding, not one for
 * each of them.
 */
struct group {
	struct resource first;
	size_t count;
	struct buf names; /* the first few: "nodes, pods" */
	double objects, state_seconds; /* of all; the longest */
	bool required, required_empty; /* nodes or pods are among them; without one object */
};

static bool are_alike(const struct resource *a, const struct resource *b)
{
	return strcmp(a->state, b->state) == 0 && strcmp(a->message, b->message) == 0;
}

/* Of the item and all alike behind it. names is to be freed. */
static struct group group_from(const cJSON *item, const struct resource *first)
{
	struct group g = {.first = *first, .state_seconds = NAN};

	for (; item; item = item->next) {
		struct resource r = read_resource(item);

		if (are_alike(&r, first)) {
			if (g.count < NAMES_SHOWN)
				buf_printf(&g.names, "%s%s", g.count ? ", " : "", r.name);
			g.count++;
			if (r.objects > 0)
				g.objects += r.objects;
			g.state_seconds = fmax(g.state_seconds, r.state_seconds);
			g.required |= r.required;
			g.required_empty |= r.required && !(r.objects > 0);
		}
	}
	return g;
}

static bool is_told_before(const cJSON *resources, const cJSON *item, const struct resource *r)
{
	for (const cJSON *other = document_first(resources, ""); other != item;
	     other = other->next) {
		struct resource o = read_resource(other);

		if (are_alike(&o, r))
			return true;
	}
	return false;
}

/* One by its own name, several as "15 resources (nodes, pods and 13 more)". */
static void add_group(struct doctor *d, const struct group *g, enum doctor_verdict verdict,
		      const char *advice, const char *says)
{
	const char *message = g->first.message, *colon = message[0] ? ": " : "";
	char more[32] = "";

	if (g->count > NAMES_SHOWN)
		snprintf(more, sizeof(more), " and %zu more", g->count - NAMES_SHOWN);
	if (g->count == 1)
		doctor_add(d, verdict, g->first.name, advice, "%s%s%s", says, colon, message);
	else
		doctor_add(d, verdict, "kubernetes", advice, "%zu resources (%s%s) %s%s%s",
			   g->count, g->names.data, more, says, colon, message);
}

/* What a failure is about only its message knows: it is quoted, and this says where to look. */
static const char *advise_on_listing(const struct group *g, const char *mode)
{
	if (strcmp(mode, "snapshot") == 0)
		return "The snapshot was taken before that was done: take another.";
	if (!g->first.message[0])
		return "Answers are incomplete until it is done. If it lasts, see the aggregator's "
		       "log.";
	if (strcmp(mode, "inCluster") == 0)
		return "It is tried again by itself. By what the message says, check the "
		       "aggregator's service account and whether it reaches the API server.";
	return "It is tried again by itself. By what the message says, check the kubeconfig, with "
	       "the programs and files it names, and the API server.";
}

/*
 * An API that says why it cannot be listed, and has not shown anything, will not be listed by
 * waiting.
 */
static void add_listing(struct doctor *d, const struct group *g, const char *mode)
{
	bool failing = g->first.message[0] && g->required_empty;
	bool late = g->required && g->state_seconds > LISTING_LATE_SECONDS;
	char age[UNITS_LEN], says[UNITS_LEN + 64];

	units_age(g->state_seconds, age);
	snprintf(says, sizeof(says), "being listed for %s, %.0f so far", age, g->objects);
	add_group(d, g, severe_if(failing || late), advise_on_listing(g, mode), says);
}

static void add_stale(struct doctor *d, const struct group *g, const char *mode)
{
	bool late = g->required && g->state_seconds > STALE_LATE_SECONDS;
	char age[UNITS_LEN], says[UNITS_LEN + 64];

	units_age(g->state_seconds, age);
	snprintf(says, sizeof(says), "changes have been missed for %s", age);
	add_group(d, g, severe_if(late),
		  strcmp(mode, "snapshot") == 0
			  ? "They were missed when the snapshot was taken: take another."
			  : "It is tried again by itself. Does the API server answer, and is the "
			    "token still good?",
		  says);
}

/* --- resource by resource --------------------------------------------------------------------- */

static void add_absent(struct doctor *d, const struct resource *r)
{
	if (strcmp(r->name, "elasticquotas") == 0)
		doctor_add(d, DOCTOR_OK, r->name, NULL, "the cluster has no such resource");
	else
		doctor_add(d, severe_if(r->required), r->name,
			   "Is it served by the API under another version?",
			   "the cluster has no such resource%s%s", r->message[0] ? ": " : "",
			   r->message);
}

/* Everything that is not as it should be. What is alike is told where the first of it stands. */
static void add_trouble(struct doctor *d, const cJSON *resources, const cJSON *item,
			const char *mode)
{
	struct resource r = read_resource(item);
	bool listing = is_state(&r, "listing");

	if (is_state(&r, "forbidden")) {
		add_forbidden(d, &r);
	} else if (is_state(&r, "absent")) {
		add_absent(d, &r);
	} else if ((listing || is_state(&r, "stale")) && !is_told_before(resources, item, &r)) {
		struct group g = group_from(item, &r);

		(listing ? add_listing : add_stale)(d, &g, mode);
		buf_fini(&g.names);
	}
}

static void add_skipped(struct doctor *d, const cJSON *item)
{
	double skipped = document_number(item, "skipped");

	if (skipped > 0)
		doctor_add(d, DOCTOR_WARN, read_resource(item).name,
			   "They are left out of every answer: correct the field, or report it.",
			   "%.0f could not be read; the last: %s", skipped,
			   document_text_or(item, "skippedLast", "?"));
}

/* One line for all that is well. */
static void add_summary(struct doctor *d, const cJSON *resources, const char *mode)
{
	double nodes = 0, pods = 0;
	size_t synced = 0, all = 0;

	for (const cJSON *item = document_first(resources, ""); item; item = item->next) {
		struct resource r = read_resource(item);

		all++;
		synced += is_state(&r, "synced") || is_state(&r, "snapshot");
		if (strcmp(r.name, "nodes") == 0)
			nodes = r.objects;
		if (strcmp(r.name, "pods") == 0)
			pods = r.objects;
	}
	doctor_add(d, synced ? DOCTOR_OK : DOCTOR_WARN, "kubernetes",
		   synced ? NULL
			  : "Nothing is known of the cluster's objects until one is: what keeps "
			    "them away is said below.",
		   "%s, %zu of %zu resources %s: %.0f nodes, %.0f pods", mode, synced, all,
		   strcmp(mode, "snapshot") == 0 ? "in it" : "in sync", nodes, pods);
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
	if (!document_first(resources, "")) {
		doctor_add(d, DOCTOR_FAIL, "kubernetes",
			   "Can the aggregator reach the API server? Its log says what fails.",
			   "%s, but nothing has been heard of the API yet", mode);
		return;
	}
	add_summary(d, resources, mode);
	for (const cJSON *item = document_first(resources, ""); item; item = item->next) {
		add_trouble(d, resources, item, mode);
		add_skipped(d, item);
	}
}
