/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balloons: placeholders that are real pods, as slack_yaml_write() writes them. They hold room, so
 * each must stand for a placeholder:
 *
 *   demand   a balloon is none: it counts neither as requested nor as an arrival
 *   held     a balloon on a node that counts, at least as large as a placeholder of its class,
 *            replaces one. Balloons of units replace as many units as their sum comes to, whatever
 *            the size of a unit when they were applied. A balloon that is pending or in deletion
 *            holds nothing
 *   slots    a balloon is no obstacle, since the scheduler preempts it
 *
 * A balloon has its label and a priority below 0: a pod that no other can preempt is no slack. Its
 * namespace and the label's value, the name of the class's objects, identify the class.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/mem.h"

enum { NAME_KEPT = 54 };

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261U;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619U;
	return hash;
}

/* A hash of the key tells classes apart if characters are lost or cut. */
void slack_balloon_name(const char *key, char name[SLACK_NAME_LEN])
{
	const char *slash = strchr(key, '/'), *from = slash ? slash + 1 : key;
	size_t len = (size_t)snprintf(name, SLACK_NAME_LEN, "%s-", SLACK_REPLICA_SET);
	bool exact = true;

	for (; *from && len < NAME_KEPT; from++) {
		char letter = (char)tolower((unsigned char)*from);

		exact &= isalnum((unsigned char)letter) || letter == '-' || letter == '/';
		name[len++] = isalnum((unsigned char)letter) ? letter : '-';
	}
	while (name[len - 1] == '-')
		len--;
	name[len] = '\0';
	if (!exact || *from)
		snprintf(name + len, SLACK_NAME_LEN - len, "-%08x", hash_of(key));
}

bool slack_is_balloon(const struct kube_pod *pod)
{
	return pod->template->priority < 0 &&
	       labels_find(&pod->template->labels, SLACK_CLASS_LABEL);
}

/* --- counting */

struct named {
	UT_hash_handle hh;
	char *name; /* owned: "shop/evenkeel-slack-deployment-web" */
	uint32_t class;
};

static struct named *name_classes(const struct slack_run *r)
{
	struct named *all = NULL;

	for (uint32_t c = 0; c < r->class_count; c++) {
		const struct slack_pattern *p = &r->classes[c]->pattern;
		struct named *n = mem_zalloc(1, sizeof(*n));
		char name[SLACK_NAME_LEN];

		slack_balloon_name(r->classes[c]->key, name);
		n->name = mem_printf("%s/%s", p->record->object.namespace, name);
		n->class = c;
		HASH_ADD_KEYPTR(hh, all, n->name, strlen(n->name), n);
	}
	return all;
}

static void free_names(struct named *all)
{
	struct named *n, *next;

	HASH_RELEASE (all, n, next) {
		free(n->name);
		free(n);
	}
}

static void count_balloon(struct slack_run *r, struct named *classes, const struct kube_pod *pod,
			  struct slack_amount *of_units)
{
	const struct slack_amount holds = slack_amount_of(kube_pod_requests(pod));
	char *name = mem_printf("%s/%s", pod->object.namespace,
				labels_find(&pod->template->labels, SLACK_CLASS_LABEL));
	struct slack_entry *e;
	struct named *n;
	int64_t count;

	HASH_FIND(hh, classes, name, strlen(name), n);
	free(name);
	if (!n)
		return;
	e = r->classes[n->class];
	if (e->kind == SLACK_UNIT) {
		slack_amount_add(of_units, &holds, 1);
		count = slack_slots(of_units, 1, &e->pattern.shape);
		e->balloons = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	} else if (slack_amount_fits(&e->pattern.shape, &holds)) {
		e->balloons++;
	}
}

void slack_count_balloons(struct slack_run *r)
{
	struct named *classes = name_classes(r);
	struct slack_amount of_units = {0, 0};

	for (size_t i = 0; i < r->survey.balloon_count; i++) {
		const struct slack_balloon *b = &r->survey.balloons[i];

		if (r->survey.counts[b->node] && !b->pod->deletion_ns)
			count_balloon(r, classes, b->pod, &of_units);
	}
	free_names(classes);
	r->result->basis->of_balloons = of_units;
}

uint32_t slack_missing(const struct slack_run *r, uint32_t class)
{
	const struct slack_entry *e = r->classes[class];
	uint32_t held = e->placed + e->balloons;

	return held < e->wanted ? e->wanted - held : 0;
}

uint32_t slack_surplus(const struct slack_run *r, uint32_t class)
{
	const struct slack_entry *e = r->classes[class];
	uint32_t held = e->placed + e->balloons;
	uint32_t surplus = held > e->wanted ? held - e->wanted : 0;

	return surplus < e->placed ? surplus : e->placed;
}

void slack_take_balloons(struct slack_run *r)
{
	for (size_t i = 0; i < r->survey.balloon_count; i++) {
		const struct object *o = &r->survey.balloons[i].pod->object;
		place_pod pod = place_find_pod(r->place, o->namespace, o->name);

		if (pod != PLACE_NONE && place_where(r->place, pod) != PLACE_NONE)
			place_take(r->place, pod);
	}
}
