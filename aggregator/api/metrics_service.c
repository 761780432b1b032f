/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the service as a process: who was refused by the HTTP API, which connections of agents
 * are open, and what every exporter tells of its own process, under the names Prometheus' client
 * libraries have for it. The last is read from /proc and the clocks at each scrape; what cannot be
 * read is left out.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/api/metrics.h"

/* --- the HTTP API */

static void write_refusals(struct buf *out, const struct access_counters *c)
{
	static const char *const labels[ACCESS_REFUSALS] = {
#define X(name, label) [ACCESS_REFUSAL_##name] = "reason=\"" label "\"",
		ACCESS_REFUSALS_TABLE(X)
#undef X
	};
	static const char name[] = "evenkeel_http_refused_total";

	metrics_write_family(
		out, name,
		"Requests that were not let in, by why; \"slow\", \"tooManyConnections\" "
		"and \"noDescriptor\": connections that were cut.");
	for (int r = 0; r < ACCESS_REFUSALS; r++)
		metrics_write_sample(out, name, labels[r], (double)counter_get(&c->refused[r]));
}

void metrics_write_access(struct buf *out, const struct access_counters *c)
{
	uint64_t ways = counter_get(&c->ways);

	write_refusals(out, c);
	metrics_write_counter(out, "evenkeel_http_connections", "Connections that are open.",
			      &c->connections);
	if (ways & ACCESS_BY_REVIEW) {
		metrics_write_counter(out, "evenkeel_http_token_reviews_total",
				      "Tokens that the Kubernetes API was asked about.",
				      &c->reviews);
		metrics_write_counter(out, "evenkeel_http_token_reviews_cached_total",
				      "Requests for which the last answer was still good.",
				      &c->reviews_cached);
	}
	if (ways & ACCESS_OVER_TLS)
		metrics_write_counter(out, "evenkeel_http_certificate_not_after_timestamp_seconds",
				      "When the server's certificate ends, Unix time.",
				      &c->certificate_ends_s);
	if (ways & (ACCESS_OVER_TLS | ACCESS_BY_TOKEN)) {
		metrics_write_counter(out, "evenkeel_http_reloads_total",
				      "Times that certificates or tokens were exchanged.",
				      &c->reloads);
		metrics_write_counter(
			out, "evenkeel_http_reload_failures_total",
			"Times that they could not be read again, and the former ones stayed.",
			&c->reload_failures);
	}
}

/* --- connections of agents */

void metrics_write_ingest(struct buf *out, const struct ingest_counters *c)
{
	static const char *const labels[INGEST_CLOSINGS] = {
#define X(name, label) [INGEST_CLOSING_##name] = "reason=\"" label "\"",
		INGEST_CLOSINGS_TABLE(X)
#undef X
	};
	static const char closed[] = "evenkeel_ingest_closed_total";

	metrics_write_counter(out, "evenkeel_ingest_connections",
			      "Connections of agents that are open.", &c->connections);
	metrics_write_counter(out, "evenkeel_ingest_refused_total",
			      "Connections of agents that were turned away for want of room.",
			      &c->refused);
	metrics_write_family(
		out, closed,
		"Connections of agents that this side ended, by why; \"room\": strange "
		"or silent ones that made room.");
	for (int i = 0; i < INGEST_CLOSINGS; i++)
		metrics_write_sample(out, closed, labels[i], (double)counter_get(&c->closed[i]));
}

/* --- the process */

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
	metrics_write_one(out, "process_resident_memory_bytes", "Resident memory.",
			  (double)resident * page);
	metrics_write_one(out, "process_virtual_memory_bytes", "Virtual memory.",
			  (double)size * page);
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
		metrics_write_one(out, "process_open_fds", "Open file descriptors.", count);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_write_one(out, "process_max_fds", "File descriptors that may be open.",
				  (double)limit.rlim_cur);
}

void metrics_write_process(struct buf *out)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0)
		metrics_write_one(out, "process_cpu_seconds_total", "CPU time of all threads.",
				  (double)t.tv_sec + (double)t.tv_nsec / 1e9);
	write_memory(out);
	write_descriptors(out);
}
