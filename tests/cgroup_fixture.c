/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleaning up has three nets: the test's teardown frees the fixture; children die with their
 * parent; and a fixture first removes the cgroups of earlier runs of the same test, told by the
 * dead process in their name.
 */
#include "tests/cgroup_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/mem.h"

enum { CHILDREN_MAX = 16, PATH_SIZE = 512 };

struct cgroup_fixture {
	struct cgroupfs fs;
	char *base; /* owned, no slashes */
	pid_t children[CHILDREN_MAX];
	size_t child_count;
};

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

static void die(const char *what, const char *path)
{
	fprintf(stderr, "cgroup fixture: %s %s: %s\n", what, path, strerror(errno));
	abort();
}

/* --- removing -------------------------------------------------------------------------------- */

/* A cgroup stays busy for a moment after its last process was reaped. */
static int remove_patiently(int dir, const char *name)
{
	for (int i = 0; i < 300; i++) {
		if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			break;
		nap();
	}
	return -1;
}

static void remove_tree(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			remove_tree(fd, e->d_name);
	}
	closedir(d);
	if (remove_patiently(dir, name))
		fprintf(stderr, "cgroup fixture: cannot remove %s: %s\n", name, strerror(errno));
}

/* Removes what earlier runs left: PREFIX followed by the number of a process that is gone. */
static void remove_leftovers(int root, const char *prefix)
{
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		char *end;
		long pid;

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		pid = strtol(e->d_name + strlen(prefix), &end, 10);
		if (pid > 0 && !*end && kill((pid_t)pid, 0) && errno == ESRCH)
			remove_tree(fd, e->d_name);
	}
	closedir(d);
}

/* --- the fixture ----------------------------------------------------------------------------- */

static int root_of(const struct cgroup_fixture *f, int h)
{
	return f->fs.root_fd[h];
}

unsigned int cgroup_fixture_all(const struct cgroup_fixture *f)
{
	unsigned int all = 0;

	for (int h = 0; h < HIERARCHIES; h++)
		all |= root_of(f, h) >= 0 ? 1U << h : 0;
	return all;
}

const struct cgroupfs *cgroup_fixture_fs(const struct cgroup_fixture *f)
{
	return &f->fs;
}

/*
 * On v2 the children of a cgroup have the controllers it hands down; each that is there, so one by
 * one.
 */
static void hand_down(int root, const char *dir)
{
	static const char *const controllers[] = {"+cpu", "+memory", "+pids", "+cpuset"};
	char path[PATH_SIZE];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	fd = openat(root, path, O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < 4; i++) {
		if (write(fd, controllers[i], strlen(controllers[i])) < 0)
			continue; /* that controller is not there */
	}
	if (fd >= 0)
		close(fd);
}

/* Co-mounted controllers are one directory: the second making finds it there. */
static int make_dir(int root, const char *path)
{
	return mkdirat(root, path, 0755) && errno != EEXIST ? -errno : 0;
}

struct cgroup_fixture *cgroup_fixture_new(const char *name, struct error *error)
{
	struct cgroup_fixture *f = mem_zalloc(1, sizeof(*f));
	char *prefix = mem_printf("evenkeel-test-%s-", name);
	int err = cgroupfs_open(&f->fs, "/sys/fs/cgroup", NULL, error);

	f->base = mem_printf("%s%d", prefix, getpid());
	for (int h = 0; h < HIERARCHIES && !err; h++) {
		if (root_of(f, h) < 0)
			continue;
		remove_leftovers(root_of(f, h), prefix);
		err = make_dir(root_of(f, h), f->base);
		if (err)
			error_set(error, "cannot make cgroups in %s: %s", f->fs.mount[h],
				  strerror(-err));
		else if (h == HIERARCHY_UNIFIED)
			hand_down(root_of(f, h), f->base);
	}
	if (!err && root_of(f, MOUNT_CPUSET) >= 0)
		remove_leftovers(root_of(f, MOUNT_CPUSET), prefix);
	free(prefix);
	if (!err)
		return f;
	cgroup_fixture_free(f);
	return NULL;
}

void cgroup_fixture_free(struct cgroup_fixture *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->child_count; i++) {
		kill(f->children[i], SIGKILL);
		waitpid(f->children[i], NULL, 0);
	}
	for (int h = 0; h < MOUNTS; h++) {
		if (root_of(f, h) >= 0)
			remove_tree(root_of(f, h), f->base);
	}
	cgroupfs_close(&f->fs);
	free(f->base);
	free(f);
}

void cgroup_fixture_open_below(const struct cgroup_fixture *f, struct cgroupfs *below)
{
	*below = f->fs;
	below->root_fd[MOUNT_CPUSET] = -1;
	below->mount[MOUNT_CPUSET] = NULL;
	for (int h = 0; h < HIERARCHIES; h++) {
		if (root_of(f, h) < 0)
			continue;
		below->root_fd[h] =
			openat(root_of(f, h), f->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below->root_fd[h] < 0)
			die("cannot open", f->base);
		below->mount[h] = mem_printf("%s/%s", f->fs.mount[h], f->base);
	}
}

static void make_path(const struct cgroup_fixture *f, const char *sub, const char *file,
		      char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s%s%s%s%s", f->base, sub ? "/" : "", sub ? sub : "",
		 file ? "/" : "", file ? file : "");
}

const char *cgroup_fixture_path(const struct cgroup_fixture *f, const char *sub)
{
	static char path[PATH_SIZE + 1] = "/";

	make_path(f, sub, NULL, path + 1);
	return path;
}

void cgroup_fixture_make(struct cgroup_fixture *f, unsigned int hierarchies, const char *sub)
{
	char path[PATH_SIZE];

	make_path(f, sub, NULL, path);
	for (int h = 0; h < MOUNTS; h++) {
		if (hierarchies >> h & 1 && make_dir(root_of(f, h), path))
			die("cannot make", path);
	}
}

void cgroup_fixture_make_tree(struct cgroup_fixture *f, const char *sub)
{
	for (const char *slash = strchr(sub, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *above = mem_strndup(sub, (size_t)(slash - sub));
		char path[PATH_SIZE];

		cgroup_fixture_make(f, cgroup_fixture_all(f), above);
		make_path(f, above, NULL, path);
		if (root_of(f, HIERARCHY_UNIFIED) >= 0)
			hand_down(root_of(f, HIERARCHY_UNIFIED), path);
		free(above);
	}
	cgroup_fixture_make(f, cgroup_fixture_all(f), sub);
}

void cgroup_fixture_remove(struct cgroup_fixture *f, unsigned int hierarchies, const char *sub)
{
	char path[PATH_SIZE];

	make_path(f, sub, NULL, path);
	for (int h = 0; h < MOUNTS; h++) {
		if (hierarchies >> h & 1 && remove_patiently(root_of(f, h), path))
			die("cannot remove", path);
	}
}

bool cgroup_fixture_read(const struct cgroup_fixture *f, int hierarchy, const char *sub,
			 const char *file, char *text, size_t size)
{
	char path[PATH_SIZE];
	ssize_t n = -1;
	int fd;

	make_path(f, sub, file, path);
	fd = openat(root_of(f, hierarchy), path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

bool cgroup_fixture_write(const struct cgroup_fixture *f, int hierarchy, const char *sub,
			  const char *file, const char *text)
{
	char path[PATH_SIZE];
	bool ok = false;
	int fd;

	make_path(f, sub, file, path);
	fd = openat(root_of(f, hierarchy), path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
		close(fd);
	}
	return ok;
}

void cgroup_fixture_prefer(const struct cgroup_fixture *f, const char *sub)
{
	int from = f->fs.throttle_from;

	if (from == HIERARCHY_CPU)
		cgroup_fixture_write(f, from, sub, "cpu.shares", "262144");
	else if (from >= 0)
		cgroup_fixture_write(f, from, sub, "cpu.weight", "10000");
}

/* --- children -------------------------------------------------------------------------------- */

static void fill_cache(size_t bytes)
{
	static char block[64 * 1024];
	char path[] = "/var/tmp/evenkeel-test-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		_exit(1);
	unlink(path);
	for (size_t done = 0; done < bytes; done += sizeof(block)) {
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			_exit(1);
	}
	fdatasync(fd); /* clean pages do not move any more */
	/* The descriptor stays open: the pages live as long as the file. */
}

/* Some time on each CPU, so that what is summed over CPUs has more than one part. */
static void run_everywhere(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		_exit(1);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		/* Linux 5.10 tells a child born in a cpuset the CPUs of its parent. */
		if (sched_setaffinity(0, sizeof(one), &one))
			continue;
		for (volatile int turns = 0; turns < 100000; turns++)
			continue;
	}
	if (sched_setaffinity(0, sizeof(all), &all))
		_exit(1);
}

static void live(struct cgroup_fixture *f, const char *sub, const struct cgroup_child *child,
		 int ready)
{
	volatile unsigned long turns = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int h = 0; h < HIERARCHIES; h++) {
		if (h != HIERARCHY_UNIFIED && root_of(f, h) >= 0 &&
		    !cgroup_fixture_write(f, h, sub, "cgroup.procs", "0"))
			_exit(1);
	}
	run_everywhere();
	if (child->hold_bytes) {
		char *hold = mem_alloc(child->hold_bytes);

		memset(hold, 1, child->hold_bytes);
	}
	if (child->cache_bytes)
		fill_cache(child->cache_bytes);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	close(ready);
	while (child->spin)
		turns++;
	for (;;)
		pause();
}

/*
 * Born in the v2 cgroup, so that not even its start is charged elsewhere; into the v1 ones it moves
 * by itself.
 */
static pid_t fork_into(const struct cgroup_fixture *f, const char *sub)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	char path[PATH_SIZE];
	int fd = -1;
	pid_t pid;

	if (root_of(f, HIERARCHY_UNIFIED) >= 0) {
		make_path(f, sub, NULL, path);
		fd = openat(root_of(f, HIERARCHY_UNIFIED), path,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			die("cannot open", path);
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (__u64)fd;
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("cannot start a child in", f->base);
	if (fd >= 0)
		close(fd);
	return pid;
}

pid_t cgroup_fixture_spawn(struct cgroup_fixture *f, const char *sub,
			   const struct cgroup_child *child)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (f->child_count == CHILDREN_MAX || pipe2(ready, O_CLOEXEC))
		die("no room for a child in", f->base);
	pid = fork_into(f, sub);
	if (pid == 0)
		live(f, sub, child, ready[1]);
	f->children[f->child_count++] = pid;
	close(ready[1]);
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
		continue;
	close(ready[0]);
	return pid;
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "", *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return '?';
	text[n] = '\0';
	/* "PID (NAME) STATE ..", and the name may hold anything. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '?';
}

void cgroup_fixture_stop(pid_t child)
{
	if (kill(child, SIGSTOP))
		die("cannot stop a child", "");
	while (state_of(child) != 'T') {
		if (state_of(child) == 'Z' || state_of(child) == '?')
			die("the child to stop is gone", "");
		nap();
	}
}
