/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan as a file:
 *
 *   {"apiVersion":"evenkeel.io/v1","kind":"DrainWave","planned":T,"viewVersion":I,
 *    ["cap":{"cpuShare","memoryShare","z","contention"},]
 *    ["limits":{"nodes","drains","ownerShare"},]["groups":[{"name","nodes":[S,..]},..],]
 *    "reserved":[GUEST,..],
 *    "nodes":[{"name","uid","moves":[{"namespace","name","uid"[,"from"][,"to"][,"step"]},..],
 *              "guests":[GUEST,..]},..]}
 *   GUEST {"uid","to","after"}
 *
 * Other members are ignored. Without "cap" real use is not judged, without "limits" the limits are
 * not. Moves with "placeholder":true are room without a pod, and left out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/array.h"

enum { MEMBERS_MAX = 1000000, MOVES_MAX = 10000 }; /* of each list; of the plan */

/* An object of the plan and where it stands; the first failure stays. */
struct reader {
	const cJSON *at;
	char path[80]; /* "nodes[2].moves[0]." */
	struct verify_plan *plan;
	struct error *error; /* "": all is well so far */
	double most_after; /* of a guest */
};

static void fail(const struct reader *r, const char *key, const char *what)
{
	if (!*r->error->text)
		error_set(r->error, "%s%s: %s", r->path, key, what);
}

static double read_number(const struct reader *r, const char *key, double most)
{
	double value = verify_number(r->at, key, -1);
	char what[96];

	snprintf(what, sizeof(what), "must be a number from 0 to %g", most);
	if (!(value >= 0 && value <= most))
		fail(r, key, what);
	return *r->error->text ? 0 : value;
}

/* NULL: a text that is not required is absent or empty. */
static const char *read_text(const struct reader *r, const char *key, bool required)
{
	const char *text = document_text(r->at, key);

	if ((required && (!text || !*text)) || (!text && object_json_find(r->at, key)))
		fail(r, key, "must be a text that is not empty");
	return text && *text ? text : NULL;
}

/* Reads each element of a list of objects, which may be absent. */
static void read_list(const struct reader *r, const char *key, void (*read)(const struct reader *r))
{
	const cJSON *list = object_json_find(r->at, key);
	size_t i = 0;

	if (list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MEMBERS_MAX))
		fail(r, key, "must be a list of at most 1000000");
	VERIFY_EACH (item, list, "") {
		struct reader at = *r;

		if (!cJSON_IsObject(item))
			fail(r, key, "must be a list of objects");
		if (*r->error->text)
			return;
		at.at = item;
		snprintf(at.path, sizeof(at.path), "%.40s%.8s[%zu].", r->path, key, i++);
		read(&at);
	}
}

/* A move of the newest node. */
static void read_move(const struct reader *r)
{
	struct verify_plan *p = r->plan;
	struct verify_move *m;

	if (document_is_true(r->at, "placeholder"))
		return;
	m = &ARRAY_ADD(p->moves, p->move_count);
	*m = (struct verify_move){.node = p->node_count - 1};
	m->namespace = read_text(r, "namespace", true);
	m->name = read_text(r, "name", true);
	m->uid = read_text(r, "uid", true);
	m->from = read_text(r, "from", false);
	m->from = m->from ? m->from : p->nodes[m->node].name;
	m->to = read_text(r, "to", false);
	if (object_json_find(r->at, "step"))
		m->step = (int64_t)read_number(r, "step", MEMBERS_MAX);
}

static void check_guest(const struct reader *r)
{
	read_text(r, "uid", true);
	read_text(r, "to", true);
	read_number(r, "after", r->most_after);
}

static void check_group(const struct reader *r)
{
	read_text(r, "name", true);
	if (!cJSON_IsArray(object_json_find(r->at, "nodes")))
		fail(r, "nodes", "must be a list of names");
}

static void read_node(const struct reader *r)
{
	struct verify_plan *p = r->plan;
	struct verify_plan_node *n;
	struct reader guests = *r;
	size_t before = p->move_count;

	n = &ARRAY_ADD(p->nodes, p->node_count);
	n->name = read_text(r, "name", true);
	n->uid = read_text(r, "uid", true);
	n->guests = object_json_find(r->at, "guests");
	read_list(r, "moves", read_move);
	n->move_count = p->move_count - before;
	if (p->move_count > MOVES_MAX)
		fail(r, "moves", "the plan must have at most 10000");
	guests.most_after = cJSON_GetArraySize(object_json_find(r->at, "moves"));
	read_list(&guests, "guests", check_guest);
}

static void read_plan(const struct reader *r, struct verify_plan *p)
{
	const struct reader limits = {object_json_find(r->at, "limits"), "limits.", p, r->error, 0};
	const struct reader cap = {object_json_find(r->at, "cap"), "cap.", p, r->error, 0};

	if (!document_is(r->at, "apiVersion", "evenkeel.io/v1"))
		fail(r, "apiVersion", "must be \"evenkeel.io/v1\"");
	if (!document_is(r->at, "kind", "DrainWave"))
		fail(r, "kind", "must be \"DrainWave\"; evenkeel drain -o plan prints one");
	read_text(r, "planned", true);
	read_number(r, "viewVersion", 0x1p53);
	p->limited = limits.at;
	if (p->limited) {
		p->node_limit = read_number(&limits, "nodes", MEMBERS_MAX);
		p->drain_limit = read_number(&limits, "drains", MEMBERS_MAX);
		p->owner_share = read_number(&limits, "ownerShare", 1);
	}
	p->capped = cap.at;
	if (p->capped) {
		p->cpu_share = read_number(&cap, "cpuShare", 1);
		p->mem_share = read_number(&cap, "memoryShare", 1);
		p->z = read_number(&cap, "z", 10);
		p->contention = read_number(&cap, "contention", 1);
	}
	p->reserved = object_json_find(r->at, "reserved");
	p->groups = object_json_find(r->at, "groups");
	read_list(r, "reserved", check_guest);
	read_list(r, "groups", check_group);
	read_list(r, "nodes", read_node);
	if (!object_json_find(r->at, "nodes"))
		fail(r, "nodes", "is missing");
}

int verify_plan_read(const char *text, size_t len, struct verify_plan *p, struct error *error)
{
	struct error first = {""};
	const struct reader r = {cJSON_ParseWithLength(text, len), "", p, &first, MEMBERS_MAX};

	*p = (struct verify_plan){.document = (cJSON *)r.at};
	if (cJSON_IsObject(r.at))
		read_plan(&r, p);
	else
		error_set(&first, "the plan is not a JSON object");
	if (!*first.text)
		return 0;
	error_set(error, "%s", first.text);
	verify_plan_fini(p);
	return -EINVAL;
}

void verify_plan_fini(struct verify_plan *p)
{
	cJSON_Delete(p->document);
	free(p->nodes);
	free(p->moves);
	*p = (struct verify_plan){0};
}

bool verify_plan_has(const struct verify_plan *p, enum verify_invariant i)
{
	if (i == VERIFY_LIMITS || i == VERIFY_OWNERS)
		return p->limited;
	return p->capped || (i != VERIFY_MEASURED && i != VERIFY_USE_CAP);
}
