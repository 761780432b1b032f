/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A v2 hierarchy has the type cgroup2 in the list of mounts; a v1 hierarchy has cgroup and lists
 * its controllers among the options.
 *
 * The walk goes by levels: one descriptor is open at a time, and if the topology is full the
 * deepest cgroups are left out, not whole pods. A cgroup's id is its inode number. A directory with
 * two links has no children (kernfs counts subdirectories as links), so leaves are never opened.
 *
 * What can fail: a mount point is covered by another mount (it counts as absent); directories
 * vanish at any moment; descriptors run out. The last ends the scan, as missing parts of the tree
 * would look like removed cgroups.
 */
#include "agent/cgroupfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/file.h"
#include "shared/mem.h"

#define PROC_MOUNTS "/proc/self/mounts"

enum { CONTROLLERS_MAX = 4096 };

/* --- mounts ---------------------------------------------------------------------------------- */

static bool is_mount_of(const struct mntent *m, int h)
{
	static const char *const controllers[MOUNTS] = {
		[HIERARCHY_CPUACCT] = "cpuacct",
		[HIERARCHY_CPU] = "cpu",
		[HIERARCHY_MEMORY] = "memory",
		[MOUNT_CPUSET] = "cpuset",
	};

	if (!controllers[h])
		return strcmp(m->mnt_type, "cgroup2") == 0;
	return strcmp(m->mnt_type, "cgroup") == 0 && hasmntopt(m, controllers[h]);
}

static bool is_at_or_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (path[0] != '/')
		return false;
	if (strcmp(root, "/") == 0)
		return true;
	return strncmp(path, root, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static int count_slashes(const char *path)
{
	int n = 0;

	if (strcmp(path, "/") == 0)
		return 0;
	for (; *path; path++)
		n += *path == '/';
	return n;
}

void cgroupfs_find_mounts(FILE *list, const char *root, char *mount[MOUNTS])
{
	const struct mntent *m;

	for (int h = 0; h < MOUNTS; h++)
		mount[h] = NULL;
	while ((m = getmntent(list))) {
		for (int h = 0; h < MOUNTS; h++) {
			if (!is_at_or_below(m->mnt_dir, root) || !is_mount_of(m, h))
				continue;
			/* A deeper mount shows a part of the hierarchy, as a container's own. */
			if (mount[h] && count_slashes(m->mnt_dir) >= count_slashes(mount[h]))
				continue;
			free(mount[h]);
			mount[h] = mem_strdup(m->mnt_dir);
		}
	}
}

/* --- opening --------------------------------------------------------------------------------- */

/* Whether cgroup.controllers has the word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, " \n");

		if (n == len && strncmp(list, word, len) == 0)
			return true;
		list += n;
		list += strspn(list, " \n");
	}
	return false;
}

/* The mount with a controller's files: its own (v1), or the v2 hierarchy if that has it; or -1. */
static int choose_mount(const struct cgroupfs *fs, int own, bool in_v2)
{
	if (fs->mount[own])
		return own;
	return in_v2 && fs->mount[HIERARCHY_UNIFIED] ? HIERARCHY_UNIFIED : -1;
}

void cgroupfs_choose(struct cgroupfs *fs, const char *controllers)
{
	/* Every v2 cgroup has cpu.stat with its CPU time, with or without the controller. */
	fs->cpu_from = choose_mount(fs, HIERARCHY_CPUACCT, true);
	fs->throttle_from = choose_mount(fs, HIERARCHY_CPU, has_word(controllers, "cpu"));
	fs->memory_from = choose_mount(fs, HIERARCHY_MEMORY, has_word(controllers, "memory"));
	fs->cpuset_from = choose_mount(fs, MOUNT_CPUSET, has_word(controllers, "cpuset"));
}

int cgroupfs_read(const struct cgroupfs *fs, int mount, const char *path, const char *file,
		  char *text, size_t size)
{
	char *name = mem_printf(".%s/%s", path, file);
	int fd = openat(fs->root_fd[mount], name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	int rc = n < 0 ? -errno : (int)n;

	text[n > 0 ? n : 0] = '\0';
	file_close(fd);
	free(name);
	return rc;
}

/* The v2 controllers of a root, "" without a v2 hierarchy. */
static int read_controllers(const struct cgroupfs *fs, char *text, size_t size, struct error *error)
{
	static const char name[] = "cgroup.controllers";
	int n;

	*text = '\0';
	if (fs->root_fd[HIERARCHY_UNIFIED] < 0)
		return 0;
	n = cgroupfs_read(fs, HIERARCHY_UNIFIED, "/", name, text, size);
	return n < 0 ? error_system(error, n, "cannot read %s", name) : 0;
}

/* The list has resolved paths. */
static char *resolve_root(const char *root)
{
	char *real = realpath(root, NULL);
	size_t len;

	if (real)
		return real;
	real = mem_strdup(root);
	len = strlen(real);
	while (len > 1 && real[len - 1] == '/')
		real[--len] = '\0';
	return real;
}

static bool is_cgroup_dir(int fd, int h)
{
	struct statfs st;

	if (fstatfs(fd, &st))
		return false;
	return st.f_type == (h == HIERARCHY_UNIFIED ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC);
}

/* Opens one root. A mount that is gone, or of cpusets and unreadable, becomes absent. */
static int open_root(struct cgroupfs *fs, int h, struct error *error)
{
	int fd = open(fs->mount[h], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && h < HIERARCHIES && errno != ENOENT && errno != ENOTDIR)
		return error_system(error, -errno, "cannot open %s", fs->mount[h]);
	if (fd >= 0 && is_cgroup_dir(fd, h)) {
		fs->root_fd[h] = fd;
		return 0;
	}
	file_close(fd);
	free(fs->mount[h]);
	fs->mount[h] = NULL;
	return 0;
}

static int open_roots(struct cgroupfs *fs, const char *root, struct error *error)
{
	int found = 0;

	for (int h = 0; h < MOUNTS; h++) {
		int err = fs->mount[h] ? open_root(fs, h, error) : 0;

		if (err)
			return err;
		found += h < HIERARCHIES && fs->mount[h];
	}
	if (found)
		return 0;
	return error_fail(
		error, -ENOENT,
		"no cgroup hierarchy is mounted at or below %s: mount the host's /sys/fs/cgroup "
		"there (read-only is enough), or name the place with --cgroup-root",
		root);
}

static void init_closed(struct cgroupfs *fs)
{
	for (int h = 0; h < MOUNTS; h++) {
		fs->root_fd[h] = -1;
		fs->mount[h] = NULL;
	}
	fs->cpu_from = fs->throttle_from = fs->memory_from = fs->cpuset_from = -1;
}

int cgroupfs_open(struct cgroupfs *fs, const char *root, const char *mounts, struct error *error)
{
	FILE *list = setmntent(mounts ? mounts : PROC_MOUNTS, "re");
	char controllers[CONTROLLERS_MAX], *real_root;
	int err;

	init_closed(fs);
	if (!list)
		return error_system(error, -errno, "cannot read %s", mounts ? mounts : PROC_MOUNTS);
	real_root = resolve_root(root);
	cgroupfs_find_mounts(list, real_root, fs->mount);
	free(real_root);
	endmntent(list);
	err = open_roots(fs, root, error);
	if (!err)
		err = read_controllers(fs, controllers, sizeof(controllers), error);
	if (!err)
		cgroupfs_choose(fs, controllers);
	if (err)
		cgroupfs_close(fs);
	return err;
}

void cgroupfs_close(struct cgroupfs *fs)
{
	for (int h = 0; h < MOUNTS; h++) {
		file_close(fs->root_fd[h]);
		free(fs->mount[h]);
	}
	init_closed(fs);
}

/* --- the walk -------------------------------------------------------------------------------- */

struct walk {
	int root_fd;
	unsigned int hierarchies; /* bit mask: co-mounted controllers share one walk */
	struct topology *topology;
	struct buf queue; /* paths of directories to read, NUL after each, level by level */
	size_t next; /* offset of the next one in queue */
	char path[ENTITY_NAME_MAX + NAME_MAX + 2];
	size_t dir_len; /* of path: the directory being read, without a slash at the end */
};

/* No failure: the directory is gone, or not readable for the agent. */
static bool is_out_of_reach(int err)
{
	return err == ENOENT || err == ENODEV || err == EACCES || err == EPERM;
}

/* Adds w->path to the topology; false when it was refused. */
static bool add_path(struct walk *w, uint64_t id)
{
	bool added = false;

	for (int h = 0; h < HIERARCHIES; h++) {
		if (w->hierarchies & 1U << h)
			added = topology_add(w->topology, (enum hierarchy)h, w->path, id) == 0;
	}
	return added;
}

static int add_entry(struct walk *w, int dir_fd, const char *name)
{
	size_t len = strlen(name);
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return is_out_of_reach(errno) ? 0 : -errno;
	if (!S_ISDIR(st.st_mode) || w->dir_len + 1 + len >= sizeof(w->path))
		return 0;
	w->path[w->dir_len] = '/';
	memcpy(w->path + w->dir_len + 1, name, len + 1);
	if (add_path(w, st.st_ino) && st.st_nlink != 2)
		buf_add(&w->queue, w->path, w->dir_len + 1 + len + 1);
	return 0;
}

static int read_entries(struct walk *w, DIR *dir)
{
	struct dirent *entry;
	int err;

	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return !errno || is_out_of_reach(errno) ? 0 : -errno;
		if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
			continue;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		err = add_entry(w, dirfd(dir), entry->d_name);
		if (err)
			return err;
	}
}

/* Reads the directory in w->path and queues its children. */
static int walk_directory(struct walk *w)
{
	const char *relative = w->dir_len ? w->path + 1 : ".";
	int fd = openat(w->root_fd, relative, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int err;

	if (!dir) {
		err = -errno;
		file_close(fd);
		return w->dir_len && is_out_of_reach(-err) ? 0 : err;
	}
	err = read_entries(w, dir);
	closedir(dir);
	return err;
}

static int walk_hierarchy(struct walk *w)
{
	struct stat st;
	int err;

	if (fstat(w->root_fd, &st))
		return -errno;
	memcpy(w->path, "/", 2);
	add_path(w, st.st_ino);
	w->dir_len = 0;
	err = walk_directory(w);
	while (!err && w->next < w->queue.len) {
		w->dir_len = strlen(w->queue.data + w->next);
		memcpy(w->path, w->queue.data + w->next, w->dir_len + 1);
		w->next += w->dir_len + 1;
		err = walk_directory(w);
	}
	return err;
}

/* The hierarchies that are mounted at the same place as h, h among them. */
static unsigned int find_comounted(const struct cgroupfs *fs, int h)
{
	unsigned int mask = 0;

	for (int i = 0; i < HIERARCHIES; i++) {
		if (fs->mount[i] && strcmp(fs->mount[i], fs->mount[h]) == 0)
			mask |= 1U << i;
	}
	return mask;
}

int cgroupfs_scan(const struct cgroupfs *fs, struct topology *t, struct error *error)
{
	unsigned int done = 0;

	topology_begin(t);
	for (int h = 0; h < HIERARCHIES; h++) {
		struct walk w = {.root_fd = fs->root_fd[h], .topology = t};
		int err;

		if (!fs->mount[h] || done & 1U << h)
			continue;
		w.hierarchies = find_comounted(fs, h);
		done |= w.hierarchies;
		err = walk_hierarchy(&w);
		buf_fini(&w.queue);
		if (err)
			return error_system(error, err, "cannot walk %s", fs->mount[h]);
	}
	topology_commit(t);
	return 0;
}
