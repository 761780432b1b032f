/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's CPU time, memory and boot id, from /proc (proc(5)).
 *
 * /proc/stat: "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in USER_HZ
 * ticks, summed over the CPUs that follow as "cpu0 ..", one line per CPU that is online. Guest time
 * is already part of user and nice. /proc/meminfo: "MemTotal:  24684096 kB".
 *
 * The files stay open and are read from their start by one pread, so that a reading is of one
 * moment. What can fail: a field that is not there (not a Linux we know), or a number out of range.
 */
#include "agent/machine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroup_text.h"
#include "shared/buf.h"
#include "shared/clock.h"
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

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

/* The rest of the line that begins with word, or NULL. */
static const char *find_line(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (; *text; text = next_line(text)) {
		if (strncmp(text, word, len) == 0)
			return text + len;
	}
	return NULL;
}

static int bad_field(struct reason *reason, const char *file, const char *field)
{
	reason_set(reason, "%s has no valid %s", file, field);
	return -EBADMSG;
}

/* Sums the ticks a CPU was busy, given what follows "cpu ". */
static int sum_busy_ticks(const char *at, uint64_t *busy, struct reason *reason)
{
	static const struct {
		const char *name;
		bool busy;
	} fields[] = {
		{"user", true},	   {"nice", true}, {"system", true},  {"idle", false},
		{"iowait", false}, {"irq", true},  {"softirq", true},
	};
	uint64_t sum = 0, ticks;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!take_number(&at, &ticks))
			return bad_field(reason, "/proc/stat", fields[i].name);
		if (fields[i].busy && __builtin_add_overflow(sum, ticks, &sum))
			return bad_field(reason, "/proc/stat", fields[i].name);
	}
	*busy = sum;
	return 0;
}

static int64_t count_cpus(const char *text)
{
	int64_t n = 0;

	for (; *text; text = next_line(text))
		n += strncmp(text, "cpu", 3) == 0 && text[3] >= '0' && text[3] <= '9';
	return n;
}

int machine_parse_stat(const char *text, long hz, struct machine *m, struct reason *reason)
{
	const char *cpu = find_line(text, "cpu ");
	int64_t cpus = count_cpus(text);
	uint64_t busy;
	int err;

	assert(hz > 0);
	if (!cpu)
		return bad_field(reason, "/proc/stat", "cpu");
	if (!cpus)
		return bad_field(reason, "/proc/stat", "cpu0");
	err = sum_busy_ticks(cpu, &busy, reason);
	if (err)
		return err;
	if (__builtin_mul_overflow(busy, (uint64_t)(NS_PER_SEC / hz), &busy))
		return bad_field(reason, "/proc/stat", "cpu");
	m->cpu_busy_ns = busy;
	m->cpu_capacity_milli = cpus * 1000;
	return 0;
}

static int parse_kib(const char *text, const char *field, uint64_t *bytes, struct reason *reason)
{
	char word[32];
	const char *at;
	uint64_t kib;

	snprintf(word, sizeof(word), "%s:", field);
	at = find_line(text, word);
	if (!at || !take_number(&at, &kib) || __builtin_mul_overflow(kib, 1024, bytes))
		return bad_field(reason, "/proc/meminfo", field);
	return 0;
}

int machine_parse_meminfo(const char *text, struct machine *m, struct reason *reason)
{
	uint64_t total, available;
	int err;

	err = parse_kib(text, "MemTotal", &total, reason);
	if (!err)
		err = parse_kib(text, "MemAvailable", &available, reason);
	if (err)
		return err;
	m->mem_total_bytes = total;
	m->mem_available_bytes = available;
	return 0;
}

struct machine_files {
	int stat_fd;
	int meminfo_fd;
	long hz;
	char boot_id[BOOT_ID_LEN + 1];
	struct buf text; /* of the file being parsed; grows to the largest */
};

enum { TEXT_FIRST = 16 * 1024, TEXT_MAX = 16 * 1024 * 1024 };

/* Replaces f->text by the whole file, read at once. */
static int read_whole(struct machine_files *f, int fd, const char *path, struct reason *reason)
{
	size_t size = f->text.cap > TEXT_FIRST ? f->text.cap - 1 : TEXT_FIRST;
	ssize_t n;

	for (;; size *= 2) {
		buf_clear(&f->text);
		n = pread(fd, buf_reserve(&f->text, size), size, 0);
		if (n >= 0 && (size_t)n < size)
			break;
		if (n < 0 || size > TEXT_MAX) {
			int err = n < 0 ? -errno : -EFBIG;

			reason_set(reason, "cannot read %s: %s", path, strerror(-err));
			return err;
		}
	}
	f->text.len = (size_t)n;
	f->text.data[n] = '\0';
	return 0;
}

static int open_file(const char *path, int *fd, struct reason *reason)
{
	int err;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	err = -errno;
	reason_set(reason, "cannot open %s: %s", path, strerror(-err));
	return err;
}

static int read_boot_id(struct machine_files *f, struct reason *reason)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	int fd, err;

	err = open_file(path, &fd, reason);
	if (err)
		return err;
	err = read_whole(f, fd, path, reason);
	close(fd);
	if (err)
		return err;
	if (strcspn(f->text.data, "\n") != BOOT_ID_LEN)
		return bad_field(reason, path, "boot id");
	memcpy(f->boot_id, f->text.data, BOOT_ID_LEN);
	return 0;
}

int machine_open(struct machine_files **out, struct reason *reason)
{
	struct machine_files *f = mem_zalloc(1, sizeof(*f));
	int err;

	f->stat_fd = f->meminfo_fd = -1;
	f->hz = sysconf(_SC_CLK_TCK);
	err = open_file("/proc/stat", &f->stat_fd, reason);
	if (!err)
		err = open_file("/proc/meminfo", &f->meminfo_fd, reason);
	if (!err)
		err = read_boot_id(f, reason);
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
	if (f->stat_fd >= 0)
		close(f->stat_fd);
	if (f->meminfo_fd >= 0)
		close(f->meminfo_fd);
	buf_fini(&f->text);
	free(f);
}

int machine_read(struct machine_files *f, struct machine *m, struct reason *reason)
{
	struct machine now;
	int err;

	memcpy(now.boot_id, f->boot_id, sizeof(now.boot_id));
	err = read_whole(f, f->stat_fd, "/proc/stat", reason);
	if (!err)
		err = machine_parse_stat(f->text.data, f->hz, &now, reason);
	if (!err)
		err = read_whole(f, f->meminfo_fd, "/proc/meminfo", reason);
	if (!err)
		err = machine_parse_meminfo(f->text.data, &now, reason);
	if (!err)
		*m = now;
	return err;
}
