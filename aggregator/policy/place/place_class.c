/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A class is what all pods of one template in one namespace have in common; the text of the
 * template is read once for it. What cannot be read, or is of tomorrow, becomes a note that names
 * the field: such a pod fits nowhere, and loses nothing else.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

void *place_grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : 4;
	return mem_realloc(array, *room * size);
}

void place_note(char **note, const char *format, ...)
{
	struct reason why;
	va_list args;

	if (*note)
		return;
	va_start(args, format);
	vsnprintf(why.text, sizeof(why.text), format, args);
	va_end(args);
	*note = mem_strdup(why.text);
}

bool place_only_members(const cJSON *object, const char *const *names, char **note,
			const char *where)
{
	if (!cJSON_IsObject(object)) {
		place_note(note, "%s: must be an object", where);
		return false;
	}
	for (const cJSON *m = object->child; m; m = m->next) {
		const char *const *k = names;

		while (*k && strcmp(*k, m->string) != 0)
			k++;
		if (!*k && !cJSON_IsNull(m)) {
			place_note(note, "%s.%.60s: is not known", where, m->string);
			return false;
		}
	}
	return true;
}

/* --- amounts */

uint32_t place_dim(struct place *p, const char *name)
{
	uint32_t d;

	for (d = RESOURCE_STANDARD; d < p->dims; d++)
		if (strcmp(p->dim_names[d - RESOURCE_STANDARD], name) == 0)
			return d;
	p->dim_names = mem_realloc(p->dim_names,
				   (p->dims + 1 - RESOURCE_STANDARD) * sizeof(*p->dim_names));
	p->dim_names[p->dims - RESOURCE_STANDARD] = mem_strdup(name);
	p->dims++;
	return d;
}

void place_shape_read(struct place *p, const struct resources *r, struct place_shape *out)
{
	*out = (struct place_shape){.cpu = r->of[RESOURCE_CPU], .mem = r->of[RESOURCE_MEMORY]};
	out->of = mem_zalloc(RESOURCE_STANDARD + r->extended_count, sizeof(*out->of));
	for (uint32_t i = 0; i < RESOURCE_STANDARD; i++)
		if (r->of[i] && i != RESOURCE_PODS)
			out->of[out->count++] = (struct place_amount){i, r->of[i]};
	for (uint32_t i = 0; i < r->extended_count; i++)
		if (r->extended[i].amount)
			out->of[out->count++] =
				(struct place_amount){place_dim(p, r->extended[i].name),
						      r->extended[i].amount};
}

/* --- host ports */

/* Absent: what stands for it. NULL: it is no string. */
static const char *text_or(const cJSON *json, const char *key, const char *absent)
{
	const cJSON *item = object_json_find(json, key);

	return item ? cJSON_GetStringValue(item) : absent;
}

static bool is_protocol(const char *text)
{
	return text &&
	       (strcmp(text, "TCP") == 0 || strcmp(text, "UDP") == 0 || strcmp(text, "SCTP") == 0);
}

static void read_port(struct place_class *c, const cJSON *json, const char *where)
{
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
	if (!ip || !is_protocol(protocol)) {
		place_note(&c->unknown, "%s: %s", where,
			   ip ? "protocol must be TCP, UDP or SCTP" : "hostIP must be a string");
		return;
	}
	port.port = (int32_t)number->valuedouble;
	port.ip = mem_strdup(strcmp(ip, "0.0.0.0") == 0 ? "" : ip);
	snprintf(port.protocol, sizeof(port.protocol), "%s", protocol);
	PLACE_LIST_ADD(&c->ports, port);
}

/*
 * Ports of init containers are held only while those run, but for sidecars. Only host ports are
 * kept of a template, so that the place of one among all of its container's is not known.
 */
static void read_ports(struct place_class *c, const cJSON *spec, const char *key, bool init)
{
	size_t at = 0;

	for (const cJSON *one = place_first(object_json_find(spec, key)); one;
	     one = one->next, at++) {
		const char *restart = cJSON_GetStringValue(object_json_find(one, "restartPolicy"));
		char where[48];

		if (init && (!restart || strcmp(restart, "Always") != 0))
			continue;
		snprintf(where, sizeof(where), "spec.%s[%zu].ports", key, at);
		for (const cJSON *port = place_first(object_json_find(one, "ports")); port;
		     port = port->next)
			read_port(c, port, where);
	}
}

/* --- the class */

static void read_refused(struct place_class *c, const cJSON *spec)
{
	static const char *const fields[] = {"resourceClaims", "schedulingGates"};

	for (size_t i = 0; i < 2; i++) {
		const cJSON *list = object_json_find(spec, fields[i]);

		if (list && (!cJSON_IsArray(list) || list->child))
			place_note(&c->unknown, "spec.%s: cannot be judged", fields[i]);
	}
}

static void read_class(struct place *p, struct place_class *c, const cJSON *spec)
{
	c->rules = place_rules_intern(p, spec);
	if (c->rules->unknown)
		place_note(&c->unknown, "%s", c->rules->unknown);
	place_class_read_pods(p, c, spec);
	read_ports(c, spec, "containers", false);
	read_ports(c, spec, "initContainers", true);
	place_class_read_volumes(p, c, spec);
	read_refused(c, spec);
}

static struct place_class *new_class(struct place *p, const struct kube_pod *pod)
{
	struct place_class *c = mem_zalloc(1, sizeof(*c));
	cJSON *spec = cJSON_Parse(pod->template->text + pod->template->spec_at);

	c->template = pod_template_hold(pod->template);
	c->id = p->classes.count;
	c->namespace = mem_strdup(pod->object.namespace);
	place_shape_read(p, &c->template->requests, &c->shape);
	if (!spec)
		place_note(&c->unknown, "spec: cannot be read");
	read_class(p, c, spec);
	cJSON_Delete(spec);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): it is a list of pointers */
	PLACE_LIST_ADD(&p->classes, c);
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

void place_class_free(struct place_class *c)
{
	for (uint32_t i = 0; i < c->ports.count; i++)
		free(c->ports.of[i].ip);
	free(c->ports.of);
	free(c->claims.of);
	free(c->affinity.of);
	free(c->anti.of);
	free(c->feared.of);
	free(c->spread.of);
	free(c->counted.of);
	free(c->shape.of);
	free(c->unknown);
	free(c->namespace);
	pod_template_drop(c->template);
	free(c);
}
