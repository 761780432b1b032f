/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tier T3: the files of cgroupfs, for where BPF cannot be used.
 *
 * What is read of a cgroup is the table `sources`, of which the rows that fit the mounted
 * hierarchies are active. A file is opened once and then read by pread from its start, which
 * makes the kernel render it anew; that is about a third of the cost of open, read, close.
 *
 * Descriptors are a budget, of the process and of memory: the kernel keeps a page for each file
 * that was read (4.5 KB were measured) and charges it to us. Beyond the budget a file is opened
 * for each reading. Files of slow passes leave room for the fast ones of all cgroups.
 *
 * Open files belong to a life of a cgroup (its serial) and to the ids it has in the hierarchies:
 * the directory is compared with the id before anything in it is opened, and an open file of a
 * removed cgroup gives ENODEV for ever, so a path that is used again is never read as its
 * predecessor.
 *
 * What can fail: a cgroup vanishes at any moment (it is missing, the caller rescans); a file is
 * not there because its controller is not enabled for that cgroup (not measured; tried again
 * every RETRY_PASSES slow passes, as controllers may be enabled later); descriptors run out.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroup_text.h"
#include "agent/sampler_tier.h"
#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

/* --- what is read ----------------------------------------------------------------------------- */

/* The members of a reading that need two files. */
enum part {
	PART_QUOTA = 1 << 0,
	PART_PERIOD = 1 << 1,
	PART_PSI_CPU = 1 << 2,
	PART_PSI_MEMORY = 1 << 3,
};

/* What a parser of one file fills; what it does not mark as got is not measured. */
struct target {
	struct reading *reading;
	enum pass_kind kind;
	unsigned int parts; /* enum part */
};

static void got(struct target *t, uint32_t have, bool valid)
{
	if (valid)
		t->reading->have |= have;
}

static void got_part(struct target *t, unsigned int part, bool valid)
{
	if (valid)
		t->parts |= part;
}

static void parse_cpuacct_usage(const char *text, struct target *t)
{
	got(t, HAVE_CPU, cgroup_text_number(text, &t->reading->cpu_ns));
}

static bool parse_throttle(const char *text, struct reading *r)
{
	return cgroup_text_key(text, "nr_periods", &r->periods) &&
	       cgroup_text_key(text, "nr_throttled", &r->throttled_periods);
}

static void parse_cpu_stat_v1(const char *text, struct target *t)
{
	got(t, HAVE_THROTTLE,
	    parse_throttle(text, t->reading) &&
		    cgroup_text_key(text, "throttled_time", &t->reading->throttled_ns));
}

static void parse_cpu_stat_v2(const char *text, struct target *t)
{
	struct reading *r = t->reading;
	uint64_t us;

	got(t, HAVE_CPU,
	    cgroup_text_key(text, "usage_usec", &us) && cgroup_text_us_to_ns(us, &r->cpu_ns));
	if (t->kind == PASS_SLOW)
		got(t, HAVE_THROTTLE,
		    parse_throttle(text, r) && cgroup_text_key(text, "throttled_usec", &us) &&
			    cgroup_text_us_to_ns(us, &r->throttled_ns));
}

static void parse_quota_us(const char *text, struct target *t)
{
	int64_t us;

	if (!cgroup_text_limit(text, &us))
		return;
	if (us == LIMIT_NONE || __builtin_mul_overflow(us, 1000, &t->reading->cpu_quota_ns))
		t->reading->cpu_quota_ns = LIMIT_NONE;
	t->parts |= PART_QUOTA;
}

static void parse_period_us(const char *text, struct target *t)
{
	int64_t us;

	got_part(t, PART_PERIOD,
		 cgroup_text_limit(text, &us) && us > 0 &&
			 !__builtin_mul_overflow(us, 1000, &t->reading->cpu_period_ns));
}

static void parse_cpu_max(const char *text, struct target *t)
{
	got_part(t, PART_QUOTA | PART_PERIOD,
		 cgroup_text_cpu_max(text, &t->reading->cpu_quota_ns, &t->reading->cpu_period_ns));
}

static void parse_memory_usage(const char *text, struct target *t)
{
	got(t, HAVE_MEMORY, cgroup_text_number(text, &t->reading->mem_bytes));
}

static void parse_memory_limit(const char *text, struct target *t)
{
	got(t, HAVE_MEMORY_LIMIT, cgroup_text_limit(text, &t->reading->mem_limit_bytes));
}

static void parse_memory_stat_v1(const char *text, struct target *t)
{
	got(t, HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE,
	    cgroup_text_key(text, "total_inactive_file", &t->reading->inactive_file_bytes));
}

/* On v2 every number in memory.stat covers the subtree. */
static void parse_memory_stat_v2(const char *text, struct target *t)
{
	got(t, HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE,
	    cgroup_text_key(text, "inactive_file", &t->reading->inactive_file_bytes));
}

/* memory.oom_control and memory.events */
static void parse_oom(const char *text, struct target *t)
{
	got(t, HAVE_OOM, cgroup_text_key(text, "oom_kill", &t->reading->oom_kills));
}

static void parse_cpu_pressure(const char *text, struct target *t)
{
	got_part(t, PART_PSI_CPU, cgroup_text_pressure(text, &t->reading->psi_cpu_ns));
}

static void parse_memory_pressure(const char *text, struct target *t)
{
	got_part(t, PART_PSI_MEMORY, cgroup_text_pressure(text, &t->reading->psi_mem_ns));
}

static void parse_pids(const char *text, struct target *t)
{
	uint64_t pids;

	t->reading->pids = cgroup_text_number(text, &pids) ? (uint32_t)pids : 0;
}

enum resource { CPU, THROTTLE, MEMORY, GENERAL /* v2 without regard to controllers */ };
enum version { V1, V2 };

static const struct source {
	enum resource resource;
	enum version version;
	enum pass_kind kind;
	const char *file;
	void (*parse)(const char *text, struct target *t);
} sources[] = {
	{CPU, V1, PASS_FAST, "cpuacct.usage", parse_cpuacct_usage},
	{CPU, V2, PASS_FAST, "cpu.stat", parse_cpu_stat_v2},
	{MEMORY, V1, PASS_FAST, "memory.usage_in_bytes", parse_memory_usage},
	{MEMORY, V2, PASS_FAST, "memory.current", parse_memory_usage},
	{THROTTLE, V1, PASS_SLOW, "cpu.cfs_quota_us", parse_quota_us},
	{THROTTLE, V1, PASS_SLOW, "cpu.cfs_period_us", parse_period_us},
	{THROTTLE, V1, PASS_SLOW, "cpu.stat", parse_cpu_stat_v1},
	{THROTTLE, V2, PASS_SLOW, "cpu.max", parse_cpu_max},
	{MEMORY, V1, PASS_SLOW, "memory.limit_in_bytes", parse_memory_limit},
	{MEMORY, V1, PASS_SLOW, "memory.stat", parse_memory_stat_v1},
	{MEMORY, V1, PASS_SLOW, "memory.oom_control", parse_oom},
	{MEMORY, V2, PASS_SLOW, "memory.max", parse_memory_limit},
	{MEMORY, V2, PASS_SLOW, "memory.stat", parse_memory_stat_v2},
	{MEMORY, V2, PASS_SLOW, "memory.events", parse_oom},
	{GENERAL, V2, PASS_SLOW, "cpu.pressure", parse_cpu_pressure},
	{GENERAL, V2, PASS_SLOW, "memory.pressure", parse_memory_pressure},
	{GENERAL, V2, PASS_SLOW, "pids.current", parse_pids},
};

enum { SOURCES = sizeof(sources) / sizeof(sources[0]) };

/* --- open files ------------------------------------------------------------------------------- */

enum {
	FD_CLOSED = -1,
	FD_ABSENT = -2, /* its cgroup has no such file */
	FDS_MAX = 4096, /* 18 MiB of kernel memory */
	FDS_SPARE = 256, /* for everything else in the process */
	RETRY_PASSES = 10,
	TEXT_SIZE = 16 * 1024,
};

/* The open files of one life of a cgroup. */
struct slot {
	uint64_t serial;
	uint64_t id[HIERARCHIES]; /* whose files are open */
	uint64_t round; /* last pass that used it */
	unsigned int slow_passes;
	int fd[SOURCES]; /* by active source */
	UT_hash_handle hh; /* by serial */
};

struct files {
	/* fixed after open */
	const struct cgroupfs *fs; /* borrowed */
	size_t budget;
	int active_count;
	struct {
		const struct source *source;
		int hierarchy;
	} active[SOURCES]; /* fast ones first */

	struct slot *slots;
	size_t kept[2]; /* open files, by enum pass_kind */
	size_t fast_wanted; /* fast files of all cgroups */
	uint64_t round;
	char text[TEXT_SIZE];
};

static enum pass_kind kind_of(const struct files *f, int i)
{
	return f->active[i].source->kind;
}

static void close_file(struct files *f, struct slot *slot, int i)
{
	if (slot->fd[i] >= 0) {
		close(slot->fd[i]);
		f->kept[kind_of(f, i)]--;
	}
	slot->fd[i] = FD_CLOSED;
}

static void close_hierarchy(struct files *f, struct slot *slot, int hierarchy)
{
	for (int i = 0; i < f->active_count; i++) {
		if (f->active[i].hierarchy == hierarchy)
			close_file(f, slot, i);
	}
}

static void close_slot(struct files *f, struct slot *slot)
{
	for (int i = 0; i < f->active_count; i++)
		close_file(f, slot, i);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
	HASH_DEL(f->slots, slot);
	free(slot);
}

static struct slot *get_slot(struct files *f, const struct cgroup *cgroup)
{
	struct slot *slot;

	HASH_FIND(hh, f->slots, &cgroup->serial, sizeof(cgroup->serial), slot);
	if (!slot) {
		slot = mem_zalloc(1, sizeof(*slot));
		slot->serial = cgroup->serial;
		for (int i = 0; i < SOURCES; i++)
			slot->fd[i] = FD_CLOSED;
		HASH_ADD(hh, f->slots, serial, sizeof(slot->serial), slot);
	}
	slot->round = f->round;
	/* A hierarchy that joined or left this life. */
	for (int h = 0; h < HIERARCHIES; h++) {
		if (slot->id[h] == cgroup->id[h])
			continue;
		close_hierarchy(f, slot, h);
		slot->id[h] = cgroup->id[h];
	}
	return slot;
}

/* Controllers may have been enabled since: look again for the files that were absent. */
static void retry_absent(struct files *f, struct slot *slot)
{
	if (++slot->slow_passes % RETRY_PASSES)
		return;
	for (int i = 0; i < f->active_count; i++) {
		if (slot->fd[i] == FD_ABSENT)
			slot->fd[i] = FD_CLOSED;
	}
}

static void drop_unused_slots(struct files *f)
{
	struct slot *slot, *next;

	HASH_ITER(hh, f->slots, slot, next)
	{
		if (slot->round != f->round)
			close_slot(f, slot);
	}
}

static bool may_keep(const struct files *f, enum pass_kind kind)
{
	size_t kept = f->kept[PASS_FAST] + f->kept[PASS_SLOW];

	if (kept >= f->budget)
		return false;
	return kind == PASS_FAST || f->kept[PASS_SLOW] + f->fast_wanted < f->budget;
}

/* --- reading one cgroup ----------------------------------------------------------------------- */

/* A cgroup being read: directories are opened only if some file of theirs has to be opened. */
struct visit {
	const struct cgroup *cgroup;
	struct slot *slot;
	int dir_fd[HIERARCHIES];
	bool gone[HIERARCHIES];
};

static bool is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -ENOTDIR;
}

/* The verified directory of the cgroup, or -errno; -ENODEV when it is another one by now. */
static int open_dir(const struct files *f, struct visit *v, int h)
{
	const char *path = v->cgroup->path[1] ? v->cgroup->path + 1 : ".";
	struct stat st;
	int fd, err;

	if (v->dir_fd[h] >= 0)
		return v->dir_fd[h];
	fd = openat(f->fs->root_fd[h], path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : st.st_ino != v->cgroup->id[h] ? -ENODEV : 0;
	if (err) {
		close(fd);
		return err;
	}
	v->dir_fd[h] = fd;
	return fd;
}

/* The opened file of an active source, or -errno with a vanished cgroup or absent file noted. */
static int open_source(const struct files *f, struct visit *v, int i)
{
	int h = f->active[i].hierarchy;
	int dir = open_dir(f, v, h);
	int fd;

	if (dir < 0) {
		v->gone[h] = is_gone(dir);
		return dir;
	}
	fd = openat(dir, f->active[i].source->file, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno != EMFILE && errno != ENFILE)
		v->slot->fd[i] = FD_ABSENT;
	return -errno;
}

/* Reads a file into f->text. False when its cgroup, or its controller there, was removed. */
static bool read_text(struct files *f, int fd)
{
	ssize_t n = pread(fd, f->text, sizeof(f->text) - 1, 0);

	f->text[n > 0 ? n : 0] = '\0';
	return n >= 0 || errno != ENODEV;
}

static void keep_or_close(struct files *f, struct slot *slot, int i, int fd)
{
	if (may_keep(f, kind_of(f, i))) {
		slot->fd[i] = fd;
		f->kept[kind_of(f, i)]++;
	} else {
		close(fd);
	}
}

/* Reads one source. 0, also when there is nothing to read, or the -errno that ends the tier. */
static int read_source(struct files *f, struct visit *v, int i, struct target *target)
{
	void (*parse)(const char *text, struct target *t) = f->active[i].source->parse;
	int fd = v->slot->fd[i];

	if (fd == FD_ABSENT)
		return 0;
	if (fd >= 0 && read_text(f, fd)) {
		parse(f->text, target);
		return 0;
	}
	/* Whether only the file went or the whole cgroup, opening it again tells. */
	close_file(f, v->slot, i);
	fd = open_source(f, v, i);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	if (read_text(f, fd))
		parse(f->text, target);
	keep_or_close(f, v->slot, i, fd);
	return 0;
}

static void end_visit(struct files *f, struct visit *v, struct pass_result *result)
{
	bool gone = false;

	for (int h = 0; h < HIERARCHIES; h++) {
		if (v->dir_fd[h] >= 0)
			close(v->dir_fd[h]);
		if (v->gone[h])
			close_hierarchy(f, v->slot, h);
		gone |= v->gone[h];
	}
	result->missing += gone;
}

static void finish_reading(struct target *t)
{
	got(t, HAVE_CPU_LIMIT, (t->parts & PART_QUOTA) && (t->parts & PART_PERIOD));
	got(t, HAVE_PSI, (t->parts & PART_PSI_CPU) && (t->parts & PART_PSI_MEMORY));
}

/* Whether an active source is for this cgroup and this kind of pass. */
static bool is_wanted(const struct files *f, const struct cgroup *cgroup, int i,
		      enum pass_kind kind)
{
	return cgroup->id[f->active[i].hierarchy] && kind_of(f, i) <= kind;
}

/* Whether the cgroup is still there in a hierarchy that was asked; true when none was. */
static bool is_alive(const struct files *f, const struct visit *v, enum pass_kind kind)
{
	bool asked = false;

	for (int i = 0; i < f->active_count; i++) {
		if (!is_wanted(f, v->cgroup, i, kind))
			continue;
		if (!v->gone[f->active[i].hierarchy])
			return true;
		asked = true;
	}
	return !asked;
}

static int read_cgroup(struct files *f, struct cgroup *cgroup, enum pass_kind kind, uint64_t pass,
		       struct pass_result *result)
{
	struct reading reading = cgroup->reading;
	struct target target = {.reading = &reading, .kind = kind};
	struct visit v = {.cgroup = cgroup,
			  .slot = get_slot(f, cgroup),
			  .dir_fd = {-1, -1, -1, -1}};
	int err = 0;

	reading.have &= ~sampler_renewed(kind);
	if (kind == PASS_SLOW)
		retry_absent(f, v.slot);
	for (int i = 0; i < f->active_count && !err; i++) {
		if (is_wanted(f, cgroup, i, kind) && !v.gone[f->active[i].hierarchy])
			err = read_source(f, &v, i, &target);
	}
	end_visit(f, &v, result);
	if (err || !is_alive(f, &v, kind))
		return err;
	finish_reading(&target);
	sampler_meet(cgroup, kind, pass);
	cgroup->reading = reading;
	result->records++;
	return 0;
}

/* --- the tier --------------------------------------------------------------------------------- */

static void close_files(void *state)
{
	struct files *f = state;
	struct slot *slot, *next;

	if (!f)
		return;
	HASH_ITER(hh, f->slots, slot, next)
	close_slot(f, slot);
	assert(f->kept[PASS_FAST] + f->kept[PASS_SLOW] == 0);
	free(f);
}

/* Raises the soft limit of open files to the hard one and says how many of them we may keep. */
static size_t take_budget(void)
{
	struct rlimit limit;
	size_t spare = FDS_SPARE;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit raised = {limit.rlim_max, limit.rlim_max};

		if (!setrlimit(RLIMIT_NOFILE, &raised))
			limit = raised;
	}
	if (limit.rlim_cur >= FDS_MAX + FDS_SPARE)
		return FDS_MAX;
	if (limit.rlim_cur < 2 * spare)
		spare = limit.rlim_cur / 2;
	return limit.rlim_cur - spare;
}

static int hierarchy_of(const struct cgroupfs *fs, const struct source *source)
{
	int h = HIERARCHY_UNIFIED;

	if (source->resource == CPU)
		h = fs->cpu_from;
	else if (source->resource == THROTTLE)
		h = fs->throttle_from;
	else if (source->resource == MEMORY)
		h = fs->memory_from;
	if (h < 0 || fs->root_fd[h] < 0)
		return -1;
	return (h == HIERARCHY_UNIFIED) == (source->version == V2) ? h : -1;
}

static int open_files(void **state, const struct cgroupfs *fs, struct reason *reason)
{
	struct files *f;

	if (fs->cpu_from < 0 && fs->memory_from < 0) {
		reason_set(reason, "no mounted cgroup hierarchy tells CPU time or memory");
		return -ENOENT;
	}
	f = mem_zalloc(1, sizeof(*f));
	f->fs = fs;
	f->budget = take_budget();
	for (int i = 0; i < SOURCES; i++) {
		int h = hierarchy_of(fs, &sources[i]);

		if (h < 0)
			continue;
		f->active[f->active_count].source = &sources[i];
		f->active[f->active_count++].hierarchy = h;
	}
	*state = f;
	return 0;
}

static int pass_files(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
		      struct pass_result *result, struct reason *reason)
{
	struct files *f = state;

	f->round++;
	f->fast_wanted = 0;
	for (int i = 0; i < f->active_count; i++)
		f->fast_wanted += kind_of(f, i) == PASS_FAST ? topology_count(t) : 0;
	for (size_t i = 0; i < topology_count(t); i++) {
		int err = read_cgroup(f, topology_at(t, i), kind, pass, result);

		if (err) {
			reason_set(reason, "cannot open the files of cgroup %s: %s",
				   topology_at(t, i)->path, strerror(-err));
			return err;
		}
	}
	drop_unused_slots(f);
	result->overflow = topology_overflow(t);
	return 0;
}

const struct sampler_ops sampler_files_ops = {
	.tier = TIER_T3,
	.open = open_files,
	.close = close_files,
	.pass = pass_files,
};
