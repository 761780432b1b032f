/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model_fixture.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/buf.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

static struct object *read_object(enum object_kind kind, const char *text)
{
	cJSON *json = cJSON_Parse(text);
	char field[OBJECT_FIELD_MAX] = "";
	struct error error = {""};
	struct object *o = NULL;

	if (!json || object_read(kind, json, &o, field, &error)) {
		fprintf(stderr, "the fixture's object is refused: %s: %s: %s\n", field, error.text,
			text);
		abort();
	}
	cJSON_Delete(json);
	return o;
}

struct object *model_fixture_object(enum object_kind kind, const char *json)
{
	return read_object(kind, json);
}

static struct object *read_written(enum object_kind kind, struct buf *b)
{
	struct object *o;

	o = read_object(kind, b->data);
	buf_fini(b);
	return o;
}

/* A member, where there is a value. */
static void member(struct jsonw *w, const char *key, const char *value)
{
	if (value)
		jsonw_key_string(w, key, value);
}

static void open_object(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_object_open(w);
}

static void write_owner(struct jsonw *w, const char *kind, const char *name, const char *uid)
{
	if (!kind)
		return;
	jsonw_key(w, "ownerReferences");
	jsonw_array_open(w);
	jsonw_object_open(w);
	jsonw_key_string(w, "kind", kind);
	jsonw_key_string(w, "name", name);
	jsonw_key_string(w, "uid", uid);
	jsonw_key_bool(w, "controller", true);
	jsonw_object_close(w);
	jsonw_array_close(w);
}

static void write_metadata(struct jsonw *w, const struct model_fixture_pod *p)
{
	const char *namespace = p->namespace ? p->namespace : "default";
	const char *name = p->name ? p->name : "pod";
	char *uid = mem_printf("uid-%s-%s", namespace, name);

	open_object(w, "metadata");
	jsonw_key_string(w, "namespace", namespace);
	jsonw_key_string(w, "name", name);
	jsonw_key_string(w, "uid", p->uid ? p->uid : uid);
	if (p->config_hash) {
		open_object(w, "annotations");
		jsonw_key_string(w, "kubernetes.io/config.hash", p->config_hash);
		jsonw_key_string(w, "kubernetes.io/config.mirror", p->config_hash);
		jsonw_object_close(w);
	}
	write_owner(w, p->owner_kind, p->owner_name ? p->owner_name : "owner",
		    p->owner_uid ? p->owner_uid : "uid-owner");
	jsonw_object_close(w);
	free(uid);
}

static void write_amounts(struct jsonw *w, const char *key, const char *cpu, const char *memory)
{
	if (!cpu && !memory)
		return;
	open_object(w, key);
	member(w, "cpu", cpu);
	member(w, "memory", memory);
	jsonw_object_close(w);
}

static void write_containers(struct jsonw *w, const struct model_fixture_pod *p)
{
	jsonw_key(w, "containers");
	jsonw_array_open(w);
	jsonw_object_open(w);
	jsonw_key_string(w, "name", "c");
	open_object(w, "resources");
	write_amounts(w, "requests", p->cpu, p->memory);
	write_amounts(w, "limits", p->cpu_limit, p->memory_limit);
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_array_close(w);
	if (!p->init_cpu_limit)
		return;
	jsonw_key(w, "initContainers");
	jsonw_array_open(w);
	jsonw_object_open(w);
	jsonw_key_string(w, "name", "i");
	open_object(w, "resources");
	write_amounts(w, "limits", p->init_cpu_limit, NULL);
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_array_close(w);
}

static void write_status(struct jsonw *w, const struct model_fixture_pod *p)
{
	char time[TIMEFMT_LEN];

	open_object(w, "status");
	jsonw_key_string(w, "phase", p->phase ? p->phase : "Running");
	if (p->scheduled_ns) {
		timefmt_rfc3339(p->scheduled_ns, time);
		jsonw_key(w, "conditions");
		jsonw_array_open(w);
		jsonw_object_open(w);
		jsonw_key_string(w, "type", "PodScheduled");
		jsonw_key_string(w, "status", "True");
		jsonw_key_string(w, "lastTransitionTime", time);
		jsonw_object_close(w);
		jsonw_array_close(w);
	}
	jsonw_object_close(w);
}

struct object *model_fixture_pod(const struct model_fixture_pod *p)
{
	struct buf text = {0};
	struct jsonw w;

	jsonw_init(&w, &text);
	jsonw_object_open(&w);
	write_metadata(&w, p);
	open_object(&w, "spec");
	member(&w, "nodeName", p->node);
	write_containers(&w, p);
	jsonw_object_close(&w);
	write_status(&w, p);
	jsonw_object_close(&w);
	return read_written(OBJECT_POD, &text);
}

struct object *model_fixture_node(const char *name, int cpus, int gibibytes)
{
	char *text = mem_printf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\"},\"status\":{"
				"\"capacity\":{\"cpu\":\"%d\",\"memory\":\"%dGi\"},"
				"\"allocatable\":{\"cpu\":\"%d\",\"memory\":\"%dGi\"},"
				"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
				name, name, cpus, gibibytes, cpus - 1, gibibytes - 1);
	struct object *o = read_object(OBJECT_NODE, text);

	free(text);
	return o;
}

struct object *model_fixture_workload(enum object_kind kind, const char *namespace,
				      const char *name, const char *owner_kind,
				      const char *owner_name)
{
	char *uid = mem_printf("uid-%s", name);
	struct buf text = {0};
	struct jsonw w;

	jsonw_init(&w, &text);
	jsonw_object_open(&w);
	open_object(&w, "metadata");
	jsonw_key_string(&w, "namespace", namespace);
	jsonw_key_string(&w, "name", name);
	jsonw_key_string(&w, "uid", uid);
	write_owner(&w, owner_kind, owner_name, "uid-above");
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	free(uid);
	return read_written(kind, &text);
}

void model_fixture_sync(struct model *m, enum object_kind kind)
{
	const struct model_source synced = {.state = SOURCE_SYNCED};

	model_set_source(m, kind, &synced);
}
