/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroupfs.h"
#include "shared/mem.h"
#include "tests/process.h"

/* --- mounts ----------------------------------------------------------------------------------- */

static const char v2_host[] =
	"proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
	"sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0\n"
	"/dev/sda1 / ext4 rw,relatime,errors=remount-ro 0 0\n"
	"cgroup2 /sys/fs/cgroup cgroup2 "
	"rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0\n"
	"pstore /sys/fs/pstore pstore rw,nosuid,nodev,noexec,relatime 0 0\n";

/* v1 as systemd mounts it, with a v2 tree of its own beside. */
static const char hybrid_host[] =
	"tmpfs /sys/fs/cgroup tmpfs ro,nosuid,nodev,noexec,mode=755 0 0\n"
	"cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime,nsdelegate 0 0\n"
	"cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0\n"
	"cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n"
	"cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n"
	"cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n"
	"cgroup /sys/fs/cgroup/net_cls,net_prio cgroup rw,relatime,net_cls,net_prio 0 0\n";

/* Each controller in a hierarchy of its own, without tags. */
static const char v1_separate[] = "tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0\n"
				  "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n"
				  "cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0\n"
				  "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n";

/* A v1 container: only its own part of each hierarchy is there. */
static const char v1_container[] =
	"tmpfs /sys/fs/cgroup tmpfs rw,nosuid,nodev,noexec,relatime,mode=755 0 0\n"
	"cgroup /sys/fs/cgroup/memory cgroup ro,relatime,memory 0 0\n"
	"cgroup /sys/fs/cgroup/cpu,cpuacct cgroup ro,relatime,cpu,cpuacct 0 0\n";

/* A pod on v2: its own namespaced view, and the node's tree from a hostPath volume. */
static const char v2_pod[] = "cgroup /sys/fs/cgroup cgroup2 ro,nosuid,nodev,noexec,relatime 0 0\n"
			     "cgroup2 /host/sys/fs/cgroup cgroup2 ro,relatime 0 0\n"
			     "/dev/sda1 /etc/hosts ext4 rw,relatime 0 0\n";

static const char oddities[] = "\n"
			       "garbage\n"
			       "1 2 3\n"
			       "none /mnt/a\\040b\\011c\\134d cgroup2 rw 0 0\n"
			       /* Of several places the one nearest to root. */
			       "cgroup /mnt/two/deep cgroup rw,memory 0 0\n"
			       "cgroup /mnt/two cgroup rw,memory 0 0\n"
			       "cgroup /mnt/two/deeper/still cgroup rw,memory 0 0\n"
			       /* Controllers whose names begin alike, and other types and names. */
			       "cgroup /mnt/set cgroup rw,cpuset 0 0\n"
			       "cgroup2 /mnt/fuse fuse.cgroup2 rw,memory 0 0\n"
			       "cgroup /mnt/named cgroup rw,name=memory 0 0\n"
			       /* Neighbours in name only. */
			       "cgroup /mnt/tworoom cgroup rw,cpu 0 0\n"
			       /* Cut lines. */
			       "cgroup /mnt/cut cgroup\n"
			       "cgroup2 /mnt/cut\n"
			       "cgroup2 /mnt/cut\n"
			       "cgroup /mnt/end\\04 cgroup rw,cpu 0 0";

static void test_mounts(void **state)
{
	static const struct {
		const char *what, *text, *root;
		const char *mount[MOUNTS]; /* unified, cpuacct, cpu, memory, cpuset */
	} cases[] = {
		{"v2", v2_host, "/sys/fs/cgroup", {"/sys/fs/cgroup"}},
		{"v2 from above", v2_host, "/", {"/sys/fs/cgroup"}},
		{"v2, elsewhere", v2_host, "/sys/fs/cgroup2", {NULL}},
		{"v2, too deep", v2_host, "/sys/fs/cgroup/unified", {NULL}},
		{"hybrid",
		 hybrid_host,
		 "/sys/fs/cgroup",
		 {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct",
		  "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpuset"}},
		{"hybrid, memory only",
		 hybrid_host,
		 "/sys/fs/cgroup/memory",
		 {NULL, NULL, NULL, "/sys/fs/cgroup/memory"}},
		{"v1",
		 v1_separate,
		 "/sys/fs/cgroup",
		 {NULL, "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"}},
		{"v1 container",
		 v1_container,
		 "/sys/fs/cgroup",
		 {NULL, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct",
		  "/sys/fs/cgroup/memory"}},
		{"pod, own view", v2_pod, "/sys/fs/cgroup", {"/sys/fs/cgroup"}},
		{"pod, the node", v2_pod, "/host/sys/fs/cgroup", {"/host/sys/fs/cgroup"}},
		{"escapes", oddities, "/mnt/a b\tc\\d", {"/mnt/a b\tc\\d"}},
		{"nearest to root", oddities, "/mnt/two", {NULL, NULL, NULL, "/mnt/two"}},
		{"own name only", oddities, "/mnt/set", {[MOUNT_CPUSET] = "/mnt/set"}},
		{"own type only", oddities, "/mnt/fuse", {NULL}},
		{"named", oddities, "/mnt/named", {NULL}},
		{"cut lines", oddities, "/mnt/cut", {NULL}},
		{"cut escape", oddities, "/mnt/end\\04", {NULL, NULL, "/mnt/end\\04"}},
		{"nothing", "", "/", {NULL}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *list = fmemopen((void *)cases[i].text, strlen(cases[i].text), "r");
		char *mount[MOUNTS];

		assert_non_null(list);
		cgroupfs_find_mounts(list, cases[i].root, mount);
		fclose(list);
		for (int h = 0; h < MOUNTS; h++) {
			const char *want = cases[i].mount[h] ? cases[i].mount[h] : "";

			if (strcmp(mount[h] ? mount[h] : "", want) != 0)
				fail_msg("%s: hierarchy %d at \"%s\", want \"%s\"", cases[i].what,
					 h, mount[h] ? mount[h] : "", want);
			free(mount[h]);
		}
	}
}

/* --- which hierarchy tells what --------------------------------------------------------------- */

static void test_choose(void **state)
{
	static const struct {
		const char *what, *mounted, *controllers;
		int cpu, throttle, memory, cpuset;
	} cases[] = {
		{"v2", "u", "cpuset cpu io memory hugetlb pids rdma misc\n", HIERARCHY_UNIFIED,
		 HIERARCHY_UNIFIED, HIERARCHY_UNIFIED, HIERARCHY_UNIFIED},
		{"v2 without controllers", "u", "\n", HIERARCHY_UNIFIED, -1, -1, -1},
		{"v2 without memory", "u", "cpuset cpu pids\n", HIERARCHY_UNIFIED,
		 HIERARCHY_UNIFIED, -1, HIERARCHY_UNIFIED},
		{"cpuset is not cpu", "u", "cpuset memory_x", HIERARCHY_UNIFIED, -1, -1,
		 HIERARCHY_UNIFIED},
		{"one word", "u", "memory", HIERARCHY_UNIFIED, -1, HIERARCHY_UNIFIED, -1},
		{"hybrid", "uacms", "cpuset", HIERARCHY_CPUACCT, HIERARCHY_CPU, HIERARCHY_MEMORY,
		 MOUNT_CPUSET},
		{"v1", "acm", "", HIERARCHY_CPUACCT, HIERARCHY_CPU, HIERARCHY_MEMORY, -1},
		{"only memory moved to v2", "uac", "memory\n", HIERARCHY_CPUACCT, HIERARCHY_CPU,
		 HIERARCHY_UNIFIED, -1},
		{"only memory on v1", "um", "cpu\n", HIERARCHY_UNIFIED, HIERARCHY_UNIFIED,
		 HIERARCHY_MEMORY, -1},
		{"v1 cpu without cpuacct", "c", "", -1, HIERARCHY_CPU, -1, -1},
		{"nothing", "", "", -1, -1, -1, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char letters[MOUNTS + 1] = "uacms";
		static char there[] = "/";
		struct cgroupfs fs = {0};

		for (int h = 0; h < MOUNTS; h++)
			fs.mount[h] = strchr(cases[i].mounted, letters[h]) ? there : NULL;
		cgroupfs_choose(&fs, cases[i].controllers);
		if (fs.cpu_from != cases[i].cpu || fs.throttle_from != cases[i].throttle ||
		    fs.memory_from != cases[i].memory || fs.cpuset_from != cases[i].cpuset)
			fail_msg("%s: %d %d %d %d", cases[i].what, fs.cpu_from, fs.throttle_from,
				 fs.memory_from, fs.cpuset_from);
	}
}

/* --- opening ---------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void assert_closed(const struct cgroupfs *fs)
{
	for (int h = 0; h < MOUNTS; h++) {
		assert_int_equal(fs->root_fd[h], -1);
		assert_null(fs->mount[h]);
	}
	assert_int_equal(fs->cpu_from, -1);
	assert_int_equal(fs->throttle_from, -1);
	assert_int_equal(fs->memory_from, -1);
	assert_int_equal(fs->cpuset_from, -1);
}

static void test_open_failures(void **state)
{
	char *folder = folder_make();
	char *info = mem_printf("%s/mounts", folder);
	char *text = mem_printf("c %s cgroup2 rw 0 0\n"
				"c %s/gone cgroup rw,memory 0 0\n"
				"c %s/mounts cgroup rw,cpu 0 0\n",
				folder, folder, folder);
	char *loop = mem_printf("%s/loop", folder);
	static const struct {
		const char *controller;
		int err;
	} loops[] = {{"cpu", -ELOOP}, {"memory", -ELOOP}, {"cpuset", -ENOENT}};
	struct cgroupfs fs;
	struct error error;

	(void)state;
	assert_int_equal(symlink("loop", loop), 0);
	/* No list of mounts. */
	assert_int_equal(cgroupfs_open(&fs, folder, info, &error), -ENOENT);
	assert_non_null(strstr(error.text, info));
	assert_closed(&fs);
	/* Listed, but what is there is something else: covered, gone, and not a directory. */
	write_file(info, text);
	assert_int_equal(cgroupfs_open(&fs, folder, info, &error), -ENOENT);
	assert_non_null(strstr(error.text, folder));
	assert_non_null(strstr(error.text, "--cgroup-root"));
	assert_closed(&fs);
	cgroupfs_close(&fs);
	assert_closed(&fs);
	free(text);
	/* A mount that cannot be opened is an error, but for cpusets, which are optional. */
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
		text = mem_printf("c %s/loop cgroup rw,%s 0 0\n", folder, loops[i].controller);
		write_file(info, text);
		assert_int_equal(cgroupfs_open(&fs, folder, info, &error), loops[i].err);
		assert_closed(&fs);
		free(text);
	}
	/* Nothing below a root that is not there either. */
	assert_int_equal(cgroupfs_open(&fs, "/nonexistent/", NULL, &error), -ENOENT);
	assert_closed(&fs);
	free(loop);
	free(info);
	folder_remove(folder);
}

/* --- the walk --------------------------------------------------------------------------------- */

/* The walk needs directories and inode numbers only, so a plain folder serves as a hierarchy. */
struct tree {
	char *folder;
	struct cgroupfs fs;
	struct topology *topology;
};

static int tree_setup(void **state)
{
	struct tree *tree = mem_zalloc(1, sizeof(*tree));

	tree->folder = folder_make();
	tree->topology = topology_new();
	for (int h = 0; h < MOUNTS; h++)
		tree->fs.root_fd[h] = -1;
	*state = tree;
	return 0;
}

static int tree_teardown(void **state)
{
	struct tree *tree = *state;

	cgroupfs_close(&tree->fs);
	topology_free(tree->topology);
	folder_remove(tree->folder);
	free(tree);
	return 0;
}

static uint64_t make_dir(const struct tree *tree, const char *path)
{
	char *full = mem_printf("%s/%s", tree->folder, path);
	struct stat st;

	assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
	assert_int_equal(stat(full, &st), 0);
	free(full);
	return st.st_ino;
}

static void mount_dir(struct tree *tree, enum hierarchy h, const char *path)
{
	make_dir(tree, path);
	tree->fs.mount[h] = mem_printf("%s/%s", tree->folder, path);
	tree->fs.root_fd[h] = open(tree->fs.mount[h], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(tree->fs.root_fd[h] >= 0);
}

static void assert_row(const struct tree *tree, size_t index, const char *path, enum hierarchy h,
		       uint64_t id)
{
	assert_true(index < topology_count(tree->topology));
	assert_string_equal(topology_at(tree->topology, index)->path, path);
	assert_int_equal(topology_at(tree->topology, index)->id[h], id);
}

static void test_scan(void **state)
{
	struct tree *tree = *state;
	char *file, *link;
	uint64_t cpu_b, cpu_bc, memory_b;

	mount_dir(tree, HIERARCHY_CPU, "cpu");
	mount_dir(tree, HIERARCHY_CPUACCT, "cpu");
	mount_dir(tree, HIERARCHY_MEMORY, "memory");
	make_dir(tree, "cpu/a");
	cpu_b = make_dir(tree, "cpu/b");
	cpu_bc = make_dir(tree, "cpu/b/c");
	make_dir(tree, "cpu/b/c/d");
	memory_b = make_dir(tree, "memory/b");
	file = mem_printf("%s/cpu/b/cpu.stat", tree->folder);
	link = mem_printf("%s/cpu/b/link", tree->folder);
	write_file(file, "");
	assert_int_equal(symlink("..", link), 0);

	assert_int_equal(cgroupfs_scan(&tree->fs, tree->topology, NULL), 0);
	assert_int_equal(topology_count(tree->topology), 5);
	assert_row(tree, 0, "/", HIERARCHY_CPU, make_dir(tree, "cpu"));
	assert_row(tree, 0, "/", HIERARCHY_MEMORY, make_dir(tree, "memory"));
	assert_row(tree, 0, "/", HIERARCHY_UNIFIED, 0);
	assert_row(tree, 1, "/a", HIERARCHY_MEMORY, 0);
	assert_row(tree, 2, "/b", HIERARCHY_CPU, cpu_b);
	assert_row(tree, 2, "/b", HIERARCHY_CPUACCT, cpu_b);
	assert_row(tree, 2, "/b", HIERARCHY_MEMORY, memory_b);
	assert_row(tree, 3, "/b/c", HIERARCHY_CPUACCT, cpu_bc);
	assert_row(tree, 4, "/b/c/d", HIERARCHY_MEMORY, 0);
	free(file);
	free(link);
}

/*
 * However deep it goes, the walk ends where the names become too long, and says that something was
 * left out.
 */
static void test_scan_deep(void **state)
{
	struct tree *tree = *state;
	char name[100], last[ENTITY_NAME_MAX + 1];
	int fd;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	mount_dir(tree, HIERARCHY_UNIFIED, "v2");
	fd = dup(tree->fs.root_fd[HIERARCHY_UNIFIED]);
	for (int i = 0; i < 8; i++) {
		int below;

		assert_int_equal(mkdirat(fd, name, 0755), 0);
		below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = below;
	}
	close(fd);
	assert_int_equal(cgroupfs_scan(&tree->fs, tree->topology, NULL), 0);
	assert_int_equal(topology_count(tree->topology), 1 + ENTITY_NAME_MAX / 100);
	assert_int_equal(topology_overflow(tree->topology), 1);
	snprintf(last, sizeof(last), "/%s/%s/%s/%s/%s", name, name, name, name, name);
	assert_string_equal(topology_at(tree->topology, 5)->path, last);
}

/* A root that cannot be read ends the rescan and leaves what was known. */
static void test_scan_failure(void **state)
{
	struct tree *tree = *state;
	struct error error;
	int good;

	mount_dir(tree, HIERARCHY_UNIFIED, "v2");
	mount_dir(tree, HIERARCHY_MEMORY, "memory");
	make_dir(tree, "v2/a");
	assert_int_equal(cgroupfs_scan(&tree->fs, tree->topology, &error), 0);
	make_dir(tree, "v2/b");
	good = tree->fs.root_fd[HIERARCHY_MEMORY];
	tree->fs.root_fd[HIERARCHY_MEMORY] = -1;
	assert_int_equal(cgroupfs_scan(&tree->fs, tree->topology, &error), -EBADF);
	assert_non_null(strstr(error.text, "/memory"));
	assert_int_equal(topology_count(tree->topology), 2);
	tree->fs.root_fd[HIERARCHY_MEMORY] = good;
	assert_int_equal(cgroupfs_scan(&tree->fs, tree->topology, &error), 0);
	assert_int_equal(topology_count(tree->topology), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_open_failures),
		cmocka_unit_test_setup_teardown(test_scan, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_scan_deep, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_scan_failure, tree_setup, tree_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
