/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes that evenkeel advise proposes: all proposed amounts of the containers with the verdict
 * tooSmall or tooLarge:
 *
 *   -o patch     a line for kubectl for each workload. Limits are changed where there are some, and
 *                raised to the request where none is proposed: the API server refuses a request
 *                above the limit
 *   -o vpa       a VerticalPodAutoscaler for each workload: requests as minAllowed, limits as
 *                maxAllowed, also without a limit now
 *   -o scenario  the changes of a patch, for evenkeel whatif
 *   --nodes      the changes of a patch in a copy of the cluster, as evenkeel whatif makes them
 */
#include "aggregator/cli/advise.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/lines.h"
#include "aggregator/policy/advice/advice.h"
#include "shared/array.h"
#include "shared/json_yaml.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/units.h"

enum { NAMES_SHOWN = 3 };

/* --- which containers ------------------------------------------------------------------------- */

/* Forms for kubectl, which change a cluster. */
static bool is_for_kubectl(const struct cli_options *o)
{
	return o->output == OUTPUT_PATCH || o->output == OUTPUT_VPA;
}

bool advise_changes(const struct cli_options *o)
{
	return o->nodes || is_for_kubectl(o) || o->output == OUTPUT_SCENARIO;
}

/* 0 of the option is auto. */
static int least_confidence(const struct cli_options *o)
{
	if (o->confidence)
		return o->confidence - 1;
	return is_for_kubectl(o) ? ADVICE_MEDIUM : ADVICE_LOW;
}

bool advise_is_sure(const struct cli_options *o, const cJSON *item)
{
	for (int c = least_confidence(o); c <= ADVICE_HIGH; c++)
		if (document_is(item, "confidence", advice_confidences[c]))
			return true;
	return false;
}

static bool is_same_workload(const cJSON *a, const cJSON *b)
{
	return b && document_is(a, "namespace", document_text(b, "namespace")) &&
	       document_is(a, "workload.kind", document_text(b, "workload.kind")) &&
	       document_is(a, "workload.name", document_text(b, "workload.name"));
}

/* Of a patch and a VerticalPodAutoscaler. */
static const struct kind_row {
	const char *kind, *version;
	bool whole; /* the template is in spec.jobTemplate.spec */
} kinds[] = {
	{"Deployment", "apps/v1", false},	{"StatefulSet", "apps/v1", false},
	{"DaemonSet", "apps/v1", false},	{"ReplicaSet", "apps/v1", false},
	{"ReplicationController", "v1", false}, {"CronJob", "batch/v1", true},
};

static const struct kind_row *kind_of(const cJSON *item)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (document_is(item, "workload.kind", kinds[i].kind))
			return &kinds[i];
	return NULL;
}

/* As Kubernetes names objects: safe in a shell and in JSON. */
static bool is_plain(const char *name)
{
	return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
					   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")];
}

enum left_out { NOT_LEFT_OUT, BY_KIND, BY_NAME, UNSURE, LEFT_OUTS };

static enum left_out find_reason(const struct advise *a, const cJSON *item)
{
	const struct cli_options *o = a->cli->options;
	const struct kind_row *kind = kind_of(item);

	/* Pods of a CronJob are those of its Jobs: evenkeel whatif does not know them. */
	if (!kind || (!is_for_kubectl(o) && kind->whole))
		return BY_KIND;
	if (!is_plain(document_text_or(item, "namespace", "")) ||
	    !is_plain(document_text_or(item, "workload.name", "")) ||
	    !is_plain(document_text_or(item, "container", "")))
		return BY_NAME;
	return advise_is_sure(o, item) ? NOT_LEFT_OUT : UNSURE;
}

static bool needs_change(const cJSON *item)
{
	return document_is(item, "verdict", "tooSmall") || document_is(item, "verdict", "tooLarge");
}

static bool is_changed(const struct advise *a, const cJSON *item)
{
	return needs_change(item) && find_reason(a, item) == NOT_LEFT_OUT;
}

/* --- amounts ---------------------------------------------------------------------------------- */

static const struct {
	const char *name, *key, *suffix;
	double unit;
} resources[] = {{"cpu", "cpuMillicores", "m", 1}, {"memory", "memoryBytes", "Mi", 0x1p20}};

enum { RESOURCES = sizeof(resources) / sizeof(resources[0]) };

/* Of a resource; NaN: there is none, or it stays. */
typedef double resource_amount(const cJSON *item, size_t resource);

static double amount_at(const cJSON *item, const char *list, size_t resource)
{
	char *path = mem_printf("%s.%s", list, resources[resource].key);
	double amount = document_number(item, path);

	free(path);
	return amount;
}

static double proposed_request(const cJSON *item, size_t resource)
{
	return amount_at(item, "proposed.requests", resource);
}

static double proposed_limit(const cJSON *item, size_t resource)
{
	return amount_at(item, "proposed.limits", resource);
}

/* No container gets a limit that has none. */
static double changed_limit(const cJSON *item, size_t resource)
{
	double now = amount_at(item, "limits", resource),
	       request = proposed_request(item, resource),
	       proposed = proposed_limit(item, resource);

	if (isnan(now))
		return NAN;
	if (!isnan(proposed))
		return proposed;
	return request > now ? request : NAN;
}

/* "250m"; NULL: there is no amount. */
static char *quantity_of(double amount, size_t resource)
{
	if (isnan(amount))
		return NULL;
	return mem_printf("%.0f%s", ceil(amount / resources[resource].unit),
			  resources[resource].suffix);
}

/* --- for kubectl ------------------------------------------------------------------------------ */

/* Takes the value, and drops one without members. */
static void add_filled(cJSON *object, const char *key, cJSON *value)
{
	if (value->child)
		cJSON_AddItemToObject(object, key, value);
	else
		cJSON_Delete(value);
}

/* KEY:{"cpu":"250m"}, if there is an amount. */
static void add_amounts(cJSON *object, const char *key, const cJSON *item,
			resource_amount *amount_of)
{
	cJSON *amounts = cJSON_CreateObject();

	for (size_t i = 0; i < RESOURCES; i++) {
		char *quantity = quantity_of(amount_of(item, i), i);

		if (quantity)
			cJSON_AddStringToObject(amounts, resources[i].name, quantity);
		free(quantity);
	}
	add_filled(object, key, amounts);
}

static cJSON *make_patch(const cJSON *item)
{
	cJSON *patch = cJSON_CreateObject(), *amounts;

	cJSON_AddStringToObject(patch, "name", document_text(item, "container"));
	amounts = cJSON_AddObjectToObject(patch, "resources");
	add_amounts(amounts, "requests", item, proposed_request);
	add_amounts(amounts, "limits", item, changed_limit);
	return patch;
}

static cJSON *make_bounds(const cJSON *item)
{
	cJSON *bounds = cJSON_CreateObject();

	cJSON_AddStringToObject(bounds, "containerName", document_text(item, "container"));
	add_amounts(bounds, "minAllowed", item, proposed_request);
	add_amounts(bounds, "maxAllowed", item, proposed_limit);
	return bounds;
}

/* KEY:[..] of the workload's items that are changed and in the pod's list (NULL: any), if there are. */
static void add_containers(const struct advise *a, cJSON *object, const char *key,
			   const cJSON *first, const char *list, cJSON *(*make)(const cJSON *item))
{
	cJSON *containers = cJSON_CreateArray();

	for (const cJSON *item = first; is_same_workload(first, item); item = item->next) {
		bool sidecar = document_is_true(item, "sidecar");

		if (is_changed(a, item) &&
		    (!list || strcmp(list, sidecar ? "initContainers" : "containers") == 0))
			cJSON_AddItemToArray(containers, make(item));
	}
	add_filled(object, key, containers);
}

static void print_patch(struct advise *a, const struct kind_row *kind, const cJSON *first)
{
	cJSON *pod = cJSON_CreateObject();
	char *text;

	add_containers(a, pod, "containers", first, "containers", make_patch);
	add_containers(a, pod, "initContainers", first, "initContainers", make_patch);
	text = cJSON_PrintUnformatted(pod);
	buf_printf(&a->cli->out,
		   "kubectl patch %s %s --namespace %s --type strategic --patch "
		   "'{\"spec\":%s{\"template\":{\"spec\":%s}}%s}'\n",
		   kind->kind, document_text(first, "workload.name"),
		   document_text(first, "namespace"),
		   kind->whole ? "{\"jobTemplate\":{\"spec\":" : "", text, kind->whole ? "}}" : "");
	free(text);
	cJSON_Delete(pod);
}

static void print_autoscaler(struct advise *a, const struct kind_row *kind, const cJSON *first)
{
	const char *name = document_text(first, "workload.name");
	/* A StatefulSet may have the name of a Deployment. */
	char *text, *own = mem_printf("%s-%s", kind->kind, name);
	cJSON *object, *policy;

	for (size_t i = 0; i < strlen(kind->kind); i++)
		own[i] = (char)tolower(own[i]);
	text = mem_printf(
		"{\"apiVersion\":\"autoscaling.k8s.io/v1\",\"kind\":\"VerticalPodAutoscaler\","
		"\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},\"spec\":{\"targetRef\":{"
		"\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\"},"
		"\"updatePolicy\":{\"updateMode\":\"Off\"}}}",
		own, document_text(first, "namespace"), kind->version, kind->kind, name);
	object = cJSON_Parse(text);
	policy = cJSON_AddObjectToObject(cJSON_GetObjectItem(object, "spec"), "resourcePolicy");
	add_containers(a, policy, "containerPolicies", first, NULL, make_bounds);
	json_yaml_write(object, true, &a->cli->out);
	cJSON_Delete(object);
	free(text);
	free(own);
}

/* For each workload of which a container is changed. */
static void show_workloads(struct advise *a,
			   void (*print)(struct advise *a, const struct kind_row *kind,
					 const cJSON *first))
{
	const cJSON *item = document_first(a->items, ""), *first;

	while ((first = item) != NULL) {
		bool changed = false;

		for (; is_same_workload(first, item); item = item->next)
			changed = changed || is_changed(a, item);
		if (changed)
			print(a, kind_of(first), first);
	}
}

/* --- what if ---------------------------------------------------------------------------------- */

static void append_amounts(struct buf *text, char *mark, const cJSON *item, const char *prefix,
			   resource_amount *amount_of)
{
	for (size_t i = 0; i < RESOURCES; i++) {
		char *quantity = quantity_of(amount_of(item, i), i);

		if (!quantity)
			continue;
		buf_printf(text, "%c%s%s:%s", *mark, prefix, resources[i].name, quantity);
		free(quantity);
		*mark = ',';
	}
}

/*
 * The argument of evenkeel whatif --resize:
 * "shop/Deployment/web=app/limits.memory:300Mi,cpu:250m,memory:260Mi".
 */
static char *resize_of(const cJSON *item)
{
	struct buf text = BUF_INIT;
	char mark = '/';

	buf_printf(&text, "%s/%s/%s=%s", document_text(item, "namespace"),
		   document_text(item, "workload.kind"), document_text(item, "workload.name"),
		   document_text(item, "container"));
	append_amounts(&text, &mark, item, "limits.", changed_limit);
	append_amounts(&text, &mark, item, "", proposed_request);
	return buf_take(&text, NULL);
}

/* The caller frees them. */
static struct option_list resizes_of(const struct advise *a)
{
	struct option_list resizes = {0};

	for (const cJSON *item = document_first(a->items, ""); item; item = item->next)
		if (is_changed(a, item))
			ARRAY_ADD(resizes.items, resizes.count) = resize_of(item);
	return resizes;
}

/* A list of one scenario, named as the policy. */
static void show_scenario(struct advise *a)
{
	struct option_list resizes = resizes_of(a);
	cJSON *list = cJSON_CreateArray(), *scenario = cJSON_CreateObject();

	cJSON_AddItemToArray(list, scenario);
	cJSON_AddStringToObject(scenario, "name", advice_policies[a->cli->options->policy]);
	cJSON_AddItemToObject(scenario, "resize",
			      cJSON_CreateStringArray((const char *const *)resizes.items,
						      (int)resizes.count));
	json_yaml_write(list, false, &a->cli->out);
	cJSON_Delete(list);
	option_list_free(&resizes);
}

static int show_nodes(struct advise *a)
{
	struct cli_options options = *a->cli->options;
	const struct cli_options *given = a->cli->options;
	size_t operands = a->cli->operand_count;
	int code = CLI_OK;

	options.changes.resize = resizes_of(a);
	if (!options.changes.resize.count) {
		lines_print(a->cli, "Nothing would change: no request is too small or too large.");
	} else {
		a->cli->options = &options;
		a->cli->operand_count = 0;
		code = command_whatif.run(a->cli);
		a->cli->options = given;
		a->cli->operand_count = operands;
	}
	option_list_free(&options.changes.resize);
	return code;
}

/* --- notes ------------------------------------------------------------------------------------ */

/* The first of several names. */
struct names {
	size_t count;
	struct buf text;
};

static void add_name(struct names *n, const cJSON *item, const char *container)
{
	if (n->count++ < NAMES_SHOWN)
		buf_printf(&n->text, "%s%s/%s/%s%s%s", n->count > 1 ? ", " : "",
			   document_text_or(item, "namespace", ""),
			   document_text_or(item, "workload.kind", ""),
			   document_text_or(item, "workload.name", ""), container ? "/" : "",
			   container ? container : "");
	else if (n->count == NAMES_SHOWN + 1)
		buf_add_str(&n->text, ", ..");
}

static void say_left_out(const struct advise *a)
{
	static const char *const reasons[] = {
		[BY_KIND] = "as evenkeel cannot change workloads of their kind",
		[BY_NAME] = "as Kubernetes objects have no such names",
		[UNSURE] = "as they were measured too short a time (--confidence low takes them)",
	};
	struct names left[LEFT_OUTS] = {0};

	for (const cJSON *item = document_first(a->items, ""); item; item = item->next)
		if (needs_change(item))
			add_name(&left[find_reason(a, item)], item,
				 document_text_or(item, "container", ""));
	for (int i = 0; i < LEFT_OUTS; i++) {
		if (i != NOT_LEFT_OUT && left[i].count)
			log_info("%zu container%s left out, %s: %s", left[i].count,
				 units_plural((double)left[i].count), reasons[i],
				 left[i].text.data);
		buf_fini(&left[i].text);
	}
}

/* Of all containers of a workload: the class is Guaranteed, before or after the change. */
static bool is_guaranteed(const struct advise *a, const cJSON *first, bool after)
{
	for (const cJSON *item = first; is_same_workload(first, item); item = item->next)
		for (size_t i = 0; i < RESOURCES; i++) {
			double request = amount_at(item, "requests", i),
			       limit = amount_at(item, "limits", i);

			if (after && is_changed(a, item)) {
				double changed = changed_limit(item, i);

				request = isnan(proposed_request(item, i))
						  ? request
						  : proposed_request(item, i);
				limit = isnan(changed) ? limit : changed;
			}
			if (!(request == limit))
				return false;
		}
	return true;
}

static void say_lost_classes(const struct advise *a)
{
	const cJSON *item = document_first(a->items, ""), *first;
	struct names lost = {0};

	while ((first = item) != NULL) {
		if (is_guaranteed(a, first, false) && !is_guaranteed(a, first, true))
			add_name(&lost, first, NULL);
		while (is_same_workload(first, item))
			item = item->next;
	}
	if (lost.count)
		log_info("pods of %zu workload%s lose the class Guaranteed, as requests become "
			 "smaller than limits: %s",
			 lost.count, units_plural((double)lost.count), lost.text.data);
	buf_fini(&lost.text);
}

int advise_show_changes(struct advise *a)
{
	const struct cli_options *o = a->cli->options;

	say_left_out(a);
	if (o->nodes)
		return show_nodes(a);
	if (o->output == OUTPUT_PATCH) {
		say_lost_classes(a);
		show_workloads(a, print_patch);
	} else if (o->output == OUTPUT_VPA) {
		show_workloads(a, print_autoscaler);
	} else {
		show_scenario(a);
	}
	return CLI_OK;
}
