/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real agent without rights, and what it must go on doing: publish, take new keys, find an
 * aggregator again that was gone, fall to a lower tier, end when told. And the agent that was given
 * few rights or none to begin with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler.h"
#include "agent/sampler_tier.h"
#include "bpf/record.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/privileges.h"
#include "tests/process.h"
#include "tests/stack.h"

#define SECONDS 60

enum { NOBODY = 65534, IDS_MAX = 32, GROWN = 1100 };

struct scene {
	struct stack *stack;
	struct cgroup_fixture *cgroups; /* NULL: none of our own */
	const char *tier; /* awaited */
	double samples; /* to be exceeded */
	const char *words; /* awaited in the agent's log */
};

static void put_key(const struct stack *s, const char *name)
{
	char *path = mem_printf("%s/%s", s->key_path, name);
	unsigned char key[KEY_LEN];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);

	randombytes_buf(key, sizeof(key));
	assert_int_equal(write(fd, key, sizeof(key)), sizeof(key));
	close(fd);
	free(path);
}

/* The keys are in a folder of their own, so that they can be exchanged. */
static int setup(void **state)
{
	static struct scene scene;
	struct stack *s;

	if (sodium_init() < 0)
		return -1;
	scene = (struct scene){.stack = stack_new()};
	s = scene.stack;
	free(s->key_path);
	s->key_path = mem_printf("%s/keys", s->folder);
	if (mkdir(s->key_path, 0755) || chmod(s->folder, 0711))
		return -1;
	put_key(s, "1");
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stack_free(s->stack, s->stack->agent != 0);
	cgroup_fixture_free(s->cgroups);
	return 0;
}

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("SKIP: only root can give rights away\n");
	skip();
}

/* --- what the aggregator and the log say ------------------------------------------------------ */

static bool publishes(void *ctx)
{
	struct scene *s = ctx;
	cJSON *list = stack_get(s->stack, 0, "/v1/nodes");
	const cJSON *node = json_item(list, "test-node");
	const char *tier = cJSON_GetStringValue(json_at(node, "source.tier"));
	double samples =
		cJSON_GetNumberValue(json_at(node, "usage.cpuMillicores.windows.5m.samples"));
	bool does = tier && !strcmp(tier, s->tier) && samples > s->samples;

	cJSON_Delete(list);
	return does;
}

/* Awaits that more samples of this tier arrive than so far. */
static void await_more(struct scene *s, const char *tier)
{
	cJSON *list = stack_get(s->stack, 0, "/v1/nodes");
	double samples = cJSON_GetNumberValue(
		json_at(json_item(list, "test-node"), "usage.cpuMillicores.windows.5m.samples"));

	cJSON_Delete(list);
	s->samples = samples > 0 ? samples : 0;
	s->tier = tier;
	if (!await(publishes, s, SECONDS))
		fail_msg("the agent publishes nothing by tier %s", tier);
}

static char *read_log(const struct scene *s, const char *name)
{
	char *path = mem_printf("%s/%s-0.log", s->stack->folder, name);
	char *text = mem_zalloc(1, 65536);
	FILE *log = fopen(path, "re");

	if (log) {
		text[fread(text, 1, 65535, log)] = '\0';
		fclose(log);
	}
	free(path);
	return text;
}

static bool log_has(void *ctx)
{
	struct scene *s = ctx;
	char *text = read_log(s, "agent");
	bool has = strstr(text, s->words);

	free(text);
	return has;
}

static void await_words(struct scene *s, const char *words)
{
	s->words = words;
	if (!await(log_has, s, SECONDS))
		fail_msg("the agent does not say: %s", words);
}

static bool aggregator_read_keys_again(void *ctx)
{
	char *text = read_log(ctx, "aggregator");
	bool has = strstr(text, "read the keys again");

	free(text);
	return has;
}

static void assert_confined(const struct scene *s)
{
	int threads;

	assert_true(privileges_confined(s->stack->agent, 0, &threads));
	/* At least nanomsg's is there too. */
	assert_true(threads >= 2);
}

/* --- taking a tier away ----------------------------------------------------------------------- */

static uint32_t number_after(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? (uint32_t)strtoul(line + strlen(name), NULL, 10) : 0;
}

/* The values of `name` in the descriptors of a process that are BPF iterators. */
static size_t iterators(pid_t pid, const char *name, uint32_t ids[IDS_MAX])
{
	char *folder = mem_printf("/proc/%d/fdinfo", (int)pid), text[1024];
	DIR *infos = opendir(folder);
	struct dirent *info;
	size_t count = 0;

	while (infos && (info = readdir(infos)) && count < IDS_MAX) {
		int fd = openat(dirfd(infos), info->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (fd >= 0)
			close(fd);
		text[got > 0 ? got : 0] = '\0';
		if (strstr(text, "link_type:\titer\n") && number_after(text, name))
			ids[count++] = number_after(text, name);
	}
	if (infos)
		closedir(infos);
	free(folder);
	return count;
}

/*
 * The agent's walks get the program of a sampler of ours, which writes into memory of ours: for the
 * agent they find nothing any more.
 */
static void divert_walks(pid_t agent)
{
	struct cgroupfs fs = {.root_fd = {-1, -1, -1, -1, -1}};
	uint32_t links[IDS_MAX], programs[IDS_MAX] = {0};
	struct error error = {""};
	struct sampler *ours = NULL;
	size_t count = iterators(agent, "link_id:", links);
	int program;

	if (cgroupfs_open(&fs, "/sys/fs/cgroup", NULL, &error) ||
	    sampler_open_ops(&ours, sampler_all_ops[TIER_T1], &fs, &error))
		fail_msg("%s", error.text);
	assert_true(count > 0 && iterators(getpid(), "prog_id:", programs) > 0);
	program = bpf_prog_get_fd_by_id(programs[0]);
	assert_true(program >= 0);
	for (size_t i = 0; i < count; i++) {
		int link = bpf_link_get_fd_by_id(links[i]);

		assert_true(link >= 0);
		assert_int_equal(bpf_link_update(link, program, NULL), 0);
		close(link);
	}
	close(program);
	sampler_close(ours);
	cgroupfs_close(&fs);
}

/* --- the agent of root ------------------------------------------------------------------------ */

/* The tier the agent says it begins with. */
static const char *first_tier(struct scene *s)
{
	static char tier[3];
	char *text, *found;

	await_words(s, ": tier ");
	text = read_log(s, "agent");
	found = strstr(text, ": tier ");
	memcpy(tier, found + strlen(": tier "), 2);
	free(text);
	return tier;
}

/* The aggregator forgets the old key, so only who has read the new one is heard. */
static void exchange_keys(struct scene *s)
{
	char *old = mem_printf("%s/1", s->stack->key_path);

	put_key(s->stack, "2");
	kill(s->stack->agent, SIGHUP);
	await_words(s, "read the keys again");
	assert_int_equal(unlink(old), 0);
	kill(s->stack->aggregators[0].pid, SIGHUP);
	assert_true(await(aggregator_read_keys_again, s, SECONDS));
	free(old);
}

static void test_life_without_rights(void **state)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	struct scene *s = *state;
	const char *tier;

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	tier = first_tier(s);
	await_more(s, tier);
	assert_confined(s);
	exchange_keys(s);
	await_more(s, tier);
	stack_kill_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 0);
	await_more(s, tier);
	assert_confined(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

/* True when it has begun to sample or ended without. */
static bool began_or_ended(void *ctx)
{
	struct scene *s = ctx;
	siginfo_t end = {0};

	s->words = ": tier ";
	waitid(P_PID, (id_t)s->stack->agent, &end, WEXITED | WNOHANG | WNOWAIT);
	return end.si_pid || log_has(s);
}

/* Where a hybrid machine has its v2 tree, which T0 is made for. */
static const char *root_for(const char *tier)
{
	static const char unified[] = "/sys/fs/cgroup/unified";

	return !strcmp(tier, "T0") && access(unified, X_OK) == 0 ? unified : "/sys/fs/cgroup";
}

static void run_tier(struct scene *s, const char *tier)
{
	const char *const options[] = {"--interval",	"1s",		"--tier", tier,
				       "--cgroup-root", root_for(tier), NULL};

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	assert_true(await(began_or_ended, s, SECONDS));
	s->words = ": tier ";
	if (!log_has(s)) {
		char *text = read_log(s, "agent");

		print_message("SKIP: %s", text);
		free(text);
		stack_stop_agent(s->stack, SIGKILL);
		skip();
	}
	await_more(s, tier);
	await_more(s, tier);
	assert_confined(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

static void test_t0(void **state)
{
	run_tier(*state, "T0");
}

static void test_t1(void **state)
{
	run_tier(*state, "T1");
}

static void test_t2(void **state)
{
	run_tier(*state, "T2");
}

static void test_t3(void **state)
{
	run_tier(*state, "T3");
}

/* --- more cgroups than it mapped records for -------------------------------------------------- */

/* Of the BPF maps in a process's memory. */
static size_t mapped_records_bytes(pid_t pid)
{
	char *path = mem_printf("/proc/%d/maps", (int)pid), line[512];
	FILE *maps = fopen(path, "re");
	size_t sum = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (strstr(line, "bpf-map") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			sum += to - from;
	}
	fclose(maps);
	free(path);
	return sum;
}

struct growth {
	const struct stack *stack;
	const char *prefix; /* of the cgroups' names */
};

static bool all_are_listed(void *ctx)
{
	const struct growth *g = ctx;
	cJSON *list = stack_get(g->stack, 0, "/v1/pods?limit=5000");
	const cJSON *item;
	int count = 0;

	cJSON_ArrayForEach (item, json_at(list, "items")) {
		const char *name = cJSON_GetStringValue(json_at(item, "name"));

		count += name && strstr(name, g->prefix);
	}
	cJSON_Delete(list);
	return count >= GROWN;
}

static void assert_nothing_overflows(const struct stack *s)
{
	cJSON *list = stack_get(s, 0, "/v1/nodes");
	const cJSON *node = json_item(list, "test-node");

	assert_true(cJSON_GetNumberValue(json_at(node, "source.overflowCgroups")) == 0);
	cJSON_Delete(list);
}

/* Skips where no tier works that meets cgroups without processes. */
static const char *need_walk_over_cgroups(struct scene *s)
{
	const char *tier = first_tier(s);

	if (!strcmp(tier, "T0") || !strcmp(tier, "T1"))
		return tier;
	print_message("SKIP: %s does not meet cgroups without processes, or takes no BPF\n", tier);
	stack_stop_agent(s->stack, SIGKILL);
	skip();
	return NULL;
}

/* It maps more of its records then, which the filter has to let it do. */
static void test_growth(void **state)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	struct scene *s = *state;
	struct error error = {""};
	struct growth growth;
	const char *tier;
	size_t before;

	s->cgroups = cgroup_fixture_new("growth", &error);
	if (!s->cgroups) {
		print_message("SKIP: %s\n", error.text);
		skip();
	}
	growth = (struct growth){s->stack, cgroup_fixture_path(s->cgroups, NULL) + 1};
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	tier = need_walk_over_cgroups(s);
	await_more(s, tier);
	assert_confined(s);
	before = mapped_records_bytes(s->stack->agent);
	for (int i = 0; i < GROWN; i++) {
		char sub[32];

		snprintf(sub, sizeof(sub), "c%d.service", i);
		cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), sub);
	}
	if (!await(all_are_listed, &growth, SECONDS))
		fail_msg("not all of %d new cgroups are listed", GROWN);
	assert_true(mapped_records_bytes(s->stack->agent) >=
		    before + GROWN * sizeof(struct fast_record));
	assert_nothing_overflows(s->stack);
	await_more(s, tier);
	assert_confined(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

static void test_step_down(void **state)
{
	static const char *const options[] = {"--interval", "1s", "--tier", "T1", NULL};
	struct scene *s = *state;
	struct error error = {""};
	struct cgroupfs fs = {.root_fd = {-1, -1, -1, -1, -1}};
	struct sampler *probe;

	assert_int_equal(cgroupfs_open(&fs, "/sys/fs/cgroup", NULL, &error), 0);
	if (sampler_open_ops(&probe, sampler_all_ops[TIER_T1], &fs, &error)) {
		cgroupfs_close(&fs);
		print_message("SKIP: %s\n", error.text);
		skip();
	}
	sampler_close(probe);
	cgroupfs_close(&fs);
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	await_more(s, "T1");
	divert_walks(s->stack->agent);
	await_words(s, "sampling by tier T3");
	await_more(s, "T3");
	assert_confined(s);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

static void test_confinement_can_be_left_out(void **state)
{
	static const char *const options[] = {"--interval", "1s", "--no-confine", NULL};
	struct scene *s = *state;
	struct privileges own, p;
	char *path;

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	await_words(s, "warning: --no-confine");
	path = mem_printf("/proc/%d/status", (int)s->stack->agent);
	assert_true(privileges_read(path, &p));
	free(path);
	assert_true(privileges_read("/proc/self/status", &own));
	assert_true(p.permitted == own.permitted && p.seccomp == own.seccomp);
	await_more(s, first_tier(s));
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

/* --- the agent of nobody ---------------------------------------------------------------------- */

/*
 * Runs the agent as nobody with these capabilities, from a descriptor, as nobody may not walk to
 * where it was built.
 */
static void start_as_nobody(struct stack *s, const char *capabilities)
{
	char *key = mem_printf("%s/1", s->key_path), *log = mem_printf("%s/agent-0.log", s->folder);
	char *url = mem_printf("tcp://127.0.0.1:%d", s->aggregators[0].ingest_port);
	int fd = open(program_path("evenkeel-agent"), O_RDONLY);
	char *program = mem_printf("/proc/self/fd/%d", fd);
	const char *argv[] = {"/usr/bin/setpriv",
			      "--reuid",
			      "65534",
			      "--regid",
			      "65534",
			      "--clear-groups",
			      "--inh-caps",
			      capabilities,
			      "--ambient-caps",
			      capabilities,
			      program,
			      "--node-name",
			      "test-node",
			      "--interval",
			      "1s",
			      "--key-file",
			      s->key_path,
			      "--aggregator",
			      url,
			      NULL};

	assert_int_equal(chown(key, NOBODY, NOBODY), 0);
	s->agent = process_start(log, (char *const *)argv);
	close(fd);
	free(program);
	free(url);
	free(log);
	free(key);
}

static void need_setpriv(void)
{
	need_root();
	if (access("/usr/bin/setpriv", X_OK) == 0)
		return;
	print_message("SKIP: takes setpriv\n");
	skip();
}

/* Nobody's, but not even nobody may look into it: it holds the key. */
static void assert_closed_to_its_user(const struct scene *s)
{
	char *path = mem_printf("/proc/%d/mem", (int)s->stack->agent);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	free(path);
}

static void test_two_capabilities_are_enough(void **state)
{
	struct scene *s = *state;
	const char *tier;

	need_setpriv();
	stack_start_aggregator(s->stack, 0);
	start_as_nobody(s->stack, "-all,+bpf,+perfmon");
	tier = first_tier(s);
	if (!strcmp(tier, "T3")) {
		print_message("SKIP: no BPF tier works here\n");
		stack_stop_agent(s->stack, SIGKILL);
		skip();
	}
	await_more(s, tier);
	assert_confined(s);
	assert_closed_to_its_user(s);
	kill(s->stack->agent, SIGHUP);
	await_words(s, "read the keys again");
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

/*
 * A key that only root's rights made readable: the agent says whose it is and goes on with the one
 * it has.
 */
static void test_foreign_key(void **state)
{
	struct scene *s = *state;
	char *key = mem_printf("%s/1", s->stack->key_path);

	need_root();
	assert_int_equal(chown(key, NOBODY, NOBODY), 0);
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, NULL);
	await_more(s, first_tier(s));
	kill(s->stack->agent, SIGHUP);
	await_words(s, "keeping the old keys");
	await_words(s, "belongs to user 65534");
	await_more(s, first_tier(s));
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	free(key);
}

static void test_missing_capabilities_are_named(void **state)
{
	static const struct {
		const char *capabilities, *words;
	} cases[] = {
		{"-all", "CAP_BPF and CAP_PERFMON missing"},
		{"-all,+bpf", ": CAP_PERFMON missing"},
		{"-all,+perfmon", ": CAP_BPF missing"},
	};
	struct scene *s = *state;

	need_setpriv();
	stack_start_aggregator(s->stack, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start_as_nobody(s->stack, cases[i].capabilities);
		await_words(s, cases[i].words);
		await_more(s, "T3");
		assert_confined(s);
		assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_life_without_rights),
		TEST(test_t0),
		TEST(test_t1),
		TEST(test_t2),
		TEST(test_t3),
		TEST(test_growth),
		TEST(test_step_down),
		TEST(test_confinement_can_be_left_out),
		TEST(test_two_capabilities_are_enough),
		TEST(test_foreign_key),
		TEST(test_missing_capabilities_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
