/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/level.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/process.h"
#include "tests/bench_report.h"

/* Windows of a quarter of an hour are full by then. */
#define SETTLED_S 1200.0

static double count_entries(pid_t pid, const char *below)
{
	char *path = mem_printf("/proc/%d/%s", (int)pid, below);
	DIR *folder = opendir(path);
	double count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	free(path);
	return count - 2; /* . and .. */
}

struct level level_read(pid_t pid, int64_t begin_ns)
{
	static const char *const names[] = {"seconds", "residentMiB", "descriptors", "threads",
					    "cpuSeconds"};
	struct level r = {
		.seconds = (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC,
		.resident_mib = bench_resident_mib(pid),
		.descriptors = count_entries(pid, "fd"),
		.threads = count_entries(pid, "task"),
		.cpu_seconds = process_cpu(pid).ran_s,
	};
	const double values[] = {r.seconds, r.resident_mib, r.descriptors, r.threads,
				 r.cpu_seconds};

	printf("%8.0f s %8.1f MiB %6.0f descriptors %3.0f threads %9.1f s CPU\n", r.seconds,
	       r.resident_mib, r.descriptors, r.threads, r.cpu_seconds);
	fflush(stdout);
	bench_reading(names, values, sizeof(values) / sizeof(*values));
	return r;
}

static double mean_resident_mib(const struct level *of, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += of[i].resident_mib;
	return sum / (double)count;
}

static size_t quarter_of(size_t count)
{
	return count / 4 ? count / 4 : 1;
}

/* As it was read first after so many seconds. */
static double resident_at(const struct level *of, size_t count, double seconds)
{
	size_t i = 0;

	while (i < count - 1 && of[i].seconds < seconds)
		i++;
	return of[i].resident_mib;
}

double level_cpu_percent(const struct level *of, size_t count)
{
	const struct level *first = &of[0], *last = &of[count - 1];

	return 100 * (last->cpu_seconds - first->cpu_seconds) / (last->seconds - first->seconds);
}

double level_resident_mib(const struct level *of, size_t count)
{
	size_t quarter = quarter_of(count);

	return mean_resident_mib(of + count - quarter, quarter);
}

void level_report(const struct level *of, size_t count, const char *prefix, bool budgets)
{
	const struct level *first = &of[0], *last = &of[count - 1];
	double before = mean_resident_mib(of + count / 2, quarter_of(count));
	double late = level_resident_mib(of, count);

	bench_row_of(prefix, "CPU of the aggregator, of one core", "%", budgets ? 30 : (double)NAN,
		     level_cpu_percent(of, count));
	bench_row_of(prefix, "resident memory at the start", "MiB", (double)NAN,
		     first->resident_mib);
	if (last->seconds >= SETTLED_S)
		bench_row_of(prefix, "resident memory after 20 minutes", "MiB", (double)NAN,
			     resident_at(of, count, SETTLED_S));
	bench_row_of(prefix, "resident memory, last quarter", "MiB", budgets ? 1024 : (double)NAN,
		     late);
	bench_row_of(prefix, "  against the quarter before", "x", 1.02, late / before);
	bench_row_of(prefix, "descriptors more at the end than at the start", "descriptors",
		     (double)NAN, last->descriptors - first->descriptors);
	bench_row_of(prefix, "threads more at the end than at the start", "threads", 0,
		     last->threads - first->threads);
}
