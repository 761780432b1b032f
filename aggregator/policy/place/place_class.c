/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A class is all pods of one template in one namespace; its text is parsed once. An unreadable or
 * unsupported field becomes a note that names it: such a pod fits nowhere, but uses its room.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

void place_note(char **note, const char *format, ...)
{
	struct error error;

	if (*note)
		return;
	MEM_FORMAT(error.text, sizeof(error.text), format);
	*note = mem_strdup(error.text);
}

bool place_only_members(const cJSON *object, const char *const *names, char **note,
			const char *where)
{
	if (!cJSON_IsObject(object)) {
		place_note(note, "%s: must be an object", where);
		return false;
	}
	for (const cJSON *m = object->child; m; m = m->next) {
		if (!array_has_text(names, m->string) && !cJSON_IsNull(m)) {
			place_note(note, "%s.%.60s: is not known", where, m->string);
			return false;
		}
	}
	return true;
}

/* Counts texts and numbers, up to the limit. */
static void count_values(const cJSON *json, uint32_t *count)
{
	if (cJSON_IsString(json) || cJSON_IsNumber(json))
		++*count;
	for (const cJSON *m = json->child; m && *count <= PLACE_VALUES_MAX; m = m->next)
		count_values(m, count);
}

bool place_is_judged(const cJSON *json, uint32_t max, const char *what, char **note,
		     const char *where)
{
	uint32_t count = 0, values = 0;

	for (const cJSON *m = json->child; m && count <= max; m = m->next)
		count++;
	if (count > max) {
		place_note(note, "%s: more than %u %s are not judged", where, max, what);
		return false;
	}
	count_values(json, &values);
	if (values > PLACE_VALUES_MAX) {
		place_note(note, "%s: more than %u values are not judged", where, PLACE_VALUES_MAX);
		return false;
	}
	return true;
}

/* --- amounts */

static uint32_t find_dim(const struct place *p, const char *name)
{
	for (uint32_t d = RESOURCE_STANDARD; d < p->dims; d++)
		if (strcmp(p->dim_names[d - RESOURCE_STANDARD], name) == 0)
			return d;
	return PLACE_NONE;
}

uint32_t place_dim(struct place *p, const char *name)
{
	uint32_t d = find_dim(p, name);

	if (d != PLACE_NONE)
		return d;
	p->dim_names = mem_realloc(p->dim_names,
				   (p->dims + 1 - RESOURCE_STANDARD) * sizeof(*p->dim_names));
	p->dim_names[p->dims - RESOURCE_STANDARD] = mem_strdup(name);
	return p->dims++;
}

const char *place_dim_name(const struct place *p, uint32_t dim)
{
	return dim < RESOURCE_STANDARD ? resource_name((enum resource_id)dim)
				       : p->dim_names[dim - RESOURCE_STANDARD];
}

void place_shape_read(struct place *p, const struct resources *r, struct place_shape *out)
{
	bool refused = false;

	*out = (struct place_shape){.cpu = r->of[RESOURCE_CPU], .mem = r->of[RESOURCE_MEMORY]};
	out->of = mem_zalloc(RESOURCE_STANDARD + r->extended_count, sizeof(*out->of));
	for (uint32_t i = 0; i < RESOURCE_STANDARD; i++)
		if (r->of[i] && i != RESOURCE_PODS)
			out->of[out->count++] = (struct place_amount){i, r->of[i]};
	for (uint32_t i = 0; i < r->extended_count; i++) {
		const struct resource_extended *e = &r->extended[i];
		bool unheard = p->hypothetical && e->amount && find_dim(p, e->name) == PLACE_NONE;

		if (e->amount && !(unheard && refused))
			out->of[out->count++] =
				(struct place_amount){place_dim(p, e->name), e->amount};
		refused |= unheard;
	}
}

/* --- host ports */

/* The default if absent; NULL: no string. */
static const char *text_or(const cJSON *json, const char *key, const char *absent)
{
	const cJSON *item = object_json_find(json, key);

	return item ? cJSON_GetStringValue(item) : absent;
}

static void read_port(struct place_class *c, const cJSON *json, const char *where)
{
	static const char *const protocols[] = {"TCP", "UDP", "SCTP", NULL};
	const cJSON *number = object_json_find(json, "hostPort");
	const char *ip = text_or(json, "hostIP", "");
	const char *protocol = text_or(json, "protocol", "TCP");
	struct place_port port = {.port = 0};

	if (!cJSON_IsNumber(number) || number->valuedouble < 1 || number->valuedouble > 65535 ||
	    number->valuedouble != (double)(int32_t)number->valuedouble) {
		place_note(&c->unknown, "%s: hostPort must be from 1 to 65535", where);
		return;
	}
	if (protocol && !*protocol)
		protocol = "TCP";
	if (!ip || !protocol || !array_has_text(protocols, protocol)) {
		place_note(&c->unknown, "%s: %s", where,
			   ip ? "protocol must be TCP, UDP or SCTP" : "hostIP must be a string");
		return;
	}
	if (c->ports.count == PLACE_VALUES_MAX) {
		place_note(&c->unknown,
			   "spec.containers.ports: more than %u host ports are not judged",
			   PLACE_VALUES_MAX);
		return;
	}
	port.port = (int32_t)number->valuedouble;
	port.ip = mem_strdup(strcmp(ip, "0.0.0.0") == 0 ? "" : ip);
	snprintf(port.protocol, sizeof(port.protocol), "%s", protocol);
	PLACE_LIST_ADD(&c->ports, port);
}

/* Of init containers only sidecars hold their ports. */
static void read_ports(struct place_class *c, const cJSON *spec, const char *key, bool init)
{
	size_t at = 0;

	for (const cJSON *one = object_json_first(object_json_find(spec, key)); one;
	     one = one->next, at++) {
		const char *restart = cJSON_GetStringValue(object_json_find(one, "restartPolicy"));
		char where[48];

		if (init && (!restart || strcmp(restart, "Always") != 0))
			continue;
		snprintf(where, sizeof(where), "spec.%s[%zu].ports", key, at);
		for (const cJSON *port = object_json_first(object_json_find(one, "ports")); port;
		     port = port->next)
			read_port(c, port, where);
	}
}

/* --- the class */

static void read_class(struct place *p, struct place_class *c, const cJSON *spec)
{
	const cJSON *gates = object_json_find(spec, "schedulingGates");

	c->rules = place_rules_intern(p, spec);
	if (c->rules->unknown)
		place_note(&c->unknown, "%s", c->rules->unknown);
	place_class_read_pods(p, c, spec);
	read_ports(c, spec, "containers", false);
	read_ports(c, spec, "initContainers", true);
	place_class_read_volumes(p, c, spec);
	place_class_read_device_claims(p, c, spec);
	if (gates && (!cJSON_IsArray(gates) || gates->child))
		place_note(&c->unknown, "spec.schedulingGates: cannot be judged");
}

static struct place_class *new_class(struct place *p, const struct kube_pod *pod)
{
	struct place_class *c = mem_zalloc(1, sizeof(*c));
	cJSON *spec = cJSON_Parse(pod->template->text + pod->template->spec_at);

	c->template = pod_template_hold(pod->template);
	c->id = p->classes.count;
	c->in = place_namespace_intern(p, pod->object.namespace);
	c->namespace = c->in->name;
	place_shape_read(p, &c->template->sums.requests, &c->shape);
	if (!spec)
		place_note(&c->unknown, "spec: cannot be read");
	read_class(p, c, spec);
	cJSON_Delete(spec);
	PLACE_LIST_ADD(&p->classes, c);
	PLACE_LIST_ADD(&c->in->classes, c);
	return c;
}

struct place_class *place_class_of(struct place *p, const struct kube_pod *pod)
{
	struct place_class *head, *c;

	HASH_FIND_PTR(p->by_template, &pod->template, head);
	for (c = head; c; c = c->next)
		if (strcmp(c->namespace, pod->object.namespace) == 0)
			return c;
	c = new_class(p, pod);
	if (head) {
		c->next = head->next;
		head->next = c;
	} else {
		HASH_ADD_PTR(p->by_template, template, c);
	}
	return c;
}

/* The first class of a template is in the hash; the others follow it, newest first. */
void place_class_forget(struct place *p)
{
	struct place_class *c = p->classes.of[--p->classes.count], *head;

	assert(!c->first);
	HASH_FIND_PTR(p->by_template, &c->template, head);
	assert(head);
	if (head == c)
		HASH_DEL(p->by_template, c);
	else
		head->next = c->next;
	c->in->classes.count--;
	for (uint32_t i = 0; i < c->device_claims.count; i++)
		c->device_claims.of[i]->classes--;
	if (p->linked_classes > p->classes.count)
		p->linked_classes = p->classes.count;
	place_class_free(c);
}

void place_class_join(struct place_slot *s, struct place_class *c)
{
	if (s->class == c)
		return;
	if (s->class)
		DL_DELETE2(s->class->first, s, previous_of_class, next_of_class);
	s->class = c;
	if (c)
		DL_PREPEND2(c->first, s, previous_of_class, next_of_class);
}

void place_class_free(struct place_class *c)
{
	for (uint32_t i = 0; i < c->ports.count; i++)
		free(c->ports.of[i].ip);
	free(c->ports.of);
	free(c->claims.of);
	free(c->device_claims.of);
	free(c->affinity.of);
	free(c->anti.of);
	free(c->carried.of);
	free(c->feared.of);
	free(c->spread.of);
	free(c->counted.of);
	free(c->shape.of);
	free(c->unknown);
	pod_template_drop(c->template);
	free(c);
}
