/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time, memory, pressure and boot id from /proc (proc(5)).
 *
 * /proc/stat: "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in USER_HZ
 * ticks, the sum of the lines "cpu0 .." that follow, one per online CPU. user and nice include
 * guest time. /proc/meminfo: "MemTotal:  24684096 kB". /proc/pressure/cpu and memory: two lines as
 * in a cgroup's files. The full line of cpu came with 5.13; from 5.19 on it is always 0.
 *
 * The files stay open, and one pread() from the start reads one moment. What can fail: a field is
 * missing or out of range. Pressure may be missing (before 4.20, or not built) or unreadable
 * (psi=0); then it is unknown.
 */
#include "agent/machine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroup_text.h"
#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"

/* Reads one blank-separated decimal number and moves past it; false at anything else. */
static bool take_number(const char **text, uint64_t *value)
{
	const char *at = *text + strspn(*text, " \t");

	if (!cgroup_text_digits(&at, " \t\n", value))
		return false;
	*text = at;
	return true;
}

static int bad_field(struct error *error, const char *file, const char *field)
{
	return error_fail(error, -EBADMSG, "%s has no valid %s", file, field);
}

enum cpu_part { CPU_USER, CPU_SYSTEM, CPU_IDLE, CPU_IOWAIT, CPU_STEAL, CPU_PARTS };

/* Reads the line after "cpu ", summed by part. */
static int read_ticks(const char *at, uint64_t parts[CPU_PARTS], struct error *error)
{
	static const struct {
		const char *name;
		enum cpu_part part;
	} fields[] = {
		{"user", CPU_USER},	 {"nice", CPU_USER},	 {"system", CPU_SYSTEM},
		{"idle", CPU_IDLE},	 {"iowait", CPU_IOWAIT}, {"irq", CPU_SYSTEM},
		{"softirq", CPU_SYSTEM}, {"steal", CPU_STEAL},
	};
	uint64_t ticks;

	memset(parts, 0, CPU_PARTS * sizeof(parts[0]));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		/* Old kernels lack the last field. */
		if (fields[i].part == CPU_STEAL && strchr("\n", at[strspn(at, " \t")]))
			break;
		if (!take_number(&at, &ticks) ||
		    __builtin_add_overflow(parts[fields[i].part], ticks, &parts[fields[i].part]))
			return bad_field(error, "/proc/stat", fields[i].name);
	}
	return 0;
}

static bool ticks_to_ns(uint64_t ticks, long hz, uint64_t *ns)
{
	return !__builtin_mul_overflow(ticks, (uint64_t)(NS_PER_SEC / hz), ns);
}

static int64_t count_cpus(const char *text)
{
	int64_t n = 0;

	while ((text = strstr(text, "\ncpu"))) {
		text += strlen("\ncpu");
		n += *text >= '0' && *text <= '9';
	}
	return n;
}

int machine_parse_stat(const char *text, long hz, struct machine *m, struct error *error)
{
	const char *cpu = cgroup_text_line(text, "cpu");
	int64_t cpus = count_cpus(text);
	uint64_t parts[CPU_PARTS], busy;
	struct cpu_split split;
	int err;

	assert(hz > 0);
	if (!cpu)
		return bad_field(error, "/proc/stat", "cpu");
	if (!cpus)
		return bad_field(error, "/proc/stat", "cpu0");
	err = read_ticks(cpu, parts, error);
	if (err)
		return err;
	if (!ticks_to_ns(parts[CPU_USER], hz, &split.user_ns) ||
	    !ticks_to_ns(parts[CPU_SYSTEM], hz, &split.system_ns) ||
	    __builtin_add_overflow(split.user_ns, split.system_ns, &busy))
		return bad_field(error, "/proc/stat", "cpu");
	/* These may decrease, on some hypervisors below 0. */
	if (!ticks_to_ns(parts[CPU_IOWAIT], hz, &split.iowait_ns))
		split.iowait_ns = 0;
	if (!ticks_to_ns(parts[CPU_STEAL], hz, &split.steal_ns))
		split.steal_ns = 0;
	m->cpu_busy_ns = busy;
	m->cpu = split;
	m->cpu_capacity_milli = cpus * 1000;
	return 0;
}

static int parse_kib(const char *text, const char *field, uint64_t *bytes, struct error *error)
{
	char word[32];
	const char *at;
	uint64_t kib;

	snprintf(word, sizeof(word), "%s:", field);
	at = cgroup_text_line(text, word);
	if (!at || !take_number(&at, &kib) || __builtin_mul_overflow(kib, 1024, bytes))
		return bad_field(error, "/proc/meminfo", field);
	return 0;
}

int machine_parse_meminfo(const char *text, struct machine *m, struct error *error)
{
	uint64_t total, available;
	int err;

	err = parse_kib(text, "MemTotal", &total, error);
	if (!err)
		err = parse_kib(text, "MemAvailable", &available, error);
	if (err)
		return err;
	m->mem_total_bytes = total;
	m->mem_available_bytes = available;
	return 0;
}

void machine_parse_pressure(const char *cpu, const char *memory, struct machine *m)
{
	uint64_t some, full, memory_some, memory_full;

	m->psi_known = cgroup_text_pressure(cpu, "some", &some) &&
		       cgroup_text_pressure(memory, "some", &memory_some) &&
		       cgroup_text_pressure(memory, "full", &memory_full);
	m->psi_cpu_full_known =
		m->psi_known && cgroup_text_pressure(cpu, "full", &full) && full > 0;
	m->psi_cpu_ns = m->psi_known ? some : 0;
	m->psi_mem_ns = m->psi_known ? memory_some : 0;
	m->psi_mem_full_ns = m->psi_known ? memory_full : 0;
	m->psi_cpu_full_ns = m->psi_cpu_full_known ? full : 0;
}

struct machine_files {
	int stat_fd;
	int meminfo_fd;
	int cpu_pressure_fd, memory_pressure_fd; /* -1 without PSI */
	long hz;
	char boot_id[BOOT_ID_LEN + 1];
	struct buf text; /* of the current file; grows to the largest */
};

enum { TEXT_FIRST = 16 * 1024, TEXT_MAX = 16 * 1024 * 1024, PRESSURE_SIZE = 512 };

/* Replaces f->text by the whole file, read at once. */
static int read_whole(struct machine_files *f, int fd, const char *path, struct error *error)
{
	size_t size = f->text.cap > TEXT_FIRST ? f->text.cap - 1 : TEXT_FIRST;
	ssize_t n;

	for (;; size *= 2) {
		buf_clear(&f->text);
		n = pread(fd, buf_reserve(&f->text, size), size, 0);
		if (n >= 0 && (size_t)n < size)
			break;
		if (n < 0 || size > TEXT_MAX)
			return error_system(error, n < 0 ? -errno : -EFBIG, "cannot read %s", path);
	}
	f->text.len = (size_t)n;
	f->text.data[n] = '\0';
	return 0;
}

/* "" if the file is missing or unreadable. */
static void read_pressure(int fd, char text[PRESSURE_SIZE])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, PRESSURE_SIZE - 1, 0);

	text[n > 0 ? n : 0] = '\0';
}

static int open_file(const char *path, int *fd, struct error *error)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? error_system(error, -errno, "cannot open %s", path) : 0;
}

static int read_boot_id(struct machine_files *f, struct error *error)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	int fd, err;

	err = open_file(path, &fd, error);
	if (err)
		return err;
	err = read_whole(f, fd, path, error);
	close(fd);
	if (err)
		return err;
	if (strcspn(f->text.data, "\n") != BOOT_ID_LEN)
		return bad_field(error, path, "boot id");
	memcpy(f->boot_id, f->text.data, BOOT_ID_LEN);
	return 0;
}

int machine_open(struct machine_files **out, struct error *error)
{
	struct machine_files *f = mem_zalloc(1, sizeof(*f));
	int err;

	f->stat_fd = f->meminfo_fd = -1;
	f->cpu_pressure_fd = open("/proc/pressure/cpu", O_RDONLY | O_CLOEXEC);
	f->memory_pressure_fd = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
	f->hz = sysconf(_SC_CLK_TCK);
	err = open_file("/proc/stat", &f->stat_fd, error);
	if (!err)
		err = open_file("/proc/meminfo", &f->meminfo_fd, error);
	if (!err)
		err = read_boot_id(f, error);
	if (err)
		machine_close(f);
	else
		*out = f;
	return err;
}

void machine_close(struct machine_files *f)
{
	if (!f)
		return;
	file_close(f->stat_fd);
	file_close(f->meminfo_fd);
	file_close(f->cpu_pressure_fd);
	file_close(f->memory_pressure_fd);
	buf_fini(&f->text);
	free(f);
}

int machine_read(struct machine_files *f, struct machine *m, struct error *error)
{
	char cpu_pressure[PRESSURE_SIZE], memory_pressure[PRESSURE_SIZE];
	struct machine now = {.stale = false};
	int err;

	memcpy(now.boot_id, f->boot_id, sizeof(now.boot_id));
	err = read_whole(f, f->stat_fd, "/proc/stat", error);
	if (!err)
		err = machine_parse_stat(f->text.data, f->hz, &now, error);
	if (!err)
		err = read_whole(f, f->meminfo_fd, "/proc/meminfo", error);
	if (!err)
		err = machine_parse_meminfo(f->text.data, &now, error);
	if (err)
		return err;
	read_pressure(f->cpu_pressure_fd, cpu_pressure);
	read_pressure(f->memory_pressure_fd, memory_pressure);
	machine_parse_pressure(cpu_pressure, memory_pressure, &now);
	*m = now;
	return 0;
}
