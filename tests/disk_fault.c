/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VFS before SQLite's own, which passes every operation on but those whose turn it is to fail.
 * Files are of version 1, without shared memory: SQLite needs none for a log that one process has
 * to itself, and refuses any other.
 */
#include "tests/disk_fault.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct faulty_file {
	sqlite3_file base; /* first: SQLite knows this one */
	sqlite3_file *real; /* behind it in the same block */
};

static struct {
	pthread_mutex_t mutex;
	/* under lock */
	enum disk_fault_kind kind;
	int64_t after, times, met;
} fault = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static sqlite3_vfs *real_vfs; /* fixed after install */

void disk_fault_set(enum disk_fault_kind kind, int64_t after, int64_t times)
{
	pthread_mutex_lock(&fault.mutex);
	fault.kind = kind;
	fault.after = after;
	fault.times = times;
	fault.met = 0;
	pthread_mutex_unlock(&fault.mutex);
}

void disk_fault_heal(void)
{
	pthread_mutex_lock(&fault.mutex);
	fault.times = 0;
	pthread_mutex_unlock(&fault.mutex);
}

int64_t disk_fault_met(void)
{
	int64_t met;

	pthread_mutex_lock(&fault.mutex);
	met = fault.met;
	pthread_mutex_unlock(&fault.mutex);
	return met;
}

/* Whether it is the turn of this operation, which is of `kind` as well as one that may break. */
static bool fails(enum disk_fault_kind kind, enum disk_fault_kind *why)
{
	bool now = false;

	pthread_mutex_lock(&fault.mutex);
	if (fault.times > 0 && (fault.kind == DISK_BROKEN || fault.kind == kind) &&
	    fault.after-- <= 0) {
		fault.times--;
		fault.met++;
		now = true;
	}
	*why = fault.kind;
	pthread_mutex_unlock(&fault.mutex);
	return now;
}

/* The code of an operation that fails; SQLITE_OK: it does not. */
static int code_of(enum disk_fault_kind kind, int broken)
{
	enum disk_fault_kind why;

	if (!fails(kind, &why))
		return SQLITE_OK;
	if (why == DISK_BROKEN)
		return broken;
	return why == DISK_FULL ? SQLITE_FULL : SQLITE_BUSY;
}

#define REAL(file) (((struct faulty_file *)(file))->real)
#define FAIL_OR_PASS(kind, broken, call)                                                           \
	do {                                                                                       \
		int code_ = code_of(kind, broken);                                                 \
		return code_ != SQLITE_OK ? code_ : (call);                                        \
	} while (0)

/* --- a file */

static int file_close(sqlite3_file *f)
{
	return REAL(f)->pMethods->xClose(REAL(f));
}

static int file_read(sqlite3_file *f, void *to, int count, sqlite3_int64 at)
{
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_READ,
		     REAL(f)->pMethods->xRead(REAL(f), to, count, at));
}

static int file_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at)
{
	FAIL_OR_PASS(DISK_FULL, SQLITE_IOERR_WRITE,
		     REAL(f)->pMethods->xWrite(REAL(f), from, count, at));
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_TRUNCATE,
		     REAL(f)->pMethods->xTruncate(REAL(f), size));
}

static int file_sync(sqlite3_file *f, int flags)
{
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_FSYNC, REAL(f)->pMethods->xSync(REAL(f), flags));
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_FSTAT, REAL(f)->pMethods->xFileSize(REAL(f), size));
}

static int file_lock(sqlite3_file *f, int level)
{
	FAIL_OR_PASS(DISK_LOCKED, SQLITE_IOERR_LOCK, REAL(f)->pMethods->xLock(REAL(f), level));
}

static int file_unlock(sqlite3_file *f, int level)
{
	return REAL(f)->pMethods->xUnlock(REAL(f), level);
}

static int file_check_lock(sqlite3_file *f, int *is_reserved)
{
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_CHECKRESERVEDLOCK,
		     REAL(f)->pMethods->xCheckReservedLock(REAL(f), is_reserved));
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
	return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}

static int file_sector_size(sqlite3_file *f)
{
	return REAL(f)->pMethods->xSectorSize(REAL(f));
}

static int file_characteristics(sqlite3_file *f)
{
	return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}

static const sqlite3_io_methods file_methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_check_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector_size,
	.xDeviceCharacteristics = file_characteristics,
};

/* --- the disk */

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *granted)
{
	struct faulty_file *file = (struct faulty_file *)f;
	int code = code_of(DISK_BROKEN, SQLITE_CANTOPEN);

	(void)vfs;
	file->base.pMethods = NULL;
	file->real = (sqlite3_file *)(file + 1);
	if (code == SQLITE_OK)
		code = real_vfs->xOpen(real_vfs, name, file->real, flags, granted);
	if (code == SQLITE_OK)
		file->base.pMethods = &file_methods;
	return code;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_DELETE, real_vfs->xDelete(real_vfs, name, sync));
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *result)
{
	(void)vfs;
	FAIL_OR_PASS(DISK_BROKEN, SQLITE_IOERR_ACCESS,
		     real_vfs->xAccess(real_vfs, name, flags, result));
}

void disk_fault_install(void)
{
	static sqlite3_vfs vfs;

	if (real_vfs)
		return;
	real_vfs = sqlite3_vfs_find(NULL);
	vfs = *real_vfs;
	vfs.zName = "faulty";
	vfs.pNext = NULL;
	vfs.szOsFile = (int)sizeof(struct faulty_file) + real_vfs->szOsFile;
	vfs.xOpen = disk_open;
	vfs.xDelete = disk_delete;
	vfs.xAccess = disk_access;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
		abort();
}
