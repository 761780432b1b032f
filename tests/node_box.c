/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why: a kubelet takes the machine that it runs on for its own. It changes settings of the kernel
 * and writes to folders that no option moves; a container runtime leaves its shims, mounts,
 * interfaces and network namespaces behind when it is killed, by design. A test must be killable at
 * any moment, on a machine where other things run.
 *
 * How: three processes.
 *
 *     test program       waits; when its child has ended, or it is told to end, clears what no namespace holds
 *       init             process 1 of the new process namespace: reaps orphans; its end is the end of every process there
 *         inside()       the test; etcd, containerd, kubelet, shims and containers are below it or orphans
 *
 * The end of the last process ends the namespaces, and with them interfaces and mounts; files lie
 * in memory and go with their mounts. Left are cgroups, which have no such owner: those below
 * "/kubepods" in every hierarchy. A program that was killed at once leaves them, and the next run
 * removes them. Cgroups with processes are somebody else's: refused.
 */
#include "tests/node_box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/mem.h"

#define CGROUPS	 "/sys/fs/cgroup"
#define PODS	 "kubepods"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Where kubelet, containerd and CNI plugins write whatever they are told. */
static const char *const private_folders[] = {"/run", "/var/log", "/var/lib/kubelet",
					      "/var/lib/cni"};
/* What a kubelet sets as it likes it, with the machine's own behaviour at stake. */
static const char *const kernel_settings[] = {
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/panic_on_oom",
	"/proc/sys/kernel/panic",
	"/proc/sys/kernel/panic_on_oops",
	"/proc/sys/kernel/keys/root_maxkeys",
	"/proc/sys/kernel/keys/root_maxbytes",
};

/* --- cgroups ---------------------------------------------------------------------------------- */

static bool has_processes; /* nftw() takes no context */

static int look_for_processes(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
	char *file, byte;
	int fd;

	(void)st;
	(void)walk;
	if (flag != FTW_D)
		return 0;
	file = mem_printf("%s/cgroup.procs", path);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		has_processes = has_processes || read(fd, &byte, 1) > 0;
		close(fd);
	}
	free(file);
	return has_processes;
}

static int remove_cgroup(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
	(void)st;
	(void)walk;
	if (flag == FTW_DP && rmdir(path) && errno != ENOENT)
		fprintf(stderr, "cannot remove the cgroup %s: %s\n", path, strerror(errno));
	return 0;
}

/* The cgroups of pods in every hierarchy: the one of v2, or those of v1 side by side. */
static void each_pods_cgroup(int (*visit)(const char *, const struct stat *, int, struct FTW *),
			     int flags)
{
	DIR *hierarchies = opendir(CGROUPS);
	struct dirent *entry;

	nftw(CGROUPS "/" PODS, visit, 16, flags);
	while (hierarchies && (entry = readdir(hierarchies))) {
		char *path = mem_printf(CGROUPS "/%s/" PODS, entry->d_name);

		if (entry->d_name[0] != '.')
			nftw(path, visit, 16, flags);
		free(path);
	}
	if (hierarchies)
		closedir(hierarchies);
}

static int clear_cgroups(struct error *error)
{
	has_processes = false;
	each_pods_cgroup(look_for_processes, FTW_PHYS);
	if (has_processes) {
		error_set(error, "this machine runs pods already");
		return -EBUSY;
	}
	each_pods_cgroup(remove_cgroup, FTW_PHYS | FTW_DEPTH);
	return 0;
}

/* --- inside ----------------------------------------------------------------------------------- */

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "node box: %s: %s\n", what, strerror(errno));
	_exit(EXIT_FAILURE);
}

/* Puts a file with the same text over a setting. One that this kernel does not have needs none. */
static void shadow(const char *setting, int number)
{
	char *path = mem_printf("/run/setting-%d", number), text[64];
	int from = open(setting, O_RDONLY | O_CLOEXEC), to;
	ssize_t len = from < 0 ? 0 : read(from, text, sizeof(text));

	if (from >= 0) {
		to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		must(len > 0 && to >= 0 && write(to, text, (size_t)len) == len, path);
		must(mount(path, setting, NULL, MS_BIND, NULL) == 0, setting);
		close(to);
		close(from);
	}
	free(path);
}

static void raise_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0, "loopback");
	close(fd);
}

static void furnish(void)
{
	must(unshare(CLONE_NEWNS | CLONE_NEWNET) == 0, "unshare");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "/");
	must(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
	for (size_t i = 0; i < COUNT(private_folders); i++)
		must(mount("tmpfs", private_folders[i], "tmpfs", 0, "mode=755") == 0,
		     private_folders[i]);
	for (size_t i = 0; i < COUNT(kernel_settings); i++)
		shadow(kernel_settings[i], (int)i);
	raise_loopback();
	must(mkdir("/run/tmp", 0700) == 0 && setenv("TMPDIR", "/run/tmp", 1) == 0, "/run/tmp");
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Process 1: what happens here after its child has ended, nobody waits for. */
static void be_init(int (*inside)(void))
{
	pid_t child, ended;
	int status = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	furnish();
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		status = inside();
		fflush(NULL);
		_exit(status);
	}
	do
		ended = wait(&status);
	while (ended != child && (ended >= 0 || errno == EINTR));
	_exit(status_of(status));
}

/* --- outside ---------------------------------------------------------------------------------- */

/* Folders to mount on that this machine does not have; bits say which were made. */
static unsigned int make_folders(void)
{
	unsigned int made = 0;

	for (size_t i = 0; i < COUNT(private_folders); i++) {
		if (mkdir(private_folders[i], 0755) == 0)
			made |= 1U << i;
	}
	return made;
}

static void remove_folders(unsigned int made)
{
	for (size_t i = 0; i < COUNT(private_folders); i++) {
		if (made & 1U << i)
			rmdir(private_folders[i]);
	}
}

/* The child's status once it has ended, of itself or because this program is told to end. */
static int await_end(pid_t init, const sigset_t *signals)
{
	int status = 0, signal_number, asked = 0;

	while (waitpid(init, &status, WNOHANG) == 0) {
		if (sigwait(signals, &signal_number) || signal_number == SIGCHLD)
			continue;
		asked = signal_number;
		kill(init, SIGKILL);
	}
	return asked ? 128 + asked : status_of(status);
}

int node_box_run(int (*inside)(void), struct error *error)
{
	sigset_t signals, before;
	unsigned int made;
	pid_t init;
	int status = clear_cgroups(error);

	if (status)
		return status;
	if (unshare(CLONE_NEWPID)) {
		error_set(error, "namespaces need root: %s", strerror(errno));
		return -EPERM;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	made = make_folders();
	fflush(NULL);
	init = fork();
	if (init == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		be_init(inside);
	}
	status = init < 0 ? EXIT_FAILURE : await_end(init, &signals);
	remove_folders(made);
	if (clear_cgroups(error))
		fprintf(stderr, "cgroups of pods are left: %s\n", error->text);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}
