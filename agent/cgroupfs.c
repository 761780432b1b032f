/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mountinfo lists the mounts (proc(5), one line each):
 *
 *	36 35 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
 *	id parent dev root mount-point options [tags..] - type source super-options
 *
 * A v2 hierarchy has the type cgroup2; a v1 hierarchy has cgroup and lists its controllers among
 * the super-options. Blanks and backslashes in names are octal escapes.
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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/mem.h"

/* --- mountinfo ------------------------------------------------------------------------------- */

/* Takes the next blank-separated field out of *line, or returns NULL. */
static char *next_field(char **line)
{
	char *field;

	*line += strspn(*line, " ");
	if (!**line)
		return NULL;
	field = *line;
	*line += strcspn(field, " ");
	if (**line)
		*(*line)++ = '\0';
	return field;
}

static bool is_octal(const char *text)
{
	for (int i = 0; i < 3; i++) {
		if (text[i] < '0' || text[i] > '7')
			return false;
	}
	return text[0] <= '3';
}

/* "\040" -> " ", in place. */
static void decode_octal(char *text)
{
	char *to = text;

	while (*text) {
		if (*text == '\\' && is_octal(text + 1)) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* Whether a list separated by one of `separators` holds the word. */
static bool has_word(const char *list, const char *separators, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, separators);

		if (n == len && strncmp(list, word, len) == 0)
			return true;
		list += n;
		list += strspn(list, separators);
	}
	return false;
}

struct mount_line {
	const char *point;
	const char *type;
	const char *super_options;
};

enum { FIELDS_BEFORE_POINT = 4 };

/* Splits a line into fields; false if it is not a mountinfo line. */
static bool split_line(char *line, struct mount_line *m)
{
	char *point, *field;

	for (int i = 0; i < FIELDS_BEFORE_POINT; i++) {
		if (!next_field(&line))
			return false;
	}
	point = next_field(&line);
	/* The number of tags varies: a lone dash ends them. */
	do {
		field = next_field(&line);
	} while (field && strcmp(field, "-") != 0);
	if (!field)
		return false;
	m->type = next_field(&line);
	field = next_field(&line); /* source */
	m->super_options = next_field(&line);
	if (!field || !m->super_options)
		return false;
	decode_octal(point);
	m->point = point;
	return true;
}

static bool is_mount_of(const struct mount_line *m, int h)
{
	static const char *const controllers[MOUNTS] = {
		[HIERARCHY_CPUACCT] = "cpuacct",
		[HIERARCHY_CPU] = "cpu",
		[HIERARCHY_MEMORY] = "memory",
		[MOUNT_CPUSET] = "cpuset",
	};

	if (!controllers[h])
		return strcmp(m->type, "cgroup2") == 0;
	return strcmp(m->type, "cgroup") == 0 && has_word(m->super_options, ",", controllers[h]);
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

/* A deeper mount shows a part of the hierarchy, as a container's own. */
static bool is_better_mount(const char *point, const char *chosen)
{
	return !chosen || count_slashes(point) < count_slashes(chosen);
}

static void take_line(char *line, const char *root, char *mount[MOUNTS])
{
	struct mount_line m;

	if (!split_line(line, &m) || !is_at_or_below(m.point, root))
		return;
	for (int h = 0; h < MOUNTS; h++) {
		if (!is_mount_of(&m, h) || !is_better_mount(m.point, mount[h]))
			continue;
		free(mount[h]);
		mount[h] = mem_strdup(m.point);
	}
}

void cgroupfs_parse_mountinfo(const char *text, const char *root, char *mount[MOUNTS])
{
	char *copy = mem_strdup(text);
	char *line = copy;

	for (int h = 0; h < MOUNTS; h++)
		mount[h] = NULL;
	while (*line) {
		char *end = line + strcspn(line, "\n");
		char *next = *end ? end + 1 : end;

		*end = '\0';
		take_line(line, root, mount);
		line = next;
	}
	free(copy);
}

/* --- opening --------------------------------------------------------------------------------- */

void cgroupfs_choose(struct cgroupfs *fs, const char *controllers)
{
	bool unified = fs->mount[HIERARCHY_UNIFIED] != NULL;

	fs->cpu_from = fs->throttle_from = fs->memory_from = fs->cpuset_from = -1;
	/* Every v2 cgroup has cpu.stat with its CPU time, with or without the controller. */
	if (fs->mount[HIERARCHY_CPUACCT])
		fs->cpu_from = HIERARCHY_CPUACCT;
	else if (unified)
		fs->cpu_from = HIERARCHY_UNIFIED;
	if (fs->mount[HIERARCHY_CPU])
		fs->throttle_from = HIERARCHY_CPU;
	else if (unified && has_word(controllers, " \n", "cpu"))
		fs->throttle_from = HIERARCHY_UNIFIED;
	if (fs->mount[HIERARCHY_MEMORY])
		fs->memory_from = HIERARCHY_MEMORY;
	else if (unified && has_word(controllers, " \n", "memory"))
		fs->memory_from = HIERARCHY_UNIFIED;
	if (fs->mount[MOUNT_CPUSET])
		fs->cpuset_from = MOUNT_CPUSET;
	else if (unified && has_word(controllers, " \n", "cpuset"))
		fs->cpuset_from = HIERARCHY_UNIFIED;
}

/* Reads a whole file of unknown size. */
static int read_file(int dir_fd, const char *path, struct buf *b, struct error *error)
{
	enum { CHUNK = 16 * 1024 };
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;
	int err = 0;

	if (fd >= 0) {
		do {
			n = read(fd, buf_reserve(b, CHUNK), CHUNK);
			b->len += n > 0 ? (size_t)n : 0;
		} while (n > 0 || (n < 0 && errno == EINTR));
	}
	if (n < 0) {
		err = -errno;
		error_set(error, "cannot read %s: %s", path, strerror(-err));
	}
	if (fd >= 0)
		close(fd);
	buf_add(b, "", 0);
	return err;
}

/* mountinfo has resolved paths. */
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
	int err = errno;

	if (fd < 0 && h < HIERARCHIES && err != ENOENT && err != ENOTDIR) {
		error_set(error, "cannot open %s: %s", fs->mount[h], strerror(err));
		return -err;
	}
	if (fd >= 0 && is_cgroup_dir(fd, h)) {
		fs->root_fd[h] = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
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
	error_set(error,
		  "no cgroup hierarchy is mounted at or below %s: mount the host's /sys/fs/cgroup "
		  "there "
		  "(read-only is enough), or name the place with --cgroup-root",
		  root);
	return -ENOENT;
}

static void init_closed(struct cgroupfs *fs)
{
	for (int h = 0; h < MOUNTS; h++) {
		fs->root_fd[h] = -1;
		fs->mount[h] = NULL;
	}
	fs->cpu_from = fs->throttle_from = fs->memory_from = fs->cpuset_from = -1;
}

int cgroupfs_open(struct cgroupfs *fs, const char *root, const char *mountinfo, struct error *error)
{
	struct buf mounts = BUF_INIT, controllers = BUF_INIT;
	char *real_root = resolve_root(root);
	int err;

	init_closed(fs);
	err = read_file(AT_FDCWD, mountinfo ? mountinfo : "/proc/self/mountinfo", &mounts, error);
	if (err)
		goto out;
	cgroupfs_parse_mountinfo(mounts.data, real_root, fs->mount);
	err = open_roots(fs, root, error);
	if (err)
		goto out;
	if (fs->root_fd[HIERARCHY_UNIFIED] >= 0)
		err = read_file(fs->root_fd[HIERARCHY_UNIFIED], "cgroup.controllers", &controllers,
				error);
	if (!err)
		cgroupfs_choose(fs, controllers.data ? controllers.data : "");
out:
	if (err)
		cgroupfs_close(fs);
	free(real_root);
	buf_fini(&controllers);
	buf_fini(&mounts);
	return err;
}

void cgroupfs_close(struct cgroupfs *fs)
{
	for (int h = 0; h < MOUNTS; h++) {
		if (fs->root_fd[h] >= 0)
			close(fs->root_fd[h]);
		free(fs->mount[h]);
	}
	init_closed(fs);
}

bool cgroupfs_read(const struct cgroupfs *fs, int mount, const char *path, const char *file,
		   char *text, size_t size)
{
	char *name = mem_printf("%s/%s", path + 1, file);
	int fd = openat(fs->root_fd[mount], name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	bool whole = n > 0 && (size_t)n < size - 1;

	text[whole ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	free(name);
	return whole;
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
		if (fd >= 0)
			close(fd);
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
		if (err) {
			error_set(error, "cannot walk %s: %s", fs->mount[h], strerror(-err));
			return err;
		}
	}
	topology_commit(t);
	return 0;
}
