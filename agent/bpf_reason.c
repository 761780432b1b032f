/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes are checked after a failure only, in this order:
 *
 *	no valid BTF --> a needed function is missing --> no capability --> locked memory is limited
 *		--> the verifier's last line --> the first warning of libbpf
 *
 * Functions come before capabilities: without a function the kernel returns EPERM to a process with
 * few capabilities, and ENOENT or ESRCH to one with many.
 */
#include "agent/bpf_reason.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/log.h"

/* --- what libbpf says ------------------------------------------------------------------------- */

/*
 * Static, as libbpf's print callback has no context. Only the thread that opens the sampler writes
 * them.
 */
static char first_warning[256], verdict[256];

static void keep(char kept[256], const char *line)
{
	static const char prefix[] = "libbpf: ";

	if (strncmp(line, prefix, sizeof(prefix) - 1) == 0)
		line += sizeof(prefix) - 1;
	snprintf(kept, 256, "%s", line);
}

/*
 * The verifier logs every step; the cause is the last line before its statistics:
 *
 *     prog 'walk': -- BEGIN PROG LOAD LOG --
 *     0: (b7) r1 = 0
 *     calling kernel function bpf_cgroup_from_id is not allowed
 *     processed 5 insns (limit 1000000) ..
 *     -- END PROG LOAD LOG --
 */
static void take_line(char *line, bool *in_log)
{
	log_debug("%s", line);
	if (!first_warning[0])
		keep(first_warning, line);
	if (strstr(line, "-- BEGIN PROG LOAD LOG --"))
		*in_log = true;
	else if (strncmp(line, "processed ", 10) == 0 || strncmp(line, "-- END", 6) == 0)
		*in_log = false;
	else if (*in_log && line[0])
		keep(verdict, line);
}

__attribute__((format(printf, 2, 0))) static int take_message(enum libbpf_print_level level,
							      const char *format, va_list args)
{
	char *text, *line, *rest;
	bool in_log = false;

	if (level == LIBBPF_DEBUG || vasprintf(&text, format, args) < 0)
		return 0;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		take_line(line, &in_log);
	free(text);
	return 0;
}

void bpf_reason_begin(void)
{
	first_warning[0] = verdict[0] = '\0';
	libbpf_set_print(take_message);
}

/* --- what the kernel and the process have ----------------------------------------------------- */

/* The first missing function, or NULL. */
static const struct bpf_reason_need *find_missing(const struct btf *btf,
						  const struct bpf_reason_need *needs)
{
	for (const struct bpf_reason_need *need = needs; btf && need->function; need++) {
		if (btf__find_by_name_kind(btf, need->function, BTF_KIND_FUNC) < 0)
			return need;
	}
	return NULL;
}

static bool has_capability(const struct __user_cap_data_struct *data, int capability)
{
	return data[capability / 32].effective & 1U << capability % 32;
}

/* The missing capabilities, or NULL. CAP_SYS_ADMIN includes both. */
static const char *missing_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	bool bpf, perfmon;

	if (syscall(SYS_capget, &header, data) || has_capability(data, CAP_SYS_ADMIN))
		return NULL;
	bpf = has_capability(data, CAP_BPF);
	perfmon = has_capability(data, CAP_PERFMON);
	if (bpf && perfmon)
		return NULL;
	if (bpf)
		return "CAP_PERFMON";
	return perfmon ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
}

/* libbpf raises the limit of locked memory if it may. */
static bool may_not_lock(const struct btf *btf, struct rlimit *limit)
{
	const struct btf_type *helpers;
	int id;
	bool newer = false;

	if (getrlimit(RLIMIT_MEMLOCK, limit) || limit->rlim_cur == RLIM_INFINITY)
		return false;
	/*
	 * Kernels before 5.11 count BPF maps as locked memory, not as memory of a cgroup. They lack
	 * the helper that came right after, which libbpf checks, too.
	 */
	id = btf ? btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) : -1;
	if (id < 0)
		return false;
	helpers = btf__type_by_id(btf, (__u32)id);
	for (int i = 0; i < btf_vlen(helpers) && !newer; i++)
		newer = strcmp(btf__name_by_offset(btf, btf_enum(helpers)[i].name_off),
			       "BPF_FUNC_ktime_get_coarse_ns") == 0;
	return !newer;
}

int bpf_reason_explain(const char *what, int error, const struct bpf_reason_need *needs,
		       struct error *reason)
{
	bool forbidden = error == -EPERM || error == -EACCES;
	const char *missing = forbidden ? missing_capabilities() : NULL;
	const struct bpf_reason_need *need;
	struct btf *btf;
	struct rlimit limit;

	if (access(BPF_REASON_BTF, R_OK))
		return error_fail(reason, -ENOENT,
				  "the kernel's type information cannot be read (" BPF_REASON_BTF
				  ": %s): it takes a kernel with CONFIG_DEBUG_INFO_BTF",
				  strerror(errno));
	btf = btf__parse(BPF_REASON_BTF, NULL);
	need = find_missing(btf, needs);
	if (!btf)
		error = error_fail(reason, -ENOENT,
				   "the kernel's type information cannot be understood "
				   "(" BPF_REASON_BTF "): it takes a kernel with a sound BTF");
	else if (need)
		error = error_fail(reason, -ENOSYS, "%s", need->missing);
	else if (missing)
		error = error_fail(reason, -EPERM,
				   "BPF is not permitted: %s missing; run it as root or give it "
				   "these capabilities",
				   missing);
	else if (forbidden && may_not_lock(btf, &limit))
		error = error_fail(
			reason, -EPERM,
			"%s: only %llu KiB of memory may be locked, and this kernel counts BPF "
			"maps as locked memory; raise RLIMIT_MEMLOCK or give it CAP_SYS_RESOURCE",
			what, (unsigned long long)limit.rlim_cur / 1024);
	else if (verdict[0])
		error_set(reason, "%s: the verifier says: %s", what, verdict);
	else
		error_set(reason, "%s: %s%s%s", what, strerror(-error),
			  first_warning[0] ? "; " : "", first_warning);
	btf__free(btf);
	return error;
}
