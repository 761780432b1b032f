/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table for each kind says what is kept; every other member is dropped. A row either keeps a member with all that is
 * below it, so that what a later Kubernetes adds there is not lost on those who must understand all of it (an affinity, a toleration), or goes
 * on with a table for what is below. What is of one pod only, or changes all the time (heartbeats, conditions' messages, tokens in volumes) is
 * in no table: pods of one owner must get the same text, and a node must not change with every heartbeat.
 *
 * Rows are sorted by name, and so is what is written: members find their rows by halving, and are written in the order of the rows.
 * Members below a row without a table are sorted here. Of members with the same name the first counts, as it does for readers. The
 * text of a text is the text itself, for tables are idempotent: nothing is kept because of something that is not.
 *
 * Nothing here can fail. Depth is that of the parser (a thousand levels), and so are sizes.
 */
#include "aggregator/model/object_keep.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

struct keep {
	const char *name; /* NULL ends a table */
	const struct keep *below; /* NULL: all of it */
	bool (*member)(const char *name); /* instead of a table: which members; NULL: all */
	bool (*element)(const cJSON *element); /* which elements of a list; NULL: all */
};

#define ALL(name_)                                                                                 \
	{                                                                                          \
		.name = (name_)                                                                    \
	}
#define SOME(name_, below_)                                                                        \
	{                                                                                          \
		.name = (name_), .below = (below_)                                                 \
	}
#define PICK(name_, member_)                                                                       \
	{                                                                                          \
		.name = (name_), .member = (member_)                                               \
	}
#define EACH(name_, below_, element_)                                                              \
	{                                                                                          \
		.name = (name_), .below = (below_), .element = (element_)                          \
	}
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* --- annotations: by their beginnings */

static const char *const pod_prefixes[] = {
	"evenkeel.io/",		 "cluster-autoscaler.kubernetes.io/",
	"kubernetes.io/config.", "karpenter.sh/",
	"descheduler",
};

static const char *const other_prefixes[] = {
	"delay-deletion.cluster-autoscaler.kubernetes.io/",
	"node.kubernetes.io/",
	"quota.scheduling.koordinator.sh/",
	"storageclass.kubernetes.io/is-default-class",
	"storageclass.beta.kubernetes.io/is-default-class",
	"volume.kubernetes.io/",
	"volume.beta.kubernetes.io/",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool starts_with(const char *key, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool object_keep_pod_annotation(const char *key)
{
	return starts_with(key, pod_prefixes, COUNT(pod_prefixes));
}

bool object_keep_annotation(const char *key)
{
	return object_keep_pod_annotation(key) ||
	       starts_with(key, other_prefixes, COUNT(other_prefixes));
}

/* --- tables */

static const struct keep OWNER[] = {ALL("apiVersion"), ALL("controller"), ALL("kind"),
				    ALL("name"),       ALL("uid"),	  END};

static const struct keep METADATA[] = {
	PICK("annotations", object_keep_annotation),
	ALL("creationTimestamp"),
	ALL("deletionTimestamp"),
	ALL("generation"),
	ALL("labels"),
	ALL("name"),
	ALL("namespace"),
	SOME("ownerReferences", OWNER),
	ALL("uid"),
	END,
};

static const struct keep CONDITION[] = {ALL("lastTransitionTime"), ALL("status"), ALL("type"), END};

static const struct keep NODE_SPEC[] = {ALL("providerID"), ALL("taints"), ALL("unschedulable"),
					END};
static const struct keep NODE_STATUS[] = {ALL("allocatable"), ALL("capacity"),
					  SOME("conditions", CONDITION), END};
static const struct keep NODE[] = {SOME("metadata", METADATA), SOME("spec", NODE_SPEC),
				   SOME("status", NODE_STATUS), END};

static const struct keep PHASE[] = {ALL("phase"), END};
static const struct keep NAMESPACE[] = {SOME("metadata", METADATA), SOME("status", PHASE), END};

static const struct keep PRIORITY_CLASS[] = {ALL("globalDefault"), SOME("metadata", METADATA),
					     ALL("preemptionPolicy"), ALL("value"), END};

/* Of every kind of workload; none has them all. */
static const struct keep WORKLOAD_SPEC[] = {
	ALL("completionMode"),
	ALL("completions"),
	ALL("minReadySeconds"),
	ALL("parallelism"),
	ALL("replicas"),
	ALL("suspend"),
	END,
};
static const struct keep WORKLOAD_STATUS[] = {
	ALL("active"),
	ALL("availableReplicas"),
	ALL("completionTime"),
	ALL("currentNumberScheduled"),
	ALL("desiredNumberScheduled"),
	ALL("failed"),
	ALL("numberAvailable"),
	ALL("numberReady"),
	ALL("readyReplicas"),
	ALL("replicas"),
	ALL("succeeded"),
	END,
};
static const struct keep WORKLOAD[] = {SOME("metadata", METADATA), SOME("spec", WORKLOAD_SPEC),
				       SOME("status", WORKLOAD_STATUS), END};

static const struct keep BUDGET_STATUS[] = {
	ALL("currentHealthy"),
	ALL("desiredHealthy"),
	ALL("disruptedPods"),
	ALL("disruptionsAllowed"),
	ALL("expectedPods"),
	ALL("observedGeneration"),
	END,
};
static const struct keep BUDGET[] = {SOME("metadata", METADATA), ALL("spec"),
				     SOME("status", BUDGET_STATUS), END};

static const struct keep QUOTA_STATUS[] = {ALL("hard"), ALL("used"), END};
static const struct keep QUOTA[] = {SOME("metadata", METADATA), ALL("spec"),
				    SOME("status", QUOTA_STATUS), END};

static const struct keep CLAIM_REF[] = {ALL("name"), ALL("namespace"), ALL("uid"), END};
static const struct keep VOLUME_CSI[] = {ALL("driver"), END};
static const struct keep VOLUME_SPEC[] = {
	ALL("accessModes"),
	ALL("capacity"),
	SOME("claimRef", CLAIM_REF),
	SOME("csi", VOLUME_CSI),
	ALL("hostPath"),
	ALL("local"),
	ALL("nodeAffinity"),
	ALL("persistentVolumeReclaimPolicy"),
	ALL("storageClassName"),
	ALL("volumeMode"),
	END,
};
static const struct keep VOLUME[] = {SOME("metadata", METADATA), SOME("spec", VOLUME_SPEC),
				     SOME("status", PHASE), END};

static const struct keep CLAIM_SPEC[] = {
	ALL("accessModes"),
	ALL("resources"),
	ALL("selector"),
	ALL("storageClassName"),
	ALL("volumeMode"),
	ALL("volumeName"),
	END,
};
static const struct keep CLAIM_STATUS[] = {ALL("accessModes"), ALL("capacity"), ALL("phase"), END};
static const struct keep CLAIM[] = {SOME("metadata", METADATA), SOME("spec", CLAIM_SPEC),
				    SOME("status", CLAIM_STATUS), END};

static const struct keep STORAGE_CLASS[] = {
	ALL("allowedTopologies"), SOME("metadata", METADATA), ALL("provisioner"),
	ALL("reclaimPolicy"),	  ALL("volumeBindingMode"),   END,
};

static const struct keep *const tables[OBJECT_KINDS] = {
	[OBJECT_NODE] = NODE,
	[OBJECT_NAMESPACE] = NAMESPACE,
	[OBJECT_PRIORITY_CLASS] = PRIORITY_CLASS,
	[OBJECT_REPLICA_SET] = WORKLOAD,
	[OBJECT_STATEFUL_SET] = WORKLOAD,
	[OBJECT_DAEMON_SET] = WORKLOAD,
	[OBJECT_JOB] = WORKLOAD,
	[OBJECT_REPLICATION_CONTROLLER] = WORKLOAD,
	[OBJECT_POD_DISRUPTION_BUDGET] = BUDGET,
	[OBJECT_RESOURCE_QUOTA] = QUOTA,
	[OBJECT_ELASTIC_QUOTA] = QUOTA,
	[OBJECT_PERSISTENT_VOLUME] = VOLUME,
	[OBJECT_PERSISTENT_VOLUME_CLAIM] = CLAIM,
	[OBJECT_STORAGE_CLASS] = STORAGE_CLASS,
};

/* --- tables of pods */

/* Kinds of volumes that neither keep a pod on its node nor lose anything with it. The one with the token has a random name. */
static bool is_volume_member(const char *name)
{
	static const char *const dropped[] = {"configMap", "downwardAPI", "projected", "secret"};

	for (size_t i = 0; i < COUNT(dropped); i++)
		if (strcmp(name, dropped[i]) == 0)
			return false;
	return true;
}

/* What JSON has no word for is as good as null. */
static bool is_nothing(const cJSON *item)
{
	return cJSON_IsNull(item) || (cJSON_IsNumber(item) && !isfinite(item->valuedouble));
}

/* Something besides its name is kept. */
static bool is_volume(const cJSON *volume)
{
	for (const cJSON *item = cJSON_IsObject(volume) ? volume->child : NULL; item;
	     item = item->next)
		if (strcmp(item->string, "name") != 0 && is_volume_member(item->string) &&
		    object_json_find(volume, item->string) == item && !is_nothing(item))
			return true;
	return false;
}

/* Only ports of the host can be in another pod's way. */
static bool is_host_port(const cJSON *port)
{
	const cJSON *number = object_json_find(port, "hostPort");

	return number && !is_nothing(number) &&
	       !(cJSON_IsNumber(number) && number->valuedouble == 0);
}

static const struct keep PORT[] = {ALL("hostIP"), ALL("hostPort"), ALL("protocol"), END};

static const struct keep CONTAINER[] = {
	ALL("name"), EACH("ports", PORT, is_host_port), ALL("resources"), ALL("restartPolicy"), END,
};

static const struct keep POD_METADATA[] = {PICK("annotations", object_keep_pod_annotation),
					   ALL("labels"), SOME("ownerReferences", OWNER), END};

static const struct keep POD_SPEC[] = {
	ALL("affinity"),
	SOME("containers", CONTAINER),
	ALL("hostNetwork"),
	SOME("initContainers", CONTAINER),
	ALL("nodeSelector"),
	ALL("overhead"),
	ALL("preemptionPolicy"),
	ALL("priority"),
	ALL("priorityClassName"),
	ALL("resourceClaims"),
	ALL("resources"),
	ALL("restartPolicy"),
	ALL("runtimeClassName"),
	ALL("schedulerName"),
	ALL("schedulingGates"),
	ALL("terminationGracePeriodSeconds"),
	ALL("tolerations"),
	ALL("topologySpreadConstraints"),
	{.name = "volumes", .member = is_volume_member, .element = is_volume},
	END,
};

static const struct keep CONTAINER_STATUS[] = {ALL("allocatedResources"), ALL("name"),
					       ALL("resources"), ALL("restartCount"), END};
static const struct keep RESIZE[] = {
	ALL("allocatedResources"),
	SOME("containerStatuses", CONTAINER_STATUS),
	SOME("initContainerStatuses", CONTAINER_STATUS),
	ALL("resources"),
	END,
};

/* --- writing */

/* A table is no longer. */
enum { ROWS_MAX = 24, SKIPS_MAX = 8, FEW_MEMBERS = 16 };

struct writer {
	struct jsonw json;
	const cJSON *skip[SKIPS_MAX]; /* members that are left out though a row keeps them */
	size_t skips;
};

struct member {
	const cJSON *item;
	size_t place;
};

static const struct keep WHOLE = {.name = ""};

static bool write_value(struct writer *w, const cJSON *item, const struct keep *row);

static bool is_absent(const struct writer *w, const cJSON *item)
{
	if (is_nothing(item))
		return true;
	for (size_t i = 0; i < w->skips; i++)
		if (w->skip[i] == item)
			return true;
	return false;
}

/* The member; it is taken back when a table leaves nothing of it. */
static bool write_member(struct writer *w, const cJSON *item, const struct keep *row)
{
	const struct jsonw before = w->json;
	size_t len = w->json.out->len;

	if (is_absent(w, item))
		return false;
	jsonw_key(&w->json, item->string);
	if (write_value(w, item, row))
		return true;
	w->json = before;
	w->json.out->len = len;
	return false;
}

static size_t count_rows(const struct keep *table)
{
	size_t count = 0;

	while (table[count].name)
		count++;
	assert(count <= ROWS_MAX);
	return count;
}

/* The row of that name, or `count`. */
static size_t find_row(const struct keep *table, size_t count, const char *name)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(table[middle].name, name);

		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return count;
}

/* The members of an object that a table keeps. */
static bool write_rows(struct writer *w, const cJSON *object, const struct keep *table)
{
	const cJSON *items[ROWS_MAX + 1] = {NULL};
	size_t count = count_rows(table);
	bool any = false;

	for (const cJSON *item = object->child; item; item = item->next) {
		size_t row = find_row(table, count, item->string);

		if (!items[row])
			items[row] = item;
	}
	for (size_t row = 0; row < count; row++)
		if (items[row])
			any |= write_member(w, items[row], &table[row]);
	return any;
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order = strcmp(x->item->string, y->item->string);

	return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Insertion, for the few members that most objects have. */
static void sort_few(struct member *members, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct member one = members[i];
		size_t at = i;

		for (; at > 0 && compare_members(&members[at - 1], &one) > 0; at--)
			members[at] = members[at - 1];
		members[at] = one;
	}
}

static void write_sorted(struct writer *w, struct member *members, size_t count)
{
	if (count <= FEW_MEMBERS)
		sort_few(members, count);
	else
		qsort(members, count, sizeof(*members), compare_members);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(members[i - 1].item->string, members[i].item->string) != 0)
			write_member(w, members[i].item, &WHOLE);
}

/* All members of an object, or those that are picked. */
static void write_members(struct writer *w, const cJSON *object, bool (*pick)(const char *name))
{
	size_t count = (size_t)cJSON_GetArraySize(object), used = 0;
	struct member few[FEW_MEMBERS];
	struct member *members = count <= FEW_MEMBERS ? few : mem_zalloc(count, sizeof(*members));

	for (const cJSON *item = object->child; item; item = item->next)
		if (!pick || pick(item->string)) {
			members[used] = (struct member){item, used};
			used++;
		}
	write_sorted(w, members, used);
	if (members != few)
		free(members);
}

static bool write_object(struct writer *w, const cJSON *object, const struct keep *row)
{
	size_t len;
	bool any = true;

	jsonw_object_open(&w->json);
	len = w->json.out->len;
	if (row->below)
		any = write_rows(w, object, row->below);
	else
		write_members(w, object, row->member);
	if (row->member)
		any = w->json.out->len > len;
	jsonw_object_close(&w->json);
	return any;
}

/* An element of which a table leaves nothing stays as {}: there are as many containers as there were. */
static bool write_array(struct writer *w, const cJSON *array, const struct keep *row)
{
	bool any = !row->element;

	jsonw_array_open(&w->json);
	for (const cJSON *item = array->child; item; item = item->next) {
		if (row->element && !row->element(item))
			continue;
		write_value(w, item, row);
		any = true;
	}
	jsonw_array_close(&w->json);
	return any;
}

static void write_number(struct writer *w, double value)
{
	char text[32];

	if (value == trunc(value) && fabs(value) < 0x1p63) {
		jsonw_int(&w->json, (int64_t)value);
		return;
	}
	object_json_number(value, text);
	if (w->json.comma)
		buf_add_char(w->json.out, ',');
	w->json.comma = true;
	buf_add_str(w->json.out, text);
}

/* False when a table leaves nothing of it. */
static bool write_value(struct writer *w, const cJSON *item, const struct keep *row)
{
	switch (item->type & 0xff) {
	case cJSON_Object:
		return write_object(w, item, row);
	case cJSON_Array:
		return write_array(w, item, row);
	case cJSON_String:
		jsonw_string(&w->json, item->valuestring);
		return true;
	case cJSON_Number:
		if (is_nothing(item))
			jsonw_null(&w->json);
		else
			write_number(w, item->valuedouble);
		return true;
	case cJSON_True:
	case cJSON_False:
		jsonw_bool(&w->json, cJSON_IsTrue(item));
		return true;
	default:
		jsonw_null(&w->json);
		return true;
	}
}

static void writer_init(struct writer *w, struct buf *out)
{
	jsonw_init(&w->json, out);
	w->skips = 0;
}

void object_keep_write(enum object_kind kind, const char *api_version, const cJSON *json,
		       struct buf *out)
{
	struct writer w;

	writer_init(&w, out);
	jsonw_object_open(&w.json);
	jsonw_key_string(&w.json, "apiVersion", api_version);
	jsonw_key_string(&w.json, "kind", object_kind_name(kind));
	write_rows(&w, json, tables[kind]);
	jsonw_object_close(&w.json);
}

/* [{"key":"metadata.name","operator":"In","values":[NODE]}] */
static bool is_binding(const cJSON *fields, const char *node)
{
	const cJSON *field = cJSON_IsArray(fields) ? fields->child : NULL;
	const char *key = cJSON_GetStringValue(object_json_find(field, "key"));
	const char *op = cJSON_GetStringValue(object_json_find(field, "operator"));
	const cJSON *values = object_json_find(field, "values");
	const cJSON *value = cJSON_IsArray(values) ? values->child : NULL;

	return key && op && value && !field->next && !value->next &&
	       strcmp(key, "metadata.name") == 0 && strcmp(op, "In") == 0 &&
	       cJSON_IsString(value) && strcmp(value->valuestring, node) == 0;
}

/*
 * The controller of DaemonSets puts matchFields with the node's name into every term of the required affinity of a pod, and makes
 * a term of its own where the template has none. Without what it put there all pods of the set are alike. A pod whose terms say anything else
 * keeps them all.
 */
static void skip_binding(struct writer *w, const cJSON *spec, const char *node)
{
	const cJSON *affinity = object_json_find(spec, "affinity");
	const cJSON *required = object_json_find(object_json_find(affinity, "nodeAffinity"),
						 "requiredDuringSchedulingIgnoredDuringExecution");
	const cJSON *terms = object_json_find(required, "nodeSelectorTerms");
	bool alone = false;
	size_t count = 0;

	for (const cJSON *term = cJSON_IsArray(terms) ? terms->child : NULL; term;
	     term = term->next) {
		const cJSON *fields = object_json_find(term, "matchFields");

		if (count == SKIPS_MAX || !is_binding(fields, node))
			return;
		alone |= !object_json_find(term, "matchExpressions");
		w->skip[count++] = fields;
	}
	if (alone) {
		w->skip[0] = required;
		count = 1;
	}
	w->skips = count;
}

void object_keep_template(const cJSON *pod, const char *bound_to, struct buf *out, size_t *spec_at)
{
	static const struct keep metadata_row = SOME("metadata", POD_METADATA);
	static const struct keep spec_row = SOME("spec", POD_SPEC);
	const cJSON *metadata = object_json_find(pod, "metadata");
	const cJSON *spec = object_json_find(pod, "spec");
	struct writer w;

	writer_init(&w, out);
	if (bound_to)
		skip_binding(&w, spec, bound_to);
	jsonw_object_open(&w.json);
	jsonw_key(&w.json, "metadata");
	write_object(&w, metadata, &metadata_row);
	jsonw_key(&w.json, "spec");
	*spec_at = out->len;
	write_object(&w, spec, &spec_row);
	jsonw_object_close(&w.json);
}

void object_keep_resize(const cJSON *status, struct buf *out)
{
	static const struct keep row = SOME("status", RESIZE);
	struct writer w;

	writer_init(&w, out);
	write_object(&w, status, &row);
}
