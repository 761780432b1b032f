/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in words why a BPF sampler could not be set up: by what the kernel offers, never by its
 * version.
 */
#ifndef EVENKEEL_AGENT_BPF_REASON_H
#define EVENKEEL_AGENT_BPF_REASON_H

#include "shared/reason.h"

#define BPF_REASON_BTF "/sys/kernel/btf/vmlinux"

/* A function of the kernel that the programs cannot do without. */
struct bpf_reason_need {
	const char *function; /* its name in the BTF; NULL ends a list */
	const char *missing; /* what to say without it */
};

/*
 * From now on libbpf prints nothing. Its warnings go to the log's debug level; the first one is
 * kept, since later ones only repeat that it failed, and so is the verifier's last word.
 */
void bpf_reason_begin(void);
/*
 * After `what` failed with the (negative) error: sets the reason, one line, and returns the error
 * to report. -ENOENT: no BTF, or none that makes sense; -ENOSYS: something of `needs` is missing;
 * -EPERM: a capability is missing, or memory may not be locked; any other error as it came (the
 * verifier says -EACCES or -EINVAL).
 */
int bpf_reason_explain(const char *what, int error, const struct bpf_reason_need *needs,
		       struct reason *reason);

#endif
