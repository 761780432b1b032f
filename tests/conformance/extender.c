/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extender's wire types. A question is read by the product's parser and written again here, an
 * answer is read here and written by the product; both must be what was given. Questions are read
 * in lower case, too, as Go would.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender_json.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"

enum { ITEMS_MAX = 16 };

static void write_tree(struct jsonw *w, const char *key, const cJSON *tree)
{
	char *text = cJSON_PrintUnformatted(tree);

	jsonw_key(w, key);
	buf_add_str(w->out, text);
	w->comma = true;
	cJSON_free(text);
}

/* --- questions -------------------------------------------------------------------------------- */

static void write_args(struct jsonw *w, const struct extender_args *a)
{
	jsonw_object_open(w);
	write_tree(w, "Pod", a->pod);
	jsonw_key_null(w, "Nodes");
	jsonw_key(w, "NodeNames");
	jsonw_array_open(w);
	for (size_t i = 0; i < a->count; i++)
		jsonw_string(w, a->nodes[i].name);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

static bool rewrite_args(const char *text, struct jsonw *w, char *field, struct error *why)
{
	struct extender_args args;

	if (extender_args_parse(text, strlen(text), &args, field, why))
		return false;
	write_args(w, &args);
	extender_args_fini(&args);
	return true;
}

static void write_victim(struct jsonw *w, const struct extender_victim *v)
{
	char *text = v->pod ? cJSON_PrintUnformatted(v->pod) : NULL;

	if (text) {
		buf_add_str(w->out, w->comma ? "," : "");
		buf_add_str(w->out, text);
		w->comma = true;
		cJSON_free(text);
		return;
	}
	jsonw_object_open(w);
	jsonw_key_string(w, "UID", v->uid);
	jsonw_object_close(w);
}

static void write_map(struct jsonw *w, const char *key, const struct extender_victims_map *map)
{
	if (!map->present) {
		jsonw_key_null(w, key);
		return;
	}
	jsonw_key(w, key);
	jsonw_object_open(w);
	for (size_t i = 0; i < map->count; i++) {
		const struct extender_victims *v = &map->of[i];

		jsonw_key(w, v->node);
		jsonw_object_open(w);
		jsonw_key(w, "Pods");
		jsonw_array_open(w);
		for (size_t k = 0; k < v->count; k++)
			write_victim(w, &v->pods[k]);
		jsonw_array_close(w);
		jsonw_key_int(w, "NumPDBViolations", v->pdb_violations);
		jsonw_object_close(w);
	}
	jsonw_object_close(w);
}

static bool rewrite_preemption(const char *text, struct jsonw *w, char *field, struct error *why)
{
	struct extender_preemption p;

	if (extender_preemption_parse(text, strlen(text), &p, field, why))
		return false;
	jsonw_object_open(w);
	write_tree(w, "Pod", p.pod);
	write_map(w, "NodeNameToVictims", &p.victims);
	write_map(w, "NodeNameToMetaVictims", &p.meta);
	jsonw_object_close(w);
	extender_preemption_fini(&p);
	return true;
}

/* --- answers ---------------------------------------------------------------------------------- */

static size_t read_refused(const cJSON *map, struct extender_refused of[ITEMS_MAX])
{
	size_t count = 0;

	for (const cJSON *item = map ? map->child : NULL; item && count < ITEMS_MAX;
	     item = item->next)
		of[count++] = (struct extender_refused){item->string, item->valuestring};
	return count;
}

/*
 * We answer with names or with whole nodes, never with both: either must be the case's, but for the
 * other.
 */
static bool check_result(const cJSON *given, bool full)
{
	struct extender_asked passed[ITEMS_MAX] = {{0}};
	struct extender_refused failed[ITEMS_MAX], unresolvable[ITEMS_MAX];
	struct extender_filter_result r = {.full = full,
					   .passed = passed,
					   .failed = failed,
					   .unresolvable = unresolvable,
					   .error = ""};
	cJSON *wanted = cJSON_Duplicate(given, true), *written;
	const cJSON *list, *error = values_get(given, "Error");
	char *texts[ITEMS_MAX];
	struct buf out = BUF_INIT;
	bool same;

	cJSON_DeleteItemFromObjectCaseSensitive(wanted, full ? "NodeNames" : "Nodes");
	list = full ? values_get(values_get(given, "Nodes"), "items")
		    : values_get(given, "NodeNames");
	for (const cJSON *item = list->child; item && r.passed_count < ITEMS_MAX;
	     item = item->next) {
		char *text = texts[r.passed_count] = cJSON_PrintUnformatted(item);

		passed[r.passed_count++] =
			(struct extender_asked){item->valuestring, {text, strlen(text)}};
	}
	r.failed_count = read_refused(values_get(given, "FailedNodes"), failed);
	r.unresolvable_count =
		read_refused(values_get(given, "FailedAndUnresolvableNodes"), unresolvable);
	if (cJSON_IsString(error))
		r.error = error->valuestring;
	extender_write_filter_result(&out, &r);
	written = cJSON_Parse(out.data);
	same = cJSON_Compare(written, wanted, true);
	while (r.passed_count)
		cJSON_free(texts[--r.passed_count]);
	cJSON_Delete(wanted);
	cJSON_Delete(written);
	buf_fini(&out);
	return same;
}

static bool check_priorities(const cJSON *given)
{
	bool list = cJSON_IsArray(given);
	struct extender_priority of[ITEMS_MAX];
	struct buf out = BUF_INIT;
	size_t count = 0;
	cJSON *written;
	bool same;

	for (const cJSON *item = list ? given->child : given; item && count < ITEMS_MAX;
	     item = item->next)
		of[count++] = (struct extender_priority){
			cJSON_GetStringValue(values_get(item, "Host")),
			(int64_t)cJSON_GetNumberValue(values_get(item, "Score"))};
	extender_write_priorities(&out, of, count);
	written = cJSON_Parse(out.data);
	same = cJSON_Compare(list ? written : written->child, given, true);
	cJSON_Delete(written);
	buf_fini(&out);
	return same;
}

/* What we answer to preempt is the question's map of uids. */
static bool check_preemption_result(const char *text)
{
	struct extender_preemption p;
	char field[EXTENDER_FIELD_MAX];
	struct buf out = BUF_INIT;
	cJSON *given = cJSON_Parse(text), *written;
	bool same;

	if (extender_preemption_parse(text, strlen(text), &p, field, NULL)) {
		cJSON_Delete(given);
		return false;
	}
	extender_write_preemption_result(&out, p.meta.of, p.meta.count);
	written = cJSON_Parse(out.data);
	same = !p.meta.present || cJSON_Compare(values_get(written, "NodeNameToMetaVictims"),
						values_get(given, "NodeNameToMetaVictims"), true);
	extender_preemption_fini(&p);
	cJSON_Delete(written);
	cJSON_Delete(given);
	buf_fini(&out);
	return same;
}

/* --- cases ------------------------------------------------------------------------------------ */

typedef bool rewrite(const char *text, struct jsonw *w, char *field, struct error *why);

static bool check_question(const char *text, bool case_sensitive, rewrite *again, struct error *why)
{
	char field[EXTENDER_FIELD_MAX];
	cJSON *given = cJSON_Parse(text), *written = NULL;
	struct buf out = BUF_INIT;
	struct jsonw w;
	bool ok;

	jsonw_init(&w, &out);
	ok = again(text, &w, field, why);
	if (!ok)
		error_prefix(why, "%s", field);
	else
		written = cJSON_Parse(out.data);
	if (ok && !cJSON_Compare(written, given, case_sensitive)) {
		error_set(why, "became %.400s", out.data);
		ok = false;
	}
	cJSON_Delete(given);
	cJSON_Delete(written);
	buf_fini(&out);
	return ok;
}

static enum outcome run_question(const char *text, rewrite *again, struct error *why)
{
	char *lower = mem_strdup(text);
	bool ok;

	for (char *p = lower; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	ok = check_question(text, true, again, why) && check_question(lower, false, again, why);
	free(lower);
	return ok ? PASSED : FAILED;
}

static bool check_answer(const char *type, const cJSON *given)
{
	if (strcmp(type, "ExtenderFilterResult") != 0)
		return check_priorities(given);
	return check_result(given, false) &&
	       (!values_get(given, "Nodes") || check_result(given, true));
}

static bool is_answer(const char *type)
{
	return strcmp(type, "ExtenderFilterResult") == 0 || strcmp(type, "HostPriority") == 0 ||
	       strcmp(type, "HostPriorityList") == 0;
}

enum outcome run_extender_wire(const cJSON *c, struct error *why)
{
	const char *type = cJSON_GetStringValue(values_get(c, "type"));
	const char *text = cJSON_GetStringValue(values_get(c, "json"));
	cJSON *given = text ? cJSON_Parse(text) : NULL;
	enum outcome outcome = FAILED;

	error_set(why, "is not a case with type and json");
	if (given && type && is_answer(type)) {
		outcome = check_answer(type, given) ? PASSED : FAILED;
		error_set(why, "is written otherwise");
	} else if (given && type && strcmp(type, "ExtenderArgs") == 0) {
		outcome = run_question(text, rewrite_args, why);
	} else if (given && type && strcmp(type, "ExtenderPreemptionArgs") == 0) {
		outcome = run_question(text, rewrite_preemption, why);
		if (outcome == PASSED && !check_preemption_result(text)) {
			error_set(why, "its victims are answered otherwise");
			outcome = FAILED;
		}
	} else if (given && type && strncmp(type, "ExtenderBinding", 15) == 0) {
		outcome = SKIPPED;
		error_set(why, "pods are bound by the scheduler");
	}
	cJSON_Delete(given);
	return outcome;
}
