/* SPDX-License-Identifier: Apache-2.0 */
/* Why a BPF sampler cannot start, told from the features of the kernel, never from its version. */
#pragma once

#include "shared/error.h"

#define BPF_REASON_BTF "/sys/kernel/btf/vmlinux"

/* A kernel function that the programs need. */
struct bpf_reason_need {
	const char *function; /* its name in the BTF; NULL ends a list */
	const char *missing; /* the reason without it */
};

/*
 * Redirects libbpf's warnings to the log's debug level. Keeps the first one, as later ones repeat
 * the failure, and the verifier's last line.
 */
void bpf_reason_begin(void);
/*
 * Sets the reason, one line, after `what` failed with the (negative) error; returns the error to
 * report. -ENOENT: no valid BTF; -ENOSYS: one of `needs` is missing; -EPERM: a capability is
 * missing, or locked memory is limited; else the error itself (the verifier returns -EACCES or
 * -EINVAL).
 */
int bpf_reason_explain(const char *what, int error, const struct bpf_reason_need *needs,
		       struct error *reason);
