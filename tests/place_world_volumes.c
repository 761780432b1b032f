/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of every kind that there is: bound, about to be bound, lost, waiting for a pod with and
 * without a provisioner, and reserved volumes. Half of the claims have a storage class of their
 * own, the others share two, so that they compete for volumes.
 */
#include "tests/place_world_volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/place_world_spec.h"

/* --- objects */

static void add_class(struct place_world *w, const char *name, const char *provisioner)
{
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"%s\"},"
		   "\"provisioner\":\"%s\",\"volumeBindingMode\":\"%s\"",
		   name, provisioner,
		   PICK(w, "WaitForFirstConsumer", "WaitForFirstConsumer", "WaitForFirstConsumer",
			"WaitForFirstConsumer", "Immediate"));
	if (place_world_chance(w, 5))
		buf_printf(&b, ",\"allowedTopologies\":[{}]");
	else if (place_world_chance(w, 40))
		buf_printf(&b,
			   ",\"allowedTopologies\":[{\"matchLabelExpressions\":[{\"key\":"
			   "\"topology.kubernetes.io/zone\",\"values\":[\"%s\",\"%s\"]}]}]",
			   PICK(w, "a", "b"), PICK(w, "b", "c"));
	buf_add_char(&b, '}');
	place_world_add_other(w, place_world_parse_buf(&b));
}

static const char *pick_provisioner(struct place_world *w)
{
	return PICK(w, "csi.example.com", "kubernetes.io/no-provisioner");
}

static void write_reach(struct place_world *w, struct buf *b)
{
	if (place_world_chance(w, 4))
		buf_printf(b,
			   ",\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{"
			   "\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"%s\","
			   "\"values\":[\"n1\"]}]}]}}",
			   PICK(w, "In", "NotIn"));
	else if (place_world_chance(w, 60))
		buf_printf(b,
			   ",\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{"
			   "\"matchExpressions\":[{\"key\":\"%s\",\"operator\":\"%s\",\"values\":"
			   "[\"%s\",\"%s\"]}]}]}}",
			   PICK(w, "topology.kubernetes.io/zone", "kubernetes.io/hostname"),
			   PICK(w, "In", "In", "NotIn"), PICK(w, "a", "b", "n1"),
			   PICK(w, "c", "n2", "n3"));
}

/* claim: the one it is bound to or reserved for, or NULL. */
static void add_volume(struct place_world *w, const char *name, const char *class,
		       const char *namespace, const char *claim, const char *phase)
{
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
		   "\"tier\":\"%s\"",
		   name, PICK(w, "x", "y"));
	/* The kube-scheduler asks for the zones of bound volumes only. */
	if (strcmp(phase, "Bound") == 0 && place_world_chance(w, 30))
		buf_printf(&b, ",\"%s\":\"%s\"",
			   PICK(w, "topology.kubernetes.io/zone",
				"failure-domain.beta.kubernetes.io/zone"),
			   PICK(w, "a", "b", "a__b"));
	buf_printf(&b,
		   "}},\"spec\":{\"capacity\":{\"storage\":\"%s\"},\"accessModes\":[%s],"
		   "\"storageClassName\":\"%s\"",
		   PICK(w, "1Gi", "5Gi", "10Gi"),
		   PICK(w, "\"ReadWriteOnce\"", "\"ReadWriteMany\",\"ReadWriteOnce\"",
			"\"ReadWriteOnce\",\"ReadWriteOncePod\""),
		   class);
	if (place_world_chance(w, 5))
		buf_printf(&b, ",\"volumeMode\":\"%s\"", PICK(w, "Block", "Filesystem"));
	if (claim)
		buf_printf(&b, ",\"claimRef\":{\"name\":\"%s\",\"namespace\":\"%s\"%s}", claim,
			   namespace, place_world_chance(w, 5) ? ",\"uid\":\"another\"" : "");
	write_reach(w, &b);
	buf_printf(&b, "},\"status\":{\"phase\":\"%s\"}}", phase);
	place_world_add_other(w, place_world_parse_buf(&b));
}

void place_world_add_stock(struct place_world *w)
{
	add_class(w, "local", "kubernetes.io/no-provisioner");
	add_class(w, "shared", pick_provisioner(w));
	for (size_t i = place_world_draw(w, 7); i > 0; i--) {
		char *name = mem_printf("stock-%zu", i);

		add_volume(w, name, PICK(w, "local", "local", "shared"), NULL, NULL,
			   PICK(w, "Available", "Available", "Available", "Released"));
		free(name);
	}
}

/* --- claims */

/* Volumes for one claim; those that are free are so for all of its class. */
static void add_volumes(struct place_world *w, const char *namespace, const char *claim,
			const char *class, bool bound)
{
	char *name = mem_printf("pv-%s", claim);

	if (bound && place_world_chance(w, 92))
		add_volume(w, name, class, namespace, claim, "Bound");
	free(name);
	for (size_t i = bound ? 0 : place_world_draw(w, 3); i > 0; i--) {
		bool reserved = place_world_chance(w, 15);

		name = mem_printf("free-%zu-%s", i, claim);
		add_volume(w, name, class, namespace, reserved ? claim : NULL, "Available");
		free(name);
	}
}

static void write_wishes(struct place_world *w, struct buf *b)
{
	if (place_world_chance(w, 10))
		buf_printf(b, ",\"selector\":{\"matchLabels\":{\"tier\":\"%s\"}}",
			   PICK(w, "x", "y"));
	if (place_world_chance(w, 4))
		buf_add_str(b, ",\"volumeMode\":\"Block\"");
}

void place_world_add_claim(struct place_world *w, const char *namespace, const char *name)
{
	bool bound = place_world_chance(w, 35), lost = place_world_chance(w, 5);
	bool own = place_world_chance(w, 30), early = place_world_chance(w, 4);
	char *class = own ? mem_printf("class-%s", name)
			  : mem_strdup(PICK(w, "local", "local", "local", "local", "shared", ""));
	struct buf b = BUF_INIT;

	buf_printf(&b,
		   "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"%s\","
		   "\"namespace\":\"%s\"%s},\"spec\":{\"accessModes\":[\"%s\"],\"resources\":"
		   "{\"requests\":{\"storage\":\"%s\"}},\"storageClassName\":\"%s\"",
		   name, namespace,
		   place_world_chance(w, 5) ? ",\"annotations\":{\"volume.kubernetes.io/"
					      "selected-node\":\"n0\"}"
					    : "",
		   PICK(w, "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"),
		   PICK(w, "1Gi", "5Gi"), class);
	write_wishes(w, &b);
	if (bound || early)
		buf_printf(&b, ",\"volumeName\":\"pv-%s\"", name);
	buf_printf(&b, "},\"status\":{\"phase\":\"%s\"}}",
		   !bound ? "Pending"
		   : lost ? "Lost"
			  : "Bound");
	place_world_add_other(w, place_world_parse_buf(&b));
	if (own && place_world_chance(w, 95))
		add_class(w, class, pick_provisioner(w));
	add_volumes(w, namespace, name, class, bound);
	free(class);
}

/* --- binding */

/* A copy that may be changed; what was there before comes back by unbinding. */
static cJSON *replace(struct place_world *w, const cJSON *object)
{
	size_t at = 0;

	while (at < w->other_count && w->others[at] != object)
		at++;
	if (at == w->other_count || w->bound_count == sizeof(w->bound) / sizeof(w->bound[0])) {
		fprintf(stderr, "the world cannot bind\n");
		abort();
	}
	w->bound[w->bound_count++] = (struct place_world_bound){at, w->others[at]};
	w->others[at] = cJSON_Duplicate(object, true);
	return w->others[at];
}

static void set_text(cJSON *object, const char *member, const char *key, const char *text)
{
	cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, member);

	if (!inner)
		inner = cJSON_AddObjectToObject(object, member);
	cJSON_DeleteItemFromObjectCaseSensitive(inner, key);
	cJSON_AddStringToObject(inner, key, text);
}

static void bind_to(struct place_world *w, const cJSON *claim, const cJSON *volume)
{
	cJSON *changed = replace(w, volume);
	cJSON *spec = cJSON_GetObjectItemCaseSensitive(changed, "spec");

	cJSON_DeleteItemFromObjectCaseSensitive(spec, "claimRef");
	set_text(spec, "claimRef", "name", place_world_name(claim));
	set_text(spec, "claimRef", "namespace", place_world_namespace(claim));
	set_text(changed, "status", "phase", "Bound");
	changed = replace(w, claim);
	set_text(changed, "spec", "volumeName", place_world_name(volume));
	set_text(changed, "status", "phase", "Bound");
}

void place_world_bind(struct place_world *w, size_t pod, size_t node)
{
	struct place_binding bindings[PLACE_CHECKER_CLAIMS];
	const struct verify_world c = place_world_checker(w);
	size_t count = place_checker_bindings(&c, pod, node, bindings);

	for (size_t i = 0; i < count; i++) {
		cJSON *claim;

		if (bindings[i].volume) {
			bind_to(w, bindings[i].claim, bindings[i].volume);
			continue;
		}
		claim = replace(w, bindings[i].claim);
		set_text(cJSON_GetObjectItemCaseSensitive(claim, "metadata"), "annotations",
			 "volume.kubernetes.io/selected-node", place_world_name(w->nodes[node]));
	}
}

void place_world_unbind(struct place_world *w, size_t count)
{
	while (w->bound_count > count) {
		const struct place_world_bound *b = &w->bound[--w->bound_count];

		cJSON_Delete(w->others[b->at]);
		w->others[b->at] = b->before;
	}
}
