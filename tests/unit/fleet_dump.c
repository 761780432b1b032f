/* SPDX-License-Identifier: Apache-2.0 */
/* The dump of the made-up cluster, read back by the reader of real ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "shared/mem.h"
#include "tests/fleet/dump.h"
#include "tests/process.h"

static const struct cluster_config config = {
	.nodes = 64, .pods_per_node = 20, .containers = 3, .seed = 3};

struct scene {
	struct cluster *cluster;
	char *folder;
	char *text;
	cJSON *json;
};

static char *write_and_read(const struct cluster *c, const char *folder)
{
	char *path = mem_printf("%s/dump.json", folder), chunk[4096];
	struct buf text = BUF_INIT;
	struct error error;
	size_t got, len;
	FILE *file;

	if (dump_write(c, path, &error))
		fail_msg("%s", error.text);
	file = fopen(path, "re");
	assert_non_null(file);
	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_add(&text, chunk, got);
	fclose(file);
	free(path);
	return buf_take(&text, &len);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->cluster = cluster_new(&config);
	s->folder = folder_make();
	s->text = write_and_read(s->cluster, s->folder);
	s->json = cJSON_Parse(s->text);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	cJSON_Delete(s->json);
	free(s->text);
	folder_remove(s->folder);
	cluster_free(s->cluster);
	free(s);
	return 0;
}

static struct object *read_object(const cJSON *item)
{
	const char *version = cJSON_GetStringValue(cJSON_GetObjectItem(item, "apiVersion"));
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(item, "kind"));
	char field[OBJECT_FIELD_MAX];
	enum object_kind kind;
	struct object *object;
	struct error error;

	assert_int_equal(object_kind_find(version, name, &kind), 0);
	if (object_read(kind, item, &object, field, &error))
		fail_msg("%s: %s: %s", name, field, error.text);
	return object;
}

static void check_pod(const struct scene *s, const struct kube_pod *pod, size_t index)
{
	const struct cluster_pod *p = &s->cluster->pods[index];
	const struct workload *w = cluster_workload(s->cluster, p);
	char uid[POD_UID_LEN + 1], node[CLUSTER_NAME_MAX] = "";

	cluster_pod_uid(s->cluster, index, 0, uid);
	if (p->node >= 0)
		cluster_node_name((uint32_t)p->node, node);
	assert_string_equal(pod->object.uid, uid);
	assert_string_equal(pod->node, node);
	assert_int_equal(pod->phase, p->node >= 0 ? POD_RUNNING : POD_PENDING);
	assert_int_equal(pod->unschedulable_ns != 0, p->node < 0);
	assert_int_equal(kube_pod_requests(pod)->of[RESOURCE_CPU], w->cpu_milli);
	assert_int_equal(kube_pod_requests(pod)->of[RESOURCE_MEMORY], w->mem_bytes);
	assert_int_equal(kube_pod_limits(pod)->of[RESOURCE_CPU], w->cpu_limit_milli);
	assert_int_equal(kube_pod_limits(pod)->of[RESOURCE_MEMORY], w->mem_limit_bytes);
	assert_string_equal(pod->template->labels.of[0].value, w->name);
	assert_int_equal(*pod->template->owner.kind != '\0', w->kind != WORKLOAD_BARE);
}

static void check_node(const struct scene *s, const struct kube_node *node, size_t index)
{
	const struct cluster_node *n = &s->cluster->nodes[index];

	assert_true(node->ready);
	assert_int_equal(node->unschedulable, n->cordoned);
	assert_int_equal(node->capacity.of[RESOURCE_CPU], n->cpu_milli);
	assert_int_equal(node->allocatable.of[RESOURCE_MEMORY], n->allocatable_mem_bytes);
	assert_true(node->allocatable.of[RESOURCE_PODS] >= (int64_t)n->pods);
	assert_string_equal(labels_find(&node->labels, "kubernetes.io/hostname"),
			    node->object.name);
}

static void test_every_object_can_be_read(void **state)
{
	const struct scene *s = *state;
	size_t counts[OBJECT_KINDS] = {0};
	const cJSON *item;

	assert_non_null(s->json);
	cJSON_ArrayForEach (item, cJSON_GetObjectItem(s->json, "items")) {
		struct object *o = read_object(item);

		if (o->kind == OBJECT_POD)
			check_pod(s, (const struct kube_pod *)o, counts[o->kind]);
		if (o->kind == OBJECT_NODE)
			check_node(s, (const struct kube_node *)o, counts[o->kind]);
		counts[o->kind]++;
		object_drop(o);
	}
	assert_int_equal(counts[OBJECT_POD], s->cluster->pod_count);
	assert_int_equal(counts[OBJECT_NODE], config.nodes);
	assert_int_equal(counts[OBJECT_PERSISTENT_VOLUME], counts[OBJECT_PERSISTENT_VOLUME_CLAIM]);
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		bool left_out = kind == OBJECT_REPLICATION_CONTROLLER ||
				kind == OBJECT_RESOURCE_QUOTA || kind == OBJECT_POD_GROUP ||
				kind == OBJECT_COSCHEDULING_GROUP || kind == OBJECT_WORKLOAD ||
				(kind >= OBJECT_CSI_NODE && kind <= OBJECT_RESOURCE_CLAIM);

		if (!left_out && !counts[kind])
			fail_msg("no %s", object_kind_name((enum object_kind)kind));
	}
}

static void test_the_same_cluster_makes_the_same_bytes(void **state)
{
	const struct scene *s = *state;
	struct cluster *again = cluster_new(&config);
	char *text = write_and_read(again, s->folder);

	assert_string_equal(text, s->text);
	free(text);
	cluster_free(again);
}

static void test_a_file_that_cannot_be_written_is_named(void **state)
{
	const struct scene *s = *state;
	struct error error = {""};

	assert_int_not_equal(dump_write(s->cluster, "/nowhere/at/all.json", &error), 0);
	assert_non_null(strstr(error.text, "/nowhere/at/all.json"));
	assert_int_not_equal(dump_write(s->cluster, "/dev/full", &error), 0);
	assert_non_null(strstr(error.text, "/dev/full"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_object_can_be_read),
		cmocka_unit_test(test_the_same_cluster_makes_the_same_bytes),
		cmocka_unit_test(test_a_file_that_cannot_be_written_is_named),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
