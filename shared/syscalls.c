/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allow-list per program: common calls and its own, taken from traces of the running programs:
 * the agent on all tiers, a step down to T3, names that resolve and do not, aggregators that come
 * and go, new keys, the end; the aggregator with a new, damaged or full database, an API that comes
 * and goes, TLS, reviews and reloads.
 *
 *	listed call and arguments	--> done
 *	other call			--> ENOSYS
 *	call of another architecture	--> the process is killed
 *
 * ENOSYS means an older kernel to a library, and every C library falls back to an older call (clone
 * for clone3, faccessat for faccessat2), so a newer libc works. nanomsg asserts that there is no
 * EPERM, and killing would make the fleet depend on this list.
 *
 * An attacker in the process can read what its user may read and connect out; in the aggregator
 * also write what its user may write. Not possible: running a program, listening, loading BPF,
 * signalling or tracing others, memory both writable and executable, raw and packet sockets,
 * mounts, namespaces; in the agent also writing a file.
 *
 * Filters see numbers, not what pointers point to, so paths and addresses are not checked. The
 * kernel reads the lower 32 bits of an `int` argument, and so do the filters. libseccomp skips
 * calls that an architecture lacks, so one table serves all: 64-bit names, then 32-bit ones.
 *
 * libseccomp 2.5 without memory may free twice, loop for ever or silently omit a rule: with each of
 * the 1600 allocations failing in turn, in one of ten cases. So a child process makes the filter
 * twice, started with one thread. If the child succeeds in time and both are equal, the filter is
 * loaded, which allocates nothing.
 *
 * What can fail: a kernel without seccomp filters; out of memory; no child process.
 */
#include "shared/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A call; all comparisons of a row must hold. Of several rows of a call one must match. */
struct call_rule {
	int call;
	unsigned int compared;
	struct scmp_arg_cmp arguments[2];
};

/* clang-format off */
#define CALL(name) {.call = SCMP_SYS(name)}
#define CALL_IF(name, a) {SCMP_SYS(name), 1, {a}}
#define CALL_IF_BOTH(name, a, b) {SCMP_SYS(name), 2, {a, b}}
/* Argument n, counted from 0, as an int. */
#define IS(n, value) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value))
/* Of the bits in mask those in value are set and no others. */
#define BITS(n, mask, value) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (uint32_t)(mask), (uint32_t)(value))

static const struct call_rule common_rules[] = {
	/* Files are read: T3, rescans, /proc, keys, certificates, name resolution. */
	CALL_IF(openat, BITS(2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY)),
	CALL(read), CALL(pread64), CALL(lseek), CALL(close), CALL(getdents64),
	CALL(fstat), CALL(newfstatat), CALL(statx),
	CALL(access), CALL(faccessat), CALL(faccessat2), CALL(readlink), CALL(readlinkat),
	/* The log, event descriptors, sockets: no file is opened for writing. */
	CALL(write), CALL(writev),
	CALL(fcntl),
	CALL_IF(ioctl, IS(1, FIONREAD)), /* the resolver: the length of an answer */
	CALL_IF(ioctl, IS(1, TCGETS)), /* stdio: is the log a terminal? */

	/* The loops of the programs, of their libraries and of the resolver. */
	CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait),
	CALL(poll), CALL(ppoll), CALL(eventfd2), CALL(timerfd_settime),

	/* Connections out; name servers, UDP and TCP; the addresses we have. */
	CALL_IF(socket, IS(0, AF_INET)),
	CALL_IF(socket, IS(0, AF_INET6)),
	CALL_IF_BOTH(socket, IS(0, AF_NETLINK), IS(2, 0)), /* NETLINK_ROUTE: getaddrinfo */
	CALL(connect), CALL(bind), CALL(getsockname), CALL(getsockopt), CALL(setsockopt),
	CALL(sendto), CALL(sendmsg), CALL(sendmmsg), CALL(recvfrom), CALL(recvmsg),

	/* Memory. Code only from files: libc loads name services and, for pthread_exit, libgcc. */
	CALL_IF(mmap, BITS(2, PROT_EXEC, 0)),
	CALL_IF_BOTH(mmap, BITS(2, PROT_EXEC | PROT_WRITE, PROT_EXEC), BITS(3, MAP_ANONYMOUS, 0)),
	CALL_IF(mprotect, BITS(2, PROT_EXEC, 0)),
	CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise),

	/* Threads, not processes. clone3 hides its flags in memory: ENOSYS makes libc use clone. */
	CALL_IF(clone, BITS(0, CLONE_THREAD, CLONE_THREAD)),
	CALL(futex), CALL(set_robust_list), CALL(rseq), CALL(sched_getaffinity),
	CALL(gettid), CALL(getpid), CALL(exit), CALL(exit_group), CALL(restart_syscall),
	CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn),
	/* tgkill for abort(): fill() adds it for this process. */

	/* Time, random numbers, identity. */
	CALL(clock_gettime), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday),
	CALL(time), CALL(getrandom), CALL(uname), CALL(sysinfo),
	CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid), CALL(capget),
	/* T3 raises its own limit of open files. */
	CALL_IF(prlimit64, IS(0, 0)),

	/* The same on 32-bit machines, with 64-bit and with 32-bit time. */
	CALL_IF(mmap2, BITS(2, PROT_EXEC, 0)),
	CALL_IF_BOTH(mmap2, BITS(2, PROT_EXEC | PROT_WRITE, PROT_EXEC), BITS(3, MAP_ANONYMOUS, 0)),
	CALL(_llseek), CALL(fcntl64), CALL(fstat64), CALL(fstatat64),
	CALL(send), CALL(recv), CALL(sigreturn),
	CALL(getuid32), CALL(geteuid32), CALL(getgid32), CALL(getegid32),
	CALL(clock_gettime64), CALL(clock_nanosleep_time64), CALL(futex_time64),
	CALL(ppoll_time64), CALL(timerfd_settime64),
};

/* A walk of T1 and T2; a walk of T0. */
static const struct call_rule agent_rules[] = {
	CALL_IF(bpf, IS(0, BPF_ITER_CREATE)),
	CALL_IF(bpf, IS(0, BPF_PROG_TEST_RUN)),
};

/*
 * ipc:// only: through Unix sockets a root process could use root's daemons; nscd is not used.
 */
static const struct call_rule agent_ipc_rules[] = {
	CALL_IF(socket, IS(0, AF_UNIX)),
};

static const struct call_rule aggregator_rules[] = {
	/* The database, made anew if damaged. */
	CALL(openat), CALL(open), CALL(pwrite64), CALL(ftruncate), CALL(fsync), CALL(fdatasync),
	CALL(rename), CALL(renameat), CALL(renameat2), CALL(unlink), CALL(unlinkat),
	CALL(mkdir), CALL(mkdirat), CALL(fchmod), CALL(fchown), CALL(stat), CALL(lstat),
	CALL(getcwd),
	/* Certificates go to libcurl as files without a name. */
	CALL(memfd_create),

	/* Connections on the listening sockets; waking threads. */
	CALL(accept4), CALL(accept), CALL(getpeername), CALL(shutdown), CALL(recvmmsg),
	CALL(socketpair), CALL(pipe2), CALL(timerfd_create), CALL(select), CALL(pselect6),
	CALL_IF(ioctl, IS(1, FIONBIO)),

	/* The planner's thread lowers its priority; allocators and locks wait. */
	CALL(setpriority), CALL(getrusage), CALL(sched_yield),
	CALL_IF(prctl, IS(0, PR_SET_NAME)),

	CALL(ftruncate64), CALL(stat64), CALL(lstat64), CALL(fchown32), CALL(_newselect),
	CALL(pselect6_time64), CALL(recvmmsg_time64),
};

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED
/*
 * The leak sanitizer: a process that shares the memory and stops the threads. Reports go to a file
 * if log_path is set.
 */
static const struct call_rule sanitizer_rules[] = {
	CALL(clone), CALL(ptrace), CALL(wait4), CALL(prctl),
	CALL(sched_yield), CALL(getppid), CALL(getdents), CALL(sigaltstack),
	CALL_IF(open, BITS(1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY)),
	CALL_IF(open, BITS(1, O_ACCMODE | O_CREAT | O_TRUNC, O_WRONLY | O_CREAT | O_TRUNC)),
};
#endif
/* clang-format on */

struct table {
	const struct call_rule *rules;
	size_t count;
};

#define TABLE(rules)                                                                               \
	{                                                                                          \
		rules, sizeof(rules) / sizeof((rules)[0])                                          \
	}

enum { TABLES_MAX = 2 };

/* Beside the common ones; ended by one without rules. */
static const struct table own_tables[][TABLES_MAX + 1] = {
	[SYSCALLS_AGENT] = {TABLE(agent_rules)},
	[SYSCALLS_AGENT_IPC] = {TABLE(agent_rules), TABLE(agent_ipc_rules)},
	[SYSCALLS_AGGREGATOR] = {TABLE(aggregator_rules)},
};

static int add(scmp_filter_ctx filter, const struct call_rule *rules, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call,
					    rules[i].compared, rules[i].arguments);
	return rc;
}

#define ADD(filter, rules) add(filter, rules, sizeof(rules) / sizeof((rules)[0]))

static int fill(scmp_filter_ctx filter, enum syscalls_of program, pid_t self)
{
	const struct call_rule own_rules[] = {CALL_IF(tgkill, IS(0, self))};
	int rc = ADD(filter, common_rules);

	if (!rc)
		rc = ADD(filter, own_rules);
	for (const struct table *t = own_tables[program]; t->rules && !rc; t++)
		rc = add(filter, t->rules, t->count);
#ifdef SANITIZED
	if (!rc)
		rc = ADD(filter, sanitizer_rules);
#endif
	return rc;
}

/* --- in the child ----------------------------------------------------------------------------- */

/* Writes the filter for the process `self` to the descriptor. 0, or a negative errno. */
static int export(int fd, enum syscalls_of program, pid_t self)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int rc = filter ? fill(filter, program, self) : -ENOMEM;

	if (!rc) {
		/* Optional: a tree; libseccomp before 2.5 has a list only. */
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
		rc = seccomp_export_bpf(filter, fd);
	}
	seccomp_release(filter);
	return rc;
}

/* --- in the program --------------------------------------------------------------------------- */

/* 0 or -errno; a killed child counts as out of memory. */
static int run_child(int fd, enum syscalls_of program)
{
	pid_t self = getpid(), child = fork();
	int status;

	if (child == 0) {
		/* Its exit status is an errno. */
		/* It takes milliseconds; the limit of CPU time ends one that loops. */
		const struct rlimit cpu = {.rlim_cur = 2, .rlim_max = 3};
		int rc = setrlimit(RLIMIT_CPU, &cpu) ? -errno : export(fd, program, self);

		if (!rc)
			rc = export(fd, program, self);
		_exit(-rc);
	}
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ENOMEM;
}

/* For all threads, or an error. */
static int load(struct sock_filter *instructions, size_t count)
{
	struct sock_fprog program = {.len = (unsigned short)count, .filter = instructions};
	long rc =
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);

	return rc < 0 ? -errno : rc > 0 ? -ESRCH : 0;
}

/* Two equal filters, one after the other. */
static int load_from(int fd)
{
	static struct sock_filter both[2 * BPF_MAXINSNS + 1];
	ssize_t len = pread(fd, both, sizeof(both), 0);
	size_t count = len > 0 ? (size_t)len / sizeof(both[0]) / 2 : 0;

	if (len < 0)
		return -errno;
	if (!count || count > BPF_MAXINSNS || (size_t)len != 2 * count * sizeof(both[0]) ||
	    memcmp(both, both + count, count * sizeof(both[0])) != 0)
		return -ENOMEM;
	return load(both, count);
}

static int refuse(int rc, struct error *error)
{
	return error_fail(error, rc == -ENOSYS ? -EINVAL : rc,
			  "cannot restrict the system calls: %s", strerror(-rc));
}

int syscalls_prepare(enum syscalls_of program, int *out, struct error *error)
{
	int rc, fd;

	/* A filter at address 0: EFAULT if the kernel has filters. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno != EFAULT)
		return error_fail(error, -ENOSYS, "the kernel has no seccomp filters (%s)",
				  strerror(errno));
	fd = memfd_create("filter", MFD_CLOEXEC);
	rc = fd < 0 ? -errno : run_child(fd, program);
	if (rc && fd >= 0)
		close(fd);
	if (rc)
		return refuse(rc, error);
	*out = fd;
	return 0;
}

int syscalls_restrict(int fd, struct error *error)
{
	int rc = load_from(fd);

	close(fd);
	return rc ? refuse(rc, error) : 0;
}
