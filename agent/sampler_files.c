/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tier T3: the files of cgroupfs, without BPF.
 *
 * The table files_sources lists the files of a cgroup; the rows that fit the mounted hierarchies
 * are active. A file stays open and is read by pread() from its start, which renders it anew: a
 * third of the cost of open, read, close.
 *
 * The number of descriptors has a budget, also for memory: the kernel keeps a page per file that
 * was read (4.5 KB measured), charged to the agent. Beyond the budget a file is opened for each
 * reading. Files of slow passes leave room for the fast files of all cgroups.
 *
 * Limits are nearly half of the files and rarely change. They are read at the first pass over a
 * cgroup and then every LIMIT_PASSES slow passes, a share of the cgroups in each pass, and never
 * stay open.
 *
 * Open files belong to one life of a cgroup (its serial) and its ids in the hierarchies. A
 * directory's id is checked before a file in it is opened, and an open file of a removed cgroup
 * gives ENODEV, so a reused path is never read as its predecessor.
 *
 * What can fail: a cgroup vanishes (it is missing, the caller rescans); a file is missing because
 * its controller is not enabled (not measured, retried every RETRY_PASSES slow passes); descriptors
 * run out.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sampler_files_parse.h"
#include "agent/sampler_tier.h"
#include "shared/file.h"
#include "shared/hash.h"
#include "shared/mem.h"

/* --- open files ------------------------------------------------------------------------------- */

enum {
	FD_CLOSED = -1,
	FD_ABSENT = -2, /* the cgroup has no such file */
	FDS_MAX = 4096, /* 18 MiB of kernel memory */
	FDS_SPARE = 256, /* for the rest of the process */
	RETRY_PASSES = 10,
	LIMIT_PASSES = 10,
	TEXT_SIZE = 16 * 1024,
};

/* The open files of a cgroup. */
struct slot {
	uint64_t serial;
	uint64_t id[HIERARCHIES]; /* whose files are open */
	uint64_t round; /* last pass that used it */
	unsigned int slow_passes;
	unsigned int until_limits; /* slow passes before the next reading of limits */
	int fd[FILES_SOURCES]; /* by active source */
	UT_hash_handle hh; /* by serial */
};

struct files {
	/* fixed after open */
	const struct cgroupfs *fs; /* borrowed */
	size_t budget;
	int active_count;
	struct {
		const struct files_source *source;
		int hierarchy;
	} active[FILES_SOURCES]; /* by cadence */

	struct slot *slots;
	size_t kept[2]; /* open files, READ_FAST and READ_SLOW */
	size_t fast_wanted; /* fast files of all cgroups */
	uint64_t round;
	char text[TEXT_SIZE];
};

static enum files_cadence cadence_of(const struct files *f, int i)
{
	return f->active[i].source->cadence;
}

static void close_file(struct files *f, struct slot *slot, int i)
{
	if (slot->fd[i] >= 0) {
		close(slot->fd[i]);
		f->kept[cadence_of(f, i)]--;
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
		for (int i = 0; i < FILES_SOURCES; i++)
			slot->fd[i] = FD_CLOSED;
		HASH_ADD(hh, f->slots, serial, sizeof(slot->serial), slot);
	}
	slot->round = f->round;
	/* A hierarchy joined or left. */
	for (int h = 0; h < HIERARCHIES; h++) {
		if (slot->id[h] == cgroup->id[h])
			continue;
		close_hierarchy(f, slot, h);
		slot->id[h] = cgroup->id[h];
		slot->until_limits = 0;
	}
	return slot;
}

/* Controllers may have been enabled: retry absent files. */
static void retry_absent(struct files *f, struct slot *slot)
{
	if (++slot->slow_passes % RETRY_PASSES)
		return;
	for (int i = 0; i < f->active_count; i++) {
		if (slot->fd[i] == FD_ABSENT)
			slot->fd[i] = FD_CLOSED;
	}
}

static bool may_keep(const struct files *f, enum files_cadence cadence)
{
	if (cadence == READ_LIMITS || f->kept[READ_FAST] + f->kept[READ_SLOW] >= f->budget)
		return false;
	return cadence == READ_FAST || f->kept[READ_SLOW] + f->fast_wanted < f->budget;
}

/* --- reading one cgroup ----------------------------------------------------------------------- */

/* The cgroup being read; a directory is opened only to open a file. */
struct visit {
	const struct cgroup *cgroup;
	struct slot *slot;
	int dir_fd[HIERARCHIES];
	bool gone[HIERARCHIES];
};

/* The directory of the cgroup, or -errno; -ENODEV: its path has another cgroup now. */
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

/* The open file of an active source, or -errno; notes a vanished cgroup or an absent file. */
static int open_source(const struct files *f, struct visit *v, int i)
{
	int h = f->active[i].hierarchy;
	int dir = open_dir(f, v, h);
	int fd;

	if (dir < 0) {
		v->gone[h] = dir == -ENOENT || dir == -ENODEV || dir == -ENOTDIR;
		return dir;
	}
	fd = openat(dir, f->active[i].source->file, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno != EMFILE && errno != ENFILE && cadence_of(f, i) != READ_LIMITS)
		v->slot->fd[i] = FD_ABSENT;
	return -errno;
}

/* Reads a file into f->text. False: its cgroup or controller was removed. */
static bool read_text(struct files *f, int fd)
{
	ssize_t n = pread(fd, f->text, sizeof(f->text) - 1, 0);

	f->text[n > 0 ? n : 0] = '\0';
	return n >= 0 || errno != ENODEV;
}

/* Reads one source. 0, also without a file, or the -errno that ends the tier. */
static int read_source(struct files *f, struct visit *v, int i, struct files_target *target)
{
	const struct files_source *source = f->active[i].source;
	int fd = v->slot->fd[i];

	if (fd == FD_ABSENT)
		return 0;
	if (fd >= 0 && read_text(f, fd)) {
		files_parse(source, f->text, target);
		return 0;
	}
	/* Opening it again tells whether the file or the cgroup is gone. */
	close_file(f, v->slot, i);
	fd = open_source(f, v, i);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	if (read_text(f, fd))
		files_parse(source, f->text, target);
	if (may_keep(f, cadence_of(f, i))) {
		v->slot->fd[i] = fd;
		f->kept[cadence_of(f, i)]++;
	} else {
		close(fd);
	}
	return 0;
}

static void end_visit(struct files *f, struct visit *v, struct pass_result *result)
{
	bool gone = false;

	for (int h = 0; h < HIERARCHIES; h++) {
		file_close(v->dir_fd[h]);
		if (v->gone[h])
			close_hierarchy(f, v->slot, h);
		gone |= v->gone[h];
	}
	result->missing += gone;
}

/* Whether an active source is in this cgroup and of this cadence or a faster one. */
static bool is_wanted(const struct files *f, const struct cgroup *cgroup, int i,
		      enum files_cadence cadence)
{
	return cgroup->id[f->active[i].hierarchy] && cadence_of(f, i) <= cadence;
}

/* Whether the cgroup exists in some hierarchy that was read; true if none was. */
static bool is_alive(const struct files *f, const struct visit *v, enum files_cadence cadence)
{
	bool asked = false;

	for (int i = 0; i < f->active_count; i++) {
		if (!is_wanted(f, v->cgroup, i, cadence))
			continue;
		if (!v->gone[f->active[i].hierarchy])
			return true;
		asked = true;
	}
	return !asked;
}

/* Reads the sources of cadences first to last. */
static int read_sources(struct files *f, struct visit *v, enum files_cadence first,
			enum files_cadence last, struct files_target *target)
{
	int err = 0;

	for (int i = 0; i < f->active_count && !err; i++) {
		if (cadence_of(f, i) >= first && is_wanted(f, v->cgroup, i, last) &&
		    !v->gone[f->active[i].hierarchy])
			err = read_source(f, v, i, target);
	}
	return err;
}

/*
 * Whether this slow pass reads the cgroup's limits: the first, every LIMIT_PASSES-th (spread by
 * serial), and any in which a part of the cgroup is gone.
 */
static bool limits_are_due(const struct visit *v)
{
	struct slot *slot = v->slot;
	bool gone = false;

	for (int h = 0; h < HIERARCHIES; h++)
		gone |= v->gone[h];
	if (slot->until_limits && !gone) {
		slot->until_limits--;
		return false;
	}
	slot->until_limits = slot->slow_passes == 1 ? (unsigned int)(slot->serial % LIMIT_PASSES)
						    : LIMIT_PASSES - 1;
	return true;
}

static int read_slow(struct files *f, struct visit *v, struct files_target *target)
{
	int err;

	retry_absent(f, v->slot);
	err = read_sources(f, v, READ_FAST, READ_SLOW, target);
	if (err || !limits_are_due(v))
		return err;
	files_begin_limits(target);
	return read_sources(f, v, READ_LIMITS, READ_LIMITS, target);
}

static int read_cgroup(struct files *f, struct cgroup *cgroup, enum pass_kind kind, uint64_t pass,
		       struct pass_result *result)
{
	struct reading reading = cgroup->reading;
	struct files_target target = {
		.reading = &reading,
		.kind = kind,
		.root = cgroup->parent == CGROUP_NONE,
	};
	struct visit v = {.cgroup = cgroup,
			  .slot = get_slot(f, cgroup),
			  .dir_fd = {-1, -1, -1, -1}};
	bool alive;
	int err;

	reading.have &= ~sampler_renewed(kind) | FILES_LIMITS;
	err = kind == PASS_SLOW ? read_slow(f, &v, &target)
				: read_sources(f, &v, READ_FAST, READ_FAST, &target);
	alive = is_alive(f, &v, kind == PASS_SLOW ? READ_SLOW : READ_FAST);
	end_visit(f, &v, result);
	if (err || !alive)
		return err;
	files_finish(&target);
	sampler_meet(cgroup, sampler_renewed(kind), pass);
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
	assert(f->kept[READ_FAST] + f->kept[READ_SLOW] == 0);
	free(f);
}

/* Raises the soft limit of open files to the hard limit; returns how many may stay open. */
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

static int open_files(void **state, const struct sampler_ops *ops, const struct cgroupfs *fs,
		      struct error *error)
{
	struct files *f;

	(void)ops;
	if (fs->cpu_from < 0 && fs->memory_from < 0)
		return error_fail(error, -ENOENT,
				  "no mounted cgroup hierarchy tells CPU time or memory");
	f = mem_zalloc(1, sizeof(*f));
	f->fs = fs;
	f->budget = take_budget();
	for (int i = 0; i < FILES_SOURCES; i++) {
		int h = files_hierarchy(fs, &files_sources[i]);

		if (h < 0)
			continue;
		f->active[f->active_count].source = &files_sources[i];
		f->active[f->active_count++].hierarchy = h;
	}
	*state = f;
	return 0;
}

static int pass_files(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
		      struct pass_result *result, struct error *error)
{
	struct files *f = state;
	struct slot *slot, *next;

	/* Each value has its own file, so nothing is left out. */
	if (kind == PASS_BRIEF)
		kind = PASS_SLOW;
	f->round++;
	f->fast_wanted = 0;
	for (int i = 0; i < f->active_count; i++)
		f->fast_wanted += cadence_of(f, i) == READ_FAST ? topology_count(t) : 0;
	for (size_t i = 0; i < topology_count(t); i++) {
		int err = read_cgroup(f, topology_at(t, i), kind, pass, result);

		if (err)
			return error_system(error, err, "cannot open the files of cgroup %s",
					    topology_at(t, i)->path);
	}
	HASH_ITER(hh, f->slots, slot, next)
	{
		if (slot->round != f->round)
			close_slot(f, slot);
	}
	result->overflow = topology_overflow(t);
	return 0;
}

const struct sampler_ops sampler_files_ops = {
	.tier = TIER_T3,
	.open = open_files,
	.close = close_files,
	.pass = pass_files,
};
