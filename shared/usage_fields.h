/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measures of a cgroup, a row each. Generated from them: struct usage and its bits, the wire
 * format (shared/body.c), merging (shared/interval.c), the agent's counters from reading to
 * interval, the newest values in node snapshots and in JSON, and their bounds. Written by hand:
 * the windows of what is counted (windows.h, window_sums.h, window_node.c,
 * window_pod.c) and its JSON (aggregator/state/stats_json_usage.c).
 */
#pragma once

/* X(bit of enum usage_have): in the order of the bits. */
#define USAGE_BITS(X)                                                                              \
	X(CPU)                                                                                     \
	X(MEMORY)                                                                                  \
	X(WORKING_SET)                                                                             \
	X(THROTTLE)                                                                                \
	X(OOM)                                                                                     \
	X(CONTENTION_CPU)                                                                          \
	X(CONTENTION_MEMORY)                                                                       \
	X(STALL_CPU)                                                                               \
	X(STALL_MEMORY)                                                                            \
	X(SWAP)                                                                                    \
	X(PIDS)                                                                                    \
	X(PROTECTED)

/* Averaged over time. X(member, bit, key in JSON, decimals there, field in body.proto, its message) */
#define USAGE_AVERAGED(X)                                                                          \
	X(cpu_milli, CPU, "cpuMillicores", 3, 3, moments)                                          \
	X(mem_bytes, MEMORY, "memoryBytes", 0, 4, gauge)                                           \
	X(working_set_bytes, WORKING_SET, "workingSetBytes", 0, 5, gauge)

/*
 * Counted in the interval: merging adds. X(member, bit, field in body.proto, its type, member of
 * struct reading); U64: time in nanoseconds, COUNT32: number of events.
 */
#define USAGE_COUNTED(X)                                                                             \
	X(throttled_ns, THROTTLE, 6, U64, throttled_ns)                                              \
	X(throttled_periods, THROTTLE, 7, COUNT32, throttled_periods)                                \
	X(periods, THROTTLE, 8, COUNT32, periods)                                                    \
	X(oom_kills, OOM, 9, COUNT32, oom_kills)                                                     \
	/* PSI some less throttled time: waiting that neighbours caused */                           \
	X(contention_cpu_ns, CONTENTION_CPU, 10, U64, psi_cpu_ns)                                    \
	X(contention_mem_ns, CONTENTION_MEMORY, 11, U64, psi_mem_ns)                                 \
	/* PSI full: time in which none of its tasks could run, for want of CPU or of memory; not  \
	 * less throttled time: a throttled cgroup stalls */ \
	X(stall_cpu_ns, STALL_CPU, 12, U64, psi_cpu_full_ns)                                         \
	X(stall_mem_ns, STALL_MEMORY, 13, U64, psi_mem_full_ns)

/*
 * Newest reading: merging takes the later one. X(member, bit, key in JSON, field in body.proto, its
 * type, greatest possible value, reason of quarantine above it, unit there, help of the metric
 * evenkeel_node_<member>); the member of struct reading has the same name.
 */
#define USAGE_NEWEST(X)                                                                            \
	X(swap_bytes, SWAP, "swapBytes", 14, U64, 1ULL << 50, notANumber, "bytes swapped",         \
	  "Swap in use, newest.")                                                                  \
	/* tasks, as the pids controller counts them; PID_MAX_LIMIT of a 64-bit kernel */          \
	X(pids, PIDS, "pids", 15, COUNT32, 1U << 22, aboveKernelLimit, "tasks",                    \
	  "Tasks, as the pids controller counts them, newest.")                                    \
	/* v2: the greater of memory.min and memory.low, at most that above; max: all in use */    \
	X(mem_protected_bytes, PROTECTED, "memoryProtectedBytes", 16, U64, 1ULL << 50, notANumber, \
	  "bytes protected", "Memory that reclaim spares (memory.min, memory.low), newest.")

/* What the kernel enforces. X(member, key in JSON, field in body.proto, its name) */
#define KERNEL_LIMITS(X)                                                                           \
	X(cpu_milli, "cpuMillicores", 8, "limit_cpu_milli") /* quota / period, or CPUs */          \
	/* memory.max, memory.limit_in_bytes */                                                    \
	X(mem_bytes, "memoryBytes", 9, "limit_mem_bytes")                                          \
	/* memory.high: throttled above, v2 only */                                                \
	X(mem_high_bytes, "memoryHighBytes", 10, "limit_mem_high_bytes")                           \
	/* memory.swap.max; v1: memory.memsw less memory */                                        \
	X(swap_bytes, "swapBytes", 11, "limit_swap_bytes")                                         \
	X(pids, "pids", 12, "limit_pids") /* pids.max */                                           \
	/* per period, of the cgroup whose quota counts; 0: none */                                \
	X(cpu_burst_ns, "cpuBurstMicroseconds", 13, "cpu_burst_ns")                                \
	/* CPUs that no other pod has (agent/cpusets.h); 0: none */                                \
	X(cpu_exclusive_milli, "exclusiveCpuMillicores", 14, "cpu_exclusive_milli")
