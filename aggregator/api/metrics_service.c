/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the service as a process: requests that the HTTP API refused, connections of agents,
 * and the process metrics of Prometheus' client libraries. These are read from /proc and the clocks
 * at each scrape; a value that cannot be read has no sample.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/api/metrics.h"

void metrics_write_access(struct buf *out, const struct access_counters *c)
{
	static const char *const reasons[ACCESS_REFUSALS] = {
#define X(name, label) [ACCESS_REFUSAL_##name] = (label),
		ACCESS_REFUSALS_TABLE(X)
#undef X
	};
	const struct {
		unsigned int ways; /* bits of enum access_way, one of which is on; 0: always */
		struct metric sample;
	} rows[] = {
		{0,
		 {"evenkeel_http_connections", NULL, "Connections that are open.",
		  COUNT(c->connections)}},
		{ACCESS_BY_REVIEW,
		 {"evenkeel_http_token_reviews_total", NULL,
		  "Tokens that the Kubernetes API was asked about.", COUNT(c->reviews)}},
		{ACCESS_BY_REVIEW,
		 {"evenkeel_http_token_reviews_cached_total", NULL,
		  "Requests for which the last answer was still good.", COUNT(c->reviews_cached)}},
		{ACCESS_OVER_TLS,
		 {"evenkeel_http_certificate_not_after_timestamp_seconds", NULL,
		  "When the server's certificate ends, Unix time.", COUNT(c->certificate_ends_s)}},
		{ACCESS_OVER_TLS | ACCESS_BY_TOKEN,
		 {"evenkeel_http_reloads_total", NULL,
		  "Times that certificates or tokens were exchanged.", COUNT(c->reloads)}},
		{ACCESS_OVER_TLS | ACCESS_BY_TOKEN,
		 {"evenkeel_http_reload_failures_total", NULL,
		  "Times that they could not be read again, and the former ones stayed.",
		  COUNT(c->reload_failures)}},
	};

	metrics_write_counters(
		out, "evenkeel_http_refused_total",
		"Requests that were not let in, by why; \"slow\", \"tooManyConnections\" and "
		"\"noDescriptor\": connections that were cut.",
		"reason", reasons, c->refused, ACCESS_REFUSALS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!rows[i].ways || counter_get(&c->ways) & rows[i].ways)
			metrics_write_samples(out, &rows[i].sample, 1);
}

void metrics_write_ingest(struct buf *out, const struct ingest_counters *c)
{
	static const char *const reasons[INGEST_CLOSINGS] = {
#define X(name, label) [INGEST_CLOSING_##name] = (label),
		INGEST_CLOSINGS_TABLE(X)
#undef X
	};
	const struct metric samples[] = {
		{"evenkeel_ingest_connections", NULL, "Connections of agents that are open.",
		 COUNT(c->connections)},
		{"evenkeel_ingest_refused_total", NULL,
		 "Connections of agents that were refused at a limit.", COUNT(c->refused)},
	};

	METRICS_WRITE(out, samples);
	metrics_write_counters(out, "evenkeel_ingest_closed_total",
			       "Connections of agents that this side ended, by why; \"room\": "
			       "strange or silent ones that made room.",
			       "reason", reasons, c->closed, INGEST_CLOSINGS);
}

/* --- the process */

/* Pages; false: unknown. */
static bool read_memory(unsigned long *size, unsigned long *resident)
{
	FILE *file = fopen("/proc/self/statm", "re");
	int got = file ? fscanf(file, "%lu %lu", size, resident) : 0;

	if (file)
		fclose(file);
	return got == 2;
}

/* NaN: unknown. */
static double count_descriptors(void)
{
	static const char path[] = "/proc/self/fd";
	double count = -3; /* less ".", ".." and the one that reads */
	struct stat info;
	DIR *folder;

	/* Since Linux 6.2; to list ten thousand takes a millisecond. */
	if (stat(path, &info) == 0 && info.st_size)
		return (double)info.st_size;
	folder = opendir(path);
	if (!folder)
		return NAN;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

void metrics_write_process(struct buf *out)
{
	double page = (double)sysconf(_SC_PAGESIZE);
	unsigned long size, resident;
	bool memory = read_memory(&size, &resident);
	struct rlimit limit;
	bool limited = getrlimit(RLIMIT_NOFILE, &limit) == 0;
	const struct metric samples[] = {
		{"process_cpu_seconds_total", NULL, "CPU time of all threads.",
		 (double)clock() / CLOCKS_PER_SEC},
		{"process_resident_memory_bytes", NULL, "Resident memory.",
		 memory ? (double)resident * page : NAN},
		{"process_virtual_memory_bytes", NULL, "Virtual memory.",
		 memory ? (double)size * page : NAN},
		{"process_open_fds", NULL, "Open file descriptors.", count_descriptors()},
		{"process_max_fds", NULL, "File descriptors that may be open.",
		 limited ? (double)limit.rlim_cur : NAN},
	};

	METRICS_WRITE(out, samples);
}
