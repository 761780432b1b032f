/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes are looked for in this order, after the failure, so that a start that works pays
 * nothing:
 *
 *     no BTF --> no cgroup iterator in it --> no capability --> whatever libbpf said first
 *
 * The iterator comes before the capability, since a kernel without it answers EPERM to a process
 * with few capabilities and ENOENT or ESRCH to one with many.
 */
#include "agent/bpf_reason.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * libbpf's print callback has no argument of ours. Written by the thread that opens the sampler
 * only.
 */
static char first_warning[256];

__attribute__((format(printf, 2, 0))) static int keep_warning(enum libbpf_print_level level,
							      const char *format, va_list args)
{
	if (level != LIBBPF_WARN || first_warning[0])
		return 0;
	vsnprintf(first_warning, sizeof(first_warning), format, args);
	first_warning[strcspn(first_warning, "\n")] = '\0';
	return 0;
}

void bpf_reason_begin(void)
{
	first_warning[0] = '\0';
	libbpf_set_print(keep_warning);
}

static bool has_cgroup_iterator(void)
{
	struct btf *btf = btf__parse(BPF_REASON_BTF, NULL);
	bool has;

	if (!btf)
		return true; /* unknown: leave the verdict to the other causes */
	has = btf__find_by_name_kind(btf, "bpf_iter_cgroup", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return has;
}

static bool has_capability(const struct __user_cap_data_struct *data, int capability)
{
	return data[capability / 32].effective & 1U << capability % 32;
}

/* The names of what is missing, or NULL when nothing is. CAP_SYS_ADMIN includes both. */
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

int bpf_reason_explain(const char *what, int error, struct reason *reason)
{
	bool forbidden = error == -EPERM || error == -EACCES;
	const char *missing = forbidden ? missing_capabilities() : NULL;

	if (access(BPF_REASON_BTF, R_OK)) {
		reason_set(reason,
			   "the kernel's type information cannot be read (" BPF_REASON_BTF
			   ": %s): it takes a kernel with CONFIG_DEBUG_INFO_BTF",
			   strerror(errno));
		return -ENOENT;
	}
	if (!has_cgroup_iterator()) {
		reason_set(reason, "the kernel has no BPF iterator over cgroups");
		return -ENOSYS;
	}
	if (missing) {
		reason_set(reason,
			   "BPF is not permitted: %s missing; run it as root or give it these "
			   "capabilities",
			   missing);
		return -EPERM;
	}
	reason_set(reason, "%s: %s%s%s", what, strerror(-error), first_warning[0] ? "; " : "",
		   first_warning);
	return forbidden ? -EPERM : error;
}
