/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node as bytes, for the database: its windows, how far they reach, and what its stats say of the
 * machine. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/bytes.h"
#include "aggregator/state/windows.h"
#include "shared/buf.h"
#include "shared/error.h"

/*
 * Version 2, little-endian, floats as IEEE 754:
 *
 *	u8	version, 2
 *	16 B	run, and u64 sequence (> 0) of the newest interval in the windows
 *	i64	its end, Unix nanoseconds
 *	i64	when the node was last heard, Unix nanoseconds
 *	i64	what is added to the times the node tells, nanoseconds, whole seconds (node_clock.h)
 *	i64	end of the newest interval whose CPU and memory use could be, Unix nanoseconds; 0: none
 *	u8	tier: 0 T0 .. 3 T3
 *	f32	sampling passes per second; u32 missed ticks, u32 cgroups beyond the sampler's room, u64 ns of a pass,
 *		f64 millicores the agent itself used: all of that interval
 *	u8	1 where the machine's CPU split is known; f64 millicores user, system, iowait, steal; i64 MemAvailable
 *	i64	millicores, i64 bytes of memory that the machine has
 *	u32	which of the following were measured: bits of enum usage_have for CPU, memory, working set, swap, pids
 *	f32	mean millicores, f32 bytes of memory, f32 working set, u64 bytes of swap, u32 tasks
 *	windows, see window_node.c
 *	16 B	BLAKE2b-128 of the node's name, a zero byte, and all before
 *
 * Every row stands for itself: windows and the sequence they reach to are of one moment, whatever
 * other rows are of.
 */
enum { USAGE_PACK_VERSION = 2, USAGE_PACK_SUM_LEN = 16 };

struct usage_node;

/* Appends all but the sum. The node must have been told or restored something. */
void usage_node_pack(const struct usage_node *n, struct buf *out);
/* Appends the sum: apart, since packing happens on the loop thread and this need not. */
void usage_pack_seal(const char *name, struct buf *packed);
/*
 * A node as usage_restore() takes it; it was never heard in this process. -EPROTO: of another
 * version; -EBADMSG: not what was packed for this name, the reason says what is wrong.
 */
int usage_node_unpack(const char *name, const void *data, size_t len, struct usage_node **n,
		      struct error *error);

/* The windows alone; -EINVAL and nothing in *w when they cannot be. */
void node_windows_pack(const struct node_windows *w, struct bytes *b);
int node_windows_unpack(struct bytes *b, struct node_windows **w);
/* Start of the newest bucket, Unix time. */
int64_t node_windows_newest_ns(const struct node_windows *w);
