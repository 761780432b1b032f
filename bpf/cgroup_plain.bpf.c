/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tier T1 without bpf_rdonly_cast, for 6.1: libbpf before 1.3 searches a missing kernel function in
 * the modules, too, which takes CAP_SYS_ADMIN.
 */
#define KERNEL_PLAIN
#include "bpf/cgroup.bpf.c"
