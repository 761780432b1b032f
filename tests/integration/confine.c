/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that confine themselves: what they have left, what is refused to them, and that they
 * live on. A refused call says ENOSYS, which the kernel itself would answer to none of those in the
 * table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine.h"
#include "shared/mem.h"
#include "shared/syscalls.h"
#include "tests/privileges.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED 1 /* whose search for leaks may make some more calls */
#else
#define SANITIZED 0
#endif

/* What a child has to check; 0 or what its exit status shall be. */
typedef int work(void);

/* Runs it in a child, as rights do not come back. Its exit status, or 128 + signal. */
static int in_child(work *check)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(check());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void need_capabilities(void)
{
	uint64_t needed = CAPABILITY(CAP_BPF) | CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_SETPCAP);
	struct privileges p;

	assert_true(privileges_read("/proc/self/status", &p));
	if ((p.permitted & needed) == needed)
		return;
	print_message("SKIP: takes CAP_BPF, CAP_PERFMON and CAP_SETPCAP\n");
	skip();
}

static int always_works(void *ctx, struct error *error)
{
	(void)ctx;
	(void)error;
	return 0;
}

/* True when the kernel's word is that the thread has these capabilities only, and a filter. */
static bool is_confined(uint64_t capabilities)
{
	struct privileges p;
	int threads;

	return privileges_confined(getpid(), capabilities, &threads) &&
	       privileges_read("/proc/self/status", &p) && p.bounding == 0;
}

static int confine_freely(void)
{
	const struct confine_config config = {.trial = always_works};
	struct error why = {""};

	if (!confine(&config, &why))
		return 0;
	fprintf(stderr, "%s\n", why.text);
	return 1;
}

static int check_nothing_is_left(void)
{
	if (confine_freely())
		return 1;
	return is_confined(0) ? 0 : 2;
}

static void test_nothing_is_left(void **state)
{
	(void)state;
	need_capabilities();
	assert_int_equal(in_child(check_nothing_is_left), 0);
}

/* --- the trial -------------------------------------------------------------------------------- */

static int trials;

/* As a kernel that asks for both capabilities. */
static int works_with_bpf(void *ctx, struct error *error)
{
	struct privileges p;

	(void)ctx;
	trials++;
	if (privileges_read("/proc/self/status", &p) && p.effective & CAPABILITY(CAP_BPF) &&
	    p.effective & CAPABILITY(CAP_PERFMON))
		return 0;
	error_set(error, "it is not permitted");
	return -EPERM;
}

static int never_works(void *ctx, struct error *error)
{
	(void)ctx;
	trials++;
	error_set(error, "it is broken");
	return -EIO;
}

static int check_two_are_kept(void)
{
	const struct confine_config config = {.trial = works_with_bpf};
	struct error why = {""};

	if (confine(&config, &why) || trials != 2)
		return 1;
	return is_confined(CAPABILITY(CAP_BPF) | CAPABILITY(CAP_PERFMON)) ? 0 : 2;
}

static void test_two_are_kept_if_needed(void **state)
{
	(void)state;
	need_capabilities();
	assert_int_equal(in_child(check_two_are_kept), 0);
}

static int check_failure_is_told(void)
{
	const struct confine_config config = {.trial = never_works};
	struct error why = {""};

	if (confine(&config, &why) != -EIO || trials != 2)
		return 1;
	return strstr(why.text, "it is broken") && strstr(why.text, "--no-confine") ? 0 : 2;
}

static void test_failure_is_told(void **state)
{
	(void)state;
	need_capabilities();
	assert_int_equal(in_child(check_failure_is_told), 0);
}

static int check_without_any(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct privileges p;

	if (syscall(SYS_capset, &header, none) || confine_freely())
		return 1;
	/* The bounding set is out of reach then. */
	return privileges_read("/proc/self/status", &p) && !p.permitted && p.seccomp == 2 ? 0 : 2;
}

static void test_nothing_to_give_up(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_without_any), 0);
}

/* --- what is refused -------------------------------------------------------------------------- */

struct forbidden {
	const char *what;
	long call;
	long arguments[6];
};

static const char file[] = "/proc/self/comm"; /* its owner may write it, and it cannot be harmed */
static char *const no_arguments[] = {(char *)"false", NULL};
static union bpf_attr attr;
static struct {
	uint64_t flags, mode, resolve;
} how = {.flags = O_WRONLY};

static const struct forbidden forbidden[] = {
	{"execve", SYS_execve, {(long)"/bin/false", (long)no_arguments, 0}},
	{"execveat", SYS_execveat, {AT_FDCWD, (long)"/bin/false", (long)no_arguments, 0}},
	{"openat2", SYS_openat2, {AT_FDCWD, (long)file, (long)&how, sizeof(how)}},
#ifdef SYS_open
	{"creat", SYS_creat, {(long)file, 0600}},
	{"fork", SYS_fork, {0}},
#endif
	{"truncate", SYS_truncate, {(long)file, 0}},
	{"fchmodat", SYS_fchmodat, {AT_FDCWD, (long)file, 0}},
	{"symlinkat", SYS_symlinkat, {(long)file, AT_FDCWD, (long)file}},
	{"load a BPF program", SYS_bpf, {BPF_PROG_LOAD, (long)&attr, sizeof(attr)}},
	{"make a BPF map", SYS_bpf, {BPF_MAP_CREATE, (long)&attr, sizeof(attr)}},
	{"attach a BPF program", SYS_bpf, {BPF_LINK_CREATE, (long)&attr, sizeof(attr)}},
	{"find a BPF map", SYS_bpf, {BPF_MAP_GET_FD_BY_ID, (long)&attr, sizeof(attr)}},
	{"pin a BPF map", SYS_bpf, {BPF_OBJ_PIN, (long)&attr, sizeof(attr)}},
	{"perf_event_open", SYS_perf_event_open, {(long)&attr, 0, -1, -1, 0}},
	{"packet socket", SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
	{"unix socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
	{"crypto socket", SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}},
	{"uevent socket", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT}},
	{"listen", SYS_listen, {0, 1}},
	{"process_vm_readv", SYS_process_vm_readv, {1, 0, 0, 0, 0, 0}},
	{"kill", SYS_kill, {1, 0}},
	{"tgkill of another", SYS_tgkill, {1, 1, 0}},
	{"pidfd_open", SYS_pidfd_open, {1, 0}},
	{"clone3", SYS_clone3, {(long)&attr, sizeof(attr)}},
	{"mount", SYS_mount, {(long)"none", (long)"/proc", (long)"proc", 0, 0}},
	{"unshare", SYS_unshare, {CLONE_NEWUSER}},
	{"setns", SYS_setns, {0, 0}},
	{"chroot", SYS_chroot, {(long)"/"}},
	{"code that can be written",
	 SYS_mmap,
	 {0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
	{"code from nowhere",
	 SYS_mmap,
	 {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
	{"code from data", SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC}},
	{"prlimit of another", SYS_prlimit64, {1, 7, 0, (long)&attr}},
	{"type into the terminal", SYS_ioctl, {0, TIOCSTI, (long)"x"}},
	{"setuid", SYS_setuid, {0}},
	{"capset", SYS_capset, {(long)&attr, (long)&attr}},
	{"seccomp", SYS_seccomp, {0, 0, 0}},
	{"keyctl", SYS_keyctl, {0, 0, 0}},
	{"io_uring_setup", SYS_io_uring_setup, {1, (long)&attr}},
	{"userfaultfd", SYS_userfaultfd, {0}},
	{"finit_module", SYS_finit_module, {0, (long)"", 0}},
	{"sethostname", SYS_sethostname, {(long)"x", 1}},
#if !SANITIZED
	{"ptrace", SYS_ptrace, {PTRACE_TRACEME, 0, 0, 0}},
	{"clone of a process", SYS_clone, {SIGCHLD}},
	{"prctl", SYS_prctl, {PR_SET_DUMPABLE, 1}},
#endif
};

/* And to the agent, which writes nothing and is reached by nobody. */
static const struct forbidden forbidden_to_agents[] = {
	{"open for writing", SYS_openat, {AT_FDCWD, (long)file, O_WRONLY}},
	{"open for both", SYS_openat, {AT_FDCWD, (long)file, O_RDWR}},
	{"open for ioctl", SYS_openat, {AT_FDCWD, (long)file, O_ACCMODE}},
	{"make by open", SYS_openat, {AT_FDCWD, (long)file, O_RDONLY | O_CREAT, 0600}},
	{"empty by open", SYS_openat, {AT_FDCWD, (long)file, O_RDONLY | O_TRUNC}},
	{"unlinkat", SYS_unlinkat, {AT_FDCWD, (long)file, 0}},
	{"mkdirat", SYS_mkdirat, {AT_FDCWD, (long)file, 0}},
	{"renameat2", SYS_renameat2, {AT_FDCWD, (long)file, AT_FDCWD, (long)file, 0}},
	{"socketpair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, (long)&attr}},
	{"accept4", SYS_accept4, {0, 0, 0, 0}},
	{"memfd_create", SYS_memfd_create, {(long)"x", 0}},
#ifdef SYS_open
	{"old open for writing", SYS_open, {(long)file, O_WRONLY}},
#endif
};

/* Every refusal is told; the number of calls that were not refused. */
static int count_passed(const struct forbidden *calls, size_t count)
{
	int passed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct forbidden *f = &calls[i];
		const long *a = f->arguments;

		errno = 0;
		if (syscall(f->call, a[0], a[1], a[2], a[3], a[4], a[5]) == -1 && errno == ENOSYS)
			continue;
		fprintf(stderr, "%s: %s\n", f->what, strerror(errno));
		passed++;
	}
	return passed;
}

#define PASSED(calls) count_passed(calls, sizeof(calls) / sizeof((calls)[0]))

static int check_forbidden(void)
{
	return confine_freely() ? 1 : PASSED(forbidden) + PASSED(forbidden_to_agents);
}

static void test_calls_are_refused(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_forbidden), 0);
}

static int restrict_as_aggregator(void)
{
	struct error why = {""};
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 1;
	if (!syscalls_prepare(SYSCALLS_AGGREGATOR, &fd, &why) && !syscalls_restrict(fd, &why))
		return 0;
	fprintf(stderr, "%s\n", why.text);
	return 1;
}

static int check_forbidden_to_aggregators(void)
{
	return restrict_as_aggregator() ? 1 : PASSED(forbidden);
}

static void test_calls_are_refused_to_aggregators(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_forbidden_to_aggregators), 0);
}

/* --- what goes on ----------------------------------------------------------------------------- */

static void *in_thread(void *ctx)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	int *result = ctx;

	*result = getaddrinfo("localhost", "1", &hints, &found);
	if (!*result)
		freeaddrinfo(found);
	return NULL;
}

static int check_names(void)
{
	pthread_t thread;
	int result = 1;

	if (pthread_create(&thread, NULL, in_thread, &result) || pthread_join(thread, NULL))
		return 1;
	return result;
}

static int check_files_and_memory(void)
{
	char *memory = mem_alloc(64 << 20), text[64];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	bool works;

	memory[32 << 20] = 1;
	works = fd >= 0 && read(fd, text, sizeof(text)) > 0;
	free(memory);
	close(fd);
	return works ? 0 : 1;
}

static bool opens_socket(int family)
{
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int check_permitted(void)
{
	if (confine_freely())
		return 1;
	if (check_names())
		return 2;
	if (check_files_and_memory())
		return 3;
	if (!opens_socket(AF_INET))
		return 4;
	return opens_socket(AF_INET6) || errno == EAFNOSUPPORT ? 0 : 5;
}

/* A file is made, written, given another name and deleted. */
static bool keeps_files(const char *folder)
{
	char *from = mem_printf("%s/a", folder), *to = mem_printf("%s/b", folder);
	int fd = open(from, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool works = fd >= 0 && pwrite(fd, "x", 1, 0) == 1 && !ftruncate(fd, 0) && !fsync(fd) &&
		     !close(fd) && !rename(from, to) && !unlink(to);

	free(from);
	free(to);
	return works;
}

/* A connection to a socket that listens since before. */
static bool is_reached(int listener)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	int out = socket(AF_INET, SOCK_STREAM, 0), in;

	if (getsockname(listener, (struct sockaddr *)&at, &len) ||
	    connect(out, (struct sockaddr *)&at, len))
		return false;
	in = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return in >= 0 && !getpeername(in, (struct sockaddr *)&at, &len) && !close(in) &&
	       !close(out);
}

/* What fails, as a number; 0: nothing does. */
static int try_as_aggregator(int listener, char *folder)
{
	int ends[2];

	if (listener < 0 || listen(listener, 1) || !mkdtemp(folder) || restrict_as_aggregator())
		return 1;
	if (check_names())
		return 2;
	if (check_files_and_memory())
		return 3;
	if (!keeps_files(folder))
		return 4;
	if (!is_reached(listener))
		return 5;
	return !socketpair(AF_UNIX, SOCK_STREAM, 0, ends) &&
			       !unlinkat(AT_FDCWD, folder, AT_REMOVEDIR)
		       ? 0
		       : 6;
}

static int check_permitted_to_aggregators(void)
{
	char folder[] = "/tmp/confine.XXXXXX";
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int failed = try_as_aggregator(listener, folder);

	close(listener);
	return failed;
}

static void test_work_of_aggregators_goes_on(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_permitted_to_aggregators), 0);
}

static void test_work_goes_on(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_permitted), 0);
}

static int check_unix_sockets(void)
{
	const struct confine_config config = {.trial = always_works, .unix_sockets = true};
	struct error why = {""};

	if (confine(&config, &why))
		return 1;
	return opens_socket(AF_UNIX) && !opens_socket(AF_PACKET) ? 0 : 2;
}

static void test_unix_sockets_if_wanted(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_unix_sockets), 0);
}

static int check_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	if (!confine_freely())
		abort();
	return 1;
}

static void test_abort_ends_the_process(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_abort), 128 + SIGABRT);
}

/* --- a kernel without filters ----------------------------------------------------------------- */

/* From here on the process lives on a kernel built without seccomp. */
static int forget_seccomp(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
				  SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, PR_SET_SECCOMP));

	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0);
	if (!rc)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc;
}

static int check_without_seccomp(void)
{
	struct error why = {""};
	struct privileges p;
	int fd;

	if (forget_seccomp())
		return 1;
	if (syscalls_prepare(SYSCALLS_AGENT, &fd, &why) != -ENOSYS ||
	    !strstr(why.text, "no seccomp"))
		return 2;
	if (confine_freely())
		return 3;
	return privileges_read("/proc/self/status", &p) && !p.permitted && p.no_new_privs ? 0 : 4;
}

static void test_without_seccomp_the_rest_is_done(void **state)
{
	(void)state;
	assert_int_equal(in_child(check_without_seccomp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_two_are_kept_if_needed),
		cmocka_unit_test(test_failure_is_told),
		cmocka_unit_test(test_nothing_to_give_up),
		cmocka_unit_test(test_calls_are_refused),
		cmocka_unit_test(test_calls_are_refused_to_aggregators),
		cmocka_unit_test(test_work_goes_on),
		cmocka_unit_test(test_work_of_aggregators_goes_on),
		cmocka_unit_test(test_unix_sockets_if_wanted),
		cmocka_unit_test(test_abort_ends_the_process),
		cmocka_unit_test(test_without_seccomp_the_rest_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
