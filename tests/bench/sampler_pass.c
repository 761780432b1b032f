/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one pass over N cgroups costs by each way: T0, T1 and T2 (BPF), reading the files of the
 * same values with open, read, close, the same with kept descriptors and pread, and T3, which is
 * the latter inside the agent. T2 goes by processes, so it takes part where each cgroup can be
 * given one at its birth (v2) and their number leaves the machine usable.
 *
 * The ways take turns within a round, each after the caches were filled with other data, as they
 * are when the agent wakes up ten times a second. Measured is CPU time of the thread, so that other
 * work on the machine counts little; told is the median over the rounds. All tiers end with the
 * values in the topology's readings; the files end with parsed numbers. Every cgroup is made
 * for this and removed after, also when interrupted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/cgroup_fixture.h"

enum { ROUNDS_MAX = 201, FIELDS_MAX = 12, CHILL_BYTES = 8 * 1024 * 1024, PROCESSES_MAX = 500 };

/* The tiers first, by their numbers. */
enum way { WAY_T0, WAY_T1, WAY_T2, WAY_T3, WAY_OPEN, WAY_KEPT, WAYS };

static const char *const way_names[WAYS] = {
	[WAY_T0] = "T0",
	[WAY_T1] = "T1",
	[WAY_T2] = "T2",
	[WAY_T3] = "T3",
	[WAY_OPEN] = "open/read/close",
	[WAY_KEPT] = "kept files, pread",
};

/* One file, and where in it the number is that stands for all of it. */
struct field {
	int hierarchy;
	const char *file;
	const char *key; /* NULL: the whole file */
};

struct layout {
	const char *name;
	unsigned int hierarchies;
	double open_budget, kept_budget; /* ratios to T1; NAN: none */
	double share_budget; /* of the whole agent: percent of one core at 10 Hz and 500 cgroups */
	struct field fields[2][FIELDS_MAX]; /* by pass kind */
};

static const struct layout v1_layout = {
	.name = "v1",
	.hierarchies = 1 << HIERARCHY_CPUACCT | 1 << HIERARCHY_CPU | 1 << HIERARCHY_MEMORY,
	.open_budget = 10,
	.kept_budget = 4,
	.share_budget = 2,
	.fields = {[PASS_FAST] = {{HIERARCHY_CPUACCT, "cpuacct.usage", NULL},
				  {HIERARCHY_MEMORY, "memory.usage_in_bytes", NULL}},
		   [PASS_SLOW] = {{HIERARCHY_CPUACCT, "cpuacct.usage", NULL},
				  {HIERARCHY_MEMORY, "memory.usage_in_bytes", NULL},
				  {HIERARCHY_MEMORY, "memory.limit_in_bytes", NULL},
				  {HIERARCHY_MEMORY, "memory.stat", "total_inactive_file "},
				  {HIERARCHY_MEMORY, "memory.oom_control", "oom_kill "},
				  {HIERARCHY_CPU, "cpu.cfs_quota_us", NULL},
				  {HIERARCHY_CPU, "cpu.cfs_period_us", NULL},
				  {HIERARCHY_CPU, "cpu.stat", "nr_throttled "}}},
};

/* The v2 tree of a machine whose controllers are elsewhere: a lower bound of what v2 costs. */
static const struct layout unified_layout = {
	.name = "v2 bare",
	.hierarchies = 1 << HIERARCHY_UNIFIED,
	.open_budget = NAN,
	.kept_budget = NAN,
	.share_budget = 1,
	.fields = {[PASS_FAST] = {{HIERARCHY_UNIFIED, "cpu.stat", "usage_usec "}},
		   [PASS_SLOW] = {{HIERARCHY_UNIFIED, "cpu.stat", "usage_usec "},
				  {HIERARCHY_UNIFIED, "cpu.pressure", "total="},
				  {HIERARCHY_UNIFIED, "memory.pressure", "total="}}},
};

static const struct layout v2_layout = {
	.name = "v2",
	.hierarchies = 1 << HIERARCHY_UNIFIED,
	.open_budget = 35,
	.kept_budget = 6,
	.share_budget = 1,
	.fields = {[PASS_FAST] = {{HIERARCHY_UNIFIED, "cpu.stat", "usage_usec "},
				  {HIERARCHY_UNIFIED, "memory.current", NULL}},
		   [PASS_SLOW] = {{HIERARCHY_UNIFIED, "cpu.stat", "usage_usec "},
				  {HIERARCHY_UNIFIED, "memory.current", NULL},
				  {HIERARCHY_UNIFIED, "memory.max", NULL},
				  {HIERARCHY_UNIFIED, "memory.stat", "inactive_file "},
				  {HIERARCHY_UNIFIED, "memory.events", "oom_kill "},
				  {HIERARCHY_UNIFIED, "cpu.max", NULL},
				  {HIERARCHY_UNIFIED, "pids.current", NULL},
				  {HIERARCHY_UNIFIED, "cpu.pressure", "total="},
				  {HIERARCHY_UNIFIED, "memory.pressure", "total="}}},
};

/* One layout with N cgroups in it, and every way ready to go. */
struct scene {
	const struct layout *layout;
	int cgroups;
	struct cgroupfs fs; /* of the fixture's cgroup */
	struct topology *topology;
	struct sampler *tier[SAMPLER_TIERS]; /* NULL: cannot work here */
	int *kept; /* descriptors by cgroup and field, in slow order; NULL: too many */
	uint64_t pass;
	uint64_t checksum; /* so that nothing is optimised away */
};

static volatile sig_atomic_t interrupted;
static char *chill_block;

static void interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void chill(void)
{
	for (size_t i = 0; i < CHILL_BYTES; i += 64)
		chill_block[i]++;
}

static int field_count(const struct layout *layout, enum pass_kind kind)
{
	int n = 0;

	while (n < FIELDS_MAX && layout->fields[kind][n].file)
		n++;
	return n;
}

/* --- the ways -------------------------------------------------------------------------------- */

static uint64_t parse(char *text, ssize_t len, const char *key)
{
	const char *at = text;

	if (len <= 0)
		return 0;
	text[len] = '\0';
	if (key) {
		at = strstr(text, key);
		at = at ? at + strlen(key) : "";
	}
	return strtoull(at, NULL, 10);
}

static int open_field(const struct scene *s, int cgroup, const struct field *field)
{
	char path[256];

	snprintf(path, sizeof(path), "pod%d/%s", cgroup, field->file);
	return openat(s->fs.root_fd[field->hierarchy], path, O_RDONLY | O_CLOEXEC);
}

static void pass_open(struct scene *s, enum pass_kind kind)
{
	int count = field_count(s->layout, kind);
	char text[8192];

	for (int c = 0; c < s->cgroups; c++) {
		for (int i = 0; i < count; i++) {
			const struct field *field = &s->layout->fields[kind][i];
			int fd = open_field(s, c, field);

			s->checksum += parse(text, read(fd, text, sizeof(text) - 1), field->key);
			close(fd);
		}
	}
}

static void pass_kept(struct scene *s, enum pass_kind kind)
{
	int count = field_count(s->layout, kind);
	int stride = field_count(s->layout, PASS_SLOW);
	char text[8192];

	/* The fields of a fast pass are the first ones of a slow pass. */
	for (int c = 0; c < s->cgroups; c++) {
		for (int i = 0; i < count; i++)
			s->checksum +=
				parse(text,
				      pread(s->kept[c * stride + i], text, sizeof(text) - 1, 0),
				      s->layout->fields[kind][i].key);
	}
}

static void pass_sampler(struct scene *s, struct sampler *sampler, enum pass_kind kind)
{
	struct pass_result result;
	struct error error = {""};

	if (!sampler_pass(sampler, s->topology, kind, ++s->pass, &result, &error) &&
	    result.records == (uint32_t)s->cgroups + 1 && !result.unknown && !result.missing)
		return;
	fprintf(stderr, "a pass met %u of %d cgroups: %s\n", result.records, s->cgroups + 1,
		error.text);
	interrupted = 1;
}

static bool way_works(const struct scene *s, enum way way)
{
	if ((int)way < SAMPLER_TIERS)
		return s->tier[way];
	return way != WAY_KEPT || s->kept;
}

static void take(struct scene *s, enum way way, enum pass_kind kind)
{
	if ((int)way < SAMPLER_TIERS)
		pass_sampler(s, s->tier[way], kind);
	else if (way == WAY_OPEN)
		pass_open(s, kind);
	else
		pass_kept(s, kind);
}

/* --- measuring ------------------------------------------------------------------------------- */

/* Medians in microseconds per pass; 0 for a way that does not work here. */
static void measure(struct scene *s, enum pass_kind kind, double us[WAYS])
{
	static double all[WAYS][ROUNDS_MAX];
	int rounds = s->cgroups <= 50 ? ROUNDS_MAX : s->cgroups <= 500 ? 61 : 21;

	memset(us, 0, WAYS * sizeof(*us));
	/* The first round fills what each way keeps. */
	for (int round = -1; round < rounds; round++) {
		for (int way = 0; way < WAYS && !interrupted; way++) {
			int64_t begin;

			if (!way_works(s, (enum way)way))
				continue;
			chill();
			begin = cpu_ns();
			take(s, (enum way)way, kind);
			if (round >= 0)
				all[way][round] = (double)(cpu_ns() - begin) / 1000;
		}
	}
	for (int way = 0; way < WAYS && !interrupted; way++) {
		if (way_works(s, (enum way)way))
			us[way] = bench_median(all[way], (size_t)rounds);
	}
}

static void report(const struct scene *s, enum pass_kind kind, const double us[WAYS])
{
	const struct layout *layout = s->layout;
	const double budgets[WAYS] = {
		[WAY_T3] = NAN, [WAY_OPEN] = layout->open_budget, [WAY_KEPT] = layout->kept_budget};
	char what[96];

	for (int way = 0; way < WAYS; way++) {
		snprintf(what, sizeof(what), "%s, %d cgroups, %s (%d files): %s", layout->name,
			 s->cgroups, kind == PASS_FAST ? "fast" : "slow", field_count(layout, kind),
			 way_names[way]);
		if (us[way] <= 0)
			continue;
		if (way <= WAY_T2 || us[WAY_T1] <= 0)
			bench_row(what, "us", NAN, 0, us[way]);
		else
			bench_row(what, "x T1", budgets[way], 1, us[way] / us[WAY_T1]);
		if (way <= WAY_T2)
			bench_row("    per cgroup", "ns", NAN, 0,
				  us[way] * 1000 / (s->cgroups + 1));
	}
}

static void report_share(const struct scene *s, double fast_us, double slow_us)
{
	/* Nine fast passes and a slow one each second. */
	double percent = (9 * fast_us + slow_us) / 1e6 * 100;
	char what[96];

	snprintf(what, sizeof(what), "%s, %d cgroups, T1 passes at 10 Hz", s->layout->name,
		 s->cgroups);
	bench_row(what, "% of core", s->cgroups == 500 ? s->layout->share_budget : NAN, 0, percent);
}

/* --- scenes ---------------------------------------------------------------------------------- */

/* Keeps of the fixture's hierarchies those of the layout. */
static void open_fs(struct scene *s, const struct cgroup_fixture *f)
{
	cgroup_fixture_open_below(f, &s->fs);
	for (int h = 0; h < HIERARCHIES; h++) {
		if (s->layout->hierarchies >> h & 1 || s->fs.root_fd[h] < 0)
			continue;
		close(s->fs.root_fd[h]);
		s->fs.root_fd[h] = -1;
		free(s->fs.mount[h]);
		s->fs.mount[h] = NULL;
	}
	if (s->fs.root_fd[HIERARCHY_UNIFIED] < 0)
		return;
	s->fs.cpu_from = HIERARCHY_UNIFIED;
	if (s->layout != &v2_layout)
		s->fs.throttle_from = s->fs.memory_from = -1;
}

static bool room_for(int descriptors)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return (rlim_t)descriptors + 64 <= limit.rlim_cur;
}

static void open_kept(struct scene *s)
{
	int count = field_count(s->layout, PASS_SLOW);

	if (!room_for(s->cgroups * count))
		return;
	s->kept = mem_zalloc((size_t)s->cgroups, (size_t)count * sizeof(*s->kept));
	for (int c = 0; c < s->cgroups; c++) {
		for (int i = 0; i < count; i++)
			s->kept[c * count + i] = open_field(s, c, &s->layout->fields[PASS_SLOW][i]);
	}
}

static void open_tiers(struct scene *s, bool populated)
{
	for (int i = 0; i < SAMPLER_TIERS; i++) {
		struct error error = {""};

		/* T3 keeps as many descriptors as we do. */
		if ((i == TIER_T3 &&
		     !room_for(2 * s->cgroups * field_count(s->layout, PASS_SLOW))) ||
		    (i == TIER_T2 && !populated))
			continue;
		if (sampler_open_ops(&s->tier[i], sampler_all_ops[i], &s->fs, &error))
			printf("%s cannot work here: %s\n", way_names[i], error.text);
	}
}

static int open_scene(struct scene *s, bool populated, struct error *error)
{
	int err;

	s->topology = topology_new();
	err = cgroupfs_scan(&s->fs, s->topology, error);
	if (err)
		return err;
	open_tiers(s, populated);
	open_kept(s);
	return 0;
}

static void close_scene(struct scene *s)
{
	int count = s->cgroups * field_count(s->layout, PASS_SLOW);

	for (int i = 0; s->kept && i < count; i++)
		close(s->kept[i]);
	free(s->kept);
	for (int i = 0; i < SAMPLER_TIERS; i++)
		sampler_close(s->tier[i]);
	topology_free(s->topology);
	cgroupfs_close(&s->fs);
}

static pid_t processes[PROCESSES_MAX];
static int process_count;

/* Born in the cgroup, where it waits for its end. */
static void populate(const struct cgroupfs *fs, const char *name)
{
	int fd = openat(fs->root_fd[HIERARCHY_UNIFIED], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .flags = CLONE_INTO_CGROUP,
				  .cgroup = (__u64)fd};
	pid_t pid = fd < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (fd >= 0)
		close(fd);
	if (pid > 0)
		processes[process_count++] = pid;
}

static void populate_all(const struct cgroup_fixture *f, int to)
{
	struct cgroupfs below;
	char name[32];

	cgroup_fixture_open_below(f, &below);
	while (process_count < to && process_count < PROCESSES_MAX && !interrupted) {
		int before = process_count;

		snprintf(name, sizeof(name), "pod%d", process_count);
		populate(&below, name);
		if (process_count == before)
			break;
	}
	cgroupfs_close(&below);
}

static void end_processes(void)
{
	for (int i = 0; i < process_count; i++) {
		kill(processes[i], SIGKILL);
		waitpid(processes[i], NULL, 0);
	}
	process_count = 0;
}

static void make_cgroups(struct cgroup_fixture *f, unsigned int hierarchies, int from, int to)
{
	char name[32];

	for (int c = from; c < to && !interrupted; c++) {
		snprintf(name, sizeof(name), "pod%d", c);
		cgroup_fixture_make(f, hierarchies, name);
	}
}

static int run_scene(const struct cgroup_fixture *f, const struct layout *layout, int cgroups)
{
	struct scene s = {.layout = layout, .cgroups = cgroups};
	struct error error = {""};
	double fast[WAYS], slow[WAYS];
	int err;

	open_fs(&s, f);
	err = open_scene(&s, process_count >= cgroups, &error);
	if (err) {
		fprintf(stderr, "%s\n", error.text);
	} else {
		measure(&s, PASS_FAST, fast);
		measure(&s, PASS_SLOW, slow);
		if (!interrupted) {
			report(&s, PASS_FAST, fast);
			report(&s, PASS_SLOW, slow);
			if (s.tier[TIER_T1])
				report_share(&s, fast[WAY_T1], slow[WAY_T1]);
		}
	}
	close_scene(&s);
	return err;
}

static int run_layout(const struct layout *layout)
{
	static const int sizes[] = {50, 500, 2000};
	struct error error = {""};
	struct cgroup_fixture *f = cgroup_fixture_new("bench", &error);
	int made = 0, err = 0;

	if (!f) {
		printf("SKIP: %s\n", error.text);
		return 0;
	}
	for (size_t i = 0; i < 3 && !err && !interrupted; i++) {
		make_cgroups(f, layout->hierarchies, made, sizes[i]);
		made = sizes[i];
		if (layout->hierarchies == 1 << HIERARCHY_UNIFIED && made <= PROCESSES_MAX)
			populate_all(f, made);
		if (!interrupted)
			err = run_scene(f, layout, made);
	}
	end_processes();
	cgroup_fixture_free(f);
	return err;
}

/* --- start ----------------------------------------------------------------------------------- */

static double resident_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (f) {
		if (fscanf(f, "%*d %ld", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

/* What opening T1 over this machine takes, before anything else was allocated. */
static void measure_open(const struct cgroupfs *fs)
{
	struct error error = {""};
	double before = resident_mib();
	int64_t begin = clock_mono_ns();
	struct sampler *s;

	if (sampler_open_ops(&s, sampler_all_ops[TIER_T1], fs, &error)) {
		printf("T1 cannot work here: %s\n", error.text);
		return;
	}
	bench_row("open T1", "ms", 250, 0, (double)(clock_mono_ns() - begin) / 1e6);
	bench_row("resident with T1 open", "MiB", 8, 0, resident_mib());
	bench_row("resident before", "MiB", NAN, 0, before);
	sampler_close(s);
}

int main(void)
{
	struct sigaction action = {.sa_handler = interrupt};
	struct error error = {""};
	struct cgroupfs fs;
	bool v1, v2;
	int err;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (cgroupfs_open(&fs, "/sys/fs/cgroup", NULL, &error)) {
		printf("SKIP: %s\n", error.text);
		return 0;
	}
	bench_begin("sampler_pass");
	measure_open(&fs);
	v1 = fs.cpu_from == HIERARCHY_CPUACCT && fs.memory_from == HIERARCHY_MEMORY &&
	     fs.throttle_from == HIERARCHY_CPU;
	v2 = fs.memory_from == HIERARCHY_UNIFIED;
	chill_block = mem_zalloc(1, CHILL_BYTES);
	err = v1 ? run_layout(&v1_layout) : 0;
	if (!err && fs.root_fd[HIERARCHY_UNIFIED] >= 0)
		err = run_layout(v2 ? &v2_layout : &unified_layout);
	cgroupfs_close(&fs);
	free(chill_block);
	bench_end();
	return err || interrupted ? 1 : 0;
}
