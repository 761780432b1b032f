/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in words why the BPF sampler could not be set up: by what the kernel offers, never by its
 * version.
 */
#ifndef EVENKEEL_AGENT_BPF_REASON_H
#define EVENKEEL_AGENT_BPF_REASON_H

#include "shared/reason.h"

#define BPF_REASON_BTF "/sys/kernel/btf/vmlinux"

/*
 * From now on libbpf prints nothing; its first warning is kept instead, since later ones only
 * repeat that it failed.
 */
void bpf_reason_begin(void);
/*
 * After `what` failed with the (negative) error: sets the reason and returns the error to report.
 * -ENOENT: no BTF; -EPERM: a capability is missing, or something else forbids it; -ENOSYS: the
 * kernel has no cgroup iterator or no bpf(); any other error as it came.
 */
int bpf_reason_explain(const char *what, int error, struct reason *reason);

#endif
