/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's disk in this process, which fails when it is told to: the seam for tests of databases.
 */
#pragma once

#include <stdint.h>

enum disk_fault_kind {
	DISK_BROKEN, /* anything may fail: to open, read, write, sync, cut, delete, look, lock */
	DISK_FULL, /* what needs room does */
	DISK_LOCKED, /* somebody else has the file */
	DISK_FAULT_KINDS,
};

/* For all databases that are opened from now on. No fault is set. */
void disk_fault_install(void);
/*
 * Operations of that kind fail from now on: after so many that succeed (0: at once), so many times;
 * then none does. Any thread; what was set before is forgotten.
 */
void disk_fault_set(enum disk_fault_kind kind, int64_t after, int64_t times);
void disk_fault_heal(void);
/* How many failed since it was set. */
int64_t disk_fault_met(void);
