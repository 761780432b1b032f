/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every exporter tells of its own process, under the names Prometheus' client libraries have
 * for it. It is read from /proc and the clocks at each scrape; what cannot be read is left out.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/api/metrics.h"

static void write_one(struct buf *out, const char *name, const char *help, double value)
{
	metrics_write_family(out, name, help);
	metrics_write_sample(out, name, NULL, value);
}

static void write_memory(struct buf *out)
{
	FILE *file = fopen("/proc/self/statm", "re");
	double page = (double)sysconf(_SC_PAGESIZE);
	unsigned long size, resident;
	int got = file ? fscanf(file, "%lu %lu", &size, &resident) : 0;

	if (file)
		fclose(file);
	if (got != 2)
		return;
	write_one(out, "process_resident_memory_bytes", "Resident memory.",
		  (double)resident * page);
	write_one(out, "process_virtual_memory_bytes", "Virtual memory.", (double)size * page);
}

/* -1: that cannot be told. */
static double count_descriptors(void)
{
	static const char path[] = "/proc/self/fd";
	double count = -3; /* less ".", ".." and the one that reads */
	struct stat told;
	DIR *folder;

	/* Since Linux 6.2; to list ten thousand takes a millisecond. */
	if (stat(path, &told) == 0 && told.st_size)
		return (double)told.st_size;
	folder = opendir(path);
	if (!folder)
		return -1;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void write_descriptors(struct buf *out)
{
	double count = count_descriptors();
	struct rlimit limit;

	if (count >= 0)
		write_one(out, "process_open_fds", "Open file descriptors.", count);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		write_one(out, "process_max_fds", "File descriptors that may be open.",
			  (double)limit.rlim_cur);
}

void metrics_write_process(struct buf *out)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0)
		write_one(out, "process_cpu_seconds_total", "CPU time of all threads.",
			  (double)t.tv_sec + (double)t.tv_nsec / 1e9);
	write_memory(out);
	write_descriptors(out);
}
