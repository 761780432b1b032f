/* SPDX-License-Identifier: Apache-2.0 */
/* The whole machine, from /proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/interval.h"
#include "shared/error.h"

struct machine {
	bool stale; /* set by the caller: machine_read() failed, the values are old */
	int64_t cpu_capacity_milli; /* online CPUs * 1000 */
	uint64_t cpu_busy_ns; /* user (guests are part of it), nice, system, irq, softirq */
	uint64_t mem_total_bytes;
	uint64_t mem_available_bytes;
	struct cpu_split cpu; /* since boot */
	/* /proc/pressure, since boot. */
	bool psi_known;
	bool psi_cpu_full_known;
	uint64_t psi_cpu_ns, psi_cpu_full_ns; /* some, full */
	uint64_t psi_mem_ns, psi_mem_full_ns;
	char boot_id[BOOT_ID_LEN + 1];
};

/* Pure parsers; -EBADMSG with the reason naming the missing field. hz: USER_HZ ticks per second. */
int machine_parse_stat(const char *text, long hz, struct machine *m, struct error *error);
int machine_parse_meminfo(const char *text, struct machine *m, struct error *error);
/*
 * Sets all psi_ members from the texts of /proc/pressure/cpu and memory; "": missing. A full line
 * of cpu with the value 0 is none: the kernel writes it for the format only.
 */
void machine_parse_pressure(const char *cpu, const char *memory, struct machine *m);

struct machine_files; /* kept-open files */
int machine_open(struct machine_files **f, struct error *error);
void machine_close(struct machine_files *f);
int machine_read(struct machine_files *f, struct machine *m, struct error *error);
