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
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/mem.h"

enum { MEMBERS_MAX = 1000000, MOVES_MAX = 10000 }; /* of each list; of the plan */

/* An object of the plan and where it stands; the first failure stays. */
struct reader {
	const cJSON *at;
	char path[80]; /* "nodes[2].moves[0]." */
	struct error *error;
	bool bad;
};

static void fail(struct reader *r, const char *key, const char *what)
{
	if (!r->bad)
		error_set(r->error, "%s%s: %s", r->path, key, what);
	r->bad = true;
}

static const char *read_text(struct reader *r, const char *key, bool required)
{
	const char *text = verify_text(r->at, key, NULL);

	if ((required && (!text || !*text)) || (!text && verify_get(r->at, key)))
		fail(r, key, "must be a text that is not empty");
	return text ? text : "";
}

static double read_number(struct reader *r, const char *key, double least, double most)
{
	double value = verify_number(r->at, key, least - 1);
	char what[96];

	if (value >= least && value <= most)
		return value;
	snprintf(what, sizeof(what), "must be a number from %g to %g", least, most);
	fail(r, key, what);
	return least;
}

/* Room for all elements of a list of objects, or of texts, and its first; absent is empty. */
static void *read_list(struct reader *r, const char *key, size_t size, const cJSON **first)
{
	const cJSON *list = verify_get(r->at, key);
	int count = cJSON_GetArraySize(list);

	*first = NULL;
	if (list && (!cJSON_IsArray(list) || count > MEMBERS_MAX))
		fail(r, key, "must be a list of at most 1000000");
	else
		*first = verify_first(list);
	for (const cJSON *item = *first; item; item = item->next)
		if (!cJSON_IsObject(item))
			fail(r, key, "must be a list of objects");
	return r->bad ? NULL : mem_zalloc((size_t)count + 1, size);
}

/* The object in a list of this one. */
static struct reader enter(struct reader *r, const char *key, size_t at, const cJSON *item)
{
	struct reader below = {.at = item, .error = r->error, .bad = r->bad};

	snprintf(below.path, sizeof(below.path), "%.40s%.8s[%zu].", r->path, key, at);
	return below;
}

static void read_head(struct reader *r, struct verify_plan *p)
{
	struct reader limits = {verify_get(r->at, "limits"), "limits.", r->error, false};
	struct reader cap = {verify_get(r->at, "cap"), "cap.", r->error, false};

	if (!verify_equal(verify_text(r->at, "apiVersion", ""), "evenkeel.io/v1"))
		fail(r, "apiVersion", "must be \"evenkeel.io/v1\"");
	if (!verify_is_kind(r->at, "DrainWave"))
		fail(r, "kind", "must be \"DrainWave\"; evenkeel drain -o plan prints one");
	read_text(r, "planned", true);
	read_number(r, "viewVersion", 0, 0x1p53);
	limits.bad = r->bad;
	p->limited = limits.at != NULL;
	if (p->limited) {
		p->node_limit = read_number(&limits, "nodes", 0, MEMBERS_MAX);
		p->drain_limit = read_number(&limits, "drains", 0, MEMBERS_MAX);
		p->owner_share = read_number(&limits, "ownerShare", 0, 1);
	}
	p->capped = cap.at != NULL;
	cap.bad = limits.bad;
	if (p->capped) {
		p->cpu_share = read_number(&cap, "cpuShare", 0, 1);
		p->mem_share = read_number(&cap, "memoryShare", 0, 1);
		p->z = read_number(&cap, "z", 0, 10);
		p->contention = read_number(&cap, "contention", 0, 1);
	}
	r->bad = cap.bad;
}

static void read_moves(struct reader *node, struct verify_plan *p)
{
	struct verify_plan_node *n = &p->nodes[p->node_count - 1];
	const cJSON *item;
	void *room = read_list(node, "moves", 1, &item);

	free(room);
	if (p->move_count + (size_t)cJSON_GetArraySize(verify_get(node->at, "moves")) > MOVES_MAX)
		fail(node, "moves", "the plan must have at most 10000");
	for (size_t i = 0; item && !node->bad; item = item->next, i++) {
		struct reader r = enter(node, "moves", i, item);
		struct verify_move m = {.node = p->node_count - 1};

		if (cJSON_IsTrue(verify_get(item, "placeholder")))
			continue;
		m.namespace = read_text(&r, "namespace", true);
		m.name = read_text(&r, "name", true);
		m.uid = read_text(&r, "uid", true);
		m.from = read_text(&r, "from", false);
		m.from = *m.from ? m.from : n->name;
		m.to = read_text(&r, "to", false);
		m.to = *m.to ? m.to : NULL;
		if (verify_get(item, "step"))
			m.step = (int64_t)read_number(&r, "step", 0, MEMBERS_MAX);
		p->moves = mem_realloc(p->moves, (p->move_count + 1) * sizeof(m));
		p->moves[p->move_count++] = m;
		n->move_count++;
		node->bad = r.bad;
	}
}

/* most: of `after`. */
static struct verify_guest *read_guests(struct reader *r, const char *key, double most,
					size_t *count)
{
	const cJSON *item;
	struct verify_guest *of = read_list(r, key, sizeof(*of), &item);

	for (; !r->bad && item; item = item->next) {
		struct reader at = enter(r, key, *count, item);

		of[(*count)++] = (struct verify_guest){
			.uid = read_text(&at, "uid", true),
			.to = read_text(&at, "to", true),
			.after = (size_t)read_number(&at, "after", 0, most),
		};
		r->bad = at.bad;
	}
	return of;
}

static void read_groups(struct reader *r, struct verify_plan *p)
{
	const cJSON *item;

	p->groups = read_list(r, "groups", sizeof(*p->groups), &item);
	for (; !r->bad && item; item = item->next) {
		struct reader at = enter(r, "groups", p->group_count, item);

		p->groups[p->group_count++] = (struct verify_group){read_text(&at, "name", true),
								    verify_get(item, "nodes")};
		if (!cJSON_IsArray(verify_get(item, "nodes")))
			fail(&at, "nodes", "must be a list of names");
		r->bad = at.bad;
	}
}

static void read_nodes(struct reader *r, struct verify_plan *p)
{
	const cJSON *item;

	p->nodes = read_list(r, "nodes", sizeof(*p->nodes), &item);
	if (!verify_get(r->at, "nodes"))
		fail(r, "nodes", "is missing");
	for (; !r->bad && item; item = item->next) {
		struct reader at = enter(r, "nodes", p->node_count, item);
		struct verify_plan_node *n = &p->nodes[p->node_count++];

		n->name = read_text(&at, "name", true);
		n->uid = read_text(&at, "uid", true);
		read_moves(&at, p);
		n->guests =
			read_guests(&at, "guests", cJSON_GetArraySize(verify_get(item, "moves")),
				    &n->guest_count);
		r->bad = at.bad;
	}
}

int verify_plan_read(const char *text, size_t len, struct verify_plan *p, struct error *error)
{
	struct reader r = {.error = error};

	*p = (struct verify_plan){.document = cJSON_ParseWithLength(text, len)};
	r.at = p->document;
	if (!cJSON_IsObject(r.at)) {
		error_set(error, "the plan is not a JSON object");
		r.bad = true;
	} else {
		read_head(&r, p);
	}
	if (!r.bad)
		p->reserved = read_guests(&r, "reserved", MEMBERS_MAX, &p->reserved_count);
	if (!r.bad)
		read_groups(&r, p);
	if (!r.bad)
		read_nodes(&r, p);
	if (!r.bad)
		return 0;
	verify_plan_fini(p);
	return -EINVAL;
}

void verify_plan_fini(struct verify_plan *p)
{
	for (size_t i = 0; i < p->node_count; i++)
		free(p->nodes[i].guests);
	cJSON_Delete(p->document);
	free(p->nodes);
	free(p->moves);
	free(p->reserved);
	free(p->groups);
	*p = (struct verify_plan){0};
}

bool verify_plan_has(const struct verify_plan *p, enum verify_invariant i)
{
	if (i == VERIFY_LIMITS || i == VERIFY_OWNERS)
		return p->limited;
	return p->capped || (i != VERIFY_MEASURED && i != VERIFY_USE_CAP);
}
