/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_drain_commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

/* Controllers, the scheduler and waits of kubectl, on a machine that may be busy with other tests. */
#define SECONDS 240

#define text_at	  kube_drain_text
#define number_at kube_drain_number

/* --- evenkeel -------------------------------------------------------------------------------- */

int kube_drain_cli(const struct kube_drain_world *w, const char *const *words, struct buf *out)
{
	char *url = mem_printf("http://127.0.0.1:%d", w->bed->aggregators[0].http_port), *argv[16];
	struct buf err = BUF_INIT;
	size_t n = 0;
	int status;

	argv[n++] = (char *)program_path("evenkeel");
	for (; *words; words++)
		argv[n++] = (char *)*words;
	argv[n++] = (char *)"--server";
	argv[n++] = url;
	argv[n] = NULL;
	buf_clear(out);
	status = process_run(argv, out, &err);
	if (status && status != 3 && status != 4)
		fail_msg("evenkeel %s: %d: %s", argv[1], status, err.data ? err.data : "");
	buf_add_str(out, "");
	buf_fini(&err);
	free(url);
	return status;
}

/* --- sh -------------------------------------------------------------------------------------- */

struct shell {
	const struct kube_drain_script *script;
	char *file, *log;
	pid_t pid; /* 0: it ended */
	int status;
	struct kube_drain_look look; /* the last */
};

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void read_text(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "re");
	char line[512];

	buf_clear(out);
	while (f && fgets(line, sizeof(line), f))
		buf_add_str(out, line);
	if (f)
		fclose(f);
	buf_add_str(out, "");
}

static void start_shell(struct shell *s)
{
	const struct kube_testbed *bed = s->script->world->bed;
	char *path = mem_printf("PATH=%s:%s", bed->plane->bin, getenv("PATH"));
	char *config = mem_printf("KUBECONFIG=%s", bed->plane->admin);
	char *home = mem_printf("HOME=%s", bed->folder);
	char *argv[] = {(char *)"env", path,	     config,  home,
			(char *)"sh",  (char *)"-e", s->file, NULL};

	s->file = argv[6] = mem_printf("%s/script", bed->folder);
	s->log = mem_printf("%s/script.log", bed->folder);
	write_text(s->file, s->script->text);
	write_text(s->log, "");
	s->pid = process_start(s->log, argv);
	assert_true(s->pid > 0);
	free(path);
	free(config);
	free(home);
}

static bool has_ended(struct shell *s)
{
	int status;

	if (s->pid && waitpid(s->pid, &status, WNOHANG) == s->pid) {
		s->pid = 0;
		s->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return !s->pid;
}

/* It ended before the look: what it did is in it. */
static bool is_done(void *ctx)
{
	struct shell *s = ctx;
	bool ended = has_ended(s);

	kube_drain_look_fini(&s->look);
	if (!kube_drain_world_look(s->script->world, &s->look))
		return false;
	if (s->script->seen)
		s->script->seen(s->script->ctx, &s->look);
	return ended && (s->status || kube_drain_world_is_settled(s->script->world, &s->look));
}

void kube_drain_run(const struct kube_drain_script *script, struct kube_drain_look *out)
{
	struct shell s = {.script = script};
	struct buf said = BUF_INIT;
	bool done;

	start_shell(&s);
	done = control_plane_await(script->world->bed->plane, is_done, &s, SECONDS);
	if (!done && s.pid)
		process_stop(s.pid, SIGKILL);
	read_text(s.log, script->said ? script->said : &said);
	if (!done || s.status)
		fail_msg("seed %llu: %s, with status %d; %zu pods are bound, %zu are not, %zu are "
			 "leaving; of\n%s\ncame\n%s",
			 (unsigned long long)script->world->seed,
			 done ? "a command failed" : "the commands do not end, or nothing settles",
			 s.status, s.look.bound, s.look.unbound, s.look.leaving, script->text,
			 script->said ? script->said->data : said.data);
	*out = s.look;
	buf_fini(&said);
	free(s.file);
	free(s.log);
}

/* --- the plan of what there is --------------------------------------------------------------- */

struct planning {
	struct kube_drain_world *world;
	struct kube_drain_look *look;
	double version; /* of a view that has all of the look; 0: none was seen */
	const char *missing; /* at the last try */
	cJSON *plan; /* the newest */
};

static bool is_told(const cJSON *told, const cJSON *pod)
{
	const char *uid = text_at(pod, "metadata.uid"), *node = text_at(pod, "spec.nodeName");
	const cJSON *t;

	cJSON_ArrayForEach (t, told) {
		if (strcmp(text_at(t, "uid"), uid) == 0)
			return strcmp(text_at(t, "node"), node) == 0;
	}
	return false;
}

static bool pods_are_told(struct planning *p)
{
	cJSON *told = kube_testbed_items(p->world->bed, 0, "/v1/pods");
	const cJSON *pods = json_at(p->look->pods, "items"), *pod;

	if (cJSON_GetArraySize(told) != cJSON_GetArraySize(pods))
		p->missing = "the number of pods";
	cJSON_ArrayForEach (pod, pods) {
		if (!is_told(told, pod))
			p->missing = text_at(pod, "metadata.name");
	}
	cJSON_Delete(told);
	return !p->missing;
}

static bool budgets_are_true(struct planning *p)
{
	cJSON *budgets = kube_drain_world_budgets(p->world);

	if (!kube_drain_world_budgets_are_true(budgets, p->look))
		p->missing = "a budget that counts its pods";
	cJSON_Delete(budgets);
	return !p->missing;
}

/* With the resources that the aggregator follows. */
static double whole_view(struct planning *p)
{
	bool told = budgets_are_true(p) && pods_are_told(p); /* asked first: views only get newer */
	cJSON *status = kube_testbed_get(p->world->bed, 0, "/v1/status");
	cJSON *nodes = kube_drain_world_get(p->world, "/api/v1/nodes");
	double version = told ? number_at(status, "view.version") : 0;
	const cJSON *r;

	if (number_at(status, "view.nodes") != cJSON_GetArraySize(json_at(nodes, "items")))
		version = 0;
	cJSON_ArrayForEach (r, json_at(status, "kubernetes.resources")) {
		const char *state = text_at(r, "state");

		if (strcmp(state, "synced") != 0 && strcmp(state, "absent") != 0)
			version = 0;
	}
	cJSON_Delete(nodes);
	cJSON_Delete(status);
	return version;
}

/* Pods that came last run since the look before, and budgets are to count them. */
static void look_anew(struct planning *p)
{
	kube_drain_look_fini(p->look);
	if (kube_drain_world_look(p->world, p->look))
		p->version = whole_view(p);
}

/* How long nodes are unneeded is known with the second plan. */
static bool waits_for_time(const cJSON *plan)
{
	const cJSON *node, *reason;

	cJSON_ArrayForEach (node, json_at(plan, "items")) {
		cJSON_ArrayForEach (reason, json_at(node, "reasons")) {
			if (strcmp(text_at(reason, "code"), "NotUnneededLongEnough") == 0)
				return true;
		}
	}
	return false;
}

static bool is_planned(void *ctx)
{
	struct planning *p = ctx;

	p->missing = NULL;
	if (!p->version)
		look_anew(p);
	cJSON_Delete(p->plan);
	p->plan = p->version ? kube_testbed_get(p->world->bed, 0, "/v1/drain?explain=true") : NULL;
	return p->plan && number_at(p->plan, "viewVersion") >= p->version &&
	       !waits_for_time(p->plan);
}

cJSON *kube_drain_await_plan(struct kube_drain_world *w, struct kube_drain_look *look)
{
	struct planning p = {.world = w, .look = look};

	if (!control_plane_await(w->bed->plane, is_planned, &p, SECONDS))
		fail_msg("seed %llu: there is no plan of what there is; missing is %s",
			 (unsigned long long)w->seed, p.missing ? p.missing : "the plan");
	return p.plan;
}
