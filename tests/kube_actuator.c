/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_actuator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

#define OVERLAYS "packaging/kubernetes/overlays/"

/* There is no kubelet: the test starts the programs itself. */
void kube_actuator_install(struct kube_actuator *a, struct kube_testbed *bed, const char *act,
			   const char *rights)
{
	*a = (struct kube_actuator){.bed = bed, .act = act};
	control_plane_create(bed->plane, OVERLAYS "actuator/actuator.yaml");
	control_plane_must(bed->plane, "PATCH",
			   "/apis/apps/v1/namespaces/evenkeel/deployments/evenkeel-actuator",
			   "{\"spec\":{\"replicas\":0}}");
	if (rights) {
		char *path = mem_printf(OVERLAYS "%s", rights);

		control_plane_create(bed->plane, path);
		free(path);
	}
	a->account = kube_testbed_account(bed, "evenkeel", "evenkeel-actuator");
	kube_actuator_name_log(a, "actuator");
}

void kube_actuator_fini(struct kube_actuator *a)
{
	kube_actuator_stop(a, SIGKILL);
	free(a->account);
	free(a->log);
}

void kube_actuator_name_log(struct kube_actuator *a, const char *name)
{
	free(a->log);
	a->log = mem_printf("%s/%s.log", a->bed->folder, name);
}

void kube_actuator_start(struct kube_actuator *a, size_t i)
{
	char *argv[] = {(char *)program_path("evenkeel-actuator"),
			(char *)"--act",
			(char *)a->act,
			(char *)"--kubeconfig",
			a->account,
			(char *)"--max-pod-wait",
			(char *)"60s",
			NULL};

	a->pids[i] = process_start(a->log, argv);
	assert_true(a->pids[i] > 0);
}

void kube_actuator_stop(struct kube_actuator *a, int signal_number)
{
	for (size_t i = 0; i < KUBE_ACTUATORS; i++) {
		int status = a->pids[i] ? process_stop(a->pids[i], signal_number) : 0;

		a->pids[i] = 0;
		if (signal_number == SIGTERM)
			assert_int_equal(status, 0);
	}
}

/* --- the log ---------------------------------------------------------------------------------- */

char *kube_actuator_read_log(const struct kube_actuator *a)
{
	struct buf log = BUF_INIT;
	struct error why;

	if (file_read(a->log, 16 << 20, &log, &why) || !log.data)
		return mem_strdup("");
	return log.data;
}

bool kube_actuator_says(const struct kube_actuator *a, const char *text)
{
	char *log = kube_actuator_read_log(a);
	bool says = strstr(log, text);

	free(log);
	return says;
}

struct wish {
	const struct kube_actuator *actuator;
	const char *text;
	void (*meanwhile)(void *ctx);
	void *ctx;
};

static bool is_said(void *ctx)
{
	const struct wish *w = ctx;

	if (w->meanwhile)
		w->meanwhile(w->ctx);
	return kube_actuator_says(w->actuator, w->text);
}

static void expect(struct wish w, int seconds)
{
	if (!control_plane_await(w.actuator->bed->plane, is_said, &w, seconds))
		fail_msg("the actuator does not say: %s\n%s", w.text,
			 kube_actuator_read_log(w.actuator));
	print_message("          the actuator says: %s\n", w.text);
}

void kube_actuator_expect(const struct kube_actuator *a, const char *text, int seconds)
{
	expect((struct wish){.actuator = a, .text = text}, seconds);
}

/* --- rules ------------------------------------------------------------------------------------ */

static bool has_word(const cJSON *list, const char *word)
{
	const cJSON *w;

	cJSON_ArrayForEach (w, list) {
		if (strcmp(w->valuestring, word) == 0)
			return true;
	}
	return false;
}

static cJSON *read_rules(const struct kube_actuator *a, const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *role, *rules;

	assert_int_equal(control_plane_send(a->bed->plane, "GET", path, NULL, &answer), 200);
	role = cJSON_Parse(answer.data);
	rules = cJSON_DetachItemFromObjectCaseSensitive(role, "rules");
	assert_non_null(rules);
	cJSON_Delete(role);
	buf_fini(&answer);
	return rules;
}

/* Takes the rules. */
static void write_rules(const struct kube_actuator *a, const char *path, cJSON *rules)
{
	cJSON *role = cJSON_CreateObject();
	char *text;

	cJSON_AddItemToObject(role, "rules", rules);
	text = cJSON_PrintUnformatted(role);
	control_plane_must(a->bed->plane, "PATCH", path, text);
	cJSON_free(text);
	cJSON_Delete(role);
}

/* Rules that do not allow the verb for the resource. */
static cJSON *without(const cJSON *rules, const struct kube_actuator_rule *rule)
{
	cJSON *others = cJSON_CreateArray();
	const cJSON *r;

	cJSON_ArrayForEach (r, rules) {
		if (!has_word(json_at(r, "resources"), rule->resource) ||
		    !has_word(json_at(r, "verbs"), rule->verb))
			cJSON_AddItemToArray(others, cJSON_Duplicate(r, true));
	}
	assert_int_not_equal(cJSON_GetArraySize(others), cJSON_GetArraySize(rules));
	return others;
}

void kube_actuator_expect_rules(struct kube_actuator *a, const struct kube_actuator_rule *rules,
				size_t count, size_t programs, void (*meanwhile)(void *ctx),
				void *ctx)
{
	for (size_t i = 0; i < count; i++) {
		char *path = mem_printf("/apis/rbac.authorization.k8s.io/v1/%s", rules[i].role);
		char *log = mem_printf("actuator-without-rule-%zu", i);
		cJSON *all = read_rules(a, path);

		write_rules(a, path, without(all, &rules[i]));
		kube_actuator_stop(a, SIGKILL);
		kube_actuator_name_log(a, log);
		for (size_t k = 0; k < programs; k++)
			kube_actuator_start(a, k);
		print_message("    without %s of %s\n", rules[i].verb, rules[i].resource);
		expect((struct wish){a, rules[i].says, meanwhile, ctx}, 120);
		write_rules(a, path, all);
		free(path);
		free(log);
	}
}
