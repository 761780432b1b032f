/* SPDX-License-Identifier: Apache-2.0 */
/* Each bound of what is kept of an object: what is within is read, what is beyond is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "shared/mem.h"
#include "tests/object_same.h"

/* `unit` stands where the document has "@", so many times; "#" in it is its number. */
static char *repeat(const char *document, const char *unit, size_t count)
{
	const char *at = strchr(document, '@');
	struct buf out = BUF_INIT;

	buf_add(&out, document, (size_t)(at - document));
	for (size_t i = 0; i < count; i++) {
		if (i && strlen(unit) > 1)
			buf_add_char(&out, ',');
		for (const char *c = unit; *c; c++)
			if (*c == '#')
				buf_printf(&out, "%zu", i);
			else
				buf_add_char(&out, *c);
	}
	buf_add_str(&out, at + 1);
	return buf_take(&out, NULL);
}

static int read_text(enum object_kind kind, const char *text, char field[OBJECT_FIELD_MAX],
		     struct error *reason)
{
	cJSON *tree = object_json_of(text);
	struct object *o = NULL;
	int err;

	if (!tree)
		fail_msg("the test's own JSON is broken: %.200s", text);
	err = object_read(kind, tree, &o, field, reason);
	cJSON_Delete(tree);
	if (!err)
		object_drop(o);
	return err;
}

#define POD(spec)	"{'metadata':{'name':'p'},'spec':{'containers':[]," spec "}}"
#define META(more)	"{'metadata':{'name':'p'," more "},'spec':{'containers':[]}}"
#define NODE(spec)	"{'metadata':{'name':'n'}," spec "}"
#define STATUS(members) "{'metadata':{'name':'p'},'spec':{'containers':[]},'status':{" members "}}"
#define CONTAINER_STATUS                                                                           \
	"{'name':'c#','containerID':'a://"                                                         \
	"00000000000000000000000000000000000000000000000000000000000000'}"

static const struct {
	enum object_kind kind;
	const char *document, *unit;
	size_t most; /* of units; 0: any number */
	const char *field, *reason;
} cases[] = {
	{OBJECT_POD, "{'metadata':{'name':'@'},'spec':{'containers':[]}}", "x", 253,
	 "metadata.name", "must not be longer than 253 bytes, and has 254"},
	{OBJECT_POD, META("'namespace':'@'"), "x", 63, "metadata.namespace",
	 "must not be longer than 63 bytes, and has 64"},
	{OBJECT_POD, META("'uid':'@'"), "x", 253, "metadata.uid",
	 "must not be longer than 253 bytes, and has 254"},
	{OBJECT_POD, META("'labels':{'a':'@'}"), "x", 63, "metadata.labels.a",
	 "must not be longer than 63 bytes, and has 64"},
	{OBJECT_POD, META("'labels':{'name':'@'}"), "x", 63, "metadata.labels.name",
	 "must not be longer than 63 bytes, and has 64"},
	{OBJECT_POD, META("'labels':{'@':'a'}"), "x", 317, NULL,
	 "its name must not be longer than 317 bytes, and has 318"},
	{OBJECT_POD, META("'labels':{@}"), "'a#':''", 1024, "metadata.labels",
	 "must not have more than 1024 elements, and has 1025"},
	{OBJECT_POD, META("'annotations':{'evenkeel.io/slack':'@'}"), "x", 16384,
	 "metadata.annotations.evenkeel.io/slack",
	 "must not be longer than 16384 bytes, and has 16385"},
	{OBJECT_POD, META("'annotations':{@}"), "'evenkeel.io/#':''", 1024, "metadata.annotations",
	 "must not have more than 1024 elements, and has 1025"},
	/* What is not kept may be any. */
	{OBJECT_POD, META("'annotations':{'other':'@'}"), "x", 0, NULL, NULL},
	{OBJECT_POD, META("'annotations':{@}"), "'other#':''", 0, NULL, NULL},
	{OBJECT_POD, META("'managedFields':[@]"), "{}", 0, NULL, NULL},
	{OBJECT_POD, META("'ownerReferences':[@]"), "{'name':'o#'}", 1024,
	 "metadata.ownerReferences", "must not have more than 1024 elements, and has 1025"},
	{OBJECT_POD, POD("'tolerations':[@]"), "{'key':'k#','operator':'Exists'}", 256,
	 "spec.tolerations", "must not have more than 256 elements, and has 257"},
	{OBJECT_POD, "{'metadata':{'name':'p'},'spec':{'containers':[@]}}", "{'name':'c#'}", 256,
	 "spec.containers", "must not have more than 256 elements, and has 257"},
	{OBJECT_POD, POD("'initContainers':[@]"), "{'name':'c#'}", 256, "spec.initContainers",
	 "must not have more than 256 elements, and has 257"},
	{OBJECT_POD, POD("'nodeSelector':{@}"), "'a#':''", 1024, "spec.nodeSelector",
	 "must not have more than 1024 elements, and has 1025"},
	{OBJECT_POD, POD("'nodeSelector':{'a':'@'}"), "x", 63, "spec.nodeSelector.a",
	 "must not be longer than 63 bytes, and has 64"},
	{OBJECT_POD, POD("'topologySpreadConstraints':[@]"), "{'maxSkew':1}", 1024,
	 "spec.topologySpreadConstraints", "must not have more than 1024 elements, and has 1025"},
	{OBJECT_POD, POD("'volumes':[{'name':'v','hostPath':{'path':'@'}}]"), "x", 16384,
	 "spec.volumes[0].hostPath.path", "must not be longer than 16384 bytes, and has 16385"},
	{OBJECT_POD, POD("'volumes':[@]"), "{'name':'v#','emptyDir':{}}", 1024, "spec.volumes",
	 "must not have more than 1024 elements, and has 1025"},
	{OBJECT_POD, POD("'volumes':[@]"), "{'name':'v#','configMap':{}}", 0, NULL, NULL},
	{OBJECT_POD,
	 POD("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
	     "'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'In','values':[@]}]}"
	     "]}}}"),
	 "'n#'", 4096,
	 "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
	 "nodeSelectorTerms[0].matchExpressions[0].values",
	 "must not have more than 4096 elements, and has 4097"},
	{OBJECT_POD, POD("'nodeName':'@'"), "x", 253, "spec.nodeName",
	 "must not be longer than 253 bytes, and has 254"},
	{OBJECT_POD, POD("'priorityClassName':'@'"), "x", 253, "spec.priorityClassName",
	 "must not be longer than 253 bytes, and has 254"},
	{OBJECT_POD, STATUS("'nominatedNodeName':'@'"), "x", 253, "status.nominatedNodeName",
	 "must not be longer than 253 bytes, and has 254"},
	{OBJECT_POD, STATUS("'qosClass':'@'"), "x", 63, "status.qosClass",
	 "must not be longer than 63 bytes, and has 64"},
	{OBJECT_POD, STATUS("'conditions':[@]"), "{'type':'T#'}", 0, NULL, NULL},
	/* A resize keeps the status of containers. */
	{OBJECT_POD,
	 "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','resources':{'requests':{"
	 "'cpu':'1'}}}]},'status':{'containerStatuses':[{'name':'c','resources':{'requests':{"
	 "'cpu':'2'}}},@]}}",
	 "{'name':'c'}", 255, "status.containerStatuses",
	 "must not have more than 256 elements, and has 257"},
	{OBJECT_POD, STATUS("'containerStatuses':[@]"), CONTAINER_STATUS, 256,
	 "status.containerStatuses", "must not have more than 256 elements, and has 257"},
	{OBJECT_POD, STATUS("'initContainerStatuses':[@]"), CONTAINER_STATUS, 256,
	 "status.initContainerStatuses", "must not have more than 256 elements, and has 257"},
	{OBJECT_NODE, NODE("'spec':{'taints':[@]}"), "{'key':'k#'}", 256, "spec.taints",
	 "must not have more than 256 elements, and has 257"},
	{OBJECT_NODE, NODE("'status':{'conditions':[@]}"), "{'type':'T#'}", 1024,
	 "status.conditions", "must not have more than 1024 elements, and has 1025"},
	{OBJECT_POD_DISRUPTION_BUDGET, NODE("'status':{'disruptedPods':{@}}"),
	 "'pod-#':'2026-01-01T00:00:00Z'", 2000, "status.disruptedPods",
	 "must not have more than 2000 elements, and has 2001"},
	{OBJECT_POD_DISRUPTION_BUDGET, NODE("'spec':{'selector':{'matchExpressions':[@]}}"),
	 "{'key':'k#','operator':'Exists'}", 1024, "spec.selector.matchExpressions",
	 "must not have more than 1024 elements, and has 1025"},
	{OBJECT_PERSISTENT_VOLUME, NODE("'spec':{'storageClassName':'@'}"), "x", 16384,
	 "spec.storageClassName", "must not be longer than 16384 bytes, and has 16385"},
	{OBJECT_STORAGE_CLASS, NODE("'allowedTopologies':[@]"), "{}", 1024, "allowedTopologies",
	 "must not have more than 1024 elements, and has 1025"},
	{OBJECT_STATEFUL_SET,
	 "{'metadata':{'name':'s','annotations':{'evenkeel.io/slack':'1'}},'spec':{'template':{"
	 "'spec':{'tolerations':[@]}}}}",
	 "{'key':'k#'}", 256, "spec.template.spec.tolerations",
	 "must not have more than 256 elements, and has 257"},
	/* Without slack its template is not kept. */
	{OBJECT_STATEFUL_SET,
	 "{'metadata':{'name':'s'},'spec':{'template':{'spec':{'tolerations':[@]}}}}",
	 "{'key':'k#'}", 0, NULL, NULL},
};

enum { MANY = 20000 };

static void each_bound(void **state)
{
	char field[OBJECT_FIELD_MAX];
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t most = cases[i].most ? cases[i].most : MANY;
		char *within = repeat(cases[i].document, cases[i].unit, most);
		char *beyond = repeat(cases[i].document, cases[i].unit, most + 1);

		if (read_text(cases[i].kind, within, field, &error))
			fail_msg("case %zu: %s: %s", i, field, error.text);
		free(within);
		if (cases[i].most) {
			assert_int_equal(read_text(cases[i].kind, beyond, field, &error), -EINVAL);
			assert_string_equal(error.text, cases[i].reason);
			if (cases[i].field &&
			    strncmp(field, cases[i].field, OBJECT_FIELD_MAX - 1) != 0)
				fail_msg("case %zu: %s", i, field);
		}
		free(beyond);
	}
}

/* Lists of lists, each within its bound. */
static void all_of_an_object(void **state)
{
	static const struct {
		enum object_kind kind;
		const char *document, *unit;
		size_t few, many;
		const char *reason;
	} texts[] = {
		{OBJECT_POD, POD("'schedulingGates':[@]"),
		 "{'name':'a-gate-with-a-name-of-some-length-so-that-many-are-much-%%%%%%%%#'}",
		 700, 1000, "what is kept of the object must not be longer than 65536 bytes"},
		{OBJECT_NODE, NODE("'status':{'conditions':[@]}"),
		 "{'type':'a-condition-with-a-name-of-some-length-so-that-many-are-much-%%%%%%%%#',"
		 "'status':'a-status-with-some-length-and-some-more-of-it-and-even-more-than-that-"
		 "and-then-some-for-good-measure-until-it-is-as-long-as-it-takes-to-be-too-much-at-"
		 "the-end-of-the-list-of-them'}",
		 700, 1000, "what is kept of the object must not be longer than 262144 bytes"},
	};
	char field[OBJECT_FIELD_MAX];
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *few = repeat(texts[i].document, texts[i].unit, texts[i].few);
		char *many = repeat(texts[i].document, texts[i].unit, texts[i].many);

		if (read_text(texts[i].kind, few, field, &error))
			fail_msg("%s: %s", field, error.text);
		assert_int_equal(read_text(texts[i].kind, many, field, &error), -EINVAL);
		assert_string_equal(error.text, texts[i].reason);
		free(few);
		free(many);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_bound),
		cmocka_unit_test(all_of_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
